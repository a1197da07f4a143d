"""Vector instructions of gfx1100 and gfx1201 that test_rdna_encodings.py does not write: every lane move with its
masks, permlanes, moves between lanes and files, moves relative to M0, pairs issued together, scalar transcendentals,
halves of registers, packed and mixed selections, clamps. Expected values come from plain Python."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import hexrow  # noqa: E402
from rdna_cases import M32, assemble, rows_of  # noqa: E402
from rdna_ref import FP8, fp8, pattern, real, s, stochastic  # noqa: E402

ARCHS = ["gfx1100", "gfx1201"]
BOTH = [(a, w) for a in ARCHS for w in (32, 64)]


def rows(rng: np.random.Generator, wave: int, n: int) -> list[np.ndarray]:
    return [rng.integers(0, 1 << 32, wave, dtype=np.uint64).astype(np.uint32) for _ in range(n)]


def run(arch: str, wave: int, code: bytes | None, v: dict[int, np.ndarray], **state: Any) -> dict[str, Any]:
    assert code is not None
    full = {"wave": wave, "v": {str(k): hexrow(r) for k, r in v.items()}, **state}
    return sim.execute(arch, code, full)


def active(rng: np.random.Generator, wave: int) -> int:
    return int(rng.integers(1, 1 << 62)) * 5 & ((1 << wave) - 1) | 1 << int(rng.integers(0, wave))


def at(out: dict[str, Any], r: int) -> list[int]:
    return rows_of(out["v"][str(r)]).tolist()


# ---- lane moves ---------------------------------------------------------------------------------------------


def dpp_reads(ctrl: str, lane: int) -> int | None:
    """The lane that a lane reads, None where there is none."""
    row, col = lane & ~15, lane & 15
    name, _, arg = ctrl.partition(":")
    if name == "quad_perm":
        return lane & ~3 | int(arg.strip("[]").split(",")[lane & 3])
    n = int(arg or 0)
    to = {"row_shl": col + n, "row_shr": col - n, "row_ror": (col - n) % 16, "row_share": n, "row_xmask": col ^ n,
          "row_mirror": 15 - col, "row_half_mirror": col ^ 7}[name]  # fmt: skip
    return row + to if 0 <= to < 16 else None


CONTROLS = [f"quad_perm:[{','.join(p)}]" for p in itertools.product("0123", repeat=4)] + [
    *(f"{c}:{n}" for c in ("row_shl", "row_shr", "row_ror") for n in range(1, 16)),
    *(f"{c}:{n}" for c in ("row_share", "row_xmask") for n in range(16)),
    "row_mirror", "row_half_mirror",
]  # fmt: skip


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_every_dpp_control(arch, wave):
    """Each control with masks of rows and banks, bound_ctrl, fi and EXEC at random: a move, a sum, a carry."""
    rng = np.random.default_rng(41)
    vcc = "vcc" if wave == 64 else "vcc_lo"
    ops = ["v_mov_b32_dpp v4, v8", "v_mov_b32_e64_dpp v4, v8", "v_add_nc_u32_dpp v4, v8, v9",
           f"v_add_co_ci_u32_dpp v4, {vcc}, v8, v9, {vcc}"]  # fmt: skip
    jobs = []
    for i, ctrl in enumerate(CONTROLS):
        rm, bm, bc, fi = (int(x) for x in rng.integers(0, (16, 16, 2, 2)))
        rm, bm = (rm, bm) if i % 3 else (15, 15)
        tail = f"row_mask:0x{rm:x} bank_mask:0x{bm:x}" + " bound_ctrl:1" * bc + " fi:1" * fi
        jobs.append((f"{ops[i % 4]} {ctrl} {tail}", ctrl, rm, bm, bc, fi))
    for (text, ctrl, rm, bm, bc, fi), code in zip(jobs, assemble(arch, wave, [j[0] for j in jobs]), strict=True):
        exec_, old, cin = active(rng, wave), *rows(rng, wave, 1), active(rng, wave)
        a, b = rows(rng, wave, 2)
        out = run(arch, wave, code, {4: old, 8: a, 9: b}, exec=f"{exec_:x}", vcc=f"{cin:x}")
        got, carry = at(out, 4), int(out["vcc"], 16)
        for lane in range(wave):
            src = dpp_reads(ctrl, lane)
            valid = src is not None and (fi or exec_ >> src & 1)
            on = exec_ >> lane & 1 and rm >> (lane >> 4) & 1 and bm >> (lane >> 2 & 3) & 1 and (valid or bc)
            x = int(a[src]) if valid and src is not None else 0
            exact = x + (int(b[lane]) if "add" in text else 0) + (cin >> lane & 1 if "_co_" in text else 0)
            want = exact & M32 if on else int(old[lane])
            assert got[lane] == want, f"{text}: lane {lane} is {got[lane]:x}, not {want:x} (exec {exec_:x})"
            if "_co_" in text and on:
                assert carry >> lane & 1 == exact >> 32, f"{text}: carry of lane {lane}"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_dpp8(arch, wave):
    rng = np.random.default_rng(42)
    jobs = []
    for i in range(60):
        p = [int(x) for x in rng.integers(0, 8, 8)]
        op = ("v_mov_b32_dpp v4, v8", "v_add_nc_u32_e64_dpp v4, v8, v9", "v_add_nc_u32_dpp v4, v8, v9")[i % 3]
        jobs.append((f"{op} dpp8:[{','.join(map(str, p))}]" + " fi:1" * (i & 1), p, i & 1))
    for (text, p, fi), code in zip(jobs, assemble(arch, wave, [j[0] for j in jobs]), strict=True):
        exec_, (old, a, b) = active(rng, wave), rows(rng, wave, 3)
        got = at(run(arch, wave, code, {4: old, 8: a, 9: b}, exec=f"{exec_:x}"), 4)
        for lane in range(wave):
            src = lane & ~7 | p[lane & 7]
            x = int(a[src]) if fi or exec_ >> src & 1 else 0
            want = (x + (int(b[lane]) if "add" in text else 0)) & M32 if exec_ >> lane & 1 else int(old[lane])
            assert got[lane] == want, f"{text}: lane {lane} (exec {exec_:x})"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_compares_after_a_lane_move(arch, wave):
    """Lanes that the move leaves without a value give 0, and v_cmpx switches them off."""
    rng = np.random.default_rng(43)
    vcc, pair = ("vcc", "s[20:21]") if wave == 64 else ("vcc_lo", "s20")
    tail = "row_shr:3 row_mask:0xb bank_mask:0xf"
    lines = [f"v_cmp_le_u32_dpp {vcc}, v8, v9 {tail}", f"v_cmp_le_u32_e64_dpp {pair}, v8, v9 {tail}",
             f"v_cmpx_le_u32_dpp v8, v9 {tail}", f"v_cmpx_le_u32_e64_dpp v8, v9 {tail}"]  # fmt: skip
    for text, code in zip(lines, assemble(arch, wave, lines), strict=True):
        exec_, (a, b) = active(rng, wave), rows(rng, wave, 2)
        out = run(arch, wave, code, {8: a, 9: b}, exec=f"{exec_:x}", s={"20": "0", "21": "0"})
        want = 0
        for lane in range(wave):
            src = dpp_reads("row_shr:3", lane)
            if src is not None and exec_ >> src & 1 and exec_ >> lane & 1 and 0xB >> (lane >> 4) & 1:
                want |= (int(a[src]) <= int(b[lane])) << lane
        if "cmpx" in text:
            assert int(out["exec"], 16) == want, text
        else:
            assert int(out["exec"], 16) == exec_, text
            have = int(out["s"]["20"], 16) | int(out["s"]["21"], 16) << 32 if "e64" in text else int(out["vcc"], 16)
            assert have == want, text


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_permlanes(arch, wave):
    rng = np.random.default_rng(44)
    jobs = [
        (f"v_permlane{x}16_{var}b32 v4, v8, {sel}" + f" op_sel:[{fi},{bc}]" * (fi | bc), x, var, fi, bc)
        for x in ("", "x") for var, sel in (("", "s20, s21"), ("var_", "v9")) for fi in (0, 1) for bc in (0, 1)
    ]  # fmt: skip
    jobs += [("v_permlane16_b32 v4, v8, 7, -1", "", "const", 0, 0)]
    seen = 0
    for (text, x, var, fi, bc), code in zip(jobs, assemble(arch, wave, [j[0] for j in jobs]), strict=True):
        if code is None:
            assert arch == "gfx1100" and var == "var_", text
            continue
        exec_, (old, a, b) = active(rng, wave), rows(rng, wave, 3)
        sel = int(rng.integers(0, 1 << 63)) if var != "const" else M32 << 32 | 7
        out = run(arch, wave, code, {4: old, 8: a, 9: b}, exec=f"{exec_:x}",
                  s={"20": f"{sel & M32:x}", "21": f"{sel >> 32:x}"})  # fmt: skip
        got = at(out, 4)
        for lane in range(wave):
            nibble = int(b[lane]) & 15 if var == "var_" else sel >> 4 * (lane & 15) & 15
            src = (lane & ~15 ^ (16 if x else 0)) + nibble
            want = int(a[src]) if fi or exec_ >> src & 1 else 0 if bc else int(old[lane])
            want = want if exec_ >> lane & 1 else int(old[lane])
            assert got[lane] == want, f"{text}: lane {lane}"
        seen += 1
    assert seen == (9 if arch == "gfx1100" else 17)
    exec_, (old, a) = active(rng, wave), rows(rng, wave, 2)
    got = at(
        run(arch, wave, assemble(arch, wave, ["v_permlane64_b32 v4, v8"])[0], {4: old, 8: a}, exec=f"{exec_:x}"), 4
    )
    for lane in range(wave):
        moves = wave == 64 and exec_ >> lane & 1
        assert got[lane] == int(a[lane ^ 32] if moves else old[lane]), f"v_permlane64_b32: lane {lane}"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_lanes_and_scalars(arch, wave):
    """readlane, writelane and readfirstlane: the lane number is taken modulo the wave, EXEC does not count."""
    rng = np.random.default_rng(45)
    lines = ["v_readlane_b32 s20, v8, s21", "v_readlane_b32 s20, v8, 33", "v_readlane_b32 s20, v8, m0",
             "v_writelane_b32 v8, s22, s21", "v_writelane_b32 v8, 7, 40", "v_readfirstlane_b32 s20, v8"]  # fmt: skip
    for text, code in zip(lines, assemble(arch, wave, lines), strict=True):
        for n in (0, 5, 31, 32, 63, 64, 200):
            (a,), exec_ = rows(rng, wave, 1), active(rng, wave) if n else 0
            out = run(arch, wave, code, {8: a}, exec=f"{exec_:x}", m0=f"{n:x}",
                      s={"20": "0", "21": f"{n:x}", "22": "1234"})  # fmt: skip
            lane = (33 if " 33" in text else 40 if " 40" in text else n) % wave
            if "first" in text:
                lane = (exec_ & -exec_).bit_length() - 1 if exec_ else 0
            if "read" in text:
                assert int(out["s"]["20"], 16) == int(a[lane]), f"{text}: {n}"
            else:
                a[lane] = 7 if " 7," in text else 0x1234
                assert at(out, 8) == a.tolist(), f"{text}: {n}"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_relative_to_m0(arch, wave):
    rng = np.random.default_rng(46)
    names = {"v_movreld_b32": (0, 1), "v_movrels_b32": (1, 0), "v_movrelsd_b32": (1, 1), "v_movrelsd_2_b32": (2, 2),
             "v_swaprel_b32": (2, 2)}  # fmt: skip
    mods = {"_e32": "", "_e64": "", "_dpp": " row_ror:3 row_mask:0xf bank_mask:0xf bound_ctrl:1 fi:1",
            "_e64_dpp": " quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:1 fi:1",
            "_dpp8": " dpp8:[1,0,3,2,5,4,7,6] fi:1", "_e64_dpp8": " dpp8:[7,6,5,4,3,2,1,0] fi:1", "": ""}  # fmt: skip
    jobs = [(f"{n}{f.removesuffix('8')} v4, v16{m}", n) for n in names for f, m in mods.items()]
    jobs += [("v_movreld_b32_e32 v4, s20", "v_movreld_b32"), ("v_movreld_b32_e64 v4, 7", "v_movreld_b32")]
    seen = 0
    for (text, name), code in zip(jobs, assemble(arch, wave, [j[0] for j in jobs]), strict=True):
        if code is None:
            continue
        seen += 1
        for m0 in (0, 3, 5 << 16 | 2):
            if m0 > 65535 and names[name] != (2, 2):
                continue
            file = {r: x for r, x in enumerate(rows(rng, wave, 24))}
            exec_ = active(rng, wave)
            out = run(arch, wave, code, file, exec=f"{exec_:x}", m0=f"{m0:x}", s={"20": "abcd"})
            so, do = names[name]
            src = 16 + ((m0 & 1023) if so else 0)
            dst = 4 + (m0 >> 16 if do == 2 else m0 if do else 0)
            a = file[src].copy()
            if "s20" in text or ", 7" in text:
                a[:] = 0xABCD if "s20" in text else 7
            if "row_ror" in text:
                a = a[[lane & ~15 | (lane - 3) & 15 for lane in range(wave)]]
            if "quad_perm" in text or "[1,0,3" in text:
                a = a[np.arange(wave) ^ 1]
            if "[7,6" in text:
                a = a[np.arange(wave) ^ 7]
            on = np.array([exec_ >> i & 1 for i in range(wave)], bool)
            want = {**file, dst: np.where(on, a, file[dst])}
            if "swap" in text:
                want[src] = np.where(on, file[dst], file[src])
            for r, x in want.items():
                assert at(out, r) == x.tolist(), f"{text}: m0 {m0:x}, v{r}"
    assert seen >= 23
    code = assemble(arch, wave, ["v_movreld_b32_e32 v4, v16"])[0]  # no register: nothing is written
    file = {r: x for r, x in enumerate(rows(rng, wave, 24))}
    out = run(arch, wave, code, file, m0="fffffff0")
    assert all(at(out, r) == x.tolist() for r, x in file.items())


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_swaps(arch, wave):
    rng = np.random.default_rng(47)
    jobs = [(f"v_swap_b16 v4.{x}, v8.{y}", x, y) for x in "lh" for y in "lh"]
    codes = assemble(arch, wave, [j[0] for j in jobs])
    for (text, x, y), code in zip(jobs, codes, strict=True):
        exec_, (a, b) = active(rng, wave), rows(rng, wave, 2)
        out = run(arch, wave, code, {4: a, 8: b}, exec=f"{exec_:x}")
        for lane in range(wave):
            p, q = int(a[lane]), int(b[lane])
            if exec_ >> lane & 1:
                sx, sy = 16 * (x == "h"), 16 * (y == "h")
                p, q = (p & ~(0xFFFF << sx) | (q >> sy & 0xFFFF) << sx, q & ~(0xFFFF << sy) | (p >> sx & 0xFFFF) << sy)
            assert (at(out, 4)[lane], at(out, 8)[lane]) == (p, q), f"{text}: lane {lane}"
    exec_, (a, b) = active(rng, wave), rows(rng, wave, 2)
    out = run(arch, wave, assemble(arch, wave, ["v_swap_b32 v4, v8"])[0], {4: a, 8: b}, exec=f"{exec_:x}")
    on = np.array([exec_ >> i & 1 for i in range(wave)], bool)
    assert at(out, 4) == np.where(on, b, a).tolist() and at(out, 8) == np.where(on, a, b).tolist()


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_nothing(arch, wave):
    (a,) = rows(np.random.default_rng(48), wave, 1)
    lines = ["v_nop", "v_nop_e64", "v_pipeflush", "v_pipeflush_e64"]
    codes = assemble(arch, wave, lines)
    assert codes[0] and codes[2]
    for text, code in zip(lines, codes, strict=True):
        if code:
            out = run(arch, wave, code, {0: a}, vcc="5", m0="77")
            assert at(out, 0) == a.tolist() and out["vcc"].lstrip("0") == "5" and out["m0"] == "00000077", text


@pytest.mark.parametrize("wave", [32, 64])
def test_scalar_transcendentals(wave):
    """gfx1201's v_s_*: one value, whatever EXEC is; 16-bit results are zero-extended."""
    f = {"exp": np.exp2, "log": np.log2, "rcp": lambda x: 1 / x, "rsq": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt}
    jobs = [(f"v_s_{n}_f{b} s20, {mod}{src}{tail}", n, b, mod, src, tail)
            for n in f for b in (16, 32) for mod, src, tail in (("", "s21", ""), ("-", "s22", ""), ("", "4.0", ""),
                                                               ("", "s21", " clamp"))]  # fmt: skip
    for (text, n, b, _, src, tail), code in zip(jobs, assemble("gfx1201", wave, [j[0] for j in jobs]), strict=True):
        x = {"s21": 2.75, "s22": 2.75, "4.0": 4.0}[src]
        out = run("gfx1201", wave, code, {}, exec="0",
                  s={"20": "ffffffff", "21": f"{pattern(2.75, f'f{b}') | 0x51110000 * (b == 16):x}",
                     "22": f"{pattern(-2.75, f'f{b}'):x}"})  # fmt: skip
        bits = int(out["s"]["20"], 16)
        assert b == 32 or bits < 65536, text
        want = float(f[n](x))
        want = max(0.0, min(1.0, want)) if tail else want
        assert math.isclose(real(bits, f"f{b}"), want, rel_tol=2.0 ** (-22 if b == 32 else -10)), text


