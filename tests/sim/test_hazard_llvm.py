"""Wait states of the CDNA chips held against what LLVM's hazard recognizer inserts (llc-22): for each pair of producer
and consumer the verifier wants as many states as LLVM, and the pair with so many is clean."""

from __future__ import annotations

import re

import pytest
from isa_ref import encode
from llvm_mir import LLC, assembly, functions, llc, module, nops, regs
from simlib import assemble, link

sim = pytest.importorskip("tilelang.sim")
pytestmark = pytest.mark.skipif(LLC is None, reason="llc-22 is not installed")

X = "implicit $exec"
CMPX = f"V_CMPX_EQ_U32_e32 $vgpr2, $vgpr3, implicit-def $exec, implicit-def $vcc, {X}"
CMP = f"V_CMP_EQ_U32_e32 $vgpr2, $vgpr3, implicit-def $vcc, {X}"
FIRST = f"$sgpr4 = V_READFIRSTLANE_B32 $vgpr9, {X}"
M0 = "$m0 = S_MOV_B32 0"
MOV = f"$vgpr4 = V_MOV_B32_e32 0, {X}"
RCP = f"$vgpr4 = V_RCP_F32_e32 $vgpr5, implicit $mode, {X}"
READ = f"$vgpr5 = V_MOV_B32_e32 $vgpr4, {X}"
PAIRS = {
    "exec-readlane": (CMPX, f"$sgpr4 = V_READLANE_B32 $vgpr9, 3, {X}"),
    "exec-readfirstlane": (CMPX, FIRST),
    "exec-writelane": (CMPX, "$vgpr9 = V_WRITELANE_B32 1, 3, $vgpr9"),
    "exec-valu": (CMPX, f"$vgpr9 = V_MOV_B32_e32 0, {X}"),
    "exec-dpp": (CMPX, f"$vgpr6 = V_MOV_B32_dpp $vgpr6, $vgpr8, 0, 15, 15, 0, {X}"),
    "m0-sendmsg": (M0, f"S_SENDMSG 3, {X}, implicit $m0"),
    "m0-addtid": (M0, f"$vgpr1 = DS_READ_ADDTID_B32 0, 0, implicit $m0, {X}"),
    "m0-movrel": (M0, "$sgpr4 = S_MOVRELS_B32 $sgpr2, implicit $m0"),
    "sgpr-valu": (FIRST, f"$vgpr5 = V_MOV_B32_e32 $sgpr4, {X}"),
    "sgpr-salu": (FIRST, "$sgpr5 = S_MOV_B32 $sgpr4"),
    "sgpr-lanesel": (FIRST, f"$sgpr5 = V_READLANE_B32 $vgpr7, $sgpr4, {X}"),
    "vcc-cndmask": (CMP, f"$vgpr5 = V_CNDMASK_B32_e32 $vgpr2, $vgpr3, implicit $vcc, {X}"),
    "vcc-divfmas": (
        CMP,
        f"$vgpr5 = V_DIV_FMAS_F32_e64 0, $vgpr2, 0, $vgpr3, 0, $vgpr4, 0, 0, implicit $mode, implicit $vcc, {X}",
    ),
    "sgpr-vmem": (
        f"$sgpr4_sgpr5 = V_CMP_EQ_U32_e64 $vgpr9, $vgpr8, {X}",
        f"$vgpr6 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr1, 0, 0, {X}",
    ),
    "sgpr-smem": (
        f"$sgpr4_sgpr5 = V_CMP_EQ_U32_e64 $vgpr9, $vgpr8, {X}",
        "$sgpr6 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0",
    ),
    "valu-readlane": (MOV, f"$sgpr5 = V_READLANE_B32 $vgpr4, 3, {X}"),
    "valu-dpp": (MOV, f"$vgpr6 = V_MOV_B32_dpp $vgpr6, $vgpr4, 0, 15, 15, 0, {X}"),
    "valu-valu": (MOV, READ),
    "trans-valu": (RCP, READ),
    "trans-trans": (RCP, f"$vgpr5 = V_RCP_F32_e32 $vgpr4, implicit $mode, {X}"),
    "trans-store": (RCP, f"GLOBAL_STORE_DWORD $vgpr0_vgpr1, $vgpr4, 0, 0, {X}"),
    "partial-valu": (f"$vgpr4 = V_ADD_I16_e64 8, $vgpr2, 0, $vgpr3, 0, 0, {X}", READ),
    "dot-overwrite": (
        f"$vgpr4 = V_DOT2_F32_F16 8, $vgpr2, 8, $vgpr3, 8, $vgpr5, 0, 0, 0, 0, 0, implicit $mode, {X}",
        MOV,
    ),
    "store4-overwrite": (f"GLOBAL_STORE_DWORDX4 $vgpr0_vgpr1, $vgpr4_vgpr5_vgpr6_vgpr7, 0, 0, {X}", MOV),
    "store2-overwrite": (f"GLOBAL_STORE_DWORDX2 $vgpr0_vgpr1, $vgpr4_vgpr5, 0, 0, {X}", MOV),
    "swap8-overwrite": (
        f"FLAT_ATOMIC_CMPSWAP_X2 $vgpr0_vgpr1, $vgpr4_vgpr5_vgpr6_vgpr7, 0, 0, {X}, implicit $flat_scr",
        MOV,
    ),
    "swap4-overwrite": (f"FLAT_ATOMIC_CMPSWAP $vgpr0_vgpr1, $vgpr4_vgpr5, 0, 0, {X}, implicit $flat_scr", MOV),
    "setreg-getreg": (
        "S_SETREG_B32 $sgpr0, 1, implicit-def $mode, implicit $mode",
        "$sgpr5 = S_GETREG_B32 1, implicit $mode",
    ),
}


