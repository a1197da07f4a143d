"""``python -m tilelang.sim FILE``: lists, disassembles and runs code objects on the simulated GPU.

    python -m tilelang.sim kernel.hsaco --list
    python -m tilelang.sim kernel.hsaco --kernel add --disasm
    python -m tilelang.sim kernel.hsaco --kernel add --grid 4 --block 256 --check all --stats \
        --arg in:f32:1024:random(1) --arg in:f32:1024:ones --arg out:f32:1024 --arg i32:1024 --save out.npy
    python -m tilelang.sim saved.hsaco.json --arg "X=37x64:random(1)" --arg Y=37x64 --arg scale=0.5
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelang.errors import SimulatorFault
from tilelang.sim import Device, DeviceMemory, Kernel, Trace, TraceOptions, libdir, verify
from tilelang.sim._bundle import chips_of, unbundle
from tilelang.sim._saved import Saved

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
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def fill(kind: str, shape: tuple[int, ...], name: str) -> np.ndarray | None:
    """Contents by name: zeros, ones, arange, random(seed), ints(seed) (small integers), undef, file.npy."""
    dtype = DTYPES[name]
    m = re.fullmatch(r"(random|ints)(?:\((\d+)\))?", kind)
    if kind in ("undef", ""):
        return None
    if kind.endswith(".npy"):
        a = np.load(kind)
        if a.size != int(np.prod(shape)):
            raise BadArgument(f"{kind} holds {a.size} elements, not {int(np.prod(shape))}")
        if name == "bf16" and a.dtype == np.uint16:  # bits, as --save writes them
            return a.reshape(shape)
        return a.astype(dtype).reshape(shape) if name != "bf16" else to_bf16(a).reshape(shape)
    if m:
        rng = np.random.default_rng(int(m[2] or 0))
        a = (
            rng.integers(-4, 5, shape)
            if m[1] == "ints"
            else rng.standard_normal(shape) * (1 if name[0] in "fb" else 100)
        )
    elif kind in ("zeros", "ones"):
        a = np.full(shape, float(kind == "ones"))
    elif kind == "arange":
        a = np.arange(int(np.prod(shape))).reshape(shape)
    else:
        raise BadArgument(
            f"unknown contents {kind!r}: zeros, ones, arange, random(seed), ints(seed), undef or FILE.npy"
        )
    return to_bf16(a) if name == "bf16" else a.astype(dtype)


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
    if role not in DTYPES or not rest:
        raise BadArgument(f"--arg {text}: expected in|out|inout:DTYPE:SHAPE[:CONTENTS], DTYPE:VALUE or null")
    return "value", role, scalar(role, rest, f"--arg {text}"), ""


def scalar(name: str, text: str, what: str) -> Any:
    """A number of a dtype by its short name; bf16 as its bits."""
    try:
        if name[0] in "fb":
            value = float.fromhex(text) if "x" in text.lower() else float(text)
            return to_bf16(np.array([value]))[0] if name == "bf16" else DTYPES[name](value)
        return np.array(int(text, 0), DTYPES[name])[()]
    except (ValueError, OverflowError):
        raise BadArgument(f"{what}: {text!r} is no {name}") from None


def padded(value: Any, size: int) -> Any:
    """A scalar in a wider argument lies in its low bytes (an 8-byte slot of ours), with its sign where it has one."""
    fill = b"\xff" if value.dtype.kind == "i" and value < 0 else b"\0"
    return value.tobytes().ljust(size, fill) if value.nbytes < size else value


Output = tuple[DeviceMemory, str, tuple[int, ...]]


def dims(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(x) for x in re.split("[x,]", text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers like 4x2x1") from None


def show_list(kernels: dict[str, Kernel], arch: str) -> None:
    print(f"for {arch}, {len(kernels)} kernel{'s' * (len(kernels) != 1)}")
    for k in kernels.values():
        r = k.resources
        print(f"{k.name}")
        if not k.has_metadata:
            print(
                f"  wave{r['wave_size']}, {r['vgprs']} VGPRs, {r['lds_bytes']} bytes of LDS, {r['scratch_bytes']} of "
                f"scratch, {r['kernarg_bytes']} bytes of arguments (no metadata: the descriptor says no more)"
            )
            continue
        print(
            f"  wave{r['wave_size']}, {r['vgprs']} VGPRs ({r['agprs']} accumulation), {r['sgprs']} SGPRs, "
            f"{r['lds_bytes']} bytes of LDS, {r['scratch_bytes']} of scratch, {r['vgpr_spills']} spills, "
            f"up to {r['max_threads']} threads"
        )
        for a in k.args:
            if not a.kind.startswith("hidden_"):
                print(f"  +{a.offset:<4} {a.size} bytes  {a.kind:<14} {a.name}")


def branch_target(pc: int, text: str) -> int | None:
    """Where a direct branch leads."""
    m = re.fullmatch(r"s_c?branch\w* (\d+)", text)
    return pc + 4 + 4 * (int(m[1]) - (int(m[1]) >> 15 << 16)) if m else None


def show_disassembly(k: Kernel, counts: dict[int, tuple[int, str]] | None = None) -> None:
    last = None
    rows = k.disassembly()
    known = {pc for pc, _, _ in rows}
    for pc, text, line in rows:
        to = branch_target(pc, text)
        text = f"{text:<40} ; to {to:x}" if to in known else text
        if line and line != last:
            print(f"; {line}")
            last = line
        n = f"{counts[pc][0]:>10} " if counts and pc in counts else " " * 11 if counts else ""
        print(f"{n}{pc:6x}: {text}")


def show_stats(stats: dict[str, Any], seconds: float) -> None:
    n = stats["instructions"]
    print(f"{n} instructions of waves in {seconds * 1e3:.1f} ms ({n / max(seconds, 1e-9) / 1e6:.1f} million a second)")
    for mnemonic, count in stats["by_mnemonic"].items():
        print(f"  {count:>12} {100 * count / n:5.1f}%  {mnemonic}")
    for key in ("global_read_bytes", "global_write_bytes", "lds_read_bytes", "lds_write_bytes"):
        moved = ", ".join(f"{b} by {w}-byte accesses" for w, b in stats[key].items() if b)
        print(f"  {key}: {moved or 0}")
    print(f"  LDS bank conflicts: {stats['lds_conflict_cycles']} cycles; scalar loads: {stats['scalar_bytes']} bytes")


def show_lines(k: Kernel, stats: dict[str, Any]) -> None:
    """Executed instructions by source line, most first; nothing without line tables."""
    n = stats["instructions"]
    total: dict[str, int] = {}
    for pc, _, line in k.disassembly():
        if pc in stats["by_pc"]:
            total[line or "(no line)"] = total.get(line or "(no line)", 0) + stats["by_pc"][pc][0]
    if set(total) <= {"(no line)"}:
        return
    print("by source line:")
    for line, count in sorted(total.items(), key=lambda x: -x[1]):
        print(f"  {count:>12} {100 * count / n:5.1f}%  {line}")


def wave_of(text: str) -> TraceOptions:
    """WG:WAVE with WG a number or x,y,z."""
    m = re.fullmatch(r"(\d+(?:,\d+){0,2}):(\d+)", text)
    if not m:
        raise argparse.ArgumentTypeError(f"{text!r} is not WORKGROUP:WAVE, e.g. 0:0 or 3,1,0:2")
    parts = [int(x) for x in m[1].split(",")]
    return TraceOptions(workgroups=[parts[0] if len(parts) == 1 else parts], wave=int(m[2]), values=True)


def short(name: str, value: Any) -> str:
    """A register of the trace: all lanes when they are equal, else the first four."""
    if isinstance(value, int):
        name = {"s106": "vcc_lo", "s107": "vcc_hi", "s126": "exec_lo", "s127": "exec_hi", "s124": "m0"}.get(name, name)
        return f"{name}={value:08x}"
    if (value == value[0]).all():
        return f"{name}={value[0]:08x}"
    return f"{name}=[{' '.join(f'{x:08x}' for x in value[:4])} ..]"


def show_trace(k: Kernel, trace: Trace | None) -> None:
    """Instructions of the recorded waves with what they wrote and where they accessed memory."""
    texts = {pc: text for pc, text, _ in k.disassembly()}
    for w in trace.waves if trace else ():
        print(f"workgroup {w.workgroup}, wave {w.wave}: {len(w.rows)} instructions")
        for i, row in enumerate(w.rows):
            pc = int(row["pc"])
            notes = [short(n, v) for n, v in w.registers(i).items()]
            for lanes, addr in w.addresses(i):
                notes += [f"lane {lanes[0]} at 0x{int(addr[0]):x}"] if len(lanes) else []
            if row["conflict_cycles"]:
                notes.append(f"{row['conflict_cycles']} conflict cycles")
            print(f"{pc:6x}: {texts.get(pc, '?'):<56} {row['exec_count']:>2} lanes  {'  '.join(notes)}".rstrip())
    if trace and not trace.waves:
        print("no such wave ran")


@contextlib.contextmanager
def progress(dev: Device) -> Iterator[None]:
    """A bar of ended workgroups on a terminal's stderr, for runs that take longer than half a second."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()

    def show() -> None:
        if over.wait(0.5):
            return
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ImportError:
            while not over.wait(0.5):
                done, total = dev.progress
                print(f"\r{done} of {total} workgroups", end="", file=sys.stderr, flush=True)
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            return
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("workgroups", total=None)
            while not over.wait(0.1):
                done, total = dev.progress
                bar.update(task, completed=done, total=total)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def pick(kernels: dict[str, Kernel], name: str | None) -> Kernel:
    if name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name not in kernels:
        what = "choose one with --kernel" if name is None else f"there is no kernel {name}"
        raise BadArgument(f"{what}; there are: {', '.join(kernels)}")
    return kernels[name]


