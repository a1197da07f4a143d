"""mfma="hw": the chips' own summation, against recorded hardware results and an exact-arithmetic model of the rules.

The model below works with fractions and Python integers from the rules as written, element by element; the simulator's
C code works with shifted 64-bit integers.
"""

from __future__ import annotations

import csv
import ctypes as C
import os
import random
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

ROOT = Path(__file__).resolve().parents[2]
ARCHS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
FORMATS = {  # bits, exponent bits, fraction bits, bias, kind of specials
    "f32": (32, 8, 23, 127, "ieee"),
    "xf32": (32, 8, 23, 127, "ieee"),
    "f16": (16, 5, 10, 15, "ieee"),
    "bf16": (16, 8, 7, 127, "ieee"),
    "fp8": (8, 4, 3, 7, "fn"),
    "bf8": (8, 5, 2, 15, "ieee"),
    "fp8_fnuz": (8, 4, 3, 8, "fnuz"),
    "bf8_fnuz": (8, 5, 2, 16, "fnuz"),
    "fp6": (6, 2, 3, 1, "none"),
    "bf6": (6, 3, 2, 3, "none"),
    "fp4": (4, 2, 1, 1, "none"),
}
FMT_INDEX = {
    n: i
    for i, n in enumerate(["f32", "xf32", "f16", "bf16", "fp8", "bf8", "fp8_fnuz", "bf8_fnuz", "fp6", "bf6", "fp4"])
}
OUT = {"f32": 0, "f16": 1, "bf16": 2}
USE = {"matrix": 0, "old": 1, "sparse": 2, "dot": 3}


# ---- the model ----------------------------------------------------------------------------------------------------


class Num:
    """A decoded element: magnitude as a fraction, sign, exponent e (that of the smallest normal for a subnormal)."""

    def __init__(self, fmt: str, bits: int) -> None:
        if fmt == "xf32":
            bits &= ~0x1FFF
        n, eb, fb, bias, kind = FORMATS[fmt]
        field, m = bits >> fb & (1 << eb) - 1, bits & (1 << fb) - 1
        self.neg = bool(bits >> (n - 1) & 1)
        self.nan = self.inf = False
        if kind == "ieee" and field == (1 << eb) - 1:
            self.nan, self.inf = m != 0, m == 0
        elif kind == "fn":
            self.nan = bits & 127 == 127
        elif kind == "fnuz":
            self.nan = bits == 128
        self.e = max(field, 1) - bias
        self.subnormal = field == 0 and m != 0
        self.mag = Fraction(m + ((1 << fb) if field else 0), 1 << fb) * Fraction(2) ** self.e


def floor_to(x: Fraction, unit: int) -> int:
    """floor(x / 2**unit)."""
    q = x / Fraction(2) ** unit
    return q.numerator // q.denominator


def trunc_to(x: Fraction, unit: int) -> int:
    return -floor_to(-x, unit) if x < 0 else floor_to(x, unit)


def log2_floor(x: Fraction) -> int:
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if x >= Fraction(2) ** n else n - 1


def nearest_even(q: Fraction) -> int:
    f = q.numerator // q.denominator
    r = q - f
    return f + (r > Fraction(1, 2) or (r == Fraction(1, 2) and f & 1))


def round_float(x: Fraction, fb: int = 23, emin: int = -126, flush: bool = False) -> int:
    """Bits of x in a format with fb fraction bits, nearest even; exact zero and what becomes zero: +0."""
    sign = (1 << (31 if fb == 23 else 15)) if x < 0 else 0
    x = abs(x)
    if x == 0:
        return 0
    e = log2_floor(x)
    if flush or e >= emin:
        m = nearest_even(x / Fraction(2) ** (e - fb))
        if m == 2 << fb:
            m, e = m // 2, e + 1
        if e < emin:
            return 0
    else:
        m, e = nearest_even(x / Fraction(2) ** (emin - fb)), emin
        if m == 0:
            return 0
        if m < 1 << fb:
            return sign | m
    if e > 1 - emin:
        return sign | (0x7F800000 if fb == 23 else 0x7C00)
    return sign | (e - emin + 1) << fb | (m - (1 << fb))


