"""Makes cases for memory_trials: instructions of each family with random fields, and states in which most lanes reach
memory, some do not, and some meet."""

from __future__ import annotations

import memory_model as mm
import numpy as np
from memory_trials import FIRST_S, LDS, MIDDLE, NS, NV, SCRATCH, SLICE, Bench, Make, Trial

Case = tuple[str, mm.Op, Make]
F32 = [0, 0x3F800000, 0xBF800000, 0x7F800000, 0x7F7FFFFF, 0x00800000, 0x40490FDB, 0xC2280000, 0x4B800001, 0x3EAAAAAB]
SUB32 = [1, 0x007FFFFF, 0x80000001, 0x00400000]
F64 = [x << 32 for x in (0, 0x3FF00000, 0xBFF00000, 0x7FF00000, 0x00100000, 0x400921FB, 0xC0454000)] + [
    0x3FD5555555555555
]
SUB64 = [1, (1 << 52) - 1, (1 << 63) | 5]
INTS = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 3, 5, 7]


def any_dwords(rng: np.random.Generator, n: int) -> np.ndarray:
    """Random dwords, often small or special integers."""
    return np.where(rng.random(n) < 0.4, np.array(INTS, np.uint64)[rng.integers(0, len(INTS), n)],
                    rng.integers(0, 1 << 32, n)).astype(np.uint32)  # fmt: skip


