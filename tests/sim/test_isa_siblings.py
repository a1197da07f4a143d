"""The outside vectors of gfx942 on gfx90a and gfx950: where bytes and text are the same, so is the result.

Left out: 8-bit floats (other formats on gfx950), and what those chips do otherwise (DIFFERENT)."""

from __future__ import annotations

import gzip
import json
import subprocess

import pytest
import simlib

vectors = pytest.importorskip("test_sim_vectors")

DIFFERENT: dict[str, set[str]] = {
    "gfx90a": {f"v_dot2{c}_f32_f16{e}" for c in ("", "c") for e in ("", "_e32", "_e64", "_dpp")},  # subnormal halves
    "gfx950": set(),
}
"""Mnemonics whose results differ between the chips."""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_same_instruction_same_result(arch, build):
    exe = build / "isadump"
    if not exe.exists():
        pytest.skip(f"{exe} is not built")
    if not vectors.sim._native.library().tlsim_arch_available(arch.encode()):
        pytest.skip(f"no instructions for {arch}")
    with gzip.open(simlib.SHARED / "oracle/vectors/vectors.gfx942.jsonl.gz", "rt") as f:
        rows = [json.loads(line) for line in f]
    lines = "\n".join(r["bytes"] for r in rows) + "\n"
    texts = [
        subprocess.run([exe, a], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        for a in ("gfx942", arch)
    ]
    wrong, seen = [], 0
    for r, mine, theirs in zip(rows, *texts, strict=True):
        if mine != theirs or "fp8" in r["op"] or "bf8" in r["op"] or r["op"] in DIFFERENT[arch]:
            continue
        if r["id"] in vectors.DISPUTED:
            continue
        seen += 1
        why = vectors.check({**r, "arch": arch})
        if why:
            wrong.append(f"{r['id']} {r['text']}: {why}")
    print(f"{arch}: {seen} of {len(rows)} vectors are the same instruction")
    assert seen > 2000
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])