# matrix instructions: (opcode, registers of C and D, of A and B); what comes behind them
MATRIX = {
    "f16-4x4": ("V_MFMA_F32_4X4X4F16", 4, 2),
    "f16-16x16": ("V_MFMA_F32_16X16X16F16", 4, 2),
    "f16-32x32": ("V_MFMA_F32_32X32X8F16", 16, 2),
    "f16-32x32-2": ("V_MFMA_F32_32X32X4F16", 32, 2),
    "f32-4x4": ("V_MFMA_F32_4X4X1F32", 4, 1),
    "f32-16x16": ("V_MFMA_F32_16X16X4F32", 4, 1),
    "f64-4x4": ("V_MFMA_F64_4X4X4F64", 2, 2),
    "f64-16x16": ("V_MFMA_F64_16X16X4F64", 8, 2),
}
BEHIND = {
    "global-load": f"{{}} = GLOBAL_LOAD_DWORD $vgpr250_vgpr251, 0, 0, {X}",
    "flat-load": f"{{}} = FLAT_LOAD_DWORD $vgpr250_vgpr251, 0, 0, {X}, implicit $flat_scr",
    "buffer-load": f"{{}} = BUFFER_LOAD_DWORD_OFFEN $vgpr250, $sgpr8_sgpr9_sgpr10_sgpr11, 0, 0, 0, 0, {X}",
    "atomic": f"{{}} = GLOBAL_ATOMIC_ADD_RTN $vgpr250_vgpr251, $vgpr252, 0, 1, {X}",
    "ds-load": f"{{}} = DS_READ_B32_gfx9 $vgpr250, 0, 0, {X}",
    "mov": f"{{}} = V_MOV_B32_e32 0, {X}",
    "read": f"$vgpr5 = V_MOV_B32_e32 {{}}, {X}",
    "store": f"GLOBAL_STORE_DWORD $vgpr250_vgpr251, {{}}, 0, 0, {X}",
    "ds-store": f"DS_WRITE_B32_gfx9 $vgpr250, {{}}, 0, 0, {X}",
}
for kind, (op, cd, ab) in MATRIX.items():
    args = f"{regs(0, ab)}, {regs(8, ab)}, {regs(128, cd)}, 0, 0, 0, implicit $mode, {X}"
    first = f"{regs(64, cd)} = {op}_vgprcd_e64 {args}"
    for how, second in BEHIND.items():
        PAIRS[f"{kind}-D-{how}"] = first, second.format("$vgpr65")
        PAIRS[f"{kind}-C-{how}"] = first, second.format("$vgpr129")
        PAIRS[f"{kind}-A-{how}"] = first, second.format("$vgpr0")
MFMA_OVER = f"{regs(4, 4)} = V_MFMA_F32_4X4X4F16_vgprcd_e64 {regs(64, 2)}, {regs(66, 2)}, {regs(68, 4)}"
PAIRS["store4-matrix"] = PAIRS["store4-overwrite"][0], f"{MFMA_OVER}, 0, 0, 0, implicit $mode, {X}"
PAIRS["dot-store"] = PAIRS["dot-overwrite"][0], f"GLOBAL_STORE_DWORD $vgpr0_vgpr1, $vgpr4, 0, 0, {X}"
PAIRS["dot-ds-store"] = PAIRS["dot-overwrite"][0], f"DS_WRITE_B32_gfx9 $vgpr0, $vgpr4, 0, 0, {X}"
PAIRS["dot-load"] = PAIRS["dot-overwrite"][0], f"$vgpr4 = DS_READ_B32_gfx9 $vgpr0, 0, 0, {X}"


def pairs(arch: str) -> dict[str, tuple[int, list[str]]]:
    """name -> states that LLVM inserts, the two instructions as text."""
    mir = module(PAIRS.values())
    fixed = functions(llc(arch, mir, "-run-pass=post-RA-hazard-rec"))
    text = llc(arch, mir, "-start-after=post-RA-hazard-rec")
    return {
        n: (sum(int(k) + 1 for k in re.findall(r"S_NOP (\d+)", fixed[i])), assembly(text, i))
        for i, n in enumerate(PAIRS)
    }


def reported(arch: str, code: list[bytes]) -> bool:
    """Does a run of bare instructions report a hazard?"""
    state = {"v": {str(i): "0" * 512 for i in range(256)}, "s": {str(i): "0" for i in range(16)}, "lds": "00" * 64}
    try:
        sim.execute(arch, b"".join(code), state, checks="hazard")
    except sim.SimulatorFault as fault:
        return fault.reports[0].check == "hazard"
    return False


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_as_many_states_as_llvm_inserts(arch):
    """The verifier, and a run (which ends at memory that is not there, after the check)."""
    cases = [
        (name, states, k, [lines[0], *nops(k), lines[1]])
        for name, (states, lines) in pairs(arch).items()
        for k in sorted({0, max(states - 1, 0), states})
    ]
    texts = sorted({line for *_, body in cases for line in body})
    code = dict(zip(texts, encode(arch, texts), strict=True))
    assert all(code.values())
    kernels = link(
        {f"k{i}": assemble("\n".join(c[3]), (), arch=arch, vgprs=256) for i, c in enumerate(cases)}, arch=arch
    )
    found = {f.kernel for f in sim.verify(kernels) if f.kind == "hazard"}
    wrong = []
    for i, (name, states, k, body) in enumerate(cases):
        if (f"k{i}" in found) != (k < states):
            wrong.append((name, "verifier", states, k))
        if not re.match("global_|flat_|s_sendmsg", body[0]) and reported(arch, [code[x] for x in body]) != (k < states):
            wrong.append((name, "run", states, k))
    assert not wrong, "\n".join(map(str, wrong))
