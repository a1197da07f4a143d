"""Instructions and encodings that the outside vectors do not reach: comparisons, integer and float operations in all
encodings, scalar operations, special operands, rounding modes. Expected values come from plain Python: exact integers,
and float64 or exact fractions for floats."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import LANES, encode, execute, mask_of, number, put, values  # noqa: E402

ARCHS = [a for a in ("gfx90a", "gfx942", "gfx950") if sim._native.library().tlsim_arch_available(a.encode())]
assert "gfx942" in ARCHS
EXEC = 0xFFF0FFFF7FFFFFFE
MASK = (1 << 64) - 1

# ---- comparisons ------------------------------------------------------------------------------------------------


def either_nan(a: float, b: float) -> bool:
    return a != a or b != b


INT_OPS = {"f": lambda a, b: False, "lt": operator.lt, "eq": operator.eq, "le": operator.le, "gt": operator.gt,
           "ne": operator.ne, "ge": operator.ge, "t": lambda a, b: True}  # fmt: skip
FLOAT_OPS = {
    "f": lambda a, b: False,
    "lt": operator.lt,
    "eq": operator.eq,
    "le": operator.le,
    "gt": operator.gt,
    "lg": lambda a, b: a < b or a > b,
    "ge": operator.ge,
    "o": lambda a, b: not either_nan(a, b),
    "u": either_nan,
    "nge": lambda a, b: not a >= b,
    "nlg": lambda a, b: not (a < b or a > b),
    "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b,
    "neq": lambda a, b: not a == b,
    "nlt": lambda a, b: not a < b,
    "tru": lambda a, b: True,
}
TYPES = ["f16", "f32", "f64", "i16", "i32", "i64", "u16", "u32", "u64"]


def compare_cases(arch: str) -> list[tuple[str, str, str, str, str]]:
    """(text, form, x, operation, type)."""
    out = []
    for kind in TYPES:
        n = 2 if kind.endswith("64") else 1
        a, b = ("v[0:1]", "v[2:3]") if n == 2 else ("v0", "v2")
        for x in ("", "x"):
            for op in FLOAT_OPS if kind[0] == "f" else INT_OPS:
                name = f"v_cmp{x}_{op}_{kind}"
                out.append((f"{name}_e32 vcc, {a}, {b}", "e32", x, op, kind))
                mods = f"-{a}, |{b}|" if kind[0] == "f" else f"{a}, {b}"
                out.append((f"{name}_e64 s[10:11], {mods}", "e64", x, op, kind))
                sel = {"16": ("WORD_1", "WORD_0"), "32": ("DWORD", "DWORD")}.get(kind[-2:])
                if sel:
                    if kind[0] != "f" and kind.endswith("32"):
                        sel = ("WORD_1", "BYTE_1")
                    text = f"{name}_sdwa s[10:11], v0, v2 src0_sel:{sel[0]} src1_sel:{sel[1]}"
                    out.append((text, "sdwa", x, op, kind))
    return out


def selected(bits: np.ndarray, sel: str) -> np.ndarray:
    kind, _, n = sel.partition("_")
    width = {"DWORD": 32, "WORD": 16, "BYTE": 8}[kind]
    return bits >> np.uint64(int(n or 0) * width) & np.uint64((1 << width) - 1)


@pytest.mark.parametrize("arch", ARCHS)
def test_comparisons(arch):
    """Every v_cmp and v_cmpx in e32, e64 (with source modifiers) and sdwa; lanes that are off give 0."""
    cases = compare_cases(arch)
    rng = np.random.default_rng(1)
    seen = 0
    for (text, form, x, op, kind), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        assert code is not None, text
        n = 2 if kind.endswith("64") else 1
        a, b = values(rng, kind), values(rng, kind)
        b = np.where(rng.random(LANES) < 0.3, a, b)
        if form == "sdwa" or kind.endswith("16"):  # what is not selected holds noise
            junk = rng.integers(0, 1 << 16, LANES, dtype=np.uint64)
            a, b = (a << np.uint64(16) | junk, b | junk << np.uint64(16)) if kind.endswith("16") else (a, b)
            if kind.endswith("16") and form != "sdwa":
                a = a >> np.uint64(16) | junk << np.uint64(16)
        state: dict[str, Any] = {"exec": f"{EXEC:016x}", "vcc": "5" * 16, "v": {}, "s": {"10": "0", "11": "0"}}
        put(state, 0, a, n)
        put(state, 2, b, n)
        if form == "sdwa":
            sels = text.split("src0_sel:")[1].split(" src1_sel:")
            a, b = selected(a, sels[0]), selected(b, sels[1])
        low = np.uint64((1 << int(kind[-2:])) - 1)
        x0, x1 = number(a & low, kind), number(b & low, kind)
        if form == "e64" and kind[0] == "f":
            x0, x1 = -x0, np.abs(x1)
        f = FLOAT_OPS[op] if kind[0] == "f" else INT_OPS[op]
        want = mask_of(f(p, q) for p, q in zip(x0.tolist(), x1.tolist(), strict=True)) & EXEC
        out = execute(arch, code, state)
        got = int(out["vcc"], 16) if form == "e32" else int(out["s"]["10"], 16) | int(out["s"]["11"], 16) << 32
        assert got == want, f"{text}: {got:016x}, not {want:016x}"
        assert int(out["exec"], 16) == (want if x else EXEC), text
        if form != "e32":
            assert out["vcc"] == "5" * 16, text
        seen += 1
    assert seen > 400


def float_class(bits: int, kind: str) -> int:
    """Bit number of v_cmp_class."""
    e, m = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}[kind]
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


@pytest.mark.parametrize("arch", ARCHS)
def test_class_comparisons(arch):
    rng = np.random.default_rng(2)
    lines = []
    for kind in ("f16", "f32", "f64"):
        a = "v[0:1]" if kind == "f64" else "v0"
        for x in ("", "x"):
            lines += [f"v_cmp{x}_class_{kind}_e32 vcc, {a}, v2", f"v_cmp{x}_class_{kind}_e64 vcc, {a}, v2"]
            if kind != "f64":
                lines.append(f"v_cmp{x}_class_{kind}_sdwa vcc, v0, v2 src0_sel:DWORD src1_sel:WORD_0")
    for text, code in zip(lines, encode(arch, lines), strict=True):
        assert code is not None, text
        kind = text.split("class_")[1][:3]
        a, b = values(rng, kind), rng.integers(0, 1024, LANES, dtype=np.uint64)
        state: dict[str, Any] = {"exec": f"{EXEC:016x}", "v": {}}
        put(state, 0, a, 2 if kind == "f64" else 1)
        put(state, 2, b)
        want = mask_of(int(m) >> float_class(int(x), kind) & 1 for x, m in zip(a, b, strict=True)) & EXEC
        out = execute(arch, code, state)
        assert int(out["vcc"], 16) == want, text
        assert int(out["exec"], 16) == (want if "cmpx" in text else EXEC), text
