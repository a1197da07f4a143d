"""Code objects in offload bundles, in compressed ones and in programs; kernels without metadata."""

from __future__ import annotations

import ctypes as C
import json
import struct
import time

import numpy as np
import pytest
from simlib import ADD, BUF, Arg, code_object

sim = pytest.importorskip("tilelang.sim")
cli = pytest.importorskip("tilelang.sim.__main__")

GFX942 = code_object(ADD, (BUF, BUF, Arg(4, name="c")))
GFX1201 = code_object("s_nop 0", arch="gfx1201", wave=32)


def bundle(*entries: tuple[str, bytes]) -> bytes:
    head, at = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), 4096
    body = b""
    for name, data in entries:
        head += struct.pack("<QQQ", at + len(body), len(data), len(name)) + name.encode()
        body += data
    return head.ljust(at, b"\0") + body


BOTH = bundle(
    ("host-x86_64-unknown-linux-gnu-", b""),
    ("hipv4-amdgcn-amd-amdhsa--gfx1030", b"unknown"),
    ("hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", GFX942),
    ("hipv4-amdgcn-amd-amdhsa--gfx1201", GFX1201),
)


def packed(data: bytes, version: int) -> bytes:
    try:
        lib = C.CDLL("libzstd.so.1")
    except OSError:
        pytest.skip("no libzstd")
    out = C.create_string_buffer(len(data) + 1024)
    lib.ZSTD_compress.restype = C.c_size_t
    n = lib.ZSTD_compress(out, C.c_size_t(len(out)), data, C.c_size_t(len(data)), 3)
    head, sizes = (24, "<II") if version == 2 else (32, "<QQ")
    return b"CCOB" + struct.pack("<HH", version, 1) + struct.pack(sizes, head + n, len(data)) + bytes(8) + out.raw[:n]


def program(fat: bytes) -> bytes:
    """A host's ELF file with a section .hip_fatbin."""
    names = b"\0.hip_fatbin\0.shstrtab\0"
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64, 0, 64, 56, 0, 64, 3, 2)
    at = 64 + 3 * 64
    rows = [(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), (1, 1, 2, 0, at + len(names), len(fat), 0, 0, 1, 0)]
    rows.append((13, 3, 0, 0, at, len(names), 0, 0, 1, 0))
    return head + b"".join(struct.pack("<II4QIIQQ", *r) for r in rows) + names + fat


FILES = {
    "plain": lambda: BOTH,
    "zstd2": lambda: packed(BOTH, 2),
    "zstd3": lambda: packed(BOTH, 3),
    "program": lambda: program(bytes(64) + BOTH),
    "program of packed ones": lambda: program(packed(BOTH, 3)),
}


