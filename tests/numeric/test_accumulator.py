"""Accumulators that are loaded keep their extent: where the product is not valid they are left alone."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("rows,cols", [(60, 50), (40, 30), (60, 33), (40, 50), (64, 64)])
def test_a_loaded_accumulator(monkeypatch, rows, cols, loop):
    monkeypatch.setenv("TILELANG_SIM_CHECK", "all")

    @tl.kernel
    def k(A: tl.Buffer, B: tl.Buffer, C: tl.Buffer, D: tl.Buffer):
        pm = tl.program_id(0)
        acc = C[pm * 64 : (pm + 1) * 64, 0:64]
        if loop:
            for kk in range(0, A.shape[1], 16):
                acc += tl.dot(A[pm * 64 : (pm + 1) * 64, kk : kk + 16], B[kk : kk + 16, 0:64])
        else:
            acc += tl.dot(A[pm * 64 : (pm + 1) * 64, 0:16], B[0:16, 0:64])
        D[pm * 64 : (pm + 1) * 64, 0:64] = acc

    depth = 48 if loop else 16
    rng = np.random.default_rng(5)
    a = rng.integers(-3, 4, (rows, depth)).astype(np.float16)
    b = rng.integers(-3, 4, (depth, cols)).astype(np.float16)
    c = rng.integers(-3, 4, (60, 50)).astype(np.float32)
    d = np.full((64, 64), 7, np.float32)
    k(a, b, c, d)
    want = np.full((64, 64), 7.0)
    want[:60, :50] = c
    m, n = min(rows, 60), min(cols, 50)
    want[:m, :n] += (a.astype(np.float64) @ b.astype(np.float64))[:m, :n]
    np.testing.assert_array_equal(d, want)
