"""Operand and result modifiers against a model of their own: constants by the operand's kind, signs of packed operands,
op_sel, clamp and output modifiers with the modes that switch them. Arithmetic is exact (fractions), rounded once."""

from __future__ import annotations

import random

import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode, hexrow  # noqa: E402
from rdna_ref import FORMAT, pattern, real  # noqa: E402

CDNA = ("gfx90a", "gfx942", "gfx950")
RDNA = ("gfx1100", "gfx1201")
ALL = CDNA + RDNA
FAKE16 = ("-real-true16",)
"""On the RDNA chips: 16-bit operands by op_sel, as the other chips have them."""


def lanes_of(arch: str) -> int:
    return 64 if arch in CDNA else 32


def codes(arch: str, lines: list[str]) -> list[bytes]:
    out = encode(arch, lines, lanes_of(arch) if arch in RDNA else 0, FAKE16 if arch in RDNA else ())
    missing = [line for line, code in zip(lines, out, strict=True) if code is None]
    assert not missing, f"{arch} has no {missing[:4]}"
    return [c for c in out if c is not None]


def one(arch: str, code: bytes, v: dict[int, int], s: dict[int, int] | None = None, **state: object) -> int:
    """v4 of lane 0 after the instruction; v, s: register values (the same in all lanes)."""
    n = lanes_of(arch)
    regs = {str(k): hexrow([x] * n) for k, x in v.items()}
    out = sim.execute(
        arch, code, {"wave": n, "v": regs, "s": {str(k): f"{x:08x}" for k, x in (s or {}).items()}, **state}
    )
    assert all(x == x[:8] * n for x in out["v"].values())
    return int(out["v"]["4"][:8], 16)


def half(x: float) -> int:
    return pattern(x, "f16")


def single(x: float) -> int:
    return pattern(x, "f32")


@pytest.mark.parametrize("arch", ALL)
def test_constants_of_mixed_multiply_adds(arch):
    """An inline float is a float, or a half in the low half, as op_sel_hi says; signs come after."""
    v = {4: 0xABCD1234, 8: single(3.0), 16: single(1.0)}
    jobs = []
    for text, x in (("2.0", 2.0), ("neg(2.0)", -2.0), ("|-4.0|", 4.0), ("-|0.5|", -0.5), ("-1.0", -1.0)):
        for sel, hi in ((0, 0), (0, 1), (1, 1)):
            value = 0.0 * x if sel and hi else x
            for op in ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"):
                jobs.append((f"{op} v4, v8, {text}, v16 op_sel:[0,{sel},0] op_sel_hi:[0,{hi},0]", 3 * value + 1))
    for (text, want), code in zip(jobs, codes(arch, [j[0] for j in jobs]), strict=True):
        got = one(arch, code, v)
        bits = {"3": single(want), "l": 0xABCD0000 | half(want), "h": half(want) << 16 | 0x1234}
        assert got == bits[text.split("mix")[1].lstrip("_f")[0]], f"{text}: {got:08x}"


@pytest.mark.parametrize("arch", ALL)
def test_constants_of_packed_multiply_accumulate(arch):
    """v_pk_fmac_f16: gfx11 and gfx12 have an inline constant in both halves, the CDNA chips a 32-bit value."""
    twice = arch in RDNA
    v = {4: 0, 8: half(3.0) | half(5.0) << 16}
    for byte, low, high in ((0xF2, 1.0, 1.0 * twice), (0xF4, 2.0, 2.0 * twice), (0x82, 2.0**-23, 2.0**-23 * twice)):
        got = one(arch, bytes([byte, 0x10, 0x08, 0x78]), v)
        assert got & 0xFFFF == half(3 * low) and got >> 16 == half(5 * high), f"{byte:x}: {got:08x}"
    for literal in (0x3C00, 0x40003C00):
        got = one(arch, bytes.fromhex("ff100878") + literal.to_bytes(4, "little"), v)
        want = half(3 * real(literal & 0xFFFF, "f16")) | half(5 * real(literal >> 16, "f16")) << 16
        assert got == want, f"{literal:x}: {got:08x}"


