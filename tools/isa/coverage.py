"""Makes docs/isa-coverage.md: for each chip a row for each (mnemonic, encoding), and which test runs and compares it.

Rows come from the decoder's tables: every opcode of every family is encoded in every form that the chip has (the
decoder is held against LLVM's by tests/isa). `names` asks LLVM's assembler for its mnemonics and tells those without a
row. What ran comes from the simulator's own record (TILELANG_SIM_COVERAGE) of the tests in COMPARING, all of which
compare results with values that do not come from the simulator.

    python tools/isa/coverage.py run          runs those tests, writes docs/isa-coverage.md (minutes)
    python tools/isa/coverage.py missing ARCH prints what no test reaches
    python tools/isa/coverage.py names ARCH   LLVM's mnemonics that have no row
"""

from __future__ import annotations

import functools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/isa"))
import isalib  # noqa: E402

REPORT = ROOT / "docs/isa-coverage.md"
COMPARING = [
    "tests/sim/test_sim_vectors.py",
    "tests/sim/test_exec_mfma.py",
    "tests/sim/test_isa_more.py",
    "tests/sim/test_isa_memory.py",
    "tests/sim/test_isa_memory_rdna.py",
    "tests/sim/test_isa_lds_rdna.py",
    "tests/sim/test_exec_wmma.py",
    "tests/sim/test_isa_siblings.py",
    "tests/sim/test_isa_vop3.py",
    "tests/sim/test_rdna_encodings.py",
    "tests/sim/test_rdna_valu.py",
    "tests/sim/test_isa_modes.py",
    "tests/sim/test_isa_scalar.py",
    "tests/sim/test_isa_flow.py",
    "tests/sim/test_sim_split_barrier.py",
    "tests/sim/test_sim_operands.py",
    "tests/sim/test_sim_launch_state.py",
    "tests/sim/test_sim_compiled.py::test_kept",
    "tests/sim/test_isa_cdna.py",
    "tests/sim/test_isa_cdna_memory.py",
    "tests/sim/test_isa_cdna_valu.py",
    "tests/sim/test_mfma_hw_exec.py",
    "tests/sim/test_sim_oracle.py::test_kernel",
    "tests/codegen/test_semantics.py",
    "tests/numeric/test_matmul.py",
]
# Nothing that occurs in compute kernels: export, interpolation, images and ray tracing, data of GDS (not GWS), the
# table look-up of a rasteriser's screen partition, whose contents no manual gives.
NOT_COMPUTE = re.compile(
    r"(exp$|export|v_interp_|image_|ds_ordered_count|ds_(add|sub)_gs_reg|lds_param_load|ds_param_load"
    r"|s_endpgm_ordered_ps_done|ds_bvh_|v_screen_partition_4se)"
)
VOP = ("VOP1", "VOP2", "VOPC")
Key = tuple[str, str]


@functools.cache
def families(arch: str) -> dict[str, str]:
    """Mnemonic -> encoding family, from the decoder's table."""
    out: dict[str, str] = {}
    for line in (ROOT / f"csrc/isa/isa_{arch}.def").read_text().splitlines():
        m = re.match(r"ISA_ROW\((\w+), \d+, \w+, (\w+),", line)
        if m and (m[2] not in out or m[1] in VOP):
            out[m[2]] = m[1]
    return out


def keys(arch: str, text: str) -> list[Key]:
    """The rows that an instruction's text belongs to: one, or two for a pair issued together."""
    if " :: " in text:
        x, y = text.split(" :: ")
        return [(x.split()[0], "vopd x"), (y.split()[0], "vopd y")]
    name = text.split()[0]
    m = re.match(r"(.*?)(_e64_dpp|_e32|_e64|_sdwa|_dpp)?$", name)
    assert m
    enc = m[2][1:] if m[2] else families(arch).get(name, "?").lower()
    if "dpp8:" in text:
        enc += "8"
    if enc in ("mubuf", "global") and re.search(r" lds\b", text):
        enc += " lds"
    return [(m[1], enc)]


def samples(arch: str, fam: str, op: int, rnd: random.Random) -> list[str]:
    """Encodings of one opcode, every form among them."""
    n = {"VOPD": 4000, "DS": 200}.get(fam, 100)
    out = [isalib.encoding(rnd, arch, fam, op) for _ in range(n)]
    if fam in VOP or fam in ("VOP3", "VOP3P"):
        for code in [isalib.encoding(rnd, arch, fam, op) for _ in range(60)]:
            w = bytearray.fromhex(code)
            form = rnd.choice([0xF9, 0xFA, 0xE9, 0xEA, 0x02])
            if fam in VOP:
                at = 0
                w[1] &= 0xFE
            else:
                at = 4
                w[5] &= 0xFE
            w[at] = form
            if form != 0x02:  # DPP or SDWA word: plain registers, all lanes, whole dwords
                ctrl = {0xFA: 0xFF00001B, 0xF9: 0x06060600}.get(form, 0x00FAC688)
                w[at + 4 : at + 8] = (ctrl | 1).to_bytes(4, "little")
            out.append(w.hex())
    return out


