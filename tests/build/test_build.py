"""The build: rebuild after one changed file, no LLVM, wheels."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def setup_py(*args: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "setup.py", "-q", *args],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=580,
    )


def child_seconds() -> float:
    """Processor time of the processes that have ended, which other load on the machine leaves alone."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def built():
    done = setup_py("build_ninja")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "file", ["csrc/runtime/tensor.c", "csrc/ir/types.c", "csrc/sim/mem.c", "csrc/codegen/link_lld.cc"]
)
def test_rebuild_after_one_changed_file(built, file):
    """Touching one file costs its compile and the links that it is in: under 10 s of a processor."""
    (ROOT / file).touch()
    start = child_seconds()
    done = setup_py("build_ninja")
    seconds = child_seconds() - start
    assert done.returncode == 0, done.stdout + done.stderr
    compiled = [line for line in done.stdout.splitlines() if "CC " in line or "CXX " in line]
    print(f"{file}: {seconds:.1f} s, {len(compiled)} compiled")
    assert len(compiled) == 1 and "LINK" in done.stdout
    assert seconds < 10
    assert "no work to do" in setup_py("build_ninja").stdout


def test_a_changed_header_reaches_its_users(built):
    (ROOT / "csrc/runtime/hip_api.def").touch()
    done = setup_py("build_ninja", "--only", "core")
    assert done.returncode == 0 and "runtime/hip.c.o" in done.stdout, done.stdout


def script(path: Path, text: str) -> str:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_no_llvm(tmp_path):
    """A clear message and no traceback, whichever way LLVM is not good enough."""
    old = script(tmp_path / "old", "echo 19.1.7\n")
    no_lld = f'case "$*" in *--version*) echo 22.1.0;; *) echo {tmp_path};; esac\n'
    cases = {
        "/nonexistent/llvm-config": "LLVM_CONFIG=/nonexistent/llvm-config does not run",
        old: f"LLVM_CONFIG={old} is version 19.1.7",
        script(tmp_path / "nolld", no_lld): f"{tmp_path} has no liblldELF",
    }
    for config, words in cases.items():
        done = setup_py("build_ninja", "--only", "llvm", LLVM_CONFIG=config)
        text = done.stdout + done.stderr
        assert done.returncode != 0 and words in text and "Traceback" not in text, text
        assert "llvm-22-dev liblld-22-dev" in text and "LLVM_CONFIG=/path" in text
    bare = tmp_path / "bin"
    bare.mkdir()
    done = setup_py("build_ninja", "--only", "llvm", LLVM_CONFIG="", PATH=str(bare))
    assert done.returncode != 0 and "no llvm-config was found" in done.stdout + done.stderr
    script(bare / "llvm-config", "echo 18.0.0\n")
    done = setup_py("build_ninja", "--only", "llvm", LLVM_CONFIG="", PATH=str(bare))
    assert "llvm-config is version 18.0.0" in done.stdout + done.stderr


def test_unknown_part():
    done = setup_py("build_ninja", "--only", "cure")
    assert done.returncode != 0 and "core, llvm, sim, tools, testlib" in done.stdout + done.stderr


def test_wheel(built, tmp_path):
    """A wheel holds every binary, and works from where it is unpacked."""
    cmd = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    done = subprocess.run(cmd, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("tilelang-*.whl")
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        z.extractall(tmp_path / "site")
    for start in ("tilelang/_core.", "tilelang/_llvm.", "tilelang/libtilelang_sim.so", "tilelang/errors.py"):
        assert any(n.startswith(start) for n in names), start
    for name in ("libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"):
        assert f"tilelang/lib/{name}" in names
    code = """
import sys, tilelang, tilelang._core as core, tilelang._llvm
assert tilelang.__file__.startswith(sys.argv[1]) and core.__file__.startswith(sys.argv[1])
assert core.device("cpu").path.startswith(sys.argv[1])
"""
    run = [sys.executable, "-c", code, str(tmp_path / "site")]
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(run, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_core_runs_without_llvm():
    """_core and the simulator load no LLVM; only _llvm does."""
    code = """
import tilelang._core as core
core.device("cpu")
assert "libLLVM" not in open("/proc/self/maps").read()
import tilelang._llvm
assert "libLLVM" in open("/proc/self/maps").read()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
