"""Jumps, modes, hardware registers, register moves by M0, scalar memory, waits and other instructions without an effect
on values, and those that end or stop a wave: every chip, both wave sizes where it has two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402
from test_isa_scalar import ARCHS, M32, RDNA, pair, program, run, waves  # noqa: E402
from test_sim_launch_state import Asm  # noqa: E402

CASES = [(a, w) for a in ARCHS for w in waves(a)]
GEN12 = ("gfx1201",)

# ---- jumps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch, wave", CASES)
def test_branches(arch, wave):
    """Each conditional branch over one instruction, taken and not taken."""
    full, high = (1 << wave) - 1, 1 << (wave - 1)
    states = [{"scc": c, "vcc": f"{v:x}", "exec": f"{e:x}"} for c in (0, 1) for v in (0, high) for e in (0, high, full)]
    taken = {
        "s_branch": lambda s: True, "s_cbranch_scc0": lambda s: not s["scc"], "s_cbranch_scc1": lambda s: s["scc"],
        "s_cbranch_vccz": lambda s: s["vcc"] == "0", "s_cbranch_vccnz": lambda s: s["vcc"] != "0",
        "s_cbranch_execz": lambda s: s["exec"] == "0", "s_cbranch_execnz": lambda s: s["exec"] != "0",
        "s_cbranch_cdbgsys": lambda s: False, "s_cbranch_cdbguser": lambda s: False,
        "s_cbranch_cdbgsys_or_user": lambda s: False, "s_cbranch_cdbgsys_and_user": lambda s: False,
    }  # fmt: skip
    seen = 0
    for name, f in taken.items():
        if encode(arch, [f"{name} 1"])[0] is None:
            continue
        seen += 1
        code = program(arch, f"{name} 1", "s_movk_i32 s4, 7", "s_movk_i32 s5, 8")
        for s in states:
            out = run(arch, code, {4: 1, 5: 1}, wave, **s)
            assert pair(out, 5, 32) == 8 and pair(out, 4, 32) == (1 if f(s) else 7), (name, s)
    assert seen >= 7
    # a backward branch: counts down
    code = program(arch, "s_sub_i32 s4, s4, 1" if arch not in GEN12 else "s_sub_co_i32 s4, s4, 1",
                   "s_lshl_b32 s5, s5, 1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 65532")  # fmt: skip
    assert pair(run(arch, code, {4: 6, 5: 1}, wave), 5, 32) == 64


@pytest.mark.parametrize("arch, wave", CASES)
def test_calls(arch, wave):
    out = run(arch, program(arch, "s_call_b64 s[4:5], 1", "s_mov_b32 s6, 1", "s_mov_b32 s7, 2"), {6: 0, 7: 0}, wave)
    assert (pair(out, 6, 32), pair(out, 7, 32)) == (0, 2)
    add = "s_add_u32" if arch not in GEN12 else "s_add_co_u32"
    base = program(arch, "s_getpc_b64 s[4:5]", f"{add} s4, s4, 12")
    out = run(
        arch, base + program(arch, "s_setpc_b64 s[4:5]", "s_mov_b32 s6, 1", "s_mov_b32 s7, 2"), {6: 0, 7: 0}, wave
    )
    assert (pair(out, 6, 32), pair(out, 7, 32)) == (0, 2)
    code = base + program(arch, "s_swappc_b64 s[8:9], s[4:5]", "s_mov_b32 s6, 1", "s_mov_b32 s7, 2")
    out = run(arch, code, {4: 0, 5: 0, 6: 0, 7: 0}, wave)
    assert (pair(out, 6, 32), pair(out, 7, 32)) == (0, 2)
    assert pair(out, 8) == pair(out, 4) - 4  # behind the swap


# ---- ends and stops --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch, wave", CASES)
def test_ends(arch, wave):
    """What ends the wave, and what stops it with a report that names the instruction."""
    for text in ("s_endpgm", "s_endpgm_saved", "s_setkill 1"):
        out = run(arch, program(arch, text, "s_mov_b32 s4, 1"), {4: 0}, wave)
        assert pair(out, 4, 32) == 0, text
    for text in ("s_setkill 0", "s_sethalt 0", "s_trap 3"):  # 3: for a debugger, of which there is none
        assert pair(run(arch, program(arch, text, "s_mov_b32 s4, 1"), {4: 0}, wave), 4, 32) == 1, text
    stops = {
        "s_trap 2": "trap",
        "s_sethalt 1": "trap",
        "s_sendmsghalt sendmsg(MSG_INTERRUPT)": "trap",
        "s_rfe_b64 s[4:5]": "illegal",
        "s_rfe_restore_b64 s[4:5], s6": "illegal",
        "s_code_end": "illegal",
    }
    seen = 0
    for (text, check), code in zip(stops.items(), encode(arch, list(stops)), strict=True):
        if code is None:
            continue
        seen += 1
        with pytest.raises(sim.SimulatorFault, match=text.split()[0]) as e:
            run(arch, code, {4: 0, 5: 0, 6: 0}, wave)
        assert e.value.reports[0].check == check, text
    assert seen >= 4


# ---- no effect -------------------------------------------------------------------------------------------------

QUIET = """
s_nop 3|s_sleep 1|s_setprio 2|s_icache_inv|s_dcache_inv|s_dcache_wb|s_dcache_inv_vol|s_dcache_wb_vol|s_gl1_inv|s_wakeup
s_incperflevel 1|s_decperflevel 1|s_ttracedata|s_ttracedata_imm 5|s_version 0x5|s_clause 0x3|s_delay_alu 0x91
s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(SALU_CYCLE_1)|s_set_inst_prefetch_distance 0x3
s_waitcnt vmcnt(0) lgkmcnt(0)|s_waitcnt 0x3f|s_waitcnt_vscnt null, 0x0|s_waitcnt_vmcnt null, 0x1
s_waitcnt_expcnt null, 0x0|s_waitcnt_lgkmcnt null, 0x0|s_waitcnt_vscnt s6, 0x0|s_waitcnt_depctr 0xfff|s_wait_alu 0xfffd
s_wait_idle|s_wait_event 0x0|s_wait_loadcnt 0x0
s_wait_storecnt 0x0|s_wait_samplecnt 0x0|s_wait_bvhcnt 0x0|s_wait_expcnt 0x0|s_wait_dscnt 0x0|s_wait_kmcnt 0x0
s_wait_loadcnt_dscnt 0x0|s_wait_storecnt_dscnt 0x0|s_sleep_var s6|s_sleep_var 3|s_prefetch_inst s[4:5], 0x100, s6, 3
s_prefetch_inst_pc_rel 0x100, s6, 3|s_prefetch_data s[4:5], 0x100, s6, 3|s_prefetch_data_pc_rel 0x100, s6, 3
s_buffer_prefetch_data s[8:11], 0x100, s6, 3|s_atc_probe 3, s[4:5], 0x100|s_atc_probe_buffer 3, s[8:11], 0x100
s_sendmsg sendmsg(MSG_INTERRUPT)|s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)|s_barrier|s_barrier_wait -1|s_barrier_signal -1
"""


def quiet_lines() -> list[str]:
    out: list[str] = []
    for line in QUIET.strip().splitlines():
        line = line.replace(" | ", " \0 ")
        out += [x.replace("\0", "|") for x in line.split("|")]
    return out


@pytest.mark.parametrize("arch, wave", CASES)
def test_no_effect(arch, wave):
    """Waits, hints, cache operations, prefetches: the state is what it was and the next instruction runs."""
    lines = quiet_lines()
    seen = 0
    row = "".join(f"{i:08x}" for i in range(wave))
    for text, code in zip(lines, encode(arch, lines), strict=True):
        if code is None:
            continue
        seen += 1
        regs = {4: 0x1000, 5: 0, 6: 7, 8: 0x1000, 9: 0, 10: 16, 11: 0, 20: 0}
        state = {"exec": f"{(1 << wave) - 3:x}", "vcc": "1234", "scc": 1, "v": {"4": row}, "m0": "55"}
        out = run(arch, code + program(arch, "s_mov_b32 s20, 9"), regs, wave, **state)
        assert (int(out["exec"], 16), int(out["vcc"], 16), out["scc"], out["m0"]) == (
            (1 << wave) - 3, 0x1234, 1, "00000055"), text  # fmt: skip
        assert out["v"] == {"4": row} and {int(k): int(v, 16) for k, v in out["s"].items()} == {**regs, 20: 9}, text
    assert seen >= {"gfx1100": 28, "gfx1201": 38}.get(arch, 18), seen


# ---- modes and hardware registers ------------------------------------------------------------------------------


@pytest.mark.parametrize("arch, wave", CASES)
def test_mode(arch, wave):
    """MODE through s_setreg, s_round_mode and s_denorm_mode decides how the next instructions round and flush."""
    mode = "HW_REG_WAVE_MODE" if arch in GEN12 else "HW_REG_MODE"
    code = program(arch, f"s_setreg_imm32_b32 hwreg({mode}, 0, 4), 9", f"s_getreg_b32 s4, hwreg({mode}, 0, 8)")
    out = run(arch, code, {4: 0}, wave)
    assert pair(out, 4, 32) == 0xF9
    out = run(arch, program(arch, f"s_setreg_b32 hwreg({mode}, 2, 2), s6", f"s_getreg_b32 s4, hwreg({mode}, 0, 4)"),
              {4: 0, 6: 0xFE}, wave)  # fmt: skip
    assert pair(out, 4, 32) == 8
    clamp = program(arch, f"s_getreg_b32 s4, hwreg({mode}, 8, 2)")
    assert pair(run(arch, clamp, {4: 0}, wave), 4, 32) == (0 if arch in GEN12 else 3)
    add = "v_add_f32 v2, v0, v1"
    one, tiny, sub = 0x3F800000, 0x33000000, 0x00000003  # 1, 2^-25, a subnormal
    v = {str(k): f"{x:08x}" * wave for k, x in {0: one, 1: tiny, 2: 0, 3: sub, 4: 0}.items()}
    ups = [f"s_setreg_imm32_b32 hwreg({mode}, 0, 2), 1"] + (["s_round_mode 0x1"] if arch in RDNA else [])
    for up in ups:  # upwards, then to nearest again
        out = run(arch, program(arch, up, add, f"s_setreg_imm32_b32 hwreg({mode}, 0, 2), 0", "v_add_f32 v4, v0, v1"),
                  {}, wave, v=v)  # fmt: skip
        assert (out["v"]["2"][:8], out["v"]["4"][:8]) == ("3f800001", "3f800000"), up
    flushes = [f"s_setreg_imm32_b32 hwreg({mode}, 4, 2), 0"] + (["s_denorm_mode 12"] if arch in RDNA else [])
    for flush in flushes:
        out = run(arch, program(arch, "v_add_f32 v2, v3, v3", flush, "v_add_f32 v4, v3, v3"), {}, wave, v=v)
        assert (out["v"]["2"][:8], out["v"]["4"][:8]) == ("00000006", "00000000"), flush


@pytest.mark.parametrize("arch, wave", CASES)
def test_status_and_clocks(arch, wave):
    new, rdna = arch in GEN12, arch in RDNA
    status = "HW_REG_WAVE_STATUS" if new else "HW_REG_STATUS"
    code = program(arch, f"s_getreg_b32 s4, hwreg({status}, 9, 2)")  # execz, vccz
    for e, c in ((0, 0), (1, 0), (1, 1)):
        assert pair(run(arch, code, {4: 0}, wave, exec=f"{e:x}", vcc=f"{c:x}"), 4, 32) == (e == 0) + 2 * (c == 0)
    scc = "hwreg(HW_REG_WAVE_STATE_PRIV, 9, 1)" if new else "hwreg(HW_REG_STATUS, 0, 1)"
    for c in (0, 1):
        assert pair(run(arch, program(arch, f"s_getreg_b32 s4, {scc}"), {4: 5}, wave, scc=c), 4, 32) == c
    if rdna:
        code = program(arch, f"s_getreg_b32 s4, hwreg({status}, 29, 1)" if new else "s_getreg_b32 s4, hwreg(28, 11, 1)")
        assert pair(run(arch, code, {4: 0}, wave), 4, 32) == (wave == 64)
    lds = "HW_REG_WAVE_LDS_ALLOC" if new else "HW_REG_LDS_ALLOC"
    code = program(arch, f"s_getreg_b32 s4, hwreg({lds}, 12, 9)")
    assert pair(run(arch, code, {4: 0}, wave, lds="00" * 2048), 4, 32) == {"gfx950": 2, "gfx1201": 4}.get(arch, 8)
    if rdna:
        cycles = "HW_REG_SHADER_CYCLES_LO" if new else "HW_REG_SHADER_CYCLES"
        read = f"s_getreg_b32 s4, hwreg({cycles}, 0, 20)"
        out = run(arch, program(arch, read, "s_nop 0", read.replace("s4", "s5")), {4: 0, 5: 0}, wave)
        assert pair(out, 5, 32) > pair(out, 4, 32) > 0
        real = [f"s_sendmsg_rtn_b64 {r}, sendmsg(MSG_RTN_GET_REALTIME)" for r in ("s[4:5]", "s[6:7]")]
        out = run(arch, program(arch, real[0], *["s_nop 0"] * 64, *[read.replace("s4", "s8")] * 8, real[1]),
                  {4: M32, 5: M32, 6: 0, 7: 0, 8: 0}, wave)  # fmt: skip
        assert pair(out, 6) > pair(out, 4)
        for text, n in (("s_sendmsg_rtn_b32 s4, sendmsg(MSG_RTN_GET_DOORBELL)", 32),
                        ("s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_TBA)", 64)):  # fmt: skip
            assert pair(run(arch, program(arch, text), {4: 5, 5: 5}, wave), 4, n) == 0, text
    else:
        for name in ("s_memtime", "s_memrealtime"):
            reads = [f"{name} {r}" for r in ("s[4:5]", "s[6:7]")]
            gap = [f"{name} s[8:9]"] * 32
            out = run(arch, program(arch, reads[0], *gap, reads[1]), {k: 0 for k in range(4, 10)}, wave)
            assert pair(out, 6) > pair(out, 4), name
    if new:  # registers cannot be had at run time
        assert run(arch, program(arch, "s_alloc_vgpr 64"), {}, wave, scc=1)["scc"] == 0
    else:  # sticky exception flags
        out = run(arch, program(arch, "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 7), 0x41",
                                "s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS, 0, 9)"), {4: 0}, wave)  # fmt: skip
        assert pair(out, 4, 32) == 0x41


@pytest.mark.parametrize("arch, wave", CASES)
def test_register_moves(arch, wave):
    """s_movrel*: M0 says which register."""
    s = {k: 100 + k for k in range(4, 24)}

    def after(*lines: str, m0: int) -> dict[int, int]:
        out = run(arch, program(arch, *lines), s, wave, m0=f"{m0:x}")
        return {int(k): int(v, 16) for k, v in out["s"].items()}

    assert after("s_movrels_b32 s4, s8", m0=3) == {**s, 4: 111}
    assert after("s_movrels_b64 s[4:5], s[8:9]", m0=4) == {**s, 4: 112, 5: 113}
    assert after("s_movreld_b32 s4, s8", m0=3) == {**s, 7: 108}
    assert after("s_movreld_b64 s[4:5], s[8:9]", m0=4) == {**s, 8: 108, 9: 109}
    if arch in RDNA:
        assert after("s_movrelsd_2_b32 s4, s8", m0=5 << 16 | 2) == {**s, 9: 110}
        assert after("s_movreld_b32 s4, s8", m0=200) == s  # past the last register: nowhere


# ---- scalar memory ---------------------------------------------------------------------------------------------


def narrow_names(arch: str) -> dict[str, tuple[int, bool]]:
    return {"u8": (1, False), "i8": (1, True), "u16": (2, False), "i16": (2, True)} if arch in GEN12 else {}


def wide_names(arch: str) -> dict[str, int]:
    if arch in RDNA:
        return {"b32": 1, "b64": 2, **({"b96": 3} if arch in GEN12 else {}), "b128": 4, "b256": 8, "b512": 16}
    return {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def offsets(arch: str) -> list[tuple[str, int]]:
    """(offset text, bytes) with s33 = 0x40."""
    both = {"gfx90a": [], "gfx1201": ["s33 offset:0x8", "null"]}.get(arch, ["s33 offset:0x8"])
    value = {"s33 offset:0x8": 0x48, "null": 0}
    return [("0x0", 0), ("0x14", 0x14), ("s33", 0x40), *((b, value[b]) for b in both)]


def scalar_kernel(arch: str, loads: list[tuple[str, int]]) -> str:
    """Each load (text, dwords; destination s48) into a row of 16 dwords of the output; s[4:5] = data, s[36:39] a buffer
    of 128 bytes of it, s33 = 0x40."""
    rdna = arch in RDNA
    ld, st = ("s_load_b128", "global_store_b32") if rdna else ("s_load_dwordx4", "global_store_dword")
    wait = "s_wait_kmcnt 0x0" if arch in GEN12 else "s_waitcnt lgkmcnt(0)"
    out = [f"{ld} s[4:7], s[0:1], 0x0", "v_mov_b32 v1, 0", "s_mov_b32 s33, 0x40", wait, "s_mov_b32 s36, s4",
           "s_mov_b32 s37, s5", "s_mov_b32 s38, 128",
           "s_mov_b32 s39, " + ("0x31016fac" if rdna else "0x27000")]  # fmt: skip
    for row, (text, n) in enumerate(loads):
        out += [f"s_mov_b32 s{48 + k}, 0x77" for k in range(n)]
        out += ["s_nop 0", text, wait]
        for k in range(n):
            out += [f"v_mov_b32 v2, s{48 + k}", f"v_mov_b32 v1, {64 * row + 4 * k}", f"{st} v1, v2, s[6:7]"]
    return "\n".join(out)


@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_loads(arch):
    """Every width and way of addressing; a buffer's loads give 0 behind its end, dword by dword."""
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, 512, dtype=np.uint8)
    loads: list[tuple[str, int]] = []
    want: list[list[int]] = []

    def dwords(at: int, n: int, end: int) -> list[int]:
        return [
            int.from_bytes(data[a : a + 4].tobytes(), "little") if a + 4 <= end else 0 for a in range(at, at + 4 * n, 4)
        ]

    for prefix, base, end in (("s_load_", "s[4:5]", 512), ("s_buffer_load_", "s[36:39]", 128)):
        for name, n in wide_names(arch).items():
            dst = "s48" if n == 1 else f"s[48:{47 + n}]"
            far = [("0x70", 0x70)] if base == "s[36:39]" else []
            for text, at in offsets(arch) + far:
                loads.append((f"{prefix}{name} {dst}, {base}, {text}", n))
                want.append(dwords(at, n, end))
        for name, (n, sign) in narrow_names(arch).items():
            far = [(f"0x{a:x}", a) for a in ((127, 128) if n == 1 else (126, 128))] if base == "s[36:39]" else []
            for text, at in [*offsets(arch), ("0x1", 1), ("0x2", 2), *far]:
                at -= at % n
                x = int.from_bytes(data[at : at + n].tobytes(), "little", signed=sign) if at + n <= end else 0
                loads.append((f"{prefix}{name} s48, {base}, {text}", 1))
                want.append([x & M32])
    co = simlib.code_object(scalar_kernel(arch, loads), (simlib.BUF, simlib.BUF), arch=arch, sgprs=96)
    out = np.zeros((len(loads), 16), np.uint32)
    dev = sim.Device(arch, checks="bounds", threads=1)
    stats = dev.load(co).kernels["k"].launch(1, 1, [data, out])
    for (text, n), row, expect in zip(loads, out, want, strict=True):
        assert row[:n].tolist() == expect, text
        assert not row[n:].any(), text
    assert stats["instructions"] > len(loads)
    assert len(loads) >= {"gfx90a": 30, "gfx1201": 90}.get(arch, 40)


