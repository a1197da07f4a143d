"""Random C programs that a chip and the host run alike: 64 lanes work on a state each in phases, exchange values
between phases (LDS, lane moves, atomics), and work on a state that all lanes share (scalar code).

:func:`program` gives the text for a seed: with -DHOST a function that runs the lanes one after the other, else a
kernel. Texts grow from :data:`RULES`: every ``{name}`` is replaced by a rule of that name or by an atom. Left out is
what LLVM 22.1 makes wrong code of: swaps of 64 bits at -O0 on gfx11; under GlobalISel products of 128 bits, integers
of odd widths, and values that differ by the branch that a lane took."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

LANES = 64

PRELUDE = r"""
typedef unsigned long long u64; typedef long long i64; typedef unsigned u32; typedef int i32;
typedef unsigned short u16; typedef short i16; typedef unsigned char u8; typedef signed char i8;
typedef _Float16 f16; typedef float f32; typedef double f64;
typedef u32 u32x4 __attribute__((ext_vector_type(4))); typedef u16 u16x2 __attribute__((ext_vector_type(2)));
typedef i16 i16x2 __attribute__((ext_vector_type(2))); typedef f32 f32x2 __attribute__((ext_vector_type(2)));
typedef f16 f16x2 __attribute__((ext_vector_type(2)));
struct Bits { u32 a : 5; i32 b : 9; u32 c : 18; u64 d : 37; i64 e : 21; };
struct S {
    u32 u[4]; i32 i[4]; u64 q[3]; u16 h[5]; u8 b[13]; f32 f[3]; f64 d[2]; f16 g[3];
    u16x2 p; f32x2 w; f16x2 y; u32x4 v; Bits t; u32 lane;
};
template <class T, class F> static inline T as(F x) { return __builtin_bit_cast(T, x); }
template <class T> static inline T get(const void *p) { T x; __builtin_memcpy(&x, p, sizeof x); return x; }
template <class T> static inline void put(void *p, T x) { __builtin_memcpy(p, &x, sizeof x); }
static inline u32 bits(f32 x) { return x != x ? 0x7fc00000u : as<u32>(x); }
static inline u64 bits(f64 x) { return x != x ? 0x7ff8ull << 48 : as<u64>(x); }
static inline u32 bits(f16 x) { return x != x ? 0x7e00 : as<u16>(x); }
static inline f32 fin(f32 x) { return x == x && __builtin_fabsf(x) < 1e30f ? x : 1.5f; }
static inline f64 fin(f64 x) { return x == x && __builtin_fabs(x) < 1e200 ? x : 2.5; }
static inline f16 fin(f16 x) { return x == x && x < (f16)3e4f && x > (f16)-3e4f ? x : (f16)0.75f; }
static inline i32 to_i(f64 x) { return x > -2e9 && x < 2e9 ? (i32)x : 7; }
static inline u32 to_u(f32 x) { return x >= 0 && x < 4e9f ? (u32)x : 8; }
static inline i64 to_q(f64 x) { return x > -9e18 && x < 9e18 ? (i64)x : 9; }
#ifdef HOST
static inline u32 ubfe(u32 a, u32 o, u32 w) { return a >> o & ((1u << w) - 1); }
static inline i32 sbfe(u32 a, u32 o, u32 w)
{
    u32 x = ubfe(a, o, w);
    return o + w > 31 ? (i32)a >> o : (i32)(w && x >> (w - 1) ? x | ~0u << w : x);
}
static inline u32 each(u32 a, u32 b, u32 c, int n, i64 (*f)(i64, i64))
{
    for (int i = 0; i < 32; i += n) c += (u32)f(a >> i & ((1u << n) - 1), b >> i & ((1u << n) - 1));
    return c;
}
static inline i64 away(i64 x, i64 y) { return x < y ? y - x : x - y; }
static inline i64 times(i64 x, i64 y) { return x * y; }
static inline u32 sad(u32 a, u32 b, u32 c) { return each(a, b, c, 8, away); }
static inline u32 dot4(u32 a, u32 b, u32 c) { return each(a, b, c, 8, times); }
static inline u32 dot8(u32 a, u32 b, u32 c) { return each(a, b, c, 4, times); }
static inline u32 perm(u32 a, u32 b, u32 s)
{
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (u32)(((u64)a << 32 | b) >> 8 * (s >> 8 * i & 7) & 255) << 8 * i;
    return r;
}
static inline u32 align(u32 a, u32 b, u32 s) { return (u32)(((u64)a << 32 | b) >> (s & 31)); }
static inline bool is(f32 x, u32 m)
{
    u32 b = as<u32>(x), e = b >> 23 & 255, f = b << 9, n = b >> 31;
    if (e == 255 && f) return m & 2;
    return m & (e == 255 ? n ? 4 : 512 : e ? n ? 8 : 256 : f ? n ? 16 : 128 : n ? 32 : 64);
}
#else
#define ubfe __builtin_amdgcn_ubfe
#define sbfe (i32)__builtin_amdgcn_sbfe
#define sad __builtin_amdgcn_sad_u8
#define dot4(a, b, c) __builtin_amdgcn_udot4(a, b, c, false)
#define dot8(a, b, c) __builtin_amdgcn_udot8(a, b, c, false)
#define perm(a, b, s) __builtin_amdgcn_perm(a, b, (s) & 0x07070707)
#define align __builtin_amdgcn_alignbit
#define is __builtin_amdgcn_classf
#endif
static __attribute__((noinline)) u32 far0(u32 x, u32 y, S &s) { s.u[x & 3] ^= y; return x * 12345u + s.u[1]; }
static __attribute__((noinline)) u32 far1(u32 x, u64 y, S s)
{
    u32 r = x;
    for (u32 k = 0; k < (y & 7); k++) r = r * 5 + s.u[(r + k) & 3] - s.h[y % 5];
    return r;
}
static __attribute__((noinline)) S far2(S s, u32 x, f64 y) { s.q[x % 3] += x; s.d[x & 1] = fin(y * 0.5); return s; }
static void init(S &s, u32 lane, u64 seed)
{
    u64 z = (lane + 1) * 0x9E3779B97F4A7C15ull + seed;
#define RND (z ^= z >> 29, z *= 0xBF58476D1CE4E5B9ull, z ^= z >> 32, z)
    for (u32 k = 0; k < 4; k++) s.u[k] = (u32)(RND >> k * 9), s.i[k] = (i32)(RND >> k * 7), s.v[k] = (u32)RND;
    for (u32 k = 0; k < 3; k++) s.q[k] = RND, s.f[k] = (f32)(i32)(RND & 0xffff) / 64 - 300;
    for (u32 k = 0; k < 3; k++) s.g[k] = (f16)((f32)(i32)(RND & 0xff) / 16 - 7);
    for (u32 k = 0; k < 2; k++) s.d[k] = (f64)(i32)RND / 1024, s.w[k] = (f32)(i32)(RND & 0xfff) - 9, s.y[k] = s.g[k];
    for (u32 k = 0; k < 5; k++) s.h[k] = (u16)RND;
    for (u32 k = 0; k < 13; k++) s.b[k] = (u8)RND;
    s.p = as<u16x2>((u32)RND), s.lane = lane;
    s.t.a = (u32)RND, s.t.b = (i32)RND, s.t.c = (u32)RND, s.t.d = RND, s.t.e = (i64)RND;
}
static u64 digest(S &s)
{
    u64 h = 1;
#define ADD(x) (h = (h ^ (u64)(x)) * 0xD6E8FEB86659FD93ull, h ^= h >> 32)
    for (u32 k = 0; k < 4; k++) ADD(s.u[k]), ADD(s.i[k]), ADD(s.v[k]);
    for (u32 k = 0; k < 3; k++) ADD(s.q[k]), ADD(bits(s.f[k])), ADD(bits(s.g[k]));
    for (u32 k = 0; k < 2; k++) ADD(bits(s.d[k])), ADD(s.p[k]), ADD(bits(s.w[k])), ADD(bits(s.y[k]));
    for (u32 k = 0; k < 5; k++) ADD(s.h[k]);
    for (u32 k = 0; k < 13; k++) ADD(s.b[k]);
    ADD(s.t.a), ADD(s.t.b), ADD(s.t.c), ADD(s.t.d), ADD(s.t.e);
    return h;
}
"""

FRAME = r"""
#ifdef HOST
#define EACH for (u32 l = 0; l < 64; l++)
extern "C" void run(u64 *out, u32 *mem, u32 n)
{
    static S all[64];
    static u32 T[65], M[64];
    static u64 Q[64];
    static u8 C[64 * 9 + 8];
    (void)T, (void)Q, (void)C, (void)M;
    EACH init(all[l], l, @SEED@);
@HOST@
    EACH { S same; init(same, n, 7); @SAME@ out[l] = digest(all[l]) + digest(same) * 3; }
}
#else
#define BARRIER (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \
                 __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#define LDS static __attribute__((address_space(3), loader_uninitialized))
