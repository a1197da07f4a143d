"""Split barriers of gfx12: results through LDS under every wave order, what they tell, and every misuse reported."""

from __future__ import annotations

import numpy as np
import pytest
import simlib
from simlib import BUF

sim = pytest.importorskip("tilelang.sim")

ARCH = "gfx1201"
if not sim._native.library().tlsim_arch_available(ARCH.encode()):
    pytest.skip(f"{ARCH} is not there", allow_module_level=True)

# s[4:5] = out, s6 = wave number, v1 = 4 * thread
HEAD = """
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_readfirstlane_b32 s6, v0
  s_lshr_b32 s6, s6, 5
  s_wait_kmcnt 0x0
"""


def kernel(body: str, checks: str = "all", lds: int = 4096, **kw) -> object:
    co = simlib.code_object(HEAD + body, (BUF,), arch=ARCH, lds=lds, vgprs=16, **kw)
    return sim.Device(ARCH, checks=checks, threads=1, max_instructions=200_000).load(co).kernels["k"]


def reports(body: str, block: int = 64, checks: str = "barrier") -> list:
    with pytest.raises(sim.SimulatorFault) as e:
        kernel(body, checks).launch(1, block, [np.zeros(1024, np.uint32)])
    return e.value.reports


EXCHANGE = """
  ds_store_b32 v1, v0
  s_wait_dscnt 0x0
  s_barrier_signal -1
  {between}
  s_barrier_wait -1
  v_xor_b32 v2, 0xfc, v1
  ds_load_b32 v3, v2
  s_wait_dscnt 0x0
  global_store_b32 v1, v3, s[4:5]
"""


@pytest.mark.parametrize("order", range(4))
def test_exchange(order, monkeypatch):
    """Each thread reads what the thread across wrote; work between signal and wait does no harm."""
    monkeypatch.setenv("TILELANG_SIM_SEED", str(order))
    k = kernel(EXCHANGE.format(between="s_sleep 1\ns_nop 3"))
    out = np.zeros(256, np.uint32)
    k.launch(1, 256, [out])
    i = np.arange(256)
    assert (out == (i ^ 63)).all()


@pytest.mark.parametrize("seed", range(1, 9))
def test_exchange_with_late_delivery(seed):
    k = kernel(EXCHANGE.format(between="s_nop 3"), "none")
    out = np.zeros(256, np.uint32)
    k.launch(1, 256, [out], delivery="late", seed=seed)
    assert (out == (np.arange(256) ^ 63)).all()


def test_late_delivery_finds_a_missing_wait():
    """Without the wait before the signal some seed lets a store land behind the barrier."""
    k = kernel(EXCHANGE.replace("s_wait_dscnt 0x0\n  s_barrier_signal", "s_barrier_signal").format(between=""), "none")
    wrong = 0
    for seed in range(1, 17):
        out = np.zeros(256, np.uint32)
        k.launch(1, 256, [out], delivery="late", seed=seed)
        wrong += bool((out != (np.arange(256) ^ 63)).any())
    assert wrong


def test_two_barriers_in_a_row():
    body = """
      s_barrier_signal -1
      s_barrier_wait -1
      s_barrier_signal -1
      s_barrier_wait -1
    """ + EXCHANGE.format(between="")  # fmt: skip
    out = np.zeros(128, np.uint32)
    kernel(body).launch(1, 128, [out])
    assert (out == (np.arange(128) ^ 63)).all()


def test_work_between_is_not_ordered():
    """A store between signal and wait is not before the barrier of the others: a race."""
    body = EXCHANGE.replace("ds_store_b32 v1, v0\n", "").format(between="ds_store_b32 v1, v0\ns_wait_dscnt 0x0")
    body = "ds_store_b32 v1, v1\ns_wait_dscnt 0x0\n" + body.replace("0xfc", "0x80")
    assert "race" in {r.check for r in reports(body, 64, "race")}


