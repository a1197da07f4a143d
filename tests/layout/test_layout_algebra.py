"""Algebra of linear layouts on random maps: every operation against its meaning, element by element."""

import ctypes as C
import itertools
import random

import layoutlib as tl
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def build(ins: list[tuple[int, int]], outs: list[tuple[int, int]], bases: list[int]) -> tl.Layout:
    """Layout from (dim, bits) lists and packed bases."""
    layout, lib = tl.Layout(), tl.lib()
    for d, bits in ins:
        assert lib.tl_layout_add_in(C.byref(layout), d, bits)
    for d, bits in outs:
        assert lib.tl_layout_add_out(C.byref(layout), d, bits)
    for i, b in enumerate(bases):
        layout.basis[i] = b
    return layout


@st.composite
def layouts(
    draw: st.DrawFn,
    in_dims: tuple = (tl.REG, tl.LANE, tl.WAVE),
    out_dims: tuple = (tl.D0, tl.D1),
    invertible: bool = False,
) -> tl.Layout:
    """A random layout; with invertible=True a bijection."""
    ins = [(d, draw(st.integers(0, 4))) for d in draw(st.permutations(in_dims))]
    total = sum(b for _, b in ins)
    outs, left = [], total
    for i, d in enumerate(out_dims):
        bits = (
            left if invertible and i == len(out_dims) - 1 else draw(st.integers(0, min(left, 5) if invertible else 5))
        )
        outs.append((d, bits))
        left -= bits
    n = sum(b for _, b in outs)
    if invertible:
        rng = random.Random(draw(st.integers(0, 1 << 30)))
        cols = [1 << i for i in range(n)]
        rng.shuffle(cols)
        for _ in range(3 * n):
            i, j = rng.randrange(max(n, 1)), rng.randrange(max(n, 1))
            if n and i != j:
                cols[i] ^= cols[j]
        return build(ins, outs, cols)
    return build(ins, outs, [draw(st.integers(0, (1 << n) - 1)) for _ in range(total)])


def everything(layout: tl.Layout) -> np.ndarray:
    """Packed output of every packed input, one by one through the C function."""
    n = sum(layout.in_bits[: layout.nin])
    return np.array([tl.lib().tl_layout_apply(C.byref(layout), x) for x in range(1 << n)], dtype=np.uint64)


@SETTINGS
@given(layouts())
def test_apply_matches_text(layout: tl.Layout) -> None:
    """The C evaluation equals NumPy's reading of the printed form; single points too."""
    dims = [tl.DIMS[d] for d in layout.in_dim[: layout.nin]]
    t = tl.table(layout, *dims)
    got = everything(layout)
    shift = 0
    want = np.zeros(len(got), dtype=np.uint64)
    for i in range(layout.nout):
        flat = t[tl.DIMS[layout.out_dim[i]]].T.reshape(-1)  # the first dimension varies fastest
        want |= flat.astype(np.uint64) << np.uint64(shift)
        shift += layout.out_bits[i]
    assert np.array_equal(got, want)
    sizes = {d: 1 << layout.in_bits[i] for i, d in enumerate(dims)}
    r, lane, w = sizes["reg"] - 1, sizes["lane"] // 2, sizes["wave"] - 1
    at = tl.table(layout, "reg", "lane", "wave")
    assert tl.lib().tl_layout_at(C.byref(layout), r, lane, w, tl.D1) == at["d1"][r, lane, w]


@SETTINGS
@given(layouts())
def test_rank_surjective_injective_free(layout: tl.Layout) -> None:
    lib, out = tl.lib(), everything(layout)
    nin, nout = sum(layout.in_bits[: layout.nin]), sum(layout.out_bits[: layout.nout])
    image = len(np.unique(out))
    rank = lib.tl_layout_rank(C.byref(layout))
    assert image == 1 << rank
    assert lib.tl_layout_is_surjective(C.byref(layout)) == (image == 1 << nout)
    assert lib.tl_layout_is_injective(C.byref(layout)) == (image == len(out))
    free = lib.tl_layout_free_bits(C.byref(layout))
    assert bin(free).count("1") == nin - rank
    kept = [x for x in range(1 << nin) if not x & free]
    assert len(np.unique(out[kept])) == len(kept) == image  # what is not free reaches everything, once


