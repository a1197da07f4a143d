"""Kernels that ``compiled.save(path)`` wrote: a code object and, beside it, path + ".json" about its arguments."""

from __future__ import annotations

import argparse
import ast
import json
import math
import operator
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang.sim._values import DTYPES, fill, load, scalar

if TYPE_CHECKING:
    from tilelang.sim import DeviceMemory
    from tilelang.sim.__main__ import Inputs


def short_name(dtype: str) -> str:
    """ "float16" -> "f16", "float8_e4m3fn" -> "f8e4m3fn", "bool_" -> "u8" (a byte each)."""
    if dtype == "bool_":
        return "u8"
    m = re.fullmatch(r"(bfloat|float|uint|int)(\d+)_?(\w*)", dtype)
    if not m or (m[3] and m[3] not in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")) or int(m[2]) not in (8, 16, 32, 64):
        raise ValueError(f"the saved kernel has an argument of an unknown dtype {dtype!r}")
    return {"bfloat": "bf", "float": "f", "uint": "u", "int": "i"}[m[1]] + m[2] + m[3]


OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def size_of(text: str, names: dict[str, tuple[int, str]]) -> int | None:
    """The value of a dim like "K // 2" for the sizes in `names`; None where a name or the value is not known."""

    def value(node: ast.AST) -> int:
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return int(OPERATORS[type(node.op)](value(node.left), value(node.right)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Name):
            return names[node.id][0]
        return int(ast.literal_eval(node))

    try:
        return value(ast.parse(text, mode="eval").body)
    except (KeyError, ValueError, TypeError, SyntaxError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def is_ints(value: Any, *, none: bool = False) -> bool:
    """Whether this is a list of numbers, or (with ``none``) of numbers and null."""
    return isinstance(value, list) and all(type(x) is int or (none and x is None) for x in value)


def is_param(p: Any) -> bool:
    """Whether this describes a parameter."""
    if not isinstance(p, dict) or not all(isinstance(p.get(k), str) for k in ("name", "kind", "dtype")):
        return False
    dims, sizes, strides = p.get("dims"), p.get("sizes", []), p.get("strides")
    return p["kind"] == "scalar" or (
        is_ints(dims, none=True)
        and is_ints(p.get("dim_divisors"))
        and len(p["dim_divisors"]) == len(dims)
        and all(d > 0 for d in p["dim_divisors"])
        and (strides == "dense" or (is_ints(strides, none=True) and len(strides) == len(dims)))
        and isinstance(sizes, list)
        and all(type(s) in (int, str) for s in sizes)
    )


def check(data: Any) -> None:
    """ValueError that names what is missing or not as `compiled.save` writes it."""
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    params = data.get("params")
    if not isinstance(params, list) or not all(map(is_param, params)):
        raise ValueError("'params' is no list of parameters")
    by_name = {p["name"]: p for p in params}

    def is_slot(s: Any) -> bool:
        if not isinstance(s, dict) or type(s.get("offset")) is not int or type(s.get("axis")) is not int:
            return False
        p, kind = by_name.get(str(s.get("param"))), s.get("kind")
        if p is None or kind not in ("ptr", "dim", "stride", "scalar") or (kind == "scalar") != (p["kind"] == "scalar"):
            return False
        return kind in ("ptr", "scalar") or 0 <= s["axis"] < len(p["dims"])

    def is_axis(axis: Any) -> bool:
        return isinstance(axis, list) and all(is_ints(t) and len(t) == 3 and is_dim(*t) for t in axis)

    def is_dim(p: int, dim: int, c: int) -> bool:
        return p < 0 or (p < len(params) and 0 <= dim < len(params[p].get("dims", ())) and c > 0)

    grid = data.get("grid")
    for name, good in (
        ("kernel", isinstance(data.get("kernel"), str)),
        ("target", isinstance(data.get("target"), str)),
        ("block", is_ints(data.get("block"))),
        ("kernarg", isinstance(data.get("kernarg"), list) and all(map(is_slot, data["kernarg"]))),
        ("writes", isinstance(data.get("writes"), list) and all(w in list(by_name) for w in data["writes"])),
        ("grid", "grid" in data and (grid is None or (isinstance(grid, list) and all(map(is_axis, grid))))),
    ):
        if not good:
            raise ValueError(f"{name!r} is not what it must be" if name in data else f"there is no {name!r}")


class Saved:
    """The description of a saved kernel; ``code`` is the path of its code object."""

    def __init__(self, path: Path) -> None:
        self.code = str(path)[: -len(".json")]
        try:
            self.data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            check(self.data)
        except (ValueError, RecursionError) as e:
            raise ValueError(f"{path} does not describe a saved kernel ({e})") from None
        self.params: dict[str, dict[str, Any]] = {p["name"]: p for p in self.data["params"]}
        self.slots: list[dict[str, Any]] = self.data["kernarg"]
        self.shapes: dict[str, tuple[int, ...]] = {}

    @classmethod
    def beside(cls, file: str, args: list[str]) -> Saved | None:
        """From FILE.json, or from what lies beside FILE when arguments are given by name."""
        if file.endswith(".json"):
            return cls(Path(file))
        named = any(re.match(r"[A-Za-z_]\w*=", a) for a in args)
        return cls(Path(file + ".json")) if named else None

    def complete(self, opt: argparse.Namespace) -> None:
        """Fills in what the command line leaves open: code object, chip, symbol, block, grid."""
        opt.file = self.code
        opt.arch = opt.arch or self.data["target"]
        opt.kernel = opt.kernel or self.data["kernel"]
        block = tuple(self.data["block"])
        if opt.block and (*opt.block, 1, 1)[:3] != (*block, 1, 1)[:3]:
            raise ValueError(f"--block: the kernel was compiled for {'x'.join(map(str, block))} threads")
        opt.block = block
        self.values = self._parse(opt.arg) if opt.arg else {}
        if not opt.grid and opt.arg and self.data["grid"] is not None:
            opt.grid = tuple(self._axis(a) for a in self.data["grid"]) or (1,)

    def _axis(self, triples: list[list[int]]) -> int:
        names = list(self.params)
        return math.prod(dim if p < 0 else -(-self.shapes[names[p]][dim] // c) for p, dim, c in triples)

    def _parse(self, texts: list[str]) -> dict[str, tuple[str, str, Any]]:
        """(short dtype, contents, value or shape) by name; records the shapes."""
        out: dict[str, tuple[str, str, Any]] = {}
        for text in texts:
            name, eq, rest = text.partition("=")
            p = self.params.get(name)
            if not eq or p is None:
                raise ValueError(f"--arg {text}: expected NAME=..., NAME one of {', '.join(self.params)}")
            if name in out:
                raise ValueError(f"--arg {text}: {name} is given twice")
            dtype = short_name(p["dtype"])
            first, colon, tail = rest.partition(":")
            if colon and first in (dtype, p["dtype"]):
                rest = tail
            elif colon and not re.fullmatch(r"\d+(x\d+)*", first):
                raise ValueError(f"--arg {text}: {name} is of dtype {p['dtype']}, not {first}")
            if p["kind"] == "scalar":
                out[name] = (dtype, "", rest)
                continue
            shape, contents = self._shape(text, name, rest)
            self.shapes[name] = shape
            out[name] = (dtype, contents, shape)
        missing = [n for n in self.params if n not in out]
        if missing:
            raise ValueError(f"no --arg for {', '.join(missing)} of kernel {self.data['kernel']}")
        self._agree({text.partition("=")[0]: text for text in texts})
        return out

    def _agree(self, texts: dict[str, str]) -> None:
        """Dims of one name have one size, expressions of them (K // 2) the size that follows."""
        first: dict[str, tuple[int, str]] = {}  # name -> size, where it was met first
        dims = [
            (name, axis, n, str(want))
            for name, shape in self.shapes.items()
            for axis, (n, want) in enumerate(zip(shape, self.params[name].get("sizes") or ()))
        ]
        for name, axis, n, want in dims:
            if want.isidentifier():
                size, where = first.setdefault(want, (n, f"dim {axis} of {name}"))
                if size != n:
                    raise ValueError(f"--arg {texts[name]}: dim {axis} of {name} is {want} = {n}, {where} is {size}")
        for name, axis, n, want in dims:
            expected = n if want.isidentifier() else size_of(want, first)
            if expected not in (None, n):
                raise ValueError(f"--arg {texts[name]}: dim {axis} of {name} is {want} = {expected}, not {n}")

    def _shape(self, text: str, name: str, rest: str) -> tuple[tuple[int, ...], str]:
        p = self.params[name]
        if rest.endswith(".npy") and ":" not in rest:
            shape, contents = tuple(load(rest).shape), rest
        else:
            sizes, _, contents = rest.partition(":")
            if not re.fullmatch(r"\d+(x\d+)*", sizes):
                raise ValueError(
                    f"--arg {text}: expected {name}=SHAPE[:CONTENTS] or {name}=FILE.npy, e.g. {name}=64x64"
                )
            shape = tuple(int(d) for d in sizes.split("x"))
        if len(shape) != len(p["dims"]):
            raise ValueError(f"--arg {text}: {name} has {len(p['dims'])} dims, not {len(shape)}")
        dense = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        strides = p["strides"] if p["strides"] != "dense" else [None] * len(shape)
        for i, (n, want, div) in enumerate(zip(shape, p["dims"], p["dim_divisors"])):
            if want is not None and n != want:
                raise ValueError(f"--arg {text}: dim {i} of {name} was compiled as {want}")
            if n % div:
                raise ValueError(f"--arg {text}: dim {i} of {name} must be a multiple of {div}")
            if strides[i] is not None and strides[i] != dense[i] and n > 1:
                raise ValueError(f"--arg {text}: stride {i} of {name} was compiled as {strides[i]}, not {dense[i]}")
        size = math.prod(shape) * np.dtype(DTYPES.get(short_name(p["dtype"]), "u1")).itemsize
        if not p.get("big", True) and size >= 1 << 31:
            raise ValueError(f"--arg {text}: {name} takes {size} bytes, the kernel was compiled for less than 2 GiB")
        writes = name in self.data["writes"]
        return shape, contents or ("undef" if writes else "zeros")

    def arguments(self, texts: list[str], inputs: Inputs) -> tuple[dict[int, Any], list[tuple[DeviceMemory, str, Any]]]:
        """Arguments by offset, and the buffers that the kernel stores to."""
        if not texts and self.params:
            raise ValueError(f"kernel {self.data['kernel']} takes --arg for {', '.join(self.params)}")
        memory: dict[str, DeviceMemory] = {}
        outs: list[tuple[DeviceMemory, str, Any]] = []
        for name, (dtype, contents, shape) in self.values.items():
            if dtype not in DTYPES:
                raise ValueError(f"{name} is of dtype {self.params[name]['dtype']}: install ml_dtypes")
            if self.params[name]["kind"] == "scalar":
                continue
            size = int(np.prod(shape)) * np.dtype(DTYPES[dtype]).itemsize
            mem = memory[name] = inputs.dev.empty(size, name=f"argument {name}")
            data = fill(contents, shape, dtype)
            if data is not None:
                mem.write(data)
            if name in self.data["writes"]:
                outs.append((mem, dtype, shape))
            else:
                inputs.add(f"argument {name}", mem)
        args: dict[int, Any] = {}
        for slot in self.slots:
            value: Any
            name, axis, kind = slot["param"], slot["axis"], slot["kind"]
            if kind == "ptr":
                value = memory[name]  # which keeps it alive
            elif kind == "dim":
                value = self.shapes[name][axis].to_bytes(8, "little")
            elif kind == "stride":
                value = math.prod(self.shapes[name][axis + 1 :]).to_bytes(8, "little")
            else:
                dtype, _, text = self.values[name]
                value = scalar(dtype, text, f"--arg {name}={text}").tobytes().ljust(8, b"\0")
            args[slot["offset"]] = value
        return args, outs
