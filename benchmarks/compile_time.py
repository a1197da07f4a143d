"""Cold compile time of listing 1 against Triton's same tile.

Method: ours and the peer's repetitions are interleaved in one run. Ours: a fresh Kernel object with one changed
constant each time (nothing remembered between them), from the start of tracing to the loaded module. Peer:
triton.compile of the same tile with an empty cache each time (masked where the sizes need it), to its code object.
Medians. first_compile_ms: the first compile of a fresh process, from a warm import.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
from common import CASES, ROOT, Case, listing1, main, median, row, triton_peer


def once(case: Case, turn: int) -> tuple[float, dict[str, float]]:
    """One cold compile in ms; `turn` makes a constant of the kernel differ."""
    import tilelang as tl

    kern = listing1(case, float(turn))
    a = np.zeros((case.m, case.k), np.float16)
    b = np.zeros((case.k, case.n), np.float16)
    c = np.zeros((case.m, case.n), np.float16)
    t0 = time.perf_counter()
    compiled = tl.compile(kern)
    compiled.prepare(a, b, c)
    ms = (time.perf_counter() - t0) * 1e3
    return ms, dict(compiled.times)


FIRST = """
import sys, time
sys.path[:0] = [{bench!r}, {root!r}]
import numpy as np, tilelang as tl
from common import CASES
from compile_time import once
print(once(CASES[{case!r}], 1)[0])
"""


def first_compile(case: Case) -> float:
    code = FIRST.format(bench=str(ROOT / "benchmarks"), root=str(ROOT), case=case.name)
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    return float(out.stdout)


def run(args: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    peer = None if args.no_peer else triton_peer()
    for name in ("listing1-64", "listing1-128", "listing1-128-ragged"):
        case = CASES[name]
        once(case, 0)
        if peer:
            peer.compile(case, 4)
        ours: list[float] = []
        theirs: list[float] = []
        phases: dict[str, list[float]] = {}
        c = None
        for turn in range(1, args.repeat + 1):
            ms, times = once(case, turn)
            ours.append(ms)
            for k, v in times.items():
                phases.setdefault(k, []).append(v)
            if peer and turn <= max(3, args.repeat * args.peer_share // 100):
                t0 = time.perf_counter()
                c = peer.compile(case, 4)
                theirs.append((time.perf_counter() - t0) * 1e3)
        pm = median(theirs) if theirs else None
        pn = peer.name if peer else None
        rows.append(row(name, "cold_compile_ms", "ms", median(ours), pm, pn))
        if pm is not None:
            rows.append(row(name, "cold_compile_ratio", "x", pm / median(ours)))
        for k, v in phases.items():
            rows.append(row(name, f"phase_{k}_ms", "ms", median(v)))
        rows.append(row(name, "first_compile_ms", "ms", median([first_compile(case) for _ in range(3)])))
        if c is not None:
            asm = c.asm["amdgcn"]
            vg = next((ln.split(":")[1].strip() for ln in asm.splitlines() if ".vgpr_count:" in ln), None)
            rows.append(row(name, "peer_vgprs", "", None, int(vg) if vg else None, pn))
            rows.append(row(name, "peer_mfma", "", None, asm.count("v_mfma"), pn))
    if peer:
        peer.close()
    return rows


def add(ap: Any) -> None:
    ap.add_argument("--repeat", type=int, default=20, help="repetitions of ours (default 20)")
    ap.add_argument("--peer-share", type=int, default=100, help="peer repetitions, percent of ours")
    ap.add_argument("--no-peer", action="store_true")


if __name__ == "__main__":
    main("compile_time", __doc__ or "", run, add)
