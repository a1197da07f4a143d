"""csrc/runtime/tensor.c against brute force: spans, proof of distinct addresses, classes, grids."""

from __future__ import annotations

import ctypes as C
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

RANK = 8


class Tensor(C.Structure):
    _fields_ = [
        ("ptr", C.c_uint64),
        ("shape", C.c_int64 * RANK),
        ("strides", C.c_int64 * RANK),
        ("elem", C.c_uint8),
        ("itemsize", C.c_uint8),
        ("rank", C.c_uint8),
        ("rocm", C.c_uint8),
        ("readonly", C.c_uint8),
        ("device", C.c_int32),
    ]


class Class(C.Structure):
    _fields_ = [("dims", C.c_int64 * RANK), ("strides", C.c_int64 * RANK), ("align", C.c_uint32), ("flags", C.c_uint32)]


@pytest.fixture(scope="module")
def lib(build):
    path = build / "libtilelang_test.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    lib = C.CDLL(str(path))
    lib.tl_tensor_injective.restype = C.c_bool
    lib.tl_tensor_span.restype = C.c_bool
    lib.tl_grid_size.restype = C.c_bool
    return lib


def tensor(shape, strides, ptr=1 << 20, itemsize=2):
    t = Tensor(ptr=ptr, itemsize=itemsize, rank=len(shape))
    t.shape[: len(shape)] = shape
    t.strides[: len(shape)] = strides
    return t


def offsets(shape, strides):
    return [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))]


dims = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=4)


@settings(max_examples=400, deadline=None)
@given(dims, st.sampled_from([1, 2, 4, 8]))
def test_against_brute_force(lib, dims, itemsize):
    shape, strides = [d for d, _ in dims], [s for _, s in dims]
    t = tensor(shape, strides, itemsize=itemsize)
    where = offsets(shape, strides)
    lo, hi = C.c_uint64(), C.c_uint64()
    assert lib.tl_tensor_span(C.byref(t), C.byref(lo), C.byref(hi))
    if where:
        assert (lo.value, hi.value) == (t.ptr + min(where) * itemsize, t.ptr + (max(where) + 1) * itemsize)
    else:
        assert lo.value == hi.value
    if lib.tl_tensor_injective(C.byref(t)):  # a proof, so it must be right; not every good tensor has one
        assert len(set(where)) == len(where)
    lib.tl_tensor_canonical(C.byref(t))
    assert offsets(shape, t.strides) == where  # canonical strides address the same elements
    cls = Class()
    lib.tl_tensor_class(C.byref(t), C.byref(cls))
    dense, step = True, 1
    for i in reversed(range(len(shape))):
        d, s = cls.dims[i], cls.strides[i]
        assert -d in (1, 2, 4, 8, 16) and shape[i] % d == 0
        assert s == t.strides[i] if s >= 0 else t.strides[i] % s == 0 and -s in (1, 2, 4, 8, 16)
        dense = dense and (not where or shape[i] == 1 or strides[i] == step)
        step *= max(1, shape[i])
    backward = any(s < 0 for s in t.strides[: len(shape)])
    assert bool(cls.flags & 2) == dense and bool(cls.flags & 4) == backward and not cls.flags & 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_permuted_slices_are_proven(lib, order):
    """Every permutation of a strided slice with negative steps has the proof."""
    shape, strides = (5, 4, 3), (-80, 16, 2)
    t = tensor([shape[i] for i in order], [strides[i] for i in order])
    assert lib.tl_tensor_injective(C.byref(t))


def test_extremes(lib):
    lo, hi = C.c_uint64(), C.c_uint64()
    for shape, strides in [((2,), (2**62,)), ((2**40,), (2**40,)), ((2, 2), (2**62, 2**62)), ((2,), (-(2**62),))]:
        assert not lib.tl_tensor_span(C.byref(tensor(shape, strides, itemsize=8)), C.byref(lo), C.byref(hi))
    assert not lib.tl_tensor_injective(C.byref(tensor((2**40, 2**40), (2**40, 1))))
    cls = Class()
    for elements, big in [(2**30 - 1, False), (2**30, True)]:
        lib.tl_tensor_class(C.byref(tensor((elements,), (1,))), C.byref(cls))
        assert bool(cls.flags & 4) == big
    for ptr, align in [(1, 1), (6, 2), (24, 8), (16, 16), (4096, 16)]:
        lib.tl_tensor_class(C.byref(tensor((2,), (1,), ptr=ptr, itemsize=1)), C.byref(cls))
        assert cls.align == align


def test_grid_size(lib):
    t = tensor((100, 7), (7, 1))
    tensors = (C.POINTER(Tensor) * 1)(C.pointer(t))

    def size(*triples):
        out = C.c_uint64()
        ok = lib.tl_grid_size((C.c_int64 * len(triples))(*triples), len(triples), tensors, C.byref(out))
        return out.value if ok else None

    assert size(0, 0, 64) == 2 and size(0, 0, 100) == 1 and size(0, 1, 1) == 7 and size(-1, 9, 2) == 5
    assert size(0, 0, 64, 0, 1, 4, -1, 3, 1) == 12 and size(-1, 0, 4) == 0 and size() == 1
    assert size(-1, 2**31, 1) is None and size(-1, 2**40, 1, -1, 2**40, 1) is None
