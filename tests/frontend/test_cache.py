"""What is compiled anew and what is not: captured names, dtypes, strides, replaced constants."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from fe_util import module

import tilelang as tl


def compiles(kernel: Any) -> int:
    """Binaries that a kernel has so far."""
    return sum(len(launcher.binaries) for launcher in kernel._engine.launchers.values())


STORE = """
VAL = 123

@tl.kernel
def k(o: tl.Buffer[4, tl.int32]):
    o[tl.program_id(0)] = VAL
"""


def run(k: Any, n: int = 4, dtype: Any = np.int32) -> list[Any]:
    out = np.full(n, -1, dtype)
    k(out)
    return out.tolist()


def test_global_changes() -> None:
    """C-32 a: a changed global is a new specialisation; the old value finds the old one again."""
    m = module(STORE)
    assert run(m.k) == [123] * 4
    m.scope_["VAL"] = 1234
    assert run(m.k) == [1234] * 4
    assert compiles(m.k) == 2
    m.scope_["VAL"] = 123
    assert run(m.k) == [123] * 4
    assert compiles(m.k) == 2


def test_equal_values_of_other_types() -> None:
    """1, True and 1.0 are different captures."""
    m = module(STORE.replace("tl.int32", "tl.float32").replace("= VAL", "= VAL / 2"))
    for value in (1, True, 1.0):
        m.scope_["VAL"] = value
        assert run(m.k, dtype=np.float32) == [0.5] * 4
    assert len(m.k._engine.launchers) == 3


HELPERS = """
SCALE = 3

def twice(x):
    return x * SCALE

def thrice(x):
    return x * 30

@tl.func
def inner(x):
    return twice(x) + 1

@tl.kernel
def k(o: tl.Buffer[4, tl.int32], n: tl.int32):
    o[tl.program_id(0)] = inner(n)
"""


def test_helpers() -> None:
    """C-32 b: a helper replaced by another, and a global that a helper's helper reads."""
    m = module(HELPERS)

    def result() -> int:
        out = np.zeros(4, np.int32)
        m.k(out, 5)
        return int(out[0])

    assert result() == 16
    old = m.scope_["twice"]
    m.scope_["twice"] = m.scope_["thrice"]
    assert result() == 151
    m.scope_["twice"] = old
    m.scope_["SCALE"] = 4
    assert result() == 21
    m.scope_["SCALE"] = 3
    assert result() == 16
    assert compiles(m.k) == 3


class Mode(enum.Enum):
    ONE = 1
    TWO = 2


@dataclasses.dataclass(frozen=True)
class Config:
    step: int
    name: str = "x"


class Namespace:
    width = 7


def test_kinds_of_captures() -> None:
    text = """
    @tl.kernel
    def k(o: tl.Buffer[4, tl.int32]):
        v = CONFIG.step + SHAPE[1] + SPACE.width
        if MODE is MODES.TWO:
            v += 100
        if TYPE == tl.float16:
            v += 1000
        if NOTHING is None:
            v += 10000
        o[tl.program_id(0)] = v
    """
    m = module(
        text, CONFIG=Config(1), SHAPE=(2, 3), SPACE=Namespace, MODE=Mode.ONE, MODES=Mode, TYPE=tl.float16, NOTHING=None
    )
    assert run(m.k)[0] == 11011
    m.scope_["CONFIG"] = Config(2)
    assert run(m.k)[0] == 11012
    m.scope_["SHAPE"] = (2, 4)
    assert run(m.k)[0] == 11013
    m.scope_["MODE"] = Mode.TWO
    assert run(m.k)[0] == 11113
    m.scope_["TYPE"] = tl.float32
    assert run(m.k)[0] == 10113
    m.scope_["NOTHING"] = 5
    assert run(m.k)[0] == 113
    Namespace.width = 8
    try:
        assert run(m.k)[0] == 114
    finally:
        Namespace.width = 7
    assert run(m.k)[0] == 113
    assert compiles(m.k) == 7