@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_load_outside(arch):
    """A scalar load behind a buffer is reported with the bytes it misses by."""
    name = "s_load_b64" if arch in RDNA else "s_load_dwordx2"
    co = simlib.code_object(scalar_kernel(arch, [(f"{name} s[48:49], s[4:5], 0x1c", 2)]), (simlib.BUF, simlib.BUF),
                            arch=arch, sgprs=96)  # fmt: skip
    dev = sim.Device(arch, checks="bounds", threads=1)
    kernel = dev.load(co).kernels["k"]
    with pytest.raises(sim.SimulatorFault, match="scalar load of 8 bytes") as e:
        kernel.launch(1, 1, [np.zeros(8, np.uint32), np.zeros(16, np.uint32)])
    assert [r.check for r in e.value.reports] == ["bounds"]


@pytest.mark.parametrize("arch", RDNA)
def test_sgpr_107_of_narrow_waves(arch):
    """vcc_hi of a wave of 32 lanes is a plain register that lane masks leave alone."""
    v: dict[str, Any] = {"0": "00000001" * 32, "1": "00000001" * 32}
    out = run(arch, program(arch, "v_cmp_eq_u32_e32 vcc_lo, v0, v1"), {107: 0x1234}, 32, v=v)
    assert out["vcc"] == "ffffffff" and pair(out, 107, 32) == 0x1234


