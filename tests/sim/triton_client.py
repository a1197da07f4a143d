"""Runs Triton kernels through Triton's own launcher on CPU tensors; prints the greatest deviation from torch as JSON.

Started by test_sim_triton.py with TRITON_LIBHIP_PATH set; arguments: names of the cases."""

import ctypes
import json
import os
import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils

sys.path.insert(0, str(Path(__file__).with_name("data")))
import triton_kernels as shared


class CpuHip(HIPDriver):
    def __init__(self):
        self.utils = HIPUtils()
        self.launcher_cls = HIPLauncher
        self.get_current_stream = lambda device: 0
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None

    def get_active_torch_device(self):
        return torch.device("cpu")


triton.runtime.driver.set_active(CpuHip())


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, m) + tl.load(y + i, m), m)


@triton.jit
def layer_norm_kernel(x, out, w, b, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + row * stride + i, m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(out + row * stride + i, d * rstd * tl.load(w + i, m) + tl.load(b + i, m), m)


@triton.jit
def attention_kernel(q, k, v, out, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1) * N * D
    rd = tl.arange(0, D)
    qt = tl.load(q + head + rm[:, None] * D + rd[None, :], rm[:, None] < N, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, N, BN):
        rn = n + tl.arange(0, BN)
        kt = tl.load(k + head + rn[None, :] * D + rd[:, None], rn[None, :] < N, other=0.0)
        s = tl.where(rn[None, :] < N, tl.dot(qt, kt) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, 1)
        vt = tl.load(v + head + rn[:, None] * D + rd[None, :], rn[:, None] < N, other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(tl.float16), vt)
        top = new
    tl.store(out + head + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16), rm[:, None] < N)


@triton.jit
def print_kernel(x, BLOCK: tl.constexpr):
    tl.device_print("value ", tl.load(x + tl.arange(0, BLOCK)))


@triton.jit
def wild_kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i * 1000000000, i)  # the line that reports name


@triton.jit
def scan_sort_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + 2 * i, tl.cumsum(v, 0))
    tl.store(out + 2 * i + 1, tl.sort(v))


@triton.jit
def lock_kernel(x, out, lock, BLOCK: tl.constexpr):
    v = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def add():
    x, y = torch.randn(5000), torch.randn(5000)
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(5000, 1024),)](x, y, out, 5000, BLOCK=1024)
    return (out - (x + y)).abs().max()


def softmax():
    x = torch.randn(17, 781)
    out = torch.empty_like(x)
    shared.softmax[(17,)](out, x, x.stride(0), 781, BLOCK=1024)
    return (out - torch.softmax(x, -1)).abs().max()


def layer_norm():
    x, w, b = torch.randn(9, 500), torch.randn(500), torch.randn(500)
    out = torch.empty_like(x)
    layer_norm_kernel[(9,)](x, out, w, b, x.stride(0), 500, 1e-5, BLOCK=512)
    return (out - torch.nn.functional.layer_norm(x, (500,), w, b)).abs().max()


def matmul():
    m, n, k = 130, 96, 80
    a, b = torch.randint(-4, 5, (m, k)).half(), torch.randint(-4, 5, (k, n)).half()
    c = torch.empty(m, n, dtype=torch.float16)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    shared.matmul_masked[grid](a, b, c, m, n, k, BM=64, BN=64, BK=32, num_warps=4)
    return (c.float() - a.float() @ b.float()).abs().max()


def attention():
    q, k, v = (torch.randn(3, 100, 32).half() for _ in range(3))
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(100, 64), 3)](q, k, v, out, 100, 32**-0.5, D=32, BM=64, BN=32, num_warps=2)
    want = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())
    return (out.float() - want).abs().max()


def prints():
    print_kernel[(1,)](torch.arange(7, 71, dtype=torch.int32), BLOCK=64, num_warps=1)
    return 0.0


def wild():
    wild_kernel[(1,)](torch.zeros(64, dtype=torch.int32), BLOCK=64, num_warps=1)
    return 0.0


def scan_sort():
    x = torch.randint(-99, 100, (3, 512), dtype=torch.int32)
    out = torch.empty(3, 512, 2, dtype=torch.int32)
    scan_sort_kernel[(3,)](x, out, BLOCK=512)
    return (out - torch.stack([x.cumsum(1), x.sort(1).values], -1)).abs().max()


def lock():
    x, out, word = torch.randint(-99, 100, (7, 256), dtype=torch.int32), *torch.zeros(2, 1, dtype=torch.int32)
    lock_kernel[(7,)](x, out, word, BLOCK=256)
    return (out - x.sum()).abs().max() + word.abs().max()


if __name__ == "__main__":
    torch.manual_seed(0)
    result = {name: float(globals()[name]()) for name in sys.argv[1:]}
    lib = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])
    launches, instructions = ctypes.c_uint64(), ctypes.c_uint64()
    lib.tlsim_counters(None, ctypes.byref(launches), ctypes.byref(instructions))
    result["launches"], result["instructions"] = launches.value, instructions.value
    result["sync"] = lib.hipDeviceSynchronize()
    print(json.dumps(result))
