"""Vector instructions of gfx90a, gfx942 and gfx950 that the outside vectors do not reach: conversions with scales and
with stochastic rounding, 8-bit floats per chip, wide integer operations, multiply-adds. References: exact fractions."""

from __future__ import annotations

import bisect
import functools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import LANES, encode, execute, hexrow, put, row  # noqa: E402

ARCHS = [a for a in ("gfx90a", "gfx942", "gfx950") if sim._native.library().tlsim_arch_available(a.encode())]
EXEC = 0xFFF0FFFF7FFFFFFE
PAIRS = 0xFFFCFF3FC3FFFFF0
BIAS = {"f32": 127, "f16": 15, "bf16": 127, "fp8": 7, "bf8": 15, "fp6": 1, "bf6": 3, "fp4": 1, "fp8z": 8, "bf8z": 16}
SHAPE = {  # bits, exponent bits, fraction bits
    "f32": (32, 8, 23), "f16": (16, 5, 10), "bf16": (16, 8, 7), "fp8": (8, 4, 3), "bf8": (8, 5, 2), "fp6": (6, 2, 3),
    "bf6": (6, 3, 2), "fp4": (4, 2, 1), "fp8z": (8, 4, 3), "bf8z": (8, 5, 2),
}  # fmt: skip
Value = Fraction | str  # "nan", "inf", "-inf"


def decode(kind: str, bits: int) -> tuple[Value, bool]:
    """(value, sign) of a bit pattern."""
    n, eb, fb = SHAPE[kind]
    sign, e, m = bool(bits >> (n - 1) & 1), bits >> fb & (1 << eb) - 1, bits & (1 << fb) - 1
    if kind in ("f32", "f16", "bf16", "bf8") and e == (1 << eb) - 1:
        return ("nan" if m else "-inf" if sign else "inf"), sign
    if (kind == "fp8" and bits & 127 == 127) or (kind.endswith("z") and bits == 128):
        return "nan", sign
    mag = Fraction(m + ((1 << fb) if e else 0)) * Fraction(2) ** (max(e, 1) - BIAS[kind] - fb)
    return (-mag if sign else mag), sign


@functools.cache
def magnitudes(kind: str) -> list[Fraction]:
    """All finite magnitudes of a small type in the order of their codes."""
    n = SHAPE[kind][0]
    out: list[Fraction] = []
    for code in range(1 << (n - 1)):
        x, _ = decode(kind, code)
        if isinstance(x, str):
            break
        out.append(x)
    return out


def neighbours(kind: str, mag: Fraction) -> tuple[int, Fraction]:
    """Code of the largest magnitude <= mag and how far (0 .. 1) mag is on the way to the next one."""
    if SHAPE[kind][0] > 8:
        _, _, fb = SHAPE[kind]
        least = 1 - BIAS[kind]
        e = least
        if mag:
            e = max(mag.numerator.bit_length() - mag.denominator.bit_length(), least)
            e = e if mag >= Fraction(2) ** e or e == least else e - 1
            e = e + 1 if mag >= Fraction(2) ** (e + 1) else e
        q = mag / Fraction(2) ** (e - fb)
        down = q.numerator // q.denominator
        return (e + BIAS[kind] << fb) + down - (1 << fb), q - down
    table = magnitudes(kind)
    i = bisect.bisect_right(table, mag) - 1
    step = table[i + 1] - table[i] if i + 1 < len(table) else table[i] - table[i - 1]
    return i, (mag - table[i]) / step