@pytest.mark.parametrize("arch", ARCHS)
def test_results_are_defined(arch):
    """What these instructions give counts as written: no report of the init check when it is stored."""
    a = Asm(arch)
    new, rdna = arch in GEN12, arch in RDNA
    makers = [f"s_getreg_b32 s50, hwreg({'HW_REG_WAVE_MODE' if new else 'HW_REG_MODE'})", "s_getpc_b64 s[50:51]",
              "s_mov_b64 s[50:51], src_shared_base", "s_mov_b32 m0, 1; s_mov_b64 s[60:61], 5; s_movrels_b32 s50, s60",
              "s_mov_b32 m0, 1; s_nop 0; s_movreld_b32 s49, 5",
              "s_mov_b32 m0, 2; s_nop 0; s_movreld_b64 s[48:49], 5"]  # fmt: skip
    if rdna:
        makers += [f"s_sendmsg_rtn_b32 s50, sendmsg(MSG_RTN_GET_DOORBELL); {a.wait}",
                   f"s_sendmsg_rtn_b64 s[50:51], sendmsg(MSG_RTN_GET_REALTIME); {a.wait}",
                   "s_mov_b32 m0, 0x20001; s_mov_b64 s[60:61], 5; s_movrelsd_2_b32 s48, s60"]  # fmt: skip
    else:
        makers += [f"s_memtime s[50:51]; {a.wait}", f"s_memrealtime s[50:51]; {a.wait}"]
    if new:
        scc = "s_wait_kmcnt 0x0; s_cselect_b32 s50, 1, 2"
        makers += ["s_get_barrier_state s50, -1; s_wait_kmcnt 0x0", f"s_alloc_vgpr 1; {scc}", f"s_barrier_leave; {scc}",
                   f"s_barrier_signal_isfirst -1; {scc}; s_barrier_wait -1"]  # fmt: skip
    for text in makers:
        n = 2 if "50:51]" in text or "movreld_b64" in text else 1
        lines = [*a.out(0), *text.split("; ")]
        for i in range(n):
            lines += a.put(i, f"s{50 + i}")
        co = simlib.code_object("\n".join(lines), (simlib.BUF,), arch=arch, vgprs=16, sgprs=96)
        kernel = sim.Device(arch, checks="all", threads=1).load(co).kernels["k"]
        assert kernel.launch(1, 32, [np.zeros(2, np.uint32)])["instructions"] > 5, text
    lines = [*a.out(0), "s_movreld_b32 s49, s70", *a.put(0, "s50")]
    co = simlib.code_object("\n".join(["s_mov_b32 m0, 1", *lines]), (simlib.BUF,), arch=arch, vgprs=16, sgprs=96)
    with pytest.raises(sim.SimulatorFault, match="undefined"):  # moved with what it moves
        sim.Device(arch, checks="init", threads=1).load(co).kernels["k"].launch(1, 32, [np.zeros(2, np.uint32)])


