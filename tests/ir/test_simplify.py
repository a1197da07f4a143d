"""Pass simplify: text in, text out; and random programs give the same results with it as without."""

from __future__ import annotations

import irlib
import numpy as np
import pytest
import randir


def simplified(lines: str, params: str = "%a : i32, %b : i32, %f : f32, %p : ptr", level: str = "thread") -> list[str]:
    """Operations after simplify, without indentation."""
    text = f"kernel @k level {level} ({params}) {{\n{lines}\n}}\n"
    return [x.strip() for x in irlib.good(text, "simplify").strip().split("\n")[1:-1]]


def value(lines: str, t: str = "i32", **kw: str) -> list[str]:
    """Operations that remain when only %r is used; the store of it is taken off."""
    out = simplified(lines + "\n  lds_store %a, %r {align = 4}", **kw)
    assert out[-1].startswith("lds_store %a, "), out
    return [*out[:-1], out[-1].removeprefix("lds_store %a, ").split(" ")[0]]


C = "  %c{0} = const {{value = {1}}} : i32\n"
FOLDS = [
    (C.format(1, 6) + C.format(2, 7) + "  %r = mul %c1, %c2 : i32", "const {value = 42} : i32"),
    (C.format(1, 2**31 - 1) + C.format(2, 1) + "  %r = add %c1, %c2 : i32", "const {value = -2147483648} : i32"),
    (C.format(1, -7) + C.format(2, 2) + "  %r = floordiv %c1, %c2 : i32", "const {value = -4} : i32"),
    (C.format(1, 300) + "  %r = cast %c1 : i8", "const {value = 44} : i8"),
    ("  %x = const {fvalue = 0.1} : f16\n  %r = add %x, %x : f16", "const {fvalue = 0.199951171875} : f16"),
    ("  %x = const {fvalue = 1.0} : vec<4xf32>\n  %r = extract %x {index = 2} : f32", "const {fvalue = 1.0} : f32"),
    ("  %x = const {value = 1065353216} : i32\n  %r = bitcast %x : f32", "const {fvalue = 1.0} : f32"),
    (C.format(1, 5) + "  %r = lt %c1, %c1 : i1", "const {value = 0} : i1"),
    ("  %r = sub %a, %a : i32", "const {value = 0} : i32"),
    (C.format(1, 0) + "  %r = mul %c1, %a : i32", "const {value = 0} : i32"),
    ("  %r = le %a, %a : i1", "const {value = 1} : i1"),
]


@pytest.mark.parametrize(("lines", "want"), FOLDS, ids=range(len(FOLDS)))
def test_becomes_a_constant(lines: str, want: str):
    out = value(lines)
    assert len(out) == 2 and out[0].endswith(" = " + want), out


SAME = [
    C.format(1, 0) + "  %r = add %c1, {0} : i32",
    C.format(1, 1) + "  %r = mul {0}, %c1 : i32",
    C.format(1, 1) + "  %r = floordiv {0}, %c1 : i32",
    C.format(1, 0) + "  %r = sub {0}, %c1 : i32",
    C.format(1, -1) + "  %r = and {0}, %c1 : i32",
    C.format(1, 0) + "  %r = shl {0}, %c1 : i32",
    "  %r = min {0}, {0} : i32",
    "  %r = and {0}, {0} : i32",
    "  %x = not {0} : i32\n  %r = not %x : i32",
    "  %x = neg {0} : i32\n  %r = neg %x : i32",
    "  %x = cast {0} : i64\n  %r = cast %x : i32",
    C.format(1, 7) + C.format(2, -7) + "  %x = add {0}, %c1 : i32\n  %r = add %x, %c2 : i32",
    "  %c = const {{value = 1}} : i1\n  %r = select %c, {0}, %a : i32",
    "  %v = concat {0}, %a : vec<2xi32>\n  %r = extract %v {{index = 0}} : i32",
    "  %v = splat {0} : vec<4xi32>\n  %r = extract %v {{index = 3}} : i32",
    "  %v = bitcast {0} : vec<2xf16>\n  %r = bitcast %v : i32",
]


@pytest.mark.parametrize("lines", SAME, ids=range(len(SAME)))
def test_becomes_its_operand(lines: str):
    out = value(lines.replace("{{", "{").replace("}}", "}").replace("{0}", "%b"))
    assert out == ["%b"], out


