"""Runs bare instruction bytes on one wave."""

from __future__ import annotations

import ctypes as C
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.errors import SimulatorFault
from tilelang.sim import _native as nat
from tilelang.sim._device import Report, _checks, _late, _mfma, _number, _seed

_MODE_DEFAULT = 0x3F0
_NAMED = (106, 107, 124, 125, 126, 127)
"""Scalar operand codes of vcc, m0 (and null), exec: they have fields of their own."""


_FIELDS = ("wave", "exec", "vcc", "scc", "m0", "s", "v", "lds", "mode")
_CHECKS = ("init", "wait", "hazard")
"""Bounds are always checked, and one wave alone neither races nor waits for another."""


_MODE = {
    "fp32_round": (0, 2),
    "fp16_64_round": (2, 2),
    "fp32_denorm": (4, 2),
    "fp16_64_denorm": (6, 2),
    "dx10_clamp": (8, 1),
    "ieee": (9, 1),
    "fp16_ovfl": (23, 1),
}
"""Fields of MODE: lowest bit, bits."""
_MOST = 1 << 26
"""Instructions that may run."""


def _mode(fields: dict[str, int] | None) -> int:
    """MODE with these fields, the others as usual."""
    mode = _MODE_DEFAULT
    for name, value in (fields or {}).items():
        if name not in _MODE:
            raise ValueError(f"mode has no field {name!r}; there are: {', '.join(_MODE)}")
        shift, width = _MODE[name]
        mask = ((1 << width) - 1) << shift
        mode = mode & ~mask | _number(value, f"mode: {name}", 0, mask >> shift) << shift
    return mode


def _mode_after(mode: int, given: dict[str, int] | None) -> dict[str, int] | None:
    """The fields given and those that are not as usual; None when there are none and none was given."""
    out = {}
    for name, (shift, width) in _MODE.items():
        value = mode >> shift & ((1 << width) - 1)
        if name in (given or {}) or value != _MODE_DEFAULT >> shift & ((1 << width) - 1):
            out[name] = value
    return out if out or given is not None else None


