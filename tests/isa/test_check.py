"""The static checks: silent on correct code of a compiler, and they name every planted fault of their classes."""

from __future__ import annotations

import json
import subprocess

import isalib
import pytest

ARCHS = isalib.ARCHS
ORACLE = isalib.oracle()
needs_oracle = pytest.mark.skipif(ORACLE is None, reason="outside test data not found (TILELANG_SHARED)")


def words(*ws: int) -> bytes:
    return b"".join(w.to_bytes(4, "little") for w in ws)


def run(exe, tmp_path, code: bytes, arch: str = "gfx942") -> list[str]:
    path = tmp_path / "code.bin"
    path.write_bytes(code)
    p = subprocess.run([exe, arch, "--check", path], capture_output=True, text=True)
    assert p.returncode in (0, 3), p.stderr
    return p.stdout.splitlines()


@needs_oracle
@pytest.mark.parametrize("arch", ARCHS)
def test_correct_kernels_are_clean(arch, isadump_exe):
    """No report for any correct kernel."""
    paths = sorted((ORACLE / "kernels").glob(f"*.{arch}.hsaco"))
    paths += sorted((ORACLE / "faults").glob(f"*.{arch}/clean.hsaco"))
    assert len(paths) > 40
    bad = {p: isalib.faults(isalib.check(isadump_exe, p)) for p in paths}
    bad = {str(p): f[:2] for p, f in bad.items() if f}
    assert not bad, bad


@needs_oracle
@pytest.mark.parametrize("arch", ARCHS)
def test_planted_faults_are_found(arch, isadump_exe):
    """Every deleted wait and every deleted s_nop is reported by its own check (the data has no s_nop of RDNA)."""
    seen = {"missing_waitcnt": 0} | ({"missing_nop": 0} if arch in isalib.CDNA else {})
    for path in sorted((ORACLE / "faults").glob(f"*.{arch}/*.json")):
        d = json.loads(path.read_text())
        fault = d.get("fault") or {}
        if fault.get("class") not in seen or fault.get("subclass") == "wait_before_barrier":
            continue
        found = isalib.faults(isalib.check(isadump_exe, path.parent / d["hsaco"]))
        kind = {"missing_waitcnt": "wait", "missing_nop": "hazard"}[fault["class"]]
        assert any(f.startswith(kind + ":") for f in found), f"{path}: {found}"
        seen[fault["class"]] += 1
    assert min(seen.values()) > 5, seen


S_ENDPGM = 0xBF810000
LOAD_V1 = (0xDC508000, 0x017F0002)  # global_load_dword v1, v[2:3], off
LOAD_V4 = (0xDC508000, 0x047F0002)  # global_load_dword v4, v[2:3], off
USE_V1 = 0x7E0A0301  # v_mov_b32_e32 v5, v1


def vmcnt(n: int) -> int:
    return 0xBF8C0F70 | (n & 15) | n >> 4 << 14


def test_wait_covers_by_count(isadump_exe, tmp_path):
    """vmcnt(1) covers the older of two loads, not the newer one."""
    ok = words(*LOAD_V1, *LOAD_V4, vmcnt(1), USE_V1, S_ENDPGM)
    assert not isalib.faults(run(isadump_exe, tmp_path, ok))
    bad = words(*LOAD_V4, *LOAD_V1, vmcnt(1), USE_V1, S_ENDPGM)
    found = isalib.faults(run(isadump_exe, tmp_path, bad))
    assert found == [
        "wait: v1 is read before the wait for 0x8: global_load_dword v1, v[2:3], off; at 0x14: v_mov_b32_e32 v5, v1"
    ]


def test_wait_on_one_path_only(isadump_exe, tmp_path):
    """A wait that a branch can jump over does not count."""
    branch_over_wait = 0xBF850001  # s_cbranch_scc1 +1
    code = words(*LOAD_V1, branch_over_wait, vmcnt(0), USE_V1, S_ENDPGM)
    assert len(isalib.faults(run(isadump_exe, tmp_path, code))) == 1


def test_wait_carried_around_a_loop(isadump_exe, tmp_path):
    """A load at the end of a loop body is used at its start."""
    # L: v_mov v5, v1; load v1; s_cbranch_scc1 L; s_endpgm
    code = words(USE_V1, *LOAD_V1, 0xBF85FFFC, S_ENDPGM)
    lines = run(isadump_exe, tmp_path, code)
    assert len(isalib.faults(lines)) == 1
    assert "loop 0x0..0x10 depth 1: 1 valu, 1 load, 1 branch" in lines


