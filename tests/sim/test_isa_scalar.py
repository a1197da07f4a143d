"""Scalar instructions of every chip against plain Python: integers and floats, lane masks, jumps, modes, hardware
registers, scalar memory, and what has no effect. Both wave sizes where a chip has two."""

from __future__ import annotations

import functools
import math
import random
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402

ARCHS = [a for a in simlib.MACH if sim._native.library().tlsim_arch_available(a.encode())]
RDNA = [a for a in ARCHS if a.startswith("gfx1")]
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
EDGE = [0, 1, 2, 31, 32, 63, 64, 0x7F, 0xFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, M32]
EDGE64 = [*EDGE, 1 << 32, (1 << 63) - 1, 1 << 63, M64, 0xFFFFFFFF80000000]


def waves(arch: str) -> tuple[int, ...]:
    return (32, 64) if arch in RDNA else (64,)


def signed(x: int, n: int) -> int:
    return x - (1 << n) if x >> (n - 1) & 1 else x


@functools.cache
def program(arch: str, *lines: str) -> bytes:
    """Machine code of lines of assembly (no labels)."""
    codes = encode(arch, list(lines))
    assert None not in codes, [line for line, c in zip(lines, codes, strict=True) if c is None]
    return b"".join(c for c in codes if c)


def there(arch: str, *lines: str) -> bool:
    return None not in encode(arch, list(lines))


def run(arch: str, code: bytes, s: dict[int, int] | None = None, wave: int = 64, **state: Any) -> dict[str, Any]:
    """State after the code; `s` by number. Every register of `s` is in the result."""
    given = {str(k): f"{v & M32:08x}" for k, v in (s or {}).items()}
    return sim.execute(arch, code, {"wave": wave, "s": given, **state})


def pair(out: dict[str, Any], reg: int, n: int = 64) -> int:
    lo = int(out["s"][str(reg)], 16)
    return lo if n == 32 else lo | int(out["s"][str(reg + 1)], 16) << 32


# ---- integer operations ---------------------------------------------------------------------------------------

Ref = Callable[[int, int, int, int], tuple[int, int | None]]
"""(a, b, old destination, scc) -> (result, new scc or None)."""
NEW_NAMES = {
    "s_ff1_i32_b32": "s_ctz_i32_b32", "s_ff1_i32_b64": "s_ctz_i32_b64", "s_flbit_i32_b32": "s_clz_i32_u32",
    "s_flbit_i32_b64": "s_clz_i32_u64", "s_flbit_i32": "s_cls_i32", "s_flbit_i32_i64": "s_cls_i32_i64",
    "s_andn2_b32": "s_and_not1_b32", "s_andn2_b64": "s_and_not1_b64", "s_orn2_b32": "s_or_not1_b32",
    "s_orn2_b64": "s_or_not1_b64", "s_add_u32": "s_add_co_u32", "s_sub_u32": "s_sub_co_u32",
    "s_add_i32": "s_add_co_i32", "s_sub_i32": "s_sub_co_i32", "s_addc_u32": "s_add_co_ci_u32",
    "s_subb_u32": "s_sub_co_ci_u32", "s_addk_i32": "s_addk_co_i32",
}  # fmt: skip
"""Names on gfx11 or gfx12 of operations of gfx9."""


def nz(d: int) -> tuple[int, int]:
    return d, int(d != 0)


def leading(x: int, n: int) -> int:
    return n - x.bit_length() if x else M32


def leading_sign(x: int, n: int) -> int:
    t = x ^ ((1 << n) - 1) if x >> (n - 1) else x
    return n - t.bit_length() if t else M32


