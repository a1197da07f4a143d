"""Every vector operation of gfx1100 and gfx1201 in every encoding and lane move that the chip gives it, in waves of 32
and 64 lanes. Operands and results are those of the outside vectors (of either chip, or of gfx942 under the name it has
there), or of the plain Python of rdna_ref; rdna_cases writes them into each encoding."""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")
vectors = pytest.importorskip("test_sim_vectors")

from rdna_cases import FORMS, MOVES, MOVES8, Case, assemble, case_of, join, start, texts, wrong  # noqa: E402
from rdna_ref import reference_case  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RENAMED = {  # name here -> name of the same operation elsewhere
    "v_add_nc_u32": "v_add_u32", "v_sub_nc_u32": "v_sub_u32", "v_subrev_nc_u32": "v_subrev_u32",
    "v_add_nc_i32": "v_add_i32", "v_sub_nc_i32": "v_sub_i32",
    "v_add_co_ci_u32": "v_addc_co_u32", "v_sub_co_ci_u32": "v_subb_co_u32", "v_subrev_co_ci_u32": "v_subbrev_co_u32",
    "v_mad_co_u64_u32": "v_mad_u64_u32", "v_mad_co_i64_i32": "v_mad_i64_i32",
    "v_clz_i32_u32": "v_ffbh_u32", "v_ctz_i32_b32": "v_ffbl_b32", "v_cls_i32": "v_ffbh_i32",
    "v_cvt_floor_i32_f32": "v_cvt_flr_i32_f32", "v_cvt_nearest_i32_f32": "v_cvt_rpi_i32_f32",
    "v_dot2acc_f32_f16": "v_dot2c_f32_f16", "v_fmac_dx9_zero_f32": "v_fma_dx9_zero_f32",
}  # fmt: skip
OTHER_TESTS = re.compile(
    r"v_(readlane|writelane|readfirstlane|permlane|movrel|swap|swaprel|s_|nop|pipeflush|wmma|swmmac|interp|pk_fmac)"
)
"""One encoding, or a state of their own: test_rdna_valu.py (matrix instructions: tests of their own)."""


@functools.cache
def outside() -> dict[str, dict[str, list[Case]]]:
    """Chip -> operation -> cases of the outside vectors."""
    out: dict[str, dict[str, list[Case]]] = {}
    for arch in ("gfx942", "gfx1100", "gfx1201"):
        by_op = out[arch] = defaultdict(list)
        with gzip.open(vectors.FOLDER / f"vectors.{arch}.jsonl.gz", "rt") as f:
            for line in f:
                c = case_of(json.loads(line))
                if c and not (arch == "gfx942" and re.search("16|fp8|bf8|v_cmp_class|legacy", c.op)):
                    by_op[c.op].append(c)
    return out


def cases_of(arch: str, op: str, rng: np.random.Generator) -> list[Case]:
    """At most two cases of an operation: of this chip, of the other ones, by reference."""
    c = reference_case(op, rng)
    ref = [c] if c else []
    for a in (arch, "gfx1100", "gfx1201", "gfx942"):
        found = [x for n in (op, RENAMED.get(op)) if n for x in outside()[a].get(n, [])]
        found = [x for x in found if bool(x.valid) and (a == arch or x.literal is None or "16" not in op)]
        if found:
            found.sort(key=lambda x: -bin(x.valid).count("1"))
            take = found[: 2 - len(ref)]
            return ref + [Case(**{**x.__dict__, "op": op, "half": x.half if a == "gfx1100" else None}) for x in take]
    return ref


@functools.cache
def operations(arch: str) -> list[str]:
    out = set()
    for line in (ROOT / f"csrc/isa/isa_{arch}.def").read_text().splitlines():
        m = re.match(r"ISA_ROW\((VOP\w+), \d+, \w+, (v_\w+),", line)
        if m and not OTHER_TESTS.match(m[2]):
            out.add(m[2])
    return sorted(out)


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_every_encoding(arch, wave):
    rng = np.random.default_rng(31)
    jobs, lines, turn = [], [], 0
    without = []
    for op in operations(arch):
        cases = cases_of(arch, op, rng)
        if not cases:
            without.append(op)
            continue
        if wave == 64:
            cases = [join(cases[0], cases[-1] if cases[0].literal == cases[-1].literal else cases[0])]
        for form in FORMS:
            for c in cases[: 1 if "dpp" in form else 2]:
                move, reads = ("", None)
                if "dpp" in form:
                    table = MOVES8 if form.endswith("8") else MOVES
                    move, reads = table[turn % len(table)]
                    turn += 1
                    move += "" if form.endswith("8") else " row_mask:0xf bank_mask:0xf"
                t = texts(c, arch, wave, form, move)
                jobs.append((c, form, reads, len(lines), len(t)))
                lines += t
    codes = assemble(arch, wave, lines)
    seen: dict[str, int] = defaultdict(int)
    bad, reached = [], set()
    for c, form, reads, first, n in jobs:
        took = next((i for i in range(first, first + n) if codes[i]), None)
        if took is None:
            continue
        code = codes[took]
        assert code
        seen[form] += 1
        reached.add(c.op)
        try:
            why = wrong(c, wave, form, reads, sim.execute(arch, code, start(c, wave, form, reads)))
        except sim.SimulatorFault as e:
            why = str(e).splitlines()[0]
        if why:
            bad.append(f"{lines[took]} ({c.name}): {why}")
    print(f"{arch} wave{wave}: {sum(seen.values())} instructions, {dict(seen)}, seed 31")
    assert not bad, f"{len(bad)} wrong:\n" + "\n".join(bad[:40])
    assert not without, f"no case: {without}"
    assert not (left := set(operations(arch)) - reached), f"no encoding: {sorted(left)}"
