"""Several simulated devices behind HIP (peer access, copies between them, fewer compute units), and how each kind of
fault comes back as an error that stays."""

from __future__ import annotations

import json

import pytest
from simlib import ADD, BUF, Arg, code_object
from simlib import hip_client as run

sim = pytest.importorskip("tilelang.sim")


@pytest.fixture(scope="module")
def add(tmp_path_factory):
    path = tmp_path_factory.mktemp("hip") / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    return path


def other_chip() -> str:
    """A second chip: an RDNA one when there is one."""
    from tilelang.sim import _native as nat

    return "gfx1100" if nat.library().tlsim_arch_available(b"gfx1100") else "gfx90a"


PEERS = """
m, f = load(sys.argv[1])
n = C.c_int(); can = C.c_int(); r = {}
ok(hip.hipGetDeviceCount(C.byref(n))); r["count"] = n.value
for a, b in ((0, 1), (1, 0), (0, 0)):
    ok(hip.hipDeviceCanAccessPeer(C.byref(can), a, b)); r[f"can{a}{b}"] = can.value
r["nosuch"] = hip.hipDeviceCanAccessPeer(C.byref(can), 0, 5)
ok(hip.hipDeviceGetP2PAttribute(C.byref(can), 1, 0, 1)); r["p2p"] = can.value
src = (C.c_int32 * 64)(*range(64)); dst = (C.c_int32 * 64)()
ok(hip.hipSetDevice(1)); far = malloc(256); pinned = P(); ok(hip.hipHostMalloc(C.byref(pinned), C.c_size_t(256), 0))
ok(hip.hipMemcpy(far, src, 256, 1)); C.memmove(pinned, src, 256)
own = C.c_int(); ok(hip.hipPointerGetAttribute(C.byref(own), 9, far)); r["owner"] = own.value
ok(hip.hipSetDevice(0)); near, out = malloc(256), malloc(256)
# copies need no permission
ok(hip.hipMemcpyPeer(near, 0, far, 1, C.c_size_t(256))); ok(hip.hipMemcpy(dst, near, 256, 2)); r["copied"] = list(dst)
ok(hip.hipMemcpyPeerAsync(near, 0, far, 1, C.c_size_t(128), None))
r["long"] = hip.hipMemcpyPeer(near, 0, far, 1, C.c_size_t(257))
r["nodev"] = hip.hipMemcpyPeer(near, 9, far, 1, C.c_size_t(4))
# pinned memory of the other device is host memory
ok(launch(f, (1, 1, 1), (64, 1, 1), pinned, out, C.c_int32(1))); ok(hip.hipMemcpy(dst, out, 256, 2))
r["pinned"] = list(dst)
# kernels do
launch(f, (1, 1, 1), (64, 1, 1), far, out, C.c_int32(2)); r["denied"] = hip.hipDeviceSynchronize()
ok(hip.hipDeviceReset())
r["self"] = hip.hipDeviceEnablePeerAccess(0, 0)
ok(hip.hipDeviceEnablePeerAccess(1, 0)); r["twice"] = hip.hipDeviceEnablePeerAccess(1, 0)
ok(launch(f, (1, 1, 1), (64, 1, 1), far, out, C.c_int32(3))); ok(hip.hipMemcpy(dst, out, 256, 2))
r["allowed"] = list(dst)
ok(launch(f, (1, 1, 1), (64, 1, 1), near, far, C.c_int32(4))); ok(hip.hipMemcpy(dst, far, 256, 2))
r["written"] = list(dst)
# exact bounds there too
launch(f, (2, 1, 1), (64, 1, 1), far, out, C.c_int32(5)); r["bounds"] = hip.hipDeviceSynchronize()
ok(hip.hipDeviceReset())
ok(hip.hipDeviceDisablePeerAccess(1)); r["off"] = hip.hipDeviceDisablePeerAccess(1)
launch(f, (1, 1, 1), (64, 1, 1), far, out, C.c_int32(2)); r["denied again"] = hip.hipDeviceSynchronize()
ok(hip.hipSetDevice(1)); r["other device"] = hip.hipDeviceSynchronize()
print(json.dumps(r))
"""


@pytest.mark.parametrize("check", ["bounds", "all"])
def test_peers(add, tmp_path, check):
    report = tmp_path / "report.jsonl"
    env = {"TILELANG_SIM_DEVICES": f"gfx942,{other_chip()}", "TILELANG_SIM_CHECK": check}
    out, err = run(PEERS, add, TILELANG_SIM_REPORT=str(report), **env)
    lists = {k: out.pop(k) for k in ("copied", "pinned", "allowed", "written")}
    assert out == {
        "count": 2, "can01": 1, "can10": 1, "can00": 0, "nosuch": 101, "p2p": 1, "owner": 1, "long": 1, "nodev": 101,
        "denied": 700, "self": 101, "twice": 704, "bounds": 700, "off": 705, "denied again": 700, "other device": 0,
    }  # fmt: skip
    assert lists == {
        "copied": list(range(64)), "pinned": [i + 1 for i in range(64)], "allowed": [i + 3 for i in range(64)],
        "written": [i + 4 for i in range(64)],
    }  # fmt: skip
    found = [json.loads(line) for line in report.read_text().splitlines()]
    assert [r["check"] for r in found[:1]] == ["bounds"] and "peer access is not enabled" in found[0]["message"]
    assert err.count("peer access is not enabled") == 2


