"""Single results that the instruction set manuals spell out: signs, ranges, carries, NaNs."""

from __future__ import annotations

import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402

CDNA = ("gfx90a", "gfx942", "gfx950")
RDNA = ("gfx1100", "gfx1201")
ALL = CDNA + RDNA
NAN32, NAN16 = 0xFFC00000, 0xFE00

EXAMPLES = {  # the manuals' own examples: input -> result
    "v_exp_f32": {0xFF800000: 0, 0x80000000: 0x3F800000, 0x7F800000: 0x7F800000},
    "v_log_f32": {0xFF800000: NAN32, 0xBF800000: NAN32, 0x80000000: 0xFF800000, 0: 0xFF800000, 0x3F800000: 0,
                  0x7F800000: 0x7F800000},
    "v_rcp_f32": {0xFF800000: 0x80000000, 0xC0000000: 0xBF000000, 0x80000000: 0xFF800000, 0: 0x7F800000,
                  0x7F800000: 0},
    "v_rsq_f32": {0xFF800000: NAN32, 0x80000000: 0xFF800000, 0: 0x7F800000, 0x40800000: 0x3F000000, 0x7F800000: 0},
    "v_sqrt_f32": {0xFF800000: NAN32, 0x80000000: 0x80000000, 0: 0, 0x40800000: 0x40000000, 0x7F800000: 0x7F800000},
    "v_sin_f32": {0xFF800000: NAN32, 0xFF7FFFFF: 0, 0x80000000: 0x80000000, 0x3E800000: 0x3F800000, 0x7F800000: NAN32},
    "v_cos_f32": {0xFF800000: NAN32, 0xFF7FFFFF: 0x3F800000, 0x80000000: 0x3F800000, 0x3E800000: 0, 0x7F800000: NAN32},
    "v_sin_f16": {0xFC00: NAN16, 0xFBFF: 0, 0x8000: 0x8000, 0x3400: 0x3C00, 0x7C00: NAN16},
    "v_cos_f16": {0xFC00: NAN16, 0xFBFF: 0x3C00, 0x8000: 0x3C00, 0x3400: 0, 0x7C00: NAN16},
}  # fmt: skip


def lanes_of(arch: str) -> int:
    return 64 if arch in CDNA else 32


def row(values: list[int], n: int) -> str:
    """One register: the values in the first lanes, 0 in the others."""
    return "".join(f"{x & 0xFFFFFFFF:08x}" for x in values + [0] * (n - len(values)))


