"""Launches on several host threads: the results are those of one thread, whatever the order of waves. `make tsan-test`
runs this file on binaries with ThreadSanitizer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from simlib import ADD, BUF, Arg, client_env, code_object

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


# 16 workgroups, all on the same memory: plain and atomic, vector and scalar accesses of every width; what the plain
# ones leave there is a matter of luck, what the atomics count is not
RACY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  v_mov_b32 v2, s2
  v_mov_b32 v3, v0
  v_mov_b32 v4, 1
  v_mov_b32 v5, 0
  v_mov_b32 v20, 0
  s_mov_b32 s8, 7
  s_mov_b32 s9, 50
  s_mov_b32 s10, 1
  s_waitcnt lgkmcnt(0)
loop:
  global_store_dwordx4 v1, v[2:5], s[4:5]
  global_store_dwordx3 v1, v[2:4], s[4:5] offset:2048
  global_store_dwordx2 v1, v[2:3], s[4:5] offset:1024
  global_store_dword v1, v2, s[4:5] offset:1040
  global_store_short v1, v2, s[4:5] offset:1056
  global_store_byte v1, v2, s[4:5] offset:1072
  global_load_dwordx4 v[8:11], v1, s[4:5] offset:1024
  global_load_dwordx3 v[12:14], v1, s[4:5]
  global_load_dwordx2 v[16:17], v1, s[4:5] offset:16
  global_load_ushort v18, v1, s[4:5] offset:64
  global_load_sbyte v19, v1, s[4:5] offset:65
  s_load_dwordx8 s[16:23], s[4:5], 0x40
  s_store_dwordx2 s[8:9], s[4:5], 0x80
  s_atomic_add s10, s[6:7], 0x10
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_atomic_add v20, v4, s[6:7]
  global_atomic_add_x2 v20, v[4:5], s[6:7] offset:8
  global_atomic_swap v21, v1, v2, s[4:5] glc
  s_sub_u32 s9, s9, 1
  s_waitcnt vmcnt(0)
  v_add_u32 v22, v22, v21
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 loop
"""


@pytest.mark.parametrize("checks", ["none", "all but race"])
@pytest.mark.parametrize("delivery", ["now", "late"])
def test_racy_kernel(checks, delivery):
    """A program that races with itself on several threads is no fault of the simulator: it runs, its atomics count."""
    groups, wave = 16, 64
    on = checks if checks == "none" else [c for c in sim.Device(checks="all").checks if c not in ("race", "wait")]
    dev = sim.Device("gfx90a", checks=on, threads=4, delivery=delivery)
    kernel = dev.load(code_object(RACY, (BUF, BUF), arch="gfx90a")).kernels["k"]
    memory, counts = np.zeros(4096, np.uint8), np.zeros(8, np.uint32)
    kernel.launch(groups, wave, [memory, counts])
    assert counts[0] == groups * wave * 50 == counts[2] and counts[3] == 0 and counts[4] == groups * 50


def test_init_check_with_neighbours():
    """Workgroups define bytes beside each other (one byte, one word of the shadow) while others ask for theirs."""
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_mul_u32_u24 v1, 37, v0
  v_add_u32 v1, s2, v1
  v_mov_b32 v2, s2
  s_mov_b32 s9, 20
  s_waitcnt lgkmcnt(0)
loop:
  global_store_byte v1, v2, s[4:5]
  s_waitcnt vmcnt(0)
  global_load_ubyte v3, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v2, 1, v3
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 loop
"""
    groups, n = 37, 37 * 64
    dev = sim.Device(checks="all", threads=4)
    kernel = dev.load(code_object(body, (BUF,))).kernels["k"]
    memory = dev.empty(n)
    kernel.launch(groups, 64, [memory])
    np.testing.assert_array_equal(memory.numpy(np.uint8, (64, 37)), np.tile(np.arange(37) + 19, (64, 1)))


def test_one_device_from_several_threads():
    """Launches, faults, reports, counters, options and loading at once: each caller gets what is its own."""
    dev = sim.Device(checks="bounds", threads=2)
    code, failed = code_object(ADD, (BUF, BUF, Arg(4))), []
    kernel = dev.load(code).kernels["k"]
    before = dev.counters["launches"]

    def client(me: int) -> None:
        own = dev.load(code).kernels["k"]
        for k in range(8):
            x, out = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
            (own if k % 2 else kernel).launch(4, 64, [x, out, np.int32(me)], seed=k)
            if not (out == x + me).all():
                failed.append((me, k))
            try:
                kernel.launch(4, 64, [x[: 200 - me], out, np.int32(me)])
                failed.append((me, "no fault"))
            except sim.SimulatorFault as e:
                if f"{4 * (200 - me)} bytes" not in str(e):
                    failed.append((me, str(e)))
            _ = dev.progress, dev.counters

    threads = [threading.Thread(target=client, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed[:3]
    assert dev.counters["launches"] - before == 64


PLANTED = """
import ctypes as C, sys, threading
from simlib import ADD, BUF, Arg, code_object
from tilelang import sim
from tilelang.sim import _native as nat
import numpy as np
shared, block = nat.Stats(), threading.Barrier(2)
def client():
    dev = sim.Device(checks="none", threads=1)
    handle = dev.load(code_object(ADD, (BUF, BUF, Arg(4)))).kernels["k"]._handle
    three, mine = C.c_uint32 * 3, nat.Stats()
    stats = shared if sys.argv[1] == "shared" else mine
    out = data if sys.argv[1] == "program" else np.zeros(64, np.int32)
    args = np.array([out.ctypes.data, out.ctypes.data, 1], np.uint64).tobytes()
    reg = dev._lib.tlsim_register_array
    shape, strides = (C.c_int64 * 1)(64), (C.c_int64 * 1)(4)
    assert reg(dev._handle, out.ctypes.data, 1, shape, strides, 4, b"out")
    block.wait()
    for _ in range(200):
        shape = three(1, 1, 1), three(64, 1, 1)
        assert not dev._lib.tlsim_launch(dev._handle, handle, *shape, 0, args, 20, C.byref(stats))
data = np.zeros(64, np.int32)
ts = [threading.Thread(target=client) for _ in range(2)]
[t.start() for t in ts], [t.join() for t in ts]
print("done")
"""


@pytest.mark.skipif(os.environ.get("TILELANG_SANITIZED") != "thread", reason="needs ThreadSanitizer: make tsan-test")
@pytest.mark.parametrize("what", ["own", "program", "shared"])
def test_races_of_the_simulator_are_seen(what):
    """Two devices in two threads add their statistics to one record, which the contract forbids: ThreadSanitizer
    reports it. That their kernels race on one array it does not."""
    path = os.pathsep.join([os.environ["PYTHONPATH"], os.path.dirname(__file__)])
    env = client_env(PYTHONPATH=path, TSAN_OPTIONS=os.environ["TSAN_OPTIONS"] + " log_path=stderr")
    r = subprocess.run([sys.executable, "-c", PLANTED, what], capture_output=True, text=True, env=env, timeout=120)
    if what == "shared":
        assert r.returncode == 66 and "data race" in r.stderr and "dispatch.c" in r.stderr, r.stderr
    else:
        assert r.returncode == 0 and r.stdout == "done\n" and not r.stderr, r.stderr
