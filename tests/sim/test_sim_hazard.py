"""A missing wait state spoils the value: what the consumer makes of it is undefined, and in late delivery it is made of
the value from before."""

from __future__ import annotations

import numpy as np
import pytest
import simlib

from tilelang import sim

HEAD = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_lshlrev_b32 v0, 2, v0\n"
TAIL = "s_nop 15\ns_nop 15\nglobal_store_dword v0, v9, s[4:5]\n"

OLD, NEW = 3.0, 5.0

# name: (before, gap of nops that is needed, producer, consumer into v9, result with the new value, with the old one)
CASES = {
    "vector to matrix": (
        "v_mov_b32 v4, 3.0\nv_mov_b32 v5, 1.0",
        2,
        "v_mov_b32 v4, 5.0",
        "v_mfma_f32_32x32x1_2b_f32 v[64:95], v4, v5, 0\ns_nop 15\ns_nop 15\nv_mov_b32 v9, v64",
        NEW,
        OLD,
    ),
    "matrix to vector": (
        "v_mov_b32 v4, 5.0\nv_mov_b32 v5, 1.0\n" + "\n".join(f"v_mov_b32 v{i}, 3.0" for i in range(12, 16)),
        18,
        "v_mfma_f32_4x4x1_16b_f32 v[12:15], v4, v5, 0\nv_mfma_f32_32x32x1_2b_f32 v[64:95], v4, v5, 0",
        "v_mov_b32 v9, v64",
        NEW,
        0.0,
    ),
    "transcendental to vector": (
        "v_mov_b32 v4, 3.0\nv_mov_b32 v5, 0.5",
        1,
        "v_rcp_f32 v4, v5",
        "v_add_f32 v9, v4, v4",
        4.0,
        6.0,
    ),
    "vector to lane read": (
        "v_mov_b32 v4, 3.0",
        1,
        "v_mov_b32 v4, 5.0",
        "v_readlane_b32 s8, v4, 7\ns_nop 4\nv_mov_b32 v9, s8",
        NEW,
        OLD,
    ),
    "vector to scalar to vector": (
        "s_mov_b32 s8, 0x40400000\nv_mov_b32 v4, 5.0",
        2,
        "s_nop 1\nv_readfirstlane_b32 s8, v4",
        "v_mov_b32 v9, s8",
        NEW,
        OLD,
    ),
    "vector to data share by lanes": (
        "v_mov_b32 v4, 3.0",
        2,
        "v_mov_b32 v4, 5.0",
        "v_mov_b32_dpp v9, v4 row_shr:0 row_mask:0xf bank_mask:0xf".replace("row_shr:0", "quad_perm:[0,1,2,3]"),
        NEW,
        OLD,
    ),
}


def run(name: str, states: int, checks, delivery: str = "now"):
    """(reports, first value stored)."""
    before, _, producer, consumer, _, _ = CASES[name]
    nops = f"s_nop {min(states, 16) - 1}\n" * (states > 0) + f"s_nop {states - 17}\n" * (states > 16)
    body = f"{HEAD}{before}\ns_waitcnt lgkmcnt(0)\ns_nop 15\ns_nop 15\n{producer}\n{nops}{consumer}\n{TAIL}"
    code = simlib.code_object(body, (simlib.BUF,), vgprs=128)
    dev = sim.Device("gfx942", checks=checks, delivery=delivery)
    out = dev.array(np.zeros(64, np.float32))
    reports = []
    try:
        dev.load(code).kernels["k"].launch((1,), (64,), [out])
    except sim.SimulatorFault as e:
        reports = e.reports
    return reports, float(out.numpy(np.float32, (64,))[0])


@pytest.mark.parametrize("name", CASES)
def test_enough_states_are_quiet(name):
    for delivery in ("now", "late"):
        reports, value = run(name, CASES[name][1], "all", delivery)
        assert not reports, [str(r) for r in reports]
        assert value == CASES[name][4]


@pytest.mark.parametrize("name", CASES)
def test_one_state_less_spoils_the_value(name):
    states = CASES[name][1] - 1
    reports, value = run(name, states, "hazard")
    assert {r.check for r in reports} == {"hazard"}
    assert value == CASES[name][4]  # by default the value is at hand
    reports, _ = run(name, states, "all")
    assert {r.check for r in reports} == {"hazard", "init"}
    end = next(r for r in reports if r.check == "init")
    assert end.text.startswith("global_store_dword") and "v9" in end.message


@pytest.mark.parametrize("name", CASES)
def test_late_delivery_uses_the_old_value(name):
    before, states, _, _, new, old = CASES[name]
    reports, value = run(name, states - 1, "hazard", "late")
    assert reports and value == old != new


def test_the_register_itself_comes_right():
    """Only the consumer that comes too early gets the old value."""
    body = f"""{HEAD}v_mov_b32 v4, 3.0
v_mov_b32 v5, 0.5
s_waitcnt lgkmcnt(0)
v_rcp_f32 v4, v5
v_mov_b32 v9, v4
v_mov_b32 v9, v4
{TAIL}"""
    dev = sim.Device("gfx942", checks="all", delivery="late")
    out = dev.array(np.zeros(64, np.float32))
    with pytest.raises(sim.SimulatorFault) as e:
        dev.load(simlib.code_object(body, (simlib.BUF,))).kernels["k"].launch((1,), (64,), [out])
    assert [r.check for r in e.value.reports] == ["hazard"]
    assert out.numpy(np.float32, (64,))[0] == 2.0


def test_an_overtaken_write_is_lost():
    """A vector write that comes while a matrix instruction is still to write the register: that one lands last."""
    body = f"""{HEAD}v_mov_b32 v4, 5.0
v_mov_b32 v5, 1.0
s_waitcnt lgkmcnt(0)
s_nop 4
v_mfma_f32_32x32x1_2b_f32 v[64:95], v4, v5, 0
v_mov_b32 v64, 3.0
s_nop 15
s_nop 15
v_mov_b32 v9, v64
{TAIL}"""
    code = simlib.code_object(body, (simlib.BUF,), vgprs=128)
    for delivery, want in (("now", 3.0), ("late", 5.0)):
        dev = sim.Device("gfx942", checks="all", delivery=delivery)
        out = dev.array(np.zeros(64, np.float32))
        with pytest.raises(sim.SimulatorFault) as e:
            dev.load(code).kernels["k"].launch((1,), (64,), [out])
        assert {r.check for r in e.value.reports} == {"hazard", "init"}
        assert out.numpy(np.float32, (64,))[0] == want
