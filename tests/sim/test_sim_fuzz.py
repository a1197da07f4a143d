"""Hostile input: the decoder, what reads files, and the execution core on a kept corpus and on mutations of it. Nothing
may crash, read past its input (seen in the sanitized build) or fail without a reason."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parent / "corpus"
RUNS = {
    "simfuzz": {"decode": 40_000, "load": 10_000, "meta": 20_000, "lines": 40_000, "bundle": 5_000},
    "simfuzz_run": {"exec": 5_000, "launch": 2_000},
}
"""Mutations by tool and target."""


def count(data: bytes) -> int:
    """Inputs in a file of the corpus: one, or those of a pack (tools/fuzz_keep.py)."""
    if not data.startswith(b"FUZZPACK"):
        return 1
    n, at = 0, 8
    while at < len(data):
        at += 2 + int.from_bytes(data[at : at + 2], "little")
        n += 1
    assert at == len(data), "the pack is torn"
    return n


@pytest.mark.parametrize(("tool", "target"), [(tool, target) for tool in RUNS for target in RUNS[tool]])
def test_corpus_and_mutations(tool, target, build, tmp_path):
    """TILELANG_FUZZ_RUNS sets another number of mutations."""
    exe = build / tool
    if not exe.exists():
        pytest.skip(f"{exe} is not built")
    runs = int(os.environ.get("TILELANG_FUZZ_RUNS", RUNS[tool][target]))
    files = sorted((CORPUS / target).iterdir())
    inputs = sum(count(p.read_bytes()) for p in files)
    assert files and inputs >= len(files)
    seed = 20251
    kept = tmp_path / "input"
    cmd = [exe, target, str(runs), str(seed), *files]
    p = subprocess.run(cmd, capture_output=True, text=True)
    if p.returncode:  # again, keeping each input before it runs
        subprocess.run(cmd, capture_output=True, env={**os.environ, "SIMFUZZ_KEEP": str(kept)})
        data = kept.read_bytes().hex() if kept.exists() else "(did not fail again)"
        raise AssertionError(f"seed {seed}, status {p.returncode}\n{p.stderr[-2000:]}\ninput {data}")
    accepted, _, total = p.stdout.split()[:3]
    print(f"seed {seed}: {p.stdout.strip()}")
    assert int(total) == runs + inputs and 0 < int(accepted) < int(total)


def test_words_that_crash_llvm_are_in_the_corpus():
    """The words on which LLVM's disassembler dies (gfx9): ours answers, as the run above shows."""
    data = (CORPUS / "decode/llvm-crash.gfx942").read_bytes()
    assert data[0] == 1 and (len(data) - 1) % 4 == 0 and bytes.fromhex("f9dabe5b02101712") in data
