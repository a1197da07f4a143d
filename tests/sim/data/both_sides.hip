// both_sides.hip - functions compiled twice, for the chip and for the host (-DHOST): the results must have
// equal bits. Each takes two 64-bit words and gives four. Integer arithmetic of every width, conversions,
// IEEE arithmetic (no contraction), control flow, calls, stack, tables.
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned u32;
typedef int i32;
typedef unsigned short u16;
typedef short i16;
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned __int128 u128;
typedef __int128 i128;
typedef _Float16 f16;
#ifdef HOST
struct bf16 { /* runtime libraries of hosts may lack its conversions */
    u16 v;
    bf16(float x)
    {
        u32 u = __builtin_bit_cast(u32, x);
        v = x != x ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
    }
    operator float() const
    {
        return __builtin_bit_cast(float, (u32)v << 16);
    }
};
#else
typedef __bf16 bf16;
#endif
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef u16 u16x4 __attribute__((ext_vector_type(4)));
typedef i16 i16x4 __attribute__((ext_vector_type(4)));
typedef u8 u8x8 __attribute__((ext_vector_type(8)));
typedef f16 f16x4 __attribute__((ext_vector_type(4)));
typedef float f32x2 __attribute__((ext_vector_type(2)));
#ifdef HOST
#define MEM
#define DEV  static
#define DATA static
#define FN(name)                                                                                             \
    static void name##_(u64 a, u64 b, u64 *o, i32 i);                                                        \
    extern "C" void name(const u64 *a, const u64 *b, u64 *o, i32 n)                                          \
    {                                                                                                        \
        for (i32 i = 0; i < n; i++)                                                                          \
            name##_(a[i], b[i], o + 4 * i, i);                                                               \
    }                                                                                                        \
    static __attribute__((noinline)) void name##_(u64 a, u64 b, u64 *o, i32 i)
#else
#define MEM  __attribute__((device))
#define DEV  static MEM
#define DATA static __attribute__((device))
#define FN(name)                                                                                             \
    DEV void name##_(u64 a, u64 b, u64 *o, i32 i);                                                           \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 64))) void name(                        \
        const u64 *a, const u64 *b, u64 *o, i32 n)                                                           \
    {                                                                                                        \
        i32 i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();                   \
        if (i < n)                                                                                           \
            name##_(a[i], b[i], o + 4 * i, i);                                                               \
    }                                                                                                        \
    DEV void name##_(u64 a, u64 b, u64 *o, i32 i)
#endif
#define NOINLINE __attribute__((noinline))

template <class T, class F>
DEV inline T
as(F f)
{
    return __builtin_bit_cast(T, f);
}
DEV inline f16
h(u64 a, int k)
{
    return as<f16>((u16)(a >> 16 * k));
}
DEV inline float
f(u64 a, int k)
{
    return as<float>((u32)(a >> 32 * k));
}
DEV inline double
d(u64 a)
{
    return as<double>(a);
}
/* NaN payloads differ between processors: one NaN for all */
DEV inline u64
r(double x)
{
    return x != x ? 0x7ff8000000000000 : as<u64>(x);
}
DEV inline u32
r(float x)
{
    return x != x ? 0x7fc00000 : as<u32>(x);
}
DEV inline u16
r(f16 x)
{
    return x != x ? 0x7e00 : as<u16>(x);
}
DEV inline u16
r(bf16 x)
{
    return (float)x != (float)x ? 0x7fc0 : as<u16>(x);
}
DEV inline float
fin(u64 a, float lim)
{
    float x = f(a, 0);
    return x == x && x < lim && x > -lim ? x : 1.5f;
}
DEV inline double
find(u64 a, double lim)
{
    double x = d(a);
    return x == x && x < lim && x > -lim ? x : 1.5;
}

