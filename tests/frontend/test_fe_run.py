"""Kernels from source to result on the simulated chip: control flow, rebinding, numbers, indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fe_util import module

import tilelang as tl

M, N, K = tl.dims("M N K")
B = 64


def ints(n: int, fill: int = -77) -> Any:
    return np.full(n, fill, np.int32)


# ---- control flow ------------------------------------------------------------------------------------------


@tl.kernel
def breaks(x: tl.Buffer[N, tl.int32], out: tl.Buffer[N, tl.int32], count: tl.int32):
    p = tl.program_id(0)
    res = 0
    for i in range(count):
        for j in range(count):
            break
        res += 1
    acc = 0
    for i in range(count):
        if i % 2 == 0:
            continue
        acc += i
        if x[p]:
            break
    out[p] = res * 100 + acc


@tl.kernel
def breaks_constant(x: tl.Buffer[N, tl.int32], out: tl.Buffer[N, tl.int32]):
    p = tl.program_id(0)
    res = 0
    for i in range(10):
        for j in range(10):
            break
        res += 1
    acc = 0
    for i in range(10):
        if i % 2 == 0:
            continue
        acc += i
        if x[p]:
            break
    out[p] = res * 100 + acc


def test_break_continue() -> None:
    """C-28, with constant and run-time bounds."""
    x = np.array([0, 1, 0], np.int32)
    for out, k, extra in ((ints(3), breaks, (10,)), (ints(3), breaks_constant, ())):
        k(x, out, *extra)
        assert out.tolist() == [1025, 1001, 1025]


def test_nested_while() -> None:
    """C-29 a: 2 programs walk a list of vectors of 3, 1 and 4 blocks."""
    m = module("""
    N = tl.dim("N")
    B = 64
    @tl.kernel
    def k(sizes: tl.Buffer[3, tl.int32], a: tl.Buffer[N], b: tl.Buffer[N], c: tl.Buffer[N]):
        task = tl.program_id(0) + 0
        vector = 0
        first = 0
        while vector < 3:
            n = sizes[vector]
            while task < first + n:
                c[task * B : task * B + B] = a[task * B : task * B + B] + b[task * B : task * B + B]
                task = task + tl.num_programs(0)
            first += n
            vector += 1
    """)
    rng = np.random.default_rng(29)
    a, b = (rng.standard_normal(512).astype(np.float32) for _ in range(2))
    c = np.full(512, np.nan, np.float32)
    m.k[2](np.array([3, 1, 4], np.int32), a, b, c)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize("start", ["x[p]", "9"])
def test_halving(start: str) -> None:
    """C-29 b: with n from memory and with a constant at first."""
    m = module(f"""
    N = tl.dim("N")
    @tl.kernel
    def k(x: tl.Buffer[N, tl.int32], out: tl.Buffer[N, tl.int32]):
        p = tl.program_id(0)
        n = {start}
        count = 0
        while n > 1:
            n = (n + 1) // 2
            count += 1
        out[p] = count
    """)
    out = ints(4)
    m.k(np.array([9, 1, 2, 100], np.int32), out)
    assert out.tolist() == ([4, 0, 1, 7] if start == "x[p]" else [4] * 4)


def test_while_with_assignment() -> None:
    """A condition that binds a name, left by break: evaluated once less than the body's start."""
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def k(x: tl.Buffer[N, tl.int32], out: tl.Buffer[2, tl.int32]):
        i = 0
        s = 0
        while (t := x[i]) > 0:
            if t == 5:
                break
            s += t
            i += 1
        out[0] = s
        out[1] = t
    """)
    for values, want in (([1, 2, 3, 0, 9], [6, 0]), ([1, 5, 3], [1, 5]), ([-4], [0, -4])):
        out = ints(2)
        m.k[1](np.array(values, np.int32), out)
        assert out.tolist() == want


def test_rebinding_offsets() -> None:
    """C-30 a as written for offsets: run-time values that happen to be 1 change nothing."""
    m = module("""
    @tl.kernel
    def k(a: tl.Buffer[16, tl.int32], out: tl.Buffer[8, tl.int32], s: tl.int32, sb: tl.int32):
        base = 0
        step = s
        for i in range(0, 8, 2):
            out[i] = a[base + i * step]
            base, step = 8, sb
    """)
    for one in (1, 2):
        out = np.zeros(8, np.int32)
        a = np.concatenate([np.arange(8), np.arange(10, 18)]).astype(np.int32)
        m.k[1](a, out, one, 1)
        assert out.tolist() == [0, 0, 12, 0, 14, 0, 16, 0]


def test_bool_carried() -> None:
    """C-30 b."""
    m = module("""
    @tl.kernel
    def k(x: tl.Buffer[4, 64, tl.bool_], out: tl.Buffer[64, tl.int32]):
        acc = tl.zeros([64], tl.bool_)
        for i in range(4):
            acc = acc | x[i, 0:64]
        out[0:64] = acc
    """)
    x = np.random.default_rng(30).random((4, 64)) < 0.3
    out = ints(64)
    m.k[1](x, out)
    np.testing.assert_array_equal(out, x.any(0).astype(np.int32))


def test_ignored_result() -> None:
    """C-31 c: a helper that stores and returns, called under a run-time condition in a loop."""
    m = module("""
    N = tl.dim("N")
    @tl.func
    def put(o, i, v):
        o[i] = v
        return v * 2
    @tl.kernel
    def k(x: tl.Buffer[N, tl.int32], out: tl.Buffer[N, tl.int32]):
        for i in range(x.shape[0]):
            if x[i] > 3:
                put(out, i, x[i] + 1)
    """)
    x = np.arange(8, dtype=np.int32)
    out = ints(8)
    m.k[1](x, out)
    assert out.tolist() == [-77] * 4 + [5, 6, 7, 8]


def test_early_return() -> None:
    m = module("""
    N = tl.dim("N")
    @tl.func
    def find(x, v):
        for i in range(x.shape[0]):
            if x[i] == v:
                return i
        return -1
    @tl.kernel
    def k(x: tl.Buffer[N, tl.int32], out: tl.Buffer[N, tl.int32], n: tl.int32):
        p = tl.program_id(0)
        if p >= n:
            return
        out[p] = find(x, p * 2) if p != 1 else 100
    """)
    x = np.array([4, 6, 0, 3, 8], np.int32)
    out = ints(5)
    m.k(x, out, 4)
    assert out.tolist() == [2, 100, 0, 1, -77]


def test_reversed_and_runtime_steps() -> None:
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def k(out: tl.Buffer[N, tl.int32], lo: tl.int32, hi: tl.int32, step: tl.int32):
        n = 0
        for i in range(10, 0, -3):
            out[n] = i
            n += 1
        for i in range(lo, hi, step):
            out[n] = i
            n += 1
    """)
    for args in ((0, 7, 2), (7, 0, -2), (3, 3, 1), (-5, 5, 5)):
        want = [*range(10, 0, -3), *range(*args)]
        out = ints(20)
        m.k[1](out, *args)
        assert out[: len(want)].tolist() == want and (out[len(want) :] == -77).all()


