"""Undefined values through the vector instructions of gfx1100 and gfx1201: lane moves, permlanes, moves relative to M0,
pairs, halves, swaps, scalar transcendentals, comparisons that write EXEC; waves of 32 and 64 lanes."""

from __future__ import annotations

import numpy as np
import pytest
from rdna_cases import assemble
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

OUT = "\nglobal_store_b32 v1, v6, s[4:5]"
HIGH = "v_mov_b32 v9, v8\nv_mov_b16_e32 v9.h, v5.l\n"
# name -> (code, lanes of v6 that are undefined at the store; None: a report comes before). v1 is the address, v2 = 0;
# v5 is undefined, v7 in odd lanes only, v8 and v16 are defined, v17 and s20 are not.
CASES = {
    "move": ("v_mov_b32 v6, v5", "all"),
    "odd": ("v_mov_b32 v6, v7", "odd"),
    "dpp-neighbour": ("v_mov_b32_dpp v6, v7 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", "even"),
    "dpp-share": ("v_mov_b32_dpp v6, v7 row_share:2 row_mask:0xf bank_mask:0xf", ""),
    "dpp-share-odd": ("v_mov_b32_dpp v6, v7 row_share:3 row_mask:0xf bank_mask:0xf", "all"),
    "dpp-masked": ("v_mov_b32_dpp v8, v5 row_ror:1 row_mask:0x0 bank_mask:0xf\nv_mov_b32 v6, v8", ""),
    "dpp-zero": ("v_mov_b32_dpp v6, v5 row_shl:15 row_mask:0xf bank_mask:0xf bound_ctrl:1", "first"),
    "dpp8": ("v_mov_b32_dpp v6, v7 dpp8:[1,0,3,2,5,4,7,6]", "even"),
    "dpp8-even": ("v_mov_b32_dpp v6, v7 dpp8:[0,0,2,2,4,4,6,6]", ""),
    "permlane-even": ("v_permlane16_b32 v6, v7, 0, 0 op_sel:[1,0]", ""),
    "permlane-odd": ("s_mov_b32 s8, 0x11111111\nv_permlane16_b32 v6, v7, s8, s8 op_sel:[1,0]", "all"),
    "permlane-identity": ("s_mov_b32 s8, 0x76543210\ns_mov_b32 s9, 0xfedcba98\n"
                          "v_permlanex16_b32 v6, v7, s8, s9 op_sel:[1,0]", "odd"),
    "permlane-select": ("v_permlane16_b32 v6, v8, s20, s20 op_sel:[1,0]", "all"),
    "pair": ("v_dual_mov_b32 v6, v8 :: v_dual_mov_b32 v9, v5", ""),
    "pair-first": ("v_dual_mov_b32 v6, v5 :: v_dual_mov_b32 v9, v8", "all"),
    "pair-second": ("v_dual_mov_b32 v10, v8 :: v_dual_mov_b32 v9, v7\nv_mov_b32 v6, v9", "odd"),
    "pair-crossed": ("v_dual_mov_b32 v10, v5 :: v_dual_mov_b32 v9, v8\n"
                     "v_dual_mov_b32 v10, v9 :: v_dual_mov_b32 v9, v10\nv_mov_b32 v6, v10", ""),
    "pair-crossed-back": ("v_dual_mov_b32 v10, v5 :: v_dual_mov_b32 v9, v8\n"
                          "v_dual_mov_b32 v10, v9 :: v_dual_mov_b32 v9, v10\nv_mov_b32 v6, v9", "all"),
    "pair-accumulates": ("v_dual_fmac_f32 v10, v8, v8 :: v_dual_mov_b32 v9, v3\nv_mov_b32 v6, v10", "all"),
    "movrels": ("s_mov_b32 m0, 3\nv_movrels_b32_e32 v6, v5", ""),  # v8
    "movrels-undefined": ("s_mov_b32 m0, 2\nv_movrels_b32_e32 v6, v5", "odd"),  # v7
    "movreld": ("s_mov_b32 m0, 2\nv_mov_b32 v6, v8\nv_movreld_b32_e32 v4, v7", "odd"),  # v6
    "movrel-index": ("s_mov_b32 m0, s20\nv_movrels_b32_e32 v6, v5", None),
    "swaprel": ("s_mov_b32 m0, 0x20000\nv_mov_b32 v6, v8\nv_swaprel_b32 v4, v7", "odd"),
    "swap": ("v_mov_b32 v6, v8\nv_swap_b32 v6, v7", "odd"),
    "swap-back": ("v_mov_b32 v6, v8\nv_swap_b32 v6, v7\nv_mov_b32 v6, v7", ""),
    "wide-sum": ("v_mqsad_u32_u8 v[12:15], v[2:3], v8, v[16:19]\nv_mov_b32 v6, v13", "all"),
    "wide-sum-good": ("v_mqsad_u32_u8 v[12:15], v[2:3], v8, v[16:19]\nv_mov_b32 v6, v12", ""),
    "select": ("s_mov_b64 vcc, 0\nv_cndmask_b32 v6, v8, v5, {vcc}", ""),
    "select-taken": ("s_mov_b64 vcc, -1\nv_cndmask_b32 v6, v8, v5, {vcc}", "all"),
    "mask-carry": ("v_add_co_u32 v6, {pair}, v8, v7", "odd"),
    "cmpx": ("v_cmpx_eq_u32_e32 v8, v5\nv_mov_b32 v6, v8", None),
    "cmpx-good": ("v_mov_b32 v6, v8\nv_cmpx_eq_u32_e32 v8, v8", ""),
    "branch": ("v_cmp_eq_u32_e32 {vcc}, v8, v7\ns_cbranch_vccz 0\nv_mov_b32 v6, v8", None),
    "readfirst-good": ("v_readfirstlane_b32 s8, v7\nv_mov_b32 v6, s8", ""),
    "readlane-odd": ("v_readlane_b32 s8, v7, 3\nv_mov_b32 v6, s8", "all"),
    "readlane-number": ("v_readlane_b32 s8, v8, s20\nv_mov_b32 v6, s8", None),
    "writelane": ("v_mov_b32 v6, v8\nv_writelane_b32 v6, s20, 3", "third"),
    "halves": ("v_mov_b16_e32 v6.l, v8.h\nv_mov_b16_e32 v6.h, v8.l", ""),
    # v9: the upper half undefined
    "high-masked": (HIGH + "v_and_b32 v6, 1, v9", ""),
    "high-masked-scalar": (HIGH + "s_mov_b32 s8, 0xffff\nv_and_b32 v6, s8, v9", ""),
    "high-masked-copy": (HIGH + "v_mov_b32 v10, v9\nv_and_b32 v6, 7, v10", ""),
    "high-unread": (HIGH + "v_mov_b32 v6, v8\nv_mov_b16_e32 v6.l, v9.l", ""),
    "high-again": (HIGH + "v_mov_b16_e32 v9.h, v8.l\nv_mov_b32 v6, v9", ""),
    "high-whole": (HIGH + "v_mov_b32 v6, v9", "all"),
    "high-read": (HIGH + "v_mov_b32 v6, v8\nv_mov_b16_e32 v6.l, v9.h", "all"),
    "high-kept": (HIGH + "v_and_b32 v6, 0x1ffff, v9", "all"),
    "high-odd": (HIGH.replace("v5", "v7") + "v_mov_b32 v6, v9", "odd"),
    "low-masked": ("v_mov_b32 v9, v8\nv_mov_b16_e32 v9.l, v5.l\nv_and_b32 v6, 1, v9", "all"),
}  # fmt: skip
SCALAR = {
    "scalar-transcendental": ("v_s_exp_f32 s8, s20\ns_delay_alu 0\nv_mov_b32 v6, s8", "all"),
    "scalar-good": ("v_s_exp_f32 s8, 1.0\nv_mov_b32 v6, s8", ""),
}
VAR = {"permlane-var": ("v_permlane16_var_b32 v6, v7, v2 op_sel:[1,0]", ""),
       "permlane-var-odd": ("v_permlane16_var_b32 v6, v8, v7 op_sel:[1,0]", "odd")}  # fmt: skip