# ---- pairs --------------------------------------------------------------------------------------------------


def f32(x: float) -> int:
    return pattern(x, "f32")


def number(x: int) -> float:
    return real(x, "f32")


def single(f: Any) -> Any:
    """A function of patterns from one of exact numbers."""
    return lambda *x: f32(f(*(number(v) for v in x)))


def dot2(kind: str) -> Any:
    def half(x: int) -> float:
        return real(x, "f16") if kind == "f16" else number(x << 16)

    return lambda a, b, c: f32(half(a & 0xFFFF) * half(b & 0xFFFF) + half(a >> 16) * half(b >> 16) + number(c))


K = 0x40400000  # 3.0
DUAL: dict[str, tuple[str, Any]] = {  # operands (o: old destination, k: literal, m: vcc) and function
    "fmac_f32": ("abo", single(lambda a, b, c: a * b + c)),
    "fmaak_f32": ("abk", single(lambda a, b, k: a * b + k)),
    "fmamk_f32": ("akb", single(lambda a, k, b: a * k + b)),
    "mul_f32": ("ab", single(lambda a, b: a * b)),
    "add_f32": ("ab", single(lambda a, b: a + b)),
    "sub_f32": ("ab", single(lambda a, b: a - b)),
    "subrev_f32": ("ab", single(lambda a, b: b - a)),
    "mul_dx9_zero_f32": ("ab", single(lambda a, b: 0.0 if a == 0 or b == 0 else a * b)),
    "mov_b32": ("a", lambda a: a),
    "cndmask_b32": ("abm", lambda a, b, m: b if m else a),
    "max_f32": ("ab", single(max)),
    "min_f32": ("ab", single(min)),
    "dot2acc_f32_f16": ("abo", dot2("f16")),
    "dot2acc_f32_bf16": ("abo", dot2("bf16")),
    "add_nc_u32": ("ab", lambda a, b: a + b & M32),
    "lshlrev_b32": ("ab", lambda a, b: b << (a & 31) & M32),
    "and_b32": ("ab", lambda a, b: a & b),
}
Y_ONLY = {"add_nc_u32", "lshlrev_b32", "and_b32"}
NEW = {"max_f32": "max_num_f32", "min_f32": "min_num_f32"}