@pytest.mark.parametrize("arch", ALL)
def test_signs_of_packed_operands(arch):
    """One sign bit of an operand with two elements is for both; the addend of the bfloat product has signs too."""
    a, b = (1.0, 2.0), (3.0, 5.0)
    if arch in CDNA:
        tails = {"_e64": "", "_dpp": " quad_perm:[0,1,2,3]", "_sdwa": " dst_sel:DWORD src0_sel:DWORD src1_sel:DWORD"}
        lines = [f"v_pk_fmac_f16{e} v4, {x}, {y}{t}" for e, t in tails.items() for x in ("v8", "-v8", "|v8|")
                 for y in ("v12", "-v12", "-|v12|")]  # fmt: skip
        for text, code in zip(lines, codes(arch, lines), strict=True):
            v = {4: half(0.5) * 0x10001, 8: half(a[0]) | half(-a[1]) << 16, 12: half(b[0]) | half(-b[1]) << 16}
            x, y = [a[0], -a[1]], [b[0], -b[1]]
            for z, name in ((x, "v8"), (y, "v12")):
                z[:] = [abs(u) for u in z] if f"|{name}|" in text else z
                z[:] = [-u for u in z] if f"-{name}" in text or f"-|{name}" in text else z
            want = half(x[0] * y[0] + 0.5) | half(x[1] * y[1] + 0.5) << 16
            assert one(arch, code, v) == want, text
        return
    for kind in ("f16", "bf16"):
        put = half if kind == "f16" else lambda x: single(x) >> 16
        args = [(x, y, z) for x in ("v8", "-v8", "|v8|") for y in ("v12", "-|v12|") for z in ("v16", "-v16", "|v16|")]
        lines = [f"v_dot2_{kind}_{kind} v4, {', '.join(t)}" for t in args]
        for t, text, code in zip(args, lines, codes(arch, lines), strict=True):
            v = {4: 0x12340000, 8: put(a[0]) | put(-a[1]) << 16, 12: put(b[0]) | put(-b[1]) << 16, 16: put(-0.5)}
            value = []
            for z, name in zip(([a[0], -a[1]], [b[0], -b[1]], [-0.5]), t, strict=True):
                z = [abs(u) for u in z] if "|" in name else z
                value.append([-u for u in z] if name[0] == "-" else z)
            want = 0x12340000 | put(value[0][0] * value[1][0] + value[0][1] * value[1][1] + value[2][0])
            assert one(arch, code, v) == want, text


@pytest.mark.parametrize("arch", ALL)
def test_exponentials_in_every_rounding_mode(arch):
    """A unit in the last place, whatever MODE says."""
    rnd = random.Random(7)
    n = lanes_of(arch)
    f32, f16 = codes(arch, ["v_exp_f32_e32 v4, v8", "v_exp_f16_e32 v4, v8"])
    for mode in range(4):
        xs = [rnd.uniform(-20, 20) for _ in range(n)]
        for code, kind in ((f32, "f32"), (f16, "f16")):
            bits = [pattern(x if kind == "f32" else x / 4, kind) for x in xs]
            state = {"wave": n, "v": {"4": hexrow([0] * n), "8": hexrow(bits)},
                     "mode": {"fp32_round": mode, "fp16_64_round": mode}}  # fmt: skip
            out = sim.execute(arch, code, state)["v"]["4"]
            for i, b in enumerate(bits):
                got, want = int(out[8 * i : 8 * i + 8], 16), pattern(2.0 ** real(b, kind), kind)
                assert abs((got & (0xFFFFFFFF if kind == "f32" else 0xFFFF)) - want) <= 1, (kind, mode, real(b, kind))


OVERFLOW = {0: (1, 1), 1: (1, 0), 2: (0, 1), 3: (0, 0)}
"""Rounding mode: does an overflow become an infinity (positive, negative)?"""
EDGES = {
    "f16": [0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x8400, 0x07FE, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7800, 0xF7FF,
            0x7C00, 0xFC00, 0x7E00],
    "f32": [0, 1 << 31, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x00FFFFFE, 0x3F800000, 0xBFC00000,
            0x7F7FFFFF, 0xFF7FFFFF, 0x7E800000, 0xFEFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000],
    "f64": [0, 1 << 63, 1, (1 << 63) | 1, (1 << 52) - 1, 1 << 52, (1 << 63) | 1 << 52, (2 << 52) - 2, 0x3FF << 52,
            0xBFF8 << 48, (0x7FF << 52) - 1, (0xFFF << 52) - 1, 0x7FD << 52, 0xFFDF << 48, 0x7FF << 52, 0xFFF << 52,
            0x7FF8 << 48],
}  # fmt: skip


def modified(x: int, kind: str, scale: int, clamp: bool, nan0: bool, rnd: int) -> int:
    """A result after its output modifier (scale: a power of 2) and its clamp."""
    e, m = FORMAT[kind]
    exp, sign = x >> m & ((1 << e) - 1), x >> (e + m)
    top = ((1 << e) - 1) << m
    if scale and exp != (1 << e) - 1:
        exp = exp + scale if exp else 0
        if exp <= 0:
            x = 0
        elif exp >= (1 << e) - 1:
            x = sign << (e + m) | (top if OVERFLOW[rnd][sign] else top - 1)
        else:
            x = sign << (e + m) | exp << m | x & ((1 << m) - 1)
    if clamp and x & (1 << (e + m)) - 1 > top:
        return 0 if nan0 else x
    if clamp:
        one = ((1 << (e - 1)) - 1) << m
        x = 0 if x >> (e + m) else min(x, one)
    return x


