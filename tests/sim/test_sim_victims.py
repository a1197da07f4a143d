"""Reports on the outside fault programs name an instruction that shows the fault, or the end of its dependency."""

from __future__ import annotations

import re

import pytest
import simlib

from tilelang import sim

FAULTS = simlib.SHARED / "oracle/faults"
ARCHS = ["gfx90a", "gfx942", "gfx950"]
if not FAULTS.is_dir():
    pytest.skip("the outside test data is not there", allow_module_level=True)

REGS = re.compile(r"(?<![\w.])(?:([vsa])(?:(\d+)|\[(\d+):(\d+)\])|(vcc|exec|scc|m0))(?![\w.])")
IMPLICIT = {"_co_": "vcc", "v_cmp": "vcc", "v_cndmask_b32_e32": "vcc", "v_div_fmas": "vcc", "saveexec": "exec"}
STORES = ("global_store", "flat_store", "buffer_store", "scratch_store", "ds_write")


def registers(text: str) -> set[str]:
    out = set()
    for m in REGS.finditer(text):
        if m[5]:
            out.add(m[5])
        else:
            out |= {f"{m[1]}{i}" for i in range(int(m[2] or m[3]), int(m[2] or m[4]) + 1)}
    return out


def memory(text: str) -> set[str]:
    if text.startswith("flat"):
        return {"lds", "scratch", "global"}
    return {
        "lds" if text.startswith("ds_") or " lds" in text else "scratch" if text.startswith("scratch") else "global"
    }


def reached(listing: list[tuple[int, str]], victims: set[int]) -> set[int]:
    """Instructions that read what a victim gives: registers forwards to a fixed point, through LDS and scratch too."""
    tainted: set[str] = set()
    out: set[int] = set()
    size = -1
    while size != len(tainted) + len(out):  # loops: until nothing new comes
        size = len(tainted) + len(out)
        for pc, text in listing:
            name, _, operands = text.partition(" ")
            first, _, rest = operands.partition(",")
            implicit = {r for k, r in IMPLICIT.items() if k in name}
            if name.startswith(STORES) or " lds" in text:
                reads, writes = registers(operands), memory(text)
            elif re.match(r"ds_(?!read|permute|bpermute|swizzle)", name):  # LDS atomics
                reads, writes = registers(operands) | {"lds"}, {"lds"} | (registers(first) if "rtn" in name else set())
            elif name.startswith(("s_cmp", "s_bitcmp")):
                reads, writes = registers(operands), {"scc"}
            else:
                keeps = "fmac" in name or "mac_" in name or "d16" in name
                reads = registers(operands if keeps else rest) | implicit
                writes = registers(first) | implicit
                reads |= memory(text) if name.startswith(("ds_", "scratch_load", "flat_load")) else set()
                reads |= {"scc"} if name.startswith(("s_cselect", "s_cbranch_scc", "s_addc", "s_subb")) else set()
                reads |= registers(operands) if name.startswith("s_cbranch") else set()
                writes |= {"scc"} if name.startswith("s_") and "mov" not in name else set()
            if pc in victims:
                tainted |= writes
            elif reads & tainted:
                out.add(pc)
                tainted |= writes
    return out


@pytest.mark.parametrize("arch", ARCHS)
def test_reports_lie_within_the_victims(arch):
    dev = sim.Device(arch, checks="all", threads=1)
    exact, flow, missed = 0, 0, []
    for path in sorted(FAULTS.glob(f"*.{arch}/*.json")):
        if path.name == "clean.json":
            continue
        mutant = simlib.load_json(path)
        base = simlib.load_json(path.parent / mutant["base"])
        fault = mutant["fault"]
        victims = {v["offset"] for v in fault["victims"]}
        run = simlib.run_oracle(dev, base, path.parent / mutant["hsaco"], mutant.get("buffer_overrides"))
        mine = [r for r in (run.fault.reports if run.fault else []) if r.check in simlib.CHECKS_OF[fault["class"]]]
        if any(r.pc in victims or r.other_pc in victims for r in mine):
            exact += 1
            continue
        module = dev.load(path.parent / mutant["hsaco"])
        listing = [(pc, text) for pc, text, _ in module.kernels[base["kernel"]].disassembly()]
        module.unload()
        # an undefined value is reported where it ends up, not where it is read
        if fault["class"].startswith("uninit") and {r.pc for r in mine} & reached(listing, victims):
            flow += 1
        else:
            missed.append(
                (path.parent.name, path.stem, fault["class"], sorted(victims), [(r.pc, r.text) for r in mine])
            )
    print(f"{arch}: {exact} name a victim, {flow} the end of its dependency, {len(missed)} neither")
    assert not missed, missed[:5]
    assert exact > 100 and exact + flow > 120


def test_the_dependency_is_not_everything():
    listing = [(0, "global_load_dword v1, v0, s[2:3]"), (8, "v_add_u32_e32 v2, v1, v3"), (12, "v_mov_b32_e32 v4, v3")]
    assert reached(listing, {0}) == {8}
