"""Three-operand, packing, byte and conversion instructions by plain Python, on gfx90a, gfx942 and gfx950."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import LANES, encode, execute, number, put, row, values, wide  # noqa: E402

ARCHS = [a for a in ("gfx90a", "gfx942", "gfx950") if sim._native.library().tlsim_arch_available(a.encode())]
M32 = 0xFFFFFFFF


def s(x: int, n: int = 32) -> int:
    x &= (1 << n) - 1
    return x - (1 << n) if x >> (n - 1) else x


def octets(x: int) -> list[int]:
    return [x >> k & 255 for k in (0, 8, 16, 24)]


def med(*v: Any) -> Any:
    return sorted(v)[1]


def sad(a: int, b: int, masked: bool = False) -> int:
    return sum(abs(x - y) for x, y in zip(octets(a), octets(b), strict=True) if y or not masked)


def clamp(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


INT3 = {  # 32-bit patterns -> integer modulo 2^32
    "v_add_i32": lambda a, b, c: a + b,
    "v_sub_i32": lambda a, b, c: a - b,
    "v_bfm_b32": lambda a, b, c: ((1 << (a & 31)) - 1) << (b & 31),
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_bfe_u32": lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1),
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b & M32) << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_mad_i32_i24": lambda a, b, c: s(a, 24) * s(b, 24) + s(c),
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_u32_u16": lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c,
    "v_mad_i32_i16": lambda a, b, c: s(a, 16) * s(b, 16) + s(c),
    "v_max3_i32": lambda a, b, c: max(s(a), s(b), s(c)),
    "v_max3_u32": max,
    "v_min3_i32": lambda a, b, c: min(s(a), s(b), s(c)),
    "v_min3_u32": min,
    "v_med3_i32": lambda a, b, c: med(s(a), s(b), s(c)),
    "v_med3_u32": med,
    "v_mul_lo_u32": lambda a, b, c: a * b,
    "v_mul_hi_u32": lambda a, b, c: a * b >> 32,
    "v_mul_hi_i32": lambda a, b, c: s(a) * s(b) >> 32,
    "v_sad_u8": lambda a, b, c: sad(a, b) + c,
    "v_sad_hi_u8": lambda a, b, c: (sad(a, b) << 16) + c,
    "v_msad_u8": lambda a, b, c: sad(a, b, True) + c,
    "v_sad_u16": lambda a, b, c: abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_lerp_u8": lambda a, b, c: sum(
        (x + y + (z & 1) >> 1) << 8 * i for i, (x, y, z) in enumerate(zip(octets(a), octets(b), octets(c), strict=True))
    ),
    "v_cvt_pk_u16_u32": lambda a, b, c: min(a, 0xFFFF) | min(b, 0xFFFF) << 16,
    "v_cvt_pk_i16_i32": lambda a, b, c: clamp(s(a), -32768, 32767) & 0xFFFF | clamp(s(b), -32768, 32767) << 16,
}
HALF3 = {  # 16-bit patterns, low half compared
    "v_add_i16": lambda a, b, c: a + b,
    "v_sub_i16": lambda a, b, c: a - b,
    "v_mad_i16": lambda a, b, c: a * b + c,
    "v_mad_u16": lambda a, b, c: a * b + c,
    "v_mad_legacy_i16": lambda a, b, c: a * b + c,
    "v_mad_legacy_u16": lambda a, b, c: a * b + c,
    "v_max3_i16": lambda a, b, c: max(s(a, 16), s(b, 16), s(c, 16)),
    "v_min3_i16": lambda a, b, c: min(s(a, 16), s(b, 16), s(c, 16)),
    "v_med3_i16": lambda a, b, c: med(s(a, 16), s(b, 16), s(c, 16)),
    "v_max3_u16": max,
    "v_min3_u16": min,
    "v_med3_u16": med,
}
TWO = {"v_add_i32", "v_sub_i32", "v_bfm_b32", "v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_cvt_pk_u16_u32",
       "v_cvt_pk_i16_i32", "v_add_i16", "v_sub_i16"}  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
def test_integers(arch):
    rng = np.random.default_rng(21)
    names = [*INT3, *HALF3]
    lines = [f"{n} v4, v0, v1" + ("" if n in TWO else ", v2") for n in names]
    seen = 0
    for name, text, code in zip(names, lines, encode(arch, lines), strict=True):
        if code is None:
            continue
        f, low = (INT3[name], M32) if name in INT3 else (HALF3[name], 0xFFFF)
        src = [values(rng, "u32") for _ in range(3)]
        state: dict[str, Any] = {"v": {"4": "0" * 512}}
        for i, x in enumerate(src):
            put(state, i, x)
        got = row(execute(arch, code, state), 4)
        for lane in range(LANES):
            args = [int(x[lane]) & low for x in src]
            want = f(*args) & low
            assert int(got[lane]) & low == want, f"{text}: lane {lane} is {got[lane]:x}, not {want:x} of {args}"
        seen += 1
    assert seen > 40


@pytest.mark.parametrize("arch", ARCHS)
def test_wide_integers(arch):
    rng = np.random.default_rng(22)

    def quad(a: int, b: int, c: int, masked: bool) -> int:
        """Four sums of absolute differences of a's bytes 0-3, 1-4, 2-5, 3-6 to b, added to c's words."""
        return sum((sad(a >> 8 * k & M32, b, masked) + (c >> 16 * k & 0xFFFF) & 0xFFFF) << 16 * k for k in range(4))

    cases = {
        "v_mad_u64_u32 v[6:7], s[4:5], v0, v1, v[2:3]": lambda a, b, c: (a & M32) * (b & M32) + c,
        "v_mad_i64_i32 v[6:7], s[4:5], v0, v1, v[2:3]": lambda a, b, c: s(a) * s(b) + s(c, 64),
        "v_lshl_add_u64 v[6:7], v[0:1], 3, v[2:3]": lambda a, b, c: (b << 32 | a) * 8 + c,
        "v_qsad_pk_u16_u8 v[6:7], v[0:1], v8, v[2:3]": lambda a, b, c: None,
        "v_mqsad_pk_u16_u8 v[6:7], v[0:1], v8, v[2:3]": lambda a, b, c: None,
    }
    for (text, f), code in zip(cases.items(), encode(arch, list(cases)), strict=True):
        if code is None:
            continue
        a, b, ref = (rng.integers(0, 1 << 32, LANES, dtype=np.uint64) for _ in range(3))
        ref = np.where(rng.random(LANES) < 0.5, ref & np.uint64(0xFF00FFFF), ref)
        c = rng.integers(0, 1 << 60, LANES, dtype=np.uint64) & np.uint64(0x0FFF0FFF0FFF0FFF)
        state: dict[str, Any] = {"v": {"6": "0" * 512, "7": "0" * 512}, "s": {"4": "0", "5": "0"}}
        put(state, 0, a)
        put(state, 1, b)
        put(state, 2, c, 2)
        put(state, 8, ref)
        got = wide(execute(arch, code, state), 6, 2)
        for lane in range(LANES):
            x, y, z = int(a[lane]), int(b[lane]), int(c[lane])
            want = quad(y << 32 | x, int(ref[lane]), z, "mqsad" in text) if "qsad" in text else f(x, y, z)
            assert int(got[lane]) == want & (1 << 64) - 1, f"{text}: lane {lane}"


@pytest.mark.parametrize("arch", ARCHS)
def test_floats_of_three(arch):
    """min3, max3, med3 and minimum, maximum of f16, f32, f64; ordinary numbers."""
    rng = np.random.default_rng(23)
    cases = []
    for n in (16, 32):
        cases += [(f"v_{o}3_f{n} v6, v0, v2, v4", f, n, 3) for o, f in (("min", min), ("max", max), ("med", med))]
    cases += [("v_min_f64 v[6:7], v[0:1], v[2:3]", min, 64, 2), ("v_max_f64 v[6:7], v[0:1], v[2:3]", max, 64, 2),
              ("v_minimum3_f32 v6, v0, v2, v4", min, 32, 3), ("v_maximum3_f32 v6, v0, v2, v4", max, 32, 3)]  # fmt: skip
    for (text, f, bits, n), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        x = (rng.uniform(-8, 8, (3, LANES))).astype(f"f{bits // 8}")
        state: dict[str, Any] = {"v": {"6": "0" * 512, "7": "0" * 512}}
        for i in range(3):
            put(state, 2 * i, x[i].view(f"u{bits // 8}").astype(np.uint64), 2 if bits == 64 else 1)
        got = wide(execute(arch, code, state), 6, 2 if bits == 64 else 1) & np.uint64((1 << bits) - 1)
        have = number(got, f"f{bits}")
        for lane in range(LANES):
            assert have[lane] == f(*(float(v) for v in x[:n, lane])), f"{text}: lane {lane}"


@pytest.mark.parametrize("arch", ARCHS)
def test_conversions(arch):
    rng = np.random.default_rng(24)
    x = rng.uniform(-1.5, 1.5, 1000).astype(np.float32)  # no ties nearby: how they go is not documented
    clear = [
        np.abs(v.astype(np.float64) * n % 1 - 0.5) > 0.05 for v in (x, x.astype(np.float16)) for n in (32767, 65535)
    ]
    x = x[np.all(clear, axis=0)][: 2 * LANES].reshape(2, LANES)
    big = rng.uniform(-300, 600, LANES).astype(np.float32)
    half = x.astype(np.float16)

    def norm(v: float, n: float, low: float) -> int:
        return int(np.rint(max(low, min(1.0, float(v))) * n)) & 0xFFFF

    def pair(f: Any) -> list[int]:
        return [f(a) | f(b) << 16 for a, b in zip(x[0], x[1], strict=True)]

    def pair16(f: Any) -> list[int]:
        return [f(a) | f(b) << 16 for a, b in zip(half[0], half[1], strict=True)]

    def snorm(v: float) -> int:
        return norm(v, 32767, -1.0)

    def unorm(v: float) -> int:
        return norm(v, 65535, 0.0)

    ints = rng.integers(-(1 << 31), 1 << 31, LANES)
    cases = {
        "v_cvt_pknorm_i16_f32 v6, v0, v1": pair(snorm), "v_cvt_pknorm_u16_f32 v6, v0, v1": pair(unorm),
        "v_cvt_pknorm_i16_f16 v6, v2, v3": pair16(snorm), "v_cvt_pknorm_u16_f16 v6, v2, v3": pair16(unorm),
        "v_cvt_norm_i16_f16_e32 v6, v2": [snorm(a) for a in half[0]],
        "v_cvt_norm_u16_f16_e32 v6, v2": [unorm(a) for a in half[0]],
        "v_cvt_norm_i16_f16_e64 v6, v2": [snorm(a) for a in half[0]],
        "v_cvt_norm_u16_f16_e64 v6, v2": [unorm(a) for a in half[0]],
        "v_cvt_off_f32_i4_e32 v6, v5": [int(np.float32(s(int(i), 4) / 16).view(np.uint32)) for i in ints],
        "v_cvt_off_f32_i4_e64 v6, v5": [int(np.float32(s(int(i), 4) / 16).view(np.uint32)) for i in ints],
        "v_cvt_rpi_i32_f32_e32 v6, v4": [int(np.floor(float(v) + 0.5)) & M32 for v in big],
        "v_cvt_flr_i32_f32_e32 v6, v4": [int(np.floor(float(v))) & M32 for v in big],
        "v_cvt_rpi_i32_f32_e64 v6, v4": [int(np.floor(float(v) + 0.5)) & M32 for v in big],
        "v_cvt_i32_f32_e64 v6, v4": [int(np.trunc(float(v))) & M32 for v in big],
        "v_sat_pk_u8_i16_e32 v6, v5": [clamp(s(int(i), 16), 0, 255) | clamp(s(int(i) >> 16, 16), 0, 255) << 8
                                       for i in ints],
        "v_sat_pk_u8_i16_e64 v6, v5": [clamp(s(int(i), 16), 0, 255) | clamp(s(int(i) >> 16, 16), 0, 255) << 8
                                       for i in ints],
    }  # fmt: skip
    seen = 0
    for (text, want), code in zip(cases.items(), encode(arch, list(cases)), strict=True):
        if code is None:
            continue
        state: dict[str, Any] = {"v": {"6": "0" * 512}}
        rows = [x[0].view(np.uint32), x[1].view(np.uint32), half[0].view(np.uint16), half[1].view(np.uint16),
                big.view(np.uint32), (ints & M32)]  # fmt: skip
        for i, r in enumerate(rows):
            put(state, i, r.astype(np.uint64))
        got = row(execute(arch, code, state), 6)
        low = 0xFFFF if "norm_i16_f16_e" in text or "norm_u16_f16_e" in text or "sat" in text else M32
        for lane in range(LANES):
            assert int(got[lane]) & low == want[lane] & low, f"{text}: lane {lane} is {got[lane]:x}, not {want[lane]:x}"
        seen += 1
    assert seen > 10


UNARY = {  # name -> (function of float64, width of the source, of the result, ulp allowed: 0 = exact)
    "v_exp_f32": (np.exp2, 32, 32, 2),
    "v_log_f32": (np.log2, 32, 32, 2),
    "v_exp_legacy_f32": (np.exp2, 32, 32, 2),
    "v_log_legacy_f32": (np.log2, 32, 32, 2),
    "v_rcp_f32": (lambda x: 1 / x, 32, 32, 1),
    "v_rsq_f32": (lambda x: 1 / np.sqrt(x), 32, 32, 1),
    "v_sqrt_f32": (np.sqrt, 32, 32, 1),
    "v_exp_f16": (np.exp2, 16, 16, 1),
    "v_log_f16": (np.log2, 16, 16, 1),
    "v_rcp_f16": (lambda x: 1 / x, 16, 16, 1),
    "v_rsq_f16": (lambda x: 1 / np.sqrt(x), 16, 16, 1),
    "v_sqrt_f16": (np.sqrt, 16, 16, 1),
    "v_cos_f16": (lambda x: np.cos(2 * np.pi * x), 16, 16, 2),
    "v_fract_f64": (lambda x: x - np.floor(x), 64, 64, 0),
    "v_trunc_f64": (np.trunc, 64, 64, 0),
    "v_floor_f64": (np.floor, 64, 64, 0),
    "v_cvt_f64_f32": (lambda x: x, 32, 64, 0),
    "v_frexp_mant_f64": (lambda x: np.frexp(x)[0], 64, 64, 0),
    "v_frexp_mant_f32": (lambda x: np.frexp(x)[0], 32, 32, 0),
    "v_frexp_mant_f16": (lambda x: np.frexp(x)[0], 16, 16, 0),
}


@pytest.mark.parametrize("arch", ARCHS)
def test_unary_floats(arch):
    """e32, e64 and dpp (neighbours swapped); ordinary positive numbers, errors within the stated ulp."""
    rng = np.random.default_rng(25)
    cases = []
    for name, row_ in UNARY.items():
        args = ("v[6:7]" if row_[2] == 64 else "v6") + ", " + ("v[0:1]" if row_[1] == 64 else "v0")
        dpp = f"{name}_dpp {args} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
        cases += [(f"{name}_e32 {args}", row_), (f"{name}_e64 {args}", row_), (dpp, row_)]
    seen = 0
    for (text, (f, n, m, ulp)), code in zip(cases, encode(arch, [c[0] for c in cases]), strict=True):
        if code is None:
            continue
        x = rng.uniform(0.1, 7, LANES).astype(f"f{n // 8}")
        state: dict[str, Any] = {"v": {"6": "0" * 512, "7": "0" * 512}}
        put(state, 0, x.view(f"u{n // 8}").astype(np.uint64), 2 if n == 64 else 1)
        num = x.astype(np.float64)
        num = num[np.arange(LANES) ^ 1] if "_dpp" in text else num
        want = f(num)
        got = wide(execute(arch, code, state), 6, 2 if m == 64 else 1) & np.uint64((1 << m) - 1)
        have = number(got, f"f{m}")
        step = np.spacing(np.abs(want).astype(f"f{m // 8}")).astype(np.float64)
        err = np.abs(have - want) / step
        limit = ulp + 0.5 if ulp else 0
        if "cos" in text or "log" in text:  # near a zero of the function the error is absolute
            err = np.minimum(err, np.abs(have - want) / np.spacing(np.ones(1, f"f{m // 8}"))[0])
        assert (err <= limit).all(), f"{text}: {have[err.argmax()]} not {want[err.argmax()]} ({err.max():.2f} ulp)"
        seen += 1
    assert seen > 40
