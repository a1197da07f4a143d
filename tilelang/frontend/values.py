"""What a kernel's body computes with while it is traced: exact integers, scalars, tiles, buffers, allocated tiles.

Every value belongs to one Trace (``t``) and to the scope (block) it was made in. The operators here only say which
operation is meant; typing, broadcasting and emission are in arith.py and memory.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from . import poly as P
from .dtypes import DType

if TYPE_CHECKING:
    from .trace import Scope, Trace


def article(name: str) -> str:
    """ "an int32", "a float32"."""
    return ("an " if name[0] in "aeiou" and not name.startswith("uint") else "a ") + name


class FromEnd(int):
    """A literal minus in an index: counts from the end. Elsewhere it is the negative int that it looks like."""

    __slots__ = ()


class Unbound:
    """Stands for a local name without a value; reading one is an error that the rewritten source reports."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = Unbound()


class Value:
    """Base: refuses what Python would do behind the trace's back."""

    __slots__ = ("t", "scope", "place")

    def __init__(self, t: Trace, scope: Scope) -> None:
        self.t = t
        self.scope = scope
        self.place = t.place

    def describe(self) -> str:
        raise NotImplementedError

    def __bool__(self) -> bool:
        self.refuse_bool()

    def refuse_bool(self) -> NoReturn:
        self.t.fail(
            f"the truth of {self.describe()} is known at run time only and cannot steer Python here",
            "if this is a helper function, decorate it with @tl.func: if, while, and, or, not work on scalars then",
        )

    def __index__(self) -> int:
        self.t.fail(
            f"{self.describe()} is a run-time value; a constant int is needed (shape, list index, range in a helper)",
            "use a captured constant or a tl.constexpr parameter; for loops in a helper decorate it with @tl.func",
        )

    def __int__(self) -> int:
        self.t.fail_call(f"int() of {self.describe()}: it is known at run time only", "use .to(tl.int32)")

    def __float__(self) -> float:
        self.t.fail_call(f"float() of {self.describe()}: it is known at run time only", "use .to(tl.float32)")

    def __iter__(self) -> Any:
        self.t.fail(f"{self.describe()} cannot be iterated", "loop over range(...) and index with slices")

    def __len__(self) -> int:
        self.t.fail(f"len() of {self.describe()} is refused", "use .shape[0]")

    def __contains__(self, item: Any) -> bool:
        self.t.fail(f"`in` on {self.describe()} is refused", "compare and reduce: tl.any(x == v)")

    def __format__(self, spec: str) -> str:
        self.t.fail(
            f"{self.describe()} in an f-string or format(): it is known at run time only",
            "store it to a tensor to look at it",
        )

    def __str__(self) -> str:
        return f"<{self.describe()}>"

    __repr__ = __str__

    def __reduce__(self) -> Any:
        raise TypeError("a value of a kernel being traced cannot be pickled")


def _bin(op: str) -> Any:
    def f(self: Any, other: Any) -> Any:
        return self.t.binary(op, self, other)

    return f


def _rbin(op: str) -> Any:
    def f(self: Any, other: Any) -> Any:
        return self.t.binary(op, other, self)

    return f


