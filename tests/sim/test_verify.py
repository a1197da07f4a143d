"""The static verifier: clean code is clean, planted faults are found, descriptors are held against the code."""

from __future__ import annotations

from collections import Counter

import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

ARCHS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
needs_shared = pytest.mark.skipif(not simlib.SHARED.is_dir(), reason=f"{simlib.SHARED} is not there")


def kinds(code: bytes, **kw: int) -> list[str]:
    return [f.kind for f in sim.verify(code, **kw)]


@needs_shared
@pytest.mark.parametrize("arch", ARCHS)
def test_outside_kernels_are_clean(arch):
    """No finding of any kind, warnings among them, in compiled and hand-written kernels that are right."""
    paths = sorted(simlib.SHARED.glob(f"oracle/kernels/*.{arch}.hsaco")) + sorted(
        simlib.SHARED.glob(f"oracle/faults/*.{arch}/clean.hsaco")
    )
    assert len(paths) > 50
    for path in paths:
        found = sim.verify(path)
        assert not found, f"{path.name}: {found[0]}"


@needs_shared
@pytest.mark.parametrize("arch", ARCHS)
def test_planted_faults_are_found(arch):
    """Each deleted wait and s_nop is found. Deleted waits of flat accesses to LDS are not: only a run knows them."""
    seen: Counter[str] = Counter()
    missed = []
    for path in sorted(simlib.SHARED.glob(f"oracle/faults/*.{arch}/*.json")):
        desc = simlib.load_json(path)
        want = {"missing_waitcnt": {"wait", "barrier"}, "missing_nop": {"hazard"}}.get(
            (desc.get("fault") or {}).get("class", "")
        )
        if want is None:
            continue
        seen[desc["fault"]["class"]] += 1
        found = sim.verify(path.parent / desc["hsaco"])
        if not want & {f.kind for f in found}:
            missed.append(f"{path.parent.name}/{path.stem}")
    print(arch, dict(seen))
    assert seen["missing_waitcnt"] >= 36 and (seen["missing_nop"] >= 10 or arch in ("gfx1100", "gfx1201"))
    assert all(m.startswith("flat_lds.") for m in missed), missed


def test_places_and_lines_of_a_finding():
    code = simlib.code_object("s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_mov_b32 s6, s4", (simlib.BUF,))
    (f,) = sim.verify(code)
    assert (f.kind, f.severity, f.kernel, f.pc, f.other_pc) == ("wait", "error", "k", 8, 0)
    assert f.text.startswith("s_mov_b32") and f.other_text.startswith("s_load_dwordx2") and f.line is None
    assert "s4" in f.message and "k" in str(f)


def test_registers_beyond_the_descriptor():
    body = "v_mov_b32 v40, 0\nv_accvgpr_write_b32 a9, v0\ns_mov_b32 s60, 0"
    found = sim.verify(simlib.code_object(body, vgprs=16, sgprs=32, meta_extra={".vgpr_count": 16}))
    assert [f.kind for f in found] == ["registers"] * 3
    assert "v40" in found[0].message and "a9" in found[1].message and "s60" in found[2].message
    assert [f.pc for f in found] == [0, 4, 12]
    assert kinds(simlib.code_object("s_nop 0", vgprs=16)) == ["registers"]  # 32 in the metadata
    fits = body.replace("a9", "a3")  # 44 for v, rounded up to 48: four for a
    assert not kinds(simlib.code_object(fits, vgprs=44, sgprs=64), lds_bytes=0)


def test_lds_and_scratch_against_the_descriptor():
    body = "v_mov_b32 v0, 0\nds_read_b64 v[2:3], v0 offset:1020\ns_waitcnt lgkmcnt(0)"
    assert kinds(simlib.code_object(body, lds=1028)) == []
    assert kinds(simlib.code_object(body, lds=1028), lds_bytes=1028) == []
    assert kinds(simlib.code_object(body, lds=1024), lds_bytes=1024) == ["lds"]
    two = "v_mov_b32 v0, 0\nds_read2st64_b32 v[2:3], v0 offset0:1 offset1:4\ns_waitcnt lgkmcnt(0)"
    assert kinds(simlib.code_object(two, lds=1028), lds_bytes=1028) == []
    assert kinds(simlib.code_object(two, lds=1024), lds_bytes=1024) == ["lds"]
    assert kinds(simlib.code_object(two, lds=2048), lds_bytes=1028) == ["lds"]
    scratch = "scratch_store_dword off, v0, off"
    assert kinds(simlib.code_object(scratch, scratch=16)) == []
    assert kinds(simlib.code_object(scratch)) == ["scratch"]


