"""delivery="late": correct programs give the same bits under every seed, programs without a wait or barrier do not; the
strict rule of the barrier check."""

from __future__ import annotations

import functools
from pathlib import Path

import mutation_kernels
import numpy as np
import pytest
import simlib

import tilelang as tl
from tilelang import sim

ARCHS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
SEEDS = range(32)
SAME = {  # mutants that give the same bits under all of these seeds
    "gfx1100": {"scratch_array5.gfx1100/missing_waitcnt1"},
}

needs_oracle = pytest.mark.skipif(not (simlib.SHARED / "oracle").is_dir(), reason="the outside test data is not there")


def run_late(arch: str, desc: dict, hsaco: Path, seed: int, checks: str = "none", overrides: dict | None = None):
    dev = sim.Device(arch, checks=checks, threads=1, delivery="late", seed=seed)
    try:
        return simlib.run_oracle(dev, desc, hsaco, overrides)
    finally:
        dev.close()


@functools.cache
def correct_programs(arch: str) -> list[Path]:
    """Programs that are right when data is there at once (that all are is another test's business)."""
    folder, out = simlib.SHARED / "oracle", []
    dev = sim.Device(arch, checks="none", threads=1)
    for path in sorted(folder.glob(f"kernels/*.{arch}.json")) + sorted(folder.glob(f"faults/*.{arch}/clean.json")):
        desc = simlib.load_json(path)
        run = simlib.run_oracle(dev, desc, path.parent / desc["hsaco"])
        if not run.fault and not run.wrong:
            out.append(path)
    return out


@needs_oracle
@pytest.mark.parametrize("arch", ARCHS)
def test_correct_programs_do_not_depend_on_delivery(arch):
    wrong, runs = [], 0
    seeds = SEEDS if arch == "gfx942" else SEEDS[:8]
    for path in correct_programs(arch):
        desc = simlib.load_json(path)
        for seed in seeds:
            run = run_late(arch, desc, path.parent / desc["hsaco"], seed)
            runs += 1
            if run.fault or run.wrong:
                wrong.append((path.parent.name, path.name, seed, str(run.fault or run.wrong)[:200]))
    print(f"{arch}: {runs} runs, seeds {seeds}")
    assert runs > 400 and not wrong, wrong[:5]


@needs_oracle
@pytest.mark.parametrize("arch", ARCHS)
def test_all_checks_are_quiet_in_late_delivery(arch):
    wrong, runs = [], 0
    for path in correct_programs(arch):
        desc = simlib.load_json(path)
        for seed in (0, 5, 11):
            run = run_late(arch, desc, path.parent / desc["hsaco"], seed, "all")
            runs += 1
            if run.fault or run.wrong:
                wrong.append((path.parent.name, path.name, seed, str(run.fault or run.wrong)[:300]))
    assert runs > 150 and not wrong, wrong[:5]


@needs_oracle
@pytest.mark.parametrize("kind", ["missing_waitcnt", "missing_barrier"])
@pytest.mark.parametrize("arch", ARCHS)
def test_mutants_differ(arch, kind):
    tried, same, first = 0, [], []
    for path in sorted(simlib.SHARED.glob(f"oracle/faults/*.{arch}/*.json")):
        mutant = simlib.load_json(path)
        if path.name == "clean.json" or mutant["fault"]["class"] != kind:
            continue
        base = simlib.load_json(path.parent / mutant["base"])
        tried += 1
        for seed in SEEDS:
            over = mutant.get("buffer_overrides")
            run = run_late(arch, base, path.parent / mutant["hsaco"], seed, "none", over)
            if run.fault or run.wrong:
                first.append(seed)
                break
        else:
            same.append(f"{path.parent.name}/{path.stem}")
    print(f"{arch} {kind}: {tried - len(same)} of {tried} give other bits, {first.count(0)} of them under seed 0")
    assert tried and set(same) <= SAME.get(arch, set()), same


GEMMS = {"f16": (160, 96, 192, 64, np.float16), "f32": (64, 64, 128, 32, np.float32)}


