"""The encoding families that gen_isa.py walks: how to encode every opcode with operands that tell themselves apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

# Field values that tell the operands apart by their first register number; all are legal VGPR and SGPR tuples, and
# stay so when any one bit is set in addition.
VDST, SRC0, SRC1, SRC2, SDST, SCALE1 = 20, 16, 28, 80, 24, 44


def words(*ws: int) -> str:
    return "".join((w & 0xFFFFFFFF).to_bytes(4, "little").hex() for w in ws)


def q(x: int) -> str:
    return words(x, x >> 32)


@dataclass
class Family:
    """An encoding family: how many opcodes, how to encode one, and which register number stands for which field."""

    name: str
    nops: int
    encs: list[Callable[[int], str]]  # op -> hex, tried in turn until one is valid
    fields: dict[int, str]
    probes: dict = field(default_factory=dict)  # flag name -> (function (op, variant index) -> hex, text regex)
    skip: tuple[int, ...] = ()


LIT = 0x12345678


def sop1(op: int, s: int) -> str:
    return words(0xBE800000 | VDST << 16 | op << 8 | s, 0)


def vop1(op: int, s: int) -> str:
    return words(0x7E000000 | VDST << 17 | op << 9 | s, 0)


def vop3(op: int, dst: int, s: tuple[int, int, int], extra: int = 0) -> str:
    return q(0xD0000000 | op << 16 | dst | s[0] << 32 | s[1] << 41 | s[2] << 50 | extra)


def vop3p(op: int, s: tuple[int, int, int], extra: int = 0) -> str:
    return q(0xD3800000 | op << 16 | VDST | s[0] << 32 | s[1] << 41 | s[2] << 50 | extra)


V = 256
COMBOS = [
    (V + SRC0, V + SRC1, V + SRC2),
    (V + SRC0, V + SRC1, SRC2),
    (V + SRC0, SRC1, V + SRC2),
    (SRC0, V + SRC1, V + SRC2),
    (V + SRC0, SRC1, SRC2),
    (SRC0, SRC1, V + SRC2),
    (SRC0, SRC1, SRC2),
    (V + SRC0, V + SRC1, 0),
    (V + SRC0, 0, 0),
    (0, 0, 0),
]
HI1 = 3 << 59 | 1 << 14  # op_sel_hi all ones, its neutral value


def gfx9_families(chip: str) -> list[Family]:
    """The encoding families of gfx90a, gfx942 and gfx950."""
    srcf = {VDST: "VDST", SRC0: "SRC0", SRC1: "SRC1", SRC2: "SRC2", SDST: "SDST"}
    v3 = [lambda op, s=s: vop3(op, VDST, s) for s in COMBOS]
    v3 += [lambda op, s=s: vop3(op, VDST, s, SDST << 8) for s in COMBOS]
    v3p = [lambda op, s=s: vop3p(op, s, HI1) for s in COMBOS] + [lambda op, s=s: vop3p(op, s) for s in COMBOS]
    v3p.append(lambda op: q(0xD3800000 | op << 16 | V + SRC0 << 32 | V + SRC1 << 41))
    fams = [
        Family(
            "SOP1",
            256,
            [
                lambda op: sop1(op, SRC0),
                lambda op: words(0xBE800000 | op << 8 | SRC0, 0),
                lambda op: sop1(op, 0),
                lambda op: words(0xBE800000 | op << 8, 0),
            ],
            srcf,
        ),
        Family("SOP2", 96, [lambda op: words(0x80000000 | op << 23 | VDST << 16 | SRC1 << 8 | SRC0, 0)], srcf),
        Family("SOPK", 29, [lambda op: words(0xB0000000 | op << 23 | VDST << 16 | 0x1234, LIT)], srcf),
        Family("SOPC", 128, [lambda op: words(0xBF000000 | op << 16 | SRC1 << 8 | SRC0, 0)], srcf),
        Family("SOPP", 128, [lambda op: words(0xBF800000 | op << 16 | 0, 0)], srcf),
        Family(
            "SMEM",
            256,
            [
                lambda op: q(0xC0000000 | op << 18 | 1 << 14 | VDST << 6 | SRC0 >> 1 | SRC1 << 57),
                lambda op: q(0xC0000000 | op << 18 | 1 << 17 | VDST << 6 | SRC0 >> 1),
            ],
            {VDST: "SDATA", SRC0: "SBASE", SRC1: "SOFFSET"},
        ),
        Family(
            "VOP1",
            256,
            [lambda op: vop1(op, V + SRC0), lambda op: vop1(op, SRC0), lambda op: words(0x7E000000 | op << 9, 0)],
            srcf,
        ),
        Family(
            "VOP2", 62, [lambda op: words(op << 25 | VDST << 17 | SRC1 << 9 | V + SRC0, LIT)], {**srcf, SRC1: "VSRC1"}
        ),
        Family(
            "VOPC", 256, [lambda op: words(0x7C000000 | op << 17 | SRC1 << 9 | V + SRC0, 0)], {**srcf, SRC1: "VSRC1"}
        ),
        Family("VOP3", 0x380, v3, srcf),
        Family("VOP3P", 128, v3p, srcf),
        Family(
            "DS",
            256,
            [
                lambda op, g=g, m=m: q(
                    0xD8000000
                    | g
                    | op << 17
                    | (m & 1) * SRC0 << 32
                    | (m >> 1 & 1) * SRC1 << 40
                    | (m >> 2 & 1) * SRC2 << 48
                    | (m >> 3) * VDST << 56
                )
                for g in (0, 1 << 16)
                for m in (15, 11, 7, 9, 3, 10, 8, 1, 2, 0)
            ],
            {SRC0: "ADDR", SRC1: "DATA0", SRC2: "DATA1", VDST: "VDST"},
        ),
    ]
    ff = {SRC0: "VADDR", SRC1: "VDATA", SRC2: "SADDR", VDST: "VDST"}

    def flat(seg: int, saddr: int, sve: int = 0, glc: int = 0):
        base = 0xDC000000 | seg << 14 | sve << 13 | glc << 16
        return lambda op: q(base | op << 18 | SRC0 << 32 | SRC1 << 40 | saddr << 48 | VDST << 56)

    fams += [
        Family("FLAT", 128, [flat(0, 0)], ff, {"RTN": flat(0, 0, 0, 1)}),
        Family("GLOBAL", 128, [flat(2, SRC2), flat(2, 0x7F)], ff, {"RTN": flat(2, SRC2, 0, 1)}),
        Family("SCRATCH", 128, [flat(1, 0x7F) if chip == "gfx90a" else flat(1, SRC2, 1)], ff),
    ]

    def mubuf(extra: int = 0):
        base = 0xE0000000 | 1 << 12 | extra
        return lambda op: q(base | op << 18 | SRC0 << 32 | VDST << 40 | (SRC1 >> 2) << 48 | SRC2 << 56)

    def mtbuf(op: int) -> str:
        base = 0xE8000000 | 1 << 12 | 1 << 19
        return q(base | op << 15 | SRC0 << 32 | VDST << 40 | (SRC1 >> 2) << 48 | SRC2 << 56)

    bf = {SRC0: "VADDR", SRC1: "SRSRC", SRC2: "SOFFSET", VDST: "VDATA"}
    fams += [
        Family(
            "MUBUF",
            128,
            [mubuf(), mubuf(1 << 16), lambda op: q(0xE0000000 | op << 18)],
            bf,
            {"RTN": mubuf(1 << 14), "LDS": mubuf(1 << 16)},
        ),
        Family("MTBUF", 16, [mtbuf], bf),
    ]
    if chip == "gfx950":  # scaled MFMA: a prefix with the two scales, then the matrix instruction

        def scaled(op: int) -> str:
            return q(0xD3AC0000 | (V + SDST) << 32 | (V + SCALE1) << 41) + vop3p(op, COMBOS[0], 1 << 11)

        scales = {SDST: "SCALE0", SCALE1: "SCALE1"}
        fams.append(Family("VOP3PX", 128, [scaled], {**srcf, **scales}))
    return fams


def rdna_families(chip: str) -> list[Family]:
    """The encoding families of gfx1100 and gfx1201."""
    gfx12 = chip == "gfx1201"
    srcf = {VDST: "VDST", SRC0: "SRC0", SRC1: "SRC1", SRC2: "SRC2", SDST: "SDST"}

    def vop3r(op: int, dst: int, s: tuple[int, int, int], extra: int = 0) -> str:
        return q(0xD4000000 | op << 16 | dst | s[0] << 32 | s[1] << 41 | s[2] << 50 | extra)

    def vop3pr(op: int, s: tuple[int, int, int], extra: int = 0) -> str:
        return q(0xCC000000 | op << 16 | VDST | s[0] << 32 | s[1] << 41 | s[2] << 50 | extra)

    v3 = [lambda op, s=s: vop3r(op, VDST, s) for s in COMBOS]
    v3 += [lambda op, s=s: vop3r(op, VDST, s, SDST << 8) for s in COMBOS]
    v3 += [lambda op, s=s: vop3r(op, 0, s) for s in COMBOS] + [lambda op, s=s: vop3r(op, 126, s) for s in COMBOS]
    v3p = [lambda op, s=s: vop3pr(op, s, HI1) for s in COMBOS] + [lambda op, s=s: vop3pr(op, s) for s in COMBOS]
    null = 124
    smem_op, smem_hi = (13, 0) if gfx12 else (18, 0)
    smem = [
        lambda op: q(0xF4000000 | op << smem_op | VDST << 6 | SRC0 >> 1 | SRC1 << 57),
        lambda op: q(0xF4000000 | op << smem_op | VDST << 6 | SRC0 >> 1 | null << 57),
        lambda op: q(0xF4000000 | op << smem_op | SRC0 >> 1 | SRC1 << 57),
        lambda op: q(0xF4000000 | op << smem_op | VDST << 6),
        lambda op: q(0xF4000000 | op << smem_op),
    ]
    sop1s = [lambda op: sop1(op, SRC0), lambda op: words(0xBE800000 | op << 8 | SRC0, 0), lambda op: sop1(op, 0)]
    sop1s += [lambda op: words(0xBE800000 | op << 8, 0), lambda op: sop1(op, 128), lambda op: sop1(op, 0x80)]
    fams = [
        Family("SOP1", 128, sop1s, srcf),
        Family("SOP2", 96, [lambda op: words(0x80000000 | op << 23 | VDST << 16 | SRC1 << 8 | SRC0, LIT)], srcf),
        Family("SOPK", 29, [lambda op: words(0xB0000000 | op << 23 | VDST << 16 | 0x1234, LIT)], srcf),
        Family("SOPC", 128, [lambda op: words(0xBF000000 | op << 16 | SRC1 << 8 | SRC0, 0)], srcf),
        Family("SOPP", 128, [lambda op: words(0xBF800000 | op << 16, 0)], srcf),
        Family("LDSDIR", 4, [lambda op: words(0xCE000000 | op << 20 | VDST, 0)], srcf, skip=(0,)),  # 0: interpolation
        Family("SMEM", 64 if gfx12 else 256, smem, {VDST: "SDATA", SRC0: "SBASE", SRC1: "SOFFSET"}),
        Family(
            "VOP1",
            128,
            [lambda op: vop1(op, V + SRC0), lambda op: vop1(op, SRC0), lambda op: words(0x7E000000 | op << 9, 0)],
            srcf,
        ),
        Family(
            "VOP2", 62, [lambda op: words(op << 25 | VDST << 17 | SRC1 << 9 | V + SRC0, LIT)], {**srcf, SRC1: "VSRC1"}
        ),
        Family(
            "VOPC", 256, [lambda op: words(0x7C000000 | op << 17 | SRC1 << 9 | V + SRC0, 0)], {**srcf, SRC1: "VSRC1"}
        ),
        Family("VOP3", 1024, v3, srcf),
        Family("VOP3P", 128, v3p, srcf),
        Family(
            "DS",
            256,
            [
                lambda op, g=g, m=m: q(
                    0xD8000000
                    | g
                    | op << 18
                    | (m & 1) * SRC0 << 32
                    | (m >> 1 & 1) * SRC1 << 40
                    | (m >> 2 & 1) * SRC2 << 48
                    | (m >> 3) * VDST << 56
                )
                for g in (0, 1 << 17)
                for m in (15, 11, 7, 9, 3, 10, 8, 1, 2, 0)
            ],
            {SRC0: "ADDR", SRC1: "DATA0", SRC2: "DATA1", VDST: "VDST"},
        ),
    ]
    ff = {SRC0: "VADDR", SRC1: "VDATA", SRC2: "SADDR", VDST: "VDST"}
    bf = {SRC0: "VADDR", SRC1: "SRSRC", SRC2: "SOFFSET", VDST: "VDATA"}

    def flat11(seg: int, saddr: int, sve: int = 0, m: int = 15):
        base = 0xDC000000 | seg << 16
        return lambda op: q(
            base
            | op << 18
            | (m & 1) * SRC0 << 32
            | (m >> 1 & 1) * SRC1 << 40
            | saddr << 48
            | sve << 55
            | (m >> 3) * VDST << 56
        )

    def w3(a: int, b: int, c: int) -> str:
        return words(a, b, c)

    def flat12(seg: int, saddr: int, sve: int = 0, m: int = 15):
        base = 0xEC000000 | seg << 24 | saddr
        return lambda op: w3(base | op << 14, (m >> 3) * VDST | sve << 17 | (m >> 1 & 1) * SRC1 << 23, (m & 1) * SRC0)

    ms = (15, 9, 3, 1, 8, 2, 0)
    if gfx12:
        fams += [
            Family("FLAT", 256, [flat12(0, null, 0, m) for m in ms], ff),
            Family("GLOBAL", 256, [flat12(2, s, 0, m) for s in (SRC2, null) for m in ms], ff),
            Family("SCRATCH", 256, [flat12(1, SRC2, 1, m) for m in ms], ff),
            Family(
                "MUBUF",
                256,
                [
                    lambda op: w3(0xC4000000 | op << 14 | SRC2, VDST | SRC1 << 9 | 1 << 30 | 22 << 23, SRC0),
                    lambda op: w3(0xC4000000 | op << 14 | SRC2, VDST | SRC1 << 9 | 1 << 30, SRC0),
                    lambda op: w3(0xC4000000 | op << 14, 0, 0),
                ],
                bf,
            ),
        ]
    else:
        fams += [
            Family("FLAT", 128, [flat11(0, null, 0, m) for m in ms], ff),
            Family("GLOBAL", 128, [flat11(2, s, 0, m) for s in (SRC2, null) for m in ms], ff),
            Family("SCRATCH", 128, [flat11(1, SRC2, 1, m) for m in ms], ff),
            Family(
                "MUBUF",
                256,
                [
                    lambda op: q(
                        0xE0000000 | op << 18 | SRC0 << 32 | VDST << 40 | (SRC1 >> 2) << 48 | 1 << 54 | SRC2 << 56
                    ),
                    lambda op: q(0xE0000000 | op << 18),
                ],
                bf,
            ),
            Family(
                "MTBUF",
                16,
                [
                    lambda op: q(
                        0xE8000000
                        | op << 15
                        | 22 << 19
                        | SRC0 << 32
                        | VDST << 40
                        | (SRC1 >> 2) << 48
                        | 1 << 54
                        | SRC2 << 56
                    )
                ],
                bf,
            ),
        ]
    return fams


# Bits of the first word that select family and opcode.
OPCODE_BITS = {
    "gfx9": {
        "SOP1": 0xFF80FF00,
        "SOP2": 0xFF800000,
        "SOPK": 0xFF800000,
        "SOPC": 0xFFFF0000,
        "SOPP": 0xFFFF0000,
        "SMEM": 0xFFFC0000,
        "VOP1": 0xFE01FE00,
        "VOP2": 0xFE000000,
        "VOPC": 0xFFFE0000,
        "VOP3": 0xFFFF0000,
        "VOP3P": 0xFFFF0000,
        "DS": 0xFDFE0000,
        "FLAT": 0xFDFCC000,
        "GLOBAL": 0xFDFCC000,
        "SCRATCH": 0xFDFCC000,
        "MUBUF": 0xFDFC0000,
        "MTBUF": 0xFC078000,
    },
    "gfx11": {
        "SOP1": 0xFF80FF00,
        "SOP2": 0xFF800000,
        "SOPK": 0xFF800000,
        "SOPC": 0xFFFF0000,
        "SOPP": 0xFFFF0000,
        "SMEM": 0xFFFC0000,
        "LDSDIR": 0xFF300000,
        "VOP1": 0xFE01FE00,
        "VOP2": 0xFE000000,
        "VOPC": 0xFFFE0000,
        "VOP3": 0xFFFF0000,
        "VOP3P": 0xFFFF0000,
        "DS": 0xFFFC0000,
        "FLAT": 0xFFFF0000,
        "GLOBAL": 0xFFFF0000,
        "SCRATCH": 0xFFFF0000,
        "MUBUF": 0xFFFC0000,
        "MTBUF": 0xFC078000,
    },
}
OPCODE_BITS["gfx12"] = {
    **OPCODE_BITS["gfx11"],
    "SMEM": 0xFC07E000,
    "FLAT": 0xFF3FC000,
    "GLOBAL": 0xFF3FC000,
    "SCRATCH": 0xFF3FC000,
    "MUBUF": 0xFC3FC000,
}


def generation(chip: str) -> str:
    """gfx9, gfx11 or gfx12."""
    return {"gfx1100": "gfx11", "gfx1201": "gfx12"}.get(chip, "gfx9")


def families(chip: str) -> list[Family]:
    """All encoding families of a chip."""
    return gfx9_families(chip) if generation(chip) == "gfx9" else rdna_families(chip)