def test_tuples_and_swaps() -> None:
    m = module("""
    @tl.kernel
    def k(out: tl.Buffer[4, tl.int32], n: tl.int32):
        state = (0, (1, 2.0))
        a, b = 0, 1
        for i in range(n):
            a, b = b, a + b
            state = (state[0] + i, (a, state[1][1] * 2))
        out[0] = a
        out[1] = state[0]
        out[2] = state[1][0]
        out[3] = state[1][1]
    """)
    out = ints(4)
    m.k[1](out, 7)
    assert out.tolist() == [13, 21, 13, 256]


def test_types_of_rebound_numbers() -> None:
    """A number that a loop rebinds takes the type of what it meets."""
    m = module("""
    @tl.kernel
    def k(x: tl.Buffer[4, tl.float64], out: tl.Buffer[4, tl.float64]):
        best = 0
        total: tl.float64 = 0
        last = -1
        for i in range(4):
            best = best + x[i]
            total += 0.1
            last = i
        out[0] = best
        out[1] = total
        out[2] = last
    """)
    x = np.array([1.1, 2.2, 3.3, 4.4])
    out = np.zeros(4)
    m.k[1](x, out)
    assert out[0] == ((0 + x[0]) + x[1] + x[2]) + x[3] and out[1] == 0.1 + 0.1 + 0.1 + 0.1 and out[2] == 3


