"""Files that carry code objects: offload bundles (plain, compressed), programs and libraries with bundles in them."""

from __future__ import annotations

import ctypes as C
import os
import re
import struct

_PLAIN, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_START = re.compile(re.escape(_PLAIN) + rb"|CCOB[\x02\x03]\x00\x01\x00")
_LIMIT = 1 << 32
_RATIO = 1 << 15
"""The most that zstd makes of a byte: blocks of 128 KiB in four bytes."""

_MACH = {
    0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950", 0x41: "gfx1100", 0x4E: "gfx1201",
    0x5F: "gfx9-4-generic", 0x54: "gfx11-generic", 0x59: "gfx12-generic",
}  # fmt: skip
"""EF_AMDGPU_MACH of the chips."""

_GENERIC = {"gfx9-4-generic": ("gfx942", "gfx950"), "gfx11-generic": ("gfx1100",), "gfx12-generic": ("gfx1201",)}


def read(source: str | os.PathLike[str] | bytes) -> bytes:
    """The bytes of a path, or bytes themselves."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, int):
        raise TypeError(f"a path or bytes are needed, not {source!r}")
    with open(source, "rb") as f:
        return f.read()


def chips_of(target: str) -> tuple[str, ...]:
    """The simulated chips on which code for a target runs; nothing for one that is not simulated."""
    return (target,) if target in _MACH.values() and target not in _GENERIC else _GENERIC.get(target, ())


def _elf_target(data: bytes) -> str:
    return _MACH.get(data[48], "") if len(data) >= 64 and data[:4] == b"\x7fELF" else ""


def _unpack(data: bytes, base: int = 0) -> tuple[bytes, int]:
    """The bundle in a compressed one that begins at base, and where that one ends."""
    version, method = struct.unpack_from("<HH", data, base + 4)
    if version not in (2, 3) or method != 1:
        raise ValueError(f"compressed bundle of version {version}, method {method}: only zstd (2 and 3, 1) is known")
    total, raw = struct.unpack_from("<II" if version == 2 else "<QQ", data, base + 8)
    if total < 24 or base + total > len(data):
        raise ValueError(f"compressed bundle of {total} bytes, of which {len(data) - base} are there")
    body = data[base + (24 if version == 2 else 32) : base + total]
    if not 0 < raw <= min(_LIMIT, _RATIO * len(body)):
        raise ValueError(f"compressed bundle of {raw} bytes in {len(body)}")
    try:
        run = C.CDLL("libzstd.so.1").ZSTD_decompress
    except (OSError, AttributeError):
        raise ValueError("a compressed bundle needs libzstd.so.1, which is not installed") from None
    run.restype, run.argtypes = C.c_size_t, [C.c_char_p, C.c_size_t, C.c_char_p, C.c_size_t]
    out = C.create_string_buffer(raw)
    if run(out, raw, body, len(body)) != raw:
        raise ValueError("the compressed bundle is damaged")
    return out.raw, base + total


def _entries(data: bytes, base: int = 0) -> tuple[list[tuple[str, bytes]], int]:
    """(target, code object) of each device entry of a plain bundle that begins at base, and where it ends."""
    (n,) = struct.unpack_from("<Q", data, base + 24)
    out: list[tuple[str, bytes]] = []
    codes: dict[tuple[int, int], bytes] = {}
    at, end, total = base + 32, base + 32, 0
    for _ in range(min(n, 4096)):
        off, size, length = struct.unpack_from("<QQQ", data, at)
        name = data[at + 24 : at + 24 + length].decode(errors="replace")
        at += 24 + length
        m = re.search(r"gfx[0-9a-z-]+", name)
        if length >= 256 or base + off + size > len(data):
            raise ValueError(f"the entry {name[:80]!r} of the bundle lies outside of the file")
        end = max(end, base + off + size)
        if not m or not size:
            continue
        if (off, size) not in codes:
            total += size
            if total > 2 * (end - base):
                raise ValueError("the entries of the bundle share bytes of the file")
            codes[off, size] = data[base + off : base + off + size]
        out.append((m[0], codes[off, size]))
    return out, max(at, end)


def _fat_section(data: bytes) -> bytes:
    """Section .hip_fatbin of a program or library for the host; empty without one."""
    shoff, (size, count, names) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<II4QIIQQ", data, shoff + i * size) for i in range(count)]
    for name, _, _, _, offset, length, *_ in heads if names < count else ():
        at = heads[names][4] + name
        if data[at : at + 12] == b".hip_fatbin\0":
            return data[offset : offset + length]
    return b""


def unbundle(source: str | os.PathLike[str] | bytes) -> list[tuple[str, bytes]]:
    """(target, code object) of each AMD code object in a file (a path, or its bytes).

    The file is an offload bundle (what ``clang -x hip --offload-device-only`` writes), a compressed one, or a program
    or library with such bundles in it. Anything else is taken for a code object itself; its target is "" where it names
    no chip that is simulated. Raises ValueError when a bundle is malformed."""
    data = read(source)
    try:
        if data[:4] == _PACKED:
            return _entries(_unpack(data)[0])[0]
        if data.startswith(_PLAIN):
            return _entries(data)[0]
        if data[:6] != b"\x7fELF\2\1" or data[18:20] == b"\xe0\0" or not (fat := _fat_section(data)):
            return [(_elf_target(data), data)]
        out, at = [], 0
        while m := _START.search(fat, at):  # from the end of each: its inside may look like the start of another
            if m[0][:4] == _PACKED:
                inner, at = _unpack(fat, m.start())
                out += _entries(inner)[0]
            else:
                more, at = _entries(fat, m.start())
                out += more
        return out
    except (struct.error, OverflowError):
        raise ValueError("the file is cut off or malformed: a header points outside of it") from None
