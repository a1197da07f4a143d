"""The evaluator against NumPy: bounds, extents, shapes, reductions, dot, control flow, grid style."""

from __future__ import annotations

from pathlib import Path

import irlib
import ml_dtypes
import numpy as np
import pytest

INPUTS = Path(__file__).with_name("inputs")


def run(text: str, *args: object, grid: tuple[int, ...] = (1,)) -> None:
    status, out = irlib.evaluate(text, list(args), grid)
    assert status == irlib.OK, out


def kernel(params: str, lines: str) -> str:
    return f"kernel @k level tile ({params}) {{\n{lines}\n}}\n"


def buf(elem: str, rank: int = 1) -> str:
    q = ", ".join(["?"] * rank)
    return f"buf<{elem} [{q}] strides [{q}] align 1>"


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 8), (32, 48, 64), (33, 17, 13), (1, 1, 1), (5, 40, 3)])
@pytest.mark.parametrize("layout", ["plain", "transposed", "sliced"])
def test_matmul(m: int, n: int, k: int, layout: str):
    rng = np.random.default_rng(m * n + k)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    text = (INPUTS / "matmul.tir").read_text().replace("strides [?, 1]", "strides [?, ?]")
    c = np.full((m, n), np.nan, np.float32)
    if layout == "transposed":
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    elif layout == "sliced":
        wide = np.full((2 * m, 3 * k), np.nan, np.float16)
        wide[::2, ::3] = a
        a = wide[::2, ::3]
        c = np.full((m, 2 * n), np.nan, np.float32)[:, ::2]
    run(text, a, b, c, grid=(-(-m // 16), -(-n // 16)))
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_layer_norm_over_a_ragged_row():
    params = f"%X : {buf('f32')}, %Y : {buf('f32')}"
    text = kernel(
        params,
        """
  %0 = const {value = 0} : index
  %n = dim %X {axis = 0} : index
  %nf = cast %n : f32
  %x = load %X, %0 {dims = "s"} : tile<32xf32>
  %s = reduce %x {axis = 0, kind = "sum"} : f32
  %mean = div %s, %nf : f32
  %mt = splat %mean : tile<32xf32>
  %d = sub %x, %mt : tile<32xf32>
  %dd = mul %d, %d : tile<32xf32>
  %v = reduce %dd {axis = 0, kind = "sum"} : f32
  %var = div %v, %nf : f32
  %eps = const {fvalue = 1e-5} : f32
  %ve = add %var, %eps : f32
  %r = rsqrt %ve : f32
  %rt = splat %r : tile<32xf32>
  %y = mul %d, %rt : tile<32xf32>
  store %Y, %y, %0 {dims = "s"}""",
    )
    for n in (3, 17, 32):
        x = np.arange(10, 10 + n, dtype=np.float32)
        y = np.full(40, 7, np.float32)[:n]
        run(text, x, y)
        np.testing.assert_allclose(y, (x - x.mean()) / np.sqrt(x.var() + 1e-5), rtol=1e-6)
    x, y = np.array([10, 11, 12], np.float32), np.zeros(3, np.float32)
    run(text, x, y)
    np.testing.assert_allclose(y, [-1.224736, 0, 1.224736], atol=1e-6)


def test_slices_ends_steps_and_outside():
    text = kernel(
        f"%X : {buf('i32', 2)}, %Y : {buf('i32', 2)}, %i : i32, %e : i32",
        """
  %0 = const {value = 0} : index
  %x = load %X, %i, %0, %e {dims = "se", steps = [2, 1]} : tile<4x8xi32>
  %m = const {value = -1} : i32
  %f = fill %x, %m : tile<4x8xi32>
  store %Y, %f, %0, %0 {dims = "ss"}""",
    )
    x = np.arange(42, dtype=np.int32).reshape(6, 7)
    for start, end in [(0, 7), (1, 3), (-3, 100), (5, 0), (9, 4)]:
        y = np.zeros((4, 8), np.int32)
        run(text, x, y, start, end)
        want = np.full((4, 8), -1)
        for r in range(4):
            for c in range(8):
                row = start + 2 * r
                if 0 <= row < 6 and c < min(7, end):
                    want[r, c] = x[row, c]
        assert (y == want).all(), (start, end)


def test_index_tiles_gather_and_scatter():
    text = kernel(
        f"%X : {buf('i32', 2)}, %R : {buf('i32')}, %C : {buf('i32')}, %Y : {buf('i32', 2)}",
        """
  %0 = const {value = 0} : index
  %r = load %R, %0 {dims = "s"} : tile<4xi32>
  %c = load %C, %0 {dims = "s"} : tile<3xi32>
  %re = expand_dims %r {axis = 1} : tile<4x1xi32>
  %ce = expand_dims %c {axis = 0} : tile<1x3xi32>
  %g = load %X, %re, %ce {dims = "tt"} : tile<4x3xi32>
  %m = const {value = -7} : i32
  %f = fill %g, %m : tile<4x3xi32>
  store %Y, %f, %0, %0 {dims = "ss"}
  %ten = const {value = 100} : tile<4x3xi32>
  store %X, %ten, %re, %ce {dims = "tt"}""",
    )
    x, y = np.arange(20, dtype=np.int32).reshape(4, 5), np.zeros((4, 3), np.int32)
    rows, cols = np.array([3, -1, 0, 4], np.int32), np.array([1, 5, 4], np.int32)
    before = x.copy()
    run(text, x, rows, cols, y)
    for i, r in enumerate(rows):
        for j, c in enumerate(cols):
            inside = 0 <= r < 4 and 0 <= c < 5
            assert y[i, j] == (before[r, c] if inside else -7)
    want = before.copy()
    want[[[3], [0]], [1, 4]] = 100
    assert (x == want).all()


def test_scalars_outside_read_0_and_are_dropped():
    text = kernel(
        f"%X : {buf('f32')}, %i : i32",
        """
  %a = element %X, %i : f32
  %b = load %X, %i {dims = "i"} : f32
  %s = add %a, %b : f32
  %1 = const {fvalue = 1.0} : f32
  %t = add %s, %1 : f32
  %0 = const {value = 0} : index
  set_element %X, %t, %0
  set_element %X, %1, %i
  acc_element %X, %1, %i {kind = "sum"}""",
    )
    x = np.full(3, 5, np.float32)
    run(text, x, 3)
    assert x.tolist() == [1, 5, 5]
    run(text, x, 2)
    assert x.tolist() == [11, 5, 2]
    run(text, x, -1)
    assert x.tolist() == [1, 5, 2]


SHAPES = {
    "broadcast": ("broadcast %x : tile<4x6xi32>", lambda v: np.broadcast_to(v, (4, 6)), (4, 1), "tile<4x6xi32>"),
    "trans": ("trans %x {perm = [1, 0]} : tile<6x4xi32>", lambda v: v.T, (4, 6), "tile<6x4xi32>"),
    "reshape": ("reshape %x : tile<3x8xi32>", lambda v: v.reshape(3, 8), (4, 6), "tile<3x8xi32>"),
}


@pytest.mark.parametrize("op", SHAPES)
def test_shapes(op: str):
    code, want, shape, result = SHAPES[op]
    text = kernel(
        f"%X : {buf('i32', 2)}, %Y : {buf('i32', 2)}",
        f"""
  %0 = const {{value = 0}} : index
  %x = load %X, %0, %0 {{dims = "ss"}} : tile<{shape[0]}x{shape[1]}xi32>
  %y = {code}
  %v = valid %y : {result.replace("i32", "i1")}
  %m = const {{value = -1}} : i32
  %f = fill %y, %m : {result}
  store %Y, %f, %0, %0 {{dims = "ss"}}""",
    )
    x = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    y = np.zeros(want(x).shape, np.int32)
    run(text, x, y)
    assert (y == want(x)).all()
    short = np.full(shape, -1, np.int32)  # the same with the last row hanging over the edge
    short[:-1] = x[:-1]
    run(text, x[:-1].copy(), y)
    assert (y == want(short)).all()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("elem", ["i32", "f32", "f16", "bf16"])
def test_reductions(kind: str, axis: int, elem: str):
    dt = {"i32": np.int32, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[elem]
    keep = [8, 4][axis]
    text = kernel(
        f"%X : {buf(elem, 2)}, %Y : {buf(elem)}",
        f"""
  %0 = const {{value = 0}} : index
  %x = load %X, %0, %0 {{dims = "ss"}} : tile<4x8x{elem}>
  %y = reduce %x {{axis = {axis}, kind = "{kind}"}} : tile<{keep}x{elem}>
  store %Y, %y, %0 {{dims = "s"}}""",
    )
    rng = np.random.default_rng(3)
    fn = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[kind]
    for m, n in [(4, 8), (3, 8), (4, 5), (1, 1)]:
        x = rng.integers(-2 if kind == "prod" else -3, 3, (m, n)).astype(dt)  # products that bf16 holds
        y = np.full(8, 99).astype(dt)[: x.shape[1 - axis]]
        run(text, x, y)
        assert (y.astype(np.float64) == fn(x.astype(np.float64), axis=axis)).all()


def test_reduction_over_nothing_and_nan():
    text = kernel(
        f"%X : {buf('f32')}, %Y : {buf('f32')}",
        """
  %0 = const {value = 0} : index
  %1 = const {value = 1} : index
  %x = load %X, %0 {dims = "s"} : tile<4xf32>
  %a = reduce %x {axis = 0, kind = "max"} : f32
  %b = reduce %x {axis = 0, kind = "sum"} : f32
  set_element %Y, %a, %0
  set_element %Y, %b, %1""",
    )
    y = np.zeros(2, np.float32)
    run(text, np.zeros(0, np.float32), y)
    assert y.tolist() == [-np.inf, 0]
    run(text, np.array([1, np.nan, 3], np.float32), y)
    assert np.isnan(y).all()


def test_narrow_sums_do_not_lose():
    text = kernel(
        f"%X : {buf('f16')}, %Y : {buf('f16')}",
        """
  %0 = const {value = 0} : index
  %x = load %X, %0 {dims = "s"} : tile<4096xf16>
  %a = reduce %x {axis = 0, kind = "sum"} : f16
  set_element %Y, %a, %0""",
    )
    y = np.zeros(1, np.float16)
    run(text, np.ones(4096, np.float16), y)
    assert y[0] == 4096


def test_dot_types():
    for elem, dt, acc, cdt in [
        ("f32", np.float32, "f32", np.float32),
        ("f64", np.float64, "f64", np.float64),
        ("bf16", ml_dtypes.bfloat16, "f32", np.float32),
        ("i8", np.int8, "i32", np.int32),
        ("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "f32", np.float32),
    ]:
        text = kernel(
            f"%A : {buf(elem, 2)}, %B : {buf(elem, 2)}, %C : {buf(acc, 2)}",
            f"""
  %0 = const {{value = 0}} : index
  %a = load %A, %0, %0 {{dims = "ss"}} : tile<8x8x{elem}>
  %b = load %B, %0, %0 {{dims = "ss"}} : tile<8x8x{elem}>
  %c = load %C, %0, %0 {{dims = "ss"}} : tile<8x8x{acc}>
  %d = dot %a, %b, %c : tile<8x8x{acc}>
  store %C, %d, %0, %0 {{dims = "ss"}}""",
        )
        rng = np.random.default_rng(2)
        a, b = rng.integers(-3, 4, (8, 5)).astype(dt), rng.integers(-3, 4, (5, 8)).astype(dt)
        c = rng.integers(-3, 4, (8, 8)).astype(cdt)
        want = c + (a.astype(np.float64) @ b.astype(np.float64)).astype(cdt)
        run(text, a, b, c)
        assert (c == want).all(), elem


def test_f32_products_are_not_narrowed():
    text = (INPUTS / "matmul.tir").read_text().replace("f16", "f32").replace("strides [?, 1]", "strides [?, ?]")
    a = np.full((16, 16), 1, np.float32)
    b = np.full((16, 16), 1 + 2.0**-20, np.float32)
    c = np.zeros((16, 16), np.float32)
    run(text, a, b, c)
    assert (c == np.float32(16 + 2.0**-16)).all()


def test_shared_tiles_store_extents():
    text = kernel(
        f"%X : {buf('i32')}, %Y : {buf('i32')}, %Z : {buf('i32')}",
        """
  %0 = const {value = 0} : index
  %6 = const {value = 6} : index
  %s = alloc_shared : shared<8xi32>
  %x = load %X, %0 {dims = "s"} : tile<8xi32>
  store %s, %x {dims = ""}
  %a = load %s {dims = ""} : tile<8xi32>
  %m = const {value = -1} : i32
  %f = fill %a, %m : tile<8xi32>
  store %Y, %f, %0 {dims = "s"}
  %t = const {value = 50} : tile<2xi32>
  store %s, %t, %6 {dims = "s"}
  %b = load %s {dims = ""} : tile<8xi32>
  %g = fill %b, %m : tile<8xi32>
  store %Z, %g, %0 {dims = "s"}""",
    )
    x, y, z = np.arange(1, 6, dtype=np.int32), np.zeros(8, np.int32), np.zeros(8, np.int32)
    run(text, x, y, z)
    assert y.tolist() == [1, 2, 3, 4, 5, -1, -1, -1]
    assert z.tolist() == [1, 2, 3, 4, 5, 0, 50, 50], "after a store of a part everything is valid, 0 in the gap"


def test_control_flow():
    text = (INPUTS / "control.tir").read_text()
    for n in (0, 1, 5, 9):
        x = np.arange(16, dtype=np.int32)
        want = x.copy()
        total, last = 0, n
        for i in range(n):
            if i < last:
                v = int(want[i])
            else:
                a, b = i, total
                while a > 1:
                    a, b = a // 2, a
                v = b
            total, last = total + v, i
        status, out = irlib.evaluate(text, [x, n, 0.0], (1,))
        if total < last:
            assert status == irlib.FAILED and "assert" in out
            continue
        assert status == irlib.OK, out
        for i in range(7):
            want[i] = max(int(want[i]), total)
        want[0] = 14  # sum of 0 .. 7 halves
        assert (x == want).all(), n


def test_faults_are_located():
    text = kernel("%c : i1", '  assert %c {msg = "no luck"}')
    status, out = irlib.evaluate(text, [0])
    assert status == irlib.FAILED and "test.tir:2:3: error: assert: no luck" in out
    text = kernel("%A : buf<i32 [4] strides [1] align 4>", "")
    status, out = irlib.evaluate(text, [np.zeros(5, np.int32)])
    assert status == irlib.FAILED and "not as its type says" in out
    status, out = irlib.evaluate(text, [])
    assert status == irlib.FAILED and "1 arguments wanted, 0 given" in out
    status, out = irlib.evaluate("kernel @k level thread () {\n}", [])
    assert status == irlib.FAILED and "level tile" in out


def test_accumulators_and_extents():
    """A free accumulator takes the extent of the product, any other keeps its own."""
    head = f"%A : {buf('f32', 2)}, %B : {buf('f32', 2)}, %Y : {buf('f32')}"
    lines = """
  %0 = const {value = 0} : index
  %a = load %A, %0, %0 {dims = "ss"} : tile<4x4xf32>
  %b = load %B, %0, %0 {dims = "ss"} : tile<4x4xf32>
  %z = const {fvalue = 5.0} : tile<4x4xf32>
  ACC
  %d = dot %a, %b, %acc : tile<4x4xf32>
  %r = reduce %d {axis = 1, kind = "max"} : tile<4xf32>
  %m = const {fvalue = -1.0} : f32
  %f = fill %r, %m : tile<4xf32>
  store %Y, %f, %0 {dims = "s"}"""
    a, b, y = -np.ones((3, 4), np.float32), 2 * np.ones((4, 2), np.float32), np.zeros(4, np.float32)
    run(kernel(head, lines.replace("ACC", "%acc = add %z, %z : tile<4x4xf32>")), a, b, y)
    assert y.tolist() == [2, 2, 2, -1]
    fill = "%five = const {fvalue = 10.0} : f32\n  %acc = fill %z, %five : tile<4x4xf32>"
    run(kernel(head, lines.replace("ACC", fill)), a, b, y)
    assert y.tolist() == [5, 5, 5, 5], "filled: valid everywhere, the product is 0 where nothing was"