// ---- integers ----
FN(divide32)
{
    u32 x = a, y = b ? (u32)b | 1 : 1;
    o[0] = x / y;
    o[1] = x % y;
    i32 s = x, t = (i32)y == -1 ? 7 : y;
    o[2] = s / t;
    o[3] = s % t;
}
FN(divide64)
{
    u64 y = b | 1;
    o[0] = a / y;
    o[1] = a % y;
    i64 s = a, t = (i64)y == -1 ? 7 : y;
    o[2] = s / t;
    o[3] = s % t;
}
FN(divide64_small)
{
    u64 y = (b & 0xffff) | 1;
    o[0] = a / y;
    o[1] = a % y;
    o[2] = (i64)a / (i64)y;
    o[3] = (a >> 40) / y;
}
FN(divide8_16)
{
    u8 x = a, y = b | 1;
    u16 s = a >> 8, t = (b >> 8) | 1;
    i8 p = a, q = (i8)((b >> 3) | 1) == -1 ? 3 : (b >> 3) | 1;
    o[0] = x / y;
    o[1] = x % y;
    o[2] = (u64)(s / t) * 65536 + s % t;
    o[3] = (p / q) * 256 + p % q;
}
FN(divide_constant)
{
    o[0] = (u32)a / 7 + (u64)((u32)a % 1000003) * 3;
    o[1] = (i32)a / -13;
    o[2] = a / 1000000007ull;
    o[3] = (i64)a % 641;
}
FN(multiply)
{
    o[0] = a * b;
    o[1] = (u64)(((u128)a * b) >> 64);
    o[2] = (u64)(((i128)(i64)a * (i64)b) >> 64);
    o[3] = (u64)(u32)a * (u32)b + (u64)((i64)(i32)a * (i32)b);
}
FN(wide)
{
    u128 x = ((u128)a << 64) | b, y = x * 0x123456789abcdefull + a;
    u32 n = b & 127;
    o[0] = (u64)(y >> n);
    o[1] = (u64)((x << n) >> 64);
    o[2] = (u64)((i128)y >> (n ^ 64));
    o[3] = y > x ? (u64)(y - x) : (u64)((x - y) >> 64);
}
FN(shifts)
{
    u32 n = b & 63;
    o[0] = a << n;
    o[1] = a >> n;
    o[2] = (i64)a >> n;
    o[3] = ((u32)a << (n & 31)) + ((u64)((i32)a >> (n & 31)) << 32);
}
FN(rotates)
{
    o[0] = __builtin_rotateleft64(a, b & 63);
    o[1] = __builtin_rotateright32(a, b & 31);
    o[2] = __builtin_rotateleft16(a, b & 15) * 65536ull + __builtin_rotateleft8(a, b & 7);
    o[3] = (u64)((((u128)a << 64) | b) >> (i & 63));
}
FN(bits)
{
    o[0] = __builtin_bitreverse64(a) ^ __builtin_bitreverse32(b);
    o[1] = __builtin_popcountll(a) + 100 * __builtin_popcount(b);
    o[2] = (a ? __builtin_clzll(a) : 64) + 100 * ((u32)b ? __builtin_ctz(b) : 32);
    o[3] = __builtin_bswap64(a) ^ __builtin_bswap32(b) ^ ((u64)__builtin_bitreverse16(a) << 8) ^
           ((u64)__builtin_bitreverse8(b) << 40);
}
FN(overflow)
{
    u64 x;
    i64 y;
    u32 z;
    i32 w;
    u64 m = __builtin_add_overflow(a, b, &x);
    m |= (u64)__builtin_sub_overflow((i64)a, (i64)b, &y) << 1;
    m |= (u64)__builtin_mul_overflow((u32)a, (u32)b, &z) << 2;
    m |= (u64)__builtin_mul_overflow((i32)a, (i32)b, &w) << 3;
    i64 v;
    m |= (u64)__builtin_mul_overflow((i64)a, (i64)b, &v) << 4;
    i16 q;
    m |= (u64)__builtin_add_overflow((i16)a, (i16)b, &q) << 5;
    o[0] = m;
    o[1] = x ^ y;
    o[2] = z + ((u64)(u32)w << 32);
    o[3] = v ^ q;
}
FN(saturate)
{
    u32x4 x = {(u32)a, (u32)(a >> 32), (u32)b, (u32)(b >> 32)}, y = x.wzyx;
    u32x4 s = __builtin_elementwise_add_sat(x, y), t = __builtin_elementwise_sub_sat(x, y);
    i16x4 p = as<i16x4>(a), q = as<i16x4>(b);
    o[0] = s.x + ((u64)t.y << 32);
    o[1] = s.z ^ ((u64)t.w << 32);
    o[2] = as<u64>(__builtin_elementwise_add_sat(p, q));
    o[3] = as<u64>(__builtin_elementwise_sub_sat(p, q));
}
FN(vectors16)
{
    u16x4 x = as<u16x4>(a), y = as<u16x4>(b);
    i16x4 s = as<i16x4>(a), t = as<i16x4>(b);
    o[0] = as<u64>(x * y + (x >> (y & 15)));
    o[1] = as<u64>(__builtin_elementwise_max(s, t) - __builtin_elementwise_min(s, t));
    o[2] = as<u64>((x << (y & 15)) ^ as<u16x4>(s >> (t & 15)).yxwz);
    o[3] = as<u64>(x / (y | (u16x4)1));
}
FN(bytes)
{
    u8x8 x = as<u8x8>(a), y = as<u8x8>(b);
    o[0] = as<u64>(x + y);
    o[1] = as<u64>(x * y);
    o[2] = as<u64>(__builtin_shufflevector(x, y, 3, 9, 1, 15, 0, 8, 7, 2));
    o[3] = as<u64>(__builtin_elementwise_max(x, y));
}
FN(select)
{
    o[0] = (i64)a < (i64)b ? a ^ 5 : b + 3;
    o[1] = (u8)a > (u8)b ? (u16)a : (u32)b;
    o[2] = ((a & 1) && (b & 2)) || ((a & 4) ^ (b & 4)) ? a : b;
    o[3] = (i16)a == (i16)b ? 1 : (i16)a > (i16)b ? 2 : 3;
}
struct Fields {
    u64 p : 3;
    i64 q : 17;
    u64 s : 29;
    i64 t : 15;
};
FN(bitfields)
{
    Fields x = as<Fields>(a);
    x.q += b;
    x.s *= 3;
    x.t -= x.p;
    o[0] = as<u64>(x);
    o[1] = x.q;
    o[2] = x.s;
    o[3] = x.t;
}