def code_objects(opt: argparse.Namespace) -> list[bytes]:
    """What the file holds for the chip; without --arch, for the first chip in it that is simulated."""
    codes = unbundle(opt.file)
    if len(codes) == 1:
        opt.arch = opt.arch or (chips_of(codes[0][0]) or ("gfx942",))[0]
        return [codes[0][1]]
    chips = list(dict.fromkeys(c for t, _ in codes for c in chips_of(t)))
    if not opt.arch and len(chips) > 1:
        print(f"note: {opt.file} is for {', '.join(chips)}; {chips[0]} is taken (--arch)", file=sys.stderr)
    opt.arch = opt.arch or (chips[0] if chips else "gfx942")
    mine = [c for t, c in codes if t == opt.arch] or [c for t, c in codes if opt.arch in chips_of(t)]
    if not mine:
        there = ", ".join(dict.fromkeys(t for t, _ in codes)) or "nothing"
        raise BadArgument(f"{opt.file} holds no code for {opt.arch}; it is for {there}")
    return mine


def plain_arguments(opt: argparse.Namespace, dev: Device, kernel: Kernel) -> tuple[list[Any], list[Output]]:
    """What --arg says, in order: values for the launch, and what is to be shown afterwards."""
    args: list[Any] = []
    outs: list[Output] = []
    explicit = [a for a in kernel.args if not a.kind.startswith("hidden_")]
    for text in opt.arg:
        role, name, shape, kind = parse_arg(text)
        if role in ("null", "value"):
            size = explicit[len(args)].size if len(args) < len(explicit) else 0
            args.append(shape if role == "null" else padded(shape, size))
            continue
        a = explicit[len(args)] if len(args) < len(explicit) else None
        what = f"argument {a.name or f'+{a.offset}'}" if a else f"argument {len(args)}"
        mem = dev.empty(math.prod(shape) * np.dtype(DTYPES[name]).itemsize, name=what)
        data = fill(kind, shape, name)
        if data is not None:
            mem.write(data)
        args.append(mem)
        if role != "in":
            outs.append((mem, name, shape))
    return args, outs


