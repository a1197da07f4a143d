"""Random kernels: matmuls over random tiles, sizes, dtypes and layouts; element-wise trees, reductions, slices.

Every case is made from one number. TILELANG_FUZZ_SEED (first number, default 1) and TILELANG_FUZZ_CASES (how many of
each kind, default 25) choose others; a failure names its number.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from num_util import BF16, F16, F32, VIEWS, Out, given, module

FIRST = int(os.environ.get("TILELANG_FUZZ_SEED", "1"))
CASES = int(os.environ.get("TILELANG_FUZZ_CASES", "25"))
SEEDS = range(FIRST, FIRST + CASES)


def p2(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_matmul(seed: int) -> None:
    r = random.Random(seed)
    bm, bn = r.choice([16, 32, 48, 64, 128]), r.choice([16, 32, 64, 80, 128, 256])
    bk = r.choice([k for k in (16, 32, 64, 100) if (p2(bm) + p2(bn)) * p2(k) * 4 <= 65536])  # fits as f32
    ta, tb = r.random() < 0.3, r.random() < 0.3
    a = "A[K, I].T" if ta else "A[I, K]"
    b = "B[J, K].T" if tb else "B[K, J]"
    if r.random() < 0.3:
        a = f"({a} + 1)"
    epilogue = r.choice(["acc", "acc * 2 - 1", "tl.maximum(acc, 0)", "acc + bias[J]"])
    shared = r.random() < 0.5 and "+" not in a
    lines = [
        f"@tl.kernel(num_stages={r.choice([1, 2, None])})",
        "def k(A: tl.Buffer, B: tl.Buffer, bias: tl.Buffer, C: tl.Buffer):",
        "    i, j = tl.program_id(0), tl.program_id(1)",
        f"    I, J = slice(i * {bm}, i * {bm} + {bm}), slice(j * {bn}, j * {bn} + {bn})",
        f"    acc = tl.zeros([{bm}, {bn}], dtype=tl.float32)",
    ]
    if shared:
        lines += [f"    s, t = tl.alloc_shared([{bm}, {bk}]), tl.alloc_shared([{bk}, {bn}])"]
    lines += [f"    for k in range(0, A.shape[{int(not ta)}], {bk}):", f"        K = slice(k, k + {bk})"]
    if shared:
        lines += [f"        s[:, :] = {a}", f"        t[:, :] = {b}", "        acc += tl.dot(s, t)"]
    else:
        lines += [f"        acc += tl.dot({a}, {b})"]
    lines += [f"    C[I, J] = {epilogue}"]
    kernel = module("\n".join(lines))
    for _ in range(2):
        dtype = r.choice([F16, BF16, F32])
        m, n = r.choice([1, 3, 17, 64, 100, 131]), r.choice([1, 2, 5, 33, 64, 127, 250])
        k = r.choice([0, 1, 7, 16, 31, 64, 65, 100, 129, 200])
        rng = np.random.default_rng(seed)
        x, y = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-3, 4, (k, n)).astype(dtype)
        bias = rng.integers(-3, 4, n).astype(F32)
        va, vb, vc = r.choice(VIEWS), r.choice(VIEWS), r.choice(VIEWS)
        out = Out((m, n), dtype, vc)
        what = (seed, lines, str(dtype), m, n, k, va, vb, vc)
        kernel(given(x.T if ta else x, va), given(y.T if tb else y, vb), bias, out.view)
        acc = (x.astype(float) + ("+" in a)) @ y.astype(float)
        want = eval(epilogue, {"acc": acc, "tl": np, "bias": bias, "J": slice(None)})
        try:
            out.equal(want.astype(np.float32))
        except AssertionError as e:
            raise AssertionError(f"{what}: {e}") from None


class Tree:
    """A random expression over tiles [a, b], as source and as NumPy value (exact: small integers in f32)."""

    def __init__(self, r: random.Random, names: dict[str, str]) -> None:
        self.r, self.names = r, names

    def leaf(self) -> tuple[str, str]:
        n = self.r.choice([*self.names, "c"])
        return (str(self.r.randint(-3, 3)),) * 2 if n == "c" else (n, self.names[n])

    def make(self, depth: int) -> tuple[str, str]:
        """(source, NumPy source)"""
        if depth == 0:
            return self.leaf()
        x, y = self.make(depth - 1), self.make(self.r.randint(0, depth - 1))
        if not any(n in x[0] for n in self.names):
            x = next(iter(self.names.items()))
        f = self.r.choice(["+", "-", "min", "max", "where", "neg", "half", "fill", "cast"])
        if f in "+-":
            return f"({x[0]} {f} {y[0]})", f"({x[1]} {f} {y[1]})"
        if f in ("min", "max"):
            return f"tl.{f}imum({x[0]}, {y[0]})", f"np.{f}imum({x[1]}, {y[1]})"
        if f == "where":
            return f"tl.where({x[0]} > {y[0]}, {y[0]}, {x[0]})", f"np.where({x[1]} > {y[1]}, {y[1]}, {x[1]})"
        if f == "half":
            return f"tl.floor({x[0]} * 0.5)", f"np.floor({x[1]} * 0.5)"
        if f == "cast":
            return f"({x[0]}).to(tl.int32).to(tl.float32)", f"np.trunc({x[1]})"
        if f == "neg":
            return f"(-{x[0]})", f"(-{x[1]})"
        return f"({x[0]} + 0)", f"({x[1]} + 0)"


@pytest.mark.parametrize("seed", SEEDS)
def test_random_elementwise(seed: int) -> None:
    """Trees over a tile, a row and a column of it, reductions of it rebroadcast, in a loop or a branch."""
    r = random.Random(10_000 + seed)
    a, b = r.choice([1, 2, 5, 8, 16, 32]), r.choice([1, 7, 16, 64, 100, 128])
    names = {"x": "x", "y": "y", "row": "row", "col": "col[:, None]"}
    if r.random() < 0.5:
        names["rsum"] = "x.sum(1, keepdims=True)"
    if r.random() < 0.5:
        names["cmax"] = "y.max(0, keepdims=True)"
    source, value = Tree(r, names).make(r.randint(1, 4))
    form = r.choice(["plain", "loop", "branch"])
    lines = [
        f"@tl.kernel(num_warps={r.choice([None, 1, 2, 4])})",
        "def k(X: tl.Buffer[M, N], Y: tl.Buffer[M, N], R: tl.Buffer[N], C: tl.Buffer[M], O: tl.Buffer[M, N],",
        "      n: tl.int32):",
        "    i = tl.program_id(0)",
        f"    I, J = slice(i * {a}, i * {a} + {a}), slice(0, {b})",
        "    x, y, row, col = X[I, J], Y[I, J], R[J][None, :], C[I][:, None]",
        "    rsum, cmax = tl.sum(x, axis=1, keep_dims=True), tl.max(y, axis=0, keep_dims=True)",
        f"    z = x + ({source})",
    ]
    if form == "loop":
        lines += ["    for t in range(n):", "        z = z + 1"]
    if form == "branch":
        lines += ["    if n > 1:", "        z = z - 1", "    else:", "        z = z * 2"]
    kernel = module("\n".join([*lines, "    O[I, J] = z"]))
    for n in (0, 3):
        m, cols = r.choice([1, 3, a, 2 * a + 1]), r.choice([max(b - 3, 1), b])
        rng = np.random.default_rng(seed)
        x, y = rng.integers(-9, 9, (m, cols)).astype(F32), rng.integers(-9, 9, (m, cols)).astype(F32)
        row, col = rng.integers(-9, 9, cols).astype(F32), rng.integers(-9, 9, m).astype(F32)
        views = [r.choice(VIEWS) for _ in range(3)]
        out = Out((m, cols), F32, views[2])
        kernel(given(x, views[0]), given(y, views[1]), row, col, out.view, n)
        parts = []
        for s in range(0, m, a):
            names = {"x": x[s : s + a], "y": y[s : s + a], "row": row, "col": col[s : s + a]}
            parts.append(names["x"] + eval(value, {"np": np, **names}))
        want = np.concatenate(parts)
        want = want + n if form == "loop" else (want - 1 if n > 1 else want * 2) if form == "branch" else want
        try:
            out.equal(want)
        except AssertionError as e:
            raise AssertionError(f"{seed}, {m}x{cols}, n = {n}, {views}\n" + "\n".join(lines) + f"\n{e}") from None


@pytest.mark.parametrize("seed", SEEDS)
def test_random_slices(seed: int) -> None:
    """Copies between slices at run-time offsets with steps, ends and dropped dims: NumPy's meaning where inside."""
    r = random.Random(20_000 + seed)
    c, d = r.choice([1, 4, 12, 32]), r.choice([1, 5, 16, 64])
    dtype: Any = r.choice([F32, F16, np.int8, np.int64, BF16])
    kernel = module(f"""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[K, L], a: tl.int32, b: tl.int32, e: tl.int32, f: tl.int32,
              end: tl.int32):
            O[e : e + {c}, f : f + {d}] = X[a : a + {c}, b : min(b + {d}, end)]
    """)
    for _ in range(3):
        m, n, p, q = (r.choice([1, 3, 16, 70]) for _ in range(4))
        rng = np.random.default_rng(seed)
        x = rng.integers(-50, 50, (m, n)).astype(dtype)
        a, b, e, f = (r.randint(-5, 20) for _ in range(4))
        end = r.choice([n, n - 1, b + 2, 10**6])
        views = r.choice(VIEWS), r.choice(VIEWS)
        out = Out((p, q), dtype, views[1])
        want = out.view.copy()
        for i in range(c):
            for j in range(d):
                if 0 <= a + i < m and 0 <= b + j < min(n, end) and 0 <= e + i < p and 0 <= f + j < q:
                    want[e + i, f + j] = x[a + i, b + j]
        kernel[1](given(x, views[0]), out.view, a, b, e, f, end)
        try:
            out.equal(want)
        except AssertionError as err:
            what = (seed, c, d, str(np.dtype(dtype)), (m, n), (p, q), (a, b, e, f, end), views)
            raise AssertionError(f"{what}: {err}") from None