def test_loops_by_dominance(isadump_exe, tmp_path):
    """Nested loops count inner bodies; a jump back from cold code behind the end is no loop."""
    v, scc1 = 0x7E000280, 0xBF850000  # v_mov_b32_e32 v0, 0; s_cbranch_scc1
    # outer: v_mov; inner: v_mov v_mov, branch inner; branch outer; s_endpgm
    code = words(v, v, v, scc1 | 0xFFFD, scc1 | 0xFFFB, S_ENDPGM)
    assert [line for line in run(isadump_exe, tmp_path, code) if line.startswith("loop")] == [
        "loop 0x0..0x14 depth 1: 3 valu, 2 branch",
        "loop 0x4..0x10 depth 2: 2 valu, 1 branch",
    ]
    # s_cbranch_scc1 cold; join: v_mov; s_endpgm; cold: v_mov; s_branch join
    code = words(scc1 | 2, v, S_ENDPGM, v, 0xBF820000 | 0xFFFC)
    assert not [line for line in run(isadump_exe, tmp_path, code) if line.startswith("loop")]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_every_allocation_may_fail(arch, isadump_exe, tmp_path):
    """Loops and checks notice each failing allocation and leak nothing."""
    mfma = (0xD3CD0000, 0x04020904)
    path = tmp_path / "code.bin"
    path.write_bytes(words(*LOAD_V1, USE_V1, *mfma, 0x7E140300, 0xBF850000 | 0xFFF9, S_ENDPGM))
    if arch == "gfx1201":  # v_mov_b32 v1, s4; s_mov_b32 s4, 0; v_mov_b32 v3, s4; s_cbranch_scc1; s_endpgm
        path.write_bytes(words(0x7E020204, 0xBE840080, 0x7E060204, 0xBFA2FFFC, 0xBFB00000))
    p = subprocess.run([isadump_exe, arch, "--fail-alloc", path], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    assert int(p.stdout.split()[0]) > 0


def test_scalar_loads_need_a_full_wait(isadump_exe, tmp_path):
    """lgkmcnt(1) tells nothing while a scalar load is outstanding."""
    s_load = (0xC0020102, 0)  # s_load_dword s4, s[4:5], 0x0
    ds_read = (0xD86C0000, 0x01000002)  # ds_read_b32 v1, v2
    lgkm1, lgkm0 = 0xBF8CC17F, 0xBF8CC07F
    assert len(isalib.faults(run(isadump_exe, tmp_path, words(*ds_read, *s_load, lgkm1, USE_V1, S_ENDPGM)))) == 1
    assert not isalib.faults(run(isadump_exe, tmp_path, words(*ds_read, *s_load, lgkm0, USE_V1, S_ENDPGM)))
    assert not isalib.faults(
        run(isadump_exe, tmp_path, words(*ds_read, *ds_read[:1], 0x04000002, lgkm1, USE_V1, S_ENDPGM))
    )


def test_lds_write_before_barrier(isadump_exe, tmp_path):
    """An LDS write must have been waited for at s_barrier."""
    ds_write = (0xD81A0000, 0x00000102)  # ds_write_b32 v2, v1
    barrier = 0xBF8A0000
    assert isalib.faults(run(isadump_exe, tmp_path, words(*ds_write, barrier, S_ENDPGM)))[0].startswith("barrier:")
    assert not isalib.faults(run(isadump_exe, tmp_path, words(*ds_write, 0xBF8CC07F, barrier, S_ENDPGM)))


@pytest.mark.parametrize(("nops", "lacking"), [(5, 1), (6, 0), (0, 6)])
def test_mfma_result_states(nops, lacking, isadump_exe, tmp_path):
    """v_mfma_f32_16x16x16_f16 (4 passes): 7 states before a VALU reads D on gfx942."""
    mfma = (0xD3CD0000, 0x04020904)  # v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[4:5], v[0:3]
    read = 0x7E140300  # v_mov_b32_e32 v10, v0
    found = isalib.faults(run(isadump_exe, tmp_path, words(*mfma, 0xBF800000 | nops, read, S_ENDPGM)))
    assert len(found) == (1 if lacking else 0), found
    if lacking:
        assert f"{lacking} wait state" in found[0]


TLC = isalib.ROOT / "build/tlc"


@pytest.mark.skipif(not TLC.exists(), reason="build/tlc is not built")
@pytest.mark.parametrize("name", ["listing1_f16", "listing1_128_f16", "matmul_17x4096x3_f16", "bias_relu_f16"])
def test_our_compiler_is_clean(name, isadump_exe, tmp_path):
    """What our own compiler emits passes the checks; the K loop is found, has MFMA and touches no scratch."""
    out = tmp_path / "kernel.hsaco"
    source = isalib.ROOT / f"tests/pass/inputs/{name}.tir"
    cmd = [TLC, "--passes", "all", "--target", "gfx942", "--emit", "hsaco", "-o", out, source]
    p = subprocess.run(cmd, capture_output=True, text=True)
    if p.returncode and "codegen" in p.stderr:
        pytest.skip("build/tlc has no code generator")
    assert p.returncode == 0, p.stderr
    lines = isalib.check(isadump_exe, out)
    assert not isalib.faults(lines), lines
    main = [line for line in lines if " main: " in line]
    assert len(main) == 1 and " mfma" in main[0] and "scratch" not in main[0], lines
