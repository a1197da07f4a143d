"""For every row of ops.def: texts that the verifier accepts and texts that it refuses (op_cases.tir)."""

from __future__ import annotations

import re
from pathlib import Path

import irlib
import pytest

HEAD = re.compile(r"^== (\w+) (accept|refuse) (tile|thread) \((.*?)\)(?: : (.*))?$")


def read_cases() -> list[tuple[str, str, str, str | None, int]]:
    """(operation, kernel text, accept | refuse, wanted message, line in the file)."""
    path = Path(__file__).with_name("op_cases.tir")
    out, current = [], None
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("== "):
            m = HEAD.match(line)
            assert m, f"{path.name}:{number}: {line}"
            current = (m[1], m[2], m[3], m[4], m[5], number, [])
            out.append(current)
        elif current and not line.startswith("//"):
            current[-1].append(line)
    return [
        (
            op,
            f'kernel @k level {level} {{target = "gfx942"}} ({params}) {{\n' + "\n".join(body) + "\n}\n",
            kind,
            want,
            n,
        )
        for op, kind, level, params, want, n, body in out
    ]


CASES = read_cases()


def test_every_row_has_both():
    rows = set(irlib.op_rows())
    assert len(rows) > 80
    for kind in ("accept", "refuse"):
        have = {op for op, _, k, _, _ in CASES if k == kind}
        assert have == rows, f"{kind}: missing {sorted(rows - have)}, unknown {sorted(have - rows)}"


@pytest.mark.parametrize(("op", "text", "kind", "want", "line"), CASES, ids=[f"{c[0]}-{c[2]}-{c[4]}" for c in CASES])
def test_case(op: str, text: str, kind: str, want: str | None, line: int):
    assert re.search(rf"\b{op}\b", text.split("{\n", 1)[1]), f"op_cases.tir:{line} has no {op}"
    status, out = irlib.run(text, round_trip=True)
    if kind == "accept":
        assert status == irlib.OK, out
        assert irlib.run(out) == (irlib.OK, out), "printing what was printed changes it"
        return
    assert want, f"op_cases.tir:{line}: the message is missing"
    assert status != irlib.OK
    other = want.startswith("? ")  # not said at the operation itself
    want = want.removeprefix("? ")
    assert want in out, out
    if not other:
        assert re.search(rf"^test\.tir:\d+:\d+: error: {op}: .*{re.escape(want)}", out, re.M) or re.search(
            rf"^test\.tir:\d+:\d+: error: \w+: .*{re.escape(want)}", out, re.M
        ), out
        assert re.search(rf"// \^ error: .*{re.escape(want)}", out), "the kernel with its faults is not shown"
