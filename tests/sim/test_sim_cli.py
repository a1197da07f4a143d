"""The command line: list, disassemble, run, save, report faults."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import ADD, BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")
cli = pytest.importorskip("tilelang.sim.__main__")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "add.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(4, name="c"))))
    return str(path)


def test_list_and_disasm(file, capsys):
    assert cli.main([file, "--list"]) == 0
    out = capsys.readouterr().out
    assert "wave64" in out and "global_buffer" in out and "+16" in out
    assert cli.main([file, "--disasm"]) == 0
    out = capsys.readouterr().out
    assert "v_add_u32" in out and len(out.splitlines()) == 11


def test_run_and_save(file, tmp_path, capsys):
    save = str(tmp_path / "out.npy")
    args = [file, "--grid", "2", "--block", "64", "--arg", "in:i32:128:arange", "--arg", "out:i32:128"]
    assert cli.main([*args, "--arg", "i32:0x10", "--save", save, "--stats", "--disasm"]) == 0
    assert (np.load(save) == np.arange(128) + 16).all()
    out = capsys.readouterr().out
    assert "22 instructions" in out and "v_add_u32" in out and "512 by 4-byte accesses" in out


def test_fault(file, capsys):
    args = ["--grid", "3", "--block", "64", "--arg", "in:i32:128:ones", "--arg", "out:i32:128", "--arg", "i32:1"]
    assert cli.main([file, *args]) == 1
    err = capsys.readouterr().err
    assert "bounds" in err and "global_load_dword" in err and "workgroup (2, 0, 0)" in err


@pytest.mark.parametrize(
    "args, text",
    [
        (["--grid", "1"], "--grid and --block"),
        (["--grid", "1", "--block", "64", "--arg", "in:x:4"], "in:f16:64x64"),
        (["--grid", "1", "--block", "64", "--arg", "in:i32:4:nope"], "unknown contents"),
        (["--grid", "1", "--block", "64"], "takes 3 arguments"),
        (["--kernel", "zzz", "--disasm"], "there is no kernel zzz; there are: k"),
        (["--check", "bogus", "--list"], "'bogus' does not exist"),
        (["--arch", "gfx000", "--list"], "gfx000"),
    ],
)
def test_errors(file, capsys, args, text):
    assert cli.main([file, *args]) == 2
    assert text in capsys.readouterr().err


def test_libdir(capsys):
    assert cli.main(["--libdir"]) == 0
    assert capsys.readouterr().out.strip().endswith("lib")


def test_interrupt(tmp_path):
    """Ctrl-C stops a kernel that would run for ever."""
    import os
    import signal
    import subprocess
    import sys
    import time
    from pathlib import Path

    path = tmp_path / "loop.hsaco"
    path.write_bytes(code_object("again: s_branch again"))
    cmd = [sys.executable, "-m", "tilelang.sim", str(path), "--grid", "4", "--block", "64"]
    env = {**os.environ, "TILELANG_SIM_MAX_INSTRUCTIONS": "4000000000"}
    p = subprocess.Popen(cmd, cwd=Path(__file__).resolve().parents[2], env=env, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    assert p.poll() is None
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 130 and "interrupted" in err
