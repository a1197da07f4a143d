"""Checks of memory and matrix instructions of gfx1100 and gfx1201: undefined addresses, data and bytes, LDS races, what
half a register means, lanes of matrices; the correct twins are clean."""

from __future__ import annotations

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from test_isa_memory_rdna import descriptor, wait  # noqa: E402

from tilelang.errors import SimulatorFault  # noqa: E402

CHIPS = [(a, w) for a in ("gfx1100", "gfx1201") for w in (32, 64)]
both = pytest.mark.parametrize(("arch", "wave"), CHIPS, ids=[f"{a}-{w}" for a, w in CHIPS])


def run(arch: str, wave: int, body: str, waves: int = 1, **kw: int) -> list:
    """The reports of a kernel with s[4:5] = a defined buffer, s[6:7] = an output, v0 = lane, v1 = 4 * lane."""
    head = "s_load_b128 s[4:7], s[0:1], 0x0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\n" + wait(arch)
    hsaco = simlib.code_object(
        head + body + wait(arch),
        (simlib.BUF,) * 2,
        arch=arch,
        wave=wave,
        vgprs=96,
        sgprs=64,
        lds=kw.pop("lds", 4096),
        **kw,
    )
    dev = sim.Device(arch, checks="all", threads=1)
    data, out = (dev.empty(65536) for _ in range(2))
    data.write(np.zeros(65536, np.uint8))
    try:
        dev.load(hsaco).kernels["k"].launch(1, wave * waves, [data, out])
    except SimulatorFault as e:
        return e.reports
    return []


def named(reports: list, check: str, text: str) -> bool:
    assert reports, "nothing is reported"
    assert all(r.check == check for r in reports), [str(r.message) for r in reports]
    return any(text in r.message for r in reports)


@both
def test_undefined_addresses(arch, wave):
    raw = descriptor(8, 4, 4096, 0x31016000)
    tbuf = " format:[BUF_FMT_32_FLOAT]"
    cases = [
        "global_load_b32 v10, v20, s[4:5]\n",
        "global_store_b32 v20, v1, s[6:7]\n",
        "global_load_b32 v10, v1, s[30:31]\n",
        "ds_load_b32 v10, v20\n",
        "ds_store_b32 v20, v1\n",
        "ds_add_u32 v20, v1\n",
        "ds_bpermute_b32 v10, v20, v1\n",
        raw + "buffer_load_b32 v10, v20, s[8:11], null offen\n",
        raw + "buffer_store_b32 v1, v20, s[8:11], null offen\n",
        raw + f"tbuffer_store_format_x v1, v20, s[8:11], null{tbuf} offen\n",
        raw + "buffer_atomic_add_u32 v1, v20, s[8:11], null offen\n",
        "global_load_addtid_b32 v10, s[30:31]\n",
        "ds_append v10\n",
        "ds_load_addtid_b32 v10\n",
        ("lds" if arch == "gfx1100" else "ds") + "_direct_load v10\n",
    ]
    for text in cases:
        reports = run(arch, wave, text)  # the access itself may be a fault as well
        assert any(r.check == "init" and "an address" in r.message for r in reports), text


@both
def test_undefined_data(arch, wave):
    """Undefined data may go to LDS and scratch, not to global memory; what comes back is undefined again."""
    raw = descriptor(8, 6, 4096, 0x31016000)
    stores = [
        "global_store_b32 v1, v20, s[6:7]\n",
        "global_store_b128 v1, v[20:23], s[6:7]\n",
        "global_store_addtid_b32 v20, s[6:7]\n",
        raw + "buffer_store_b64 v[20:21], v1, s[8:11], null offen\n",
        raw + "buffer_store_format_x v20, v1, s[8:11], null offen\n",
        "global_atomic_swap_b32 v1, v20, s[4:5]\n",
        "ds_store_b32 v1, v20\n"
        + wait(arch)
        + "ds_load_b32 v10, v1\n"
        + wait(arch)
        + "global_store_b32 v1, v10, s[6:7]\n",
        "ds_load_b32 v10, v1\n" + wait(arch) + "global_store_b32 v1, v10, s[6:7]\n",
        "global_load_b32 v10, v1, s[6:7]\n" + wait(arch) + "global_store_b32 v1, v10, s[6:7]\n",
    ]
    for text in stores:
        assert named(run(arch, wave, text), "init", "stored to global memory"), text
    quiet = [
        "ds_store_b32 v1, v20\n",
        "s_mov_b32 m0, 64\nds_store_addtid_b32 v20\n",
        "scratch_store_b32 off, v20, off\n",
        "ds_load_b32 v10, v1\n",
        "ds_swizzle_b32 v10, v20 offset:0x8000\n",
    ]
    for text in quiet:
        assert not run(arch, wave, text, scratch=64), text


