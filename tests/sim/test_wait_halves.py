"""A load of half a register under way, and instructions that read or write one half: on gfx11 and gfx12 the other half
is a register of its own (as LLVM 22 counts); on the CDNA chips the load writes all of it."""

from __future__ import annotations

import numpy as np
import pytest
from isa_ref import encode
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

HEAD = {
    "gfx11": """s_load_b64 s[4:5], s[0:1], 0x0
v_dual_mov_b32 v1, 0 :: v_dual_mov_b32 v2, 0
v_dual_mov_b32 v3, 0 :: v_dual_mov_b32 v4, 0
s_waitcnt lgkmcnt(0)
""",
    "gfx9": """s_load_dwordx2 s[4:5], s[0:1], 0x0
v_mov_b32 v1, 0
v_mov_b32 v2, 0
v_mov_b32 v3, 0
s_waitcnt lgkmcnt(0)
""",
}
HEAD["gfx12"] = HEAD["gfx11"].replace("s_waitcnt lgkmcnt(0)", "s_wait_kmcnt 0x0")
END = {
    "gfx11": "\ns_waitcnt vmcnt(0) lgkmcnt(0)",
    "gfx12": "\ns_wait_loadcnt_dscnt 0x0",
    "gfx9": "\ns_waitcnt vmcnt(0) lgkmcnt(0)",
}

# v2 is loaded; each line: instruction, the halves of v2 that it touches
USES = {
    "ds_store_b16 v1, v2": "l",
    "ds_store_b8 v1, v2": "l",
    "ds_store_b16_d16_hi v1, v2": "h",
    "ds_store_b8_d16_hi v1, v2": "h",
    "ds_store_b32 v1, v2": "lh",
    "ds_store_b16 v2, v1": "lh",  # an address
    "global_store_b16 v1, v2, s[4:5]": "l",
    "global_store_b8 v1, v2, s[4:5]": "l",
    "global_store_d16_hi_b16 v1, v2, s[4:5]": "h",
    "global_store_d16_hi_b8 v1, v2, s[4:5]": "h",
    "global_store_b32 v1, v2, s[4:5]": "lh",
    "global_store_b16 v2, v1, s[4:5]": "lh",
    "scratch_store_b16 off, v2, off": "l",
    "scratch_store_d16_hi_b16 off, v2, off": "h",
    "v_mov_b32 v3, v2": "lh",
    "v_add_f16 v3.l, v2.l, v1.l": "l",
    "v_add_f16 v3.l, v2.h, v1.l": "h",
    "v_add_f16 v2.l, v3.l, v1.l": "l",
    "v_add_f16 v2.h, v3.l, v1.l": "h",
    "v_mul_f16_e64 v3.h, v2.h, v1.l op_sel:[1,0,1]": "h",
    "v_fmac_f16 v2.h, v1.l, v3.l": "h",
    "v_fma_mixlo_f16 v2, v1, v1, v1": "l",
    "v_fma_mixhi_f16 v2, v1, v1, v1": "h",
    "v_fma_mix_f32 v3, v2, v1, v1 op_sel:[1,0,0] op_sel_hi:[1,0,0]": "h",
    "v_fma_mix_f32 v3, v2, v1, v1 op_sel_hi:[1,0,0]": "l",
    "v_fma_mix_f32 v3, v2, v1, v1": "lh",
    "v_pk_add_f16 v3, v2, v1": "lh",
    "global_load_d16_u8 v2, v1, s[4:5]": "l",  # another counter: no order
    "global_load_d16_hi_u8 v2, v1, s[4:5]": "h",
    "global_load_b32 v2, v1, s[4:5]": "lh",
}
READ = {"l": "ds_store_b16 v1, v2", "h": "ds_store_b16_d16_hi v1, v2"}
LOADS = {"ds_load_u16_d16 v2, v1": "l", "ds_load_u16_d16_hi v2, v1": "h", "ds_load_u16 v2, v1": "lh"}


def found(arch: str, code: bytes) -> tuple[list[str], list[str]]:
    """Kinds that a run and the verifier report."""
    dev = sim.Device(arch, checks=["wait"], threads=1)
    out = np.zeros(64, np.uint32)
    run = []
    try:
        dev.load(code).kernels["k"].launch(1, 32, [out])
    except sim.SimulatorFault as e:
        run = [r.check for r in e.reports]
    return run, [f.kind for f in sim.verify(code) if f.kind == "wait"]


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("load", LOADS)
def test_halves_are_registers_of_their_own(arch, load):
    words = dict(zip(USES, encode(arch, list(USES), 32, ("+real-true16",)), strict=True))
    for use, touched in USES.items():
        # by its bytes: halves by name are an option of gfx12's assembler
        text = ".byte " + ", ".join(map(str, words[use])) if words[use] else use
        body = HEAD[arch[:5]] + f"{load}\n{text}" + END[arch[:5]]
        code = code_object(body, (BUF,), arch=arch, wave=32, lds=256, scratch=64)
        want = ["wait"] if set(touched) & set(LOADS[load]) else []
        assert found(arch, code) == (want, want), use


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_each_half_has_its_own_wait(arch):
    """Two loads into the halves; a wait for the first one covers that half alone."""
    one = "s_waitcnt lgkmcnt(1)" if arch == "gfx1100" else "s_wait_dscnt 0x1"
    for first, second, good, bad in [("", "_hi", "l", "h"), ("_hi", "", "h", "l")]:
        loads = f"ds_load_u16_d16{first} v2, v1\nds_load_u16_d16{second} v2, v1\n{one}\n"
        for half, want in ((good, []), (bad, ["wait"])):
            body = HEAD[arch[:5]] + loads + READ[half] + END[arch[:5]]
            code = code_object(body, (BUF,), arch=arch, wave=32, lds=256)
            assert found(arch, code) == (want, want), (first, half)
    # a whole register, then one half again: the other one still comes with the first load
    for half in "lh":
        body = f"ds_load_b32 v2, v1\nds_load_u16_d16{'_hi' if half == 'h' else ''} v2, v1\n"
        for read in "lh":
            for wait in (one, ""):
                text = HEAD[arch[:5]] + body + f"{wait}\n{READ[read]}" + END[arch[:5]]
                code = code_object(text, (BUF,), arch=arch, wave=32, lds=256)
                want = ["wait"] if not wait or read == half else []
                assert found(arch, code) == (want, want), (half, read, wait)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_registers_with_ecc_are_loaded_as_a_whole(arch):
    for load in ("ds_read_u16_d16 v2, v1", "ds_read_u16_d16_hi v2, v1"):
        for use in (
            "ds_write_b16 v1, v2",
            "ds_write_b16_d16_hi v1, v2",
            "global_store_short v1, v2, s[4:5]",
            "global_store_short_d16_hi v1, v2, s[4:5]",
            "v_add_f16 v3, v2, v1",
            "v_add_f16_sdwa v3, v2, v1 dst_sel:DWORD src0_sel:WORD_1 src1_sel:DWORD",
            "v_fma_mixlo_f16 v2, v1, v1, v1",
        ):
            code = code_object(HEAD["gfx9"] + f"{load}\n{use}" + END["gfx9"], (BUF,), arch=arch, lds=256)
            assert found(arch, code) == (["wait"], ["wait"]), (load, use)
