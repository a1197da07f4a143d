"""Outputs that a call leaves out (``out=``) and buffers that are cleared before it (``zero=``)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .. import _core
from .._lazy import module
from ..errors import LaunchError, LaunchTypeError
from .dtypes import BY_ELEM, DType
from .params import Dim, DimExpr, Param


class Outputs:
    """``out=["C"]`` or ``out={"C": "A"}`` (dtype of C as A's), ``zero=["locks"]`` of one kernel."""

    def __init__(self, name: str, params: list[Param], out: Any, zero: Any) -> None:
        self.name = name
        self.params = params
        by_name = {p.name: p for p in params}
        self.dtype_of: dict[str, str] = dict(out) if isinstance(out, Mapping) else {}
        self.out: list[str] = self._names(out, "out")
        self.zero: list[str] = self._names(zero, "zero")
        for what, names in (("out", [*self.out, *self.dtype_of.values()]), ("zero", self.zero)):
            for n in names:
                if n not in by_name or by_name[n].kind != "buffer":
                    raise TypeError(f"{name}: {what} names {n!r}, which is no buffer parameter of the kernel")
        for n in self.out:
            b = by_name[n].buffer
            if b.dims is None:
                raise TypeError(f"{name}: output {n} needs its dims in the annotation")
            if b.dtype is None and n not in self.dtype_of:
                raise TypeError(f"{name}: output {n} needs a dtype in its annotation, or out={{{n!r}: 'A'}}")

    def _names(self, given: Any, what: str) -> list[str]:
        if given is None:
            return []
        items = [given] if isinstance(given, str) else list(given)
        if not all(isinstance(n, str) for n in items):
            raise TypeError(f"{self.name}: {what} takes names of parameters, got {given!r}")
        return items

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """All arguments by name, with the missing outputs allocated; and these outputs, in the order of ``out``."""
        places = [p.name for p in self.params if not p.keyword_only]
        required = [n for n in places if n not in self.out]
        order = required if len(args) == len(required) else places
        if len(args) > len(order):
            raise LaunchTypeError(f"{self.name}: takes {len(order)} positional arguments, got {len(args)}")
        bound: dict[str, Any] = dict(zip(order, args))
        for n, v in kwargs.items():
            if n in bound:
                raise LaunchTypeError(f"{self.name}: parameter {n}: given twice")
            bound[n] = v
        made = {n: None for n in self.out if n not in bound}
        if made:
            infos = self._tensors(bound)
            sizes = self._sizes(infos)
            for n in made:
                made[n] = bound[n] = self._allocate(n, bound, infos, sizes)
        for n in self.zero:
            if n in bound and bound[n] is not None and n not in made:
                clear(bound[n])
        return bound, [made[n] for n in self.out if n in made]

    def _tensors(self, bound: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
        return {
            p.name: _core.tensor_info(bound[p.name])
            for p in self.params
            if p.kind == "buffer" and bound.get(p.name) is not None
        }

    def _sizes(self, infos: dict[str, tuple[Any, ...]]) -> dict[str, int]:
        """Values of the named dims by the tensors that are given."""
        sizes: dict[str, int] = {}
        for p in self.params:
            if p.name in infos:
                for d, n in zip(p.buffer.dims or (), infos[p.name][2]):
                    if isinstance(d, Dim):
                        sizes.setdefault(d.name, n)
        return sizes

    def _allocate(self, name: str, bound: dict[str, Any], infos: dict[str, Any], sizes: dict[str, int]) -> Any:
        p = next(p for p in self.params if p.name == name)
        try:
            shape = tuple(d.evaluate(sizes) if isinstance(d, DimExpr) else d for d in p.buffer.dims or ())
        except KeyError as e:
            raise LaunchError(f"{self.name}: output {name}: its dim {e.args[0]} is no size of a given tensor") from None
        source = self.dtype_of.get(name)
        if p.buffer.dtype is None and source not in infos:
            raise LaunchError(f"{self.name}: output {name}: its dtype is that of {source}, which is not given")
        dtype = p.buffer.dtype or BY_ELEM[infos[source][1]]
        like = next((bound[q.name] for q in self.params if q.name in infos), None)
        return empty(shape, dtype, like)


def is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def empty(shape: tuple[int, ...], dtype: DType, like: Any) -> Any:
    """A new zeroed tensor on the device of `like` (a NumPy array if that is no torch tensor)."""
    name = dtype.name.rstrip("_")
    if is_torch(like):
        torch = sys.modules["torch"]
        return torch.zeros(shape, dtype=getattr(torch, name), device=like.device)
    np = module("numpy")
    if hasattr(np, name) or name == "bool":
        return np.zeros(shape, np.dtype(name))
    return np.zeros(shape, np.dtype(getattr(module("ml_dtypes"), name)))


def clear(x: Any) -> None:
    """Sets a tensor to zero in place."""
    if is_torch(x):
        x.zero_()
    else:
        x[...] = 0