ALL = [(a, w, n) for a in ("gfx1100", "gfx1201") for w in (32, 64)
       for n in (*CASES, *((*SCALAR, *VAR) if a == "gfx1201" else ()))]  # fmt: skip
NO_PAIRS = {n for n, (c, _) in CASES.items() if "v_dual" in c}


@pytest.mark.parametrize(("arch", "wave", "name"), [x for x in ALL if x[1] == 32 or x[2] not in NO_PAIRS])
def test_undefined_lanes(arch, wave, name):
    code, lanes = {**CASES, **SCALAR, **VAR}[name]
    w64 = wave == 64
    code = code.format(vcc="vcc" if w64 else "vcc_lo", pair="s[22:23]" if w64 else "s22")
    exec_ = "s_mov_b64 exec, {0}" if w64 else "s_mov_b32 exec_lo, {0}"
    even, full = ("0x55555555", "-1")
    head = ["s_load_b64 s[4:5], s[0:1], 0x0", "v_and_b32 v0, 0x3ff, v0", "v_lshlrev_b32 v1, 2, v0", "v_mov_b32 v2, 0",
            "v_mov_b32 v3, 0", "v_mov_b32 v8, 1", "v_mov_b32 v16, 0", "s_mov_b32 exec_lo, " + even]  # fmt: skip
    head += ["s_mov_b32 exec_hi, " + even] if w64 else []
    head += ["v_mov_b32 v7, 0", exec_.format(full), "s_waitcnt lgkmcnt(0)" if arch == "gfx1100" else "s_wait_kmcnt 0x0"]
    if "v_mov_b16" in code:  # the assembler names halves only when asked to
        codes = assemble(arch, wave, code.splitlines())
        code = "\n".join(".byte " + ", ".join(map(str, c or b"")) for c in codes)
    dev = sim.Device(arch, checks=["init"], threads=1)
    body = "\n".join(head) + "\n" + code + OUT
    kernel = dev.load(code_object(body, (BUF,), arch=arch, wave=wave, vgprs=64)).kernels["k"]
    try:
        kernel.launch(1, wave, [np.zeros(64, np.int32)])
        found = []
    except sim.SimulatorFault as e:
        found = list(e.reports)
    assert all(r.check == "init" for r in found)
    if lanes is None:
        assert found and "of v6 is stored" not in found[0].message, [r.message for r in found]
        return
    want = {"all": range(wave), "odd": range(1, wave, 2), "even": range(0, wave, 2), "": (), "third": (3,),
            "first": range(0, wave, 16)}[lanes]  # fmt: skip
    got = [r for r in found if "of v6 is stored" in r.message]
    assert len(got) == len(found), [r.message for r in found]
    assert bool(got) == bool(lanes), [r.message for r in found]
    if got:
        assert set(got[0].lanes) == set(want), (got[0].message, got[0].lanes)
