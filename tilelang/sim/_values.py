"""Values on the command line: dtypes by short names, contents of arrays, the forms of --arg."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from typing import Any

import numpy as np

from tilelang.sim._device import KernelArg

DTYPES: dict[str, Any] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip


with contextlib.suppress(ImportError):
    import ml_dtypes

    DTYPES |= {
        "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
        "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    }  # fmt: skip


class BadArgument(ValueError):
    """A command-line value that cannot be used."""


def to_bf16(a: np.ndarray) -> np.ndarray:
    """Bit patterns of the nearest bfloat16 values (ties to even)."""
    bits = a.astype(np.float32).view(np.uint32)
    return np.where(np.isnan(a), bits >> 16 | 0x40, (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(a: np.ndarray) -> np.ndarray:
    return (a.astype(np.uint32) << 16).view(np.float32)


def cast(a: np.ndarray, name: str, what: str) -> np.ndarray:
    """The array in a dtype by its short name (bf16 as its bits); BadArgument when a value does not fit."""
    a = np.asarray(a)
    with np.errstate(all="ignore"):
        out = to_bf16(a) if name == "bf16" else a.astype(DTYPES[name])
        back = from_bf16(out) if name == "bf16" else out
        if name[0] in "fb":
            wrong = np.isfinite(a) & ~np.isfinite(back.astype(np.float32) if back.dtype.itemsize == 1 else back)
        else:
            wrong = back != a
    if wrong.any():
        raise BadArgument(f"{what}: {a[wrong].flat[0]} does not fit into {name}")
    return out


def fill(kind: str, shape: tuple[int, ...], name: str) -> np.ndarray | None:
    """Contents by name: zeros, ones, arange, random(seed), ints(seed) (small integers), undef, file.npy."""
    dtype = DTYPES[name]
    m = re.fullmatch(r"(random|ints)(?:\((\d+)\))?", kind)
    if kind in ("undef", ""):
        return None
    if kind.endswith(".npy"):
        a = load(kind)
        if a.size != math.prod(shape):
            raise BadArgument(f"{kind} holds {a.size} elements, not {math.prod(shape)}")
        if bits_of(name) and a.dtype == bits_of(name):  # as --save writes them
            return a.view(dtype).reshape(shape)
        return cast(a, name, kind).reshape(shape)
    if m:
        rng = np.random.default_rng(int(m[2] or 0))
        if m[1] == "ints":
            a = rng.integers(0 if name[0] == "u" else -4, 5, shape)
        else:
            a = rng.standard_normal(shape)
            if name[0] not in "fb":
                a = np.trunc(np.clip(a * (25 if name == "i8" else 100), -128, 127) if name == "i8" else a * 100)
                a = np.minimum(abs(a), 255) if name[0] == "u" else a
    elif kind in ("zeros", "ones"):
        a = np.full(shape, float(kind == "ones"))
    elif kind == "arange":
        a = np.arange(math.prod(shape)).reshape(shape)
    else:
        raise BadArgument(
            f"unknown contents {kind!r}: zeros, ones, arange, random(seed), ints(seed), undef or FILE.npy"
        )
    return cast(a, name, kind)


def bits_of(name: str) -> np.dtype | None:
    """The integers as which values of a dtype that NumPy does not know are saved."""
    bits: np.dtype[Any] = np.dtype(f"u{np.dtype(DTYPES[name]).itemsize}")
    return bits if name == "bf16" or name.startswith("f8") else None


def load(path: str) -> np.ndarray:
    """The numbers in a .npy file."""
    with open(path, "rb") as f:
        if f.read(6) != b"\x93NUMPY":
            raise BadArgument(f"{path}: it is no .npy file")
    try:
        a = np.load(path)
        if not isinstance(a, np.ndarray) or a.dtype.kind not in "biuf":
            raise ValueError("it holds no array of numbers")
    except (ValueError, EOFError) as e:
        raise BadArgument(f"{path}: {e}") from None
    return a


def parse_arg(text: str) -> tuple[str, str, Any, str]:
    """(role, dtype, shape or value, contents) of one --arg."""
    if text == "null":
        return "null", "", None, ""
    role, _, rest = text.partition(":")
    if role in ("in", "out", "inout"):
        name, _, rest = rest.partition(":")
        dims, _, kind = rest.partition(":")
        if name not in DTYPES or not re.fullmatch(r"\d+(x\d+)*", dims):
            known = "" if name in DTYPES else f"; DTYPE is one of {', '.join(DTYPES)}"
            raise BadArgument(f"--arg {text}: expected {role}:DTYPE:SHAPE[:CONTENTS], e.g. {role}:f16:64x64{known}")
        return role, name, tuple(int(d) for d in dims.split("x")), kind or ("undef" if role == "out" else "zeros")
    if role == "hex":
        try:
            return "bytes", "", bytes.fromhex(rest), ""
        except ValueError:
            raise BadArgument(f"--arg {text}: {rest!r} are no hex digits, two for a byte") from None
    if role not in DTYPES or not rest:
        raise BadArgument(f"--arg {text}: expected in|out|inout:DTYPE:SHAPE[:CONTENTS], DTYPE:VALUE, hex:BYTES or null")
    return "value", role, scalar(role, rest, f"--arg {text}"), ""


def scalar(name: str, text: str, what: str) -> Any:
    """A number of a dtype by its short name; bf16 as its bits."""
    try:
        if name[0] in "fb":
            value = float.fromhex(text) if "x" in text.lower() else float(text)
            return cast(np.array([value]), name, what)[0]
        return np.array(int(text, 0), DTYPES[name])[()]
    except BadArgument:
        raise
    except (ValueError, OverflowError):
        raise BadArgument(f"{what}: {text!r} is no {name}") from None


def padded(value: Any, arg: KernelArg | None, text: str) -> Any:
    """A scalar in a wider argument lies in its low bytes (an 8-byte slot of ours), with its sign where it has one."""
    size = arg.size if arg else 0
    if arg and value.nbytes < size and (size > 8 or arg.kind == "global_buffer"):
        what = f"has {size} bytes: hex:..." if size > 8 else "is a pointer: in:, out:, inout:, null or u64:ADDRESS"
        raise BadArgument(f"--arg {text}: the argument {arg.name or f'+{arg.offset}'} {what}")
    if arg and value.nbytes < size and value.dtype.kind not in "iub":
        print(
            f"note: --arg {text} lies in the low bytes of the {size} of {arg.name or f'+{arg.offset}'}", file=sys.stderr
        )
    fill = b"\xff" if value.dtype.kind == "i" and value < 0 else b"\0"
    return value.tobytes().ljust(size, fill) if value.nbytes < size else value
