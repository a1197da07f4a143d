"""Basis of a trace: the IR being built, scopes, places in the user's source, errors, constants."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import Any, Literal, NoReturn

from .. import _core
from ..errors import CompileError
from . import poly as P
from .dtypes import BY_ELEM, DType, int32
from .values import Idx, Scalar, Tile, Value

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
Place = tuple[str, int, int, int]  # file, line, column, end column (from 1; 0 = unknown)
NOWHERE: Place = ("", 0, 0, 0)

_current = threading.local()
_with_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def give_lock(x: Any) -> None:
    """Gives `x` an attribute `lock`; a forked child finds it free, whoever held it when the process forked."""
    x.lock = threading.Lock()
    _with_locks.add(x)


def _free_locks() -> None:
    for x in _with_locks:
        x.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


class _Parser:
    """Python 3.11 counts the depth of the trees it makes in one place for all threads: two that parse at once, when the
    garbage collector lets the second one in, raise SystemError."""

    lock: threading.Lock

    def __init__(self) -> None:
        give_lock(self)

    def __call__(self, text: str, mode: Literal["exec", "eval"] = "exec") -> Any:
        with self.lock:
            return ast.parse(text, mode=mode)


parse_python = _Parser()
"""parse_python(text, mode="exec"): the tree of a piece of Python, from any thread; raises SyntaxError."""


def current(what: str) -> Any:
    """The trace that runs in this thread; RuntimeError outside of a kernel."""
    t = getattr(_current, "trace", None)
    if t is None:
        raise RuntimeError(f"{what} works inside a kernel only (a function decorated with @tl.kernel)")
    return t


def running() -> Any:
    """The trace that runs in this thread, or None."""
    return getattr(_current, "trace", None)


def set_current(t: Any) -> Any:
    """Makes `t` the thread's trace; returns the one before."""
    before = getattr(_current, "trace", None)
    _current.trace = t
    return before


def _columns(line: str, start: int | None, end: int | None) -> tuple[int, int]:
    """UTF-8 byte offsets of a line to columns from 1."""
    if start is None:
        return 0, 0
    if line.isascii():
        return start + 1, (end if end is not None else start) + 1
    raw = line.encode()
    first = len(raw[:start].decode(errors="replace"))
    last = len(raw[:end].decode(errors="replace")) if end is not None else first
    return first + 1, last + 1


class PlaceMap:
    """Instruction offsets of code objects to places in the source; per process, keyed by the code object's identity.

    An entry: (weak reference to the code; whether it is the user's, or a table by line; places found so far).
    """

    def __init__(self) -> None:
        self.maps: dict[int, tuple[Any, Any, dict[int, Place]]] = {}

    def _add(self, code: CodeType, raw: Any) -> tuple[Any, Any, dict[int, Place]]:
        key = id(code)

        def gone(_: Any, maps: Any = self.maps, key: int = key) -> None:
            maps.pop(key, None)

        entry = self.maps[key] = (weakref.ref(code, gone), raw, {})
        return entry

    def of(self, frame: FrameType) -> Place | None:
        """The place a frame stands at; None for tilelang's own frames."""
        code = frame.f_code
        entry = self.maps.get(id(code)) or self._add(code, self._raw(code))
        raw = entry[1]
        if raw is None:
            return None
        i = frame.f_lasti // 2
        place = entry[2].get(i)
        if place is None:
            place = entry[2][i] = self._place(code, raw, i, frame.f_lineno)
        return place

    @staticmethod
    def _raw(code: CodeType) -> Any:
        name = code.co_filename
        if name.startswith(PACKAGE) and not name.endswith("demo.py"):
            return None
        return True if hasattr(code, "co_positions") else {}

    @staticmethod
    def _place(code: CodeType, raw: Any, i: int, lineno: int) -> Place:
        name = code.co_filename
        if isinstance(raw, dict):
            return raw.get(lineno) or (name, lineno, 0, 0)
        line, col, end_line, end_col = _core.code_place(code, 2 * i)
        if line < 0:
            return (name, lineno or code.co_firstlineno, 0, 0)
        if col < 0:
            return (name, line, 0, 0)
        text = linecache.getline(name, line).rstrip("\n")
        if end_line != line:
            end_col = len(text.encode())
        return (name, line, *_columns(text, col, end_col))

    def set_columns(self, code: CodeType, columns: dict[int, Place]) -> None:
        """Python 3.10: places by line, for code without positions."""
        self._add(code, columns)


PLACES = PlaceMap()


