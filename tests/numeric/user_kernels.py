"""Kernels as users write them, against float64, on the chip that TILELANG_SIM_ARCH names, with all checks on.

test_user_kernels.py runs each on every chip that kernels compile for. Sizes are small and odd, with 0 and 1 among them.
"""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ.setdefault("TILELANG_SIM_CHECK", "all")

import ml_dtypes
import numpy as np

import tilelang as tl

BF16 = np.dtype(ml_dtypes.bfloat16)
B, C, D, H, K, L, M, N = tl.dims("B C D H K L M N")


def close(what: Any, got: Any, want: Any, tol: float) -> None:
    """|got - want| <= tol (1 + |want|), element by element; NaN where NaN is wanted."""
    got, want = np.asarray(got).astype(np.float64), np.asarray(want, np.float64)
    bad = ~((np.abs(got - want) <= tol * (1 + np.abs(want))) | (np.isnan(got) & np.isnan(want)) | (got == want))
    assert not bad.any(), f"{what}: {bad.sum()} of {bad.size} wrong, first {got[bad][0]!r}, wanted {want[bad][0]!r}"


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def conv2d_grid(rng: np.random.Generator) -> None:
    """Seven loops: a contraction whose operand moves over its edges with a reduced axis."""

    @tl.kernel
    def k(X: tl.Buffer[B, C, H, L], W: tl.Buffer[K, C, 3, 3], Y: tl.Buffer[B, K, H, L]):
        for b, o, y, x, c, i, j in tl.grid(B, K, H, L, C, 3, 3):
            Y[b, o, y, x] += X[b, c, y + i - 1, x + j - 1] * W[o, c, i, j]

    for b, c, h, n, o in ((1, 1, 4, 5, 1), (2, 3, 7, 9, 5), (1, 2, 1, 1, 3), (1, 2, 3, 40, 17)):
        x, w, y = normal(rng, b, c, h, n), normal(rng, o, c, 3, 3), np.zeros((b, o, h, n), np.float32)
        k(x, w, y)
        xp = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        want = np.zeros((b, o, h, n))
        for i, j in np.ndindex(3, 3):
            want += np.einsum("bchl,oc->bohl", xp[:, :, i : i + h, j : j + n], w[:, :, i, j])
        close((b, c, h, n, o), y, want, 1e-5)


def conv2d_tiles(rng: np.random.Generator) -> None:
    """An implicit GEMM: nine dots whose rows start before and end behind the tensor; more shared tiles than LDS."""

    @tl.kernel
    def k(X: tl.Buffer[B, H, L, C], W: tl.Buffer[3, 3, C, K], Y: tl.Buffer[B, H, L, K]):
        b, y, o = tl.program_id(0), tl.program_id(1), tl.program_id(2)
        acc = tl.zeros([32, 32])
        for i in tl.static_range(3):
            for j in tl.static_range(3):
                for c in range(0, C, 32):
                    acc += tl.dot(
                        X[b, y + i - 1, j - 1 : j + 31, c : c + 32], W[i, j, c : c + 32, o * 32 : (o + 1) * 32]
                    )
        Y[b, y, 0:32, o * 32 : (o + 1) * 32] = acc

    @tl.kernel
    def looped(X: tl.Buffer[B, H, L, C], W: tl.Buffer[3, 3, C, K], Y: tl.Buffer[B, H, L, K]):
        b, y, o = tl.program_id(0), tl.program_id(1), tl.program_id(2)
        acc = tl.zeros([32, 32])
        for i in range(3):
            for j in range(3):
                for c in range(0, C, 32):
                    acc += tl.dot(
                        X[b, y + i - 1, j - 1 : j + 31, c : c + 32], W[i, j, c : c + 32, o * 32 : (o + 1) * 32]
                    )
        Y[b, y, 0:32, o * 32 : (o + 1) * 32] = acc

    for b, h, n, c, o in ((1, 4, 5, 3, 5), (2, 2, 32, 40, 33)):
        for dtype, tol in ((np.float16, 2e-2), (np.float32, 1e-4))[o > 5 :]:
            x, w = normal(rng, b, h, n, c, dtype=dtype), normal(rng, 3, 3, c, o, dtype=dtype)
            xp = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
            want = np.zeros((b, h, n, o))
            for i, j in np.ndindex(3, 3):
                want += np.einsum("bhlc,co->bhlo", xp[:, i : i + h, j : j + n], w[i, j].astype(np.float64))
            for kernel in (k, looped):
                y = np.full((b, h, n, o), np.nan, dtype)
                kernel(x, w, y)
                close((b, h, n, c, o, dtype), y, want, tol)


