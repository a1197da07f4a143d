"""MODE on every chip: the four rounding directions and the four ways with subnormals of f16, f32 and f64, signalling
NaNs in minima and maxima by the IEEE bit, halves that overflow (FP16_OVFL). Expected values come from exact fractions
rounded here."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import hexrow, values  # noqa: E402
from rdna_cases import assemble, rows_of  # noqa: E402
from rdna_ref import FORMAT, is_nan, order, quiet, real  # noqa: E402

CHIPS = [("gfx90a", 64), ("gfx942", 64), ("gfx950", 64), ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32),
         ("gfx1201", 64)]  # fmt: skip
NEAREST, UP, DOWN, ZERO = range(4)


def rounded(x: Fraction, kind: str, mode: int, negative_zero: bool = False) -> int:
    """The pattern of a number, rounded in a direction; overflow as IEEE 754 has it."""
    e, m = FORMAT[kind]
    if x == 0:
        return int(negative_zero) << (e + m)
    sign, a = int(x < 0), abs(x)
    exp = max(2 - (1 << (e - 1)), a.numerator.bit_length() - a.denominator.bit_length())
    while exp > 2 - (1 << (e - 1)) and a < Fraction(2) ** exp:
        exp -= 1
    step = Fraction(2) ** (exp - m)
    q, rest = divmod(a, step)
    away = {NEAREST: rest * 2 > step or (rest * 2 == step and q & 1), UP: rest and not sign, DOWN: rest and sign,
            ZERO: 0}[mode]  # fmt: skip
    q += bool(away)
    bias = (1 << (e - 1)) - 1
    code = q if q < 1 << m else ((exp + bias - 1) << m) + q
    if code >= ((1 << e) - 1) << m:
        inf = mode == NEAREST or (mode == UP and not sign) or (mode == DOWN and sign)
        code = (((1 << e) - 1) << m) - (0 if inf else 1)
    return sign << (e + m) | int(code)


def flushed(x: int, kind: str) -> int:
    e, m = FORMAT[kind]
    return x if x >> m & ((1 << e) - 1) else x & 1 << (e + m)


OPS: dict[str, Any] = {
    "add": lambda a, b, c: a + b,
    "mul": lambda a, b, c: a * b,
    "fma": lambda a, b, c: a * b + c,
}


def draw(rng: np.random.Generator, kind: str, n: int) -> list[int]:
    """Finite numbers close to each other in size, subnormals, and the ends of the range."""
    e, m = FORMAT[kind]
    bias = (1 << (e - 1)) - 1
    out = []
    for _ in range(n):
        exp = int(rng.choice([0, 0, 1, 2, bias - 1, bias, bias, bias + 1, bias + m // 2, (1 << e) - 2]))
        out.append(int(rng.integers(0, 2)) << (e + m) | exp << m | int(rng.integers(0, 1 << m)))
    return out


def put(state: dict[str, Any], reg: int, x: list[int], kind: str) -> None:
    state["v"][str(reg)] = hexrow([v & 0xFFFFFFFF for v in x])
    if kind == "f64":
        state["v"][str(reg + 1)] = hexrow([v >> 32 for v in x])


def get(out: dict[str, Any], reg: int, kind: str) -> list[int]:
    lo = rows_of(out["v"][str(reg)]).tolist()
    if kind == "f64":
        return [x | y << 32 for x, y in zip(lo, rows_of(out["v"][str(reg + 1)]).tolist(), strict=True)]
    return [x & 0xFFFF for x in lo] if kind == "f16" else lo


def name(arch: str, op: str, kind: str) -> list[str]:
    """Texts of an operation on v8, v12, v16 to v4: two forms where there are."""
    n = 3 if op == "fma" or op.endswith("3") else 2
    r = ["v[4:5]", "v[8:9]", "v[12:13]", "v[16:17]"] if kind == "f64" else ["v4", "v8", "v12", "v16"]
    if kind == "f16" and not arch.startswith("gfx9"):
        r = [x + ".l" for x in r]
    args = ", ".join(r[: n + 1])
    return [f"v_{op}_{kind}{form} {args}" for form in ("_e32", "_e64", "")]


@pytest.mark.parametrize(("arch", "wave"), CHIPS)
def test_rounding_and_subnormals(arch, wave):
    rng = np.random.default_rng(61)
    cases = [(t, o, k) for o in OPS for k in FORMAT for t in name(arch, o, k)]
    modes = [(r, 3) for r in range(4)] + [(0, d) for d in range(3)] + [(3, 0)]
    seen = 0
    for (text, op, kind), code in zip(cases, assemble(arch, wave, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        for rnd, den in modes:
            src = [draw(rng, kind, wave) for _ in range(3)]
            state: dict[str, Any] = {"wave": wave, "v": {"4": "0" * 8 * wave, "5": "0" * 8 * wave}}
            for i, x in enumerate(src):
                put(state, 8 + 4 * i, x, kind)
            narrow = kind == "f32"
            state["mode"] = {"fp32_round" if narrow else "fp16_64_round": rnd,
                             "fp32_denorm" if narrow else "fp16_64_denorm": den}  # fmt: skip
            got = get(sim.execute(arch, code, state), 4, kind)
            for lane in range(wave):
                x = [s[lane] if den & 1 else flushed(s[lane], kind) for s in src]
                exact = OPS[op](*(Fraction(real(v, kind)) for v in x))
                want = rounded(exact, kind, rnd)
                want = want if den & 2 else flushed(want, kind)
                bits = 1 << (sum(FORMAT[kind]))
                ok = got[lane] == want or (exact == 0 and not (got[lane] | want) & ~bits)
                assert ok, f"{text} round {rnd} denorm {den}: lane {lane} is {got[lane]:x}, not {want:x} of {x}"
        seen += 1
    assert seen >= 9


@pytest.mark.parametrize(("arch", "wave"), CHIPS)
def test_rounding_of_conversions(arch, wave):
    rng = np.random.default_rng(62)
    low = "" if arch.startswith("gfx9") else ".l"
    cases = [(f"v_cvt_f16_f32_e32 v4{low}, v8", "f32", "f16", "fp16_64_round"),
             ("v_cvt_f32_f64_e32 v4, v[8:9]", "f64", "f32", "fp16_64_round"),
             ("v_cvt_f32_i32_e32 v4, v8", "i32", "f32", "fp32_round"),
             ("v_cvt_f32_u32_e32 v4, v8", "u32", "f32", "fp32_round")]  # fmt: skip
    for (text, kind, to, field), code in zip(cases, assemble(arch, wave, [c[0] for c in cases]), strict=True):
        assert code is not None, text
        for rnd in range(4):
            if kind[0] == "f":
                e, m = FORMAT[to]
                src = [int(np.array(v, f"f{int(kind[1:]) // 8}").view(f"u{int(kind[1:]) // 8}"))
                       for v in rng.normal(0, 1, wave) * 2.0 ** rng.integers(-e * 3, e * 3, wave)]  # fmt: skip
                exact = [Fraction(real(v, kind)) for v in src]
            else:
                src = [int(v) for v in values(rng, kind, wave)]
                exact = [Fraction(v - (1 << 32) if kind == "i32" and v >> 31 else v) for v in src]
            state: dict[str, Any] = {"wave": wave, "v": {"4": "0" * 8 * wave}, "mode": {field: rnd}}
            put(state, 8, src, kind)
            got = get(sim.execute(arch, code, state), 4, to)
            for lane in range(wave):
                want = rounded(exact[lane], to, rnd)
                assert got[lane] == want, f"{text} round {rnd}: {src[lane]:x} gives {got[lane]:x}, not {want:x}"


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_pairs_follow_the_modes(arch):
    rng = np.random.default_rng(63)
    code = assemble(arch, 32, ["v_dual_add_f32 v4, v8, v12 :: v_dual_mul_f32 v5, v9, v13"])[0]
    assert code
    for rnd, den in ((0, 0), (1, 3), (2, 3), (3, 3), (0, 1), (0, 2)):
        src = [draw(rng, "f32", 32) for _ in range(4)]
        state: dict[str, Any] = {"wave": 32, "v": {"4": "0" * 256, "5": "0" * 256},
                                 "mode": {"fp32_round": rnd, "fp32_denorm": den}}  # fmt: skip
        for r, x in zip((8, 12, 9, 13), src, strict=True):
            put(state, r, x, "f32")
        out = sim.execute(arch, code, state)
        for reg, (a, b), f in ((4, src[:2], OPS["add"]), (5, src[2:], OPS["mul"])):
            got = get(out, reg, "f32")
            for lane in range(32):
                x = [s[lane] if den & 1 else flushed(s[lane], "f32") for s in (a, b)]
                exact = f(*(Fraction(real(v, "f32")) for v in x), 0)
                want = rounded(exact, "f32", rnd)
                want = want if den & 2 else flushed(want, "f32")
                same = got[lane] == want or (exact == 0 and not (got[lane] | want) & 0x7FFFFFFF)
                assert same, f"v{reg} round {rnd} denorm {den}: lane {lane}"


def signalling(x: int, kind: str) -> bool:
    return is_nan(x, kind) and not x >> (FORMAT[kind][1] - 1) & 1


@pytest.mark.parametrize(("arch", "wave"), CHIPS)
def test_signalling_nans_in_minima(arch, wave):
    """IEEE on (gfx9, gfx11): a signalling NaN comes out quiet; off, and in gfx12's min_num: it is a NaN like others,
    the number wins. gfx12's minimum: every NaN comes out quiet."""
    rng = np.random.default_rng(64)
    cases = [(t, o, k) for o in ("min", "max", "min_num", "max_num", "minimum", "maximum") for k in FORMAT
             for t in name(arch, o, k)]  # fmt: skip
    seen = 0
    for (text, op, kind), code in zip(cases, assemble(arch, wave, [c[0] for c in cases]), strict=True):
        if code is None or (arch == "gfx1201" and "_" not in op and len(op) == 3):  # there other names of min_num
            continue
        e, m = FORMAT[kind]
        for ieee in (0, 1):
            pool = [((1 << e) - 1) << m | 5, ((1 << e) - 1) << m | 1 << (m - 1), 1 << (e + m), 0, 3 << (m - 1),
                    1 << (e + m) | 3 << (m - 1), ((1 << e) - 1) << m]  # fmt: skip
            src = [[int(rng.choice(np.array(pool, object))) for _ in range(wave)] for _ in range(2)]
            state: dict[str, Any] = {"wave": wave, "v": {"4": "0" * 8 * wave, "5": "0" * 8 * wave},
                                     "mode": {"ieee": ieee}}  # fmt: skip
            for i, x in enumerate(src):
                put(state, 8 + 4 * i, x, kind)
            got = get(sim.execute(arch, code, state), 4, kind)
            for lane in range(wave):
                a, b = src[0][lane], src[1][lane]
                if "mum" in op:
                    nan = is_nan(a, kind) or is_nan(b, kind)
                else:
                    quieting = ieee and "num" not in op and (signalling(a, kind) or signalling(b, kind))
                    nan = quieting or (is_nan(a, kind) and is_nan(b, kind))
                have = got[lane]
                if nan:
                    assert is_nan(have, kind), f"{text} ieee {ieee}: {a:x}, {b:x} give {have:x}"
                    assert not ieee or not signalling(have, kind), f"{text}: {a:x}, {b:x} give {have:x}"
                    continue
                f = max if "max" in op else min
                want = b if is_nan(a, kind) else a if is_nan(b, kind) else f(a, b, key=lambda v: order(v, kind))
                assert have == want, f"{text} ieee {ieee}: {a:x}, {b:x} give {have:x}, not {want:x}"
        seen += 1
    assert seen >= 6
    assert quiet(0x7F800001, "f32") == 0x7FC00001


