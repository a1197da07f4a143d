"""Check "init": of a pair of registers, an undefined half that an instruction does not use spoils nothing."""

from __future__ import annotations

import pytest

sim = pytest.importorskip("tilelang.sim")

import isa_ref  # noqa: E402
from isa_ref import encode, hexrow  # noqa: E402
from simlib import code_object  # noqa: E402

SELECTS = [  # op_sel, the half of v[4:5] that v2 gets, the half of v[6:7] that v3 gets
    ("", 0, 0),
    (" op_sel:[1,0]", 1, 0),
    (" op_sel:[0,1]", 0, 1),
    (" op_sel:[1,1]", 1, 1),
]


def undefined(arch: str, text: str, known: list[int], scalars: dict[str, str], reg: int) -> bool:
    """Is register v<reg> undefined after the instruction, when only the registers in `known` were defined before?"""
    return isa_ref.undefined(arch, [text], reg, dict.fromkeys(known, 5), scalars)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("op_sel, low, high", SELECTS)
def test_packed_moves(arch: str, op_sel: str, low: int, high: int) -> None:
    """v_pk_mov_b32 takes one half of each source (rocPRIM's sorts swap the registers of a pair with it)."""
    text = f"v_pk_mov_b32 v[2:3], v[4:5], v[6:7]{op_sel}"
    used = [4 + low, 6 + high]
    assert not undefined(arch, text, used, {}, 2) and not undefined(arch, text, used, {}, 3)
    assert undefined(arch, text, [k for k in (4, 5, 6, 7) if k != used[0]], {}, 2)
    assert undefined(arch, text, [k for k in (4, 5, 6, 7) if k != used[1]], {}, 3)
    assert not undefined(arch, text, [k for k in (4, 5, 6, 7) if k != used[1]], {}, 2)
    assert not undefined(arch, text, [k for k in (4, 5, 6, 7) if k != used[0]], {}, 3)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_packed_moves_of_scalars(arch: str) -> None:
    """The same with a pair of scalars as the first source."""
    text = "v_pk_mov_b32 v[2:3], s[4:5], v[6:7] op_sel:[1,0]"
    assert not undefined(arch, text, [6], {"5": "1"}, 2)
    assert undefined(arch, text, [6], {"4": "1"}, 2)
    assert not undefined(arch, text, [6], {"4": "1"}, 3)


LOW_ONLY = {  # the low half of the result does not depend on the high half of the pair; then what does
    "v_mad_u64_u32 v[2:3], vcc, v4, v5, {0}": [4, 5],
    "v_mad_i64_i32 v[2:3], vcc, v4, v5, {0}": [4, 5],
    "v_lshlrev_b64 v[2:3], 3, {0}": [],
    "v_lshl_add_u64 v[2:3], {0}, 2, v[4:5]": [4],
    "v_mov_b64 v[2:3], {0}": [],
    "v_mad_u64_u32 v[2:3], null, v4, v5, {0}": [4, 5],
    "v_mad_co_u64_u32 v[2:3], null, v4, v5, {0}": [4, 5],
    "v_mad_co_i64_i32 v[2:3], null, v4, v5, {0}": [4, 5],
    "v_lshlrev_b64_e64 v[2:3], 3, {0}": [],
}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_high_half_of_a_pair(arch: str) -> None:
    """Sums, products and shifts of 64 bits: with the high half of a pair undefined, in vector registers or in scalars,
    the low half of the result is defined (rocSOLVER stores such)."""
    ran = 0
    for text, known in LOW_ONLY.items():
        for pair in ("v[6:7]", "s[6:7]"):
            if encode(arch, [text.format(pair)])[0] is None:
                continue
            ran += 1
            v, s = ([*known, 6], {}) if pair[0] == "v" else (known, {"6": "1"})
            assert not undefined(arch, text.format(pair), v, s, 2), text.format(pair)
            assert undefined(arch, text.format(pair), v, s, 3), text.format(pair)
            v, s = ([*known, 7], {}) if pair[0] == "v" else (known, {"7": "1"})
            assert undefined(arch, text.format(pair), v, s, 2), text.format(pair)
    assert ran >= 4


