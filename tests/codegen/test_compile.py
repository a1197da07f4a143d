"""The compiler as a function: refusals, locations, resources, determinism, threads, and what it must not touch."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cg_util import Ew, elementwise_kernel, kernel
from gemm_gen import gemm128

from tilelang import _llvm
from tilelang.errors import CompileError

HERE = Path(__file__).resolve().parent
LOAD = "%n = const {value = 64} : i32\n%z = const {value = 0} : i32\n%r = make_rsrc %p, %n : rsrc\n"

REFUSED = [
    ("unknown target", kernel("trap", target="gfx9000"), "gfx9000|target"),
    ("no kernel", "", "no kernel"),
    ("two kernels", kernel("trap") + kernel("trap", name="j"), "more than one"),
    ("not the text form", "kernel @", ""),
    ("level tile", kernel("barrier").replace("level thread", "level tile"), "thread"),
    ("too much LDS", kernel("trap", lds_bytes=65537), "65537 bytes.*65536"),
    ("too many threads", kernel("trap", block=1088), "1088"),
    ("a part of a wave", kernel("trap", block=96), "96"),
    ("waves_per_eu", kernel("trap", waves_per_eu=9), "waves_per_eu"),
    ("tile operation", kernel("%x = arange {start = 0} : tile<8xi32>"), "arange|tile"),
    ("exp of f64", kernel("%c = const {fvalue = 1.0} : f64\n%x = exp %c : f64"), "exp"),
    ("fp8 arithmetic", kernel("%c = const {fvalue = 0.0} : f8e5m2\n%x = add %c, %c : f8e5m2"), "add"),
    (
        "matrix instruction of another chip",
        kernel(
            "%t = thread_id : i32\n%a = lds_load %t {align = 4} : vec<4xf16>\n%c = const {fvalue = 0.0} : vec<16xf32>\n"
            '%d = mma %a, %a, %c {intrinsic = "mfma_32x32x8_f16"} : vec<16xf32>',
            target="gfx1100",
            block=32,
            lds_bytes=512,
        ),
        "gfx1100|mma",
    ),
    (
        "store with a run-time soffset",
        kernel(LOAD + "buf_store %r, %z, %z, %s", "%p : ptr, %s : i32"),
        "soffset|constant",
    ),
    ("6 bytes", kernel(LOAD + "%v = buf_load %r, %z, %z : vec<3xf16>", "%p : ptr"), "1, 2, 4, 8, 12 or 16"),
    ("imm out of range", kernel(LOAD + "%v = buf_load %r, %z, %z {imm = 4096} : f32", "%p : ptr"), "4095"),
    (
        "beyond LDS",
        kernel("%t = thread_id : i32\n%v = lds_load %t {align = 4, imm = 61} : f32", lds_bytes=64),
        "LDS|imm",
    ),
    ("cache", kernel(LOAD + '%v = buf_load %r, %z, %z {cache = "never"} : f32', "%p : ptr"), "cache"),
    ("barrier scope", kernel('barrier {scope = "world"}'), "scope"),
    ("align", kernel("%v = glb_load %p {align = 3} : f32", "%p : ptr"), "align"),
    ("priority", kernel("set_prio {prio = 4}"), "prio"),
    ("step 0", kernel("%z = const {value = 0} : i32\nfor %z, %n, %z (%i : i32) {\nyield\n}", "%n : i32"), "step"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c[0])
def test_refuse(case) -> None:
    with pytest.raises(CompileError, match=case[2] or None) as e:
        _llvm.compile(case[1])
    assert e.value.message and e.value.diagnostics
    assert any(d[0] == "error" for d in e.value.diagnostics)


def test_refusal_has_the_location_of_the_operation() -> None:
    text = kernel('%c = const {fvalue = 1.0} : f64 loc("a/user.py":12:5)\n%x = exp %c : f64 loc("a/user.py":13:7)')
    with pytest.raises(CompileError) as e:
        _llvm.compile(text)
    assert (e.value.file, e.value.line, e.value.col) == ("a/user.py", 13, 7)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError):
        _llvm.compile()
    with pytest.raises(TypeError):
        _llvm.compile(3)
    with pytest.raises(CompileError):
        _llvm.compile(b"\xff\xfe\x00kernel")


def test_result() -> None:
    c = _llvm.compile(gemm128(), asm=True, llir=True, check=True)
    assert c.kernel == "gemm128" and isinstance(c.hsaco, bytes)
    assert c.hsaco[:4] == b"\x7fELF" and c.hsaco[7] == 64 and c.hsaco[8] == 3  # AMDGPU_HSA, code object v5
    assert struct.unpack_from("<I", c.hsaco, 48)[0] & 0xFF == 0x4C  # gfx942
    assert "v_mfma_f32_32x32x8_f16" in c.asm and "define protected amdgpu_kernel void @gemm128" in c.llir
    r = c.resources
    assert r["wave_size"] == 64 and r["max_workgroup"] == 256 and r["kernarg_bytes"] == 48
    assert r == _llvm.resources(c.hsaco, "gemm128")
    with pytest.raises(CompileError):
        _llvm.resources(c.hsaco, "other")
    assert set(c.times) == {"init", "parse", "build", "opt", "emit", "link", "total"}
    assert c.times["total"] >= c.times["emit"] > 0
    plain = _llvm.compile(gemm128())
    assert plain.asm is None and plain.llir is None and plain.hsaco == c.hsaco


@pytest.mark.parametrize("cut", [16, 64, 200, 1000, 3000])
def test_metadata_of_a_damaged_file(cut: int) -> None:
    """The reader of the metadata stays inside the file."""
    elf = _llvm.compile(kernel("trap")).hsaco
    with pytest.raises(CompileError):
        _llvm.resources(elf[:cut], "k" if cut < 1000 else "nobody")
    for at in range(0x40, min(len(elf), 0x400), 7):  # whatever it says, it returns
        bad = elf[:at] + bytes([elf[at] ^ 0xFF]) + elf[at + 1 :]
        try:
            assert _llvm.resources(bad, "k")["wave_size"] >= 0
        except CompileError:
            pass


def test_spilling_kernel_reports_it() -> None:
    """600 live registers do not fit 256 + 256: scratch and spills are reported, not hidden."""
    body = ["%t = thread_id : i32", "%z = const {value = 0} : i32"]
    body += [f"%v{i} = lds_load %t {{align = 16, imm = {16 * i}}} : vec<4xi32>" for i in range(150)]
    body += ["barrier"] + [f"lds_store %t, %v{i} {{align = 16, imm = {16 * (149 - i)}}}" for i in range(150)]
    r = _llvm.compile(kernel("\n".join(body), lds_bytes=4096, block=128)).resources
    assert r["vgpr_spills"] > 0 and r["scratch_bytes"] > 0
    assert r["agprs"] > 0, "the second attempt may use AGPRs"


def text_section(elf: bytes) -> bytes:
    (shoff,) = struct.unpack_from("<Q", elf, 40)
    num, strndx = struct.unpack_from("<HH", elf, 60)
    heads = [struct.unpack_from("<IIQQQQ", elf, shoff + 64 * i) for i in range(num)]
    names = elf[heads[strndx][4] :]
    for name, _type, _flags, _addr, off, size in heads:
        if names[name : names.index(b"\0", name)] == b".text":
            return elf[off : off + size]
    raise AssertionError("no .text")


def test_line_tables() -> None:
    body = """%t = thread_id : i32 loc("dir/user.py":40:3)
    %x = add %t, %k : i32 loc("dir/user.py":41:9)
    %y = mul %x, %x : i32 loc("lib/helper.py":7:2)
    glb_store %p, %y {align = 4} loc("dir/user.py":42:9)"""
    text = kernel(body, "%p : ptr, %k : i32").rstrip() + ' loc("dir/user.py":39:1)\n'
    with_lines, without = _llvm.compile(text), _llvm.compile(text, line_tables=False)
    assert text_section(with_lines.hsaco) == text_section(without.hsaco)
    assert b".debug_line" in with_lines.hsaco and b".debug_line" not in without.hsaco
    tool = shutil.which("llvm-dwarfdump-22") or shutil.which("llvm-dwarfdump")
    if not tool:
        pytest.skip("no llvm-dwarfdump")
    out = subprocess.run(
        [tool, "--debug-line", "-"], input=with_lines.hsaco, capture_output=True, check=True
    ).stdout.decode()
    files = dict(re.findall(r'file_names\[\s*(\d+)\]:\s*name: "([^"]+)"', out))
    rows = {(files[f], int(line)) for line, f in re.findall(r"^0x\w+\s+(\d+)\s+\d+\s+(\d+)", out, re.M)}
    assert {("user.py", 41), ("helper.py", 7), ("user.py", 42)} <= rows


def test_same_text_same_bytes_in_many_threads() -> None:
    texts = [
        elementwise_kernel([Ew("add", [t, t], t), Ew("div", ["f32", "f32"], "f32")], 2) for t in ("i32", "f16", "bf16")
    ]
    texts += [elementwise_kernel([Ew("exp", ["f32"], "f32")], 1, target) for target in ("gfx942", "gfx1100", "gfx90a")]
    texts += [gemm128()]
    bad = kernel("%c = const {fvalue = 1.0} : f64\n%x = exp %c : f64")
    want = [_llvm.compile(t).hsaco for t in texts]

    def work(i: int) -> bool:
        if i % 5 == 4:
            with pytest.raises(CompileError):
                _llvm.compile(bad)
            return True
        return _llvm.compile(texts[i % len(texts)]).hsaco == want[i % len(texts)]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(60)))


def test_no_process_and_no_file(tmp_path: Path) -> None:
    code = f"""
    import os, sys, time
    sys.path[:0] = [{str(HERE)!r}, {str(HERE.parents[1])!r}]
    from tilelang import _llvm
    from gemm_gen import gemm128
    fds, tasks = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for _ in range(3):
        _llvm.compile(gemm128(), asm=True)
    assert len(os.listdir("/proc/self/fd")) == fds
    import resource
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt == 0
    assert [l for l in open("/proc/self/task/%d/children" % os.getpid())] in ([], [""])
    for _ in range(100):  # a joined thread may be listed a moment longer
        if len(os.listdir("/proc/self/task")) == tasks:
            break
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) == tasks
    """
    env = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


ORDERS = [("tilelang", "torch", "triton"), ("triton", "tilelang", "torch"), ("torch", "triton", "tilelang")]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_lives_with_torch_and_triton(order: tuple[str, ...], tmp_path: Path) -> None:
    """Three LLVMs in one process, in any order of import; each compiles after all are there."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    (tmp_path / "tri.py").write_text(
        textwrap.dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def add_one(p, n, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            tl.store(p + i, tl.load(p + i, mask=i < n) + 1, mask=i < n)
    """)
    )
    code = f"""
    import sys
    sys.path[:0] = [{str(HERE)!r}, {str(HERE.parents[1])!r}, {str(tmp_path)!r}]
    def ours():
        from tilelang import _llvm
        from gemm_gen import gemm128
        return _llvm.compile(gemm128()).hsaco
    first = None
    for name in {order!r}:
        if name == "tilelang":
            first = ours()
        else:
            __import__(name)
    import torch, tri
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    import triton
    src = ASTSource(tri.add_one, {{"p": "*fp32", "n": "i32", "B": "constexpr"}}, {{(2,): 256}})
    c = triton.compile(src, target=GPUTarget("hip", "gfx942", 64), options={{"num_warps": 4}})
    assert len(c.asm["hsaco"]) > 1000
    assert ours() == first
    assert (torch.ones(4, 4) @ torch.ones(4, 4)).sum() == 64
    """
    env = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
