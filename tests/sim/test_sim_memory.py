"""Device memory: exact bounds (also of strided host arrays), definedness, freed memory, kernel arguments."""

from __future__ import annotations

import ctypes as C
import random

import numpy as np
import pytest
from simlib import BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")

# each lane reads the byte at p + off + lane * step
PROBE = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_mul_lo_u32 v1, v0, s7
  v_add_co_u32 v1, vcc, s6, v1
  v_ashrrev_i32 v2, 31, v1
  v_mov_b32 v5, s5
  v_add_co_u32 v4, vcc, s4, v1
  v_addc_co_u32 v5, vcc, v5, v2, vcc
  {op}
  s_waitcnt vmcnt(0)
"""
PROBE_ARGS = (BUF, Arg(4), Arg(4))
READ1 = PROBE.format(op="global_load_ubyte v6, v[4:5], off")
READ16 = PROBE.format(op="global_load_dwordx4 v[8:11], v[4:5], off")
WRITE4 = PROBE.format(op="global_store_dword v[4:5], v0, off")


@pytest.fixture(scope="module")
def dev():
    return sim.Device("gfx942", checks="bounds", threads=1)


@pytest.fixture(scope="module")
def probes(dev):
    return {
        n: dev.load(code_object(c, PROBE_ARGS)).kernels["k"]
        for n, c in {"r1": READ1, "r16": READ16, "w4": WRITE4}.items()
    }


def bad_lanes(kernel, ptr, off, step=1, lanes=64):
    """Lanes whose access is reported."""
    try:
        kernel.launch(1, lanes, [ptr, np.int32(off), np.int32(step)])
    except sim.SimulatorFault as e:
        assert all(r.check == "bounds" for r in e.reports), [str(r) for r in e.reports]
        return {lane for r in e.reports for lane in r.lanes}
    return set()


@pytest.mark.parametrize("nbytes", [1, 2, 3, 63, 64, 4095, 4096, 4097, 100_000])
def test_exact_size(dev, probes, nbytes):
    mem = dev.empty(nbytes)
    mem.write(np.zeros(nbytes, np.uint8))
    off = nbytes - 32
    want = {lane for lane in range(64) if not 0 <= off + lane < nbytes}
    assert bad_lanes(probes["r1"], mem, off) == want
    want16 = {lane for lane in range(64) if not (off + lane >= 0 and off + lane + 16 <= nbytes)}
    assert bad_lanes(probes["r16"], mem, off) == want16
    mem.free()


def test_report_says_where(dev, probes):
    mem = dev.empty(100)
    with pytest.raises(sim.SimulatorFault) as e:
        probes["w4"].launch((2, 1, 1), 64, [mem, np.int32(100), np.int32(4)])
    r = e.value.reports[0]
    assert r.check == "bounds" and r.kernel == "k" and r.workgroup == (0, 0, 0) and r.wave == 0
    assert r.text.startswith("global_store_dword") and r.address == mem.address + 100
    assert "100 bytes" in r.message, r.message
    assert "bounds" in str(e.value) and "global_store_dword" in str(e.value)


def test_freed(dev, probes):
    mem = dev.empty(4096)
    address = mem.address
    mem.free()
    assert bad_lanes(probes["r1"], address, 0) == set(range(64))
    with pytest.raises(ValueError, match="freed"):
        _ = mem.address


def test_null(dev, probes):
    assert bad_lanes(probes["r1"], None, 0) == set(range(64))


def test_write_to_code_and_arguments(dev):
    # s_getpc: a store to the kernel's own code; and one to its arguments
    code = "s_getpc_b64 s[4:5]\n v_mov_b32 v1, 0\n global_store_dword v1, v0, s[4:5]"
    args = "v_mov_b32 v1, 0\n global_store_dword v1, v0, s[0:1]"
    for body in (code, args):
        k = dev.load(code_object(body, (BUF,))).kernels["k"]
        with pytest.raises(sim.SimulatorFault) as e:
            k.launch(1, 1, [None])
        assert e.value.reports[0].check == "bounds"
        assert "read-only" in e.value.reports[0].message, e.value.reports[0].message


def element_bytes(base: np.ndarray, view: np.ndarray) -> set[int]:
    """Byte offsets from the start of `base` that belong to elements of `view`."""
    start = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    offs = np.array([start])
    for n, s in zip(view.shape, view.strides, strict=True):
        offs = (offs[:, None] + np.arange(n) * s).ravel()
    return {int(o) + i for o in offs for i in range(view.itemsize)}


def register(dev, view: np.ndarray) -> int:
    shape = (C.c_int64 * max(view.ndim, 1))(*view.shape)
    strides = (C.c_int64 * max(view.ndim, 1))(*view.strides)
    return dev._lib.tlsim_register_array(
        dev._handle, view.__array_interface__["data"][0], view.ndim, shape, strides, view.itemsize, b"view"
    )


def random_view(rng: random.Random, base: np.ndarray) -> np.ndarray:
    ndim = rng.randrange(1, 5)
    dtype = rng.choice([np.uint8, np.float16, np.float32, np.float64])
    flat = base.view(dtype)
    while True:
        shape = [rng.choice([1, 2, 3, 5, 8]) for _ in range(ndim)]
        strides = [rng.choice([-1, 1]) * rng.choice([0, 1, 1, 2, 3, 8, 16, 40]) for _ in range(ndim)]
        lo = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
        hi = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
        if hi - lo + 1 <= flat.size:
            break
    origin = rng.randrange(-lo, flat.size - hi)
    return np.lib.stride_tricks.as_strided(flat[origin:], shape, [s * flat.itemsize for s in strides])


def test_strided_views_exactly(dev, probes):
    seed = 7
    print(f"seed {seed}")
    rng = random.Random(seed)
    base = np.zeros(256, np.uint8)
    start = base.__array_interface__["data"][0]
    strided = 0
    for _ in range(120):
        views = [random_view(rng, base) for _ in range(rng.choice([1, 1, 2, 3]))]
        ids = [register(dev, v) for v in views]
        assert all(ids)
        legal = set().union(*(element_bytes(base, v) for v in views))
        strided += len(legal) < max(legal) - min(legal) + 1
        bad = set()
        for off in range(-64, 320, 64):
            bad |= {off + lane for lane in bad_lanes(probes["r1"], start, off)}
        want = set(range(-64, 320)) - legal
        assert bad == want, (views, sorted(bad ^ want)[:10])
        for i in ids:
            assert dev._lib.tlsim_unregister_array(dev._handle, i)
    assert strided > 30
    assert bad_lanes(probes["r1"], start, 0) == set(range(64))  # nothing is registered any more


def test_wide_access_over_a_gap(dev, probes):
    base = np.zeros((8, 24), np.uint8)
    view = base[:, :20]
    i = register(dev, view)
    start = base.__array_interface__["data"][0]
    legal = element_bytes(base, view)
    bad = bad_lanes(probes["r16"], start, 0)
    assert bad == {o for o in range(64) if not set(range(o, o + 16)) <= legal}
    dev._lib.tlsim_unregister_array(dev._handle, i)


def test_register_refuses(dev):
    shape, strides = (C.c_int64 * 9)(*[2] * 9), (C.c_int64 * 9)(*[1] * 9)
    assert dev._lib.tlsim_register_array(dev._handle, 4096, 9, shape, strides, 4, b"") == 0
    assert dev._lib.tlsim_register_array(dev._handle, 4096, 1, (C.c_int64 * 1)(-1), strides, 4, b"") == 0
    huge = (C.c_int64 * 1)(1 << 60)
    assert dev._lib.tlsim_register_array(dev._handle, 4096, 1, huge, huge, 4, b"") == 0
    assert not dev._lib.tlsim_unregister_array(dev._handle, 123456789)


def test_undefined_memory_reaches_a_store():
    dev = sim.Device("gfx942", checks="init" if "init" in sim.Device(checks="all").checks else "none", threads=1)
    if not dev.checks:
        pytest.skip("the check init is not there")
    copy = """
      s_load_dwordx4 s[4:7], s[0:1], 0x0
      v_lshlrev_b32 v1, 2, v0
      s_waitcnt lgkmcnt(0)
      global_load_dword v2, v1, s[4:5]
      s_waitcnt vmcnt(0)
      global_store_dword v1, v2, s[6:7]
    """
    k = dev.load(code_object(copy, (BUF, BUF))).kernels["k"]
    src, dst = dev.empty(256), dev.empty(256)
    src.write(np.arange(40, dtype=np.uint32))  # lanes 40.. read undefined dwords
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 64, [src, dst])
    assert e.value.reports[0].check == "init"
    assert set(e.value.reports[0].lanes) == set(range(40, 64))
    k.launch(1, 40, [src, dst])
    src.write(np.arange(64, dtype=np.uint32))
    k.launch(1, 64, [src, dst])
    assert (dst.numpy(np.uint32) == np.arange(64)).all()


def test_contents_and_copies(dev):
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    mem = dev.array(a[:, ::2])
    assert (mem.numpy() == a[:, ::2]).all() and mem.numpy().shape == (4, 3)
    assert (mem.numpy(np.float32, (3,)) == a[0, ::2]).all()
    with pytest.raises(ValueError, match="bytes"):
        mem.numpy(np.float32, (100,))
    with pytest.raises(ValueError, match="do not fit"):
        mem.write(np.zeros(13, np.float32))


TAIL = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_load_dword s6, s[0:1], {offset}
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, s6
  global_store_dword v1, v2, s[4:5]
"""


@pytest.mark.parametrize("offset, check", [(0, None), (8, "init"), (60, "init"), (64, "bounds"), (4096, "bounds")])
def test_beyond_the_kernel_arguments(offset, check):
    """The argument segment is rounded up to 64 bytes, whose tail is undefined; nothing is behind it."""
    dev = sim.Device(checks="all", threads=1)
    k = dev.load(code_object(TAIL.format(offset=offset), (BUF,))).kernels["k"]
    if check is None:
        k.launch(1, 1, [np.zeros(1, np.uint32)])
        return
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 1, [np.zeros(1, np.uint32)])
    assert check in {r.check for r in e.value.reports}, str(e.value)