def flash_attention(rng: np.random.Generator) -> None:
    """Two dots a turn, the second of a computed operand; causal rows that see nothing give 0."""

    @tl.kernel
    def k(
        Q: tl.Buffer[B, H, M, D], Kt: tl.Buffer[B, H, N, D], V: tl.Buffer[B, H, N, D], O: tl.Buffer[B, H, M, D],
        scale: tl.float32, causal: tl.constexpr, W: tl.constexpr,
    ):  # fmt: skip
        b, h, m = tl.program_id(0), tl.program_id(1), tl.program_id(2)
        q = Q[b, h, m * 32 : (m + 1) * 32, 0:W]
        top, total, acc = tl.full([32, 1], -float("inf")), tl.zeros([32, 1]), tl.zeros([32, W])
        rows = m * 32 + tl.arange(0, 32)[:, None] + (N - M)
        for n in range(0, N, 32):
            s = tl.dot(q, Kt[b, h, n : n + 32, 0:W].T) * scale
            if causal:
                s = tl.where(n + tl.arange(0, 32)[None, :] <= rows, s, -float("inf"))
            new = tl.maximum(top, tl.max(s, axis=1, keep_dims=True))
            safe = tl.where(new == -float("inf"), 0.0, new)
            p, shrink = tl.exp(s - safe), tl.exp(top - safe)
            total = total * shrink + tl.sum(p, axis=1, keep_dims=True)
            acc = acc * shrink
            acc += tl.dot(p.to(Q.dtype), V[b, h, n : n + 32, 0:W])
            top = new
        O[b, h, m * 32 : (m + 1) * 32, 0:W] = acc / tl.where(total == 0.0, 1.0, total)

    for b, h, m, n, d, w in ((1, 2, 8, 3, 32, 32), (1, 1, 33, 65, 40, 64), (1, 1, 1, 1, 1, 16)):
        for dtype, tol in ((np.float16, 3e-3), (BF16, 2e-2), (np.float32, 2e-5))[: 1 + 2 * (n == 65)]:
            q, kt, v = (normal(rng, b, h, r, d, dtype=dtype) for r in (m, n, n))
            for causal in (False, True):
                s = np.einsum("bhmd,bhnd->bhmn", q.astype(np.float64), kt.astype(np.float64)) * np.float32(0.3)
                if causal:
                    s = np.where(np.arange(n)[None, :] <= np.arange(m)[:, None] + n - m, s, -np.inf)
                top = s.max(-1, keepdims=True)
                p = np.exp(s - np.where(np.isinf(top), 0, top))
                total = p.sum(-1, keepdims=True)
                want = np.einsum("bhmn,bhnd->bhmd", p / np.where(total == 0, 1, total), v.astype(np.float64))
                o = np.full((b, h, m, d), 7, dtype)
                k(q, kt, v, o, 0.3, causal, w)
                close((b, h, m, n, d, dtype, causal), o, want, tol)


def softmax(rng: np.random.Generator) -> None:
    """A row as a tile and as loops; views of all kinds, rows and columns of none."""

    @tl.kernel
    def tiles(X: tl.Buffer[M, N], Y: tl.Buffer[M, N], W: tl.constexpr):
        r = tl.program_id(0)
        x = X[r, 0:W].to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        Y[r, 0:W] = e / tl.sum(e, axis=0)

    @tl.kernel
    def loops(X: tl.Buffer[M, N], Y: tl.Buffer[M, N]):
        for i in tl.grid(M):
            top = -float("inf")
            for j in tl.grid(N):
                top = max(top, X[i, j])
            total = 0.0
            for j in tl.grid(N):
                total += tl.exp(X[i, j] - top)
            for j in tl.grid(N):
                Y[i, j] = tl.exp(X[i, j] - top) / total

    for m, n, w in ((1, 1, 1), (5, 130, 256), (0, 5, 8), (5, 0, 8), (4, 5, 100)):
        x = normal(rng, m, n)
        for view in (x.T.copy().T, np.broadcast_to(normal(rng, 1, n), (m, n)), x[::-1, ::-1])[: 1 + 2 * (n == 5)]:
            e = np.exp(view.astype(np.float64))
            for kernel, more in ((tiles, (w,)), (loops, ())):
                y = np.full((n, m), 7, np.float32).T
                kernel(view, y, *more)
                close((m, n), y, e / e.sum(1, keepdims=True), 1e-6)


def argmax(rng: np.random.Generator) -> None:
    """The first of the largest, as loops that carry two values and as a tile."""

    @tl.kernel
    def loops(X: tl.Buffer[M, N], At: tl.int32[M]):
        for i in tl.grid(M):
            best = -float("inf")
            at = 0
            for j in tl.grid(N):
                if X[i, j] > best:
                    best = X[i, j]
                    at = j
            At[i] = at

    @tl.kernel
    def tiles(X: tl.Buffer[M, N], At: tl.int32[M]):
        r = tl.program_id(0)
        x = X[r, 0:256]
        At[r] = tl.min(tl.where(x == tl.max(x, axis=0), tl.arange(0, 256), 256), axis=0)

    for m, n in ((1, 1), (3, 9), (5, 130)):
        x = -1 - np.abs(normal(rng, m, n)).round(1)
        for kernel in (loops, tiles):
            at = np.full(m, -1, np.int32)
            kernel(x, at)
            close((m, n), at, x.argmax(1), 0)


