"""What compiled kernels ask of the host: printf by hostcall and by buffer, assert, device malloc. Built by clang, with
the device library that Triton carries; all checks are on."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simlib import BUF, Arg, client_env, code_object, missing, tool_env

sim = pytest.importorskip("tilelang.sim")

HERE = Path(__file__).parent
SPEC = importlib.util.find_spec("triton")
LIB = Path(SPEC.submodule_search_locations[0]) / "backends/amd/lib" if SPEC else None
CLANGXX, CLANG, LINK = (shutil.which(n) for n in ("clang++-22", "clang-22", "llvm-link-22"))


@pytest.fixture
def clang() -> None:
    if not (LIB and CLANGXX and CLANG and LINK):
        missing("clang-22, llvm-link-22 or triton (its device library)")


needs_clang = pytest.mark.usefixtures("clang")


def build(out: Path, *flags: str) -> None:
    source, obj, lib = HERE / "fat_services.hip", out.with_suffix(".o"), sim.libdir()
    device = ["--hip-device-lib=ockl.bc", f"--hip-device-lib-path={LIB}", "-nogpuinc", "-w", "-O2"]
    cmd = [CLANGXX, "-x", "hip", "--offload-arch=gfx942", *device, *flags, "-c", str(source), "-o", str(obj)]
    r = subprocess.run(cmd, capture_output=True, text=True, env=tool_env())
    if r.returncode and "lld" in r.stderr:
        missing("lld for clang")
    assert r.returncode == 0, r.stderr
    link = [f"-L{lib}", "-lamdhip64", f"-Wl,-rpath,{lib}", f"-Wl,-rpath-link,{lib}/.."]
    subprocess.run([CLANGXX, str(obj), "-o", str(out), *link], check=True, env=tool_env())


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not (LIB and CLANGXX):
        missing("clang++-22 or triton (its device library)")
    out = tmp_path_factory.mktemp("services") / "hostcall"
    build(out, "-mprintf-kind=hostcall")
    return out


def run(exe: Path, what: str) -> tuple[list[str], str]:
    env = client_env(TILELANG_SIM_CHECK="all")
    r = subprocess.run([str(exe), what], capture_output=True, text=True, env=env, timeout=120)
    assert r.returncode == 0, r.stderr
    return r.stdout.splitlines(), r.stderr


LINES = [
    f"block {b}, thread {t}: device|ab    |{1.5 + t:5.2f} ff {-1 << 40} x 7% 44" for b in (0, 1) for t in (5, 37)
] + [
    f"a string of more than fifty-six bytes, so that it takes several packets of the protocol    {n} abc|"
    for n in (100, 101)
]


@needs_clang
@pytest.mark.parametrize("kind", ["hostcall", "buffered"])
def test_printf(program, tmp_path, kind):
    exe = program
    if kind != "hostcall":
        exe = tmp_path / kind
        build(exe, f"-mprintf-kind={kind}")
    out, err = run(exe, "printf")
    assert sorted(out[:4]) == sorted(LINES[:4]) and out[4:6] == LINES[4:] and out[6:] == ["0"] and err == ""


@needs_clang
def test_assert(program):
    """The message of the lanes at fault, then the trap: hipErrorAssert, asynchronously."""
    out, err = run(program, "assert")
    assert out == ["710"]
    assert err.count("assertion p[tid] != 3 failed: 42\n") == 8 and "trap: s_trap 2" in err
    assert f"lanes 0x{sum(1 << i for i in range(3, 64, 8)):x}" in err


@needs_clang
def test_device_malloc(program):
    """256 threads build, sum and free lists; one takes 3 MiB. The library's own heap, with slabs from the host."""
    assert run(program, "malloc") == (["0"], "")


@needs_clang
def test_device_malloc_beyond_the_limit(program):
    assert run(program, "full") == (["0"], "")


@needs_clang
def test_free_of_what_was_not_taken(program):
    out, err = run(program, "bad_free")
    assert out == ["719"] and "memory is freed that device malloc did not take" in err and "s_sendmsg" in err


@needs_clang
def test_opencl_printf(tmp_path):
    flags = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-nogpulib", "-O2"]
    cl = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", *flags, "-emit-llvm", "-c"]
    bc, whole, hsaco = tmp_path / "k.bc", tmp_path / "whole.bc", tmp_path / "k.hsaco"
    subprocess.run([CLANG, *cl, str(HERE / "printf_kernel.cl"), "-o", str(bc)], check=True, env=tool_env())
    subprocess.run([LINK, "--only-needed", str(bc), str(LIB / "ockl.bc"), "-o", str(whole)], check=True, env=tool_env())
    r = subprocess.run([CLANG, *flags, str(whole), "-o", str(hsaco)], capture_output=True, text=True, env=tool_env())
    if r.returncode and "lld" in r.stderr and "undefined" not in r.stderr:
        missing("lld for clang")
    assert r.returncode == 0, r.stderr
    code = f"""
import numpy as np
from tilelang.sim import Device
dev = Device("gfx942", checks="all")
p = dev.empty(256)
dev.load({str(hsaco)!r}).kernels["k"].launch(1, 64, [p, np.float64(0.1)])
assert (p.numpy(np.int32) == np.arange(64)).all()
"""
    env = client_env()
    r = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=HERE.parents[1])
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines() == [
        "lane 0: str  0.00 1,2,3,0|5 0 x% 0.1 a,b,0",
        f"lane 1: str  1.50 1,2,3,1|5 {1 << 40} x% 0.1 a,b,1",
    ]


