"""The HIP API as a C client sees it (ctypes on libamdhip64.so), each scenario in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from simlib import ADD, BUF, Arg, client_env, code_object, missing
from simlib import hip_client as run

sim = pytest.importorskip("tilelang.sim")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def add(tmp_path_factory):
    path = tmp_path_factory.mktemp("hip") / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    return path


@pytest.mark.parametrize("lib", ["libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"])
def test_module_launch_and_copies(add, lib):
    body = """
m, f = load(sys.argv[1])
n = 256
src = (C.c_int32 * n)(*range(n)); dst = (C.c_int32 * n)()
a, b = malloc(4 * n), malloc(4 * n)
ok(hip.hipMemcpy(a, src, 4 * n, 1))
ok(launch(f, (4, 1, 1), (64, 1, 1), a, b, C.c_int32(5)))
ok(hip.hipMemcpy(dst, b, 4 * n, 2))
first = list(dst)
# the same through the packed buffer
buf = C.create_string_buffer(struct.pack("<QQi", a.value, b.value, 9))
size = C.c_size_t(20)
extra = (P * 5)(1, C.cast(buf, P), 2, C.cast(C.byref(size), P), 3)
ok(launch(f, (4, 1, 1), (64, 1, 1), extra=extra))
ok(hip.hipMemcpyDtoH(dst, b, 4 * n))
ok(hip.hipMemset(b, 0x11, 4 * n)); one = (C.c_uint32 * 1)()
ok(hip.hipMemcpy(one, b, 4, 2))
ok(hip.hipFree(a)); ok(hip.hipFree(b)); ok(hip.hipModuleUnload(m))
print(json.dumps({"first": first, "second": list(dst), "one": one[0]}))
"""
    out, err = run(body, add, lib=lib)
    assert out["first"] == [i + 5 for i in range(256)]
    assert out["second"] == [i + 9 for i in range(256)]
    assert out["one"] == 0x11111111 and err == ""


def test_one_simulator_under_all_names(add):
    body = """
other = C.CDLL(os.path.join(os.path.dirname(hip._name), "libamdhip64.so.7"))
p = malloc(100)
n = C.c_size_t(); base = P()
print(json.dumps({"e": other.hipMemGetAddressRange(C.byref(base), C.byref(n), p), "n": n.value}))
"""
    assert run(body)[0] == {"e": 0, "n": 100}


def test_versions_and_properties(shared):
    body = """
v = C.c_int(); ok(hip.hipRuntimeGetVersion(C.byref(v)))
new, old = C.create_string_buffer(1472), C.create_string_buffer(792)
ok(hip.hipGetDevicePropertiesR0600(new, 0)); ok(hip.hipGetDeviceProperties(old, 0))
attr = {}
for a in range(95):
    x = C.c_int(); ok(hip.hipDeviceGetAttribute(C.byref(x), a, 0)); attr[a] = x.value
bad = C.c_int()
print(json.dumps({"version": v.value, "new": new.raw.hex(), "old": old.raw.hex(), "attr": attr,
                  "bad": hip.hipDeviceGetAttribute(C.byref(bad), 12345, 0), "dev": hip.hipSetDevice(7)}))
"""
    out, _ = run(body)
    assert out["version"] // 10_000_000 >= 6
    new, old = bytes.fromhex(out["new"]), bytes.fromhex(out["old"])
    where = {}
    for row in (shared / "facts/hip-device-prop-r0600.tsv").read_text().splitlines()[1:]:
        field, off, size = row.split("\t")
        where[field.split()[-1].split("[")[0]] = (int(off), int(size or 0))

    def get(name):
        off, size = where[name]
        return int.from_bytes(new[off : off + size], "little")

    def text(b, off):
        return b[off : b.index(b"\0", off)].decode()

    assert text(new, where["gcnArchName"][0]) == "gfx942:sramecc+:xnack-" == text(old, 396)
    assert (get("warpSize"), get("multiProcessorCount"), get("maxThreadsPerBlock")) == (64, 304, 1024)
    assert (get("major"), get("minor"), get("sharedMemPerBlock")) == (9, 4, 65536)
    assert get("maxThreadsPerMultiProcessor") == 2048 and get("totalGlobalMem") == 192 << 30
    assert out["attr"]["87"] == 64 and out["attr"]["63"] == 304 and out["attr"]["56"] == 1024
    assert out["bad"] == 1 and out["dev"] == 101


def test_error_table(shared):
    rows = [r.split("\t") for r in (shared / "facts/hip-errors.tsv").read_text().splitlines()[1:]]
    body = """
