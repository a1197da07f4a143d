"""The launcher on a library that keeps what it is given: binding, checks, specialisation, kernel arguments, errors."""

from __future__ import annotations

import gc
import struct
import threading

import numpy as np
import pytest

from tilelang.errors import DeviceError, LaunchError, LaunchTypeError, SimulatorFault

A = ("buffer", "A", None, ("M", "K"), "Buffer[M, K]")
B = ("buffer", "B", None, ("K", "N"), "Buffer[K, N]")
C = ("buffer", "C", "f32", ("M", "N"), "float32[M, N]")
X = ("buffer", "X", None, None, "Buffer")


def f16(*shape):
    return np.zeros(shape, np.float16)


def f32(*shape):
    return np.zeros(shape, np.float32)


def fails(call, error, *words):
    with pytest.raises(error) as info:
        call()
    text = str(info.value)
    for word in words:
        assert word in text, text
    return text


def matmul(fake, **kwargs):
    slots = (("ptr", 0, 0), ("ptr", 1, 0), ("ptr", 2, 0), ("dim", 0, 0), ("dim", 0, 1), ("stride", 0, 0))
    grid = ((2, 0, 64), (2, 1, 128))
    binary = fake.binary((0, 1, 2), slots, grid, (2,), block=256, symbol="matmul")
    return fake.launcher([A, B, C], binary, name="matmul", **kwargs)


# ---- what reaches the device ---------------------------------------------------------------------------------------


def test_kernel_arguments(fake):
    a, b, c = f16(100, 70), f16(70, 300), f32(100, 300)
    launcher = matmul(fake)
    assert launcher(a, b, c) is None
    k = fake.fake
    assert (k.launches, list(k.grid), list(k.block), k.lds, k.kernarg_size) == (1, [2, 3, 1], [256, 1, 1], 0, 48)
    assert list(k.kernarg[:6]) == [a.ctypes.data, b.ctypes.data, c.ctypes.data, 100, 70, 70]
    assert launcher.last.symbol == "matmul" and launcher.binaries == [launcher.last]
    buffer = ("buffer", "f16", (-4, -2), (-2, 1), 16, 3)
    assert fake.keys[0][:3] == ("cpu", 0, "gfx942") and fake.keys[0][3][0] == buffer


def test_views_are_not_copied(fake):
    torch = pytest.importorskip("torch")
    launcher = matmul(fake)
    base = torch.zeros(90, 250, dtype=torch.float16)
    a = base.t()[10:110, 5:75]
    b, c = torch.zeros(140, 600, dtype=torch.float16)[::2, ::2], torch.zeros(100, 300)
    launcher(a, b, c)
    assert list(fake.fake.kernarg[:6]) == [a.data_ptr(), b.data_ptr(), c.data_ptr(), 100, 70, a.stride(0)]
    params = fake.keys[0][3]
    assert params[0][3] == (1, -2) and params[1][3] == (-16, -2) and params[2][5] == 3
    r = fake.fake.reg[0]
    assert (r.data, r.name, r.itemsize, list(r.shape[:2]), list(r.strides[:2])) == (
        a.data_ptr(),
        b"A",
        2,
        [100, 70],
        [2, 500],
    )
    assert fake.fake.registered == 3 and fake.fake.alive == 0


def test_scalars(fake):
    names = ["i8", "i32", "i64", "u64", "f16", "bf16", "f32", "f64", "i1", "f8e4m3fn", "f8e5m2fnuz"]
    params = [("scalar", f"s_{n}", n, None, n) for n in names]
    launcher = fake.launcher(params)
    values = [-1, -2, -(1 << 63), (1 << 64) - 1, 1.5, 3.0, 0.1, 0.1, True, 448.0, -2.0]
    launcher(*values)
    want = [0xFF, 0xFFFFFFFE, 1 << 63, (1 << 64) - 1, 0x3E00, 0x4040]
    want += [
        struct.unpack("<I", struct.pack("<f", 0.1))[0],
        struct.unpack("<Q", struct.pack("<d", 0.1))[0],
        1,
        0x7E,
        0xC4,
    ]
    assert list(fake.fake.kernarg[: len(want)]) == want
    launcher(np.int8(-1), np.int64(-2), 5, np.uint64(7), np.float16(1.5), 3, np.float32(0.1), 1, np.bool_(False), 1, 1)
    assert list(fake.fake.kernarg[:3]) == [0xFF, 0xFFFFFFFE, 5]
    assert len(fake.keys) == 1


