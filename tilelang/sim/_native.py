"""ctypes view of the private entry points of ``libtilelang_sim.so`` (csrc/sim/tlsim.h)."""

from __future__ import annotations

import ctypes as C
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTHS = (1, 2, 4, 8, 12, 16)
"""Bytes that one lane moves in one instruction: the columns of the by-width statistics."""

NO_PC = -(1 << 63)

AT_ZERO = (1 << 64) - 1
"""An address 0 in a fault (0 says that there is none)."""


class Report(C.Structure):
    """``SimReport`` of csrc/sim/device.h."""

    _fields_ = [
        ("check", C.c_uint32),
        ("wg", C.c_uint32 * 3),
        ("wave", C.c_uint32),
        ("other_wave", C.c_uint32),
        ("line", C.c_uint32),
        ("other_line", C.c_uint32),
        ("lanes", C.c_uint64),
        ("count", C.c_uint64),
        ("pc", C.c_int64),
        ("other_pc", C.c_int64),
        ("address", C.c_uint64),
        ("has_address", C.c_uint32),
        ("rule", C.c_uint32),
        ("message", C.c_char * 640),
        ("text", C.c_char * 160),
        ("other_text", C.c_char * 160),
        ("buffer", C.c_char * 288),
        ("kernel", C.c_char * 8192),
        ("function", C.c_char * 8192),
        ("other_function", C.c_char * 8192),
        ("file", C.c_char * 1024),
        ("other_file", C.c_char * 1024),
    ]


class Stats(C.Structure):
    """``SimStats`` of csrc/sim/exec.h."""

    _fields_ = [
        ("pc_counts", C.POINTER(C.c_uint64)),
        ("instructions", C.c_uint64),
        ("lds_conflict_cycles", C.c_uint64),
        ("lds_gap_accesses", C.c_uint64),
        ("global_read", C.c_uint64 * len(WIDTHS)),
        ("global_write", C.c_uint64 * len(WIDTHS)),
        ("lds_read", C.c_uint64 * len(WIDTHS)),
        ("lds_write", C.c_uint64 * len(WIDTHS)),
        ("scalar_read", C.c_uint64),
        ("lds_dma", C.c_uint64),
        ("atomics", C.c_uint64),
    ]


class KernelInfo(C.Structure):
    """``TlsimKernelInfo``."""

    _fields_ = (
        [(n, C.c_uint32) for n in ("sgpr_count", "vgpr_count", "agpr_count", "sgpr_spill_count", "vgpr_spill_count")]
        + [(n, C.c_uint32) for n in ("group_size", "private_size", "kernarg_size", "kernarg_align")]
        + [("max_flat_workgroup_size", C.c_uint32), ("wavefront_size", C.c_uint32)]
        + [("reqd_workgroup_size", C.c_uint32 * 3)]
        + [(n, C.c_uint32) for n in ("dynamic_stack", "uniform_work_group", "has_metadata", "nargs")]
        + [("allocated_vgprs", C.c_uint32), ("code_bytes", C.c_uint64), ("count_words", C.c_uint64)]
        + [("count_base", C.c_int64)]
    )


class Arg(C.Structure):
    """``TlsimArg``."""

    _fields_ = [
        ("offset", C.c_uint32),
        ("size", C.c_uint32),
        ("hidden", C.c_uint32),
        ("pad", C.c_uint32),
        ("name", C.c_char * 128),
        ("kind", C.c_char * 64),
    ]


class WaveState(C.Structure):
    """``SimWaveState`` of csrc/sim/exec.h."""

    _fields_ = [
        ("exec", C.c_uint64),
        ("vcc", C.c_uint64),
        ("scc", C.c_uint32),
        ("m0", C.c_uint32),
        ("mode", C.c_uint32),
        ("s", C.c_uint32 * 128),
        ("v", (C.c_uint32 * 64) * 512),
        ("lds", C.POINTER(C.c_uint8)),
        ("lds_bytes", C.c_uint32),
        ("mfma_hw", C.c_uint32),
        ("late", C.c_uint32),
        ("seed", C.c_uint64),
        ("checks", C.c_uint32),
        ("scc_given", C.c_uint32),
        ("s_given", C.c_uint64 * 2),
        ("v_given", C.c_uint64 * 512),
        ("ignore", C.c_uint64),
    ]


