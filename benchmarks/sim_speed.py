"""Speed and memory of the simulator (gfx942), over torch's float32 matmul or in instructions a second.

Method: all cases of a table row in one run, repetitions interleaved, medians; what is compared has the same number of
threads. gemm-1024-f16: listing 1 (128x128 tile), ours; triton-gemm-1024-f16: Triton's 128x128x64 kernel compiled
offline; over torch's 1024^3 float32 matmul. tile-256x256x3072-f16: listing 1 with a 256x256 tile, one workgroup, one
thread, over torch's time for 1024^3 on one thread scaled to as many multiply-adds. allchecks: every check (row
all_checks). planted_x: the all-checks run with a barrier left out by the last workgroup before its last K step, over
the all-checks run without; it must be reported. valu-mix: benchmarks/valu_mix.s, one workgroup, one thread, vector
instructions alone counted; partial: half of EXEC. scaling_x: time of 1 thread over that of 2, over the same of a loop
of fused multiply-adds in C. instructions: executed ones; expected: static counts between the labels of the assembly
times trips worked out from its constants. memory: growth of private dirty memory (smaps_rollup, sampled every 2 ms
during launches in a process of its own) on a 512 MiB buffer, less the buffer; shadow: the part that the checks add, for
each byte touched. The buffer was filled by the host. dword-in-3 and the like: a lane has one element of as many, read
and written; random-dwords: 1 % of the dwords, the lanes of a wave far from each other; byte-columns: a matrix of
bytes, each wave columns; lane-: one dword by one lane of each wave; release: atomics behind waits, each a release.
"""

from __future__ import annotations

import ctypes
import json
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from codegen import data
from common import ARCH, CASES, ROOT, Case, k_loop, listing1, main, median, row, triton_peer

from tilelang import sim
from tilelang.errors import SimulatorFault

sys.path.insert(0, str(ROOT / "tests" / "sim"))
GEMM, TRITON, TILE, VALU = "gemm-1024-f16", "triton-gemm-1024-f16", "tile-256x256x3072-f16", "valu-mix"
TILE_CASE = Case("tile-256x256x3072", 256, 256, 3072, 256, False)
Run = Callable[[], Any]


def interleaved(runs: dict[str, Run], repeat: int) -> dict[str, float]:
    """Median seconds of each; the first turn is thrown away."""
    times: dict[str, list[float]] = {k: [] for k in runs}
    for turn in range(repeat + 1):
        for name, run in runs.items():
            t0 = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - t0)
    return {k: median(v) for k, v in times.items()}


# ---- matrix products ------------------------------------------------------------------------------------------------


