"""Element types, their promotion, and the ranges of the integer types."""

from __future__ import annotations

from typing import Any

__all__ = ["DTYPES", "DType", "as_dtype", "promote", "weak_dtype"]


class DType:
    """An element type. ``tl.float16[M, K]`` is a buffer annotation, ``tl.float16(x)`` a conversion inside a kernel.

    Attributes: ``name`` ("float16"), ``elem`` (the IR's spelling, "f16"), ``kind`` ("b", "i", "u" or "f"), ``bits``.
    """

    __slots__ = ("name", "elem", "kind", "bits", "exponent")

    def __init__(self, name: str, elem: str, kind: str, bits: int, exponent: int = 0) -> None:
        self.name = name
        self.elem = elem
        self.kind = kind
        self.bits = bits
        self.exponent = exponent

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return max(1, self.bits // 8)

    @property
    def limits(self) -> tuple[int, int]:
        """Least and largest value of an integer type (or bool)."""
        if self.kind == "b":
            return 0, 1
        if self.kind == "u":
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1

    def __getitem__(self, dims: Any) -> Any:
        from .params import BufferType

        return BufferType(dims if isinstance(dims, tuple) else (dims,), self)

    def __call__(self, x: Any) -> Any:
        """Converts a number, scalar or tile inside a kernel; the result is typed."""
        from .ops import cast

        return cast(x, self)

    def __or__(self, other: Any) -> Any:
        from .params import make_optional

        return make_optional(self, other)

    def __repr__(self) -> str:
        return f"tilelang.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: Any) -> DType:
        return self


_ROWS = [
    ("bool_", "i1", "b", 1, 0),
    ("int8", "i8", "i", 8, 0),
    ("int16", "i16", "i", 16, 0),
    ("int32", "i32", "i", 32, 0),
    ("int64", "i64", "i", 64, 0),
    ("uint8", "u8", "u", 8, 0),
    ("uint16", "u16", "u", 16, 0),
    ("uint32", "u32", "u", 32, 0),
    ("uint64", "u64", "u", 64, 0),
    ("float16", "f16", "f", 16, 5),
    ("bfloat16", "bf16", "f", 16, 8),
    ("float32", "f32", "f", 32, 8),
    ("float64", "f64", "f", 64, 11),
    ("float8_e4m3fn", "f8e4m3fn", "f", 8, 4),
    ("float8_e5m2", "f8e5m2", "f", 8, 5),
    ("float8_e4m3fnuz", "f8e4m3fnuz", "f", 8, 4),
    ("float8_e5m2fnuz", "f8e5m2fnuz", "f", 8, 5),
]
DTYPES: dict[str, DType] = {row[0]: DType(*row) for row in _ROWS}
BY_ELEM: dict[str, DType] = {d.elem: d for d in DTYPES.values()}
_BY_NAME = dict(DTYPES) | {"bool": DTYPES["bool_"]} | BY_ELEM

bool_ = DTYPES["bool_"]
int8 = DTYPES["int8"]
int32 = DTYPES["int32"]
int64 = DTYPES["int64"]
float16 = DTYPES["float16"]
bfloat16 = DTYPES["bfloat16"]
float32 = DTYPES["float32"]
float64 = DTYPES["float64"]


def as_dtype(x: Any) -> DType:
    """The DType of a tilelang, NumPy, ml_dtypes or torch dtype, or of its name. TypeError for anything else."""
    if isinstance(x, DType):
        return x
    if isinstance(x, str):
        name = x
    elif x in (bool, int, float):
        raise TypeError(f"a dtype is wanted, got Python's {x.__name__}; name the width, e.g. tilelang.float32")
    elif isinstance(x, type):
        name = x.__name__
    else:
        name = getattr(x, "name", None) or str(x)
    found = _BY_NAME.get(str(name).rpartition(".")[2])
    if found is None:
        raise TypeError(f"no such dtype: {x!r}; there are {', '.join(sorted(DTYPES))}")
    return found


def promote(a: DType, b: DType) -> DType:
    """Type of an arithmetic operation on two typed operands (bool with bool is int32: see ``arith``)."""
    if a is b:
        return a
    if a.kind == "b":
        return b
    if b.kind == "b":
        return a
    if a.kind == "f" or b.kind == "f":
        if a.kind != b.kind:
            return a if a.kind == "f" else b
        if a.bits != b.bits:
            return a if a.bits > b.bits else b
        return float32
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return DTYPES[f"int{min(64, unsigned.bits * 2)}"]


def weak_dtype(value: Any, other: DType) -> DType:
    """Type in which a Python number (or an exact integer of the kernel) meets a typed operand."""
    if isinstance(value, bool):
        return other
    if isinstance(value, float):
        return other if other.kind == "f" else float32
    return int32 if other.kind == "b" else other
