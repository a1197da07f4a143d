"""Loads of half a register on the CDNA chips: they write all of it and read nothing before."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

BODY = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[4:5]
global_load_ubyte_d16 v2, v1, s[4:5]
global_load_short_d16_hi v2, v1, s[4:5]
{wait}
global_store_dword v1, v2, s[6:7]
"""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_overwriting_loads_in_flight(arch: str) -> None:
    """Loads of one counter come back in order: one of half a register behind another needs no wait (rocBLAS)."""
    data = np.random.default_rng(3).integers(0, 1 << 32, 64, dtype=np.uint32)
    code = code_object(BODY.format(wait="s_waitcnt vmcnt(0)"), (BUF, BUF), arch=arch)
    assert sim.verify(code) == []
    out = np.zeros(64, np.uint32)
    sim.Device(arch, checks="all", threads=1).load(code).kernels["k"].launch(1, 64, [data, out])
    assert np.array_equal(out, data << 16)
    code = code_object(BODY.format(wait="s_waitcnt vmcnt(1)"), (BUF, BUF), arch=arch)
    assert [f.kind for f in sim.verify(code)] == ["wait"]
    with pytest.raises(sim.SimulatorFault, match="v2 is read while the load into it is not complete"):
        sim.Device(arch, checks=["wait"], threads=1).load(code).kernels["k"].launch(1, 64, [data, out])
