"""The exceptions that tilelang raises. All of them pickle."""

from __future__ import annotations

import json
import linecache
from types import SimpleNamespace
from typing import Any

__all__ = ["CompileError", "DeviceError", "LaunchError", "LaunchTypeError", "SimulatorFault", "TileLangError"]


class TileLangError(Exception):
    """Base of all errors of tilelang."""


class CompileError(TileLangError):
    """A kernel cannot be compiled; says where, what was expected, what was found and a way out.

    Attributes: ``message``, ``file`` (str or None), ``line`` and ``col`` and ``end_col`` (from 1; 0 = unknown),
    ``hint`` (str or None), ``code`` (a short name of the kind of fault), ``diagnostics``: all entries of the
    compilation as tuples (severity, message, file, line, col, end_col, hint, code). ``str()`` holds the source line
    with a caret where the source can be read.
    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int = 0,
        col: int = 0,
        end_col: int = 0,
        hint: str | None = None,
        code: str = "",
        diagnostics: list[Any] | None = None,
    ) -> None:
        super().__init__(message, file, line, col, end_col, hint, code, diagnostics)
        self.message = message
        self.file = file
        self.line = line
        self.col = col
        self.end_col = end_col
        self.hint = hint
        self.code = code
        self.diagnostics = list(diagnostics or ())
        # The text is read now: a Jupyter cell or a file may have changed when the error is shown.
        self.source_line = linecache.getline(file, line).rstrip("\n") if file and line else ""

    def __str__(self) -> str:
        where = ""
        if self.file:
            where = self.file + (f":{self.line}" if self.line else "") + (f":{self.col}" if self.col else "") + ": "
        out = [where + self.message]
        if self.source_line:
            out.append("    " + self.source_line.expandtabs(1))
            if self.col:
                width = max(1, min(self.end_col, len(self.source_line) + 1) - self.col)
                out.append("    " + " " * (self.col - 1) + "^" * width)
        if self.hint:
            out.append("  hint: " + self.hint)
        return "\n".join(out)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, {"source_line": self.source_line}


class LaunchError(TileLangError, ValueError):
    """A call of a kernel does not fit: names the parameter, what the kernel wants and what it got. Nothing ran."""


class LaunchTypeError(LaunchError, TypeError):
    """A LaunchError about the type of an argument: no tensor, a wrong dtype, a missing or unknown argument."""


class DeviceError(TileLangError, RuntimeError):
    """The HIP runtime refused or failed, or there is no device to run on.

    Attributes: ``code`` (HIP's number, or None), ``name`` (``hipErrorOutOfMemory``, ... or None).
    """

    def __init__(self, message: str, code: int | None = None, name: str | None = None) -> None:
        super().__init__(message, code, name)
        self.message = message
        self.code = code
        self.name = name

    def __str__(self) -> str:
        return self.message


class SimulatorFault(DeviceError):
    """The simulator found a fault in a kernel.

    ``reports`` is a list of objects, one a fault, with attributes ``check``, ``message``, ``kernel``, ``workgroup``,
    ``wave``, ``lanes``, ``pc``, ``text``, ``address``, ``other_pc``, ``line``. ``code`` and ``name`` are the HIP error.
    Of a launch from :mod:`tilelang.sim`, ``stats`` are its statistics until it ended or was given up, ``trace`` is the
    record of a traced one, and ``more`` is a note where faults may have been left out.
    """

    stats: dict[str, Any] | None = None
    trace: Any = None
    more: str = ""

    def __init__(
        self,
        message: str,
        reports: list[Any] | None = None,
        code: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(message, code, name)
        self.reports = list(reports or ())
        self.args = (message, self.reports, code, name)

    @classmethod
    def from_report(cls, doing: str, report: str, code: int, name: str) -> SimulatorFault:
        """The exception for the simulator's own report, a JSON array of objects; ``doing`` says during what."""
        reports = [SimpleNamespace(**one) for one in json.loads(report)]
        lines = [f"{doing}: the simulator reports {len(reports)} fault{'s' if len(reports) != 1 else ''} ({name})"]
        for one in reports[:8]:
            lines.append(f"  {getattr(one, 'check', '?')}: {getattr(one, 'message', '')}")
        if len(reports) > 8:
            lines.append(f"  ... and {len(reports) - 8} more")
        return cls("\n".join(lines), reports, code, name)
