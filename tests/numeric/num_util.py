"""Arrays with odd strides, poisoned outputs and tolerances for the numeric tests.

An output is a view into a larger buffer that is full of SENTINEL outside of the view and of NaN (or SENTINEL, for
integers) inside of it: `Out.check` compares the view and that nothing around it was touched.
"""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

import ml_dtypes
import numpy as np

import tilelang as tl

BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
SENTINEL = 77
EPS = {F16: 2.0**-10, BF16: 2.0**-7, F32: 2.0**-23, F64: 2.0**-52}
VIEWS = ("rows", "columns", "sliced", "steps", "negative", "odd")
_count = itertools.count()


def module(source: str, **names: Any) -> Any:
    """The kernel k of source text (with tl, M, N, K, L and `names` in scope)."""
    file = f"<numeric-{next(_count)}>"
    source = textwrap.dedent(source)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    m, n, k, length = tl.dims("M N K L")
    scope: dict[str, Any] = {"tl": tl, "np": np, "M": m, "N": n, "K": k, "L": length, "__name__": "numeric", **names}
    exec(compile(source, file, "exec"), scope)
    return scope["k"]


def is_float(dtype: Any) -> bool:
    return np.dtype(dtype) in EPS


def place(shape: tuple[int, ...], dtype: Any, view: str, fill: Any) -> tuple[np.ndarray, np.ndarray]:
    """(buffer full of `fill`, a view of that shape into it)."""
    dtype = np.dtype(dtype)
    r = len(shape)
    if view == "rows" or r == 0:
        base = np.full(shape, fill, dtype)
        return base, base
    if view == "columns":
        base = np.full(shape[::-1], fill, dtype)
        return base, base.T
    if view == "sliced":  # rows keep the alignment of the row pitch, one more column than 8 | pitch
        base = np.full(tuple(s + 2 for s in shape[:-1]) + (shape[-1] + 5,), fill, dtype)
        return base, base[tuple(slice(1, s + 1) for s in shape[:-1]) + (slice(2, shape[-1] + 2),)]
    if view == "odd":  # contiguous, off by one element
        n = int(np.prod(shape))
        base = np.full(n + 9, fill, dtype)
        return base, base[1 : n + 1].reshape(shape)
    if view == "steps":
        base = np.full(tuple(s * (2 + (d == r - 1)) for d, s in enumerate(shape)), fill, dtype)
        return base, base[tuple(slice(None, None, 2 + (d == r - 1)) for d in range(r))]
    assert view == "negative", view
    base = np.full(tuple(s + 2 for s in shape), fill, dtype)
    return base, base[tuple(slice(s, 0, -1) for s in shape)]


def given(x: Any, view: str = "rows") -> np.ndarray:
    """x in a view; NaN (SENTINEL for integers) in the gaps."""
    x = np.asarray(x)
    _, v = place(x.shape, x.dtype, view, np.nan if is_float(x.dtype) else SENTINEL % 2 if x.dtype == bool else SENTINEL)
    v[...] = x
    return v


class Out:
    """An output to give to a kernel: .view."""

    def __init__(self, shape: tuple[int, ...] | int, dtype: Any, view: str = "rows") -> None:
        shape = (shape,) if isinstance(shape, int) else shape
        self.base, self.view = place(shape, dtype, view, SENTINEL)
        if is_float(dtype):
            self.view[...] = np.nan

    def untouched_outside(self) -> None:
        keep = self.view.copy()
        self.view[...] = SENTINEL
        assert (self.base == SENTINEL).all(), "something outside of the output was written"
        self.view[...] = keep

    def equal(self, want: Any) -> None:
        """Bit for bit (any NaN equals any NaN)."""
        self.untouched_outside()
        got = self.view.astype(np.float64) if is_float(self.view.dtype) else self.view
        want = np.asarray(want).astype(self.view.dtype)
        np.testing.assert_array_equal(got, want.astype(np.float64) if is_float(self.view.dtype) else want)

    def close(self, want: Any, ulps: float, extra: Any = 0.0) -> None:
        """Within `ulps` of the output's dtype at |want|, plus `extra`."""
        self.untouched_outside()
        got, want = self.view.astype(np.float64), np.asarray(want, np.float64)
        room = ulps * EPS[self.view.dtype] * np.abs(want) + extra
        bad = ~(np.abs(got - want) <= room) & ~((got == want) | (np.isnan(got) & np.isnan(want)))
        assert not bad.any(), (
            f"{bad.sum()} of {bad.size} wrong, first at {np.argwhere(bad)[0].tolist()}: {got[bad][0]!r}, "
            f"wanted {want[bad][0]!r}"
        )


def accumulation(a: Any, b: Any) -> np.ndarray:
    """Room for the rounding of each element of a @ b summed in f32, for random data.

    With s = sqrt(sum of (a b)^2) the partial sums of one element are a random walk that ends at about s. Each of the K
    additions rounds its sum by at most 2^-24 of it, 1/sqrt(3) of that in the mean, with random sign: together
    sqrt(K) * 2^-24 * s / sqrt(6). Six standard deviations of that are 2.5 sqrt(K) * 2^-24 * s; allowed are 4: a matrix
    instruction may round more than once an addition.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return 4 * np.sqrt(a.shape[-1]) * 2.0**-24 * np.sqrt(a**2 @ b**2)
