"""The source of a kernel or helper, rewritten so that control flow and rebinding go through the trace.

Loops and branches stay loops and branches of the same function (no nested functions are made): they iterate over an
object of control.py that decides how often the body is traced, and the names that are rebound go in and out of it as
tuples. break, continue and early return become flags first. Nodes keep their places, so that tracebacks and code
positions of the rewritten function are those of the user's source.
"""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from ..errors import CompileError
from .analysis import LEAVES, Definite, Liveness, assigned, children, nested_reads, target_names, walk, walrus
from .control import Names

TL = "__tl__"
TABLE = "__tl_table__"
OPS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "shr", ast.Pow: "pow",
    ast.MatMult: "matmul",
}  # fmt: skip
REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Global: ("`global` is refused in a kernel", "return values from a @tl.func helper, or store to a tensor"),
    ast.Nonlocal: ("`nonlocal` is refused in a kernel", "return values from a @tl.func helper"),
    ast.Try: ("`try` is refused in a kernel: nothing raises at run time", "check with if, or tl.assert_"),
    ast.With: ("`with` is refused in a kernel", "call the functions directly"),
    ast.AsyncFor: ("`async` is refused in a kernel", "use a plain for loop"),
    ast.AsyncWith: ("`async` is refused in a kernel", "call the functions directly"),
    ast.AsyncFunctionDef: ("`async` is refused in a kernel", "use a plain function"),
    ast.Await: ("`await` is refused in a kernel", "call the function directly"),
    ast.Yield: ("`yield` is refused in a kernel", "use a loop"),
    ast.YieldFrom: ("`yield` is refused in a kernel", "use a loop"),
    ast.ClassDef: ("`class` is refused in a kernel", "define it outside"),
    ast.Import: ("`import` is refused in a kernel", "import at the top of the module"),
    ast.ImportFrom: ("`import` is refused in a kernel", "import at the top of the module"),
}
for _name, _what in (("TryStar", ast.Try), ("Match", None)):
    if hasattr(ast, _name):
        REFUSED[getattr(ast, _name)] = (
            REFUSED[_what] if _what else ("`match` is refused in a kernel", "use if / elif / else")
        )


class Refusal:
    """Raises located errors while rewriting."""

    def __init__(self, file: str, lines: list[str], first_line: int) -> None:
        self.file = file
        self.lines = lines
        self.first_line = first_line

    def column(self, node: ast.AST) -> tuple[int, int, int]:
        line = getattr(node, "lineno", self.first_line)
        raw = self.lines[line - self.first_line] if 0 <= line - self.first_line < len(self.lines) else ""
        data = raw.encode()
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
        if getattr(node, "end_lineno", line) != line or end is None:
            end = len(data.rstrip())
        return line, len(data[:start].decode(errors="replace")) + 1, len(data[:end].decode(errors="replace")) + 1

    def fail(self, node: ast.AST, message: str, hint: str | None = None) -> NoReturn:
        line, col, end = self.column(node)
        raise CompileError(message, self.file, line, col, end, hint, "REFUSED")


def at(new: Any, old: Any) -> Any:
    """`new` with the place of `old` (ast.copy_location, faster)."""
    new.lineno = old.lineno
    new.col_offset = old.col_offset
    new.end_lineno = old.end_lineno
    new.end_col_offset = old.end_col_offset
    return new


LOAD = ast.Load()
STORE = ast.Store()


def name(ident: str, node: ast.AST, store: bool = False) -> ast.Name:
    return at(ast.Name(ident, STORE if store else LOAD), node)