class Fault(C.Structure):
    """``SimFault`` of csrc/sim/exec.h."""

    _fields_ = [
        ("check", C.c_uint32),
        ("message", C.c_char * 640),
        ("wg", C.c_uint32 * 3),
        ("wave", C.c_uint32),
        ("lanes", C.c_uint64),
        ("pc", C.c_uint64),
        ("address", C.c_uint64),
        ("other_pc", C.c_uint64),
        ("other_wave", C.c_uint32),
        ("rule", C.c_uint32),
        ("fatal", C.c_bool),
    ]


_P, _U32, _U64, _STR, _SIZE = C.c_void_p, C.c_uint32, C.c_uint64, C.c_char_p, C.c_size_t
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "tlsim_checks_available": (_U32,),
    "tlsim_check_name": (_STR, _U32),
    "tlsim_target_name": (_STR, _U32),
    "tlsim_target_suits": (C.c_bool, _STR, _STR),
    "tlsim_arch_available": (C.c_bool, _STR),
    "tlsim_device_create": (_P, _STR, _U32, _U32, _STR, _SIZE),
    "tlsim_device_destroy": (None, _P),
    "tlsim_device_option": (C.c_bool, _P, _STR, _U64),
    "tlsim_device_option_value": (C.c_uint64, _P, _STR),
    "tlsim_cancel": (None, _P),
    "tlsim_counters": (None, _P, C.POINTER(_U64), C.POINTER(_U64)),
    "tlsim_progress": (None, _P, C.POINTER(_U64), C.POINTER(_U64)),
    "tlsim_malloc": (_P, _P, _U64, _STR),
    "tlsim_free": (C.c_bool, _P, _P),
    "tlsim_protect": (C.c_bool, _P, _P),
    "tlsim_copy_in": (None, _P, _P, _P, _U64),
    "tlsim_copy_out": (None, _P, _P, _P, _U64),
    "tlsim_register_array": (_U64, _P, _P, _U32, _P, _P, _U32, _STR),
    "tlsim_unregister_array": (C.c_bool, _P, _U64),
    "tlsim_module_load": (_P, _P, _STR, _U64, _STR, _SIZE),
    "tlsim_module_unload": (None, _P, _P),
    "tlsim_kernel_count": (_U32, _P),
    "tlsim_kernel_at": (_P, _P, _U32),
    "tlsim_kernel_name": (_STR, _P),
    "tlsim_kernel_info": (None, _P, C.POINTER(KernelInfo)),
    "tlsim_occupancy": (_U32, _P, _P, _U32, _U32),
    "tlsim_kernel_arg": (C.c_bool, _P, _U32, C.POINTER(Arg)),
    "tlsim_disassemble": (
        (_U32, _P, C.c_int64, _STR, _SIZE, _STR, _SIZE, _STR, _SIZE, C.POINTER(_U32), C.POINTER(C.c_bool))
    ),
    "tlsim_launch": (C.c_int32, _P, _P, _U32 * 3, _U32 * 3, _U32, _STR, _U64, C.POINTER(Stats)),
    "tlsim_error": (_STR, _P),
    "tlsim_report_count": (_U32, _P),
    "tlsim_report": (C.c_bool, _P, _U32, C.POINTER(Report)),
    "tlsim_report_size": (_U64,),
    "tlsim_report_text": (_U64, _P, _U32, _STR, _U64),
    "tlsim_inst_text": (None, _STR, C.c_bool, C.c_char_p, _U64, _STR, _SIZE),
    "tlsim_hazard_rules": (C.c_bool, _STR, C.POINTER(_U32), _STR, _SIZE),
    "tlsim_hazard_rule": (_STR, _U32),
    "tlsim_env_check": (C.c_bool, _STR, _SIZE),
    "tlsim_exec_bytes": (C.c_bool, _STR, C.c_bool, _STR, _U64, _U64, C.POINTER(WaveState), C.POINTER(Fault)),
    "tlsim_mfma_known": (C.c_int32, _STR, _STR),
    "tlsim_wave_state_size": (_U64,),
}


