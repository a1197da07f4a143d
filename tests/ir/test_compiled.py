"""Random tile programs: compiled and run on the simulator with all checks, against the evaluator, bit for bit."""

from __future__ import annotations

from collections import Counter

import compiled
import irlib
import ml_dtypes
import numpy as np
import pytest
import randtile

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
# what the compiler says it does not have yet; anything else that it refuses is a fault
NOT_YET = ("is not lowered yet", "cannot be divided over")


def one(seed: int, device: object) -> str:
    """ "ok" or why the compiler refused."""
    g = randtile.Gen(seed)
    text, rng, dt = g.kernel(), np.random.default_rng(seed), DTYPES[g.elem]
    a, b = (rng.integers(-3, 4, (g.m, g.n)).astype(dt) for _ in range(2))
    start = np.full((g.m, g.n), 77).astype(dt)
    n, s = int(rng.integers(0, 4)), int(rng.integers(-3, 4))
    scalar = float(s) if g.work == "f32" else s
    want, got = start.copy(), start.copy()
    status, out = irlib.evaluate(text, [a, b, want, n, scalar], g.grid())
    assert status == irlib.OK, f"seed {seed}: {out}"
    try:
        compiled.run_compiled(text, [a, b, got, n, scalar], g.grid(), device)
    except compiled.CompileFault as e:
        why = next(x for x in NOT_YET if x in str(e)) if any(x in str(e) for x in NOT_YET) else ""
        assert why and "[UNSUPPORTED]" in str(e), f"seed {seed}: {e}\n{text}"
        return why
    bad = np.argwhere(want.astype(np.float64) != got.astype(np.float64))
    assert bad.size == 0, f"seed {seed}: {len(bad)} differ, first {bad[:3].tolist()}\n{text}"
    return "ok"


@pytest.mark.parametrize("block", range(6))
def test_compiled_is_evaluated(block: int):
    sim = pytest.importorskip("tilelang.sim")
    device = sim.Device("gfx942", checks="all")
    results = Counter(one(seed, device) for seed in range(block * 20, block * 20 + 20))
    assert results["ok"] >= 10, results
