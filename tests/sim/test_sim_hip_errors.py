"""The HIP API called wrongly: null and stale pointers, sizes that overflow, values that are no enumerators."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from simlib import ADD, BUF, Arg, code_object
from simlib import hip_client as run

sim = pytest.importorskip("tilelang.sim")

DEF = Path(__file__).resolve().parents[2] / "csrc/sim/hip_sim.def"

OTHER = ("hipCreateChannelDesc", "hipDrvPointerGetAttributes")
"""Gives a structure; reads as many attributes as it is told."""

SWEEP = """
import os, re, signal
def value(t, mode, keep):
    if "*" in t:
        if mode < 2: return P(0)
        keep.append(C.create_string_buffer(16384)); return C.cast(keep[-1], P)
    v = {0: 0, 1: -1, 2: 1, 3: -1, 4: 0x7fffffffffffffff}[mode]
    return C.c_uint64(v & 2**64 - 1) if re.search("size_t|64|long", t) else C.c_uint32(v & 0xffffffff)
bad, calls = [], 0
hip.hipGetDeviceCount(C.byref(C.c_int()))
for name, types in ROWS:
    many = [[m] * len(types) for m in range(5)] + [[2 * (i != k) for i in range(len(types))] for k in range(len(types))]
    for modes in many:
        calls += 1
        pid = os.fork()
        if pid == 0:
            signal.alarm(60); os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
            keep = []
            getattr(hip, name)(*[value(t, m, keep) for t, m in zip(types, modes)])
            os._exit(0)
        if os.waitpid(pid, 0)[1]: bad.append([name, modes])
print(json.dumps({"bad": bad, "calls": calls}))
"""


def prototypes(part: int, of: int) -> list[tuple[str, list[str]]]:
    """(function, types of its arguments); without those that take a structure by value or call what they are given."""
    text = re.sub(r"/\*.*?\*/", "", DEF.read_text(), flags=re.S)
    out = []
    for name, params in re.findall(r"^SIM_HIP(?:_AS)?\((?:[^,()]*, )??(hip\w+),\s*\((.*?)\)\)$", text, re.M | re.S):
        types = [" ".join(p.split()) for p in params.split(",") if p.strip() != "void"]
        if not any(re.match(r"Sim(?!Stream)\w+ \w", t) or "(*" in t for t in types) and name not in OTHER:
            out.append((name, types))
    assert len(out) >= 289
    return out[part::of]


@pytest.mark.parametrize("part", range(4))
def test_no_call_crashes(part):
    """Every function: all arguments 0, all ones, small and huge numbers, pointers to zeroes, each pointer null."""
    rows = prototypes(part, 4)
    out, _ = run(f"ROWS = {rows!r}\n" + SWEEP)
    print(out)
    assert out["bad"] == [] and out["calls"] > 400


CASES = """
b = C.create_string_buffer(1 << 16); H = C.cast(b, P); S = C.c_size_t
def mal(n=100, f=hip.hipMalloc, *more):
    p = P(); ok(f(C.byref(p), S(n), *more)); return p
def freed():
    p = mal(); ok(hip.hipFree(p)); return p
def destroyed(create, destroy):
    x = P(); ok(create(C.byref(x))); ok(destroy(x)); return x
r = {}
"""


def test_memory_that_is_not_there():
    """Copies and fills of freed memory, beyond its end, with pitches that overflow, of nothing: errors."""
    body = """
z = S(100)
r["freed"] = [
    hip.hipMemset(freed(), 0, z), hip.hipMemcpy(freed(), H, z, 1), hip.hipMemcpy(H, freed(), z, 2),
    hip.hipMemcpy(mal(), freed(), z, 3), hip.hipMemcpy(mal(), freed(), z, 4), hip.hipMemcpyHtoD(freed(), H, z),
    hip.hipMemcpy2D(freed(), S(16), H, S(16), S(4), S(4), 1), hip.hipFree(freed()),
    hip.hipMemsetD32(freed(), 0, S(4))]
r["past"] = [
    hip.hipMemset(mal(), 0, S(101)), hip.hipMemcpy(mal(), H, S(101), 1), hip.hipMemcpy(H, mal(), S(5000), 2),
    hip.hipMemcpy2D(mal(), S(1 << 63), H, S(1 << 63), S(4), S(4), 1), hip.hipMemset2D(mal(), S(64), 0, S(64), S(2)),
    hip.hipMemset(H, 0, S((1 << 64) - 1)), hip.hipMemset(mal(), 0, S(1 << 63))]
