"""Matrix instructions against the published lane maps, element by element, and on every host level."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

ARCHS = ("gfx90a", "gfx942", "gfx950")
MC = shutil.which("llvm-mc-22") or shutil.which("llvm-mc")

if not (simlib.SHARED / "oracle/lanemap").is_dir():
    pytest.skip("the outside test data is not there", allow_module_level=True)
if MC is None:
    pytest.skip("no llvm-mc to encode instructions", allow_module_level=True)


def assemble(text: str, arch: str = "gfx942") -> bytes:
    run = subprocess.run(
        [MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-show-encoding"],
        input=text,
        check=False,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"encoding: \[([^\]]*)\]", run.stdout)
    assert run.returncode == 0 and found, run.stderr
    return b"".join(bytes(int(x, 16) for x in f.split(",")) for f in found)


MAPS = {(arch, op): rows for arch in ARCHS for op, rows in simlib.lanemaps(arch).items()}
FLOAT8 = {  # bit patterns of 1.0 and 2.0, and the sign
    "fp8": {"gfx942": (0x40, 0x48, 0x80), "gfx950": (0x38, 0x40, 0x80)},
    "bf8": {"gfx942": (0x40, 0x44, 0x80), "gfx950": (0x3C, 0x40, 0x80)},
    "fp4": {"gfx950": (2, 4, 8)},
}


def encode(value: int, kind: str, arch: str) -> int:
    """Bit pattern of a small integer in the element type."""
    if kind == "f64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if kind in ("f32", "xf32"):
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if kind == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    if kind == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    if kind in FLOAT8:
        one, two, sign = FLOAT8[kind][arch]
        return (sign if value < 0 else 0) | (0, one, two)[abs(value)]
    return value & (0xFF if kind == "i8" else 0xFFFFFFFF)


def kinds(op: str) -> tuple[str, str, str]:
    """Element types of A, B and D."""
    name, _, fmt = op.partition(":")
    found = re.fullmatch(r"v_s?mfma(?:c)?_([a-z0-9]+)_\d+x\d+x\d+_?(?:\d+b_)?(.*)", name)
    assert found, op
    types = fmt or found[2].removesuffix("_1k")
    first, _, last = types.partition("_")
    return first, last or first, found[1]


def number(rows: list[dict[str, str]], key: str) -> int:
    return max((int(r[key]) for r in rows if r[key]), default=0) + 1


def put(regs: np.ndarray, row: dict[str, str], bits: int) -> None:
    lane, reg, low, n = (int(row[k]) for k in ("lane", "register", "bit", "bits"))
    if n == 64:
        regs[reg, lane], regs[reg + 1, lane] = bits & 0xFFFFFFFF, bits >> 32
    else:
        regs[reg, lane] |= np.uint32((bits << low) & 0xFFFFFFFF)


def hexrow(row: np.ndarray) -> str:
    return "".join(f"{int(x):08x}" for x in row)


@pytest.mark.parametrize(("arch", "op"), sorted(MAPS))
def test_lanemap(arch, op):
    maps, seed = MAPS[arch, op], sum(map(ord, op))
    rng = np.random.default_rng(seed)
    ka, kb, kd = kinds(op)
    sparse = "smfmac" in op
    d_rows = maps.get("D") or maps["C"]
    blocks, m, n = number(d_rows, "block"), number(d_rows, "i"), number(d_rows, "j")
    kdim = number(maps["B"], "k")
    a = rng.integers(-2, 3, (blocks, m, number(maps["A"], "k")))
    b = rng.integers(-2, 3, (blocks, kdim, n))
    c = rng.integers(-8, 9, (blocks, m, n))

    def block(r):
        return int(r["block"] or 0)

    ra, rb, rc, ri = (np.zeros((16, 64), np.uint32) for _ in range(4))
    rc = np.zeros((32, 64), np.uint32)
    for r in maps["A"]:
        put(ra, r, encode(int(a[block(r), int(r["i"]), int(r["k"])]), ka, arch))
    for r in maps["B"]:
        put(rb, r, encode(int(b[block(r), int(r["k"]), int(r["j"])]), kb, arch))
    for r in d_rows:
        put(rc, r, encode(int(c[block(r), int(r["i"]), int(r["j"])]), kd, arch))
    dense = a
    if sparse:
        groups = kdim // 4
        pos = np.array([[sorted(rng.choice(4, 2, replace=False)) for _ in range(groups)] for _ in range(m)])
        dense = np.zeros((1, m, kdim), np.int64)
        for i in range(m):
            for g in range(groups):
                for s in range(2):
                    dense[0, i, 4 * g + pos[i, g, s]] = a[0, i, 2 * g + s]
        for r in maps["I"]:
            k = int(r["k"])
            put(ri, r, int(pos[int(r["i"]), k // 2, k % 2]))
    want = c + dense.astype(np.int64) @ b

    def span(first: int, rows: list[dict[str, str]]) -> str:
        count = max(int(r["register"]) + (2 if r["bits"] == "64" else 1) for r in rows)
        return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"

    src_c = "v80" if sparse else span(96, d_rows)
    formats = {"fp8": 0, "bf8": 1, "fp4": 4}
    name, _, fmt = op.partition(":")
    mods = f" cbsz:{formats[fmt]} blgp:{formats[fmt]}" if fmt else ""
    operands = (span(96 if sparse else 128, d_rows), span(0, maps["A"]), span(32, maps["B"]), src_c)
    code = assemble(f"{name} {', '.join(operands)}{mods}\n", arch)
    v = {str(i): hexrow(ra[i]) for i in range(16)}
    v |= {str(32 + i): hexrow(rb[i]) for i in range(16)}
    v |= {str(96 + i): hexrow(rc[i]) for i in range(32)}
    v |= {str(128 + i): "0" * 512 for i in range(32)}
    v["80"] = hexrow(ri[0])
    out = sim.execute(arch, code, {"exec": "0" * 16, "v": v})  # EXEC is ignored
    first, seen = 96 if sparse else 128, 0
    for r in d_rows:
        reg, lane = first + int(r["register"]), int(r["lane"])
        word = int(out["v"][str(reg)][8 * lane : 8 * lane + 8], 16)
        if r["bits"] == "64":
            word |= int(out["v"][str(reg + 1)][8 * lane : 8 * lane + 8], 16) << 32
        value = int(want[block(r), int(r["i"]), int(r["j"])])
        assert word == encode(value, kd, arch), (
            f"{op} seed {seed}: D{r['i'], r['j'], r['block']} is {word:x}, not {value}"
        )
        seen += 1
    assert seen == len(d_rows) and seen >= m * n * blocks


LEVELS = r"""
import sys, numpy as np, tilelang.sim as sim
rng = np.random.default_rng(int(sys.argv[1]))
hexrow = lambda row: "".join(f"{int(x):08x}" for x in row)
for line in sys.stdin:
    code, kind = line.split()
    if kind == "half":
        u = rng.integers(0, 1 << 16, (16, 64, 2), dtype=np.uint32)
        u[(u & 0x7c00) == 0x7c00] ^= 0x4000
        regs = u[..., 0] | u[..., 1] << 16
    else:
        e = rng.integers(100, 150, (16, 64), dtype=np.uint32)
        regs = rng.integers(0, 1 << 23, (16, 64), dtype=np.uint32) | e << 23
        regs |= rng.integers(0, 2, (16, 64), dtype=np.uint32) << 31
    f = rng.integers(0, 1 << 23, (32, 64), dtype=np.uint32) | rng.integers(110, 140, (32, 64), dtype=np.uint32) << 23
    v = {str(i): hexrow(regs[i]) for i in range(16)} | {str(96 + i): hexrow(f[i]) for i in range(32)}
    out = sim.execute("gfx942", bytes.fromhex(code), {"exec": "f0f0ffffffff3fff", "vcc": "123456789abcdef0", "v": v})
    print(out["vcc"], *(out["v"].get(str(i), "") for i in range(96, 160)))
