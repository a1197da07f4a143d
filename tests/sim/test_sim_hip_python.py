"""The hip-python package loads a module, launches a kernel and gets the right values from the simulated GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from simlib import ADD, BUF, Arg, client_env, code_object, counters, missing

sim = pytest.importorskip("tilelang.sim")

PYTHON = os.environ.get("HIP_PYTHON", sys.executable)
"""An interpreter that has hip-python (HIP_PYTHON names another than ours)."""
if subprocess.run([PYTHON, "-c", "import hip"], capture_output=True).returncode:
    missing("hip-python")
CLIENT = """
import ctypes, sys
import numpy as np
from hip import hip

def ok(r):
    assert r[0] == hip.hipError_t.hipSuccess, r[0]
    return r[1] if len(r) == 2 else r[1:]

assert ok(hip.hipGetDeviceCount()) == 1
p = ok(hip.hipGetDeviceProperties(0))
module = ok(hip.hipModuleLoad(sys.argv[1].encode()))
kernel = ok(hip.hipModuleGetFunction(module, b"k"))
a = np.arange(256, dtype=np.int32)
out = np.zeros_like(a)
da, do = ok(hip.hipMalloc(a.nbytes)), ok(hip.hipMalloc(a.nbytes))
ok(hip.hipMemcpy(da, a, a.nbytes, hip.hipMemcpyKind.hipMemcpyHostToDevice))
ok(hip.hipModuleLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, None, None, (da, do, ctypes.c_int(5))))
ok(hip.hipMemcpy(out, do, a.nbytes, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
assert (out == a + 5).all()
print(p.gcnArchName if isinstance(p.gcnArchName, str) else p.gcnArchName.decode())
"""


@pytest.mark.parametrize("checks", ["bounds", "all"])
def test_module_and_launch(tmp_path, checks):
    path, told = tmp_path / "add.hsaco", tmp_path / "counters.jsonl"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4))))
    env = client_env(LD_LIBRARY_PATH=sim.libdir(), TILELANG_SIM_CHECK=checks, TILELANG_SIM_COUNTERS=str(told))
    r = subprocess.run([PYTHON, "-c", CLIENT, str(path)], env=env, capture_output=True, text=True)
    assert r.returncode == 0 and "tilelang simulator" not in r.stderr, r.stderr[-3000:]
    assert r.stdout.strip() == "gfx942:sramecc+:xnack-"
    assert counters(told) == [{"chip": "gfx942", "device": 0, "launches": 1, "instructions": 4 * 11}]
