"""What a wave finds when it starts: one test for each field of a kernel descriptor and code object, on every chip.
Small kernels write their registers to memory; expected values come from the ABI's tables."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
import pytest
import simlib
from simlib import BUF, Arg

sim = pytest.importorskip("tilelang.sim")

ARCHS = [a for a in simlib.MACH if sim._native.library().tlsim_arch_available(a.encode())]
RDNA = [a for a in ARCHS if a.startswith("gfx1")]
CDNA = [a for a in ARCHS if a not in RDNA]
CASES = [(a, w) for a in ARCHS for w in ((32, 64) if a in RDNA else (64,))]
PRELOAD = [a for a in CDNA if a in ("gfx90a", "gfx942", "gfx950")]
OUT = "s[40:41]"  # where the tests keep the output's address


class Asm:
    """The chip's own words for what every kernel here does."""

    def __init__(self, arch: str) -> None:
        self.arch, rdna = arch, arch.startswith("gfx1")
        self.load = "s_load_b{}" if rdna else "s_load_dword{}"
        self.wait = "s_wait_kmcnt 0x0" if arch == "gfx1201" else "s_waitcnt lgkmcnt(0)"
        self.wait_all = "s_wait_loadcnt_dscnt 0x0" if arch == "gfx1201" else "s_waitcnt vmcnt(0) lgkmcnt(0)"
        self.wait_stores = {"gfx1100": "s_waitcnt_vscnt null, 0x0", "gfx1201": "s_wait_storecnt 0x0"}.get(
            arch, "s_waitcnt vmcnt(0)"
        )
        self.store = "global_store_b32" if rdna else "global_store_dword"

    def smem(self, dst: int, n: int, base: str, off: int = 0) -> str:
        dwords = {1: "", 2: "x2", 4: "x4", 8: "x8", 16: "x16"}
        name = self.load.format(32 * n if "_b" in self.load else dwords[n])
        reg = f"s{dst}" if n == 1 else f"s[{dst}:{dst + n - 1}]"
        return f"{name} {reg}, {base}, 0x{off:x}"

    def out(self, kernarg: int) -> list[str]:
        """The output's address, the first argument, to OUT."""
        return [self.smem(40, 2, f"s[{kernarg}:{kernarg + 1}]"), "v_mov_b32 v10, 0", self.wait]

    def put(self, at: int, source: str) -> list[str]:
        """Dword `at` of the output = a scalar operand."""
        return [f"v_mov_b32 v11, {source}", f"{self.store} v10, v11, {OUT} offset:{4 * at}"]

    def dump(self, kernarg: int, sources: list[str]) -> str:
        lines = self.out(kernarg)
        for i, s in enumerate(sources):
            lines += self.put(i, s)
        return "\n".join(lines)


def wave_flag(arch: str, wave: int) -> str:
    return f".amdhsa_wavefront_size32 {int(wave == 32)}" if arch in RDNA else ""


def launch(
    arch: str,
    body: str,
    n: int,
    grid: Any = 1,
    block: Any = 1,
    args: tuple = (BUF,),
    values: Any = (),
    dynamic: int = 0,
    **kw: Any,
) -> np.ndarray:
    """Output of n dwords of the kernel, run without checks."""
    kw = {"vgprs": 16, "sgprs": 96, **kw}
    kernel = sim.Device(arch, threads=1).load(simlib.code_object(body, args, arch=arch, **kw)).kernels["k"]
    out = np.full(n, 0xDEAD, np.uint32)
    kernel.launch(grid, block, [out, *values], dynamic)
    return out


# ---- user SGPRs ------------------------------------------------------------------------------------------------

USER = [("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
        ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1)]  # fmt: skip
ONLY_GFX90A = ("private_segment_buffer", "flat_scratch_init")


def user_layout(enabled: set[str]) -> dict[str, int]:
    """First SGPR of each enabled item."""
    at, out = 0, {}
    for name, n in USER:
        if name in enabled:
            out[name] = at
            at += n
    return out


def user(arch: str, *names: str) -> tuple[str, dict[str, int]]:
    enabled = {"kernarg_segment_ptr", *names}
    return "\n".join(f".amdhsa_user_sgpr_{n} 1" for n in names if n != "kernarg_segment_ptr"), user_layout(enabled)


@pytest.mark.parametrize("arch", ARCHS)
def test_kernarg_pointer(arch):
    a = Asm(arch)
    body = "\n".join([*a.out(0), a.smem(42, 2, "s[0:1]", 8), a.wait, *a.put(0, "s42"), *a.put(1, "s43")])
    out = launch(arch, body, 2, args=(BUF, Arg(8)), values=(0x123456789ABCDEF0,))
    assert out.tolist() == [0x9ABCDEF0, 0x12345678]


