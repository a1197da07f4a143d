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
import dataclasses
import json
import math
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tilelang.errors import SimulatorFault
from tilelang.sim import Device, DeviceMemory, Kernel, KernelArg, Trace, TraceOptions, libdir, verify
from tilelang.sim._bundle import chips_of, read, unbundle
from tilelang.sim._saved import Saved
from tilelang.sim._values import DTYPES, BadArgument, bits_of, fill, from_bf16, padded, parse_arg

Output = tuple[DeviceMemory, str, tuple[int, ...]]


@dataclasses.dataclass
class Inputs:
    """Memory that the kernel may not store to, by what it is called."""

    dev: Device
    memory: list[tuple[str, DeviceMemory, bytes]] = dataclasses.field(default_factory=list)

    def add(self, what: str, mem: DeviceMemory) -> None:
        """A store is a fault of the check bounds; without that check the bytes are compared afterwards."""
        bounds = "bounds" in self.dev.checks
        self.memory.append((what, mem, b"" if bounds else mem.numpy().tobytes()))
        if bounds:
            mem.protect()

    def warnings(self, fault: SimulatorFault | None) -> list[str]:
        """One for each that was stored to."""
        inside = [r.buffer or "" for r in fault.reports] if fault else []
        return [
            f"the kernel stores to {what}, which is only an input; inout:... shows what it stores"
            for what, mem, old in self.memory
            if any(re.match(rf"at offset \d+ of the read-only hipMalloc '{re.escape(what)}'", b) for b in inside)
            or (old and mem.numpy().tobytes() != old)
        ]


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
                print(f"  +{a.offset:<4} {a.size} bytes  {a.kind:<14} {a.name}".rstrip())


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


def by_line(k: Kernel, stats: dict[str, Any]) -> dict[str, int]:
    """Executed instructions by source line, most first; nothing without line tables."""
    total: dict[str, int] = {}
    for pc, _, line in k.disassembly():
        if pc in stats["by_pc"]:
            total[line or "(no line)"] = total.get(line or "(no line)", 0) + stats["by_pc"][pc][0]
    return {} if set(total) <= {"(no line)"} else dict(sorted(total.items(), key=lambda x: -x[1]))


def show_lines(k: Kernel, stats: dict[str, Any]) -> None:
    lines = by_line(k, stats)
    if lines:
        print("by source line:")
    for line, count in lines.items():
        print(f"  {count:>12} {100 * count / stats['instructions']:5.1f}%  {line}")


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


def pc_of(row: Any) -> int:
    """Bytes from the kernel's entry; functions that it calls may lie before it."""
    return (int(row["pc"]) ^ 1 << 31) - (1 << 31)


def show_trace(k: Kernel, trace: Trace | None) -> None:
    """Instructions of the recorded waves with what they wrote and where they accessed memory."""
    for w in trace.waves if trace else ():
        print(f"workgroup {w.workgroup}, wave {w.wave}: {len(w.rows)} instructions")
        for i, row in enumerate(w.rows):
            pc = pc_of(row)
            notes = [short(n, v) for n, v in w.registers(i).items()]
            for lanes, addr in w.addresses(i):
                notes += [f"lane {lanes[0]} at 0x{int(addr[0]):x}"] if len(lanes) else []
            if row["conflict_cycles"]:
                notes.append(f"{row['conflict_cycles']} conflict cycles")
            print(f"{pc:6x}: {k.text_at(pc) or '?':<56} {row['exec_count']:>2} lanes  {'  '.join(notes)}".rstrip())
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
    data = read(opt.file)
    with located(opt.file):
        codes = unbundle(data)
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


@contextlib.contextmanager
def located(file: str) -> Iterator[None]:
    """Names the file in what is wrong with it."""
    try:
        yield
    except ValueError as e:
        raise BadArgument(f"{file}: {e}") from None


def plain_arguments(opt: argparse.Namespace, inputs: Inputs, kernel: Kernel) -> tuple[list[Any], list[Output]]:
    """What --arg says, in order: values for the launch, and what is to be shown afterwards."""
    args: list[Any] = []
    outs: list[Output] = []
    explicit = [a for a in kernel.args if not a.kind.startswith("hidden_")]
    for text in opt.arg:
        role, name, shape, kind = parse_arg(text)
        a = explicit[len(args)] if len(args) < len(explicit) else None
        if role in ("null", "value", "bytes"):
            value = padded(shape, a, text) if role == "value" else bytes(8) if role == "null" else shape
            check_size(a, len(value) if isinstance(value, bytes) else value.nbytes, text)
            args.append(value)
            continue
        check_size(a, 8, text)
        what = f"argument {a.name or f'+{a.offset}'}" if a else f"argument {len(args)}"
        mem = inputs.dev.empty(math.prod(shape) * np.dtype(DTYPES[name]).itemsize, name=what)
        data = fill(kind, shape, name)
        if data is not None:
            mem.write(data)
        args.append(mem)
        if role != "in":
            outs.append((mem, name, shape))
        else:
            inputs.add(what, mem)
    return args, outs


