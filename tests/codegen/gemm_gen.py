"""Writes a hand-scheduled f16 GEMM kernel as thread-level IR: a reference for what the compiler's passes should make.

C[M, N] = A[M, K] @ B[K, N], all row-major float16, float32 accumulator; tile 128 x 128 x 64, 4 waves (2 x 2), MFMA
32x32x8. One copy of the loop, pipelined by hand: while block i is computed from LDS, block i+1 sits in registers and is
stored to LDS in mid-loop, and block i+2 is on its way from memory. M, N, K: multiples of 128, 128, 64 (run-time).

LDS (32 KiB): A row-major, 128 bytes a row, 16-byte chunk q of row r at chunk q ^ (r & 7); B as units of
(column 2p: 4 k)(column 2p + 1: 4 k), so that one 16-byte read feeds two MFMAs.
"""

from __future__ import annotations

BM, BN, BK = 128, 128, 64
A_BYTES = BM * BK * 2
PERM_LO, PERM_HI = 0x05040100, 0x07060302


class Tir:
    """Emits the text form of the thread-level IR, one line an operation; values are strings such as "%12"."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.n = 0
        self.depth = 1
        self.consts: dict[tuple[str, int], str] = {}

    def put(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def new(self) -> str:
        self.n += 1
        return f"%{self.n}"

    def op(self, name: str, args: list[str], ty: str, **attrs: object) -> str:
        """One operation with one result."""
        v = self.new()
        self.put(f"{v} = {self.text(name, args, attrs)} : {ty}")
        return v

    def effect(self, name: str, args: list[str], **attrs: object) -> None:
        """One operation without a result."""
        self.put(self.text(name, args, attrs))

    @staticmethod
    def text(name: str, args: list[str], attrs: dict[str, object]) -> str:
        items = ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in attrs.items())
        return name + (" " + ", ".join(args) if args else "") + (" {" + items + "}" if items else "")

    def const(self, v: int, ty: str = "i32") -> str:
        """Constants are made once, at the top."""
        if (ty, v) not in self.consts:
            name = self.new()
            self.lines.insert(0, f"  {name} = const {{value = {v}}} : {ty}")
            self.consts[(ty, v)] = name
        return self.consts[(ty, v)]

    def bin(self, name: str, a: str, b: str | int, ty: str = "i32") -> str:
        return self.op(name, [a, self.const(b, ty) if isinstance(b, int) else b], ty)


class Gemm:
    """The kernel's state while it is written: addresses, fragments in flight, accumulators."""

    def __init__(self, e: Tir) -> None:
        self.e = e

    def addresses(self, a: str, b: str, c: str, m: str, n: str, k: str) -> None:
        """Everything that does not change in the loop. m, n, k: i64 sizes."""
        e = self.e
        m32, n32, k32 = (e.op("cast", [x], "i32") for x in (m, n, k))
        self.n32 = n32
        t, lane, wave = e.op("thread_id", [], "i32"), e.op("lane_id", [], "i32"), e.op("wave_id", [], "i32")
        pm = e.bin("mul", e.op("program_id", [], "i32", axis=0), BM)
        pn = e.bin("mul", e.op("program_id", [], "i32", axis=1), BN)
        row_a, row_b = e.bin("mul", k32, 2), e.bin("mul", n32, 2)  # bytes of a row
        self.rsrc_a = e.op("make_rsrc", [a, e.bin("mul", m32, row_a)], "rsrc")
        self.rsrc_b = e.op("make_rsrc", [b, e.bin("mul", k32, row_b)], "rsrc")
        self.rsrc_c = e.op("make_rsrc", [c, e.bin("mul", m32, row_b)], "rsrc")
        # A: row t/8 + 32 i, chunk t % 8
        ra, q = e.bin("shr", t, 3), e.bin("and", t, 7)
        self.ga, off = [], e.bin("add", e.bin("mul", e.bin("add", pm, ra), row_a), e.bin("mul", q, 16))
        for i in range(4):
            self.ga.append(off)
            off = e.bin("add", off, e.bin("mul", row_a, 32))
        self.sa = e.bin("add", e.bin("mul", ra, 128), e.bin("mul", e.bin("xor", q, e.bin("and", ra, 7)), 16))
        # B: rows 4g .. 4g+3, columns 8c .. 8c+7
        g, cc = e.bin("shr", t, 4), e.bin("and", t, 15)
        col = e.bin("mul", e.bin("add", pn, e.bin("mul", cc, 8)), 2)
        self.gb, off = [], e.bin("add", e.bin("mul", e.bin("mul", g, 4), row_b), col)
        for _ in range(4):
            self.gb.append(off)
            off = e.bin("add", off, row_b)
        swz = e.bin("and", e.bin("shr", cc, 1), 3)
        base = e.bin("add", e.bin("mul", g, 8 * BN), e.bin("mul", cc, 64))
        self.sb = [e.bin("add", base, e.bin("mul", e.bin("xor", swz, d), 16)) for d in range(4)]
        # reads
        r, h = e.bin("and", lane, 31), e.bin("shr", lane, 5)
        wm, wn = e.bin("shr", wave, 1), e.bin("and", wave, 1)
        arow = e.bin("add", e.bin("mul", wm, 64), r)
        self.ra = []
        for s in range(4):
            chunk = e.bin("xor", e.bin("add", h, 2 * s), e.bin("and", r, 7))
            self.ra.append(e.bin("add", e.bin("mul", arow, 128), e.bin("mul", chunk, 16)))
        p = e.bin("add", e.bin("mul", wn, 32), r)
        pc, pd = e.bin("shr", p, 2), e.bin("and", p, 3)
        pd = e.bin("xor", pd, e.bin("and", e.bin("shr", pc, 1), 3))
        unit = e.bin("add", e.bin("mul", pc, 4), pd)
        self.rb = e.bin("add", e.bin("mul", h, 2 * 8 * BN), e.bin("mul", unit, 16))
        # C: row pm + 64 wm + 32 i + r, columns pn + 64 wn + 16 R + 8 h
        crow = e.bin("add", pm, arow)
        ccol = e.bin("add", e.bin("add", pn, e.bin("mul", wn, 64)), e.bin("mul", h, 8))
        c0 = e.bin("add", e.bin("mul", crow, row_b), e.bin("mul", ccol, 2))
        self.gc = [c0, e.bin("add", c0, e.bin("mul", row_b, 32))]

    def load_a(self, i: int, soff: str) -> str:
        return self.e.op("buf_load", [self.rsrc_a, self.ga[i], soff], "vec<8xf16>")

    def load_b(self, i: int, soff: str) -> str:
        return self.e.op("buf_load", [self.rsrc_b, self.gb[i], soff], "vec<4xi32>")

    def store_a(self, i: int, v: str) -> None:
        self.e.effect("lds_store", [self.sa, v], imm=i * 32 * 128, align=16)

    def store_b(self, d: int, v: list[str]) -> None:
        """Columns 2d and 2d+1 of the thread's 8: four rows' dwords d are turned into two columns of 4 k."""
        e = self.e
        w = [e.op("extract", [x], "i32", index=d) for x in v]
        # v_perm takes bytes 0..3 of the selector from its second operand
        parts = [e.op("perm", [w[j + 1], w[j]], "i32", sel=sel) for sel in (PERM_LO, PERM_HI) for j in (0, 2)]
        e.effect("lds_store", [self.sb[d], e.op("concat", parts, "vec<4xi32>")], imm=A_BYTES, align=16)

    def read_a(self, s: int, i: int) -> str:
        return self.e.op("lds_load", [self.ra[s]], "vec<8xf16>", imm=i * 32 * 128, align=16)

    def read_b(self, s: int, u: int) -> str:
        return self.e.op("lds_load", [self.rb], "vec<8xf16>", imm=A_BYTES + (4 * s + u) * 8 * BN, align=16)

    def half(self, v: str, which: int) -> str:
        return self.e.op("extract", [v], "vec<4xf16>", index=4 * which)

    def block(self, acc: list[str], frags: list[str], va: list[str], vb: list[str], ka: str, kb: str):
        """One K block; slots of the 32 MFMAs as the notes on this loop give them."""
        e = self.e
        fr: dict[tuple[str, int, int], str] = dict(zip(self.first(), frags, strict=True))
        todo = [("a", s, i) if i < 2 else ("b", s, i - 2) for s in (1, 2, 3) for i in range(4)]
        acc, na, nb, nf = list(acc), list(va), list(vb), []
        slot = 0
        for s in range(4):
            for u in range(2):
                for i in range(2):
                    for tile in range(2):
                        a, b = self.half(fr["a", s, i], u), self.half(fr["b", s, u], tile)
                        x = 2 * i + tile
                        acc[x] = e.op("mma", [b, a, acc[x]], "vec<16xf32>", intrinsic="mfma_32x32x8_f16")
                        if slot < 12:
                            w, ss, j = todo[slot]
                            fr[w, ss, j] = self.read_a(ss, j) if w == "a" else self.read_b(ss, j)
                        elif slot == 13:
                            e.effect("barrier", [])
                        elif 14 <= slot < 18:
                            self.store_a(slot - 14, va[slot - 14])
                            na[slot - 14] = self.load_a(slot - 14, ka)
                        elif 18 <= slot < 22:
                            self.store_b(slot - 18, vb)
                        elif slot == 25:
                            e.effect("barrier", [])
                            nb = [self.load_b(j, kb) for j in range(4)]
                        elif 26 <= slot < 30:
                            w, ss, j = self.first()[slot - 26]
                            nf.append(self.read_a(ss, j) if w == "a" else self.read_b(ss, j))
                        e.effect("sched_barrier", [])
                        slot += 1
        return acc, nf, na, nb

    @staticmethod
    def first() -> list[tuple[str, int, int]]:
        return [("a", 0, 0), ("a", 0, 1), ("b", 0, 0), ("b", 0, 1)]

    def offset_b(self, ka: str) -> str:
        return self.e.bin("mul", ka, self.n32)

    def run(self, k: str) -> None:
        """Prologue, loop, epilogue."""
        e = self.e
        zero = e.const(0)
        end = e.bin("mul", e.op("cast", [k], "i32"), 2)
        last = e.bin("sub", end, BK * 2)
        va, vb = [self.load_a(i, zero) for i in range(4)], [self.load_b(i, zero) for i in range(4)]
        k1 = e.bin("min", e.const(BK * 2), last)
        k1b = self.offset_b(k1)
        for i in range(4):
            self.store_a(i, va[i])
            va[i] = self.load_a(i, k1)
        for d in range(4):
            self.store_b(d, vb)
        vb = [self.load_b(i, k1b) for i in range(4)]
        e.effect("barrier", [])
        fr = [self.read_a(s, i) if w == "a" else self.read_b(s, i) for w, s, i in self.first()]
        acc = [e.op("const", [], "vec<16xf32>", fvalue=0.0) for _ in range(4)]
        tys = ["vec<16xf32>"] * 4 + ["vec<8xf16>"] * 8 + ["vec<4xi32>"] * 4
        res = [e.new() for _ in tys]
        args = [e.new() for _ in tys]
        iv = e.new()
        lo, hi, step = e.const(4 * BK), e.bin("add", end, 4 * BK), e.const(2 * BK)
        inits = ", ".join([lo, hi, step, *acc, *fr, *va, *vb])
        params = ", ".join(f"{a} : {t}" for a, t in zip(args, tys, strict=True))
        e.put(f"{', '.join(res)} = for {inits} (%k{iv[1:]} : i32, {params}) {{")
        e.depth += 1
        ka = e.bin("min", f"%k{iv[1:]}", last)
        acc, fr, va, vb = self.block(args[:4], args[4:8], args[8:12], args[12:16], ka, self.offset_b(ka))
        e.put("yield " + ", ".join([*acc, *fr, *va, *vb]))
        e.depth -= 1
        e.put(f"}} : {', '.join(tys)}")
        self.store_c(res[:4])

    def store_c(self, acc: list[str]) -> None:
        e = self.e
        zero = e.const(0)
        for i in range(2):
            for rr in range(4):
                parts = []
                for x in range(4):
                    parts += [e.op("extract", [acc[2 * i + t]], "f32", index=4 * rr + x) for t in range(2)]
                v = e.op("cast", [e.op("concat", parts, "vec<8xf32>")], "vec<8xf16>")
                e.effect("buf_store", [self.rsrc_c, v, self.gc[i], zero], imm=rr * 32)


def gemm128(target: str = "gfx942") -> str:
    """Text of the kernel. Arguments: A, B, C (ptr), M, N, K (i64). Grid: (M / 128, N / 128), 256 threads."""
    e = Tir()
    g = Gemm(e)
    g.addresses("%A", "%B", "%C", "%M", "%N", "%K")
    g.run("%K")
    head = (
        f'kernel @gemm128 level thread {{target = "{target}", num_warps = 4, block = 256, lds_bytes = {2 * A_BYTES}}} '
        "(%A : ptr, %B : ptr, %C : ptr, %M : i64, %N : i64, %K : i64) {"
    )
    return "\n".join([head, *e.lines, "}"]) + "\n"


if __name__ == "__main__":
    print(gemm128(), end="")