@both
def test_halves(arch, wave):
    """A load of half a register leaves the other half; both halves make a defined register."""
    lo, hi = "global_load_d16_b16 v10, v1, s[4:5]\n", "global_load_d16_hi_b16 v10, v1, s[4:5] offset:2\n"
    store = "global_store_b32 v1, v10, s[6:7]\n"
    assert not run(arch, wave, lo + wait(arch) + hi + wait(arch) + store)
    assert not run(arch, wave, lo + wait(arch) + "global_store_b16 v1, v10, s[6:7]\n")
    assert not run(arch, wave, hi + wait(arch) + "global_store_d16_hi_b16 v1, v10, s[6:7]\n")
    loaded = "ds_store_b32 v1, v1\n" + wait(arch) + "ds_load_u16_d16 v10, v1\nds_load_u16_d16_hi v10, v1 offset:2\n"
    assert not run(arch, wave, loaded + wait(arch) + store)


@both
def test_waits(arch, wave):
    """Use before the wait that covers it."""
    name = ("lds" if arch == "gfx1100" else "ds") + "_direct_load"
    both_words = "ds_store_b64 v1, v[0:1]\n" + wait(arch)
    exp = "s_waitcnt expcnt(0)\n" if arch == "gfx1100" else "s_wait_expcnt 0x0\n"
    cases = {
        "global_load_b32 v10, v1, s[4:5]\n": wait(arch),
        "ds_store_b32 v1, v1\n" + wait(arch) + "ds_load_b32 v10, v1\n": wait(arch),
        "global_atomic_add_u32 v10, v1, v1, s[4:5] "
        + ("glc\n" if arch == "gfx1100" else "th:TH_ATOMIC_RETURN\n"): wait(arch),
        both_words + f"s_mov_b32 m0, 0x20000\n{name} v10\n": exp,
    }
    for text, w in cases.items():
        use = "v_add_nc_u32 v11, v10, v10\n"
        assert named(run(arch, wave, text + use), "wait", "v10 is read"), text
        assert not run(arch, wave, text + w + use), text


@both
def test_lds_races(arch, wave):
    """Two waves on one byte without a barrier, also by the new names; with the barrier: clean."""
    barrier = "s_barrier\n" if arch == "gfx1100" else "s_barrier_signal -1\ns_barrier_wait -1\n"
    w = wait(arch)
    mine = f"v_lshlrev_b32 v2, 2, v0\nv_and_b32 v3, {4 * wave - 1}, v2\n"  # v3: the same bytes for each wave
    for store, load in (
        ("ds_store_b32 v2, v0\n", "ds_load_b32 v10, v3\n"),
        ("ds_store_2addr_b32 v2, v0, v0 offset0:0 offset1:0\n", "ds_load_2addr_b32 v[10:11], v3 offset1:0\n"),
        ("ds_storexchg_rtn_b32 v12, v2, v0\n", "ds_load_u8 v10, v3\n"),
    ):
        init = "ds_store_b32 v2, v0\n" + w + barrier
        first = mine + init + store + w
        assert named(run(arch, wave, first + load, 2, lds=1024), "race", "races with"), store
        assert not run(arch, wave, first + barrier + load, 2, lds=1024), store
    adds = mine + "ds_store_b32 v2, v0\n" + w + barrier + "ds_add_u32 v3, v0\n"
    assert not run(arch, wave, adds, 2, lds=1024)  # atomics do not race with each other


def matrix(arch: str, wave: int) -> tuple[str, int, int]:
    """(instruction v[40:..] = A v[8:..] * B v[16:..] + 0, registers of A, of D)."""
    na = 8 if arch == "gfx1100" else 4 // (wave // 32)
    nd = 8 // (wave // 32)
    text = f"v_wmma_f32_16x16x16_f16 v[40:{39 + nd}], v[8:{7 + na}], v[16:{15 + na}], 0\n"
    return text, na, nd


