"""IREE's HIP driver, unchanged, on the simulated GPU: results equal those of its CPU device."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simlib import client_env

sim = pytest.importorskip("tilelang.sim")

WHERE = os.environ.get("IREE_BIN", str(Path(sys.executable).parent))
COMPILE, RUN = (shutil.which(n, path=WHERE) for n in ("iree-compile", "iree-run-module"))
if not COMPILE or not RUN:
    pytest.skip("iree-base-compiler and iree-base-runtime are not installed", allow_module_level=True)

MODULE = """
func.func @matmul(%a: tensor<64x128xf16>, %b: tensor<128x96xf16>) -> tensor<64x96xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x128xf16>, tensor<128x96xf16>)
                     outs(%z : tensor<64x96xf32>) -> tensor<64x96xf32>
  return %r : tensor<64x96xf32>
}
func.func @softmax(%x: tensor<16x200xf32>) -> tensor<16x200xf32> {
  %e = tensor.empty() : tensor<16x200xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<16x200xf32>) outs(%e : tensor<16x200xf32>) -> tensor<16x200xf32>
  return %r : tensor<16x200xf32>
}
func.func @conv(%x: tensor<1x18x18x16xf16>, %w: tensor<3x3x16x32xf16>) -> tensor<1x16x16x32xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x16x32xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1x16x16x32xf32>) -> tensor<1x16x16x32xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
         ins(%x, %w : tensor<1x18x18x16xf16>, tensor<3x3x16x32xf16>)
         outs(%z : tensor<1x16x16x32xf32>) -> tensor<1x16x16x32xf32>
  return %r : tensor<1x16x16x32xf32>
}
"""
HIP = ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"]
CPU = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iree")
    source = folder / "m.mlir"
    source.write_text(MODULE)
    out = {}
    for device, flags in (("hip", HIP), ("local-task", CPU)):
        out[device] = folder / f"{device}.vmfb"
        subprocess.run([COMPILE, str(source), *flags, "-o", str(out[device])], check=True, capture_output=True)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name, tolerance", [("matmul", 0), ("softmax", 1e-6), ("conv", 0)])
def test_equal_to_the_cpu(modules, tmp_path, name, tolerance):
    rng = np.random.default_rng(5)
    ints = {
        "matmul": [
            rng.integers(-3, 4, (64, 128)).astype(np.float16),
            rng.integers(-3, 4, (128, 96)).astype(np.float16),
        ],
        "softmax": [rng.standard_normal((16, 200)).astype(np.float32)],
        "conv": [
            rng.integers(-3, 4, (1, 18, 18, 16)).astype(np.float16),
            rng.integers(-3, 4, (3, 3, 16, 32)).astype(np.float16),
        ],
    }[name]
    inputs = []
    for i, a in enumerate(ints):
        np.save(tmp_path / f"in{i}.npy", a)
        inputs.append(f"--input=@{tmp_path}/in{i}.npy")
    env = client_env()
    env |= {"LD_LIBRARY_PATH": sim.libdir(), "TILELANG_SIM_CHECK": "all"}
    result = {}
    for device, module in modules.items():
        out = tmp_path / f"{device}.npy"
        cmd = [RUN, f"--device={device}", f"--module={module}", f"--function={name}", *inputs, f"--output=@{out}"]
        r = subprocess.run(cmd, env=env, capture_output=True, text=True)
        assert r.returncode == 0 and "tilelang simulator" not in r.stderr, r.stderr[-3000:]
        result[device] = np.load(out)
    assert np.abs(result["hip"] - result["local-task"]).max() <= tolerance
