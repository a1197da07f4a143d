"""Synchronisation across workgroups: right programs are clean; a wait or cache operation less, and it is a race."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

# workgroup 0 writes 64 dwords and raises a flag; workgroup 1 waits for it and doubles them into the result
MESSAGE = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx2 s[8:9], s[0:1], 0x10
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v9, 0
  v_add_u32 v2, 5, v0
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc0 consumer
  global_store_dword v1, v2, s[4:5]
  {release_wb}
  {release_wait}
  v_mov_b32 v3, 1
  s_mov_b64 exec, 1
  global_atomic_swap v9, v3, s[6:7] sc1
  s_endpgm
consumer:
  s_sleep 1
  global_load_dword v4, v9, s[6:7] sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s3, v4
  s_cmp_eq_u32 s3, 0
  s_cbranch_scc1 consumer
  {acquire_inv}
  global_load_dword v5, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v5, v5, v5
  global_store_dword v1, v5, s[8:9]
"""
RIGHT = {
    "release_wb": "buffer_wbl2 sc1",
    "release_wait": "s_waitcnt vmcnt(0)",
    "acquire_inv": "buffer_inv sc1",
}


def message(threads: int = 1, **changes: str):
    dev = sim.Device(checks="all", threads=threads)
    k = dev.load(code_object(MESSAGE.format(**{**RIGHT, **changes}), (BUF, BUF, BUF))).kernels["k"]
    data, flag, out = np.zeros(64, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    k.launch(2, 64, [data, flag, out])
    return out


@pytest.mark.parametrize("threads", [1, 2])
def test_message_passing(threads):
    assert (message(threads) == 2 * (np.arange(64) + 5)).all()


@pytest.mark.parametrize("part", RIGHT)
def test_message_passing_broken(part):
    with pytest.raises(sim.SimulatorFault) as e:
        message(**{part: "s_nop 0"})
    assert "race" in {r.check for r in e.value.reports}, str(e.value)
    r = next(r for r in e.value.reports if r.check == "race")
    assert r.text.startswith("global_load_dword v5") and r.workgroup == (1, 0, 0)
    assert r.other_pc is not None and r.other_text.startswith("global_store_dword")


BYTES = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_mov_b32 v1, s2
  v_and_b32 v1, {mask}, v1
  v_mov_b32 v2, s2
  s_waitcnt lgkmcnt(0)
  {store} v1, v2, s[4:5]
"""


def test_far_workgroups_on_one_byte_and_on_two_halves():
    dev = sim.Device(checks=["race", "bounds"], threads=1)
    # workgroups 0 and 8191 write offsets 0 and 2 of one dword (the others elsewhere: mask keeps the distance)
    half = BYTES.format(mask="0x1fff", store="global_store_byte")
    k = dev.load(code_object(half, (BUF,))).kernels["k"]
    k.launch(8192, 1, [np.zeros(8192, np.uint8)])  # all bytes distinct, four workgroups a dword: clean
    same = BYTES.format(mask="0xfff", store="global_store_byte")
    k = dev.load(code_object(same, (BUF,))).kernels["k"]
    k.launch(4096, 1, [np.zeros(4096, np.uint8)])
    with pytest.raises(sim.SimulatorFault) as e:  # workgroup 4096 writes the byte of workgroup 0
        k.launch(4097, 1, [np.zeros(4096, np.uint8)])
    assert e.value.reports[0].check == "race" and e.value.reports[0].workgroup == (4096, 0, 0)
    assert "workgroup 0" in e.value.reports[0].message


# wave 0 writes and raises a flag of workgroup scope, wave 1 of the same workgroup waits for it and reads
WITHIN = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshrrev_b32 v8, 6, v0
  v_and_b32 v0, 63, v0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v9, 0
  v_add_u32 v2, 5, v0
  v_readfirstlane_b32 s3, v8
  s_lshl_b32 s8, s2, 9
  s_lshl_b32 s9, s2, 2
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, s8
  s_addc_u32 s5, s5, 0
  s_add_u32 s6, s6, s9
  s_addc_u32 s7, s7, 0
  s_cmp_eq_u32 s3, 0
  s_cbranch_scc0 consumer
  global_store_dword v1, v2, s[4:5]
  {release_wait}
  v_mov_b32 v3, 1
  s_mov_b64 exec, 1
  {flag}
  s_endpgm
consumer:
  s_sleep 1
  {look}
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s3, v4
  s_cmp_eq_u32 s3, 0
  s_cbranch_scc1 consumer
  global_load_dword v5, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v5, v5, v5
  global_store_dword v1, v5, s[4:5] offset:256
"""
FLAGS = [
    ("global_store_dword v9, v3, s[6:7] sc0", "global_load_dword v4, v9, s[6:7] sc0"),
    ("global_atomic_swap v9, v3, s[6:7]", "global_load_dword v4, v9, s[6:7] sc0"),
    ("global_atomic_swap v9, v3, s[6:7]", "global_atomic_or v4, v9, v9, s[6:7] sc0"),
]


def within(flag: str, look: str, wait: str = "s_waitcnt vmcnt(0)", groups: int = 2, extra: str = "", inv: str = ""):
    dev = sim.Device(checks="all", threads=1)
    body = WITHIN.format(release_wait=wait, flag=flag, look=look)
    body = body.replace("  global_load_dword v5", f"  {inv}\n  global_load_dword v5")
    data, flags = np.zeros(128 * groups, np.uint32), np.zeros(groups, np.uint32)
    dev.load(code_object(body, (BUF, BUF), extra=extra)).kernels["k"].launch(groups, 128, [data, flags])
    return data.reshape(groups, 2, 64)


@pytest.mark.parametrize("flag, look", FLAGS)
def test_flags_within_a_workgroup(flag, look):
    """Waves of a workgroup share their cache: a wait before the flag and one behind the look at it are enough."""
    out = within(flag, look)
    assert (out[:, 1] == 2 * (np.arange(64) + 5)).all()


@pytest.mark.parametrize("flag, look", FLAGS)
def test_flag_within_a_workgroup_without_its_wait(flag, look):
    """One cache serves its waves in the order of issue: compilers leave the wait out. With tg_split the waves may sit
    on several CUs: the wait is needed, and an invalidation."""
    assert (within(flag, look, wait="s_nop 0")[:, 1] == 2 * (np.arange(64) + 5)).all()
    split = {"extra": ".amdhsa_tg_split 1", "inv": "buffer_inv sc0"}
    assert (within(flag, look, **split)[:, 1] == 2 * (np.arange(64) + 5)).all()
    for change in ({"wait": "s_nop 0"}, {"inv": "s_nop 0"}):
        with pytest.raises(sim.SimulatorFault) as e:
            within(flag, look, **{**split, **change})
        assert {r.check for r in e.value.reports} == {"race"}, change


def test_flags_of_workgroup_scope_do_not_reach_others():
    """The same between workgroups: nothing is ordered."""
    far = WITHIN.replace("v_readfirstlane_b32 s3, v8", "s_mov_b32 s3, s2").replace(
        "s_lshl_b32 s8, s2, 9", "s_mov_b32 s8, 0"
    )
    far = far.replace("s_lshl_b32 s9, s2, 2", "s_mov_b32 s9, 0")
    body = far.format(release_wait="s_waitcnt vmcnt(0)", flag=FLAGS[0][0], look=FLAGS[0][1])
    dev = sim.Device(checks="all", threads=1)
    with pytest.raises(sim.SimulatorFault) as e:
        dev.load(code_object(body, (BUF, BUF))).kernels["k"].launch(
            2, 64, [np.zeros(128, np.uint32), np.zeros(1, np.uint32)]
        )
    assert {r.check for r in e.value.reports} == {"race"}


@pytest.mark.parametrize("delivery", ["now", "late"])
@pytest.mark.parametrize("nap", ["s_nop 0", "s_sleep 1"])
def test_waiting_without_an_end_reaches_the_limit(nap, delivery):
    dev = sim.Device(checks="none", threads=1, max_instructions=5000)
    k = dev.load(code_object(f"again:\n{nap}\ns_branch again", ())).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(2, 128, [], delivery=delivery)
    assert {r.check for r in e.value.reports} == {"hang"}


# workgroup 0 looks at the flag, waits long enough for workgroup 1 to raise it, and empties its cache then
TOO_EARLY = (
    MESSAGE.replace("s_cmp_eq_u32 s2, 0", "s_cmp_eq_u32 s2, 1")
    .replace("  s_sleep 1\n", "")
    .replace(
        "  v_readfirstlane_b32 s3, v4\n  s_cmp_eq_u32 s3, 0\n  s_cbranch_scc1 consumer\n",
        "  s_movk_i32 s3, 0\nagain:\n  s_sleep 1\n  s_addk_i32 s3, 1\n  s_cmp_eq_u32 s3, 500\n"
        "  s_cbranch_scc0 again\n{late}\n",
    )
)


@pytest.mark.parametrize("late", ["", "global_load_dword v4, v9, s[6:7] sc1\n  s_waitcnt vmcnt(0)"])
def test_a_flag_that_was_looked_at_too_early_orders_nothing(late):
    dev = sim.Device(checks="all", threads=1)
    k = dev.load(code_object(TOO_EARLY.format(**RIGHT, late=late), (BUF, BUF, BUF))).kernels["k"]
    args = [np.zeros(64, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)]
    if late:  # looked at again: it is up
        k.launch(2, 64, args)
        assert (args[2] == 2 * (np.arange(64) + 5)).all()
        return
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(2, 64, args)
    assert {r.check for r in e.value.reports} == {"race"}
