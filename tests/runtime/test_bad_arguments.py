"""Bad arguments of real kernels: each is a named error before anything is launched or written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tilelang.errors import DeviceError, LaunchError, LaunchTypeError

M, N, K = tl.dims("M N K")


@tl.kernel
def matmul(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.float32[M, N]):
    m, n = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros([32, 32], dtype=tl.float32)
    for k in range(0, K, 32):
        acc += tl.dot(A[m * 32 : (m + 1) * 32, k : k + 32], B[k : k + 32, n * 32 : (n + 1) * 32])
    C[m * 32 : (m + 1) * 32, n * 32 : (n + 1) * 32] = acc


@tl.kernel
def scale(x: tl.Buffer[N], y: tl.Buffer[N], factor: tl.int32):
    p = tl.program_id(0)
    y[p * 64 : (p + 1) * 64] = x[p * 64 : (p + 1) * 64] * factor


def arrays(dtype=np.float16):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, s).astype(dtype) for s in ((40, 50), (50, 60)))
    return a, b, np.full((40, 60), -7, np.float32)


def refused(call, error, *words):
    with pytest.raises(error) as info:
        call()
    assert all(w in str(info.value) for w in words), str(info.value)


def test_the_good_case():
    a, b, c = arrays()
    matmul(a, b, c)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize(
    "change, error, words",
    [
        (lambda a, b, c: (a[0], b, c), LaunchError, ["matmul: parameter A", "2 dimensions", "got 1"]),
        (lambda a, b, c: (a, b[:, :, None], c), LaunchError, ["parameter B", "got 3"]),
        (lambda a, b, c: (a, b[:-1], c), LaunchError, ["parameter B", "K is 50", "parameter A"]),
        (lambda a, b, c: (a, b, c[:-1]), LaunchError, ["parameter C", "M is 40"]),
        (lambda a, b, c: (a, b, c.astype(np.float16)), LaunchTypeError, ["parameter C", "float32", "float16"]),
        (lambda a, b, c: (a, b.astype(np.complex64), c), LaunchTypeError, ["parameter B", "complex64"]),
        (lambda a, b, c: (a.tolist(), b, c), LaunchTypeError, ["parameter A", "tensor", "list"]),
        (lambda a, b, c: (a, None, c), LaunchTypeError, ["parameter B", "NoneType"]),
        (lambda a, b, c: (a, b), LaunchTypeError, ["parameter C is missing"]),
        (lambda a, b, c: (a, b, c, c), LaunchTypeError, ["takes 3 arguments"]),
        (
            lambda a, b, c: (a, b, np.lib.stride_tricks.as_strided(c, (40, 60), (0, 4))),
            LaunchError,
            ["parameter C", "share an address"],
        ),
        (
            lambda a, b, c: (a, b, np.lib.stride_tricks.as_strided(c, (40, 60), (8, 4))),
            LaunchError,
            ["parameter C", "share an address"],
        ),
    ],
)
def test_refused_before_anything_is_written(change, error, words):
    a, b, c = arrays()
    refused(lambda: matmul(*change(a, b, c)), error, *words)
    assert (c == -7).all()


def test_read_only():
    a, b, c = arrays()
    c.flags.writeable = False
    refused(lambda: matmul(a, b, c), LaunchError, "parameter C", "read-only")
    a.flags.writeable = b.flags.writeable = False
    matmul(a, b, np.zeros((40, 60), np.float32))
    assert (c == -7).all()


def test_mixed_dtypes_in_dot():
    a, b, c = arrays()
    with pytest.raises(tl.CompileError) as info:
        matmul(a, b.astype(np.float32), c)
    assert "dot" in str(info.value) and "f16" in str(info.value).replace("float16", "f16")
    assert info.value.line and info.value.file == __file__ and (c == -7).all()


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    a, b, c = (torch.from_numpy(x) for x in arrays())
    grad = a.float().requires_grad_()
    refused(lambda: matmul(grad, b.float(), c), LaunchError, "parameter A", "requires grad", "detach")
    refused(lambda: matmul(a, b, c.expand(2, 40, 60)), LaunchError, "parameter C", "got 3")
    refused(lambda: matmul(a, b, c[:1].expand(40, 60)), LaunchError, "parameter C", "share an address")
    refused(lambda: matmul(a.to("meta"), b, c), LaunchError, "parameter A", "meta")
    assert (c == -7).all()
    with torch.no_grad():
        matmul(grad, b.float(), c)
    assert torch.equal(c, grad.detach() @ b.float())


def test_cpu_gpu_mix():
    from test_tensors import Producer

    x, y = np.zeros(3, np.float32), Producer(device=(10, 0), ndim=1)
    refused(lambda: scale(x, y, 3), LaunchError, "scale: parameter y", "ROCm device 0", "parameter x", "CPU memory")
    refused(lambda: scale(x, Producer(device=(2, 0), ndim=1), 3), LaunchError, "parameter y", "NVIDIA")


def test_scalars():
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    refused(lambda: scale(x, y, 2**31), LaunchError, "parameter factor", "2147483648", "int32")
    refused(lambda: scale(x, y, 1.5), LaunchTypeError, "parameter factor", "integer", "float")
    refused(lambda: scale(x, y, x), LaunchTypeError, "parameter factor", "number")
    refused(lambda: scale(x, y, factr=3), LaunchTypeError, "no parameter factr")
    assert (y == 0).all()
    scale(x, y=y, factor=np.int64(5))
    assert (y == 5).all()


def test_views_with_negative_and_zero_strides():
    """Inputs may be any view, without a copy."""
    x, y = np.arange(100, dtype=np.float32), np.zeros(200, np.float32)
    scale(x[::-1], y[::2], 2)
    assert (y[::2] == 2 * x[::-1]).all() and (y[1::2] == 0).all()
    scale(np.broadcast_to(np.float32(3), 100), y[100:], 4)
    assert (y[100:] == 12).all()
    scale(x[:0], y[:0], 4)


def test_no_gpu_and_no_llvm(fake_path, tmp_path):
    """Without a GPU a ROCm tensor is refused with the reason; without LLVM the first compile says so."""
    code = f"""
import sys, os
sys.path.insert(0, {str(tmp_path)!r})
os.environ["TILELANG_HIP_LIB"] = {str(fake_path("-DNO_DEVICE"))!r}
import numpy as np, tilelang as tl
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_tensors import Producer
from test_bad_arguments import scale
try:
    scale(Producer(device=(10, 0), ndim=1), Producer(device=(10, 0), ndim=1), 3)
except tl.DeviceError as err:
    print("GPU:", err)
sys.modules["tilelang._llvm"] = None
try:
    scale(np.zeros(8, np.float32), np.zeros(8, np.float32), 3)
except Exception as err:
    print("LLVM:", type(err).__name__, err)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    assert "GPU: the HIP runtime" in done.stdout and "finds no AMD GPU" in done.stdout, done.stdout
    assert "LLVM: " in done.stdout and "LLVM" in done.stdout.split("LLVM: ", 1)[1], done.stdout
    assert issubclass(DeviceError, RuntimeError)
