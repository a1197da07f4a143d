"""The HIP API against tables of the real runtime: exports, enum values, property layouts, answers without a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from simlib import hip_client as run

sim = pytest.importorskip("tilelang.sim")

SIM = Path(__file__).resolve().parents[2] / "csrc/sim"
NOT_HIP = {"__hipGetPCH", "amd_dbgapi_get_build_id", "amd_dbgapi_get_build_name", "amd_dbgapi_get_git_hash"}
NOT_HIP |= {"hipRegisterTracerCallback"}
"""Exports of the real library that no HIP program calls."""


def rows(shared: Path, name: str) -> list[list[str]]:
    return [r.split("\t") for r in (shared / "facts" / name).read_text().splitlines()[1:]]


def refused() -> list[str]:
    return re.findall(r"^SIM_REFUSED\((\w+)\)", (SIM / "hip_more.def").read_text(), re.M)


def test_every_export_is_there(shared):
    names = [r[0] for r in rows(shared, "hip-exports.tsv") if r[0] not in NOT_HIP]
    body = f"""
both = [hip, C.CDLL({str(sim.library_path())!r})]
names = {names!r}
r = {{"exports": [n for lib in both for n in names if not hasattr(lib, n)], "procs": []}}
p, st = P(), C.c_int()
for n in names:
    if hip.hipGetProcAddress(n.encode(), C.byref(p), 702, C.c_uint64(0), C.byref(st)) or not p.value:
        r["procs"].append(n)
print(json.dumps(r))
"""
    out, _ = run(body)
    assert len(names) > 540 and out == {"exports": [], "procs": []}


def test_what_is_used_is_there(shared):
    """The functions that real programs use: none of them is refused."""
    text = (shared / "facts/hip-api-used.md").read_text().split("## Symbols")[1]
    used = set(re.findall(r"\b(?:__)?hip[A-Z]\w+", text))
    assert len(used) > 130 and used & set(refused()) == set()


def test_copies_of_arrays_are_refused_by_name():
    """Functions that do work, asked for what is not there, say what that is."""
    body = """
class Array(C.Structure): _fields_ = [("words", C.c_size_t * 32)]
a = malloc(64).value
p3 = (C.c_size_t * 20)(a); d3, d2 = (C.c_size_t * 26)(), (C.c_size_t * 16)()
d3[4] = 10 # the kind of the source
d2[5] = a # the array of the source
calls = [(hip.hipMemcpy3D, p3), (hip.hipDrvMemcpy3D, d3), (hip.hipMemcpyParam2D, d2)]
print(json.dumps([f(p) for f, p in calls for _ in "12"]))
"""
    out, err = run(body)
    assert out == [801] * 6
    assert err.splitlines() == [
        f"tilelang simulator: a copy from or to an array ({f}) is not supported"
        for f in ("hipMemcpy3D", "hipDrvMemcpy3D", "hipMemcpyParam2D")
    ]


def test_the_run_time_compiler_is_not_here():
    """hiprtc is another library, AMD's: nothing here stands in front of it; asking for it gets a clear answer."""
    from tilelang import sim

    names = sorted(p.name for p in Path(sim.libdir()).iterdir())
    assert names == ["libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"]
    body = """
p, status = P(7), C.c_int(9)
e = hip.hipGetProcAddress(b"hiprtcCreateProgram", C.byref(p), 700, C.c_uint64(0), C.byref(status))
print(json.dumps([e, p.value, status.value, hasattr(hip, "hiprtcCreateProgram")]))
"""
    assert run(body)[0] == [1, None, 1, False]


def test_refusals_answer_not_supported():
    body = f"print(json.dumps([n for n in {refused()!r} if getattr(hip, n)() != 801]))"
    assert run(body)[0] == []


def test_attribute_numbers_and_offsets(shared):
    enums = {r[1]: int(r[2]) for r in rows(shared, "hip-enums.tsv")}
    where = {int(r[1]): r[0].split()[-1].split("[")[0] for r in rows(shared, "hip-device-prop-r0600.tsv")}
    other = {
        "EccEnabled": "ECCEnabled", "KernelExecTimeout": "kernelExecTimeoutEnabled",
        "ComputeCapabilityMajor": "major",
        "ComputeCapabilityMinor": "minor", "MaxBlockDimX": "maxThreadsDim", "MaxGridDimX": "maxGridSize",
        "MultiprocessorCount": "multiProcessorCount",
        "PciBusId": "pciBusID", "PciDeviceId": "pciDeviceID", "PciDomainId": "pciDomainID",
        "MaxRegistersPerBlock": "regsPerBlock", "MaxRegistersPerMultiprocessor": "regsPerMultiprocessor",
    }  # fmt: skip
    table = re.findall(r"^SIM_ATTR\((\w+), (\d+), (-?\d+),", (SIM / "hip_attributes.def").read_text(), re.M)
    assert len(table) > 80
    for name, number, offset in table:
        assert enums["hipDeviceAttribute" + name] == int(number), name
        if int(offset) >= 0 and name not in ("MaxBlockDimY", "MaxBlockDimZ", "MaxGridDimY", "MaxGridDimZ"):
            assert where[int(offset)] == other.get(name, name[0].lower() + name[1:]), name


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_properties_agree_with_attributes(shared, chip):
    """Every 32-bit property that is an attribute too gives the same number; the sizes of the layouts are not passed."""
    table = re.findall(r"^SIM_ATTR\((\w+), (\d+), (-?\d+),", (SIM / "hip_attributes.def").read_text(), re.M)
    body = f"""
new, old = C.create_string_buffer(b"\\xee" * 1480, 1480), C.create_string_buffer(b"\\xee" * 800, 800)
ok(hip.hipGetDevicePropertiesR0600(new, 0)); ok(hip.hipGetDevicePropertiesR0000(old, 0))
bad = []
for name, number, offset in {table!r}:
    x = C.c_int(); ok(hip.hipDeviceGetAttribute(C.byref(x), int(number), 0))
    if int(offset) >= 0 and struct.unpack_from("<i", new.raw, int(offset))[0] != x.value: bad.append(name)
q, d = struct.unpack_from, C.c_int()
both = [(308, 276), (320, 280), (388, 336), (360, 328), (364, 332), (616, 340), (624, 344), (304, 272), (612, 316)]
bad += [a for a, b in both if q("<i", new.raw, a) != q("<i", old.raw, b)]
bad += [a for a, b in [(288, 256), (296, 264)] if q("<q", new.raw, a) != q("<q", old.raw, b)]
tails = [new.raw[1472:].hex(), old.raw[792:].hex()]
archs = [new.raw[1160:].split(b"\\0")[0].decode(), old.raw[396:].split(b"\\0")[0].decode()]
print(json.dumps({{"bad": bad, "tails": tails, "archs": archs}}))
"""
    out, _ = run(body, TILELANG_SIM_DEVICES=chip)
    assert out["bad"] == [] and out["tails"] == ["ee" * 8, "ee" * 8]
    assert out["archs"][0] == out["archs"][1] and out["archs"][0].startswith(chip)


