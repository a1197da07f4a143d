"""Parameters of kernels: ``Buffer[...]``, named dims, ``constexpr``; pairing of annotations with their source."""

from __future__ import annotations

import ast
import sys
import types
import typing
from typing import Any

from .base import parse_python
from .dtypes import DType

__all__ = ["Buffer", "BufferType", "Dim", "DimExpr", "Optional", "constexpr", "dim", "dims", "make_optional"]


class DimExpr:
    """An integer that is known at launch: a named dim or ``+ - * // %`` of such. One name has one value in a launch."""

    __slots__ = ("op", "args")

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        self.op = op
        self.args = args

    @staticmethod
    def _make(op: str, a: Any, b: Any) -> Any:
        for x in (a, b):
            if isinstance(x, bool) or not isinstance(x, (int, DimExpr)):
                return NotImplemented
        return DimExpr(op, (a, b))

    def __add__(self, o: Any) -> Any:
        return self._make("+", self, o)

    def __radd__(self, o: Any) -> Any:
        return self._make("+", o, self)

    def __sub__(self, o: Any) -> Any:
        return self._make("-", self, o)

    def __rsub__(self, o: Any) -> Any:
        return self._make("-", o, self)

    def __mul__(self, o: Any) -> Any:
        return self._make("*", self, o)

    def __rmul__(self, o: Any) -> Any:
        return self._make("*", o, self)

    def __floordiv__(self, o: Any) -> Any:
        return self._make("//", self, o)

    def __rfloordiv__(self, o: Any) -> Any:
        return self._make("//", o, self)

    def __mod__(self, o: Any) -> Any:
        return self._make("%", self, o)

    def __rmod__(self, o: Any) -> Any:
        return self._make("%", o, self)

    def __index__(self) -> int:
        raise TypeError(f"the dim {self} has a value at launch only")

    def __bool__(self) -> bool:
        raise TypeError(f"the dim {self} has a value at launch only")

    def evaluate(self, values: dict[str, int]) -> int:
        """Its value; KeyError names a dim that has none."""
        a, b = (x.evaluate(values) if isinstance(x, DimExpr) else x for x in self.args)
        if self.op == "+":
            return a + b
        if self.op == "-":
            return a - b
        if self.op == "*":
            return a * b
        return a // b if self.op == "//" else a % b

    def names(self) -> set[str]:
        """The named dims in it."""
        return set().union(*(x.names() for x in self.args if isinstance(x, DimExpr)))

    def __repr__(self) -> str:
        return f"({self.args[0]} {self.op} {self.args[1]})"


class Dim(DimExpr):
    """A named run-time size."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__("dim", ())
        self.name = name

    def evaluate(self, values: dict[str, int]) -> int:
        return values[self.name]

    def names(self) -> set[str]:
        return {self.name}

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Dim) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("dim", self.name))


def dim(name: str) -> Dim:
    """A named dim of a run-time size; the same name means the same size in one launch."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"a dim's name must be an identifier, got {name!r}")
    return Dim(name)


def dims(names: str) -> tuple[Dim, ...]:
    """``M, N = tl.dims("M N")``."""
    return tuple(dim(n) for n in names.replace(",", " ").split())


def bare(text: str) -> str:
    """Without the outer parentheses of an expression: K // 2."""
    return text[1:-1] if text.startswith("(") else text


class BufferType:
    """``Buffer[M, K]``, ``Buffer[M, K, float16]``, ``float16[M, K]``: dims (None: any rank) and dtype (None: open)."""

    __slots__ = ("dims", "dtype")

    def __init__(self, items: tuple[Any, ...] | None, dtype: DType | None = None) -> None:
        if items is not None and items == ((),):
            items = ()
        if items and isinstance(items[-1], DType):
            if dtype is not None:
                raise TypeError(f"two dtypes in one annotation: {dtype.name} and {items[-1].name}")
            items, dtype = items[:-1], items[-1]
        for d in items or ():
            if isinstance(d, bool) or not isinstance(d, (int, DimExpr)):
                hint = "; a captured tuple is spelled Buffer[*shape]" if isinstance(d, (tuple, list)) else ""
                raise TypeError(f"a dim of a buffer is an int, tl.dim(...) or an expression of them, got {d!r}{hint}")
            if isinstance(d, int) and d < 0:
                raise ValueError(f"a dim of a buffer cannot be negative, got {d}")
        if items is not None and len(items) > 6:
            raise ValueError(f"a buffer has at most 6 dims, got {len(items)}")
        self.dims = items
        self.dtype = dtype

    def __or__(self, other: Any) -> Any:
        return make_optional(self, other)

    def __repr__(self) -> str:
        if self.dims is None:
            return "Buffer"
        inner = ", ".join(bare(str(d)) for d in self.dims) or "()"
        return f"{self.dtype.name if self.dtype else 'Buffer'}[{inner}]"


