"""Reductions, softmax, norms: odd lengths, every axis, NaN rules, extents, number of waves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from num_util import BF16, F16, F32, F64, Out, given, module

import tilelang as tl

KINDS: dict[str, Any] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


def full(kind: str, block: int, waves: int | None = None) -> Any:
    return module(
        f"""
        @tl.kernel(num_warps=waves)
        def k(X: tl.Buffer[N], O: tl.Buffer[1]):
            O[0] = tl.{kind}(X[0:{block}])
        """,
        waves=waves,
    )


@pytest.mark.parametrize("waves", [1, 2, 4, 8])
def test_more_lanes_than_elements(waves: int) -> None:
    """C-05."""
    for n in (1, 2, 16, 32, 64):
        k = full("sum", n, waves)
        for dtype in (F32, np.int32):
            out = Out(1, dtype)
            k[1](np.arange(n).astype(dtype), out.view)
            out.equal([n * (n - 1) // 2])


@pytest.mark.parametrize("kind", KINDS)
def test_one_dimension(kind: str) -> None:
    """Lengths around the tile's; past the end counts as the identity, over nothing the identity comes out."""
    for block in (1, 3, 64, 200, 1024):
        k = full(kind, block)
        for n in sorted({0, 1, 2, block - 1, block, block + 3}):
            for dtype in (F32, np.int32, F16):
                rng = np.random.default_rng(n)
                x = (1 - 2 * rng.integers(0, 2, n) if kind == "prod" else -1 - rng.integers(0, 3, n)).astype(dtype)
                if kind == "prod" and dtype == np.int32 and n:
                    x[0] = 3
                out = Out(1, dtype)
                k[1](given(x, "sliced") if n else x, out.view)
                top = [np.inf, np.iinfo(np.int32).max][dtype == np.int32]
                low = [-np.inf, np.iinfo(np.int32).min][dtype == np.int32]
                ident = {"sum": 0, "prod": 1, "max": low, "min": top}[kind]
                seen = x[:block].astype(np.int64)
                out.equal([KINDS[kind](seen) if len(seen) else ident])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 64), (37, 5), (1, 100), (64, 1), (16, 48)], ids=str)
def test_each_axis(shape: tuple[int, int], kind: str) -> None:
    a, b = shape
    k = module(f"""
        @tl.kernel
        def k(X: tl.Buffer[M, N], R: tl.Buffer[M], C: tl.Buffer[N]):
            x = X[0:{a}, 0:{b}]
            R[0:{a}] = tl.{kind}(x, axis=1)
            C[0:{b}] = tl.{kind}(x, axis=0)
    """)
    for m, n in ((a, b), (max(a - 1, 1), max(b - 2, 1)), (a + 1, b + 1)):
        for dtype, view in ((F32, "rows"), (np.int32, "columns"), (F16, "sliced")):
            rng = np.random.default_rng(m * n)
            x = (1 - 2 * rng.integers(0, 2, (m, n)) if kind == "prod" else rng.integers(-9, -1, (m, n))).astype(dtype)
            r, c = Out(m, dtype), Out(n, dtype)
            k[1](given(x, view), r.view, c.view)
            t = x[:a, :b].astype(np.int64)
            want_r, want_c = np.full(m, np.nan), np.full(n, np.nan)
            want_r[: len(t)], want_c[: t.shape[1]] = KINDS[kind](t, 1), KINDS[kind](t, 0)
            if dtype == np.int32:
                want_r[len(t) :], want_c[t.shape[1] :] = 77, 77
            r.equal(want_r)
            c.equal(want_c)


def test_middle_axis() -> None:
    """C-02's shape: a middle axis of odd length; all values negative."""
    for length in (53, 65, 100, 127):
        k = module(f"""
            @tl.kernel
            def k(X: tl.Buffer[M, {length}, N], O: tl.Buffer[M, N], S: tl.Buffer[M, N]):
                i = tl.program_id(0)
                x = X[i, 0:{length}, 0:64]
                O[i, 0:64] = tl.max(x, axis=0)
                S[i, 0:64] = tl.sum(x, axis=0)
        """)
        x = -1 - np.random.default_rng(2).permutation(5 * length * 53).reshape(5, length, 53).astype(np.int32)
        o, s = Out((5, 53), np.int32), Out((5, 53), np.int32)
        k(x, o.view, s.view)
        o.equal(x.max(1))
        s.equal(x.sum(1))