def run(opt: argparse.Namespace, dev: Device, kernel: Kernel) -> int:
    args: Any
    if opt.save and not os.path.isdir(folder := os.path.dirname(opt.save) or "."):
        raise BadArgument(f"--save {opt.save}: there is no folder {folder}")
    if opt.saved:
        args, outs = opt.saved.arguments(opt.arg, dev)
    else:
        args, outs = plain_arguments(opt, dev, kernel)
    start = time.perf_counter()
    try:
        with progress(dev):
            stats = kernel.launch(opt.grid, opt.block, args, opt.lds, trace=opt.trace)
    except SimulatorFault as e:
        if opt.trace:
            show_trace(kernel, getattr(e, "trace", None))
        print("\n".join(str(r) for r in e.reports), file=sys.stderr)
        return 1
    seconds = time.perf_counter() - start
    if stats.get("mfma_assumed"):
        names = ", ".join(stats["mfma_assumed"])
        print(f"note: how {opt.arch} sums in {names} is not known from hardware: assumed", file=sys.stderr)
    if opt.stats:
        show_stats(stats, seconds)
        show_lines(kernel, stats)
    if opt.trace:
        show_trace(kernel, stats["trace"])
    if opt.disasm:
        show_disassembly(kernel, stats["by_pc"])
    for i, (mem, name, shape) in enumerate(outs):
        a = mem.numpy(DTYPES[name], shape)
        if opt.save:
            base = opt.save.removesuffix(".npy")
            path = f"{base}.npy" if len(outs) == 1 else f"{base}.{i}.npy"
            np.save(path, a)
            print(f"saved {name}{list(shape)} to {path}")
        else:
            print(a if name != "bf16" else (a.astype(np.uint32) << 16).view(np.float32))
    return 0


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m tilelang sim", description=__doc__.split("\n")[0].split(": ")[1])
    p.add_argument(
        "file", nargs="?", help="code object (.hsaco), a bundle or program with some, or the .json of a saved kernel"
    )
    p.add_argument("--kernel", help="symbol; not needed when there is one")
    p.add_argument("--list", action="store_true", help="kernels, resources, arguments")
    p.add_argument("--disasm", action="store_true", help="instructions (with counts after a run)")
    p.add_argument("--grid", type=dims, help="workgroups, e.g. 8x8x1")
    p.add_argument("--block", type=dims, help="threads, e.g. 256")
    p.add_argument("--lds", type=int, default=0, help="bytes of dynamic LDS")
    p.add_argument(
        "--arg",
        action="append",
        default=[],
        help="in|out|inout:DTYPE:SHAPE[:CONTENTS], DTYPE:VALUE or null; "
        "of a saved kernel NAME=SHAPE[:CONTENTS], NAME=FILE.npy or NAME=VALUE. CONTENTS: zeros, ones, arange, "
        "random(SEED), ints(SEED), undef (bytes 0xCD) or FILE.npy; DTYPE: " + ", ".join(DTYPES),
    )
    p.add_argument("--arch", help="the simulated chip (default: the code object's)")
    p.add_argument("--check", default="bounds", help="none, all, or names: bounds,init,race,wait,hazard,barrier,strict")
    p.add_argument("--threads", type=int, help="host threads")
    p.add_argument(
        "--mfma", choices=("default", "hw"), help="matrix instructions: fused multiply-adds, or as the chip sums"
    )
    p.add_argument("--seed", type=int, default=0, help="permutes the order of waves, and what --delivery late does")
    p.add_argument(
        "--delivery", choices=["now", "late"], help="late: memory results land as late as the waits allow, by the seed"
    )
    p.add_argument("--stats", action="store_true", help="instruction mix, bytes, bank conflicts")
    p.add_argument("--trace", type=wave_of, metavar="WG:WAVE", help="instructions of a wave with register values")
    p.add_argument("--verify", action="store_true", help="static checks, runs nothing")
    p.add_argument("--save", metavar="FILE.npy", help="where outputs go (several: FILE.0.npy, ...; bf16 as its bits)")
    p.add_argument("--libdir", action="store_true", help="prints the folder with the libamdhip64.so libraries")
    return p


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status: 0, 1 after a fault of the program, 2 for wrong usage."""
    opt = parser().parse_args(argv)
    if opt.libdir:
        print(libdir())
        return 0
    if not opt.file:
        parser().error("a code object is needed")
    try:
        opt.saved = Saved.beside(opt.file, opt.arg)
        if opt.saved:
            opt.saved.complete(opt)
        if opt.verify:
            found = [f for code in code_objects(opt) for f in verify(code)]
            found = [f for f in found if opt.kernel in (None, f.kernel)]
            print("\n".join(str(f) for f in found) or "no findings")
            return 1 if any(f.severity == "error" for f in found) else 0
        how = {"seed": opt.seed, "delivery": opt.delivery, "mfma": opt.mfma}
        codes = code_objects(opt)
        dev = Device(opt.arch, checks=opt.check, threads=opt.threads, **how)
        modules = [dev.load(code) for code in codes]
        kernels = {name: k for m in reversed(modules) for name, k in m.kernels.items()}
        if opt.list:
            show_list(kernels, opt.arch)
        if opt.list or (opt.disasm and not opt.grid):
            if opt.disasm:
                show_disassembly(pick(kernels, opt.kernel))
            return 0
        if not opt.grid or not opt.block:
            raise BadArgument("--grid and --block say how to launch (or use --list, --disasm)")
        return run(opt, dev, pick(kernels, opt.kernel))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (OSError, ValueError, TypeError, NotImplementedError, MemoryError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