for n in (1 << 63, (1 << 64) - 1):
    r.setdefault("large", []).append(hip.hipMalloc(C.byref(P()), S(n)))
r["nothing"] = [
    hip.hipMemcpy(None, None, S(0), 1), hip.hipMemcpy2D(mal(), S(16), H, S(16), S(0), S((1 << 64) - 1), 1),
    hip.hipMemset2D(mal(), S(16), 0, S(0), S((1 << 64) - 1))]
class Pitched(C.Structure): _fields_ = [("p", P), ("pitch", S), ("x", S), ("y", S)]
class Extent(C.Structure): _fields_ = [("w", S), ("h", S), ("d", S)]
r["nothing"].append(hip.hipMemset3D(Pitched(mal(), 16, 16, 1), 0, Extent(0, 1, (1 << 64) - 1)))
r["deep"] = hip.hipMemset3D(Pitched(mal(), 16, 16, 1), 0, Extent(16, 1, (1 << 64) - 1))
r["kind"] = [hip.hipMemcpy(mal(), H, S(4), k) for k in (-1, 5, 1023)]
print(json.dumps(r))
"""
    out, _ = run(CASES + body)
    assert set(out["freed"]) == {1} and set(out["past"]) == {1} and set(out["large"]) == {2}
    assert set(out["nothing"]) == {0} and out["deep"] == 1 and set(out["kind"]) == {21}


def test_handles_that_are_gone(tmp_path):
    body = """
stream = lambda: destroyed(hip.hipStreamCreate, hip.hipStreamDestroy)
event = lambda: destroyed(hip.hipEventCreate, hip.hipEventDestroy)
r["stream"] = [hip.hipStreamDestroy(stream()), hip.hipStreamSynchronize(stream()), hip.hipStreamQuery(stream()),
               hip.hipMemcpyAsync(mal(), H, S(4), 1, stream()), hip.hipStreamSynchronize(P(3))]
r["event"] = [hip.hipEventDestroy(event()), hip.hipEventRecord(event(), None), hip.hipEventSynchronize(event()),
              hip.hipStreamWaitEvent(None, event(), 0)]
s, e = P(), P(); ok(hip.hipStreamCreate(C.byref(s))); ok(hip.hipEventCreate(C.byref(e)))
r["mixed"] = [hip.hipStreamSynchronize(e), hip.hipEventRecord(s, None)]
r["builtin"] = [hip.hipStreamDestroy(P(n)) for n in (0, 1, 2)]
m, f = P(), P()
code = open(sys.argv[1], "rb").read()
ok(hip.hipModuleLoadData(C.byref(m), code)); ok(hip.hipModuleGetFunction(C.byref(f), m, b"k"))
ok(hip.hipModuleUnload(m))
r["module"] = [hip.hipModuleUnload(m), hip.hipModuleGetFunction(C.byref(f), m, b"k")]
r["function"] = [hip.hipModuleLaunchKernel(x, 1, 1, 1, 64, 1, 1, 0, None, None, None) for x in (f, None, P(0xdead0))]
ok(hip.hipSetDevice(1))
r["other device"] = [hip.hipEventRecord(e, None), hip.hipEventRecord(e, s)]
print(json.dumps(r))
"""
    path = tmp_path / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    out, _ = run(CASES + body, path, TILELANG_SIM_DEVICES="gfx942,gfx942")
    assert set(out["stream"]) == {709} and set(out["event"]) == {400} and out["mixed"] == [709, 400]
    assert out["builtin"] == [400] * 3 and out["module"] == [400, 400] and out["function"] == [98] * 3
    assert out["other device"] == [400, 0]


def test_files_that_are_no_modules(tmp_path):
    """A folder is not found, text is no image, code for a chip that is not there (simulated or not) has no binary."""
    other = bytearray(code_object("s_nop 0"))
    other[48] = 0x36  # gfx1030
    (tmp_path / "other").write_bytes(other)
    (tmp_path / "gfx90a").write_bytes(code_object("s_nop 0", arch="gfx90a"))
    (tmp_path / "text").write_bytes(b"no code object " * 20)
    (tmp_path / "empty").write_bytes(b"")
    names = ["", "nothing", "text", "empty", "other", "gfx90a"]
    body = f"print(json.dumps([hip.hipModuleLoad(C.byref(P()), (sys.argv[1] + '/' + n).encode()) for n in {names!r}]))"
    assert run(body, tmp_path)[0] == [301, 301, 200, 200, 209, 209]


def test_modules_unloaded_in_use(tmp_path):
    """Threads launch while another unloads the module: a launch either runs or finds no function."""
    path = tmp_path / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    body = """
