"""What element-wise operations compute, run instruction by instruction on the simulator, against NumPy and ml_dtypes.

Everything is exact but exp, exp2, log, log2 and rsqrt (stated in ulp). Inputs: pairs of special values, and random bits
(fixed seed).
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from cg_util import FLOATS, FP8, INTS, Ew, casts, elementwise_kernel, operations
from gemm_gen import gemm128

from tilelang import _llvm

sim = pytest.importorskip("tilelang.sim")

SEED = 20240607
NP = {
    "i1": np.dtype(np.bool_),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    **{t: np.dtype(("int" if t[0] == "i" else "uint") + t[1:]) for t in INTS},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
UINT = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@pytest.fixture(scope="module")
def dev():
    return sim.Device(arch="gfx942", checks="all")


def specials(t: str) -> np.ndarray:
    """Values where mistakes show."""
    dt = NP[t]
    if t == "i1":
        return np.array([False, True])
    if t in INTS:
        info = np.iinfo(dt)
        near = [info.min, info.min + 1, -2, -1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, info.max - 1, info.max]
        return np.array(sorted({v for v in near if info.min <= v <= info.max}), dt)
    if t in FP8:
        return np.arange(256, dtype=np.uint8).view(dt)
    info = ml_dtypes.finfo(dt)
    mags = [0.0, float(info.smallest_subnormal), float(info.tiny), 0.5, 1.0, 1.5, 2.5, 3.0, 127.5, 255.0, 448.0, 464.0]
    mags += [
        65504.0,
        65520.0,
        2.0**31,
        2.0**32,
        2.0**63,
        2.0**64,
        float(info.max),
        np.inf,
        np.nan,
        1.0 + float(info.eps),
    ]
    with np.errstate(over="ignore"):
        return np.array([s * m for m in mags for s in (1, -1)], np.float64).astype(dt)


def inputs(ins: list[str], count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """`count` rows: all combinations of specials first (cut), then random bits."""
    combos = list(itertools.product(*[range(len(specials(t))) for t in ins]))
    rng.shuffle(combos)
    combos = combos[: count * 3 // 4]
    out = []
    for i, t in enumerate(ins):
        dt = NP[t]
        a = np.frombuffer(rng.bytes(count * dt.itemsize), UINT[dt.itemsize]).copy()
        a = (a & 1).astype(np.bool_) if t == "i1" else a.view(dt)
        a[: len(combos)] = specials(t)[[c[i] for c in combos]]
        out.append(a)
    return out


def run(dev, ops: list[Ew], data: list[list[np.ndarray]], n: int = 1) -> list[np.ndarray]:
    """Results of each operation on its inputs (all of one length, a multiple of 64 n)."""
    code = _llvm.compile(elementwise_kernel(ops, n), check=True)
    kernel = dev.load(code.hsaco).kernels["k"]
    count = len(data[0][0])
    outs = [np.zeros(count, NP[e.out]) for e in ops]
    args: list[np.ndarray] = []
    for ins, out in zip(data, outs, strict=True):
        args += [a.view(np.uint8) for a in ins] + [out.view(np.uint8)]
    kernel.launch((count // (64 * n),), (64,), args)
    return outs


# ---- references ----


def wrap(values: list[int], t: str) -> np.ndarray:
    dt = NP[t]
    mask = (1 << 8 * dt.itemsize) - 1
    return np.array([v & mask for v in values], UINT[dt.itemsize]).view(dt)


def int_reference(op: str, t: str, x: list[np.ndarray]) -> np.ndarray:
    a = [int(v) for v in x[0]]
    b = [int(v) for v in x[-1]]
    w = 8 * NP[t].itemsize
    fns = {
        "add": lambda p, q: p + q,
        "sub": lambda p, q: p - q,
        "mul": lambda p, q: p * q,
        "min": min,
        "max": max,
        "and": lambda p, q: p & q,
        "or": lambda p, q: p | q,
        "xor": lambda p, q: p ^ q,
        "not": lambda p, q: ~p,
        "neg": lambda p, q: -p,
        "abs": lambda p, q: abs(p),
        "floordiv": lambda p, q: p // q if q else 0,
        "mod": lambda p, q: p % q if q else 0,
        "truncdiv": lambda p, q: (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1) if q else 0,
        "rem": lambda p, q: (abs(p) % abs(q)) * (-1 if p < 0 else 1) if q else 0,
        "shl": lambda p, q: p << q if 0 <= q < w else 0,
        "shr": lambda p, q: p >> q if 0 <= q < w else (-1 if p < 0 else 0),
    }
    return wrap([fns[op](p, q) for p, q in zip(a, b, strict=True)], t)


def round_fraction(v: Fraction, t: str) -> float:
    """Nearest value of f16, bf16, f32 or f64, ties to even (as a double: exact)."""
    if v == 0:
        return 0.0
    info = ml_dtypes.finfo(NP[t])
    s, m = (-1, -v) if v < 0 else (1, v)
    e = m.numerator.bit_length() - m.denominator.bit_length()
    while Fraction(2) ** e > m:
        e -= 1
    while Fraction(2) ** (e + 1) <= m:
        e += 1
    q = Fraction(2) ** (max(e, int(info.minexp)) - int(info.nmant))
    r = round(m / q) * q  # Fraction's round is half to even
    return s * (float(r) if r <= Fraction(float(info.max)) else np.inf)


def float_reference(op: str, t: str, x: list[np.ndarray]) -> np.ndarray:
    dt = NP[t]
    wide = np.float64 if t in ("f16", "bf16") else dt
    with np.errstate(invalid="ignore"):
        a, b = x[0].astype(wide), x[-1].astype(wide)
    with np.errstate(all="ignore"):
        if op in ("add", "sub", "mul", "div"):
            f = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op]
            if t in ("f16", "bf16"):  # one rounding from a result that is exact enough in f32
                return f(x[0].astype(np.float32), x[1].astype(np.float32)).astype(dt)
            return f(a, b)
        if op in ("min", "max"):
            r = np.minimum(a, b) if op == "min" else np.maximum(a, b)
            zeros = (a == 0) & (b == 0)
            neg = np.signbit(a) | np.signbit(b) if op == "min" else np.signbit(a) & np.signbit(b)
            return np.where(zeros, np.where(neg, -0.0, 0.0), r).astype(dt)
        if op in ("fmin", "fmax"):
            return (np.fmin(a, b) if op == "fmin" else np.fmax(a, b)).astype(dt)
        if op == "fma":
            out = []
            for p, q, r in zip(*[v.astype(np.float64) for v in x], strict=True):
                if np.isfinite([p, q, r]).all() and p and q and r:
                    exact = Fraction(p) * Fraction(q) + Fraction(r)
                    out.append(round_fraction(exact, t) if exact else 0.0)
                else:  # p * q alone must not overflow on the way to an infinite or NaN r
                    out.append(r if np.isfinite([p, q]).all() and not np.isfinite(r) else p * q + r)
            return np.array(out).astype(dt)
        one = {
            "neg": np.negative,
            "abs": np.abs,
            "sqrt": np.sqrt,
            "floor": np.floor,
            "ceil": np.ceil,
            "trunc": np.trunc,
            "round": np.rint,
        }
        if op == "sqrt" and t in ("f16", "bf16"):
            return np.sqrt(x[0].astype(np.float32)).astype(dt)
        return one[op](a).astype(dt)


def cast_reference(frm: str, to: str, x: np.ndarray) -> np.ndarray:
    dt = NP[to]
    with np.errstate(all="ignore"):
        if to == "i1":
            return x.astype(np.float64) != 0 if frm not in INTS else x != 0
        if frm in INTS or frm == "i1":
            ints = [int(v) for v in x]
            if to in INTS:
                return wrap(ints, to)
            if to in FP8:
                return np.array(ints, np.float64).astype(np.float32).astype(dt)
            return np.array([round_fraction(Fraction(v), to) for v in ints]).astype(dt)
        if to in INTS:
            info = np.iinfo(dt)
            wide = [float(v) for v in x.astype(np.float64)]
            return (
                np.array([0 if v != v else int(max(min(v, 2.0**70), -(2.0**70))) for v in wide], object)
                .clip(info.min, info.max)
                .astype(dt)
            )
        if to in FP8:
            return fp8_reference(x.astype(np.float64), to)
        return (
            x.astype(np.float64).astype(dt)
            if to != "bf16"
            else np.array(
                [
                    v if not np.isfinite(v) else np.copysign(round_fraction(Fraction(v), to), v)
                    for v in x.astype(np.float64)
                ]
            ).astype(dt)
        )


def fp8_reference(x: np.ndarray, to: str) -> np.ndarray:
    """ml_dtypes' own conversion, from the value in f32 rounded to odd (so that there is one rounding)."""
    f = x.astype(np.float32)
    inexact = np.isfinite(x) & (f.astype(np.float64) != x)
    toward_zero = np.where(np.abs(f.astype(np.float64)) > np.abs(x), np.nextafter(f, np.float32(0)), f).astype(
        np.float32
    )
    odd = (toward_zero.view(np.uint32) | 1).view(np.float32)
    return np.where(inexact, odd, f).astype(np.float32).astype(NP[to])


