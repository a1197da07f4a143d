"""Instructions and encodings that the outside vectors do not reach: comparisons, integer and float operations in all
encodings, scalar operations, special operands, rounding modes. Expected values come from plain Python: exact integers,
and float64 or exact fractions for floats."""

from __future__ import annotations

import math
import operator
import random
from typing import Any

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import LANES, encode, execute, float_class, hexrow, mask_of, number, put, row, values, wide  # noqa: E402

ARCHS = [a for a in ("gfx90a", "gfx942", "gfx950") if sim._native.library().tlsim_arch_available(a.encode())]
assert "gfx942" in ARCHS
EXEC = 0xFFF0FFFF7FFFFFFE
MASK = (1 << 64) - 1

# ---- comparisons --------------------------------------------------------------------------------------------


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


# ---- integer and float operations in every encoding ---------------------------------------------------------


def s(x: int, n: int = 32) -> int:
    """Signed value of an n-bit pattern."""
    x &= (1 << n) - 1
    return x - (1 << n) if x >> (n - 1) else x


def leading(x: int, what: int) -> int:
    """Zeros (what = 0) or copies of the sign bit (1) at the top of 32 bits; all ones when there is no end to them."""
    x = ~x & 0xFFFFFFFF if what and x >> 31 else x
    return 32 - x.bit_length() if x else 0xFFFFFFFF


BINARY = {  # 32-bit patterns -> integer (taken modulo 2^32)
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_min_i32": lambda a, b: min(s(a), s(b)),
    "v_max_i32": lambda a, b: max(s(a), s(b)),
    "v_min_u32": min,
    "v_max_u32": max,
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: s(b) >> (a & 31),
    "v_mul_i32_i24": lambda a, b: s(a, 24) * s(b, 24),
    "v_mul_hi_i32_i24": lambda a, b: s(a, 24) * s(b, 24) >> 32,
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_hi_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
}
BINARY16 = {  # 16-bit patterns; the low half of the result is compared
    "v_add_u16": lambda a, b: a + b,
    "v_sub_u16": lambda a, b: a - b,
    "v_subrev_u16": lambda a, b: b - a,
    "v_mul_lo_u16": lambda a, b: a * b,
    "v_lshlrev_b16": lambda a, b: b << (a & 15),
    "v_lshrrev_b16": lambda a, b: b >> (a & 15),
    "v_ashrrev_i16": lambda a, b: s(b, 16) >> (a & 15),
    "v_min_i16": lambda a, b: min(s(a, 16), s(b, 16)),
    "v_max_i16": lambda a, b: max(s(a, 16), s(b, 16)),
    "v_min_u16": min,
    "v_max_u16": max,
}
UNARY = {
    "v_mov_b32": lambda a: a,
    "v_not_b32": lambda a: ~a,
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32": lambda a: leading(a, 0),
    "v_ffbh_i32": lambda a: leading(a, 1),
    "v_ffbl_b32": lambda a: (a & -a).bit_length() - 1,
    "v_cvt_f32_i32": lambda a: int(np.float32(s(a)).view(np.uint32)),
    "v_cvt_f32_u32": lambda a: int(np.float32(a).view(np.uint32)),
    **{f"v_cvt_f32_ubyte{k}": lambda a, k=k: int(np.float32(a >> 8 * k & 255).view(np.uint32)) for k in range(4)},
}
CARRY = {  # (a, b, carry in) -> exact result; its sign or bit 32 is the carry out
    "v_add_co_u32": lambda a, b, c: a + b,
    "v_sub_co_u32": lambda a, b, c: a - b,
    "v_subrev_co_u32": lambda a, b, c: b - a,
    "v_addc_co_u32": lambda a, b, c: a + b + c,
    "v_subb_co_u32": lambda a, b, c: a - b - c,
    "v_subbrev_co_u32": lambda a, b, c: b - a - c,
}
PAIRS = 0xFFFCFF3FC3FFFFF0  # lanes on and off in pairs: DPP swaps neighbours


def forms(op: str, args: str, sels: list[str]) -> list[tuple[str, str]]:
    """(text, encoding) of an operation on `args` = "v4, v0[, v1]"; sels: SDWA selections of the sources."""
    names = " ".join(f"src{i}_sel:{x}" for i, x in enumerate(sels))
    return [
        (f"{op}_e32 {args}", "e32"),
        (f"{op}_e64 {args}", "e64"),
        (f"{op}_dpp {args} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", "dpp"),
        (f"{op}_sdwa {args} dst_sel:DWORD dst_unused:UNUSED_PAD {names}", "sdwa"),
    ]


def swapped(x: np.ndarray) -> np.ndarray:
    return x[np.arange(LANES) ^ 1]


