"""Functions compiled by clang for the chip and for the host: equal bits (data/both_sides.hip)."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang-22")
if not CLANG:
    pytest.skip("clang-22 is not installed", allow_module_level=True)

SOURCE = Path(__file__).with_name("data") / "both_sides.hip"
NAMES = re.findall(r"^FN\((\w+)\)", SOURCE.read_text(), re.M)
COMMON = ["-std=c++17", "-fno-rtti", "-ffp-contract=off"]
CASES = [
    ("gfx90a", "-O0"),
    ("gfx90a", "-O3"),
    ("gfx942", "-O1 -g -mcode-object-version=4"),
    ("gfx942", "-O2 -mllvm -global-isel -mllvm -global-isel-abort=2"),
    ("gfx950", "-Os"),
    ("gfx9-4-generic", "-O2 -mcode-object-version=6"),
    ("gfx1100", "-O0"),
    ("gfx1100", "-O2 -mcumode"),
    ("gfx1201", "-O1 -fno-inline"),
    ("gfx1201", "-O3"),
    ("gfx1201", "-O0 -mwavefrontsize64"),
]
WRONG_CODE = {
    # v_mov_b16 copies half of what v_perm_b32 then swaps whole
    ("gfx1100", "-O0", "bits"),
    # an array of 67 bytes is promoted to LDS 67 bytes a lane apart, its loads stay aligned to 16
    ("gfx950", "-Os", "memory"),
}
"""(chip, options, function) of which LLVM 22.1 makes wrong code."""
N = 192


def inputs(seed: int) -> np.ndarray:
    """[N] 64-bit words: random bits, pairs of f32, four f16, f64, small numbers and corner cases."""
    g = np.random.default_rng(seed)
    corners = [0, 1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0x3FF << 52, 1, (1 << 64) - 1, 0x7F800000FF800000]
    corners += [0x100000001, 0x8000000080000000, 0x7FC000003F800000, 0x7C00FC0000010001, (1 << 52) - 1, 1 << 52]
    corners += [0x7FEFFFFFFFFFFFFF, 0x007FFFFF00800000, 0x7F7FFFFF80000001, 0x7BFF040003FF8001, 0x80000000FFFFFFFF]
    kinds = [
        g.integers(0, 1 << 64, N, dtype=np.uint64),
        (g.standard_normal(2 * N) * 100).astype(np.float32).view(np.uint64),
        g.standard_normal(4 * N).astype(np.float16).view(np.uint64),
        (g.standard_normal(N) * 1e3).view(np.uint64),
        g.integers(0, 200, N, dtype=np.uint64),
        np.array(corners, np.uint64)[g.integers(0, len(corners), N)],
    ]
    return np.choose(g.integers(0, len(kinds), N), kinds)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Function -> [N, 4] words that the host computes."""
    out = tmp_path_factory.mktemp("host") / "host.so"
    flags = ["-x", "c++", "-DHOST", "-O1", "-fPIC", "-shared", "-Wno-unused-function"]
    subprocess.run([CLANG, *flags, *COMMON, str(SOURCE), "-o", str(out)], check=True)
    lib, a, b = ctypes.CDLL(str(out)), inputs(1), inputs(2)
    results = {}
    for name in NAMES:
        results[name] = np.zeros((N, 4), np.uint64)
        getattr(lib, name)(*(x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, results[name])), N)
    return results


@pytest.mark.parametrize("arch, options", CASES)
def test_equal_bits(arch: str, options: str, expected: dict[str, np.ndarray], tmp_path: Path) -> None:
    """No finding, no report, the host's bits, at once and in late delivery."""
    out = tmp_path / "chip.co"
    flags = ["--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib"]
    subprocess.run(
        [CLANG, "-x", "hip", *flags, *COMMON, *options.split(), str(SOURCE), "-o", str(out)],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    chip = {"gfx9-4-generic": "gfx942"}.get(arch, arch)
    names = [n for n in NAMES if (arch, options, n) not in WRONG_CODE]
    assert len(names) >= 40
    assert [f for f in sim.verify(out) if f.severity == "error"] == []
    for delivery, checks in (("now", "all"), ("late", "none")):
        dev = sim.Device(chip, checks=checks, delivery=delivery, seed=3)
        kernels = dev.load(out).kernels
        for name in names:
            got = dev.array(np.zeros((N, 4), np.uint64))
            kernels[name].launch(N // 64, 64, [inputs(1), inputs(2), got, np.int32(N)])
            bits = got.numpy(np.uint64, (N, 4))
            bad = np.argwhere(bits != expected[name])
            assert not len(bad), (name, delivery, [(int(i), int(j), hex(bits[i, j])) for i, j in bad[:3]])