def test_any_all_xor() -> None:
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N, tl.int32], A: tl.Buffer[M, tl.int32], B: tl.Buffer[M, tl.int32],
              C: tl.Buffer[M, tl.int32]):
            i = tl.program_id(0)
            x = X[i * 4 : i * 4 + 4, 0:40]
            A[i * 4 : i * 4 + 4] = tl.any(x > 2, axis=1)
            B[i * 4 : i * 4 + 4] = tl.all(x > -3, axis=1)
            C[i * 4 : i * 4 + 4] = tl.xor_sum(x, axis=1)
    """)
    for n in (1, 37, 40):
        x = np.random.default_rng(n).integers(-3, 4, (10, n)).astype(np.int32)
        a, b, c = Out(10, np.int32), Out(10, np.int32), Out(10, np.int32)
        k(x, a.view, b.view, c.view)
        a.equal((x > 2).any(1))
        b.equal((x > -3).all(1))
        c.equal(np.bitwise_xor.reduce(x, 1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_nan(dtype: Any) -> None:
    """C-01 without the index: NaN wins; infinities are values."""
    rows = [[np.inf, np.nan, 1], [np.nan, np.inf, -1], [np.nan, 6, 8], [-np.inf, -np.inf, -np.inf], [3, 7, 5]]
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, 3], A: tl.Buffer[M], B: tl.Buffer[M], C: tl.Buffer[M]):
            i = tl.program_id(0)
            x = X[i, 0:4]
            A[i], B[i] = tl.max(x), tl.min(x)
            C[i] = tl.sum(x)
    """)
    x = np.array(rows, dtype)
    a, b, c = Out(5, dtype), Out(5, dtype), Out(5, dtype)
    k(x, a.view, b.view, c.view)
    a.equal(np.array(rows).max(1))
    b.equal(np.array(rows).min(1))
    c.equal(np.array(rows).sum(1))


def test_sum_of_narrow_types() -> None:
    """16-bit floats add in f32; bools and bytes in int32."""
    k = full("sum", 4096)
    for dtype, x, want in (
        (F16, np.full(4096, 1.0), 4096),
        (F16, np.full(4096, 0.1), np.float16(4096 * float(np.float16(0.1)))),
        (BF16, np.full(3000, 1.0), BF16.type(3000)),
        (np.int8, np.full(1000, 100), None),
    ):
        x = x.astype(dtype)
        if want is None:
            out = Out(1, np.int32)
            k[1](x, out.view)
            out.equal([100000])
        else:
            out = Out(1, dtype)
            k[1](x, out.view)
            out.equal([want])


def test_keep_dims_and_rebroadcast() -> None:
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
            i = tl.program_id(0)
            x = X[i * 16 : i * 16 + 16, 0:100]
            O[i * 16 : i * 16 + 16, 0:100] = x - tl.max(x, axis=1, keep_dims=True) + tl.min(x, axis=0)[None, :] * 0
    """)
    for m, n in ((1, 1), (33, 77), (16, 100)):
        x = np.random.default_rng(m).integers(-9, 9, (m, n)).astype(F32)
        out = Out((m, n), F32)
        k(x, out.view)
        out.equal(x - x.max(1, keepdims=True))


def test_reduction_of_everything() -> None:
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N, tl.float32], O: tl.Buffer[2]):
            x = X[0:32, 0:64]
            O[0] = tl.sum(x)
            O[1] = tl.max(tl.sum(x, axis=0))
    """)
    for m, n in ((1, 1), (31, 63), (40, 70)):
        x = np.random.default_rng(m).integers(-9, 9, (m, n)).astype(F32)
        out = Out(2, F32)
        k[1](x, out.view)
        t = x[:32, :64]
        out.equal([t.sum(), t.sum(0).max()])


