"""The whole pipeline on the inputs of tests/pass: survives printing and parsing after every pass, and every failing
memory request; its result is stable text of level thread."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import irlib
import pytest

INPUTS = sorted((Path(__file__).resolve().parents[1] / "pass" / "inputs").glob("*.tir"))
SMALL = [p for p in INPUTS if p.stem in ("vector_add_f32", "grid_bias_f32", "dot_bt_f16", "matmul_strided_f16")]


def operations(text: str) -> Counter:
    return Counter(re.findall(r"^ *(?:%.*? = )?(\w+)", text, re.M))


def test_inputs_are_there():
    assert len(INPUTS) > 10 and len(SMALL) == 4


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.stem)
def test_round_trip_after_every_pass(path: Path):
    text = path.read_text()
    out = irlib.good(text, None, round_trip=True)
    assert out.startswith("kernel @") and " level thread " in out.split("\n", 1)[0]
    assert irlib.good(out) == out
    straight = irlib.good(text, None, round_trip=False)  # numbering differs, and with it the order of a + b
    assert operations(straight) == operations(out), "printing and parsing changed what later passes did"


@pytest.mark.parametrize("path", SMALL, ids=lambda p: p.stem)
def test_every_allocation_may_fail(path: Path):
    requests = irlib.alloc_sweep(path.read_text(), None)
    assert requests > 400, f"request {-requests}"