def call(method: str, node: ast.AST, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    """``__tl__.method(*args)`` at the node's place."""
    fn = at(ast.Attribute(name(TL, node), method, LOAD), node)
    return at(ast.Call(fn, list(args), keywords or []), node)


def constant(value: Any, node: ast.AST) -> ast.Constant:
    return at(ast.Constant(value), node)


def assign(target: ast.expr, value: ast.expr, node: ast.AST) -> ast.Assign:
    return at(ast.Assign([target], value), node)


def tuple_of(names: list[str], node: ast.AST, store: bool = False) -> ast.Tuple:
    ctx: ast.expr_context = STORE if store else LOAD
    return at(ast.Tuple([name(n, node, store) for n in names], ctx), node)


# ---- break, continue, return ----------------------------------------------------------------------------------------


class Jumps:
    """Replaces jumps by flags; what follows a statement that may jump runs only if no flag is set."""

    def __init__(self, is_kernel: bool, refuse: Refusal) -> None:
        self.is_kernel = is_kernel
        self.refuse = refuse
        self.count = 0
        self.early_return = False

    def function(self, fn: ast.FunctionDef, end_reachable: bool) -> list[ast.stmt]:
        body = list(fn.body)
        if self.is_kernel:
            for n in self.own_returns(body):
                if n.value is not None and not (isinstance(n.value, ast.Constant) and n.value.value is None):
                    self.refuse.fail(n, "a kernel returns nothing", "store to a tensor: C[...] = value")
            if body and isinstance(body[-1], ast.Return):
                body = body[:-1] or [at(ast.Pass(), fn)]
        returns = self.own_returns(body)
        self.early_return = bool(returns) and not (len(returns) == 1 and returns[0] is body[-1])
        if not self.early_return:
            return self.block(body, None)
        if not self.is_kernel and end_reachable:
            body.append(at(ast.Return(constant(None, body[-1])), body[-1]))
        start: list[ast.stmt] = [assign(name("__ret", fn.body[0], True), constant(False, fn.body[0]), fn.body[0])]
        out = start + self.block(body, None)
        if not self.is_kernel:
            out.append(at(ast.Return(name("__rv", body[-1])), body[-1]))
        return out

    @staticmethod
    def own_returns(body: list[ast.stmt]) -> list[ast.Return]:
        out: list[ast.Return] = []
        todo: list[ast.AST] = list(body)
        while todo:
            n = todo.pop()
            if isinstance(n, ast.Return):
                out.append(n)
            elif not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.expr)):
                todo += children(n)
        return out

    def own_jumps(self, body: list[ast.stmt]) -> set[type]:
        """Kinds of jumps in a loop's body that belong to this loop."""
        out: set[type] = set()
        for s in body:
            if isinstance(s, (ast.Break, ast.Continue)):
                out.add(type(s))
            elif isinstance(s, ast.If):
                out |= self.own_jumps(s.body) | self.own_jumps(s.orelse)
        return out

    def flags_of(self, s: ast.stmt, loop: dict[type, str] | None) -> list[str]:
        """Flags that a statement may set."""
        out = []
        if isinstance(s, ast.If) and loop:
            out += [loop[k] for k in sorted(self.own_jumps([s]), key=lambda k: k.__name__) if k in loop]
        if self.early_return and self.own_returns([s]):
            out.append("__ret")
        return out

    def block(self, body: list[ast.stmt], loop: dict[type, str] | None) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(body):
            if isinstance(s, (ast.Break, ast.Continue)):
                assert loop is not None
                out.append(assign(name(loop[type(s)], s, True), constant(True, s), s))
                return out
            if isinstance(s, ast.Return) and self.early_return:
                if not self.is_kernel:
                    out.append(assign(name("__rv", s, True), s.value or constant(None, s), s))
                out.append(assign(name("__ret", s, True), constant(True, s), s))
                return out
            flags = self.flags_of(s, loop)
            if isinstance(s, ast.If):
                s.body = self.block(s.body, loop) or [at(ast.Pass(), s)]
                s.orelse = self.block(s.orelse, loop)
                out.append(s)
            elif isinstance(s, (ast.For, ast.While)):
                out += self.loop(s)
            else:
                out.append(s)
            if flags and i + 1 < len(body):
                rest = self.block(body[i + 1 :], loop)
                out.append(self.guard(flags, rest, body[i + 1]))
                return out
        return out

    def guard(self, flags: list[str], rest: list[ast.stmt], node: ast.AST) -> ast.If:
        test = call("go", node, *(name(f, node) for f in flags))
        return at(ast.If(test, rest, []), node)

    def loop(self, s: ast.For | ast.While) -> list[ast.stmt]:
        kinds = self.own_jumps(s.body)
        returns = self.early_return and bool(self.own_returns(s.body))
        self.count += 1
        names: dict[type, str] = {}
        out: list[ast.stmt] = []
        stop = []
        if ast.Break in kinds:
            names[ast.Break] = f"__brk{self.count}"
            stop.append(names[ast.Break])
            out.append(assign(name(names[ast.Break], s, True), constant(False, s), s))
        if ast.Continue in kinds:
            names[ast.Continue] = f"__cont{self.count}"
        if returns:
            stop.append("__ret")
        body = self.block(s.body, names)
        if ast.Continue in kinds:
            body.insert(0, assign(name(names[ast.Continue], s, True), constant(False, s), s))
        if stop and isinstance(s, ast.For):
            body = [self.guard(stop, body, s.body[0])]
        s.body = body
        s.stop_flags = stop  # type: ignore[union-attr]
        out.append(s)
        return out


