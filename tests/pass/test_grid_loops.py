"""Pass grid_loops: loops over elements become tile programs, with Python's meaning.

Every case runs three ways: Python's own loops (gridlib), the evaluator on the tile program, and (a part of them) the
whole pipeline on the simulator with all its checks. Inputs are small integers, results must be equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gridlib
import irlib
import numpy as np
import pytest
from gridlib import Grid

PASSES = "simplify,grid_loops,simplify"
SIZES = {"M": 13, "N": 11, "K": 12, "L": 2}
MM = {"A": ("f16", "M K"), "B": ("f16", "K N"), "C": ("f16", "M N")}
XY = {"X": ("f32", "M N"), "Y": ("f32", "M N"), "b": ("f32", "N")}


def mm(a: str, b: str, c: str, e: str = "f16") -> dict[str, tuple[str, str]]:
    return {"A": (e, a), "B": (e, b), "C": (e, c)}


CONTRACTIONS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "plain": ("for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]", MM),
    "k_outermost": ("for k, j, i in grid(K, N, M):\n C[i, j] += A[i, k] * B[k, j]", MM),
    "k_between": ("for j, k, i in grid(N, K, M):\n C[i, j] += A[i, k] * B[k, j]", MM),
    "swapped_factors": ("for i, j, k in grid(M, N, K):\n C[i, j] += B[k, j] * A[i, k]", MM),
    "a_transposed": ("for i, j, k in grid(M, N, K):\n C[i, j] += A[k, i] * B[k, j]", mm("K M", "K N", "M N")),
    "b_transposed": ("for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[j, k]", mm("M K", "N K", "M N")),
    "both_transposed": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[k, i] * B[j, k]",
        mm("K M", "N K", "M N", "bf16"),
    ),
    "c_transposed": ("for i, j, k in grid(M, N, K):\n C[j, i] += A[i, k] * B[k, j]", mm("M K", "K N", "N M", "f32")),
    "subtracted": ("for i, j, k in grid(M, N, K):\n C[i, j] -= A[i, k] * B[k, j]", MM),
    "other_names": (
        "for row, col, red in grid(M, N, K):\n out[row, col] += w[col, red] * act[red, row]",
        {"w": ("bf16", "N K"), "out": ("bf16", "M N"), "act": ("bf16", "K M")},
    ),
    "batched": (
        "for b, i, j, k in grid(L, M, N, K):\n C[b, i, j] += A[b, i, k] * B[b, k, j]",
        mm("L M K", "L K N", "L M N"),
    ),
    "batch_inside": (
        "for i, b, j, k in grid(M, L, N, K):\n C[i, b, j] += A[i, k, b] * B[b, k, j]",
        mm("M K L", "L K N", "M L N"),
    ),
    "b_shared_by_batches": (
        "for b, i, j, k in grid(L, M, N, K):\n C[b, i, j] += A[b, i, k] * B[k, j]",
        mm("L M K", "K N", "L M N"),
    ),
    "prologue": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * 2 * (B[k, j] + b[j])",
        {**MM, "b": ("f16", "N")},
    ),
    "prologue_rows": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += (A[i, k] + b[i]) * B[k, j]",
        {**MM, "b": ("f16", "M")},
    ),
    "scaled_k": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * s[k] * B[k, j]",
        {**MM, "s": ("f16", "K")},
    ),
    "f16_into_f32": ("for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]", {**MM, "C": ("f32", "M N")}),
    "mixed_operands": ("for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]", {**MM, "B": ("bf16", "K N")}),
    "offsets": ("for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k + 1] * B[k - 1, j]", MM),
    "row_offset": ("for i, j, k in grid(M, N, K):\n C[i, j] += A[i - 2, k] * B[k, j + 1]", MM),
    "max_after": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]\n"
        "for i, j in grid(M, N):\n C[i, j] = max(C[i, j], 0)",
        MM,
    ),
    "bias_relu_after": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]\n"
        "for r, c in grid(M, N):\n C[r, c] = C[r, c] + b[c]\n"
        "for r, c in grid(M, N):\n D[r, c] = max(C[r, c], 0)",
        {**MM, "b": ("f16", "N"), "D": ("f16", "M N")},
    ),
    "zeroed_before": (
        "for i, j in grid(M, N):\n C[i, j] = 0\nfor i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]",
        MM,
    ),
    "two_products": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]\n"
        "for i, j, k in grid(M, N, K):\n C[i, j] += D[i, k] * B[k, j]",
        {**MM, "D": ("f16", "M K")},
    ),
    "smaller_loops": ("for i, j, k in grid(10, 9, 7):\n C[i, j] += A[i, k] * B[k, j]", MM),
    "larger_loops": ("for i, j, k in grid(14, 20, 25):\n C[i, j] += A[i, k] * B[k, j]", MM),
    "half_loops": ("for i, j, k in grid(M // 2, N, K // 2):\n C[i, j] += A[i, k] * B[k, j]", MM),
}

ELEMENTWISE: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "bias": ("for i, j in grid(M, N):\n Y[i, j] = X[i, j] + b[j]", XY),
    "loop_order": ("for j, i in grid(N, M):\n Y[i, j] = X[i, j] + b[j]", XY),
    "transposed": ("for i, j in grid(M, N):\n Y[i, j] = X[j, i] * 2 + b[j]", {**XY, "X": ("f32", "N M")}),
    "stencil": ("for i, j in grid(M, N):\n Y[i, j] = X[i - 1, j] + X[i + 1, j] + X[i, j + 1]", XY),
    "shifted_up": ("for i, j in grid(M, N):\n Y[i + 2, j] = X[i, j]", XY),
    "shifted_down": ("for i, j in grid(M, N):\n Y[i - 2, j + 1] = X[i, j]", XY),
    "constant": ("for i, j in grid(M, N):\n Y[i, j] = 3.0", XY),
    "constant_shorter": ("for i, j in grid(M - 3, N):\n Y[i + 1, j] = 3.0", XY),
    "longer": ("for i, j in grid(M + 40, N + 300):\n Y[i, j] = X[i, j] + 1", XY),
    "loop_variable": ("for i, j in grid(M, N):\n Y[i, j] = i * 3 % 7 + X[i, j]", XY),
    "one_dim": ("for i in grid(M):\n y[i] = x[i] * x[i] - 1", {"x": ("f16", "M"), "y": ("f16", "M")}),
    "one_dim_long": ("for i in grid(V):\n y[i] = x[i] + 1", {"x": ("f16", "V"), "y": ("f16", "V")}),
    "rank_3": (
        "for a, b, c in grid(L, M, N):\n Y[a, b, c] = X[a, b, c] - X[a, b, 0]",
        {k: ("f32", "L M N") for k in "XY"},
    ),
    "rank_4": (
        "for a, b, c, d in grid(M, 3, 2, N):\n Y[a, b, c, d] = X[d, c, b, a] + Z[c, a]",
        {"X": ("f32", "N 2 3 M"), "Y": ("f32", "M 3 2 N"), "Z": ("f32", "2 M")},
    ),
    "rank_5": (
        "for a, b, c, d, e in grid(4, 3, 2, 5, N):\n Y[a, b, c, d, e] = X[a, b, c, d, e] + 1",
        {k: ("f32", "4 3 2 5 N") for k in "XY"},
    ),
    "rank_6": (
        "for a, b, c, d, e, f in grid(2, 3, 2, 2, 3, N):\n Y[a, b, c, d, e, f] = X[a, c, b, d, e, f]",
        {"X": ("f32", "2 2 3 2 3 N"), "Y": ("f32", "2 3 2 2 3 N")},
    ),
    "select": ("for i, j in grid(M, N):\n Y[i, j] = where(X[i, j] > 0, X[i, j] * 2, b[0])", XY),
    "fixed_row": ("for i, j in grid(M, N):\n Y[i, j] = X[3, j] + X[i, 6]", XY),
    "row_outside": ("for i, j in grid(M, N):\n Y[i, j] = X[M + 5, j] + 1", XY),
    "if": ("for i, j in grid(M, N):\n if X[i, j] > 0:\n  Y[i, j] = X[i, j] * 2", XY),
    "if_else": (
        "for i, j in grid(M, N):\n if i > 2:\n  Y[i, j] = X[i - 1, j]\n else:\n  Y[i, j] = b[j]\n  Y[i, j] += 1",
        XY,
    ),
    "if_in_if": (
        "for i, j in grid(M, N):\n if X[i, j] > 0:\n  if j < 9:\n   Y[i, j] += X[i, j]\n  else:\n   Y[i, j] = 0",
        XY,
    ),
    "conditional": ("for i, j in grid(M, N):\n Y[i, j] = X[i, j] if X[i, j] > b[j] else 7", XY),
    "add_in_place": ("for i, j in grid(M, N):\n Y[i, j] += X[i, j]", XY),
    "chain": (
        "for i, j in grid(M, N):\n Y[i, j] = X[i, j] * 2\nfor i, j in grid(M, N):\n Z[i, j] = Y[i, j] + b[j]",
        {**XY, "Z": ("f32", "M N")},
    ),
    "chain_with_gaps": (
        "for i, j in grid(M, N):\n Y[i, j] = X[i - 1, j]\nfor i, j in grid(M, N):\n Z[i, j] = Y[i, j] + 1",
        {**XY, "Z": ("f32", "M N")},
    ),
    "overwritten": (
        "for i, j in grid(M, N):\n Y[i, j] = X[i, j]\nfor i, j in grid(M, N):\n Y[i, j] = X[i + 1, j]",
        XY,
    ),
    "two_targets": (
        "for i, j in grid(M, N):\n Y[i, j] = X[i, j] + 1\n Z[j, i] = Y[i, j] * 2",
        {**XY, "Z": ("f32", "N M")},
    ),
    "independent": (
        "for i, j in grid(M, N):\n Y[i, j] = X[i, j]\nfor i in grid(M):\n z[i] = 1.0",
        {**XY, "z": ("f32", "M")},
    ),
}

REDUCTIONS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "row_sum": ("for i, j in grid(M, N):\n s[i] += X[i, j]", {"X": ("f16", "M N"), "s": ("f16", "M")}),
    "column_max": ("for i, j in grid(M, N):\n s[j] = max(s[j], X[i, j])", {"X": ("f16", "M N"), "s": ("f16", "N")}),
    "row_min": ("for i, j in grid(M, N):\n s[i] = min(s[i], X[i, j])", {"X": ("f32", "M N"), "s": ("f32", "M")}),
    "row_sum_i32": ("for i, j in grid(M, N):\n s[i] += X[i, j]", {"X": ("i32", "M N"), "s": ("i32", "M")}),
    "sum_with_gap": ("for i, j in grid(M, N):\n s[i] += X[i, j + 2]", {"X": ("f16", "M N"), "s": ("f16", "M")}),
    "sum_if": (
        "for i, j in grid(M, N):\n if X[i, j] > b[j]:\n  s[i] += X[i, j]",
        {"X": ("f16", "M N"), "b": ("f16", "N"), "s": ("f16", "M")},
    ),
    "product": ("for i, j in grid(M, 3):\n s[i] *= X[i, j]", {"X": ("f32", "M 3"), "s": ("f32", "M")}),
    "matvec": (
        "for i, k in grid(M, K):\n y[i] += A[i, k] * x[k]",
        {"A": ("f16", "M K"), "x": ("f16", "K"), "y": ("f32", "M")},
    ),
    "matvec_gap": (
        "for i, k in grid(M, K):\n y[i] += A[i, k] * x[k + 2]",
        {"A": ("f16", "M K"), "x": ("f16", "K"), "y": ("f32", "M")},
    ),
    "convolution": (
        "for i, k in grid(M, 3):\n y[i] += A[i + k - 1] * w[k]",
        {"A": ("f16", "M"), "w": ("f16", "3"), "y": ("f32", "M")},
    ),
    "i8_product": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]",
        {"A": ("i32", "M K"), "B": ("i32", "K N"), "C": ("i32", "M N")},
    ),
    "masked_product": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j] * D[i, j]",
        {**mm("M K", "K N", "M N", "f32"), "D": ("f32", "M N")},
    ),
    "norm": (
        "for i in grid(M):\n s[i] = 0\n for k in grid(N):\n  s[i] += X[i, k]\n"
        " for j in grid(N):\n  Y[i, j] = X[i, j] * 2 - s[i]",
        {"X": ("f32", "M N"), "Y": ("f32", "M N"), "s": ("f32", "M")},
    ),
    "norm_apart": (
        "for i, k in grid(M, N):\n s[i] += X[i, k]\nfor a, j in grid(M, N):\n Y[a, j] = X[a, j] * 2 - s[a]",
        {"X": ("f32", "M N"), "Y": ("f32", "M N"), "s": ("f32", "M")},
    ),
    "row_twice": (
        "for i in grid(M):\n for j in grid(N):\n  Y[i, j] = X[i, j] + 1\n for k in grid(N):\n  s[i] += Y[i, k]",
        {"X": ("f32", "M N"), "Y": ("f32", "M N"), "s": ("f32", "M")},
    ),
}

LOCALS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "rows": (
        "for i in grid(M):\n top = -100.0\n for j in grid(N):\n  top = max(top, X[i, j])\n total = 0.0\n"
        " for j in grid(N):\n  total += top - X[i, j]\n for j in grid(N):\n  Y[i, j] = X[i, j] * total - top",
        {"X": ("f32", "M N"), "Y": ("f32", "M N")},
    ),
    "columns": (
        "for j in grid(N):\n s = 1.0\n for i in grid(M):\n  s += X[i, j]\n y[j] = s",
        {"X": ("f16", "M N"), "y": ("f32", "N")},
    ),
    "gap": (
        "for i in grid(M):\n s = -50.0\n for j in grid(N):\n  s = max(s, X[i, j + 3] - 20)\n y[i] = s",
        {"X": ("f32", "M N"), "y": ("f32", "M")},
    ),
    "two_at_once": (
        "for i in grid(M):\n s = 0.0\n c = 0.0\n for j in grid(N):\n  s += X[i, j]\n  c += 1.0\n y[i] = s\n z[i] = c",
        {"X": ("f16", "M N"), "y": ("f32", "M"), "z": ("f32", "M")},
    ),
    "total_in_each": (
        "for i in grid(M):\n s = 0.0\n for j in grid(N):\n  s += x[j]\n y[i] = s - X[i, 0]",
        {"X": ("f32", "M N"), "x": ("f16", "N"), "y": ("f32", "M")},
    ),
    "product": (
        "for i in grid(M):\n s = 1.0\n for j in grid(3):\n  s = s * X[i, j]\n y[i] = s",
        {"X": ("f32", "M 3"), "y": ("f32", "M")},
    ),
    "matrix": (
        "for i, j in grid(M, N):\n s = 0.0\n for k in grid(K):\n  s += A[i, k] * B[k, j]\n C[i, j] = s",
        {**MM, "C": ("f32", "M N")},
    ),
}

SERIAL: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "recurrence": ("for i in grid(M):\n A[i] = A[i - 1] + 1", {"A": ("f32", "M")}),
    "recurrence_f16": ("for i in grid(M):\n A[i] = A[i - 1] + A[i]", {"A": ("f16", "M")}),
    "scatter": (
        "for i in grid(M):\n h[x[i] + 4] += A[i]",
        {"A": ("f32", "M"), "x": ("i32", "M"), "h": ("f32", "9")},
    ),
    "gather": ("for i in grid(M):\n y[i] = A[x[i]]", {"A": ("f32", "M"), "x": ("i32", "M"), "y": ("f32", "M")}),
    "strided": ("for i in grid(M):\n y[2 * i] = x[i]", {"x": ("f32", "M"), "y": ("f32", "M+M")}),
    "diagonal": ("for i, j in grid(M, M):\n y[i, j] = x[i, i]", {"x": ("f32", "M M"), "y": ("f32", "M M")}),
    "choice_at_the_edge": ("for i in grid(M):\n y[i] = x[i - 1] if i > 0 else 5", {k: ("f32", "M") for k in "xy"}),
    "branch_on_other_turns": (
        "for i in grid(M):\n if A[i - 1] > 0:\n  A[i] = A[i] - 9\n else:\n  A[i] = A[i] + 1",
        {"A": ("f32", "M")},
    ),
    "swap": ("for i in grid(M):\n t = x[i]\n x[i] = y[i]\n y[i] = t", {k: ("f32", "M") for k in "xy"}),
    "carried_both_ways": (
        "for i in grid(M):\n s = 0.0\n for j in grid(N):\n  s = s * 0.5 + X[i, j] * 8\n  s = s - s\n y[i] = s",
        {"X": ("f32", "M N"), "y": ("f32", "M")},
    ),
    "own_partial_sum": (
        "for i, j in grid(M, 3):\n s[i] += s[i] + X[i, j]",
        {"X": ("f32", "M N"), "s": ("f32", "M")},
    ),
    "last_wins": ("for i, j in grid(M, N):\n y[i] = X[i, j]", {"X": ("f32", "M N"), "y": ("f32", "M")}),
    "prefix_sum": (
        "for i, j in grid(M, N):\n s[i] += X[i, j]\n Y[i, j] = s[i]",
        {"X": ("f32", "M N"), "Y": ("f32", "M N"), "s": ("f32", "M")},
    ),
}

SINGLE: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "one_sum": ("for i in grid(M):\n s[0] += A[i]", {"A": ("f32", "M"), "s": ("f32", "1")}),
    "long_sum": ("for i in grid(V):\n s[0] += A[i] * A[i]", {"A": ("f16", "V"), "s": ("f32", "1")}),
    "sum_of_all": (
        "for i, j in grid(M, N):\n s[0, 0] = max(s[0, 0], A[i, j + 1])",
        {"A": ("f16", "M N"), "s": ("f16", "1 1")},
    ),
    "column_first": ("for i in grid(M):\n s[0] += A[i, 0]", {"A": ("f32", "M N"), "s": ("f32", "1")}),
    "both_ways": (
        "for i, j in grid(M, N):\n r[i] += X[i, j]\n c[j] += X[i, j]",
        {"X": ("f32", "M N"), "r": ("f32", "M"), "c": ("f32", "N")},
    ),
    "other_elements": (
        "for i, j in grid(M, N):\n Y[i, j] = X[i, j]\nfor i, j in grid(M, N):\n Z[i, j] = Y[i + 1, j]",
        {**XY, "Z": ("f32", "M N")},
    ),
    "transposed_after": (
        "for i, j in grid(M, N):\n Y[i, j] += X[i, j]\nfor i, j in grid(N, M):\n Z[i, j] = Y[j, i] + Y[j, 0]",
        {**XY, "Z": ("f32", "N M")},
    ),
    "dot_of_dot": (
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]\n"
        "for i, j, k in grid(M, K, N):\n D[i, j] += C[i, k] * B[j, k]",
        {**MM, "D": ("f16", "M K")},
    ),
    "total_used": (
        "for i in grid(M):\n s[0] += x[i]\nfor i in grid(M):\n y[i] = x[i] - s[0]",
        {"x": ("f32", "M"), "y": ("f32", "M"), "s": ("f32", "1")},
    ),
    "different_sizes": (
        "for i in grid(M):\n y[i] = x[i]\nfor i in grid(N):\n z[i] = x[i]",
        {"x": ("f32", "M"), "y": ("f32", "M"), "z": ("f32", "N")},
    ),
}

ALL = {
    **{f"contraction-{n}": c for n, c in CONTRACTIONS.items()},
    **{f"elementwise-{n}": c for n, c in ELEMENTWISE.items()},
    **{f"reduction-{n}": c for n, c in REDUCTIONS.items()},
    **{f"local-{n}": c for n, c in LOCALS.items()},
    **{f"single-{n}": c for n, c in SINGLE.items()},
    **{f"serial-{n}": c for n, c in SERIAL.items()},
}


def build(case: str, dynamic: bool, **more: Any) -> Grid:
    source, buffers = ALL[case]
    return Grid(source, buffers, {**SIZES, "V": 5000 if "long" in case else 300}, dynamic, **more)


def compare(k: Grid, got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    for n in got:
        bad = np.argwhere(got[n] != want[n])
        assert not len(bad), f"{n}{bad[:5].tolist()}: {got[n][tuple(bad[0])]}, not {want[n][tuple(bad[0])]}\n{k.text}"


def evaluate(k: Grid, seed: int = 1) -> str:
    """Tile program against Python's loops; the tile program's text."""
    text = irlib.good(k.text, PASSES)
    got = k.arrays(seed)
    want = {n: x.copy() for n, x in got.items()}
    k.reference(want)
    args = [*got.values(), *(v for _, v in k.scalars.values())]
    status, message = irlib.evaluate(k.text, args, gridlib.launch_grid(text, k), PASSES)
    assert status == irlib.OK, message
    compare(k, got, want)
    return text


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", ALL)
def test_meaning(case: str, dynamic: bool) -> None:
    text = evaluate(build(case, dynamic))
    assert not any(f" {op} " in text for op in ("grid", "element", "set_element", "acc_element"))
    kind = case.split("-")[0]
    assert ("dot %" in text) == (kind == "contraction" or "dot" in case), text
    assert ("for " in text and "tile<" not in text) == (kind == "serial"), text


def test_rows_are_reduced_by_tiles() -> None:
    """What lies along memory is read along memory: partial sums a position, joined once."""
    text = irlib.good(Grid(*ALL["reduction-row_sum"], {"M": 500, "N": 3000}).text, PASSES)
    assert text.count("reduce %") == 1 and "tile<8x256xf32>" in text and "fill %" in text
    even = irlib.good(Grid(*ALL["reduction-row_sum"], {"M": 500, "N": 4096}).text, PASSES)
    assert "fill %" not in even
    columns = irlib.good(Grid(*ALL["reduction-column_max"], {"M": 500, "N": 3000}).text, PASSES)
    assert "reduce" not in columns


def test_notes(tmp_path: Path) -> None:
    for case in ALL:
        r = gridlib.tlc(build(case, False), tmp_path, "--passes", PASSES)
        assert r.returncode == 0, r.stderr.decode()
        assert (b"runs serially, in one program" in r.stderr) == case.startswith("serial"), case
        assert (b"runs in one single program" in r.stderr) == case.startswith("single"), case
    r = gridlib.tlc(build("single-other_elements", False), tmp_path, "--passes", PASSES)
    assert b"'Y' is used at other elements than it is written" in r.stderr and b"split the kernel" in r.stderr
    assert b"k.tir:15:5: note: " in r.stderr


def test_overlap_runs_serially() -> None:
    """Without a promise that the tensors are apart, the loops keep their order."""
    k = Grid(*ALL["elementwise-bias"], SIZES, flags="")
    assert "tile<" not in evaluate(k)


def test_scalars() -> None:
    k = Grid(
        "for i, j in grid(M, N):\n Y[i, j] = X[i, n] * al + X[n + 100, j]",
        XY,
        SIZES,
        scalars={"al": ("f32", 3.0), "n": ("i32", 5)},
    )
    evaluate(k)
    k = Grid(
        "for i, j in grid(M, N):\n Y[i, j] = X[i, n] * al", XY, SIZES, scalars={"al": ("f32", 3.0), "n": ("i32", 5)}
    )
    evaluate(k)


def test_listing2() -> None:
    """The form of a tile-style matrix product: one loop over k with two loads and a dot, C read and written once."""
    text = irlib.good((Path(__file__).parent / "inputs" / "listing2_f16.tir").read_text(), PASSES)
    body = text[text.index("{\n") :]
    assert "grid0 = [-1, 256, 64], grid1 = [-1, 512, 64]" in text
    assert body.count("load %A") == body.count("load %B") == body.count("load %C") == body.count("store %C") == 1
    assert body.count("dot %") == 1 and "tile<64x64xf16>" in body and '"ss"' in body and "trans" not in body


@pytest.mark.parametrize(
    ("m", "n", "tile"), [(1024, 1024, "128x128"), (1024, 512, "64x64"), (1, 4096, "16x64"), (17, 3, "32x16")]
)
def test_tile_sizes(m: int, n: int, tile: str) -> None:
    text = irlib.good(Grid(CONTRACTIONS["plain"][0], MM, {"M": m, "N": n, "K": 4096}).text, PASSES)
    assert f": tile<{tile}xf32>" in text


def test_epilogue_stores_once() -> None:
    text = irlib.good(build("contraction-max_after", False).text, PASSES)
    assert text.count("store %C") == 1 and text.count("load %C") == 1


def test_narrow_operands_keep_their_dtype() -> None:
    """Plain f16 factors go to the matrix unit as they are; what is computed before the product is computed in f32."""
    plain = irlib.good(build("contraction-plain", True).text, PASSES)
    assert "tile<128x64xf16>" in plain and "tile<128x64xf32>" not in plain
    scaled = irlib.good(build("contraction-scaled_k", True).text, PASSES)
    assert "tile<128x32xf32>" in scaled


def test_rounds_once() -> None:
    """f16 ones over K = 2600: sums in f16 would stop at 2048."""
    k = Grid(CONTRACTIONS["plain"][0], MM, {"M": 3, "N": 2, "K": 2600})
    a = {n: np.ones(k.dims[n], np.float16) for n in MM}
    text = irlib.good(k.text, PASSES)
    status, message = irlib.evaluate(k.text, list(a.values()), gridlib.launch_grid(text, k), PASSES)
    assert status == irlib.OK, message
    assert (a["C"] == np.float16(2601)).all()


# ---- refused ----


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%p = program_id {axis = 0} : index", "grid loops and tile-style statements in one kernel"),
        ("%p = alloc_shared : shared<16xf32>\n  %q = load %p {dims = \"\"} : tile<16xf32>",
         "grid loops and tile-style statements in one kernel"),
    ],
)  # fmt: skip
def test_refused_around_loops(line: str, message: str) -> None:
    text = build("elementwise-bias", False).text.replace("{\n", "{\n  " + line + "\n", 1)
    status, out = irlib.run(text, "grid_loops")
    assert status == irlib.FAILED and message in out, out


def test_refused_grid() -> None:
    k = Grid(*ALL["elementwise-bias"], SIZES, attrs="user_grid = 1")
    status, out = irlib.run(k.text, PASSES)
    assert status == irlib.FAILED and "chooses its own grid" in out, out


# ---- robustness ----


@pytest.mark.parametrize(
    "case",
    [
        "contraction-bias_relu_after",
        "reduction-norm",
        "single-dot_of_dot",
        "serial-scatter",
        "serial-choice_at_the_edge",
        "elementwise-if_else",
        "reduction-sum_with_gap",
        "elementwise-rank_4",
    ],
)
def test_every_allocation_may_fail(case: str) -> None:
    assert irlib.alloc_sweep(build(case, True).text, "grid_loops") > 0


def test_random_nests() -> None:
    """Random sizes, offsets and orders of one contraction and what follows it."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        size = {n: int(rng.integers(1, 40)) for n in "MNK"}
        ext = [f"{n}{int(rng.integers(-3, 4)):+d}" if rng.random() < 0.3 else n for n in "MNK"]
        off = [f"{v}{int(rng.integers(-2, 3)):+d}" if rng.random() < 0.3 else v for v in ("i", "k", "k", "j")]
        order = rng.permutation(3)
        head = ", ".join("ijk"[o] for o in order), ", ".join(ext[o] for o in order)
        source = (
            f"for {head[0]} in grid({head[1]}):\n C[i, j] += A[{off[0]}, {off[1]}] * B[{off[2]}, {off[3]}]\n"
            f"for i, j in grid({ext[0]}, {ext[1]}):\n D[j, i] = max(C[i, j], X[{off[0]}, j])"
        )
        k = Grid(source, {**MM, "D": ("f16", "N M"), "X": ("f16", "M N")}, size, dynamic=bool(seed & 1))
        try:
            evaluate(k, seed)
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {source} {size}") from e


