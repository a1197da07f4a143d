"""One process imports torch, Triton and tilelang in any order, and compiles with all of them."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys

import pytest

NAMES = ("torch", "triton", "tilelang")

PROGRAM = """
import sys
for name in sys.argv[2:]:
    __import__(name)
import numpy as np

def with_triton():
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from kernels import triton_add
    src = ASTSource(triton_add, {"x": "*fp32", "y": "*fp32", "n": "i32", "B": "constexpr"}, {(3,): 128}, {})
    code = triton.compile(src, target=GPUTarget("hip", "gfx942", 64), options={"num_warps": 4})
    assert code.asm["hsaco"][:4] == b"\\x7fELF" and "s_endpgm" in code.asm["amdgcn"]

def with_tilelang():
    from kernels import tilelang_add
    x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    tilelang_add(x, y)
    assert (y == x + x).all()

def with_torch():
    import torch
    from kernels import tilelang_add
    x, y = torch.arange(300.0), torch.zeros(300)
    tilelang_add(x, y)
    assert torch.equal(y, torch.add(x, x))

steps = {"triton": with_triton, "tilelang": with_tilelang, "torch": with_torch}
for turn in range(2):
    for name in sys.argv[2:]:
        steps[name]()
print("all done")
"""

KERNELS = """
import sys
import tilelang

N = tilelang.dim("N")

@tilelang.kernel
def tilelang_add(x: tilelang.Buffer[N], y: tilelang.Buffer[N]):
    p = tilelang.program_id(0)
    t = x[p * 256 : (p + 1) * 256]
    y[p * 256 : (p + 1) * 256] = t + t

if "triton" in sys.argv[2:]:
    import triton
    import triton.language as tl

    @triton.jit
    def triton_add(x, y, n, B: tl.constexpr):
        at = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)
"""


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)), ids=",".join)
def test_any_order(order, tmp_path):
    order = [name for name in order if importlib.util.find_spec(name)]
    if len(order) < 2:
        pytest.skip("neither torch nor triton is installed")
    if os.environ.get("TILELANG_SANITIZED") and "triton" in order:
        pytest.skip("Triton does not run under the sanitizers")
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    cmd = [sys.executable, "program.py", "--", *order]
    done = subprocess.run(cmd, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "all done" in done.stdout, done.stdout + done.stderr