def floats(rng: np.random.Generator, n: int, kind: str, nan: bool, sub: bool, minus_zero: bool = False) -> np.ndarray:
    """n bytes of floats of the kind (f32, f64, f16, bf16)."""
    if kind == "f64":
        pool = (
            F64
            + (SUB64 if sub else [])
            + ([0x7FF8 << 48 | 9, 0xFFF4 << 48 | 5] if nan else [])
            + ([1 << 63] if minus_zero else [])
        )
        x = np.array(pool, np.uint64)[rng.integers(0, len(pool), n // 8)]
        r = rng.normal(size=n // 8).view(np.uint64)
        return np.where(rng.random(n // 8) < 0.6, x, r).view(np.uint8)
    if kind == "f32":
        pool = (
            F32 + (SUB32 if sub else []) + ([0x7FC00009, 0xFFA00005] if nan else []) + ([1 << 31] if minus_zero else [])
        )
        x = np.array(pool, np.uint32)[rng.integers(0, len(pool), n // 4)]
        r = rng.normal(size=n // 4).astype(np.float32).view(np.uint32)
        return np.where(rng.random(n // 4) < 0.6, x, r).view(np.uint8)
    nans = ([0x7FC9, 0xFFA5] if kind == "bf16" else [0x7E09, 0xFD05]) if nan else []
    f16 = rng.normal(size=n // 2).astype(np.float16).view(np.uint16)
    if kind == "bf16":
        f16 = (rng.normal(size=n // 2).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    pool = np.array(
        [0, 0x3C00, 0xBC00, 0x3F80, 0xC000, 0x4248, *([1, 0x03FF, 0x8005, 0x7F] if sub else []), *nans], np.uint16
    )
    return np.where(rng.random(n // 2) < 0.4, pool[rng.integers(0, len(pool), n // 2)], f16).view(np.uint8)


def mask(rng: np.random.Generator, lanes: int) -> int:
    """EXEC: all, none, one lane, half, random."""
    full = (1 << lanes) - 1
    kind = rng.integers(0, 8)
    if kind < 4:
        return full
    if kind == 4:
        return 1 << int(rng.integers(0, lanes))
    if kind == 5:
        return 0
    return int(rng.integers(0, 1 << 63)) * 3 & full


def state(rng: np.random.Generator, bench: Bench, base: int, scratch: bool = False) -> Trial:
    lanes = bench.wave
    mem = bytearray(any_dwords(rng, SLICE // 4).tobytes())
    st = mm.State(
        bench.arch, lanes, any_dwords(rng, NV * lanes).reshape(NV, lanes),
        {FIRST_S + k: int(rng.integers(0, 1 << 32)) for k in range(NS)}, mask(rng, lanes),
        int(rng.integers(0, 1 << 32)),
        bytearray(any_dwords(rng, LDS // 4).tobytes()), [(base, mem)],
        [bytearray(any_dwords(rng, SCRATCH // 4).tobytes()) for _ in range(lanes)] if scratch else [],
    )  # fmt: skip
    return Trial(st, mem)


def vr(first: int, nbytes: int) -> str:
    n = max(1, nbytes // 4)
    return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"


# ---- LDS -------------------------------------------------------------------------------------------------------------

ADDR, DATA, DATA2, DST = 1, 2, 6, 10


def fill_floats(rng: np.random.Generator, trial: Trial, kind: str, nan: int, sub: bool, lds: bool, zero: bool) -> None:
    """Data registers and memory of floats; NaN in memory (1), in the data (2) or nowhere (0)."""
    st = trial.before
    for first in (DATA, DATA2):
        raw = floats(rng, 16 * st.lanes, kind, nan == 2, True, True).view(np.uint32)
        w = 2 if kind == "f64" else 1
        for k in range(4):
            st.v[first + k] = raw.reshape(-1, w)[: st.lanes * (4 // w)].reshape(4 // w, st.lanes, w)[k // w, :, k % w]
    target = st.lds if lds else trial.mem
    target[:] = floats(rng, len(target), kind, nan == 1, True, True).tobytes()


def ds_cases(rng: np.random.Generator, bench: Bench, names: list[str]) -> list[Case]:
    """Each operation of LDS with two random offsets."""
    out = []
    for name in names:
        floaty = name.rsplit("_", 1)[1] in ("f32", "f64", "f16", "bf16")
        for k in (0, 1, 2, 2, 2, 2) if floaty else (0, 1, 1):
            out.append(ds_case(rng, bench, name, k))
    return out


def ds_case(rng: np.random.Generator, bench: Bench, name: str, turn: int) -> Case:
    rest = name[3:]
    op = mm.Op(name, dst=DST, addr=ADDR, data=DATA, data2=DATA2)
    size = 4
    if rest in ("append", "consume"):
        op.offset = int(rng.integers(0, 64)) * 4
        return f"{name} v{DST} offset:{op.offset}", op, lambda r, b: m0_trial(r, bench, b, 4)
    if "addtid" in rest:
        op.offset = int(rng.integers(0, 1200)) * 4
        text = f"{name} v{DST}" if "read" in rest or "load" in rest else f"{name} v{DATA}"
        return f"{text} offset:{op.offset}", op, lambda r, b: m0_trial(r, bench, b, 4)
    if rest == "swizzle_b32":
        mode = int(rng.integers(0, 4))
        op.offset = int(rng.integers((0, 0x8000, 0xC000, 0xE000)[mode], (0x8000, 0x8100, 0xC800, 0xE020)[mode]))
        return f"{name} v{DST}, v{ADDR} offset:{op.offset}", op, lambda r, b: state(r, bench, b)
    if "permute" in rest:
        op.offset = int(rng.choice([0, 4, 64, rng.integers(0, 65536)]))
        return f"{name} v{DST}, v{ADDR}, v{DATA} offset:{op.offset}", op, lambda r, b: state(r, bench, b)
    what = mm.atomic_of(rest, True)
    verb = rest.split("_")[0]
    two = any(x in rest for x in ("read2", "write2", "2addr", "xchg2"))
    if two or rest == "condxchg32_rtn_b64" or what:
        size = int(rest[-2:]) // 8 if not what else what[2] // 8
    elif verb in ("read", "load", "write", "store"):
        size = mm.plain(rest.partition("_")[2])[0]
    back = "_rtn_" in rest or verb.startswith(("read", "load"))
    store = not verb.startswith(("read", "load"))
    text = name
    if back:
        text += f" {vr(DST, 2 * size if two else size)},"
    text += f" v{ADDR}"
    if store:
        text += f", {vr(DATA, size)}"
        both = two or verb in ("mskor", "wrap") or verb.startswith("cmpst")
        text += f", {vr(DATA2, size)}" if both else ""
        op.data2 = DATA2 if both else None
    step = size * (64 if "st64" in rest or "stride64" in rest else 1)
    if two:
        if turn:
            op.offset0, op.offset1 = (int(x) for x in rng.integers(0, min(256, LDS // step + 2), 2))
            text += f" offset0:{op.offset0} offset1:{op.offset1}"
    elif turn:
        align = size if what or rest.startswith("condxchg") else 1
        op.offset = int(rng.integers(0, 2000)) // align * align
        text += f" offset:{op.offset}"
    floaty = what and what[1] in ("f", "f16", "bf16")
    denorm = (int(rng.integers(0, 4)), int(rng.integers(0, 4))) if floaty and turn == 2 else (3, 3)
    apart = two and store  # the order of the two stores of different lanes is nobody's promise

    def make(r: np.random.Generator, base: int) -> Trial:
        t = state(r, bench, base)
        st = t.before
        st.denorm = denorm
        if floaty:
            kind = what[1] if what[1] != "f" else f"f{what[2]}"
            fill_floats(r, t, kind, int(r.integers(0, 3)), True, True, True)
        if what and what[0] in ("cmpstore",) and r.random() < 0.8:  # many comparisons hold
            few = r.integers(0, 3, LDS // size)
            pick = (
                st.v[DATA : DATA + size // 4, :3].T.copy()
                if not rest.startswith("cmpstore")
                else st.v[DATA2 : DATA2 + size // 4, :3].T.copy()
            )
            st.lds[:] = pick[few].tobytes()
        align = size if what or two or rest.startswith("condxchg") else int(r.choice([1, size if size != 12 else 4, 4]))
        align = max(1, align)
        room = LDS // align
        if apart:
            slots = r.permutation(LDS // (2 * step) if LDS // (2 * step) >= st.lanes else room)[: st.lanes]
            at = slots * align * (2 * step // size if LDS // (2 * step) >= st.lanes else 1)
            op0, op1 = op.offset0 * step, op.offset1 * step
            keep, used = 0, set()
            for i in range(st.lanes):
                a = {(int(at[i]) + op0) & mm.M32, (int(at[i]) + op1) & mm.M32}
                if not a & used and len(a) == 2:
                    used |= a
                    keep |= 1 << i
            st.exec &= keep
        else:
            few = r.random() < 0.3
            at = r.integers(0, 8 if few else room, st.lanes) * align
        at = at.astype(np.int64)
        if r.random() < 0.4 and not apart:
            at = at - (op.offset if not two else op.offset0 * step)  # wraps below 0
        far = r.random(st.lanes) < 0.1
        if not apart:
            wild = np.array([LDS, LDS + 4096, 1 << 16, 1 << 31, (1 << 32) - 256, LDS - 0], np.int64)
            at = np.where(far, wild[r.integers(0, len(wild), st.lanes)], at)
        st.v[ADDR] = (at & mm.M32).astype(np.uint32)
        for i in range(st.lanes):  # an access that only ends outside: nothing is published
            beyond = rest.startswith("condxchg") and int(st.v[ADDR][i]) > 0xFFFF
            if beyond or straddles(int(st.v[ADDR][i]), op, size, step, two):
                st.exec &= ~(1 << i)
        return t

    return text, op, make


def straddles(at: int, op: mm.Op, size: int, step: int, two: bool) -> bool:
    for off in (op.offset0 * step, op.offset1 * step) if two else (op.offset,):
        a = (at + off) & mm.M32
        if a < LDS < a + size:
            return True
    return False


def m0_trial(rng: np.random.Generator, bench: Bench, base: int, align: int) -> Trial:
    t = state(rng, bench, base)
    t.before.m0 = int(rng.integers(0, LDS // align)) * align | (int(rng.integers(0, 1 << 13)) << 19)
    return t


# ---- buffers: v1, v2 index and offset, v4.. data, s[20:23] the descriptor, s24 a soffset ----------------------------

BDATA, DESC, SOFF = 4, 20, 24


def buffer_case(rng: np.random.Generator, bench: Bench, name: str) -> Case:
    """A buffer instruction with random addressing; the trials choose descriptors that go with it."""
    arch, gfx9 = bench.arch, bench.arch in mm.GFX9
    rest = name.split("_", 1)[1]
    what = mm.atomic_of(rest[7:], False) if rest.startswith("atomic_") else None
    is_typed = "format" in rest
    if what:
        size = what[2] // 8 * (2 if what[0] == "cmpswap" else 1)
        align = what[2] // 8
    elif is_typed:
        n = len(rest.rsplit("_", 1)[1])
        size, align = 4 * ((n + 1) // 2 if "d16" in rest else n), 4
    else:
        size = mm.plain(rest.partition("_")[2])[0]
        align = int(rng.choice([1, 4, size if size != 12 else 4]))
    flags = []
    if rng.random() < 0.7:
        flags.append("offen")
    if rng.random() < 0.5:
        flags.append("idxen")
    if what and rng.random() < 0.5:
        flags.append("glc" if arch in ("gfx90a", "gfx1100") else "sc0" if gfx9 else "th:TH_ATOMIC_RETURN")
    if rest in ("atomic_csub", "atomic_csub_u32") and "glc" not in flags:
        flags.append("glc")
    to_lds = gfx9 and rest.startswith("load") and "d16" not in rest and size in (1, 2, 4, 12, 16) and rng.random() < 0.3
    if (to_lds and not is_typed) or (gfx9 and name == "buffer_load_format_x" and rng.random() < 0.5):
        flags.append("lds")
    top = 4096 if arch != "gfx1201" else 1 << 23
    offset = int(rng.choice([0, rng.integers(0, 64), rng.integers(0, 700), rng.integers(0, min(top, 4096))]))
    offset = offset // align * align
    addr = 1 if {"offen", "idxen"} & set(flags) else None
    op = mm.Op(name, addr=addr, data=BDATA, srsrc=DESC, offset=offset, flags=tuple(flags))
    pick = rng.integers(0, 6)
    if pick < 2:
        op.soffset, so = SOFF, f"s{SOFF}"
    elif pick == 2:
        op.soffset, so = -1, "m0"
    elif pick == 3 and arch != "gfx1201":
        x = int(rng.integers(0, 64 // align + 1)) * align
        x = min(x, 64)
        op.soffset, so = ("value", x), str(x)
    elif arch in ("gfx1100", "gfx1201"):
        op.soffset, so = ("value", 0), "null"
    else:
        op.soffset, so = ("value", 0), "0"
    fmt = ""
    if name.startswith("tbuffer"):
        op.format = pick_format(rng, gfx9, "d16" in name)
        fmt = f" format:{op.format}"
    address = "off"
    if op.addr is not None:
        address = "v[1:2]" if {"offen", "idxen"} <= set(flags) else "v1"
        if arch in ("gfx90a", "gfx942", "gfx950") and address == "v[1:2]":
            address, op.addr = "v[2:3]", 2
    reg = "" if "lds" in flags else vr(BDATA, size) + ", "
    order = ("idxen", "offen", "", "glc", "sc0", "th:TH_ATOMIC_RETURN", "lds")
    words = " ".join(f or f"offset:{offset}" for f in order if not f or f in flags)
    text = f"{name} {reg}{address}, s[{DESC}:{DESC + 3}], {so}{fmt} {words}"
    return text, op, lambda r, b: buffer_trial(r, bench, b, op, size, align, what)


def pick_format(rng: np.random.Generator, gfx9: bool, d16: bool = False) -> int:
    """A format that exists: gfx9 data and number format; gfx11, gfx12 unified; d16: no integers of 32 bits, of which
    nothing says how they become 16."""
    while True:
        d, n = int(rng.integers(1, 15)), int(rng.choice([0, 1, 2, 3, 4, 5, 7]))
        fmt = d | n << 4 if gfx9 else int(rng.integers(1, 64))
        if gfx9 and not exists9(d, n):
            continue
        bits, kind = (mm.DATA_FORMATS[d], mm.NUM_FORMATS[n]) if gfx9 else mm.unified(fmt)
        if not (d16 and max(bits) == 32 and kind != "float"):
            return fmt


def exists9(d: int, n: int) -> bool:
    """Does gfx9 have the data format with the number format?"""
    bits = max(mm.DATA_FORMATS[d])
    kind = mm.NUM_FORMATS[n]
    if bits == 32:
        return kind in ("uint", "sint", "float")
    if d in (6, 7):
        return kind == "float"
    return kind != "float" or bits == 16


def buffer_trial(
    rng: np.random.Generator, bench: Bench, base: int, op: mm.Op, size: int, align: int, what: tuple | None
) -> Trial:
    t = state(rng, bench, base)
    st = t.before
    gfx9 = st.gfx9
    if what and what[1] in ("f", "f16", "bf16"):
        fill_buffer_floats(rng, t, what[1] if what[1] != "f" else f"f{what[2]}", what, bench)
    if what and what[0] == "cmpswap" and rng.random() < 0.8:
        n = what[2] // 32
        pick = st.v[BDATA + n : BDATA + 2 * n, :3].T.copy()
        t.mem[:] = pick[rng.integers(0, 3, SLICE // (4 * n))].tobytes()
    unit = max(align, 1)
    kind = int(rng.integers(0, 4))  # 0, 1: raw; 2: records; 3: swizzled
    if kind == 3:
        unit = max(unit, min(size, 16))
    start = base + MIDDLE + int(rng.integers(0, 16)) * max(unit, 1)
    if kind == 3 or not what and align == 1 and rng.random() < 0.7:
        start &= ~3
    idxen = "idxen" in op.flags
    stride = 0
    if kind >= 2 or (idxen and rng.random() < 0.7):
        stride = int(rng.choice([4, 8, 12, 16, 20, 24, 32, 48])) // min(unit, 8) * min(unit, 8) or unit
    swizzle = 0
    if kind == 3:
        swizzle = 1 if gfx9 else int(rng.choice([1, 3]))
    if swizzle and not gfx9:
        stride = (stride + 15) // 16 * 16
    if swizzle and max(size if not what else what[2] // 8, 4) > (4 if gfx9 else 2 << swizzle):
        swizzle = 0  # how a datum of several elements lies is not published
    n = int(rng.integers(0, 4))
    word3 = n << 21 | (1 << 23 if rng.random() < 0.25 else 0)
    word3 |= sum(int(rng.choice([0, 1, 4, 5, 6, 7])) << 3 * k for k in range(4))
    if gfx9:
        if word3 >> 23 & 1:
            # the data format is part of the stride: 16 KiB and more leads out of the slice but for lane 0
            word3 |= (1 << 15 if rng.random() < 0.1 and not swizzle else 0) | int(rng.integers(0, 8)) << 12
        else:
            f = pick_format(rng, True)
            word3 |= (f & 15) << 15 | (f >> 4) << 12
    else:
        word3 |= int(rng.integers(0, 4)) << 18 if bench.arch == "gfx1201" and rng.random() < 0.3 else 0
        word3 |= pick_format(rng, False, "d16" in op.name) << 12 | int(rng.integers(0, 4)) << 28
    if "format" in op.name and gfx9 and not op.name.startswith("tbuffer"):
        f = pick_format(rng, True, "d16" in op.name)
        word3 = word3 & ~(1 << 23 | 15 << 15 | 7 << 12) | (f & 15) << 15 | (f >> 4) << 12
    so_value = int(rng.choice([0, rng.integers(0, 300), rng.integers(0, 40)])) // unit * unit
    if op.soffset == SOFF:
        st.s[SOFF] = so_value
    if "lds" in op.flags:
        st.m0 = int(rng.integers(0, 900)) * 4
    elif op.soffset == -1:
        st.m0 = so_value
    bytes_ = int(rng.choice([0, 1, 2, 3, 5, 64, 256, 600, 1024, rng.integers(0, 1400)]))
    records = bytes_
    if stride:
        records = int(rng.choice([0, 1, 7, 20, 40, rng.integers(0, 64), bytes_]))
    if rng.random() < 0.1 and kind < 2:
        records = mm.M32
    st.s[DESC], st.s[DESC + 1] = start & mm.M32, start >> 32 & 0xFFFF | stride << 16
    st.s[DESC + 1] |= (swizzle << 31 if gfx9 else swizzle << 30) | (int(rng.integers(0, 2)) << 30 if gfx9 else 0)
    if "store" in op.name and "format" in op.name:  # what DST_SEL does to stores is not published
        word3 = word3 & ~0xFFF | 0xFAC
    if rng.random() < 0.05 and ("format" not in op.name or op.name.startswith("tbuffer")):  # no buffer at all
        word3 &= ~(15 << 15 if gfx9 else 63 << 12)
    st.s[DESC + 2], st.s[DESC + 3] = records, word3
    fill_addresses(rng, st, op, unit, stride, records)
    return t


def fill_addresses(rng: np.random.Generator, st: mm.State, op: mm.Op, unit: int, stride: int, records: int) -> None:
    """Index and offset of each lane: inside, around the end, far away, and wrapping."""
    if op.addr is None:
        return
    idxen, offen = "idxen" in op.flags, "offen" in op.flags
    lanes = st.lanes
    few = rng.random() < 0.25
    if idxen:
        top = min(records + 4, 70) if stride else 40
        index = rng.integers(0, 3 if few else max(top, 1), lanes)
        wild = np.array([records, records - 1, records + 1, 1 << 31, mm.M32], np.int64) & mm.M32
        st.v[op.addr] = np.where(rng.random(lanes) < 0.1, wild[rng.integers(0, 5, lanes)], index).astype(np.uint32)
    if offen:
        end = (stride + 8) if stride and idxen else min(records + 24, 1500)
        off = rng.integers(0, 3 if few else max(end // unit, 1), lanes) * unit
        if rng.random() < 0.4:
            off = off - op.offset // unit * unit  # wraps, and comes back with the offset
        wild = np.array(
            [1 << 31, mm.M32 - 15, records // unit * unit, 1 << 20, (mm.M32 - 3 - op.offset) // unit * unit], np.int64
        )
        off = np.where(rng.random(lanes) < 0.1, wild[rng.integers(0, 5, lanes)] // unit * unit, off)
        st.v[op.addr + idxen] = (off & mm.M32).astype(np.uint32)


def fill_buffer_floats(rng: np.random.Generator, t: Trial, kind: str, what: tuple, bench: Bench) -> None:
    nan = int(rng.integers(0, 3))
    st = t.before
    w = 2 if kind == "f64" else 1
    raw = floats(rng, 16 * st.lanes, kind, nan == 2, True, True).view(np.uint32)
    for k in range(4):
        st.v[BDATA + k] = raw.reshape(-1, w)[: st.lanes * (4 // w)].reshape(4 // w, st.lanes, w)[k // w, :, k % w]
    t.mem[:] = floats(rng, SLICE, kind, nan == 1, True, True).tobytes()


# ---- flat, global, scratch: v[2:3] or v2 the address, v4.. data, v10.. result, s[20:21] or s22 the scalar one -----


def flat_case(rng: np.random.Generator, bench: Bench, name: str) -> Case:
    """A flat, global or scratch instruction in one of its addressing modes."""
    arch, gfx9 = bench.arch, bench.arch in mm.GFX9
    fam, rest = name.split("_", 1)
    what = mm.atomic_of(rest[7:], False) if rest.startswith("atomic_") else None
    lds = rest.startswith("load_lds_")
    plain_lds = arch == "gfx90a" and fam != "flat" and rest.startswith("load") and "d16" not in rest
    plain_lds = plain_lds and not rest.endswith(("x2", "x3", "x4")) and rng.random() < 0.4
    if what:
        n = what[2] // 8
        size = n * (2 if what[0] == "cmpswap" else 1)
    else:
        size = n = mm.plain(
            rest.removeprefix("load_lds_").split("_", 1)[-1].removeprefix("addtid_") if not lds else rest[9:]
        )[0]
    low, high = {"flat": (0, 4096), "global": (-4096, 4096), "scratch": (-4096, 4096)}[fam]
    if arch == "gfx1201":
        low, high = -(1 << 23), 1 << 23
    near = [0, *rng.integers(max(low, -64), 64, 2), *rng.integers(max(low, -1500), 1500, 2), low, high - 1]
    align = n if what else 1
    offset = int(rng.choice(near)) // align * align
    op = mm.Op(name, dst=10, addr=2, data=4, offset=offset)
    mode = int(rng.integers(0, 4))
    if fam == "scratch" and arch == "gfx90a":  # one register, not more, not fewer
        mode = 1 + mode % 2
    flags = []
    if what and (rng.random() < 0.5 or what[0] in ("sub_clamp", "cond_sub", "ordered_add")):
        flags.append("glc" if arch in ("gfx90a", "gfx1100") else "sc0" if gfx9 else "th:TH_ATOMIC_RETURN")
    if plain_lds:
        lds, op.flags = True, ("lds",)
    else:
        op.flags = tuple(flags)
    parts = []
    if rest.startswith("load") and not lds or flags:
        parts.append(vr(10, n))
    if "addtid" in rest:
        op.addr = None
        where = ["off"] if mode == 0 else []
        op.saddr = None if mode == 0 else 20
        scalar = [] if mode == 0 else ["s[20:21]"]
    elif fam == "scratch":
        op.addr = 2 if mode & 1 else None
        op.saddr = 22 if mode & 2 else None
        where, scalar = ["v2" if mode & 1 else "off"], ["s22" if mode & 2 else "off"]
    elif fam == "flat":
        where, scalar = ["v[2:3]"], []
    else:
        op.saddr = 20 if mode & 1 else None
        where, scalar = ["v2" if mode & 1 else "v[2:3]"], ["s[20:21]" if mode & 1 else "off"]
    parts += where
    if not rest.startswith("load"):
        parts.append(vr(4, size))
    text = f"{name} {', '.join(parts + scalar)} offset:{offset} {' '.join(op.flags)}"
    return text, op, lambda r, b: flat_trial(r, bench, b, op, fam, n, align, what, lds)


def flat_trial(
    rng: np.random.Generator,
    bench: Bench,
    base: int,
    op: mm.Op,
    fam: str,
    n: int,
    align: int,
    what: tuple | None,
    lds: bool,
) -> Trial:
    t = state(rng, bench, base, scratch=fam != "global")
    st = t.before
    st.shared_base, st.private_base = bench.apertures()
    lanes = st.lanes
    if what and what[1] in ("f", "f16", "bf16"):
        fill_buffer_floats(rng, t, what[1] if what[1] != "f" else f"f{what[2]}", what, bench)
    if what and what[0] in ("cmpswap", "ordered_add") and rng.random() < 0.8:
        w = what[2] // 32
        first = BDATA + w if what[0] == "cmpswap" else BDATA
        pick = st.v[first : first + w, :3].T.copy()
        t.mem[:] = pick[rng.integers(0, 3, SLICE // (4 * w))].tobytes()
    if lds:
        st.m0 = int(rng.integers(0, 1000)) * 4
    few = rng.random() < 0.25
    step = align if what else int(rng.choice([1, n if n != 12 else 4, 4]))
    if fam == "scratch":
        room = max((SCRATCH - n) // step, 1)
        at = rng.integers(0, room, lanes) * step - op.offset
        if op.addr is None:
            at[:] = at[0]
        s = int(rng.choice([0, rng.integers(0, 40), -int(rng.integers(0, 40)), rng.integers(0, 1 << 32)])) & mm.M32
        if op.saddr is not None:
            st.s[22] = s if op.addr is not None else int(at[0]) & mm.M32
            at = at - st.s[22] if op.addr is not None else at
        if op.addr is None and op.saddr is None and not 0 <= op.offset <= SCRATCH - n:
            st.exec = 0
        if op.addr is not None:
            st.v[2] = (at & mm.M32).astype(np.uint32)
        return t
    if "addtid" in op.name:
        st.s[20], st.s[21] = (base + MIDDLE - op.offset) & mm.M32, (base + MIDDLE - op.offset) >> 32
        return t
    room = SLICE // 2 // step
    at = base + 1024 + rng.integers(0, 8 if few else room, lanes).astype(object) * step - op.offset
    if fam == "flat":
        kind = rng.integers(0, 6, lanes) if st.scratch else rng.integers(0, 5, lanes)
        for i in range(lanes):
            inner = int(rng.integers(0, (LDS if kind[i] == 4 else SCRATCH) // step)) * step - op.offset
            if kind[i] >= 4:  # an address below its aperture is none of it
                at[i] = (st.shared_base if kind[i] == 4 else st.private_base) + inner
    if op.saddr is not None:
        back = int(rng.choice([0, 64, rng.integers(0, 1 << 31), rng.integers(0, 1 << 32)])) // align * align
        lowest = int(min(at)) - back
        st.s[20], st.s[21] = lowest & mm.M32, lowest >> 32 & mm.M32
        at = at - lowest
        st.v[2] = np.array([int(x) & mm.M32 for x in at], np.uint32)
        for i in range(lanes):
            if int(at[i]) > mm.M32:
                st.exec &= ~(1 << i)
        return t
    st.v[2] = np.array([int(x) & mm.M32 for x in at], np.uint32)
    st.v[3] = np.array([int(x) >> 32 & mm.M32 for x in at], np.uint32)
    return t


# ---- scalar loads --------------------------------------------------------------------------------------------------


def scalar_case(rng: np.random.Generator, bench: Bench, name: str) -> Case:
    """Scalar loads, stores, atomics: s[20:23] the base or descriptor, s24 an offset, s[28:43] data or result."""
    arch = bench.arch
    buffer_form, atomic = name.startswith("s_buffer"), "_atomic_" in name
    size = name.rsplit("_", 1)[1]
    if atomic:
        n = 4 * (2 if name.endswith("_x2") else 1) * (2 if "cmpswap" in name else 1)
    else:
        n = {"u8": 1, "i8": 1, "u16": 2, "i16": 2}.get(size) or (
            int(size[1:]) // 8 if size[0] == "b" else 4 * int(size[6:] or 1)
        )
    op = mm.Op(name, dst=28, srsrc=DESC, flags=("glc",) if atomic and rng.random() < 0.6 else ())
    form = int(rng.integers(0, 4))
    low = 0 if buffer_form or form == 3 else -1500
    op.offset = int(rng.choice([0, 4, 64, rng.integers(low, 1500), rng.integers(low, 1500)]))
    if atomic:
        op.offset = op.offset // 8 * 8
    pick = int(rng.integers(0, 2)) and "load" in name
    reg, op.soffset = (f"s{SOFF}", SOFF) if pick else ("m0", -1)
    if form == 0 and arch in mm.GFX9 or form == 0 and arch == "gfx1100":
        op.offset, tail = 0, reg
    elif form <= 1:
        tail = f"{reg} offset:{op.offset}"
    else:
        op.soffset, tail = None, f"{op.offset}" if op.offset >= 0 else f"-{-op.offset}"
    dst = f"s[28:{28 + n // 4 - 1}]" if n > 4 else "s28"
    src = f"s[{DESC}:{DESC + 3}]" if buffer_form else f"s[{DESC}:{DESC + 1}]"
    text = " ".join([f"{name} {dst}, {src}, {tail}", *op.flags])
    return text, op, lambda r, b: scalar_trial(r, bench, b, op, buffer_form)


def scalar_trial(rng: np.random.Generator, bench: Bench, base: int, op: mm.Op, buffer_form: bool) -> Trial:
    t = state(rng, bench, base)
    st = t.before
    st.exec = (1 << st.lanes) - 1
    start = base + MIDDLE + int(rng.choice([0, 4, 16, 1, 2, 3, 7]))
    value = int(rng.choice([0, 4, rng.integers(0, 1400)]))
    if "_atomic_" in op.name:
        start, value = base + MIDDLE + 8 * int(rng.integers(0, 4)), value // 8 * 8
    if "_scratch_" in op.name:
        value = (value + max(-op.offset, 0)) // 64 + 1
    if "cmpswap" in op.name and rng.random() < 0.7:  # the comparison holds
        w = 2 if op.name.endswith("_x2") else 1
        t.mem[:] = b"".join(st.s[28 + w + k].to_bytes(4, "little") for k in range(w)) * (SLICE // (4 * w))
    if op.soffset is not None:
        if op.offset < 0 and "_scratch_" not in op.name:
            value += -op.offset  # a sum below 0 is not allowed
        if op.soffset == -1:
            st.m0 = value
        else:
            st.s[SOFF] = value
    elif op.offset < 0:
        start += 4 * (-op.offset // 4) if rng.random() < 0.5 else 0
    st.s[DESC], st.s[DESC + 1] = start & mm.M32, start >> 32 & mm.M32
    if buffer_form:
        stride = int(rng.choice([0, 0, 4, 12, 16]))
        st.s[DESC + 1] = start >> 32 & 0xFFFF | stride << 16
        reach = op.offset + value + 40
        records = int(rng.choice([0, 1, 7, reach, rng.integers(0, 1600), max(reach - 30, 0)]))
        st.s[DESC + 2] = records // max(stride, 1)
        st.s[DESC + 3] = 0x27000 if st.gfx9 else 0x31016000
    return t