@pytest.mark.parametrize("arch", ARCHS)
def test_integer_operations(arch):
    rng = np.random.default_rng(3)
    cases = []
    for op, f in {**BINARY, **BINARY16}.items():
        sels = ["WORD_1", "BYTE_2"]
        cases += [(t, e, f, sels, 16 if op in BINARY16 else 32, 2) for t, e in forms(op, "v4, v0, v1", sels)]
    for op, f in UNARY.items():
        cases += [(t, e, f, ["WORD_1"], 32, 1) for t, e in forms(op, "v4, v0", ["WORD_1"])]
    seen = 0
    for (text, enc, f, sels, bits, n), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        src = [values(rng, "u32") for _ in range(n)]
        old = values(rng, "u32")
        state: dict[str, Any] = {"exec": f"{PAIRS:016x}", "v": {"4": hexrow(old)}}
        for i, x in enumerate(src):
            put(state, i, x)
        if enc == "dpp":
            src[0] = swapped(src[0])
        if enc == "sdwa":
            src = [selected(x, sel) for x, sel in zip(src, sels, strict=True)]
        low = (1 << bits) - 1
        want = [f(*(int(x) & low for x in xs)) & low for xs in zip(*src, strict=True)]
        got = row(execute(arch, code, state), 4)
        for lane in range(LANES):
            on = PAIRS >> lane & 1
            exp, have = (want[lane], int(got[lane]) & low) if on else (int(old[lane]), int(got[lane]))
            assert have == exp, f"{text}: lane {lane} is {have:x}, not {exp:x} of {[hex(int(x[lane])) for x in src]}"
        seen += 1
    assert seen > 120


@pytest.mark.parametrize("arch", ARCHS)
def test_carry_operations(arch):
    rng = np.random.default_rng(4)
    cases = []
    for op, f in CARRY.items():
        cin = ", vcc" if op.startswith(("v_addc", "v_subb")) else ""
        cases += [(t, e, f, bool(cin)) for t, e in (
            (f"{op}_e32 v4, vcc, v0, v1{cin}", "e32"),
            (f"{op}_e64 v4, s[8:9], v0, v1{', s[10:11]' if cin else ''}", "e64"),
            (f"{op}_dpp v4, vcc, v0, v1{cin} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", "dpp"),
            (f"{op}_sdwa v4, vcc, v0, v1{cin} dst_sel:DWORD src1_sel:WORD_1", "sdwa"),
        )]  # fmt: skip
    for (text, enc, f, _), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        assert code is not None, text
        a, b = values(rng, "u32"), values(rng, "u32")
        cin = int(rng.integers(0, 1 << 63)) * 2 + 1
        state: dict[str, Any] = {"exec": f"{PAIRS:016x}", "vcc": f"{cin:016x}", "v": {"4": "0" * 512}}
        state["s"] = {"8": "0", "9": "0", "10": f"{cin & 0xFFFFFFFF:x}", "11": f"{cin >> 32:x}"}
        put(state, 0, a)
        put(state, 1, b)
        a = swapped(a) if enc == "dpp" else a
        b = b >> np.uint64(16) if enc == "sdwa" else b
        exact = [f(int(x), int(y), cin >> i & 1) for i, (x, y) in enumerate(zip(a, b, strict=True))]
        out = execute(arch, code, state)
        got = row(out, 4)
        for lane in range(LANES):
            if PAIRS >> lane & 1:
                assert int(got[lane]) == exact[lane] & 0xFFFFFFFF, f"{text}: lane {lane}"
        want = mask_of(x < 0 or x >> 32 for x in exact) & PAIRS
        if enc == "e64":
            have = int(out["s"]["8"], 16) | int(out["s"]["9"], 16) << 32
            assert int(out["vcc"], 16) == cin, text
        else:
            have = int(out["vcc"], 16)
        assert have & PAIRS == want, f"{text}: carry {have:016x}, not {want:016x}"


def fbits(x: float, n: int) -> int:
    with np.errstate(over="ignore"):
        return int(np.array(x, f"f{n // 8}").view(f"u{n // 8}"))


FLOATS = {  # name without type -> exact or correctly rounded function of float64 numbers
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "subrev": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    "min": min,
    "max": max,
    "trunc": lambda a: math.copysign(math.trunc(a), a),
    "ceil": lambda a: math.copysign(math.ceil(a), a),
    "floor": lambda a: math.copysign(math.floor(a), a) if a >= 0 else float(math.floor(a)),
    "rndne": lambda a: math.copysign(round(a), a),
    "fract": lambda a: a - math.floor(a),
}


