"""Compiles the Triton kernels of this folder: python make_triton.py (needs triton). The tests read what it leaves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_kernels import attention, layer_norm, matmul, matmul_masked, softmax

HERE = Path(__file__).parent
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # no paths of this machine
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"


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
