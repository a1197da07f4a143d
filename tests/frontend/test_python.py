"""Where kernels can be defined and how they behave as Python objects."""

from __future__ import annotations

import concurrent.futures
import copy
import doctest
import linecache
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import fe_pickled
import numpy as np
import pytest
from fe_util import buf, module, traced

import tilelang as tl

ROOT = Path(__file__).resolve().parent.parent.parent

VECTOR_ADD = """
import numpy as np
import tilelang as tl
C = 64
@tl.kernel
def add(a: tl.Buffer[256], b: tl.Buffer[256], c: tl.Buffer[256]):
    p = tl.program_id(0)
    c[p * C : p * C + C] = a[p * C : p * C + C] + b[p * C : p * C + C]
a = np.arange(256, dtype=np.float32)
c = np.zeros(256, np.float32)
add(a, a, c)
print(bool((c == 2 * a).all()))
"""


def python(*args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], input=stdin, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False
    )


def test_script(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + VECTOR_ADD)
    r = python(str(path))
    assert r.stdout == "True\n", r.stderr


@pytest.mark.parametrize("how", ["exec", "command", "stdin"])
def test_no_source(how: str) -> None:
    """C-34: works where Python keeps the text (python -c from 3.13 on), else one clear sentence with a way out."""
    if how == "command":
        r = python("-c", VECTOR_ADD)
    elif how == "stdin":
        r = python("-", stdin=VECTOR_ADD)
    else:
        r = python("-c", f"exec({VECTOR_ADD!r})")
    if r.returncode == 0:
        assert r.stdout == "True\n"
        return
    last = r.stderr.strip().splitlines()
    assert "CompileError" in r.stderr
    assert "the source of add is not available" in r.stderr
    assert "linecache" in last[-1]


def notebook_cell(number: int, text: str, scope: dict[str, Any]) -> None:
    """Runs text as IPython does: a file name of its own that linecache knows, `single`-like namespace."""
    text = textwrap.dedent(text)
    name = f"/tmp/ipykernel_4242/{hash(text) & 0xFFFFFFFF}.py" if number % 2 else f"<ipython-input-{number}-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), scope)


@pytest.mark.parametrize("first", [1, 2])
def test_notebook(first: int) -> None:
    """A cell that is run again with one constant changed gives the changed result."""
    scope: dict[str, Any] = {"tl": tl, "__name__": "__main__"}
    cell = """
    V = {v}

    @tl.kernel
    def k(o: tl.Buffer[4, tl.int32]):
        o[tl.program_id(0)] = V + {w}
    """
    out = np.zeros(4, np.int32)
    notebook_cell(first, cell.format(v=1, w=10), scope)
    scope["k"](out)
    assert out.tolist() == [11] * 4
    notebook_cell(first + 2, cell.format(v=2, w=10), scope)
    scope["k"](out)
    assert out.tolist() == [12] * 4
    notebook_cell(first + 4, cell.format(v=2, w=20), scope)
    scope["k"](out)
    assert out.tolist() == [22] * 4


def test_ipython() -> None:
    """IPython's own machinery, where it is installed."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    r = shell.run_cell(VECTOR_ADD)
    assert r.success and bool((shell.user_ns["c"] == 2 * shell.user_ns["a"]).all())


def documented() -> None:
    """
    >>> import tilelang as tl, numpy as np
    >>> @tl.kernel
    ... def k(o: tl.Buffer[4, tl.int32]):
    ...     o[tl.program_id(0)] = 3
    >>> out = np.zeros(4, np.int32)
    >>> k(out)
    >>> out.tolist()
    [3, 3, 3, 3]
    """


def test_doctest() -> None:
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(verbose=False)
    for test in finder.find(documented, globs={}):
        assert runner.run(test).failed == 0
        assert runner.tries == 5 or runner.tries > 3


FACTORY = """
from __future__ import annotations
import tilelang as tl

