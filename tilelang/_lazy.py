"""Parts that are loaded at first use, from any thread.

Python's importer has a lock for each module and does not free it in a forked child whose parent was importing: the
child then waits for ever. So a fork waits here until no thread of ours imports, as for compilations and launches."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any

_gate = threading.RLock()


def module(name: str) -> Any:
    """The module of this full name, imported when it is not there. Raises ImportError."""
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    with _gate:
        return importlib.import_module(name)


if hasattr(os, "register_at_fork"):  # the forking thread holds the gate on both sides
    os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)
