"""Typing, promotion, broadcasting and emission of arithmetic, on exact integers, scalars and tiles alike."""

from __future__ import annotations

import operator
from typing import Any

from . import poly as P
from .base import TraceBase
from .dtypes import DType, as_dtype, bool_, float32, float64, int32, promote, weak_dtype
from .values import Alloc, BufferVal, Idx, Scalar, Tile, Unbound, Value

COMPARE = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
INDEX_OPS = {"add", "sub", "mul", "min", "max"}
BITWISE = {"and", "or", "xor", "shl", "shr"}
SYMBOL = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
PYTHON = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "shl": operator.lshift, "shr": operator.rshift, **COMPARE,
}  # fmt: skip
# Element values that change nothing when they are the right operand.
IDENTITY: dict[str, Any] = {
    "add": -0.0, "sub": 0.0, "mul": 1, "div": 1, "floordiv": 1, "or": 0, "xor": 0, "and": -1, "shl": 0, "shr": 0,
}  # fmt: skip
ACC_DTYPE = {"f16": float32, "bf16": float32, "f32": float32, "f64": float64}


def acc_dtype(d: DType) -> DType:
    """The wide type that sums of `d` are computed in: f32 for floats up to 32 bits, at least int32 for integers."""
    if d.kind == "f":
        return float64 if d.bits == 64 else float32
    if d.kind == "u" and d.bits >= 32:
        return d
    return d if d.bits >= 32 else int32


def is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float))