# ---- numbers -----------------------------------------------------------------------------------------------


@tl.kernel
def integer_operators(x: tl.Buffer[N, tl.int32], y: tl.Buffer[N, tl.int32], o: tl.Buffer[7, N, tl.int32]):
    s = slice(tl.program_id(0) * B, tl.program_id(0) * B + B)
    a, b = x[s], y[s]
    o[0, s] = a // b
    o[1, s] = a % b
    o[2, s] = tl.truncdiv(a, b)
    o[3, s] = tl.rem(a, b)
    o[4, s] = tl.where(a > b, a, b) ^ (a & b) | (a << 3)
    o[5, s] = abs(-a) >> 2
    o[6, s] = tl.cdiv(a, 5)


def test_integer_operators() -> None:
    """C-12: floor everywhere."""
    x = np.arange(-50, 50, dtype=np.int32)
    y = np.where(x % 2 == 0, 3, -7).astype(np.int32)
    o = np.zeros((7, 100), np.int32)
    integer_operators(x, y, o)
    trunc = np.abs(x) // np.abs(y) * np.sign(x) * np.sign(y)
    want = [x // y, x % y, trunc, x - trunc * y, np.where(x > y, x, y) ^ (x & y) | (x << 3), np.abs(x) >> 2, -(-x // 5)]
    np.testing.assert_array_equal(o, np.array(want, np.int32))


def test_integer_scalars_and_constants() -> None:
    """C-12: the same rules on run-time scalars, typed constants and Python numbers."""
    m = module("""
    @tl.kernel
    def k(o: tl.Buffer[12, tl.int32], a: tl.int32, b: tl.int32, c: tl.int32):
        o[0] = a // 2
        o[1] = a % b
        o[2] = c % -b
        o[3] = tl.cdiv(a * 5 - 1, 5)
        o[4] = tl.int32(-7) // 2
        o[5] = tl.int32(-7) % 3
        o[6] = tl.int32(7) % -3
        o[7] = -7 // 2
        o[8] = -7 % 3
        o[9] = tl.cdiv(-36, 5)
        o[10] = tl.int32(2147483647) // 7
        o[11] = tl.int32(1) << 31
    """)
    o = ints(12)
    m.k[1](o, -7, 3, 7)
    assert o.tolist() == [-4, 2, -2, -7, -4, 2, -2, -4, 2, -7, 306783378, -2147483648]


def test_weak_numbers() -> None:
    """C-16, C-17: wrap modulo 2^32, no folding of x * 0; literals are exact until they meet a type."""
    m = module("""
    @tl.kernel
    def k(a: tl.Buffer[1, tl.int32], f: tl.Buffer[3], d: tl.Buffer[4, tl.float64], o: tl.Buffer[1, tl.int32],
          g: tl.Buffer[6], h: tl.Buffer[4, tl.float64]):
        o[0] = (a[0] + 2000000000) + 2000000000
        for i in range(3):
            g[i] = f[i] * 0.0
            g[i + 3] = f[i] - f[i]
        log2e = 1.44269504
        h[0] = d[0] + 2e50
        h[1] = d[1] + 1.44269504
        h[2] = d[2] + log2e
        h[3] = max(1.0, float("nan"))
    """)
    o, g, h = ints(1), np.zeros(6, np.float32), np.zeros(4)
    m.k[1](np.zeros(1, np.int32), np.array([np.inf, np.nan, 3], np.float32), np.zeros(4), o, g, h)
    assert o[0] == -294967296
    np.testing.assert_array_equal(g, np.array([np.nan, np.nan, 0, np.nan, np.nan, 0], np.float32))
    assert h[0] == 2e50 and h[1] == h[2] == 1.44269504 and np.isnan(h[3])


def test_scalar_parameters() -> None:
    """C-17 b: Python numbers for parameters of every type."""
    m = module("""
    @tl.kernel
    def k(a: tl.float16, b: tl.float32, c: tl.bfloat16, d: tl.float64, e: tl.int64,
          of: tl.Buffer[4, tl.float64], oi: tl.Buffer[1, tl.int64]):
        of[0] = a
        of[1] = b
        of[2] = c
        of[3] = d
        oi[0] = e
    """)
    of, oi = np.zeros(4), np.zeros(1, np.int64)
    m.k[1](42.0, 5.0, -1.5, 0.1, 1 << 40, of, oi)
    assert of.tolist() == [42.0, 5.0, -1.5, 0.1] and oi[0] == 1099511627776


@tl.kernel
def converts(x: tl.Buffer[N], o: tl.Buffer[N]):
    p = tl.program_id(0)
    o[p * B : p * B + B] = x[p * B : p * B + B]


def test_conversions() -> None:
    """C-18: truncate, saturate, NaN gives 0."""
    x = np.array([np.inf, -np.inf, np.nan, 3e9, -1, 255.9, 256], np.float32)
    want = {
        np.int32: [2147483647, -2147483648, 0, 2147483647, -1, 255, 256],
        np.uint8: [255, 0, 0, 255, 0, 255, 255],
        np.uint32: [4294967295, 0, 0, 3000000000, 0, 255, 256],
        np.int8: [127, -128, 0, 127, -1, 127, 127],
    }
    for dtype, values in want.items():
        o = np.zeros(7, dtype)
        converts(x, o)
        assert o.tolist() == values


PROMOTIONS = [
    ("float16", "float32", "float32"), ("bfloat16", "float16", "float32"), ("int8", "uint8", "int16"),
    ("int32", "float16", "float16"), ("uint64", "int64", "int64"), ("bool_", "bool_", "int32"),
    ("bool_", "float16", "float16"), ("int16", "int32", "int32"), ("uint32", "int32", "int64"),
]  # fmt: skip


@pytest.mark.parametrize("a,b,want", PROMOTIONS)
def test_promotion(a: str, b: str, want: str) -> None:
    m = module(f"""
    @tl.kernel
    def k(x: tl.Buffer[8, tl.{a}], y: tl.Buffer[8, tl.{b}]):
        s = x[0:8] + y[0:8]
        tl.static_assert(s.dtype is tl.{want}, s.dtype.name)
        tl.static_assert((y[0] + x[0]).dtype is tl.{want})
        tl.static_assert((x[0:8] + 1).dtype is (tl.int32 if x.dtype is tl.bool_ else x.dtype))
        tl.static_assert((x[0:8] + 1.5).dtype is (x.dtype if x.dtype.is_float else tl.float32))
        tl.static_assert((x[0:8] / 2).dtype is (x.dtype if x.dtype.is_float else tl.float32))
        tl.static_assert((x[0:8] < y[0:8]).dtype is tl.bool_)
        tl.static_assert((x[0:8] + tl.program_id(0)).dtype is (tl.int32 if x.dtype is tl.bool_ else x.dtype))
    """)
    tl.compile(m.k, dtypes=(), grid=1)


# ---- tiles -------------------------------------------------------------------------------------------------


@tl.kernel
def row_sums(x: tl.Buffer[M, N], o: tl.Buffer[M]):
    p = tl.program_id(0)
    acc = tl.zeros([B])
    for j in range(0, N, B):
        acc += x[p, j : j + B]
    o[p] = tl.sum(acc)


@tl.kernel
def transpose(x: tl.Buffer[M, N], y: tl.Buffer[N, M]):
    i, j = tl.program_id(0), tl.program_id(1)
    y[j * 32 : j * 32 + 32, i * B : i * B + B] = x[i * B : i * B + B, j * 32 : j * 32 + 32].T


@tl.kernel
def outer_sum(x: tl.Buffer[M], y: tl.Buffer[N], o: tl.Buffer[M, N]):
    i, j = tl.program_id(0), tl.program_id(1)
    o[i * 32 : i * 32 + 32, j * 16 : j * 16 + 16] = x[i * 32 : i * 32 + 32][:, None] + y[j * 16 : j * 16 + 16]


@tl.kernel
def stencil(x: tl.Buffer[N], o: tl.Buffer[N]):
    i = tl.program_id(0)
    o[i] = x[i - 1] + 10 * x[i] + 100 * x[i + 1]


def test_tiles() -> None:
    seed = 7
    rng = np.random.default_rng(seed)
    x = rng.integers(-5, 6, (7, 333)).astype(np.float32)
    o = np.zeros(7, np.float32)
    row_sums(x, o)
    np.testing.assert_array_equal(o, x.sum(1))
    x = rng.standard_normal((100, 70)).astype(np.float32)
    y = np.zeros((70, 100), np.float32)
    transpose(x, y)
    np.testing.assert_array_equal(y, x.T)
    a, b = x[:, 0], x[0]
    o2 = np.zeros((100, 70), np.float32)
    outer_sum(a, b, o2)
    np.testing.assert_array_equal(o2, a[:, None] + b)


def test_outside_reads_zero() -> None:
    """Only a literal minus counts from the end; any other index past an edge is outside."""
    x = np.array([1, 2, 3, 4], np.float32)
    o = np.zeros(4, np.float32)
    stencil(x, o)
    assert o.tolist() == [210, 321, 432, 43]
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def k(x: tl.Buffer[N], o: tl.Buffer[4], C: tl.constexpr):
        o[0] = x[-1]
        o[1] = x[-C]
        o[2:4] = x[-2:]
    """)
    m.k[1](x, o, 1)
    assert o.tolist() == [4, 0, 3, 4]


def test_shared_updates() -> None:
    m = module("""
    @tl.kernel
    def k(x: tl.Buffer[64], o: tl.Buffer[64]):
        s = tl.alloc_shared([64])
        s[:] = x[0:64]
        s += 1
        s[...] = s * 2
        o[0:64] = s
    """)
    x = np.arange(64, dtype=np.float32)
    o = np.zeros(64, np.float32)
    m.k[1](x, o)
    np.testing.assert_array_equal(o, (x + 1) * 2)


def test_accumulation_over_edges() -> None:
    """``t op= x`` leaves t alone where x is invalid; a free t takes x's extent."""
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def k(x: tl.Buffer[N], y: tl.Buffer[N], o: tl.Buffer[5]):
        s = tl.zeros([64])
        p = tl.ones([64])
        d = tl.zeros([64])
        for j in range(0, N, 64):
            s += x[j : j + 64]
            p *= y[j : j + 64]
            d += x[j : j + 64] * y[j : j + 64]
        o[0] = tl.sum(s)
        o[1] = tl.prod(p)
        o[2] = tl.sum(d)
        f = tl.zeros([64])
        f += x[0:64]
        o[3] = tl.max(f)
        o[4] = tl.min(f * f)
    """)
    for n in (3, 64, 100):
        x = -np.arange(1, n + 1, dtype=np.float32)
        y = np.where(np.arange(n) % 2 == 0, 2, 0.5).astype(np.float32)
        o = np.zeros(5, np.float32)
        m.k[1](x, y, o)
        want = [x.sum(), y.prod(), (x * y).sum(), -1, 1]
        assert o.tolist() == want, n


# ---- grid style


@tl.kernel
def grid_softmax(A: tl.Buffer[M, N], Y: tl.Buffer[M, N]):
    for i in tl.grid(M):
        top = -1e30
        for j in tl.grid(N):
            top = max(top, A[i, j])
        total = 0.0
        for j in tl.grid(N):
            total += tl.exp(A[i, j] - top)
        for j in tl.grid(N):
            Y[i, j] = tl.exp(A[i, j] - top) / total


@tl.kernel
def grid_norm(A: tl.Buffer[M, N], Y: tl.Buffer[M, N]):
    for i in tl.grid(M):
        mean = 0.0
        for j in tl.grid(N):
            mean += A[i, j]
        mean = mean / N
        var = 0.0
        for j in tl.grid(N):
            d = A[i, j] - mean
            var += d * d
        for j in tl.grid(N):
            Y[i, j] = (A[i, j] - mean) * tl.rsqrt(var / N + 1e-5)


def test_grid_locals() -> None:
    """C-07 and softmax as loops: a local that an inner grid loop rebinds is reduced over it."""
    rng = np.random.default_rng(5)
    for m, n in ((1, 3), (7, 33), (20, 17)):
        a = rng.standard_normal((m, n)).astype(np.float32)
        y = np.full((m, n), np.nan, np.float32)
        grid_softmax(a, y)
        e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
    row = np.array([[10, 11, 12]], np.float32)
    y = np.zeros((1, 3), np.float32)
    grid_norm(row, y)
    np.testing.assert_allclose(y, [[-1.224736, 0, 1.224736]], rtol=1e-5, atol=1e-6)


def test_grid_statements() -> None:
    """Sums in any loop order, a second nest, maxima, conditional expressions."""
    m = module("""
    M, N, K = tl.dims("M N K")
    @tl.kernel
    def product(A: tl.Buffer[M, K], W: tl.Buffer[N, K], b: tl.Buffer[N], C: tl.Buffer[M, N], D: tl.Buffer[M, N]):
        for k, j, i in tl.grid(K, N, M):
            C[i, j] += W[j, k] * A[i, k]
        for i, j in tl.grid(M, N):
            v = C[i, j] + b[j]
            D[i, j] = v if v > 0 else v * 0.5
    @tl.kernel
    def maxima(D: tl.Buffer[M, N], top: tl.Buffer[M]):
        for i, j in tl.grid(M, N):
            top[i] = max(top[i], D[i, j])
    """)
    rng = np.random.default_rng(6)
    a, w = rng.integers(-3, 4, (30, 21)), rng.integers(-3, 4, (17, 21))
    b, c = rng.integers(-3, 4, 17), rng.integers(-3, 4, (30, 17))
    args = [x.astype(np.float32) for x in (a, w, b, c)]
    d, top = np.zeros((30, 17), np.float32), np.full(30, -1e9, np.float32)
    m.product(*args, d)
    m.maxima(d, top)
    product = c + a @ w.T
    np.testing.assert_array_equal(args[3], product)
    v = product + b
    want = np.where(v > 0, v, v * 0.5).astype(np.float32)
    np.testing.assert_array_equal(d, want)
    np.testing.assert_array_equal(top, want.max(1))


FP8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


@pytest.mark.parametrize("name", FP8)
def test_fp8_arithmetic(name: str) -> None:
    """Arithmetic of 8-bit floats rounds each result to their type, as ml_dtypes does."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    m = module(f"""
    N = tl.dim("N")
    @tl.kernel
    def k(x: tl.Buffer[N, tl.{name}], y: tl.Buffer[N, tl.{name}], o: tl.Buffer[6, N, tl.{name}]):
        s = slice(tl.program_id(0) * 64, tl.program_id(0) * 64 + 64)
        a, b = x[s], y[s]
        tl.static_assert((a + b).dtype is tl.{name} and (a * 2).dtype is tl.{name})
        o[0, s] = a + b
        o[1, s] = a * 0.3
        o[2, s] = -a
        o[3, s] = tl.maximum(a, b)
        o[4, s] = tl.where(a < b, a, 1.5)
        o[5, s] = tl.max(tl.abs(a)) - b
    """)
    dtype = getattr(ml_dtypes, name)
    rng = np.random.default_rng(8)
    x, y = (rng.standard_normal(64).astype(dtype) for _ in range(2))
    o = np.zeros((6, 64), dtype)
    m.k(x, y, o)
    f, g = x.astype(np.float32), y.astype(np.float32)
    third = np.float32(np.array(0.3).astype(dtype))
    want = [f + g, f * third, -f, np.maximum(f, g), np.where(f < g, f, 1.5), np.abs(f).max() - g]
    np.testing.assert_array_equal(o.astype(np.float32), np.array(want).astype(dtype).astype(np.float32))


def test_load_other() -> None:
    """C-08: elements past the edge have the value `other`, and count."""
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def k(x: tl.Buffer[N], o: tl.Buffer[1], OTHER: tl.constexpr):
        o[0] = tl.sum(tl.load(x.at[0:256], other=OTHER))
    @tl.kernel
    def masked(x: tl.Buffer[N], o: tl.Buffer[256]):
        i = tl.arange(0, 256)
        tl.store(o.at[0:256], tl.load(x.at[0:256], mask=i % 2 == 0, other=-1))
    """)
    for dtype, cases in (
        (np.float32, [(0.0, 16), (np.nan, np.nan), (-np.inf, -np.inf), (7, 1696), (0, 16)]),
        (np.int32, [(-1, -224)]),
    ):
        for other, want in cases:
            o = np.zeros(1, dtype)
            m.k[1](np.ones(16, dtype), o, float(other) if dtype is np.float32 and other != 0 else other)
            np.testing.assert_array_equal(o, np.array([want], dtype))
    o = np.zeros(256, np.float32)
    m.masked[1](np.ones(16, np.float32), o)
    assert o.tolist() == [1, -1] * 8 + [-1] * 240
