"""The command line after a fault, and launches that would run with what nobody gave."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simlib import ADD, BUF, Arg, clang_c, code_object

sim = pytest.importorskip("tilelang.sim")
cli = pytest.importorskip("tilelang.sim.__main__")

CODE = code_object(ADD, (BUF, BUF, Arg(4, name="c")))
RUN = ["--grid", "2", "--block", "64", "--arg", "in:i32:128:arange"]
SHORT = [*RUN, "--arg", "out:i32:120", "--arg", "i32:1"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "add.hsaco"
    path.write_bytes(CODE)
    return str(path)


def test_json_after_a_fault(file, tmp_path, capsys):
    """Statistics, outputs and trace are there as after a clean run."""
    out = str(tmp_path / "o.npy")
    assert cli.main([file, *SHORT, "--json", "--trace", "1:0", "--save", out]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [r["check"] for r in told["reports"]] == ["bounds"] and told["seconds"] > 0 and told["warnings"] == []
    assert told["stats"]["instructions"] == 22 and told["stats"]["by_pc"]["48"][0] == 2
    assert told["saved"] == [{"dtype": "i32", "shape": [120], "file": out}]
    assert (np.load(out) == np.arange(120) + 1).all()
    (wave,) = told["trace"]
    assert wave["workgroup"] == [1, 0, 0] and wave["wave"] == 0 and len(wave["instructions"]) == 11
    load = next(i for i in wave["instructions"] if i["text"].startswith("global_load"))
    assert load["registers"]["v2"] == list(range(64, 128)) and load["exec_count"] == 64
    assert load["accesses"][0]["lanes"] == list(range(64)) and len(set(load["accesses"][0]["addresses"])) == 64
    clean = [file, *RUN, "--arg", "out:i32:128", "--arg", "i32:1", "--json", "--trace", "0:0"]
    assert cli.main(clean) == 0
    again = json.loads(capsys.readouterr().out)
    assert set(again) == set(told) and len(again["trace"]) == 1


def test_text_after_a_fault(file, tmp_path, capsys):
    """What was asked for is shown and saved; the outputs themselves are not printed."""
    out = str(tmp_path / "o.npy")
    assert cli.main([file, *SHORT, "--stats", "--trace", "1:0", "--disasm", "--save", out]) == 1
    told = capsys.readouterr()
    assert "22 instructions of waves" in told.out and "workgroup (1, 0, 0), wave 0: 11 instructions" in told.out
    assert "         2     30: global_store_dword" in told.out and f"saved i32[120] to {out}" in told.out
    assert told.err.startswith("bounds: write of 4 bytes") and (np.load(out) == np.arange(120) + 1).all()
    assert cli.main([file, *SHORT]) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("check, status", [("bounds", 1), ("all", 1), ("none", 0), ("race,init", 0)])
def test_stores_to_an_input(file, capsys, check, status):
    """An array given as in: that the kernel stores to is told by its name; with bounds the instruction is, too."""
    args = [file, "--grid", "2", "--block", "64", "--check", check, "--arg", "in:i32:128:arange", "--arg", "in:i32:128"]
    assert cli.main([*args, "--arg", "i32:1"]) == status
    err = capsys.readouterr().err
    assert "warning: the kernel stores to argument +8, which is only an input; inout:... shows" in err
    assert ("of the read-only hipMalloc 'argument +8'" in err and "+0x30: global_store_dword" in err) == bool(status)
    assert cli.main([*args, "--arg", "i32:1", "--json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert len(told["warnings"]) == 1 and len(told["reports"]) == status
    for role in ("inout", "out"):
        assert cli.main([*args[:-1], f"{role}:i32:128", "--arg", "i32:1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_reads_past_an_input_are_no_stores(file, capsys):
    args = [
        file,
        "--grid",
        "2",
        "--block",
        "64",
        "--arg",
        "in:i32:100:arange",
        "--arg",
        "out:i32:128",
        "--arg",
        "i32:1",
    ]
    assert cli.main(args) == 1
    err = capsys.readouterr().err
    assert "after the end of hipMalloc 'argument +0'" in err and "warning" not in err


def test_protected_memory():
    dev = sim.Device("gfx942")
    k = dev.load(CODE).kernels["k"]
    a, out = dev.array(np.arange(128, dtype=np.int32)), dev.empty(512, name="out")
    k.launch(2, 64, [a, out, np.int32(1)])
    out.protect()
    with pytest.raises(sim.SimulatorFault, match="read-only hipMalloc 'out'") as e:
        k.launch(2, 64, [a, out, np.int32(2)])
    assert e.value.stats["instructions"] == 22 and e.value.trace is None
    assert (out.numpy(np.int32) == np.arange(128) + 1).all()
    out.free()
    with pytest.raises(ValueError, match="has been freed"):
        out.protect()


WRONG = [
    ["--grid", "1"],
    ["--bogus"],
    ["--grid", "x", "--list"],
    ["--arg"],
    ["--delivery", "later"],
    [*RUN, "--arg", "in:x:4"],
    ["--kernel", "zzz", "--list"],
    ["--kernel", "zzz", "--verify"],
    ["--check", "bogus", "--list"],
    ["--arch", "gfx000", "--list"],
    ["--arch", "gfx1100", "--list"],
    ["--threads", "0", "--list"],
    [*RUN, "--list"],
    ["--verify", "--save", "x.npy"],
    ["--list", "--verify"],
    ["--disasm", "--verify"],
    ["--disasm", "--arg", "i32:1"],
    ["--list", "--disasm", "--stats"],
    [*RUN, "--arg", "out:i32:128", "--arg", "i32:1", "--save", ""],
    [*RUN, "--arg", "out:i32:128", "--arg", "i32:1", "--save", "/dev/full"],
    [*RUN, "--arg", "out:i32:128", "--arg", "i32:1", "--check", "none,all"],
    [*RUN, "--arg", "out:i32:128", "--arg", "i32:1", "--check", "bounds,"],
    [*RUN, "--arg", "out:i32:128", "--arg", "f64:1"],
    [*RUN, "--arg", "out:i32:128", "--arg", "in:i32:4"],
    [*RUN, "--arg", "out:i32:128", "--arg", "null"],
    [*RUN, "--arg", "hex:00", "--arg", "i32:1"],
    ["--grid", str(1 << 32), *RUN[2:], "--arg", "out:i32:128", "--arg", "i32:1"],
    ["--grid", "0", *RUN[2:], "--arg", "out:i32:128", "--arg", "i32:1"],
    ["--block", "0", *RUN, "--block", "0", "--arg", "out:i32:128", "--arg", "i32:1"],
    [*RUN[:4], "--arg", "in:i32:128:/dev/null.npy"],
    [*RUN[:4], "--arg", "in:i32:128:" + __file__ + ".npy"],
]


@pytest.mark.parametrize("args", WRONG)
def test_wrong_usage(file, capsys, args):
    """One line on stderr; with --json also one object on stdout."""
    for more in ([], ["--json"]):
        status = cli.main([file, *args, *more])
        told = capsys.readouterr()
        assert status == 2 and told.err.startswith("error: ") and told.err.count("\n") == 1
        if more:
            assert json.loads(told.out) == {"error": told.err[len("error: ") : -1]}
        else:
            assert told.out == ""


@pytest.mark.parametrize("given, left", [
    ({}, "at offset 0 (8 bytes), at offset 8 (8 bytes), c at offset 16 (4 bytes)"),
    ({0: 1, 16: np.int32(1)}, ": at offset 8 (8 bytes)$"),
    ({0: 1, 8: np.int32(0), 16: np.int32(1)}, ": at offset 8 (8 bytes)$"),
    ({0: 1, 8: 2}, ": c at offset 16 (4 bytes)$"),
    ({0: bytes(19)}, ": c at offset 16 (4 bytes)$"),
])  # fmt: skip
def test_arguments_that_are_left_out(given, left):
    k = sim.Device("gfx942").load(CODE).kernels["k"]
    with pytest.raises(TypeError, match="kernel k: the values given leave out arguments") as e:
        k.launch(1, 64, given)
    assert left.strip("$") in str(e.value) and (left[-1] != "$" or str(e.value).endswith(left[:-1]))


def test_arguments_in_one_piece():
    """What covers the arguments may be cut in any way; padding need not be given."""
    dev = sim.Device("gfx942")
    k = dev.load(CODE).kernels["k"]
    x, y = dev.array(np.arange(64, dtype=np.int32)), dev.empty(256)
    whole = np.array([x.address, y.address, 7], np.uint64).tobytes()
    for args in ({0: whole[:20]}, {0: whole[:3], 3: whole[3:17], 17: whole[17:20]}, {0: x, 8: y, 16: np.int32(7)}):
        y.write(np.zeros(64, np.int32))
        k.launch(1, 64, args)
        assert (y.numpy(np.int32) == np.arange(64) + 7).all()
    bare = dev.load(CODE.replace(b"AMDGPU\0", b"NOBODY\0")).kernels["k"]
    bare.launch(1, 64, {0: x, 8: y})  # without metadata nobody knows: 0
    assert (y.numpy(np.int32) == np.arange(64)).all()


@pytest.mark.parametrize("wave", [2, 77, -1, 1 << 32])
def test_a_wave_that_is_not_there(wave):
    k = sim.Device("gfx942").load(CODE).kernels["k"]
    x = np.zeros(256, np.int32)
    with pytest.raises(ValueError, match=f"trace: there is no wave {wave} in a workgroup of 2"):
        k.launch(1, 128, [x, x, np.int32(1)], trace=sim.TraceOptions(wave=wave))
    stats = k.launch(1, 128, [x, x, np.int32(1)], trace=sim.TraceOptions(wave=1))
    assert [w.wave for w in stats["trace"].waves] == [1]


@pytest.mark.parametrize("key", ["vgpr", "exec_lo", "lanes", 0])
def test_state_with_an_unknown_field(key):
    with pytest.raises(
        ValueError, match=f"state has no field {key!r}; there are: wave, exec, vcc, scc, m0, s, v, lds, mode"
    ):
        sim.execute("gfx942", b"", {key: 0})
    assert sim.execute("gfx942", b"", sim.execute("gfx942", b"", {}))["wave"] == 64


@pytest.fixture(scope="module")
def shell(file):
    """Runs the command line below a shell's redirections: (status, stdout, stderr)."""
    root = Path(__file__).resolve().parents[2]

    def run(args: str, after: str) -> tuple[int, str, str]:
        cmd = f"{shlex.quote(sys.executable)} -m tilelang sim {args.replace('FILE', shlex.quote(file))} {after}"
        r = subprocess.run(["bash", "-c", cmd], cwd=root, capture_output=True, text=True, timeout=120)
        assert "Traceback" not in r.stderr and "Exception" not in r.stderr, r.stderr
        return r.returncode, r.stdout, r.stderr

    return run