@pytest.mark.parametrize("arch", ALL)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_output_modifiers(arch, kind):
    """Scales and clamps of a product with 1, under the modes that switch them."""
    n, wide = lanes_of(arch), kind == "f64"
    rnd = random.Random(kind)
    xs = EDGES[kind] + [rnd.getrandbits(int(kind[1:])) for _ in range(n - len(EDGES[kind]))]
    e, m = FORMAT[kind]
    quiet = 1 << (m - 1)
    xs = [x | quiet if x >> m & ((1 << e) - 1) == (1 << e) - 1 and x & ((1 << m) - 1) else x for x in xs]
    src, dst = ("v[8:9]", "v[4:5]") if wide else ("v8", "v4")
    e64 = "" if wide and arch != "gfx1201" else "_e64"
    omods = {"": 0, " mul:2": 1, " mul:4": 2, " div:2": -1}
    jobs = [(o, c) for o in omods for c in ("", " clamp")]
    lines = [f"v_mul_{kind}{e64} {dst}, {src}, 1.0{c}{o}" for o, c in jobs]
    regs = {8: [x & 0xFFFFFFFF for x in xs], 9: [x >> 32 for x in xs], 4: [0] * n, 5: [0] * n}
    states = [dict.fromkeys(("fp32_denorm", "fp16_64_denorm"), d) | dict.fromkeys(("fp32_round", "fp16_64_round"), r)
              for d in (0, 1, 3) for r in (0, 1, 2, 3)]  # fmt: skip
    for (o, c), line, code in zip(jobs, lines, codes(arch, lines), strict=True):
        for state in states:
            for more in ({},) if arch == "gfx1201" else ({"ieee": 0}, {"ieee": 1}, {"ieee": 0, "dx10_clamp": 0}):
                den, r = state["fp32_denorm"], state["fp32_round"]
                works = arch == "gfx1201" or (not more["ieee"] and not den & 2)
                nan0 = arch == "gfx1201" or more.get("dx10_clamp", 1) == 1
                out = sim.execute(arch, code, {"wave": n, "mode": state | more,
                                               "v": {str(k): hexrow(v) for k, v in regs.items()}})["v"]  # fmt: skip
                for i, x in enumerate(xs):
                    small = not x >> m & ((1 << e) - 1)
                    if small and den == 3 and arch == "gfx1201" and o:
                        continue  # the manual does not say whether a subnormal is scaled before it is flushed
                    y = x & 1 << (e + m) if small and den != 3 else x  # 1 keeps subnormal sources, not results
                    want = modified(y, kind, omods[o] if works else 0, bool(c), nan0, r)
                    got = int(out["4"][8 * i : 8 * i + 8], 16)
                    got |= int(out["5"][8 * i : 8 * i + 8], 16) << 32 if wide else 0
                    assert got == want, f"{line} {state | more}: {x:x} gives {got:x}, not {want:x}"


@pytest.mark.parametrize("arch", ALL)
def test_reciprocals_and_exponentials_flush(arch):
    """v_rcp_f32 and v_exp_f32 take and give zeros for subnormals in every mode; those of halves keep them."""
    inf, n = 0x7F800000, lanes_of(arch)
    big, small = 0x7F000000, 0x00400000  # 2^127, 2^-127
    cases = {
        "v_rcp_f32_e32 v4, v8": {small: inf, small | 1 << 31: inf | 1 << 31, big: 0, big | 1 << 31: 1 << 31,
                                 0x7E800000: 0x00800000, 0x00800000: 0x7E800000},
        "v_rcp_iflag_f32_e32 v4, v8": {small: inf, big: 0},
        "v_exp_f32_e32 v4, v8": {single(-130.0): 0, single(-126.5): 0},
        "v_rcp_f16_e32 v4, v8": {0x7800: 0x0200, 0x0200: 0x7800},
        "v_exp_f16_e32 v4, v8": {half(-17.5): 0x005B},
    }  # fmt: skip
    for (text, rows), code in zip(cases.items(), codes(arch, list(cases)), strict=True):
        for mode in ({}, {"fp32_round": 1}, {"fp32_round": 3}):
            v = {"8": hexrow((list(rows) * n)[:n]), "4": hexrow([0] * n)}
            out = sim.execute(arch, code, {"wave": n, "v": v, "mode": mode})["v"]["4"]
            for i, (x, want) in enumerate(rows.items()):
                got = int(out[8 * i : 8 * i + 8], 16)
                assert got == want, f"{text} {mode}: {x:x} gives {got:x}, not {want:x}"