def encode_value(kind: str, x: Value, sign: bool, seed: int | None = None, saturate: bool = False) -> int:
    """Rounds to a type: nearest even, or stochastically with the seed's bits added below the last bit."""
    n, eb, fb = SHAPE[kind]
    s = 1 << (n - 1) if sign else 0
    small, z = kind in ("fp6", "bf6", "fp4"), kind.endswith("z")
    inf = ((1 << eb) - 1) << fb
    last = (inf if kind in ("f32", "f16", "bf16", "bf8") else 0x7F if kind == "fp8" else 1 << (n - 1)) - 1
    beyond = {"fp8": 0x7F}.get(kind, inf)
    if x == "nan":
        return last if small else 128 if z else s | 0x7F if kind in ("fp8", "bf8") else inf | 1 << (fb - 1)
    if isinstance(x, str):
        return s | last if small else 128 if z else s | beyond
    code, rest = neighbours(kind, abs(x))
    if rest >= 1:
        code, rest = last + 1, Fraction(0)
    elif seed is not None:
        code += rest + Fraction(seed, 1 << 32) >= 1
    else:
        code += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and code & 1)
    if code > last:
        if small or (saturate and kind not in ("f32", "bf16")):
            return s | last
        return 128 if z else s | beyond
    return 0 if z and code == 0 else s | code