@pytest.mark.parametrize("arch", ARCHS)
def test_float_operations(arch):
    """f16, f32 and (one operand) f64; ordinary numbers, so that each result is the correctly rounded one."""
    rng = np.random.default_rng(5)
    cases = []
    for name, f in FLOATS.items():
        n = f.__code__.co_argcount if hasattr(f, "__code__") else 2
        for bits in (16, 32, 64) if n == 1 else (16, 32):
            regs = ("v[4:5], v[0:1]" if bits == 64 else "v4, v0") + (", v1" if n == 2 else "")
            sel = "WORD_1" if bits == 16 else "DWORD"
            cases += [(t, e, f, bits, n) for t, e in forms(f"v_{name}_f{bits}", regs, [sel] * n)]
    seen = 0
    for (text, enc, f, bits, n), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        x = np.ldexp(rng.uniform(1, 2, (2, LANES)), rng.integers(-3, 9, (2, LANES))) * rng.choice([-1, 1], (2, LANES))
        x = x.astype(f"f{bits // 8}")
        if "mul" in text and bits == 16:
            x = (x / 8).astype(np.float16)
        state: dict[str, Any] = {"exec": f"{PAIRS:016x}", "v": {"4": "0" * 512, "5": "0" * 512}}
        pattern = x.view(f"u{bits // 8}").astype(np.uint64)
        for i in range(n):
            p = pattern[i] << np.uint64(16) if enc == "sdwa" and bits == 16 else pattern[i]
            put(state, i, p, 2 if bits == 64 else 1)
        num = x.astype(np.float64)
        if enc == "dpp":
            num[0] = swapped(num[0])
        want = [fbits(f(*(float(num[i][lane]) for i in range(n))), bits) for lane in range(LANES)]
        got = wide(execute(arch, code, state), 4, 2 if bits == 64 else 1)
        for lane in range(LANES):
            if PAIRS >> lane & 1:
                have = int(got[lane]) & ((1 << bits) - 1)
                assert have == want[lane], f"{text}: lane {lane} is {have:x}, not {want[lane]:x} of {num[:n, lane]}"
        seen += 1
    assert seen > 70


# ---- scalar operations --------------------------------------------------------------------------------------


