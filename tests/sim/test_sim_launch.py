"""Launches: arguments, limits, statistics against hand counts, threads, faults, spinning workgroups."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import ADD, BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")

ADD_ARGS = (BUF, BUF, Arg(4, name="c"))


@pytest.fixture(scope="module")
def dev():
    return sim.Device("gfx942", threads=1)


@pytest.fixture(scope="module")
def add(dev):
    return dev.load(code_object(ADD, ADD_ARGS)).kernels["k"]


def test_argument_kinds(dev, add):
    a = np.arange(128, dtype=np.int32)
    out = np.zeros(128, np.int32)
    for c in (np.int32(-3), np.int32(-3).tobytes(), -3):
        out[:] = 0
        add.launch((2,), (64,), [a, out, c])
        assert (out == a - 3).all()
    mem = dev.array(a)
    add.launch(2, 64, {0: mem, 8: mem, 16: np.int32(1)})
    assert (mem.numpy() == a + 1).all()
    ro = a.copy()
    ro.flags.writeable = False
    add.launch(2, 64, [ro, out, np.int32(0)])
    strided = np.zeros(256, np.int32)[::2]
    add.launch(2, 64, [a, strided, np.int32(5)])
    assert (strided == a + 5).all() and (strided.base[1::2] == 0).all()
    twice = a.copy()
    add.launch(2, 64, {8: twice, 0: twice, 16: np.int32(1)})  # one array is one memory, whatever the order
    assert (twice == a + 1).all()


def test_argument_errors(add):
    a = np.zeros(64, np.int32)
    with pytest.raises(TypeError, match="takes 3 arguments.*c.*2 given"):
        add.launch(1, 64, [a, a])
    with pytest.raises(ValueError, match="c of kernel k has 4 bytes, the value has 8"):
        add.launch(1, 64, [a, a, np.int64(1)])
    with pytest.raises(ValueError, match="does not fit into 4 bytes"):
        add.launch(1, 64, [a, a, 1 << 40])
    with pytest.raises(TypeError, match="float"):
        add.launch(1, 64, [a, a, 1.0])
    with pytest.raises(ValueError, match="outside"):
        add.launch(1, 64, {17: np.int32(1)})


def test_limits(dev, add):
    a = np.zeros(64, np.int32)
    for grid, block, lds, match in (
        ((1, 1, 1), (1025, 1, 1), 0, "1025"),
        ((1, 1, 1), (32, 32, 2), 0, "2048 threads"),
        ((1 << 26, 1, 1), (64, 1, 1), 0, "limit"),
        ((1, 1, 1), (64, 1, 1), 65537, "65537 bytes of LDS"),
    ):
        with pytest.raises(ValueError, match=match):
            add.launch(grid, block, [a, a, np.int32(0)], lds)
    with pytest.raises(ValueError, match=r"lds_bytes must be 0 to 2\*\*32 - 1, not -1"):
        add.launch(1, 64, [a, a, np.int32(0)], -1)
    with pytest.raises(ValueError, match="-1 bytes"):
        dev.empty(-1)
    for grid in ((0, 1, 1), (), (1, 1, 1, 1), (-1,)):
        with pytest.raises(ValueError, match="grid"):
            add.launch(grid, 64, [a, a, np.int32(0)])
    with pytest.raises(ValueError, match="unknown architecture"):
        sim.Device("gfx999")
    with pytest.raises(ValueError, match="threads"):
        sim.Device(threads=0)


def test_check_names():
    with pytest.raises(ValueError, match="'bogus' does not exist; there are: bounds"):
        sim.Device(checks=["bounds", "bogus"])
    assert sim.Device(checks="none").checks == ()
    assert sim.Device(checks=["bounds"]).checks == ("bounds",)
    assert set(sim.Device(checks="all").checks) <= {"bounds", "init", "race", "wait", "hazard", "barrier"}
    assert "bounds" in sim.Device(checks="all").checks


def test_statistics_by_hand(add):
    a, out = np.zeros(320, np.int32), np.zeros(320, np.int32)
    s = add.launch(5, 64, [a, out, np.int32(1)])
    assert s["instructions"] == 5 * 11
    assert s["by_mnemonic"] == {
        "s_waitcnt": 10, "v_add_u32": 10, "global_load_dword": 5, "global_store_dword": 5, "s_endpgm": 5,
        "s_load_dword": 5, "s_load_dwordx4": 5, "s_lshl_b32": 5, "v_lshlrev_b32": 5,
    }  # fmt: skip
    assert s["global_bytes"] == {1: 0, 2: 0, 4: 2 * 5 * 64 * 4, 8: 0, 12: 0, 16: 0}
    assert s["global_read_bytes"][4] == s["global_write_bytes"][4] == 1280
    assert s["lds_conflict_cycles"] == 0 and sum(s["lds_bytes"].values()) == 0
    assert s["scalar_bytes"] == 5 * 20
    assert [pc for pc in s["by_pc"]] == sorted(s["by_pc"]) and all(n == 5 for n, _ in s["by_pc"].values())
    assert s["by_pc"][0][1].startswith("s_load_dwordx4 s[4:7], s[0:1], 0x0")
    # half a wave moves half the bytes and issues the same instructions
    s = add.launch(1, 32, [a, out, np.int32(1)])
    assert s["instructions"] == 11 and s["global_bytes"][4] == 2 * 32 * 4


TWO_WAYS = """
  s_load_dword s4, s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s4, 0
  s_cbranch_scc1 other
  v_mov_b32 v1, 1
  v_mov_b32 v2, 2
  s_branch done
