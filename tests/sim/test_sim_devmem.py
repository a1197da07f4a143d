"""Simulated memory is touched in one file, csrc/sim/devmem.h, which ThreadSanitizer does not look into; all else of the
simulator it sees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIM = ROOT / "csrc" / "sim"
SOURCES = [p for p in sorted(SIM.iterdir()) if p.suffix in (".c", ".h", ".inc") and p.name != "devmem.h"]

# functions that make a pointer of a number, other than those of devmem.h, and what it is for
POINTERS = {
    ("group.c", "galloc"): "rounds up what the allocator gave",
    ("late.c", "sim_late_run"): "writes the record that it runs, through a const; so do these:",
    ("format.c", "put_value"): "prints %p",
    ("hip_memory.c", "hipMemGetAddressRange"): "tells an address",
    ("hip_fat.c", "variable"): "tells an address",
    ("hip_fat.c", "__hipRegisterManagedVar"): "gives the host's code its own address",
    ("hip_memory.c", "sim_hip_mapped"): "asks the system about pages",
    ("hip_module.c", "hipModuleGetGlobal"): "tells an address",
}
RUN_LOOPS = re.compile(r"(sim_)?run_(plain|checked|counting|traced)\w*")
# files that ask for the bytes of code, which no wave writes, or hand an address on
HOST = {
    "code.c",
    "report.c",
    "hip_report.c",
    "tlsim.c",
    "verify_api.c",
    "image.c",
    "service.c",
    "check_guess.c",
    "check_poll.c",
}
CAST = re.compile(r"\(\s*(?:const |volatile |struct )*(\w+)\s*\*+\s*\)\s*\(*\s*\(uintptr_t\)")


def casts(text: str) -> set[str]:
    """Types of the pointers that are made of numbers in the usual spelling."""
    return set(CAST.findall(text))


def test_casts():
    assert casts("x = *(const uint8_t *)(uintptr_t)ptr[l];") == {"uint8_t"} and casts("f((void *)((uintptr_t)p))")
    found = {(p.name, t) for p in SOURCES for t in casts(p.read_text()) if t != "SimRec"}  # the record that is run
    assert found <= {("group.c", "uint8_t"), ("format.c", "void")}  # rounds an allocation up; prints a number


def test_one_file():
    assert len(SOURCES) > 90
    assert {p.name for p in SOURCES if "sim_dm_host(" in p.read_text()} <= HOST
    every = [p for p in (ROOT / "csrc").rglob("*") if p.suffix in (".c", ".h", ".inc", ".cc")]
    assert [p.name for p in every if "no_sanitize" in p.read_text()] == ["devmem.h"]
    assert "suppressions=" not in (ROOT / "tools" / "tsan.sh").read_text() + (ROOT / "Makefile").read_text()


def made_pointers(clang: str, path: Path) -> set[tuple[str, str]]:
    """(file, function) of each pointer made of a number that is not constant, as the compiler sees it."""
    cmd = [clang, "-std=c11", "-O0", "-w", f"-I{ROOT / 'csrc'}", "-S", "-emit-llvm", "-o", "-", str(path)]
    r = subprocess.run(cmd, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    out, function = set(), ""
    for line in r.stdout.splitlines():
        if line.startswith("define "):
            function = re.search(r"@([\w.]+)\(", line)[1]
        elif "= inttoptr " in line and not function.startswith("sim_dm_"):
            out.add((path.name, function))
    return out


def test_pointers_made_of_numbers():
    """No other function makes a pointer of a device address."""
    clang = shutil.which("clang-22")
    if not clang:
        pytest.skip("clang-22 is not installed")
    # left out: arithmetic on whole rows, once for each instruction set of the host
    files = [p for p in SOURCES if p.suffix == ".c" and not re.match("(kern|fast)_", p.name)]
    with ThreadPoolExecutor(2) as pool:
        jobs = pool.map(lambda p: made_pointers(clang, p), files)
        found = set().union(*jobs)
    known = {(f, fn) for f, fn in found if (f, fn) in POINTERS or RUN_LOOPS.fullmatch(fn)}
    print(sorted(found))
    assert found == known and len(found) >= 4


@pytest.mark.parametrize("what", ["devmem", "plain", "copy"])
def test_what_thread_sanitizer_sees(tmp_path, what):
    exe = tmp_path / "races"
    source = Path(__file__).with_name("devmem_races.c")
    cmd = [os.environ.get("CC", "gcc"), "-std=c11", "-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"]
    cmd += ["-fsanitize=thread", f"-I{ROOT / 'csrc'}", str(source), "-o", str(exe)]
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TSAN_OPTIONS")}
    r = subprocess.run(cmd, capture_output=True, text=True, env=env)
    if r.returncode and "tsan" in r.stderr and "cannot find" in r.stderr:
        pytest.skip("the compiler has no ThreadSanitizer")
    assert r.returncode == 0, r.stderr
    env["TSAN_OPTIONS"] = "exitcode=66 halt_on_error=1"
    r = subprocess.run([str(exe), what], capture_output=True, text=True, env=env)
    if "unexpected memory mapping" in r.stderr:
        pytest.skip("ThreadSanitizer does not run on this machine")
    if what == "devmem":
        assert r.returncode == 0 and r.stdout == "done\n" and not r.stderr, r.stderr
    else:
        assert r.returncode == 66 and "data race" in r.stderr, r.stderr
