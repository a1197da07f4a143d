"""user_kernels.py on every chip that kernels compile for, each case in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from user_kernels import CASES

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("case", sorted(CASES))
def test_user_kernel(case: str, arch: str) -> None:
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "TILELANG_SIM_ARCH": arch, "TILELANG_SIM_CHECK": "all", "PYTHONPATH": path}
    p = subprocess.run([sys.executable, str(HERE / "user_kernels.py"), case], env=env, capture_output=True, text=True)
    assert p.returncode == 0 and p.stdout == case + "\n", p.stderr[-3000:]
