"""What all tests share: where the repository, its build and the outside test data are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Every kernel that a test compiles goes through the static verifier; a finding fails its compilation.
os.environ.setdefault("TILELANG_VERIFY", "1")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def build() -> Path:
    """The folder of the developer tools and the test library: build/, or what TILELANG_BUILD names (sanitizers)."""
    return Path(os.environ.get("TILELANG_BUILD", ROOT / "build"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The outside test data (TILELANG_SHARED, else ../shared beside the repository); skips where it is absent."""
    path = Path(os.environ.get("TILELANG_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory):
    """compile_c(source, *flags) -> path of a shared library made by the C compiler."""
    folder = tmp_path_factory.mktemp("clib")

    def run(source: Path, *flags: str, name: str = "lib.so") -> Path:
        out = folder / f"{source.stem}-{len(list(folder.iterdir()))}" / name
        out.parent.mkdir()
        cmd = [os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", str(source), "-o", str(out)]
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        subprocess.run([*cmd, *flags], check=True, env=env)
        return out

    return run
