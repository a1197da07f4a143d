"""Finding and binding the HIP library, and what is said when there is none, no GPU, or not all functions."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from tilelang import errors


def test_no_gpu(new_core, fake_path):
    path = fake_path("-DNO_DEVICE")
    core = new_core(hip=path)
    with pytest.raises(errors.DeviceError) as info:
        core.device("rocm")
    text = str(info.value)
    assert str(path) in text and "finds no AMD GPU" in text and "hipErrorNoDevice" in text and "simulator" in text


def test_no_library(new_core):
    core = new_core()
    with pytest.raises(errors.DeviceError, match="TILELANG_HIP_LIB=/nonexistent/hip.so cannot be loaded"):
        core.device("rocm")
    with pytest.raises(errors.DeviceError, match="simulator cannot be loaded"):
        core.device("cpu")
    with pytest.raises(ValueError):
        core.device("cuda")


def test_lacking_function(new_core, fake_path):
    with pytest.raises(errors.DeviceError, match="no hipModuleLaunchKernel"):
        new_core(hip=fake_path("-DLACKS_LAUNCH")).device("rocm")


def test_through_get_proc_address(new_core, fake_path):
    hip = new_core(hip=fake_path("-DGET_PROC")).device("rocm")
    assert (hip.kind, hip.device_count, hip.version, hip.arch(), hip.arch(1)) == (
        "rocm",
        2,
        70200000,
        "gfx942",
        "gfx1100",
    )
    assert hip.num_cus() == 304 and hip.last_stats() is None and hip.synchronize() is None
    with pytest.raises(IndexError):
        hip.arch(2)
    with pytest.raises(TypeError):
        type(hip)()


def test_mapped_library_comes_first(compile_c, fake_path):
    """A libamdhip64.so that the process has already mapped (PyTorch's) is taken, whatever the environment names."""
    from pathlib import Path

    path = compile_c(Path(__file__).parent / "fake_hip.c", name="libamdhip64.so.7")
    other = fake_path("-DROCM")
    code = f"""
import ctypes, os
os.environ["TILELANG_HIP_LIB"] = {str(other)!r}
ctypes.CDLL({str(path)!r})
import tilelang._core as core
print(core.device("rocm").path)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().splitlines()[-1] == str(path)


def test_simulator_opens():
    """The real simulator stands behind CPU tensors."""
    import tilelang._core as core

    sim = core.device("cpu")
    assert sim.kind == "cpu" and sim.device_count >= 1 and sim.arch().startswith("gfx")


def test_errors_pickle_and_catch():
    made = [
        errors.CompileError(
            "no", "f.py", 3, 5, 9, "do so", "TYPE", [("error", "no", "f.py", 3, 5, 9, "do so", "TYPE")]
        ),
        errors.LaunchError("A: wrong"),
        errors.LaunchTypeError("A: wrong"),
        errors.DeviceError("bad", 700, "hipErrorIllegalAddress"),
        errors.SimulatorFault.from_report("launch of k", '[{"check": "race", "message": "m"}]', 700, "hipErrorX"),
    ]
    for err in made:
        again = pickle.loads(pickle.dumps(err))
        assert type(again) is type(err) and str(again) == str(err)
        assert {k: v for k, v in vars(again).items() if k != "reports"} == {
            k: v for k, v in vars(err).items() if k != "reports"
        }
    assert again.reports[0].check == "race"
    assert isinstance(made[1], ValueError) and not isinstance(made[1], TypeError)
    assert isinstance(made[2], ValueError) and isinstance(made[2], TypeError)
    assert isinstance(made[4], errors.DeviceError)


def test_compile_error_shows_the_place(tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text("import tilelang as tl\n    x = foo(bar)\n")
    text = str(errors.CompileError("bar is unknown", str(file), 2, 13, 16, "name it"))
    assert text.splitlines() == [
        f"{file}:2:13: bar is unknown",
        "        x = foo(bar)",
        "                ^^^",
        "  hint: name it",
    ]
