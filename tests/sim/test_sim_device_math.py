"""AMD's device library (ocml.bc of Triton's wheel) linked by clang: functions of f16, f32 and f64 on each chip, within
the errors that OpenCL grants, and their special values."""

from __future__ import annotations

import importlib.util
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang-22")
TRITON = importlib.util.find_spec("triton")
OCML = Path(TRITON.origin).parent / "backends/amd/lib/ocml.bc" if TRITON and TRITON.origin else Path()
if not CLANG or not OCML.is_file():
    pytest.skip("clang-22 and Triton's ocml.bc are needed", allow_module_level=True)

VERSIONS = {"gfx90a": 9010, "gfx942": 9402, "gfx950": 9500, "gfx1100": 11000, "gfx1201": 12001}
ONE = {  # name: (reference, lowest and highest argument, ulp of f32 and f64)
    "sin": (math.sin, -1e5, 1e5, 4),
    "cos": (math.cos, -1e5, 1e5, 4),
    "tan": (math.tan, -1e4, 1e4, 5),
    "sinpi": (lambda x: math.sin(math.pi * math.remainder(x, 2)), -0.49, 0.49, 5),
    "asin": (math.asin, -1, 1, 4),
    "acos": (math.acos, -1, 1, 4),
    "atan": (math.atan, -1e3, 1e3, 5),
    "sinh": (math.sinh, -20, 20, 4),
    "cosh": (math.cosh, -20, 20, 4),
    "tanh": (math.tanh, -10, 10, 5),
    "asinh": (math.asinh, -1e4, 1e4, 4),
    "acosh": (math.acosh, 1, 1e4, 4),
    "atanh": (math.atanh, -0.999, 0.999, 5),
    "exp": (math.exp, -80, 80, 3),
    "exp2": (lambda x: 2.0**x, -120, 120, 3),
    "exp10": (lambda x: 10.0**x, -36, 36, 4),
    "expm1": (math.expm1, -10, 10, 3),
    "log": (math.log, 1e-30, 1e30, 3),
    "log2": (math.log2, 1e-30, 1e30, 3),
    "log10": (math.log10, 1e-30, 1e30, 3),
    "log1p": (math.log1p, -0.99, 1e6, 2),
    "sqrt": (math.sqrt, 0, 1e30, 0.5),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 1e-20, 1e20, 2),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), -1e6, 1e6, 3),
    "erf": (math.erf, -4, 4, 16),
    "erfc": (math.erfc, -4, 9, 16),
    "tgamma": (math.gamma, 0.1, 30, 16),
    "lgamma": (math.lgamma, 2.5, 1e4, 16),
}
TWO = {
    "pow": (math.pow, (0.01, 30), (-20, 20), 16),
    "atan2": (math.atan2, (-9, 9), (-9, 9), 6),
    "hypot": (math.hypot, (-1e9, 1e9), (-1e9, 1e9), 4),
    "fmod": (math.fmod, (-1e4, 1e4), (0.1, 9), 0),
    "remainder": (math.remainder, (-1e4, 1e4), (0.1, 9), 0),
    "fdim": (lambda x, y: max(x - y, 0), (-9, 9), (-9, 9), 0.5),
    "nextafter": (None, (-9, 9), (-9, 9), 0),
}
HALF = {k: ONE[k] for k in ("sin", "cos", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "asin", "erf", "cbrt")}
TYPES = {"f32": ("float", np.float32), "f64": ("double", np.float64), "f16": ("_Float16", np.float16)}
SPECIAL = {"sin": ("nan", "nan", 0), "exp": ("inf", 0, 1), "log": ("inf", "nan", "-inf"), "sqrt": ("inf", "nan", 0)}
SPECIAL |= {"atan": (math.pi / 2, -math.pi / 2, 0), "tgamma": ("inf", "nan", "inf"), "erf": (1, -1, 0)}
"""f(inf), f(-inf), f(0)"""
N = 128


