"""Variables of the environment: what each may hold, what is refused; the table of docs/simulator.md has them all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from simlib import BUF, client_env, code_object, hip_client

sim = pytest.importorskip("tilelang.sim")
native = pytest.importorskip("tilelang.sim._native")
ROOT = Path(__file__).resolve().parents[2]
COUNT = "n = C.c_int(7)\nprint(json.dumps([hip.hipGetDeviceCount(C.byref(n)), n.value]))"

NUMBERS = {"CUS": (1, 1024), "THREADS": (1, 1024), "SEED": (0, (1 << 64) - 1), "MAX_INSTRUCTIONS": (0, (1 << 64) - 1)}
WORDS = {
    "DELIVERY": ["now", "late"], "MFMA": ["default", "hw"], "STATS": ["0", "1"], "VERBOSE": ["0", "1"],
    "HOST": ["base", "avx2", "avx512"],
}  # fmt: skip
FILES = ["REPORT", "COUNTERS", "COVERAGE"]
GOOD = (
    [(n, str(v)) for n, r in NUMBERS.items() for v in r]
    + [(n, v) for n, words in WORDS.items() for v in words]
    + [("CHECK", v) for v in ("none", "all", "race", "bounds,strict", "init, wait", "all,strict")]
    + [("DEVICES", v) for v in ("gfx942", "gfx90a,gfx1201", " gfx942 gfx950 ", ",".join(["gfx942"] * 16))]
    + [("ARCH", "gfx1100")]
)
BAD = (
    [(n, v) for n, (lo, hi) in NUMBERS.items()
     for v in (str(lo - 1), str(hi + 1), "9" * 40, "x", "1 ", " 1", "1e3", "0x3", "+1", "-1", "1.5", " ")]
    + [(n, v) for n, words in WORDS.items() for v in ("x", words[0] + " ", words[0].upper() + "x", "-1", "2", "0,1")]
    + [(n, v) for n in FILES for v in ("/nowhere/x", "/", "/dev/null/x", "x/", "y" * 5000)]
    + [("CHECK", v) for v in ("x", ",", "none,all", "bounds,x", "all\n", "Bounds", "bounds," * 60 + "x")]
    + [("DEVICES", v) for v in ("gfx999", "gfx942,gfx999", ",".join(["gfx942"] * 17), " , ", "gfx942;gfx950")]
    + [("ARCH", v) for v in ("gfx942,gfx950", "gfx", "GFX942", ",", "gfx942:xnack-")]
    + [("CHECKS", "all"), ("", "x"), ("DEVICE", "gfx942"), ("THREADS_", "1")]
)  # fmt: skip


def with_variable(monkeypatch, name, value):
    for key in os.environ.keys() - client_env().keys():
        monkeypatch.delenv(key)
    monkeypatch.setenv(f"TILELANG_SIM_{name}", value)


@pytest.mark.parametrize("name, value", GOOD + [(n, "") for n in (*NUMBERS, *WORDS, *FILES, "CHECK", "DEVICES")])
def test_good(name, value, monkeypatch):
    with_variable(monkeypatch, name, value)
    native.check_environment()
    sim.Device("gfx942").close()


@pytest.mark.parametrize("name, value", BAD)
def test_bad(name, value, monkeypatch):
    """Refused with the variable's name, what it holds, and what it may hold."""
    with_variable(monkeypatch, name, value)
    for use in (native.check_environment, lambda: sim.Device("gfx942"), lambda: sim.execute("gfx942", b"", {})):
        with pytest.raises(ValueError, match=f"TILELANG_SIM_{name} must be|no variable TILELANG_SIM_{name};") as e:
            use()
        if name in (*NUMBERS, *WORDS, *FILES, "CHECK", "DEVICES", "ARCH"):
            assert value[:40] in str(e.value) and "not '" in str(e.value)


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("CUS", "0", "TILELANG_SIM_CUS must be a number from 1 to"),
        ("CUS", "305", "TILELANG_SIM_CUS must be a number from 1 to 304 (what gfx942 has), not '305'"),
        ("STATS", "foo", "TILELANG_SIM_STATS must be one of 0, 1, not 'foo'"),
        ("VERBOSE", "x", "TILELANG_SIM_VERBOSE must be one of 0, 1, not 'x'"),
        ("HOST", "sse", "TILELANG_SIM_HOST must be one of avx512, avx2, base, not 'sse'"),
        ("COVERAGE", "/nowhere/x", "TILELANG_SIM_COVERAGE must be a file that can be written (No such file"),
        ("REPORT", "/", "TILELANG_SIM_REPORT must be a file that can be written (Is a directory), not '/'"),
        ("CHECK", "bounds,x", "must be none, all, or names out of bounds, init, race, wait, hazard, barrier, strict"),
        ("DEVICES", "gfx942,gfx999", "TILELANG_SIM_DEVICES must be 1 to 16 of gfx90a, gfx942,"),
        ("ARCH", "gfx942,gfx950", "TILELANG_SIM_ARCH must be one of gfx90a, gfx942,"),
        ("CHECKS", "all", "there is no variable TILELANG_SIM_CHECKS; those of TILELANG_SIM_ are: DEVICES, ARCH,"),
    ],
)
def test_hip_api(name, value, text):
    """A foreign host has no device, all or none, and is told why once."""
    out, err = hip_client(COUNT, **{f"TILELANG_SIM_{name}": value})
    assert out == [100, 0] and err.count("tilelang simulator:") == 1 and text in err


