"""The checks themselves on small assembled kernels: every wait-state row of gfx942 at its exact bound; waits in counter
order; LDS races within a workgroup; release and acquire between workgroups; undefined values; barriers."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

X8 = "v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[2:3], v[16:31]"  # 8 passes
X4 = "v_mfma_f32_16x16x16_f16 v[16:19], v[0:1], v[2:3], v[16:19]"
X2 = "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[0:1], v[2:3], v[16:19]"
X16 = "v_mfma_f32_32x32x4_2b_f16 v[16:47], v[0:1], v[2:3], v[16:47]"
S8 = "v_mfma_f32_16x16x4_f32 v[16:19], v0, v2, v[16:19]"
D16 = "v_mfma_f64_16x16x4_f64 v[16:23], v[0:1], v[2:3], v[16:23]"
D4 = "v_mfma_f64_4x4x4_4b_f64 v[16:17], v[0:1], v[2:3], v[16:17]"
READ, WRITE, LDS = "v_mov_b32 v60, v16", "v_mov_b32 v16, 0", "ds_write_b32 v50, v16"
STORE4 = "global_store_dwordx4 v50, v[4:7], s[4:5]"

# producer, consumer, wait states needed between them
HAZARDS = {
    "xdl8-valu": (X8, READ, 11),
    "xdl4-valu": (X4, READ, 7),
    "xdl2-valu": (X2, READ, 5),
    "xdl16-valu": (X16, READ, 19),
    "f32-valu": (S8, READ, 10),
    "xdl8-lds": (X8, LDS, 11),
    "xdl8-overwrite": (X8, WRITE, 11),
    "xdl8-ab": (X8, "v_mfma_f32_16x16x16_f16 v[48:51], v[16:17], v[2:3], 0", 11),
    "xdl8-c-same": (X8, X8, 0),
    "xdl2-c-same": (X2, X2, 2),
    "xdl8-c-overlap": (X8, "v_mfma_f32_32x32x8_f16 v[18:33], v[0:1], v[2:3], v[18:33]", 9),
    "f32-c-overlap": (S8, "v_mfma_f32_16x16x4_f32 v[18:21], v0, v2, v[18:21]", 8),
    "xdl8-c-war": ("v_mfma_f32_32x32x8_f16 v[32:47], v[0:1], v[2:3], v[16:31]", WRITE, 7),
    "f64-valu": (D16, READ, 11),
    "f64-memory": (D16, LDS, 18),
    "f64-4x4-valu": (D4, READ, 6),
    "f64-4x4-memory": (D4, LDS, 9),
    "valu-mfma": ("v_mov_b32 v0, 0", X8, 2),
    "exec-mfma": ("v_cmpx_eq_u32 v60, v60", X8, 4),
    "sgpr-vmem": ("v_readfirstlane_b32 s4, v60", "global_load_dword v61, v50, s[4:5]", 5),
    "sgpr-valu": ("v_readfirstlane_b32 s4, v60", "v_mov_b32 v61, s4", 2),
    "vcc-cndmask": ("v_cmp_eq_u32 vcc, v60, v60", "v_cndmask_b32 v61, v0, v1, vcc", 2),
    "sgpr-lane-select": ("v_readfirstlane_b32 s4, v60", "v_readlane_b32 s6, v1, s4", 4),
    "vcc-div-fmas": ("v_cmp_eq_u32 vcc, v60, v60", "v_div_fmas_f32 v61, v0, v1, v2", 4),
    "valu-dpp": ("v_mov_b32 v1, 0", "v_mov_b32_dpp v61, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 2),
    "valu-readlane": ("v_mov_b32 v1, 0", "v_readfirstlane_b32 s4, v1", 1),
    "exec-dpp": (
        "v_cmpx_eq_u32 v60, v60",
        "v_mov_b32_dpp v61, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        5,
    ),
    "trans-valu": ("v_rcp_f32 v1, v2", "v_mov_b32 v61, v1", 1),
    "trans-trans": ("v_rcp_f32 v1, v2", "v_rcp_f32 v61, v1", 0),
    "sdwa-valu": (
        "v_add_u32_sdwa v1, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD",
        "v_mov_b32 v61, v1",
        1,
    ),
    "dot-valu": ("v_dot2_f32_f16 v1, v2, v3, v4", "v_mov_b32 v61, v1", 3),
    "dot-same-c": ("v_dot2_f32_f16 v1, v2, v3, v4", "v_dot2_f32_f16 v61, v2, v3, v1", 0),
    "dot-same-a": ("v_dot2_f32_f16 v1, v2, v3, v4", "v_dot2_f32_f16 v61, v1, v3, v4", 3),
    "wide-store": (STORE4, "v_mov_b32 v5, 0", 2),
    "wide-buffer-store": ("buffer_store_dwordx4 v[4:7], off, s[8:11], s12", "v_mov_b32 v5, 0", 1),
    "narrow-store": ("global_store_dwordx2 v50, v[4:5], s[4:5]", "v_mov_b32 v5, 0", 0),
    "m0-lds-load": ("s_mov_b32 m0, 0", "global_load_lds_dword v50, s[4:5]", 1),
    "setreg-getreg": ("s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 4), 0", "s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS)", 2),
    "valu-valu": ("v_mov_b32 v1, 0", "v_mov_b32 v61, v1", 0),
}


def reports(body: str, checks: list[str], args=(), values=(), grid=1, block=64, **kw) -> list:
    dev = sim.Device("gfx942", checks=checks, threads=1)
    kernel = dev.load(code_object(body, args, vgprs=64, **kw)).kernels["k"]
    try:
        kernel.launch(grid, block, list(values))
    except sim.SimulatorFault as e:
        return list(e.reports)
    return []


@pytest.mark.parametrize("name", HAZARDS)
def test_wait_states(name):
    producer, consumer, need = HAZARDS[name]
    # EXEC 0: memory instructions touch nothing. The last nops keep the head out of the picture.
    head = "s_mov_b64 exec, 0\ns_mov_b64 s[4:5], 0\n" + "s_nop 15\n" * 2
    for given in {need, max(need - 1, 0)}:
        body = head + producer + "\n" + "s_nop 0\n" * given + consumer + "\ns_nop 15\ns_nop 15"
        found = reports(body, ["hazard"], lds=256)
        assert bool(found) == (given < need), f"{given} of {need} states: {[r.message for r in found]}"
        if given < need:
            assert [r.check for r in found] == ["hazard"]
            assert f"{need} wait states needed, {given} given" in found[0].message


def test_nop_counts_its_states():
    assert not reports("s_nop 15\ns_nop 15\n" + X8 + "\ns_nop 10\n" + READ, ["hazard"])
    assert reports("s_nop 15\ns_nop 15\n" + X8 + "\ns_nop 9\n" + READ, ["hazard"])


LOADS = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  {s0}
  global_load_dword v2, v1, s[4:5]
  global_load_dword v3, v1, s[4:5]
  ds_read_b32 v4, v1
  ds_read_b32 v5, v1
  {w}
  v_mov_b32 v6, {r}
  s_waitcnt vmcnt(0) lgkmcnt(0)
"""