VGPRS = 0x100 | 0x100 << 9 | 0x100 << 18
FORMS = {0xF9: (0x06060600, 0x00060600), 0xFA: (0xFF001A00, 0xFF015000), 0xE9: (0xFAC68800,), 0xEA: (0xFAC68800,)}
SECOND = {  # second dwords with plain registers, by family
    "SMEM": [0, 0x7C << 25, 0x80 << 25, 4 << 25, 0x10],
    "FLAT": [0, 0x7F << 16, 0x7C << 16, 4 << 16, 0x100, 2 << 8 | 0x7F << 16],
    "MUBUF": [0x80000000, 0x80 << 24, 0x7C << 24, 4 << 16 | 0x80 << 24, 0],
    "MTBUF": [0x80000000, 0x80 << 24, 0x7C << 24, 4 << 16 | 0x80 << 24, 0],
    "DS": [0, 2 << 8 | 4 << 16, 2],
    "VOP3": [
        VGPRS,
        VGPRS & 0x3FFFF,
        2 | 4 << 9 | 6 << 18,
        2 | 4 << 9,
        0x100 | 4 << 9,
        0x100 | 0x6A << 18,
        0x100 | 0x100 << 9 | 0x6A << 18,
    ],
}


def plain(arch: str, fam: str, op: int) -> list[str]:
    """Encodings of one opcode with few bits set: modifiers are 0, registers are even and plain."""
    base, shift, _ = isalib.heads(arch)[fam]
    head = base | op << shift
    words: list[tuple[int, int, int]] = []
    if fam in VOP:
        words += [(head | src, 0, 0) for src in (0x100, 2, 0x80)]
        words += [(head | form, w1, 0) for form, second in FORMS.items() for w1 in second]
    elif fam == "VOP3":
        for dst in (0, 2, 0x7E, 0x6A, 0x6A << 8, 0x6A << 8 | 2):
            words += [(head | dst, w1, 0) for w1 in SECOND[fam]]
            for form in (0xFA, 0xE9, 0xEA):
                words += [(head | dst, w1 & ~0x1FF | form, FORMS[form][0]) for w1 in SECOND[fam]]
    elif fam == "VOP3P":
        for dst in (0, 0x4000, 0x40, 0x4040, 0x8000):
            for high in (0, 3, 4, 7):
                for src in (VGPRS, 0x100 | 0x120 << 9 | 0x140 << 18, 0x100 | 0x120 << 9 | 0x80 << 18, 0x100):
                    words.append((head | dst, src | high << 27, 0))
                words += [(head | dst, VGPRS & ~0x1FF | f | high << 27, FORMS[f][0]) for f in (0xFA, 0xE9, 0xEA)]
    else:
        low = [0, 0x7C, 2, 0x100, 0x10000, 0x20000]
        if fam == "FLAT":  # the segments
            low = [x | seg << (24 if arch == "gfx1201" else 14) for x in low for seg in range(3)]
        second = SECOND.get("FLAT" if fam in ("GLOBAL", "SCRATCH") else fam, [0])
        words += [(head | x, w1, w2) for x in low for w1 in second for w2 in (0, 2, 0x800000)]
    return [((a & 0xFFFFFFFF) | (b & 0xFFFFFFFF) << 32 | c << 64).to_bytes(12, "little").hex() for a, b, c in words]


def rows(exe: Path, arch: str) -> dict[Key, str]:
    """Every (mnemonic, encoding) of a chip with the hex of one example."""
    rnd = random.Random(1)
    lines: list[str] = []
    for fam, ops in isalib.opcodes(arch).items():
        for op in ops:
            lines += samples(arch, fam, op, rnd) + plain(arch, fam, op)
    out: dict[Key, str] = {}
    for code, answer in zip(lines, isalib.isadump(exe, arch, lines), strict=True):
        size, text = answer.split("\t", 1)
        if size == "INVALID":
            continue
        for key in keys(arch, text):
            out.setdefault(key, code[: 2 * int(size)])
    for name, fam in families(arch).items():
        if fam == "VOP3PX":
            out.setdefault((name, "vop3px"), "")
    return out