@pytest.mark.parametrize("name", GEMMS)
def test_our_gemm(name):
    m, n, k, block, dtype = GEMMS[name]

    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    compiled = tl.compile(mutation_kernels.matmul(m, n, k, block, dtype)[0])
    compiled.prepare(a, b, np.zeros((m, n), dtype))
    code, waves = compiled.asm["hsaco"], compiled.resources["waves"]
    dev = sim.Device("gfx942", checks="none")
    kern = next(iter(dev.load(bytes(code)).kernels.values()))
    grid = ((m + block - 1) // block, (n + block - 1) // block, 1)

    def run(**how):
        out = dev.array(np.full((m, n), np.nan, dtype))
        kern.launch(grid, (64 * waves, 1, 1), [dev.array(a), dev.array(b), out], **how)
        return out.numpy(dtype, (m, n)).tobytes()

    want = run()
    for seed in SEEDS:
        assert run(delivery="late", seed=seed) == want, f"seed {seed}"


# ---- one wave: what "late" means ------------------------------------------------------------------------------------

READ = bytes.fromhex("00006cd800000001")  # ds_read_b32 v1, v0
COPY2 = bytes.fromhex("0103047e")  # v_mov_b32_e32 v2, v1
WAIT = bytes.fromhex("7fc08cbf")  # s_waitcnt lgkmcnt(0)
COPY3 = bytes.fromhex("0103067e")  # v_mov_b32_e32 v3, v1
WRITE = bytes.fromhex("00001ad800040000")  # ds_write_b32 v0, v4
READ5 = bytes.fromhex("00006cd800000005")  # ds_read_b32 v5, v0
WAIT1 = bytes.fromhex("7fc18cbf")  # s_waitcnt lgkmcnt(1)
COPY6 = bytes.fromhex("05030c7e")  # v_mov_b32_e32 v6, v5


def lane_state(**regs: int) -> dict:
    v = {str(i): "00000000" * 64 for i in range(7)}
    v |= {k[1:]: f"{x:08x}" * 64 for k, x in regs.items()}
    return {"v": v, "lds": "78563412" + "00" * 60}


def test_a_load_lands_at_its_wait():
    out = sim.execute("gfx942", READ + COPY2 + WAIT + COPY3, lane_state(v1=7), delivery="late", seed=0)
    assert out["v"]["2"][:8] == "00000007"  # before the wait: the old value
    assert out["v"]["3"][:8] == "12345678"
    now = sim.execute("gfx942", READ + COPY2 + WAIT + COPY3, lane_state(v1=7))
    assert now["v"]["2"][:8] == "12345678"


def test_seeds_choose_the_moment():
    early = {
        sim.execute("gfx942", READ + COPY2 * 8 + WAIT, lane_state(v1=7), delivery="late", seed=s)["v"]["2"][:8]
        for s in range(64)
    }
    assert {"00000007", "12345678"} < early  # old, new, and rubbish


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_checks_of_bare_instructions(seed):
    """The checks say in late delivery what they say without it: nothing where the waits are there, the early use where
    one is not."""
    state = lane_state(v0=0, v1=7) | {"lds": "2a000000" * 64}
    out = sim.execute("gfx942", READ + WAIT + COPY2, state, checks="all", delivery="late", seed=seed)
    assert out["v"]["2"][:8] == "0000002a"
    for delivery in ("now", "late"):
        with pytest.raises(sim.SimulatorFault) as e:
            sim.execute("gfx942", READ + COPY2 + WAIT, state, checks="all", delivery=delivery, seed=seed)
        assert [(r.check, r.pc) for r in e.value.reports] == [("wait", len(READ))]


def test_lds_keeps_its_order():
    out = sim.execute("gfx942", WRITE + READ5 + WAIT1 + COPY6 + WAIT, lane_state(v4=99, v5=7), delivery="late", seed=0)
    assert out["v"]["5"][:8] == f"{99:08x}"
    assert out["v"]["6"][:8] == "00000007"  # lgkmcnt(1) covers the write only
    assert out["lds"][:8] == "63000000"


def test_an_operand_may_be_overwritten_after_issue():
    """The address and the data are taken when the instruction is issued."""
    clear = bytes.fromhex("8002087e")  # v_mov_b32_e32 v4, 0
    out = sim.execute("gfx942", WRITE + clear + WAIT, lane_state(v4=99), delivery="late", seed=0)
    assert out["lds"][:8] == "63000000"


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match="delivery"):
        sim.Device("gfx942", delivery="soon")
    with pytest.raises(ValueError, match="seed"):
        sim.Device("gfx942", delivery="late", seed=-1)


def test_environment(monkeypatch):
    """The variables are read when a device is made."""
    store = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 5\n"
    body = store + "global_store_dword v1, v2, s[4:5]\ns_waitcnt vmcnt(0)"  # no wait for s[4:5]
    code = simlib.code_object(body, (simlib.BUF,))

    def run() -> bool:
        dev = sim.Device("gfx942", checks="bounds")
        try:
            dev.load(code).kernels["k"].launch((1,), (64,), [dev.array(np.zeros(1, np.int32))])
        except sim.SimulatorFault as e:
            return e.reports[0].check != "bounds"
        return True

    assert run()  # the default gives the value at once
    monkeypatch.setenv("TILELANG_SIM_DELIVERY", "late")
    assert not run()
    monkeypatch.setenv("TILELANG_SIM_DELIVERY", "soon")
    with pytest.raises(ValueError, match="TILELANG_SIM_DELIVERY"):
        run()


# ---- barriers --------------------------------------------------------------------------------------------------------

PINGPONG = """
v_readfirstlane_b32 s4, v0
s_cmp_lt_u32 s4, 256
s_cbranch_scc1 L1
s_barrier
L1:
s_movk_i32 s5, 3
L2:
s_nop 0
s_barrier
s_nop 1
s_barrier
s_sub_u32 s5, s5, 1
s_cmp_lg_u32 s5, 0
s_cbranch_scc1 L2
s_cmp_lt_u32 s4, 256
s_cbranch_scc0 L3
s_barrier
L3:
"""