codes = json.loads(sys.argv[1])
print(json.dumps([[hip.hipGetErrorName(c).decode(), hip.hipGetErrorString(c).decode()] for c in codes]))
"""
    got, _ = run(body, json.dumps([int(r[0]) for r in rows]))
    assert [tuple(g) for g in got] == [(r[1], r[2]) for r in rows]


def test_last_error_and_handles(add):
    body = """
r = {}
r["free"] = hip.hipFree(P(4096)); r["peek"] = hip.hipPeekAtLastError(); r["last"] = hip.hipGetLastError()
r["again"] = hip.hipGetLastError()
m = P(); r["nofile"] = hip.hipModuleLoad(C.byref(m), b"/nonexistent"); r["nofile_last"] = hip.hipGetLastError()
r["image"] = hip.hipModuleLoadData(C.byref(m), C.create_string_buffer(b"garbage" * 20))
m, f = load(sys.argv[1])
g = P(); r["nofn"] = hip.hipModuleGetFunction(C.byref(g), m, b"nope")
r["stream"] = hip.hipStreamSynchronize(P(0x1234560)); r["event"] = hip.hipEventDestroy(P(0x1234560))
ok(hip.hipModuleUnload(m)); r["unloaded"] = hip.hipModuleUnload(m)
r["dead"] = launch(f, (1, 1, 1), (64, 1, 1))
a = malloc(100); src = C.create_string_buffer(200)
r["long"] = hip.hipMemcpy(a, src, 101, 1)
r["kind"] = hip.hipMemcpy(a, src, 10, 77)
x = P(); r["huge"] = hip.hipMalloc(C.byref(x), C.c_size_t(1 << 45))
print(json.dumps(r))
"""
    out, _ = run(body, add)
    assert out == {
        "free": 1, "peek": 1, "last": 1, "again": 0, "nofile": 301, "nofile_last": 301, "image": 200, "nofn": 500,
        "stream": 709, "event": 400, "unloaded": 400, "dead": 98, "long": 1, "kind": 21, "huge": 2,
    }  # fmt: skip


def test_images_in_memory(add):
    """Images have no length: bundles, headers that point out of memory, and an image that ends with its mapping."""
    body = """
import mmap
elf = open(sys.argv[1], "rb").read()
m, f = P(), P()
def at_end(data):
    n = (len(data) + 4095) // 4096 * 4096
    area = mmap.mmap(-1, n + 4096); base = C.addressof(C.c_char.from_buffer(area))
    libc = C.CDLL(None); libc.mprotect.argtypes = [P, C.c_size_t, C.c_int]
    assert libc.mprotect(base + n, 4096, 0) == 0
    C.memmove(base + n - len(data), data, len(data)); keep.append(area)
    return hip.hipModuleLoadData(C.byref(m), P(base + n - len(data)))
keep = []
r = {"whole": at_end(elf), "cut": at_end(elf[:-40]), "tiny": at_end(elf[:20]), "one": at_end(b"x")}
for off in (32, 40):  # program and section headers far away
    bad = bytearray(elf); bad[off:off + 8] = struct.pack("<Q", 1 << 30)
    r[f"far{off}"] = at_end(bytes(bad))
def bundle(*entries):
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)); at = 4096; body = b""
    for name, data in entries:
        head += struct.pack("<QQQ", at + len(body), len(data), len(name)) + name; body += data
    return head.ljust(at, b"\\0") + body
