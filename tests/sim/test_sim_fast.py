"""The short ways of vector instructions give what the long ones do: signs of sources, flushed f32 subnormals, rows with
and without NaN, host levels."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import LANES, encode, execute, hexrow, put, row, values, wide  # noqa: E402

ARCH = "gfx942"
PLAIN, FLUSH = 0x3F0, 0x3C0
UNARY = """v_mov_b32 v_exp_f32 v_log_f32 v_rcp_f32 v_rsq_f32 v_sqrt_f32 v_sin_f32 v_cos_f32 v_fract_f32 v_trunc_f32
    v_ceil_f32 v_rndne_f32 v_floor_f32 v_frexp_mant_f32 v_frexp_exp_i32_f32 v_cvt_i32_f32 v_cvt_u32_f32
    v_cvt_f16_f32""".split()
BINARY = """v_add_f32 v_sub_f32 v_subrev_f32 v_mul_f32 v_min_f32 v_max_f32 v_ldexp_f32 v_cvt_pkrtz_f16_f32
    v_mul_legacy_f32""".split()
TERNARY = "v_fma_f32 v_mad_legacy_f32 v_med3_f32 v_min3_f32 v_max3_f32 v_div_fixup_f32".split()
FLOATS = [(op, n) for n, ops in ((1, UNARY[1:]), (2, BINARY), (3, TERNARY)) for op in ops]
SOURCES = ("v0", "v1", "v2")
WHAT = ("{}", "-{}", "|{}|", "-|{}|")


def flush(x: np.ndarray) -> np.ndarray:
    """f32 bit patterns with subnormals as zeros of their sign."""
    return np.where(x & 0x7F800000, x, x & 0x80000000)


def state(rng: np.random.Generator, mode: int, kind: str = "f32", exec_mask: int = ~0) -> dict:
    st: dict = {"exec": f"{exec_mask & (1 << 64) - 1:016x}", "v": {}, "mode": {"raw": mode}}
    for reg in (0, 2, 4) if kind == "f64" else (0, 1, 2):
        put(st, reg, values(rng, kind), 2 if kind == "f64" else 1)
    return st


@functools.cache
def mode_code(mode: int) -> bytes:
    return encode(ARCH, [f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0x{mode & 255:x}"])[0]


def set_mode(arch: str, mode: int, code: bytes) -> bytes:
    """The code after writing MODE[7:0]."""
    return mode_code(mode) + code


def run(code: bytes, st: dict, mode: int = PLAIN, reg: int = 10, n: int = 1) -> np.ndarray:
    st = {k: v for k, v in st.items() if k != "mode"}
    return wide(execute(ARCH, set_mode(ARCH, mode, code), st), reg, n)


def codes(lines: list[str]) -> dict[str, bytes]:
    out = {t: c for t, c in zip(lines, encode(ARCH, lines), strict=True) if c is not None}
    assert len(out) > 0.6 * len(lines), lines
    return out


def test_flushed_subnormals():
    """In the mode that flushes f32 subnormals an operation is: flush the sources, operate, flush the result."""
    seed = 31
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    lines = [f"{op} v10, {', '.join(SOURCES[:n])}" for op, n in FLOATS]
    seen = 0
    for text, code in codes(lines).items():
        if text.startswith("v_ldexp"):
            continue  # an integer source
        for _ in range(3):
            st = state(rng, FLUSH)
            got = run(code, st, FLUSH)
            for reg in (0, 1, 2):
                st["v"][str(reg)] = hexrow(flush(row(st, reg)))
            want = run(code, st)
            if "_i32_" not in text and "_u32_" not in text and "f16" not in text:
                want = flush(want)
            assert (got == want).all(), (text, [hex(x) for x in got[got != want]][:4])
            seen += 1
    assert seen > 60


def test_flushed_compares():
    rng = np.random.default_rng(5)
    names = ["lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt"]
    for text, code in codes([f"v_cmp_{n}_f32 vcc, v0, v1" for n in names]).items():
        st = state(rng, FLUSH)
        st.pop("mode")
        got = execute(ARCH, set_mode(ARCH, FLUSH, code), st)["vcc"]
        for reg in (0, 1):
            st["v"][str(reg)] = hexrow(flush(row(st, reg)))
        assert got == execute(ARCH, code, st)["vcc"], text


@pytest.mark.parametrize("kind", ["f32", "f16", "f64"])
@pytest.mark.parametrize("mode", [PLAIN, FLUSH, 0x3F5])
def test_signs(kind, mode):
    """-x, |x| and -|x| of registers, scalars and constants are the operation on values with those signs."""
    rng = np.random.default_rng(17)
    bit = {"f32": 1 << 31, "f16": 1 << 15, "f64": 1 << 63}[kind]
    wide_regs = kind == "f64"
    regs = ["v[0:1]", "v[2:3]", "v[4:5]"] if wide_regs else ["v0", "v1", "v2"]
    dst = "v[10:11]" if wide_regs else "v10"
    n = 2 if wide_regs else 1
    scalar_reg = "s[20:21]" if wide_regs else "s20"
    ops = [("rcp", 1), ("add", 2), ("mul", 2), ("fma", 3), ("max", 2), ("sqrt", 1), ("floor", 1)]
    seen = 0
    for name, count in ops:
        op = f"v_{name}_{kind}"
        forms = [(w, at, sc) for w in WHAT for at in range(count) for sc in (None, scalar_reg, "2.0", "0.5")]
        lines = [f"{op} {dst}, {', '.join(regs[:count])}"]
        for what, at, scalar in forms:
            args = list(regs[:count])
            args[at] = scalar if scalar in ("2.0", "0.5") else what.format(scalar or args[at])
            lines.append(f"{op} {dst}, {', '.join(args)}")
        plain, *coded = encode(ARCH, lines)
        assert plain, op
        for (what, at, scalar), code, text in zip(forms, coded, lines[1:], strict=True):
            if code is None:
                continue
            st = state(rng, mode, kind, 0xFFFF0F0FFFFFFFFF)
            x = wide(st, 2 * at if wide_regs else at, n)
            if scalar and scalar[0] == "s":
                x = np.full(LANES, x[3], np.uint64)
                st["s"] = {"20": f"{int(x[0]) & 0xFFFFFFFF:08x}", "21": f"{int(x[0]) >> 32:08x}"}
            elif scalar:
                bits = np.array([float(scalar)], f"<f{int(kind[1:]) // 8}").view(f"u{int(kind[1:]) // 8}")[0]
                x = np.full(LANES, bits, np.uint64)
            st["v"]["10"] = st["v"]["11"] = hexrow(range(LANES))
            got = run(code, st, mode, 10, n)
            if scalar not in ("2.0", "0.5"):
                x = x & ~np.uint64(bit) if "|" in what else x
                x = x ^ np.uint64(bit) if "-" in what else x
            put(st, 2 * at if wide_regs else at, x, n)
            want = run(plain, st, mode, 10, n)
            assert (got == want).all(), (text, mode)
            seen += 1
    assert seen > 80


def test_negated_constants():
    """A sign on a constant is part of the constant."""
    rng = np.random.default_rng(3)
    code = encode(ARCH, ["v_add_f32 v10, -v0, -1.0"])[0]
    st = state(rng, PLAIN)
    got = run(code, st).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        want = -row(st, 0).view(np.float32) + np.float32(-1)
    assert np.array_equal(got, want, equal_nan=True)


def test_one_nan_changes_no_other_lane():
    """Rows without NaN and rows with one in some lane: the other lanes are equal."""
    rng = np.random.default_rng(23)
    lines = [f"{op} v10, {', '.join(SOURCES[:n])}" for op, n in FLOATS]
    halves = [t.replace("_f32", "_f16") for t in lines if "f16" not in t]
    seen = 0
    have = {t: c for t, c in zip(lines + halves, encode(ARCH, lines + halves), strict=True) if c}
    for text, code in have.items():
        half = "_f16" in text and "f32" not in text
        top = 0x3C00 if half else 0x3F800000
        st = {"v": {str(i): hexrow(top + rng.integers(0, 1 << 9, LANES)) for i in range(3)}}
        clean = run(code, st)
        lane = int(rng.integers(0, LANES))
        for reg in range(3):
            x = row(st, reg)
            x[lane] = 0x7E01 if half else 0x7FC00123
            dirty = run(code, {"v": {**st["v"], str(reg): hexrow(x)}})
            others = np.arange(LANES) != lane
            assert (dirty[others] == clean[others]).all(), (text, lane)
            seen += 1
    assert seen > 100


def hot_rows() -> list[tuple[str, int, str, str]]:
    """Name, number of sources, result and flags of the rows that are made whole instructions of."""
    text = (Path(__file__).parents[2] / "csrc/sim/kernels.def").read_text()
    found = re.findall(r"^HOT\((\w+), (\d), (\w+), \w+, \w+, \w+, ([\w |]+),", text, re.M)
    return [(name, int(n), dt, flags) for name, n, dt, flags in found]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_scalars_in_every_place(arch):
    """A scalar register, a literal or an inline constant at each source gives what a vector register full of it gives:
    rows, lane masks, carries; with parts of EXEC, in both modes of subnormals."""
    seed = 47
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    forms = []
    for name, n, dt, flags in hot_rows():
        pair = "s{}" if arch == "gfx1100" else "s[{}:{}]"
        mask = lambda i, pair=pair: pair.format(i, i + 1)  # noqa: E731
        head = mask(30) if dt == "MASK" else "v10"
        head += f", {mask(30)}" if "COUT" in flags else ""
        tail = f", {mask(34)}" if "CIN" in flags else ""
        n -= "FMAC" in flags
        for at in range(n):
            for scalar in ("s20", "0x3f9d70a4", "2.0", "-1", "0x07060302"):
                names = [scalar if i == at else f"v{i}" for i in range(n)]
                forms.append((f"{name} {head}, {', '.join(names)}{tail}", at, scalar,
                              f"{name} {head}, {', '.join(f'v{i}' for i in range(n))}{tail}"))  # fmt: skip
    have = dict(zip([f[0] for f in forms], encode(arch, [f[0] for f in forms]), strict=True))
    plain = dict(zip([f[3] for f in forms], encode(arch, [f[3] for f in forms]), strict=True))
    bits = {"2.0": 0x40000000, "-1": 0xFFFFFFFF, "0x3f9d70a4": 0x3F9D70A4, "0x07060302": 0x07060302}
    setreg = {
        m: encode(arch, [f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0x{m & 255:x}"])[0] for m in (PLAIN, FLUSH)
    }
    seen, names_seen = 0, set()
    for text, at, scalar, full in forms:
        if have[text] is None or plain[full] is None:
            continue
        for mode in (PLAIN, FLUSH):
            for mask in (~0, 0xFFF0_0FFF_7FFF_FFFE, 0):
                st = state(rng, mode, exec_mask=mask)
                st.pop("mode")
                if arch == "gfx1100":
                    st["exec"] = f"{mask & 0xFFFFFFFF:08x}"
                st["v"]["10"] = hexrow(values(rng, "f32"))
                x = bits.get(scalar, int(values(rng, "f32")[0]))
                st["s"] = {"20": f"{x:08x}", "30": "5a5a5a5a", "31": "a5a5a5a5", "34": "0ff03fc1", "35": "93c5aa55"}
                got = execute(arch, setreg[mode] + have[text], st)
                st["v"][str(at)] = hexrow([x] * LANES)
                want = execute(arch, setreg[mode] + plain[full], st)
                what = (text, hex(mode), hex(mask))
                lanes = 32 if arch == "gfx1100" else LANES
                assert got["v"]["10"][: 8 * lanes] == want["v"]["10"][: 8 * lanes], what
                assert [got["s"].get(k) for k in ("30", "31")] == [want["s"].get(k) for k in ("30", "31")], what
                assert got["exec"] == want["exec"], what
        seen += 1
        names_seen.add(full.split()[0])
    assert seen > 500, seen
    assert len(names_seen) > 65, sorted({r[0] for r in hot_rows()} - names_seen)


def test_byte_permutes():
    """v_perm_b32 against bytes in NumPy: selectors of bytes alone (the short way), and with signs and constants."""
    rng = np.random.default_rng(59)
    code, scalar = encode(ARCH, ["v_perm_b32 v10, v0, v1, v2", "v_perm_b32 v10, v0, v1, s20"])
    for top in (8, 14, 256):
        for _ in range(8):
            a, b = (rng.integers(0, 1 << 32, LANES, dtype=np.uint64).astype("<u4") for _ in range(2))
            sel = rng.integers(0, top, (LANES, 4), dtype=np.uint8)
            for text in (code, scalar):
                if text is scalar:
                    sel[:] = sel[7]
                c = sel.view("<u4")[:, 0]
                data = np.concatenate([b.view(np.uint8).reshape(LANES, 4), a.view(np.uint8).reshape(LANES, 4)], 1)
                signs = np.where(data[:, 1::2] & 0x80, 255, 0).astype(np.uint8)
                table = np.concatenate([data, signs, np.tile(np.uint8([0, 255]), (LANES, 1))], 1)
                want = np.take_along_axis(table, np.minimum(sel, 13).astype(int), 1).astype(np.uint8).view("<u4")[:, 0]
                st = {"v": {"0": hexrow(a), "1": hexrow(b), "2": hexrow(c)}, "s": {"20": f"{int(c[0]):08x}"}}
                assert (run(text, st) == want).all(), top


LEVELS = r"""
import sys, json
sys.path.insert(0, sys.argv[1])
from test_sim_fast import *
rng = np.random.default_rng(41)
for line in json.load(sys.stdin):
    st = state(rng, PLAIN, exec_mask=0xfff0ffff7ffffffe)
    st["v"]["10"] = hexrow(range(64))
    for mode in (PLAIN, FLUSH, 0x3c5, 0x300):
        print(line[0], hex(mode), hexrow(run(bytes.fromhex(line[1]), st, mode)))
