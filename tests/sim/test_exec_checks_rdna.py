"""The checks on gfx1100 and gfx1201, on small assembled kernels: each row of what the chip does not interlock, with
what satisfies it and what does not, in a run and by the static verifier; waits by counter; LDS races, split barriers;
release and acquire between workgroups and between the caches of a WGP; undefined values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

ARCHS = ["gfx1100", "gfx1201"]
WGP = ".amdhsa_workgroup_processor_mode 1"
CU = ".amdhsa_workgroup_processor_mode 0"


def reports(arch: str, body: str, checks: list[str], args=(), values=(), grid=1, block=64, **kw) -> list:
    dev = sim.Device(arch, checks=checks, threads=1)
    kw = {"vgprs": 96, "wave": 32} | kw
    kernel = dev.load(code_object(body, args, arch=arch, **kw)).kernels["k"]
    try:
        kernel.launch(grid, block, list(values))
    except sim.SimulatorFault as e:
        return list(e.reports)
    return []


def verified(arch: str, body: str, kinds: set[str], **kw) -> list:
    kw = {"vgprs": 96, "wave": 32} | kw
    return [f for f in sim.verify(code_object(body, arch=arch, **kw)) if f.kind in kinds]


# ---- what is not interlocked ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """head..., producer, {between}, consumer; `good` satisfies the row, `bad` does not."""

    producer: str
    consumer: str
    good: tuple[str, ...]
    bad: tuple[str, ...] = ("",)
    words: str = ""
    wave: int = 32


V, T, S = "v_mov_b32 v70, v71\n", "v_rcp_f32 v70, v71\n", "s_mov_b32 s20, 0\n"
STORE = "global_store_b32 v[72:73], v70, off\n"
ALU11 = "s_waitcnt_depctr {}\n"
VDST, SALU11, VALU11, VCC11 = (ALU11.format(x) for x in ("0xfff", "0xfffe", "0xf1ff", "0xfffd"))
SALU12, VALU12, VCC12 = "s_wait_alu 0xfffe\n", "s_wait_alu 0xf1ff\n", "s_wait_alu 0xfffd\n"
W11 = "v_wmma_f32_16x16x16_f16 {d}, {a}, {b}, {d}\n"
D0, D1, AV, BV = "v[0:7]", "v[24:31]", "v[8:15]", "v[16:23]"
A4, B4 = "v[8:11]", "v[16:19]"
FIRST = "v_mov_b32 v1, 0\ns_mov_b64 exec, 0\nv_mov_b32 v2, 0\n"
MASK = "v_cndmask_b32 v1, v2, v3, s[4:5]\n"

ROWS = {
    ("gfx1100", "trans"): Row(
        "v_rcp_f32 v1, v2", "v_mov_b32 v3, v1",
        (VDST, V * 6, T * 2, STORE), ("", V * 5, T, V * 3 + T, S * 9, "s_nop 15\n")
    ),
    ("gfx1100", "trans-trans"): Row("v_rcp_f32 v1, v2", "v_exp_f32 v3, v1", (VDST,)),
    ("gfx1100", "trans-few"): Row("v_rcp_f32 v1, v2", V * 2 + ALU11.format("0x2fff") + "v_mov_b32 v3, v1", ("",), ()),
    ("gfx1100", "trans-store"): Row("v_rcp_f32 v1, v2", "global_store_b32 v[72:73], v1, off", ("",), ()),
    ("gfx1100", "trans-overwritten"): Row("v_rcp_f32 v1, v2", "v_mov_b32 v1, 0\nv_mov_b32 v3, v1", ("",), ()),
    ("gfx1100", "trans-half"): Row("v_rcp_f16 v1.h, v2.l", "v_mov_b16 v3.l, v1.h", (VDST,)),
    ("gfx1100", "trans-half-whole"): Row("v_rcp_f16 v1.h, v2.l", "v_mov_b32 v3, v1", (VDST,)),
    ("gfx1100", "trans-whole-half"): Row("v_rcp_f32 v1, v2", "v_mov_b16 v3.l, v1.h", (VDST,)),
    ("gfx1100", "trans-other-half"): Row("v_rcp_f16 v1.h, v2.l", "v_mov_b16 v3.l, v1.l", ("",), ()),
    ("gfx1100", "trans-half-kept"): Row(
        "v_rcp_f16 v1.h, v2.l", "v_mov_b16 v3.l, v1.h", (VDST,), ("v_mov_b16 v1.l, 0\n", "v_mov_b16 v1.l, v1.l\n")
    ),
    ("gfx1100", "trans-half-over"): Row("v_rcp_f16 v1.h, v2.l", "v_mov_b32 v3, v1", ("v_mov_b16 v1.h, 0\n",)),
    ("gfx1100", "trans-halves"): Row("v_rcp_f16 v1.h, v2.l\nv_rcp_f16 v1.l, v2.l", "v_mov_b16 v3.l, v1.h", (VDST,)),
    ("gfx1100", "wmma-a"): Row(
        W11.format(d=D0, a=AV, b=BV), W11.format(d=D1, a=D0, b=BV), ("v_nop\n", V), ("", S, "s_nop 15\n", STORE)
    ),
    ("gfx1100", "wmma-b"): Row(W11.format(d=D0, a=AV, b=BV), W11.format(d=D1, a=AV, b=D0), ("v_nop\n",)),
    ("gfx1100", "wmma-c"): Row(W11.format(d=D0, a=AV, b=BV), W11.format(d=D0, a=AV, b=BV), ("",), ()),
    ("gfx1100", "wmma-valu"): Row(W11.format(d=D0, a=AV, b=BV), "v_mov_b32 v70, v0", ("",), ()),
    ("gfx1201", "wmma-a"): Row(
        W11.format(d=D0, a=A4, b=B4), W11.format(d=D1, a="v[0:3]", b=B4), ("v_nop\n", V), ("", S, "s_nop 15\n")
    ),
    ("gfx1201", "wmma-c"): Row(W11.format(d=D0, a=A4, b=B4), W11.format(d=D0, a=A4, b=B4), ("",), ()),
    ("gfx1201", "swmmac-index"): Row(
        W11.format(d=D0, a=A4, b=B4), f"v_swmmac_f32_16x16x32_f16 {D1}, {A4}, v[16:23], v0\n", ("v_nop\n",)
    ),
    ("gfx1100", "cmpx-permlane"): Row(
        "v_cmpx_eq_u32 v2, v2", "v_permlane16_b32 v1, v3, s2, s3", (V,), ("", "v_nop\n", S, "s_nop 15\n", VDST)
    ),
    ("gfx1201", "cmpx-permlane"): Row(
        "v_cmpx_eq_u32 v2, v2", "v_permlanex16_b32 v1, v3, s2, s3", (V,), ("", "v_nop\n")
    ),
    ("gfx1201", "cmpx-permlane-var"): Row("v_cmpx_eq_u32 v2, v2", "v_permlane16_var_b32 v1, v3, v4", (V,)),
    ("gfx1100", "cmpx-valu"): Row("v_cmpx_eq_u32 v2, v2", "v_mov_b32 v3, v1", ("",), ()),
    ("gfx1201", "salu-valu"): Row(
        "v_mov_b32 v1, s4\ns_mov_b32 s4, 0",
        "v_mov_b32 v3, s4",
        (SALU12, "s_wait_alu 0\n", "s_load_b32 s20, s[0:1], 0x0\n"),
        ("", VALU12, V * 20, S * 20),
        "sa_sdst",
    ),
    ("gfx1201", "salu-pair"): Row(
        "v_mov_b32 v1, s5\ns_mov_b32 s4, 0", "v_mov_b32 v3, s4", (SALU12,), ("", V), "sa_sdst"
    ),
    ("gfx1201", "salu-salu"): Row("v_mov_b32 v1, s4\ns_mov_b32 s4, 0", "s_add_co_i32 s6, s4, 1", (SALU12,), ("", V)),
    ("gfx1201", "salu-unread"): Row("s_mov_b32 s4, 0", "v_mov_b32 v3, s4", ("",), ()),
    ("gfx1201", "salu-other"): Row("v_mov_b32 v1, s4\ns_mov_b32 s6, 0", "v_mov_b32 v3, s6", ("",), ()),
    ("gfx1201", "salu-again"): Row(
        "v_mov_b32 v1, s4\ns_mov_b32 s4, 0\ns_wait_alu 0xfffe\ns_mov_b32 s4, 1", "v_mov_b32 v3, s4", (SALU12,)
    ),
    ("gfx1201", "salu-vcc"): Row(
        "v_cndmask_b32 v1, v2, v3, vcc_lo\ns_mov_b32 vcc_lo, 0", "v_cndmask_b32 v1, v2, v3, vcc_lo",
        (SALU12,), ("", VCC12)
    ),
    ("gfx1201", "valu-valu"): Row(
        "v_mov_b32 v1, s4\nv_cmp_eq_u32 s4, v2, v3",
        "v_cndmask_b32 v5, v2, v3, s4",
        (VALU12, "s_mov_b32 s20, s21\n"),
        ("", SALU12, VCC12, V * 9),
        "va_sdst",
    ),
    ("gfx1201", "valu-vcc"): Row(
        "v_cndmask_b32 v1, v2, v3, vcc_lo\nv_cmp_eq_u32 vcc_lo, v2, v3",
        "v_cndmask_b32 v5, v2, v3, vcc_lo",
        (VCC12,),
        ("", VALU12, SALU12),
        "va_vcc",
    ),
    ("gfx1201", "valu-salu"): Row("v_mov_b32 v1, s4\nv_readfirstlane_b32 s4, v2", "s_mov_b32 s6, s4", ("",), ()),
    ("gfx1100", "salu-valu-32"): Row("v_mov_b32 v1, s4\ns_mov_b32 s4, 0", "v_mov_b32 v3, s4", ("",), ()),
    ("gfx1100", "mask-salu"): Row(
        MASK + "s_mov_b64 s[4:5], 0", "v_mov_b32 v3, s4", (SALU11,), ("", VALU11, V * 9), "sa_sdst", wave=64
    ),
    ("gfx1100", "mask-salu-salu"): Row(MASK + "s_mov_b32 s5, 0", "s_mov_b32 s6, s5", (SALU11,), wave=64),
    ("gfx1100", "mask-valu"): Row(
        MASK + "v_cmp_eq_u32 s[4:5], v2, v3", MASK, (VALU11,), ("", SALU11, V * 9), "va_sdst", wave=64
    ),
    ("gfx1100", "mask-vcc"): Row(
        "v_cndmask_b32 v1, v2, v3, vcc\nv_cmp_eq_u32 vcc, v2, v3", "v_cndmask_b32 v1, v2, v3, vcc", (VCC11,), wave=64
    ),
    ("gfx1100", "mask-second-write"): Row(
        "v_cndmask_b32 v1, v2, v3, vcc\nv_cmp_eq_u32 vcc, v2, v3\n"
        "s_waitcnt_depctr depctr_va_vcc(0)\nv_cmp_lt_u32 vcc, v2, v3",
        "v_cndmask_b32 v1, v2, v3, vcc", ("",), (), wave=64
    ),
    ("gfx1100", "mask-own-read"): Row(
        "v_add_co_ci_u32 v1, vcc, v2, v3, vcc", "v_cndmask_b32 v1, v2, v3, vcc", ("",), (), wave=64
    ),
    ("gfx1100", "mask-no-mask"): Row("v_mov_b32 v1, s4\ns_mov_b32 s4, 0", "v_mov_b32 v3, s4", ("",), (), wave=64),
    ("gfx1100", "forward"): Row(
        FIRST, "v_add_f32 v3, v1, v2", (VDST, V * 5, STORE), ("", V, V * 4), wave=64
    ),
    ("gfx1100", "forward-apart"): Row(
        "v_mov_b32 v1, 0\n" + V * 3 + "s_mov_b64 exec, 0\nv_mov_b32 v2, 0\n", "v_add_f32 v3, v1, v2", ("",), (), wave=64
    ),
    ("gfx1100", "forward-one-side"): Row(FIRST, "v_add_f32 v3, v2, v2", ("",), (), wave=64),
    ("gfx1100", "forward-32"): Row(FIRST.replace("b64 exec", "b32 exec_lo"), "v_add_f32 v3, v1, v2", ("",), ()),
}  # fmt: skip


@pytest.mark.parametrize(("arch", "name"), ROWS)
def test_not_interlocked(arch, name):
    row = ROWS[arch, name]
    # addresses that nobody uses: EXEC is 0 for memory instructions
    head = f"s_mov_b{row.wave} {'exec' if row.wave == 64 else 'exec_lo'}, 0\nv_mov_b32 v70, 0\n" + "v_nop\n" * 12
    for between, clean in [(b, True) for b in row.good] + [(b, False) for b in row.bad]:
        body = f"{head}{row.producer}\n{between}{row.consumer}\ns_waitcnt lgkmcnt(0)\n"
        if arch == "gfx1201":
            body = body.replace("s_waitcnt lgkmcnt(0)", "s_wait_kmcnt 0x0")
        found = reports(arch, body, ["hazard"], (BUF,), [np.zeros(64, np.int32)], wave=row.wave)
        static = verified(arch, body, {"hazard"}, wave=row.wave)
        assert bool(found) != clean, (between, [r.message for r in found])
        assert bool(static) != clean, (between, [str(f) for f in static])
        for r in found:
            assert r.check == "hazard" and r.other_pc is not None and row.words in r.message, r.message
        if not clean:
            assert (found[0].pc, found[0].other_pc) == (static[0].pc, static[0].other_pc)


def test_forwarding_needs_one_way_there():
    """What is written on the way into a loop, and what before EXEC changes on the way back, are no pair."""
    body = """v_mov_b32 v3, 0
        v_nop
        v_nop
        v_nop
        v_nop
        v_nop
        v_nop
        v_nop
        v_nop
        s_mov_b32 s4, 3
        s_mov_b64 exec, 0
        v_mov_b32 v1, 0
    again:
        v_add_f32 v5, v1, v3
        {0}v_mov_b32 v3, v5
        s_sub_i32 s4, s4, 1
        s_cmp_lg_i32 s4, 0
        s_mov_b64 exec, 0
        {1}s_cbranch_scc1 again
        """
    for where, bad in (("", False), ("v_mov_b32 v1, 0\n", True)):
        text = body.format(STORE, where)
        found = reports("gfx1100", text, ["hazard"], (BUF,), [np.zeros(64, np.int32)], wave=64)
        assert bool(found) == bad == bool(verified("gfx1100", text, {"hazard"}, wave=64))


# ---- counters ------------------------------------------------------------------------------------------------------

WAITS = {
    # loads v2, v3 (vector), v4, v5 (LDS), s9 (scalar), stores; a wait; the register read; clean?
    "gfx1100": [
        ("s_waitcnt vmcnt(1)", "v2", True),
        ("s_waitcnt vmcnt(1)", "v3", False),
        ("s_waitcnt vmcnt(0)", "v3", True),
        ("s_waitcnt_vmcnt null, 0x1", "v2", True),
        ("s_waitcnt_vscnt null, 0x0", "v2", False),
        ("s_waitcnt_lgkmcnt null, 0x1", "v4", True),
        ("s_waitcnt_lgkmcnt null, 0x1", "v5", False),
        ("s_waitcnt_lgkmcnt null, 0x0", "s9", True),
        ("s_waitcnt_lgkmcnt null, 0x0", "v3", False),
        ("s_waitcnt lgkmcnt(2)", "v4", False),  # of three: the scalar load may be the one that is back
        ("s_waitcnt lgkmcnt(1)", "v4", True),
        ("s_waitcnt lgkmcnt(1)", "v5", False),
        ("s_waitcnt lgkmcnt(1)", "s9", False),
        ("s_waitcnt lgkmcnt(0)", "s9", True),
        ("s_waitcnt vmcnt(0)", "v5", False),
    ],
    "gfx1201": [
        ("s_wait_loadcnt 0x1", "v2", True),
        ("s_wait_loadcnt 0x1", "v3", False),
        ("s_wait_loadcnt 0x0", "v3", True),
        ("s_wait_storecnt 0x0", "v3", False),
        ("s_wait_dscnt 0x1", "v4", True),
        ("s_wait_dscnt 0x1", "v5", False),
        ("s_wait_dscnt 0x0", "v5", True),
        ("s_wait_dscnt 0x0", "s9", False),
        ("s_wait_kmcnt 0x0", "s9", True),
        ("s_wait_kmcnt 0x0", "v5", False),
        ("s_wait_loadcnt_dscnt 0x100", "v2", True),
        ("s_wait_loadcnt_dscnt 0x100", "v3", False),
        ("s_wait_loadcnt_dscnt 0x100", "v5", True),
        ("s_wait_loadcnt_dscnt 0x1", "v3", True),
        ("s_wait_storecnt_dscnt 0x0", "v5", True),
        ("s_wait_storecnt_dscnt 0x0", "v2", False),
        ("s_wait_idle", "v5", True),
    ],
}
FIRST_WAIT = {"gfx1100": "s_waitcnt lgkmcnt(0)", "gfx1201": "s_wait_kmcnt 0x0"}
ALL = {
    "gfx1100": "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_vscnt null, 0x0",
    "gfx1201": "s_wait_loadcnt_dscnt 0x0\ns_wait_storecnt 0x0\ns_wait_kmcnt 0x0",
}


@pytest.mark.parametrize(("arch", "wait", "reg", "clean"), [(a, *w) for a in ARCHS for w in WAITS[a]])
def test_counters(arch, wait, reg, clean):
    use = f"v_mov_b32 v6, {reg}"
    body = f"""
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  {FIRST_WAIT[arch]}
  s_load_b32 s9, s[4:5], 0x0
  global_load_b32 v2, v1, s[4:5]
  global_load_b32 v3, v1, s[4:5]
  global_store_b32 v1, v1, s[4:5] offset:1024
  global_store_b32 v1, v1, s[4:5] offset:1024
  ds_load_b32 v4, v1
  ds_load_b32 v5, v1
  {wait}
  {use}
  {ALL[arch]}
