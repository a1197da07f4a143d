"""What the language refuses: each case must name its place (line, columns under the caret), the fault and a way out."""

from __future__ import annotations

import sys
import textwrap

import pytest
from fe_util import buf, module, scalar, traced

import tilelang as tl

HEAD = """
import math
import numpy as np

N = tl.dim("N")
LIST = [1, 2, 3]
ARRAY = __import__("numpy").zeros(3)

@tl.func
def endless(x):
    return endless(x + 1)

def plain(x):
    if x > 0:
        return x
    return -x

def plain_range(n):
    return [i for i in range(n)]

@tl.kernel
def k(x: tl.Buffer[N], o: tl.Buffer[N], n: tl.int32, h: tl.Buffer[N, 64, tl.float16]):
"""

# name: (body, text under the caret, part of the message, part of the hint or None)
CASES: dict[str, tuple[str, str, str, str | None]] = {
    # values
    "if_tile": ("if x[0:64]:\n    pass", "x[0:64]", "no single truth value", "tl.where"),
    "while_tile": ("while x[0:64]:\n    pass", "x[0:64]", "no single truth value", "tl.any"),
    "and_tile": ("y = x[0:64] > 0 and n > 1", "x[0:64] > 0", "no single truth value", "& | ~"),
    "not_tile": ("y = not x[0:64]", "not x[0:64]", "no single truth value", "tl.where"),
    "chained": ("t = x[0:64]\ny = 0 < t < 5", "0 < t < 5", "no single truth value", "parentheses"),
    "precedence": ("y = x[0:64] > 0 & x[0:64] > 1", "0 & x[0:64]", "& works on integers", "parentheses"),
    "sum": ("y = sum(x[0:64])", "sum(x[0:64])", "Python's sum()", "tl.sum"),
    "any": ("y = any(x[0:64])", "any(x[0:64])", "Python's any()", "tl.any"),
    "sorted": ("y = sorted(x[0:64])", "sorted(x[0:64])", "Python's sorted()", None),
    "len": ("y = len(x[0:64])", "len(x[0:64])", "Python's len()", "shape[0]"),
    "iterate": ("for v in x[0:64]:\n    pass", "x[0:64]", "cannot be iterated", "range"),
    "list_index": ("y = (1, 2, 3)[n]", "(1, 2, 3)[n]", "run-time value", "constant"),
    "shape": ("y = tl.zeros([n, 4])", "tl.zeros([n, 4])", "a shape must be constant", "constexpr"),
    "shape_2_40": ("y = tl.zeros([1 << 40])", "tl.zeros([1 << 40])", "fewer than 2**31 elements", None),
    "dtype": ("y = tl.zeros([4], dtype=n)", "tl.zeros([4], dtype=n)", "no such dtype", None),
    "item_of_value": ("t = x[0:64]\nt[0] = 3", "t[0]", "cannot be assigned to in part", "tl.where"),
    "index_of_value": ("y = x[0:64][n]", "x[0:64][n]", "indexed with", "shared"),
    "negative_step": ("y = x[64:0:-1]", "x[64:0:-1]", "positive constant", "strided view"),
    "runtime_step": ("y = x[0:64:n]", "x[0:64:n]", "positive constant", "strided view"),
    "step": ("y = x[0:64:2]", "x[0:64:2]", "slices with a step are not there yet, got step 2", "strided view"),
    "step_open": ("y = x[::3]", "x[::3]", "slices with a step are not there yet, got step 3", "strided view"),
    "step_store": ("x[0:64:2] = 1.0", "x[0:64:2]", "slices with a step are not there yet", "strided view"),
    "step_value": ("t = x[0:64]\ny = t[::2]", "t[::2]", "slices with a step are not there yet, got step 2", "strided"),
    "foreign_tanh": ("y = math.tanh(x[0:64])", "math.tanh(x[0:64])", "float() of", "tl.exp(2 * x) + 1"),
    "foreign_exp": ("y = 1 + math.exp(x[0])", "math.exp(x[0])", "float() of", "use tl.exp,"),
    "foreign_max": ("y = np.maximum(x[0:64], 0)", "np.maximum(x[0:64], 0)", "no single truth value", "tl.maximum"),
    "foreign_tanh_np": ("y = np.tanh(x[0:64])", "np.tanh(x[0:64])", "no callable tanh", "tl.exp(2 * x) + 1"),
    "no_tanh": ("y = tl.tanh(x[0:64])", "tl.tanh", "no attribute 'tanh'", "tl.exp(2 * x) + 1"),
    "no_method": ("y = x[0:64].sigmoid()", "x[0:64].sigmoid", "no attribute 'sigmoid'", "tl.exp(-x)"),
    "not_yet": ("y = tl.atomic_add(x[0:64], 1)", "tl.atomic_add", "no attribute", "not there yet"),
    "bool_mask": ("y = x[x[0:64] > 0]", "x[x[0:64] > 0]", "bool mask", "tl.where"),
    "slice_extent": ("o[0:n] = 1", "o[0:n]", "is not constant", "lo + C"),
    "slice_empty": ("y = x[8:8]", "x[8:8]", "at least 1", None),
    "too_many_indices": ("y = x[0:4, 0:4]", "x[0:4, 0:4]", "has 1 dimension", None),
    "whole_buffer": ("o[0:64] = x + 1", "x + 1", "a whole tensor", "x[i : i + C]"),
    "shapes": ("y = x[0:64] + x[0:32]", "x[0:64] + x[0:32]", "do not broadcast", None),
    "store_shape": ("o[0:64] = x[0:32]", "o[0:64]", "does not", None),
    "does_not_fit": (
        "y = h[0:4, 0:4].to(tl.int8) + 300",
        "h[0:4, 0:4].to(tl.int8) + 300",
        "does not fit int8",
        "convert",
    ),
    "shift": ("y = n << 40", "n << 40", "a shift by 40", None),
    "zero_div": ("y = n // 0", "n // 0", "division by zero", None),
    "invert_float": ("y = ~x[0]", "~x[0]", "~ works on integers", None),
    "dot_dtypes": (
        "y = tl.dot(x[0:64][:, None], h[0:1, 0:64])",
        "tl.dot(x[0:64][:, None], h[0:1, 0:64])",
        "one dtype, got float32 and float16",
        "convert one",
    ),
    "dot_shapes": ("y = h[0:64, 0:64] @ h[0:32, 0:64]", "h[0:64, 0:64] @ h[0:32, 0:64]", "do not fit", None),
    "dot_buffer": ("y = tl.dot(h, h)", "tl.dot(h, h)", "a whole tensor", "slice it"),
    "dot_vector": ("y = tl.dot(x[0:64], x[0:64])", "tl.dot(x[0:64], x[0:64])", "takes matrices", None),
    "dot_acc": (
        "y = tl.dot(h[0:8, 0:8], h[0:8, 0:8], tl.zeros([8, 8], tl.float16))",
        "tl.dot(h[0:8, 0:8], h[0:8, 0:8], tl.zeros([8, 8], tl.float16))",
        "must be a float32 tile",
        "tl.zeros([8, 8]",
    ),
    "shared_unread": (
        "s = tl.alloc_shared([8])\ny = s + 1",
        "s + 1",
        "before anything was stored",
        "alloc_shared(shape",
    ),
    "shared_rebound": ("s = tl.alloc_shared([8])\ns = x[0:8]", "s = x[0:8]", "only rebind", "s[...] = ..."),
    "program_axis": ("y = tl.program_id(3)", "tl.program_id(3)", "0, 1 or 2", None),
    "range_float": (
        "for i in range(0, x[0]):\n    pass",
        "range(0, x[0])",
        "must be an integer, got a run-time float32",
        "to(tl.int32)",
    ),
    "range_zero": ("for i in range(0, 9, 0):\n    pass", "range(0, 9, 0)", "step must not be 0", None),
    "range_list": ("y = [i for i in range(n)]", "", "for statement only", "constant bounds"),
    "stages": ("for i in tl.range(9, num_stages=0):\n    pass", "tl.range(9, num_stages=0)", "at least 1", None),
    # options that nothing honours yet
    "stages_3": (
        "for i in tl.range(9, num_stages=3):\n    pass",
        "tl.range(9, num_stages=3)",
        "not implemented yet",
        None,
    ),
    "unroll": ("for i in tl.range(9, unroll=2):\n    pass", "tl.range(9, unroll=2)", "not implemented yet", "static"),
    "pad": ("s = tl.alloc_shared([8], pad=4)", "tl.alloc_shared([8], pad=4)", "not implemented yet", "leave it out"),
    "sem": ("y = tl.load(x.at[0], sem='acquire')", "tl.load(x.at[0], sem='acquire')", "not implemented yet", None),
    # names
    "unbound_branch": ("if n > 1:\n    v = 3\no[0] = v", "v", "may have no value here", "every branch"),
    "unbound_loop": ("for i in range(n):\n    v = i\no[0] = v", "v", "may run 0 times", "before the loop"),
    "unbound_static": ("if False:\n    v = 3\no[0] = v", "v", "has no value here", None),
    "loop_variable": ("for i in range(n):\n    pass\no[0] = i", "i", "may run 0 times", None),
    "type_change": (
        "s = 0\nfor i in range(9):\n    s = x[0:64]\no[0:64] = s",
        "range(9)",
        "s changes its type in the loop",
        "convert",
    ),
    "shape_change": (
        "s = tl.zeros([64])\nfor i in range(9):\n    s = x[0:32]\no[0:32] = s",
        "range(9)",
        "a float32 tile of shape (64,)",
        None,
    ),
    "narrowing": (
        "s = tl.zeros([64], tl.float16)\nfor i in range(9):\n    s += x[0:64]\no[0:64] = s",
        "range(9)",
        "float16 tile of shape (64,) (line",
        "convert with .to(dtype)",
    ),
    "branch_types": ("if n > 1:\n    v = x[0:64]\nelse:\n    v = 3\no[0] = v", "n > 1", "v is a float32 tile", "both"),
    "buffer_rebound": ("b = x\nfor i in range(9):\n    o[i] = b[i]\n    b = o", "range(9)", "the buffer x (line", None),
    "leaked": (
        "keep = []\nfor i in range(9):\n    keep.append(x[i])\no[0] = keep[0]",
        "o[0]",
        "made inside a run-time loop",
        "local variable",
    ),
    "undefined": ("o[0] = nowhere", "nowhere", "NameError", None),
    "list_captured": ("o[0] = LIST[0]", "LIST", "reads LIST from outside", "tuples"),
    "array_captured": ("o[0] = ARRAY[0]", "ARRAY", "reads ARRAY from outside", "parameters"),
    # statements
    "global": ("global Z\nZ = 3", "global Z", "`global`", None),
    "try": ("try:\n    pass\nfinally:\n    pass", "try:", "`try`", None),
    "with": ("with n:\n    pass", "with n:", "`with`", None),
    "yield": ("yield n", "yield n", "`yield`", None),
    "class": ("class A:\n    pass", "class A:", "`class`", None),
    "import": ("import os", "import os", "`import`", None),
    "match": ("match n:\n    case 1:\n        pass", "match n:", "`match`", None),
    "raise": ("if n > 1:\n    raise ValueError('no')", "raise ValueError('no')", "run-time condition", "tl.assert_"),
    "for_else": ("for i in range(9):\n    pass\nelse:\n    pass", "pass", "`else` of a loop", "flag"),
    "return_value": ("return n", "return n", "a kernel returns nothing", "store"),
    # calls
    "print": ("print(x[0])", "print(x[0])", "print()", "store it"),
    "f_string": ("y = f'{x[0]}'", "", "f-string", "store it"),
    "helper_if": ("y = plain(n)", "", "cannot steer Python", "@tl.func"),
    "helper_range": ("y = plain_range(n)", "", "constant int is needed", "@tl.func"),
    "recursion": ("y = endless(n)", "", "nested calls", "compile time"),
    "static_assert": (
        "tl.static_assert(1 > 2, 'one')",
        "tl.static_assert(1 > 2, 'one')",
        "static assertion failed: one",
        None,
    ),
    "assert": ("assert 1 > 2, 'two'", "assert 1 > 2, 'two'", "static assertion failed: two", None),
    "grid_slices": (
        "for i in tl.grid(9):\n    o[i] = x[0:4]",
        "x[0:4]",
        "one integer per dimension",
        "outside of tl.grid",
    ),
    "grid_carried": (
        "s = 0\nfor i in tl.grid(9):\n    s = s + x[i]\no[0] = s",
        "tl.grid(9)",
        "carried from one iteration",
        "range",
    ),
    "grid_extent": ("for i in tl.grid(o):\n    o[i] = 0", "tl.grid(o)", "no integer o is known", "o.shape[0]"),
    "kernel_in_kernel": ("k(x, o, n, h)", "k(x, o, n, h)", "called inside a kernel", "@tl.func"),
}


