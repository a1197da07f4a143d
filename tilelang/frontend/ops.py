"""The functions that kernels call: ``tl.zeros``, ``tl.dot``, ``tl.exp``, ..."""

from __future__ import annotations

import builtins
from typing import Any

from .base import current
from .control import GridSpec
from .dtypes import DType, as_dtype, float32, int32
from .values import Alloc, BufferVal, Idx, Ref, Scalar, Tile, Value

MAX_STAGES = 2


def _name(fn: Any) -> str:
    return f"tl.{fn}"


def _dtype(t: Any, dtype: Any) -> DType:
    try:
        return as_dtype(dtype)
    except TypeError as e:
        t.fail(str(e))


# ---- the program and its grid -------------------------------------------------------------------------------------


def program_id(axis: int = 0) -> Any:
    """Index of this program along a grid axis (0, 1, 2): an exact run-time integer."""
    return current("tl.program_id").program_id(axis)


def num_programs(axis: int = 0) -> Any:
    """Size of the grid along an axis: an exact run-time integer."""
    return current("tl.num_programs").program_id(axis, "num_programs")


def cdiv(a: Any, b: Any) -> Any:
    """Ceiling of a / b; on ints outside of kernels too."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    t = current("tl.cdiv")
    a, b = t.operand(a, "cdiv"), t.operand(b, "cdiv")
    if all(isinstance(x, (int, Idx)) for x in (a, b)):
        return t.exact_cdiv(a, b)
    return t.unary("neg", t.binary("floordiv", t.unary("neg", a), b))


def next_pow2(n: int) -> int:
    """The least power of two that is not below n (an int)."""
    return 1 << max(0, n - 1).bit_length()


def range_(*args: Any, num_stages: int | None = None, unroll: int | None = None, schedule: str | None = None) -> Any:
    """``tl.range``: a run-time loop with options for the compiler."""
    t = current("tl.range")
    for name, v in (("num_stages", num_stages), ("unroll", unroll)):
        if v is not None and (isinstance(v, Value) or not isinstance(v, int) or v < 1):
            t.fail(f"{name} of tl.range must be a constant int of at least 1, got {t.describe(v)}")
    if schedule not in (None, "pingpong", "interleave"):
        t.fail(f'schedule of tl.range must be "pingpong" or "interleave", got {schedule!r}')
    if schedule is not None:
        t.fail(f"tl.range with schedule={schedule!r} is not implemented yet", "leave it out: the compiler chooses")
    if unroll not in (None, 1):
        t.fail(
            "tl.range with unroll above 1 is not implemented yet",
            "use tl.static_range for a loop that is unrolled whole",
        )
    if num_stages is not None and num_stages > MAX_STAGES:
        t.fail(f"num_stages above {MAX_STAGES} is not implemented yet", "1 (no prefetch) and 2 (one block ahead) are")
    return t.make_range(args, {"num_stages": num_stages})


def static_range(*args: Any) -> range:
    """An unrolled loop: a Python range with constant bounds."""
    t = current("tl.static_range")
    for a in args:
        if isinstance(a, Value):
            t.fail(f"static_range needs constant bounds, got {a.describe()}", "use range for a run-time loop")
    return builtins.range(*args)


def grid(*extents: Any) -> Any:
    """``for i, j in tl.grid(M, N)``: loops over elements, in Python's order; the compiler makes tiles of them."""
    t = current("tl.grid")
    if not extents:
        t.fail("grid needs at least one extent")
    return GridSpec(tuple(t.extent(e, n) for n, e in enumerate(extents)))


def sync_threads() -> None:
    """Waits for all waves of the program. Allowed; the compiler places the barriers that are needed by itself."""
    current("tl.sync_threads").op("barrier", (), ())


def static_assert(condition: Any, message: str = "") -> None:
    """An assertion at compile time."""
    current("tl.static_assert").static_assert(condition, message)


def assert_(condition: Any, message: str = "") -> None:
    """An assertion: at compile time if the condition is known then, else at run time (traps)."""
    current("tl.assert_").assert_(condition, message)


