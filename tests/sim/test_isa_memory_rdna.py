"""Vector memory of gfx1100 and gfx1201 in kernels of one wave of 32 or 64 lanes: loads, stores and atomics of every
family, typed buffers, range rules, swizzled buffers, blocks, transposing loads.

Expected bytes come from plain Python on the same input; each lane has a slot of 32 bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402
from memory_cases import OLD, SLOT, Case, Chip, Rules, code_of, compare, dwords, f32, regs, value  # noqa: E402
from test_isa_memory import FLOAT_ATOMICS, INT_ATOMICS  # noqa: E402

CHIPS = [(a, w) for a in ("gfx1100", "gfx1201") for w in (32, 64)]
both = pytest.mark.parametrize(("arch", "wave"), CHIPS, ids=[f"{a}-{w}" for a, w in CHIPS])

LOADS = {  # suffix -> (bytes, signed, half: None, 0 low, 1 high)
    "u8": (1, False, None), "i8": (1, True, None), "u16": (2, False, None), "i16": (2, True, None),
    "b32": (4, False, None), "b64": (8, False, None), "b96": (12, False, None), "b128": (16, False, None),
    "d16_u8": (1, False, 0), "d16_hi_u8": (1, False, 1), "d16_i8": (1, True, 0), "d16_hi_i8": (1, True, 1),
    "d16_b16": (2, False, 0), "d16_hi_b16": (2, False, 1),
}  # fmt: skip
STORES = {  # suffix -> (bytes, first byte of the data register)
    "b8": (1, 0), "d16_hi_b8": (1, 2), "b16": (2, 0), "d16_hi_b16": (2, 2), "b32": (4, 0), "b64": (8, 0),
    "b96": (12, 0), "b128": (16, 0),
}  # fmt: skip
OLD_NAMES = {"swap_b": "swap", "add_u": "add", "sub_u": "sub", "min_i": "smin", "max_i": "smax", "min_u": "umin",
             "max_u": "umax", "and_b": "and", "or_b": "or", "xor_b": "xor", "inc_u": "inc", "dec_u": "dec"}  # fmt: skip


def lesser(a: int, b: int) -> int:
    return a if f32(a) < f32(b) else b


def greater(a: int, b: int) -> int:
    return b if f32(a) < f32(b) else a


ATOMICS = {  # suffix -> (bytes, (memory, data, second data) -> memory)
    **{
        f"{new}{n}": (n // 8, lambda m, d, e, f=INT_ATOMICS[old], n=n: f(m, d, n) & ((1 << n) - 1))
        for new, old in OLD_NAMES.items()
        for n in (32, 64)
    },
    **{f"cmpswap_b{n}": (n // 8, lambda m, d, e: d if m == e else m) for n in (32, 64)},
    "cmpswap_f32": (4, lambda m, d, e: d if f32(m) == f32(e) else m),
    "csub_u32": (4, lambda m, d, e: max(m - d, 0)),
    "sub_clamp_u32": (4, lambda m, d, e: max(m - d, 0)),
    "cond_sub_u32": (4, lambda m, d, e: m - d if m >= d else m),
    "add_f32": (4, lambda m, d, e: FLOAT_ATOMICS["add_f32"][1](m, d, 32)),
    "min_f32": (4, lambda m, d, e: lesser(m, d)),
    "max_f32": (4, lambda m, d, e: greater(m, d)),
    "min_num_f32": (4, lambda m, d, e: lesser(m, d)),
    "max_num_f32": (4, lambda m, d, e: greater(m, d)),
    "pk_add_f16": (4, lambda m, d, e: FLOAT_ATOMICS["pk_add_f16"][1](m, d, 32)),
    "pk_add_bf16": (4, lambda m, d, e: FLOAT_ATOMICS["pk_add_bf16"][1](m, d, 32)),
    "ordered_add_b64": (
        8,
        lambda m, d, e: (m + 1 & 0xFFFFFFFF) | ((m >> 32) + (d >> 32) & 0xFFFFFFFF) << 32
        if m & 0xFFFFFFFF == d & 0xFFFFFFFF
        else m,
    ),
}  # fmt: skip


# ---- kernels -------------------------------------------------------------------------------------------------


def wait(arch: str) -> str:
    if arch == "gfx1100":
        return "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_vscnt null, 0x0\n"
    return "s_wait_loadcnt 0x0\ns_wait_storecnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0\n"


def address(low: int, base: int, wave: int) -> str:
    """v[low:low+1] = s[base:base+1] + v1."""
    vcc = "vcc_lo" if wave == 32 else "vcc"
    return (
        f"v_add_co_u32 v{low}, {vcc}, s{base}, v1\nv_mov_b32 v{low + 1}, s{base + 1}\n"
        f"v_add_co_ci_u32 v{low + 1}, {vcc}, 0, v{low + 1}, {vcc}\n"
    )


def prologue(arch: str, wave: int) -> str:
    """s[12:13] data, s[14:15] out, s[28:29] mem; v1 = 32 * lane, v[2:3] its slot of data; raw descriptors s[16:19] of
    data, structured ones (records of 32 bytes) s[24:27]."""
    return (
        "s_load_b128 s[12:15], s[0:1], 0x0\ns_load_b64 s[28:29], s[0:1], 0x10\nv_and_b32 v0, 0x3ff, v0\n"
        + "v_lshlrev_b32 v1, 5, v0\n"
        + wait(arch)
        + descriptor(16, 12, SLOT * wave, 0x31016000)
        + descriptor(24, 12, wave, 0x01016000, 32)
        + address(2, 12, wave)
    )


def descriptor(at: int, base: int, records: int, word3: int, stride: int = 0, swizzle: int = 0) -> str:
    word1 = stride << 16 | swizzle << 30
    return (
        f"s_mov_b32 s{at}, s{base}\ns_and_b32 s{at + 1}, s{base + 1}, 0xffff\n"
        f"s_or_b32 s{at + 1}, s{at + 1}, 0x{word1:x}\ns_mov_b32 s{at + 2}, {records}\n"
        f"s_mov_b32 s{at + 3}, 0x{word3:x}\n"
    )


def here(wave: int) -> str:
    """Before a case: its regions of out and mem, as descriptors s[20:23], s[32:35], and lane addresses v[4:7]."""
    size = SLOT * wave
    return (
        descriptor(20, 14, size, 0x31016000)
        + descriptor(32, 28, size, 0x31016000)
        + address(4, 14, wave)
        + address(6, 28, wave)
    )


def following(wave: int) -> str:
    n = SLOT * wave
    return f"s_add_u32 s14, s14, {n}\ns_addc_u32 s15, s15, 0\ns_add_u32 s28, s28, {n}\ns_addc_u32 s29, s29, 0\n"


def launch(arch: str, wave: int, body: str, arrays: list[np.ndarray], late: bool = False, **kw: int) -> None:
    """Runs one wave of a kernel whose arguments are the arrays (changed in place); late: also with the results of
    memory operations as late as they may come, which changes nothing."""
    args = (simlib.BUF,) * len(arrays)
    hsaco = simlib.code_object(body, args, arch=arch, wave=wave, vgprs=64, sgprs=96, **kw)
    before = [x.copy() for x in arrays]
    dev = sim.Device(arch, checks=["bounds"], threads=1)
    dev.load(hsaco).kernels["k"].launch(1, wave, arrays)
    for seed in (3, 4) if late else ():
        again = [x.copy() for x in before]
        dev = sim.Device(arch, checks=["bounds"], threads=1, delivery="late", seed=seed)
        dev.load(hsaco).kernels["k"].launch(1, wave, again)
        assert all(np.array_equal(x, y) for x, y in zip(arrays, again, strict=True)), f"late, seed {seed}"


def region(n: int, wave: int) -> np.ndarray:
    return np.full(SLOT * wave * n, 0xEE, np.uint8)


def load_cases(fam: str, arch: str) -> list[Case]:
    out = []
    for name, (n, _, _) in LOADS.items():
        d = regs(10, n)
        forms = {
            "global": [f"{d}, v[2:3], off offset:4", f"{d}, v1, s[12:13] offset:4", f"{d}, v9, s[12:13] offset:-60"],
            "flat": [f"{d}, v[2:3] offset:4"],
            "buffer": [
                f"{d}, v1, s[16:19], 0 offen offset:4",
                f"{d}, v0, s[24:27], s36 idxen",
                f"{d}, v[54:55], s[24:27], null idxen offen",
            ],
            "scratch": [f"{d}, v1, off offset:4", f"{d}, v1, s36", f"{d}, v9, off offset:-60"],
        }[fam]
        if arch == "gfx1201":
            forms = [f.replace("], 0 offen", "], null offen") for f in forms]
        out += [Case(f"{fam}_load_{name} {f}", "load", name) for f in forms]
    return out


def store_cases(fam: str, arch: str) -> list[Case]:
    out = []
    for name, (n, _) in STORES.items():
        d = regs(10, n)
        forms = {
            "global": [f"v[4:5], {d}, off offset:4", f"v1, {d}, s[14:15] offset:4"],
            "flat": [f"v[4:5], {d} offset:4"],
            "buffer": [f"{d}, v1, s[20:23], null offen offset:4"],
            "scratch": [f"v1, {d}, off offset:4", f"v1, {d}, s36"],
        }[fam]
        out += [Case(f"{fam}_store_{name} {f}", "store", name) for f in forms]
    return out


def atomic_cases(fam: str, arch: str) -> list[Case]:
    out = []
    flag = " glc" if arch == "gfx1100" else " th:TH_ATOMIC_RETURN"
    for name, (n, _) in ATOMICS.items():
        d = regs(10, 2 * n if "cmpswap" in name else n)
        for ret in (False, True):
            r, f = (regs(14, n) + ", ", flag) if ret else ("", "")
            forms = {
                "global": [f"{r}v[6:7], {d}, off offset:8{f}", f"{r}v1, {d}, s[28:29] offset:8{f}"],
                "flat": [f"{r}v[6:7], {d} offset:8{f}"],
                "buffer": [f"{d}, v1, s[32:35], null offen offset:8{f}"],
            }[fam]
            out += [Case(f"{fam}_atomic_{name} {x}", "atomic", name, ret) for x in forms]
    return out


RULES = Rules(LOADS, STORES, ATOMICS.__getitem__, halves_clear=False)


def run_cases(arch: str, wave: int, fam: str, cases: list[Case]) -> int:
    """Runs all cases that the chip has in one kernel and compares out and mem; returns how many."""
    codes = encode(arch, [c.text for c in cases], wave)
    cases = [c for c, code in zip(cases, codes, strict=True) if code is not None]
    body = prologue(arch, wave) + "v_add_nc_u32 v9, 64, v1\nv_mov_b32 v54, v0\nv_mov_b32 v55, 4\ns_mov_b32 s36, 4\n"
    chip = Chip(wait(arch), here(wave), following(wave), ("b32", "b64", "b128"))
    body += "".join(code_of(c, fam, chip) for c in cases)
    seed = sum(map(ord, arch + fam)) + wave
    rng = np.random.default_rng(seed)
    size = SLOT * wave
    data, out, mem = dwords(rng, size), region(len(cases), wave), dwords(rng, size * len(cases))
    for i, c in enumerate(cases):  # half of the compare-and-swaps and tickets succeed
        n = ATOMICS[c.what][0] if c.kind == "atomic" else 0
        for at in range(i * size + 8, (i + 1) * size if n else 0, 2 * SLOT):
            src = at - i * size - 8
            if c.what == "ordered_add_b64":
                mem[at : at + 4] = data[src : src + 4]
            elif "cmpswap" in c.what:
                mem[at : at + n] = data[src + n : src + 2 * n]
    got_out, got_mem = out.copy(), mem.copy()
    launch(arch, wave, body, [data, got_out, got_mem], scratch=SLOT * wave + SLOT if fam == "scratch" else 0)
    return compare(f"{arch}, seed {seed}", cases, fam, wave, RULES, data, (out, mem), (got_out, got_mem))


@pytest.mark.parametrize("fam", ["global", "flat", "buffer", "scratch"])
@both
def test_loads_and_stores(arch, wave, fam):
    assert run_cases(arch, wave, fam, load_cases(fam, arch) + store_cases(fam, arch)) >= 22


@pytest.mark.parametrize("fam", ["global", "flat", "buffer"])
@both
def test_atomics(arch, wave, fam):
    assert run_cases(arch, wave, fam, atomic_cases(fam, arch)) >= 60


# ---- typed buffers -------------------------------------------------------------------------------------------

FORMATS = {  # name: (bytes of the element, the four components)
    "8_UNORM": ("80", [128 / 255, 0.0, 0.0, 1.0]),
    "8_SINT": ("80", [-128, 0, 0, 1]),
    "8_USCALED": ("81", [129.0, 0.0, 0.0, 1.0]),
    "16_FLOAT": ("00c4", [-4.0, 0.0, 0.0, 1.0]),
    "16_SSCALED": ("feff", [-2.0, 0.0, 0.0, 1.0]),
    "8_8_SNORM": ("7f81", [1.0, -1.0, 0.0, 1.0]),
    "32_UINT": ("78563412", [0x12345678, 0, 0, 1]),
    "32_FLOAT": ("0000a0c0", [-5.0, 0.0, 0.0, 1.0]),
    "16_16_USCALED": ("01ffff00", [65281.0, 255.0, 0.0, 1.0]),
    "16_16_FLOAT": ("003c00c0", [1.0, -2.0, 0.0, 1.0]),
    "10_11_11_FLOAT": ((0x3C0 | 0x400 << 11 | 0x1C0 << 22).to_bytes(4, "little").hex(), [1.0, 2.0, 0.5, 1.0]),
    "11_11_10_FLOAT": ((0x1E0 | 0x3C0 << 10 | 0x400 << 21).to_bytes(4, "little").hex(), [1.0, 1.0, 2.0, 1.0]),
    "10_10_10_2_UINT": ((3 | 5 << 2 | 1023 << 12 | 9 << 22).to_bytes(4, "little").hex(), [3, 5, 1023, 9]),
    "2_10_10_10_UINT": ((0x3FF | 5 << 10 | 7 << 20 | 2 << 30).to_bytes(4, "little").hex(), [1023, 5, 7, 2]),
    "8_8_8_8_UNORM": ("00ff33cc", [0.0, 1.0, 0.2, 0.8]),
    "32_32_FLOAT": ("0000803f0000a0c0", [1.0, -5.0, 0.0, 1.0]),
    "16_16_16_16_SINT": ("0100feff0300fcff", [1, -2, 3, -4]),
    "32_32_32_SINT": ("ffffffff02000000fdffffff", [-1, 2, -3, 1]),
    "32_32_32_32_FLOAT": ("0000803f00000040000040400000a0c0", [1.0, 2.0, 3.0, -5.0]),
}


def format_number(arch: str, name: str) -> int:
    """By the assembler: the format field of a tbuffer instruction."""
    (code,) = encode(arch, [f"tbuffer_load_format_x v1, v2, s[4:7], {'0' if arch == 'gfx1100' else 'null'} "
                            f"format:[BUF_FMT_{name}] offen"])  # fmt: skip
    assert code is not None
    return int.from_bytes(code, "little") >> (19 if arch == "gfx1100" else 55) & 127


@both
def test_buffer_formats(arch, wave):
    """Elements of many formats, by the instruction and by the descriptor, become components; stored again, the same."""
    rng = np.random.default_rng(14)
    body, w = prologue(arch, wave), wait(arch)
    data = rng.integers(0, 256, SLOT * wave, dtype=np.uint8)
    cases = [(name, typed) for name in FORMATS for typed in (False, True)]
    for i, (name, typed) in enumerate(cases):
        raw = bytes.fromhex(FORMATS[name][0])
        at = 16 * (i // 2)
        data[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
        word3 = 0x30000FAC | format_number(arch, name) << 12
        fmt, t = (f" format:[BUF_FMT_{name}]", "t") if typed else ("", "")
        body += here(wave) + f"v_mov_b32 v8, {at}\n"
        if not typed:
            body += f"s_mov_b32 s19, 0x{word3:x}\ns_mov_b32 s35, 0x{word3:x}\n"
        body += f"{t}buffer_load_format_xyzw v[10:13], v8, s[16:19], null{fmt} offen\n" + w
        body += f"{t}buffer_store_format_xyzw v[10:13], v1, s[32:35], null{fmt} offen\n" + w
        body += "global_store_b128 v[4:5], v[10:13], off\n" + w + following(wave)
    out = np.zeros(SLOT * wave * len(cases), np.uint8)
    mem = out.copy()
    launch(arch, wave, body, [data, out, mem])
    for i, (name, typed) in enumerate(cases):
        raw, want = FORMATS[name]
        base = i * SLOT * wave
        for lane in (0, 17, wave - 1):
            got = [value(out[base:], lane, 4 * k, 4) for k in range(4)]
            exp = [x & 0xFFFFFFFF if isinstance(x, int) else int(np.float32(x).view(np.uint32)) for x in want]
            assert got == exp, f"{name}, typed {typed}: {[hex(x) for x in got]}"
            back = mem[base + lane * SLOT : base + lane * SLOT + len(raw) // 2].tobytes().hex()
            assert back == raw, f"{name}, typed {typed} stored as {back}"


@both
def test_typed_registers(arch, wave):
    """One to four components of 32 or (d16) 16 bits, also the high half: what memory holds is what registers hold."""
    cases = []
    for t, op, d16, (k, comp) in itertools.product(
        ("", "t"), ("load", "store"), ("", "d16_", "d16_hi_"), enumerate(("x", "xy", "xyz", "xyzw"), 1)
    ):
        d = regs(10, 4 * ((k + 1) // 2 if d16 else k))
        name = "BUF_FMT_16_16_16_16_FLOAT" if d16 else "BUF_FMT_32_32_32_32_FLOAT"
        srsrc, fmt = "s[20:23]" if op == "store" else "s[16:19]", f" format:[{name}]" if t else ""
        text = f"{t}buffer_{op}_{d16}format_{comp} {d}, v1, {srsrc}, null{fmt} offen offset:4"
        cases.append((text, k, d16, op == "store"))
    codes = encode(arch, [c[0] for c in cases], wave)
    cases = [c for c, code in zip(cases, codes, strict=True) if code is not None]
    assert len(cases) >= 34
    body, w = prologue(arch, wave), wait(arch)
    for text, _, d16, store in cases:
        fmt = format_number(arch, "16_16_16_16_FLOAT" if d16 else "32_32_32_32_FLOAT")
        body += here(wave) + "".join(f"s_mov_b32 s{r}, 0x{0x30000FAC | fmt << 12:x}\n" for r in (19, 23))
        if store:
            body += "global_load_b128 v[10:13], v[2:3], off\n" + w + text + "\n" + w
        else:
            body += "".join(f"v_mov_b32 v{10 + i}, 0x{OLD + i:x}\n" for i in range(4)) + text + "\n" + w
            body += "global_store_b128 v[4:5], v[10:13], off\n" + w
        body += following(wave)
    data = dwords(np.random.default_rng(13), SLOT * wave)
    out = region(len(cases), wave)
    launch(arch, wave, body, [data, out, out.copy()])
    for i, (text, k, d16, store) in enumerate(cases):
        n, mine = k * (2 if d16 else 4), out[i * SLOT * wave :]
        for lane in range(wave):
            if store:
                got, want = value(mine, lane, 4, n), value(data, lane, 2 if "_hi_" in d16 else 0, n)
                assert value(mine, lane, 0, 4) == 0xEEEEEEEE, text
            else:
                got, want = value(mine, lane, 2 if "_hi_" in d16 else 0, n), value(data, lane, 4, n)
                if "_hi_" in d16:
                    assert value(mine, lane, 0, 2) == OLD & 0xFFFF, text
            assert got == want, f"{text}: lane {lane} is {got:x}, not {want:x}"


# ---- ranges, swizzle, lane numbers ---------------------------------------------------------------------------


def rule(select: int, index: int, at: int, stride: int, records: int, so: int) -> bool:
    """Is the dword at byte `at` of record `index` inside, by the descriptor's OOB_SELECT?"""
    if select == 0:
        return index < records and at + 4 <= stride
    if select == 1:
        return index < records
    if select == 2:
        return records != 0
    return index * stride + at + 4 <= max(records - so, 0)


