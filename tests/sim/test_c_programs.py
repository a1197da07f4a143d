"""Random C programs (c_programs.py) compiled by clang for a chip and for the host: equal results and no report."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import c_programs
import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang-22")
if not CLANG or platform.machine() != "x86_64":
    pytest.skip("clang-22 on x86-64 is needed", allow_module_level=True)

COMMON = ["-x", "c++", "-std=c++17", "-w", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-finite-loops"]
CHIP = [
    "-target",
    "amdgcn-amd-amdhsa",
    "-nogpulib",
    "-ffreestanding",
    "-fno-rtti",
    "-fno-exceptions",
    "-fuse-ld=lld-22",
]
# LLVM 22.1: an element of a vector moved up in front of a branch is poison in a block that two branches reach
CHIP += ["-mllvm", "-amdgpu-codegenprepare-break-large-phis=0"]
HOST = ["-DHOST", "-O1", "-mf16c", "-Xclang", "-ffloat16-excess-precision=none", "-fPIC", "-shared"]
CASES = [
    ("gfx90a", "-O0"),
    ("gfx90a", "-O2"),
    ("gfx942", "-O1"),
    ("gfx942", "-O2 -mllvm -stress-regalloc=16"),
    ("gfx950", "-O2"),
    ("gfx950", "-Os -mllvm -amdgpu-use-divergent-register-indexing"),
    ("gfx1100", "-O0"),
    ("gfx1100", "-O2 -mwavefrontsize64"),
    ("gfx1201", "-O1 -mwavefrontsize64"),
    ("gfx1201", "-O2"),
]
N = 1234


def expected(source: Path) -> np.ndarray:
    """[64] words that the host computes."""
    lib = source.with_suffix(".so")
    subprocess.run([CLANG, *COMMON, *HOST, str(source), "-o", str(lib)], check=True)
    out = np.zeros(c_programs.LANES, np.uint64)
    ctypes.CDLL(str(lib)).run(out.ctypes.data_as(ctypes.c_void_p), None, N)
    return out


@pytest.mark.parametrize("at, case", list(enumerate(CASES)), ids=[f"{a}{o.replace(' ', '')}" for a, o in CASES])
def test_equal_results(at: int, case: tuple[str, str], tmp_path: Path) -> None:
    """One program a case, at once with all checks, and in late delivery."""
    arch, options = case
    seed = 4100 + at
    print("seed", seed)
    source, obj = tmp_path / "program.cc", tmp_path / "program.co"
    source.write_text(c_programs.program(seed))
    want = expected(source)
    subprocess.run([CLANG, *COMMON, *CHIP, f"-mcpu={arch}", *options.split(), str(source), "-o", str(obj)], check=True)
    assert not [f for f in sim.verify(str(obj)) if f.severity == "error"]
    for checks, delivery in (("all", "now"), ("bounds", "late")):
        dev = sim.Device(arch, checks=checks, delivery=delivery, seed=seed)
        out, mem = dev.array(np.zeros(c_programs.LANES, np.uint64)), dev.array(np.zeros(c_programs.LANES, np.uint32))
        dev.load(str(obj)).kernels["run"].launch(1, c_programs.LANES, [out, mem, np.uint32(N)])
        assert (out.numpy(np.uint64, (c_programs.LANES,)) == want).all(), (seed, arch, options, delivery)
