"""Reports of undefined values say where the value comes from: a register, or the load that read undefined bytes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")

HEAD = "s_load_dwordx4 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n"
LOAD = "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\n"
STORE = "global_store_dword v1, {}, s[6:7]\n"
MEMORY = r"; it comes from undefined memory at 0x[0-9a-f]+: at offset {} of hipMalloc 'a' \("
LDS = "; it comes from byte 8 of LDS, which is undefined$"
SCRATCH = "; it comes from byte 4 of a lane's scratch, which is undefined$"
# text behind HEAD, where it comes from, pc of the load (HEAD has 0x10 bytes)
CASES = {
    "a register": (STORE.format("v9"), "; nothing has written v9$", None),
    "through operations": ("v_add_u32 v2, v9, v0\nv_lshlrev_b32 v3, 1, v2\n" + STORE.format("v3"),
                           "; nothing has written v9$", None),
    "a scalar": ("s_lshl_b32 s9, s20, 1\nv_mov_b32 v2, s9\n" + STORE.format("v2"), "; nothing has written s20$", None),
    "memory": (LOAD + STORE.format("v2"), MEMORY.format(0), 0x10),
    "some lanes of memory": ("v_add_u32 v1, 128, v1\n" + LOAD + "v_add_u32 v1, -128, v1\n" + STORE.format("v2"),
                             MEMORY.format(128), 0x18),
    "memory, through operations": (LOAD + "v_add_u32 v3, 1, v2\nv_mul_u32_u24 v3, v3, v3\n" + STORE.format("v3"),
                                   MEMORY.format(0), 0x10),
    "memory, into the same register": (LOAD + "v_add_u32 v2, 1, v2\n" + STORE.format("v2"), MEMORY.format(0), 0x10),
    "an accumulation register": (LOAD + "v_accvgpr_write_b32 a3, v2\ns_nop 3\nv_accvgpr_read_b32 v4, a3\ns_nop 3\n"
                                 + STORE.format("v4"), MEMORY.format(0), 0x10),
    "a scalar load": ("s_load_dword s8, s[4:5], 0x10\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v2, s8\n" + STORE.format("v2"),
                      MEMORY.format(16), 0x10),
    "a branch": ("s_load_dword s8, s[4:5], 0x20\ns_waitcnt lgkmcnt(0)\ns_cmp_eq_u32 s8, 3\ns_cbranch_scc1 end\nend:",
                 MEMORY.format(32), 0x10),
    "a branch on what nobody compared": ("s_cbranch_scc1 end\nend:", "; nothing has written scc$", None),
    "a lane": (LOAD + "v_readfirstlane_b32 s9, v2\ns_cmp_eq_u32 s9, 0\ns_cbranch_scc1 end\nend:", MEMORY.format(0),
               0x10),
    "an address": (LOAD + "v_and_b32 v3, 0xfc, v2\nglobal_load_dword v4, v3, s[6:7]\n", MEMORY.format(0), 0x10),
    "EXEC": (LOAD + "v_cmp_eq_u32 vcc, v2, v0\ns_mov_b64 exec, vcc\n", MEMORY.format(0), 0x10),
    "LDS": ("v_mov_b32 v3, 0\nds_read_b32 v2, v3 offset:8\ns_waitcnt lgkmcnt(0)\n" + STORE.format("v2"), LDS, 0x14),
    "scratch": ("scratch_load_dword v2, off, off offset:4\ns_waitcnt vmcnt(0)\n" + STORE.format("v2"), SCRATCH, 0x10),
    "a sum of matrices": (LOAD + "s_nop 4\nv_mfma_f32_4x4x1f32 a[0:3], v2, v0, 0\ns_nop 15\nv_accvgpr_read_b32 v4, a0\n"
                          "s_nop 3\n" + STORE.format("v4"), MEMORY.format(0), 0x10),
    # not followed: nothing is said rather than something wrong
    "a swap": (LOAD + "v_swap_b32 v2, v9\n" + STORE.format("v9"), "global memory$", None),
    "a register that was another one's": ("v_add_u32 v9, v9, v0\nv_mov_b32 v9, 0\nv_swap_b32 v9, v10\n"
                                          + STORE.format("v9"), "global memory$", None),
}  # fmt: skip


def launch(body, **kw):
    dev = sim.Device("gfx942", checks="init")
    k = dev.load(code_object(HEAD + body, (BUF, BUF), lds=1024, scratch=64, agprs=8, vgprs=32)).kernels["k"]
    a, out = dev.empty(512, name="a"), dev.array(np.zeros(64, np.int32), name="out")
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 64, [a, out], **kw)
    return e.value.reports


@pytest.mark.parametrize("name", CASES)
def test_origin(name):
    body, text, pc = CASES[name]
    r = launch(body)[0]
    assert r.check == "init" and re.search(text, r.message), r.message
    assert r.other_pc == pc and ("loaded by: +" in str(r)) == (pc is not None)
    assert pc is None or "load" in r.other_text or "read" in r.other_text


def test_not_followed_in_late_delivery():
    (r,) = launch(CASES["memory"][0], delivery="late")
    assert r.message == "undefined value of v2 is stored to global memory" and r.other_pc is None


def test_two_places():
    """Each store names its own."""
    body = "s_mov_b32 s8, 0\n" + LOAD + STORE.format("v2") + STORE.format("v9").replace("s[6:7]", "s[6:7] offset:0")
    first, second = launch(body)
    assert "undefined memory" in first.message and first.other_pc == 0x14
    assert second.message.endswith("; nothing has written v9") and second.other_pc is None


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_rdna(arch):
    load, store, wait = ("global_load_b32", "global_store_b32", "s_waitcnt vmcnt(0)")
    km = "s_waitcnt lgkmcnt(0)"
    if arch == "gfx1201":
        wait, km = "s_wait_loadcnt 0x0", "s_wait_kmcnt 0x0"
    body = f"""s_load_b128 s[4:7], s[0:1], 0x0
v_and_b32 v1, 0x3ff, v0
v_lshlrev_b32 v1, 2, v1
{km}
{load} v2, v1, s[4:5]
{wait}
v_add_nc_u32 v2, v2, v2
{store} v1, v2, s[6:7]
v_add_nc_u32 v3, v7, v1
{store} v1, v3, s[6:7]"""
    dev = sim.Device(arch, checks="init")
    k = dev.load(code_object(body, (BUF, BUF), arch=arch, wave=32)).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 32, [dev.empty(128, name="a"), dev.empty(128, name="out")])
    first, second = e.value.reports
    assert re.search(MEMORY.format(0), first.message) and first.other_text.startswith(load)
    assert second.message.endswith("; nothing has written v7")


def test_execute():
    """Of bare instructions, too: s_cmp_eq_u32 s20, 0 and s_cbranch_scc1."""
    with pytest.raises(sim.SimulatorFault, match="nothing has written s20"):
        sim.execute("gfx942", bytes.fromhex("148006bf000085bf"), {}, checks="init")
