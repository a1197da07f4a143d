"""WMMA and SWMMAC of gfx1100 and gfx1201 against the published lane maps; modifiers and waves of 64 lanes.

Waves of 64 lanes: the calculator's formulas for gfx11 (A and B in each 16 lanes, D row 4 * r + lane / 16); on gfx12
lanes 32..63 hold the upper half of the registers of a wave of 32, as Mesa's compiler lays its matrices out."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

ARCHS = ("gfx1100", "gfx1201")
MC = shutil.which("llvm-mc-22") or shutil.which("llvm-mc")
A, B, C, D, IDX = 0, 32, 96, 128, 80  # first registers
if not (simlib.SHARED / "oracle/lanemap").is_dir():
    pytest.skip("the outside test data is not there", allow_module_level=True)
if MC is None:
    pytest.skip("no llvm-mc to encode instructions", allow_module_level=True)


def assemble(text: str, arch: str, wave: int = 32) -> bytes:
    args = [MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", f"-mattr=+wavefrontsize{wave}", "-show-encoding"]
    run = subprocess.run(args, input=text, check=False, capture_output=True, text=True)
    found = re.findall(r"encoding: \[([^\]]*)\]", run.stdout)
    assert run.returncode == 0 and found, run.stderr
    return b"".join(bytes(int(x, 16) for x in f.split(",")) for f in found)


MAPS = {(arch, op): rows for arch in ARCHS for op, rows in simlib.lanemaps(arch).items()}
FLOATS = {"fp8": (0x38, 0x40, 0x80), "bf8": (0x3C, 0x40, 0x80)}  # 1.0, 2.0, sign


def encode(value: int, kind: str) -> int:
    """Bits of a small integer in the element type."""
    if kind in ("f32", "bf16"):
        return int(np.float32(value).view(np.uint32)) >> (16 if kind == "bf16" else 0)
    if kind == "f16":
        return int(np.float16(value).view(np.uint16))
    if kind in FLOATS:
        one, two, sign = FLOATS[kind]
        return (sign if value < 0 else 0) | (0, one, two)[abs(value)]
    return value & {"iu8": 0xFF, "iu4": 0xF, "i32": 0xFFFFFFFF}[kind]


def kinds(op: str) -> tuple[str, str, str]:
    """Element types of A, B and D."""
    found = re.fullmatch(r"v_(?:wmma|swmmac)_([a-z0-9]+)_16x16x\d+_([a-z0-9]+)(?:_([a-z0-9]+))?", op)
    assert found, op
    return found[2], found[3] or found[2], found[1]


def number(rows: list[dict[str, str]], key: str) -> int:
    return max(int(r[key]) for r in rows if r[key]) + 1


def place(arch: str, what: str, row: dict[str, str], regs: int, wave: int) -> tuple[int, int, int]:
    """(register, lane, bit) of a row of the map (a wave of 32 lanes) in a wave of `wave` lanes."""
    reg, lane, bit = int(row["register"]), int(row["lane"]), int(row["bit"])
    if wave == 32:
        return reg, lane, bit
    if arch == "gfx1100":
        if what in "AB":
            return reg, lane, bit
        return int(row["i"]) // 4, 16 * (int(row["i"]) % 4) + int(row["j"]), bit
    if regs == 1:
        return reg, lane, bit
    return reg % (regs // 2), lane + 32 * (reg // (regs // 2)), bit


class Case:
    """One instruction with its matrices in registers."""

    def __init__(self, arch: str, op: str, wave: int, seed: int, key: int = 0) -> None:
        self.arch, self.op, self.wave, self.key = arch, op, wave, key
        self.maps, self.kinds = MAPS[arch, op], kinds(op)
        self.sparse = op.startswith("v_swmmac")
        self.v = np.zeros((160, wave), np.uint32)
        rng = np.random.default_rng(seed)
        kdim = number(self.maps["B"], "k")
        self.a = rng.integers(-2, 3, (16, number(self.maps["A"], "k")))
        self.b = rng.integers(-2, 3, (kdim, 16))
        self.c = rng.integers(-8, 9, (16, 16))
        self.dense = self.a
        if self.sparse:
            self.pos = np.array(
                [[sorted(rng.choice(4, 2, replace=False)) for _ in range(kdim // 4)] for _ in range(16)]
            )
            self.dense = np.zeros((16, kdim), np.int64)
            for i in range(16):
                for g in range(kdim // 4):
                    for s in range(2):
                        self.dense[i, 4 * g + self.pos[i, g, s]] = self.a[i, 2 * g + s]
        self.fill()

    def regs(self, what: str) -> int:
        n = number(self.maps[what], "register")
        if self.wave == 32 or n == 1 or (self.arch == "gfx1100" and what in "AB"):
            return n
        return n // 2

    def put(self, what: str, first: int, row: dict[str, str], bits: int) -> None:
        n = number(self.maps[what], "register")
        reg, lane, bit = place(self.arch, what, row, n, self.wave)
        copies = range(lane % 16, self.wave, 16) if self.arch == "gfx1100" and what in "AB" else (lane,)
        for at in copies:
            self.v[first + reg, at] |= np.uint32((bits << bit) & 0xFFFFFFFF) if at == lane or self.wave == 64 else 0

    def fill(self) -> None:
        ka, kb, kd = self.kinds
        for what, first, values, kind, keys in (
            ("A", A, self.a, ka, "ik"),
            ("B", B, self.b, kb, "kj"),
            ("C", C, self.c, kd, "ij"),
        ):
            for r in self.maps[what]:
                x, y = (int(r[k]) for k in keys)
                self.put(what, first, r, encode(int(values[x, y]), kind))
        if not self.sparse:
            return
        per = number(self.maps["I"], "bit") + 1  # index bits of a lane
        aregs = number(self.maps["A"], "register")
        split = self.wave == 64 and aregs > 1
        for r in self.maps["I"]:
            k, lane, bit = int(r["k"]), int(r["lane"]), int(r["bit"])
            if split:
                lane, bit = lane + 32 * (bit // (per // 2)), bit % (per // 2)
            bit += self.key * (per // 2 if split else per)
            self.v[IDX, lane] |= np.uint32(int(self.pos[int(r["i"]), k // 2, k % 2]) << bit)

    def span(self, first: int, what: str) -> str:
        n = self.regs(what)
        return f"v[{first}:{first + n - 1}]" if n > 1 else f"v{first}"

    def text(self, mods: str = "") -> str:
        dst, c = (C, f"v{IDX}") if self.sparse else (D, self.span(C, "C"))
        key = f" index_key:{self.key}" if self.key else ""
        return f"{self.op} {self.span(dst, 'D')}, {self.span(A, 'A')}, {self.span(B, 'B')}, {c}{key}{mods}\n"

    def run(self, mods: str = "", mfma: str = "default") -> np.ndarray:
        """D's elements as bits (16, 16)."""
        v = {str(i): "".join(f"{int(x):08x}" for x in row) for i, row in enumerate(self.v) if row.any()}
        state = {"wave": self.wave, "exec": "0" * (self.wave // 4), "v": v}  # EXEC is ignored
        out = sim.execute(self.arch, assemble(self.text(mods), self.arch, self.wave), state, mfma=mfma)
        got = np.full((16, 16), 0xBAD0BAD0, np.uint32)
        first = C if self.sparse else D
        n = number(self.maps["D"], "register")
        for r in self.maps["D"]:
            reg, lane, bit = place(self.arch, "D", r, n, self.wave)
            row = out["v"].get(str(first + reg), "0" * 8 * self.wave)
            word = int(row[8 * lane : 8 * lane + 8], 16)
            got[int(r["i"]), int(r["j"])] = word >> bit & ((1 << int(r["bits"])) - 1)
        return got

    def want(self) -> np.ndarray:
        return self.c + self.dense.astype(np.int64) @ self.b

    def bits(self, values: np.ndarray) -> np.ndarray:
        return np.array([[encode(int(x), self.kinds[2]) for x in row] for row in values], np.uint32)


SIGNED = " neg_lo:[1,1,0]"


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize(("arch", "op"), sorted(MAPS))
def test_lanemap(arch, op, wave):
    case = Case(arch, op, wave, sum(map(ord, op)))
    got = case.run(SIGNED if "_iu" in op else "")
    assert (got == case.bits(case.want())).all(), f"{op}, {wave} lanes, seed {sum(map(ord, op))}"


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("op", sorted({op for _, op in MAPS if op.startswith("v_swmmac")}))
def test_index_sets(op, wave):
    """Each set of the index register."""
    case = Case("gfx1201", op, wave, 5)
    per = number(case.maps["I"], "bit") + 1
    if wave == 64 and number(case.maps["A"], "register") > 1:
        per //= 2
    for key in range(1, 32 // per):
        case = Case("gfx1201", op, wave, 5 + key, key)
        assert (case.run(SIGNED if "_iu" in op else "") == case.bits(case.want())).all(), f"index_key {key}"


@pytest.mark.parametrize("signs", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("arch", "op"), sorted(k for k in MAPS if "_iu" in k[1]))
def test_signs_and_clamp(arch, op, signs):
    """neg_lo: signed A, signed B; clamp saturates the sum, without it wraps."""
    case = Case(arch, op, 32, 11)
    bits = 8 if "iu8" in op else 4
    a, b = (x if s else x & ((1 << bits) - 1) for x, s in zip((case.dense, case.b), signs, strict=True))
    if case.sparse:
        a = np.where(case.dense == 0, 0, a)
    exact = case.c + a.astype(np.int64) @ b
    for offset, clamp in ((0, False), (0, True), (0x7FFFFFF0, False), (0x7FFFFFF0, True), (-0x7FFFFFF0, True)):
        case.v[C : C + 8] = 0
        for r in case.maps["C"]:
            case.put("C", C, r, (int(case.c[int(r["i"]), int(r["j"])]) + offset) & 0xFFFFFFFF)
        start = (case.c + offset).astype(np.uint64).astype(np.uint32).view(np.int32).astype(np.int64)
        want = exact - case.c + start
        want = np.clip(want, -(2**31), 2**31 - 1) if clamp else want
        neg = f" neg_lo:[{signs[0]},{signs[1]},0]" if any(signs) else ""
        got = case.run(neg + (" clamp" if clamp else ""))
        assert (got == (want & 0xFFFFFFFF).astype(np.uint32)).all(), f"C + {offset}, clamp {clamp}"


@pytest.mark.parametrize(("arch", "op"), sorted(k for k in MAPS if k[1].endswith("f16")))
def test_negation(arch, op):
    """neg_lo, neg_hi: even and odd k of A and B; of C: negation and absolute value."""
    case = Case(arch, op, 32, 23)
    for lo, hi in (
        ((1, 0, 0), (0, 0, 0)),
        ((0, 1, 0), (1, 0, 0)),
        ((1, 1, 1), (0, 1, 0)),
        ((0, 0, 1), (1, 1, 1)),
        ((0, 0, 0), (0, 0, 1)),
    ):
        if case.sparse and (lo[2] or hi[2]):
            continue
        dense, k = case.dense.copy(), np.arange(case.b.shape[0])
        for q in range(case.a.shape[1]):  # by the place of a stored element
            sign = -1 if (hi if q % 2 else lo)[0] else 1
            cols = 4 * (q // 2) + case.pos[:, q // 2, q % 2] if case.sparse else np.full(16, q)
            dense[np.arange(16), cols] *= sign
        c = np.abs(case.c) if hi[2] else case.c
        b = case.b * np.where(k % 2, -1 if hi[1] else 1, -1 if lo[1] else 1)[:, None]
        want = (-c if lo[2] else c) + dense @ b
        mods = f" neg_lo:[{','.join(map(str, lo))}] neg_hi:[{','.join(map(str, hi))}]"
        assert (case.run(mods) == case.bits(want)).all(), mods


@pytest.mark.parametrize("op", ["v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"])
def test_halves_of_gfx11(op):
    """op_sel[2] picks the half of C and D; the other half of D stays."""
    case = Case("gfx1100", op, 32, 31)
    low = case.v[C : C + 8].copy()
    case.v[C : C + 8] = low << 16 | 0x1234
    case.v[D : D + 8] = 0xABCD5678
    v = {str(i): "".join(f"{int(x):08x}" for x in row) for i, row in enumerate(case.v) if row.any()}
    out = sim.execute("gfx1100", assemble(case.text(" op_sel:[0,0,1]"), "gfx1100"), {"wave": 32, "v": v})
    want = case.bits(case.want())
    for r in case.maps["D"]:
        word = int(out["v"][str(D + int(r["register"]))][8 * int(r["lane"]) : 8 * int(r["lane"]) + 8], 16)
        assert word == int(want[int(r["i"]), int(r["j"])]) << 16 | 0x5678


@pytest.mark.parametrize("arch", ARCHS)
def test_constant_c(arch):
    for op, text, value in (
        ("v_wmma_f32_16x16x16_f16", "1.0", 1),
        ("v_wmma_f16_16x16x16_f16", "-4.0", -4),
        ("v_wmma_bf16_16x16x16_bf16", "2.0", 2),
        ("v_wmma_i32_16x16x16_iu8", "-7", -7),
    ):
        case = Case(arch, op, 32, 3)
        case.c[:] = value
        case.v[C : C + 8] = 0
        plain = case.text
        case.text = lambda mods="", plain=plain, text=text: re.sub(r"v\[96:\d+\]", text, plain(mods))
        assert (case.run(SIGNED if "_iu" in op else "") == case.bits(case.want())).all(), f"{op} {text}"


def narrow(x: float, kind: str) -> float:
    """Rounds to nearest even in the type; x is exact."""
    if kind == "f16":
        return float(np.float16(x))
    bits = int(np.float32(x).view(np.uint32))
    return float(np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32))


@pytest.mark.parametrize(("arch", "op"), sorted(k for k in MAPS if kinds(k[1])[2] in ("f16", "bf16")))
def test_narrow_rounding(arch, op):
    """16-bit results are rounded at each step, k ascending."""
    case = Case(arch, op, 32, 47)
    kind = kinds(op)[2]
    rng = np.random.default_rng(47)
    dtype = (lambda x: float(np.float16(x))) if kind == "f16" else (lambda x: narrow(x, "bf16"))
    fields = {"A": (A, "ik"), "B": (B, "kj"), "C": (C, "ij")}
    mats = {}
    for what, (first, keys) in fields.items():
        shape = tuple(number(case.maps[what], k) for k in keys)
        mats[what] = np.vectorize(dtype)(rng.standard_normal(shape) * (40 if what == "C" else 1))
        case.v[first : first + 16] = 0
        for r in case.maps[what]:
            x = mats[what][int(r[keys[0]]), int(r[keys[1]])]
            case.put(what, first, r, encode(x, kind) if kind == "f16" else int(np.float32(x).view(np.uint32)) >> 16)
    got = case.run()
    for i in range(16):
        for j in range(16):
            c = mats["C"][i, j]
            for k in range(mats["A"].shape[1]):
                kb = 4 * (k // 2) + int(case.pos[i, k // 2, k % 2]) if case.sparse else k
                c = narrow(mats["A"][i, k] * mats["B"][kb, j] + c, kind)  # exact in double for these ranges
            want = encode(c, "f16") if kind == "f16" else int(np.float32(c).view(np.uint32)) >> 16
            assert int(got[i, j]) == want, f"{op} [{i}, {j}]"
