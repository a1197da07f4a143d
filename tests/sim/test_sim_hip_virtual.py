"""Virtual memory (hipMemCreate, hipMemMap, ...): a buffer that grows, access by device, sharing, what is refused."""

from __future__ import annotations

import pytest
from simlib import ADD, BUF, Arg, code_object
from simlib import hip_client as run

pytest.importorskip("tilelang.sim")

PRELUDE = """
S, U64 = C.c_size_t, C.c_ulonglong
class Location(C.Structure): _fields_ = [("type", C.c_int), ("id", C.c_int)]
class Prop(C.Structure):
    _fields_ = [("type", C.c_int), ("handle", C.c_int), ("location", Location), ("win32", P), ("flags", C.c_ubyte * 8)]
class Desc(C.Structure): _fields_ = [("location", Location), ("flags", C.c_int)]
G = 4096
def prop(device=0, type=1, handle=0, where=1): return Prop(type, handle, Location(where, device))
def create(n, **kw):
    h = P(); e = hip.hipMemCreate(C.byref(h), S(n), C.byref(prop(**kw)), U64(0)); return h if e == 0 else e
def reserve(n, align=0, flags=0):
    p = P(); e = hip.hipMemAddressReserve(C.byref(p), S(n), S(align), None, U64(flags)); return p.value if e == 0 else e
def map_(p, n, h, offset=0): return hip.hipMemMap(P(p), S(n), S(offset), h, U64(0))
def unmap(p, n): return hip.hipMemUnmap(P(p), S(n))
def access(p, n, *devices, flags=3, where=1):
    return hip.hipMemSetAccess(P(p), S(n), (Desc * len(devices))(*[Desc(Location(where, d), flags) for d in devices]),
                               S(len(devices)))
def may(p, device=0):
    f = U64(77); e = hip.hipMemGetAccess(C.byref(f), C.byref(Location(1, device)), P(p)); return e or f.value + 1000
def device_of(p):
    a = C.create_string_buffer(32); ok(hip.hipPointerGetAttributes(a, P(p))); return struct.unpack("<ii", a.raw[:8])
def put(p, values): return hip.hipMemcpy(P(p), (C.c_int * len(values))(*values), S(4 * len(values)), 1)
def get(p, n):
    b = (C.c_int * n)(); e = hip.hipMemcpy(b, P(p), S(4 * n), 2); return e or list(b)
"""


@pytest.fixture(scope="module")
def add(tmp_path_factory):
    path = tmp_path_factory.mktemp("hip") / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    return path


def test_a_buffer_that_grows(add):
    """Two memories side by side are one buffer for kernels and copies; unmapped, it ends where the first does."""
    body = """
m, f = load(sys.argv[1]); r = {}
p = reserve(4 * G); a, b = create(G), create(2 * G)
r["before"] = [put(p, [1]), device_of(p)[0], may(p)]
r["map"] = [map_(p, G, a), put(p, [1]), may(p), access(p, G, 0), may(p)]
ok(put(p, range(1024)))
ok(map_(p + G, 2 * G, b)); ok(access(p + G, 2 * G, 0))
out = malloc(3 * G)
ok(put(p + G - 64, range(500, 532))) # across the seam
ok(launch(f, (48, 1, 1), (64, 1, 1), P(p), out, C.c_int32(5))); ok(hip.hipDeviceSynchronize())
r["sum"] = get(out.value + G - 72, 36)
base, size = P(), S(); ok(hip.hipMemGetAddressRange(C.byref(base), C.byref(size), P(p + 2 * G)))
r["range"] = [base.value == p, size.value]
r["free"] = [hip.hipFree(P(p)), hip.hipMemAddressFree(P(p), S(4 * G))]; hip.hipGetLastError()
r["release"] = [hip.hipMemRelease(a), hip.hipMemRelease(b), hip.hipMemRelease(b)]; hip.hipGetLastError()
r["kept"] = get(p + G, 4) # mapped memory stays
r["unmap"] = [unmap(p + G, G), unmap(p + G, 2 * G), put(p + G, [1]), get(p, 2)]; hip.hipGetLastError()
launch(f, (17, 1, 1), (64, 1, 1), P(p), out, C.c_int32(5)); r["past"] = hip.hipDeviceSynchronize()
ok(hip.hipDeviceReset())
r["end"] = [unmap(p, G), hip.hipMemAddressFree(P(p), S(2 * G)), hip.hipMemAddressFree(P(p), S(4 * G))]
print(json.dumps(r))
"""
    out, err = run(PRELUDE + body, add, TILELANG_SIM_CHECK="all", TILELANG_SIM_DEVICES="gfx942")
    assert out["before"] == [1, 0, 1] and out["map"] == [0, 1, 1000, 0, 1003]
    assert out["sum"] == [1006 + 5, 1007 + 5, *[i + 5 for i in range(500, 532)], 5, 5]  # nobody wrote what follows: 0
    assert out["range"] == [True, 3 * 4096] and out["free"] == [1, 1] and out["release"] == [0, 0, 1]
    assert out["kept"] == list(range(516, 520)) and out["unmap"] == [1, 0, 1, [0, 1]]
    assert out["past"] == 700 and "0 bytes after the end of hipMalloc" in err and err.count("bounds: ") == 1
    assert out["end"] == [0, 1, 0]


