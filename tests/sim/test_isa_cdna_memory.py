"""Memory instructions of gfx90a, gfx942 and gfx950 beyond the usual ones: scalar stores and atomics, scratch set up by
hand, loads from scratch and typed buffers to LDS, transposing LDS loads, 160 KiB of LDS, global wave sync, forks,
VSKIP. Expected values come from plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from isa_ref import LANES, encode, execute, hexrow, row  # noqa: E402
from test_isa_memory import INT_ATOMICS, launch, signed  # noqa: E402

ARCHS = [a for a in ("gfx90a", "gfx942", "gfx950") if sim._native.library().tlsim_arch_available(a.encode())]
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"


def program(arch: str, text: str) -> bytes:
    lines = [x.strip() for x in text.strip().splitlines()]
    codes = encode(arch, lines)
    assert None not in codes, lines[codes.index(None)]
    return b"".join(codes)  # type: ignore[arg-type]


# ---- scalar memory ----------------------------------------------------------------------------------------------

SCALAR = """
s_load_dwordx4 s[12:15], s[0:1], 0x0
s_waitcnt lgkmcnt(0)
s_mov_b32 s16, s14
s_and_b32 s17, s15, 0xffff
s_mov_b32 s18, 4096
s_mov_b32 s19, 0x27000
"""


def words(n: int) -> str:
    return "dword" if n == 1 else f"dwordx{n}"


@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_stores(arch):
    """s_store, s_buffer_store, s_scratch_store and s_scratch_load: bytes, offsets, the end of a buffer's range."""
    rnd = random.Random(1)
    body, want = SCALAR, np.zeros(1024, np.uint32)
    at = 0
    values = [rnd.getrandbits(32) for _ in range(4)]
    body += "".join(f"s_mov_b32 s{40 + k}, 0x{x:x}\n" for k, x in enumerate(values))
    count = 0
    for n in (1, 2, 4):
        d = "s40" if n == 1 else f"s[40:{39 + n}]"
        for text, offset in (
            (f"s_store_{words(n)} {d}, s[14:15], 0x%x", None),
            (f"s_store_{words(n)} {d}, s[14:15], m0", "m0"),
            (f"s_buffer_store_{words(n)} {d}, s[16:19], 0x%x", None),
            (f"s_buffer_store_{words(n)} {d}, s[16:19], m0", "m0"),
            (f"s_scratch_store_{words(n)} {d}, s[14:15], 0x%x", None),
        ):
            body += f"s_mov_b32 m0, {4 * at}\n" + (text if offset else text % (4 * at)) + "\n"
            want[at : at + n] = values[:n]
            at += 4
            count += 1
        if n == 4:  # of s_scratch_* the register counts 64 bytes; behind the range of a buffer nothing is written
            at = (at + 15) // 16 * 16
            body += f"s_mov_b32 s30, {at // 16}\ns_scratch_store_{words(n)} {d}, s[14:15], s30\n"
            want[at : at + n] = values[:n]
            body += WAIT + f"s_scratch_load_{words(n)} s[44:47], s[14:15], s30\n" + WAIT
            body += f"s_store_{words(n)} s[44:47], s[14:15], 0x{4 * at + 64:x}\n"
            want[at + 16 : at + 20] = values
            body += f"s_scratch_load_dwordx2 s[48:49], s[14:15], 0x{4 * at + 4:x}\n"
            body += f"s_scratch_load_dword s50, s[14:15], 0x{4 * at + 12:x}\n" + WAIT
            body += f"s_store_dwordx2 s[48:49], s[14:15], 0x{4 * at + 96:x}\n"
            body += f"s_store_dword s50, s[14:15], 0x{4 * at + 104:x}\n"
            want[at + 24 : at + 27] = [values[1], values[2], values[3]]
            body += f"s_mov_b32 s18, {4 * at + 136}\ns_buffer_store_{words(n)} {d}, s[16:19], 0x{4 * at + 128:x}\n"
            want[at + 32 : at + 34] = values[:2]
    assert count == 15
    body += "s_dcache_wb\n" + WAIT + "s_dcache_discard s[14:15], 0x0\ns_dcache_discard_x2 s[14:15], 0x40\n"
    body += "s_dcache_wb_vol\ns_dcache_inv_vol\ns_atc_probe 1, s[14:15], 0x0\ns_atc_probe_buffer 1, s[16:19], 0x0\n"
    src, out = np.zeros(1024, np.uint32), np.zeros(1024, np.uint32)
    launch(arch, body + WAIT, [src, out])
    bad = np.flatnonzero(out != want)
    assert not bad.size, f"dword {bad[0]} is {out[bad[0]]:x}, not {want[bad[0]]:x}"


