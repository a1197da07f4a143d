"""Every vector-memory load, store and atomic of each encoding in kernels of one wave: each lane has a slot of 32 bytes.

Expected bytes come from plain Python on the same input. The half that a d16 load does not load becomes 0: these chips
have registers with error correction."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402
from memory_cases import OLD, SLOT, Case, Chip, Rules, code_of, compare, dwords, f32, regs, signed, value  # noqa: E402

ARCHS = [a for a in ("gfx90a", "gfx942", "gfx950") if sim._native.library().tlsim_arch_available(a.encode())]
LANES = 64
REGION = SLOT * LANES

# ---- what the operations do ---------------------------------------------------------------------------------

LOADS = {  # suffix -> (bytes, signed, half: None, 0 low, 1 high)
    "ubyte": (1, False, None), "sbyte": (1, True, None), "ushort": (2, False, None), "sshort": (2, True, None),
    "dword": (4, False, None), "dwordx2": (8, False, None), "dwordx3": (12, False, None), "dwordx4": (16, False, None),
    "ubyte_d16": (1, False, 0), "ubyte_d16_hi": (1, False, 1), "sbyte_d16": (1, True, 0), "sbyte_d16_hi": (1, True, 1),
    "short_d16": (2, False, 0), "short_d16_hi": (2, False, 1),
}  # fmt: skip
STORES = {  # suffix -> (bytes, first byte of the data register)
    "byte": (1, 0), "byte_d16_hi": (1, 2), "short": (2, 0), "short_d16_hi": (2, 2), "dword": (4, 0),
    "dwordx2": (8, 0), "dwordx3": (12, 0), "dwordx4": (16, 0),
}  # fmt: skip


def f64(x: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", x))[0]


def add_f32(a: int, b: int) -> int:
    return int(np.float32(f32(a) + f32(b)).view(np.uint32))  # the float64 sum is exact here


def f64_op(f) -> object:
    return lambda a, b, n: struct.unpack("<Q", struct.pack("<d", f(f64(a), f64(b))))[0]


def halves(f) -> object:
    return lambda a, b, n: f(a & 0xFFFF, b & 0xFFFF) | f(a >> 16, b >> 16) << 16


def add_f16(a: int, b: int) -> int:
    x, y = (float(np.uint16(v).view(np.float16)) for v in (a, b))
    return int(np.float16(x + y).view(np.uint16))


def add_bf16(a: int, b: int) -> int:
    bits = add_f32(a << 16, b << 16)  # exact for these values
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


INT_ATOMICS = {  # (memory, data, bits) -> memory
    "swap": lambda m, d, n: d,
    "add": lambda m, d, n: m + d,
    "sub": lambda m, d, n: m - d,
    "smin": lambda m, d, n: min(signed(m, n), signed(d, n)),
    "smax": lambda m, d, n: max(signed(m, n), signed(d, n)),
    "umin": lambda m, d, n: min(m, d),
    "umax": lambda m, d, n: max(m, d),
    "and": lambda m, d, n: m & d,
    "or": lambda m, d, n: m | d,
    "xor": lambda m, d, n: m ^ d,
    "inc": lambda m, d, n: 0 if m >= d else m + 1,
    "dec": lambda m, d, n: d if m == 0 or m > d else m - 1,
}
FLOAT_ATOMICS = {
    "add_f32": (4, lambda m, d, n: add_f32(m, d)),
    "add_f64": (8, f64_op(lambda m, d: m + d)),
    "min_f64": (8, f64_op(min)),
    "max_f64": (8, f64_op(max)),
    "pk_add_f16": (4, halves(add_f16)),
    "pk_add_bf16": (4, halves(add_bf16)),
}

# ---- cases --------------------------------------------------------------------------------------------------


def load_cases(fam: str) -> list[Case]:
    out = []
    for name, (n, _, _) in LOADS.items():
        d = regs(10, n)
        forms = {
            "global": [f"{d}, v[2:3], off offset:4", f"{d}, v1, s[12:13] offset:4"],
            "flat": [f"{d}, v[2:3] offset:4"],
            "buffer": [f"{d}, v1, s[16:19], 0 offen offset:4", f"{d}, v0, s[24:27], 4 idxen"],
            "scratch": [f"{d}, v1, off offset:4"],
        }[fam]
        out += [Case(f"{fam}_load_{name} {f}", "load", name) for f in forms]
    return out


def store_cases(fam: str) -> list[Case]:
    out = []
    for name, (n, _) in STORES.items():
        d = regs(10, n)
        forms = {
            "global": [f"v[4:5], {d}, off offset:4", f"v1, {d}, s[14:15] offset:4"],
            "flat": [f"v[4:5], {d} offset:4"],
            "buffer": [f"{d}, v1, s[20:23], 0 offen offset:4"],
            "scratch": [f"v1, {d}, off offset:4"],
        }[fam]
        out += [Case(f"{fam}_store_{name} {f}", "store", name) for f in forms]
    return out


def atomic_cases(fam: str, arch: str) -> list[Case]:
    out = []
    flag = " glc" if arch == "gfx90a" else " sc0"
    ops = [(o + x, 8 if x else 4) for o in (*INT_ATOMICS, "cmpswap") for x in ("", "_x2")]
    ops += [(o, n) for o, (n, _) in FLOAT_ATOMICS.items()]
    for name, n in ops:
        d = regs(10, 2 * n if "cmpswap" in name else n)
        for ret in (False, True):
            r, f = (regs(14, n) + ", ", flag) if ret else ("", "")
            forms = {
                "global": [f"{r}v[6:7], {d}, off offset:8{f}", f"{r}v1, {d}, s[28:29] offset:8{f}"],
                "flat": [f"{r}v[6:7], {d} offset:8{f}"],
                "buffer": [f"{d}, v1, s[32:35], 0 offen offset:8{f}"],
            }[fam]
            out += [Case(f"{fam}_atomic_{name} {x}", "atomic", name, ret) for x in forms]
    return out


def atomic(what: str) -> tuple[int, object]:
    """(bytes, (memory, data, second data) -> memory)."""
    if what in FLOAT_ATOMICS:
        n, f = FLOAT_ATOMICS[what]
        return n, lambda m, d, e: f(m, d, 8 * n)
    op = what.removesuffix("_x2")
    n = 8 if what.endswith("_x2") else 4
    if op == "cmpswap":
        return n, lambda m, d, e: d if m == e else m
    return n, lambda m, d, e: INT_ATOMICS[op](m, d, 8 * n) & ((1 << 8 * n) - 1)


RULES = Rules(LOADS, STORES, atomic, halves_clear=True)
PROLOGUE = """
s_load_dwordx4 s[12:15], s[0:1], 0x0
s_load_dwordx2 s[28:29], s[0:1], 0x10
v_lshlrev_b32 v1, 5, v0
s_waitcnt lgkmcnt(0)
s_mov_b32 s16, s12
s_and_b32 s17, s13, 0xffff
s_mov_b32 s18, 2048
s_mov_b32 s19, 0x27000
s_mov_b32 s24, s12
s_or_b32 s25, s17, 0x200000
s_mov_b32 s26, 64
s_mov_b32 s27, 0x27000
v_mov_b32 v2, s12
v_mov_b32 v3, s13
v_add_co_u32 v2, vcc, v2, v1
v_addc_co_u32 v3, vcc, 0, v3, vcc
"""
# Before each case: the regions of out and mem that it has, as V# and as lane addresses; then the next ones.
HERE = """
s_mov_b32 s20, s14
s_and_b32 s21, s15, 0xffff
s_mov_b32 s22, 2048
s_mov_b32 s23, 0x27000
s_mov_b32 s32, s28
s_and_b32 s33, s29, 0xffff
s_mov_b32 s34, 2048
s_mov_b32 s35, 0x27000
v_mov_b32 v4, s14
v_mov_b32 v5, s15
v_add_co_u32 v4, vcc, v4, v1
v_addc_co_u32 v5, vcc, 0, v5, vcc
v_mov_b32 v6, s28
v_mov_b32 v7, s29
v_add_co_u32 v6, vcc, v6, v1
v_addc_co_u32 v7, vcc, 0, v7, vcc
"""
NEXT = "s_add_u32 s14, s14, 2048\ns_addc_u32 s15, s15, 0\ns_add_u32 s28, s28, 2048\ns_addc_u32 s29, s29, 0\n"
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"
TAKE = "global_load_dwordx4 v[10:13], v[2:3], off\n" + WAIT
GIVE = "global_store_dwordx4 v[4:5], v[10:13], off\n" + WAIT


CHIP = Chip(WAIT, HERE, NEXT, ("dword", "dwordx2", "dwordx4"))


def run_cases(arch: str, fam: str, cases: list[Case]) -> int:
    """Runs all cases that the chip has in one kernel and compares out and mem; returns how many."""
    cases = [c for c, code in zip(cases, encode(arch, [c.text for c in cases]), strict=True) if code is not None]
    body = PROLOGUE + "".join(code_of(c, fam, CHIP) for c in cases)
    args = (simlib.BUF, simlib.BUF, simlib.BUF)
    scratch = 2048 + SLOT if fam == "scratch" else 0
    hsaco = simlib.code_object(body, args, arch=arch, vgprs=32, sgprs=48, scratch=scratch)
    seed = sum(map(ord, arch + fam))
    rng = np.random.default_rng(seed)
    data = dwords(rng, REGION)
    out = np.full(REGION * len(cases), 0xEE, np.uint8)
    mem = dwords(rng, REGION * len(cases))
    for i in range(len(cases)):  # half of the compare-and-swaps succeed
        for lane in range(0, LANES, 2):
            at = i * REGION + lane * SLOT + 8
            n = 8 if cases[i].what.endswith("_x2") else 4
            mem[at : at + n] = data[lane * SLOT + n : lane * SLOT + 2 * n]
    dev = sim.Device(arch, checks=["bounds", "wait"], threads=1)
    got_out, got_mem = out.copy(), mem.copy()
    dev.load(hsaco).kernels["k"].launch(1, 64, [data, got_out, got_mem])
    return compare(f"{arch}, seed {seed}", cases, fam, LANES, RULES, data, (out, mem), (got_out, got_mem))


@pytest.mark.parametrize("fam", ["global", "flat", "buffer", "scratch"])
@pytest.mark.parametrize("arch", ARCHS)
def test_loads_and_stores(arch, fam):
    if fam == "scratch" and arch == "gfx90a":
        pytest.skip("gfx90a sets flat scratch up by hand")
    assert run_cases(arch, fam, load_cases(fam) + store_cases(fam)) >= 22


@pytest.mark.parametrize("fam", ["global", "flat", "buffer"])
@pytest.mark.parametrize("arch", ARCHS)
def test_atomics(arch, fam):
    assert run_cases(arch, fam, atomic_cases(fam, arch)) >= 52


# ---- loads straight to LDS, scalar buffers, typed buffers -----------------------------------------------------------


def launch(arch: str, body: str, arrays: list[np.ndarray], **kw: int) -> None:
    """Runs one wave of a kernel whose arguments are the arrays (changed in place)."""
    hsaco = simlib.code_object(body, (simlib.BUF,) * len(arrays), arch=arch, vgprs=32, sgprs=96, **kw)
    dev = sim.Device(arch, checks=["bounds", "wait"], threads=1)
    dev.load(hsaco).kernels["k"].launch(1, 64, arrays)


@pytest.mark.parametrize("arch", ARCHS)
def test_loads_to_lds(arch):
    """Lane l of a load to LDS writes at M0 + offset + l times its slot (4 bytes, 16 for more than a dword); the data
    is what an ordinary load gives."""
    cases = []
    for name in ("ubyte", "sbyte", "ushort", "sshort", "dword", "dwordx3", "dwordx4"):
        slot = 4 if LOADS[name][0] <= 4 else 16
        cases += [
            (f"global_load_lds_{name} v[2:3], off offset:4", name, slot),
            (f"global_load_lds_{name} v1, s[12:13] offset:4", name, slot),
            (f"buffer_load_{name} v1, s[16:19], 0 offen offset:4 lds", name, slot),
        ]
    codes = encode(arch, [c[0] for c in cases])
    cases = [c for c, code in zip(cases, codes, strict=True) if code is not None]
    assert any("buffer" in c[0] for c in cases)
    body = PROLOGUE
    for text, _, slot in cases:
        body += HERE + f"s_mov_b32 m0, 256\ns_nop 0\n{text}\n" + WAIT + f"v_mul_u32_u24 v8, {slot}, v0\n"
        for k in range(slot // 4):
            body += f"ds_read_b32 v{10 + k}, v8 offset:{260 + 4 * k}\n"
        body += WAIT + GIVE + NEXT
    rng = np.random.default_rng(11)
    data = rng.integers(0, 256, REGION, dtype=np.uint8)
    out = np.zeros(REGION * len(cases), np.uint8)
    launch(arch, body, [data, out, out.copy()], lds=2048)
    for i, (text, name, _) in enumerate(cases):
        n, sign, _ = LOADS[name]
        for lane in range(LANES):
            got = value(out[i * REGION :], lane, 0, n)
            want = value(data, lane, 4, n)
            assert got == want, f"{text}: lane {lane} is {got:x}, not {want:x}"


def test_m0_beyond_64k_of_lds():
    """On gfx950, with its 160 KiB, M0 reaches all of LDS: loads straight to it, addresses by lane, counters."""
    body = f"""s_load_dwordx4 s[12:15], s[0:1], 0x0
        v_lshlrev_b32 v1, 2, v0
        v_add_u32 v2, 0x24000, v1
        s_mov_b32 m0, 0x24000
        {WAIT}global_load_lds_dword v1, s[12:13]
        {WAIT}ds_read_b32 v4, v2
        ds_read_addtid_b32 v5
        ds_append v6
        ds_read_b32 v7, v2
        {WAIT}global_store_dword v1, v4, s[14:15]
        global_store_dword v1, v5, s[14:15] offset:256
        global_store_dword v1, v6, s[14:15] offset:512
        global_store_dword v1, v7, s[14:15] offset:768
        {WAIT}"""
    data, out = np.arange(64, dtype=np.uint32) * 3 + 5, np.zeros(256, np.uint32)
    launch("gfx950", body, [data, out], lds=163840)
    assert (out[:64] == data).all() and (out[64:128] == data).all()
    assert (out[128:192] == 5).all()
    assert out[192] == 5 + 64 and (out[193:] == data[1:]).all()


@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_loads(arch):
    """s_load and s_buffer_load of every width with immediate and register offsets; the buffer's end gives 0."""
    cases = []
    for n in (1, 2, 4, 8, 16):
        name, d = f"dword{'' if n == 1 else f'x{n}'}", "s40" if n == 1 else f"s[40:{39 + n}]"
        cases += [(f"s_load_{name} {d}, s[12:13], 0x14", n, 0x14), (f"s_load_{name} {d}, s[12:13], s36", n, 0x20),
                  (f"s_buffer_load_{name} {d}, s[16:19], 0x14", n, 0x14),
                  (f"s_buffer_load_{name} {d}, s[16:19], s36", n, 0x20)]  # fmt: skip
    cases.append(("s_buffer_load_dwordx4 s[40:43], s[16:19], 0x7f8", 2, 0x7F8))
    assert None not in encode(arch, [c[0] for c in cases])
    body = PROLOGUE + "s_mov_b32 s36, 0x20\n"
    for text, n, _ in cases:
        body += HERE + text + "\n" + WAIT + "v_lshlrev_b32 v8, 4, v0\n"
        for k in range(min(max(n, 4 if "0x7f8" in text else n), 16)):
            body += f"v_mov_b32 v10, s{40 + k}\nv_cmp_eq_u32 vcc, {k}, v0\ns_and_saveexec_b64 s[90:91], vcc\n"
            body += "global_store_dword v[4:5], v10, off\ns_mov_b64 exec, s[90:91]\n" + WAIT
        body += NEXT
    rng = np.random.default_rng(12)
    data = rng.integers(0, 256, REGION, dtype=np.uint8)
    out = np.zeros(REGION * len(cases), np.uint8)
    launch(arch, body, [data, out, out.copy()])
    for i, (text, n, at) in enumerate(cases):
        for k in range(n):
            got = value(out[i * REGION :], k, 0, 4)
            assert got == int.from_bytes(data[at + 4 * k : at + 4 * k + 4].tobytes(), "little"), f"{text}: dword {k}"
    last = out[(len(cases) - 1) * REGION :]
    assert [value(last, k, 0, 4) for k in (2, 3)] == [0, 0]