@pytest.mark.parametrize("arch", ARCHS)
def test_dispatch_packet(arch):
    """The packet behind dispatch_ptr: sizes of workgroup and grid, segments, kernel object, arguments."""
    a = Asm(arch)
    extra, at = user(arch, "dispatch_ptr")
    d, k = at["dispatch_ptr"], at["kernarg_segment_ptr"]
    body = [*a.out(k), a.smem(48, 16, f"s[{d}:{d + 1}]"), a.wait]
    for i in range(16):
        body += a.put(i, f"s{48 + i}")
    body += [*a.put(16, f"s{k}"), *a.put(17, f"s{k + 1}")]
    out = launch(arch, "\n".join(body), 18, (3, 2, 1), (8, 4, 2), extra=extra, lds=256, scratch=16)
    raw = out.tobytes()
    header, setup, wx, wy, wz = struct.unpack_from("<HHHHH", raw, 0)
    gx, gy, gz, private, group = struct.unpack_from("<IIIII", raw, 12)
    kernel_object, kernarg = struct.unpack_from("<QQ", raw, 32)
    assert header & 0xFF == 2 and setup & 3 == 3 and (wx, wy, wz) == (8, 4, 2) and (gx, gy, gz) == (24, 8, 2)
    assert (private, group) == (16, 256) and kernel_object % 64 == 0 and kernel_object
    assert kernarg == int(out[16]) | int(out[17]) << 32


@pytest.mark.parametrize("arch", ARCHS)
def test_queue(arch):
    """amd_queue_t: the high halves of the shared and private apertures, as the special sources give them."""
    a = Asm(arch)
    extra, at = user(arch, "queue_ptr")
    q, k = at["queue_ptr"], at["kernarg_segment_ptr"]
    body = [*a.out(k), a.smem(48, 2, f"s[{q}:{q + 1}]", 64), a.wait, "s_mov_b64 s[50:51], src_shared_base",
            "s_mov_b64 s[52:53], src_private_base"]  # fmt: skip
    for i in range(6):
        body += a.put(i, f"s{48 + i}")
    out = launch(arch, "\n".join(body), 6, extra=extra)
    shared, private = out[:2].tolist()
    assert out[2:].tolist() == [0, shared, 0, private] and shared != private and shared and private


@pytest.mark.parametrize("arch", ARCHS)
def test_dispatch_id(arch):
    a = Asm(arch)
    extra, at = user(arch, "dispatch_id")
    i, k = at["dispatch_id"], at["kernarg_segment_ptr"]
    co = simlib.code_object(a.dump(k, [f"s{i}", f"s{i + 1}"]), (BUF,), arch=arch, extra=extra, sgprs=96)
    kernel = sim.Device(arch, threads=1).load(co).kernels["k"]
    seen = []
    for _ in range(3):
        out = np.zeros(2, np.uint32)
        kernel.launch(1, 1, [out])
        seen.append(int(out[0]) | int(out[1]) << 32)
    assert [x - seen[0] for x in seen] == [0, 1, 2]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("scratch", [0, 16, 272])
def test_private_segment_size(arch, scratch):
    extra, at = user(arch, "private_segment_size")
    body = Asm(arch).dump(at["kernarg_segment_ptr"], [f"s{at['private_segment_size']}"])
    assert launch(arch, body, 1, extra=extra, scratch=scratch).tolist() == [scratch]


@pytest.mark.parametrize("arch", ARCHS)
def test_all_user_sgprs_together(arch):
    """Every item that the chip knows at once: each where the order of the table puts it, then the workgroup id."""
    names = [n for n, _ in USER if arch == "gfx90a" or n not in ONLY_GFX90A]
    extra, at = user(arch, *names)
    a = Asm(arch)
    d, k = at["dispatch_ptr"], at["kernarg_segment_ptr"]
    last = max(at.values()) + 1
    wg = "ttmp9" if arch == "gfx1201" else "s15" if arch == "gfx1100" else f"s{last}"
    if arch == "gfx1100":  # padded so that the workgroup's id is in s15
        extra += "\n.amdhsa_user_sgpr_count 15"
    body = [*a.out(k), a.smem(48, 8, f"s[{d}:{d + 1}]", 32), a.wait, *a.put(0, "s50"), *a.put(1, f"s{k}"),
            *a.put(2, f"s{at['private_segment_size']}"), *a.put(3, wg)]  # fmt: skip
    out = launch(arch, "\n".join(body), 4, 5, extra=extra, scratch=32)
    assert out[0] == out[1] and out[2] == 32 and out[3] == 4  # the last workgroup wrote last


@pytest.mark.skipif("gfx90a" not in ARCHS, reason="gfx90a is not there")
def test_scratch_descriptor_and_flat_scratch():
    """gfx90a: the private segment's buffer descriptor and the flat scratch base give the same bytes, lane by lane."""
    a = Asm("gfx90a")
    extra, at = user("gfx90a", "private_segment_buffer", "flat_scratch_init")
    k, f = at["kernarg_segment_ptr"], at["flat_scratch_init"]
    extra += "\n.amdhsa_system_sgpr_private_segment_wavefront_offset 1"
    body = [
        *a.out(k), f"s_add_u32 flat_scratch_lo, s{f}, s{f + 3}", f"s_addc_u32 flat_scratch_hi, s{f + 1}, 0",
        f"s_add_u32 s0, s0, s{f + 3}", "s_addc_u32 s1, s1, 0", "v_add_u32 v1, 100, v0",
        "buffer_store_dword v1, off, s[0:3], 0 offset:8", a.wait_stores, "v_mov_b32 v2, 8", "s_mov_b32 s50, 8",
        "scratch_load_dword v3, v2, off", "buffer_load_dword v4, v2, s[0:3], 0 offen", a.wait_all,
        "v_add_u32 v3, v3, v4", "v_lshlrev_b32 v5, 2, v0", f"global_store_dword v5, v3, {OUT}",
    ]  # fmt: skip
    out = launch("gfx90a", "\n".join(body), 64, 1, 64, extra=extra, scratch=32)
    assert (out == 2 * (100 + np.arange(64))).all()


