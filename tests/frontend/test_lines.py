"""Source lines of simulator faults, with and without line tables in the code object."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tilelang import lines, sim


def failing():
    @tl.kernel(grid=(1,))
    def k(x: tl.Buffer, y: tl.Buffer):
        n = x[0]
        assert n == 3
        y[0] = n

    return k


def test_a_fault_names_the_python_line():
    k = failing()
    x, y = np.array([4], np.int32), np.zeros(1, np.int32)
    with pytest.raises(tl.SimulatorFault) as e:
        k(x, y)
    first = k.fn.__code__.co_firstlineno if hasattr(k, "fn") else failing.__code__.co_firstlineno + 1
    got = e.value.reports[0].line
    assert got is not None
    file, line = got.rsplit(":", 1)
    assert file.endswith("test_lines.py")
    assert 0 < int(line) - first <= 4
    assert f"test_lines.py:{line}" in str(e.value)
    assert y[0] == 0
    x[0] = 3
    k(x, y)
    assert y[0] == 3


@pytest.mark.parametrize("on", [False, True])
def test_line_tables_on_request(monkeypatch, on):
    monkeypatch.setenv("TILELANG_LINE_TABLES", "1" if on else "0")
    assert lines.wanted() is on
    compiled = tl.compile(failing())
    compiled.prepare(np.zeros(1, np.int32), np.zeros(1, np.int32))
    kernel = next(iter(sim.Device("gfx942").load(compiled.asm["hsaco"]).kernels.values()))
    found = {line for _, _, line in kernel.disassembly() if line}
    assert bool(found) is on