ALL = "FILE --grid 2 --block 64 --arg in:i32:128 --arg out:i32:128 --arg i32:1"


@pytest.mark.parametrize("args", ["FILE --list", ALL, ALL + " --json", "--help", "--libdir"])
def test_output_that_cannot_be_written(shell, args):
    """A closed stream is none; a full disk is an error; nothing of stderr goes to stdout."""
    assert shell(args, ">&-")[0] == 0
    assert shell(args, ">/dev/full") == (2, "", "error: the output: No space left on device\n")
    assert shell(args, "2>&-")[0] == 0
    assert shell(args, "<&-")[0] == 0


@pytest.mark.parametrize("more", ["", " --json"])
def test_errors_that_cannot_be_told(shell, more):
    status, out, err = shell("nofile" + more, "2>&-")
    assert status == 2 and (json.loads(out) == {"error": "nofile: No such file or directory"} if more else out == "")
    assert shell("nofile" + more, "2>/dev/full")[0] == 2
    assert shell("nofile" + more, ">&- 2>&-") == (2, "", "")
    assert shell("nofile" + more, ">/dev/full") == (2, "", "error: nofile: No such file or directory\n")
    assert shell("nofile" + more, "| true; exit ${PIPESTATUS[0]}")[0] == 2


def test_help_names_every_option(shell):
    """--help lists the checks and dtypes that there are; every option is in the page."""
    _, text, _ = shell("--help", "")
    flat = " ".join(text.split())
    names = [*sim.Device("gfx942", checks="all").checks, "strict"]
    assert f"names: {','.join(names)}" in flat
    for name in cli.DTYPES:
        assert f" {name}" in flat
    page = (Path(__file__).resolve().parents[2] / "docs/simulator.md").read_text()
    for option in set(re.findall(r"--[a-z]+", text)) - {"--help"}:
        assert re.search(rf"{option}\b", page), option


