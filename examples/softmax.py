"""Softmax along rows of any length: the maximum and the sum are carried over blocks of a row, then it is read again."""

import torch

import tilelang as tl

ROWS, BLOCK = 4, 256
M, N = tl.dims("M N")


@tl.kernel(out={"Y": "X"})
def softmax(X: tl.Buffer[M, N], Y: tl.Buffer[M, N]):
    r = tl.program_id(0) * ROWS
    top, total = tl.full([ROWS, 1], -float("inf")), tl.zeros([ROWS, 1])
    for j in range(0, N, BLOCK):
        x = X[r : r + ROWS, j : j + BLOCK].to(tl.float32)
        new = tl.maximum(top, tl.max(x, axis=1, keep_dims=True))  # elements past an edge take no part
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=1, keep_dims=True)
        top = new
    for j in range(0, N, BLOCK):
        Y[r : r + ROWS, j : j + BLOCK] = tl.exp(X[r : r + ROWS, j : j + BLOCK].to(tl.float32) - top) / total


if __name__ == "__main__":
    x = torch.randn(37, 1000).half()
    print(torch.allclose(softmax(x).float(), x.float().softmax(-1), atol=1e-3))
