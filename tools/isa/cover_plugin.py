"""pytest plugin of coverage.py: for each test that passes, the instructions that the simulator ran in it.

COVER_OUT names the file of results: one JSON line a test, {"test": id, "ran": [[chip, wave, text], ...]}."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

FOLDER = tempfile.TemporaryDirectory()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Runs the test with a record of its own."""
    path = Path(FOLDER.name) / "ran"
    path.unlink(missing_ok=True)
    os.environ["TILELANG_SIM_COVERAGE"] = str(path)
    try:
        result = yield
    finally:
        del os.environ["TILELANG_SIM_COVERAGE"]
    if path.exists():
        ran = sorted({tuple(line.split("\t", 2)) for line in path.read_text().splitlines()})
        with open(os.environ["COVER_OUT"], "a") as f:
            f.write(json.dumps({"test": item.nodeid, "ran": ran}) + "\n")
    return result
