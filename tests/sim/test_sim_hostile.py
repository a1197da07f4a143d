"""Hostile files: errors, never a crash, and neither much time nor much memory for a small file."""

from __future__ import annotations

import ctypes as C
import os
import random
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from simlib import ADD, BUF, Arg, code_object
from test_sim_bundle import BOTH, FILES, GFX942, bundle, packed, program

sim = pytest.importorskip("tilelang.sim")

SECONDS, MIB = 5.0, 512
"""Far more than any file here takes (milliseconds), far less than what was taken before."""


def peak() -> int:
    """MiB of the process at its most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """The block takes less than SECONDS of the processor and MIB of memory."""
    before, start = peak(), time.process_time()
    yield
    used, grown = time.process_time() - start, peak() - before
    limit = MIB if not os.environ.get("TILELANG_SANITIZED") else 8 * MIB  # sanitizers keep what was freed
    assert used < SECONDS and grown < limit, f"{what}: {used:.1f} s, {grown} MiB"


def all_of(data: bytes) -> None:
    """What can be asked of a file without running it. Raises ValueError where it is malformed."""
    codes = sim.unbundle(data)
    sim.verify(data)
    dev = sim.Device(next((t for t, _ in codes if t.startswith("gfx9") and "generic" not in t), "gfx942"), threads=1)
    for kernel in dev.load(data).kernels.values():
        assert kernel.name == "" or kernel.resources["vgprs"] >= 0
        kernel.disassembly()


# ---- bundles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_a_small_packed_bundle_that_claims_to_be_large(version):
    data = bytearray(packed(BOTH, version))
    struct.pack_into("<I" if version == 2 else "<Q", data, 12 if version == 2 else 16, 0xFFFFFFF0)
    with bounded("a claim of 4 GiB"), pytest.raises(ValueError, match="4294967280 bytes in"):
        sim.unbundle(bytes(data))


def test_offsets_beyond_any_file():
    host = bytearray(program(BOTH))
    struct.pack_into("<Q", host, 40, 2**64 - 1)  # the section headers
    with pytest.raises(ValueError, match="malformed"):
        sim.unbundle(bytes(host))
    for field, value in ((32, 2**64 - 8), (40, 2**63), (48, 2**64 - 1), (24, 2**64 - 1)):
        data = bytearray(BOTH)
        struct.pack_into("<Q", data, field, value)
        with pytest.raises(ValueError):
            sim.unbundle(bytes(data))


def test_entries_that_share_bytes():
    """Thousands of entries over one body would be thousands of copies of it."""
    n, body = 4096, bytes(200_000)
    at = 32 + n * (24 + 6)
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", n)
    rows = b"".join(struct.pack("<QQQ", at + i, len(body) - n, 6) + b"gfx942" for i in range(n))
    with bounded("shared bytes"), pytest.raises(ValueError, match="share bytes"):
        sim.unbundle(head + rows + body)
    same = bundle(("hip-gfx942", GFX942), ("hip-gfx950", b""))
    twice = bytearray(same)
    twice[32 + 24 + 10 : 32 + 24 + 10 + 16] = same[32:48]  # the second entry is the first one's bytes: no fault
    assert [c for _, c in sim.unbundle(bytes(twice))] == [GFX942, GFX942]


def test_a_packed_bundle_whose_body_looks_like_another():
    inner = b"CCOB\2\0\1\0" + bytes(32)
    outer = bytearray(packed(BOTH, 3))
    outer += inner  # behind the frame, within the size that the header says
    struct.pack_into("<Q", outer, 8, len(outer))
    with pytest.raises(ValueError, match="damaged"):  # zstd does not know it either
        sim.unbundle(program(bytes(outer)))
    assert len(sim.unbundle(program(packed(BOTH, 3) + packed(BOTH, 2)))) == 6


def test_damaged_bundles():
    """Mutations of every form: a result or ValueError."""
    seed, good, bad = 4, 0, 0
    rng = random.Random(seed)
    odd = [0, 1, 0xFF, 0xFFFF, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
    forms = [make() for make in FILES.values()]
    with bounded("damaged bundles"):
        for _ in range(3000):
            data = bytearray(rng.choice(forms))
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(min(len(data), 512) if rng.random() < 0.8 else len(data))
                if rng.random() < 0.5:
                    data[at] = rng.randrange(256)
                else:
                    data[at : at + 8] = struct.pack("<Q", rng.choice(odd))
            if rng.random() < 0.1:
                del data[rng.randrange(len(data)) :]
            try:
                assert all(isinstance(t, str) and isinstance(c, bytes) for t, c in sim.unbundle(bytes(data)))
                good += 1
            except ValueError:
                bad += 1
    print(f"seed {seed}: {good} read, {bad} refused")
    assert good > 100 and bad > 100


# ---- code objects -------------------------------------------------------------------------------------------------

GOOD = code_object(ADD, (BUF, BUF, Arg(4, name="c")))


def headers(data: bytes) -> list[tuple[int, ...]]:
    """(offset of the header, type, flags, offset, vaddr, paddr, filesz, memsz) of each segment."""
    at, n = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    return [(at + 56 * i, *struct.unpack_from("<II5Q", data, at + 56 * i)) for i in range(n)]


@pytest.mark.parametrize("megabytes", [16, 1000, 4000])
def test_code_of_a_size_that_the_file_does_not_have(megabytes):
    """Zeros are instructions: the tables and listings of code are as long as it."""
    data = bytearray(GOOD)
    at = next(h for h in headers(GOOD) if h[1] == 1 and h[2] & 1)[0]
    struct.pack_into("<Q", data, at + 40, megabytes << 20)
    with bounded("code without bytes"):
        for f in (sim.verify, sim.Device("gfx942", threads=1).load):
            with pytest.raises(ValueError, match="executable segments span"):
                f(bytes(data))


def test_segments_that_share_bytes():
    """A thousand segments of one piece of the file."""
    n, piece = 200, 1 << 20
    data = bytearray(64 + 56 * n)
    data[:64] = GOOD[:64]
    struct.pack_into("<QQ", data, 32, 64, 0)
    struct.pack_into("<HHHH", data, 54, 56, n, 64, 0)
    for i in range(n):
        struct.pack_into("<II6Q", data, 64 + 56 * i, 1, 4, len(data), i * piece, 0, piece, piece, 4096)
    with bounded("shared segments"), pytest.raises(ValueError, match="share bytes of the file"):
        sim.verify(bytes(data) + bytes(piece))


def elf_with_symbols(names: bytes, symbols: list[tuple[int, int, int, int]], copies: int = 1) -> bytes:
    """GOOD with other symbols: (name's offset, type, value, size); its table is named by several sections."""
    data = bytearray(GOOD)
    table = bytes(24) + b"".join(struct.pack("<IBBHQQ", n, t, 0, 1, v, s) for n, t, v, s in symbols)
    at = len(data)
    data += table + names
    rows = [(0,) * 10]
    rows += [(0, 11, 0, 0, at, len(table), 1 + copies, 0, 8, 24)] * copies
    rows.append((0, 3, 0, 0, at + len(table), len(names), 0, 0, 1, 0))
    struct.pack_into("<Q", data, 40, len(data))
    struct.pack_into("<HHH", data, 58, 64, len(rows), 0)
    return bytes(data) + b"".join(struct.pack("<II4QIIQQ", *r) for r in rows)


def test_symbol_tables_that_share_bytes():
    data = elf_with_symbols(b"\0k\0", [(1, 2, 0x2000, 4)] * 500, copies=300)
    with bounded("shared tables"), pytest.raises(ValueError, match="symbol tables share"):
        sim.verify(data)


def test_names_that_share_bytes():
    """Names that are tails of one long one: kept once, not copied, and only so many of them."""
    n = 20_000
    data = elf_with_symbols(b"\0" + b"x" * n + b"\0", [(1 + i, 2, 0x2000, 4) for i in range(n)])
    with bounded("shared names"), pytest.raises(ValueError, match="names of the symbols share"):
        sim.verify(data)


def test_functions_that_lie_over_each_other():
    body = "\n".join(["s_nop 0"] * 8000)
    start = 0x2000
    code = code_object(body, (BUF,))
    global GOOD
    before, GOOD = GOOD, code
    try:
        names = b"\0" + b"".join(b"f%d\0" % i for i in range(2000))
        at, symbols = 1, []
        for i in range(2000):
            symbols.append((at, 2, start + 4 * i, 4 * (8000 - i)))
            at = names.index(b"\0", at) + 1
        data = elf_with_symbols(names + b"k.kd\0", [*symbols, (len(names), 1, 0x400, 64)])
    finally:
        GOOD = before
    with bounded("functions over each other"), pytest.raises(ValueError, match="over each other"):
        sim.verify(data)


def test_notes_that_share_bytes():
    n = 2000
    data = bytearray(64 + 56 * n)
    data[:64] = GOOD[:64]
    struct.pack_into("<QQ", data, 32, 64, 0)
    struct.pack_into("<HHHH", data, 54, 56, n, 64, 0)
    note = struct.pack("<III", 7, 1 << 20, 32) + b"AMDGPU\0\0" + b"\x81\xa1x\xdd" + struct.pack(">I", (1 << 20) - 8)
    note += bytes((1 << 20) - 8)
    code = next(h for h in headers(GOOD) if h[1] == 1 and h[2] & 1)
    struct.pack_into("<II6Q", data, 64, 1, 5, 0, 0, 0, code[6], code[6], 4096)
    for i in range(1, n):
        struct.pack_into("<II6Q", data, 64 + 56 * i, 4, 4, len(data), 0, 0, len(note), len(note), 4)
    with bounded("shared notes"), pytest.raises(ValueError, match="note segments share"):
        sim.verify(bytes(data) + note)


def test_file_names_of_line_tables_that_share_bytes():
    """Twenty thousand files, each named by the same long string: what comes after the limit is not read."""
    n = 20_000
    tables = b"\0\0" + bytes([1, 1, 0x1F]) + bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14]) + bytes(4 * n)
    head = bytes([4, 1, 1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + tables
    program = b"\0\x09\2" + struct.pack("<Q", 0x2000) + b"\1\2\4\0\1\1"
    unit = struct.pack("<HBBI", 5, 8, 0, len(head)) + head + program
    debug = {".debug_line": struct.pack("<I", len(unit)) + unit, ".debug_line_str": b"x" * 100_000 + b"\0"}
    data = code_object("s_nop 0", (BUF,), debug=debug)
    with bounded("file names"):
        rows = sim.Device("gfx942", threads=1).load(data).kernels["k"].disassembly()
    assert rows and rows[0][2] is None
    debug[".debug_line_str"] = b"x.py\0"
    rows = sim.Device("gfx942", threads=1).load(code_object("s_nop 0", (BUF,), debug=debug)).kernels["k"].disassembly()
    assert rows[0][2] == "x.py:1"


def test_a_missing_wait_is_told_once_a_block():
    """Not again for each later instruction that reads the register."""
    body = "global_load_dword v1, v0, s[0:1]\n" + "v_add_u32 v2, v1, v2\n" * 1000
    found = [f for f in sim.verify(code_object(body, (BUF,))) if f.kind == "wait"]
    assert len(found) == 1 and "v1 is read" in found[0].message


def patched_descriptor(field: int, value: int) -> bytes:
    """GOOD with another dword in its kernel's descriptor."""
    data = bytearray(GOOD)
    struct.pack_into("<I", data, next(h for h in headers(GOOD) if h[1] == 1 and h[2] == 4)[3] + field, value)
    return bytes(data)


@pytest.mark.parametrize("size", [200_000, 1 << 25, 0x7FFFFFF0, 0xFFFFFFF8])
@pytest.mark.parametrize("checks", ["none", "all"])
def test_scratch_beyond_what_a_lane_has(size, checks):
    kernel = sim.Device("gfx942", threads=1, checks=checks).load(patched_descriptor(4, size)).kernels["k"]
    with (
        bounded("scratch"),
        pytest.raises(ValueError, match=f"needs {size} bytes of scratch; a lane on gfx942 has 131072"),
    ):
        kernel.launch(1, 64, [0, 0, 0])


def test_arguments_of_a_size_that_cannot_be():
    """In the descriptor, and in the metadata: a launch would make memory for them."""
    for data in (
        patched_descriptor(8, 1 << 24),
        code_object(ADD, (BUF,), meta_extra={".kernarg_segment_size": 0xFFFFFFF0}),
    ):
        with pytest.raises(ValueError, match="bytes of arguments"):
            sim.Device("gfx942", threads=1).load(data)


def test_packed_arguments():
    """HIP: the list of a packed buffer without a size, with one far larger than the kernel's, and without an end. In a
    process of its own: other tests ask for one without a HIP library."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.dirname(__file__), *sys.path]))
    env.pop("TILELANG_SIM_DEVICES", None)
    code = "import test_sim_hostile as t; t.packed_arguments(); print('done')"
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.stdout == "done\n", run.stderr


def packed_arguments() -> None:
    lib = C.CDLL(os.path.join(sim.libdir(), "libamdhip64.so"))
    module, function, graph, node = C.c_void_p(), C.c_void_p(), C.c_void_p(), C.c_void_p()
    code = code_object("s_endpgm", (BUF,))
    assert lib.hipModuleLoadData(C.byref(module), code) == 0
    assert lib.hipModuleGetFunction(C.byref(function), module, b"k") == 0
    assert lib.hipGraphCreate(C.byref(graph), 0) == 0
    buffer, size = C.create_string_buffer(64), C.c_size_t(1 << 60)
    invalid = 1

    class Params(C.Structure):
        _fields_ = [("block", C.c_uint * 3), ("extra", C.c_void_p), ("function", C.c_void_p)]
        _fields_ += [("grid", C.c_uint * 3), ("params", C.c_void_p), ("lds", C.c_uint)]

    def both(*items: int) -> tuple[int, int]:
        extra = (C.c_void_p * 18)(*items)
        launched = lib.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, None, extra)
        p = Params((C.c_uint * 3)(64, 1, 1), C.addressof(extra), function.value, (C.c_uint * 3)(1, 1, 1), None, 0)
        return launched, lib.hipGraphAddKernelNode(C.byref(node), graph, None, C.c_size_t(0), C.byref(p))

    at, n = C.addressof(buffer), C.addressof(size)
    assert both(1, at, 2, 0, 3) == (invalid, invalid)
    assert both(1, 0, 2, n, 3) == (invalid, invalid)
    assert both(7, at, 3) == (invalid, invalid)
    assert both(*([1, at] * 9)) == (invalid, invalid)
    assert both(1, at, 2, n, 3) == (0, 0)  # what the kernel has is taken
    assert lib.hipGraphDestroy(graph) == 0 and lib.hipModuleUnload(module) == 0


def test_damaged_code_objects():
    """Everything that can be asked of mutated files: an answer or ValueError."""
    seed, good, bad = 9, 0, 0
    rng = random.Random(seed)
    with bounded("damaged code objects"):
        for _ in range(400):
            data = bytearray(GOOD)
            for _ in range(rng.randint(1, 3)):
                at = rng.randrange(len(data))
                data[at] = rng.choice([0, 1, 0x7F, 0xFF, rng.randrange(256)])
            try:
                all_of(bytes(data))
                good += 1
            except ValueError:
                bad += 1
    print(f"seed {seed}: {good} read, {bad} refused")
    assert good > 20 and bad > 20
