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
    code = b"".join(encode(arch, [text, "s_nop 4", f"v_cmp_eq_u32 vcc, 0, v{reg}", "s_cbranch_vccnz 0"]))
    state = {"v": {str(k): hexrow([5] * 64) for k in known}, "s": scalars}
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
