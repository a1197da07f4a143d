"""The trace record: which instructions ran, their addresses, bank conflicts, cache lines and register values."""

from __future__ import annotations

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

BODY = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
v_lshlrev_b32 v2, 7, v0
s_waitcnt lgkmcnt(0)
global_load_dword v3, v1, s[4:5] offset:8
v_cmp_gt_u32 vcc, 4, v0
ds_write_b32 v2, v0
s_waitcnt vmcnt(0) lgkmcnt(0)
s_and_saveexec_b64 s[6:7], vcc
ds_read2_b32 v[4:5], v2 offset0:0 offset1:1
s_waitcnt lgkmcnt(0)
global_store_dword v1, v3, s[4:5] offset:512
s_mov_b64 exec, s[6:7]
s_mov_b32 s2, 2
loop:
s_sub_u32 s2, s2, 1
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 loop
"""


@pytest.fixture(scope="module")
def kernel():
    dev = sim.Device("gfx942", checks="none", threads=1)
    hsaco = simlib.code_object(BODY, (simlib.BUF,), lds=64 * 128 + 8)
    return dev, dev.load(hsaco).kernels["k"]


@pytest.mark.parametrize("checks", ["none", "all"])
def test_rows(checks, tmp_path):
    dev = sim.Device("gfx942", checks=[] if checks == "none" else ["bounds", "wait", "race"], threads=2)
    k = dev.load(simlib.code_object(BODY, (simlib.BUF,), lds=64 * 128 + 8)).kernels["k"]
    mem = dev.array(np.arange(256, dtype=np.int32))
    stats = k.launch(2, 64, [mem], trace=tmp_path / "t.trace") if checks == "none" else None
    stats = stats or k.launch(1, 64, [mem], trace=[0])
    t = stats["trace"]
    assert (t.arch, t.kernel, t.wave_size, t.skipped) == ("gfx942", "k", 64, 0)
    assert [(w.workgroup, w.wave) for w in t.waves] == [((i, 0, 0), 0) for i in range(2 if checks == "none" else 1)]
    w = t.wave(0)
    texts = {pc: text for pc, text, _ in k.disassembly()}
    ran = [texts[int(pc)].split()[0] for pc in w.rows["pc"]]
    assert sum(len(x.rows) for x in t.waves) == stats["instructions"]
    assert ran.count("s_cbranch_scc1") == 2 and ran[-1] == "s_endpgm"
    row = {name: i for i, name in reversed(list(enumerate(ran)))}
    # scalar load: 8 bytes in one line
    i = row["s_load_dwordx2"]
    assert w.rows[i]["kind"] == 4 and w.rows[i]["bytes"] == 8 and w.rows[i]["lines"] == 1
    # global load: 64 dwords from byte 8 of the array: three lines of 128 bytes
    i = row["global_load_dword"]
    ((lanes, addr),) = w.addresses(i)
    assert (addr == mem.address + 8 + 4 * np.arange(64)).all() and (lanes == np.arange(64)).all()
    want = len({int(a) // 128 for a in addr} | {(int(a) + 3) // 128 for a in addr})
    assert (w.rows[i]["kind"], w.rows[i]["bytes"], w.rows[i]["exec_count"]) == (1, 4, 64)
    assert w.rows[i]["lines"] == want
    # every lane's write goes to the same bank
    i = row["ds_write_b32"]
    assert w.rows[i]["kind"] == 2 and w.rows[i]["conflict_cycles"] == stats_conflicts(w)
    assert (w.addresses(i)[0][1] == 128 * np.arange(64)).all()
    # four lanes on
    i = row["ds_read2_b32"]
    first, second = w.addresses(i)
    assert (
        list(first[0]) == [0, 1, 2, 3]
        and list(first[1]) == [0, 128, 256, 384]
        and list(second[1]) == [4, 132, 260, 388]
    )
    assert w.rows[i]["exec_count"] == 4 and w.rows[row["s_mov_b64"]]["exec_count"] == 4
    assert len(w.addresses(row["global_store_dword"])[0][0]) == 4
    assert not w.addresses(row["s_waitcnt"]) and not w.registers(i)
    if checks == "none":
        again = sim.read_trace(tmp_path / "t.trace")
        for a, b in zip(t.waves, again.waves, strict=True):
            assert (a.rows == b.rows).all() and (a.data == b.data).all()
        assert stats["lds_conflict_cycles"] == sum(int(x.rows["conflict_cycles"].sum()) for x in t.waves)


def stats_conflicts(w):
    """Conflict cycles of 64 dword writes with a stride of 128 bytes: one bank, two phases of 32 lanes."""
    return 2 * 31


def test_values_and_choice(kernel):
    dev, k = kernel
    mem = dev.array(np.arange(256, dtype=np.int32))
    t = k.launch(4, 64, [mem], trace=sim.TraceOptions(workgroups=[(2, 0, 0)], wave=0, values=True))["trace"]
    (w,) = t.waves
    assert w.workgroup == (2, 0, 0) and w.linear == 2
    texts = {pc: text for pc, text, _ in k.disassembly()}
    ran = [texts[int(pc)] for pc in w.rows["pc"]]
    i = next(i for i, x in enumerate(ran) if x.startswith("v_lshlrev_b32_e32 v1"))
    assert (w.registers(i)["v1"] == 4 * np.arange(64)).all()
    i = next(i for i, x in enumerate(ran) if x.startswith("global_load_dword"))
    assert (w.registers(i)["v3"] == 2 + np.arange(64)).all() and len(w.addresses(i)) == 1
    i = next(i for i, x in enumerate(ran) if x.startswith("v_cmp_gt_u32"))
    assert w.registers(i) == {"s106": 15, "s107": 0}
    with pytest.raises(ValueError, match="no workgroup"):
        k.launch(4, 64, [mem], trace=[4])
    with pytest.raises(KeyError):
        t.wave(0)


def test_limits_and_bad_files(kernel):
    dev, k = kernel
    mem = dev.array(np.arange(256, dtype=np.int32))
    t = k.launch(8, 64, [mem], trace=sim.TraceOptions(max_bytes=1))["trace"]
    assert len(t.waves) == 1 and t.skipped == 7
    for bad in (b"", b"x" * 1000):
        with pytest.raises(ValueError, match="no trace record"):
            sim.read_trace(bad)


def test_command_line(tmp_path, capsys):
    cli = pytest.importorskip("tilelang.sim.__main__")
    path = tmp_path / "k.hsaco"
    path.write_bytes(simlib.code_object(BODY, (simlib.BUF,), lds=64 * 128 + 8))
    run = [str(path), "--grid", "4", "--block", "64", "--arg", "inout:i32:256:arange"]
    assert cli.main([*run, "--trace", "1:0", "--save", str(tmp_path / "o.npy")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("workgroup (1, 0, 0), wave 0: ")
    (load,) = [x for x in lines if "global_load_dword" in x]
    assert "64 lanes" in load and "v3=[00000002 00000003 00000004 00000005 ..]" in load
    assert any("ds_write_b32" in x and "62 conflict cycles" in x for x in lines)
    assert cli.main([str(path), "--verify"]) == 0
    assert capsys.readouterr().out == "no findings\n"
    assert cli.main([*run, "--trace", "zero"]) == 2
    assert "'zero' is not WORKGROUP:WAVE" in capsys.readouterr().err


def test_progress(kernel):
    dev, k = kernel
    mem = dev.array(np.arange(256, dtype=np.int32))
    k.launch(8, 64, [mem])
    assert dev.progress == (8, 8)


def test_damaged_files(kernel, tmp_path):
    """Whatever a file holds, the reader gives arrays or a ValueError."""
    dev, k = kernel
    mem = dev.array(np.arange(256, dtype=np.int32))
    path = tmp_path / "t.trace"
    k.launch(2, 64, [mem], trace=sim.TraceOptions(values=True, path=path))
    good = path.read_bytes()
    rng = np.random.default_rng(5)
    refused = 0
    for i in range(600):
        raw = bytearray(good)
        at = int(rng.integers(0, len(raw) - 8))
        if i % 3 == 0:
            del raw[at:]
        elif i % 3 == 1:
            raw[at : at + 8] = b"\xff" * 8
        else:
            raw[24:32] = int(rng.integers(3, 1 << 63)).to_bytes(8, "little")
        try:
            for w in sim.read_trace(raw).waves:
                for j in range(len(w.rows)):
                    w.registers(j)
                    w.addresses(j)
        except ValueError:
            refused += 1
    assert refused >= 400


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_null_is_no_register(arch):
    """What an instruction writes to null is in no register; m0 has one name on all chips."""
    dev = sim.Device(arch, checks="none", threads=1)
    add = "v_add_co_u32 v1, null, v0, v0\n s_mov_b64 null, 5\n s_mov_b32 m0, 7\n s_mov_b32 null, 1"
    k = dev.load(simlib.code_object(add, arch=arch)).kernels["k"]
    w = k.launch(1, 32, [], trace=sim.TraceOptions(values=True))["trace"].wave(0)
    assert [set(w.registers(i)) for i in range(4)] == [{"v1"}, set(), {"s124"}, set()]
    assert w.registers(2)["s124"] == 7


@pytest.mark.parametrize("checks", ["none", "all"])
def test_late_delivery_records_the_same(checks):
    """Rows, addresses and register values of a right program are those of usual delivery, whenever memory operations
    happen: each at the row of its own instruction."""
    mem = np.arange(256, dtype=np.int32)

    def record(**how):
        dev = sim.Device("gfx942", checks=checks, threads=1)
        k = dev.load(simlib.code_object(BODY.replace("offset1:1", "offset1:0"), (simlib.BUF,), lds=64 * 128 + 8))
        a = dev.array(mem)
        t = k.kernels["k"].launch(1, 64, [a], trace=sim.TraceOptions(values=True, workgroups=[0]), **how)["trace"]
        w, base = t.wave(0), a.address
        rows = [tuple(int(r[f]) for f in ("pc", "kind", "bytes", "exec_count", "conflict_cycles")) for r in w.rows]
        at, kept = [], []
        for i, row in enumerate(w.rows):
            off = base if row["kind"] == 1 else 0
            if row["kind"] != 4:
                at.append([(np.asarray(m).tolist(), [int(x) - off for x in xs]) for m, xs in w.addresses(i)])
            if rows[i][1] != 4:  # the buffer's address
                kept += [(i, n, np.asarray(v).tolist()) for n, v in w.registers(i).items()]
        return rows, at, kept

    want = record()
    assert any(n == "v4" for _, n, _ in want[2])
    for seed in range(8):
        assert record(delivery="late", seed=seed) == want, f"seed {seed}"
