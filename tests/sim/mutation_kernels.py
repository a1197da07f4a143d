"""Kernels of ours whose waits, barriers and wait states are taken away in turn: name -> Program."""

from __future__ import annotations

import mutate
import numpy as np

import tilelang as tl

F16, F32 = np.float16, np.float32


def rng0() -> np.random.Generator:
    return np.random.default_rng(11)


def program(name, kernel, arrays, grid, out, scalars=(), arch="gfx942"):
    """Compiles for these arrays; `out`: indices of results."""
    compiled = tl.compile(kernel, target=arch, like=[*arrays, *scalars])
    return mutate.Program(
        name,
        arch,
        bytes(compiled.asm["hsaco"]),
        grid,
        (64 * compiled.resources["waves"], 1, 1),
        lambda: [a.copy() for a in arrays] + list(scalars),
        out,
    )


def ints(*shape, dtype=F16):
    return rng0().integers(-3, 4, shape).astype(dtype)


def matmul(M, N, K, bs, dtype, warps=None, stages=None):
    kw = {k: v for k, v in (("num_warps", warps), ("num_stages", stages)) if v}

    @tl.kernel(**kw)
    def matmul_kernel(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        i, j = tl.program_id(0), tl.program_id(1)
        a = tl.alloc_shared([bs, bs])
        b = tl.alloc_shared([bs, bs])
        acc = tl.zeros([bs, bs], dtype=tl.float32)
        for k in range(0, K, bs):
            a[:, :] = A[i * bs : (i + 1) * bs, k : k + bs]
            b[:, :] = B[k : k + bs, j * bs : (j + 1) * bs]
            tl.sync_threads()
            acc += tl.dot(a, b)
        C[i * bs : (i + 1) * bs, j * bs : (j + 1) * bs] = acc

    return matmul_kernel, [ints(M, K, dtype=dtype), ints(K, N, dtype=dtype), np.full((M, N), np.nan, dtype)]


def mm(name, *a, arch="gfx942", **kw):
    return lambda: program(name, *matmul(*a, **kw), (1, 1, 1), (2,), arch=arch)


def softmax():
    M, N = 8, 500

    @tl.kernel
    def softmax(X: tl.Buffer[M, N], Y: tl.Buffer[M, N]):
        r = tl.program_id(0) * 4
        top, total = tl.full([4, 1], -float("inf")), tl.zeros([4, 1])
        for j in range(0, N, 256):
            x = X[r : r + 4, j : j + 256].to(tl.float32)
            new = tl.maximum(top, tl.max(x, axis=1, keep_dims=True))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=1, keep_dims=True)
            top = new
        for j in range(0, N, 256):
            Y[r : r + 4, j : j + 256] = tl.exp(X[r : r + 4, j : j + 256].to(tl.float32) - top) / total

    return program(
        "softmax", softmax, [rng0().standard_normal((M, N)).astype(F32), np.zeros((M, N), F32)], (2, 1, 1), (1,)
    )


def layer_norm():
    M, N, W = 4, 500, 512

    @tl.kernel
    def layer_norm(X: tl.Buffer[M, N], w: tl.Buffer[N], b: tl.Buffer[N], Y: tl.Buffer[M, N]):
        r = tl.program_id(0)
        x = X[r, 0:W].to(tl.float32)
        d = x - tl.sum(x) / N
        variance = tl.sum(d * d) / N
        Y[r, 0:W] = d * tl.rsqrt(variance + 1e-5) * w[0:W] + b[0:W]

    g = rng0()
    return program(
        "layer_norm",
        layer_norm,
        [
            g.standard_normal((M, N)).astype(F32),
            g.standard_normal(N).astype(F32),
            g.standard_normal(N).astype(F32),
            np.zeros((M, N), F32),
        ],
        (2, 1, 1),
        (3,),
    )


def reduce_columns():
    M, N = 64, 96

    @tl.kernel
    def columns(X: tl.Buffer[M, N], S: tl.Buffer[N], T: tl.Buffer[M]):
        x = X[0:M, 0:128]
        S[0:128] = tl.sum(x, axis=0)
        T[0:M] = tl.max(x, axis=1)

    return program("reduce", columns, [ints(M, N, dtype=F32), np.zeros(N, F32), np.zeros(M, F32)], (1, 1, 1), (1, 2))


def chained():
    M, N, K, L = 64, 64, 64, 64

    @tl.kernel
    def chain(q: tl.Buffer[M, K], k: tl.Buffer[N, K], v: tl.Buffer[N, L], o: tl.Buffer[M, L]):
        s = tl.dot(q[0:M, 0:K], tl.trans(k[0:N, 0:K]))
        o[0:M, 0:L] = tl.dot(s.to(tl.float16), v[0:N, 0:L])

    return program("chained", chain, [ints(M, K), ints(N, K), ints(N, L), np.zeros((M, L), F32)], (1, 1, 1), (3,))


def attention():
    M, N, K = 64, 128, 64

    @tl.kernel
    def attention(q: tl.Buffer[M, K], k: tl.Buffer[N, K], v: tl.Buffer[N, K], o: tl.Buffer[M, K]):
        top, total = tl.full([M, 1], -float("inf")), tl.zeros([M, 1])
        acc = tl.zeros([M, K])
        x = q[0:M, 0:K]
        for j in range(0, N, 64):
            s = tl.dot(x, tl.trans(k[j : j + 64, 0:K])) * 0.125
            new = tl.maximum(top, tl.max(s, axis=1, keep_dims=True))
            p = tl.exp(s - new)
            scale = tl.exp(top - new)
            total = total * scale + tl.sum(p, axis=1, keep_dims=True)
            acc = acc * scale + tl.dot(p.to(tl.float16), v[j : j + 64, 0:K])
            top = new
        o[0:M, 0:K] = acc / total

    return program("attention", attention, [ints(M, K), ints(N, K), ints(N, K), np.zeros((M, K), F32)], (1, 1, 1), (3,))


OURS = {
    "listing1": mm("listing1", 1024, 1024, 256, 64, F16),
    "listing1-128": mm("listing1-128", 256, 256, 512, 128, F16),
    "ragged": mm("ragged", 100, 72, 136, 64, F16),
    "odd": mm("odd", 65, 67, 129, 64, F16),
    "f32": mm("f32", 128, 128, 128, 64, F32),
    "f16.gfx90a": mm("f16.gfx90a", 64, 64, 128, 64, F16, arch="gfx90a"),
    "f16.gfx950": mm("f16.gfx950", 64, 64, 128, 64, F16, arch="gfx950"),
    "f32.gfx950": mm("f32.gfx950", 64, 64, 96, 32, F32, arch="gfx950"),
    "softmax": softmax,
    "layer_norm": layer_norm,
    "reduce": reduce_columns,
    "chained": chained,
    "attention": attention,
}