// ---- conversions ----
FN(to_float)
{
    o[0] = r((float)a) + ((u64)r((float)(i64)b) << 32);
    o[1] = r((double)a);
    o[2] = r((double)(i64)b) ^ r((double)(u32)a);
    o[3] = r((float)(u32)a) + ((u64)r((float)(i32)b) << 32);
}
FN(from_float)
{
    float x = fin(a, 9e18f), y = fin(b, 2e9f);
    float z = y < 0 ? -y : y;
    o[0] = (i64)x;
    o[1] = x < 0 ? 0 : (u64)(x * 1.5f);
    o[2] = (u64)(u32)(i32)y + ((u64)(u32)z << 32);
    o[3] = (u16)(i16)fin(a >> 7, 30000.f) + 65536 * (u64)(u8)(i8)fin(b >> 9, 127.f);
}
FN(from_double)
{
    double x = find(a, 9e18), y = find(b, 2e9);
    o[0] = (i64)x;
    o[1] = x < 0 ? 0 : (u64)(x * 1.5);
    o[2] = (u32)(i32)y;
    o[3] = r((float)x) + ((u64)r((f16)x) << 32);
}
FN(half)
{
    o[0] = r((f16)f(a, 0)) + ((u64)r((f16)f(a, 1)) << 16) + ((u64)r((f16)d(b)) << 32);
    o[1] = r((float)h(a, 0)) + ((u64)r((float)h(a, 1)) << 32);
    o[2] = r((double)h(a, 2));
    o[3] = r((f16)(i32)(i16)a) + ((u64)r((f16)(u32)(b & 0xffff)) << 16) +
           ((u64)(u32)(i32)(h(b, 0) == h(b, 0) && h(b, 0) < (f16)60000 && h(b, 0) > (f16)-60000 ? h(b, 0)
                                                                                                : (f16)1)
            << 32);
}
FN(brain)
{
    o[0] = r((bf16)f(a, 0)) + ((u64)r((bf16)f(a, 1)) << 16) + ((u64)r((bf16)(float)h(b, 1)) << 32);
    o[1] = r((float)as<bf16>((u16)a));
    bf16 x = as<bf16>((u16)a), y = as<bf16>((u16)b);
    o[2] = r((bf16)(x + y)) + ((u64)r((bf16)(x * y)) << 16);
    o[3] = (x < y) + 2 * (x == y);
}