class ArithMixin(TraceBase):
    """Arithmetic of a trace."""

    # -- operands --

    def operand(self, x: Any, op: str) -> Any:
        """A number, Idx, Scalar or Tile; memory gives the tile it holds."""
        if isinstance(x, (Idx, Scalar, Tile)) or is_number(x):
            return x
        if isinstance(x, Alloc):
            return self.as_tile(x)
        if isinstance(x, BufferVal):
            self.fail(
                f"{x.describe()} is a whole tensor and cannot be an operand of {SYMBOL.get(op, op)}",
                f"index it: {x.name}[i : i + C]" if x.shape else f"read its element: {x.name}[()]",
            )
        if isinstance(x, Unbound):
            self.fail("a variable without a value is used here", "assign it before the loop or in both branches")
        if hasattr(x, "dtype") and hasattr(x, "item") and getattr(x, "shape", None) == ():
            return self.typed_const(x.item(), as_dtype(x.dtype))
        self.fail(f"{SYMBOL.get(op, op)} takes numbers, scalars and tiles, got {self.describe(x)}")

    def typed_const(self, value: Any, dtype: DType, shape: tuple[int, ...] = ()) -> Any:
        return self.wrap(self.const(value, dtype, shape), dtype, shape)

    def as_tile(self, x: Any) -> Any:
        """The value that memory holds now."""
        return self.load(x, Ellipsis) if isinstance(x, Alloc) else x

    def dtype_with(self, a: Any, b: Any) -> DType:
        """Common type of two operands of which one at least is typed."""
        ta, tb = getattr(a, "dtype", None), getattr(b, "dtype", None)
        if ta is None:
            assert tb is not None
            return weak_dtype(a, tb)
        if tb is None:
            return weak_dtype(b, ta)
        return promote(ta, tb)

    def to_type(self, x: Any, dtype: DType) -> Any:
        """A scalar or tile of exactly this dtype; numbers become constants."""
        if is_number(x):
            if isinstance(x, float) and dtype.kind != "f":
                self.fail(f"the number {x} is no {dtype.name}", "convert the other operand: x.to(tl.float32)")
            return self.typed_const(x, dtype)
        if isinstance(x, Idx):
            return self.wrap(self.op("cast", (self.index_val(x),), (self.ty_of(dtype),)), dtype)
        if x.dtype is dtype:
            return x
        return self._cast(x, dtype)

    def _cast(self, x: Any, dtype: DType) -> Any:
        val = self.op("cast", (self.val(x),), (self.ty_of(dtype, x.shape),))
        return self.wrap(val, dtype, x.shape, getattr(x, "partial", False))

    def cast(self, x: Any, dtype: Any, saturate: bool = False) -> Any:
        """``.to(dtype)``."""
        try:
            dtype = as_dtype(dtype)
        except TypeError as e:
            self.fail(str(e))
        if saturate:
            self.fail(".to(saturate=True) is not implemented yet", "clamp first: tl.clamp(x, lo, hi).to(dtype)")
        x = self.operand(x, "to")
        if is_number(x) and dtype.kind != "f":
            if isinstance(x, float):
                x = self.typed_const(x, float64)
                return self._cast(x, dtype)
            return self.typed_const(bool(x) if dtype is bool_ else x, dtype)
        return self.to_type(x, dtype)

    # -- shapes --

    def broadcast_shapes(self, a: tuple[int, ...], b: tuple[int, ...], what: str) -> tuple[int, ...]:
        out = []
        for i in range(max(len(a), len(b))):
            m = a[len(a) - 1 - i] if i < len(a) else 1
            n = b[len(b) - 1 - i] if i < len(b) else 1
            if m != n and m != 1 and n != 1:
                self.fail(f"{what}: tiles of shapes {a} and {b} do not broadcast", "insert a dimension: x[:, None]")
            out.append(n if m == 1 else m)
        return tuple(reversed(out))

    def broadcast(self, x: Any, shape: tuple[int, ...]) -> Any:
        """A scalar or tile stretched to `shape` by NumPy's rule (which must hold)."""
        if x.shape == shape:
            return x
        if not x.shape:
            val = self.op("splat", (self.val(x),), (self.ty_of(x.dtype, shape),))
            return self.wrap(val, x.dtype, shape)
        while len(x.shape) < len(shape):
            x = self.expand(x, 0)
        if x.shape == shape:
            return x
        val = self.op("broadcast", (self.val(x),), (self.ty_of(x.dtype, shape),))
        return self.wrap(val, x.dtype, shape, x.partial)

    def spread(self, x: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
        """`x` as `dtype` and `shape`; a number becomes a constant of that shape at once."""
        if is_number(x):
            if isinstance(x, float) and dtype.kind != "f":
                self.fail(f"the number {x} is no {dtype.name}", "convert the other operand: x.to(tl.float32)")
            return self.typed_const(x, dtype, shape)
        return self.broadcast(self.to_type(x, dtype), shape)

    def expand(self, x: Any, axis: int) -> Any:
        shape = x.shape[:axis] + (1,) + x.shape[axis:]
        val = self.op("expand_dims", (self.val(x),), (self.ty_of(x.dtype, shape),), {"axis": axis})
        return self.wrap(val, x.dtype, shape, x.partial)

    def permute(self, x: Any, perm: tuple[int, ...]) -> Any:
        x = self.tile_operand(x, "trans")
        if sorted(perm) != list(range(len(x.shape))):
            self.fail(f"{perm} is no permutation of the {len(x.shape)} dimensions of {x.describe()}")
        if perm == tuple(range(len(perm))):
            return x
        shape = tuple(x.shape[p] for p in perm)
        val = self.op("trans", (self.val(x),), (self.ty_of(x.dtype, shape),), {"perm": perm})
        return self.wrap(val, x.dtype, shape, x.partial)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        x = self.tile_operand(x, "reshape")
        size = 1
        for n in x.shape:
            size *= n
        known = 1
        for n in shape:
            known *= n if n != -1 else 1
        if shape.count(-1) == 1 and known and size % known == 0:
            shape = tuple(size // known if n == -1 else n for n in shape)
            known = size
        if known != size or -1 in shape or not shape:
            self.fail(f"{x.describe()} cannot be reshaped to {shape}: {size} elements are not {known}")
        val = self.op("reshape", (self.val(x),), (self.ty_of(x.dtype, shape),))
        return self.wrap(val, x.dtype, shape, x.partial)

    def tile_operand(self, x: Any, what: str) -> Any:
        x = self.operand(x, what)
        if not isinstance(x, Tile):
            self.fail(f"{what} takes a tile, got {self.describe(x)}")
        return x

    # -- exact integers --

    def _poly(self, x: Any) -> P.Poly:
        return x.poly if isinstance(x, Idx) else P.const(int(x))

    def _known(self, poly: P.Poly, op: str, a: Any, b: Any) -> Any:
        """An Idx with this polynomial, or the int if it is constant."""
        n = P.as_const(poly)
        return n if n is not None else Idx(self, poly, (op, a, b))

    def exact(self, op: str, a: Any, b: Any) -> Any:
        """An operation of two exact integers (int or Idx, not both int)."""
        pa, pb = self._poly(a), self._poly(b)
        if op == "add":
            return self._known(P.add(pa, pb), op, a, b) if pb else a
        if op == "sub":
            return self._known(P.add(pa, pb, -1), op, a, b) if pb else a
        if op == "mul":
            return self._known(P.mul(pa, pb), op, a, b) if pb != {(): 1} else a
        if op in COMPARE:
            return self._exact_compare(op, a, b, P.as_const(P.add(pa, pb, -1)))
        if op in ("min", "max"):
            diff = P.as_const(P.add(pa, pb, -1))
            if diff is not None:
                return (a if diff <= 0 else b) if op == "min" else (a if diff >= 0 else b)
        elif op in ("floordiv", "mod"):
            return self._exact_div(op, a, b, pa, pb)
        elif op == "div":
            return self.arith(op, self.to_type(a, float32), self.to_type(b, float32))
        key = (op, P.key(pa), P.key(pb))
        return Idx(self, {(self.atom(key),): 1}, (op, a, b))

    def _exact_compare(self, op: str, a: Any, b: Any, diff: int | None) -> Any:
        if diff is not None:
            return COMPARE[op](diff, 0)
        val = self.op(op, (self.index_val(a), self.index_val(b)), (self.ty_of(bool_),))
        return self.wrap(val, bool_)

    def _exact_div(self, op: str, a: Any, b: Any, pa: P.Poly, pb: P.Poly) -> Any:
        n = P.as_const(pb)
        if n == 0:
            self.fail(f"division by zero in {SYMBOL[op]}")
        if n is not None:
            whole = P.exact_div(pa, n)
            if whole is not None:
                return 0 if op == "mod" else self._known(whole, op, a, b)
        key = (op, P.key(pa), P.key(pb))
        return Idx(self, {(self.atom(key),): 1}, (op, a, b))

    # -- operations --

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """``a op b`` with Python's operators, comparisons, and "min", "max"."""
        if op in ("eq", "ne") and not (self._comparable(a) and self._comparable(b)):
            return op == "ne"  # a run-time value never equals None, a string, a tuple
        a, b = self.operand(a, op), self.operand(b, op)
        ea = isinstance(a, (bool, int, Idx))
        eb = isinstance(b, (bool, int, Idx))
        if ea and eb:
            if not isinstance(a, Idx) and not isinstance(b, Idx):
                return PYTHON[op](a, b) if op in PYTHON else (min if op == "min" else max)(a, b)
            return self.exact(op, a, b)
        if is_number(a) and is_number(b):
            return PYTHON[op](a, b) if op in PYTHON else self.minmax_numbers(op, a, b)
        if isinstance(a, Idx) and is_number(b):
            a = self.to_type(a, float32)
        elif isinstance(b, Idx) and is_number(a):
            b = self.to_type(b, float32)
        return self.arith(op, a, b)

    @staticmethod
    def _comparable(x: Any) -> bool:
        return isinstance(x, (Value, Unbound)) or is_number(x) or hasattr(x, "dtype")

    @staticmethod
    def minmax_numbers(op: str, a: Any, b: Any) -> Any:
        """min or max of two Python numbers; NaN propagates, as at run time."""
        if a != a or b != b:
            return float("nan")
        return min(a, b) if op == "min" else max(a, b)

    def arith(self, op: str, a: Any, b: Any) -> Any:
        """An operation with at least one typed operand."""
        dtype = self.dtype_with(a, b)
        if self.widen is not None and op not in COMPARE:
            dtype = promote(dtype, self.widen)
        shape = self.broadcast_shapes(getattr(a, "shape", ()), getattr(b, "shape", ()), SYMBOL.get(op, op))
        if op == "div" and dtype.kind != "f":
            dtype = float32
        elif op in BITWISE and dtype.kind == "f":
            self.fail(f"{SYMBOL[op]} works on integers and bools, got {self.describe(a)} and {self.describe(b)}",
                      "a comparison binds weaker than & and |: put it in parentheses")  # fmt: skip
        elif op not in COMPARE and op not in ("and", "or", "xor", "min", "max") and dtype.kind == "b":
            dtype = int32
        if op in ("shl", "shr"):
            self._check_shift(b, dtype)
        if op in ("floordiv", "mod") and dtype.kind == "f":
            return self._float_floor(op, self.spread(a, dtype, shape), self.spread(b, dtype, shape))
        if op in ("floordiv", "mod") and isinstance(b, int) and b == 0:
            self.fail(f"division by zero in {SYMBOL[op]}")
        if dtype.kind == "f" and dtype.bits == 8:  # in float32, rounded once
            a, b = (self.to_type(self.to_type(v, dtype), float32) for v in (a, b))
            wide = self.arith(op, a, b)
            return wide if op in COMPARE else self.to_type(wide, dtype)
        x, y = self.spread(a, dtype, shape), self.spread(b, dtype, shape)
        result = bool_ if op in COMPARE else dtype
        val = self.op(op, (self.val(x), self.val(y)), (self.ty_of(result, shape),))
        out = self.wrap(val, result, shape, getattr(x, "partial", False) or getattr(y, "partial", False))
        exact = not shape and result.kind in "iu" and result.bits >= 32 and op in INDEX_OPS
        if exact and all(isinstance(v, (int, Idx)) or v.dtype.kind in "iu" for v in (a, b)):
            out.formula = (op, a, b)
        return out

    def _check_shift(self, b: Any, dtype: DType) -> None:
        if isinstance(b, int) and not 0 <= b < dtype.bits:
            self.fail(f"a shift by {b} of {dtype.name}: it must be in 0 .. {dtype.bits - 1}")

    def _float_floor(self, op: str, x: Any, y: Any) -> Any:
        q = self.unary("floor", self.arith("div", x, y))
        return q if op == "floordiv" else self.arith("sub", x, self.arith("mul", q, y))

    def unary(self, op: str, x: Any) -> Any:
        """neg, abs, not."""
        x = self.operand(x, op)
        if isinstance(x, Idx):
            if op == "neg":
                return self.exact("sub", 0, x)
            if op == "abs":
                return self.exact("max", x, self.exact("sub", 0, x))
            return self.exact("sub", -1, x)
        if is_number(x):
            return {"neg": operator.neg, "abs": abs, "not": operator.invert}.get(op, lambda v: v)(x)
        if op in ("neg", "abs") and x.dtype.kind == "b":
            x = self.to_type(x, int32)
        if op == "not" and x.dtype.kind == "f":
            self.fail(f"~ works on integers and bools, got {x.describe()}")
        if self.widen is not None and op != "not":
            x = self.to_type(x, promote(x.dtype, self.widen))
        return self._emit1(op, x)

    def _emit1(self, op: str, x: Any) -> Any:
        if x.dtype.kind == "f" and x.dtype.bits == 8:
            return self.to_type(self._emit1(op, self.to_type(x, float32)), x.dtype)
        val = self.op(op, (self.val(x),), (self.ty_of(x.dtype, x.shape),))
        return self.wrap(val, x.dtype, x.shape, getattr(x, "partial", False))

    def math(self, op: str, x: Any) -> Any:
        """A function of floats; integers give float32."""
        x = self.operand(x, op)
        if is_number(x):
            x = self.typed_const(float(x), float32)
        elif isinstance(x, Idx) or x.dtype.kind != "f":
            x = self.to_type(x, float32)
        if self.widen is not None:
            x = self.to_type(x, promote(x.dtype, self.widen))
        return self._emit1(op, x)

    def minmax(self, op: str, a: Any, b: Any) -> Any:
        """Element-wise min, max (NaN propagates), fmin, fmax (NaN ignored)."""
        a, b = self.operand(a, op), self.operand(b, op)
        if is_number(a) and is_number(b):
            if op in ("fmin", "fmax") and (a != a or b != b):
                return b if a != a else a
            return self.minmax_numbers(op[-3:], a, b)
        if op in ("fmin", "fmax") and (getattr(a, "dtype", None) or getattr(b, "dtype", None) or float32).kind != "f":
            op = op[-3:]
        return self.binary(op, a, b) if op in ("min", "max") else self.arith(op, a, b)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded once."""
        a, b, c = (self.operand(x, "fma") for x in (a, b, c))
        typed = [x for x in (a, b, c) if getattr(x, "dtype", None) is not None]
        dtype = float32 if not typed else typed[0].dtype
        for x in (a, b, c):
            dtype = promote(dtype, x.dtype) if getattr(x, "dtype", None) is not None else weak_dtype(x, dtype)
        if dtype.kind != "f":
            self.fail("fma works on floats", "write a * b + c for integers")
        shape: tuple[int, ...] = ()
        for x in (a, b, c):
            shape = self.broadcast_shapes(shape, getattr(x, "shape", ()), "fma")
        if dtype.bits == 8:
            return self.to_type(self.fma(*(self.to_type(self.to_type(x, dtype), float32) for x in (a, b, c))), dtype)
        vals = [self.spread(x, dtype, shape) for x in (a, b, c)]
        val = self.op("fma", tuple(self.val(v) for v in vals), (self.ty_of(dtype, shape),))
        return self.wrap(val, dtype, shape, any(getattr(v, "partial", False) for v in vals))

    def power(self, a: Any, b: Any) -> Any:
        """``a ** b``: a constant small integer exponent multiplies, anything else is exp2(b * log2(a))."""
        a, b = self.operand(a, "**"), self.operand(b, "**")
        if is_number(a) and is_number(b):
            return a**b
        if isinstance(b, int) and not isinstance(b, bool) and 0 <= b <= 64:
            return self._int_power(a, b)
        if isinstance(b, int) and -64 <= b < 0:
            return self.binary("div", 1.0, self._int_power(a, -b))
        if isinstance(b, float) and b == 0.5:
            return self.math("sqrt", a)
        self.fail("** takes a constant integer exponent (or 0.5)", "write tl.exp2(y * tl.log2(x)) for positive x")

    def _int_power(self, a: Any, n: int) -> Any:
        result: Any = None
        while n:
            if n & 1:
                result = a if result is None else self.binary("mul", result, a)
            n >>= 1
            if n:
                a = self.binary("mul", a, a)
        return self.binary("add", self.binary("mul", a, 0), 1) if result is None else result

    def where(self, c: Any, a: Any, b: Any) -> Any:
        """a where c, else b; c a bool scalar or tile."""
        c, a, b = self.operand(c, "where"), self.operand(a, "where"), self.operand(b, "where")
        if is_number(c):
            return a if c else b
        if isinstance(c, Idx):
            c = self.exact("ne", c, 0)
            return self.where(c, a, b)
        if c.dtype.kind != "b":
            c = self.binary("ne", c, 0)
        dtype = self._common(a, b)
        shape = self.broadcast_shapes(getattr(a, "shape", ()), getattr(b, "shape", ()), "where")
        if c.shape:
            shape = self.broadcast_shapes(shape, c.shape, "where")
            c = self.broadcast(c, shape)
        if dtype is None:
            ins = (self.val(c), self.index_val(a), self.index_val(b))
            return self.index_of_val(self.op("select", ins, (self.index_type,)))
        x, y = self.spread(a, dtype, shape), self.spread(b, dtype, shape)
        val = self.op("select", (self.val(c), self.val(x), self.val(y)), (self.ty_of(dtype, shape),))
        return self.wrap(val, dtype, shape, any(getattr(v, "partial", False) for v in (c, x, y)))

    def _common(self, a: Any, b: Any) -> DType | None:
        """Common type of two branches: numbers alone give int32 or float32, exact integers stay exact (None)."""
        if getattr(a, "dtype", None) is not None or getattr(b, "dtype", None) is not None:
            return self.dtype_with(a, b)
        if isinstance(a, float) or isinstance(b, float):
            return float32
        if isinstance(a, Idx) or isinstance(b, Idx):
            return None
        return bool_ if isinstance(a, bool) and isinstance(b, bool) else int32

    def fill(self, x: Any, value: Any) -> Any:
        """``x.fill(value)``."""
        v = self.to_type(self.operand(value, "fill"), x.dtype)
        if v.shape:
            self.fail(f"fill takes a number or scalar, got {v.describe()}", "use tl.where(x.valid, x, other)")
        val = self.op("fill", (self.val(x), self.val(v)), (self.ty_of(x.dtype, x.shape),))
        return self.wrap(val, x.dtype, x.shape)

    def valid(self, x: Any) -> Any:
        val = self.op("valid", (self.val(x),), (self.ty_of(bool_, x.shape),))
        return self.wrap(val, bool_, x.shape)

    # -- reductions --

    def reduce(self, kind: str, x: Any, axis: Any, keep_dims: bool, dtype: Any) -> Any:
        """sum max min prod any all xor over an axis, several, or all (None)."""
        x = self.operand(x, kind)
        if not isinstance(x, Tile):
            return x
        rank = len(x.shape)
        axes = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        norm = []
        for a in axes:
            if isinstance(a, Value) or not isinstance(a, int) or not -rank <= a < rank:
                self.fail(f"axis {self.describe(a)} of {x.describe()}: it must be a constant in {-rank} .. {rank - 1}")
            norm.append(int(a) % rank)
        if len(set(norm)) != len(norm):
            self.fail(f"an axis stands twice in {tuple(axes)}")
        shape = x.shape
        out = self._reduce_types(kind, x, dtype)
        x = self.to_type(x, out[0])
        for a in sorted(norm, reverse=True):
            left = x.shape[:a] + x.shape[a + 1 :]
            val = self.op("reduce", (self.val(x),), (self.ty_of(x.dtype, left),), {"axis": a, "kind": kind})
            x = self.wrap(val, x.dtype, left, getattr(x, "partial", False) and bool(left))
        x = self.to_type(x, out[1])
        if keep_dims:
            full = tuple(1 if i in norm else n for i, n in enumerate(shape))
            x = self.broadcast(x, full) if not x.shape else self.reshape(x, full)
        return x

    def _reduce_types(self, kind: str, x: Tile, dtype: Any) -> tuple[DType, DType]:
        """Type to reduce in, type of the result."""
        if kind in ("any", "all"):
            return bool_, bool_
        if kind in ("sum", "prod"):
            wide = acc_dtype(x.dtype)
            if dtype is not None:
                given = as_dtype(dtype)
                return promote(wide, given), given
            return wide, x.dtype if x.dtype.kind == "f" else wide
        if kind == "xor" and x.dtype.kind == "f":
            self.fail(f"xor works on integers, got {x.describe()}")
        return (float32 if x.dtype.kind == "f" and x.dtype.bits == 8 else x.dtype), x.dtype

    # -- matrix product --

    def dot(self, a: Any, b: Any, acc: Any, **options: Any) -> Any:
        """acc + a @ b; the accumulator is float32, float64 or int32."""
        shape, wide = self._dot_types(a, b)
        attrs = {k: v for k, v in options.items() if v is not None}
        if acc is None:
            acc = self.typed_const(0, wide, shape)
        else:
            acc = self.as_tile(acc)
            if not isinstance(acc, Tile):
                self.fail(
                    f"the accumulator of dot must be a tile, got {self.describe(acc)}", "tl.zeros([M, N], tl.float32)"
                )
            if acc.dtype is not wide or acc.shape != shape:
                self.fail(
                    f"the accumulator of this dot must be a {wide.name} tile of shape {shape}, got {acc.describe()}",
                    f"make it with tl.zeros({list(shape)}, dtype=tl.{wide.name})",
                )
        ins = (self._dot_operand(a), self._dot_operand(b), self.val(acc))
        val = self.op("dot", ins, (self.ty_of(wide, shape),), attrs or None)
        return self.wrap(val, wide, shape, acc.partial)

    def _dot_types(self, a: Any, b: Any) -> tuple[tuple[int, int], DType]:
        for x, side in ((a, "left"), (b, "right")):
            if isinstance(x, BufferVal):
                self.fail(
                    f"dot: the {side} operand is {x.describe()}, a whole tensor",
                    f"slice it: {x.name}[i : i + C, k : k + C]",
                )
            if not isinstance(x, (Tile, Alloc)):
                self.fail(f"dot takes tiles, got {self.describe(x)} as its {side} operand")
            if isinstance(x, Alloc):
                self._need_dtype(x)
            if len(x.shape) != 2:
                self.fail(f"dot takes matrices, got {x.describe()} as its {side} operand")
        if a.shape[1] != b.shape[0]:
            self.fail(f"dot: shapes {a.shape} and {b.shape} do not fit: {a.shape[1]} columns by {b.shape[0]} rows")
        da, db = a.dtype, b.dtype
        fp8 = da.kind == db.kind == "f" and da.bits == db.bits == 8
        if da is not db and not fp8:
            self.fail(
                f"the operands of dot must have one dtype, got {da.name} and {db.name}",
                f"convert one: x.to(tl.{(da if da.bits >= db.bits else db).name})",
            )
        if da.kind == "b" or (da.kind in "iu" and da.bits != 8):
            self.fail(f"dot of {da.name} is not supported", "use int8 or floats")
        wide = float64 if da.bits == 64 else float32 if da.kind == "f" else int32
        return (a.shape[0], b.shape[1]), wide

    def _dot_operand(self, x: Any) -> int:
        if isinstance(x, Alloc):
            self.check_scope(x)
            if x.kind == "shared":
                return x.val
            x = self.as_tile(x)
        return self.val(x)

    def _need_dtype(self, x: Any) -> None:
        if x.dtype is None:
            self.fail(
                f"{x.describe()} is read before anything was stored to it: its dtype is not known",
                "give it: tl.alloc_shared(shape, tl.float16)",
            )

    # -- in-place forms of assignments --

    def accumulate(self, op: str, t: Any, x: Any) -> Any:
        """``t op= x`` on a tile: t stays as it is where x is invalid, and keeps its type and shape."""
        x = self.as_tile(x)
        if isinstance(t, Tile) and not t.free and isinstance(x, Tile) and x.partial and op in IDENTITY:
            neutral = IDENTITY[op]
            if x.dtype.kind != "f":
                neutral = int(neutral) if x.dtype.kind != "u" or neutral != -1 else x.dtype.limits[1]
            x = self.fill(x, neutral if x.dtype is not bool_ else neutral != 0)
        return self.binary(op, t, x)

    def contract(self, op: str, t: Any, a: Any, b: Any, augmented: bool) -> Any:
        """``t += a * b`` and ``t = t + a * b``: one rounding when all is of t's float type."""
        dt = getattr(t, "dtype", None)
        if op == "add" and dt is not None and dt.kind == "f" and not isinstance(t, (BufferVal, Alloc)):
            a, b = self.operand(a, "mul"), self.operand(b, "mul")
            typed = [x for x in (a, b) if getattr(x, "dtype", None) is not None]
            if typed and all(is_number(x) or isinstance(x, Idx) or x.dtype is dt for x in (a, b)):
                free = getattr(t, "free", False)
                if augmented and not free and any(getattr(x, "partial", False) for x in (a, b)):
                    new = self.fma(a, b, t)
                    kept = self.where(self.valid(new), self.fill(new, 0), t)
                    kept.partial = getattr(t, "partial", False)
                    return kept
                return self.fma(a, b, t)
        product = a * b
        return (
            self.accumulate(op, t, product)
            if augmented and isinstance(t, Value)
            else self.python_binary(op, t, product)
        )

    @staticmethod
    def python_binary(op: str, a: Any, b: Any) -> Any:
        return PYTHON[op](a, b)
