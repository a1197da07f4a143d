"""Litmus programs of the memory model: message passing, chains over three waves, locks, queues, barriers made of
atomics, within a workgroup and across workgroups, by scope, order, kind of flag and kind of data.

A :class:`Shape` is a program as C text with holes for its orders and scopes; :func:`source` puts several into one
file, :func:`build` compiles it for a :class:`Target`, :func:`run` launches one kernel with checks."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import simlib

from tilelang import sim

LANES = 32  # work-items of a role that carry data
S_NOP = 0xBF800000


@dataclass(frozen=True)
class Target:
    """A chip with a mode. flags: for clang."""

    name: str
    arch: str
    wave: int
    flags: tuple[str, ...] = ()
    split: bool = False  # waves of a workgroup do not share a cache

    @property
    def lds(self) -> bool:
        return "-mtgsplit" not in self.flags


def _targets() -> dict[str, Target]:
    out = []
    for a in ("gfx90a", "gfx942", "gfx950"):
        out.append(Target(a, a, 64))
        out.append(Target(f"{a}-split", a, 64, ("-mtgsplit",), True))
    for a in ("gfx1100", "gfx1201"):
        for w in (32, 64):
            wf = () if w == 32 else ("-mwavefrontsize64",)
            out.append(Target(f"{a}-{w}-wgp", a, w, (*wf, "-mno-cumode"), True))
            out.append(Target(f"{a}-{w}-cu", a, w, (*wf, "-mcumode")))
    return {t.name: t for t in out}


TARGETS = _targets()

PRELUDE = """
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL __attribute__((address_space(3)))
#define UNSET __attribute__((loader_uninitialized))
typedef unsigned u32;
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
#define INLINE static __attribute__((always_inline))
#define GROUP ((u32)__builtin_amdgcn_workgroup_id_x())
#define ITEM ((u32)__builtin_amdgcn_workitem_id_x())
#define UNIFORM(x) ((u32)__builtin_amdgcn_readfirstlane(x))
#define SLEEP() __builtin_amdgcn_s_sleep(1)
#define LANES 32
/* One lane does it; what it gives goes to all of them. */
#define ONE(x) ({ u32 _r = 0; if (lane == 0) _r = (x); UNIFORM(_r); })
#define ONE_DOES(x) do { if (lane == 0) { x; } } while (0)
"""

ORDERS = {"rlx": "__ATOMIC_RELAXED", "acq": "__ATOMIC_ACQUIRE", "rel": "__ATOMIC_RELEASE", "ar": "__ATOMIC_ACQ_REL",
          "sc": "__ATOMIC_SEQ_CST"}  # fmt: skip
SCOPES = {
    "wave": ("__MEMORY_SCOPE_WVFRNT", "wavefront"),
    "group": ("__MEMORY_SCOPE_WRKGRP", "workgroup"),
    "agent": ("__MEMORY_SCOPE_DEVICE", "agent"),
    "system": ("__MEMORY_SCOPE_SYSTEM", ""),
}
NO_FENCE = "(void)0"


@dataclass(frozen=True)
class Sync:
    """How the two sides of a flag are ordered. rel, acq: "op" (the access itself), "fence", "none" (relaxed)."""

    scope: str = "agent"
    rel: str = "op"
    acq: str = "op"
    sc: bool = False  # sequentially consistent instead
    fence_scope: str | None = None  # another one for fences

    @property
    def name(self) -> str:
        return f"{self.scope}_{self.rel}_{self.acq}{'_sc' if self.sc else ''}" + (
            f"_f{self.fence_scope}" if self.fence_scope else ""
        )

    def holes(self) -> dict[str, str]:
        mscope, fscope = SCOPES[self.scope]
        if self.fence_scope:
            fscope = SCOPES[self.fence_scope][1]
        strong = {"rel": "sc", "acq": "sc", "ar": "sc"} if self.sc else {"rel": "rel", "acq": "acq", "ar": "ar"}
        rel = ORDERS[strong["rel"]] if self.rel == "op" else ORDERS["rlx"]
        acq = ORDERS[strong["acq"]] if self.acq == "op" else ORDERS["rlx"]
        both = {(1, 1): strong["ar"], (1, 0): strong["rel"], (0, 1): strong["acq"], (0, 0): "rlx"}
        if self.sc and self.rel != self.acq:
            both[1, 0] = both[0, 1] = "sc"
        fence = '__builtin_amdgcn_fence({}, "{}")'
        return {
            "SC": mscope,
            "REL": rel,
            "ACQ": acq,
            "AR": ORDERS[both[self.rel == "op", self.acq == "op"]],
            "RLX": ORDERS["rlx"],
            "FREL2": fence.format(ORDERS["rel"], fscope),
            "FACQ2": fence.format(ORDERS["acq"], fscope),
            "FREL": fence.format(ORDERS["sc" if self.sc else "rel"], fscope) if self.rel == "fence" else NO_FENCE,
            "FACQ": fence.format(ORDERS["sc" if self.sc else "acq"], fscope) if self.acq == "fence" else NO_FENCE,
        }


@dataclass(frozen=True)
class Shape:
    """A program. roles: waves (or workgroups) that take part. body: statements of `role` (uniform), `lane`, `n`
    roles, with `data`, `flag` (zero at the start) and `out`. want: what each role leaves in out, (roles, LANES).
    place: where flags and data are when all roles are in one workgroup."""

    name: str
    roles: int
    body: str
    want: np.ndarray
    space: str = "GLOBAL"  # of flag
    data_space: str = "GLOBAL"
    top: str = ""
    chips: str = ".*"

    @property
    def local(self) -> bool:
        return "LOCAL" in (self.space, self.data_space) or "LOCAL" in self.top + self.body


@dataclass(frozen=True)
class Case:
    """A kernel: a shape with its orders, roles as waves of a workgroup ("waves") or as workgroups ("groups")."""

    shape: Shape
    sync: Sync
    place: str
    right: bool = True  # as the language has it

    @property
    def name(self) -> str:
        return f"{self.shape.name}__{self.place}__{self.sync.name}"


def kernel_source(c: Case, wave: int) -> str:
    """A kernel; in place "waves" the second workgroup does the same on memory of its own."""
    s = c.shape
    holes = c.sync.holes() | {"F": s.space, "D": s.data_space}
    body = re.sub(r"@(\w+)", lambda m: holes[m[1]], s.body)
    items = wave * s.roles if c.place == "waves" else wave
    lines = [f"__attribute__((amdgpu_kernel, amdgpu_flat_work_group_size({items}, {items}))) void"]
    lines.append(f"{c.name}(GLOBAL u32 *data_, GLOBAL u32 *flag_, GLOBAL u32 *out_)\n{{")
    lines.append(f"    u32 lane = ITEM % {wave}, n = {s.roles}, part = " + ("GROUP;" if c.place == "waves" else "0;"))
    lines.append(f"    u32 role = {f'UNIFORM(ITEM / {wave})' if c.place == 'waves' else 'GROUP'};")
    lines.append("    GLOBAL u32 *out = out_ + part * n * LANES;")
    for what, space, size in (("flag", s.space, 64), ("data", s.data_space, 1024)):
        if space == "GLOBAL":
            lines.append(f"    GLOBAL u32 *{what} = {what}_ + part * {size};")
        elif space == "FLAT":
            lines.append(f'    u32 *{what} = (u32 *)({what}_ + part * {size}); asm volatile("" : "+v"({what}));')
        else:
            lines.append(f"    static UNSET LOCAL u32 {what}[{size}];")
    if s.space == "LOCAL":
        lines.append("    if (ITEM < 64) flag[ITEM] = 0;")
        if wave * s.roles < 64:
            raise ValueError("flags in LDS need 64 items")
        lines.append('    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier();')
        lines.append('    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");')
    lines.append("    (void)n;")
    return "\n".join(lines) + "\n" + body + "\n}\n"


def source(cases: Sequence[Case], wave: int) -> str:
    tops = dict.fromkeys(c.shape.top for c in cases if c.shape.top)
    return PRELUDE + "\n".join(tops) + "\n".join(kernel_source(c, wave) for c in cases)


def build(cases: Sequence[Case], t: Target, opt: str = "-O2", clang: str = "clang-22") -> bytes:
    text, lld = source(cases, t.wave), "lld"
    if clang == "clang-19":  # takes sizes of workgroups for kernels of OpenCL and HIP only
        text = re.sub(r", amdgpu_flat_work_group_size\([^)]*\)", "", text)
        lld = shutil.which("ld.lld-22") or shutil.which("ld.lld")
    flags = [*t.flags, opt, "-w", f"-fuse-ld={lld}", "-mcode-object-version=5"]
    return simlib.clang_c(text, t.arch, *flags, clang=clang)


# ---- shapes -------------------------------------------------------------------------------------------------------

_L = np.arange(LANES, dtype=np.uint32)
_0 = np.zeros(LANES, np.uint32)

SPIN = "while (ONE({look}) {until}) SLEEP();"

WRITES = {
    "store": "ONE_DOES(__scoped_atomic_store_n(flag, 1, @REL, @SC))",
    "xchg": "ONE_DOES(__scoped_atomic_exchange_n(flag, 1, @REL, @SC))",
    "xchgret": "out[lane % LANES] = ONE(__scoped_atomic_exchange_n(flag, 1, @REL, @SC))",
    "add": "ONE_DOES(__scoped_atomic_fetch_add(flag, 1, @REL, @SC))",
    "addret": "out[lane % LANES] = ONE(__scoped_atomic_fetch_add(flag, 1, @REL, @SC))",
    "or": "ONE_DOES(__scoped_atomic_fetch_or(flag, 1, @REL, @SC))",
    "cas": "ONE_DOES(u32 e = 0; __scoped_atomic_compare_exchange_n(flag, &e, 1, 0, @REL, @RLX, @SC))",
}
LOOKS = {
    "load": ("__scoped_atomic_load_n(flag, @ACQ, @SC)", "!= 1"),
    "add": ("__scoped_atomic_fetch_add(flag, 0, @ACQ, @SC)", "!= 1"),
    "or": ("__scoped_atomic_fetch_or(flag, 0, @ACQ, @SC)", "!= 1"),
    "xchg": ("__scoped_atomic_exchange_n(flag, 0, @ACQ, @SC)", "!= 1"),
    "cas": ("({ u32 e = 1; __scoped_atomic_compare_exchange_n(flag, &e, 2, 0, @ACQ, @RLX, @SC); })", "!= 1"),
}


def message(write: str, look: str, name: str = "", put: str | None = None, get: str | None = None, **more) -> Shape:
    """Role 0 writes 32 dwords and raises a flag; role 1 waits for it and reads them."""
    spin = SPIN.format(look=LOOKS[look][0], until=LOOKS[look][1])
    put = put or "if (lane < LANES) data[lane] = lane + 5;"
    get = get or "if (lane < LANES) out[LANES + lane] = data[lane];"
    body = f"""
    if (role == 0) {{
        {put}
        @FREL;
        {WRITES[write]};
    }} else {{
        {spin}
        @FACQ;
        {get}
    }}"""
    return Shape(name or f"mp_{write}_{look}", 2, body, np.stack([_0, _L + 5]), **more)


def _shapes() -> dict[str, Shape]:
    out = []
    for w in WRITES:
        for k in LOOKS:
            if w in ("store", "add") or k in ("load", "or"):
                out.append(message(w, k))
    load, store = "__scoped_atomic_load_n({}, @ACQ, @SC)", "__scoped_atomic_store_n({}, {}, @REL, @SC)"

    def spin(at: str, until: str) -> str:
        return f"while (ONE({load.format(at)}) {until}) SLEEP(); @FACQ;"

    def post(at: str, v: str) -> str:
        return f"@FREL; ONE_DOES({store.format(at, v)});"

    write = "if (lane < LANES) data[lane] = lane + 5;"
    # a read-modify-write of a third wave, relaxed, goes on with the release sequence
    for rmw in (
        "__scoped_atomic_fetch_add(flag, 1, @RLX, @SC)",
        "({ u32 e = 1; __scoped_atomic_compare_exchange_n(flag, &e, 2, 0, @RLX, @RLX, @SC) ? 1 : 0; })",
    ):
        kind = "add" if "fetch_add" in rmw else "cas"
        first = "while (ONE(__scoped_atomic_load_n(flag, @RLX, @SC)) != 1) SLEEP(); ONE(" + rmw + ");"
        out.append(Shape(f"relseq_{kind}", 3, f"""
    if (role == 0) {{ {write} {post("flag", "1")} }}
    else if (role == 1) {{ {first} }}
    else {{ {spin("flag", "!= 2")} if (lane < LANES) out[2 * LANES + lane] = data[lane]; }}""",
                         np.stack([_0, _0, _L + 5])))  # fmt: skip
    out.append(Shape("wrc", 3, f"""
    if (role == 0) {{ {write} {post("flag", "1")} }}
    else if (role == 1) {{ {spin("flag", "!= 1")} {post("flag + 16", "1")} }}
    else {{ {spin("flag + 16", "!= 1")} if (lane < LANES) out[2 * LANES + lane] = data[lane]; }}""",
                     np.stack([_0, _0, _L + 5])))  # fmt: skip
    out.append(Shape("isa2", 3, f"""
    if (role == 0) {{ {write} {post("flag", "1")} }}
    else if (role == 1) {{ {spin("flag", "!= 1")} if (lane < LANES) data[64 + lane] = 3 * lane;
        {post("flag + 16", "1")} }}
    else {{ {spin("flag + 16", "!= 1")} if (lane < LANES) out[2 * LANES + lane] = data[lane] + data[64 + lane]; }}""",
                     np.stack([_0, _0, 4 * _L + 5])))  # fmt: skip
    # a wave that changes what another has read
    out.append(Shape("war", 2, f"""
    if (role == 0) {{ if (lane < LANES) out[lane] = data[lane]; {post("flag", "1")} }}
    else {{ {spin("flag", "!= 1")} if (lane < LANES) data[lane] = 7; }}""",
                     np.stack([_0, _0])))  # fmt: skip
    # two flags that pass the token to and fro: data goes both ways
    out.append(Shape("pingpong", 2, f"""
    u32 mine = lane < LANES ? lane : 0;
    if (role == 0) for (u32 k = 0; k < 4; k++) {{
        if (lane < LANES) data[mine] = k ? data[mine] + 1 : mine;
        {post("flag", "k + 1")}
        {spin("flag + 16", "!= k + 1")}
        if (k == 3 && lane < LANES) out[lane] = data[mine];
    }} else for (u32 k = 0; k < 4; k++) {{
        {spin("flag", "!= k + 1")}
        if (lane < LANES) data[mine] = 3 * data[mine];
        {post("flag + 16", "k + 1")}
    }}""", np.stack([81 * _L + 39, _0])))  # fmt: skip
    # producer and consumer over two buffers
    out.append(Shape("ring", 2, f"""
    u32 sum = 0;
    if (role == 0) for (u32 k = 0; k < 5; k++) {{
        u32 b = k % 2;
        {spin("flag + 32 * b + 16", "!= k / 2")}
        if (lane < LANES) data[64 * b + lane] = lane + k;
        {post("flag + 32 * b", "k / 2 + 1")}
    }} else {{
        for (u32 k = 0; k < 5; k++) {{
            u32 b = k % 2;
            {spin("flag + 32 * b", "!= k / 2 + 1")}
            if (lane < LANES) sum += data[64 * b + lane];
            {post("flag + 32 * b + 16", "k / 2 + 1")}
        }}
        if (lane < LANES) out[LANES + lane] = sum;
    }}""", np.stack([_0, 5 * _L + 10])))  # fmt: skip
    # locks around a plain counter; the last to come (a relaxed count) checks it
    count = "if (lane < LANES) data[lane] = data[lane] + role + 1;"
    locks = {
        "xchg": ("while (ONE(__scoped_atomic_exchange_n(flag, 1, @ACQ, @SC))) SLEEP(); @FACQ;", post("flag", "0")),
        "cas": (
            "while (!ONE(({ u32 e = 0; __scoped_atomic_compare_exchange_n(flag, &e, 1, 0, @ACQ, @RLX, @SC); }))) "
            "SLEEP(); @FACQ;",
            post("flag", "0"),
        ),
        "casx": (
            "while (!ONE(({ u32 e = 0; __scoped_atomic_compare_exchange_n(flag, &e, 1, 0, @ACQ, @RLX, @SC); }))) "
            "SLEEP(); @FACQ;",
            "@FREL; ONE_DOES(__scoped_atomic_exchange_n(flag, 0, @REL, @SC));",
        ),
        "ticket": (
            "u32 ticket = ONE(__scoped_atomic_fetch_add(flag + 16, 1, @RLX, @SC)); " + spin("flag", "!= ticket"),
            post("flag", "ticket + 1"),
        ),
        "ticketadd": (
            "u32 ticket = ONE(__scoped_atomic_fetch_add(flag + 16, 1, @RLX, @SC)); " + spin("flag", "!= ticket"),
            "@FREL; ONE_DOES(__scoped_atomic_fetch_add(flag, 1, @REL, @SC));",
        ),
    }
    for kind, (take, give) in locks.items():
        out.append(Shape(f"lock_{kind}", 3, f"""
    {take}
    {count}
    {give}
    (void)ONE(__scoped_atomic_fetch_add(flag + 48, 1, @RLX, @SC));
    if (role == 0) {{
        while (ONE(__scoped_atomic_load_n(flag + 48, @RLX, @SC)) != 3) SLEEP();
        {take.replace("u32 ticket", "u32 again").replace("!= ticket", "!= again")}
        if (lane < LANES) out[lane] = data[lane];
    }}""", np.stack([_0 + 6, _0, _0])))  # fmt: skip
    # sequence lock, its payload atomic
    out.append(Shape("seqlock", 2, """
    if (role == 0) for (u32 k = 1; k < 4; k++) {
        ONE_DOES(__scoped_atomic_store_n(flag, 2 * k - 1, @RLX, @SC));
        @FREL2;
        if (lane < LANES) __scoped_atomic_store_n(data + lane, lane * k, @RLX, @SC);
        @FREL; ONE_DOES(__scoped_atomic_store_n(flag, 2 * k, @REL, @SC));
    } else for (u32 v = 0, k = 0; k != 3;) {
        u32 s = ONE(__scoped_atomic_load_n(flag, @ACQ, @SC));
        @FACQ;
        if (s & 1) { SLEEP(); continue; }
        if (lane < LANES) v = __scoped_atomic_load_n(data + lane, @RLX, @SC);
        @FACQ2;
        if (ONE(__scoped_atomic_load_n(flag, @RLX, @SC)) != s) { SLEEP(); continue; }
        k = s / 2;
        if (k == 3 && lane < LANES) out[LANES + lane] = v;
        SLEEP();
    }""", np.stack([_0, 3 * _L])))  # fmt: skip
    # a barrier of all roles, twice; then each reads its neighbour's
    for kind, arrive in {
        "gen": """
        @FREL;
        if (ONE(__scoped_atomic_fetch_add(flag, 1, @AR, @SC)) == n - 1) {
            @FACQ;
            ONE_DOES(__scoped_atomic_store_n(flag, 0, @RLX, @SC));
            @FREL;
            ONE_DOES(__scoped_atomic_store_n(flag + 16, k + 1, @REL, @SC));
        } else {
            while (ONE(__scoped_atomic_load_n(flag + 16, @ACQ, @SC)) != k + 1) SLEEP();
            @FACQ;
        }""",
        "count": """
        @FREL;
        ONE_DOES(__scoped_atomic_fetch_add(flag, 1, @REL, @SC));
        while (ONE(__scoped_atomic_load_n(flag, @ACQ, @SC)) < n * (k + 1)) SLEEP();
        @FACQ;""",
    }.items():
        out.append(Shape(f"barrier_{kind}", 3, f"""
    u32 sum = 0;
    for (u32 k = 0; k < 2; k++) {{
        if (lane < LANES) data[64 * role + 256 * k + lane] = lane + role + 10 * k;
        {arrive}
        if (lane < LANES) sum += data[64 * ((role + 1) % n) + 256 * k + lane];
    }}
    if (lane < LANES) out[role * LANES + lane] = sum;""",
                         np.stack([2 * _L + 2 * ((r + 1) % 3) + 10 for r in range(3)])))  # fmt: skip
    # who counts last adds up; who drops the last reference overwrites
    out.append(Shape("last", 3, """
    if (lane < LANES) data[64 * role + lane] = lane + role;
    @FREL;
    u32 ticket = ONE(__scoped_atomic_fetch_add(flag, 1, @AR, @SC));
    if (ticket == n - 1) {
        @FACQ;
        if (lane < LANES) out[lane] = data[lane] + data[64 + lane] + data[128 + lane];
    }""", np.stack([3 * _L + 3, _0, _0])))  # fmt: skip
    out.append(Shape("refcount", 3, """
    u32 v = lane < LANES ? data[lane] : 0;
    if (lane < LANES) out[role * LANES + lane] = v;
    @FREL;
    u32 left = ONE(__scoped_atomic_fetch_sub(flag, 1, @AR, @SC));
    if (left == 1u - n) {
        @FACQ;
        if (lane < LANES) data[lane] = 9;
    }""", np.stack([_0, _0, _0])))  # fmt: skip
    # a queue: one fills it, the others take
    out.append(Shape("queue", 3, f"""
    if (role == 0) for (u32 k = 0; k < 4; k++) {{
        if (lane < LANES) data[64 * k + lane] = lane + k;
        {post("flag", "k + 1")}
    }} else for (;;) {{
        u32 k = ONE(__scoped_atomic_fetch_add(flag + 16, 1, @RLX, @SC));
        if (k >= 4) break;
        {spin("flag", "<= k")}
        if (lane < LANES) __scoped_atomic_fetch_add(out + lane, data[64 * k + lane], @RLX, @SC);
    }}""", np.stack([4 * _L + 6, _0, _0])))  # fmt: skip
    # kinds of data
    top = """