def typed_cases() -> list[tuple[str, str, int, bool, bool]]:
    """(mnemonic, operands' registers, components, d16, store)."""
    out = []
    for fam in ("buffer", "tbuffer"):
        for op in ("load", "store"):
            for d16 in ("", "d16_"):
                for k, comp in enumerate(("x", "xy", "xyz", "xyzw"), 1):
                    n = (k + 1) // 2 if d16 else k
                    out.append((f"{fam}_{op}_format_{d16}{comp}", regs(10, 4 * n), k, bool(d16), op == "store"))
    return out


@pytest.mark.parametrize("arch", ARCHS)
def test_typed_buffers(arch):
    """Formats of four 32-bit or (d16) four 16-bit floats: what memory holds is what registers hold."""
    cases = []
    for name, d, k, d16, store in typed_cases():
        fmt = ("BUF_DATA_FORMAT_16_16_16_16" if d16 else "BUF_DATA_FORMAT_32_32_32_32") + ",BUF_NUM_FORMAT_FLOAT"
        typed = f" format:[{fmt}]" if name.startswith("tbuffer") else ""
        srsrc = "s[20:23]" if store else "s[16:19]"
        cases.append((f"{name} {d}, v1, {srsrc}, 0{typed} offen offset:4", k, d16, store))
    codes = encode(arch, [c[0] for c in cases])
    cases = [c for c, code in zip(cases, codes, strict=True) if code is not None]
    assert len(cases) >= 16
    body = PROLOGUE
    for text, _, d16, store in cases:
        dfmt = 12 if d16 else 14
        word3 = 0xFAC | 7 << 12 | dfmt << 15
        body += HERE + f"s_mov_b32 s19, 0x{word3:x}\ns_mov_b32 s23, 0x{word3:x}\n"
        if store:
            body += TAKE + text + "\n" + WAIT
        else:
            body += "".join(f"v_mov_b32 v{10 + i}, 0x{OLD + i:x}\n" for i in range(4)) + text + "\n" + WAIT + GIVE
        body += NEXT
    rng = np.random.default_rng(13)
    data = dwords(rng, REGION)
    out = np.full(REGION * len(cases), 0xEE, np.uint8)
    launch(arch, body, [data, out, out.copy()])
    for i, (text, k, d16, store) in enumerate(cases):
        n = k * (2 if d16 else 4)
        for lane in range(LANES):
            got, at = (out[i * REGION :], 4) if store else (out[i * REGION :], 0)
            want = value(data, lane, 0 if store else 4, n)
            assert value(got, lane, at, n) == want, f"{text}: lane {lane} is {value(got, lane, at, n):x}, not {want:x}"
            if store:
                assert value(got, lane, 0, 4) == 0xEEEEEEEE, text