def make(m, n, dtype):
    side = 2
    @tl.kernel
    def k(a: tl.Buffer[m, n, dtype], b: dtype[m, n], c: tl.Buffer[m, n] | None = None):
        p = tl.program_id(0)
        b[p, 0:n] = a[p, 0:n] * side
    return k
"""


@pytest.mark.parametrize("future", [True, False])
def test_factory(future: bool) -> None:
    """Names in annotations are those of the factory's call, with and without PEP 563."""
    text = FACTORY if future else FACTORY.replace("from __future__ import annotations\n", "")
    if not future:
        text = text.replace("dtype[m, n], c", "tl.Buffer[m, n, dtype], c")
    m = module(text)
    small, wide = m.make(4, 8, tl.float32), m.make(2, 16, tl.float16)
    for k, rows, cols, dtype in ((small, 4, 8, np.float32), (wide, 2, 16, np.float16)):
        a = np.arange(rows * cols, dtype=dtype).reshape(rows, cols)
        b = np.zeros_like(a)
        k(a, b)
        np.testing.assert_array_equal(b, 2 * a)
        with pytest.raises(tl.LaunchError, match="parameter a"):
            k(a.T.copy(), b)


def test_grid_names() -> None:
    """An extent that is a parameter's name: the annotation's value, else the factory's, else the module's integer."""
    annotated = module("""
    B, N = 4, 6
    @tl.kernel
    def k(A: tl.float32[B, N], B: tl.float32[B]):
        for i, j in tl.grid(B, N):
            B[i] += A[i, j]
    """)
    text = traced(annotated.k, buf("f32", 4, 6), buf("f32", 4))
    assert "const {value = 4} : index" in text and "const {value = 6} : index" in text
    enclosing = module("""
    B = 77
    def make():
        B = 5
        @tl.kernel
        def k(B: tl.Buffer[5]):
            for i in tl.grid(B):
                B[i] = 1
        return k
    """)
    assert "const {value = 5} : index" in traced(enclosing.make(), buf("f32", 5))
    outer = module("""
    B = 9
    @tl.kernel
    def k(B: tl.Buffer[tl.dim("n")]):
        for i in tl.grid(B):
            B[i] = 1
    """)
    assert "const {value = 9} : index" in traced(outer.k, buf("f32", -1))
    outer.scope_["B"] = 10
    assert "const {value = 10} : index" in traced(outer.k, buf("f32", -1))


def test_nested_function() -> None:
    """C-31 b: a function inside the kernel is a helper with its own control flow."""
    m = module("""
    @tl.kernel
    def k(x: tl.Buffer[8, tl.int32], o: tl.Buffer[8, tl.int32]):
        def clip(v, hi):
            if v > hi:
                return hi
            return v
        double = lambda v: v * 2 if True else v
        p = tl.program_id(0)
        o[p] = double(clip(x[p], 5))
    """)
    out = np.zeros(8, np.int32)
    m.k(np.arange(8, dtype=np.int32), out)
    assert out.tolist() == [0, 2, 4, 6, 8, 10, 10, 10]


def test_comprehension_and_static_range() -> None:
    m = module("""
    @tl.kernel
    def k(o: tl.Buffer[8, tl.int32]):
        p = tl.program_id(0)
        values = [i * i for i in range(4)]
        for i in tl.static_range(4):
            if i == 3:
                break
            if p == i:
                o[p] = values[i]
        for name, v in (("a", 5), ("b", 6)):
            if p == v:
                o[p] = v * (10 if name == "a" else 20)
    """)
    out = np.full(8, -1, np.int32)
    m.k(out)
    assert out.tolist() == [0, 1, 4, -1, -1, 50, 120, -1]


def test_optional_buffer() -> None:
    m = module("""
    @tl.kernel
    def k(o: tl.Buffer[8], b: tl.Buffer[8] | None = None):
        p = tl.program_id(0)
        v = 1.0
        if b is not None:
            v = v + b[p]
        o[p] = v
    """)
    out = np.zeros(8, np.float32)
    m.k(out)
    assert out.tolist() == [1.0] * 8
    m.k(out, np.arange(8, dtype=np.float32))
    assert out.tolist() == [1.0 + i for i in range(8)]