SAVED = {
    "kernel": "k", "target": "gfx942", "block": [64, 1, 1], "grid": [[[0, 0, 64]]],
    "params": [
        {"name": "X", "kind": "buffer", "dtype": "int32", "dims": [None], "dim_divisors": [1], "strides": "dense"},
        {"name": "Y", "kind": "buffer", "dtype": "int32", "dims": [None], "dim_divisors": [1], "strides": "dense"},
        {"name": "c", "kind": "scalar", "dtype": "int32"},
    ],
    "kernarg": [{"offset": 8 * i, "kind": "scalar" if p == "c" else "ptr", "param": p, "axis": 0}
                for i, p in enumerate("XYc")],
    "writes": ["Y"],
}  # fmt: skip
ARGS = ["--arg", "X=128:arange", "--arg", "Y=128", "--arg", "c=5"]


@pytest.fixture
def saved(tmp_path):
    def write(what) -> str:
        (tmp_path / "k.hsaco").write_bytes(code_object(ADD, (BUF, BUF, Arg(8, name="c"))))
        (tmp_path / "k.hsaco.json").write_text(what if isinstance(what, str) else json.dumps(what))
        return str(tmp_path / "k.hsaco.json")

    return write


def test_saved(saved, tmp_path, capsys):
    """As compiled.save writes it; an argument that the kernel is not said to write is an input."""
    path, out = saved(SAVED), str(tmp_path / "o.npy")
    assert cli.main([path, *ARGS, "--save", out]) == 0 and (np.load(out) == np.arange(128) + 5).all()
    assert cli.main([path, *ARGS, "--block", "64x1"]) == 0
    capsys.readouterr()
    assert cli.main([path, *ARGS, "--block", "128"]) == 2
    assert "--block: the kernel was compiled for 64x1x1 threads" in capsys.readouterr().err
    assert cli.main([saved(SAVED | {"writes": []}), *ARGS]) == 1
    assert "warning: the kernel stores to argument Y, which is only an input" in capsys.readouterr().err


