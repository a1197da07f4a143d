"""Accumulation registers as data of memory and LDS instructions, of matrix instructions and of plain moves: every
vector-memory load, store and atomic, every LDS access, on gfx90a, gfx942 and gfx950."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

import test_isa_memory as mem  # noqa: E402
import test_isa_more as more  # noqa: E402
from isa_ref import LANES, encode, execute, hexrow, row  # noqa: E402

ARCHS = mem.ARCHS
IN = "".join(f"v_accvgpr_write_b32 a{k}, v{k}\n" for k in range(10, 18))
OUT = "".join(f"v_accvgpr_read_b32 v{k}, a{k}\n" for k in range(10, 18))


def accumulate(text: str, low: int, high: int) -> str:
    """Registers v<low> .. v<high> of the text as accumulation registers."""
    text = re.sub(r"\bv(\d+)\b", lambda m: f"a{m[1]}" if low <= int(m[1]) <= high else m[0], text)
    return re.sub(r"\bv\[(\d+):(\d+)\]", lambda m: f"a[{m[1]}:{m[2]}]" if low <= int(m[1]) <= high else m[0], text)


@pytest.mark.parametrize("fam", ["global", "flat", "buffer", "scratch"])
@pytest.mark.parametrize("arch", ARCHS)
def test_vector_memory(arch, fam, monkeypatch):
    """The cases of test_isa_memory with data in a10 and up."""
    if fam == "scratch" and arch == "gfx90a":
        pytest.skip("gfx90a sets flat scratch up by hand")
    cases = mem.load_cases(fam) + mem.store_cases(fam) + (mem.atomic_cases(fam, arch) if fam != "scratch" else [])
    texts = [accumulate(c.text, 10, 17) for c in cases]
    kept = []
    for c, text, code in zip(cases, texts, encode(arch, texts), strict=True):
        if code is not None:
            assert re.search(r"\ba[\[\d]", text), text
            kept.append(mem.Case(IN + "s_nop 1\n" + text + "\n" + mem.WAIT + OUT, c.kind, c.what, c.ret))
    monkeypatch.setattr(mem, "encode", lambda arch, lines: [b""] * len(lines))
    monkeypatch.setattr(simlib, "code_object", lambda body, args=(), **kw: code_object(body, args, agprs=32, **kw))
    assert mem.run_cases(arch, fam, kept) == len(kept) >= (22 if fam == "scratch" else 60)


code_object = simlib.code_object


@pytest.mark.parametrize("arch", ARCHS)
def test_lds_atomics(arch, monkeypatch):
    """The cases of test_isa_more with data in a2 .. a5 and the old value in a6."""
    cases = [(accumulate(text, 2, 7), *rest) for text, *rest in more.ds_cases()]
    inner: Any = more.execute

    def run(arch: str, code: bytes, state: dict[str, Any]) -> dict[str, Any]:
        v = {(f"a{k}" if int(k) >= 2 else k): x for k, x in state["v"].items()}
        out = inner(arch, code, {**state, "v": v})
        return {**out, "v": {k.removeprefix("a"): x for k, x in out["v"].items()}}

    monkeypatch.setattr(more, "ds_cases", lambda: cases)
    monkeypatch.setattr(more, "execute", run)
    more.test_lds_atomics(arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_lds_reads_and_writes(arch):
    """Every width there and back through accumulation registers, and exchanges of lanes."""
    rng = np.random.default_rng(3)
    data = rng.integers(0, 1 << 32, (4, LANES), dtype=np.uint32)
    ran = 0
    for name, n, size in (("b8", 1, 1), ("b16", 1, 2), ("b32", 1, 4), ("b64", 2, 8), ("b96", 3, 12), ("b128", 4, 16)):
        src, dst = ("a4", "a8") if n == 1 else (f"a[4:{3 + n}]", f"a[8:{7 + n}]")
        read = {"b8": "u8", "b16": "u16"}.get(name, name)
        codes = encode(arch, [f"ds_write_{name} v0, {src} offset:16", f"ds_read_{read} {dst}, v0 offset:16"])
        assert None not in codes, name
        v = {"0": hexrow(16 * np.arange(LANES))} | {f"a{4 + k}": hexrow(data[k]) for k in range(4)}
        v |= {f"a{8 + k}": "0" * 512 for k in range(4)}
        out = execute(arch, b"".join(codes), {"v": v, "lds": "55" * (16 * LANES + 32)})  # type: ignore[arg-type]
        lds = bytes.fromhex(out["lds"])
        for lane in range(LANES):
            want = data[:n, lane].tobytes()[:size]
            at = 16 * lane + 16
            assert lds[at : at + size] == want and lds[at + size : at + 16] == b"\x55" * (16 - size), f"{name}, {lane}"
            got = b"".join(int(row(out, f"a{8 + k}")[lane]).to_bytes(4, "little") for k in range(n))
            assert got == want.ljust(4, b"\0"), f"{name}, lane {lane}"
        ran += 1
    assert ran == 6
    two = ["ds_write2_b32 v0, a4, a5 offset0:1 offset1:3", "ds_read2_b32 a[8:9], v0 offset0:3 offset1:1",
           "ds_write2st64_b64 v0, a[4:5], a[6:7] offset0:4 offset1:8",
           "ds_read2st64_b64 a[10:13], v0 offset0:8 offset1:4"]  # fmt: skip
    codes = encode(arch, two)
    assert None not in codes
    v = {"0": hexrow(16 * np.arange(LANES))} | {f"a{4 + k}": hexrow(data[k]) for k in range(4)}
    v |= {f"a{8 + k}": "0" * 512 for k in range(6)}
    out = execute(arch, b"".join(codes), {"v": v, "lds": "00" * 8192})  # type: ignore[arg-type]
    for lane in range(LANES):
        have = [int(row(out, f"a{8 + k}")[lane]) for k in range(6)]
        assert have == [int(data[k, lane]) for k in (1, 0, 2, 3, 0, 1)], f"lane {lane}"
    v = {"0": hexrow(4 * (np.arange(LANES)[::-1])), "a4": hexrow(data[0]), "a8": "0" * 512, "a9": "0" * 512}
    text = ["ds_bpermute_b32 a8, v0, a4", "ds_permute_b32 a9, v0, a4"]
    codes = encode(arch, text)
    assert None not in codes
    out = execute(arch, b"".join(codes), {"v": v})  # type: ignore[arg-type]
    assert row(out, "a8").tolist() == data[0][::-1].tolist() == row(out, "a9").tolist()


@pytest.mark.parametrize("arch", ARCHS)
def test_matrix_operands(arch):
    """A, B and C/D each in either file give the same result."""
    rng = np.random.default_rng(4)
    halves = rng.integers(0x3800, 0x4400, (2, 2, LANES, 2)).astype(np.uint32)
    a, b = (x[..., 0] | x[..., 1] << 16 for x in halves)
    c = rng.normal(size=(4, LANES)).astype(np.float32).view(np.uint32)
    name = "v_mfma_f32_16x16x16f16" if arch == "gfx90a" else "v_mfma_f32_16x16x16_f16"
    results = []
    for fa in "va":
        for fb in "va":
            for fc in "va":
                code = encode(arch, [f"{name} {fc}[12:15], {fa}[0:1], {fb}[4:5], {fc}[8:11]"])[0]
                assert code is not None
                v: dict[str, str] = {}
                for file, first, rows in ((fa, 0, a), (fb, 4, b), (fc, 8, c)):
                    v |= {("a" if file == "a" else "") + str(first + k): hexrow(x) for k, x in enumerate(rows)}
                out = execute(arch, code, {"v": v})
                key = "a" if fc == "a" else ""
                results.append([row(out, f"{key}{12 + k}").tolist() for k in range(4)])
    assert len(results) == 8 and all(r == results[0] for r in results)
    assert any(any(x) for x in results[0])
