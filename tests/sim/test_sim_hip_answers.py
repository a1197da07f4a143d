"""What HIP answers beyond the usual path: pools' counts, rows that leave an allocation, waits for values, flags."""

from __future__ import annotations

import pytest
from simlib import hip_client as run

pytest.importorskip("tilelang.sim")

PRELUDE = """
S, U32, U64, r = C.c_size_t, C.c_uint32, C.c_uint64, {}
stream = P(); ok(hip.hipStreamCreate(C.byref(stream)))
def done(e): hip.hipGetLastError(); return e
"""


def test_pools():
    """How much of a pool is used, the most that was, which pool hipMallocAsync takes; what cannot be set or made."""
    body = """
def properties(type=1, handles=0, where=1, device=0):
    return (C.c_int * 22)(type, handles, where, device)
def make(**kw):
    p = P(); e = hip.hipMemPoolCreate(C.byref(p), properties(**kw)); return done(e) or p
def ask(pool, a):
    v = U64(0); ok(hip.hipMemPoolGetAttribute(pool, a, C.byref(v))); return v.value
def tell(pool, a, v): return done(hip.hipMemPoolSetAttribute(pool, a, C.byref(U64(v))))
def counts(pool): return [ask(pool, a) for a in (5, 6, 7, 8)]
def get(pool, n):
    p = P(); ok(hip.hipMallocFromPoolAsync(C.byref(p), S(n), pool, stream)); return p
def asynchronous(n):
    p = P(); ok(hip.hipMallocAsync(C.byref(p), S(n), stream)); return p
def current(device=0):
    p = P(); ok(hip.hipDeviceGetMemPool(C.byref(p), device)); return p.value
pool, far, default = make(), make(device=1), P()
ok(hip.hipDeviceGetDefaultMemPool(C.byref(default), 0))
r["fresh"] = [ask(pool, a) for a in range(1, 9)]
a, b = get(pool, 1000), get(pool, 3000); r["two"] = counts(pool)
ok(hip.hipFreeAsync(a, stream)); r["one"] = counts(pool)
r["set"] = [tell(pool, *x) for x in ((7, 0), (5, 0), (8, 5), (8, 0), (6, 0), (4, 1 << 20), (0, 0), (9, 0))]
ok(hip.hipFree(b)); r["none"] = counts(pool) + [ask(pool, 4)]
x = get(far, 64); own = C.c_int(); ok(hip.hipPointerGetAttribute(C.byref(own), 9, x)); r["far"] = own.value
r["choose"] = [done(hip.hipDeviceSetMemPool(0, far)), done(hip.hipDeviceSetMemPool(0, P(8)))]
r["choose"].append(current() == default.value)
ok(hip.hipDeviceSetMemPool(0, pool)); c = asynchronous(500)
r["chosen"] = [current() == pool.value, ask(pool, 7), ask(default, 7)]
ok(hip.hipMemPoolDestroy(pool)); r["gone"] = current() == default.value
d = asynchronous(700); r["default"] = ask(default, 7)
ok(hip.hipFree(c)); ok(hip.hipFree(d)); r["end"] = ask(default, 7)
r["bad"] = [make(**k) for k in (dict(type=0), dict(handles=1), dict(handles=2), dict(where=2), dict(device=2))]
print(json.dumps(r))
"""
    out, err = run(PRELUDE + body, TILELANG_SIM_DEVICES="gfx942,gfx1100")
    assert out["fresh"] == [1, 1, 1, 0, 0, 0, 0, 0]
    assert out["two"] == [4000] * 4 and out["one"] == [3000, 4000, 3000, 4000]
    assert out["set"] == [1, 1, 1, 0, 0, 0, 1, 1] and out["none"] == [0, 3000, 0, 3000, 1 << 20]
    assert out["far"] == 1 and out["choose"] == [1, 1, True] and out["chosen"] == [True, 500, 0]
    assert out["gone"] and out["default"] == 700 and out["end"] == 0 and out["bad"] == [1, 801, 1, 1, 1]
    assert err == (
        "tilelang simulator: a pool that is shared with other processes (hipMemPoolCreate) is not supported\n"
    )