class Scope:
    """A block being filled, and what is already computed in it."""

    __slots__ = ("parent", "block", "open", "alias", "memo", "kind")

    def __init__(self, parent: Scope | None, block: int, kind: str) -> None:
        self.parent = parent
        self.block = block
        self.open = True
        self.alias: Scope | None = None
        self.memo: dict[Any, int] = {}
        self.kind = kind

    def find(self, key: Any) -> int | None:
        s: Scope | None = self
        while s is not None:
            v = s.memo.get(key)
            if v is not None:
                return v
            s = s.parent
        return None


class TraceBase:
    """See the mixins for what a kernel can do; this one emits."""

    def __init__(self, ir: Any, ops: dict[str, tuple[int, int]], name: str, place: Place) -> None:
        self.ir = ir
        self.opcodes = {k: v[0] for k, v in ops.items()}
        self.types: dict[Any, int] = {}
        self.locs: dict[Place, tuple[int, int, int, int]] = {}
        self.files: dict[str, int] = {}
        self.place = place
        self.kernel = ir.kernel(name, self.loc_of(place))
        self.root = Scope(None, ir.body(self.kernel), "kernel")
        self.scope = self.root
        self.atoms: dict[Any, int] = {}
        self.index_type = ir.type("index")
        self.widen: DType | None = None  # element type that a reducing statement of a grid loop computes in
        self.notes: list[str] = []

    # -- places and errors --

    def loc_of(self, place: Place) -> tuple[int, int, int, int] | None:
        loc = self.locs.get(place)
        if loc is None:
            if not place[0]:
                return None
            file = self.files.get(place[0])
            if file is None:
                file = self.files[place[0]] = self.ir.file(place[0])
            loc = self.locs[place] = (file, place[1], place[2], place[3])
        return loc

    def locate(self) -> Place:
        """Where the user's code stands: the innermost frame outside of tilelang. Also kept in ``self.place``."""
        f: FrameType | None = sys._getframe(1)
        while f is not None:
            place = PLACES.of(f)
            if place is not None:
                self.place = place
                return place
            f = f.f_back
        return self.place

    def fail(self, message: str, hint: str | None = None, place: Place | None = None, code: str = "") -> NoReturn:
        """Raises a CompileError at `place` (default: where the user's code stands)."""
        file, line, col, end = place or self.locate()
        raise CompileError(message, file or None, line, col, end, hint, code)

    def fail_call(self, message: str, hint: str) -> NoReturn:
        """`fail`; where a function of another package was called, the hint names ours."""
        from . import hints

        place = self.locate()
        self.fail(message, hints.of_place(place) or hint, place)

    # -- emission --

    def ty(self, kind: str, dtype: DType | None = None, shape: tuple[int, ...] = ()) -> int:
        if dtype is None:
            return self.index_type
        key = (kind, dtype.elem, shape)
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = self.ir.type(kind, dtype.elem, shape)
        return found

    def ty_of(self, dtype: DType | None, shape: tuple[int, ...] = ()) -> int:
        """The type of a value: index, scalar or tile."""
        return self.ty("tile" if shape else "scalar", dtype, shape)

    def op(
        self,
        name: str,
        ins: tuple[int, ...],
        types: tuple[int, ...],
        attrs: dict[str, Any] | None = None,
        regions: tuple[int, ...] | None = None,
        hint: str = "",
        block: int = 0,
        place: Place | None = None,
    ) -> Any:
        """Builds an operation at the end of the current block; its result(s)."""
        loc = self.loc_of(place or self.locate())
        return self.ir.op(block or self.scope.block, self.opcodes[name], ins, types, attrs, regions, loc, hint)

    def wrap(self, val: int, dtype: DType | None, shape: tuple[int, ...] = (), partial: bool = False) -> Any:
        """The value object of an IR value."""
        if dtype is None:
            return self.index_of_val(val)
        return Tile(self, val, dtype, shape, partial) if shape else Scalar(self, val, dtype)

    def check_scope(self, v: Value) -> None:
        """A value made in a block that has been left cannot be used."""
        s: Scope | None = v.scope
        while s is not None and s.alias is not None:
            s = s.alias
        if v.t is not self:  # type: ignore[comparison-overlap]
            self.fail(
                f"{v.describe()} belongs to another kernel or to an earlier trace of this one",
                "do not keep values of a kernel in globals or containers between calls",
            )
        if s is not None and not s.open:
            self.fail(
                f"{v.describe()} was made inside a run-time loop or branch (line {v.place[1]}) and is used outside",
                "assign it to a local variable, which is carried or merged; not to a list or an attribute",
            )

    def push(self, kind: str) -> Scope:
        self.scope = Scope(self.scope, self.ir.block(self.kernel), kind)
        return self.scope

    def pop(self, scope: Scope) -> None:
        scope.open = False
        assert scope.parent is not None
        self.scope = scope.parent

    @property
    def conditional(self) -> bool:
        """Whether the current block runs under a run-time condition or loop."""
        return self.scope.parent is not None

    # -- constants --

    def const(self, value: Any, dtype: DType | None, shape: tuple[int, ...] = ()) -> int:
        """A constant (splat over a tile) as IR value; dtype None: index. The value must fit."""
        if dtype is not None and dtype.kind != "f":
            lo, hi = dtype.limits
            value = int(value)
            if not lo <= value <= hi:
                self.fail(
                    f"the number {value} does not fit {dtype.name} ({lo} .. {hi})",
                    "convert the other operand first: x.to(tl.int64), or a smaller number",
                )
        elif dtype is not None:
            try:
                value = float(value)
            except OverflowError:
                self.fail(f"the number {value} does not fit {dtype.name}")
        key = ("c", dtype.elem if dtype else "", shape, repr(value))
        found = self.scope.find(key)
        if found is None:
            found = self.ir.const(self.scope.block, self.ty_of(dtype, shape), value, self.loc_of(self.locate()))
            self.scope.memo[key] = found
        return found

    # -- exact integers --

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """See ArithMixin."""
        raise NotImplementedError

    def atom(self, key: Any) -> int:
        n = self.atoms.get(key)
        if n is None:
            n = self.atoms[key] = len(self.atoms)
        return n

    def index_of_val(self, val: int) -> Idx:
        """An IR value of type index as an expression of its own."""
        return Idx(self, {(self.atom(("v", val)),): 1}, ("val", val), self.scope)

    def as_index(self, x: Any, what: str = "an index") -> Any:
        """An int stays; bool, Idx and integer scalars become exact integers. Anything else is an error."""
        if isinstance(x, Idx):
            return x
        if isinstance(x, int):
            return int(x)
        if isinstance(x, Scalar):
            if x.dtype.kind in "iu":
                if x.formula is not None:
                    op, a, b = x.formula
                    return self.binary(op, self.as_index(a), self.as_index(b))
                if x.atom is None:
                    val = self.op("cast", (self.val(x),), (self.index_type,))
                    x.atom = self.index_of_val(val)
                    x.atom.scope = self.scope
                if self._visible(x.atom):
                    return x.atom
                return self.index_of_val(self.op("cast", (self.val(x),), (self.index_type,)))
            self.fail(f"{what} must be an integer, got {x.describe()}", "convert it: x.to(tl.int32)")
        if hasattr(x, "__index__") and not isinstance(x, Value):
            return int(x.__index__())
        self.fail(f"{what} must be an integer, got {self.describe(x)}")

    def _visible(self, v: Value) -> bool:
        s: Scope | None = v.scope
        while s is not None and s.alias is not None:
            s = s.alias
        return s is None or s.open

    def index_val(self, x: Any) -> int:
        """Emits an exact integer (int or Idx); reuses what is computed in an open block."""
        if not isinstance(x, Idx):
            return self.const(x, None)
        recipe = x.recipe
        if recipe[0] == "val":
            self.check_scope(x)
            return int(recipe[1])
        key = P.key(x.poly)
        found = self.scope.find(key)
        if found is None:
            if recipe[0] == "op":
                found = self.op(recipe[1], recipe[2], (self.index_type,), recipe[3])
            else:
                ins = tuple(self.index_val(v) for v in recipe[1:])
                found = self.op(recipe[0], ins, (self.index_type,))
            self.scope.memo[key] = found
        return found

    def fresh_atom(self, key: Any, recipe: tuple[Any, ...]) -> Idx:
        """An Idx that is one atom, known by `key`, emitted by `recipe`."""
        return Idx(self, {(self.atom(key),): 1}, recipe)

    def describe(self, x: Any) -> str:
        """What a value is, for messages."""
        if isinstance(x, Value):
            return x.describe()
        if isinstance(x, (bool, int, float, str)) or x is None:
            return f"{type(x).__name__} {x!r}"
        return f"a {type(x).__name__}"

    def val(self, x: Any) -> int:
        """The IR value of a scalar, tile or exact integer."""
        if isinstance(x, (Scalar, Tile)):
            s: Scope | None = x.scope
            if s is not self.scope:
                self.check_scope(x)
            return x.val
        if isinstance(x, Idx):
            return self.index_val(x)
        self.fail(f"a scalar or tile is wanted, got {self.describe(x)}")


def dtype_of_elem(elem: str) -> DType:
    return BY_ELEM[elem]


__all__ = ["CompileError", "NOWHERE", "PLACES", "Place", "Scope", "TraceBase", "current", "int32", "set_current"]