@pytest.mark.parametrize(("arch", "wave"), CHIPS)
def test_halves_that_overflow(arch, wave):
    """FP16_OVFL: a finite result too large for a half is the largest one; infinities that are meant stay."""
    low = "" if arch.startswith("gfx9") else ".l"
    big, inf, most = 0x7B00, 0x7C00, 0x7BFF  # 57344
    cases = {  # text -> [(sources, with the bit, without)]
        f"v_add_f16_e32 v4{low}, v8{low}, v12{low}":
            [((big, big), most, inf), ((0xFB00, 0xFB00), most | 0x8000, inf | 0x8000), ((inf, big), inf, inf),
             ((0x3C00, 0x3C00), 0x4000, 0x4000)],
        f"v_mul_f16_e64 v4{low}, v8{low}, v12{low}": [((big, 0xC400), 0xFBFF, 0xFC00), ((0xFC00, 0xC400), inf, inf)],
        f"v_rcp_f16_e32 v4{low}, v8{low}": [((0, 0), inf, inf), ((0x0010, 0), most, inf)],
        "v_pk_add_f16 v4, v8, v12": [((big << 16 | 0x3C00,) * 2, most << 16 | 0x4000, inf << 16 | 0x4000),
                                     ((inf << 16 | big, big << 16 | big), inf << 16 | most, inf << 16 | inf)],
        f"v_cvt_f16_f32_e32 v4{low}, v8": [((0x7F7FFFFF, 0), most, inf), ((0x7F800000, 0), inf, inf)],
    }  # fmt: skip
    for (text, table), code in zip(cases.items(), assemble(arch, wave, list(cases)), strict=True):
        assert code is not None, text
        for ovfl in (0, 1):
            for src, with_bit, without in table:
                state: dict[str, Any] = {"wave": wave, "v": {"4": "0" * 8 * wave}, "mode": {"fp16_ovfl": ovfl}}
                for i, x in enumerate(src):
                    put(state, 8 + 4 * i, [x] * wave, "f32")
                got = rows_of(sim.execute(arch, code, state)["v"]["4"])
                want = with_bit if ovfl else without
                assert (got == want).all(), (
                    f"{text} fp16_ovfl {ovfl}: {src[0]:x}, {src[1]:x} give {got[0]:x}, not {want:x}"
                )
