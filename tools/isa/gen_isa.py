"""Makes csrc/isa/isa_ops.def, isa_patterns.def and isa_<chip>.def by asking LLVM about every opcode of every family.

Developer tool: nothing here is needed to build or run the project. It builds `mcdump.cpp` against LLVM 22, encodes
every opcode of every encoding family with neutral operands, and reads from the answer: mnemonic, operands in text
order, register counts, operand types, implicit registers, and which modifiers the text shows.

    python tools/isa/gen_isa.py [--out csrc/isa] [--check]
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from families import COMBOS, HI1, LIT, OPCODE_BITS, SDST, SRC0, Family, V, families, generation, q
from mcdump import ROOT, Answer, build_mcdump, hexbytes, parse, run_mcdump
from optypes import BARRIER, classes, operand_type

CDNA = ["gfx90a", "gfx942", "gfx950"]
RDNA = ["gfx1100", "gfx1201"]
SHORT = ("SOP1", "SOP2", "SOPK", "SOPC", "SOPP", "LDSDIR", "VOP1", "VOP2", "VOPC")
CHIPS = CDNA + RDNA

# --------------------------------------------------------------------------------------------------- rows


@dataclass
class Row:
    """One table row: a (chip, family, opcode)."""

    fam: str
    op: int
    mnem: str
    suffix: str
    specs: tuple[str, ...]
    flags: list[str]
    base: str = ""
    imm: str = "NONE"
    mbz: int = 0  # bits that must be zero


IMM_KINDS = [
    (r"s_(branch|cbranch_\w+)$", "BRANCH"),
    (r"s_waitcnt$", "WAITCNT"),
    (r"s_delay_alu$", "DELAY"),
    (r"s_(waitcnt_depctr|wait_alu)$", "DEPCTR"),
    (r"s_(denorm_mode|barrier_wait)$", "DEC"),
    (r"s_(getreg|setreg)", "HWREG"),
    (r"s_sendmsg", "SENDMSG"),
    (r"s_set_gpr_idx_(on|mode)$", "GPRIDX"),
    (
        r"s_(nop|sleep|setprio|sethalt|trap|icache_inv|endpgm|barrier|setkill|decperflevel|incperflevel|wakeup|"
        r"endpgm_\w+|ttracedata|set_gpr_idx_off)$",
        "DEC",
    ),
    (r"s_version$|s_subvector_loop|s_call_b64|s_cbranch_i_fork", "BRANCH"),
]


def strip_suffix(mnem: str) -> tuple[str, str]:
    m = re.match(r"(.*)_(e32|e64)$", mnem)
    return (m[1], m[2].upper()) if m else (mnem, "NONE")


def text_tokens(text: str) -> list[str]:
    """Top-level comma tokens after the mnemonic, each cut at its first blank (modifiers follow a blank)."""
    parts = text.split(None, 1)
    if len(parts) < 2:
        return []
    out, depth, cur = [], 0, ""
    for ch in parts[1]:
        depth += ch in "[(" and 1 or ch in "])" and -1 or 0
        if ch == "," and depth == 0:
            out.append(cur.strip())
            cur = ""
        else:
            cur += ch
    out.append(cur.strip())
    return [t.split()[0] if t.split() else "" for t in out]


def spec(fieldname: str, nregs: int, typ: str, flags: list[str]) -> str:
    return f"{{ISA_F_{fieldname}, {nregs}, ISA_T_{typ}, {' | '.join('ISA_S_' + f for f in flags) or '0'}}}"


def acc_fields(fam: Family, *answers: Answer | None) -> set[str]:
    """Fields whose registers became accumulation registers in these answers to probes with the acc bits set."""
    return {fam.fields[o.num] for a in answers if a for o in a.opnds if o.file == "AGPR" and o.num in fam.fields}


def make_specs(fam: Family, a: Answer, acc: set[str], mods: set[int], mnem: str, wave: bool) -> tuple[str, ...]:
    """Operand specs in text order, implicit ones last; wave: lane masks are as wide as the wave."""
    found: list[list] = []  # [field, nregs, type, flags, num]
    tied_to: set[int] = set()
    for o in a.opnds:
        if o.kind == "r" and o.tied >= 0:
            tied_to.add(o.tied)
    imm_names = imm_fields(fam.name, mnem, a)
    for i, o in enumerate(a.opnds):
        if o.tied >= 0 and o.kind == "r":
            continue
        if o.kind == "r" and o.num >= 0 and (o.bits or o.rc != "-" or o.otype == BARRIER):
            f = fam.fields.get(o.num)
            if f is None:
                raise ValueError(f"{a.llvm}: register {o.val} stands for no field")
            flags = []
            if o.is_def:
                flags.append("W")
                if i in tied_to:
                    flags.append("R")
            else:
                flags.append("R")
            if o.file == "AGPR":
                flags.append("AGPR")
            elif o.file == "SGPR" and f in ("VDST", "SDST") and fam.name.startswith("VOP"):
                flags.append("SGPR")
            elif f in acc and o.file == "VGPR":
                flags.append("ACC")
            if o.otype == 2 and re.match(r"V|AV|AReg|AGPR", o.rc) and f in ("SRC0", "SRC1", "SRC2"):
                flags.append("VONLY")
            if (
                not o.is_def
                and f in ("SRC0", "SRC1", "SRC2")
                and o.rc.startswith(("SReg", "SSrc", "SGPR"))
                and fam.name.startswith("VOP")
            ):
                flags.append("SONLY")
                if o.otype == 2:
                    flags.append("REG")
            if not o.is_def and fam.name.startswith("SOP") and o.otype == 2 and f.startswith("SRC"):
                flags.append("REG")
            if "XEXEC" in o.rc and o.file == "SGPR" and (fam.name == "SMEM" or mnem.startswith("v_s_")):
                flags.append("NOEXEC")
            n = {"SRC0": 0, "SRC1": 1, "VSRC1": 1, "SRC2": 2}.get(f, -1)
            if n in mods:
                flags.append("MOD")
            if o.val.endswith(("_LO16", "_HI16")) or o.rc.startswith("VS_16"):
                flags.append("T16")
            carry = f == "SRC2" and re.match(r"v_(cndmask|add_co_ci|sub_co_ci|subrev_co_ci)", mnem)
            if wave and fam.name == "VOP3" and (f == "SDST" or carry or f == "VDST" and mnem.startswith("v_cmp")):
                flags.append("MASK")
            typ = operand_type(mnem, o.is_def, o.otype, o.bits)
            if f in ("ADDR", "VADDR", "SADDR", "SDST", "SOFFSET", "SBASE", "SRSRC") or (o.is_def and o.file == "SGPR"):
                typ = {1: "B32", 2: "B64"}.get(o.bits // 32, "ANY")
            if "movreld" in mnem and f == "VDST":
                flags = ["W"]  # the destination is M0-relative
            if "_d16" in mnem and "load" in mnem and o.is_def and "R" not in flags and o.bits == 32:
                flags.append("R")
            found.append([f, max(1, o.bits // 32), typ, flags, o])
        elif o.kind in "ie" and imm_names and i in imm_names:
            found.append([imm_names[i], 0, imm_type(mnem), ["R"], o])
    # vcc in the text that is no field
    toks = text_tokens(a.text)
    out: list[list] = []
    left = list(found)
    for t in toks:
        if t in ("vcc", "vcc_lo", "exec", "exec_lo"):
            isdef = (
                len(out) <= 1
                and ("VCC" in a.defs or "EXEC" in a.defs or any(o.is_def and o.val == "VCC" for o in a.opnds))
                and not any(x[0] == "VCC" for x in out)
            )
            mask = ["MASK"] if wave and fam.name.startswith("VOP") else []
            out.append([t.split("_")[0].upper(), 2, "B64", ["W" if isdef else "R", *mask], None])
            continue
        m = re.match(r"[-|]*(v|s|a|ttmp)\[?(\d+)", t)
        if m:
            file = {"v": "VGPR", "s": "SGPR", "a": "AGPR", "ttmp": "TTMP"}[m[1]]
            hit = next((x for x in left if x[4].file == file and x[4].num == int(m[2])), None)
        else:
            hit = next((x for x in left if x[4].kind in "ie"), None)
        if hit is not None:
            left.remove(hit)
            out.append(hit)
    if any(x[4].kind == "r" for x in left):
        raise ValueError(f"{a.llvm}: operand not in the text {a.text}")
    out += left
    if fam.name == "SCRATCH" and not any(x[0] == "SADDR" for x in out):
        out.append(["SADDR", 1, "B32", ["R"], None])  # the other addressing form
    if [x[0] for x in out[:2]] == ["LIT", "SIMM16"]:
        out[:2] = out[1::-1]  # s_setreg_imm32_b32 shows the register first
    printed = {x[0] for x in out}
    for regs, fl in ((a.defs, "W"), (a.uses, "R")):
        for r in regs:
            name = {
                "VCC": "VCC",
                "VCC_LO": "VCC",
                "VCC_HI": "VCC",
                "SCC": "SCC",
                "EXEC": "EXEC",
                "M0": "M0",
                "FLAT_SCR": "FLATSCR",
                "EXEC_LO": "EXEC",
            }.get(r)
            if name is None:
                continue
            if name == "EXEC" and fl == "R" and not fam.name.startswith("SOP"):
                continue  # the lane mask of every vector instruction
            if name == "M0" and fam.name == "DS" and not re.search(r"addtid|gws|ordered|consume|append|param", mnem):
                continue  # gfx9 LDS instructions need no M0
            if name == "FLATSCR" and fam.name in ("FLAT",):
                pass
            if name in printed and any(x[0] == name and fl in x[3] for x in out):
                continue
            same = [x for x in out if x[0] == name and "IMPL" in x[3]]
            if same:
                if fl not in same[0][3]:
                    same[0][3].insert(0, fl)
                continue
            w = 1 if r.endswith(("_LO", "_HI")) else {"VCC": 2, "EXEC": 2, "FLATSCR": 2}.get(name, 1)
            mask = ["MASK"] if wave and w == 2 and fam.name.startswith("VOP") else []
            out.append([name, w, "B64" if w == 2 else "B32", [fl, "IMPL", *mask], None])
    if len(out) > 8:
        raise ValueError(f"{a.llvm}: too many operands")
    return tuple(spec(f, n, t, fl) for f, n, t, fl, _ in out)


def imm_type(mnem: str) -> str:
    return "F16" if re.search(r"k_f16$", mnem) else "F32" if re.search(r"k_f32$", mnem) else "B32"


def imm_fields(fam: str, mnem: str, a: Answer) -> dict[int, str]:
    """Which immediate operands of the MCInst stand in the text, and their field."""
    imms = [i for i, o in enumerate(a.opnds) if o.kind in "ie"]
    if fam in ("SOPK", "SOPP"):
        r = {i: "SIMM16" for i in imms[:1]}
        if len(imms) > 1:
            # s_setreg_imm32_b32 names the register after the value in the MCInst but first in the text
            return {i: "LIT" if a.opnds[i].val == str(LIT) else "SIMM16" for i in imms}
        return r
    if fam == "VOP2" and re.search(r"(mk|ak)_f(16|32)$", mnem):
        return {i: "LIT" for i in imms}
    if fam == "SOPC" and mnem == "s_set_gpr_idx_on":
        return {i: "SRC1IMM" for i in imms}
    if fam == "SOP2" and re.search(r"(mk|ak)_f32$", mnem):
        return {i: "LIT" for i in imms}
    if fam == "SOP1" and imms and re.match(r"s_(sendmsg_rtn|barrier_|get_barrier|alloc|sleep_var)", mnem):
        return {imms[0]: "SRC0IMM"}
    if fam == "SMEM" and re.match(r"s_(prefetch|buffer_prefetch)", mnem):
        return {imms[-1]: "SDATAIMM"}
    if fam == "SMEM" and mnem.startswith("s_atc_probe"):
        return {imms[0]: "SDATAIMM"}
    return {}


def probe_flags(
    exe: Path, chip: str, todo: list[tuple[Family, int, int, str]]
) -> dict[tuple[str, int], dict[str, str]]:
    """Texts of every row with one modifier bit set at a time; (family, opcode) -> {probe: text}."""
    bits: list[tuple[tuple[str, int], str, str]] = []
    gen = generation(chip)
    for fam, op, _, enc in todo:
        x = int.from_bytes(bytes.fromhex(enc), "little")
        key = (fam.name, op)
        if fam.name == "VOP3PX":
            continue

        def add(name: str, val: int, key=key, enc=enc) -> None:
            bits.append((key, name, hexbytes(val, max(8, len(enc) // 2))))

        if gen != "gfx9":
            rdna_probes(gen, fam.name, x, add)
            continue
        if fam.name == "VOP3":
            add("clamp", x | 1 << 15)
            add("omod", x | 1 << 59)
            for i in range(3):
                add(f"neg{i}", x | 1 << (61 + i))
                add(f"abs{i}", (x & ~(0x7F << 8)) | 1 << (8 + i))
            for i in range(4):
                add(f"opsel{i}", (x & ~(0x7F << 8)) | 1 << (11 + i))
        elif fam.name == "VOP3P":
            add("clamp", x | 1 << 15)
            for i in range(3):
                add(f"neg{i}", x | 1 << (61 + i))
                add(f"neghi{i}", x | 1 << (8 + i))
                add(f"opsel{i}", x | 1 << (11 + i))
            add("opselhi", x & ~HI1)
            add("acc", x | 3 << 59 | 1 << 15)
            add("cbsz", x | 1 << 8)
            add("blgp", x | 1 << 61)
        elif fam.name in ("VOP1", "VOP2", "VOPC"):
            w = x & 0xFFFFFE00
            dpp = (V + SRC0) & 0xFF | 0x150 << 8 | 0xFF << 24  # row_newbcast:0 is legal for 64-bit operands too
            add("dpp", w | 0xFA | dpp << 32)
            add("dpp_full", w | 0xFA | ((SRC0 | 0xE4 << 8 | 0xFF << 24) << 32))
            add("dpp_neg0", w | 0xFA | (dpp | 1 << 20) << 32)
            add("dpp_neg1", w | 0xFA | (dpp | 1 << 22) << 32)
            sd = SRC0 | (0 if fam.name == "VOPC" else 6 << 8) | 6 << 16 | (0 if fam.name == "VOP1" else 6 << 24)
            add("sdwa", w | 0xF9 | sd << 32)
            add("sdwa_neg0", w | 0xF9 | (sd | 1 << 20) << 32)
            add("sdwa_neg1", w | 0xF9 | (sd | 1 << 28) << 32)
            add("sdwa_sext0", w | 0xF9 | (sd | 1 << 19) << 32)
            add("sdwa_sext1", w | 0xF9 | (sd | 1 << 27) << 32)
            if fam.name != "VOPC":
                add("sdwa_clamp", w | 0xF9 | (sd | 1 << 13) << 32)
                add("sdwa_omod", w | 0xF9 | (sd | 1 << 14) << 32)
        elif fam.name == "SMEM":
            add("glc", x | 1 << 16)
        elif fam.name == "DS":
            add("acc", x | 1 << 25)
            add("gds", x | 1 << 16)
            add("offs", x | 0x201)
        elif fam.name in ("FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF"):
            add("acc", x | 1 << 55)
            if fam.name != "SCRATCH" and fam.name != "MTBUF":
                add("glc", x | 1 << (16 if fam.name != "MUBUF" else 14))
            if chip == "gfx90a" and fam.name in ("FLAT", "GLOBAL", "SCRATCH"):
                add("lds", x | 1 << 13)
            if fam.name == "MUBUF":
                add("lds", x | 1 << 16)
    lines = [b for _, _, b in bits]
    texts = run_mcdump(exe, chip, lines)
    out: dict[tuple[str, int], dict[str, str]] = {}
    for (key, name, _), t in zip(bits, texts):
        out.setdefault(key, {})[name] = t
    return out


def rdna_probes(gen: str, fam: str, x: int, add: Callable[[str, int], None]) -> None:
    """The probes of gfx11 and gfx12."""
    dpp = SRC0 | 0xE4 << 8 | 0xFF << 24
    if fam == "VOP3":
        add("clamp", x | 1 << 15)
        add("omod", x | 1 << 59)
        for i in range(3):
            add(f"neg{i}", x | 1 << (61 + i))
        for i in range(4):
            add(f"opsel{i}", (x & ~(0x7F << 8)) | 1 << (11 + i))
        add("dpp", x & ~(0x1FF << 32) & (1 << 64) - 1 | 250 << 32 | dpp << 64)
    elif fam == "VOP3P":
        add("clamp", x | 1 << 15)
        for i in range(3):
            add(f"neg{i}", x | 1 << (61 + i))
            add(f"opsel{i}", x | 1 << (11 + i))
        add("opselhi", x & ~HI1)
        add("dpp", x & ~(0x1FF << 32) & (1 << 64) - 1 | 250 << 32 | dpp << 64)
    elif fam in ("VOP1", "VOP2", "VOPC"):
        w = x & 0xFFFFFE00 | 0xFA
        add("dpp", w | dpp << 32)
        add("dpp_neg0", w | (dpp | 1 << 20) << 32)
        add("dpp_neg1", w | (dpp | 1 << 22) << 32)
    elif fam == "SMEM":
        add("glc", x | 1 << (14 if gen == "gfx11" else 23))
    elif fam == "DS":
        add("gds", x | 1 << 17)
        add("offs", x | 0x201)
    elif fam in ("FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF"):
        add("glc", x | 1 << (14 if gen == "gfx11" else 52))


def reserved_bits(exe: Path, chip: str, todo: list[tuple[Family, int, int, str]]) -> dict[tuple[str, int], int]:
    """For every row the zero bits of its neutral encoding that may not be set (LLVM refuses the word then)."""
    keys, lines = [], []
    opcode_bits = OPCODE_BITS[generation(chip)]
    for fam, op, _, enc in todo:
        if fam.name == "VOP3PX":
            continue
        x = int.from_bytes(bytes.fromhex(enc), "little")
        n = 32 if fam.name in SHORT else 64
        for b in range(n):
            if not x >> b & 1 and not opcode_bits[fam.name] >> b & 1:
                keys.append(((fam.name, op), b))
                lines.append(hexbytes(x | 1 << b, max(8, len(enc) // 2)))
    out: dict[tuple[str, int], int] = {}
    for (key, b), t in zip(keys, run_mcdump(exe, chip, lines, text_only=True)):
        later = re.search(r" nv\b| scale_offset", t)  # bits of chips after gfx1201
        if t == "INVALID" or later or "/*" in t and "Invalid register" not in t and "Invalid immediate" not in t:
            out[key] = out.get(key, 0) | 1 << b
    return out


def rows_of_chip(exe: Path, chip: str) -> list[Row]:
    """All rows of one chip."""
    fams = families(chip)
    gfx9 = generation(chip) == "gfx9"
    jobs = [(f, op, i) for f in fams for op in range(f.nops) for i in range(len(f.encs))]
    lines = [f.encs[i](op) for f, op, i in jobs]
    answers = run_mcdump(exe, chip, lines)
    first: dict[tuple[str, int], tuple[Family, int, int, str, Answer]] = {}
    for (f, op, i), hexs, line in zip(jobs, lines, answers):
        a = parse(line)
        if a is None or (f.name, op) in first:
            continue
        if f.name == "VOP3" and any(
            o.kind == "r" and o.num >= 0 and o.num not in f.fields and o.tied < 0 for o in a.opnds
        ):
            continue  # a field this variant leaves 0: the scalar destination
        if f.name == "VOP3PX" and a.size != 16:
            continue
        if f.name == "VOP3P" and i < len(COMBOS) and re.match(r"v_(mfma|smfmac|accvgpr)", a.mnem):
            continue  # there the op_sel_hi bits are the accumulator file bits
        if a.size == 4 and f.name not in SHORT or op in f.skip:
            continue
        first[(f.name, op)] = (f, op, i, hexs, a)
    probes = probe_flags(exe, chip, [v[:4] for v in first.values()])
    mbz = reserved_bits(exe, chip, [v[:4] for v in first.values()])
    names: dict[str, set[str]] = {}
    for f, *_, a in first.values():
        names.setdefault(f.name, set()).add(strip_suffix(a.mnem)[0])
    rows = []
    for (fname, op), (f, _, _, hexs, a) in first.items():
        mnem, suffix = strip_suffix(a.mnem)
        p = probes.get((fname, op), {})
        ans = {k: parse(v) for k, v in p.items()}

        def has(name: str, rx: str, ans=ans, mnem=mnem) -> bool:
            x = ans.get(name)
            return bool(x and x.text.split()[0].startswith(mnem.split("_e32")[0]) and re.search(rx, x.text))

        flags: list[str] = []
        mods: set[int] = set()
        acc: set[str] = set()
        if fname == "VOP3":
            base = next((b for b in ("VOP1", "VOP2", "VOPC") if mnem in names.get(b, ())), "VOP3")
            for b, rx in (("clamp", "clamp"), ("omod", r"mul:2")):
                if has(b, rx):
                    flags.append(b.upper())
            if any(has(f"opsel{k}", "byte_sel:") for k in range(4)):
                flags.append("BYTESEL")
            if has("neg0", "bitop3:"):
                flags.append("BITOP3")
            mods = {k for k in range(3) if has(f"neg{k}", r"[ ,]-[|vs]|-\d| neg\(|-v|-s")}
            if any(has(f"opsel{k}", r"op_sel:") for k in range(4)):
                flags.append("OPSEL")
                shown = next(m for k in range(4) if (m := re.search(r"op_sel:\[([\d,]+)\]", p.get(f"opsel{k}", ""))))
                flags.append(f"SELS({shown[1].count(',') + 1})")
            if any(o.num == SDST and o.is_def for o in a.opnds):
                flags.append("VOP3B")
            if ans.get("dpp"):
                flags.append("DPP")
        elif fname == "VOP3P":
            base = "MAI" if re.match(r"v_(mfma|smfmac|accvgpr)(?!_ld_scale)", mnem) else "VOP3P"
            if base == "MAI":
                acc = acc_fields(f, ans.get("acc"))
                if mnem.endswith("f8f6f4"):
                    flags.append("F8F6F4")
                if has("cbsz", "cbsz:"):
                    flags.append("CBSZ")
                if has("blgp", "blgp:"):
                    flags.append("BLGP")
                if has("blgp", r"neg:\["):
                    flags.append("NEGF64")
            else:
                if has("clamp", "clamp"):
                    flags.append("CLAMP")
                mix = re.search(r"_mix", mnem) is not None
                if mix:
                    flags.append("MIX")
                mods = {k for k in range(3) if has(f"neg{k}", "neg_lo:" if not mix else "-v")}
                if any(has(f"opsel{k}", "op_sel:") for k in range(3)):
                    flags.append("OPSEL")
                if has("opselhi", "op_sel_hi:"):
                    flags.append("OPSELHI")
                if "opselhi" in ans and ans["opselhi"] is None:
                    flags.append("HI1")
                if has("opsel0", "index_key:"):
                    flags.append("INDEXKEY")
                if ans.get("dpp"):
                    flags.append("DPP")
        elif fname == "VOP3PX":
            base = "MAI"
            acc = {"VDST", "SRC0", "SRC1", "SRC2"}
            flags += ["F8F6F4", "CBSZ", "BLGP"]
        elif fname in ("VOP1", "VOP2", "VOPC"):
            base = fname
            if ans.get("dpp") and len(a.opnds) > 0:
                flags.append("DPP")
                if "only supports row_newbcast" in p.get("dpp_full", ""):
                    flags.append("DPP64")
            if ans.get("sdwa") and len(a.opnds) > 0:
                flags.append("SDWA")
                if fname != "VOPC" and not has("sdwa", "dst_sel:"):
                    flags.append("SDWANODST")
            mods = {k for k in range(2) if has(f"dpp_neg{k}", r"-v") or has(f"sdwa_neg{k}", r"-v")}
            if has("sdwa_omod", "mul:2"):
                flags.append("OMOD")
            if has("sdwa_clamp", "clamp"):
                flags.append("CLAMP")
            if any(o.kind in "ie" and o.val == str(LIT) for o in a.opnds) or re.search(r"(mk|ak)_f(16|32)$", mnem):
                flags.append("LIT")
        else:
            base = "OTHER" if fname == "LDSDIR" else fname
            acc = acc_fields(f, ans.get("acc"))
            if fname == "DS":
                if has("gds", " gds"):
                    flags.append("GDS")
                if " gds" in a.text:
                    flags.append("GDSONLY")
                if has("offs", "offset0:"):
                    flags.append("OFF2")
                if not has("offs", "offset"):
                    flags.append("NOOFF")
            if fname == "SMEM" and has("glc", " glc| th:"):
                flags.append("GLC")
            if fname == "SMEM" and "atomic" in mnem:
                flags.append("RTN")
            if fname in ("SOPK", "SOP2") and any(o.kind in "ie" and o.val == str(LIT) for o in a.opnds):
                flags.append("LIT")
            if fname in ("FLAT", "GLOBAL") and ans.get("glc") and ans["glc"].mnem == a.mnem:
                rtn, plain = ans["glc"], a
                if sum(o.is_def for o in rtn.opnds) != sum(o.is_def for o in plain.opnds):
                    flags.append("RTN")
                    a = rtn
                if gfx9 and a is rtn:
                    acc |= acc_fields(
                        f,
                        parse(
                            run_mcdump(
                                exe, chip, [q(int.from_bytes(bytes.fromhex(hexs), "little") | 1 << 16 | 1 << 55)]
                            )[0]
                        ),
                    )
            if fname in ("FLAT", "GLOBAL", "SCRATCH") and ans.get("lds") and " lds" in ans["lds"].text:
                flags.append("LDS")
            if fname == "MUBUF" and not any("SRSRC" in x.rc or x.file == "SGPR" for x in a.opnds):
                flags.append("NOOFF")  # cache control
            if fname == "MUBUF" and mnem.startswith("tbuffer"):
                base = "MTBUF"
            if fname == "MUBUF":
                glc = ans.get("glc")
                if glc and glc.mnem == a.mnem and sum(o.is_def for o in glc.opnds) != sum(o.is_def for o in a.opnds):
                    flags.append("RTN")
                lds = ans.get("lds")
                if lds and lds.mnem == a.mnem and " lds" in lds.text:
                    flags.append("LDS" if " lds" not in a.text else "LDSONLY")
        try:
            specs = make_specs(f, a, acc, mods, mnem, wave=not gfx9)
        except ValueError as e:
            print("skipped:", chip, fname, op, a.text, e, file=sys.stderr)
            continue
        if re.match(r"v_(wmma|swmmac)_|global_load_tr_", mnem):  # asked with 32 lanes; tests/isa ask with 64
            flags += ["HALF64"] + (["INDEXKEY"] if "swmmac" in mnem and "INDEXKEY" not in flags else [])
        imm = "NONE"
        if any("SIMM16" in s or "SRC1IMM" in s or "SRC0IMM" in s for s in specs):
            imm = next((k for rx, k in IMM_KINDS if re.match(rx, mnem)), "HEX")
        rows.append(Row(fname, op, mnem, suffix, specs, flags, base, imm, mbz.get((fname, op), 0)))
    return rows


def dual_rows(exe: Path, chip: str, rows: list[Row]) -> list[str]:
    """Lines ISA_DUAL(half, opcode, family, opcode there): which short instruction each VOPD half is.

    Halves that have no short form get a row of family DUAL.
    """
    if generation(chip) == "gfx9":
        return []
    where = {r.mnem: r for r in rows if r.fam in ("VOP1", "VOP2")}
    out = []
    for half, n in ((0, 16), (1, 32)):
        for op in range(n):
            first = op << 22 | 4 << 17 if half == 0 else 4 << 22 | op << 17  # with v_dual_add_f32 on the other side
            answers = []
            for src1 in (28, 0):  # v_dual_mov_b32 has no second source
                x, y = (src1, 31) if half == 0 else (28, src1 and 31)
                word = 0xC8000000 | first | x << 9 | V + 16 | (V + 17 | y << 9 | 10 << 17 | 20 << 24) << 32 | LIT << 64
                answers.append(parse(run_mcdump(exe, chip, [hexbytes(word, 12)])[0]))
            a = next((a for a in answers if a), None)
            if a is None:
                continue
            name = a.text.split("::")[half].split()[0].replace("v_dual_", "v_")
            if name in where:
                out.append(f"ISA_DUAL({half}, {op}, {where[name].fam}, {where[name].op})")
            elif m := re.match(r"v_dot2acc_f32_(b?f16)$", name):  # on the chip only as half of a VOPD
                t = f"V2{m[1].upper()}"
                specs = (
                    spec("VDST", 1, "F32", ["W", "R"]),
                    spec("SRC0", 1, t, ["R"]),
                    spec("VSRC1", 1, t, ["R"]),
                )
                rows.append(Row("DUAL", half * 32 + op, name, "NONE", specs, [], "VOP2"))
                out.append(f"ISA_DUAL({half}, {op}, DUAL, {half * 32 + op})")
            else:
                print(f"{chip}: no short form of {name}", file=sys.stderr)
    return out


def value_names(exe: Path, chip: str, rows: list[Row]) -> list[str]:
    """Lines ISA_HWREG(chip, number, name) and ISA_MESSAGE(chip, number, name)."""
    op = {r.mnem: r.op for r in rows if r.fam in ("SOPK", "SOPP")}
    regs = [
        (0xB0000000 | op["s_getreg_b32"] << 23 | 5 << 16 | 31 << 11 | i).to_bytes(4, "little").hex() for i in range(64)
    ]
    n = 16 if generation(chip) == "gfx9" else 256
    msgs = [(0xBF800000 | op["s_sendmsg"] << 16 | i).to_bytes(4, "little").hex() for i in range(n)]
    out = []
    for macro, code in (("ISA_HWREG", regs), ("ISA_MESSAGE", msgs)):
        for i, t in enumerate(run_mcdump(exe, chip, code, text_only=True)):
            m = re.search(r"(?:hwreg|sendmsg)\(([A-Z]\w+)", t)
            if m:
                out.append(f'{macro}({chip.upper()}, {i}, "{m[1]}")')
    if generation(chip) != "gfx9":
        fmts = [
            q(0xE8000000 | i << 19 | 16 << 32 | 20 << 40 | 7 << 48 | 128 << 56)
            if generation(chip) == "gfx11"
            else hexbytes(0xC420007C | (20 | 28 << 9 | i << 23) << 32 | 16 << 64, 12)
            for i in range(128)
        ]
        for i, t in enumerate(run_mcdump(exe, chip, fmts, text_only=True)):
            m = re.search(r"format:\[(\w+)\]", t)
            if m:
                out.append(f'ISA_FORMAT({chip.upper()}, {i}, "{m[1]}")')
    if generation(chip) == "gfx9":  # these take an operation: the name stands only with one
        out += [f'ISA_MESSAGE({chip.upper()}, 2, "MSG_GS")', f'ISA_MESSAGE({chip.upper()}, 15, "MSG_SYSMSG")']
    return out


HEAD = "/* Generated by tools/isa/gen_isa.py from LLVM 22's answers; do not edit. */\n"


def generate(exe: Path, chips: list[str]) -> dict[str, str]:
    """File name -> text of every generated file."""
    rows = {c: rows_of_chip(exe, c) for c in chips}
    duals = {c: dual_rows(exe, c, r) for c, r in rows.items()}
    files = emit(rows, duals)
    files["isa_names.def"] = HEAD + "".join(f"{n}\n" for c, r in rows.items() for n in value_names(exe, c, r))
    return files


def emit(all_rows: dict[str, list[Row]], duals: dict[str, list[str]]) -> dict[str, str]:
    """File name -> text of the tables."""
    ops: dict[str, list[str]] = {}
    pats: dict[tuple[str, ...], int] = {(): 0}
    masks: dict[int, int] = {0: 0}
    for rows in all_rows.values():
        for r in rows:
            c = ops.setdefault(r.mnem, [])
            for k in classes(r.mnem, r.fam):
                if k not in c:
                    c.append(k)
    files: dict[str, str] = {}
    t = HEAD
    for name in sorted(ops):
        t += f"ISA_OP({name}, {' | '.join('ISA_C_' + k for k in ops[name]) or '0'})\n"
    files["isa_ops.def"] = t
    body: dict[str, str] = {}
    for chip, rows in all_rows.items():
        t = HEAD
        for r in sorted(rows, key=lambda r: (r.fam, r.op)):
            n = pats.setdefault(r.specs, len(pats))
            fl = " | ".join("ISA_R_" + x for x in r.flags) or "0"
            mask = masks.setdefault(r.mbz, len(masks))
            t += f"ISA_ROW({r.fam}, {r.op}, {r.base}, {r.mnem}, {n}, {r.suffix}, {r.imm}, {fl}, {mask})\n"
        body[f"isa_{chip}.def"] = t + "".join(f"{d}\n" for d in duals[chip])
    t = HEAD
    for specs, n in pats.items():
        t += f"ISA_PATTERN({n}, {len(specs)}, " + (", ".join(specs) or "{0}") + ")\n"
    for m, n in masks.items():
        t += f"ISA_MASK({n}, 0x{m:016x})\n"
    files["isa_patterns.def"] = t
    files.update(body)
    return files


def main() -> int:
    """Command line; returns 1 when --check finds a difference."""
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--out", type=Path, default=ROOT / "csrc/isa")
    ap.add_argument("--check", action="store_true", help="compare with the files in --out instead of writing")
    ap.add_argument("--chips", nargs="*", default=CHIPS)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        exe = build_mcdump(Path(tmp))
        files = generate(exe, a.chips)
    bad = 0
    for name, text in files.items():
        path = a.out / name
        if a.check:
            if not path.exists() or path.read_text() != text:
                print(f"{path}: differs from what LLVM says now")
                bad = 1
        else:
            path.write_text(text)
    return bad


if __name__ == "__main__":
    sys.exit(main())
