"""Tables of csrc/target: element types, chips, matrix instructions, occupancy."""

import ctypes as C
import re
import shutil
import subprocess

import layoutlib as tl
import ml_dtypes
import numpy as np
import pytest


def elems() -> list[int]:
    return list(range(1, 18))


def test_elem_names_and_dlpack_are_one_to_one() -> None:
    lib = tl.lib()
    assert lib.tl_elem_info(18).contents.name == b"none"
    for e in elems():
        info = lib.tl_elem_info(e).contents
        assert lib.tl_elem_by_name(info.name, C.c_size_t(len(info.name))) == e
        assert lib.tl_elem_by_numpy(info.numpy, C.c_size_t(len(info.numpy))) == e
        assert lib.tl_elem_by_dlpack(info.dl_code, info.dl_bits) == e
    assert lib.tl_elem_by_name(b"f16x", C.c_size_t(4)) == 0
    assert lib.tl_elem_by_dlpack(2, 128) == 0


def test_elem_sizes_match_numpy() -> None:
    for e in elems():
        info = tl.lib().tl_elem_info(e).contents
        name = info.numpy.decode()
        dtype = np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)
        assert dtype.itemsize == info.bytes, name
        assert info.bits == (1 if name == "bool" else 8 * dtype.itemsize)
        if info.kind == 4:
            f = ml_dtypes.finfo(dtype)
            assert info.exp_bits + info.man_bits + 1 == info.bits
            assert info.man_bits == f.nmant, name
            assert 1 - info.bias == f.minexp, name  # smallest normal exponent
            has_inf = bool(np.isinf(np.array(np.inf, dtype=np.float64).astype(dtype).astype(np.float64)))
            assert has_inf == (info.fclass == 1), name


def test_dlpack_codes_match_numpy_export() -> None:
    for e in elems():
        info = tl.lib().tl_elem_info(e).contents
        if info.dl_code <= 2 or info.dl_code == 6:
            dtype = np.dtype(info.numpy.decode())
            kind = {"b": 6, "i": 0, "u": 1, "f": 2}[dtype.kind]
            assert (kind, dtype.itemsize * 8) == (info.dl_code, info.dl_bits)


def test_target_names() -> None:
    lib = tl.lib()
    names = lib.tl_target_names().decode().split(", ")
    assert names == ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
    for n in names:
        for spelled in (n, f"{n}:sramecc+:xnack-", f"amdgcn-amd-amdhsa--{n}:xnack-", f"amdgcn-amd-amdhsa--{n}"):
            assert lib.tl_target_by_name(spelled.encode()).contents.name.decode() == n
    for bad in ("", "gfx9", "gfx9421", "gfx942-", "sm_90", ":gfx942", "gfx942 "):
        assert not lib.tl_target_by_name(bad.encode()), bad
    assert not lib.tl_target_by_name(None)


# VGPR counts and the waves a SIMD holds, as the compiler reports them.
CDNA = {64: 8, 65: 7, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 257: 1, 512: 1}
RDNA = {96: 16, 120: 12, 144: 10, 168: 9, 192: 8, 216: 7, 240: 6, 256: 5}


@pytest.mark.parametrize(
    ("chip", "rows"), [("gfx90a", CDNA), ("gfx942", CDNA), ("gfx950", CDNA), ("gfx1100", RDNA), ("gfx1201", RDNA)]
)
def test_register_occupancy(chip: str, rows: dict[int, int]) -> None:
    t = tl.target(chip)
    for regs, waves in rows.items():
        vgprs = min(regs, 256)
        o = tl.lib().tl_occupancy(t, vgprs, regs - vgprs, 0, 1)
        assert o.reg_waves == waves, regs
        assert o.waves_per_simd == waves
        assert tl.lib().tl_limit_name(o.limit) == (
            b"wave slots" if waves == t.contents.max_waves_simd else b"registers"
        )
        budget = tl.lib().tl_target_reg_budget(t, waves)
        assert regs <= budget
        if waves < t.contents.max_waves_simd:
            assert regs > tl.lib().tl_target_reg_budget(t, waves + 1)


