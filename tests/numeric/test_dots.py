"""Dots that are no plain matmul: prologues, epilogues, chains, transposed operands, several in one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from num_util import BF16, F16, F32, Out, accumulation, given, module

import tilelang as tl

DTYPES = [F16, BF16, F32]
SIZES = [(1, 1, 1), (70, 40, 100), (128, 64, 64), (33, 65, 31)]


def ints(rng: np.random.Generator, *shape: int, dtype: Any = F16, top: int = 3) -> np.ndarray:
    return rng.integers(-top, top + 1, shape).astype(dtype)


def f64(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


HEAD = """
@tl.kernel
def k(A: tl.Buffer[{a}], B: tl.Buffer[{b}], {more}C: tl.Buffer[M, N]):
    i, j = tl.program_id(0), tl.program_id(1)
    I, J = slice(i * 64, i * 64 + 64), slice(j * 64, j * 64 + 64)
    acc = tl.zeros([64, 64], dtype=tl.float32)
"""


def kernel(body: str, a: str = "M, K", b: str = "K, N", more: str = "", **names: Any) -> Any:
    import textwrap

    return module(HEAD.format(a=a, b=b, more=more) + textwrap.indent(textwrap.dedent(body), "    "), **names)


LOOP = """
for q in range(0, A.shape[1], 32):
    R = slice(q, q + 32)