class Arith(Value):
    """Values with operators."""

    __slots__ = ()

    __add__, __radd__ = _bin("add"), _rbin("add")
    __sub__, __rsub__ = _bin("sub"), _rbin("sub")
    __mul__, __rmul__ = _bin("mul"), _rbin("mul")
    __truediv__, __rtruediv__ = _bin("div"), _rbin("div")
    __floordiv__, __rfloordiv__ = _bin("floordiv"), _rbin("floordiv")
    __mod__, __rmod__ = _bin("mod"), _rbin("mod")
    __and__, __rand__ = _bin("and"), _rbin("and")
    __or__, __ror__ = _bin("or"), _rbin("or")
    __xor__, __rxor__ = _bin("xor"), _rbin("xor")
    __lshift__, __rlshift__ = _bin("shl"), _rbin("shl")
    __rshift__, __rrshift__ = _bin("shr"), _rbin("shr")
    __eq__ = _bin("eq")
    __ne__ = _bin("ne")
    __lt__ = _bin("lt")
    __le__ = _bin("le")
    __gt__ = _bin("gt")
    __ge__ = _bin("ge")
    __hash__ = None  # type: ignore[assignment]

    def __pow__(self, other: Any) -> Any:
        return self.t.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return self.t.power(other, self)

    def __neg__(self) -> Any:
        return self.t.unary("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.t.unary("abs", self)

    def __invert__(self) -> Any:
        return self.t.unary("not", self)

    def __matmul__(self, other: Any) -> Any:
        return self.t.dot(self, other, None)

    def __rmatmul__(self, other: Any) -> Any:
        return self.t.dot(other, self, None)

    def to(self, dtype: Any, saturate: bool = False) -> Any:
        """Converted to `dtype`: float to int truncates and saturates; to a narrower float rounds to nearest even."""
        return self.t.cast(self, dtype, saturate)


class Idx(Arith):
    """An exact integer: program id, dim, range variable and ``+ - * // % min max`` of them. Weak against typed values.

    ``poly`` is its normal form; ``recipe`` is ("val", value) or (operation, operand, operand), emitted when needed.
    """

    __slots__ = ("poly", "recipe")

    def __init__(self, t: Trace, poly: P.Poly, recipe: tuple[Any, ...], scope: Scope | None = None) -> None:
        super().__init__(t, scope if scope is not None else t.root)
        self.poly = poly
        self.recipe = recipe

    dtype = None
    shape: tuple[int, ...] = ()

    def describe(self) -> str:
        return "a run-time integer (program id, dim or range variable)"


class Scalar(Arith):
    """A run-time number of a dtype."""

    __slots__ = ("val", "dtype", "atom", "formula")
    shape: tuple[int, ...] = ()
    ndim = 0

    def __init__(self, t: Trace, val: int, dtype: DType) -> None:
        super().__init__(t, t.scope)
        self.val = val
        self.dtype = dtype
        self.atom: Idx | None = None  # itself as an exact integer, once it was one
        self.formula: tuple[str, Any, Any] | None = None  # of an integer: operation and operands, for index arithmetic

    def describe(self) -> str:
        return f"a run-time {self.dtype.name} scalar"


class Tile(Arith):
    """An immutable tile of constant shape. ``partial``: some elements may be invalid (past a tensor's edge)."""

    __slots__ = ("val", "dtype", "shape", "partial", "free")

    def __init__(self, t: Trace, val: int, dtype: DType, shape: tuple[int, ...], partial: bool) -> None:
        super().__init__(t, t.scope)
        self.val = val
        self.dtype = dtype
        self.shape = shape
        self.partial = partial
        self.free = False  # values everywhere, no extent of its own: takes that of what it meets

    def describe(self) -> str:
        return f"{article(self.dtype.name)} tile of shape {self.shape}"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Tile:
        """The tile with its dimensions reversed."""
        return self.t.permute(self, tuple(reversed(range(len(self.shape)))))

    @property
    def valid(self) -> Tile:
        """Mask of the valid elements."""
        return self.t.valid(self)

    def fill(self, value: Any) -> Tile:
        """All elements valid; those that were not become `value`."""
        return self.t.fill(self, value)

    def refuse_bool(self) -> NoReturn:
        self.t.fail_call(
            f"{self.describe()} has no single truth value: no if, while, and, or, not, chained comparison on tiles",
            "use tl.where, & | ~ with parentheses around comparisons, or reduce with tl.any / tl.all",
        )

    def __getitem__(self, index: Any) -> Tile:
        return self.t.tile_index(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.t.fail(
            "a tile is a value and cannot be assigned to in part",
            "use tl.where(mask, new, old); an index mask is tl.arange(n) == i",
        )


class Memory(Arith):
    """What can be indexed and stored to. As an operand it stands for the tile that it holds."""

    __slots__ = ("name",)

    def __getitem__(self, index: Any) -> Any:
        return self.t.load(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.t.store(self, index, value)

    @property
    def at(self) -> At:
        """Places for tl.load and tl.store."""
        return At(self)

    @property
    def ndim(self) -> int:
        return len(self.shape)  # type: ignore[attr-defined, no-any-return]

    def refuse_bool(self) -> NoReturn:
        self.t.fail(f"{self.describe()} has no truth value", "compare with None by `is`, or index it")


class At:
    """``buf.at``: indexing it gives a place for tl.load and tl.store instead of a value."""

    __slots__ = ("mem",)

    def __init__(self, mem: Memory) -> None:
        self.mem = mem

    def __getitem__(self, index: Any) -> Ref:
        return Ref(self.mem, index)


class Ref(Value):
    """A place in memory: ``buf.at[i : i + C]``."""

    __slots__ = ("mem", "index")

    def __init__(self, mem: Memory, index: Any) -> None:
        super().__init__(mem.t, mem.scope)
        self.mem = mem
        self.index = index

    def describe(self) -> str:
        return f"a place in {self.mem.describe()}"

    def __getitem__(self, index: Any) -> Any:
        self.t.fail(
            f"slicing {self.describe()} again is not implemented yet", "index the buffer with the sum of the offsets"
        )


class BufferVal(Memory):
    """A tensor parameter."""

    __slots__ = ("val", "dtype", "shape", "position", "stride_list")

    def __init__(self, t: Trace, name: str, val: int, dtype: DType, position: int) -> None:
        super().__init__(t, t.root)
        self.name = name
        self.val = val
        self.dtype = dtype
        self.position = position
        self.shape: tuple[Any, ...] = ()
        self.stride_list: tuple[Any, ...] = ()

    def describe(self) -> str:
        return f"the buffer {self.name}"

    @property
    def strides(self) -> tuple[Any, ...]:
        """Strides in elements."""
        return self.stride_list


class Alloc(Memory):
    """A shared (LDS) or local (register) tile; the operation is made when its dtype is known."""

    __slots__ = ("kind", "dtype", "shape", "options", "val")

    def __init__(
        self, t: Trace, kind: str, shape: tuple[int, ...], dtype: DType | None, options: dict[str, int]
    ) -> None:
        super().__init__(t, t.scope)
        self.name = ""
        self.kind = kind
        self.shape = shape
        self.dtype = dtype
        self.options = options
        self.val = 0

    def describe(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"the {self.kind} tile{name} of shape {self.shape}"

    @property
    def T(self) -> Tile:
        """The transposed contents."""
        return self.t.as_tile(self).T

    def fill(self, value: Any) -> Tile:
        """The contents with all elements valid."""
        return self.t.fill(self.t.as_tile(self), value)

    @property
    def valid(self) -> Tile:
        """Mask of the valid elements."""
        return self.t.valid(self.t.as_tile(self))
