"""Rules of the check "hazard" by name: each report and finding names its own, and what is to be ignored is left out of
runs, of the verifier and of the command line; names that do not exist are refused with those that do."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from isa_ref import encode
from simlib import BUF, code_object

from tilelang.errors import SimulatorFault

sim = pytest.importorskip("tilelang.sim")

# rule: (chip, wave, instructions)
CASES = {
    "mfma-valu": (
        "gfx942",
        64,
        ["v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]", "v_mov_b32_e32 v20, v8"],
    ),
    "mfma-mem": ("gfx942", 64, ["v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]", "ds_write_b32 v0, v8"]),
    "mfma-ab": (
        "gfx942",
        64,
        [
            "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]",
            "v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[2:3], v[4:7]",
        ],
    ),
    "mfma-c": (
        "gfx942",
        64,
        [
            "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[0:1], v[2:3], v[4:7]",
            "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[0:1], v[2:3], v[8:11]",
        ],
    ),
    "mfma-c-other": (
        "gfx942",
        64,
        [
            "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]",
            "v_mfma_f32_16x16x16_f16 v[14:17], v[0:1], v[2:3], v[10:13]",
        ],
    ),
    "mfma-overwrite": (
        "gfx942",
        64,
        ["v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]", "v_mov_b32_e32 v8, v20"],
    ),
    "mfma-c-overwrite": (
        "gfx942",
        64,
        ["v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]", "v_mov_b32_e32 v4, v20"],
    ),
    "mfma-load": (
        "gfx942",
        64,
        ["v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]", "ds_read_b32 v8, v20"],
    ),
    "mfma-c-load": (
        "gfx942",
        64,
        ["v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]", "ds_read_b32 v4, v20"],
    ),
    "valu-mfma": (
        "gfx942",
        64,
        ["v_mov_b32_e32 v0, v20", "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]"],
    ),
    "valu-dpp": (
        "gfx942",
        64,
        ["v_mov_b32_e32 v0, v20", "v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf"],
    ),
    "valu-lane": ("gfx942", 64, ["v_mov_b32_e32 v0, v20", "v_readlane_b32 s0, v0, 1"]),
    "valu-swap": ("gfx950", 64, ["v_mov_b32_e32 v0, v20", "v_permlane16_swap_b32_e32 v0, v1"]),
    "trans": ("gfx942", 64, ["v_rcp_f32_e32 v0, v20", "v_mov_b32_e32 v1, v0"]),
    "partial": (
        "gfx942",
        64,
        ["v_add_u16_sdwa v0, v1, v2 dst_sel:WORD_1 src0_sel:DWORD src1_sel:DWORD", "v_not_b32_e32 v1, v0"],
    ),
    "dot": ("gfx942", 64, ["v_dot2_f32_f16 v0, v1, v2, v3", "v_mov_b32_e32 v1, v0"]),
    "dot-overwrite": ("gfx942", 64, ["v_dot2_f32_f16 v0, v1, v2, v3", "v_mov_b32_e32 v0, v1"]),
    "valu-sgpr": ("gfx942", 64, ["v_readfirstlane_b32 s4, v0", "v_mov_b32_e32 v1, s4"]),
    "valu-sgpr-mem": ("gfx942", 64, ["v_readfirstlane_b32 s4, v0", "buffer_load_dword v1, off, s[8:11], s4"]),
    "valu-sgpr-lane": ("gfx942", 64, ["v_readfirstlane_b32 s4, v0", "s_nop 1", "v_readlane_b32 s5, v1, s4"]),
    "valu-vcc-fmas": ("gfx942", 64, ["v_cmp_eq_u32_e32 vcc, v0, v1", "s_nop 1", "v_div_fmas_f32 v4, v1, v2, v3"]),
    "exec": ("gfx942", 64, ["v_cmpx_eq_u32_e32 v0, v0", "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf"]),
    "m0": ("gfx942", 64, ["s_mov_b32 m0, 0", "s_movrels_b32 s4, s5"]),
    "setreg": (
        "gfx942",
        64,
        ["s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0", "s_getreg_b32 s1, hwreg(HW_REG_MODE, 0, 4)"],
    ),
    "store-data": (
        "gfx942",
        64,
        ["global_store_dwordx4 v[0:1], v[4:7], off", "v_mov_b32_e32 v4, v20"],
    ),
    "wmma": (
        "gfx1100",
        32,
        [
            "v_wmma_f32_16x16x16_f16 v[16:23], v[0:7], v[8:15], v[24:31]",
            "v_wmma_f32_16x16x16_f16 v[32:39], v[16:23], v[8:15], v[24:31]",
        ],
    ),
    "permlane": ("gfx1100", 32, ["v_cmpx_eq_u32_e32 v0, v0", "v_permlane16_b32 v1, v2, s0, s1"]),
    "forward": (
        "gfx1100",
        64,
        ["v_mov_b32_e32 v0, v4", "s_mov_b64 exec, -1", "v_mov_b32_e32 v1, v4", "v_add_f32_e32 v2, v0, v1"],
    ),
    "mask-salu": ("gfx1100", 64, ["v_cndmask_b32_e64 v0, v1, v2, s[2:3]", "s_mov_b32 s2, 0", "s_mov_b32 s4, s2"]),
    "mask-valu": (
        "gfx1100",
        64,
        ["v_cndmask_b32_e64 v0, v1, v2, s[2:3]", "v_cmp_eq_u32_e64 s[2:3], v0, v1", "v_mov_b32_e32 v4, s2"],
    ),
    "salu-sgpr": ("gfx1201", 32, ["v_mov_b32_e32 v0, s2", "s_mov_b32 s2, 0", "s_mov_b32 s4, s2"]),
}
RDNA_ALSO = {
    "trans": ("gfx1100", 32, ["v_rcp_f32_e32 v0, v20", "v_mov_b32_e32 v1, v0"]),
    "valu-sgpr": ("gfx1201", 32, ["v_mov_b32_e32 v0, s2", "v_readfirstlane_b32 s2, v1", "v_mov_b32_e32 v4, s2"]),
}
ALL = [*CASES.items(), *RDNA_ALSO.items()]
MEMORY = ("valu-sgpr-mem", "store-data")
each = pytest.mark.parametrize(("rule", "case"), ALL, ids=[f"{r}-{c[0]}" for r, c in ALL])

STORE = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_lshlrev_b32 v0, 4, v0\ns_waitcnt lgkmcnt(0)\n"
STORE += "".join(f"v_mov_b32_e32 v{i}, 1.0\n" for i in range(4, 8))
STORE += "global_store_dwordx4 v0, v[4:7], s[4:5]\nv_mov_b32_e32 v5, 2.0\n"


def run(arch: str, wave: int, lines: list[str], ignore=None) -> list[str | None]:
    """Rules that a run of bare instructions reports."""
    state = {"v": {str(i): "0" * 8 * wave for i in range(64)}, "s": {str(i): "0" for i in range(12)}}
    state |= {"lds": "00" * 256, "wave": wave, "exec": "f" * (wave // 4), "vcc": "0"}
    code = [c for c in encode(arch, lines, wave if arch >= "gfx11" and arch < "gfx90" else 0) if c]
    assert len(code) == len(lines), f"{arch} lacks one of {lines}"
    try:
        sim.execute(arch, b"".join(code), state, checks="hazard", ignore=ignore)
    except SimulatorFault as fault:
        return [r.rule if r.check == "hazard" else r.check for r in fault.reports]
    return []


def other(rule: str) -> str:
    return "setreg" if rule != "setreg" else "m0"


@pytest.mark.parametrize(("rule", "case"), [a for a in ALL if a[0] not in MEMORY], ids=lambda x: str(x)[:20])
def test_a_run_names_the_rule_and_leaves_it_out(rule, case):
    assert run(*case) == [rule]
    assert run(*case, ignore=rule) == []
    assert run(*case, ignore=[other(rule), "forward"] if rule != "forward" else other(rule)) == [rule]


@each
def test_the_verifier_too(rule, case):
    arch, wave, lines = case
    code = code_object("\n".join(lines), arch=arch, **({"wave": wave} if arch in ("gfx1100", "gfx1201") else {}))
    found = [f for f in sim.verify(code) if f.kind == "hazard"]
    assert [f.rule for f in found] == [rule]
    assert f"[{rule}]" in str(found[0])
    assert [f for f in sim.verify(code, ignore=rule) if f.kind == "hazard"] == []
    assert sim.verify(code, ignore=other(rule)) == sim.verify(code)


def test_launches_and_what_is_below_a_rule_that_is_left_out():
    code = code_object(STORE, (BUF,))
    for ignore, rules in ((None, ["store-data"]), ("m0, dot", ["store-data"]), (["store-data"], [])):
        dev = sim.Device("gfx942", checks="all", ignore=ignore)
        try:
            dev.load(code).kernels["k"].launch((1,), (64,), [np.zeros(256, np.float32)])
            got = []
        except SimulatorFault as fault:
            got = [r.rule for r in fault.reports]
            assert "rule store-data" in str(fault.reports[0])
        assert got == rules
    # v_readlane's select lacks 4 states; without that rule the 2 of any vector instruction stay
    first, _, second = CASES["valu-sgpr-lane"][2]
    assert run("gfx942", 64, [first, second], ignore="valu-sgpr-lane") == ["valu-sgpr"]


def test_names_are_checked():
    code = code_object(STORE, (BUF,))
    for make in (
        lambda: sim.Device("gfx942", ignore="valu-sgpr,m1"),
        lambda: sim.verify(code, ignore=["m1"]),
        lambda: run(*CASES["m0"], ignore="m1"),
    ):
        with pytest.raises(ValueError, match=r"m1.*mfma-valu, .*, m0, .*salu-sgpr"):
            make()


def test_the_variable_and_the_command_line(tmp_path):
    file, report = tmp_path / "k.hsaco", tmp_path / "reports"
    file.write_bytes(code_object(STORE, (BUF,)))
    cmd = [sys.executable, "-m", "tilelang", "sim", str(file), "--kernel", "k"]
    launch = ["--grid", "1", "--block", "64", "--arg", "out:f32:256", "--check", "all"]

    def result(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        how = [] if "--verify" in args else launch
        return subprocess.run([*cmd, *how, *args], capture_output=True, text=True, env=os.environ | env, check=False)

    assert result(TILELANG_SIM_REPORT=str(report)).returncode == 1
    assert [json.loads(line)["rule"] for line in report.read_text().splitlines()] == ["store-data"]
    assert result("--ignore", "store-data").returncode == 0
    assert result(TILELANG_SIM_IGNORE="store-data,m0").returncode == 0
    assert result("--ignore", "m0", TILELANG_SIM_IGNORE="store-data").returncode == 1
    verified = result("--verify", "--json")
    assert [f["rule"] for f in json.loads(verified.stdout)["findings"]] == ["store-data"]
    assert result("--verify", "--ignore", "store-data").returncode == 0
    assert result("--verify", TILELANG_SIM_IGNORE="store-data").returncode == 0
    for bad in (result("--ignore", "m1"), result(TILELANG_SIM_IGNORE="m1")):
        assert bad.returncode == 2
        assert "valu-sgpr" in bad.stderr
        assert "m1" in bad.stderr


def test_every_rule_has_a_case():
    with pytest.raises(ValueError, match="there are: ") as e:
        sim.Device("gfx942", ignore="?")
    assert set(str(e.value).split("there are: ")[1].split(", ")) == set(CASES)
