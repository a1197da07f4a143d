"""What the README says works: its example, its commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_example_runs(tmp_path):
    pytest.importorskip("torch")
    (block,) = re.findall(r"```python\n(.*?)```", README, re.S)
    (tmp_path / "example.py").write_text(block)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.strip() == "True", done.stdout + done.stderr


def test_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.findall(r"^\.PHONY: (.*)$", makefile, re.M)[0].split()) | {"core", "llvm", "sim", "tools", "testlib"}
    named = set(re.findall(r"make (?:[A-Z]+=\S+ )?([a-z][a-z-]*)", README))
    assert {"demo", "test", "bench", "build"} <= named <= phony, named - phony


def test_ci_runs_the_test_command_first():
    lines = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("make ")]
    assert lines[0] == "make test" and lines[-1].startswith("make sanitize-test")


def test_listings_are_as_published(shared):
    for name in ("listing1_matmul.py", "listing2_grid.py"):
        assert (ROOT / "examples" / name).read_bytes() == (shared / "seeds" / name).read_bytes()