class Product:
    """One code object of a matrix product on one device, ready to launch; checks its result each time."""

    def __init__(
        self, case: Case, hsaco: bytes, waves: int, checks: str, threads: int, extra: tuple = (), lds: int = 0
    ):
        a, b, ref = data(case)
        self.dev = sim.Device(ARCH, checks=checks, threads=threads)
        self.kernel = next(iter(self.dev.load(hsaco).kernels.values()))
        self.c = self.dev.array(np.zeros((case.m, case.n), np.float16))
        self.args = [self.dev.array(a), self.dev.array(b), self.c, *extra]
        self.grid = (-(-case.m // case.block), -(-case.n // case.block), 1)
        self.block, self.lds, self.ref = (64 * waves, 1, 1), lds, ref.astype(np.float16)

    def __call__(self) -> dict[str, Any]:
        return self.kernel.launch(self.grid, self.block, self.args, lds_bytes=self.lds)

    def checked(self) -> dict[str, Any]:
        stats = self()
        if not np.array_equal(self.c.numpy(np.float16, self.ref.shape), self.ref):
            raise SystemExit(f"{self.kernel.name}: wrong result")
        return stats

    def faulty(self) -> list[Any]:
        """Reports of a launch that must have some."""
        try:
            self()
        except SimulatorFault as e:
            return e.reports
        raise SystemExit(f"{self.kernel.name}: the planted fault was not reported")


def ours(case: Case) -> tuple[bytes, int, str]:
    """(code object, waves, assembly) of listing 1."""
    import tilelang as tl

    a, b, _ = data(case)
    comp = tl.compile(listing1(case))
    comp.prepare(a, b, np.zeros((case.m, case.n), np.float16))
    return comp.asm["hsaco"], comp.resources["waves"], comp.asm["amdgcn"]


def torch_product(threads: int, repeat: int = 5) -> Run:
    import torch

    a, b, _ = data(CASES["listing1-128"])
    ta, tb = torch.from_numpy(a.astype(np.float32)), torch.from_numpy(b.astype(np.float32))

    def run() -> None:
        torch.set_num_threads(threads)
        for _ in range(repeat):
            torch.mm(ta, tb)

    return run


def word(op: int, sdst: int = 0, ssrc1: int = 0, ssrc0: int = 0) -> int:
    return op | sdst << 16 | ssrc1 << 8 | ssrc0


def start_state(elf: bytes, heads: list[tuple[int, ...]]) -> tuple[int, int]:
    """(SGPR of workgroup id x, byte at which waves start) by the kernel descriptor; behind the prologue of 256 bytes
    where arguments are preloaded."""
    for h in heads:
        if h[1] != 11:  # .dynsym
            continue
        for at in range(h[4], h[4] + h[5], 24):
            name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
            text = elf[heads[h[6]][4] + name :].split(b"\0", 1)[0]
            if text.endswith(b".kd"):
                kd = heads[index][4] + value - heads[index][3]
                rsrc2, _, preload = struct.unpack_from("<IHH", elf, kd + 52)
                return rsrc2 >> 1 & 31, 256 if preload & 127 else 0
    raise SystemExit("no kernel descriptor")


def without_last_barrier(
    elf: bytes, kernel: Any, stats: dict[str, Any], grid: tuple[int, int, int], waves: int
) -> bytes:
    """The code object with one change: the last workgroup does not stop at the last barrier of its last trip through
    the K loop. What decides it stands in the padding behind the kernel (gfx9 encodings, s[96:98])."""
    (shoff,) = struct.unpack_from("<Q", elf, 40)
    n, names = struct.unpack_from("<HH", elf, 60)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, shoff + 64 * i) for i in range(n)]
    name_of = {elf[heads[names][4] + h[0] :].split(b"\0", 1)[0]: h for h in heads}
    _, _, _, _, start, size, *_ = name_of[b".text"]
    dis = kernel.disassembly()
    loop = k_loop(stats["by_pc"])
    pc, count, _ = [x for x in loop if x[2] == "s_barrier"][-1]
    behind = [t for p, t, _ in dis if p > pc and re.match(r"s_(?!waitcnt|nop|mov|load|barrier|setprio)", t)]
    if re.match(r"s_(cbranch_scc|cselect|addc|subb|cmov)", behind[0]):
        raise SystemExit("SCC is alive at the barrier: no place for the planted fault")
    ids, enter = start_state(elf, heads)
    begin = [p for p, _, _ in dis].index(enter)
    first = dis[begin + 1][0] - enter
    free = dis[-1][0] + 4
    s_branch, scc1, one = 0xBF820000, 0xBF850000, 129
    out = bytearray(elf)

    def jump(at: int, to: int, op: int = 0xBF820000) -> int:
        return op | ((to - at - 4) // 4 & 0xFFFF)

    entry = [word(0xBE800000, 96, 0, ids), word(0xBE800000, 98, 0, ids + 1), word(0xBE800000, 97, 0, 128)]
    entry += list(struct.unpack_from(f"<{first // 4}I", elf, start + enter))
    entry.append(jump(free + 4 * len(entry), enter + first))
    at = free + 4 * len(entry)
    last = [128 + grid[0] - 1, 128 + grid[1] - 1]
    stub = [word(0x80000000, 97, one, 97), word(0xBF070000, 0, 255, 97), count // (waves * grid[0] * grid[1])]
    stub += [scc1 | 5, word(0xBF070000, 0, last[0], 96), scc1 | 3, word(0xBF070000, 0, last[1], 98), scc1 | 1]
    stub += [jump(at + 32, pc + 4), 0xBF8A0000]
    stub.append(jump(at + 40, pc + 4))
    code = entry + stub
    if free + 4 * len(code) > size or max(grid) > 64:
        raise SystemExit("no room behind the kernel for the planted fault")
    struct.pack_into(f"<{len(code)}I", out, start + free, *code)
    struct.pack_into("<I", out, start + enter, jump(enter, free, s_branch))
    struct.pack_into("<I", out, start + pc, jump(pc, at))
    return bytes(out)


def expected_instructions(asm: str, waves: int) -> int | None:
    """Instructions of a kernel with one loop, from its assembly: entry and exit once, the body as often as its counter
    (s_addk_i32, s_cmpk_lt_i32) says. None: another form."""
    body = [t.split("//")[0].split(";")[0].strip() for t in asm[asm.index("Lfunc_begin0:") :].splitlines()[1:]]
    body = [t for t in body if t and (not t.startswith(".") or t.startswith(".LBB"))]
    end = body.index("s_endpgm")
    labels = [i for i, t in enumerate(body[:end]) if t.startswith(".LBB")]
    back = [i for i, t in enumerate(body[:end]) if t.startswith("s_cbranch_scc1 .LBB")]
    if len(labels) != 1 or len(back) != 1:
        return None
    step = [re.match(r"s_addk_i32 (s\d+), (\w+)", t) for t in body[labels[0] : back[0]]]
    bound = re.match(r"s_cmpk_lt_[iu]32 (s\d+), (\w+)", body[back[0] - 1])
    step = [m for m in step if m and bound and m[1] == bound[1]]
    if not bound or len(step) != 1:
        return None
    init = [re.match(rf"s_movk?_[bi]32 {bound[1]}, (\w+)$", t) for t in body[: labels[0]]]
    init = [int(m[1], 0) for m in init if m][-1]
    trips = max(1, -(-(int(bound[2], 0) - init) // int(step[0][2], 0)))
    inside = back[0] - labels[0]
    return waves * (end + 1 - 1 - inside + trips * inside)


def product_rows(case_name: str, case: Case, hsaco: bytes, waves: int, args: Any, **kw: Any) -> list[dict[str, Any]]:
    """nochecks_x, allchecks_x and the planted fault of one code object."""
    plain = Product(case, hsaco, waves, "none", args.threads, **kw)
    full = Product(case, hsaco, waves, "all", args.threads, **kw)
    stats = plain.checked()
    full.checked()
    bad = Product(
        case, without_last_barrier(hsaco, plain.kernel, stats, plain.grid, waves), waves, "all", args.threads, **kw
    )
    reports = bad.faulty()
    where = {r.workgroup for r in reports}
    if where != {tuple(g - 1 for g in plain.grid)} or {r.check for r in reports} != {"race"}:
        raise SystemExit(f"{case_name}: the planted fault was reported as {[(r.check, r.workgroup) for r in reports]}")
    t = interleaved(
        {"torch": torch_product(args.threads), "none": plain.checked, "all": full.checked, "planted": bad.faulty},
        args.repeat,
    )
    base = t["torch"] / 5
    return [
        row(case_name, "torch_f32_ms", "ms", None, base * 1e3, "torch f32 matmul"),
        row(case_name, "nochecks_ms", "ms", t["none"] * 1e3),
        row(case_name, "allchecks_ms", "ms", t["all"] * 1e3),
        row(case_name, "nochecks_x", "x", t["none"] / base),
        row(case_name, "allchecks_x", "x", t["all"] / base),
        row(case_name, "planted_x", "x", t["planted"] / t["all"]),
        row(case_name, "planted_reports", "", len(reports)),
        row(case_name, "instructions", "", stats["instructions"]),
        row(case_name, "threads", "", args.threads),
        row(case_name, "all_checks", "", str(full.dev.checks)),
    ]


def gemm_rows(args: Any) -> list[dict[str, Any]]:
    case = CASES["listing1-128"]
    hsaco, waves, asm = ours(case)
    rows = product_rows(GEMM, case, hsaco, waves, args)
    rows.append(row(GEMM, "instructions_expected", "", expected_instructions(asm, waves * 64)))
    return rows


def triton_rows(args: Any) -> list[dict[str, Any]]:
    peer = None if args.no_peer else triton_peer()
    if not peer:
        print("# no Triton 3.9: its case is left out", file=sys.stderr)
        return []
    case = CASES["listing1-128"]
    c = peer.compile(case, 4, block_k=64)
    peer.close()
    extra = (*(np.int32(x) for x in (case.m, case.n, case.k)), None, None)
    return product_rows(TRITON, case, c.asm["hsaco"], 4, args, extra=extra, lds=c.metadata.shared)


def tile_rows(args: Any) -> list[dict[str, Any]]:
    hsaco, waves, _ = ours(TILE_CASE)
    runs: dict[str, Run] = {"torch": torch_product(1)}
    products = {c: Product(TILE_CASE, hsaco, waves, c, 1) for c in ("none", "all")}
    runs |= {c: p.checked for c, p in products.items()}
    t = interleaved(runs, args.repeat)
    base = t["torch"] / 5 * (TILE_CASE.m * TILE_CASE.n * TILE_CASE.k) / 1024**3
    return [
        row(TILE, "torch_f32_ms", "ms", None, base * 1e3, "torch f32 matmul, scaled"),
        row(TILE, "nochecks_ms", "ms", t["none"] * 1e3),
        row(TILE, "allchecks_ms", "ms", t["all"] * 1e3),
        row(TILE, "nochecks_x", "x", t["none"] / base),
        row(TILE, "allchecks_x", "x", t["all"] / base),
    ]


def scaling_rows(args: Any) -> list[dict[str, Any]]:
    """Two threads against one, over the same of a loop that shares nothing."""
    case = CASES["listing1-128"]
    hsaco, waves, _ = ours(case)
    runs: dict[str, Run] = {}
    for n in (1, 2):
        runs[f"sim{n}"] = Product(case, hsaco, waves, "none", n)
        runs[f"all{n}"] = Product(case, hsaco, waves, "all", n)
    with tempfile.TemporaryDirectory() as tmp:
        src, lib = Path(tmp) / "fma.c", Path(tmp) / "fma.so"
        src.write_text(
            "float fma_loop(long n) { float x[64]; for (int i = 0; i < 64; i++) x[i] = i;\n"
            "for (long k = 0; k < n; k++) for (int i = 0; i < 64; i++) x[i] = __builtin_fmaf(x[i], 0.999f, 0.5f);\n"
            "float s = 0; for (int i = 0; i < 64; i++) s += x[i]; return s; }\n"
        )
        subprocess.run(["cc", "-O2", "-ffast-math", "-march=native", "-shared", "-fPIC", "-o", lib, src], check=True)
        fn = ctypes.CDLL(str(lib)).fma_loop
        fn.argtypes, fn.restype = [ctypes.c_long], ctypes.c_float
        total = 1 << 20

        def fma(n: int) -> None:
            threads = [threading.Thread(target=fn, args=(total // n,)) for _ in range(n)]
            for th in threads:
                th.start()
            for th in threads:
                th.join()

        while True:  # as long as a launch
            t0 = time.perf_counter()
            fma(1)
            if time.perf_counter() - t0 > 0.1:
                break
            total *= 2
        runs["fma1"], runs["fma2"] = lambda: fma(1), lambda: fma(2)
        t = interleaved(runs, args.repeat)
    ideal = t["fma1"] / t["fma2"]
    return [
        row(GEMM, "fma_speedup", "x", ideal),
        row(GEMM, "scaling_x", "x", t["sim1"] / t["sim2"] / ideal),
        row(GEMM, "scaling_allchecks_x", "x", t["all1"] / t["all2"] / ideal),
    ]


# ---- vector instructions --------------------------------------------------------------------------------------------

VALU_TURNS, VALU_OPS, VALU_OTHER = 10000, 8 * 16, 3


def valu_code(turns: int, half: bool) -> bytes:
    import simlib

    text = (Path(__file__).parent / "valu_mix.s").read_text()
    text = "\n".join(line.split(";")[0] for line in text.splitlines())
    text = text.replace("%LOOP%", str(turns)).replace("%EXEC%", "s_mov_b64 exec, 0xffffffff" if half else "s_nop 0")
    return simlib.code_object(text, (simlib.BUF,))


def valu_rows(args: Any) -> list[dict[str, Any]]:
    runs: dict[str, Run] = {}
    out = np.zeros(256, np.uint32)
    for name, half, checks in (("full", False, "none"), ("partial", True, "none"), ("allchecks", False, "all")):
        dev = sim.Device(ARCH, checks=checks, threads=1)
        kernel = next(iter(dev.load(valu_code(VALU_TURNS, half)).kernels.values()))
        mem = dev.array(out)
        runs[name] = lambda kernel=kernel, mem=mem: kernel.launch(1, 256, [mem])
    stats = runs["full"]()
    expected = 4 * (VALU_TURNS * (VALU_OPS + VALU_OTHER) + 13 + 9)
    t = interleaved(runs, args.repeat)
    n = 4 * VALU_TURNS * VALU_OPS
    return [row(VALU, f"minstr_{k}", "million a second", n / t[k] / 1e6) for k in runs] + [
        row(VALU, "instructions", "", stats["instructions"]),
        row(VALU, "instructions_expected", "", expected),
    ]


# ---- memory ---------------------------------------------------------------------------------------------------------

IN_PLACE = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, {shift}, v0
  s_mul_i32 s6, s2, {group}
  s_mov_b32 s9, {turns}
  v_add_u32 v1, s6, v1
  s_waitcnt lgkmcnt(0)
loop:
  global_load_{width} v[4:7], v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v4, 1, v4
  global_store_{width} v1, v[4:7], s[4:5]
  v_add_u32 v1, {step}, v1
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 loop
"""
RESIDENT = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 10, v0
  v_mov_b32 v2, 0
  s_movk_i32 s9, 256
fill:
  ds_write_b32 v1, v2
  v_add_u32 v1, 4, v1
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 fill
  s_mov_b64 exec, 1
  v_mov_b32 v3, 1
  s_waitcnt lgkmcnt(0)
  global_atomic_add v2, v3, s[4:5]
spin:
  s_sleep 1
  global_load_dword v4, v2, s[4:5] sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s3, v4
  s_cmp_lg_u32 s3, {groups}
  s_cbranch_scc1 spin
"""
PATTERN = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mul_i32 s6, s2, {group}
  s_movk_i32 s9, {turns}
  s_mov_b32 s7, {apart}
  v_lshrrev_b32 v0, {lanes}, v0
  s_mov_b64 exec, {exec}
  v_add_u32 v0, s6, v0
  v_mov_b32 v5, 1
  s_waitcnt lgkmcnt(0)
loop:
  v_mul_lo_u32 v1, v0, s7
  v_and_b32 v1, {inside}, v1
  v_lshrrev_b32 v2, {column}, v0
  v_add_u32 v1, v2, v1
  {access}
  v_add_u32 v0, 256, v0
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 loop
"""
MIB = 1 << 20
SIZE = 512 * MIB
TURNS = 16


class Pattern(NamedTuple):
    """Element i of `bytes` lies at i * apart modulo `size`, one byte on for each 2^column before it. Each lane
    adds one to TURNS elements, or one lane of each wave to one."""

    bytes: int
    apart: int
    count: int = 0  # of elements, 0: as many as there is room for
    size: int = SIZE
    column: int = 31
    lone: bool = False
    how: str = "add"

    def lanes(self) -> int:
        return 4 if self.lone else 256 * TURNS

    def groups(self) -> int:
        return (self.count or self.size // self.apart) // self.lanes()

    def touched(self) -> int:
        return self.groups() * self.lanes() * self.bytes

    def body(self) -> str:
        load, store = {4: ("dword", "dword"), 2: ("ushort", "short"), 1: ("ubyte", "byte")}[self.bytes]
        return PATTERN.format(
            group=self.lanes(),
            turns=1 if self.lone else TURNS,
            lanes=6 if self.lone else 0,
            exec=1 if self.lone else -1,
            apart=self.apart,
            inside=self.size - self.bytes,
            column=self.column,
            access=ACCESS[self.how].format(load=load, store=store),
        )


ACCESS = {
    "add": """
  global_load_{load} v4, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v4, 1, v4
  global_store_{store} v1, v4, s[4:5]""",
    "release": """
  buffer_wbl2 sc1
  s_waitcnt vmcnt(0)
  global_atomic_add v1, v5, s[4:5] sc1""",
}


PATTERNS = {
    **{f"dword-in-{k}": Pattern(4, 4 * k) for k in (2, 3, 8, 16, 33, 1024)},
    "half-in-2": Pattern(2, 4),
    "half-in-33": Pattern(2, 66),
    "byte-in-4": Pattern(1, 4),
    "byte-in-64": Pattern(1, 64),
    "byte-columns": Pattern(1, 4096, 32 * MIB, 32 * MIB, column=13),
    "random-dwords": Pattern(4, 4 * 0x9E3779B1 & 0xFFFFFFFF, SIZE // 400),  # an odd multiple: no dword twice
    "random-halves": Pattern(2, 2 * 0x9E3779B1 & 0xFFFFFFFF, SIZE // 200),
    "random-bytes": Pattern(1, 0x9E3779B1, SIZE // 200),
    "lane-dwords": Pattern(4, 4, MIB, lone=True),
    "lane-dword-in-33": Pattern(4, 132, MIB, lone=True),
    "releases": Pattern(4, 4, 16 * MIB, how="release"),
    "release-in-33": Pattern(4, 132, how="release"),
    "lane-releases": Pattern(4, 4, MIB, lone=True, how="release"),
    "lane-release-in-33": Pattern(4, 132, MIB, lone=True, how="release"),
}


def private_dirty() -> int:
    text = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * int(re.search(r"Private_Dirty: +(\d+)", text)[1])


def peak_growth(run: Run, before: int) -> int:
    """Bytes of private dirty memory that a call adds to `before` at its height."""
    peak, stop = [private_dirty()], threading.Event()

    def watch() -> None:
        while not stop.wait(0.002):
            peak[0] = max(peak[0], private_dirty())

    th = threading.Thread(target=watch)
    th.start()
    try:
        run()
    finally:
        stop.set()
        th.join()
    return max(peak[0], private_dirty()) - before


def memory_case(what: str, checks: str, threads: int) -> int:
    """Growth in bytes over a process that has loaded the simulator's library only, less the buffer."""
    import simlib

    size = SIZE
    width, shift, group, step, turns, grid, block, lds = "dwordx4", 4, 4096 * 32, 4096, 32, size // (4096 * 32), 256, 0
    body = IN_PLACE.format(width=width, shift=shift, group=group, step=step, turns=turns)
    if what in PATTERNS:
        grid, body = PATTERNS[what].groups(), PATTERNS[what].body()
    if what == "resident":
        size, grid, block, lds, body = 4096, 304, 64, 65536, RESIDENT.format(groups=304)
    elif what == "touched":  # a sixteenth of the buffer
        grid //= 16
    code = simlib.code_object(body, (simlib.BUF,), lds=lds)
    sim.Device(ARCH).close()
    before = private_dirty()
    dev = sim.Device(ARCH, checks=checks, threads=threads)
    mem = dev.empty(size)
    mem.write(np.zeros(size, np.uint8))
    kernel = next(iter(dev.load(code).kernels.values()))
    return peak_growth(lambda: kernel.launch(grid, block, [mem]), before) - size


def memory_rows(args: Any) -> list[dict[str, Any]]:
    rows, grown = [], {}
    touched = {"dense": SIZE, "touched": SIZE // 16, "resident": 304 * 65536}
    touched |= {what: p.touched() for what, p in PATTERNS.items()}
    for what in touched:
        for checks in ("none", "all"):
            cmd = [sys.executable, __file__, "--memory-case", what, checks, "--threads", str(args.threads)]
            done = subprocess.run(cmd, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(done.stderr)
            grown[what, checks] = json.loads(done.stdout)
        name = f"memory-{what}"
        rows.append(row(name, "nochecks", "MiB", grown[what, "none"] / MIB))
        rows.append(row(name, "allchecks", "MiB", grown[what, "all"] / MIB))
        per = "lds_byte" if what == "resident" else "byte"
        rows.append(row(name, f"shadow_per_{per}", "bytes", (grown[what, "all"] - grown[what, "none"]) / touched[what]))
    return rows


# ---- the program ----------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[Any], list[dict[str, Any]]]] = {
    "gemm": gemm_rows,
    "triton": triton_rows,
    "tile": tile_rows,
    "valu": valu_rows,
    "scaling": scaling_rows,
    "memory": memory_rows,
}


def run(args: Any) -> list[dict[str, Any]]:
    if args.memory_case:
        print(memory_case(*args.memory_case, args.threads))
        sys.exit(0)
    return [r for part in (args.only or PARTS) for r in PARTS[part](args)]


def add(ap: Any) -> None:
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--repeat", type=int, default=7)
    ap.add_argument("--no-peer", action="store_true")
    ap.add_argument("--only", nargs="*", choices=list(PARTS), help="these parts alone")
    ap.add_argument("--memory-case", nargs=2, help="(used by itself)")


if __name__ == "__main__":
    main("sim_speed", __doc__ or "", run, add)