@pytest.mark.parametrize("elem", ["f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"])
def test_small_float_scalars_round_to_nearest_even(fake, elem):
    """Every bit pattern comes back, and values between two take the even one; overflow follows the format."""
    ml = pytest.importorskip("ml_dtypes")
    names = {"f16": np.float16, "bf16": ml.bfloat16, "f8e4m3fn": ml.float8_e4m3fn, "f8e5m2": ml.float8_e5m2}
    names |= {"f8e4m3fnuz": ml.float8_e4m3fnuz, "f8e5m2fnuz": ml.float8_e5m2fnuz}
    dtype = np.dtype(names[elem])
    launcher = fake.launcher([("scalar", "s", elem, None, elem)])
    rng = np.random.default_rng(7)
    raw = rng.integers(0, 1 << (8 * dtype.itemsize), 300).astype(f"u{dtype.itemsize}")
    exact = raw.view(dtype).astype(np.float64)
    values = [float(v) for v in exact[np.isfinite(exact)]]
    values += [float(v) for v in rng.normal(size=300) * np.exp2(rng.integers(-30, 20, 300))] + [1e30, -1e30, 0.0]
    for v in values:
        launcher(v)
        with np.errstate(over="ignore"):
            want = np.array(v, np.float64).astype(dtype)
        got = np.array([fake.fake.kernarg[0]], np.uint64).astype(f"u{dtype.itemsize}").view(dtype)[0]
        assert got.tobytes() == want.tobytes() or (np.isnan(got) and np.isnan(want)), (v, got, want)


def test_scalar_refusals(fake):
    i32 = fake.launcher([("scalar", "n", "i32", None, "int32")])
    fails(lambda: i32(1 << 31), LaunchError, "parameter n", "2147483648", "int32")
    fails(lambda: i32(1.5), LaunchTypeError, "parameter n", "integer", "float")
    fails(lambda: i32("x"), LaunchTypeError, "a number", "str")
    fails(lambda: i32(np.zeros(3)), TypeError, "a number", "ndarray")
    u8 = fake.launcher([("scalar", "n", "u8", None, "uint8")])
    fails(lambda: u8(-1), LaunchError, "-1", "uint8")
    fails(lambda: u8(256), LaunchError, "256", "uint8")
    b = fake.launcher([("scalar", "f", "i1", None, "bool")])
    fails(lambda: b(1), LaunchTypeError, "a bool", "int")
    f = fake.launcher([("scalar", "f", "f32", None, "float32")])
    torch = pytest.importorskip("torch")
    fails(lambda: f(torch.zeros(())), LaunchTypeError, ".item()")
    assert fake.fake.launches == 0


# ---- binding -------------------------------------------------------------------------------------------------------


