"""What gfx11 and gfx12 do not interlock held against what LLVM puts in (llc-22), sequence by sequence and by wave size:
where LLVM puts a wait or an instruction the verifier reports the sequence, where it puts none it is clean."""

from __future__ import annotations

import re

import pytest
from llvm_mir import LLC, assembly, functions, llc, module
from simlib import assemble, link

sim = pytest.importorskip("tilelang.sim")
pytestmark = pytest.mark.skipif(LLC is None, reason="llc-22 is not installed")

X = "implicit $exec"
M = f"implicit $mode, {X}"


RCP = f"$vgpr4 = V_RCP_F32_e32 $vgpr5, {M}"
USE = f"$vgpr6 = V_MOV_B32_e32 $vgpr4, {X}"
OTHER = f"$vgpr9 = V_MOV_B32_e32 0, {X}"
OTHER_RCP = f"$vgpr9 = V_RCP_F32_e32 $vgpr10, {M}"
LOAD = f"$vgpr11 = GLOBAL_LOAD_DWORD $vgpr20_vgpr21, 0, 0, {X}"
CMPX = f"V_CMPX_EQ_U32_nosdst_e32 $vgpr2, $vgpr3, implicit-def $exec, {X}"
PERMLANE = f"$vgpr6 = V_PERMLANE16_B32_e64 0, $vgpr6, 0, $sgpr2, 0, $sgpr3, $vgpr6, 0, {X}"
MASK = f"$vgpr4 = V_CNDMASK_B32_e64 0, $vgpr5, 0, $vgpr6, MASK, {X}"
MASK_VCC = f"$vgpr4 = V_CNDMASK_B32_e64 0, $vgpr5, 0, $vgpr6, VCC, {X}"
READ4 = f"$vgpr4 = V_MOV_B32_e32 $sgpr4, {X}"
READ5 = f"$vgpr4 = V_MOV_B32_e32 $sgpr5, {X}"
SET4 = "$sgpr4 = S_MOV_B32 0"
LANE4 = f"$sgpr4 = V_READFIRSTLANE_B32 $vgpr1, {X}"
BY_VALU = f"$vgpr8 = V_MOV_B32_e32 $sgpr4, {X}"
BY_SALU = "$sgpr8 = S_MOV_B32 $sgpr4"
BY_MEM = f"$vgpr8 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr1, 0, 0, {X}"
BY_SMEM = "$sgpr8 = S_LOAD_DWORD_IMM $sgpr4_sgpr5, 0, 0"
SET_EXEC = "EXEC = S_MOV_B 0"
V1, V2 = f"$vgpr1 = V_MOV_B32_e32 0, {X}", f"$vgpr2 = V_MOV_B32_e32 0, {X}"
ADD = f"$vgpr3 = V_ADD_F32_e32 $vgpr1, $vgpr2, {M}"
SEQUENCES = {
    "trans-read": [RCP, USE],
    "trans-trans": [RCP, f"$vgpr6 = V_RCP_F32_e32 $vgpr4, {M}"],
    "trans-5": [RCP, *[OTHER] * 5, USE],
    "trans-6": [RCP, *[OTHER] * 6, USE],
    "trans-1-trans": [RCP, OTHER_RCP, USE],
    "trans-2-trans": [RCP, OTHER_RCP, OTHER_RCP, USE],
    "trans-memory": [RCP, LOAD, USE],
    "trans-over": [RCP, f"$vgpr4 = V_MOV_B32_e32 0, {X}", USE],
    "trans-store": [RCP, f"GLOBAL_STORE_DWORD $vgpr20_vgpr21, $vgpr4, 0, 0, {X}"],
    "cmpx-permlane": [CMPX, PERMLANE],
    "cmpx-valu-permlane": [CMPX, OTHER, PERMLANE],
    "cmpx-salu-permlane": [CMPX, SET4, PERMLANE],
    "mask-salu-nobody": [MASK, SET4, OTHER],
    "mask-valu-nobody": [MASK, LANE4, OTHER],
    "forward": [V1, SET_EXEC, V2, ADD],
    "forward-1-1": [V1, OTHER, SET_EXEC, OTHER, V2, ADD],
    "forward-between-3": [V1, OTHER, OTHER, SET_EXEC, OTHER, V2, ADD],
    "forward-behind-4": [V1, SET_EXEC, V2, *[OTHER] * 4, ADD],
    "forward-behind-5": [V1, SET_EXEC, V2, *[OTHER] * 5, ADD],
    "forward-same-side": [SET_EXEC, V1, V2, ADD],
}
for who, first in {"mask": MASK, "read": READ4, "pair": READ5, "none": OTHER}.items():
    for by, write in {"salu": SET4, "valu": LANE4}.items():
        for reader, last in {"valu": BY_VALU, "salu": BY_SALU, "memory": BY_MEM, "smem": BY_SMEM}.items():
            SEQUENCES[f"{who}-{by}-{reader}"] = [first, write, last]
