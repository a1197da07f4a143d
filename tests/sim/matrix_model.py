"""Model of one element of a matrix product by exact integers: the chain of fused multiply-adds, the chips' own sums.

An element is decoded to (kind, sign, significand, exponent): value = sig * 2**(e - fraction bits), e that of the
smallest normal for a subnormal. Sums are integers in a stated unit. Independent of the simulator's C code and of
the model in test_mfma_hw.py, which works with fractions.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import NamedTuple

FORMATS = {  # bits, exponent bits, fraction bits, bias, what the largest exponent means
    "f64": (64, 11, 52, 1023, "ieee"),
    "f32": (32, 8, 23, 127, "ieee"),
    "xf32": (32, 8, 23, 127, "ieee"),
    "f16": (16, 5, 10, 15, "ieee"),
    "bf16": (16, 8, 7, 127, "ieee"),
    "fp8fnuz": (8, 4, 3, 8, "fnuz"),
    "bf8fnuz": (8, 5, 2, 16, "fnuz"),
    "fp8": (8, 4, 3, 7, "fn"),
    "bf8": (8, 5, 2, 15, "ieee"),
    "fp6": (6, 2, 3, 1, "finite"),
    "bf6": (6, 3, 2, 3, "finite"),
    "fp4": (4, 2, 1, 1, "finite"),
}
QUIET = {"f32": 0x7FC00000, "f64": 0x7FF8 << 48, "f16": 0x7E00, "bf16": 0x7FC0}
INFINITY = {"f32": 0x7F800000, "f64": 0x7FF0 << 48, "f16": 0x7C00, "bf16": 0x7F80}


class Num(NamedTuple):
    """kind: "n" finite, "i" infinite, "q" not a number; lsb: exponent of the significand's last bit."""

    kind: str
    neg: int
    sig: int = 0
    e: int = 0
    lsb: int = 0
    sub: bool = False


@functools.lru_cache(1 << 18)
def decode(fmt: str, bits: int) -> Num:
    width, eb, fb, bias, top = FORMATS[fmt]
    neg, field, frac = bits >> (width - 1) & 1, bits >> fb & ((1 << eb) - 1), bits & ((1 << fb) - 1)
    if top == "fnuz" and bits == 1 << (width - 1):
        return Num("q", 0)
    if top == "ieee" and field == (1 << eb) - 1:
        return Num("q" if frac else "i", neg)
    if top == "fn" and field == (1 << eb) - 1 and frac == (1 << fb) - 1:
        return Num("q", neg)
    e = max(field, 1) - bias
    return Num("n", neg, frac | (1 << fb if field else 0), e, e - fb, field == 0)


def flushed(x: Num, sign: bool) -> Num:
    """x, a subnormal as a zero of its sign (or +0)."""
    return x._replace(sig=0, neg=x.neg if sign else 0) if x.kind == "n" and x.sub and x.sig else x


def shift(v: int, by: int) -> int:
    """floor(v * 2**by)."""
    return v << by if by >= 0 else v >> -by


def log2(n: int) -> int:
    return n.bit_length() - 1


def pack(total: int, lsb: int, fmt: str = "f32", ovfl: bool = False) -> int:
    """total * 2**lsb to nearest even, gradual underflow; an exact zero is +0."""
    width, eb, fb, bias, _ = FORMATS[fmt]
    sign, mag = (1 << (width - 1) if total < 0 else 0), abs(total)
    if not mag:
        return 0
    unit = max(log2(mag) + lsb, 1 - bias) - fb
    drop = unit - lsb
    if drop <= 0:
        r = mag << -drop
    else:
        r, rest, half = mag >> drop, mag & ((1 << drop) - 1), 1 << (drop - 1)
        r += rest > half or (rest == half and r & 1)
    if r >> (fb + 1):
        r, unit = r >> 1, unit + 1
    if not r >> fb:
        return sign | r
    field = unit + fb + bias
    if field >= (1 << eb) - 1:
        return sign | ((1 << eb) - 1 << fb) - (1 if ovfl else 0)
    return sign | field << fb | r - (1 << fb)


def fma(a: Num, b: Num, c: int, fmt: str, scale: int = 0) -> int:
    """Bits of a * b * 2**scale + c, rounded once; NaNs are the positive default."""
    n, neg, width = decode(fmt, c), a.neg ^ b.neg, FORMATS[fmt][0]
    zero = (a.kind == "n" and not a.sig) or (b.kind == "n" and not b.sig)
    if "q" in (a.kind, b.kind, n.kind) or ("i" in (a.kind, b.kind) and (zero or (n.kind == "i" and n.neg != neg))):
        return QUIET[fmt]
    if "i" in (a.kind, b.kind):
        return neg << (width - 1) | INFINITY[fmt]
    if n.kind == "i":
        return c
    p, at = a.sig * b.sig, a.lsb + b.lsb + scale
    if not p and not n.sig:
        return (neg & n.neg) << (width - 1)
    lsb = min(at if p else n.lsb, n.lsb if n.sig else at)
    total = (-p if neg else p) << (at - lsb) if p else 0
    total += (-n.sig if n.neg else n.sig) << (n.lsb - lsb) if n.sig else 0
    return pack(total, lsb, fmt)


