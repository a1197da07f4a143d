"""Cases of vector instructions of gfx11 and gfx12: operand rows and the result that must come of them, free of any
encoding, and their way into every encoding, lane move and wave size.

A case holds what an operation computes lane by lane. `emit` writes it as an instruction with registers of our own; for
a lane move (DPP) the rows of the first source are laid out so that the move brings each value to its lane.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from isa_ref import encode, hexrow
from test_sim_vectors import same

N = 32
M32 = 0xFFFFFFFF
DST, SRC, LITERAL = 4, (8, 12, 16), re.compile(r"(0x[0-9a-f]+|-?\d+(\.\d+)?)$")


@dataclass
class Case:
    """One operation on 32 lanes; rows are uint32 arrays, registers of a tuple in order."""

    op: str
    src: list[list[np.ndarray]]  # operand -> registers
    dst: list[np.ndarray] | None  # expected registers, None: a lane mask is all there is
    old: list[np.ndarray]
    valid: int  # lanes that are compared
    half: tuple[bool, ...] | None = None  # 16-bit operands (destination first), None: not known
    literal: tuple[int, str] | None = None  # position among the sources, text
    cin: int | None = None  # carry in, select
    mask: int | None = None  # carry out, comparison
    mask_ignored: bool = False
    cmp: list[dict[str, Any] | None] = field(default_factory=list)
    name: str = ""

    @property
    def cmpx(self) -> bool:
        return self.op.startswith("v_cmpx")


# ---- from the outside vectors -------------------------------------------------------------------------------

MODIFIED = re.compile(r"\||-v|-s|clamp|mul:|div:|op_sel|neg_|row_|quad_|dpp8|byte_sel| ::")
SPECIAL = re.compile(r"v_(swap|readlane|writelane|readfirst|permlane|movrel|accvgpr|mfma|smfmac|wmma|swmmac|s_|nop)")
MASK_LAST = re.compile(r"v_(addc|subb|subbrev)_co|_co_ci_|v_cndmask")
CARRY_OUT = re.compile(r"_co_|v_div_scale|v_mad_[ui]64")
READS_OLD = re.compile(r"v_(fmac|dot\dc|dot2acc|pk_fmac)_")


def rows_of(value: str) -> np.ndarray:
    return np.array([int(value[i : i + 8], 16) for i in range(0, len(value), 8)], np.uint32)


def base(text: str) -> str:
    return re.sub(r"_(e32|e64|e64_dpp|dpp|sdwa)$", "", text.split()[0])


def rot16(x: np.ndarray) -> np.ndarray:
    return (x >> np.uint32(16)) | (x << np.uint32(16))


def case_of(v: dict[str, Any]) -> Case | None:
    """A case of a vector, or None when it uses what cases do not hold (modifiers, constants)."""
    text, op = v["text"], base(v["text"])
    if MODIFIED.search(text) or SPECIAL.match(op) or v.get("mode") or not op.startswith("v_"):
        return None
    ops = [t.strip() for t in text.split(None, 1)[1].split(", ")] if " " in text else []
    state, out, cmps, part = v["in"], v["out"], v.get("cmp", {}), slice(0, N)
    exec_ = int(state["exec"], 16) & M32

    def scalar(tok: str) -> int | None:
        m = re.fullmatch(r"s\[?(\d+)(:\d+\])?", tok)
        if m:
            return int(state["s"][m[1]], 16)
        return int(state["vcc"], 16) & M32 if tok in ("vcc", "vcc_lo") else None

    mask = cin = None
    ignored = False
    if op.startswith("v_cmp") and not op.startswith("v_cmpx"):
        tok = ops.pop(0)
        m = re.fullmatch(r"s\[?(\d+)(:\d+\])?", tok)
        mask = int(out["s"][m[1]] if m else out["vcc"], 16) & M32
        if m and cmps.get("s" + m[1], {}).get("type") == "ignore":
            return None
    elif op.startswith("v_cmpx"):
        mask = int(out["exec"], 16) & M32
    dsts: list[tuple[int, int, bool]] = []

    def vector(tok: str) -> tuple[int, int, str] | None:
        m = re.fullmatch(r"v(\d+)(\.[lh])?|v\[(\d+):(\d+)\]", tok)
        if not m:
            return None
        return (int(m[1]), 1, m[2] or "") if m[1] else (int(m[3]), int(m[4]) - int(m[3]) + 1, "")

    half: list[bool] = []
    dst = old = None
    compare: list[dict[str, Any] | None] = []
    if mask is None:
        d = vector(ops.pop(0))
        if d is None:
            return None
        reg, n, suffix = d
        dsts.append((reg, n, suffix == ".h"))
        half.append(bool(suffix))
        old = [rows_of(state["v"][str(reg + k)])[part] for k in range(n)]
        dst = [rows_of(out["v"].get(str(reg + k), state["v"][str(reg + k)]))[part] for k in range(n)]
        compare = [cmps.get(f"v{reg + k}") for k in range(n)]
        if n == 2 and compare[0] and compare[0].get("type") == "2xf32":
            compare[1] = compare[0]
        if suffix == ".h":
            old, dst = [rot16(old[0])], [rot16(dst[0])]
            compare = [{**c, "shift": 0} if c and c.get("shift") else c for c in compare]
        if CARRY_OUT.search(op):
            tok = ops.pop(0)
            m = re.fullmatch(r"s\[?(\d+)(:\d+\])?", tok)
            key, have = (f"s{m[1]}", out["s"].get(m[1])) if m else ("vcc", out["vcc"])
            ignored = have is None or cmps.get(key, {}).get("type") == "ignore"
            mask = 0 if have is None else int(have, 16) & M32
    if MASK_LAST.search(op):
        cin = scalar(ops.pop())
        if cin is None:
            return None
    if op.startswith("v_div_fmas"):
        cin = int(state["vcc"], 16) & M32
    src, literal = [], None
    for tok in ops:
        d = vector(tok)
        if d:
            reg, n, suffix = d
            rows = [rows_of(state["v"][str(reg + k)])[part] for k in range(n)]
            src.append([rows[0] >> np.uint32(16)] if suffix == ".h" else rows)
            half.append(bool(suffix))
            continue
        m = re.fullmatch(r"s(\d+)", tok)
        if m:
            src.append([np.full(N, int(state["s"][m[1]], 16), np.uint32)])
            half.append(False)
        elif re.match(r"v_(fma|mad)[am]k_", op) and LITERAL.match(tok):
            literal = (len(src), tok)
        else:
            return None
    scalars = any(re.fullmatch(r"s\d+", t) for t in ops)
    known = v["arch"] == "gfx1100" and not scalars and not op.startswith("v_fma_mix")
    return Case(op, src, dst, old or [], exec_, tuple(half) if known else None, literal, cin, mask, ignored,
                compare, v["id"])  # fmt: skip


# ---- into an encoding ---------------------------------------------------------------------------------------


def quad(*p: int) -> tuple[str, list[int]]:
    return f"quad_perm:[{','.join(map(str, p))}]", [(i & ~3) + p[i & 3] for i in range(16)]


MOVES = [
    quad(1, 0, 3, 2), quad(2, 3, 1, 0), quad(3, 0, 1, 2),
    ("row_mirror", [15 - i for i in range(16)]),
    ("row_half_mirror", [(i & 8) + 7 - (i & 7) for i in range(16)]),
    *((f"row_ror:{n}", [(i - n) & 15 for i in range(16)]) for n in range(1, 16)),
    *((f"row_xmask:{n}", [i ^ n for i in range(16)]) for n in range(1, 16)),
]  # fmt: skip
"""Lane moves that lose no lane: text and, for each lane of a row, the lane it reads."""
MOVES8 = [
    (f"dpp8:[{','.join(map(str, p))}]", [(i & 8) + p[i & 7] for i in range(16)])
    for p in ((1, 0, 3, 2, 5, 4, 7, 6), (7, 6, 5, 4, 3, 2, 1, 0), (3, 1, 4, 0, 5, 7, 2, 6), (1, 2, 3, 4, 5, 6, 7, 0))
]
FORMS = ("e32", "e64", "plain", "dpp", "dpp8", "e64_dpp", "e64_dpp8")


def moved(rows: list[np.ndarray], reads: list[int]) -> list[np.ndarray]:
    """Rows such that a lane that reads lane reads[l] gets its own old value."""
    n = len(rows[0])
    out = [np.zeros_like(r) for r in rows]
    for r, o in zip(rows, out, strict=True):
        for lane in range(n):
            o[(lane & ~15) + reads[lane & 15]] = r[lane]
    return out


def reg(first: int, n: int, low: bool = False) -> str:
    return f"v[{first}:{first + n - 1}]" if n > 1 else f"v{first}" + (".l" if low else "")


def texts(c: Case, arch: str, wave: int, form: str, move: str) -> list[str]:
    """What the assembler may call the case in this form (which operands are halves); the first that it takes counts."""
    w2 = wave == 64
    short = form in ("e32", "dpp", "dpp8")
    vcc = "vcc" if w2 else "vcc_lo"
    out_mask, in_mask = (vcc, vcc) if short else ("s[20:21]", "s[22:23]") if w2 else ("s20", "s22")
    name = c.op if form == "plain" else f"{c.op}_{form.removesuffix('8')}"
    names = [name, c.op] if form in ("dpp", "dpp8") else [name]
    slots = (1 if c.dst is not None else 0) + len(c.src)
    lows: Any
    if c.half is not None:
        lows = [c.half]
    elif "16" in c.op or "fp8" in c.op or "bf8" in c.op:
        lows = list(itertools.product((False, True), repeat=slots))
    else:
        lows = [(False,) * slots]
    out = []
    for low, n in itertools.product(lows, names):
        ops, bits = [], list(low)
        if c.dst is not None:
            ops.append(reg(DST, len(c.dst), bits.pop(0)))
        if c.mask is not None and not c.cmpx:
            ops.append(out_mask)
        rest = [reg(SRC[i], len(r), bits[i]) for i, r in enumerate(c.src)]
        if c.literal:
            rest.insert(c.literal[0], c.literal[1])
        ops += rest
        if c.cin is not None and not c.op.startswith("v_div_fmas"):
            ops.append(in_mask)
        out.append(f"{n} {', '.join(ops)} {move}".strip())
    return out


def assemble(arch: str, wave: int, lines: list[str]) -> list[bytes | None]:
    """Machine code of each line, None where the chip has no such instruction."""
    halves = any(re.search(r"v\d+\.[lh]", t) for t in lines)  # as gfx1100 has it anyway
    return encode(arch, lines, wave, ("+real-true16",) if halves else ())


def join(a: Case, b: Case) -> Case:
    """Both cases side by side, in the lower and upper half of a wave of 64 lanes."""
    if a.op.startswith("v_mbcnt"):  # counts below the lane's own number
        ones = np.array([bin(int(x)).count("1") for x in b.src[0][0]], np.uint32)
        want = b.src[1][0] + ones if "_lo_" in a.op else b.dst[0]  # type: ignore[index]
        if "_hi_" in a.op:
            bits = [int(x) & ((1 << i) - 1) for i, x in enumerate(b.src[0][0])]
            want = b.src[1][0] + np.array([bin(x).count("1") for x in bits], np.uint32)
        b = replace(b, dst=[want])
    cat = [[np.concatenate(p) for p in zip(x, y, strict=True)] for x, y in zip(a.src, b.src, strict=True)]
    return replace(
        a,
        src=cat,
        dst=a.dst and [np.concatenate(p) for p in zip(a.dst, b.dst or [], strict=True)],
        old=[np.concatenate(p) for p in zip(a.old, b.old, strict=True)],
        valid=a.valid | b.valid << N,
        cin=None if a.cin is None else a.cin | (b.cin or 0) << N,
        mask=None if a.mask is None else a.mask | (b.mask or 0) << N,
        mask_ignored=a.mask_ignored or b.mask_ignored,
        cmp=[x or y for x, y in zip(a.cmp, b.cmp, strict=True)],
        name=f"{a.name}+{b.name}",
    )


def put_mask(state: dict[str, Any], where: str, value: int, wave: int) -> None:
    if where == "vcc":
        state["vcc"] = f"{value:0{wave // 4}x}"
        return
    state["s"][where] = f"{value & M32:08x}"
    if wave == 64:
        state["s"][str(int(where) + 1)] = f"{value >> 32:08x}"


def get_mask(out: dict[str, Any], where: str, wave: int) -> int:
    if where in ("vcc", "exec"):
        return int(out[where], 16)
    return int(out["s"][where], 16) | (int(out["s"][str(int(where) + 1)], 16) << 32 if wave == 64 else 0)


def start(c: Case, wave: int, form: str, reads: list[int] | None) -> dict[str, Any]:
    """The state before the instruction."""
    short = form in ("e32", "dpp", "dpp8")
    full = (1 << wave) - 1
    state: dict[str, Any] = {
        "wave": wave, "exec": f"{full if reads else c.valid:0{wave // 4}x}", "vcc": "0", "s": {}, "v": {}
    }  # fmt: skip
    for first, rows in [(DST, c.old), *zip(SRC, c.src, strict=False)]:
        for k, r in enumerate(moved(rows, reads) if reads and first == SRC[0] else rows):
            state["v"][str(first + k)] = hexrow(r)
    if c.mask is not None and not c.cmpx:
        put_mask(state, "vcc" if short else "20", 0, wave)
    if c.cin is not None:
        put_mask(state, "vcc" if short or c.op.startswith("v_div_fmas") else "22", c.cin, wave)
    return state


def wrong(c: Case, wave: int, form: str, reads: list[int] | None, out: dict[str, Any]) -> str | None:
    """None when the state after the instruction is right, else what is not."""
    lanes = np.array([c.valid >> i & 1 for i in range(wave)], bool)
    if c.mask is not None and not c.mask_ignored:
        where = "exec" if c.cmpx else "vcc" if form in ("e32", "dpp", "dpp8") else "20"
        got = get_mask(out, where, wave) & c.valid
        if got != c.mask & c.valid:
            return f"mask {got:x}, not {c.mask & c.valid:x}"
    got = [rows_of(out["v"][str(DST + k)]) for k in range(len(c.dst or []))]
    for k, (g, want) in enumerate(zip(got, c.dst or [], strict=True)):
        cmp = c.cmp[k] if k < len(c.cmp) else None
        if k and c.cmp[0] and c.cmp[0].get("type") == "f64":
            break
        high = (got[1], c.dst[1]) if cmp and cmp.get("type") == "f64" else None  # type: ignore[index]
        ok = same(g, want, cmp, high) | ~lanes
        if not reads:
            ok &= lanes | (g == c.old[k])
        if not ok.all():
            i = int(np.flatnonzero(~ok)[0])
            return f"register {k} lane {i} is {int(g[i]):08x}, not {int(want[i]):08x}"
    return None
