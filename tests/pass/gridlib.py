"""Grid-style kernels for tests: Python source -> IR text (as the frontend types it), and a plain reference.

    k = Grid('''
    for i, j, k in grid(M, N, K):
        C[i, j] += A[i, k] * B[k, j]
    ''', {"A": ("f16", "M K"), "B": ("f16", "K N"), "C": ("f16", "M N")}, {"M": 20, "N": 30, "K": 40})
    k.text            # IR at level tile with `grid` operations
    k.reference(args) # Python's nested loops; an element outside its tensor skips the statement

Dims in capitals are sizes; `dynamic=True` makes them run-time sizes of the tensors.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

BUILD = Path(os.environ.get("TILELANG_BUILD", Path(__file__).resolve().parents[2] / "build"))
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8, "i64": np.int64}
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod"}
COMPARE = {ast.Lt: "lt", ast.Gt: "gt", ast.LtE: "le", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
ACC = {ast.Add: "sum", ast.Mult: "prod"}


def bf16(x: Any) -> np.ndarray:
    """float32 rounded to bfloat16, as its 16 bits."""
    b = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((b + 0x7FFF + ((b >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(x: np.ndarray) -> np.ndarray:
    """The 16 bits of bfloat16 as float32."""
    return (x.astype(np.uint32) << 16).view(np.float32)


class Outside(Exception):
    """An element outside its tensor."""


class Grid:
    """One kernel of grid loops."""

    def __init__(
        self,
        source: str,
        buffers: dict[str, tuple[str, str]],
        sizes: dict[str, int],
        dynamic: bool = False,
        strides: dict[str, tuple[int, ...]] | None = None,
        flags: str = "noalias",
        attrs: str = "",
        scalars: dict[str, tuple[str, float]] | None = None,
    ) -> None:
        self.tree = ast.parse(textwrap.dedent(source))
        self.buffers, self.sizes, self.dynamic, self.scalars = buffers, sizes, dynamic, scalars or {}
        self.dims = {n: tuple(self.size(d) for d in dims.split()) for n, (_, dims) in buffers.items()}
        self.lines: list[str] = []
        self.count, self.depth = 0, 1
        self.env: dict[str, tuple[str, str]] = {}
        self.widen: str | None = None
        head = [self.buffer_text(n, (strides or {}).get(n), flags) for n in buffers]
        head += [f"%{n} : {t}" for n, (t, _) in self.scalars.items()]
        for n, (t, _) in self.scalars.items():
            self.env[n] = (f"%{n}", t)
        for s in self.tree.body:
            self.statement(s)
        tie = self.same_dims()
        attrs = ", ".join(x for x in ('target = "gfx942"', tie, attrs) if x)
        self.text = f"kernel @k level tile {{{attrs}}} ({', '.join(head)}) {{\n" + "".join(self.lines) + "}\n"

    def size(self, d: str) -> int:
        return int(eval(d, {}, dict(self.sizes)))

    def buffer_text(self, n: str, strides: tuple[int, ...] | None, flags: str) -> str:
        elem, _ = self.buffers[n]
        shape = self.dims[n]
        dims = ["?" if self.dynamic else str(d) for d in shape]
        dense = strides is None
        if dense:
            steps = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
            text = ["?" if self.dynamic and d + 1 < len(shape) else str(s) for d, s in enumerate(steps)]
        else:
            text = [str(s) for s in strides or ()]
        words = " ".join(x for x in (flags, "dense" if dense else "") if x)
        align = 16 if dense else {"f16": 2, "bf16": 2, "i8": 1}.get(elem, 4)
        return f"%{n} : buf<{elem} [{', '.join(dims)}] strides [{', '.join(text)}] align {align} {words}>"

    def same_dims(self) -> str:
        first: dict[str, tuple[int, int]] = {}
        out: list[int] = []
        for p, (_, dims) in enumerate(self.buffers.values()):
            for a, d in enumerate(dims.split()):
                if d in first:
                    out += [*first[d], p, a]
                elif re.fullmatch(r"[A-Z]\w*", d):
                    first[d] = (p, a)
        return f"same_dims = {out}" if out and self.dynamic else ""

    # -- IR text --

    def op(self, text: str, type_: str | None = None) -> str:
        pad = "  " * self.depth
        if type_ is None:
            self.lines.append(f"{pad}{text}\n")
            return ""
        self.count += 1
        self.lines.append(f"{pad}%v{self.count} = {text} : {type_}\n")
        return f"%v{self.count}"

    def extent(self, e: ast.expr) -> str:
        if isinstance(e, ast.Name) and self.dynamic:
            for n, (_, dims) in self.buffers.items():
                for a, d in enumerate(dims.split()):
                    if d == e.id:
                        return self.op(f"dim %{n} {{axis = {a}}}", "index")
        if isinstance(e, ast.BinOp) and self.dynamic:
            return self.op(f"{BINARY[type(e.op)]} {self.extent(e.left)}, {self.extent(e.right)}", "index")
        return self.op(f"const {{value = {self.size(ast.unparse(e))}}}", "index")

    def local_loop(self, s: ast.For, kept: list[str]) -> None:
        """An inner loop over one index that rebinds locals: a `for` that carries them."""
        assert isinstance(s.iter, ast.Call) and isinstance(s.target, ast.Name)
        for n in kept:
            if self.env[n][1] == "lit":
                self.env[n] = (self.to(self.env[n], "f32"), "f32")
        types = [self.env[n][1] for n in kept]
        low, high = self.op("const {value = 0}", "index"), self.extent(s.iter.args[0])
        step = self.op("const {value = 1}", "index")
        inits = "".join(f", {self.env[n][0]}" for n in kept)
        self.count += 1
        uid = self.count
        args = "".join(f", %{n}{uid} : {t}" for n, t in zip(kept, types, strict=True))
        results = ", ".join(f"%{n}{uid}r" for n in kept)
        self.op(f"{results} = for {low}, {high}, {step}{inits} (%{s.target.id}{uid} : index{args}) {{")
        self.env[s.target.id] = (f"%{s.target.id}{uid}", "index")
        for n, t in zip(kept, types, strict=True):
            self.env[n] = (f"%{n}{uid}", t)
        self.depth += 1
        for x in s.body:
            self.statement(x)
        self.op("yield " + ", ".join(self.to(self.env[n], t) for n, t in zip(kept, types, strict=True)))
        self.depth -= 1
        self.op("} : " + ", ".join(types))
        for n, t in zip(kept, types, strict=True):
            self.env[n] = (f"%{n}{uid}r", t)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.For):
            bound = [t for x in s.body if isinstance(x, (ast.Assign, ast.AugAssign)) for t in ast.walk(x)]
            stored = {t.id for t in bound if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}
            kept = [n for n in self.env if n in stored]
            if kept and self.depth > 1:
                self.local_loop(s, kept)
                return
            assert isinstance(s.iter, ast.Call)
            names = [n.id for n in (s.target.elts if isinstance(s.target, ast.Tuple) else [s.target])]  # type: ignore[attr-defined]
            ext = [self.extent(e) for e in s.iter.args]
            args = ", ".join(f"%{n}{self.count} : index" for n in names)
            for n in names:
                self.env[n] = (f"%{n}{self.count}", "index")
            self.op(f"grid {', '.join(ext)} ({args}) {{")
            self.depth += 1
            for x in s.body:
                self.statement(x)
            self.op("yield")
            self.depth -= 1
            self.op("}")
            return
        if isinstance(s, ast.If):
            self.op(f"if {self.expr(s.test)[0]} () {{")
            for body in (s.body, s.orelse):
                self.depth += 1
                for x in body:
                    self.statement(x)
                self.op("yield")
                self.depth -= 1
                self.op("} () {" if body is s.body else "}")
            return
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            old = ast.Name(s.target.id, ast.Load())
            self.env[s.target.id] = self.expr(ast.BinOp(old, s.op, s.value))
            return
        if isinstance(s, ast.AugAssign):
            sign = isinstance(s.op, ast.Sub)
            self.accumulate(s.target, s.value, "sum" if sign else ACC[type(s.op)], sign)
            return
        assert isinstance(s, ast.Assign)
        target, value = s.targets[0], s.value
        if isinstance(target, ast.Name):
            self.env[target.id] = self.expr(value)
            return
        if isinstance(value, ast.Call) and ast.unparse(value.func) in ("max", "min"):
            same = [ast.unparse(a) == ast.unparse(target) for a in value.args]
            if any(same):
                self.accumulate(target, value.args[1 if same[0] else 0], ast.unparse(value.func), False)
                return
        assert isinstance(target, ast.Subscript)
        name, idx = self.target(target)
        elem = self.buffers[name][0]
        self.op(f"set_element %{name}, {self.to(self.expr(value), elem)}, {idx} ")

    def accumulate(self, target: ast.expr, value: ast.expr, kind: str, negate: bool) -> None:
        assert isinstance(target, ast.Subscript)
        name = ast.unparse(target.value)
        elem = self.buffers[name][0]
        wide = elem
        if kind in ("sum", "prod"):
            self.widen = wide = {"f16": "f32", "bf16": "f32", "i8": "i32"}.get(elem, elem)
        v = self.to(self.expr(value), wide)
        if negate:
            v = self.op(f"neg {v}", wide)
        self.widen = None
        _, idx = self.target(target)
        self.op(f'acc_element %{name}, {v}, {idx} {{kind = "{kind}"}}')

    def target(self, t: ast.Subscript) -> tuple[str, str]:
        idx = t.slice.elts if isinstance(t.slice, ast.Tuple) else [t.slice]
        save, self.widen = self.widen, None
        out = []
        for e in idx:
            v, ty = self.expr(e)
            out.append(v if ty == "index" else self.to((v, ty), "index"))
        self.widen = save
        return ast.unparse(t.value), ", ".join(out)

    def to(self, x: tuple[Any, str], t: str) -> str:
        v, ty = x
        if ty == "lit":
            key = "fvalue" if t[0] in "fb" else "value"
            return self.op(f"const {{{key} = {float(v) if key == 'fvalue' else int(v)}}}", t)
        return v if ty == t else self.op(f"cast {v}", t)

    def expr(self, e: ast.expr) -> tuple[Any, str]:
        if isinstance(e, ast.Constant):
            return e.value, "lit"
        if isinstance(e, ast.UnaryOp):
            v, t = self.expr(e.operand)
            return (-v, t) if t == "lit" else (self.op(f"neg {v}", t), t)
        if isinstance(e, ast.Name):
            if e.id in self.sizes:
                return self.extent(e), "index"
            return self.env[e.id]
        if isinstance(e, ast.Subscript):
            name, idx = self.target(e)
            t = self.buffers[name][0]
            return self.op(f"element %{name}, {idx}", t), t
        if isinstance(e, ast.Call):
            f = ast.unparse(e.func)
            if f in ("f32", "f16", "i32"):
                return self.to(self.expr(e.args[0]), f), f
            if f == "where":
                c = self.expr(e.args[0])[0]
                a, b, t = self.two(self.expr(e.args[1]), self.expr(e.args[2]))
                return self.op(f"select {c}, {a}, {b}", t), t
            if f in ("max", "min"):
                a, b, t = self.two(*(self.expr(x) for x in e.args))
                return self.op(f"{f} {a}, {b}", t), t
            v, t = self.expr(e.args[0])
            return self.op(f"{f} {v}", t), t
        if isinstance(e, ast.IfExp):
            c = self.expr(e.test)[0]
            at = len(self.lines)
            self.op(f"if {c} () {{")
            self.depth += 1
            a = self.expr(e.body)
            t = "f32" if a[1] == "lit" else a[1]
            self.op(f"yield {self.to(a, t)}")
            self.depth -= 1
            self.op("} () {")
            self.depth += 1
            self.op(f"yield {self.to(self.expr(e.orelse), t)}")
            self.depth -= 1
            self.count += 1
            self.lines[at] = self.lines[at].replace("if ", f"%v{self.count} = if ", 1)
            self.op(f"}} : {t}")
            return f"%v{self.count}", t
        if isinstance(e, ast.Compare):
            a, b, _ = self.two(self.expr(e.left), self.expr(e.comparators[0]))
            return self.op(f"{COMPARE[type(e.ops[0])]} {a}, {b}", "i1"), "i1"
        assert isinstance(e, ast.BinOp), ast.dump(e)
        a, b, t = self.two(self.expr(e.left), self.expr(e.right))
        return self.op(f"{BINARY[type(e.op)]} {a}, {b}", t), t

    def two(self, a: tuple[Any, str], b: tuple[Any, str]) -> tuple[str, str, str]:
        kinds = {t for t in (a[1], b[1]) if t not in ("lit", "index")}
        t = "index" if not kinds else kinds.pop() if len(kinds) == 1 else "f32"
        if self.widen and t[0] in "fbi" and t not in ("index", "i1"):
            t = self.widen
        return self.to(a, t), self.to(b, t), t

    # -- reference --

    def reference(self, args: dict[str, np.ndarray]) -> None:
        """Runs Python's loops on the arrays in place (bf16 as uint16). Float values must be exact on the way."""
        self.args = args
        env = {**self.sizes, **{n: v for n, (_, v) in self.scalars.items()}}
        for s in self.tree.body:
            self.run(s, env)

    def run(self, s: ast.stmt, env: dict[str, Any]) -> None:
        if isinstance(s, ast.For):
            assert isinstance(s.iter, ast.Call)
            names = [n.id for n in (s.target.elts if isinstance(s.target, ast.Tuple) else [s.target])]  # type: ignore[attr-defined]
            for at in np.ndindex(*(max(self.size(ast.unparse(e)), 0) for e in s.iter.args)):
                env.update(zip(names, at, strict=True))
                for x in s.body:
                    self.run(x, env)
            return
        if isinstance(s, ast.If):
            try:
                test = self.value(s.test, env)
            except Outside:
                test = False
            for x in s.body if test else s.orelse:
                self.run(x, env)
            return
        try:
            if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
                old = ast.Name(s.target.id, ast.Load())
                env[s.target.id] = self.value(ast.BinOp(old, s.op, s.value), env)
            elif isinstance(s, ast.AugAssign):
                value = self.value(ast.BinOp(s.target, s.op, s.value), env)
                self.put(s.target, value, env)
            elif isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
                env[s.targets[0].id] = self.value(s.value, env)
            elif isinstance(s, ast.Assign):
                self.put(s.targets[0], self.value(s.value, env), env)
        except Outside:
            return

    def at(self, t: ast.Subscript, env: dict[str, Any]) -> tuple[str, tuple[int, ...]]:
        idx = t.slice.elts if isinstance(t.slice, ast.Tuple) else [t.slice]
        name = ast.unparse(t.value)
        at = tuple(int(self.value(e, env)) for e in idx)
        if any(not 0 <= i < n for i, n in zip(at, self.dims[name], strict=True)):
            raise Outside
        return name, at

    def put(self, t: Any, v: float, env: dict[str, Any]) -> None:
        name, at = self.at(t, env)
        self.args[name][at] = bf16(v).item() if self.buffers[name][0] == "bf16" else v

    def value(self, e: ast.expr, env: dict[str, Any]) -> Any:
        if isinstance(e, ast.Constant):
            return e.value
        if isinstance(e, ast.Name):
            return env[e.id]
        if isinstance(e, ast.UnaryOp):
            return -self.value(e.operand, env)
        if isinstance(e, ast.Subscript):
            name, at = self.at(e, env)
            v = self.args[name][at]
            return float(from_bf16(v[None])[0]) if self.buffers[name][0] == "bf16" else v.item()
        if isinstance(e, ast.Call):
            f = ast.unparse(e.func)
            a = [self.value(x, env) for x in e.args]
            fns: dict[str, Any] = {
                "max": max,
                "min": min,
                "where": lambda c, x, y: x if c else y,
                "abs": abs,
                "i32": int,
            }
            return fns.get(f, float)(*a)
        if isinstance(e, ast.IfExp):
            return self.value(e.body if self.value(e.test, env) else e.orelse, env)
        if isinstance(e, ast.Compare):
            a, b = self.value(e.left, env), self.value(e.comparators[0], env)
            return {"lt": a < b, "gt": a > b, "le": a <= b, "ge": a >= b, "eq": a == b, "ne": a != b}[
                COMPARE[type(e.ops[0])]
            ]
        assert isinstance(e, ast.BinOp)
        a, b = self.value(e.left, env), self.value(e.right, env)
        k = type(e.op)
        return (
            a + b
            if k is ast.Add
            else a - b
            if k is ast.Sub
            else a * b
            if k is ast.Mult
            else a // b
            if k is ast.FloorDiv
            else a % b
            if k is ast.Mod
            else a / b
        )

    # -- arguments --

    def arrays(self, seed: int, high: int = 4) -> dict[str, np.ndarray]:
        """Small integers in every tensor."""
        rng = np.random.default_rng(seed)
        out = {}
        for n, (elem, _) in self.buffers.items():
            x = rng.integers(-high, high, self.dims[n], endpoint=True)
            out[n] = bf16(x) if elem == "bf16" else np.ascontiguousarray(x.astype(NUMPY[elem]))
        return out