@both
def test_matrices(arch, wave):
    """An undefined row of A makes that row of D undefined, an undefined column of B that column; nothing else."""
    text, na, nd = matrix(arch, wave)
    zero = "".join(f"v_mov_b32 v{8 + k}, 0\nv_mov_b32 v{16 + k}, 0\n" for k in range(na))
    nops = "v_nop\n" * 8
    every = "".join(f"global_store_b32 v1, v{40 + k}, s[6:7] offset:{512 * k}\n" for k in range(nd))
    assert not run(arch, wave, zero + text + nops + every)
    # lane 3 of one register of A (B) stays undefined: it comes from a register that only the others write
    mask = 0xFFFFFFF7
    exec_lo = "exec_lo" if wave == 32 else "exec"
    full = "-1"
    for reg in (8, 16):
        some = zero.replace(f"v_mov_b32 v{reg}, 0\n", "")
        part = f"s_mov_b{wave} {exec_lo}, 0x{mask:x}\nv_mov_b32 v{reg}, 0\ns_mov_b{wave} {exec_lo}, {full}\n"
        if wave == 64:
            part = part.replace("s_mov_b64 exec, 0x", "s_mov_b32 exec_lo, 0x")
        # gfx11 must not forward from both sides of a write of EXEC in waves of 64: vector instructions between
        reports = run(arch, wave, some + part + nops + text + nops + every)
        assert named(reports, "init", "stored to global memory")
        lanes = {lane for r in reports for lane in r.lanes}
        if reg == 16:
            assert {lane % 16 for lane in lanes} == {3}, lanes
        else:
            assert len({lane // 16 for lane in lanes}) == 1 and len(lanes) == 16, lanes


@pytest.mark.parametrize("wave", [32, 64])
def test_transposing_load_of_undefined_bytes(wave):
    w = wait("gfx1201")
    n = 4 // (wave // 32)
    text = f"v_lshlrev_b32 v2, 4, v0\nglobal_load_tr_b128 v[8:{7 + n}], v2, s[{{}}]\n" + w
    store = "".join(f"global_store_b32 v1, v{8 + k}, s[6:7] offset:{512 * k}\n" for k in range(n))
    assert not run("gfx1201", wave, text.format("4:5") + store)
    assert named(run("gfx1201", wave, text.format("6:7") + store), "init", "stored to global memory")
    # of 64 lanes the upper ones give no address
    if wave == 64:
        part = (
            text.format("4:5")
            .replace("v_lshlrev", "s_mov_b32 exec_hi, 0\nv_lshlrev")
            .replace("global_load_tr", "s_mov_b32 exec_hi, -1\nglobal_load_tr")
        )
        assert not run("gfx1201", wave, part + store)


@pytest.mark.parametrize("wave", [32, 64])
def test_blocks(wave):
    """Only the registers that M0 names are read."""
    w = wait("gfx1201")
    text = "v_lshlrev_b32 v2, 7, v0\ns_mov_b32 m0, 5\nv_mov_b32 v10, 0\nv_mov_b32 v12, 0\n"
    assert not run("gfx1201", wave, text + "global_store_block v2, v[10:41], s[6:7]\n" + w)
    assert named(
        run("gfx1201", wave, text + "s_mov_b32 m0, 7\nglobal_store_block v2, v[10:41], s[6:7]\n" + w), "init", "v11"
    )


@both
def test_global_bounds(arch, wave):
    """A lane past the end of a buffer, by every family; the range rule's own drops are no report."""
    far = "v_add_nc_u32 v1, 0x10000, v1\n"
    cases = ["global_load_b32 v10, v1, s[4:5]\n", "global_store_b64 v1, v[0:1], s[6:7]\n",
             "global_atomic_add_u32 v1, v0, s[4:5]\n", descriptor(8, 4, 1 << 30, 0x31016000)
             + "buffer_load_b128 v[10:13], v1, s[8:11], null offen\n"]  # fmt: skip
    for text in cases:
        assert named(run(arch, wave, far + text), "bounds", "bytes"), text
    inside = descriptor(8, 4, 65536, 0x31016000) + "buffer_load_b32 v10, v1, s[8:11], null offen\n"
    assert not run(arch, wave, far + inside)
    over = f"v_mov_b32 v2, {4096 - 4}\nv_add_nc_u32 v2, v2, v1\nds_load_b32 v10, v2\n"
    assert named(run(arch, wave, over), "bounds", "outside the 4096 bytes")
    odd = "v_or_b32 v2, 1, v1\nds_add_u32 v2, v0\n"
    assert named(run(arch, wave, odd), "bounds", "not aligned")
