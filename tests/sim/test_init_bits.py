"""Check "init" knows bits: bit-fields are loaded, masked, put in and stored in memory that nobody wrote, and the
padding between them is of no account; a bit that matters is."""

from __future__ import annotations

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import undefined  # noqa: E402
from simlib import clang_hip  # noqa: E402

CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]


BITS = [  # instructions that leave 5 bits of v0 undefined, then what keeps them, then what hides them
    (["v_and_b32 v0, 31, v0"], "v_and_b32 v0, 16, v0", "v_and_b32 v0, 32, v0"),
    (["v_and_b32 v0, 31, v0"], "v_bfe_u32 v0, v0, 4, 1", "v_bfe_u32 v0, v0, 5, 27"),
    (["v_and_b32 v0, 31, v0"], "v_lshlrev_b32 v0, 27, v0", "v_lshlrev_b32 v0, 5, v0\nv_and_b32 v0, 31, v0"),
    (["v_and_b32 v0, 31, v0"], "v_lshrrev_b32 v0, 4, v0", "v_lshrrev_b32 v0, 5, v0"),
    (["v_or_b32 v0, -32, v0"], "v_not_b32 v0, v0", "v_or_b32 v0, 31, v0"),
    (["v_and_b32 v0, 31, v0", "v_or_b32 v0, 64, v0"], "v_xor_b32 v0, 1, v0", "v_and_b32 v0, 0x60, v0"),
    (["v_and_b32 v0, 31, v0"], "v_bfi_b32 v0, 15, v1, v0", "v_bfi_b32 v0, 31, v1, v0"),
    (["v_and_b32 v0, 31, v0"], "v_lshl_or_b32 v0, v0, 8, v1", "v_lshl_or_b32 v0, v1, 5, v0\nv_lshrrev_b32 v0, 5, v0"),
    (["v_and_b32 v0, 31, v0"], "v_perm_b32 v0, v0, v1, v2", "v_perm_b32 v0, v0, v1, v3"),
    (["v_and_b32 v0, 31, v0"], "v_add_lshl_u32 v0, v0, v1, 27", "v_add_lshl_u32 v0, v0, v1, 27\nv_and_b32 v0, 31, v0"),
    (
        ["v_and_b32 v0, 31, v0"],
        "v_mul_u32_u24 v0, 3, v0",
        "v_lshlrev_b32 v0, 8, v0\nv_mul_u32_u24 v0, 3, v0\nv_and_b32 v0, 255, v0",
    ),
]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("some, keeps, hides", BITS, ids=[b[1].split()[0] for b in BITS])
def test_bits(arch: str, some: list[str], keeps: str, hides: str) -> None:
    known = {1: 3, 2: 0x03020104, 3: 0x03020100}
    assert undefined(arch, some, 0, known)
    assert undefined(arch, [*some, *keeps.split("\n")], 0, known)
    assert not undefined(arch, [*some, *hides.split("\n")], 0, known)


TWO = ["v_xor_b32 v0, v0, v1", "v_sub_u32 v0, v0, v1", "v_or_b32 v0, v0, v1", "v_and_b32 v0, v0, v1"]
THREE = [
    "v_or3_b32 v0, v0, v1, v2",
    "v_and_or_b32 v0, v0, v1, v2",
    "v_bfi_b32 v0, v0, v1, v2",
    "v_add3_u32 v0, v0, v1, v2",
]


@pytest.mark.parametrize("arch", CHIPS)
def test_several_sources(arch: str) -> None:
    """What is undefined of several sources is not taken to be the same, in any bit: what vector and scalar registers
    have, the same bit of all of them alone or one of the first alone."""
    lines = [*TWO, *THREE, *(["v_xor3_b32 v0, s0, s1, v2"] if arch >= "gfx11" and len(arch) == 7 else [])]
    for text in lines:
        text = text.replace("sub_u32", "sub_nc_u32") if "xor3" in lines[-1] else text
        for bit in range(0, 32, 5):
            some = [f"v_and_b32 v{i}, 0x{1 << bit:x}, v{i}" for i in range(3)]
            some += [f"s_and_b32 s{i}, s{i}, 0x{1 << bit:x}" for i in range(2)]
            assert undefined(arch, [*some, text], 0), (text, bit)


AMOUNTS = ["v_lshlrev_b32 v0, v0, v1", "v_lshrrev_b32 v0, v0, v1", "v_bfe_u32 v0, v1, v0, 1", "v_bfe_u32 v0, v1, 0, v0"]
AMOUNTS += ["v_lshl_or_b32 v0, v1, v0, v1", "v_alignbit_b32 v0, v1, v2, v0", "v_perm_b32 v0, v1, v2, v0"]


