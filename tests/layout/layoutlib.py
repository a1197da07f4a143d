"""ctypes view of csrc/target and csrc/layout for the tests: builds a shared library of base + target + layout once.

Layouts are evaluated here a second time, in NumPy, from their printed text (`parse_text`, `table`), so that the C
evaluation is checked against something.
"""

from __future__ import annotations

import ctypes as C
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
SHARED = Path(os.environ.get("TILELANG_SHARED", ROOT.parent / "shared"))

DIMS = ["reg", "lane", "wave", "block", "d0", "d1", "d2", "d3", "off"]
REG, LANE, WAVE, BLOCK, D0, D1, D2, D3, OFF = range(9)
A, B, CD = range(3)
READ, WRITE = range(2)
UNKNOWN = 0xFFFFFFFF
MAX_DIMS, MAX_BITS = 6, 40


class ElemInfo(C.Structure):
    """TlElemInfo."""

    _fields_ = [
        ("name", C.c_char_p),
        ("numpy", C.c_char_p),
        ("bits", C.c_uint8),
        ("bytes", C.c_uint8),
        ("kind", C.c_uint8),
        ("dl_code", C.c_uint8),
        ("dl_bits", C.c_uint8),
        ("exp_bits", C.c_uint8),
        ("man_bits", C.c_uint8),
        ("fclass", C.c_uint8),
        ("bias", C.c_int16),
    ]


class Target(C.Structure):
    """TlTarget."""

    _fields_ = [
        ("id", C.c_int),
        ("name", C.c_char_p),
        ("products", C.c_char_p),
        ("arch", C.c_uint8),
        ("wave", C.c_uint8),
        ("fp8", C.c_uint8),
        ("oob", C.c_uint8),
        ("simds", C.c_uint8),
        ("max_waves_simd", C.c_uint8),
        ("barrier_slots", C.c_uint8),
        ("units", C.c_uint16),
        ("xcds", C.c_uint8),
        ("max_vgprs", C.c_uint16),
        ("max_agprs", C.c_uint16),
        ("vgpr_file", C.c_uint16),
        ("vgpr_granule", C.c_uint8),
        ("max_sgprs", C.c_uint16),
        ("max_workgroup", C.c_uint16),
        ("lds_max", C.c_uint32),
        ("lds_pool", C.c_uint32),
        ("lds_granule", C.c_uint16),
        ("lds_banks", C.c_uint8),
        ("lds_dma_bytes", C.c_uint8),
        ("cache_line", C.c_uint16),
        ("mma_per_unit", C.c_uint8),
        ("clock_mhz", C.c_uint16),
        ("dram_gbs", C.c_uint16),
        ("features", C.c_uint32),
    ]


class Mma(C.Structure):
    """TlMma."""

    _fields_ = [
        ("id", C.c_int),
        ("name", C.c_char_p),
        ("m", C.c_uint16),
        ("n", C.c_uint16),
        ("k", C.c_uint16),
        ("blocks", C.c_uint16),
        ("a", C.c_uint8),
        ("b", C.c_uint8),
        ("c", C.c_uint8),
        ("a_regs", C.c_uint8),
        ("b_regs", C.c_uint8),
        ("c_regs", C.c_uint8),
        ("form", C.c_uint8),
        ("passes", C.c_uint8 * 5),
        ("intrinsic", C.c_char_p),
        ("ab_type", C.c_char_p),
        ("c_type", C.c_char_p),
    ]


class Occupancy(C.Structure):
    """TlOccupancy."""

    _fields_ = [
        ("workgroups", C.c_uint32),
        ("waves_per_simd", C.c_uint32),
        ("reg_waves", C.c_uint32),
        ("limit", C.c_int),
        ("vgprs_allocated", C.c_uint32),
        ("lds_allocated", C.c_uint32),
    ]


class Layout(C.Structure):
    """TlLayout."""

    _fields_ = [
        ("nin", C.c_uint8),
        ("nout", C.c_uint8),
        ("in_dim", C.c_uint8 * MAX_DIMS),
        ("in_bits", C.c_uint8 * MAX_DIMS),
        ("out_dim", C.c_uint8 * MAX_DIMS),
        ("out_bits", C.c_uint8 * MAX_DIMS),
        ("basis", C.c_uint64 * MAX_BITS),
    ]

    def __str__(self) -> str:
        return print_layout(self)


class Dot(C.Structure):
    """TlDot."""

    _fields_ = [
        ("mma", C.POINTER(Mma)),
        ("m", C.c_uint32),
        ("n", C.c_uint32),
        ("k", C.c_uint32),
        ("wave_m", C.c_uint32),
        ("wave_n", C.c_uint32),
        ("kpack", C.c_uint32),
        ("mpair", C.c_uint32),
        ("npair", C.c_uint32),
        ("swapped", C.c_bool),
    ]


