"""Every wait, barrier and needed wait state of compiled kernels (ours, Triton's, IREE's, clang's), taken away in turn,
is reported; the originals are clean, and so are their twins with another name and other registers."""

from __future__ import annotations

import re
import subprocess

import mutate
import numpy as np
import pytest
import simlib
from mutate import Program, Reason
from mutation_kernels import OURS

from tilelang import sim

FOREIGN = {k: v for name in ("clang", "triton", "iree") for k, v in mutate.load_programs(name).items()}
PROGRAMS = OURS | FOREIGN

# Mutants that are not reported; each gives the same bits in all late runs. Every entry must be of use.
REASONS = [
    Reason(
        r".*",
        "nop",
        r"buffer_load_\w+ .*; s_nop 0; buffer_load_\w+ .*",
        "splits a run of loads of which one writes another's address: for a replay under XNACK, which is off here",
    ),
    Reason(
        "softmax",
        "(wait|barrier)",
        r".*s_barrier.*",
        "orders reads of X before writes of Y, which could be one array; here they are two, and LDS is not used",
    ),
    Reason(
        "attention",
        "wait",
        r"(v_cmp_o_f32_e32|buffer_load_dwordx4) .*; s_waitcnt lgkmcnt\(0\); s_barrier",
        "an earlier wait on every path already was for everything in LDS",
    ),
    Reason(
        "attention",
        "barrier",
        r"s_waitcnt lgkmcnt\(0\); s_barrier; s_waitcnt vmcnt\(3\)",
        "between the reads of the K tile and the next writes to it lie the barriers of the row statistics",
    ),
    Reason(
        r"clang-reduce(\..*)?",
        "(wait|barrier)",
        r"(v_cmp_(gt|eq)_u32_e32 vcc, \d+, v0|s_mov_b32 s[05], .*); s_waitcnt lgkmcnt\(0\); s_barrier|"
        r"s_waitcnt lgkmcnt\(0\); s_barrier; (s_and_saveexec_b64 s\[0:1\], vcc|buffer_gl0_inv)|"
        r"s_or_b32 exec_lo, exec_lo, s0; s_wait_loadcnt_dscnt 0x0; s_barrier_signal -1|"
        r"s_mov_b32 s0, exec_lo; s_barrier_wait 0xffff; global_inv scope:SCOPE_SE",
        "the last steps of the tree are within one wave, whose LDS operations keep their order",
    ),
    Reason(
        "triton-softmax",
        "nop",
        r"s_waitcnt lgkmcnt\(0\); s_nop 0; v_add_f32_dpp .*",
        "LLVM counts states from any write; this operand comes from LDS, after a wait",
    ),
    Reason(
        "triton-layer_norm",
        "wait",
        r"v_ashrrev_i32_e32 v1, .*|s_ashr_i32 s17, .*|v_lshl_add_u64 v\[0:1\], v\[0:1\], 2, s\[4:5\]; .*",
        "LLVM joins the paths: on all that lead here the arguments were waited for at the start",
    ),
    Reason(
        "triton-pingpong",
        "barrier",
        r".*",
        "eight barriers an iteration keep the halves in turn; between a write and a read of the tile lie several "
        "(without all of them it is a race: test_pingpong_needs_its_barriers)",
    ),
    Reason(
        r"(clang-matmul|triton-softmax)\.gfx1201",
        "wait",
        r"v_(fmac|max_num)_f32_e32 .*; s_wait_loadcnt 0x0; s_barrier_signal -1",
        "the fence of the barrier waits for loads; all of them were waited for where they were used",
    ),
    Reason(
        r".*\.gfx1[12].*",
        "nop",
        r"global_store_.*; s_nop 0; s_sendmsg sendmsg\(MSG_DEALLOC_VGPRS\)",
        "stands before the message that gives registers back; no value passes",
    ),
    Reason(
        r"clang-scan\.gfx1201",
        "alu",
        r".*; s_wait_alu depctr_sa_sdst\(0\); s_(and_saveexec|or|and_not1)_b32 .*, s4",
        "LLVM joins the paths: where this launch goes, no vector instruction has read s4 or s5 before they are written",
    ),
    Reason(
        r".*\.gfx1201",
        "alu",
        r".*; s_wait_alu depctr_sa_sdst\(0\); s_mov_b32 s0, ttmp9",
        "nothing ever writes ttmp9",
    ),
    Reason("iree-.*", "barrier", r"buffer_store_dword .*; s_barrier; s_endpgm", "nothing comes after it"),
]
USES: dict[str, set[int]] = {}