other:
  v_add_u32 v1, 1, v0
done:
"""


def test_statistics_of_each_launch_are_its_own(dev):
    k = dev.load(code_object(TWO_WAYS, (Arg(4),))).kernels["k"]
    for way, grid in ((1, 1), (0, 1), (0, 3), (1, 2), (0, 1)):
        s = k.launch(grid, 64, [np.int32(way)])
        assert s["by_mnemonic"].get("v_mov_b32", 0) == 2 * way * grid
        assert s["by_mnemonic"].get("v_add_u32", 0) == (1 - way) * grid
        assert s["instructions"] == sum(s["by_mnemonic"].values()) == sum(n for n, _ in s["by_pc"].values())
        assert {n for n, _ in s["by_pc"].values()} == {grid}


LDS = """
  v_lshlrev_b32 v1, {shift}, v0
  v_mov_b32 v2, 1
  ds_write_b32 v1, v2
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
"""


def test_lds_statistics(dev):
    # stride of one dword: no conflict; of 32 dwords: all lanes of a phase in one bank
    for shift, conflict in ((2, False), (7, True)):
        k = dev.load(code_object(LDS.format(shift=shift), lds=64 << shift)).kernels["k"]
        s = k.launch(1, 64)
        assert s["lds_bytes"][4] == 2 * 64 * 4 and s["lds_read_bytes"][4] == 256
        assert (s["lds_conflict_cycles"] > 0) == conflict
        if conflict:  # every phase of n lanes takes n - 1 more cycles; phases cover 64 lanes
            assert 0 < s["lds_conflict_cycles"] <= 2 * 63


def test_dynamic_lds(dev):
    k = dev.load(code_object(LDS.format(shift=2))).kernels["k"]
    k.launch(1, 64, lds_bytes=256)
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 64, lds_bytes=128)
    assert e.value.reports[0].check == "bounds" and set(e.value.reports[0].lanes) == set(range(32, 64))


def test_threads_agree():
    a = np.arange(64 * 97, dtype=np.int32)
    results = []
    for threads in (1, 2):
        k = sim.Device(threads=threads).load(code_object(ADD, ADD_ARGS)).kernels["k"]
        out = np.zeros_like(a)
        results.append((out, k.launch(97, 64, [a, out, np.int32(7)])))
    assert (results[0][0] == a + 7).all() and (results[0][0] == results[1][0]).all()
    assert results[0][1] == results[1][1]


def test_grid_ids(dev):
    """Each workgroup writes its ids once: v = x | y << 8 | z << 16 at linear index."""
    body = """
      s_load_dwordx2 s[6:7], s[0:1], 0x0
      s_mul_i32 s8, s4, 5
      s_add_u32 s8, s8, s3
      s_mul_i32 s8, s8, 7
      s_add_u32 s8, s8, s2
      s_lshl_b32 s8, s8, 2
      s_lshl_b32 s3, s3, 8
      s_lshl_b32 s4, s4, 16
      s_or_b32 s2, s2, s3
      s_or_b32 s2, s2, s4
      v_mov_b32 v1, s8
      v_mov_b32 v2, s2
      s_waitcnt lgkmcnt(0)
      global_store_dword v1, v2, s[6:7]
    """
    extra = ".amdhsa_system_sgpr_workgroup_id_y 1\n.amdhsa_system_sgpr_workgroup_id_z 1"
    k = dev.load(code_object(body, (BUF,), extra=extra)).kernels["k"]
    out = np.zeros((3, 5, 7), np.uint32)
    k.launch((7, 5, 3), 1, [out])
    z, y, x = np.indices(out.shape)
    assert (out == (x | y << 8 | z << 16)).all()


SPIN = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_load_dword s6, s[0:1], 0x8
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s2, s6
  s_cbranch_scc1 last
wait:
  {pause}
  global_load_dword v2, v1, s[4:5] sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s7, v2
  s_cmp_eq_u32 s7, 0
  s_cbranch_scc1 wait
  s_branch done
last:
  v_mov_b32 v2, 1
  global_store_dword v1, v2, s[4:5] sc1
  s_waitcnt vmcnt(0)
done:
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pause", ["s_sleep 1", "s_nop 0"])
def test_spin_on_a_later_workgroup(threads, pause):
    """All workgroups wait for a flag that the last one sets: residents must take turns."""
    dev = sim.Device(threads=threads)
    k = dev.load(code_object(SPIN.format(pause=pause), (BUF, Arg(4)))).kernels["k"]
    flag = np.zeros(1, np.uint32)
    n = 8 if pause == "s_nop 0" else 40
    k.launch(n, 64, [flag, np.uint32(n - 1)])
    assert flag[0] == 1


def test_livelock_is_reported():
    dev = sim.Device(threads=1, max_instructions=100_000)
    k = dev.load(code_object("again: s_branch again")).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 64)
    assert e.value.reports[0].check == "hang", e.value.reports
    assert e.value.reports[0].text.startswith("s_branch")


def test_unknown_instruction(dev):
    k = dev.load(code_object(".long 0xffffffff")).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 64)
    assert e.value.reports[0].check == "illegal" and e.value.reports[0].pc == 0


def test_wild_branch(dev):
    for body in ("s_branch 0x7ffe", "s_mov_b64 s[4:5], 0x1234560\n s_setpc_b64 s[4:5]"):
        k = dev.load(code_object(body)).kernels["k"]
        with pytest.raises(sim.SimulatorFault) as e:
            k.launch(1, 64)
        assert e.value.reports[0].check == "illegal", str(e.value)


def test_device_goes_on_after_a_fault(dev, add):
    a = np.arange(64, dtype=np.int32)
    with pytest.raises(sim.SimulatorFault):
        add.launch(2, 64, [a, a, np.int32(1)])
    out = np.zeros(64, np.int32)
    add.launch(1, 64, [a, out, np.int32(1)])
    assert (out == a + 1).all()


def test_counters(dev, add):
    a = np.zeros(64, np.int32)
    before = dev.counters
    add.launch(1, 64, [a, a.copy(), np.int32(1)])
    after = dev.counters
    assert after["launches"] == before["launches"] + 1
    assert after["instructions"] == before["instructions"] + 11


def test_disassembly(add):
    rows = add.disassembly()
    assert rows[0][0] == 0 and rows[-1][1].startswith("s_endpgm") and len(rows) == 11
    assert rows[3][1].startswith("v_add_u32")


def test_closed_device_and_module():
    dev = sim.Device(threads=1)
    m = dev.load(code_object("s_nop 0"))
    k = m.kernels["k"]
    k.launch(1, 64)
    m.unload()
    with pytest.raises(ValueError, match="not loaded"):
        k.launch(1, 64)
    dev.close()
    dev.close()


def test_host_threads_launch_at_once():
    """Several host threads load, launch, fault and free on one device; each gets its own results and reports."""
    from concurrent.futures import ThreadPoolExecutor

    dev = sim.Device(threads=2)
    code = code_object(ADD, ADD_ARGS)

    def work(i: int) -> bool:
        k = dev.load(code).kernels["k"]
        a = np.arange(640, dtype=np.int32) + i
        for n in range(10):
            src, dst = dev.array(a), dev.empty(a.nbytes)
            k.launch(10, 64, [src, dst, np.int32(n)])
            assert (dst.numpy(np.int32) == a + n).all()
            dst.free()
        k._module.unload()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
    assert dev.counters["launches"] == 80


def test_race_with_several_waves(add):
    """Where many waves read what one writes, the report names none of them (and no number that stands for that)."""
    device = sim.Device("gfx942", checks="all", threads=1)
    kernel = device.load(code_object(READ_THEN_WRITE, ADD_ARGS)).kernels["k"]
    mem = device.array(np.zeros(64, np.int32))
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(4, 64, [mem, mem, 0])
    assert {r.check for r in e.value.reports} == {"race"}
    assert "races with" in str(e.value) and "4294967295" not in str(e.value)


# every workgroup reads in[lane], the last one writes out[lane]
READ_THEN_WRITE = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  s_cmp_lg_u32 s2, 3
  s_cbranch_scc1 1f
  global_store_dword v1, v2, s[6:7]
1:
"""


