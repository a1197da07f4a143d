"""Control flow, memory and wave operations of level thread, run on the simulator: exact results."""

from __future__ import annotations

import numpy as np
import pytest
from cg_util import kernel

from tilelang import _llvm

sim = pytest.importorskip("tilelang.sim")


@pytest.fixture(scope="module")
def dev():
    return sim.Device(arch="gfx942", checks="all")


def launch(dev, text: str, args: list, grid: tuple[int, ...] = (1,), block: int = 64) -> dict:
    code = _llvm.compile(text, check=True)
    return dev.load(code.hsaco).kernels["k"].launch(grid, (block,), args)


# %out[t] = %x for thread t of a one-dimensional grid; i32 or f32
STORE = """
%st_b = const {value = BLOCK} : i32
%st_p = program_id {axis = 0} : i32
%st_0 = mul %st_p, %st_b : i32
%st_i = add %st_0, %tid : i32
%st_4 = const {value = 4} : i32
%st_o = mul %st_i, %st_4 : i32
%st_l = cast %st_o : i64
%st_a = ptr_add %out, %st_l : ptr
glb_store %st_a, %x {align = 4}
"""


def run(dev, body: str, params: str = "", args: tuple = (), grid: int = 1, block: int = 64, dtype=np.int32, **attrs):
    """The value %x of each thread."""
    out = np.full(grid * block, -1, dtype)
    text = "%tid = thread_id : i32\n" + body + STORE.replace("BLOCK", str(block))
    params = "%out : ptr" + (", " + params if params else "")
    launch(dev, kernel(text, params, block=block, **attrs), [out, *args], (grid,), block)
    return out


@pytest.mark.parametrize("lo, hi, step", [(0, 10, 1), (3, 3, 1), (5, 2, 1), (10, 0, -3), (0, 10, -1), (-7, 8, 4)])
@pytest.mark.parametrize("constant", [True, False])
def test_for_with_uniform_bounds(dev, lo: int, hi: int, step: int, constant: bool) -> None:
    loop = """%z = const {value = 0} : i32
    %o = const {value = 1} : i32
    %s, %n = for %lo, %hi, %step, %z, %z (%i : i32, %a : i32, %c : i32) {
      %b = add %a, %i : i32
      %d = add %c, %o : i32
      yield %b, %d
    } : i32, i32
    %k = const {value = 1000} : i32
    %m = mul %n, %k : i32
    %x = add %m, %s : i32"""
    want = len(range(lo, hi, step)) * 1000 + sum(range(lo, hi, step))
    if constant:
        consts = "".join(f"%{n} = const {{value = {v}}} : i32\n" for n, v in (("lo", lo), ("hi", hi), ("step", step)))
        got = run(dev, consts + loop)
    else:
        got = run(dev, loop, "%lo : i32, %hi : i32, %step : i32", (np.int64(lo), np.int64(hi), np.int64(step)))
    assert (got == want).all(), (got[:4], want)


@pytest.mark.parametrize(
    "lo, hi, step", [(0, 10, 1), (3, 3, 1), (5, 2, 4), (-7, 9, 4), (-7, 10, 4), (1, 100, 32), (0, 9, 3)]
)
def test_for_with_64_bits(dev, lo: int, hi: int, step: int) -> None:
    body = f"""%step = const {{value = {step}}} : i64
    %z = const {{value = 0}} : i64
    %s = for %lo, %hi, %step, %z (%i : i64, %a : i64) {{
      %h = const {{value = 1000}} : i64
      %b = add %a, %i : i64
      %c = add %b, %h : i64
      yield %c
    }} : i64
    %x = cast %s : i32"""
    got = run(dev, body, "%lo : i64, %hi : i64", (np.int64(lo), np.int64(hi)))
    assert (got == sum(i + 1000 for i in range(lo, hi, step))).all()


def test_for_with_bounds_of_each_lane(dev) -> None:
    """Nested, different trip counts in the lanes, 64-bit induction variable outside."""
    got = run(
        dev,
        """%z = const {value = 0} : i32
        %o = const {value = 1} : i32
        %z64 = const {value = 0} : i64
        %o64 = const {value = 1} : i64
        %t64 = cast %tid : i64
        %x = for %z64, %t64, %o64, %z (%i : i64, %a : i32) {
          %i32 = cast %i : i32
          %b = for %z, %i32, %o, %a (%j : i32, %c : i32) {
            %d = add %c, %j : i32
            yield %d
          } : i32
          yield %b
        } : i32""",
        block=128,
    )
    assert got.tolist() == [sum(j for i in range(t) for j in range(i)) for t in range(128)]


