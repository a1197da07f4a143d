"""The outside instruction vectors, one instruction each, through tilelang.sim.execute."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

ARCHS = ("gfx942", "gfx1100", "gfx1201")
NO_MOVE = "the reference leaves out the lane move"
DISPUTED = {
    f"{ARCH}/{op}/{i}": NO_MOVE
    for ARCH, op, n in (
        ("gfx942", "v_cvt_f32_fp8_dpp", 2),
        ("gfx942", "v_dot2c_f32_f16_dpp", 2),
        ("gfx1100", "v_dot2acc_f32_f16_dpp", 3),
        ("gfx1201", "v_cvt_f32_bf8_dpp", 3),
        ("gfx1201", "v_cvt_f32_fp8_dpp", 2),
    )
    for i in range(n)
}
"""Vectors whose expected value contradicts the instruction's own text, and how; they must go on differing."""
FOLDER = simlib.SHARED / "oracle/vectors"
if not FOLDER.exists():
    pytest.skip(f"{FOLDER} is not there", allow_module_level=True)


def lanes(value: str) -> np.ndarray:
    return np.array([int(value[i : i + 8], 16) for i in range(0, len(value), 8)], np.uint32)


@np.errstate(invalid="ignore")
def as_float(bits: np.ndarray, kind: str) -> np.ndarray:
    if kind == "f32":
        return bits.view(np.float32).astype(np.float64)
    if kind == "f16":
        return (bits & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)
    if kind == "bf16":
        return ((bits & 0xFFFF) << 16).astype(np.uint32).view(np.float32).astype(np.float64)
    raise AssertionError(kind)


def ordered(bits: np.ndarray, width: int) -> np.ndarray:
    """Integers whose difference counts representable values between two floats."""
    b = bits.astype(np.int64)
    sign = 1 << (width - 1)
    return np.where(b & sign, sign - b, b)


def close(got: np.ndarray, want: np.ndarray, kind: str, width: int, tol: dict[str, Any]) -> np.ndarray:
    """Which values (bit patterns of `width` bits in uint64) are equal under the tolerance; any NaN equals any NaN."""
    if kind == "f64":
        g, w = got.view(np.float64), want.view(np.float64)
    else:
        g, w = as_float(got.astype(np.uint32), kind), as_float(want.astype(np.uint32), kind)
    ok = (got == want) | (np.isnan(g) & np.isnan(w))
    with np.errstate(all="ignore"):
        if "ulp" in tol:
            ok |= (np.abs(ordered(got, width) - ordered(want, width)) <= tol["ulp"]) & (
                np.isfinite(g) == np.isfinite(w)
            )
        if "abs" in tol:
            ok |= np.abs(g - w) <= tol["abs"]
        if "rel" in tol:
            ok |= np.abs(g - w) <= tol["rel"] * np.abs(w)
    return ok


def same(got: np.ndarray, want: np.ndarray, cmp: dict[str, Any] | None, high: tuple | None = None) -> np.ndarray:
    """Which lanes of a 32-bit register are equal under its comparison; `high` = the next register of a 64-bit value."""
    if not cmp:
        return got == want
    kind = cmp.get("type", "bits")
    mask = np.uint32(int(cmp["mask"], 16) if isinstance(cmp.get("mask"), str) else cmp.get("mask", 0xFFFFFFFF))
    if kind == "bits":
        return (got & mask) == (want & mask)
    if kind == "f64":
        assert high is not None
        g = got.astype(np.uint64) | high[0].astype(np.uint64) << np.uint64(32)
        w = want.astype(np.uint64) | high[1].astype(np.uint64) << np.uint64(32)
        return close(g, w, "f64", 64, cmp)
    if kind.startswith("2x"):
        if kind == "2xf32":
            return close(got.astype(np.uint64), want.astype(np.uint64), "f32", 32, cmp)
        parts, kind = (0, 16), kind[2:]
    else:
        parts = (cmp.get("shift", 0),)
    if kind == "f32":
        return close(got.astype(np.uint64), want.astype(np.uint64), "f32", 32, cmp)
    ok = np.ones(got.shape, bool)
    rest = np.uint32(0xFFFFFFFF)
    for shift in parts:
        rest &= np.uint32(~(0xFFFF << shift) & 0xFFFFFFFF)
        g, w = (got >> np.uint32(shift)) & 0xFFFF, (want >> np.uint32(shift)) & 0xFFFF
        ok &= close(g.astype(np.uint64), w.astype(np.uint64), kind, 16, cmp)
    return ok & ((got & rest & mask) == (want & rest & mask))