# ---- making tiles ---------------------------------------------------------------------------------------------------


def alloc_shared(
    shape: Any, dtype: Any = None, *, pad: int | None = None, swizzle: int | None = None, align: int | None = None
) -> Any:
    """A tile in shared memory (LDS). Without a dtype it takes that of what is first stored."""
    t = current("tl.alloc_shared")
    for name, v in (("pad", pad), ("swizzle", swizzle), ("align", align)):
        if v is not None:
            t.fail(
                f"alloc_shared with {name}= is not implemented yet", "leave it out: the compiler solves for a layout"
            )
    return t.alloc("shared", shape, dtype, {})


def alloc_local(shape: Any, dtype: Any) -> Any:
    """A mutable tile in registers. Not lowered yet: rebind a name instead (``x = x * 2``)."""
    return current("tl.alloc_local").alloc("local", shape, dtype, {})


def full(shape: Any, value: Any, dtype: Any = None) -> Any:
    """A tile filled with a number or scalar; the dtype defaults to the value's (int32 or float32 for numbers)."""
    t = current("tl.full")
    sizes = t.shape_of(shape)
    value = t.operand(value, "full")
    d = _dtype(t, dtype) if dtype is not None else getattr(value, "dtype", None) or _number_dtype(value)
    if isinstance(value, float) and d.kind != "f":
        value = t.cast(value, d)
    out = t.spread(value, d, sizes)
    if not isinstance(value, Tile):
        out.free = True
    return out


def _number_dtype(value: Any) -> DType:
    if isinstance(value, bool):
        return as_dtype("bool_")
    return float32 if isinstance(value, float) else int32


def zeros(shape: Any, dtype: Any = float32) -> Any:
    """A tile of zeros, float32 unless said otherwise."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = float32) -> Any:
    """A tile of ones, float32 unless said otherwise."""
    return full(shape, 1, dtype)


def arange(start: int, end: int | None = None) -> Any:
    """int32 tile of start, start + 1, ..., end - 1; ``arange(n)`` starts at 0. Bounds are constant."""
    t = current("tl.arange")
    if end is None:
        start, end = 0, start
    for x in (start, end):
        if isinstance(x, Value) or not isinstance(x, int):
            t.fail(
                f"the bounds of arange must be constant ints, got {t.describe(x)}",
                "add a run-time start: start + tl.arange(0, n)",
            )
    if end <= start:
        t.fail(f"arange({start}, {end}) is empty")
    if start < -(1 << 31) or end > 1 << 31:
        t.fail(f"arange({start}, {end}) does not fit int32")
    shape = (end - start,)
    return t.wrap(t.op("arange", (), (t.ty_of(int32, shape),), {"start": start}), int32, shape)


# ---- shapes and types -----------------------------------------------------------------------------------------------


def cast(x: Any, dtype: Any) -> Any:
    """``x.to(dtype)``, also for numbers: the result is a typed scalar or tile."""
    return current("a conversion").cast(x, dtype)


def trans(x: Any, *perm: int) -> Any:
    """The tile with its dimensions reversed, or permuted by `perm`."""
    t = current("tl.trans")
    x = t.tile_operand(x, "trans")
    return t.permute(x, _axes(perm) or tuple(reversed(builtins.range(len(x.shape)))))


def permute(x: Any, *perm: Any) -> Any:
    """Dimension d of the result is dimension perm[d] of x."""
    return current("tl.permute").permute(x, _axes(perm))


def _axes(perm: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(perm[0]) if len(perm) == 1 and isinstance(perm[0], (tuple, list)) else perm


def reshape(x: Any, *shape: Any) -> Any:
    """Row-major reshape; one size may be -1."""
    return current("tl.reshape").reshape(x, _axes(shape))


def expand_dims(x: Any, axis: int) -> Any:
    """A dimension of size 1 inserted at `axis`."""
    t = current("tl.expand_dims")
    x = t.tile_operand(x, "expand_dims")
    n = len(x.shape)
    if isinstance(axis, Value) or not -n - 1 <= axis <= n:
        t.fail(f"axis {t.describe(axis)} of expand_dims must be a constant in {-n - 1} .. {n}")
    return t.expand(x, axis % (n + 1))


def broadcast_to(x: Any, *shape: Any) -> Any:
    """Stretched to a shape by NumPy's rule."""
    t = current("tl.broadcast_to")
    sizes = t.shape_of(_axes(shape))
    x = t.operand(x, "broadcast_to")
    if t.broadcast_shapes(getattr(x, "shape", ()), sizes, "broadcast_to") != sizes:
        t.fail(f"{t.describe(x)} does not broadcast to {sizes}")
    d = getattr(x, "dtype", None) or _number_dtype(x)
    return t.spread(x, d, sizes)


