"""Element-wise kernels: casts, integer and float arithmetic, broadcasting, structure, stencils, edges."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from num_util import BF16, F16, F32, F64, VIEWS, Out, given, is_float, module

import tilelang as tl

NUMPY = {
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "float16": F16, "bfloat16": BF16, "float32": F32, "float64": F64, "bool": np.dtype(bool),
}  # fmt: skip
FP8 = {
    n: np.dtype(getattr(ml_dtypes, n)) for n in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
}


def unary(expr: str, block: int = 128, **names: Any) -> Any:
    return module(
        f"""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[N]):
            p = tl.program_id(0)
            x = X[p * {block} : (p + 1) * {block}]
            O[p * {block} : (p + 1) * {block}] = {expr}
        """,
        **names,
    )


def binary(expr: str, block: int = 128) -> Any:
    return module(f"""
        @tl.kernel
        def k(X: tl.Buffer[N], Y: tl.Buffer[N], O: tl.Buffer[N]):
            p = tl.program_id(0)
            s = slice(p * {block}, p * {block} + {block})
            x, y = X[s], Y[s]
            O[s] = {expr}
        """)


def converted(x: np.ndarray, to: Any) -> np.ndarray:
    """The language's conversion: round to nearest even; to integers truncate, saturate, NaN gives 0."""
    to = np.dtype(to)
    if to.kind == "b":
        return x != 0
    if is_float(x.dtype) and not is_float(to) and to.kind in "iu":
        i, wide = np.iinfo(to), x.astype(np.float64)
        out = np.zeros(x.shape, to)
        for j, v in enumerate(wide.tolist()):
            out[j] = 0 if v != v else i.max if v >= i.max else i.min if v <= i.min else int(v)
        return out
    if x.dtype.kind in "iu" and is_float(to):  # one rounding
        if to == F64:
            return x.astype(F64)
        if to == F32 or x.dtype.itemsize <= 2:
            return x.astype(F32).astype(to)
        out = np.zeros(x.shape, to)  # round to odd in f64 first: the second rounding is then exact
        for j, v in enumerate(x.tolist()):
            f = float(v)
            if int(f) != v:
                b = np.array(f).view(np.uint64)
                if (b & np.uint64(1)) == 0:
                    b = b - np.uint64(1) if abs(int(f)) > abs(v) else b + np.uint64(1)
                f = float(b.view(np.float64))
            out[j] = to.type(f)
        return out
    return x.astype(to)


def samples(dtype: Any, n: int, rng: np.random.Generator) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    if dtype.kind in "iu":
        i = np.iinfo(dtype)
        x = rng.integers(i.min, i.max, n, dtype, endpoint=True)
        edge = [0, 1, i.max, i.min, i.max - 1, 127, 100, 33]
        x[: len(edge)] = edge
        return x
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-6, 5, n)).astype(dtype)
    edge = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 255.9, 256, -200, 510, 0.5, 1.5, 2.5, 65504]
    x[: len(edge)] = np.array(edge, np.float64).astype(dtype)
    return x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("source", NUMPY)
def test_casts(source: str) -> None:
    """Every dtype to every other; C-18, C-19."""
    rng = np.random.default_rng(19)
    k = unary("x")
    x = samples(NUMPY[source], 200, rng)
    if source == "int32":
        x[20:24] = [259, 33000, -259, 257]
    if source == "float32":
        bits = [0x7FFF8C22, 0x7F800001, 0xFFFFFFFF, 0x3F808000, 0x3F818000]
        x[20:25] = np.array(bits, np.uint32).view(np.float32)
    for to in NUMPY.values():
        out = Out(200, to) if np.dtype(to) != bool else Out(200, np.uint8)
        if np.dtype(to) == bool:
            o = np.zeros(200, bool)
            k(x, o)
            np.testing.assert_array_equal(o, x != 0)
            continue
        k(x, out.view)
        out.equal(converted(x, to))


@pytest.mark.parametrize("name", FP8)
def test_fp8_casts(name: str) -> None:
    """To and from the 8-bit floats as the format says (C-20), or a located refusal."""
    x = np.arange(256, dtype=np.uint8).view(FP8[name])
    o = np.full(256, np.nan, np.float32)
    try:
        unary("x")(x, o)
    except tl.CompileError as e:
        assert e.line
        pytest.skip(f"refused: {e.args[0]}")
    np.testing.assert_array_equal(o, x.astype(np.float32))
    y = np.concatenate(
        [samples(F32, 200, np.random.default_rng(5)), [1.062744140625, 1.187255859375, 448, 463, 464, 480]]
    )
    got = np.zeros(206, np.uint8).view(FP8[name])
    unary("x")(y.astype(F32), got)
    want = y.astype(F32).astype(FP8[name])
    same = (got.view(np.uint8) == want.view(np.uint8)) | (np.isnan(got.astype(F32)) & np.isnan(want.astype(F32)))
    assert same.all(), (y[~same], got[~same], want[~same])


INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([a // b for a, b in zip(x.tolist(), y.tolist())], object)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", INTS)
def test_integers(name: str) -> None:
    """C-12: // and % floor; wrap-around; C-14: shifts in the operand's own width."""
    dtype = np.dtype(NUMPY[name])
    rng = np.random.default_rng(12)
    x, y = samples(dtype, 150, rng), samples(dtype, 150, rng)
    y[y == 0] = 3
    y[40:80] = np.where(rng.random(40) < 0.5, 7, y[40:80] % 11 + 1).astype(dtype)
    if dtype.kind == "i":
        low = np.iinfo(dtype).min
        y[(x == low) & (y == -1)] = 2
        x[80:88], y[80:88] = [-7, -7, 7, 7, -8, -8, 8, 0], [2, -2, 2, -2, 3, -3, -3, -5]
    info = np.iinfo(dtype)

    def wrap(v: Any) -> np.ndarray:
        return np.array([(int(e) - info.min) % (1 << info.bits) + info.min for e in v], object).astype(dtype)

    obj = x.astype(object), y.astype(object)
    cases = {
        "x + y": obj[0] + obj[1],
        "x - y": obj[0] - obj[1],
        "x * y": obj[0] * obj[1],
        "x // y": obj[0] // obj[1],
        "x % y": obj[0] % obj[1],
        "x & y | (x ^ y)": obj[0] | obj[1],
        "~x": ~obj[0],
        "tl.maximum(x, y) - tl.minimum(x, y)": np.maximum(obj[0], obj[1]) - np.minimum(obj[0], obj[1]),
        "tl.where(x < y, x, y)": np.minimum(obj[0], obj[1]),
        "(x << 4) >> 4": wrap([v >> 4 for v in wrap([v << 4 for v in obj[0]]).astype(object)]),
        "x // 7 + x % 7": [v // 7 + v % 7 for v in obj[0]],
        "tl.abs(x)": abs(obj[0]),
    }
    for expr, want in cases.items():
        out = Out(150, dtype)
        binary(expr)(x, y, out.view)
        out.equal(wrap(want))


def test_shift_by_width_or_more() -> None:
    """0 or the sign, at run time."""
    x = np.array([5, -5, 1, -1] * 8, np.int32)
    s = np.repeat(np.array([0, 1, 31, 32, 33, 64, 100, 2], np.int32), 4)
    for expr, f in (("x << y", lambda a, b: (a << b) if b < 32 else 0), ("x >> y", lambda a, b: a >> min(b, 31))):
        out = Out(32, np.int32)
        binary(expr)(x, s, out.view)
        want = [((f(int(a), int(b)) + 2**31) % 2**32) - 2**31 for a, b in zip(x, s)]
        out.equal(want)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_float_arithmetic(dtype: Any) -> None:
    """Each operation rounds once to the operand's dtype; NaN rules of max and min."""
    rng = np.random.default_rng(3)
    x, y = samples(dtype, 150, rng), samples(dtype, 150, rng)[::-1].copy()
    x[20:24], y[20:24] = [np.nan, 1, np.nan, 0.0], [1, np.nan, np.nan, -0.0]
    wide = F32 if np.dtype(dtype).itemsize == 2 else dtype
    a, b = x.astype(wide), y.astype(wide)
    cases = {
        "x + y": a + b,
        "x - y": a - b,
        "x * y": a * b,
        "x / y": a / b,
        "tl.maximum(x, y)": np.maximum(a, b),
        "tl.minimum(x, y)": np.minimum(a, b),
        "tl.fmax(x, y)": np.fmax(a, b),
        "tl.where(x > y, x, -y)": np.where(a > b, a, -b),
        "tl.abs(x)": np.abs(a),
        "tl.floor(x)": np.floor(a),
        "tl.round(x)": np.rint(a),
    }
    for expr, want in cases.items():
        out = Out(150, dtype)
        binary(expr)(x, y, out.view)
        out.equal(want)


@pytest.mark.parametrize(
    "expr,op", [("x < y", np.less), ("x <= y", np.less_equal), ("x == y", np.equal), ("x != y", np.not_equal)]
)
def test_comparisons(expr: str, op: Any) -> None:
    for dtype in (F32, F16, np.int32, np.uint8, np.int64, bool):
        rng = np.random.default_rng(1)
        x, y = samples(dtype, 100, rng), samples(dtype, 100, rng)
        y[::3] = x[::3]
        o = np.zeros(100, bool)
        binary(expr)(x, y, o)
        np.testing.assert_array_equal(o, op(x, y))


def test_bools() -> None:
    """C-15."""
    k = module("""
        @tl.kernel
        def k(x: tl.Buffer[4, tl.bool_], y: tl.Buffer[4, tl.bool_], a: tl.Buffer[4, tl.int32],
              b: tl.Buffer[4, tl.bool_],
              f: tl.Buffer[128], g: tl.Buffer[128, tl.bool_], s: tl.Buffer[2, tl.int32], t: tl.Buffer[1, tl.bool_]):
            a[0:4] = x[0:4] + y[0:4]
            b[0:4] = x[0:4] < y[0:4]
            g[0:128] = f[0:128]
            u = tl.full([128, 2], True, tl.bool_)
            n = tl.sum(u)
            s[0] = n
            s[1] = tl.sum(x[0:4])
            t[0] = n
    """)
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    a, b, g, s, t = (
        np.full(4, 9, np.int32),
        np.ones(4, bool),
        np.zeros(128, bool),
        np.zeros(2, np.int32),
        np.zeros(1, bool),
    )
    f = (0.02 * np.arange(128) - 1.28).astype(F32)
    k[1](x, y, a, b, f, g, s, t)
    assert a.tolist() == [0, 1, 1, 2] and b.tolist() == [False, True, False, False]
    np.testing.assert_array_equal(g, f != 0)
    assert s.tolist() == [256, 2] and t[0]


MATHS = {
    "tl.exp(x)": (np.exp, 2), "tl.exp2(x)": (np.exp2, 2), "tl.log(x)": (np.log, 2), "tl.log2(x)": (np.log2, 2),
    "tl.sqrt(x)": (np.sqrt, 0.5), "tl.rsqrt(x)": (lambda v: 1 / np.sqrt(v), 2),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expr", MATHS)
def test_maths(expr: str) -> None:
    """f32 within 2 ulp, sqrt exactly rounded; C-21: subnormal results and arguments."""
    f, ulps = MATHS[expr]
    rng = np.random.default_rng(21)
    x = np.concatenate([
        [-126, -127, -149, -150, -87.5, -103, -104, 88, 2.0**-149, 2.0**-148, 2.0**-126],
        [0, -0.0, np.inf, -np.inf, np.nan, 1],
        rng.standard_normal(100) * 10,
        np.exp(rng.standard_normal(100) * 20),
    ]).astype(F32)  # fmt: skip
    out = Out(len(x), F32)
    unary(expr)(x, out.view)
    with np.errstate(all="ignore"):
        want = f(x.astype(np.float64))
        want = np.where(np.abs(want) > 3.4028235e38, np.sign(want) * np.inf, want)
    out.close(want, ulps, 2.0**-149 * max(ulps, 0.5))
    if expr == "tl.exp2(x)":
        assert out.view[:4].tolist() == [2.0**-126, 2.0**-127, 2.0**-149, 0]


@pytest.mark.parametrize("view", VIEWS)
def test_views(view: str) -> None:
    """Inputs and outputs with any strides; sizes around the block."""
    k = unary("x + 1", 64)
    for dtype in (F16, F32, np.int8, F64):
        for n in (1, 2, 63, 64, 65, 130):
            x = given(np.arange(n) % 50, "rows").astype(dtype)
            out = Out(n, dtype, view)
            k(given(x, VIEWS[(VIEWS.index(view) + n) % len(VIEWS)]), out.view)
            out.equal(x.astype(F64) + 1)


@pytest.mark.parametrize("tile", [(1, 1), (4, 64), (3, 5), (64, 4), (1, 256), (200, 1), (16, 48)], ids=str)
@pytest.mark.parametrize("dtype", [F16, F32, np.int8], ids=str)
def test_two_dimensions(tile: tuple[int, int], dtype: Any) -> None:
    k = module(
        """
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
            i, j = tl.program_id(0), tl.program_id(1)
            I, J = slice(i * a, i * a + a), slice(j * b, j * b + b)
            O[I, J] = X[I, J] * 2
        """,
        a=tile[0],
        b=tile[1],
    )
    for (m, n), (vi, vo) in zip(
        ((1, 1), (7, 70), (33, 31), (5, 64)), itertools.permutations(("rows", "columns", "sliced", "negative"), 2)
    ):
        x = (np.arange(m * n).reshape(m, n) % 60).astype(dtype)
        out = Out((m, n), dtype, vo)
        k(given(x, vi), out.view)
        out.equal(x.astype(F64) * 2)


def test_rank_three_and_four() -> None:
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N, K, L], O: tl.Buffer[M, K, N]):
            b, i = tl.program_id(0), tl.program_id(1)
            I = slice(i * 8, i * 8 + 8)
            O[b, I, 0:16] = X[b, 0:16, I, 1].T
    """)
    rng = np.random.default_rng(0)
    for view in ("rows", "steps", "negative", "sliced"):
        x = rng.standard_normal((3, 11, 13, 3)).astype(F32)
        out = Out((3, 13, 11), F32)
        k(given(x, view), out.view)
        out.equal(x[:, :, :, 1].transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", [F16, F32, np.int8, np.int64], ids=str)
def test_transposes(dtype: Any) -> None:
    for a, b in ((32, 32), (64, 16), (5, 70), (1, 64), (128, 64)):
        k = module(
            """
            @tl.kernel
            def k(X: tl.Buffer[M, N], O: tl.Buffer[N, M]):
                i, j = tl.program_id(0), tl.program_id(1)
                O[j * b : j * b + b, i * a : i * a + a] = X[i * a : i * a + a, j * b : j * b + b].T
            """,
            a=a,
            b=b,
        )
        for m, n in ((1, 1), (33, 70), (64, 128)):
            x = (np.arange(m * n).reshape(m, n) % 100).astype(dtype)
            out = Out((n, m), dtype)
            k(x, out.view)
            out.equal(x.T)


def test_broadcasts() -> None:
    """C-09 on the input side: expanded tensors with stride 0; rows, columns and scalars against tiles."""
    k = module("""
        @tl.kernel
        def k(G: tl.Buffer[M, N], X: tl.Buffer[M, N], R: tl.Buffer[N], C: tl.Buffer[M], s: tl.float32,
              O: tl.Buffer[M, N]):
            i, j = tl.program_id(0), tl.program_id(1)
            I, J = slice(i * 16, i * 16 + 16), slice(j * 32, j * 32 + 32)
            O[I, J] = G[I, J] * X[I, J] + R[J] * 2 - C[I][:, None] + s + R[0] + tl.arange(0, 32)[None, :]
    """)
    for m, n in ((64, 2), (17, 40), (1, 1)):
        g = np.broadcast_to(np.array(1.0, F32), (m, n))
        x = np.arange(m * n, dtype=F32).reshape(m, n) % 31
        r, c = np.arange(n, dtype=F32), np.arange(m, dtype=F32) * 3
        for gg in (g, np.broadcast_to(r, (m, n)), np.broadcast_to(c[:, None], (m, n))):
            out = Out((m, n), F32)
            k(gg, x, r, c, 0.5, out.view)
            j = np.arange(n) % 32
            out.equal(gg.astype(F64) * x + r * 2 - c[:, None] + 0.5 + r[0] + j)


def test_stencils() -> None:
    """Outside is invalid: the intersection is stored; with fill, everything."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[N], F: tl.Buffer[N], V: tl.Buffer[N, tl.int32]):
            p = tl.program_id(0)
            a = p * 32
            left, mid, right = X[a - 1 : a + 31], X[a : a + 32], X[a + 1 : a + 33]
            O[a : a + 32] = left + mid * 10 + right * 100
            F[a : a + 32] = left.fill(0) + mid * 10 + right.fill(0) * 100
            V[a : a + 32] = left.valid.to(tl.int32) + right.valid.to(tl.int32) * 2
    """)
    for n in (1, 2, 31, 32, 33, 100):
        x = np.arange(1, n + 1, dtype=F32)
        out, f, v = Out(n, F32), Out(n, F32), Out(n, np.int32)
        k(x, out.view, f.view, v.view)
        p = np.pad(x, 1)
        want = p[:-2] + p[1:-1] * 10 + p[2:] * 100
        f.equal(want)
        i = np.arange(n)
        v.equal((i > 0) * 1 + (i < n - 1) * 2)
        inner = want.copy()
        inner[0] = inner[-1] = np.nan  # left as they were
        out.equal(inner)


def test_two_dimensional_stencil() -> None:
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
            i, j = tl.program_id(0) * 8, tl.program_id(1) * 32
            c = X[i : i + 8, j : j + 32]
            up, down = X[i - 1 : i + 7, j : j + 32].fill(0), X[i + 1 : i + 9, j : j + 32].fill(0)
            left, right = X[i : i + 8, j - 1 : j + 31].fill(0), X[i : i + 8, j + 1 : j + 33].fill(0)
            O[i : i + 8, j : j + 32] = up + down + left + right - 4 * c
    """)
    for m, n in ((1, 1), (9, 33), (16, 64), (30, 50)):
        x = (np.arange(m * n).reshape(m, n) % 23).astype(F32)
        for view in ("rows", "columns", "sliced"):
            out = Out((m, n), F32, view)
            k(given(x, view), out.view)
            p = np.pad(x, 1)
            out.equal(p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x)


def test_slice_ends() -> None:
    """lo : min(lo + C, end) ends at `end`; a run-time offset on both sides."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[N], lo: tl.int32, hi: tl.int32):
            O[lo : min(lo + 64, hi)] = X[lo : min(lo + 64, hi)] + 1
    """)
    x = np.arange(100, dtype=F32)
    for lo, hi in ((0, 10), (5, 64), (50, 90), (90, 200), (7, 7), (9, 3), (150, 160)):
        out = Out(100, F32)
        k[1](x, out.view, lo, hi)
        want = np.full(100, np.nan)
        want[lo : min(hi, lo + 64)] = x[lo : min(hi, lo + 64)] + 1
        out.equal(want)


