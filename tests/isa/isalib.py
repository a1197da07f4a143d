"""What the isa tests share: building the tools, the oracle's place, a corpus of encodings."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CDNA = ["gfx90a", "gfx942", "gfx950"]
RDNA = ["gfx1100", "gfx1201"]
ARCHS = CDNA + RDNA


def oracle() -> Path | None:
    """The folder of outside test data, or None."""
    base = Path(os.environ.get("TILELANG_SHARED", ROOT.parent / "shared"))
    return base / "oracle" if (base / "oracle").is_dir() else None


def load_generator():
    """tools/isa/gen_isa.py as a module."""
    spec = importlib.util.spec_from_file_location("gen_isa", ROOT / "tools/isa/gen_isa.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["gen_isa"] = module
    spec.loader.exec_module(module)
    return module


def have_llvm() -> bool:
    """Whether LLVM 22 and a C++ compiler are there to be asked."""
    return shutil.which("llvm-config-22") is not None and shutil.which("g++") is not None


def build_isadump(out: Path) -> Path:
    """Compiles the decoder and isadump, warnings as errors, into `out`."""
    exe = out / "isadump"
    sources = [*sorted((ROOT / "csrc/isa").glob("*.c")), ROOT / "csrc/base/base.c", ROOT / "csrc/tools/isadump.c"]
    cmd = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", f"-I{ROOT / 'csrc'}"]
    if os.environ.get("TILELANG_ISA_SANITIZE"):
        cmd += ["-fsanitize=address,undefined", "-fno-sanitize-recover"]
    subprocess.run([*cmd, *map(str, sources), "-o", str(exe)], check=True)
    return exe


def isadump(exe: Path, arch: str, lines: list[str], *args: str) -> list[str]:
    """One answer for each line of hex: "size<TAB>text" or "INVALID<TAB>why"."""
    p = subprocess.run([str(exe), arch, *args], input="\n".join(lines) + "\n", capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return p.stdout.splitlines()


def norm(text: str) -> str:
    """White space normalised."""
    return " ".join(text.split())


def text_section(path: Path) -> bytes:
    """The .text section of an ELF file."""
    b = path.read_bytes()
    shoff = struct.unpack_from("<Q", b, 0x28)[0]
    n, names = struct.unpack_from("<HH", b, 0x3C)
    sec = [struct.unpack_from("<IIQQQQIIQQ", b, shoff + 64 * i) for i in range(n)]
    for s in sec:
        if b[sec[names][4] + s[0] :].split(b"\0")[0] == b".text":
            return b[s[4] : s[4] + s[5]]
    raise ValueError(f"{path}: no .text")


# ---- corpus: random encodings of every opcode that has a row, fields drawn so that most are valid ------------------

HEADS = {
    "SOP1": (0xBE800000, 8, 0x7F00FF),
    "SOP2": (0x80000000, 23, 0x7FFFFF),
    "SOPK": (0xB0000000, 23, 0x7FFFFF),
    "SOPC": (0xBF000000, 16, 0xFFFF),
    "SOPP": (0xBF800000, 16, 0xFFFF),
    "SMEM": (0xC0000000, 18, 0x3FFFF),
    "VOP1": (0x7E000000, 9, 0x1FE01FF),
    "VOP2": (0, 25, 0x1FFFFFF),
    "VOPC": (0x7C000000, 17, 0x1FFFF),
    "VOP3": (0xD0000000, 16, 0xFFFF),
    "VOP3P": (0xD3800000, 16, 0xFFFF),
    "DS": (0xD8000000, 17, 0x201FFFF),
    "FLAT": (0xDC000000, 18, 0x203FFFF),
    "MUBUF": (0xE0000000, 18, 0x203FFFF),
    "MTBUF": (0xE8000000, 15, 0x3FF7FFF),
}
HEADS_GFX11 = {
    **HEADS,
    "SMEM": (0xF4000000, 18, 0x3FFFF),
    "VOP3": (0xD4000000, 16, 0xFFFF),
    "VOP3P": (0xCC000000, 16, 0xFFFF),
    "DS": (0xD8000000, 18, 0x3FFFF),
    "FLAT": (0xDC000000, 18, 0x3FFFF),
    "MUBUF": (0xE0000000, 18, 0x3FFFF),
    "VOPD": (0xC8000000, 0, 0x3FFFFFF),
    "LDSDIR": (0xCE000000, 20, 0xCFFFFF),
}
HEADS_GFX12 = {
    **HEADS_GFX11,
    "SMEM": (0xF4000000, 13, 0x1E01FFF),
    "DS": (0xD8000000, 18, 0x1FFFF),
    "FLAT": (0xEC000000, 14, 0x300007F),
    "MUBUF": (0xC4000000, 14, 0x40007F),
}
del HEADS_GFX12["MTBUF"]


def heads(arch: str) -> dict[str, tuple[int, int, int]]:
    """Family -> (first word, position of the opcode, free bits of the first word)."""
    return {"gfx1100": HEADS_GFX11, "gfx1201": HEADS_GFX12}.get(arch, HEADS)


LITERALS = [0, 1, 64, 65, 0xFFFFFFFF, 0xFFFFFFF0, 0x3F800000, 0x3E22F983, 0x3C00, 0x3118, 0x3FF00000, 0xFFFF]


def opcodes(arch: str) -> dict[str, list[int]]:
    """Opcodes with a row, by encoding family (GLOBAL and SCRATCH under FLAT)."""
    out: dict[str, set[int]] = {}
    for line in (ROOT / f"csrc/isa/isa_{arch}.def").read_text().splitlines():
        m = re.match(r"ISA_ROW\((\w+), (\d+)", line)
        if m and m[1] not in ("VOP3PX", "DUAL"):
            out.setdefault({"GLOBAL": "FLAT", "SCRATCH": "FLAT"}.get(m[1], m[1]), set()).add(int(m[2]))
    if arch in RDNA:
        out["LDSDIR"] = out.pop("LDSDIR")
        out["VOPD"] = {0}
    return {k: sorted(v) for k, v in out.items()}


def source_code(rnd: random.Random) -> int:
    """An 8-bit scalar source: registers, constants, literal."""
    return rnd.choice(
        [rnd.randrange(102), rnd.randrange(256), 255, 240 + rnd.randrange(9), 128 + rnd.randrange(81), 106, 126, 124]
    )


def encoding(rnd: random.Random, arch: str, fam: str, op: int) -> str:
    """Hex of 12 bytes that start with an encoding of this family and opcode."""
    base, shift, mask = heads(arch)[fam]
    rdna = arch in RDNA
    w0 = base | op << shift | rnd.getrandbits(32) & rnd.choice([0xFFFFFFFF, rnd.getrandbits(32)]) & mask
    w1 = rnd.getrandbits(32) & rnd.choice([0xFFFFFFFF, rnd.getrandbits(32)])
    literal = rnd.choice([rnd.getrandbits(32), rnd.choice(LITERALS)])
    k = rnd.random()
    if fam in ("VOP1", "VOP2", "VOPC"):
        if k < 0.25 and rdna:
            w0 = w0 & ~0x1FF | rnd.choice([233, 234])
        elif k < 0.25:
            w0, w1 = w0 & ~0x1FF | 249, w1 & ~0x40400000
        elif k < 0.5:
            ctrl = rnd.choice([rnd.randrange(256), 0x100 + rnd.randrange(0x70 if rdna else 0x60)])
            w0, w1 = w0 & ~0x1FF | 250, w1 & ~0x7FF00 | ctrl << 8 | (rdna and 1 << 18) & w1
        elif k < 0.6:
            w0, w1 = w0 & ~0x1FF | 255, literal
        elif k < 0.7:
            w0 = w0 & ~0x1FF | source_code(rnd)
    elif fam in ("SOP1", "SOP2", "SOPC"):
        w0, w1 = w0 & ~0xFF | source_code(rnd), literal
        if fam != "SOP1" and k < 0.5:
            w0 = w0 & ~0xFF00 | source_code(rnd) << 8
        if k < 0.7 and fam != "SOPC":
            w0 &= ~(1 << 16)
    elif fam in ("VOP3", "VOP3P"):
        src = [
            rnd.choice([256 + rnd.randrange(128) * 2, rnd.randrange(51) * 2, 128 + rnd.randrange(121), 106])
            for _ in range(3)
        ]
        if rdna and k > 0.7:
            src[0] = rnd.choice([250, 233, 255])
        w1 = src[0] | src[1] << 9 | src[2] << 18 | rnd.choice([0, 0, 1, 3, rnd.randrange(32)]) << 27
        if k < 0.5:
            w0 &= ~0xFF01
        if k < 0.3:
            w1 &= ~(0x1FF << 18)
    elif fam == "DS":
        gds = 0x20000 if arch == "gfx1100" else 0x10000
        w0 = w0 & ~gds if k < 0.9 or arch == "gfx1201" else w0 | gds
        w1 &= rnd.choice([0xFFFFFFFF, 0xFEFEFEFF, 0xFE0000FF, 0xFEFFFF, 0xFEFF, 0xFF, 0xFE00FEFF])
        w1 = 0 if k >= 0.97 else w1
    elif fam == "FLAT" and arch == "gfx1201":
        w0 = w0 & ~0x7F | rnd.choice([124, 124, 2 * rnd.randrange(53)])
        w1 &= 0x7FFE00FF
    elif fam == "FLAT" and rdna:
        w1 = w1 & ~0x7F0000 | rnd.choice([0x7C, 0x7C, 2 * rnd.randrange(53)]) << 16
        w1 &= rnd.choice([0xFFFFFFFF, 0xFFFF00FF, 0x00FFFFFF])
    elif fam == "FLAT":
        w1 = w1 | 0x7F0000 if k < 0.4 else w1 & ~0x10000
        w1 &= rnd.choice([0xFFFFFFFF, 0xFE7FFEFE, 0xFE7F00FE, 0x7FFEFE])
    elif fam in ("MUBUF", "MTBUF"):
        w1 &= rnd.choice([0xFFFFFFFF, 0xFF1FFEFE])
    elif fam == "SMEM" and k < 0.8:
        w0 &= ~0x43
    elif fam == "LDSDIR" and k < 0.8:
        w0 &= ~0x40FF00 if arch == "gfx1201" else ~0xC0FF00
    elif fam == "VOPD":
        w1 &= rnd.choice([0xFFFFFFFF, 0xFFFE01FF])
    return ((w0 & 0xFFFFFFFF) | (w1 & 0xFFFFFFFF) << 32 | rnd.getrandbits(32) << 64).to_bytes(12, "little").hex()


# Reasons for which our decoder refuses what LLVM prints: encodings that the ISA does not define.
STRICTER = (
    "a scalar register tuple",  # odd pair, unaligned quad, past the last register: LLVM rounds or wraps
    "a vector register tuple",
    "must be a scalar",
    "reserved scalar register code",
    "reserved dst_unused",
    "GDS",
    "does not take",  # modifier bits that LLVM drops
    "the operand must be a vector register",
    "takes no literal",
    "exec and null are no address",
    "cache control takes no address",
    "reserved bit of the DPP word",
)


def check(exe: Path, path: Path) -> list[str]:
    """Output lines of `isadump --check` for every function of a code object."""
    p = subprocess.run([str(exe), "--check", str(path)], capture_output=True, text=True)
    assert p.returncode in (0, 3), f"{path.name}: {p.stderr}"
    return p.stdout.splitlines()


def faults(lines: list[str]) -> list[str]:
    """The reports among the lines of `check`."""
    return [line for line in lines if line.split(":")[0] in ("wait", "barrier", "hazard")]