host = (b"host-x86_64-unknown-linux--", b"")
t = b"hipv4-amdgcn-amd-amdhsa--"
r["bundle"] = at_end(bundle(host, (t + b"gfx90a", elf), (t + b"gfx942:sramecc+:xnack-", elf)))
r["fn"] = hip.hipModuleGetFunction(C.byref(f), m, b"k")
r["other"] = at_end(bundle(host, (t + b"gfx90a", elf)))
r["xnack"] = at_end(bundle(host, (t + b"gfx942:xnack+", elf)))
r["unreadable"] = hip.hipModuleLoadData(C.byref(m), P(16))
print(json.dumps(r))
"""
    out, _ = run(body, add)
    assert out == {
        "whole": 0, "cut": 200, "tiny": 200, "one": 200, "far32": 200, "far40": 200, "bundle": 0, "fn": 0,
        "other": 209, "xnack": 209, "unreadable": 200,
    }  # fmt: skip


def test_streams_and_events(add):
    body = """
s, e0, e1 = P(), P(), P()
ok(hip.hipStreamCreateWithFlags(C.byref(s), 1))
ok(hip.hipEventCreate(C.byref(e0))); ok(hip.hipEventCreate(C.byref(e1)))
fl = C.c_uint(); ok(hip.hipStreamGetFlags(s, C.byref(fl)))
ms = C.c_float(); early = hip.hipEventElapsedTime(C.byref(ms), e0, e1)
ok(hip.hipEventRecord(e0, s)); ok(hip.hipStreamWaitEvent(s, e0, 0)); ok(hip.hipEventRecord(e1, s))
ok(hip.hipEventSynchronize(e1)); ok(hip.hipEventQuery(e1)); ok(hip.hipStreamQuery(s)); ok(hip.hipStreamSynchronize(s))
ok(hip.hipEventElapsedTime(C.byref(ms), e0, e1))
called = []
CB = C.CFUNCTYPE(None, P); cb = CB(lambda u: called.append(u)); ok(hip.hipLaunchHostFunc(s, cb, P(7)))
ok(hip.hipStreamDestroy(s)); dead = hip.hipStreamQuery(s)
print(json.dumps({"flags": fl.value, "early": early, "ms": ms.value, "called": called, "dead": dead}))
"""
    out, _ = run(body)
    assert out["flags"] == 1 and out["early"] == 400 and 0 <= out["ms"] < 1000 and out["called"] == [7]
    assert out["dead"] == 709


FAULT = """
m, f = load(sys.argv[1])
r = {}
a, b = malloc(256), malloc(128)
r["launch"] = launch(f, (1, 1, 1), (64, 1, 1), a, b, C.c_int32(5))
r["sync"] = [hip.hipDeviceSynchronize() for _ in range(2)]
r["memcpy"] = hip.hipMemcpy(a, b, 4, 3)
r["next"] = launch(f, (1, 1, 1), (32, 1, 1), a, b, C.c_int32(5))
r["last"] = [hip.hipGetLastError() for _ in range(2)]
ok(hip.hipDeviceReset())
r["after"] = launch(f, (1, 1, 1), (32, 1, 1), a, b, C.c_int32(5)); r["clean"] = hip.hipDeviceSynchronize()
print(json.dumps(r))
"""


def test_asynchronous_fault_is_sticky(add, tmp_path):
    report = tmp_path / "report.json"
    out, err = run(FAULT, add, TILELANG_SIM_REPORT=str(report))
    assert out == {
        "launch": 0, "sync": [700, 700], "memcpy": 700, "next": 700, "last": [700, 700], "after": 0, "clean": 0,
    }  # fmt: skip
    assert "bounds" in err and "global_store_dword" in err and "128 bytes" in err
    (r,) = [json.loads(line) for line in report.read_text().splitlines()]
    assert r["check"] == "bounds" and r["kernel"] == "k" and r["lanes"] == list(range(32, 64))
    assert r["chip"] == "gfx942" and r["launch"] == 1 and r["workgroup"] == [0, 0, 0] and r["line"] is None


def test_registered_arrays_are_synchronous(add):
    body = """
import numpy as np
m, f = load(sys.argv[1])
hip.tlsim_register.restype = C.c_uint64; hip.tlsim_last_report.restype = C.c_size_t
hip.tlsim_last_stats.restype = C.c_size_t
def reg(a):
    sh = (C.c_int64 * 1)(a.size); st = (C.c_int64 * 1)(a.strides[0])
    return C.c_uint64(hip.tlsim_register(P(a.ctypes.data), 1, sh, st, a.itemsize, b"array"))
