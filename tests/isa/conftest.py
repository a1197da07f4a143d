"""Fixtures of the isa tests."""

from __future__ import annotations

from pathlib import Path

import isalib
import pytest


@pytest.fixture(scope="session")
def isadump_exe(tmp_path_factory) -> Path:
    """The dump tool, built from the sources."""
    return isalib.build_isadump(tmp_path_factory.mktemp("isadump"))


@pytest.fixture(scope="session")
def generator():
    """The generator module; skips where LLVM 22 is not there to be asked."""
    if not isalib.have_llvm():
        pytest.skip("llvm-config-22 and g++ are needed to ask LLVM")
    return isalib.load_generator()


@pytest.fixture(scope="session")
def mcdump_exe(generator, tmp_path_factory) -> Path:
    """LLVM's decoder behind a pipe."""
    return generator.build_mcdump(tmp_path_factory.mktemp("mcdump"))