"""


def test_host_levels_are_bit_equal():
    """Random (not exact) data: all host levels give the same bits."""
    lines = [
        ("v_mfma_f32_32x32x8_f16 v[128:143], v[0:1], v[2:3], v[96:111]", "half"),
        ("v_mfma_f32_16x16x16_bf16 v[128:131], v[0:1], v[2:3], v[96:99]", "half"),
        ("v_mfma_f32_32x32x2_f32 v[128:143], v0, v1, v[96:111]", "f32"),
        ("v_mfma_f32_4x4x4_16b_f16 v[128:131], v[0:1], v[2:3], v[96:99]", "half"),
        ("v_pk_fma_f16 v128, v0, v1, v2", "half"),
        ("v_add_f16 v128, v0, v1", "half"),
        ("v_dot2_f32_f16 v128, v0, v1, v96", "half"),
        *((f"{op} v128, v0", "f32") for op in (
            "v_exp_f32", "v_log_f32", "v_sin_f32", "v_cos_f32", "v_rsq_f32", "v_rcp_f32", "v_sqrt_f32", "v_cvt_f16_f32",
            "v_cvt_i32_f32", "v_cvt_u32_f32", "v_floor_f32", "v_rndne_f32", "v_fract_f32")),
        ("v_fma_f32 v128, v0, v1, v2", "f32"),
        ("v_fma_f64 v[128:129], v[0:1], v[2:3], v[4:5]", "f32"),
        ("v_div_scale_f32 v128, vcc, v0, v1, v0", "f32"),
        ("v_add_co_u32 v128, vcc, v0, v1", "f32"),
        ("v_addc_co_u32 v128, vcc, v0, v1, vcc", "f32"),
        ("v_cmp_lt_f32 vcc, v0, v1", "f32"),
        ("v_perm_b32 v128, v0, v1, v2", "half"),
    ]  # fmt: skip
    text = "".join(f"{assemble(t + chr(10)).hex()} {k}\n" for t, k in lines)
    results = {}
    for level in ("base", "avx2", "avx512"):
        env = dict(os.environ, TILELANG_SIM_HOST=level)
        run = subprocess.run(
            [sys.executable, "-c", LEVELS, "7"], input=text, check=False, capture_output=True, text=True, env=env
        )
        assert run.returncode == 0, run.stderr[-2000:]
        results[level] = run.stdout.splitlines()
        assert len(results[level]) == len(lines)
    for level in ("avx2", "avx512"):
        for (t, _), x, y in zip(lines, results["base"], results[level], strict=True):
            assert x == y, f"{t}: {level} differs from the baseline (seed 7)"
