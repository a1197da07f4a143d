"""Litmus programs with one wait, cache operation, scope or barrier less: each removal is reported, or the chip does not
need what was removed, and then it gives the same results in any order and under late delivery."""

from __future__ import annotations

import re
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import litmus
import mutate
import pytest
import simlib
from litmus import SHAPES, TARGETS, Case, Sync, Target
from mutate import S_NOP

FEW = ["mp_store_load", "mp_add_or", "lock_xchg", "last", "war", "mp_store_load_lg", "mp_store_load_gl"]
MORE = ["relseq_add", "data_buffer", "data_wide", "mp_xchg_load"]
CACHE = re.compile(r"buffer_(wbl2|inv|invl2|wbinvl1\w*|gl[01]_inv)\b|global_(wb|inv)\b")
INVALIDATES = re.compile(r"buffer_(inv|wbinvl1\w*|gl[01]_inv)\b|global_inv\b")
NAMES_IT = {"wait": {"wait", "race"}, "cache": {"race"}, "scope": {"race"}, "barrier": {"race", "init", "barrier"}}


@dataclass(frozen=True)
class Removal:
    """kind: wait, cache, scope, barrier; what: the counter, operation or bits; code: what stands there instead."""

    pc: int
    kind: str
    what: str
    text: str
    code: bytes


# ---- what is removed ------------------------------------------------------------------------------------------------


def wait_parts(arch: str, word: int, text: str) -> Iterator[tuple[str, int]]:
    """A wait without one of its counters; without the only one it is no wait."""
    if text.startswith("s_waitcnt "):
        fields = {"vmcnt": 0xC00F, "lgkmcnt": 0xF00} if arch.startswith("gfx9") else {"vmcnt": 0xFC00, "lgkmcnt": 0x3F0}
        has = [k for k in fields if word & fields[k] != fields[k]]
        yield from ((k, word | fields[k] if len(has) > 1 else S_NOP) for k in has)
        return
    both = re.match(r"s_wait_(loadcnt|storecnt)_dscnt", text)
    if both:  # bits 13:8 are of the first, 5:0 of dscnt
        one = {"loadcnt": 0x40, "storecnt": 0x41}[both[1]]
        yield both[1], 0xBF800000 | 0x46 << 16 | (word & 0x3F)
        yield "dscnt", 0xBF800000 | one << 16 | (word >> 8 & 0x3F)
        return
    yield re.sub(r"s_wait(cnt)?_", "", text.split()[0]), S_NOP


