"""A plain index outside of its tensor: nothing of the tile is valid, whatever becomes of it, and nothing is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from num_util import BF16, F16, F32, Out, given, module

import tilelang as tl

X = np.arange(1, 5 * 6 * 16 + 1, dtype=F32).reshape(5, 6, 16)
INDICES = (-7, -1, 0, 4, 5, 6, 1 << 33)


def ways(i: int) -> list[str]:
    """Where an index is known: captured in a sum, an argument, loaded, a loop's variable, at trace time."""
    return ["p + c", "p", "I[0]", "r"] + (["c"] if i >= 0 else [])


@pytest.mark.parametrize("i", INDICES)
@pytest.mark.parametrize("view", ["rows", "columns", "negative", "steps"])
def test_load(i: int, view: str) -> None:
    for expr in ways(i):
        k = module(
            f"""
            @tl.kernel(grid=1)
            def k(
                X: tl.Buffer[M, 6, 16], I: tl.int64[1], p: tl.int64,
                Y: tl.Buffer[4, 16], V: tl.Buffer[16], S: tl.Buffer[4],
            ):
                for r in range(p, p + 1):
                    x = tl.load(X.at[{expr}, 1, 0:16], other=7.0)
                    Y[0, 0:16] = x
                    x = X[{expr}, 2, 0:16]
                    Y[1, 0:16] = x
                    Y[2, 0:16] = x.fill(3)
                    Y[3, 0:16] = tl.exp(x * 0) + 1
                    V[0:16] = tl.where(x.valid, tl.full([16], 1.0, tl.float32), 0.0)
                    S[0] = tl.sum(x, axis=0)
                    S[1] = tl.max(x, axis=0)
                    S[2] = tl.min(x, axis=0)
                    S[3] = tl.sum(tl.exp(x * 0), axis=0)
            """,
            c=i,
        )
        x, y, v, s = given(X, view), Out((4, 16), F32), Out(16, F32), Out(4, F32)
        k(x, np.array([i]), 0 if expr == "p + c" else i, y.view, v.view, s.view)
        ok, want = 0 <= i < 5, np.full((4, 16), np.nan, F32)
        want[0] = X[i, 1] if ok else 7
        want[2] = X[i, 2] if ok else 3
        if ok:
            want[1], want[3] = X[i, 2], 2
        y.equal(want)
        v.equal(np.full(16, float(ok), F32))
        r = X[i, 2] if ok else np.zeros(0)
        s.equal([r.sum(), r.max(initial=-np.inf), r.min(initial=np.inf), r.size])