def test_float_identities_keep_signed_zeros():
    zero, minus = "  %z = const {fvalue = 0.0} : f32\n", "  %z = const {fvalue = -0.0} : f32\n"
    kw = {"params": "%a : i32, %f : f32"}
    assert value(minus + "  %r = add %f, %z : f32", **kw) == ["%f"]
    assert value(zero + "  %r = sub %f, %z : f32", **kw) == ["%f"]
    assert len(value(zero + "  %r = add %f, %z : f32", **kw)) == 3, "-0 + 0 is 0"
    assert len(value(zero + "  %r = mul %f, %z : f32", **kw)) == 3, "NaN * 0 is NaN"
    assert len(value("  %r = sub %f, %f : f32", **kw)) == 2, "inf - inf is NaN"
    one = "  %z = const {fvalue = 1.0} : f32\n"
    assert value(one + "  %r = mul %z, %f : f32", **kw) == ["%f"]


def test_constants_gather():
    lines = C.format(1, 3) + C.format(2, 4) + "  %x = add %b, %c1 : i32\n  %r = sub %x, %c2 : i32"
    assert value(lines) == ["%0 = const {value = -1} : i32", "%r = add %b, %0 : i32", "%r"]
    lines = C.format(1, 3) + C.format(2, 4) + "  %x = floordiv %b, %c1 : i32\n  %r = floordiv %x, %c2 : i32"
    assert value(lines)[0] == "%0 = const {value = 12} : i32"


def test_power_of_two_division_at_level_thread_only():
    lines = C.format(1, 8) + "  %r = floordiv %b, %c1 : i32"
    assert value(lines)[1] == "%r = shr %b, %0 : i32"
    lines = C.format(1, 8) + "  %r = mod %b, %c1 : i32"
    assert value(lines)[1] == "%r = and %b, %0 : i32"
    lines = C.format(1, 8) + "  %r = truncdiv %b, %c1 : i32"
    assert value(lines)[1] == "%r = truncdiv %b, %c1 : i32", "a shift rounds down, not toward zero"


def test_exact_index_products():
    pre = "  %c = const {value = 64} : index\n  %p = program_id {axis = 0} : index\n  %m = mul %p, %c : index\n"
    tail = "\n  %f = const {fvalue = 0.0} : f32\n  set_element %A, %f, %r"
    kw = {"params": "%A : buf<f32 [?] strides [1] align 4>", "level": "tile"}
    out = simplified(pre + "  %r = floordiv %m, %c : index" + tail, **kw)
    assert not any("floordiv" in x or "mul" in x for x in out), out
    out = simplified(pre + "  %r = mod %m, %c : index" + tail, **kw)
    assert not any("mod" in x for x in out), out
    big = "  %c = const {value = 9223372036854775807} : index\n  %r = add %c, %c : index"
    assert any("add" in x for x in simplified(big + tail, **kw)), "index is exact: it does not wrap"
    typed = pre.replace("index", "i32").replace("program_id {axis = 0} : i32", "const {value = 3} : i32")
    assert typed


def test_dims_that_are_known():
    kw = {"params": "%A : buf<f32 [128, ?] strides [?, 1] align 4>", "level": "tile"}
    lines = "  %d = dim %A {axis = 0} : index\n  %e = stride %A {axis = 1} : index\n  %g = dim %A {axis = 1} : index\n"
    lines += "  %h = add %d, %e : index\n  %f = const {fvalue = 0.0} : f32\n  set_element %A, %f, %h, %g"
    out = simplified(lines, **kw)
    assert any(x.endswith("const {value = 129} : index") for x in out), out
    assert any("dim %A {axis = 1}" in x for x in out)


def test_equal_operations_merge():
    lines = "  %x = add %a, %b : i32\n  %y = add %b, %a : i32\n  %r = xor %x, %y : i32"
    assert value(lines)[0].endswith("const {value = 0} : i32")
    lines = (
        "  %c = lt %a, %b : i1\n  %q = if %c () {\n  %x = mul %a, %b : i32\n  yield %x\n} () {\n"
        "  %y = mul %a, %b : i32\n  yield %y\n} : i32\n  %z = mul %a, %b : i32\n  %r = sub %q, %z : i32"
    )
    assert sum("mul" in x for x in value(lines)) == 3, "neither branch dominates the other or what follows"