for by, write in {"salu": "VCC = S_MOV_B 0", "valu": f"VCC = V_CMP_EQ_U32_e64 $vgpr1, $vgpr2, {X}"}.items():
    SEQUENCES[f"vcc-mask-{by}"] = [MASK_VCC, write, MASK_VCC.replace("vgpr4", "vgpr8")]
    SEQUENCES[f"vcc-mask-{by}-salu"] = [MASK_VCC, write, "$sgpr8 = S_MOV_B32 $vcc_lo"]

# Where LLVM waits and the verifier does not ask for it, by chip and wave size, and why
OVER = {"trans-over": "what is read comes from a plain vector instruction, which writes in order"}
READER = "LLVM waits behind the write itself, even if nobody reads; a row has a vector or a scalar reader"
OLDER = "a scalar instruction that reads what a vector one wrote: code of older compilers does without"
DIFFERENT: dict[tuple[str, int], dict[str, str]] = {
    ("gfx1100", 32): OVER,
    ("gfx1100", 64): OVER
    | dict.fromkeys(["mask-salu-nobody", "mask-valu-nobody", "mask-salu-memory", "mask-salu-smem"], READER)
    | dict.fromkeys(["mask-valu-memory", "mask-valu-smem"], READER)
    | dict.fromkeys(["mask-valu-salu", "vcc-mask-valu-salu"], OLDER),
    ("gfx1201", 32): {
        "pair-valu-valu": "only the other register of the pair was read before; newer compilers do without"
    },
}
DIFFERENT["gfx1201", 64] = DIFFERENT["gfx1201", 32]


def of_wave(text: str, wave: int) -> str:
    """The scalars of a wave size."""
    wide = wave == 64
    for name, narrow, broad in (
        ("MASK", "$sgpr4", "$sgpr4_sgpr5"),
        ("VCC", "$vcc_lo", "$vcc"),
        ("EXEC", "$exec_lo", "$exec"),
    ):
        text = re.sub(rf"\b{name}\b", broad if wide else narrow, text)
    return re.sub(r"S_MOV_B (?=0)", f"S_MOV_B{wave} ", text)


def sequences(arch: str, wave: int) -> dict[str, tuple[bool, list[str]]]:
    """name -> whether LLVM puts something in, the instructions as text."""
    size = f"-mattr=+wavefrontsize{wave}"
    mir = module([of_wave(line, wave) for line in lines] for lines in SEQUENCES.values())
    fixed = llc(arch, mir, size, "-run-pass=post-RA-hazard-rec")
    fixed = functions(llc(arch, fixed, size, "-run-pass=amdgpu-wait-sgpr-hazards"))
    text = llc(arch, mir, size, "-start-after=branch-relaxation")
    out = {}
    for i, (name, lines) in enumerate(SEQUENCES.items()):
        n = len(fixed[i].split("bb.0:")[1].split("S_ENDPGM")[0].strip().split("\n"))
        out[name] = n > len(lines), assembly(text, i)
        assert len(out[name][1]) == len(lines), out[name]
    return out


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_what_llvm_waits_for_is_reported(arch, wave):
    found = sequences(arch, wave)
    kernels = {f"k{i}": assemble("\n".join(c[1]), (), arch=arch, wave=wave) for i, c in enumerate(found.values())}
    code = link(kernels, arch=arch, meta_extra={".wavefront_size": wave})
    bad = {f.kernel for f in sim.verify(code) if f.kind == "hazard"}
    got = {name: f"k{i}" in bad for i, name in enumerate(found)}
    print(arch, wave, "LLVM waits in", sum(w for w, _ in found.values()), "of", len(found))
    assert not [name for name, (waits, _) in found.items() if got[name] and not waits]
    assert {name for name, (waits, _) in found.items() if waits and not got[name]} == set(DIFFERENT[arch, wave])