def _hex(value: Any, what: str, digits: int) -> int:
    """The number that a string of hex digits says; TypeError or ValueError that names it."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string of hex digits, not {value!r}")
    if not re.fullmatch("[0-9a-fA-F]+", value) or len(value.lstrip("0")) > digits:
        raise ValueError(f"{what} has at most {digits} hex digits, not {value!r}")
    return int(value, 16)


def _table(state: Mapping[str, Any], key: str) -> Mapping[Any, Any]:
    """A field that is a table; empty where there is none."""
    table = state.get(key, {})
    if not isinstance(table, Mapping):
        raise TypeError(f"{key} must be a dict, not {table!r}")
    return table


def _wave_state(state: dict[str, Any], wave: int) -> nat.WaveState:
    """Registers, masks and mode of a state, and which of them count as defined."""
    st = nat.WaveState()
    st.exec = _hex(state.get("exec", "f" * (wave // 4)), "exec", 16)
    st.vcc = _hex(state.get("vcc", "0"), "vcc", wave // 4)
    st.scc = _number(state.get("scc", 0), "scc", 0, 1)
    st.m0 = _hex(state.get("m0", "0"), "m0", 8)
    st.mode = _mode(_table(state, "mode") if state.get("mode") is not None else None)
    st.scc_given = "scc" in state
    given = [i for key, codes in (("vcc", (106, 107)), ("m0", (124, 125))) if key in state for i in codes]
    for num, value in _table(state, "s").items():
        st.s[_sgpr(num)] = _hex(value, f"s{num}", 8)
        given.append(int(num))
    for i in given:
        st.s_given[i // 64] |= 1 << i % 64
    for num, value in _table(state, "v").items():
        row = st.v[_vgpr(num)]
        if not isinstance(value, str):
            raise TypeError(f"v{num}: hex digits, 8 a lane, not {value!r}")
        if len(value) % 8 or len(value) > 8 * wave or not re.fullmatch("[0-9a-fA-F]*", value):
            raise ValueError(f"v{num}: 8 hex digits a lane of {wave}, not {len(value)} of {value[:20]!r}")
        for lane in range(len(value) // 8):
            row[lane] = int(value[8 * lane : 8 * lane + 8], 16)
        st.v_given[_vgpr(num)] = (1 << len(value) // 8) - 1
    return st


def _fault(lib: C.CDLL, arch: str, wave: int, code: bytes, base: int, fault: nat.Fault) -> SimulatorFault:
    """What to raise for a fault of code that lies at host address base."""
    message = fault.message.decode(errors="replace")

    def shown(pc: int) -> str:
        out = C.create_string_buffer(160)
        if 0 <= pc - base < len(code):
            lib.tlsim_inst_text(arch.encode(), wave == 64, code[pc - base :], len(code) - (pc - base), out, 160)
        return out.value.decode()

    where = {nat.AT_ZERO: 0, 0: None}.get(fault.address, fault.address)
    other = shown(fault.other_pc) if fault.other_pc else None
    report = Report(
        check=nat.check_name(fault.check),
        message=message,
        kernel="",
        workgroup=(0, 0, 0),
        wave=0,
        lanes=tuple(i for i in range(64) if fault.lanes >> i & 1),
        pc=fault.pc - base if fault.pc else 0,
        text=shown(fault.pc),
        address=where,
        other_pc=fault.other_pc - base if fault.other_pc else None,
        line=None,
        other_text=other,
        rule=nat.rule_name(fault.rule),
        details=f"{nat.check_name(fault.check)}: {message}",
    )
    return SimulatorFault(message, [report])


def _state_after(
    st: nat.WaveState, state: dict[str, Any], wave: int, before_s: bytes, before_v: bytes, lds: bytes
) -> dict[str, Any]:
    """The result of a run that began with ``state`` and these scalar and vector registers."""
    after_s, after_v = bytes(st.s), bytes(st.v)
    out: dict[str, Any] = {
        "wave": wave,
        "exec": f"{st.exec:0{wave // 4}x}",
        "vcc": f"{st.vcc:0{wave // 4}x}",
        "scc": st.scc,
        "m0": f"{st.m0:08x}",
        "s": {},
        "v": {},
        "lds": lds.hex(),
        "mode": _mode_after(st.mode, state.get("mode")),
    }
    scalars = {_sgpr(n) for n in state.get("s", {})}
    for i in range(128):
        if i in _NAMED and not (i == 107 and wave == 32 and i in scalars):
            continue
        if i in scalars or before_s[4 * i : 4 * i + 4] != after_s[4 * i : 4 * i + 4]:
            out["s"][str(i)] = f"{st.s[i]:08x}"
    vectors = {_vgpr(n) for n in state.get("v", {})}
    for i in range(512):
        if i in vectors or before_v[256 * i : 256 * i + 256] != after_v[256 * i : 256 * i + 256]:
            key = str(i) if i < 256 else f"a{i - 256}"
            out["v"][key] = "".join(f"{st.v[i][lane]:08x}" for lane in range(wave))
    return out


def execute(
    arch: str,
    code: bytes,
    state: dict[str, Any],
    checks: str | Sequence[str] = "none",
    *,
    mfma: str = "default",
    delivery: str = "now",
    seed: int = 0,
    ignore: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Runs ``code`` on one wave until past its last byte and returns the state after it.

    ``state`` has these keys and no others: ``wave`` (64 or 32), ``exec``, ``vcc`` (hex masks),
    ``scc``, ``m0`` (hex), ``s`` and ``v`` ({number: hex}; a vector register has 8 digits a lane, lane 0 first;
    "a0", ... are accumulation registers), ``lds`` (hex bytes), ``mode`` ({field: value}). In a wave of 32 lanes
    vcc_hi is s107, an ordinary register, and ``exec`` of the result has 16 digits where exec_hi is not 0. The
    result has the same keys; ``s`` and ``v`` hold all registers given and all that changed, ``mode`` the fields
    given and those that are not as usual (None: neither). mfma="hw": matrix and dot instructions sum as the chip
    does. ``delivery="late"``: what memory instructions do happens as late as the waits in ``code`` allow (all of it
    by the end), or earlier where ``seed`` says. ``checks``: as of a Device; init, wait and hazard find something
    here (bounds are always checked, one wave neither races nor waits for another): registers, vcc, scc and m0 that
    ``state`` names are defined, others are not; exec and LDS always are. ``ignore``: as of a Device. Raises
    SimulatorFault for an instruction that cannot run, for 2**26 instructions without an end, and for the first thing
    that a check finds (its report has ``pc`` and ``other_pc`` in bytes from the start of ``code``), ValueError for a
    check, a chip, a rule or a wave size that does not exist, code that is no whole number of dwords and a malformed
    state."""
    lib = nat.library()
    nat.check_environment()
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be a dict, not {state!r}")
    if unknown := [k for k in state if k not in _FIELDS]:
        raise ValueError(f"state has no field {unknown[0]!r}; there are: {', '.join(_FIELDS)}")
    mask = _check_mask(checks)
    wave = state.get("wave", 64)
    if wave not in (32, 64):
        raise ValueError(f"wave must be 32 or 64, not {wave!r}")
    if not isinstance(arch, str):
        raise TypeError(f"arch must be a string, not {arch!r}")
    if not lib.tlsim_arch_available(arch.encode()):
        raise ValueError(f"unknown architecture {arch!r}")
    if wave == 32 and "gfx9" in arch:
        raise ValueError(f"waves of {arch} have 64 lanes")
    if isinstance(code, (int, str)):
        raise TypeError(f"code must be bytes, not {code!r}")
    code = bytes(code)
    if len(code) % 4:
        raise ValueError(f"code of {len(code)} bytes is no whole number of dwords")
    st = _wave_state(state, wave)
    st.mfma_hw = _mfma(mfma) == "hw"
    st.late, st.seed = _late(delivery), _seed(seed)
    st.checks, st.ignore = mask, nat.rule_set(ignore)
    lds = _lds(state.get("lds") or "")
    buf = (C.c_uint8 * max(len(lds), 1)).from_buffer_copy(bytes(lds) or b"\0")
    st.lds = C.cast(buf, C.POINTER(C.c_uint8))
    st.lds_bytes = len(lds)
    before_s, before_v = bytes(st.s), bytes(st.v)
    fault = nat.Fault()
    text = C.create_string_buffer(code, max(len(code), 1))
    if not lib.tlsim_exec_bytes(arch.encode(), wave == 64, text, len(code), _MOST, C.byref(st), C.byref(fault)):
        raise _fault(lib, arch, wave, code, C.addressof(text), fault)
    return _state_after(st, state, wave, before_s, before_v, bytes(buf)[: len(lds)])


def _check_mask(checks: str | Sequence[str]) -> int:
    """Bits of the checks that find something in bare instructions; ValueError for one that does not exist."""
    mask = nat.check_mask(_checks(checks))
    return mask & nat.check_mask(_CHECKS)


def _lds(digits: Any) -> bytes:
    if not isinstance(digits, str):
        raise TypeError(f"lds must be a string of hex digits, not {digits!r}")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ValueError(f"lds must be hex digits, two a byte, not {len(digits)} of {digits[:20]!r}") from None


def _register(key: Any) -> int:
    return int(key) if re.fullmatch("[0-9]+", str(key)) else -1


def _sgpr(key: str | int) -> int:
    n = _register(key)
    if not 0 <= n < 128:
        raise ValueError(f"no scalar register {key}")
    return n


def _vgpr(key: str | int) -> int:
    key = str(key)
    n = _register(key[1:]) + 256 if key.startswith("a") and _register(key[1:]) >= 0 else _register(key)
    if not 0 <= n < 512:
        raise ValueError(f"no vector register {key}")
    return n
