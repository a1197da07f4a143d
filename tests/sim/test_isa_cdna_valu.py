"""Vector operations of gfx90a, gfx942 and gfx950 in encodings that no other test reaches: DPP, SDWA, e32 and e64
forms of conversions, multiply-adds, dot products, f64 operations. References: exact fractions and integers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes  # noqa: F401 - names of small floats
import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import LANES, encode, execute, hexrow, row  # noqa: E402
from test_isa_cdna import decode, encode_value, prng, sample  # noqa: E402

ARCHS = [a for a in ("gfx90a", "gfx942", "gfx950") if sim._native.library().tlsim_arch_available(a.encode())]
PAIRS = 0xFFFCFF3FC3FFFFF0  # lanes on and off in pairs: DPP swaps neighbours
DPP = "quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
BITS = {"f64": 64, "i32": 32, "u32": 32, "f32": 32, "f16": 16, "bf16": 16, "i16": 16, "u16": 16, "b32": 32}


def signed(x: int, n: int) -> int:
    return x - (1 << n) if x >> (n - 1) & 1 else x


def float_of(kind: str, bits: int) -> Fraction:
    if kind == "f64":
        return Fraction(float(np.uint64(bits).view(np.float64)))
    x, _ = decode(kind, bits)
    assert not isinstance(x, str)
    return x


def bits_of(kind: str, x: Fraction, minus_zero: bool = False) -> int:
    if kind == "f64":
        return int(np.float64(float(x)).view(np.uint64))
    return encode_value(kind, x, x < 0 or minus_zero)


def number(kind: str, bits: int) -> Any:
    """Operand as a number: fractions for floats, integers for the others."""
    bits &= (1 << BITS[kind]) - 1
    if kind in ("f16", "bf16", "f32", "f64"):
        return float_of(kind, bits)
    return signed(bits, BITS[kind]) if kind[0] == "i" else bits


def value_of(kind: str, x: Any) -> int:
    if kind in ("f16", "bf16", "f32", "f64"):
        return bits_of(kind, Fraction(x))
    return int(x) & ((1 << BITS[kind]) - 1)


def operand(rnd: random.Random, kind: str, small: bool = False) -> int:
    if kind == "f64":
        x = rnd.uniform(1, 2) * 2.0 ** rnd.randint(-3, 20) * rnd.choice((-1, 1))
        return int(np.float64(x).view(np.uint64))
    if kind in ("f32", "f16", "bf16"):
        bits = 0x7FFFFFFF
        while isinstance(decode(kind, bits)[0], str):
            bits = sample(rnd, kind, 3 if small or kind == "f16" else 6)
        return bits
    return rnd.choice((rnd.getrandbits(BITS[kind]), 0, 1, (1 << BITS[kind]) - 1, 1 << (BITS[kind] - 1)))


def reg(k: int, kind: str) -> str:
    return f"v[{k}:{k + 1}]" if BITS[kind] == 64 else f"v{k}"


Case = tuple[str, str, list[str], Callable[..., Any]]  # mnemonic, result type, source types, function of numbers


def trunc_to(lo: int, hi: int) -> Callable[[Fraction], int]:
    return lambda x: min(max(math.trunc(x), lo), hi)


def norm16(x: Fraction, lo: int, scale: int) -> int:
    return round(min(max(x, Fraction(lo)), Fraction(1)) * scale)  # to nearest even


CASES: list[Case] = [
    ("v_cvt_f16_i16", "f16", ["i16"], lambda a: a),
    ("v_cvt_f16_u16", "f16", ["u16"], lambda a: a),
    ("v_cvt_u16_f16", "u16", ["f16"], trunc_to(0, 65535)),
    ("v_cvt_i16_f16", "i16", ["f16"], trunc_to(-32768, 32767)),
    ("v_cvt_norm_i16_f16", "i16", ["f16"], lambda a: norm16(a, -1, 32767)),
    ("v_cvt_norm_u16_f16", "u16", ["f16"], lambda a: norm16(a, 0, 65535)),
    ("v_cvt_off_f32_i4", "f32", ["u32"], lambda a: Fraction(signed(a & 15, 4), 16)),
    ("v_cvt_f64_u32", "f64", ["u32"], lambda a: a),
    ("v_cvt_f64_i32", "f64", ["i32"], lambda a: a),
    ("v_cvt_f64_f32", "f64", ["f32"], lambda a: a),
    ("v_cvt_i32_f64", "i32", ["f64"], trunc_to(-(1 << 31), (1 << 31) - 1)),
    ("v_cvt_u32_f64", "u32", ["f64"], trunc_to(0, (1 << 32) - 1)),
    ("v_cvt_f32_f64", "f32", ["f64"], lambda a: a),
    ("v_cvt_f32_bf16", "f32", ["bf16"], lambda a: a),
    ("v_frexp_exp_i32_f32", "i32", ["f32"], lambda a: math.frexp(float(a))[1] if a else 0),
    ("v_frexp_exp_i32_f64", "i32", ["f64"], lambda a: math.frexp(float(a))[1] if a else 0),
    ("v_frexp_mant_f64", "f64", ["f64"], lambda a: Fraction(math.frexp(float(a))[0])),
    ("v_fract_f64", "f64", ["f64"], lambda a: a - math.floor(a)),
    ("v_trunc_f64", "f64", ["f64"], math.trunc),
    ("v_floor_f64", "f64", ["f64"], math.floor),
    ("v_ceil_f64", "f64", ["f64"], math.ceil),
    ("v_rndne_f64", "f64", ["f64"], round),
    ("v_mov_b32", "b32", ["b32"], lambda a: a),
    ("v_mov_b64", "f64", ["f64"], lambda a: a),
    ("v_cvt_i32_f32", "i32", ["f32"], trunc_to(-(1 << 31), (1 << 31) - 1)),
    ("v_cvt_u32_f32", "u32", ["f32"], trunc_to(0, (1 << 32) - 1)),
    ("v_sat_pk_u8_i16", "u16", ["b32"],
        lambda a: min(max(signed(a & 0xFFFF, 16), 0), 255) | min(max(signed(a >> 16, 16), 0), 255) << 8),
    ("v_ldexp_f16", "f16", ["f16", "i16"], None),  # type: ignore[list-item]
]  # fmt: skip
ZERO_SIGN = {"v_trunc_f64", "v_floor_f64", "v_ceil_f64", "v_rndne_f64", "v_fract_f64"}


def forms(c: Case) -> list[tuple[str, str]]:
    name, to, types, _ = c
    args = ", ".join([reg(8, to)] + [reg(2 * i, t) for i, t in enumerate(types)])
    sels = " ".join(f"src{i}_sel:{'WORD_1' if BITS[t] == 16 else 'DWORD'}" for i, t in enumerate(types))
    return [
        (f"{name}_e32 {args}", "e32"),
        (f"{name}_e64 {args}", "e64"),
        (f"{name}_dpp {args} {DPP}", "dpp"),
        (f"{name}_dpp {args} row_newbcast:3 row_mask:0xf bank_mask:0xf", "newbcast"),
        (f"{name}_sdwa {args} dst_sel:DWORD dst_unused:UNUSED_PAD {sels}", "sdwa"),
    ]


@pytest.mark.parametrize("arch", ARCHS)
def test_conversions(arch):
    """Conversions and roundings in all their encodings; lanes that are off keep their register."""
    rnd = random.Random(1)
    cases = [(c, *f) for c in CASES for f in forms(c)]
    ran = 0
    for (case, text, enc), code in zip(cases, encode(arch, [c[1] for c in cases]), strict=True):
        if code is None:
            continue
        name, to, types, f = case
        src = [[operand(rnd, t) for _ in range(LANES)] for t in types]
        if name in ("v_cvt_norm_i16_f16", "v_cvt_norm_u16_f16"):
            src[0] = [
                encode_value("f16", Fraction(rnd.uniform(-1.2, 1.2)), False) & 0x7FFF | rnd.getrandbits(1) << 15
                for _ in range(LANES)
            ]
        if name == "v_ldexp_f16":
            src[1] = [rnd.randint(-12, 8) & 0xFFFF for _ in range(LANES)]
            f = lambda a, b: a * Fraction(2) ** b  # noqa: E731
        v: dict[str, str] = {"8": hexrow([0x11111111] * LANES), "9": hexrow([0x22222222] * LANES)}
        for i, (t, xs) in enumerate(zip(types, src, strict=True)):
            shift = 16 if enc == "sdwa" and BITS[t] == 16 else 0
            junk = [rnd.getrandbits(16) << (16 - shift) if BITS[t] == 16 else 0 for _ in range(LANES)]
            words = [x << shift | j for x, j in zip(xs, junk, strict=True)]
            v[str(2 * i)] = hexrow(words)
            if BITS[t] == 64:
                v[str(2 * i + 1)] = hexrow([x >> 32 for x in xs])
        out = execute(arch, code, {"exec": f"{PAIRS:016x}", "v": v})
        n = BITS[to]
        for lane in range(LANES):
            have = int(row(out, 8)[lane]) | (int(row(out, 9)[lane]) << 32 if n == 64 else 0)
            if not PAIRS >> lane & 1:
                assert have & 0xFFFFFFFF == 0x11111111, f"{text}: lane {lane} is off"
                continue
            first = {"dpp": lane ^ 1, "newbcast": lane & ~15 | 3}.get(enc, lane)
            picks = [xs[first if i == 0 else lane] for i, xs in enumerate(src)]
            if enc == "newbcast" and not PAIRS >> first & 1:  # a source that is off: the register is kept
                assert have & 0xFFFFFFFF == 0x11111111, f"{text}: lane {lane}"
                continue
            want = value_of(to, f(*(number(t, x) for t, x in zip(types, picks, strict=True))))
            have &= (1 << n) - 1
            if want == 0 and name in ZERO_SIGN:
                have &= (1 << 63) - 1
            if to in ("f16", "f32") and want << 1 & ((1 << n) - 1) == 0:
                have &= (1 << (n - 1)) - 1
                want = 0
            assert have == want, f"{text}: lane {lane} is {have:x}, not {want:x} of {[hex(p) for p in picks]}"
        ran += 1
    assert ran >= 60


MULADD = {  # name -> (type, sources of which the last may be the destination)
    "v_mac_f32": ("f32", True), "v_mac_f16": ("f16", True), "v_fmac_f64": ("f64", True), "v_fmac_f32": ("f32", True),
    "v_fmac_f16": ("f16", True), "v_mad_f32": ("f32", False), "v_mad_f16": ("f16", False),
    "v_mad_legacy_f32": ("f32", False), "v_mad_legacy_f16": ("f16", False), "v_fma_legacy_f16": ("f16", False),
    "v_fma_f64": ("f64", False), "v_fma_f16": ("f16", False),
}  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
def test_multiply_adds(arch):
    """Products and sums that are exact, in every form; the legacy f32 product of a zero is zero."""
    rnd = random.Random(2)
    cases = []
    for name, (kind, acc) in MULADD.items():
        d, a, b, c = (reg(k, kind) for k in (8, 0, 2, 4))
        if acc:
            cases += [(f"{name}_e32 {d}, {a}, {b}", kind, "e32"), (f"{name}_e64 {d}, -{a}, |{b}|", kind, "e64 mods"),
                      (f"{name}_dpp {d}, {a}, {b} {DPP}", kind, "dpp")]  # fmt: skip
        else:
            cases += [
                (f"{name} {d}, {a}, {b}, {c}", kind, "vop3"),
                (f"{name} {d}, -{a}, {b}, |{c}|", kind, "vop3 mods"),
            ]
    cases += [
        (f"v_{op}ak_f{n} v8, v0, v2, 0x{three:x}", f"f{n}", "ak")
        for op in ("mad", "fma")
        for n, three in ((32, 0x40400000), (16, 0x4200))
    ] + [
        (f"v_{op}mk_f{n} v8, v0, 0x{three:x}, v2", f"f{n}", "mk")
        for op in ("mad", "fma")
        for n, three in ((32, 0x40400000), (16, 0x4200))
    ]
    ran = 0
    for (text, kind, how), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        src = [[value_of(kind, rnd.randint(-12, 12)) for _ in range(LANES)] for _ in range(4)]
        v = {}
        for i, xs in enumerate(src[:3]):
            v[str(2 * i)] = hexrow(xs)
            v[str(2 * i + 1)] = hexrow([x >> 32 for x in xs])
        v["8"], v["9"] = hexrow(src[3]), hexrow([x >> 32 for x in src[3]])
        out = execute(arch, code, {"exec": f"{PAIRS:016x}", "v": v})
        for lane in range(LANES):
            if not PAIRS >> lane & 1:
                continue
            a, b, c, d = (number(kind, xs[lane]) for xs in src)
            if how == "dpp":
                a = number(kind, src[0][lane ^ 1])
            acc = d if text.split()[0].split("_")[1] in ("mac", "fmac") else c
            if how == "e64 mods":
                a, b = -a, abs(b)
            if how == "vop3 mods":
                a, acc = -a, abs(c)
            x = a * b + 3 if how == "ak" else a * 3 + b if how == "mk" else a * b + acc
            have = int(row(out, 8)[lane]) | (int(row(out, 9)[lane]) << 32 if kind == "f64" else 0)
            assert number(kind, have) == x, f"{text}: lane {lane} is {number(kind, have)}, not {x}"
        ran += 1
    assert ran >= 20


@pytest.mark.parametrize("arch", ARCHS)
def test_dot2_subnormal_halves(arch):
    """gfx90a takes subnormal halves as zero, the others as they are; MODE has no say."""
    cases = [f"v_dot2_f32_f16 v8, v0, v2, 0{m}" for m in ("", " neg_lo:[1,0,0]")] + ["v_dot2c_f32_f16_e32 v8, v0, v2"]
    ran = 0
    for text, code in zip(cases, encode(arch, cases), strict=True):
        if code is None:
            continue
        for denorm in range(4):
            v = {"0": hexrow([0x8001] * LANES), "2": hexrow([0x0400] * LANES), "8": "0" * 512}
            got = row(execute(arch, code, {"v": v, "mode": {"fp16_64_denorm": denorm, "fp32_denorm": denorm}}), 8)
            sign = 0 if "neg" in text else 0x80000000
            want = 0 if arch == "gfx90a" else 0x2C800000 | sign
            assert set((got & 0x7FFFFFFF if arch == "gfx90a" else got).tolist()) == {want}, f"{text}, denorm {denorm}"
        ran += 1
    assert ran >= 2


def half(x: int, k: int) -> int:
    return x >> 16 * k & 0xFFFF


@pytest.mark.parametrize("arch", ARCHS)
def test_dot_products(arch):
    """v_dot2c, v_dot4c, v_dot8c and v_dot2_f32_bf16 in e32, e64 and DPP forms; float sums that are exact."""
    rnd = random.Random(3)
    kinds: dict[str, tuple[str, int]] = {
        "v_dot2c_f32_f16": ("f16", 16), "v_dot2c_f32_bf16": ("bf16", 16), "v_dot2c_i32_i16": ("i16", 16),
        "v_dot4c_i32_i8": ("i8", 8), "v_dot8c_i32_i4": ("i4", 4),
    }  # fmt: skip
    cases = []
    for name in kinds:
        cases += [(name, f"{name}_e32 v8, v0, v2", "e32"), (name, f"{name}_e64 v8, v0, v2", "e64"),
                  (name, f"{name}_dpp v8, v0, v2 {DPP}", "dpp")]  # fmt: skip
    kinds |= {"v_dot2_f32_bf16": ("bf16", 16), "v_dot2_f32_f16": ("f16", 16)}
    cases += [(f"v_dot2_f32_{t}", f"v_dot2_f32_{t} v8, v0, v2, v4{m}", "vop3p") for t in ("bf16", "f16")
              for m in ("", " neg_lo:[1,0,0] neg_hi:[0,1,0]")]  # fmt: skip
    ran = 0
    for (name, text, how), code in zip(cases, encode(arch, [c[1] for c in cases]), strict=True):
        if code is None:
            continue
        kind, n = kinds[name]
        count = 32 // n
        ints = [[[rnd.randint(-7, 7) for _ in range(count)] for _ in range(LANES)] for _ in range(2)]
        flt = kind in ("f16", "bf16")
        low = (1 << n) - 1
        coded = [[[value_of(kind, x) if flt else x & low for x in xs] for xs in s] for s in ints]
        words = [[sum(x << n * i for i, x in enumerate(xs)) for xs in s] for s in coded]
        acc = [rnd.randint(-100, 100) for _ in range(LANES)]
        bits = [value_of("f32" if flt else "i32", x) for x in acc]
        v = {"0": hexrow(words[0]), "2": hexrow(words[1]), "4": hexrow(bits), "8": hexrow(bits)}
        out = execute(arch, code, {"exec": f"{PAIRS:016x}", "v": v})
        for lane in range(LANES):
            if not PAIRS >> lane & 1:
                continue
            a, b = list(ints[0][lane ^ 1 if how == "dpp" else lane]), list(ints[1][lane])
            if "neg_lo" in text:
                a[0], b[1] = -a[0], -b[1]
            x = sum(p * q for p, q in zip(a, b, strict=True)) + acc[lane]
            have = int(row(out, 8)[lane])
            assert number("f32" if flt else "i32", have) == x, f"{text}: lane {lane} is {have:x}, not {x}"
        ran += 1
    assert ran >= 8


@pytest.mark.parametrize("arch", ARCHS)
def test_packed_halves(arch):
    """v_pk_fmac_f16, v_pk_mul_f16, v_pk_sub_i16, v_cvt_pk_f16_f32 and v_fma_mix_f32 with their selections."""
    rnd = random.Random(4)

    def h(x: int) -> Fraction:
        return number("f16", x)

    def pack(lo: Any, hi: Any) -> int:
        return value_of("f16", lo) | value_of("f16", hi) << 16

    def fmac(a: int, b: int, c: int, d: int) -> int:
        low, high = (h(half(a, k)) * h(half(b, k)) + h(half(d, k)) for k in (0, 1))
        return pack(low, high)

    def product(a: int, b: int, c: int, d: int) -> int:
        return pack(h(half(a, 0)) * h(half(b, 0)), h(half(a, 1)) * h(half(b, 1)))

    cases: list[tuple[str, Callable[..., int]]] = [
        ("v_pk_fmac_f16_e32 v8, v0, v2", fmac),
        ("v_pk_mul_f16 v8, v0, v2", product),
        ("v_pk_mul_f16 v8, v0, v2 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[1,0]",
            lambda a, b, c, d: pack(-h(half(a, 1)) * h(half(b, 0)), h(half(a, 0)) * h(half(b, 1)))),
        ("v_pk_sub_i16 v8, v0, v2",
            lambda a, b, c, d: (half(a, 0) - half(b, 0) & 0xFFFF) | (half(a, 1) - half(b, 1) & 0xFFFF) << 16),
        ("v_fma_mix_f32 v8, v0, v2, v4 op_sel:[1,0,0] op_sel_hi:[1,1,0]",
            lambda a, b, c, d: value_of("f32", h(half(a, 1)) * h(half(b, 0)) + number("f32", c))),
        ("v_mad_mix_f32 v8, v0, v2, v4 op_sel:[1,0,0] op_sel_hi:[1,1,0]",
            lambda a, b, c, d: value_of("f32", h(half(a, 1)) * h(half(b, 0)) + number("f32", c))),
    ]  # fmt: skip
    ran = 0
    codes = encode(arch, [c[0] for c in cases])
    base = codes[0]
    assert base is not None
    # forms of v_pk_fmac_f16 that the assembler has no text for: e64 and DPP and SDWA words made by hand
    op = int.from_bytes(base, "little") >> 25 & 0x3F
    e64 = (0xD0000000 | (0x100 + op) << 16 | 8) | (256 | (256 + 2) << 9) << 32
    dpp = (int.from_bytes(base, "little") & ~0x1FF | 0xFA) | 0xFF00B100 << 32
    sdwa = (int.from_bytes(base, "little") & ~0x1FF | 0xF9) | 0x06060600 << 32
    made = [
        (f"v_pk_fmac_f16 {n}", fmac, x.to_bytes(8, "little")) for n, x in (("e64", e64), ("dpp", dpp), ("sdwa", sdwa))
    ]
    for text, f, code in [(t, f, c) for (t, f), c in zip(cases, codes, strict=True)] + made:
        if code is None:
            continue
        small = [[rnd.randint(-9, 9) for _ in range(2 * LANES)] for _ in range(4)]
        src = [[pack(xs[2 * i], xs[2 * i + 1]) for i in range(LANES)] for xs in small]
        if "mix" in text:
            src[2] = [value_of("f32", rnd.randint(-1000, 1000)) for _ in range(LANES)]
        v = {"0": hexrow(src[0]), "2": hexrow(src[1]), "4": hexrow(src[2]), "8": hexrow(src[3])}
        got = row(execute(arch, code, {"exec": f"{PAIRS:016x}", "v": v}), 8)
        for lane in range(LANES):
            a, b, c, d = (xs[lane] for xs in src)
            if text.endswith("dpp"):
                a = src[0][lane ^ 1]
            want = f(a, b, c, d) if PAIRS >> lane & 1 else d
            have = int(got[lane])
            same = have == want or ("f16" in text and all(h(half(have, k)) == h(half(want, k)) for k in (0, 1)))
            assert same, f"{text}: lane {lane} is {have:x}, not {want:x}"
        ran += 1
    assert ran >= 7
    code = encode(arch, ["v_cvt_pk_f16_f32 v8, v0, v2"])[0]
    assert (code is not None) == (arch == "gfx950")
    if code is not None:
        a, b = ([operand(rnd, "f32") for _ in range(LANES)] for _ in range(2))
        got = row(execute(arch, code, {"v": {"0": hexrow(a), "2": hexrow(b), "8": "0" * 512}}), 8)
        for lane in range(LANES):
            want = sum(encode_value("f16", *decode("f32", x)) << 16 * k for k, x in enumerate((a[lane], b[lane])))
            assert int(got[lane]) == want, f"v_cvt_pk_f16_f32: lane {lane} is {got[lane]:x}, not {want:x}"


ROOTS = {
    "rcp": lambda x: 1 / x,
    "rsq": lambda x: 1 / math.sqrt(x),
    "sqrt": math.sqrt,
    "log": math.log2,
    "exp": lambda x: 2.0**x,
}


@pytest.mark.parametrize("arch", ARCHS)
def test_approximations(arch):
    """rcp, rsq, sqrt, log and exp in forms not reached elsewhere, within the documented error."""
    rnd = random.Random(5)
    cases = []
    for name, bits, ulp in (("rcp", 64, 1 << 29), ("rsq", 64, 1 << 29), ("sqrt", 64, 1 << 29)):
        # the f64 instructions give 2^29 ulp: the start of a Newton iteration
        cases += [
            (f"v_{name}_f64_e64 v[8:9], v[0:1]", name, 64, ulp, ""),
            (f"v_{name}_f64_dpp v[8:9], v[0:1] row_newbcast:5 row_mask:0xf bank_mask:0xf", name, 64, ulp, "newbcast"),
        ]
    sd = "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:"
    legacy = (("log_legacy_f32", "log", 32, 4), ("exp_legacy_f32", "exp", 32, 4))
    for op, name, bits, ulp in (("rcp_f16", "rcp", 16, 1), ("rcp_iflag_f32", "rcp", 32, 1), *legacy):
        word = "WORD_1" if bits == 16 else "DWORD"
        cases.append((f"v_{op}_sdwa v8, v0 {sd}{word}", name, bits, ulp, "word" if bits == 16 else ""))
    ran = 0
    for (text, name, bits, ulp, how), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        x = np.array([rnd.uniform(0.25, 16) for _ in range(LANES)], f"f{bits // 8}")
        raw = [int(p) << (16 if how == "word" else 0) for p in x.view(f"u{bits // 8}")]
        v = {"0": hexrow(raw), "1": hexrow([p >> 32 for p in raw]), "8": "0" * 512, "9": "0" * 512}
        out = execute(arch, code, {"exec": f"{PAIRS:016x}", "v": v})
        for lane in range(LANES):
            if not PAIRS >> lane & 1:
                continue
            have = int(row(out, 8)[lane]) | (int(row(out, 9)[lane]) << 32 if bits == 64 else 0)
            got = float(np.array(have & ((1 << bits) - 1), f"u{bits // 8}").view(f"f{bits // 8}"))
            at = lane & ~15 | 5 if how == "newbcast" else lane
            if not PAIRS >> at & 1:
                continue
            want = ROOTS[name](float(x[at]))
            step = float(np.spacing(np.array(abs(want), f"f{bits // 8}"))) * ulp
            assert abs(got - want) <= step, f"{text}: lane {lane}: {got}, not {want}"
        ran += 1
    assert ran >= 7


@pytest.mark.parametrize("arch", ARCHS)
def test_trig_preop(arch):
    """v_trig_preop_f64: 53 bits of 2 / pi from the place that the exponent and the segment say."""
    rnd = random.Random(6)
    # 2 / pi to 1400 bits by integer arithmetic (Machin)
    n = 1500

    def arctan_inverse(x: int) -> int:
        total, term, k = 0, (1 << n) // x, 0
        while term:
            total += (-1) ** k * term // (2 * k + 1)
            term //= x * x
            k += 1
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    two_over_pi = (2 << 2 * n) // pi  # scaled by 2^n
    code = encode(arch, ["v_trig_preop_f64 v[8:9], v[0:1], v2"])[0]
    assert code is not None
    exps = [rnd.choice((0, 100, 1077, 1078, rnd.randint(1079, 2046))) for _ in range(LANES)]
    raw = [e << 52 | rnd.getrandbits(52) | rnd.getrandbits(1) << 63 for e in exps]
    seg = [rnd.randint(0, 2) for _ in range(LANES)]
    v = {"0": hexrow(raw), "1": hexrow([x >> 32 for x in raw]), "2": hexrow(seg), "8": "0" * 512, "9": "0" * 512}
    out = execute(arch, code, {"v": v})
    for lane in range(LANES):
        e = exps[lane]
        shift = 53 * seg[lane] + (e - 1077 if e > 1077 else 0)
        have = float(np.uint64(int(row(out, 8)[lane]) | int(row(out, 9)[lane]) << 32).view(np.float64))
        bits = two_over_pi >> (n - shift - 53) & ((1 << 53) - 1) if shift + 53 <= 1201 else None
        if bits is None:
            continue
        scale = -53 - shift + (128 if e >= 1968 else 0)
        assert Fraction(have) == bits * Fraction(2) ** scale, f"lane {lane}: exponent {e}, segment {seg[lane]}: {have}"


@pytest.mark.parametrize("arch", ARCHS)
def test_division_fixups(arch):
    """v_div_fixup_legacy_f16 and v_div_fixup_f16: signs, zeros, infinities and NaN of numerator and denominator."""
    specials = [0x0000, 0x8000, 0x3C00, 0xC000, 0x7C00, 0xFC00, 0x7E00, 0x4248]
    pairs = [(d, x) for d in specials for x in specials]
    for name in ("v_div_fixup_legacy_f16", "v_div_fixup_f16"):
        code = encode(arch, [f"{name} v8, v0, v2, v4"])[0]
        assert code is not None, name
        v = {
            "0": hexrow([0x3800] * LANES),
            "2": hexrow([d for d, _ in pairs]),
            "4": hexrow([x for _, x in pairs]),
            "8": "0" * 512,
        }
        got = row(execute(arch, code, {"v": v}), 8)
        for lane, (d, x) in enumerate(pairs):
            sign = (d ^ x) & 0x8000
            dm, xm = d & 0x7FFF, x & 0x7FFF
            have = int(got[lane]) & 0xFFFF
            if dm > 0x7C00 or xm > 0x7C00 or (dm == xm and dm in (0, 0x7C00)):
                assert have & 0x7FFF > 0x7C00, f"{name}: {x:x} / {d:x} is {have:x}, not NaN"
                continue
            want = 0x7C00 if dm == 0 or xm == 0x7C00 else 0 if xm == 0 or dm == 0x7C00 else 0x3800
            assert have == sign | want, f"{name}: {x:x} / {d:x} is {have:x}, not {sign | want:x}"


@pytest.mark.parametrize("arch", ARCHS)
def test_cube_maps(arch):
    """Face, coordinates and twice the major axis of a direction: the larger magnitude wins, z before y before x."""

    def cube(x: float, y: float, z: float) -> tuple[float, float, float, float]:
        if abs(z) >= abs(x) and abs(z) >= abs(y):
            return (5, -x, -y, 2 * z) if z < 0 else (4, x, -y, 2 * z)
        if abs(y) >= abs(x):
            return (3, x, -z, 2 * y) if y < 0 else (2, x, z, 2 * y)
        return (1, z, -y, 2 * x) if x < 0 else (0, -z, -y, 2 * x)

    rng = np.random.default_rng(8)
    x = rng.integers(-6, 7, (3, LANES)).astype(np.float32)
    x[x == 0] = 0.5
    v = {str(2 * i): hexrow(x[i].view(np.uint32)) for i in range(3)} | {"8": "0" * 512}
    for k, name in enumerate(("id", "sc", "tc", "ma")):
        code = encode(arch, [f"v_cube{name}_f32 v8, v0, v2, v4"])[0]
        assert code is not None, name
        got = row(execute(arch, code, {"v": v}), 8).view(np.float32)
        for lane in range(LANES):
            want = cube(*(float(p) for p in x[:, lane]))[k]
            assert float(got[lane]) == want, f"cube{name}: lane {lane} is {got[lane]}, not {want} of {x[:, lane]}"


SPARSE = {  # suffix -> (types of A and B, bits an element, largest integer that every type holds exactly)
    "i8": ("int8", "int8", 8, 127),
    "f16": ("float16", "float16", 16, 64),
    "bf16": ("bfloat16", "bfloat16", 16, 64),
    "fp8_fp8": ("float8_e4m3fn", "float8_e4m3fn", 8, 8),
    "fp8_bf8": ("float8_e4m3fn", "float8_e5m2", 8, 4),
    "bf8_fp8": ("float8_e5m2", "float8_e4m3fn", 8, 4),
    "bf8_bf8": ("float8_e5m2", "float8_e5m2", 8, 4),
}


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_of_gfx950(kind):
    """v_smfmac of gfx950's own shapes, in place: two of every four k of A; integers, so every sum is exact."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    ta, tb, bits, most = SPARSE[kind]
    rng = np.random.default_rng(9)
    per = 32 // bits

    def code_of(t: str, x: int) -> int:
        return int(np.array(x).astype(np.dtype(t)).view(np.uint8 if bits == 8 else np.uint16))

    for size, depth in ((16, 128), (32, 64)):
        depth = depth * 8 // bits
        groups, regs = 64 // size, size * size // 64
        a = rng.integers(-most, most + 1, (size, depth // 2))
        b = rng.integers(-most, most + 1, (depth, size))
        c = rng.integers(-1000, 1000, (size, size))
        pos = np.array([[sorted(rng.choice(4, 2, replace=False)) for _ in range(depth // 4)] for _ in range(size)])
        dense = np.zeros((size, depth), np.int64)
        for i in range(size):
            for q in range(depth // 2):
                dense[i, 4 * (q // 2) + pos[i, q // 2, q % 2]] = a[i, q]
        want = c + dense @ b
        ea, eb = depth // 2 // groups, depth // groups  # elements a lane
        ra, rb, rd, ri = (np.zeros((32, LANES), np.uint32) for _ in range(4))
        for lane in range(LANES):
            i, g = lane % size, lane // size
            for e in range(ea):
                ra[e // per, lane] |= code_of(ta, a[i, ea * g + e]) << bits * (e % per)
                q = ea * g + e
                ri[0, lane] |= int(pos[i, q // 2, q % 2]) << 2 * e
            for e in range(eb):
                rb[e // per, lane] |= code_of(tb, b[eb * g + e, i]) << bits * (e % per)
        where = {}
        for r in range(regs):
            for lane in range(LANES):
                i = 4 * (lane // 16) + r if size == 16 else 8 * (r // 4) + 4 * (lane // 32) + r % 4
                where[i, lane % size] = (r, lane)
                x = int(c[i, lane % size])
                rd[r, lane] = x & 0xFFFFFFFF if kind == "i8" else np.float32(x).view(np.uint32)
        result = "i32" if kind == "i8" else "f32"
        text = f"v_smfmac_{result}_{size}x{size}x{depth}_{kind} v[32:{31 + regs}], v[0:3], v[8:15], v20"
        code = encode("gfx950", [text])[0]
        assert code is not None, text
        v = {str(k): hexrow(ra[k]) for k in range(4)} | {str(8 + k): hexrow(rb[k]) for k in range(8)}
        v |= {str(32 + k): hexrow(rd[k]) for k in range(regs)} | {"20": hexrow(ri[0])}
        out = execute("gfx950", code, {"v": v})
        for (i, j), (r, lane) in where.items():
            got = row(out, 32 + r)[lane]
            value = signed(int(got), 32) if kind == "i8" else float(np.uint32(got).view(np.float32))
            assert value == want[i, j], f"{text}: D{i, j}"


def test_lone_scale_load():
    """v_mfma_ld_scale_b32 without its matrix instruction does nothing."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    code = encode("gfx950", ["v_mfma_ld_scale_b32 v0, v1"])[0]
    assert code is not None
    before = {"0": hexrow(range(LANES)), "1": hexrow(range(64, 128))}
    out = execute("gfx950", code, {"v": before, "s": {"4": "00000007"}})
    assert out["v"] == before and out["s"] == {"4": "00000007"}


@pytest.mark.parametrize("arch", ARCHS)
def test_row_newbcast(arch):
    """Operations on pairs of registers move lanes by row_newbcast alone: lane 3 of each row of 16 to all of it."""
    rnd = random.Random(12)
    move = "row_newbcast:3 row_mask:0xf bank_mask:0xf"
    types = ("float8_e4m3fnuz", "float8_e5m2fnuz") if arch == "gfx942" else ("float8_e4m3fn", "float8_e5m2")
    a, b, d = ([float(rnd.randint(-50, 50)) for _ in range(LANES)] for _ in range(3))
    words = [[int(np.float64(x).view(np.uint64)) for x in xs] for xs in (a, b, d)]
    v = {}
    for k, xs in zip((0, 2, 8), words, strict=True):
        v[str(k)], v[str(k + 1)] = hexrow([x & 0xFFFFFFFF for x in xs]), hexrow([x >> 32 for x in xs])
    codes = encode(
        arch,
        [f"v_fmac_f64_dpp v[8:9], v[0:1], v[2:3] {move}"]
        + [f"v_cvt_pk_f32_{n}_dpp v[8:9], v0 {move}" for n in ("fp8", "bf8")],
    )
    assert codes[0] is not None
    out = execute(arch, codes[0], {"v": v})
    got = (row(out, 8).astype(np.uint64) | row(out, 9).astype(np.uint64) << np.uint64(32)).view(np.float64)
    assert got.tolist() == [a[lane & ~15 | 3] * b[lane] + d[lane] for lane in range(LANES)]
    assert (codes[1] is None) == (arch == "gfx90a")
    for code, t in zip(codes[1:], types, strict=True):
        if code is None:
            continue
        small = np.array([[rnd.randint(-4, 4) for _ in range(2)] for _ in range(LANES)]).astype(np.dtype(t))
        pairs = small.view(np.uint8).astype(np.uint32)
        out = execute(
            arch,
            code,
            {"v": {"0": hexrow(pairs[:, 0] | pairs[:, 1] << 8), "8": hexrow([0] * LANES), "9": hexrow([0] * LANES)}},
        )
        for k in range(2):
            want = [float(small[lane & ~15 | 3, k]) for lane in range(LANES)]
            assert row(out, 8 + k).astype(np.uint32).view(np.float32).tolist() == want, t


@pytest.mark.parametrize("arch", ARCHS)
def test_bytes_of_random_numbers_and_ds_nop(arch):
    """v_prng_b32 with SDWA picks a word of its source; ds_nop leaves registers and LDS as they were."""
    x = [random.Random(13).getrandbits(32) for _ in range(LANES)]
    code = encode(arch, ["v_prng_b32_sdwa v6, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", "ds_nop"])
    assert (code[0] is None) == (arch != "gfx950")
    if code[0] is not None:
        out = execute(arch, code[0], {"v": {"0": hexrow(x), "6": hexrow([0] * LANES)}})
        assert row(out, 6).tolist() == [prng(n >> 16) for n in x]
    assert code[1] is not None
    before = {"v": {"0": hexrow(x)}, "lds": bytes(range(64)).hex(), "m0": "ffffffff"}
    out = execute(arch, code[1], dict(before))
    assert out["v"] == before["v"] and out["lds"] == before["lds"]
