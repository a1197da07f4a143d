"""Kernels: the decorator, calls, ahead-of-time compilation, and what a compiled kernel tells about itself."""

from __future__ import annotations

import copyreg
import functools
import json
import os
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _core, lines
from .errors import CompileError, LaunchError, SimulatorFault
from .frontend.base import current, give_lock, running
from .frontend.build import BIG, DENSE, NOALIAS, Built, Tracing, build, codegen, launcher_params
from .frontend.build import verify as verify_built
from .frontend.capture import Captures
from .frontend.dtypes import BY_ELEM, DType, as_dtype
from .frontend.ops import MAX_STAGES
from .frontend.outputs import Outputs
from .frontend.params import Param, annotation_names, definition_frame, evaluate_annotations, parse_annotation
from .frontend.source import Source

__all__ = ["CompiledKernel", "Kernel", "compile", "kernel"]

# Options of @tl.kernel and tl.compile: name -> what it must be.
OPTIONS: dict[str, str] = {
    "num_warps": "an int of at least 1",
    "num_stages": "an int of at least 1",
    "waves_per_eu": "an int of at least 1",
    "grid": "an int, a tuple of up to 3 ints, or a function of the arguments",
    "out": "names of output parameters, or a dict to the parameters whose dtypes they have",
    "zero": "names of parameters that are cleared before each launch",
}
INTS = ("num_warps", "num_stages", "waves_per_eu")
LATER = ("workspace", "fp_contract")


