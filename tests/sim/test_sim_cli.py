"""The command line: list, disassemble, run, save, report faults."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("ending", ["", ".npy"])
def test_save_several(file, tmp_path, ending):
    """Each output has a file of its own, whatever the name given."""
    args = [file, "--grid", "2", "--block", "64", "--arg", "inout:i32:128:arange", "--arg", "out:i32:128"]
    assert cli.main([*args, "--arg", "i32:1", "--save", str(tmp_path / "o") + ending]) == 0
    for i in range(2):
        assert (np.load(tmp_path / f"o.{i}.npy") == np.arange(128) + i).all()


def test_fault(file, capsys):
    args = ["--grid", "3", "--block", "64", "--arg", "in:i32:128:ones", "--arg", "out:i32:128", "--arg", "i32:1"]
    assert cli.main([file, *args]) == 1
    err = capsys.readouterr().err
    assert "bounds" in err and "global_load_dword" in err and "workgroup (2, 0, 0)" in err


RUN = ["--grid", "1", "--block", "64", "--arg", "in:i32:64"]


@pytest.mark.parametrize(
    "args, text",
    [
        (["--grid", "1"], "--grid and --block"),
        (["--grid", "1", "--block", "64", "--arg", "in:x:4"], "in:f16:64x64; DTYPE is one of f16, f32"),
        (["--grid", "1", "--block", "64", "--save", "/nowhere/x.npy"], "there is no folder /nowhere"),
        (["--grid", "1", "--block", "64", "--arg", "in:i32:4:nope"], "unknown contents"),
        (["--grid", "1", "--block", "64"], "takes 3 arguments"),
        (["--grid", "1", "--block", "64", "--arg", "in:i32:99999999999999"], "cannot allocate"),
        (["--grid", "1", "--block", "64", "--arg", "in:i32:4294967296x4294967296"], "cannot allocate"),
        (["--kernel", "zzz", "--disasm"], "there is no kernel zzz; there are: k"),
        (["--check", "bogus", "--list"], "'bogus' does not exist"),
        (["--arch", "gfx000", "--list"], "gfx000"),
        (["--kernel", "zzz", "--verify"], "there is no kernel zzz; there are: k"),
        ([*RUN, "--arg", "out:i32:64", "--arg", "i32:1", "--trace", "0:1"], "no wave 1 in a workgroup of 1"),
        ([*RUN, "--arg", "i32:1", "--arg", "i32:1", "--save", "x.npy"], "argument +8 is a pointer"),
        ([*RUN, "--arg", "u64:4096", "--arg", "i32:1", "--save", "x.npy"], "no --arg is an output"),
        ([*RUN, "--arg", "out:i32:64", "--arg", "i32:1", "--save", "/tmp/"], "not of a folder"),
        ([*RUN, "--arg", "out:i32:64", "--arg", "i32:1", "--save", "/proc/x.npy"], "/proc/x.npy cannot be written"),
        ([*RUN, "--arg", "hex:012"], "no hex digits"),
        (["--grid", "1", "--block", "64", "--arg", "in:f16:70000:arange"], "arange: 65520 does not fit into f16"),
        (["--grid", "1", "--block", "64", "--arg", "f16:70000"], "--arg f16:70000: 70000.0 does not fit into f16"),
        (["--grid", "1", "--block", "64", "--arg", "bf16:1e39"], "1e+39 does not fit into bf16"),
        (["--grid", "1", "--block", "64", "--arg", "in:i32:4:nofile.npy"], "nofile.npy: No such file"),
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
    import time

    path = tmp_path / "loop.hsaco"
    path.write_bytes(code_object("again: s_branch again"))
    cmd = [sys.executable, "-m", "tilelang.sim", str(path), "--grid", "4", "--block", "64"]
    ran = tmp_path / "ran"  # is there as soon as an instruction has been executed
    env = {**os.environ, "TILELANG_SIM_MAX_INSTRUCTIONS": "0", "TILELANG_SIM_COVERAGE": str(ran)}
    p = subprocess.Popen(
        cmd,
        cwd=Path(__file__).resolve().parents[2],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    try:
        while p.poll() is None and not ran.exists():
            time.sleep(0.05)
        assert p.poll() is None
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=200)
    finally:
        p.kill()
    assert p.returncode == 130 and "interrupted" in err


SAVED = {
    "kernel": "k",
    "target": "gfx942",
    "block": [64, 1, 1],
    "grid": [[[0, 0, 64]]],
    "params": [
        {"name": "X", "kind": "buffer", "dtype": "int32", "dims": [None], "dim_divisors": [64], "strides": "dense"},
        {"name": "Y", "kind": "buffer", "dtype": "int32", "dims": [None], "dim_divisors": [1], "strides": "dense"},
        {"name": "c", "kind": "scalar", "dtype": "float32"},
    ],
    "kernarg": [
        {"offset": 0, "size": 8, "kind": "ptr", "param": "X", "axis": 0},
        {"offset": 8, "size": 8, "kind": "ptr", "param": "Y", "axis": 0},
        {"offset": 16, "size": 8, "kind": "scalar", "param": "c", "axis": 0},
        {"offset": 24, "size": 8, "kind": "dim", "param": "X", "axis": 0},
        {"offset": 32, "size": 8, "kind": "stride", "param": "Y", "axis": 0},
    ],
    "writes": ["Y"],
}
"""Y[i] = X[i] + the bits of c."""


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.hsaco"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(8, name="c"), Arg(8), Arg(8))))
    (tmp_path / "saved.hsaco.json").write_text(json.dumps(SAVED))
    return path


@pytest.mark.parametrize("file", ["saved.hsaco", "saved.hsaco.json"])
@pytest.mark.parametrize("dtype", ["", "i32:", "int32:"])
def test_saved_kernel(saved, capsys, file, dtype):
    """Arguments by name; the grid, the block and the dtypes come from the description."""
    save = str(saved.with_name("y.npy"))
    args = ["--arg", f"X={dtype}128:arange", "--arg", "Y=128", "--arg", "c=1.5", "--save", save]
    assert cli.main([str(saved.with_name(file)), *args, "--check", "all"]) == 0
    bits = int(np.float32(1.5).view(np.int32))
    assert (np.load(save) == np.arange(128) + bits).all()
    assert cli.main([str(saved.with_name("saved.hsaco.json")), "--list"]) == 0
    np.save(saved.with_name("x.npy"), np.full(64, 3))
    args = ["--arg", f"X={saved.with_name('x.npy')}", "--arg", "Y=64", "--arg", "c=-0x1p-3", "--save", save]
    assert cli.main([str(saved), *args]) == 0
    assert (np.load(save) == int(np.float32(-0.125).view(np.int32)) + 3).all()
    capsys.readouterr()


@pytest.mark.parametrize(
    "args, text",
    [
        (["X=128", "Y=128"], "no --arg for c of kernel k"),
        (["X=128", "Y=128", "c=1", "d=2"], "NAME one of X, Y, c"),
        (["X=128", "X=128", "Y=128", "c=1"], "X is given twice"),
        (["X=f16:128", "Y=128", "c=1"], "X is of dtype int32, not f16"),
        (["X=100", "Y=128", "c=1"], "dim 0 of X must be a multiple of 64"),
        (["X=64x2", "Y=128", "c=1"], "X has 1 dims, not 2"),
        (["X=a", "Y=128", "c=1"], "expected X=SHAPE"),
        (["X=128", "Y=128", "c=zz"], "'zz' is no f32"),
        ([], "takes --arg for X, Y, c"),
    ],
)
def test_saved_kernel_errors(saved, capsys, args, text):
    more = [] if args else ["--grid", "1"]
    assert cli.main([str(saved) + ".json", *(x for a in args for x in ("--arg", a)), *more]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    "args, text",
    [
        (
            ["A=16x24:ones", "B=32x40:ones", "C=16x40:zeros"],
            "--arg B=32x40:ones: dim 0 of B is K = 32, dim 1 of A is 24",
        ),
        (
            ["B=24x40:ones", "A=16x24:ones", "C=17x40:zeros"],
            "--arg C=17x40:zeros: dim 0 of C is M = 17, dim 0 of A is 16",
        ),
        (["A=16x24", "B=24x40", "C=16x40", "H=13"], "--arg H=13: dim 0 of H is K // 2 = 12, not 13"),
        (["A=16x24:ones", "B=24x40:ones", "C=16x40:zeros"], ""),
    ],
)
def test_dims_of_one_name_agree(tmp_path, capsys, args, text):
    """A saved kernel knows its dims' names: arguments of other sizes are refused, as a call refuses them."""
    import tilelang as tl

    m, n, k = tl.dims("M N K")

    @tl.kernel
    def mm(A: tl.float32[m, k], B: tl.float32[k, n], C: tl.float32[m, n], H: tl.float32[k // 2]):
        for i, j, r in tl.grid(m, n, k):
            C[i, j] += A[i, r] * B[r, j] + H[0] * 0

    path, save = str(tmp_path / "mm.hsaco"), str(tmp_path / "c.npy")
    tl.compile(mm, target="gfx942", dtypes=()).save(path)
    args = args if len(args) == 4 else [*args, "H=12"]
    run = [path, *(x for a in args for x in ("--arg", a)), "--check", "all", "--save", save]
    assert cli.main(run) == (2 if text else 0), capsys.readouterr().err
    assert text in capsys.readouterr().err
    if not text:
        assert (np.load(save) == 24).all() and np.load(save).shape == (16, 40)


def test_sizes_as_text():
    from tilelang.sim._saved import size_of

    names = {"K": (24, "dim 1 of A"), "M": (0, "dim 0 of A")}
    for text, want in (("K // 2", 12), ("(K - 1) % 5", 3), ("K * K + -1", 575), ("7", 7)):
        assert size_of(text, names) == want
    for text in ("N", "K // M", "K ** 2", "K.x", "f(K)", "", "'a' * K"):
        assert size_of(text, names) is None


def test_description_that_is_none(tmp_path, capsys):
    path = tmp_path / "x.hsaco.json"
    for text in ("{}", "[1]", "nonsense"):
        path.write_text(text)
        assert cli.main([str(path), "--list"]) == 2
        assert "does not describe a saved kernel" in capsys.readouterr().err


def test_scalars_of_every_kind(tmp_path, capsys):
    """Float scalars, and scalars narrower than their argument (8-byte slots)."""
    path, save = tmp_path / "a.hsaco", str(tmp_path / "o.npy")
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(8, name="c"))))
    for text, bits in [("f32:2.5", 0x40200000), ("f32:0x1p1", 0x40000000), ("f16:1", 0x3C00), ("bf16:1", 0x3F80),
                       ("i32:-1", 0xFFFFFFFF), ("u8:255", 255), ("i64:7", 7)]:  # fmt: skip
        args = ["--grid", "1", "--block", "64", "--arg", "in:u32:64:zeros", "--arg", "out:u32:64", "--arg", text]
        assert cli.main([str(path), *args, "--save", save]) == 0
        assert (np.load(save) == bits).all(), text
    for text in ("i8:300", "f32:x", "u32:-1"):
        assert cli.main([str(path), "--grid", "1", "--block", "64", "--arg", text]) == 2
    assert "'-1' is no u32" in capsys.readouterr().err