@SETTINGS
@given(layouts(), layouts(in_dims=(tl.D0, tl.D1), out_dims=(tl.OFF, tl.D2)))
def test_compose(a: tl.Layout, b: tl.Layout) -> None:
    lib, c = tl.lib(), tl.Layout()
    ok = lib.tl_layout_compose(C.byref(c), C.byref(a), C.byref(b))
    bits = dict(zip(b.in_dim[: b.nin], b.in_bits[: b.nin]))
    assert ok == all(a.out_bits[i] <= bits[a.out_dim[i]] for i in range(a.nout))
    if not ok:
        return
    ta, tc = tl.table(a, "reg", "lane", "wave"), tl.table(c, "reg", "lane", "wave")
    tb = tl.table(b, "d0", "d1")
    for d in ("off", "d2"):
        assert np.array_equal(tc[d], tb[d][ta["d0"], ta["d1"]])


@SETTINGS
@given(layouts())
def test_right_inverse(layout: tl.Layout) -> None:
    lib, inv, back, ident = tl.lib(), tl.Layout(), tl.Layout(), tl.Layout()
    ok = lib.tl_layout_invert(C.byref(inv), C.byref(layout))
    assert ok == lib.tl_layout_is_surjective(C.byref(layout))
    if ok:
        assert lib.tl_layout_compose(C.byref(back), C.byref(inv), C.byref(layout))
        ident = build(
            [(layout.out_dim[i], layout.out_bits[i]) for i in range(layout.nout)],
            [(layout.out_dim[i], layout.out_bits[i]) for i in range(layout.nout)],
            [1 << i for i in range(sum(layout.out_bits[: layout.nout]))],
        )
        assert lib.tl_layout_equal(C.byref(back), C.byref(ident))
        free = lib.tl_layout_free_bits(C.byref(layout))
        assert not any(int(y) & free for y in everything(inv))


@SETTINGS
@given(layouts(invertible=True))
def test_inverse_of_bijection_both_ways(layout: tl.Layout) -> None:
    lib, inv, inv2 = tl.lib(), tl.Layout(), tl.Layout()
    assert lib.tl_layout_invert(C.byref(inv), C.byref(layout))
    assert lib.tl_layout_invert(C.byref(inv2), C.byref(inv))
    assert lib.tl_layout_equal(C.byref(inv2), C.byref(layout))
    fwd, bwd = everything(layout), everything(inv)
    assert np.array_equal(bwd[fwd.astype(int)], np.arange(len(fwd)))


