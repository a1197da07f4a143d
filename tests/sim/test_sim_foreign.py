"""Code objects as other compilers and assembly writers make them: what they do and ours do not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from simlib import Arg, code_object

sim = pytest.importorskip("tilelang.sim")

CLANG = shutil.which("clang-22")
CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]

# rocPRIM's kernels for other chips than the one compiled for have an unreachable body: a function of 0 bytes, whose
# entry is that of the function behind it.
BIG = """
KERNEL big(float *p)
{
    int i = __builtin_amdgcn_workitem_id_x();
    float s = 0;
    for (int k = 0; k < 20; k++)
        s += p[i * 20 + k] * p[i + k];
    p[i] = s;
}
"""
EMPTY = "KERNEL empty(float *p) { __builtin_unreachable(); }\n"


def compiled(tmp: Path, source: str, arch: str, *flags: str) -> bytes:
    """The code object that clang makes of a HIP source without headers."""
    if not CLANG:
        pytest.skip("clang-22 is not installed")
    hip, out = tmp / "k.hip", tmp / "k.co"
    hip.write_text('#define KERNEL extern "C" __attribute__((global)) void\n' + source)
    options = ["--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib"]
    subprocess.run([CLANG, "-x", "hip", *options, "-O2", *flags, str(hip), "-o", str(out)], check=True)
    return out.read_bytes()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("source", [EMPTY + BIG, BIG + EMPTY, EMPTY], ids=["first", "last", "alone"])
def test_kernels_without_instructions(arch: str, source: str, tmp_path: Path) -> None:
    """They load, nothing of the function behind them is found in them, and those beside them run."""
    co = compiled(tmp_path, source, arch)
    assert sim.verify(co) == []
    dev = sim.Device(arch, checks="all")
    kernels = dev.load(co).kernels
    if "big" not in kernels:
        with pytest.raises(ValueError, match="kernel empty has no instructions"):
            kernels["empty"].launch(1, 64, [None])
        return
    p = dev.array(np.ones(64 * 20, np.float32))
    kernels["big"].launch(1, 1, [p])
    assert p.numpy(np.float32, (1280,))[0] == 20


@pytest.mark.parametrize("arch", CHIPS[:3])
def test_vector_registers_behind_the_offset(arch: str) -> None:
    """One register file: code without accumulation registers may use all of it by vector names, as AMD's assembly
    does; beside accumulation registers, or beyond the file, it is a finding."""
    body = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_add_u32_e32 v200, 7, v0
    {mark}
    v_mov_b32_e32 v191, v200
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v191, s[4:5]
    s_endpgm"""
    fits = code_object(body.format(mark=""), (Arg(8),), arch=arch, vgprs=128, agprs=128)
    assert sim.verify(fits) == []
    dev = sim.Device(arch, checks="all")
    out = dev.empty(256)
    dev.load(fits).kernels["k"].launch(1, 64, [out])
    assert np.array_equal(out.numpy(np.int32, (64,)), np.arange(64) + 7)
    shared = code_object(body.format(mark="v_accvgpr_write_b32 a3, v0"), (Arg(8),), arch=arch, vgprs=128, agprs=128)
    small = code_object(body.format(mark=""), (Arg(8),), arch=arch, vgprs=64, agprs=64)
    for bad, count in ((shared, 128), (small, 128)):
        assert [(f.kind, f.message) for f in sim.verify(bad)] == [
            ("registers", f"v200 is used, the descriptor gives {count} vector registers")
        ]


PADDED = """
typedef unsigned u32; typedef unsigned long long u64; typedef unsigned char u8;
struct Big { u32 v[12]; u64 x; u8 c; };
static __attribute__((device, noinline)) Big turn(Big g, u32 k)
{
    Big q = g;
    for (u32 j = 0; j < 12; j++)
        q.v[j] = g.v[(j + k) % 12] + j;
    q.x ^= k;
    q.c += 1;
    return q;
}
KERNEL structs(const u64 *a, u64 *o)
{
    u32 i = __builtin_amdgcn_workitem_id_x();
    Big g;
    for (u32 k = 0; k < 12; k++)
        g.v[k] = a[i] >> k;
    g.x = a[i];
    g.c = a[i];
    Big q = turn(turn(g, a[i] % 12), 5);
    u64 s = q.x + q.c;
    for (u32 k = 0; k < 12; k++)
        s = s * 7 + q.v[k];
    o[i] = s;
}
"""