class Program:
    """Random statements over two tiles, a shared tile, a tensor and an int: one text, run as a kernel and by NumPy."""

    def __init__(self, r: random.Random, side: int, square: bool) -> None:
        self.r, self.side, self.square = r, side, square
        self.lines: list[str] = []

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, d: int, room: int) -> None:
        r, tile = self.r, self.r.choice(["t", "u"])
        other = "u" if tile == "t" else "t"
        kind = r.choice(
            ["sum", "min", "to_shared", "shared", "flip", "store", "load", "int", "row", "if", "for", "while"]
        )
        n = self.side
        if kind == "sum":
            self.put(d, f"{tile} = tl.maximum(tl.minimum({tile} + {other} + n, 40), -40)")
        elif kind == "min":
            self.put(d, f"{tile} = tl.where({other} > {r.randint(-3, 3)}, {tile}, {other} - 1)")
        elif kind == "to_shared":
            self.put(d, f"s[:, :] = {tile}")
        elif kind == "shared":
            self.put(d, f"{tile} = s[:, :] + 0")
        elif kind == "flip" and self.square:
            self.put(d, f"{tile} = {r.choice(['s', other])}.T + 0")
        elif kind == "store":
            a, b = r.randint(0, 9), r.randint(0, 9)
            self.put(d, f"G[{a} : {a} + H, {b} : {b} + {n}] = {tile}")
        elif kind == "load":
            a, b = r.randint(0, 9), r.randint(0, 9)
            self.put(d, f"{tile} = G[{a} : {a} + H, {b} : {b} + {n}] + 0")
        elif kind == "int":
            self.put(
                d,
                r.choice(
                    [
                        f"n = tl.cast(tl.max({tile}), tl.int32) % 7",
                        "n = n + 1",
                        f"n = tl.cast(tl.sum({tile}) % 5, tl.int32)",
                    ]
                ),
            )
        elif kind == "row":
            self.put(d, f"{tile} = {tile} - tl.max({tile}, axis={r.randint(0, 1)}, keep_dims=True) % 9")
        elif kind == "if" and room:
            self.put(d, f"if n % {r.randint(2, 3)} == {r.randint(0, 1)}:")
            self.block(d + 1, room - 1)
            if r.random() < 0.5:
                self.put(d, "else:")
                self.block(d + 1, room - 1)
        elif kind == "for" and room:
            self.put(d, f"for _ in range({r.choice(['n % 3', '2', 'n % 2'])}):")
            self.block(d + 1, room - 1)
        elif kind == "while" and room:
            self.put(d, f"k{d} = 0")
            self.put(d, f"while k{d} < 2 and tl.max({tile}) > -30:")
            self.put(d + 1, f"k{d} = k{d} + 1")
            self.block(d + 1, room - 1)
        else:
            self.put(d, f"{tile} = {tile} + 1")

    def block(self, d: int, room: int) -> None:
        for _ in range(self.r.randint(1, 4)):
            self.statement(d, room)


