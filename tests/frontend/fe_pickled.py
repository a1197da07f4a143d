"""A kernel that child processes import."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl

VALUE = 41


@tl.kernel
def store(o: tl.Buffer[4, tl.int32]):
    o[tl.program_id(0)] = VALUE


def run(kernel: Any) -> list[int]:
    out = np.zeros(4, np.int32)
    kernel(out)
    return out.tolist()
