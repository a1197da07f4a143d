"""Tensors in: NumPy, torch and DLPack objects are read without a copy, and what may not be used is refused by name."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest

import tilelang._core as core
from tilelang.errors import LaunchError, LaunchTypeError

ml_dtypes = pytest.importorskip("ml_dtypes")

NUMPY = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "longlong": "i64",
}
ML = {
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2fnuz": "f8e5m2fnuz",
}


def refused(obj, error, *words):
    with pytest.raises(error) as info:
        core.tensor_info(obj)
    text = str(info.value)
    for word in words:
        assert word in text, text
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_dtypes(name):
    a = np.zeros((3, 5), name)
    assert core.tensor_info(a) == (a.ctypes.data, NUMPY[name], (3, 5), (5, 1), "cpu", 0, False)


@pytest.mark.parametrize("name", ML)
def test_ml_dtypes(name):
    a = np.zeros((3, 5), getattr(ml_dtypes, name))[:, ::2]
    assert core.tensor_info(a) == (a.ctypes.data, ML[name], (3, 3), (5, 2), "cpu", 0, False)


def test_numpy_views():
    base = np.zeros((6, 8), np.float32)
    for view in (base.T, base[1::2, ::-1], base[::-1], base[2], base[2:3], base[None], base[3, 4, ...]):
        address, _, shape, strides, *_ = core.tensor_info(view)
        assert address == view.ctypes.data and shape == view.shape
        for size, stride, own in zip(shape, strides, view.strides):
            assert size == 1 or stride * 4 == own
    assert core.tensor_info(np.lib.stride_tricks.as_strided(base, (3, 4), (0, 4)))[3] == (0, 1)
    readonly = base[:]
    readonly.flags.writeable = False
    assert core.tensor_info(readonly)[6] is True


def test_strides_that_say_nothing_are_canonical():
    base = np.zeros((4, 1, 6), np.float32)
    assert core.tensor_info(base[:, :, ::2][:1])[3] == (6, 6, 2)
    assert core.tensor_info(np.zeros((4, 0, 3), np.float16))[3] == (3, 3, 1)
    assert core.tensor_info(np.zeros((), np.float16))[2:4] == ((), ())


def test_numpy_refusals():
    refused(np.zeros(3, ">f4"), LaunchTypeError, ">f4", "byte order")
    refused(np.zeros(3, object), LaunchTypeError, "dtype object")
    refused(np.zeros(3, np.complex64), LaunchTypeError, "complex64")
    refused(np.zeros(3, "M8[s]"), LaunchTypeError, "datetime64")
    refused(np.ma.masked_array(np.zeros(3), [0, 1, 0]), LaunchTypeError, "masked array")
    record = np.zeros(4, [("a", "f4"), ("b", "u1")])["a"]
    refused(record, LaunchError, "stride of 5 bytes")
    raw = np.zeros(17, np.uint8)
    refused(raw[1:].view(np.float32) if raw.ctypes.data % 4 == 0 else raw[:16].view(np.float32), LaunchError, "4 bytes")
    refused(np.zeros((1,) * 9), LaunchError, "9 dimensions")


@pytest.mark.parametrize("obj", [None, 3, "x", [1.0], (1,), object(), np.float32, np.ndarray, print])
def test_no_tensor(obj):
    text = refused(obj, LaunchTypeError, "wants a tensor", type(obj).__name__)
    assert "torch tensors" in text
    with pytest.raises(TypeError):
        core.tensor_info(obj)
    with pytest.raises(ValueError):
        core.tensor_info(obj)


# ---- torch ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_torch_dtypes_and_views(torch):
    names = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
    names += ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
    for name in names:
        a = torch.zeros(3, 5, dtype=getattr(torch, name))
        elem = {**NUMPY, **ML}[name]
        assert core.tensor_info(a) == (a.data_ptr(), elem, (3, 5), (5, 1), "cpu", 0, False)
        v = a.t()[1:, 1:]
        assert core.tensor_info(v) == (v.data_ptr(), elem, (4, 2), (1, 5), "cpu", 0, False)
    assert core.tensor_info(torch.zeros(()))[2:4] == ((), ())
    assert core.tensor_info(torch.zeros(4, 1).expand(4, 3))[3] == (1, 0)


def test_torch_gradients(torch):
    a = torch.zeros(3, requires_grad=True)
    for grad in (a, a * 2, torch.nn.Parameter(torch.zeros(3))):
        refused(grad, LaunchError, "requires grad", ".detach()", "no_grad")
        with torch.no_grad():
            assert core.tensor_info(grad)[0] == grad.data_ptr()
        with torch.inference_mode():
            assert core.tensor_info(grad)[0] == grad.data_ptr()
        assert core.tensor_info(grad.detach())[0] == grad.data_ptr()


def test_torch_refusals(torch, recwarn):
    refused(torch.zeros(4, dtype=torch.complex64).conj().imag, LaunchError, "negat", "resolve_neg")
    refused(torch.zeros(4, dtype=torch.complex64).conj(), LaunchTypeError if False else ValueError)
    refused(torch.zeros(3, device="meta"), LaunchError, "meta")
    refused(torch.zeros(3).to_sparse(), LaunchError, "storage")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3)
    refused(fake, LaunchError, "fake")
    refused(torch.Tensor, LaunchTypeError, "wants a tensor")
    assert core.tensor_info(torch.zeros(0, 4))[2] == (0, 4)
    assert not [w for w in recwarn if "FakeTensor" in str(w.message)]


def test_torch_without_the_exchange_table(torch):
    """An object that only has __dlpack__ (older torch) goes through capsules."""

    class Old:
        def __init__(self, t):
            self.t = t
            self.requires_grad = t.requires_grad

        def __dlpack__(self, **kwargs):
            return self.t.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.t.__dlpack_device__()

        def detach(self):
            return Old(self.t.detach())

    t = torch.zeros(3, 5, dtype=torch.bfloat16).t()
    assert core.tensor_info(Old(t)) == (t.data_ptr(), "bf16", (5, 3), (1, 5), "cpu", 0, False)
    grad = torch.zeros(3, requires_grad=True)
    refused(Old(grad), LaunchError, "requires grad")
    with torch.no_grad():
        assert core.tensor_info(Old(grad))[0] == grad.data_ptr()


# ---- capsules ------------------------------------------------------------------------------------------------------


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DlTensor),
    ]


def capsule(pointer, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(pointer, name, None)


class Producer:
    """A DLPack producer of our own: every field can be set."""

    def __init__(self, versioned=True, strides=True, knows_version=True, device=(1, 0), major=1, flags=0, **fields):
        self.memory = np.arange(24, dtype=np.float32)
        self.shape = (ctypes.c_int64 * 2)(3, 4)
        self.strides = (ctypes.c_int64 * 2)(8, 2)
        self.versioned, self.knows_version, self.device = versioned, knows_version, device
        self.deleted = 0
        self.calls = []
        self.deleter = DELETER(self.delete)
        t = DlTensor(self.memory.ctypes.data, device[0], device[1], 2, 2, 32, 1, self.shape, None, 0)
        if strides:
            t.strides = self.strides
        for name, value in fields.items():
            setattr(t, name, value)
        self.managed = (
            Versioned(major, 0, None, self.deleter, flags, t) if versioned else Managed(t, None, self.deleter)
        )
        self.name = b"dltensor_versioned" if versioned else b"dltensor"

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        self.calls.append(dict(kwargs))
        if not self.knows_version and "max_version" in kwargs:
            raise TypeError("unexpected keyword max_version")
        return capsule(ctypes.addressof(self.managed), self.name)


def test_versioned_capsule():
    p = Producer()
    assert core.tensor_info(p) == (p.memory.ctypes.data, "f32", (3, 4), (8, 2), "cpu", 0, False)
    assert p.deleted == 1 and p.calls == [{"max_version": (1, 1)}]
    assert core.tensor_info(Producer(flags=1))[6] is True


def test_old_capsule():
    p = Producer(versioned=False, strides=False, knows_version=False, byte_offset=8)
    assert core.tensor_info(p) == (p.memory.ctypes.data + 8, "f32", (3, 4), (4, 1), "cpu", 0, False)
    assert p.deleted == 1 and p.calls == [{"max_version": (1, 1)}, {}]


def test_rocm_device():
    p = Producer(device=(10, 1))
    assert core.tensor_info(p)[4:6] == ("rocm", 1)
    assert p.calls == [{"max_version": (1, 1), "stream": 0}]


@pytest.mark.parametrize(
    "fields, words",
    [
        (dict(device=(2, 0)), ["NVIDIA", "type 2"]),
        (dict(device=(8, 0)), ["type 8"]),
        (dict(major=2), ["DLPack 2.0"]),
        (dict(code=5, bits=64), ["code 5", "64 bits"]),
        (dict(lanes=4), ["4 lanes"]),
        (dict(code=17, bits=4), ["code 17"]),
        (dict(data=None), ["no memory"]),
        (dict(ndim=9), ["9 dimensions"]),
        (dict(byte_offset=2), ["4 bytes"]),
    ],
)
def test_capsule_refusals(fields, words):
    p = Producer(**fields)
    refused(p, ValueError, *words)
    assert p.deleted == 1


def test_capsule_that_fails():
    class Fails:
        def __dlpack__(self, **kwargs):
            raise RuntimeError("no export today\nsecond line")

    refused(Fails(), LaunchError, "no export today")

    class Nothing:
        def __dlpack__(self, **kwargs):
            return 7

    refused(Nothing(), LaunchTypeError, "no DLPack capsule")


def test_no_leaks(torch):
    a = np.zeros((3, 4), np.float16)
    t = torch.zeros(3, 4)
    p = Producer()
    for obj in (a, t, p):
        core.tensor_info(obj)
    gc.collect()
    before = [sys.getrefcount(x) for x in (a, t, p, type(t), a.dtype)]
    for _ in range(200):
        for obj in (a, t):
            core.tensor_info(obj)
        p.deleted = 0
        core.tensor_info(p)
        p.calls.clear()
        for bad in (3, np.zeros(2, object)):
            with pytest.raises(LaunchTypeError):
                core.tensor_info(bad)
    after = [sys.getrefcount(x) for x in (a, t, p, type(t), a.dtype)]
    assert all(abs(x - y) <= 3 for x, y in zip(before, after)), (before, after)
