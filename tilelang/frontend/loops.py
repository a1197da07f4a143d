"""Run-time and unrolled loops and branches, as the rewritten source iterates over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import Scope
from .control import (
    SPLICE_LIMIT,
    ControlMixin,
    GridSpec,
    Kind,
    Names,
    RangeSpec,
    flatten,
    same_kind,
    same_shape,
    unflatten,
)
from .dtypes import bool_
from .values import UNBOUND, Idx, Memory, Scalar, Unbound, Value

MAX_RETRACES = 5


def is_computed(v: Any) -> bool:
    """Whether a value knows the line that made it (parameters and allocations are older than their names)."""
    return isinstance(v, Value) and not isinstance(v, Memory)


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
        return v.place[1] if is_computed(v) else self.names.inside(n) or self.names.before[n]


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
            if self.structures[n] == 0 and self.kinds[n][0][0] == "unbound" and not isinstance(v, Unbound):
                self.structures[n] = structure
                self.leaves[n] = [UNBOUND] * len(leaves)
                self.kinds[n] = [self.t.kind_of(x, True) for x in leaves]
                again = True
                continue
            if not same_shape(structure, self.structures[n]):
                self._error(n, self.t.describe(self.entry[n]), self.t.describe(v), v)
            for i, x in enumerate(leaves):
                again |= self._settle_leaf(n, i, x, v)
        return not again

    def _settle_leaf(self, n: int, i: int, x: Any, whole: Any) -> bool:
        t = self.t
        kind, init = self.kinds[n][i], self.leaves[n][i]
        new = t.kind_of(x, True)
        if same_kind(new, kind):
            return False
        if kind[0] == "object" or new[0] == "object":
            if kind[0] == new[0] and (init is x or (not isinstance(x, Value) and t._equal(init, x))):
                return False
            self._error(n, t.describe(init), t.describe(x), whole)
        if new[0] == "unbound":
            return False
        number = t.is_weak(init) or isinstance(init, Unbound)
        if number and isinstance(x, Idx) and kind[1] is not None and not kind[2] and t.fits(init, new):
            self.kinds[n][i] = new  # a number that becomes an exact integer is one from the start
            return True
        if t.fits(x, kind):
            return False
        if (number or isinstance(init, Idx)) and t.fits(init, new):
            self.kinds[n][i] = new
            return True
        self._error(n, t.kind_text(kind), t.kind_text(new), whole)
        return False

    def _error(self, n: int, before: str, after: str, v: Any) -> None:
        name = self.names.names[n]
        entry = self.entry[n]
        first = entry.place[1] if is_computed(entry) else self.names.before[n]
        last = v.place[1] if is_computed(v) else self.names.inside(n)
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

    def __init__(
        self, t: ControlMixin, spec: RangeSpec, names: Names, flags: tuple[int, ...], hints: tuple[str, ...]
    ) -> None:
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
        for _ in flags:
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


class BoxLoop(RangeLoop):
    """An inner grid loop with locals that it rebinds: a run-time loop over its elements, the last index fastest."""

    def __init__(
        self, t: Any, extents: tuple[Any, ...], names: Names, flags: tuple[int, ...], hints: tuple[str, ...]
    ) -> None:
        total: Any = 1
        for e in extents:
            total = t.binary("mul", total, e)
        self.extents = extents
        super().__init__(t, RangeSpec(t, 0, total, 1, {}), names, flags, hints if len(extents) == 1 else ())

    def __iter__(self) -> Iterator[Any]:
        for n in super().__iter__():
            ids: list[Any] = []
            for e in reversed(self.extents[1:]):
                ids.append(self.t.binary("mod", n, e))
                n = self.t.binary("floordiv", n, e)
            ids.append(n)
            yield tuple(reversed(ids)) if len(ids) > 1 else ids[0]


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
            if done and len(self.test_args) == len(self.values.carried()):
                self._build()
                return False
            t.pop(self.body_scope)
        self.traces += 1
        if self.traces > MAX_RETRACES:
            t.fail(
                "the types of what this loop carries do not settle", "start with values of the final type", self.place
            )
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
        if self.c is False and self.traces == 1 and t.ir.pure(self.test_scope.block) >= 0:
            t.pop(self.test_scope)
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
            if len(v.kinds[n]) == 1 and v.kinds[n][0][0] == "unbound" and not isinstance(x, Unbound):
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
        handed = t.in_scope(scope, lambda: (t.typed_val(c, ("typed", bool_, ())), *v.end_vals(self.handed)))
        t.in_scope(scope, lambda: t.op("condition", handed, (), place=self.place))
        types = v.types()
        res = t.op("while", v.init_vals(), types, None, (scope.block, self.body_scope.block), place=self.place)
        vals = () if not types else (res,) if len(types) == 1 else res
        self.after = v.results(vals, self.ends, True)


class GridLoop(RuntimeLoop):
    """for over tl.grid: the operation `grid`; inside another one, with rebound locals, plain loops."""

    def __init__(
        self, t: ControlMixin, spec: GridSpec, names: Names, flags: tuple[int, ...], hints: tuple[str, ...]
    ) -> None:
        super().__init__(t, names, flags)
        self.spec = spec
        self.hints = hints
        self.names = names

    def __iter__(self) -> Iterator[Any]:
        t = self.t
        n = len(self.spec.extents)
        if self.values.flags:
            t.fail("break, continue with a condition and return are not possible in a grid loop", "use if per element")
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
                f"accumulate into a tensor element (C[i, j] += ...), or loop over {bad} with range",
            )
        return vals

    def done(self, vals: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.after