@pytest.mark.parametrize(
    ("scalar", "wait", "reg", "clean"),
    [
        ("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(1)", "v2", True),
        ("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(1)", "v3", False),
        ("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)", "v3", True),
        ("s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(1)", "v4", True),
        ("s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(1)", "v5", False),
        ("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)", "v5", False),
        ("s_waitcnt lgkmcnt(1)", "s_waitcnt vmcnt(0)", "v3", False),  # the scalar load needs 0
    ],
)
def test_counters(scalar, wait, reg, clean):
    a = np.zeros(64, np.int32)
    found = reports(LOADS.format(s0=scalar, w=wait, r=reg), ["wait"], (BUF,), [a], lds=256)
    assert bool(found) != clean, [r.message for r in found]
    assert all(r.check == "wait" for r in found)


def test_overwriting_a_pending_result():
    a = np.zeros(64, np.int32)
    head = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n"
    load = "global_load_dword v2, v1, s[4:5]\n"
    tail = "s_waitcnt vmcnt(0)\n"
    assert reports(head + load + "v_mov_b32 v2, 0\n" + tail, ["wait"], (BUF,), [a])
    assert not reports(head + load + load + tail, ["wait"], (BUF,), [a])  # one counter returns in order
    assert not reports(head + load + tail + "v_mov_b32 v2, 0\n", ["wait"], (BUF,), [a])


SHARE = """
  v_lshlrev_b32 v1, 2, v0
  v_xor_b32 v2, 0x100, v1
  ds_write_b32 v1, v0
  {middle}
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
"""


@pytest.mark.parametrize(
    ("middle", "clean"),
    [
        ("s_waitcnt lgkmcnt(0)\ns_barrier", True),
        ("s_waitcnt lgkmcnt(0)", False),
        ("s_barrier", False),  # the write is in flight over the barrier
        ("s_barrier\ns_waitcnt lgkmcnt(0)", False),
    ],
)
def test_lds_race(middle, clean):
    found = reports(SHARE.format(middle=middle), ["race"], block=128, lds=512)
    assert bool(found) != clean, [r.message for r in found]
    for r in found:
        assert r.check == "race" and r.other_pc is not None


def test_lds_atomics_do_not_race():
    body = "v_mov_b32 v1, 0\nv_mov_b32 v2, 1\nds_add_u32 v1, v2\ns_waitcnt lgkmcnt(0)\n"
    assert not reports(body, ["race"], block=256, lds=256)
    assert reports(body + "ds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\n", ["race"], block=256, lds=256)


PASS = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 7
  s_waitcnt lgkmcnt(0)
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 reader
  global_store_dword v1, v2, s[4:5]
  {release}
  global_store_dword v1, v2, s[6:7] sc1
  s_endpgm
reader:
  global_load_dword v3, v1, s[6:7] sc1
  s_waitcnt vmcnt(0)
  {acquire}
  v_readfirstlane_b32 s8, v3
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 reader
  global_load_dword v4, v1, s[4:5]
  s_waitcnt vmcnt(0)