class Slice(C.Structure):
    """TlDotSlice."""

    _fields_ = [("reg", C.c_uint32), ("count", C.c_uint32), ("stride", C.c_uint32)]


class Blocked(C.Structure):
    """TlBlocked."""

    _fields_ = [
        ("rank", C.c_uint32),
        ("shape", C.c_uint32 * 4),
        ("minor", C.c_uint32),
        ("elem_bytes", C.c_uint32),
        ("max_vec_bytes", C.c_uint32),
        ("wave", C.c_uint32),
        ("waves", C.c_uint32),
        ("rows", C.c_uint32),
    ]


class LdsMap(C.Structure):
    """TlLdsMap."""

    _fields_ = [("map", Layout), ("elem_bytes", C.c_uint32), ("bytes", C.c_uint32)]


class Access(C.Structure):
    """TlLdsAccess."""

    _fields_ = [("op", C.c_int), ("layout", Layout), ("max_bytes", C.c_uint32), ("weight", C.c_uint32)]


class Split(C.Structure):
    """TlAddrSplit."""

    _fields_ = [
        ("vec", C.c_uint32),
        ("vec_bytes", C.c_uint32),
        ("reg_bits", C.c_uint32),
        ("ngroups", C.c_uint32),
        ("xor_bits", C.c_uint32),
        ("reg_off", C.c_uint32 * 10),
        ("max_imm", C.c_uint32),
        ("conflicts", C.c_uint32),
        ("replicated", C.c_bool),
    ]