@pytest.mark.parametrize("kind", FILES)
def test_unbundle(kind, tmp_path, capsys):
    data = FILES[kind]()
    codes = sim.unbundle(data)
    assert [t for t, _ in codes] == ["gfx1030", "gfx942", "gfx1201"] and codes[1][1] == GFX942
    assert list(sim.Device("gfx1201").load(data).kernels) == ["k"] and sim.verify(data) == []
    path = tmp_path / "file"
    path.write_bytes(data)
    assert cli.main([str(path), "--list"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("for gfx942, 1 kernel\n") and "gfx942, gfx1201" in err
    assert cli.main([str(path), "--disasm", "--arch", "gfx1201"]) == 0
    out, err = capsys.readouterr()
    assert "s_nop" in out and not err
    assert cli.main([str(path), "--list", "--arch", "gfx1100"]) == 2
    assert "no code for gfx1100; it is for gfx1030, gfx942, gfx1201" in capsys.readouterr().err


def test_starts_inside_of_bundles():
    """Bytes inside of a bundle that look like the start of another (zstd keeps the magic as it is) are skipped."""
    magic = b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 40
    noise = np.random.default_rng(1).bytes(200000) + magic + b"CCOB\3\0\1\0" + b"\xfe" * 16
    odd = bundle(("hipv4-amdgcn-amd-amdhsa--gfx90a", noise), ("hipv4-amdgcn-amd-amdhsa--gfx942", GFX942))
    assert magic[:24] in packed(odd, 3)[32:]  # not compressed away
    fat = packed(odd, 3) + bytes(100) + odd + bytes(24) + packed(BOTH, 2)
    want = ["gfx90a", "gfx942"] * 2 + ["gfx1030", "gfx942", "gfx1201"]
    assert [t for t, _ in sim.unbundle(program(fat))] == want
    with pytest.raises(ValueError, match="of the bundle lies outside") as e:
        sim.unbundle(magic[:24] + struct.pack("<QQQQ", 1, 1 << 40, 8, 5000) + b"\xffgfx942" * 1000)
    assert len(str(e.value)) < 600
    with pytest.raises(ValueError, match="compressed bundle of"):
        sim.unbundle(packed(BOTH, 3)[:-10])


BAD1201 = code_object("s_load_b32 s2, s[0:1], 0\ns_add_co_u32 s3, s2, 1", arch="gfx1201", wave=32)


def test_verify_of_all_chips(tmp_path, capsys):
    """Each finding says of which chip it is; --arch chooses one chip."""
    data = bundle(("hip-amdgcn-amd-amdhsa--gfx942", GFX942), ("hip-amdgcn-amd-amdhsa--gfx1201", BAD1201))
    path = tmp_path / "file"
    path.write_bytes(data)
    found = sim.verify(data)
    assert [(f.kind, f.arch) for f in found] == [("wait", "gfx1201")] and "gfx1201" in str(found[0])
    assert sim.verify(data, arch="gfx942") == [] and sim.verify(data, arch="gfx1201") == found
    with pytest.raises(ValueError, match="no code object for gfx950; there are: gfx942, gfx1201"):
        sim.verify(data, arch="gfx950")
    assert cli.main([str(path), "--verify"]) == 1
    assert capsys.readouterr().out == f"{found[0]}\n"
    assert cli.main([str(path), "--verify", "--arch", "gfx942"]) == 0
    assert capsys.readouterr().out == "no findings\n"
    assert cli.main([str(path), "--verify", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["chips"] == ["gfx942", "gfx1201"] and [f["arch"] for f in told["findings"]] == ["gfx1201"]
    assert cli.main([str(path), "--verify", "--arch", "gfx950"]) == 2
    assert f"{path}: no code object for gfx950" in capsys.readouterr().err


def test_verify_of_a_generic_target():
    """Looked at for each chip that runs it."""
    code = bytearray(code_object("s_load_dword s2, s[0:1], 0\ns_add_u32 s3, s2, 1"))
    code[8], code[48:52] = 4, struct.pack("<I", 0x5F | 1 << 24)  # code object v6, gfx9-4-generic
    assert [(f.kind, f.arch) for f in sim.verify(bytes(code))] == [("wait", "gfx942"), ("wait", "gfx950")]
    assert [f.arch for f in sim.verify(bytes(code), arch="gfx950")] == ["gfx950"]


def around(*codes: bytes) -> bytes:
    """Code objects as they are in a host's ELF file, between strings that only look like starts of something."""
    lure = b"__CLANG_OFFLOAD_BUNDLE__\0%s\0CCOB\2\0\1\0\0\0CCOB\x7fELF\2\1\1\x40\2" + bytes(3)
    return b"\x7fELF\2\1\1".ljust(18, b"\0") + b"\x3e\0" + bytes(60) + lure + lure.join(codes) + lure


CONTAINERS = {
    "library": lambda: around(GFX942, GFX1201),
    "archive": lambda: b"!<arch>\n".ljust(68, b" ") + GFX942 + b"\n" + GFX1201,
    "anything": lambda: b"\0\1" + GFX942 + GFX1201,
    "beside bundles": lambda: around(GFX942, bundle(("hip-amdgcn-amd-amdhsa--gfx1201", GFX1201))),
    "beside a section": lambda: program(packed(bundle(("hip-amdgcn-amd-amdhsa--gfx942", GFX942)), 3)) + GFX1201,
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_code_objects_as_they_are(kind, tmp_path, capsys):
    """Programs and libraries that carry code objects without a bundle."""
    data = CONTAINERS[kind]()
    assert sim.unbundle(data) == [("gfx942", GFX942), ("gfx1201", GFX1201)]
    path = tmp_path / "file"
    path.write_bytes(data)
    assert sim.verify(path) == []
    for chip, text in (("gfx942", "v_add_u32"), ("gfx1201", "s_nop")):
        assert list(sim.Device(chip).load(path).kernels) == ["k"]
        assert cli.main([str(path), "--disasm", "--arch", chip]) == 0
        assert text in capsys.readouterr().out


def test_hostile_containers():
    """Many starts with many headers each cost a bounded time; one that is cut off is none."""
    start = time.perf_counter()
    head = GFX942[:54] + struct.pack("<HHHHH", 56, 65535, 64, 65535, 0)
    with pytest.raises(ValueError, match="cannot load a code object"):
        sim.unbundle(b"\0" + head * 100000 + bytes(1 << 23))
    assert time.perf_counter() - start < 20
    with pytest.raises(ValueError, match="without an AMDGPU code object"):
        sim.unbundle(around(GFX942)[:900])


def test_several_for_one_chip(tmp_path, capsys):
    """A program of two translation units."""
    two = program(bundle(("hip-amdgcn-amd-amdhsa--gfx942", GFX942)) + bytes(100) + BOTH)
    assert [t for t, _ in sim.unbundle(two)].count("gfx942") == 2
    with pytest.raises(ValueError, match="2 code objects for gfx942"):
        sim.Device("gfx942").load(two)
    (tmp_path / "two").write_bytes(two)
    assert cli.main([str(tmp_path / "two"), "--list", "--kernel", "k", "--arch", "gfx942"]) == 0
    assert "note: 2 code objects hold a kernel k; the first is taken" in capsys.readouterr().err


def test_malformed():
    """A cut file is an error of its own, never another exception."""
    for data in (BOTH, FILES["zstd3"](), program(BOTH)):
        for n in [*range(4, 300, 7), 2000, len(data) - 1]:
            try:
                sim.unbundle(data[:n])
            except ValueError as e:
                assert str(e)
    assert sim.unbundle(GFX942) == [("gfx942", GFX942)]
    with pytest.raises(ValueError, match="outside of the file"):
        sim.unbundle(BOTH[:-1])


def test_branches_and_names(tmp_path, capsys):
    path = tmp_path / "k"
    path.write_bytes(code_object("s_branch over\nagain: s_nop 1\nover: s_cbranch_scc1 again" + ADD, (BUF, BUF, Arg(4))))
    assert cli.main([str(path), "--disasm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("; to 8") and lines[2].endswith("; to 4")
    args = ["--arg", "in:i32:64:ones", "--arg", "out:i32:60", "--arg", "i32:1"]
    assert cli.main([str(path), "--grid", "1", "--block", "64", *args]) == 1
    assert "'argument +8'" in capsys.readouterr().err


def test_save_without_suffix(tmp_path, capsys):
    path = tmp_path / "k"
    path.write_bytes(GFX942)
    args = ["--arg", "inout:i32:64:ones", "--arg", "out:i32:64", "--arg", "i32:1", "--save", str(tmp_path / "o")]
    assert cli.main([str(path), "--grid", "1", "--block", "64", *args]) == 0
    assert (np.load(tmp_path / "o.0.npy") == 1).all() and (np.load(tmp_path / "o.1.npy") == 2).all()


def test_without_metadata(tmp_path, capsys):
    """Bare assembly: what the descriptor tells is listed; arguments are laid out by their sizes."""
    path = tmp_path / "bare"
    path.write_bytes(GFX942.replace(b"AMDGPU\0", b"NOBODY\0"))
    assert cli.main([str(path), "--list"]) == 0
    assert "32 VGPRs" in (out := capsys.readouterr().out) and "no metadata" in out
    k = sim.Device("gfx942", checks="all").load(path).kernels["k"]
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    k.launch(1, 64, [x, out, np.int32(7)])
    assert (out == x + 7).all() and not k.has_metadata
    with pytest.raises(ValueError, match="descriptor gives 2[04] bytes of arguments"):
        k.launch(1, 64, [x, out, np.int32(7), None])


def test_wider_arguments_keep_the_sign():
    slot = sim.KernelArg("c", 16, 8, "by_value")
    assert cli.padded(np.int32(-2), slot, "") == (-2).to_bytes(8, "little", signed=True)
    assert cli.padded(np.uint32(0xFFFFFFFE), slot, "") == (0xFFFFFFFE).to_bytes(8, "little")
    assert cli.padded(np.float32(-1), slot, "") == np.float32(-1).tobytes() + bytes(4)


@pytest.mark.parametrize("chip", ["gfx1030", "gfx999", "", "gfx9-4-generic"])
def test_verify_of_a_chip_that_is_not_simulated(chip, tmp_path, capsys):
    with pytest.raises(ValueError, match=f"no simulated chip is called '{chip}'"):
        sim.verify(BOTH, arch=chip)
    path = tmp_path / "file"
    path.write_bytes(BOTH)
    assert cli.main([str(path), "--verify", "--arch", chip]) == 2
    assert f"{path}: no simulated chip is called '{chip}'" in capsys.readouterr().err