@pytest.mark.parametrize("i", INDICES)
@pytest.mark.parametrize("dims", ["i:j", ":ij", "ij:", ":i:", "i::", "::i"])
def test_any_dimension(dims: str, i: int) -> None:
    """The index in front, in the middle and at the end; two of them, of which either may be outside."""
    shape = (5, 6, 7)
    x = np.random.default_rng(1).standard_normal(shape).astype(F32)
    slices = [d for d, c in enumerate(dims) if c == ":"]
    caps = tuple((4, 8, 8)[d] for d in slices)
    for j in (-1, 3, 9) if "j" in dims else (3,):
        index = ", ".join({"i": "p", "j": "q"}.get(c) or f"0:{(4, 8, 8)[d]}" for d, c in enumerate(dims))
        sizes = ", ".join(map(str, caps))
        k = module(
            f"""
            @tl.kernel(grid=1)
            def k(X: tl.Buffer[5, 6, 7], p: tl.int64, q: tl.int64, Y: tl.Buffer[M, N, K], T: tl.Buffer[{sizes}]):
                x = X[{index}]
                T[{", ".join(f"0:{c}" for c in caps)}] = x
                Y[{index}] = x.fill(9)
            """
        )
        full = tuple(min(c, shape[d]) for c, d in zip(caps, slices))
        at = tuple({"i": i, "j": j}[c] if c != ":" else slice(0, (4, 8, 8)[d]) for d, c in enumerate(dims))
        ok = all(0 <= a < shape[d] for d, a in enumerate(at) if not isinstance(a, slice))
        t, y = Out(caps, F32), Out(shape, F32)
        k(x, i, j, y.view, t.view)
        want_t, want_y = np.full(caps, np.nan, F32), np.full(shape, np.nan, F32)
        if ok:
            want_t[tuple(slice(0, n) for n in full)] = x[at]
            want_y[at] = x[at]
        t.equal(want_t)
        y.equal(want_y)


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("cols", [0, 1, 16, 21])
def test_sizes_of_0_and_1(rows: int, cols: int) -> None:
    k = module(
        """
        @tl.kernel(grid=3)
        def k(X: tl.Buffer[M, N], Y: tl.Buffer[5, 32], S: tl.Buffer[5]):
            p = tl.program_id(0) - 1
            x = X[p * 2, 0:32]
            Y[p + 1, 0:32] = x.fill(4)
            S[p + 1] = tl.sum(x + 1, axis=0)
        """
    )
    x = np.random.default_rng(2).integers(-9, 9, (rows, cols)).astype(F32)
    y, s = Out((5, 32), F32), Out(5, F32)
    k(x, y.view, s.view)
    want, sums = np.full((5, 32), np.nan, F32), np.full(5, np.nan, F32)
    for p in (-1, 0, 1):
        row = x[2 * p] if 0 <= 2 * p < rows else np.zeros(0, F32)
        want[p + 1] = 4
        want[p + 1, : row.size] = row
        sums[p + 1] = (row + 1).sum()
    y.equal(want)
    s.equal(sums)


@pytest.mark.parametrize("dtype", [F32, F16, BF16, np.int8, np.int64, np.bool_], ids=str)
def test_accumulation(dtype: Any) -> None:
    """t op= x leaves t alone where there is no x; so does a sum over a loop that runs past both ends."""
    k = module(
        """
        @tl.kernel(grid=1)
        def k(X: tl.Buffer[M, N], lo: tl.int32, hi: tl.int32, Y: tl.float32[3, 32]):
            s, m, n = tl.zeros([32]), tl.full([32], -5.0), tl.zeros([32])
            for r in range(lo, hi):
                s += tl.exp(X[r, 0:32].to(tl.float32) * 0)
                m = tl.maximum(m, X[r, 0:32].to(tl.float32).fill(-9))
                n += X[r, 0:32].to(tl.float32) * 2
            Y[0, 0:32], Y[1, 0:32], Y[2, 0:32] = s, m, n
        """
    )
    x = np.random.default_rng(3).integers(0, 2, (6, 32)).astype(dtype)
    for lo, hi in ((-3, 9), (-3, -1), (4, 4), (5, 7), (0, 6)):
        y = Out((3, 32), F32)
        k(x, lo, hi, y.view)
        rows = x[max(lo, 0) : max(min(hi, 6), 0)].astype(np.float64)
        y.equal([np.full(32, len(rows)), rows.max(axis=0, initial=-5), rows.sum(0) * 2])


def test_stencil_leaves_the_border() -> None:
    k = module(
        """
        @tl.kernel
        def k(X: tl.Buffer[M, N], Y: tl.Buffer[M, N], Z: tl.Buffer[M, N]):
            i, j = tl.program_id(0), tl.program_id(1)
            Y[i, j * 32 : (j + 1) * 32] = X[i - 1, j * 32 : (j + 1) * 32] + X[i + 1, j * 32 : (j + 1) * 32]
            up = X[max(i - 1, 0), j * 32 : (j + 1) * 32]
            Z[i, j * 32 : (j + 1) * 32] = up + X[min(i + 1, M - 1), j * 32 : (j + 1) * 32]
        """
    )
    x = np.random.default_rng(4).integers(-9, 9, (7, 45)).astype(F32)
    y, z = Out((7, 45), F32), Out((7, 45), F32)
    k(x, y.view, z.view)
    want = np.full((7, 45), np.nan, F32)
    want[1:-1] = x[:-2] + x[2:]
    y.equal(want)
    z.equal(x[np.maximum(np.arange(7) - 1, 0)] + x[np.minimum(np.arange(7) + 1, 6)])