def test_rows_that_leave_an_allocation():
    """Copies and fills of rows are refused as a whole when the last row ends behind the allocation, and so is what
    starts behind it: the rest of its last page, the page that nobody may touch."""
    body = """
class Pitched(C.Structure): _fields_ = [("ptr", P), ("pitch", S), ("x", S), ("y", S)]
class Extent(C.Structure): _fields_ = [("width", S), ("height", S), ("depth", S)]
host = C.create_string_buffer(b"h" * 65536, 65536)
base, size, pitch = malloc(2560).value, 2560, 256
def all_of():
    b = C.create_string_buffer(size); ok(hip.hipMemcpy(b, P(base), S(size), 2)); return b.raw
def put(height, width=100, at=0): return hip.hipMemcpy2D(P(base + at), S(pitch), host, S(100), S(width), S(height), 1)
def take(height, at=0): return hip.hipMemcpy2D(host, S(pitch), P(base + at), S(pitch), S(100), S(height), 2)
def fill(height, width=100): return hip.hipMemset2D(P(base), S(pitch), 7, S(width), S(height))
def slices(y, depth): return hip.hipMemset3D(Pitched(base, pitch, 100, y), 7, Extent(100, y, depth))
ok(hip.hipMemset(P(base), 0, S(size)))
r["outside"] = [done(e) for e in (put(11), put(17), put(10, at=200), take(11), take(17), take(1 << 62), fill(11),
                fill(17), fill(10, 257), slices(5, 3), slices(3, 4), slices(5, 1 << 60),
                hip.hipMemcpy2DAsync(P(base), S(pitch), host, S(100), S(100), S(11), 1, stream),
                hip.hipMemset2DAsync(P(base), S(pitch), 7, S(100), S(11), stream))]
r["untouched"] = all_of() == bytes(size)
fills = (hip.hipMemset, hip.hipMemsetD8)
r["behind"] = [done(f(P(base + at), 0, S(4))) for at in (2560, 4092, 4096, 8191) for f in fills]
r["behind"] += [done(hip.hipMemcpy(P(base + at), host, S(4), 1)) for at in (2560, 4096)]
r["inside"] = [put(10), put(10, at=156), take(10), fill(10), slices(5, 2), put(9, 256), fill(1, 2560)]
print(json.dumps(r))
"""
    out, _ = run(PRELUDE + body)
    assert out["outside"] == [1] * 8 + [12] + [1] * 5  # one row is wider than the pitch
    assert out["untouched"] and out["behind"] == [1] * 10
    assert out["inside"] == [0, 0, 0, 0, 0, 12, 0]


def test_waits_for_values():
    """A value that is there is waited for; one that is still to come is refused by name: a call ends with its work."""
    body = """
p = P(); ok(hip.hipExtMallocWithFlags(C.byref(p), S(8), 2))
ok(hip.hipStreamWriteValue64(stream, p, U64(0x500000005), 0))
def w32(value, how, mask=0xffffffff, at=0):
    return done(hip.hipStreamWaitValue32(stream, P(p.value + at), U32(value), how, U32(mask)))
def w64(value, how, mask=(1 << 64) - 1): return done(hip.hipStreamWaitValue64(stream, p, U64(value), how, U64(mask)))
r["gte"] = [w32(5, 0), w32(4, 0), w32(6, 0), w64(0x500000005, 0), w64(0x500000006, 0)]
r["eq"] = [w32(5, 1), w32(4, 1), w32(4, 1, 4), w64(5 << 32, 1, 15 << 32)]
r["and"] = [w32(4, 2), w32(10, 2), w64(4 << 32, 2), w64(10 << 32, 2)]
r["nor"] = [w32(0, 3), w32(0xfffffffa, 3), w64((1 << 64) - 1, 3), w64(0, 3)]
r["bad"] = [w32(5, 4), w32(5, 0, at=2), done(hip.hipStreamWaitValue32(stream, None, U32(5), 0, U32(1))),
            done(hip.hipStreamWaitValue32(P(77), p, U32(5), 0, U32(1)))]
print(json.dumps(r))
"""
    out, err = run(PRELUDE + body)
    assert out["gte"] == [0, 0, 801, 0, 801] and out["eq"] == [0, 801, 0, 0]
    assert out["and"] == [0, 801, 0, 801] and out["nor"] == [0, 801, 801, 0] and out["bad"] == [1, 1, 1, 709]
    assert err == "tilelang simulator: waiting for a value that is still to be written is not supported\n"


def test_flags_of_events_and_devices():
    body = """
def event(flags):
    e = P(); return done(hip.hipEventCreateWithFlags(C.byref(e), U32(flags)))
r["events"] = {hex(f): event(f) for f in (0, 1, 2, 3, 4, 6, 7, 8, 0x1000, 1 << 29, 1 << 30, 1 << 31, 3 << 29,
                                            5 << 29, 3 << 30, (1 << 31) | 2)}
r["device"] = [done(hip.hipSetDeviceFlags(U32(f))) for f in (0, 1, 2, 4, 8, 16, 28, 3, 5, 32, 0x1000)]
print(json.dumps(r))
"""
    out, _ = run(PRELUDE + body)
    good = {0, 1, 2, 3, 6, 7, 1 << 29, 1 << 30, 1 << 31, (1 << 31) | 2}
    assert {int(k, 16) for k, v in out["events"].items() if v == 0} == good and set(out["events"].values()) == {0, 1}
    assert out["device"] == [0] * 7 + [1] * 4