# ---- preloaded arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", PRELOAD)
@pytest.mark.parametrize("length, offset", [(1, 0), (4, 0), (3, 2), (14, 0)])
def test_preloaded_arguments(arch, length, offset):
    """Arguments arrive in SGPRs behind the user SGPRs, and the wave starts 256 bytes behind the entry."""
    if length == 14 and arch == "gfx90a":
        length = 8
    a = Asm(arch)
    values = [0x1000 + i for i in range(14)]
    prologue = ["s_mov_b32 s60, 77", *["s_nop 0"] * 63]
    wg = 2 + length
    body = [*prologue, *a.out(0), *a.put(0, "s60"), *a.put(1, f"s{wg}")]
    for i in range(length):
        body += a.put(2 + i, f"s{2 + i}")
    extra = f".amdhsa_user_sgpr_kernarg_preload_length {length}\n.amdhsa_user_sgpr_kernarg_preload_offset {offset}"
    out = launch(arch, "\n".join(body), 16, 3, args=(BUF, *[Arg(4)] * 14), values=values, extra=extra)
    assert out[0] == 0 and out[1] == 2  # nothing of the prologue ran; the last workgroup
    args = np.concatenate([np.zeros(2, np.uint32), np.array(values, np.uint32)])
    got = out[2 : 2 + length].tolist()
    want = args[offset : offset + length].tolist()
    skip = max(0, 2 - offset)  # the output's address is no constant
    assert got[skip:] == want[skip:]


# ---- workgroup and work-item ids -------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dims", ["x", "y", "z", "xy", "xz", "yz", "xyz", ""])
def test_workgroup_ids(arch, dims):
    """Enabled ids follow the user SGPRs in order (gfx12: trap registers, 0 where not enabled)."""
    a = Asm(arch)
    extra = "\n".join(f".amdhsa_system_sgpr_workgroup_id_{d} {int(d in dims)}" for d in "xyz")
    first = 2
    if arch == "gfx1100":  # as compilers do: the ids end at s15
        first = 16 - len(dims)
        extra += f"\n.amdhsa_user_sgpr_count {first}"
    if arch == "gfx1201":
        source = {"x": "ttmp9", "y": "s50", "z": "s51"}
        prepare = ["s_and_b32 s50, ttmp7, 0xffff", "s_lshr_b32 s51, ttmp7, 16"]
    else:
        source, prepare = {d: f"s{first + i}" for i, d in enumerate(dims)}, []
    # a counter of finished workgroups is not needed: each writes where its own ids say
    body = [*a.out(0), *prepare, "s_mov_b32 s52, 0"]
    for d, scale in (("x", 1), ("y", 5), ("z", 15)):
        if d in dims:
            body += [
                f"s_mul_i32 s53, {source[d]}, {4 * scale}",
                f"s_add_{'co_' if arch == 'gfx1201' else ''}u32 s52, s52, s53",
            ]
    body += ["v_mov_b32 v10, s52", "v_mov_b32 v11, 1", f"{a.store} v10, v11, {OUT}"]
    out = launch(arch, "\n".join(body), 30, (5, 3, 2), extra=extra).reshape(2, 3, 5)
    want = np.full((2, 3, 5), 0xDEAD)
    want[tuple(slice(None) if d in dims else slice(0, 1) for d in "zyx")] = 1
    assert (out == want).all()


@pytest.mark.parametrize("arch", [a for a in ARCHS if a == "gfx1201"])
def test_workgroup_ids_that_are_off_read_zero_on_gfx12(arch):
    out = launch(arch, Asm(arch).dump(0, ["ttmp7"]), 1, (1, 3, 2))
    assert out.tolist() == [0]


def test_grid_limit_of_gfx12():
    """Ids of y and z have 16 bits there."""
    if "gfx1201" not in ARCHS:
        pytest.skip("gfx1201 is not there")
    kernel = sim.Device("gfx1201", threads=1).load(simlib.code_object("s_nop 0", (), arch="gfx1201")).kernels["k"]
    with pytest.raises(ValueError, match="65537 workgroups; the limit is 65536"):
        kernel.launch((1, 65537, 1), 32, [])