def launch_grid(text: str, k: Grid) -> tuple[int, ...]:
    """Blocks along each grid axis, from the kernel's attributes."""
    out = []
    dims = list(k.dims.values())
    for a in range(3):
        m = re.search(rf"grid{a} = \[([-\d, ]*)\]", text)
        if not m:
            break
        v = [int(x) for x in m[1].split(",")]
        n = 1
        for p, axis, c in zip(v[::3], v[1::3], v[2::3], strict=True):
            size = axis if p < 0 else dims[p][axis]
            n *= -(-size // c)
        out.append(n)
    return tuple(out)


def tlc(k: Grid, folder: Any, *options: str) -> subprocess.CompletedProcess[bytes]:
    """build/tlc on the kernel's text."""
    path = folder / "k.tir"
    path.write_text(k.text)
    tool = BUILD / "tlc"
    assert tool.exists(), f"{tool} is not there: make tools"
    return subprocess.run([str(tool), *options, str(path)], capture_output=True, check=False)


def simulate(k: Grid, args: dict[str, np.ndarray], folder: Any, device: Any) -> str:
    """Compiles the kernel through the whole pipeline and runs it on the arrays; gives the remarks of the compiler."""
    text = tlc(k, folder, "--passes", "all")
    assert text.returncode == 0, text.stderr.decode()
    code = tlc(k, folder, "--passes", "all", "--emit", "hsaco", "-o", str(folder / "k.hsaco"))
    assert code.returncode == 0, code.stderr.decode()
    tir = text.stdout.decode()
    block = re.search(r"block = (\d+)", tir)
    assert block
    values: list[Any] = []
    for x in args.values():
        values.append(x)
        if k.dynamic:
            values += [np.int64(d) for d in x.shape]
    for t, v in k.scalars.values():
        values.append(np.array([v], NUMPY[t]).tobytes().ljust(8, b"\0"))
    module = device.load(str(folder / "k.hsaco"))
    module.kernels["k"].launch(launch_grid(tir, k), (int(block[1]), 1, 1), values)
    return text.stderr.decode()
