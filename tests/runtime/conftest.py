"""Fresh instances of tilelang._core, each with a HIP library of its own."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent


class Registered(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64),
        ("shape", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8),
        ("ndim", ctypes.c_uint32),
        ("itemsize", ctypes.c_uint32),
        ("name", ctypes.c_char * 32),
    ]


class Fake(ctypes.Structure):
    """What fake_hip.c keeps."""

    _fields_ = [
        ("kernarg", ctypes.c_uint64 * 64),
        ("kernarg_size", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("lds", ctypes.c_uint32),
        ("stream", ctypes.c_uint64),
        ("launches", ctypes.c_uint32),
        ("loads", ctypes.c_uint32),
        ("unloads", ctypes.c_uint32),
        ("registered", ctypes.c_uint32),
        ("alive", ctypes.c_uint32),
        ("get_last_error", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("set_device", ctypes.c_uint32),
        ("next_error", ctypes.c_int32),
        ("reg", Registered * 8),
        ("report", ctypes.c_char * 512),
    ]


@pytest.fixture(scope="session")
def fake_path(compile_c):
    """fake_path(*flags) -> a library made of fake_hip.c."""
    made: dict[tuple[str, ...], Path] = {}

    def path(*flags: str) -> Path:
        if flags not in made:
            made[flags] = compile_c(HERE / "fake_hip.c", *flags, name="libfakehip.so")
        return made[flags]

    return path


@pytest.fixture
def new_core(monkeypatch):
    """new_core(sim=path, hip=path) -> a new instance of tilelang._core bound to these libraries."""

    def make(sim: Path | None = None, hip: Path | None = None):
        import tilelang._core as first

        mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if "libamdhip64.so" in line]
        assert not mapped, f"a test has mapped a HIP library into this process: {mapped[0]}"
        monkeypatch.setenv("TILELANG_SIM_LIB", str(sim or "/nonexistent/sim.so"))
        monkeypatch.setenv("TILELANG_HIP_LIB", str(hip or "/nonexistent/hip.so"))
        spec = importlib.util.spec_from_file_location("tilelang._core", first.__file__)
        core = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(core)
        return core

    return make


class FakeCore:
    """A _core whose CPU tensors "run" on fake_hip.c, and what that was given."""

    def __init__(self, core, path: Path) -> None:
        gc.collect()  # what earlier tests loaded is unloaded now
        self.core = core
        self.fake = Fake.in_dll(ctypes.CDLL(str(path)), "fake")
        ctypes.memset(ctypes.byref(self.fake), 0, ctypes.sizeof(self.fake))

    def binary(self, params, slots, grid=((),), writes=(), block=64, code=b"\x7fELF", symbol="k", requires=None):
        return self.core.Binary(code, symbol, params, slots, grid, block, writes, requires)

    def launcher(self, params, binary=None, name="k", **kwargs):
        """A launcher that gives `binary` for every specialisation and keeps the keys; binary None: pointers only."""
        self.keys = []
        if binary is None:
            n = sum(p[0] != "const" for p in params)
            kinds = ["scalar" if p[0] == "scalar" else "ptr" for p in params if p[0] != "const"]
            index = tuple(i for i, p in enumerate(params) if p[0] != "const")
            binary = self.binary(index, tuple((kinds[i], i, 0) for i in range(n)), **kwargs)

        def specialize(key):
            self.keys.append(key)
            return binary

        return self.core.Launcher(name, tuple(params), specialize)


@pytest.fixture
def fake(new_core, fake_path) -> FakeCore:
    path = fake_path("-DPRIVATE")
    return FakeCore(new_core(sim=path), path)


@pytest.fixture
def fake_rocm(new_core, fake_path) -> FakeCore:
    """The fake library as the ROCm runtime; no simulator."""
    path = fake_path("-DROCM")
    return FakeCore(new_core(hip=path), path)
