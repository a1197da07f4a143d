"""Reports: address and buffer, unknown instructions, also for machines."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from simlib import BUF, assemble, code_object, hip_client, link

sim = pytest.importorskip("tilelang.sim")

UNDEFINED = "s_load_dwordx2 s[4:5], s[0:1], 0\n v_lshlrev_b32_e32 v1, 2, v0\n s_waitcnt lgkmcnt(0)\n"
LOADED = UNDEFINED + "global_load_dword v2, v1, s[4:5]\n s_waitcnt vmcnt(0)\n global_store_dword v1, v2, s[4:5]"


def faults(text, args=(), values=(), block=64, **kw):
    dev = sim.Device("gfx942", checks="all")
    kernel = dev.load(code_object(text, args, **kw)).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch((1, 1, 1), (block, 1, 1), [v(dev) if callable(v) else v for v in values])
    return e.value.reports


def test_buffer_of_a_report():
    """A report on global memory says where the address is, in a field and in the text."""
    mems = []
    r = faults(LOADED, (BUF,), [lambda dev: mems.append(dev.empty(256)) or mems[0]])[0]
    assert r.check == "init" and r.address == mems[0].address
    assert r.buffer.startswith("at offset 0 of hipMalloc") and "256 bytes" in r.buffer and r.buffer in str(r)
    r = faults(LOADED, (BUF,), [np.zeros(63, np.int32)])[0]
    assert r.check == "bounds" and "0 bytes after the end of" in r.buffer and str(r).count(r.buffer) <= 1


def test_addresses_of_zero():
    """Byte 0 of LDS and the null pointer are addresses."""
    text = "v_mov_b32_e32 v1, 0\n ds_write_b32 v1, v0\n s_waitcnt lgkmcnt(0)"
    r = faults(text, block=128, lds=256)[0]
    assert (r.check, r.address, r.buffer) == ("race", 0, None)
    r = faults("v_mov_b32_e32 v2, 0\n v_mov_b32_e32 v3, 0\n global_load_dword v4, v[2:3], off\n s_waitcnt vmcnt(0)")[0]
    assert (r.check, r.address) == ("bounds", 0)
    r = faults("s_cmp_eq_u32 s33, 0\n s_cbranch_scc1 0")[0]
    assert (r.check, r.address, r.buffer) == ("init", None, None)


def test_unknown_instruction():
    """It is named by its dword: in the report, the listing and by the verifier."""
    data = code_object("s_nop 0\n .long 0xfffffff3")
    r = faults("s_nop 0\n .long 0xfffffff3")[0]
    assert r.check == "illegal" and r.pc == 4 and "0xfffffff3" in r.message and ".long 0xfffffff3" in r.text
    kernel = sim.Device("gfx942").load(data).kernels["k"]
    assert kernel.disassembly()[1][1].startswith(".long 0xfffffff3 (")
    assert any("0xfffffff3" in f.message for f in sim.verify(data) if f.kind == "illegal")


def test_for_machines(tmp_path):
    """The file of a foreign host has the same fields."""
    path, co = tmp_path / "report", tmp_path / "k.hsaco"
    co.write_bytes(code_object(LOADED, (BUF,)))
    body = """
