"""LDS addresses that libraries use on purpose although no chip has them."""

from __future__ import annotations

import numpy as np
import pytest

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402


def hexrow(values: list[int]) -> str:
    """One register of a wave, lane 0 first."""
    return "".join(f"{x:08x}" for x in values)


def lanes_of(text: str) -> list[int]:
    """hexrow's inverse."""
    return [int(text[k : k + 8], 16) for k in range(0, len(text), 8)]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_lds_nowhere(arch: str) -> None:
    """Byte 0xf00000 of LDS is rocBLAS's and hipBLASLt's "nowhere": loads give 0 and stores are dropped without a
    report, as far as an instruction's offset reaches; the addresses around it are outside."""
    cdna = arch in ("gfx90a", "gfx942", "gfx950")
    load, store, lanes = ("ds_read", "ds_write", 64) if cdna else ("ds_load", "ds_store", 32)
    wait = "s_wait_dscnt 0x0" if arch == "gfx1201" else "s_waitcnt lgkmcnt(0)"

    def run(address: list[int], *offsets: str) -> dict:
        text = [f"{store}_b32 v0, v1{o}" for o in offsets]
        text += [f"{load}_b64 v[{4 + 2 * k}:{5 + 2 * k}], v0{o}" for k, o in enumerate(offsets)]
        v = {"0": hexrow(address), "1": hexrow(list(range(1, lanes + 1)))} | {
            str(k): hexrow([7] * lanes) for k in range(4, 8)
        }
        code = b"".join(encode(arch, [*text, wait]))
        return sim.execute(arch, code, {"wave": lanes, "v": v, "lds": bytes(65536).hex()})

    out = run([8 if lane == 3 else 0xF00000 for lane in range(lanes)], "")  # one lane has its place
    assert lanes_of(out["v"]["4"]) == [4 if lane == 3 else 0 for lane in range(lanes)]
    assert lanes_of(out["v"]["5"]) == [0] * lanes
    assert out["lds"] == (bytes(8) + (4).to_bytes(4, "little") + bytes(65536 - 12)).hex()
    out = run([0xF00000] * lanes, " offset:8", " offset:65528")
    assert not any(np.any(lanes_of(out["v"][str(k)])) for k in range(4, 8))
    assert out["lds"] == bytes(65536).hex()
    for address in (0xEFFFF8, 0x10000, 0xF10000, 0xFFFFFFF8):
        with pytest.raises(sim.SimulatorFault, match="outside the 65536 bytes"):
            run([address] * lanes, "")
