"""Fragments of matrix instructions against recorded lane maps, and whole tiles against plain matrix products."""

import csv
import ctypes as C
import gzip
import random
import re
from collections import defaultdict
from functools import lru_cache

import layoutlib as tl
import numpy as np
import pytest

CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
# what opcodes call the types
FP8 = {"gfx942": ("f8e4m3fnuz", "f8e5m2fnuz"), "gfx950": ("f8e4m3fn", "f8e5m2"), "gfx1201": ("f8e4m3fn", "f8e5m2")}


@lru_cache(maxsize=1)
def read_map(chip: str) -> dict[str, dict[str, list[tuple[int, ...]]]]:
    """{opcode: {operand: [(i, j, k, block, lane, register, bit, bits)]}}; unused coordinates are 0."""
    path = tl.SHARED / "oracle" / "lanemap" / f"lanemap.{chip}.csv.gz"
    if not path.exists():
        pytest.skip(f"lane maps not found at {path} (set TILELANG_SHARED)")
    ops: dict[str, dict[str, list[tuple[int, ...]]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(path, "rt") as f:
        for row in csv.DictReader(f):
            nums = tuple(int(row[c] or 0) for c in ("i", "j", "k", "block", "lane", "register", "bit", "bits"))
            ops[row["opcode"]][row["operand"]].append(nums)
    return ops


def opcode_key(op: str, chip: str) -> tuple | None:
    """(m, n, k, blocks, a, b, c, xf32) of a dense opcode; None for sparse ones and formats without an element type."""
    if "smfmac" in op or "swmmac" in op or "iu4" in op or op.endswith(":fp4"):
        return None
    m = re.fullmatch(r"v_(?:mfma|wmma)_(\w+?)_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?(\w+?)(?:_1k)?(?::(\w+))?", op)
    c, mm, nn, kk, blocks, ab, fmt = m.groups()
    fp8, bf8 = FP8.get(chip, ("", ""))
    xf32 = ab == "xf32"
    kinds = {"fp8": fp8, "bf8": bf8, "iu8": "i8", "xf32": "f32"}
    parts = [fmt, fmt] if fmt else ab.split("_") if "_" in ab else [ab, ab]
    a, b = (kinds.get(p, p) for p in parts)
    return int(mm), int(nn), int(kk), int(blocks or 0), a, b, c, xf32


def find_row(key: tuple, chip: str) -> tl.Mma:
    m, n, k, blocks, a, b, c, xf32 = key
    t = tl.target(chip).contents
    rows = [
        x
        for x in tl.all_mmas()
        if x.passes[t.id]
        and (x.m, x.n, x.k) == (m, n, k)
        and (not blocks or x.blocks == blocks)
        and (x.form == 1) == xf32
        and [tl.elem_name(e) for e in (x.a, x.b, x.c)] == [a, b, c]
    ]
    assert len(rows) == 1, (key, [r.name for r in rows])
    return rows[0]


@pytest.mark.parametrize("chip", CHIPS)
def test_fragments_match_recorded_lane_maps(chip: str) -> None:
    """Every element of A, B, C and D of every dense opcode sits where the table says, and nothing else is claimed."""
    done = set()
    for op, operands in read_map(chip).items():
        key = opcode_key(op, chip)
        if key is None:
            continue
        blocks = 1 + max(row[3] for row in operands["D"])
        assert key[3] in (0, blocks), op
        m = find_row((*key[:3], blocks, *key[4:]), chip)
        done.add(m.id)
        assert set(operands) == {"A", "B", "C", "D"}
        for operand, rows in operands.items():
            which = {"A": tl.A, "B": tl.B}.get(operand, tl.CD)
            layout = tl.frag(m, which)
            t = tl.table(layout, "reg", "lane")
            block = t.get("block", np.zeros_like(t["d0"]))
            elem_bits = tl.lib().tl_elem_info((m.a, m.b, m.c)[which]).contents.bits
            per_dword = 1 if chip == "gfx1100" and which == tl.CD else max(1, 32 // elem_bits)
            ours = {
                (int(t["d0"][r, lane]), int(t["d1"][r, lane]), int(block[r, lane]), lane, r)
                for r in range(t["d0"].shape[0])
                for lane in range(t["d0"].shape[1])
            }
            want = set()
            for i, j, k, b, lane, register, bit, bits in rows:
                assert bits == elem_bits
                reg = register // 2 if bits == 64 else register * per_dword + bit // bits
                first, second = {"A": (i, k), "B": (k, j)}.get(operand, (i, j))
                want.add((first, second, b, lane, reg))
            assert ours == want, (op, operand, sorted(ours ^ want)[:8])
    assert done, "no opcode tested"
    t = tl.target(chip).contents
    # rows of the table that no recorded opcode covers: those that share an opcode with a covered one
    left = [m.name.decode() for m in tl.all_mmas() if m.passes[t.id] and m.id not in done]
    for name in left:
        assert re.search(r"u8|i8_u8|f8f6f4|x128_|x64_f8", name), f"{name} was not compared"


def test_a_and_b_agree_on_k() -> None:
    """The k of (element, lane group) is the same function for A and B; only so may k be renumbered for both."""
    for m in tl.all_mmas():
        if m.blocks != 1 or m.m != m.n:
            continue
        a, b = tl.table(tl.frag(m, tl.A), "reg", "lane"), tl.table(tl.frag(m, tl.B), "reg", "lane")
        assert np.array_equal(a["d1"], b["d0"]), m.name
        assert np.array_equal(a["d0"], b["d1"]), m.name


def matmul_by_slices(d: tl.Dot, rng: np.random.Generator) -> None:
    """Runs the tile product instruction by instruction with the fragments of each, and compares with A @ B."""
    lib, m = tl.lib(), d.mma.contents
    layouts = {f: tl.dot_layout(d, f) for f in (tl.A, tl.B, tl.CD)}
    tabs = {f: tl.table(x, "reg", "lane", "wave") for f, x in layouts.items()}
    ta, tb, tc = tabs[tl.A], tabs[tl.B], tabs[tl.CD]
    assert ta["d0"].max() < d.m and ta["d1"].max() < d.k and tb["d1"].max() < d.n
    mat_a = rng.integers(-8, 9, (d.m, d.k))
    mat_b = rng.integers(-8, 9, (d.k, d.n))
    ref = mat_a @ mat_b
    reg_a, reg_b = mat_a[ta["d0"], ta["d1"]], mat_b[tb["d0"], tb["d1"]]
    hw = {f: tl.table(tl.frag(m, f), "reg", "lane") for f in (tl.A, tl.B, tl.CD)}
    acc = np.zeros(tc["d0"].shape, dtype=np.int64)
    tm, tn, ks = (getattr(lib, f)(C.byref(d)) for f in ("tl_dot_tiles_m", "tl_dot_tiles_n", "tl_dot_steps_k"))
    used = {f: np.zeros(x["d0"].shape[0], dtype=int) for f, x in tabs.items()}
    for mt in range(tm):
        for nt in range(tn):
            sc = lib.tl_dot_slice(C.byref(d), tl.CD, mt, nt, 0)
            rc = slice(sc.reg, sc.reg + sc.count)
            used[tl.CD][rc] += 1
            for step in range(ks):
                sa = lib.tl_dot_slice(C.byref(d), tl.A, mt, 0, step)
                sb = lib.tl_dot_slice(C.byref(d), tl.B, 0, nt, step)
                used[tl.A][sa.reg : sa.reg + sa.count] += 1
                used[tl.B][sb.reg : sb.reg + sb.count] += 1
                for w in range(d.wave_m * d.wave_n):
                    va, vb = reg_a[sa.reg : sa.reg + sa.count, :, w], reg_b[sb.reg : sb.reg + sb.count, :, w]
                    first, second = (vb, va) if d.swapped else (va, vb)
                    x, y = np.zeros((m.m, m.k), dtype=np.int64), np.zeros((m.k, m.n), dtype=np.int64)
                    x[hw[tl.A]["d0"], hw[tl.A]["d1"]] = first
                    y[hw[tl.B]["d0"], hw[tl.B]["d1"]] = second
                    acc[rc, :, w] += (x @ y)[hw[tl.CD]["d0"], hw[tl.CD]["d1"]]
    assert np.array_equal(acc, ref[tc["d0"], tc["d1"]])
    # every register is used by as many instructions as share it, and the result covers the tile exactly once
    assert (used[tl.A] == tn).all() and (used[tl.B] == tm).all() and (used[tl.CD] == 1).all()
    cells = np.zeros((d.m, d.n), dtype=int)
    np.add.at(cells, (tc["d0"], tc["d1"]), 1)
    assert (cells == 1).all()


CASES = [
    # mma, m, n, k, wave_m, wave_n, kpack, mpair, npair, swapped
    ("mfma_32x32x8_f16", 128, 128, 64, 2, 2, 2, 0, 1, True),
    ("mfma_32x32x8_f16", 128, 128, 64, 2, 2, 1, 0, 0, False),
    ("mfma_16x16x16_f16", 64, 128, 32, 1, 4, 2, 0, 1, True),
    ("mfma_16x16x16_f16", 16, 256, 64, 1, 4, 2, 0, 1, False),
    ("mfma_32x32x2_f32", 64, 64, 16, 2, 1, 4, 0, 0, False),
    ("mfma_32x32x2_f32", 64, 128, 16, 2, 1, 4, 0, 2, True),
    ("mfma_16x16x4_f64", 32, 32, 16, 2, 2, 2, 0, 0, False),
    ("mfma_32x32x16_i8", 64, 64, 32, 1, 2, 2, 1, 0, True),
    ("mfma_16x16x32_f8e4m3fnuz", 32, 64, 64, 1, 2, 2, 0, 0, False),
    ("mfma_32x32x16_bf16", 64, 64, 32, 1, 1, 1, 1, 1, False),
    ("mfma_16x16x128_f8e4m3fn", 32, 32, 256, 1, 1, 1, 0, 0, True),
    ("wmma11_16x16x16_f16", 32, 64, 32, 2, 2, 1, 0, 0, False),
    ("wmma11_16x16x16_i8", 32, 32, 32, 1, 2, 1, 0, 0, True),
    ("wmma12_16x16x16_f16", 64, 32, 64, 2, 1, 2, 0, 1, True),
    ("wmma12_16x16x16_f16_f16", 32, 32, 32, 1, 1, 1, 0, 0, False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_tile_products(case: tuple) -> None:
    name, *nums, swapped = case
    matmul_by_slices(tl.Dot(C.pointer(tl.mma(name).contents), *nums, swapped), np.random.default_rng(1))


def test_random_tile_products() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng, lib = random.Random(seed), tl.lib()
    rows = [m for m in tl.all_mmas() if m.blocks == 1]
    tried = 0
    while tried < 12:
        m = rng.choice(rows)
        wm, wn = rng.choice([1, 2]), rng.choice([1, 2, 4])
        d = tl.Dot(
            C.pointer(m), m.m * wm * rng.choice([1, 2]), m.n * wn * rng.choice([1, 2, 4]), m.k * rng.choice([1, 2, 4]),
            wm, wn, rng.choice([1, 2, 4]), rng.choice([0, 1]), rng.choice([0, 1, 2]), rng.random() < 0.5,
        )  # fmt: skip
        if lib.tl_dot_check(C.byref(d), None) is None:
            matmul_by_slices(d, np.random.default_rng(seed + tried))
            tried += 1


def test_documented_gemm_tile() -> None:
    """The 128x128x64 tile of 2x2 waves: which rows, columns and k each lane holds, as formulas."""
    d = tl.Dot(C.pointer(tl.mma("mfma_32x32x8_f16").contents), 128, 128, 64, 2, 2, 2, 0, 1, True)
    a, b, c = (tl.table(tl.dot_layout(d, f), "reg", "lane", "wave") for f in (tl.A, tl.B, tl.CD))
    reg, lane, wave = np.ogrid[: a["d0"].shape[0], :64, :4]
    r, h, wm, wn = lane % 32, lane // 32, wave // 2, wave % 2
    e, u, s, i = reg % 4, reg // 4 % 2, reg // 8 % 4, reg // 32
    assert np.array_equal(a["d0"], 64 * wm + 32 * i + r + 0 * reg)
    assert np.array_equal(a["d1"], 16 * s + 8 * h + 4 * u + e + 0 * wave)
    e, tile, u, s = reg % 4, reg // 4 % 2, reg // 8 % 2, reg // 16
    assert np.array_equal(b["d1"], 64 * wn + 2 * r + tile + 0 * reg)
    assert np.array_equal(b["d0"], 16 * s + 8 * h + 4 * u + e + 0 * wave)
    x, big_r, tile, i = reg % 4, reg // 4 % 4, reg // 16 % 2, reg // 32
    assert np.array_equal(c["d0"], 64 * wm + 32 * i + r + 0 * reg)
    assert np.array_equal(c["d1"], 64 * wn + 16 * big_r + 8 * h + 2 * x + tile)
    # with registers in column order, C leaves in 16-byte stores: 8 consecutive f16 columns a lane
    cl = tl.dot_layout(d, tl.CD)
    perm = (C.c_uint8 * 8)()
    tl.lib().tl_layout_regs_along(C.byref(cl), tl.D1, perm)
    assert tl.lib().tl_layout_contiguity(C.byref(tl.permuted(cl, list(perm)[:6])), tl.D1) == 8


def test_dot_check_says_why() -> None:
    lib, m = tl.lib(), C.pointer(tl.mma("mfma_32x32x8_f16").contents)

    def why(*args: object, chip: str = "gfx942") -> str | None:
        r = lib.tl_dot_check(C.byref(tl.Dot(*args)), tl.target(chip))
        return r.decode() if r else None

    assert why(m, 128, 128, 64, 2, 2, 2, 0, 1, True) is None
    assert "few rows" in why(m, 32, 128, 64, 2, 2, 2, 0, 0, False)
    assert "few columns" in why(m, 128, 64, 64, 2, 2, 2, 0, 1, False)
    assert "short in k" in why(m, 128, 128, 8, 2, 2, 2, 0, 0, False)
    assert "powers of two" in why(m, 96, 128, 64, 2, 2, 2, 0, 0, False)
    assert "powers of two" in why(m, 128, 128, 64, 0, 2, 2, 0, 0, False)
    assert "too many waves" in why(m, 1024, 1024, 64, 8, 4, 2, 0, 0, False)
    assert "chip" in why(m, 128, 128, 64, 2, 2, 2, 0, 0, False, chip="gfx1100")
    assert "one-block" in why(C.pointer(tl.mma("mfma_4x4x4_16b_f16").contents), 128, 128, 64, 1, 1, 1, 0, 0, False)