FORMATS = {  # (data format, number format): (bytes of the element, the four components as bits)
    (1, 0): ("80", [128 / 255, 0.0, 0.0, 1.0]),
    (1, 5): ("80", [-128, 0, 0, 1]),
    (3, 1): ("7f80", [1.0, -1.0, 0.0, 1.0]),
    (5, 2): ("01ffff00", [65281.0, 255.0, 0.0, 1.0]),
    (5, 3): ("01ffff00", [-255.0, 255.0, 0.0, 1.0]),
    (5, 7): ("003c00c0", [1.0, -2.0, 0.0, 1.0]),
    (9, 4): ((0x3FF | 5 << 10 | 7 << 20 | 2 << 30).to_bytes(4, "little").hex(), [1023, 5, 7, 2]),
    (8, 4): ((3 | 5 << 2 | 1023 << 12 | 9 << 22).to_bytes(4, "little").hex(), [3, 5, 1023, 9]),
    (6, 7): ((0x3C0 | 0x400 << 11 | 0x1C0 << 22).to_bytes(4, "little").hex(), [1.0, 2.0, 0.5, 1.0]),
    (10, 0): ("00ff33cc", [0.0, 1.0, 0.2, 0.8]),
    (11, 7): ("0000803f0000a0c0", [1.0, -5.0, 0.0, 1.0]),
    (13, 5): ("ffffffff02000000fdffffff", [-1, 2, -3, 1]),
}