SOFTMAX = """
    @tl.kernel
    def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
        i = tl.program_id(0)
        x = X[i * {rows} : i * {rows} + {rows}, 0:{cols}].to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=1)[:, None])
        O[i * {rows} : i * {rows} + {rows}, 0:{cols}] = e / tl.sum(e, axis=1)[:, None]
"""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rows,cols", [(1, 128), (4, 256), (16, 33), (3, 1000)])
def test_softmax(rows: int, cols: int) -> None:
    """exp is within 2 ulp, the sum adds log2(n) roundings, the quotient one."""
    k = module(SOFTMAX.format(rows=rows, cols=cols))
    for m, n in ((1, 1), (7, cols), (5, cols - 3)):
        for dtype in (F32, F16):
            x = (np.random.default_rng(n).standard_normal((m, n)) * 5).astype(dtype)
            x[0, 0] = 40
            out = Out((m, n), dtype)
            k(given(x, "sliced"), out.view)
            e = np.exp(x.astype(F64) - x.astype(F64).max(1, keepdims=True))
            rel = (4 + np.log2(n + 1)) * 2.0**-23 + np.abs(x.astype(F64) - x.max()).max() * 2.0**-24
            want = e / e.sum(1, keepdims=True)
            out.close(want, 1 if dtype == F16 else 0, rel * want + (2.0**-25 if dtype == F16 else 2.0**-148))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_softmax_of_minus_infinity() -> None:
    """C-24: NaN in every element."""
    x = np.full((3, 40), -np.inf, F32)
    x[1] = 1
    out = Out((3, 40), F32)
    module(SOFTMAX.format(rows=2, cols=64))(x, out.view)
    want = np.full((3, 40), np.nan)
    want[1] = np.float32(1 / 40)
    out.equal(want)


NORM = """
    @tl.kernel
    def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
        i = tl.program_id(0)
        x = X[i, 0:{cols}]
        n = X.shape[1]
        d = x - tl.sum(x) / n
        O[i, 0:{cols}] = d * tl.rsqrt(tl.sum(d * d) / n + 1e-5)
"""


def test_layer_norm() -> None:
    """C-07, C-23: two-pass, exact where the mean is; the tail does not count."""
    out = Out((1, 3), F32)
    module(NORM.format(cols=4))(np.array([[10, 11, 12]], F32), out.view)
    out.close([[-1.2247356859083902, 0, 1.2247356859083902]], 3)
    x = np.random.default_rng(17).integers(0, 9, (5, 17)).astype(F32)
    out = Out((5, 17), F32)
    module(NORM.format(cols=32))(x, out.view)
    d = x - x.astype(F64).mean(1, keepdims=True)
    out.close(d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5), 4, 8 * 2.0**-23)
    x = np.full((2, 10240), 256, F32)
    x[0, -1] = 255
    out = Out((2, 10240), F32)
    module(NORM.format(cols=10240))(x, out.view)
    assert abs(out.view[0, 0] - 0.0094124) < 1e-3 and abs(out.view[0, -1] + 96.3734) < 0.1
    assert (out.view[1] == 0).all()
    out = Out((1, 256), F32)
    module(NORM.format(cols=256))(np.full((1, 256), 1234.0, F32), out.view)
    out.equal(np.zeros((1, 256)))


def test_long_rows_in_a_loop() -> None:
    """Accumulating tiles and scalars over a row in blocks; any length."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], S: tl.Buffer[M], T: tl.Buffer[M]):
            i = tl.program_id(0)
            acc = tl.zeros([64], tl.float32)
            top = tl.full([1], -1e30, tl.float32)
            for j in range(0, X.shape[1], 64):
                x = X[i, j : j + 64]
                acc += x
                top = tl.maximum(top, tl.max(x))
            S[i] = tl.sum(acc)
            T[i : i + 1] = top
    """)
    for n in (0, 1, 63, 64, 65, 300):
        x = np.random.default_rng(n).integers(-99, -1, (3, n)).astype(F32)
        s, t = Out(3, F32), Out(3, F32)
        k[3](x, s.view, t.view)
        s.equal(x.sum(1))
        t.equal(x.max(1) if n else [np.float32(-1e30)] * 3)


def test_sums_in_grid_style() -> None:
    """The same norm as loops over elements (C-07)."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
            for i in tl.grid(M):
                s = 0.0
                for j in tl.grid(N):
                    s += X[i, j]
                mean = s / N
                v = 0.0
                for j in tl.grid(N):
                    v += (X[i, j] - mean) * (X[i, j] - mean)
                r = tl.rsqrt(v / N + 1e-5)
                for j in tl.grid(N):
                    O[i, j] = (X[i, j] - mean) * r
    """)
    x = np.array([[10, 11, 12]], F32)
    out = Out((1, 3), F32)
    try:
        k(x, out.view)
    except tl.CompileError as e:
        assert e.line
        pytest.skip(f"refused: {e.args[0]}")
    out.close([[-1.2247356859083902, 0, 1.2247356859083902]], 3)