def flush_bits(c: int, sign: bool = True) -> int:
    x = decode("f32", c)
    return (c & 0x80000000 if sign else 0) if x.kind == "n" and x.sub and x.sig else c


def chain(a: list[Num], b: list[Num], c: int, fmt: str, ins: bool = False, cs: bool = False, out: bool = False) -> int:
    """Fused multiply-adds, k ascending. ins, cs, out: subnormal A and B, C, results count as zeros."""
    if ins:
        a, b = [flushed(x, True) for x in a], [flushed(x, True) for x in b]
    for x, y in zip(a, b, strict=True):
        c = fma(x, y, flush_bits(c) if cs else c, fmt)
        c = flush_bits(c) if out else c
    return c


# ---- the chips' own sums ------------------------------------------------------------------------------------------


def special(a: list[Num], b: list[Num], scale: list[int], big: int | None) -> tuple[bool, bool, set[int]]:
    """NaN among the factors, an invalid product, signs of infinite products (from 2**big on: finite ones too)."""
    nan = invalid = False
    inf: set[int] = set()
    for x, y, s in zip(a, b, scale, strict=True):
        if "q" in (x.kind, y.kind):
            nan = True
        elif "i" in (x.kind, y.kind):
            if (x.kind == "n" and not x.sig) or (y.kind == "n" and not y.sig):
                invalid = True
            else:
                inf.add(x.neg ^ y.neg)
        elif big is not None and x.sig * y.sig and log2(x.sig * y.sig) + x.lsb + y.lsb + s >= big:
            inf.add(x.neg ^ y.neg)
    return nan, invalid, inf


def terms(a: list[Num], b: list[Num], scale: list[int]) -> list[tuple[int, int, int]]:
    """(signed significand, lsb, sum of the exponents) of the finite products."""
    return [
        (-x.sig * y.sig if x.neg ^ y.neg else x.sig * y.sig, x.lsb + y.lsb + s, x.e + y.e + s)
        for x, y, s in zip(a, b, scale, strict=True)
        if x.kind == y.kind == "n"
    ]


def cdna_step(a: list[Num], b: list[Num], c: int, split: bool, scale: list[int]) -> int:
    """Products cut at a common exponent, C floored; split: even and odd k apart first."""
    n = decode("f32", c)
    nan, invalid, inf = special(a, b, scale, 128)
    inf |= {n.neg} if n.kind == "i" else set()
    if nan or invalid or n.kind == "q" or len(inf) == 2:
        return QUIET["f32"]
    if inf:
        return 0xFF800000 if 1 in inf else 0x7F800000
    sums = []
    p = terms(a, b, scale)
    for part in (p[0::2], p[1::2]) if split else (p,):
        if any(v for v, _, _ in part):
            top = max(e for v, _, e in part if v)
            cut = [shift(abs(v), lsb - top + 24) * (-1 if v < 0 else 1) for v, lsb, _ in part]
            sums.append((top, sum(cut)))
    top = max((t for t, _ in sums), default=n.e)
    dot = sum(shift(s, t - top) for t, s in sums)
    e = max(top, n.e)
    cq = shift(-n.sig if n.neg else n.sig, n.lsb - (e - 24)) << 8
    t = shift(dot, top - e + 8) + (0 if split and n.e < e - 25 else cq)
    if not t:
        return 0
    drop = max(log2(abs(t)) + e - 32, -126) - 31 - (e - 32)
    t = t >> drop << drop if drop > 0 else t
    return pack(t, e - 32) if pack(t, e - 32) != 0x80000000 else 0


def p_chain(a: list[Num], b: list[Num], c: int, group: int) -> int:
    """gfx90a: every product and sum rounded, subnormals flushed."""
    one, c = Num("n", 0, 1), flush_bits(c, False)

    def add(x: int, y: int) -> int:
        return flush_bits(fma(one, decode("f32", x), y, "f32"))

    for i in range(0, len(a), group):
        p = [
            flush_bits(fma(flushed(x, False), flushed(y, False), 0x80000000, "f32"))
            for x, y in zip(a[i : i + group], b[i : i + group], strict=True)
        ]
        c = add(c, add(add(p[0], p[1]), add(p[2], p[3])) if group == 4 else add(p[0], p[1]))
    return c