def test_binding(fake):
    params = [A, ("scalar", "n", "i32", None, "int32", 7), ("buffer", "D", None, None, "Buffer | None", None)]
    launcher = fake.launcher(params, fake.binary((0, 1), (("ptr", 0, 0), ("scalar", 1, 0))))
    a = f16(3, 4)
    launcher(a)
    assert list(fake.fake.kernarg[:2]) == [a.ctypes.data, 7]
    launcher(n=9, A=a)
    assert list(fake.fake.kernarg[:2]) == [a.ctypes.data, 9]
    launcher(a, D=f32(2))
    assert [k[3][2][0] for k in fake.keys] == ["none", "buffer"]
    assert launcher.bind((a,), {"n": 3}) == (a, 3, None)
    fails(lambda: launcher(), TypeError, "parameter A is missing", "k:")
    fails(lambda: launcher(a, 1, None, 4), TypeError, "takes 3 arguments, got 4")
    fails(lambda: launcher(a, A=a), TypeError, "A is given twice")
    fails(lambda: launcher(a, m=1), TypeError, "no parameter m")
    fails(lambda: launcher(None), TypeError, "parameter A", "NoneType", "Buffer[M, K]")
    name = "".join(["", "n"])  # not interned
    launcher(a, **{name: 4})
    assert fake.fake.kernarg[1] == 4


def test_constexpr(fake):
    params = [X, ("const", "block", None, None, "constexpr", 64)]
    launcher = fake.launcher(params)
    x = f16(8)
    for value in (64, 64, 64.0, True, 1, "a", (1, 2), 64):
        launcher(x, value)
    values = [k[3][1] for k in fake.keys]
    assert values == [("const", v) for v in (64, 64.0, True, 1, "a", (1, 2))]
    assert [type(v[1]) for v in values] == [int, float, bool, int, str, tuple]
    fails(lambda: launcher(x, [1]), LaunchTypeError, "hash")


# ---- checks --------------------------------------------------------------------------------------------------------


def test_bad_arguments(fake):
    launcher = matmul(fake)
    a, b, c = f16(100, 70), f16(70, 300), f32(100, 300)
    fails(lambda: launcher(a, b, f16(100, 300)), LaunchTypeError, "matmul: parameter C", "float32", "float16")
    fails(lambda: launcher(a, b, f32(100)), LaunchError, "parameter C", "float32[M, N]", "wants 2 dimensions, got 1")
    fails(
        lambda: launcher(a, f16(71, 300), c), LaunchError, "parameter B", "dimension 0 is 71", "K is 70", "parameter A"
    )
    fails(lambda: launcher(a, b, f32(100, 301)), LaunchError, "parameter C", "301", "N is 300", "parameter B")
    fails(lambda: launcher(a, [1], c), LaunchTypeError, "parameter B", "Buffer[K, N]", "list")
    readonly = f32(100, 300)
    readonly.flags.writeable = False
    fails(lambda: launcher(a, b, readonly), LaunchError, "parameter C", "read-only")
    a.flags.writeable = False
    launcher(a, b, c)  # an input may be
    assert fake.fake.launches == 1


def test_declared_shapes(fake):
    launcher = fake.launcher([("buffer", "A", "f16", (16, "K", ("//", "K", 2)), "float16[16, K, K // 2]"), X])
    launcher(f16(16, 9, 4), f16(1))
    fails(lambda: launcher(f16(17, 9, 4), f16(1)), LaunchError, "parameter A", "dimension 0 is 17, wants 16")
    fails(lambda: launcher(f16(16, 9, 5), f16(1)), LaunchError, "dimension 2 is 5, wants 4")
    assert fake.keys[0][3][0][2] == (16, -1, -4)
    nested = ("min", ("+", ("*", "K", 3), 1), ("-", 100, ("%", "K", 4)))
    launcher = fake.launcher([("buffer", "A", None, (nested,), ""), ("buffer", "B", None, ("K",), "")])
    launcher(f16(16), f16(5))
    launcher(f16(97), f16(43))
    fails(lambda: launcher(f16(96), f16(43)), LaunchError, "wants 97")
    unbound = fake.launcher([("buffer", "A", None, (("//", "Q", 2),), "")])
    fails(lambda: unbound(f16(3)), LaunchError, "Q", "no argument")
    zero = fake.launcher([("buffer", "A", None, (("//", 4, "K"), "K"), "")])
    fails(lambda: zero(f16(3, 0)), LaunchError, "cannot be computed")


