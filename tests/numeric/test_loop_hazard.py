"""Short matrix loops: what a turn leaves in registers is old enough for the first matrix instruction of the next."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tilelang as tl


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32])
@pytest.mark.parametrize("tile", [(64, 16, 16), (16, 64, 16), (32, 32, 32), (16, 16, 32), (64, 32, 16)])
@pytest.mark.parametrize("transposed", [False, True])
def test_short_loops(monkeypatch, tile, dtype, transposed):
    monkeypatch.setenv("TILELANG_SIM_CHECK", "all")
    bm, bn, bk = tile

    @tl.kernel
    def k(A: tl.Buffer, B: tl.Buffer, C: tl.Buffer):
        pm, pn = tl.program_id(0), tl.program_id(1)
        acc = tl.zeros([bm, bn], dtype=tl.float32)
        for kk in range(0, A.shape[1], bk):
            acc += tl.dot(A[pm * bm : (pm + 1) * bm, kk : kk + bk], B[kk : kk + bk, pn * bn : (pn + 1) * bn])
        C[pm * bm : (pm + 1) * bm, pn * bn : (pn + 1) * bn] = acc

    rng = np.random.default_rng(7041)
    a = rng.integers(-3, 4, (100, 160)).astype(dtype)
    b = rng.integers(-3, 4, (96, 160) if transposed else (160, 96)).astype(dtype)
    b = b.T if transposed else b
    c = np.zeros((100, 96), dtype)
    k(a, b, c)
    np.testing.assert_array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype))