def padded(a: int) -> int:
    """What the kernel `structs` gives."""
    v, x, c = [(a >> k) & 0xFFFFFFFF for k in range(12)], a, a & 255
    for k in (a % 12, 5):
        v, x, c = [(v[(j + k) % 12] + j) & 0xFFFFFFFF for j in range(12)], x ^ k, (c + 1) & 255
    s = x + c
    for t in v:
        s = s * 7 + t
    return s & (1 << 64) - 1


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("opt", ["-O0", "-O1", "-Os"])
def test_structures_with_padding(arch: str, opt: str, tmp_path: Path) -> None:
    """Compilers copy them in dwords, whose bytes behind the last member nobody wrote."""
    co = compiled(tmp_path, PADDED, arch, opt)
    a = np.random.default_rng(5).integers(0, 1 << 63, 64, dtype=np.uint64)
    for delivery in ("now", "late"):
        dev = sim.Device(arch, checks="all", delivery=delivery, seed=3)
        out = dev.empty(512)
        dev.load(co).kernels["structs"].launch(1, 64, [a, out])
        assert [int(x) for x in out.numpy(np.uint64, (64,))] == [padded(int(x)) for x in a]


WRITES = {  # the byte that was written, what is loaded, what is stored: may it be stored?
    (0, "b32", "b8"): True,
    (0, "b32", "b16"): True,
    (0, "b32", "b32"): False,
    (1, "u16", "b8"): True,
    (1, "b32", "b16"): True,
    (2, "b32", "b8"): False,
    (3, "b32", "b16"): False,
    (0, "u8", "b32"): True,
    (1, "u8", "b8"): False,
}


@pytest.mark.parametrize("place", ["lds", "scratch", "spilled"])
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_dwords_of_which_a_byte_is_defined(arch: str, place: str) -> None:
    """A half of a register is defined where one of its bytes is, also after a copy through memory."""
    lds = {"store": "ds_store_{0} v2, v3 offset:{1}", "load": "ds_load_{0} v4, v2"}
    scratch = {"store": "scratch_store_{0} off, v3, off offset:{1}", "load": "scratch_load_{0} v4, off, off"}
    copy = "s_waitcnt lgkmcnt(0)\nds_store_b32 v2, v4 offset:16\nds_load_b32 v4, v2 offset:16"
    waits = "s_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0)"
    names = {"b8": "byte", "b16": "short", "b32": "dword", "u8": "ubyte", "u16": "ushort"}
    for (byte, load, store), fine in WRITES.items():
        how = scratch if place == "scratch" else lds
        old = arch == "gfx942"

        def size(s: str, how=how, old=old) -> str:
            return names[s] if how is scratch and old else s

        text = f"""
        s_load_{"dwordx2" if old else "b64"} s[4:5], s[0:1], 0x0
        v_mov_b32_e32 v2, 0
        v_mov_b32_e32 v3, 9
        {how["store"].format(size("b8"), byte)}
        {waits}
        {how["load"].format(size(load))}
        {copy if place == "spilled" else ""}
        {waits}
        global_store_{names[store] if old else store} v2, v4, s[4:5]
        s_endpgm"""
        if old:
            text = text.replace("ds_store_", "ds_write_").replace("ds_load_", "ds_read_")
        extra = ".amdhsa_enable_private_segment 1" if old else ""
        co = code_object(text, (Arg(8),), arch=arch, lds=64, scratch=64, extra=extra)
        dev = sim.Device(arch, checks="all")
        out = dev.empty(4)
        kernel = dev.load(co).kernels["k"]
        if fine:
            kernel.launch(1, 1, [out])
            continue
        with pytest.raises(sim.SimulatorFault, match="undefined value of v4 is stored to global memory"):
            kernel.launch(1, 1, [out])