def bits_of(f: float) -> int:
    return struct.unpack("<I", struct.pack("<f", f))[0]


QNAN, INF = 0x7FC00000, 0x7F800000


def is_nan(c: int) -> bool:
    return c & 0x7FFFFFFF > INF


def add32(a: int, b: int) -> int:
    """f32 sum with subnormal results flushed to a zero of their sign."""
    x, y = np.array([a, b], np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        r = int((x + y).view(np.uint32))
    return QNAN if is_nan(r) else r if r & INF else r & 0x80000000


def mul32(a: Num, b: Num) -> int:
    if a.nan or b.nan or (a.inf and b.mag == 0) or (b.inf and a.mag == 0):
        return QNAN
    sign = 0x80000000 if a.neg != b.neg else 0
    if a.inf or b.inf:
        return sign | INF
    r = round_float(a.mag * b.mag)
    return sign | (r if r & INF else 0)


def model_p(a: list[Num], b: list[Num], c: int, group: int) -> int:
    if not c & INF and c & 0x7FFFFF:
        c = 0
    for x in (*a, *b):
        if x.subnormal:
            x.mag, x.neg = Fraction(0), False
    for i in range(0, len(a), group):
        p = [mul32(x, y) for x, y in zip(a[i : i + group], b[i : i + group], strict=True)]
        p += [0] * (group - len(p))
        s = add32(p[0], p[1])
        if group == 4:
            s = add32(s, add32(p[2], p[3]))
        c = add32(c, s)
    return c


def fma32(a: Num, b: Num, c: Num) -> int:
    if a.nan or b.nan or c.nan or (a.inf and b.mag == 0) or (b.inf and a.mag == 0):
        return QNAN
    pneg = a.neg != b.neg
    if a.inf or b.inf:
        return QNAN if c.inf and c.neg != pneg else (0xFF800000 if pneg else INF)
    if c.inf:
        return 0xFF800000 if c.neg else INF
    total = (-1 if pneg else 1) * a.mag * b.mag + (-1 if c.neg else 1) * c.mag
    if total == 0:
        return 0x80000000 if pneg and c.neg else 0
    r = round_float(total)
    return r if r & 0x7FFFFFFF else (0x80000000 if total < 0 else 0)


def model_s(a: list[Num], b: list[Num], c: int, keep: bool, flush_c: bool, flush_d: bool) -> int:
    def flush(x: Num) -> Num:
        if x.subnormal:
            x.mag = Fraction(0)
        return x

    for x, y in zip(a, b, strict=True):
        z = Num("f32", c)
        if not keep:
            x, y = flush(x), flush(y)
        c = fma32(x, y, flush(z) if flush_c else z)
        if flush_d and not c & INF:
            c &= 0x80000000
    return c


def products(a: list[Num], b: list[Num], limit: bool) -> tuple[list[tuple[Fraction, int, bool]], set[str]]:
    """(magnitude, e, negative) of the products and the special cases among them."""
    out, special = [], set()
    for x, y in zip(a, b, strict=True):
        neg = x.neg != y.neg
        if x.nan or y.nan:
            special.add("nan")
        elif x.inf or y.inf:
            special.add("invalid" if x.mag == 0 or y.mag == 0 else "-inf" if neg else "+inf")
        elif limit and x.mag * y.mag >= Fraction(2) ** 128:
            special.add("-inf" if neg else "+inf")
        out.append((x.mag * y.mag, x.e + y.e, neg))
    return out, special


def model_t(a: list[Num], b: list[Num], c: int, split: bool) -> int:
    """One step: T, or U when split."""
    ps, special = products(a, b, True)
    if is_nan(c):
        special.add("nan")
    elif c & 0x7FFFFFFF == INF:
        special.add("-inf" if c >> 31 else "+inf")
    if special & {"nan", "invalid"} or {"+inf", "-inf"} <= special:
        return QNAN
    if special:
        return 0xFF800000 if "-inf" in special else INF
    cn = Num("f32", c)
    parts = []
    for group in (ps[0::2], ps[1::2]) if split else (ps,):
        es = [e for m, e, _ in group if m]
        if es:
            top = max(es)
            parts.append((sum((-1 if neg else 1) * trunc_to(m, top - 24) for m, _, neg in group), top))
    e1 = max((e for _, e in parts), default=None)
    dot = sum(floor_to(s * Fraction(2) ** (e - 24), e1 - 24) for s, e in parts)
    e = max(cn.e, e1) if e1 is not None else cn.e
    d = floor_to(dot * Fraction(2) ** (e1 - 24), e - 32) if e1 is not None else 0
    cv = -cn.mag if cn.neg else cn.mag
    if split and cn.e < e - 25:
        cv = Fraction(0)
    t = d + 256 * floor_to(cv, e - 24)
    if t == 0:
        return 0
    et = max(log2_floor(Fraction(abs(t))) + e - 32, -126)
    value = t * Fraction(2) ** (e - 32)
    return round_float(floor_to(value, et - 31) * Fraction(2) ** (et - 31))


def rdna_special(special: set[str], c: int, out: str, one_nan: bool = False) -> int | None:
    """Result bits when a NaN or an infinity takes part; one_nan: invalid products give the NaN of the factors."""
    if one_nan and ("invalid" in special or {"+inf", "-inf"} <= special):
        special = {"nan"}
    if "nan" in special:
        return {"f32": 0xFFC00A3D, "f16": 0xFE3D, "bf16": 0xFFFD}[out]
    invalid = {"f32": 0xFFC00000, "f16": 0xFE00, "bf16": 0xFFC0}[out]
    if "invalid" in special or {"+inf", "-inf"} <= special:
        return invalid
    n = Num(out, c)
    if n.nan:
        return c | {"f32": 0x400000, "f16": 0x200, "bf16": 0x40}[out]
    if n.inf:
        special.add("-inf" if n.neg else "+inf")
    if {"+inf", "-inf"} <= special:
        return invalid
    if special:
        inf = {"f32": INF, "f16": 0x7C00, "bf16": 0x7F80}[out]
        return inf | ((0x80000000 if out == "f32" else 0x8000) if "-inf" in special else 0)
    return None


def narrow(x: Fraction, out: str, ovfl: bool, flush: bool) -> int:
    if out == "f16":
        r = round_float(x, 10, -14)
        return r & 0x8000 | 0x7BFF if ovfl and r & 0x7FFF == 0x7C00 else r
    r = round_float(x, flush=flush)
    return r >> 16 if out == "bf16" else r


def model_r3(fmt: str, a: list[Num], b: list[Num], c: int, out: str, ovfl: bool) -> int:
    if fmt == "bf16":
        for x in (*a, *b):
            if x.subnormal:
                x.mag = Fraction(0)
    ps, special = products(a, b, False)
    found = rdna_special(special, c, out)
    if found is not None:
        return found
    cn = Num(out, c)
    if cn.subnormal and out != "f16":
        cn.mag = Fraction(0)
    terms = [(cn.mag, cn.neg)] + [(m, neg) for m, _, neg in ps]
    if not any(m for m, _ in terms):
        return 0
    logs = [log2_floor(m) for m, _ in terms if m]
    if out == "f16":
        logs.append(max(-14, log2_floor(cn.mag)) if cn.mag else -14)
    g = max([e - 24 for m, e, _ in ps if m] + [max(logs) - 26])
    total = 0
    for m, neg in terms:
        u = floor_to(m, g)
        total += u if neg == cn.neg else -u - 1
    value = total * Fraction(2) ** g
    return narrow(-value if cn.neg else value, out, ovfl, True)


def model_r4(a: list[Num], b: list[Num], c: int, out: str, ovfl: bool, pair: int) -> int:
    ps, special = products(a, b, False)
    found = rdna_special(special, c, out, pair == 4)
    if found is not None:
        return found
    cn = Num(out, c)
    cv = -cn.mag if cn.neg else cn.mag
    least = -14 if out == "f16" else -126
    g = max([e - 24 for m, e, _ in ps if m] + [max([least] + ([log2_floor(cn.mag)] if cn.mag else [])) - 26])
    total = 0 if -(Fraction(2) ** g) < cv < 0 and g > least else floor_to(cv, g)
    for i in range(0, len(ps), pair):
        part = [p for p in ps[i : i + pair] if p[0]]
        if part:
            gp = max(e for _, e, _ in part) - 24
            s = sum(floor_to(-m if neg else m, gp) for m, _, neg in part)
            total += floor_to(s * Fraction(2) ** gp, g)
    return narrow(total * Fraction(2) ** g, out, ovfl, False)


RULES = {  # (chip, format, use) -> rule, group
    **{(a, "f32", u): ("S", 1) for a in ("gfx90a", "gfx942", "gfx950") for u in ("matrix",)},
    ("gfx90a", "f16", "matrix"): ("P", 4),
    ("gfx90a", "bf16", "matrix"): ("P", 4),
    ("gfx90a", "bf16", "old"): ("P", 2),
    ("gfx942", "xf32", "matrix"): ("T", 4),
    **{(a, f, u): ("T", 8) for a in ("gfx942", "gfx950") for f in ("f16", "bf16") for u in ("matrix", "sparse")},
    **{("gfx942", f, u): ("U", 16) for f in ("fp8_fnuz", "bf8_fnuz") for u in ("matrix", "sparse")},
    **{("gfx950", f, u): ("U", 16) for f in ("fp8", "bf8") for u in ("matrix", "sparse")},
    **{("gfx950", f, "matrix"): ("U", 16) for f in ("fp6", "bf6", "fp4")},
    **{("gfx1100", f, u): ("R3", 2) for f in ("f16", "bf16") for u in ("matrix", "dot")},
    **{("gfx1201", f, u): ("R4", 4) for f in ("f16", "bf16", "fp8", "bf8") for u in ("matrix", "sparse")},
    **{("gfx1201", f, "dot"): ("R4", 2) for f in ("f16", "bf16")},
    **{("gfx1201", f, "dot"): ("R4", 4) for f in ("fp8", "bf8")},
}


def model(
    arch: str, fa: str, fb: str, out: str, use: str, a: list[int], b: list[int], c: int, mode: int = 0x3F0
) -> int:
    rule, group = RULES[arch, fa, use]
    x, y = [Num(fa, v) for v in a], [Num(fb, v) for v in b]
    if rule == "S":
        keep_in, keep_out = bool(mode >> 4 & 1), bool(mode >> 5 & 1)
        return model_s(x, y, c, keep_in, arch == "gfx90a" and not keep_in, arch == "gfx90a" and not keep_out)
    if rule == "P":
        return model_p(x, y, c, group)
    ovfl = bool(mode >> 23 & 1)
    for i in range(0, len(x), group):
        p, q = x[i : i + group], y[i : i + group]
        if rule in "TU":
            c = model_t(p, q, c, rule == "U")
        elif rule == "R3":
            c = model_r3(fa, p, q, c, out, ovfl)
        else:
            pair = 4 if use == "dot" and fa in ("fp8", "bf8") else 2
            c = model_r4(p, q, c, out, ovfl, pair)
    return c


# ---- the C functions ----------------------------------------------------------------------------------------------


class Dot(C.Structure):
    """SimHwDot."""

    _fields_ = [(n, C.c_uint8) for n in ("rule", "group", "pair", "fa", "fb", "out", "frac", "mode_c")] + [
        ("verified", C.c_bool)
    ]


@pytest.fixture(scope="module")
def lib():
    path = Path(os.environ.get("TILELANG_BUILD", ROOT / "build")) / "libtilelang_test.so"
    if not path.exists():
        pytest.skip("build/libtilelang_test.so is not built (make testlib)")
    lib = C.CDLL(str(path))
    lib.sim_hw_rule.restype = C.c_bool
    lib.sim_hw_dot_bits.restype = C.c_uint32
    return lib


def rule_of(lib, arch: str, fa: str, fb: str, out: str, use: str) -> Dot | None:
    h = Dot()
    ok = lib.sim_hw_rule(ARCHS.index(arch), FMT_INDEX[fa], FMT_INDEX[fb], OUT[out], USE[use], C.byref(h))
    return h if ok else None


def run(lib, h: Dot, a: list[int], b: list[int], c: int, mode: int = 0x3F0) -> int:
    n = len(a)
    arr = C.c_uint32 * n
    return lib.sim_hw_dot_bits(C.byref(h), arr(*a), arr(*b), n, C.c_uint32(c), mode)


def same(got: int, want: int, arch: str) -> bool:
    return got == want or (arch in ARCHS[:3] and is_nan(got) and is_nan(want))


def oracle_rows() -> list[dict[str, str]]:
    path = simlib.SHARED / "oracle/mfma-hw.csv"
    if not path.exists():
        return []
    return list(csv.DictReader(line for line in path.read_text().splitlines() if not line.startswith("#")))


def use_of(opcode: str) -> str:
    return "dot" if opcode.startswith("v_dot") else "sparse" if "smfmac" in opcode or "swmmac" in opcode else "matrix"


def types_of(arch: str, opcode: str, text: str) -> tuple[str, str]:
    """Formats of A and B: from the column, or from a mixed mnemonic."""
    if text in FORMATS:
        return text, text
    z = "_fnuz" if arch == "gfx942" else ""
    pair = opcode.rsplit("_", 2)[1:]
    assert set(pair) <= {"fp8", "bf8"}, (opcode, text)
    return pair[0] + z, pair[1] + z


@pytest.mark.skipif(not oracle_rows(), reason="the outside test data is not there")
def test_recorded(lib):
    """Every recorded element, by the C function and by the model."""
    rows = oracle_rows()
    for i, r in enumerate(rows):
        a, b = ([int(x, 16) for x in r[k].split()] for k in "ab")
        fa, fb = types_of(r["arch"], r["opcode"], r["type"])
        out = r["opcode"].split("_")[2]
        c, d = int(r["c"], 16), int(r["d"], 16)
        h = rule_of(lib, r["arch"], fa, fb, out, use_of(r["opcode"]))
        assert h and h.verified, r
        assert same(model(r["arch"], fa, fb, out, use_of(r["opcode"]), a, b, c), d, r["arch"]), (i, r)
        assert same(run(lib, h, a, b, c), d, r["arch"]), (i, r, f"{run(lib, h, a, b, c):08x}")
    assert len(rows) >= 20


EXAMPLES = [  # chip, format, use, a, b, c, d
    ("gfx942", "f16", "3c00", "3c00", "b3000000", "3f7fffff"),
    ("gfx942", "f16", "3c00", "3c00", "33000000", "3f800000"),
    ("gfx942", "f16", "3c00", "3c00", "80000001", "3f7fffff"),
    ("gfx942", "f16", "7400 7400 1600", "3c00 bc00 3c00", "0", "3a800000"),
    ("gfx942", "f16", "7400 7400 9600", "3c00 bc00 3c00", "0", "ba800000"),
    ("gfx942", "f16", "3c00 0c00 0c00", "3c00 0c00 0c00", "0", "3f800001"),
    ("gfx90a", "f16", "3c00 0c00 0c00", "3c00 0c00 0c00", "0", "3f800000"),
    ("gfx942", "f16", "3c00 3c00", "3c00 bc00", "32800000", "00000000"),
    ("gfx90a", "f16", "3c00 3c00", "3c00 bc00", "32800000", "32800000"),
    ("gfx90a", "f16", "03ff", "3c00", "0", "00000000"),
    ("gfx942", "f16", "03ff", "3c00", "0", "387fc000"),
    ("gfx90a", "bf16", "0080", "3f00", "0", "00000000"),
    ("gfx942", "bf16", "0080", "3f00", "0", "00400000"),
    ("gfx90a", "f16", "0", "0", "00000001", "00000000"),
    ("gfx942", "bf16", "7f00 ff00", "4000 4000", "0", "7fc00000"),
    ("gfx942", "bf16", "7f00 ff00", "3f80 3f80", "0", "00000000"),
    ("gfx942", "f32", "3f800000 " * 4, "3f800000 " * 4, "4b800000", "4b800000"),
    ("gfx942", "xf32", "3f800000 " * 4, "3f800000 " * 4, "4b800000", "4b800002"),
    ("gfx942", "xf32", "3f801fff", "3f800000", "0", "3f800000"),
    ("gfx942", "fp8_fnuz", "78 00 78 00 90", "78 00 f8 00 18", "0", "00000000"),
    ("gfx942", "fp8_fnuz", "78 90 78", "78 18 f8", "0", "ba800000"),
    ("gfx1100", "f16", "4200 4800", "4800 4400", "bf800000", "425c0001"),
    ("gfx1201", "f16", "4200 4800", "4800 4400", "bf800000", "425c0000"),
    ("gfx1100", "f16", "bc00 3c00", "3c00 3c00", "3f800000", "3f7fffff"),
    ("gfx1201", "f16", "bc00 3c00", "3c00 3c00", "3f800000", "3f800000"),
    ("gfx1100", "f16", "bc00 3c00", "0000 3c00", "0", "3f7fffff"),
    ("gfx1100", "bf16", "0001", "4980", "0", "00000000"),
    ("gfx1201", "bf16", "0001", "4980", "0", "07000000"),
    ("gfx942", "fp8_fnuz", "5a 08", "40 40", "4bfffffc", "4c000000"),
]


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda r: f"{r[0]}-{r[1]}-{r[5]}")
def test_examples(lib, row):
    """Hand-made cases: cancellation, the floor of C, truncated tails, subnormals, overflowing products."""
    arch, fmt, ta, tb, c, d = row
    a, b = [int(x, 16) for x in ta.split()], [int(x, 16) for x in tb.split()]
    n = {"gfx1100": 2, "gfx1201": 2 if fmt in ("f16", "bf16") else 4}.get(arch, max(4, len(a)))
    a, b = a + [0] * (n - len(a)), b + [0] * (n - len(b))
    h = rule_of(lib, arch, fmt, fmt, "f32", "matrix")
    assert same(model(arch, fmt, fmt, "f32", "matrix", a, b, int(c, 16)), int(d, 16), arch)
    assert same(run(lib, h, a, b, int(c, 16)), int(d, 16), arch)