def kernel_of(body: str) -> tuple[tl.Kernel, int]:
    """The kernel and the line number of its body's first line."""
    m = module(HEAD + textwrap.indent(body, "    ") + "\n")
    return m.k, len(HEAD.splitlines()) + 1


@pytest.mark.parametrize("name", sorted(CASES))
def test_refused(name: str) -> None:
    body, caret, message, hint = CASES[name]
    with pytest.raises(tl.CompileError) as info:
        k, first = kernel_of(body)
        traced(k, buf("f32", -16), buf("f32", -16), scalar("i32"), buf("f16", -16, 64))
    e = info.value
    text = str(e)
    print(text)
    assert message in e.message
    assert hint is None or (e.hint is not None and hint in e.hint)
    assert e.file is not None and e.file.startswith("<frontend-test-")
    assert e.line > 0
    assert e.col > 0 or (name.startswith("helper_") and sys.version_info < (3, 11))  # plain helpers have lines only
    if caret:
        assert e.line >= first
        line = ("\n" * (first - 1) + textwrap.indent(body, "    ")).splitlines()[e.line - 1]
        assert line[e.col - 1 : e.end_col - 1] == caret
        assert "\n    " + " " * (e.col - 1) + "^" * len(caret) in text
    assert text.startswith(f"{e.file}:{e.line}:{e.col}: " if e.col else f"{e.file}:{e.line}: ")


