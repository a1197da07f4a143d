"""Matrix multiplication: tiles, dtypes, sizes, layouts of the tensors, against float64."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from num_util import BF16, F16, F32, VIEWS, Out, accumulation, given, module

import tilelang as tl

M, N, K = tl.dims("M N K")


@cache
def matmul(bm: int, bn: int, bk: int, shared: bool = True, waves: int | None = None, stages: int | None = None) -> Any:
    @tl.kernel(num_warps=waves, num_stages=stages)
    def with_shared(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        i, j = tl.program_id(0), tl.program_id(1)
        a = tl.alloc_shared([bm, bk])
        b = tl.alloc_shared([bk, bn])
        acc = tl.zeros([bm, bn], dtype=tl.float32)
        for k in range(0, K, bk):
            a[:, :] = A[i * bm : (i + 1) * bm, k : k + bk]
            b[:, :] = B[k : k + bk, j * bn : (j + 1) * bn]
            acc += tl.dot(a, b)
        C[i * bm : (i + 1) * bm, j * bn : (j + 1) * bn] = acc

    @tl.kernel(num_warps=waves, num_stages=stages)
    def without(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        i, j = tl.program_id(0), tl.program_id(1)
        acc = tl.zeros([bm, bn], dtype=tl.float32)
        for k in range(0, K, bk):
            acc += tl.dot(A[i * bm : (i + 1) * bm, k : k + bk], B[k : k + bk, j * bn : (j + 1) * bn])
        C[i * bm : (i + 1) * bm, j * bn : (j + 1) * bn] = acc

    return with_shared if shared else without


def small(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Integers that every product and sum here holds exactly."""
    return rng.integers(-3, 4, shape).astype(dtype)


def check_exact(
    kernel: Any, m: int, n: int, k: int, dtype: Any, views: tuple[str, str, str] = ("rows",) * 3, seed: int = 0
) -> None:
    rng = np.random.default_rng(seed)
    a, b = small(rng, (m, k), dtype), small(rng, (k, n), dtype)
    out = Out((m, n), dtype, views[2])
    kernel(given(a, views[0]), given(b, views[1]), out.view)
    out.equal(a.astype(np.float64) @ b.astype(np.float64))


