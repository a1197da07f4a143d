"""Variables of the environment that switch something on."""

from __future__ import annotations

import os


def flag(name: str) -> bool:
    """Whether a variable is 1; not when it is 0, empty or not set. ValueError, naming it, for any other value."""
    value = os.environ.get(name, "")
    if value not in ("", "0", "1"):
        raise ValueError(f"{name} must be one of 0, 1, not {value!r}")
    return value == "1"
