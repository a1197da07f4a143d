"""Order of memory effects, aliases, tensors of more than 2^31 bytes, nothing written outside."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
from num_util import F16, F32, VIEWS, Out, given, module

import tilelang as tl


@pytest.mark.parametrize("waves", [1, 4, 8])
def test_later_stores_win(waves: int) -> None:
    """C-37: program order within a program, also of overlapping stores by different waves."""
    k = module(
        """
        @tl.kernel(num_warps=waves)
        def k(X: tl.Buffer[256], O: tl.Buffer[256]):
            x = X[0:256]
            O[0:256] = x * 2
            O[192:256] = X[192:256] * 3
            O[200:201] = X[1:2] * 7
        """,
        waves=waves,
    )
    x = np.arange(256, dtype=F32)
    for _ in range(10):
        out = Out(256, F32)
        k[1](x, out.view)
        want = np.where(np.arange(256) < 192, x * 2, x * 3)
        want[200] = 7
        out.equal(want)


@pytest.mark.parametrize("waves", [1, 4])
def test_reads_see_own_writes(waves: int) -> None:
    """A program reads back what its other waves stored."""
    k = module(
        """
        @tl.kernel(num_warps=waves)
        def k(X: tl.Buffer[512], T: tl.Buffer[512], O: tl.Buffer[512]):
            T[0:512] = X[0:512] + 1
            O[0:512] = T[0:512] * 2
            T[1:512] = O[0:511]
            O[0:512] = T[0:512]
        """,
        waves=waves,
    )
    x = np.arange(512, dtype=F32)
    t, o = Out(512, F32), Out(512, F32)
    k[1](x, t.view, o.view)
    want = x + 1
    want[1:] = (x[:511] + 1) * 2
    t.equal(want)
    o.equal(want)


@pytest.mark.parametrize("waves", [1, 4])
def test_loop_carries_memory(waves: int) -> None:
    """Each turn reads, shifted, what the turn before stored."""
    k = module(
        """
        @tl.kernel(num_warps=waves)
        def k(T: tl.Buffer[N], n: tl.int32):
            for i in range(n):
                t = T[0:511]
                T[1:512] = t + 1
        """,
        waves=waves,
    )
    for n in (0, 1, 5):
        out = Out(512, F32)
        out.view[:] = np.arange(512) % 37
        want = out.view.copy()
        for _ in range(n):
            want[1:] = want[:-1] + 1
        k[1](out.view, n)
        out.equal(want)


@pytest.mark.parametrize("waves", [1, 4])
def test_memory_order_across_branches(waves: int) -> None:
    """A store, then loads in a branch (taken or not) and behind it."""
    k = module(
        """
        @tl.kernel(num_warps=waves)
        def k(T: tl.Buffer[N], O: tl.Buffer[N], c: tl.int32):
            T[0:512] = T[0:512] + 1
            if c > 0:
                O[0:512] = T[0:512].to(tl.float32)
            O[0:511] = T[1:512]
            if c > 1:
                T[3:512] = O[0:509]
            O[0:510] = T[2:512]
        """,
        waves=waves,
    )
    for c in (0, 1, 2):
        t, o = Out(512, F32), Out(512, F32)
        t.view[:] = np.arange(512)
        o.view[:] = 0
        a, b = t.view.copy() + 1, o.view.copy()
        if c > 0:
            b[:] = a
        b[:511] = a[1:]
        if c > 1:
            a[3:] = b[:509]
        b[:510] = a[2:]
        k[1](t.view, o.view, c)
        t.equal(a)
        o.equal(b)


def test_scalar_reads_of_stored_tiles() -> None:
    k = module("""
        @tl.kernel(num_warps=4)
        def k(T: tl.Buffer[512], O: tl.Buffer[512]):
            T[0:512] = tl.arange(0, 512) * 2
            s = T[500] + T[3]
            O[0:512] = T[0:512] + s
            for i in range(5):
                O[i] = O[511 - i] + O[i]
    """)
    t, o = Out(512, F32), Out(512, F32)
    k[1](t.view, o.view)
    want = np.arange(512) * 2.0 + 1006
    for i in range(5):
        want[i] += want[511 - i]
    o.equal(want)


def test_dot_reads_what_was_stored() -> None:
    """A matrix loop over a tensor that the same program has just written."""
    k = module("""
        @tl.kernel(num_warps=4)
        def k(A: tl.Buffer[M, K], T: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
            for j in range(0, A.shape[1], 32):
                T[0:64, j : j + 32] = A[0:64, j : j + 32] * 2
            acc = tl.zeros([64, 64], dtype=tl.float32)
            for j in range(0, A.shape[1], 32):
                acc += tl.dot(T[0:64, j : j + 32], B[j : j + 32, 0:64])
            C[0:64, 0:64] = acc
    """)
    rng = np.random.default_rng(0)
    for kk in (20, 64, 128):
        a, b = rng.integers(-3, 4, (64, kk)).astype(F16), rng.integers(-3, 4, (kk, 64)).astype(F16)
        t, c = Out((64, kk), F16), Out((64, 64), F32)
        k[1](a, t.view, b, c.view)
        t.equal(a * 2)
        c.equal(2 * a.astype(F32) @ b.astype(F32))


def test_aliased_arguments() -> None:
    """In place, and an input that overlaps the output shifted: in order, a program sees its own writes."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[N]):
            for i in range(0, O.shape[0], 64):
                O[i : i + 64] = X[i : i + 64] + 1
    """)
    x = np.arange(300, dtype=F32)
    k[1](x, x)
    np.testing.assert_array_equal(x, np.arange(300) + 1)
    x = np.arange(300, dtype=F32)
    want = x.copy()
    for i in range(0, 299, 64):
        want[1:][i : i + 64] = want[:-1][i : i + 64] + 1
    k[1](x[:-1], x[1:])
    np.testing.assert_array_equal(x, want)


def test_aliased_matmul() -> None:
    """The output overlaps A: one program, all of A is read before C is written."""
    k = module("""
        @tl.kernel
        def k(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
            acc = tl.zeros([64, 64], dtype=tl.float32)
            for j in range(0, A.shape[1], 32):
                acc += tl.dot(A[0:64, j : j + 32], B[j : j + 32, 0:64])
            C[0:64, 0:64] = acc
    """)
    rng = np.random.default_rng(1)
    a, b = rng.integers(-3, 4, (64, 64)).astype(F32), rng.integers(-3, 4, (64, 64)).astype(F32)
    want = a @ b
    k[1](a, b, a)
    np.testing.assert_array_equal(a, want)


def test_overlapping_output_is_refused() -> None:
    """C-09: the error names the parameter; nothing is written."""
    k = module("""
        @tl.kernel
        def k(O: tl.Buffer[M, N]):
            O[0:4, 0:4] = tl.zeros([4, 4])
    """)
    base = np.full(4, 5, F32)
    view = np.lib.stride_tricks.as_strided(base, (3, 4), (0, 4))
    with pytest.raises(tl.LaunchError, match="O"):
        k[1](view)
    assert (base == 5).all()


def test_numpy_views() -> None:
    """C-10: strided columns and reversed views, as input and output."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[N]):
            p = tl.program_id(0)
            O[p * 4 : p * 4 + 4] = X[p * 4 : p * 4 + 4]
    """)
    base = np.zeros((2, 2))
    one = module("""
        @tl.kernel
        def k(O: tl.Buffer[N]):
            O[0] = 1
    """)
    one[1](base[:, 0])
    assert base.tolist() == [[1, 0], [0, 0]]
    x = np.arange(10, dtype=F32)
    o = np.zeros(10, F32)
    k(x[::-1], o)
    assert o.tolist() == list(range(9, -1, -1))
    o = np.zeros(10, F32)
    k(x, o[::-1])
    assert o.tolist() == list(range(9, -1, -1))


def test_rank_zero_and_no_rows() -> None:
    """C-11."""
    add = module("""
        @tl.kernel
        def k(A: tl.Buffer[()], B: tl.Buffer[()], O: tl.Buffer[()]):
            O[()] = A[()] + B[()]
    """)
    o = np.zeros((), F32)
    add[1](np.array(2, F32), np.array(3, F32), o)
    assert o == 5
    rows = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
            i = tl.program_id(0)
            O[i, 0:128] = X[i, 0:128] + 1
    """)
    o = np.zeros((2, 128), F32)
    rows(np.ones((2, 128), F32), o)
    assert (o == 2).all()
    rows(np.ones((0, 128), F32), np.zeros((0, 128), F32))
    o = np.zeros((2, 128), F32)
    rows[(0,)](np.ones((2, 128), F32), o)
    assert (o == 0).all()
    with pytest.raises(tl.LaunchError, match="rank 2|2-dimensional|2 dim"):
        rows(np.ones(128, F32), o)


@pytest.mark.parametrize("view", VIEWS)
def test_scalar_accesses(view: str) -> None:
    """One element at a time; outside reads 0 and stores are dropped."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N]):
            i, j = tl.program_id(0), tl.program_id(1)
            O[i, j] = X[i - 1, j] + X[i, j + 1] * 100
            O[i + 1000, j] = 5
    """)
    for dtype in (F32, F16, np.int8, np.int64):
        x = np.arange(12).reshape(3, 4).astype(dtype) % 2
        o = Out((3, 4), dtype, view)
        k[(3, 4)](given(x, view), o.view)
        p = np.pad(x, 1).astype(np.int64)
        o.equal(p[:-2, 1:-1] + p[1:-1, 2:] * 100)