DTYPES = [F16, BF16, F32]
TILES = [
    (64, 128, 32),
    (16, 256, 64),
    (128, 128, 128),
    (128, 128, 64),
    (48, 80, 40),
    (33, 17, 100),
    (16, 16, 16),
    (32, 32, 8),
]
SIZES = [(1, 1, 1), (17, 40, 3), (64, 64, 64), (65, 129, 100), (130, 70, 257), (3, 200, 31)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_tiles(tile: tuple[int, int, int], dtype: Any) -> None:
    for i, (m, n, k) in enumerate(SIZES):
        check_exact(matmul(*tile, shared=i % 2 == 0), m, n, k, dtype, seed=i)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_zero_sizes(dtype: Any) -> None:
    """No rows or columns: nothing is written; no k: zeros."""
    for m, n, k in ((0, 5, 5), (5, 0, 5), (5, 5, 0), (0, 0, 0)):
        check_exact(matmul(64, 64, 64), m, n, k, dtype)


def test_tall() -> None:
    check_exact(matmul(64, 64, 64), 17, 4096, 3, F16)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ragged_big(dtype: Any) -> None:
    check_exact(matmul(128, 128, 64), 1000, 777, 513, dtype)


@pytest.mark.parametrize("waves", [1, 2, 4, 8, 16])
def test_waves(waves: int) -> None:
    check_exact(matmul(128, 64, 32, waves=waves), 140, 70, 100, F16)


def test_256_with_8_waves() -> None:
    check_exact(matmul(256, 256, 64, waves=8), 300, 260, 130, F16)
    check_exact(matmul(256, 256, 64, waves=8), 256, 256, 128, BF16)


@pytest.mark.parametrize("stages", [1, 2])
def test_stages(stages: int) -> None:
    for k in (0, 1, 31, 32, 33, 64, 200):
        check_exact(matmul(64, 64, 32, stages=stages), 70, 65, k, F16)


@pytest.mark.parametrize("view_b", VIEWS)
@pytest.mark.parametrize("view_a", VIEWS)
def test_operand_views(view_a: str, view_b: str) -> None:
    """All layouts of both operands; what lies in the gaps is NaN."""
    kernel = matmul(64, 32, 32)
    for i, (m, n, k) in enumerate(((70, 40, 72), (65, 33, 35))):
        for dtype in (F16, F32):
            out = VIEWS[(VIEWS.index(view_a) + 2 * VIEWS.index(view_b) + i) % len(VIEWS)]
            check_exact(kernel, m, n, k, dtype, (view_a, view_b, out), seed=i)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("k", [1, 63, 512, 2048])
def test_random(dtype: Any, k: int) -> None:
    rng = np.random.default_rng(k)
    m, n = 40, 50
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    out = Out((m, n), dtype)
    matmul(64, 64, 64)(a, b, out.view)
    out.close(a.astype(np.float64) @ b.astype(np.float64), 2, accumulation(a, b))


def test_f32_is_not_narrowed() -> None:
    """C-26 a: 16 + 2^-16 exactly."""
    out = Out((16, 16), F32)
    matmul(16, 16, 16)(np.ones((16, 16), F32), np.full((16, 16), 1 + 2.0**-20, F32), out.view)
    out.equal(np.full((16, 16), 16 + 2.0**-16))


def test_f16_accumulates_in_f32() -> None:
    """C-26 b, c."""
    for value, want in ((1.0, 8192.0), (0.1, 81.875)):
        out = Out((16, 16), F16)
        matmul(64, 64, 128)(np.ones((16, 8192), F16), np.full((8192, 16), value, F16), out.view)
        if value == 1:
            out.equal(np.full((16, 16), want))
        else:
            a = float(np.float16(0.1)) * 819.2
            assert a * 10 == 8192 * float(np.float16(0.1))
            out.equal(np.full((16, 16), np.float16(8192 * float(np.float16(0.1)))))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_and_inf_spread() -> None:
    """C-26 d: a signalling NaN in A makes its row NaN; inf * 0 too; other rows are not touched."""
    a, b = np.ones((20, 40), F32), np.ones((40, 24), F32)
    a.view(np.uint32)[3, 7] = 0x7F800001
    a[5, 2] = np.inf
    b[2, 9] = 0
    out = Out((20, 24), F32)
    matmul(32, 32, 32)(a, b, out.view)
    out.equal(a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("view", ["sliced", "rows"])
def test_neighbours_are_not_multiplied(view: str) -> None:
    """A k tail with NaN and inf right behind the rows (dense: the next row's) does not leak."""
    rng = np.random.default_rng(4)
    for dtype in DTYPES:
        for k in (1, 31, 33, 70):
            a, b = small(rng, (40, k), dtype), small(rng, (k, 40), dtype)
            out = Out((40, 40), dtype)
            matmul(32, 32, 32)(given(a, view), given(b, view), out.view)
            out.equal(a.astype(np.float64) @ b.astype(np.float64))
    a = np.ones((3, 5), F32)
    a[1, 0] = np.nan  # the next row starts with it
    out = Out((3, 3), F32)
    matmul(16, 16, 16)(a, np.ones((5, 3), F32), out.view)
    out.equal([[5] * 3, [np.nan] * 3, [5] * 3])


def test_fixed_sizes_and_listing_form() -> None:
    """Sizes in the annotations; edges past every dimension."""
    m, n, k = 100, 77, 51
    kernel = module(
        """
        @tl.kernel
        def k(A: tl.Buffer[m, kk], B: tl.Buffer[kk, n], C: tl.Buffer[m, n]):
            p, q = tl.program_id(0), tl.program_id(1)
            a, b = tl.alloc_shared([64, 64]), tl.alloc_shared([64, 64])
            acc = tl.zeros([64, 64], dtype=tl.float32)
            for j in range(0, kk, 64):
                a[:, :] = A[p * 64 : (p + 1) * 64, j : j + 64]
                b[:, :] = B[j : j + 64, q * 64 : (q + 1) * 64]
                tl.sync_threads()
                acc += tl.dot(a, b)
            C[p * 64 : (p + 1) * 64, q * 64 : (q + 1) * 64] = acc
        """,
        m=m,
        n=n,
        kk=k,
    )
    for dtype in DTYPES:
        check_exact(kernel, m, n, k, dtype)
    with pytest.raises(tl.LaunchError):
        check_exact(kernel, m, n, k + 1, F16)


def test_output_of_another_dtype() -> None:
    rng = np.random.default_rng(8)
    a, b = small(rng, (70, 40), F16), small(rng, (40, 33), F16)
    for dtype in (F32, BF16, np.dtype(np.int32), np.dtype(np.int8)):
        out = Out((70, 33), dtype)
        matmul(64, 64, 32)(a, b, out.view)
        want = a.astype(np.float64) @ b.astype(np.float64)
        out.equal(np.clip(want, -128, 127) if dtype == np.int8 else want.astype(np.float32))
