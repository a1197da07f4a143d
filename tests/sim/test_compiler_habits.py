"""What compilers count on beyond the letter of the manuals: none of it is reported."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, clang_hip, code_object

sim = pytest.importorskip("tilelang.sim")

VCC = {  # on gfx12, in waves of 32 lanes: what precedes, the wait that LLVM puts there, what reads
    "low": (
        "v_cndmask_b32 v2, v0, v1, vcc_lo\nv_cmp_eq_u32 vcc_lo, 0, v0\ns_brev_b32 vcc_hi, 15",
        "s_wait_alu depctr_sa_sdst(0)",
        "v_cndmask_b32 v3, v0, v1, vcc_lo",
    ),
    "high": (
        "v_mov_b32 v2, vcc_hi\ns_brev_b32 vcc_hi, 15\nv_cmp_eq_u32 vcc_lo, 0, v0",
        "s_wait_alu depctr_va_vcc(0)",
        "v_mov_b32 v3, vcc_hi",
    ),
}


@pytest.mark.parametrize("name", VCC)
def test_vcc_has_one_state(name: str) -> None:
    """The wait for the last write of either half of VCC covers the other half, too; no wait is a fault."""
    before, wait, reader = VCC[name]
    for given in (wait, ""):
        body = "\n".join([before, given, reader, ""])
        code = code_object(body, (BUF,), arch="gfx1201", vgprs=16, wave=32)
        found = [f for f in sim.verify(code) if f.kind == "hazard"]
        reports = []
        try:
            sim.Device("gfx1201", checks=["hazard"]).load(code).kernels["k"].launch(1, 32, [np.zeros(32, np.int32)])
        except sim.SimulatorFault as e:
            reports = list(e.reports)
        assert (len(found), len(reports)) == ((0, 0) if given else (1, 1)), (found, reports)


CALL = """s_getpc_b64 s[4:5]
a: s_add_u32 s4, s4, f-a
s_addc_u32 s5, s5, 0
s_swappc_b64 s[30:31], s[4:5]
{wait}
v_sub_u32 v4, 0, v0
s_branch end
f: {producer}
s_setpc_b64 s[30:31]
end:
"""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(
    "producer, rule, states",
    [("v_dot8_u32_u4 v0, v1, v2, v3", "dot product", 2), ("v_mfma_f32_32x32x1f32 v[0:31], v32, v33, 0", "matrix", 18)],
)
def test_calls_count_as_one_wait_state(arch: str, producer: str, rule: str, states: int) -> None:
    """A result that a function returns with owes its wait states still: how long a return takes is not documented."""
    if "mfma" in producer and arch != "gfx90a":
        producer = producer.replace("32x32x1f32", "32x32x1_2b_f32")
    for given in (states, 0):
        wait = "\n".join(f"s_nop {min(given - k, 16) - 1}" for k in range(0, given, 16))
        code = code_object(CALL.format(producer=producer, wait=wait), (BUF,), arch=arch, vgprs=64)
        kernel = sim.Device(arch, checks=["hazard"]).load(code).kernels["k"]
        if given:
            kernel.launch(1, 64, [np.zeros(64, np.int32)])
        else:
            with pytest.raises(sim.SimulatorFault, match=rule):
                kernel.launch(1, 64, [np.zeros(64, np.int32)])


SOURCE = """
__attribute__((device, aligned(4))) unsigned char last = 77;
extern "C" __attribute__((global)) void k(unsigned *o)
{
    unsigned v;
    asm volatile(LOAD : "=s"(v) : "s"(&last));
    o[__builtin_amdgcn_workitem_id_x()] = v & 255;
}
"""


@pytest.mark.parametrize(
    ("arch", "load"),
    [
        ("gfx90a", "s_load_dword %0, %1, 0x0\\n s_waitcnt lgkmcnt(0)"),
        ("gfx1201", "s_load_b32 %0, %1, 0x0\\n s_wait_kmcnt 0"),
    ],
)
def test_last_dword_of_a_segment(arch: str, load: str) -> None:
    """A byte that is the last of a segment is read with the dword that it is in (LLVM's GlobalISel); not more."""
    for at, good in (("0x0", True), ("0x4", False)):
        code = clang_hip(SOURCE, arch, "-O1", f'-DLOAD="{load.replace("0x0", at)}"')
        dev = sim.Device(arch, checks=["bounds"])
        o = dev.empty(64 * 4)
        kernel = dev.load(code).kernels["k"]
        if good:
            kernel.launch(1, 64, [o])
            assert (o.numpy(np.uint32, (64,)) == 77).all()
        else:
            with pytest.raises(sim.SimulatorFault):
                kernel.launch(1, 64, [o])
