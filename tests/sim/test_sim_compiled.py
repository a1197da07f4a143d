"""Kernels compiled by clang for every chip, wave size, code object version and WGP or CU mode: right under all checks,
and no report. RDNA's waves of 64 lanes come from here."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

CLANG, LLD = shutil.which("clang-22"), shutil.which("ld.lld-22") or shutil.which("ld.lld")
needs_clang = pytest.mark.skipif(not (CLANG and LLD), reason="clang-22 or ld.lld is not installed")
SOURCE = Path(__file__).parent / "data/wave_kernels.cl"
ARCHS = [a for a in simlib.MACH if sim._native.library().tlsim_arch_available(a.encode())]
RDNA = [a for a in ARCHS if a.startswith("gfx1")]
BUILDS = [(a, 64, "") for a in ARCHS if a not in RDNA]
BUILDS += [(a, w, mode) for a in RDNA for w in (32, 64) for mode in ("", "-mcumode")]
GROUPS = 3


@functools.cache
def compiled(arch: str, wave: int, mode: str, version: int = 6, opt: str = "-O2") -> bytes:
    flags = [f"-mcpu={arch}", f"-mcode-object-version={version}", opt, *([mode] if mode else [])]
    if arch in RDNA:
        flags.append("-mwavefrontsize64" if wave == 64 else "-mno-wavefrontsize64")
    flags.append(f"-DWAVE={wave}")
    with tempfile.TemporaryDirectory() as tmp:
        obj, out = Path(tmp) / "k.o", Path(tmp) / "k.hsaco"
        cmd = [CLANG, "-target", "amdgcn-amd-amdhsa", *flags, "-x", "cl", "-cl-std=CL2.0", "-nogpulib", "-w", "-c"]
        subprocess.run([*cmd, str(SOURCE), "-o", str(obj)], check=True)
        subprocess.run([LLD, "-shared", "-o", str(out), str(obj)], check=True)
        return out.read_bytes()


# ---- what the kernels compute ----------------------------------------------------------------------------------


def numbers(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 31, n, dtype=np.uint32)


def collatz(a: np.ndarray) -> np.ndarray:
    x, n, on = a.astype(np.uint64), np.zeros(len(a), np.uint32), a > 1
    for _ in range(151):
        x = np.where(on, np.where(x & 1, (3 * x + 1) & np.uint64(0xFFFFFFFF), x // 2), x)
        n += on
        on &= (x > 1) & (n <= 150)
    return n


def ranks(a: np.ndarray, wave: int) -> np.ndarray:
    rows = (a & 1).reshape(-1, wave)
    below = np.cumsum(rows, axis=1) - rows
    return (
        (np.where(rows == 1, below, 1000 + below) + a.reshape(-1, wave)[:, :1] * np.uint32(4096))
        .astype(np.uint32)
        .ravel()
    )


def machine(a: np.ndarray) -> np.ndarray:
    out = []
    for tid in range(256):
        stack, x, at = [7 * k for k in range(16)], tid, 0
        for k in range(12):
            op = int(a[k]) % 6
            if op == 0:
                x += 3
            elif op == 1:
                x *= 5
            elif op == 2:
                at = (at + 1) & 15
                stack[at] = x
            elif op == 3:
                x ^= stack[(x + at) & 15]
            elif op == 4:
                x -= stack[at]
                at = (at + 15) & 15
            else:
                u = x & 0xFFFFFFFF
                x = u << 3 | u >> 29
            x = (x & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
        out.append(x)
    return np.array(out * GROUPS, np.int32)


def wide(a: np.ndarray) -> np.ndarray:
    out = []
    for x, y in a.reshape(-1, 2).tolist():
        sx = x - (1 << 64) if x >> 63 else x
        out.append((x * y + x // (y | 1) + x % (y | 1) + (sx >> (y & 63)) + (x << (y & 31))) & (1 << 64) - 1)
    return np.array(out, np.uint64)


def calls(a: np.ndarray) -> np.ndarray:
    def depth(n: int, x: int) -> int:
        keep = [x, x + 1, x + 2, x + 3]
        for k in range(n):
            keep[(x + k) & 3] = (keep[(x + k) & 3] + keep[k & 3]) & 0xFFFFFFFF
        return (keep[0] ^ keep[1] ^ keep[2] ^ keep[3]) & 0xFFFFFFFF

    return np.array([(depth(x & 15, x) + depth(3, i)) & 0xFFFFFFFF for i, x in enumerate(a.tolist())], np.uint32)


def cases(wave: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> (input, expected output)."""
    n = GROUPS * 256
    a = numbers(n)
    small = a % 5000 + 1
    signed = (a % 2001).astype(np.int32) - 1000
    big = np.random.default_rng(2).integers(0, (1 << 64) - 1, 2 * n, dtype=np.uint64)
    big[::6] %= 1 << 20
    scan = np.cumsum(signed.reshape(GROUPS, 256), axis=1, dtype=np.int32).ravel()
    return {
        "collatz": (small, collatz(small)),
        "reduce": (signed, np.array([signed.sum()], np.int32)),
        "scan": (signed, scan),
        "ranks": (a, ranks(a, wave)),
        "machine": (a, machine(a)),
        "wide": (big, wide(big)),
        "calls": (a, calls(a)),
    }


