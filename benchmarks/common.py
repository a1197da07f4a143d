"""What the benchmarks share: the cases of listing 1, its Triton twin, loops in executed code, the JSON form."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tilelang as tl  # noqa: E402

ARCH = "gfx942"


@dataclass(frozen=True)
class Case:
    """C[M, N] = A[M, K] @ B[K, N], row-major float16, one block_size as in listing 1."""

    name: str
    m: int
    n: int
    k: int
    block: int
    masked: bool  # the peer needs masks: the sizes are no multiples of its tile
    options: tuple[tuple[str, Any], ...] = ()


CASES = {
    c.name: c
    for c in (
        Case("listing1-64", 1024, 1024, 1024, 64, False),
        Case("listing1-128", 1024, 1024, 1024, 128, False),
        Case("listing1-128-ragged", 1000, 776, 520, 128, True),
        Case("listing1-128-odd", 1000, 777, 513, 128, True),
        Case("listing1-256", 1024, 1024, 1024, 256, False),
    )
}


def listing1(case: Case, start: float = 0.0) -> Any:
    """A fresh kernel of listing 1's text with the sizes of `case`; nothing of an earlier one is in it. The accumulator
    starts at `start`: a constant to change between compiles."""
    M, N, K, block_size = case.m, case.n, case.k, case.block

    @tl.kernel(**dict(case.options))
    def matmul_kernel(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        pid_m = tl.program_id(0)
        pid_n = tl.program_id(1)
        local_a = tl.alloc_shared([block_size, block_size])
        local_b = tl.alloc_shared([block_size, block_size])
        acc = tl.full([block_size, block_size], start, dtype=tl.float32)
        for k in range(0, K, block_size):
            local_a[:, :] = A[pid_m * block_size : (pid_m + 1) * block_size, k : k + block_size]
            local_b[:, :] = B[k : k + block_size, pid_n * block_size : (pid_n + 1) * block_size]
            tl.sync_threads()
            acc += tl.dot(local_a, local_b)
        C[pid_m * block_size : (pid_m + 1) * block_size, pid_n * block_size : (pid_n + 1) * block_size] = acc

    return matmul_kernel


# ---- the peer -------------------------------------------------------------------------------------------------------

TRITON_TEXT = """
import triton
import triton.language as tl

@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TAG: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc += tl.dot(tl.load(pa), tl.load(pb))
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))

@triton.jit
def matmul_masked(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TAG: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(pa, mask=(rm[:, None] < M) & (rk[None, :] < K - k), other=0.0)
        y = tl.load(pb, mask=(rk[:, None] < K - k) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))