def test_occupancy_limits() -> None:
    lib, t = tl.lib(), tl.target("gfx942")
    o = lib.tl_occupancy(t, 128, 0, 32768, 4)  # two workgroups of 32 KiB fill the LDS; registers would allow four
    assert (o.workgroups, o.waves_per_simd, lib.tl_limit_name(o.limit)) == (2, 2, b"LDS")
    o = lib.tl_occupancy(t, 256, 0, 32768, 4)
    assert (o.workgroups, lib.tl_limit_name(o.limit)) == (2, b"registers")
    o = lib.tl_occupancy(t, 32, 0, 36864, 4)  # padded 36 KiB: one only
    assert (o.workgroups, lib.tl_limit_name(o.limit)) == (1, b"LDS")
    o = lib.tl_occupancy(t, 32, 0, 512, 1)
    assert (o.workgroups, o.waves_per_simd) == (32, 8)
    o = lib.tl_occupancy(t, 24, 0, 512, 2)
    assert (o.workgroups, o.waves_per_simd) == (16, 8)
    for args in ((257, 0, 0, 1), (32, 0, 65537, 1), (32, 0, 0, 17), (256, 256, 0, 8), (32, 0, 0xFFFFFFFF, 1)):
        o = lib.tl_occupancy(t, *[C.c_uint32(a) for a in args])
        assert (o.workgroups, lib.tl_limit_name(o.limit)) == (0, b"does not fit"), args
    # 100 VGPRs and 28 AGPRs: 100 + 28 = 128 registers; 98 + 30: AGPRs start at 100, 130 -> 136 allocated
    assert lib.tl_occupancy(t, 100, 28, 0, 4).vgprs_allocated == 128
    assert lib.tl_occupancy(t, 98, 30, 0, 4).vgprs_allocated == 136
    big = tl.target("gfx950")
    assert lib.tl_occupancy(big, 64, 0, 40000, 4).workgroups == 4
    assert lib.tl_occupancy(big, 64, 0, 163840, 4).workgroups == 1


def test_mma_register_counts_hold_the_matrices() -> None:
    """A, B and C of every row fill their registers exactly (gfx1100 holds A, B twice and 16-bit C in halves)."""
    for m in tl.all_mmas():
        lanes = 64 if m.form <= 2 else 32
        gfx11 = m.passes[3] != 0
        bits = {x: tl.lib().tl_elem_info(getattr(m, x)).contents.bits for x in "abc"}
        assert m.a_regs * 32 * lanes == m.blocks * m.m * m.k * bits["a"] * (2 if gfx11 else 1), m.name
        assert m.b_regs * 32 * lanes == m.blocks * m.n * m.k * bits["b"] * (2 if gfx11 else 1), m.name
        half = 2 if gfx11 and bits["c"] == 16 else 1
        assert m.c_regs * 32 * lanes == m.blocks * m.m * m.n * bits["c"] * half, m.name
        assert any(m.passes), m.name


def test_mma_lookup() -> None:
    lib = tl.lib()

    def found(chip: str, a: str, c: str, m: int = 0, n: int = 0, k: int = 0) -> str | None:
        r = lib.tl_mma_find(tl.target(chip), tl.elem(a), tl.elem(a), tl.elem(c), m, n, k)
        return r.contents.name.decode() if r else None

    assert found("gfx942", "f16", "f32") == "mfma_32x32x8_f16"
    assert found("gfx942", "f16", "f32", 16, 16, 16) == "mfma_16x16x16_f16"
    assert found("gfx950", "bf16", "f32") == "mfma_32x32x16_bf16"
    assert found("gfx950", "bf16", "f32", 32, 32, 8) == "mfma_32x32x8_bf16"
    assert found("gfx90a", "f16", "f32", 32, 32, 16) is None
    assert found("gfx942", "f32", "f32") == "mfma_32x32x2_f32"
    assert found("gfx942", "f64", "f64") == "mfma_16x16x4_f64"
    assert found("gfx942", "f8e4m3fnuz", "f32", 16, 16) == "mfma_16x16x32_f8e4m3fnuz"
    assert found("gfx942", "f8e4m3fn", "f32") is None
    assert found("gfx950", "f8e4m3fnuz", "f32") is None
    assert found("gfx90a", "i8", "i32") == "mfma_32x32x8_i8"
    assert found("gfx1100", "f16", "f32") == "wmma11_16x16x16_f16"
    assert found("gfx1201", "f8e5m2", "f32") == "wmma12_16x16x16_f8e5m2"
    assert found("gfx1100", "f32", "f32") is None
    for chip in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"):
        t, seen, last, m = tl.target(chip), set(), 1 << 62, None
        while m := lib.tl_mma_next(t, 0, 0, 0, m):
            rate = lib.tl_mma_macs_per_cycle(m, t)
            assert rate <= last and m.contents.id not in seen
            last = rate
            seen.add(m.contents.id)
        want = {m.id for m in tl.all_mmas() if m.passes[t.contents.id] and m.blocks == 1 and m.form != 1}
        assert seen == want