def sample(rnd: random.Random, kind: str, near: int = 6) -> int:
    """A bit pattern: mostly numbers of a few binades, some of any kind."""
    n, eb, fb = SHAPE[kind]
    if n <= 8 or rnd.random() < 0.08:
        return rnd.getrandbits(n)
    e = BIAS[kind] + rnd.randint(-near, near)
    m = rnd.getrandbits(fb) & rnd.choice((-1, -1, ~0 << (fb // 2), ~0 << (fb - 3)))
    return rnd.getrandbits(1) << (n - 1) | e << fb | m & ((1 << fb) - 1)


# ---- v_cvt_scalef32_* -----------------------------------------------------------------------------------------------

NARROW = ("fp8", "bf8", "fp4")
PACKED6 = ("fp6", "bf6")
WIDE = ("f32", "f16", "bf16")


def scale_forms() -> list[str]:
    out = []
    for to in NARROW:
        for src in WIDE:
            out += [f"pk_{to}_{src}", f"sr_pk_{to}_{src}" if to == "fp4" else f"sr_{to}_{src}"]
    for src in NARROW:
        for to in WIDE:
            out.append(f"pk_{to}_{src}")
            if src != "fp4" and to != "bf16":
                out.append(f"{to}_{src}")
    for six in PACKED6:
        out += [f"2xpk16_{six}_f32"]
        out += [f"{sr}pk32_{six}_{w}" for w in ("f16", "bf16") for sr in ("", "sr_")]
        out += [f"sr_pk32_{six}_f32"] + [f"pk32_{w}_{six}" for w in WIDE]
    return [f"v_cvt_scalef32_{x}" for x in out]


def parts_of(name: str) -> tuple[bool, int, str, str]:
    """(stochastic, elements, to, from)."""
    words = name.removeprefix("v_cvt_scalef32_").split("_")
    sr = words[0] == "sr"
    words = words[sr:]
    n = {"pk32": 32, "2xpk16": 32, "pk": 2}.get(words[0], 1)
    return sr, n, words[-2], words[-1]


def reg(first: int, n: int) -> str:
    return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"


@pytest.mark.parametrize("name", scale_forms())
def test_scaled_conversion(name):
    """Every element of every active lane; which byte or half is read and written; the rest is kept."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    sr, n, to, src = parts_of(name)
    two = name == f"v_cvt_scalef32_pk_{to}_f32" and src == "f32"
    mixed = "2xpk16" in name
    src_bits, to_bits = SHAPE[src][0], SHAPE[to][0]
    src_regs = max(1, n * src_bits // 32)
    dst_regs = max(1, n * to_bits // 32)
    data = f"{reg(0, 1)}, {reg(1, 1)}" if two else f"{reg(0, 16)}, {reg(16, 16)}" if mixed else reg(0, src_regs)
    operands = f"{reg(40, dst_regs)}, {data}{', v80' if sr else ''}, v81"
    count = 1 + two + mixed + sr + 1  # sources
    variants: list[tuple[str, int, int]] = [("", 0, 0)]  # text, first bit read, first bit written
    if n < 32 and src in NARROW:
        step = 16 if n == 2 and src != "fp4" else 8
        for k in range(1, 32 // step):
            sel = [k & 1, k >> 1 & 1] if step == 8 else [k & 1, 0]
            variants.append((f" op_sel:[{sel[0]},{sel[1]},0]", step * k, 0))
        if n == 1 and to == "f16":
            variants.append((" op_sel:[1,0,1]", 8, 16))
    elif n < 32 and (to == "fp4" or sr):
        for k in range(1, 4):
            if count == 3:
                variants.append((f" op_sel:[0,0,{k & 1},{k >> 1}]", 0, 8 * k))
            elif k in (1, 2, 3):
                variants.append((f" op_sel:[0,0,{k & 1},{k >> 1}]", 0, 8 * k))
    elif n == 2 and to in ("fp8", "bf8"):
        variants.append((" op_sel:[0,0,0,1]" if count == 3 else " op_sel:[0,0,1]", 0, 16))
    codes = encode("gfx950", [f"{name} {operands}{text}" for text, _, _ in variants])
    assert codes[0] is not None, name
    seed = sum(map(ord, name))
    rnd = random.Random(seed)
    ran = 0
    for (text, low, at), code in zip(variants, codes, strict=True):
        if code is None:
            continue
        ovfl = rnd.random() < 0.5
        regs = {k: [0] * LANES for k in range(32)}
        elements = [[sample(rnd, src, 20 if src == "bf16" else 7) for _ in range(n)] for _ in range(LANES)]
        noise = [rnd.getrandbits(32) if src_bits < 32 and src not in WIDE else 0 for _ in range(LANES)]
        for lane in range(LANES):
            if src == "f32":
                for i, x in enumerate(elements[lane]):
                    regs[(i % 2) * 16 + i // 2 if mixed else i][lane] = x
            else:
                big = sum(x << (low + i * src_bits) for i, x in enumerate(elements[lane]))
                if n < 32:
                    big |= noise[lane] & ~(((1 << n * src_bits) - 1) << low)
                for k in range(max(1, src_regs)):
                    regs[k][lane] = big >> 32 * k & 0xFFFFFFFF
        seeds = [rnd.getrandbits(32) for _ in range(LANES)]
        scales = [rnd.randint(122, 132) for _ in range(LANES)]
        scales[9] = 255
        old = [[rnd.getrandbits(32) for _ in range(LANES)] for _ in range(dst_regs)]
        v = {str(k): hexrow(x) for k, x in regs.items()} | {str(40 + k): hexrow(x) for k, x in enumerate(old)}
        v |= {"80": hexrow(seeds), "81": hexrow([s << 23 | rnd.getrandbits(23) for s in scales])}
        out = execute("gfx950", code, {"exec": f"{EXEC:016x}", "v": v, "mode": {"fp16_ovfl": int(ovfl)}})
        got = [row(out, 40 + k) for k in range(dst_regs)]
        for lane in range(LANES):
            want = sum(old[k][lane] << 32 * k for k in range(dst_regs))
            have = sum(int(got[k][lane]) << 32 * k for k in range(dst_regs))
            if EXEC >> lane & 1:
                for i, bits in enumerate(elements[lane]):
                    x, sign = decode(src, bits)
                    by = scales[lane] - 127
                    if scales[lane] == 255:
                        x, sign = "nan", False
                    elif not isinstance(x, str):
                        x = x / Fraction(2) ** by if to not in WIDE else x * Fraction(2) ** by
                    new = encode_value(to, x, sign, seeds[lane] if sr else None, ovfl)
                    shift, mask = at + i * to_bits, (1 << to_bits) - 1
                    if x == "nan" and to in ("fp8", "bf8"):  # sign of a NaN: not compared
                        new = new & 0x7F | have >> shift & 0x80
                    want = want & ~(mask << shift) | new << shift
            assert have == want, f"{name}{text}, seed {seed}: lane {lane} is {have:x}, not {want:x}"
        ran += 1
    assert ran >= (1 if n == 32 else 2), f"{name}: only {ran} selections"


# ---- stochastic rounding, 8-bit floats ------------------------------------------------------------------------------


def small_kind(name: str, arch: str) -> str:
    kind = "bf8" if "bf8" in name else "fp8"
    return kind if arch == "gfx950" else kind + "z"


@pytest.mark.parametrize("arch", [a for a in ARCHS if a != "gfx90a"])
def test_stochastic_conversions(arch):
    """v_cvt_sr_*: the seed's bits are added below the last bit kept; the byte or half that op_sel names is written."""
    cases: list[tuple[str, str, int, int]] = []
    for kind in ("fp8", "bf8"):
        for k in range(4):
            sel = f" op_sel:[0,0,{k & 1},{k >> 1}]" if k else ""
            cases.append((f"v_cvt_sr_{kind}_f32 v4, v0, v1{sel}", small_kind(kind, arch), 8 * k, 8))
    for kind in ("f16", "bf16"):
        cases += [(f"v_cvt_sr_{kind}_f32 v4, v0, v1{s}", kind, at, 16) for s, at in (("", 0), (" op_sel:[0,0,1]", 16))]
    rnd = random.Random(5)
    seen = set()
    for (text, kind, at, n), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        for ovfl in (0, 1):
            a = [sample(rnd, "f32", 18) for _ in range(LANES)]
            seeds = [rnd.choice((0, 0xFFFFFFFF, rnd.getrandbits(32))) for _ in range(LANES)]
            old = [rnd.getrandbits(32) for _ in range(LANES)]
            v = {"0": hexrow(a), "1": hexrow(seeds), "4": hexrow(old)}
            got = row(execute(arch, code, {"exec": f"{EXEC:016x}", "v": v, "mode": {"fp16_ovfl": ovfl}}), 4)
            for lane in range(LANES):
                x, sign = decode("f32", a[lane])
                new = encode_value(kind, x, sign, seeds[lane], bool(ovfl))
                have = int(got[lane])
                mask = ((1 << n) - 1) << at
                if EXEC >> lane & 1:
                    part = have >> at & ((1 << n) - 1)
                    if x == "nan":
                        assert decode(kind, part)[0] == "nan", f"{text}: lane {lane}"
                    else:
                        assert part == new, (
                            f"{text}: lane {lane} is {part:x}, not {new:x} of {a[lane]:x} {seeds[lane]:x}"
                        )
                    assert have & ~mask == old[lane] & ~mask, f"{text}: lane {lane} keeps the rest"
                else:
                    assert have == old[lane], text
        seen.add(text.split()[0])
    assert len(seen) == (2 if arch == "gfx942" else 4)


@pytest.mark.parametrize("arch", [a for a in ARCHS if a != "gfx90a"])
def test_small_floats_per_chip(arch):
    """All 256 codes to f32 in every encoding: FNUZ on gfx942, OCP on gfx950; and back, to nearest even."""
    cases = []
    dpp = "quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
    for kind in ("fp8", "bf8"):
        cases += [(f"v_cvt_f32_{kind}_e32 v4, v0", kind, 0, 1), (f"v_cvt_f32_{kind}_e64 v4, v0", kind, 0, 1),
                  (f"v_cvt_f32_{kind}_e64 v4, v0 op_sel:[1,0]", kind, 16, 1),
                  (f"v_cvt_f32_{kind}_e64 v4, v0 op_sel:[0,1]", kind, 8, 1),
                  (f"v_cvt_f32_{kind}_dpp v4, v0 {dpp}", kind, 0, 1),
                  (f"v_cvt_f32_{kind}_sdwa v4, v0 src0_sel:BYTE_3", kind, 24, 1),
                  (f"v_cvt_pk_f32_{kind}_e32 v[4:5], v0", kind, 0, 2),
                  (f"v_cvt_pk_f32_{kind}_e64 v[4:5], v0", kind, 0, 2),
                  (f"v_cvt_pk_f32_{kind}_e64 v[4:5], v0 op_sel:[1,0]", kind, 16, 2),
                  (f"v_cvt_pk_f32_{kind}_dpp v[4:5], v0 {dpp}", kind, 0, 2),
                  (f"v_cvt_pk_f32_{kind}_sdwa v[4:5], v0 src0_sel:WORD_1", kind, 16, 2)]  # fmt: skip
    rnd = random.Random(6)
    ran = 0
    for (text, kind, at, n), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        kind = small_kind(kind, arch)
        order = list(range(256))
        rnd.shuffle(order)
        for start in range(0, 256, LANES):
            codes = order[start : start + LANES]
            words = [c << at | (rnd.getrandbits(8) << (at + 8) if n == 2 else 0) for c in codes]
            words = [w | rnd.getrandbits(32) & ~(((1 << 8 * n) - 1) << at) for w in words]
            v = {"0": hexrow(words), "4": "0" * 512, "5": "0" * 512}
            out = execute(arch, code, {"exec": f"{PAIRS:016x}", "v": v})
            for lane in range(LANES):
                if not PAIRS >> lane & 1:
                    continue
                word = words[lane ^ 1] if "dpp" in text else words[lane]
                for k in range(n):
                    x, sign = decode(kind, word >> (at + 8 * k) & 255)
                    have = int(row(out, 4 + k)[lane])
                    if x == "nan":
                        assert decode("f32", have)[0] == "nan", f"{text}: lane {lane}"
                    else:
                        assert have == encode_value("f32", x, sign), f"{text}: lane {lane} of {word:x}"
        ran += 1
    assert ran >= 12
    back = [f"v_cvt_pk_{k}_f32 v4, v0, v1{s}" for k in ("fp8", "bf8") for s in ("", " op_sel:[0,0,1]")]
    for text, code in zip(back, encode(arch, back), strict=True):
        assert code is not None, text
        kind, at = small_kind(text, arch), 16 if "op_sel" in text else 0
        for ovfl in (0, 1):
            a, b = ([sample(rnd, "f32", 17) for _ in range(LANES)] for _ in range(2))
            v = {"0": hexrow(a), "1": hexrow(b), "4": hexrow([0x12345678] * LANES)}
            got = row(execute(arch, code, {"v": v, "mode": {"fp16_ovfl": ovfl}}), 4)
            for lane in range(LANES):
                for k, x in enumerate((a[lane], b[lane])):
                    val, sign = decode("f32", x)
                    part = int(got[lane]) >> (at + 8 * k) & 255
                    if val == "nan":
                        assert decode(kind, part)[0] == "nan", text
                    else:
                        assert part == encode_value(kind, val, sign, None, bool(ovfl)), f"{text}: {x:x} gives {part:x}"
                assert int(got[lane]) >> (16 - at) & 0xFFFF == 0x12345678 >> (16 - at) & 0xFFFF, text


# ---- integers -----------------------------------------------------------------------------------------------


def signed(x: int, n: int = 32) -> int:
    x &= (1 << n) - 1
    return x - (1 << n) if x >> (n - 1) else x


def byte(x: int, k: int) -> int:
    return x >> 8 * k & 255


def masked_sad(a: int, b: int) -> int:
    return sum(abs(byte(a, k) - byte(b, k)) for k in range(4) if byte(b, k))


def clamp_to(x: int, low: int, high: int) -> int:
    return min(max(x, low), high)


def bitop3(table: int, a: int, b: int, c: int, n: int) -> int:
    return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(n))


def prng(x: int) -> int:
    return (x << 1 ^ (0xC5 if x >> 31 else 0)) & 0xFFFFFFFF


@pytest.mark.parametrize("arch", ARCHS)
def test_integer_operations_of_cdna(arch):
    """Three-source and wide integer operations, plain and saturating."""
    low32 = 0xFFFFFFFF
    cases: list[tuple[str, Any]] = [
        ("v_ashr_pk_i8_i32 v6, v0, v1, v2", lambda a, b, c, o: clamp_to(signed(a) >> (c & 31), -128, 127) & 255
            | (clamp_to(signed(b) >> (c & 31), -128, 127) & 255) << 8 | o & 0xFFFF0000),
        ("v_ashr_pk_u8_i32 v6, v0, v1, v2", lambda a, b, c, o: clamp_to(signed(a) >> (c & 31), 0, 255)
            | clamp_to(signed(b) >> (c & 31), 0, 255) << 8 | o & 0xFFFF0000),
        ("v_ashr_pk_u8_i32 v6, v0, v1, v2 op_sel:[0,0,0,1]", lambda a, b, c, o: (clamp_to(signed(a) >> (c & 31), 0, 255)
            | clamp_to(signed(b) >> (c & 31), 0, 255) << 8) << 16 | o & 0xFFFF),
        ("v_bitop3_b32 v6, v0, v1, v2 bitop3:0x6a", lambda a, b, c, o: bitop3(0x6A, a, b, c, 32)),
        ("v_bitop3_b16 v6, v0, v1, v2 bitop3:0x96", lambda a, b, c, o: bitop3(0x96, a, b, c, 16) | o & 0xFFFF0000),
        ("v_bitop3_b16 v6, v0, v1, v2 op_sel:[1,0,1,1] bitop3:0x1b",
            lambda a, b, c, o: bitop3(0x1B, a >> 16, b, c >> 16, 16) << 16 | o & 0xFFFF),
        ("v_prng_b32_e32 v6, v0", lambda a, b, c, o: prng(a)),
        ("v_prng_b32_e64 v6, v0", lambda a, b, c, o: prng(a)),
        ("v_prng_b32_dpp v6, v0 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf", lambda a, b, c, o: prng(a)),
        ("v_msad_u8 v6, v0, v1, v2", lambda a, b, c, o: masked_sad(a, b) + c & low32),
        ("v_sad_u8 v6, v0, v1, v2 clamp",
            lambda a, b, c, o: min(sum(abs(byte(a, k) - byte(b, k)) for k in range(4)) + c, low32)),
        ("v_sad_hi_u8 v6, v0, v1, v2",
            lambda a, b, c, o: (sum(abs(byte(a, k) - byte(b, k)) for k in range(4)) << 16) + c & low32),
        ("v_sad_hi_u8 v6, v0, v1, v2 clamp",
            lambda a, b, c, o: min((sum(abs(byte(a, k) - byte(b, k)) for k in range(4)) << 16) + c, low32)),
        ("v_sad_u16 v6, v0, v1, v2 clamp", lambda a, b, c, o: min(
            abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c, low32)),
        ("v_sad_u32 v6, v0, v1, v2 clamp", lambda a, b, c, o: min(abs(a - b) + c, low32)),
        ("v_cmp_lt_u32_e64 s[6:7], v0, v1 clamp", None),
        ("v_xor_b32_sdwa v6, v0, v1 clamp dst_sel:DWORD src0_sel:DWORD src1_sel:WORD_1",
            lambda a, b, c, o: a ^ b >> 16),
        ("v_add_co_u32_e64 v6, s[6:7], v0, v1 clamp", lambda a, b, c, o: min(a + b, low32)),
        ("v_sub_co_u32_e64 v6, s[6:7], v0, v1 clamp", lambda a, b, c, o: max(a - b, 0)),
        ("v_subrev_co_u32_e64 v6, s[6:7], v0, v1 clamp", lambda a, b, c, o: max(b - a, 0)),
    ]  # fmt: skip
    rnd = random.Random(7)
    ran = 0
    for (text, f), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        pick = [0, 1, 0x7FFFFFFF, 0x80000000, low32, 0x00FF00FF, 0x80FF7F01]
        src = [[rnd.choice((rnd.choice(pick), rnd.getrandbits(32))) for _ in range(LANES)] for _ in range(4)]
        v = {str(i): hexrow(x) for i, x in enumerate(src[:3])} | {"6": hexrow(src[3])}
        out = execute(arch, code, {"exec": f"{EXEC:016x}", "v": v, "s": {"6": "0", "7": "0"}})
        if f is None:  # a comparison: the clamp bit has no effect on the result
            want = sum(1 << i for i in range(LANES) if EXEC >> i & 1 and src[0][i] < src[1][i])
            assert int(out["s"]["7"] + out["s"]["6"], 16) == want, text
            ran += 1
            continue
        got = row(out, 6)
        for lane in range(LANES):
            want = f(*(x[lane] for x in src)) if EXEC >> lane & 1 else src[3][lane]
            assert int(got[lane]) == want, f"{text}: lane {lane} is {got[lane]:x}, not {want:x}"
        ran += 1
    assert ran >= 10


@pytest.mark.parametrize("arch", ARCHS)
def test_wide_sums_of_differences(arch):
    """v_qsad_pk_u16_u8, v_mqsad_pk_u16_u8 and v_mqsad_u32_u8: four windows of a 64-bit source."""
    rnd = random.Random(8)
    a = [rnd.getrandbits(64) for _ in range(LANES)]
    b = [rnd.getrandbits(32) & rnd.choice((0xFFFFFFFF, 0xFF00FFFF, 0x00FFFF00)) for _ in range(LANES)]
    c = [[rnd.choice((rnd.getrandbits(32), 0xFFFFFF00)) for _ in range(LANES)] for _ in range(4)]
    v = {"0": hexrow([x & 0xFFFFFFFF for x in a]), "1": hexrow([x >> 32 for x in a]), "2": hexrow(b)}
    v |= {str(4 + k): hexrow(c[k]) for k in range(4)} | {str(8 + k): "0" * 512 for k in range(4)}
    for clamp in (False, True):
        text = f"v_mqsad_u32_u8 v[8:11], v[0:1], v2, v[4:7]{' clamp' if clamp else ''}"
        code = encode(arch, [text])[0]
        assert code is not None
        out = execute(arch, code, {"exec": f"{EXEC:016x}", "v": v})
        for lane in range(LANES):
            for k in range(4):
                x = masked_sad(a[lane] >> 8 * k & 0xFFFFFFFF, b[lane]) + c[k][lane]
                want = (min(x, 0xFFFFFFFF) if clamp else x & 0xFFFFFFFF) if EXEC >> lane & 1 else 0
                assert int(row(out, 8 + k)[lane]) == want, f"{text}: lane {lane}, window {k}"
    for op, f in (("v_qsad_pk_u16_u8", lambda x, y: sum(abs(byte(x, i) - byte(y, i)) for i in range(4))),
                  ("v_mqsad_pk_u16_u8", masked_sad)):  # fmt: skip
        code = encode(arch, [f"{op} v[8:9], v[0:1], v2, v[4:5]"])[0]
        assert code is not None
        out = execute(arch, code, {"exec": f"{EXEC:016x}", "v": v})
        for lane in range(LANES):
            if not EXEC >> lane & 1:
                continue
            for k in range(4):
                acc = c[k // 2][lane] >> 16 * (k % 2) & 0xFFFF
                want = acc + f(a[lane] >> 8 * k & 0xFFFFFFFF, b[lane]) & 0xFFFF
                have = int(row(out, 8 + k // 2)[lane]) >> 16 * (k % 2) & 0xFFFF
                assert have == want, f"{op}: lane {lane}, window {k}"


@pytest.mark.parametrize("arch", ARCHS)
def test_bytes_from_floats(arch):
    """v_cvt_pk_u8_f32 and v_cvt_pkaccum_u8_f32: one byte of a dword, toward zero and saturating."""
    rnd = random.Random(9)
    a = [np.float32(rnd.uniform(-20, 300)) for _ in range(LANES)]
    a[:6] = [np.float32(x) for x in (2.5, 3.5, 255.5, -0.0, float("nan"), float("inf"))]
    bits = [int(x.view(np.uint32)) for x in a]
    which = [rnd.getrandbits(32) for _ in range(LANES)]
    old, third = ([rnd.getrandbits(32) for _ in range(LANES)] for _ in range(2))
    v = {"0": hexrow(bits), "1": hexrow(which), "2": hexrow(third), "6": hexrow(old)}
    for text, base in (("v_cvt_pk_u8_f32 v6, v0, v1, v2", third), ("v_cvt_pkaccum_u8_f32 v6, v0, v1", old)):
        code = encode(arch, [text])[0]
        assert code is not None, text
        got = row(execute(arch, code, {"exec": f"{EXEC:016x}", "v": v}), 6)
        for lane in range(LANES):
            x = float(a[lane])
            n = 0 if x != x or x < 0 else 255 if x > 255 else int(x)
            at = 8 * (which[lane] & 3)
            want = base[lane] & ~(255 << at) | min(n, 255) << at if EXEC >> lane & 1 else old[lane]
            assert int(got[lane]) == want, f"{text}: lane {lane} of {x}"


# ---- lanes --------------------------------------------------------------------------------------------------


def test_row_exchanges():
    """gfx950: v_permlane16_swap and v_permlane32_swap exchange odd rows of the first with even rows of the second."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    rnd = random.Random(10)
    a, b = ([rnd.getrandbits(32) for _ in range(LANES)] for _ in range(2))
    for n in (16, 32):
        for form in ("e32", "e64"):
            code = encode("gfx950", [f"v_permlane{n}_swap_b32_{form} v0, v1"])[0]
            assert code is not None
            out = execute("gfx950", code, {"v": {"0": hexrow(a), "1": hexrow(b)}})
            x, y = list(a), list(b)
            for lane in range(LANES):
                if not lane & n:
                    x[lane + n], y[lane] = b[lane], a[lane + n]
            assert row(out, 0).tolist() == x and row(out, 1).tolist() == y, f"{n} {form}"


@pytest.mark.parametrize("arch", ARCHS)
def test_extremes_of_three(arch):
    """v_minimum3/v_maximum3 (gfx950): NaN wins, -0 is below +0; the packed halves likewise."""
    rnd = np.random.default_rng(11)
    picks = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 3.0], np.float32)
    src = rnd.choice(picks, (3, LANES))

    def extreme(xs: list[float], top: bool) -> float:
        if any(x != x for x in xs):
            return float("nan")
        return sorted(xs, key=lambda x: (x, 0 if np.signbit(x) else 1))[-1 if top else 0]

    names = [f"v_{m}imum3_f32 v6, v0, v1, v2" for m in ("max", "min")]
    names += [f"v_pk_{m}imum3_f16 v6, v0, v1, v2" for m in ("max", "min")]
    ran = 0
    for text, code in zip(names, encode(arch, names), strict=True):
        if code is None:
            continue
        pk, top = "pk" in text, "max" in text
        swap = rnd.permutation(LANES)
        state: dict[str, Any] = {"v": {"6": "0" * 512}}
        for i in range(3):
            if pk:
                h = src[i].astype(np.float16).view(np.uint16).astype(np.uint64)
                put(state, i, h | h[swap] << np.uint64(16))
            else:
                put(state, i, src[i].view(np.uint32).astype(np.uint64))
        got = row(execute(arch, code, state), 6)
        for lane in range(LANES):
            for k, at in enumerate((lane, swap[lane]) if pk else (lane,)):
                want = extreme([float(src[i][at]) for i in range(3)], top)
                bits = int(got[lane]) >> 16 * k & 0xFFFF if pk else int(got[lane])
                have = float(np.uint16(bits).view(np.float16)) if pk else float(np.uint32(bits).view(np.float32))
                same = have == want and np.signbit(have) == np.signbit(want) or (have != have and want != want)
                assert same, f"{text}: lane {lane}: {have}, not {want}"
        ran += 1
    assert ran == (4 if arch == "gfx950" else 0)