@SETTINGS
@given(
    layouts(), layouts(in_dims=(tl.LANE, tl.REG), out_dims=(tl.D1, tl.D0)), st.integers(0, 6), st.integers(0, 1 << 20)
)
def test_product_and_divide(a: tl.Layout, b: tl.Layout, flip_bit: int, flip: int) -> None:
    lib, p, q = tl.lib(), tl.Layout(), tl.Layout()
    assert lib.tl_layout_product(C.byref(p), C.byref(a), C.byref(b))
    ta, tb, tp = (tl.table(x, "reg", "lane", "wave") for x in (a, b, p))
    outs_a = tl.parse_text(str(a))[1]
    shape_a = ta["d0"].shape
    for d in ("d0", "d1"):
        big = tp[d].reshape([n for lo, hi in zip(shape_a, tp[d].shape) for n in (hi // lo, lo)])
        for hi in itertools.product(*(range(n) for n in big.shape[::2])):
            low = big[hi[0], :, hi[1], :, hi[2], :]
            assert np.array_equal(low, ta[d] ^ (tb[d][hi] * outs_a[d]))
    assert lib.tl_layout_divide(C.byref(q), C.byref(p), C.byref(a))
    assert lib.tl_layout_product(C.byref(q), C.byref(a), C.byref(q)) and lib.tl_layout_equal(C.byref(q), C.byref(p))
    # a changed basis of the low part no longer divides
    if a.nin and flip_bit < a.in_bits[0] and outs_a["d0"] > 1:
        bad = tl.Layout.from_buffer_copy(a)
        bad.basis[flip_bit] ^= 1
        assert not lib.tl_layout_divide(C.byref(q), C.byref(p), C.byref(bad))


@SETTINGS
@given(layouts())
def test_restrict_and_project(layout: tl.Layout) -> None:
    lib, r, p = tl.lib(), tl.Layout(), tl.Layout()
    assert lib.tl_layout_restrict(C.byref(r), C.byref(layout), 1 << tl.REG | 1 << tl.WAVE)
    full, part = tl.table(layout, "reg", "lane", "wave"), tl.table(r, "reg", "wave")
    assert "lane" not in tl.parse_text(str(r))[0]
    for d in ("d0", "d1"):
        assert np.array_equal(part[d], full[d][:, 0, :])
    assert lib.tl_layout_project(C.byref(p), C.byref(layout), 1 << tl.D1)
    got = tl.table(p, "reg", "lane", "wave")
    assert list(got) == ["d1"] and np.array_equal(got["d1"], full["d1"])


@SETTINGS
@given(layouts(), st.randoms(use_true_random=False))
def test_equal_ignores_order_of_dimensions(layout: tl.Layout, rng: random.Random) -> None:
    ins, outs = tl.parse_text(str(layout))
    order, out_order = list(ins), list(outs)
    rng.shuffle(order)
    rng.shuffle(out_order)
    pick = [list(outs).index(o) for o in out_order]
    text = "layout({} -> {})".format(
        "; ".join(f"{d}: " + " ".join("[" + ",".join(str(b[i]) for i in pick) + "]" for b in ins[d]) for d in order),
        ", ".join(f"{o}: {outs[o]}" for o in out_order),
    )
    other = tl.parse(text)
    assert tl.lib().tl_layout_equal(C.byref(layout), C.byref(other))
    bits = sum(layout.in_bits[: layout.nin])
    if bits and sum(layout.out_bits[: layout.nout]):
        other.basis[rng.randrange(bits)] ^= 1
        assert not tl.lib().tl_layout_equal(C.byref(layout), C.byref(other))


def brute_contiguity(layout: tl.Layout, d: str) -> int:
    t = tl.table(layout, "reg", "lane", "wave")
    best = 1
    n = 2
    while n <= t[d].shape[0]:
        ok = True
        for o, v in t.items():
            groups = v.reshape(-1, n, *v.shape[1:])
            step = np.arange(n).reshape(1, n, 1, 1) if o == d else 0
            ok &= bool((groups == groups[:, :1] + step).all())
        ok &= bool((t[d].reshape(-1, n, *t[d].shape[1:])[:, 0] % n == 0).all())
        if ok:
            best = n
        n *= 2
    return best


@SETTINGS
@given(layouts(), st.integers(0, 3))
def test_contiguity(layout: tl.Layout, run: int) -> None:
    """Against the definition; a run is planted so that answers above 1 occur."""
    shift = 0
    for i in range(layout.nout):
        if layout.out_dim[i] == tl.D1 and layout.out_bits[i] >= run:
            at = 0
            for j in range(layout.nin):
                if layout.in_dim[j] == tl.REG and layout.in_bits[j] >= run:
                    for b in range(sum(layout.in_bits[: layout.nin])):
                        layout.basis[b] &= ~(((1 << run) - 1) << shift)
                    for b in range(run):
                        layout.basis[at + b] = 1 << (shift + b)
                at += layout.in_bits[j]
        shift += layout.out_bits[i]
    for d, code in (("d0", tl.D0), ("d1", tl.D1)):
        assert tl.lib().tl_layout_contiguity(C.byref(layout), code) == brute_contiguity(layout, d), str(layout)


@SETTINGS
@given(layouts(), st.randoms(use_true_random=False))
def test_register_permutations(layout: tl.Layout, rng: random.Random) -> None:
    lib = tl.lib()
    n = len(tl.parse_text(str(layout))[0]["reg"])
    perm = list(range(n))
    rng.shuffle(perm)
    new, old = tl.table(tl.permuted(layout, perm), "reg", "lane"), tl.table(layout, "reg", "lane")
    index = [lib.tl_layout_perm_index((C.c_uint8 * 8)(*perm), n, r) for r in range(1 << n)]
    assert sorted(index) == list(range(1 << n))
    for d in ("d0", "d1"):
        assert np.array_equal(new[d], old[d][index])
    bad = (C.c_uint8 * 8)(*([0] * 8))
    if n > 1:
        assert not lib.tl_layout_permute_regs(C.byref(tl.Layout()), C.byref(layout), bad)
    like, got = tl.regs_like(tl.permuted(layout, perm), layout, n)
    bases = tl.parse_text(str(layout))[0]["reg"]
    usable = next((i for i, b in enumerate(bases) if not any(b)), n)
    assert got == usable
    assert tl.parse_text(str(like))[0]["reg"][:got] == bases[:got]


@SETTINGS
@given(layouts(), layouts())
def test_convert(src: tl.Layout, dst: tl.Layout) -> None:
    """conv really finds each value, and the kind says truly how far it has to travel."""
    lib = tl.lib()
    kind, conv = C.c_int(), tl.Layout()
    ok = lib.tl_layout_convert(C.byref(kind), C.byref(conv), C.byref(src), C.byref(dst))
    if tl.parse_text(str(src))[1] != tl.parse_text(str(dst))[1]:
        assert not ok
        return
    ts, td = tl.table(src, "reg", "lane", "wave"), tl.table(dst, "reg", "lane", "wave")
    have = set(zip(ts["d0"].ravel().tolist(), ts["d1"].ravel().tolist()))
    need = set(zip(td["d0"].ravel().tolist(), td["d1"].ravel().tolist()))
    assert ok == (need <= have)
    if not ok:
        return
    tc = tl.table(conv, "reg", "lane", "wave")
    at = tuple(tc[d] for d in ("reg", "lane", "wave"))
    for d in ("d0", "d1"):
        assert np.array_equal(ts[d][at], td[d])
    lane, wave = np.indices(td["d0"].shape)[1:]
    if kind.value == 0:
        assert np.array_equal(at[0], np.indices(td["d0"].shape)[0]) and ts["d0"].shape == td["d0"].shape
    if kind.value <= 1:
        assert np.array_equal(at[1], lane) and np.array_equal(at[2], wave)
    if kind.value <= 2:
        assert np.array_equal(at[2], wave)


def test_convert_kinds() -> None:
    """The kind is the cheapest possible: own lane before own wave before LDS."""
    lib = tl.lib()
    base = "layout(reg: [0,1] [0,2]; lane: [1,0] [2,0]; wave: [4,0] -> d0: 8, d1: 4)"
    cases = {
        base: 0,
        "layout(reg: [0,2] [0,1]; lane: [1,0] [2,0]; wave: [4,0] -> d0: 8, d1: 4)": 1,
        "layout(reg: [0,3] [0,1]; lane: [1,1] [2,0]; wave: [4,2] -> d0: 8, d1: 4)": 1,
        "layout(reg: [0,1] [1,0]; lane: [0,2] [2,0]; wave: [4,0] -> d0: 8, d1: 4)": 2,
        "layout(reg: [0,1] [4,0]; lane: [1,0] [2,0]; wave: [0,2] -> d0: 8, d1: 4)": 3,
    }
    for text, want in cases.items():
        kind, conv = C.c_int(), tl.Layout()
        assert lib.tl_layout_convert(C.byref(kind), C.byref(conv), C.byref(tl.parse(base)), C.byref(tl.parse(text)))
        assert kind.value == want, text
    # a source with replicas needs no exchange
    rep = tl.parse("layout(reg: [0,1] [0,2] [1,0]; lane: [1,0] [2,0]; wave: [4,0] -> d0: 8, d1: 4)")
    kind, conv = C.c_int(), tl.Layout()
    want = tl.parse("layout(reg: [1,0] [0,1] [0,2]; lane: [0,0] [2,0]; wave: [4,0] -> d0: 8, d1: 4)")
    assert lib.tl_layout_convert(C.byref(kind), C.byref(conv), C.byref(rep), C.byref(want))
    assert kind.value == 1


def test_reduce() -> None:
    lib = tl.lib()
    dot = tl.Dot(C.pointer(tl.mma("mfma_32x32x8_f16").contents), 128, 128, 64, 2, 2, 2, 0, 1, True)
    c = tl.dot_layout(dot, tl.CD)
    masks = [C.c_uint32() for _ in range(3)]
    assert lib.tl_layout_reduce_masks(C.byref(c), tl.D1, *[C.byref(m) for m in masks])
    assert [m.value for m in masks] == [0b011111, 0b100000, 0b01]
    assert lib.tl_layout_reduce_masks(C.byref(c), tl.D0, *[C.byref(m) for m in masks])
    assert [m.value for m in masks] == [0b100000, 0b011111, 0b10]
    red = tl.Layout()
    assert lib.tl_layout_reduced(C.byref(red), C.byref(c), tl.D1)
    full, got = tl.table(c, "reg", "lane", "wave"), tl.table(red, "reg", "lane", "wave")
    assert list(got) == ["d0"] and got["d0"].shape == (2, 64, 4)
    assert np.array_equal(got["d0"], full["d0"][::32])
    assert lib.tl_layout_free_of(C.byref(red), tl.LANE) == 0b100000
    assert lib.tl_layout_free_of(C.byref(red), tl.WAVE) == 0b01
    skew = tl.parse("layout(reg: [0,1]; lane: [1,2] [2,0] -> d0: 4, d1: 4)")
    assert not lib.tl_layout_reduce_masks(C.byref(skew), tl.D1, *[C.byref(m) for m in masks])
    hole = tl.parse("layout(reg: [0,1]; lane: [1,0] [2,0] -> d0: 4, d1: 4)")
    assert not lib.tl_layout_reduce_masks(C.byref(hole), tl.D1, *[C.byref(m) for m in masks])
    # replicas are not counted twice
    rep = tl.parse("layout(reg: [0,1]; lane: [1,0] [2,0] [0,1] -> d0: 4, d1: 2)")
    assert lib.tl_layout_reduce_masks(C.byref(rep), tl.D1, *[C.byref(m) for m in masks])
    assert [m.value for m in masks] == [1, 0, 0]


def test_blocked() -> None:
    # A of the documented GEMM: row = t / 8 + 32 i, 8 k from 8 (t % 8)
    t = tl.table(tl.blocked((128, 64), 1, 2, 64, 4), "reg", "lane", "wave")
    reg, lane, wave = np.ogrid[:32, :64, :4]
    thread = lane + 64 * wave
    assert np.array_equal(t["d0"], thread // 8 + 32 * (reg // 8))
    assert np.array_equal(t["d1"], 8 * (thread % 8) + reg % 8)
    # B: columns 8c.. of rows 4g..4g+3
    t = tl.table(tl.blocked((64, 128), 1, 2, 64, 4, rows=4), "reg", "lane", "wave")
    assert np.array_equal(t["d1"], 8 * (thread % 16) + reg % 8)
    assert np.array_equal(t["d0"], 4 * (thread // 16) + reg // 8)
    # column-major: threads run down the first dimension
    t = tl.table(tl.blocked((128, 32), 0, 4, 64, 2), "reg", "lane", "wave")
    reg, lane, wave = np.ogrid[:32, :64, :2]
    thread = lane + 64 * wave
    assert np.array_equal(t["d0"], 4 * (thread % 32) + reg % 4)
    assert np.array_equal(t["d1"], thread // 32 + 4 * (reg // 4))


@pytest.mark.parametrize("wave", [32, 64])
def test_blocked_covers_every_shape(wave: int) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(60):
        rank = rng.randint(1, 4)
        shape = tuple(1 << rng.randint(0, 10 // rank) for _ in range(rank))
        minor, elem, waves = rng.randrange(rank), rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4, 8])
        layout = tl.blocked(shape, minor, elem, wave, waves)
        t = tl.table(layout, "reg", "lane", "wave")
        cells = np.zeros(shape, dtype=int)
        np.add.at(cells, tuple(t[f"d{i}"] for i in range(rank)), 1)
        assert cells.min() == cells.max() == max(1, wave * waves * t["d0"].shape[0] // int(np.prod(shape)))
        vec = tl.lib().tl_layout_contiguity(C.byref(layout), tl.D0 + minor)
        assert vec * elem <= 16 or vec == 1
        threads = wave * waves
        if np.prod(shape) >= threads * max(1, 16 // elem) and shape[minor] * elem >= 16:
            assert vec * elem == max(16, elem)
    lib, out = tl.lib(), tl.Layout()
    for shape, minor, rows in (((3, 4), 1, 1), ((4, 4), 2, 1), ((4, 4), 1, 8), ((4, 4), 1, 3)):
        b = tl.Blocked(2, (C.c_uint32 * 4)(*shape), minor, 2, 16, 64, 1, rows)
        assert not lib.tl_layout_blocked(C.byref(b), C.byref(out))


# ---- text ---------------------------------------------------------------------------------------


@SETTINGS
@given(layouts(), layouts(in_dims=(tl.D0, tl.D1, tl.D2), out_dims=(tl.OFF,)))
def test_print_parse_round_trip(a: tl.Layout, b: tl.Layout) -> None:
    for layout in (a, b):
        text = str(layout)
        back = tl.parse(text)
        assert str(back) == text and bytes(back) == bytes(layout)
        spaced = text.replace("[", " [ ").replace(",", " , ").replace(":", " :\n ").replace(";", "\t;")
        assert bytes(tl.parse(spaced)) == bytes(layout)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "layout("),
        ("layout", "layout("),
        ("layout(reg: [1] -> d0: 3)", "power of two"),
        ("layout(reg: [1] -> d0: 0)", "power of two"),
        ("layout(reg: [2] -> d0: 2)", "beyond"),
        ("layout(reg: [1,1] -> d0: 2)", "one number"),
        ("layout(reg: [1]; reg: [1] -> d0: 2)", "twice"),
        ("layout(reg: [1] -> d0: 2, d0: 2)", "twice"),
        ("layout(reg [1] -> d0: 2)", "':'"),
        ("layout(rag: [1] -> d0: 2)", "dimension"),
        ("layout(reg: [1 -> d0: 2)", "']'"),
        ("layout(reg: [1] d0: 2)", "'->'"),
        ("layout(reg: [1] -> d0: 2", "')'"),
        ("layout(reg: [99999999999] -> d0: 2)", "large"),
        ("layout(reg: [1] -> d0: 4294967296)", "large"),
        ("layout(reg: [1,2,3,4,5,6,7] -> d0: 2)", "many"),
        ("layout(reg: " + "[0] " * 41 + "-> d0: 2)", "many"),
    ],
)
def test_parse_faults(text: str, why: str) -> None:
    layout, said, at = tl.try_parse(text)
    assert layout is None and why in said, said
    assert at <= len(text)


def test_parse_stops_behind_the_layout() -> None:
    layout, _, at = tl.try_parse("  layout(-> d0: 2) rest")
    assert layout is not None and at == len("  layout(-> d0: 2)")
    assert str(tl.parse("layout(->)")) == "layout(->)"


def test_parse_fuzz() -> None:
    """Random edits of valid texts: never a crash, what parses prints to something that parses to the same."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    base = "layout(reg: [0,1] [0,2]; lane: [1,0] [2,0]; wave: [4,0] -> d0: 8, d1: 4)"
    good = 0
    for _ in range(4000):
        s = list(base)
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(len(s) + 1)
            op = rng.random()
            if op < 0.4 and i < len(s):
                del s[i]
            elif op < 0.7:
                s.insert(i, rng.choice("[](),:;->0123456789 lrdw\x00\xff"))
            elif i < len(s):
                s[i] = rng.choice("[](),:;->0123456789 lrdw")
        raw = "".join(s).encode("latin-1")
        raw = raw[: rng.randint(0, len(raw))] if rng.random() < 0.2 else raw
        layout, why, at = tl.try_parse(raw)
        assert at <= len(raw)
        if layout is not None:
            good += 1
            assert bytes(tl.parse(str(layout))) == bytes(layout)
    assert good > 50


def test_building_refuses_nonsense() -> None:
    lib, layout = tl.lib(), tl.Layout()
    assert lib.tl_layout_add_in(C.byref(layout), tl.REG, 4)
    assert not lib.tl_layout_add_in(C.byref(layout), tl.REG, 1)
    assert not lib.tl_layout_add_in(C.byref(layout), 99, 1)
    assert not lib.tl_layout_add_in(C.byref(layout), tl.LANE, 40)
    assert lib.tl_layout_add_out(C.byref(layout), tl.D0, 3)
    assert lib.tl_layout_set(C.byref(layout), tl.REG, 3, tl.D0, 5)
    assert not lib.tl_layout_set(C.byref(layout), tl.REG, 4, tl.D0, 5)
    assert not lib.tl_layout_set(C.byref(layout), tl.REG, 3, tl.D0, 8)
    assert not lib.tl_layout_set(C.byref(layout), tl.LANE, 0, tl.D0, 1)
    assert not lib.tl_layout_set(C.byref(layout), tl.REG, 0, tl.D1, 1)
    assert lib.tl_layout_get(C.byref(layout), tl.REG, 3, tl.D0) == 5
    assert not lib.tl_layout_swap_out(C.byref(layout), tl.D0, tl.D1)
    assert lib.tl_layout_rename_out(C.byref(layout), tl.D0, tl.D1)
    assert str(layout) == "layout(reg: [0] [0] [0] [5] -> d1: 8)"
