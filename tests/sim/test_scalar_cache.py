"""Scalar loads of memory that a launch writes: no store reaches the scalar cache, so beside what orders the two an
s_dcache_inv is needed behind it, or a load that goes past the cache."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

# workgroup 0 writes 64 dwords and raises a flag; workgroup 1 waits for it and loads one of them as a scalar
MESSAGE = """
  s_load_{x4} s[4:7], s[0:1], 0x0
  s_load_{x2} s[8:9], s[0:1], 0x10
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v9, 0
  v_mov_b32 v2, 0
  v_mov_b32 v3, 1
  {add}
  {wait}
  s_cmp_eq_u32 {group}, 0
  s_cbranch_scc0 consumer
  {store}
  {release}
  {one}
  {flag}
  s_endpgm
consumer:
  s_sleep 1
  {look}
  s_cmp_eq_u32 s3, 0
  s_cbranch_scc1 consumer
  {acquire}
  {scalar}
  s_load_{x1} s10, s[4:5], 0x40 {how}
  {wait}
  v_mov_b32 v5, s10
  global_store_{x1} v1, v5, s[8:9]
"""
GFX9 = {
    "group": "s2",
    "add": "v_add_u32 v2, 5, v0",
    "one": "s_mov_b64 exec, 1",
    "store": "global_store_dword v1, v2, s[4:5]",
    "scalar": "s_dcache_inv",
    "how": "",
    "wait": "s_waitcnt lgkmcnt(0)",
    "x1": "dword",
    "x2": "dwordx2",
    "x4": "dwordx4",
}
RDNA = GFX9 | {
    "add": "v_add_nc_u32 v2, 5, v0",
    "one": "s_mov_b32 exec_lo, 1",
    "store": "global_store_b32 v1, v2, s[4:5]",
    "x1": "b32",
    "x2": "b64",
    "x4": "b128",
}
CHIPS = {
    "gfx90a": GFX9
    | {
        "release": "s_waitcnt vmcnt(0)",
        "flag": "global_store_dword v9, v3, s[6:7]",
        "look": "global_load_dword v4, v9, s[6:7] glc\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s3, v4",
        "acquire": "buffer_wbinvl1_vol",
    },
    "gfx942": GFX9
    | {
        "release": "buffer_wbl2 sc1\ns_waitcnt vmcnt(0)",
        "flag": "global_store_dword v9, v3, s[6:7] sc1",
        "look": "global_load_dword v4, v9, s[6:7] sc1\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s3, v4",
        "acquire": "buffer_inv sc1",
    },
    "gfx1100": RDNA
    | {
        "release": "s_waitcnt vmcnt(0)\ns_waitcnt_vscnt null, 0x0",
        "flag": "global_store_b32 v9, v3, s[6:7]",
        "look": "global_load_b32 v4, v9, s[6:7] glc\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s3, v4",
        "acquire": "buffer_gl1_inv\nbuffer_gl0_inv",
    },
    "gfx1201": RDNA
    | {
        "group": "ttmp9",
        "wait": "s_wait_kmcnt 0x0",
        "release": "s_wait_loadcnt 0x0\ns_wait_storecnt 0x0",
        "flag": "global_store_b32 v9, v3, s[6:7] scope:SCOPE_DEV",
        "look": "global_load_b32 v4, v9, s[6:7] scope:SCOPE_DEV\ns_wait_loadcnt 0x0\nv_readfirstlane_b32 s3, v4",
        "acquire": "global_inv scope:SCOPE_DEV",
    },
}
COHERENT = dict.fromkeys(CHIPS, "glc") | {"gfx1201": "scope:SCOPE_DEV"}


def reports(chip: str, **changes: str) -> list:
    dev = sim.Device(chip, checks="all", threads=1, max_instructions=20_000)
    text = MESSAGE.format(**{**CHIPS[chip], **changes})
    k = dev.load(code_object(text, (BUF, BUF, BUF), arch=chip)).kernels["k"]
    data, flag, out = np.zeros(64, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    wave = 32 if chip.startswith("gfx1") else 64
    try:
        k.launch(2, wave, [data, flag, out])
    except sim.SimulatorFault as e:
        return e.reports
    assert (out[:wave] == 16 + 5).all()
    return []


def poll(chip: str) -> dict[str, str]:
    """The flag itself as a scalar."""
    c = CHIPS[chip]
    return {"look": f"s_load_{c['x1']} s3, s[6:7], 0x0 {COHERENT[chip]}\n{c['wait']}"}


@pytest.mark.parametrize("chip", CHIPS)
def test_what_another_wave_wrote_needs_the_scalar_cache_emptied(chip):
    assert reports(chip) == []
    for early in ("", "s_dcache_inv\n"):  # too early: before the acquire
        (r,) = reports(chip, scalar="s_nop 0", acquire=early + CHIPS[chip]["acquire"])
        assert r.check == "race" and "s_dcache_inv" in r.message and r.workgroup == (1, 0, 0)
        assert r.text.startswith("s_load_") and r.other_text.startswith("global_store_")


@pytest.mark.parametrize("chip", CHIPS)
def test_coherent_scalar_loads_go_past_the_cache(chip):
    """As a flag, too: hand-written kernels wait in this way."""
    assert reports(chip, scalar="s_nop 0", how=COHERENT[chip]) == []
    assert reports(chip, **poll(chip)) == []
    (r,) = reports(chip, scalar="s_nop 0", **poll(chip))
    assert "s_dcache_inv" in r.message
    got = reports(chip, acquire="s_nop 0", **poll(chip))
    assert got and {r.check for r in got} == {"race"}
