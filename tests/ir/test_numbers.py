"""Numbers of the IR: conversions between all element types and folded rows, against NumPy and ml_dtypes."""

from __future__ import annotations

import ctypes as C
from fractions import Fraction

import irlib
import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NaNs among the samples

DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip
FLOATS = [n for n in DTYPES if n[0] in "fb"]
INTS = [n for n in DTYPES if n[0] in "iu" and n != "i1"]
NARROW = [n for n in FLOATS if n not in ("f32", "f64")]
ELEMS = irlib.elements()


def bits(a: np.ndarray) -> np.ndarray:
    """The elements' bits in uint64."""
    return a.view(f"u{a.itemsize}").astype(np.uint64)


def values(raw: np.ndarray, name: str) -> np.ndarray:
    """Elements of a type from bits in uint64."""
    dt = np.dtype(DTYPES[name])
    return raw.astype(f"u{dt.itemsize}").view(dt)


def cast(a: np.ndarray, src: str, dst: str) -> np.ndarray:
    raw = np.ascontiguousarray(bits(a))
    out = np.zeros_like(raw)
    irlib.lib().tl_test_cast(ELEMS[src], ELEMS[dst], raw.ctypes.data, out.ctypes.data, len(raw))
    return values(out, dst)


def fold(op: str, name: str, *args: np.ndarray, result: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    raw = [np.ascontiguousarray(bits(a)) for a in args]
    out, ok = np.zeros_like(raw[0]), np.zeros(len(raw[0]), np.uint8)
    ptrs = (C.c_void_p * 3)(*[r.ctypes.data for r in raw])
    irlib.lib().tl_test_fold(op.encode(), ELEMS[name], ptrs, out.ctypes.data, ok.ctypes.data, len(out))
    return values(out, result or name), ok.astype(bool)


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Bit for bit, but any NaN for any NaN."""
    g, w = got.astype(np.float64), want.astype(np.float64)
    equal = (bits(got) == bits(want)) | (np.isnan(g) & np.isnan(w))
    bad = np.flatnonzero(~equal)
    assert bad.size == 0, [(int(i), got[i], want[i]) for i in bad[:5]]


def sample(name: str, n: int = 4000, seed: int = 1) -> np.ndarray:
    """Random bits of a type, its edges among them; all of it for types of up to 16 bits."""
    dt = np.dtype(DTYPES[name])
    rng = np.random.default_rng(seed)
    if name == "i1":
        return np.array([False, True])
    if dt.itemsize <= 2:
        return np.arange(1 << (8 * dt.itemsize), dtype=np.uint64).astype(f"u{dt.itemsize}").view(dt)
    out = rng.integers(0, 2**64, n, dtype=np.uint64).astype(f"u{dt.itemsize}").view(dt)
    if name in INTS:
        info = np.iinfo(dt)
        edges = np.array([info.min, info.max, 0, 1, info.max // 2], dtype=dt)
        small = rng.integers(0 if info.min == 0 else -1000, 1000, n).astype(dt)
    else:
        edges = np.array(
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 65504, 65519.99, 65520, 448, 464, 480, 57344], dtype=dt
        )
        small = (rng.standard_normal(n) * np.exp2(rng.integers(-30, 20, n))).astype(dt)
    return np.concatenate([out, edges, small])


@pytest.mark.parametrize("src", FLOATS)
@pytest.mark.parametrize("dst", FLOATS)
def test_float_to_float(src: str, dst: str):
    a = sample(src)
    with np.errstate(all="ignore"):
        if dst in NARROW and src == "f64" and dst != "f16":
            # ml_dtypes goes by way of f32: keep to values that f32 holds
            a = a.astype(np.float32).astype(np.float64)
        want = a.astype(np.float64).astype(DTYPES[dst]) if src != "f64" or dst == "f16" else a.astype(DTYPES[dst])
        if dst in NARROW and dst != "f16":
            want = a.astype(np.float32).astype(DTYPES[dst])
    same(cast(a, src, dst), want)


@pytest.mark.parametrize("dst", INTS)
@pytest.mark.parametrize("src", FLOATS)
def test_float_to_int_truncates_and_saturates(src: str, dst: str):
    a, info = sample(src), np.iinfo(DTYPES[dst])
    a = a if len(a) < 1000 else a[:: len(a) // 1000]
    got = cast(a, src, dst)
    want = []
    for x in a.astype(np.float64):
        if np.isnan(x):
            want.append(0)
        elif np.isinf(x):
            want.append(info.max if x > 0 else info.min)
        else:
            want.append(min(max(int(x), info.min), info.max))
    assert got.tolist() == want


@pytest.mark.parametrize("dst", FLOATS)
@pytest.mark.parametrize("src", ["i8", "u16", "i32", "u32", "i64", "u64"])
def test_int_to_float_rounds_once(src: str, dst: str):
    a = sample(src, 300)[::7]
    got = cast(a, src, dst)
    # exact: the candidates around the value in the target format, by Python's integers and fractions
    grid = sample(dst).astype(np.float64)
    top = grid[np.isfinite(grid)].max()
    for x, g in zip(a.tolist(), got, strict=True):
        if dst in ("f32", "f64"):
            want = np.float32(0) if dst == "f32" else np.float64(0)
            want = int_to_float(x, 24 if dst == "f32" else 53)
            assert float(g) == want, x
            continue
        if not np.isfinite(g.astype(np.float64)):
            assert abs(x) > top, (x, g)
            continue
        err = abs(Fraction(float(g)) - x)
        for step in (-1, 1):
            n = neighbour(g, step, dst)
            if n is not None:
                assert abs(Fraction(n) - x) >= err, (x, g)


def int_to_float(x: int, mant: int) -> float:
    """x rounded to mant bits, to nearest even."""
    n = abs(x)
    cut = max(n.bit_length() - mant, 0)
    q, r = n >> cut, n & ((1 << cut) - 1)
    half = 1 << (cut - 1) if cut else 0
    if cut and (r > half or (r == half and q & 1)):
        q += 1
    return float(q << cut) * (-1 if x < 0 else 1)


def neighbour(v: np.generic, step: int, name: str) -> float | None:
    raw = int(np.array([v]).view(f"u{v.itemsize}")[0])
    top = 1 << (8 * v.itemsize - 1)
    magnitude = (raw & (top - 1)) + step
    if magnitude < 0 or magnitude >= top:
        return None
    n = values(np.array([magnitude | (raw & top)], np.uint64), name)[0]
    return float(n) if np.isfinite(n.astype(np.float64)) else None


@pytest.mark.parametrize("dst", [*INTS, "i1"])
@pytest.mark.parametrize("src", [*INTS, "i1"])
def test_int_to_int_wraps(src: str, dst: str):
    a = sample(src)
    want = (a != 0) if dst == "i1" else a.astype(DTYPES[dst])
    assert (cast(a, src, dst) == want).all()


@pytest.mark.parametrize("name", FLOATS)
def test_float_to_bool(name: str):
    a = sample(name)
    assert (cast(a, name, "i1") == (a.astype(np.float64) != 0)).all()


def pairs(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = sample(name)
    return rng.choice(a, 1500), rng.choice(a, 1500)


@pytest.mark.parametrize("name", INTS)
@pytest.mark.parametrize(
    "op", "add sub mul floordiv mod truncdiv rem min max and or xor shl shr eq ne lt le gt ge".split()
)
def test_integer_rows(op: str, name: str):
    a, b = pairs(name, 5)
    if op in ("shl", "shr"):
        b = (b.astype(np.int64) % 80).astype(a.dtype)
    width, signed = a.itemsize * 8, np.iinfo(a.dtype).min < 0
    got, ok = fold(op, name, a, b, result="i1" if op in "eq ne lt le gt ge" else None)

    def one(x: int, y: int) -> int | None:
        if op in ("floordiv", "mod", "truncdiv", "rem") and y == 0:
            return None
        trunc = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0
        table = {
            "add": x + y, "sub": x - y, "mul": x * y, "min": min(x, y), "max": max(x, y), "and": x & y, "or": x | y,
            "xor": x ^ y, "eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y,
            "floordiv": x // y if y else 0, "mod": x % y if y else 0, "truncdiv": trunc, "rem": x - trunc * y,
            "shl": x << y if 0 <= y < width else 0, "shr": x >> y if 0 <= y < width else (-1 if x < 0 else 0),
        }  # fmt: skip
        r = int(table[op])
        if op in "eq ne lt le gt ge":
            return r
        r &= (1 << width) - 1
        return r - (1 << width) if signed and r >> (width - 1) else r

    want = [one(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert [bool(o) for o in ok] == [w is not None for w in want]
    for x, y, g, w in zip(a.tolist(), b.tolist(), got.tolist(), want, strict=True):
        assert w is None or g == w, (op, name, x, y)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_float_rows_round_once(op: str, name: str):
    a, b = pairs(name, 7)
    got, ok = fold(op, name, a, b)
    assert ok.all()
    with np.errstate(all="ignore"):
        fn = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op]
        if name in ("f32", "f64"):
            want = fn(a, b)
        else:  # exact or nearly so in f64, then one rounding (by way of this file's tested conversion)
            want = cast(fn(a.astype(np.float64), b.astype(np.float64)), "f64", name)
        if name == "f16":
            same(got, fn(a, b))
    same(got, want)


def test_fma_rounds_once():
    rng = np.random.default_rng(11)
    for name in ("f16", "bf16", "f32"):
        a, b, c = (sample(name, 500, s) for s in (1, 2, 3))
        a, b, c = (rng.choice(v[np.isfinite(v.astype(np.float64))], 1000) for v in (a, b, c))
        # cancellation, and sums that sit on a tie
        with np.errstate(all="ignore"):
            c[:500] = -(a[:500].astype(np.float64) * b[:500].astype(np.float64)).astype(c.dtype)
        got, _ = fold("fma", name, a, b, c)
        for x, y, z, g in zip(a, b, c, got, strict=True):
            g64 = float(g)
            if not (np.isfinite(g64) and np.isfinite(float(z))):
                continue
            exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            err = abs(Fraction(g64) - exact)
            for step in (-1, 1):
                n = neighbour(g, step, name)
                if n is not None:
                    assert abs(Fraction(n) - exact) >= err, (name, x, y, z, g)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_float_functions(name: str):
    a = sample(name)
    x = a.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = {
            "neg": -x, "abs": np.abs(x), "floor": np.floor(x), "ceil": np.ceil(x), "trunc": np.trunc(x),
            "round": np.rint(x), "sqrt": np.sqrt(x),
        }  # fmt: skip
        for op, want in exact.items():
            same(fold(op, name, a)[0], cast(want, "f64", name))
        near = {"exp": np.exp(x), "exp2": np.exp2(x), "log": np.log(x), "log2": np.log2(x), "rsqrt": 1 / np.sqrt(x)}
        for op, want in near.items():
            got = fold(op, name, a)[0].astype(np.float64)
            rounded = cast(want, "f64", name).astype(np.float64)
            fine = np.isclose(got, rounded, rtol=2.0**-52 if name == "f64" else 0, atol=0, equal_nan=True)
            if name == "f64":
                fine |= np.abs(got - rounded) <= 2 * np.spacing(np.abs(rounded))
            else:  # one last place where the exact value is all but a tie
                fine |= (
                    np.abs(
                        bits(cast(got, "f64", name)).astype(np.int64)
                        - bits(cast(rounded, "f64", name)).astype(np.int64)
                    )
                    <= 1
                )
            assert fine.all(), (op, a[~fine][:3], got[~fine][:3], rounded[~fine][:3])


@pytest.mark.parametrize("name", FLOATS)
def test_min_max_and_comparisons(name: str):
    a, b = pairs(name, 9)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        for op, fn in {"min": np.minimum, "max": np.maximum, "fmin": np.fmin, "fmax": np.fmax}.items():
            got = fold(op, name, a, b)[0].astype(np.float64)
            want = fn(x, y)
            if op[0] == "f":  # NumPy's fmin gives NaN for a signalling one
                want = np.where(np.isnan(x), y, np.where(np.isnan(y), x, want))
            assert ((got == want) | (np.isnan(got) & np.isnan(want))).all(), op
        for op, fn in {
            "eq": np.equal,
            "ne": np.not_equal,
            "lt": np.less,
            "le": np.less_equal,
            "gt": np.greater,
        }.items():
            assert (fold(op, name, a, b, result="i1")[0] == fn(x, y)).all(), op
    zero = np.array([0.0, -0.0]).astype(a.dtype)
    if not name.endswith("fnuz"):
        assert np.signbit(fold("min", name, zero, zero[::-1].copy())[0].astype(np.float64)).all()
        assert not np.signbit(fold("max", name, zero, zero[::-1].copy())[0].astype(np.float64)).any()
