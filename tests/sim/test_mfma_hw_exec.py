"""mfma="hw" through whole instructions: random operands in the published lane maps, elements of D against the model.

Every matrix instruction of the maps runs on random (not exact) operands; some elements of D are computed by the
exact-arithmetic model of test_mfma_hw. Recorded hardware elements run through the instruction that recorded them."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
import simlib

ref = pytest.importorskip("test_mfma_hw")

from isa_ref import encode, hexrow  # noqa: E402

sim = ref.sim
if not (simlib.SHARED / "oracle/lanemap").is_dir():
    pytest.skip("the outside test data is not there", allow_module_level=True)
ARCHS = [a for a in ref.ARCHS if sim._native.library().tlsim_arch_available(a.encode())]
Rows = dict[str, list[dict[str, str]]]


def kinds(arch: str, op: str) -> tuple[str, str, str, str] | None:
    """Formats of A, B and D and the use, for instructions that sum floats; None: integers and doubles."""
    name, _, fmt = op.partition(":")
    m = re.fullmatch(r"v_(mfma|smfmac|wmma|swmmac)_([a-z0-9]+)_\d+x\d+x\d+_?(?:\d+b_)?(.*)", name)
    assert m, op
    parts = (fmt or m[3].removesuffix("_1k")).split("_")
    if m[2] in ("i32", "f64"):
        return None
    use = "sparse" if m[1] in ("smfmac", "swmmac") else "matrix"
    if arch == "gfx90a" and parts[0] == "bf16" and not name.endswith("_1k"):
        use = "old"
    z = {"fp8": "fp8_fnuz", "bf8": "bf8_fnuz"} if arch == "gfx942" else {}
    a, b = parts[0], parts[-1]
    return z.get(a, a), z.get(b, b), m[2], use


OPS = [(a, op) for a in ARCHS for op in sorted(simlib.lanemaps(a)) if kinds(a, op)]


def span(first: int, rows: list[dict[str, str]]) -> str:
    count = 1 + max(int(r["register"]) for r in rows)
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def put(regs: np.ndarray, r: dict[str, str], bits: int) -> None:
    regs[int(r["register"]), int(r["lane"])] |= np.uint32(bits << int(r["bit"]) & 0xFFFFFFFF)


class Matrix:
    """One instruction with its operands: element bits by (block, row or column, k)."""

    def __init__(self, arch: str, op: str) -> None:
        self.arch, self.op, self.maps = arch, op, simlib.lanemaps(arch)[op]
        self.fa, self.fb, self.out, self.use = kinds(arch, op)
        self.d_rows = self.maps.get("D") or self.maps["C"]
        self.c_rows = self.maps.get("C") or self.d_rows
        name, _, fmt = op.partition(":")
        formats = {"fp8": 0, "bf8": 1, "fp4": 4}
        mods = f" cbsz:{formats[fmt]} blgp:{formats[fmt]}" if fmt else ""
        self.in_place = self.use == "sparse"
        self.first_d = 96 if self.in_place else 128
        operands = [span(self.first_d, self.d_rows), span(0, self.maps["A"]), span(32, self.maps["B"])]
        operands.append("v80" if self.in_place else span(96, self.d_rows))
        code = encode(arch, [f"{name} {', '.join(operands)}{mods}"])[0]
        assert code is not None, op
        self.code = code
        self.wave = 32 if arch in ("gfx1100", "gfx1201") else 64

    @staticmethod
    def key(r: dict[str, str], i: str) -> tuple[int, int, int]:
        return int(r["block"] or 0), int(r[i]), int(r["k"])

    def run(self, a: dict, b: dict, c: dict, pos: dict, mode: dict | None = None) -> dict[tuple[int, int, int], int]:
        """D by (block, i, j)."""
        ra, rb, rc = (np.zeros((32, 64), np.uint32) for _ in range(3))
        ri = np.zeros((1, 64), np.uint32)
        for r in self.maps["A"]:
            put(ra, r, a[self.key(r, "i")])
        for r in self.maps["B"]:
            put(rb, r, b[self.key(r, "j")])
        for r in self.c_rows:
            put(rc, r, c[int(r["block"] or 0), int(r["i"]), int(r["j"])])
        for r in self.maps.get("I", []):
            put(ri, r, pos[int(r["i"]), int(r["k"])])
        v = {str(i): hexrow(ra[i, : self.wave]) for i in range(16)}
        v |= {str(32 + i): hexrow(rb[i, : self.wave]) for i in range(16)}
        v |= {str(96 + i): hexrow(rc[i, : self.wave]) for i in range(32)}
        v |= {str(128 + i): "0" * 8 * self.wave for i in range(32)}
        v["80"] = hexrow(ri[0, : self.wave])
        state = {"wave": self.wave, "v": v, "mode": mode or {}}
        out = sim.execute(self.arch, self.code, state, mfma="hw")
        d = {}
        for r in self.d_rows:
            word = int(out["v"][str(self.first_d + int(r["register"]))][8 * int(r["lane"]) :][:8], 16)
            d[int(r["block"] or 0), int(r["i"]), int(r["j"])] = word >> int(r["bit"]) & ((1 << int(r["bits"])) - 1)
        return d


def spread(rnd: random.Random, fmt: str) -> int:
    return ref.values(
        rnd, fmt, rnd.choice(("near", "near", "near", "low", "near", "any" if rnd.random() < 0.05 else "near"))
    )


@pytest.mark.parametrize(("arch", "op"), OPS)
def test_matrix(arch, op):
    m = Matrix(arch, op)
    seed = sum(map(ord, arch + op))
    rnd = random.Random(seed)
    a = {m.key(r, "i"): spread(rnd, m.fa) for r in m.maps["A"]}
    b = {m.key(r, "j"): spread(rnd, m.fb) for r in m.maps["B"]}
    c = {(int(r["block"] or 0), int(r["i"]), int(r["j"])): spread(rnd, m.out) for r in m.c_rows}
    pos = {}
    for i, k in sorted({(int(r["i"]), int(r["k"])) for r in m.maps.get("I", [])}):
        pos[i, k] = rnd.randint(0, 2) if k % 2 == 0 else rnd.randint(pos[i, k - 1] + 1, 3)
    d = m.run(a, b, c, pos)
    ka = 1 + max(k for _, _, k in a)
    for blk, i, j in rnd.sample(sorted(d), 24):
        x = [a[blk, i, k] for k in range(ka)]
        if m.in_place:
            y = [b[blk, j, 4 * (k // 2) + pos[i, k]] for k in range(ka)]
        else:
            y = [b[blk, j, k] for k in range(ka)]
        want = ref.model(arch, m.fa, m.fb, m.out, m.use, x, y, c[blk, i, j])
        got = d[blk, i, j]
        assert ref.same(got, want, arch), f"{op}, seed {seed}: D{i, j, blk} is {got:08x}, not {want:08x}"


@pytest.mark.parametrize("row", ref.oracle_rows(), ids=lambda r: f"{r['arch']}-{r['opcode']}-{r['d']}")
def test_recorded_by_instruction(row):
    """A recorded element through its instruction, in the first row and column."""
    arch, op = row["arch"], row["opcode"]
    if arch not in ARCHS:
        pytest.skip(f"no instructions for {arch}")
    if op.startswith("v_dot"):
        a, b = (
            int.from_bytes(b"".join(int(x, 16).to_bytes(2, "little") for x in row[k].split()), "little") for k in "ab"
        )
        code = encode(arch, [f"{op} v4, v0, v1, v2"])[0]
        assert code is not None
        v = {"0": f"{a:08x}" * 32, "1": f"{b:08x}" * 32, "2": row["c"] * 32, "4": "0" * 256}
        out = sim.execute(arch, code, {"wave": 32, "v": v}, mfma="hw")
        assert out["v"]["4"] == row["d"] * 32
        return
    if op not in simlib.lanemaps(arch):
        pytest.skip(f"no lane map of {op}")
    m = Matrix(arch, op)
    xa, xb = ([int(x, 16) for x in row[k].split()] for k in "ab")
    a = {m.key(r, "i"): 0 for r in m.maps["A"]}
    b = {m.key(r, "j"): 0 for r in m.maps["B"]}
    c = {(int(r["block"] or 0), int(r["i"]), int(r["j"])): 0 for r in m.c_rows}
    pos = {(int(r["i"]), int(r["k"])): int(r["k"]) % 2 for r in m.maps.get("I", [])}
    a |= {(0, 0, k): x for k, x in enumerate(xa)}
    b |= {(0, 0, k): x for k, x in enumerate(xb)}
    c[0, 0, 0] = int(row["c"], 16)
    assert ref.same(m.run(a, b, c, pos)[0, 0, 0], int(row["d"], 16), arch), row


@pytest.mark.parametrize("op", ["v_mfma_f32_16x16x128_f8f6f4:fp8", "v_mfma_f32_32x32x64_f8f6f4:fp4"])
def test_block_scales(op):
    """gfx950: a scale of 2^(s - 127) a row and block of 32 k multiplies the block's products; 255 is NaN."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    m = Matrix("gfx950", op)
    name = op.partition(":")[0].replace("v_mfma_", "v_mfma_scale_")
    text = (
        f"{name} {span(128, m.d_rows)}, {span(0, m.maps['A'])}, {span(32, m.maps['B'])}, {span(96, m.d_rows)}, v81, v82"
    )
    fmt = {"fp8": 0, "fp4": 4}[op.partition(":")[2]]
    code = encode("gfx950", [f"{text} op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:{fmt} blgp:{fmt}"])[0]
    assert code is not None
    rnd = random.Random(7)
    a = {m.key(r, "i"): ref.values(rnd, m.fa, "near") for r in m.maps["A"]}
    b = {m.key(r, "j"): ref.values(rnd, m.fb, "near") for r in m.maps["B"]}
    c = {(0, int(r["i"]), int(r["j"])): ref.values(rnd, "f32", "near") for r in m.c_rows}
    size = 1 + max(i for _, i, _ in a)
    groups = 64 // size
    sa = [[rnd.randint(120, 133) for _ in range(groups)] for _ in range(size)]
    sb = [[rnd.randint(120, 133) for _ in range(groups)] for _ in range(size)]
    sa[3][1] = 255
    scale = {
        "81": "".join(f"{sa[lane % size][lane // size] << 8 | 0x77000077:08x}" for lane in range(64)),
        "82": "".join(f"{sb[lane % size][lane // size] << 16 | 0x77000077:08x}" for lane in range(64)),
    }
    ra, rb, rc = (np.zeros((32, 64), np.uint32) for _ in range(3))
    for r in m.maps["A"]:
        put(ra, r, a[m.key(r, "i")])
    for r in m.maps["B"]:
        put(rb, r, b[m.key(r, "j")])
    for r in m.c_rows:
        put(rc, r, c[0, int(r["i"]), int(r["j"])])
    v = {str(i): hexrow(ra[i]) for i in range(16)} | {str(32 + i): hexrow(rb[i]) for i in range(16)}
    v |= {str(96 + i): hexrow(rc[i]) for i in range(32)} | {str(128 + i): "0" * 512 for i in range(32)} | scale
    out = sim.execute("gfx950", code, {"v": v}, mfma="hw")
    seen_nan = 0
    for r in rnd.sample(m.d_rows, 40) + [r for r in m.d_rows if r["i"] == "3"][:4]:
        i, j = int(r["i"]), int(r["j"])
        acc = c[0, i, j]
        for k in range(0, 32 * groups, 16):
            x = [ref.Num(m.fa, a[0, i, q]) for q in range(k, k + 16)]
            y = [ref.Num(m.fb, b[0, j, q]) for q in range(k, k + 16)]
            for nums, s in ((x, sa[i][k // 32]), (y, sb[j][k // 32])):
                for n in nums:
                    n.nan |= s == 255
                    n.e += s - 127
                    n.mag *= ref.Fraction(2) ** (s - 127)
            acc = ref.model_t(x, y, acc, True)
        got = int(out["v"][str(128 + int(r["register"]))][8 * int(r["lane"]) :][:8], 16)
        seen_nan += ref.is_nan(acc)
        assert ref.same(got, acc, "gfx950"), f"D{i, j} is {got:08x}, not {acc:08x}"
    assert seen_nan >= 4


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_denormal_mode(arch):
    """f32: A and B follow MODE on both chips, C and D only on gfx90a."""
    op = next(o for o in sorted(simlib.lanemaps(arch)) if re.search(r"4x4x1.*f32$", o))
    m = Matrix(arch, op)
    rnd = random.Random(3)
    for bits in range(4):
        a = {m.key(r, "i"): ref.values(rnd, "f32", "low") & 0x807FFFFF | rnd.choice((0, 1 << 23)) for r in m.maps["A"]}
        b = {m.key(r, "j"): 0x3F800000 | rnd.getrandbits(23) for r in m.maps["B"]}
        c = {(int(r["block"]), int(r["i"]), int(r["j"])): rnd.getrandbits(23) for r in m.c_rows}
        d = m.run(a, b, c, {}, {"fp32_denorm": bits})
        mode = 0x3C0 | bits << 4
        for (blk, i, j), got in d.items():
            want = ref.model(arch, "f32", "f32", "f32", "matrix", [a[blk, i, 0]], [b[blk, j, 0]], c[blk, i, j], mode)
            assert got == want, f"denorm {bits}: {got:08x}, not {want:08x}"


@pytest.mark.parametrize("arch", [a for a in ARCHS if a in ("gfx90a", "gfx942", "gfx950")])
def test_kernels_stay_exact(arch):
    """The outside kernels with matrix instructions expect exact sums, which the CDNA rules give too."""
    seen = 0
    for path in sorted((simlib.SHARED / "oracle/kernels").glob(f"*mfma*.{arch}.json")) + sorted(
        (simlib.SHARED / "oracle/kernels").glob(f"gemm64.{arch}.json")
    ):
        desc = simlib.load_json(path)
        got = simlib.run_oracle(sim.Device(arch, threads=1, mfma="hw"), desc, path.with_suffix(".hsaco"))
        assert not got.fault and not got.wrong, f"{path.name}: {got.fault} {got.wrong[:2]}"
        seen += 1
    assert seen >= 5


ONE_ELEMENT = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_mov_b32 v3, 0x3c00
v_cmp_gt_u32 vcc, 16, v0
v_cndmask_b32 v2, 0, v3, vcc
v_mov_b32 v3, 0
v_mov_b32 v4, 0xb3000000
v_mov_b32 v5, v4
v_mov_b32 v6, v4
v_mov_b32 v7, v4
s_nop 4
v_mfma_f32_16x16x16_f16 v[4:7], v[2:3], v[2:3], v[4:7]
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
s_nop 7
s_nop 7
global_store_dword v1, v4, s[4:5]
"""
"""Stores one element of D in which the chip's arithmetic and the default differ."""


def test_launch_and_environment(monkeypatch):
    """Per launch, per device and by TILELANG_SIM_MFMA: one element that tells the two arithmetics apart."""
    hsaco = simlib.code_object(ONE_ELEMENT, (simlib.BUF,), arch="gfx942", vgprs=8)

    def value(dev, **how):
        out = np.zeros(64, np.uint32)
        stats = dev.load(hsaco).kernels["k"].launch(1, 64, [out], **how)
        assert len(set(out.tolist())) == 1
        return f"{out[0]:08x}", stats.get("mfma_assumed")

    chip = value(sim.Device("gfx942", mfma="hw"))[0]
    dev = sim.Device("gfx942")
    default = value(dev)
    assert default[1] is None and default[0] != chip
    a = [0x3C00] + [0] * 15
    assert chip == f"{ref.model('gfx942', 'f16', 'f16', 'f32', 'matrix', a, a, 0xB3000000):08x}"
    assert value(dev, mfma="hw") == (chip, [])
    assert value(dev)[0] == default[0]
    monkeypatch.setenv("TILELANG_SIM_MFMA", "hw")
    assert value(sim.Device("gfx942")) == (chip, [])
    assert value(sim.Device("gfx942", mfma="default"))[0] == default[0]
    with pytest.raises(ValueError, match="mfma must be"):
        sim.Device("gfx942", mfma="x")
    monkeypatch.setenv("TILELANG_SIM_MFMA", "x")
    with pytest.raises(ValueError, match="TILELANG_SIM_MFMA"):
        sim.Device("gfx942")


def test_assumed_rules_are_told():
    """gfx950: the statistics name what ran by a rule that is not known from hardware."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    body = "v_mov_b32 v0, 0\nv_mov_b32 v1, 0\ns_nop 4\nv_mfma_f32_4x4x4_16b_f16 v[4:7], v[0:1], v[0:1], 0\n"
    hsaco = simlib.code_object(body, (), arch="gfx950", vgprs=8)
    stats = sim.Device("gfx950", mfma="hw").load(hsaco).kernels["k"].launch(1, 64)
    assert stats["mfma_assumed"] == ["v_mfma_f32_4x4x4_16b_f16"]


def test_command_line(tmp_path, capsys):
    """--mfma hw: the element of the chip, and a note on what is assumed."""
    if "gfx950" not in ARCHS:
        pytest.skip("no instructions for gfx950")
    from tilelang.sim.__main__ import main

    path, out = tmp_path / "k.hsaco", tmp_path / "out.npy"
    for arch, note in (("gfx942", False), ("gfx950", True)):
        path.write_bytes(simlib.code_object(ONE_ELEMENT, (simlib.BUF,), arch=arch, vgprs=8))
        args = [
            str(path),
            "--arch",
            arch,
            "--grid",
            "1",
            "--block",
            "64",
            "--arg",
            "out:f32:64:zeros",
            "--save",
            str(out),
        ]
        for how, want in (([], "3f800000"), (["--mfma", "default"], "3f800000"), (["--mfma", "hw"], "3f7fffff")):
            assert main([*args, *how]) == 0
            err = capsys.readouterr().err
            assert {f"{x:08x}" for x in np.load(out).view(np.uint32)} == {want}, f"{arch} {how}"
            assert ("v_mfma_f32_16x16x16_f16 is not known from hardware" in err) == (note and want == "3f7fffff"), err


DOTS = [  # text, formats, type of C and D, where C and D are
    ("v_dot2_f32_f16 v4, v0, v1, v2", "f16", "f32", 2, 4),
    ("v_dot2_f32_bf16 v4, v0, v1, v2", "bf16", "f32", 2, 4),
    ("v_dot2_f16_f16 v4, v0, v1, v2", "f16", "f16", 2, 4),
    ("v_dot2_bf16_bf16 v4, v0, v1, v2", "bf16", "bf16", 2, 4),
    ("v_dot2acc_f32_f16_e32 v2, v0, v1", "f16", "f32", 2, 2),
    ("v_dual_dot2acc_f32_f16 v2, v0, v1 :: v_dual_mov_b32 v9, v3", "f16", "f32", 2, 2),
    ("v_dot4_f32_fp8_bf8 v4, v0, v1, v2", "fp8 bf8", "f32", 2, 4),
    ("v_dot4_f32_bf8_bf8 v4, v0, v1, v2", "bf8 bf8", "f32", 2, 4),
]


@pytest.mark.parametrize("arch", [a for a in ARCHS if a in ("gfx1100", "gfx1201")])
def test_dot_instructions(arch):
    """Dot products of RDNA, each lane against the model; the 16-bit results; in a pair issued together too."""
    seed = sum(map(ord, arch))
    rnd = random.Random(seed)
    ran = 0
    for (text, formats, out_kind, c_reg, d_reg), code in zip(DOTS, encode(arch, [d[0] for d in DOTS]), strict=True):
        if code is None:
            continue
        fa, fb = formats.split()[0], formats.split()[-1]
        n = 2 if fa in ("f16", "bf16") else 4
        for denorm in (3, 0):
            a, b = ([[spread(rnd, f) for _ in range(n)] for _ in range(32)] for f in (fa, fb))
            c = [spread(rnd, out_kind) for _ in range(32)]
            pack = [[sum(x << 32 // n * i for i, x in enumerate(xs)) for xs in s] for s in (a, b)]
            v = {"0": hexrow(pack[0]), "1": hexrow(pack[1]), "2": hexrow(c)}
            v[str(d_reg)] = v.get(str(d_reg), "0" * 256)
            mode = {"fp32_denorm": denorm, "fp16_64_denorm": denorm}
            out = sim.execute(arch, code, {"wave": 32, "v": v, "mode": mode}, mfma="hw")
            low = 0xFFFFFFFF if out_kind == "f32" else 0xFFFF
            for lane in range(32):
                want = ref.model(arch, fa, fb, out_kind, "dot", a[lane], b[lane], c[lane])
                got = int(out["v"][str(d_reg)][8 * lane :][:8], 16) & low
                assert got == want, f"{text}, seed {seed}, denorm {denorm}: lane {lane} is {got:x}, not {want:x}"
        ran += 1
    assert ran == (6 if arch == "gfx1100" else 7)