@pytest.mark.parametrize("arch", CHIPS)
def test_undefined_amounts(arch: str) -> None:
    """How far a value is shifted or which bytes are taken is not known: no bit of the result is. (The bits of the
    amount that nothing looks at are of no account.)"""
    for text in AMOUNTS:
        for bit in (3, 17, 30):
            lines = ["v_and_b32 v0, 31, v0", text, f"v_and_b32 v0, 0x{1 << bit:x}, v0"]
            assert undefined(arch, lines, 0, {1: 3, 2: 5}), (text, bit)
        if "perm" not in text:
            assert not undefined(arch, ["v_and_b32 v0, -32, v0", text], 0, {1: 3, 2: 5}), text


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("text", "low", "high"),
    [  # of v[0:1], when v4 alone is defined, and v5 alone
        ("v_lshlrev_b64 v[0:1], 32, v[4:5]", (False, False), (False, True)),
        ("v_lshlrev_b64 v[0:1], 40, v[4:5]", (False, False), (False, True)),
        ("v_lshlrev_b64 v[0:1], 8, v[4:5]", (False, True), (True, True)),
        ("v_lshrrev_b64 v[0:1], 32, v[4:5]", (True, False), (False, False)),
        ("v_lshrrev_b64 v[0:1], 8, v[4:5]", (True, True), (True, False)),
        ("v_ashrrev_i64 v[0:1], 48, v[4:5]", (True, True), (False, False)),
    ],
)
def test_shifts_of_pairs(arch: str, text: str, low: tuple[bool, bool], high: tuple[bool, bool]) -> None:
    """A shift by 32 or more takes one half of its source (clang 15 leaves the other one undefined)."""
    for reg in (0, 1):
        assert undefined(arch, [text], reg, {4: 5}) == low[reg]
        assert undefined(arch, [text], reg, {5: 5}) == high[reg]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_packed_moves(arch: str) -> None:
    """Each half of the result is undefined in the bits of the register that it comes from."""
    some = ["v_and_b32 v4, 31, v4", "v_and_b32 v5, 0x700, v5"]
    for select, sources in (("[0,1]", (4, 5)), ("[1,0]", (5, 4)), ("[0,0]", (4, 4)), ("[1,1]", (5, 5))):
        move = f"v_pk_mov_b32 v[0:1], v[4:5], v[4:5] op_sel:{select}"
        for reg, source in enumerate(sources):
            for mask, bits in ((31, 4), (0x700, 5), (0xFFFFF8E0, 0)):
                lines = [*some, move, f"v_and_b32 v{reg}, 0x{mask:x}, v{reg}"]
                assert undefined(arch, lines, reg) == (source == bits), (select, reg, mask)


@pytest.mark.parametrize("arch", CHIPS)
def test_lanes_that_are_off(arch: str) -> None:
    """What other lanes still have in a register takes nothing from what the active ones write."""
    wave32 = arch >= "gfx11" and len(arch) == 7
    some = ["v_and_b32 v0, 0x700, v0", "s_mov_b32 exec_lo, 0xff" if wave32 else "s_mov_b64 exec, 0xff"]
    some += ["v_and_b32 v0, 31, v1"]
    assert undefined(arch, [*some, "v_and_b32 v0, 31, v0"], 0)
    assert not undefined(arch, [*some, "v_and_b32 v0, 0x700, v0"], 0)
    every = "s_mov_b32 exec_lo, -1" if wave32 else "s_mov_b64 exec, -1"
    assert undefined(arch, [*some, every, "v_and_b32 v0, 0x700, v0"], 0)


@pytest.mark.parametrize("arch", CHIPS)
def test_halves(arch: str) -> None:
    """A packed operation of a half that is undefined."""
    lines = ["v_and_b32 v0, 0xffff0000, v0", "v_pk_add_u16 v0, v0, v1"]
    assert undefined(arch, lines, 0, {1: 7})
    assert not undefined(arch, [*lines, "v_and_b32 v0, 0xffff, v0"], 0, {1: 7})