def check_size(arg: KernelArg | None, size: int, text: str) -> None:
    """An argument takes the bytes that it has; a pointer has 8."""
    if arg and arg.size != size:
        name = arg.name or f"+{arg.offset}"
        raise BadArgument(f"--arg {text}: the argument {name} has {arg.size} bytes, the value has {size}")


def save_paths(save: str, outs: list[Output]) -> list[str]:
    """A file for each output; BadArgument when it cannot be written or there is nothing to write."""
    base = save.removesuffix(".npy")
    if not os.path.isdir(folder := os.path.dirname(save) or "."):
        raise BadArgument(f"--save {save}: there is no folder {folder}")
    if not os.path.basename(base) or os.path.isdir(save) or (os.path.exists(save) and not os.path.isfile(save)):
        raise BadArgument(f"--save {save}: the name of a file is needed, not of a folder or device")
    if not outs:
        raise BadArgument(f"--save {save}: no --arg is an output (out:... or inout:...)")
    paths = [f"{base}.npy" if len(outs) == 1 else f"{base}.{i}.npy" for i in range(len(outs))]
    for path in paths:
        new = not os.path.exists(path)
        if not new and not os.path.isfile(path):
            raise BadArgument(f"--save {save}: {path} is there and is no file")
        try:
            open(path, "ab").close()
        except OSError as e:
            raise BadArgument(f"--save {save}: {path} cannot be written: {e.strerror}") from None
        if new:
            os.unlink(path)
    return paths


