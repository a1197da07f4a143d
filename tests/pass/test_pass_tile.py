"""Passes promote, stage and launch_grid: text in, text out, and what they refuse."""

from __future__ import annotations

import re

import pytest
from passlib import INPUTS, accepted, irlib, refused, text_of

STAGES = ["promote", "promote,stage,share", "promote,stage,launch_grid", None]


@pytest.mark.parametrize("passes", STAGES, ids=["promote", "stage", "launch_grid", "all"])
@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.stem)
def test_round_trip(path, passes):
    """Every input through every prefix of the pipeline, printed and parsed after each pass: the same as without (the
    order of a sum's operands, which follows the numbering of values, aside).
    """
    text = path.read_text()
    if passes and "grid " in text:
        passes = "grid_loops," + passes
    one, two = (irlib.good(text, passes, round_trip=trip) for trip in (True, False))
    if passes:
        assert one == two
    plain = [sorted(re.sub(r"%\w+|loc\(.*|\d+", "", x) for x in t.splitlines()) for t in (one, two)]
    assert plain[0] == plain[1]


def kernel(body: str, head: str = "", attrs: str = 'target = "gfx942"') -> str:
    head = head or (
        "%A : buf<f16 [?, ?] strides [?, 1] align 16 noalias dense>, "
        "%B : buf<f16 [?, ?] strides [?, 1] align 16 noalias dense>, "
        "%C : buf<f16 [?, ?] strides [?, 1] align 16 noalias dense>"
    )
    return f"kernel @k level tile {{{attrs}}} ({head}) {{\n{body}\n}}\n"


CONSTS = """  %z = const {value = 0} : index
  %f = const {fvalue = 0.0} : tile<32x32xf32>
  %a = load %A, %z, %z {dims = "ss"} : tile<32x16xf16>
  %b = load %B, %z, %z {dims = "ss"} : tile<16x32xf16>
"""
STORE = """  %o = cast %c : tile<32x32xf16>
  store %C, %o, %z, %z {dims = "ss"}"""


def test_promote_global_operands() -> None:
    out = accepted(kernel(CONSTS + "  %c = dot %a, %b, %f : tile<32x32xf32>\n" + STORE), "promote")
    assert out.count("alloc_shared") == 2
    a, b = re.search(r"dot (%\S+), (%\S+), %", out).groups()
    for shared, value, shape in ((a, "%a", "32x16"), (b, "%b", "16x32")):
        assert re.search(rf"{shared} = alloc_shared .*shared<{shape}xf16>", out)
        assert re.search(rf'store {shared}, {value} {{dims = ""}}', out)
    assert out.index("alloc_shared") < out.index("load"), "allocations stand first"


def test_promote_shares_what_is_shared() -> None:
    """One value as A of two dots: one tile; as A and as B: two (other layouts)."""
    body = CONSTS.replace("16xf16", "32xf16").replace("tile<16x32", "tile<32x32")
    two = "  %d = dot %a, %b, %f : tile<32x32xf32>\n  %c = dot %a, %b, %d : tile<32x32xf32>\n"
    assert accepted(kernel(body + two + STORE), "promote").count("alloc_shared") == 2
    swapped = "  %d = dot %a, %b, %f : tile<32x32xf32>\n  %c = dot %b, %a, %d : tile<32x32xf32>\n"
    assert accepted(kernel(body + swapped + STORE), "promote").count("alloc_shared") == 4


def test_promote_leaves_fragments() -> None:
    """Whole shared tiles become the operand itself; what is computed from them alone stays a value."""
    body = (
        CONSTS
        + """  %s = alloc_shared : shared<32x16xf16>
  store %s, %a {dims = ""}
  %l = load %s {dims = ""} : tile<32x16xf16>
  %t = alloc_shared : shared<16x32xf16>
  store %t, %b {dims = ""}
  %m = load %t {dims = ""} : tile<16x32xf16>
  %n = add %m, %m : tile<16x32xf16>
  %c = dot %l, %n, %f : tile<32x32xf32>
"""
    )
    out = accepted(kernel(body + STORE), "promote")
    assert re.search(r"dot %s, %n, %f", out) and out.count("alloc_shared") == 2


def test_promote_the_result_of_a_dot() -> None:
    body = (
        CONSTS
        + """  %d = dot %a, %b, %f : tile<32x32xf32>
  %e = cast %d : tile<32x32xf16>
  %g = load %B, %z, %z {dims = "ss"} : tile<32x32xf16>
  %c = dot %e, %g, %f : tile<32x32xf32>
"""
    )
    out = accepted(kernel(body + STORE), "promote")
    assert re.search(r"alloc_shared .*shared<32x32xf16>", out) and re.search(r'store %\S+, %e {dims = ""}', out)