SLOW = {"odd", "reduce", "attention", "triton-pingpong", "iree-softmax"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in PROGRAMS])
def test_each_wait_barrier_and_state_is_missed(name):
    p = PROGRAMS[name]()
    s = mutate.survey(p, REASONS)
    print(f"{name}: {s}")
    for r, n in s.excused.items():
        print(f"  {n} {r.what}: {r.why}")
    USES[name] = {REASONS.index(r) for r in s.excused}
    assert not s.wrong, s.wrong
    assert not s.silent, s.silent
    assert sum(s.tried.values()) >= 5


def test_every_reason_is_of_use():
    if set(USES) != set(PROGRAMS):
        pytest.skip("needs the run of all programs in this process")
    assert set().union(*USES.values()) == set(range(len(REASONS)))


def without(p: Program, what: str) -> bytes:
    """The program without any of its waits or barriers."""
    code = bytearray(p.code)
    for m in mutate.mutants(p, (what,)):
        at = next(i for i in range(0, len(code), 4) if m.code[i : i + 4] != p.code[i : i + 4])
        code[at : at + 4] = m.code[at : at + 4]
    return bytes(code)


@pytest.mark.parametrize("name", ["triton-pingpong", "softmax", "attention", "clang-reduce"])
def test_pingpong_needs_its_barriers(name):
    """Where single barriers may go, all of them may not (unless the kernel does not use LDS)."""
    p = PROGRAMS[name]()
    reports, out = mutate.run(p, without(p, "barrier"), "all")
    if name == "softmax":
        assert not reports and out == mutate.run(p, p.code, "none")[1]
    else:
        assert "race" in {r.check for r in reports}


def test_eight_waves_in_turn_are_strictly_reported():
    p = PROGRAMS["triton-pingpong"]()
    reports, _ = mutate.run(p, p.code, "all,strict")
    assert {r.check for r in reports} == {"barrier"} and all("strict" in r.message for r in reports)
    for other in ("listing1", "triton-matmul", "iree-conv", "clang-matmul"):
        q = PROGRAMS[other]()
        assert mutate.run(q, q.code, "all,strict")[0] == []


# ---- the same code under another name, in other registers ------------------------------------------------------------


def renamed(p: Program, kernel: str) -> tuple[bytes, str]:
    """The kernel's symbol, descriptor and metadata under another name of the same length."""
    new = "".join(chr(ord("a") + (7 * i + 3) % 26) for i in range(len(kernel)))
    return p.code.replace(kernel.encode(), new.encode()), new


REGISTER = re.compile(r"(?<![\w.])([vsa])(?:(\d+)|\[(\d+):(\d+)\])(?![\w.])")


def cuts(texts: list[str], file: str, least: int) -> list[int]:
    """Multiples of 4 from `least` on that no tuple straddles, the end of the registers in use included."""
    used = set()
    for t in texts:
        for m in REGISTER.finditer(t):
            if m[1] == file:
                used.add((int(m[2] or m[3]), int(m[2] or m[4])))
    end = (max((hi for _, hi in used), default=-1) + 4) // 4 * 4
    return [b for b in range(least, end + 1, 4) if all(hi < b or lo >= b for lo, hi in used)]