def scalar_cases() -> list[tuple[str, dict[int, int], dict[int, int], int | None, dict[str, int]]]:
    """(text, registers before, registers after, scc after (None: as before), other fields after); EXEC is given."""
    rnd = random.Random(6)
    r = [rnd.getrandbits(32) for _ in range(8)]
    a, b = r[0], r[1]
    p, q = r[2] | r[3] << 32, r[4] | r[5] << 32
    e = EXEC
    two = {6: p & 0xFFFFFFFF, 7: p >> 32, 8: q & 0xFFFFFFFF, 9: q >> 32}

    def pair(x: int, at: int = 4) -> dict[int, int]:
        return {at: x & 0xFFFFFFFF, at + 1: x >> 32 & 0xFFFFFFFF}

    def n(x: int) -> int:
        return x & MASK

    twice = int("".join(2 * d for d in f"{a:032b}"), 2)
    long_sign = (1 << 40) - 1
    out: list[Any] = [
        ("s_bfm_b32 s4, 5, 9", {}, {4: 31 << 9}, None, {}),
        ("s_bfm_b64 s[4:5], 37, 9", {}, pair(((1 << 37) - 1) << 9), None, {}),
        ("s_nand_b32 s4, s6, s7", {6: a, 7: b}, {4: ~(a & b) & 0xFFFFFFFF}, 1, {}),
        ("s_nor_b32 s4, s6, s7", {6: a, 7: ~a & 0xFFFFFFFF}, {4: 0}, 0, {}),
        ("s_xnor_b64 s[4:5], s[6:7], s[8:9]", two, pair(n(~(p ^ q))), 1, {}),
        ("s_orn2_b64 s[4:5], s[6:7], s[8:9]", two, pair(n(p | ~q)), 1, {}),
        ("s_bitreplicate_b64_b32 s[4:5], s6", {6: a}, pair(twice), None, {}),
        ("s_bitset0_b32 s4, s6", {4: MASK >> 32, 6: 35}, {4: 0xFFFFFFF7}, None, {}),
        ("s_bitset1_b32 s4, s6", {4: 0, 6: 35}, {4: 8}, None, {}),
        ("s_bitset0_b64 s[4:5], s6", {4: 0, 5: MASK >> 32, 6: 33}, pair(0xFFFFFFFD << 32), None, {}),
        ("s_bitset1_b64 s[4:5], s6", {4: 0, 5: 0, 6: 33}, pair(2 << 32), None, {}),
        ("s_flbit_i32_i64 s4, s[6:7]", {6: long_sign & 0xFFFFFFFF, 7: long_sign >> 32}, {4: 24}, None, {}),
        ("s_flbit_i32_i64 s4, s[6:7]", {6: 0xFFFFFFFF, 7: 0xFFFFFFFF}, {4: 0xFFFFFFFF}, None, {}),
        ("s_flbit_i32 s4, s6", {6: 0xFFF00000}, {4: 12}, None, {}),
        ("s_bitcmp1_b64 s[6:7], s8", {6: 0, 7: 4, 8: 34}, {}, 1, {}),
        ("s_bitcmp0_b64 s[6:7], s8", {6: 0, 7: 4, 8: 34}, {}, 0, {}),
        ("s_movreld_b32 s4, s6", {6: a, 7: 0}, {7: a}, None, {}),
        ("s_movreld_b64 s[4:5], s[8:9]", two, pair(q, 6), None, {"m0": 2, "before": 2}),
        ("s_movrels_b32 s4, s6", {9: b}, {4: b}, None, {}),
        ("s_movrels_b64 s[4:5], s[6:7]", {8: a, 9: b}, {4: a, 5: b}, None, {"m0": 2, "before": 2}),
        ("s_andn1_wrexec_b64 s[4:5], s[6:7]", two, pair(n(~p & e)), 1, {"exec": n(~p & e)}),
        ("s_andn2_wrexec_b64 s[4:5], s[6:7]", two, pair(n(p & ~e)), int(n(p & ~e) != 0), {"exec": n(p & ~e)}),
        ("s_orn1_saveexec_b64 s[4:5], s[6:7]", two, pair(e), 1, {"exec": n(~p | e)}),
        ("s_orn2_saveexec_b64 s[4:5], s[6:7]", two, pair(e), 1, {"exec": n(p | ~e)}),
        ("s_xnor_saveexec_b64 s[4:5], s[6:7]", two, pair(e), 1, {"exec": n(~(p ^ e))}),
        ("s_nand_saveexec_b64 s[4:5], s[6:7]", two, pair(e), 1, {"exec": n(~(p & e))}),
        # special operands: exec, vcc, scc, vccz, execz, inline constants, literals, ttmp
        ("s_mov_b64 s[4:5], exec", {}, pair(e), None, {}),
        ("s_mov_b32 s4, exec_hi", {}, {4: e >> 32}, None, {}),
        ("s_mov_b64 vcc, s[6:7]", two, {}, None, {"vcc": p}),
        ("s_add_u32 s4, vcc_lo, src_scc", {}, {4: 0x12345679}, 0, {}),
        ("s_mov_b32 s4, src_vccz", {}, {4: 0}, None, {}),
        ("s_mov_b32 s4, src_execz", {}, {4: 0}, None, {}),
        ("s_mov_b32 s4, 0.15915494", {}, {4: 0x3E22F983}, None, {}),
        ("s_mov_b64 s[4:5], -16", {}, pair(n(-16)), None, {}),
        ("s_mov_b64 s[4:5], 4.0", {}, pair(0x4010 << 48), None, {}),
        ("s_mov_b32 s4, 0xdeadbeef", {}, {4: 0xDEADBEEF}, None, {}),
        ("s_mov_b32 m0, s6", {6: a}, {}, None, {"m0": a}),
        ("s_mov_b64 exec, s[6:7]", two, {}, None, {"exec": p}),
    ]
    for k in range(1, 5):
        x = (a << k) + b
        out.append((f"s_lshl{k}_add_u32 s4, s6, s7", {6: a, 7: b}, {4: x & 0xFFFFFFFF}, int(x >> 32 != 0), {}))
    for op, f in (("eq", operator.eq), ("lg", operator.ne), ("gt", operator.gt), ("ge", operator.ge),
                  ("lt", operator.lt), ("le", operator.le)):  # fmt: skip
        for reg, imm in ((7, 7), (0xFFFFFFF0, 0xFFF0), (3, 0x7FFF)):
            out.append((f"s_cmpk_{op}_u32 s6, 0x{imm:x}", {6: reg}, {}, int(f(reg, imm)), {}))
            out.append((f"s_cmpk_{op}_i32 s6, 0x{imm:x}", {6: reg}, {}, int(f(s(reg), s(imm, 16))), {}))
    return out


@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_operations(arch):
    cases = scalar_cases()
    for (text, before, after, scc, fields), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        assert code is not None, text
        start = {**{k: 0xA5A5A500 + k for k in (4, 5)}, **before}
        state = {
            "exec": f"{EXEC:016x}",
            "vcc": f"{0xFFFFFFFF12345678:016x}",
            "scc": 1,
            "m0": f"{fields.get('before', 3):x}",
            "v": {},
        }
        out = execute(arch, code, {**state, "s": {str(k): f"{x:08x}" for k, x in start.items()}})
        want = {**start, **after}
        for k, x in want.items():
            assert int(out["s"][str(k)], 16) == x, f"{text}: s{k} is {out['s'][str(k)]}, not {x:08x}"
        assert {int(k) for k in out["s"]} <= set(want), f"{text}: {set(out['s']) - {str(k) for k in want}} written"
        assert out["scc"] == (1 if scc is None else scc), f"{text}: scc"
        assert int(out["exec"], 16) == fields.get("exec", EXEC), text
        assert int(out["vcc"], 16) == fields.get("vcc", 0xFFFFFFFF12345678), text
        assert int(out["m0"], 16) == fields.get("m0", 3), text