extern "C" __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64), used)) void run(u64 *out, u32 *mem, u32 n)
{
    LDS u32 T[64]; LDS u64 Q[64]; LDS u8 C[64 * 9 + 8];
    u32 l = __builtin_amdgcn_workitem_id_x(), *M = mem;
    (void)T, (void)Q, (void)C, (void)M;
    S s;
    init(s, l, @SEED@);
@CHIP@
    S same;
    init(same, n, 7);
    @SAME@
    out[l] = digest(s) + digest(same) * 3;
}
#endif
"""

RULES: dict[str, list[str]] = {
    "u": [
        *["({u} {ari} {u})"] * 4,
        "({u} {shift} ({u} & 31))",
        "({u} {div} ({u} | 1u))",
        "({u} {div} {odd}u)",
        "({u} {cmp} {u} ? {u} : {u})",
        "(u32)({i} {cmp} {i})",
        "(u32)__builtin_popcount({u})",
        "(u32)__builtin_clz({u} | 1u)",
        "(u32)__builtin_ctz({u} | 1024u)",
        "__builtin_bitreverse32({u})",
        "__builtin_bswap32({u})",
        "__builtin_rotateleft32({u}, {u} & 31)",
        "(u32)((u64){u} * {u} >> 32)",
        "(({u} & 0xffffffu) * ({u} & 0xffffffu) + {u})",
        "ubfe({u}, {u} & 31, {u} & 31)",
        "perm({u}, {u}, {u})",
        "align({u}, {u}, {u} & 31)",
        "sad({u}, {u}, {u})",
        "dot4({u}, {u}, {u})",
        "dot8({u}, {u}, {u})",
        "(u32){q}",
        "(u32)({q} >> 32)",
        "bits({f})",
        "bits({g})",
        "to_u({f})",
        "(u32)is({f}, {n4} * 77 + {n8})",
        "as<u32>({p})",
        "a[{u} % 6]",
        "(u32)s.b[{u} % 13]",
        "(u32)s.h[{u} % 5]",
        "get<u32>(s.b + {u} % 10)",
        "(u32)get<u16>((u8 *)s.h + {u} % 9)",
        "(u32)(u8)((u8){u} {ari} (u8){u})",
        "(u32)((u16){u} {div} (u16)((u16){u} | 1))",
        "__builtin_elementwise_{sat}((u32){u}, (u32){u})",
    ],
    "i": [
        *["({i} {ari} {i})"] * 3,
        "({i} >> ({u} & 31))",
        "({i} {div} (({i} & 0x3fff) | 1))",
        "({i} {cmp} {i} ? {i} : {i})",
        "sbfe({u}, {u} & 31, {u} & 31)",
        "(i32){u}",
        "to_i({d})",
        "(i32)((i64){i} * {i} >> 32)",
        "(i32)(i8){i}",
        "(i32)(i16)((i16){i} {ari} (i16){i})",
        "__builtin_elementwise_{sat}({i}, {i})",
        "__builtin_elementwise_max(__builtin_elementwise_min({i}, {i}), {i})",
    ],
    "q": [
        *["({q} {ari} {q})"] * 3,
        "({q} {shift} ({u} & 63))",
        "(u64)((i64){q} >> ({u} & 63))",
        "({q} {div} ({q} | 1u))",
        "({q} {cmp} {q} ? {q} : {q})",
        "((u64){u} << 32 | {u})",
        "((u64){u} * {u} + {q})",
        "(u64)((i64){i} * {i} + (i64){q})",
        "(u64)(i64){i}",
        "bits({d})",
        "(u64)to_q({d})",
        "(u64)__builtin_popcountll({q})",
        "(u64)__builtin_clzll({q} | 1)",
        "get<u64>(s.b + {u} % 6)",
        "__builtin_elementwise_{sat}((u64){q}, (u64){q})",
    ],
    "f": [
        *["({f} {sum} {f})"] * 3,
        "({f} / {f})",
        "__builtin_fmaf({f}, {f}, {f})",
        "__builtin_sqrtf(__builtin_fabsf({f}))",
        "__builtin_{round}f({f})",
        "({f} {cmp} {f} ? {f} : {f})",
        "({f} < 0.f ? 0.f : {f} > 1.f ? 1.f : {f})",
        "(f32){i}",
        "(f32){u}",
        "(f32){d}",
        "(f32){g}",
        "-({f})",
        "(f32)(i64){q}",
        "(f32)(u8)({u} >> 8)",
        "__builtin_ldexpf(fin({f}), {i} % 30)",
    ],
    "d": [
        *["({d} {sum} {d})"] * 3,
        "({d} / {d})",
        "__builtin_fma({d}, {d}, {d})",
        "__builtin_sqrt(__builtin_fabs({d}))",
        "__builtin_{round}({d})",
        "({d} {cmp} {d} ? {d} : {d})",
        "(f64)(i64){q}",
        "(f64){q}",
        "(f64){i}",
        "(f64){f}",
        "-({d})",
    ],
    "g": ["(f16)({g} {sum} {g})", "(f16)({g} / {g})", "(f16){f}", "(f16)(i16){i}", "({g} < {g} ? {g} : {g})"],
    "p": [
        "({p} {ari} {p})",
        "({p} {shift} ({p} & (u16)15))",
        "as<u16x2>(as<i16x2>({p}) >> (as<i16x2>({p}) & (i16)15))",
        "__builtin_elementwise_{sat}({p}, {p})",
        "as<u16x2>(__builtin_elementwise_{sat}(as<i16x2>({p}), as<i16x2>({p})))",
        "({p} * {p} + {p})",
    ],
    "assign": [
        "s.u[{u} & 3] = {u};",
        *["s.u[{n4}] {ari}= {u};", "s.i[{n4}] = {i};", "s.q[{n3}] = {q};"] * 2,
        "s.h[{u} % 5] = (u16){u};",
        "s.b[{u} % 13] = (u8){u};",
        "put<u32>(s.b + {u} % 10, {u});",
        "put<u64>(s.b + {u} % 6, {q});",
        "s.f[{n3}] = fin({f});",
        "s.d[{n2}] = fin({d});",
        "s.g[{n3}] = fin({g});",
        "s.p = {p};",
        "s.w = s.w {sum} (f32x2){{f}, {f}}; s.w.x = fin(s.w.x); s.w.y = fin(s.w.y);",
        "s.y = s.y {sum} s.y.yx; s.y.x = fin(s.y.x); s.y.y = fin(s.y.y);",
        "s.v = s.v.{xyzw}{xyzw}{xyzw}{xyzw} {ari} {u};",
        "s.v[{u} & 3] = {u};",
        "s.t.{abcde} = {u};",
        "a[{u} % 6] = {u};",
    ],
    "call": [
        "s.u[{n4}] += far0({u}, {u}, s);",
        "s.u[{n4}] ^= far1({u}, {q}, s);",
        "s = far2(s, {u}, {d});",
    ],
    "flow": [
        "if ({c}) {{block}}",
        "if ({c}) {{block}} else {{block}}",
        "for (u32 k = 0, e = {u} & 7; k < e; k++) {{block} if ({c}) break; {assign}}",
        "for (u32 k = 0; k < {n4} + 1; k++) {{assign} if ({c}) continue; {block}}",
        "switch ({u} % 5) { case 0: {block} break; case 1: {block} case 3: {assign} break; default: {assign} }",
    ],
    "c": ["{u} & 4", "{i} < {i}", "{f} > {f}", "{q} > {q} && {u} & 1", "s.lane {cmp} {u} % 64", "{g} < {g} || {u} & 8"],
}
LEAVES = {
    "u": [
        "s.u[{n4}]",
        "s.u[{n4}]",
        "s.lane",
        "{word}u",
        "s.v.{xyzw}",
        "(u32)s.h[{n3}]",
        "(u32)s.t.a",
        "(u32)s.t.c",
        "a[{n6}]",
    ],
    "i": ["s.i[{n4}]", "({small})", "(i32)(i8)s.b[{n4}]", "(i32)s.t.b", "(i32)s.t.e"],
    "q": ["s.q[{n3}]", "{long}ull", "(u64)s.t.d", "(u64)(i64)s.t.e"],
    "f": ["s.f[{n3}]", "{real}f", "s.w.{xy}", "(f32)s.g[0]"],
    "d": ["s.d[{n2}]", "{real}", "(f64)s.f[{n3}]"],
    "g": ["s.g[{n3}]", "(f16){real}f", "s.y.{xy}"],
    "p": ["s.p", "s.p.yx", "as<u16x2>(s.u[{n4}])"],
}
CHOICES = {
    "ari": "+ - * & | ^",
    "shift": "<< >>",
    "div": "/ %",
    "odd": "3 5 7 10 60 255 641 1000003",
    "cmp": "< <= == != >=",
    "sat": "add_sat sub_sat min max",
    "sum": "+ - *",
    "round": "floor ceil trunc rint fabs",
    "xyzw": "x y z w",
    "xy": "x y",
    "abcde": "a b c d e",
}
EXCHANGES = [  # what a lane does, and what the host does for all lanes; $x, $y, $k, $o: members, steps
    ("T[l] = s.u[$x]; BARRIER; s.u[$y] ^= T[$j]; BARRIER;", "EACH T[l] = s.u[$x]; EACH s.u[$y] ^= T[$j];"),
    ("Q[l] = s.q[$a]; BARRIER; s.q[$b] += Q[$j]; BARRIER;", "EACH Q[l] = s.q[$a]; EACH s.q[$b] += Q[$j];"),
    (
        "put<u64>((u8 *)C + l * 9 + 1, s.q[$a]); BARRIER; s.q[$b] += get<u64>((u8 *)C + $j * 9 + 1); BARRIER;",
        "EACH put<u64>(C + l * 9 + 1, s.q[$a]); EACH s.q[$b] += get<u64>(C + $j * 9 + 1);",
    ),
    (
        "s.u[$y] += __builtin_amdgcn_ds_bpermute((int)((l ^ $k) << 2), (int)s.u[$x]);",
        "EACH T[l] = s.u[$x]; EACH s.u[$y] += T[l ^ $k];",
    ),
    (
        "s.u[$y] += __builtin_amdgcn_ds_permute((int)((($j & 31) | (l & 32)) << 2), (int)s.u[$x]);",
        "EACH T[($j & 31) | (l & 32)] = s.u[$x]; EACH s.u[$y] += T[l];",
    ),
    (
        "s.u[$y] ^= __builtin_amdgcn_ds_swizzle((int)s.u[$x], $k << 10 | 31);",
        "EACH T[l] = s.u[$x]; EACH s.u[$y] ^= T[l ^ $k];",
    ),
    (
        "s.u[$y] += __builtin_amdgcn_update_dpp(77, (int)s.u[$x], 0x110 + $m, 5, 15, false);",
        "EACH T[l] = s.u[$x]; EACH s.u[$y] += (l >> 4 & 1) || (l & 15) < $m ? 77 : T[l - $m];",
    ),
    (
        "s.u[$y] += __builtin_amdgcn_update_dpp(9, (int)s.u[$x], 0x120 + $m, 15, $m, true);",
        "EACH T[l] = s.u[$x]; EACH s.u[$y] += $m >> (l >> 2 & 3) & 1 ? T[(l & 48) + ((l - $m) & 15)] : 9;",
    ),
    (
        "s.u[$y] -= __builtin_amdgcn_update_dpp(0, (int)s.u[$x], 0x141, 15, 15, true);",
        "EACH T[l] = s.u[$x]; EACH s.u[$y] -= T[l ^ 7];",
    ),
    (
        "T[l] = $o; BARRIER; __atomic_fetch_add(&T[l & 7], s.u[$x], __ATOMIC_RELAXED); BARRIER; s.u[$y] ^= T[l & 7]; "
        "BARRIER;",
        "EACH T[l] = $o; EACH T[l & 7] += s.u[$x]; EACH s.u[$y] ^= T[l & 7];",
    ),
    (
        "T[l] = ~0u; BARRIER; __atomic_fetch_min(&T[l & 3], s.u[$x], __ATOMIC_RELAXED); BARRIER; s.u[$y] ^= T[l & 3]; "
        "BARRIER;",
        "EACH T[l] = ~0u; EACH T[l & 3] = T[l & 3] < s.u[$x] ? T[l & 3] : s.u[$x]; EACH s.u[$y] ^= T[l & 3];",
    ),
    (
        "M[l] = s.u[$x]; s.u[$y] = __atomic_exchange_n(&M[l], s.u[$y] * 3, __ATOMIC_RELAXED) + M[l];",
        "EACH s.u[$y] = s.u[$x] + s.u[$y] * 3;",
    ),
]


class _Grammar:
    """Texts by the rules. calls: phases may call functions that are not put in line."""

    def __init__(self, rng: random.Random, calls: bool) -> None:
        self.rng, self.calls = rng, calls
        self.atoms: dict[str, Callable[[], str]] = {
            "word": lambda: str(rng.choice([rng.randrange(64), rng.getrandbits(32), 0xFFFF, 1 << rng.randrange(32)])),
            "long": lambda: str(rng.getrandbits(64)),
            "small": lambda: str(rng.randrange(-100, 100)),
            "real": lambda: f"{rng.uniform(0, 100):.4f}",
            **{f"n{k}": (lambda k=k: str(rng.randrange(k))) for k in (2, 3, 4, 6, 8)},
            **{name: (lambda words=words: rng.choice(words.split())) for name, words in CHOICES.items()},
        }

    def text(self, name: str, depth: int, nest: int = 0) -> str:
        """A rule of that name with all its holes filled; depth: of expressions, nest: of statements."""
        rng = self.rng
        if name in self.atoms:
            return self.atoms[name]()
        if name == "block":
            return " ".join(self.statement(nest) for _ in range(rng.randint(1, 2)))
        leaf = name in LEAVES and (depth <= 0 or rng.random() < 0.15)
        rule = rng.choice((LEAVES if leaf else RULES)[name])
        return re.sub(r"\{(\w+)\}", lambda m: self.text(m[1], depth - (name in LEAVES), nest), rule)

    def statement(self, nest: int) -> str:
        """One statement with at most nest levels of control flow."""
        if nest > 0 and self.rng.random() < 0.5:
            return self.text("flow", 2, nest - 1)
        return self.text("call" if self.calls and self.rng.random() < 0.1 else "assign", 3)

    def phase(self, head: str) -> str:
        """A function that works on a state."""
        body = "\n".join(self.statement(2) for _ in range(self.rng.randint(3, 5)))
        first = "u32 a[6] = {s.lane, 1, 2, s.u[0], s.u[1], s.u[2]};"
        return f"{head}(S &s)\n{{\n{first}\n{body}\nfor (u32 j = 0; j < 6; j++) s.u[j & 3] += a[j] * (j + 3);\n}}\n"


def _exchange(rng: random.Random) -> tuple[str, str]:
    """(chip, host)"""
    chip, host = rng.choice(EXCHANGES)
    step = {
        "$j": f"((l * {rng.choice([1, 3, 5, 7])} + {rng.randrange(64)}) & 63)",
        "$k": str(rng.randrange(1, 32)),
        "$m": str(rng.randrange(1, 16)),
        "$o": f"{rng.getrandbits(32)}u",
        **{x: str(rng.randrange(4)) for x in ("$x", "$y")},
        **{x: str(rng.randrange(3)) for x in ("$a", "$b")},
    }
    for name, text in step.items():
        chip, host = chip.replace(name, text), host.replace(name, text)
    return chip, host.replace("s.", "all[l].")


def program(seed: int) -> str:
    """The C++ text of a seed: kernel or host function ``run(out, mem, n)``. out: [64] 64-bit words, mem: [64] dwords
    of the chip's memory, n: any number, equal in all lanes."""
    rng = random.Random(seed)
    lanes, same = _Grammar(rng, True), _Grammar(rng, False)
    parts, chip, host = [PRELUDE], [], []
    for k in range(rng.randint(2, 3)):
        inline = rng.choice(["inline", "__attribute__((noinline))"])
        parts.append(lanes.phase(f"static {inline} void phase{k}"))
        chip.append(f"    phase{k}(s);")
        host.append(f"    EACH phase{k}(all[l]);")
        for _ in range(rng.randint(1, 3)):
            x, y = _exchange(rng)
            chip.append("    " + x)
            host.append("    " + y)
    parts.append(same.phase("static inline __attribute__((always_inline)) void scalar"))
    frame = FRAME.replace("@SEED@", f"{rng.getrandbits(32)}ull").replace("@SAME@", "scalar(same);")
    parts.append(frame.replace("@CHIP@", "\n".join(chip)).replace("@HOST@", "\n".join(host)))
    return "\n".join(parts)
