"""Helpers of the simulator's tests: the outside kernels, and small code objects made from assembly."""

from __future__ import annotations

import csv
import functools
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# ---- the outside data (format: its README) ------------------------------------------------------------------------

SHARED = Path(os.environ.get("TILELANG_SHARED", Path(__file__).resolve().parents[3] / "shared"))
"""Where the outside data is; it need not be there."""
CHECKS_OF = {
    "missing_waitcnt": {"wait", "race"},
    "missing_barrier": {"race", "barrier"},
    "missing_nop": {"hazard"},
    "oob_global_read": {"bounds"},
    "oob_global_write": {"bounds"},
    "oob_lds": {"bounds"},
    "uninit_lds_read": {"init"},
    "uninit_scratch_read": {"init"},
    "uninit_global_read": {"init"},
}
"""Which checks may name a class of faults."""


@functools.cache
def lanemaps(arch: str) -> dict[str, dict[str, list[dict[str, str]]]]:
    """Matrix opcode -> operand -> rows of the published lane map."""
    maps: dict = defaultdict(lambda: defaultdict(list))
    with gzip.open(SHARED / f"oracle/lanemap/lanemap.{arch}.csv.gz", "rt") as f:
        for row in csv.DictReader(f):
            maps[row["opcode"]][row["operand"]].append(row)
    return maps


