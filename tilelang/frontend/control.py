"""Loops, branches and short-circuit operators: what the rewritten source calls while it is traced.

A run-time loop or branch is traced into detached blocks; the operation is built afterwards, when the types of what it
carries or merges are known. A Python number that a loop rebinds starts as int32, float32 or bool; if the body gives
another type, the body is traced again with that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import Scope
from .dtypes import DType, bool_, float32, int32
from .memory import MemoryMixin
from .values import UNBOUND, Alloc, Arith, BufferVal, Idx, Scalar, Tile, Unbound, Value

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
    """The names that a loop or branch rebinds, with the lines where they were bound before and inside."""

    __slots__ = ("names", "before", "inside")

    def __init__(self, names: tuple[str, ...], before: tuple[int, ...], inside: tuple[int, ...]) -> None:
        self.names = names
        self.before = before
        self.inside = inside


NO_NAMES = Names((), (), ())
Kind = tuple[Any, ...]  # ("typed", dtype or None for index, shape) | ("unbound",) | ("object", x)


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
            self.fail(f"{name} is {old.describe()}; `{name} = ...` would only rebind the name", f"write {name}[...] = ... to store into it")
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
        return f"a {k[1].name} tile of shape {k[2]}" if k[2] else f"a {k[1].name} scalar"

    def typed_val(self, v: Any, kind: Kind) -> int:
        """IR value of a leaf as the type of `kind`; UNBOUND gives zeros."""
        _, dtype, shape = kind
        if isinstance(v, Unbound):
            return self.const(0, dtype, shape)
        if dtype is None:
            return self.index_val(v)
        if isinstance(v, (bool, int)) and dtype.kind == "b":
            v = bool(v)
        return self.val(self.spread(v, dtype, shape) if not isinstance(v, (Tile,)) else v)

    def unify(self, a: Any, b: Any) -> Kind | None:
        """The kind that both leaves can have; None if there is none."""
        ka, kb = self.kind_of(a, True), self.kind_of(b, True)
        if ka == kb:
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
        if wa or wb:
            number, other = (a, kb) if wa else (b, ka)
            if other[2]:
                return None
            if other[1] is None:
                return other if isinstance(number, int) and not isinstance(number, bool) else None
            if isinstance(number, float):
                return other if other[1].kind == "f" else None
            return other if (other[1].kind == "b") == isinstance(number, bool) else None
        if {ka[1], kb[1]} == {None, int32} and not ka[2] and not kb[2]:
            return ("typed", int32, ())
        return None

    # -- what the rewritten source calls --

    def loop(self, it: Any, names: Names = NO_NAMES, flags: tuple[int, ...] = (), hints: tuple[str, ...] = ()) -> Any:
        if isinstance(it, RangeSpec):
            return RangeLoop(self, it, names, flags, hints)
        if isinstance(it, GridSpec):
            return GridLoop(self, it, names, flags, hints)
        if isinstance(it, Value):
            iter(it)  # type: ignore[call-overload]
        return StaticLoop(self, it, names, flags, hints)

    def cond(self, test: Any, names: Names = NO_NAMES, merge: tuple[bool, ...] = ()) -> Any:
        c = self.truth(test)
        return StaticBranch(c) if isinstance(c, bool) else Branch(self, c, names, merge)

    def while_(self, names: Names = NO_NAMES, flags: tuple[int, ...] = ()) -> Any:
        return WhileLoop(self, names, flags)

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
        if isinstance(b, Value) or isinstance(b, Unbound):
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

    def ife_begin(self, test: Any) -> Any:
        c = self.truth(test)
        entry = Ternary(self, c)
        self.bool_stack.append(entry)
        return entry

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
                self._merge_error(name, self.kind_text(self.kind_of(x, False)), self.kind_text(self.kind_of(y, False)), lines)
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


class StaticBranch:
    """An if whose condition is known while tracing."""

    __slots__ = ("c",)

    def __init__(self, c: bool) -> None:
        self.c = c

    def __iter__(self) -> Iterator[bool]:
        yield self.c

    def head(self, vals: Any) -> Any:
        return vals

    def tail(self, vals: Any) -> None:
        pass

    def done(self, vals: Any) -> Any:
        return vals


class Branch:
    """A run-time if statement."""

    def __init__(self, t: ControlMixin, c: Any, names: Names, merge: tuple[bool, ...]) -> None:
        self.t = t
        self.c = c
        self.names = names
        self.merge = merge
        self.entry: tuple[Any, ...] | None = None
        self.ends: list[tuple[Any, ...]] = []
        self.scopes: list[Scope] = []

    def __iter__(self) -> Iterator[bool]:
        for which in (True, False):
            scope = self.t.push("if")
            self.scopes.append(scope)
            yield which
            self.t.pop(scope)
        if not self.names.names:
            self.t.finish_if(self.c, *self.scopes, [])

    def head(self, vals: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.entry is None:
            self.entry = vals
        return self.entry

    def tail(self, vals: tuple[Any, ...]) -> None:
        self.ends.append(vals)

    def done(self, _: tuple[Any, ...]) -> tuple[Any, ...]:
        t = self.t
        assert self.entry is not None
        merged, where = [], []
        unsure: list[bool] = []
        for n, name in enumerate(self.names.names):
            if not self.merge[n]:
                continue
            a, b = self.ends[0][n], self.ends[1][n]
            lines = (self._line(a, n), self._line(b, n))
            merged.append(t.merge_values(name, a, b, *self.scopes, self.c, lines))
            unsure.append(any(v is UNBOUND or (name in t.maybe and t.maybe[name] is v) for v in (a, b)))
            where.append(n)
        values = t.finish_if(self.c, *self.scopes, merged)
        out = list(self.entry)
        for n, v, missing in zip(where, values, unsure):
            out[n] = v
            if missing and v is not UNBOUND:
                t.maybe[self.names.names[n]] = v
        return tuple(out)

    def _line(self, v: Any, n: int) -> int:
        return v.place[1] if isinstance(v, Value) else self.names.inside[n] or self.names.before[n]


class Ternary:
    """A conditional expression."""

    def __init__(self, t: ControlMixin, c: Any) -> None:
        self.t = t
        self.c = c
        self.static = isinstance(c, bool)
        self.scopes: list[Scope] = []

    def enter_then(self) -> bool:
        if self.static:
            return bool(self.c)
        self.scopes.append(self.t.push("if"))
        return True

    def enter_else(self) -> bool:
        if self.static:
            return not self.c
        self.t.pop(self.scopes[0])
        self.scopes.append(self.t.push("if"))
        return True

    def end(self, a: Any, b: Any) -> Any:
        if self.static:
            return a if self.c else b
        t = self.t
        sa, sb = self.scopes
        t.pop(sb)
        scalar = all(isinstance(v, (Scalar, Idx, bool, int, float)) for v in (a, b))
        if scalar and all(0 <= t.ir.pure(s.block) <= SPLICE_LIMIT for s in self.scopes):
            for s in self.scopes:
                s.open = True
                t.scope = s
                t.splice(s)
            return t.where(self.c, a, b)
        merged = [t.merge_values("the conditional expression", a, b, sa, sb, self.c, (t.place[1], t.place[1]))]
        return t.finish_if(self.c, sa, sb, merged)[0]


class StaticLoop:
    """A for over a Python iterable: unrolled."""

    def __init__(self, t: ControlMixin, it: Any, names: Names, flags: tuple[int, ...], hints: tuple[str, ...]) -> None:
        self.it = it
        self.flags = flags
        self.stopped = False

    def __iter__(self) -> Iterator[Any]:
        for item in self.it:
            yield item
            if self.stopped:
                return

    def head(self, vals: Any) -> Any:
        return vals

    def tail(self, vals: Any) -> None:
        self.stopped = any(vals[f] is True for f in self.flags)

    def done(self, vals: Any) -> Any:
        return vals


class Carried:
    """The values a run-time loop carries, through as many traces of its body as their types need."""

    def __init__(self, t: ControlMixin, names: Names, flags: tuple[int, ...]) -> None:
        self.t = t
        self.names = names
        self.flags = flags
        self.entry: tuple[Any, ...] = ()
        self.structures: list[Any] = []
        self.leaves: list[list[Any]] = []  # the values before the loop, flattened, a list a name
        self.kinds: list[list[Kind]] = []
        self.started = False
        self.flags_live = False  # some flag is set at run time: flags are carried too

    def start(self, vals: tuple[Any, ...]) -> None:
        if self.started:
            return
        self.started = True
        self.entry = vals
        for v in vals:
            leaves: list[Any] = []
            self.structures.append(flatten(v, leaves))
            self.leaves.append(leaves)
            self.kinds.append([self.t.kind_of(x, True) for x in leaves])

    def is_flag(self, n: int) -> bool:
        return n in self.flags

    def carried(self) -> list[tuple[int, int, Kind]]:
        """(name, leaf, kind) of what goes through the block's arguments."""
        out = []
        for n, kinds in enumerate(self.kinds):
            if self.is_flag(n) and not self.flags_live:
                continue
            out += [(n, i, k) for i, k in enumerate(kinds) if k[0] == "typed"]
        return out

    def arguments(self, scope: Scope, args: dict[tuple[int, int], int]) -> tuple[Any, ...]:
        """The names' values inside the block: its arguments."""
        t = self.t
        out = []
        for n, (structure, leaves) in enumerate(zip(self.structures, self.leaves)):
            new = list(leaves)
            for i, k in enumerate(self.kinds[n]):
                if (n, i) in args:
                    v = t.wrap(args[n, i], k[1], k[2], getattr(leaves[i], "partial", k[0] == "typed" and bool(k[2])))
                    v.scope = scope
                    new[i] = v
                elif self.is_flag(n):
                    new[i] = False
            value = unflatten(structure, new)
            name = self.names.names[n]
            if name in t.maybe and t.maybe[name] is self.entry[n]:
                t.maybe[name] = value
            out.append(value)
        return tuple(out)

    def make_args(self, scope: Scope) -> dict[tuple[int, int], int]:
        t = self.t
        args = {}
        for n, i, k in self.carried():
            name = self.names.names[n]
            args[n, i] = t.ir.arg(scope.block, t.ty_of(k[1], k[2]), "" if name.startswith("__") else name)
        return args

    def settle(self, ends: tuple[Any, ...]) -> bool:
        """Compares the values at the body's end with the kinds; False: trace again with the kinds changed."""
        again = False
        for n, v in enumerate(ends):
            leaves: list[Any] = []
            structure = flatten(v, leaves)
            if self.is_flag(n):
                if v is not False and not self.flags_live:
                    self.flags_live = again = True
                continue
            if self.structures[n] == 0 and self.kinds[n] == [("unbound",)] and not isinstance(v, Unbound):
                self.structures[n] = structure
                self.leaves[n] = [UNBOUND] * len(leaves)
                self.kinds[n] = [self._known(self.t.kind_of(x, True), x, n) for x in leaves]
                again = True
                continue
            if not same_shape(structure, self.structures[n]):
                self._error(n, self.t.describe(self.entry[n]), self.t.describe(v), v)
            for i, x in enumerate(leaves):
                again |= self._settle_leaf(n, i, x, v)
        return not again

    def _known(self, kind: Kind, x: Any, n: int) -> Kind:
        return kind

    def _settle_leaf(self, n: int, i: int, x: Any, whole: Any) -> bool:
        t = self.t
        kind, init = self.kinds[n][i], self.leaves[n][i]
        new = t.kind_of(x, True)
        if new == kind:
            if kind[0] != "object":
                return False
        if kind[0] == "object" or new[0] == "object":
            if kind[0] == new[0] and (init is x or (not isinstance(x, Value) and t._equal(init, x))):
                return False
            self._error(n, t.describe(init), t.describe(x), whole)
        if new[0] == "unbound":
            return False
        weak_end = t.is_weak(x)
        if weak_end and kind[2] == () and self._number_fits(x, kind):
            return False
        if kind[1] is None and new == ("typed", int32, ()) or (kind[1] is int32 and new[1] is None and not new[2]):
            if t.is_weak(init) or isinstance(init, Unbound):
                if kind[1] is int32 and not weak_end:
                    self.kinds[n][i] = new
                    return True
            elif kind[1] is None:
                return False  # an int32 sum kept in an exact integer
        if (t.is_weak(init) or isinstance(init, Unbound)) and self._number_fits(init, new) and new != kind:
            self.kinds[n][i] = new
            return True
        self._error(n, t.kind_text(kind), t.kind_text(new), whole)
        return False

    def _number_fits(self, x: Any, kind: Kind) -> bool:
        """Whether a Python number can start (or end) as this kind."""
        if isinstance(x, Unbound):
            return True
        if kind[2]:
            return False
        if kind[1] is None:
            return isinstance(x, int) and not isinstance(x, bool)
        if isinstance(x, bool):
            return bool(kind[1].kind == "b")
        return bool(kind[1].kind == "f" or (isinstance(x, int) and kind[1].kind in "iu"))

    def _error(self, n: int, before: str, after: str, v: Any) -> None:
        name = self.names.names[n]
        entry = self.entry[n]
        first = entry.place[1] if isinstance(entry, Value) else self.names.before[n]
        last = v.place[1] if isinstance(v, Value) else self.names.inside[n]
        self.t.fail(
            f"{name} changes its type in the loop: it is {before} (line {first}) before, and {after} (line {last}) "
            "at the end of the body",
            "keep one type: convert with .to(dtype), or start with a value of the final type",
        )

    def init_vals(self) -> tuple[int, ...]:
        return tuple(self.t.typed_val(self.leaves[n][i], k) for n, i, k in self.carried())

    def end_vals(self, ends: tuple[Any, ...]) -> tuple[int, ...]:
        flat = []
        for v in ends:
            leaves: list[Any] = []
            flatten(v, leaves)
            flat.append(leaves)
        return tuple(self.t.typed_val(flat[n][i], k) for n, i, k in self.carried())

    def types(self) -> tuple[int, ...]:
        return tuple(self.t.ty_of(k[1], k[2]) for _, _, k in self.carried())

    def results(self, vals: tuple[int, ...], ends: tuple[Any, ...], may_skip: bool) -> tuple[Any, ...]:
        """The names' values after the loop."""
        t = self.t
        table = {(n, i): v for (n, i, _), v in zip(self.carried(), vals)}
        out = []
        for n, (structure, leaves) in enumerate(zip(self.structures, self.leaves)):
            new = list(leaves)
            ended: list[Any] = []
            flatten(ends[n], ended)
            for i, k in enumerate(self.kinds[n]):
                if (n, i) in table:
                    partial = getattr(leaves[i], "partial", False) or getattr(ended[i], "partial", False)
                    new[i] = t.wrap(table[n, i], k[1], k[2], partial)
                elif self.is_flag(n):
                    new[i] = False
            value = unflatten(structure, new)
            name = self.names.names[n]
            missing = self.entry[n] is UNBOUND or (name in t.maybe and t.maybe[name] is self.entry[n])
            if missing and may_skip and value is not UNBOUND:
                t.maybe[name] = value
            out.append(value)
        return tuple(out)