def program(arch: str, text: str) -> bytes:
    lines = [x.strip() for x in text.strip().splitlines()]
    codes = encode(arch, lines)
    assert None not in codes, lines[codes.index(None)]
    return b"".join(codes)  # type: ignore[arg-type]


@pytest.mark.parametrize("arch", ARCHS)
def test_calls_modes_and_indices(arch):
    """Jumps, MODE through s_setreg and s_getreg, register indexing, and instructions without an effect on values."""

    def run(text: str, **state: Any) -> dict[str, Any]:
        return execute(arch, program(arch, text), {"v": {}, "s": {}, **state})

    out = run("s_call_b64 s[4:5], 1\ns_mov_b32 s6, 1\ns_mov_b32 s7, 2")
    assert "6" not in out["s"] and out["s"]["7"] == "00000002"
    jump = "s_getpc_b64 s[4:5]\ns_add_u32 s4, s4, 16\ns_addc_u32 s5, s5, 0\ns_setpc_b64 s[4:5]\n"
    out = run(jump + "s_mov_b32 s6, 1\ns_mov_b32 s7, 2")
    assert "6" not in out["s"] and out["s"]["7"] == "00000002"
    out = run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 9\ns_getreg_b32 s4, hwreg(HW_REG_MODE, 0, 4)")
    assert out["s"]["4"] == "00000009"
    out = run("s_setreg_b32 hwreg(HW_REG_MODE, 2, 2), s6\ns_getreg_b32 s4, hwreg(HW_REG_MODE, 0, 4)", s={"6": "2"})
    assert out["s"]["4"] == "00000008"
    rows = {str(k): hexrow([100 * k + i for i in range(LANES)]) for k in (4, 5, 7, 8)}
    out = run(
        "s_set_gpr_idx_on s6, 1\nv_mov_b32 v4, v5\ns_set_gpr_idx_off\nv_mov_b32 v7, v5", v=rows, s={"6": "3"}, m0="0"
    )
    assert out["v"]["4"] == rows["8"] and out["v"]["7"] == rows["5"]
    out = run("s_set_gpr_idx_on s6, 8\nv_mov_b32 v4, v5\ns_set_gpr_idx_off", v=rows, s={"6": "3"}, m0="0")
    assert out["v"]["7"] == rows["5"] and out["v"]["4"] == rows["4"]
    out = run("s_set_gpr_idx_on s6, 1\ns_set_gpr_idx_idx s7\nv_mov_b32 v4, v5\ns_set_gpr_idx_mode 8\nv_mov_b32 v5, v8\n"
              "s_set_gpr_idx_off", v=rows, s={"6": "3", "7": "2"}, m0="0")  # fmt: skip
    assert out["v"]["4"] == rows["7"] and out["v"]["7"] == rows["8"] and out["v"]["5"] == rows["5"]
    quiet = ["s_nop 3", "s_sleep 1", "s_setprio 2", "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_wakeup", "v_nop",
             "v_clrexcp", "buffer_inv sc1", "buffer_wbl2 sc1",
             "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_incperflevel 1", "s_decperflevel 1"]  # fmt: skip
    for text, code in zip(quiet, encode(arch, quiet), strict=True):
        if code is None:
            continue
        state = {"exec": f"{EXEC:016x}", "vcc": "1234", "scc": 1, "v": {"4": rows["4"]}, "s": {"6": "7"}}
        out = execute(arch, code, state)
        assert (int(out["exec"], 16), int(out["vcc"], 16), out["scc"]) == (EXEC, 0x1234, 1), text
        assert out["v"] == {"4": rows["4"]} and out["s"] == {"6": "00000007"}, text
    out = run("s_memtime s[4:5]\ns_waitcnt lgkmcnt(0)\ns_nop 0\ns_nop 0\ns_memtime s[6:7]\ns_waitcnt lgkmcnt(0)")
    first, second = (int(out["s"].get(str(k + 1), "0"), 16) << 32 | int(out["s"].get(str(k), "0"), 16) for k in (4, 6))
    assert second > first


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("mode", range(4))
def test_rounding_modes(arch, mode):
    """Sums, products and fused multiply-adds of all widths, rounded to nearest, up, down, to zero: exact fractions."""
    from fractions import Fraction

    rng = np.random.default_rng(7 + mode)

    def rounded(x: Fraction, bits: int) -> int:
        frac = {16: 10, 32: 23, 64: 52}[bits]
        if x == 0:
            return 0
        e = math.frexp(float(abs(x)))[1]
        ulp = Fraction(2) ** (e - 1 - frac)
        m = abs(x) / ulp
        while m >= 2 ** (frac + 1):
            ulp, m = ulp * 2, m / 2
        while m < 2**frac:
            ulp, m = ulp / 2, m * 2
        down = m.numerator // m.denominator
        rest = m - down
        up = {0: rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2), 1: x > 0 and rest, 2: x < 0 and rest,
              3: False}[mode]  # fmt: skip
        value = (down + bool(up)) * ulp * (1 if x > 0 else -1)
        return fbits(float(value), bits)

    for bits in (16, 32, 64):
        r = (lambda k: f"v{k}") if bits < 64 else (lambda k: f"v[{k}:{k + 1}]")
        ops = {f"v_add_f{bits} {r(6)}, {r(0)}, {r(2)}": lambda a, b, c: a + b,
               f"v_mul_f{bits} {r(6)}, {r(0)}, {r(2)}": lambda a, b, c: a * b,
               f"v_fma_f{bits} {r(6)}, {r(0)}, {r(2)}, {r(4)}": lambda a, b, c: a * b + c}  # fmt: skip
        x = np.ldexp(rng.uniform(1, 2, (3, LANES)), rng.integers(-2, 3, (3, LANES))) * rng.choice([-1, 1], (3, LANES))
        x = x.astype(f"f{bits // 8}")
        for text, f in ops.items():
            state: dict[str, Any] = {"v": {}, "mode": {"fp32_round": mode, "fp16_64_round": mode}}
            for i in range(3):
                put(state, 2 * i, x[i].view(f"u{bits // 8}").astype(np.uint64), 2 if bits == 64 else 1)
            out = execute(arch, program(arch, text), state)
            got = wide(out, 6, 2 if bits == 64 else 1)
            for lane in range(LANES):
                exact = f(*(Fraction(float(v)) for v in x[:, lane]))
                want, have = rounded(exact, bits), int(got[lane]) & ((1 << bits) - 1)
                if exact:
                    assert have == want, f"{text}, mode {mode}: lane {lane} is {have:x}, not {want:x}"


