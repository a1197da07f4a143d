"""Pass lower and the whole pipeline: shape of the matrix loops, targets, refusals, memory faults."""

from __future__ import annotations

import re

import pytest
from passlib import INPUTS, Body, attribute, irlib, lowered, refused, text_of

LISTING_128 = ["listing1_128_f16", "listing1_128_ragged_f16", "listing1_128_odd_f16"]


def k_loop(name: str) -> tuple[Body, Body]:
    """(the kernel, its pipelined loop)."""
    body = lowered(text_of(name))
    loops = [x for x in body.loops() if x.count("sched_barrier")]
    assert len(loops) == 1
    return body, loops[0]


@pytest.mark.parametrize("name", LISTING_128)
def test_the_loop_of_listing1_128(name: str) -> None:
    """Wide accesses, no masks, no address arithmetic but the offset: whole, ragged and odd sizes have one loop."""
    body, loop = k_loop(name)
    assert loop.count(r"= mma ") == 32
    assert loop.count(r"= lds_load .*align = 16} : vec<8xf16>") == loop.count("= lds_load") == 16
    assert loop.count("lds_store .*align = 16") == loop.count("lds_store") == 8
    assert loop.count(r"= buf_load .*: vec<8xf16>") == loop.count("= buf_load") == 8
    assert loop.count(r"^\s*barrier") == 2 and loop.count("sched_barrier") == 32
    for op in ("select", "lt ", "ge ", "and ", "= if", "mul .*: i64", "make_rsrc"):
        assert not loop.count(op), op
    assert attribute(body, "lds_bytes") == "32768" and attribute(body, "block") == "256"


def test_ragged_loops_are_the_same() -> None:
    """Names and immediates aside, the three sizes have the same operations in the same order."""
    bodies = [[re.sub(r"%\w+|\d+", "", x) for x in k_loop(name)[1].lines] for name in LISTING_128]
    kinds = [[re.search(r"(?:= )?(\w+)", x.strip(" =,:")).group(1) for x in b if x.strip(" =,:")] for b in bodies]
    for other in kinds[1:]:
        assert sorted(other) == sorted(kinds[0])


def test_barriers_guard_the_copies() -> None:
    """Reads of this block, barrier, writes of the next, barrier, reads of the next."""
    _, loop = k_loop("listing1_128_f16")
    first = loop.index(r"^\s*barrier")
    second = first + 1 + Body(loop.lines[first + 1 :]).index(r"^\s*barrier")
    before, between, after = Body(loop.lines[:first]), Body(loop.lines[first:second]), Body(loop.lines[second:])
    assert before.count("lds_load") and not before.count("lds_store")
    assert between.count("lds_store") == 8 and not between.count("lds_load")
    assert after.count("lds_load") and not after.count("lds_store")


def test_prefetch_needs_a_turn() -> None:
    """Sizes known at run time: everything of the pipelined turns stands inside one `if`."""
    body = lowered(text_of("matmul_dynamic_f16"))
    (region,) = body.regions(r"= if ")
    pipelined = [x for x in region.loops() if x.count("sched_barrier")]
    assert len(pipelined) == 1
    outside = Body(body.lines[: body.index(r"= if ")])
    assert not outside.count("buf_load") and not outside.count("lds_load|lds_store")


def test_tail_only_where_needed() -> None:
    """A k that the step divides has no second loop; a run-time one has."""
    assert len(lowered(text_of("listing1_128_f16")).loops()) == 1
    assert len(lowered(text_of("matmul_dynamic_f16")).loops()) == 2
    small = lowered(text_of("matmul_1x1x1_f16"))
    assert not small.count("sched_barrier"), "less than one block: nothing is pipelined"


def test_f32_is_staged() -> None:
    text = text_of("listing1_128_f16").replace("xf16", "xf32").replace("buf<f16", "buf<f32")
    text = text.replace("128x64", "128x128").replace("64x128", "128x128").replace("{value = 64}", "{value = 128}")
    text = re.sub(r"%15 = cast .*\n", "", text).replace("%15", "%acc_1")
    body = lowered(text)
    assert int(attribute(body, "lds_bytes")) <= 65536
    assert body.count("= mma ") and "mfma_32x32x2_f32" in "\n".join(body.lines)