@pytest.mark.parametrize("arch", ARCHS)
def test_buffer_formats(arch):
    """Elements of many formats become components and, stored again, the same bytes."""
    rng = np.random.default_rng(14)
    body = PROLOGUE
    data = rng.integers(0, 256, REGION, dtype=np.uint8)
    at = 0
    where = []
    for (dfmt, nfmt), (raw, _) in FORMATS.items():
        word3 = 0xFAC | nfmt << 12 | dfmt << 15
        data[at : at + len(raw) // 2] = np.frombuffer(bytes.fromhex(raw), np.uint8)
        where.append(at)
        body += HERE + f"s_mov_b32 s19, 0x{word3:x}\ns_mov_b32 s35, 0x{word3:x}\nv_mov_b32 v8, {at}\n"
        body += "buffer_load_format_xyzw v[10:13], v8, s[16:19], 0 offen\n" + WAIT
        body += "buffer_store_format_xyzw v[10:13], v1, s[32:35], 0 offen\n" + WAIT + GIVE + NEXT
        at += 16
    out = np.zeros(REGION * len(FORMATS), np.uint8)
    mem = out.copy()
    launch(arch, body, [data, out, mem])
    for i, ((dfmt, nfmt), (raw, want)) in enumerate(FORMATS.items()):
        n = len(raw) // 2
        for lane in (0, 17, 63):
            got = [value(out[i * REGION :], lane, 4 * k, 4) for k in range(4)]
            exp = [x & 0xFFFFFFFF if isinstance(x, int) else int(np.float32(x).view(np.uint32)) for x in want]
            assert got == exp, f"data format {dfmt}, number format {nfmt}: {[hex(x) for x in got]}"
            back = mem[i * REGION + lane * SLOT : i * REGION + lane * SLOT + n].tobytes().hex()
            if (dfmt, nfmt) != (3, 1):  # two patterns mean -1
                assert back == raw, f"data format {dfmt}, number format {nfmt} stored as {back}"


@pytest.mark.parametrize("arch", ARCHS)
def test_swizzled_buffers(arch):
    """Records interleaved dword by dword, 8 to 64 of them side by side."""
    body, stride = PROLOGUE, 32
    for lines in range(4):
        body += HERE + f"s_or_b32 s25, s17, 0x{1 << 31 | stride << 16:x}\ns_mov_b32 s26, 64\n"
        body += f"s_mov_b32 s27, 0x{0x27000 | lines << 21:x}\nv_mov_b32 v8, v0\nv_mov_b32 v9, 8\n"
        body += "buffer_load_dword v10, v[8:9], s[24:27], 0 idxen offen offset:4\n" + WAIT + GIVE + NEXT
    data = np.random.default_rng(15).integers(0, 256, REGION, dtype=np.uint8)
    out = np.zeros(REGION * 4, np.uint8)
    launch(arch, body, [data, out, out.copy()])
    for lines in range(4):
        n = 8 << lines
        for lane in range(LANES):
            at = (lane // n * stride + 12) * n + lane % n * 4
            got = value(out[lines * REGION :], lane, 0, 4)
            assert got == int.from_bytes(data[at : at + 4].tobytes(), "little"), (lines, lane)
