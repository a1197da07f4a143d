"""``make demo``: listing 1 from source to a checked result on the simulated MI300X.

``python -m tilelang.demo --size 1024 --seed 0 [--block 64] [--dtype float16]`` compiles examples/listing1_matmul.py for
gfx942, runs every instruction of it on the simulator, compares the result with PyTorch (NumPy where PyTorch is
absent) and shows resources, the instruction mix of the K loop and times. Exit status 1 when the result is wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import linecache
import re
import sys
import time
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

LISTING = Path(__file__).resolve().parent.parent / "examples" / "listing1_matmul.py"

# How the K loop's instructions are grouped: first match counts.
GROUPS = (
    ("matrix (MFMA)", r"v_mfma|v_smfmac|v_wmma"),
    ("global memory", r"global_|buffer_|flat_"),
    ("LDS", r"ds_"),
    ("wait, nop, priority", r"s_waitcnt|s_wait_|s_nop|s_setprio|s_sched"),
    ("barrier", r"s_barrier"),
    ("branch", r"s_cbranch|s_branch"),
    ("vector ALU", r"v_"),
    ("scalar", r"s_"),
)


def load_listing(m: int, n: int, k: int, block: int) -> types.ModuleType:
    """The listing as a module with other sizes; its text is otherwise as published."""
    text = LISTING.read_text(encoding="utf-8")
    text, sizes = re.subn(r"^M, N, K = .*$", f"M, N, K = {m}, {n}, {k}", text, flags=re.M)
    text, blocks = re.subn(r"^block_size = .*$", f"block_size = {block}", text, flags=re.M)
    if sizes != 1 or blocks != 1:
        raise RuntimeError(f"{LISTING}: not the listing that the demo knows")
    name = f"{LISTING}[{m}x{n}x{k}]"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType("listing1_matmul")
    module.__file__ = name
    sys.modules[module.__name__] = module
    if importlib.util.find_spec("torch") is None:  # the listing imports it and uses it nowhere
        sys.modules["torch"] = types.ModuleType("torch")
    try:
        exec(compile(text, name, "exec"), module.__dict__)
    finally:
        if not hasattr(sys.modules.get("torch"), "__path__"):
            sys.modules.pop("torch", None)
    return module


def hot_loop(asm: str) -> list[str]:
    """Mnemonics of the loop with the most matrix instructions in an assembly text; the shortest of equals."""
    lines = [line.split(";")[0].split("//")[0].strip() for line in asm.splitlines()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    best: tuple[int, int, list[str]] = (0, 0, [])
    for i, line in enumerate(lines):
        jump = re.match(r"s_c?branch\w*\s+(\S+)", line)
        start = labels.get(jump.group(1), i) if jump else i
        if start >= i:
            continue
        body = [
            text.split()[0] for text in lines[start : i + 1] if text and text[0] not in "." and not text.endswith(":")
        ]
        rank = (sum(m.startswith("v_mfma") for m in body), -len(body))
        if not best[2] or rank > best[:2]:
            best = (*rank, body)
    return best[2]


def mix(mnemonics: list[str]) -> Counter[str]:
    """Instructions by group of GROUPS."""
    count: Counter[str] = Counter()
    for m in mnemonics:
        count[next((name for name, pattern in GROUPS if re.match(pattern, m)), "other")] += 1
    return count


def tolerance(reference: np.ndarray, size_k: int, magnitude: np.ndarray, ulp: float) -> np.ndarray:
    """2 ulp of the output's dtype, and what f32 accumulation of K products may lose (grows with sqrt(K))."""
    return 2 * ulp * np.abs(reference) + 2.0**-24 * 4 * np.sqrt(size_k) * magnitude + 1e-7


def make_inputs(size: int, seed: int, dtype: str) -> tuple[list[Any], str]:
    """A, B and an empty C: torch tensors where torch is there and NumPy arrays elsewhere; and the library's name."""
    rng = np.random.default_rng(seed)
    host = [rng.standard_normal((size, size), np.float32) for _ in range(2)]
    try:
        import torch
    except ImportError:
        if dtype == "bfloat16":
            raise SystemExit("bfloat16 needs PyTorch") from None
        return [x.astype(dtype) for x in host] + [np.zeros((size, size), dtype)], f"NumPy {np.__version__}"
    tensors = [torch.from_numpy(x).to(getattr(torch, dtype)) for x in host]
    return [*tensors, torch.zeros(size, size, dtype=getattr(torch, dtype))], f"PyTorch {torch.__version__}"


def as_float64(x: Any) -> np.ndarray:
    """A tensor or array as float64."""
    return x.astype(np.float64) if isinstance(x, np.ndarray) else x.double().numpy()


def report_code(compiled: Any) -> None:
    """Prints resources and the K loop's instruction mix."""
    print("resources")
    resources = compiled.resources
    items = resources if isinstance(resources, dict) else vars(resources)
    for name, value in items.items():
        print(f"  {name:<24} {value}")
    loop = hot_loop(compiled.asm["amdgcn"])
    count = mix(loop)
    print(f"K loop: {len(loop)} instructions")
    for name, _ in GROUPS:
        if count[name]:
            print(f"  {name:<24} {count[name]:>5}")


def main(argv: list[str] | None = None) -> int:
    """Runs the demo; 0 when the result is right."""
    parser = argparse.ArgumentParser(prog="python -m tilelang.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024, help="M = N = K (default 1024)")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    parser.add_argument("--block", type=int, default=64, help="block_size of the listing")
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16", "float32"])
    parser.add_argument("--inject-error", action="store_true", help="spoil one element, to see that it is found")
    args = parser.parse_args(argv)
    if args.size < 1:
        parser.error("--size: at least 1")

    import tilelang as tl

    (a, b, c), library = make_inputs(args.size, args.seed, args.dtype)
    start = time.perf_counter()
    module = load_listing(args.size, args.size, args.size, args.block)
    compiled = tl.compile(module.matmul_kernel)
    compiled(a, b, c)
    first = time.perf_counter() - start
    start = time.perf_counter()
    compiled(a, b, c)
    run = time.perf_counter() - start

    shape = f"{args.size} x {args.size} x {args.size}"
    print(f"listing 1: C = A @ B, {shape}, {args.dtype}, block_size {args.block}, seed {args.seed}")
    print("device: simulated MI300X (gfx942), every instruction executed; no GPU was used")
    report_code(compiled)
    print("times")
    print(f"  {'compile and first run':<24} {first * 1e3:9.1f} ms")
    print(f"  {'run on the simulator':<24} {run * 1e3:9.1f} ms")
    print(f"  {'compile (difference)':<24} {max(first - run, 0) * 1e3:9.1f} ms")

    if args.inject_error:
        c[args.size // 2, args.size // 3] += 1
    a64, b64, got = as_float64(a), as_float64(b), as_float64(c)
    reference = a64 @ b64 if isinstance(a, np.ndarray) else (a.double() @ b.double()).numpy()
    ulp = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}[args.dtype]
    error = np.abs(got - reference)
    allowed = tolerance(reference, args.size, np.abs(a64) @ np.abs(b64), ulp)
    wrong = ~(error <= allowed)
    verdict = f"largest error {error.max():.3g}, {int(wrong.sum())} of {wrong.size} wrong"
    print(f"against a float64 reference by {library}: {verdict}")
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        print(f"WRONG: C[{i}, {j}] is {got[i, j]}, should be {reference[i, j]}", file=sys.stderr)
        return 1
    print("right: every element is within 2 ulp plus the bound of f32 accumulation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
