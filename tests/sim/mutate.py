"""Mutation of compiled kernels: each wait, barrier and needed s_nop is taken away in turn, by patching the code object
in place. A mutant must be reported, or its results must be the same bits under many late runs and a reason must be
known.

A :class:`Program` is a code object with a launch; :func:`mutants` makes the mutants; :func:`survey` runs them all."""

from __future__ import annotations

import functools
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilelang import sim

S_NOP = 0xBF800000
LATE_SEEDS = range(32)
NAMES_IT = {"wait": {"wait", "race"}, "barrier": {"race", "barrier"}, "nop": {"hazard"}, "alu": {"hazard"}}


@dataclass(frozen=True)
class Program:
    """A kernel and one launch of it. args: makes fresh arguments; the arrays at `out` are its results."""

    name: str
    arch: str
    code: bytes
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: Callable[[], Sequence[Any]]
    out: tuple[int, ...]
    lds: int = 0
    kernel: str | None = None


@dataclass(frozen=True)
class Mutant:
    """One change. what: wait, barrier, nop, alu (a wait for the ALUs on RDNA); text: the instruction; before, after:
    its neighbours."""

    what: str
    pc: int
    text: str
    before: str
    after: str
    code: bytes = field(repr=False)
    runs: bool = True  # this launch comes there


@dataclass(frozen=True)
class Reason:
    """Why mutants that match survive: patterns (whole text) of the program and of "before; text; after"."""

    program: str
    what: str
    where: str
    why: str

    def fits(self, p: Program, m: Mutant) -> bool:
        return (
            re.fullmatch(self.what, m.what) is not None
            and re.fullmatch(self.program, p.name) is not None
            and re.fullmatch(self.where, f"{m.before}; {m.text}; {m.after}") is not None
        )


@dataclass
class Survey:
    """What became of the mutants of one program."""

    tried: Counter = field(default_factory=Counter)
    reported: Counter = field(default_factory=Counter)
    excused: dict[Reason, int] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)  # not reported, no reason known
    wrong: list[str] = field(default_factory=list)  # not reported and the bits differ, or reported as something else
    idle: int = 0  # where this launch never comes (padding, other paths)

    def __str__(self) -> str:
        parts = [f"{w} {self.reported[w]} of {self.tried[w]}" for w in NAMES_IT if self.tried[w]]
        excused = sum(self.excused.values())
        return f"reported: {', '.join(parts) or 'nothing'}; excused {excused}, never run {self.idle}"


def entry_offset(elf: bytes, kernel: str) -> int:
    """File offset of the first instruction of a kernel."""
    (shoff,) = struct.unpack_from("<Q", elf, 40)
    (n,) = struct.unpack_from("<H", elf, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, shoff + 64 * i) for i in range(n)]
    for s in sections:
        if s[1] not in (2, 11):  # symbol tables
            continue
        names = sections[s[6]][4]
        for at in range(s[4], s[4] + s[5], 24):
            name, _, _, shndx, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
            start = names + name
            if elf[start : elf.index(b"\0", start)].decode() == kernel and 0 < shndx < n:
                home = sections[shndx]
                return home[4] + value - home[3]
    raise AssertionError(f"no symbol {kernel}")


_devices: dict[tuple[str, str], sim.Device] = {}


def device(arch: str, checks: str) -> sim.Device:
    if (arch, checks) not in _devices:
        _devices[arch, checks] = sim.Device(arch, checks=checks, threads=1, max_instructions=20_000_000)
    return _devices[arch, checks]


def kernel_of(p: Program, module: sim.Module) -> sim.Kernel:
    return module.kernels[p.kernel] if p.kernel else next(iter(module.kernels.values()))


def run(p: Program, code: bytes, checks: str, **how: Any) -> tuple[list[sim.Report], bytes]:
    """(reports, bits of the results)."""
    module = device(p.arch, checks).load(bytes(code))
    args = list(p.args())
    try:
        kernel_of(p, module).launch(p.grid, p.block, args, p.lds, **how)
        reports = []
    except sim.SimulatorFault as e:
        reports = e.reports
    finally:
        module.unload()
    return reports, b"".join(np.ascontiguousarray(args[i]).tobytes() for i in p.out)


def targets(dis: list[tuple[int, str]]) -> set[int]:
    """Byte offsets that branches lead to."""
    out = set()
    for pc, text in dis:
        m = re.match(r"s_(?:c?branch\w*|call_b64 .*,) (-?\d+)$", text)
        if m:
            out.add(pc + 4 + 4 * ((int(m[1]) + 0x8000) % 0x10000 - 0x8000))
    return out