def test_loops():
    lines = C.format(0, 0) + C.format(1, 1) + (
        "  %q, %dead, %same = for %c0, %b, %c1, %a, %a, %b (%i : i32, %x : i32, %d : i32, %s : i32) {\n"
        "    %k = mul %a, %b : i32\n    %g = floordiv %a, %b : i32\n    %e = add %k, %g : i32\n"
        "    %y = add %x, %e : i32\n"
        "    %y2 = add %y, %s : i32\n    %d2 = add %d, %i : i32\n    yield %y2, %d2, %s\n  } : i32, i32, i32\n"
        "  %r = add %q, %same : i32"
    )  # fmt: skip
    out = value(lines)
    loop = next(i for i, x in enumerate(out) if " = for " in x)
    assert any("mul %a, %b" in x for x in out[:loop]), "invariant: before the loop"
    assert any("floordiv" in x for x in out[loop:]), "a division that might fault stays"
    assert out[loop].startswith("%q = for %c0, %b, %c1, %a ("), "what never changes or nobody needs is not carried"
    assert "%r = add %b, %q : i32" in out


def test_loops_of_known_length():
    def loop(hi: int) -> str:
        head = C.format(0, 0) + C.format(1, 1) + C.format(2, hi)
        return head + (
            "  %r = for %c0, %c2, %c1, %a (%i : i32, %x : i32) {\n    %y = add %x, %b : i32\n"
            "    %z = xor %y, %i : i32\n    yield %z\n  } : i32"
        )

    assert value(loop(0)) == ["%a"]
    assert value(loop(1)) == ["%y = add %a, %b : i32", "%y"]
    assert any("for" in x for x in value(loop(2)))


def test_branches_that_are_known():
    lines = (
        "  %c = const {value = 0} : i1\n  %r = if %c () {\n"
        "  lds_store %b, %a {align = 4}\n  yield %a\n} () {\n  yield %b\n} : i32"
    )
    assert value(lines) == ["%b"]


def test_effects_stay():
    lines = (
        "  %x = lds_load %a {align = 4} : i32\n  barrier\n  %c = lt %a, %b : i1\n  if %c () {\n"
        "  barrier\n  yield\n} () {\n"
        "  yield\n}\n  set_prio {prio = 1}"
    )
    out = simplified(lines)
    assert not any("lds_load" in x for x in out), "a read that nobody uses goes"
    assert sum(x == "barrier" for x in out) == 2 and "set_prio {prio = 1}" in out
    assert simplified('  %c = const {value = 1} : i1\n  assert %c {msg = ""}') == []


def test_a_tile_keeps_its_extent():
    kw = {"params": "%A : buf<i32 [?] strides [1] align 4>", "level": "tile"}
    lines = (
        '  %0 = const {value = 0} : index\n  %t = load %A, %0 {dims = "s"} : tile<8xi32>\n'
        "  %z = const {value = 0} : tile<8xi32>\n"
        '  %m = mul %t, %z : tile<8xi32>\n  store %A, %m, %0 {dims = "s"}'
    )
    assert any("mul %t" in x for x in simplified(lines, **kw)), "t * 0 is 0 only where t is valid"


def test_simplify_is_idempotent():
    for seed in range(30):
        once = irlib.good(randir.Gen(seed).kernel(), "simplify")
        twice = irlib.good(once, "simplify")
        assert irlib.good(twice, "simplify") == twice, f"seed {seed}"


@pytest.mark.parametrize("block", range(8))
def test_random_programs_mean_the_same(block: int):
    for seed in range(block * 50, block * 50 + 50):
        text = randir.Gen(seed, size=30 + seed % 40).kernel()
        rng = np.random.default_rng(seed)
        x0, y0 = rng.integers(-9, 9, 16).astype(np.int32), rng.integers(-9, 9, 11).astype(np.float32)
        results = []
        for passes in ("", "simplify", "simplify,simplify"):
            x, y = x0.copy(), y0.copy()
            status, out = irlib.evaluate(
                text, [x, y, int(rng.integers(-9, 9)) if False else seed % 19 - 9, 2.5], (2,), passes
            )
            assert status == irlib.OK, f"seed {seed}: {out}"
            results.append((x, y))
        for x, y in results[1:]:
            assert (x == results[0][0]).all(), f"seed {seed}"
            np.testing.assert_array_equal(y, results[0][1], err_msg=f"seed {seed}")
