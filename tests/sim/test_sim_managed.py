"""__managed__ variables: one memory for the host program and the code of every device."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from simlib import client_env, missing, tool_env

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang++-22")
if not CLANG:
    missing("clang++-22")
SOURCE = Path(__file__).with_name("fat_managed.hip")
FLAGS = ["-x", "hip", "-nogpulib", "-nogpuinc", "-O2"]


def clang(*args: str) -> None:
    r = subprocess.run([CLANG, *args], capture_output=True, text=True, env=tool_env())
    if r.returncode and "lld" in r.stderr:
        missing("lld for clang")
    assert r.returncode == 0, r.stderr


def link_flags() -> list[str]:
    lib = sim.libdir()
    return [f"-L{lib}", "-lamdhip64", f"-Wl,-rpath,{lib}", f"-Wl,-rpath-link,{lib}/.."]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program for two chips, and its device code for gfx942 as a file of its own."""
    d = tmp_path_factory.mktemp("managed")
    clang(*FLAGS, "--offload-arch=gfx942", "--offload-arch=gfx1100", "-c", str(SOURCE), "-o", str(d / "p.o"))
    clang(str(d / "p.o"), "-o", str(d / "p"), *link_flags())
    only = ["--offload-device-only", "--no-gpu-bundle-output", "--offload-arch=gfx942"]
    clang(*FLAGS, *only, str(SOURCE), "-o", str(d / "m.hsaco"))
    return d / "p", d / "m.hsaco"


@pytest.mark.parametrize("chips", ["gfx942", "gfx942,gfx1100,gfx942"])
def test_program_and_module(program, chips):
    exe, code = program
    env = client_env(TILELANG_SIM_DEVICES=chips, TILELANG_SIM_CHECK="all")
    r = subprocess.run([str(exe), str(code)], capture_output=True, text=True, env=env)
    assert (r.stdout, r.stderr) == (f"0 wrong on {chips.count(',') + 1}\n", "")


def test_a_report_names_the_variable(program, tmp_path):
    exe, code = program
    told = tmp_path / "told"
    r = subprocess.run(
        [str(exe), str(code), "past"], capture_output=True, text=True, env=client_env(TILELANG_SIM_REPORT=str(told))
    )
    assert r.stdout == "0 wrong on 1\n"
    (report,) = [json.loads(line) for line in told.read_text().splitlines()]
    assert report["check"] == "bounds" and "0 bytes after the end of managed memory 'table'" in report["buffer"]
    assert "800 bytes" in report["buffer"] and report["kernel"] == "past"


def test_without_a_device(program):
    """The host's code has the initial values, not a null pointer."""
    exe, code = program
    r = subprocess.run([str(exe), str(code)], capture_output=True, text=True, env=client_env(TILELANG_SIM_ARCH="none"))
    assert (r.returncode, r.stdout) == (1, "no device, 10\n") and "TILELANG_SIM_ARCH" in r.stderr


def test_relocatable_device_code(tmp_path):
    rdc = ["-fgpu-rdc", "--offload-arch=gfx942"]
    for part in "12":
        clang(*FLAGS, *rdc, f"-DPART={part}", "-c", str(SOURCE), "-o", str(tmp_path / f"{part}.o"))
    parts = [str(tmp_path / "1.o"), str(tmp_path / "2.o")]
    clang("--hip-link", "-nogpulib", *rdc, *parts, "-o", str(tmp_path / "p"), *link_flags())
    r = subprocess.run([str(tmp_path / "p")], capture_output=True, text=True, env=client_env(TILELANG_SIM_CHECK="all"))
    assert (r.stdout, r.stderr) == ("0 426\n", "")  # 3 + 10, then 4 * 100 + 13 more


def test_python_device(program):
    """A device of ours loads such code objects too; a kernel finds the initial value."""
    dev = sim.Device("gfx942", checks="all")
    look = dev.load(program[1]).kernels["look"]
    out = np.zeros(1, np.int64)
    for want in (10, 4):
        look.launch(1, 1, [out])
        assert out[0] == want