def half_text(name: str, args: str, base: int) -> str:
    ops = {"a": f"v{8 + base}", "b": f"v{12 + base}", "k": f"0x{K:x}", "m": "vcc_lo"}
    shown = [ops[x] for x in args if x in ops and not (x == "m")]
    return f"v_dual_{name} v{4 + base}, {', '.join(shown)}"


@pytest.mark.parametrize("arch", ARCHS)
def test_every_pair(arch):
    """Each X with each Y; all operands exact. Both read before either writes (checked where one overwrites the other's
    source)."""
    rng = np.random.default_rng(49)
    jobs = []
    for x, y in itertools.product(DUAL, DUAL):
        if x in Y_ONLY:
            continue
        names = [NEW.get(n, n) if arch == "gfx1201" else n for n in (x, y)]
        jobs.append((x, y, f"{half_text(names[0], DUAL[x][0], 0)} :: {half_text(names[1], DUAL[y][0], 1)}"))
    codes = assemble(arch, 32, [j[2] for j in jobs])
    seen = set()
    for (x, y, text), code in zip(jobs, codes, strict=True):
        assert code is not None or "cndmask" in text or "dot2acc" in text, text
        if code is None:
            continue
        exec_, vcc = active(rng, 32), active(rng, 32)
        v = {}
        for r in (4, 5, 8, 9, 12, 13):
            name = x if r % 2 == 0 else y
            if "f32_f16" in name and r > 5:
                h = rng.integers(-8, 9, (32, 2)).astype(np.float16).view(np.uint16).astype(np.uint32)
                v[r] = h[:, 0] | h[:, 1] << np.uint32(16)
            elif "bf16" in name and r > 5:
                h = rng.integers(-8, 9, (32, 2)).astype(np.float32).view(np.uint32) >> np.uint32(16)
                v[r] = h[:, 0] | h[:, 1] << np.uint32(16)
            else:
                v[r] = rng.integers(-99, 100, 32).astype(np.float32).view(np.uint32)
        out = run(arch, 32, code, v, exec=f"{exec_:x}", vcc=f"{vcc:x}")
        for base, name in enumerate((x, y)):
            args, f = DUAL[name]
            got = at(out, 4 + base)
            for lane in range(32):
                have = {"a": v[8 + base][lane], "b": v[12 + base][lane], "o": v[4 + base][lane], "k": K,
                        "m": vcc >> lane & 1}  # fmt: skip
                want = f(*(int(have[c]) for c in args)) if exec_ >> lane & 1 else int(v[4 + base][lane])
                assert got[lane] == want, f"{text}: {'xy'[base]} lane {lane} is {got[lane]:x}, not {want:x}"
        seen |= {(x, "x"), (y, "y")}
    assert len(seen) == len(DUAL) * 2 - len(Y_ONLY), sorted({(n, p) for n in DUAL for p in "xy"} - seen)
    a, b = rows(rng, 32, 2)
    code = assemble(arch, 32, ["v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8"])[0]
    out = run(arch, 32, code, {8: a, 9: b})
    assert at(out, 8) == b.tolist() and at(out, 9) == a.tolist()
    code = assemble(arch, 32, ["v_dual_mov_b32 v8, s20 :: v_dual_mov_b32 v9, 1.0"])[0]
    out = run(arch, 32, code, {8: a, 9: b}, s={"20": "77"})
    assert at(out, 8) == [0x77] * 32 and at(out, 9) == [0x3F800000] * 32
    with pytest.raises(sim.SimulatorFault, match="unsupported instruction"):  # waves of 64 lanes have no pairs
        run(arch, 64, code, {})