@functools.cache
def load_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def content(spec: Any) -> bytes:
    """Bytes of a buffer's init or expect."""
    if isinstance(spec, str):
        return bytes.fromhex(spec)
    word = struct.pack("<I", int(spec["fill32"], 16))
    return (word * (spec["bytes"] // 4 + 1))[: spec["bytes"]]


@dataclass
class Run:
    """One launch of an outside kernel: what it left in its buffers, or the fault."""

    stats: dict[str, Any] | None = None
    fault: Any = None
    wrong: list[str] = field(default_factory=list)


def compare(buf: dict[str, Any], got: bytes, want: bytes) -> str | None:
    """None when equal under the buffer's tolerance, else what differs."""
    tol = buf.get("tolerance")
    if got == want:
        return None
    if not tol:
        i = next(i for i in range(len(want)) if got[i] != want[i])
        n = sum(a != b for a, b in zip(got, want, strict=True))
        i &= ~3
        return (
            f"{buf['name']}: {n} bytes differ, first dword at {i}: {got[i : i + 4].hex()} not {want[i : i + 4].hex()}"
        )
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}.get(tol["type"])
    if tol["type"] in ("2xf32", "2xf16"):
        kind = {"2xf32": np.float32, "2xf16": np.float16}[tol["type"]]
    if kind is None and tol["type"] in ("bf16", "2xbf16"):
        a = (np.frombuffer(got, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        b = (np.frombuffer(want, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    elif kind is None:
        raise AssertionError(f"unknown tolerance {tol}")
    else:
        a, b = np.frombuffer(got, kind).astype(np.float64), np.frombuffer(want, kind).astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
        if "rel" in tol or "abs" in tol:
            same |= np.abs(a - b) <= np.maximum(tol.get("rel", 0) * np.abs(b), tol.get("abs", 0))
    if same.all():
        return None
    i = int(np.flatnonzero(~same)[0])
    return f"{buf['name']}: {int((~same).sum())} values differ, first at {i}: {a[i]!r} not {b[i]!r}"


def run_oracle(dev: Any, desc: dict[str, Any], hsaco: Path, overrides: dict[str, Any] | None = None) -> Run:
    """Launches an outside kernel as its description says and compares every buffer."""
    from tilelang.errors import SimulatorFault

    out = Run()
    module = dev.load(hsaco)
    kernel = module.kernels[desc["kernel"]]
    bufs = {}
    try:
        for b in desc["buffers"]:
            b = {**b, **(overrides or {}).get(b["name"], {})}
            mem = dev.empty(b["bytes"])
            if b["init"] is not None:
                mem.write(np.frombuffer(content(b["init"]), np.uint8))
            bufs[b["name"]] = (b, mem)
        args: dict[int, Any] = {}
        for a in desc["kernarg"]:
            if a["kind"] == "buffer":
                args[a["offset"]] = bufs[a["buffer"]][1]
            elif a["kind"] == "value":
                args[a["offset"]] = bytes.fromhex(a["bytes_hex"])
        try:
            out.stats = kernel.launch(desc["grid"], desc["block"], args, desc["dynamic_lds"])
        except SimulatorFault as e:
            out.fault = e
        for b, mem in bufs.values():
            want = b["expect"] if b["expect"] is not None else b["init"]
            if want is None or out.fault:
                continue
            diff = compare(b, mem.numpy().tobytes(), content(want))
            if diff:
                out.wrong.append(diff)
    finally:
        for _, mem in bufs.values():
            mem.free()
        module.unload()
    return out


# ---- small code objects from assembly --------------------------------------------------------------------------------

MACH = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41, "gfx1201": 0x4E}


def llvm_mc() -> str:
    path = shutil.which("llvm-mc-22") or shutil.which("llvm-mc")
    if not path:
        pytest.skip("llvm-mc is not installed")
    return path


def sections(obj: bytes) -> dict[str, bytes]:
    """Section contents of an ELF64 file."""
    shoff = struct.unpack_from("<Q", obj, 40)[0]
    n, strndx = struct.unpack_from("<HH", obj, 60)
    heads = [struct.unpack_from("<IIQQQQIIQQ", obj, shoff + 64 * i) for i in range(n)]
    names = heads[strndx]
    out = {}
    for h in heads:
        at = names[4] + h[0]
        out[obj[at : obj.index(b"\0", at)].decode()] = obj[h[4] : h[4] + h[5]] if h[1] != 8 else b""
    return out


def pack(v: Any) -> bytes:
    """MessagePack of dicts, lists, strings and non-negative integers."""
    if isinstance(v, dict):
        return b"\xde" + struct.pack(">H", len(v)) + b"".join(pack(k) + pack(x) for k, x in v.items())
    if isinstance(v, list):
        return b"\xdc" + struct.pack(">H", len(v)) + b"".join(pack(x) for x in v)
    if isinstance(v, str):
        n = len(v.encode())
        return (b"\xd9" + bytes([n]) if n < 256 else b"\xda" + struct.pack(">H", n)) + v.encode()
    return b"\xcf" + struct.pack(">Q", v)


@dataclass(frozen=True)
class Arg:
    """An argument for :func:`code_object`."""

    size: int
    kind: str = "by_value"
    name: str = ""


BUF = Arg(8, "global_buffer")


def assemble(
    body: str,
    args: tuple[Arg, ...] = (),
    *,
    arch: str = "gfx942",
    vgprs: int = 32,
    sgprs: int = 32,
    lds: int = 0,
    scratch: int = 0,
    extra: str = "",
    wave: int = 0,
    agprs: int = 0,
) -> tuple[bytes, bytes, list[dict[str, Any]]]:
    """(code bytes, 64-byte descriptor without entry, argument metadata) of a kernel `k`; wave: 32 or 64, 0 = the
    assembler's default for the chip; agprs: accumulation registers behind the vgprs.

    s[0:1] is the kernel-argument pointer, s2 the workgroup id x (y, z after it when enabled by `extra`), v0 the
    work-item id."""
    offset, meta = 0, []
    for a in args:
        align = min(a.size & -a.size, 8)
        offset = (offset + align - 1) // align * align
        meta.append({".offset": offset, ".size": a.size, ".value_kind": a.kind})
        if a.name:
            meta[-1][".name"] = a.name
        offset += a.size
    text = f"""
.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.text
.p2align 8
k:
{body}
s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  .amdhsa_kernarg_size {offset}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr {(vgprs + 3) // 4 * 4 + agprs if agprs else vgprs}
  .amdhsa_next_free_sgpr {sgprs}
  {".amdhsa_accum_offset " + str((vgprs + 3) // 4 * 4) if arch.startswith("gfx9") else ""}
  {f".amdhsa_wavefront_size32 {int(wave == 32)}" if wave and not arch.startswith("gfx9") else ""}
  {extra}
.end_amdhsa_kernel
"""
    cmd = [llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=obj"]
    cmd += [f"-mattr=+wavefrontsize{wave}"] if wave and not arch.startswith("gfx9") else []
    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "k.o"
        subprocess.run([*cmd, "-o", str(out)], input=text, text=True, check=True)
        sec = sections(out.read_bytes())
    return sec[".text"], sec[".rodata"][:64], meta


def link(
    kernels: dict[str, tuple[bytes, bytes, list[dict[str, Any]]]],
    *,
    arch: str = "gfx942",
    abi: int = 4,
    flags: int = 0,
    data: bytes = b"",
    relas: tuple[tuple[int, int, int], ...] = (),
    meta_extra: dict[str, Any] | None = None,
    debug: dict[str, bytes] | None = None,
) -> bytes:
    """A code object of the given kernels: descriptors in one segment, code in the next (0x1000 aligned), then `data`
    (symbol `data`) with relocations (offset in data, type, addend). abi 2, 3, 4 = code object v4, v5, v6."""
    kd_at = 0x400
    text_at = max(0x2000, (kd_at + 64 * len(kernels) + 0xFFF) & ~0xFFF)
    kd, text, syms = b"", b"", []
    meta = []
    for name, (code, desc, args) in kernels.items():
        entry = text_at + len(text)
        here = kd_at + len(kd)
        kd += desc[:16] + struct.pack("<q", entry - here) + desc[24:64]
        syms += [(name, 18, 2, entry, len(code)), (name + ".kd", 17, 1, here, 64)]
        text += code + b"\0\0\x80\xbf" * (-len(code) // 4 % 64)
        size = struct.unpack_from("<I", desc, 8)[0]
        meta.append(
            {
                ".name": name,
                ".symbol": name + ".kd",
                ".args": args,
                ".kernarg_segment_size": size,
                ".group_segment_fixed_size": struct.unpack_from("<I", desc, 0)[0],
                ".wavefront_size": 64,
                ".max_flat_workgroup_size": 1024,
                ".vgpr_count": 32,
                **(meta_extra or {}),
            }
        )
    note = pack({"amdhsa.version": [1, 2], "amdhsa.kernels": meta, "amdhsa.target": f"amdgcn-amd-amdhsa--{arch}"})
    note = struct.pack("<III", 7, len(note), 32) + b"AMDGPU\0\0" + note
    note += b"\0" * (-len(note) % 4)
    data_at = (text_at + len(text) + 0x1FFF) & ~0xFFF
    rela = b"".join(struct.pack("<QQq", data_at + off, typ, add) for off, typ, add in relas)
    rela_at = data_at + (len(data) + 15) // 16 * 16
    dyn_at = rela_at + len(rela)
    dyn = b"".join(struct.pack("<QQ", *x) for x in ((7, rela_at), (8, len(rela)), (9, 24), (0, 0)))
    if data:
        syms.append(("data", 17, 3, data_at, len(data)))
    strtab, symtab = b"\0", b"\0" * 24
    for name, info, shndx, value, size in syms:
        symtab += struct.pack("<IBBHQQ", len(strtab), info, 0, shndx, value, size)
        strtab += name.encode() + b"\0"
    shstr = b"\0.dynsym\0.dynstr\0.shstrtab\0"
    debug_names = {}
    for name in debug or {}:
        debug_names[name] = len(shstr)
        shstr += name.encode() + b"\0"
    out = bytearray(64)
    phs = [(4, 4, 0, 0, 0), (1, 4, 0, kd_at, len(kd)), (1, 5, 0, text_at, len(text)), (2, 6, 0, 0, 0)]
    out += b"\0" * (56 * 5)

    def put(b: bytes, align: int = 16) -> int:
        out.extend(b"\0" * (-len(out) % align))
        at = len(out)
        out.extend(b)
        return at

    note_off, kd_off, text_off = put(note), put(kd), put(text, 256)
    data_off = put(data.ljust(rela_at - data_at, b"\0") + rela + dyn)
    dyn_off = data_off + dyn_at - data_at
    sym_off, str_off, shstr_off = put(symtab), put(strtab), put(shstr)
    phs = [
        (4, 4, note_off, note_off, len(note)),
        (1, 4, kd_off, kd_at, len(kd)),
        (1, 5, text_off, text_at, len(text)),
        (1, 6, data_off, data_at, dyn_at - data_at + len(dyn)),
        (2, 6, dyn_off, dyn_at, len(dyn)),
    ]
    for i, (typ, fl, off, va, n) in enumerate(phs):
        struct.pack_into("<IIQQQQQQ", out, 64 + 56 * i, typ, fl, off, va, va, n, n, 4096)
    shs = [(0, 0, 0, 0, 0, 0), (1, 11, sym_off, len(symtab), 2, 24), (9, 3, str_off, len(strtab), 0, 0)]
    shs.append((17, 3, shstr_off, len(shstr), 0, 0))
    for name, body in (debug or {}).items():
        shs.append((debug_names[name], 1, put(body), len(body), 0, 0))
    sh_off = put(b"")
    for name, typ, off, n, lnk, ent in shs:
        out += struct.pack("<IIQQQQIIQQ", name, typ, 0, 0, off, n, lnk, 0, 8, ent)
    ident = b"\x7fELF\x02\x01\x01" + bytes([64, abi]) + b"\0" * 7
    head = ident + struct.pack(
        "<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, sh_off, MACH[arch] | flags, 64, 56, len(phs), 64, len(shs), 3
    )
    out[:64] = head
    return bytes(out)


def code_object(body: str, args: tuple[Arg, ...] = (), **kw: Any) -> bytes:
    """A code object with one kernel `k`; keyword arguments go to :func:`assemble` or :func:`link`."""
    mine = {k: kw.pop(k) for k in ("vgprs", "sgprs", "lds", "scratch", "extra", "wave", "agprs") if k in kw}
    arch = kw.get("arch", "gfx942")
    if mine.get("wave"):
        kw["meta_extra"] = {".wavefront_size": mine["wave"], **(kw.get("meta_extra") or {})}
    return link({"k": assemble(body, args, arch=arch, **mine)}, **kw)


# ---- clients of the HIP API, each in a process of its own ----------------------------------------------------------

ADD = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dword s8, s[0:1], 0x10
  s_lshl_b32 s3, s2, 6
  v_add_u32 v1, s3, v0
  v_lshlrev_b32 v1, 2, v1
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v2, s8, v2
  global_store_dword v1, v2, s[6:7]
"""
"""Body of k(in, out, c) on gfx942: adds c to dwords, 64 threads a workgroup."""

HIP_PRELUDE = """
import ctypes as C, json, sys, os, struct
hip = C.CDLL(os.path.join({libdir!r}, {lib!r}))
for f in ("hipGetErrorName", "hipGetErrorString"):
    getattr(hip, f).restype = C.c_char_p
P = C.c_void_p
def ok(e):
    assert e == 0, hip.hipGetErrorName(e).decode()
def malloc(n):
    p = P(); ok(hip.hipMalloc(C.byref(p), C.c_size_t(n))); return p
def launch(f, grid, block, *params, lds=0, extra=None):
    arr = None
    if extra is None:
        arr = (P * max(len(params), 1))(*[C.cast(C.byref(p), P) for p in params])
    return hip.hipModuleLaunchKernel(f, *grid, *block, lds, None, arr, extra)
def load(path, name=b"k"):
    m, f = P(), P()
    ok(hip.hipModuleLoad(C.byref(m), path.encode()))
    ok(hip.hipModuleGetFunction(C.byref(f), m, name))
    return m, f
"""


def client_env(**env: str) -> dict[str, str]:
    """Our environment without the simulator's variables, and with the given ones."""
    return {k: v for k, v in os.environ.items() if not k.startswith("TILELANG_SIM_")} | env


def tool_env() -> dict[str, str]:
    """The environment for compilers: without a sanitizer's preloaded libraries."""
    return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


def clang_c(source: str | Path, arch: str, *flags: str, clang: str = "clang-22") -> bytes:
    """The code object of a C file, or of C text, without a device library."""
    exe = shutil.which(clang)
    if not exe or not (shutil.which("ld.lld-22") or shutil.which("ld.lld")):
        pytest.skip(f"{clang} and lld are not installed")
    text = source.read_text() if isinstance(source, Path) else source
    base = ["-x", "c", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-ffreestanding"]
    cmd = [exe, *base, *flags, "-", "-o", "/dev/stdout"]
    p = subprocess.run(cmd, input=text.encode(), capture_output=True, env=tool_env())
    assert p.returncode == 0, p.stderr.decode()[-4000:]
    return p.stdout


def clang_hip(source: str, arch: str, *flags: str) -> bytes:
    """The code object of HIP text, without headers and a device library."""
    exe = shutil.which("clang-22") or pytest.skip("clang-22 is not installed")
    base = ["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}"]
    cmd = [exe, *base, "-nogpuinc", "-nogpulib", *flags, "-", "-o", "/dev/stdout"]
    p = subprocess.run(cmd, input=source.encode(), capture_output=True, env=tool_env())
    assert p.returncode == 0, p.stderr.decode()[-4000:]
    return p.stdout


def missing(what: str) -> None:
    """Skips: what a test of another host needs is not installed. TILELANG_HOSTS=1 (make hosts-test) makes it fail."""
    if os.environ.get("TILELANG_HOSTS"):
        pytest.fail(f"{what} is not installed", pytrace=False)
    pytest.skip(f"{what} is not installed", allow_module_level=True)


def counters(path: Path) -> list[dict[str, Any]]:
    """What processes that ended told TILELANG_SIM_COUNTERS: chip, device, launches, instructions of each device."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def available(chip: str) -> bool:
    """Does the simulator run this chip?"""
    from tilelang.sim import _native

    return bool(_native.library().tlsim_arch_available(chip.encode()))


def hip_client(body: str, *args: object, lib: str = "libamdhip64.so", **env: str) -> tuple[dict, str]:
    """Runs a client; it prints one JSON object last. Returns it and what went to stderr."""
    from tilelang import sim

    code = HIP_PRELUDE.format(libdir=sim.libdir(), lib=lib) + body
    cmd = [sys.executable, "-c", code, *map(str, args)]
    root = Path(__file__).resolve().parents[2]
    r = subprocess.run(cmd, capture_output=True, text=True, env=client_env(**env), cwd=root)
    assert r.returncode == 0, r.stderr[-3000:]
    return json.loads(r.stdout.strip().splitlines()[-1]), r.stderr
