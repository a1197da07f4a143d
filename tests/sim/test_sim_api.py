"""The Python API called wrongly: what cannot be is refused by name, before anything runs; nothing is freed twice."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simlib import ADD, BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")

CODE = code_object(ADD, (BUF, BUF, Arg(4, name="c")))
X = np.arange(64, dtype=np.int32)


@pytest.fixture
def dev():
    return sim.Device("gfx942")


@pytest.fixture
def kernel(dev):
    return dev.load(CODE).kernels["k"]


def launch(kernel, x=None, c=np.int32(7), grid=1, block=64, **kw):
    out = np.zeros(64, np.int32)
    kernel.launch(grid, block, [X if x is None else x, out, c], **kw)
    return out


@pytest.mark.parametrize(
    "what, error, text",
    [
        ({"x": np.array([object()] * 64)}, TypeError, "argument [+]0 of kernel k: an array of object holds Python"),
        ({"x": X.astype(">i4")}, TypeError, "numbers of another byte order"),
        ({"x": [1, 2]}, TypeError, "a list has no fixed size"),
        ({"c": 1.5}, TypeError, "argument c of kernel k: a float has no fixed size"),
        ({"c": 1 << 40}, ValueError, "does not fit into 4 bytes"),
        ({"c": np.int8(1)}, ValueError, "has 4 bytes, the value has 1"),
        ({"grid": 1.5}, TypeError, "grid must be one to three positive numbers, not 1.5"),
        ({"grid": None}, TypeError, "grid must be one to three positive numbers, not None"),
        ({"grid": (1, 1, 1, 1)}, ValueError, "grid must be one to three"),
        ({"block": "64"}, TypeError, "block must be one to three"),
        ({"block": 0}, ValueError, "block must be one to three"),
        ({"lds_bytes": 1.5}, TypeError, "lds_bytes must be an int, not 1.5"),
        ({"lds_bytes": -1}, ValueError, "lds_bytes must be 0 to"),
        ({"seed": 1.5}, TypeError, "seed must be an int"),
        ({"seed": 1 << 64}, ValueError, "seed must be 0 to 2[*][*]64 - 1"),
        ({"delivery": "soon"}, ValueError, "delivery must be"),
        ({"mfma": "x"}, ValueError, "mfma must be"),
        ({"trace": 5}, TypeError, "trace must be a path, workgroups or TraceOptions, not 5"),
        ({"trace": [1]}, ValueError, "no workgroup 1 in a grid"),
        ({"trace": "/nowhere/t"}, FileNotFoundError, "no folder /nowhere"),
    ],
)
def test_launches_that_cannot_be(dev, kernel, what, error, text):
    with pytest.raises(error, match=text):
        launch(kernel, **what)
    assert dev.counters["launches"] == 0
    assert (launch(kernel) == X + 7).all()


@pytest.mark.parametrize(
    "what, error, text",
    [
        ({"arch": None}, TypeError, "arch must be a string"),
        ({"checks": 5}, TypeError, "checks must be a name"),
        ({"checks": ["init", "x"]}, ValueError, "'x' does not exist"),
        ({"threads": 1.5}, TypeError, "threads must be an int"),
        ({"threads": 0}, ValueError, "threads must be 1 to 1024"),
        ({"max_instructions": -1}, ValueError, "max_instructions must be 0 to"),
        ({"seed": "x"}, TypeError, "seed must be an int"),
    ],
)
def test_devices_that_cannot_be(what, error, text):
    with pytest.raises(error, match=text):
        sim.Device(**what)


def test_memory_that_cannot_be(dev, kernel):
    for n, name, error in ((-1, None, ValueError), (1.5, None, TypeError), ("4", None, TypeError), (4, 5, TypeError)):
        with pytest.raises(error):
            dev.empty(n, name)
    objects = np.array([object()])
    for call in (lambda: dev.array(objects), lambda: dev.empty(8).write(objects), lambda: dev.empty(8).numpy(object)):
        with pytest.raises(TypeError, match="Python objects"):
            call()
    with pytest.raises(ValueError, match="argument [+]0 of kernel k: memory of another device"):
        launch(kernel, sim.Device("gfx942").array(X))
    for offset, error in ((-4, ValueError), ("a", TypeError), (17, ValueError)):
        with pytest.raises(error):
            kernel.launch(1, 64, {offset: np.int32(1)})
    with pytest.raises(TypeError, match="a path or bytes"):
        dev.load(5)
    with pytest.raises(TypeError, match="code must be bytes"):
        sim.execute("gfx942", 8, {})
    with pytest.raises(TypeError, match="v1: hex digits"):
        sim.execute("gfx942", b"", {"v": {1: 5}})


def test_no_copies(dev, kernel):
    """A copy would free the memory of the original: there is none, by copying or pickling."""
    mem = dev.array(X)
    for thing in (mem, dev, kernel, kernel._module):
        for how in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="neither copied nor pickled"):
                how(thing)
    gc.collect()
    assert (mem.numpy() == X).all()
    with pytest.raises(sim.SimulatorFault) as e:
        launch(kernel, np.zeros(1, np.int32))
    for fault in (pickle.loads(pickle.dumps(e.value)), copy.deepcopy(e.value)):
        assert fault.reports == e.value.reports and str(fault) == str(e.value)


def test_what_things_are_called(dev, kernel):
    assert repr(dev) == "<Device gfx942, checks=bounds>" and repr(kernel) == "<Kernel k(+0, +8, c) for gfx942>"
    mem = dev.empty(12)
    assert repr(mem) == f"<DeviceMemory 0x{mem.address:x}, 12 bytes, gfx942>"
    mem.free()
    assert repr(mem) == "<DeviceMemory freed, 12 bytes, gfx942>" and repr(kernel._module) == "<Module for gfx942: k>"
    dev.close()
    assert repr(dev) == "<Device gfx942, closed>"


def test_views(kernel):
    """Strided, reversed and repeated arrays are read and written as NumPy shows them."""
    wide = np.zeros(128, np.int32)
    kernel.launch(1, 64, [X[::-1], wide[::2], np.int32(0)])
    assert (wide[::2] == X[::-1]).all() and not wide[1::2].any()
    assert (launch(kernel, np.broadcast_to(np.int32(3), (64,))) == 10).all()


def test_tensors(kernel):
    """PyTorch tensors of the CPU are arrays that share their memory."""
    torch = pytest.importorskip("torch")
    x, out = torch.arange(64, dtype=torch.int32), torch.zeros(128, dtype=torch.int32)
    kernel.launch(1, 64, [x, out[::2], np.int32(5)])
    assert (out[::2] == x + 5).all() and not out[1::2].any()
    kernel.launch(1, 64, [x, x, np.int32(1)])
    assert (x == torch.arange(1, 65)).all()
    bits = torch.ones(128, dtype=torch.bfloat16)
    assert (launch(kernel, bits, np.int32(0)).view(np.uint16) == 0x3F80).all()
    with pytest.raises(TypeError, match="a tensor on meta"):
        launch(kernel, torch.zeros(64, device="meta"))


CLIENT = """
from pathlib import Path
import numpy as np
import tilelang.sim as sim
from tilelang.sim import Device, DeviceMemory, Finding, Kernel, KernelArg, Module, Report, SimulatorFault, Trace
from tilelang.sim import TraceOptions, WaveTrace, execute, libdir, library_path, mfma_rule, read_trace, unbundle, verify
dev: Device = Device("gfx942", checks=["bounds"], threads=2, seed=3, delivery="late", mfma="hw", max_instructions=5)
mod: Module = dev.load(Path("x"))
mem: DeviceMemory = dev.array(np.zeros(4, np.float32), name="a")
k: Kernel = mod.kernels["k"]
options = TraceOptions(path=Path("t"), workgroups=[0, (1, 0, 0)], wave=1, values=True)
st = k.launch((1, 1, 1), (64, 1, 1), [mem, np.int32(3), None, b"x"], trace=options, delivery="now", seed=1)
st2 = k.launch(1, 64, {0: mem})
n: int = st["instructions"]
for a in k.args:
    x: KernelArg = a
    y: str = a.name