"""


class TritonPeer:
    """Triton compiling the same tile for gfx942 (no GPU needed); every compile starts with an empty cache."""

    name = "triton 3.9.0"

    def __init__(self) -> None:
        self.tmp = tempfile.mkdtemp(prefix="tl-bench-")
        os.environ["TRITON_CACHE_DIR"] = os.path.join(self.tmp, "cache0")
        path = os.path.join(self.tmp, "triton_kernels.py")
        pathlib.Path(path).write_text(TRITON_TEXT)
        import importlib.util

        spec = importlib.util.spec_from_file_location("triton_kernels", path)
        assert spec and spec.loader
        self.mod = importlib.util.module_from_spec(spec)
        sys.modules["triton_kernels"] = self.mod
        spec.loader.exec_module(self.mod)
        self.turn = 0

    def compile(self, case: Case, num_warps: int, block_k: int | None = None) -> Any:
        """A cold compile: arguments with the divisibility that the sizes have, one changed constant."""
        from triton import compile as triton_compile
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        self.turn += 1
        os.environ["TRITON_CACHE_DIR"] = os.path.join(self.tmp, f"cache{self.turn}")
        fn = self.mod.matmul_masked if case.masked else self.mod.matmul
        sig = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
        sig |= {"BM": "constexpr", "BN": "constexpr", "BK": "constexpr", "TAG": "constexpr"}
        bk = block_k or case.block
        constexprs = {(6,): case.block, (7,): case.block, (8,): bk, (9,): self.turn}
        attrs = {(i,): [["tt.divisibility", 16]] for i in range(3)}
        for i, v in ((3, case.m), (4, case.n), (5, case.k)):
            if v % 16 == 0:
                attrs[(i,)] = [["tt.divisibility", 16]]
            elif v % 8 == 0:
                attrs[(i,)] = [["tt.divisibility", 8]]
        src = ASTSource(fn, sig, constexprs, attrs)
        return triton_compile(src, target=GPUTarget("hip", ARCH, 64), options={"num_warps": num_warps, "num_stages": 2})

    def close(self) -> None:
        shutil.rmtree(self.tmp, ignore_errors=True)


def triton_peer() -> TritonPeer | None:
    try:
        import triton
    except ImportError:
        return None
    return TritonPeer() if triton.__version__.startswith("3.9") else None


# ---- loops of executed code -----------------------------------------------------------------------------------------

_FREE = ("s_waitcnt", "s_nop", "s_setprio", "s_sleep")


def is_mfma(text: str) -> bool:
    return text.startswith("v_mfma")


def mfma_macs(text: str) -> int:
    """Multiply-adds of one matrix instruction, from its mnemonic."""
    m = re.match(r"v_s?mfma\w*?_(\d+)x(\d+)x(\d+)", text)
    assert m, text
    return int(m[1]) * int(m[2]) * int(m[3])


def k_loop(by_pc: dict[int, tuple[int, str]]) -> list[tuple[int, int, str]]:
    """The loop (a backward branch and what lies before it) with the most executed matrix instructions: (pc, count,
    text) in order of address."""
    pcs = sorted(by_pc)
    best: list[tuple[int, int, str]] = []
    best_n = 0
    for pc in pcs:
        n, text = by_pc[pc]
        m = re.match(r"s_c?branch\w* (-?\d+)", text)
        if not m:
            continue
        off = int(m[1]) & 0xFFFF
        off = off - 65536 if off >= 32768 else off
        target = pc + 4 + 4 * off
        if target >= pc:
            continue
        body = [(p, by_pc[p][0], by_pc[p][1]) for p in pcs if target <= p <= pc]
        mf = sum(c for _, c, t in body if is_mfma(t))
        if mf > best_n:
            best, best_n = body, mf
    return best


def loop_metrics(body: list[tuple[int, int, str]]) -> dict[str, float]:
    """Instruction figures of a K loop; counts are executed instructions, summed over all waves."""
    if not body:
        return {}
    macs = sum(c * mfma_macs(t) for _, c, t in body if is_mfma(t))
    other = sum(c for _, c, t in body if not is_mfma(t) and not t.startswith(_FREE))
    out = {
        "other_per_8192mac": other / (macs / 8192),
        "loop_mfma": float(sum(1 for _, _, t in body if is_mfma(t))),
        "loop_other": float(sum(1 for _, _, t in body if not is_mfma(t) and not t.startswith(_FREE))),
        "loop_waits": float(sum(1 for _, _, t in body if t.startswith(_FREE))),
    }
    for key, load, wide in (
        ("wide_global_share", r"(buffer|global)_(load|store)_(\w+)", "dwordx4"),
        ("wide_lds_share", r"ds_(read|write)2?(?:st64)?_(\w+)", "b128"),
    ):
        total = big = 0
        for _, c, t in body:
            m = re.match(load, t)
            if not m:
                continue
            size = _bytes(t)
            total += c * size
            big += c * size if wide in t else 0
        if total:
            out[key] = big / total
    d = prefetch_distance([t for _, _, t in body])
    if d is not None:
        out["prefetch_distance"] = d
    return out


def _bytes(t: str) -> int:
    name = t.split()[0]
    for suffix, n in (("dwordx4", 16), ("dwordx3", 12), ("dwordx2", 8), ("dword", 4), ("b128", 16), ("b96", 12)):
        if suffix in name:
            return n
    if name.startswith(("ds_read2", "ds_write2")):
        return 16 if "b64" in name else 8
    for suffix, n in (
        ("b64", 8),
        ("b32", 4),
        ("short", 2),
        ("ushort", 2),
        ("u16", 2),
        ("b16", 2),
        ("byte", 1),
        ("u8", 1),
        ("b8", 1),
    ):
        if suffix in name:
            return n
    return 4


def prefetch_distance(texts: list[str]) -> float | None:
    """Over the loop's global loads: the fewest matrix instructions issued between a load and the first wait that
    covers it (vector memory retires in order), over the matrix instructions of one turn."""
    n = len(texts)
    vmem = [bool(re.match(r"(buffer|global|flat|scratch)_", t)) for t in texts]
    total = sum(is_mfma(t) for t in texts)
    worst: int | None = None
    for i in range(n):
        if not (vmem[i] and "load" in texts[i].split()[0]):
            continue
        younger = mf = 0
        for s in range(1, 2 * n + 1):
            t = texts[(i + s) % n]
            m = re.search(r"vmcnt\((\d+)\)", t) if t.startswith("s_waitcnt") else None
            if m and younger >= int(m[1]):
                break
            if vmem[(i + s) % n]:
                younger += 1
            if is_mfma(t):
                mf += 1
        else:
            continue
        worst = mf if worst is None else min(worst, mf)
    return None if worst is None or not total else worst / total


# ---- output ---------------------------------------------------------------------------------------------------------


def row(case: str, metric: str, unit: str, ours: Any, peer: Any = None, peer_name: str | None = None) -> dict[str, Any]:
    return {
        "case": case,
        "metric": metric,
        "unit": unit,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name if peer is not None else None,
    }


def main(
    bench: str,
    method: str,
    run: Callable[[argparse.Namespace], list[dict[str, Any]]],
    add: Callable[[argparse.ArgumentParser], None] | None = None,
) -> None:
    ap = argparse.ArgumentParser(description=method)
    ap.add_argument("--json", action="store_true", help="print one JSON object and nothing else on standard output")
    if add:
        add(ap)
    args = ap.parse_args()
    rows = run(args)
    if args.json:
        print(json.dumps({"bench": bench, "method": method, "rows": rows}))
        return
    print(method)
    for r in rows:
        ours = f"{r['ours']:.4g}" if isinstance(r["ours"], float) else str(r["ours"])
        peer = (
            ""
            if r["peer"] is None
            else f"   {r['peer_name']}: {r['peer']:.4g}"
            if isinstance(r["peer"], (int, float))
            else f"   {r['peer_name']}: {r['peer']}"
        )
        print(f"{r['case']:22} {r['metric']:24} {ours:>12} {r['unit']:10}{peer}")


def median(v: list[float]) -> float:
    return statistics.median(v)