"""
    a = np.zeros(1024, np.int32)
    found = reports(arch, body, ["wait"], (BUF,), [a], block=32, lds=256)
    assert bool(found) != clean, [r.message for r in found]
    assert all(r.check == "wait" and r.other_pc is not None for r in found)
    if not (arch == "gfx1100" and reg == "v4"):  # statically the scalar load may come before or after
        assert bool(verified(arch, body, {"wait"}, lds=256)) != clean


@pytest.mark.parametrize("arch", ARCHS)
def test_atomics_count_by_what_they_return(arch):
    """A returning atomic counts as a load, one that returns nothing as a store."""
    ret = "glc" if arch == "gfx1100" else "th:TH_ATOMIC_RETURN"
    loads = "s_waitcnt vmcnt({})" if arch == "gfx1100" else "s_wait_loadcnt {}"
    head = f"s_load_b64 s[4:5], s[0:1], 0x0\nv_mov_b32 v1, 0\n{FIRST_WAIT[arch]}\n"
    get = f"global_atomic_add_u32 v2, v1, v1, s[4:5] {ret}\n"
    quiet = "global_atomic_add_u32 v1, v1, s[4:5]\n"
    for body, clean in [
        (get + quiet + loads.format("0x0" if arch == "gfx1201" else 0), True),
        (get + quiet * 2 + loads.format("0x1" if arch == "gfx1201" else 1), False),  # the quiet ones are elsewhere
        (get * 2 + loads.format("0x1" if arch == "gfx1201" else 1), False),
    ]:
        text = head + body + f"\nv_mov_b32 v3, v2\n{ALL[arch]}\n"
        found = reports(arch, text, ["wait"], (BUF,), [np.zeros(64, np.int32)], block=32)
        assert bool(found) != clean, (body, [r.message for r in found])
        assert bool(verified(arch, text, {"wait"})) != clean


@pytest.mark.parametrize("arch", ARCHS)
def test_a_full_counter_stalls(arch):
    """63 operations fit; the 64th waits for the first."""
    name = "s_waitcnt vmcnt(63)" if arch == "gfx1100" else "s_wait_loadcnt 0x3f"
    head = f"s_load_b64 s[4:5], s[0:1], 0x0\nv_mov_b32 v1, 0\n{FIRST_WAIT[arch]}\nglobal_load_b32 v2, v1, s[4:5]\n"
    for later, clean in [(62, False), (63, True)]:
        body = head + "global_load_b32 v3, v1, s[4:5]\n" * later + f"{name}\nv_mov_b32 v4, v2\n{ALL[arch]}\n"
        found = reports(arch, body, ["wait"], (BUF,), [np.zeros(64, np.int32)], block=32)
        assert bool(found) != clean, [r.message for r in found]
        assert bool(verified(arch, body, {"wait"})) != clean


@pytest.mark.parametrize("arch", ARCHS)
def test_halves_merge_in_order(arch):
    """Two loads of the halves of one register need no wait between them; a use of it does."""
    head = f"s_load_b64 s[4:5], s[0:1], 0x0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 0\n{FIRST_WAIT[arch]}\n"
    both = "global_load_d16_b16 v2, v1, s[4:5]\nglobal_load_d16_hi_b16 v2, v1, s[4:5]\n"
    for use, clean in [("", True), ("v_mov_b32 v3, v2\n", False)]:
        body = head + both + use + ALL[arch] + "\n"
        found = reports(arch, body, ["wait"], (BUF,), [np.zeros(64, np.int32)], block=32)
        assert bool(found) != clean, [r.message for r in found]
        assert bool(verified(arch, body, {"wait"})) != clean


# ---- LDS and barriers ----------------------------------------------------------------------------------------------

SHARE = """
  v_lshlrev_b32 v1, 2, v0
  v_xor_b32 v2, 0x80, v1
  ds_store_b32 v1, v0
  {middle}
  ds_load_b32 v3, v2
  {end}
