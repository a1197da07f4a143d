"""Runs every benchmark of this folder and writes benchmarks/RESULTS.md: ``make bench``.

Each benchmark is a program of its own (``python benchmarks/NAME.py --json``), so none warms another up; what it prints
beside its JSON goes to the terminal. Exit status 1 when one fails.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOT_BENCHMARKS = {"common", "run"}


def machine() -> list[str]:
    """Lines on what the figures were measured with."""
    cpu = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    versions = [f"Python {platform.python_version()}"]
    for name in ("numpy", "torch", "triton"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    ).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    today = datetime.date.today().isoformat()
    return [f"- {today}, commit {commit or 'unknown'}", f"- {cpu}, {cores} cores; no GPU", f"- {', '.join(versions)}"]


def number(value: Any) -> str:
    """A figure for the table."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(result: dict[str, Any]) -> list[str]:
    """One benchmark's rows in Markdown."""
    out = [f"## {result['bench']}", ""]
    if result.get("method"):
        out += [result["method"], ""]
    out += ["| case | metric | unit | ours | peer | peer's name |", "| --- | --- | --- | --- | --- | --- |"]
    for r in result["rows"]:
        cells = [r["case"], r["metric"], r["unit"], number(r["ours"]), number(r["peer"]), r["peer_name"] or ""]
        out.append("| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |")
    return [*out, ""]


def main() -> int:
    """Runs them all; 0 when every one gave its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these benchmarks (then RESULTS.md is left alone)")
    args = parser.parse_args()
    found = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in NOT_BENCHMARKS)
    for name in args.names:
        if name not in found:
            parser.error(f"{name}: the benchmarks are {', '.join(found)}")
    lines = ["# Results", "", "Written by `make bench`; each table says how it was measured.", "", *machine(), ""]
    failed = []
    for name in args.names or found:
        start = time.perf_counter()
        done = subprocess.run([sys.executable, str(HERE / f"{name}.py"), "--json"], stdout=subprocess.PIPE, text=True)
        seconds = time.perf_counter() - start
        try:
            result = json.loads(done.stdout)
            text = table(result)
        except (ValueError, KeyError, TypeError) as err:
            result, text = None, []
            print(f"{name}: no JSON object with rows on standard output ({err})", file=sys.stderr)
        if done.returncode or result is None:
            failed.append(name)
            lines += [f"## {name}", "", "failed in this run", ""]
            continue
        print("\n".join(text))
        print(f"({name}: {seconds:.0f} s)\n")
        lines += text
    if not args.names:
        (HERE / "RESULTS.md").write_text("\n".join(lines).rstrip() + "\n")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
