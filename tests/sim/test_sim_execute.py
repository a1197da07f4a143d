"""Bare instructions under checks: what is undefined, not waited for, or too early."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from simlib import llvm_mc, sections

sim = pytest.importorskip("tilelang.sim")


def code(text: str, arch: str = "gfx942") -> bytes:
    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "k.o"
        cmd = [llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=obj", "-o", str(out)]
        subprocess.run(cmd, input=text, text=True, check=True)
        return sections(out.read_bytes())[".text"]


ONES = "00000001" * 64
STATE = {"v": {"1": ONES, "2": "00000000" * 64}, "s": {"4": "00000007"}, "lds": "05000000" * 64}
FOUND = {  # text, check, pc, other pc
    "undefined vector": ("v_readfirstlane_b32 s5, v3\n s_cmp_eq_u32 s5, 0\n s_cbranch_scc1 0", "init", 8, None),
    "undefined scalar": ("s_cmp_eq_u32 s9, 0\n s_cbranch_scc1 0", "init", 4, None),
    "undefined scc": ("s_cbranch_scc1 0", "init", 0, None),
    "undefined vcc": ("s_cbranch_vccz 0", "init", 0, None),
    "no wait": ("ds_read_b32 v5, v2\n v_add_u32 v6, v5, v1", "wait", 8, 0),
    "no wait state": ("v_readfirstlane_b32 s5, v2\n v_readlane_b32 s6, v1, s5", "hazard", 4, 0),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    text, check, pc, other = FOUND[name]
    for checks in (check, "all", ["init", "wait", "hazard"]):
        with pytest.raises(sim.SimulatorFault) as e:
            sim.execute("gfx942", code(text), STATE, checks=checks)
        r = e.value.reports[0]
        assert (r.check, r.pc) == (check, pc) and (other is None or r.other_pc == other), r
    for checks in ("none", *({"init", "wait", "hazard"} - {check})):
        sim.execute("gfx942", code(text), STATE, checks=checks)


CLEAN = {
    "given": ("v_readfirstlane_b32 s5, v1\n s_cmp_eq_u32 s5, 0\n s_cbranch_scc1 0", {}),
    "scc, vcc, m0": ("s_cbranch_scc1 0\n s_cbranch_vccz 0\n s_mov_b32 s5, m0\n s_add_u32 s6, s5, s4\n s_cbranch_scc1 0",
                     {"scc": 0, "vcc": "0", "m0": "0"}),
    "lds": ("ds_read_b32 v5, v2\n s_waitcnt lgkmcnt(0)\n v_readfirstlane_b32 s5, v5\n s_cmp_eq_u32 s5, 0\n"
            "s_cbranch_scc1 0", {}),
    "wait state": ("v_readfirstlane_b32 s5, v2\n s_nop 3\n v_readlane_b32 s6, v1, s5", {}),
    "exec": ("s_and_saveexec_b64 s[6:7], s[6:7]\n s_cbranch_execz 0", {"s": {"6": "0000000f", "7": "00000000"}}),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_clean_and_equal(name):
    """Checks find nothing and change nothing."""
    text, more = CLEAN[name]
    state = STATE | more
    assert sim.execute("gfx942", code(text), state, checks="all") == sim.execute("gfx942", code(text), state)


def test_lanes_that_are_given():
    """A register given for four lanes is defined there, in wave 32 too."""
    for arch, wave in (("gfx942", 64), ("gfx1100", 32)):
        state = {"wave": wave, "exec": "f", "v": {"1": "00000001" * 4, "2": "00000000" * wave}, "vcc": "0"}
        text = code(
            "v_cmp_eq_u32 vcc, v1, v2\n s_cbranch_vccz 0".replace("vcc,", "vcc," if wave == 64 else "vcc_lo,"), arch
        )
        sim.execute(arch, text, state, checks="init")
        with pytest.raises(sim.SimulatorFault):
            sim.execute(arch, text, state | {"exec": "1f"}, checks="init")


@pytest.mark.parametrize("checks", ["bogus", ["init", "bogus"], "init,bogus"])
def test_checks_that_are_not(checks):
    with pytest.raises(ValueError, match="'bogus' does not exist; there are: bounds, init"):
        sim.execute("gfx942", code("s_nop 0"), {}, checks=checks)


def test_names_of_checks():
    """Every name that a device takes; bounds, race and barrier add nothing to what is always found in one wave."""
    wrong = code("s_cmp_eq_u32 s9, 0\n s_cbranch_scc1 0")
    for checks in ("race", "bounds", "barrier", ["bounds", "race"], "wait,race", "none", []):
        sim.execute("gfx942", wrong, STATE, checks=checks)
        with pytest.raises(sim.SimulatorFault, match="LDS access"):
            sim.execute("gfx942", code("ds_read_b32 v5, v2 offset:4096"), STATE, checks=checks)
    for checks in ("init", ["race", "init"], "init,barrier", ("all",)):
        with pytest.raises(sim.SimulatorFault, match="undefined"):
            sim.execute("gfx942", wrong, STATE, checks=checks)


@pytest.mark.parametrize("arch, wave", [("gfx90a", 64), ("gfx942", 64), ("gfx950", 64), ("gfx1100", 32),
                                        ("gfx1100", 64), ("gfx1201", 32), ("gfx1201", 64)])  # fmt: skip
def test_mode_after(arch, wave):
    """The result has MODE as the program left it, and is a state to go on with."""
    name = "WAVE_MODE" if arch == "gfx1201" else "MODE"
    flush = code(f"s_setreg_imm32_b32 hwreg(HW_REG_{name}, 4, 2), 0", arch)
    add = code("v_add_f32 v3, v1, v2", arch)
    state = {"wave": wave, "v": {"1": "00000003" * wave, "2": "00000004" * wave, "3": "11111111" * wave}}
    assert sim.execute(arch, add, state)["mode"] is None
    got = sim.execute(arch, flush, state)
    assert got["mode"] == {"fp32_denorm": 0}
    assert sim.execute(arch, add, got)["v"]["3"] == "00000000" * wave
    assert sim.execute(arch, add, state)["v"]["3"] == "00000007" * wave
    back = code(f"s_setreg_imm32_b32 hwreg(HW_REG_{name}, 4, 2), 3", arch)
    assert sim.execute(arch, back, got)["mode"] == {"fp32_denorm": 3}


@pytest.mark.parametrize("checks", ["none", "all"])
def test_no_end_and_wild_jumps(checks):
    """A loop without an end and jumps out of the code are faults that say so; a jump that is not taken is none."""
    with pytest.raises(sim.SimulatorFault) as e:
        sim.execute("gfx942", code("s_nop 0\n s_branch -1"), {}, checks=checks)
    r = e.value.reports[0]
    assert (r.check, r.pc, r.text) == ("hang", 4, "s_branch 65535") and "without an end" in r.message
    for jump in ("s_branch -32768", "s_cbranch_scc1 32767", "s_cbranch_execnz 2", "s_call_b64 s[4:5], 100"):
        with pytest.raises(sim.SimulatorFault, match="the target is outside the code: " + jump[:8]) as e:
            sim.execute("gfx942", code(jump), {"scc": 1}, checks=checks)
        assert e.value.reports[0].check == "illegal"
    sim.execute("gfx942", code("s_cbranch_scc1 32767\n s_branch 0"), {"scc": 0}, checks=checks)


def test_reports_name_instructions():
    """Texts of both instructions; an unknown encoding by its dword; addresses of 0."""
    with pytest.raises(sim.SimulatorFault) as e:
        sim.execute("gfx942", code("ds_read_b32 v5, v2\n v_add_u32 v6, v5, v1"), STATE, checks="wait")
    r = e.value.reports[0]
    assert (r.text, r.other_text) == ("v_add_u32_e32 v6, v5, v1", "ds_read_b32 v5, v2") and r.message in str(r)
    with pytest.raises(sim.SimulatorFault, match="reserved encoding family: .long 0xfffffff3"):
        sim.execute("gfx942", bytes.fromhex("f3ffffff"), {})
    with pytest.raises(sim.SimulatorFault) as e:
        sim.execute("gfx942", code("ds_read_b32 v5, v2"), STATE | {"lds": ""})
    assert e.value.reports[0].address == 0


@pytest.mark.parametrize(
    "arch, text, state",
    [
        ("gfx942", b"\0\0\x80", {}),
        ("gfx9999", b"\0\0\x80\xbf", {}),
        ("gfx942", b"\0\0\x80\xbf", {"wave": 32}),
        ("gfx942", b"\0\0\x80\xbf", {"s": {"128": "0"}}),
        ("gfx942", b"\0\0\x80\xbf", {"s": {"-1": "0"}}),
        ("gfx942", b"\0\0\x80\xbf", {"s": {"1": "100000000"}}),
        ("gfx942", b"\0\0\x80\xbf", {"v": {"512": "0" * 8}}),
        ("gfx942", b"\0\0\x80\xbf", {"v": {"1": "0" * 7}}),
        ("gfx1100", b"\0\0\x80\xbf", {"wave": 32, "v": {"1": "0" * 8 * 33}}),
        ("gfx942", b"\0\0\x80\xbf", {"exec": "1" + "0" * 16}),
        ("gfx942", b"\0\0\x80\xbf", {"m0": "-1"}),
        ("gfx942", b"\0\0\x80\xbf", {"scc": 2}),
        ("gfx942", b"\0\0\x80\xbf", {"mode": {"fp32_rnd": 1}}),
        ("gfx942", b"\0\0\x80\xbf", {"mode": {"ieee": 2}}),
    ],
)
def test_states_that_are_not(arch, text, state):
    with pytest.raises(ValueError):
        sim.execute(arch, text, state)
