"""The trace of one kernel: everything that the rewritten source and the functions of `tilelang` call."""

from __future__ import annotations

import builtins
import functools
from typing import Any

from . import poly as P
from .base import Place, Scope
from .capture import Captures
from .control import NO_NAMES, ControlMixin, GridSpec, Names, RangeSpec
from .dtypes import DType, bool_, float32, int32
from .loops import BoxLoop, Branch, GridLoop, RangeLoop, StaticBranch, StaticLoop, Ternary, WhileLoop
from .params import Dim, DimExpr
from .source import Source
from .values import UNBOUND, Alloc, BufferVal, FromEnd, Idx, Memory, Scalar, Tile, Unbound, Value

MAX_CALLS = 100
BUILTINS = frozenset(
    [
        "range",
        "min",
        "max",
        "abs",
        "round",
        "pow",
        "divmod",
        "int",
        "float",
        "bool",
        "print",
        "sum",
        "any",
        "all",
        "sorted",
        "len",
    ]
)  # replaced by functions that know run-time values


class Conversion(type):
    """int, float, bool and range in a kernel: calls go to the trace, isinstance() still sees Python's type."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.call(*args, **kwargs)  # type: ignore[attr-defined]

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.real)  # type: ignore[attr-defined]


class Trace(ControlMixin):
    """See the mixins. `names_of_annotations` are the integers that names had in the parameter annotations."""

    UNBOUND = UNBOUND

    def __init__(self, ir: Any, ops: dict[str, tuple[int, int]], name: str, place: Place) -> None:
        super().__init__(ir, ops, name, place)
        self.grid_depth = 0
        self.written: set[int] = set()
        self.reads: set[int] = set()
        self.maybe: dict[str, Any] = {}
        self.bool_stack: list[Any] = []
        self.resolve_extent: Any = None  # name of a buffer -> the integer of that name outside, or None
        self.call_depth = 0
        self.dims: dict[str, Any] = {}  # named dims -> int or Idx
        self.asserts: dict[str, list[str]] = {}  # "file:line" -> messages of the run-time assertions there
        self.helpers: dict[int, tuple[Any, Any]] = {}

    # -- literals of the rewritten source --

    @staticmethod
    def neg(n: int) -> FromEnd:
        """The literal -n in an index."""
        return FromEnd(-n)

    @staticmethod
    def slice(a: Any, b: Any, c: Any) -> slice:
        return slice(a, b, c)

    def annotated(self, value: Any, annotation: Any) -> Any:
        """``x: tl.float64 = 0``"""
        if isinstance(annotation, DType):
            if isinstance(value, Tile):
                if value.dtype is not annotation:
                    self.fail(
                        f"the annotation says {annotation.name}, the value is {value.describe()}",
                        "convert it: .to(dtype)",
                    )
                return value
            return self.cast(value, annotation)
        return value

    # -- loops and branches --

    def loop(self, it: Any, names: Names = NO_NAMES, flags: tuple[int, ...] = (), hints: tuple[str, ...] = ()) -> Any:
        if isinstance(it, RangeSpec):
            return RangeLoop(self, it, names, flags, hints)
        if isinstance(it, GridSpec) and self.grid_depth and names.names:
            # Locals that an inner grid loop rebinds are reduced over it, in order: a serial loop over its box.
            return BoxLoop(self, it.extents, names, flags, hints)
        if isinstance(it, GridSpec):
            return GridLoop(self, it, names, flags, hints)
        if isinstance(it, Value):
            iter(it)  # type: ignore[call-overload]
        return StaticLoop(self, it, names, flags, hints)

    def cond(self, test: Any, names: Names = NO_NAMES, merge: tuple[bool, ...] = ()) -> Any:
        c = self.truth(test)
        return StaticBranch(c) if isinstance(c, bool) else Branch(self, c, names, merge)

    def while_(self, names: Names = NO_NAMES, flags: tuple[int, ...] = ()) -> Any:
        return WhileLoop(self, names, flags)

    def ife_begin(self, test: Any) -> Any:
        c = self.truth(test)
        entry = Ternary(self, c)
        self.bool_stack.append(entry)
        return entry

    # -- functions --

    def outside(self, source: Source, names: dict[str, Any]) -> dict[str, Any]:
        """Captured names as the rewritten source sees them: dims as integers, builtins that know run-time values."""
        out = dict(names)
        for name in source.free_names():
            if name not in names:
                continue
            v = names[name]
            if isinstance(v, DimExpr):
                out[name] = self.dim_value(v)
            elif name in BUILTINS and v is getattr(builtins, name):
                known = functools.partial(self._call_builtin, name, v)
                out[name] = (
                    Conversion(name, (), {"call": staticmethod(known), "real": v}) if isinstance(v, type) else known
                )
        return out

    def _call_builtin(self, name: str, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.builtin(name, fn, args, kwargs)

    def dim_value(self, d: DimExpr) -> Any:
        """A named dim, or an expression of such, as an exact integer."""
        if isinstance(d, Dim):
            if d.name not in self.dims:
                self.fail(
                    f"the dim {d.name} is not a size of any parameter",
                    f"annotate a parameter with it: tl.Buffer[{d.name}]",
                )
            return self.dims[d.name]
        ops = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod"}
        a, b = (self.dim_value(x) if isinstance(x, DimExpr) else x for x in d.args)
        return self.binary(ops[d.op], a, b)

    def call_func(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a @tl.func inline."""
        if self.call_depth >= MAX_CALLS:
            self.fail(
                f"more than {MAX_CALLS} nested calls of @tl.func helpers ({func.fn.__name__})",
                "recursion must end at compile time",
            )
        entry = self.helpers.get(id(func))
        if entry is None:
            names = Captures(func.source, {}, {}, ()).names()
            entry = (func, func.source.function(self, self.outside(func.source, names)))
            self.helpers[id(func)] = entry
        return self.run(entry[1], args, kwargs)

    def run(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a rewritten function with names of its own."""
        before, self.maybe = self.maybe, {}
        self.call_depth += 1
        try:
            return fn(*args, **kwargs)
        finally:
            self.maybe = before
            self.call_depth -= 1

    # -- scalars of the kernel --

    def program_id(self, axis: int, op: str = "program_id") -> Idx:
        if isinstance(axis, Value) or axis not in (0, 1, 2):
            self.fail(f"the axis of {op} must be the constant 0, 1 or 2, got {self.describe(axis)}")
        if self.grid_depth:
            self.fail(f"{op} inside a grid loop: the compiler chooses its grid")
        x = self.fresh_atom((op, axis), ("op", op, (), {"axis": axis}))
        self.index_val(x)
        return x

    def exact_cdiv(self, a: Any, b: Any) -> Any:
        """Ceiling of a / b for exact integers of any sign."""
        if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                self.fail("division by zero in cdiv, or a range with step 0")
            return -(-a // b)
        if isinstance(b, int) and b > 0:
            return self.exact("floordiv", self.binary("add", a, b - 1), b)
        return self.exact("sub", 0, self.exact("floordiv", self.binary("sub", 0, a), b))

    def make_range(self, args: tuple[Any, ...], options: dict[str, Any]) -> RangeSpec:
        if not 1 <= len(args) <= 3:
            self.fail(f"range takes 1 to 3 arguments, got {len(args)}")
        lo, hi, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
        lo, hi, step = (
            self.as_index(x, f"a bound of range ({n})") for x, n in ((lo, "start"), (hi, "end"), (step, "step"))
        )
        if isinstance(step, int) and step == 0:
            self.fail("range() step must not be 0")
        return RangeSpec(self, lo, hi, step, options)

    # -- assignments --

    def aug(self, op: str, t: Any, x: Any) -> Any:
        """``t op= x`` of a name."""
        if isinstance(t, Unbound):
            self.fail("a variable without a value is updated here", "assign it first")
        if isinstance(t, Alloc):
            self.store(t, Ellipsis, self.accumulate(op, self.as_tile(t), x))
            return t
        if isinstance(t, BufferVal):
            self.fail(
                f"{t.describe()} is a whole tensor and cannot be updated at once",
                f"index it: {t.name}[i : i + C] += ...",
            )
        if isinstance(t, (Tile, Scalar)) or isinstance(x, Value):
            return self.accumulate(op, t, x)
        return self.inplace(op, t, x)

    @staticmethod
    def inplace(op: str, a: Any, b: Any) -> Any:
        """Python's own in-place operator."""
        import operator

        names = {"add": "iadd", "sub": "isub", "mul": "imul", "div": "itruediv", "floordiv": "ifloordiv", "mod": "imod"}
        names |= {"and": "iand", "or": "ior", "xor": "ixor", "shl": "ilshift", "shr": "irshift", "pow": "ipow"}
        names |= {"matmul": "imatmul"}
        return getattr(operator, names[op])(a, b)

    def aug_call(self, op: str, t: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """``t op= fn(...)``: with dot, the fused form."""
        fused = op == "add" and getattr(fn, "__tl_dot__", False) and "acc" not in kwargs and len(args) == 2
        if fused and isinstance(t, (Tile, Alloc)):
            return self._dot_into(t, *args, **kwargs)
        return self.aug(op, t, fn(*args, **kwargs))

    def aug_matmul(self, op: str, t: Any, a: Any, b: Any) -> Any:
        """``t op= a @ b``."""
        if (
            op == "add"
            and isinstance(t, (Tile, Alloc))
            and isinstance(a, (Tile, Memory))
            and isinstance(b, (Tile, Memory))
        ):
            return self._dot_into(t, a, b)
        return self.aug(op, t, a @ b)

    def _dot_into(self, t: Any, a: Any, b: Any, **options: Any) -> Any:
        old = self.as_tile(t)
        shape, wide = self._dot_types(a, b)
        if old.dtype is not wide or old.shape != shape:
            # Not the accumulator's own type: a product of its own, added by the usual rules.
            new = self.accumulate("add", old, self.dot(a, b, None, **options))
        else:
            new = self.dot(a, b, old, **options)
        if isinstance(t, Alloc):
            self.store(t, Ellipsis, new)
            return t
        return new

    def aug_mul(self, op: str, t: Any, a: Any, b: Any) -> Any:
        """``t op= a * b``."""
        if isinstance(t, Alloc):
            return self.aug(op, t, a * b)
        if isinstance(t, (Scalar, Tile)):
            return self.contract(op, t, a, b, True)
        return self.aug(op, t, a * b)

    def add_mul(self, t: Any, a: Any, b: Any) -> Any:
        """``t = t + a * b``."""
        if isinstance(t, (Scalar, Tile)) and (isinstance(a, Value) or isinstance(b, Value)):
            return self.contract("add", t, a, b, False)
        return t + a * b

    # -- assertions --

    def static_assert(self, condition: Any, message: Any = "") -> None:
        c = self.truth(condition)
        if not isinstance(c, bool):
            self.fail(
                "static_assert needs a condition that is known at compile time",
                "use tl.assert_ for run-time conditions",
            )
        if not c:
            text = message() if callable(message) else message
            self.fail(f"static assertion failed{': ' + str(text) if text else ''}")

    def assert_(self, condition: Any, message: Any = "") -> None:
        """The assert statement, and tl.assert_."""
        if isinstance(condition, Tile):
            condition = self.reduce(
                "all", self.binary("ne", condition, 0) if condition.dtype is not bool_ else condition, None, False, None
            )
        c = self.truth(condition)
        if isinstance(c, bool):
            self.static_assert(c, message)
            return
        text = str((message() if callable(message) else message) or "assertion failed")
        self.op("assert", (self.val(c),), (), {"msg": text})
        told = self.asserts.setdefault(f"{self.place[0]}:{self.place[1]}", [])
        if text not in told:
            told.append(text)

    # -- Python's builtins on run-time values --

    def builtin(self, name: str, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name == "range":
            return self.make_range(args, {})
        symbolic = any(isinstance(a, (Value, Unbound)) for a in args)
        if name in ("min", "max") and not kwargs and len(args) > 1 and symbolic:
            out = args[0]
            for a in args[1:]:
                out = self.minmax(name, out, a)
            return out
        if not symbolic:
            if name in ("min", "max") and any(isinstance(a, float) and a != a for a in args):
                return float("nan")  # as at run time
            return fn(*args, **kwargs)
        return self._builtin_of(name, fn, args)

    def _builtin_of(self, name: str, fn: Any, args: tuple[Any, ...]) -> Any:
        x = args[0]
        if name == "print":
            self.fail("print() of a run-time value: it is known at run time only", "store it to a tensor to look at it")
        if name in ("sum", "any", "all", "sorted", "len", "min", "max"):
            other = {"len": "use x.shape[0]", "sorted": None}.get(name, f"use tl.{name}(x)")
            self.fail(f"Python's {name}() of {self.describe(x)} is refused", other)
        if isinstance(x, Tile) and name in ("int", "float", "bool"):
            self.fail(
                f"{name}() of {x.describe()}",
                f"use .to(tl.{ {'int': 'int32', 'float': 'float32', 'bool': 'bool_'}[name] })",
            )
        if name == "int":
            return x if isinstance(x, Idx) or x.dtype.kind in "iu" else self.cast(x, int32)
        if name == "float":
            return self.cast(x, float32) if getattr(x, "dtype", None) is None or x.dtype.kind != "f" else x
        if name == "bool":
            return self.truth(x)
        if name == "abs":
            return self.unary("abs", x)
        if name == "round" and len(args) == 1:
            return x if isinstance(x, Idx) or x.dtype.kind != "f" else self.math("round", x)
        if name == "pow" and len(args) == 2:
            return self.power(*args)
        if name == "divmod":
            return self.binary("floordiv", *args), self.binary("mod", *args)
        self.fail(f"Python's {name}() of {self.describe(x)} is refused")

    # -- grid loops --

    def extent(self, x: Any, n: int) -> Any:
        """An extent of tl.grid; a buffer's name means the integer of that name outside the kernel."""
        if isinstance(x, BufferVal):
            value = self.resolve_extent(x.name) if self.resolve_extent else None
            if value is None:
                self.fail(
                    f"extent {n} of grid is the buffer {x.name}, and no integer {x.name} is known outside the kernel",
                    f"write {x.name}.shape[0]",
                )
            return value
        return self.as_index(x, f"extent {n} of grid")

    # -- parameters --

    def add_buffer(self, name: str, position: int, dtype: Any, type_id: int, rank: int) -> BufferVal:
        """A tensor parameter; its shape and strides are set by the caller."""
        val = self.ir.arg(self.root.block, type_id, name)
        return BufferVal(self, name, val, dtype, position)

    def dim_of(self, b: BufferVal, axis: int, op: str = "dim") -> Idx:
        return self.fresh_atom((op, b.position, axis), ("op", op, (b.val,), {"axis": axis}))

    def add_scalar(self, name: str, dtype: Any) -> Scalar:
        return Scalar(self, self.ir.arg(self.root.block, self.ty_of(dtype), name), dtype)


__all__ = ["P", "Scope", "Trace"]
