"""What the instruction tests share: encoding by llvm-mc, lanes as NumPy rows, operand values with edge cases."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import numpy as np
import simlib

from tilelang import sim

LANES = 64
F32 = [0, 1 << 31, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x007FFFFF, 0x00800000,
       0x7F7FFFFF, 0x40490FDB, 0x42280000, 0xC2280000, 0x4B800001, 0x3EAAAAAB]  # fmt: skip
F16 = [0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x4248, 0x5555, 0xD555]
F64 = [0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 1, (1 << 63) | 1, (1 << 52) - 1,
       1 << 52, (0x7FF << 52) - 1, 0x400921FB54442D18]  # fmt: skip
INTS = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x8000, 0x7FFF, 0x80008000, 0xFF, 0x80, 0x12345678]


def encode(arch: str, lines: list[str], wave: int = 0, features: tuple[str, ...] = ()) -> list[bytes | None]:
    """Machine code of each line, None where the chip has no such instruction; wave: 0 = the chip's default;
    features: more of LLVM's, "+" before each."""
    cmd = [simlib.llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-show-encoding"]
    features = ((f"+wavefrontsize{wave}",) if wave else ()) + features
    cmd += ["-mattr=" + ",".join(features)] if features else []
    run = subprocess.run(cmd, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    bad = {int(m[1]) for m in re.finditer(r"<stdin>:(\d+):\d+: error:", run.stderr)}
    codes = iter(re.findall(r"encoding: \[([^\]]*)\]", run.stdout))
    out: list[bytes | None] = []
    for i in range(1, len(lines) + 1):
        out.append(None if i in bad else bytes(int(x, 16) for x in next(codes).split(",")))
    assert next(codes, None) is None, "more encodings than lines"
    return out


def values(rng: np.random.Generator, kind: str, n: int = LANES) -> np.ndarray:
    """n values as uint64 bit patterns of the type: edge cases mixed with random ones, often equal in pairs."""
    bits = int(kind[-2:])
    edge = {"f16": F16, "f32": F32, "f64": F64}.get(kind, [x & ((1 << bits) - 1) for x in INTS])
    if kind in ("i64", "u64"):
        edge = [*INTS, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, 1 << 32]
    e = np.array([edge[i] for i in rng.integers(0, len(edge), n)], np.uint64)
    r = rng.integers(0, 1 << bits if bits < 64 else (1 << 64) - 1, n, dtype=np.uint64)
    return np.where(rng.random(n) < 0.6, e, r)


def number(bits: np.ndarray, kind: str) -> np.ndarray:
    """Bit patterns as numbers: Python ints (object array) for integers, float64 for floats (exact)."""
    n = int(kind[-2:])
    if kind[0] == "f":
        with np.errstate(invalid="ignore"):
            return bits.astype(f"u{n // 8}").view(f"f{n // 8}").astype(np.float64)
    out = bits.astype(object)
    if kind[0] == "i":
        return np.array([x - (1 << n) if x >> (n - 1) & 1 else x for x in out.tolist()], object)
    return out


def mask_of(bools: Any) -> int:
    """Lane mask of a sequence of truth values."""
    return sum(1 << i for i, b in enumerate(bools) if b)


FORMAT = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}
"""Bits of exponent and mantissa."""


def float_class(bits: int, kind: str) -> int:
    """Bit number of v_cmp_class."""
    e, m = FORMAT[kind]
    sign, exp, man = bits >> (e + m) & 1, bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    if exp == (1 << e) - 1 and man:
        return man >> (m - 1) & 1
    if exp == (1 << e) - 1:
        return 2 if sign else 9
    if exp:
        return 3 if sign else 8
    if man:
        return 4 if sign else 7
    return 5 if sign else 6


def hexrow(row: Any) -> str:
    """A vector register of the state: 8 digits a lane."""
    return "".join(f"{int(x) & 0xFFFFFFFF:08x}" for x in row)


def undefined(
    arch: str, lines: list[str], reg: int, known: dict[int, int] | None = None, scalars: dict[str, str] | None = None
) -> bool:
    """Does v<reg> depend on registers other than `known` ({register: value in all lanes}) and `scalars` after the
    instructions?"""
    lanes, vcc = (32, "vcc_lo") if arch in ("gfx1100", "gfx1201") else (64, "vcc")
    code = b"".join(encode(arch, [*lines, "s_nop 4", f"v_cmp_eq_u32 {vcc}, 0, v{reg}", "s_cbranch_vccnz 0"]))
    state = {"wave": lanes, "v": {str(k): hexrow([v] * lanes) for k, v in (known or {}).items()}, "s": scalars or {}}
    try:
        sim.execute(arch, code, state, checks=["init"])
    except sim.SimulatorFault as e:
        assert "undefined value of vcc" in str(e)
        return True
    return False


def row(out: dict[str, Any], reg: str | int) -> np.ndarray:
    """A vector register of a state as uint32 lanes."""
    text = out["v"][str(reg)]
    return np.array([int(text[8 * i : 8 * i + 8], 16) for i in range(LANES)], np.uint32)


def wide(out: dict[str, Any], reg: int, n: int) -> np.ndarray:
    """n registers as uint64 (n = 1, 2)."""
    lo = row(out, reg).astype(np.uint64)
    return lo if n == 1 else lo | row(out, reg + 1).astype(np.uint64) << np.uint64(32)


def put(state: dict[str, Any], reg: int, bits: np.ndarray, n: int = 1) -> None:
    """Sets one or two vector registers of a state."""
    state["v"][str(reg)] = hexrow(bits & np.uint64(0xFFFFFFFF))
    if n == 2:
        state["v"][str(reg + 1)] = hexrow(bits >> np.uint64(32))


def execute(arch: str, code: bytes, state: dict[str, Any]) -> dict[str, Any]:
    """tilelang.sim.execute with a fault that names the instruction."""
    return sim.execute(arch, code, state)