# A packet written by hand: takes packet 0 from the free stack and pushes it with the given service; two payload words.
PACKET = """
  s_load_dwordx2 s[4:5], s[0:1], 0x8
  s_waitcnt lgkmcnt(0)
  s_load_dwordx4 s[8:11], s[4:5], 0x0
  s_load_dwordx4 s[12:15], s[4:5], 0x10
  v_mov_b32 v0, 0
  v_mov_b32 v12, {service}
  v_mov_b32 v13, 1
  v_mov_b32 v2, 1
  v_mov_b32 v3, 0
  s_waitcnt lgkmcnt(0)
  s_load_dword s16, s[4:5], 0x28
  s_waitcnt lgkmcnt(0)
  s_and_b32 s17, s14, s16
  s_mul_i32 s18, s17, 24
  s_lshl_b32 s19, s17, 12
  s_add_u32 s8, s8, s18
  s_addc_u32 s9, s9, 0
  s_add_u32 s10, s10, s19
  s_addc_u32 s11, s11, 0
  global_store_dwordx2 v0, v[2:3], s[8:9] offset:8
  global_store_dwordx2 v0, v[12:13], s[8:9] offset:16
  v_mov_b32 v4, {w0}
  v_mov_b32 v5, {w0}
  v_mov_b32 v6, {w1}
  v_mov_b32 v7, {w1}
  global_store_dwordx4 v0, v[4:7], s[10:11]
  global_store_dwordx2 v0, v[2:3], s[8:9]
  v_mov_b32 v8, s14
  v_mov_b32 v9, s15
  s_waitcnt vmcnt(0)
  global_store_dwordx2 v0, v[8:9], s[4:5] offset:32
  s_waitcnt vmcnt(0)
  s_sendmsg sendmsg(MSG_INTERRUPT)
  global_load_dwordx2 v[10:11], v0, s[10:11]
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dwordx2 v0, v[10:11], s[6:7]
"""


def packet(service: int, w0: int, w1: int) -> bytes:
    body = PACKET.format(service=service, w0=w0, w1=w1)
    return code_object(body, (BUF, Arg(8, kind="hidden_hostcall_buffer"), Arg(8, kind="hidden_heap_v1")), sgprs=24)


@pytest.mark.parametrize(
    "service, w0, w1, text",
    [(1, 64, 0, "calls of host functions"), (9, 0, 0, "this service is not known"), (3, 4096, 0, "memory is freed")],
)
def test_refused_services(service, w0, w1, text):
    dev = sim.Device("gfx942")
    out = dev.empty(8)
    with pytest.raises(sim.SimulatorFault) as e:
        dev.load(packet(service, w0, w1)).kernels["k"].launch(1, 1, [out])
    assert e.value.reports[0].check == "illegal" and text in str(e.value) and "s_sendmsg" in e.value.reports[0].text


@pytest.mark.parametrize("w0, w1", [(0x2300, 0), (3, 0), (2, 0), (0x22, 7)])
def test_malformed_messages(w0, w1):
    """Messages that never began, or hold no format: -1 is the answer and nothing is printed."""
    dev = sim.Device("gfx942")
    out = dev.empty(8)
    dev.load(packet(2, w0, w1)).kernels["k"].launch(1, 1, [out])
    assert out.numpy(np.int64)[0] == -1


def test_memory_by_hostcall():
    dev = sim.Device("gfx942")
    out = dev.empty(8)
    k = dev.load(packet(3, 0, 1)).kernels["k"]  # 2^32 + 1 bytes: more than there is
    k.launch(1, 1, [out])
    assert out.numpy(np.uint64)[0] == 0


@pytest.mark.parametrize("op, undefined, reported", [
    ("s_and_saveexec_b64 s[6:7], s[4:5]", "outside", False),
    ("s_and_saveexec_b64 s[6:7], s[4:5]", "inside", True),
    ("s_and_b64 exec, exec, s[4:5]", "outside", False),
    ("s_and_b64 exec, s[4:5], exec", "inside", True),
    ("s_andn2_b64 exec, exec, s[4:5]", "outside", False),
    ("s_andn2_saveexec_b64 s[6:7], s[4:5]", "inside", False),
    ("s_andn2_saveexec_b64 s[6:7], s[4:5]", "outside", True),
    ("s_or_saveexec_b64 s[6:7], s[4:5]", "inside", False),
    ("s_or_saveexec_b64 s[6:7], s[4:5]", "outside", True),
    ("s_xor_saveexec_b64 s[6:7], s[4:5]", "outside", True),
    ("s_mov_b64 exec, s[4:5]", "outside", True),
])  # fmt: skip
def test_undefined_lanes_that_exec_decides(op, undefined, reported):
    """Compilers leave a mask undefined in lanes that are off: only where EXEC does not decide is it of account."""
    where = "vcc" if undefined == "outside" else "exec"
    body = f"""
      s_mov_b32 exec_lo, 0xff
      s_mov_b32 exec_hi, 0
      s_not_b64 vcc, exec
      s_and_b64 s[4:5], s[20:21], {where}
      {op}
      s_mov_b64 exec, -1
    """
    dev = sim.Device("gfx942", checks="all")
    k = dev.load(code_object(body, (BUF,), sgprs=32)).kernels["k"]
    if reported:
        with pytest.raises(sim.SimulatorFault, match="reaches EXEC"):
            k.launch(1, 64, [dev.empty(8)])
    else:
        k.launch(1, 64, [dev.empty(8)])