"""
DS0 = {"gfx1100": "s_waitcnt lgkmcnt(0)", "gfx1201": "s_wait_dscnt 0x0"}
SIGNAL, WAIT = "s_barrier_signal -1", "s_barrier_wait -1"


@pytest.mark.parametrize(
    ("arch", "middle", "clean"),
    [
        ("gfx1100", "s_waitcnt lgkmcnt(0)\ns_barrier", True),
        ("gfx1100", "s_waitcnt lgkmcnt(0)", False),
        ("gfx1100", "s_barrier", False),
        ("gfx1201", f"s_wait_dscnt 0x0\n{SIGNAL}\n{WAIT}", True),
        ("gfx1201", f"{SIGNAL}\n{WAIT}", False),  # the write is in flight over the barrier
        ("gfx1201", f"{SIGNAL}\ns_wait_dscnt 0x0\n{WAIT}", False),  # it had to be complete at the arrival
        ("gfx1201", "s_wait_dscnt 0x0", False),
    ],
)
def test_lds_race(arch, middle, clean):
    body = SHARE.format(middle=middle, end=DS0[arch])
    found = reports(arch, body, ["race"], block=64, lds=256)
    assert bool(found) != clean, [r.message for r in found]
    for r in found:
        assert r.check == "race" and r.other_pc is not None and r.other_wave is not None and r.lanes
    if found:
        assert ("still in flight" if "barrier" in middle else "no barrier") in found[0].message


@pytest.mark.parametrize(
    ("early", "between", "late", "clean"),
    [
        ("ds_store_b32 v1, v0", "", "ds_load_b32 v3, v2", True),
        ("", "ds_store_b32 v1, v0\ns_wait_dscnt 0x0", "ds_load_b32 v3, v2", False),  # after the arrival: not ordered
        ("ds_store_b32 v1, v0", "ds_load_b32 v3, v2\ns_wait_dscnt 0x0", "", False),  # before the wait: not ordered
        ("ds_store_b32 v1, v0", "ds_load_b32 v3, v1\ns_wait_dscnt 0x0", "ds_load_b32 v3, v2", True),
    ],
)
def test_between_signal_and_wait(early, between, late, clean):
    body = f"""
  v_lshlrev_b32 v1, 2, v0
  v_xor_b32 v2, 0x80, v1
  {early}
  s_wait_dscnt 0x0
  {SIGNAL}
  {between}
  {WAIT}
  {late}
  s_wait_dscnt 0x0
