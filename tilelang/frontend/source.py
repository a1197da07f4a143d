"""The source of a Python function, its names, and its rewritten form."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import threading
import types
from typing import Any

from ..errors import CompileError
from .analysis import COMPREHENSIONS, LEAVES, assigned, children, target_names
from .base import NOWHERE, PLACES, Place, give_lock, parse_python
from .rewrite import TABLE, TL, Refusal, rewrite

NO_SOURCE = (
    "put the kernel into a file or a notebook cell; code made by exec() needs its text in linecache.cache "
    "under the file name that compile() was given"
)


class Source:
    """Source of one function, taken when it is defined: the file may be edited, or the cell run again, later."""

    lock: threading.Lock

    def __init__(self, fn: types.FunctionType, is_kernel: bool) -> None:
        self.fn = fn
        self.is_kernel = is_kernel
        self.file = fn.__code__.co_filename
        self.first = fn.__code__.co_firstlineno
        self.lines: list[str] = []
        linecache.checkcache(self.file)
        lines = linecache.getlines(self.file, fn.__globals__)
        if 0 < self.first <= len(lines):
            try:
                self.lines = inspect.getblock(lines[self.first - 1 :])
            except (SyntaxError, IndentationError):
                self.lines = lines[self.first - 1 :]
        give_lock(self)
        self.code: types.CodeType | None = None
        self.table: list[Any] = []
        self._tree: ast.FunctionDef | None = None
        self._free: dict[str, ast.Name] | None = None
        self._paths: list[tuple[str, ...]] = []
        self._annotations: dict[str, ast.expr | None] = {}

    @property
    def place(self) -> Place:
        """Of the `def` line."""
        line = self.first
        for i, text in enumerate(self.lines):
            if text.lstrip().startswith("def "):
                line = self.first + i
                col = len(text) - len(text.lstrip()) + 1
                return (self.file, line, col, len(text.rstrip()) + 1)
        return (self.file, line, 0, 0)

    def parse(self) -> ast.FunctionDef:
        """A fresh tree with the file's line numbers and columns."""
        name = self.fn.__code__.co_name
        if not self.lines:
            raise CompileError(
                f"the source of {name} is not available: Python kept no text for {self.file!r}, line {self.first}",
                self.file,
                self.first,
                hint=NO_SOURCE,
                code="NO_SOURCE",
            )
        text = "".join(self.lines)
        indented = text[:1].isspace() and self.first > 1
        start = "\n" * (self.first - 2) + "if 1:\n" if indented else "\n" * (self.first - 1)
        try:
            tree = parse_python(start + text)
        except SyntaxError as e:
            raise CompileError(
                f"the source of {name} cannot be read: {e.msg}", self.file, self.first, hint=NO_SOURCE, code="NO_SOURCE"
            ) from e
        body: Any = tree.body[0].body if indented else tree.body  # type: ignore[attr-defined]
        node = body[0]
        if isinstance(node, ast.AsyncFunctionDef):
            Refusal(self.file, self.lines, self.first).fail(
                node, "`async` is refused in a kernel", "use a plain function"
            )
        if not isinstance(node, ast.FunctionDef) or node.name != name:
            raise CompileError(
                f"the text of {self.file!r} at line {self.first} is not the source of {name}: it changed since",
                self.file,
                self.first,
                hint="run the definition again" if node is not None else NO_SOURCE,
                code="NO_SOURCE",
            )
        return node

    # -- names --

    def _analyse(self) -> None:
        """Parses, once, and notes what is asked of the unchanged tree."""
        if self._free is not None:
            return
        tree = self.parse()
        free: dict[str, ast.Name] = {}
        paths: dict[tuple[str, ...], None] = {}
        args = all_args(tree.args)
        bound = assigned(tree.body, any(":=" in line for line in self.lines)) | {a.arg for a in args}
        for s in tree.body:
            find_free(s, bound, free, paths)
        self._annotations = {a.arg: a.annotation for a in args}
        self._tree = tree
        self._paths = list(paths)
        self._free = free

    def annotation_nodes(self) -> dict[str, ast.expr | None]:
        """Source of the parameters' annotations."""
        self._analyse()
        return self._annotations

    def free_names(self) -> dict[str, ast.Name]:
        """Names that the body reads and does not bind, with their first place."""
        self._analyse()
        assert self._free is not None
        return self._free

    def paths(self) -> list[tuple[str, ...]]:
        """The free names with the attributes that are read of them: ("tl", "float32")."""
        self._analyse()
        return self._paths

    def name_place(self, ident: str) -> Place:
        node = self.free_names().get(ident)
        if node is None:
            return self.place
        line, col, end = getattr(node, "real", None) or Refusal(self.file, self.lines, self.first).column(node)
        return (self.file, line, col, end)

    # -- the rewritten function --

    def compiled(self) -> types.CodeType:
        """Code of the rewritten function; made once."""
        with self.lock:
            if self.code is None:
                self._analyse()
                tree, self._tree = self._tree or self.parse(), None
                self._refuse_signature(tree)
                new, self.table = rewrite(tree, self.file, self.lines, self.first, self.is_kernel)
                new.args.defaults = [ast.copy_location(ast.Constant(None), new) for _ in new.args.defaults]
                new.args.kw_defaults = [
                    None if d is None else ast.copy_location(ast.Constant(None), new) for d in new.args.kw_defaults
                ]
                places = self._number(new) if sys.version_info < (3, 11) else None
                module = ast.Module([new], [])
                try:
                    code = compile(module, self.file, "exec", dont_inherit=True)
                except TypeError:  # a node without a place
                    code = compile(ast.fix_missing_locations(module), self.file, "exec", dont_inherit=True)
                found = next(c for c in code.co_consts if isinstance(c, types.CodeType))
                if places is not None:
                    set_places(found, places)
                self.code = found
            return self.code

    def _refuse_signature(self, tree: ast.FunctionDef) -> None:
        refuse = Refusal(self.file, self.lines, self.first)
        args = tree.args
        if self.is_kernel:
            for a in (args.vararg, args.kwarg):
                if a is not None:
                    refuse.fail(a, f"*{a.arg} in the signature of a kernel is refused", "name each parameter")
        for d in [*args.defaults, *(d for d in args.kw_defaults if d)]:
            if isinstance(d, (ast.List, ast.Dict, ast.Set, *COMPREHENSIONS)):
                refuse.fail(d, "a mutable default is refused", "use a tuple or None")

    def _number(self, tree: ast.AST) -> dict[int, Place]:
        """Python 3.10 has no positions in code objects, only lines: each node gets a line number of its own, which the
        table turns into its place."""
        table: dict[int, Place] = {}
        refuse = Refusal(self.file, self.lines, self.first)
        for n in ast.walk(tree):
            if hasattr(n, "lineno"):
                line, col, end = refuse.column(n)
                number = len(table) + 1
                table[number] = (self.file, line, col, end)
                n.real = (line, col, end)  # type: ignore[attr-defined]
                n.lineno = n.end_lineno = number  # type: ignore[attr-defined]
                n.col_offset = n.end_col_offset = 0  # type: ignore[attr-defined]
        for n in ast.walk(tree):
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
                n.func.end_lineno = n.lineno  # the line that CALL_METHOD gets
        return table

    def function(self, trace: Any, names: dict[str, Any]) -> types.FunctionType:
        """The rewritten function for one trace; `names` holds the captured names' values."""
        code = self.compiled()
        scope = dict(names)
        scope[TL] = trace
        scope[TABLE] = self.table
        scope["__builtins__"] = __builtins__
        scope["__name__"] = self.fn.__globals__.get("__name__", "")
        f = types.FunctionType(code, scope, self.fn.__name__, self.fn.__defaults__)
        f.__kwdefaults__ = self.fn.__kwdefaults__
        return f


