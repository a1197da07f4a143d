"""Sequences of machine instructions through passes of LLVM's code generator (llc-22)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable

LLC = shutil.which("llc-22")


def regs(first: int, n: int) -> str:
    """A tuple of vector registers."""
    return "$" + "_".join(f"vgpr{first + i}" for i in range(n))


def nops(states: int) -> list[str]:
    """As many wait states of gfx9."""
    return [f"s_nop {min(16, states - i) - 1}" for i in range(0, states, 16)]


def module(bodies: Iterable[Iterable[str]]) -> str:
    """A function f0, f1, ... for each sequence."""
    bodies = list(bodies)
    mir = "--- |\n" + "".join(f"  define amdgpu_kernel void @f{i}() {{ ret void }}\n" for i in range(len(bodies)))
    mir += "...\n"
    for i, lines in enumerate(bodies):
        body = "".join(f"    {line}\n" for line in lines)
        mir += f"---\nname: f{i}\nbody: |\n  bb.0:\n{body}    S_ENDPGM 0\n...\n"
    return mir


def llc(arch: str, mir: str, *args: str) -> str:
    cmd = [LLC, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-x=mir", *args, "-o", "-"]
    return subprocess.run(cmd, input=mir, capture_output=True, text=True, check=True).stdout


def functions(mir: str) -> list[str]:
    """The functions of a module, in order."""
    return re.split(r"^name: +", mir, flags=re.M)[1:]


def assembly(text: str, i: int) -> list[str]:
    """The instructions of function i, without its end, in llc's assembly."""
    body = text.split(f"\nf{i}:", 1)[1].split("s_endpgm", 1)[0].split("\n")
    lines = [t.split(";")[0].strip() for t in body]
    return [t for t in lines if t and not t.startswith(".")]
