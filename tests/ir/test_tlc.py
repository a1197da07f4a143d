"""The tool tlc and the pass runner behind it: options, what it prints, exit status."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

INPUTS = Path(__file__).with_name("inputs")
THREAD = INPUTS / "thread.tir"


@pytest.fixture
def tlc(build: Path):
    path = build / "tlc"
    assert path.exists(), f"{path} is not there: make tools"

    def run(*args: str, text: str | None = None) -> tuple[int, str, str]:
        p = subprocess.run([str(path), *map(str, args)], input=text, capture_output=True, text=True)
        return p.returncode, p.stdout, p.stderr

    return run


def test_prints_what_it_reads(tlc):
    status, out, err = tlc(THREAD)
    assert (status, err) == (0, "")
    assert out == THREAD.read_text()
    assert tlc("-", text=out) == (0, out, "")
    located = tlc("--locs", INPUTS / "matmul.tir")[1]
    assert ' loc("mm.py":3:5-20)' in located
    assert "loc(" not in tlc(INPUTS / "matmul.tir")[1]


def test_passes_print_time_round_trip(tlc):
    status, out, err = tlc("--passes", "simplify", "--print-after", "all", "--time", "--round-trip", THREAD)
    assert status == 0
    assert err.count("// after simplify\nkernel @thread") == 1
    for word in ("ms  simplify (", "ms  verify (", "ms  round-trip ("):
        assert word in err
    assert tlc("--passes", "simplify", THREAD)[1] == out
    twice = tlc("--passes", "simplify,simplify", "--print-after", "simplify", THREAD)[2]
    assert twice.count("// after simplify") == 2


def test_skip(tlc):
    text = "kernel @k level thread (%a : i32) {\n  %x = add %a, %a : i32\n}\n"
    assert tlc("--passes", "simplify", "-", text=text)[1] == "kernel @k level thread (%a : i32) {\n}\n"
    assert tlc("--passes", "simplify", "--skip", "simplify", "-", text=text)[1] == text


@pytest.mark.parametrize("option", ["--passes", "--skip", "--print-after"])
def test_unknown_pass(tlc, option: str):
    status, _, err = tlc(option, "simplify,nosuch", THREAD)
    assert status == 1 and 'there is no pass "nosuch"' in err


def test_list_of_passes_has_contracts(tlc):
    status, out, _ = tlc("--list-passes")
    assert status == 0
    names = [x for x in out.splitlines() if not x.startswith(" ")]
    assert names[0] == "simplify" and len(set(names)) == len(names)
    for word in ("requires", "keeps", "breaks"):
        rows = [x.split(": ", 1) for x in out.splitlines() if x.startswith(f"  {word}")]
        assert len(rows) == len(names) and all(len(r) == 2 and r[1] for r in rows)


def test_target_kernel_output_file(tlc, tmp_path: Path):
    text = "kernel @a level tile () {\n}\n\nkernel @b level tile () {\n}\n"
    assert tlc("-", text=text)[1] == text
    assert tlc("--kernel", "b", "--target", "gfx950", "-", text=text)[1] == (
        'kernel @b level tile {target = "gfx950"} () {\n}\n'
    )
    status, _, err = tlc("--kernel", "c", "-", text=text)
    assert status == 1 and "no kernel @c" in err
    status, _, err = tlc("--target", "gfx000", "-", text=text)
    assert status == 1 and "target names no known chip" in err
    out = tmp_path / "x.tir"
    assert tlc("-o", out, "-", text=text) == (0, "", "")
    assert out.read_text() == text
    assert tlc("--emit", "none", "-", text=text) == (0, "", "")


def test_faults_and_wrong_use(tlc):
    status, out, err = tlc("-", text="kernel @k level tile () {\n  %a = const {value = 300} : i8\n}\n")
    assert status == 1 and out == ""
    assert "<stdin>:2:8: error: const: 300 does not fit i8 [VERIFY]" in err
    assert "// ^ error: 300 does not fit i8" in err
    for args in (["--nosuch", THREAD], ["--emit", "wasm", THREAD], [], ["--passes"], [THREAD, THREAD]):
        status, _, err = tlc(*args)
        assert status == 2 and "usage: tlc" in err, args
    assert tlc("/nonexistent.tir")[0] == 2


def test_documented_operations(tlc, root: Path):
    status, out, _ = tlc("--list-ops")
    assert status == 0 and out.count("\n") > 80
    page = (root / "docs" / "ir.md").read_text()
    assert page.endswith(out), "docs/ir.md: the table is old; put the output of build/tlc --list-ops at its end"
