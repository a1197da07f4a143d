"""IREE's HIP driver, unchanged, on the simulated GPU: results equal those of its CPU device."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simlib import available, client_env, counters, missing

sim = pytest.importorskip("tilelang.sim")

WHERE = os.environ.get("IREE_BIN", str(Path(sys.executable).parent))
COMPILE, RUN = (shutil.which(n, path=WHERE) for n in ("iree-compile", "iree-run-module"))
if not COMPILE or not RUN:
    missing("IREE (iree-base-compiler and iree-base-runtime)")

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
func.func @attention(%q: tensor<2x64x64xf16>, %k: tensor<2x128x64xf16>, %v: tensor<2x128x64xf16>)
    -> tensor<2x64x64xf16> {
  %scale = arith.constant 0.125 : f16
  %e = tensor.empty() : tensor<2x64x64xf16>
  %r = iree_linalg_ext.attention <{indexing_maps = [
         affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>,
         affine_map<(b, m, n, k1, k2) -> (b, k2, n)>, affine_map<(b, m, n, k1, k2) -> ()>,
         affine_map<(b, m, n, k1, k2) -> (b, m, n)>]}>
         ins(%q, %k, %v, %scale : tensor<2x64x64xf16>, tensor<2x128x64xf16>, tensor<2x128x64xf16>, f16)
         outs(%e : tensor<2x64x64xf16>) {
           ^bb0(%s: f32):
             iree_linalg_ext.yield %s : f32
         } -> tensor<2x64x64xf16>
  return %r : tensor<2x64x64xf16>
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
CPU = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
CHIPS = {"gfx942": "all", "gfx1100": "all", "gfx1201": "all"}
"""The simulated chips and the checks that are on."""
# Integer matrices: every sum is exact. The others differ in the order of sums and in exp.
TOLERANCE = {"matmul": 0, "softmax": 1e-6, "attention": 2e-3, "conv": 0}


def compiled(folder: Path, device: str, flags: list[str]) -> Path:
    source, out = folder / "m.mlir", folder / f"{device}.vmfb"
    if not out.exists():
        source.write_text(MODULE)
        r = subprocess.run([COMPILE, str(source), *flags, "-o", str(out)], capture_output=True, text=True)
        assert r.returncode == 0, r.stderr[-3000:]
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("iree")


def inputs_of(name: str) -> list[np.ndarray]:
    rng = np.random.default_rng(5)

    def ints(*shape: int) -> np.ndarray:
        return rng.integers(-3, 4, shape).astype(np.float16)

    def reals(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    return {
        "matmul": lambda: [ints(64, 128), ints(128, 96)],
        "softmax": lambda: [reals(16, 200).astype(np.float32)],
        "attention": lambda: [reals(2, n, 64).astype(np.float16) for n in (64, 128, 128)],
        "conv": lambda: [ints(1, 18, 18, 16), ints(3, 3, 16, 32)],
    }[name]()


@pytest.mark.slow
@pytest.mark.parametrize("name", TOLERANCE)
@pytest.mark.parametrize("chip", CHIPS)
def test_equal_to_the_cpu(folder, tmp_path, chip, name):
    if not available(chip):
        pytest.skip(f"the simulator does not run {chip} yet")
    modules = {
        "hip": compiled(folder, chip, ["--iree-hal-target-device=hip", f"--iree-rocm-target={chip}"]),
        "local-task": compiled(folder, "cpu", CPU),
    }
    inputs = []
    for i, a in enumerate(inputs_of(name)):
        np.save(tmp_path / f"in{i}.npy", a)
        inputs.append(f"--input=@{tmp_path}/in{i}.npy")
    told = tmp_path / "counters.jsonl"
    env = client_env(
        LD_LIBRARY_PATH=sim.libdir(),
        TILELANG_SIM_CHECK=CHIPS[chip],
        TILELANG_SIM_DEVICES=chip,
        TILELANG_SIM_COUNTERS=str(told),
    )
    result = {}
    for device, module in modules.items():
        out = tmp_path / f"{device}.npy"
        cmd = [RUN, f"--device={device}", f"--module={module}", f"--function={name}", *inputs, f"--output=@{out}"]
        r = subprocess.run(cmd, env=env, capture_output=True, text=True, timeout=300)
        assert r.returncode == 0 and "tilelang simulator" not in r.stderr, r.stderr[-3000:]
        result[device] = np.load(out).astype(np.float32)
    (ran,) = counters(told)  # of the HIP device alone
    error = np.abs(result["hip"] - result["local-task"]).max()
    print(chip, name, ran, f"error {error:.2g}")
    assert ran["chip"] == chip and ran["launches"] >= 1 and ran["instructions"] > 1000
    assert np.abs(result["local-task"]).max() > 0.01 and error <= TOLERANCE[name]