SCALARS = {  # s4: bits 8 to 15 undefined, s5: all, s6: 4, s7: 32, s8: 5, s9: 0x80004, s[10:11]: bits 8 to 15 undefined
    # instruction: the undefined bits of s2, of s3
    "s_lshl_b32 s2, s4, s6": (0xFF000, 0),
    "s_lshl_b32 s2, s6, s4": (0xFFFFFFFF, 0),
    "s_lshr_b32 s2, s4, s6": (0xFF0, 0),
    "s_ashr_i32 s2, s4, s6": (0xFF0, 0),
    "s_ashr_i32 s2, s5, 31": (0xFFFFFFFF, 0),
    "s_lshl_b64 s[2:3], s[4:5], s7": (0, 0xFF00),
    "s_lshl_b64 s[2:3], s[10:11], 28": (0, 0xFF0),
    "s_lshr_b64 s[2:3], s[4:5], s7": (0xFFFFFFFF, 0),
    "s_lshr_b64 s[2:3], s[10:11], s7": (0, 0),
    "s_bfe_u32 s2, s4, s9": (0xF0, 0),
    "s_bfe_i32 s2, s4, s9": (0xFFFFFFF0, 0),
    "s_bfe_u32 s2, s4, 0x40000": (0, 0),
    "s_sext_i32_i8 s2, s4": (0, 0),
    "s_sext_i32_i16 s2, s4": (0xFFFFFF00, 0),
    "s_pack_ll_b32_b16 s2, s4, s6": (0xFF00, 0),
    "s_pack_ll_b32_b16 s2, s6, s4": (0xFF000000, 0),
    "s_pack_hh_b32_b16 s2, s4, s5": (0xFFFF0000, 0),
    "s_pack_lh_b32_b16 s2, s4, s4": (0xFF00, 0),
    "s_pack_hl_b32_b16 s2, s5, s4": (0xFF00FFFF, 0),
    "s_add_u32 s2, s4, s8": (0xFFFFFF00, 0),
    "s_mul_i32 s2, s8, s4": (0xFFFFFF00, 0),
    "s_lshl2_add_u32 s2, s4, s8": (0xFFFFFF00, 0),
    "s_mul_hi_u32 s2, s4, s8": (0xFFFFFFFF, 0),
}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_bits_of_scalars(arch: str) -> None:
    """Shifts, bit fields and packs move undefined bits; sums leave what is below them (clang -O0 divides so)."""
    before = ["s_and_b32 s4, s20, 0xff00", "s_and_b32 s10, s20, 0xff00"]
    state = {"wave": 64 if len(arch) == 6 else 32, "s": {"6": "4", "7": "20", "8": "5", "9": "80004", "11": "0"}}
    ran = 0
    for text, masks in SCALARS.items():
        if encode(arch, [text])[0] is None:
            continue
        for s, mask in zip((2, 3), masks, strict=True):
            if s == 3 and "s[2:3]" not in text:
                continue
            ran += 1
            for bit in (0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 27, 28, 31):
                tail = [f"s_and_b32 s12, s{s}, 0x{1 << bit:x}", "s_cmp_eq_u32 s12, 0", "s_cbranch_scc1 0"]
                code = b"".join(encode(arch, [*before, text, *tail]))
                try:
                    sim.execute(arch, code, state, checks=["init"])
                    bad = False
                except sim.SimulatorFault:
                    bad = True
                assert bad == bool(mask >> bit & 1), (text, s, bit)
    assert ran >= 24