# ---- LDS ----------------------------------------------------------------------------------------------------


def double(x: int) -> float:
    return float(np.uint64(x).view(np.float64))


def single(x: int) -> float:
    return float(np.uint32(x).view(np.float32))


def both_halves(a: int, b: int) -> int:
    out = 0
    for k in (0, 16):
        x, y = (float(np.uint16(v >> k & 0xFFFF).view(np.float16)) for v in (a, b))
        out |= fbits(x + y, 16) << k
    return out


DS_INT = {  # (memory, data, second data, bits) -> memory
    "add_u": lambda m, d, d2, n: m + d,
    "sub_u": lambda m, d, d2, n: m - d,
    "rsub_u": lambda m, d, d2, n: d - m,
    "inc_u": lambda m, d, d2, n: 0 if m >= d else m + 1,
    "dec_u": lambda m, d, d2, n: d if m == 0 or m > d else m - 1,
    "min_i": lambda m, d, d2, n: min(s(m, n), s(d, n)),
    "max_i": lambda m, d, d2, n: max(s(m, n), s(d, n)),
    "min_u": lambda m, d, d2, n: min(m, d),
    "max_u": lambda m, d, d2, n: max(m, d),
    "and_b": lambda m, d, d2, n: m & d,
    "or_b": lambda m, d, d2, n: m | d,
    "xor_b": lambda m, d, d2, n: m ^ d,
    "mskor_b": lambda m, d, d2, n: m & ~d | d2,
    "cmpst_b": lambda m, d, d2, n: d2 if m == d else m,
}
DS_FLOAT = {
    "add_f32": lambda m, d, d2: fbits(single(m) + single(d), 32),
    "min_f32": lambda m, d, d2: fbits(min(single(m), single(d)), 32),
    "max_f32": lambda m, d, d2: fbits(max(single(m), single(d)), 32),
    "cmpst_f32": lambda m, d, d2: d2 if single(m) == single(d) else m,
    "add_f64": lambda m, d, d2: fbits(double(m) + double(d), 64),
    "min_f64": lambda m, d, d2: fbits(min(double(m), double(d)), 64),
    "max_f64": lambda m, d, d2: fbits(max(double(m), double(d)), 64),
    "cmpst_f64": lambda m, d, d2: d2 if double(m) == double(d) else m,
    "pk_add_f16": lambda m, d, d2: both_halves(m, d),
}


def conditional_exchange(m: int, d: int, d2: int) -> int:
    """Each dword of the data whose top bit is set replaces that of memory, without the bit."""
    out = 0
    for k in (0, 32):
        dword = d >> k & 0xFFFFFFFF
        out |= (dword & 0x7FFFFFFF if dword >> 31 else m >> k & 0xFFFFFFFF) << k
    return out


