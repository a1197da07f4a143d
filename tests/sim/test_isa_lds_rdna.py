"""LDS instructions of gfx1100 and gfx1201, every mnemonic, in waves of 32 and 64 lanes: registers and LDS bytes
against plain Python; bank conflicts against the published phases."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import simlib

sim = pytest.importorskip("tilelang.sim")

from isa_ref import encode  # noqa: E402
from test_isa_memory import add_bf16, add_f16, add_f32, f32, f64, halves, signed  # noqa: E402

from tilelang.errors import SimulatorFault  # noqa: E402

CHIPS = [(a, w) for a in ("gfx1100", "gfx1201") for w in (32, 64)]
both = pytest.mark.parametrize(("arch", "wave"), CHIPS, ids=[f"{a}-{w}" for a, w in CHIPS])
SIZE = 8192


def d2(x: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def condxchg(m: int, d: int, e: int) -> int:
    lo, hi = d & 0xFFFFFFFF, d >> 32
    lo = lo & 0x7FFFFFFF if lo >> 31 else m & 0xFFFFFFFF
    hi = hi & 0x7FFFFFFF if hi >> 31 else m >> 32
    return hi << 32 | lo


def integer(n: int) -> dict[str, object]:
    top = (1 << n) - 1
    return {
        f"add_u{n}": lambda m, d, e: m + d & top,
        f"sub_u{n}": lambda m, d, e: m - d & top,
        f"rsub_u{n}": lambda m, d, e: d - m & top,
        f"inc_u{n}": lambda m, d, e: 0 if m >= d else m + 1,
        f"dec_u{n}": lambda m, d, e: d if m == 0 or m > d else m - 1,
        f"min_i{n}": lambda m, d, e: min(signed(m, n), signed(d, n)) & top,
        f"max_i{n}": lambda m, d, e: max(signed(m, n), signed(d, n)) & top,
        f"min_u{n}": lambda m, d, e: min(m, d),
        f"max_u{n}": lambda m, d, e: max(m, d),
        f"and_b{n}": lambda m, d, e: m & d,
        f"or_b{n}": lambda m, d, e: m | d,
        f"xor_b{n}": lambda m, d, e: m ^ d,
        f"mskor_b{n}": lambda m, d, e: (m & ~d) | e,
        f"storexchg_b{n}": lambda m, d, e: d,
        f"cmpstore_b{n}": lambda m, d, e: d if m == e else m,
    }


FLOATS = {
    "add_f32": lambda m, d, e: add_f32(m, d),
    "min_f32": lambda m, d, e: m if f32(m) < f32(d) else d,
    "max_f32": lambda m, d, e: d if f32(m) < f32(d) else m,
    "cmpstore_f32": lambda m, d, e: d if f32(m) == f32(e) else m,
    "min_f64": lambda m, d, e: d2(min(f64(m), f64(d))),
    "max_f64": lambda m, d, e: d2(max(f64(m), f64(d))),
    "cmpstore_f64": lambda m, d, e: d if f64(m) == f64(e) else m,
    "pk_add_f16": lambda m, d, e: halves(add_f16)(m, d, 32),
    "pk_add_bf16": lambda m, d, e: halves(add_bf16)(m, d, 32),
}
OTHERS = {
    "cond_sub_u32": lambda m, d, e: m - d if m >= d else m,
    "sub_clamp_u32": lambda m, d, e: max(m - d, 0),
    "wrap_b32": lambda m, d, e: (m - d if m >= d else m + e) & 0xFFFFFFFF,
    "condxchg32_b64": condxchg,
}
ATOMICS = {**integer(32), **integer(64), **FLOATS, **OTHERS}
ATOMICS |= {n.replace("_f", "_num_f"): f for n, f in FLOATS.items() if n.startswith(("min", "max"))}
LOADS = {"u8": (1, False, None), "i8": (1, True, None), "u16": (2, False, None), "i16": (2, True, None),
         "b32": (4, False, None), "b64": (8, False, None), "b96": (12, False, None), "b128": (16, False, None),
         "u8_d16": (1, False, 0), "u8_d16_hi": (1, False, 1), "i8_d16": (1, True, 0), "i8_d16_hi": (1, True, 1),
         "u16_d16": (2, False, 0), "u16_d16_hi": (2, False, 1)}  # fmt: skip
STORES = {"b8": (1, 0), "b8_d16_hi": (1, 2), "b16": (2, 0), "b16_d16_hi": (2, 2), "b32": (4, 0), "b64": (8, 0),
          "b96": (12, 0), "b128": (16, 0)}  # fmt: skip


def width(name: str) -> int:
    return 8 if name.endswith("64") else 4


def span(first: int, nbytes: int) -> str:
    n = max(1, nbytes // 4)
    return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"


class State:
    """A wave with random registers v10..v29, v8 = address, and LDS of ordinary numbers."""

    def __init__(self, arch: str, wave: int, seed: int, scale: int = 32) -> None:
        self.arch, self.wave = arch, wave
        self.rng = rng = np.random.default_rng(seed)
        self.v = np.zeros((40, wave), np.uint32)
        hi = rng.integers(0x3C00, 0x4300, (20, wave)) | rng.integers(0, 2, (20, wave)) << 15
        self.v[10:30] = (hi << 16 | rng.integers(0x3800, 0x3C00, (20, wave))).astype(np.uint32)
        lanes = rng.permutation(wave)
        self.v[8] = lanes * scale
        k = SIZE // 4
        hi = rng.integers(0x3C00, 0x4300, k) | rng.integers(0, 2, k) << 15
        self.lds = (hi << 16 | rng.integers(0x3800, 0x3C00, k)).astype(np.uint32).view(np.uint8).copy()
        self.exec = int(rng.integers(0, 1 << 63)) & ((1 << wave) - 1) | 1 | 1 << wave - 1
        self.m0 = 0

    def active(self) -> list[int]:
        return [lane for lane in range(self.wave) if self.exec >> lane & 1]

    def reg(self, first: int, n: int, lane: int) -> int:
        x = 0
        for k in range((n + 3) // 4):
            x |= int(self.v[first + k, lane]) << 32 * k
        return x & ((1 << 8 * n) - 1)

    def mem(self, at: int, n: int) -> int:
        return int.from_bytes(self.lds[at : at + n].tobytes(), "little")

    def put(self, at: int, n: int, x: int) -> None:
        self.lds[at : at + n] = np.frombuffer((x & ((1 << 8 * n) - 1)).to_bytes(n, "little"), np.uint8)

    def set(self, first: int, n: int, lane: int, x: int) -> None:
        for k in range((n + 3) // 4):
            self.v[first + k, lane] = x >> 32 * k & 0xFFFFFFFF

    def run(self, text: str, code: bytes) -> dict:
        v = {str(i): "".join(f"{int(x):08x}" for x in row) for i, row in enumerate(self.v)}
        state = {
            "wave": self.wave,
            "exec": f"{self.exec:x}",
            "m0": f"{self.m0:x}",
            "v": v,
            "lds": self.lds.tobytes().hex(),
        }
        return sim.execute(self.arch, code, state)

    def check(self, out: dict, text: str) -> None:
        """The state (changed as expected) is what the run left."""
        for i, row in enumerate(self.v):
            got = out["v"].get(str(i))
            want = "".join(f"{int(x):08x}" for x in row)
            assert got is None or got == want, f"{text}: v{i} is {got}, not {want}"
            assert got is not None or not row.any()
        assert out["lds"] in ("same", self.lds.tobytes().hex()), f"{text}: LDS"


def cases(arch: str, wave: int, texts: list[str]) -> list[tuple[str, bytes]]:
    return [(t, c) for t, c in zip(texts, encode(arch, texts, wave), strict=True) if c is not None]


@both
def test_loads(arch, wave):
    texts = [f"ds_load_{n} {span(30, w)}, v8 offset:{o}" for n, (w, _, _) in LOADS.items() for o in (0, 7, 1024)]
    found = cases(arch, wave, texts)
    assert len(found) == len(texts)
    for i, (text, code) in enumerate(found):
        st = State(arch, wave, 100 + i)
        n, sign, half = LOADS[text.split()[0].removeprefix("ds_load_")]
        st.v[30:34] = 0xABCD1234
        out = st.run(text, code)
        for lane in st.active():
            x = st.mem(int(st.v[8, lane]) + int(text.split(":")[-1]), n)
            x = signed(x, 8 * n) if sign else x
            if half is None:
                st.set(30, max(4, n), lane, x & ((1 << 8 * max(4, n)) - 1))
            else:
                st.v[30, lane] = (x & 0xFFFF) << 16 | 0x1234 if half else 0xABCD0000 | x & 0xFFFF
        st.check(out, text)


@both
def test_stores(arch, wave):
    texts = [f"ds_store_{n} v8, {span(10, w)} offset:{o}" for n, (w, _) in STORES.items() for o in (0, 5, 2048)]
    found = cases(arch, wave, texts)
    assert len(found) == len(texts)
    for i, (text, code) in enumerate(found):
        st = State(arch, wave, 200 + i)
        n, first = STORES[text.split()[0].removeprefix("ds_store_")]
        out = st.run(text, code)
        for lane in st.active():
            at = int(st.v[8, lane]) + int(text.split(":")[-1])
            st.put(at, n, st.reg(10, first + n, lane) >> 8 * first)
        st.check(out, text)


@both
def test_two_addresses(arch, wave):
    """ds_load_2addr, ds_store_2addr, ds_storexchg_2addr; offsets count elements, with stride64 64 of them."""
    texts = []
    for n in (4, 8):
        for s in ("", "_stride64"):
            o = "offset0:1 offset1:3"
            b = f"b{8 * n}"
            texts.append(f"ds_load_2addr{s}_{b} {span(30, 2 * n)}, v8 {o}")
            texts.append(f"ds_store_2addr{s}_{b} v8, {span(10, n)}, {span(14, n)} {o}")
            texts.append(f"ds_storexchg_2addr{s}_rtn_{b} {span(30, 2 * n)}, v8, {span(10, n)}, {span(14, n)} {o}")
    found = cases(arch, wave, texts)
    assert len(found) == len(texts)
    for i, (text, code) in enumerate(found):
        n, step = (8 if "b64" in text else 4), (64 if "stride64" in text else 1)
        st = State(arch, wave, 300 + i, n if step == 64 else 32)  # no two lanes meet
        out = st.run(text, code)
        for lane in st.active():
            for k, off in enumerate((1, 3)):
                at = int(st.v[8, lane]) + off * n * step
                if "_store_" not in text:
                    st.set(30 + k * n // 4, n, lane, st.mem(at, n))
                if "_load_" not in text:
                    st.put(at, n, st.reg(10 + 4 * k, n, lane))
        st.check(out, text)


@both
def test_atomics(arch, wave):
    texts = []
    for name in ATOMICS:
        n = width(name)
        op, _, typ = name.rpartition("_")
        data = span(10, n) + (f", {span(14, n)}" if op in ("mskor", "cmpstore", "wrap") else "")
        texts += [f"ds_{name} v8, {data} offset:8", f"ds_{op}_rtn_{typ} {span(30, n)}, v8, {data} offset:8"]
    found = cases(arch, wave, texts)
    assert len(found) >= 90 - 20, len(found)
    for i, (text, code) in enumerate(found):
        st = State(arch, wave, 400 + i)
        name = text.split()[0].removeprefix("ds_").replace("_rtn_", "_")
        n = width(name)
        for lane in range(0, wave, 2):  # half of the comparisons succeed
            if name.startswith("cmpstore"):
                st.put(int(st.v[8, lane]) + 8, n, st.reg(14, n, lane))
        st.v[30:32] = 0
        out = st.run(text, code)
        for lane in st.active():
            at = int(st.v[8, lane]) + 8
            old = st.mem(at, n)
            st.put(at, n, ATOMICS[name](old, st.reg(10, n, lane), st.reg(14, n, lane)))
            if "_rtn_" in text:
                st.set(30, n, lane, old)
        st.check(out, text)


@both
def test_same_address(arch, wave):
    """All lanes add to one dword: each sees what the lanes before it left."""
    (code,) = encode(arch, ["ds_add_rtn_u32 v30, v8, v10"], wave)
    st = State(arch, wave, 7, scale=0)
    st.v[10] = np.arange(1, wave + 1)
    out = st.run("", code)
    total = st.mem(0, 4)
    for lane in st.active():
        st.v[30, lane] = total & 0xFFFFFFFF
        total += lane + 1
    st.put(0, 4, total)
    st.check(out, "ds_add_rtn_u32")


@both
def test_permutes(arch, wave):
    """Lanes count in the whole wave, on gfx1100 in each half of 64; inactive lanes give 0, but to _fi."""
    texts = [f"ds_{op}_b32 v30, v8, v10 offset:{o}" for op in ("permute", "bpermute", "bpermute_fi") for o in (0, 12)]
    found = cases(arch, wave, texts)
    assert len(found) == (4 if arch == "gfx1100" else 6)
    for i, (text, code) in enumerate(found):
        st = State(arch, wave, 500 + i)
        st.v[8] = st.rng.integers(0, 1 << 32, wave)
        out = st.run(text, code)
        off, d = int(text.split(":")[-1]), st.v[10].copy()

        def other(lane: int, off: int = off, st: State = st) -> int:
            to = (int(st.v[8, lane]) + off >> 2) % wave
            return to % 32 + lane // 32 * 32 if arch == "gfx1100" else to

        if "bpermute" in text:
            for lane in st.active():
                q = other(lane)
                st.v[30, lane] = d[q] if "_fi" in text or st.exec >> q & 1 else 0
        else:
            res = np.zeros(wave, np.uint32)
            for lane in st.active():
                res[other(lane)] = d[lane]
            for lane in st.active():
                st.v[30, lane] = res[lane]
        st.check(out, text)


def swizzled(off: int, lane: int) -> int:
    i, base = lane & 31, lane & ~31
    if off & 0x8000:
        return lane & ~3 | off >> 2 * (lane & 3) & 3
    return base + (((i & off & 31) | off >> 5 & 31) ^ (off >> 10 & 31))


@both
def test_swizzle(arch, wave):
    texts = [f"ds_swizzle_b32 v30, v10 offset:{o}" for o in (0x801B, 0x80E4, 0x041F, 0x7C1F, 0x0018, 0x03E7)]
    for i, (text, code) in enumerate(cases(arch, wave, texts)):
        st = State(arch, wave, 600 + i)
        out, d = st.run(text, code), st.v[10].copy()
        for lane in st.active():
            q = swizzled(int(text.split(":")[-1]), lane)
            st.v[30, lane] = d[q] if st.exec >> q & 1 else 0
        st.check(out, text)


@both
def test_counters_and_lane_numbers(arch, wave):
    """ds_append, ds_consume, ds_load_addtid, ds_store_addtid: addresses from M0; ds_nop does nothing."""
    texts = ["ds_append v30 offset:8", "ds_consume v30 offset:8", "ds_load_addtid_b32 v30 offset:16",
             "ds_store_addtid_b32 v10 offset:16", "ds_nop"]  # fmt: skip
    found = cases(arch, wave, texts)
    assert len(found) == 5
    for i, (text, code) in enumerate(found):
        st = State(arch, wave, 700 + i)
        st.m0 = 256
        out = st.run(text, code)
        n = len(st.active())
        old = st.mem(264, 4)
        for lane in st.active():
            if "append" in text or "consume" in text:
                st.v[30, lane] = old
            elif "load" in text:
                st.v[30, lane] = st.mem(272 + 4 * lane, 4)
            elif "store" in text:
                st.put(272 + 4 * lane, 4, int(st.v[10, lane]))
        if "append" in text or "consume" in text:
            st.put(264, 4, old + (n if "append" in text else -n))
        st.check(out, text)


@both
def test_one_value_to_all_lanes(arch, wave):
    """lds_direct_load, ds_direct_load: address and type of the value in M0; quads with any active lane."""
    name = "lds_direct_load" if arch == "gfx1100" else "ds_direct_load"
    (code,) = encode(arch, [f"{name} v30"], wave)
    for typ, n, sign in ((0, 1, False), (1, 2, False), (2, 4, False), (4, 1, True), (5, 2, True)):
        st = State(arch, wave, 800 + typ)
        st.m0 = typ << 16 | 0x124
        out = st.run(name, code)
        x = st.mem(0x124, n)
        for lane in {4 * (a // 4) + k for a in st.active() for k in range(4)}:
            st.v[30, lane] = (signed(x, 8 * n) if sign else x) & 0xFFFFFFFF
        st.check(out, f"{name}, type {typ}")
    st = State(arch, wave, 1)
    st.m0 = 3 << 16
    with pytest.raises(SimulatorFault, match="M0 names no data type"):
        st.run(name, code)


@both
def test_refused_by_name(arch, wave):
    """Ray-tracing stacks and ordered counts are no compute."""
    texts = ["ds_bvh_stack_rtn_b32 v30, v8, v10, v[12:15]", "ds_bvh_stack_push4_pop1_rtn_b32 v30, v8, v10, v[12:15]",
             "ds_bvh_stack_push8_pop2_rtn_b64 v[30:31], v8, v10, v[12:19]", "ds_ordered_count v30, v8 gds",
             "ds_add_gs_reg_rtn v[30:31], v8 gds"]  # fmt: skip
    found = cases(arch, wave, texts)
    assert found
    for text, code in found:
        with pytest.raises(SimulatorFault, match=text.split()[0][:12]):  # gfx1201 has one under a newer name
            State(arch, wave, 1).run(text, code)


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_graphics_are_refused_by_name(arch):
    texts = {
        "image_load v[0:3], v[4:5], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_2D": "image_",
        "image_load v[0:3], [v4, v5], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_2D": "image_",
        "image_sample v[0:3], [v4, v5], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_2D": "image_",
        "exp mrt0 v0, v1, v2, v3": "export",
        "v_interp_p10_f32 v0, v1, v2, v3": "v_interp_",
        "lds_param_load v5, attr1.x": "param_load",
    }
    found = cases(arch, 32, list(texts))
    assert len(found) >= 5
    for text, code in found:
        with pytest.raises(SimulatorFault, match=texts[text]):
            State(arch, 32, 1).run(text, code)


# ---- bank conflicts ------------------------------------------------------------------------------------------

PHASES = {  # lanes that can conflict with each other
    ("gfx1100", 4): [range(32)],
    ("gfx1201", 4): [range(32)],
    ("gfx1100", 8): [range(16), range(16, 32)],
    ("gfx1201", 8): [range(16), range(16, 32)],
    ("gfx1100", 16): [[*range(0, 4), *range(20, 24)], [*range(4, 8), *range(16, 20)],
                      [*range(8, 12), *range(28, 32)], [*range(12, 16), *range(24, 28)]],
    ("gfx1201", 16): [range(k, k + 8) for k in range(0, 32, 8)],
}  # fmt: skip


def conflicts(arch: str, n: int, stride: int) -> int:
    total = 0
    for lanes in PHASES[arch, n]:
        words = {lane * stride // 4 + d for lane in lanes for d in range(n // 4)}
        banks = np.bincount([w % 32 for w in words], minlength=32)
        total += int(banks.max()) - 1
    return total


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_bank_conflicts(arch):
    """Reads against the phases; what has no published phases is counted as a gap and adds nothing."""
    wait = "s_waitcnt lgkmcnt(0)\n" if arch == "gfx1100" else "s_wait_dscnt 0x0\n"
    for n, stride in [(n, s) for n in (4, 8, 16) for s in (4, 8, 16, 20, 32, 68, 128)]:
        body = f"v_and_b32 v0, 31, v0\nv_mul_u32_u24 v1, {stride}, v0\n"
        body += f"ds_load_b{8 * n} {span(4, n)}, v1\nds_load_b{8 * n} {span(4, n)}, v1\n" + wait
        hsaco = simlib.code_object(body, (simlib.BUF,), arch=arch, wave=32, lds=8192)
        dev = sim.Device(arch, checks="none", threads=1)
        stats = dev.load(hsaco).kernels["k"].launch(1, 32, [np.zeros(4, np.uint8)])
        assert stats["lds_conflict_cycles"] == 2 * conflicts(arch, n, stride), f"{n} bytes, stride {stride}"
        assert stats["lds_gap_accesses"] == 0
    body = "v_and_b32 v0, 31, v0\nv_lshlrev_b32 v1, 7, v0\nds_store_b64 v1, v[2:3]\nds_load_b96 v[4:6], v1\n" + wait
    hsaco = simlib.code_object(body, (simlib.BUF,), arch=arch, wave=32, lds=8192)
    stats = sim.Device(arch, checks="none", threads=1).load(hsaco).kernels["k"].launch(1, 32, [np.zeros(4, np.uint8)])
    assert stats["lds_gap_accesses"] == 2 and stats["lds_conflict_cycles"] == 0


@both
def test_bounds(arch, wave):
    """Accesses outside the workgroup's LDS are reported; loads there give 0."""
    wait = "s_waitcnt lgkmcnt(0)\n" if arch == "gfx1100" else "s_wait_dscnt 0x0\n"
    body = "v_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\nds_load_b32 v2, v1 offset:8\n" + wait
    hsaco = simlib.code_object(body, (simlib.BUF,), arch=arch, wave=wave, lds=4 * wave)
    with pytest.raises(SimulatorFault, match=rf"byte {4 * wave} is outside the {4 * wave} bytes"):
        sim.Device(arch, checks=["bounds"], threads=1).load(hsaco).kernels["k"].launch(1, wave, [np.zeros(4, np.uint8)])