# ---- memory ---------------------------------------------------------------------------------------------------------


def _place(t: Any, what: str, ref: Any, options: dict[str, Any]) -> None:
    """Checks what load and store have in common."""
    if not isinstance(ref, Ref):
        t.fail(f"{what} takes a place, got {t.describe(ref)}", "write buf.at[i : i + C]")
    usual = {"sem": "relaxed", "scope": "gpu"}
    for name, v in options.items():
        if name not in ("sem", "scope", "cache"):
            t.fail(f"{what} has no option {name}")
        if v is not None and v != usual.get(name):
            t.fail(f"{what} with {name}={v!r} is not implemented yet")


def load(ref: Any, mask: Any = None, other: Any = None, **options: Any) -> Any:
    """The value at a place, ``tl.load(buf.at[i : i + C])``.

    With `other`, elements past an edge or masked out have that value and are valid."""
    t = current("tl.load")
    _place(t, "tl.load", ref, options)
    if mask is not None and other is None:
        t.fail("tl.load with a mask and no other is not implemented yet", "give other=, the value of masked elements")
    x = t.load(ref.mem, ref.index)
    if other is None:
        return x
    if isinstance(x, Tile):
        other = t.cast(other, x.dtype)
        x = t.fill(x, other) if not other.shape else t.where(x.valid, t.fill(x, 0), other)
    return x if mask is None else t.where(mask, x, other)


def store(ref: Any, value: Any, mask: Any = None, **options: Any) -> None:
    """Stores at a place, ``tl.store(buf.at[i : i + C], x)``, converting to the buffer's dtype."""
    t = current("tl.store")
    _place(t, "tl.store", ref, options)
    if mask is not None:
        t.fail("tl.store with a mask is not implemented yet", "slices end at the tensor's edge by themselves")
    t.store(ref.mem, ref.index, value)


def dot(a: Any, b: Any, acc: Any = None, *, mma: Any = None, waves: Any = None) -> Any:
    """acc + a @ b for tiles [M, K] and [K, N] of one dtype; accumulates in float32 (float64, int32).

    ``acc += dot(a, b)`` is the fused form."""
    t = current("tl.dot")
    return t.dot(a, b, acc, mma=tuple(mma) if mma else None, waves=tuple(waves) if waves else None)


dot.__tl_dot__ = True  # type: ignore[attr-defined]


# ---- element-wise ---------------------------------------------------------------------------------------------------


def _math(op: str, doc: str) -> Any:
    def f(x: Any) -> Any:
        return current(_name(op)).math(op, x)

    f.__name__ = f.__qualname__ = op
    f.__doc__ = doc
    return f


exp = _math("exp", "e to the x; integers give float32.")
exp2 = _math("exp2", "2 to the x; integers give float32.")
log = _math("log", "Natural logarithm; integers give float32.")
log2 = _math("log2", "Base-2 logarithm; integers give float32.")
sqrt = _math("sqrt", "Square root, correctly rounded; integers give float32.")
rsqrt = _math("rsqrt", "1 / sqrt(x); integers give float32.")