def check(code: bytes, arch: str, wave: int, names: Callable[[str], bool] = lambda n: True) -> int:
    dev = sim.Device(arch, checks="all", threads=1)
    kernels = dev.load(code).kernels
    for name, (a, want) in cases(wave).items():
        if not names(name):
            continue
        assert kernels[name].resources["wave_size"] == wave
        out = np.zeros_like(want)
        stats = kernels[name].launch(GROUPS, 256, [a, out])
        assert (out == want).all(), f"{name}: {int((out != want).sum())} wrong"
        assert stats["instructions"] >= GROUPS * 256 // wave
    return len(kernels)


KEPT = [(a, w) for a in RDNA for w in (32, 64)]


def kept(arch: str, wave: int) -> bytes:
    return (SOURCE.parent / f"wave{wave}.{arch}.hsaco").read_bytes()


@pytest.mark.parametrize("arch, wave", KEPT)
def test_kept(arch, wave):
    """The code objects in data/ (-Os; v5 for gfx1100, v6 for gfx1201): needs no compiler."""
    assert check(kept(arch, wave), arch, wave) >= 8


@pytest.mark.parametrize("arch, wave", KEPT)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_late_delivery(arch, wave, seed):
    """Nothing changes when every memory operation lands as late as the waits allow."""
    dev = sim.Device(arch, checks="none", threads=1)
    kernels = dev.load(kept(arch, wave)).kernels
    for name, (a, want) in cases(wave).items():
        out = np.zeros_like(want)
        kernels[name].launch(GROUPS, 256, [a, out], delivery="late", seed=seed)
        assert (out == want).all(), f"{name}: {int((out != want).sum())} wrong"


@needs_clang
@pytest.mark.parametrize("arch, wave, mode", BUILDS)
@pytest.mark.parametrize("opt", ["-O2", "-O1"])
def test_compiled(arch, wave, mode, opt):
    assert check(compiled(arch, wave, mode, 6, opt), arch, wave) >= 8


@needs_clang
@pytest.mark.parametrize("arch", ARCHS)
def test_unoptimised(arch):
    """Without optimisation everything goes through the private segment, with flat accesses."""
    wave = 32 if arch in RDNA else 64
    check(compiled(arch, wave, "", 6, "-O0"), arch, wave, lambda n: n not in ("wide",))


@needs_clang
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("version", [4, 5, 6])
def test_sizes_by_version(arch, version):
    """Sizes of workgroup and grid: from the dispatch packet in v4, from hidden arguments since v5."""
    kernel = sim.Device(arch, checks="all", threads=1).load(compiled(arch, 64, "", version)).kernels["where"]
    grid, block = (3, 2, 2), (5, 3, 2)
    out = np.zeros((4, 6, 15), np.uint32)
    kernel.launch(grid, block, [np.array([7], np.uint32), out])
    z, y, x = np.indices(out.shape)
    want = 7 + (x % 5 | y % 3 << 4 | z % 2 << 8 | x // 5 << 12 | y // 3 << 16 | z // 2 << 20)
    assert (out == want).all()
    assert kernel.resources["wave_size"] == 64


@needs_clang
@pytest.mark.parametrize("target, arch", [("gfx9-4-generic", "gfx942"), ("gfx9-4-generic", "gfx950"),
                                          ("gfx11-generic", "gfx1100"), ("gfx12-generic", "gfx1201")])  # fmt: skip
def test_generic_targets(target, arch):
    """Code for a generic target (v6) runs on each chip of its family, and on no other."""
    if arch not in ARCHS:
        pytest.skip(f"{arch} is not there")
    wave = 32 if arch in RDNA else 64
    code = compiled(target, wave, "")
    check(code, arch, wave)
    other = "gfx1201" if arch != "gfx1201" else "gfx942"
    with pytest.raises(ValueError, match=f"the device is {other}"):
        sim.Device(other, threads=1).load(code)
