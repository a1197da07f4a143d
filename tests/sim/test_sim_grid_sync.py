"""Cooperative launches whose workgroups meet as AMD's device library lets them: right values and no report, but one
where only one wave of each workgroup has ordered its memory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from simlib import client_env, missing, tool_env

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang++-22")
if not CLANG:
    missing("clang++-22")
ARCHES = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


def build(folder: Path, arch: str, *flags: str) -> Path:
    """The program compiled and linked for one chip."""
    source, obj, exe, lib = Path(__file__).with_name("grid_sync.hip"), folder / "g.o", folder / "g", sim.libdir()
    options = ["-x", "hip", f"--offload-arch={arch}", "-nogpulib", "-nogpuinc", "-O2", *flags]
    r = subprocess.run(
        [CLANG, *options, "-c", str(source), "-o", str(obj)], capture_output=True, text=True, env=tool_env()
    )
    if r.returncode and "lld" in r.stderr:
        missing("lld for clang")
    assert r.returncode == 0, r.stderr
    link = [f"-L{lib}", "-lamdhip64", f"-Wl,-rpath,{lib}", f"-Wl,-rpath-link,{lib}/.."]
    subprocess.run([CLANG, str(obj), "-o", str(exe), *link], check=True, env=tool_env())
    return exe


def run(exe: Path, arch: str, **more: str) -> subprocess.CompletedProcess:
    env = client_env(TILELANG_SIM_ARCH=arch, TILELANG_SIM_CHECK="all", TILELANG_SIM_THREADS="2", **more)
    return subprocess.run([str(exe)], capture_output=True, text=True, env=env, timeout=120)


@pytest.mark.parametrize("arch", ARCHES)
def test_workgroups_meet(tmp_path, arch):
    exe = build(tmp_path, arch)
    for seed in ("0", "5") if arch == "gfx942" else ("0",):
        r = run(exe, arch, TILELANG_SIM_SEED=seed)
        assert (r.returncode, r.stdout, r.stderr) == (0, "0 0\n", ""), (seed, r.stdout, r.stderr)


@pytest.mark.parametrize("arch", ARCHES[1:])  # gfx90a: global wave sync is taken to order what the workgroup did
def test_only_one_wave_orders_its_memory(tmp_path, arch):
    r = run(build(tmp_path, arch, "-DONE_FENCE"), arch)
    assert r.returncode != 0 and "race: " in r.stderr, (r.stdout, r.stderr)