def test_output_that_overlaps_itself(fake):
    torch = pytest.importorskip("torch")
    launcher = fake.launcher([X], fake.binary((0,), (("ptr", 0, 0),), writes=(0,)))
    base = torch.zeros(64)
    for ok in (
        base,
        base[::2],
        base.view(8, 8).t(),
        base.view(8, 8)[:, 1:5],
        base[:1].expand(1),
        base.as_strided((2, 3, 4), (1, 2, 6)),
    ):
        launcher(ok)
    launcher(np.zeros(8)[::-1])
    for bad in (base[:1].expand(4), base.as_strided((4, 4), (1, 1)), base.as_strided((4, 4), (3, 1))):
        fails(lambda: launcher(bad), LaunchError, "parameter X", "no two of its elements share")
    assert fake.fake.launches == 7


def test_aliases_are_specialised_on(fake):
    launcher = fake.launcher([X, ("buffer", "Y", None, None, "")])
    a, b = f16(64), f16(64)
    flags = lambda key: [p[5] & 1 for p in key[3]]  # noqa: E731
    launcher(a, b)
    launcher(a, a)
    launcher(a[:32], a[32:])
    launcher(a[:33], a[32:])
    assert [flags(k) for k in fake.keys] == [[1, 1], [0, 0], [0, 0]]  # the third call found the first one's code


