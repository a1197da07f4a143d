"""Floats of every width, exactly, as memory instructions have them: values, rounding, sums, minimum and maximum with
NaN and zeros of both signs (AMD's chapters on float atomics)."""

from __future__ import annotations

import functools
import math
from fractions import Fraction


class Outside(Exception):
    """An access that no region has, or a result that nobody defines."""


FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52), "f11": (5, 6), "f10": (5, 5)}
"""Exponent and mantissa bits; f11 and f10 have no sign."""


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


@functools.lru_cache(1 << 16)
def decode(x: int, kind: str) -> Fraction | float:
    """The value: an exact Fraction, or a float for -0.0, infinities and NaN."""
    e, m = FORMATS[kind]
    sign = -1 if kind not in ("f11", "f10") and x >> (e + m) & 1 else 1
    ex, man = x >> m & ((1 << e) - 1), x & ((1 << m) - 1)
    if ex == (1 << e) - 1:
        return math.nan if man else sign * math.inf
    if not ex and not man:
        return Fraction(0) if sign > 0 else -0.0
    scale = max(ex, 1) - ((1 << (e - 1)) - 1) - m
    return Fraction(sign * (man + (bool(ex) << m))) * Fraction(2) ** scale


def encode(v: Fraction | float, kind: str) -> int:
    """Bits of a value, rounded to nearest even; NaN is the quiet one."""
    e, m = FORMATS[kind]
    inf = ((1 << e) - 1) << m
    top = 0 if kind in ("f11", "f10") else 1 << (e + m)
    if isinstance(v, float):
        if math.isnan(v):
            return inf | 1 << (m - 1)
        if math.isinf(v):
            return inf | (top if v < 0 else 0)
        if v == 0:
            return top if math.copysign(1, v) < 0 else 0
        v = Fraction(v)
    sign, v = (top, -v) if v < 0 else (0, v)
    if not v:
        return sign
    ex = (
        math.floor(math.log2(v))
        if v.denominator == 1 and v < 2**50
        else v.numerator.bit_length() - v.denominator.bit_length()
    )
    while Fraction(2) ** ex > v:
        ex -= 1
    while Fraction(2) ** (ex + 1) <= v:
        ex += 1
    bias = (1 << (e - 1)) - 1
    ex = max(ex, 1 - bias)
    q = round(v / Fraction(2) ** (ex - m))  # half to even
    bits = q + ((ex + bias - 1) << m)
    return sign | min(bits, inf)


def is_nan(x: int, kind: str) -> bool:
    v = decode(x, kind)
    return isinstance(v, float) and math.isnan(v)


def quiet(x: int, kind: str) -> int:
    return x | 1 << (FORMATS[kind][1] - 1)


@functools.lru_cache(1 << 16)
def fadd(a: int, b: int, kind: str) -> int:
    """Memory + data; a NaN comes out as it went in, but quiet (of two, which is not known)."""
    if is_nan(a, kind) and is_nan(b, kind) and a != b:
        raise Outside("two NaN")
    for x in (a, b):
        if is_nan(x, kind):
            return quiet(x, kind)
    x, y = decode(a, kind), decode(b, kind)
    if isinstance(x, float) or isinstance(y, float):  # infinities, -0
        fx, fy = (v if isinstance(v, float) else float(v > 0) - float(v < 0) for v in (x, y))
        if math.isfinite(fx) and math.isfinite(fy):
            return a if y == 0 and x != 0 else b if x == 0 and y != 0 else encode(fx + fy, kind)
        return encode(fx + fy, kind)
    return encode(x + y, kind)


def fminmax(mem: int, src: int, kind: str, least: bool, num: bool) -> int:
    """A number wins over a quiet NaN; -0 is below +0. A signalling NaN comes out quiet, or (num) is as a quiet one."""
    nans = [x for x in (mem, src) if is_nan(x, kind)]
    signalling = [x for x in nans if quiet(x, kind) != x]
    if len(nans) == 2 and mem != src:
        raise Outside("two NaN")
    if signalling and not num or len(nans) == 2:
        return quiet((signalling or nans)[0], kind)
    if nans:
        return src if nans[0] == mem else mem
    e, m = FORMATS[kind]
    key = lambda x: (decode(x, kind), 0 if x >> (e + m) & 1 else 1)  # noqa: E731
    return min(mem, src, key=key) if least else max(mem, src, key=key)


def flushed(x: int, kind: str) -> int:
    """A subnormal as zero."""
    e, m = FORMATS[kind]
    return x if x >> m & ((1 << e) - 1) else x & 1 << (e + m)
