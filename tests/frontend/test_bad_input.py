"""Bad input to kernels: each is a located or named error, and nothing is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fe_util import module

import tilelang as tl

ROOT = Path(__file__).resolve().parent.parent.parent
M, N, K = tl.dims("M N K")


@tl.kernel
def add(a: tl.Buffer[M, N], b: tl.Buffer[M, N], c: tl.Buffer[M, N, tl.float32]):
    i = tl.program_id(0)
    j = tl.program_id(1)
    c[i, j * 64 : j * 64 + 64] = a[i, j * 64 : j * 64 + 64] + b[i, j * 64 : j * 64 + 64]


def good() -> list[Any]:
    return [np.ones((4, 8), np.float32), np.ones((4, 8), np.float32), np.full((4, 8), -7, np.float32)]


def overlapping(x: Any) -> Any:
    return np.lib.stride_tricks.as_strided(x, (4, 8), (4, 4))


def frozen(x: Any) -> Any:
    x.flags.writeable = False
    return x


CASES: dict[str, tuple[int, Any, type[Exception], str]] = {
    "rank": (0, lambda x: x.ravel(), tl.LaunchError, r"add: parameter a .*wants 2 dimensions, got 1"),
    "dtype": (2, lambda x: x.astype(np.float16), tl.LaunchError, r"add: parameter c .*float32.*float16"),
    "dim": (
        1,
        lambda x: np.ones((4, 9), np.float32),
        tl.LaunchError,
        r"add: parameter b .*dimension 1 is 9, but N is 8",
    ),
    "no_tensor": (0, lambda x: "text", tl.LaunchTypeError, r"add: parameter a.*tensor.*got str"),
    "list": (0, lambda x: x.tolist(), tl.LaunchTypeError, r"add: parameter a.*tensor.*got list"),
    "read_only": (2, frozen, tl.LaunchError, r"add: parameter c .*read-only"),
    "self_overlap": (2, overlapping, tl.LaunchError, r"add: parameter c .*(overlap|stride|address)"),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_arguments(name: str) -> None:
    n, change, cls, message = CASES[name]
    args = good()
    out = args[2]
    args[n] = change(args[n])
    before = out.copy()
    with pytest.raises(cls, match=f"(?s){message}") as info:
        add(*args)
    print(info.value)
    assert isinstance(info.value, (ValueError, TypeError))
    np.testing.assert_array_equal(out, before)


def test_missing_and_unknown_arguments() -> None:
    a, b, c = good()
    for args, kwargs in (((a, b), {}), ((a, b, c, c), {}), ((a, b, c), {"d": 1}), ((a, b, c), {"a": a})):
        with pytest.raises(TypeError, match="add"):
            add(*args, **kwargs)
    assert (c == -7).all()


def test_requires_grad() -> None:
    torch = pytest.importorskip("torch")
    a, b, c = (torch.ones(4, 8) for _ in range(3))
    with pytest.raises(tl.LaunchError, match="parameter a.*grad"):
        add(a.clone().requires_grad_(), b, c)
    with torch.no_grad():
        add(a.clone().requires_grad_(), b, c)
    assert (c == 2).all()


def located(body: str, message: str, *args: Any, head: str = "") -> None:
    """A kernel on two [64, 64] float32 buffers whose compilation must fail at the line that holds HERE."""
    text = f"""
    M, N = tl.dims("M N")
    {head}
    @tl.kernel
    def k(x: tl.Buffer[M, N], o: tl.Buffer[M, N]):
        p = tl.program_id(0)
{body}
    """
    m = module(text)
    x, o = np.ones((64, 64), np.float32), np.full((64, 64), -7, np.float32)
    with pytest.raises(tl.CompileError, match=message) as info:
        m.k(x, o)
    line = next(n for n, s in enumerate(text.splitlines(), 1) if "HERE" in s)
    print(info.value)
    assert info.value.line == line and info.value.col > 0
    assert (o == -7).all()


def test_grid_not_inferred() -> None:
    located("        o[p * 2 + 1, 0:64] = x[p, 0:64]  # HERE", "(?i)grid")


def test_non_constant_extent() -> None:
    located("        o[p, 0:p] = 1  # HERE", "is not constant")


def test_type_change() -> None:
    located(
        "        s = 0\n        for i in range(9):  # HERE\n            s = x[p, 0:64]\n        o[p, 0:64] = s",
        "s changes its type",
    )


def test_lds_limit() -> None:
    """float32 tiles of 256 x 256 need more LDS than the chip has; the numbers and the allocation are named."""
    with pytest.raises(tl.CompileError, match=r"(?s)LDS.*(65536|64)") as info:
        m = module("""
        @tl.kernel
        def k(x: tl.Buffer[256, 256], o: tl.Buffer[256, 256]):
            big = tl.alloc_shared([256, 256])
            big[:, :] = x[0:256, 0:256]
            o[0:256, 0:256] = big
        """)
        m.k[1](np.ones((256, 256), np.float32), np.ones((256, 256), np.float32))
    print(info.value)
    assert info.value.line > 0 and "big" in str(info.value)


def test_mixed_dot() -> None:
    m = module("""
    @tl.kernel
    def k(a: tl.Buffer[64, 64], b: tl.Buffer[64, 64], c: tl.Buffer[64, 64]):
        c[0:64, 0:64] = tl.dot(a[0:64, 0:64], b[0:64, 0:64])
    """)
    c = np.full((64, 64), -7, np.float32)
    with pytest.raises(tl.CompileError, match="one dtype, got float16 and float32"):
        m.k[1](np.ones((64, 64), np.float16), np.ones((64, 64), np.float32), c)
    assert (c == -7).all()


def test_unknown_target() -> None:
    with pytest.raises(ValueError, match="unknown target 'gfx000'; known: .*gfx942"):
        tl.compile(add, target="gfx000")
    r = subprocess.run(
        [sys.executable, "-c", "import tilelang as tl, fe_pickled; tl.compile(fe_pickled.store, dtypes=())"],
        env=dict(os.environ, TILELANG_SIM_ARCH="gfx000", PYTHONPATH=f"{ROOT}:{ROOT / 'tests' / 'frontend'}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert r.returncode != 0
    assert re.search(r"ValueError: TILELANG_SIM_ARCH=gfx000: unknown chip 'gfx000'; known: .*gfx942", r.stderr), (
        r.stderr
    )


def test_no_llvm() -> None:
    """Without the code generator a kernel cannot be compiled, and the error says what is missing."""
    code = """
import sys
sys.modules["tilelang._llvm"] = None
import fe_pickled
try:
    fe_pickled.run(fe_pickled.store)
except Exception as e:
    print(type(e).__name__, e)
"""
    r = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, PYTHONPATH=f"{ROOT}:{ROOT / 'tests' / 'frontend'}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert r.stdout.startswith("CompileError code generation is not available"), r.stderr
    assert "llvm-22" in r.stdout


def test_wrong_device() -> None:
    """A target that is not the device of the tensors."""
    a, b, c = good()
    with pytest.raises(tl.LaunchError, match="compiled for gfx90a, the arguments are on a gfx942"):
        tl.compile(add, target="gfx90a")(a, b, c)
    assert (c == -7).all()