@pytest.mark.parametrize("arch", RDNA)
def test_hardware_ids(arch):
    """Places are numbered by wave and workgroup; gfx11 and gfx12 have no XCC_ID: number 20 is the scratch base."""
    a = Asm(arch)
    base = "HW_REG_WAVE_SCRATCH_BASE_HI" if arch == "gfx1201" else "HW_REG_FLAT_SCR_HI"
    one, two = ("HW_REG_WAVE_HW_ID1", "HW_REG_WAVE_HW_ID2") if arch == "gfx1201" else ("HW_REG_HW_ID1", "HW_REG_HW_ID2")
    body = [*a.out(0), f"s_getreg_b32 s50, hwreg({one}, 0, 10)", f"s_getreg_b32 s51, hwreg({two}, 16, 5)",
            f"s_getreg_b32 s52, hwreg({base})", "s_mov_b64 s[54:55], src_private_base",
            "v_lshlrev_b32 v10, 4, v0"]  # fmt: skip
    for i, s in enumerate(("s50", "s51", "s52", "s55")):
        body += [f"v_mov_b32 v11, {s}", f"{a.store} v10, v11, {OUT} offset:{4 * i}"]
    out = launch(arch, "\n".join(body), 4 * 6 * 32, 1, 6 * 32).reshape(6, 32, 4)[:, 0]
    assert [int(x) & 31 for x in out[:, 0]] == [0, 0, 0, 0, 1, 1] and [int(x) >> 8 for x in out[:, 0]] == [
        0,
        1,
        2,
        3,
        0,
        1,
    ]
    assert (out[:, 1] == 0).all() and (out[:, 2] == out[:, 3]).all() and out[0, 2]


@pytest.mark.parametrize("arch, wave", CASES)
def test_wave_number_and_workgroup_info(arch, wave):
    """gfx12: ttmp8[29:25] is the wave's number; before, the info SGPR has first wave [31] and waves [5:0]."""
    a = Asm(arch)
    flags = wave_flag(arch, wave)
    if arch == "gfx1201":
        body, want = ["s_lshr_b32 s50, ttmp8, 25", "s_and_b32 s50, s50, 31"], [0, 1, 2]
    else:
        at = 3
        flags += "\n.amdhsa_system_sgpr_workgroup_info 1"
        if arch == "gfx1100":
            flags += "\n.amdhsa_user_sgpr_count 14"
            at = 15
        body, want = [f"s_mov_b32 s50, s{at}"], [1 << 31 | 3, 3, 3]
    body = [*a.out(0), *body, "v_mov_b32 v11, s50", "v_lshlrev_b32 v10, 2, v0", f"{a.store} v10, v11, {OUT}"]
    out = launch(arch, "\n".join(body), 3 * wave, 1, 3 * wave, extra=flags).reshape(3, wave)
    assert (out == np.array(want, np.uint32)[:, None]).all()