import threading, time
code, end = open(sys.argv[1], "rb").read(), time.monotonic() + 4
now, seen, bad = [None], set(), []
def swap():
    while time.monotonic() < end:
        m, fs = P(), []
        ok(hip.hipModuleLoadData(C.byref(m), code))
        def get():
            f = P(); ok(hip.hipModuleGetFunction(C.byref(f), m, b"k")); fs.append(f)
        ts = [threading.Thread(target=get) for _ in range(2)]
        for t in ts: t.start()
        for t in ts: t.join()
        now[0] = fs[0]; time.sleep(0.001); ok(hip.hipModuleUnload(m))
        for f in fs:
            if hip.hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, None, None, None) != 98: bad.append(f)
def launch():
    a, b, c = mal(1024), mal(1024), C.c_int(1)
    args = (P * 3)(*[C.cast(C.pointer(x), P) for x in (a, b, c)])
    while time.monotonic() < end:
        if now[0]: seen.add(hip.hipModuleLaunchKernel(now[0], 4, 1, 1, 64, 1, 1, 0, None, args, None))
ts = [threading.Thread(target=f) for f in (swap, launch, launch)]
for t in ts: t.start()
for t in ts: t.join()
print(json.dumps([sorted(seen), len(bad)]))
"""
    out, _ = run(CASES + body, path)
    assert set(out[0]) <= {0, 98} and 0 in out[0] and out[1] == 0


STICKY = """
m, f = P(), P()
code = open(sys.argv[1], "rb").read()
def fault(launch=None):
    keep = [C.create_string_buffer(struct.pack("<QQI4x", 8, 16, 1)), C.c_size_t(24)]
    extra = (P * 5)(P(1), C.cast(keep[0], P), P(2), C.cast(C.byref(keep[1]), P), P(3))
    return (launch or (lambda x: hip.hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, None, None, x)))(extra)
def made(create, *more):
    x = P(); ok(create(C.byref(x), *more)); return x
S = C.c_size_t
ok(hip.hipModuleLoadData(C.byref(m), code)); ok(hip.hipModuleGetFunction(C.byref(f), m, b"k"))
"""

TELL = set(
    """hipInit hipDriverGetVersion hipRuntimeGetVersion hipDrvGetErrorName hipDrvGetErrorString hipGetDeviceCount
    hipGetDevice hipSetDevice hipSetDeviceFlags hipGetDeviceFlags hipSetValidDevices hipDeviceGet hipDeviceGetUuid
    hipDeviceTotalMem hipDeviceComputeCapability hipDeviceGetAttribute hipGetDevicePropertiesR0600
    hipGetDevicePropertiesR0000 hipGetDeviceProperties hipDeviceGetStreamPriorityRange hipDeviceCanAccessPeer
    hipDevicePrimaryCtxGetState hipCtxGetCurrent hipCtxSetCurrent hipCtxGetDevice hipCtxGetFlags hipChooseDeviceR0600
    hipChooseDeviceR0000 hipChooseDevice hipDeviceReset hipDevicePrimaryCtxReset hipKernelNameRef
    hipKernelNameRefByPtr""".split()
)
"""Functions that answer success after a fault when their arguments are right: they do no work on the device."""


@pytest.fixture(scope="module")
def add(tmp_path_factory):
    path = tmp_path_factory.mktemp("sticky") / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    return path


def test_every_function_after_a_fault(add):
    """No function but those of TELL answers success, whatever it is called with; those do."""
    rows = [row for part in range(4) for row in prototypes(part, 4)]
    body = """