# ---- rewriting ------------------------------------------------------------------------------------------------------


# Expressions that are rewritten somewhere inside; all others stay as they are.
SPECIAL = frozenset({ast.BoolOp, ast.IfExp, ast.UnaryOp, ast.Compare, ast.Lambda})


class Rewriter(ast.NodeTransformer):
    """Rewrites one function; ``table`` collects the Names objects that the code refers to."""

    def __init__(self, refuse: Refusal, table: list[Any]) -> None:
        self.refuse = refuse
        self.table = table
        self.count = 0
        self.unsure: set[int] = set()
        self.nested = False  # functions or lambdas inside
        self.named = True  # some expression contains :=
        self.used_names: set[str] = set()  # names in some tuple: they need a first value
        self.made = {"__rv"}  # names of our own that branches rebind
        self.allocated: set[str] = set()
        self.line_of: dict[str, int] = {}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr):
            for n in walk(node):
                if type(n) in SPECIAL or id(n) in self.unsure:
                    break
            else:
                return node
        return super().visit(node)

    # -- functions --

    def function(self, fn: ast.FunctionDef, is_kernel: bool) -> ast.FunctionDef:
        args = fn.args
        params = [a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
        params += [a.arg for a in (args.vararg, args.kwarg) if a]
        self.named = self.find_refused(fn)
        local = self.assigned(fn.body) | set(params)
        definite = Definite(local, set(params))
        reachable = definite.run(fn.body)
        self.unsure = definite.unsure
        fn.body = Jumps(is_kernel, self.refuse).function(fn, reachable)
        Liveness(nested_reads(fn) if self.nested else set()).block(fn.body, set())
        for p in params:
            self.line_of[p] = fn.lineno
        body = self.statements(fn.body)
        start = fn.body[0] if fn.body else fn
        first = sorted((self.used_names & (local | self.made | self.flags(fn.body))) - set(params))
        if first:
            value = at(ast.Attribute(name(TL, start), "UNBOUND", LOAD), start)
            init: ast.stmt = at(ast.Assign([name(n, start, True) for n in first], value), start)
            body.insert(0, init)
        fn.body = body or [at(ast.Pass(), fn)]
        fn.decorator_list = []
        fn.returns = None
        for a in [*args.posonlyargs, *args.args, *args.kwonlyargs, *(x for x in (args.vararg, args.kwarg) if x)]:
            a.annotation = None
        return fn

    def assigned(self, nodes: list[Any]) -> set[str]:
        return assigned(nodes, self.named)

    def flags(self, body: list[ast.stmt]) -> set[str]:
        """Names of ours that jumps became."""
        return {n for n in self.assigned(body) if n.startswith("__")}

    def find_refused(self, fn: ast.FunctionDef) -> bool:
        """Refuses what the language has not; notes allocations. Whether some expression contains ``:=``."""
        named = False
        for n in walk(fn):
            cls = type(n)
            if cls in LEAVES:
                continue
            if cls in REFUSED:
                self.refuse.fail(n, *REFUSED[cls])
            if cls is ast.Assign:
                if self.is_alloc(n.value):  # type: ignore[attr-defined]
                    self.allocated |= {t.id for t in n.targets if type(t) is ast.Name}  # type: ignore[attr-defined]
            elif cls is ast.NamedExpr:
                named = True
            elif cls is ast.Lambda or (cls is ast.FunctionDef and n is not fn):
                self.nested = True
            elif cls in (ast.For, ast.While) and n.orelse:  # type: ignore[attr-defined]
                self.refuse.fail(
                    n.orelse[0],  # type: ignore[attr-defined]
                    "`else` of a loop is refused in a kernel",
                    "set a flag before break and test it after the loop",
                )
        return named

    @staticmethod
    def is_alloc(value: ast.expr) -> bool:
        fn = value.func if isinstance(value, ast.Call) else None
        ident = fn.attr if isinstance(fn, ast.Attribute) else fn.id if isinstance(fn, ast.Name) else ""
        return ident in ("alloc_shared", "alloc_local")

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            new = self.visit(s)
            if isinstance(new, list):
                out += new
            elif new is not None:
                out.append(new)
        return out

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        inner = Rewriter(self.refuse, self.table)
        if node.decorator_list:
            self.refuse.fail(
                node.decorator_list[0],
                "a function inside a kernel takes no decorators",
                "define it outside of the kernel with @tl.func",
            )
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [self.visit(d) if d else d for d in node.args.kw_defaults]
        return inner.function(node, False)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.generic_visit(node)
        return node

    # -- names --

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"__{prefix}{self.count}"

    def note(self, target: ast.AST) -> None:
        for n in target_names(target):
            self.line_of[n] = getattr(target, "lineno", 0)

    def names(self, idents: list[str], body: list[ast.stmt], node: ast.AST) -> ast.expr:
        """An expression for the Names of a loop or branch."""
        self.used_names |= set(idents)
        entry = Names(tuple(idents), tuple(self.line_of.get(i, 0) for i in idents), list(body))
        self.table.append(entry)
        table = name(TABLE, node)
        return at(ast.Subscript(table, constant(len(self.table) - 1, node), LOAD), node)

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and id(node) in self.unsure:
            self.used_names.add(node.id)
            return call("chk", node, node, constant(node.id, node))
        return node

    # -- expressions --

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        begin = "and_begin" if isinstance(node.op, ast.And) else "or_begin"
        values = [self.visit(v) for v in node.values]
        out = values[-1]
        for v in reversed(values[:-1]):
            other = at(ast.IfExp(call("bool_go", node), out, constant(None, node)), node)
            out = call("bool_end", node, call(begin, v, v), other)
        return out

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test, a, b = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        one = at(ast.IfExp(call("ife_then", node), a, constant(None, node)), node)
        two = at(ast.IfExp(call("ife_else", node), b, constant(None, node)), node)
        return call("ife_end", node, call("ife_begin", test, test), one, two)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return call("not_", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        left: ast.expr = node.left
        parts: list[ast.expr] = []
        for i, (op, right) in enumerate(zip(node.ops, node.comparators)):
            use = right
            if i + 1 < len(node.ops):
                temp = self.fresh("cmp")
                right = at(ast.NamedExpr(name(temp, right, True), right), right)
                use = name(temp, right)
            parts.append(at(ast.Compare(left, [op], [right]), node))
            left = use
        out = parts[-1]
        for v in reversed(parts[:-1]):
            other = at(ast.IfExp(call("bool_go", node), out, constant(None, node)), node)
            out = call("bool_end", node, call("and_begin", node, v), other)
        return out

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node.value = self.visit(node.value)
        node.slice = self.index(node.slice)
        return node

    def index(self, node: ast.expr) -> Any:
        """An index, with literal minuses marked."""
        if isinstance(node, ast.Tuple):
            node.elts = [self.index(e) for e in node.elts]
            return node
        if isinstance(node, ast.Slice):
            node.lower = self.index(node.lower) if node.lower else None
            node.upper = self.index(node.upper) if node.upper else None
            node.step = self.visit(node.step) if node.step else None
            return node
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
            and type(node.operand.value) is int
            and node.operand.value > 0
        ):
            return call("neg", node, node.operand)
        return self.visit(node)

    # -- assignments --

    def same(self, a: ast.AST, b: ast.AST) -> bool:
        """Whether two expressions are written alike (one stores, the other loads)."""
        return ast.dump(a).replace("Store()", "Load()") == ast.dump(b).replace("Store()", "Load()")

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript):
            special = self.item_update(node, target)
            if special is not None:
                return special
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            node.value = self.name_value(node, target)
        else:
            node.value = self.visit(node.value)
            node.targets = [self.visit(t) for t in node.targets]
        for t in node.targets:
            self.note(t)
        return node

    def name_value(self, node: ast.Assign, target: ast.Name) -> ast.expr:
        v = node.value
        if self.is_alloc(v):
            return call("named", v, constant(target.id, v), self.visit(v))
        if isinstance(v, ast.BinOp) and isinstance(v.op, ast.Add):
            for t, m in ((v.left, v.right), (v.right, v.left)):
                if (
                    isinstance(t, ast.Name)
                    and t.id == target.id
                    and isinstance(m, ast.BinOp)
                    and isinstance(m.op, ast.Mult)
                ):
                    return call("add_mul", v, self.visit(t), self.visit(m.left), self.visit(m.right))
        v = self.visit(v)
        if target.id in self.allocated:
            self.used_names.add(target.id)
            return call("assign_check", node, name(target.id, node), v, constant(target.id, node))
        return v

    def item_update(self, node: ast.Assign, target: ast.Subscript) -> Any:
        """``T[i] = max(T[i], v)`` and ``T[i] = T[i] + v`` as reductions of a grid loop."""
        v = node.value
        op, other = None, None
        if (
            isinstance(v, ast.Call)
            and isinstance(v.func, ast.Name)
            and v.func.id in ("max", "min")
            and len(v.args) == 2
            and not v.keywords
        ):
            for a, b in ((v.args[0], v.args[1]), (v.args[1], v.args[0])):
                if isinstance(a, ast.Subscript) and self.same(a, target):
                    op, other = v.func.id, b
                    break
        elif isinstance(v, ast.BinOp) and isinstance(v.op, (ast.Add, ast.Mult)):
            for a, b in ((v.left, v.right), (v.right, v.left)):
                if isinstance(a, ast.Subscript) and self.same(a, target):
                    op, other = OPS[type(v.op)], b
                    break
        return self.item(node, target, op, other) if op is not None and other is not None else None

    def item(self, node: ast.stmt, target: ast.Subscript, op: str, value: ast.expr) -> ast.Expr:
        begin = call("begin_item", target, self.visit(target.value), self.index_tuple(target), constant(op, node))
        return at(ast.Expr(call("end_item", node, begin, self.visit(value))), node)

    def index_tuple(self, target: ast.Subscript) -> ast.expr:
        """The index as an expression of its own (slices become slice(...) objects)."""
        return self.slice_expr(self.index(target.slice))

    def slice_expr(self, node: Any) -> Any:
        if isinstance(node, ast.Slice):
            parts = [p if p is not None else constant(None, node) for p in (node.lower, node.upper, node.step)]
            return call("slice", node, *parts)
        if isinstance(node, ast.Tuple):
            return at(ast.Tuple([self.slice_expr(e) for e in node.elts], LOAD), node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.note(node.target)
        if node.value is None:
            return None
        if not isinstance(node.target, ast.Name):
            return assign(self.visit(node.target), self.visit(node.value), node)
        value = call("annotated", node, self.visit(node.value), self.visit(node.annotation))
        return assign(node.target, value, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        op = OPS[type(node.op)]
        target = node.target
        if isinstance(target, ast.Subscript):
            return self.item(node, target, op, node.value)
        if not isinstance(target, ast.Name):
            node.value = self.visit(node.value)
            return node
        old: ast.expr = name(target.id, target)
        if id(target) in self.unsure:
            self.used_names.add(target.id)
            old = call("chk", target, old, constant(target.id, target))
        v = node.value
        what = constant(op, node)
        if isinstance(v, ast.Call):
            self.generic_visit(v)
            value = call("aug_call", v, what, old, v.func, *v.args, keywords=v.keywords)
        elif isinstance(v, ast.BinOp) and isinstance(v.op, ast.MatMult):
            value = call("aug_matmul", node, what, old, self.visit(v.left), self.visit(v.right))
        elif isinstance(v, ast.BinOp) and isinstance(v.op, ast.Mult):
            value = call("aug_mul", node, what, old, self.visit(v.left), self.visit(v.right))
        else:
            value = call("aug", node, what, old, self.visit(v))
        self.note(target)
        return assign(target, value, node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        out: list[ast.stmt] = []
        for t in node.targets:
            if isinstance(t, ast.Name):
                value = at(ast.Attribute(name(TL, t), "UNBOUND", LOAD), t)
                out.append(assign(name(t.id, t, True), value, node))
            else:
                out.append(at(ast.Delete([self.visit(t)]), node))
        return out

    def visit_Assert(self, node: ast.Assert) -> Any:
        args = [self.visit(node.test)]
        if node.msg is not None:
            empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            args.append(at(ast.Lambda(empty, self.visit(node.msg)), node.msg))
        return at(ast.Expr(call("assert_", node, *args)), node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        args = [self.visit(x) for x in (node.exc, node.cause) if x is not None]
        return at(ast.Expr(call("raise_", node, *args)), node)

    # -- loops and branches --

    def enter(self, obj: str, idents: list[str], node: ast.AST, method: str = "head") -> list[ast.stmt]:
        """``(names) = obj.method((names))``"""
        if not idents:
            return []
        fn = at(ast.Attribute(name(obj, node), method, LOAD), node)
        value = at(ast.Call(fn, [tuple_of(idents, node)], []), node)
        return [assign(tuple_of(idents, node, True), value, node)]

    def leave(self, obj: str, idents: list[str], node: ast.AST) -> list[ast.stmt]:
        if not idents:
            return []
        fn = at(ast.Attribute(name(obj, node), "tail", LOAD), node)
        return [at(ast.Expr(at(ast.Call(fn, [tuple_of(idents, node)], []), node)), node)]

    def visit_If(self, node: ast.If) -> Any:
        changed = self.assigned([*node.body, *node.orelse])
        after, other = node.live_after, node.live_else  # type: ignore[attr-defined]
        idents = sorted(changed & (after | other))
        obj, which = self.fresh("if"), self.fresh("b")
        args: list[ast.expr] = [self.visit(node.test)]
        if idents:
            args.append(self.names(idents, [*node.body, *node.orelse], node))
            args.append(constant(tuple(i in after for i in idents), node))
        lines = dict(self.line_of)
        body = self.statements(node.body)
        inner = self.line_of
        self.line_of = lines
        orelse = self.statements(node.orelse)
        self.line_of = inner | self.line_of
        place = node.test
        branch = at(ast.If(name(which, place), body or [at(ast.Pass(), place)], orelse), node)
        loop_body = [*self.enter(obj, idents, place), branch, *self.leave(obj, idents, place)]
        loop = at(ast.For(name(which, place, True), name(obj, place), loop_body, []), place)
        make = assign(name(obj, place, True), call("cond", place, *args), place)
        return [make, loop, *self.enter(obj, idents, place, "done")]

    def carried(self, node: ast.For | ast.While, changed: set[str]) -> list[str]:
        flags = set(getattr(node, "stop_flags", ()))
        live = node.live_head | node.live_after | flags  # type: ignore[union-attr]
        return sorted(changed & live)

    def flag_positions(self, node: ast.For | ast.While, idents: list[str]) -> tuple[int, ...]:
        return tuple(idents.index(f) for f in getattr(node, "stop_flags", ()) if f in idents)

    def visit_For(self, node: ast.For) -> Any:
        changed = self.assigned([node.target, *node.body])
        idents = self.carried(node, changed)
        obj, item = self.fresh("loop"), self.fresh("x")
        place = node.iter
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        hints = tuple(t.id if isinstance(t, ast.Name) else "" for t in targets)
        table = self.names(idents, [ast.Expr(node.target), *node.body], place)  # type: ignore[list-item]
        flags = constant(self.flag_positions(node, idents), place)
        make = assign(
            name(obj, place, True),
            call("loop", place, self.visit(node.iter), table, flags, constant(hints, place)),
            place,
        )
        self.note(node.target)
        body = self.statements(node.body)
        bind = assign(self.visit(node.target), name(item, node.target), node.target)
        loop_body = [*self.enter(obj, idents, place), bind, *body, *self.leave(obj, idents, place)]
        loop = at(ast.For(name(item, place, True), name(obj, place), loop_body, []), place)
        return [make, loop, *self.enter(obj, idents, place, "done")]

    def guarded_test(self, go: ast.expr, test: ast.expr, node: ast.While) -> tuple[list[ast.stmt], ast.expr]:
        """``flag = test if go else False`` as statements: names that the test binds are merged."""
        flag = self.fresh("test")
        self.made.add(flag)
        yes = assign(name(flag, test, True), test, test)
        no = assign(name(flag, test, True), constant(False, test), test)
        branch = at(ast.If(go, [yes], [no]), test)
        branch.live_after = {flag} | walrus(test)  # type: ignore[attr-defined]
        branch.live_else = set()  # type: ignore[attr-defined]
        return self.visit_If(branch), name(flag, test)

    def visit_While(self, node: ast.While) -> Any:
        changed = self.assigned([node.test, *node.body])
        idents = self.carried(node, changed)
        obj = self.fresh("while")
        place = node.test
        table = self.names(idents, [ast.Expr(node.test), *node.body], place)
        flags = self.flag_positions(node, idents)
        make = assign(name(obj, place, True), call("while_", place, table, constant(flags, place)), place)
        test = node.test
        before: list[ast.stmt] = []
        if getattr(node, "stop_flags", ()):
            go = call("go", place, *(name(f, place) for f in node.stop_flags))  # type: ignore[attr-defined]
            if walrus(test):
                before, test = self.guarded_test(go, test, node)
            else:
                test = at(ast.BoolOp(ast.And(), [go, test]), place)
        for n in walrus(node.test):
            self.line_of[n] = place.lineno
        attr = at(ast.Attribute(name(obj, place), "test", LOAD), place)
        tested = at(ast.Call(attr, [test if before else self.visit(test)], []), place)
        body = self.statements(node.body)
        begin = self.enter(obj, idents, place, "body")
        if not idents:
            fn = at(ast.Attribute(name(obj, place), "body", LOAD), place)
            begin = [at(ast.Expr(at(ast.Call(fn, [tuple_of([], place)], []), place)), place)]
        inner = at(ast.If(tested, [*begin, *body, *self.leave(obj, idents, place)], []), place)
        more = at(ast.Attribute(name(obj, place), "more", LOAD), place)
        again = at(ast.Call(more, [], []), place)
        loop = at(ast.While(again, [*self.enter(obj, idents, place), *before, inner], []), place)
        return [make, loop, *self.enter(obj, idents, place, "done")]


def rewrite(
    fn: ast.FunctionDef, file: str, lines: list[str], first_line: int, is_kernel: bool
) -> tuple[ast.FunctionDef, list[Any]]:
    """The rewritten function (the tree is changed in place) and its table of Names."""
    table: list[Any] = []
    new = Rewriter(Refusal(file, lines, first_line), table).function(fn, is_kernel)
    return new, table