@pytest.mark.parametrize("arch", CHIPS)
def test_halves_are_not_tried_out(arch: str) -> None:
    """Of packed operations every half counts that an undefined one goes into, whatever values would do."""
    name = "v_pk_max_num_f16" if arch == "gfx1201" else "v_pk_max_f16"
    for text in (f"{name} v0, v0, v1", "v_pk_max_i16 v0, v0, v1", "v_pk_sub_u16 v0, v0, v1 clamp"):
        for bits, other in ((0xFFFF, 0xFFFF0000), (0xFFFF0000, 0xFFFF)):
            lines = [f"v_and_b32 v0, 0x{bits:x}, v0", text]
            known = {1: 0x7BFF7BFF}
            assert undefined(arch, [*lines, f"v_and_b32 v0, 0x{bits & 0x00100010:x}, v0"], 0, known), text
            assert not undefined(arch, [*lines, f"v_and_b32 v0, 0x{other:x}, v0"], 0, known), text
            crossed = [lines[0], text.replace("v1", "v1 op_sel:[1,0] op_sel_hi:[0,1]")]
            assert not undefined(arch, [*crossed, f"v_and_b32 v0, 0x{bits:x}, v0"], 0, known), text
    dot = "v_dot2_u32_u16" if arch < "gfx11" or len(arch) == 6 else ""
    if dot:
        lines = ["v_and_b32 v0, 0xffff, v0", f"{dot} v0, v0, v1, v1", "v_and_b32 v0, 0x40000000, v0"]
        assert undefined(arch, lines, 0, {1: 1})


def test_halves_with_names() -> None:
    """gfx11: half of a register masked, merged into another one."""
    lines = ["v_and_b16 v0.h, v0.h, 0xf800", "v_or_b16 v1.l, v0.h, 6"]
    assert undefined("gfx1100", lines, 1)
    assert not undefined("gfx1100", [*lines, "v_and_b32 v1, 0x7ff, v1"], 1)


def test_pairs_of_instructions() -> None:
    """Halves of a VOPD pair, each by itself."""
    lines = ["v_and_b32 v0, 31, v0", "v_dual_mov_b32 v3, v1 :: v_dual_lshlrev_b32 v2, 3, v0"]
    assert undefined("gfx1100", lines, 2, {1: 3}) and not undefined("gfx1100", lines, 3, {1: 3})
    lines = ["v_and_b32 v0, 31, v0", "v_dual_mov_b32 v3, v1 :: v_dual_and_b32 v2, 32, v0"]
    assert not undefined("gfx1100", lines, 2, {1: 3})


SOURCE = """
struct S { unsigned a : 3, b : 5; int c : 11; unsigned d : 9; unsigned long long e : 33, f : 20; unsigned char g : 7; };
struct __attribute__((packed)) P { unsigned a : 3; int b : 13; unsigned c : 17; short d; unsigned e : 5; };
template <class T> static __attribute__((noinline)) void pass(T *to, const T *from) { *to = *from; }
extern "C" __attribute__((global)) void k(unsigned *o, unsigned n)
{
    unsigned i = __builtin_amdgcn_workitem_id_x();
    volatile S s;
    s.a = i;
    s.c = -(int)i;
    s.e = i * 0x123456789ull;
    s.g = i;
    P p, q;
    p.a = i, p.b = -(int)i, p.c = i * 77, p.d = i, p.e = i;
#ifdef MISSING
    if (n & 64)
#endif
    s.b = i;
    pass(&q, &p);
    o[i * 8 + 0] = s.a + s.b * 8;
    o[i * 8 + 1] = s.c;
    o[i * 8 + 2] = s.e;
    o[i * 8 + 3] = s.e >> 32;
    o[i * 8 + 4] = s.g;
    o[i * 8 + 5] = q.a + q.e * 8 + q.d;
    o[i * 8 + 6] = q.b;
    o[i * 8 + 7] = q.c;
}
"""


@pytest.mark.parametrize("options", ["-O0", "-O1", "-O2"])
@pytest.mark.parametrize("arch", CHIPS)
def test_bit_fields(arch: str, options: str) -> None:
    """Fields of a structure on the stack, set one by one, are no fault; a field that was never set is one."""
    text = "#define __device__ __attribute__((device))\n" + SOURCE.replace("static __attr", "static __device__ __attr")
    for missing in (False, True):
        code = clang_hip(text, arch, options, *(["-DMISSING"] if missing else []))
        dev = sim.Device(arch, checks="all")
        o = dev.array(np.zeros((64, 8), np.uint32))
        kernel = dev.load(code).kernels["k"]
        if missing:
            with pytest.raises(sim.SimulatorFault, match="undefined value"):
                kernel.launch(1, 64, [o, np.uint32(0)])
            continue
        kernel.launch(1, 64, [o, np.uint32(0)])
        got, i = o.numpy(np.uint32, (64, 8)), np.arange(64, dtype=np.int64)
        e = i * 0x123456789 & (1 << 33) - 1
        field5 = (i & 7) + (i & 31) * 8 + i
        want = [(i & 7) + (i & 31) * 8, -i, e, e >> 32, i & 127, field5, -i, i * 77]
        assert np.array_equal(got, np.stack(want, 1).astype(np.uint32))


