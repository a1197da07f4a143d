"""Memory instructions of every chip on random states against an independent model (memory_model): LDS operations,
buffers with every kind of descriptor, flat, global, scratch and scalar accesses in all their addressing modes. A
sample; TILELANG_MEMORY_TRIALS=n runs n times as many, TILELANG_MEMORY_SEED picks others."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

import memory_gen as gen  # noqa: E402
from isa_ref import encode  # noqa: E402
from memory_trials import Bench, compare  # noqa: E402

CHIPS = [
    (arch, wave)
    for arch, waves in (
        ("gfx90a", [64]),
        ("gfx942", [64]),
        ("gfx950", [64]),
        ("gfx1100", [32, 64]),
        ("gfx1201", [32, 64]),
    )
    for wave in waves
    if simlib.available(arch)
]
TIMES = int(os.environ.get("TILELANG_MEMORY_TRIALS", "1"))
SEED = int(os.environ.get("TILELANG_MEMORY_SEED", "7"))
TABLES = Path(__file__).resolve().parents[2] / "csrc" / "isa"
ELSEWHERE = re.compile(
    r"gws|bvh|ds_nop|_tr_|ordered|direct|_inv|wbl2|wbinv|gl[01]|global_wb|block|prefetch|dcache|s_atc"
)
"""Tested with other means, or without data."""


def names(arch: str, *families: str) -> list[str]:
    """Mnemonics of the chip that begin so, from the decoder's table."""
    rows = re.findall(r"ISA_ROW\(\w+, \d+, \w+, (\w+),", (TABLES / f"isa_{arch}.def").read_text())
    return sorted({n for n in rows if n.startswith(families) and not ELSEWHERE.search(n)})


def run(
    arch: str, wave: int, salt: int, families: tuple[str, ...], cases_of: object, most: int, scratch: bool = False
) -> None:
    """Runs `most` random cases of the chip's mnemonics (all of them first, if there are as many)."""
    seed = SEED * 1000 + salt * 100 + CHIPS.index((arch, wave))
    rng = np.random.default_rng(seed)
    bench = Bench(arch, wave, 4)
    all_names = names(arch, *families)
    picked = [n for _ in range(-(-most * TIMES // len(all_names))) for n in rng.permutation(all_names)][: most * TIMES]
    n, bad = compare(bench, [c for x in picked for c in cases_of(rng, bench, str(x))], rng, 4, scratch)
    print(f"{arch}, {wave} lanes, seed {seed}: {n} trials")
    assert n >= len(picked), "hardly anything ran"
    assert not bad, f"{arch}, {wave} lanes, seed {seed}: {len(bad)} differ\n" + "\n".join(bad[:10])


@pytest.mark.parametrize("arch, wave", CHIPS)
def test_lds(arch, wave):
    run(arch, wave, 1, ("ds_",), lambda rng, b, n: [gen.ds_case(rng, b, n, int(rng.integers(0, 3)))], 30)


@pytest.mark.parametrize("arch, wave", CHIPS)
def test_buffers(arch, wave):
    run(arch, wave, 2, ("buffer_",), lambda rng, b, n: [gen.buffer_case(rng, b, n)], 30)


@pytest.mark.parametrize("arch, wave", CHIPS)
def test_typed_buffers(arch, wave):
    plain = [n for n in names(arch, "tbuffer_", "buffer_") if "format" in n]
    run(arch, wave, 3, tuple(plain), lambda rng, b, n: [gen.buffer_case(rng, b, n)], 20)


@pytest.mark.parametrize("arch, wave", CHIPS)
def test_flat_and_global(arch, wave):
    one = lambda rng, b, n: [gen.flat_case(rng, b, n)]  # noqa: E731
    run(arch, wave, 4, ("flat_",), one, 12, scratch=True)
    run(arch, wave, 5, ("global_",), one, 20)


@pytest.mark.parametrize("arch, wave", CHIPS)
def test_scratch(arch, wave):
    run(arch, wave, 6, ("scratch_",), lambda rng, b, n: [gen.flat_case(rng, b, n)], 12, scratch=True)


@pytest.mark.parametrize("arch, wave", CHIPS)
def test_scalar_memory(arch, wave):
    one = lambda rng, b, n: [gen.scalar_case(rng, b, n)]  # noqa: E731
    run(arch, wave, 7, ("s_load_", "s_buffer_load_"), one, 30)
    if arch.startswith("gfx9"):
        run(arch, wave, 8, ("s_store", "s_buffer_store", "s_scratch", "s_atomic", "s_buffer_atomic"), one, 30)


@pytest.mark.parametrize("arch, wave", [c for c in CHIPS if c[0] in ("gfx1100", "gfx1201")])
def test_direct_load_writes_whole_quads(arch, wave):
    """One active lane of four is enough, as AMD's text has it."""
    (code,) = encode(arch, [("lds" if arch == "gfx1100" else "ds") + "_direct_load v1"], wave)
    exec_ = 0x8000_0021 | (1 << 62 if wave == 64 else 0)
    old = {
        "wave": wave,
        "exec": f"{exec_:x}",
        "m0": "00020004",
        "v": {"1": "0000000a" * wave},
        "lds": "00" * 4 + "78563412",
    }
    got = sim.execute(arch, code, old)["v"]["1"]
    quads = {lane // 4 for lane in range(wave) if exec_ >> lane & 1}
    assert got == "".join("12345678" if lane // 4 in quads else "0000000a" for lane in range(wave))


@pytest.mark.parametrize("arch, wave", [c for c in CHIPS if c in (("gfx942", 64), ("gfx1100", 64), ("gfx1201", 32))])
def test_late_delivery(arch, wave):
    """The same when results arrive late over rubbish; what a load leaves of its registers survives."""
    halves = [n for n in names(arch, "buffer_load", "tbuffer_load") if "d16" in n]
    for seed in range(1, 4):
        rng = np.random.default_rng(seed)
        bench = Bench(arch, wave, 4, delivery="late", seed=seed)
        picked = halves + [str(n) for n in rng.choice(names(arch, "buffer_", "flat_", "global_"), 6)]
        kinds = [gen.buffer_case if "buffer" in n else gen.flat_case for n in picked]
        cases = [make(rng, bench, n) for make, n in zip(kinds, picked, strict=True)]
        n, bad = compare(bench, cases, rng, 4, True)
        assert n >= len(picked)
        assert not bad, f"{arch}, seed {seed}:\n" + "\n".join(bad[:10])