def run_tests(tests: list[str]) -> dict[str, dict[Key, str]]:
    """Chip -> row -> the first test that ran it."""
    out: dict[str, dict[Key, str]] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as tmp:
        result = Path(tmp) / "out.jsonl"
        env = {**os.environ, "COVER_OUT": str(result), "PYTHONPATH": str(ROOT / "tools/isa")}
        there = [t for t in tests if (ROOT / t.split("::")[0]).exists()]
        cmd = [sys.executable, "-m", "pytest", "-q", "-p", "cover_plugin", "-p", "no:cacheprovider", *there]
        subprocess.run(cmd, cwd=ROOT, env=env, check=False)
        for line in result.read_text().splitlines():
            entry = json.loads(line)
            test = re.sub(r"\[.*", "", entry["test"]).removeprefix("tests/")
            for arch, _, text in entry["ran"]:
                for key in keys(arch, text):
                    out[arch].setdefault(key, test)
    return out


def status(key: Key, ran: dict[Key, str]) -> tuple[str, str]:
    """(status, test) of a row."""
    if key in ran:
        return "done", ran[key]
    return ("not for compute", "") if NOT_COMPUTE.match(key[0]) else ("missing", "")


def report(exe: Path, ran: dict[str, dict[Key, str]]) -> str:
    """The whole page."""
    head = [
        "# Instruction coverage",
        "",
        "Generated by `python tools/isa/coverage.py run`; do not edit. A row is *done* when the named test executes",
        "the instruction in that encoding on the simulator and compares the result with values from elsewhere (one",
        "test is named of possibly many); *not for compute* are export, interpolation, images and the data of GDS.",
        "",
        "| chip | rows | done | not for compute | missing |",
        "|---|---|---|---|---|",
    ]
    body = []
    for arch in isalib.ARCHS:
        found = rows(exe, arch)
        states = {k: status(k, ran.get(arch, {})) for k in sorted(found)}
        n = Counter(s for s, _ in states.values())
        head.append(f"| {arch} | {len(found)} | {n['done']} | {n['not for compute']} | {n['missing']} |")
        body += ["", f"## {arch}", "", "| mnemonic | encoding | status | test |", "|---|---|---|---|"]
        body += [f"| {m} | {e} | {s} | {t} |" for (m, e), (s, t) in states.items()]
    return "\n".join(head + body) + "\n"


def read_report(arch: str) -> dict[Key, tuple[str, str]]:
    """The rows of one chip in the committed page."""
    out: dict[Key, tuple[str, str]] = {}
    here = False
    for line in REPORT.read_text().splitlines():
        if line.startswith("## "):
            here = line == f"## {arch}"
        elif here and line.startswith("| ") and not line.startswith("| mnemonic"):
            name, enc, state, test = (x.strip() for x in line.strip("|").split("|"))
            out[name, enc] = (state, test)
    return out


# ---- LLVM's names -------------------------------------------------------------------------------------------------


def llvm_names(arch: str) -> set[str]:
    """Mnemonics that LLVM's assembler has for the chip, found from the names of its opcodes."""
    libs = subprocess.run(["llvm-config-22", "--libdir"], check=True, capture_output=True, text=True).stdout.strip()
    data = max(Path(libs).glob("libLLVM*.so*"), key=lambda p: p.stat().st_size).read_bytes()
    names = re.findall(rb"(?<=\0)(?:V|S|DS|FLAT|GLOBAL|SCRATCH|BUFFER|TBUFFER|IMAGE|EXP|LDS)_[A-Za-z0-9_]+(?=\0)", data)
    words: set[str] = set()
    for raw in names:
        parts = re.sub(r"_(e32|e64|sdwa|dpp8?|gfx\w+|vi|ci|si)\b.*", "", raw.decode(), flags=re.I).lower().split("_")
        words |= {"_".join(parts[:n]) for n in range(2, len(parts) + 1)}
    todo = sorted(w for w in words if not re.search(r"_(e32|e64|dpp|dpp8|sdwa)$", w))
    cmd = ["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-o", "/dev/null"]
    answer = subprocess.run(cmd, input="\n".join(todo) + "\n", capture_output=True, text=True).stderr
    bad = set()
    for m in re.finditer(r"<stdin>:(\d+):\d+: error: (.*)", answer):
        if "invalid instruction" in m[2] or "not supported on this GPU" in m[2]:
            bad.add(todo[int(m[1]) - 1])
    return set(todo) - bad


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in ("run", "missing", "names"):
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as tmp:
        exe = isalib.build_isadump(Path(tmp))
        if argv[0] == "run":
            REPORT.write_text(report(exe, run_tests(COMPARING)))
            print("\n".join(REPORT.read_text().splitlines()[8:15]))
            return 0
        if argv[0] == "missing":
            print("\n".join(f"{m} {e}" for (m, e), (s, _) in read_report(argv[1]).items() if s == "missing"))
            return 0
        have = {m for m, _ in rows(exe, argv[1])}
        names = llvm_names(argv[1])
        print(f"{argv[1]}: {len(names)} mnemonics, {len(names & have)} with rows; without:")
        print(" ".join(sorted(names - have)))
        return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