"""


def test_host_levels_agree():
    """Edge cases, NaN and partial EXEC: the same bits on every host level that there is."""
    lines = [f"{op} v10, {', '.join(SOURCES[:n])}" for op, n in FLOATS]
    lines += ["v_fma_f32 v10, -v0, |v1|, -s3", "v_add_f32 v10, -|v0|, v1", "v_exp_f32 v10, -v0", "v_mov_b32 v10, s3"]
    for name, n, dt, flags in hot_rows():
        if dt != "MASK" and "COUT" not in flags and "CIN" not in flags:
            n -= "FMAC" in flags
            lines += [f"{name} v10, {', '.join(['s3', 'v1', 'v2'][:n])}", f"{name} v10, {', '.join(SOURCES[:n])}"]
    text = json.dumps([(t, c.hex()) for t, c in codes(lines).items()])
    out = {}
    for level in ("base", "avx2", "avx512"):
        env = dict(os.environ, TILELANG_SIM_HOST=level)
        cmd = [sys.executable, "-c", LEVELS, os.path.dirname(os.path.abspath(__file__))]
        done = subprocess.run(cmd, input=text, capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        out[level] = done.stdout.splitlines()
    assert len(out["base"]) > 100
    for level in ("avx2", "avx512"):
        for a, b in zip(out["base"], out[level], strict=True):
            assert a == b, f"{level}: {b}, baseline: {a}"