@pytest.mark.parametrize("path", INPUTS, ids=lambda p: p.stem)
def test_stores_have_a_literal_scalar_offset(path) -> None:
    body = lowered(path.read_text())
    zero = {m.group(1) for x in body.lines if (m := re.match(r"\s*(%\w+) = const \{value = 0\} : i32", x))}
    stores = [x for x in body.lines if "buf_store" in x]
    assert stores
    for x in stores:
        assert re.search(r"buf_store [^,]+, [^,]+, [^,]+, (%\w+)", x).group(1) in zero, x


def test_kernel_attributes() -> None:
    body = lowered(
        text_of("listing1_f16").replace('target = "gfx942"', 'target = "gfx942", num_warps = 2, waves_per_eu = 3')
    )
    assert attribute(body, "num_warps") == "2" and attribute(body, "block") == "128"
    assert attribute(body, "waves_per_eu") == "3" and attribute(body, "grid0") == "[2, 0, 64]"
    assert attribute(body, "target") == '"gfx942"'


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_targets(target: str) -> None:
    """CDNA chips whose lowering exists compile, others say so with the kernel's name in reach."""
    text = text_of("listing1_f16").replace("gfx942", target)
    status, out = irlib.run(text, None)
    if status == irlib.OK:
        assert f'target = "{target}"' in out
    else:
        assert "TARGET" in out and target in out
    if target == "gfx942":
        assert status == irlib.OK


def edited(name: str, *pairs: tuple[str, str]) -> str:
    text = text_of(name)
    for a, b in pairs:
        assert a in text, a
        text = text.replace(a, b)
    return text


def test_unknown_target() -> None:
    out = refused(edited("listing1_f16", ("gfx942", "gfx000")))
    assert "matmul_kernel" in out and "target" in out and "no known chip" in out


@pytest.mark.parametrize("waves", [3, 5, 32, -1])
def test_bad_number_of_waves(waves: int) -> None:
    out = refused(edited("listing1_f16", ('target = "gfx942"', f'target = "gfx942", num_warps = {waves}')))
    assert "num_warps" in out and "error" in out


def test_waves_that_do_not_divide() -> None:
    """A 16x16 tile for 16 waves: said with the sizes and a way out."""
    out = refused(
        edited(
            "listing1_f16",
            ('target = "gfx942"', 'target = "gfx942", num_warps = 16'),
            ("64x64", "16x16"),
            ("{value = 64}", "{value = 16}"),
        )
    )
    assert "16x16x16 dot" in out and "16 waves" in out and "num_warps" in out and re.search(r"\d+:\d+: error", out)


LDS = """kernel @k level tile {target = "gfx942"} (
  %A : buf<f32 [256, 256] strides [256, 1] align 16 noalias dense>,
  %C : buf<f32 [256, 256] strides [256, 1] align 16 noalias dense>) {
  %z = const {value = 0} : index
  %s = alloc_shared {name = "big"} : shared<256x256xf32>
  %a = load %A, %z, %z {dims = "ss"} : tile<256x256xf32>
  store %s, %a {dims = ""}
  %b = load %s {dims = ""} : tile<256x256xf32>
  store %C, %b, %z, %z {dims = "ss"}
}
"""


def test_lds_limit() -> None:
    """With the numbers, the chip's limit and the allocation's name and place."""
    out = refused(LDS)
    assert "262144" in out and "65536" in out and "'big'" in out and "256x256 f32" in out and "LDS" in out
    assert re.search(r":\d+:\d+: error", out)


def test_num_stages_that_cannot_be_honoured() -> None:
    text = """kernel @k level tile {target = "gfx942"} (
  %A : buf<f32 [256] strides [1] align 16 noalias dense>) {
  %z = const {value = 0} : index
  %n = const {value = 4} : index
  %o = const {value = 1} : index
  %f = const {fvalue = 0.0} : tile<64xf32>
  %r = for %z, %n, %o, %f (%i : index, %acc : tile<64xf32>) {
    %a = load %A, %i {dims = "s"} : tile<64xf32>
    %b = add %acc, %a : tile<64xf32>
    yield %b
  } : tile<64xf32> {num_stages = 3}
  store %A, %r, %z {dims = "s"}
}
"""
    text = text.replace("%f (%i", "%f {num_stages = 3} (%i").replace(
        "} : tile<64xf32> {num_stages = 3}", "} : tile<64xf32>"
    )
    out = refused(text)
    assert "num_stages" in out and "cannot be pipelined" in out and re.search(r":\d+:\d+: error", out)


