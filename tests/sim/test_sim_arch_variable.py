"""TILELANG_SIM_ARCH names the chip that runs kernels on CPU memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from simlib import client_env

pytest.importorskip("tilelang._llvm")

PROGRAM = """
import numpy as np
import tilelang as tl

N = tl.dims("N")


@tl.kernel
def add1(X: tl.Buffer[N], Y: tl.Buffer[N]):
    p = tl.program_id(0)
    Y[p * 64 : (p + 1) * 64] = X[p * 64 : (p + 1) * 64] + 1


y = np.zeros(100, np.float32)
add1(np.ones(100, np.float32), y)
print(int(y.sum()))
"""


@pytest.mark.parametrize("name, chip", [("ARCH", "gfx950"), ("ARCH", "gfx90a"), ("DEVICES", "gfx950"), ("ARCH", "")])
def test_chip(tmp_path, name, chip):
    (tmp_path / "p.py").write_text(PROGRAM)
    env = client_env(TILELANG_SIM_COVERAGE=str(tmp_path / "ran"), PYTHONPATH=str(Path(__file__).resolve().parents[2]))
    env[f"TILELANG_SIM_{name}"] = chip
    r = subprocess.run([sys.executable, tmp_path / "p.py"], capture_output=True, text=True, env=env)
    assert r.returncode == 0 and r.stdout == "200\n", r.stderr
    assert {line.split("\t")[0] for line in (tmp_path / "ran").read_text().splitlines()} == {chip or "gfx942"}


@pytest.mark.parametrize("name, value", [("ARCH", "gfx000"), ("DEVICES", "gfx000"), ("DEVICES", ",")])
def test_no_such_chip(tmp_path, name, value):
    """The error names the variable, what it holds, and the chips that there are."""
    (tmp_path / "p.py").write_text(PROGRAM)
    env = client_env(PYTHONPATH=str(Path(__file__).resolve().parents[2]), **{f"TILELANG_SIM_{name}": value})
    r = subprocess.run([sys.executable, tmp_path / "p.py"], capture_output=True, text=True, env=env)
    assert r.returncode != 0
    last = r.stderr.splitlines()[-1]
    assert f"TILELANG_SIM_{name} must be" in last and f"not '{value}'" in last, r.stderr
    assert "gfx90a, gfx942" in last and "gfx1201" in last