# ---- halves, selections, clamps -----------------------------------------------------------------------------


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_halves(arch, wave):
    """Every choice of halves in the short and long encodings; the other half of the destination stays."""
    rng = np.random.default_rng(50)
    jobs = []
    for d, x, y in itertools.product("lh", repeat=3):
        sel = f" op_sel:[{int(x == 'h')},{int(y == 'h')},{int(d == 'h')}]"
        for op, f in (("v_add_nc_u16", lambda p, q: p + q), ("v_xor_b16", lambda p, q: p ^ q)):
            jobs.append((f"{op} v4.{d}, v8.{x}, v9.{y}{sel if 'h' in d + x + y else ''}", d, x, y, f))
    for d, x in itertools.product("lh", repeat=2):
        jobs += [(f"v_not_b16_e32 v4.{d}, v8.{x}", d, x, "l", lambda p, q: ~p),
                 (f"v_mov_b16_e32 v4.{d}, v8.{x}", d, x, "l", lambda p, q: p)]  # fmt: skip
    for (text, d, x, y, f), code in zip(jobs, assemble(arch, wave, [j[0] for j in jobs]), strict=True):
        exec_, (old, a, b) = active(rng, wave), rows(rng, wave, 3)
        got = at(run(arch, wave, code, {4: old, 8: a, 9: b}, exec=f"{exec_:x}"), 4)
        for lane in range(wave):
            p, q = (int(r[lane]) >> 16 * (z == "h") & 0xFFFF for r, z in ((a, x), (b, y)))
            sh = 16 * (d == "h")
            want = int(old[lane])
            if exec_ >> lane & 1:
                want = want & ~(0xFFFF << sh) | (f(p, q) & 0xFFFF) << sh
            assert got[lane] == want, f"{text}: lane {lane} is {got[lane]:x}, not {want:x}"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_packed_selections(arch, wave):
    """op_sel, op_sel_hi, neg_lo and neg_hi of a packed multiply-add; signs and halves of a mixed one; exact values."""
    rng = np.random.default_rng(51)
    jobs = []
    for i in range(64):
        bits = [[int(x) for x in rng.integers(0, 2, 3)] for _ in range(4)]
        text = "v_pk_fma_f16 v4, v8, v9, v10 " + " ".join(
            f"{n}:[{','.join(map(str, x))}]"
            for n, x in zip(("op_sel", "op_sel_hi", "neg_lo", "neg_hi"), bits, strict=True)
        )
        jobs.append(("pk", text, bits))
        name = ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")[i % 3]
        args = ", ".join(("-" if n else "") + (f"|v{8 + k}|" if a else f"v{8 + k}")
                         for k, (n, a) in enumerate(zip(bits[2], bits[3], strict=True)))  # fmt: skip
        sels = " ".join(f"{n}:[{','.join(map(str, x))}]" for n, x in zip(("op_sel", "op_sel_hi"), bits, strict=False))
        jobs.append((name, f"{name} v4, {args} {sels}", bits))
    for (name, text, bits), code in zip(jobs, assemble(arch, wave, [j[1] for j in jobs]), strict=True):
        sel, hi, neg, neg2 = bits
        exec_, old = active(rng, wave), rows(rng, wave, 1)[0]
        h = [rng.integers(-9, 10, (wave, 2)).astype(np.float16) for _ in range(3)]
        v = [x.view(np.uint16).astype(np.uint32) for x in h]
        v = [x[:, 0] | x[:, 1] << np.uint32(16) for x in v]
        f = [x.copy() for x in v]
        if name != "pk":
            for k in range(3):
                if not hi[k]:
                    f[k] = rng.integers(-9, 10, wave).astype(np.float32).view(np.uint32)
        src = f if name != "pk" else v
        got = at(run(arch, wave, code, {4: old, 8: src[0], 9: src[1], 10: src[2]}, exec=f"{exec_:x}"), 4)
        for lane in range(wave):
            want = int(old[lane])
            if exec_ >> lane & 1 and name == "pk":
                lo = [(-1 if neg[k] else 1) * float(h[k][lane, sel[k]]) for k in range(3)]
                up = [(-1 if neg2[k] else 1) * float(h[k][lane, hi[k]]) for k in range(3)]
                want = pattern(lo[0] * lo[1] + lo[2], "f16") | pattern(up[0] * up[1] + up[2], "f16") << 16
            elif exec_ >> lane & 1:
                x = [float(h[k][lane, sel[k]]) if hi[k] else real(int(f[k][lane]), "f32") for k in range(3)]
                x = [(-1 if neg[k] else 1) * (abs(y) if neg2[k] else y) for k, y in enumerate(x)]
                r = x[0] * x[1] + x[2]
                low = pattern(r, "f16")
                want = {"v_fma_mix_f32": pattern(r, "f32"), "v_fma_mixlo_f16": want & 0xFFFF0000 | low,
                        "v_fma_mixhi_f16": want & 0xFFFF | low << 16}[name]  # fmt: skip
            zero = 0x7FFF7FFF if name != "v_fma_mix_f32" else 0x7FFFFFFF  # the sign of an exact zero: by IEEE rules
            same = got[lane] == want or not (got[lane] ^ want) & zero
            assert same, f"{text}: lane {lane} is {got[lane]:x}, not {want:x}"


