"""A model of the memory instructions of all chips in plain Python, written from AMD's ISA documents (pseudocode, tables
of buffer descriptors), Mesa's and LLVM's notes on them, not from the simulator. It works on the fields of an
instruction (:class:`Op`), one lane after the other, and knows nothing of encodings, checks or time.

Addresses are those of the host; memory is a list of regions. What leads outside raises :class:`Outside`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from memory_numbers import FORMATS, Outside, decode, encode, fadd, flushed, fminmax, is_nan, signed

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
GFX9 = ("gfx90a", "gfx942", "gfx950")


@dataclass
class Op:
    """An instruction: mnemonic and fields. Registers are numbers (None: absent); soffset is the number of a scalar
    register, -1 (M0) or ("value", x); flags as the assembler spells them."""

    name: str
    dst: int | None = None
    addr: int | None = None
    data: int | None = None
    data2: int | None = None
    saddr: int | None = None
    srsrc: int | None = None
    soffset: int | tuple[str, int] | None = None
    offset: int = 0
    offset0: int = 0
    offset1: int = 0
    format: int = 0
    flags: tuple[str, ...] = ()


@dataclass
class State:
    """One wave and the memory that it sees."""

    arch: str
    lanes: int
    v: np.ndarray  # [registers][lanes] uint32
    s: dict[int, int]
    exec: int
    m0: int
    lds: bytearray
    regions: list[tuple[int, bytearray]] = field(default_factory=list)
    scratch: list[bytearray] = field(default_factory=list)  # a lane each
    shared_base: int = 0  # high halves of the flat apertures, shifted
    private_base: int = 0
    denorm: tuple[int, int] = (3, 3)  # MODE: subnormals of f32, of f16 and f64: bit 0 keeps operands, bit 1 results
    lane: int = 0  # the one being served
    written: list[tuple[int, int]] = field(default_factory=list)  # (lane, address) of each byte of global memory

    @property
    def gfx9(self) -> bool:
        return self.arch in GFX9

    def active(self, lane: int) -> bool:
        return bool(self.exec >> lane & 1)

    def get(self, reg: int, lane: int, n: int) -> int:
        """n bytes of registers reg, reg + 1, ..."""
        x = 0
        for k in range((n + 3) // 4):
            x |= int(self.v[reg + k][lane]) << 32 * k
        return x & ((1 << 8 * n) - 1)

    def put(self, reg: int, lane: int, n: int, x: int) -> None:
        for k in range((n + 3) // 4):
            self.v[reg + k][lane] = x >> 32 * k & M32

    def load(self, at: int, n: int) -> bytes:
        for base, mem in self.regions:
            if base <= at and at + n <= base + len(mem):
                return bytes(mem[at - base : at - base + n])
        raise Outside(f"{n} bytes at {at:#x}")

    def store(self, at: int, raw: bytes) -> None:
        for base, mem in self.regions:
            if base <= at and at + len(raw) <= base + len(mem):
                mem[at - base : at - base + len(raw)] = raw
                self.written += [(self.lane, at + k) for k in range(len(raw))]
                return
        raise Outside(f"{len(raw)} bytes at {at:#x}")


# ---- read, modify, write -----------------------------------------------------------------------------------------

OLD_TYPES = {"add": "u", "sub": "u", "smin": "i", "umin": "u", "smax": "i", "umax": "u", "inc": "u", "dec": "u"}
ALIAS = {"smin": "min", "umin": "min", "smax": "max", "umax": "max", "csub": "sub_clamp",
         "wrxchg": "swap", "storexchg": "swap", "cmpst": "cmpstore", "min_num": "min", "max_num": "max"}  # fmt: skip


def atomic_of(rest: str, ds: bool) -> tuple[str, str, int] | None:
    """(operation, type letter, bits) of what follows "ds_" or "..._atomic_"."""
    rest = rest.replace("_rtn_", "_")
    m = re.fullmatch(r"(pk_add)_(f16|bf16)", rest)
    if m:
        return m[1], m[2], 32
    m = re.fullmatch(r"(\w+?)_([ubif])(32|64)", rest)
    if m:
        return ALIAS.get(m[1], m[1]), m[2], int(m[3])
    if ds:
        return None
    m = re.fullmatch(r"(swap|cmpswap|add|sub|[su]min|[su]max|and|or|xor|inc|dec)(_x2)?", rest)
    return (ALIAS.get(m[1], m[1]), OLD_TYPES.get(m[1], "b"), 64 if m[2] else 32) if m else None


def rmw_lds(st: State, what: tuple[str, str, int], mem: int, d: int, d2: int) -> int:
    """rmw in LDS, where MODE says what floats do with subnormals (AMD's chapters on float atomics)."""
    op, typ, bits = what
    gfx12 = st.arch == "gfx1201"
    if typ not in ("f", "f16", "bf16"):
        return rmw(op, typ, bits, mem, d, d2)
    if op == "pk_add":
        low, high = (rmw_lds(st, (f"half_{typ}", "f", 16), mem >> k & 0xFFFF, d >> k & 0xFFFF, 0) for k in (0, 16))
        return low | high << 16
    kind = op[5:] if bits == 16 else f"f{bits}"
    keep = st.denorm[kind != "f32"]
    ins = (lambda x: x) if keep & 1 else (lambda x: flushed(x, kind))
    if op == "add" or bits == 16:
        if kind == "f64":
            return fadd(mem, d, kind)
        total = fadd(ins(mem), ins(d), kind)
        return total if keep & 2 else flushed(total, kind)
    if op in ("cmpstore", "cmpswap"):
        return ins(rmw(op, typ, bits, ins(mem), ins(d), ins(d2)))
    best = rmw(op, typ, bits, ins(mem), ins(d), 0, gfx12)
    if gfx12 or keep & 1:
        return best
    if ins(mem) == ins(d) and mem != d:
        raise Outside("two numbers that flush to one")
    return mem if best == ins(mem) else d if best == ins(d) else best


def rmw(op: str, typ: str, bits: int, mem: int, d: int, d2: int, num: bool = False) -> int:
    """New memory. d, d2: first and second datum in the order of AMD's pseudocode (src, cmp of cmpswap)."""
    mask = (1 << bits) - 1
    if typ == "f":
        kind = f"f{bits}"
        if op == "add":
            return fadd(mem, d, kind)
        if op in ("min", "max"):
            return fminmax(mem, d, kind, op == "min", num)
        x, y = decode(mem, kind), decode(d2, kind)  # cmpswap, cmpstore
        return d if x == y else mem
    if op == "pk_add":
        return fadd(mem & 0xFFFF, d & 0xFFFF, typ) | fadd(mem >> 16, d >> 16, typ) << 16
    key = (lambda x: signed(x, bits)) if typ == "i" else (lambda x: x)
    table = {
        "swap": lambda: d, "add": lambda: mem + d, "sub": lambda: mem - d, "rsub": lambda: d - mem,
        "and": lambda: mem & d, "or": lambda: mem | d, "xor": lambda: mem ^ d,
        "min": lambda: min(mem, d, key=key), "max": lambda: max(mem, d, key=key),
        "inc": lambda: 0 if mem >= d else mem + 1, "dec": lambda: d if mem == 0 or mem > d else mem - 1,
        "cmpswap": lambda: d if mem == d2 else mem, "cmpstore": lambda: d if mem == d2 else mem,
        "mskor": lambda: mem & ~d | d2, "wrap": lambda: mem - d if mem >= d else mem + d2,
        "sub_clamp": lambda: max(mem - d, 0), "cond_sub": lambda: mem - d if mem >= d else mem,
        "ordered_add": lambda: mem,
    }  # fmt: skip
    return table[op]() & mask


# ---- plain loads and stores: what of the register, how many bytes ---------------------------------------------------

SIZES = {"u8": 1, "i8": 1, "ubyte": 1, "sbyte": 1, "byte": 1, "b8": 1,
         "u16": 2, "i16": 2, "ushort": 2, "sshort": 2, "short": 2, "b16": 2,
         "dword": 4, "b32": 4, "dwordx2": 8, "b64": 8, "dwordx3": 12, "b96": 12, "dwordx4": 16, "b128": 16}  # fmt: skip


def plain(rest: str) -> tuple[int, bool, int | None]:
    """(bytes, sign, half of the register or None) of "ubyte_d16_hi", "d16_hi_u8", "b96", ..."""
    half = None
    if "d16" in rest:
        half = int("_hi" in rest)
        rest = re.sub(r"_?d16(_hi)?_?", "", rest)
    return SIZES[rest], rest in ("i8", "i16", "sbyte", "sshort"), half


def write_loaded(st: State, dst: int, lane: int, raw: bytes, sign: bool, half: int | None) -> None:
    n = len(raw)
    x = int.from_bytes(raw, "little", signed=sign)
    if half is None:
        st.put(dst, lane, max(n, 4), x & ((1 << 8 * max(n, 4)) - 1))
        return
    keep = 0 if st.gfx9 else int(st.v[dst][lane]) & (0xFFFF if half else 0xFFFF0000)
    st.v[dst][lane] = keep | (x & 0xFFFF) << 16 * half


# ---- LDS ----------------------------------------------------------------------------------------------------------


def lds_read(st: State, at: int, n: int) -> bytes:
    return bytes(st.lds[at : at + n]) if at + n <= len(st.lds) else b"\0" * n


def lds_write(st: State, at: int, raw: bytes) -> None:
    if at + len(raw) <= len(st.lds):
        st.lds[at : at + len(raw)] = raw


def lds_rmw(st: State, at: int, what: tuple[str, str, int], d: int, d2: int) -> int:
    n = what[2] // 8
    old = int.from_bytes(lds_read(st, at, n), "little")
    if at + n <= len(st.lds):
        lds_write(st, at, rmw_lds(st, what, old, d, d2).to_bytes(n, "little"))
    return old


def swizzle_source(offset: int, lane: int, data: list[int], valid: list[bool], gfx9: bool) -> int:
    """ds_swizzle_b32: what a lane gets."""
    if offset >= 0xE000:  # FFT
        mask = offset & 0x1F
        j = int(f"{lane & 31:05b}"[::-1], 2) >> mask.bit_count()
        j |= lane & mask
        j |= lane & 0x20
    elif offset >= 0xC000:  # rotate by 0..31 within 32 lanes; bit 10: to the right
        turn, mask = offset >> 5 & 31, offset & 0x1F
        turn = -turn if offset >> 10 & 1 else turn
        j = lane & mask | (lane + turn) & (~mask & 31) | lane & 32
    elif offset >= 0x8000:  # four lanes
        j = lane & ~3 | offset >> 2 * (lane & 3) & 3
    else:
        j = (lane & 31 & offset | offset >> 5 & 31) ^ offset >> 10 & 31
        j |= lane & 32
    return data[j] if valid[j] else 0


def permute(st: State, op: Op) -> None:
    lanes = st.lanes
    group = 32 if st.arch == "gfx1100" else lanes
    addr = [(int(st.v[op.addr][i]) + op.offset & M32) // 4 % group for i in range(lanes)]
    data = [int(st.v[op.data][i]) for i in range(lanes)]
    out = [0] * lanes
    for i in range(lanes):
        j = addr[i] | i // group * group
        if op.name == "ds_permute_b32":
            if st.active(i):
                out[j] = data[i]
        elif st.active(j) or op.name == "ds_bpermute_fi_b32":
            out[i] = data[j]
    for i in range(lanes):
        if st.active(i):
            st.v[op.dst][i] = out[i]


def two_address(st: State, op: Op, lane: int) -> None:
    bits = int(op.name[-2:])
    n = bits // 8
    step = n * (64 if "st64" in op.name or "stride64" in op.name else 1)
    base = int(st.v[op.addr][lane])
    a, b = (base + op.offset0 * step) & M32, (base + op.offset1 * step) & M32
    if "xchg" in op.name:
        x, y = (int.from_bytes(lds_read(st, p, n), "little") for p in (a, b))
        lds_write(st, a, st.get(op.data, lane, n).to_bytes(n, "little"))
        lds_write(st, b, st.get(op.data2, lane, n).to_bytes(n, "little"))
        st.put(op.dst, lane, 2 * n, x | y << bits)
    elif "read" in op.name or "load" in op.name:
        st.put(op.dst, lane, 2 * n, int.from_bytes(lds_read(st, a, n) + lds_read(st, b, n), "little"))
    else:
        lds_write(st, a, st.get(op.data, lane, n).to_bytes(n, "little"))
        lds_write(st, b, st.get(op.data2, lane, n).to_bytes(n, "little"))


def ds(st: State, op: Op) -> None:
    rest = op.name[3:]
    lanes = [i for i in range(st.lanes) if st.active(i)]
    if "permute" in rest:
        permute(st, op)
    elif rest == "swizzle_b32":
        data = [int(x) for x in st.v[op.addr][: st.lanes]]
        valid = [st.active(i) for i in range(st.lanes)]
        for i in lanes:
            st.v[op.dst][i] = swizzle_source(op.offset, i, data, valid, st.gfx9)
    elif rest in ("append", "consume"):
        at = op.offset + (st.m0 & 0xFFFF)
        old = int.from_bytes(lds_read(st, at, 4), "little")
        new = old + len(lanes) if rest == "append" else old - len(lanes)
        lds_write(st, at, (new & M32).to_bytes(4, "little"))
        for i in lanes:
            st.v[op.dst][i] = old
    elif "addtid" in rest:
        for i in lanes:
            at = op.offset + (st.m0 & 0xFFFF) + 4 * i
            if "read" in rest or "load" in rest:
                st.v[op.dst][i] = int.from_bytes(lds_read(st, at, 4), "little")
            else:
                lds_write(st, at, st.get(op.data, i, 4).to_bytes(4, "little"))
    elif re.search(r"read2|write2|2addr|xchg2", rest):
        for i in lanes:
            two_address(st, op, i)
    elif rest == "condxchg32_rtn_b64":
        for i in lanes:
            at = (int(st.v[op.addr][i]) + op.offset) & 0xFFF8
            d, old = st.get(op.data, i, 8), lds_read(st, at, 8)
            for k in (0, 1):
                w = d >> 32 * k & M32
                if w >> 31:
                    lds_write(st, at + 4 * k, (w & 0x7FFFFFFF).to_bytes(4, "little"))
            st.put(op.dst, i, 8, int.from_bytes(old, "little"))
    else:
        ds_one(st, op, rest, lanes)


def ds_one(st: State, op: Op, rest: str, lanes: list[int]) -> None:
    """Operations on one address a lane."""
    verb, _, size = rest.partition("_")
    for i in lanes:
        st.lane = i
        at = (int(st.v[op.addr][i]) + op.offset) & M32
        if verb in ("read", "load"):
            n, sign, half = plain(size)
            write_loaded(st, op.dst, i, lds_read(st, at, n), sign, half)
        elif verb in ("write", "store"):
            n, _, half = plain(size)
            raw = st.get(op.data, i, max(n, 4)).to_bytes(max(n, 4), "little")
            lds_write(st, at, raw[2:][:n] if half else raw[:n])
        else:
            what = atomic_of(rest, True)
            assert what, op.name
            n = what[2] // 8
            d = st.get(op.data, i, n)
            d2 = st.get(op.data2, i, n) if op.data2 is not None else 0
            if rest.startswith("cmpst") and not rest.startswith("cmpstore"):
                d, d2 = d2, d  # gfx9: the comparison comes first
            old = lds_rmw(st, at, what, d, d2)
            if "_rtn_" in rest:
                st.put(op.dst, i, n, old)


# ---- buffers --------------------------------------------------------------------------------------------------------


@dataclass
class Place:
    """Where a lane of a buffer instruction goes."""

    at: int
    check: object  # (first byte of the piece, bytes) -> inside?


def scalar(st: State, x: int | tuple[str, int] | None) -> int:
    if x is None:
        return 0
    if isinstance(x, tuple):
        return x[1] & M32
    return st.m0 if x == -1 else st.s[x]


def place(st: State, op: Op, lane: int, desc: list[int]) -> Place:
    idxen, offen = "idxen" in op.flags, "offen" in op.flags
    w0, w1, records, w3 = desc
    stride = w1 >> 16 & 0x3FFF
    tid = w3 >> 23 & 1
    if st.gfx9 and tid and "format" not in op.name:
        stride |= (w3 >> 15 & 15) << 14
    if st.arch == "gfx1201":
        stride *= (1, 4, 8, 32)[w3 >> 18 & 3]
    a = op.addr
    index = int(st.v[a][lane]) if idxen else 0
    off = int(st.v[a + idxen][lane]) if offen else 0
    index = index + (lane if tid else 0) & M32
    off = off + op.offset & M32
    so = scalar(st, op.soffset)
    swizzle = w1 >> 31 if st.gfx9 else w1 >> 30 & 3
    base = w0 | (w1 & 0xFFFF) << 32
    if swizzle:
        n = (8, 16, 32, 64)[w3 >> 21 & 3]
        e = 4 if st.gfx9 else (0, 4, 8, 16)[swizzle]
        total = off + so & M32 if st.arch == "gfx1201" else off
        rel = (index // n * stride + total // e * e) * n + index % n * e + total % e
        at = base + rel + (0 if st.arch == "gfx1201" else so)
    else:
        rel = index * stride + off
        at = base + rel + so
    unbound = not tid and not (w3 >> 15 & 15 if st.gfx9 else w3 >> 12 & 63)

    def inside(k: int, n: int) -> bool:
        if unbound:
            return False
        if st.gfx9:
            if tid and not idxen:
                return True
            if stride and idxen:
                return index < records
            return rel + k + n <= max(records - so, 0)
        select = w3 >> 28 & 3
        if select == 2:
            return records != 0
        if select == 1:
            return index < records
        if select == 0 or (swizzle and stride):
            return index < records and off + k + n <= stride
        return rel + k + n <= max(records - so, 0)

    return Place(at & M64, inside)


def buffer(st: State, op: Op) -> None:
    desc = [st.s[op.srsrc + k] for k in range(4)]
    rest = op.name.split("_", 1)[1]
    for i in range(st.lanes):
        if not st.active(i):
            continue
        st.lane = i
        p = place(st, op, i, desc)
        if rest.startswith("atomic_"):
            buffer_atomic(st, op, i, p, rest[7:])
        elif "format" in rest:
            typed(st, op, i, p, desc, rest)
        elif rest.startswith("load_"):
            n, sign, half = plain(rest[5:])
            raw = pieces(st, p, n)
            if "lds" in op.flags:
                to_lds(st, op, i, raw, sign)
            else:
                write_loaded(st, op.data, i, raw, sign, half)
        else:
            n, _, half = plain(rest[6:])
            raw = st.get(op.data, i, max(n, 4)).to_bytes(max(n, 4), "little")
            raw = raw[2:][:n] if half else raw[:n]
            for k in range(0, n, 4):
                part = raw[k : k + 4]
                if p.check(k, len(part)):
                    st.store(p.at + k, part)


def pieces(st: State, p: Place, n: int) -> bytes:
    out = b""
    for k in range(0, n, 4):
        size = min(4, n - k)
        out += st.load(p.at + k, size) if p.check(k, size) else b"\0" * size
    return out


def to_lds(st: State, op: Op, lane: int, raw: bytes, sign: bool) -> None:
    """A load straight to LDS: M0 + offset + a slot for each lane."""
    n = max(4, len(raw))
    slot = 16 if n > 4 else 4
    x = int.from_bytes(raw, "little", signed=sign) & ((1 << 8 * n) - 1)
    m0 = st.m0 & 0x3FFFC if st.arch == "gfx950" else st.m0 & 0xFFFF
    lds_write(st, m0 + op.offset + lane * slot & M32, x.to_bytes(n, "little"))


def atomic_data(st: State, op: Op, lane: int, what: tuple[str, str, int]) -> tuple[int, int]:
    n = what[2] // 8
    d = st.get(op.data, lane, n)
    return d, st.get(op.data + n // 4, lane, n) if what[0] == "cmpswap" else 0


def mem_rmw(st: State, at: int, what: tuple[str, str, int], d: int, d2: int) -> int:
    n = what[2] // 8
    old = int.from_bytes(st.load(at, n), "little")
    st.store(at, rmw_mem(st, what, old, d, d2).to_bytes(n, "little"))
    return old


def rmw_mem(st: State, what: tuple[str, str, int], old: int, d: int, d2: int) -> int:
    """rmw in memory: sums of f32 flush subnormals on gfx90a."""
    if what == ("add", "f", 32) and st.arch == "gfx90a":
        return flushed(fadd(flushed(old, "f32"), flushed(d, "f32"), "f32"), "f32")
    return rmw(*what, old, d, d2, st.arch == "gfx1201")


def returns(op: Op) -> bool:
    return any(f in op.flags for f in ("glc", "sc0", "th:TH_ATOMIC_RETURN"))


def buffer_atomic(st: State, op: Op, lane: int, p: Place, rest: str) -> None:
    what = atomic_of(rest, False)
    n = what[2] // 8
    old = 0
    if p.check(0, n):
        old = mem_rmw(st, p.at, what, *atomic_data(st, op, lane, what))
    if returns(op):
        st.put(op.data, lane, n, old)


# ---- typed buffers: bits of the components, first component lowest ---------------------------------------------------

DATA_FORMATS = {  # gfx9: data format -> bits of x, y, z, w
    1: (8,), 2: (16,), 3: (8, 8), 4: (32,), 5: (16, 16), 6: (11, 11, 10), 7: (10, 11, 11), 8: (2, 10, 10, 10),
    9: (10, 10, 10, 2), 10: (8, 8, 8, 8), 11: (32, 32), 12: (16, 16, 16, 16), 13: (32, 32, 32), 14: (32, 32, 32, 32),
}  # fmt: skip
NUM_FORMATS = ("unorm", "snorm", "uscaled", "sscaled", "uint", "sint", None, "float")
UNIFIED = ["invalid"]  # gfx11, gfx12
for _n, _kinds in (("8", 6), ("16", 7), ("8_8", 6)):
    UNIFIED += [f"{_n} {k}" for k in (*NUM_FORMATS[:6], "float")[:_kinds]]
UNIFIED += ["32 uint", "32 sint", "32 float"]
UNIFIED += [f"16_16 {k}" for k in (*NUM_FORMATS[:6], "float")]
UNIFIED += ["10_11_11 float", "11_11_10 float"]
UNIFIED += [f"10_10_10_2 {k}" for k in ("unorm", "snorm", "uint", "sint")]
UNIFIED += [f"2_10_10_10 {k}" for k in NUM_FORMATS[:6]]
UNIFIED += [f"8_8_8_8 {k}" for k in NUM_FORMATS[:6]]
UNIFIED += ["32_32 uint", "32_32 sint", "32_32 float"]
UNIFIED += [f"16_16_16_16 {k}" for k in (*NUM_FORMATS[:6], "float")]
UNIFIED += [f"32_32_32{w} {k}" for w in ("", "_32") for k in ("uint", "sint", "float")]


def layout(st: State, fmt: int) -> tuple[tuple[int, ...], str]:
    """(bits of x, y, ..., kind). Names say the highest component first."""
    if st.gfx9:
        return DATA_FORMATS[fmt & 15], NUM_FORMATS[fmt >> 4 & 7]
    return unified(fmt)


def unified(fmt: int) -> tuple[tuple[int, ...], str]:
    bits, kind = UNIFIED[fmt].split()
    return tuple(int(b) for b in reversed(bits.split("_"))), kind


def refloat(x: int, kind: str, to: str) -> int:
    """A float in another format. The bits of a NaN are a choice: they stay when widened, else it is the quiet one."""
    (e, m), (e2, m2) = FORMATS[kind], FORMATS[to]
    if is_nan(x, kind):
        sign = x >> (e + m) << (e2 + m2)
        small = to in ("f10", "f11")
        nan = (x & ((1 << m) - 1)) << (m2 - m) if m2 >= m else 1 << (m2 - 1)
        return (0 if small else sign) | ((1 << e2) - 1) << m2 | nan
    v = decode(x, kind)
    return 0 if to in ("f10", "f11") and v < 0 else encode(v, to)


def toward_zero(x: int) -> int:
    """f32 to f16, the bits beyond cut off."""
    v = decode(x, "f32")
    near = encode(v, "f16")
    if isinstance(v, float):
        return near
    back = decode(near, "f16")
    return near - 1 if isinstance(back, float) and v != 0 and math.isinf(back) or abs(back) > abs(v) else near


def component(x: int, n: int, kind: str, d16: bool, cut: bool) -> int:
    """A stored component as it arrives in a register: float (f32; f16 in d16) or integer. cut: f32 becomes f16 by
    truncation."""
    if kind in ("uint", "sint"):
        return (signed(x, n) if kind == "sint" else x) & (0xFFFF if d16 else M32)
    to = "f16" if d16 else "f32"
    if kind == "float":
        kind = {32: "f32", 16: "f16", 11: "f11", 10: "f10"}[n]
        if cut and n == 32 and d16 and not is_nan(x, "f32"):
            return toward_zero(x)
        return refloat(x, kind, to)
    s = signed(x, n)
    v = {
        "unorm": lambda: Fraction(x, (1 << n) - 1),
        "snorm": lambda: max(Fraction(s, (1 << (n - 1)) - 1), Fraction(-1)),
        "uscaled": lambda: Fraction(x),
        "sscaled": lambda: Fraction(s),
    }[kind]()
    return encode(v, to)


def dst_sel(desc: list[int], values: list[int], one: int) -> list[int]:
    out = []
    for k in range(4):
        sel = desc[3] >> 3 * k & 7
        out.append(values[sel - 4] if sel >= 4 else one if sel == 1 else 0)
    return out


def typed(st: State, op: Op, lane: int, p: Place, desc: list[int], rest: str) -> None:
    tbuffer = op.name.startswith("tbuffer")
    d16, hi = "d16" in rest, "hi" in rest.split("_")
    n = len(rest.rsplit("_", 1)[1])
    fmt = op.format if tbuffer else (desc[3] >> 15 & 15 | (desc[3] >> 12 & 7) << 4 if st.gfx9 else desc[3] >> 12 & 63)
    bits, kind = layout(st, fmt)
    size = sum(bits) // 8
    ok = p.check(0, size)
    one = 1 if kind in ("uint", "sint") else encode(Fraction(1), "f16" if d16 else "f32")
    if "load" in rest:
        values = [0, 0, 0, one]
        raw = int.from_bytes(st.load(p.at, size), "little") if ok else 0
        at = 0
        for k, b in enumerate(bits):
            values[k] = component(raw >> at & ((1 << b) - 1), b, kind, d16, not st.gfx9)
            at += b
        if not ok:
            values = [0, 0, 0, 0]
        values = (values if tbuffer else dst_sel(desc, values, one))[:n]
        if "lds" in op.flags:
            to_lds(st, op, lane, values[0].to_bytes(4, "little"), False)
        elif not d16:
            for k, x in enumerate(values):
                st.v[op.data + k][lane] = x
        else:
            for k, x in enumerate(values):
                write_loaded(
                    st, op.data + k // 2, lane, x.to_bytes(2, "little"), False, 1 if hi else k % 2
                ) if k % 2 == 0 else st.put(
                    op.data + k // 2, lane, 4, int(st.v[op.data + k // 2][lane]) & 0xFFFF | x << 16
                )
    elif ok:
        typed_store(st, op, lane, p, (bits, kind, n, d16, hi))


def stored(x: int, n: int, kind: str, d16: bool) -> int:
    """Bits of a component of n bits from a register (32 bits, or 16 in d16)."""
    if kind == "uint":
        return min(x, (1 << n) - 1)
    if kind == "sint":
        v = signed(x, 16 if d16 else 32)
        return max(-(1 << (n - 1)), min((1 << (n - 1)) - 1, v)) & ((1 << n) - 1)
    v = decode(x, "f16" if d16 else "f32")
    to = {32: "f32", 16: "f16", 11: "f11", 10: "f10"}[n] if kind == "float" else None
    if to:
        return refloat(x, "f16" if d16 else "f32", to)
    if isinstance(v, float):
        v = Fraction(0) if math.isnan(v) or v == 0 else Fraction(2) ** 200 * (1 if v > 0 else -1)
    top = (1 << n) - 1 if kind[0] == "u" else (1 << (n - 1)) - 1
    low = 0 if kind[0] == "u" else -top if kind == "snorm" else -top - 1
    if kind.endswith("norm"):
        return max(low, min(top, round(max(Fraction(-2), min(Fraction(2), v)) * top))) & ((1 << n) - 1)
    return max(low, min(top, int(v))) & ((1 << n) - 1)


def typed_store(st: State, op: Op, lane: int, p: Place, what: tuple) -> None:
    bits, kind, n, d16, hi = what
    raw, at = 0, 0
    for k, b in enumerate(bits):
        c = k if k < n else 0 if not st.gfx9 else None  # gfx11, gfx12: the first one stands for those that are missing
        x = 0
        if c is not None:
            x = st.get(op.data + (c // 2 if d16 else c), lane, 4)
            if d16:
                x = x >> 16 * (1 if hi else c % 2) & 0xFFFF
            x = stored(x, b, kind, d16)
        raw |= x << at
        at += b
    st.store(p.at, raw.to_bytes(at // 8, "little"))


# ---- flat, global, scratch -------------------------------------------------------------------------------------------


def flat_base(st: State, op: Op, lane: int) -> int:
    """The address without the instruction's offset."""
    if op.saddr is not None:
        base = st.s[op.saddr] | st.s[op.saddr + 1] << 32
        return base + (int(st.v[op.addr][lane]) if op.addr is not None else 0) & M64
    return int(st.v[op.addr][lane]) + (int(st.v[op.addr + 1][lane]) << 32)


class Window:
    """Bytes behind an address of a lane: global memory, LDS or scratch, by the aperture of the address alone."""

    def __init__(self, st: State, fam: str, base: int, offset: int, lane: int) -> None:
        self.st, self.at, self.where = st, base + offset & M64, "global"
        high = base >> 32 << 32
        if fam == "scratch" or (fam == "flat" and high == st.private_base):
            self.where, self.bytes, self.at = "scratch", st.scratch[lane], self.at & M32
        elif fam == "flat" and high == st.shared_base:
            self.where, self.bytes, self.at = "lds", st.lds, self.at & M32

    def load(self, n: int) -> bytes:
        if self.where == "global":
            return self.st.load(self.at, n)
        if self.at + n > len(self.bytes):
            raise Outside(f"{self.where} {self.at:#x}")
        return bytes(self.bytes[self.at : self.at + n])

    def store(self, raw: bytes) -> None:
        if self.where == "global":
            self.st.store(self.at, raw)
        elif self.at + len(raw) > len(self.bytes):
            raise Outside(f"{self.where} {self.at:#x}")
        else:
            self.bytes[self.at : self.at + len(raw)] = raw


def flat(st: State, op: Op) -> None:
    fam, rest = op.name.split("_", 1)
    for i in range(st.lanes):
        if not st.active(i):
            continue
        st.lane = i
        if "addtid" in rest:
            base = st.s[op.saddr] | st.s[op.saddr + 1] << 32 if op.saddr is not None else 0
            at, off = base + 4 * i, op.offset
        elif fam == "scratch":
            at = (st.get(op.addr, i, 4) if op.addr is not None else 0) + op.offset
            at, off = at + (st.s[op.saddr] if op.saddr is not None else 0) & M32, 0
        else:
            at, off = flat_base(st, op, i), op.offset
        w = Window(st, fam, at, off, i)
        if rest.startswith("atomic_"):
            what = atomic_of(rest[7:], False)
            n = what[2] // 8
            d, d2 = atomic_data(st, op, i, what)
            old = int.from_bytes(w.load(n), "little")
            if what[0] == "ordered_add":
                new = (old + 1 & M32) | ((old >> 32) + (d >> 32) & M32) << 32 if old & M32 == d & M32 else old
            else:
                new = rmw_lds(st, what, old, d, d2) if w.where == "lds" else rmw_mem(st, what, old, d, d2)
            w.store(new.to_bytes(n, "little"))
            if returns(op):
                st.put(op.dst, i, n, old)
        elif rest.startswith("load_lds_") or "lds" in op.flags:
            n, sign, _ = plain(rest.removeprefix("load_").removeprefix("lds_"))
            to_lds(st, op, i, w.load(n), sign)
        elif rest.startswith("load_"):
            n, sign, half = plain(rest[5:].removeprefix("addtid_"))
            write_loaded(st, op.dst, i, w.load(n), sign, half)
        else:
            n, _, half = plain(rest[6:].removeprefix("addtid_"))
            raw = st.get(op.data, i, max(n, 4)).to_bytes(max(n, 4), "little")
            w.store(raw[2:][:n] if half else raw[:n])


# ---- scalar memory ---------------------------------------------------------------------------------------------------


def smem_place(st: State, op: Op, n: int) -> tuple[int, int, int | None]:
    """(address, offset, bytes of the buffer) of n bytes: base + offset + register (of s_scratch: 64 bytes each), to
    dwords (gfx12: to the size of the datum)."""
    off = op.offset + scalar(st, op.soffset) * (64 if "scratch" in op.name else 1)
    base = st.s[op.srsrc] | st.s[op.srsrc + 1] << 32
    mask = ~(min(n, 4) - 1)
    if not op.name.startswith("s_buffer"):
        return (base & ~3) + off & mask & M64, 0, None
    stride, records = st.s[op.srsrc + 1] >> 16 & 0x3FFF, st.s[op.srsrc + 2]
    off &= mask & M32
    return (base & (1 << 48) - 4) + off, off, records * (stride or 1)


def smem(st: State, op: Op) -> None:
    verb, size = op.name.rsplit("_", 1)
    if "_atomic_" in op.name:
        smem_atomic(st, op)
        return
    n = {"u8": 1, "i8": 1, "u16": 2, "i16": 2}.get(size) or (
        int(size[1:]) // 8 if size[0] == "b" else 4 * int(size[6:] or 1)
    )
    at, off, limit = smem_place(st, op, n)
    out = b""
    for k in range(0, n, 4):
        part = min(4, n - k)
        inside = limit is None or off + k + part <= limit
        if not verb.endswith("store"):
            out += st.load(at + k, part) if inside else b"\0" * part
        elif inside:
            st.store(at + k, st.s[op.dst + k // 4].to_bytes(4, "little"))
    if not verb.endswith("store"):
        x = int.from_bytes(out, "little", signed=size[0] == "i")
        for k in range(max(1, n // 4)):
            st.s[op.dst + k] = x >> 32 * k & M32


def smem_atomic(st: State, op: Op) -> None:
    what = atomic_of(op.name.partition("_atomic_")[2], False)
    n, w = what[2] // 8, what[2] // 32
    at, off, limit = smem_place(st, op, n)
    if at % n or (limit is not None and off + n > limit and returns(op)):
        raise Outside("an atomic that is not aligned, or the result of none")
    d, d2 = (sum(st.s[op.dst + first + k] << 32 * k for k in range(w)) for first in (0, w))
    if limit is None or off + n <= limit:
        old = mem_rmw(st, at, what, d, d2 if what[0] == "cmpswap" else 0)
        for k in range(w if returns(op) else 0):
            st.s[op.dst + k] = old >> 32 * k & M32


def step(st: State, op: Op) -> None:
    """Carries the instruction out."""
    fam = op.name.split("_", 1)[0]
    {"ds": ds, "buffer": buffer, "tbuffer": buffer, "flat": flat, "global": flat, "scratch": flat, "s": smem}[fam](
        st, op
    )
