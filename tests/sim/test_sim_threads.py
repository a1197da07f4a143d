"""Launches on several host threads: the results are those of one thread, whatever the order of waves. `make tsan-test`
runs this file on binaries with ThreadSanitizer."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

# LDS exchange between the four waves of a workgroup, a loop with a branch by lane, global loads and stores
KERNEL = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_lshl_b32 s8, s2, 8
  v_add_u32 v1, s8, v0
  v_lshlrev_b32 v1, 2, v1
  v_lshlrev_b32 v2, 2, v0
  v_xor_b32 v3, 0x3fc, v2
  v_mov_b32 v6, 0
  s_mov_b32 s9, 20
  s_waitcnt lgkmcnt(0)
  global_load_dword v4, v1, s[4:5]
  s_waitcnt vmcnt(0)
loop:
  ds_write_b32 v2, v4
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v5, v3
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_mul_lo_u32 v4, v5, 5
  v_and_b32 v7, 1, v4
  v_cmp_eq_u32 vcc, 1, v7
  v_add_u32 v4, s9, v4
  s_and_saveexec_b64 s[10:11], vcc
  v_add_u32 v6, v6, v4
  s_mov_b64 exec, s[10:11]
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 loop
  v_add_u32 v6, v6, v4
  global_store_dword v1, v6, s[6:7]
"""
GROUPS = 24


def expected(x: np.ndarray) -> np.ndarray:
    v = x.reshape(GROUPS, 256).copy()
    s = np.zeros_like(v)
    for k in range(20, 0, -1):
        v = v[:, np.arange(256) ^ 255] * np.uint32(5)
        odd = v & 1 == 1
        v = v + np.uint32(k)
        s = np.where(odd, s + v, s)
    return (s + v).reshape(-1)


@pytest.mark.parametrize("checks", ["none", "bounds", "all"])
def test_threads_and_order_change_nothing(checks):
    x = np.random.default_rng(5).integers(0, 1 << 32, GROUPS * 256, dtype=np.uint32)
    code = code_object(KERNEL, (BUF, BUF), lds=1024)
    want = expected(x)
    counts = set()
    for threads, seed in ((1, 0), (2, 0), (4, 0), (4, 9), (1, 7)):
        dev = sim.Device(checks=checks, threads=threads, seed=seed)
        kernel = dev.load(code).kernels["k"]
        for _ in range(3):
            out = np.zeros_like(x)
            counts.add(kernel.launch(GROUPS, 256, [x, out])["instructions"])
            np.testing.assert_array_equal(out, want, err_msg=f"threads {threads}, seed {seed}")
    assert len(counts) == 1


def test_reports_from_several_threads():
    """All workgroups write one dword: reported, also by four threads at once."""
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, s2
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
"""
    dev = sim.Device(checks="all", threads=4)
    kernel = dev.load(code_object(body, (BUF,))).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(64, 64, [np.zeros(1, np.uint32)])
    assert {r.check for r in e.value.reports} == {"race"}
