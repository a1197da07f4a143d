"""Loads, stores and atomics one by one in a kernel: what test_isa_memory and test_isa_memory_rdna share. Every lane has
a slot of 32 bytes in `data` (v[2:3]), and for each case in `out` (v[4:5]) and `mem` (v[6:7])."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SLOT = 32
OLD = 0x0A0B0C00  # before a load: OLD + k in v10 + k


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


def f32(x: int) -> float:
    return struct.unpack("<f", struct.pack("<I", x))[0]


@dataclass
class Case:
    """One instruction in a kernel: text, and how out and mem change."""

    text: str
    kind: str  # load, store, atomic
    what: str
    ret: bool = False


@dataclass(frozen=True)
class Chip:
    """How a chip says it: a wait for everything, a case's set-up, the step to the next, accesses of 4, 8, 16 bytes."""

    wait: str
    here: str
    following: str
    sizes: tuple[str, str, str]


@dataclass(frozen=True)
class Rules:
    """suffix -> (bytes, signed, half), (bytes, first byte of the data), (bytes, (memory, data, data) -> memory)."""

    loads: dict[str, tuple[int, bool, int | None]]
    stores: dict[str, tuple[int, int]]
    atomic: Callable[[str], tuple[int, Callable[[int, int, int], int]]]
    halves_clear: bool  # a load into one half clears the other


def value(data: np.ndarray, lane: int, at: int, n: int) -> int:
    start = lane * SLOT + at
    return int.from_bytes(data[start : start + n].tobytes(), "little")


def regs(first: int, nbytes: int) -> str:
    n = max(1, nbytes // 4)
    return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"


def dwords(rng: np.random.Generator, n: int) -> np.ndarray:
    """n bytes whose dwords are ordinary numbers as f32, f64, two f16 and two bf16."""
    k = n // 4
    high = (rng.integers(0x3C00, 0x4300, k) | rng.integers(0, 2, k) << 15).astype(np.uint32)
    low = (rng.integers(0x3800, 0x3C00, k) | rng.integers(0, 2, k) << 15).astype(np.uint32)
    return (high << np.uint32(16) | low).view(np.uint8)


def code_of(c: Case, fam: str, chip: Chip) -> str:
    """The case between its set-up and what shows its result."""
    (b4, b8, b16), w = chip.sizes, chip.wait
    take, give = (f"global_{what}\n{w}" for what in (f"load_{b16} v[10:13], v[2:3], off",
                                                     f"store_{b16} v[4:5], v[10:13], off"))  # fmt: skip
    text = chip.here
    if c.kind == "load":
        if fam == "scratch":  # the slot's first 20 bytes into scratch
            text += take + f"scratch_store_{b16} v1, v[10:13], off\nglobal_load_{b4} v10, v[2:3], off offset:16\n" + w
            text += f"scratch_store_{b4} v1, v10, off offset:16\n" + w
        text += "".join(f"v_mov_b32 v{10 + k}, 0x{OLD + k:x}\n" for k in range(4)) + c.text + "\n" + w + give
    elif c.kind == "store" and fam == "scratch":
        text += "".join(f"v_mov_b32 v{10 + k}, -1\n" for k in range(4))
        text += "".join(f"scratch_store_{b16} v1, v[10:13], off{at}\n" for at in ("", " offset:16")) + w
        text += take + c.text + "\n" + w + f"scratch_load_{b16} v[10:13], v1, off\n" + w + give
        text += f"scratch_load_{b16} v[10:13], v1, off offset:16\n" + w
        text += f"global_store_{b16} v[4:5], v[10:13], off offset:16\n" + w
    elif c.kind == "store":
        text += take + c.text + "\n" + w
    else:
        back = 10 if fam == "buffer" else 14
        text += "v_mov_b32 v14, 0\nv_mov_b32 v15, 0\n" + take + c.text + "\n" + w
        if c.ret:
            text += f"global_store_{b8} v[4:5], v[{back}:{back + 1}], off\n" + w
    return text + chip.following


def put(to: np.ndarray, at: int, x: int, n: int) -> None:
    """The low n bytes of a number."""
    to[at : at + n] = np.frombuffer((x & ((1 << 8 * n) - 1)).to_bytes(n, "little"), np.uint8)


def expect(c: Case, fam: str, lanes: int, rules: Rules, data: np.ndarray, out: np.ndarray, mem: np.ndarray) -> None:
    """What the case leaves in its regions of out and mem."""
    for lane in range(lanes):
        at = lane * SLOT
        if c.kind == "load":
            n, sign, half = rules.loads[c.what]
            for k in range(4):
                put(out, at + 4 * k, OLD + k, 4)
            x = value(data, lane, 4, n)
            x = signed(x, 8 * n) if sign else x
            if half is not None and rules.halves_clear:
                put(out, at, 0, 4)
            put(out, at + 2 * (half or 0), x, max(4, n) if half is None else 2)
        elif c.kind == "store":
            n, first = rules.stores[c.what]
            if fam == "scratch":
                put(out, at, (1 << 256) - 1, 32)
            put(out, at + 4, value(data, lane, first, n), n)
        else:
            n, f = rules.atomic(c.what)
            old = value(mem, lane, 8, n)
            put(mem, at + 8, f(old, value(data, lane, 0, n), value(data, lane, n, n)), n)
            if c.ret:
                high = value(data, lane, 4, 4) if fam == "buffer" and n == 4 else 0
                put(out, at, old | high << 32 if n == 4 else old, 8)


def compare(
    name: str, cases: list[Case], fam: str, lanes: int, rules: Rules,
    data: np.ndarray, before: tuple[np.ndarray, np.ndarray], got: tuple[np.ndarray, np.ndarray],
) -> int:  # fmt: skip
    """Asserts that (out, mem) are what the cases leave; returns how many there are."""
    size = SLOT * lanes
    for i, c in enumerate(cases):
        a, b = i * size, (i + 1) * size
        want_out, want_mem = (x[a:b].copy() for x in before)
        expect(c, fam, lanes, rules, data, want_out, want_mem)
        assert np.array_equal(got[1][a:b], want_mem), f"{name}: {c.text}: memory"
        bad = np.flatnonzero(got[0][a:b] != want_out)
        assert not bad.size, (
            f"{name}: {c.text}: byte {bad[0] % SLOT} of lane {bad[0] // SLOT} is "
            f"{got[0][a + bad[0]]:02x}, not {want_out[bad[0]]:02x}"
        )
    return len(cases)