def scan_and_histogram(rng: np.random.Generator) -> None:
    """True dependences and data-dependent places."""

    @tl.kernel
    def scan(X: tl.Buffer[M, N], Y: tl.Buffer[M, N]):
        for i in tl.grid(M):
            s = 0.0
            for j in tl.grid(N):
                s += X[i, j]
                Y[i, j] = s

    @tl.kernel
    def count(X: tl.int32[N], Hist: tl.int32[8]):
        for i in tl.grid(N):
            if X[i] >= 0 and X[i] < 8:
                Hist[X[i]] += 1

    for m, n in ((1, 1), (3, 9), (2, 100), (2, 0)):
        x, y = rng.integers(-5, 6, (m, n)).astype(np.float32), np.zeros((m, n), np.float32)
        scan(x, y)
        close((m, n), y, np.cumsum(x, 1), 0)
        v, hist = rng.integers(-2, 11, n).astype(np.int32), np.zeros(8, np.int32)
        count(v, hist)
        close(n, hist, np.bincount(v[(v >= 0) & (v < 8)], minlength=8), 0)


def sums_of_two_loops(rng: np.random.Generator) -> None:
    """One accumulator of two loops, whose rows start at different places: valid where either added."""

    @tl.kernel
    def k(X: tl.Buffer[M, K], W: tl.Buffer[K, N], V: tl.Buffer[K, N], Y: tl.Buffer[M, N]):
        m, n = tl.program_id(0), tl.program_id(1)
        acc = tl.zeros([32, 32])
        for k in range(0, K, 32):
            acc += tl.dot(X[m * 32 : (m + 1) * 32, k : k + 32], W[k : k + 32, n * 32 : (n + 1) * 32])
        for k in range(0, K, 32):
            acc += tl.dot(X[m * 32 - 1 : m * 32 + 31, k : k + 32], V[k : k + 32, n * 32 : (n + 1) * 32])
        Y[m * 32 : (m + 1) * 32, n * 32 : (n + 1) * 32] = acc

    for m, c, n in ((32, 32, 32), (40, 50, 70), (5, 3, 2)):
        x, w, v = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, c), (c, n), (c, n)))
        y = np.full((m, n), np.nan, np.float16)
        k(x, w, v, y)
        want = x.astype(np.float64) @ w
        want[1:] += x[:-1].astype(np.float64) @ v
        close((m, c, n), y, want, 0)


def gathered_rows(rng: np.random.Generator) -> None:
    """Rows by an index that was loaded, some of them outside; the same as element loops; sums back into them."""

    @tl.kernel
    def tiles(E: tl.Buffer[K, D], At: tl.int32[N], Y: tl.Buffer[N, D]):
        p = tl.program_id(0)
        Y[p, 0:64] = E[At[p], 0:64].fill(0)

    @tl.kernel
    def loops(E: tl.Buffer[K, D], At: tl.int32[N], Y: tl.Buffer[N, D]):
        for i, j in tl.grid(N, D):
            Y[i, j] = E[At[i], j]

    @tl.kernel
    def back(Y: tl.Buffer[N, D], At: tl.int32[N], E: tl.Buffer[K, D]):
        for i, j in tl.grid(N, D):
            E[At[i], j] += Y[i, j]

    for rows, d, n in ((5, 7, 9), (1, 1, 1), (10, 64, 4)):
        e = rng.integers(-9, 10, (rows, d)).astype(np.float32)
        at = rng.integers(-1, rows + 1, n).astype(np.int32)
        inside = (at >= 0) & (at < rows)
        want = np.where(inside[:, None], e[np.clip(at, 0, rows - 1)], 0)
        for kernel, gap in ((tiles, 0), (loops, 7)):  # what is outside is filled, or not stored
            y = np.full((n, d), 7, np.float32)
            kernel(e, at, y)
            close((rows, d, n), y, np.where(inside[:, None], want, gap), 0)
        sums = np.zeros((rows, d))
        np.add.at(sums, at[inside], want[inside])
        got = np.zeros((rows, d), np.float32)
        back(want.astype(np.float32), at, got)
        close((rows, d, n), got, sums, 0)


CASES = {
    f.__name__: f
    for f in (
        conv2d_grid,
        conv2d_tiles,
        flash_attention,
        softmax,
        argmax,
        scan_and_histogram,
        sums_of_two_loops,
        gathered_rows,
    )
}

if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        CASES[case](np.random.default_rng(20260101))
        print(case)