m, f = load(sys.argv[1])
p = malloc(256)
launch(f, (1, 1, 1), (64, 1, 1), p)
print("{}")
"""
    hip_client(body, co, TILELANG_SIM_REPORT=str(path), TILELANG_SIM_CHECK="all")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert (
        rows[0]["check"] == "init" and rows[0]["address"] and rows[0]["buffer"].startswith("at offset 0 of hipMalloc")
    )


def test_what_is_closed():
    """Memory, modules and kernels of a device that is closed, or of a module that is unloaded, are refused."""
    dev = sim.Device("gfx942")
    mem, module = dev.array(np.arange(4)), dev.load(code_object("s_nop 0"))
    kernel = module.kernels["k"]
    module.unload()
    with pytest.raises(ValueError, match="not loaded any more"):
        kernel.disassembly()
    dev.close()
    code = code_object("s_nop 0")
    for use in (mem.numpy, lambda: mem.write(np.arange(2)), lambda: dev.empty(4), lambda: dev.load(code),
                lambda: dev.counters, lambda: dev.progress):  # fmt: skip
        with pytest.raises(ValueError, match="this device has been closed"):
            use()
    mem.free()
    dev.cancel()
    dev.close()


def test_library_of_another_version(monkeypatch):
    """A library without our entry points is refused by name."""
    from tilelang.sim import _native

    path = pytest.importorskip("_ctypes").__file__
    monkeypatch.setenv("TILELANG_SIM_LIB", path)
    with pytest.raises(OSError, match=f"{path} belongs to another version"):
        _native.library.__wrapped__()


def test_for_machines_from_python(tmp_path, monkeypatch):
    """A launch from Python appends to the file, too, traced or not."""
    path = tmp_path / "report"
    monkeypatch.setenv("TILELANG_SIM_REPORT", str(path))
    kernel = sim.Device("gfx942").load(code_object(LOADED, (BUF,))).kernels["k"]
    for trace in (None, [0]):
        with pytest.raises(sim.SimulatorFault):
            kernel.launch(1, 64, [np.zeros(63, np.int32)], trace=trace)
    kernel.launch(1, 64, [np.zeros(64, np.int32)])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(r["check"], r["launch"], r["gave_up"], r["function"]) for r in rows[::2]] == [
        ("bounds", 1, False, "k"),
        ("bounds", 2, False, "k"),
    ]


@pytest.mark.parametrize("text", [UNDEFINED + "global_load_dword v2, v1, s[4:5]\n" * 100, LOADED])
def test_many_faults(text):
    """Reports are bounded, and say so when there may be more."""
    dev = sim.Device("gfx942", checks="all")
    kernel = dev.load(code_object("s_mov_b32 s3, 0\n" + text, (BUF,))).kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(1_000_000, 64, [np.zeros(1, np.int32)])
    assert 1 <= len(e.value.reports) <= 64 and sum(r.count for r in e.value.reports) <= 8192
    more = r"\nthe launch was given up when \d+ of 1000000 workgroups had ended, there may be more$"
    assert re.search(more, str(e.value))


CALL = """
__attribute__((device, noinline)) int before(const int *p, int i) { return p[i + 5]; }
extern "C" __attribute__((global)) void k(const int *a, int *o)
{ o[__builtin_amdgcn_workitem_id_x()] = before(a, __builtin_amdgcn_workitem_id_x()); }
"""


def test_called_functions(tmp_path):
    """A fault in a function that the kernel calls names it; its place may be before the kernel."""
    clang = shutil.which("clang-22") or pytest.skip("clang-22 is not installed")
    (tmp_path / "call.hip").write_text(CALL)
    flags = ["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-O2", "-g"]
    cmd = [clang, *flags, "--offload-arch=gfx942", "call.hip", "-o", "call.hsaco"]
    subprocess.run(cmd, check=True, cwd=tmp_path)
    kernel = sim.Device("gfx942").load(tmp_path / "call.hsaco").kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(1, 64, [np.zeros(64, np.int32), np.zeros(64, np.int32)])
    (r,) = e.value.reports
    assert r.function == "_Z6beforePKii" and r.kernel == "k" and r.pc < 0 and r.other_function == ""
    assert f"at -0x{-r.pc:x} in _Z6beforePKii: " in str(r) and r.line.endswith("call.hip:2")


def test_names_of_any_bytes(tmp_path, monkeypatch):
    """Names that are UTF-8 stay what they are, others are shown; the file and the verifier's answer are valid JSON."""
    path = tmp_path / "report"
    monkeypatch.setenv("TILELANG_SIM_REPORT", str(path))
    body = "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0\nglobal_load_dword v4, v[2:3], off\nv_add_u32 v4, v4, v4"
    data = link({"k\u00e4se_\u2603_\U0001f600": assemble(body)})
    broken = data.replace("\u2603".encode(), b"\xe2\x28\xa1")
    for code, name in ((data, "k\u00e4se_\u2603_\U0001f600"), (broken, "k\u00e4se_\ufffd(\ufffd_\U0001f600")):
        (kernel,) = sim.Device("gfx942").load(code).kernels.values()
        with pytest.raises(sim.SimulatorFault) as e:
            kernel.launch(1, 64)
        assert e.value.reports[0].kernel == kernel.name == name
        assert {f.kernel for f in sim.verify(code)} == {name}
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [r["kernel"] for r in rows] == ["k\u00e4se_\u2603_\U0001f600", "k\u00e4se_\ufffd(\ufffd_\U0001f600"]


