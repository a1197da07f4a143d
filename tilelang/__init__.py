# ruff: noqa: F401
"""tilelang: a tile-level kernel language for AMD GPUs.

``import tilelang as tl``; decorate a function with ``@tl.kernel`` and call it with tensors. CPU tensors run on the
bundled instruction-level simulator. ``docs/guide.md`` is a tour of the language; of what ``help(tl)`` lists:

parameters   Buffer, dims, dtypes (``tl.float16[M, K]``, ``tl.int32``), constexpr
tiles        slices of buffers, load, store, zeros, full, arange, alloc_shared, dot, where, sum, max, exp, ...
places       program_id, num_programs, grid, range, static_range
around       kernel, func (inlined helpers), compile
"""

from __future__ import annotations

from builtins import __dict__ as _builtins

from .errors import CompileError, DeviceError, LaunchError, LaunchTypeError, SimulatorFault, TileLangError

try:
    from . import _core
except ImportError as e:
    raise ImportError(
        f"tilelang's native part does not load ({e}); build it with `make build` in the source folder, "
        "or install the package with pip for this Python"
    ) from e

from .frontend.capture import Func as _Func
from .frontend.dtypes import DTYPES as _DTYPES
from .frontend.dtypes import DType
from .frontend.ops import abs_ as abs
from .frontend.ops import all_ as all
from .frontend.ops import (
    alloc_local,
    alloc_shared,
    arange,
    assert_,
    broadcast_to,
    cast,
    cdiv,
    ceil,
    clamp,
    dot,
    exp,
    exp2,
    expand_dims,
    floor,
    fma,
    fmax,
    fmin,
    full,
    grid,
    load,
    log,
    log2,
    maximum,
    minimum,
    next_pow2,
    num_programs,
    ones,
    permute,
    prod,
    program_id,
    rem,
    reshape,
    rsqrt,
    sqrt,
    static_assert,
    static_range,
    store,
    sync_threads,
    trans,
    trunc,
    truncdiv,
    where,
    xor_sum,
    zeros,
)
from .frontend.ops import any_ as any
from .frontend.ops import max_ as max
from .frontend.ops import min_ as min
from .frontend.ops import range_ as range
from .frontend.ops import round_ as round
from .frontend.ops import sum_ as sum
from .frontend.params import Buffer, constexpr, dim, dims
from .kernel import CompiledKernel, Kernel, compile, kernel

bool_ = _DTYPES["bool_"]
int8 = _DTYPES["int8"]
int16 = _DTYPES["int16"]
int32 = _DTYPES["int32"]
int64 = _DTYPES["int64"]
uint8 = _DTYPES["uint8"]
uint16 = _DTYPES["uint16"]
uint32 = _DTYPES["uint32"]
uint64 = _DTYPES["uint64"]
float16 = _DTYPES["float16"]
bfloat16 = _DTYPES["bfloat16"]
float32 = _DTYPES["float32"]
float64 = _DTYPES["float64"]
float8_e4m3fn = _DTYPES["float8_e4m3fn"]
float8_e5m2 = _DTYPES["float8_e5m2"]
float8_e4m3fnuz = _DTYPES["float8_e4m3fnuz"]
float8_e5m2fnuz = _DTYPES["float8_e5m2fnuz"]


def func(fn):  # type: ignore[no-untyped-def]
    """Decorates a helper that kernels call: inlined, its loops and branches work on run-time values."""
    return _Func(fn)


__version__ = "0.1.0"

# `from tilelang import *` leaves Python's own abs, max, range, ... alone.
__all__ = [n for n in list(globals()) if not n.startswith("_") and n not in _builtins and n != "annotations"]
