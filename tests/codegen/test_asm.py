"""Each operation of level thread becomes the machine instruction it names: text in, assembly out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cg_util import BYTES, FLOATS, FP8, INTS, TARGETS, casts, elementwise_kernel, kernel, operations
from gemm_gen import gemm128

from tilelang import _llvm

ROOT = Path(__file__).resolve().parents[2]
CDNA = ["gfx90a", "gfx942", "gfx950"]


def asm_of(text: str) -> str:
    """Assembly with LLVM's verifier on; every constant of the text form checked by both verifiers."""
    return _llvm.compile(text, asm=True, check=True, line_tables=False).asm


def instructions(asm: str) -> list[str]:
    return [m.group(0).strip() for m in re.finditer(r"^\t[a-z]\w+.*$", asm, re.M)]


# name, parameters, body, patterns that some instruction must match, patterns that none may
CASES = [
    (
        "buffer load, folded offsets",
        "%p : ptr, %q : ptr, %s : i32",
        """%n = const {value = 4096} : i32
        %z = const {value = 0} : i32
        %t = thread_id : i32
        %r = make_rsrc %p, %n : rsrc
        %w = make_rsrc %q, %n : rsrc
        %v = buf_load %r, %t, %s {imm = 4095} : vec<8xf16>
        buf_store %w, %v, %t, %z {imm = 16}""",
        [
            r"buffer_load_dwordx4 v\[\d+:\d+\], v0, s\[\d+:\d+\], s\d+ offen offset:4095$",
            r"buffer_store_dwordx4 v\[\d+:\d+\], v0, s\[\d+:\d+\], 0 offen offset:16$",
        ],
        [r"v_add"],
    ),
    (
        "buffer access, streamed",
        "%p : ptr",
        """%n = const {value = 4096} : i32
        %z = const {value = 0} : i32
        %t = thread_id : i32
        %r = make_rsrc %p, %n : rsrc
        %v = buf_load %r, %t, %z {cache = "stream"} : vec<2xf32>
        buf_store %r, %v, %t, %z {cache = "stream", imm = 8}""",
        [r"buffer_load_dwordx2 .* offen nt$", r"buffer_store_dwordx2 .* offen offset:8 nt$"],
        [],
    ),
    (
        "narrow buffer accesses",
        "%p : ptr",
        """%n = const {value = 4096} : i32
        %z = const {value = 0} : i32
        %t = thread_id : i32
        %r = make_rsrc %p, %n : rsrc
        %a = buf_load %r, %t, %z : f16
        %b = buf_load %r, %t, %z {imm = 2} : u8
        %c = buf_load %r, %t, %z {imm = 4} : vec<3xf32>
        buf_store %r, %a, %t, %z {imm = 32}
        buf_store %r, %b, %t, %z {imm = 36}
        buf_store %r, %c, %t, %z {imm = 40}""",
        [
            r"buffer_load_ushort",
            r"buffer_load_ubyte",
            r"buffer_load_dwordx3",
            r"buffer_store_short",
            r"buffer_store_byte",
            r"buffer_store_dwordx3",
        ],
        [],
    ),
    (
        "global accesses",
        "%p : ptr, %q : ptr",
        """%t = thread_id : i32
        %c = const {value = 16} : i32
        %o32 = mul %t, %c : i32
        %o = cast %o32 : i64
        %a = ptr_add %p, %o : ptr
        %b = ptr_add %q, %o : ptr
        %v = glb_load %a {align = 16, imm = 32} : vec<4xf32>
        glb_store %b, %v {align = 16, imm = -16, cache = "stream"}""",
        [
            r"global_load_dwordx4 v\[\d+:\d+\], v\d+, s\[\d+:\d+\] offset:32$",
            r"global_store_dwordx4 v\d+, v\[\d+:\d+\], s\[\d+:\d+\] offset:-16 nt$",
        ],
        [],
    ),
    (
        "LDS accesses, wide by their alignment, offsets folded",
        "%p : ptr",
        """%t = thread_id : i32
        %c = const {value = 16} : i32
        %a = mul %t, %c : i32
        %v = lds_load %a {imm = 1024, align = 16} : vec<8xf16>
        lds_store %a, %v {imm = 2048, align = 16}
        barrier
        %w = lds_load %a {imm = 2052, align = 4} : f32
        glb_store %p, %w {align = 4}""",
        [
            r"ds_read_b128 v\[\d+:\d+\], v\d+ offset:1024",
            r"ds_write_b128 v\d+, v\[\d+:\d+\] offset:2048",
            r"ds_read_b32 v\d+, v\d+ offset:2052",
        ],
        [r"v_add"],
    ),
    (
        "permutation of bytes",
        "%p : ptr, %q : ptr",
        """%t = thread_id : i32
        %l = lane_id : i32
        %x = perm %t, %l {sel = 84148994} : i32
        %c = const {value = 4} : i32
        %y = ds_bpermute %c, %x : i32
        glb_store %p, %x {align = 4}
        glb_store %q, %y {align = 4}""",
        [r"ds_bpermute_b32"],
        [],
    ),
    (
        "scheduling, priority, uniform",
        "%p : ptr",
        """%t = thread_id : i32
        %u = uniform %t : i32
        set_prio {prio = 2}
        sched_barrier
        set_prio {prio = 0}
        glb_store %p, %u {align = 4}""",
        [r"v_readfirstlane_b32 s\d+, v0", r"s_setprio 2", r"s_setprio 0"],
        [],
    ),
    (
        "grid and trap",
        "%p : ptr, %c : i32",
        """%x = program_id {axis = 2} : i32
        %k = num_programs {axis = 1} : i32
        %s = add %x, %k : i32
        %b = lt %s, %c : i1
        assert %b {msg = "small"}
        glb_store %p, %s {align = 4}""",
        [r"s_trap 2"],
        [],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_instructions(case) -> None:
    _, params, body, must, must_not = case
    text = kernel(body, params, lds_bytes=4096, block=128)
    ins = instructions(asm_of(text))
    for pattern in must:
        assert any(re.search(pattern, i) for i in ins), (pattern, ins)
    for pattern in must_not:
        assert not any(re.search(pattern, i) for i in ins), (pattern, ins)


def test_barrier_scopes() -> None:
    """An "lds" barrier waits for LDS only and leaves global loads in flight; "all" orders global memory too, for which
    gfx942 needs no wait inside a workgroup (one L1), gfx1100 does.
    """
    body = """%t = thread_id : i32
    %z = const {{value = 0}} : i32
    %n = const {{value = 4096}} : i32
    %c = const {{value = 4}} : i32
    %a = mul %t, %c : i32
    %r = make_rsrc %p, %n : rsrc
    %g = buf_load %r, %a, %z : f32
    buf_store %r, %t, %a, %z {{imm = 2048}}
    lds_store %a, %t {{align = 4}}
    barrier {{scope = "{}"}}
    %v = lds_load %a {{imm = 4, align = 4}} : f32
    %s = add %v, %g : f32
    buf_store %r, %s, %a, %z {{imm = 1024}}"""

    def waits(scope: str, target: str) -> list[str]:
        ins = instructions(asm_of(kernel(body.format(scope), "%p : ptr", target, lds_bytes=1024, block=128)))
        first = next(n for n, i in enumerate(ins) if i.startswith(("ds_write", "ds_store")))
        return [i for i in ins[first : ins.index("s_barrier")] if i.startswith("s_waitcnt")]

    for scope, target in (("lds", "gfx942"), ("lds", "gfx1100"), ("all", "gfx942")):
        assert set(waits(scope, target)) == {"s_waitcnt lgkmcnt(0)"}
    assert any("vmcnt(0)" in w for w in waits("all", "gfx1100"))
    one_wave = asm_of(kernel(body.format("lds"), "%p : ptr", lds_bytes=1024, block=64))
    assert "s_barrier" not in one_wave


@pytest.mark.parametrize("target", TARGETS)
def test_every_elementwise_operation_compiles(target: str) -> None:
    """Nothing that the verifier lets through makes LLVM give up (it would abort the process)."""
    for t in ["i1", *INTS, *FLOATS, *FP8]:
        for n in (1, 2, 4) if target == "gfx942" else (2,):
            ops = [*casts(t), *(operations(t) if t != "i1" else [])]
            ops = [e for e in ops if all(n * BYTES[u] <= 16 for u in [*e.ins, e.out])]
            c = _llvm.compile(elementwise_kernel(ops, n, target), check=True, line_tables=False)
            assert c.resources["scratch_bytes"] == 0, (t, n)


def mma_rows() -> list[tuple[str, list[str]]]:
    """(name, the 23 further columns) of mma.def."""
    rows = re.findall(r"^TL_MMA\((\w+),([^)]*)\)", (ROOT / "csrc/target/mma.def").read_text(), re.M)
    return [(name, [c.strip().strip('"') for c in rest.split(",")]) for name, rest in rows]


@pytest.mark.parametrize("target", TARGETS)
def test_every_matrix_instruction(target: str) -> None:
    wave = 64 if target in CDNA else 32
    done = 0
    for name, col in mma_rows():
        _m, _n, _k, _blocks, ta, tb, tc, ra, rb, rc = col[:10]
        passes = dict(zip(TARGETS, col[10:15], strict=True))
        body = f"""%t = thread_id : i32
        %a = lds_load %t {{align = 16}} : vec<{4 * min(int(ra), 4) // BYTES[ta.lower()]}x{ta.lower()}>
        %c0 = lds_load %t {{align = 4, imm = 64}} : {tc.lower()}
        %b = lds_load %t {{align = 16, imm = 128}} : vec<{4 * min(int(rb), 4) // BYTES[tb.lower()]}x{tb.lower()}>
        %c = splat %c0 : vec<{4 * int(rc) // BYTES[tc.lower()]}x{tc.lower()}>
        """
        for what, r, t in (("a", ra, ta.lower()), ("b", rb, tb.lower())):
            if int(r) == 8:
                body += f"%{what}8 = concat %{what}, %{what} : vec<{32 // BYTES[t]}x{t}>\n"
        a8, b8 = ("%a8" if int(ra) == 8 else "%a"), ("%b8" if int(rb) == 8 else "%b")
        result = f"vec<{4 * int(rc) // BYTES[tc.lower()]}x{tc.lower()}>"
        body += f"""%d = mma {a8}, {b8}, %c {{intrinsic = "{name.lower()}"}} : {result}
        %x = extract %d {{index = 0}} : {tc.lower()}
        glb_store %p, %x {{align = 8}}"""
        text = kernel(body, "%p : ptr", target, wave, lds_bytes=4096)
        if "SCALE" in col[15]:
            continue  # refused, see test_refuse
        if passes[target] == "0":
            with pytest.raises(Exception, match=rf"{target} (has no|does not have)|mma"):
                _llvm.compile(text)
            continue
        ins = instructions(asm_of(text))
        assert sum(bool(re.match(r"v_(mfma|wmma)_", i)) for i in ins) == 1, name
        done += 1
    assert done >= 5


def load_distances(loop: list[str]) -> list[int]:
    """MFMAs issued between each global load of a loop body and the first wait that covers it (third turn)."""
    out, in_flight, mfma = [], [], 0
    for turn in range(4):
        for i in loop:
            if i.startswith("v_mfma"):
                mfma += 1
            elif i.startswith("buffer_load"):
                in_flight.append((turn, mfma))
            elif m := re.match(r"s_waitcnt.*vmcnt\((\d+)\)", i):
                n = max(len(in_flight) - int(m[1]), 0)
                out += [mfma - at for t, at in in_flight[:n] if t == 2]
                in_flight = in_flight[n:]
    return out


@pytest.mark.parametrize("lines", [True, False])
def test_gemm_loop(lines: bool) -> None:
    """The hand-scheduled GEMM: 55 other instructions for 32 MFMA, no spills, no AGPR moves, loads far ahead."""
    c = _llvm.compile(gemm128(), asm=True, check=True, line_tables=lines)
    r = c.resources
    assert (r["vgpr_spills"], r["sgpr_spills"], r["scratch_bytes"], r["agprs"]) == (0, 0, 0, 0)
    assert r["vgprs"] <= 176 and r["lds_bytes"] == 32768
    text = re.search(r"^(\.LBB\d+_\d+):.*?s_cbranch_\w+ \1$", c.asm, re.M | re.S)
    assert text
    ins = instructions(text.group(0))
    free = ("s_waitcnt", "s_nop", "s_setprio", "v_mfma")
    assert sum(i.startswith("v_mfma") for i in ins) == 32
    assert sum(not i.startswith(free) for i in ins) == 55
    assert not any("accvgpr" in i for i in ins)
    distance = load_distances(ins)
    assert len(distance) == 8 and min(distance) >= 24, distance