def test_fewer_units_than_one_chip_has():
    """The number is for every device: one that has fewer refuses it."""
    out, err = hip_client(COUNT, TILELANG_SIM_DEVICES="gfx942,gfx1201", TILELANG_SIM_CUS="100")
    assert out == [100, 0] and "(what gfx1201 has), not '100'" in err
    assert hip_client(COUNT, TILELANG_SIM_DEVICES="gfx942,gfx1201", TILELANG_SIM_CUS="64")[0] == [0, 2]


@pytest.mark.parametrize("name", FILES)
def test_full_disk(name):
    """What cannot be appended is said, and is no fault of the program."""
    body = """
import numpy
from tilelang import sim
from pathlib import Path
n = C.c_int()
hip.hipGetDeviceCount(C.byref(n))
k = sim.Device("gfx942").load(Path({path!r}).read_bytes()).kernels["k"]
try:
    k.launch(1, 64, [numpy.zeros(63, numpy.int32)])
except sim.SimulatorFault as e:
    print(json.dumps([r.check for r in e.reports]))
"""
    import tempfile

    load = "s_load_dwordx2 s[2:3], s[0:1], 0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32 v1, 2, v0\n"
    with tempfile.NamedTemporaryFile() as f:
        f.write(code_object(load + "global_store_dword v1, v0, s[2:3]\ns_endpgm", (BUF,)))
        f.flush()
        env = {f"TILELANG_SIM_{name}": "/dev/full", "PYTHONPATH": str(ROOT)}
        out, err = hip_client(body.format(path=f.name), **env)
    assert out == ["bounds"]
    assert err.count(f"TILELANG_SIM_{name}: cannot write to /dev/full: No space left on device") == 1, err


@pytest.mark.parametrize("name", ["TILELANG_VERIFY", "TILELANG_LINE_TABLES"])
def test_switches(name, monkeypatch):
    from tilelang._env import flag

    for value, is_on in (("", False), ("0", False), ("1", True)):
        monkeypatch.setenv(name, value)
        assert flag(name) is is_on
    for value in ("x", "true", "1 ", " ", "2", "-1", "00", "9" * 99):
        monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match=f"{name} must be one of 0, 1, not"):
            flag(name)


@pytest.mark.parametrize("name", ["TILELANG_VERIFY", "TILELANG_LINE_TABLES"])
def test_switches_are_read_so(name, monkeypatch):
    """A compilation refuses another value."""
    pytest.importorskip("tilelang._llvm")
    import tilelang as tl

    @tl.kernel
    def one(Y: tl.Buffer[64, tl.float32]):
        Y[0:64] = 1.0

    monkeypatch.setenv(name, "yes")
    with pytest.raises(ValueError, match=f"{name} must be one of 0, 1, not 'yes'"):
        tl.compile(one, dtypes=tl.float32).verify()
    monkeypatch.setenv(name, "1")
    assert tl.compile(one, dtypes=tl.float32).verify() == []


def test_library_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("TILELANG_SIM_LIB", str(tmp_path / "none.so"))
    with pytest.raises(OSError, match=r"TILELANG_SIM_LIB must be the simulator's library, not '.*none.so'"):
        native.library.__wrapped__()
    (tmp_path / "none.so").write_text("no library")
    with pytest.raises(OSError, match="the simulator's library cannot be loaded: .*none.so"):
        native.library.__wrapped__()


@pytest.mark.parametrize("path", ["/nowhere/x.so", "/tmp", "libm.so.6"])
def test_library_that_is_none_of_ours(path):
    """The variable is named by the runtime and by the command line."""
    env = client_env(TILELANG_SIM_LIB=path, PYTHONPATH=str(ROOT))
    cmd = [sys.executable, "-c", "from tilelang import _core; _core.device('cpu')"]
    r = subprocess.run(cmd, capture_output=True, text=True, env=env)
    assert "DeviceError: TILELANG_SIM_LIB: " in r.stderr.splitlines()[-1], r.stderr
    r = subprocess.run([sys.executable, "-m", "tilelang", "sim", "--libdir"], capture_output=True, text=True, env=env)
    assert r.returncode == 2 and r.stdout == "" and "TILELANG_SIM_LIB" in r.stderr


def names_in_sources() -> set[str]:
    """Each variable that the package reads."""
    found = {
        f"TILELANG_SIM_{n}" for n in re.findall(r"^SIM_ENV\((\w+),", (ROOT / "csrc/sim/env.def").read_text(), re.M)
    }
    for path in [*(ROOT / "csrc").rglob("*"), *(ROOT / "tilelang").rglob("*.py")]:
        if path.suffix in (".c", ".h", ".cc", ".inc", ".py"):
            text = path.read_text()
            found |= set(re.findall(r"""["'](TILELANG_[A-Z_]*[A-Z])["']""", text))
            raw = re.findall(r"""getenv\((?!rows\[v\]\.name|"TILELANG_|known|"SIMFUZZ_)[^)]*\)""", text)
            assert not raw or path.suffix == ".py", (path, raw)
    return found


def test_table():
    """docs/simulator.md has a row for each variable, and no other; the names in its text are these."""
    text = (ROOT / "docs/simulator.md").read_text()
    rows = re.findall(r"^\| `(TILELANG_\w+)` \|", text, re.M)
    assert len(rows) == len(set(rows)) and set(rows) == names_in_sources()
    assert set(re.findall(r"TILELANG_[A-Z_]*[A-Z]", text)) - {"TILELANG_SIM"} == set(rows)