def test_the_chip_is_read_from_the_file(tmp_path, capsys):
    path = tmp_path / "a.hsaco"
    path.write_bytes(code_object("s_nop 0", arch="gfx90a"))
    assert cli.main([str(path), "--grid", "1", "--block", "64"]) == 0
    assert cli.main([str(path), "--grid", "1", "--block", "64", "--arch", "gfx942"]) == 2
    assert "for gfx90a, the device is gfx942" in capsys.readouterr().err


def test_reader_that_stops(tmp_path):
    """`... --disasm | head -1` ends without a message."""
    path = tmp_path / "long.hsaco"
    path.write_bytes(code_object("s_nop 0\n" * 20000))
    root = Path(__file__).resolve().parents[2]
    cmd = [sys.executable, "-m", "tilelang.sim", str(path), "--disasm"]
    p = subprocess.Popen(cmd, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline().strip() == "0: s_nop 0"
    p.stdout.close()
    assert p.wait(timeout=60) == 141 and p.stderr.read() == ""
    p.stderr.close()


NONE = [
    (b"", "cannot load a code object: this is an empty file"),
    (b"hello", "cannot load a code object: this is text"),
    (b"BC\xc0\xde....", "cannot load a code object: this is LLVM bitcode"),
    (b"\0" * 99, "neither an ELF file nor an offload bundle"),
    (0x36, "for gfx1030, which is not simulated"),
    (190, "an ELF file for CUDA without an AMDGPU code object"),
]


@pytest.mark.parametrize("data, text", NONE)
def test_files_that_are_none(file, tmp_path, capsys, data, text):
    """What is wrong with a file names the file, and a chip that is not simulated by its name."""
    code = bytearray(Path(file).read_bytes())
    if data == 190:
        code[18] = data
    elif isinstance(data, int):
        code[48] = data
    path = tmp_path / "x.hsaco"
    path.write_bytes(data if isinstance(data, bytes) else code)
    for option in ("--list", "--verify"):
        assert cli.main([str(path), option]) == 2
        err = capsys.readouterr().err
        assert text in err and f"error: {path}: " in err
    assert cli.main([str(tmp_path), "--list"]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: Is a directory\n"


def test_values_of_files_must_fit(tmp_path, capsys):
    path = tmp_path / "a.hsaco"
    path.write_bytes(code_object("s_nop 0", (BUF,)))
    cases = [
        ([1.5], "i32", 0),
        ([np.nan], "u8", 0),
        ([300], "u8", 0),
        ([-1], "u32", 0),
        ([1e6], "f16", 0),
        ([np.inf, np.nan], "f16", 1),
        ([3.0, -4], "i8", 1),
        ([1, 0], "bf16", 1),
    ]
    for values, dtype, ok in cases:
        np.save(tmp_path / "x.npy", np.array(values))
        args = [str(path), "--grid", "1", "--block", "64", "--arg", f"in:{dtype}:{len(values)}:{tmp_path}/x.npy"]
        assert cli.main(args) == (0 if ok else 2), (values, dtype)
        err = capsys.readouterr().err
        assert ok or f"x.npy: {float(values[0])}"[:9] in err and f"does not fit into {dtype}" in err
    for what in (b"", b"text", b"\x93NUMPY\x01\0"):
        (tmp_path / "x.npy").write_bytes(what)
        assert cli.main([str(path), "--grid", "1", "--block", "64", "--arg", f"in:f32:1:{tmp_path}/x.npy"]) == 2
        assert f"error: {tmp_path}/x.npy: " in capsys.readouterr().err


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3fn", "f8e5m2fnuz"])
def test_small_floats_go_through_files(tmp_path, dtype):
    """What --save writes of a dtype that NumPy does not know (its bits) is what --arg reads."""
    pytest.importorskip("ml_dtypes")
    path, o = tmp_path / "a.hsaco", tmp_path / "o.npy"
    path.write_bytes(code_object("s_nop 0", (BUF,)))
    args = [str(path), "--grid", "1", "--block", "64", "--save", str(o), "--arg"]
    assert cli.main([*args, f"inout:{dtype}:64:random(3)"]) == 0
    first = np.load(o)
    assert first.dtype == (np.uint16 if dtype == "bf16" else np.uint8) and len(set(first.tolist())) > 20
    assert cli.main([*args, f"inout:{dtype}:64:{o}"]) == 0
    assert (np.load(o) == first).all()


def test_arguments_of_many_bytes(tmp_path, capsys):
    """A struct is given by its bytes; a scalar does not pass for it."""
    path, o = tmp_path / "a.hsaco", tmp_path / "o.npy"
    path.write_bytes(code_object(ADD, (BUF, BUF, Arg(24, name="s"))))
    args = [str(path), "--grid", "1", "--block", "64", "--arg", "in:i32:64:zeros", "--arg", "out:i32:64", "--arg"]
    assert cli.main([*args, "i32:1"]) == 2
    assert "the argument s has 24 bytes: hex:..." in capsys.readouterr().err
    assert cli.main([*args, "hex:" + "07000000" + 20 * "ff", "--save", str(o)]) == 0
    assert (np.load(o) == 7).all()
    assert cli.main([*args, "hex:0700"]) == 2
    assert "has 24 bytes, the value has 2" in capsys.readouterr().err


def test_json(file, tmp_path, capsys):
    """--json: one object on stdout, whatever was asked for."""

    def ask(*args: str, status: int = 0):
        assert cli.main([file, "--json", *args]) == status
        return json.loads(capsys.readouterr().out)

    kernel = ask("--list")["kernels"][0]
    assert kernel["name"] == "k" and kernel["resources"]["wave_size"] == 64 and kernel["args"][2]["name"] == "c"
    assert ask("--disasm", "--kernel", "k")["kernels"][0]["code"][0]["text"].startswith("s_load")
    assert ask("--verify")["findings"] == []
    out = str(tmp_path / "o.npy")
    run = ["--grid", "2", "--block", "64", "--arg", "in:i32:128", "--arg", "out:i32:128", "--arg", "i32:1"]
    done = ask(*run, "--save", out)
    assert done["stats"]["instructions"] == 22 and done["reports"] == []
    assert done["saved"] == [{"dtype": "i32", "shape": [128], "file": out}]
    report = ask("--grid", "3", *run[2:], status=1)["reports"][0]
    assert report["check"] == "bounds" and report["workgroup"] == [2, 0, 0] and report["pc"] == 0x20


def test_nothing_of_a_zero_size_array_is_inside(tmp_path):
    path = tmp_path / "a.hsaco"
    body = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_mov_b32 v1, 0\ns_waitcnt lgkmcnt(0)\nglobal_load_ubyte v2, v1, s[4:5]"
    path.write_bytes(code_object(body, (BUF,)))
    dev = sim.Device("gfx942")
    k = dev.load(path).kernels["k"]
    for empty in (dev.empty(0, name="nothing"), np.zeros((4, 0), np.uint8)):
        with pytest.raises(sim.SimulatorFault, match="0 bytes"):
            k.launch(1, 64, [empty])
    assert dev.empty(0).numpy().shape == (0,)


def test_sizes_beyond_64_bits(tmp_path):
    dev = sim.Device("gfx942")
    for n in (1 << 47, (1 << 64) + 100, 1 << 63):
        with pytest.raises(MemoryError, match="cannot allocate"):
            dev.empty(n)


def test_full_disk(file):
    """stdout that takes nothing: an error, no traceback at the end."""
    root = Path(__file__).resolve().parents[2]
    with open("/dev/full", "w") as full:
        r = subprocess.run([sys.executable, "-m", "tilelang", "sim", file, "--list"], cwd=root, stdout=full,
                           stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert r.returncode == 2 and r.stderr == "error: the output: No space left on device\n"