@pytest.mark.parametrize("block", [32, 96])
def test_first(block):
    """SCC says which wave signals first; alone in a workgroup a wave is the first one."""
    body = """
      s_barrier_signal_isfirst -1
      s_wait_kmcnt 0x0
      s_cselect_b32 s7, 1, 2
      s_barrier_wait -1
      v_mov_b32 v2, s7
      global_store_b32 v1, v2, s[4:5]
    """
    out = np.zeros(block, np.uint32)
    kernel(body).launch(1, block, [out])
    per_wave = out.reshape(-1, 32)
    assert (per_wave == per_wave[:, :1]).all() and sorted(per_wave[:, 0]) == [1] + [2] * (block // 32 - 1)


def test_ended_waves_do_not_count():
    """Waves that end without coming to the barrier do not hold up the others."""
    body = """
      s_cmp_eq_u32 s6, 1
      s_cbranch_scc1 2
      s_barrier_signal -1
      s_barrier_wait -1
      global_store_b32 v1, v0, s[4:5]
    """
    out = np.zeros(96, np.uint32)
    kernel(body).launch(1, 96, [out])
    assert (out == np.arange(96)).all()


def test_state():
    """s_get_barrier_state: valid, members, signals so far."""
    body = """
      s_cmp_lg_u32 s6, 0
      s_cbranch_scc1 first
      s_sleep 2
      s_get_barrier_state s7, -1
      s_wait_kmcnt 0x0
      v_mov_b32 v2, s7
      global_store_b32 v1, v2, s[4:5]
    first:
      s_barrier_signal -1
      s_barrier_wait -1
    """
    out = np.zeros(96, np.uint32)
    kernel(body).launch(1, 96, [out])
    assert out[0] & 1 == 1 and out[0] >> 4 & 127 == 3 and out[0] >> 16 & 127 in (0, 1, 2)
    assert (out[32:] == 0).all()


NAMED = """
  s_mov_b32 m0, 0x20003
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc0 ready
  s_barrier_init m0
ready:
  s_barrier_signal -1
  s_barrier_wait -1
  s_cmp_eq_u32 s6, 2
  s_cbranch_scc1 done
  s_mov_b32 m0, 3
  s_barrier_join m0
  ds_store_b32 v1, v0
  s_wait_dscnt 0x0
  s_barrier_signal 3
  s_barrier_wait 1
  v_xor_b32 v2, 0xfc, v1
  ds_load_b32 v3, v2
  s_wait_dscnt 0x0
  global_store_b32 v1, v3, s[4:5]
  s_barrier_leave
  s_wait_kmcnt 0x0
  s_cselect_b32 s7, 1, 2
  v_mov_b32 v2, s7
  global_store_b32 v1, v2, s[4:5] offset:1024
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc0 done
  s_get_barrier_state s8, 3
  s_wait_kmcnt 0x0
  v_mov_b32 v2, s8
  global_store_b32 v1, v2, s[4:5] offset:2048
done:
"""


def test_named_barrier():
    """Two of three waves meet at a barrier of their own; leaving it takes a member away."""
    out = np.zeros(768, np.uint32)
    kernel(NAMED).launch(1, 96, [out])
    assert (out[:64] == (np.arange(64) ^ 63)).all() and (out[64:96] == 0).all()
    assert (out[256:320] == 1).all() and (out[320:352] == 0).all()
    assert out[512] & 1 == 1 and out[512] >> 4 & 127 in (0, 1)


def test_waiting_without_joining_does_nothing():
    body = "s_barrier_wait 1\ns_barrier_leave\ns_wait_kmcnt 0x0\ns_cselect_b32 s7, 1, 2\nv_mov_b32 v2, s7\n"
    out = np.zeros(64, np.uint32)
    kernel(body + "global_store_b32 v1, v2, s[4:5]").launch(1, 64, [out])
    assert (out == 2).all()


# ---- misuse ----------------------------------------------------------------------------------------------------


def test_wait_without_signal():
    found = reports("s_barrier_wait -1")
    assert found[0].check == "barrier" and "without having signalled" in found[0].message
    assert found[0].text.startswith("s_barrier_wait")


def test_second_signal():
    found = reports("s_barrier_signal -1\ns_barrier_signal -1\ns_barrier_wait -1\ns_barrier_wait -1")
    assert found[0].check == "barrier" and "second time" in found[0].message


@pytest.mark.parametrize("checks", ["none", "barrier"])
def test_one_wave_stays_away(checks):
    """A wave that waits for a signal nobody can give: reported even without checks, with where each wave stands."""
    body = """
      s_cmp_eq_u32 s6, 1
      s_cbranch_scc1 there
      s_barrier_signal -1
    there:
      s_barrier_wait -1
    """
    found = reports(body, 64, checks)
    if checks == "none":
        assert found[0].check == "hang" and "no barrier can complete" in found[0].message
        assert " 0:0x" in found[0].message and " 1:0x" in found[0].message
    else:  # both are told of the same instruction
        assert found[0].check == "barrier" and found[0].count == 2 and "without having signalled" in found[0].message


def test_missing_signal_of_one_wave_against_a_spin():
    body = """
      s_cmp_eq_u32 s6, 1
      s_cbranch_scc1 spin
      s_barrier_signal -1
      s_barrier_wait -1
      s_branch done
    spin:
      s_branch spin
    done:
    """
    found = reports(body)
    assert {r.check for r in found} == {"barrier", "hang"}


def test_plain_barrier_is_not_there():
    assert simlib.MACH[ARCH]
    co = simlib.link({"k": (b"\x00\x00\xbd\xbf\x00\x00\xb0\xbf", simlib.assemble("s_nop 0", (), arch=ARCH)[1], [])},
                     arch=ARCH)  # fmt: skip
    with pytest.raises(sim.SimulatorFault) as e:
        sim.Device(ARCH, threads=1).load(co).kernels["k"].launch(1, 64, [])
    assert e.value.reports[0].check == "illegal"


def test_strict():
    """The rule of one instruction: by the signal. Without it the halves of a workgroup may meet from two places."""
    body = """
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 first
  s_barrier_signal -1
  s_branch both
first:
  s_barrier_signal -1
both:
  s_barrier_wait -1
"""
    kernel(body, "all").launch(1, 64, [np.zeros(1024, np.uint32)])
    r = reports(body, 64, "strict")
    assert len(r) == 1 and "at another barrier instruction (rule: strict)" in r[0].message
    assert {r[0].text, r[0].other_text} == {"s_barrier_signal -1"} and r[0].pc != r[0].other_pc
    kernel(EXCHANGE.format(between=""), "strict").launch(1, 64, [np.zeros(1024, np.uint32)])