def test_access_by_device(add):
    """Each device may do what it was told, wherever the memory is."""
    body = """
r = {}; fs = []
for d in (0, 1):
    ok(hip.hipSetDevice(d)); fs.append(load(sys.argv[1])[1])
p = reserve(2 * G); a = create(2 * G, device=1); ok(map_(p, 2 * G, a))
ok(access(p, 2 * G, 1)); ok(put(p, range(2048)))
r["device"] = [device_of(p), may(p, 0), may(p, 1)]
def try_(d, src, dst):
    ok(hip.hipSetDevice(d)); e = launch(fs[d], (1, 1, 1), (64, 1, 1), P(src), P(dst), C.c_int32(1))
    e = e or hip.hipDeviceSynchronize(); hip.hipDeviceReset(); hip.hipGetLastError(); return e
r["other"] = [try_(1, p, p + G), try_(0, p, p + G), get(p + G, 2)]
ok(access(p, 2 * G, 0, flags=1)); ok(hip.hipSetDevice(0)); mine = malloc(256).value
r["read"] = [try_(0, p, mine), try_(0, mine, p), get(mine, 2), may(p, 0)]
ok(access(p, 2 * G, 0, 1)); r["both"] = [try_(0, p + G, p), get(p, 2)]
ok(access(p, 2 * G, 1, flags=0)); r["none"] = [try_(1, p, p), try_(0, p, p + G), may(p, 1)]
print(json.dumps(r))
"""
    out, err = run(PRELUDE + body, add, TILELANG_SIM_DEVICES="gfx942,gfx942")
    assert out["device"] == [[2, 1], 1000, 1003] and out["other"] == [0, 700, [1, 2]]
    assert out["read"] == [0, 700, [1, 2], 1001] and out["both"] == [0, [2, 3]] and out["none"] == [700, 0, 1000]
    assert "read-only" in err


