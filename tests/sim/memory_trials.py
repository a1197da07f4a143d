"""Runs single memory instructions on random states and compares them with memory_model: a kernel takes a block of
registers, LDS and scratch from memory, runs the instruction, and puts the block back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import memory_model as mm
import numpy as np
import simlib
from isa_ref import encode

from tilelang import sim

NV, NS, FIRST_S = 16, 32, 16
"""Registers of a trial: v0 to v15, s16 to s47."""
LDS, SCRATCH = 5120, 64
"""Bytes of LDS (a whole number of granules on all chips), of scratch a lane."""
AT_S, AT_LDS, AT_SCRATCH, BLOCK = 4096, 4096 + 256, 4096 + 256 + LDS, 4096 + 256 + LDS + 4096
SLICE, MIDDLE = 8192, 2048
"""Bytes of global memory of a trial; where its buffer begins."""
HOLE, NOP = 8, b"\x5a\0\x80\xbf"  # dwords for the instruction; s_nop 0x5a on all chips


@dataclass
class Trial:
    """State before; what the model makes of it is in `after`."""

    before: mm.State
    mem: bytearray


def chip_words(arch: str) -> tuple[str, str, str, str]:
    """Load, store of a dword, wait, suffix of LDS writes."""
    if arch in mm.GFX9:
        return "load_dword", "store_dword", "s_waitcnt vmcnt(0) lgkmcnt(0)\n", "write_b32"
    if arch == "gfx1100":
        wait = "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_vscnt null, 0x0\n"
        return "load_b32", "store_b32", wait, "store_b32"
    return "load_b32", "store_b32", "s_wait_loadcnt_dscnt 0x0\ns_wait_storecnt 0x0\ns_wait_kmcnt 0x0\n", "store_b32"


def body_of(arch: str, wave: int, scratch: bool, pre: str = "") -> str:
    """The kernel: a block in, the hole (s_nop 0x5a), the block out."""
    load, store, wait, put = chip_words(arch)
    x16, x4, x2 = ("dwordx16", "dwordx4", "dwordx2") if arch in mm.GFX9 else ("b512", "b128", "b64")
    row = 4 * wave
    wg = "ttmp9" if arch == "gfx1201" else "s2"
    t = f"s_load_{x2} s[4:5], s[0:1], 0x0\ns_mul_i32 s6, {wg}, {BLOCK}\nv_lshlrev_b32 v60, 2, v0\n"
    t += f"v_mov_b32 v62, 0\n{wait}"
    t += "s_add_u32 s8, s4, s6\ns_addc_u32 s9, s5, 0\n"
    for s, at in ((10, AT_LDS), (12, AT_LDS + 2560), (14, AT_SCRATCH)):
        t += f"s_add_u32 s{s}, s8, {at}\ns_addc_u32 s{s + 1}, s9, 0\n"
    t += f"s_load_{x16} s[16:31], s[8:9], {AT_S}\ns_load_{x16} s[32:47], s[8:9], {AT_S + 64}\n"
    t += f"s_load_{x4} s[48:51], s[8:9], {AT_S + 128}\n{wait}"
    half = 2560 // row
    places = [(base, k * row) for base in ("s[10:11]", "s[12:13]") for k in range(half)]
    for k, (base, at) in enumerate(places):
        t += f"global_{load} v61, v60, {base} offset:{at}\n{wait}ds_{put} v60, v61 offset:{k * row}\n{wait}"
    for k in range(SCRATCH // 4 if scratch else 0):
        t += f"global_{load} v61, v60, s[14:15] offset:{k * 256}\n{wait}"
        t += f"scratch_{store} v62, v61, off offset:{4 * k}\n{wait}"
    t += "".join(f"global_{load} v{k}, v60, s[8:9] offset:{256 * k}\n" for k in range(NV)) + wait + pre
    t += "s_mov_b32 m0, s50\n" + ("s_mov_b64 exec, s[48:49]\n" if wave == 64 else "s_mov_b32 exec_lo, s48\n")
    t += "s_nop 0x5a\n" * HOLE + wait + ("s_mov_b64 exec, -1\n" if wave == 64 else "s_mov_b32 exec_lo, -1\n")
    t += "".join(f"global_{store} v60, v{k}, s[8:9] offset:{256 * k}\n" for k in range(NV)) + "v_mov_b32 v61, 0\n"
    t += "".join(f"v_writelane_b32 v61, s{FIRST_S + k}, {k}\n" for k in range(NS))
    t += f"s_add_u32 s4, s8, {AT_S}\ns_addc_u32 s5, s9, 0\ns_nop 4\nglobal_{store} v60, v61, s[4:5]\n"
    get = "read_b32" if arch in mm.GFX9 else "load_b32"
    for k, (base, at) in enumerate(places):
        t += f"ds_{get} v61, v60 offset:{k * row}\n{wait}global_{store} v60, v61, {base} offset:{at}\n{wait}"
    for k in range(SCRATCH // 4 if scratch else 0):
        t += f"scratch_{load} v61, v62, off offset:{4 * k}\n{wait}"
        t += f"global_{store} v60, v61, s[14:15] offset:{k * 256}\n{wait}"
    return t


@functools.cache
def template(arch: str, wave: int, scratch: bool, denorm: tuple[int, int]) -> tuple[bytes, bytes, list]:
    mode = denorm[0] | denorm[1] << 2
    return simlib.assemble(
        body_of(arch, wave, scratch, f"s_setreg_imm32_b32 hwreg(1, 4, 4), {mode}\n"),
        (simlib.BUF,),
        arch=arch,
        vgprs=64,
        sgprs=96,
        lds=LDS,
        scratch=SCRATCH if scratch else 0,
        wave=0 if arch in mm.GFX9 else wave,
    )


class Bench:
    """Launches instructions of a chip on trials."""

    def __init__(self, arch: str, wave: int, most: int, checks: object = "none", **options: object) -> None:
        self.arch, self.wave, self.most = arch, wave, most
        self.dev = sim.Device(arch, checks=checks, threads=1, **options)
        self._apertures: tuple[int, int] | None = None
        self.io, self.mem = self.dev.empty(BLOCK * most), self.dev.empty(SLICE * most)

    def apertures(self) -> tuple[int, int]:
        """Flat addresses of the first bytes of LDS and scratch, as the chip's registers have them."""
        if not self._apertures:
            pair = {}
            for k, reg in enumerate(("src_shared_base", "src_private_base")):
                st = mm.State(
                    self.arch, self.wave, np.zeros((NV, self.wave), np.uint32),
                    {FIRST_S + i: 0 for i in range(NS)}, 1, 0, bytearray(LDS),
                )  # fmt: skip
                code = encode(self.arch, [f"s_mov_b64 s[20:21], {reg}"])[0]
                got = self.run(code, [Trial(st, bytearray(SLICE))])[0].before
                pair[k] = got.s[20] | got.s[21] << 32
            self._apertures = (pair[0], pair[1])
        return self._apertures

    def base(self, i: int) -> int:
        """Address of trial i's memory."""
        return self.mem.address + i * SLICE

    def run(self, code: bytes, trials: list[Trial], scratch: bool = False) -> list[Trial]:
        """The states after, by the simulator."""
        text, kd, meta = template(self.arch, self.wave, scratch, trials[0].before.denorm)
        nops = NOP
        hole = nops * HOLE
        assert text.count(hole) == 1 and len(code) <= len(hole)
        text = text.replace(hole, code + nops * (HOLE - len(code) // 4))
        wf = {} if self.arch in mm.GFX9 else {"meta_extra": {".wavefront_size": self.wave}}
        module = self.dev.load(simlib.link({"k": (text, kd, meta)}, arch=self.arch, **wf))
        io = np.concatenate([pack(t.before) for t in trials])
        mem = np.concatenate([np.frombuffer(bytes(t.mem), np.uint8) for t in trials])
        self.io.write(np.concatenate([io, np.zeros(BLOCK * self.most - io.size, np.uint8)]))
        self.mem.write(np.concatenate([mem, np.zeros(SLICE * self.most - mem.size, np.uint8)]))
        try:
            module.kernels["k"].launch(len(trials), self.wave, [self.io])
        finally:
            module.unload()
        io, mem = self.io.numpy(np.uint8, (BLOCK * self.most,)), self.mem.numpy(np.uint8, (SLICE * self.most,))
        out = []
        for i, t in enumerate(trials):
            st = unpack(io[i * BLOCK : (i + 1) * BLOCK], t.before)
            out.append(Trial(st, bytearray(mem[i * SLICE : (i + 1) * SLICE].tobytes())))
        return out


def pack(st: mm.State) -> np.ndarray:
    out = np.zeros(BLOCK, np.uint8)
    v = np.zeros((NV, 64), np.uint32)
    v[:, : st.lanes] = st.v
    out[:AT_S] = v.reshape(-1).view(np.uint8)
    s = [st.s[FIRST_S + k] for k in range(NS)] + [st.exec & mm.M32, st.exec >> 32, st.m0, 0]
    out[AT_S : AT_S + 4 * len(s)] = np.array(s, np.uint32).view(np.uint8)
    out[AT_LDS : AT_LDS + LDS] = np.frombuffer(bytes(st.lds), np.uint8)
    if st.scratch:
        x = np.zeros((SCRATCH // 4, 64), np.uint32)
        x[:, : st.lanes] = np.array([np.frombuffer(bytes(b), np.uint32) for b in st.scratch]).T
        out[AT_SCRATCH:] = x.reshape(-1).view(np.uint8)
    return out


def unpack(block: np.ndarray, like: mm.State) -> mm.State:
    v = block[:AT_S].view(np.uint32).reshape(NV, 64)[:, : like.lanes].copy()
    s = block[AT_S : AT_S + 4 * NS].view(np.uint32)
    x = block[AT_SCRATCH:].view(np.uint32).reshape(SCRATCH // 4, 64)[:, : like.lanes]
    return mm.State(
        like.arch, like.lanes, v, {FIRST_S + k: int(s[k]) for k in range(NS)}, like.exec, like.m0,
        bytearray(block[AT_LDS:AT_SCRATCH].tobytes()),
        scratch=[bytearray(x[:, i].copy().tobytes()) for i in range(like.lanes)] if like.scratch else [],
    )  # fmt: skip


def copy(st: mm.State) -> mm.State:
    return mm.State(
        st.arch, st.lanes, st.v.copy(), dict(st.s), st.exec, st.m0, bytearray(st.lds),
        [(a, bytearray(b)) for a, b in st.regions], [bytearray(b) for b in st.scratch], st.shared_base, st.private_base,
        st.denorm,
    )  # fmt: skip


def expect(op: mm.Op, trial: Trial) -> mm.State:
    """The model's state after; lanes that lead outside are switched off in `trial` first, and those whose stores
    overlap another lane's without being the same bytes (which lane wins byte by byte is nobody's promise)."""
    while True:
        st = copy(trial.before)
        try:
            mm.step(st, op)
        except mm.Outside:
            if op.name.startswith("s_") or not trial.before.active(st.lane):
                raise
            trial.before.exec &= ~(1 << st.lane)
            continue
        bad = 0 if "atomic" in op.name else overlapping(st)
        if not bad:
            return st
        trial.before.exec &= ~bad


def defined(op: mm.Op, make: Callable[[], Trial]) -> tuple[Trial, mm.State]:
    """A trial whose result is known, and that result."""
    for _ in range(100):
        trial = make()
        try:
            return trial, expect(op, trial)
        except mm.Outside:  # scalar instructions have no lanes to switch off
            continue
    raise AssertionError(f"{op.name}: no trial with a known result")


def overlapping(st: mm.State) -> int:
    """Lanes that wrote some bytes of an earlier lane, and others."""
    mine: dict[int, set[int]] = {}
    for lane, at in st.written:
        mine.setdefault(lane, set()).add(at)
    first: dict[int, int] = {}
    bad = 0
    for lane, bytes_ in mine.items():
        others = {first[at] for at in bytes_ if at in first}
        if any(mine[o] != bytes_ for o in others):
            bad |= 1 << lane
        else:
            first.update((at, lane) for at in bytes_)
    return bad


def differences(want: mm.State, got: Trial) -> list[str]:
    out, st = [], got.before
    for r in range(NV):
        bad = np.flatnonzero(want.v[r] != st.v[r])
        if bad.size:
            lane = int(bad[0])
            out.append(f"v{r}: {bad.size} lanes, lane {lane}: {st.v[r][lane]:08x}, model {want.v[r][lane]:08x}")
    out += [f"s{r}: {st.s[r]:08x}, model {want.s[r]:08x}" for r in want.s if st.s[r] != want.s[r]]
    for name, a, b in [("lds", st.lds, want.lds), ("memory", got.mem, want.regions[0][1])] + [
        (f"scratch of lane {i}", x, y) for i, (x, y) in enumerate(zip(st.scratch, want.scratch, strict=True))
    ]:
        bad = [k for k in range(len(b)) if a[k] != b[k]] if a != b else []
        if bad:
            k = bad[0]
            out.append(
                f"{name}: {len(bad)} bytes, at {k}: {bytes(a[k : k + 8]).hex()}, model {bytes(b[k : k + 8]).hex()}"
            )
    return out


Make = Callable[[np.random.Generator, int], Trial]


def compare(
    bench: Bench, cases: list[tuple[str, mm.Op, Make]], rng: np.random.Generator, each: int, scratch: bool = False
) -> tuple[int, list[str]]:
    """(trials run, what differs) of cases (text, fields, maker of trials); what the chip does not have is left out."""
    codes = encode(bench.arch, [c[0] for c in cases], 0 if bench.arch in mm.GFX9 else bench.wave)
    bad, n = [], 0
    for (text, op, make), code in zip(cases, codes, strict=True):
        if code is None:
            continue
        made = [defined(op, lambda base=bench.base(i): make(rng, base)) for i in range(each)]
        trials, wants = [t for t, _ in made], [w for _, w in made]
        try:
            got = bench.run(code, trials, scratch)
        except sim.SimulatorFault as e:
            bad.append(f"{text}: fault: {e}")
            continue
        n += each
        for i, (want, g) in enumerate(zip(wants, got, strict=True)):
            diff = differences(want, g)
            if diff:
                st = trials[i].before
                words = " ".join(f"{st.s[k]:x}" for k in range(FIRST_S, FIRST_S + 9))
                bad.append(f"{text}: trial {i}: exec {st.exec:x} m0 {st.m0:x} s16.. {words}: " + "; ".join(diff[:3]))
                break
    return n, bad
