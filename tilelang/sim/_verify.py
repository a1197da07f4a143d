"""The static verifier: what can be told from a code object without running it."""

from __future__ import annotations

import ctypes as C
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from tilelang.sim import _native as nat
from tilelang.sim._bundle import chips_of, unbundle
from tilelang.sim._device import _number


@dataclass(frozen=True)
class Finding:
    """One fault of finished code.

    kind: "wait" (a register of a load is used before its wait), "barrier" (LDS data may be under way at a barrier, or
    no wait covers a load to LDS), "hazard" (a wait state is missing), "exec" (lanes that may be off take part in a
    cross-lane operation), "lds", "registers", "scratch" (the descriptor does not give what the code uses), "illegal"
    (an instruction that is not known). severity: "error", or "warning" for what is legal in some programs ("exec").
    ``pc`` and ``other_pc`` (the producer's) are bytes from the first instruction of ``kernel``; ``line`` is
    "file:line" where the code object has line tables. ``arch`` is the chip; code for a generic target is looked at for
    each chip that runs it. ``rule`` is the row of "hazard" (what ``ignore=`` takes)."""

    kind: str
    severity: str
    kernel: str
    message: str
    pc: int | None
    text: str
    line: str | None
    other_pc: int | None = None
    other_text: str = ""
    other_line: str | None = None
    arch: str = ""
    rule: str | None = None

    def __str__(self) -> str:
        at = "" if self.pc is None else f" at +0x{self.pc:x}"
        where = f" ({self.line})" if self.line else ""
        kind = self.kind if self.severity == "error" else f"{self.severity}: {self.kind}"
        chip = f" for {self.arch}" if self.arch else ""
        rule = f" [{self.rule}]" if self.rule else ""
        return f"{kind}: {self.kernel}{chip}{at}{where}: {self.message}{rule}"


def verify(
    source: str | os.PathLike[str] | bytes,
    *,
    lds_bytes: int | None = None,
    arch: str | None = None,
    ignore: str | Sequence[str] | None = None,
) -> list[Finding]:
    """Checks every function of a code object (a path, or its bytes) and every kernel descriptor; runs nothing. Of a
    file with several (see :func:`unbundle`) it checks those for the chips that are simulated, or for ``arch``.

    ``lds_bytes`` is the LDS that launches give (static and dynamic); LDS offsets are checked only when it is known.
    ``ignore``: rules of "hazard" that are left out, by the names that findings give (None: TILELANG_SIM_IGNORE).
    Raises ValueError when the file is no code object of a chip known here, or has none for ``arch``, or a rule does
    not exist."""
    rules = nat.rule_set(ignore)
    if arch is not None and not isinstance(arch, str):
        raise TypeError(f"arch must be a string, not {arch!r}")
    if lds_bytes is not None:
        lds_bytes = _number(lds_bytes, "lds_bytes", 0, 0xFFFFFFFF)
    if arch is not None and chips_of(arch) != (arch,):
        raise ValueError(f"no simulated chip is called {arch!r}")
    codes = unbundle(source)
    known = [code for target, code in codes if (arch in chips_of(target) if arch else chips_of(target))]
    if not known and (arch or len(codes) != 1):
        there = ", ".join(dict.fromkeys(t or "unknown" for t, _ in codes))
        raise ValueError(f"no code object for {arch or 'a simulated chip'}; there are: {there}")
    found = [f for code in known or [codes[0][1]] for f in _verify(code, lds_bytes, rules)]
    return [f for f in found if f.arch == arch] if arch else found


def _verify(data: bytes, lds_bytes: int | None, ignore: int) -> list[Finding]:
    lib = nat.library()
    lib.tlsim_verify.restype = C.c_void_p
    lib.tlsim_verify.argtypes = [C.c_char_p, C.c_uint64, C.c_int64, C.c_uint32, C.c_char_p, C.c_size_t]
    lib.tlsim_text_free.restype = None
    lib.tlsim_text_free.argtypes = [C.c_void_p]
    why = C.create_string_buffer(512)
    raw = lib.tlsim_verify(data, len(data), -1 if lds_bytes is None else lds_bytes, ignore, why, len(why))
    if not raw:
        raise ValueError(f"cannot load the code object: {why.value.decode(errors='replace')}")
    try:
        rows = json.loads(C.string_at(raw).decode())
    finally:
        lib.tlsim_text_free(raw)
    return [Finding(**row) for row in rows]
