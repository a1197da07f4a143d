"""Kernels whose IR text is kept in golden/."""

from __future__ import annotations

import tilelang as tl

M, N, K = tl.dims("M N K")
B = 128
SIDE = 64


@tl.kernel
def vector_add(x: tl.Buffer[N], y: tl.Buffer[N], z: tl.Buffer[N]):
    p = tl.program_id(0)
    z[p * B : (p + 1) * B] = x[p * B : p * B + B] + y[p * B : (p + 1) * B]


@tl.kernel
def bias_relu(A: tl.Buffer[M, K], W: tl.Buffer[K, N], bias: tl.Buffer[N], C: tl.Buffer[M, N]):
    i, j = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros([SIDE, SIDE])
    for k in range(0, K, SIDE):
        acc += A[i * SIDE : i * SIDE + SIDE, k : k + SIDE] @ W[k : k + SIDE, j * SIDE : j * SIDE + SIDE]
    acc = tl.maximum(acc + bias[j * SIDE : j * SIDE + SIDE][None, :], 0)
    C[i * SIDE : i * SIDE + SIDE, j * SIDE : j * SIDE + SIDE] = acc


@tl.kernel
def two_dots(A: tl.Buffer[M, K], W: tl.Buffer[K, N], C: tl.Buffer[M, N]):
    i, j = tl.program_id(0), tl.program_id(1)
    one = tl.zeros([SIDE, SIDE], dtype=tl.float32)
    two = tl.zeros([SIDE, SIDE], dtype=tl.float32)
    for k in range(0, K, SIDE):
        a = A[i * SIDE : (i + 1) * SIDE, k : k + SIDE]
        b = W[k : k + SIDE, j * SIDE : (j + 1) * SIDE]
        one += tl.dot(a, b)
        two += tl.dot(a * 2, b)
    C[i * SIDE : (i + 1) * SIDE, j * SIDE : (j + 1) * SIDE] = one + two


def tiled_matmul(bm: int, bn: int, bk: int) -> tl.Kernel:
    @tl.kernel
    def matmul(A: tl.Buffer[M, K], W: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        i = tl.program_id(0)
        j = tl.program_id(1)
        a = tl.alloc_shared([bm, bk])
        b = tl.alloc_shared([bk, bn])
        acc = tl.zeros([bm, bn], dtype=tl.float32)
        for k in range(0, K, bk):
            a[:, :] = A[i * bm : (i + 1) * bm, k : k + bk]
            b[:, :] = W[k : k + bk, j * bn : (j + 1) * bn]
            acc += tl.dot(a, b)
        C[i * bm : (i + 1) * bm, j * bn : (j + 1) * bn] = acc

    return matmul


@tl.kernel
def control(x: tl.Buffer[N], out: tl.Buffer[N], n: tl.int32):
    p = tl.program_id(0)
    acc = tl.zeros([B])
    last = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        acc += x[i * B : i * B + B]
        last = i
        if x[i] > 3.0 and i > 2:
            break
    out[p * B : p * B + B] = acc * last


@tl.kernel
def halving(x: tl.Buffer[N, tl.int32], out: tl.Buffer[N, tl.int32]):
    p = tl.program_id(0)
    n = x[p]
    count = 0
    while n > 1:
        n = (n + 1) // 2
        count += 1
    out[p] = count


@tl.kernel
def early_return(x: tl.Buffer[N], out: tl.Buffer[N]):
    p = tl.program_id(0)
    if p >= 10:
        return
    y = x[p] if p > 3 else 1.5
    out[p] = y
    for j in range(10):
        if x[j] > 1:
            out[j] = 3
            return
    out[-1] = 7


@tl.func
def sign(s):
    if s > 0:
        return 1
    elif s < 0:
        return -1
    return 0


@tl.kernel
def helper(x: tl.Buffer[N], out: tl.Buffer[N]):
    p = tl.program_id(0)
    out[p] = sign(x[p]) + sign(3)


@tl.kernel
def softmax(x: tl.Buffer[M, N], y: tl.Buffer[M, N]):
    row = tl.program_id(0)
    t = x[row, 0:256].to(tl.float32)
    e = tl.exp(t - tl.max(t))
    y[row, 0:256] = e / tl.sum(e)


@tl.kernel
def grid_epilogue(A: tl.Buffer[M, K], W: tl.Buffer[N, K], b: tl.Buffer[N], C: tl.Buffer[M, N], D: tl.Buffer[M, N]):
    for k, j, i in tl.grid(K, N, M):
        C[i, j] += W[j, k] * A[i, k]
    for i, j in tl.grid(M, N):
        v = C[i, j] + b[j]
        D[i, j] = v if v > 0 else v * 0.5


@tl.kernel
def grid_max(A: tl.Buffer[M, N], row_max: tl.Buffer[M]):
    for i, j in tl.grid(M, N):
        row_max[i] = max(row_max[i], A[i, j])


@tl.kernel
def gather(table: tl.Buffer[M, N], index: tl.Buffer[K, tl.int32], out: tl.Buffer[K, N]):
    p = tl.program_id(0)
    rows = index[p * 16 : p * 16 + 16]
    out[p * 16 : p * 16 + 16, 0:32] = table[rows[:, None], tl.arange(0, 32)[None, :]]


@tl.kernel
def bounded(x: tl.Buffer[N], ends: tl.Buffer[M, tl.int32], out: tl.Buffer[N]):
    p = tl.program_id(0)
    lo = ends[p]
    out[lo : min(lo + 32, ends[p + 1])] = x[lo : min(lo + 32, ends[p + 1])] * 2