def test_full_counters_wait_by_themselves():
    """A load with 63 younger ones is complete: the issue of the last one waited for it."""
    load = "".join(f"global_load_dword v{i}, v[0:1], off\n" for i in range(2, 66))
    assert kinds(simlib.code_object(load + "v_mov_b32 v90, v2\ns_waitcnt vmcnt(0)", vgprs=96)) == []
    assert kinds(simlib.code_object(load + "v_mov_b32 v90, v3\ns_waitcnt vmcnt(0)", vgprs=96)) == ["wait"]


@pytest.mark.parametrize(
    "op", ["v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "ds_bpermute_b32 v1, v2, v3"]
)
def test_exec_at_cross_lane_operations(op):
    """EXEC narrowed by a mask and not restored; the same behind the restore, and a move of all ones, are clean."""
    tail = "\ns_waitcnt lgkmcnt(0)"
    narrow = "v_cmp_gt_u32 vcc, 32, v0\ns_nop 1\ns_and_saveexec_b64 s[4:5], vcc\ns_nop 4\n"
    found = sim.verify(simlib.code_object(narrow + op + tail))
    assert [(f.kind, f.severity) for f in found] == [("exec", "warning")], found
    assert found[0].other_text.startswith("s_and_saveexec_b64")
    assert kinds(simlib.code_object(narrow + "s_or_b64 exec, exec, s[4:5]\ns_nop 4\n" + op + tail)) == []
    assert kinds(simlib.code_object(narrow + "s_mov_b64 exec, -1\ns_nop 4\n" + op + tail)) == []
    wrong = narrow + "s_mov_b32 s4, 1\ns_or_b64 exec, exec, s[4:5]\ns_nop 4\n" + op + tail
    assert kinds(simlib.code_object(wrong)) == ["exec"]


def test_loads_to_lds_need_a_wait_somewhere():
    dma = "s_mov_b32 m0, 0\ns_nop 0\nbuffer_load_dword v0, s[4:7], 0 offen lds\n"
    read = "s_barrier\nds_read_b32 v1, v0\ns_waitcnt lgkmcnt(0)"
    assert kinds(simlib.code_object(dma + read, lds=256)) == ["barrier"]
    assert kinds(simlib.code_object(dma + "s_waitcnt vmcnt(0)\n" + read, lds=256)) == []
    assert kinds(simlib.code_object(dma + "s_waitcnt vmcnt(1)\n" + read, lds=256)) == ["barrier"]
    assert (
        kinds(
            simlib.code_object(dma + "buffer_load_dword v3, v0, s[4:7], 0 offen\ns_waitcnt vmcnt(1)\n" + read, lds=256)
        )
        == []
    )


def test_unknown_instructions_and_bad_files():
    found = sim.verify(simlib.code_object(".long 0xbfffffff"))
    assert [f.kind for f in found] == ["illegal"]
    with pytest.raises(ValueError, match="cannot load"):
        sim.verify(b"\x7fELF" + bytes(100))


def test_compiled_kernels_verify(monkeypatch):
    """compiled.verify() on a kernel; TILELANG_VERIFY turns a finding into an internal error."""
    tl = pytest.importorskip("tilelang")
    from tilelang.frontend import build

    n = tl.dim("n")

    @tl.kernel
    def twice(x: tl.Buffer[n, tl.float32], y: tl.Buffer[n, tl.float32]):
        p = tl.program_id(0)
        y[p * 64 : p * 64 + 64] = x[p * 64 : p * 64 + 64] * 2

    c = tl.compile(twice, target="gfx942", dtypes={"x": tl.float32, "y": tl.float32})
    assert c.verify() == [] == c.verify(ignore="m0")
    with pytest.raises(ValueError, match=r"m1.*mfma-valu, .*, m0"):
        c.verify(ignore="m1")
    sound, late = c._built.hsaco, "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]\nv_mov_b32_e32 v20, v8"
    c._built.hsaco = simlib.code_object(late)
    assert [f.rule for f in c.verify()] == [f.rule for f in c.verify(ignore="m0")] == ["mfma-valu"]
    assert c.verify(ignore=["mfma-valu", "m0"]) == []
    c._built.hsaco = sound
    bad = sim.Finding("wait", "error", "twice", "planted", 0, "", None)
    monkeypatch.setattr(build, "verify", lambda built: [bad])
    monkeypatch.setenv("TILELANG_VERIFY", "1")
    with pytest.raises(tl.CompileError, match="internal error.*\n.*planted"):
        tl.compile(twice, target="gfx942", dtypes={"x": tl.float32, "y": tl.float32})