def test_closures() -> None:
    """One function made by a factory with other closures: other kernels, each with its own value."""
    m = module("""
    def make(v):
        @tl.kernel
        def k(o: tl.Buffer[4, tl.int32]):
            o[tl.program_id(0)] = v
        def set_(x):
            nonlocal v
            v = x
        return k, set_
    """)
    one, set_one = m.make(1)
    two, _ = m.make(2)
    assert run(one)[0] == 1 and run(two)[0] == 2
    set_one(10)
    assert run(one)[0] == 10 and run(two)[0] == 2


def test_replaced_constant() -> None:
    m = module(STORE)
    assert run(tl.compile(m.k, VAL=7)) == [7] * 4
    assert run(tl.compile(m.k)) == [123] * 4
    assert run(m.k) == [123] * 4


def test_stale_annotation() -> None:
    """A name of an annotation that changed since is a located error where the body reads it."""
    m = module("""
    S = 4
    @tl.kernel
    def k(o: tl.Buffer[S, tl.int32]):
        o[0:S] = 1
    """)
    assert run(m.k) == [1] * 4
    m.scope_["S"] = 8
    with pytest.raises(tl.CompileError, match="S was 4 when the annotations were evaluated and is 8 now") as info:
        run(m.k)
    assert (info.value.line, info.value.col) == (5, 9)


def test_arguments() -> None:
    """C-33: lengths, strides and alignment of one kernel object; nothing carried over."""
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def add(a: tl.Buffer[N], b: tl.Buffer[N], c: tl.Buffer[N]):
        p = tl.program_id(0)
        c[p * 256 : p * 256 + 256] = a[p * 256 : p * 256 + 256] + b[p * 256 : p * 256 + 256]
    """)
    rng = np.random.default_rng(33)

    def check(a: Any, b: Any, c: Any) -> None:
        c[...] = np.nan
        m.add(a, b, c)
        np.testing.assert_array_equal(c, a + b)

    for n in (4096, 1000, 1024, 1001):
        a, b = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
        check(a, b, np.empty(n, np.float32))
    n = 1024
    base = rng.standard_normal(2 * n).astype(np.float32)
    b = rng.standard_normal(n).astype(np.float32)
    for a in (base[:n], np.broadcast_to(base[:1], (n,)), base[::2], base[:n][::-1]):
        check(a, b, np.empty(n, np.float32))
    check(base[1 : n + 1], b, np.empty(n + 1, np.float32)[1:])
    check(base[:n], b, np.empty(n, np.float32))
    before = compiles(m.add)
    check(base[:n], b, np.empty(n, np.float32))
    assert compiles(m.add) == before


def test_dtypes() -> None:
    """An open dtype is taken from the tensors at each call."""
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def twice(a: tl.Buffer[N], b: tl.Buffer[N]):
        p = tl.program_id(0)
        b[p * 64 : p * 64 + 64] = a[p * 64 : p * 64 + 64] * 2
    """)
    for dtype in (np.float32, np.float16, np.int32, np.float64):
        a = np.arange(100).astype(dtype)
        b = np.zeros(100, dtype)
        m.twice(a, b)
        np.testing.assert_array_equal(b, a * 2)
    assert compiles(m.twice) == 4


def test_threads() -> None:
    """Two threads with their own captured values through one kernel object, and eight with one new kernel."""
    m = module(STORE)
    results: list[Any] = [None] * 8

    def work(i: int) -> None:
        results[i] = run(m.k)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == [[123] * 4] * 8
    assert compiles(m.k) in range(1, 9)


