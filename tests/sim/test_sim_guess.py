"""The plain load at the head of a compare-and-swap loop is a guess, as compilers emit it: it does not race with the
atomics of others. Any other plain load does, and so does the guess with a plain store."""

from __future__ import annotations

import numpy as np
import pytest
import simlib

from tilelang import sim

ARCHS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
BACK = {"gfx90a": "glc", "gfx942": "sc0", "gfx950": "sc0", "gfx1100": "glc", "gfx1201": "th:TH_ATOMIC_RETURN"}


def program(arch: str, where: str, before: str = "", after: str = "") -> bytes:
    """Every wave adds 1 to a dword by a compare-and-swap loop."""
    rdna = arch.startswith("gfx1")
    wait = "s_wait_loadcnt_dscnt 0x0\ns_wait_kmcnt 0x0\n" if arch == "gfx1201" else "s_waitcnt vmcnt(0) lgkmcnt(0)\n"
    exec_, vcc = ("exec_lo", "vcc_lo") if rdna else ("exec", "vcc")
    b32 = "b32" if rdna else "dword"
    load, store = f"global_load_{b32} v3, v1, s[4:5]", f"global_store_{b32} v1, v1, s[4:5]"
    swap = f"global_atomic_cmpswap{'_b32' if rdna else ''} v4, v1, v[2:3], s[4:5] {BACK[arch]}"
    if where == "lds":
        load, store = (f"ds_{'load' if rdna else 'read'}_b32 v3, v1", f"ds_{'store' if rdna else 'write'}_b32 v1, v1")
        swap = "ds_cmpstore_rtn_b32 v4, v1, v2, v3" if rdna else "ds_cmpst_rtn_b32 v4, v1, v3, v2"
    if where == "scalar":
        load = f"s_load_{b32} s3, s[4:5], 0x0\n{wait}v_mov_b32 v3, s3"
    if where == "far":  # the address in another register, and something of the kind that is no access
        swap = swap.replace("v1", "v5")
        load += {"gfx1201": "\nglobal_wb scope:SCOPE_SYS", "gfx1100": ""}.get(arch, "\nbuffer_wbl2")
    barrier = "s_barrier_signal -1\ns_barrier_wait -1\n" if arch == "gfx1201" else "s_barrier\n"
    names = {"load": load, "store": store, "wait": wait, "barrier": barrier}
    body = f"""s_load_{"b64" if rdna else "dwordx2"} s[4:5], s[0:1], 0x0
        v_mov_b32 v5, 0
        v_mov_b32 v1, 0
        {wait}s_mov_b{32 if rdna else 64} {exec_}, 1
        {before.format(**names)}
        {load}
        {wait}again:
        v_add_nc_u32 v2, 1, v3
        {swap}
        {wait}v_cmp_ne_u32 {vcc}, v4, v3
        v_mov_b32 v3, v4
        s_cbranch_vccnz again
        {after.format(**names)}
        """
    if not rdna:
        body = body.replace("v_add_nc_u32", "v_add_u32")
    return simlib.code_object(body, (simlib.BUF,), arch=arch, **({"lds": 64} if where == "lds" else {}))


def races(arch: str, code: bytes, where: str, seed: int) -> list[sim.Report]:
    count = np.zeros(1, np.uint32)
    dev = sim.Device(arch, checks=["race"], threads=1, seed=seed)
    try:
        dev.load(code).kernels["k"].launch(1 if where == "lds" else 6, 256 if where == "lds" else 64, [count])
    except sim.SimulatorFault as e:
        return e.reports
    return []


@pytest.mark.parametrize("where", ["global", "far", "scalar", "lds"])
@pytest.mark.parametrize("arch", ARCHS)
def test_guess(arch, where):
    for seed in range(4):
        assert not races(arch, program(arch, where), where, seed), seed


@pytest.mark.parametrize("where", ["global", "lds"])
@pytest.mark.parametrize("arch", ARCHS)
def test_no_guess(arch, where):
    """A load behind the loop, and a store before it (on gfx90a and gfx11 a store of a dword may be an atomic one)."""
    assert any(races(arch, program(arch, where, after="{load}\n{wait}"), where, seed) for seed in range(4))
    if where == "global" and arch in ("gfx90a", "gfx1100"):
        return
    assert any(races(arch, program(arch, where, before="{store}\n{wait}"), where, seed) for seed in range(4))