"""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "expr,value",
    [
        ("tl.dot(A[I, R] * 2, B[R, J])", lambda a, b: (a * 2) @ b),
        ("tl.dot(A[I, R], B[R, J] - 1)", lambda a, b: a @ (b - 1)),
        ("tl.dot(A[I, R] + A[I, R], B[R, J].to(tl.float32).to(B.dtype))", lambda a, b: 2 * a @ b),
        ("tl.dot(tl.where(A[I, R] > 0, A[I, R], 0), tl.abs(B[R, J]))", lambda a, b: np.maximum(a, 0) @ abs(b)),
        ("A[I, R] @ B[R, J]", lambda a, b: a @ b),
    ],
)
def test_prologues(expr: str, value: Any, dtype: Any) -> None:
    """b - 1 beyond the end of k is -1 times a: the extent of k must hold."""
    k = kernel(LOOP + f"    acc += {expr}\nC[I, J] = acc")
    for seed, (m, n, kk) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        a, b = ints(rng, m, kk, dtype=dtype), ints(rng, kk, n, dtype=dtype)
        out = Out((m, n), dtype)
        k(a, b, out.view)
        out.equal(value(f64(a), f64(b)))


def test_prologue_on_shared_tiles() -> None:
    k = kernel("""
    a, b = tl.alloc_shared([64, 32]), tl.alloc_shared([32, 64])
    for q in range(0, A.shape[1], 32):
        a[:, :] = A[I, q : q + 32]
        b[:, :] = B[q : q + 32, J]
        acc += tl.dot(a * 2 + 1, b)
    C[I, J] = acc
    """)
    for seed, (m, n, kk) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        a, b = ints(rng, m, kk), ints(rng, kk, n)
        out = Out((m, n), F16)
        k(a, b, out.view)
        out.equal((f64(a) * 2 + 1) @ f64(b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_transposed_operands(dtype: Any) -> None:
    forms = {
        "M, K|N, K": "tl.dot(A[I, R], B[J, R].T)",
        "K, M|K, N": "tl.dot(A[R, I].T, B[R, J])",
        "K, M|N, K": "tl.dot(tl.trans(A[R, I]), tl.trans(B[J, R]))",
    }
    for dims, expr in forms.items():
        da, db = dims.split("|")
        loop = LOOP.replace("A.shape[1]", f"A.shape[{da.split(', ').index('K')}]")
        k = kernel(loop + f"    acc += {expr}\nC[I, J] = acc", da, db)
        for seed, (m, n, kk) in enumerate(SIZES):
            rng = np.random.default_rng(seed)
            a, b = ints(rng, m, kk, dtype=dtype), ints(rng, kk, n, dtype=dtype)
            out = Out((m, n), dtype)
            k(
                np.ascontiguousarray(a.T) if da[0] == "K" else a,
                np.ascontiguousarray(b.T) if db[0] == "N" else b,
                out.view,
            )
            out.equal(f64(a) @ f64(b))


def test_transposed_shared_tiles() -> None:
    k = kernel(
        """
    a, b = tl.alloc_shared([32, 64]), tl.alloc_shared([64, 32])
    for q in range(0, A.shape[0], 32):
        a[:, :] = A[q : q + 32, I]
        b[:, :] = B[J, q : q + 32]
        acc += tl.dot(a.T, b.T)
    C[I, J] = acc
    """,
        "K, M",
        "N, K",
    )
    for seed, (m, n, kk) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        a, b = ints(rng, kk, m), ints(rng, n, kk)
        out = Out((m, n), F16)
        k(a, b, out.view)
        out.equal(f64(a).T @ f64(b).T)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_two_dots_in_one_loop(dtype: Any) -> None:
    k = kernel(
        """
    two = tl.zeros([64, 64], dtype=tl.float32)
    for q in range(0, A.shape[1], 32):
        a = A[I, q : q + 32]
        acc += tl.dot(a, B[q : q + 32, J])
        two += tl.dot(a, D[q : q + 32, J])
    C[I, J] = acc * 3 - two
    """,
        more="D: tl.Buffer[K, N], ",
    )
    for seed, (m, n, kk) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        a, b, d = ints(rng, m, kk, dtype=dtype), ints(rng, kk, n, dtype=dtype), ints(rng, kk, n, dtype=dtype)
        out = Out((m, n), F32)
        k(a, b, d, out.view)
        out.equal(3 * f64(a) @ f64(b) - f64(a) @ f64(d))


def test_two_dots_one_accumulator() -> None:
    k = kernel("""
    for q in range(0, A.shape[1], 32):
        a = A[I, q : q + 32]
        acc += tl.dot(a, B[q : q + 32, J])
        acc += tl.dot(a * 2, B[q : q + 32, J])
    C[I, J] = acc
    """)
    rng = np.random.default_rng(1)
    a, b = ints(rng, 70, 90), ints(rng, 90, 70)
    out = Out((70, 70), F16)
    k(a, b, out.view)
    out.equal(3 * f64(a) @ f64(b))


EPILOGUES: list[tuple[str, Any]] = [
    ("acc + X[J][None, :]", lambda c, x, y: c + x),
    ("acc * Y[I][:, None] - 1", lambda c, x, y: c * y[:, None] - 1),
    ("tl.maximum(acc + X[J], 0)", lambda c, x, y: np.maximum(c + x, 0)),
    ("tl.where(acc > X[J][None, :], acc, Y[I][:, None])", lambda c, x, y: np.where(c > x, c, y[:, None])),
    ("acc - tl.max(acc, axis=1)[:, None]", None),
    ("(acc + X[J][None, :]) * (acc + Y[I][:, None])", lambda c, x, y: (c + x) * (c + y[:, None])),
]


@pytest.mark.parametrize("expr,value", EPILOGUES, ids=[e for e, _ in EPILOGUES])
def test_epilogues(expr: str, value: Any) -> None:
    k = kernel(
        LOOP + f"    acc += tl.dot(A[I, R], B[R, J])\nC[I, J] = {expr}", more="X: tl.Buffer[N], Y: tl.Buffer[M], "
    )
    for seed, (m, n, kk) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        a, b = ints(rng, m, kk), ints(rng, kk, n)
        x, y = ints(rng, n, dtype=F32), ints(rng, m, dtype=F32)
        out = Out((m, n), F32, ("rows", "columns", "sliced", "odd")[seed])
        k(a, b, x, y, out.view)
        c = f64(a) @ f64(b)
        if value:
            out.equal(value(c, f64(x), f64(y)))
        else:  # the maximum sees the columns of this program's tile that are inside
            out.equal(
                np.concatenate([c[:, j : j + 64] - c[:, j : j + 64].max(1, keepdims=True) for j in range(0, n, 64)], 1)
            )


def test_accumulator_starts_from_memory() -> None:
    k = kernel("""
    acc = C[I, J].to(tl.float32)
    for q in range(0, A.shape[1], 32):
        acc += tl.dot(A[I, q : q + 32], B[q : q + 32, J])
    C[I, J] = acc
    """)
    for seed, (m, n, kk) in enumerate([*SIZES, (70, 40, 0)]):
        rng = np.random.default_rng(seed)
        a, b, c = ints(rng, m, kk), ints(rng, kk, n), ints(rng, m, n)
        out = Out((m, n), F16)
        out.view[...] = c
        k(a, b, out.view)
        out.equal(f64(c) + f64(a) @ f64(b))


@pytest.mark.parametrize("waves", [1, 2, 4, 8])
@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_chained_dots(dtype: Any, waves: int) -> None:
    """C-27: dot(q, k) -> dtype -> dot(., v) -> dtype, all ones, and small integers."""
    k = module(
        """
        @tl.kernel(num_warps=waves)
        def k(q: tl.Buffer[64, 128], k: tl.Buffer[128, 64], v: tl.Buffer[64, 128], o: tl.Buffer[64, 128]):
            s = tl.dot(q[0:64, 0:128], k[0:128, 0:64]).to(q.dtype)
            o[0:64, 0:128] = tl.dot(s, v[0:64, 0:128])
        """,
        waves=waves,
    )
    one = np.ones((64, 128), dtype)
    out = Out((64, 128), dtype)
    k[1](one, np.ones((128, 64), dtype), one, out.view)
    out.equal(np.full((64, 128), 8192))
    rng = np.random.default_rng(27)
    q, kk, v = (
        ints(rng, 64, 128, dtype=dtype, top=2),
        ints(rng, 128, 64, dtype=dtype, top=2),
        ints(rng, 64, 128, dtype=dtype, top=2),
    )
    out = Out((64, 128), dtype)
    k[1](q, kk, v, out.view)
    s = (f64(q) @ f64(kk)).astype(dtype)
    out.equal((f64(s) @ f64(v)).astype(np.float32))


def test_chained_dots_ragged() -> None:
    """Keys past the end: what the first dot gives there must not reach the second."""
    k = module("""
    @tl.kernel
    def k(q: tl.Buffer[M, K], k: tl.Buffer[N, K], v: tl.Buffer[N, L], o: tl.Buffer[M, L]):
        i = tl.program_id(0)
        acc = tl.zeros([32, 64], dtype=tl.float32)
        for j in range(0, k.shape[0], 32):
            s = tl.dot(q[i * 32 : i * 32 + 32, 0:64], k[j : j + 32, 0:64].T) + 1
            acc += tl.dot(s.to(q.dtype), v[j : j + 32, 0:64])
        o[i * 32 : i * 32 + 32, 0:64] = acc
    """)
    for m, n, kk, length in ((70, 40, 50, 60), (3, 5, 7, 9), (64, 64, 64, 64), (33, 1, 64, 64)):
        rng = np.random.default_rng(m)
        q, key, v = ints(rng, m, kk, top=1), ints(rng, n, kk, top=1), ints(rng, n, length, top=1)
        out = Out((m, length), F32)
        k(q, given(key, "sliced"), given(v, "sliced"), out.view)
        out.equal((f64(q) @ f64(key).T + 1) @ f64(v))


def test_dot_of_computed_rows() -> None:
    """An operand made of no memory at all, and one broadcast from a row."""
    k = module("""
    @tl.kernel
    def k(x: tl.Buffer[64], o: tl.Buffer[32, 32]):
        a = tl.ones([32, 64], tl.float32) * x[0:64][None, :]
        b = (tl.arange(0, 64)[:, None] == tl.arange(0, 32)[None, :]).to(tl.float32)
        o[0:32, 0:32] = tl.dot(a, b)
    """)
    x = np.arange(64, dtype=F32)
    out = Out((32, 32), F32)
    k[1](x, out.view)
    out.equal(np.broadcast_to(x[:32], (32, 32)))


def test_attention_forward() -> None:
    """Flash attention over any lengths, C-24: rows that see no key give 0."""
    k = module("""
    @tl.kernel
    def k(q: tl.Buffer[M, K], k: tl.Buffer[N, K], v: tl.Buffer[N, K], o: tl.Buffer[M, K], scale: tl.float32):
        i = tl.program_id(0)
        Q = q[i * 32 : i * 32 + 32, 0:32]
        off = k.shape[0] - q.shape[0]
        m = tl.full([32], float("-inf"), tl.float32)
        l = tl.zeros([32], dtype=tl.float32)
        acc = tl.zeros([32, 32], dtype=tl.float32)
        rows = i * 32 + tl.arange(0, 32)
        for j in range(0, k.shape[0], 32):
            s = tl.dot(Q, k[j : j + 32, 0:32].T) * scale
            seen = (j + tl.arange(0, 32))[None, :] <= rows[:, None] + off
            s = tl.where(seen, s, float("-inf")).fill(float("-inf"))
            new = tl.maximum(m, tl.max(s, axis=1))
            guard = tl.where(new == float("-inf"), 0.0, new)
            p = tl.exp(s - guard[:, None])
            alpha = tl.exp(m - guard)
            l = l * alpha + tl.sum(p, axis=1)
            acc = acc * alpha[:, None]
            acc += tl.dot(p.to(q.dtype), v[j : j + 32, 0:32])
            m = new
        o[i * 32 : i * 32 + 32, 0:32] = tl.where(l[:, None] == 0, 0.0, acc / l[:, None])
    """)
    for mq, mk in ((8, 3), (8, 8), (40, 70)):
        rng = np.random.default_rng(mq)
        q, key, v = (rng.standard_normal((n, 32)).astype(F16) for n in (mq, mk, mk))
        out = Out((mq, 32), F32)
        k(q, key, v, out.view, 0.25)
        s = f64(q) @ f64(key).T * 0.25
        see = np.arange(mk)[None, :] <= np.arange(mq)[:, None] + (mk - mq)
        s = np.where(see, s, -np.inf)
        p = np.exp(s - np.maximum(s.max(1, keepdims=True), -1e30))
        total = p.sum(1, keepdims=True)
        want = np.where(total == 0, 0, (p / np.where(total == 0, 1, total)) @ f64(v))
        out.close(want, 0, 2.0**-10 * 4)


def test_mixed_dtypes_are_refused() -> None:
    k = kernel(LOOP + "    acc += tl.dot(A[I, R], B[R, J])\nC[I, J] = acc")
    with pytest.raises(tl.CompileError, match="dtype"):
        k(np.ones((4, 4), F16), np.ones((4, 4), F32), np.ones((4, 4), F32))


@pytest.mark.parametrize("step", [1, 16, 64, 128])
def test_int8(step: int) -> None:
    """C-25, int32 accumulators: exact where the chip's int8 matrix instructions are used."""
    k = module(
        """
        @tl.kernel
        def k(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
            i, j = tl.program_id(0), tl.program_id(1)
            acc = tl.zeros([32, 32], dtype=tl.int32)
            for q in range(0, A.shape[1], step):
                acc += tl.dot(A[i * 32 : i * 32 + 32, q : q + step], B[q : q + step, j * 32 : j * 32 + 32])
            C[i * 32 : i * 32 + 32, j * 32 : j * 32 + 32] = acc
        """,
        step=step,
    )
    for m, n, kk in ((2, 2, 2), (40, 33, 70)) if step == 1 else ((2, 2, 2), (40, 33, 70), (16, 16, 4608)):
        rng = np.random.default_rng(25)
        a, b = (rng.integers(-128, 128, s, np.int8) for s in ((m, kk), (kk, n)))
        if kk == 4608:
            a[:] = b[:] = 127
        out = Out((m, n), np.int32)
        try:
            k(a, b, out.view)
        except tl.CompileError as e:
            assert e.line and "dot" in str(e)
            pytest.skip(f"refused: {e.args[0]}")
        out.equal(a.astype(np.int32) @ b.astype(np.int32))


def test_random_chain_tolerance() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((64, 300)).astype(BF16), rng.standard_normal((300, 48)).astype(BF16)
    bias = rng.standard_normal(48).astype(F32)
    k = kernel(
        LOOP + "    acc += tl.dot(A[I, R], B[R, J])\nC[I, J] = tl.maximum(acc + X[J], 0)", more="X: tl.Buffer[N], "
    )
    out = Out((64, 48), BF16)
    k(a, b, bias, out.view)
    out.close(np.maximum(f64(a) @ f64(b) + f64(bias), 0), 2, accumulation(a, b))