def test_stored_value_with_a_smaller_extent() -> None:
    """A store to a larger tensor writes only what is valid in the value."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[M]):
            O[0:64] = X[0:64] * 2
    """)
    for n, m in ((10, 64), (64, 10), (33, 33), (0, 5), (1, 2)):
        x = np.arange(n, dtype=F16)
        out = Out(m, F16)
        k[1](x, out.view)
        want = np.full(m, np.nan)
        want[: min(n, m)] = x[: min(n, m)] * 2
        out.equal(want)


def test_constants() -> None:
    """C-16: wrap-around and no fast folding of floats; C-17 a."""
    k = module("""
        @tl.kernel
        def k(A: tl.Buffer[4, tl.int32], F: tl.Buffer[4], D: tl.Buffer[4, tl.float64], O: tl.Buffer[4, tl.int32],
              G: tl.Buffer[2, 4], H: tl.Buffer[2, 4, tl.float64], S: tl.Buffer[1, tl.int32]):
            O[0:4] = (A[0:4] + 2000000000) + 2000000000
            G[0, 0:4] = F[0:4] * 0.0
            G[1, 0:4] = F[0:4] - F[0:4]
            H[0, 0:4] = tl.ones([4], tl.float64) + 2e50
            log2e = 1.44269504
            H[1, 0:4] = D[0:4] + log2e
            S[0] = tl.int32(1) << 31
    """)
    o, g, h, s = np.zeros(4, np.int32), np.ones((2, 4), F32), np.zeros((2, 4)), np.zeros(1, np.int32)
    k[1](np.zeros(4, np.int32), np.array([np.inf, np.nan, 3, -0.0], F32), np.zeros(4), o, g, h, s)
    assert o.tolist() == [-294967296] * 4 and s[0] == -2147483648
    np.testing.assert_array_equal(g, np.array([[np.nan, np.nan, 0, 0], [np.nan, np.nan, 0, 0]]))
    assert (h[0] == 2e50).all() and (h[1] == 1.44269504).all()


def test_contraction() -> None:
    """C-22: s * scale - max(s) * scale is exactly 0: no fma behind the user's back."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[3, N]):
            x = X[0:4]
            s = x * x
            scale = tl.float32(0.25 * 1.4426950216)
            m = tl.max(s) * scale
            p = tl.exp2(s * scale - m)
            O[0, 0:4] = s * scale - m
            O[1, 0:4] = p
            O[2, 0:4] = p / tl.sum(p)
    """)
    for n in (1, 3):
        out = Out((3, n), F32)
        k[1](np.full(n, 133120, F32), out.view)
        out.equal([[0] * n, [1] * n, [np.float32(1) / np.float32(n)] * n])