@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_atomics(arch):
    """All operations, 32 and 64 bits, with and without the old value, by address and through a buffer."""
    rnd = random.Random(2)
    cases = []
    for form, base in (("s_atomic", "s[14:15]"), ("s_buffer_atomic", "s[16:19]")):
        for op in (*INT_ATOMICS, "cmpswap"):
            for n in (4, 8):
                for ret in (False, True):
                    cases.append((form, base, op, n, ret))
    body = SCALAR
    src, out = np.zeros(16, np.uint32), np.zeros(4096, np.uint32)
    want = out.copy()
    for i, (form, base, op, n, ret) in enumerate(cases):
        at, d = 8 * i, n // 4 * (2 if op == "cmpswap" else 1)
        low = (1 << 8 * n) - 1
        mem, data, cmp = (rnd.choice((rnd.getrandbits(8 * n), 0, low, 1 << (8 * n - 1), 5)) for _ in range(3))
        if rnd.random() < 0.5:
            cmp = mem
        for k in range(n // 4):
            out[at + k] = want[at + k] = mem >> 32 * k & 0xFFFFFFFF
        value = data | cmp << 8 * n
        body += "".join(f"s_mov_b32 s{40 + k}, 0x{value >> 32 * k & 0xFFFFFFFF:x}\n" for k in range(d))
        regs = "s40" if d == 1 else f"s[40:{39 + d}]"
        text = f"{form}_{op}{'_x2' if n == 8 else ''} {regs}, {base}, "
        text += f"0x{4 * at:x}" if i % 2 else "m0"
        body += f"s_mov_b32 m0, {4 * at}\n{text}{' glc' if ret else ''}\n" + WAIT
        body += (
            f"s_store_dword s40, s[14:15], 0x{4 * at + 16:x}\ns_store_dword s41, s[14:15], 0x{4 * at + 20:x}\n" + WAIT
        )
        new = (data if mem == cmp else mem) if op == "cmpswap" else INT_ATOMICS[op](mem, data, 8 * n) & low
        for k in range(n // 4):
            want[at + k] = new >> 32 * k & 0xFFFFFFFF
        got = mem if ret else data
        want[at + 4] = got & 0xFFFFFFFF
        if n == 8:
            want[at + 5] = got >> 32
        else:
            want[at + 5] = 0xDEAD if d == 1 else cmp
            body = body.replace(text, "s_mov_b32 s41, 0xdead\n" + text, 1) if d == 1 else body
    assert len(cases) == 104
    launch(arch, body.replace("s_mov_b32 s18, 4096", f"s_mov_b32 s18, {out.nbytes}"), [src, out])
    for i, (form, _, op, n, ret) in enumerate(cases):
        a = slice(8 * i, 8 * i + 6)
        assert out[a].tolist() == want[a].tolist(), f"{form}_{op}, {n} bytes, old value {ret}"


@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_faults(arch):
    """A scalar store outside of every allocation is reported with its address."""
    body = SCALAR + "s_store_dword s0, s[14:15], 0x1000\n" + WAIT
    with pytest.raises(sim.SimulatorFault, match="scalar write of 4 bytes"):
        launch(arch, body, [np.zeros(16, np.uint32), np.zeros(1024, np.uint32)])


# ---- scratch ----------------------------------------------------------------------------------------------------


def test_scratch_set_up_by_hand():
    """gfx90a: flat scratch is the base of the queue's scratch plus the wave's offset; every width there and back."""
    if "gfx90a" not in ARCHS:
        pytest.skip("no instructions for gfx90a")
    loads = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
    halves = {"ubyte_d16": 0, "ubyte_d16_hi": 1, "sbyte_d16": 0, "sbyte_d16_hi": 1, "short_d16": 0, "short_d16_hi": 1}
    stores = {"byte": (1, 0), "short": (2, 0), "byte_d16_hi": (1, 2), "short_d16_hi": (2, 2)}
    rng = np.random.default_rng(3)
    data = rng.integers(0, 1 << 32, 64 * 4, dtype=np.uint32)
    body = "v_lshlrev_b32 v1, 4, v0\nglobal_load_dwordx4 v[4:7], v1, s[12:13]\n" + WAIT
    body += "scratch_store_dwordx4 off, v[4:7], s33\nscratch_store_dwordx4 off, v[4:7], s33 offset:16\n"
    body += "scratch_store_dwordx2 off, v[4:5], s33 offset:32\nscratch_store_dwordx3 off, v[4:6], s33 offset:48\n"
    body += "scratch_store_dword off, v6, s33 offset:64\n" + WAIT
    slots: list[tuple[str, int]] = []
    n_out = 0

    def give(count: int, name: str) -> str:
        nonlocal n_out
        text = ""
        for k in range(count):
            text += f"global_store_dword v2, v{12 + k}, s[14:15] offset:{4 * (n_out % 64)}\n"
            n_out += 1
            if n_out % 64 == 0:
                text += "s_add_u32 s14, s14, 256\ns_addc_u32 s15, s15, 0\n"
        slots.append((name, n_out - count))
        return text + WAIT

    v_off = "v_mov_b32 v3, 16\n"
    body += v_off
    for name, n in loads.items():
        d = "v12" if n <= 4 else f"v[12:{11 + n // 4}]"
        body += f"scratch_load_{name} {d}, v3, off offset:1\n" if n < 4 else f"scratch_load_{name} {d}, v3, off\n"
        body += WAIT + give(max(1, n // 4), name)
    for name in halves:
        body += f"v_mov_b32 v12, 0x1234abcd\nscratch_load_{name} v12, off, s33 offset:2\n" + WAIT + give(1, name)
    for name in stores:
        body += "v_mov_b32 v8, -1\nscratch_store_dword v3, v8, off offset:100\n" + WAIT
        body += f"scratch_store_{name} v3, v5, off offset:101\n" if name[0] == "b" else ""
        body += f"scratch_store_{name} v3, v5, off offset:102\n" if name[0] == "s" else ""
        body += WAIT + "scratch_load_dword v12, v3, off offset:100\n" + WAIT + give(1, "store " + name)
    for off, name in ((32, "x2"), (48, "x3"), (64, "one")):
        body += f"scratch_load_dwordx4 v[12:15], off, s33 offset:{off}\n" if name != "one" else ""
        body += f"scratch_load_dword v12, off, s33 offset:{off}\n" if name == "one" else ""
        body += WAIT + give({"x2": 2, "x3": 3, "one": 1}[name], "back " + name)
    stride = (n_out + 63) // 64 * 256
    # flat_scratch = init + offset of the wave (the last system SGPR); s[0:3] buffer, s[4:5] kernargs, s[6:7] init
    head = (
        "s_add_u32 flat_scratch_lo, s6, s9\ns_addc_u32 flat_scratch_hi, s7, 0\n"
        "s_load_dwordx4 s[12:15], s[4:5], 0x0\n"
        f"s_mov_b32 s33, 0\nv_mov_b32 v3, 0x{stride:x}\nv_mul_lo_u32 v2, v0, v3\n" + WAIT
    )
    hsaco = simlib.code_object(
        head + body,
        (simlib.BUF, simlib.BUF),
        arch="gfx90a",
        vgprs=32,
        sgprs=48,
        scratch=256,
        extra=".amdhsa_user_sgpr_private_segment_buffer 1\n.amdhsa_user_sgpr_flat_scratch_init 1\n"
        ".amdhsa_system_sgpr_private_segment_wavefront_offset 1\n",
    )
    out = np.zeros(64 * stride // 4, np.uint32)
    dev = sim.Device("gfx90a", checks=["bounds", "wait"], threads=1)
    dev.load(hsaco).kernels["k"].launch(1, 64, [data, out])
    out = out.reshape(64, -1)
    at = dict(slots)
    for lane in range(64):
        raw = data[4 * lane : 4 * lane + 4].tobytes()

        def number(first: int, n: int, sign: bool, raw: bytes = raw) -> int:
            x = int.from_bytes(raw[first : first + n], "little")
            return (signed(x, 8 * n) if sign else x) & 0xFFFFFFFF

        got = out[lane]
        for name, n in loads.items():
            if n < 4:
                assert got[at[name]] == number(1, n, name[0] == "s"), f"{name}, lane {lane}"
            else:
                assert got[at[name] : at[name] + n // 4].tobytes() == raw[:n], f"{name}, lane {lane}"
        for name, half in halves.items():
            n = 2 if name.startswith("short") else 1
            want = number(2, n, name.startswith("sbyte")) & 0xFFFF
            assert int(got[at[name]]) == want << 16 * half, f"{name}, lane {lane}"
        for name, (n, first) in stores.items():
            where = 1 if name[0] == "b" else 2
            word = bytearray(b"\xff" * 4)
            word[where : where + n] = raw[4 + first : 4 + first + n]
            assert got[at["store " + name]] == int.from_bytes(word, "little"), f"store {name}, lane {lane}"
        assert got[at["back x2"] : at["back x2"] + 2].tobytes() == raw[:8]
        assert got[at["back x3"] : at["back x3"] + 3].tobytes() == raw[:12]
        assert got[at["back one"]] == number(8, 4, False)


@pytest.mark.parametrize("arch", [a for a in ARCHS if a != "gfx90a"])
def test_scratch_to_lds(arch):
    """scratch_load_lds_*: lane l's scratch bytes to M0 + offset + 4 l."""
    names = {"ubyte": (1, False), "sbyte": (1, True), "ushort": (2, False), "sshort": (2, True), "dword": (4, False)}
    body = "s_load_dwordx4 s[12:15], s[0:1], 0x0\nv_lshlrev_b32 v1, 3, v0\n" + WAIT
    body += "global_load_dwordx2 v[4:5], v1, s[12:13]\n" + WAIT
    body += "scratch_store_dwordx2 off, v[4:5], off\n" + WAIT + "v_lshlrev_b32 v2, 2, v0\n"
    for i, name in enumerate(names):
        body += f"s_mov_b32 m0, 512\nv_mov_b32 v6, 2\ns_nop 0\nscratch_load_lds_{name} v6, off offset:1\n" + WAIT
        body += "ds_read_b32 v7, v2 offset:513\n" + WAIT + f"global_store_dword v2, v7, s[14:15] offset:{256 * i}\n"
    rng = np.random.default_rng(4)
    data = rng.integers(0, 256, 8 * 64, dtype=np.uint8)
    out = np.zeros(64 * len(names), np.uint32)
    launch(arch, body + WAIT, [data, out], scratch=64, lds=2048)
    for i, (name, (n, sign)) in enumerate(names.items()):
        for lane in range(64):
            x = int.from_bytes(data[8 * lane + 3 : 8 * lane + 3 + n].tobytes(), "little")
            want = (signed(x, 8 * n) if sign else x) & 0xFFFFFFFF
            assert out[64 * i + lane] == want, f"{name}, lane {lane}"


@pytest.mark.parametrize("arch", ARCHS)
def test_typed_load_to_lds_and_high_halves(arch):
    """buffer_load_format_x lds converts on its way; the d16_hi forms move the upper half."""
    body = "s_load_dwordx4 s[12:15], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\n" + WAIT
    body += "s_mov_b32 s16, s12\ns_and_b32 s17, s13, 0xffff\ns_mov_b32 s18, 256\n"
    word3 = 0xFAC | 2 << 12 | 2 << 15  # 16 bits, as scaled unsigned numbers
    body += f"s_mov_b32 s19, 0x{word3:x}\ns_mov_b32 m0, 256\ns_nop 0\n"
    body += "buffer_load_format_x v1, s[16:19], 0 offen offset:2 lds\n" + WAIT
    body += "ds_read_b32 v2, v1 offset:258\n" + WAIT + "global_store_dword v1, v2, s[14:15]\n"
    word3 = 0xFAC | 7 << 12 | 2 << 15  # 16-bit floats
    body += f"s_mov_b32 s19, 0x{word3:x}\nv_mov_b32 v3, 0x12345678\n"
    body += "buffer_load_format_d16_hi_x v3, v1, s[16:19], 0 offen\n" + WAIT
    body += "global_store_dword v1, v3, s[14:15] offset:256\n"
    body += "s_mov_b32 s16, s14\ns_and_b32 s17, s15, 0xffff\ns_mov_b32 s18, 1024\nv_mov_b32 v4, 0x3c005555\n"
    body += "buffer_store_format_d16_hi_x v4, v1, s[16:19], 0 offen offset:512\n" + WAIT
    rng = np.random.default_rng(5)
    data = rng.integers(0, 0x7800, 128).astype(np.uint16)
    out = np.zeros(256, np.uint32)
    launch(arch, body, [data, out], lds=1024)
    for lane in range(64):
        want = int(np.float32(data[2 * lane + 1]).view(np.uint32))
        assert out[lane] == want, f"lane {lane} in LDS"
        assert out[64 + lane] == int(data[2 * lane]) << 16, f"lane {lane}, high half, the low one is cleared"
        assert out[128 + lane] == 0x3C00, f"lane {lane}, store"


# ---- LDS --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [4, 6, 8, 16])
def test_transposing_reads(bits):
    """gfx950: 16 lanes read rows of a matrix with 16 columns and get columns."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    name = "ds_read_b96_tr_b6 v[4:6]" if bits == 6 else f"ds_read_b64_tr_b{bits} v[4:5]"
    width, elems = (96, 16) if bits == 6 else (64, 64 // bits)
    code = encode("gfx950", [f"{name}, v0 offset:16"])[0]
    assert code is not None
    rnd = random.Random(bits)
    rows = [rnd.getrandbits(width) for _ in range(LANES)]
    order = list(range(LANES))
    rnd.shuffle(order)  # where a lane's row is in LDS
    lds = bytearray(16 + 16 * LANES)
    for lane in range(LANES):
        lds[16 + 16 * order[lane] : 16 + 16 * order[lane] + width // 8] = rows[lane].to_bytes(width // 8, "little")
    v = {"0": hexrow([16 * x for x in order])} | {str(4 + k): "0" * 512 for k in range(3)}
    out = execute("gfx950", code, {"v": v, "lds": bytes(lds).hex()})
    for lane in range(LANES):
        got = sum(int(row(out, 4 + k)[lane]) << 32 * k for k in range(width // 32))
        for j in range(elems):
            n = 16 * j + lane % 16
            source = rows[lane // 16 * 16 + n // elems] >> n % elems * bits & ((1 << bits) - 1)
            assert got >> j * bits & ((1 << bits) - 1) == source, f"lane {lane}, element {j}"


@pytest.mark.parametrize("arch", ARCHS)
def test_signed_byte_to_a_half(arch):
    """ds_read_i8_d16 and the other narrow reads of one half: the other half becomes 0 (registers with ECC)."""
    rng = np.random.default_rng(6)
    lds = rng.integers(0, 256, 256, dtype=np.uint8)
    widths = (("i8", 1), ("u8", 1), ("u16", 2))
    kinds = [(f"{t}_d16{h}", n, t == "i8", k) for t, n in widths for k, h in enumerate(("", "_hi"))]
    for name, n, sign, half in kinds:
        code = encode(arch, [f"ds_read_{name} v4, v0 offset:3"])[0]
        assert code is not None, name
        v = {"0": hexrow(2 * np.arange(LANES)), "4": hexrow([0x1234ABCD] * LANES)}
        got = row(execute(arch, code, {"v": v, "lds": lds.tobytes().hex()}), 4)
        for lane in range(LANES):
            x = int.from_bytes(lds[2 * lane + 3 : 2 * lane + 3 + n].tobytes(), "little")
            x = (signed(x, 8) if sign else x) & 0xFFFF
            want = x << 16 * half
            assert int(got[lane]) == want, f"{name}: lane {lane} is {got[lane]:x}, not {want:x}"


def test_gfx90a_loads_to_lds_and_cache_operations():
    """gfx90a writes `lds` behind a global load; its cache operations change no register."""
    if "gfx90a" not in ARCHS:
        pytest.skip("no instructions for gfx90a")
    names = {"ubyte": (1, False), "sbyte": (1, True), "ushort": (2, False), "sshort": (2, True), "dword": (4, False)}
    body = "s_load_dwordx4 s[12:15], s[0:1], 0x0\nv_lshlrev_b32 v1, 3, v0\nv_lshlrev_b32 v2, 2, v0\n" + WAIT
    body += "v_mov_b32 v4, s12\nv_mov_b32 v5, s13\nv_add_co_u32 v4, vcc, v4, v1\nv_addc_co_u32 v5, vcc, 0, v5, vcc\n"
    cases = [(name, form) for name in names for form in ("v[4:5], off", "v1, s[12:13]")]
    for i, (name, form) in enumerate(cases):
        body += f"s_mov_b32 m0, 512\ns_nop 0\nglobal_load_{name} {form} offset:1 lds\n" + WAIT
        body += "buffer_wbl2\nbuffer_invl2\nbuffer_wbinvl1\nbuffer_wbinvl1_vol\n" + WAIT
        body += "ds_read_b32 v7, v2 offset:513\n" + WAIT + f"global_store_dword v2, v7, s[14:15] offset:{256 * i}\n"
    rng = np.random.default_rng(7)
    data = rng.integers(0, 256, 8 * 64, dtype=np.uint8)
    out = np.zeros(64 * len(cases), np.uint32)
    launch("gfx90a", body + WAIT, [data, out], lds=2048)
    for i, (name, form) in enumerate(cases):
        n, sign = names[name]
        for lane in range(64):
            x = int.from_bytes(data[8 * lane + 1 : 8 * lane + 1 + n].tobytes(), "little")
            want = (signed(x, 8 * n) if sign else x) & 0xFFFFFFFF
            assert out[64 * i + lane] == want, f"{name} {form}, lane {lane}"


def test_large_lds():
    """gfx950 has 160 KiB of LDS for one workgroup, the others 64."""
    body = (
        "s_load_dwordx2 s[12:13], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\nv_add_u32 v2, 0x27f00, v1\nv_mov_b32 v3, v0\n"
        "ds_write_b32 v2, v3\nds_write_b32 v1, v2\n" + WAIT + "ds_read_b32 v4, v2\n" + WAIT
        + "global_store_dword v1, v4, s[12:13]\n" + WAIT
    )  # fmt: skip
    for arch in ARCHS:
        out = np.zeros(64, np.uint32)
        if arch == "gfx950":
            launch(arch, body, [out], lds=160 * 1024)
            assert out.tolist() == list(range(64))
        else:
            with pytest.raises(ValueError, match="LDS"):
                launch(arch, body, [out], lds=160 * 1024)


# ---- global wave sync -------------------------------------------------------------------------------------------

SYNC = [*ARCHS, *(["gfx1100"] if sim._native.library().tlsim_arch_available(b"gfx1100") else [])]


@pytest.mark.parametrize("arch", SYNC)
@pytest.mark.parametrize("threads", [1, 2])
def test_wave_sync_barrier(arch, threads):
    """Eight workgroups of two waves add to a counter, meet, and all see the whole sum; twice in a row."""
    groups, waves = 8, 2
    atomic = "sc0" if arch in ("gfx942", "gfx950") else "glc"
    body = (
        "s_load_dwordx4 s[12:15], s[0:1], 0x0\n"
        + WAIT
        + f"v_mov_b32 v1, 0\nv_mov_b32 v2, {groups * waves - 1}\ns_mov_b32 m0, 0\ns_nop 0\n"
    )
    body += "v_mov_b32 v8, 1\ns_mov_b64 s[20:21], exec\n"
    # the first wave to come sets the resource up
    body += f"s_mov_b64 exec, 1\nglobal_atomic_add v3, v1, v8, s[12:13] {atomic}\n" + WAIT
    body += (
        "v_readfirstlane_b32 s22, v3\ns_cmp_lg_u32 s22, 0\ns_cbranch_scc1 later\nds_gws_init v2 offset:3 gds\n" + WAIT
    )
    body += f"global_atomic_add v3, v1, v8, s[12:13] offset:4 {atomic}\n" + WAIT + "s_branch ready\nlater:\n"
    load = "global_load_dword v4, v1, s[12:13] offset:4 " + ("sc0 sc1\n" if atomic == "sc0" else "glc\n")
    body += "wait:\n" + load + WAIT + "v_readfirstlane_b32 s23, v4\ns_cmp_eq_u32 s23, 0\ns_cbranch_scc1 wait\nready:\n"
    for turn in range(2):
        body += f"global_atomic_add v1, v8, s[12:13] offset:{8 + 4 * turn}\n" + WAIT
        body += "s_waitcnt_vscnt null, 0x0\n" if arch == "gfx1100" else ""  # stores have a counter of their own there
        body += "ds_gws_barrier v2 offset:3 gds\n" + WAIT
        body += load.replace("offset:4", f"offset:{8 + 4 * turn}") + WAIT
        body += f"global_atomic_umin v1, v4, s[14:15] offset:{4 * turn}\n" + WAIT
    counters, least = np.zeros(16, np.uint32), np.full(16, 0xFFFFFFFF, np.uint32)
    hsaco = simlib.code_object(body, (simlib.BUF, simlib.BUF), arch=arch, vgprs=16, sgprs=48)
    dev = sim.Device(arch, checks=["bounds"], threads=threads, seed=3, max_instructions=1_000_000)
    dev.load(hsaco).kernels["k"].launch(groups, (32 if arch == "gfx1100" else 64) * waves, [counters, least])
    assert counters[:4].tolist() == [groups * waves, 1, groups * waves, groups * waves]
    assert least[:2].tolist() == [groups * waves] * 2


@pytest.mark.parametrize("arch", SYNC)
def test_wave_sync_semaphores(arch):
    """One wave: counts go up by v and br, down by p; a p without a count waits for ever."""

    def run(text: str) -> dict[str, Any]:
        state = {"exec": "f" * 15 + "0", "m0": "50000", "v": {"0": hexrow([9, 9, 9, 9, 2] + [7] * 59)}, "s": {"4": "1"}}
        return sim.execute(arch, program(arch, text), state)

    take = "ds_gws_sema_p gds\n"
    assert run("ds_gws_init v0 gds\n" + take * 2 + "s_mov_b32 s4, 2")["s"]["4"] == "00000002"
    assert run("ds_gws_sema_v gds\n" + take + "s_mov_b32 s4, 3")["s"]["4"] == "00000003"
    assert run("ds_gws_sema_br v0 gds\n" + take * 2 + "s_mov_b32 s4, 4")["s"]["4"] == "00000004"
    assert run("ds_gws_sema_release_all gds\ns_mov_b32 s4, 5")["s"]["4"] == "00000005"
    assert run("ds_gws_init v0 offset:1 gds\ns_mov_b32 m0, 0x60000\n" + take * 2)["s"]["4"] == "00000001"
    for text in (
        "ds_gws_init v0 gds\n" + take * 3,
        "ds_gws_sema_release_all gds\n" + take,
        "ds_gws_sema_v offset:1 gds\n" + take,
    ):
        with pytest.raises(sim.SimulatorFault, match="waits for other waves"):
            run(text)


# ---- forks, VSKIP -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
def test_forks_and_joins(arch):
    """Both sides of a fork run on their lanes, the smaller one first; a join brings them together."""
    body = """
    v_mov_b32 v1, 0
    s_mov_b64 s[24:25], exec
    s_mov_b32 s40, 0
    s_cbranch_i_fork s[20:21], 5
    v_add_u32 v1, 1, v1
    s_lshl_b32 s40, s40, 4
    s_add_u32 s40, s40, 1
    s_branch 4
    s_nop 0
    v_add_u32 v1, 2, v1
    s_lshl_b32 s40, s40, 4
    s_add_u32 s40, s40, 2
    s_nop 0
    s_cbranch_join s41
    s_mov_b64 exec, s[24:25]
    v_add_u32 v1, 16, v1
    """
    lines = [x.strip() for x in body.strip().splitlines()]
    assert lines.index("v_add_u32 v1, 2, v1") == lines.index("s_cbranch_i_fork s[20:21], 5") + 6
    exec_ = 0xFFFFFFFFFFFFFFF0
    g_fork = body.replace("s_cbranch_i_fork s[20:21], 5", "s_cbranch_g_fork s[20:21], s[22:23]").replace(
        "s_mov_b32 s40, 0", "s_mov_b32 s40, 0\ns_getpc_b64 s[22:23]\ns_add_u32 s22, s22, 32\ns_addc_u32 s23, s23, 0"
    )
    for text in (body, g_fork):
        for mask, order in ((0x00000000000FFFFF, 0x21), (0x0FFFFFFFFFFFFFFF, 0x12), (exec_, 0x2), (0, 0x1)):
            code = program(arch, text)
            state = {"exec": f"{exec_:016x}", "v": {"1": "0" * 512}}
            state["s"] = {"20": f"{mask & 0xFFFFFFFF:x}", "21": f"{mask >> 32:x}", "41": "0"}
            out = execute(arch, code, state)
            assert int(out["exec"], 16) == exec_, f"{mask:x}"
            assert int(out["s"]["40"], 16) == order, f"{mask:x}: {out['s']['40']}"
            for lane, x in enumerate(row(out, 1)):
                want = (2 if mask >> lane & 1 else 1) + 16 if exec_ >> lane & 1 else 0
                assert int(x) == want, f"{mask:x}: lane {lane} is {x}"


@pytest.mark.parametrize("arch", ARCHS)
def test_vskip(arch):
    """With VSKIP on vector and memory instructions do nothing; scalars go on; s_setreg switches it too."""
    text = """
    s_setvskip 4, 2
    v_mov_b32 v1, 5
    ds_write_b32 v0, v1
    s_mov_b32 s4, 7
    s_getreg_b32 s5, hwreg(HW_REG_MODE, 28, 1)
    s_setvskip s6, 0
    v_mov_b32 v2, 6
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1
    v_mov_b32 v3, 6
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0
    v_mov_b32 v4, 6
    """
    state = {"v": {str(k): "0" * 512 for k in range(5)}, "s": {"6": "fffffffe"}, "lds": "00" * 64, "scc": 1}
    out = execute(arch, program(arch, text), state)
    assert [int(row(out, k)[9]) for k in (1, 2, 3, 4)] == [0, 6, 0, 6]
    assert (out["s"]["4"], out["s"]["5"], out["lds"], out["scc"]) == ("00000007", "00000001", "00" * 64, 1)


# ---- the checks see them too ------------------------------------------------------------------------------------


def reports(arch: str, body: str, checks: list[str], grid: int = 1, lds: int = 0) -> list[str]:
    """Messages of a kernel with one buffer of 64 KiB in s[12:13], s[16:19]."""
    head = "s_load_dwordx2 s[12:13], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\n" + WAIT
    head += "s_mov_b32 s16, s12\ns_and_b32 s17, s13, 0xffff\ns_mov_b32 s18, 0x10000\ns_mov_b32 s19, 0x27000\n"
    hsaco = simlib.code_object(head + body, (simlib.BUF,), arch=arch, vgprs=64, sgprs=48, lds=lds)
    kernel = sim.Device(arch, checks=checks, threads=1).load(hsaco).kernels["k"]
    try:
        kernel.launch(grid, 64, [np.zeros(16384, np.uint32)])
    except sim.SimulatorFault as e:
        return [f"{r.check}: {r.message}" for r in e.reports]
    return []


@pytest.mark.parametrize("arch", ARCHS)
def test_checks_of_scalar_memory(arch):
    """Undefined data, a result used before its wait, two workgroups on one dword."""
    clean = "s_mov_b32 s30, 5\ns_store_dword s30, s[12:13], 0x0\ns_waitcnt lgkmcnt(0)\n"
    assert reports(arch, clean, ["init", "wait", "race", "bounds"]) == []
    found = reports(arch, "s_store_dword s30, s[12:13], 0x0\n" + WAIT, ["init"])
    assert any("s30 is stored" in m for m in found), found
    late = "s_mov_b32 s30, 5\ns_atomic_add s30, s[12:13], 0x0 glc\n%ss_add_u32 s31, s30, 1\n"
    assert reports(arch, late % WAIT, ["wait"]) == []
    found = reports(arch, late % "", ["wait"])
    assert any(m.startswith("wait") and "s30" in m for m in found), found
    found = reports(arch, clean, ["race"], grid=2)
    assert any(m.startswith("race") for m in found), found
    assert reports(arch, "s_mov_b32 s30, 5\ns_buffer_atomic_add s30, s[16:19], 0x0\n" + WAIT, ["race"], grid=2) == []


def test_checks_of_wide_conversions():
    """gfx950: an undefined element makes the lane's whole result undefined, through registers and transposing reads."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    body = "v_mov_b32 v32, 1.0\n" + "".join(f"v_mov_b32 v{2 + k}, v0\n" for k in range(16))
    body += "v_cvt_scalef32_pk32_fp6_f16 v[20:25], v[2:17], v32\nglobal_store_dword v1, v21, s[12:13]\n" + WAIT
    assert reports("gfx950", body, ["init"]) == []
    found = reports("gfx950", body.replace("v_mov_b32 v9, v0\n", ""), ["init"])
    assert any("is stored to global memory" in m for m in found), found
    body = (
        "v_lshlrev_b32 v2, 3, v0\nv_mov_b32 v4, v0\nv_mov_b32 v5, v0\n%sds_write_b64 v2, v[4:5]\ns_mov_b64 exec, -1\n"
    )
    body += WAIT + "ds_read_b64_tr_b16 v[6:7], v2\n" + WAIT + "global_store_dword v1, v6, s[12:13]\n" + WAIT
    assert reports("gfx950", body % "", ["init"], lds=512) == []
    found = reports("gfx950", body % "s_mov_b64 exec, 0xfffffff0\n", ["init"], lds=512)
    assert any("is stored to global memory" in m for m in found), found
