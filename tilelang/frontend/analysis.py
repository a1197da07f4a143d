"""Facts about a function's names: which reads may find no value, and which names are live after a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterable

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


LEAVES = frozenset({ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue})
_fields_of: dict[type, tuple[str, ...]] = {}
_CONTEXT = frozenset({"ctx", "op", "ops", "type_ignores", "type_comment", "kind"})


def children(node: ast.AST) -> list[ast.AST]:
    """Child nodes, without contexts and operators; faster than ast.iter_child_nodes."""
    cls = type(node)
    names = _fields_of.get(cls)
    if names is None:
        names = _fields_of[cls] = tuple(f for f in cls._fields if f not in _CONTEXT)
    out: list[ast.AST] = []
    for f in names:
        v = getattr(node, f, None)
        if isinstance(v, ast.AST):
            out.append(v)
        elif type(v) is list:
            out += [x for x in v if isinstance(x, ast.AST)]
    return out


def walk(node: ast.AST) -> list[ast.AST]:
    """The node and all below it (order: not promised)."""
    out = [node]
    for n in out:
        if type(n) not in LEAVES:
            out += children(n)
    return out


def target_names(node: ast.AST) -> set[str]:
    """Names that an assignment target binds."""
    if type(node) is ast.Name:
        return {node.id} if type(node.ctx) is not ast.Load else set()
    return {n.id for n in walk(node) if type(n) is ast.Name and type(n.ctx) is not ast.Load}


def assigned(nodes: Iterable[ast.AST], named: bool = True) -> set[str]:
    """Names bound by statements (not in nested functions; comprehension variables are their own).

    named=False: no expression among them contains ``:=``, so only targets of statements count."""
    out: set[str] = set()
    todo = list(nodes)
    while todo:
        n = todo.pop()
        cls = type(n)
        if cls is ast.Name:
            if type(n.ctx) is not ast.Load:  # type: ignore[attr-defined]
                out.add(n.id)  # type: ignore[attr-defined]
        elif cls in LEAVES or cls is ast.Lambda:
            continue
        elif not named and cls in _TARGETS:
            for f in _TARGETS[cls]:
                v = getattr(n, f)
                todo += v if type(v) is list else [v]
        elif not named and isinstance(n, ast.expr) and cls not in (ast.Tuple, ast.List, ast.Starred):
            continue
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.add(n.name)
        elif isinstance(n, ast.comprehension):
            todo += [n.iter, *n.ifs]
        else:
            todo += children(n)
    return out


# What can hold targets in a statement, where expressions bind nothing.
_TARGETS: dict[type, tuple[str, ...]] = {
    ast.Assign: ("targets",),
    ast.AugAssign: ("target",),
    ast.AnnAssign: ("target",),
    ast.Delete: ("targets",),
    ast.For: ("target", "body", "orelse"),
    ast.While: ("body", "orelse"),
    ast.If: ("body", "orelse"),
    ast.Expr: (),
    ast.Return: (),
    ast.Assert: (),
    ast.Raise: (),
}


def loaded(node: ast.AST | None) -> set[str]:
    """Names read anywhere in it, nested functions included."""
    if node is None:
        return set()
    return {n.id for n in walk(node) if type(n) is ast.Name and type(n.ctx) is ast.Load}


def walrus(node: ast.AST) -> set[str]:
    return {n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)}


class Definite:
    """Marks reads of local names that some path reaches without an assignment: ``unsure`` holds ids of Name nodes."""

    def __init__(self, local: set[str], params: set[str]) -> None:
        self.local = local
        self.unsure: set[int] = set()
        self.known = set(params)

    def run(self, body: list[ast.stmt]) -> bool:
        """Whether the end of the body can be reached."""
        return self.block(body)

    def block(self, body: list[ast.stmt]) -> bool:
        return all(self.stmt(s) for s in body)

    def read(self, node: ast.AST | None) -> None:
        """An expression, in evaluation order as far as assignments inside it matter."""
        if node is None:
            return
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id in self.local and node.id not in self.known:
                self.unsure.add(id(node))
            return
        if isinstance(node, ast.NamedExpr):
            self.read(node.value)
            self.known.add(node.target.id)
            return
        if isinstance(node, (ast.BoolOp, ast.IfExp)):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.test, node.body, node.orelse]
            self.read(parts[0])
            before = set(self.known)
            for p in parts[1:]:
                self.read(p)
            self.known = before
            return
        if isinstance(node, COMPREHENSIONS):
            before = set(self.known)
            for g in node.generators:
                self.read(g.iter)
                self.known |= target_names(g.target)
                for c in g.ifs:
                    self.read(c)
            for part in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
                self.read(part)
            self.known = before
            return
        if isinstance(node, ast.Lambda):
            return  # runs later; its reads are Python's own
        for child in children(node):
            self.read(child)

    def stmt(self, s: ast.stmt) -> bool:
        """Whether control goes on after it."""
        if isinstance(s, (ast.Return, ast.Raise)):
            for child in children(s):
                self.read(child)
            return False
        if isinstance(s, (ast.Break, ast.Continue)):
            return False
        if isinstance(s, ast.If):
            self.read(s.test)
            before = set(self.known)
            a = self.block(s.body)
            after = self.known
            self.known = before
            b = self.block(s.orelse)
            if a and b:
                self.known = self.known & after
            elif a:
                self.known = after
            return a or b
        if isinstance(s, (ast.For, ast.While)):
            self.read(s.iter if isinstance(s, ast.For) else s.test)
            before = set(self.known)
            if isinstance(s, ast.For):
                self.known |= target_names(s.target)
            self.block(s.body)
            self.known = before
            return True
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.known.add(s.name)
            return True
        if isinstance(s, ast.Assign):
            self.read(s.value)
            for t in s.targets:
                self.read(t)
                self.known |= target_names(t)
            return True
        if isinstance(s, (ast.AugAssign, ast.AnnAssign)):
            if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and s.target.id not in self.known:
                self.unsure.add(id(s.target))
            self.read(s.value)
            self.read(s.target)
            if s.value is not None:
                self.known |= target_names(s.target)
            return True
        if isinstance(s, ast.Delete):
            for t in s.targets:
                self.known -= target_names(t)
            return True
        for child in children(s):
            self.read(child)
        return True


class Liveness:
    """Sets ``live_after`` on If, For and While, ``live_head`` on loops, ``live_else`` on If."""

    def __init__(self, always: set[str]) -> None:
        self.always = always
        self.facts: dict[int, tuple[set[str], set[str]]] = {}  # of simple statements and tests: names read, names bound

    def block(self, body: list[ast.stmt], after: set[str]) -> set[str]:
        live = after
        for s in reversed(body):
            live = self.stmt(s, live)
        return live

    def read(self, node: ast.expr) -> set[str]:
        found = self.facts.get(id(node))
        if found is None:
            found = self.facts[id(node)] = (loaded(node), set())
        return found[0]

    def stmt(self, s: ast.stmt, after: set[str]) -> set[str]:
        cls = type(s)
        if cls is ast.If:
            s.live_after = after | self.always  # type: ignore[attr-defined]
            other = self.block(s.orelse, after) if s.orelse else after  # type: ignore[attr-defined]
            s.live_else = other | self.always  # type: ignore[attr-defined]
            return self.block(s.body, after) | other | self.read(s.test)  # type: ignore[attr-defined]
        if cls is ast.For:
            assert isinstance(s, ast.For)
            bound = target_names(s.target)
            after = after | set(getattr(s, "stop_flags", ()))
            head = after
            while True:  # until nothing is added: what is live at the end of the body is what is live at its head
                new = after | (self.block(s.body, head) - bound)
                if new <= head:
                    break
                head = head | new
            s.live_after = after | self.always  # type: ignore[attr-defined]
            s.live_head = head | self.always  # type: ignore[attr-defined]
            return head | self.read(s.iter)
        if cls is ast.While:
            assert isinstance(s, ast.While)
            bound = walrus(s.test)
            read = (self.read(s.test) - bound) | set(getattr(s, "stop_flags", ()))
            head = read | (after - bound)
            while True:
                inner = self.block(s.body, head)
                new = read | ((after | inner) - bound)
                if new <= head:
                    break
                head = head | new
            s.live_after = after | self.always  # type: ignore[attr-defined]
            s.live_head = head | after | inner | self.always  # type: ignore[attr-defined]
            return head
        found = self.facts.get(id(s))
        if found is None:
            found = self.facts[id(s)] = self.simple(s)
        return (after - found[1]) | found[0]

    def simple(self, s: ast.stmt) -> tuple[set[str], set[str]]:
        """Names that a statement without blocks reads, and those that it surely binds."""
        read: set[str] = set()
        bound: set[str] = set()
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return loaded(s), {s.name}
        for n in walk(s):
            if type(n) is ast.Name:
                (read if type(n.ctx) is ast.Load else bound).add(n.id)
        if isinstance(s, ast.AugAssign):
            return read | bound, set()
        if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None:
            targets = s.targets if isinstance(s, ast.Assign) else [s.target]
            return read, target_names(targets[0]) if len(targets) == 1 else set().union(*map(target_names, targets))
        return read, set()


def nested_reads(fn: ast.FunctionDef) -> set[str]:
    """Names that functions and lambdas inside of `fn` read: they may be called at any time."""
    out: set[str] = set()
    for n in walk(fn):
        if n is not fn and isinstance(n, (ast.FunctionDef, ast.Lambda)):
            out |= loaded(n)
    return out
