"""``python -m tilelang COMMAND``: ``sim`` runs, checks and disassembles code objects; ``demo`` is the guided matmul."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {"sim": "tilelang.sim.__main__", "demo": "tilelang.demo"}


def main(argv: list[str]) -> int:
    """Runs a command; returns its exit status, 2 for an unknown one."""
    if not argv or argv[0] not in COMMANDS:
        print(f"usage: python -m tilelang {{{','.join(COMMANDS)}}} ...", file=sys.stderr)
        return 2
    try:
        module = importlib.import_module(COMMANDS[argv[0]])
        return int(module.main(argv[1:]) or 0)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