def mutants(p: Program, what: Sequence[str] = tuple(NAMES_IT)) -> Iterator[Mutant]:
    """All mutants. Of an s_nop one wait state is taken; `s_nop 0` changes places with what follows, if nothing
    jumps there."""
    module = device(p.arch, "none").load(bytes(p.code))
    kernel = kernel_of(p, module)
    start, dis = entry_offset(p.code, kernel.name), [(pc, text) for pc, text, _ in kernel.disassembly()]
    ran = kernel.launch(p.grid, p.block, list(p.args()), p.lds)["by_pc"]
    module.unload()
    jumps = targets(dis)
    for i, (pc, text) in enumerate(dis):
        before, after = (dis[i - 1][1] if i else ""), (dis[i + 1][1] if i + 1 < len(dis) else "")
        code = bytearray(p.code)
        if re.match(r"s_wait(cnt|_)", text):
            kind = "alu" if text.startswith(("s_waitcnt_depctr", "s_wait_alu")) else "wait"
            struct.pack_into("<I", code, start + pc, S_NOP)
            if dis[i + 1][0] - pc == 8:
                struct.pack_into("<I", code, start + pc + 4, S_NOP)
        elif re.match(r"s_barrier(_wait|_signal .*)?\b", text):
            kind = "barrier"
            struct.pack_into("<I", code, start + pc, S_NOP)
        elif text.startswith("s_nop ") and i + 1 < len(dis):
            kind = "nop"
            n, end = int(text.split()[1], 0), dis[i + 2][0] if i + 2 < len(dis) else dis[i + 1][0] + 4
            if n:
                struct.pack_into("<I", code, start + pc, S_NOP | n - 1)
            elif pc + 4 in jumps or re.match(r"s_(c?branch|call|endpgm|setpc|swappc|getpc)", after):
                continue
            else:
                code[start + pc : start + end] = p.code[start + pc + 4 : start + end] + struct.pack("<I", S_NOP)
        else:
            continue
        if kind in what:
            yield Mutant(kind, pc, text, before, after, bytes(code), pc in ran)


def survey(
    p: Program, reasons: Sequence[Reason] = (), what: Sequence[str] = tuple(NAMES_IT), checks: str = "all"
) -> Survey:
    """The original must be clean and independent of delivery; then every mutant."""
    out = Survey()
    reports, want = run(p, p.code, checks)
    assert not reports, f"{p.name} itself is reported: {reports[0].details or reports[0].message}"
    late = [s for s in LATE_SEEDS if run(p, p.code, "none", delivery="late", seed=s)[1] != want]
    assert not late, f"{p.name} itself depends on delivery: seeds {late}"
    for m in mutants(p, what):
        if not m.runs:
            out.idle += 1
            continue
        out.tried[m.what] += 1
        reports, _ = run(p, m.code, checks)
        place = f"{p.name}+{m.pc:#x} {m.what}: {m.before}; {m.text}; {m.after}"
        if reports:
            if {r.check for r in reports} & NAMES_IT[m.what]:
                out.reported[m.what] += 1
            else:
                out.wrong.append(f"{place}: reported as {sorted({r.check for r in reports})}")
            continue
        differs = [s for s in LATE_SEEDS if run(p, m.code, "none", delivery="late", seed=s) != ([], want)]
        if differs:
            out.wrong.append(f"{place}: not reported, other bits under seeds {differs[:4]}")
            continue
        reason = next((r for r in reasons if r.fits(p, m)), None)
        if reason:
            out.excused[reason] = out.excused.get(reason, 0) + 1
        else:
            out.silent.append(place)
    return out


DATA = Path(__file__).with_name("data")
DTYPES = {"f16": np.float16, "f32": np.float32, "i32": np.int32, "u8": np.uint8}


def _contents(spec: Any, rng: np.random.Generator) -> Any:
    if not isinstance(spec, list):
        return {int: np.int32, float: np.float32}.get(type(spec), lambda x: x)(spec)
    how, dtype, shape = spec
    t = DTYPES[dtype]
    if how == "out":
        return np.full(shape, 77, t)
    return rng.standard_normal(shape).astype(t) if dtype == "f32" else rng.integers(0, 7, shape).astype(t)


def load_programs(name: str) -> dict[str, Callable[[], Program]]:
    """Programs of data/<name>.json: code objects that other compilers made (data/README.md)."""

    def make(key: str, d: dict[str, Any]) -> Program:
        rng = np.random.default_rng(17)
        args = [_contents(a, rng) for a in d["args"]]
        return Program(
            key,
            d["arch"],
            (DATA / d["file"]).read_bytes(),
            tuple(d["grid"]),
            tuple(d["block"]),
            lambda: [a.copy() if isinstance(a, np.ndarray) else a for a in args],
            tuple(i for i, a in enumerate(d["args"]) if isinstance(a, list) and a[0] != "in"),
            d["lds"],
            d.get("kernel"),
        )

    programs = json.loads((DATA / f"{name}.json").read_text())
    return {f"{name}-{k}": functools.partial(make, f"{name}-{k}", d) for k, d in programs.items()}