def test_specialisation_classes(fake):
    launcher = fake.launcher([X])
    raw = np.zeros(4096, np.float16)
    raw = raw[(-raw.ctypes.data // 2) % 8 :]
    launcher(raw[:1024])
    launcher(raw[1024:2048])
    assert len(fake.keys) == 1
    launcher(raw[1:1025])
    launcher(raw[:1000])
    launcher(raw[:2048:2])
    big = np.lib.stride_tricks.as_strided(raw, (2, 8), (1 << 31, 2))
    launcher(big)
    got = [k[3][0] for k in fake.keys]
    assert got[0] == ("buffer", "f16", (-16,), (1,), 16, 3)
    assert got[1] == ("buffer", "f16", (-16,), (1,), 2, 3)
    assert got[2] == ("buffer", "f16", (-8,), (1,), 16, 3)
    assert got[3] == ("buffer", "f16", (-16,), (-2,), 16, 1)
    assert got[4] == ("buffer", "f16", (-2, -8), (-16, 1), 16, 5)


def test_device_mix(fake):
    from test_tensors import Producer

    launcher = fake.launcher([X, ("buffer", "Y", None, None, "")])
    text = fails(
        lambda: launcher(f32(3), Producer(device=(10, 0))), LaunchError, "parameter Y", "ROCm device 0", "parameter X"
    )
    assert "in CPU memory" in text
    fails(lambda: launcher(Producer(device=(10, 0)), Producer(device=(10, 1))), LaunchError, "ROCm device 1")
    fails(lambda: launcher(Producer(device=(10, 0)), Producer(device=(10, 0))), DeviceError, "/nonexistent/hip.so")


def test_rocm_tensors(fake_rocm):
    from test_tensors import Producer

    rocm = fake_rocm.launcher([X])
    p = Producer(device=(10, 1))
    rocm(p)
    assert fake_rocm.keys[0][:3] == ("rocm", 1, "gfx1100") and p.deleted == 1
    k = fake_rocm.fake
    assert (
        k.kernarg[0] == p.memory.ctypes.data and k.device == 0 and k.set_device == 4
    )  # load and launch, there and back
    rocm(Producer(device=(10, 0)))
    assert k.set_device == 4 and k.launches == 2 and k.loads == 2
    fails(lambda: rocm(Producer(device=(10, 5))), LaunchError, "ROCm device 5")
    fails(lambda: rocm(f32(3)), DeviceError, "simulator")
    fake_rocm.launcher([("scalar", "n", "i32", None, "")])(3)
    assert fake_rocm.keys[-1][0] == "rocm"


def test_no_tensors(fake):
    fake.launcher([("scalar", "n", "i32", None, "")])(3)
    assert fake.keys[-1][0] == "cpu"


# ---- grids ---------------------------------------------------------------------------------------------------------


def test_grids(fake):
    launcher = fake.launcher([X], fake.binary((0,), (), ((0, 0, 8, -1, 5, 2), (0, 1, 1))))
    launcher(f16(17, 4))
    assert list(fake.fake.grid) == [9, 4, 1]
    launcher.launch((2, 3, 4), (f16(17, 4),))
    assert list(fake.fake.grid) == [2, 3, 4]
    launcher.launch(7, (), {"X": f16(17, 4)})
    assert list(fake.fake.grid) == [7, 1, 1]
    before = fake.fake.launches
    launcher(f16(0, 4))
    launcher(f16(4, 0))
    launcher.launch((2, 0), (f16(17, 4),))
    assert fake.fake.launches == before
    x = f16(17, 4)
    fails(lambda: launcher.launch(-1, (x,)), LaunchError, "negative")
    fails(lambda: launcher.launch((1, 2, 3, 4), (x,)), LaunchError, "1 to 3")
    fails(lambda: launcher.launch("x", (x,)), LaunchTypeError, "grid")
    fails(lambda: launcher.launch((1, 70000), (x,)), LaunchError, "65535")
    fails(lambda: launcher.launch(1 << 31, (x,)), LaunchError, "2147483647")
    none = fake.launcher([X], fake.binary((0,), (), None))
    fails(lambda: none(x), LaunchError, "grid", "kernel[grid]")
    none.launch(3, (x,))
    assert list(fake.fake.grid) == [3, 1, 1]


# ---- code ----------------------------------------------------------------------------------------------------------


def test_code_is_loaded_once_and_unloaded(fake):
    launcher = fake.launcher([X])
    assert launcher.last is None
    prepared = launcher.prepare((f16(8),))
    assert fake.fake.loads == 0 and launcher.last is prepared
    for _ in range(5):
        launcher(f16(8))
    assert (fake.fake.loads, fake.fake.unloads, fake.fake.launches) == (1, 0, 5)
    prepared.owner = "mine"
    assert launcher.last.owner == "mine" and prepared.block == 64 and "64 threads" in repr(prepared)
    del prepared, launcher
    gc.collect()
    assert fake.fake.unloads == 1


def test_specialize_that_fails(fake):
    calls = []

    def specialize(key):
        calls.append(key)
        raise KeyError("not today")

    launcher = fake.core.Launcher("k", (X,), specialize)
    for _ in range(2):
        with pytest.raises(KeyError, match="not today"):
            launcher(f16(3))
    assert len(calls) == 2 and launcher.last is None and fake.fake.launches == 0
    with pytest.raises(TypeError, match="not a Binary"):
        fake.core.Launcher("k", (X,), lambda key: 3)(f16(3))


def test_load_error(fake):
    launcher = fake.launcher([X], fake.binary((0,), (), code=b"BAD code"))
    text = fails(lambda: launcher(f16(3)), DeviceError, "loading kernel k", "hipErrorNoBinaryForGpu")
    assert "209" in text and fake.fake.get_last_error == 1


def test_launch_errors(fake):
    launcher = fake.launcher([X])
    fake.fake.next_error = 700
    with pytest.raises(DeviceError) as info:
        launcher(f16(3))
    assert (info.value.code, info.value.name) == (700, "hipErrorIllegalAddress")
    assert "launch of k" in str(info.value) and fake.fake.alive == 0
    fake.fake.next_error = 700
    fake.fake.report = b'[{"check": "bounds", "message": "4 bytes past C", "lanes": [3], "kernel": "k"}]'
    with pytest.raises(SimulatorFault) as info:
        launcher(f16(3))
    (report,) = info.value.reports
    assert (report.check, report.message, report.lanes) == ("bounds", "4 bytes past C", [3])
    assert "4 bytes past C" in str(info.value) and info.value.code == 700
    launcher(f16(3))


def test_ahead_of_time(fake):
    want = ("buffer", "f16", (-8, 64), (-8, 1), 16, 1)
    binary = fake.binary((0,), (("ptr", 0, 0),), requires=(want, ("const", 4)))
    params = (X, ("const", "c", None, None, "constexpr", 4))
    launcher = fake.core.Launcher("k", params, None, fixed=binary)
    raw = np.zeros((64, 96), np.float16)
    raw = np.lib.stride_tricks.as_strided(raw.reshape(-1)[(-raw.ctypes.data // 2) % 8 :], (32, 64), (192, 2))
    launcher(raw[:16])
    launcher(raw[8:24])
    fails(lambda: launcher(raw[:12]), LaunchError, "parameter X", "dimension 0 is 12", "multiple of 8")
    fails(lambda: launcher(raw[:8, :32]), LaunchError, "dimension 1 is 32", "64")
    fails(lambda: launcher(raw[:8].astype(np.float32)), LaunchTypeError, "float16", "float32")
    odd = np.lib.stride_tricks.as_strided(raw, (8, 64), (130, 2))
    fails(lambda: launcher(odd), LaunchError, "stride of dimension 0", "65", "multiple of 8")
    shifted = np.lib.stride_tricks.as_strided(raw[:, 1:], (8, 64), (192, 2))
    fails(lambda: launcher(shifted), LaunchError, "alignment of 16")
    fails(lambda: launcher(raw[0]), LaunchError, "2 dimensions, got 1")
    fails(lambda: launcher(raw[:16], 5), LaunchError, "compiled for 4, got 5")
    dense = fake.binary((0,), (), requires=(("buffer", "f16", (-1, -1), (-1, -1), 2, 2),))
    launcher = fake.core.Launcher("k", (X,), None, fixed=dense)
    launcher(f16(3, 5))
    fails(lambda: launcher(f16(3, 5).T), LaunchError, "contiguous")


def test_ahead_of_time_overlap(fake):
    """Code for tensors that share no bytes takes one tensor twice as long as neither is written."""
    want = ("buffer", "f16", (-1,), (1,), 2, 1)
    params = tuple(("buffer", name, None, None, "Buffer") for name in "ABC")
    slots = tuple(("ptr", i, 0) for i in range(3))
    binary = fake.binary((2, 1, 0), slots, writes=(0,), requires=(want,) * 3)  # C is written
    launcher = fake.core.Launcher("k", params, None, fixed=binary)
    x, z = f16(16), f16(16)
    launcher(x, x, z)
    launcher(x[4:], x[:9], z)
    fails(lambda: launcher(x, z, z), LaunchError, "parameter B", "overlaps")
    fails(lambda: launcher(z[8:], x, z[:9]), LaunchError, "parameter A", "overlaps")
    launcher(z[8:], x, z[:8])


def test_ahead_of_time_twin(fake):
    """Overlapping and far-reaching tensors get the code that general() makes, once."""
    want, wide = ("buffer", "f16", (-1,), (-1,), 2, 1), ("buffer", "f16", (-1,), (-1,), 2, 4)
    params = tuple(("buffer", name, None, None, "Buffer") for name in "AB")
    slots = tuple(("ptr", i, 0) for i in range(2))
    binary, twin = (fake.binary((0, 1), slots, writes=(1,), requires=(w,) * 2) for w in (want, wide))
    made = []

    def general():
        made.append(1)
        return twin

    launcher = fake.core.Launcher("k", params, None, fixed=binary, general=general)
    x, z = f16(16), f16(16)
    launcher(x, z)
    assert launcher.last is binary and not made
    launcher(z[1:], z)
    assert launcher.last is twin
    launcher(x[::-1], z)
    assert launcher.last is twin and made == [1] and launcher.binaries == [binary, twin]
    launcher(x, z)
    assert launcher.last is binary
    fails(lambda: launcher(np.zeros(16, np.float32), z), LaunchError, "dtype")
    for wrong, error in ((lambda: 5, TypeError), (lambda: 1 // 0, ZeroDivisionError)):
        bad = fake.core.Launcher("k", params, None, fixed=binary, general=wrong)
        with pytest.raises(error):
            bad(z, z)


def test_bad_descriptions(fake):
    core = fake.core
    for params in [
        (("buffer", "A"),),
        (("tensor", "A", None, None, ""),),
        (("buffer", "A", "f17", None, ""),),
        (("scalar", "n", None, None, ""),),
        (("buffer", "A", None, (("^", 1, 2),), ""),),
        (("buffer", "A", None, (1,) * 9, ""),),
        (3,),
    ]:
        with pytest.raises((ValueError, TypeError)):
            core.Launcher("k", params, None)
    for change in [
        dict(params=(70,)),
        dict(slots=(("ptr", 1, 0),)),
        dict(slots=(("what", 0, 0),)),
        dict(grid=((0, 0),)),
        dict(grid=((0, 0, 0),)),
        dict(grid=((1, 0, 4),)),
        dict(writes=(1,)),
        dict(block=0),
        dict(block=2000),
    ]:
        good = dict(params=(0,), slots=(("ptr", 0, 0),), grid=((0, 0, 4),), writes=(0,), block=64)
        with pytest.raises((ValueError, TypeError)):
            fake.binary(**{**good, **change})
    launcher = fake.launcher([X], fake.binary((3,), ()))
    with pytest.raises(ValueError):
        launcher(f16(3))


def test_threads(fake):
    """Several threads launch through one launcher; every launch arrives."""
    launcher = fake.launcher([X])
    errors = []

    def work():
        try:
            for i in range(200):
                launcher(f16(8 * (1 + i % 3)))
        except BaseException as err:
            errors.append(err)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and fake.fake.launches == 800 and fake.fake.alive == 0


def test_overhead(fake):
    """A launch of three tensors costs a few microseconds (the bar is 5 us; the test is generous for slow machines)."""
    import timeit

    torch = pytest.importorskip("torch")
    launcher = fake.launcher([X, ("buffer", "Y", None, None, ""), ("buffer", "Z", None, None, "")])
    args = [torch.zeros(64, 64) for _ in range(3)]
    us = min(timeit.repeat(lambda: launcher(*args), number=2000, repeat=5)) / 2000 * 1e6
    print(f"{us:.2f} us a launch")
    assert us < 25


def test_nothing_is_unloaded_once_the_interpreter_ends(fake):
    launcher = fake.launcher([X])
    launcher(f16(8))
    fake.core._at_exit()
    del launcher
    gc.collect()
    assert (fake.fake.loads, fake.fake.unloads) == (1, 0)


def test_launches_leak_nothing(fake):
    """Reference counts and allocated blocks stay where they are, over good launches and refused ones."""
    import sys

    launcher = fake.launcher([X, ("const", "c", None, None, "", 3), ("scalar", "n", "i32", None, "", 0)])
    x, wrong = f16(8), np.zeros(3, object)

    def turn():
        launcher(x)
        launcher(x, 3, n=4)
        launcher.launch((2, 1), (x,), {"n": 5})
        launcher.bind((x,))
        for args, error in (
            ((wrong,), LaunchTypeError),
            ((x, 3, "a"), LaunchTypeError),
            ((x, 3, 1 << 40), LaunchError),
        ):
            try:
                launcher(*args)
            except error:
                pass

    for _ in range(50):
        turn()
    gc.collect()
    before, counts = sys.getallocatedblocks(), [sys.getrefcount(o) for o in (x, wrong, launcher.last)]
    for _ in range(300):
        turn()
    gc.collect()
    after = sys.getallocatedblocks()
    assert [sys.getrefcount(o) for o in (x, wrong, launcher.last)] == counts
    assert after - before < 100, (before, after)
