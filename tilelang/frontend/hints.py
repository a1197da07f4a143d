"""Ways out for names that kernels cannot call: functions of other packages, and such as are not there (yet)."""

from __future__ import annotations

import ast
import linecache
import sys
from typing import Any

from .base import Place, parse_python

# Other names of what there is.
SAME = {
    "absolute": "abs", "amax": "max", "amin": "min", "concatenate": "cat", "device_assert": "assert_", "fabs": "abs",
    "fmod": "rem", "rint": "round", "transpose": "trans",
}  # fmt: skip

# What there is not, and how to write it.
RECIPES = {
    "tanh": "1 - 2 / (tl.exp(2 * x) + 1)",
    "sigmoid": "1 / (1 + tl.exp(-x))",
    "softmax": "e = tl.exp(x - tl.max(x, axis=1, keep_dims=True)), e / tl.sum(e, axis=1, keep_dims=True)",
    "relu": "tl.maximum(x, 0)",
    "pow": "x ** 2, or tl.exp2(n * tl.log2(x)) for x > 0",
    "power": "x ** 2, or tl.exp2(n * tl.log2(x)) for x > 0",
    "square": "x * x",
    "reciprocal": "1 / x",
    "expm1": "tl.exp(x) - 1",
    "log1p": "tl.log(1 + x)",
    "log10": "tl.log(x) * 0.4342944819032518",
    "sinh": "(tl.exp(x) - tl.exp(-x)) / 2",
    "cosh": "(tl.exp(x) + tl.exp(-x)) / 2",
    "isnan": "x != x",
    "mean": "tl.sum(x, axis=1) / n",
    "clip": "tl.clamp(x, lo, hi)",
    "matmul": "tl.dot(a, b), or a @ b",
    "static_print": "Python's print",
    "multiple_of": "nothing: divisibility is known from the arguments",
    "max_contiguous": "nothing: contiguity is known from the arguments",
}

# Parts of the language that are not there yet (docs/frontend.md).
LATER = {
    "acos", "argmax", "argmin", "asin", "associative_scan", "atan", "atomic_add", "atomic_and", "atomic_cas",
    "atomic_max", "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "cat", "cos", "cumprod", "cummax", "cumsum",
    "device_print", "erf", "fence", "flip", "gather", "histogram", "join", "parallel", "print", "rand", "randint",
    "randn", "reduce", "sin", "sort", "split", "tile_order", "topk", "unpack",
}  # fmt: skip


def offered() -> set[str]:
    """Names that kernels can call."""
    package = sys.modules[__package__.partition(".")[0]]
    return {n for n in dir(package) if callable(getattr(package, n)) and n[0].islower() and n not in ("kernel", "func")}


def way_out(name: str) -> str | None:
    """What to write for the function `name` of another package, of a tile, or of tilelang where there is none."""
    there = SAME.get(name, name)
    if name in RECIPES:
        return f"there is no tl.{name}; write {RECIPES[name]}"
    if there in offered():
        return f"use tl.{there}, which takes tiles and run-time scalars"
    if there in LATER:
        return f"tl.{there} is not there yet: docs/frontend.md has the list"
    return None


def called(place: Place) -> str | None:
    """The function that the source at a place calls as PACKAGE.name(...), without the package."""
    file, line, col, end = place
    text = linecache.getline(file, line).rstrip("\n")
    if not file or not col:
        return None
    try:
        node: Any = parse_python(text[col - 1 : max(end - 1, col)].strip(), "eval").body
    except (SyntaxError, ValueError):
        return None
    fn = node.func if isinstance(node, ast.Call) else None
    return fn.attr if isinstance(fn, ast.Attribute) else None


def of_place(place: Place) -> str | None:
    """A way out where a function of another package was given a run-time value."""
    name = called(place)
    return way_out(name) if name is not None else None
