"""The code of docs/guide.md and the examples that check themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl

ROOT = Path(__file__).resolve().parents[2]
N = tl.dim("N")


def run(path: Path, where: Path) -> str:
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, str(path)], cwd=where, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_guide(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guide.md").read_text(encoding="utf-8"), re.S)
    (tmp_path / "guide.py").write_text("".join(blocks))
    run(tmp_path / "guide.py", tmp_path)
    assert (tmp_path / "linear.hsaco.json").exists()


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_example(name: str, tmp_path: Path) -> None:
    assert run(ROOT / "examples" / f"{name}.py", tmp_path) == "True"


@tl.kernel
def misspelt(X: tl.Buffer[N]):
    p = tl.program_ids(0)
    X[p * 64 : (p + 1) * 64] = 1


@tl.kernel
def unknown(X: tl.Buffer[N]):
    p = tl.program_id(0)
    X[p * 64 : (p + 1) * 64] = tl.atomic_add(X, 1)


@tl.kernel
def method(X: tl.Buffer[N]):
    p = tl.program_id(0)
    X[p * 64 : (p + 1) * 64] = X[p * 64 : (p + 1) * 64].sum()


@tl.kernel
def foreign(X: tl.Buffer[N]):
    p = tl.program_id(0)
    X[p * 64 : (p + 1) * 64] = np.exp(X[p * 64 : (p + 1) * 64])


@tl.kernel(grid=1)
def gathered(X: tl.Buffer[N]):
    offsets = tl.arange(0, 64)
    X[0:64] = X[offsets]


@tl.kernel
def mutable(X: tl.Buffer[N]):
    a = tl.alloc_local([64], tl.float32)
    a[:] = X[0:64]
    X[0:64] = a


@tl.kernel
def shared_element_stored(X: tl.Buffer[N]):
    a = tl.alloc_shared([64], tl.float32)
    a[:] = X[0:64]
    a[0] = 1
    X[0:64] = a


@tl.kernel
def shared_element_loaded(X: tl.Buffer[N]):
    a = tl.alloc_shared([64], tl.float32)
    a[:] = X[0:64]
    X[0:64] = a[0]


@pytest.mark.parametrize("kernel", [shared_element_stored, shared_element_loaded], ids=lambda v: v.__name__)
def test_refused_by_name(kernel: tl.Kernel) -> None:
    with pytest.raises(tl.CompileError, match="one element .* shared tile is not lowered yet"):
        kernel(np.zeros(100, np.float32))


@pytest.mark.parametrize(
    "kernel, hint",
    [
        (misspelt, "did you mean tl.program_id?"),
        (unknown, "tl.atomic_add is not there yet: docs/frontend.md has the list"),
        (method, "it is a function: tl.sum(x, ...)"),
        (
            foreign,
            "functions of other packages take no tiles; use those of tilelang: use tl.exp, which takes tiles and "
            "run-time scalars",
        ),
        (mutable, "rebind a name instead (x = x * 2); tl.where changes a part"),
        (gathered, "a block is selected by a slice, X[p * C : (p + 1) * C], which needs no mask"),
    ],
    ids=lambda v: v.__name__ if isinstance(v, tl.Kernel) else "",
)
def test_hint(kernel: tl.Kernel, hint: str) -> None:
    with pytest.raises(tl.CompileError) as e:
        kernel(np.zeros(100, np.float32))
    assert e.value.hint == hint


@pytest.mark.parametrize("text", ["x is not small", ""])
def test_assertion_tells_its_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault of a run-time assertion has its text and its line, with one kernel or several assertions in it."""

    @tl.kernel(grid=2)
    def checked(X: tl.Buffer[N], limit: tl.float32):
        p = tl.program_id(0)
        x = X[p * 64 : (p + 1) * 64]
        tl.assert_(x > -100, "x is far below")
        if text:
            assert tl.max(x, axis=0) < limit, text
        else:
            assert tl.max(x, axis=0) < limit
        X[p * 64 : (p + 1) * 64] = x + 1

    x = np.arange(100, dtype=np.float32)
    checked(x, 100.0)
    with pytest.raises(tl.SimulatorFault) as e:
        checked(x, 80.0)
    want = text or "assertion failed"
    (report,) = e.value.reports
    assert report.check == "trap" and report.message.startswith(want) and report.workgroup == [1, 0, 0]
    assert f"trap: {want}: s_trap 2" in str(e.value) and "test_guide.py:" in str(e.value)
    x[3] = -200
    with pytest.raises(tl.SimulatorFault, match="trap: x is far below: s_trap 2"):
        checked(x, 200.0)


def test_python_type_as_annotation() -> None:
    def scaled(X: tl.Buffer[N], s: float): ...

    with pytest.raises(tl.CompileError, match=r"got Python's float; name the width, e.g. tl\.float32"):
        tl.kernel(scaled)(np.zeros(1, np.float32), 1.0)