def check_trace(opt: argparse.Namespace, kernel: Kernel) -> None:
    waves = -(-math.prod(opt.block) // kernel.resources["wave_size"])
    if opt.trace and opt.trace.wave >= waves:
        raise BadArgument(f"--trace: there is no wave {opt.trace.wave} in a workgroup of {waves}")


def run(opt: argparse.Namespace, dev: Device, kernel: Kernel) -> int:
    """Launches the kernel and shows what was asked for, after a fault, too."""
    args: Any
    inputs = Inputs(dev)
    if opt.saved:
        args, outs = opt.saved.arguments(opt.arg, inputs)
    else:
        args, outs = plain_arguments(opt, inputs, kernel)
    paths = save_paths(opt.save, outs) if opt.save is not None else []
    check_trace(opt, kernel)
    start = time.perf_counter()
    fault: SimulatorFault | None = None
    try:
        with progress(dev):
            stats = kernel.launch(opt.grid, opt.block, args, opt.lds, trace=opt.trace)
    except SimulatorFault as e:
        fault, stats = e, (e.stats or {}) | {"trace": e.trace}
    seconds = time.perf_counter() - start
    if stats.get("mfma_assumed"):
        names = ", ".join(stats["mfma_assumed"])
        print(f"note: how {opt.arch} sums in {names} is not known from hardware: assumed", file=sys.stderr)
    trace: Trace | None = stats.pop("trace", None)
    if not opt.json:
        show_run(opt, kernel, stats, seconds, trace)
    saved = save(outs, paths)
    warnings = inputs.warnings(fault)
    if opt.json:
        what = {"chip": opt.arch, "kernel": kernel.name, "reports": [vars(r) for r in fault.reports] if fault else []}
        what |= {"warnings": warnings} | ({"more": fault.more} if fault and fault.more else {})
        what |= {"seconds": seconds, "saved": saved, "stats": stats | {"by_line": by_line(kernel, stats)}}
        show_json(what | ({"trace": described_trace(kernel, trace)} if opt.trace else {}))
    elif paths:
        print("\n".join(f"saved {row['dtype']}{list(row['shape'])} to {row['file']}" for row in saved))
    elif not fault:
        for mem, name, shape in outs:
            a = mem.numpy(DTYPES[name], shape)
            print(from_bf16(a) if name == "bf16" else a)
    sys.stdout.flush()
    for line in [*map(str, fault.reports), fault.more] if fault else ():
        print(line, end="\n" * bool(line), file=sys.stderr)
    for line in warnings:
        print(f"warning: {line}", file=sys.stderr)
    return 1 if fault else 0


def show_run(
    opt: argparse.Namespace, kernel: Kernel, stats: dict[str, Any], seconds: float, trace: Trace | None
) -> None:
    if opt.stats:
        show_stats(stats, seconds)
        show_lines(kernel, stats)
    if opt.trace:
        show_trace(kernel, trace)
    if opt.disasm:
        show_disassembly(kernel, stats["by_pc"])


def save(outs: list[Output], paths: list[str]) -> list[dict[str, Any]]:
    """Writes the outputs (bf16 and 8-bit floats as their bits); what was written where."""
    saved = []
    for path, (mem, name, shape) in zip(paths, outs):
        a, bits = mem.numpy(DTYPES[name], shape), bits_of(name)
        try:
            with open(path, "wb") as f:
                np.save(f, a.view(bits) if bits else a)
        except OSError as e:
            raise BadArgument(f"--save: {path} cannot be written: {e.strerror or e}") from None
        saved.append({"dtype": name, "shape": shape, "file": path})
    return saved


def described_trace(k: Kernel, trace: Trace | None) -> list[dict[str, Any]]:
    """The recorded waves for --json: registers are numbers, one a lane for vector registers."""
    waves = []
    for w in trace.waves if trace else ():
        rows = []
        for i, row in enumerate(w.rows):
            pc = pc_of(row)
            registers = {n: v if isinstance(v, int) else v.tolist() for n, v in w.registers(i).items()}
            accesses = [{"lanes": lanes.tolist(), "addresses": at.tolist()} for lanes, at in w.addresses(i)]
            rows.append(
                {"pc": pc, "text": k.text_at(pc), "exec_count": int(row["exec_count"]), "registers": registers}
                | {"accesses": accesses, "conflict_cycles": int(row["conflict_cycles"])}
            )
        waves.append({"workgroup": w.workgroup, "wave": w.wave, "cut": w.cut, "instructions": rows})
    return waves


def show_json(what: dict[str, Any]) -> None:
    print(json.dumps(what))


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise BadArgument(f"{message} (--help tells of the options)")

    def print_help(self, file: Any = None) -> None:
        """Unlike argparse's, an error of writing is one."""
        print(self.format_help(), end="", file=file)


def parser() -> argparse.ArgumentParser:
    p = Parser(prog="python -m tilelang sim", description=__doc__.split("\n")[0].split(": ")[1])
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
        help="in|out|inout:DTYPE:SHAPE[:CONTENTS], DTYPE:VALUE, hex:BYTES or null; "
        "of a saved kernel NAME=SHAPE[:CONTENTS], NAME=FILE.npy or NAME=VALUE. CONTENTS: zeros, ones, arange, "
        "random(SEED), ints(SEED), undef (bytes 0xCD) or FILE.npy; DTYPE: " + ", ".join(DTYPES),
    )
    p.add_argument("--arch", help="the simulated chip (default: the code object's)")
    p.add_argument("--check", default="bounds", help="none, all, or names: bounds,init,race,wait,hazard,barrier,strict")
    p.add_argument(
        "--ignore", metavar="RULES", help="rules of the check hazard to leave out, by the names that reports give"
    )
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
    p.add_argument(
        "--json",
        action="store_true",
        help="one JSON object on stdout instead of text: of --list, --disasm, --verify, a run",
    )
    p.add_argument("--save", metavar="FILE.npy", help="where outputs go (several: FILE.0.npy, ...; bf16, f8 as bits)")
    p.add_argument("--libdir", action="store_true", help="prints the folder with the libamdhip64.so libraries")
    return p


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status: 0, 1 after a fault of the program, 2 for wrong usage or output that
    cannot be written, 130 after Ctrl-C, 141 when whoever read the output is gone."""
    open_streams()
    as_json = "--json" in (sys.argv[1:] if argv is None else argv)
    try:
        status = command(parser().parse_args(argv))
        sys.stdout.flush()
        return status
    except SystemExit as e:  # --help
        return refuse("", False, int(e.code or 0))
    except KeyboardInterrupt:
        return refuse("interrupted", as_json, 130)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as e:
        what = f"{e.filename}: {e.strerror}" if e.filename and e.strerror else str(e)
        if e.errno is not None and not e.filename:
            what = f"the output: {e.strerror}"
        return refuse(f"error: {what}", as_json)
    except (ValueError, TypeError, NotImplementedError, MemoryError) as e:
        return refuse(f"error: {e or type(e).__name__}", as_json)


def open_streams() -> None:
    """What is closed takes everything; no file that is opened later gets its number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115


