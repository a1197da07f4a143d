"""Data of a wide store may be overwritten as soon as a wait covers the store, however few wait states lie between
(rocPRIM's 16-byte atomic store is such a pair in inline assembly, which compilers do not look into)."""

from __future__ import annotations

import numpy as np
import pytest
import simlib

from tilelang import sim

ARCHES = ("gfx90a", "gfx942", "gfx950")
STORES = {
    "dwordx4": "global_store_dwordx4 v1, v[4:7], s[4:5]",
    "dwordx3": "global_store_dwordx3 v1, v[4:6], s[4:5]",
    "buffer": "buffer_store_dwordx4 v[4:7], v1, s[8:11], 0 offen",
}
GAPS = {"vmcnt(0)": True, "vmcnt(0) lgkmcnt(0)": True, "vmcnt(1)": False, "lgkmcnt(0)": False}


def program(arch: str, store: str, gap: str, write: str) -> bytes:
    """A store of v4 and up, `gap`, then a write of v4."""
    fill = "".join(f"v_mov_b32 v{r}, {r}\n" for r in range(4, 8))
    body = f"""s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_lshlrev_b32 v1, 4, v0
    {fill}s_waitcnt lgkmcnt(0)
    s_mov_b32 s8, s4
    s_mov_b32 s9, s5
    s_mov_b32 s10, 1024
    s_mov_b32 s11, 0x27000
    s_nop 7
    {store}
    {gap}
    {write}
    s_nop 7
    """
    return simlib.code_object(body, (simlib.BUF,), arch=arch, vgprs=64)


def found(arch: str, code: bytes) -> tuple[list, list]:
    """Hazards that a run reports and those that the verifier finds."""
    dev = sim.Device(arch, checks="all")
    out = dev.array(np.zeros(256, np.float32))
    reports = []
    try:
        dev.load(code).kernels["k"].launch((1,), (64,), [out])
    except sim.SimulatorFault as fault:
        reports = [r for r in fault.reports if r.check == "hazard"]
        assert len(reports) == len(fault.reports), fault
    return reports, [f for f in sim.verify(code) if f.severity == "error"]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("gap", GAPS)
def test_a_wait_that_covers_the_store(arch, store, gap):
    reports, findings = found(arch, program(arch, STORES[store], f"s_waitcnt {gap}", "v_mov_b32 v4, 9"))
    enough = GAPS[gap] or arch == "gfx90a"  # one wait state is all that gfx90a asks for: the wait itself
    assert (not reports, not findings) == (enough, enough), (reports, findings)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_wait_before_the_store_covers_nothing(arch):
    reports, findings = found(arch, program(arch, "s_waitcnt vmcnt(0)\n" + STORES["dwordx4"], "", "v_mov_b32 v4, 9"))
    assert len(reports) == 1 and len(findings) == 1


@pytest.mark.parametrize("arch", ARCHES)
def test_what_a_matrix_instruction_reads_is_not_waited_for(arch):
    name = "v_mfma_f32_16x16x16f16" if arch == "gfx90a" else "v_mfma_f32_16x16x16_f16"
    mfma = f"{name} v[4:7], v[2:3], v[2:3], v[20:23]"
    before = "".join(f"v_mov_b32 v{r}, 0\n" for r in (2, 3, 20, 21, 22, 23)) + "s_nop 7\n"
    reports, findings = found(arch, program(arch, before + mfma, "s_waitcnt vmcnt(0)", "v_mov_b32 v20, 9"))
    assert reports and findings