def test_both_lines() -> None:
    """A type change names the lines of both bindings."""
    k, first = kernel_of(CASES["type_change"][0])
    with pytest.raises(tl.CompileError, match=rf"\(line {first}\) before, and .*\(line {first + 2}\) at the end"):
        traced(k, buf("f32", -16), buf("f32", -16), scalar("i32"), buf("f16", -16, 64))


SIGNATURES = {
    "args": ("def k(*a: tl.Buffer): pass", "*a in the signature"),
    "kwargs": ("def k(**a: tl.Buffer): pass", "*a in the signature"),
    "mutable": ("def k(a: tl.constexpr = []): pass", "mutable default"),
    "no_annotation": ("def k(a): pass", "parameter a has no annotation"),
    "wrong_annotation": ("def k(a: int): pass", "its annotation must be tl.Buffer"),
    "async": ("async def k(a: tl.Buffer): pass", "`async`"),
}


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signature(name: str) -> None:
    text, message = SIGNATURES[name]
    with pytest.raises(tl.CompileError) as info:
        tl.compile(module("@tl.kernel\n" + text + "\n").k)
    assert message in info.value.message
    assert info.value.line == 2 and info.value.col > 0


def test_method() -> None:
    m = module("class A:\n    @tl.kernel\n    def k(self, a: tl.Buffer):\n        pass\n")
    with pytest.raises(tl.CompileError, match="a method cannot be a kernel"):
        tl.compile(m.A.k)


def test_unknown_options() -> None:
    with pytest.raises(TypeError, match="unknown option 'warps'; options are num_warps"):
        module("@tl.kernel(warps=4)\ndef k(a: tl.Buffer): pass\n")
    m = module("C = 3\n@tl.kernel\ndef k(a: tl.Buffer):\n    a[0] = C\n")
    with pytest.raises(TypeError, match="unknown option 'D'.*captures"):
        tl.compile(m.k, D=4)
    with pytest.raises(ValueError, match="option num_warps must be an int"):
        tl.compile(m.k, num_warps="4")
    with pytest.raises(ValueError, match="unknown target 'gfx1'.*gfx942"):
        tl.compile(m.k, target="gfx1")


def test_outside_of_kernels() -> None:
    with pytest.raises(RuntimeError, match="tl.zeros|tl.full.*inside a kernel only"):
        tl.zeros([4])
    with pytest.raises(TypeError, match="tl.compile takes a kernel"):
        tl.compile(lambda: 0)
