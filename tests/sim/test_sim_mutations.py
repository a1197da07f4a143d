"""Each wait and barrier of compiled listing 1 is needed: replaced by s_nop in turn, every one is reported (or the list
says why that one is redundant); the original is clean under all checks."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")
tl = pytest.importorskip("tilelang")
pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
S_NOP = 0xBF800000
REDUNDANT: dict[tuple[int, str], str] = {}
"""(block size, "index of the wait or barrier in the kernel: text") -> why leaving it out changes nothing."""


def compiled(block: int, tmp_path: Path) -> bytes:
    """Code object of listing 1 at that block size (1024^3, float16), prepared without running it."""
    import importlib.util
    import sys

    import torch

    text = (ROOT / "examples/listing1_matmul.py").read_text()
    text, n = re.subn(r"^block_size = \d+", f"block_size = {block}", text, flags=re.M)
    assert n == 1
    path = tmp_path / f"listing1_{block}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    t = [torch.zeros(1024, 1024, dtype=torch.float16) for _ in range(3)]
    module.compiled_kernel.prepare(*t)
    return module.compiled_kernel.asm["hsaco"]


def entry_offset(code: bytes, symbol: str) -> int:
    """Where the kernel's first instruction is in the file."""
    shoff, phoff = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<Q", code, 32)[0]
    phnum, _, shnum = struct.unpack_from("<HHH", code, 56)
    heads = [struct.unpack_from("<IIQQQQIIQQ", code, shoff + 64 * i) for i in range(shnum)]
    for h in heads:
        if h[1] not in (2, 11):
            continue
        names = heads[h[6]]
        for at in range(h[4], h[4] + h[5], 24):
            name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", code, at)
            start = names[4] + name
            if code[start : code.index(b"\0", start)].decode() != symbol:
                continue
            for i in range(phnum):
                kind, _, off, vaddr, _, filesz, _, _ = struct.unpack_from("<IIQQQQQQ", code, phoff + 56 * i)
                if kind == 1 and vaddr <= value < vaddr + filesz:
                    return value - vaddr + off
    raise AssertionError(f"no symbol {symbol}")


class Listing:
    """Listing 1 on two workgroups of its grid."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.dev = sim.Device("gfx942", checks="all", threads=1)
        rng = np.random.default_rng(3)
        self.a = rng.integers(-3, 4, (1024, 1024)).astype(np.float16)
        self.b = rng.integers(-3, 4, (1024, 1024)).astype(np.float16)
        self.mem = [self.dev.array(self.a), self.dev.array(self.b)]
        self.name = next(iter(self.dev.load(code).kernels))
        self.at = entry_offset(code, self.name)

    def run(self, code: bytes, out: np.ndarray | None = None) -> dict:
        module = self.dev.load(code)
        kernel = module.kernels[self.name]
        c = self.dev.empty(2 * 1024 * 1024)
        try:
            stats = kernel.launch((2, 1, 1), (kernel.resources["max_threads"],), [*self.mem, c])
            if out is not None:
                out[...] = c.numpy(np.float16, (1024, 1024))
            return stats
        finally:
            c.free()
            module.unload()


@pytest.mark.parametrize("block", [64, 128])
def test_every_wait_and_barrier(block, tmp_path):
    there = set(sim.Device(checks="all").checks)
    if not {"race", "wait"} <= there:
        pytest.skip(f"needs the checks race and wait; there are {sorted(there)}")
    listing = Listing(compiled(block, tmp_path))
    out = np.zeros((1024, 1024), np.float16)
    listing.run(listing.code, out)  # a report raises
    want = listing.a[: 2 * block].astype(np.float32) @ listing.b[:, :block].astype(np.float32)
    assert (out[: 2 * block, :block].astype(np.float32) == want).all()

    module = listing.dev.load(listing.code)
    rows = module.kernels[listing.name].disassembly()
    sites = [(pc, text) for pc, text, _ in rows if re.match(r"s_(barrier|waitcnt)\b", text)]
    reported, silent, by_check = 0, [], {}
    for i, (pc, text) in enumerate(sites):
        mutant = bytearray(listing.code)
        struct.pack_into("<I", mutant, listing.at + pc, S_NOP)
        try:
            listing.run(bytes(mutant))
        except sim.SimulatorFault as e:
            reported += 1
            for check in {r.check for r in e.reports}:
                by_check[check] = by_check.get(check, 0) + 1
        else:
            silent.append((block, f"{i}: {text}"))
    print(f"block {block}: {reported} of {len(sites)} reported {by_check}, silent: {silent}")
    assert any("s_barrier" in t for _, t in sites) and any("s_waitcnt" in t for _, t in sites)
    unexplained = [s for s in silent if s not in REDUNDANT]
    assert not unexplained, unexplained
    stale = [k for k in REDUNDANT if k[0] == block and k not in silent]
    assert not stale, f"no longer redundant: {stale}"