def loop(k: int, elem: str = "f16", tile: int = 64, end: str = "%e", pre: str = "", step: int | None = None) -> str:
    return kernel(
        f"""  %z = const {{value = 0}} : index
  %e = dim %A {{axis = 1}} : index
  %s = const {{value = {step or k}}} : index
{pre}  %f = const {{fvalue = 0.0}} : tile<{tile}x{tile}xf32>
  %x = alloc_shared {{name = "x"}} : shared<{tile}x{k}x{elem}>
  %y = alloc_shared {{name = "y"}} : shared<{k}x{tile}x{elem}>
  %c = for %z, {end}, %s, %f (%k : index, %acc : tile<{tile}x{tile}xf32>) {{
    %a = load %A, %z, %k {{dims = "ss"}} : tile<{tile}x{k}x{elem}>
    store %x, %a {{dims = ""}}
    %b = load %B, %k, %z {{dims = "ss"}} : tile<{k}x{tile}x{elem}>
    store %y, %b {{dims = ""}}
    %d = dot %x, %y, %acc : tile<{tile}x{tile}xf32>
    yield %d
  }} : tile<{tile}x{tile}xf32>
  %o = cast %c : tile<{tile}x{tile}x{elem}>
  store %C, %o, %z, %z {{dims = "ss"}}"""
    ).replace("buf<f16", f"buf<{elem}")


def test_stage_divides_long_tiles() -> None:
    """128x128x128 f32 needs 128 KiB as written: walked in parts it fits."""
    text = loop(128, "f32", 128).replace("[?, ?] strides [?, 1]", "[512, 512] strides [512, 1]")
    out = accepted(text, "simplify,promote,stage")
    shapes = re.findall(r"alloc_shared .*shared<(\d+)x(\d+)xf32>", out)
    part = int(shapes[0][1])
    assert shapes == [("128", str(part)), (str(part), "128")] and 2 * 128 * part * 4 <= 65536
    assert re.search(rf"const {{value = {part}}} : index", out)
    assert "floordiv" not in out, "the loop ends with the tensor: no rounding"


def test_stage_keeps_the_turns() -> None:
    """A loop that ends before the tensor does covers whole old steps: the end is rounded up to one."""
    out = accepted(loop(128, "f32", 128, end="%n", pre="  %n = const {value = 300} : index\n"), "promote,stage")
    assert "floordiv" in out


@pytest.mark.parametrize(
    "text",
    [loop(64), loop(128, "f32", 128, step=64), loop(128, "f32", 128).replace("yield %d", "yield %acc")],
    ids=["short enough", "step is not the tile", "carried is no dot"],
)
def test_stage_leaves_alone(text: str) -> None:
    before = accepted(text, "promote")
    assert accepted(text, "promote,stage") == before


def dots_in_a_row(n: int, size: int) -> str:
    """n loops, each with a dot of two slices of its own."""
    tile = f"tile<{size}x{size}xf32>"
    text = ["kernel @k level tile {num_warps = 4} (%A : buf<f32 [?, ?] strides [?, 1] align 4 noalias>) {"]
    text += ["%z = const {value = 0} : index", f"%e = const {{value = {size}}} : index"]
    text += [f"%acc0 = const {{fvalue = 0.0}} : {tile}"]
    for i in range(n):
        text += [f"%o{i} = const {{value = {i}}} : index"]
        text += [f"%acc{i + 1} = for %z, %e, %e, %acc{i} (%k{i} : index, %s{i} : {tile}) {{"]
        text += [f'%a{i} = load %A, %o{i}, %k{i} {{dims = "ss"}} : {tile}']
        text += [f'%b{i} = load %A, %k{i}, %o{i} {{dims = "ss"}} : {tile}']
        text += [f"%d{i} = dot %a{i}, %b{i}, %s{i} : {tile}", f"yield %d{i}", f"}} : {tile}"]
    return "\n".join([*text, f'store %A, %acc{n}, %z, %z {{dims = "ss"}}', "}"]) + "\n"


@pytest.mark.parametrize("n, size, shared", [(8, 32, 16), (9, 32, 2), (2, 64, 4), (3, 64, 2), (20, 64, 2)])
def test_share_where_lds_is_short(n: int, size: int, shared: int) -> None:
    """Tiles of one type that live one after the other are one, but only if all of them do not fit."""
    out = accepted(dots_in_a_row(n, size), "promote,share,simplify")
    assert out.count("alloc_shared") == shared and out.count("store ") == 2 * n + 1
    assert "mfma" in accepted(dots_in_a_row(n, size), None)