# ---- on the simulator ----

ON_SIMULATOR = [
    "contraction-plain", "contraction-k_outermost", "contraction-swapped_factors", "contraction-a_transposed",
    "contraction-b_transposed", "contraction-both_transposed", "contraction-c_transposed", "contraction-batched",
    "contraction-prologue", "contraction-offsets", "contraction-bias_relu_after", "contraction-smaller_loops",
    "contraction-larger_loops", "elementwise-bias", "elementwise-transposed", "elementwise-stencil",
    "elementwise-rank_4",
    "elementwise-rank_5", "elementwise-shifted_down", "elementwise-row_outside", "elementwise-chain_with_gaps",
    "elementwise-if_else",
    "elementwise-if_in_if",
    "elementwise-conditional",
    "reduction-sum_if",
    "serial-choice_at_the_edge",
    "reduction-row_sum", "reduction-column_max", "reduction-matvec_gap", "reduction-norm", "reduction-row_twice",
    "single-one_sum", "single-long_sum", "single-both_ways", "single-other_elements", "single-dot_of_dot",
    "single-total_used", "serial-recurrence", "serial-scatter",
]  # fmt: skip


@pytest.fixture(scope="module")
def device() -> Any:
    sim = pytest.importorskip("tilelang.sim")
    return sim.Device("gfx942", checks="all")


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", ON_SIMULATOR)
def test_on_simulator(case: str, dynamic: bool, device: Any, tmp_path: Path) -> None:
    k = build(case, dynamic)
    got = k.arrays(2)
    want = {n: x.copy() for n, x in got.items()}
    k.reference(want)
    gridlib.simulate(k, got, tmp_path, device)
    compare(k, got, want)


@pytest.mark.parametrize("elem", ["f16", "f32"])
def test_large_product_on_simulator(elem: str, device: Any, tmp_path: Path) -> None:
    """Several tiles along every axis, C read, bias and max behind."""
    sizes = {"M": 150, "N": 200, "K": 171}
    k = Grid(
        "for i, j, k in grid(M, N, K):\n C[i, j] += A[i, k] * B[k, j]\n"
        "for i, j in grid(M, N):\n C[i, j] = max(C[i, j], b[j])",
        {"A": (elem, "M K"), "B": (elem, "K N"), "C": (elem, "M N"), "b": (elem, "N")},
        sizes,
    )
    a = k.arrays(3, 3)
    want = np.maximum(a["C"].astype(np.float64) + a["A"].astype(np.float64) @ a["B"].astype(np.float64), a["b"])
    gridlib.simulate(k, a, tmp_path, device)
    assert np.array_equal(a["C"], want)