@pytest.mark.parametrize("how", ["plain", "exp", "shared", "shared exp", "both exp"])
@pytest.mark.parametrize("stages", [1, 2])
def test_dot_adds_nothing(how: str, stages: int) -> None:
    """A convolution as dots over shifted rows: rows outside add nothing, what is computed from them neither."""
    load = {
        "plain": "tl.dot(X[i + d, 0:32, k:k + 32], W[d + 1, k:k + 32, 0:32])",
        "exp": "tl.dot(tl.exp(X[i + d, 0:32, k:k + 32]), W[d + 1, k:k + 32, 0:32])",
        "shared": "tl.dot(a, b)",
        "shared exp": "tl.dot(a, b)",
        "both exp": "tl.dot(tl.exp(a), tl.exp(b))",
    }[how]
    f = "tl.exp(X[i + d, 0:32, k:k + 32])" if how == "shared exp" else "X[i + d, 0:32, k:k + 32]"
    fill = (
        f"""
                        a[:, :] = {f}
                        b[:, :] = W[d + 1, k:k + 32, 0:32]"""
        if how in ("shared", "shared exp", "both exp")
        else ""
    )
    alloc = "a, b = tl.alloc_shared([32, 32]), tl.alloc_shared([32, 32])" if fill else "pass"
    k = module(
        f"""
        @tl.kernel(num_stages={stages})
        def k(X: tl.Buffer[M, 32, K], W: tl.Buffer[3, K, 32], Y: tl.Buffer[M, 32, 32]):
            i = tl.program_id(0)
            {alloc}
            acc = tl.zeros([32, 32])
            for d in tl.static_range(-1, 2):
                for k in range(0, K, 32):{fill}
                    acc += {load}
            Y[i, 0:32, 0:32] = acc
        """.replace("\n                        a[", "\n                    a[").replace(
            "\n                        b[", "\n                    b["
        )
    )
    rng = np.random.default_rng(5)
    for depth in (32, 64, 80):
        x = rng.integers(-2, 3, (3, 32, depth)).astype(F32)
        w = rng.integers(-2, 3, (3, depth, 32)).astype(F32)
        y = Out((3, 32, 32), F32)
        k(x, w, y.view)
        fx = np.exp(x.astype(np.float64)) if "exp" in how else x
        fw = np.exp(w.astype(np.float64)) if how == "both exp" else w
        want = np.zeros((3, 32, 32))
        for i in range(3):
            for d in (-1, 0, 1):
                if 0 <= i + d < 3:
                    want[i] += fx[i + d] @ fw[d + 1]
        y.close(want, 64, 1e-3)


@pytest.mark.parametrize("p", [-1, 0, 2, 3])
def test_branches_and_shared_tiles(p: int) -> None:
    k = module(
        """
        @tl.kernel(grid=1)
        def k(X: tl.Buffer[3, 16, 32], p: tl.int32, q: tl.int32, Y: tl.Buffer[6, 16, 32]):
            s = tl.alloc_shared([16, 32], tl.float32)
            if q > 0:
                x = X[p, 0:16, 0:32]
            else:
                x = X[0, 0:16, 0:32] * 2
            Y[0, 0:16, 0:32] = x
            s[:, :] = x + 1
            Y[1, 0:16, 0:32] = s
            Y[2, 0:16, 0:32] = (s + 1).fill(-1)
            Y[3, 0:16, 0:32] = tl.broadcast_to(X[p, 3, 0:32], [16, 32])
            Y[4, 0:16, 0:32] = tl.broadcast_to(tl.sum(X[p, 0:16, 0:32], axis=1, keep_dims=True), [16, 32])
            Y[5, 0:16, 0:32] = (x.T + 1).T - 1
        """
    )
    x = np.random.default_rng(6).integers(-9, 9, (3, 16, 32)).astype(F32)
    for q in (0, 1):
        y = Out((6, 16, 32), F32)
        k(x, p, q, y.view)
        want = np.full((6, 16, 32), np.nan, F32)
        ok = 0 <= p < 3
        if ok or not q:
            t = x[p] if q else x[0] * 2
            want[0], want[1], want[2], want[5] = t, t + 1, t + 2, t
        else:
            want[2] = -1
        if ok:
            want[3], want[4] = x[p, 3], x[p].sum(1, keepdims=True)
        y.equal(want)


