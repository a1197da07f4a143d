"""Check "init": of a pair of registers, an undefined half that an instruction does not use spoils nothing."""

from __future__ import annotations

import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode, hexrow  # noqa: E402

SELECTS = [  # op_sel, the half of v[4:5] that v2 gets, the half of v[6:7] that v3 gets
    ("", 0, 0),
    (" op_sel:[1,0]", 1, 0),
    (" op_sel:[0,1]", 0, 1),
    (" op_sel:[1,1]", 1, 1),
]


def undefined(arch: str, text: str, known: list[int], scalars: dict[str, str], reg: int) -> bool:
    """Is register v<reg> undefined after the instruction, when only the registers in `known` were defined before?"""
    lanes, vcc = (64, "vcc") if arch < "gfx11" or len(arch) == 6 else (32, "vcc_lo")
    code = b"".join(encode(arch, [text, "s_nop 4", f"v_cmp_eq_u32 {vcc}, 0, v{reg}", "s_cbranch_vccnz 0"]))
    state = {"wave": lanes, "v": {str(k): hexrow([5] * lanes) for k in known}, "s": scalars}
    try:
        sim.execute(arch, code, state, checks=["init"])
    except sim.SimulatorFault as e:
        assert "undefined value of vcc" in str(e)
        return True
    return False


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
