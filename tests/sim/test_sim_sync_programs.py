"""Programs whose workgroups synchronise through memory, compiled by clang: last-block reduction, decoupled look-back,
stream-K. As written they are clean and right; with a wait or a cache operation of the chain taken away they race, and
the report names it. And: what counts as the same byte."""

from __future__ import annotations

import functools
import re
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

SOURCE = Path(__file__).parent / "data" / "sync_programs.c"
ARCHS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
S_NOP = 0xBF800000
CACHE = r"buffer_wbl2|buffer_inv|buffer_wbinvl1|buffer_invl2|buffer_gl[01]_inv|global_wb|global_inv"
GROUPS = 12


@functools.cache
def compiled(arch: str, program: int, *flags: str) -> bytes:
    wave = ["-mwavefrontsize64"] if arch.startswith("gfx1") else []  # a workgroup is one wave
    return simlib.clang_c(SOURCE, arch, "-O2", "-g1", *wave, *flags, f"-DPROGRAM={program}")


def last_block(rng):
    x = rng.integers(0, 1 << 20, (GROUPS, 64)).astype(np.uint32)
    args = [x, np.zeros_like(x), np.zeros(1, np.uint32), np.zeros(64, np.uint32), np.uint32(GROUPS)]
    return GROUPS, args, 3, 3 * x.sum(0, dtype=np.uint32)


def look_back(rng):
    x = rng.integers(0, 1 << 20, (GROUPS, 64)).astype(np.uint32)
    args = [x, np.zeros_like(x), np.zeros_like(x), np.zeros(GROUPS, np.uint32), np.zeros_like(x), np.uint32(GROUPS)]
    return GROUPS, args, 4, np.cumsum(x, 0, dtype=np.uint32)


def stream_k(rng):
    n, k, per = 16, 24, 10  # 96 steps over ten workgroups
    groups = -(-((n // 8) ** 2) * k // per)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((n, k), (k, n)))
    work, flag = np.zeros((groups, 64), np.float32), np.zeros(groups, np.uint32)
    args = [a, b, np.zeros((n, n), np.float32), work, flag, np.uint32(n), np.uint32(k), np.uint32(per)]
    return groups, args, 2, a @ b


def shift(rng):
    x = rng.integers(0, 1 << 20, (GROUPS, 64)).astype(np.uint32)
    want = np.concatenate([x[:2], x[:-2], x])
    return GROUPS, [np.concatenate([x, x]), np.zeros(GROUPS, np.uint32), np.uint32(GROUPS)], 0, want


def gather(rng):
    want = (np.arange(GROUPS - 1)[:, None] + np.arange(64)).sum(0, dtype=np.uint32)
    args = [np.zeros((GROUPS, 64), np.uint32), np.zeros(GROUPS, np.uint32), np.zeros(64, np.uint32), np.uint32(GROUPS)]
    return GROUPS, args, 2, want


PROGRAMS = {
    "last_block": (1, last_block),
    "look_back": (2, look_back),
    "stream_k": (3, stream_k),
    "shift": (4, shift),
    "gather": (5, gather),
}


def run(arch: str, name: str, code: bytes, threads: int = 1, seed: int = 0, limit: int = 200_000):
    """(kernel, reports of a launch with all checks, executed pcs); asserts the result of a clean one."""
    groups, args, out, want = PROGRAMS[name][1](np.random.default_rng(7))
    checks = [c for c in sim.Device(arch, checks="all").checks if c != "hazard" or arch != "gfx1100"]
    dev = sim.Device(arch, checks=checks, threads=threads, seed=seed, max_instructions=limit)
    kernel = dev.load(code).kernels[name]
    try:
        stats = kernel.launch(groups, 64, args)
    except sim.SimulatorFault as e:
        return kernel, e.reports, {}
    np.testing.assert_array_equal(args[out], want)
    return kernel, [], stats["by_pc"]


def text_offset(elf: bytes) -> int:
    """File offset of .text."""
    (shoff,) = struct.unpack_from("<Q", elf, 40)
    n, names = struct.unpack_from("<HH", elf, 60)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, shoff + 64 * i) for i in range(n)]
    return next(h[4] for h in heads if elf[heads[names][4] + h[0] :].startswith(b".text\0"))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_programs_are_clean(arch, name):
    code = compiled(arch, PROGRAMS[name][0])
    for threads, seed in ((1, 0), (2, 0), (1, 5), (1, 6)):
        assert run(arch, name, code, threads, seed)[1] == [], (threads, seed)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["last_block", "look_back", "stream_k", "gather"])
