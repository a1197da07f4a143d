"""Files that carry code objects: offload bundles (plain, compressed), any file with these or code objects in it."""

from __future__ import annotations

import ctypes as C
import functools
import os
import re
import struct

from tilelang.sim import _native as nat

_PLAIN, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_START = re.compile(re.escape(_PLAIN) + rb"|CCOB[\x02\x03]\x00\x01\x00|\x7fELF\x02\x01\x01\x40")
"""A bundle, a compressed one, or a code object (ELF, 64 bits, little-endian, HSA)."""
_HEADERS = 1 << 20
"""The most headers of code objects that are looked at in a file."""
_LIMIT = 1 << 32
_RATIO = 1 << 15
"""The most that zstd makes of a byte: blocks of 128 KiB in four bytes."""


def read(source: str | os.PathLike[str] | bytes) -> bytes:
    """The bytes of a path, or bytes themselves."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, int):
        raise TypeError(f"a path or bytes are needed, not {source!r}")
    with open(source, "rb") as f:
        return f.read()


@functools.cache
def chips_of(target: str) -> tuple[str, ...]:
    """The simulated chips on which code for a target runs; nothing for one that is not simulated."""
    lib = nat.library()
    names = [n for n in map(lib.tlsim_target_name, range(256)) if n and lib.tlsim_arch_available(n)]
    return tuple(n.decode() for n in names if lib.tlsim_target_suits(target.encode(), n))


def _elf_target(data: bytes, at: int = 0) -> str:
    name = nat.library().tlsim_target_name(data[at + 48]) if len(data) >= at + 64 else None
    return name.decode() if name else ""


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


def _fat_section(data: bytes) -> tuple[int, int]:
    """Where section .hip_fatbin of a program or library for the host begins and ends; (0, 0) without one."""
    shoff, (size, count, names) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<II4QIIQQ", data, shoff + i * size) for i in range(count)]
    for name, _, _, _, offset, length, *_ in heads if names < count else ():
        at = heads[names][4] + name
        if data[at : at + 12] == b".hip_fatbin\0":
            return min(offset, len(data)), min(offset + length, len(data))
    return 0, 0


class _Scan:
    """Everything of ours in a part of a file. What only looks like the start of something is passed by, but in a
    section that is for bundles (``strict``) it is an error."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.headers = 0
        self.found: list[tuple[str, bytes]] = []

    def part(self, at: int, end: int, strict: bool = False) -> None:
        """Searches bytes at..end, from the end of each find: its inside may look like the start of another."""
        data = self.data[at:end] if strict else self.data
        at, end = (0, end - at) if strict else (at, end)
        while m := _START.search(data, at, end):
            at = m.end()
            try:
                codes, at = self._one(data, m)
                self.found += codes
            except (ValueError, struct.error, OverflowError):
                if strict:
                    raise

    def _one(self, data: bytes, m: re.Match[bytes]) -> tuple[list[tuple[str, bytes]], int]:
        if m[0][:4] == b"\x7fELF":
            end = self._elf_end(data, m.start())
            return [(_elf_target(data, m.start()), data[m.start() : end])], end
        if m[0][:4] != _PACKED:
            return _entries(data, m.start())
        inner, end = _unpack(data, m.start())
        return _entries(inner)[0], end

    def _elf_end(self, data: bytes, at: int) -> int:
        """Where a linked code object ends by its headers. ValueError when it is none, or not all there."""
        kind, machine = struct.unpack_from("<HH", data, at + 16)
        phoff, shoff = struct.unpack_from("<QQ", data, at + 32)
        phnum, _, shnum = struct.unpack_from("<HHH", data, at + 56)
        self.headers += phnum + shnum
        if (kind, machine) != (3, 224) or self.headers > _HEADERS:
            raise ValueError("no linked code object for AMD GPUs")
        ends = [phoff + phnum * 56, shoff + shnum * 64, 64]
        for i in range(phnum):
            offset, _, _, size = struct.unpack_from("<4Q", data, at + phoff + i * 56 + 8)
            ends.append(offset + size)
        for i in range(shnum):
            (what,) = struct.unpack_from("<I", data, at + shoff + i * 64 + 4)
            offset, size = struct.unpack_from("<QQ", data, at + shoff + i * 64 + 24)
            ends.append(0 if what == 8 else offset + size)
        if at + max(ends) > len(data):
            raise ValueError("the code object is cut off")
        return at + max(ends)


def _kind(data: bytes) -> str:
    """What a file without code objects is."""
    if not data:
        return "an empty file"
    if data[:4] == b"\x7fELF":
        machine = int.from_bytes(data[18:20], "little")
        name = {62: "x86-64", 183: "AArch64", 190: "CUDA"}.get(machine, f"machine {machine}")
        return f"an ELF file for {name} without an AMDGPU code object in it"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text and not re.search(r"[\0-\x08\x0e-\x1f]", text):
        return "text; assembly and source are compiled first (clang -x hip, llvm-mc and ld.lld)"
    if data[:4] == b"BC\xc0\xde":
        return "LLVM bitcode, which is compiled first (llc, ld.lld)"
    return f"neither an ELF file nor an offload bundle, and nothing of both is in it ({len(data)} bytes)"


def unbundle(source: str | os.PathLike[str] | bytes) -> list[tuple[str, bytes]]:
    """(target, code object) of each AMD code object in a file (a path, or its bytes).

    The file is a code object, an offload bundle (what ``clang -x hip --offload-device-only`` writes), a compressed one,
    or any file with such bundles or linked code objects in it as they are: a program or library of the host, an
    archive. Not found is what a file packs in a way of its own (zip, Python's ``.pyc``). The target is "gfx942", ...,
    also of chips that are not simulated, or "" where the number of the chip is not known. Raises ValueError when
    nothing is found, or a bundle is malformed."""
    data = read(source)
    try:
        if data[:4] == _PACKED:
            return _entries(_unpack(data)[0])[0]
        if data.startswith(_PLAIN):
            return _entries(data)[0]
        if data[:4] == b"\x7fELF" and data[18:20] in (b"\xe0\0", b"\xe0", b""):
            return [(_elf_target(data), data)]
        lo, hi = _fat_section(data) if data[:6] == b"\x7fELF\2\1" else (0, 0)
        scan = _Scan(data)
        scan.part(0, lo)
        scan.part(lo, hi, strict=True)
        scan.part(hi, len(data))
    except (struct.error, OverflowError):
        raise ValueError("the file is cut off or malformed: a header points outside of it") from None
    if not scan.found:
        raise ValueError(f"cannot load a code object: this is {_kind(data)}")
    return scan.found
