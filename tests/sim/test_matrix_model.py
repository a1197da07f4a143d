"""Every matrix instruction of every chip against a model of exact integers, in both arithmetics.

Operands of many kinds (any bits, cancellation, subnormals, overflow, NaN and infinity, signed zeros, integers), random
MODE, lane broadcasts, signs, clamps, scales, waves of 32 and 64 lanes; then the registers: operands that overlap in any
way, accumulation registers, constants, on every host level."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from typing import Any

import matrix_model as mm
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

MC = shutil.which("llvm-mc-22") or shutil.which("llvm-mc")
if not (simlib.SHARED / "oracle/lanemap").is_dir():
    pytest.skip("the outside test data is not there", allow_module_level=True)
if MC is None:
    pytest.skip("no llvm-mc to encode instructions", allow_module_level=True)

CDNA, RDNA = ("gfx90a", "gfx942", "gfx950"), ("gfx1100", "gfx1201")
SMALL = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Formats of f8f6f4 in the order of their numbers."""
A, B, C, D, IDX = 0, 32, 96, 128, 64
"""First registers."""
Row = tuple[int, int, int, int, int, int, int, int]
"""i, j, k, block, lane, register, bit, bits."""


def assemble(arch: str, texts: list[str], wave: int = 64) -> list[bytes]:
    """Code of each text, by one run of the assembler."""
    args = [MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-show-encoding"]
    args += [] if arch in CDNA else [f"-mattr=+wavefrontsize{wave}"]
    run = subprocess.run(args, input="\n".join(texts) + "\n", check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    groups: list[list[str]] = []
    for line in run.stdout.splitlines():
        if m := re.search(r"encoding: \[([^\]]*)\]", line):
            groups.append(m[1].split(","))
    if "v_mfma_scale" in texts[0]:  # printed as one or as two pieces
        flat = [x for g in groups for x in g]
        groups = [flat[i : i + 16] for i in range(0, len(flat), 16)]
    assert len(groups) == len(texts)
    return [bytes(int(x, 16) for x in g) for g in groups]


def maps(arch: str, op: str) -> dict[str, list[Row]]:
    """Operand -> elements, from the published lane maps; the newest sparse shapes and 6-bit types by their rule."""
    known = simlib.lanemaps(arch)
    name, _, fmt = op.partition(":")
    shape = re.search(r"_(\d+)x\d+x(\d+)", name)
    m, k = int(shape[1]), int(shape[2])
    fields = ("i", "j", "k", "block", "lane", "register", "bit", "bits")

    def rows(of: str, what: str) -> list[Row]:
        return [tuple(int(r[f] or 0) for f in fields) for r in known[of][what]]

    if op in known:
        return {w: rows(op, w) for w in "ABDI"}
    out: dict[str, list[Row]] = {"A": [], "B": [], "I": []}
    out["D"] = rows("v_mfma_f32_16x16x4_f32" if m == 16 else "v_mfma_f32_32x32x2_f32", "D")
    sparse, bits = "smfmac" in op, 6 if fmt else 16 if op.endswith("f16") else 8
    for lane in range(64):
        for what, per in (("A", k * m // (128 if sparse else 64)), ("B", k * m // 64)):
            for e in range(per):
                ij = (lane % m, 0) if what == "A" else (0, lane % m)
                at = (e + per * (lane // m), 0, lane)
                out[what].append((*ij, *at, e * bits // 32, e * bits % 32, bits))
                if sparse and what == "A":
                    out["I"].append((*ij, *at, 0, 2 * e, 2))
    return out


def operations(arch: str) -> list[str]:
    """Mnemonics, f8f6f4 once for each format."""
    ops = list(simlib.lanemaps(arch))
    if arch == "gfx950":
        ops += [f"v_mfma_f32_{s}_f8f6f4:{f}" for s in ("16x16x128", "32x32x64") for f in ("fp6", "bf6")]
        ops += [f"v_smfmac_f32_{s}" for s in ("16x16x64_f16", "32x32x32_f16", "16x16x64_bf16", "32x32x32_bf16")]
        ops += ["v_smfmac_i32_16x16x128_i8", "v_smfmac_i32_32x32x64_i8"]
        ops += [f"v_smfmac_f32_{s}_{t}" for s in ("16x16x128", "32x32x64") for t in ("fp8_fp8", "bf8_fp8", "fp8_bf8")]
    return ops


def types(arch: str, op: str) -> tuple[str, str, str]:
    """Element types of A, B and D."""
    if ":" in op:
        return op.split(":")[1], op.split(":")[1], "f32"
    m = re.match(r"v_(?:s?w?mfma|smfmac|wmma|swmmac)_([a-z]+\d+)_\d+x\d+x\d+_?(?:\d+b_)?(.*)", op)
    kinds = m[2].replace("_1k", "").split("_")
    kinds = [t + "fnuz" if arch == "gfx942" and t in ("fp8", "bf8") else t for t in (kinds * 2)[: max(2, len(kinds))]]
    return kinds[0], kinds[1], m[1]


def span(first: int, n: int) -> str:
    return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"


def registers(rows: list[Row]) -> int:
    return max(r[5] + (r[6] + r[7] + 31) // 32 for r in rows)


class Case:
    """One instruction with random operands; D is checked element by element."""

    def __init__(self, arch: str, op: str, wave: int, seed: int, hw: bool) -> None:
        self.arch, self.op, self.wave, self.hw = arch, op, wave, hw
        self.rnd = rnd = random.Random(f"{arch} {op} {wave} {seed} {hw}")
        self.types = fa, fb, out = types(arch, op)
        self.ta, self.tb = fa, fb
        self.maps = maps(arch, op)
        if ":" in op and rnd.random() < 0.7:  # another format for B
            self.tb = fb = rnd.choice(SMALL)
            self.types = (fa, fb, out)
            self.maps["B"] = maps(arch, op.split(":")[0] + ":" + fb)["B"]
        self.sparse = "smfmac" in op or "swmmac" in op
        self.blocks = max(r[3] for r in self.maps["D"]) + 1
        self.n = {w: self.width(w) for w in "ABD"}
        self.kinds = [rnd.choice(mm.KINDS) for _ in range(3)]
        self.mode: dict[str, int] = {}
        if rnd.random() < 0.5:
            self.mode = {"fp32_round": rnd.randrange(4), "fp16_64_round": rnd.randrange(4)}
            self.mode |= {"fp32_denorm": rnd.randrange(4), "fp16_64_denorm": rnd.randrange(4)}
            if arch not in CDNA and hw:
                self.mode["fp16_ovfl"] = rnd.randrange(2)
        self.cbsz = self.abid = self.blgp = self.low = self.high = self.clamp = self.upper = self.scaled = 0
        self.modifiers()
        self.fill()

    def width(self, what: str) -> int:
        """Registers of an operand."""
        n = registers(self.maps[what])
        if self.wave == 32 or self.arch in CDNA or n == 1 or (self.arch == "gfx1100" and what in "AB"):
            return n
        return n // 2

    def place(self, what: str, r: Row) -> tuple[int, int, int]:
        """Register, lane and bit of an element in a wave of this size (maps of RDNA are for 32 lanes)."""
        i, j, _, _, lane, reg, bit, _ = r
        if self.arch in CDNA or self.wave == 32:
            return reg, lane, bit + (16 * self.upper if what == "D" else 0)
        if self.arch == "gfx1100":
            return (reg, lane, bit) if what in "AB" else (i // 4, 16 * (i % 4) + j, bit + 16 * self.upper)
        n = registers(self.maps[what])
        return (reg, lane, bit) if n == 1 else (reg % (n // 2), lane + 32 * (reg // (n // 2)), bit)

    def modifiers(self) -> None:
        rnd, (fa, _, out) = self.rnd, self.types
        if self.arch in CDNA:
            self.scaled = ":" in self.op and rnd.random() < 0.7
            if ":" in self.op or self.sparse:
                return
            if out == "f64":
                self.blgp = rnd.randrange(8)
            elif rnd.random() < 0.4:
                self.cbsz = rnd.randrange({1: 1, 2: 2, 4: 3, 16: 5}[self.blocks])
                self.abid, self.blgp = rnd.randrange(1 << self.cbsz), rnd.randrange(8)
        elif out == "i32":
            self.low, self.clamp = rnd.randrange(4), rnd.randrange(2)
        elif rnd.random() < 0.5:
            most = 4 if self.sparse else 8
            self.low, self.high = rnd.randrange(most), rnd.randrange(most)
            if fa not in ("f16", "bf16"):
                self.low, self.high = self.low & 4, self.high & 4
        if self.arch == "gfx1100" and out in ("f16", "bf16"):
            self.upper = rnd.randrange(2)

    def text(self) -> str:
        def list_of(name: str, bits: int) -> str:
            return f" {name}:[{bits & 1},{bits >> 1 & 1},{bits >> 2 & 1}]" if bits else ""

        last = span(IDX, 1) if self.sparse else span(C, self.n["D"])
        name = self.op.split(":")[0]
        if self.scaled:
            name, last = name.replace("v_mfma_", "v_mfma_scale_"), f"{last}, v70, v71"
        t = f"{name} {span(D, self.n['D'])}, {span(A, self.n['A'])}, {span(B, self.n['B'])}, {last}"
        if self.scaled:
            a, b = self.bytes
            t += f" op_sel:[{a & 1},{b & 1},0] op_sel_hi:[{a >> 1},{b >> 1},0]"
        if ":" in self.op:
            return t + f" cbsz:{SMALL.index(self.ta)} blgp:{SMALL.index(self.tb)}"
        t += " op_sel:[0,0,1]" if self.upper else ""
        t += list_of("neg_lo", self.low) + list_of("neg_hi", self.high) + (" clamp" if self.clamp else "")
        t += f" cbsz:{self.cbsz} abid:{self.abid}" if self.cbsz else ""
        if self.types[2] == "f64" and self.arch != "gfx90a":
            return t + list_of("neg", self.blgp)
        return t + (f" blgp:{self.blgp}" if self.blgp else "")

    def fill(self) -> None:
        """Elements by coordinates, and the registers that hold them."""
        rnd, wave = self.rnd, self.wave
        self.regs = {what: [[0] * wave for _ in range(n)] for what, n in self.n.items()}
        self.index = [0] * wave
        self.bytes = (rnd.randrange(4), rnd.randrange(4))
        extreme = rnd.random() < 0.5
        self.scales = [
            [[rnd.choice((0, 1, 254, 127, rnd.randrange(256))) if extreme else rnd.randint(120, 134) for _ in range(4)]
             for _ in range(64)] for _ in range(2)
        ]  # fmt: skip
        self.elems: dict[str, dict[tuple[int, int, int], int]] = {}
        for what, kind, fmt in zip("ABD", self.kinds, self.types):
            at = (lambda r: (r[3], r[0], r[1])) if what == "D" else (lambda r, w=what: (r[3], r[w == "B"], r[2]))
            keys = sorted({at(r) for r in self.maps[what]})
            self.elems[what] = dict(zip(keys, mm.draws(rnd, fmt, kind, len(keys))))
            for r in self.maps[what]:
                reg, lane, bit = self.place(what, r)
                for x in range(lane % 16, wave, 16) if self.arch == "gfx1100" and what in "AB" else (lane,):
                    self.put(self.regs[what], reg, x, bit, self.elems[what][at(r)], r[7])
        if "pairs" in self.kinds[0] and self.tb in mm.FORMATS and not self.sparse:  # products that cancel
            for blk, j, k in [key for key in self.elems["B"] if key[2] % 2 and rnd.random() < 0.7]:
                self.elems["B"][blk, j, k] = self.elems["B"][blk, j, k - 1] ^ 1 << (mm.FORMATS[self.tb][0] - 1)
            self.regs["B"] = [[0] * wave for _ in range(self.n["B"])]
            for r in self.maps["B"]:
                reg, lane, bit = self.place("B", r)
                for x in range(lane % 16, wave, 16) if self.arch == "gfx1100" else (lane,):
                    self.put(self.regs["B"], reg, x, bit, self.elems["B"][r[3], r[1], r[2]], r[7])
        self.pick: dict[tuple[int, int], int] = {}
        if self.sparse:
            for i, k in sorted({(r[0], r[2]) for r in self.maps["A"] if r[2] % 2 == 0}):
                self.pick[i, k], self.pick[i, k + 1] = sorted(rnd.sample(range(4), 2))
            lanes: dict[int, list[tuple[int, int]]] = {}
            for r in self.maps["A"]:
                lanes.setdefault(self.place("A", r)[1], []).append((r[2], r[0]))
            for lane, held in lanes.items():  # two bits for each element that the lane holds
                for e, (k, i) in enumerate(sorted(held)):
                    self.index[lane] |= self.pick[i, k] << 2 * e
        self.old = [[rnd.getrandbits(32) for _ in range(wave)] for _ in range(self.n["D"])]

    @staticmethod
    def put(regs: list[list[int]], reg: int, lane: int, bit: int, value: int, bits: int) -> None:
        for b in range(0, bits, 32):  # 64-bit elements in two registers
            regs[reg + b // 32][lane] |= value >> b << bit & 0xFFFFFFFF
        if bit + bits > 32 and bits < 32:
            regs[reg + 1][lane] |= value >> (32 - bit)

    def run(self, code: bytes) -> dict[str, Any]:
        def text(row: list[int]) -> str:
            return "".join(f"{x:08x}" for x in row)

        first = {"A": A, "B": B, "D": D if self.sparse else C}
        v = {str(D + i): text(row) for i, row in enumerate(self.old)}
        v |= {str(first[w] + i): text(row) for w, rows in self.regs.items() for i, row in enumerate(rows)}
        v |= {str(IDX): text(self.index)} if self.sparse else {}
        if self.scaled:
            for i, s in enumerate(self.scales):
                v[str(70 + i)] = text([int.from_bytes(bytes(x), "little") for x in s])
        state = {"wave": self.wave, "exec": "0" * (self.wave // 4), "v": v, "mode": self.mode}  # EXEC is ignored
        return sim.execute(self.arch, code, state, mfma="hw" if self.hw else "default")["v"]

    def want(self, blk: int, i: int, j: int) -> int:
        """Bits of an element of D."""
        fa, fb, out = self.types
        ks = sorted({r[2] for r in self.maps["A"]})
        ds = [4 * (k // 2) + self.pick[i, k] for k in ks] if self.sparse else ks
        a = [self.elems["A"][(blk >> self.cbsz << self.cbsz) + self.abid, i, k] for k in ks]
        b = [self.column(blk, j, k) for k in ds]
        c = self.elems["D"][blk, i, j]
        if out == "i32":
            return self.integers(a, b, c)
        if self.arch in CDNA and out == "f64" and self.arch != "gfx90a":
            a, b = [x ^ (self.blgp & 1) << 63 for x in a], [x ^ (self.blgp >> 1 & 1) << 63 for x in b]
            c ^= self.blgp >> 2 << 63
        if self.arch not in CDNA:
            top = mm.FORMATS[fa][0] - 1
            a = [x ^ ((self.high if k & 1 else self.low) & 1) << top for x, k in zip(a, ks)]
            b = [x ^ ((self.high if k & 1 else self.low) >> 1 & 1) << top for x, k in zip(b, ds)]
            top = mm.FORMATS[out][0] - 1
            c = (c & ~(1 << top) if self.high & 4 else c) ^ (self.low >> 2) << top
        scale = [0] * len(a)
        if self.scaled:
            m = 16 if "16x16" in self.op else 32
            for k in ks:
                pair = [self.scales[x][n + m * (k // 32)][self.bytes[x]] for x, n in ((0, i), (1, j))]
                if 255 in pair:
                    return mm.QUIET["f32"]
                scale[k] = sum(pair) - 254
        return mm.element(self.arch, self.op, (fa, fb, out), a, b, c, hw=self.hw, mode=self.mode, scale=scale)

    def column(self, blk: int, j: int, k: int) -> int:
        """Element of B after the exchange of lanes that blgp asks for."""
        if not self.blgp or self.types[2] == "f64":
            return self.elems["B"][blk, j, k]
        if not hasattr(self, "b_at"):
            self.b_at = {(r[3], r[1], r[2]): r for r in self.maps["B"]}
            self.b_of = {(r[4], r[5], r[6]): (r[3], r[1], r[2]) for r in self.maps["B"]}
        r, p = self.b_at[blk, j, k], self.blgp
        lane = {1: r[4] % 32, 2: 32 + r[4] % 32, 3: (r[4] + 16) % 64}.get(p, 16 * (p - 4) + r[4] % 16)
        return self.elems["B"][self.b_of[lane, r[5], r[6]]]

    def integers(self, a: list[int], b: list[int], c: int) -> int:
        width = 4 if self.types[0] == "iu4" else 8
        signs = 3 if self.types[0] == "i8" else self.low

        def value(x: int, signed: int) -> int:
            return x - (1 << width) if signed and x >> (width - 1) else x

        total = sum(value(x, signs & 1) * value(y, signs >> 1) for x, y in zip(a, b)) + c - (c >> 31 << 32)
        return (max(-(1 << 31), min((1 << 31) - 1, total)) if self.clamp else total) & 0xFFFFFFFF

    def check(self, v: dict[str, Any], samples: int) -> None:
        out = self.types[2]
        places = {(r[3], r[0], r[1]): self.place("D", r) for r in self.maps["D"]}
        for key in self.rnd.sample(sorted(places), samples):
            reg, lane, bit = places[key]
            words = [int(v.get(str(D + reg + h), "0" * 8 * self.wave)[8 * lane :][:8], 16) for h in range(2)]
            width = 32 if out == "i32" else mm.FORMATS[out][0]
            got = words[0] | words[1] << 32 if width == 64 else words[0] >> bit & ((1 << width) - 1)
            want = self.want(*key)
            exact = self.hw or out in ("i32", "f32", "f64")  # 16-bit NaNs of the default arithmetic: any
            same = got == want or (not exact and mm.is_nan(got, out) and mm.is_nan(want, out))
            where = f"{self.text()}, {self.wave} lanes, element {key}, hw={self.hw}, {self.mode}, {self.kinds}"
            assert same, f"{where}: {got:x}, not {want:x}"
            if self.arch == "gfx1100" and width == 16:
                other = (words[0] ^ self.old[reg][lane]) >> (16 - bit) & 0xFFFF
                assert not other, f"{where}: the other half of the register"


@pytest.mark.parametrize("hw", [False, True], ids=["default", "hw"])
@pytest.mark.parametrize(("arch", "wave"), [*((a, 64) for a in CDNA), *((a, w) for a in RDNA for w in (32, 64))])
def test_every_instruction(arch, wave, hw):
    cases = [Case(arch, op, wave, seed, hw) for op in operations(arch) for seed in range(3)]
    for scaled in (0, 1):
        some = [c for c in cases if bool(c.scaled) == bool(scaled)]
        for case, code in zip(some, assemble(arch, [c.text() for c in some], wave) if some else []):
            case.check(case.run(code), 5)
    assert len(cases) >= 3 * 6


# ---- constants ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "text", "value", "bits"),
    [
        *(("gfx942", "v_mfma_f64_16x16x4_f64 v[128:135], v[0:1], v[2:3], {}", c, b) for c, b in (
            ("1.0", 0x3FF0 << 48), ("4.0", 0x4010 << 48), ("7", 7))),
        ("gfx90a", "v_mfma_f64_16x16x4f64 v[128:135], v[0:1], v[2:3], {}", "-2.0", 0xC000 << 48),
        ("gfx950", "v_mfma_f64_4x4x4_4b_f64 v[128:129], v[0:1], v[2:3], {}", "0.5", 0x3FE0 << 48),
        ("gfx942", "v_mfma_f32_16x16x16_f16 v[128:131], v[0:1], v[2:3], {}", "0.15915494", 0x3E22F983),
        ("gfx942", "v_mfma_i32_16x16x32_i8 v[128:131], v[0:1], v[2:3], {}", "-16", 0xFFFFFFF0),
        ("gfx1201", "v_wmma_bf16_16x16x16_bf16 v[128:131], v[0:3], v[4:7], {}", "0x3e22", 0x3E223E22),
        ("gfx1201", "v_wmma_f16_16x16x16_f16 v[128:131], v[0:3], v[4:7], {}", "0.15915494", 0x31183118),
        ("gfx1201", "v_wmma_i32_16x16x16_iu8 v[128:135], v[0:1], v[2:3], {}", "1.0", 0x3F800000),
    ],
)  # fmt: skip
@pytest.mark.parametrize("hw", ["default", "hw"])
def test_constant_c(arch, text, value, bits, hw):
    """A constant as C has the type of D in every element."""
    wave = 64 if arch in CDNA else 32
    (code,) = assemble(arch, [text.format(value)], wave)
    v = {str(i): "0" * 8 * wave for i in range(8)}
    out = sim.execute(arch, code, {"wave": wave, "exec": "f" * (wave // 4), "v": v}, mfma=hw)["v"]
    for h in range(2 if "f64" in text else 1):  # a register that stays 0 is not listed
        assert out.get(str(D + h), "0" * 8 * wave) == f"{bits >> 32 * h & 0xFFFFFFFF:08x}" * wave


# ---- registers ----------------------------------------------------------------------------------------------------

HALF = 48
"""Registers of either file that take part."""


def encode(word: int, d: int, a: int, b: int, c: int, files: tuple[int, int, int]) -> bytes:
    """The MFMA encoding with other registers; files: 1 for accumulation registers, of D and C, A, B. c: source code."""
    word &= ~(0xFF | 1 << 15 | 0x1FF << 32 | 0x1FF << 41 | 0x1FF << 50 | 3 << 59)
    word |= d | files[0] << 15 | (256 + a) << 32 | (256 + b) << 41 | c << 50 | files[1] << 59 | files[2] << 60
    return word.to_bytes(8, "little")


def overlaps(arch: str, words: dict[str, str]) -> list[str]:
    """What differs between operands anywhere (overlapping, constants) and the same values far apart."""
    bad = []
    for op, text in words.items():
        m, word = maps(arch, op), int.from_bytes(bytes.fromhex(text), "little")
        na, nb, nd = (registers(m[w]) for w in "ABD")
        fa, _, out = types(arch, op)
        rnd = random.Random(f"{arch} {op}")
        files = []
        for _ in range(2):
            rows = []
            for q in range(HALF):
                fmt, kind = rnd.choice(((fa, "any"), (fa, "special"), (out, "special"), (out, "mid")))
                fmt = "f32" if fmt in ("i8", "i32", "f64", "xf32") else fmt
                n = mm.FORMATS[fmt][0] if mm.FORMATS[fmt][0] in (8, 16, 32) else 32
                vals = mm.draws(rnd, fmt if n == mm.FORMATS[fmt][0] else "f32", kind, 64 * 32 // n)
                rows.append([sum(x << n * e for e, x in enumerate(vals[i::64])) for i in range(64)])
            files.append(["".join(f"{x:08x}" for x in row) for row in rows])
        far = [rnd.randrange(2) for _ in range(3)] if rnd.randrange(2) else [rnd.randrange(2)] * 3
        at = [2 * rnd.randrange((HALF - n) // 2 + 1) for n in (nd, na, nb)]
        d, a, b = at
        c = rnd.choice((d, min(HALF - nd, d + 2), max(0, d - 2), 2 * rnd.randrange((HALF - nd) // 2 + 1)))
        a = rnd.choice((a, min(HALF - na, d)))
        if na == nb and rnd.random() < 0.3:
            b, far[2] = a, far[1]
        idx, const = rnd.randrange(HALF), rnd.choice((None, None, None, 128, 193, 242, 248))
        sparse = "smfmac" in op
        src2 = 256 + idx if sparse else 256 + c if const is None else const
        v = {f"{'a' * f}{q}": files[f][q] for f in range(2) for q in range(HALF)}
        start = d if sparse else c
        w = {str(A + q): files[far[1]][a + q] for q in range(na)}
        w |= {str(B + q): files[far[2]][b + q] for q in range(nb)}
        w |= {str((D if sparse else C) + q): files[far[0]][start + q] for q in range(nd)}
        w |= {str(IDX): files[0][idx]} if sparse else {}
        plain = encode(word, D, A, B, 256 + IDX if sparse else 256 + C if const is None else const, (0, 0, 0))
        for mfma in ("default", "hw"):
            got = sim.execute(arch, encode(word, d, a, b, src2, tuple(far)), {"exec": "0", "v": v}, mfma=mfma)["v"]
            want = sim.execute(arch, plain, {"exec": "f" * 16, "v": w}, mfma=mfma)["v"]
            expect = v | {f"{'a' * far[0]}{d + q}": want.get(str(D + q), "0" * 512) for q in range(nd)}
            wrong = [r for r in expect if got[r] != expect[r]]
            if wrong or set(got) != set(expect):
                bad.append(f"{op} d={d} a={a} b={b} c={src2} files={far} {mfma}: {wrong}")
            bad.append(f"= {hash_of(got)}")
    return bad


def hash_of(v: dict[str, str]) -> str:
    return f"{hash(tuple(v[r] for r in sorted(v))) & 0xFFFFFFFFFFFF:012x}"


if __name__ == "__main__":
    print(json.dumps(overlaps(sys.argv[1], json.loads(sys.stdin.read()))))


@pytest.mark.parametrize("arch", CDNA)
def test_overlapping_registers_on_every_level(arch):
    """Operands anywhere give what they give far apart, other registers stay; all host levels give the same bits."""
    ops = [op for op in operations(arch) if ":" not in op or op.endswith((":fp8", ":fp4"))]
    cases = [Case(arch, op, 64, 0, False) for op in ops]
    for case in cases:
        case.cbsz = case.abid = case.blgp = case.scaled = 0
        case.tb = case.ta
        case.n["B"] = registers(maps(arch, case.op)["B"])
    words = {op: code.hex() for op, code in zip(ops, assemble(arch, [c.text() for c in cases]))}
    results = {}
    for level in ("base", "avx2", "avx512"):
        path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = dict(os.environ, TILELANG_SIM_HOST=level, PYTHONHASHSEED="1", PYTHONPATH=path)
        run = subprocess.run(
            [sys.executable, __file__, arch],
            input=json.dumps(words),
            check=False,
            capture_output=True,
            text=True,
            env=env,
        )
        assert run.returncode == 0, run.stderr[-2000:]
        results[level] = json.loads(run.stdout)
        assert not [line for line in results[level] if line[0] != "="]
    assert results["base"] == results["avx2"] == results["avx512"]
    assert len(results["base"]) == 2 * len(ops)