def test_share_keeps_what_lives_together() -> None:
    """A tile that is read after another one was filled stays."""
    text = dots_in_a_row(9, 32)
    held = text.replace("%o0 = const", "%sh = alloc_shared : shared<32x32xf32>\n%o0 = const", 1)
    held = held.replace("%o1 = const", '%x = load %A, %z, %z {dims = "ss"} : tile<32x32xf32>\n'
                        'store %sh, %x {dims = ""}\n%o1 = const', 1)  # fmt: skip
    held = held.replace("store %A,", '%y = load %sh {dims = ""} : tile<32x32xf32>\nstore %A, %y, %e, %e {dims = "ss"}\n'
                        "store %A,", 1)  # fmt: skip
    assert accepted(held, "promote,share,simplify").count("alloc_shared") == 3


def test_grid_of_listing() -> None:
    out = accepted(text_of("listing1_128_odd_f16"), "launch_grid")
    assert "grid0 = [2, 0, 128], grid1 = [2, 1, 128]" in out


PID = """  %p = program_id {axis = 0} : index
  %z = const {value = 0} : index
  %v = const {fvalue = 1.0} : tile<8xf16>
"""
ONE = "%O : buf<f16 [?] strides [1] align 16 noalias dense>"
SIZES = "%O : buf<f16 [64] strides [1] align 16 dense>, %P : buf<f16 [80] strides [1] align 16 dense>"
TWO = ONE + ", %P : buf<f16 [?] strides [1] align 16 noalias dense>"
MUL = "  %n = const {{value = {0}}} : index\n  %q = mul %p, %n : index\n"
ST = '  store %O, %v, %q {dims = "s"}'


def test_grid_of_a_plain_index() -> None:
    body = PID + '  %s = const {fvalue = 1.0} : f16\n  store %O, %s, %p {dims = "i"}'
    assert "grid0 = [0, 0, 1]" in accepted(kernel(body, ONE), "launch_grid")


def test_no_program_ids() -> None:
    body = (
        '  %z = const {value = 0} : index\n  %v = const {fvalue = 1.0} : tile<8xf16>\n  store %O, %v, %z {dims = "s"}'
    )
    assert "grid0 = [-1, 1, 1]" in accepted(kernel(body, ONE), "launch_grid")


def test_given_grid_is_left() -> None:
    out = accepted(kernel(PID + MUL.format(5) + ST, ONE, 'target = "gfx942", user_grid = 1'), "launch_grid")
    assert "grid0" not in out


@pytest.mark.parametrize(
    ("body", "head", "words"),
    [
        (PID + MUL.format(5) + ST, ONE, "not selected as p*C : p*C + C"),
        (PID + "  %q = add %p, %p : index\n" + ST, ONE, "not selected as p*C : p*C + C"),
        (PID + "  %q = add %z, %z : index\n  %r = dim %O {axis = 0} : index\n  %c = lt %p, %r : i1\n"
         "  if %c () {\n  " + ST + "\n    yield\n  } () {\n    yield\n  }", ONE,
         "no store is placed by this program id"),
        (PID + MUL.format(8) + ST + "\n  %w = const {fvalue = 1.0} : tile<16xf16>\n"
         "  %m = const {value = 16} : index\n"
         "  %x = mul %p, %m : index\n" '  store %P, %w, %x {dims = "s"}', TWO, "blocks of different sizes"),
        (PID + MUL.format(8) + ST + '\n  store %P, %v, %q {dims = "s"}', SIZES,
         "different numbers of programs"),
    ],
    ids=["other block", "sum of ids", "only a condition", "two block sizes", "two sizes"],
)  # fmt: skip
def test_grid_refusals(body: str, head: str, words: str) -> None:
    out = refused(kernel(body, head), "launch_grid")
    assert words in out and "GRID" in out and "grid=" in out and re.search(r"\d+:\d+", out)


@pytest.mark.parametrize("end", [1, 127, 128], ids=str)
def test_stage_divides_a_loop_of_one_turn(end: int) -> None:
    """A loop that runs once is cut like any other (128x128 f32 does not fit the LDS); one turn left is no loop."""
    text = loop(128, "f32", 128, end="%n", pre=f"  %n = const {{value = {end}}} : index\n")
    text = text.replace("[?, ?] strides [?, 1]", f"[{end}, {end}] strides [{end}, 1]")
    out = accepted(text, "simplify,promote,stage")
    shapes = re.findall(r"alloc_shared .*shared<(\d+)x(\d+)xf32>", out)
    assert 2 * 128 * int(shapes[0][1]) * 4 <= 65536 and shapes[0] == shapes[1][::-1]
    assert ("= for " in out) == (end > int(shapes[0][1]))
