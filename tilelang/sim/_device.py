"""Devices, memory, modules and launches on the simulator."""

from __future__ import annotations

import contextlib
import ctypes as C
import math
import operator
import os
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelang.errors import SimulatorFault
from tilelang.sim import _native as nat
from tilelang.sim._bundle import chips_of, unbundle
from tilelang.sim._trace import Recorder

_OK, _FAULTED, _BAD_CONFIG, _NO_RESIDENCY, _NO_MEMORY, _UNSUPPORTED, _CANCELLED = range(7)


@dataclass(frozen=True)
class Report:
    """One fault. ``pc`` and ``other_pc`` are bytes from the kernel's first instruction; ``address`` is a global
    address, an offset in LDS or scratch, or None; ``buffer`` says where a global address is ("at offset 8 of hipMalloc
    'x' ...") and is None for others; ``lanes`` are lane numbers (empty: the whole wave); ``line`` is
    "file:line"; ``function`` is the kernel, or the function that it called, in which ``pc`` lies. ``count`` tells how
    often this happened until the launch ended or was given up; ``rule`` names the row of the check "hazard" (what
    ``ignore=`` takes)."""

    check: str
    message: str
    kernel: str
    workgroup: tuple[int, int, int]
    wave: int
    lanes: tuple[int, ...]
    pc: int
    text: str
    address: int | None
    other_pc: int | None
    line: str | None
    other_wave: int | None = None
    other_text: str | None = None
    other_line: str | None = None
    buffer: str | None = None
    count: int = 1
    function: str = ""
    other_function: str = ""
    rule: str | None = None
    details: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.details


@dataclass(frozen=True)
class KernelArg:
    """One kernel argument as the metadata gives it; ``kind`` is its value_kind ("hidden_..." are filled in)."""

    name: str
    offset: int
    size: int
    kind: str


def _number(value: Any, what: str, lo: int, hi: int) -> int:
    """An int within [lo, hi]; TypeError or ValueError that names it."""
    try:
        n = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {value!r}") from None
    if not lo <= n <= hi:
        raise ValueError(
            f"{what} must be {lo} to {hi if hi < 1 << 31 else f'2**{(hi + 1).bit_length() - 1} - 1'}, not {n}"
        )
    return n


class _Bound:
    """What lives in this process alone: two copies would free it twice."""

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} of the simulator can be neither copied nor pickled")


