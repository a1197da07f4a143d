"""What HIP says of each kind of memory (device, pinned, registered, managed, unregistered), and hints about memory."""

from __future__ import annotations

import pytest
from simlib import hip_client as run

pytest.importorskip("tilelang.sim")

MEMORY = """
S = C.c_size_t
mm = (C.c_ubyte * 8192)(); base = (C.addressof(mm) + 4095) & ~4095
ok(hip.hipSetDevice(1))
dev = malloc(4096); fine = P(); ok(hip.hipExtMallocWithFlags(C.byref(fine), S(4096), 1))
pin = P(); ok(hip.hipHostMalloc(C.byref(pin), S(4096), 0x80000000 | 2))
man = P(); ok(hip.hipMallocManaged(C.byref(man), S(4096), 1))
ok(hip.hipHostRegister(P(base), S(4096), 1))
ok(hip.hipSetDevice(0))
other = C.create_string_buffer(64)
KINDS = {"device": dev.value, "fine": fine.value, "pinned": pin.value, "registered": base, "managed": man.value,
         "unregistered": C.addressof(other)}
"""

# type, device, device pointer, host pointer (1: the pointer itself), managed, flags
ATTRIBUTES = {
    "device": [2, 1, 1, 0, 0, 0],
    "fine": [2, 1, 1, 0, 0, 1],
    "pinned": [1, 1, 1, 1, 0, 0x80000002],
    "registered": [1, 1, 1, 1, 0, 1],
    "managed": [3, 1, 1, 1, 1, 0],
    "unregistered": [0, -2, 0, 0, 0, 0],
}


def test_pointer_attributes():
    body = """
def word(p, attribute, fmt):
    buf = C.create_string_buffer(b"\\xee" * 16, 16); e = hip.hipPointerGetAttribute(buf, attribute, P(p))
    hip.hipGetLastError()
    size = struct.calcsize(fmt); assert buf.raw[size:] == b"\\xee" * (16 - size) # no byte more than its type has
    return e if e else struct.unpack_from(fmt, buf.raw)[0]
r = {}
for k, p in KINDS.items():
    a = C.create_string_buffer(32); ok(hip.hipPointerGetAttributes(a, P(p + 4)))
    t, d, dp, hp, m, f = struct.unpack("<iiQQiI", a.raw)
    same = lambda x: 1 if x == p + 4 else x
    v = [word(p + 4, *w) for w in ((2, "i"), (8, "?"), (9, "i"), (11, "Q"), (12, "Q"), (13, "?"), (4, "Q"), (3, "Q"))]
    v[3] -= p if v[3] > 1000 else 0; v[6] = same(v[6]); v[7] = same(v[7])
    r[k] = [[t, d, same(dp), same(hp), m, f], v, [word(p, n, "Q") for n in (5, 10, 14, 15, 16, 17, 0, 99)]]
print(json.dumps(r))
"""
    out, _ = run(MEMORY + body, TILELANG_SIM_DEVICES="gfx942,gfx1100")
    assert {k: v[0] for k, v in out.items()} == ATTRIBUTES
    for kind, (_, one, refused) in out.items():
        t, device, _, host, managed, _ = ATTRIBUTES[kind]
        if kind == "unregistered":  # the pointer means the same to the host and to devices
            assert one == [1] * 6 + [1, 1] and refused == [1] * 8, kind
            continue
        assert one == [t, bool(managed), device, 0, 4096, True, 1, 1], kind  # no host pointer: error 1 too
        assert refused == [801] * 6 + [1] * 2, kind


def test_flags():
    body = """
def flags(p):
    f = C.c_uint(77); e = hip.hipHostGetFlags(C.byref(f), P(p)); return [e, f.value]
r = {k: flags(p) for k, p in KINDS.items()}
q = P()
r["host"] = [hip.hipHostMalloc(C.byref(q), S(64), f) for f in (7, 0x70000007, 0xc0000000, 8)]
r["ext"] = [hip.hipExtMallocWithFlags(C.byref(q), S(n), f) for n, f in ((64, 0), (64, 3), (8, 2), (64, 2), (64, 5))]
free = (C.c_ubyte * 64)()
r["register"] = [hip.hipHostRegister(free, S(64), f) for f in (16, 15, 0)]
r["nothing there"] = hip.hipHostRegister(P(4096), S(64), 0)
r["managed flags"] = [hip.hipMallocManaged(C.byref(q), S(64), f) for f in (0, 1, 2, 3)]
r["managed none"] = hip.hipMallocManaged(C.byref(q), S(0), 1)
r["device pointer"] = [hip.hipHostGetDevicePointer(C.byref(q), P(p), 0) for p in KINDS.values()]
print(json.dumps(r))
"""
    out, _ = run(MEMORY + body, TILELANG_SIM_DEVICES="gfx942,gfx1100")
    assert out.pop("device") == out.pop("fine") == out.pop("unregistered") == [1, 77]
    assert out.pop("pinned") == [0, 0x80000002] and out.pop("registered") == [0, 1] and out.pop("managed") == [0, 0]
    assert out == {
        "host": [0, 0, 1, 1],
        "ext": [0, 0, 0, 1, 1],
        "register": [1, 0, 712],
        "nothing there": 1,
        "managed flags": [1, 0, 0, 1],
        "managed none": 1,
        "device pointer": [0, 0, 0, 0, 0, 1],
    }


