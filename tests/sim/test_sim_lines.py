"""Source lines in reports: .debug_line of DWARF 4 and 5, as the assembler writes it."""

from __future__ import annotations

import struct
import subprocess

import pytest
import simlib
from simlib import link, llvm_mc, sections

sim = pytest.importorskip("tilelang.sim")

SOURCE = """.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.p2align 8
k:
  s_nop 0

  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  global_store_dword v[4:5], v0, off
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_accum_offset 8
.end_amdhsa_kernel
"""
LINES = [5, 7, 8, 9, 10]
TEXT_AT = 0x2000  # where simlib.link puts the code


def with_debug(tmp_path, version: int) -> bytes:
    """A code object whose debug sections are relocated as a linker does."""
    src, obj = tmp_path / "kernel.s", tmp_path / "k.o"
    src.write_text(SOURCE)
    cmd = [llvm_mc(), "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj", "-g", f"-dwarf-version={version}"]
    subprocess.run([*cmd, "-o", str(obj), str(src)], check=True)
    sec = sections(obj.read_bytes())
    line = bytearray(sec[".debug_line"])
    rela = sec[".rela.debug_line"]
    for i in range(len(rela) // 24):
        off, info, add = struct.unpack_from("<QQq", rela, 24 * i)
        kind = info & 0xFFFFFFFF
        if kind == 3:  # ABS64: the address of an instruction
            struct.pack_into("<Q", line, off, TEXT_AT + add)
        elif kind == 6:  # ABS32: an offset in .debug_line_str
            struct.pack_into("<I", line, off, add)
        else:
            raise AssertionError(kind)
    debug = {n: sec[n] for n in (".debug_line_str", ".debug_str") if n in sec}
    return link({"k": (sec[".text"], sec[".rodata"][:64], [])}, debug={".debug_line": bytes(line), **debug})


@pytest.mark.parametrize("version", [4, 5])
def test_lines_of_instructions_and_reports(tmp_path, version):
    dev = sim.Device(threads=1)
    k = dev.load(with_debug(tmp_path, version)).kernels["k"]
    rows = k.disassembly()
    assert [int(line.rsplit(":", 1)[1]) for _, _, line in rows] == LINES
    assert all(line.rsplit(":", 1)[0].endswith("kernel.s") for _, _, line in rows)
    with pytest.raises(sim.SimulatorFault) as e:
        k.launch(1, 64)
    assert e.value.reports[0].line.endswith("kernel.s:9")
    assert "kernel.s:9" in str(e.value)


def test_broken_line_tables_are_ignored(tmp_path):
    dev = sim.Device(threads=1)
    good = with_debug(tmp_path, 5)
    at = good.index(b".debug_line\0")
    assert at > 0
    sec = sections(good)[".debug_line"]
    start = good.index(sec)
    for i in range(0, len(sec)):
        for value in (0, 0x7F, 0xFF):
            data = bytearray(good)
            data[start + i] = value
            k = dev.load(bytes(data)).kernels["k"]
            assert len(k.disassembly()) == 5  # lines may be wrong or missing, never a crash
            k._module.unload()
    k = dev.load(simlib.code_object("s_nop 0")).kernels["k"]
    assert [line for _, _, line in k.disassembly()] == [None, None]