HALF = {  # source {0} in its low half alone; the chips that have it
    "v_cmp_le_i16_e32 vcc, v4, {0}": "gfx90a gfx942 gfx950",
    "v_cmp_le_i16_e64 vcc, {0}, v4": "gfx90a gfx942 gfx950",
    "v_cmp_eq_u16_e32 vcc, v4, {0}": "gfx90a gfx942 gfx950",
    "v_cmp_lt_f16_e32 vcc, v4, {0}": "gfx90a gfx942 gfx950",
    "v_cmp_class_f16_e64 vcc, {0}, v4": "gfx90a gfx942 gfx950",
    "v_cmp_le_i16_e64 vcc_lo, {0}, v4": "gfx1100 gfx1201",
    "v_cmp_lt_f16_e64 vcc_lo, {0}, v4": "gfx1100 gfx1201",
    "v_cmp_eq_u16_sdwa vcc, {0}, v4 src0_sel:WORD_0 src1_sel:DWORD": "gfx90a gfx942 gfx950",
    "v_cmp_eq_u32_sdwa vcc, {0}, v4 src0_sel:BYTE_1 src1_sel:DWORD": "gfx90a gfx942 gfx950",
}
WHOLE = {  # in its high half too
    "v_cmp_le_i32_e32 vcc, v4, {0}": "gfx90a gfx942 gfx950",
    "v_cmp_eq_u16_sdwa vcc, {0}, v4 src0_sel:WORD_1 src1_sel:DWORD": "gfx90a gfx942 gfx950",
    "v_cmp_eq_u32_sdwa vcc, {0}, v4 src0_sel:BYTE_2 src1_sel:DWORD": "gfx90a gfx942 gfx950",
    "v_cmp_le_i32_e32 vcc_lo, v4, {0}": "gfx1100 gfx1201",
}
VALUES = {
    "v_add_u16 v2, {0}, v4": "gfx90a gfx942 gfx950",
    "v_add_f16 v2, {0}, v4": "gfx90a gfx942 gfx950",
    "v_mad_u16 v2, v4, {0}, v4": "gfx90a gfx942 gfx950",
    "v_cvt_f32_f16 v2, {0}": "gfx90a gfx942 gfx950 gfx1100 gfx1201",
    "v_fma_mix_f32 v2, {0}, v4, v4 op_sel_hi:[1,0,0]": "gfx942 gfx950 gfx1100 gfx1201",
    "v_mov_b32_sdwa v2, {0} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0": "gfx90a gfx942 gfx950",
}
VALUES_WHOLE = {
    "v_fma_mix_f32 v2, {0}, v4, v4 op_sel:[1,0,0] op_sel_hi:[1,0,0]": "gfx942 gfx950 gfx1100 gfx1201",
    "v_fma_mix_f32 v2, {0}, v4, v4": "gfx942 gfx950 gfx1100 gfx1201",
    "v_add_u32 v2, {0}, v4": "gfx90a gfx942 gfx950",
    "v_pk_add_u16 v2, {0}, v4": "gfx90a gfx942 gfx950 gfx1100 gfx1201",
    "v_mov_b32_sdwa v2, {0} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1": "gfx90a gfx942 gfx950",
}


def with_chips(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(arch, text) for text, chips in table.items() for arch in chips.split()]


def half_undefined(arch: str, text: str, move: str = "") -> bool:
    """Does an undefined upper half of source {0}, moved before, reach a branch?"""
    g9 = arch < "gfx11" or len(arch) == 6
    lanes, vcc = (64, "vcc") if g9 else (32, "vcc_lo")
    lines = ["ds_write_b16 v1, v4" if g9 else "ds_store_b16 v1, v4"]
    wait = "s_wait_dscnt 0" if arch == "gfx1201" else "s_waitcnt lgkmcnt(0)"
    lines += [wait, "ds_read_b32 v5, v1" if g9 else "ds_load_b32 v5, v1", wait, *move.split("; "), text.format("v5")]
    if not text.startswith("v_cmp"):
        lines += ["s_nop 4", f"v_cmp_eq_u32 {vcc}, 0, v2"]
    body = "\n".join(["v_lshlrev_b32 v1, 2, v0", "v_mov_b32 v4, 5", *lines, "s_nop 4", "s_cbranch_vccnz 0"])
    kernel = next(
        iter(sim.Device(arch, checks=["init"]).load(code_object(body, (), arch=arch, lds=256)).kernels.values())
    )
    try:
        kernel.launch(1, lanes, [])
    except sim.SimulatorFault as e:
        assert "undefined value of vcc" in str(e)
        return True
    return False