def test_fewer_compute_units(add):
    """Occupancy and cooperative launches follow the smaller chip; kernels see no difference."""
    body = """
m, f = load(sys.argv[1]); a = malloc(1 << 16); ok(hip.hipMemset(a, 0, C.c_size_t(1 << 16))); n = C.c_int()
ok(hip.hipDeviceGetAttribute(C.byref(n), 63, 0)); r = {"cus": n.value}
arr = (P * 3)(*[C.cast(C.byref(x), P) for x in (a, a, C.c_int32(0))])
occ = C.c_int(); ok(hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(C.byref(occ), f, 64, C.c_size_t(0)))
most = occ.value * n.value
r["fits"] = hip.hipModuleLaunchCooperativeKernel(f, most, 1, 1, 64, 1, 1, 0, None, arr)
r["more"] = hip.hipModuleLaunchCooperativeKernel(f, most + 1, 1, 1, 64, 1, 1, 0, None, arr)
g, b = C.c_int(), C.c_int()
ok(hip.hipModuleOccupancyMaxPotentialBlockSize(C.byref(g), C.byref(b), f, C.c_size_t(0), 256))
r["best"] = [g.value, b.value]
print(json.dumps(r))
"""
    out, _ = run(body, add, TILELANG_SIM_CUS="4")
    assert out == {"cus": 4, "fits": 0, "more": 720, "best": [32, 256]}


LOOP = "again: s_branch again"
FAULTS = {  # body, checks, error, check in the report
    "trap": ("s_trap 2", "none", 710, "trap"),
    "store": ("v_mov_b32 v4, 64\n v_mov_b32 v5, 0\n global_store_dword v[4:5], v0, off", "none", 700, "memory"),
    "load": ("s_load_dword s4, s[0:1], 0xffff0\n s_waitcnt lgkmcnt(0)", "bounds", 700, "bounds"),
    "instruction": (".long 0xbfffffff", "none", 719, "illegal"),
    "hang": (LOOP, "none", 702, "hang"),
    "barrier": ("v_readfirstlane_b32 s4, v0\n s_cmp_eq_u32 s4, 0\n s_cbranch_scc1 again\n"
                "s_barrier\n s_endpgm\n" + LOOP, "barrier", 702, "barrier"),
    "wait": ("s_load_dword s4, s[0:1], 0x0\n s_add_u32 s5, s4, 1\n s_waitcnt lgkmcnt(0)", "wait", 719, "wait"),
    "init": ("v_cmp_eq_u32 vcc, v7, v0\n s_cbranch_vccz done\n done:", "init", 719, "init"),
    "hazard": ("v_readfirstlane_b32 s4, v0\n v_readlane_b32 s6, v0, s4", "hazard", 719, "hazard"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_as_errors(tmp_path, name):
    """The launch succeeds; the error stays until the device is reset, for every thread and kind of call."""
    source, checks, error, check = FAULTS[name]
    path, report = tmp_path / "k.hsaco", tmp_path / "r.jsonl"
    path.write_bytes(code_object(source, (BUF,)))
    body = """
import threading
m, f = load(sys.argv[1]); a = malloc(64); r = {}
r["launch"] = launch(f, (1, 1, 1), (128, 1, 1), a)
r["sync"] = [hip.hipDeviceSynchronize(), hip.hipStreamSynchronize(None), hip.hipGetLastError(), hip.hipGetLastError()]
host = (C.c_char * 64)()
r["memcpy"] = hip.hipMemcpy(host, a, C.c_size_t(64), 2); r["again"] = launch(f, (1, 1, 1), (64, 1, 1), a)
r["malloc"] = hip.hipMalloc(C.byref(P()), C.c_size_t(8))
def other(): r["thread"] = hip.hipDeviceSynchronize()
t = threading.Thread(target=other); t.start(); t.join()
ok(hip.hipDeviceReset()); r["reset"] = [hip.hipDeviceSynchronize(), hip.hipGetLastError()]
print(json.dumps(r))
"""
    env = {"TILELANG_SIM_CHECK": checks, "TILELANG_SIM_REPORT": str(report), "TILELANG_SIM_MAX_INSTRUCTIONS": "200000"}
    out, err = run(body, path, **env)
    e = error
    assert out["launch"] == 0 and out["sync"] == [e] * 4 and out["thread"] == e
    assert [out["memcpy"], out["again"], out["malloc"]] == [e] * 3 and out["reset"][0] == 0
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert lines[0]["check"] == check and f"{check}: " in err


def test_missing_file_is_the_last_error():
    body = """
m = P(); r = [hip.hipModuleLoad(C.byref(m), b"/nonexistent/x.hsaco"), hip.hipPeekAtLastError(), hip.hipGetLastError(),
              hip.hipGetLastError()]
print(json.dumps(r))
"""
    assert run(body)[0] == [301, 301, 301, 0]