def sat(x: int, lo: int, hi: int) -> int:
    return max(lo, min(hi, x))


def su(x: int, n: int = 32) -> int:
    return sat(x, 0, (1 << n) - 1)


def ss(x: int, n: int = 32) -> int:
    return sat(x, -(1 << n - 1), (1 << n - 1) - 1) & ((1 << n) - 1)


def h2(f: Any) -> Any:
    return lambda *x: f(*(v & 0xFFFF for v in x)) | f(*(v >> 16 for v in x)) << 16


def each(x: int, n: int, signed: bool) -> list[int]:
    return [s(x >> k, n) if signed else x >> k & (1 << n) - 1 for k in range(0, 32, n)]


def dot(n: int, sa: bool, sb: bool) -> Any:
    return lambda a, b, c: sum(x * y for x, y in zip(each(a, n, sa), each(b, n, sb), strict=True)) + s(c)


def sad8(a: int, b: int, masked: bool = False) -> int:
    return sum(abs(x - y) for x, y in zip(each(a, 8, False), each(b, 8, False), strict=True) if y or not masked)


CLAMPED = {  # operation (with its modifiers) -> saturated result of patterns
    "v_add_nc_u32 v4, v8, v9": lambda a, b, c: su(a + b),
    "v_sub_nc_u32 v4, v8, v9": lambda a, b, c: su(a - b),
    "v_subrev_nc_u32 v4, v8, v9": lambda a, b, c: su(b - a),
    "v_add_nc_i32 v4, v8, v9": lambda a, b, c: ss(s(a) + s(b)),
    "v_sub_nc_i32 v4, v8, v9": lambda a, b, c: ss(s(a) - s(b)),
    "v_add_co_u32 v4, vcc, v8, v9": lambda a, b, c: su(a + b),
    "v_sub_co_u32 v4, vcc, v8, v9": lambda a, b, c: su(a - b),
    "v_subrev_co_u32 v4, vcc, v8, v9": lambda a, b, c: su(b - a),
    "v_mad_u32_u24 v4, v8, v9, v10": lambda a, b, c: su((a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    "v_mad_i32_i24 v4, v8, v9, v10": lambda a, b, c: ss(s(a, 24) * s(b, 24) + s(c)),
    "v_mul_u32_u24 v4, v8, v9": lambda a, b, c: su((a & 0xFFFFFF) * (b & 0xFFFFFF)),
    "v_mul_i32_i24 v4, v8, v9": lambda a, b, c: ss(s(a, 24) * s(b, 24)),
    "v_mad_u32_u16 v4, v8.l, v9.l, v10": lambda a, b, c: su((a & 0xFFFF) * (b & 0xFFFF) + c),
    "v_mad_i32_i16 v4, v8.l, v9.l, v10": lambda a, b, c: ss(s(a, 16) * s(b, 16) + s(c)),
    "v_sad_u8 v4, v8, v9, v10": lambda a, b, c: su(sad8(a, b) + c),
    "v_sad_hi_u8 v4, v8, v9, v10": lambda a, b, c: su((sad8(a, b) << 16) + c),
    "v_msad_u8 v4, v8, v9, v10": lambda a, b, c: su(sad8(a, b, True) + c),
    "v_sad_u16 v4, v8, v9, v10": lambda a, b, c: su(abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c),
    "v_sad_u32 v4, v8, v9, v10": lambda a, b, c: su(abs(a - b) + c),
    "v_pk_add_u16 v4, v8, v9": lambda a, b, c: h2(lambda x, y: su(x + y, 16))(a, b),
    "v_pk_sub_u16 v4, v8, v9": lambda a, b, c: h2(lambda x, y: su(x - y, 16))(a, b),
    "v_pk_add_i16 v4, v8, v9": lambda a, b, c: h2(lambda x, y: ss(s(x, 16) + s(y, 16), 16))(a, b),
    "v_pk_sub_i16 v4, v8, v9": lambda a, b, c: h2(lambda x, y: ss(s(x, 16) - s(y, 16), 16))(a, b),
    "v_pk_mad_u16 v4, v8, v9, v10": lambda a, b, c: h2(lambda x, y, z: su(x * y + z, 16))(a, b, c),
    "v_pk_mad_i16 v4, v8, v9, v10":
        lambda a, b, c: h2(lambda x, y, z: ss(s(x, 16) * s(y, 16) + s(z, 16), 16))(a, b, c),
    "v_pk_mul_lo_u16 v4, v8, v9": lambda a, b, c: h2(lambda x, y: su(x * y, 16))(a, b),
    "v_pk_max_i16 v4, v8, v9": lambda a, b, c: h2(lambda x, y: max(s(x, 16), s(y, 16)) & 0xFFFF)(a, b),
    "v_pk_min_u16 v4, v8, v9": lambda a, b, c: h2(min)(a, b),
    "v_add_nc_u16 v4.l, v8.l, v9.l": lambda a, b, c: su((a & 0xFFFF) + (b & 0xFFFF), 16),
    "v_sub_nc_u16 v4.l, v8.l, v9.l": lambda a, b, c: su((a & 0xFFFF) - (b & 0xFFFF), 16),
    "v_add_nc_i16 v4.l, v8.l, v9.l": lambda a, b, c: ss(s(a, 16) + s(b, 16), 16),
    "v_sub_nc_i16 v4.l, v8.l, v9.l": lambda a, b, c: ss(s(a, 16) - s(b, 16), 16),
    "v_mad_u16 v4.l, v8.l, v9.l, v10.l": lambda a, b, c: su((a & 0xFFFF) * (b & 0xFFFF) + (c & 0xFFFF), 16),
    "v_mad_i16 v4.l, v8.l, v9.l, v10.l": lambda a, b, c: ss(s(a, 16) * s(b, 16) + s(c, 16), 16),
    "v_max3_i16 v4.l, v8.l, v9.l, v10.l": lambda a, b, c: max(s(a, 16), s(b, 16), s(c, 16)) & 0xFFFF,
    "v_dot4_u32_u8 v4, v8, v9, v10": lambda a, b, c: su(dot(8, False, False)(a, b, 0) + c),
    "v_dot8_u32_u4 v4, v8, v9, v10": lambda a, b, c: su(dot(4, False, False)(a, b, 0) + c),
    **{f"v_dot4_i32_iu8 v4, v8, v9, v10 neg_lo:[{x},{y},0]": lambda a, b, c, x=x, y=y: ss(dot(8, x, y)(a, b, c))
       for x in (0, 1) for y in (0, 1)},
    **{f"v_dot8_i32_iu4 v4, v8, v9, v10 neg_lo:[{x},{y},0]": lambda a, b, c, x=x, y=y: ss(dot(4, x, y)(a, b, c))
       for x in (0, 1) for y in (0, 1)},
}  # fmt: skip


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_integer_clamp(arch, wave):
    from isa_ref import values

    rng = np.random.default_rng(52)
    lines = [f"{t.replace('vcc', 's[20:21]' if wave == 64 else 's20')} clamp" for t in CLAMPED]
    for (text, f), line, code in zip(CLAMPED.items(), lines, assemble(arch, wave, lines), strict=True):
        old, *src = (values(rng, "u32", wave).astype(np.uint32) for _ in range(4))
        assert code is not None, line
        got = at(run(arch, wave, code, {4: old, **{8 + i: x for i, x in enumerate(src)}}), 4)
        for lane in range(wave):
            a, b, c = (int(x[lane]) for x in src)
            want = f(a, b, c)
            if ".l" in text.split(",")[0]:
                want |= int(old[lane]) & 0xFFFF0000
            assert got[lane] == want, f"{line}: lane {lane} is {got[lane]:x}, not {want:x} of {a:x} {b:x} {c:x}"
    wide = ["v_mad_u64_u32", "v_mad_i64_i32"] if arch == "gfx1100" else ["v_mad_co_u64_u32", "v_mad_co_i64_i32"]
    lines = [f"{n} v[4:5], {'s[20:21]' if wave == 64 else 's20'}, v8, v9, v[10:11] clamp" for n in wide]
    for i, code in enumerate(assemble(arch, wave, lines)):
        a, b = (values(rng, "u32", wave).astype(np.uint32) for _ in range(2))
        c = values(rng, "u64", wave)
        lo, hi = (c & np.uint64(M32)).astype(np.uint32), (c >> np.uint64(32)).astype(np.uint32)
        out = run(arch, wave, code, {4: a, 5: b, 8: a, 9: b, 10: lo, 11: hi})
        for lane in range(wave):
            x, y, z = int(a[lane]), int(b[lane]), int(c[lane])
            want = su(x * y + z, 64) if i == 0 else ss(s(x) * s(y) + s(z, 64), 64)
            assert at(out, 4)[lane] | at(out, 5)[lane] << 32 == want, f"{lines[i]}: lane {lane}"


@pytest.mark.parametrize("arch", ARCHS)
def test_output_modifiers(arch):
    """Clamp of a NaN by DX10_CLAMP (gfx12: always to 0); omod where subnormals are flushed and IEEE is off (gfx12:
    always)."""
    a = np.array([0x3FC00000, 0xBF800000, 0x7FC00000, 0x3F000000, 0x00000001, 0x7F7FFFFF] * 6, np.uint32)[:32]
    code = assemble(arch, 32, ["v_add_f32_e64 v4, v8, 0 clamp"])[0]
    for dx10 in (0, 1):
        got = at(run(arch, 32, code, {4: a, 8: a}, mode={"dx10_clamp": dx10}), 4)
        nan = 0 if dx10 or arch == "gfx1201" else 0x7FC00000
        assert got[:6] == [0x3F800000, 0, nan, 0x3F000000, 1, 0x3F800000]
    code = assemble(arch, 32, ["v_add_f32_e64 v4, v8, 0 mul:2"])[0]
    for ieee, denorm in itertools.product((0, 1), (0, 3)):
        got = at(run(arch, 32, code, {4: a, 8: a}, mode={"ieee": ieee, "fp32_denorm": denorm}), 4)
        doubles = arch == "gfx1201" or (denorm == 0 and not ieee)
        assert got[0] == (0x40400000 if doubles else 0x3FC00000), (ieee, denorm)
        assert got[4] == (0 if denorm == 0 or doubles else 1)


def pairs_of_halves(seed, wave):
    """Three registers of two small whole halves: as halves, their bits (lane, half), and the registers."""
    rng = np.random.default_rng(seed)
    h = [rng.integers(-9, 10, (wave, 2)).astype(np.float16) for _ in range(3)]
    bits = [x.view(np.uint16).astype(np.uint32) for x in h]
    return h, bits, [x[:, 0] | x[:, 1] << np.uint32(16) for x in bits]


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_packed_fmac(arch, wave):
    h, _, (old, a, b) = pairs_of_halves(53, wave)
    code = assemble(arch, wave, ["v_pk_fmac_f16 v4, v8, v9"])[0]
    got = at(run(arch, wave, code, {4: old, 8: a, 9: b}), 4)
    for lane in range(wave):
        r = [float(h[1][lane, k]) * float(h[2][lane, k]) + float(h[0][lane, k]) for k in (0, 1)]
        assert got[lane] == pattern(r[0], "f16") | pattern(r[1], "f16") << 16, f"lane {lane}"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_fmac_halves(arch, wave):
    """The half that v_fmac_f16 writes is the half that it adds to, in every encoding."""
    h, words, (old, a, b) = pairs_of_halves(59, wave)
    move = " quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf"
    jobs = []
    for d, x, y in itertools.product((0, 1), repeat=3):
        names = f"v4.{'lh'[d]}, v8.{'lh'[x]}, v9.{'lh'[y]}"
        sel = f" op_sel:[{x},{y},{d},{d}]" if d | x | y else ""
        jobs += [(f"v_fmac_f16_e32 {names}", d, x, y), (f"v_fmac_f16_dpp {names}{move}", d, x, y),
                 (f"v_fmac_f16_e64 {names}{sel}", d, x, y), (f"v_fmac_f16_e64_dpp {names}{sel}{move}", d, x, y),
                 (f"v_fmac_f16_e64 v4.{'lh'[d]}, -v8.{'lh'[x]}, v9.{'lh'[y]}{sel}", d, x, y)]  # fmt: skip
    for (text, d, x, y), code in zip(jobs, assemble(arch, wave, [j[0] for j in jobs]), strict=True):
        assert code is not None, text
        got = at(run(arch, wave, code, {4: old, 8: a, 9: b}), 4)
        sign = -1 if "-v8" in text else 1
        for lane in range(wave):
            want = words[0][lane].tolist()
            want[d] = pattern(sign * float(h[1][lane, x]) * float(h[2][lane, y]) + float(h[0][lane, d]), "f16")
            assert got[lane] == want[0] | want[1] << 16, f"{text} lane {lane}"


@pytest.mark.parametrize("wave", [32, 64])
def test_bytes_of_8_bit_floats(wave):
    """gfx1201: which byte or word is read or written, in every encoding; NaNs and infinities of both formats."""
    rng = np.random.default_rng(54)
    move = " quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
    jobs: list[tuple[str, str, str, int]] = []
    for k in FP8:
        for n in range(4):
            sel = f" byte_sel:{n}" if n else ""
            jobs += [(f"v_cvt_f32_{k}_e64 v4, v8{sel}", k, "read", n),
                     (f"v_cvt_f32_{k}_e64_dpp v4, v8{sel}{move}", k, "read", n),
                     (f"v_cvt_sr_{k}_f32 v4, v8, v9{sel}", k, "write", n),
                     (f"v_cvt_sr_{k}_f32_e64_dpp v4, v8, v9{sel}{move}", k, "write", n)]  # fmt: skip
        for n, x in enumerate("lh"):
            sel = " op_sel:[1,0]" if n else ""
            jobs += [(f"v_cvt_pk_f32_{k}_e32 v[4:5], v8.{x}", k, "pair", n),
                     (f"v_cvt_pk_f32_{k}_e64 v[4:5], v8.{x}{sel}", k, "pair", n),
                     (f"v_cvt_pk_{k}_f32 v4.{x}, v8, v9" + " op_sel:[0,0,1]" * n, k, "pack", n)]  # fmt: skip
    for (text, k, what, n), code in zip(jobs, assemble("gfx1201", wave, [j[0] for j in jobs]), strict=True):
        assert code is not None, text
        exec_, (old, old2, a, b) = active(rng, wave), rows(rng, wave, 4)
        if "dpp" in text:
            exec_ |= exec_ << 1 & 0xAAAAAAAAAAAAAAAA & ((1 << wave) - 1)
            exec_ |= exec_ >> 1 & 0x5555555555555555
        if what in ("write", "pack"):
            a, b = (rng.uniform(-9, 9, wave).astype(np.float32).view(np.uint32) for _ in range(2))
            b = rows(rng, wave, 1)[0] if what == "write" else b
        out = run("gfx1201", wave, code, {4: old, 5: old2, 8: a, 9: b}, exec=f"{exec_:x}")
        src = a[np.arange(wave) ^ 1] if "dpp" in text else a
        for lane in range(wave):
            x, y, before = int(src[lane]), int(b[lane]), int(old[lane])
            got = [at(out, 4)[lane], at(out, 5)[lane]]
            if not exec_ >> lane & 1:
                assert got == [before, int(old2[lane])], f"{text}: lane {lane}"
                continue
            if what in ("read", "pair"):
                octet = [x >> 8 * n] if what == "read" else [x >> 16 * n, x >> 16 * n + 8]
                for have, o in zip(got, octet, strict=False):
                    want = fp8(o, k)
                    ok = math.isnan(real(have, "f32")) if math.isnan(want) else have == pattern(want, "f32")
                    assert ok, f"{text}: lane {lane} is {have:x}, not {want}"
                continue
            if what == "write":
                byte = stochastic(k)(x, y, 0) & 255
                want = before & ~(255 << 8 * n) | byte << 8 * n
            else:
                both = [int(np.array(real(v, "f32"), np.float32).astype(FP8[k]).view(np.uint8)) for v in (x, y)]
                want = before & ~(0xFFFF << 16 * n) | (both[0] | both[1] << 8) << 16 * n
            assert got[0] == want, f"{text}: lane {lane} is {got[0]:x}, not {want:x}"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_signs_of_dot_products(arch, wave):
    """neg and abs of a pair of halves change both; of 8-bit floats only the third operand has them."""
    rng = np.random.default_rng(56)
    jobs = []
    for na, ab, nc, ac in itertools.product((0, 1), repeat=4):
        a, b, c = "-" * na + "v8", "|v9|" if ab else "v9", "-" * nc + ("|v10.l|" if ac else "v10.l")
        jobs.append((f"v_dot2_f16_f16 v4.l, {a}, {b}, {c}", "f16", na, ab, nc, ac))
        jobs.append((f"v_dot2_f32_f16 v4, v8, v9, v10 neg_lo:[{na},0,{nc}] neg_hi:[{ab},0,0]", "f32", na, ab, nc, 0))
        jobs.append((f"v_dot4_f32_fp8_bf8 v4, v8, v9, v10 neg_lo:[0,0,{nc}] neg_hi:[0,0,{ac}]", "fp8", 0, 0, nc, ac))
    for (text, kind, na, ab, nc, ac), code in zip(jobs, assemble(arch, wave, [j[0] for j in jobs]), strict=True):
        if code is None:
            assert kind == "fp8" and arch == "gfx1100", text
            continue
        h = [rng.integers(-6, 7, (wave, 2)).astype(np.float16) for _ in range(3)]
        v = [x.view(np.uint16).astype(np.uint32) for x in h]
        a, b, c = (x[:, 0] | x[:, 1] << np.uint32(16) for x in v)
        if kind != "f16":
            c = rng.integers(-9, 10, wave).astype(np.float32).view(np.uint32)
        if kind == "fp8":
            a, b = (rng.uniform(-3, 3, (wave, 4)).astype(FP8[k]).view(np.uint32)[:, 0] for k in ("fp8", "bf8"))
        old = rows(rng, wave, 1)[0]
        got = at(run(arch, wave, code, {4: old, 8: a, 9: b, 10: c}), 4)
        for lane in range(wave):
            z = float(h[2][lane, 0]) if kind == "f16" else real(int(c[lane]), "f32")
            z = (-1 if nc else 1) * (abs(z) if ac else z)
            if kind == "fp8":
                xy = [fp8(int(a[lane]) >> k, "fp8") * fp8(int(b[lane]) >> k, "bf8") for k in (0, 8, 16, 24)]
            else:
                x, y = ([float(q) for q in p[lane]] for p in h[:2])
                if kind == "f16":
                    x, y = [-q if na else q for q in x], [abs(q) if ab else q for q in y]
                else:
                    x = [-x[0] if na else x[0], -x[1] if ab else x[1]]
                xy = [p * q for p, q in zip(x, y, strict=True)]
            want = pattern(sum(xy) + z, "f16" if kind == "f16" else "f32")
            have = got[lane] & 0xFFFF if kind == "f16" else got[lane]
            assert have == want or not (have | want) & 0x7FFF7FFF, f"{text}: lane {lane} is {have:x}, not {want:x}"


@pytest.mark.parametrize(("arch", "wave"), BOTH)
def test_comparison_to_exec(arch, wave):
    """EXEC by name as the destination of a comparison; null takes a result that nobody wants."""
    rng = np.random.default_rng(55)
    exec_, (a, b) = active(rng, wave), rows(rng, wave, 2)
    lines = ["v_cmp_lt_u32_e64 exec, v8, v9", "v_cmp_lt_u32_e64 null, v8, v9"] if wave == 64 else [
        "v_cmp_lt_u32_e64 exec_lo, v8, v9", "v_cmp_lt_u32_e64 null, v8, v9"]  # fmt: skip
    want = sum(1 << i for i in range(wave) if exec_ >> i & 1 and a[i] < b[i])
    for text, code, e in zip(lines, assemble(arch, wave, lines), (want, exec_), strict=True):
        out = run(arch, wave, code, {8: a, 9: b}, exec=f"{exec_:x}", vcc="1234", s={"0": "77", "1": "88"})
        assert int(out["exec"], 16) == e and int(out["vcc"], 16) == 0x1234, text
        assert out["s"] == {"0": "00000077", "1": "00000088"}, text
    code = assemble(arch, wave, ["v_add_co_u32 v4, null, v8, v9"])[0]
    out = run(arch, wave, code, {4: a, 8: a, 9: b}, s={"0": "77"})
    assert at(out, 4) == (a + b).tolist() and out["s"] == {"0": "00000077"}


@pytest.mark.parametrize("arch", ARCHS)
def test_constants_of_mixed_multiply_adds(arch):
    """An inline constant is 1.0 in either reading; a literal is the half or the float that its bits are."""
    a, c = np.full(32, 0x7E800000, np.uint32), np.full(32, 0x3F800000, np.uint32)  # 2^126, 1
    inline, literal = bytes.fromhex("040020cc08e52904"), bytes.fromhex("040020cc08ff2904003c0000")
    as_half = bytearray(literal)
    as_half[7] |= 0x10  # op_sel_hi of the second source
    for code, want in ((inline, 2.0**126 + 1), (literal, 0x3C00 * 2.0**-23 + 1), (bytes(as_half), 2.0**126 + 1)):
        got = at(run(arch, 32, code, {4: a, 8: a, 10: c}), 4)
        assert got == [f32(want)] * 32, code.hex()