def test_sharing():
    """One memory at two places, handed on as a file descriptor, also to another process."""
    body = """
import subprocess, threading
r = {}
a = create(2 * G, handle=1); p, q = reserve(2 * G), reserve(4 * G, 1 << 21)
ok(map_(p, 2 * G, a)); ok(access(p, 2 * G, 0)); ok(map_(q + G, G, a, G)); ok(access(q + G, G, 0))
ok(put(p + G, [7, 8, 9])); r["alias"] = [get(q + G, 3), q % (1 << 21)]
fd = C.c_int(); ok(hip.hipMemExportToShareableHandle(C.byref(fd), a, 1, U64(0)))
b = P(); ok(hip.hipMemImportFromShareableHandle(C.byref(b), P(fd.value), 1))
ok(map_(q + 2 * G, G, b, G)); ok(access(q + 2 * G, G, 0)); r["imported"] = get(q + 2 * G, 3)
if len(sys.argv) > 1: print(json.dumps(r)); sys.exit()
code = open("/proc/self/cmdline").read().split("\\0")[2].split("r = {}\\na =")[0] + '''
b = P(); ok(hip.hipMemImportFromShareableHandle(C.byref(b), P(int(sys.argv[1])), 1)); q = reserve(2 * G)
ok(map_(q, 2 * G, b)); ok(access(q, 2 * G, 0)); seen = get(q + G, 3); ok(put(q, [seen[0] + 1])); print(json.dumps(seen))
'''
os.set_inheritable(fd.value, True)
said = subprocess.run([sys.executable, "-c", code, str(fd.value)], capture_output=True, text=True, close_fds=False)
r["process"] = [json.loads(said.stdout or '"' + said.stderr[-300:] + '"'), get(p, 1)]
other = P(); ok(hip.hipMemRetainAllocationHandle(C.byref(other), P(p + 5000))); r["same"] = other.value == a.value
back = Prop(); ok(hip.hipMemGetAllocationPropertiesFromHandle(C.byref(back), other))
r["properties"] = [back.type, back.handle, back.location.type, back.location.id]
r["bad"] = [hip.hipMemExportToShareableHandle(C.byref(fd), create(G), 1, U64(0)),
            hip.hipMemImportFromShareableHandle(C.byref(b), P(0), 1),
            hip.hipMemImportFromShareableHandle(C.byref(b), P(999), 1),
            hip.hipMemImportFromShareableHandle(C.byref(b), P(fd.value), 2)]
print(json.dumps(r))
"""
    out, _ = run(PRELUDE + body)
    assert out["alias"] == [[7, 8, 9], 0] and out["imported"] == [7, 8, 9] and out["process"] == [[7, 8, 9], [8]]
    assert out["same"] and out["properties"] == [1, 1, 1, 0] and out["bad"] == [1, 1, 1, 1]


def test_what_is_refused():
    body = """
r = {}; g = S()
def granularity(which, **kw):
    e = hip.hipMemGetAllocationGranularity(C.byref(g), C.byref(prop(**kw)), which); return e or g.value
r["granularity"] = [granularity(0), granularity(1), granularity(2), granularity(0, device=9), granularity(0, where=2)]
r["reserve"] = [reserve(n, al, fl) for n, al, fl in ((0, 0, 0), (5, 0, 0), (G, 3, 0), (G, 0, 1), (1 << 50, 0, 0))]
r["create"] = [create(0), create(5), create(G, type=2), create(G, device=5), create(G, handle=2), create(1 << 45)]
p, a = reserve(4 * G), create(2 * G)
r["map"] = [map_(p + 1, G, a), map_(p, 5, a), map_(p, 3 * G, a), map_(p, 2 * G, a, G), map_(p, G, P(4096)),
            map_(p + 3 * G, 2 * G, a), map_(1 << 30, G, a), map_(p, 2 * G, a), map_(p + G, G, a)]
r["access"] = [access(p, G, 0), access(p, 3 * G, 0), access(p, 2 * G, 4), access(p, 2 * G, 0, flags=2),
               access(p, 2 * G, 0, where=2), access(p, 2 * G)]
x = C.c_int(); ok(hip.hipDeviceGetAttribute(C.byref(x), 89, 0)); r["attribute"] = x.value
r["unmap"] = [unmap(p, G), unmap(p, 3 * G), unmap(p + 2 * G, G), unmap(p, 2 * G), unmap(p, 2 * G)]
r["free"] = [hip.hipMemAddressFree(P(p + G), S(3 * G)), hip.hipMemAddressFree(P(p), S(4 * G)),
             hip.hipMemAddressFree(P(p), S(4 * G))]
print(json.dumps(r))
"""
    out, _ = run(PRELUDE + body)
    assert out == {
        "granularity": [4096, 2 << 20, 1, 101, 1],
        "reserve": [1] * 5,
        "create": [1, 1, 1, 101, 801, 2],
        "map": [1, 1, 1, 1, 1, 1, 1, 0, 1],
        "access": [1, 1, 101, 1, 1, 1],
        "attribute": 1,
        "unmap": [1, 1, 1, 0, 1],
        "free": [1, 0, 1],
    }
