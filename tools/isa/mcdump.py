"""What LLVM's MC layer says of encodings: runs mcdump.cpp and reads its answers."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# gfx11 code names halves of registers (v0.l, v0.h); LLVM decodes all of that only with this feature.
FEATURES = {"gfx1100": "+real-true16", "gfx1201": "+real-true16"}


def hexbytes(x: int, nbytes: int) -> str:
    """Hex of the bytes of x, lowest first."""
    return x.to_bytes(max(nbytes, (x.bit_length() + 31) // 32 * 4), "little").hex()


def build_mcdump(out: Path) -> Path:
    """Compiles mcdump.cpp into `out` and returns the path of the program; raises CalledProcessError."""

    def cfg(*args: str) -> list[str]:
        return subprocess.run(["llvm-config-22", *args], check=True, capture_output=True, text=True).stdout.split()

    exe = out / "mcdump"
    src = ROOT / "tools/isa/mcdump.cpp"
    cmd = ["g++", "-std=c++17", "-O1", "-fno-rtti", *cfg("--cppflags"), str(src), "-o", str(exe)]
    subprocess.run([*cmd, *cfg("--ldflags"), "-lLLVM-22"], check=True)
    return exe


def run_mcdump(
    exe: Path, chip: str, lines: list[str], *, text_only: bool = False, features: str | None = None
) -> list[str]:
    """One answer line for each input line of hex; "CRASH" where LLVM died, "INVALID" where it refused."""
    answers: list[str] = []
    args = [str(exe), chip, "-t" if text_only else "-", FEATURES.get(chip, "") if features is None else features]
    while len(answers) < len(lines):
        todo = lines[len(answers) :]
        p = subprocess.run(args, input="\n".join(todo) + "\n", capture_output=True, text=True)
        got = p.stdout.splitlines()
        answers += got[: len(todo)]
        if len(got) < len(todo):
            answers.append("CRASH")
    return answers


@dataclass
class Opnd:
    """One MCInst operand: first register number and file, or an immediate."""

    kind: str
    val: str
    rc: str
    bits: int
    otype: int
    tied: int
    is_def: bool = False
    file: str = ""
    num: int = -1


@dataclass
class Answer:
    """A parsed line of mcdump."""

    llvm: str
    size: int
    text: str
    opnds: list[Opnd]
    uses: list[str]
    defs: list[str]

    @property
    def mnem(self) -> str:
        return self.text.split()[0]


SPECIAL = {"VCC": 106, "VCC_LO": 106, "VCC_HI": 107, "EXEC": 126, "EXEC_LO": 126, "M0": 124}


def parse(line: str) -> Answer | None:
    """None for INVALID or CRASH."""
    if line in ("INVALID", "CRASH"):
        return None
    f = line.split("\t")
    ops = []
    for i, o in enumerate(f[4].split()):
        kind, val, rc, bits, otype, tied = o.split(":")
        x = Opnd(kind, val, rc, int(bits), int(otype), int(tied), i < int(f[3]))
        if kind == "r":
            m = re.match(r"(VGPR|AGPR|SGPR|TTMP)(\d+)", val)
            if m:
                x.file, x.num = m[1], int(m[2])
            else:
                x.file = val
        ops.append(x)
    return Answer(f[0], int(f[1]), f[2].strip(), ops, f[5].split(), f[6].split())
