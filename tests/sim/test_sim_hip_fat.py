"""A program compiled by clang -x hip (plain and compressed bundles) runs on the simulated GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from simlib import client_env, counters, missing, tool_env

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang++-22")
if not CLANG:
    missing("clang++-22")


@pytest.mark.parametrize("compress", [False, True])
def test_executable_with_kernels(tmp_path, compress):
    source, obj, exe, lib = Path(__file__).with_name("fat_client.hip"), tmp_path / "c.o", tmp_path / "c", sim.libdir()
    flags = ["-x", "hip", "--offload-arch=gfx90a", "--offload-arch=gfx942", "-nogpulib", "-nogpuinc", "-O2"]
    flags += ["--offload-compress"] if compress else []
    r = subprocess.run(
        [CLANG, *flags, "-c", str(source), "-o", str(obj)], capture_output=True, text=True, env=tool_env()
    )
    if r.returncode and "lld" in r.stderr:
        missing("lld for clang")
    assert r.returncode == 0, r.stderr
    assert (b"CCOB" in obj.read_bytes()) == compress
    link = [f"-L{lib}", "-lamdhip64", f"-Wl,-rpath,{lib}", f"-Wl,-rpath-link,{lib}/.."]
    subprocess.run([CLANG, str(obj), "-o", str(exe), *link], check=True, env=tool_env())
    told = tmp_path / "counters.jsonl"
    env = client_env(TILELANG_SIM_CHECK="all", TILELANG_SIM_COUNTERS=str(told))
    r = subprocess.run([str(exe)], capture_output=True, text=True, env=env)
    assert r.returncode == 0 and r.stderr == "", (r.stdout, r.stderr)
    assert r.stdout == "0 0 6 2\n"
    (ran,) = counters(told)  # add: 4 waves, reverse: 2
    assert ran["chip"] == "gfx942" and ran["launches"] == 2 and 60 < ran["instructions"] < 300
    r = subprocess.run([str(exe)], capture_output=True, text=True, env=client_env(TILELANG_SIM_DEVICES="gfx1201"))
    assert r.returncode != 0 and r.stderr.count("the program has no code for gfx1201") == 1
    assert list(sim.Device("gfx90a").load(exe).kernels) == list(sim.Device("gfx942").load(obj).kernels) != []