def test_rates() -> None:
    """f16: 256 multiply-adds a cycle and matrix core on gfx942 (1307 TFLOP/s), 512 on gfx950, 128 on gfx90a."""
    lib = tl.lib()
    for name, chip, macs in (
        ("mfma_32x32x8_f16", "gfx942", 256),
        ("mfma_16x16x16_f16", "gfx942", 256),
        ("mfma_32x32x8_f16", "gfx90a", 128),
        ("mfma_32x32x16_f16", "gfx950", 512),
        ("mfma_32x32x2_f32", "gfx942", 32),
        ("mfma_32x32x16_f8e4m3fnuz", "gfx942", 512),
        ("mfma_32x32x8_f16", "gfx1100", 0),
    ):
        assert lib.tl_mma_macs_per_cycle(tl.mma(name), tl.target(chip)) == macs, name


LLC = shutil.which("llc-22") or shutil.which("llc")
LLVM_TYPE = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "i8": "i8"}


def llvm_type(t: str) -> str:
    m = re.fullmatch(r"(?:v(\d+))?(bf16|f16|f32|f64|i\d+)", t)
    base = LLVM_TYPE.get(m[2], m[2])
    return f"<{m[1]} x {base}>" if m[1] else base


@pytest.mark.skipif(LLC is None, reason="llc (LLVM 22) not installed")
@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_intrinsics_select(chip: str) -> None:
    """Every row of a chip compiles through LLVM with the table's operand types, to an instruction of that shape."""
    t = tl.target(chip).contents
    rows = [m for m in tl.all_mmas() if m.passes[t.id]]
    lines, decls = [], set()
    for i, m in enumerate(rows):
        ab, c, name = llvm_type(m.ab_type.decode()), llvm_type(m.c_type.decode()), m.intrinsic.decode()
        form = m.form
        if form in (0, 1):
            sig, args = f"{ab}, {ab}, {c}, i32, i32, i32", f"{ab} %a, {ab} %b, {c} %c, i32 0, i32 0, i32 0"
        elif form == 2:
            name += f".{m.ab_type.decode()}.{m.ab_type.decode()}"
            sig = f"{ab}, {ab}, {c}, i32, i32, i32, i32, i32, i32"
            args = f"{ab} %a, {ab} %b, {c} %c, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0"
        else:
            name += f".{m.c_type.decode()}.{m.ab_type.decode()}"
            if form == 3:
                sig, args = f"{ab}, {ab}, {c}", f"{ab} %a, {ab} %b, {c} %c"
            elif form == 4:
                sig, args = f"{ab}, {ab}, {c}, i1", f"{ab} %a, {ab} %b, {c} %c, i1 false"
            else:
                sig = f"i1, {ab}, i1, {ab}, {c}, i1"
                args = f"i1 true, {ab} %a, i1 true, {ab} %b, {c} %c, i1 false"
        decls.add(f"declare {c} @{name}({sig})")
        lines.append(
            f"define amdgpu_kernel void @k{i}({ab} %a, {ab} %b, {c} %c, ptr addrspace(1) %p) {{\n"
            f"  %d = call {c} @{name}({args})\n  store {c} %d, ptr addrspace(1) %p\n  ret void\n}}"
        )
    ir = "\n".join(sorted(decls) + lines)
    run = subprocess.run(
        [LLC, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-O0", "-o", "-"], input=ir, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[:2000]
    bodies = re.split(r"^k\d+:", run.stdout, flags=re.M)[1:]
    assert len(bodies) == len(rows)
    for m, body in zip(rows, bodies, strict=True):
        shape = f"{m.m}x{m.n}x{m.k}"
        assert re.search(rf"v_(mfma|wmma)_\w*{shape}", body), (m.name, body[:300])