def values(rnd: random.Random, fmt: str, how: str) -> int:
    """One element: any bits, bits near one exponent, or a special value."""
    n, eb, fb, bias, _ = FORMATS[fmt]
    if how == "any":
        return rnd.getrandbits(n)
    if how == "special":
        top = (1 << eb) - 1 << fb
        pick = [0, 1 << (n - 1), 1, (1 << fb) - 1, 1 << fb, top, top | 1, top - 1, top | 1 << (n - 1), 1 | 1 << (n - 1)]
        return rnd.choice(pick) & (1 << n) - 1
    e = min(max(bias + rnd.randint(-9, 9) if how == "near" else rnd.randint(0, 3), 0), (1 << eb) - 2)
    return rnd.getrandbits(1) << (n - 1) | e << fb | rnd.getrandbits(fb)


CASES = [
    (*k, out)
    for k in RULES
    for out in (("f32", "f16", "bf16") if k[0] in ("gfx1100", "gfx1201") and k[1] in ("f16", "bf16") else ("f32",))
]


@pytest.mark.parametrize(("arch", "fmt", "use", "out"), CASES)
def test_against_model(lib, arch, fmt, use, out):
    """Random elements of every kind: C code and model agree in every bit (CDNA's NaNs: any)."""
    other = {"fp8": "bf8", "bf8": "fp8", "fp8_fnuz": "bf8_fnuz", "bf8_fnuz": "fp8_fnuz", "fp6": "fp4", "fp4": "bf6"}
    seed = sum(map(ord, arch + fmt + use + out))
    rnd = random.Random(seed)
    group = RULES[arch, fmt, use][1]
    for i in range(500):
        fb = other.get(fmt, fmt) if i % 2 else fmt
        h = rule_of(lib, arch, fmt, fb, out, use)
        assert h is not None
        how = ("near", "any", "near", "low", "special")[i % 5]
        k = group * rnd.choice((1, 1, 2)) if use != "dot" else group
        if arch == "gfx942" and fmt in ("f16", "bf16") and i % 7 == 0:
            k = 4
        a = [values(rnd, fmt, rnd.choice((how, "near"))) for _ in range(k)]
        b = [values(rnd, fb, rnd.choice((how, "near"))) for _ in range(k)]
        c = values(rnd, out, rnd.choice((how, "near", "any")))
        if rnd.random() < 0.2:
            c = rnd.choice((0, 1 << (31 if out == "f32" else 15)))
        mode = rnd.choice((0x3F0, 0x300, 0x310, 0x320, 0x3F0 | 1 << 23))
        want = model(arch, fmt, fb, out, use, a, b, c, mode)
        got = run(lib, h, a, b, c, mode)
        assert same(got, want, arch), (
            f"seed {seed} case {i}: {[hex(x) for x in a]} {[hex(x) for x in b]} c {c:x} mode {mode:x}: "
            f"{got:08x} not {want:08x}"
        )