def test_each_wait_and_cache_operation_is_needed(arch, name):
    """Each taken away in turn (s_nop in its place): reported in some order of the workgroups' waves, or harmless."""
    code = compiled(arch, PROGRAMS[name][0])
    kernel, reports, executed = run(arch, name, code)
    assert not reports
    start, seen, named, silent = text_offset(code), Counter(), Counter(), []
    for pc, text, _ in kernel.disassembly():
        cache = re.match(CACHE, text)
        if pc not in executed or not cache and not re.match(r"s_wait(?!_alu|cnt_depctr)", text):
            continue
        mutant = bytearray(code)
        following = [p for p, _, _ in kernel.disassembly() if p > pc]
        for at in range(pc, following[0], 4):
            struct.pack_into("<I", mutant, start + at, S_NOP)
        what = "cache" if cache else "wait"
        seen[what] += 1
        found = [r for seed in (0, 5, 6) for r in run(arch, name, bytes(mutant), 1, seed)[1]]
        races = [r for r in found if r.check == "race"]
        if not found:
            silent.append((hex(pc), text))
        if races:
            named[what] += 1
            messages = " | ".join(r.message for r in races)
            words = ("write-back", "acquire", "invalidat", "_inv") if cache else ("no wait on", "acquire")
            assert any(w in messages for w in words), (text, messages)
            assert all(r.other_pc is not None for r in races if r.other_wave is not None), messages
    print(f"{arch} {name}: {dict(seen)} taken away, races named for {dict(named)}, silent: {silent}")
    assert seen["wait"] >= 3 and seen["cache"] >= (2 if arch in ("gfx942", "gfx950") else 1)
    assert named["wait"] >= 1 and named["cache"] >= 1
    # RDNA's fences wait for stores where an earlier fence of the program has waited for all of them
    idle = r"s_waitcnt_vscnt null, 0x0|s_wait_storecnt 0x0"
    if name == "gather":  # ... and for loads where there were none
        idle += "|s_wait_loadcnt 0x0"
    silent = [t for _, t in silent if not re.match(idle, t)]
    assert not silent


def reports_of(arch: str, name: str, code: bytes) -> list:
    return [r for seed in (0, 5, 6) for r in run(arch, name, code, 1, seed)[1]]


@pytest.mark.parametrize("arch", ARCHS)
def test_what_was_loaded_is_stored_over_behind_a_flag(arch):
    """No cache operation is needed for that, whatever else is not written back; the wait of who loads is, and that the
    other looks at the flag."""
    for flags in ((), ("-DDIRTY",)):
        code = compiled(arch, 4, *flags)
        kernel, reports, _ = run(arch, "shift", code)
        assert not [t for _, t, _ in kernel.disassembly() if re.match(CACHE, t)]
        assert not reports and not reports_of(arch, "shift", code), flags
    over = r"write of global memory races with a read by|read of global memory races with a write by"
    for flag in ("-DEARLY", "-DNO_LOOK"):
        races = [r for r in reports_of(arch, "shift", compiled(arch, 4, flag)) if r.check == "race"]
        assert races and all(re.match(over, r.message) for r in races), flag


STORE = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc1 first
  s_cmp_eq_u32 s2, 0x1fff
  s_cbranch_scc0 done
  v_mov_b32 v1, {far}
  s_branch write
first:
  v_mov_b32 v1, 0
write:
  v_mov_b32 v2, s2
  s_waitcnt lgkmcnt(0)
  {store} v1, v2, s[4:5]
done:
"""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("store", "far", "races"),
    [("global_store_byte", 0, True), ("global_store_byte", 1, False), ("global_store_short", 0, True),
     ("global_store_short", 2, False), ("global_store_short", 1, True), ("global_store_dword", 4, False)],
)  # fmt: skip
def test_workgroups_0_and_8191(arch, threads, store, far, races):
    dev = sim.Device(arch, checks="all", threads=threads)
    # gfx90a passes the workgroup number behind four registers of scratch descriptor
    code = simlib.code_object(STORE.format(store=store, far=far), (simlib.BUF,), arch=arch)
    kernel = dev.load(code).kernels["k"]
    memory = np.zeros(16, np.uint8)
    if not races:
        kernel.launch(8192, 1, [memory])
        return
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(8192, 1, [memory])
    (r,) = e.value.reports
    assert r.check == "race" and {r.workgroup[0]} <= {0, 8191}
    assert f"workgroup {8191 - r.workgroup[0]}" in r.message
