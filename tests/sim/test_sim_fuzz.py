"""Broken programs end in a report or run to their end: mutated instructions never crash the simulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tilelang.sim")

FUZZ = """
import json, random, struct, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import simlib
from tilelang import sim

seed, n, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[4])
rng = random.Random(seed)
devices = [sim.Device("gfx942", checks=c, threads=1, max_instructions=3000) for c in ("none", "bounds", "all")]
kernels = [json.loads(p.read_text()) for p in sorted(folder.glob("*.gfx942.json"))]
out = Path(sys.argv[5]) / "mutant.hsaco"
clean = faults = 0
for _ in range(n):
    k = rng.choice(kernels)
    data = bytearray((folder / k["hsaco"]).read_bytes())
    text = simlib.sections(bytes(data))[".text"]
    start = bytes(data).index(text)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = start + 4 * rng.randrange(min(len(text), 2048) // 4)
        kind = rng.random()
        if kind < 0.4:
            data[at + rng.randrange(4)] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            struct.pack_into("<I", data, at, rng.getrandbits(32))
        else:
            src = start + 4 * rng.randrange(min(len(text), 2048) // 4)
            data[at : at + 4] = data[src : src + 4]
    out.write_bytes(data)
    run = simlib.run_oracle(rng.choice(devices), {**k, "grid": [1, 1, 1]}, out)
    if run.fault:
        assert run.fault.reports and str(run.fault)
        faults += 1
    else:
        clean += 1
print(clean, faults)
"""


def test_mutated_programs(shared, tmp_path):
    seed, n = 977, 600
    print(f"seed {seed}, {n} programs")
    here = Path(__file__).resolve().parent
    cmd = [sys.executable, "-c", FUZZ, str(seed), str(n), str(here), str(shared / "oracle/kernels"), str(tmp_path)]
    r = subprocess.run(cmd, capture_output=True, text=True, cwd=here.parents[1])
    assert r.returncode == 0, r.stderr[-3000:]
    clean, faults = map(int, r.stdout.split())
    print(f"{clean} ran to their end, {faults} were reported")
    assert clean + faults == n and faults > n // 10
