"""Values of the wrong type or range from Python: each error names what is wrong, none comes from inside."""

from __future__ import annotations

import numpy as np
import pytest
from simlib import ADD, BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")

CODE = code_object(ADD, (BUF, BUF, Arg(4, name="c")))

STATES = [
    (5, "state must be a dict"), (None, "state must be a dict"), ([], "state must be a dict"),
    ({"s": 5}, "s must be a dict"), ({"v": "x"}, "v must be a dict"), ({"v": None}, "v must be a dict"),
    ({"mode": 5}, "mode must be a dict"), ({"mode": {"ieee": 2}}, "mode: ieee must be 0 to 1"),
    ({"mode": {"ieee": "x"}}, "mode: ieee must be an int"), ({"mode": {"x": 1}}, "mode has no field 'x'"),
    ({"v": {"1": 5}}, "v1: hex digits"), ({"v": {"1": "0000000g"}}, "v1: 8 hex digits a lane"),
    ({"v": {"1": "000"}}, "v1: 8 hex digits a lane"), ({"v": {"x": "0" * 8}}, "no vector register x"),
    ({"v": {"512": "0" * 8}}, "no vector register 512"), ({"v": {"a256": "0" * 8}}, "no vector register a256"),
    ({"v": {"a": "0" * 8}}, "no vector register a"), ({"v": {"-1": "0" * 8}}, "no vector register -1"),
    ({"s": {"1": "123456789"}}, "s1 has at most 8 hex digits"), ({"s": {"1": 5}}, "s1 must be a string of hex digits"),
    ({"s": {"1": "-1"}}, "s1 has at most 8 hex digits"), ({"s": {"128": "0"}}, "no scalar register 128"),
    ({"s": {"x": "0"}}, "no scalar register x"), ({"exec": 5}, "exec must be a string of hex digits"),
    ({"exec": "x"}, "exec has at most 16 hex digits"), ({"exec": "f" * 17}, "exec has at most 16 hex digits"),
    ({"vcc": None}, "vcc must be a string of hex digits"), ({"m0": ""}, "m0 has at most 8 hex digits"),
    ({"scc": 2}, "scc must be 0 to 1"), ({"scc": "x"}, "scc must be an int"), ({"lds": 5}, "lds must be a string"),
    ({"lds": "0"}, "lds must be hex digits"), ({"lds": "zz"}, "lds must be hex digits"),
    ({"wave": 16}, "wave must be 32 or 64"), ({"wave": "x"}, "wave must be 32 or 64"),
]  # fmt: skip


@pytest.mark.parametrize("state, text", STATES)
def test_states(state, text):
    with pytest.raises((TypeError, ValueError), match=text):
        sim.execute("gfx942", b"", state)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"arch": 5}, "arch must be a string"),
        ({"arch": "gfx999"}, "unknown architecture 'gfx999'"),
        ({"code": "x"}, "code must be bytes"),
        ({"code": 5}, "code must be bytes"),
        ({"code": b"123"}, "no whole number of dwords"),
        ({"checks": 5}, "checks must be"),
        ({"mfma": "x"}, "mfma must be"),
        ({"delivery": 1}, "delivery must be"),
        ({"seed": "x"}, "seed must be an int"),
    ],
)
def test_execute(change, text):
    with pytest.raises((TypeError, ValueError), match=text):
        sim.execute(**({"arch": "gfx942", "code": b"", "state": {}} | change))


@pytest.fixture(scope="module")
def dev():
    return sim.Device("gfx942")


CALLS = {
    "nbytes must be an int": lambda d: d.empty("x"),
    "nbytes must be an int, not 1.5": lambda d: d.empty(1.5),
    "device memory of -1 bytes": lambda d: d.empty(-1),
    "Python objects": lambda d: d.array(np.array([object()])),
    "a path or bytes are needed": lambda d: d.load(5),
    "a chip and a mnemonic are needed": lambda d: sim.mfma_rule(5, "x"),
    "a chip and a mnemonic": lambda d: sim.mfma_rule("gfx942", 5),
    "lds_bytes must be an int": lambda d: sim.verify(CODE, lds_bytes="x"),
    "lds_bytes must be 0 to": lambda d: sim.verify(CODE, lds_bytes=-5),
    "arch must be a string": lambda d: sim.verify(CODE, arch=5),
}


@pytest.mark.parametrize("text", CALLS)
def test_calls(dev, text):
    with pytest.raises((TypeError, ValueError), match=text):
        CALLS[text](dev)


TRACES = [
    (5, "trace must be a path"), (b"x", "trace must be a path"), (["x"], "a workgroup is a number or"),
    ([-1], "no workgroup -1"), ([(0, 0, 0, 0)], "a workgroup is a number or"), ([()], "a workgroup is a number or"),
    ("/tmp", "a folder is there"), ("/nofolder/x", "there is no folder /nofolder"),
    (sim.TraceOptions(path=5), "PathLike"), (sim.TraceOptions(workgroups=5), "workgroups must be a sequence"),
    (sim.TraceOptions(wave="x"), "wave must be an int"), (sim.TraceOptions(wave=0.5), "wave must be an int"),
    (sim.TraceOptions(max_bytes=-1), "max_bytes must be 0 to"), (sim.TraceOptions(max_bytes=None), "max_bytes must be"),
]  # fmt: skip


@pytest.mark.parametrize("trace, text", TRACES)
def test_traces(dev, trace, text):
    """Said before the kernel runs."""
    x = np.zeros(64, np.int32)
    with pytest.raises((TypeError, ValueError, OSError), match=text):
        dev.load(CODE).kernels["k"].launch(1, 64, [x, x, np.int32(1)], trace=trace)
    assert (x == 0).all()


@pytest.mark.parametrize(
    "args, text",
    [(5, "args must be a sequence"), (None, "args must be a sequence"), ("abc", "a str has no fixed size"),
     ({"0": 1}, "the offset of an argument must be an int"), ({-1: 1}, "the offset of an argument must be 0 to"),
     ([0, 0, object()], "a object has no fixed size"), ([0, 0], "takes 3 arguments"),
     ({0: 0, 8: 0, 16: 1 << 40}, "does not fit into 4 bytes")],
)  # fmt: skip
def test_arguments(dev, args, text):
    with pytest.raises((TypeError, ValueError), match=text):
        dev.load(CODE).kernels["k"].launch(1, 64, args)
