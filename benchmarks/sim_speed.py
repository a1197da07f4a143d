"""Speed of the simulator: listing1-128 (f16, 1024^3) over torch's float32 matmul of the same size.

Method: same run, same number of threads for both; repetitions interleaved; medians. allchecks: every check that the
simulator has (named in the row all_checks).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from codegen import data
from common import ARCH, CASES, listing1, main, median, row

from tilelang import sim


def run(args: Any) -> list[dict[str, Any]]:
    import torch

    import tilelang as tl

    torch.set_num_threads(args.threads)
    case = CASES["listing1-128"]
    a, b, ref = data(case)
    comp = tl.compile(listing1(case))
    comp.prepare(a, b, np.zeros((case.m, case.n), np.float16))
    block = 64 * comp.resources["waves"]
    hsaco = comp.asm["hsaco"]
    ta, tb = torch.from_numpy(a.astype(np.float32)), torch.from_numpy(b.astype(np.float32))
    kernels = {}
    devs = {}
    for checks in ("none", "all"):
        dev = devs[checks] = sim.Device(ARCH, checks=checks, threads=args.threads)
        k = next(iter(dev.load(hsaco).kernels.values()))
        kernels[checks] = (k, dev.array(a), dev.array(b), dev.array(np.zeros((case.m, case.n), np.float16)))
    times: dict[str, list[float]] = {"torch": [], "none": [], "all": []}
    for turn in range(args.repeat + 1):
        t0 = time.perf_counter()
        for _ in range(5):
            torch.mm(ta, tb)
        dt = {"torch": (time.perf_counter() - t0) / 5}
        for checks, (k, da, db, dc) in kernels.items():
            t0 = time.perf_counter()
            k.launch((8, 8, 1), (block, 1, 1), [da, db, dc])
            dt[checks] = time.perf_counter() - t0
            if not np.array_equal(dc.numpy(np.float16, ref.shape), ref.astype(np.float16)):
                raise SystemExit("wrong result")
        if turn:
            for key, v in dt.items():
                times[key].append(v)
    t = median(times["torch"])
    case_name = "gemm-1024-f16"
    names = getattr(devs["all"], "checks", None) or getattr(sim, "CHECKS", "all")
    return [
        row(case_name, "torch_f32_ms", "ms", None, t * 1e3, f"torch {torch.__version__} f32 matmul"),
        row(case_name, "nochecks_ms", "ms", median(times["none"]) * 1e3),
        row(case_name, "allchecks_ms", "ms", median(times["all"]) * 1e3),
        row(case_name, "nochecks_x", "x", median(times["none"]) / t),
        row(case_name, "allchecks_x", "x", median(times["all"]) / t),
        row(case_name, "threads", "", args.threads),
        row(case_name, "all_checks", "", str(names)),
    ]


def add(ap: Any) -> None:
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--repeat", type=int, default=7)


if __name__ == "__main__":
    main("sim_speed", __doc__ or "", run, add)
