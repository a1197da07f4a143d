"""IR texts through passes, and counts of what came out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ir"))

import irlib

HERE = Path(__file__).parent
INPUTS = sorted((HERE / "inputs").glob("*.tir"))


def text_of(name: str) -> str:
    """An input by its name."""
    return (HERE / "inputs" / f"{name}.tir").read_text()


def accepted(text: str, passes: str | None) -> str:
    """The text after the passes (None: the whole pipeline); fails with the diagnostics."""
    return irlib.good(text, passes)


def refused(text: str, passes: str | None = None) -> str:
    """The diagnostics of a text that the passes must refuse."""
    status, out = irlib.run(text, passes)
    assert status == irlib.FAILED, f"accepted:\n{out}"
    return out


class Body:
    """Lines of a text, or of one region in it."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def count(self, pattern: str) -> int:
        """Lines that the pattern is found in."""
        return sum(1 for x in self.lines if re.search(pattern, x))

    def loops(self) -> list[Body]:
        """Bodies of the loops, outer ones first."""
        return self.regions(r"= for |^\s*for ")

    def regions(self, head: str) -> list[Body]:
        """What stands inside of the operations that the pattern is found in, up to the operation's own end."""
        out = []
        for i, x in enumerate(self.lines):
            if re.search(head, x) and x.rstrip().endswith("{"):
                pad = len(x) - len(x.lstrip())
                end = next(
                    j
                    for j in range(i + 1, len(self.lines))
                    if len(self.lines[j]) - len(self.lines[j].lstrip()) == pad
                    and self.lines[j].lstrip().startswith("}")
                    and not self.lines[j].rstrip().endswith("{")
                )
                out.append(Body(self.lines[i + 1 : end]))
        return out

    def index(self, pattern: str) -> int:
        return next(i for i, x in enumerate(self.lines) if re.search(pattern, x))


def lowered(text: str) -> Body:
    """After the whole pipeline."""
    return Body(accepted(text, None).splitlines())


def attribute(body: Body, name: str) -> str:
    """A kernel attribute of the first line, as text."""
    m = re.search(rf"\b{name} = (\[[^\]]*\]|\"[^\"]*\"|[^,}}]+)", body.lines[0])
    assert m, body.lines[0]
    return m.group(1)
