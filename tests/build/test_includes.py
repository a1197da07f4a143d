"""The order of the folders of csrc: a file includes only its own folder and folders below it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"

BELOW = {
    "base": set(),
    "target": {"base"},
    "layout": {"base", "target"},
    "ir": {"base", "target", "layout"},
    "pass": {"base", "target", "layout", "ir"},
    "codegen": {"base", "target", "layout", "ir"},
    "isa": {"base", "target"},
    "sim": {"base", "target", "isa"},
    "runtime": {"base"},
}
TOP = {"py", "tools"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)


def sources() -> list[Path]:
    return [p for p in sorted(CSRC.rglob("*")) if p.suffix in (".c", ".h", ".cc", ".def", ".inc")]


def faults(path: Path, text: str) -> list[str]:
    folder = path.relative_to(CSRC).parts[0]
    out = []
    for own, system in INCLUDE.findall(text):
        if own.startswith(("llvm", "lld/")):
            own, system = "", own
        if own:
            other = own.split("/")[0]
            if "/" not in own:
                out.append(f'{path}: "{own}" is not written from csrc')
            elif folder not in TOP and other != folder and other not in BELOW[folder]:
                out.append(f"{path}: {folder} includes {own}")
            elif other in TOP and other != folder:
                out.append(f"{path}: {own} stands on top of all")
            elif not (CSRC / own).exists():
                out.append(f"{path}: {own} is not there")
        elif system.startswith(("Python.h", "numpy/", "structmember.h")) and folder != "py":
            out.append(f"{path}: only py includes {system}")
        elif system.startswith(("llvm", "lld", "llvm-c")) and folder not in ("codegen", "tools"):
            out.append(f"{path}: only codegen and tools include {system}")
    return out


def test_include_order():
    files = sources()
    assert len(files) > 30
    found = [f for path in files for f in faults(path, path.read_text())]
    assert not found, "\n".join(found)


def test_every_folder_is_known():
    assert {p.name for p in CSRC.iterdir() if p.is_dir()} <= set(BELOW) | TOP


def test_the_rule_finds_faults():
    bad = CSRC / "sim" / "x.c"
    assert (
        faults(bad, '#include "ir/ir.h"\n')
        and faults(bad, "#include <Python.h>\n")
        and faults(bad, '#include "mem.h"\n')
    )
    assert faults(bad, "# include <llvm-c/Core.h>\n") and faults(
        CSRC / "pass" / "x.c", '#include "codegen/codegen.h"\n'
    )
    assert not faults(bad, '#include "base/base.h"\n#include <stdio.h>\n')


def test_base_names_of_tests_are_distinct():
    """pytest imports test files and their helpers by base name."""
    names = [p.name for p in (ROOT / "tests").rglob("*.py") if p.name != "conftest.py"]
    assert len(names) == len(set(names)), sorted(n for n in set(names) if names.count(n) > 1)