def test_known():
    """What is said of each kind of instruction."""
    rows = {
        ("gfx90a", "v_mfma_f32_32x32x8f16"): "hardware",
        ("gfx90a", "v_mfma_f32_32x32x4bf16_1k"): "hardware",
        ("gfx90a", "v_mfma_f32_32x32x4bf16"): "hardware",
        ("gfx90a", "v_mfma_f64_16x16x4f64"): "exact",
        ("gfx90a", "v_mfma_i32_32x32x8i8"): "exact",
        ("gfx942", "v_mfma_f32_32x32x4_2b_bf16"): "hardware",
        ("gfx942", "v_mfma_f32_16x16x8_xf32"): "hardware",
        ("gfx942", "v_mfma_f32_16x16x32_fp8_bf8"): "hardware",
        ("gfx942", "v_mfma_f32_32x32x1_2b_f32"): "hardware",
        ("gfx942", "v_smfmac_f32_16x16x32_f16"): "assumed",
        ("gfx950", "v_mfma_f32_16x16x32_f16"): "assumed",
        ("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4"): "assumed",
        ("gfx942", "v_dot2_f32_f16"): "unknown",
        ("gfx942", "v_dot2c_i32_i16"): "exact",
        ("gfx1100", "v_wmma_f32_16x16x16_f16"): "hardware",
        ("gfx1100", "v_wmma_bf16_16x16x16_bf16"): "hardware",
        ("gfx1100", "v_wmma_i32_16x16x16_iu8"): "exact",
        ("gfx1100", "v_dot2acc_f32_f16"): "hardware",
        ("gfx1201", "v_swmmac_f32_16x16x32_f16"): "assumed",
        ("gfx1201", "v_wmma_f32_16x16x16_fp8_bf8"): "assumed",
        ("gfx1201", "v_dot4_f32_fp8_bf8"): "assumed",
        ("gfx942", "v_add_f32"): None,
        ("gfx950", "v_mfma_ld_scale_b32"): None,
        ("gfx1100", "v_dual_dot2acc_f32_f16"): "hardware",  # half of a pair
        ("gfx1201", "v_dual_dot2acc_f32_bf16"): "hardware",
        ("gfx90a", "v_mfma_f32_16x16x8_xf32"): None,  # what the chip does not have
        ("gfx950", "v_mfma_f32_16x16x8_xf32"): None,
        ("gfx90a", "v_dot2_f32_bf16"): None,
        ("gfx942", "v_mfma_scale_f32_16x16x128_f8f6f4"): None,
        ("gfx1201", "v_mfma_scale_f32_16x16x128_f8f6f4"): None,
        ("gfx1100", "v_dot4_f32_fp8_bf8"): None,
        ("gfx1201", "v_dual_fmac_f32"): None,
    }
    got = {key: sim.mfma_rule(*key) for key in rows}
    assert got == rows
    with pytest.raises(ValueError, match="unknown architecture"):
        sim.mfma_rule("gfx1", "v_mfma_f32_32x32x8f16")