def sparse(nbytes: int) -> np.ndarray:
    """Zeroed memory that costs nothing until it is touched."""
    return np.frombuffer(mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000), np.uint8)


def big_copy(rows: int, cols: int, row_step: int, dtype: Any, transposed: bool) -> None:
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N], at: tl.int64, to: tl.int64):
            O[to : to + 8, 0:64] = X[at : at + 8, 0:64] + 1
    """)
    size = np.dtype(dtype).itemsize
    x = np.lib.stride_tricks.as_strided(
        sparse(rows * row_step * size).view(dtype), (rows, cols), (row_step * size, size)
    )
    o = np.lib.stride_tricks.as_strided(
        sparse(rows * row_step * size).view(dtype), (rows, cols), (row_step * size, size)
    )
    for at in (0, rows - 8, rows - 3, rows // 2):
        n = min(8, rows - at)
        x[at : at + 8, :] = np.arange(n * cols).reshape(n, cols) % 100
        k[1](x, o, at, at)
        np.testing.assert_array_equal(o[at : at + 8], x[at : at + 8] + 1)
        assert not o[at - 1 : at].any() and not o[at + 8 : at + 9].any()
        x[at : at + 8] = 0
        o[at : at + 8] = 0


@pytest.mark.parametrize("dtype", [np.int8, F16, np.int32], ids=str)
def test_more_than_two_gigabytes(dtype: Any) -> None:
    """Row offsets beyond 2^31 bytes and 2^32 elements, dense and strided."""
    big_copy(70, 64, (1 << 32) // 64 + 3, dtype, False)


def test_just_around_two_gigabytes() -> None:
    """Spans right below, at and above 2^31 bytes."""
    for delta in (-64, 0, 64):
        rows = (1 << 31) // 256 + delta // 64
        big_copy(rows, 64, 256, np.int8, False)


def test_big_matmul_operand() -> None:
    """K runs across more than 2^31 bytes: A is [K, M] with far rows."""
    k = module("""
        @tl.kernel
        def k(A: tl.Buffer[K, M], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
            acc = tl.zeros([32, 32], dtype=tl.float32)
            for j in range(0, A.shape[0], 16):
                acc += tl.dot(A[j : j + 16, 0:32].T, B[j : j + 16, 0:32])
            C[0:32, 0:32] = acc
    """)
    rng = np.random.default_rng(5)
    step = (1 << 31) // 32
    a = np.lib.stride_tricks.as_strided(sparse(50 * step * 2).view(F16), (50, 32), (step * 2, 2))
    a[...] = rng.integers(-3, 4, (50, 32))
    b = rng.integers(-3, 4, (50, 32)).astype(F16)
    c = Out((32, 32), F32)
    k[1](a, b, c.view)
    c.equal(a.astype(F32).T @ b.astype(F32))


@pytest.mark.parametrize("waves", [1, 4])
def test_scratch_behind_a_while(waves: int) -> None:
    """The condition's reduction is the last to use the exchange area before the one behind the loop."""
    k = module(
        """
        @tl.kernel(num_warps=waves)
        def k(X: tl.Buffer[M, 256], O: tl.Buffer[3]):
            i = 0
            while tl.max(X[i, 0:256]) > 0:
                O[2] = i
                i += 1
            O[0] = tl.sum(X[i, 0:256] * 2)
            O[1] = i
        """,
        waves=waves,
    )
    x = np.ones((5, 256), F32)
    x[3] = -1
    out = Out(3, F32)
    k[1](x, out.view)
    out.equal([-512, 3, 2])


def test_product_in_place() -> None:
    """A is overwritten behind the matrix loop that reads it, by all waves, with more loads under way."""
    k = module("""
        @tl.kernel(num_warps=4)
        def k(A: tl.Buffer[M, K], B: tl.Buffer[K, N]):
            acc = tl.zeros([64, 64], dtype=tl.float32)
            for j in range(0, A.shape[1], 32):
                acc += tl.dot(A[0:64, j : j + 32], B[j : j + 32, 0:64])
            A[0:64, 0:64] = acc
            acc = tl.zeros([64, 64], dtype=tl.float32)
            for j in range(0, A.shape[1], 32):
                acc += tl.dot(A[0:64, j : j + 32], B[j : j + 32, 0:64])
            A[0:64, 0:64] = acc
    """)
    rng = np.random.default_rng(6)
    for n in (64, 33):
        a, b = rng.integers(-2, 3, (n, n)).astype(F32), rng.integers(-2, 3, (n, n)).astype(F32)
        want = a @ b @ b
        k[1](a, b)
        np.testing.assert_array_equal(a, want)
