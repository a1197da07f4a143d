"""Litmus programs compiled by clang for all chips and modes: what the language calls ordered is clean and right in any
order of waves and under late delivery; with too weak an order or scope it is a race, or the chip needs no more."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import litmus
import pytest
from litmus import SHAPES, TARGETS, Case, Sync

FEW = ["mp_store_load", "mp_store_xchg", "mp_add_or", "relseq_add", "wrc", "isa2", "lock_xchg", "ring", "barrier_gen",
       "last", "queue", "war", "data_buffer"]  # fmt: skip
LOCAL = ["mp_store_load_lg", "mp_store_load_gl", "mp_store_load_ll", "wrc_lg", "lock_cas_lg", "ring_ll", "last_ll",
         "barrier_gen_lg", "mp_store_xchg_ll"]  # fmt: skip
PLAIN = [
    "mp_store_load",
    "mp_add_or",
    "lock_cas",
    "barrier_gen",
    "queue_fg",
    "mp_store_xchg_lg",
    "mp_store_cas_ll",
    "last_ll",
]
SMALL = ["mp_store_load", "mp_add_or", "wrc", "lock_xchg", "last", "mp_store_load_lg", "mp_store_load_gl"]


def right_cases(t: litmus.Target, names: list[str]) -> list[Case]:
    out = []
    for s in (SHAPES[n] for n in names):
        if not re.fullmatch(s.chips, t.arch) or (s.local and not t.lds):
            continue
        out += [Case(s, Sync(scope, how, how), "waves") for scope in ("group", "agent") for how in ("op", "fence")]
        if not s.local:
            out += [
                Case(s, Sync(scope, how, how), "groups") for scope in ("agent", "system") for how in ("op", "fence")
            ]
    return out


def clean(name: str, names: list[str], opt: str = "-O2", clang: str = "clang-22", late=range(3),
          only=lambda c: True, checks: str = "all") -> None:  # fmt: skip
    t = TARGETS[name]
    cases = [c for c in right_cases(t, names) if only(c)]
    assert cases
    code = litmus.build(cases, t, opt, clang)
    for c in cases:
        for threads, seed in ((1, 0), (1, 5), (2, 0), (2, 3)):
            r = litmus.run(c, code, t, checks, threads=threads, seed=seed)
            assert r.right, (c.name, threads, seed, [x.details or x.message for x in r.reports])
        for seed in late:
            assert litmus.run(c, code, t, checks="none", seed=seed, delivery="late").right, (c.name, "late", seed)


@pytest.mark.parametrize("target", TARGETS)
def test_right_programs_are_clean(target):
    clean(target, FEW + LOCAL)


@pytest.mark.parametrize("target", TARGETS)
def test_programs_without_optimization_are_clean(target):
    """Variables are in private memory: what of it is under way when a flag is raised is nobody's business."""
    clean(target, PLAIN, "-O0", late=range(1))


def of_older(c: Case) -> bool:
    """Its scoped atomics order the memory of their own address space alone."""
    return c.sync.rel == "fence" or c.shape.space == "GLOBAL" or c.shape.space == c.shape.data_space


# gfx12: its compiler knows no hazards of scalar registers there, which chips have
@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize(
    "target, checks",
    [
        ("gfx90a", "all"),
        ("gfx942-split", "all"),
        ("gfx1100-32-wgp", "all"),
        ("gfx1201-64-cu", "bounds,wait,race,barrier"),
    ],
)
def test_programs_of_an_older_compiler_are_clean(target, checks, opt):
    clean(target, PLAIN, opt, "clang-19", range(1), of_older, checks)


def weaker(c: Case) -> list[Case]:
    low = "group" if c.place == "groups" else "wave"
    out = [{"rel": "none"}, {"acq": "none"}, {"rel": "none", "acq": "none"}, {"scope": low}]
    out += [{"fence_scope": low}] if c.sync.rel == "fence" else []
    return [replace(c, sync=replace(c.sync, **x), right=False) for x in out]


def needs_nothing(t: litmus.Target, c: Case) -> str | None:
    """Why a program that the language calls a race is none on the chip."""
    s = c.shape
    if c.place == "waves" and not t.split and not (s.space != "LOCAL" and s.data_space == "LOCAL"):
        return "the waves' accesses of one vector cache, and of LDS, are carried out in the order of issue"
    if c.place == "waves" and s.space == s.data_space == "LOCAL":
        return "LDS is carried out in the order of issue"
    if s.data_space == "LOCAL" and c.sync.rel != "none":
        return "LDS has no cache; who looks at the flag waits for it before it goes on"
    if t.name == "gfx90a-split" and "group" in (c.sync.scope, c.sync.fence_scope):
        return "with tg_split the waves of a workgroup are as far apart as those of several, under one L2"
    if s.name.startswith("war") and c.sync.acq != "none":
        return "what was read is used, so it was waited for"
    return None


@pytest.mark.parametrize("target", TARGETS)
def test_weak_programs_race(target):
    t = TARGETS[target]
    pairs = [(c, w) for c in right_cases(t, SMALL) for w in weaker(c)]
    cases = {c.name: c for p in pairs for c in p}
    code = litmus.build(list(cases.values()), t)
    seen, silent = Counter(), []
    for right, weak in pairs:
        if [x for _, x in litmus.listing(right, code, t)] == [x for _, x in litmus.listing(weak, code, t)]:
            seen["same code"] += 1
            continue
        runs = [litmus.run(weak, code, t, seed=s) for s in (0, 5, 6, 9)]
        if any(r.reports for r in runs):
            assert {x.check for r in runs for x in r.reports} == {"race"}
            seen["reported"] += 1
            continue
        why = needs_nothing(t, weak)
        late = [litmus.run(weak, code, t, checks="none", delivery="late", seed=s).right for s in range(8)]
        if why is None or not all(late) or not all(r.right for r in runs):
            silent.append((weak.name, why, late))
        seen[why] += 1
    print(f"{target}: {dict(seen)}")
    assert not silent, silent
    assert seen["reported"] >= 10