@pytest.mark.parametrize("arch", CDNA)
@pytest.mark.parametrize("checks", ["none", "init"])
def test_what_gpr_indexing_moves(arch, checks):
    """Bits of M0 for sources 0 to 2 (1, 2, 4) and the destination (8): a destination that is read, too, moves with the
    last; lane reads and writes move; what is computed there is defined."""
    v = {str(k): hexrow([0x10000 * (k + 1) + k] * 64) for k in range(24)}
    add, u16 = 0x10000, 0xFFFF

    def reg(k: int) -> int:
        return add * (k + 1) + k

    cases = []
    for bits in range(16):
        s0, s1, s2, d = (2 * (bits >> k & 1) for k in range(4))
        cases += [
            (bits, "v_mad_u32_u24 v4, v8, v12, v16", "v", 4 + d,
             (reg(8 + s0) & 0xFFFFFF) * (reg(12 + s1) & 0xFFFFFF) + reg(16 + s2)),
            (bits, "v_dot4c_i32_i8 v4, v8, v12", "v", 4 + d,
             reg(4 + d) + ((8 + s0) * (12 + s1) + (9 + s0) * (13 + s1))),
            (bits, "v_cvt_pkaccum_u8_f32 v4, s1, v21", "v", 4 + d,  # byte 1 or 3 of the old value becomes 7
             reg(4 + d) & ~(255 << 8 * ((21 + s1) % 4)) | 7 << 8 * ((21 + s1) % 4)),
            (bits, "v_mov_b32_sdwa v4, v8 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0", "v", 4 + d,
             reg(4 + d) & u16 | (8 + s0) << 16),
            (bits, "v_readfirstlane_b32 s6, v8", "s", 6, reg(8 + s0)),
            (bits, "v_readlane_b32 s6, v8, 5", "s", 6, reg(8 + s0)),
            (bits, "v_writelane_b32 v4, s1, 0", "v", 4 + d, 0x40E00000),
        ]  # fmt: skip
    lines = [x for b, text, *_ in cases for x in (f"s_set_gpr_idx_on s0, {b}", text, "s_set_gpr_idx_off", "s_nop 4")]
    parts = codes(arch, lines)
    tail = codes(arch, ["s_cmp_eq_u32 s6, 0", "s_cbranch_scc1 0"])
    for i, (bits, text, kind, number, want) in enumerate(cases):
        code = b"".join(parts[4 * i : 4 * i + 4] + (tail if kind == "s" else []))
        out = sim.execute(arch, code, {"v": v, "s": {"0": "00000002", "1": "40e00000"}, "m0": "0"}, checks=checks)
        got = int(out[kind][str(number)][:8], 16)
        assert got == want & 0xFFFFFFFF, f"{text}, indices {bits}: {got:08x}, not {want:08x}"
        changed = {k for k in v if out["v"][k] != v[k]}
        assert changed <= ({str(number)} if kind == "v" else set()), f"{text}, indices {bits}: {changed}"


@pytest.mark.parametrize("arch", ALL)
def test_classes_look_at_the_bits(arch):
    """v_cmp_class tells subnormals from zeros in every mode, after the operand's signs."""
    dst = "s[4:5]" if arch in CDNA else "s4"
    tiny = {"f16": 0x0123, "f32": 0x00400000, "f64": 1 << 51}
    lines = [
        f"v_cmp_class_{kind}_e64 {dst}, {sign.format('v[8:9]' if kind == 'f64' else 'v8')}, v12"
        for kind in tiny
        for sign in ("{}", "-{}", "|{}|", "-|{}|")
    ]
    n = lanes_of(arch)
    for text, code in zip(lines, codes(arch, lines), strict=True):
        kind = text.split("_")[3]
        for negative in (0, 1):
            x = tiny[kind] | negative << (int(kind[1:]) - 1)
            minus = (negative and "|" not in text) != (", -" in text)
            for den in (0, 1, 2, 3):
                v = {
                    "8": hexrow([x & 0xFFFFFFFF] * n),
                    "9": hexrow([x >> 32] * n),
                    "12": hexrow([1 << k for k in range(10)]),
                }
                mode = {"fp32_denorm": den, "fp16_64_denorm": den}
                out = sim.execute(arch, code, {"wave": n, "exec": "3ff", "v": v, "mode": mode})
                assert int(out["s"]["4"], 16) == 1 << (4 if minus else 7), f"{text} {mode} of {x:x}: {out['s']}"
