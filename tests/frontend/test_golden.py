"""Traced IR of whole kernels, compared with the texts in golden/ (TILELANG_UPDATE_GOLDEN=1 writes them anew)."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import fe_kernels as k
import pytest
from fe_util import buf, scalar, traced

from tilelang import _core

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stand_in = importlib.util.find_spec("torch") is None  # listing 1 imports it and uses it nowhere
    if stand_in:
        sys.modules["torch"] = types.ModuleType("torch")
    try:
        spec.loader.exec_module(module)
    finally:
        if stand_in:
            del sys.modules["torch"]
    return module.matmul_kernel


def square(elem: str) -> list[Any]:
    return [buf(elem, 1024, 1024)] * 3


def dyn(elem: str, *ranks: int) -> list[Any]:
    return [buf(elem, *(-16,) * r) for r in ranks]


CASES: dict[str, Any] = {
    "listing1_f16": lambda: traced(example("listing1_matmul"), *square("f16")),
    "listing1_f32": lambda: traced(example("listing1_matmul"), *square("f32")),
    "listing1_strided": lambda: traced(
        example("listing1_matmul"),
        buf("bf16", 1024, 1024, strides=(-8, 1), flags=1),
        buf("bf16", 1024, 1024, strides=(1, -8), flags=1),
        buf("bf16", 1024, 1024, strides=(-1, -2), align=2, flags=0),
    ),
    "listing2_f16": lambda: traced(
        example("listing2_grid"), buf("f16", 256, 384), buf("f16", 384, 512), buf("f16", 256, 512)
    ),
    "vector_add": lambda: traced(k.vector_add, *dyn("f32", 1, 1, 1)),
    "bias_relu": lambda: traced(k.bias_relu, *dyn("f16", 2, 2, 1, 2)),
    "two_dots": lambda: traced(k.two_dots, *dyn("f16", 2, 2, 2)),
    "matmul_64x128x32": lambda: traced(k.tiled_matmul(64, 128, 32), *dyn("f16", 2, 2, 2)),
    "matmul_16x256x64": lambda: traced(k.tiled_matmul(16, 256, 64), *dyn("f16", 2, 2, 2)),
    "control": lambda: traced(k.control, *dyn("f32", 1, 1), scalar("i32")),
    "halving": lambda: traced(k.halving, *dyn("i32", 1, 1)),
    "early_return": lambda: traced(k.early_return, *dyn("f32", 1, 1)),
    "helper": lambda: traced(k.helper, *dyn("f32", 1, 1)),
    "softmax": lambda: traced(k.softmax, *dyn("f16", 2, 2)),
    "grid_epilogue": lambda: traced(k.grid_epilogue, *dyn("f16", 2, 2, 1, 2, 2)),
    "grid_max": lambda: traced(k.grid_max, *dyn("f32", 2, 1)),
    "gather": lambda: traced(k.gather, buf("f32", -16, -16), buf("i32", -16), buf("f32", -16, -16)),
    "bounded": lambda: traced(k.bounded, buf("f32", -16), buf("i32", -1), buf("f32", -16)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_golden(name: str) -> None:
    text = CASES[name]()
    path = HERE / "golden" / f"{name}.tir"
    if os.environ.get("TILELANG_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    ir = _core.Ir()
    kernel = ir.parse(text, name)
    ir.verify(kernel)
    assert ir.text(kernel) == text


def test_traces_are_equal() -> None:
    """Nothing of one trace shows in the next."""
    kernel = k.control
    key = [*dyn("f32", 1, 1), scalar("i32")]
    assert traced(kernel, *key) == traced(kernel, *key)


def test_places() -> None:
    """Each operation knows its place: the product's columns in the line of the dot."""
    text = traced(example("listing1_matmul"), *square("f16"), locs=True)
    lines = (EXAMPLES / "listing1_matmul.py").read_text(encoding="utf-8").splitlines()
    row = next(n for n, s in enumerate(lines, 1) if "tl.dot" in s)
    col = lines[row - 1].index("tl.dot") + 1
    dot = next(s for s in text.splitlines() if " = dot " in s)
    assert dot.endswith(f'loc("{EXAMPLES}/listing1_matmul.py":{row}:{col})') or f":{row}:{col}" in dot


def test_time() -> None:
    """Tracing listing 1 from its source takes a few milliseconds (bar 3 ms; measured generously)."""
    import time

    import tilelang as tl

    fn = example("listing1_matmul")._definition.fn
    best = 1e9
    for _ in range(10):
        start = time.thread_time()
        traced(tl.kernel(fn), *square("f16"))
        best = min(best, time.thread_time() - start)
    print(f"tracing listing 1: {best * 1e3:.2f} ms of CPU time")
    assert best < 0.010