INLINE __amdgpu_buffer_rsrc_t rsrc(GLOBAL u32 *p) {
    return __builtin_amdgcn_make_buffer_rsrc((void *)(u32 *)p, 0, 4096, BUFFER_FLAGS);
}"""
    flags = "\n#if defined(__GFX11__)\n#define BUFFER_FLAGS 0x31004000\n#elif defined(__GFX12__)\n" \
            "#define BUFFER_FLAGS 0x30004000\n#else\n#define BUFFER_FLAGS 0x27000\n#endif\n"  # fmt: skip
    wide = "if (lane < 8) ((GLOBAL u32x4 *)data)[lane] = 4 * lane + (u32x4){5, 6, 7, 8};"
    got = "if (lane < 8) ((GLOBAL u32x4 *)(out + LANES))[lane] = ((GLOBAL u32x4 *)data)[lane];"
    out += [
        message("store", "load", "data_wide", wide, got),
        message("store", "load", "data_bytes",
                "if (lane < LANES) { ((GLOBAL unsigned char *)data)[4 * lane] = lane + 5; "
                "((GLOBAL unsigned short *)data)[2 * lane + 1] = 0; "
                "((GLOBAL unsigned char *)data)[4 * lane + 1] = 0; }"),
        message("store", "load", "data_buffer",
                "if (lane < LANES) __builtin_amdgcn_raw_buffer_store_b32(lane + 5, rsrc(data), 4 * lane, 0, 0);",
                "if (lane < LANES) out[LANES + lane] = "
                "__builtin_amdgcn_raw_buffer_load_b32(rsrc(data), 4 * lane, 0, 0);", top=flags + top),
        message("store", "load", "data_nt", "if (lane < LANES) __builtin_nontemporal_store(lane + 5, data + lane);",
                "if (lane < LANES) out[LANES + lane] = __builtin_nontemporal_load(data + lane);"),
        message("store", "load", "data_flat", "u32 *f = (u32 *)data; if (lane < LANES) f[lane] = lane + 5;",
                "u32 *f = (u32 *)data; asm volatile(\"\" : \"+v\"(f)); if (lane < LANES) out[LANES + lane] = f[lane];"),
        message("store", "load", "data_tolds", None,
                "static UNSET LOCAL u32 tile[64]; "
                "__builtin_amdgcn_global_load_lds((GLOBAL void *)(data + lane), (LOCAL void *)tile, 4, 0, 0); "
                "__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, \"workgroup\"); __builtin_amdgcn_s_waitcnt(0); "
                "if (lane < LANES) out[LANES + lane] = tile[lane];", chips="gfx9.*"),
        message("store", "load", "data_volatile", "if (lane < LANES) ((volatile GLOBAL u32 *)data)[lane] = lane + 5;",
                "if (lane < LANES) out[LANES + lane] = ((volatile GLOBAL u32 *)data)[lane];"),
        message("store", "load", "data_uniform", "ONE_DOES(for (u32 i = 0; i < 4; i++) data[i] = 5);",
                "u32 s = data[0] + data[1] + data[2] + data[3]; if (lane < LANES) out[LANES + lane] = s - 15 + lane;"),
    ]  # fmt: skip
    # flags and data in LDS, flags through flat pointers
    plain = [s for s in out if not s.top and not s.name.startswith("data_") and s.name != "refcount"]
    for space, data in (("LOCAL", "GLOBAL"), ("GLOBAL", "LOCAL"), ("LOCAL", "LOCAL"), ("FLAT", "GLOBAL")):
        for base in plain:
            if space != "FLAT" and data != "LOCAL" and base.name == "war":
                continue
            if base.name in ("war", "pingpong") and data == "LOCAL":
                continue  # reads what nobody has written
            if base.name.startswith("lock") and data == "LOCAL":
                continue
            short = {"GLOBAL": "g", "LOCAL": "l", "FLAT": "f"}
            out.append(replace(base, name=f"{base.name}_{short[space]}{short[data]}", space=space, data_space=data))
    return {s.name: s for s in out}


SHAPES = _shapes()


# ---- running -----------------------------------------------------------------------------------------------------


@dataclass
class Result:
    """reports: of a launch with checks; right: what was left in out (None: a fault kept it from coming)."""

    reports: list[sim.Report]
    right: bool | None
    ran: dict[int, int]


@functools.cache
def device(arch: str, checks: str, threads: int, limit: int) -> sim.Device:
    return sim.Device(arch, checks=checks, threads=threads, max_instructions=limit)


_loaded: dict[int, tuple[bytes, sim.Module]] = {}


def loaded(dev: sim.Device, code: bytes) -> sim.Module:
    """The code object on this device; the one before goes."""
    had = _loaded.get(id(dev))
    if had is None or had[0] is not code:
        if had:
            had[1].unload()
        _loaded[id(dev)] = had = (code, dev.load(code))
    return had[1]


def run(c: Case, code: bytes, t: Target, checks: str = "all", threads: int = 1, seed: int = 0, limit: int = 20_000_000,
        **how) -> Result:  # fmt: skip
    dev = device(t.arch, checks, threads, limit)
    copies = 2 if c.place == "waves" else 1
    n = c.shape.roles
    data, flag = np.zeros(1024 * copies, np.uint32), np.zeros(64 * copies, np.uint32)
    out = np.zeros((copies, n, LANES), np.uint32)
    module = loaded(dev, code)
    grid, block = (copies, t.wave * n) if c.place == "waves" else (n, t.wave)
    ran, reports = {}, []
    try:
        ran = module.kernels[c.name].launch(grid, block, [data, flag, out], seed=seed, **how)["by_pc"]
    except sim.SimulatorFault as e:
        reports = e.reports
    right = None if reports else all((out[k] == c.shape.want).all() for k in range(copies))
    return Result(reports, right, ran)


def listing(c: Case, code: bytes, t: Target) -> list[tuple[int, str]]:
    module = loaded(device(t.arch, "none", 1, 1000), code)
    return [(pc, text) for pc, text, _ in module.kernels[c.name].disassembly()]