@pytest.mark.parametrize(("arch", "text"), with_chips(HALF | VALUES))
def test_an_upper_half_that_is_not_used(arch: str, text: str) -> None:
    assert not half_undefined(arch, text)


@pytest.mark.parametrize(("arch", "text"), with_chips(WHOLE | VALUES_WHOLE))
def test_an_upper_half_that_is_used(arch: str, text: str) -> None:
    assert half_undefined(arch, text)


MOVES = {
    "v_mov_b32_dpp v6, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf; s_nop 1; v_mov_b32 v5, v6": "gfx90a gfx1100",
    "v_mov_b32_dpp v5, v5 row_ror:3 row_mask:0xf bank_mask:0xf": "gfx942 gfx1201",
    "v_accvgpr_write_b32 a1, v5; s_nop 4; v_accvgpr_read_b32 v5, a1": "gfx90a gfx942 gfx950",
    "v_readfirstlane_b32 s4, v5; s_nop 4; v_mov_b32 v5, s4": "gfx90a gfx950 gfx1100",
    "v_readlane_b32 s4, v5, 3; s_nop 4; v_mov_b32 v5, s4": "gfx942 gfx1201",
    "v_permlane16_b32 v5, v5, s6, s7": "gfx1100 gfx1201",
    "v_permlanex16_b32 v5, v5, s6, s7": "gfx1100 gfx1201",
    "s_mov_b32 m0, 0; v_movrels_b32 v5, v5": "gfx1100 gfx1201",
    "v_permlane32_swap_b32 v5, v5": "gfx950",
    "v_permlane16_swap_b32 v5, v5": "gfx950",
    "v_swap_b32 v5, v6; v_swap_b32 v6, v5": "gfx942 gfx1100",
    **{
        f"ds_{op}; s_waitcnt lgkmcnt(0)": "gfx90a gfx942 gfx1100"
        for op in (
            "bpermute_b32 v5, v1, v5",
            "permute_b32 v5, v1, v5",
            "swizzle_b32 v5, v5 offset:swizzle(SWAP,1)",
        )
    },
}


@pytest.mark.parametrize(("arch", "move"), with_chips(MOVES))
def test_halves_move_between_lanes(arch: str, move: str) -> None:
    vcc = "vcc_lo" if arch > "gfx1" and len(arch) == 7 else "vcc"
    move = f"s_mov_b32 s6, 0x76543210; s_mov_b32 s7, 0xfedcba98; {move}; s_nop 4"
    assert not half_undefined(arch, f"v_cmp_le_i16_e64 {vcc}, {{0}}, v4", move)
    assert half_undefined(arch, f"v_cmp_le_i32_e64 {vcc}, {{0}}, v4", move)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("text", "spoiled"),
    [
        ("v_cmp_eq_u16_e32 vcc, s4, v4", False),
        ("v_cmp_lt_f16_e32 vcc, s4, v4", False),
        ("v_cmp_lt_u32_e32 vcc, s4, v4", True),
    ],
)
@pytest.mark.parametrize("half", [0, 16])
def test_halves_of_scalars(arch: str, text: str, spoiled: bool, half: int) -> None:
    """A scalar of which one half is undefined (a register that nothing wrote is a whole undefined one)."""
    shift = "s_lshr_b32 s4, s6, 16" if half else "s_lshl_b32 s4, s6, 16"
    lines = [shift, text, "s_nop 4", "s_cbranch_vccnz 0"]
    state = {"wave": 64, "v": {"4": hexrow([5] * 64)}}
    try:
        sim.execute(arch, b"".join(encode(arch, lines)), state, checks=["init"])
    except sim.SimulatorFault as e:
        assert "undefined value of vcc" in str(e) and (spoiled or half)
        return
    assert not spoiled and not half