def test_hints():
    """Advice and prefetches can be asked for, stretch by stretch; freed memory is forgotten."""
    body = """
def ask(p, n, attribute, size=4):
    buf = (C.c_int * (size // 4 or 1))(*[77] * (size // 4 or 1))
    e = hip.hipMemRangeGetAttribute(buf, S(size), attribute, P(p), S(n)); hip.hipGetLastError()
    return e if e else list(buf) if size > 4 else buf[0]
def all_of(p, n): return [ask(p, n, a) for a in (1, 2, 4, 100)] + [ask(p, n, 3, 12)]
def advise(p, n, advice, device=0): return hip.hipMemAdvise(P(p), S(n), advice, device)
p = man.value
r = {"fresh": all_of(p, 4096)}
r["said"] = [advise(p, 4096, 1), advise(p, 4096, 3, 1), advise(p, 4096, 5, 1), advise(p, 4096, 5, -1),
             advise(p, 4096, 100), hip.hipMemPrefetchAsync(P(p), S(4096), 0, None)]
r["all"] = all_of(p, 4096)
r["undone"] = [advise(p + 1024, 1024, a, 1) for a in (2, 4, 6, 101)]
r["undone"] += [hip.hipMemPrefetchAsync(P(p), S(2048), -1, None)]
r["parts"] = [all_of(p, 1024), all_of(p + 1024, 1024), all_of(p + 2048, 2048), all_of(p, 4096)]
r["bad"] = [advise(0, 64, 1), advise(p, 0, 1), advise(p, 4097, 1), advise(p, 64, 0), advise(p, 64, 7),
            advise(p, 64, 3, 2), advise(p, 64, 3, -2), advise(p, 64, 1, 9), advise(p, 64, 1, -2),
            advise(p, 64, 1, 1 << 30),
            hip.hipMemPrefetchAsync(P(p), S(4097), 0, None), hip.hipMemPrefetchAsync(P(p), S(64), 5, None),
            hip.hipMemPrefetchAsync(P(p), S(64), 0, P(12345))]
r["sizes"] = [ask(p, 64, 1, 8), ask(p, 64, 3, 8), ask(p, 64, 3, 6), ask(p, 64, 5), ask(p, 0, 1), ask(p, 4097, 1)]
r["kinds"] = {k: [advise(q, 64, 1), ask(q, 64, 1), ask(q, 64, 100), hip.hipMemPrefetchAsync(P(q), S(64), 0, None)]
              for k, q in KINDS.items()}
bufs = [(C.c_int * 1)(), (C.c_int * 2)()]
r["several"] = [hip.hipMemRangeGetAttributes((P * 2)(*[C.addressof(b) for b in bufs]), (S * 2)(4, 8),
                (C.c_int * 2)(2, 3), S(2), P(p), S(1024)), list(bufs[0]), list(bufs[1])]
class Location(C.Structure): _fields_ = [("type", C.c_int), ("id", C.c_int)]
r["v2"] = [hip.hipMemAdvise_v2(P(p), S(64), 3, Location(t, 0)) for t in (0, 1, 2, 3, 4, 5)] + [ask(p, 64, 2)]
ok(hip.hipFree(man)); back = P()
ok(hip.hipMallocManaged(C.byref(back), S(4096), 1))
r["again"] = [back.value == p, all_of(back.value, 4096)]
print(json.dumps(r))
"""
    out, _ = run(MEMORY + body, TILELANG_SIM_DEVICES="gfx942,gfx1100")
    fresh = [0, -2, -2, 0, [-2, -2, -2]]
    assert out["fresh"] == fresh and out["said"] == [0] * 6
    assert out["all"] == [1, 1, 0, 1, [-1, 1, -2]] and out["undone"] == [0] * 5
    first, second, third = [1, 1, -1, 1, [-1, 1, -2]], [0, -2, -1, 0, [-1, -2, -2]], [1, 1, 0, 1, [-1, 1, -2]]
    assert out["parts"] == [first, second, third, [0, -2, -2, 2, [-1, -2, -2]]]
    assert out["bad"] == [1, 1, 1, 1, 1, 101, 101, 0, 0, 0, 1, 101, 709]
    assert out["sizes"] == [1, [-1, 1], 1, 1, 1, 1]
    assert out["kinds"] == {
        "device": [1, 1, 1, 0],
        "fine": [1, 1, 0, 0],
        "pinned": [1, 1, 1, 0],
        "registered": [1, 1, 0, 0],
        "managed": [0, 1, 1, 0],
        "unregistered": [0, 1, 0, 0],
    }
    assert out["several"] == [0, [1], [-1, 1]] and out["v2"] == [1, 0, 0, 0, 0, 1, -1]
    assert out["again"][1] == fresh


def test_managed_memory_of_every_device():
    """The attributes that say what managed memory can do agree with what is done."""
    body = """
def attribute(n):
    x = C.c_int(); ok(hip.hipDeviceGetAttribute(C.byref(x), n, 0)); return x.value
print(json.dumps([attribute(n) for n in (24, 9, 13, 65, 66, 85, 3, 4)]))
"""
    for chip in ("gfx90a", "gfx942", "gfx1201"):
        assert run(body, TILELANG_SIM_DEVICES=chip)[0] == [1] * 8