class DeviceMemory(_Bound):
    """Memory of a simulated device with exact bounds."""

    def __init__(
        self,
        device: Device,
        nbytes: int,
        dtype: np.dtype | None,
        shape: tuple[int, ...] | None,
        name: str | None = None,
    ) -> None:
        self._address = None
        self._device = device
        if not hasattr(nbytes, "__index__"):
            raise TypeError(f"nbytes must be an int, not {nbytes!r}")
        if operator.index(nbytes) < 0:
            raise ValueError(f"device memory of {nbytes} bytes cannot be")
        if not isinstance(name, (str, type(None))):
            raise TypeError(f"the name of device memory must be a string, not {name!r}")
        self.nbytes = int(nbytes)
        self._dtype = dtype
        self._shape = shape
        if self.nbytes < 1 << 63:
            self._address = device._lib.tlsim_malloc(device._open, self.nbytes, name.encode() if name else None)
        if not self._address:
            raise MemoryError(f"the simulated device cannot allocate {nbytes} bytes")

    def __repr__(self) -> str:
        where = f"0x{self._address:x}" if self._address else "freed"
        return f"<DeviceMemory {where}, {self.nbytes} bytes, {self._device.arch}>"

    @property
    def address(self) -> int:
        """Device address of the first byte."""
        if not self._address:
            raise ValueError("this device memory has been freed")
        return int(self._address)

    def numpy(self, dtype: Any = None, shape: Any = None) -> np.ndarray:
        """A copy of the contents as an array; dtype and shape default to those of the array it was made from."""
        dtype = _plain(np.dtype(dtype) if dtype is not None else self._dtype or np.dtype(np.uint8))
        if shape is None:
            same = dtype == self._dtype and self._shape is not None
            shape = self._shape if same else (self.nbytes // dtype.itemsize,)
        out = np.empty(shape, dtype)
        if out.nbytes > self.nbytes:
            raise ValueError(f"{out.nbytes} bytes asked of {self.nbytes} bytes of device memory")
        self._device._lib.tlsim_copy_out(self._device._open, out.ctypes.data, self.address, out.nbytes)
        return out

    def write(self, array: np.ndarray) -> None:
        """Copies an array (or its bytes) to the start of this memory."""
        data = np.ascontiguousarray(array)
        _plain(data.dtype)
        if data.nbytes > self.nbytes:
            raise ValueError(f"{data.nbytes} bytes do not fit into {self.nbytes} bytes of device memory")
        self._device._lib.tlsim_copy_in(self._device._open, self.address, data.ctypes.data, data.nbytes)

    def protect(self) -> None:
        """From now on a store of a kernel to this memory is a fault of the check "bounds"."""
        self._device._lib.tlsim_protect(self._device._open, self.address)

    def free(self) -> None:
        """Gives the memory back; a later access by a kernel is a bounds fault. Freeing twice does nothing."""
        if self._address and self._device._handle:
            self._device._lib.tlsim_free(self._device._handle, self._address)
            self._address = None

    def __del__(self) -> None:
        if getattr(self, "_address", None) and self._device._handle:
            self.free()


def _plain(dtype: np.dtype, what: str = "device memory") -> np.dtype:
    """The dtype, when its values are bytes as the device has them."""
    if dtype.hasobject or not dtype.isnative:
        kind = "Python objects" if dtype.hasobject else "numbers of another byte order"
        raise TypeError(f"{what}: an array of {dtype} holds {kind}")
    return dtype


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """The same numbers at the same place, in whatever objects."""
    return a is b or (a.ctypes.data, a.shape, a.strides, a.dtype) == (b.ctypes.data, b.shape, b.strides, b.dtype)


def _host_array(value: Any) -> Any:
    """The NumPy array that shares the memory of a dense PyTorch tensor on the CPU; other values as they are."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    if value.device.type != "cpu" or value.layout != torch.strided or value.is_conj() or value.is_neg():
        raise TypeError(f"a tensor on {value.device} ({value.layout}) is no array of the host: pass .cpu(), dense")
    t = value.detach()
    if t.dtype.is_floating_point and t.dtype not in (torch.float16, torch.float32, torch.float64):
        t = t.view(torch.int16 if t.element_size() == 2 else torch.uint8)  # NumPy has no such numbers: their bits
    return t.numpy()


def _mfma(mfma: str | None) -> str | None:
    if mfma not in (None, "default", "hw"):
        raise ValueError(f"mfma must be 'default' or 'hw', not {mfma!r}")
    return mfma


def mfma_rule(arch: str, mnemonic: str) -> str | None:
    """What is known of the way the chip sums in this matrix or dot instruction, for ``mfma="hw"``.

    "hardware": the rule was measured on hardware; "assumed": nothing is known, the rule of a neighbouring
    instruction is used; "exact": integers and doubles, the default is right; "unknown": no rule, the instruction is
    refused (or, for dot products, the default is used); None: the chip has no such matrix or dot instruction.
    Raises ValueError for a chip that does not exist."""
    if not isinstance(arch, str) or not isinstance(mnemonic, str):
        raise TypeError(f"a chip and a mnemonic are needed, not {arch!r} and {mnemonic!r}")
    known = nat.library().tlsim_mfma_known(arch.encode(), mnemonic.encode())
    if known < 0:
        raise ValueError(f"unknown architecture {arch!r}")
    return (None, "unknown", "assumed", "hardware", "exact")[known]


class Device(_Bound):
    """A simulated GPU.

    arch: "gfx942" ...; checks: "none", "all" or names of bounds, init, race, wait, hazard, barrier, and "strict" (all
    waves meet at one barrier instruction); threads: host threads (None: TILELANG_SIM_THREADS or all cores); seed:
    permutes the order of waves (0: in order); delivery: "now", or "late": results of memory operations land as late as
    the program's waits allow, or earlier where the seed says (None: TILELANG_SIM_DELIVERY); mfma: "default" (matrix
    instructions accumulate as a chain of fused multiply-adds) or "hw" (as the chip itself sums, see :func:`mfma_rule`;
    None: TILELANG_SIM_MFMA or default); ignore: rules of the check "hazard" that are left out, by the names that
    reports give ("valu-sgpr", ...; None: TILELANG_SIM_IGNORE).
    Raises ValueError for an architecture, a check or a rule that is not there."""

    def __init__(
        self,
        arch: str = "gfx942",
        checks: str | Sequence[str] = "bounds",
        threads: int | None = None,
        *,
        seed: int = 0,
        delivery: str | None = None,
        max_instructions: int | None = None,
        mfma: str | None = None,
        ignore: str | Sequence[str] | None = None,
    ) -> None:
        self._handle = None
        self._lib = nat.library()
        self._modules: weakref.WeakSet[Module] = weakref.WeakSet()
        self._lock = threading.Lock()
        _devices.add(self)
        self.arch = arch
        if not isinstance(arch, str):
            raise TypeError(f"arch must be a string, not {arch!r}")
        mask = nat.check_mask(_checks(checks))
        self.checks = tuple(nat.check_name(i) for i in range(32) if mask >> i & 1)
        threads = 0 if threads is None else _number(threads, "threads", 1, 1024)
        _mfma(mfma)
        why = C.create_string_buffer(512)
        self._handle = self._lib.tlsim_device_create(arch.encode(), mask, threads, why, len(why))
        if not self._handle:
            raise ValueError(why.value.decode())
        if ignore is not None:
            self._set(b"ignore", nat.rule_set(ignore))
        if seed:
            self._set(b"seed", _seed(seed))
        if delivery is not None:
            self._set(b"late", _late(delivery))
        self.mfma = "hw" if (os.environ.get("TILELANG_SIM_MFMA") if mfma is None else mfma) == "hw" else "default"
        self._lib.tlsim_device_option(self._handle, b"mfma_hw", self.mfma == "hw")
        if max_instructions is not None:
            max_instructions = _number(max_instructions, "max_instructions", 0, (1 << 64) - 1)
            self._lib.tlsim_device_option(self._handle, b"max_instructions", max_instructions)

    def __repr__(self) -> str:
        state = f"checks={','.join(self.checks) or 'none'}" if self._handle else "closed"
        return f"<Device {self.arch}, {state}>"

    @property
    def _open(self) -> int:
        """The handle of a device that is not closed."""
        if not self._handle:
            raise ValueError("this device has been closed")
        return int(self._handle)

    def _set(self, name: bytes, value: int) -> None:
        self._lib.tlsim_device_option(self._handle, name, value)

    @contextlib.contextmanager
    def _options(self, delivery: str | None, seed: int | None) -> Iterator[None]:
        """Other values of delivery and seed for one launch."""
        new = ([(b"late", _late(delivery))] if delivery is not None else []) + (
            [(b"seed", _seed(seed))] if seed is not None else []
        )
        old = [(name, self._lib.tlsim_device_option_value(self._handle, name)) for name, _ in new]
        try:
            for name, value in new:
                self._set(name, value)
            yield
        finally:
            for name, value in old:
                self._set(name, value)

    def empty(self, nbytes: int, name: str | None = None) -> DeviceMemory:
        """Device memory of nbytes bytes, contents undefined (every byte is 0xCD). Reports call it by its name."""
        return DeviceMemory(self, nbytes, None, None, name)

    def array(self, a: np.ndarray, name: str | None = None) -> DeviceMemory:
        """Device memory with a (C-contiguous) copy of the array. Reports call it by its name."""
        a = np.asarray(a)
        _plain(a.dtype)
        mem = DeviceMemory(self, a.nbytes, a.dtype, a.shape, name)
        mem.write(a)
        return mem

    def _argument(self, a: np.ndarray, name: str) -> DeviceMemory:
        """Device memory for one launch; a kernel may store to it when the array is writable."""
        mem = DeviceMemory(self, a.nbytes, a.dtype, a.shape, name if a.flags.writeable else f"read-only array {name}")
        mem.write(a)
        if not a.flags.writeable and "bounds" in self.checks:  # else the bytes are compared afterwards
            mem.protect()
        return mem

    def load(self, source: str | os.PathLike[str] | bytes) -> Module:
        """Loads a code object from a file or from bytes; of an offload bundle (or a program with one in it) that for
        this chip. Raises ValueError when it is malformed or for another chip, or when there are several
        (:func:`unbundle` gives each)."""
        codes = unbundle(source)
        if len(codes) == 1:
            return Module(self, codes[0][1])
        mine = [c for t, c in codes if t == self.arch] or [c for t, c in codes if self.arch in chips_of(t)]
        if len(mine) != 1:
            there = ", ".join(dict.fromkeys(t for t, _ in codes)) or "none"
            what = f"{len(mine)} code objects for {self.arch}: load one of unbundle()" if mine else f"no {self.arch}"
            raise ValueError(f"cannot load the code object: the file has {what}; its chips are: {there}")
        return Module(self, mine[0])

    @property
    def counters(self) -> dict[str, int]:
        """Launches and wave instructions since the device was made."""
        a, b = C.c_uint64(), C.c_uint64()
        self._lib.tlsim_counters(self._open, C.byref(a), C.byref(b))
        return {"launches": a.value, "instructions": b.value}

    @property
    def progress(self) -> tuple[int, int]:
        """Workgroups of the running or last launch that ended, and all of it; may be asked from any thread."""
        a, b = C.c_uint64(), C.c_uint64()
        self._lib.tlsim_progress(self._open, C.byref(a), C.byref(b))
        return a.value, b.value

    def cancel(self) -> None:
        """Stops the running launch (from another thread)."""
        if self._handle:
            self._lib.tlsim_cancel(self._handle)

    def close(self) -> None:
        """Ends the device; its memory and modules are gone."""
        if self._handle:
            for m in list(self._modules):
                m._handle = None
            self._lib.tlsim_device_destroy(self._handle)
            self._handle = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _reports(self) -> list[Report]:
        out = []
        raw = nat.Report()
        for i in range(self._lib.tlsim_report_count(self._handle)):
            self._lib.tlsim_report(self._handle, i, C.byref(raw))
            text = C.create_string_buffer(4096)
            self._lib.tlsim_report_text(self._handle, i, text, len(text))
            out.append(_report(raw, text.value.decode(errors="replace").rstrip("\n")))
        return out


def _late(delivery: str) -> int:
    if delivery not in ("now", "late"):
        raise ValueError(f'delivery must be "now" or "late", not {delivery!r}')
    return int(delivery == "late")


def _seed(seed: int) -> int:
    return _number(seed, "seed", 0, (1 << 64) - 1)


def _checks(checks: str | Sequence[str]) -> str | list[str]:
    if isinstance(checks, str):
        return checks
    try:
        return list(checks)
    except TypeError:
        raise TypeError(f"checks must be a name or a sequence of names, not {checks!r}") from None


_devices: weakref.WeakSet[Device] = weakref.WeakSet()


def _free_locks() -> None:
    for d in _devices:
        d._lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # in a child no other thread launches any more
    os.register_at_fork(after_in_child=_free_locks)


def _line(file: bytes, line: int) -> str | None:
    return f"{file.decode(errors='replace')}:{line}" if file and line else None


def _report(r: nat.Report, details: str) -> Report:
    return Report(
        check=nat.check_name(r.check),
        message=r.message.decode(errors="replace"),
        kernel=r.kernel.decode(errors="replace"),
        workgroup=(r.wg[0], r.wg[1], r.wg[2]),
        wave=r.wave,
        lanes=tuple(i for i in range(64) if r.lanes >> i & 1),
        pc=r.pc,
        text=r.text.decode(errors="replace"),
        address=r.address if r.has_address else None,
        rule=nat.rule_name(r.rule),
        other_pc=None if r.other_pc == nat.NO_PC else r.other_pc,
        line=_line(r.file, r.line),
        other_wave=None if r.other_wave == 0xFFFFFFFF else r.other_wave,
        other_text=r.other_text.decode(errors="replace") or None,
        other_line=_line(r.other_file, r.other_line),
        buffer=r.buffer.decode(errors="replace") or None,
        count=r.count,
        function=(r.function or r.kernel).decode(errors="replace"),
        other_function=(r.other_function or r.kernel if r.other_pc != nat.NO_PC else b"").decode(errors="replace"),
        details=details,
    )


class Module(_Bound):
    """A loaded code object; ``kernels`` maps symbol to :class:`Kernel`."""

    def __init__(self, device: Device, data: bytes) -> None:
        self._device = device
        self._handle = None
        why = C.create_string_buffer(512)
        self._handle = device._lib.tlsim_module_load(device._open, data, len(data), why, len(why))
        if not self._handle:
            raise ValueError(f"cannot load the code object: {why.value.decode(errors='replace')}")
        device._modules.add(self)
        self.kernels: dict[str, Kernel] = {}
        for i in range(device._lib.tlsim_kernel_count(self._handle)):
            k = Kernel(self, device._lib.tlsim_kernel_at(self._handle, i))
            self.kernels[k.name] = k

    def __repr__(self) -> str:
        names = list(self.kernels)
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        return f"<Module for {self._device.arch}: {', '.join(names[:8])}{more}>"

    def unload(self) -> None:
        """Removes the code from the device; its kernels cannot be launched any more."""
        if self._handle and self._device._handle:
            self._device._lib.tlsim_module_unload(self._device._handle, self._handle)
        self._handle = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.unload()


class Kernel(_Bound):
    """A kernel of a module: ``name``, ``args``, ``resources``, ``has_metadata`` (else there are no ``args``),
    :meth:`launch`, :meth:`disassembly`."""

    def __init__(self, module: Module, handle: int) -> None:
        # The module holds this kernel; the kernel keeps the module alive through its device work only.
        self._module = module
        self._handle = handle
        self._lib = module._device._lib
        self._texts: dict[int, tuple[int, str, str, str | None, bool]] = {}
        self._executed: tuple[np.ndarray, np.ndarray, list[int], list[str], list[str], np.ndarray] | None = None
        self.name: str = self._lib.tlsim_kernel_name(handle).decode(errors="replace")
        info = nat.KernelInfo()
        self._lib.tlsim_kernel_info(handle, C.byref(info))
        self._info = info
        self.has_metadata = bool(info.has_metadata)
        self.args: list[KernelArg] = []
        raw = nat.Arg()
        for i in range(info.nargs):
            self._lib.tlsim_kernel_arg(handle, i, C.byref(raw))
            self.args.append(
                KernelArg(raw.name.decode(errors="replace"), raw.offset, raw.size, raw.kind.decode(errors="replace"))
            )
        self.resources: dict[str, Any] = {
            "vgprs": info.vgpr_count,
            "agprs": info.agpr_count,
            "sgprs": info.sgpr_count,
            "allocated_vgprs": info.allocated_vgprs,
            "vgpr_spills": info.vgpr_spill_count,
            "sgpr_spills": info.sgpr_spill_count,
            "lds_bytes": info.group_size,
            "scratch_bytes": info.private_size,
            "kernarg_bytes": info.kernarg_size,
            "max_threads": info.max_flat_workgroup_size,
            "wave_size": info.wavefront_size,
            "code_bytes": info.code_bytes,
        }
        if not info.has_metadata:  # only the descriptor tells
            self.resources["vgprs"] = info.allocated_vgprs

    def __repr__(self) -> str:
        args = ", ".join(a.name or f"+{a.offset}" for a in self.args if not a.kind.startswith("hidden_"))
        return f"<Kernel {self.name}({args}) for {self._module._device.arch}>"

    def _disasm(self, pc: int) -> tuple[int, str, str, str | None, bool]:
        """(size, text, mnemonic, line, known); code does not change, so each is asked for once."""
        if pc in self._texts:
            return self._texts[pc]
        if self._module._handle is None:
            raise ValueError(f"the module of kernel {self.name} is not loaded any more")
        text, mn, file = C.create_string_buffer(256), C.create_string_buffer(96), C.create_string_buffer(512)
        line, known = C.c_uint32(), C.c_bool()
        n = self._lib.tlsim_disassemble(self._handle, pc, text, 256, mn, 96, file, 512, C.byref(line), C.byref(known))
        out = n, text.value.decode(), mn.value.decode(), _line(file.value, line.value), known.value
        self._texts[pc] = out
        return out

    def disassembly(self) -> list[tuple[int, str, str | None]]:
        """(pc, text, "file:line" or None) of each instruction of the kernel, in order; an unknown encoding has its
        reason in parentheses as text. Without a symbol size it goes to the first s_endpgm."""
        out = []
        pc, end = 0, self._info.code_bytes
        while not end or pc < end:
            n, text, mn, line, _ = self._disasm(pc)
            if not n:
                break
            out.append((pc, text, line))
            pc += n
            if not end and mn == "s_endpgm":
                break
        return out

    def text_at(self, pc: int) -> str | None:
        """Text of the instruction at pc: bytes from the kernel's entry, negative before it. Functions that the kernel
        calls lie outside of :meth:`disassembly`. None where the code object has no code."""
        size, text, *_ = self._disasm(pc)
        return text if size else None

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] | Mapping[int, Any] = (),
        lds_bytes: int = 0,
        trace: Any = None,
        mfma: str | None = None,
        *,
        delivery: str | None = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Runs the kernel to its end. grid in workgroups, block in threads (1 to 3 numbers each).

        args: the explicit arguments in order, or {offset: value}; without metadata those in order are aligned to their
        size. A value is device memory, a NumPy array or a dense PyTorch tensor on the CPU (device memory for the call:
        copied in and, when writable, out; a store to a read-only one is a bounds fault), a NumPy scalar, bytes, an int,
        or None (null pointer). Values at offsets must not overlap, nor hidden arguments, and must cover every explicit
        argument of the metadata (without metadata, what they leave out is 0).
        lds_bytes: dynamic LDS beyond the kernel's own. Returns statistics (wave instructions, bytes moved).
        trace: a path (all waves are recorded to it), workgroups (numbers or (x, y, z)) or :class:`TraceOptions`: the
        record is ``stats["trace"]``, or ``trace`` of the SimulatorFault.
        mfma: "default" or "hw" for this launch (None: as the device); with "hw", ``stats["mfma_assumed"]`` names the
        instructions that ran whose summation is not known from hardware.
        delivery ("now", "late") and seed: as of the device, for this launch.
        Raises SimulatorFault for faults of the program; ValueError or TypeError for a launch that cannot be."""
        if self._module._handle is None:
            raise ValueError(f"the module of kernel {self.name} is not loaded any more")
        dev = self._module._device
        hw = (_mfma(mfma) or dev.mfma) == "hw"
        dims = [_three(grid, "grid"), _three(block, "block")]
        lds_bytes = _number(lds_bytes, "lds_bytes", 0, 0xFFFFFFFF)
        waves = -(-math.prod(dims[1]) // self._info.wavefront_size)
        recorder = Recorder(trace, dims[0], waves) if trace is not None else None
        run = recorder.launch if recorder else self._lib.tlsim_launch
        temps: list[tuple[np.ndarray, DeviceMemory]] = []
        try:
            packed = self._pack(args, temps)
            stats, counts = nat.Stats(), (C.c_uint64 * self._info.count_words)()
            stats.pc_counts = C.cast(counts, C.POINTER(C.c_uint64))
            # what the device tells of its last launch belongs to this one
            with dev._lock, dev._options(delivery, seed):
                self._lib.tlsim_device_option(dev._handle, b"mfma_hw", hw)
                status = _interruptible(
                    dev,
                    lambda: run(
                        dev._handle, self._handle, dims[0], dims[1], lds_bytes, packed, len(packed), C.byref(stats)
                    ),
                )
                reports = dev._reports() if status == _FAULTED else []
                message = self._lib.tlsim_error(dev._handle).decode(errors="replace")
            for host, mem in temps:
                if host.flags.writeable:
                    host[...] = mem.numpy(host.dtype, host.shape)
                elif mem.numpy(host.dtype, host.shape).tobytes() != host.tobytes():
                    raise ValueError(f"kernel {self.name} stores to an argument whose NumPy array is read-only")
        finally:
            for _, mem in temps:
                mem.free()
        record = recorder.result() if recorder else None
        if status == _FAULTED:
            fault = SimulatorFault(_summary(reports, message), reports)
            fault.more = message
            fault.stats = self._statistics(stats, np.frombuffer(counts, np.uint64))
            fault.trace = record
            raise fault
        if status == _CANCELLED:
            raise KeyboardInterrupt("the launch was cancelled")
        if status != _OK:
            message = message or f"launch failed ({status})"
            raise {_NO_MEMORY: MemoryError, _UNSUPPORTED: NotImplementedError}.get(status, ValueError)(message)
        out = self._statistics(stats, np.frombuffer(counts, np.uint64))
        if hw:
            names = [n for n in out["by_mnemonic"] if mfma_rule(dev.arch, n) == "assumed"]
            out["mfma_assumed"] = sorted(names)
        return out | {"trace": record} if recorder else out

    def _pack(self, args: Sequence[Any] | Mapping[int, Any], temps: list[Any]) -> bytes:
        out = bytearray(self._info.kernarg_size)
        explicit = [a for a in self.args if not a.kind.startswith("hidden_")]
        by_offset = {a.offset: a for a in self.args}
        if isinstance(args, Mapping):
            offs = [_number(off, "the offset of an argument", 0, 0xFFFFFFFF) for off in args]
            items = [(off, by_offset.get(off), v) for off, v in zip(offs, args.values(), strict=True)]
        elif not isinstance(args, Iterable):
            raise TypeError(f"args must be a sequence, or a dict by offset, not {args!r}")
        elif not self._info.has_metadata:
            return self._pack_blind(args, temps)
        else:
            if len(args) != len(explicit):
                names = ", ".join(a.name or f"+{a.offset}" for a in explicit)
                raise TypeError(f"kernel {self.name} takes {len(explicit)} arguments ({names}), {len(args)} given")
            items = [(a.offset, a, v) for a, v in zip(explicit, args, strict=True)]
        taken: list[tuple[int, int, str]] = [
            (a.offset, a.offset + a.size, f"the hidden argument {a.kind}")
            for a in self.args
            if a.kind.startswith("hidden_") and isinstance(args, Mapping)
        ]
        for off, arg, value in items:
            data = self._value(off, arg, value, temps, exact=not isinstance(args, Mapping))
            if off < 0 or off + len(data) > len(out):
                raise ValueError(f"{len(data)} bytes at offset {off} lie outside {len(out)} bytes of arguments")
            for lo, hi, what in taken:
                if off < hi and lo < off + len(data):
                    raise ValueError(f"the {len(data)} bytes at offset {off} overlap {what} at offset {lo}")
            taken.append((off, off + len(data), "the value"))
            out[off : off + len(data)] = data
        if isinstance(args, Mapping):
            given = {i for lo, hi, _ in taken for i in range(lo, hi)}
            left = [a for a in explicit if not given.issuperset(range(a.offset, a.offset + a.size))]
            names = ", ".join(f"{a.name}{' ' * bool(a.name)}at offset {a.offset} ({a.size} bytes)" for a in left)
            if left:
                raise TypeError(f"kernel {self.name}: the values given leave out arguments, or parts of them: {names}")
        return bytes(out)

    def _pack_blind(self, args: Sequence[Any], temps: list[Any]) -> bytes:
        """Arguments of a kernel without metadata: each at the next multiple of its size (at most 8)."""
        out = b""
        for value in args:
            data = self._value(len(out), None, value, temps, exact=False)
            out = out.ljust(-(-len(out) // (n := min(len(data), 8) or 1)) * n, b"\0") + data
        size = self._info.kernarg_size
        if len(out) > size:
            raise ValueError(
                f"kernel {self.name} has no metadata, and its descriptor gives {size} bytes of arguments "
                f"(.amdhsa_kernarg_size), not {len(out)}"
            )
        return out.ljust(size, b"\0")

    def _value(self, off: int, arg: KernelArg | None, value: Any, temps: list[Any], exact: bool) -> bytes:
        what = f"argument {arg.name or f'+{off}'} of kernel {self.name}" if arg else f"the value at offset {off}"
        dev = self._module._device
        value = _host_array(value)
        if value is None:
            data = bytes(8)
        elif isinstance(value, DeviceMemory):
            if value._device is not dev:
                raise ValueError(f"{what}: memory of another device")
            data = struct.pack("<Q", value.address)
        elif isinstance(value, np.ndarray) and value.ndim > 0:
            _plain(value.dtype, what)
            mem = next((m for host, m in temps if _same(host, value)), None)  # one array twice is one memory
            if mem is None:
                mem = dev._argument(value, arg.name if arg and arg.name else f"+{off}")
                temps.append((value, mem))
            data = struct.pack("<Q", mem.address)
        elif isinstance(value, (np.generic, np.ndarray)):
            data = value.tobytes()
        elif isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
        elif isinstance(value, (bool, int)):
            size = arg.size if arg else 8
            try:
                data = int(value).to_bytes(size, "little", signed=value < 0)
            except OverflowError:
                raise ValueError(f"{what}: {value} does not fit into {size} bytes") from None
        else:
            raise TypeError(
                f"{what}: a {type(value).__name__} has no fixed size; pass device memory, a NumPy array or scalar, "
                "a PyTorch tensor, bytes, an int or None"
            )
        if arg and exact and len(data) != arg.size:
            raise ValueError(f"{what} has {arg.size} bytes, the value has {len(data)}")
        return data

    def _places(self, ran: np.ndarray) -> tuple[np.ndarray, list[int], list[str], list[str], np.ndarray]:
        """Of the words that ran: those known, their PCs and texts; the mnemonics in order; each word's mnemonic."""
        rows = [(int(i), pc, *self._disasm(pc)[:3]) for i in ran for pc in [self._info.count_base + 4 * int(i)]]
        rows = [r for r in rows if r[2]]
        names = sorted({r[4] for r in rows})
        number = {n: k for k, n in enumerate(names)}
        which = np.array([number[r[4]] for r in rows], np.intp)
        return np.array([r[0] for r in rows], np.intp), [r[1] for r in rows], [r[3] for r in rows], names, which

    def _statistics(self, s: nat.Stats, counts: np.ndarray) -> dict[str, Any]:
        ran = np.flatnonzero(counts)
        places = self._executed
        if places is None or not np.array_equal(places[0], ran):  # most launches run the same places
            places = self._executed = ran, *self._places(ran)
        _, known, pcs, texts, names, which = places
        each = counts[known]
        total = np.zeros(len(names), np.uint64)
        np.add.at(total, which, each)
        by_pc = dict(zip(pcs, zip(each.tolist(), texts, strict=True), strict=True))
        by_mnemonic = dict(zip(names, total.tolist(), strict=True))

        def widths(*arrays: Any) -> dict[int, int]:
            return {w: sum(a[i] for a in arrays) for i, w in enumerate(nat.WIDTHS)}

        return {
            "instructions": s.instructions,
            "by_mnemonic": dict(sorted(by_mnemonic.items(), key=lambda kv: (-kv[1], kv[0]))),
            "by_pc": by_pc,
            "lds_conflict_cycles": s.lds_conflict_cycles,
            "lds_gap_accesses": s.lds_gap_accesses,
            "global_bytes": widths(s.global_read, s.global_write),
            "global_read_bytes": widths(s.global_read),
            "global_write_bytes": widths(s.global_write),
            "lds_bytes": widths(s.lds_read, s.lds_write),
            "lds_read_bytes": widths(s.lds_read),
            "lds_write_bytes": widths(s.lds_write),
            "scalar_bytes": s.scalar_read,
            "lds_dma_bytes": s.lds_dma,
            "atomic_lanes": s.atomics,
        }


def _interruptible(dev: Device, call: Callable[[], int]) -> int:
    """Makes the call in a thread of its own when we are the main thread, so that Ctrl-C can stop the launch."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    out: list[int] = []
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            out.append(call())
        except BaseException as e:
            wrong.append(e)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        worker.join()
    except KeyboardInterrupt:
        while worker.is_alive():  # the flag is cleared when a launch starts
            dev.cancel()
            worker.join(0.05)
        raise
    if wrong:
        raise wrong[0]
    return out[0]


def _three(v: Sequence[int] | int, what: str) -> Any:
    try:
        n = tuple(operator.index(x) for x in ((v,) if isinstance(v, (int, np.integer)) else v))
    except TypeError:
        raise TypeError(f"{what} must be one to three positive numbers, not {v!r}") from None
    if not 1 <= len(n) <= 3 or any(x < 1 or x > 0xFFFFFFFF for x in n):
        raise ValueError(f"{what} must be one to three positive numbers below 2**32, not {n}")
    return (C.c_uint32 * 3)(*n, *[1] * (3 - len(n)))


def _summary(reports: list[Report], more: str) -> str:
    n = len(reports)
    lines = [f"{n} faults" if n != 1 else "1 fault", *(str(r) for r in reports[:4])]
    return "\n".join([*lines, *([f"... and {n - 4} more"] if n > 4 else []), *([more] if more else [])])
