"""Every kind of operand on every chip: registers with names, null, special sources, trap registers, literals and inline
constants in each type, accumulation registers. Expected values are the architecture's."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402
from test_isa_scalar import ARCHS, M32, M64, RDNA, pair, program, run, waves  # noqa: E402

CASES = [(a, w) for a in ARCHS for w in waves(a)]
CDNA = [a for a in ARCHS if a not in RDNA]


def row(out: dict[str, Any], reg: str | int) -> set[int]:
    """Values of a vector register over its lanes."""
    text = out["v"][str(reg)]
    return {int(text[i : i + 8], 16) for i in range(0, len(text), 8)}


def splat(wave: int, **values: int) -> dict[str, str]:
    return {k[1:]: f"{v & M32:08x}" * wave for k, v in values.items()}


def wide(out: dict[str, Any], reg: int) -> int:
    (lo,), (hi,) = row(out, reg), row(out, reg + 1)
    return lo | hi << 32


# ---- registers with names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch, wave", CASES)
def test_exec(arch, wave):
    e = 0xF0F0F0F0F0F0F0F1 & ((1 << wave) - 1)
    out = run(arch, program(arch, "s_mov_b64 s[4:5], exec", "s_mov_b32 s6, exec_lo", "s_not_b32 s7, exec_hi"),
              {k: 0 for k in (4, 5, 6, 7)}, wave, exec=f"{e:x}")  # fmt: skip
    assert pair(out, 4) == e and pair(out, 6, 32) == e & M32 and pair(out, 7, 32) == ~(e >> 32) & M32
    out = run(arch, program(arch, "v_mov_b32 v2, exec_lo"), {}, wave, exec=f"{e:x}", v=splat(wave, v2=9))
    lanes = [int(out["v"]["2"][8 * i : 8 * i + 8], 16) for i in range(wave)]
    assert lanes == [e & M32 if e >> i & 1 else 9 for i in range(wave)]
    out = run(arch, program(arch, "s_mov_b64 exec, s[4:5]", "v_mov_b32 v2, 7"), {4: 3, 5: 0}, wave, v=splat(wave, v2=0))
    assert out["v"]["2"] == "00000007" * 2 + "00000000" * (wave - 2)


@pytest.mark.parametrize("arch, wave", CASES)
def test_vcc(arch, wave):
    c = 0x123456789ABCDEF0 & ((1 << wave) - 1)
    lines = ["s_mov_b64 s[4:5], vcc", "v_mov_b32 v2, vcc_lo", "v_mov_b32 v3, vcc_hi", "s_add_u32 s6, vcc_lo, 1" if
             arch != "gfx1201" else "s_add_co_u32 s6, vcc_lo, 1", "s_mov_b32 vcc_lo, 5"]  # fmt: skip
    out = run(arch, program(arch, *lines), {4: 0, 5: 0, 6: 0}, wave, vcc=f"{c:x}", v=splat(wave, v2=0, v3=0))
    assert (
        pair(out, 4) == c
        and row(out, 2) == {c & M32}
        and row(out, 3) == {c >> 32}
        and pair(out, 6, 32) == (c & M32) + 1
    )
    assert int(out["vcc"], 16) == (c >> 32 << 32 | 5)


@pytest.mark.parametrize("arch, wave", CASES)
def test_m0(arch, wave):
    code = program(arch, "s_mov_b32 s4, m0", "v_mov_b32 v2, m0", "s_mov_b32 m0, s5")
    out = run(arch, code, {4: 0, 5: 77}, wave, m0="1234", v=splat(wave, v2=0))
    assert pair(out, 4, 32) == 0x1234 and row(out, 2) == {0x1234} and int(out["m0"], 16) == 77


@pytest.mark.parametrize("arch, wave", CASES)
def test_trap_registers(arch, wave):
    s = {108 + k: 0x100 + k for k in range(16)} | {4: 0, 5: 0}
    code = program(arch, "s_mov_b64 s[4:5], ttmp[6:7]", "v_mov_b32 v2, ttmp15", "v_mov_b32 v3, ttmp0")
    out = run(arch, code, s, wave, v=splat(wave, v2=0, v3=0))
    assert pair(out, 4) == 0x106 | 0x107 << 32 and row(out, 2) == {0x10F} and row(out, 3) == {0x100}


@pytest.mark.parametrize("arch, wave", [c for c in CASES if c[0] in RDNA])
def test_null(arch, wave):
    """null reads 0, and what is written to it is gone, in every width."""
    lines = ["s_mov_b32 null, s4", "s_mov_b64 null, s[4:5]", "s_mov_b32 s6, null", "s_mov_b64 s[8:9], null",
             "s_add_co_u32 s10, s4, null" if arch == "gfx1201" else "s_add_u32 s10, s4, null"]  # fmt: skip
    s = {4: 11, 5: 12, 6: 1, 8: 1, 9: 1, 10: 1}
    out = run(arch, program(arch, *lines), s, wave)
    assert {int(k): int(v, 16) for k, v in out["s"].items()} == {4: 11, 5: 12, 6: 0, 8: 0, 9: 0, 10: 11}
    lines = ["v_mov_b32 v2, null", "v_add_co_u32 v3, null, v0, v1", "v_cmp_eq_u32_e64 null, v0, v1",
             "v_add3_u32 v4, null, v0, v1", "v_add_f64 v[6:7], null, v[8:9]"]  # fmt: skip
    out = run(arch, program(arch, *lines), {}, wave, vcc="5",
              v=splat(wave, v0=M32, v1=2, v2=9, v3=0, v4=0, v6=0, v7=0, v8=0, v9=0x40080000))  # fmt: skip
    assert row(out, 2) == {0} and row(out, 3) == {1} and row(out, 4) == {1} and wide(out, 6) == 0x4008000000000000
    assert int(out["vcc"], 16) == 5 and not out["s"]


# ---- special sources -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch, wave", CASES)
def test_apertures(arch, wave):
    """Bases are 4 GiB aligned, limits end the same 4 GiB; shared and private are apart."""
    names = ["shared_base", "shared_limit", "private_base", "private_limit"]
    shift = "v_lshlrev_b64"
    lines = [f"s_mov_b64 s[{4 + 2 * i}:{5 + 2 * i}], src_{n}" for i, n in enumerate(names)]
    lines += [f"{shift} v[{2 + 2 * i}:{3 + 2 * i}], 0, src_{n}" for i, n in enumerate(names)]
    if encode(arch, [lines[-1]])[0] is None:
        pytest.fail("the shift is not there")
    out = run(arch, program(arch, *lines), {k: 0 for k in range(4, 12)}, wave,
              v=splat(wave, **{f"v{k}": 0 for k in range(2, 10)}))  # fmt: skip
    values = [pair(out, 4 + 2 * i) for i in range(4)]
    assert [wide(out, 2 + 2 * i) for i in range(4)] == values
    for base, limit in (values[:2], values[2:]):
        assert base and base & M32 == 0 and limit == base | M32
    assert values[0] != values[2]


@pytest.mark.parametrize("arch, wave", CASES)
def test_condition_sources(arch, wave):
    seen = 0
    sources = {"src_scc": lambda s, v, e: s, "src_vccz": lambda s, v, e: v == 0, "src_execz": lambda s, v, e: e == 0,
               "src_pops_exiting_wave_id": lambda s, v, e: 0}  # fmt: skip
    for name, f in sources.items():
        lines = [f"s_mov_b32 s4, {name}", f"v_mov_b32 v2, {name}", f"s_cselect_b32 s5, {name}, 7"]
        if None in encode(arch, lines):
            continue
        seen += 1
        for scc in (0, 1):
            for vcc in (0, 1 << (wave - 1)):
                for e in (0, 1):
                    masks = {"vcc": f"{vcc:x}", "exec": f"{e:x}"}
                    out = run(arch, program(arch, *lines), {4: 9, 5: 9}, wave, scc=scc, v=splat(wave, v2=9), **masks)
                    want = int(f(scc, vcc, e))
                    assert pair(out, 4, 32) == want and pair(out, 5, 32) == (want if scc else 7), (name, scc, vcc, e)
                    assert out["v"]["2"][:8] == f"{want if e else 9:08x}", (name, scc, vcc, e)
    assert seen == (1 if arch in RDNA else 4)


# ---- constants -------------------------------------------------------------------------------------------------

FLOATS = {"0.5": 0.5, "-0.5": -0.5, "1.0": 1.0, "-1.0": -1.0, "2.0": 2.0, "-2.0": -2.0, "4.0": 4.0, "-4.0": -4.0}
INV_2PI = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}
INTS = [0, 1, 2, 63, 64, -1, -2, -16]


def float_bits(x: float, n: int) -> int:
    kind = {16: "<e", 32: "<f", 64: "<d"}[n]
    return int.from_bytes(struct.pack(kind, x), "little")


def inline(n: int) -> dict[str, int]:
    """Text -> bits of every inline constant in an operand of n bits."""
    out = {str(i): i & ((1 << n) - 1) for i in INTS}
    out |= {t: float_bits(x, n) for t, x in FLOATS.items()}
    out["0.15915494309189532" if n == 64 else "0.15915494"] = INV_2PI[n]
    return out


@pytest.mark.parametrize("arch, wave", CASES)
def test_inline_constants(arch, wave):
    """Each inline constant as a source of scalar and vector operations of 16, 32 and 64 bits, integer and float."""
    rdna = arch in RDNA
    or32 = {t: (f"v_or_b32 v2, {t}, v0", b) for t, b in inline(32).items()}
    sor32 = {t: (f"s_or_b32 s4, {t}, 0", b) for t, b in inline(32).items()}
    sor64 = {t: (f"s_or_b64 s[4:5], {t}, 0", b) for t, b in inline(64).items()}
    min16 = {t: (f"v_max_u16 v2, v0, {t}" if rdna else f"v_max_u16_e64 v2, {t}, v0", b) for t, b in inline(16).items()}
    f32 = {t: (f"v_max_f32 v2, {t}, {t}" if not rdna else f"v_mul_f32 v2, {t}, v1", b) for t, b in inline(32).items()
           if t not in map(str, INTS)}  # fmt: skip
    f64 = {t: (f"v_add_f64 v[2:3], {t}, v[4:5]", b) for t, b in inline(64).items() if t not in map(str, INTS)}
    v = splat(wave, v0=0, v1=0x3F800000, v2=5, v3=5, v4=0, v5=0)
    groups = {"v32": or32, "s32": sor32, "s64": sor64, "u16": min16, "f32": f32, "f64": f64}
    checked = 0
    for kind, cases in groups.items():
        for (t, (text, want)), code in zip(cases.items(), encode(arch, [c[0] for c in cases.values()]), strict=True):
            if code is None and kind == "u16":
                continue
            assert code is not None, text
            out = run(arch, code, {4: 0, 5: 0}, wave, v=v)
            if kind[0] == "s":
                got = pair(out, 4, int(kind[1:]))
            else:
                got = wide(out, 2) if kind == "f64" else next(iter(row(out, 2))) & (0xFFFF if kind == "u16" else M32)
            assert got == want, f"{text} ({kind}, {t}): {got:x}, not {want:x}"
            checked += 1
    assert checked >= 60


@pytest.mark.parametrize("arch, wave", CASES)
def test_half_constants(arch, wave):
    """A half operation takes inline floats as halves; a packed one puts them in the low half (op_sel_hi picks)."""
    one = 0x3C00
    v = splat(wave, v0=0x40004000, v2=0, v3=0)
    lines = {"v_add_f16 v2, 1.0, v0" if arch != "gfx1100" else "v_add_f16_e64 v2, 1.0, v0": 0x4200,
             "v_mul_f16 v2, -4.0, v0" if arch != "gfx1100" else "v_mul_f16_e64 v2, -4.0, v0": 0xC800}  # fmt: skip
    for text, want in lines.items():
        code = encode(arch, [text])[0] or encode(arch, [text.replace("v2,", "v2.l,").replace("v0", "v0.l")])[0]
        assert code is not None, text
        out = run(arch, code, {}, wave, v=v)
        assert {x & 0xFFFF for x in row(out, 2)} == {want}, text
    packed = {"v_pk_add_f16 v2, v0, 1.0 op_sel_hi:[1,0]": 0x42004200, "v_pk_add_f16 v2, v0, 1.0": 0x40004200}
    for text, want in packed.items():
        out = run(arch, program(arch, text), {}, wave, v=v)
        assert row(out, 2) == {want}, (text, [hex(x) for x in row(out, 2)])
    assert one == float_bits(1.0, 16)


@pytest.mark.parametrize("arch, wave", CASES)
def test_literals(arch, wave):
    """32 bits behind the instruction: sign-extended for 64-bit integers, the upper half of a double."""
    lit = "0x89abcdef"
    value = 0x89ABCDEF
    out = run(arch, program(arch, f"s_mov_b32 s4, {lit}", f"s_mov_b64 s[6:7], {lit}", f"s_xor_b32 s5, {lit}, s8"),
              {4: 0, 5: 0, 6: 0, 7: 0, 8: 1}, wave)  # fmt: skip
    assert pair(out, 4, 32) == value and pair(out, 5, 32) == value ^ 1 and pair(out, 6) & M32 == value
    out = run(arch, program(arch, f"s_ashr_i64 s[4:5], {lit}, 4"), {4: 0, 5: 0}, wave)
    assert pair(out, 4) == (value - (1 << 32) >> 4) & M64
    v = splat(wave, v0=0, v1=1, v2=0, v3=0, v4=0, v5=0)
    assert row(run(arch, program(arch, f"v_or_b32 v2, {lit}, v0"), {}, wave, v=v), 2) == {value}
    assert row(run(arch, program(arch, "v_add_f32 v2, 0x40490fdb, v0"), {}, wave, v=v), 2) == {0x40490FDB}
    code = program(arch, "v_add_f64 v[2:3], v[4:5], 0x400921fb" if arch in RDNA else "v_cvt_f32_f64 v2, 0x400921fb")
    out = run(arch, code, {}, wave, v=v)
    assert (wide(out, 2) == 0x400921FB << 32) if arch in RDNA else row(out, 2) == {0x40490FD8}
    if arch in RDNA:
        texts = {
            f"v_add3_u32 v2, {lit}, v0, v1": value + 1,
            f"v_pk_add_u16 v2, {lit}, v0 op_sel_hi:[1,1]": value,
            f"v_cndmask_b32_e64 v2, v0, {lit}, vcc" + ("_lo" if wave == 32 else ""): value,
        }
        for text, want in texts.items():
            out = run(arch, assemble(arch, wave, text), {}, wave, v=v, vcc="f" * (wave // 4))
            assert row(out, 2) == {want}, text


def assemble(arch: str, wave: int, text: str) -> bytes:
    """One line for this wave size."""
    import re
    import subprocess

    attr = f"{'+' if wave == 64 else '-'}wavefrontsize64,{'+' if wave == 32 else '-'}wavefrontsize32"
    cmd = [simlib.llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", f"-mattr={attr}", "-show-encoding"]
    done = subprocess.run(cmd, input=text + "\n", capture_output=True, text=True, check=True)
    m = re.search(r"encoding: \[([^\]]*)\]", done.stdout)
    assert m, text
    return bytes(int(x, 16) for x in m[1].split(","))


@pytest.mark.parametrize("arch, wave", CASES)
def test_scalars_in_vector_operations(arch, wave):
    """As many scalar operands as the chip allows in one instruction."""
    v = splat(wave, v0=100, v2=0)
    text = "v_add3_u32 v2, s4, s5, v0" if arch in RDNA else "v_add3_u32 v2, s4, s4, v0"
    want = 100 + 7 + (9 if arch in RDNA else 7)
    assert row(run(arch, program(arch, text), {4: 7, 5: 9}, wave, v=v), 2) == {want}
    out = run(arch, program(arch, "v_readfirstlane_b32 s4, v0", "v_mov_b32 v2, s4"), {4: 0}, wave, v=v)
    assert pair(out, 4, 32) == 100 and row(out, 2) == {100}


# ---- accumulation registers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", CDNA)
def test_accumulation_registers_as_data(arch):
    """LDS operations take them as data and as destination, in each width."""
    v = {"0": "".join(f"{16 * i:08x}" for i in range(64))}
    for n in range(4):
        v[f"a{4 + n}"] = "".join(f"{1000 * n + i:08x}" for i in range(64))
        v[f"a{8 + n}"] = "0" * 512
    for n, bits in ((1, "b32"), (2, "b64"), (4, "b128")):
        src, dst = ("a4", "a8") if n == 1 else (f"a[4:{3 + n}]", f"a[8:{7 + n}]")
        code = program(arch, f"ds_write_{bits} v0, {src}", f"ds_read_{bits} {dst}, v0")
        out = run(arch, code, {}, 64, v=v, lds="00" * 1024)
        for k in range(4):
            assert out["v"][f"a{8 + k}"] == (v[f"a{4 + k}"] if k < n else "0" * 512), (bits, k)


@pytest.mark.parametrize("arch", CDNA)
def test_accumulation_registers_in_memory(arch):
    """Loads and stores of global memory and buffers straight from and to them."""
    body = """
      s_load_dwordx4 s[4:7], s[0:1], 0x0
      v_lshlrev_b32 v1, 2, v0
      s_waitcnt lgkmcnt(0)
      global_load_dword a3, v1, s[4:5]
      s_mov_b64 s[8:9], s[6:7]
      s_mov_b32 s10, 1024
      s_mov_b32 s11, 0x27000
      s_waitcnt vmcnt(0)
      global_store_dword v1, a3, s[6:7]
      buffer_store_dword a3, v1, s[8:11], 0 offen offset:256
      v_accvgpr_read_b32 v2, a3
      v_add_u32 v2, 1, v2
      v_accvgpr_write_b32 a4, v2
      s_nop 1
      global_store_dword v1, a4, s[6:7] offset:512
    """
    code, desc, meta = simlib.assemble(body, (simlib.BUF, simlib.BUF), arch=arch, vgprs=8)
    rsrc1 = struct.unpack_from("<I", desc, 48)[0] & ~63 | 24 // 8 - 1  # 8 vector registers and 16 of these
    co = simlib.link({"k": (code, desc[:48] + struct.pack("<I", rsrc1) + desc[52:], meta)}, arch=arch)
    a, out = np.arange(64, dtype=np.uint32) * 3, np.zeros(256, np.uint32)
    sim.Device(arch, threads=1).load(co).kernels["k"].launch(1, 64, [a, out])
    assert (out[:64] == a).all() and (out[64:128] == a).all() and (out[128:192] == a + 1).all()