// ---- IEEE arithmetic ----
FN(float_ops)
{
    float x = f(a, 0), y = f(b, 0), z = f(a, 1), w = f(b, 1);
    o[0] = r(x + y) + ((u64)r(x * y) << 32);
    o[1] = r(x - z) + ((u64)r(__builtin_fmaf(x, y, z)) << 32);
    o[2] = r(x / y) + ((u64)r(__builtin_sqrtf(w)) << 32);
    o[3] = r(x * y + z) + ((u64)r(w / z) << 32);
}
FN(float_compare)
{
    float x = f(a, 0), y = f(b, 0);
    o[0] = (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 | (x != y) << 5 |
           __builtin_isunordered(x, y) << 6;
    o[1] = __builtin_isnan(x) | __builtin_isinf(x) << 1 | __builtin_isfinite(y) << 2 |
           __builtin_isnormal(x) << 3 | (__builtin_signbit(x) ? 16 : 0);
    double p = d(a), q = d(b);
    o[2] = (p < q) | (p <= q) << 1 | (p > q) << 2 | (p >= q) << 3 | (p == q) << 4 |
           __builtin_isunordered(p, q) << 5 | __builtin_isnormal(p) << 6 | __builtin_isinf(q) << 7;
    f16 s = h(a, 0), t = h(b, 0);
    o[3] = (s < t) | (s <= t) << 1 | (s > t) << 2 | (s >= t) << 3 | (s == t) << 4;
}
FN(float_round)
{
    float x = f(a, 0);
    double y = d(b);
    o[0] = r(__builtin_floorf(x)) + ((u64)r(__builtin_ceilf(x)) << 32);
    o[1] = r(__builtin_truncf(x)) + ((u64)r(__builtin_rintf(x)) << 32);
    o[2] = r(__builtin_floor(y)) ^ r(__builtin_rint(y));
    o[3] = r(__builtin_copysignf(x, f(b, 1))) + ((u64)r(__builtin_fabsf(-x)) << 32);
}
FN(double_ops)
{
    double x = d(a), y = d(b);
    o[0] = r(x + y);
    o[1] = r(x * y - x);
    o[2] = r(x / y);
    o[3] = r(__builtin_sqrt(x));
}
FN(double_fma)
{
    double x = d(a), y = d(b);
    o[0] = r(__builtin_fma(x, y, x));
    o[1] = r(__builtin_fma(-x, y, 1.0));
    o[2] = r(__builtin_ceil(x) + __builtin_trunc(y));
    o[3] = r(1.0 / y);
}
FN(half_ops)
{
    f16 x = h(a, 0), y = h(b, 0), z = h(a, 1);
    o[0] = r((f16)(x + y)) + ((u64)r((f16)(x * y)) << 16) + ((u64)r((f16)(x - z)) << 32);
    o[1] = r((f16)(x / y));
    o[2] = r((f16)-x) + ((u64)r((f16)(x * y)) << 16);
    o[3] = r((f16)__builtin_fmaf16(x, y, z));
}
FN(half_vectors)
{
    f16x4 x = as<f16x4>(a), y = as<f16x4>(b), s = x + y, t = x * y;
    o[0] = r(s.x) + ((u64)r(s.y) << 16) + ((u64)r(s.z) << 32) + ((u64)r(s.w) << 48);
    o[1] = r(t.x) + ((u64)r(t.y) << 16) + ((u64)r(t.z) << 32) + ((u64)r(t.w) << 48);
    f16x4 u = (x - y.wzyx);
    o[2] = r(u.x) + ((u64)r(u.y) << 16) + ((u64)r(u.z) << 32) + ((u64)r(u.w) << 48);
    o[3] = 0;
}
FN(float_pairs)
{
    f32x2 x = as<f32x2>(a), y = as<f32x2>(b), s = x + y, t = x * y.yx;
    o[0] = r(s.x) + ((u64)r(s.y) << 32);
    o[1] = r(t.x) + ((u64)r(t.y) << 32);
    f32x2 u = {__builtin_fmaf(x.x, y.x, -x.y), __builtin_fmaf(x.y, y.y, -x.x)};
    o[2] = r(u.x) + ((u64)r(u.y) << 32);
    o[3] = 0;
}

// ---- control flow, calls, stack, data ----
FN(loops)
{
    u64 x = a % 97, y = 0;
    for (u32 k = 0; k < (b & 31); k++) {
        if ((x ^ k) & 1)
            continue;
        y += x * k;
        if (y > 900)
            break;
        do
            x = x * 5 + 1;
        while (x & 8);
    }
    o[0] = x;
    o[1] = y;
    u32 n = a & 15;
    while (n) {
        y = y * 3 + n;
        n &= n - 1;
    }
    o[2] = y;
    o[3] = n;
}
FN(collatz)
{
    u64 x = (a & 0xffff) + 1;
    u32 n = 0;
    while (x != 1 && n < 500) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        n++;
    }
    o[0] = n;
    o[1] = x;
    o[2] = o[3] = 0;
}
FN(switches)
{
    u64 x = b;
    switch (a % 23) {
    case 0:
        x += 7;
        break;
    case 1:
        x *= 3;
        [[fallthrough]];
    case 2:
        x ^= a;
        break;
    case 5:
        x = ~x;
        break;
    case 7:
        x >>= 3;
        break;
    case 8:
        x <<= 2;
        break;
    case 9:
        x = x * x;
        break;
    case 10:
        x += a;
        break;
    case 11:
        x -= a;
        break;
    case 12:
        x |= 255;
        break;
    case 13:
        x &= 255;
        break;
    case 20:
        x = 1;
        break;
    case 22:
        x /= 3;
        break;
    default:
        x -= 1;
    }
    o[0] = x;
    o[1] = a % 23;
    o[2] = o[3] = 0;
}
DEV NOINLINE u64
fibonacci(u32 n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
DEV NOINLINE u32
ackermann(u32 m, u32 n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
FN(recursion)
{
    o[0] = fibonacci(a % 9);
    o[1] = ackermann(b % 3, a % 4);
    o[2] = o[3] = 0;
}
DEV NOINLINE u64
add1(u64 x, u64 y)
{
    return x + y;
}
DEV NOINLINE u64
mul1(u64 x, u64 y)
{
    return x * y;
}
DEV NOINLINE u64
xor1(u64 x, u64 y)
{
    u64 t[6];
    for (u32 k = 0; k < 6; k++)
        t[k] = x >> k;
    t[y % 6] ^= y;
    u64 s = 0;
    for (u32 k = 0; k < 6; k++)
        s = s * 31 + t[k];
    return s;
}
typedef u64 (*Op)(u64, u64);
FN(pointers)
{
    Op ops[] = {add1, mul1, xor1};
    Op p = ops[a % 3];
    o[0] = p(a, b);
    o[1] = ops[b % 3](o[0], a);
    o[2] = o[3] = 0;
}
struct Shape {
    u64 w;
    MEM NOINLINE Shape(u64 w_) : w(w_)
    {
    }
    MEM virtual u64 area(u64 x) const
    {
        return w * x;
    }
};
struct Round : Shape {
    MEM NOINLINE Round(u64 w_) : Shape(w_)
    {
    }
    MEM u64 area(u64 x) const override
    {
        return 3 * w * w + x;
    }
};
DEV NOINLINE u64
measure(const Shape *s, u64 x)
{
    return s->area(x);
}
FN(virtuals)
{
    Shape s(a);
    Round t(b);
    o[0] = measure(a & 1 ? &s : &t, 11);
    o[1] = measure(b & 1 ? &s : &t, a);
    o[2] = o[3] = 0;
}
FN(stack)
{
    u32 t[40];
    for (u32 k = 0; k < 40; k++)
        t[k] = (u32)a * k + (u32)b;
    for (u32 k = 0; k < 40; k++) {
        u32 j = (t[k] >> 3) % 40;
        u32 x = t[k];
        t[k] = t[j];
        t[j] = x + k;
    }
    u64 s = 0;
    for (u32 k = 0; k < 40; k++)
        s = s * 33 + t[k];
    o[0] = s;
    o[1] = t[a % 40];
    u8 *p = (u8 *)t;
    p[b % 160] = 1;
    o[2] = t[(b % 160) / 4];
    u16 *q = (u16 *)t;
    o[3] = q[a % 80] + ((u64)(i64)(i16)q[b % 80] << 20);
}
DATA const u16 squares[] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};
DATA u64 const wide_table[] = {0x0123456789abcdef, 0xfedcba9876543210, 0x5555aaaa5555aaaa};
DATA const char words[][8] = {"alpha", "beta", "gamma", "delta"};
FN(tables)
{
    o[0] = squares[a & 15] + squares[b & 15];
    o[1] = wide_table[a % 3];
    const char *w = words[b & 3];
    u32 n = 0;
    while (w[n])
        n++;
    o[2] = n;
    o[3] = w[a % 8];
}
struct Big {
    u32 v[12];
    u64 x;
    u8 c;
};
DEV NOINLINE Big
turn(Big g, u32 k)
{
    Big q = g;
    for (u32 j = 0; j < 12; j++)
        q.v[j] = g.v[(j + k) % 12] + j;
    q.x ^= k;
    q.c += 1;
    return q;
}
FN(structs)
{
    Big g;
    for (u32 k = 0; k < 12; k++)
        g.v[k] = (u32)(a >> k);
    g.x = b;
    g.c = a;
    Big q = turn(turn(g, a % 12), b % 12);
    u64 s = q.x + q.c;
    for (u32 k = 0; k < 12; k++)
        s = s * 7 + q.v[k];
    o[0] = s;
    o[1] = q.x;
    o[2] = q.c;
    o[3] = g.v[11];
}
DEV NOINLINE u64
sum_of(u32 n, ...)
{
    __builtin_va_list l;
    __builtin_va_start(l, n);
    u64 s = 0;
    for (u32 k = 0; k < n; k++)
        s = k & 1 ? s * 3 + __builtin_va_arg(l, u64) : s + __builtin_va_arg(l, u32);
    __builtin_va_end(l);
    return s;
}
FN(variadic)
{
    o[0] = sum_of(4, (u32)a, b, (u32)b, a);
    o[1] = sum_of(1, (u32)a);
    o[2] = o[3] = 0;
}
FN(memory)
{
    u8 x[67], y[67];
    for (u32 k = 0; k < 67; k++)
        x[k] = (u8)(a >> (k & 31)) + k;
    __builtin_memcpy(y, x, 67);
    __builtin_memmove(x + 3, x, 40);
    __builtin_memset(y + 9, (int)b, 21);
    u64 s = 0;
    for (u32 k = 0; k < 67; k++)
        s = s * 11 + x[k] + 3 * y[k];
    o[0] = s;
    u64 t;
    __builtin_memcpy(&t, x + (a % 50), 8);
    o[1] = t;
    u32 q;
    __builtin_memcpy(&q, y + (b % 60), 4);
    o[2] = q;
    o[3] = x[3] == y[3];
}
FN(sort)
{
    u32 v[8];
    for (u32 k = 0; k < 8; k++)
        v[k] = (u32)((k < 4 ? a : b) >> (8 * (k & 3))) & 0xffff;
    for (u32 p = 0; p < 8; p++)
        for (u32 k = 0; k + 1 < 8; k++)
            if (v[k] > v[k + 1]) {
                u32 t = v[k];
                v[k] = v[k + 1];
                v[k + 1] = t;
            }
    u64 s = 0;
    for (u32 k = 0; k < 8; k++)
        s = s * 13 + v[k];
    o[0] = s;
    o[1] = v[0];
    o[2] = v[7];
    o[3] = v[a & 7];
}
FN(crc)
{
    u32 c = ~0u;
    for (u32 k = 0; k < 8; k++) {
        c ^= (u8)(a >> 8 * k);
        for (u32 j = 0; j < 8; j++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
    }
    o[0] = c;
    u64 x = a;
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccd;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53;
    x ^= x >> 33;
    o[1] = x;
    o[2] = __builtin_clzll(x | 1);
    o[3] = x % 1000;
}
