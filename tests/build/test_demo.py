"""The demo: what it shows, that it finds a wrong result, and that it runs on NumPy where there is no PyTorch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tilelang import demo


def run(*args: str, before: str = "pass") -> subprocess.CompletedProcess:
    code = f"import sys; {before}; from tilelang.demo import main; sys.exit(main({list(args)!r}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_demo_shows_and_checks():
    pytest.importorskip("torch")
    done = run("--size", "130", "--seed", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("simulated MI300X", "vgprs", "K loop", "MFMA", "run on the simulator", "PyTorch", "seed 3", "right:"):
        assert word in done.stdout, done.stdout


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_wrong_result_ends_it_with_an_error(dtype):
    pytest.importorskip("torch")
    done = run("--size", "65", "--dtype", dtype, "--inject-error")
    assert done.returncode == 1 and "WRONG: C[32, 21]" in done.stderr and "1 of 4225 wrong" in done.stdout
    assert "right:" not in done.stdout


def test_without_torch():
    done = run("--size", "64", before="sys.modules['torch'] = None")
    assert done.returncode == 0 and "reference by NumPy" in done.stdout, done.stdout + done.stderr
    done = run("--size", "64", "--inject-error", before="sys.modules['torch'] = None")
    assert done.returncode == 1 and "WRONG" in done.stderr


def test_hot_loop_is_the_one_with_the_most_mfma():
    asm = """
.LBB0_1:        ; %loop
    s_add_u32 s0, s0, 1
    s_cbranch_scc1 .LBB0_1
.LBB0_2:
    v_mfma_f32_32x32x8_f16 a, b, c, d ; comment
    ds_read_b128 v[0:3], v4
    s_waitcnt lgkmcnt(0)
    v_add_u32_e32 v1, v2, v3
    s_cbranch_vccnz .LBB0_2
    s_endpgm
"""
    loop = demo.hot_loop(asm)
    assert loop == ["v_mfma_f32_32x32x8_f16", "ds_read_b128", "s_waitcnt", "v_add_u32_e32", "s_cbranch_vccnz"]
    assert demo.mix(loop) == {
        "matrix (MFMA)": 1,
        "LDS": 1,
        "wait, nop, priority": 1,
        "vector ALU": 1,
        "branch": 1,
    }
    assert demo.hot_loop("    s_endpgm\n") == []


def test_tolerance_is_tight():
    """Two ulp of the output at a power of two, no more than twice that for any single value."""
    ref = np.array([1.0, -1024.0])
    allowed = demo.tolerance(ref, 16, np.zeros(2), 2.0**-10)
    assert np.allclose(allowed, 2 * np.abs(ref) * 2.0**-10, rtol=1e-3)