def tell(fn):
    n = fn(None, C.c_size_t(0)); buf = C.create_string_buffer(n + 1); fn(buf, C.c_size_t(n + 1))
    return json.loads(buf.value)
a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
ids = [reg(a), reg(b[:40])]
r = {"launch": launch(f, (1, 1, 1), (64, 1, 1), P(a.ctypes.data), P(b.ctypes.data), C.c_int32(5))}
r["report"] = tell(hip.tlsim_last_report); r["sync"] = hip.hipDeviceSynchronize()
ids.append(reg(b)); hip.tlsim_unregister(ids[1])
hip.tlsim_stats_enable(1)
r["second"] = launch(f, (1, 1, 1), (64, 1, 1), P(a.ctypes.data), P(b.ctypes.data), C.c_int32(6))
r["clean"] = tell(hip.tlsim_last_report); r["b"] = b.tolist(); r["stats"] = tell(hip.tlsim_last_stats)
print(json.dumps(r))
"""
    out, err = run(body, add)
    assert out["launch"] == 700 and out["sync"] == 0 and out["second"] == 0 and err == ""
    assert out["report"][0]["check"] == "bounds" and out["report"][0]["lanes"] == list(range(40, 64))
    assert "array" in out["report"][0]["message"]
    assert out["clean"] == [] and out["b"] == [i + 6 for i in range(64)]
    s = out["stats"]
    assert s["instructions"] == 11 and s["global_bytes"]["4"] == 512 and s["by_mnemonic"]["s_waitcnt"] == 2


def test_unregistered_host_memory_works(add):
    """A foreign program hands over malloc'ed memory: its limits are those of the mapping."""
    body = """
m, f = load(sys.argv[1])
a, b = (C.c_int32 * 64)(*range(64)), (C.c_int32 * 64)()
p = P(); ok(hip.hipPointerGetAttribute(C.byref(p), 3, a))
e = launch(f, (1, 1, 1), (64, 1, 1), p, C.cast(b, P), C.c_int32(1))
got = list(b)
wild = launch(f, (1, 1, 1), (64, 1, 1), P(0x10), C.cast(b, P), C.c_int32(1))
print(json.dumps({"e": e, "same": p.value == C.addressof(a), "b": got, "wild": [wild, hip.hipDeviceSynchronize()]}))
"""
    out, _ = run(body, add)
    assert out["e"] == 0 and out["same"] and out["b"] == [i + 1 for i in range(64)] and out["wild"] == [0, 700]


def test_launch_limits(add):
    body = """
m, f = load(sys.argv[1])
a = malloc(4096); r = {}
r["block"] = launch(f, (1, 1, 1), (2048, 1, 1), a, a, C.c_int32(0))
r["zero"] = launch(f, (0, 1, 1), (64, 1, 1), a, a, C.c_int32(0))
r["lds"] = launch(f, (1, 1, 1), (64, 1, 1), a, a, C.c_int32(0), lds=1 << 20)
arr = (P * 3)(*[C.cast(C.byref(x), P) for x in (a, a, C.c_int32(0))])
r["coop"] = hip.hipModuleLaunchCooperativeKernel(f, 100000, 1, 1, 64, 1, 1, 0, None, arr)
n = C.c_int(); occ = hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
ok(occ(C.byref(n), f, 256, C.c_size_t(0))); r["occ"] = n.value
ok(occ(C.byref(n), f, 256, C.c_size_t(32768))); r["occ_lds"] = n.value
ok(hip.hipFuncGetAttribute(C.byref(n), 0, f)); r["threads"] = n.value
r["sync"] = hip.hipDeviceSynchronize()
print(json.dumps(r))
"""
    out, _ = run(body, add)
    assert out == {"block": 9, "zero": 9, "lds": 9, "coop": 720, "occ": 8, "occ_lds": 2, "threads": 1024, "sync": 0}