def source() -> str:
    """HIP text with a kernel of each function and type."""
    text = ['#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 64))) void\n'
                "#define I (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())\n"
                'extern "C" {']  # fmt: skip
    for name, value in (("finite_only_opt", 0), ("unsafe_math_opt", 0), ("daz_opt", 0), ("wavefrontsize64", "WAVE64")):
        text.append(f"extern __attribute__((device)) const unsigned char __oclc_{name} = {value};")
    text.append("extern __attribute__((device)) const unsigned char __oclc_correctly_rounded_sqrt32 = 1;")
    text.append("extern __attribute__((device)) const int __oclc_ISA_version = ISA, __oclc_ABI_version = 500;\n}")
    for typ, (c, _) in TYPES.items():
        for name in HALF if typ == "f16" else ONE:
            f = f"__ocml_{name}_{typ}"
            text.append(f'extern "C" __attribute__((device)) {c} {f}({c});')
            text.append(f"KERNEL {name}_{typ}(const {c} *a, {c} *o) {{ o[I] = {f}(a[I]); }}")
        for name in () if typ == "f16" else TWO:
            f = f"__ocml_{name}_{typ}"
            text.append(f'extern "C" __attribute__((device)) {c} {f}({c}, {c});')
            text.append(f"KERNEL {name}_{typ}(const {c} *a, const {c} *b, {c} *o) {{ o[I] = {f}(a[I], b[I]); }}")
    return "\n".join(text)


def arguments(g: np.random.Generator, lo: float, hi: float, t: type) -> np.ndarray:
    """[N] values in [lo, hi], half of them small ones or spread over the exponents."""
    if t is np.float16:
        lo, hi = max(lo, -200), min(hi, 200)
    x = g.uniform(lo, hi, N)
    near = np.sign(x) * np.exp(g.uniform(-6, math.log(abs(hi)) if hi > 0 else 0, N))
    return np.where(g.integers(0, 2, N) > 0, x, np.clip(near, lo, hi)).astype(t).clip(t(lo), t(hi))


def ulps(got: np.ndarray, want: list[float], t: type) -> np.ndarray:
    """[N] errors in units of the last place of the wanted value."""
    w = np.array(want, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.spacing(np.maximum(np.abs(w), np.finfo(t).tiny).astype(t)).astype(np.float64)
        return np.where(got == w.astype(t), 0, np.abs(got.astype(np.float64) - w) / unit)


@pytest.mark.parametrize("arch", VERSIONS)
def test_device_library(arch: str, tmp_path: Path) -> None:
    """Every function within its error, special values, no report, the same bits in late delivery."""
    hip, out = tmp_path / "math.hip", tmp_path / "math.co"
    hip.write_text(source())
    flags = ["--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib"]
    flags += [f"-DISA={VERSIONS[arch]}", f"-DWAVE64={int(arch[3] == '9')}", "-O2"]
    flags += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(OCML)]
    subprocess.run([CLANG, "-x", "hip", *flags, str(hip), "-o", str(out)], check=True, stderr=subprocess.PIPE)
    assert [f for f in sim.verify(out) if f.severity == "error"] == []
    dev = sim.Device(arch, checks="all")
    kernels = dev.load(out).kernels
    g = np.random.default_rng(11)

    def run(name: str, t: type, *args: np.ndarray) -> np.ndarray:
        results = []
        for delivery in ("now", "late"):
            o = dev.empty(N * np.dtype(t).itemsize)
            kernels[name].launch(N // 64, 64, [*args, o], delivery=delivery, seed=5)
            results.append(o.numpy(t, (N,)))
        assert results[0].tobytes() == results[1].tobytes(), name
        return results[0]

    for typ, (_, t) in TYPES.items():
        for name, (f, lo, hi, bound) in (HALF if typ == "f16" else ONE).items():
            x = arguments(g, lo, hi, t)
            got, limit = run(f"{name}_{typ}", t, x), bound + 1 if typ == "f64" else max(bound, 0.5) + 1e-6
            if typ == "f64" and name in ("sinpi", "cbrt", "exp10", "exp2"):
                limit += 8  # of the reference
            err = ulps(got, [f(float(v)) for v in x], t)
            assert err.max() <= limit, (name, typ, err.max(), x[err.argmax()], got[err.argmax()])
        for name, values in SPECIAL.items() if typ != "f16" else ():
            x = np.array(([math.inf, -math.inf, 0.0, math.nan] * N)[:N], t)
            got = run(f"{name}_{typ}", t, x)[:4]
            for v, w in zip(got, (*map(float, values), math.nan), strict=True):
                assert v == t(w) or (math.isnan(v) and math.isnan(w)), (name, typ, got)
        for name, (f, p, q, bound) in TWO.items() if typ != "f16" else ():
            x, y = arguments(g, *p, t), arguments(g, *q, t)
            got = run(f"{name}_{typ}", t, x, y)
            if f is None:
                assert np.array_equal(got, np.nextafter(x, y)), name
                continue
            err = ulps(got, [f(float(a), float(b)) for a, b in zip(x, y, strict=True)], t)
            assert err.max() <= bound + (1 if typ == "f64" and bound > 0.5 else 1e-6), (name, typ, err.max())
