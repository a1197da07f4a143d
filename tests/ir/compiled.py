"""Runs tile-level IR text two ways: by the evaluator, and compiled on the simulated chip."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import irlib
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PARAM = re.compile(r"%([\w.]+) : (buf<(\w+) \[([^\]]*)\] strides \[([^\]]*)\][^>]*>|\w+)")
SCALARS = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64, "f16": np.float16, "i1": np.uint8}


class CompileFault(Exception):
    """tlc refused the text; the message is what it said."""


def compile_text(text: str, target: str = "gfx942", *options: str) -> tuple[bytes, str]:
    """(code object, thread-level text) of the text's only kernel."""
    with tempfile.TemporaryDirectory() as tmp:
        src, out = Path(tmp) / "k.tir", Path(tmp) / "k.hsaco"
        src.write_text(text)
        cmd = [str(irlib.BUILD / "tlc"), "--target", target, "--passes", "all", *options]
        p = subprocess.run([*cmd, "--emit", "hsaco", "-o", str(out), str(src)], capture_output=True, text=True)
        if p.returncode:
            raise CompileFault(p.stderr)
        low = subprocess.run([*cmd, str(src)], capture_output=True, text=True, check=True)
        return out.read_bytes(), low.stdout


def arguments(text: str, args: list, address: list[int | None]) -> list:
    """The kernel arguments slot by slot: pointers, run-time dims and strides, scalars."""
    head = text[text.index("kernel @") :]
    head = head[: head.index(") {")]
    out: list = []
    for (_, whole, _, dims, strides), a, at in zip(PARAM.findall(head[head.index("(") :]), args, address, strict=True):
        if not whole.startswith("buf<"):
            out.append(SCALARS[whole](a).tobytes().ljust(8, b"\0"))  # every slot has 8 bytes
            continue
        out.append(np.int64(at))
        out += [np.int64(a.shape[i]) for i, d in enumerate(dims.split(", ")) if d.startswith("?")]
        if " dense" not in whole:
            out += [
                np.int64(a.strides[i] // a.itemsize) for i, s in enumerate(strides.split(", ")) if s.startswith("?")
            ]
    return out


def run_compiled(text: str, args: list, grid: tuple[int, ...], device: object, *options: str) -> str:
    """Like irlib.evaluate, on the simulator: C-contiguous arrays, changed in place. Gives the thread-level text."""
    code, low = compile_text(text, "gfx942", *options)
    block = int(re.search(r"block = (\d+)", low)[1])
    module = device.load(code)
    kernel = next(iter(module.kernels.values()))
    mems = [device.array(a) if isinstance(a, np.ndarray) else None for a in args]
    try:
        kernel.launch(list(grid), [block], arguments(text, args, [m and m.address for m in mems]))
        for a, m in zip(args, mems, strict=True):
            if m:
                a[...] = m.numpy(a.dtype, a.shape)
    finally:
        for m in mems:
            if m:
                m.free()
        module.unload()
    return low
