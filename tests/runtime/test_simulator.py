"""The whole launch path on the real simulator: IR text to code object to a launch on CPU tensors, faults included."""

from __future__ import annotations

import json
import re
import subprocess
import threading

import numpy as np
import pytest

import tilelang._core as core
from tilelang.errors import SimulatorFault


@pytest.fixture(scope="module")
def vector_add(build, root):
    """A launcher of z = x + y in float32 for any length, made from the tile-level text without the frontend."""
    llvm = pytest.importorskip("tilelang._llvm")
    text = (root / "tests/pass/inputs/vector_add_f32.tir").read_text().replace("align 16", "align 4")
    run = [str(build / "tlc"), "--passes", "all", "-"]
    thread = subprocess.run(run, input=text, check=True, capture_output=True, text=True).stdout
    code = llvm.compile(thread)
    code = bytes(getattr(code, "hsaco", code))
    block = int(re.search(r"block = (\d+)", thread).group(1))
    grid = tuple(int(x) for x in re.search(r"grid0 = \[([^\]]*)\]", thread).group(1).split(","))
    slots = tuple((kind, p, 0) for p in range(3) for kind in ("ptr", "dim"))
    binary = core.Binary(code, "vector_add", (0, 1, 2), slots, (grid,), block, (2,))
    params = tuple(("buffer", n, "f32", ("N",), "float32[N]") for n in ("x", "y", "z"))
    keys = []

    def specialize(key):
        keys.append(key)
        return binary

    launcher = core.Launcher("vector_add", params, specialize)
    launcher_keys[launcher.name] = keys
    return launcher


launcher_keys: dict[str, list] = {}


@pytest.mark.parametrize("n", [1, 3, 255, 1024, 1025, 5000])
def test_vector_add(vector_add, n):
    rng = np.random.default_rng(n)
    x, y, z = (rng.integers(-99, 99, n).astype(np.float32) for _ in range(3))
    vector_add(x, y, z)
    assert (z == x + y).all()
    stats = json.loads(core.device("cpu").last_stats())
    assert stats["instructions"] > 0
    assert launcher_keys["vector_add"][0][:3] == ("cpu", 0, core.device("cpu").arch())


def test_torch_tensors(vector_add):
    torch = pytest.importorskip("torch")
    x, y = torch.arange(700.0), torch.arange(700.0) * 3
    z = torch.full((720,), -1.0)
    vector_add(x, y, z[10:710])
    assert torch.equal(z[10:710], x * 4) and (z[:10] == -1).all() and (z[710:] == -1).all()


def test_an_access_outside_a_tensor_is_reported(vector_add, build, root):
    """The simulator knows the tensors' exact elements: a kernel that is told a wrong length is caught."""
    binary = vector_add.binaries[0] if vector_add.binaries else vector_add.prepare((np.zeros(4, np.float32),) * 3)
    slots = (("ptr", 0, 0), ("scalar", 3, 0), ("ptr", 1, 0), ("scalar", 3, 0), ("ptr", 2, 0), ("scalar", 3, 0))
    lying = core.Binary(binary.code, "vector_add", (0, 1, 2, 3), slots, ((-1, 1, 1),), 256, (2,))
    params = (*(("buffer", n, "f32", None, "") for n in "xyz"), ("scalar", "n", "i64", None, ""))
    launcher = core.Launcher("vector_add", params, lambda key: lying)
    room = np.zeros(4096, np.float32)
    x, y, z = room[:100], room[1000:1100], room[2000:2100]
    launcher(x, y, z, 100)
    with pytest.raises(SimulatorFault) as info:
        launcher(x, y, z, 101)
    report = info.value.reports[0]
    assert report.check == "bounds" and "vector_add" in str(report.kernel)
    assert list(report.workgroup) == [0, 0, 0] and report.text
    assert room[2100] == 0
    launcher(x, y, z, 100)  # the device goes on after a fault


def test_threads(vector_add):
    """Launches from several threads on one simulated device."""
    errors = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            for _ in range(5):
                x, y, z = (rng.integers(-9, 9, 2000).astype(np.float32) for _ in range(3))
                vector_add(x, y, z)
                assert (z == x + y).all()
        except BaseException as err:
            errors.append(err)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