def ds_cases() -> list[tuple[str, Any, int, bool]]:
    """(text, function, bits, returns the old value)."""
    out: list[Any] = []
    for name, f in DS_INT.items():
        for n in (32, 64):
            out += [(f"{name}{n}", lambda m, d, d2, f=f, n=n: f(m, d, d2, n), n)]
    out += [(name, f, 64 if name.endswith("64") else 32) for name, f in DS_FLOAT.items()]
    cases = []
    for name, f, n in out:
        op, typ = name.rsplit("_", 1)
        r = "v{0}".format if n == 32 else (lambda k: f"v[{k}:{k + 1}]")
        data = r(2) + (f", {r(4)}" if op in ("mskor", "cmpst") else "")
        cases += [(f"ds_{op}_{typ} v0, {data} offset:8", f, n, False)]
        cases += [(f"ds_{op}_rtn_{typ} {r(6)}, v0, {data} offset:8", f, n, True)]
    cases.append(("ds_wrxchg_rtn_b64 v[6:7], v0, v[2:3] offset:8", lambda m, d, d2: d, 64, True))
    cases.append(("ds_wrap_rtn_b32 v6, v0, v2, v4 offset:8", lambda m, d, d2: m - d if m >= d else m + d2, 32, True))
    cases.append(("ds_condxchg32_rtn_b64 v[6:7], v0, v[2:3] offset:8", conditional_exchange, 64, True))
    return cases