@pytest.mark.parametrize("axis", [0, 1])
def test_reduced_tile_is_not_stored(axis: int) -> None:
    k = module(
        f"""
        @tl.kernel(grid=1)
        def k(X: tl.Buffer[3, 16, 32], p: tl.int32, Y: tl.Buffer[{(32, 16)[axis]}], S: tl.Buffer[2]):
            r = tl.sum(X[p, 0:16, 0:32] + 1, axis={axis})
            Y[0:{(32, 16)[axis]}] = r
            S[0] = tl.sum(r + 1, axis=0)
            S[1] = tl.max(r, axis=0)
        """
    )
    x = np.random.default_rng(7).integers(-9, 9, (3, 16, 32)).astype(F32)
    for p in (-1, 1, 3):
        y, s = Out((32, 16)[axis], F32), Out(2, F32)
        k(x, p, y.view, s.view)
        r = (x[p] + 1).sum(axis) if 0 <= p < 3 else np.full((32, 16)[axis], np.nan, F32)
        y.equal(r)
        s.equal([(r + 1).sum(), r.max()] if 0 <= p < 3 else [0, -np.inf])


def test_changing_extent_is_refused() -> None:
    k = module(
        """
        @tl.kernel(grid=1)
        def k(X: tl.Buffer[M, 16], n: tl.int32, Y: tl.Buffer[16]):
            t = tl.zeros([16])
            for r in range(n):
                t = t * 2 + X[r, 0:16]
            Y[0:16] = t
        """
    )
    with pytest.raises(tl.CompileError, match="the extent of a tile that this loop carries changes") as e:
        k(np.ones((3, 16), F32), 3, np.zeros(16, F32))
    assert ".fill(v)" in str(e.value)


@pytest.mark.parametrize("index", ["min(max(r - 1, 0), N - 1)", "r", "N - 1 - r", "(r + 5) % 4", "(r + n + 5) // 2"])
def test_indices_proven_inside(index: str) -> None:
    """An index that a loop, the grid, a clamp or a remainder keeps inside costs nothing: the carried tile keeps its
    extent. The last one may be outside, and then the extent changes."""
    k = module(
        f"""
        @tl.kernel
        def k(W: tl.Buffer[N, 16], V: tl.Buffer[4, 16], Y: tl.Buffer[N, 16]):
            n = tl.program_id(0)
            t = tl.zeros([16])
            for r in range(N):
                t = t * 2 + {"V" if "%" in index else "W"}[{index}, 0:16]
            Y[n, 0:16] = t
        """
    )
    w, y = np.arange(64, dtype=F32).reshape(4, 16), Out((4, 16), F32)
    if "//" in index:
        with pytest.raises(tl.CompileError, match="the extent of a tile that this loop carries changes"):
            k(w, w, y.view)
        return
    k(w, w, y.view)
    t = np.zeros(16)
    for r in range(4):
        t = t * 2 + w[eval(index, {"r": r, "N": 4, "min": min, "max": max})]
    y.equal(np.broadcast_to(t, (4, 16)))
