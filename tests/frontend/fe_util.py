"""Helpers of the frontend's tests: IR text of a kernel for given argument kinds, kernels from strings."""

from __future__ import annotations

import itertools
import linecache
import textwrap
import types
from typing import Any

import tilelang as tl
from tilelang.frontend.build import Tracing

_count = itertools.count()


def buf(
    elem: str, *dims: int, strides: tuple[int, ...] | None = None, align: int = 16, flags: int = 3
) -> tuple[Any, ...]:
    """A buffer's part of the specialisation key: dims (constant, or -d = a multiple of d); dense without strides."""
    if strides is None:
        strides = (-16,) * (len(dims) - 1) + ((1,) if dims else ())
    else:
        flags &= ~2
    return ("buffer", elem, tuple(dims), strides, align, flags)


def scalar(elem: str) -> tuple[str, str]:
    return ("scalar", elem)


def traced(kernel: Any, *key: Any, target: str = "gfx942", locs: bool = False, **options: Any) -> str:
    """Tile-level IR text of a kernel for a key; goes through the checks of captured names."""
    if not isinstance(kernel, tl.Kernel):
        kernel = tl.kernel(kernel)
    engine = kernel._engine
    engine.captures.current()
    t = engine.tracing().run(tuple(key), options, target)
    return t.ir.text(t.kernel, locs)


def module(text: str, name: str | None = None, **names: Any) -> types.SimpleNamespace:
    """Runs source text as a file that linecache knows (as notebooks do); its names."""
    file = name or f"<frontend-test-{next(_count)}>"
    text = textwrap.dedent(text)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"tl": tl, "__name__": "frontend_test", **names}
    exec(compile(text, file, "exec"), scope)
    return types.SimpleNamespace(**{k: v for k, v in scope.items() if k.isidentifier()}, scope_=scope, file_=file)


__all__ = ["Tracing", "buf", "module", "scalar", "traced"]
