"""LDS: phases and conflict counts against documented figures, maps, address splits, and the swizzle solver."""

import ctypes as C
import random
import time

import layoutlib as tl
import numpy as np
import pytest

LANE = np.arange(64)


def read(layout: tl.Layout, max_bytes: int = 16, weight: int = 1) -> tl.Access:
    return tl.Access(tl.READ, layout, max_bytes, weight)


def write(layout: tl.Layout, max_bytes: int = 16, weight: int = 1) -> tl.Access:
    return tl.Access(tl.WRITE, layout, max_bytes, weight)


# ---- counting -----------------------------------------------------------------------------------


def test_counts_measured_on_hardware() -> None:
    """Fully conflicted reads: 62, 60, 56 extra cycles (b32, b64, b128); b32 at strides of 8 and 32 dwords: 16, 64."""
    for width, extra in ((4, 62), (8, 60), (16, 56)):
        assert tl.conflicts("gfx942", tl.READ, width, LANE * 128) == extra
    phases = tl.lib().tl_lds_phases(tl.target("gfx942"), tl.READ, 4)
    assert phases == 2
    for dwords, cycles in ((1, 2), (8, 16), (32, 64)):
        assert phases + tl.conflicts("gfx942", tl.READ, 4, LANE * 4 * dwords) == cycles
    assert tl.conflicts("gfx942", tl.READ, 4, LANE * 0) == 0  # broadcast
    assert tl.conflicts("gfx942", tl.READ, 2, LANE * 2) == 0
    assert tl.conflicts("gfx950", tl.READ, 4, LANE * 4) == 0
    assert tl.conflicts("gfx950", tl.READ, 4, LANE * 256) == 63
    assert tl.conflicts("gfx1100", tl.READ, 4, LANE[:32] * 128) == 31


def test_phases_are_those_of_the_table() -> None:
    """Two lanes on one bank conflict exactly if the table puts them in one phase."""
    quads = [
        [0, 1, 2, 3, 20, 21, 22, 23],
        [4, 5, 6, 7, 16, 17, 18, 19],
        [8, 9, 10, 11, 28, 29, 30, 31],
        [12, 13, 14, 15, 24, 25, 26, 27],
    ]
    half = [[0, 1, 2, 3, 12, 13, 14, 15, *range(20, 28)], [*range(4, 12), 16, 17, 18, 19, 28, 29, 30, 31]]

    def runs(n: int, lanes: int = 64) -> list[list[int]]:
        return [list(range(i, i + n)) for i in range(0, lanes, n)]

    both = [[x + 32 for x in p] for p in quads]
    table = {
        ("gfx942", tl.READ, 4): runs(32),
        ("gfx942", tl.READ, 8): runs(16),
        ("gfx942", tl.READ, 12): quads + both,
        ("gfx942", tl.READ, 16): quads + both,
        ("gfx942", tl.WRITE, 4): runs(32),
        ("gfx942", tl.WRITE, 8): runs(16),
        ("gfx942", tl.WRITE, 16): runs(8),
        ("gfx90a", tl.READ, 16): quads + both,
        ("gfx950", tl.READ, 4): runs(64),
        ("gfx950", tl.READ, 8): runs(32),
        ("gfx950", tl.READ, 12): quads + both,
        ("gfx950", tl.READ, 16): half + [[x + 32 for x in p] for p in half],
        ("gfx950", tl.WRITE, 8): runs(16),
        ("gfx950", tl.WRITE, 16): runs(8),
        ("gfx1100", tl.READ, 4): runs(32, 32),
        ("gfx1100", tl.READ, 8): runs(16, 32),
        ("gfx1100", tl.READ, 16): quads,
        ("gfx1201", tl.READ, 8): runs(16, 32),
        ("gfx1201", tl.READ, 16): runs(8, 32),
    }
    banks64 = {("gfx950", tl.READ, 4), ("gfx950", tl.READ, 8), ("gfx950", tl.READ, 16)}
    for (chip, op, width), phases in table.items():
        t = tl.target(chip)
        assert sorted(sum(phases, [])) == list(range(t.contents.wave))
        assert tl.lib().tl_lds_phases(t, op, width) == len(phases)
        of = {lane: i for i, p in enumerate(phases) for lane in p}
        for a in range(0, t.contents.wave, 3):
            for b in range(a + 1, t.contents.wave):
                addr = np.zeros(t.contents.wave)
                addr[b] = 256
                got = tl.conflicts(chip, op, width, addr, 1 << a | 1 << b)
                assert got == (of[a] == of[b]), (chip, op, width, a, b)
        addr = np.zeros(t.contents.wave)
        addr[phases[0][1]] = 128
        pair = 1 << phases[0][0] | 1 << phases[0][1]
        assert tl.conflicts(chip, op, width, addr, pair) == (0 if (chip, op, width) in banks64 else 1)