def check(v: dict[str, Any]) -> str | None:
    """None when the instruction does what the vector says, else what differs."""
    state = {**v["in"], "wave": v["wave"]}
    if "mode" in v:
        state["mode"] = v["mode"]
    try:
        out = sim.execute(v["arch"], bytes.fromhex(v["bytes"]), state)
    except sim.SimulatorFault as e:
        return str(e).splitlines()[0]
    cmps, want = v.get("cmp", {}), v["out"]
    active = int(v["in"]["exec"], 16)
    for key in ("exec", "vcc", "m0"):
        c = cmps.get(key, {})
        keep = active if c.get("type") == "active" else ~0
        if c.get("type") != "ignore" and key in want and (int(out[key], 16) ^ int(want[key], 16)) & keep:
            return f"{key} is {out[key]}, not {want[key]}"
    if "scc" in want and out["scc"] != want["scc"]:
        return f"scc is {out['scc']}, not {want['scc']}"
    for kind in ("s", "v"):
        expected = {**v["in"].get(kind, {}), **want.get(kind, {})}
        for num in out[kind]:
            if num not in expected:
                return f"{kind}{num} was written"
        f64_high = set()
        for num, value in expected.items():
            c = cmps.get(kind + num)
            if kind == "s" and not c and int(num) % 2:  # a mask of 64 lanes is compared as one register
                c = cmps.get(f"s{int(num) - 1}")
            if c and c.get("type") == "ignore" or num in f64_high:
                continue
            got, exp, high = lanes(out[kind][num]), lanes(value), None
            if c and c.get("type") == "f64":
                nxt = str(int(num) + 1)
                f64_high.add(nxt)
                high = lanes(out[kind][nxt]), lanes(expected[nxt])
            if kind == "s" and c and c.get("type") == "active":
                half = int(num) % 2 * 32
                exp = exp & np.uint32(active >> half & 0xFFFFFFFF)
                got = got & np.uint32(active >> half & 0xFFFFFFFF)
                c = None
            ok = same(got, exp, c, high)
            if not ok.all():
                i = int(np.flatnonzero(~ok)[0])
                return f"{kind}{num}[{i}] is {int(got[i]):08x}, not {int(exp[i]):08x}"
    lds = want.get("lds")
    if lds and out["lds"] != (v["in"]["lds"] if lds == "same" else lds):
        return "LDS differs"
    return None


@pytest.mark.parametrize("arch", ARCHS)
def test_all(arch):
    with gzip.open(FOLDER / f"vectors.{arch}.jsonl.gz", "rt") as f:
        vectors = [json.loads(line) for line in f]
    disputed = {i for i in DISPUTED if i.startswith(f"{arch}/")}
    wrong = [(v["id"], v["text"], why) for v in vectors if (why := check(v))]
    assert disputed <= {i for i, _, _ in wrong}
    wrong = [w for w in wrong if w[0] not in disputed]
    by_op = Counter(v["op"] for v in vectors)
    bad_ops = {text.split()[0] for _, text, _ in wrong}
    right = len(vectors) - len(wrong) - len(disputed)
    print(f"{arch}: {right} of {len(vectors)} vectors right, {len(disputed)} disputed, {len(by_op)} mnemonics")
    assert not wrong, f"{len(wrong)} wrong ({len(bad_ops)} mnemonics):\n" + "\n".join(
        f"{i} {t}: {w}" for i, t, w in wrong[:40]
    )


def digest(arch: str) -> str:
    """Of every bit that every fifth vector of the vector instructions leaves behind."""
    h = hashlib.sha256()
    with gzip.open(FOLDER / f"vectors.{arch}.jsonl.gz", "rt") as f:
        for v in [json.loads(line) for line in f if '"op": "v_' in line or '"op":"v_' in line][::5]:
            state = {**v["in"], "wave": v["wave"], **({"mode": v["mode"]} if "mode" in v else {})}
            h.update(repr(sim.execute(v["arch"], bytes.fromhex(v["bytes"]), state)).encode())
    return h.hexdigest()


def test_same_bits_on_every_host_level():
    """Baseline, AVX2 and AVX-512 builds of the operations agree to the bit (levels that the host lacks fall back)."""
    code = f"import test_sim_vectors as t; print(*map(t.digest, {ARCHS!r}))"
    seen = {}
    for level in ("base", "avx2", "avx512"):
        env = {**os.environ, "TILELANG_SIM_HOST": level,
               "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}  # fmt: skip
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        seen[level] = run.stdout.split()
        assert len(seen[level]) == len(ARCHS)
    assert seen["base"] == seen["avx2"] == seen["avx512"], seen