def test_ahead_of_time() -> None:
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def twice(a: tl.Buffer[N], b: tl.Buffer[N]):
        p = tl.program_id(0)
        b[p * 64 : p * 64 + 64] = a[p * 64 : p * 64 + 64] * 2
    """)
    lazy = tl.compile(m.twice)
    with pytest.raises(RuntimeError, match="has not been specialised yet"):
        _ = lazy.asm
    ready = tl.compile(m.twice, dtypes=tl.float32)
    assert ready.resources["spills"] == 0 and ready.resources["vgprs"] > 0
    assert sorted(ready.asm) == ["amdgcn", "hsaco", "llir", "thread", "tir"]
    assert "kernel @twice level tile" in ready.asm["tir"] and "kernel @twice level thread" in ready.asm["thread"]
    assert "s_endpgm" in ready.asm["amdgcn"] and ready.asm["hsaco"][:4] == b"\x7fELF" and "define" in ready.asm["llir"]
    base = np.arange(200, dtype=np.float32)
    for a in (base[:100], base[::2], base[1:101], base[99::-1]):
        b = np.zeros(100, np.float32)
        ready(a, b)
        np.testing.assert_array_equal(b, a * 2)
    with pytest.raises(tl.LaunchError):
        ready(base.astype(np.float16), base.astype(np.float16))
    like = tl.compile(m.twice, like=(base, base))
    b = np.zeros(200, np.float32)
    like(base, b)
    np.testing.assert_array_equal(b, base * 2)


def test_save(tmp_path: Any) -> None:
    import json

    m = module(STORE)
    c = tl.compile(m.k)
    run(c)
    c.save(tmp_path / "k.hsaco")
    assert (tmp_path / "k.hsaco").read_bytes() == c.asm["hsaco"]
    d = json.loads((tmp_path / "k.hsaco.json").read_text())
    assert d["kernel"] == "k" and d["target"] == "gfx942" and d["kernarg_size"] == 8
    assert d["params"][0] | {} == d["params"][0] and d["params"][0]["dtype"] == "int32"
    assert d["kernarg"] == [{"offset": 0, "size": 8, "kind": "ptr", "param": "o", "axis": 0}]
    assert d["writes"] == ["o"]


def test_grid_forms() -> None:
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def k(o: tl.Buffer[N, tl.int32], v: tl.int32 = 5):
        o[tl.program_id(0)] = v + tl.num_programs(0)
    """)
    out = np.zeros(6, np.int32)
    m.k(out)
    assert out.tolist() == [11] * 6
    for grid in (3, (3,), (3, 1, 1), lambda a: a.o.shape[0] // 2):
        out[:] = 0
        m.k[grid](out, v=1)
        assert out.tolist() == [4, 4, 4, 0, 0, 0]
    out[:] = 0
    tl.kernel(m.k._definition.fn, grid=2)(out)
    assert out.tolist() == [7, 7, 0, 0, 0, 0]
    with pytest.raises(tl.LaunchError, match="1 to 3 sizes"):
        m.k[1, 2, 3, 4](out)
    m.k[0](out)
    assert out.tolist() == [7, 7, 0, 0, 0, 0]


def test_constexpr() -> None:
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def k(o: tl.Buffer[N, tl.int32], C: tl.constexpr = lambda a: tl.next_pow2(a.o.shape[0])):
        o[0:C] = tl.arange(0, C) + C
    """)
    for n in (5, 8, 9):
        out = np.zeros(n, np.int32)
        m.k[1](out)
        c = 1 << (n - 1).bit_length()
        assert out.tolist() == [c + i for i in range(n)]
    out = np.zeros(9, np.int32)
    m.k[1](out, 4)
    assert out.tolist() == [4, 5, 6, 7, 0, 0, 0, 0, 0]


def test_threads_compile() -> None:
    """Different kernels compiled and run by several threads at once."""
    text = """
    M, N, K = tl.dims("M N K")
    @tl.kernel
    def k(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        i, j = tl.program_id(0), tl.program_id(1)
        acc = tl.zeros([32, 32])
        for q in range(0, K, 32):
            acc += tl.dot(A[i * 32 : i * 32 + 32, q : q + 32], B[q : q + 32, j * 32 : j * 32 + 32])
        C[i * 32 : i * 32 + 32, j * 32 : j * 32 + 32] = acc + V
    """
    wrong: list[Any] = []

    def work(t: int) -> None:
        for i in range(4):
            v = t * 10 + i
            c = np.zeros((40, 30), np.float32)
            module(text, V=v).k(np.ones((40, 50), np.float16), np.ones((50, 30), np.float16), c)
            if not (c == 50 + v).all():
                wrong.append(v)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(100)
    assert wrong == [] and not any(t.is_alive() for t in threads)


def test_replaced_block_size() -> None:
    """One captured constant of a matrix product replaced: another tile, the same result."""
    m = module("""
    M, N, K = tl.dims("M N K")
    block_size = 64
    @tl.kernel
    def k(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
        i, j = tl.program_id(0), tl.program_id(1)
        acc = tl.zeros([block_size, block_size])
        for q in range(0, K, block_size):
            a = A[i * block_size : (i + 1) * block_size, q : q + block_size]
            acc += tl.dot(a, B[q : q + block_size, j * block_size : (j + 1) * block_size])
        C[i * block_size : (i + 1) * block_size, j * block_size : (j + 1) * block_size] = acc
    """)
    rng = np.random.default_rng(1)
    a, b = rng.integers(-3, 4, (50, 40)).astype(np.float16), rng.integers(-3, 4, (40, 70)).astype(np.float16)
    for size in (16, 32):
        compiled = tl.compile(m.k, block_size=size)
        c = np.zeros((50, 70), np.float32)
        compiled(a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
        assert f"tile<{size}x{size}xf32>" in compiled.asm["tir"]


def test_outputs() -> None:
    """``out=``: outputs that a call leaves out are allocated, zeroed, and returned; ``zero=`` clears."""
    m = module("""
    M, N = tl.dims("M N")

    @tl.kernel(out={"C": "A", "S": "A"}, zero=["count"])
    def k(A: tl.Buffer[M, N], C: tl.Buffer[M, N // 2], S: tl.Buffer[M], count: tl.Buffer[M, tl.int32]):
        i = tl.program_id(0)
        C[i, 0:64] = A[i, 0:64] * 2
        S[i] = S[i] + tl.sum(A[i, 0:64])
        count[i] = count[i] + 1
    """)
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    count = np.full(3, 9, np.int32)
    c, s = m.k(a, count)
    np.testing.assert_array_equal(c, 2 * a[:, :2])
    np.testing.assert_array_equal(s, a.sum(1))
    assert c.dtype == np.float32 and count.tolist() == [1, 1, 1]
    mine = np.zeros((3, 2), np.float32)
    s = m.k[3](a, C=mine, count=count)
    np.testing.assert_array_equal(mine, 2 * a[:, :2])
    assert s.shape == (3,)
    assert m.k(a, mine, np.zeros(3, np.float32), count) is None
    c, s = tl.compile(m.k)(a, count)
    np.testing.assert_array_equal(c, 2 * a[:, :2])
    with pytest.raises(TypeError, match="given twice"):
        m.k(a, count, A=a)
    with pytest.raises(TypeError, match="no buffer parameter"):
        tl.compile(tl.kernel(m.k._definition.fn, out=["nothing"]))
    with pytest.raises(TypeError, match="needs a dtype"):
        tl.compile(tl.kernel(m.k._definition.fn, out=["C"]))


def test_outputs_torch() -> None:
    torch = pytest.importorskip("torch")
    m = module("""
    N = tl.dim("N")
    @tl.kernel(out=["o"])
    def k(x: tl.Buffer[N], o: tl.Buffer[N, tl.bfloat16]):
        s = slice(tl.program_id(0) * 64, tl.program_id(0) * 64 + 64)
        o[s] = x[s] + 1
    """)
    x = torch.arange(100, dtype=torch.float32)
    o = m.k(x)
    assert o.dtype is torch.bfloat16 and torch.equal(o, (x + 1).bfloat16())


def test_overlap() -> None:
    """One tensor for two inputs is no overlap that matters; an output over an input is, and program order holds."""
    m = module("""
    N = tl.dim("N")
    @tl.kernel
    def add(a: tl.Buffer[N], b: tl.Buffer[N], c: tl.Buffer[N]):
        s = slice(tl.program_id(0) * 64, tl.program_id(0) * 64 + 64)
        c[s] = a[s] + b[s]
    """)
    x = np.arange(128, dtype=np.float32)
    c = np.zeros(128, np.float32)
    compiled = tl.compile(m.add)
    compiled(x, x, c)
    np.testing.assert_array_equal(c, 2 * x)
    assert compiled.asm["tir"].count("noalias") == 3
    compiled(x, c, c)
    np.testing.assert_array_equal(c, 3 * x)
    assert compiled.asm["tir"].count("noalias") == 1


GRID_MATMUL = """
M, N, K = tl.dims("M N K")
@tl.kernel
def mm(A: tl.Buffer[M, K], B: tl.Buffer[K, N], C: tl.Buffer[M, N]):
    for i, j, k in tl.grid(M, N, K):
        C[i, j] += A[i, k] * B[k, j]
"""


def matmul_in_order(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Python's loops, each sum rounded to c's type, as code for one element after the other does it."""
    with np.errstate(all="ignore"):
        for i, j, k in np.ndindex(a.shape[0], b.shape[1], a.shape[1]):
            c[i, j] = np.float16(np.float32(c[i, j]) + np.float32(a[i, k]) * np.float32(b[k, j]))


def test_dtypes_alone_compile_the_loops() -> None:
    """Ahead of time by dtypes: tiles and one rounding, as a call has it; arguments that overlap run in order."""
    mm = module(GRID_MATMUL).mm
    compiled = tl.compile(mm, dtypes=tl.float16)
    assert compiled.notes == [] and "mfma" in compiled.asm["thread"]
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((17, 4100), (4100, 19)))
    c = np.full((17, 19), 0.5, np.float16)
    compiled(a, b, c)
    np.testing.assert_array_equal(c, (0.5 + a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16))
    x = rng.integers(-2, 3, (9, 9)).astype(np.float16)
    want = x.copy()
    matmul_in_order(want, want, want)
    for _ in range(2):
        y = x.copy()
        compiled(y, y, y)
        np.testing.assert_array_equal(y, want)
        assert any("may overlap" in n for n in compiled.notes)
    c[...] = 0.5
    compiled(a, b, c)
    assert compiled.notes == []
    big = tl.compile(module(GRID_MATMUL).mm, dtypes={"A": tl.float16, "B": tl.float16, "C": tl.float16})
    y = x.copy()
    big(x[::-1], x[:, ::-1], y)  # negative strides
    np.testing.assert_array_equal(y, x + x[::-1].astype(np.float64) @ x[:, ::-1])


def test_like_overlapping_arguments() -> None:
    """like= shows which arguments overlap, and which run backward."""
    mm = module(GRID_MATMUL).mm
    x = np.random.default_rng(8).integers(-2, 3, (9, 9)).astype(np.float16)
    want = x.copy()
    matmul_in_order(want, want, want)
    y = x.copy()
    tl.compile(mm, like=(x, x, x))(y, y, y)
    np.testing.assert_array_equal(y, want)
    y = x.copy()
    compiled = tl.compile(mm, like=(x, x, x.copy()))  # what is only read may be one tensor
    assert compiled.notes == []
    compiled(x, x, y)
    np.testing.assert_array_equal(y, x + x.astype(np.float64) @ x)
    with pytest.raises(tl.LaunchError, match="overlaps another argument"):
        compiled(x, y, y)
    y = x.copy()
    tl.compile(mm, like=(x[::-1], x, x.copy()))(x[::-1], x, y)
    np.testing.assert_array_equal(y, x + x[::-1].astype(np.float64) @ x)


def test_threads_parse(tmp_path) -> None:
    """Several threads read sources while the garbage collector runs at every turn and lets others in."""
    body = "".join(f"    a{i} = (x + {i}) * (x - {i}) if x > {i} else [x, x + 1, -x]\n" for i in range(60))
    (tmp_path / "long_source.py").write_text(f"def f(x):\n{body}    return x\n")
    program = f"""
import gc, sys, threading
sys.path.insert(0, {str(tmp_path)!r})
import long_source
from tilelang.frontend.source import Source
sys.setswitchinterval(1e-6)
gc.set_threshold(50)
gc.callbacks.append(lambda *a: sum(range(50)))
done = []
def work():
    for _ in range(20):
        Source(long_source.f, True).parse()
    done.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(len(done))
"""
    r = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert r.stdout == "4\n", r.stderr[-2000:]