class RuntimeLoop:
    """Shared by the run-time loops: the protocol head / tail / done."""

    def __init__(self, t: ControlMixin, names: Names, flags: tuple[int, ...]) -> None:
        self.t = t
        self.values = Carried(t, names, flags)
        self.ends: tuple[Any, ...] = ()
        self.after: tuple[Any, ...] = ()
        self.place = t.locate()

    def tail(self, vals: tuple[Any, ...]) -> None:
        self.ends = vals

    def done(self, _: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.after


class RangeLoop(RuntimeLoop):
    """for over range or tl.range."""

    def __init__(self, t: ControlMixin, spec: RangeSpec, names: Names, flags: tuple[int, ...], hints: tuple[str, ...]) -> None:
        super().__init__(t, names, flags)
        self.spec = spec
        self.hint = hints[0] if hints else ""
        self.normal = isinstance(spec.step, int) and spec.step > 0
        self.scope: Scope = t.scope

    def __iter__(self) -> Iterator[Any]:
        t, spec = self.t, self.spec
        if self.normal:
            self.bounds = (spec.lo, spec.hi, spec.step)
        else:  # counts trips: works for every sign of the step
            trips = t.exact_cdiv(t.binary("sub", spec.hi, spec.lo), spec.step)
            self.bounds = (0, trips, 1)
        for _ in range(MAX_RETRACES):
            self.scope = t.push("for")
            arg = t.ir.arg(self.scope.block, t.index_type, self.hint)
            self.iv = t.index_of_val(arg)
            self.args: dict[tuple[int, int], int] = {}
            i = self.iv if self.normal else t.binary("add", spec.lo, t.binary("mul", self.iv, spec.step))
            yield i
            if not self.values.started:
                self.values.start(())
            if self.values.settle(self.ends):
                self._build()
                return
            t.pop(self.scope)
        t.fail("the types of what this loop carries do not settle", "start with values of the final type", self.place)

    def head(self, vals: tuple[Any, ...]) -> tuple[Any, ...]:
        self.values.start(vals)
        before = self.values.flags_live
        self.values.flags_live = False
        self.args = self.values.make_args(self.scope)
        self.values.flags_live = before
        return self.values.arguments(self.scope, self.args)

    def _build(self) -> None:
        t, v = self.t, self.values
        lo, hi, step = self.bounds
        constant = all(isinstance(x, int) for x in self.bounds)
        may_skip = not constant or not len(range(lo, hi, step))
        if v.flags_live:
            vals = self._build_while(lo, hi, step)
        else:
            t.op("yield", v.end_vals(self.ends), (), place=self.place)
            t.pop(self.scope)
            ins = (t.index_val(lo), t.index_val(hi), t.index_val(step), *v.init_vals())
            types = v.types()
            attrs = {k: x for k, x in self.spec.options.items() if x is not None}
            res = t.op("for", ins, types, attrs or None, (self.scope.block,), place=self.place)
            vals = () if not types else (res,) if len(types) == 1 else res
        self.after = v.results(vals, self.ends, may_skip)

    def _build_while(self, lo: Any, hi: Any, step: Any) -> tuple[int, ...]:
        """A for that may be left early: ``while not left and i < hi``."""
        t, v = self.t, self.values
        order = v.carried()
        # The body's arguments are made: the counter, then all but the flags; the flags go to the end.
        plain = [k for k, c in enumerate(order) if not v.is_flag(c[0])]
        flags = [k for k, c in enumerate(order) if v.is_flag(c[0])]
        perm = plain + flags
        for k in flags:
            t.ir.arg(self.scope.block, t.ty_of(bool_), "")
        nxt = t.index_val(t.binary("add", self.iv, step))
        ends = v.end_vals(self.ends)
        t.op("yield", (nxt, *(ends[k] for k in perm)), (), place=self.place)
        t.pop(self.scope)
        test = t.push("while")
        i = t.ir.arg(test.block, t.index_type, self.hint)
        types = v.types()
        args = [t.ir.arg(test.block, types[k], "") for k in perm]
        fl = [t.wrap(a, bool_) for a in args[len(plain) :]]
        more = t.binary("lt", t.index_of_val(i), hi)
        c = t.go(*fl)
        c = more if c is True else t.binary("and", c, more)
        t.op("condition", (t.typed_val(c, ("typed", bool_, ())), i, *args), (), place=self.place)
        t.pop(test)
        inits = v.init_vals()
        ins = (t.index_val(lo), *(inits[k] for k in perm))
        out_types = (t.index_type, *(types[k] for k in perm))
        res = t.op("while", ins, out_types, None, (test.block, self.scope.block), place=self.place)
        out: list[int] = [0] * len(order)
        for pos, k in enumerate(perm):
            out[k] = res[pos + 1]
        return tuple(out)


class WhileLoop(RuntimeLoop):
    """A while statement."""

    def __init__(self, t: ControlMixin, names: Names, flags: tuple[int, ...]) -> None:
        super().__init__(t, names, flags)
        self.traces = 0
        self.skip = False
        self.test_scope: Scope | None = None
        self.body_scope: Scope | None = None

    def more(self) -> bool:
        """Whether to trace (again)."""
        t = self.t
        if self.skip:
            return False
        if self.body_scope is not None:
            if not self.values.started:
                self.values.start(())
            done = self.values.settle(self.ends)
            if done:
                self._build()
                return False
            t.pop(self.body_scope)
        self.traces += 1
        if self.traces > MAX_RETRACES:
            t.fail("the types of what this loop carries do not settle", "start with values of the final type", self.place)
        self.test_scope = t.push("while")
        self.test_args: dict[tuple[int, int], int] = {}
        self.test_vals: tuple[Any, ...] = ()
        return True

    def head(self, vals: tuple[Any, ...]) -> tuple[Any, ...]:
        assert self.test_scope is not None
        self.values.start(vals)
        self.test_args = self.values.make_args(self.test_scope)
        self.test_vals = self.values.arguments(self.test_scope, self.test_args)
        return self.test_vals

    def test(self, c: Any) -> bool:
        t = self.t
        assert self.test_scope is not None
        self.c = t.truth(c)
        if self.c is False and self.traces == 1:
            t.splice(self.test_scope) if t.ir.pure(self.test_scope.block) >= 0 else t.pop(self.test_scope)
            self.skip = True
            self.after = self.values.entry
            return False
        return True

    def body(self, vals: tuple[Any, ...]) -> tuple[Any, ...]:
        """Ends the test block; the body's block begins with what the test block hands on."""
        t, v = self.t, self.values
        assert self.test_scope is not None
        if not v.started:
            v.start(())
        self.handed = vals
        known = True
        for n, x in enumerate(vals):
            if v.kinds[n] == [("unbound",)] and not isinstance(x, Unbound):
                known = False
        if not known:  # names bound by the condition itself: their kinds are known now
            v.settle(vals)
        t.pop(self.test_scope)
        self.body_scope = t.push("while")
        self.body_args = v.make_args(self.body_scope)
        out = list(v.arguments(self.body_scope, self.body_args))
        for f in v.flags:
            out[f] = False
        return tuple(out)

    def _build(self) -> None:
        t, v = self.t, self.values
        assert self.test_scope is not None and self.body_scope is not None
        t.op("yield", v.end_vals(self.ends), (), place=self.place)
        t.pop(self.body_scope)
        scope = self.test_scope
        c = self.c
        if len(self.test_args) != len(v.carried()):
            t.fail("a name that the condition of this while binds needs a value before the loop", place=self.place)
        handed = t.in_scope(
            scope, lambda: (t.typed_val(c, ("typed", bool_, ())), *v.end_vals(self.handed))
        )
        t.in_scope(scope, lambda: t.op("condition", handed, (), place=self.place))
        types = v.types()
        res = t.op("while", v.init_vals(), types, None, (scope.block, self.body_scope.block), place=self.place)
        vals = () if not types else (res,) if len(types) == 1 else res
        self.after = v.results(vals, self.ends, True)


class GridLoop(RuntimeLoop):
    """for over tl.grid: the operation `grid`; inside another one, with rebound locals, plain loops."""

    def __init__(self, t: ControlMixin, spec: GridSpec, names: Names, flags: tuple[int, ...], hints: tuple[str, ...]) -> None:
        super().__init__(t, names, flags)
        self.spec = spec
        self.hints = hints
        self.names = names

    def __iter__(self) -> Iterator[Any]:
        t = self.t
        n = len(self.spec.extents)
        if self.values.flags:
            t.fail("break, continue with a condition and return are not possible in a grid loop", "use if per element")
        if self.names.names and t.grid_depth:
            t.fail(
                f"{self.names.names[0]} is rebound in an inner grid loop: reductions into a local are not implemented yet",
                "accumulate into a tensor element with += instead",
            )
        scope = t.push("grid")
        t.grid_depth += 1
        args = [t.ir.arg(scope.block, t.index_type, self.hints[i] if i < len(self.hints) else "") for i in range(n)]
        ids = tuple(t.index_of_val(a) for a in args)
        yield ids if n > 1 else ids[0]
        t.grid_depth -= 1
        t.op("yield", (), (), place=self.place)
        t.pop(scope)
        ins = tuple(t.index_val(e) for e in self.spec.extents)
        t.op("grid", ins, (), None, (scope.block,), place=self.place)

    def head(self, vals: tuple[Any, ...]) -> tuple[Any, ...]:
        self.after = vals
        if any(v is not UNBOUND for v in vals):
            bad = next(n for n, v in zip(self.names.names, vals) if v is not UNBOUND)
            self.t.fail(
                f"{bad} is carried from one iteration of a grid loop to the next",
                f"accumulate into a tensor element (C[i, j] += ...), or use range for a serial loop over {bad}",
            )
        return vals

    def done(self, vals: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.after


__all__ = ["Arith", "BufferVal", "ControlMixin", "DType", "GridSpec", "Names", "RangeSpec"]