@pytest.mark.parametrize("arch, granule", [("gfx90a", 512), ("gfx942", 512), ("gfx950", 1280), ("gfx1100", 512)])
def test_lds_ends_with_its_granule(arch: str, granule: int) -> None:
    """Code that reads on behind its LDS (LLVM's promoted arrays of odd sizes do) gets what chips give it."""
    store, load, out = ("write", "read", "dword") if arch[3] == "9" else ("store", "load", "b32")
    text = f"""
    s_load_{"dwordx2" if out == "dword" else "b64"} s[4:5], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_add_u32_e32 v2, {{at}}, v1
    v_mov_b32_e32 v3, 77
    ds_{store}_b32 v2, v3
    s_waitcnt lgkmcnt(0)
    ds_{load}_b32 v4, v2
    s_waitcnt lgkmcnt(0)
    global_store_{out} v1, v4, s[4:5]
    s_endpgm"""
    if out != "dword":
        text = text.replace("v_add_u32_e32", "v_add_nc_u32_e32")
    for at, inside in ((granule - 4, True), (granule, False)):
        co = code_object(text.format(at=f"0x{at:x}"), (Arg(8),), arch=arch, lds=16)
        dev = sim.Device(arch, checks="none")
        x = dev.array(np.ones(1, np.int32))
        dev.load(co).kernels["k"].launch(1, 1, [x])
        assert x.numpy(np.int32, (1,))[0] == (77 if inside else 0)
        strict = sim.Device(arch, checks="bounds")
        with pytest.raises(sim.SimulatorFault, match="outside the 16 bytes of the workgroup"):
            strict.load(co).kernels["k"].launch(1, 1, [strict.empty(4)])


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
def test_loads_of_halves_in_late_delivery(arch: str, tmp_path: Path) -> None:
    """Two loads into the halves of one register keep each other's, whatever the destination holds until then."""
    source = """
    KERNEL halves(const unsigned short *a, unsigned *o)
    {
        int i = __builtin_amdgcn_workitem_id_x();
        unsigned short t[8];
        for (int k = 0; k < 8; k++)
            t[k] = a[8 * i + k] + k;
        unsigned s = 0;
        for (int k = 0; k < 8; k++) {
            int j = t[k] % 8;
            unsigned short x = t[k];
            t[k] = t[j];
            t[j] = x + k;
        }
        for (int k = 0; k < 8; k += 2)
            s = s * 31 + (t[k] | (unsigned)t[k + 1] << 16);
        o[i] = s + (a[8 * i + 1] | (unsigned)a[8 * i + 6] << 16);
    }
    """
    co = compiled(tmp_path, source, arch, "-mllvm", "-disable-promote-alloca-to-vector", "-O3")
    a = np.random.default_rng(6).integers(0, 1 << 16, 512, dtype=np.uint16)
    want = []
    for v in a.reshape(64, 8).astype(int):
        t = [(int(x) + k) & 0xFFFF for k, x in enumerate(v)]
        for k in range(8):
            j, x = t[k] % 8, t[k]
            t[k] = t[j]
            t[j] = (x + k) & 0xFFFF
        s = 0
        for k in range(0, 8, 2):
            s = s * 31 + (t[k] | t[k + 1] << 16)
        want.append((s + (int(v[1]) | int(v[6]) << 16)) & 0xFFFFFFFF)
    for seed in range(8):
        dev = sim.Device(arch, checks="all", delivery="late", seed=seed)
        module, out = dev.load(co), dev.empty(256)
        module.kernels["halves"].launch(1, 64, [a, out])
        assert [int(x) for x in out.numpy(np.uint32, (64,))] == want, seed
    if arch == "gfx1100":
        assert any("_d16" in str(row) for row in module.kernels["halves"].disassembly())