def library_path() -> Path:
    """Path of ``libtilelang_sim.so``: ``TILELANG_SIM_LIB``, else the one beside the package."""
    env = os.environ.get("TILELANG_SIM_LIB")
    return Path(env) if env else Path(__file__).absolute().parent.parent / "libtilelang_sim.so"


@functools.lru_cache(maxsize=1)
def library() -> C.CDLL:
    """The loaded simulator library with argument types set. Raises ``OSError`` when it is not built."""
    path = library_path()
    if not path.exists():
        if os.environ.get("TILELANG_SIM_LIB"):
            raise OSError(f"TILELANG_SIM_LIB must be the simulator's library, not '{path}', which does not exist")
        raise OSError(f"the simulator library is not built: {path} does not exist")
    try:
        lib = C.CDLL(str(path))
    except OSError as e:
        raise OSError(f"the simulator's library cannot be loaded: {e}") from None
    for name, (res, *args) in _FUNCTIONS.items():
        fn = getattr(lib, name, None)
        if fn is None:
            raise OSError(f"{path} belongs to another version of tilelang")
        fn.restype = res
        fn.argtypes = args
    if lib.tlsim_report_size() != C.sizeof(Report) or lib.tlsim_wave_state_size() != C.sizeof(WaveState):
        raise OSError(f"{path} belongs to another version of tilelang")
    return lib


def check_environment() -> None:
    """ValueError when a variable ``TILELANG_SIM_...`` holds what it may not."""
    why = C.create_string_buffer(512)
    if not library().tlsim_env_check(why, len(why)):
        raise ValueError(why.value.decode(errors="replace"))


def check_mask(checks: str | list[str] | tuple[str, ...]) -> int:
    """Bit mask of check names; "none", "all", one name or a sequence of names, "strict" among them: the check
    "barrier" with the rule that all waves of a workgroup meet at one and the same barrier instruction.

    "all" means every check that is implemented. Raises ``ValueError`` for a name that does not exist or whose check is
    not implemented, naming those there are."""
    lib = library()
    available: int = lib.tlsim_checks_available()
    names: dict[str, int] = {}
    for i in range(32):
        raw = lib.tlsim_check_name(i)
        if raw is None:
            break
        names[raw.decode()] = i
    there = [n for n, i in names.items() if available >> i & 1]
    if checks == "none" or checks is None:
        return 0
    if checks == "all":
        return available
    strict = 1 << 31
    wanted = [checks] if isinstance(checks, str) else list(checks)
    if len(wanted) == 1 and isinstance(wanted[0], str) and "," in wanted[0]:
        wanted = [w.strip() for w in wanted[0].split(",")]
    mask = 0
    if "none" in wanted and len(wanted) > 1:
        raise ValueError(f"the check 'none' stands alone, not in {', '.join(map(str, wanted))}")
    for name in wanted:
        if name in ("all", "strict", "none"):
            mask |= {"all": available, "strict": strict | 1 << names["barrier"], "none": 0}[name]
            continue
        if name not in there:
            what = "is not implemented yet" if name in names and names[name] < 6 else "does not exist"
            raise ValueError(f"the check {name!r} {what}; there are: {', '.join(there)}, strict (and all, none)")
        mask |= 1 << names[name]
    return mask


def check_name(check: int) -> str:
    """Name of a ``SimCheck`` value, or "strict"."""
    if check == 31:
        return "strict"
    raw = library().tlsim_check_name(check)
    return raw.decode() if raw is not None else f"check {check}"


def rule_set(rules: str | Sequence[str] | None) -> int:
    """A set of hazard rules, by names: one string with commas between, or a sequence; None: those that
    TILELANG_SIM_IGNORE names. Raises ValueError for a name that does not exist, naming those there are."""
    names = None if rules is None else (rules if isinstance(rules, str) else ",".join(rules)).encode()
    found, why = C.c_uint32(), C.create_string_buffer(600)
    if not library().tlsim_hazard_rules(names, C.byref(found), why, len(why)):
        raise ValueError(f"no hazard rules {rules!r}; there are: {why.value.decode()}")
    return found.value


def rule_name(rule: int) -> str | None:
    """Name of an ``IsaHazardRule``; None: no rule."""
    return library().tlsim_hazard_rule(rule).decode() or None
