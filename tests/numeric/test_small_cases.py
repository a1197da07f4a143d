"""Inputs that trip kernel languages, as far as no other file here has them; what is not there is refused in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from num_util import BF16, F16, F32, Out, module

import tilelang as tl


def refused_or(k: Any, *args: Any) -> bool:
    """Runs the kernel; False when it was refused with a place and a reason."""
    try:
        k(*args)
    except tl.CompileError as e:
        assert e.line and e.args[0], e
        return False
    return True


@pytest.mark.parametrize("dtype,other,want", [
    ("float32", "0.0", 16), ("float32", 'float("nan")', np.nan), ("float32", 'float("-inf")', -np.inf),
    ("float32", "7", 16 + 7 * 240), ("float32", "0", 16), ("int32", "-1", 16 - 240),
])  # fmt: skip
def test_other(dtype: str, other: str, want: float) -> None:
    """C-08: what a load gives outside takes part in the sum."""
    k = module(f"""
        @tl.kernel
        def k(X: tl.Buffer[N], O: tl.Buffer[1]):
            O[0] = tl.sum(tl.load(X.at[0:256], other={other}))
    """)
    out = Out(1, dtype)
    if refused_or(k[1], np.ones(16, dtype), out.view):
        out.equal([want])


def test_gather_by_bytes() -> None:
    """C-14 b: an index tile of uint8."""
    k = module("""
        @tl.kernel
        def k(S: tl.Buffer[256, tl.int32], I: tl.Buffer[256, tl.uint8], O: tl.Buffer[256, tl.int32]):
            O[0:256] = S[I[0:256]]
    """)
    out = Out(256, np.int32)
    if refused_or(k[1], np.arange(256, dtype=np.int32), np.arange(256, dtype=np.uint8), out.view):
        out.equal(np.arange(256))


@pytest.mark.parametrize("bits", [24, 23, 22, 32])
@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
def test_division_of_known_width(bits: int, signed: bool) -> None:
    """C-13: operands that the backend knows to be narrow; quotients just below a whole number."""
    dtype = "int32" if signed else "uint32"
    narrow = f"({{}} << {32 - bits}) >> {32 - bits}" if signed else f"{{}} & {(1 << bits) - 1}"
    k = module(f"""
        @tl.kernel
        def k(A: tl.{dtype}[N], D: tl.{dtype}[N], Q: tl.{dtype}[N], R: tl.{dtype}[N]):
            p = tl.program_id(0)
            a, d = A[p * 256 : p * 256 + 256], D[p * 256 : p * 256 + 256]
            a, d = {narrow.format("a")}, {narrow.format("d")}
            Q[p * 256 : p * 256 + 256] = a // d
            R[p * 256 : p * 256 + 256] = a % d
    """)
    top = (1 << (bits - signed)) - 1
    rng = np.random.default_rng(13)
    d = np.concatenate([[12527449, 3122, 3, 7, 11, 1000, 12345], rng.integers(1, 1 << (bits // 2 + 2), 4000)])
    d = np.minimum(d, top)
    q = top // d - rng.integers(0, np.maximum(top // d // 50, 1))
    a = np.maximum(q * d - 1, 0)
    a[:2] = np.minimum([12527448, 14882573], top)
    if signed:
        a, d = a * rng.choice([-1, 1], a.size), d * rng.choice([-1, 1], a.size)
    quotient, rest = Out(a.size, np.dtype(dtype)), Out(a.size, np.dtype(dtype))
    k(a.astype(dtype), d.astype(dtype), quotient.view, rest.view)
    quotient.equal(a // d)
    rest.equal(a % d)


@pytest.mark.parametrize("rows", [1, 4])
def test_wide_rows(rows: int) -> None:
    """C-43: exp(a) * b + c over 65536 columns, and a sum: in time, or refused with the need named."""
    k = module(f"""
        @tl.kernel(num_warps=4)
        def k(A: tl.Buffer[M, N], B: tl.Buffer[M, N], C: tl.Buffer[M, N], O: tl.Buffer[M, N]):
            O[0:{rows}, 0:4096] = tl.exp(A[0:{rows}, 0:4096]) * B[0:{rows}, 0:4096] + C[0:{rows}, 0:4096]
    """)
    rng = np.random.default_rng(43)
    a, b, c = (rng.standard_normal((rows, 4096)).astype(F32) for _ in range(3))
    out = Out((rows, 4096), F32)
    k[1](a, b, c, out.view)
    e = np.exp(a.astype(float))
    out.close(e * b + c, 1, 4 * 2.0**-23 * np.abs(e * b))


def test_empty_tensors_everywhere() -> None:
    """Sizes of 0 in inputs: loads outside read nothing, reductions give the identity."""
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[M, N], O: tl.Buffer[4], S: tl.Buffer[1]):
            O[0:4] = tl.sum(X[0:4, 0:8], axis=1).fill(9)
            S[0] = tl.max(X[0:4, 0:8])
    """)
    for shape in ((0, 3), (3, 0), (0, 0)):
        o, s = Out(4, F32), Out(1, F32)
        k[1](np.zeros(shape, F32), o.view, s.view)
        o.equal([0] * min(shape[0], 4) + [9] * (4 - min(shape[0], 4)))
        s.equal([-np.inf])


def test_scalars_of_every_type() -> None:
    """C-17 b on tiles: a scalar parameter broadcast over a tile of its own type."""
    names = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64"]
    for name in names:
        k = module(f"""
            @tl.kernel
            def k(O: tl.Buffer[N, tl.{name}], s: tl.{name}):
                O[0:8] = tl.zeros([8], tl.{name}) + s
        """)
        dtype = BF16 if name == "bfloat16" else np.dtype(name)
        value = 2.5 if "float" in name else 100
        out = Out(5, dtype)
        k[1](out.view, value)
        out.equal([value] * 5)


@pytest.mark.parametrize("body,words", [
    ("acc = tl.zeros([8, 8], dtype=tl.float32)\nacc += tl.dot(X[0:8, 0:16], X[0:16, 0:8])\nX[0:8, 0:8] = acc", "16x16"),
    ("s = tl.alloc_shared([512, 512], tl.float32)\ns[:, :] = X[0:512, 0:512]\nX[0:512, 0:512] = s.T", "LDS"),
    ("p = tl.program_id(0)\nX[p * 3 : p * 3 + 4, 0:4] = 0", "grid"),
    ("n = X.shape[0]\nX[0:n, 0:4] = 0", "constant"),
], ids=["small dot", "LDS", "grid", "extent"])  # fmt: skip
def test_refusals(body: str, words: str) -> None:
    """Located, before anything is written."""
    lines = "\n".join("    " + x for x in body.splitlines())
    k = module(f"@tl.kernel\ndef k(X: tl.Buffer[M, N]):\n{lines}")
    x = np.full((600, 600), 5, F32)
    with pytest.raises(tl.CompileError, match=words) as e:
        k(x)
    assert e.value.line and e.value.col is not None
    assert (x == 5).all()


def test_unknown_target() -> None:
    k = module("""
        @tl.kernel
        def k(X: tl.Buffer[4]):
            X[0:4] = 1
    """)
    with pytest.raises((tl.CompileError, ValueError), match="gfx000"):
        tl.compile(k, target="gfx000", dtypes=(F16,), grid=1)
