"""What an atomic orders: one that returns the old value is an acquire (its wave can tell whether it came behind the
release), one that returns nothing is none, though it keeps what others released through its address. All chips; global,
flat and buffer atomics; between workgroups and between the waves of one."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

SOURCE = Path(__file__).parent / "data" / "atomic_order.c"
RSRC = {"gfx90a": 0x00027000, "gfx942": 0x00027000, "gfx950": 0x00027000, "gfx1100": 0x31004000, "gfx1201": 0x31004000}
SPACES = {"global": 0, "flat": 1, "buffer": 2}


@functools.cache
def compiled(arch: str, space: str, within: bool, relay: bool, sees: bool) -> bytes:
    flags = ["-O2"]
    flags += ["-mwavefrontsize64"] if arch.startswith("gfx1") and not arch.startswith("gfx9") else []
    flags += [f"-DSPACE={SPACES[space]}", f"-DRSRC={RSRC[arch]}", f"-DPOLICY={16 if arch == 'gfx1201' else 0}"]
    flags += [f"-D{k}={int(v)}" for k, v in (("WITHIN", within), ("RELAY", relay), ("SEES", sees))]
    return simlib.clang_c(SOURCE, arch, *flags)


def run(arch: str, space: str, within: bool, relay: bool, sees: bool) -> tuple[list[str], str, np.ndarray]:
    """(reports, instruction of the last atomic, result)."""
    dev = sim.Device(arch, checks="race", threads=1)
    kernel = dev.load(compiled(arch, space, within, relay, sees)).kernels["order"]
    atomics = [text for _, text, _ in kernel.disassembly() if "atomic_add" in text]
    out = np.zeros(64, np.uint32)
    try:
        kernel.launch(1 if within else 3, 192 if within else 64, [np.zeros(64, np.uint32), np.zeros(1, np.uint32), out])
    except sim.SimulatorFault as fault:
        return [str(r) for r in fault.reports], atomics[-1], out
    return [], atomics[-1], out


@pytest.mark.parametrize("within", [False, True], ids=["workgroups", "waves"])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("arch", RSRC)
def test_only_what_returns_is_an_acquire(arch, space, within):
    for relay in (False, True):
        reports, _, out = run(arch, space, within, relay, sees=True)
        assert not reports, reports
        assert (out == np.arange(64) + 5).all()
        reports, text, _ = run(arch, space, within, relay, sees=False)
        assert len(reports) == 1, (relay, text, reports)
        assert "race" in reports[0]
