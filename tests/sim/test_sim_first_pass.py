"""Kernels of vector instructions first run without a thought of NaNs and again with all of it where a result is one: a
NaN in one lane must not change what the others get. Subnormals, zeros of both signs, infinities, ties among the
sources; all modes; the levels of the host."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode, hexrow  # noqa: E402

OPS = {
    "gfx942": [
        "v_ldexp_f32 v3, v4, v7",
        "v_div_fmas_f32 v3, v4, v5, v6",
        "v_fma_f32 v3, v4, v5, v6",
        "v_min_f32 v3, v4, v5",
        "v_max_f32 v3, -v4, |v5|",
        "v_min3_f32 v3, v4, v5, v6",
        "v_max3_f32 v3, v4, v5, v6",
        "v_med3_f32 v3, v4, v5, v6",
        "v_med3_f32 v3, -v4, |v5|, 1.0",
        "v_sqrt_f32 v3, v4",
        "v_exp_f32 v3, v4",
        "v_min_f16 v3, v4, v5",
        "v_max3_f16 v3, v4, v5, v6",
        "v_med3_f16 v3, v4, v5, v6",
        "v_fma_f16 v3, v4, v5, v6",
        "v_pk_min_f16 v3, v4, v5",
        "v_pk_max_f16 v3, v4, v5",
        "v_pk_add_f16 v3, v4, v5",
        "v_pk_mul_f16 v3, v4, v5",
        "v_pk_fma_f16 v3, v4, v5, v6",
        "v_pk_add_f32 v[2:3], v[4:5], v[6:7]",
        "v_pk_mul_f32 v[2:3], v[4:5], v[6:7]",
        "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9]",
        "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9] op_sel:[1,0,0] neg_lo:[0,1,0]",
    ],
    "gfx1201": [
        "v_min_num_f32 v3, v4, v5",
        "v_med3_num_f32 v3, v4, v5, v6",
        "v_maximumminimum_f32 v3, v4, v5, v6",
        "v_minmax_num_f16 v3, v4, v5, v6",
        "v_pk_min_num_f16 v3, v4, v5",
        "v_pk_maximum_f16 v3, v4, v5",
        "v_pk_fma_f16 v3, v4, v5, v6",
    ],
}
SPECIAL = np.array(
    [0, 0x80000000, 1, 0x807FFFFF, 0x800000, 0x7F800000, 0xFF800000, 0x3F800000, 0x7F7FFFFF]
    + [0x7C00FC00, 0x00018001, 0x03FF0400, 0x7BFFFBFF, 0x3C003C00, 0x80000000, 0x00008000],
    np.uint32,
)
NAN = 0x7FC07E01  # as an f32 and in both halves


def rows(rng: np.random.Generator, lanes: int, kind: int) -> np.ndarray:
    """Bits that are no NaN, neither as f32 nor as halves; in most turns no infinity either: their sums are NaNs."""
    r = rng.integers(0, 1 << 32, lanes, dtype=np.uint64).astype(np.uint32)
    if kind == 1:
        r = r & np.uint32(0x807FFFFF) | rng.integers(100, 150, lanes).astype(np.uint32) << 23
    r = np.where(rng.random(lanes) < 0.4, SPECIAL[rng.integers(0, len(SPECIAL), lanes)], r)
    f32 = (r & 0x7FFFFFFF) > 0x7F800000
    halves = ((r & 0x7FFF) > 0x7C00) | ((r >> 16 & 0x7FFF) > 0x7C00)
    bad = f32 | (halves & (r != 0x7F7FFFFF))
    if kind:
        bad |= ((r & 0x7F800000) == 0x7F800000) | ((r & 0x7C00) == 0x7C00) | ((r & 0x7C000000) == 0x7C000000)
    return np.where(bad, np.uint32(0x3C003555), r)


def modes(rng: random.Random) -> dict[str, int]:
    keys = {"fp32_denorm": 4, "fp16_64_denorm": 4, "fp32_round": 4, "fp16_64_round": 4}
    return {k: rng.randrange(n) for k, n in keys.items()} if rng.random() < 0.5 else {}


@pytest.mark.parametrize("arch, op", [(a, op) for a, ops in OPS.items() for op in ops])
def test_a_nan_elsewhere_changes_nothing(arch: str, op: str) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng, pick = np.random.default_rng(seed), random.Random(seed)
    lanes = 64 if arch == "gfx942" else 32
    (code,) = encode(arch, [op])
    assert code, f"{arch} has no {op}"
    for turn in range(24):
        v = {k: rows(rng, lanes, turn % 4) for k in range(2, 10)}
        v[7] = v[7] if "pk" in op else rng.integers(-200, 200, lanes).astype(np.int32).view(np.uint32)
        vcc = f"{pick.getrandbits(lanes):x}"
        mode = modes(pick)
        got = []
        for nan in (False, True):
            w = {k: x.copy() for k, x in v.items()}
            if nan:
                for k in (4, 5, 6, 8, 9):
                    w[k][lanes - 1] = NAN
            state: dict[str, Any] = {"exec": "f" * (lanes // 4), "vcc": vcc, "scc": 0, "m0": "0", "wave": lanes}
            state |= {"s": {}, "v": {str(k): hexrow(x) for k, x in w.items()}} | ({"mode": mode} if mode else {})
            out = sim.execute(arch, code, state)["v"]
            got.append({k: out[k][: 8 * (lanes - 1)] for k in out if k in ("2", "3")})
        assert got[0] and got[0] == got[1], (mode, {k: hexrow(x) for k, x in v.items()})