def assemble(arch: str, wave: int, texts: list[str]) -> list[bytes]:
    """The bytes of each instruction."""
    mark = struct.pack("<II", S_NOP | 10, S_NOP | 11)
    lines = "".join(f"{t}\ns_nop 10\ns_nop 11\n" for t in texts)
    cmd = [simlib.llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=obj", "-o", "-"]
    cmd += [f"-mattr=+wavefrontsize{wave}"] if arch.startswith("gfx1") else []
    r = subprocess.run(cmd, input=(".text\n" + lines).encode(), capture_output=True, check=True)
    out = simlib.sections(r.stdout)[".text"].split(mark)[:-1]
    assert len(out) == len(texts)
    return out


def narrower(text: str) -> Iterator[tuple[str, str]]:
    """An access without one bit of its scope, and without any; what says that an atomic returns stays."""
    bits = [b for b in ("sc0", "sc1", "glc") if re.search(rf" {b}\b", text)]
    bits = [b for b in bits if b == "sc1" or "_atomic_" not in text]
    for some in {(b,) for b in bits} | ({tuple(bits)} if bits else set()):
        yield "+".join(some), re.sub(rf" ({'|'.join(some)})\b", "", text)
    scope = re.search(r" scope:SCOPE_(\w+)", text)
    if scope:
        yield scope[1], text.replace(scope[0], "")


def removals(c: Case, code: bytes, t: Target, dis: list[tuple[int, str]]) -> list[Removal]:
    start, out, texts = mutate.entry_offset(code, c.name), [], []
    for (pc, text), (end, _) in zip(dis, dis[1:] + [(dis[-1][0] + 4, "")], strict=True):
        nops = struct.pack("<I", S_NOP) * ((end - pc) // 4)
        if re.match(r"s_wait(cnt )|s_wait_(?!alu|idle)|s_waitcnt_vscnt", text):
            word = struct.unpack_from("<I", code, start + pc)[0]
            out += [
                Removal(pc, "wait", k, text, struct.pack("<I", w) + nops[4:]) for k, w in wait_parts(t.arch, word, text)
            ]
        elif re.match(r"s_barrier(_wait|_signal .*)?\b", text):
            out.append(Removal(pc, "barrier", text.split()[0], text, nops))
        elif CACHE.match(text):
            out.append(Removal(pc, "cache", text, text, nops))
        elif re.match(r"(global|flat|buffer)_(load|store|atomic)_", text):
            texts += [(pc, what, text, less) for what, less in narrower(text)]
    made = assemble(t.arch, t.wave, [x[3] for x in texts]) if texts else []
    return out + [Removal(pc, "scope", what, text, b) for (pc, what, text, _), b in zip(texts, made, strict=True)]


# ---- what need not be there -----------------------------------------------------------------------------------------


def counted(t: Target, text: str) -> set[str]:
    """What an instruction leaves under way: loads, stores (ld, st), LDS, scalar loads (ds, km)."""
    if text.startswith(("s_load", "s_buffer_load")):
        return {"km"}
    if text.startswith("ds_"):
        return {"ds"}
    m = re.match(r"(global|flat|buffer)_(load|store|atomic)_", text)
    if not m:
        return set()
    back = m[2] == "load" or (m[2] == "atomic" and re.search(r" (sc0|glc|th:TH_ATOMIC_RETURN)\b", text))
    return {"ld" if back else "st"} | ({"ds"} if m[1] == "flat" else set()) | ({"dirty"} if m[2] == "store" else set())


def waited(t: Target, what: str) -> set[str]:
    gfx9 = {"vmcnt": {"ld", "st"}, "lgkmcnt": {"ds", "km"}}
    rest = {"vmcnt": {"ld"}, "vscnt": {"st"}, "lgkmcnt": {"ds", "km"}, "loadcnt": {"ld"}, "storecnt": {"st"},
            "dscnt": {"ds"}, "kmcnt": {"km"}}  # fmt: skip
    return (gfx9 if t.arch.startswith("gfx9") else rest)[what]


def gone(t: Target, what: str) -> set[str]:
    """Stores that are complete still want a write-back where there is one for other workgroups."""
    w = waited(t, what)
    return w | {"dirty"} if "st" in w and t.arch not in ("gfx942", "gfx950") else w


def under_way(t: Target, dis: list[tuple[int, str]], ran: dict[int, tuple[int, ...]]) -> dict[int, set[str]]:
    """What may be under way before each instruction, over the ways that were taken. ran: how often, first."""
    led = mutate.targets(dis)
    nth = {pc: i for i, (pc, _) in enumerate(dis)}
    state: dict[int, set[str]] = {dis[0][0]: set()}
    work = [dis[0][0]]
    while work:
        pc = work.pop()
        text, now = dis[nth[pc]][1], set(state[pc])
        if CACHE.match(text) and re.search(r"wb(l2)?\b", text) and "dirty" in now:
            now = now - {"dirty"} | {"st"}
        for k in re.findall(r"\b(\w+cnt)\(0\)", text):
            now -= gone(t, k)
        m = re.match(r"s_wait(?:cnt)?_(\w+cnt|loadcnt_dscnt|storecnt_dscnt)\b.* (null, )?0x0$", text)
        for k in m[1].split("_") if m else []:
            now -= gone(t, k)
        now |= counted(t, text)
        i = nth[pc]
        to = [] if re.match(r"s_(branch|endpgm)", text) or i + 1 == len(dis) else [dis[i + 1][0]]
        to += [x for x in mutate.targets([(pc, text)])]
        if len(to) == 2 and to[0] not in led and to[0] in ran and ran[to[0]][0] == ran[pc][0]:
            to.pop()  # never jumps
        for x in to:
            if x in ran and (x not in state or not now <= state[x]):
                state[x] = state.get(x, set()) | now
                work.append(x)
    return state


def needless(t: Target, c: Case, m: Removal, way: set[str], after: str, start: bool) -> str | None:
    """Why the chip does without it."""
    s, waves = c.shape, c.place == "waves"
    one_cache = waves and not t.split
    vector = m.kind in ("cache", "scope") or (m.kind == "wait" and m.what in ("vmcnt", "vscnt", "loadcnt", "storecnt"))
    if m.kind == "wait" and not waited(t, m.what) & way:
        return "nothing is under way"
    if m.kind == "cache" and re.search(r"wb(l2)?\b", m.text) and "dirty" not in way:
        return "nothing is to be written back"
    if m.kind == "wait" and s.space == "FLAT" and waited(t, m.what) & way == {"ds"}:
        return "what went by a flat address is in global memory"
    if m.kind == "wait" and m.text.startswith("s_wait") and waited(t, m.what) == {"st"} and not way & {"dirty"}:
        return "what is under way is a flag"
    if m.kind == "wait" and waited(t, m.what) == {"st"} and INVALIDATES.match(after):
        return "an acquire waits for loads alone"
    if vector and s.data_space == "LOCAL":
        return "data in LDS: no cache, and what is under way there has a counter of its own"
    if vector and one_cache:
        return "one cache serves the waves of the workgroup in the order of issue"
    if m.kind == "scope" and "_atomic_" in m.text:
        return "read-modify-writes are carried out where all of the device meets"
    if m.kind == "scope" and m.what == "sc0" and " sc1" in m.text:
        return "all are on one device"
    if m.text.startswith("global_wb scope:SCOPE_SYS") or (
        t.arch == "gfx90a" and m.text.startswith(("buffer_wbl2", "buffer_invl2"))
    ):
        return "all are on one device"
    if m.kind == "cache" and waves and m.text == "buffer_gl1_inv":
        return "a workgroup is under one of these caches"
    if m.kind == "cache" and waves and "wbl2" in m.text:
        return "a workgroup is under one L2"
    if s.name.startswith("war") and (
        m.kind == "cache" or (m.kind == "wait" and "st" in waited(t, m.what) and "ld" not in way)
    ):
        return "what was loaded is not loaded again, and what was stored is nobody else's"
    if m.kind == "wait" and m.what == "dscnt" and start:
        return "LDS takes the flag's first value before any look at it"
    if m.kind == "cache" and start:
        return "no global memory was written before the barrier"
    return None


# ---- the runs -------------------------------------------------------------------------------------------------------


def cases_of(t: Target, names: list[str]) -> list[Case]:
    out = []
    for s in (SHAPES[n] for n in names):
        if not re.fullmatch(s.chips, t.arch) or (s.local and not t.lds):
            continue
        for place, scopes in (("waves", ("group", "agent")), ("groups", ("agent", "system"))):
            if place == "waves" or not s.local:
                out += [Case(s, Sync(scope, how, how), place) for scope in scopes for how in ("op", "fence")]
    return out


def outcome(c: Case, code: bytes, t: Target) -> tuple[set[str], bool]:
    """(checks that reported, was any result wrong)."""
    wrong = False
    for seed in (0, 5, 6, 9, 12):
        r = litmus.run(c, code, t, seed=seed, limit=30_000)
        if r.reports:
            return {x.check for x in r.reports}, wrong
        wrong |= not r.right
    late = [litmus.run(c, code, t, checks="none", delivery="late", seed=s, limit=30_000).right for s in range(4)]
    return set(), wrong or False in late


def survey(t: Target, names: list[str], opt: str = "-O2") -> tuple[Counter, list]:
    """(how many of what became what, those that nothing speaks for)"""
    cases = cases_of(t, names)
    code = litmus.build(cases, t, opt)
    seen, bad, todo = Counter(), [], []
    for c in cases:
        dis, first = litmus.listing(c, code, t), litmus.run(c, code, t)
        assert first.right, (c.name, [x.message for x in first.reports])
        ran, start = first.ran, mutate.entry_offset(code, c.name)
        way = under_way(t, dis, ran)
        todo.append((c, dis, way, start, [m for m in removals(c, code, t, dis) if m.pc in ran]))
    for k in range(max(len(x[4]) for x in todo)):  # one of each kernel at a time: a code object less to load
        b = bytearray(code)
        live = [(*x[:4], x[4][k]) for x in todo if k < len(x[4])]
        for *_, start, m in live:
            b[start + m.pc : start + m.pc + len(m.code)] = m.code
        changed = bytes(b)
        for c, dis, way, _, m in live:
            got, wrong = outcome(c, changed, t)
            barrier = next((pc for pc, x in dis if x.startswith("s_barrier")), -1)
            after = next((x for pc, x in dis if pc > m.pc), "")
            why = needless(t, c, m, way.get(m.pc, set()), after, abs(m.pc - barrier) <= 40)
            if got & NAMES_IT[m.kind]:
                seen[m.kind, "reported"] += 1
            elif got or wrong or not why:
                bad.append((c.name, hex(m.pc), m.kind, m.what, m.text, got, wrong, why))
                seen[m.kind, "missed"] += 1
            else:
                seen[m.kind, why] += 1
    return seen, bad


def check(name: str, names: list[str]) -> None:
    seen, bad = survey(TARGETS[name], names)
    print(f"{name}: {sum(seen.values())} removals")
    for (kind, what), n in sorted(seen.items()):
        print(f"  {n} {kind}: {what}")
    assert not bad, bad
    assert sum(n for (_, what), n in seen.items() if what == "reported") >= 50


@pytest.mark.parametrize("target", ["gfx942", "gfx942-split", "gfx1100-32-wgp", "gfx1201-64-cu"])
def test_each_removal_is_reported_or_needless(target):
    check(target, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("target", [t for t in TARGETS])
def test_more_removals_are_reported_or_needless(target):
    check(target, FEW + MORE)