def refuse(why: str, as_json: bool, status: int = 2) -> int:
    """Says why on stderr, with --json on stdout, too; what these cannot take is not tried once more at the end."""
    with contextlib.suppress(OSError):
        print(why, end="\n" * bool(why), file=sys.stderr)
    try:
        if as_json:
            show_json({"error": why.removeprefix("error: ")})
        sys.stdout.flush()
    except OSError as e:
        if not why and not isinstance(e, BrokenPipeError):
            status = refuse(f"error: the output: {e.strerror}", False)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return status


def alone(opt: argparse.Namespace) -> None:
    """BadArgument for options of a run beside one that runs nothing."""
    what = [f"--{name}" for name in ("list", "verify") if getattr(opt, name)]
    of_a_run = [f"--{n}" for n in ("grid", "block", "lds", "arg", "stats", "trace", "save") if getattr(opt, n)]
    if opt.verify and (opt.list or opt.disasm):
        raise BadArgument(f"--verify and {'--list' if opt.list else '--disasm'} are asked for one at a time")
    if what and of_a_run:
        raise BadArgument(f"{what[0]} runs nothing: {of_a_run[0]} is of no use with it")
    if opt.disasm and not opt.saved and of_a_run and not opt.grid:
        raise BadArgument(f"--disasm without --grid and --block runs nothing: {of_a_run[0]} is of no use with it")


def command(opt: argparse.Namespace) -> int:
    """What the options ask for."""
    if opt.libdir:
        print(libdir())
        return 0
    if not opt.file:
        raise BadArgument("a code object is needed (--help tells of the options)")
    opt.saved = Saved.beside(opt.file, opt.arg)
    alone(opt)
    if opt.saved:
        opt.saved.complete(opt)
    how = {"seed": opt.seed, "delivery": opt.delivery, "mfma": opt.mfma, "ignore": opt.ignore}
    if opt.verify:
        return check_code(opt)
    codes = code_objects(opt)
    dev = Device(opt.arch, checks=opt.check, threads=opt.threads, **how)
    with located(opt.file):
        modules = [dev.load(code) for code in codes]
    kernels = {name: k for m in reversed(modules) for name, k in m.kernels.items()}
    times = sum(opt.kernel in m.kernels for m in modules)
    if times > 1:
        print(f"note: {times} code objects hold a kernel {opt.kernel}; the first is taken", file=sys.stderr)
    if opt.list or (opt.disasm and not opt.grid):
        if opt.json:
            names = list(kernels) if opt.kernel is None and opt.list else [pick(kernels, opt.kernel).name]
            show_json({"chip": opt.arch, "kernels": [described(kernels[n], opt.disasm) for n in names]})
            return 0
        if opt.list:
            chosen = kernels if opt.kernel is None else {opt.kernel: pick(kernels, opt.kernel)}
            show_list(chosen, opt.arch)
        if opt.disasm:
            show_disassembly(pick(kernels, opt.kernel))
        return 0
    if not opt.grid or not opt.block:
        raise BadArgument("--grid and --block say how to launch (or use --list, --disasm, --verify)")
    return run(opt, dev, pick(kernels, opt.kernel))


def described(k: Kernel, code: bool) -> dict[str, Any]:
    args = [dataclasses.asdict(a) for a in k.args]
    out = {"name": k.name, "has_metadata": k.has_metadata, "resources": k.resources, "args": args}
    if code:
        out["code"] = [{"pc": pc, "text": text, "line": line} for pc, text, line in k.disassembly()]
    return out


def check_code(opt: argparse.Namespace) -> int:
    """The static checks of all kernels, or of one, for all chips in the file, or for one."""
    data = read(opt.file)
    with located(opt.file):
        codes = unbundle(data)
        found = verify(data, arch=opt.arch, ignore=opt.ignore)
    chips = [opt.arch] if opt.arch else list(dict.fromkeys(c for t, _ in codes for c in chips_of(t)))
    if opt.kernel is not None:
        kernels: dict[str, Kernel] = {}
        for chip in chips:
            dev = Device(chip, checks="none")
            kernels |= {n: k for t, c in codes if chip in chips_of(t) for n, k in dev.load(c).kernels.items()}
        pick(kernels, opt.kernel)
        found = [f for f in found if f.kernel == opt.kernel]
    if opt.json:
        show_json({"chip": chips[0], "chips": chips, "findings": [dataclasses.asdict(f) for f in found]})
    else:
        none = f"no findings for {', '.join(chips)}" if len(chips) > 1 else "no findings"
        print("\n".join(str(f) for f in found) or none)
    return 1 if any(f.severity == "error" for f in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