@pytest.mark.parametrize("length", [39, 40, 300, 8191, 8192, 20000])
def test_long_names(length, tmp_path, monkeypatch):
    """A kernel's name has any length: machines get it whole (to 8191 bytes), texts for people lose its middle and
    nothing that comes after it."""
    path = tmp_path / "report"
    monkeypatch.setenv("TILELANG_SIM_REPORT", str(path))
    name = ("_ZN4tile6detail" + "Ab" * length)[: length - 4] + "_end"
    past = "s_load_dwordx16 s[4:19], s[0:1], 0x100\ns_waitcnt lgkmcnt(0)"
    code = link(
        {name: assemble(past + "\nv_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0\nglobal_store_dword v[2:3], v0, off")}
    )
    (kernel,) = sim.Device("gfx942", checks="all").load(code).kernels.values()
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(1, 64)
    reports = [r for r in e.value.reports if r.check == "bounds"]
    rows = [r for r in map(json.loads, path.read_text().splitlines()) if r["check"] == "bounds"]
    assert len(reports) == len(rows) == 2
    for r, row in zip(reports, rows):
        assert r.kernel == row["kernel"] == row["function"]
        assert r.kernel == name if length < 8192 else re.fullmatch("_ZN4tile.*A?b?\\.\\.\\.A?b?.*_end", r.kernel)
        lines = str(r).splitlines()
        assert max(map(len, lines)) < 400 and ", workgroup (0, 0, 0), wave 0" in str(r)
        assert any(line.startswith("  at +0x") and line.endswith(r.text) for line in lines)
        assert re.search("kernel _ZN4tile.*_end, workgroup", str(r)) and str(r) in row["details"] + "\n"
    buffer = reports[0].buffer
    assert re.fullmatch(r"\d+ bytes after the end of kernel arguments '_ZN4tile.*_end' \(0x\w+, 64 bytes\)", buffer)
    assert buffer in reports[0].message and reports[1].message.endswith("(lane 0)")
    with pytest.raises(ValueError, match="kernel _ZN4tile.*_end .* 65536"):
        kernel.launch(1, 64, lds_bytes=1 << 20)


def test_long_names_of_functions(tmp_path):
    clang = shutil.which("clang-22") or pytest.skip("clang-22 is not installed")
    name, folder = "before_" + "x" * 700, tmp_path / ("d" * 200) / ("e" * 200)
    folder.mkdir(parents=True)
    (folder / "call.hip").write_text(CALL.replace("before", name))
    flags = ["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-O2", "-g"]
    cmd = [clang, *flags, "--offload-arch=gfx942", folder / "call.hip", "-o", "call.hsaco"]
    subprocess.run(cmd, check=True, cwd=tmp_path)
    kernel = sim.Device("gfx942").load(tmp_path / "call.hsaco").kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(1, 64, [np.zeros(64, np.int32), np.zeros(64, np.int32)])
    (r,) = e.value.reports
    assert r.function == f"_Z{len(name)}{name}PKii" and r.line == f"{folder}/call.hip:2"
    assert re.search(r"at -0x\w+ in _Z707before_x+\.\.\.x+PKii: flat_load.*  \(/.*\.\.\.e*/call.hip:2\)", str(r))


@pytest.mark.parametrize("version", [4, 5])
def test_lines_of_headers(tmp_path, version):
    """An instruction of an inlined function has the line of the header that it is in, from where the compiler ran."""
    clang = shutil.which("clang-22") or pytest.skip("clang-22 is not installed")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "put.h").write_text(
        "__attribute__((device)) inline void put(int *p, int i)\n{\n    p[i] = i;\n}\n"
    )
    source = '#include "sub/put.h"\nextern "C" __attribute__((global)) void k(int *p)\n'
    (tmp_path / "k.hip").write_text(source + "{ put(p, __builtin_amdgcn_workitem_id_x()); }\n")
    flags = ["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-O2"]
    cmd = [clang, *flags, f"-gdwarf-{version}", "--offload-arch=gfx942", "k.hip", "-o", "k.hsaco"]
    subprocess.run(cmd, check=True, cwd=tmp_path)
    kernel = sim.Device("gfx942").load(tmp_path / "k.hsaco").kernels["k"]
    with pytest.raises(sim.SimulatorFault) as e:
        kernel.launch(1, 64, [np.zeros(8, np.int32)])
    (r,) = e.value.reports
    assert r.line.endswith("sub/put.h:3") and (version == 4 or r.line.startswith(str(tmp_path)))