@pytest.mark.parametrize("arch, wave", CASES)
@pytest.mark.parametrize("ids", [0, 1, 2])
def test_work_item_ids(arch, wave, ids):
    """v0 = x | y << 10 | z << 20 as far as enabled; lanes in order x, y, z; the last wave is partly empty."""
    a = Asm(arch)
    block = (6, 5, 3)
    n = 6 * 5 * 3
    body = [
        *a.out(0), "v_bfe_u32 v1, v0, 0, 10", "v_bfe_u32 v2, v0, 10, 10", "v_bfe_u32 v3, v0, 20, 10",
        "v_mbcnt_lo_u32_b32 v4, -1, 0", *(["v_mbcnt_hi_u32_b32 v4, -1, v4"] if wave == 64 else []),
        "v_readfirstlane_b32 s50, v0",
    ]  # fmt: skip
    # the wave's number from its first lane's coordinates would need the ids: use an atomic ticket instead
    add = "global_atomic_add_u32" if arch in RDNA else "global_atomic_add"
    returning = {"gfx1100": "glc", "gfx1201": "th:TH_ATOMIC_RETURN", "gfx90a": "glc"}.get(arch, "sc0")
    body += [
        "s_mov_b64 s[52:53], exec" if wave == 64 else "s_mov_b32 s52, exec_lo",
        "s_mov_b64 exec, 1" if wave == 64 else "s_mov_b32 exec_lo, 1",
        "v_mov_b32 v6, 1", f"{add} v7, v10, v6, {OUT} {returning}", a.wait_all, "v_readfirstlane_b32 s54, v7",
        "s_mov_b64 exec, s[52:53]" if wave == 64 else "s_mov_b32 exec_lo, s52",
        f"s_mul_i32 s54, s54, {wave}", "v_mov_b32 v7, s54", "v_lshlrev_b32 v4, 2, v4", "v_lshlrev_b32 v7, 2, v7",
        "v_or_b32 v4, v4, v7", f"{a.store} v4, v0, {OUT} offset:4",
    ]  # fmt: skip
    waves = -(-n // wave)
    kernel = sim.Device(arch, threads=1).load(
        simlib.code_object("\n".join(body), (BUF,), arch=arch, vgprs=16, sgprs=96,
                           extra=f".amdhsa_system_vgpr_workitem_id {ids}\n{wave_flag(arch, wave)}")
    ).kernels["k"]  # fmt: skip
    out = np.zeros(1 + waves * wave, np.uint32)
    kernel.launch(1, block, [out])
    want = [x | (y << 10 if ids >= 1 else 0) | (z << 20 if ids >= 2 else 0)
            for z, y, x in itertools.product(range(3), range(5), range(6))]  # fmt: skip
    assert out[0] == waves and out[1 : 1 + n].tolist() == want
    assert not out[1 + n :].any()


# ---- MODE ------------------------------------------------------------------------------------------------------

MODES = [("float_round_mode_32", 4, 0, 0), ("float_round_mode_16_64", 4, 2, 0), ("float_denorm_mode_32", 4, 4, 0),
         ("float_denorm_mode_16_64", 4, 6, 3), ("dx10_clamp", 2, 8, 1), ("ieee_mode", 2, 9, 1),
         ("fp16_overflow", 2, 23, 0)]  # fmt: skip
"""(directive, number of values, bit of MODE, the assembler's default)."""


MODE_CASES = [(a, *m[:3]) for a in ARCHS for m in MODES if a != "gfx1201" or m[0] not in ("dx10_clamp", "ieee_mode")]


@pytest.mark.parametrize("arch, name, count, bit", MODE_CASES)
def test_mode_fields(arch, name, count, bit):
    """Each mode of the descriptor is in MODE at the start (gfx12 has no dx10_clamp and no ieee)."""
    reg = "HW_REG_WAVE_MODE" if arch == "gfx1201" else "HW_REG_MODE"
    a = Asm(arch)
    bits = 2 if count == 4 else 1
    body = "\n".join([*a.out(0), f"s_getreg_b32 s50, hwreg({reg}, {bit}, {bits})", *a.put(0, "s50")])
    got = [int(launch(arch, body, 1, extra=f".amdhsa_{name} {v}")[0]) for v in range(count)]
    assert got == list(range(count))


@pytest.mark.parametrize("arch", ARCHS)
def test_modes_decide_results(arch):
    """Rounding, flushing and overflow as the descriptor says, without any s_setreg."""
    a = Asm(arch)
    body = [
        *a.out(0), "v_mov_b32 v1, 1.0", "v_mov_b32 v2, 0x33000000", "v_add_f32 v12, v1, v2",
        f"{a.store} v10, v12, {OUT}", "v_mov_b32 v2, 3", "v_add_f32 v12, v2, v2", f"{a.store} v10, v12, {OUT} offset:4",
        "v_mov_b32 v1, 0x47800000", "v_cvt_f16_f32 v3, v1", "v_and_b32 v3, 0xffff, v3",
        f"{a.store} v10, v3, {OUT} offset:8",
    ]  # fmt: skip
    text = "\n".join(body)
    near = launch(arch, text, 3, extra=".amdhsa_float_denorm_mode_32 3")
    assert near.tolist() == [0x3F800000, 6, 0x7C00]
    other = launch(arch, text, 3, extra=".amdhsa_float_round_mode_32 1\n.amdhsa_float_denorm_mode_32 0")
    assert other[:2].tolist() == [0x3F800001, 0]
    clamped = launch(arch, text, 3, extra=".amdhsa_fp16_overflow 1")
    assert clamped[2] == 0x7BFF


# ---- size and place of a wave ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arch, wave", CASES)
def test_exec_at_the_start(arch, wave):
    """One bit a thread: a full wave, and the last one of a workgroup."""
    a = Asm(arch)
    for block in (wave, 5, wave - 1):
        out = launch(arch, a.dump(0, ["exec_lo", "exec_hi"]), 2, 1, block, extra=wave_flag(arch, wave))
        assert int(out[0]) | int(out[1]) << 32 == (1 << block) - 1


@pytest.mark.parametrize("arch, wave", CASES)
def test_waves_of_a_workgroup(arch, wave):
    """A workgroup of 150 threads is three waves of 64 or five of 32 lanes."""
    add = "global_atomic_add_u32" if arch in RDNA else "global_atomic_add"
    a = Asm(arch)
    one = "s_mov_b64 exec, 1" if wave == 64 else "s_mov_b32 exec_lo, 1"
    body = [*a.out(0), one, "v_mov_b32 v11, 1", f"{add} v10, v11, {OUT}"]
    co = simlib.code_object("\n".join(body), (BUF,), arch=arch, sgprs=96, extra=wave_flag(arch, wave))
    out = np.zeros(1, np.uint32)
    sim.Device(arch, threads=1).load(co).kernels["k"].launch(1, 150, [out])
    assert out[0] == -(-150 // wave)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("lds, dynamic", [(0, 0), (4, 0), (1024, 0), (512, 1536), (65536, 0), (0, 65536)])
def test_lds_size(arch, lds, dynamic):
    """The last dword of static plus dynamic LDS is there, the next one is reported; the size is in LDS_ALLOC."""
    a = Asm(arch)
    total = lds + dynamic
    write, read = ("ds_store_b32", "ds_load_b32") if arch in RDNA else ("ds_write_b32", "ds_read_b32")
    reg = "HW_REG_WAVE_LDS_ALLOC" if arch == "gfx1201" else "HW_REG_LDS_ALLOC"
    granule = 1280 if arch == "gfx950" else 512
    unit = granule if arch in ("gfx950", "gfx1201") else 256

    def body(at: int) -> str:
        access = [f"v_mov_b32 v1, 0x{at:x}", "v_mov_b32 v2, 77", f"{write} v1, v2", f"{read} v11, v1", a.wait_all,
                  f"{a.store} v10, v11, {OUT}"]  # fmt: skip
        access = access if at >= 0 else []
        return "\n".join([*a.out(0), *access, f"s_getreg_b32 s50, hwreg({reg}, 12, 9)", *a.put(1, "s50")])

    out = run_lds(arch, body(total - 4), lds, dynamic, "none")
    assert out[1] == -(-total // granule) * granule // unit
    if total:
        assert out[0] == 77
    with pytest.raises(sim.SimulatorFault) as e:
        run_lds(arch, body(total), lds, dynamic, "bounds")
    assert e.value.reports[0].check == "bounds"


def run_lds(arch: str, body: str, lds: int, dynamic: int, checks: str) -> np.ndarray:
    co = simlib.code_object(body, (BUF,), arch=arch, lds=lds, sgprs=96)
    out = np.zeros(2, np.uint32)
    sim.Device(arch, threads=1, checks=checks).load(co).kernels["k"].launch(1, 1, [out], dynamic)
    return out


@pytest.mark.parametrize("arch", ARCHS)
def test_lds_limit(arch):
    """More LDS than a workgroup may have is refused with the numbers."""
    limit = 163840 if arch == "gfx950" else 65536
    co = simlib.code_object(Asm(arch).dump(0, ["0"]), (BUF,), arch=arch, lds=1024, sgprs=96)
    kernel = sim.Device(arch, threads=1).load(co).kernels["k"]
    with pytest.raises(ValueError, match=f"{limit + 4}.*{limit}"):
        kernel.launch(1, 1, [np.zeros(1, np.uint32)], limit - 1024 + 4)


@pytest.mark.parametrize("arch", CDNA)
@pytest.mark.parametrize("vgprs, accum", [(8, 4), (64, 32), (512, 256), (300, 252)])
def test_accumulation_registers(arch, vgprs, accum):
    """accum_offset splits the registers: the last of each file holds its value."""
    a = Asm(arch)
    last_v, last_a = accum - 1, vgprs - accum - 1
    regs = [f"v_mov_b32 v{last_v}, 5", f"v_accvgpr_write_b32 a{last_a}, v{last_v}", f"v_mov_b32 v{last_v}, 0"]
    regs = ["s_mov_b32 s60, 5", *regs, "s_nop 4", f"v_accvgpr_read_b32 v2, a{last_a}", "v_add_u32 v2, 37, v2"]
    body = [a.smem(40, 2, "s[0:1]"), a.wait, *regs, "v_mov_b32 v1, 0", f"{a.store} v1, v2, {OUT}"]
    extra = f".amdhsa_next_free_vgpr {vgprs}\n.amdhsa_accum_offset {accum}"
    text = "\n".join(body)
    code, desc, meta = assemble_raw(arch, text, extra)
    co = simlib.link({"k": (code, desc, meta)}, arch=arch)
    out = np.zeros(1, np.uint32)
    sim.Device(arch, threads=1).load(co).kernels["k"].launch(1, 64, [out])
    assert out[0] == 42


def assemble_raw(arch: str, body: str, extra: str) -> tuple[bytes, bytes, list]:
    """Like simlib.assemble with the register counts given in `extra`."""
    text = f"""
.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.text
.p2align 8
k:
{body}
s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_kernarg_size 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_sgpr 96
  {extra}
.end_amdhsa_kernel
"""
    import subprocess
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "k.o"
        cmd = [simlib.llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=obj", "-o", str(out)]
        subprocess.run(cmd, input=text, text=True, check=True)
        sec = simlib.sections(out.read_bytes())
    return sec[".text"], sec[".rodata"][:64], [{".offset": 0, ".size": 8, ".value_kind": "global_buffer"}]


@pytest.mark.parametrize("arch, wave", [c for c in CASES if c[0] in RDNA])
@pytest.mark.parametrize("vgprs", [8, 100, 256])
def test_vgpr_count(arch, wave, vgprs):
    """The last register a kernel asks for is there in both wave sizes, and the count is in GPR_ALLOC."""
    a = Asm(arch)
    reg = "HW_REG_WAVE_GPR_ALLOC" if arch == "gfx1201" else "HW_REG_GPR_ALLOC"
    body = [a.smem(40, 2, "s[0:1]"), a.wait, f"v_mov_b32 v{vgprs - 1}, 7", "v_mov_b32 v1, 0",
            f"{a.store} v1, v{vgprs - 1}, {OUT}", f"s_getreg_b32 s50, hwreg({reg}, 12, 8)", "v_mov_b32 v2, s50",
            f"{a.store} v1, v2, {OUT} offset:4"]  # fmt: skip
    extra = f".amdhsa_next_free_vgpr {vgprs}\n{wave_flag(arch, wave)}"
    co = simlib.link({"k": assemble_raw(arch, "\n".join(body), extra)}, arch=arch)
    out = np.zeros(2, np.uint32)
    sim.Device(arch, threads=1).load(co).kernels["k"].launch(1, wave, [out])
    unit = 8 if wave == 32 else 4
    assert out[0] == 7 and (int(out[1]) + 1) * unit == -(-vgprs // unit) * unit


@pytest.mark.parametrize("arch", RDNA)
@pytest.mark.parametrize("field", ["workgroup_processor_mode", "memory_ordered", "forward_progress"])
@pytest.mark.parametrize("value", [0, 1])
def test_rdna_modes(arch, field, value):
    """CU and WGP mode and the like change no result of a correct program."""
    out = launch(arch, Asm(arch).dump(0, ["5"]), 1, 2, 64, extra=f".amdhsa_{field} {value}")
    assert out[0] == 5


@pytest.mark.parametrize("arch", RDNA)
def test_residency_in_wgp_and_cu_mode(arch):
    """Workgroups a WGP: 128 KiB of LDS together in WGP mode, 64 KiB a CU in CU mode; waves and registers a SIMD."""
    fits = sim._native.library().tlsim_occupancy
    # LDS bytes, threads, workgroups a WGP in WGP mode and in CU mode
    cases = [(48, 512, 2, 2), (40, 512, 3, 2), (64, 512, 2, 2), (30, 512, 4, 4), (20, 256, 6, 6), (0, 1024, 2, 2),
             (0, 64, 32, 32), (0, 1024 - 256, 2, 2)]  # fmt: skip
    for lds, threads, wgp, cu in cases:
        for mode, want in ((1, wgp), (0, cu)):
            co = simlib.code_object(
                "s_nop 0", (), arch=arch, lds=lds * 1024, vgprs=8, extra=f".amdhsa_workgroup_processor_mode {mode}"
            )
            dev = sim.Device(arch, threads=1)
            kernel = dev.load(co).kernels["k"]
            got = fits(dev._handle, kernel._handle, threads, 0)
            assert got == want, (lds, threads, mode, got)
    for wave, vgprs, want in ((32, 96, 64), (32, 120, 48), (32, 256, 20), (64, 96, 32), (64, 256, 8)):
        extra = f".amdhsa_next_free_vgpr {vgprs}\n{wave_flag(arch, wave)}"
        co = simlib.link({"k": assemble_raw(arch, "s_nop 0", extra)}, arch=arch)
        dev = sim.Device(arch, threads=1)
        got = fits(dev._handle, dev.load(co).kernels["k"]._handle, wave, 0)
        assert got == want, (wave, vgprs, got)


@pytest.mark.parametrize("arch", CDNA)
def test_threadgroup_split(arch):
    out = launch(arch, Asm(arch).dump(0, ["5"]), 1, 2, 256, extra=".amdhsa_tg_split 1")
    assert out[0] == 5


EXCEPTIONS = ["fp_ieee_invalid_op", "fp_denorm_src", "fp_ieee_div_zero", "fp_ieee_overflow", "fp_ieee_underflow",
              "fp_ieee_inexact", "int_div_zero"]  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
def test_exceptions_and_traps(arch):
    """Exceptions that a kernel enables have no handler to go to: results are what they are without. s_trap ends the
    kernel with a report."""
    a = Asm(arch)
    body = [*a.out(0), "v_mov_b32 v1, 0", "v_rcp_f32 v11, v1", f"{a.store} v10, v11, {OUT}"]
    for name in EXCEPTIONS:
        out = launch(arch, "\n".join(body), 1, extra=f".amdhsa_exception_{name} 1")
        assert out[0] == 0x7F800000, name
    with pytest.raises(sim.SimulatorFault, match="s_trap 2") as e:
        launch(arch, "s_trap 2", 1)
    assert e.value.reports[0].check == "trap"


# ---- private segment -------------------------------------------------------------------------------------------


def scratch_names(arch: str) -> tuple[str, str, str]:
    return ("scratch_store_b32", "scratch_load_b32", "flat_load_b32") if arch in RDNA else (
        "scratch_store_dword", "scratch_load_dword", "flat_load_dword")  # fmt: skip


@pytest.mark.parametrize("arch, wave", [c for c in CASES if c[0] != "gfx90a"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_private_segment(arch, wave, dynamic):
    """Each lane has bytes of its own; the private aperture reaches the same ones. A dynamic stack has room beyond the
    fixed size."""
    a = Asm(arch)
    st, ld, flat = scratch_names(arch)
    at = 600 if dynamic else 8
    add = "v_add_nc_u32" if arch in RDNA else "v_add_u32"
    body = [
        *a.out(0), f"{add} v1, 100, v0", f"v_mov_b32 v2, 0x{at:x}", f"{st} v2, v1, off", a.wait_stores,
        f"{ld} v3, v2, off", "s_mov_b64 s[50:51], src_private_base", "v_mov_b32 v5, s51", "v_mov_b32 v4, v2",
        f"{flat} v6, v[4:5]", a.wait_all, f"{add} v3, v3, v6", "v_lshlrev_b32 v10, 2, v0", f"{a.store} v10, v3, {OUT}",
    ]  # fmt: skip
    extra = f".amdhsa_enable_private_segment 1\n.amdhsa_uses_dynamic_stack {int(dynamic)}\n{wave_flag(arch, wave)}"
    out = launch(arch, "\n".join(body), 3 * wave, 1, 3 * wave, extra=extra, scratch=16)
    assert (out == 2 * (100 + np.arange(3 * wave))).all()


@pytest.mark.parametrize("arch", [a for a in ARCHS if a != "gfx90a"])
def test_private_segment_end(arch):
    st, _, _ = scratch_names(arch)
    co = simlib.code_object(f"v_mov_b32 v2, 16\n{st} v2, v2, off", (), arch=arch, scratch=16,
                            extra=".amdhsa_enable_private_segment 1")  # fmt: skip
    with pytest.raises(sim.SimulatorFault) as e:
        sim.Device(arch, threads=1, checks="bounds").load(co).kernels["k"].launch(1, 1, [])
    assert e.value.reports[0].check == "bounds"


# ---- hidden arguments by code object version -------------------------------------------------------------------

V4 = ["hidden_global_offset_x", "hidden_global_offset_y", "hidden_global_offset_z"]
V5 = [("block_count_x", 4), ("block_count_y", 4), ("block_count_z", 4), ("group_size_x", 2), ("group_size_y", 2),
      ("group_size_z", 2), ("remainder_x", 2), ("remainder_y", 2), ("remainder_z", 2), ("pad", 16),
      ("global_offset_x", 8), ("global_offset_y", 8), ("global_offset_z", 8), ("grid_dims", 2)]  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("abi", [2, 3, 4])
def test_hidden_arguments(arch, abi):
    """Code object v4 (abi 2): global offsets. v5 and v6: sizes of grid and workgroup, where the ABI says."""
    a = Asm(arch)
    if abi == 2:
        args: list[Arg] = [BUF, *(Arg(8, k) for k in V4), Arg(8, "hidden_none")]
        expect = {8 + 4 * i: 0 for i in range(6)}
    else:
        args = [BUF]
        expect = {}
        values = {"block_count_x": 3, "block_count_y": 2, "block_count_z": 1, "group_size_x": 8, "group_size_y": 4,
                  "group_size_z": 1, "grid_dims": 2}  # fmt: skip
        data = bytearray()
        for name, size in V5:
            if name == "pad":
                args += [Arg(8), Arg(8)]
            else:
                args.append(Arg(size, "hidden_" + name))
            data += values.get(name, 0).to_bytes(size, "little")
        data += bytes(-len(data) % 4)
        args.append(Arg(2))  # fills the last dword
        expect = {8 + i: int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)}
    body = a.out(0)
    for i, at in enumerate(expect):
        body += [a.smem(50, 1, "s[0:1]", at), a.wait, *a.put(i, "s50")]
    pads = (0, 0, 0) if abi > 2 else ()
    out = launch(arch, "\n".join(body), len(expect), (3, 2), (8, 4), args=tuple(args), values=pads, abi=abi)
    assert out.tolist() == list(expect.values())


@pytest.mark.parametrize("arch", ARCHS)
def test_hidden_pointers_and_bases(arch):
    """The apertures, the queue and the size of dynamic LDS as hidden arguments equal what registers say."""
    a = Asm(arch)
    extra, at = user(arch, "queue_ptr")
    q, k = at["queue_ptr"], at["kernarg_segment_ptr"]
    args = (BUF, Arg(4, "hidden_dynamic_lds_size"), Arg(4, "hidden_private_base"), Arg(4, "hidden_shared_base"), Arg(4),
            Arg(8, "hidden_queue_ptr"))  # fmt: skip
    base = f"s[{k}:{k + 1}]"
    body = [*a.out(k), *(a.smem(50 + i, 1, base, 8 + 4 * i) for i in range(3)), a.smem(54, 2, base, 24), a.wait,
            "s_mov_b64 s[56:57], src_private_base", "s_mov_b64 s[58:59], src_shared_base"]  # fmt: skip
    for i, s in enumerate(("s50", "s51", "s57", "s52", "s59", "s54", f"s{q}", "s55", f"s{q + 1}")):
        body += a.put(i, s)
    out = launch(arch, "\n".join(body), 9, args=args, values=(0,), extra=extra, dynamic=768)
    assert out[0] == 768
    for i in (1, 3, 5, 7):
        assert out[i] == out[i + 1], i


# ---- waiting for each other ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch, wave", CASES)
@pytest.mark.parametrize("pause", ["s_sleep 1", "s_nop 0", "s_sleep_var s50"])
def test_spin_on_a_later_workgroup(arch, wave, pause):
    """All workgroups wait for a flag that the last one sets: residents take turns, with and without sleep."""
    if pause.startswith("s_sleep_var") and arch != "gfx1201":
        pause = "s_sleep 3"
    a = Asm(arch)
    load = "global_load_b32" if arch in RDNA else "global_load_dword"
    coherent = {"gfx90a": "glc", "gfx1100": "glc", "gfx1201": "scope:SCOPE_DEV"}.get(arch, "sc1")
    store = {"gfx90a": "", "gfx1100": "", "gfx1201": "scope:SCOPE_DEV"}.get(arch, "sc1")
    group = {"gfx1201": "ttmp9", "gfx1100": "s15"}.get(arch, "s2")
    extra = wave_flag(arch, wave) + ("\n.amdhsa_user_sgpr_count 15" if arch == "gfx1100" else "")
    n = 24
    body = f"""
      {a.smem(40, 2, "s[0:1]")}
      v_mov_b32 v10, 0
      s_mov_b32 s50, 2
      {a.wait}
      s_cmp_eq_u32 {group}, {n - 1}
      s_cbranch_scc1 last
    again:
      {pause}
      {load} v2, v10, {OUT} {coherent}
      {a.wait_all}
      v_readfirstlane_b32 s51, v2
      s_cmp_eq_u32 s51, 0
      s_cbranch_scc1 again
      s_branch done
    last:
      v_mov_b32 v2, 1
      {a.store} v10, v2, {OUT} {store}
      {a.wait_stores}
    done:
    """
    kernel = sim.Device(arch, threads=2).load(simlib.code_object(body, (BUF,), arch=arch, sgprs=96, extra=extra))
    flag = np.zeros(1, np.uint32)
    kernel.kernels["k"].launch(n, wave, [flag])
    assert flag[0] == 1