class Buffer:
    """A tensor parameter: ``Buffer`` (any shape), ``Buffer[M, K]``, ``Buffer[M, K, float16]``, ``Buffer[()]``."""

    def __class_getitem__(cls, items: Any) -> BufferType:
        return BufferType(items if isinstance(items, tuple) else (items,))


class constexpr:
    """Annotation of a compile-time parameter; each value is compiled on its own."""


class Optional:
    """``Buffer[N] | None``."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


def make_optional(inner: Any, other: Any) -> Any:
    """``inner | None``; NotImplemented for anything but None."""
    return Optional(inner) if other is None else NotImplemented


class Param:
    """One parameter: kind "buffer", "scalar" or "constexpr"; ``buffer`` has dims and dtype, ``dtype`` is a scalar's."""

    __slots__ = ("name", "kind", "buffer", "dtype", "optional", "default", "has_default", "keyword_only")

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.buffer = BufferType(None)
        self.dtype: DType | None = None
        self.optional = False
        self.default: Any = None
        self.has_default = False
        self.keyword_only = False


def parse_annotation(name: str, ann: Any) -> Param:
    """The parameter that an evaluated annotation describes; TypeError with a sentence for anything else."""
    optional = False
    if isinstance(ann, Optional):
        ann, optional = ann.inner, True
    elif isinstance(ann, types.UnionType) or typing.get_origin(ann) is typing.Union:
        args = [a for a in typing.get_args(ann) if a is not type(None)]
        if len(args) == 1:
            ann, optional = args[0], len(typing.get_args(ann)) > 1
    if typing.get_origin(ann) is typing.Annotated:
        base, *items = typing.get_args(ann)
        dtype = base if isinstance(base, DType) else None
        if base is Buffer or dtype:
            ann = BufferType(tuple(items), dtype)
    if ann is Buffer:
        ann = BufferType(None)
    if isinstance(ann, BufferType):
        p = Param(name, "buffer")
        p.buffer = ann
        p.optional = optional
        return p
    if isinstance(ann, DType) and not optional:
        p = Param(name, "scalar")
        p.dtype = ann
        return p
    if ann is constexpr:
        return Param(name, "constexpr")
    width = {int: "tl.int32", float: "tl.float32", bool: "tl.bool_"}.get(ann) if isinstance(ann, type) else None
    got = f"Python's {ann.__name__}; name the width, e.g. {width}" if width else repr(ann)
    raise TypeError(
        f"parameter {name}: its annotation must be tl.Buffer[...], a dtype with dims (tl.float16[M, K]), "
        f"a dtype (a run-time scalar) or tl.constexpr, got {got}"
    )


def definition_frame(fn: types.FunctionType) -> types.FrameType | None:
    """The frame that is defining `fn` now: the one whose code holds the function's code."""
    f = sys._getframe(1)
    while f is not None:
        if any(c is fn.__code__ for c in f.f_code.co_consts):
            return f
        f = f.f_back
    return None


def evaluate_annotations(fn: types.FunctionType) -> dict[str, Any]:
    """The annotations of `fn`, evaluated as where it is being defined, strings (PEP 563) included."""
    raw = dict(fn.__annotations__)
    if not any(isinstance(v, str) for v in raw.values()):
        return raw
    frame = definition_frame(fn)
    local: dict[str, Any] = dict(frame.f_locals) if frame is not None and frame.f_globals is fn.__globals__ else {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        try:
            local.setdefault(name, cell.cell_contents)
        except ValueError:
            continue
    return {k: eval(v, fn.__globals__, local) if isinstance(v, str) else v for k, v in raw.items()}


def annotation_names(node: ast.expr | None, value: Any) -> dict[str, Any]:
    """Pairs the names in an annotation's source with the values they had: ``float16[B, K]`` gives B and K."""
    found: dict[str, Any] = {}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = parse_python(node.value, "eval").body
        except SyntaxError:
            return found
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        node, value = node.left, getattr(value, "inner", value)
    if not isinstance(node, ast.Subscript) or not isinstance(value, BufferType) or value.dims is None:
        return found
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(isinstance(i, ast.Starred) for i in items):
        return found
    for item, dim_value in zip(items, value.dims):
        if isinstance(item, ast.Name):
            found[item.id] = dim_value
    return found
