"""Indexing: NumPy's rules on tensors, shared, local and value tiles; loads, stores, elements of grid loops."""

from __future__ import annotations

import math
from typing import Any

from . import poly as P
from .arith import ArithMixin, acc_dtype
from .dtypes import DType, as_dtype, bool_, int32
from .values import Alloc, BufferVal, FromEnd, Idx, Memory, Scalar, Tile, Value

MAX_RANK = 6
STRIDED = "give the kernel a strided view of the tensor, x[::2] or x[::-1]: any strides are accepted"
GRID_KINDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


class Access:
    """A resolved index: per dimension of the memory a letter of ``dims`` and its operands; the shape that is kept."""

    __slots__ = ("dims", "operands", "steps", "shape", "new_axes", "whole")

    def __init__(self) -> None:
        self.dims = ""
        self.operands: list[Any] = []  # int, Idx or Tile, in order
        self.steps: list[int] = []  # one per "s"/"e"
        self.shape: list[int] = []  # before new axes
        self.new_axes: list[int] = []  # positions of None in the result
        self.whole = True  # every dimension is kept whole


class MemoryMixin(ArithMixin):
    """Memory of a trace."""

    grid_depth: int
    written: set[int]
    reads: set[int]

    # -- index parsing --

    def parse_index(self, mem: Any, index: Any) -> Access:
        items = list(index) if isinstance(index, tuple) else [index]
        rank = len(mem.shape)
        used = sum(1 for i in items if i is not None and i is not Ellipsis)
        dots = [n for n, i in enumerate(items) if i is Ellipsis]
        if len(dots) > 1:
            self.fail("an index has at most one `...`")
        if used > rank:
            self.fail(f"{mem.describe()} has {rank} dimension{'s' * (rank != 1)}, the index has {used}")
        at = dots[0] if dots else len(items)
        items[at : at + len(dots)] = [slice(None)] * (rank - used)
        acc = Access()
        axis = 0
        tile_shape: tuple[int, ...] | None = None
        tile_at = -1
        for item in items:
            if item is None:
                acc.new_axes.append(len(acc.shape) + len(acc.new_axes))
                continue
            if isinstance(item, slice):
                self._slice(mem, acc, axis, item)
            elif isinstance(item, Tile):
                self._index_tile(item)
                if tile_shape is None:
                    tile_shape, tile_at = item.shape, len(acc.shape)
                else:
                    tile_shape = self.broadcast_shapes(tile_shape, item.shape, "index tiles")
                    if tile_at != len(acc.shape):
                        self.fail("index tiles must stand next to each other in an index")
                acc.dims += "t"
                acc.operands.append(item)
                acc.whole = False
            else:
                acc.dims += "i"
                acc.operands.append(self._from_end(mem, axis, item, "an index"))
                acc.whole = False
            axis += 1
        if tile_shape is not None:
            acc.shape[tile_at:tile_at] = tile_shape
            acc.operands = [self._expand_to(x, len(tile_shape)) if isinstance(x, Tile) else x for x in acc.operands]
        if len(acc.shape) + len(acc.new_axes) > MAX_RANK:
            self.fail(f"a tile has at most {MAX_RANK} dimensions")
        return acc

    def _expand_to(self, x: Any, rank: int) -> Any:
        while len(x.shape) < rank:
            x = self.expand(x, 0)
        return x

    def _index_tile(self, x: Tile) -> None:
        if x.dtype.kind == "b":
            self.fail(
                "indexing by a bool mask is refused: the result has no constant shape", "use tl.where(mask, x, v)"
            )
        if x.dtype.kind not in "iu":
            self.fail(f"an index tile must hold integers, got {x.describe()}", "convert it: x.to(tl.int32)")

    def _from_end(self, mem: Any, axis: int, x: Any, what: str) -> Any:
        x0 = x
        x = self.as_index(x, what)
        if isinstance(x0, FromEnd):
            return self.binary("add", mem.shape[axis], x)
        return x

    def _slice(self, mem: Any, acc: Access, axis: int, s: slice) -> None:
        size = mem.shape[axis]
        step = 1 if s.step is None else s.step
        if isinstance(step, Value) or not isinstance(step, int) or step < 1:
            self.fail(f"a slice's step must be a positive constant, got {self.describe(step)}", STRIDED)
        if step != 1:
            self.fail(f"slices with a step are not there yet, got step {step}", STRIDED)
        lo = 0 if s.start is None else self._from_end(mem, axis, s.start, "a slice's start")
        hi = size if s.stop is None else self._from_end(mem, axis, s.stop, "a slice's end")
        capacity, end = self._capacity(lo, hi, s.stop is None)
        if capacity is None:
            name = getattr(mem, "name", "") or "x"
            self.fail(
                f"the extent of the slice in dimension {axis} of {mem.describe()} is not constant",
                f"write {name}[lo : lo + C] with a constant C (it may hang over the edge), "
                f"or {name}[lo : min(lo + C, end)]",
            )
        if capacity < 1:
            self.fail(f"the slice in dimension {axis} of {mem.describe()} has extent {capacity}; it must be at least 1")
        acc.shape.append(-(-capacity // step))
        acc.steps.append(step)
        acc.operands.append(lo)
        if end is not None:
            acc.dims += "e"
            acc.operands.append(end)
        else:
            acc.dims += "s"
        start_zero = isinstance(lo, int) and lo == 0
        if step != 1 or end is not None or not start_zero or isinstance(size, Idx) or capacity != size:
            acc.whole = False

    def _capacity(self, lo: Any, hi: Any, open_end: bool) -> tuple[int | None, Any]:
        """Constant capacity of lo:hi, and the end where it is a bound of its own (``min(lo + C, end)``)."""
        diff = P.as_const(P.add(self._poly(hi), self._poly(lo), -1))
        if diff is not None:
            return diff, None
        if isinstance(hi, Idx) and hi.recipe[0] == "min":
            for one, other in ((hi.recipe[1], hi.recipe[2]), (hi.recipe[2], hi.recipe[1])):
                diff = P.as_const(P.add(self._poly(one), self._poly(lo), -1))
                if diff is not None:
                    return diff, other
        if open_end and isinstance(hi, int) and not isinstance(lo, int):
            return hi, None  # x[i:] of a constant size: as long as the tensor allows
        return None, None

    # -- loads and stores --

    def _touch(self, mem: Any, write: bool) -> None:
        self.check_scope(mem)
        if isinstance(mem, BufferVal):
            (self.written if write else self.reads).add(mem.position)

    def _access_values(self, acc: Access) -> tuple[int, ...]:
        return tuple(self.val(x) if isinstance(x, Tile) else self.index_val(x) for x in acc.operands)

    def _access_attrs(self, acc: Access, options: dict[str, Any] | None) -> dict[str, Any]:
        attrs: dict[str, Any] = {"dims": acc.dims}
        if any(s != 1 for s in acc.steps):
            attrs["steps"] = tuple(acc.steps)
        return attrs | (options or {})

    def load(self, mem: Any, index: Any, options: dict[str, Any] | None = None) -> Any:
        """``mem[index]``: a tile, or a scalar where no dimension is kept."""
        if isinstance(mem, Alloc):
            self._need_dtype(mem)
        acc = self.parse_index(mem, index)
        if self.grid_depth:
            return self._element(mem, acc)
        self._touch(mem, False)
        shape = tuple(acc.shape)
        whole = isinstance(mem, Alloc) and acc.whole
        attrs = {"dims": ""} if whole else self._access_attrs(acc, options)
        operands = () if whole else self._access_values(acc)
        val = self.op("load", (mem.val, *operands), (self.ty_of(mem.dtype, shape),), attrs)
        x = self.wrap(val, mem.dtype, shape, not self._inside(mem, acc))
        for axis in acc.new_axes:
            x = self.expand(x, axis) if isinstance(x, Tile) else self.broadcast(x, (1,))
        return x

    @staticmethod
    def _inside(mem: Any, acc: Access) -> bool:
        """Whether the access is known to hang over no edge: constant bounds within constant sizes."""
        if isinstance(mem, Alloc) and acc.whole:
            return False  # the stored tile's extent was stored too
        sizes = [n for n, d in zip(mem.shape, acc.dims) if d != "i"]
        if set(acc.dims) & {"e", "t"}:
            return False
        if "i" in acc.dims:  # without "e" and "t" there is one operand a dimension
            single = [(x, n) for x, n, d in zip(acc.operands, mem.shape, acc.dims) if d == "i"]
            if not all(isinstance(x, int) and isinstance(n, int) and 0 <= x < n for x, n in single):
                return False
        starts = [x for d, x in zip(acc.dims, acc.operands) if d == "s"]
        spans = [(n - 1) * s + 1 for n, s in zip(acc.shape, acc.steps)]
        return all(
            isinstance(lo, int) and isinstance(n, int) and lo >= 0 and lo + c <= n
            for lo, n, c in zip(starts, sizes, spans)
        )

    def store(self, mem: Any, index: Any, value: Any, options: dict[str, Any] | None = None) -> None:
        """``mem[index] = value``: converts to the memory's dtype, broadcasts, writes what is valid and inside."""
        if value is mem:
            return  # the second half of an in-place operator
        value = self.operand(value, "a store")
        acc = self.parse_index(mem, index)
        if acc.new_axes:
            self.fail("None in the index of a store is refused", "reshape the value instead")
        if isinstance(mem, Alloc) and mem.dtype is None:
            self._settle(mem, getattr(value, "dtype", None), value)
        if self.grid_depth:
            self._set_element(mem, acc, value)
            return
        shape = tuple(acc.shape)
        value = self._fit(mem, shape, value)
        self._touch(mem, True)
        if isinstance(mem, Alloc) and acc.whole:
            self.op("store", (mem.val, self.val(value)), (), {"dims": ""})
            return
        operands = self._access_values(acc)
        self.op("store", (mem.val, self.val(value), *operands), (), self._access_attrs(acc, options))

    def _fit(self, mem: Any, shape: tuple[int, ...], value: Any) -> Any:
        have = getattr(value, "shape", ())
        pairs = list(zip(reversed(have), reversed(shape)))
        if len(have) > len(shape) or any(m not in (1, n) for m, n in pairs):
            self.fail(
                f"a tile of shape {have} does not fit the {shape or 'scalar'} slice of {mem.describe()}",
                "the value must have the slice's shape or broadcast to it",
            )
        if isinstance(value, float) and mem.dtype.kind != "f":
            value = self.cast(value, mem.dtype)
        if isinstance(value, (bool, int)) and mem.dtype.kind == "b":
            value = bool(value)
        return self.spread(value, mem.dtype, shape)

    # -- allocated tiles --

    def alloc(self, kind: str, shape: Any, dtype: Any, options: dict[str, int]) -> Alloc:
        sizes = self.shape_of(shape)
        if not sizes:
            self.fail(f"a {kind} tile needs at least one dimension")
        try:
            d = None if dtype is None else as_dtype(dtype)
        except TypeError as e:
            self.fail(str(e))
        if self.grid_depth:
            self.fail(f"a {kind} tile cannot be made inside a grid loop")
        self.locate()
        a = Alloc(self, kind, sizes, d, options)
        if d is not None:
            self._settle(a, d, None)
        return a

    def shape_of(self, shape: Any) -> tuple[int, ...]:
        """A constant shape: an int, or a list or tuple of ints >= 1."""
        items = shape if isinstance(shape, (tuple, list)) else (shape,)
        for n in items:
            if isinstance(n, Value):
                self.fail(f"a shape must be constant, got {n.describe()}", "use a captured constant or tl.constexpr")
            if isinstance(n, bool) or not hasattr(n, "__index__"):
                self.fail(f"a shape is made of ints, got {self.describe(n)}")
            if n < 1:
                self.fail(f"a tile's sizes must be at least 1, got {tuple(items)}")
        if len(items) > MAX_RANK:
            self.fail(f"a tile has at most {MAX_RANK} dimensions, got {len(items)}")
        if math.prod(int(n) for n in items) >= 1 << 31:
            self.fail(f"a tile has fewer than 2**31 elements, got the shape {tuple(items)}")
        return tuple(int(n) for n in items)

    def _settle(self, a: Alloc, dtype: DType | None, value: Any) -> None:
        """Fixes the dtype and makes the operation, in the block where the tile was allocated."""
        if dtype is None:
            dtype = bool_ if isinstance(value, bool) else int32 if not isinstance(value, float) else as_dtype("float32")
        a.dtype = dtype
        attrs: dict[str, Any] = {k: v for k, v in a.options.items() if v is not None}
        if a.name:
            attrs["name"] = a.name
        a.val = self.op(
            f"alloc_{a.kind}", (), (self.ty(a.kind, dtype, a.shape),), attrs, hint=a.name,
            block=self._block_of(a), place=a.place,
        )  # fmt: skip

    def _block_of(self, a: Alloc) -> int:
        s = a.scope
        while s.alias is not None:
            s = s.alias
        self.check_scope(a)
        return s.block

    # -- value tiles --

    def tile_index(self, x: Tile, index: Any) -> Any:
        """Indexing of a value: new axes and whole slices (anything else would need the elements of other lanes)."""
        items = list(index) if isinstance(index, tuple) else [index]
        used = sum(1 for i in items if i is not None and i is not Ellipsis)
        if used > len(x.shape):
            self.fail(f"{x.describe()} has {len(x.shape)} dimensions, the index has {used}")
        if Ellipsis in [i for i in items if i is Ellipsis]:
            at = next(n for n, i in enumerate(items) if i is Ellipsis)
            items[at : at + 1] = [slice(None)] * (len(x.shape) - used)
        for i in items:
            if isinstance(i, slice) and i.step not in (None, 1):
                self.fail(f"slices with a step are not there yet, got step {i.step}", STRIDED)
            if i is not None and not (isinstance(i, slice) and i == slice(None)):
                self.fail(
                    "a value tile is indexed with `:`, `...` and None only",
                    "keep it in a shared tile (tl.alloc_shared) to read parts of it",
                )
        for axis, i in enumerate(items):
            if i is None:
                x = self.expand(x, axis)
        return x

    # -- grid loops --

    def _indices(self, mem: Any, acc: Access) -> tuple[int, ...]:
        if not isinstance(mem, BufferVal):
            self.fail(f"a grid loop works on elements of tensors, not of {mem.describe()}")
        if set(acc.dims) - {"i"}:
            self.fail(
                f"inside a grid loop {mem.describe()} is indexed by one integer per dimension",
                "slices are for tile-style kernels, outside of tl.grid",
            )
        return tuple(self.index_val(x) for x in acc.operands)

    def _element(self, mem: Any, acc: Access) -> Any:
        operands = self._indices(mem, acc)
        self._touch(mem, False)
        return Scalar(self, self.op("element", (mem.val, *operands), (self.ty_of(mem.dtype),)), mem.dtype)

    def _scalar_value(self, value: Any, dtype: DType) -> int:
        if getattr(value, "shape", ()):
            self.fail(f"an element takes a scalar, got {value.describe()}")
        if isinstance(value, float) and dtype.kind != "f":
            value = self.cast(value, dtype)
        return self.val(self.to_type(value, dtype))

    def _set_element(self, mem: Any, acc: Access, value: Any) -> None:
        operands = self._indices(mem, acc)
        val = self._scalar_value(value, mem.dtype)
        self._touch(mem, True)
        self.op("set_element", (mem.val, val, *operands), ())

    def begin_item(self, mem: Any, index: Any, op: str) -> Any:
        """First half of ``mem[index] op= value``, before the value is evaluated."""
        if not (isinstance(mem, Memory) and self.grid_depth and op in (*GRID_KINDS, "sub")):
            return (mem, index, op, mem[index], None, False)
        acc = self.parse_index(mem, index)
        before = self.widen
        if op in ("add", "mul", "sub"):
            self.widen = acc_dtype(mem.dtype)
        return (mem, index, op, acc, before, True)

    def end_item(self, begun: Any, value: Any) -> None:
        """Second half: the value was computed in the accumulator's type."""
        mem, index, op, acc, before, reducing = begun
        if not reducing:
            old = acc
            if op in ("max", "min"):
                mem[index] = self.minmax(op, old, value)
            elif isinstance(old, (Tile, Scalar)):
                mem[index] = self.accumulate(op, old, value)
            else:
                mem[index] = self.inplace(op, old, value)
            return
        value = self.operand(value, op)
        wide = self.widen if op in ("add", "mul", "sub") else mem.dtype
        assert wide is not None
        if op == "sub":
            value = self.unary("neg", self.to_type(value, wide))
            op = "add"
        operands = self._indices(mem, acc)
        val = self._scalar_value(value, wide)
        self.widen = before
        self._touch(mem, True)
        self._touch(mem, False)
        self.op("acc_element", (mem.val, val, *operands), (), {"kind": GRID_KINDS[op]})

    @staticmethod
    def inplace(op: str, a: Any, b: Any) -> Any:
        raise NotImplementedError
