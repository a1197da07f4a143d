"""Accesses behind the end of an allocation, but in its last page: no fault of the chip, and none without checks."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")

# lane l reads 16 bytes at 16 * l + n of the first buffer and writes them to the second; lane 0 also a dword in s8
BODY = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dword s9, s[0:1], 0x10
s_waitcnt lgkmcnt(0)
v_lshlrev_b32 v1, 4, v0
v_add_u32 v2, s9, v1
global_load_dwordx4 v[4:7], v2, s[4:5]
s_load_dword s8, s[4:5], s9
s_waitcnt vmcnt(0) lgkmcnt(0)
global_store_dwordx4 v1, v[4:7], s[6:7]
v_mov_b32 v3, 0
v_mov_b32 v8, s8
global_store_dword v3, v8, s[6:7] offset:1024
"""


def launch(checks: str | list[str], size: int, shift: int) -> np.ndarray:
    """The second buffer after lanes 0 to 63 have read 1024 bytes at `shift` of a buffer of `size` bytes."""
    dev = sim.Device("gfx942", checks=checks, threads=1)
    kernel = dev.load(code_object(BODY, (BUF, BUF, Arg(4)))).kernels["k"]
    data, out = dev.array(np.arange(size // 4, dtype=np.uint32)), dev.empty(1028)
    kernel.launch(1, 64, [data, out, np.int32(shift)])
    return out.numpy(np.uint32, (257,))


def test_last_page():
    """A vector and a scalar load that cross the end of an allocation, or lie behind it, within its last page."""
    got = launch("none", 1000, 0)
    assert np.array_equal(got[:250], np.arange(250)) and got[256] == 0
    got = launch("none", 1000, 3072)
    assert got.shape == (257,)  # what is there is not defined
    for size, shift in ((1000, 3076), (4096, 3076), (1000, 8192)):
        with pytest.raises(sim.SimulatorFault) as e:
            launch("none", size, shift)
        assert e.value.reports[0].check == "memory"


@pytest.mark.parametrize("checks", ["bounds", "all"])
def test_exact_with_bounds(checks: str):
    """The check knows the exact end."""
    with pytest.raises(sim.SimulatorFault) as e:
        launch(checks, 1000, 0)
    r = e.value.reports[0]
    assert r.check == "bounds" and "runs 8 bytes past the end" in r.message, r.message