def test_get_proc_address():
    body = """
p, st = P(), C.c_int()
r = {}
for name in ("hipMalloc", "hipGetDeviceProperties", "hipNoSuchThing"):
    e = hip.hipGetProcAddress(name.encode(), C.byref(p), 702, C.c_uint64(0), C.byref(st))
    r[name] = [e, bool(p.value), st.value]
new = C.cast(hip.hipGetDevicePropertiesR0600, P).value
for key, version in (("new", 702), ("old", 502)):
    hip.hipGetProcAddress(b"hipGetDeviceProperties", C.byref(p), version, C.c_uint64(0), C.byref(st))
    r[key] = p.value == new
print(json.dumps(r))
"""
    out, _ = run(body)
    assert out["hipMalloc"] == [0, True, 0] and out["hipNoSuchThing"] == [1, False, 1] and out["new"] and not out["old"]


def table_names() -> list[str]:
    """Every HIP function of the simulator's tables, second names and refused ones too."""
    import re

    table = (ROOT / "csrc/sim/hip_sim.def").read_text()
    rows = re.findall(r"^SIM_HIP\((\w+),", table, re.M) + re.findall(r"^SIM_HIP_AS\([^,]+,\s*(\w+),", table, re.M)
    return rows + re.findall(r"^SIM_(?:ALIAS|REFUSED)\((\w+)", (ROOT / "csrc/sim/hip_more.def").read_text(), re.M)


def test_every_row_is_exported():
    """Asked in a process of its own: one that has libamdhip64.so mapped takes it for the machine's HIP ever after."""
    rows = table_names()
    assert len(rows) > 500
    body = f"""
both = [hip, C.CDLL({str(sim.library_path())!r})]
print(json.dumps([r for lib in both for r in {rows!r} if not hasattr(lib, r)]))
"""
    lacking, _ = run(body)
    assert lacking == []


def test_programs_link_with_every_row(tmp_path):
    """The forwarding library has every name itself: a linker does not look into what that library needs."""
    if not shutil.which("gcc"):
        missing("gcc")
    names = [n for n in table_names() if n not in ("__gnu_f2h_ieee", "__gnu_h2f_ieee")]
    src = "".join(f"extern void {n}(void);\n" for n in names) + "void *all[] = {" + ", ".join(names) + "};\n"
    (tmp_path / "all.c").write_text(src + "int main(void) { return all[0] == 0; }\n")
    cmd = ["gcc", "-w", str(tmp_path / "all.c"), "-o", str(tmp_path / "all"), f"-L{sim.libdir()}", "-lamdhip64"]
    r = subprocess.run([*cmd, f"-Wl,-rpath,{sim.libdir()}", "-Wl,-z,now"], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr[-2000:]
    assert subprocess.run([tmp_path / "all"], env=client_env()).returncode == 0


def test_no_device():
    body = """
n = C.c_int(5)
r = [hip.hipInit(0), hip.hipGetDeviceCount(C.byref(n)), n.value, hip.hipGetLastError(), hip.hipGetLastError()]
print(json.dumps(r))
"""
    out, err = run(body, TILELANG_SIM_DEVICES="gfx000")
    assert out == [100, 100, 0, 100, 100] and "gfx000" in err


def test_several_devices_and_cus():
    body = """
n = C.c_int(); ok(hip.hipGetDeviceCount(C.byref(n))); cu = C.c_int()
ok(hip.hipDeviceGetAttribute(C.byref(cu), 63, 1)); ok(hip.hipSetDevice(1)); p = malloc(16)
d = C.c_int(); ok(hip.hipPointerGetAttribute(C.byref(d), 9, p))
print(json.dumps([n.value, cu.value, d.value]))
"""
    out, _ = run(body, TILELANG_SIM_DEVICES="gfx942,gfx942", TILELANG_SIM_CUS="4")
    assert out == [2, 4, 1]


def test_unknown_check_is_refused():
    body = "n = C.c_int(); print(json.dumps(hip.hipGetDeviceCount(C.byref(n))))"
    out, err = run(body, TILELANG_SIM_CHECK="bounds,bogus")
    assert out == 100 and "bogus" in err
