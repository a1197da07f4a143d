"""What vector operations of gfx11 and gfx12 compute that the outside vectors do not reach, in plain Python: exact
integers, fractions and float64, one lane at a time, on bit patterns."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from isa_ref import FORMAT, float_class, values
from rdna_cases import M32, Case, N


def s(x: int, n: int = 32) -> int:
    x &= (1 << n) - 1
    return x - (1 << n) if x >> (n - 1) else x


def real(bits: int, kind: str) -> float:
    n = int(kind[1:])
    return float(np.array(bits, f"u{n // 8}").view(f"f{n // 8}"))


def pattern(x: float, kind: str) -> int:
    n = int(kind[1:])
    with np.errstate(over="ignore"):
        return int(np.array(x, f"f{n // 8}").view(f"u{n // 8}"))


def is_nan(bits: int, kind: str) -> bool:
    return math.isnan(real(bits, kind))


def quiet(bits: int, kind: str) -> int:
    return bits | 1 << (FORMAT[kind][1] - 1)


def order(bits: int, kind: str) -> int:
    """An integer that orders numbers, -0 below +0."""
    n = int(kind[1:])
    return (1 << (n - 1)) - 1 - bits if bits >> (n - 1) else bits | 1 << (n - 1)


def pick(f: Any, nan_wins: bool, kind: str) -> Callable[[int, int], int]:
    """min or max of two patterns; nan_wins: IEEE 754-2019 minimum and maximum, else the number."""

    def two(a: int, b: int) -> int:
        na, nb = is_nan(a, kind), is_nan(b, kind)
        if na or nb:
            if nan_wins or (na and nb):
                return quiet(a if na else b, kind)
            return b if na else a
        return f(a, b, key=lambda x: order(x, kind))

    return two


def three(first: Any, second: Any) -> Callable[[int, int, int], int]:
    return lambda a, b, c: second(first(a, b), c)


def halves(f: Any) -> Any:
    return lambda *x: f(*(v & 0xFFFF for v in x)) | f(*(v >> 16 for v in x)) << 16


def octets(x: int) -> list[int]:
    return [x >> k & 255 for k in (0, 8, 16, 24)]


def sad(a: int, b: int, masked: bool = False) -> int:
    return sum(abs(x - y) for x, y in zip(octets(a), octets(b), strict=True) if y or not masked)


def slide(masked: bool, bits: int) -> Callable[[int, int, int], int]:
    """Sums of absolute differences of bytes k .. k + 3 of a to b, added to the k-th part of c."""
    low = (1 << bits) - 1
    return lambda a, b, c: sum(
        (sad(a >> 8 * k & M32, b, masked) + (c >> bits * k & low) & low) << bits * k for k in range(4)
    )


def lerp(a: int, b: int, c: int) -> int:
    parts = zip(octets(a), octets(b), octets(c), strict=True)
    return sum((x + y + (z & 1) >> 1) << 8 * i for i, (x, y, z) in enumerate(parts))


def norm(bits: int, kind: str, n: int, low: float) -> int:
    x = real(bits, kind)
    return 0 if math.isnan(x) else round(Fraction(max(low, min(1.0, x))) * n) & 0xFFFF


def pair(f: Callable[[int], int]) -> Callable[[int, int], int]:
    return lambda a, b: f(a) | f(b) << 16


def byte_of(bits: int) -> int:
    x = real(bits, "f32")
    return 0 if math.isnan(x) else math.trunc(max(0.0, min(255.0, x)))


FP8 = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}


def fp8(x: int, kind: str) -> float:
    return float(np.array(x & 255, np.uint8).view(FP8[kind]))


def dot4(ka: str, kb: str) -> Callable[[int, int, int], int]:
    return lambda a, b, c: pattern(
        sum(fp8(x, ka) * fp8(y, kb) for x, y in zip(octets(a), octets(b), strict=True)) + real(c, "f32"), "f32"
    )


def stochastic(kind: str) -> Callable[[int, int, int], int]:
    """Rounds away from zero when the fraction between two neighbours and the noise carry."""
    mb, emin = (3, -6) if kind == "fp8" else (2, -14)

    def one(a: int, noise: int, old: int) -> int:
        sign, e, m = a >> 31, (a >> 23 & 255) - 127, Fraction(a & 0x7FFFFF | 0x800000, 1 << 23)
        x = m * Fraction(2) ** e
        step = Fraction(2) ** (max(e, emin) - mb)
        q = math.floor(x / step)
        q += (x / step - q) + Fraction(noise >> (9 + mb), 1 << (23 - mb)) >= 1
        code = int(np.array(float(q * step)).astype(FP8[kind]).view(np.uint8))
        return old & 0xFFFFFF00 | sign << 7 | code

    return one


def nearest(kind: str) -> Callable[[int, int, int], int]:
    def one(x: int) -> int:
        return int(np.array(real(x, "f32"), np.float32).astype(FP8[kind]).view(np.uint8))

    return lambda a, b, old: old & 0xFFFF0000 | one(a) | one(b) << 8


def mullit(a: int, b: int, c: int) -> int:
    x, y, z = (real(v, "f32") for v in (a, b, c))
    if math.isnan(y) or math.isnan(z) or z <= 0 or b == 0xFF7FFFFF or y == -math.inf:
        return 0xFF7FFFFF
    return 0 if x == 0 or y == 0 else pattern(x * y, "f32")


def dx9(a: int, b: int, c: int) -> int:
    x, y = real(a, "f32"), real(b, "f32")
    return c if x == 0 or y == 0 else pattern(x * y + real(c, "f32"), "f32")


def two_over_pi(bits: int) -> int:
    """floor(2 / pi * 2^bits), by Machin's formula."""
    one = 1 << (bits + 64)

    def arctan(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    pi = 4 * (4 * arctan(5) - arctan(239))
    return (2 * one << bits) // pi


TWO_OVER_PI = two_over_pi(1201)


def trig_preop(a: int, seg: int) -> int:
    e = a >> 52 & 0x7FF
    shift = (seg & 31) * 53 + max(0, e - 1077)
    kept = TWO_OVER_PI >> (1201 - 53 - shift) if shift <= 1201 - 53 else TWO_OVER_PI << (shift + 53 - 1201)
    part = kept & (1 << 53) - 1
    exp = -53 - shift + (128 if e >= 1968 else 0)
    return pattern(float(Fraction(part) * Fraction(2) ** exp), "f64")


def cube(what: str) -> Callable[[int, int, int], int]:
    def one(a: int, b: int, c: int) -> int:
        x, y, z = (real(v, "f32") for v in (a, b, c))
        ax, ay, az = abs(x), abs(y), abs(z)
        if az >= ax and az >= ay:
            face, sc, tc, ma = (5, -x, -y, z) if z < 0 else (4, x, -y, z)
        elif ay >= ax:
            face, sc, tc, ma = (3, x, -z, y) if y < 0 else (2, x, z, y)
        else:
            face, sc, tc, ma = (1, z, -y, x) if x < 0 else (0, -z, -y, x)
        return pattern({"id": float(face), "sc": sc, "tc": tc, "ma": 2 * ma}[what], "f32")

    return one


def either_nan(a: float, b: float) -> bool:
    return a != a or b != b


INT_OPS: dict[str, Any] = {"f": lambda a, b: False, "lt": operator.lt, "eq": operator.eq, "le": operator.le,
           "gt": operator.gt, "ne": operator.ne, "ge": operator.ge, "t": lambda a, b: True}  # fmt: skip
FLOAT_OPS: dict[str, Any] = {
    "f": lambda a, b: False, "lt": operator.lt, "eq": operator.eq, "le": operator.le, "gt": operator.gt,
    "lg": lambda a, b: a < b or a > b, "ge": operator.ge, "o": lambda a, b: not either_nan(a, b), "u": either_nan,
    "nge": lambda a, b: not a >= b, "nlg": lambda a, b: not (a < b or a > b), "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b, "neq": lambda a, b: not a == b, "nlt": lambda a, b: not a < b,
    "t": lambda a, b: True,
}  # fmt: skip


# ---- tables -------------------------------------------------------------------------------------------------
# operation -> (kinds of the sources, kind of the result, function of patterns). A kind is a type, or one of the
# drawings of `draw`; "old" is the old destination.

Row = tuple[tuple[str, ...], str, Callable[..., int]]
OPS: dict[str, Row] = {
    **{f"v_cvt_norm_{t}16_f16": (("unit16",), f"{t}16", lambda a, n=n, low=low: norm(a, "f16", n, low))
       for t, n, low in (("i", 32767, -1.0), ("u", 65535, 0.0))},
    **{f"v_cvt_pk_norm_{t}16_f{b}": ((f"unit{b}",) * 2, "u32",
                                     pair(lambda a, b=b, n=n, low=low: norm(a, f"f{b}", n, low)))
       for t, n, low in (("i", 32767, -1.0), ("u", 65535, 0.0)) for b in (16, 32)},
    "v_cvt_off_f32_i4": (("u32",), "f32", lambda a: pattern(s(a, 4) / 16, "f32")),
    "v_cvt_pk_u8_f32": (("byte", "u32", "u32"), "u32",
                        lambda a, b, c: c & ~(255 << 8 * (b & 3)) | byte_of(a) << 8 * (b & 3)),
    "v_fma_f16": (("number16",) * 3, "f16",
                  lambda a, b, c: pattern(real(a, "f16") * real(b, "f16") + real(c, "f16"), "f16")),
    "v_mad_i16": (("i16",) * 3, "u16", lambda a, b, c: a * b + c),
    "v_mad_i32_i16": (("i16", "i16", "u32"), "u32", lambda a, b, c: s(a, 16) * s(b, 16) + c),
    "v_max_i16": (("i16",) * 2, "i16", lambda a, b: max(s(a, 16), s(b, 16))),
    "v_med3_u16": (("u16",) * 3, "u16", lambda *x: sorted(x)[1]),
    "v_lerp_u8": (("u32",) * 3, "u32", lerp),
    "v_msad_u8": (("u32",) * 3, "u32", lambda a, b, c: sad(a, b, True) + c),
    "v_qsad_pk_u16_u8": (("u64", "u32", "u64"), "u64", slide(False, 16)),
    "v_mqsad_pk_u16_u8": (("u64", "u32", "u64"), "u64", slide(True, 16)),
    "v_mqsad_u32_u8": (("u64", "u32", "u128"), "u128", slide(True, 32)),
    "v_mullit_f32": (("f32",) * 3, "f32", mullit),
    "v_fma_dx9_zero_f32": (("small",) * 3, "f32", dx9),
    "v_fmac_dx9_zero_f32": (("small", "small", "oldsmall"), "f32", dx9),
    "v_trig_preop_f64": (("f64", "u32"), "f64", trig_preop),
    **{f"v_cube{w}_f32": (("plain32",) * 3, "f32", cube(w)) for w in ("id", "sc", "tc", "ma")},
    **{f"v_dot4_f32_{a}_{b}": ((f"{a}x4", f"{b}x4", "small"), "f32", dot4(a, b)) for a in FP8 for b in FP8},
    **{f"v_cvt_sr_{k}_f32": (("tiny", "u32", "old"), "u32", stochastic(k)) for k in FP8},
    **{f"v_cvt_pk_{k}_f32": (("tiny", "tiny", "old"), "u32", nearest(k)) for k in FP8},
}  # fmt: skip


def min_max() -> dict[str, Row]:
    out: dict[str, Row] = {}
    for kind in ("f16", "f32", "f64"):
        for names, nan_wins in (
            (("min", "max"), False),
            (("min_num", "max_num"), False),
            (("minimum", "maximum"), True),
        ):
            lo, hi = pick(min, nan_wins, kind), pick(max, nan_wins, kind)
            for name, f in zip(names, (lo, hi), strict=True):
                out[f"v_{name}_{kind}"] = ((kind, kind), kind, f)
                if kind == "f64":
                    continue
                x, _, num = name.partition("_")
                out[f"v_{x}3{'_' if num else ''}{num}_{kind}"] = ((kind,) * 3, kind, three(f, f))
                if kind == "f16":
                    out[f"v_pk_{name}_f16"] = (("2xf16", "2xf16"), "2xf16", halves(f))
            if kind == "f64":
                continue
            a, b, tail = names[0].split("_")[0], names[1].split("_")[0], "_num" if "_num" in names[0] else ""
            out[f"v_{a}{b}{tail}_{kind}"] = ((kind,) * 3, kind, three(lo, hi))
            out[f"v_{b}{a}{tail}_{kind}"] = ((kind,) * 3, kind, three(hi, lo))
            if not nan_wins:
                med = lambda *v, kind=kind: sorted(v, key=lambda x: order(x, kind))[1]  # noqa: E731
                out[f"v_med3{tail}_{kind}"] = ((f"number{kind[1:]}",) * 3, kind, med)
    return out


OPS |= min_max()


def draw(rng: np.random.Generator, kind: str) -> np.ndarray:
    """N patterns of a kind, as Python integers."""
    if kind in ("f16", "f32", "f64", "u32", "u64", "i16", "u16", "i32", "i64"):
        out = values(rng, kind, N)
        if kind[0] == "f":  # quiet NaNs only
            e, m = FORMAT[kind]
            nan = (out & np.uint64((1 << (e + m)) - 1)) > np.uint64(((1 << e) - 1) << m)
            out = np.where(nan, out | np.uint64(1 << (m - 1)), out)
        return out.astype(object)
    if kind == "2xf16":
        return draw(rng, "f16") | draw(rng, "f16") << 16
    if kind == "u128":
        return values(rng, "u64", N).astype(object) | values(rng, "u64", N).astype(object) << 64
    if kind.startswith("number"):
        x = rng.normal(0, 4, N).astype(f"f{int(kind[6:]) // 8}")
    elif kind.startswith("unit"):
        x = rng.uniform(-1.5, 1.5, N).astype(f"f{int(kind[4:]) // 8}")
        for n in (32767, 65535):  # no ties nearby: how they go is not documented
            x = np.where(np.abs(np.abs(x.astype(np.float64)) * n % 1 - 0.5) < 0.1, x.dtype.type(0.25), x)
        x = np.where(np.abs(np.abs(x.astype(np.float64)) * 65535 % 1 - 0.5) < 0.1, x.dtype.type(1), x)
    elif kind == "byte":
        x = np.where(rng.random(N) < 0.3, rng.integers(-3, 300, N), rng.uniform(-300, 600, N)).astype(np.float32)
    elif kind in ("small", "oldsmall"):
        x = rng.integers(-9, 10, N).astype(np.float32)
    elif kind == "plain32":
        x = rng.integers(-4, 5, N).astype(np.float32) * np.float32(1.5)
    elif kind == "tiny":  # in range of both 8-bit formats, down to their subnormals
        x = (rng.uniform(1, 2, N) * 2.0 ** rng.integers(-9, 8, N) * rng.choice([-1, 1], N)).astype(np.float32)
    elif kind.endswith("x4"):
        octet = rng.uniform(-3, 3, (N, 4)).astype(FP8[kind[:3]]).view(np.uint8).astype(object)
        return octet[:, 0] | octet[:, 1] << 8 | octet[:, 2] << 16 | octet[:, 3] << 24
    else:
        raise AssertionError(kind)
    return x.view(f"u{x.dtype.itemsize}").astype(object)


def split(x: np.ndarray, n: int) -> list[np.ndarray]:
    return [np.array([int(v) >> 32 * k & M32 for v in x], np.uint32) for k in range(n)]


def width(kind: str) -> int:
    return {"u128": 4}.get(kind, 2 if kind.endswith("64") else 1)


def reference_case(op: str, rng: np.random.Generator) -> Case | None:
    """A case of an operation of the tables (or a comparison) with values drawn anew."""
    name = op.replace("v_cmpx_", "v_cmp_")
    if name.startswith("v_cmp_"):
        return compare_case(op, name, rng)
    if op not in OPS:
        return None
    kinds, result, f = OPS[op]
    old = draw(rng, "u64" if width(result) > 1 else "u32")
    if width(result) == 4:
        old = draw(rng, "u128")
    src = [draw(rng, k) if k != "old" else old for k in kinds]
    if "oldsmall" in kinds:
        old = src[-1]
    bits = {"2xf16": 32, "u128": 128}.get(result) or int(result[1:])
    want = np.array([f(*(int(x) for x in row)) & ((1 << bits) - 1) for row in zip(*src, strict=True)], object)
    half = None
    if "16" in op:
        kinds16 = [k.endswith("16") and "x" not in k for k in (result, *kinds)]
        half = tuple(kinds16)
    if bits == 16:
        want = np.array([int(o) & 0xFFFF0000 | int(w) for o, w in zip(old, want, strict=True)], object)
    shown = [k for k in kinds if not k.startswith("old")]
    cmp: list[Any] = [None] * width(result)
    if result in ("f16", "f32", "f64", "2xf16"):
        cmp[0] = {"type": result, **({"shift": 0} if result == "f16" else {})}
    return Case(op, [split(x, width(k)) for x, k in zip(src, shown, strict=False)], split(want, width(result)),
                split(old, width(result)), M32, half, cmp=cmp, name=f"{op} by reference")  # fmt: skip


def compare_case(op: str, name: str, rng: np.random.Generator) -> Case:
    _, _, what, kind = name.split("_")
    a = draw(rng, kind)
    if what == "class":
        b = np.array(rng.integers(0, 1024, N), object)
        hit = [int(m) >> float_class(int(x), kind) & 1 for x, m in zip(a, b, strict=True)]
    else:
        b = np.where(rng.random(N) < 0.3, a, draw(rng, kind))
        f = FLOAT_OPS[what] if kind[0] == "f" else INT_OPS[what]
        n = int(kind[1:])
        view = (lambda x: real(x, kind)) if kind[0] == "f" else (lambda x: s(x, n)) if kind[0] == "i" else int
        hit = [f(view(int(x)), view(int(y))) for x, y in zip(a, b, strict=True)]
    mask = sum(1 << i for i, h in enumerate(hit) if h)
    src = [split(a, width(kind)), split(b, 1 if what == "class" else width(kind))]
    half = (True, True) if kind.endswith("16") else None
    return Case(op, src, None, [], M32, half, mask=mask, name=f"{op} by reference")
