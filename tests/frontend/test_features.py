"""Python inside of kernels: what is resolved while tracing, and how it mixes with run-time values."""

from __future__ import annotations

import functools
import math
import textwrap
from typing import Any

import numpy as np
import pytest
from fe_util import module

HEAD = """
@tl.func
def find(v):
    for i in range(10):
        for j in range(10):
            if i * j == v:
                return i * 100 + j
    return -1

@tl.func
def mixed(x, *rest, scale=1, **more):
    for r in rest:
        x += r
    return x * scale + more.get("bias", 0)

@tl.func
def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)

def times(a, x):
    return a * x

triple = functools.partial(times, 3)

@tl.kernel
def k(o: tl.Buffer[4, tl.int32]):
    p = tl.program_id(0)
"""

CASES: dict[str, tuple[str, list[int]]] = {
    "nothing": ("pass", [-1, -1, -1, -1]),
    "static_merge": (
        "t = (1, 2)\nif len(t) > 1:\n    a, b = t\nelse:\n    a = b = 0\no[0] = a + b",
        [3, -1, -1, -1],
    ),
    "starred": ("a, *b = (1, 2, 3)\no[0] = a\no[1] = b[1]", [1, 3, -1, -1]),
    "two_targets": ("a = b = p + 5\no[0] = a\no[1] = b", [5, 5, -1, -1]),
    "dict": ('o[0] = {"a": 7}["a"]', [7, -1, -1, -1]),
    "enumerate": (
        "for i, v in enumerate((5, 6)):\n    o[i] = v\nfor i, v in zip((2, 3), (8, 9)):\n    o[i] = v",
        [5, 6, 8, 9],
    ),
    "while_true": ("i = 0\nwhile True:\n    o[i] = i\n    i += 1\n    if i >= 3:\n        break", [0, 1, 2, -1]),
    "while_return": (
        "i = 0\nwhile True:\n    o[i] = i\n    i += 1\n    if i >= 3:\n        return\no[3] = 9",
        [0, 1, 2, -1],
    ),
    "del": ("a = 3\nb = a\ndel a\no[0] = b", [3, -1, -1, -1]),
    "walrus": ("if (n := p + 2) > 1:\n    o[0] = n\no[1] = n", [2, 2, -1, -1]),
    "math": ("o[0] = int(math.pi)\no[1] = tl.sqrt(16.0)\no[2] = math.floor(2.7)", [3, 4, 2, -1]),
    "numpy_scalar": ("o[0] = SEVEN\no[1] = p + SEVEN", [7, 7, -1, -1]),
    "isinstance": (
        "o[0] = 1 if isinstance(o, int) else 2\no[1] = 1 if isinstance(3, int) else 2\no[2] = int(p) + int(2.9)",
        [2, 1, 2, -1],
    ),
    "lambda": ("f = lambda v: v + 1\nfor i in range(3):\n    o[i] = f(i)", [1, 2, 3, -1]),
    "closure": (
        "s = 0\nfor i in range(3):\n    def g(v):\n        return v * 10 + i\n    s = s + g(i)\no[0] = s",
        [33, -1, -1, -1],
    ),
    "comprehension": (
        "v = [x * 2 for x in range(4) if x % 2]\no[0] = sum(v)\no[1] = max(v)\no[2] = len(v)",
        [8, 6, 2, -1],
    ),
    "any": ("o[0] = any([False, True])\no[1] = sorted((3, 1))[0]", [1, 1, -1, -1]),
    "shape": ("n = o.shape[0] // 2\nfor i in range(n):\n    o[i] = n", [2, 2, -1, -1]),
    "string": ('mode = "fast"\nif mode == "fast" and mode not in ("a", "b"):\n    o[0] = 1', [1, -1, -1, -1]),
    "none": ("x = None\nif x is None:\n    x = p + 4\no[0] = x", [4, -1, -1, -1]),
    "tiles": ("t = tl.arange(4) * 2 + 1\nt = tl.where(t > 3, t, -t)\no[0:4] = t", [-1, -3, 5, 7]),
    "power": ("t = tl.arange(4)\no[0:4] = t ** 3 - t ** 0", [-1, 0, 7, 26]),
    "bools": ("a = p == 0\nb = p > 5\no[0] = a + a\no[1] = a and not b\no[2] = a | b\no[3] = a ^ a", [2, 1, 1, 0]),
    "builtins": (
        "q, r = divmod(p - 7, 3)\no[0] = q\no[1] = r\no[2] = abs(p - 5)\no[3] = round(2.5 + p)",
        [-3, 2, 5, 2],
    ),
    "assert": ("assert p < 5, 'no'\no[0] = 3", [3, -1, -1, -1]),
    "chain": ("o[0] = 1 if -1 < p < 5 else 2\no[1] = 1 if 0 < p < 5 < 9 else 2", [1, 2, -1, -1]),
    "arguments": ("o[0] = mixed(p, 1, 2, scale=10)\no[1] = mixed(p, bias=5)\no[2] = factorial(5)", [30, 5, 120, -1]),
    "partial": ("o[0] = triple(p + 2)", [6, -1, -1, -1]),
    "carried_tiles": (
        "t = tl.zeros([4], tl.int32)\nu = tl.arange(4)\nfor i in range(3):\n    t, u = u, t + i\no[0:4] = t",
        [1, 2, 3, 4],
    ),
    "tuple_result": (
        "def two(v):\n    if v > 0:\n        return v, v + 1\n    return 0, 0\na, b = two(p + 1)\no[0] = a\no[1] = b",
        [1, 2, -1, -1],
    ),
    "nested_return": ("o[0] = find(p + 12)\no[1] = find(p + 97)", [206, -1, -1, -1]),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_feature(name: str) -> None:
    body, want = CASES[name]
    m = module(HEAD + textwrap.indent(body, "    ") + "\n", math=math, functools=functools, SEVEN=np.int32(7))
    out: Any = np.full(4, -1, np.int32)
    m.k[1](out)
    assert out.tolist() == want
