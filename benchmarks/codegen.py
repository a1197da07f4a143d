"""Quality of the K loop of listing 1: executed instructions, spills, widths, prefetch distance, LDS conflicts.

Method: the kernel runs whole on the simulated gfx942, which counts every executed instruction; the K loop is the
backward branch with the most executed matrix instructions. "Other" leaves out matrix instructions, waits, nops and
priority. other_per_8192mac divides by the multiply-adds of the loop's matrix instructions (its turns are full blocks
of k). The peer's code object (Triton, same M x N tile, K block of at most 64) runs in the same simulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import ARCH, CASES, Case, TritonPeer, k_loop, listing1, loop_metrics, main, row, triton_peer

from tilelang import sim

METRICS = (
    ("other_per_8192mac", "instr"),
    ("loop_mfma", "instr"),
    ("loop_other", "instr"),
    ("loop_waits", "instr"),
    ("wide_global_share", "of bytes"),
    ("wide_lds_share", "of bytes"),
    ("prefetch_distance", "of a K step"),
)


def data(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(20260101)
    a = rng.integers(-3, 4, (case.m, case.k)).astype(np.float16)
    b = rng.integers(-3, 4, (case.k, case.n)).astype(np.float16)
    return a, b, a.astype(np.float64) @ b.astype(np.float64)


def execute(case: Case, hsaco: bytes, block: int, extra: list[Any], lds: int = 0) -> dict[str, Any]:
    """Runs a code object on the simulator, checks the product, returns statistics."""
    a, b, ref = data(case)
    dev = sim.Device(ARCH, checks="bounds")
    kern = next(iter(dev.load(hsaco).kernels.values()))
    da, db, dc = dev.array(a), dev.array(b), dev.array(np.full((case.m, case.n), np.nan, np.float16))
    grid = (-(-case.m // case.block), -(-case.n // case.block), 1)
    stats = kern.launch(grid, (block, 1, 1), [da, db, dc, *extra], lds_bytes=lds)
    out = dc.numpy(np.float16, (case.m, case.n))
    if not np.array_equal(out, ref.astype(np.float16)):
        raise SystemExit(f"{case.name}: wrong result")
    return stats | {"resources": kern.resources}


def peer_metrics(peer: TritonPeer, case: Case) -> dict[str, float]:
    warps = 8 if case.block >= 256 else 4
    c = peer.compile(case, warps, block_k=min(case.block, 64))
    ints = [np.int32(case.m), np.int32(case.n), np.int32(case.k)]
    s = execute(case, c.asm["hsaco"], warps * 64, [*ints, None, None], c.metadata.shared)
    m = loop_metrics(k_loop(s["by_pc"]))
    r = s["resources"]
    return m | {"vgprs": r.get("vgprs"), "lds_conflict_cycles": s["lds_conflict_cycles"]}


def run(args: Any) -> list[dict[str, Any]]:
    import tilelang as tl

    rows: list[dict[str, Any]] = []
    peer = None if args.no_peer else triton_peer()
    for name in ("listing1-64", "listing1-128", "listing1-128-ragged", "listing1-128-odd", "listing1-256"):
        case = CASES[name]
        a, b, _ = data(case)
        comp = tl.compile(listing1(case))
        comp.prepare(a, b, np.zeros((case.m, case.n), np.float16))
        res = comp.resources
        block = 64 * res["waves"]
        s = execute(case, comp.asm["hsaco"], int(block), [])
        if args.save:
            with open(f"{args.save}/{name}.hsaco", "wb") as f:
                f.write(comp.asm["hsaco"])
        ours = loop_metrics(k_loop(s["by_pc"]))
        theirs: dict[str, float] = {}
        if peer:
            try:
                theirs = peer_metrics(peer, case)
            except Exception as e:  # the peer's fault must not hide our figures
                print(f"# {name}: peer failed: {type(e).__name__}: {str(e)[:200]}", file=__import__("sys").stderr)
        pn = peer.name if peer else None
        rows.append(row(name, "tile", "", f"{case.block}x{case.block}x{case.block}"))
        rows.append(row(name, "waves", "", int(block) // 64))
        rows.append(row(name, "lds_bytes", "bytes", res.get("lds")))
        for metric, unit in METRICS:
            rows.append(row(name, metric, unit, ours.get(metric), theirs.get(metric), pn))
        rows.append(row(name, "vgprs", "", res.get("vgprs"), theirs.get("vgprs"), pn))
        rows.append(row(name, "spills", "", res.get("spills")))
        rows.append(row(name, "scratch_bytes", "bytes", res.get("scratch")))
        rows.append(
            row(name, "lds_conflict_cycles", "cycles", s["lds_conflict_cycles"], theirs.get("lds_conflict_cycles"), pn)
        )
    if peer:
        peer.close()
    return rows


def add(ap: Any) -> None:
    ap.add_argument("--no-peer", action="store_true")
    ap.add_argument("--save", help="folder for the code objects")


if __name__ == "__main__":
    main("codegen", __doc__ or "", run, add)
