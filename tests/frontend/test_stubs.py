"""The stubs: complete, and the published listings pass a strict type check through them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import tilelang as tl

ROOT = Path(__file__).resolve().parent.parent.parent
STUB = ROOT / "tilelang" / "__init__.pyi"
INTERNAL = {"annotations"}


def stub_names() -> set[str]:
    out: set[str] = set()

    def block(body: list[ast.stmt]) -> None:
        for n in body:
            if isinstance(n, (ast.FunctionDef, ast.ClassDef)):
                out.add(n.name)
            elif isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name):
                out.add(n.target.id)
            elif isinstance(n, ast.ImportFrom):
                out.update(a.asname for a in n.names if a.asname)
            elif isinstance(n, ast.If):
                block(n.body)
                block(n.orelse)

    block(ast.parse(STUB.read_text(encoding="utf-8")).body)
    return out - {"MYPY", "__getattr__"}


def test_complete() -> None:
    names = {n for n in dir(tl) if not n.startswith("_")} - INTERNAL
    public = {n for n in names if not isinstance(getattr(tl, n), types.ModuleType)}
    stubs = {n for n in stub_names() if not n.startswith("_")}
    assert stubs - public == set()
    assert public - stubs == set()
    assert (ROOT / "tilelang" / "py.typed").exists()


def test_members() -> None:
    """The stubs' classes have all public members."""
    classes = {n.name: n for n in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)}
    for cls in (tl.Kernel, tl.CompiledKernel, tl.DType):
        body = classes[cls.__name__].body
        named = {n.name for n in body if isinstance(n, ast.FunctionDef)}
        named |= {n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
        assert {n for n in dir(cls) if not n.startswith("_")} - {"exponent"} <= named, cls.__name__


def test_documented() -> None:
    """Every public function has a docstring."""
    missing = [n for n in dir(tl) if not n.startswith("_") and callable(getattr(tl, n)) and not getattr(tl, n).__doc__]
    assert missing == []


@pytest.mark.parametrize("name", ["listing1_matmul", "listing2_grid"])
def test_mypy(name: str, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    cache = str(tmp_path / "cache")
    path = ROOT / "examples" / f"{name}.py"
    env = dict(os.environ, MYPYPATH=str(ROOT))
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    r = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--cache-dir",
            cache,
            "--config-file",
            str(config),
        ]
        + [str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=env,
        check=False,
    )
    assert r.returncode == 0, r.stdout + r.stderr