def _round_fn(op: str, doc: str) -> Any:
    def f(x: Any) -> Any:
        t = current(_name(op))
        x = t.operand(x, op)
        if isinstance(x, (bool, int, Idx)) or getattr(x, "dtype", float32).kind != "f":
            return x
        return t.math(op, x)

    f.__name__ = f.__qualname__ = op
    f.__doc__ = doc
    return f


floor = _round_fn("floor", "Toward minus infinity; integers stay.")
ceil = _round_fn("ceil", "Toward plus infinity; integers stay.")
trunc = _round_fn("trunc", "Toward zero; integers stay.")
round_ = _round_fn("round", "To the nearest integer, ties to even; integers stay.")


def abs_(x: Any) -> Any:
    """Absolute value."""
    return current("tl.abs").unary("abs", x)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return current("tl.fma").fma(a, b, c)


def truncdiv(a: Any, b: Any) -> Any:
    """Quotient rounded toward zero."""
    return _int_op("truncdiv", a, b)


def rem(a: Any, b: Any) -> Any:
    """Remainder with the sign of a."""
    return _int_op("rem", a, b)


def _int_op(op: str, a: Any, b: Any) -> Any:
    t = current(_name(op))
    a, b = t.operand(a, op), t.operand(b, op)
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            t.fail(f"division by zero in {op}")
        q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return q if op == "truncdiv" else a - q * b
    if all(isinstance(x, (int, Idx)) for x in (a, b)):
        return t.exact(op, a, b)
    if t.dtype_with(a, b).kind == "f":
        t.fail(f"{op} works on integers", "use floor, trunc and / for floats")
    return t.arith(op, a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, element by element."""
    return current("tl.where").where(condition, a, b)


def maximum(a: Any, b: Any) -> Any:
    """Element-wise maximum; NaN propagates."""
    return current("tl.maximum").minmax("max", a, b)


def minimum(a: Any, b: Any) -> Any:
    """Element-wise minimum; NaN propagates."""
    return current("tl.minimum").minmax("min", a, b)


def fmax(a: Any, b: Any) -> Any:
    """Element-wise maximum; a NaN is ignored."""
    return current("tl.fmax").minmax("fmax", a, b)


def fmin(a: Any, b: Any) -> Any:
    """Element-wise minimum; a NaN is ignored."""
    return current("tl.fmin").minmax("fmin", a, b)


def clamp(x: Any, lo: Any, hi: Any) -> Any:
    """min(max(x, lo), hi)."""
    t = current("tl.clamp")
    return t.minmax("min", t.minmax("max", x, lo), hi)


# ---- reductions -----------------------------------------------------------------------------------------------------


def _reduction(kind: str, doc: str) -> Any:
    def f(x: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Any:
        t = current(_name(kind))
        if dtype is not None and kind not in ("sum", "prod"):
            t.fail(f"{kind} takes no dtype", "convert the operand: x.to(dtype)")
        return t.reduce(kind, x, axis, keep_dims, dtype)

    f.__name__ = f.__qualname__ = kind
    f.__doc__ = doc + " Over an axis, a tuple of axes, or all (None: a scalar); valid elements only."
    return f


sum_ = _reduction("sum", "Sum, accumulated in the wide type (float32, at least int32).")
prod = _reduction("prod", "Product, accumulated in the wide type (float32, at least int32).")
any_ = _reduction("any", "Whether any element is not 0.")
all_ = _reduction("all", "Whether all elements are not 0.")
xor_sum = _reduction("xor", "Exclusive or of integers.")


def max_(x: Any, axis: Any = None, keep_dims: bool = False) -> Any:
    """Maximum over an axis, a tuple of axes, or all (None); NaN propagates; of two arguments use ``maximum``."""
    return current("tl.max").reduce("max", x, axis, keep_dims, None)


def min_(x: Any, axis: Any = None, keep_dims: bool = False) -> Any:
    """Minimum over an axis, a tuple of axes, or all (None); NaN propagates; of two arguments use ``minimum``."""
    return current("tl.min").reduce("min", x, axis, keep_dims, None)


__all__ = ["Alloc", "BufferVal", "Scalar", "Tile"]
