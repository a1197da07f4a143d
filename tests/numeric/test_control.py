"""Run-time control flow around tiles: loops, branches, while, extents that they carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from num_util import F16, F32, Out, module

import tilelang as tl


def kernel(body: str, params: str = "") -> Any:
    import textwrap

    return module(
        f"@tl.kernel\ndef k(X: tl.Buffer[N], O: tl.Buffer[L]{params}):\n"
        + textwrap.indent(textwrap.dedent(body), "    ")
    )


def values(n: int) -> np.ndarray:
    return np.arange(1, n + 1, dtype=F32)


def test_tiles_through_if() -> None:
    k = kernel(
        """
        t = X[0:64]
        if c > 0:
            t = t * 2
        elif c < 0:
            t = t - 1
        O[0:64] = t
        """,
        ", c: tl.int32",
    )
    for n in (1, 40, 64, 100):
        for c in (-1, 0, 1):
            out = Out(n, F32)
            k[1](values(n), out.view, c)
            want = values(n) * 2 if c > 0 else values(n) - 1 if c < 0 else values(n)
            want[64:] = np.nan
            out.equal(want)


def either(k: Any, *args: Any) -> bool:
    """Runs; False when it was refused with a location."""
    try:
        k[1](*args)
    except tl.CompileError as e:
        assert e.line and "extent" in str(e), e
        return False
    return True


def test_extents_merge_in_if() -> None:
    """Branches whose tiles hang over different edges: what is stored is what the branch taken has valid."""
    k = kernel(
        """
        t = X[0:64]
        if c > 0:
            t = Y[0:64]
        O[0:64] = t
        """,
        ", Y: tl.Buffer[M], c: tl.int32",
    )
    for n, m in ((10, 20), (20, 10), (64, 3), (3, 64)):
        for c in (0, 1):
            out = Out(64, F32)
            if not either(k, values(n), out.view, -values(m), c):
                return
            want = np.full(64, np.nan)
            if c:
                want[:m] = -values(m)
            else:
                want[:n] = values(n)
            out.equal(want)


LOOPS = {
    "for": """
        t = X[0:64]
        for i in range(c):
            t = t * 2
        O[0:64] = t
        """,
    "while": """
        t = X[0:64]
        while c > 0:
            t = t * 2
            c = c - 1
        O[0:64] = t
        """,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_extents_carried(loop: str) -> None:
    """A tile that a loop computes from itself keeps its extent, also after 0 turns."""
    k = kernel(LOOPS[loop], ", c: tl.int32")
    for n in (10, 64):
        for c in (0, 1, 3):
            out = Out(64, F32)
            assert either(k, values(n), out.view, c)
            want = np.full(64, np.nan)
            want[:n] = values(n) * 2**c
            out.equal(want)


def test_extent_that_would_change() -> None:
    """Meets another extent in the loop: refused, or right for 0 turns and more."""
    k = kernel(
        """
        t = X[0:64]
        for i in range(c):
            t = t + Y[0:64]
        O[0:64] = t
        """,
        ", Y: tl.Buffer[M], c: tl.int32",
    )
    for c in (0, 2):
        out = Out(64, F32)
        if not either(k, values(40), out.view, values(10), c):
            return
        want = np.full(64, np.nan)
        if c:
            want[:10] = values(10) * (1 + c)
        else:
            want[:40] = values(40)
        out.equal(want)


def test_op_assignment_keeps_the_extent() -> None:
    """t op= x leaves t alone where x is invalid."""
    k = kernel(
        """
        t = X[0:64]
        t += Y[0:64]
        for i in range(c):
            t += Y[i * 8 : i * 8 + 64]
        O[0:64] = t
        """,
        ", Y: tl.Buffer[M], c: tl.int32",
    )
    for n, m, c in ((40, 10, 0), (40, 10, 2), (5, 64, 3), (64, 1, 1)):
        out = Out(64, F32)
        k[1](values(n), out.view, values(m), c)
        want = values(n).astype(np.float64)
        y = np.pad(values(m), (0, 200))
        want += y[:n]
        for i in range(c):
            want += y[i * 8 : i * 8 + n]
        out.equal(np.pad(want, (0, 64 - n), constant_values=np.nan))


def test_reduction_inside_branches_and_loops() -> None:
    """Scratch LDS in regions that may not run; a scalar decides."""
    k = kernel("""
        s = 0.0
        i = 0
        while tl.sum(X[i * 64 : i * 64 + 64]) > 0:
            m = tl.max(X[i * 64 : i * 64 + 64])
            if m > 100:
                s = s + m
            else:
                s = s - tl.min(X[i * 64 : i * 64 + 64])
            i += 1
        O[0] = s
        O[1] = i
    """)
    for n in (0, 10, 64, 200):
        x = values(n)
        out = Out(2, F32)
        k[1](x, out.view)
        s, blocks = 0.0, [x[j : j + 64] for j in range(0, n, 64)]
        for b in blocks:
            s = s + b.max() if b.max() > 100 else s - b.min()
        out.equal([s, len(blocks)])


@pytest.mark.parametrize("waves", [1, 4])
def test_shared_tiles_in_loops_and_branches(waves: int) -> None:
    """LDS written under a condition, read behind it by other waves (transposed), and again in the next turn."""
    k = module(
        """
        @tl.kernel(num_warps=waves)
        def k(X: tl.Buffer[M, N], O: tl.Buffer[M, N], c: tl.int32):
            s = tl.alloc_shared([64, 64], tl.float32)
            s[:, :] = X[0:64, 0:64]
            for i in range(c):
                if i % 2 == 0:
                    s[:, :] = s.T + 1
                t = s[:, :]
                s[:, :] = t.T * 2
            O[0:64, 0:64] = s
        """,
        waves=waves,
    )
    x = np.random.default_rng(2).integers(0, 5, (64, 64)).astype(F32)
    for c in (0, 1, 2, 5):
        out = Out((64, 64), F32)
        k[1](x, out.view, c)
        want = x.copy()
        for i in range(c):
            if i % 2 == 0:
                want = want.T + 1
            want = want.T * 2
        out.equal(want)


def test_matmul_under_conditions() -> None:
    """A pipelined loop inside a branch inside a loop, with its own early end."""
    k = module("""
        @tl.kernel
        def k(A: tl.Buffer[M, K], B: tl.Buffer[K, N], O: tl.Buffer[M, N], c: tl.int32, d: tl.int32):
            acc = tl.zeros([64, 64], dtype=tl.float32)
            for r in range(c):
                if r != d:
                    for j in range(0, A.shape[1], 32):
                        acc += tl.dot(A[0:64, j : j + 32], B[j : j + 32, 0:64])
                else:
                    acc = acc * 2
            O[0:64, 0:64] = acc
    """)
    rng = np.random.default_rng(1)
    for kk in (0, 20, 64, 70):
        a, b = rng.integers(-3, 4, (50, kk)).astype(F16), rng.integers(-3, 4, (kk, 60)).astype(F16)
        p = a.astype(F32) @ b.astype(F32)
        for c, d in ((0, 0), (1, 0), (3, 1), (3, 9)):
            out = Out((50, 60), F32)
            k[1](a, b, out.view, c, d)
            want = np.zeros((50, 60))
            for r in range(c):
                want = want * 2 if r == d else want + p
            out.equal(want)


def test_loop_over_programs() -> None:
    """Persistent programs: a run-time start and step."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[N]):
            for b in range(tl.program_id(0), tl.cdiv(N, 64), tl.num_programs(0)):
                O[b * 64 : b * 64 + 64] = X[b * 64 : b * 64 + 64] * 2
    """)
    for n, grid in ((1, 3), (300, 2), (1000, 7)):
        out = Out(n, F32)
        k[grid](values(n), out.view)
        out.equal(values(n) * 2)


def test_break_continue_with_tiles() -> None:
    """C-28 with tiles instead of numbers."""
    k = kernel(
        """
        acc = tl.zeros([64], tl.float32)
        for i in range(10):
            if i % 2 == 0:
                continue
            acc += X[i : i + 64]
            if i == stop:
                break
        O[0:64] = acc
        """,
        ", stop: tl.int32",
    )
    x = values(100)
    for stop in (0, 5, 9):
        out = Out(64, F32)
        k[1](x, out.view, stop)
        used = [i for i in range(1, 10, 2) if i <= (stop or 99)]
        out.equal(sum(x[i : i + 64].astype(np.float64) for i in used))


def test_values_made_before_a_branch() -> None:
    """The same value needed inside two branches and behind them."""
    k = kernel(
        """
        t = X[0:64] * 3
        if c > 0:
            O[0:64] = t
        if c > 1:
            O[64:128] = t + 1
        O[128:192] = t
        """,
        ", c: tl.int32",
    )
    for c in (0, 1, 2):
        out = Out(192, F32)
        k[1](values(64), out.view, c)
        want = np.full(192, np.nan)
        t = values(64) * 3
        if c > 0:
            want[:64] = t
        if c > 1:
            want[64:128] = t + 1
        want[128:] = t
        out.equal(want)


def test_many_accesses_of_one_shared_tile() -> None:
    """More reads and writes, in more layouts, than the solver of LDS layouts takes at once."""
    lines = ["s = tl.alloc_shared([32, 64], tl.float32)", "s[:, :] = X[0:32, 0:64]"]
    for i in range(5):
        lines += [
            f"s += {i}",
            "t = s[:, :]",
            "s[:, :] = t * 2 - tl.max(t, axis=1, keep_dims=True)",
            f"O[{i}, 0:64, 0:32] = s.T",
            f"P[{i}, 0:32, 0:64] = s[:, :]",
        ]
    k = module(
        "@tl.kernel(num_warps=4)\ndef k(X: tl.Buffer[32, 64], O: tl.Buffer[5, 64, 32], P: tl.Buffer[5, 32, 64]):\n    "
        + "\n    ".join(lines)
    )
    x = np.random.default_rng(9).integers(-5, 6, (32, 64)).astype(F32)
    o, p = Out((5, 64, 32), F32), Out((5, 32, 64), F32)
    k[1](x, o.view, p.view)
    want = []
    for i in range(5):
        x = x + i
        x = x * 2 - x.max(1, keepdims=True)
        want.append(x)
    p.equal(want)
    o.equal([w.T for w in want])