"""
    for block in (64, 128):
        found = reports("gfx1201", body, ["race"], block=block, lds=512)
        assert bool(found) != clean, [r.message for r in found]


@pytest.mark.parametrize(("wait", "clean"), [("s_wait_kmcnt 0x0", True), ("", False), ("s_wait_dscnt 0x0", False)])
def test_scc_of_the_first_arrival_comes_late(wait, clean):
    body = f"s_barrier_signal_isfirst -1\ns_barrier_wait -1\n{wait}\ns_cselect_b32 s6, 1, 2\n"
    found = reports("gfx1201", body, ["wait"])
    assert bool(found) != clean, [r.message for r in found]
    assert bool(verified("gfx1201", body, {"wait"})) != clean
    body = f"s_barrier_signal -1\ns_barrier_wait -1\ns_get_barrier_state s6, -1\n{wait}\ns_mov_b32 s7, s6\n"
    assert bool(reports("gfx1201", body, ["wait"])) != clean
    assert bool(verified("gfx1201", body, {"wait"})) != clean


# ---- ordering of global memory --------------------------------------------------------------------------------------

GROUP = {"gfx90a": "s2", "gfx942": "s2", "gfx950": "s2", "gfx1100": "s2", "gfx1201": "ttmp9"}
CHAIN = {  # store to flag, load of flag, release, acquire: (wait, cache operation) each
    "gfx90a": ("", "glc", ["s_waitcnt vmcnt(0)"], ["s_waitcnt vmcnt(0)", "buffer_wbinvl1_vol"]),
    "gfx942": ("sc1", "sc1", ["buffer_wbl2 sc1", "s_waitcnt vmcnt(0)"], ["s_waitcnt vmcnt(0)", "buffer_inv sc1"]),
    "gfx1100": (
        "", "glc", ["s_waitcnt_vscnt null, 0x0"], ["s_waitcnt vmcnt(0)", "buffer_gl1_inv\nbuffer_gl0_inv"],
    ),
    "gfx1201": (
        "scope:SCOPE_DEV", "scope:SCOPE_DEV", ["s_wait_storecnt 0x0"],
        ["s_wait_loadcnt 0x0", "global_inv scope:SCOPE_DEV"],
    ),
}  # fmt: skip
NAMES = {
    "s_waitcnt_vscnt null, 0x0": "vscnt",
    "s_wait_storecnt 0x0": "storecnt",
    "s_waitcnt vmcnt(0)": "vmcnt",
    "buffer_wbl2 sc1": "buffer_wbl2",
    "buffer_inv sc1": "buffer_inv",
    "buffer_wbinvl1_vol": "buffer_wbinvl1_vol",
    "buffer_gl1_inv\nbuffer_gl0_inv": "buffer_gl1_inv and buffer_gl0_inv",
    "global_inv scope:SCOPE_DEV": "global_inv",
}


def message(arch: str, release: list[str], acquire: list[str], flag: str | None = None) -> list:
    """Workgroup 0 writes data, then a flag; workgroup 1 spins on the flag, then reads the data."""
    st, ld = CHAIN[arch][:2]
    old = arch.startswith("gfx9")
    km, dword = ("s_waitcnt lgkmcnt(0)", "dword") if old else (FIRST_WAIT[arch], "b32")
    zero = "s_waitcnt vmcnt(0)" if arch != "gfx1201" else "s_wait_loadcnt 0x0"
    body = f"""
  s_load_{"dwordx4" if old else "b128"} s[4:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 7
  {km}
  s_cmp_lg_u32 {GROUP[arch]}, 0
  s_cbranch_scc1 reader
  global_store_{dword} v1, v2, s[4:5]
  {chr(10).join(release)}
  {flag or f"global_store_{dword} v1, v2, s[6:7] {st}"}
  s_endpgm
reader:
  global_load_{dword} v3, v1, s[6:7] {ld}
  {chr(10).join(acquire)}
  v_readfirstlane_b32 s8, v3
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 reader
  global_load_{dword} v4, v1, s[4:5]
  {zero}
"""
    data, word = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kw = {"wave": 64} if old else {}
    return reports(arch, body, ["race"], (BUF, BUF), [data, word], grid=2, block=32, **kw)


@pytest.mark.parametrize("arch", CHAIN)
def test_message_between_workgroups(arch):
    """The chain as compilers write it is clean; each part that is left out is named."""
    release, acquire = CHAIN[arch][2:]
    assert not message(arch, release, acquire)
    for part in release:
        found = message(arch, [p for p in release if p != part], acquire)
        assert found and NAMES[part] in found[0].message, (part, [r.message for r in found])
        assert "no release" in found[0].message
    found = message(arch, release, acquire[:1])
    assert found and NAMES[acquire[1]] in found[0].message and "no acquire" in found[0].message, found
    for r in found:
        assert r.other_pc is not None and r.other_wave == 0 and "workgroup 0" in r.message and r.address and r.lanes
        assert r.text and r.other_text


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_message_by_atomics(arch):
    """The flag raised by a read-modify-write that returns nothing."""
    release, acquire = CHAIN[arch][2:]
    scope = "scope:SCOPE_DEV" if arch == "gfx1201" else ""
    flag = f"global_atomic_add_u32 v1, v2, s[6:7] {scope}"
    assert not message(arch, release, acquire, flag)
    assert message(arch, [], acquire, flag)
    if arch == "gfx1201":  # too narrow a scope
        assert message(arch, release, acquire, "global_atomic_add_u32 v1, v2, s[6:7]")
        assert message(arch, release, [acquire[0], "global_inv scope:SCOPE_SE"])


def test_inner_cache_before_the_outer_one():
    """gfx11: gl0 could fill again from gl1 before that one is emptied."""
    release, acquire = CHAIN["gfx1100"][2:]
    assert message("gfx1100", release, [acquire[0], "buffer_gl0_inv\nbuffer_gl1_inv"])
    assert message("gfx1100", release, [acquire[0], "buffer_gl0_inv"])


EXCHANGE = {  # wait before the barrier, barrier, invalidation behind it
    "gfx1100": ("s_waitcnt_vscnt null, 0x0", "s_barrier", "buffer_gl0_inv"),
    "gfx1201": ("s_wait_storecnt 0x0", f"{SIGNAL}\n{WAIT}", "global_inv scope:SCOPE_SE"),
}


@pytest.mark.parametrize("arch", ARCHS)
def test_exchange_through_global_memory(arch):
    """Two waves of a workgroup in WGP mode have a cache each: a store must be complete at the barrier, and stale
    lines gone behind it. In CU mode they share one."""
    wait, barrier, inv = EXCHANGE[arch]

    def run(before: str, after: str, mode: str) -> list:
        body = f"""
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_xor_b32 v2, 0x80, v1
  {FIRST_WAIT[arch]}
  global_store_b32 v1, v0, s[4:5]
  {before}
  {barrier}
  {after}
  global_load_b32 v3, v2, s[4:5]
  {ALL[arch]}
"""
        return reports(arch, body, ["race"], (BUF,), [np.zeros(64, np.int32)], block=64, extra=mode)

    assert not run(wait, inv, WGP)
    assert not run("", "", CU)
    found = run("", inv, WGP)
    assert found and "wait on " in found[0].message, found
    found = run(wait, "", WGP)
    assert found and inv.split()[0] in found[0].message, found


# ---- undefined values ----------------------------------------------------------------------------------------------

UNDEFINED = {  # code after which a report must come (or not); v5 and s20 were never written
    "store": ("global_store_b32 v1, v5, s[4:5]", True),
    "null": ("s_mov_b32 s6, null\ns_cmp_eq_u32 s6, 0\ns_cbranch_scc1 done\ndone:", False),
    "dual": ("v_dual_mov_b32 v8, v1 :: v_dual_mov_b32 v9, v6\nglobal_store_b32 v1, v8, s[4:5]", False),
    "dual-other": ("v_dual_mov_b32 v8, v1 :: v_dual_mov_b32 v9, v6\nglobal_store_b32 v1, v9, s[4:5]", True),
    "compare": ("v_cmp_eq_u32 vcc_lo, 0, v5\ns_cbranch_vccz done\ndone:", True),
    "compare-masked": ("s_mov_b32 exec_lo, 0\nv_cmp_eq_u32 vcc_lo, 0, v5\ns_cbranch_vccz done\ndone:", False),
    "vcc-hi": ("s_mov_b32 vcc_lo, 0\ns_cbranch_vccz done\ndone:", False),  # a wave of 32 has no vcc_hi
    "cmpx": ("v_cmpx_eq_u32 0, v5", True),
    "cmpx-good": ("v_cmpx_eq_u32 0, v1", False),
    "exec": ("s_mov_b32 exec_lo, s20", True),
    "saveexec": ("s_and_saveexec_b32 s6, s20", True),
    "and-exec": ("s_and_b32 s6, s20, 0\ns_mov_b32 exec_lo, s6", False),
    "select": ("s_mov_b32 s6, 0\nv_cndmask_b32 v6, v1, v5, s6\nglobal_store_b32 v1, v6, s[4:5]", False),
    "select-taken": ("s_mov_b32 s6, -1\nv_cndmask_b32 v6, v1, v5, s6\nglobal_store_b32 v1, v6, s[4:5]", True),
    "dpp8": ("v_mov_b32_dpp v6, v5 dpp8:[1,0,3,2,5,4,7,6]\nglobal_store_b32 v1, v6, s[4:5]", True),
    "permlane": ("v_permlane16_b32 v6, v5, 0, 0\nglobal_store_b32 v1, v6, s[4:5]", True),
    "readlane": ("v_readlane_b32 s6, v5, 3\ns_cmp_eq_u32 s6, 0\ns_cbranch_scc1 done\ndone:", True),
    "lds": ("ds_store_b32 v1, v5\nds_load_b32 v6, v1\n{ds}\nglobal_store_b32 v1, v6, s[4:5]", True),
    "lds-never": ("ds_load_b32 v6, v1 offset:512\n{ds}\nglobal_store_b32 v1, v6, s[4:5]", True),
    "lds-good": ("ds_store_b32 v1, v1\nds_load_b32 v6, v1\n{ds}\nglobal_store_b32 v1, v6, s[4:5]", False),
    "scratch": ("scratch_load_b32 v6, off, off\n{all}\nglobal_store_b32 v1, v6, s[4:5]", True),
    "scratch-good": (
        "scratch_store_b32 off, v1, off\nscratch_load_b32 v6, off, off\n{all}\nglobal_store_b32 v1, v6, s[4:5]",
        False,
    ),
    "address": ("v_add_nc_u32 v6, v5, v1\nglobal_load_b32 v7, v6, s[4:5]\n{all}", True),
    "half": ("v_mov_b32 v6, 0\nv_add_f32 v6, v5, v6\nglobal_store_b32 v1, v6, s[4:5]", True),
    "wmma": ("v_wmma_f32_16x16x16_f16 {tiles}\nglobal_store_b32 v1, v40, s[4:5]", True),
}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_values(arch, name):
    code, bad = UNDEFINED[name]
    tiles = "v[40:47], v[8:15], v[16:23], 0" if arch == "gfx1100" else "v[40:47], v[8:11], v[16:19], 0"
    code = code.format(ds=DS0[arch], all=ALL[arch], tiles=tiles)
    head = f"s_load_b64 s[4:5], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\n{FIRST_WAIT[arch]}\n"
    buf = np.zeros(4096, np.int32)
    found = reports(arch, head + code, ["init"], (BUF,), [buf], block=32, lds=1024, scratch=64)
    assert bool(found) == bad, [r.message for r in found]
    assert all(r.check == "init" for r in found)


def test_undefined_elements_stay_in_their_row_and_column():
    """One undefined row of A spoils one row of D, and only that (gfx1201: lane 5 and 21 hold row 5)."""
    clear = "\n".join(f"v_mov_b32 v{i}, 0" for i in (2, 3, 4, 5, 12, 13))
    body = f"""
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  {clear}
  s_mov_b32 exec_lo, 0xffffffdf
  v_mov_b32 v6, 0
  s_mov_b32 exec_lo, -1
  v_mov_b32 v7, 0
  v_wmma_f32_16x16x16_f16 v[40:47], v[4:7], v[2:5], 0
  s_wait_kmcnt 0x0
  {{store}}
"""
    for reg in range(8):
        text = body.format(store=f"global_store_b32 v1, v{40 + reg}, s[4:5]")
        found = reports("gfx1201", text, ["init"], (BUF,), [np.zeros(64, np.int32)], block=32)
        assert [set(r.lanes) for r in found] == ([set(range(16))] if reg == 5 else []), reg
