"""The short way of the checked variant (plain vector instructions whose registers carry no flag) against the long one,
which traced runs take: random code, the same reports and the same values."""

from __future__ import annotations

import random

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

CHIPS = [(arch, 64) for arch in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")]
CHIPS += [("gfx1100", 32), ("gfx1201", 32)]
HEAD = {
    "gfx9": "s_load_dwordx2 s[4:5], s[0:1], 0x0\n",
    "rdna": "s_load_b64 s[4:5], s[0:1], 0x0\nv_and_b32 v0, 0x3ff, v0\n",
}
REGISTERS = 7  # v1 to v7, s8 to s14: few, so that dependences come up


def line(rng: random.Random, rdna: bool, wave: int) -> str:
    """One instruction; those that owe or ask for distance come up often."""
    v = lambda: f"v{rng.randrange(1, REGISTERS + 1)}"  # noqa: E731
    s = lambda: f"s{rng.randrange(8, 8 + REGISTERS)}"  # noqa: E731
    vcc = "vcc_lo" if wave == 32 else "vcc"
    k = 2 * rng.randrange(4, 7)
    pair = f"s{k}" if wave == 32 else f"s[{k}:{k + 1}]"
    add, addc = ("v_add_co_u32", "v_add_co_ci_u32") if rdna else ("v_add_co_u32", "v_addc_co_u32")
    forms = [
        lambda: f"v_add_f32 {v()}, {v()}, {v()}",
        lambda: f"v_fma_f32 {v()}, {v()}, {s()}, -{v()}",
        lambda: f"v_mul_f32 {v()}, {s()}, {v()}",
        lambda: f"v_exp_f32 {v()}, {v()}",
        lambda: f"v_rcp_f32 {v()}, {v()}",
        lambda: f"v_xor_b32 {v()}, {s()}, {v()}",
        lambda: f"v_cmp_gt_f32 {vcc}, {v()}, {v()}",
        lambda: f"v_cmp_lt_u32 {pair}, {v()}, {v()}",
        lambda: f"v_cndmask_b32 {v()}, {v()}, {v()}, {pair}",
        lambda: f"v_cndmask_b32 {v()}, {v()}, {v()}, {vcc}",
        lambda: f"{add} {v()}, {pair}, {v()}, {v()}",
        lambda: f"{addc} {v()}, {pair}, {v()}, {v()}, {pair}",
        lambda: f"v_readlane_b32 {s()}, {v()}, {s()}",
        lambda: f"v_readfirstlane_b32 {s()}, {v()}",
        lambda: f"v_writelane_b32 {v()}, {s()}, {rng.randrange(wave)}",
        lambda: f"s_mov_b32 {s()}, {s()}",
        lambda: f"s_add_u32 {s()}, {s()}, {s()}",
        lambda: "s_nop 0",
        lambda: f"v_mov_b32 {v()}, {v()} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        lambda: f"v_cvt_f16_f32 {v()}, {v()}",
        lambda: f"v_mov_b32 {v()}, v{rng.randrange(20, 22)}",  # never written
    ]
    if rdna:
        forms += [lambda: "s_delay_alu instid0(VALU_DEP_1)"]
    return rng.choice(forms)()


def program(rng: random.Random, arch: str, wave: int) -> str:
    rdna = arch.startswith("gfx1")
    first = [f"v_mov_b32 v{k}, {k}.0" if k in (1, 2, 4) else f"v_mov_b32 v{k}, v0" for k in range(1, REGISTERS + 1)]
    first += [f"s_mov_b32 s{k}, {k}" for k in range(8, 9 + REGISTERS)] + ["s_mov_b32 vcc_lo, 3", "s_mov_b32 vcc_hi, 5"]
    return HEAD["rdna" if rdna else "gfx9"] + "\n".join(first + [line(rng, rdna, wave) for _ in range(60)]) + "\n"


def store(arch: str) -> str:
    rdna = arch.startswith("gfx1")
    wait = {"gfx1100": "s_waitcnt lgkmcnt(0)", "gfx1201": "s_wait_kmcnt 0x0"}.get(arch, "s_waitcnt lgkmcnt(0)")
    text = [wait, "v_lshlrev_b32 v0, 2, v0"]
    for k in range(1, REGISTERS + 1):
        text += ["global_store_b32" if rdna else "global_store_dword", f" v0, v{k}, s[4:5] offset:{(k - 1) * 256}"]
        text[-2:] = ["".join(text[-2:])]
    return "\n".join(text) + "\n"


def run(arch: str, obj: bytes, wave: int, traced: bool) -> tuple[list[tuple], bytes]:
    dev = sim.Device(arch, checks=["init", "wait", "hazard", "race", "bounds", "barrier"], threads=1)
    out = dev.array(np.zeros(64 * REGISTERS, np.uint32))
    found: list[tuple] = []
    try:
        dev.load(obj).kernels["k"].launch(1, wave, [out], **({"trace": [0]} if traced else {}))
    except sim.SimulatorFault as e:
        found = [(r.check, r.pc, r.other_pc, r.message, r.lanes, r.wave) for r in e.reports]
    return found, out.numpy(np.uint32).tobytes()


@pytest.mark.parametrize("arch,wave", CHIPS)
def test_same_reports_as_the_long_way(arch: str, wave: int) -> None:
    """Random dependences between vector and scalar instructions, some of them short of what the chip asks."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    checks: dict[str, int] = {}
    for _ in range(25):
        body = program(rng, arch, wave) + store(arch)
        obj = code_object(body, (BUF,), arch=arch, vgprs=32, wave=wave if arch.startswith("gfx1") else 0)
        short, long = run(arch, obj, wave, False), run(arch, obj, wave, True)
        assert short == long, body
        for report in short[0]:
            checks[report[0]] = checks.get(report[0], 0) + 1
    print(checks)
    assert checks.get("init") and checks.get("hazard")