def rdna_special(a: list[Num], b: list[Num], n: Num, c: int, out: str) -> int | None:
    nan, invalid, inf = special(a, b, [0] * len(a), None)
    bad = {"f32": 0xFFC00000, "f16": 0xFE00, "bf16": 0xFFC0}[out]
    if nan:
        return {"f32": 0xFFC00A3D, "f16": 0xFE3D, "bf16": 0xFFFD}[out]
    if invalid or len(inf) == 2:
        return bad
    if n.kind == "q":
        return c | {"f32": 0x400000, "f16": 0x200, "bf16": 0x40}[out]
    inf |= {n.neg} if n.kind == "i" else set()
    if not inf:
        return None
    return bad if len(inf) == 2 else INFINITY[out] | (1 in inf) << (FORMATS[out][0] - 1)


def narrow(total: int, lsb: int, out: str, ovfl: bool) -> int:
    """A zero is +0; bf16 is cut from the f32."""
    r = pack(total, lsb, "f16" if out == "f16" else "f32", ovfl)
    r = 0 if r == (0x8000 if out == "f16" else 0x80000000) else r
    return r >> 16 if out == "bf16" else r


def r3_step(a: list[Num], b: list[Num], c: int, fmt: str, out: str, ovfl: bool) -> int:
    """gfx1100: two products and C in the sign frame of C; a term of the other sign is complemented."""
    if fmt == "bf16":
        a, b = [flushed(x, True) for x in a], [flushed(x, True) for x in b]
    n = decode(out, c) if out == "f16" else flushed(decode(out, c), True)
    if (u := rdna_special(a, b, n, c, out)) is not None:
        return u
    p = [(x.neg ^ y.neg, x.sig * y.sig, x.lsb + y.lsb, x.e + y.e) for x, y in zip(a, b, strict=True)]
    all_terms = [(n.neg, n.sig, n.lsb)] + [t[:3] for t in p]
    if not any(m for _, m, _ in all_terms):
        return 0
    grid = max([e - 24 for _, m, _, e in p if m] + [log2(m) + lsb - 26 for _, m, lsb in all_terms if m])
    grid = max(grid, -40) if out == "f16" else grid
    total = 0
    for neg, m, lsb in all_terms:
        v = shift(m, lsb - grid)
        total += v if neg == n.neg else -v - 1
    total = -total if n.neg else total
    if out == "f16" or not total:
        return narrow(total, grid, out, ovfl)
    top = log2(abs(total))  # 24 bits first, then the exponent's range
    r = pack(total, -top)  # as if near one
    field = (r >> 23 & 255) + top + grid
    bits = 0 if field < 1 else r & 0x80000000 | (0x7F800000 if field > 254 else field << 23 | r & 0x7FFFFF)
    return bits >> 16 if out == "bf16" else bits


def r4_step(a: list[Num], b: list[Num], c: int, fmt: str, out: str, ovfl: bool) -> int:
    """gfx1201: pairs of products floored, then all of the step and C."""
    del fmt
    n = decode(out, c)
    if (u := rdna_special(a, b, n, c, out)) is not None:
        return u
    p = terms(a, b, [0] * len(a))
    least = -14 if out == "f16" else -126
    lead = max(least, log2(n.sig) + n.lsb) if n.sig else least
    grid = max([e - 24 for v, _, e in p if v] + [lead - 26])
    cv = -n.sig if n.neg else n.sig
    total = shift(cv, n.lsb - grid)
    if grid > least and total == -1 and not shift(n.sig, n.lsb - grid):
        total = 0
    for i in range(0, len(p), 2):
        pair = [t for t in p[i : i + 2] if t[0]]
        if pair:
            g = max(e for _, _, e in pair) - 24
            total += shift(sum(shift(v, lsb - g) for v, lsb, _ in pair), g - grid)
    return narrow(total, grid, out, ovfl)


def steps(a: list[Num], b: list[Num], c: int, group: int, one: Callable[[list[Num], list[Num], int, int], int]) -> int:
    for i in range(0, len(a), group):
        c = one(a[i : i + group], b[i : i + group], c, i)
    return c


