"""Triton's own launcher, unchanged, on the simulated GPU: a client that nobody here wrote."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from simlib import client_env

sim = pytest.importorskip("tilelang.sim")

if not importlib.util.find_spec("triton") or not importlib.util.find_spec("torch"):
    pytest.skip("triton or torch is not installed", allow_module_level=True)

TOLERANCE = {"add": 0.0, "softmax": 1e-6, "layer_norm": 1e-5, "matmul": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch, checks",
    [("gfx942", "bounds"), ("gfx942", "all"), ("gfx1100", "all"), ("gfx1201", "bounds,init,race,wait,barrier")],
)
def test_kernels(tmp_path_factory, arch, checks):
    env = client_env()
    env |= {
        "TRITON_LIBHIP_PATH": str(Path(sim.libdir()) / "libamdhip64.so"),
        "TRITON_CACHE_DIR": str(tmp_path_factory.getbasetemp() / "triton"),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "TILELANG_SIM_CHECK": checks,
        "TILELANG_SIM_DEVICES": arch,
    }
    cmd = [sys.executable, str(Path(__file__).with_name("triton_client.py")), *TOLERANCE]
    r = subprocess.run(cmd, capture_output=True, text=True, env=env)
    assert r.returncode == 0, r.stderr[-3000:]
    out = json.loads(r.stdout.strip().splitlines()[-1])
    print(out)
    assert out["sync"] == 0 and "tilelang simulator" not in r.stderr, r.stderr[-3000:]
    assert out["launches"] == len(TOLERANCE) and out["instructions"] > 1000
    for name, tol in TOLERANCE.items():
        assert out[name] <= tol, (name, out[name])
