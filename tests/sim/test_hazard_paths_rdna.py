"""What gfx11 and gfx12 do not interlock, along paths: the verifier must not join two ways of which none has the fault,
nor take two branches on EXEC that exclude each other; the run sees the way it takes."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import BUF, code_object

sim = pytest.importorskip("tilelang.sim")


def static(arch: str, body: str, wave: int) -> list:
    code = code_object(body, arch=arch, vgprs=96, wave=wave)
    return [f for f in sim.verify(code) if f.kind == "hazard"]


def run(arch: str, body: str, wave: int) -> list:
    dev = sim.Device(arch, checks=["hazard"], threads=1)
    code = code_object(body, (BUF,), arch=arch, vgprs=96, wave=wave)
    try:
        dev.load(code).kernels["k"].launch(1, 64, [np.zeros(64, np.int32)])
    except sim.SimulatorFault as e:
        return list(e.reports)
    return []


NOPS = "v_nop\n" * 9

EXCLUSIVE = """{nops}s_mov_b64 exec, {mask}
s_cbranch_{first} a
v_mov_b32 v1, 0
a:
{between}s_cbranch_{second} b
s_mov_b64 exec, -1
v_mov_b32 v2, 0
v_add_f32 v3, v1, v2
b:
"""


@pytest.mark.parametrize(
    ("first", "second", "between", "bad"),
    [
        # v1 is written with lanes only, the pair read without lanes only
        ("execz", "execnz", "", False),
        ("execnz", "execz", "", False),
        ("execz", "execz", "", True),
        ("execnz", "execnz", "", True),
        ("execz", "execnz", "s_mov_b64 exec, s[4:5]\n", True),  # EXEC is another one by then
        ("execz", "vccnz", "", True),
    ],
)
def test_branches_on_exec_that_exclude_each_other(first, second, between, bad):
    text = EXCLUSIVE.format(nops=NOPS, mask=0, first=first, second=second, between=between)
    found = static("gfx1100", text, 64)
    assert bool(found) == bad, [str(f) for f in found]
    assert not static("gfx1100", text.replace("b64", "b32").replace("[4:5]", "4").replace("exec,", "exec_lo,"), 32)


FORWARD = {
    # v7 is read in its low half, the high one was written before EXEC changed
    "other-half": ("v_mov_b16 v7.h, 0\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\nv_add_f16 v3.l, v7.l, v2.l", False),
    "same-half": ("v_mov_b16 v7.l, 0\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\nv_add_f16 v3.l, v7.l, v2.l", True),
    "whole-of-half": ("v_mov_b16 v7.h, 0\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\nv_add_f32 v3, v7, v2", True),
    "half-of-whole": ("v_mov_b32 v7, 0\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\nv_add_f16 v3.l, v7.h, v2.l", True),
    "mixhi": (
        "v_fma_mixhi_f16 v7, v8, v8, v8\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\nv_add_f16 v3.l, v7.l, v2.l", False
    ),
    "mixlo": (
        "v_fma_mixlo_f16 v7, v8, v8, v8\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\nv_add_f16 v3.l, v7.l, v2.l", True
    ),
    "mixlo-keeps": (  # the half that stays is no source
        "v_mov_b32 v7, 0\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\nv_fma_mixlo_f16 v7, v2, v2, v2", False
    ),
    # a tuple is one source: its last write counts
    "tuple": ("v_mov_b32 v8, 0\ns_mov_b64 exec, -1\nv_mov_b32 v9, 0\nv_add_f64 v[4:5], v[8:9], v[8:9]", False),
    "tuples": ("v_mov_b32 v8, 0\ns_mov_b64 exec, -1\nv_mov_b32 v11, 0\nv_add_f64 v[4:5], v[8:9], v[10:11]", True),
    # the write of EXEC that lies before the youngest source counts, not a later one
    "later-exec": (
        "v_mov_b32 v1, 0\ns_mov_b64 exec, -1\nv_mov_b32 v2, 0\ns_mov_b64 exec, -1\nv_add_f32 v3, v1, v2", True
    ),
    "earlier-exec": ("s_mov_b64 exec, -1\nv_mov_b32 v1, 0\nv_mov_b32 v2, 0\nv_add_f32 v3, v1, v2", False),
}  # fmt: skip


@pytest.mark.parametrize("name", FORWARD)
def test_forwarding_by_sources(name):
    text, bad = FORWARD[name]
    text = f"s_mov_b64 exec, -1\nv_mov_b32 v8, 0\n{NOPS}{text}\n"
    assert bool(static("gfx1100", text, 64)) == bad
    assert bool(run("gfx1100", text, 64)) == bad


VCC = """v_cndmask_b32 v1, v2, v3, {vcc}
s_cmp_eq_u32 s20, {taken}
s_cbranch_scc1 other
s_mov_b{w} {vcc}, 0
{between}s_branch join
other:
v_cmp_eq_u32 {vcc}, v2, v3
join:
{read}
"""


@pytest.mark.parametrize("wave", [32, 64])
def test_vcc_where_ways_meet(wave):
    """A scalar read of VCC counts as a wait where a vector instruction wrote VCC on another way there (LLVM 22)."""
    vcc, w = ("vcc_lo", 32) if wave == 32 else ("vcc", 64)
    head = f"s_mov_b32 s20, 0\ns_mov_b{w} {vcc}, 0\nv_mov_b32 v2, 0\nv_mov_b32 v3, 0\ns_wait_alu 0xfffe\n"
    salu = f"s_and_saveexec_b{w} s{'4' if w == 32 else '[4:5]'}, {vcc}"
    valu = f"v_cndmask_b32 v5, v2, v3, {vcc}"
    for between, read, bad in [
        ("", salu, False),
        ("", valu, True),
        (salu + "\n", "s_nop 0", True),
    ]:
        text = head + VCC.format(vcc=vcc, w=w, taken=1, between=between, read=read)
        assert bool(static("gfx1201", text, wave)) == bad, (between, read)
        assert bool(run("gfx1201", text, wave)) == bad, (between, read)
    plain = head + f"v_cndmask_b32 v1, v2, v3, {vcc}\ns_mov_b{w} {vcc}, 0\n{salu}\n"
    assert static("gfx1201", plain, wave) and run("gfx1201", plain, wave)
    again = head + VCC.format(vcc=vcc, w=w, taken=1, between="", read=salu) + f"s_mov_b{w} {vcc}, 0\n{salu}\n"
    assert static("gfx1201", again, wave) and run("gfx1201", again, wave)