@both
def test_range_rules(arch, wave):
    """Loads give 0 outside, stores are dropped, dword by dword; the scalar offset counts in the raw rule."""
    w, rng = wait(arch), np.random.default_rng(3)
    cases = [(select, stride, records, so, off)
             for select, stride, records in ((0, 16, 20), (0, 32, 9), (1, 16, 20), (2, 16, 3), (2, 16, 0), (3, 0, 300),
                                             (3, 0, 301), (3, 16, 77))
             for so in (0, 8) for off in (0, 8, 20)]  # fmt: skip
    body = prologue(arch, wave)
    for select, stride, records, so, off in cases:
        body += here(wave) + descriptor(40, 12, records, select << 28 | 0x16000, stride)
        body += descriptor(44, 28, records, select << 28 | 0x16000, stride) + f"s_mov_b32 s36, {so}\n"
        body += "v_mov_b32 v54, v0\nv_lshlrev_b32 v55, 3, v0\nv_and_b32 v55, 8, v55\n"
        body += f"v_add_nc_u32 v55, {off}, v55\n"
        body += "buffer_load_b96 v[10:12], v[54:55], s[40:43], s36 idxen offen\n" + w
        body += "global_store_b96 v[4:5], v[10:12], off\n" + w
        body += "buffer_store_b64 v[54:55], v[54:55], s[44:47], s36 idxen offen\n" + w + following(wave)
    size = SLOT * wave
    data = rng.integers(0, 256, 2 * size, dtype=np.uint8)
    out, mem = region(len(cases), wave), region(len(cases) + 1, wave)
    got = mem.copy()
    launch(arch, wave, body, [data, out, got])
    for i, (select, stride, records, so, off) in enumerate(cases):
        for lane in range(wave):
            at = off + 8 * (lane & 1)  # dwords of two lanes never meet, but in the same place
            for d in range(3):
                inside = rule(select, lane, at + 4 * d, stride, records, so)
                where = lane * stride + at + so + 4 * d
                want = int.from_bytes(data[where : where + 4].tobytes(), "little") if inside else 0
                assert value(out[i * size :], lane, 4 * d, 4) == want, (cases[i], lane, d)
                if d < 2 and inside:
                    to = i * size + where
                    mem[to : to + 4] = np.frombuffer((lane if d == 0 else at).to_bytes(4, "little"), np.uint8)
    assert np.array_equal(got, mem)