def set_places(code: types.CodeType, places: dict[int, Place]) -> None:
    """Places by (made up) line number, for a code object and those inside of it."""
    PLACES.set_columns(code, places)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            set_places(c, places)


def all_args(a: ast.arguments) -> list[ast.arg]:
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x is not None)]


def find_free(node: ast.AST, bound: set[str], free: dict[str, ast.Name], paths: dict[tuple[str, ...], None]) -> None:
    """Collects free names and attribute paths in reading order."""
    cls = type(node)
    if cls is ast.Name:
        assert isinstance(node, ast.Name)
        if node.id not in bound and type(node.ctx) is ast.Load:
            free.setdefault(node.id, node)
            paths[(node.id,)] = None
    elif cls in LEAVES:
        return
    elif cls is ast.Attribute:
        assert isinstance(node, ast.Attribute)
        attrs = [node.attr]
        base: ast.expr = node.value
        while isinstance(base, ast.Attribute):
            attrs.append(base.attr)
            base = base.value
        if not isinstance(base, ast.Name):
            find_free(base, bound, free, paths)
        elif base.id not in bound:
            free.setdefault(base.id, base)
            paths[(base.id, *reversed(attrs))] = None
    elif isinstance(node, (ast.Lambda, ast.FunctionDef)):
        body = node.body if isinstance(node.body, list) else [node.body]
        inner = bound | assigned(body) | {a.arg for a in all_args(node.args)}
        for d in [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
            find_free(d, bound, free, paths)
        for s in body:
            find_free(s, inner, free, paths)
    else:
        if isinstance(node, COMPREHENSIONS):
            bound = bound | {n for g in node.generators for n in target_names(g.target)}
        for child in children(node):
            find_free(child, bound, free, paths)


__all__ = ["NOWHERE", "Source"]