def test_num_stages_of_one() -> None:
    body = lowered(edited("listing1_128_f16", ('target = "gfx942"', 'target = "gfx942", num_stages = 1')))
    assert not body.count("sched_barrier") and body.count("= mma ")


def test_operands_of_two_types() -> None:
    out = refused(
        """kernel @k level tile {target = "gfx942"} (
  %A : buf<f16 [64, 64] strides [64, 1] align 16>,
  %B : buf<bf16 [64, 64] strides [64, 1] align 16>,
  %C : buf<f32 [64, 64] strides [64, 1] align 16>) {
  %z = const {value = 0} : index
  %f = const {fvalue = 0.0} : tile<64x64xf32>
  %a = load %A, %z, %z {dims = "ss"} : tile<64x64xf16>
  %b = load %B, %z, %z {dims = "ss"} : tile<64x64xbf16>
  %c = dot %a, %b, %f : tile<64x64xf32>
  store %C, %c, %z, %z {dims = "ss"}
}
"""
    )
    assert re.search(r":\d+:\d+: error", out) and "f16" in out and "bf16" in out


ORDER = """kernel @k level tile {{target = "gfx942", num_warps = 4, user_grid = 1}} (
  %A : buf<f32 [2048] strides [1] align 16 {flags}>,
  %B : buf<f32 [2048] strides [1] align 16 {flags}>) {{
  %z = const {{value = 0}} : index
  %a = load %A, %z {{dims = "s"}} : tile<1024xf32>
  store %B, %a, %z {{dims = "s"}}
  %b = load {second}, %z {{dims = "s"}} : tile<1024xf32>
  store %B, %b, %z {{dims = "s"}}
}}
"""


@pytest.mark.parametrize(
    ("second", "flags", "barriers"),
    [("%B", "noalias dense", 2), ("%A", "noalias dense", 1), ("%A", "dense", 3)],
    ids=["read back", "no alias", "may alias"],
)
def test_order_of_global_memory(second: str, flags: str, barriers: int) -> None:
    """A barrier of scope all before an access that meets an earlier one of another wave, and only there."""
    body = lowered(ORDER.format(second=second, flags=flags))
    assert body.count(r'barrier {scope = "all"}') == barriers and body.count(r"^\s*barrier") == barriers


KINDS = (
    "listing1_f16",
    "matmul_dynamic_f16",
    "two_dots_f16",
    "grid_bias_f32",
    "vector_add_f32",
    "matmul_16x256x64_f16",
)


@pytest.mark.parametrize("name", KINDS)
def test_every_allocation_may_fail(name: str) -> None:
    """Each memory request of the whole pipeline fails once: said so, nothing lost, no crash."""
    passes = "simplify,grid_loops,elements,promote,stage,launch_grid,lower,clean"
    requests = irlib.alloc_sweep(text_of(name), passes)
    assert requests > 100, f"request {-requests} was not handled"


@pytest.mark.parametrize("text", [LDS], ids=["lds limit"])
def test_every_allocation_may_fail_while_refusing(text: str) -> None:
    requests = irlib.alloc_sweep(text, "promote,stage,launch_grid,lower", irlib.FAILED)
    assert requests > 50, f"request {-requests} was not handled"


@pytest.mark.parametrize("warps", [1, 2])
def test_tiles_beyond_the_registers(warps: int) -> None:
    """An accumulator that no wave can hold is refused with the numbers (LLVM would spill for minutes)."""
    text = edited("listing1_128_f16", ('target = "gfx942"', f'target = "gfx942", num_warps = {warps}'))
    wide = re.sub(r"(?<!\d)128(?!\d)", "256", text)
    need = 256 * 256 // (64 * warps)
    out = refused(wide)
    assert f"{need} registers of each lane" in out and "256x256xf32" in out and "512 for a wave" in out
    assert "num_warps" in out and re.search(r":\d+:\d+: error", out)