def run(arch: str, text: str, v: dict[int, list[int]] | None = None, **state: object) -> dict:
    n = lanes_of(arch)
    v8 = {str(k): row(x, n) for k, x in (v or {}).items()}
    code = encode(arch, [text], n)[0]
    assert code is not None, text
    return sim.execute(arch, code, {"wave": n, "exec": "f" * (n // 4), "v": v8, **state})


def lane(out: dict, reg: int, i: int) -> int:
    return int(out["v"][str(reg)][8 * i : 8 * i + 8], 16)


@pytest.mark.parametrize("arch", ALL)
@pytest.mark.parametrize("op", EXAMPLES)
def test_examples(arch, op):
    text = f"{op}_e32 v4, v8" if "f32" in op or arch != "gfx1100" else f"{op}_e32 v4.l, v8.l"
    out = run(arch, text, {8: list(EXAMPLES[op]), 4: [0]})
    for i, (x, want) in enumerate(EXAMPLES[op].items()):
        assert lane(out, 4, i) == want, f"{op}({x:x}) is {lane(out, 4, i):x}"


@pytest.mark.parametrize("arch", ALL)
@pytest.mark.parametrize("how", ["e32", "e64", "dpp"])
def test_turns(arch, how):
    """Beyond 256 turns CDNA takes an argument as 0, RDNA goes on: 300.25 turns are a quarter."""
    tail = " quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf" if how == "dpp" else ""
    enc = "_dpp" if how == "dpp" else f"_{how}"
    xs = [0x43962000, 0xC3962000, 0x4B000001, 0x437FC000]  # 300.25, -300.25, 2^23 + 1, 255.75
    far = arch in RDNA
    for op, want in (
        ("sin", [0x3F800000, 0xBF800000, 0, 0xBF800000] if far else [0, 0, 0, 0xBF800000]),
        ("cos", [0, 0, 0x3F800000, 0] if far else [0x3F800000] * 3 + [0]),
    ):
        out = run(arch, f"v_{op}_f32{enc} v4, v8{tail}", {8: xs, 4: [0]})
        assert [lane(out, 4, i) for i in range(4)] == want, op
    hs = [0x5CB1, 0xDCB1]  # 300.25
    low = ".l" if arch == "gfx1100" else ""
    for op, want in (("sin", [0x3C00, 0xBC00] if far else [0, 0]), ("cos", [0, 0] if far else [0x3C00] * 2)):
        out = run(arch, f"v_{op}_f16{enc} v4{low}, v8{low}{tail}", {8: hs, 4: [0]})
        assert [lane(out, 4, i) for i in range(2)] == want, op


@pytest.mark.parametrize("arch", ALL)
def test_scalar_maximum_of_equals(arch):
    """SCC says that the first source is the result: it is where both are equal, but not for the minimum."""
    for op, want in (("max_i32", 1), ("max_u32", 1), ("min_i32", 0), ("min_u32", 0)):
        out = run(arch, f"s_{op} s4, s8, s9", s={"4": "0" * 8, "8": "80000021", "9": "80000021"}, scc=1 - want)
        assert out["scc"] == want and out["s"]["4"] == "80000021", op


def test_scalar_minimum_number_of_signalling_nan():
    """The number wins, as in the vector instruction; of two NaNs the first one, quiet."""
    for width, snan, one in ((32, 0x7F812345, 0x3F800000), (16, 0x7C12, 0x3C00)):
        quiet = snan | (0x400000 if width == 32 else 0x200)
        for op in ("min", "max"):
            for a, b, want in ((snan, one, one), (one, snan, one), (snan, snan ^ 3, quiet)):
                out = run(
                    "gfx1201", f"s_{op}_num_f{width} s4, s8, s9", s={"4": "0" * 8, "8": f"{a:08x}", "9": f"{b:08x}"}
                )
                assert int(out["s"]["4"], 16) == want, (op, width, hex(a), hex(b))


@pytest.mark.parametrize("arch", CDNA)
def test_half_multiply_add_rounds_twice(arch):
    """Compilers make v_mad/v_mac of a separate multiplication and addition of halves; fma rounds once."""
    a, b, c = 0x3C01, 0x3C01, 0xBC02  # (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20; less 1 + 2^-9: 0 when rounded twice
    for text, want in (
        ("v_mad_legacy_f16 v4, v8, v9, v10", 0),
        ("v_mad_f16 v4, v8, v9, v10", 0x7FFF0000),
        ("v_fma_legacy_f16 v4, v8, v9, v10", 0x0010),
        ("v_fma_f16 v4, v8, v9, v10", 0x7FFF0010),
    ):
        out = run(arch, text, {8: [a], 9: [b], 10: [c], 4: [0x7FFF1234]})
        assert lane(out, 4, 0) == want, f"{text}: {lane(out, 4, 0):x}"
    for text in ("v_mac_f16_e32 v4, v8, v9", "v_mac_f16_e64 v4, v8, v9",
                 "v_mac_f16_dpp v4, v8, v9 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf"):  # fmt: skip
        out = run(arch, text, {8: [a], 9: [b], 4: [c]})
        assert lane(out, 4, 0) & 0xFFFF == 0, text
    out = run(arch, "v_mad_legacy_f16 v4, v8, v9, v10", {8: [0x7BFF], 9: [0x4000], 10: [0xFBFF], 4: [0]})
    assert lane(out, 4, 0) == 0x7C00  # the product alone is too large


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_shift_add_takes_three_bits(arch):
    for n in range(16):
        out = run(arch, "v_lshl_add_u64 v[4:5], v[8:9], v10, v[12:13]",
                  {8: [0x81234567], 9: [0x1], 10: [n], 12: [9], 13: [0], 4: [0], 5: [0]})  # fmt: skip
        assert lane(out, 4, 0) | lane(out, 5, 0) << 32 == (0x181234567 << (n & 7)) + 9


@pytest.mark.parametrize("arch", ALL)
def test_signed_multiply_add_carry(arch):
    """The carry of the 64-bit sum of signed numbers is its 65th bit."""
    top = 1 << 63
    op = "v_mad_co_i64_i32" if arch == "gfx1201" else "v_mad_i64_i32"
    cases = [(2, 3, 4), (-2, 3, 4), (2, 3, -7), (2, 3, top - 1), (-2, 3, -top), (1, 0, -1), (-1, 1, 1), (-1, 1, 0)]
    m32 = 0xFFFFFFFF
    v = {8: [a & m32 for a, _, _ in cases], 9: [b & m32 for _, b, _ in cases], 12: [c & m32 for _, _, c in cases],
         13: [c >> 32 & m32 for _, _, c in cases], 4: [0], 5: [0]}  # fmt: skip
    pair = "s[20:21]" if arch in CDNA else "s20"
    out = run(arch, f"{op} v[4:5], {pair}, v8, v9, v[12:13]", v, s={"20": "0" * 8, "21": "0" * 8})
    for i, (a, b, c) in enumerate(cases):
        r = a * b + c
        assert lane(out, 4, i) | lane(out, 5, i) << 32 == r & (1 << 64) - 1
        assert int(out["s"]["20"], 16) >> i & 1 == (r >> 64) & 1, (a, b, c)


@pytest.mark.parametrize("arch", ALL)
def test_minimum_in_memory_of_two_nans(arch):
    """The number wins; of two NaNs the new one is kept and made quiet."""
    num = "_num" if arch == "gfx1201" else ""
    for op in ("min", "max"):
        for old, new, want in ((0x7F800001, 0xFFA00001, 0xFFE00001), (0x7FC00000, 0x40000000, 0x40000000),
                               (0x40000000, 0x7FC00000, 0x40000000)):  # fmt: skip
            out = run(arch, f"ds_{op}{num}_f32 v8, v9", {8: [0], 9: [new]}, lds=old.to_bytes(4, "little").hex(),
                      m0="00010000", exec="1")  # fmt: skip
            assert int.from_bytes(bytes.fromhex(out["lds"]), "little") == want, (op, hex(old), hex(new))
        old, new, want = 0x7FF0000000000001, 0xFFF4000000000000, 0xFFFC000000000000
        out = run(arch, f"ds_{op}{num}_f64 v8, v[10:11]", {8: [0], 10: [new & 0xFFFFFFFF], 11: [new >> 32]},
                  lds=old.to_bytes(8, "little").hex(), m0="00010000", exec="1")  # fmt: skip
        assert int.from_bytes(bytes.fromhex(out["lds"]), "little") == want, op


@pytest.mark.parametrize("arch", ALL)
def test_division_fixup_of_nan(arch):
    """A quotient that is NaN stays one, but where the steps before overflowed."""
    one, big, small, nan = 0x3FF00000, 0x7FE00000, 0x00100000, 0x7FF80000
    text = "v_div_fixup_f64 v[4:5], v[8:9], v[10:11], v[12:13]"
    v = {8: [0], 9: [nan, nan, nan], 10: [0], 11: [one, small, small], 12: [0], 13: [one, big, big | 1 << 31],
         4: [0], 5: [0]}  # fmt: skip
    out = run(arch, text, v)
    assert [lane(out, 5, i) for i in range(3)] == [nan, 0x7FF00000, 0xFFF00000]


@pytest.mark.parametrize("arch", ALL)
def test_zero_keeps_its_sign_when_rounding_down(arch):
    """+0 as a half is +0 in every rounding mode; so are exact zeros of logarithm, sine and cosine."""
    low = ".l" if arch == "gfx1100" else ""
    mn = "min_num" if arch == "gfx1201" else "min"
    for mode in range(4):
        state = {"mode": {"fp32_round": mode, "fp16_64_round": mode}}
        for text, xs, want in (
            (f"v_cvt_f32_f16_e32 v4, v8{low}", [0, 0x8000, 1], [0, 0x80000000, 0x33800000]),
            (f"v_{mn}_f16_e32 v4{low}, v8{low}, v9{low}", [0, 0x8000, 0x3C00], [0, 0x8000, 0]),
            (f"v_rcp_f16_e32 v4{low}, v8{low}", [0, 0x8000, 0x3C00], [0x7C00, 0xFC00, 0x3C00]),
            (
                "v_pk_max_f16 v4, v8, v8" if arch != "gfx1201" else "v_pk_max_num_f16 v4, v8, v8",
                [0, 0x8000],
                [0, 0x8000],
            ),
            ("v_log_f32_e32 v4, v8", [0x3F800000], [0]),
            ("v_sin_f32_e32 v4, v8", [0, 0x80000000, 0x40000000, 0x3F000000], [0, 0x80000000, 0, 0]),
            ("v_cos_f32_e32 v4, v8", [0x3E800000, 0xBE800000], [0, 0]),
        ):
            out = run(arch, text, {8: xs, 9: [0], 4: [0]}, **state)
            assert [lane(out, 4, i) for i in range(len(want))] == want, (text, mode)


@pytest.mark.parametrize("arch", ALL)
def test_sine_of_small_arguments_in_every_rounding_mode(arch):
    """2 pi x to a few units in the last place, not an absolute error."""
    for mode in range(4):
        out = run(arch, "v_sin_f32_e32 v4, v8", {8: [0x20E7AD75, 0xA0E7AD75], 4: [0]}, mode={"fp32_round": mode})
        for i, want in enumerate((0x2235F58A, 0xA235F58A)):
            assert abs(lane(out, 4, i) - want) <= 2, (mode, hex(lane(out, 4, i)))


@pytest.mark.parametrize("arch", ALL)
def test_packed_multiply_add_follows_the_rounding_mode(arch):
    """1 + 2^-12 and 1 - 2^-12: up, down and towards zero differ from nearest, in both halves."""
    one, tiny, half = 0x3C003C00, 0x0C000C00, 0x3C003C00  # 2^-12
    code = encode(arch, ["v_pk_fmac_f16 v4, v8, v9"], lanes_of(arch))[0]
    if code is None:
        pytest.skip("no such instruction in the assembler")
    for mode, want in enumerate((0x3C003C00, 0x3C013C01, 0x3C003C00, 0x3C003C00)):
        out = run(arch, "v_pk_fmac_f16 v4, v8, v9", {8: [half], 9: [tiny], 4: [one]}, mode={"fp16_64_round": mode})
        assert lane(out, 4, 0) == want, mode
        out = run(arch, "v_pk_fmac_f16 v4, v8, v9", {8: [half], 9: [tiny | 0x80008000], 4: [one]},
                  mode={"fp16_64_round": mode})  # fmt: skip
        assert lane(out, 4, 0) == (one, one, 0x3BFF3BFF, 0x3BFF3BFF)[mode], mode


@pytest.mark.parametrize("arch", ALL)
def test_signalling_halves_become_quiet(arch):
    """A conversion to f32 is an operation as any other: compilers take its result as canonical."""
    low = ".l" if arch == "gfx1100" else ""
    out = run(arch, f"v_cvt_f32_f16_e32 v4, v8{low}", {8: [0x7C01, 0xFD23, 0x7E01, 0x3C00, 0xFC00], 4: [0]})
    assert [lane(out, 4, i) for i in range(5)] == [0x7FC02000, 0xFFE46000, 0x7FC02000, 0x3F800000, 0xFF800000]