def trailing(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else M32


def field(a: int, off: int, n: int, bits: int, sign: bool) -> int:
    x = (signed(a, bits) if sign else a) >> off
    if n >= bits:
        return x & ((1 << bits) - 1)
    x &= (1 << n) - 1
    return (signed(x, n) if sign and n else x) & ((1 << bits) - 1)


def quads(a: int, n: int, whole: bool) -> int:
    return sum((15 << 4 * i if whole else 1 << i) for i in range(n // 4) if a >> 4 * i & 15)


def overflow(x: int) -> int:
    return int(not -(1 << 31) <= x < 1 << 31)


def choose(a: int, b: int, take: bool) -> tuple[int, int]:
    return (a if take else b), int(take)


def logical() -> dict[str, tuple[int, tuple[int, ...], Ref]]:
    out: dict[str, tuple[int, tuple[int, ...], Ref]] = {}
    two = {
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "nand": lambda a, b: ~(a & b),
        "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b), "andn2": lambda a, b: a & ~b,
        "orn2": lambda a, b: a | ~b,
    }  # fmt: skip
    for n in (32, 64):
        m = (1 << n) - 1
        for name, f in two.items():
            out[f"s_{name}_b{n}"] = (n, (n, n), lambda a, b, o, c, f=f, m=m: nz(f(a, b) & m))
        out[f"s_lshl_b{n}"] = (n, (n, 32), lambda a, b, o, c, n=n, m=m: nz(a << (b & (n - 1)) & m))
        out[f"s_lshr_b{n}"] = (n, (n, 32), lambda a, b, o, c, n=n: nz(a >> (b & (n - 1))))
        out[f"s_ashr_i{n}"] = (n, (n, 32), lambda a, b, o, c, n=n, m=m: nz(signed(a, n) >> (b & (n - 1)) & m))
        for sign in "ui":

            def bfe(a: int, b: int, o: int, c: int, n: int = n, sign: str = sign) -> tuple[int, int]:
                return nz(field(a, b & (n - 1), b >> 16 & 127, n, sign == "i"))

            out[f"s_bfe_{sign}{n}"] = (n, (n, 32), bfe)
        out[f"s_bfm_b{n}"] = (n, (32, 32), lambda a, b, o, c, n=n, m=m:
                              (((1 << (a & (n - 1))) - 1) << (b & (n - 1)) & m, None))  # fmt: skip
        out[f"s_cselect_b{n}"] = (n, (n, n), lambda a, b, o, c: (a if c else b, None))
        out[f"s_mov_b{n}"] = (n, (n,), lambda a, b, o, c: (a, None))
        out[f"s_cmov_b{n}"] = (n, (n,), lambda a, b, o, c: (a if c else o, None))
        out[f"s_not_b{n}"] = (n, (n,), lambda a, b, o, c, m=m: nz(~a & m))
        out[f"s_wqm_b{n}"] = (n, (n,), lambda a, b, o, c, n=n: nz(quads(a, n, True)))
        out[f"s_quadmask_b{n}"] = (n, (n,), lambda a, b, o, c, n=n: nz(quads(a, n, False)))
        out[f"s_brev_b{n}"] = (n, (n,), lambda a, b, o, c, n=n: (int(f"{a:0{n}b}"[::-1], 2), None))
        out[f"s_bcnt0_i32_b{n}"] = (32, (n,), lambda a, b, o, c, n=n: nz(n - bin(a).count("1")))
        out[f"s_bcnt1_i32_b{n}"] = (32, (n,), lambda a, b, o, c: nz(bin(a).count("1")))
        out[f"s_ff0_i32_b{n}"] = (32, (n,), lambda a, b, o, c, m=m: (trailing(~a & m), None))
        out[f"s_ff1_i32_b{n}"] = (32, (n,), lambda a, b, o, c: (trailing(a), None))
        out[f"s_flbit_i32_b{n}"] = (32, (n,), lambda a, b, o, c, n=n: (leading(a, n), None))
        out["s_flbit_i32" + ("_i64" if n == 64 else "")] = (
            32, (n,), lambda a, b, o, c, n=n: (leading_sign(a, n), None))  # fmt: skip
        out[f"s_bitset0_b{n}"] = (n, (32,), lambda a, b, o, c, n=n: (o & ~(1 << (a & (n - 1))), None))
        out[f"s_bitset1_b{n}"] = (n, (32,), lambda a, b, o, c, n=n: (o | 1 << (a & (n - 1)), None))
    return out


def arithmetic() -> dict[str, tuple[int, tuple[int, ...], Ref]]:
    s = lambda x: signed(x, 32)  # noqa: E731
    two: dict[str, Ref] = {
        "s_add_u32": lambda a, b, o, c: (a + b & M32, a + b >> 32),
        "s_sub_u32": lambda a, b, o, c: (a - b & M32, int(b > a)),
        "s_add_i32": lambda a, b, o, c: (a + b & M32, overflow(s(a) + s(b))),
        "s_sub_i32": lambda a, b, o, c: (a - b & M32, overflow(s(a) - s(b))),
        "s_addc_u32": lambda a, b, o, c: (a + b + c & M32, a + b + c >> 32),
        "s_subb_u32": lambda a, b, o, c: (a - b - c & M32, int(b + c > a)),
        "s_min_i32": lambda a, b, o, c: choose(a, b, s(a) < s(b)),
        "s_max_i32": lambda a, b, o, c: choose(a, b, s(a) >= s(b)),
        "s_min_u32": lambda a, b, o, c: choose(a, b, a < b),
        "s_max_u32": lambda a, b, o, c: choose(a, b, a >= b),
        "s_mul_i32": lambda a, b, o, c: (a * b & M32, None),
        "s_mul_hi_u32": lambda a, b, o, c: (a * b >> 32, None),
        "s_mul_hi_i32": lambda a, b, o, c: (s(a) * s(b) >> 32 & M32, None),
        "s_absdiff_i32": lambda a, b, o, c: nz(abs(signed(a - b & M32, 32)) & M32),
        "s_pack_ll_b32_b16": lambda a, b, o, c: (a & 0xFFFF | b << 16 & M32, None),
        "s_pack_lh_b32_b16": lambda a, b, o, c: (a & 0xFFFF | b & 0xFFFF0000, None),
        "s_pack_hh_b32_b16": lambda a, b, o, c: (a >> 16 | b & 0xFFFF0000, None),
        "s_pack_hl_b32_b16": lambda a, b, o, c: (a >> 16 | b << 16 & M32, None),
    }
    for k in (1, 2, 3, 4):
        two[f"s_lshl{k}_add_u32"] = lambda a, b, o, c, k=k: ((a << k) + b & M32, int((a << k) + b > M32))
    out = {k: (32, (32, 32), f) for k, f in two.items()}
    out["s_add_nc_u64"] = (64, (64, 64), lambda a, b, o, c: (a + b & M64, None))
    out["s_sub_nc_u64"] = (64, (64, 64), lambda a, b, o, c: (a - b & M64, None))
    out["s_mul_u64"] = (64, (64, 64), lambda a, b, o, c: (a * b & M64, None))
    out["s_sext_i32_i8"] = (32, (32,), lambda a, b, o, c: (signed(a & 255, 8) & M32, None))
    out["s_sext_i32_i16"] = (32, (32,), lambda a, b, o, c: (signed(a & 0xFFFF, 16) & M32, None))
    out["s_abs_i32"] = (32, (32,), lambda a, b, o, c: nz(abs(s(a)) & M32))
    out["s_bitreplicate_b64_b32"] = (
        64, (32,), lambda a, b, o, c: (sum(3 << 2 * i for i in range(32) if a >> i & 1), None))  # fmt: skip
    return out


def reg(n: int, at: int) -> str:
    return f"s{at}" if n == 32 else f"s[{at}:{at + 1}]"


def both_names(table: dict[str, Any]) -> list[tuple[str, Any]]:
    return [*table.items(), *((NEW_NAMES[k], v) for k, v in table.items() if k in NEW_NAMES)]


def halves(at: int, value: int) -> dict[int, int]:
    return {at: value & M32, at + 1: value >> 32}


@pytest.mark.parametrize("arch", ARCHS)
def test_integers(arch):
    rnd = random.Random(7)
    cases = both_names({**logical(), **arithmetic()})
    lines = [f"{name} {reg(d, 4)}, " + ", ".join(reg(n, 8 + 4 * i) for i, n in enumerate(src))
             for name, (d, src, _) in cases]  # fmt: skip
    seen = 0
    for (name, (d, src, f)), code in zip(cases, encode(arch, lines), strict=True):
        if code is None:
            continue
        seen += 1
        for _ in range(12):
            v = [rnd.choice((EDGE64 if n == 64 else EDGE) + [rnd.getrandbits(n)] * 6) for n in src]
            if name.startswith("s_bfe"):
                v[1] = rnd.choice([v[1], rnd.getrandbits(6) | rnd.getrandbits(7) << 16])
            old, scc = rnd.getrandbits(64), rnd.getrandbits(1)
            regs = halves(4, old)
            for i, x in enumerate(v):
                regs |= halves(8 + 4 * i, x)
            want, flag = f(v[0], v[1] if len(v) > 1 else 0, old & ((1 << d) - 1), scc)
            out = run(arch, code, regs, waves(arch)[0], scc=scc)
            assert pair(out, 4, d) == want, f"{name} {[hex(x) for x in v]}: {pair(out, 4, d):x}, not {want:x}"
            assert out["scc"] == (scc if flag is None else flag), f"{name} {[hex(x) for x in v]} scc"
            if d == 32:
                assert pair(out, 5, 32) == old >> 32, name
    assert seen >= 75, seen


COMPARE = {"eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b,
           "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b}  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
def test_integer_comparisons(arch):
    """s_cmp_*, s_cmpk_*, s_bitcmp*, and the arithmetic with a 16-bit number."""
    rnd = random.Random(8)
    cases: list[tuple[str, Callable[[int, int], bool], int, int | None]] = []
    for op, f in COMPARE.items():
        cases += [(f"s_cmp_{op}_i32 s4, s8", lambda a, b, f=f: f(signed(a, 32), signed(b, 32)), 32, None),
                  (f"s_cmp_{op}_u32 s4, s8", f, 32, None)]  # fmt: skip
        if op in ("eq", "lg"):
            cases.append((f"s_cmp_{op}_u64 s[4:5], s[8:9]", f, 64, None))
        for k in (5, 0x8001, 0xFFFF):
            cases.append((f"s_cmpk_{op}_i32 s4, 0x{k:x}", lambda a, b, f=f: f(signed(a, 32), signed(b, 16)), 32, k))
            cases.append((f"s_cmpk_{op}_u32 s4, 0x{k:x}", f, 32, k))
    for n in (32, 64):
        for bit in (0, 1):
            cases.append((f"s_bitcmp{bit}_b{n} {reg(n, 4)}, s8",
                          lambda a, b, n=n, bit=bit: (a >> (b & (n - 1)) & 1) == bit, n, None))  # fmt: skip
    seen = 0
    for (text, f, n, k), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        seen += 1
        for _ in range(8):
            a = rnd.choice((EDGE64 if n == 64 else EDGE) + [rnd.getrandbits(n)] * 4)
            b = rnd.choice([a, rnd.choice(EDGE), rnd.getrandbits(n), a ^ 1]) if k is None else k
            if k is not None and rnd.random() < 0.5:
                a = rnd.choice([k, signed(k, 16) & M32])
            out = run(arch, code, {**halves(4, a), **halves(8, b)}, waves(arch)[0], scc=rnd.getrandbits(1))
            assert out["scc"] == int(f(a, b)), f"{text}: {a:x} {b:x}"
    assert seen >= 18
    for name, want in {"s_movk_i32": lambda a, k: (k, None), "s_cmovk_i32": lambda a, k: (a, None),
                       "s_addk_i32": lambda a, k: (a + k, overflow(signed(a, 32) + k)),
                       "s_addk_co_i32": lambda a, k: (a + k, overflow(signed(a, 32) + k)),
                       "s_mulk_i32": lambda a, k: (a * k, None)}.items():  # fmt: skip
        for a, k in ((5, 3), (0x7FFFFFFF, 1), (0x80000000, -1), (77, -300)):
            code = encode(arch, [f"{name} s4, 0x{k & 0xFFFF:x}"])[0]
            if code is None:
                continue
            for scc in (0, 1):
                d, flag = want(a, k)
                if name == "s_cmovk_i32" and scc:
                    d = k
                out = run(arch, code, {4: a}, waves(arch)[0], scc=scc)
                assert pair(out, 4, 32) == d & M32 and out["scc"] == (scc if flag is None else flag), (name, a, k)


# ---- EXEC ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
def test_exec_operations(arch):
    """saveexec and wrexec in both widths; a wave of 32 lanes keeps exec_hi as a plain register."""
    save = {"and": lambda a, e: a & e, "or": lambda a, e: a | e, "xor": lambda a, e: a ^ e,
            "nand": lambda a, e: ~(a & e), "nor": lambda a, e: ~(a | e), "xnor": lambda a, e: ~(a ^ e),
            "andn2": lambda a, e: a & ~e, "orn2": lambda a, e: a | ~e, "andn1": lambda a, e: ~a & e,
            "orn1": lambda a, e: ~a | e, "and_not1": lambda a, e: a & ~e, "or_not1": lambda a, e: a | ~e,
            "and_not0": lambda a, e: ~a & e, "or_not0": lambda a, e: ~a | e}  # fmt: skip
    cases = [
        (op, kind, n)
        for n in (32, 64)
        for op in save
        for kind in ("saveexec", "wrexec")
        if kind == "saveexec" or op.startswith("andn") or "and_not" in op
    ]
    lines = [f"s_{op}_{kind}_b{n} {reg(n, 4)}, {reg(n, 8)}" for op, kind, n in cases]
    rnd = random.Random(9)
    seen = 0
    for (op, kind, n), code in zip(cases, encode(arch, lines), strict=True):
        if code is None:
            continue
        seen += 1
        for wave in waves(arch):
            for a in (0, M64, rnd.getrandbits(64)):
                old = rnd.getrandbits(wave)
                m = (1 << n) - 1
                d = save[op](a & m, old & m) & m
                out = run(arch, code, {**halves(4, 0), **halves(8, a)}, wave, exec=f"{old:x}")
                assert int(out["exec"], 16) == (old & ~m | d), (op, kind, n, wave)
                assert pair(out, 4, n) == (old & m if kind == "saveexec" else d) and out["scc"] == (d != 0)
    assert seen >= (12 if arch in RDNA else 11)


@pytest.mark.skipif("gfx1100" not in ARCHS, reason="gfx1100 is not there")
def test_subvector_loop():
    """The loop runs once for each half of EXEC that has lanes, low half first."""
    code = program("gfx1100", "s_subvector_loop_begin s4, 2", "s_add_u32 s5, s5, exec_lo",
                   "s_subvector_loop_end s4, 65534", "s_nop 0")  # fmt: skip
    for lo, hi in ((3, 5), (3, 0), (0, 5), (0, 0)):
        out = run("gfx1100", code, {4: 0, 5: 0}, 64, exec=f"{lo | hi << 32:016x}")
        assert pair(out, 5, 32) == lo and int(out["exec"], 16) == lo | hi << 32, (lo, hi, out)


# ---- floats of gfx12 -------------------------------------------------------------------------------------------

ROUNDS = ("nearest", "up", "down", "zero")


def to_number(bits: int, n: int) -> float:
    fmt, kind = ("<I", "<f") if n == 32 else ("<H", "<e")
    return struct.unpack(kind, struct.pack(fmt, bits))[0]


def rounded(x: Fraction, n: int, how: str, sign_of_zero: int = 0) -> int:
    """Bits of the exact value x in a float format of n bits, rounded; subnormals kept."""
    mant, emin, top = (23, -126, 255) if n == 32 else (10, -14, 31)
    neg = x < 0
    a = -x if neg else x
    if a == 0:
        return sign_of_zero << (n - 1)
    e = max(math.floor(math.log2(float(a))) if a > Fraction(1, 1 << 1000) else emin, emin)
    while a >= Fraction(2) ** (e + 1):
        e += 1
    while e > emin and a < Fraction(2) ** e:
        e -= 1
    q = a / Fraction(2) ** (e - mant)
    i, rest = q.numerator // q.denominator, q - q.numerator // q.denominator
    up = {"nearest": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and i & 1), "zero": False,
          "up": rest > 0 and not neg, "down": rest > 0 and neg}[how]  # fmt: skip
    i += bool(up)
    field_ = i + ((e - emin) << mant) if i >> mant else i  # the hidden bit counts the exponent up by one
    limit = top << mant
    if field_ >= limit:
        stay = how == "zero" or (how == "up" and neg) or (how == "down" and not neg)
        field_ = limit - 1 if stay else limit
    return field_ | int(neg) << (n - 1)


def float_values(rnd: random.Random, n: int) -> int:
    one = 0x3F800000 if n == 32 else 0x3C00
    top = 31 if n == 32 else 15
    return rnd.choice([0, 1 << top, one, one | 1 << top, one + 1, 1, 0x3FF, one + rnd.getrandbits(9),
                       rnd.getrandbits(n), rnd.getrandbits(n)])  # fmt: skip


def finite(bits: int, n: int) -> bool:
    return math.isfinite(to_number(bits, n))


@pytest.mark.skipif("gfx1201" not in ARCHS, reason="gfx1201 is not there")
@pytest.mark.parametrize("how", ROUNDS)
def test_float_arithmetic(how):
    """Sums, products and multiply-adds are the exact value rounded once, in every rounding mode."""
    rnd = random.Random(how)
    mode = {"fp32_round": ROUNDS.index(how), "fp16_64_round": ROUNDS.index(how)}
    ops: dict[str, Any] = {
        "add": lambda a, b, c: a + b, "sub": lambda a, b, c: a - b, "mul": lambda a, b, c: a * b,
        "fmac": lambda a, b, c: a * b + c, "fmaak": lambda a, b, c: a * b + 3, "fmamk": lambda a, b, c: a * 3 + b,
    }  # fmt: skip
    seen = 0
    for op, f in ops.items():
        for n in (32, 16):
            text = f"s_{op}_f{n} s4, s8, " + ("0x40400000, s9" if op == "fmamk" else "s9") + (
                ", 0x40400000" if op == "fmaak" else "")  # fmt: skip
            code = encode("gfx1201", [text])[0]
            if code is None:
                continue
            for _ in range(60):
                a, b, c = (float_values(rnd, n) for _ in range(3))
                if not all(finite(x, n) for x in (a, b, c)):
                    continue
                exact = f(*(Fraction(to_number(x, n)) for x in (a, b, c)))
                if exact == 0:
                    continue  # the sign of zero: the outside vectors have it
                out = run("gfx1201", code, {4: c, 8: a, 9: b}, 32, mode=mode)
                want = rounded(exact, n, how)
                assert pair(out, 4, 32) == want, f"{text} {a:x} {b:x} {c:x}: {pair(out, 4, 32):x}, not {want:x}"
                seen += 1
    assert seen > 200


@pytest.mark.skipif("gfx1201" not in ARCHS, reason="gfx1201 is not there")
def test_float_selection_and_rounding_to_integers():
    rnd = random.Random(11)
    nan = lambda x: x != x  # noqa: E731
    seen = 0
    for n in (32, 16):
        quiet = 0x7FC00000 if n == 32 else 0x7E00
        for op in ("min_num", "max_num", "minimum", "maximum"):
            code = program("gfx1201", f"s_{op}_f{n} s4, s8, s9")
            for _ in range(60):
                a, b = (rnd.choice([float_values(rnd, n), quiet, quiet | 1]) for _ in range(2))
                x, y = to_number(a, n), to_number(b, n)
                if (nan(x) and a & quiet != quiet) or (nan(y) and b & quiet != quiet):
                    continue  # signalling
                got = pair(run("gfx1201", code, {4: 0, 8: a, 9: b}, 32), 4, 32)
                if nan(x) or nan(y):
                    if op in ("minimum", "maximum") or (nan(x) and nan(y)):
                        assert nan(to_number(got, n)), (op, n, hex(a), hex(b))
                    else:
                        assert got == (b if nan(x) else a), (op, n, hex(a), hex(b))
                    continue
                key = lambda z: (to_number(z, n), -(z >> (n - 1)))  # noqa: E731  (-0 is below +0)
                want = min(a, b, key=key) if "min" in op else max(a, b, key=key)
                assert got == want, f"s_{op}_f{n} {a:x} {b:x}: {got:x}, not {want:x}"
                seen += 1
        for op, f in {"ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "rndne": round}.items():
            code = program("gfx1201", f"s_{op}_f{n} s4, s8")
            for _ in range(60):
                a = float_values(rnd, n)
                x = to_number(a, n)
                if not math.isfinite(x):
                    continue
                want = rounded(Fraction(f(x)), n, "nearest", a >> (n - 1))
                got = pair(run("gfx1201", code, {4: 0, 8: a}, 32), 4, 32)
                assert got == want, f"s_{op}_f{n} {a:x}: {got:x}, not {want:x}"
                seen += 1
    assert seen > 400


@pytest.mark.skipif("gfx1201" not in ARCHS, reason="gfx1201 is not there")
def test_float_conversions():
    rnd = random.Random(12)
    for how in ROUNDS:
        mode = {"fp32_round": ROUNDS.index(how), "fp16_64_round": ROUNDS.index(how)}
        for text, f in {
            "s_cvt_f32_i32 s4, s8": lambda a: Fraction(signed(a, 32)),
            "s_cvt_f32_u32 s4, s8": Fraction,
        }.items():
            code = program("gfx1201", text)
            for a in (*EDGE, *(rnd.getrandbits(32) for _ in range(20))):
                got = pair(run("gfx1201", code, {4: 0, 8: a}, 32, mode=mode), 4, 32)
                assert got == rounded(f(a), 32, how), (text, how, hex(a), hex(got))
        narrow = program("gfx1201", "s_cvt_f16_f32 s4, s8")
        for _ in range(40):
            a = rnd.choice([float_values(rnd, 32), 0x38800000 + rnd.getrandbits(26)])
            x = to_number(a, 32)
            if not math.isfinite(x) or x == 0:
                continue
            got = pair(run("gfx1201", narrow, {4: 0, 8: a}, 32, mode=mode), 4, 32)
            assert got == rounded(Fraction(x), 16, how), (how, hex(a), hex(got))
    wide, high = program("gfx1201", "s_cvt_f32_f16 s4, s8"), program("gfx1201", "s_cvt_hi_f32_f16 s4, s8")
    both = program("gfx1201", "s_cvt_pk_rtz_f16_f32 s4, s8, s9")
    for _ in range(60):
        h = float_values(rnd, 16)
        if finite(h, 16):
            want = struct.unpack("<I", struct.pack("<f", to_number(h, 16)))[0]
            assert pair(run("gfx1201", wide, {4: 0, 8: h | 0xABCD0000}, 32), 4, 32) == want
            assert pair(run("gfx1201", high, {4: 0, 8: h << 16 | 0x1234}, 32), 4, 32) == want
        a, b = (float_values(rnd, 32) for _ in range(2))
        if finite(a, 32) and finite(b, 32):
            x, y = (rounded(Fraction(to_number(v, 32)), 16, "zero", v >> 31) for v in (a, b))
            assert pair(run("gfx1201", both, {4: 0, 8: a, 9: b}, 32), 4, 32) == x | y << 16, (hex(a), hex(b))
    for text, lo, hi in (("s_cvt_i32_f32 s4, s8", -(1 << 31), (1 << 31) - 1), ("s_cvt_u32_f32 s4, s8", 0, M32)):
        code = program("gfx1201", text)
        special = [0, 1 << 31, 0x3F7FFFFF, 0xBF800001, 0x4B800001, 0xCB800001, 0x4F000000, 0xCF000000, 0x4F7FFFFF]
        special += [0x4F800000, 0x7F800000, 0xFF800000, 0x7FC00000]
        for a in (*special, *(float_values(rnd, 32) for _ in range(40))):
            x = to_number(a, 32)
            want = 0 if x != x else hi if x > hi else lo if x < lo else math.trunc(x)
            assert pair(run("gfx1201", code, {4: 0, 8: a}, 32), 4, 32) == want & M32, (text, hex(a))
    for n, one in ((32, 0x3F800000), (16, 0x3C00)):  # inline constants of each width
        out = run("gfx1201", program("gfx1201", f"s_ceil_f{n} s4, 1.0", f"s_floor_f{n} s5, -4.0"), {4: 0, 5: 0}, 32)
        assert pair(out, 4, 32) == one and pair(out, 5, 32) == (0xC0800000 if n == 32 else 0xC400)


@pytest.mark.skipif("gfx1201" not in ARCHS, reason="gfx1201 is not there")
def test_float_comparisons():
    rnd = random.Random(13)
    un = lambda a, b: a != a or b != b  # noqa: E731
    ops = {"lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
           "lg": lambda a, b: a < b or a > b, "ge": lambda a, b: a >= b, "o": lambda a, b: not un(a, b), "u": un,
           "nge": lambda a, b: not a >= b, "nlg": lambda a, b: not (a < b or a > b), "ngt": lambda a, b: not a > b,
           "nle": lambda a, b: not a <= b, "neq": lambda a, b: not a == b, "nlt": lambda a, b: not a < b}  # fmt: skip
    for n in (32, 16):
        for op, f in ops.items():
            code = program("gfx1201", f"s_cmp_{op}_f{n} s4, s8")
            for _ in range(24):
                a = float_values(rnd, n)
                b = rnd.choice([a, float_values(rnd, n), a ^ 1 << (n - 1)])
                out = run("gfx1201", code, {4: a, 8: b | (0x55550000 if n == 16 else 0)}, 32)
                assert out["scc"] == f(to_number(a, n), to_number(b, n)), (op, n, hex(a), hex(b))
    flush = {"fp32_denorm": 0, "fp16_64_denorm": 0}
    for n in (32, 16):  # flushed subnormals are zeros
        code = program("gfx1201", f"s_cmp_eq_f{n} s4, 0", f"s_add_f{n} s5, s4, s4")
        kept, gone = (run("gfx1201", code, {4: 3, 5: 7}, 32, mode=m) for m in ({}, flush))
        assert (kept["scc"], pair(kept, 5, 32)) == (0, 6) and (gone["scc"], pair(gone, 5, 32)) == (1, 0)