@pytest.mark.parametrize("arch", ARCHS)
def test_lds_atomics(arch):
    rng = np.random.default_rng(8)
    cases = ds_cases()
    seen = 0
    for (text, f, n, rtn), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        if "_f" in text:  # ordinary numbers in every reading
            mem, d, d2 = ((rng.integers(0x3C00, 0x4300, (LANES, 4)) | rng.integers(0, 2, (LANES, 4)) << 15)
                          .astype(np.uint16) for _ in range(3))  # fmt: skip
            mem, d, d2 = (x.view(np.uint64)[:, 0].copy() for x in (mem, d, d2))
        else:
            mem, d, d2 = (values(rng, "u64" if n == 64 else "u32") for _ in range(3))
        low = (1 << n) - 1
        mem, d, d2 = (x & np.uint64(low) for x in (mem, d, d2))
        d = np.where(rng.random(LANES) < 0.3, mem, d)
        lds = np.full((LANES, 2), 0x5555555555555555, np.uint64)
        lds[:, 1] = mem if n == 64 else mem | np.uint64(0x77777777 << 32)
        state: dict[str, Any] = {"exec": f"{EXEC:016x}", "v": {"0": hexrow(16 * np.arange(LANES))}, "m0": "ffffffff"}
        put(state, 2, d, n // 32)
        put(state, 4, d2, n // 32)
        if rtn:
            put(state, 6, np.zeros(LANES, np.uint64), n // 32)
        out = execute(arch, code, {**state, "lds": lds.tobytes().hex()})
        got = np.frombuffer(bytes.fromhex(out["lds"]), np.uint64).reshape(LANES, 2)
        for lane in range(LANES):
            on = EXEC >> lane & 1
            new = f(int(mem[lane]), int(d[lane]), int(d2[lane])) & low if on else int(mem[lane])
            have = int(got[lane, 1]) & low
            assert have == new, f"{text}: lane {lane} is {have:x}, not {new:x}"
            assert got[lane, 0] == lds[lane, 0] and int(got[lane, 1]) & ~low == int(lds[lane, 1]) & ~low, text
            if rtn:
                old = int(wide(out, 6, n // 32)[lane])
                assert old == (int(mem[lane]) if on else 0), f"{text}: lane {lane} returns {old:x}"
        seen += 1
    assert seen > 60


@pytest.mark.parametrize("arch", ARCHS)
def test_lds_counters_and_thread_addresses(arch):
    lds = np.arange(256, dtype=np.uint32)
    state: dict[str, Any] = {"exec": f"{EXEC:016x}", "lds": lds.tobytes().hex(), "v": {"6": "0" * 512}, "m0": "40"}
    on = bin(EXEC).count("1")
    for op, sign in (("append", 1), ("consume", -1)):
        out = execute(arch, program(arch, f"ds_{op} v6 offset:8"), state)
        got = np.frombuffer(bytes.fromhex(out["lds"]), np.uint32)
        assert int(got[18]) == (18 + sign * on) & 0xFFFFFFFF and (np.delete(got, 18) == np.delete(lds, 18)).all(), op
        assert {int(x) for i, x in enumerate(row(out, 6)) if EXEC >> i & 1} == {18}, op
    out = execute(arch, program(arch, "ds_read_addtid_b32 v6 offset:8"), state)
    assert all(int(x) == (18 + i if EXEC >> i & 1 else 0) for i, x in enumerate(row(out, 6)))
    put(state, 6, np.arange(LANES, dtype=np.uint64) + np.uint64(1000))
    out = execute(arch, program(arch, "ds_write_addtid_b32 v6 offset:8"), state)
    got = np.frombuffer(bytes.fromhex(out["lds"]), np.uint32)
    assert all(int(got[18 + i]) == (1000 + i if EXEC >> i & 1 else 18 + i) for i in range(LANES))


# ---- accumulation registers, packed and dot operations ------------------------------------------------------


def parts(x: int, n: int, signed: bool) -> list[int]:
    v = [x >> k & ((1 << n) - 1) for k in range(0, 32, n)]
    return [s(y, n) for y in v] if signed else v


@pytest.mark.parametrize("arch", ARCHS)
def test_dots_and_accumulation_registers(arch):
    rng = np.random.default_rng(9)
    a, b = (rng.integers(0, 1 << 32, LANES, dtype=np.uint64) for _ in range(2))
    c = rng.integers(0, 1 << 20, LANES, dtype=np.uint64)

    def dot(n: int, signed: bool) -> list[int]:
        return [(sum(x * y for x, y in zip(parts(int(p), n, signed), parts(int(q), n, signed), strict=True)) + int(r))
                & 0xFFFFFFFF for p, q, r in zip(a, b, c, strict=True)]  # fmt: skip

    cases = {
        "v_dot2_i32_i16 v3, v0, v1, v2": dot(16, True), "v_dot2_u32_u16 v3, v0, v1, v2": dot(16, False),
        "v_dot4_i32_i8 v3, v0, v1, v2": dot(8, True), "v_dot4_u32_u8 v3, v0, v1, v2": dot(8, False),
        "v_dot8_i32_i4 v3, v0, v1, v2": dot(4, True), "v_dot8_u32_u4 v3, v0, v1, v2": dot(4, False),
        "v_dot2c_i32_i16_e32 v2, v0, v1": dot(16, True), "v_dot4c_i32_i8_e32 v2, v0, v1": dot(8, True),
        "v_dot8c_i32_i4_e32 v2, v0, v1": dot(4, True),
        "v_dot2c_i32_i16_e64 v2, v0, v1": dot(16, True), "v_dot4c_i32_i8_e64 v2, v0, v1": dot(8, True),
        "v_dot8c_i32_i4_e64 v2, v0, v1": dot(4, True),
    }  # fmt: skip
    seen = 0
    for (text, want), code in zip(cases.items(), encode(arch, list(cases)), strict=True):
        if code is None:
            continue
        state: dict[str, Any] = {"v": {"3": "0" * 512}}
        for i, x in enumerate((a, b, c)):
            put(state, i, x)
        out = execute(arch, code, state)
        assert row(out, text.split()[1][1:-1]).tolist() == want, text
        seen += 1
    assert seen >= 6
    state = {"exec": f"{EXEC:016x}", "v": {"0": hexrow(a), "1": hexrow(b), "2": "0" * 512, "a7": "0" * 512}}
    out = execute(arch, program(arch, "v_accvgpr_write_b32 a7, v0\nv_accvgpr_read_b32 v2, a7"), state)
    on = [int(x) if EXEC >> i & 1 else 0 for i, x in enumerate(a)]
    assert row(out, "a7").tolist() == on and row(out, 2).tolist() == on
    out = execute(
        arch,
        program(arch, "v_accvgpr_write_b32 a7, 1.0\nv_accvgpr_mov_b32 a8, a7"),
        {**state, "v": {**state["v"], "a8": "0" * 512}},
    )
    assert row(out, "a8").tolist() == [0x3F800000 if EXEC >> i & 1 else 0 for i in range(LANES)]
    state["v"] |= {"4": hexrow(c), "5": hexrow(a), "6": "0" * 512, "7": "0" * 512}
    out = execute(arch, program(arch, "v_pk_mov_b32 v[6:7], v[0:1], v[4:5] op_sel:[1,0]"), state)
    assert row(out, 6).tolist() == [int(x) if EXEC >> i & 1 else 0 for i, x in enumerate(b)]


@pytest.mark.parametrize("arch", ARCHS)
def test_literal_multiply_adds(arch):
    """fmaak, fmamk, madak and madmk: the literal is the third or the second operand."""
    rng = np.random.default_rng(10)
    cases = []
    for bits, three in ((32, 0x40400000), (16, 0x4200)):
        for op in ("fma", "mad"):
            cases += [(f"v_{op}ak_f{bits} v6, v0, v1, 0x{three:x}", bits, lambda a, b: a * b + 3),
                      (f"v_{op}mk_f{bits} v6, v0, 0x{three:x}, v1", bits, lambda a, b: a * 3 + b)]  # fmt: skip
    seen = 0
    for (text, bits, f), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        x = rng.integers(-12, 13, (2, LANES)).astype(f"f{bits // 8}")  # every result is exact
        state: dict[str, Any] = {"exec": f"{EXEC:016x}", "v": {"6": "0" * 512}}
        for i in range(2):
            put(state, i, x[i].view(f"u{bits // 8}").astype(np.uint64))
        got = row(execute(arch, code, state), 6)
        for lane in range(LANES):
            want = fbits(f(float(x[0, lane]), float(x[1, lane])), bits) if EXEC >> lane & 1 else 0
            assert int(got[lane]) & ((1 << bits) - 1) == want, f"{text}: lane {lane}"
        seen += 1
    assert seen >= 2
