"""Compiles the Triton kernels of this folder: python make_triton.py (needs triton). The tests read what it leaves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # no paths of this machine
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, e / tl.sum(e, 0), i < n)


@triton.jit
def layer_norm(x, out, w, b, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    mean = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        mean += tl.load(x + row * stride + i, i < n, other=0.0)
    m = tl.sum(mean, 0) / n
    square = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.where(i < n, tl.load(x + row * stride + i, i < n, other=0.0) - m, 0.0)
        square += d * d
    rstd = 1 / tl.sqrt(tl.sum(square, 0) / n + eps)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.load(x + row * stride + i, i < n, other=0.0) - m
        tl.store(out + row * stride + i, d * rstd * tl.load(w + i, i < n) + tl.load(b + i, i < n), i < n)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(pa), tl.load(pb))
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@triton.jit
def matmul_masked(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :], (rm[:, None] < M) & ((k + rk)[None, :] < K), other=0.0)
        y = tl.load(b + (k + rk)[:, None] * N + rn[None, :], ((k + rk)[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16), (rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def attention(q, k, v, o, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn, rd = tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + rm[:, None] * D + rd[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j in range(0, N, BN):
        y = tl.load(k + (j + rn)[None, :] * D + rd[:, None])
        s = tl.dot(x, y) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, 1)
        z = tl.load(v + (j + rn)[:, None] * D + rd[None, :])
        acc = acc * old[:, None] + tl.dot(p.to(tl.float16), z)
        top = new
    tl.store(o + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


H, F = "*fp16", "*fp32"
GEMM = {"a": H, "b": H, "c": H, "M": "i32", "N": "i32", "K": "i32"}
# name: (function, signature, constants, options, grid, arguments)
CASES = {
    "softmax": (
        softmax,
        {"out": F, "x": F, "stride": "i32", "n": "i32"},
        {"BLOCK": 1024},
        {},
        (2, 1, 1),
        [["out", "f32", [2, 800]], ["in", "f32", [2, 800]], 800, 781],
    ),
    "layer_norm": (
        layer_norm,
        {"x": F, "out": F, "w": F, "b": F, "stride": "i32", "n": "i32", "eps": "fp32"},
        {"BLOCK": 512},
        {},
        (2, 1, 1),
        [["in", "f32", [2, 900]], ["out", "f32", [2, 900]], ["in", "f32", [900]], ["in", "f32", [900]], 900, 900, 1e-5],
    ),
    "matmul": (
        matmul,
        GEMM,
        {"BM": 64, "BN": 64, "BK": 32},
        {"num_warps": 4, "num_stages": 2},
        (1, 1, 1),
        [["in", "f16", [64, 128]], ["in", "f16", [128, 64]], ["out", "f16", [64, 64]], 64, 64, 128],
    ),
    "matmul_masked": (
        matmul_masked,
        GEMM,
        {"BM": 64, "BN": 64, "BK": 32},
        {"num_warps": 4, "num_stages": 2},
        (2, 1, 1),
        [["in", "f16", [100, 112]], ["in", "f16", [112, 64]], ["out", "f16", [100, 64]], 100, 64, 112],
    ),
    "pingpong": (
        matmul,
        GEMM,
        {"BM": 256, "BN": 256, "BK": 64},
        {"num_warps": 8, "num_stages": 2},
        (1, 1, 1),
        [["in", "f16", [256, 256]], ["in", "f16", [256, 256]], ["out", "f16", [256, 256]], 256, 256, 256],
    ),
    "attention": (
        attention,
        {"q": H, "k": H, "v": H, "o": H, "N": "i32", "scale": "fp32"},
        {"BM": 64, "BN": 32, "D": 64},
        {"num_warps": 4, "num_stages": 1},
        (1, 1, 1),
        [*[["in", "f16", [64, 64]]] * 3, ["out", "f16", [64, 64]], 64, 0.125],
    ),
}


ARCHS = {"gfx942": CASES, "gfx950": ("matmul", "attention"), "gfx1100": ("softmax", "matmul", "attention")}
ARCHS["gfx1201"] = ARCHS["gfx1100"]


def main() -> None:
    programs = {}
    for arch, names in ARCHS.items():
        wave = 64 if arch.startswith("gfx9") else 32
        for name in names:
            fn, signature, constants, options, grid, args = CASES[name]
            params = list(signature) + list(constants)
            sig = signature | dict.fromkeys(constants, "constexpr")
            attrs = {(i,): [["tt.divisibility", 16]] for i, p in enumerate(params) if str(sig[p]).startswith("*")}
            for i in range(len(signature)):
                if isinstance(args[i], int) and args[i] % 16 == 0:
                    attrs[(i,)] = [["tt.divisibility", 16]]
            src = ASTSource(fn, sig, {(params.index(c),): v for c, v in constants.items()}, attrs)
            c = triton.compile(src, target=GPUTarget("hip", arch, wave), options=options)
            file = f"triton-{name}.{arch}.hsaco"
            (HERE / file).write_bytes(c.asm["hsaco"])
            programs[name if arch == "gfx942" else f"{name}.{arch}"] = {
                "file": file,
                "arch": arch,
                "grid": grid,
                "block": [wave * c.metadata.num_warps, 1, 1],
                "lds": c.metadata.shared,
                "args": [*args, None, None],
                "made_by": f"triton {triton.__version__}",
            }
            print(name, arch, len(c.asm["hsaco"]), "bytes,", c.asm["amdgcn"].count("s_barrier"), "barriers")
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in programs.items())
    (HERE / "triton.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()