def broken() -> dict[str, object]:
    """Descriptions with one thing missing or of another kind, by what it is."""
    out: dict[str, object] = {f"no {k}": {n: v for n, v in SAVED.items() if n != k} for k in SAVED}
    for k in SAVED:
        for bad in (5, "x", [5], [{}], {}) + ((None,) if k != "grid" else ()):
            if not (k in ("kernel", "target") and bad == "x") and not (k == "block" and bad == [5]):
                out[f"{k} {bad}"] = SAVED | {k: bad}
    for i, k, bad in [(0, "dims", 3), (0, "dim_divisors", [0]), (0, "dim_divisors", []), (0, "strides", [1, 2]),
                      (0, "name", 5), (1, "kind", None), (2, "dtype", 7)]:  # fmt: skip
        params = [dict(p) for p in SAVED["params"]]
        params[i][k] = bad
        out[f"param {i} {k} {bad}"] = SAVED | {"params": params}
    for k, bad in [("offset", "x"), ("param", "Z"), ("axis", None), ("kind", "x"), ("kind", "scalar")]:
        slots = [dict(s) for s in SAVED["kernarg"]]
        slots[0][k] = bad
        out[f"slot {k} {bad}"] = SAVED | {"kernarg": slots}
    slots = [dict(s) for s in SAVED["kernarg"]]
    slots[0] |= {"kind": "dim", "axis": 1}
    out["axis beyond"] = SAVED | {"kernarg": slots}
    for grid in ([[[0, 1, 64]]], [[[9, 0, 64]]], [[[2, 0, 64]]], [[[0, 0, 0]]], [[[0, 0]]], [[0]]):
        out[f"grid {grid}"] = SAVED | {"grid": grid}
    return out | {"text": "hello", "number": "5", "nothing": "", "deep": "[" * 100000, "cut": json.dumps(SAVED)[:99]}


@pytest.mark.parametrize("what", broken())
def test_broken_descriptions(saved, capsys, what):
    path = saved(broken()[what])
    assert cli.main([path, *ARGS]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {path} does not describe a saved kernel (") and err.count("\n") == 1


@pytest.mark.parametrize("dtype", ["float33", "float8_e3m4", "int", "complex64"])
def test_a_dtype_that_is_not_there(saved, capsys, dtype):
    params = [dict(p) for p in SAVED["params"]]
    params[0]["dtype"] = dtype
    assert cli.main([saved(SAVED | {"params": params}), *ARGS]) == 2
    assert f"an argument of an unknown dtype '{dtype}'" in capsys.readouterr().err


CALLS = """
__attribute__((noinline)) static unsigned below(unsigned x) { return x * 3 + 1; }
__attribute__((amdgpu_kernel)) void k(__attribute__((address_space(1))) unsigned *out)
{
    unsigned i = __builtin_amdgcn_workitem_id_x();
    out[i] = below(i);
}
"""


def test_trace_names_what_called_functions_do(tmp_path, capsys):
    """The function lies before the kernel: its instructions have their text and a negative place."""
    file = tmp_path / "calls.hsaco"
    file.write_bytes(clang_c(CALLS, "gfx942", "-O1"))
    run = [str(file), "--grid", "1", "--block", "64", "--arg", "out:u32:64", "--trace", "0:0"]
    assert cli.main([*run, "--json"]) == 0
    (wave,) = json.loads(capsys.readouterr().out)["trace"]
    called = [x for x in wave["instructions"] if x["pc"] < 0]
    assert any(x["text"].startswith("s_setpc_b64") for x in called)
    assert all(x["text"] for x in wave["instructions"])
    assert cli.main(run) == 0
    text = capsys.readouterr().out
    assert "s_setpc_b64" in text and "?" not in text