def permuted(code: bytes, start: int, texts: list[tuple[int, str]], arch: str) -> tuple[bytes, dict[str, str]]:
    """Two blocks of registers that follow each other change places, in each register file; the first ones, which a wave
    starts with, stay."""
    moves = {}
    for file, least in (("v", 4), ("s", 24)):
        at = cuts([t for _, t in texts], file, least)
        if len(at) >= 3:
            moves[file] = (at[0], at[len(at) // 2], at[-1])

    def number(file: str, r: int) -> int:
        lo, mid, hi = moves.get(file, (1 << 30,) * 3)
        return r if r < lo else r + hi - mid if r < mid else r - (mid - lo)

    def move(m: re.Match[str]) -> str:
        if m[2]:
            return f"{m[1]}{number(m[1], int(m[2]))}"
        return f"{m[1]}[{number(m[1], int(m[3]))}:{number(m[1], int(m[4]))}]"

    lines = [REGISTER.sub(move, t) for _, t in texts]
    cmd = [simlib.llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=obj", "-o", "-"]
    r = subprocess.run(cmd, input="\n".join([".text", *lines]).encode(), capture_output=True, check=True)
    text = simlib.sections(r.stdout)[".text"]
    assert len(text) == texts[-1][0] + 4 - texts[0][0]  # the last one is s_endpgm or a branch
    out = bytearray(code)
    out[start : start + len(text)] = text
    return bytes(out), {f: f"{lo}..{mid - 1} and {mid}..{hi - 1}" for f, (lo, mid, hi) in moves.items()}


def twin(p: Program) -> tuple[Program, dict[str, str]]:
    module = mutate.device(p.arch, "none").load(bytes(p.code))
    kernel = mutate.kernel_of(p, module)
    texts = [(pc, t) for pc, t, _ in kernel.disassembly()]
    last = max(i for i, (_, t) in enumerate(texts) if re.match(r"s_(endpgm|branch|setpc)", t))
    start = mutate.entry_offset(p.code, kernel.name)
    code, name = renamed(p, kernel.name)
    module.unload()
    code, moves = permuted(code, start, texts[: last + 1], p.arch)
    return Program(p.name, p.arch, code, p.grid, p.block, p.args, p.out, p.lds, name), moves


TWINS = ["listing1", "ragged", "layer_norm", "attention", "clang-scan", "clang-matmul", "triton-softmax"]
TWINS += ["triton-matmul", "triton-attention", "triton-pingpong", "iree-matmul", "iree-attention", "iree-conv"]


@pytest.mark.parametrize("name", TWINS)
def test_other_names_and_registers_get_the_same_reports(name):
    p = PROGRAMS[name]()
    q, moves = twin(p)
    print(f"{name}: kernel {q.kernel}, blocks that change places: {moves}")
    assert moves and q.code != p.code
    want = mutate.run(p, p.code, "all")
    assert mutate.run(q, q.code, "all") == ([], want[1])

    def faults(x: Program, code: bytes) -> set:
        return {(r.check, r.pc, r.other_pc, r.wave) for r in mutate.run(x, code, "all")[0]}

    pairs = list(zip(mutate.mutants(p), mutate.mutants(q), strict=True))
    pairs = [x for x in pairs if x[0].runs][:: max(1, len(pairs) // 12)]
    assert pairs
    for a, b in pairs:
        assert (a.pc, a.what) == (b.pc, b.what)
        assert faults(p, a.code) == faults(q, b.code), (hex(a.pc), a.text)


# ---- two waves on a byte ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, clean", [("v_mov_b32 v2, 0x70007", True), ("v_lshlrev_b32 v2, 10, v0", False)])
@pytest.mark.parametrize("store", ["ds_write_b32 v1, v2", "ds_write_b16_d16_hi v1, v2", "flat_store_dword v[4:5], v2"])
def test_replicated_stores_are_no_race(store, value, clean):
    """Triton lets all waves that hold a value store it: what is there afterwards does not depend on the order."""
    body = f"""v_and_b32 v3, 63, v0
v_lshlrev_b32 v1, 2, v3
s_mov_b64 s[4:5], src_shared_base
v_mov_b32 v4, v1
v_mov_b32 v5, s5
{value}
{store}
s_waitcnt vmcnt(0) lgkmcnt(0)
s_barrier
ds_read_b32 v6, v1
s_waitcnt lgkmcnt(0)"""
    dev = sim.Device("gfx942", checks="all")
    kern = dev.load(simlib.code_object(body, lds=256)).kernels["k"]
    if clean:
        kern.launch((1,), (256,))
        return
    with pytest.raises(sim.SimulatorFault) as e:
        kern.launch((1,), (256,))
    assert {r.check for r in e.value.reports} == {"race"} and np.all([r.text == store for r in e.value.reports])