def library_path() -> Path:
    """libtilelang_test.so of TILELANG_BUILD if set; else base + target + layout alone, compiled here and kept."""
    if "TILELANG_BUILD" in os.environ:
        return Path(os.environ["TILELANG_BUILD"]) / "libtilelang_test.so"
    files = sorted(
        f for p in ("base", "target", "layout") for f in (CSRC / p).iterdir() if f.suffix in (".c", ".h", ".def")
    )
    files.append(ROOT / "tests" / "clib" / "layout_shim.c")
    key = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]
    out = Path(tempfile.gettempdir()) / f"tilelang-layout-{os.getuid()}" / f"lib{key}.so"
    if not out.exists():
        out.parent.mkdir(exist_ok=True)
        cc = os.environ.get("CC") or shutil.which("gcc") or "cc"
        tmp = out.with_suffix(f".{os.getpid()}")
        cmd = [cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", f"-I{CSRC}", "-o", str(tmp)]
        subprocess.run(cmd + [str(f) for f in files if f.suffix == ".c"], check=True)
        tmp.rename(out)
    return out


@lru_cache(maxsize=1)
def lib() -> C.CDLL:
    """The library with result types set; the mirrored structs are checked against the C ones."""
    dll = C.CDLL(str(library_path()))
    dll.tl_test_layout_sizes.restype = dll.tl_test_layout_text.restype = C.c_size_t
    mirrored = [ElemInfo, Target, Mma, Occupancy, Layout, Dot, Slice, Blocked, LdsMap, Access, Split]
    for i, cls in enumerate(mirrored):
        if dll.tl_test_layout_sizes(i) != C.sizeof(cls):
            raise RuntimeError(f"{cls.__doc__} changed in C; mirror it in layoutlib.py")
    for name in ("tl_target_get", "tl_target_by_name"):
        getattr(dll, name).restype = C.POINTER(Target)
    for name in ("tl_mma_get", "tl_mma_by_name", "tl_mma_next", "tl_mma_find"):
        getattr(dll, name).restype = C.POINTER(Mma)
    dll.tl_elem_info.restype = C.POINTER(ElemInfo)
    dll.tl_target_names.restype = C.c_char_p
    dll.tl_limit_name.restype = C.c_char_p
    dll.tl_occupancy.restype = Occupancy
    dll.tl_dot_check.restype = C.c_char_p
    dll.tl_dot_slice.restype = Slice
    dll.tl_layout_parse.restype = C.c_size_t
    dll.tl_layout_parse.argtypes = [C.POINTER(Layout), C.c_char_p, C.c_size_t, C.c_void_p, C.c_void_p]
    dll.tl_layout_apply.restype = C.c_uint64
    dll.tl_layout_apply.argtypes = [C.POINTER(Layout), C.c_uint64]
    dll.tl_layout_free_bits.restype = C.c_uint64
    dll.tl_lds_conflicts.argtypes = [C.POINTER(Target), C.c_int, C.c_uint32, C.c_void_p, C.c_uint64]
    dll.tl_lds_conflicts2.argtypes = [C.POINTER(Target), C.c_int, C.c_uint32, C.c_void_p, C.c_void_p, C.c_uint64]
    for name in (
        "tl_lds_conflicts tl_lds_conflicts2 tl_lds_phases tl_lds_byte tl_lds_base tl_layout_rank tl_layout_contiguity "
        "tl_layout_at tl_layout_get tl_layout_free_of tl_layout_regs_like tl_layout_perm_index tl_split_groups "
        "tl_dot_tiles_m tl_dot_tiles_n tl_dot_steps_k tl_target_reg_budget tl_mma_macs_per_cycle"
    ).split():
        getattr(dll, name).restype = C.c_uint32
    for name in (
        "tl_layout_add_in tl_layout_add_out tl_layout_set tl_layout_is_surjective tl_layout_is_injective "
        "tl_layout_equal tl_layout_compose tl_layout_invert tl_layout_product tl_layout_divide tl_layout_restrict "
        "tl_layout_project tl_layout_identity tl_layout_rename_out tl_layout_swap_out tl_layout_permute_regs "
        "tl_layout_convert tl_layout_reduce_masks tl_layout_reduced tl_frag_mma tl_dot_layout tl_layout_blocked "
        "tl_lds_row_major tl_lds_xor tl_lds_split tl_lds_solve"
    ).split():
        getattr(dll, name).restype = C.c_bool
    return dll


def target(name: str) -> C.POINTER(Target):
    """The chip; KeyError if unknown."""
    t = lib().tl_target_by_name(name.encode())
    if not t:
        raise KeyError(name)
    return t


def elem(name: str) -> int:
    """TlElem of an IR type name."""
    e = lib().tl_elem_by_name(name.encode(), C.c_size_t(len(name)))
    if not e:
        raise KeyError(name)
    return e


def elem_name(e: int) -> str:
    """IR name of a TlElem."""
    return lib().tl_elem_info(e).contents.name.decode()


def mma(name: str) -> C.POINTER(Mma):
    """The matrix instruction of this table name."""
    m = lib().tl_mma_by_name(name.encode(), C.c_size_t(len(name)))
    if not m:
        raise KeyError(name)
    return m


def all_mmas() -> list[Mma]:
    """All rows of mma.def."""
    out, i = [], 1
    while True:
        m = lib().tl_mma_get(i)
        if not m:
            return out
        out.append(m.contents)
        i += 1


def print_layout(layout: Layout) -> str:
    """tl_layout_print."""
    buf = C.create_string_buffer(1 << 14)
    n = lib().tl_test_layout_text(C.byref(layout), buf, C.c_size_t(len(buf)))
    assert n < len(buf), "text does not fit or no memory"
    return buf.value.decode()


def try_parse(text: str | bytes) -> tuple[Layout | None, str, int]:
    """tl_layout_parse: (layout or None, why, position reached)."""
    raw = text.encode() if isinstance(text, str) else text
    layout, why, at = Layout(), C.c_char_p(), C.c_size_t()
    n = lib().tl_layout_parse(C.byref(layout), raw, len(raw), C.byref(why), C.byref(at))
    if n:
        assert n == at.value and why.value is None
        return layout, "", n
    assert why.value, "a failing parse must say why"
    return None, why.value.decode(), at.value


def parse(text: str) -> Layout:
    """Layout of a text; ValueError if it does not parse to the end."""
    layout, why, at = try_parse(text)
    if layout is None or at != len(text):
        raise ValueError(f"{why or 'text behind the layout'} at {at}: {text}")
    return layout


_DIM = re.compile(r"(\w+):\s*((?:\[[\d, ]*\]\s*)*)")


def parse_text(text: str) -> tuple[dict[str, list[tuple[int, ...]]], dict[str, int]]:
    """Independent reading of the text form: ({input: bases}, {output: size})."""
    left, right = text[text.index("(") + 1 : text.rindex(")")].split("->")
    ins = {}
    for part in left.split(";"):
        if part.strip():
            name, bases = _DIM.fullmatch(part.strip()).groups()
            ins[name] = [tuple(int(x) for x in b.split(",") if x.strip()) for b in re.findall(r"\[([^\]]*)\]", bases)]
    outs = {k: int(v) for k, v in re.findall(r"(\w+):\s*(\d+)", right)}
    return ins, outs


def table(layout: Layout, *dims: str) -> dict[str, np.ndarray]:
    """Every output coordinate as an array indexed by the inputs `dims` (missing ones have size 1, others stay at 0)."""
    ins, outs = parse_text(str(layout))
    shape = tuple(1 << len(ins.get(d, [])) for d in dims)
    result = {o: np.zeros(shape, dtype=np.int64) for o in outs}
    for axis, d in enumerate(dims):
        index = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(dims))])
        for bit, basis in enumerate(ins.get(d, [])):
            for o, value in zip(outs, basis, strict=True):
                result[o] = result[o] ^ ((index >> bit & 1) * value)
    return result


