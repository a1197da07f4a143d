"""Arena, containers, text and diagnostics of csrc/base; the stories are in tests/clib/basetest.c."""

from __future__ import annotations

import ctypes as C
import re
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def lib(build: Path) -> C.CDLL:
    path = build / "libtilelang_test.so"
    assert path.exists(), f"{path} is not there: make testlib"
    so = C.CDLL(str(path))
    so.tl_test_arena.argtypes = so.tl_test_containers.argtypes = [C.c_uint64]
    return so


@pytest.mark.parametrize("seed", range(5))
def test_arena(lib: C.CDLL, seed: int):
    assert lib.tl_test_arena(seed) == 0, f"seed {seed}: line of basetest.c"


@pytest.mark.parametrize("seed", range(5))
def test_containers(lib: C.CDLL, seed: int):
    assert lib.tl_test_containers(seed) == 0, f"seed {seed}: line of basetest.c"


@pytest.mark.parametrize("story", ["text", "diag", "base_alloc_sweep"])
def test_story(lib: C.CDLL, story: str):
    assert getattr(lib, f"tl_test_{story}")() == 0, "line of basetest.c"


def test_no_exit_no_abort_no_static_state(root: Path):
    """The core never ends the process on user input, and keeps no mutable state of its own."""
    calls = re.compile(r"(?<![\w.>])(?:abort|exit|_exit|longjmp|setjmp|assert)\s*\(")
    state = re.compile(
        r"^static\s+(?!const\b|inline\b|_Thread_local\b)[\w\s*]+?\b\w+(?:\[[^\]]*\])*\s*(?:=[^=;]*)?;", re.M
    )
    strip = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.S)
    found = []
    for folder in ("base", "target", "layout", "ir", "pass"):
        for path in sorted((root / "csrc" / folder).glob("*.[ch]")):
            text = strip.sub(" ", path.read_text())
            found += [f"{path.name}: {m[0]}" for m in calls.finditer(text)]
            found += [f"{path.name}: {m[0]}" for m in state.finditer(text) if "const" not in m[0] and "(" not in m[0]]
    assert not found, "\n".join(found)