def test_while_with_lanes_that_leave_at_different_times(dev) -> None:
    """Steps of the Collatz sequence from thread + 1."""
    got = run(
        dev,
        """%one = const {value = 1} : i32
        %three = const {value = 3} : i32
        %zero = const {value = 0} : i32
        %start = add %tid, %one : i32
        %v, %x = while %start, %zero (%a : i32, %n : i32) {
          %c = ne %a, %one : i1
          condition %c, %a, %n
        } (%a2 : i32, %n2 : i32) {
          %odd = and %a2, %one : i32
          %is = ne %odd, %zero : i1
          %next = if %is () {
            %p = mul %a2, %three : i32
            %q = add %p, %one : i32
            yield %q
          } () {
            %h = shr %a2, %one : i32
            yield %h
          } : i32
          %m = add %n2, %one : i32
          yield %next, %m
        } : i32, i32""",
    )

    def steps(v: int) -> int:
        n = 0
        while v != 1:
            v, n = (3 * v + 1 if v % 2 else v // 2), n + 1
        return n

    assert got.tolist() == [steps(t + 1) for t in range(64)]


def test_if_masks_stores(dev) -> None:
    out = np.full(64, 7, np.int32)
    body = """%tid = thread_id : i32
    %c = lt %tid, %n : i1
    if %c () {
      %four = const {value = 4} : i32
      %o = mul %tid, %four : i32
      %l = cast %o : i64
      %a = ptr_add %out, %l : ptr
      glb_store %a, %tid {align = 4}
      yield
    } () {
      yield
    }"""
    launch(dev, kernel(body, "%out : ptr, %n : i32"), [out[:20], np.int64(20)])
    assert out.tolist() == list(range(20)) + [7] * 44


def test_ids(dev) -> None:
    body = """%w = wave_id : i32
    %l = lane_id : i32
    %u = uniform %tid : i32
    %p = program_id {axis = 0} : i32
    %n = num_programs {axis = 0} : i32
    %k = const {value = 64} : i32
    %a = mul %w, %k : i32
    %b = add %a, %l : i32
    %c = mul %u, %k : i32
    %d = add %b, %c : i32
    %e = mul %p, %n : i32
    %f = mul %e, %k : i32
    %g = mul %f, %k : i32
    %x = add %d, %g : i32"""
    got = run(dev, body, grid=3, block=256).reshape(3, 256)
    t = np.arange(256)
    for p in range(3):
        assert (got[p] == t + (t // 64 * 64) * 64 + p * 3 * 4096).all()


def test_three_dimensional_grid(dev) -> None:
    out = np.zeros((4, 3, 2), np.int32)
    body = """%x = program_id {axis = 0} : i32
    %y = program_id {axis = 1} : i32
    %z = program_id {axis = 2} : i32
    %nx = num_programs {axis = 0} : i32
    %ny = num_programs {axis = 1} : i32
    %nz = num_programs {axis = 2} : i32
    %a = mul %z, %ny : i32
    %b = add %a, %y : i32
    %c = mul %b, %nx : i32
    %i = add %c, %x : i32
    %four = const {value = 4} : i32
    %o = mul %i, %four : i32
    %l = cast %o : i64
    %p = ptr_add %out, %l : ptr
    %v = add %i, %nz : i32
    glb_store %p, %v {align = 4}"""
    launch(dev, kernel(body, "%out : ptr"), [out], (2, 3, 4))
    assert (out.ravel() == np.arange(24) + 4).all()


def test_scalar_parameters_sit_in_their_slots(dev) -> None:
    body = """%a32 = cast %a : i32
    %b32 = cast %b : i32
    %d32 = cast %d : i32
    %e32 = cast %e : i32
    %f32_ = cast %f : i32
    %s0 = add %a32, %b32 : i32
    %s1 = add %s0, %c : i32
    %s2 = add %s1, %d32 : i32
    %s3 = add %s2, %e32 : i32
    %x = add %s3, %f32_ : i32"""
    params = "%a : i8, %b : u16, %c : i32, %d : i64, %e : f16, %f : f32"
    slots = [np.int64(-3 & 0xFF), np.int64(40000), np.int64(1000000), np.int64(5)]
    half = np.int64(np.float16(64).view(np.uint16))
    single = np.int64(np.float32(2048).view(np.uint32))
    got = run(dev, body, params, (*slots, half, single))
    assert (got == -3 + 40000 + 1000000 + 5 + 64 + 2048).all()


def test_buffer_range(dev) -> None:
    """Loads beyond num_records give 0, stores are dropped; soffset counts."""
    src = np.arange(1, 65, dtype=np.int32)
    out = np.full(64, -1, np.int32)
    body = """%t = thread_id : i32
    %four = const {value = 4} : i32
    %o = mul %t, %four : i32
    %z = const {value = 0} : i32
    %rs = make_rsrc %src, %ns : rsrc
    %ro = make_rsrc %out, %no : rsrc
    %v = buf_load %rs, %o, %s {imm = 4} : i32
    buf_store %ro, %v, %o, %z"""
    args = [src, out, np.int64(4 * 40), np.int64(4 * 50), np.int64(8)]
    launch(dev, kernel(body, "%src : ptr, %out : ptr, %ns : i32, %no : i32, %s : i32"), args)
    assert out.tolist() == [t + 4 if t + 3 < 40 else 0 for t in range(50)] + [-1] * 14


@pytest.mark.parametrize(
    "t, n", [("f16", 8), ("f32", 4), ("i32", 3), ("i32", 2), ("u16", 2), ("i8", 4), ("i16", 1), ("u8", 1)]
)
def test_lds_round_trip(dev, t: str, n: int) -> None:
    """Each thread writes, all meet, each reads the next thread's."""
    dt = np.dtype({"f16": "f2", "f32": "f4", "i32": "i4", "u16": "u2", "i8": "i1", "i16": "i2", "u8": "u1"}[t])
    size = n * dt.itemsize
    src = np.random.default_rng(1).integers(0, 100, (256, n)).astype(dt)
    out = np.zeros_like(src)
    ty = t if n == 1 else f"vec<{n}x{t}>"
    align = size & -size
    body = f"""%t = thread_id : i32
    %k = const {{value = {size}}} : i32
    %one = const {{value = 1}} : i32
    %mask = const {{value = 255}} : i32
    %o = mul %t, %k : i32
    %l = cast %o : i64
    %a = ptr_add %src, %l : ptr
    %v = glb_load %a {{align = {dt.itemsize}}} : {ty}
    lds_store %o, %v {{align = {align}}}
    barrier
    %n0 = add %t, %one : i32
    %n1 = and %n0, %mask : i32
    %p = mul %n1, %k : i32
    %w = lds_load %p {{align = {align}}} : {ty}
    %b = ptr_add %out, %l : ptr
    glb_store %b, %w {{align = {dt.itemsize}}}"""
    launch(dev, kernel(body, "%src : ptr, %out : ptr", block=256, lds_bytes=256 * size), [src, out], block=256)
    assert np.array_equal(out, np.roll(src, -1, 0))


def test_vectors(dev) -> None:
    src = np.arange(64 * 8, dtype=np.int16).reshape(64, 8)
    out = np.zeros((64, 8), np.int16)
    body = """%t = thread_id : i32
    %k = const {value = 16} : i32
    %o = mul %t, %k : i32
    %l = cast %o : i64
    %a = ptr_add %src, %l : ptr
    %v = glb_load %a {align = 16} : vec<8xi16>
    %lo = extract %v {index = 0} : vec<2xi16>
    %mid = extract %v {index = 3} : vec<3xi16>
    %e7 = extract %v {index = 7} : i16
    %w = bitcast %v : vec<4xi32>
    %w3 = extract %w {index = 3} : i32
    %w0 = extract %w {index = 0} : i32
    %x = perm %w3, %w0 {sel = 84148994} : i32
    %h = bitcast %x : vec<2xi16>
    %r = concat %mid, %e7, %h, %lo : vec<8xi16>
    %b = ptr_add %out, %l : ptr
    glb_store %b, %r {align = 16}"""
    launch(dev, kernel(body, "%src : ptr, %out : ptr"), [src, out])
    # selector 0x05040302: low half of the result = high half of %w0, high half = low half of %w3
    want = np.stack([src[:, c] for c in (3, 4, 5, 7, 1, 6, 0, 1)], 1)
    assert np.array_equal(out, want)


def test_bpermute_and_select(dev) -> None:
    body = """%c3 = const {value = 3} : i32
    %c63 = const {value = 63} : i32
    %four = const {value = 4} : i32
    %a = mul %tid, %c3 : i32
    %b = and %a, %c63 : i32
    %at = mul %b, %four : i32
    %v = mul %tid, %tid : i32
    %w = ds_bpermute %at, %v : i32
    %c = lt %tid, %c3 : i1
    %x = select %c, %tid, %w : i32"""
    got = run(dev, body)
    assert got.tolist() == [t if t < 3 else (3 * t % 64) ** 2 for t in range(64)]


def test_global_offsets_and_stream(dev) -> None:
    src = np.arange(256, dtype=np.float32)
    out = np.zeros(256, np.float32)
    body = """%t = thread_id : i32
    %k = const {value = 16} : i32
    %o = mul %t, %k : i32
    %l = cast %o : i64
    %back = const {value = -16} : i64
    %s = ptr_add %src, %l : ptr
    %s2 = ptr_add %s, %back : ptr
    %v = glb_load %s2 {align = 16, imm = 16, cache = "stream"} : vec<4xf32>
    %d = ptr_add %out, %l : ptr
    glb_store %d, %v {align = 16, cache = "stream"}"""
    launch(dev, kernel(body, "%src : ptr, %out : ptr"), [src, out])
    assert np.array_equal(out, src)


def test_trap_is_reported(dev) -> None:
    body = """%t = thread_id : i32
    %n = const {value = 63} : i32
    %c = lt %t, %n : i1
    assert %c {msg = "thread 63"}"""
    with pytest.raises(Exception, match="trap"):
        launch(dev, kernel(body), [])