import re
buf = made(hip.hipMalloc, S(256))
ok(fault()); r = {}
for name, types in ROWS:
    for mode in range(3):
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open("/dev/null", os.O_WRONLY), 2); keep = []
            def value(t):
                if "*" not in t: return C.c_uint64(0) if re.search("size_t|64|long", t) else C.c_uint32(0)
                if mode == 0: return P(0)
                if mode == 2 and t.startswith("void *") and "**" not in t: return buf
                keep.append(C.create_string_buffer(16384)); return C.cast(keep[-1], P)
            e = getattr(hip, name)(*[value(t) for t in types])
            os.write(there, b"%d" % e if isinstance(e, int) else b"-1"); os._exit(0)
        os.close(there); r.setdefault(name, []).append(int(os.read(here, 99) or b"-2")); os.close(here)
        os.waitpid(pid, 0)
print(json.dumps(r))
"""
    out, _ = run(STICKY + f"import os\nROWS = {rows!r}\n" + body, add)
    assert {name for name, e in out.items() if 0 in e} == TELL and not any(-2 in e for e in out.values())
    assert sum(e == [700] * 3 for e in out.values()) >= 25


def test_what_frees_after_a_fault(add):
    """Memory, streams, events, graphs and modules are given back, and the error is told each time."""
    body = """
dev, host, pool = made(hip.hipMalloc, S(64)), made(hip.hipHostMalloc, S(64), 0), made(hip.hipMallocAsync, S(64), None)
reg = C.create_string_buffer(64); ok(hip.hipHostRegister(reg, S(64), 0))
stream, event, graph = made(hip.hipStreamCreate), made(hip.hipEventCreate), made(hip.hipGraphCreate, 0)
exe = made(hip.hipGraphInstantiate, graph, None, None, S(0))
calls = lambda: [hip.hipFree(dev), hip.hipHostFree(host), hip.hipFreeAsync(pool, None), hip.hipHostUnregister(reg),
                 hip.hipStreamDestroy(stream), hip.hipEventDestroy(event), hip.hipGraphExecDestroy(exe),
                 hip.hipGraphDestroy(graph), hip.hipModuleUnload(m)]
r = {"launch": fault(), "first": calls()}
r["last"] = [hip.hipGetLastError(), hip.hipGetLastError(), hip.hipPeekAtLastError()]
r["reset"] = [hip.hipDeviceReset(), hip.hipGetLastError(), hip.hipGetLastError(), hip.hipDeviceSynchronize()]
r["again"] = calls()
print(json.dumps(r))
"""
    out, _ = run(STICKY + body, add)
    assert out["launch"] == 0 and out["first"] == [700] * 9 and out["last"] == [700] * 3
    assert out["reset"][0] == 0 and out["reset"][2:] == [0, 0]
    assert 0 not in out["again"] and 700 not in out["again"]


def test_launches_that_fault_do_not_wait(add):
    """A launch with events around it and one of a graph succeed, too; what comes after tells."""
    body = """
a, b = made(hip.hipEventCreate), made(hip.hipEventCreate)
ext = lambda x: hip.hipExtModuleLaunchKernel(f, 64, 1, 1, 64, 1, 1, S(0), None, None, x, a, b, 0)
r = {"ext": [fault(ext), hip.hipEventSynchronize(b), fault(ext), hip.hipDevicePrimaryCtxReset(0), fault(ext)]}
ok(hip.hipDeviceReset())
s, g, x = made(hip.hipStreamCreate), P(), P()
ok(hip.hipStreamBeginCapture(s, 0))
for _ in range(2): ok(fault(lambda x: hip.hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, s, None, x)))
ok(hip.hipStreamEndCapture(s, C.byref(g))); ok(hip.hipGraphInstantiate(C.byref(x), g, None, None, S(0)))
r["graph"] = [hip.hipGraphLaunch(x, s), hip.hipStreamSynchronize(s), hip.hipGraphLaunch(x, s)]
r["other device"] = [hip.hipSetDevice(1), hip.hipDeviceSynchronize(), hip.hipFree(made(hip.hipMalloc, S(4))),
                     hip.hipSetDevice(0), hip.hipDeviceSynchronize()]
print(json.dumps(r))
"""
    out, _ = run(STICKY + body, add, TILELANG_SIM_DEVICES="gfx942,gfx942")
    assert out["ext"] == [0, 700, 700, 0, 0] and out["graph"] == [0, 700, 700]
    assert out["other device"] == [0, 0, 0, 0, 700]