FAULTS = r"""
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
struct S { unsigned a : 3, b : 5; int c : 11; unsigned d : 9, e : 4; };
struct U { unsigned char a : 3, b : 2; unsigned short c : 11, d : 2; unsigned e : 24, f : 7; };
template <class T> static __device__ __attribute__((noinline)) void pass(T *to, const T *from) { *to = *from; }
__shared__ unsigned char bytes[256];
__shared__ unsigned short shorts[256];
__shared__ U units[64];
extern "C" __attribute__((global)) void k(unsigned *o)
{
    unsigned i = __builtin_amdgcn_workitem_id_x();
    volatile unsigned x;                      /* never set */
    volatile unsigned char y;
    CASE
}
"""
STORED = {  # what goes to global memory: (is it a fault?, program)
    "copy of a structure": (False, "S s, t; s.a = i; s.b = i; s.c = i; s.d = 3; pass(&t, &s); pass((S *)o + i, &t);"),
    "field by field": (
        False,
        "volatile U s; s.a = i; s.d = i; s.e = i; for (int j = 0; j < 2; j++) s.f = j;"
        "U t; pass(&t, (U *)&s); pass((U *)o + i, &t);",
    ),
    "through LDS": (
        False,
        'U *u = units + i; asm volatile("" : "+v"(u)); u->a = i; u->c = i; u->d = i; u->e = i; U t;'
        " pass(&t, u); pass((U *)o + i, &t);",
    ),
    "changed copy": (
        False,
        "volatile U s; s.a = i; s.d = 1; s.e = i; U t; pass(&t, (U *)&s); ((volatile U *)&t)->a = 1;"
        " pass((U *)o + i, &t);",
    ),
    "a field that is not set": (True, "volatile U s; s.a = i; s.c = 3; s.e = i; o[i] = s.b;"),
    "a field of a field": (True, "volatile U s, t; s.a = i; t.a = s.b; t.b = i; o[i] = t.a;"),
    "low bits": (True, "o[i] = x & 15;"),
    "low bits by way of another variable": (True, "volatile unsigned z = x & 15; o[i] = z;"),
    "low bits in a byte": (True, "volatile unsigned char z = y & 15; ((unsigned char *)o)[i] = z;"),
    "low bits and a flag": (True, "volatile unsigned z = x & 15; z |= 16; o[i] = z;"),
    "one bit": (True, "volatile bool z = y & 1; ((bool *)o)[i] = z;"),
    "whole variable": (True, "volatile unsigned z = x; o[i] = z;"),
    "whole byte": (True, "volatile unsigned char z = y; ((unsigned char *)o)[i] = z;"),
    "byte of LDS": (True, "((unsigned char *)o)[i] = bytes[i];"),
    "byte of LDS and a flag": (True, "o[i] = bytes[i] | 1;"),
    "byte of LDS, shifted": (True, "o[i] = bytes[i] << 4;"),
    "half of LDS, shifted": (True, "o[i] = shorts[i] << 12;"),
    "two halves": (True, "o[i] = shorts[i] << 16 | i;"),
    "two bytes put together": (True, "((unsigned short *)o)[i] = bytes[i] << 3 | 1;"),
    "sum": (True, "o[i] = bytes[i] * 16 + i;"),
}


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("arch", CHIPS)
def test_stored(arch: str, name: str) -> None:
    """Padding between bit-fields may be copied to global memory; any other bit that is undefined is a fault there."""
    fault, program = STORED[name]
    for options in ("-O0", "-O2"):
        code = clang_hip(FAULTS.replace("CASE", program), arch, "-w", options)
        for delivery in ("now", "late"):
            dev = sim.Device(arch, checks=["init", "bounds"], delivery=delivery, seed=5)
            kernel = dev.load(code).kernels["k"]
            try:
                kernel.launch(1, 64, [dev.array(np.zeros((64, 8), np.uint32))])
                found = ""
            except sim.SimulatorFault as e:
                found = str(e)
            assert ("undefined value" in found and "is stored to global memory" in found) == fault, (options, delivery)
            assert bool(found) == fault, found