"""
REL, ACQ = "buffer_wbl2 sc1\ns_waitcnt vmcnt(0)", "buffer_inv sc1"


@pytest.mark.parametrize(
    ("release", "acquire", "clean"),
    [
        (REL, ACQ, True),
        ("s_waitcnt vmcnt(0)", ACQ, False),  # nothing written back
        ("buffer_wbl2 sc1", ACQ, False),  # not waited for
        ("", ACQ, False),
        (REL, "", False),  # stale lines may be read
    ],
)
def test_message_between_workgroups(release, acquire, clean):
    data, flag = np.zeros(1, np.int32), np.zeros(1, np.int32)
    body = PASS.format(release=release, acquire=acquire)
    found = reports(body, ["race"], (BUF, BUF), [data, flag], grid=2)
    assert bool(found) != clean, [r.message for r in found]


UNDEFINED = {  # code after which a report must come (or not)
    "store": ("global_store_dword v1, v5, s[4:5]", True),
    "copy": ("v_mov_b32 v6, v5", False),
    "copy-store": ("v_mov_b32 v6, v5\nglobal_store_dword v1, v6, s[4:5]", True),
    "masked-lanes": ("s_mov_b64 exec, 0\nglobal_store_dword v1, v5, s[4:5]", False),
    "address": (
        "v_and_b32 v6, 0, v5\nv_add_u32 v6, v5, v1\nglobal_load_dword v7, v6, s[4:5]\ns_waitcnt vmcnt(0)",
        True,
    ),
    "branch": ("s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 done\ndone:", True),
    "exec": ("s_mov_b64 exec, s[20:21]", True),
    "select": ("s_mov_b64 vcc, 0\ns_nop 4\nv_cndmask_b32 v6, v1, v5, vcc\nglobal_store_dword v1, v6, s[4:5]", False),
    "select-taken": (
        "s_mov_b64 vcc, -1\ns_nop 4\nv_cndmask_b32 v6, v1, v5, vcc\nglobal_store_dword v1, v6, s[4:5]",
        True,
    ),
    "compare": ("v_cmp_eq_u32 vcc, 0, v5\ns_nop 4\ns_cbranch_vccz done\ndone:", True),
    "lds": ("ds_write_b32 v1, v5\nds_read_b32 v6, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v6, s[4:5]", True),
    "lds-never": ("ds_read_b32 v6, v1 offset:4\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v6, s[4:5]", True),
    "lds-good": (
        "ds_write_b32 v1, v1\nds_read_b32 v6, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v6, s[4:5]",
        False,
    ),
    "scratch": ("scratch_store_dword off, v5, off\nscratch_load_dword v6, off, off\ns_waitcnt vmcnt(0)", False),
    "scratch-store": (
        "scratch_store_dword off, v5, off\nscratch_load_dword v6, off, off\ns_waitcnt vmcnt(0)\n"
        "global_store_dword v1, v6, s[4:5]",
        True,
    ),
    "permute": ("ds_bpermute_b32 v6, v1, v5\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v6, s[4:5]", True),
    "readlane": ("v_readfirstlane_b32 s8, v5\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 done\ndone:", True),
    "and-mask": ("s_and_b64 s[20:21], s[20:21], 0\ns_mov_b64 exec, s[20:21]", False),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_values(name):
    code, bad = UNDEFINED[name]
    head = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n"
    found = reports(head + code, ["init"], (BUF,), [np.zeros(4096, np.int32)], lds=1024, scratch=64)
    assert bool(found) == bad, [r.message for r in found]
    assert all(r.check == "init" for r in found)


def test_undefined_matrix_elements_stay_in_their_row_and_column():
    """One undefined lane of A spoils one row of D, and only that."""
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  s_mov_b32 exec_lo, 0xffffffdf
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  s_mov_b32 exec_lo, -1
  s_nop 4
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[2:3], 0
  s_waitcnt lgkmcnt(0)
  s_nop 15
  {store}
"""
    zeros = [np.zeros(64, np.int32)]
    for reg in range(8, 12):  # row 5 = 4 * 1 + 1: register 9, lanes 16..31
        found = reports(body.format(store=f"global_store_dword v1, v{reg}, s[4:5]"), ["init"], (BUF,), zeros)
        assert [set(r.lanes) for r in found] == ([set(range(16, 32))] if reg == 9 else [])


def test_waiting_at_a_barrier_that_nobody_else_comes_to():
    body = """
  v_cmp_gt_u32 vcc, 64, v0
  s_nop 4
  s_cbranch_vccnz meet
spin:
  s_branch spin
meet:
  s_barrier
"""
    dev = sim.Device("gfx942", checks=["barrier"], threads=1)
    assert dev._lib.tlsim_device_option(dev._handle, b"max_instructions", 50000)
    kernel = dev.load(code_object(body)).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(1, 128)
    assert [r.check for r in e.value.reports] == ["barrier", "hang"]
    assert e.value.reports[0].wave == 0 and e.value.reports[0].other_wave == 1