@pytest.mark.parametrize("checks", ["bounds", "all", "none"])
def test_read_only_arrays_stay_as_they_are(checks):
    """A kernel that stores to a read-only array is refused: as a bounds fault where bounds are checked."""
    dev = sim.Device("gfx942", checks=checks)
    k = dev.load(code_object(ADD, (BUF, Arg(8, "global_buffer", "dst"), Arg(4)))).kernels["k"]
    a, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    a.flags.writeable = False
    k.launch(1, 64, [a, out, np.int32(3)])
    assert (out == a + 3).all()
    out.flags.writeable = False
    kind = ValueError if checks == "none" else sim.SimulatorFault
    with pytest.raises(kind, match="read-only") as e:
        k.launch(1, 64, [a, out, np.int32(4)])
    assert (out == a + 3).all()
    if checks != "none":
        r = e.value.reports[0]
        assert r.check == "bounds" and "read-only array dst" in r.message and len(r.lanes) == 64


@pytest.mark.parametrize(
    "args, text",
    [
        ({0: np.uint64(1), 4: np.int32(2)}, "4 bytes at offset 4 overlap the value at offset 0"),
        ({8: np.int32(1), 0: bytes(12)}, "12 bytes at offset 0 overlap the value at offset 8"),
        ({20: np.uint64(1)}, "8 bytes at offset 20 overlap the hidden argument hidden_block_count_x at offset 24"),
        ({24: np.int32(1)}, "overlap the hidden argument"),
    ],
)
def test_values_at_offsets_do_not_overlap(args, text):
    dev = sim.Device("gfx942")
    hidden = Arg(4, "hidden_block_count_x")
    k = dev.load(code_object("s_nop 0", (BUF, BUF, Arg(8), hidden))).kernels["k"]
    with pytest.raises(ValueError, match=text):
        k.launch(1, 64, args)
    k.launch(1, 64, {0: np.uint64(0), 8: np.uint64(0), 16: np.int32(1), 20: np.int32(2)})
