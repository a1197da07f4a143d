"""Correct programs by clang: neither a run with all checks nor the static verifier has anything to report."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang-22")
if not CLANG:
    pytest.skip("clang-22 is not installed", allow_module_level=True)

SOURCE = Path(__file__).with_name("data") / "check_kernels.hip"
WAVE64 = ["-mwavefrontsize64", "-DW64"]
OPTIONS = {
    "O3": ["-O3"],
    "O0": ["-O0"],
    "O3-cu": ["-O3", "-mcumode"],
    "O3-wave64": ["-O3", *WAVE64],
    "O2-wave64-cu": ["-O2", "-mcumode", *WAVE64],
    "O0-wave64": ["-O0", *WAVE64],
}
CASES = [("gfx90a", "O3"), ("gfx942", "O3"), ("gfx950", "O3")]
CASES += [(a, o) for a in ("gfx1100", "gfx1201") for o in OPTIONS]


def arguments(name: str, rng: np.random.Generator):
    """Arguments of a kernel on 8 workgroups of 256, and what must be 0 behind it."""
    a = rng.integers(1, 200, 2048).astype(np.int32)
    rows, o, word = a.reshape(8, 256), np.zeros(2048, np.int32), np.zeros(8, np.int32)
    out, x = o.reshape(8, 256), np.arange(256)
    before = np.concatenate([[0], rows.sum(1).cumsum()[:-1]])[:, None]
    total, lock, count = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32)
    f, g = rng.standard_normal(2048).astype(np.float32), np.zeros(2048, np.float32)
    h = [rng.standard_normal(1024).astype(np.float16) for _ in range(2)]
    return {
        "transpose": ([a, o], lambda: o.reshape(8, 16, 16) - a.reshape(8, 16, 16).transpose(0, 2, 1)),
        "global_exchange": ([np.zeros(2048, np.int32), o], lambda: out - (x[::-1] ^ 77) * 3),
        "last_block": ([a, word, lock, total], lambda: total - a.sum()),
        "lookback": ([a, word, np.zeros(8, np.int32), o], lambda: out - before - rows),
        "locked": ([lock, word], lambda: word[:2] - [36, 0]),
        "histogram": ([a, count], lambda: count - np.bincount(a & 63, minlength=64)),
        "math": ([f, g], lambda: np.isnan(g)),
        "shuffles": ([a, o], lambda: out[:0]),
        "divergent": ([a, o], lambda: (out > 50) | (out < 0)),
        "stack": ([a, o], lambda: out[:0]),
        "calls": ([a, o], lambda: out - _calls(rows)),
        "wmma": ([*h, np.zeros(256, np.float32), 3], lambda: out[:0]),
    }[name]


def _calls(rows: np.ndarray) -> np.ndarray:
    group = np.arange(8)[:, None]
    v = np.where(rows & 1, rows * 3 + 2, rows)
    return np.where(group > 0, v * 3 + group, v)


@pytest.mark.parametrize(
    ("arch", "option"), [pytest.param(*c, marks=[] if c[1] == "O3" else pytest.mark.slow) for c in CASES]
)
def test_clean(tmp_path, arch, option):
    path = tmp_path / "k.hsaco"
    command = [CLANG, "-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib"]
    options = [*OPTIONS[option], *(["-DW64"] if arch.startswith("gfx9") else [])]
    subprocess.run([*command, "--no-gpu-bundle-output", *options, SOURCE, "-o", path], check=True)
    findings = [f for f in sim.verify(path) if f.kind != "exec"]
    assert not findings, findings[:3]
    kernels = sim.Device(arch, checks="all", threads=2).load(path).kernels
    rng, ran = np.random.default_rng(5), 0
    for name, kernel in kernels.items():
        if name == "wmma" and "-DW64" in options:
            continue
        args, wrong = arguments(name, rng)
        kernel.launch(*((1, 32) if name == "wmma" else (8, 256)), args)
        assert not np.any(wrong()), name
        ran += 1
    assert ran >= 11
