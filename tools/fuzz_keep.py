"""Packs the smallest inputs of a folder into tests/sim/corpus/TARGET/pack.CHIP for simfuzz: the bytes "FUZZPACK", then
each input with its length in two bytes, little endian. Usage: fuzz_keep.py TARGET CHIP FOLDER MOST"""

from __future__ import annotations

import sys
from pathlib import Path

CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
MACHINE = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41, "gfx1201": 0x4E}


def on_chip(target: str, chip: str, data: bytes) -> bytes:
    """The input as it is for this chip without SIMFUZZ_CHIP; what names no chip stays as it is."""
    out = bytearray(data)
    if target == "load":
        if len(out) > 48:
            out[48] = MACHINE[chip]
    elif out and target in ("decode", "exec", "launch"):
        high = out[0] & 0xF0
        out[0] = next(b for b in range(high, high + 16) if b % len(CHIPS) == CHIPS.index(chip))
    return bytes(out)


def main() -> None:
    """Writes the pack; says how many inputs of how many went in."""
    target, chip, folder, most = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    files = sorted(folder.iterdir(), key=lambda p: (p.stat().st_size, p.name))
    inputs = dict.fromkeys(on_chip(target, chip, p.read_bytes()) for p in files if 0 < p.stat().st_size < 65536)
    kept = list(inputs)[:most]
    pack = b"FUZZPACK" + b"".join(len(x).to_bytes(2, "little") + x for x in kept)
    out = Path(__file__).resolve().parent.parent / "tests/sim/corpus" / target
    out.mkdir(parents=True, exist_ok=True)
    (out / f"pack.{chip}").write_bytes(pack)
    print(f"{target} {chip}: {len(kept)} of {len(files)} inputs, {len(pack)} bytes")


if __name__ == "__main__":
    main()
