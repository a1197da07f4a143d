"""The trace record of a launch: what chosen waves executed (format: docs/trace.md), as NumPy arrays."""

from __future__ import annotations

import ctypes as C
import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilelang.sim import _native as nat

ROW = np.dtype(
    [
        ("pc", "<u4"),
        ("data", "<u4"),
        ("words", "<u2"),
        ("conflict_cycles", "<u2"),
        ("lines", "<u2"),
        ("bytes", "u1"),
        ("exec_count", "u1"),
        ("kind", "u1"),
        ("pad", "u1", (3,)),
    ]
)
"""One executed instruction; docs/trace.md says what the fields mean."""

HEAD = np.dtype(
    [("magic", "S8"), ("version", "<u4"), ("head_bytes", "<u4"), ("row_bytes", "<u4"), ("wave_size", "<u4")]
    + [("nwaves", "<u8"), ("skipped", "<u8"), ("arch", "S16"), ("kernel", "S256")]
)
WAVE = np.dtype(
    [("linear", "<u8"), ("wg", "<u4", (3,)), ("wave", "<u4"), ("cut", "<u4"), ("pad", "<u4")]
    + [("nrows", "<u8"), ("ndata", "<u8")]
)
KINDS = ("other", "global", "lds", "scratch", "scalar")
_ADDRESSES, _SCALAR, _VECTOR = 1, 2, 3


@dataclass(frozen=True)
class TraceOptions:
    """What a launch records: ``path`` to write it to (None: only given back), ``workgroups`` (linear numbers or (x, y,
    z); None: all), ``wave`` (None: all of each), ``values`` (the registers that each instruction wrote, too), and the
    size at which no further wave is recorded."""

    path: str | os.PathLike[str] | None = None
    workgroups: Sequence[int | Sequence[int]] | None = None
    wave: int | None = None
    values: bool = False
    max_bytes: int = 1 << 30