def element(
    arch: str,
    op: str,
    types: tuple[str, str, str],
    a: list[int],
    b: list[int],
    c: int,
    *,
    hw: bool,
    mode: dict[str, int],
    scale: list[int] | None = None,
) -> int:
    """Bits of one element of D: types of A, B, D, the elements by k, the MODE fields, exponents of the scales."""
    fa, fb, out = types
    if fa == "xf32":
        a, b = [x & ~0x1FFF for x in a], [x & ~0x1FFF for x in b]
    x, y = [decode(fa, v) for v in a], [decode(fb, v) for v in b]
    keep_in, keep_out = mode.get("fp32_denorm", 3) & 1, mode.get("fp32_denorm", 3) >> 1
    rdna, old, s = not arch.startswith("gfx9"), arch == "gfx90a", scale or [0] * len(a)
    if out == "f64":
        return chain(x, y, c, "f64")
    if fa == "f32":
        return chain(x, y, c, "f32", not keep_in, old and not keep_in, old and not keep_out)
    if not hw:
        if old:  # halves: subnormals are zeros on both ends
            x, y, c = [flushed(v, False) for v in x], [flushed(v, False) for v in y], flush_bits(c, False)
        for p, q, t in zip(x, y, s, strict=True):
            c = fma(p, q, c, out, t)
        return flush_bits(c) if old else c
    ovfl = bool(mode.get("fp16_ovfl", 0))
    if rdna:
        step = r3_step if arch == "gfx1100" else r4_step
        return steps(x, y, c, 2 if arch == "gfx1100" else 4, lambda p, q, d, _: step(p, q, d, fa, out, ovfl))
    if old:
        return p_chain(x, y, c, 4 if fa == "f16" or "_1k" in op else 2)
    group = 4 if fa == "xf32" else 8 if fa in ("f16", "bf16") else 16
    split = group == 16
    return steps(x, y, c, group, lambda p, q, d, i: cdna_step(p, q, d, split, s[i : i + group]))


# ---- operands -----------------------------------------------------------------------------------------------------

KINDS = (
    "any near wide mid pairs wide-pairs subnormal underflow overflow zeros minus-zero powers special infinite integer"
).split()


def draw(rnd: random.Random, fmt: str, kind: str) -> int:
    """Bits of one element."""
    width, eb, fb, bias, _ = FORMATS[fmt]
    top = (1 << eb) - 1
    s, m = rnd.getrandbits(1) << (width - 1), rnd.getrandbits(fb)

    def near(by: int) -> int:
        return min(top - 1, max(0, bias + rnd.randint(-by, by))) << fb

    if kind == "any":
        return rnd.getrandbits(width)
    if kind == "subnormal":
        return s | rnd.choice([0, 0, 1, 2, bias, rnd.randrange(top)]) << fb | m
    if kind == "underflow":
        return s | max(0, min(top - 1, rnd.choice([0, 0, bias // 2, bias // 2 + 1, bias // 2 + 2, 1, bias]))) << fb | m
    if kind == "overflow":
        return s | min(top - 1, rnd.choice([top - 1, top - 2, bias + bias // 2 + 1, bias + bias // 2, bias])) << fb | m
    if kind == "zeros":
        return s if rnd.random() < 0.5 else s | near(0) | m
    if kind == "minus-zero":
        return 1 << (width - 1) if rnd.random() < 0.5 else s if rnd.random() < 0.8 else s | rnd.randrange(top) << fb
    if kind == "powers":
        return s | near(14) | rnd.choice([0, 0, 0, 1, (1 << fb) - 1])
    if kind in ("special", "infinite"):
        r = rnd.random()
        if r < 0.88:
            return s | near(3) | m
        if kind == "infinite" or r < 0.92:
            return s | top << fb
        return s | top << fb | (m or 1) if r < 0.94 else s if r < 0.97 else s | m
    if kind == "integer":
        v = rnd.randint(0, 4)
        return s | (log2(v) + bias << fb | ((v << fb >> log2(v)) & ((1 << fb) - 1)) if v else 0)
    return s | near({"near": 2, "wide": 30, "mid": 12, "pairs": 12, "wide-pairs": 30}[kind]) | m


def draws(rnd: random.Random, fmt: str, kind: str, n: int) -> list[int]:
    """n elements; pairs: each second one repeats, so that products of opposite sign cancel."""
    if fmt in ("i8", "iu8", "iu4", "i32"):
        width = {"i8": 8, "iu8": 8, "iu4": 4, "i32": 32}[fmt]
        edge = 1 << (width - 1)
        return [rnd.choice([rnd.getrandbits(width), edge - rnd.getrandbits(3) & 2 * edge - 1]) for _ in range(n)]
    out: list[int] = []
    for i in range(n):
        out.append(out[-1] if "pairs" in kind and i % 2 and rnd.random() < 0.7 else draw(rnd, fmt, kind))
    return out


def is_nan(bits: int, fmt: str) -> bool:
    return (bits & ((1 << (FORMATS[fmt][0] - 1)) - 1)) > INFINITY[fmt]