@pytest.mark.parametrize("arch, wave", CASES)
def test_half_overflow_mode(arch, wave):
    """MODE.FP16_OVFL: a half that overflows is the largest number of its sign; infinities that were there stay."""
    mode = "HW_REG_WAVE_MODE" if arch in GEN12 else "HW_REG_MODE"
    big, inf, one = 0x7BFF, 0x7C00, 0x3C00
    v = {"0": f"{big | (big | 0x8000) << 16:08x}", "1": f"{one | inf << 16:08x}", "3": f"{one | one << 16:08x}",
         "4": f"{0x47800000:08x}", "5": f"{0xFF800000:08x}", **{k: "0" * 8 for k in "2678"}}  # fmt: skip
    v = {k: x * wave for k, x in v.items()}
    lines = ["v_pk_add_f16 v2, v0, v0", "v_pk_mul_f16 v6, v1, v0", "v_cvt_f16_f32 v7, v4", "v_cvt_f16_f32 v8, v5",
             "v_pk_fma_f16 v3, v0, v0, v3"]  # fmt: skip
    on = f"s_setreg_imm32_b32 hwreg({mode}, 23, 1), 1"
    plain = run(arch, program(arch, *lines), {}, wave, v=v)
    clamped = run(arch, program(arch, on, *lines), {}, wave, v=v)

    def first(out: dict[str, Any], reg: int, mask: int = M32) -> int:
        return int(out["v"][str(reg)][:8], 16) & mask

    assert [first(plain, 2), first(plain, 3)] == [0xFC007C00, 0x7C007C00]
    assert [first(clamped, 2), first(clamped, 3)] == [0xFBFF7BFF, 0x7BFF7BFF]
    assert first(plain, 6) == first(clamped, 6) == 0xFC007BFF  # infinity times a number
    assert [first(o, 7, 0xFFFF) for o in (plain, clamped)] == [0x7C00, 0x7BFF]
    assert [first(o, 8, 0xFFFF) for o in (plain, clamped)] == [0xFC00, 0xFC00]
    if arch in GEN12:
        s = {4: big, 5: big, 6: 0, 7: 0, 8: inf, 9: 0x47800000, 10: 0}
        lines = ["s_add_f16 s6, s4, s5", "s_add_f16 s7, s4, s8", "s_cvt_f16_f32 s10, s9"]
        out = run(arch, program(arch, on, *lines), s, wave)
        assert [pair(out, k, 32) for k in (6, 7, 10)] == [0x7BFF, 0x7C00, 0x7BFF]
