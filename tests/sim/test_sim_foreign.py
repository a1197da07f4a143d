"""Code objects as other compilers and assembly writers make them: what they do and ours do not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from simlib import Arg, code_object

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang-22")
CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]

# rocPRIM's kernels for other chips than the one compiled for have an unreachable body: a function of 0 bytes, whose
# entry is that of the function behind it.
BIG = """
KERNEL big(float *p)
{
    int i = __builtin_amdgcn_workitem_id_x();
    float s = 0;
    for (int k = 0; k < 20; k++)
        s += p[i * 20 + k] * p[i + k];
    p[i] = s;
}
"""
EMPTY = "KERNEL empty(float *p) { __builtin_unreachable(); }\n"


def compiled(tmp: Path, source: str, arch: str, *flags: str) -> bytes:
    """The code object that clang makes of a HIP source without headers."""
    if not CLANG:
        pytest.skip("clang-22 is not installed")
    hip, out = tmp / "k.hip", tmp / "k.co"
    hip.write_text('#define KERNEL extern "C" __attribute__((global)) void\n' + source)
    options = ["--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib"]
    subprocess.run([CLANG, "-x", "hip", *options, "-O2", *flags, str(hip), "-o", str(out)], check=True)
    return out.read_bytes()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("source", [EMPTY + BIG, BIG + EMPTY, EMPTY], ids=["first", "last", "alone"])
def test_kernels_without_instructions(arch: str, source: str, tmp_path: Path) -> None:
    """They load, nothing of the function behind them is found in them, and those beside them run."""
    co = compiled(tmp_path, source, arch)
    assert sim.verify(co) == []
    dev = sim.Device(arch, checks="all")
    kernels = dev.load(co).kernels
    if "big" not in kernels:
        with pytest.raises(ValueError, match="kernel empty has no instructions"):
            kernels["empty"].launch(1, 64, [None])
        return
    p = dev.array(np.ones(64 * 20, np.float32))
    kernels["big"].launch(1, 1, [p])
    assert p.numpy(np.float32, (1280,))[0] == 20


@pytest.mark.parametrize("arch", CHIPS[:3])
def test_vector_registers_behind_the_offset(arch: str) -> None:
    """One register file: code without accumulation registers may use all of it by vector names, as AMD's assembly
    does; beside accumulation registers, or beyond the file, it is a finding."""
    body = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_add_u32_e32 v200, 7, v0
    {mark}
    v_mov_b32_e32 v191, v200
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v191, s[4:5]
    s_endpgm"""
    fits = code_object(body.format(mark=""), (Arg(8),), arch=arch, vgprs=128, agprs=128)
    assert sim.verify(fits) == []
    dev = sim.Device(arch, checks="all")
    out = dev.empty(256)
    dev.load(fits).kernels["k"].launch(1, 64, [out])
    assert np.array_equal(out.numpy(np.int32, (64,)), np.arange(64) + 7)
    shared = code_object(body.format(mark="v_accvgpr_write_b32 a3, v0"), (Arg(8),), arch=arch, vgprs=128, agprs=128)
    small = code_object(body.format(mark=""), (Arg(8),), arch=arch, vgprs=64, agprs=64)
    for bad, count in ((shared, 128), (small, 128)):
        assert [(f.kind, f.message) for f in sim.verify(bad)] == [
            ("registers", f"v200 is used, the descriptor gives {count} vector registers")
        ]