def frag(m: Mma, which: int) -> Layout:
    """tl_frag_mma."""
    out = Layout()
    if not lib().tl_frag_mma(C.byref(m), which, C.byref(out)):
        raise ValueError(f"no fragment for {m.name}")
    return out


def dot_layout(dot: Dot, which: int) -> Layout:
    """tl_dot_layout."""
    out = Layout()
    if not lib().tl_dot_layout(C.byref(dot), which, C.byref(out)):
        raise ValueError(lib().tl_dot_check(C.byref(dot), None))
    return out


def blocked(
    shape: tuple[int, ...], minor: int, elem_bytes: int, wave: int, waves: int, rows: int = 1, vec: int = 16
) -> Layout:
    """tl_layout_blocked."""
    b, out = Blocked(len(shape), (C.c_uint32 * 4)(*shape), minor, elem_bytes, vec, wave, waves, rows), Layout()
    if not lib().tl_layout_blocked(C.byref(b), C.byref(out)):
        raise ValueError(f"blocked {shape}")
    return out


def row_major(shape: tuple[int, ...], elem_bytes: int) -> LdsMap:
    """tl_lds_row_major."""
    m = LdsMap()
    if not lib().tl_lds_row_major(C.byref(m), len(shape), (C.c_uint32 * 4)(*shape), elem_bytes):
        raise ValueError(shape)
    return m


def conflicts(chip: str, op: int, width: int, addr: np.ndarray, active: int = (1 << 64) - 1) -> int:
    """tl_lds_conflicts of byte addresses (one a lane)."""
    a = np.ascontiguousarray(addr, dtype=np.uint32)
    return lib().tl_lds_conflicts(target(chip), op, width, a.ctypes.data, active)


def split(chip: str, m: LdsMap, access: Access, imm_limit: int = 65535) -> Split:
    """tl_lds_split."""
    out = Split()
    if not lib().tl_lds_split(target(chip), C.byref(m), C.byref(access), C.c_uint32(imm_limit), C.byref(out)):
        raise ValueError("split")
    return out


def solve(
    chip: str, shape: tuple[int, ...], elem_bytes: int, minor: int, accesses: list[Access]
) -> tuple[LdsMap, list[Split], int]:
    """tl_lds_solve: (map, splits, total extra cycles)."""
    m, splits, total = LdsMap(), (Split * len(accesses))(), C.c_uint32()
    ok = lib().tl_lds_solve(
        target(chip),
        len(shape),
        (C.c_uint32 * 4)(*shape),
        elem_bytes,
        minor,
        (Access * len(accesses))(*accesses),
        len(accesses),
        C.byref(m),
        splits,
        C.byref(total),
    )
    if not ok:
        raise ValueError("solve")
    return m, list(splits), total.value


def permuted(layout: Layout, perm: list[int]) -> Layout:
    """tl_layout_permute_regs."""
    out = Layout()
    if not lib().tl_layout_permute_regs(C.byref(out), C.byref(layout), (C.c_uint8 * len(perm))(*perm)):
        raise ValueError(perm)
    return out


def regs_like(layout: Layout, like: Layout, n: int) -> tuple[Layout, int]:
    """`layout` with the first n register bits of `like` in front; how many could be matched."""
    perm = (C.c_uint8 * MAX_BITS)()
    got = lib().tl_layout_regs_like(C.byref(layout), C.byref(like), n, perm)
    bits = len(parse_text(str(layout))[0]["reg"])
    return permuted(layout, list(perm[:bits])), got


def addresses(m: LdsMap, layout: Layout) -> np.ndarray:
    """Byte address of every (reg, lane, wave), from the printed texts only."""
    coords = table(layout, "reg", "lane", "wave")
    bases, _ = parse_text(str(m.map))
    off = np.zeros_like(next(iter(coords.values())))
    for d, vectors in bases.items():
        for bit, (v,) in enumerate(vectors):
            off = off ^ ((coords[d] >> bit & 1) * v)
    return off * m.elem_bytes


def max_conflicts(chip: str, m: LdsMap, access: Access, vec: int) -> int:
    """Worst extra cycles over every instruction and wave of an access, by counting addresses lane by lane."""
    a = addresses(m, access.layout)
    width = vec * m.elem_bytes
    first = a[::vec]
    for i in range(vec):  # the vector really is one run
        assert np.array_equal(a[i::vec], first + i * m.elem_bytes)
    assert not (first % width).any()
    return max(
        conflicts(chip, access.op, width, first[r, :, w]) for r in range(first.shape[0]) for w in range(first.shape[2])
    )
