"""The names that kernels and helpers read from outside: their values are part of the cache key.

A key is made of identities (functions' code, classes) and values (numbers, strings, tuples). ``Captures`` remembers
where each value was read, so that a call only looks whether the same objects are still there.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import enum
import functools
import types
from collections.abc import Callable
from typing import Any

from ..errors import CompileError
from .base import PACKAGE, Place, running
from .dtypes import DType
from .params import Buffer, DimExpr
from .source import Source

MISSING = object()


class Ref:
    """An object as a key by its identity; keeps it alive."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Ref) and other.obj is self.obj

    def __hash__(self) -> int:
        return hash(id(self.obj))


class Unkeyable(Exception):
    """A captured value that may change without being seen."""


class Func:
    """A helper decorated with ``@tl.func``: inlined where it is called, its control flow works on run-time values."""

    def __init__(self, fn: types.FunctionType) -> None:
        if not isinstance(fn, types.FunctionType):
            raise TypeError(f"tl.func decorates a Python function, got {type(fn).__name__}")
        self.fn = fn
        self.source = Source(fn, False)
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        t = running()
        return self.fn(*args, **kwargs) if t is None else t.call_func(self, args, kwargs)

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        return self if obj is None else functools.partial(self, obj)

    def __reduce__(self) -> Any:
        return self.fn.__qualname__


Read = tuple[Callable[..., Any], Any, Any, Any]  # getter, its two arguments, the value it gave


def read_global(scope: dict[str, Any], name: str) -> Any:
    v = scope.get(name, MISSING)
    return getattr(builtins, name, MISSING) if v is MISSING else v