def same(got: np.ndarray, want: np.ndarray, zero_sign: bool = True) -> np.ndarray:
    """Bit equality, any NaN equal to any other."""
    if got.dtype.kind in "biu":
        return got == want
    u = UINT[got.dtype.itemsize]
    with np.errstate(all="ignore"):
        g, w = got.astype(np.float64), want.astype(np.float64)
    ok = (got.view(u) == want.view(u)) | (np.isnan(g) & np.isnan(w))
    return ok if zero_sign else ok | ((g == 0) & (w == 0))


def check(op: str, t: str, x: list[np.ndarray], got: np.ndarray, want: np.ndarray, zero_sign: bool = True) -> None:
    bad = np.flatnonzero(~same(got, want, zero_sign))
    if len(bad):
        i = bad[0]
        raise AssertionError(
            f"{op} {t}: {len(bad)} of {len(got)} differ, first {[v[i] for v in x]} -> {got[i]!r}, not {want[i]!r} "
            f"(seed {SEED})"
        )


APPROXIMATE = {"exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "rsqrt": lambda x: 1 / np.sqrt(x)}


def ulp_error(got: np.ndarray, exact: np.ndarray, t: str) -> np.ndarray:
    info = ml_dtypes.finfo(NP[t])
    with np.errstate(all="ignore"):
        g = got.astype(np.float64)
        e = np.clip(np.floor(np.log2(np.abs(exact))), int(info.minexp), None)
        err = np.abs(g - exact) / 2.0 ** (e - int(info.nmant))
        r = exact.astype(NP[t]).astype(np.float64)
    return np.where((g == exact) | (g == r) | (np.isnan(g) & np.isnan(exact)), 0, err)


# ---- tests ----


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("t", INTS)
def test_integers(dev, t: str, n: int) -> None:
    rng = np.random.default_rng(SEED)
    ops = [e for e in operations(t) if e.op not in ("select", "eq", "ne", "lt", "le", "gt", "ge")]
    data = [inputs(e.ins, 512, rng) for e in ops]
    for e, x, got in zip(ops, data, run(dev, ops, data, n), strict=True):
        check(e.op, t, x, got, int_reference(e.op, t, x))


@pytest.mark.parametrize("t", [*INTS, *FLOATS])
def test_comparisons_and_select(dev, t: str) -> None:
    rng = np.random.default_rng(SEED)
    ops = [e for e in operations(t) if e.op in ("select", "eq", "ne", "lt", "le", "gt", "ge")]
    data = [inputs(e.ins, 1024, rng) for e in ops]
    fn = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    for e, x, got in zip(ops, data, run(dev, ops, data), strict=True):
        with np.errstate(invalid="ignore"):
            wide = [v.astype(np.float64) if t == "bf16" and v.dtype != np.bool_ else v for v in x]
        want = np.where(*x) if e.op == "select" else fn[e.op](*wide)
        check(e.op, t, x, got, want)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("t", FLOATS)
def test_floats(dev, t: str, n: int) -> None:
    rng = np.random.default_rng(SEED)
    ops = [e for e in operations(t) if e.out == t and e.op != "select" and e.op not in APPROXIMATE]
    data = [inputs(e.ins, 1024, rng) for e in ops]
    for e, x, got in zip(ops, data, run(dev, ops, data, n), strict=True):
        check(e.op, t, x, got, float_reference(e.op, t, x), zero_sign=e.op not in ("fmin", "fmax"))


@pytest.mark.parametrize("t", [*FLOATS, *INTS, *FP8, "i1"])
def test_casts(dev, t: str) -> None:
    rng = np.random.default_rng(SEED)
    ops = casts(t)
    data = [inputs(e.ins, 1024, rng) for e in ops]
    for e, x, got in zip(ops, data, run(dev, ops, data), strict=True):
        check(f"cast to {e.out} from", t, x, got, cast_reference(t, e.out, x[0]))


@pytest.mark.parametrize("t", ["f16", "bf16", "f32"])
def test_approximate_functions(dev, t: str) -> None:
    """Within 2 ulp of f32 (1 ulp of f16 and bf16) over the whole range, special values exact."""
    rng = np.random.default_rng(SEED)
    ops = [e for e in operations(t) if e.op in APPROXIMATE]
    data = [inputs(e.ins, 4096, rng) for e in ops]
    for x in data:  # more of them where exp is neither 0 nor infinite
        x[0][2048:] = rng.uniform(-20, 20, 2048).astype(NP[t])
    for e, x, got in zip(ops, data, run(dev, ops, data), strict=True):
        with np.errstate(all="ignore"):
            exact = APPROXIMATE[e.op](x[0].astype(np.float64))
        err = ulp_error(got, exact, t)
        i = int(np.nanargmax(err))
        assert err[i] <= (2 if t == "f32" else 1), f"{e.op} {t}({x[0][i]!r}) = {got[i]!r}, not {exact[i]}: {err[i]} ulp"
        assert not np.isnan(err).any()


@pytest.mark.parametrize("shape", [(128, 128, 64), (256, 128, 128), (128, 256, 192)])
def test_gemm_reference(shape: tuple[int, int, int]) -> None:
    """Small integers: exact. All checks of the simulator are on."""
    m, n, k = shape
    rng = np.random.default_rng(SEED)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    device = sim.Device(arch="gfx942", checks="all")
    kernel = device.load(_llvm.compile(gemm128()).hsaco).kernels["gemm128"]
    stats = kernel.launch((m // 128, n // 128), (256,), [a, b, c, np.int64(m), np.int64(n), np.int64(k)])
    assert np.array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))
    assert stats["lds_conflict_cycles"] == 0