def test_unknown_phases_are_reported() -> None:
    for chip, op, width in (
        ("gfx942", tl.WRITE, 12),
        ("gfx1100", tl.WRITE, 16),
        ("gfx1201", tl.WRITE, 8),
        ("gfx942", tl.READ, 32),
    ):
        assert tl.conflicts(chip, op, width, LANE * width) == tl.UNKNOWN
        assert tl.lib().tl_lds_phases(tl.target(chip), op, width) == 0


def brute(addr: np.ndarray, width: int, phases: list[list[int]], banks: int) -> int:
    extra = 0
    for p in phases:
        per: dict[int, set[int]] = {}
        for lane in p:
            for d in range(addr[lane] // 4, (addr[lane] + width - 1) // 4 + 1):
                per.setdefault(d % banks, set()).add(d)
        extra += max(len(s) for s in per.values()) - 1
    return extra


def test_random_addresses_against_plain_count() -> None:
    """Random addresses, also not aligned."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        width = int(rng.choice([1, 2, 4, 8, 16]))
        addr = rng.integers(0, 4096, 64) * int(rng.choice([1, 4, width]))
        n = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[width]
        assert tl.conflicts("gfx942", tl.WRITE, width, addr) == brute(
            addr, width, [list(range(i, i + n)) for i in range(0, 64, n)], 32
        )


# ---- the documented layouts of the 128x128x64 f16 GEMM -------------------------------------------


def a_store(pitch: int, xor: bool) -> np.ndarray:
    """Byte addresses [wave, load i, lane] of the b128 stores of A."""
    t = (LANE + 64 * np.arange(4)[:, None])[:, None, :]
    row, q = t // 8 + 32 * np.arange(4)[None, :, None], t % 8
    return pitch * row + 16 * (q ^ (row & 7) if xor else q)


def a_read(pitch: int, xor: bool) -> np.ndarray:
    """[32-row block i, step s, lane] of the b128 reads of A (one wave row)."""
    i, s = np.arange(2)[:, None, None], np.arange(4)[None, :, None]
    row, q = 32 * i + LANE % 32, 2 * s + LANE // 32
    return pitch * row + 16 * (q ^ (row & 7) if xor else q)


def worst(op: int, width: int, addr: np.ndarray) -> int:
    return max(tl.conflicts("gfx942", op, width, a) for a in addr.reshape(-1, 64))


def test_documented_layouts_of_a() -> None:
    assert (worst(tl.WRITE, 16, a_store(128, True)), worst(tl.READ, 16, a_read(128, True))) == (0, 0)
    assert (worst(tl.WRITE, 16, a_store(144, False)), worst(tl.READ, 16, a_read(144, False))) == (0, 0)
    assert (worst(tl.WRITE, 16, a_store(128, False)), worst(tl.READ, 16, a_read(128, False))) == (0, 56)
    t = (LANE + 64 * np.arange(4)[:, None])[:, None, :]
    row, q = t // 8 + 32 * np.arange(4)[None, :, None], t % 8
    i, s = np.arange(2)[:, None, None], np.arange(4)[None, :, None]
    rrow, rq = 32 * i + LANE % 32, 2 * s + LANE // 32
    for pad, store in ((0, 56), (16, 0)):  # chunk-major: all rows of a chunk together
        assert worst(tl.WRITE, 16, (128 * 16 + pad) * q + 16 * row) == store
        assert worst(tl.READ, 16, (128 * 16 + pad) * rq + 16 * rrow) == 0


def test_documented_layouts_of_b() -> None:
    t = LANE + 64 * np.arange(4)[:, None]
    c, g = (t % 16)[:, None, :], (t // 16)[:, None, :]
    d = np.arange(4)[None, :, None]
    wn, s, u = np.ogrid[:2, :4, :2]
    p = 32 * wn[..., None] + LANE % 32
    rg = 4 * s[..., None] + 2 * (LANE // 32) + u[..., None]
    for swizzled, store in ((True, 0), (False, 24)):
        addr = 8 * 128 * g + 16 * (4 * c + (d ^ (c >> 1 & 3) if swizzled else d))
        rc, rd = p >> 2, p & 3
        raddr = 8 * 128 * rg + 16 * (4 * rc + (rd ^ (rc >> 1 & 3) if swizzled else rd))
        assert worst(tl.WRITE, 16, addr) == store
        assert worst(tl.READ, 16, raddr) == 0
    # K-contiguous rows of 128 B, chunk swizzled, b64 stores of 4 k
    swizzles = {"both": lambda n: (n & 7) ^ (n >> 3 & 7), "low": lambda n: n & 7, "high": lambda n: n >> 3 & 7}
    want = {("both", 8): (0, 0), ("both", 16): (4, 0), ("low", 8): (28, 0), ("high", 8): (0, 24)}
    for (name, groups), (store, load) in want.items():
        f = swizzles[name]
        stores = []
        for j in range(8):
            col = 8 * (LANE % groups) + j  # lanes: `groups` column groups, then k quads
            q4 = (LANE // groups) % 16
            stores.append(128 * col + 16 * ((q4 >> 1) ^ f(col)) + 8 * (q4 & 1))
        loads = []
        for tile in range(4):
            for step in range(4):
                col = 32 * tile + LANE % 32
                loads.append(128 * col + 16 * ((2 * step + LANE // 32) ^ f(col)))
        assert worst(tl.WRITE, 8, np.array(stores)) == store, name
        assert worst(tl.READ, 16, np.array(loads)) == load, name
    # row-major B, b128 stores; column pairs by read2st64_b32: rows k and k + 1 of a dword column, 2 KiB apart at most
    t = LANE + 64 * np.arange(4)[:, None]
    assert worst(tl.WRITE, 16, 256 * (t // 16) + 16 * (t % 16)) == 0
    col = np.ascontiguousarray(4 * (LANE % 32) + 512 * (LANE // 32), dtype=np.uint32)
    second = np.ascontiguousarray(col + 256, dtype=np.uint32)
    assert (
        tl.lib().tl_lds_conflicts2(tl.target("gfx942"), tl.READ, 4, col.ctypes.data, second.ctypes.data, (1 << 64) - 1)
        == 0
    )


# ---- maps and splits ----------------------------------------------------------------------------


def test_row_major_and_xor() -> None:
    m = tl.row_major((128, 64), 2)
    assert m.bytes == 128 * 64 * 2
    for b in range(3):
        assert tl.lib().tl_lds_xor(C.byref(m), 3 + b, 6 + b)
    for row, k in ((0, 0), (5, 17), (127, 63), (64, 8)):
        want = 128 * row + 16 * ((k // 8) ^ (row & 7)) + 2 * (k % 8)
        assert tl.lib().tl_lds_byte(C.byref(m), (C.c_uint32 * 2)(row, k)) == want
    assert not tl.lib().tl_lds_xor(C.byref(m), 6, 3)
    assert not tl.lib().tl_lds_xor(C.byref(m), 3, 13)
    for shape in ((3, 4), (0, 4)):
        with pytest.raises(ValueError):
            tl.row_major(shape, 2)


def gemm(swapped: bool = True, npair: int = 1, mma: str = "mfma_32x32x8_f16", **kw: int) -> tl.Dot:
    args = {"m": 128, "n": 128, "k": 64, "wave_m": 2, "wave_n": 2, "kpack": 2, "mpair": 0} | kw
    return tl.Dot(C.pointer(tl.mma(mma).contents), *args.values(), npair, swapped)


def check_split(chip: str, m: tl.LdsMap, access: tl.Access, s: tl.Split) -> None:
    """(base ^ xor) + immediate is the address everywhere; conflicts as counted lane by lane; as many groups as said."""
    lib, a = tl.lib(), tl.addresses(m, access.layout)
    base = a[0]
    groups = set()
    for i in range(1 << s.reg_bits):
        x, imm = C.c_uint32(), C.c_uint32()
        lib.tl_split_of(C.byref(s), i, C.byref(x), C.byref(imm))
        assert np.array_equal((base ^ x.value) + imm.value, a[i * s.vec])
        assert imm.value <= s.max_imm <= 65535
        groups.add(x.value)
    assert len(groups) == s.ngroups
    room = (C.c_uint32 * 1024)()
    assert lib.tl_split_groups(C.byref(s), room, 1024) == len(groups)
    assert sorted(groups) == list(room[: len(groups)])
    assert lib.tl_lds_base(C.byref(m), C.byref(access.layout), 5, 1 % a.shape[2]) == base[5, 1 % a.shape[2]]
    assert s.vec_bytes == s.vec * m.elem_bytes
    if s.conflicts != tl.UNKNOWN:
        assert tl.max_conflicts(chip, m, access, s.vec) == s.conflicts


def test_split_of_documented_a() -> None:
    """A: stores with 1 address + immediates, reads with 4."""
    m = tl.row_major((128, 64), 2)
    for b in range(3):
        assert tl.lib().tl_lds_xor(C.byref(m), 3 + b, 6 + b)
    w = write(tl.blocked((128, 64), 1, 2, 64, 4))
    r = read(tl.dot_layout(gemm(), tl.A))
    sw, sr = tl.split("gfx942", m, w), tl.split("gfx942", m, r)
    check_split("gfx942", m, w, sw)
    check_split("gfx942", m, r, sr)
    assert (sw.vec_bytes, sw.ngroups, sw.conflicts, 1 << sw.reg_bits) == (16, 1, 0, 4)
    assert (sr.vec_bytes, sr.ngroups, sr.conflicts, 1 << sr.reg_bits) == (16, 4, 0, 8)
    assert sr.replicated and not sw.replicated  # two waves read the same rows


def test_split_beyond_the_immediate() -> None:
    m = tl.row_major((512, 128), 2)  # 128 KiB
    access = write(tl.blocked((512, 128), 1, 2, 64, 4))
    s = tl.split("gfx950", m, access)
    assert s.ngroups == 2
    check_split("gfx950", m, access, s)


# ---- solver -------------------------------------------------------------------------------------


def is_bijection(m: tl.LdsMap) -> bool:
    return tl.lib().tl_layout_is_injective(C.byref(m.map)) and tl.lib().tl_layout_is_surjective(C.byref(m.map))


def solved(chip: str, shape: tuple[int, ...], elem: int, minor: int, accesses: list[tl.Access]) -> list[tl.Split]:
    m, splits, total = tl.solve(chip, shape, elem, minor, accesses)
    assert is_bijection(m)
    for access, s in zip(accesses, splits):
        check_split(chip, m, access, s)
    known = [
        s.conflicts * max(a.weight, 1) << s.reg_bits for a, s in zip(accesses, splits) if s.conflicts != tl.UNKNOWN
    ]
    assert sum(known) <= total
    return splits


def test_solve_a_tile() -> None:
    """A, 128 rows x 64 k of f16: b128 both ways without conflicts, as cheap as the documented map."""
    accesses = [write(tl.blocked((128, 64), 1, 2, 64, 4)), read(tl.dot_layout(gemm(), tl.A))]
    w, r = solved("gfx942", (128, 64), 2, 1, accesses)
    assert (w.vec_bytes, w.conflicts, w.ngroups) == (16, 0, 1)
    assert (r.vec_bytes, r.conflicts, r.ngroups) == (16, 0, 4)


def test_solve_b_pair() -> None:
    """B row-major in memory, pair units in LDS: 16 bytes both ways, no conflicts, as cheap as the documented map."""
    load, frag = tl.blocked((64, 128), 1, 2, 64, 4, rows=4), tl.dot_layout(gemm(), tl.B)
    store, matched = tl.regs_like(load, frag, 3)
    assert matched == 3
    w, r = solved("gfx942", (64, 128), 2, 1, [write(store), read(frag)])
    assert (w.vec_bytes, w.conflicts, 1 << w.reg_bits) == (16, 0, 4)
    assert (r.vec_bytes, r.conflicts, 1 << r.reg_bits) == (16, 0, 8)
    assert w.ngroups <= 4 and r.ngroups == 1


TILES = [
    # chip, mma, m, n, k, wave_m, wave_n, elem bytes, kpack, npair
    ("gfx942", "mfma_32x32x8_f16", 64, 128, 32, 2, 2, 2, 2, 1),
    ("gfx942", "mfma_16x16x16_f16", 16, 256, 64, 1, 4, 2, 2, 1),
    ("gfx942", "mfma_16x16x16_f16", 128, 128, 64, 2, 2, 2, 2, 1),
    ("gfx942", "mfma_32x32x8_bf16", 256, 256, 64, 2, 4, 2, 2, 1),
    ("gfx90a", "mfma_32x32x8_f16", 128, 128, 32, 2, 2, 2, 2, 1),
    ("gfx942", "mfma_32x32x2_f32", 64, 64, 32, 2, 2, 4, 4, 0),
    ("gfx942", "mfma_32x32x2_f32", 128, 128, 16, 2, 2, 4, 4, 0),
    ("gfx942", "mfma_16x16x4_f32", 64, 64, 32, 2, 2, 4, 4, 0),
    ("gfx942", "mfma_16x16x4_f64", 64, 64, 16, 2, 2, 8, 2, 0),
    ("gfx942", "mfma_32x32x16_i8", 128, 128, 64, 2, 2, 1, 2, 1),
    ("gfx942", "mfma_16x16x32_f8e4m3fnuz", 128, 128, 128, 2, 2, 1, 2, 1),
    ("gfx950", "mfma_32x32x16_f16", 128, 128, 64, 2, 2, 2, 1, 0),
    ("gfx950", "mfma_16x16x32_bf16", 256, 256, 64, 2, 2, 2, 1, 0),
    ("gfx950", "mfma_32x32x64_f8e4m3fn", 128, 128, 128, 2, 2, 1, 1, 0),
    ("gfx1100", "wmma11_16x16x16_f16", 64, 64, 32, 2, 2, 2, 1, 0),
    ("gfx1201", "wmma12_16x16x16_f16", 64, 64, 32, 2, 2, 2, 2, 0),
]


@pytest.mark.parametrize("tile", TILES, ids=lambda t: "-".join(map(str, t)))
def test_solve_gemm_tiles(tile: tuple) -> None:
    """A and B with K contiguous in memory: 16-byte accesses, no conflicts where phases are known."""
    chip, mma, m, n, k, wm, wn, elem, kpack, npair = tile
    wave = tl.target(chip).contents.wave
    dot = tl.Dot(C.pointer(tl.mma(mma).contents), m, n, k, wm, wn, kpack, 0, 0, False)
    assert tl.lib().tl_dot_check(C.byref(dot), tl.target(chip)) is None
    for shape, minor, which in (((m, k), 1, tl.A), ((k, n), 0, tl.B)):
        frag, load = tl.dot_layout(dot, which), tl.blocked(shape, minor, elem, wave, wm * wn)
        w, r = solved(chip, shape, elem, minor, [write(load), read(frag)])
        assert r.vec_bytes == 16 and r.conflicts == 0
        assert w.conflicts in (0, tl.UNKNOWN)
        per_thread = shape[0] * shape[1] * elem // (wm * wn * wave)
        assert w.vec_bytes == min(16, max(4, per_thread))
    if npair:  # B with N contiguous in memory, through pair units
        dot.npair, dot.swapped = npair, True
        load = tl.blocked((k, n), 1, elem, wave, wm * wn, rows=16 // elem >> npair)
        frag = tl.dot_layout(dot, tl.B)
        store, matched = tl.regs_like(load, frag, (16 // elem).bit_length() - 1)
        w, r = solved(chip, (k, n), elem, 1, [write(store), read(frag)])
        assert w.conflicts == 0 and r.conflicts == 0


def test_solve_prefers_no_swizzle() -> None:
    """Where plain row-major has no conflicts, nothing is XORed: row-wise stores and reads of one row a wave."""
    layout = tl.blocked((16, 256), 1, 4, 64, 4)
    m, splits, total = tl.solve("gfx942", (16, 256), 4, 1, [write(layout), read(layout)])
    assert total == 0 and all(s.conflicts == 0 and s.vec_bytes == 16 for s in splits)
    assert bytes(m.map) == bytes(tl.row_major((16, 256), 4).map)


@pytest.mark.parametrize("elem", [2, 4, 8])
def test_solve_transpose(elem: int) -> None:
    """Stores along rows, reads along columns: conflicts go, widths may shrink."""
    shape = (64, 64)
    w = write(tl.blocked(shape, 1, elem, 64, 4))
    r = read(tl.blocked(shape, 0, elem, 64, 4, vec=elem))
    sw, sr = solved("gfx942", shape, elem, 1, [w, r])
    plain = tl.row_major(shape, elem)
    before = sum(
        (tl.lib().tl_lds_phases(tl.target("gfx942"), a.op, s.vec_bytes) + s.conflicts) << s.reg_bits
        for a, s in ((a, tl.split("gfx942", plain, a)) for a in (w, r))
    )
    after = sum(
        (tl.lib().tl_lds_phases(tl.target("gfx942"), a.op, s.vec_bytes) + s.conflicts) << s.reg_bits
        for a, s in ((w, sw), (r, sr))
    )
    print("cycles", before, "->", after)
    assert after * 2 < before


def test_solve_random_layouts() -> None:
    """Random thread layouts: always a bijection, counts true, never worse than row-major."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    chips = ["gfx90a", "gfx942", "gfx950", "gfx1201"]
    for _ in range(25):
        chip, elem = rng.choice(chips), rng.choice([1, 2, 4, 8])
        wave, waves = tl.target(chip).contents.wave, rng.choice([1, 2, 4])
        shape = (1 << rng.randint(4, 7), 1 << rng.randint(4, 7))
        accesses = []
        for op in (tl.WRITE, tl.READ):
            layout = tl.blocked(shape, rng.randrange(2), elem, wave, waves)
            bits = len(tl.parse_text(str(layout))[0]["reg"])
            perm = list(range(bits))
            if rng.random() < 0.3:
                rng.shuffle(perm)
            accesses.append(tl.Access(op, tl.permuted(layout, perm), 16, rng.choice([1, 1, 3])))
        solved(chip, shape, elem, rng.randrange(2), accesses)


def test_solve_time() -> None:
    """Well under a millisecond a solve."""
    load, frag = tl.blocked((64, 128), 1, 2, 64, 4, rows=4), tl.dot_layout(gemm(), tl.B)
    store, _ = tl.regs_like(load, frag, 3)
    cases = [
        ((128, 64), 2, 1, [write(tl.blocked((128, 64), 1, 2, 64, 4)), read(tl.dot_layout(gemm(), tl.A))]),
        ((64, 128), 2, 1, [write(store), read(frag)]),
        ((64, 64), 4, 1, [write(tl.blocked((64, 64), 1, 4, 64, 4)), read(tl.blocked((64, 64), 0, 4, 64, 4, vec=4))]),
    ]
    for shape, elem, minor, accesses in cases:
        acc, n = (tl.Access * 2)(*accesses), 2
        m, splits, total, sh = tl.LdsMap(), (tl.Split * 2)(), C.c_uint32(), (C.c_uint32 * 4)(*shape)
        best = 1.0
        for _ in range(10):
            start = time.process_time()
            assert tl.lib().tl_lds_solve(
                tl.target("gfx942"), 2, sh, elem, minor, acc, n, C.byref(m), splits, C.byref(total)
            )
            best = min(best, time.process_time() - start)
        print(f"{shape} x {elem}: {best * 1e6:.0f} us, {total.value} extra cycles")
        assert best < 1e-3


def test_solve_refuses_nonsense() -> None:
    lib, layout = tl.lib(), tl.blocked((64, 64), 1, 2, 64, 4)
    m, total = tl.LdsMap(), C.c_uint32()
    acc = (tl.Access * 1)(write(layout))
    for shape, elem, minor, n in (
        ((63, 64), 2, 1, 1),
        ((32, 64), 2, 1, 1),
        ((64, 64), 3, 1, 1),
        ((64, 64), 2, 2, 1),
        ((64, 64), 2, 1, 0),
    ):
        ok = lib.tl_lds_solve(
            tl.target("gfx942"), 2, (C.c_uint32 * 4)(*shape), elem, minor, acc, n, C.byref(m), None, C.byref(total)
        )
        assert not ok, (shape, elem, minor, n)
    assert not lib.tl_lds_solve(  # wave32 chip, wave64 layout
        tl.target("gfx1100"), 2, (C.c_uint32 * 4)(64, 64), 2, 1, acc, 1, C.byref(m), None, C.byref(total)
    )


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_solve_transpose_everywhere(chip: str, elem: int) -> None:
    """No conflicts on any chip, stores along rows and 16-byte reads along columns or narrower; quickly."""
    wave = tl.target(chip).contents.wave
    accesses = [write(tl.blocked((64, 64), 1, elem, wave, 4)), read(tl.blocked((64, 64), 0, elem, wave, 4))]
    for s in solved(chip, (64, 64), elem, 1, accesses):
        assert s.conflicts in (0, tl.UNKNOWN)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("mma", ["mfma_32x32x8_f16", "mfma_16x16x16_f16"])
def test_solve_result_to_operand(mma: str, swapped: bool) -> None:
    """A result tile written as it lies in registers and read as the A operand of the next product."""
    dot = tl.Dot(C.pointer(tl.mma(mma).contents), 128, 64, 64, 4, 1, 2, 0, 0, swapped)
    c, a = tl.dot_layout(dot, tl.CD), tl.dot_layout(dot, tl.A)
    perm = (C.c_uint8 * tl.MAX_BITS)()
    tl.lib().tl_layout_regs_along(C.byref(c), tl.D1, perm)
    c = tl.permuted(c, list(perm)[: len(tl.parse_text(str(c))[0]["reg"])])
    w, r = solved("gfx942", (128, 64), 2, 1, [write(c), read(a)])
    assert (w.conflicts, r.conflicts) == (0, 0)
    assert (w.vec_bytes, r.vec_bytes) == ((8, 8) if swapped else (2, 16))


def test_solve_skewed_layouts() -> None:
    """Layouts that are any invertible map, not only permutations of bits: a bijection, counts and addresses true."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(15):
        rows, cols, elem = rng.randint(3, 6), rng.randint(4, 6), rng.choice([1, 2, 4])
        accesses = []
        for op in (tl.WRITE, tl.READ, tl.READ)[: rng.randint(1, 3)]:
            n = rows + cols
            basis = [1 << i for i in range(n)]
            rng.shuffle(basis)
            for _ in range(rng.choice([0, 3, 20])):
                i, j = rng.sample(range(n), 2)
                basis[i] ^= basis[j]
            layout = tl.Layout()
            regs = max(n - 7, 0)
            for d, bits in ((tl.REG, regs), (tl.LANE, 6), (tl.WAVE, n - regs - 6)):
                assert tl.lib().tl_layout_add_in(C.byref(layout), d, bits)
            for d, bits in ((tl.D1, cols), (tl.D0, rows)):
                assert tl.lib().tl_layout_add_out(C.byref(layout), d, bits)
            for i, b in enumerate(basis):
                layout.basis[i] = b
            accesses.append(tl.Access(op, layout, rng.choice([4, 8, 16]), 1))
        solved("gfx942", (1 << rows, 1 << cols), elem, rng.randrange(2), accesses)