@pytest.mark.parametrize("checks", ["all", "strict", ["barrier", "strict"]])
def test_halves_at_different_barriers(checks):
    """Eight waves, one half a barrier ahead: right by arrival, and what the strict rule is there to find."""
    code = simlib.code_object(PINGPONG)
    dev = sim.Device("gfx942", checks=checks)
    kern = dev.load(code).kernels["k"]
    if checks == "all":
        kern.launch((2,), (512,))
        return
    assert "strict" in dev.checks and "barrier" in dev.checks
    with pytest.raises(sim.SimulatorFault) as e:
        kern.launch((2,), (512,))
    r = e.value.reports[0]
    assert r.check == "barrier" and r.text == r.other_text == "s_barrier" and r.pc != r.other_pc
    assert "strict" in r.message


def test_strict_is_quiet_at_one_barrier():
    code = simlib.code_object("s_nop 0\ns_barrier\ns_nop 0\ns_barrier")
    dev = sim.Device("gfx942", checks=["all", "strict"])
    assert set(dev.checks) > {"strict", "bounds", "race"}
    dev.load(code).kernels["k"].launch((3,), (512,))


def test_command_line(tmp_path, capsys):
    from tilelang.sim.__main__ import main

    path = tmp_path / "k.hsaco"
    path.write_bytes(simlib.code_object(PINGPONG))
    base = [str(path), "--grid", "1", "--block", "512"]
    assert main([*base, "--check", "all", "--delivery", "late", "--seed", "3"]) == 0
    assert main([*base, "--check", "all,strict"]) == 1
    assert "strict" in "".join(capsys.readouterr())


EXCHANGE = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
v_xor_b32 v2, 0x100, v1
s_waitcnt lgkmcnt(0)
global_load_dword v4, v2, s[4:5] offset:1024
{store}
{wait}
s_barrier
{load}
global_store_dword v1, v0, s[4:5] offset:1024
s_waitcnt vmcnt(0) lgkmcnt(0)
v_add_u32 v3, v3, v4
global_store_dword v1, v3, s[4:5] offset:512
"""


def exchanged(store: str, load: str, wait: str, extra: str = "") -> set[bytes]:
    """Results of two waves that swap values at a barrier, under many seeds."""
    body = EXCHANGE.format(store=store, load=load, wait=wait)
    kern = sim.Device("gfx942", checks="none").load(simlib.code_object(body, (simlib.BUF,), lds=512, extra=extra))
    out = set()
    for seed in SEEDS:
        a = np.arange(1000, 1512, dtype=np.int32)
        kern.kernels["k"].launch((1,), (128,), [a], delivery="late", seed=seed)
        out.add(a.tobytes())
    return out


def test_memory_keeps_the_order_of_issue_over_a_barrier():
    """Waves that share a vector cache: a store before the barrier is seen behind it without a wait, and a load before
    it is not spoilt by a store behind it. LDS has no such rule, nor has a workgroup in several caches."""
    memory = ("global_store_dword v1, v0, s[4:5]", "global_load_dword v3, v2, s[4:5]")
    lds = ("ds_write_b32 v1, v0", "ds_read_b32 v3, v2")
    want = exchanged(*memory, "s_waitcnt vmcnt(0)")
    assert len(want) == 1
    got = np.frombuffer(next(iter(want)), np.int32)
    i = np.arange(128)
    np.testing.assert_array_equal(got[128:256], (i ^ 64) + 1000 + 256 + (i ^ 64))
    assert exchanged(*memory, "") == want
    assert len(exchanged(*memory, "", ".amdhsa_tg_split 1")) > 1
    right = exchanged(*lds, "s_waitcnt lgkmcnt(0)")
    assert len(right) == 1 and len(exchanged(*lds, "")) > 1


@pytest.mark.parametrize("arch", ARCHS)
def test_clock_readings_keep_their_order(arch):
    """Scalar results come back in any order, but a later reading of the clock is not the earlier time."""
    rdna = arch.startswith("gfx1")
    read = "s_sendmsg_rtn_b64 s[{0}:{1}], sendmsg(MSG_RTN_GET_REALTIME)" if rdna else "s_memtime s[{0}:{1}]"
    wait = "s_wait_kmcnt 0x0\n" if arch == "gfx1201" else "s_waitcnt lgkmcnt(0)\n"
    load, store = ("b64", "b32") if rdna else ("dwordx2", "dword")
    body = f"s_load_{load} s[4:5], s[0:1], 0x0\n{wait}v_mov_b32 v1, 0\n"
    for k in range(6):
        lo = 8 + 2 * k
        body += read.format(lo, lo + 1) + "\n"
    body += wait + "".join(
        f"v_mov_b32 v2, s{8 + 2 * k}\nglobal_store_{store} v1, v2, s[4:5] offset:{4 * k}\n" for k in range(6)
    )
    hsaco = simlib.code_object(body, (simlib.BUF,), arch=arch)
    for seed in range(16):
        out = np.zeros(6, np.uint32)
        dev = sim.Device(arch, checks="none", threads=1, delivery="late", seed=seed)
        dev.load(hsaco).kernels["k"].launch(1, 1, [out])
        assert (np.diff(out.astype(np.int64)) >= 0).all() and out.any(), (seed, out)
