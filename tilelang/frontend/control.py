"""Loops, branches and short-circuit operators: what the rewritten source calls while it is traced.

A run-time loop or branch is traced into detached blocks; the operation is built afterwards, when the types of what it
carries or merges are known. A Python number that a loop rebinds starts as int32, float32 or bool; if the body gives
another type, the body is traced again with that one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .analysis import walk
from .base import Scope
from .dtypes import bool_, float32, int32
from .memory import MemoryMixin
from .values import UNBOUND, Alloc, Idx, Scalar, Tile, Unbound, Value, article

MAX_RETRACES = 5
SPLICE_LIMIT = 24  # pure operations that are computed unconditionally instead of under a branch


class RangeSpec:
    """``range(lo, hi, step)`` in a kernel: a run-time loop as a for statement, a Python range in a comprehension."""

    __slots__ = ("t", "lo", "hi", "step", "options")

    def __init__(self, t: Any, lo: Any, hi: Any, step: Any, options: dict[str, Any]) -> None:
        self.t = t
        self.lo = lo
        self.hi = hi
        self.step = step
        self.options = options

    def constant(self) -> range | None:
        if all(isinstance(x, int) for x in (self.lo, self.hi, self.step)):
            return range(self.lo, self.hi, self.step)
        return None

    def __iter__(self) -> Iterator[int]:
        r = self.constant()
        if r is None:
            self.t.fail(
                "range with run-time bounds works in a for statement only, not in a comprehension or a call",
                "give it constant bounds, or write a for loop",
            )
        return iter(r)

    def __len__(self) -> int:
        r = self.constant()
        if r is None:
            self.t.fail("len() of a range with run-time bounds")
        return len(r)

    def __getitem__(self, i: Any) -> Any:
        r = self.constant()
        if r is None:
            self.t.fail("a range with run-time bounds cannot be indexed")
        return r[i]


class GridSpec:
    """``tl.grid(M, N, ...)``."""

    __slots__ = ("extents",)

    def __init__(self, extents: tuple[Any, ...]) -> None:
        self.extents = extents


def flatten(v: Any, out: list[Any]) -> Any:
    """Appends the leaves of nested tuples; returns the structure (a function of the leaves' positions)."""
    if isinstance(v, tuple):
        return (type(v), [flatten(x, out) for x in v])
    out.append(v)
    return len(out) - 1


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    if isinstance(structure, int):
        return leaves[structure]
    cls, parts = structure
    items = [unflatten(p, leaves) for p in parts]
    return tuple(items) if cls is tuple else cls(*items)


def same_shape(a: Any, b: Any) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return a[0] is b[0] and len(a[1]) == len(b[1]) and all(map(same_shape, a[1], b[1]))


class Names:
    """The names that a loop or branch rebinds, with the lines where they were bound before, and (in `body`) inside."""

    __slots__ = ("names", "before", "body")

    def __init__(self, names: tuple[str, ...], before: tuple[int, ...], body: list[Any]) -> None:
        self.names = names
        self.before = before
        self.body = body

    def inside(self, n: int) -> int:
        """The last line in the body that binds a name; 0 if none does."""
        nodes = [x for s in self.body for x in walk(s)]
        name = self.names[n]
        found = [x for x in nodes if isinstance(x, ast.Name) and x.id == name and not is_load(x)]
        return max((getattr(x, "real", (x.lineno,))[0] for x in found), default=0)


def is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


NO_NAMES = Names((), (), [])
Kind = tuple[Any, ...]  # ("typed", dtype or None for index, shape) | ("unbound",) | ("object", x)


def same_kind(a: Kind, b: Kind) -> bool:
    """Whether two leaves have one type (or are one object)."""
    if a[0] != b[0]:
        return False
    if a[0] == "typed":
        return a[1] is b[1] and a[2] == b[2]
    return a[0] == "unbound" or a[1] is b[1]


class ControlMixin(MemoryMixin):
    """Control flow of a trace."""

    maybe: dict[str, Any]  # names of the running function that may have no value -> the value that may be missing
    bool_stack: list[Any]

    # -- conditions --

    def truth(self, c: Any) -> Any:
        """A Python bool, or a run-time bool scalar."""
        if isinstance(c, Scalar):
            return c if c.dtype.kind == "b" else self.binary("ne", c, 0)
        if isinstance(c, Idx):
            return self.exact("ne", c, 0)
        if isinstance(c, Unbound):
            self.fail("a variable without a value is used as a condition")
        return bool(c)

    def go(self, *flags: Any) -> Any:
        """True where none of the flags (left the loop, returned) is set."""
        out: Any = True
        for f in flags:
            if f is True:
                return False
            if f is not False:
                n = self.unary("not", f)
                out = n if out is True else self.binary("and", out, n)
        return out

    def not_(self, x: Any) -> Any:
        c = self.truth(x)
        return (not c) if isinstance(c, bool) else self.unary("not", c)

    def chk(self, x: Any, name: str) -> Any:
        """A read of a name that may have no value."""
        if x is UNBOUND:
            self.fail(f"{name} has no value here", f"assign {name} before the loop, or in every branch")
        if name in self.maybe and self.maybe[name] is x:
            self.fail(
                f"{name} may have no value here: it is assigned in one branch, or in a loop that may run 0 times, only",
                f"assign {name} before the loop, or in every branch",
            )
        return x

    def raise_(self, *args: Any) -> Any:
        if self.conditional:
            self.fail("raise under a run-time condition", "use tl.assert_(condition, message)")
        if not args or args[0] is None:
            raise RuntimeError("No active exception to reraise")
        if len(args) > 1:
            raise args[0] from args[1]
        raise args[0]

    def assign_check(self, old: Any, new: Any, name: str) -> Any:
        """``name = new`` where the name holds an allocated tile."""
        if isinstance(old, Alloc) and isinstance(new, (Tile, Scalar, Idx, int, float)):
            self.fail(
                f"{name} is {old.describe()}; `{name} = ...` would only rebind the name",
                f"write {name}[...] = ... to store into it",
            )
        return new

    def named(self, name: str, x: Any) -> Any:
        """Gives an allocated tile the name it is assigned to."""
        if isinstance(x, Alloc) and not x.name:
            x.name = name
            if x.val:
                self.ir.name(x.val, name)
        return x

    # -- kinds of carried values --

    def kind_of(self, v: Any, weak: bool) -> Kind:
        if isinstance(v, (Scalar, Tile)):
            return ("typed", v.dtype, v.shape)
        if isinstance(v, Idx):
            return ("typed", None, ())
        if isinstance(v, Unbound):
            return ("unbound",)
        if isinstance(v, bool):
            return ("typed", bool_, ())
        if isinstance(v, int):
            if weak and not -(1 << 31) <= v < 1 << 31:
                self.fail(f"the number {v} becomes a run-time int32 here and does not fit", "convert it: tl.int64(x)")
            return ("typed", int32, ())
        if isinstance(v, float):
            return ("typed", float32, ())
        return ("object", v)

    @staticmethod
    def is_weak(v: Any) -> bool:
        return isinstance(v, (bool, int, float))

    def kind_text(self, k: Kind, v: Any = None) -> str:
        if k[0] == "unbound":
            return "no value"
        if k[0] == "object":
            return self.describe(k[1])
        if k[1] is None:
            return "an exact integer"
        return f"{article(k[1].name)} tile of shape {k[2]}" if k[2] else f"{article(k[1].name)} scalar"

    def typed_val(self, v: Any, kind: Kind) -> int:
        """IR value of a leaf as the type of `kind`; UNBOUND gives zeros."""
        _, dtype, shape = kind
        if isinstance(v, Unbound):
            return self.const(0, dtype, shape)
        if dtype is None:
            return self.index_val(self.as_index(v))
        if isinstance(v, (bool, int)) and dtype.kind == "b":
            v = bool(v)
        return self.val(self.spread(v, dtype, shape) if not isinstance(v, (Tile,)) else v)

    def unify(self, a: Any, b: Any) -> Kind | None:
        """The kind that both leaves can have; None if there is none."""
        ka, kb = self.kind_of(a, True), self.kind_of(b, True)
        if same_kind(ka, kb):
            return ka
        if ka[0] == "unbound" or kb[0] == "unbound":
            return kb if ka[0] == "unbound" else ka
        if ka[0] == "object" or kb[0] == "object":
            return None
        wa, wb = self.is_weak(a), self.is_weak(b)
        if wa and wb:
            rank = {"b": 0, "i": 1, "f": 2}
            best = max(ka, kb, key=lambda k: rank[k[1].kind])
            return best if "b" not in (ka[1].kind, kb[1].kind) else None
        for x, k, free in ((a, kb, wa or (isinstance(a, Idx) and not wb)), (b, ka, True)):
            if free:
                if self.fits(x, k):
                    return k
                return ("typed", float32, ()) if isinstance(x, float) and k[1] is None else None
        return None

    @staticmethod
    def fits(x: Any, kind: Kind) -> bool:
        """Whether a value without a type of its own (number, exact integer, none yet) can be of this kind."""
        if isinstance(x, Unbound):
            return True
        if kind[2] or not isinstance(x, (bool, int, float, Idx)):
            return False
        if kind[1] is None:
            return isinstance(x, (int, Idx)) and not isinstance(x, bool)
        if isinstance(x, bool):
            return bool(kind[1].kind == "b")
        return bool(kind[1].kind == "f" or (isinstance(x, (int, Idx)) and kind[1].kind in "iu"))

    # -- and, or, conditional expressions --

    def and_begin(self, a: Any) -> Any:
        return self._bool_begin("and", a)

    def or_begin(self, a: Any) -> Any:
        return self._bool_begin("or", a)

    def _bool_begin(self, op: str, a: Any) -> Any:
        if isinstance(a, Value):
            c = self.truth(a)
            static = isinstance(c, bool)
        else:
            c, static = a, True
            if isinstance(a, Unbound):
                self.truth(a)
        entry = [op, c, static, None, True]
        if static:
            entry[4] = bool(c) == (op == "and")
        else:
            entry[3] = self.push("bool")
        self.bool_stack.append(entry)
        return entry

    def bool_go(self) -> bool:
        return bool(self.bool_stack[-1][4])

    def bool_end(self, entry: Any, b: Any) -> Any:
        self.bool_stack.pop()
        op, a, static, scope, went = entry
        if static:
            return b if went else a
        if isinstance(b, (Value, Unbound)):
            b = self.truth(b)
        else:
            b = bool(b)
        n = self.ir.pure(scope.block)
        if 0 <= n <= SPLICE_LIMIT or isinstance(b, bool) and n >= 0:
            self.splice(scope)
            if isinstance(b, bool):
                return (a if b else False) if op == "and" else (True if b else a)
            return self.binary(op, a, b)
        self.op("yield", (self.typed_val(b, ("typed", bool_, ())),), ())
        self.pop(scope)
        other = self.push("bool")
        self.op("yield", (self.const(op == "or", bool_),), ())
        self.pop(other)
        regions = (scope.block, other.block) if op == "and" else (other.block, scope.block)
        val = self.op("if", (self.val(a),), (self.ty_of(bool_),), None, regions)
        return self.wrap(val, bool_)

    def splice(self, scope: Scope) -> None:
        """Moves a block's (pure) operations to the end of its parent; their values live on there."""
        self.pop(scope)
        scope.alias = scope.parent
        assert scope.parent is not None
        self.ir.splice(scope.block, scope.parent.block)
        scope.parent.memo.update(scope.memo)

    def ife_then(self) -> bool:
        return bool(self.bool_stack[-1].enter_then())

    def ife_else(self) -> bool:
        return bool(self.bool_stack[-1].enter_else())

    def ife_end(self, entry: Any, a: Any, b: Any) -> Any:
        self.bool_stack.pop()
        return entry.end(a, b)

    # -- merging --

    def merge_values(self, name: str, a: Any, b: Any, sa: Scope, sb: Scope, c: Any, lines: tuple[int, int]) -> Any:
        """The value after a branch: ([vals of then], [vals of else], rebuild(results))."""
        la: list[Any] = []
        lb: list[Any] = []
        ta, tb = flatten(a, la), flatten(b, lb)
        if isinstance(a, Unbound) != isinstance(b, Unbound):
            if isinstance(a, Unbound):
                ta, la = tb, [UNBOUND] * len(lb)
            else:
                tb, lb = ta, [UNBOUND] * len(la)
        if not same_shape(ta, tb):
            self._merge_error(name, self.describe(a), self.describe(b), lines)
        plan: list[Any] = []
        for x, y in zip(la, lb):
            if x is y or (self.is_weak(x) and type(x) is type(y) and (x == y or x != x and y != y)):
                plan.append(("keep", x))
                continue
            if isinstance(x, bool) and isinstance(y, bool):
                plan.append(("cond", x))
                continue
            kind = self.unify(x, y)
            if kind is None or kind[0] == "object":
                if kind is not None and self._equal(x, y):
                    plan.append(("keep", x))
                    continue
                self._merge_error(
                    name, self.kind_text(self.kind_of(x, False)), self.kind_text(self.kind_of(y, False)), lines
                )
            plan.append(("merge", kind, x, y))
        return ta, plan

    @staticmethod
    def _equal(x: Any, y: Any) -> bool:
        try:
            return bool(x == y)
        except Exception:
            return False

    def _merge_error(self, name: str, a: str, b: str, lines: tuple[int, int]) -> None:
        self.fail(
            f"{name} is {a} (line {lines[0]}) in one branch and {b} (line {lines[1]}) in the other",
            "give it one type and shape in both, e.g. by .to(dtype)",
        )

    def in_scope(self, scope: Scope, fn: Any) -> Any:
        """Runs `fn` with `scope` open and current: what it emits goes to the end of that block."""
        before, was = self.scope, scope.open
        self.scope, scope.open = scope, True
        try:
            return fn()
        finally:
            self.scope, scope.open = before, was

    def finish_if(self, c: Any, sa: Scope, sb: Scope, merged: list[Any]) -> list[Any]:
        """Builds the if operation; merged: (structure, plan) a name. Returns the names' values."""
        todo = [p for _, plan in merged for p in plan if p[0] == "merge"]
        va = self.in_scope(sa, lambda: tuple(self.typed_val(p[2], p[1]) for p in todo))
        self.in_scope(sa, lambda: self.op("yield", va, ()))
        vb = self.in_scope(sb, lambda: tuple(self.typed_val(p[3], p[1]) for p in todo))
        self.in_scope(sb, lambda: self.op("yield", vb, ()))
        types = tuple(self.ty_of(p[1][1], p[1][2]) for p in todo)
        res = self.op("if", (self.val(c),), types, None, (sa.block, sb.block))
        results = iter(() if not types else (res,) if len(types) == 1 else res)
        out = []
        for structure, plan in merged:
            leaves: list[Any] = []
            for p in plan:
                if p[0] == "keep":
                    leaves.append(p[1])
                elif p[0] == "cond":
                    leaves.append(c if p[1] else self.unary("not", c))
                else:
                    partial = getattr(p[2], "partial", False) or getattr(p[3], "partial", False)
                    leaves.append(self.wrap(next(results), p[1][1], p[1][2], partial))
            out.append(unflatten(structure, leaves))
        return out


__all__ = ["ControlMixin", "GridSpec", "Names", "RangeSpec"]