def test_copies() -> None:
    k = module("@tl.kernel\ndef k(o: tl.Buffer[4]):\n    o[tl.program_id(0)] = 1\n").k
    assert copy.copy(k) is k and copy.deepcopy([k])[0] is k


def test_pickle() -> None:
    assert pickle.loads(pickle.dumps(fe_pickled.store)) is fe_pickled.store
    c = pickle.loads(pickle.dumps(tl.compile(fe_pickled.store, num_warps=1)))
    out = np.zeros(4, np.int32)
    c(out)
    assert out.tolist() == [41] * 4


def test_process_pool() -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context, initializer=_path, initargs=(sys.path,)) as pool:
        assert pool.submit(fe_pickled.run, fe_pickled.store).result(100) == [41] * 4


def _path(paths: list[str]) -> None:
    sys.path[:] = paths


def test_errors_pickle() -> None:
    k = module("@tl.kernel\ndef k(o: tl.Buffer[4]):\n    o[0] = nowhere\n").k
    with pytest.raises(tl.CompileError) as info:
        k(np.zeros(4, np.float32))
    back = pickle.loads(pickle.dumps(info.value))
    assert (back.message, back.file, back.line, back.col) == (
        info.value.message,
        info.value.file,
        info.value.line,
        info.value.col,
    )
    assert str(back) == str(info.value)
    with pytest.raises(tl.LaunchError) as launch:
        k(np.zeros(5, np.float32))
    assert str(pickle.loads(pickle.dumps(launch.value))) == str(launch.value)


def test_changed_file() -> None:
    """The source is that of the definition: a file that changes afterwards does not matter."""
    m = module("@tl.kernel\ndef k(o: tl.Buffer[4, tl.int32]):\n    o[tl.program_id(0)] = 3\n")
    linecache.cache[m.file_] = (3, None, ["# gone\n", "# gone\n", "# gone\n"], m.file_)
    out = np.zeros(4, np.int32)
    m.k(out)
    assert out.tolist() == [3] * 4


def test_indented_and_decorated() -> None:
    """Indentation, several lines of decorators, comments at column 0 and strings over lines."""
    m = module('''
    if True:
            @tl.kernel(
                num_warps=1,
            )
            def k(
                o: tl.Buffer[4, tl.int32],
            ):
                """Text
    at column 0."""
    # a comment
                v = (
                    tl.program_id(0)
                    + 1
                )
                o[v - 1] = v
    ''')
    out = np.zeros(4, np.int32)
    m.k(out)
    assert out.tolist() == [1, 2, 3, 4]


def test_wide_characters() -> None:
    """Columns count characters, not bytes."""
    m = module("@tl.kernel\ndef k(o: tl.Buffer[4]):\n    größe = 'äöü'; o[0] = größer\n")
    with pytest.raises(tl.CompileError) as info:
        traced(m.k, buf("f32", 4))
    line = "    größe = 'äöü'; o[0] = größer"
    assert info.value.col - 1 == line.index("größer") and info.value.end_col - 1 == len(line)


def test_columns_of_python_3_10() -> None:
    """Without positions in code objects every node is found by a line number of its own."""
    from tilelang.frontend import source

    m = module("@tl.kernel\ndef k(o: tl.Buffer[4]):\n    f = lambda: 1 + \\\n        nowhere\n    o[0] = f()\n")
    real = source.sys
    try:
        source.sys = types.SimpleNamespace(version_info=(3, 10))  # type: ignore[assignment]
        with pytest.raises(tl.CompileError) as info:
            traced(m.k, buf("f32", 4))
    finally:
        source.sys = real
    assert (info.value.line, info.value.col, info.value.end_col) == (4, 9, 16)