@both
def test_swizzled_buffers(arch, wave):
    """Records interleaved by index stride and element size; ADD_TID numbers records by lane."""
    w, size = wait(arch), SLOT * wave
    cases = [(stride, lines, elem, tid) for stride, elem in ((16, 1), (32, 3)) for lines in range(4) for tid in (0, 1)]
    body = prologue(arch, wave)
    for stride, lines, elem, tid in cases:
        word3 = 0x00016000 | lines << 21 | tid << 23
        body += here(wave) + descriptor(40, 12, 1000, word3, stride, elem)
        body += "v_mov_b32 v54, v0\nv_mov_b32 v55, 4\n"
        address = "v55, s[40:43], null offen" if tid else "v[54:55], s[40:43], null idxen offen"
        body += f"buffer_load_b32 v10, {address} offset:4\n" + w
        body += "global_store_b32 v[4:5], v10, off\n" + w + following(wave)
    data = np.random.default_rng(4).integers(0, 256, 2 * size, dtype=np.uint8)
    out = region(len(cases), wave)
    launch(arch, wave, body, [data, out, out.copy()])
    for i, (stride, lines, elem, _) in enumerate(cases):
        n, e = 8 << lines, 2 << elem
        for lane in range(wave):
            at = (lane // n * stride + 8 // e * e) * n + lane % n * e + 8 % e
            want = int.from_bytes(data[at : at + 4].tobytes(), "little")
            assert value(out[i * size :], lane, 0, 4) == want, (cases[i], lane)


@both
def test_lane_numbered(arch, wave):
    """global_load_addtid, global_store_addtid: scalar base + offset + 4 * lane."""
    w, size = wait(arch), SLOT * wave
    body = prologue(arch, wave) + here(wave)
    body += "global_load_addtid_b32 v10, s[12:13] offset:8\n" + w
    body += "global_store_addtid_b32 v10, s[14:15] offset:4\n" + w
    data = np.random.default_rng(5).integers(0, 256, size, dtype=np.uint8)
    out = region(1, wave)
    launch(arch, wave, body, [data, out, out.copy()], late=True)
    assert np.array_equal(out[4 : 4 + 4 * wave], data[8 : 8 + 4 * wave])
    assert (out[4 + 4 * wave :] == 0xEE).all() and (out[:4] == 0xEE).all()


@both
def test_cache_operations(arch, wave):
    """Between a store and a load of the same wave they change nothing."""
    if arch == "gfx1100":
        ops = ["buffer_gl0_inv", "buffer_gl1_inv"]
    else:
        scopes = ("", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS")
        ops = [f"global_{op}{s}" for op in ("inv", "wb", "wbinv") for s in scopes]
    w, body = wait(arch), prologue(arch, wave)
    for i, op in enumerate(ops):
        body += here(wave) + f"v_add_nc_u32 v10, {i}, v0\nglobal_store_b32 v[6:7], v10, off\n" + w + op + "\n" + w
        body += "global_load_b32 v11, v[6:7], off\n" + w + "global_store_b32 v[4:5], v11, off\n" + w + following(wave)
    out = region(len(ops), wave)
    launch(arch, wave, body, [np.zeros(SLOT * wave, np.uint8), out, out.copy()])
    for i, op in enumerate(ops):
        assert [value(out[i * SLOT * wave :], lane, 0, 4) for lane in range(wave)] == [i + k for k in range(wave)], op


@both
def test_tfe(arch, wave):
    """The status word after the data of a load with tfe is 0: everything is resident."""
    w = wait(arch)
    body = prologue(arch, wave) + here(wave) + "".join(f"v_mov_b32 v{10 + k}, -1\n" for k in range(4))
    body += "buffer_load_b64 v[10:12], v1, s[16:19], null offen tfe\n" + w
    if encode(arch, ["buffer_load_b64 v[10:12], v1, s[16:19], null offen tfe"]) == [None]:
        pytest.skip("the assembler has no tfe here")
    body += "global_store_b128 v[4:5], v[10:13], off\n" + w
    data = np.random.default_rng(6).integers(0, 256, SLOT * wave, dtype=np.uint8)
    out = region(1, wave)
    launch(arch, wave, body, [data, out, out.copy()], late=True)
    for lane in range(wave):
        assert value(out, lane, 0, 8) == value(data, lane, 0, 8)
        assert value(out, lane, 8, 8) == 0xFFFFFFFF00000000


# ---- gfx1201 only --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("fam", ["global", "scratch"])
def test_blocks(fam, wave):
    """Registers by the bits of M0, each at its own place; others and their memory stay."""
    w, mask = wait("gfx1201"), 0x80000425
    bits = [i for i in range(32) if mask >> i & 1]
    rng = np.random.default_rng(7)
    block = 4 * 32
    data = rng.integers(0, 256, block * wave, dtype=np.uint8)
    out, mem = np.full(block * wave, 0xEE, np.uint8), np.full(block * wave, 0xEE, np.uint8)
    body = prologue("gfx1201", wave) + "v_lshlrev_b32 v1, 7, v0\n" + address(2, 12, wave)
    body += address(4, 14, wave) + address(6, 28, wave)
    body += f"s_mov_b32 m0, 0x{mask:x}\n" + "".join(f"v_mov_b32 v{16 + i}, {i}\n" for i in range(32))
    if fam == "scratch":  # the block of the lane to scratch first
        body += "s_mov_b32 m0, -1\nglobal_load_block v[16:47], v[2:3], off\n" + w
        body += "v_mov_b32 v8, 0\nscratch_store_block v8, v[16:47], off offset:16\n" + w
        body += f"s_mov_b32 m0, 0x{mask:x}\n" + "".join(f"v_mov_b32 v{16 + i}, {i}\n" for i in range(32))
        body += "scratch_load_block v[16:47], v8, off offset:16\n" + w
    else:
        body += "global_load_block v[16:47], v[2:3], off\n" + w
    body += "global_store_block v[6:7], v[16:47], off\n" + w
    body += "".join(f"global_store_b32 v[4:5], v{16 + i}, off offset:{4 * i}\n" for i in range(32)) + w
    launch("gfx1201", wave, body, [data, out, mem], late=True, scratch=256 if fam == "scratch" else 0)
    for lane in range(wave):
        for i in range(32):
            at = lane * block + 4 * i
            got, m = (int.from_bytes(x[at : at + 4].tobytes(), "little") for x in (out, mem))
            want = int.from_bytes(data[at : at + 4].tobytes(), "little") if i in bits else i
            assert got == want, f"register {i} of lane {lane} is {got:x}, not {want:x}"
            assert m == (want if i in bits else 0xEEEEEEEE)


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("bits", [8, 16])
def test_transposing_loads(bits, wave):
    """Addressed as compilers do (Mesa: only lanes 0..31 count; measured on the chip for 32 lanes), lane l gets rows
    8 * (l / 16) .. + 7 of column l % 16; of 64 lanes the upper 32 get the upper half of each lane's elements."""
    w, n = wait("gfx1201"), bits // 8
    rng = np.random.default_rng(8)
    tile = rng.integers(0, 1 << bits, (16, 16)).astype(np.uint16 if bits == 16 else np.uint8)
    regs_out = (4 if bits == 16 else 2) // (wave // 32)
    place = np.zeros(wave, np.uint32)
    for lane in range(32):
        if bits == 16:
            row, col = 8 * (lane // 16) + lane % 8, 8 * (lane // 8 % 2)
        else:
            row, col = 4 * (lane // 8) + lane % 4, 8 * (lane // 4 % 2)
        place[lane] = (row * 16 + col) * n
    body = prologue("gfx1201", wave) + here(wave) + "v_lshlrev_b32 v8, 2, v0\n"
    body += "global_load_b32 v9, v8, s[28:29]\n" + w
    d = f"v[16:{15 + regs_out}]" if regs_out > 1 else "v16"
    body += f"global_load_tr_b{64 if bits == 8 else 128} {d}, v9, s[12:13]\n" + w
    body += "".join(f"global_store_b32 v[4:5], v{16 + k}, off offset:{4 * k}\n" for k in range(regs_out)) + w
    data = np.zeros(SLOT * wave, np.uint8)
    data[: 256 * n] = tile.view(np.uint8).reshape(-1)
    out, mem = region(1, wave), np.zeros(SLOT * wave, np.uint8)
    mem[: 4 * wave] = place.view(np.uint8)
    launch("gfx1201", wave, body, [data, out, mem], late=True)
    for lane in range(wave):
        first = 8 * (lane % 32 // 16) + 4 * (lane // 32)
        count = 8 // (wave // 32)
        got = out[lane * SLOT : lane * SLOT + 4 * regs_out].view(tile.dtype)
        assert np.array_equal(got, tile[first : first + count, lane % 16]), f"lane {lane}: {got}"