def check_options(options: dict[str, Any], captured: Any, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits options from replaced constants; TypeError/ValueError for what is neither."""
    known: dict[str, Any] = {}
    replaced: dict[str, Any] = {}
    for k, v in options.items():
        if k in OPTIONS:
            if v is None:
                continue
            if k in INTS and (isinstance(v, bool) or not isinstance(v, int) or v < 1):
                raise ValueError(f"{name}: option {k} must be {OPTIONS[k]}, got {v!r}")
            if k == "num_stages" and v > MAX_STAGES:
                raise NotImplementedError(f"{name}: num_stages above {MAX_STAGES} is not implemented yet")
            if k == "grid" and not callable(v):
                grid_of(v, name)
            known[k] = v
        elif k in LATER:
            raise NotImplementedError(f"{name}: option {k} is not implemented yet")
        elif captured is not None and k in captured():
            replaced[k] = v
        else:
            names = ", ".join(OPTIONS)
            extra = " or the name of a constant that the kernel captures" if captured is not None else ""
            raise TypeError(f"{name}: unknown option {k!r}; options are {names}{extra}")
    return known, replaced


def grid_of(v: Any, name: str) -> tuple[int, ...]:
    """A grid as a tuple of ints."""
    items = v if isinstance(v, (tuple, list)) else (v,)
    if not 1 <= len(items) <= 3:
        raise LaunchError(f"{name}: a grid has 1 to 3 sizes, got {v!r}")
    out = []
    for n in items:
        if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 0:
            raise LaunchError(f"{name}: a grid is made of ints of at least 0, got {v!r}")
        out.append(n.__index__())
    return tuple(out)


class Definition:
    """What does not change after the decorator ran: source, parameters, values of the annotations' names."""

    def __init__(self, fn: types.FunctionType) -> None:
        self.fn = fn
        self.name = fn.__name__
        self.source = Source(fn, True)
        self.annotations = evaluate_annotations(fn)
        self.outer: dict[str, int] = {}
        self.in_class = self._in_class(fn)
        self._params: list[Param] | None = None
        self._annotated: dict[str, Any] | None = None
        frame = definition_frame(fn)
        code = fn.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if frame is not None and frame.f_locals is not frame.f_globals:
            scope = frame.f_locals
            self.outer = {n: scope[n] for n in names if isinstance(scope.get(n), int)}

    @staticmethod
    def _in_class(fn: types.FunctionType) -> bool:
        head = fn.__qualname__.rpartition(".")[0]
        return bool(head) and not head.endswith("<locals>")

    def _fail(self, message: str, hint: str | None = None) -> None:
        file, line, col, end = self.source.place
        raise CompileError(message, file, line, col, end, hint, "SIGNATURE")

    @property
    def params(self) -> list[Param]:
        if self._params is None:
            self._params = self._read_params()
        return self._params

    def _read_params(self) -> list[Param]:
        fn, code = self.fn, self.fn.__code__
        if self.in_class:
            self._fail(
                f"{fn.__qualname__} is defined in a class: a method cannot be a kernel",
                "define it outside of the class",
            )
        if code.co_flags & 0x0C:
            self.source.compiled()
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        defaults = fn.__defaults__ or ()
        out = []
        for n, name in enumerate(names):
            if name not in self.annotations:
                self._fail(
                    f"parameter {name} has no annotation",
                    f"{name}: tl.Buffer (a tensor), {name}: tl.int32 (a run-time number) or {name}: tl.constexpr",
                )
            try:
                p = parse_annotation(name, self.annotations[name])
            except TypeError as e:
                self._fail(str(e))
            p.keyword_only = n >= code.co_argcount
            first = code.co_argcount - len(defaults)
            if p.keyword_only and fn.__kwdefaults__ and name in fn.__kwdefaults__:
                p.default, p.has_default = fn.__kwdefaults__[name], True
            elif first <= n < code.co_argcount:
                p.default, p.has_default = defaults[n - first], True
            if isinstance(p.default, (list, dict, set)):
                self._fail(f"parameter {name} has a mutable default", "use a tuple or None")
            out.append(p)
        return out

    @property
    def annotated(self) -> dict[str, Any]:
        """Names in the annotations with the values they had."""
        if self._annotated is None:
            found: dict[str, Any] = {}
            try:
                nodes = self.source.annotation_nodes()
            except CompileError:
                nodes = {}
            for name, node in nodes.items():
                found |= annotation_names(node, self.annotations.get(name))
            self._annotated = found
        return self._annotated

    def extents(self) -> dict[str, int]:
        """Integers that the parameters' names mean as extents of a grid loop."""
        out = {}
        for p in self.params:
            for v in (self.annotated.get(p.name), self.outer.get(p.name), self.fn.__globals__.get(p.name)):
                if isinstance(v, int) and not isinstance(v, bool):
                    out[p.name] = v
                    break
        return out


class Engine:
    """A definition with options, replaced constants and perhaps a target: launchers by captured values."""

    lock: threading.Lock

    def __init__(
        self, definition: Definition, options: dict[str, Any], replaced: dict[str, Any], target: str | None
    ) -> None:
        self.definition = definition
        self.options = options
        self.replaced = replaced
        self.target = target
        give_lock(self)
        self.launchers: dict[Any, Any] = {}
        self.recent: tuple[Any, Any] = (None, None)
        self.last: Any = None  # launcher that ran last
        self.outputs: Outputs | None = None
        if options.get("out") or options.get("zero"):
            self.outputs = Outputs(definition.name, definition.params, options.get("out"), options.get("zero"))
        self._captures: Captures | None = None

    @property
    def captures(self) -> Captures:
        if self._captures is None:
            d = self.definition
            self._captures = Captures(
                d.source, self.replaced, d.annotated, tuple(p.name for p in d.params if p.kind == "buffer")
            )
        return self._captures

    def launcher(self, given_grid: bool) -> Any:
        """The launcher for the captured values as they are now."""
        key = self.captures.current()
        recent = self.recent
        if recent[0] is key and not given_grid:
            return recent[1]
        with self.lock:
            found = self.launchers.get((key, given_grid))
            while found is None:
                made = self.make(given_grid, None)
                now = self.captures.current()
                if now == key:  # what was captured for it is what the key says
                    found = self.launchers[key, given_grid] = made
                else:
                    key = now
                    found = self.launchers.get((key, given_grid))
            if not given_grid:
                self.recent = (key, found)
            return found

    def tracing(self) -> Tracing:
        d = self.definition
        return Tracing(d.source, d.params, self.captures.names(), d.extents())

    def make(self, given_grid: bool, fixed: Any) -> Any:
        d = self.definition
        tracing = self.tracing()
        options = dict(self.options)
        if given_grid:
            options["grid"] = True

        def specialize(key: Any) -> Any:
            _, _, arch, params = key
            target = self.target or arch
            if target != arch:
                raise LaunchError(f"{d.name}: compiled for {target}, the arguments are on a {arch}")
            return build(tracing, params, options, target)

        return _core.Launcher(d.name, launcher_params(d.params), specialize, fixed)


class Launchable:
    """The call forms that Kernel and CompiledKernel share."""

    _engine: Engine
    _computed: tuple[str, ...] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if running() is not None:
            current("").fail(
                f"the kernel {self._engine.definition.name} is called inside a kernel", "make it a @tl.func helper"
            )
        return self._run(None, args, kwargs)

    def _run(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launches; the outputs that were left out, one or a tuple, else None."""
        outputs = self._engine.outputs
        if outputs is None:
            return self._launch(grid, args, kwargs)
        bound, made = outputs.prepare(args, kwargs)
        self._launch(grid, (), bound)
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    def __getitem__(self, grid: Any) -> Any:
        """``kernel[grid](...)``: the grid as an int, a tuple, or a function of the arguments.

        The function gets them as attributes: ``kernel[lambda a: tl.cdiv(a.X.shape[0], 64)](x, y)``.
        """
        if not callable(grid):
            grid_of(grid, self._engine.definition.name)
        return _PartialGrid(self, grid)

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    def _call(self, engine: Engine, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if grid is None:
            grid = engine.options.get("grid")
        launcher = engine.launcher(grid is not None)
        if self._computed is None:
            self._computed = tuple(
                p.name
                for p in engine.definition.params
                if p.kind == "constexpr" and isinstance(p.default, types.FunctionType)
            )
        if self._computed:
            args, kwargs = compute(launcher, engine.definition, self._computed, args, kwargs)
        try:
            if grid is None:
                launcher(*args, **kwargs)
            else:
                if callable(grid):
                    values = launcher.bind(args, kwargs)
                    names = [p.name for p in engine.definition.params]
                    grid = grid(types.SimpleNamespace(**dict(zip(names, values))))
                launcher.launch(grid_of(grid, engine.definition.name), args, kwargs)
        except SimulatorFault as fault:
            if launcher.last is not None:
                lines.add(fault, launcher.last.owner)
            raise
        engine.last = launcher


class _PartialGrid:
    """Result of ``kernel[grid]``."""

    def __init__(self, owner: Launchable, grid: Any) -> None:
        self.owner = owner
        self.grid = grid

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.owner._run(self.grid, args, kwargs)


def compute(
    launcher: Any, d: Definition, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Fills in constexpr parameters whose default is a function of the arguments."""
    values = list(launcher.bind(args, kwargs))
    order = [p.name for p in d.params]
    bound = types.SimpleNamespace(**dict(zip(order, values)))
    for n, p in enumerate(d.params):
        if p.name in names and values[n] is p.default:
            values[n] = p.default(bound)
            setattr(bound, p.name, values[n])
    positional = tuple(v for v, p in zip(values, d.params) if not p.keyword_only)
    return positional, {p.name: v for v, p in zip(values, d.params) if p.keyword_only}


class Kernel(Launchable):
    """A kernel: call it with tensors (``k(a, b, c)``), or with a grid of its own (``k[grid](a, b, c)``).

    ``tl.compile(k)`` gives a CompiledKernel, which shows the code (``asm``, ``resources``, ``notes``) and saves it.
    """

    def __init__(self, fn: types.FunctionType, options: dict[str, Any]) -> None:
        if not isinstance(fn, types.FunctionType):
            what = "a method" if isinstance(fn, (staticmethod, classmethod)) else f"a {type(fn).__name__}"
            raise TypeError(f"tl.kernel decorates a Python function, got {what}")
        known, _ = check_options(options, None, fn.__name__)
        self._definition = Definition(fn)
        self._engine = Engine(self._definition, known, {}, None)
        functools.update_wrapper(self, fn)

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._call(self._engine, grid, args, kwargs)

    def __repr__(self) -> str:
        return f"<tilelang kernel {self._definition.name}>"

    def __reduce__(self) -> Any:
        return self._definition.fn.__qualname__  # by reference, as functions are

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self


class Texts(Mapping[str, Any]):
    """``compiled.asm``: "tir" (tile IR as traced), "thread" (what code generation gets), "llir", "amdgcn", "hsaco"."""

    KEYS = ("tir", "thread", "llir", "amdgcn", "hsaco")

    def __init__(self, built: Built) -> None:
        self._built = built
        self._made: Any = None

    def __getitem__(self, key: str) -> Any:
        if key not in self.KEYS:
            raise KeyError(f"asm has {', '.join(self.KEYS)}, not {key!r}")
        if key in ("llir", "amdgcn"):
            if self._made is None:
                self._made = codegen().compile(self._built.thread_text, asm=True, llir=True)
            return self._made.asm if key == "amdgcn" else self._made.llir
        return {"tir": self._built.tile_text, "thread": self._built.thread_text, "hsaco": self._built.hsaco}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.KEYS)

    def __len__(self) -> int:
        return len(self.KEYS)


class CompiledKernel(Launchable):
    """A kernel with fixed options; specialised at each call, or ahead of time (``dtypes=`` or ``like=``)."""

    def __init__(self, kernel: Kernel, target: str | None, options: dict[str, Any], how: tuple[Any, Any]) -> None:
        self.kernel = kernel
        self._args = (target, dict(options), how)
        d = kernel._definition
        known, replaced = check_options(options, d.source.free_names, f"tl.compile({d.name})")
        self._engine = Engine(d, kernel._engine.options | known, replaced, check_target(target))
        d.params  # noqa: B018  (faults of the signature show now)
        self._engine.captures.current()
        self._fixed: Any = None
        functools.update_wrapper(self, d.fn)
        dtypes, like = how
        if dtypes is not None or like is not None:
            self._compile_ahead(dtypes, like)

    def _compile_ahead(self, dtypes: Any, like: Any) -> None:
        d = self._engine.definition
        if dtypes is not None and like is not None:
            raise TypeError(f"tl.compile({d.name}): give dtypes or like, not both")
        key = key_of_dtypes(d, dtypes) if like is None else key_like(d, like)
        target = self._engine.target or default_target()
        options = dict(self._engine.options)
        binary = build(self._engine.tracing(), key, options, target, key)
        params = launcher_params(d.params)
        general = None
        if like is None:  # of overlaps and sizes the dtypes say nothing
            tracing, any_key = self._engine.tracing(), key_of_any(key)
            general = functools.partial(build, tracing, any_key, options, target, any_key)

        def specialize(key: Any) -> Any:
            raise AssertionError("an ahead-of-time kernel is not specialised")

        self._fixed = _core.Launcher(d.name, params, specialize, binary, general)
        self._binary = binary

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._fixed is None:
            self._call(self._engine, grid, args, kwargs)
            return
        if grid is None:
            grid = self._engine.options.get("grid")
        if grid is None:
            self._fixed(*args, **kwargs)
            return
        if callable(grid):
            names = [p.name for p in self._engine.definition.params]
            grid = grid(types.SimpleNamespace(**dict(zip(names, self._fixed.bind(args, kwargs)))))
        self._fixed.launch(grid_of(grid, self._engine.definition.name), args, kwargs)

    def prepare(self, *args: Any, **kwargs: Any) -> CompiledKernel:
        """Compiles the specialisation for these arguments without running it."""
        launcher = self._engine.launcher(self._engine.options.get("grid") is not None)
        binary = launcher.prepare(args, kwargs)
        self._engine.last = launcher
        self._prepared = binary
        return self

    # -- what it tells --

    @property
    def _built(self) -> Built:
        binary = self._fixed.last or self._binary if self._fixed is not None else None
        if binary is None and self._engine.last is not None:
            binary = self._engine.last.last or getattr(self, "_prepared", None)
        if binary is None:
            name = self._engine.definition.name
            raise RuntimeError(
                f"{name} has not been specialised yet: call it, or give tl.compile the argument dtypes= or like="
            )
        built: Built = binary.owner
        return built

    @property
    def asm(self) -> Texts:
        """Texts of the specialisation last run: "tir", "thread", "llir", "amdgcn" (str) and "hsaco" (bytes)."""
        return Texts(self._built)

    @property
    def resources(self) -> dict[str, Any]:
        """vgprs, agprs, sgprs, lds, scratch (bytes), spills, waves, occupancy (waves a SIMD), limit (what sets it)."""
        return dict(self._built.resources)

    @property
    def notes(self) -> list[str]:
        """Remarks of the compiler, performance warnings among them."""
        return list(self._built.notes)

    @property
    def times(self) -> dict[str, float]:
        """Milliseconds of the phases of the compilation."""
        return dict(self._built.times)

    def verify(self, *, ignore: str | Sequence[str] | None = None) -> list[Any]:
        """Checks the code of the specialisation last run without running it: waits, wait states, LDS, registers.

        An empty list, or what is wrong as :class:`tilelang.sim.Finding`. ``ignore``: rules of "hazard" that are left
        out, as of :func:`tilelang.sim.verify`; ValueError when a rule does not exist."""
        return verify_built(self._built, ignore)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the code object to `path`, and the description of its arguments to `path` + ".json"."""
        built = self._built
        Path(path).write_bytes(built.hsaco)
        Path(os.fspath(path) + ".json").write_text(json.dumps(describe(built), indent=1) + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        return f"<compiled tilelang kernel {self._engine.definition.name}>"

    def __reduce__(self) -> Any:
        return _recompile, (self.kernel, *self._args)


def _recompile(kernel: Kernel, target: str | None, options: dict[str, Any], how: tuple[Any, Any]) -> CompiledKernel:
    return CompiledKernel(kernel, target, options, how)


def describe(built: Built) -> dict[str, Any]:
    """What another program needs to launch the kernel; one 8-byte little-endian slot an argument."""
    params = []
    for name, launcher_param, sizes in zip(built.names, built.params, built.sizes):
        k = built.key[launcher_param]
        if k[0] == "scalar":
            params.append({"name": name, "kind": "scalar", "dtype": BY_ELEM[k[1]].name})
        else:
            strides = "dense" if k[5] & 2 else [None if s < 0 else s for s in k[3]]
            dims = [None if d < 0 else d for d in k[2]]
            divisors = [max(1, -d) for d in k[2]]
            params.append(
                {"name": name, "kind": "buffer", "dtype": BY_ELEM[k[1]].name, "sizes": sizes, "dims": dims,
                 "dim_divisors": divisors, "strides": strides, "align": k[4], "noalias": bool(k[5] & NOALIAS),
                 "big": bool(k[5] & BIG)}
            )  # fmt: skip
    slots = [
        {"offset": 8 * i, "size": 8, "kind": kind, "param": built.names[n], "axis": axis}
        for i, (kind, n, axis) in enumerate(built.slots)
    ]
    grid = None
    if built.grid is not None:
        grid = [[list(g[i : i + 3]) for i in range(0, len(g), 3)] for g in built.grid]
    return {
        "kernel": built.name,
        "target": built.target,
        "block": [built.block, 1, 1],
        "grid": grid,
        "grid_note": "axis = product of ceil(dim / C) over [parameter, dim, C]; parameter -1: the constant `dim`",
        "sizes_note": "dims as the kernel declares them; one name is one size in all arguments",
        "params": params,
        "kernarg": slots,
        "kernarg_size": 8 * len(slots),
        "writes": [built.names[n] for n in built.writes],
        "resources": built.resources,
    }


def check_target(target: str | None) -> str | None:
    """The chip's name; ValueError for an unknown one."""
    if target is None:
        return None
    info = _core.target_info(target) if isinstance(target, str) else None
    if info is None:
        raise ValueError(f"unknown target {target!r}; known: {_core.TARGETS}")
    return str(info["name"])


def default_target() -> str:
    """The simulated chip; ValueError that names the variable where it holds no chip."""
    variable = next((v for v in ("TILELANG_SIM_DEVICES", "TILELANG_SIM_ARCH") if os.environ.get(v)), None)
    named = os.environ[variable] if variable else "gfx942"
    chip = (named.replace(",", " ").split() or [named])[0]
    info = _core.target_info(chip)
    if info is None:
        raise ValueError(f"{variable}={named}: unknown chip {chip!r}; known: {_core.TARGETS}")
    return str(info["name"])


def key_of_dtypes(d: Definition, dtypes: Any) -> tuple[Any, ...]:
    """The launcher's key for any strides and alignments; open dtypes as given: one, a sequence in order, or by name."""
    open_ = [p for p in d.params if p.kind == "buffer" and p.buffer.dtype is None]
    if isinstance(dtypes, Mapping):
        unknown = set(dtypes) - {p.name for p in d.params}
        if unknown:
            raise TypeError(f"tl.compile({d.name}): dtypes names no parameter {sorted(unknown)[0]!r}")
        table = {k: as_dtype(v) for k, v in dtypes.items()}
    elif isinstance(dtypes, (tuple, list)):
        if len(dtypes) != len(open_):
            raise TypeError(
                f"tl.compile({d.name}): {len(open_)} parameters have an open dtype, dtypes has {len(dtypes)}"
            )
        table = {p.name: as_dtype(v) for p, v in zip(open_, dtypes)}
    else:
        table = dict.fromkeys((p.name for p in open_), as_dtype(dtypes))
    key: list[Any] = []
    for p in d.params:
        if p.kind == "buffer":
            dtype = p.buffer.dtype or table.get(p.name)
            if dtype is None:
                raise TypeError(f"tl.compile({d.name}): the dtype of {p.name} is open and not in dtypes")
            if p.buffer.dims is None:
                raise TypeError(f"tl.compile({d.name}): the rank of {p.name} is open; give like=(...)")
            dims = tuple(x if isinstance(x, int) else -1 for x in p.buffer.dims)
            key.append(("buffer", dtype.elem, dims, (-1,) * len(dims), min(16, dtype.itemsize), NOALIAS))
        elif p.kind == "scalar":
            assert isinstance(p.dtype, DType)
            key.append(("scalar", p.dtype.elem))
        elif p.has_default and not callable(p.default):
            key.append(("const", p.default))
        else:
            raise TypeError(f"tl.compile({d.name}): the constexpr {p.name} has no value; give like=(...)")
    return tuple(key)


def key_of_any(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key for arguments that may overlap each other and be of any size."""
    return tuple((*k[:5], k[5] & ~NOALIAS | BIG) if k[0] == "buffer" else k for k in key)


def key_like(d: Definition, like: Any) -> tuple[Any, ...]:
    """The launcher's key for arguments like these; torch meta tensors count as 16-byte aligned and apart."""
    values = like if isinstance(like, (tuple, list)) else (like,)
    if len(values) > len(d.params):
        raise TypeError(f"tl.compile({d.name}): like has {len(values)} arguments, the kernel takes {len(d.params)}")
    key: list[Any] = []
    bytes_of: list[tuple[int, range]] = []  # position in the key, addresses
    for n, p in enumerate(d.params):
        v = values[n] if n < len(values) else p.default
        if n >= len(values) and not p.has_default:
            raise TypeError(f"tl.compile({d.name}): like has no value for {p.name}")
        if p.kind == "buffer":
            part, where = (("none",), range(0)) if v is None else buffer_key(d, p, v)
            key.append(part)
            bytes_of.append((n, where))
        elif p.kind == "scalar":
            assert isinstance(p.dtype, DType)
            key.append(("scalar", p.dtype.elem))
        else:
            key.append(("const", v))
    for n, a in bytes_of:
        if a and any(m != n and a.start < b.stop and b.start < a.stop for m, b in bytes_of if b):
            key[n] = (*key[n][:5], key[n][5] & ~NOALIAS)
    return tuple(key)


def buffer_key(d: Definition, p: Param, v: Any) -> tuple[tuple[Any, ...], range]:
    """One tensor's part of the key, and its addresses (none of a meta tensor)."""
    if getattr(getattr(v, "device", None), "type", None) == "meta":
        elem, shape, strides, address = as_dtype(v.dtype).elem, tuple(v.shape), tuple(v.stride()), 0
    else:
        address, elem, shape, strides = _core.tensor_info(v)[:4]
    declared = p.buffer.dims
    if p.buffer.dtype is not None and p.buffer.dtype.elem != elem:
        raise LaunchError(f"{d.name}: parameter {p.name} wants {p.buffer.dtype.name}, like= has {BY_ELEM[elem].name}")
    if declared is not None and len(declared) != len(shape):
        raise LaunchError(f"{d.name}: parameter {p.name} wants rank {len(declared)}, like= has {len(shape)}")
    dims = []
    for i, n in enumerate(shape):
        want = declared[i] if declared is not None else None
        if isinstance(want, int) and want != n:
            raise LaunchError(f"{d.name}: parameter {p.name} wants size {want} in dimension {i}, like= has {n}")
        dims.append(n if isinstance(want, int) else -divisor(n))
    dense, step = True, 1
    for n, s in zip(reversed(shape), reversed(strides)):
        dense &= n == 1 or s == step
        step *= n
    steps = tuple(s if s in (0, 1) else -divisor(s) for s in strides)
    align = address & -address if address else 16
    size = BY_ELEM[elem].itemsize
    below = sum((n - 1) * s for n, s in zip(shape, strides) if s < 0)
    above = sum((n - 1) * s for n, s in zip(shape, strides) if s > 0) + 1
    where = range(address + below * size, address + above * size) if address and step else range(0)
    big = step and (below < 0 or above * size >= 1 << 31)
    flags = NOALIAS | (DENSE if dense else 0) | (BIG if big else 0)
    return ("buffer", elem, tuple(dims), steps, min(16, align), flags), where


def divisor(n: int) -> int:
    """The largest of 16, 8, 4, 2, 1 that divides n."""
    return min(16, n & -n) if n else 16


def kernel(fn: Any = None, /, **options: Any) -> Any:
    """Makes a Kernel of a function: ``@tl.kernel`` or ``@tl.kernel(num_warps=4, num_stages=2, grid=...)``.

    num_warps: waves of a program (1, 2, 4, 8, 16). num_stages: 1 or 2; 2 prefetches the next block of a loop.
    waves_per_eu: waves that are to fit a SIMD. grid: an int, a tuple, or a function of the arguments; without
    it the grid follows from the stores. out: names of outputs that a call may leave out and gets returned (a dict
    ``{"C": "A"}``: C has the dtype of A). zero: names of tensors that are cleared before each launch.
    """
    if fn is None:
        return lambda f: Kernel(f, options)
    return Kernel(fn, options)


def compile(
    kernel: Kernel, target: str | None = None, dtypes: Any = None, like: Any = None, **options: Any
) -> CompiledKernel:
    """A CompiledKernel: options fixed (also ``name=value`` for a captured constant).

    Compiled now with dtypes= or like=, else at the first call with each kind of arguments.

    target: "gfx942", ...; None: the device of the tensors, for CPU tensors the simulated chip. dtypes: of
    the parameters whose dtype is open; any strides fit. Arguments of which one is written and overlaps another, and
    such of 2 GiB and more, run code of their own, compiled at their first call. like: arguments to compile for (torch
    meta tensors allowed); others must be like them.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"tl.compile takes a kernel (a function decorated with @tl.kernel), got {type(kernel).__name__}"
        )
    return CompiledKernel(kernel, target, options, (dtypes, like))


copyreg.pickle(Texts, lambda t: (Texts, (t._built,)))  # type: ignore[arg-type]