class WaveTrace:
    """One wave: ``workgroup`` (x, y, z), ``linear``, ``wave``, ``cut`` (memory ran out), ``rows`` (array of ROW, one an
    executed instruction, in order) and ``data`` (uint64)."""

    def __init__(self, head: np.void, rows: np.ndarray, data: np.ndarray) -> None:
        self.workgroup = tuple(int(x) for x in head["wg"])
        self.linear = int(head["linear"])
        self.wave = int(head["wave"])
        self.cut = bool(head["cut"])
        self.rows = rows
        self.data = data

    def _chunks(self, i: int) -> Iterator[tuple[int, int, np.ndarray]]:
        row = self.rows[i]
        at = int(row["data"])
        end = at + int(row["words"])
        while at < end:
            head = int(self.data[at])
            n = head >> 48
            if at + 1 + n > end:
                raise ValueError(f"damaged trace record: data of instruction {i}")
            yield head & 0xFF, head >> 16 & 0xFFFF, self.data[at + 1 : at + 1 + n]
            at += 1 + n

    def addresses(self, i: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """(lanes, byte addresses) of each access of instruction i: one, two for two-offset LDS forms, or none.
        Global and scalar addresses are device addresses, LDS and scratch ones offsets."""
        out = []
        for kind, _, payload in self._chunks(i):
            if kind == _ADDRESSES:
                mask = int(payload[0])
                out.append((np.array([k for k in range(64) if mask >> k & 1], np.uint8), payload[1:]))
        return out

    def registers(self, i: int) -> dict[str, np.ndarray | int]:
        """Registers after instruction i that it wrote: "v5" and "a5" to 64 uint32 lanes, "s7" (vcc is "s106", exec
        "s126") to an int. Empty unless the launch recorded values."""
        out: dict[str, np.ndarray | int] = {}
        for kind, reg, payload in self._chunks(i):
            if kind == _SCALAR:
                out[f"s{reg}"] = int(payload[0])
            elif kind == _VECTOR:
                out[f"v{reg}" if reg < 256 else f"a{reg - 256}"] = payload.view(np.uint32)
        return out


@dataclass(frozen=True)
class Trace:
    """A trace record: ``arch``, ``kernel``, ``wave_size``, ``skipped`` (waves that found no room), ``waves``."""

    arch: str
    kernel: str
    wave_size: int
    skipped: int
    waves: tuple[WaveTrace, ...]

    def wave(self, workgroup: int | Sequence[int], wave: int = 0) -> WaveTrace:
        """The record of one wave; KeyError when it is not there."""
        for w in self.waves:
            same = w.linear == workgroup if isinstance(workgroup, int) else w.workgroup == _three(workgroup)
            if same and w.wave == wave:
                return w
        raise KeyError((workgroup, wave))


def _three(xyz: Sequence[int]) -> tuple[int, ...]:
    return (*xyz, *(0,) * (3 - len(xyz)))


def read_trace(source: str | os.PathLike[str] | bytes) -> Trace:
    """Reads a trace record from a file or its bytes. ValueError when it is none, or of another version."""
    raw = bytes(source) if isinstance(source, (bytes, bytearray, memoryview)) else Path(source).read_bytes()
    if len(raw) < HEAD.itemsize:
        raise ValueError("no trace record: too short")
    head = np.frombuffer(raw, HEAD, 1)[0]
    sizes = (int(head["head_bytes"]), int(head["row_bytes"]))
    if head["magic"] != b"TLTRACE" or head["version"] != 1 or sizes != (HEAD.itemsize, ROW.itemsize):
        raise ValueError("no trace record of version 1")
    at, waves = HEAD.itemsize, []
    if int(head["nwaves"]) * WAVE.itemsize > len(raw):
        raise ValueError("damaged trace record: more waves than bytes")
    for _ in range(int(head["nwaves"])):
        w = np.frombuffer(raw, WAVE, 1, at)[0]
        at += WAVE.itemsize
        nrows, ndata = int(w["nrows"]), int(w["ndata"])
        if max(nrows, ndata) > len(raw):
            raise ValueError("damaged trace record: it ends in a wave")
        rows = np.frombuffer(raw, ROW, nrows, at)
        at += (nrows * ROW.itemsize + 7) // 8 * 8
        have = rows["words"] > 0
        if (rows["data"][have].astype(np.int64) + rows["words"][have] > ndata).any():
            raise ValueError("damaged trace record: data of an instruction lie outside")
        waves.append(WaveTrace(w, rows, np.frombuffer(raw, np.uint64, ndata, at)))
        at += 8 * ndata
    waves.sort(key=lambda x: (x.linear, x.wave))
    return Trace(
        head["arch"].decode(), head["kernel"].decode(), int(head["wave_size"]), int(head["skipped"]), (*waves,)
    )


# ---- launches -------------------------------------------------------------------------------------------------------


class _Options(C.Structure):
    _fields_ = [
        ("groups", C.POINTER(C.c_uint64)),
        ("ngroups", C.c_uint64),
        ("wave", C.c_uint32),
        ("values", C.c_uint32),
        ("max_bytes", C.c_uint64),
    ]


def is_workgroup(g: Any) -> bool:
    """A number, or one to three of them."""
    parts = g if isinstance(g, Sequence) and not isinstance(g, (str, bytes)) else [g]
    return 1 <= len(parts) <= 3 and all(isinstance(x, (int, np.integer)) for x in parts)


class Recorder:
    """One traced launch: :meth:`launch` stands for ``tlsim_launch``, :meth:`result` takes the record."""

    def __init__(self, trace: Any, grid: Sequence[int], waves: int) -> None:
        if isinstance(trace, (str, os.PathLike)):
            trace = TraceOptions(path=trace)
        elif not isinstance(trace, TraceOptions):
            if isinstance(trace, (bytes, bytearray)) or not isinstance(trace, Iterable):
                raise TypeError(f"trace must be a path, workgroups or TraceOptions, not {trace!r}")
            trace = TraceOptions(workgroups=list(trace))
        self.options = trace
        path = None if trace.path is None else os.fspath(trace.path)
        if path is not None and os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "trace: a folder is there", path)
        for what, value, least in (("wave", trace.wave, None), ("max_bytes", trace.max_bytes, 0)):
            if not (value is None and what == "wave") and type(value) is not int and not isinstance(value, np.integer):
                raise TypeError(f"trace: {what} must be an int, not {value!r}")
            if least is not None and not least <= value < 1 << 64:
                raise ValueError(f"trace: {what} must be 0 to 2**64 - 1, not {value}")
        if trace.path is not None and not os.path.isdir(folder := os.path.dirname(trace.path) or "."):
            raise FileNotFoundError(errno.ENOENT, f"trace: there is no folder {os.fspath(folder)}", trace.path)
        x, y, z = grid
        linear = []
        if not isinstance(trace.workgroups, (Iterable, type(None))):
            raise TypeError(f"trace: workgroups must be a sequence, not {trace.workgroups!r}")
        for g in trace.workgroups if trace.workgroups is not None else ():
            if not is_workgroup(g):
                raise TypeError(f"trace: a workgroup is a number or (x, y, z), not {g!r}")
            gx, gy, gz = (int(g) % x, int(g) // x % y, int(g) // x // y) if not isinstance(g, Sequence) else _three(g)
            if not (0 <= gx < x and 0 <= gy < y and 0 <= gz < z):
                raise ValueError(f"trace: there is no workgroup {g} in a grid of {x} x {y} x {z}")
            linear.append(gx + x * (gy + y * gz))
        if trace.wave is not None and not 0 <= trace.wave < waves:
            raise ValueError(f"trace: there is no wave {trace.wave} in a workgroup of {waves}")
        self._groups = (C.c_uint64 * max(1, len(linear)))(*linear)
        wave = 0xFFFFFFFF if trace.wave is None else trace.wave
        groups = C.cast(self._groups, C.POINTER(C.c_uint64)) if trace.workgroups is not None else None
        self._raw = _Options(groups, len(linear), wave, int(trace.values), trace.max_bytes)
        self._file, self._size = C.c_void_p(), C.c_uint64()

    def launch(self, *args: Any) -> int:
        """``tlsim_launch`` with its arguments, recording."""
        lib = nat.library()
        fn = lib.tlsim_launch_traced
        fn.restype = C.c_int32
        fn.argtypes = [*lib.tlsim_launch.argtypes, C.POINTER(_Options), C.POINTER(C.c_void_p), C.POINTER(C.c_uint64)]
        return int(fn(*args, C.byref(self._raw), C.byref(self._file), C.byref(self._size)))

    def result(self) -> Trace | None:
        """The record (written to the path asked for); None when there is none."""
        if not self._file.value:
            return None
        lib = nat.library()
        raw = C.string_at(self._file.value, self._size.value)
        lib.tlsim_text_free.argtypes = [C.c_void_p]
        lib.tlsim_text_free(self._file)
        self._file = C.c_void_p()
        if self.options.path is not None:
            Path(self.options.path).write_bytes(raw)
        return read_trace(raw)