def read_cell(cell: Any, _: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def read_attr(obj: Any, name: str) -> Any:
    return getattr(obj, name, MISSING)


class KeyMaker:
    """Makes the key of everything that a function reads, recursively."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.seen: dict[int, int] = {}

    def read(self, getter: Callable[..., Any], a: Any, b: Any) -> Any:
        v = getter(a, b)
        self.reads.append((getter, a, b, v))
        return v

    def value(self, v: Any) -> Any:
        """The key of a value; Unkeyable if it could change unseen."""
        if v is None or isinstance(v, (bool, int, str, bytes, complex)) and not isinstance(v, enum.Enum):
            return (type(v), v)
        if isinstance(v, float):
            return (float, v.hex())
        if isinstance(v, (DType, types.BuiltinFunctionType, types.ModuleType)) or v is MISSING or v is Buffer:
            return Ref(v)
        if isinstance(v, DimExpr):
            return ("dim", repr(v))
        if isinstance(v, enum.Enum):
            return (Ref(type(v)), v.name)
        if isinstance(v, Func):
            return self.function(v.fn)
        if isinstance(v, types.FunctionType):
            return self.function(v)
        if isinstance(v, type):
            return Ref(v)
        if isinstance(v, tuple):
            return (Ref(type(v)), *(self.value(x) for x in v))
        if isinstance(v, (range, slice)):
            return (type(v), *(self.value(x) for x in (v.start, v.stop, v.step)))
        if isinstance(v, frozenset):
            return (frozenset, frozenset(self.value(x) for x in v))
        if isinstance(v, functools.partial):
            return ("partial", self.value(v.func), self.value(v.args), self.value(tuple(sorted(v.keywords.items()))))
        if dataclasses.is_dataclass(v) and v.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            fields = dataclasses.fields(v)
            return (Ref(type(v)), *(self.value(getattr(v, f.name)) for f in fields))
        return self._foreign(v)

    def _foreign(self, v: Any) -> Any:
        module = type(v).__module__.partition(".")[0]
        if type(v).__name__ == "dtype" and module in ("torch", "numpy"):
            return (module, str(v))
        if (
            module == "numpy"
            and type(v).__name__ != "ndarray"
            and getattr(v, "shape", None) == ()
            and hasattr(v, "item")
        ):
            return ("numpy", v.dtype.str, v.tobytes())
        if type(v).__name__ in ("ufunc", "_ArrayFunctionDispatcher") or type(v).__module__ == "tilelang.kernel":
            return Ref(v)
        raise Unkeyable(type(v).__name__)

    def function(self, fn: types.FunctionType) -> Any:
        """Code, defaults and everything it reads."""
        n = self.seen.get(id(fn))
        if n is not None:
            return ("again", n)
        self.seen[id(fn)] = len(self.seen)
        key: list[Any] = [Ref(fn.__code__)]
        if fn.__code__.co_filename.startswith(PACKAGE):
            return tuple(key)
        for d in (*(fn.__defaults__ or ()), *sorted((fn.__kwdefaults__ or {}).items())):
            key.append(self.value(d))
        for path in bytecode_paths(fn.__code__):
            key.append(self.path(fn, path, None))
        return tuple(key)

    def path(self, fn: types.FunctionType, path: tuple[str, ...], override: dict[str, Any] | None) -> Any:
        """A name and the attributes that are read of it."""
        v = self.lookup(fn, path[0], override)
        return self.attributes(v, path)

    def lookup(self, fn: types.FunctionType, name: str, override: dict[str, Any] | None) -> Any:
        if override and name in override:
            return override[name]
        free = fn.__code__.co_freevars
        if name in free:
            return self.read(read_cell, (fn.__closure__ or ())[free.index(name)], None)
        return self.read(read_global, fn.__globals__, name)

    def attributes(self, v: Any, path: tuple[str, ...]) -> Any:
        """Follows attributes through modules and classes to the value that counts."""
        i = 1
        while i < len(path) and isinstance(v, (types.ModuleType, type)) and not isinstance(v, enum.EnumMeta):
            if isinstance(v, types.ModuleType) and v.__name__.partition(".")[0] == "tilelang":
                return Ref(getattr(v, path[i], MISSING))
            v = self.read(read_attr, v, path[i])
            i += 1
        return self.value(v)


@functools.lru_cache(maxsize=1024)
def _paths_of(ref: Ref) -> tuple[tuple[str, ...], ...]:
    out: dict[tuple[str, ...], None] = {}
    todo = [ref.obj]
    while todo:
        code = todo.pop()
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        chain: list[str] = []
        for ins in dis.get_instructions(code):
            if ins.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain.append(str(ins.argval))
                continue
            if chain:
                out[tuple(chain)] = None
                chain = []
            if ins.opname in ("LOAD_GLOBAL", "LOAD_NAME") or (
                ins.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and ins.argval in ref.obj.co_freevars
            ):
                chain = [str(ins.argval)]
        if chain:
            out[tuple(chain)] = None
    return tuple(out)


def bytecode_paths(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Global and free names that a plain function reads, with the attributes read of them."""
    return _paths_of(Ref(code))


class Captures:
    """What one kernel's body reads from outside, now."""

    def __init__(
        self, source: Source, override: dict[str, Any], annotated: dict[str, Any], params: tuple[str, ...]
    ) -> None:
        self.source = source
        self.override = override
        self.annotated = annotated  # names in the annotations and the values they had
        self.params = params
        self.found: tuple[list[Read], Any] | None = None  # where values were read, and the key they made

    def current(self) -> Any:
        """The key of the captured values as they are now. CompileError for what cannot be captured."""
        found = self.found
        if found is not None:
            for getter, a, b, v in found[0]:
                if getter(a, b) is not v:
                    break
            else:
                return found[1]
        return self._make()

    def _make(self) -> Any:
        maker = KeyMaker()
        fn = self.source.fn
        maker.seen[id(fn)] = 0
        key: list[Any] = [Ref(fn.__code__)]
        for path in self.source.paths():
            try:
                v = maker.lookup(fn, path[0], self.override)
                self._check_annotated(path[0], v)
                key.append(maker.attributes(v, path))
            except Unkeyable as e:
                self._refuse(".".join(path), str(e), self.source.name_place(path[0]))
        for name in self.params:  # a buffer's name as an extent of grid means the integer of that name
            v = maker.read(dict.get, fn.__globals__, name)
            if isinstance(v, int):
                key.append((name, v))
        done = tuple(key)
        self.found = (maker.reads, done)
        return done

    def _check_annotated(self, name: str, v: Any) -> None:
        if name not in self.annotated or name in self.params:
            return
        was = self.annotated[name]
        if v is was or (type(v) is type(was) and v == was):
            return
        file, line, col, end = self.source.name_place(name)
        raise CompileError(
            f"{name} was {was} when the annotations were evaluated and is {v if v is not MISSING else 'gone'} now",
            file,
            line,
            col,
            end,
            f"define the kernel again after changing {name} (e.g. in a factory function), or use tl.dim({name!r})",
            "STALE_NAME",
        )

    @staticmethod
    def _refuse(name: str, kind: str, place: Place) -> None:
        file, line, col, end = place
        raise CompileError(
            f"the kernel reads {name} from outside, a {kind}: it could change without being noticed",
            file,
            line,
            col,
            end,
            "capture numbers, strings, dtypes, tuples, frozen dataclasses or functions; pass tensors as parameters",
            "CAPTURE",
        )

    def names(self) -> dict[str, Any]:
        """The captured names' values, for a trace."""
        fn = self.source.fn
        maker = KeyMaker()
        out = {}
        for name in self.source.free_names():
            v = maker.lookup(fn, name, self.override)
            if v is not MISSING:
                out[name] = v
        return out
