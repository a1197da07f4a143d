"""Layer normalisation, a row in registers: one program a row, mean and variance in float32."""

import torch

import tilelang as tl

M, N = tl.dims("M N")


@tl.kernel(out={"Y": "X"})
def layer_norm(
    X: tl.Buffer[M, N],
    weight: tl.Buffer[N],
    bias: tl.Buffer[N],
    Y: tl.Buffer[M, N],
    eps: tl.float32 = 1e-5,
    W: tl.constexpr = lambda a: tl.next_pow2(a.X.shape[1]),  # the tile holds the whole row
):
    r = tl.program_id(0)
    x = X[r, 0:W].to(tl.float32)
    d = x - tl.sum(x) / N  # sums pass over what is past the edge
    variance = tl.sum(d * d) / N
    Y[r, 0:W] = d * tl.rsqrt(variance + eps) * weight[0:W] + bias[0:W]


if __name__ == "__main__":
    x, weight, bias = torch.randn(37, 1000), torch.randn(1000), torch.randn(1000)
    want = torch.nn.functional.layer_norm(x, (1000,), weight, bias)
    print(torch.allclose(layer_norm(x, weight, bias), want, atol=1e-5))