try:
    pass
except SimulatorFault as e:
    r: Report = e.reports[0]
    l: str | None = r.line
for f in verify("x"):
    g: Finding = f
    p: int | None = f.pc
t: Trace = read_trace("x")
for w in t.waves:
    ww: WaveTrace = w
    rows: np.ndarray = w.rows
c: tuple[int, int] = dev.progress
d: dict[str, int] = dev.counters
arr = mem.numpy(np.float32, (4,))
s: str | None = mfma_rule("gfx942", "x")
for tt, code in unbundle(b"x"):
    q: str = tt; b: bytes = code
z: Path = library_path()
z2: str = libdir()
o = execute("gfx942", b"", {"wave": 64}, checks="init", mfma="hw", delivery="late", seed=4)
"""


def test_types(tmp_path):
    """A client that uses every name passes mypy --strict."""
    pytest.importorskip("mypy")
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "client.py").write_text(CLIENT)
    cmd = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "c")]
    env = {**os.environ, "MYPYPATH": str(root)}
    r = subprocess.run([*cmd, "client.py"], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert r.returncode == 0, r.stdout + r.stderr
    assert set(sim.__all__) <= set(re.findall(r"\w+", CLIENT))


def test_documented():
    """Every public name and method has a docstring."""
    missing = [n for n in sim.__all__ if not getattr(sim, n).__doc__]
    for cls in (sim.Device, sim.DeviceMemory, sim.Kernel, sim.Module, sim.Trace, sim.WaveTrace):
        missing += [
            f"{cls.__name__}.{n}" for n, v in vars(cls).items() if n[0] != "_" and callable(v) and not v.__doc__
        ]
    assert missing == []
