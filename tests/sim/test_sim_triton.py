"""Triton's own launcher, unchanged, on the simulated GPU: a client that nobody here wrote."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from simlib import client_env, missing

sim = pytest.importorskip("tilelang.sim")

if not importlib.util.find_spec("triton") or not importlib.util.find_spec("torch"):
    missing("triton or torch")

CLIENT = Path(__file__).with_name("triton_client.py")
TOLERANCE = {
    "add": 0.0,
    "softmax": 1e-6,
    "layer_norm": 1e-5,
    "matmul": 0.0,
    "attention": 2e-3,
    "scan_sort": 0.0,
    "lock": 0.0,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(*cases, **environment) -> (what the client tells, its standard output, its standard error)."""
    base = {
        "TRITON_LIBHIP_PATH": str(Path(sim.libdir()) / "libamdhip64.so"),
        "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton")),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }

    def run(*cases: str, **env: str):
        cmd = [sys.executable, str(CLIENT), *cases]
        r = subprocess.run(cmd, capture_output=True, text=True, env=client_env(**base, **env), timeout=600)
        assert r.returncode == 0, r.stderr[-3000:]
        lines = r.stdout.strip().splitlines()
        return json.loads(lines[-1]), lines[:-1], r.stderr

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch, checks",
    [("gfx942", "bounds"), ("gfx942", "all"), ("gfx1100", "all"), ("gfx1201", "all")],
)
def test_kernels(run, arch, checks):
    out, _, err = run(*TOLERANCE, TILELANG_SIM_CHECK=checks, TILELANG_SIM_DEVICES=arch)
    print(out)
    assert out["sync"] == 0 and "tilelang simulator" not in err, err[-3000:]
    assert out["launches"] == len(TOLERANCE) and out["instructions"] > 1000
    for name, tol in TOLERANCE.items():
        assert out[name] <= tol, (name, out[name])


@pytest.mark.slow
def test_device_print(run):
    """Triton's device_print goes through the hostcall printf of the device library."""
    out, lines, err = run("prints", TILELANG_SIM_CHECK="all")
    assert out["sync"] == 0 and out["launches"] == 1 and "tilelang simulator" not in err, err[-3000:]
    values = sorted(int(line.split("value")[1].split()[-1]) for line in lines if "value" in line)
    assert values == list(range(7, 71))


@pytest.mark.slow
def test_reports_name_the_line(run, tmp_path):
    """A store that leads nowhere: the error is asynchronous, the report has the line of the Triton source."""
    report = tmp_path / "report.jsonl"
    out, _, err = run("wild", TILELANG_SIM_REPORT=str(report))
    source = CLIENT.read_text().splitlines()
    line = next(i for i, text in enumerate(source, 1) if "the line that reports name" in text)
    (r,) = [json.loads(text) for text in report.read_text().splitlines()]
    assert out["sync"] == 700 and r["check"] == "bounds" and r["kernel"] == "wild_kernel"
    assert r["line"].endswith(f"{CLIENT.name}:{line}") and f"{CLIENT.name}:{line}" in err
