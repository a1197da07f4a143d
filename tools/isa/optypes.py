"""Types of operands and classes of instructions, by LLVM's operand classes and by mnemonic."""

from __future__ import annotations

import re

BARRIER = 37  # operand type of a barrier number: an inline constant, m0, or (never assembled) a register
T_SRC = {
    13: "I32",
    14: "I64",
    15: "I16",
    16: "F32",
    17: "F64",
    18: "BF16",
    19: "F16",
    20: "V2BF16",
    21: "V2F16",
    23: "V2I16",
    25: "V2B32",
    26: "V2F32",
}
WIDTH = {
    "B32": 1,
    "U32": 1,
    "I32": 1,
    "F32": 1,
    "B16": 1,
    "U16": 1,
    "I16": 1,
    "F16": 1,
    "BF16": 1,
    "V2F16": 1,
    "V2BF16": 1,
    "V2I16": 1,
    "B64": 2,
    "U64": 2,
    "I64": 2,
    "F64": 2,
    "V2F32": 2,
    "V2B32": 2,
}
INT32, INT64, INT16 = ("B32", "U32", "I32"), ("B64", "U64", "I64"), ("B16", "U16", "I16")


def type_tokens(mnem: str) -> list[str]:
    return [t.upper() for t in re.findall(r"_((?:bf|[fiub])(?:8|16|32|64))(?=_|$)", mnem)]


def operand_type(mnem: str, is_def: bool, otype: int, bits: int) -> str:
    """The IsaType of an operand: LLVM's operand class where it has one, the signedness from the mnemonic."""
    toks = type_tokens(mnem)
    n = bits // 32
    named = (toks[0] if is_def or not mnem.startswith(("v_cvt", "s_cvt")) else toks[-1]) if toks else ""
    if not is_def and toks and not mnem.startswith(("v_cvt", "s_cvt")):
        named = (
            toks[-1]
            if mnem.startswith(("v_mad_u64", "v_mad_i64", "s_bcnt", "s_ff", "s_flbit"))
            and n == 1
            or mnem.startswith(("s_bcnt", "s_ff", "s_flbit", "s_sext"))
            else toks[0]
        )
    if mnem.startswith("v_dot") and not is_def and toks and n == 1 and T_SRC.get(otype) is None:
        named = toks[-1]
    if mnem.startswith("v_pk_") or mnem.startswith("v_dot2"):
        named = (
            {
                "F16": "V2F16",
                "BF16": "V2BF16",
                "I16": "V2I16",
                "U16": "V2I16",
                "B16": "V2I16",
                "F32": "V2F32",
                "B32": "V2B32",
            }.get(named, named)
            if WIDTH.get(named, 1) == 1 and not (is_def and "dot2" in mnem)
            else named
        )
    want = T_SRC.get(otype)
    if want:
        for group in (INT32, INT64, INT16):
            if want in group:
                return named if named in group else {"I32": "B32", "I64": "B64", "I16": "B16"}[want]
        return want
    if named in WIDTH and WIDTH[named] == n or mnem.startswith("v_mfma_f64"):  # constants are doubles in any tuple
        return named
    return {1: "B32", 2: "B64"}.get(n, "ANY")


# --------------------------------------------------------------------------------------------------- classes

TRANS = re.compile(r"v_(rcp|rsq|sqrt|exp|log|sin|cos|rcp_iflag|prng)(_legacy)?_(iflag_)?(f16|f32|f64|bf16|b32)$")


def classes(mnem: str, fam: str) -> list[str]:
    """ISA_C_* names of a mnemonic."""
    c: list[str] = []
    if fam.startswith("VOP"):
        c.append("MFMA" if re.match(r"v_(mfma|smfmac|wmma|swmmac)", mnem) else "VALU")
        if re.match(r"v_accvgpr", mnem):
            c.append("ACCMOVE")
        if TRANS.match(mnem):
            c.append("TRANS")
        if mnem.startswith("v_cmpx"):
            c.append("CMPX")
        if mnem == "v_nop":
            c.append("NOP")
    elif re.match(r"s_(wait|barrier_wait)", mnem):
        c += ["WAIT"] + ["BARRIER"] * ("barrier" in mnem)
    elif re.match(r"s_barrier", mnem):
        c.append("BARRIER")
    elif mnem in ("s_delay_alu", "s_clause", "s_set_inst_prefetch_distance"):
        c.append("NOP")
    elif fam in ("SOP1", "SOP2", "SOPK", "SOPC"):
        c.append("SALU")
        if re.match(r"s_(setpc|swappc|call|cbranch|rfe|getpc_never)", mnem):
            c.append("BRANCH")
    elif fam == "SOPP":
        if re.match(r"s_(branch|cbranch)", mnem):
            c.append("BRANCH")
        elif mnem.startswith("s_endpgm"):
            c.append("END")
        elif mnem == "s_nop":
            c.append("NOP")
        elif mnem in ("s_setprio", "s_sleep", "s_sethalt", "s_wakeup"):
            c.append("PRIO")
        else:
            c.append("SALU")
    elif fam == "SMEM":
        c.append("SMEM")
        if "load" in mnem:
            c.append("LOAD")
        if "store" in mnem:
            c.append("STORE")
        if "atomic" in mnem:
            c.append("ATOMIC")
    elif fam == "DUAL":
        c.append("VALU")
    elif fam == "LDSDIR":
        c.append("LOAD")
    elif fam == "DS":
        c.append("DS")
        if re.match(r"ds_(read|load)", mnem):
            c.append("LOAD")
        elif re.match(r"ds_(write|store)", mnem):
            c.append("STORE")
        elif re.match(r"ds_(permute|bpermute|swizzle|nop|gws|consume|append|ordered)", mnem):
            pass
        else:
            c.append("ATOMIC")
    else:
        c.append("VMEM")
        if fam in ("FLAT",):
            c.append("FLAT")
        if "atomic" in mnem:
            c.append("ATOMIC")
        elif "load" in mnem:
            c.append("LOAD")
        elif "store" in mnem:
            c.append("STORE")
    return c
