"""Source lines of faults. A kernel is compiled without line tables (they cost a fifth of the compile time and change no
instruction); when the simulator reports a fault, the same text is compiled once more with them and the lines are looked
up. ``TILELANG_LINE_TABLES=1`` puts them into every code object (for ``save`` and other tools)."""

from __future__ import annotations

from typing import Any

from ._env import flag
from ._lazy import module
from .errors import SimulatorFault


def wanted() -> bool:
    """Whether code objects carry line tables from the start."""
    return flag("TILELANG_LINE_TABLES")


def table(built: Any) -> dict[int, str]:
    """pc (bytes from the kernel's first instruction) -> "file:line" of one compiled specialisation; made once."""
    if built.lines is None:
        from .frontend.build import codegen

        sim = module("tilelang.sim")
        code = codegen().compile(built.thread_text, line_tables=True)
        kernel = next(iter(sim.Device(built.target, checks="none").load(code.hsaco).kernels.values()))
        built.lines = {pc: line for pc, _, line in kernel.disassembly() if line}
    return built.lines


def add(fault: SimulatorFault, built: Any) -> None:
    """Fills in ``line`` and ``other_line`` of the fault's reports where they are not known."""
    for r in fault.reports:
        for pc, line in (("pc", "line"), ("other_pc", "other_line")):
            at = getattr(r, pc, None)
            if at is not None and not getattr(r, line, None):
                setattr(r, line, table(built).get(at))
        told = built.asserts.get(getattr(r, "line", None)) if getattr(r, "check", "") == "trap" else None
        if told:
            text = " or ".join(told)
            r.message = f"{text} ({r.message})"
            fault.message = fault.message.replace("trap: s_trap", f"trap: {text}: s_trap", 1)
    where = sorted({r.line for r in fault.reports if getattr(r, "line", None)})
    if where:
        fault.message += "\n  at " + ", ".join(where[:4])
        fault.args = (fault.message, *fault.args[1:])