class Shim:
    """The functions of tl that a Program uses, over NumPy."""

    int32 = np.int32
    maximum, minimum, where = np.maximum, np.minimum, np.where

    @staticmethod
    def max(x: np.ndarray, axis: int | None = None, keep_dims: bool = False) -> Any:
        return np.max(x, axis=axis, keepdims=keep_dims)

    @staticmethod
    def sum(x: np.ndarray) -> Any:
        return np.sum(x)

    @staticmethod
    def cast(x: Any, dtype: Any) -> Any:
        return dtype(x)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed: int) -> None:
    """Order of LDS and global memory, carried and merged tiles, uniform branches, for 1 to 8 waves."""
    r = random.Random(30_000 + seed)
    square = r.random() < 0.7
    n = r.choice([16, 32, 64])
    h = n if square else r.choice([4, 8, 24])
    p = Program(r, n, square)
    for _ in range(r.randint(3, 7)):
        p.statement(0, 2)
    body = "\n".join("    " + x for x in p.lines)
    kernel = module(
        f"""
@tl.kernel(num_warps={r.choice([1, 2, 4, 8])})
def k(X: tl.Buffer[H, {n}], G: tl.Buffer[80, 80], O: tl.Buffer[H, {n}], P: tl.Buffer[H, {n}], Q: tl.Buffer[1],
      n: tl.int32):
    t = X[0:H, 0:{n}] + 0
    u = t * 2 - 1
    s = tl.alloc_shared([H, {n}], tl.float32)
    s[:, :] = t
{body}
    O[0:H, 0:{n}] = t
    P[0:H, 0:{n}] = u
    Q[0] = n
""",
        H=h,
    )
    rng = np.random.default_rng(seed)
    x, g0 = rng.integers(-5, 6, (h, n)).astype(F32), rng.integers(-5, 6, (80, 80)).astype(F32)
    for start in (0, 1, 2):
        g, o, q, c = Out((80, 80), F32), Out((h, n), F32), Out((h, n), F32), Out(1, F32)
        g.view[...] = g0
        env = {"tl": Shim, "H": h, "t": x.copy(), "u": x * 2 - 1, "s": x.copy(), "G": g0.copy(), "n": start}
        exec("\n".join(p.lines), env)
        kernel[1](x, g.view, o.view, q.view, c.view, start)
        try:
            for out, want in ((o, env["t"]), (q, env["u"]), (g, env["G"]), (c, [env["n"]])):
                out.equal(want)
        except AssertionError as e:
            raise AssertionError(f"{seed}, {h}x{n}, n = {start}\n{body}\n{e}") from None