def test_enum_values_of_graphs_and_captures(shared):
    enums = {r[1]: int(r[2]) for r in rows(shared, "hip-enums.tsv")}
    header = (SIM / "hip_graph.h").read_text()
    kinds = dict(re.findall(r"\bNODE_(\w+) = (\d+)", header))
    names = {"KERNEL": "Kernel", "COPY": "Memcpy", "MEMSET": "Memset", "HOST": "Host", "GRAPH": "Graph"}
    names |= {"EMPTY": "Empty", "WAIT": "WaitEvent", "EVENT": "EventRecord", "ALLOC": "MemAlloc", "FREE": "MemFree"}
    assert {k: int(v) for k, v in kinds.items()} == {k: enums["hipGraphNodeType" + n] for k, n in names.items()}
    assert [enums["hipStreamCaptureMode" + n] for n in ("Global", "ThreadLocal", "Relaxed")] == [0, 1, 2]
    assert [enums["hipStreamCaptureStatus" + n] for n in ("None", "Active", "Invalidated")] == [0, 1, 2]
    assert enums["hipGraphExecUpdateErrorTopologyChanged"] == 2 and enums["hipGraphExecUpdateErrorNodeTypeChanged"] == 3


def test_answers_without_a_device():
    """As the real runtime: everything but the versions fails with 100, and the last error is never cleared."""
    body = """
n, p, ver = C.c_int(7), P(), [C.c_int(), C.c_int()]
f, z = C.c_float(), C.c_size_t()
buf = C.create_string_buffer(2048)
dim = C.c_uint * 3
r = {
    "hipInit": hip.hipInit(0), "hipGetDeviceCount": hip.hipGetDeviceCount(C.byref(n)),
    "hipGetDevice": hip.hipGetDevice(C.byref(n)), "hipSetDevice": hip.hipSetDevice(0),
    "hipDeviceGet": hip.hipDeviceGet(C.byref(n), 0), "hipDeviceGetName": hip.hipDeviceGetName(buf, 100, 0),
    "hipGetDevicePropertiesR0600": hip.hipGetDevicePropertiesR0600(buf, 0),
    "hipGetDeviceProperties": hip.hipGetDeviceProperties(buf, 0),
    "hipDeviceGetAttribute": hip.hipDeviceGetAttribute(C.byref(n), 87, 0),
    "hipMalloc": hip.hipMalloc(C.byref(p), z), "hipHostMalloc": hip.hipHostMalloc(C.byref(p), C.c_size_t(8), 0),
    "hipFree": hip.hipFree(P(4096)), "hipMemcpy": hip.hipMemcpy(buf, buf, C.c_size_t(8), 0),
    "hipMemset": hip.hipMemset(buf, 0, C.c_size_t(8)), "hipDeviceSynchronize": hip.hipDeviceSynchronize(),
    "hipStreamCreate": hip.hipStreamCreate(C.byref(p)), "hipEventCreate": hip.hipEventCreate(C.byref(p)),
    "hipModuleLoadData": hip.hipModuleLoadData(C.byref(p), buf),
    "hipMemGetInfo": hip.hipMemGetInfo(C.byref(z), C.byref(z)), "hipCtxGetCurrent": hip.hipCtxGetCurrent(C.byref(p)),
    "hipDevicePrimaryCtxRetain": hip.hipDevicePrimaryCtxRetain(C.byref(p), 0),
    "hipMallocManaged": hip.hipMallocManaged(C.byref(p), C.c_size_t(8), 1),
    "hipDeviceReset": hip.hipDeviceReset(), "hipGetLastError": hip.hipGetLastError(),
    "again": hip.hipGetLastError(), "hipPeekAtLastError": hip.hipPeekAtLastError(),
}
n = C.c_int(7); hip.hipGetDeviceCount(C.byref(n))
versions = [hip.hipRuntimeGetVersion(C.byref(ver[0])), hip.hipDriverGetVersion(C.byref(ver[1]))]
print(json.dumps({"other": {k: v for k, v in r.items() if v != 100}, "n": n.value, "versions": versions,
                  "same": ver[0].value == ver[1].value, "version": ver[0].value}))
"""
    out, _ = run(body, TILELANG_SIM_DEVICES="none")
    version = out.pop("version")
    assert out == {"other": {}, "n": 0, "versions": [0, 0], "same": True} and version // 10_000_000 == 7
