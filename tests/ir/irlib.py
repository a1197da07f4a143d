"""ctypes view of the test library's IR functions (tests/clib/irtest.c)."""

from __future__ import annotations

import ctypes as C
import os
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TILELANG_BUILD", ROOT / "build"))
MAX_RANK = 6
OUT = 1 << 20
OK, PARSE_FAILED, FAILED = range(3)


class EvalArg(C.Structure):
    """TlEvalArg."""

    _fields_ = [
        ("data", C.c_void_p),
        ("dims", C.c_int64 * MAX_RANK),
        ("strides", C.c_int64 * MAX_RANK),
        ("scalar", C.c_uint64),
    ]


@lru_cache(maxsize=1)
def lib() -> C.CDLL:
    """build/libtilelang_test.so."""
    path = BUILD / "libtilelang_test.so"
    assert path.exists(), f"{path} is not there: make testlib"
    so = C.CDLL(str(path))
    so.tl_test_run.argtypes = [C.c_char_p, C.c_size_t, C.c_char_p, C.c_int, C.c_char_p, C.c_size_t]
    so.tl_test_alloc_sweep.argtypes = [C.c_char_p, C.c_size_t, C.c_char_p, C.c_int]
    so.tl_test_alloc_sweep.restype = C.c_int64
    so.tl_test_fuzz.argtypes = [C.c_char_p, C.c_size_t, C.c_uint64, C.c_int64, C.c_char_p, C.c_size_t]
    so.tl_test_fuzz.restype = C.c_int64
    so.tl_test_cast.argtypes = [C.c_int, C.c_int, C.c_void_p, C.c_void_p, C.c_size_t]
    so.tl_test_cast.restype = None
    so.tl_test_fold.argtypes = [C.c_char_p, C.c_int, C.c_void_p * 3, C.c_void_p, C.c_void_p, C.c_size_t]
    so.tl_test_fold.restype = None
    so.tl_test_eval.argtypes = [
        C.c_char_p,
        C.c_size_t,
        C.c_char_p,
        C.POINTER(EvalArg),
        C.c_uint32,
        C.POINTER(C.c_int64),
        C.c_char_p,
        C.c_size_t,
    ]
    so.tl_test_op_row.argtypes = [C.c_int, C.POINTER(C.c_char_p), C.POINTER(C.c_char_p)]
    return so


def op_rows() -> dict[str, str]:
    """Name -> type rule of every row of ops.def, as compiled."""
    out, i = {}, 1
    name, rule = C.c_char_p(), C.c_char_p()
    while lib().tl_test_op_row(i, C.byref(name), C.byref(rule)):
        assert name.value and rule.value
        out[name.value.decode()] = rule.value.decode()
        i += 1
    return out


def run(text: str | bytes, passes: str | None = "", round_trip: bool = False) -> tuple[int, str]:
    """Parse, verify, run passes ("" none, None the pipeline), print: (status, text or diagnostics)."""
    raw = text.encode() if isinstance(text, str) else text
    out = C.create_string_buffer(OUT)
    status = lib().tl_test_run(raw, len(raw), None if passes is None else passes.encode(), round_trip, out, OUT)
    return status, out.value.decode(errors="replace")


def good(text: str, passes: str | None = "", round_trip: bool = True) -> str:
    """The text after passes; fails with the diagnostics when it is not accepted."""
    status, out = run(text, passes, round_trip)
    assert status == OK, out
    return out


def alloc_sweep(text: str, passes: str | None = "", expect: int = OK) -> int:
    """Every memory request fails once; gives the number of requests, below 0 when a failure was not handled."""
    raw = text.encode()
    return lib().tl_test_alloc_sweep(raw, len(raw), None if passes is None else passes.encode(), expect)


def fuzz(text: str, seed: int, rounds: int) -> tuple[int, str]:
    """Mutations of the text; (number that the verifier accepted or -1, text of a failure)."""
    raw = text.encode()
    out = C.create_string_buffer(OUT)
    n = lib().tl_test_fuzz(raw, len(raw), seed, rounds, out, OUT)
    return n, out.value.decode(errors="replace")


def evaluate(text: str, args: list, grid: tuple[int, ...] = (1,), passes: str = "") -> tuple[int, str]:
    """Runs the text's first kernel on NumPy arrays (in place, any strides) and numbers."""
    raw = text.encode()
    c_args = (EvalArg * max(len(args), 1))()
    for c, a in zip(c_args, args, strict=False):
        if isinstance(a, np.ndarray):
            c.data = a.ctypes.data
            for d in range(a.ndim):
                c.dims[d] = a.shape[d]
                assert a.strides[d] % a.itemsize == 0
                c.strides[d] = a.strides[d] // a.itemsize
        elif isinstance(a, float):
            c.scalar = int(np.float64(a).view(np.uint64))
        else:
            c.scalar = int(a) & (2**64 - 1)
    g = (C.c_int64 * 3)(*(list(grid) + [1, 1])[:3])
    out = C.create_string_buffer(OUT)
    status = lib().tl_test_eval(raw, len(raw), passes.encode(), c_args, len(args), g, out, OUT)
    return status, out.value.decode(errors="replace")


def elements() -> dict[str, int]:
    """IR name -> number of the element types, from elem.def."""
    text = (ROOT / "csrc" / "target" / "elem.def").read_text()
    names = re.findall(r'^TL_ELEM\(\w+, "(\w+)"', text, re.M)
    return {n: i + 1 for i, n in enumerate(names)}
