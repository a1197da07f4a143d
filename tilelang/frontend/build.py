"""From a specialisation key to a compiled Binary: parameters, trace, passes, code generation."""

from __future__ import annotations

import difflib
import sys
import time
import types
from collections.abc import Sequence
from typing import Any

from .. import _core, lines
from .._env import flag
from .._lazy import module
from ..errors import CompileError, TileLangError
from . import hints
from .base import PLACES, Place, set_current
from .dtypes import BY_ELEM
from .params import Dim, DimExpr, Param, bare
from .source import Source
from .trace import Trace

NOALIAS, DENSE, BIG = 1, 2, 4
Key = tuple[Any, ...]


class Built:
    """One compiled specialisation: its texts, resources and times; hangs on the Binary as ``owner``."""

    def __init__(self) -> None:
        self.name = ""
        self.target = ""
        self.key: Key = ()
        self.tile_text = ""
        self.thread_text = ""
        self.hsaco = b""
        self.resources: dict[str, Any] = {}
        self.times: dict[str, float] = {}
        self.notes: list[str] = []
        self.block = 0
        self.grid: Any = None
        self.params: tuple[int, ...] = ()
        self.slots: tuple[Any, ...] = ()
        self.names: tuple[str, ...] = ()
        self.sizes: tuple[Any, ...] = ()  # of each argument: the dims of its annotation as written, or None
        self.writes: tuple[int, ...] = ()
        self.lds = 0
        self.asserts: dict[str, list[str]] = {}  # "file:line" -> messages
        self.lines: dict[int, str] | None = None  # filled in by tilelang.lines


def hint_of(e: Exception, place: Place) -> str | None:
    """A way out for a Python error in a kernel's body: the name that was meant, functions that take no tiles."""
    if isinstance(e, AttributeError) and isinstance(e.name, str):
        package = sys.modules[__package__.partition(".")[0]]
        if e.obj is package:
            known = hints.way_out(e.name)
            if known is not None:
                return known
            near = difflib.get_close_matches(e.name, [n for n in dir(package) if not n.startswith("_")], 1)
            return f"did you mean tl.{near[0]}?" if near else "help(tilelang) lists what kernels can call"
        if type(e.obj).__module__.startswith(package.__name__ + ".") and hasattr(package, e.name):
            return f"it is a function: tl.{e.name}(x, ...)"
        if type(e.obj).__module__.startswith(package.__name__ + "."):
            return hints.way_out(e.name)
    if isinstance(e, TypeError) and ("not Tile" in str(e) or "type Tile" in str(e)):
        found = hints.of_place(place)
        return "functions of other packages take no tiles; use those of tilelang" + (f": {found}" if found else "")
    return None


def dims_text(d: Any) -> Any:
    """A declared dim as the launcher wants it: int, name, or (operator, x, y)."""
    if isinstance(d, Dim):
        return d.name
    if isinstance(d, DimExpr):
        return (d.op, *(dims_text(x) for x in d.args))
    return int(d)


def launcher_params(params: list[Param]) -> tuple[Any, ...]:
    """The declaration of the parameters for ``_core.Launcher``."""
    out = []
    for p in params:
        preset = (p.default,) if p.has_default else ()
        if p.kind == "buffer":
            b = p.buffer
            dims = None if b.dims is None else tuple(dims_text(d) for d in b.dims)
            out.append(("buffer", p.name, b.dtype.elem if b.dtype else None, dims, repr(b), *preset))
        elif p.kind == "scalar":
            assert p.dtype is not None
            out.append(("scalar", p.name, p.dtype.elem, None, p.dtype.name, *preset))
        else:
            out.append(("const", p.name, None, None, "constexpr", *preset))
    return tuple(out)


class Tracing:
    """Makes the IR of one specialisation."""

    def __init__(self, source: Source, params: list[Param], names: dict[str, Any], extents: dict[str, Any]) -> None:
        self.source = source
        self.params = params
        self.names = names
        self.extents = extents

    def run(self, key: Key, options: dict[str, Any], target: str) -> Trace:
        """Traces the kernel for a key of the launcher's form; CompileError with a place for any fault."""
        t = Trace(_core.Ir(), _core.OPS, self.source.fn.__name__, self.source.place)
        before = set_current(t)
        try:
            ir, k = t.ir, t.kernel
            ir.attr(k, "target", target)
            for name in ("num_warps", "num_stages", "waves_per_eu"):
                if options.get(name) is not None:
                    ir.attr(k, name, options[name])
            if options.get("grid") is not None:
                ir.attr(k, "user_grid", 1)
            args, kwargs = self.arguments(t, key)
            t.resolve_extent = self.extents.get
            fn = self.source.function(t, t.outside(self.source, self.names))
            try:
                t.run(fn, args, kwargs)
            except TileLangError:
                raise
            except RecursionError as e:
                t.fail("the recursion of a helper function does not end while tracing", place=place_of(e, t))
                raise AssertionError from e
            except Exception as e:
                file, line, col, end = place_of(e, t)
                what = str(e) or type(e).__name__
                text = what if isinstance(e, TypeError) else f"{type(e).__name__}: {what}"
                raise CompileError(
                    text, file or None, line, col, end, hint_of(e, (file, line, col, end)), "PYTHON"
                ) from e
            ir.verify(k)
            return t
        finally:
            set_current(before)

    def arguments(self, t: Trace, key: Key) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The symbolic arguments; also sets t.tile_params to the indices of what the kernel takes at run time."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        self.tile_params: list[int] = []
        buffers: list[tuple[Param, Any, Key]] = []
        for n, (p, k) in enumerate(zip(self.params, key)):
            if k[0] == "buffer":
                value: Any = self.buffer(t, p, k, len(self.tile_params))
                buffers.append((p, value, k))
                self.tile_params.append(n)
            elif k[0] == "scalar":
                value = t.add_scalar(p.name, BY_ELEM[k[1]])
                self.tile_params.append(n)
            else:
                value = None if k[0] == "none" else k[1]
            if p.keyword_only:
                keywords[p.name] = value
            else:
                positional.append(value)
        self.shapes(t, buffers)
        return tuple(positional), keywords

    def buffer(self, t: Trace, p: Param, k: Key, position: int) -> Any:
        _, elem, dims, strides, align, flags = k
        sizes = tuple(d if d >= 0 and self.declared(p, i) else None for i, d in enumerate(dims))
        dim_div = tuple(1 if s is not None else max(1, -d) for s, d in zip(sizes, dims))
        if flags & DENSE:
            step: int | None = 1
            div = 1
            rows: list[tuple[int | None, int]] = []
            for s, d in zip(reversed(sizes), reversed(dim_div)):
                rows.append((step, 1 if step is not None else div))
                div = div * (s if s is not None else d)
                step = step * s if step is not None and s is not None else None
                div = min(div, 1 << 16) if div & (div - 1) == 0 else div & -div or 1
            rows.reverse()
            steps, step_div = tuple(r[0] for r in rows), tuple(r[1] for r in rows)
        else:
            steps = tuple(s if s >= 0 else None for s in strides)
            step_div = tuple(1 if s >= 0 else -s for s in strides)
        ty = t.ir.buffer(elem, sizes, steps, dim_div, step_div, align, flags)
        b = t.add_buffer(p.name, position, BY_ELEM[elem], ty, len(sizes))
        b.shape = sizes
        b.stride_list = tuple(s if s is not None else t.dim_of(b, i, "stride") for i, s in enumerate(steps))
        return b

    @staticmethod
    def declared(p: Param, axis: int) -> bool:
        return p.buffer.dims is not None and isinstance(p.buffer.dims[axis], int)

    def shapes(self, t: Trace, buffers: list[tuple[Param, Any, Key]]) -> None:
        """Shapes of the buffers: ints, one integer a named dim, expressions of them, else a size of its own."""
        same: list[int] = []
        first: dict[str, tuple[int, int]] = {}
        for p, b, _ in buffers:
            for axis, d in enumerate(p.buffer.dims or ()):
                if not isinstance(d, Dim):
                    continue
                if d.name in first:
                    same += [*first[d.name], b.position, axis]
                else:
                    first[d.name] = (b.position, axis)
                    t.dims[d.name] = t.dim_of(b, axis)
        for p, b, _ in buffers:
            shape: list[Any] = []
            for axis, size in enumerate(b.shape):
                d = p.buffer.dims[axis] if p.buffer.dims is not None else None
                if size is not None:
                    shape.append(size)
                elif isinstance(d, DimExpr) and d.names() <= set(t.dims):
                    shape.append(t.dim_value(d))
                else:
                    shape.append(t.dim_of(b, axis))
            b.shape = tuple(shape)
        if same:
            t.ir.attr(t.kernel, "same_dims", tuple(same))


def place_of(e: BaseException, t: Trace) -> tuple[str, int, int, int]:
    """The innermost place in the user's code of an exception's traceback."""
    place = t.place
    tb: types.TracebackType | None = e.__traceback__
    while tb is not None:
        here = at_instruction(tb)
        if here is not None:
            place = here
        tb = tb.tb_next
    return place


class _Frame:
    __slots__ = ("f_code", "f_lasti", "f_lineno")


def at_instruction(tb: types.TracebackType) -> tuple[str, int, int, int] | None:
    """PLACES for a traceback entry (its frame has gone on since)."""
    f = _Frame()
    f.f_code, f.f_lasti, f.f_lineno = tb.tb_frame.f_code, tb.tb_lasti, tb.tb_lineno
    return PLACES.of(f)  # type: ignore[arg-type]


def slots_of(types_: list[str], key: Key, tile_params: list[int], declared: Any) -> tuple[Any, ...]:
    """The kernarg: (kind, tile parameter, axis) a slot."""
    out: list[tuple[str, int, int]] = []
    for n, launcher_param in enumerate(tile_params):
        k = key[launcher_param]
        if k[0] == "scalar":
            out.append(("scalar", n, 0))
            continue
        out.append(("ptr", n, 0))
        sizes = [d >= 0 and declared(launcher_param, i) for i, d in enumerate(k[2])]
        out += [("dim", n, i) for i, known in enumerate(sizes) if not known]
        if not k[5] & DENSE:
            out += [("stride", n, i) for i, s in enumerate(k[3]) if s < 0]
    return tuple(out)


def only_reads_overlap(key: Key, tile_params: list[int], written: set[int]) -> Key | None:
    """The key without overlaps, if those there are lie between arguments that are only read (``matmul(a, a, c)``)."""
    overlapping = {n for n, k in enumerate(key) if k[0] == "buffer" and not k[5] & NOALIAS}
    if not overlapping or any(tile_params[w] in overlapping for w in written):
        return None
    return tuple((*k[:5], k[5] | NOALIAS) if k[0] == "buffer" else k for k in key)


def sizes_of(p: Param) -> list[int | str] | None:
    """The dims of a buffer's annotation: ints, names and expressions as text; None: any, or no buffer."""
    if p.kind != "buffer" or p.buffer.dims is None:
        return None
    return [d if isinstance(d, int) else bare(repr(d)) for d in p.buffer.dims]


def build(tracing: Tracing, key: Key, options: dict[str, Any], target: str, requires: Any = None) -> Any:
    """Compiles one specialisation; the launcher's Binary, with a Built as its owner."""
    t0 = time.perf_counter()
    t = tracing.run(key, options, target)
    alone = only_reads_overlap(key, tracing.tile_params, t.written)
    if alone is not None:
        t = tracing.run(alone, options, target)
        requires = alone if requires is not None else None
    ir = t.ir
    out = Built()
    out.name = tracing.source.fn.__name__
    out.target = target
    out.key = key
    out.names = tuple(tracing.params[n].name for n in tracing.tile_params)
    out.sizes = tuple(sizes_of(tracing.params[n]) for n in tracing.tile_params)
    out.writes = tuple(sorted(t.written))
    out.tile_text = ir.text(t.kernel, True)
    t1 = time.perf_counter()
    kernel, _, pass_times = ir.passes(t.kernel)
    out.thread_text = ir.text(kernel, True)
    t2 = time.perf_counter()
    llvm = codegen()
    t3 = time.perf_counter()
    code = llvm.compile(out.thread_text, line_tables=lines.wanted())
    t4 = time.perf_counter()
    out.hsaco = code.hsaco
    out.block = ir.attr(kernel, "block")
    out.lds = ir.attr(kernel, "lds_bytes") or 0
    grid = tuple(ir.attr(kernel, f"grid{a}") for a in range(3))
    while grid and grid[-1] is None:
        grid = grid[:-1]
    out.grid = None if options.get("grid") is not None else grid
    out.params = tuple(tracing.tile_params)
    out.slots = slots_of([], key, tracing.tile_params, lambda n, i: tracing.declared(tracing.params[n], i))
    out.asserts = t.asserts
    out.notes = [row[1] for row in ir.diagnostics() if row[0] == "note"] + t.notes
    out.resources = resources(code.resources, target, out.block)
    out.times = {"trace": (t1 - t0) * 1e3, "passes": (t2 - t1) * 1e3, "load_llvm": (t3 - t2) * 1e3}
    out.times |= {f"codegen_{k}": v for k, v in code.times.items() if k != "total"}
    out.times |= {"codegen": (t4 - t3) * 1e3, "total": (t4 - t0) * 1e3}
    out.times |= {f"pass_{name}": ms for name, ms, _ in pass_times}
    if flag("TILELANG_VERIFY"):
        require_clean(out)
    binary = _core.Binary(out.hsaco, code.kernel, out.params, out.slots, out.grid, out.block, out.writes, requires)
    binary.owner = out
    return binary


def verify(built: Built, ignore: str | Sequence[str] | None = None) -> list[Any]:
    """What the static verifier finds in the code object, as :class:`tilelang.sim.Finding`; without the rules of
    "hazard" that ``ignore`` names."""
    return module("tilelang.sim").verify(built.hsaco, lds_bytes=built.lds, ignore=ignore)


def require_clean(built: Built) -> None:
    """Raises CompileError when the static verifier finds an error: a fault of the compiler."""
    found = [f for f in verify(built) if f.severity == "error"]
    if found:
        shown = "\n".join(f"  {f}" for f in found[:8]) + (f"\n  and {len(found) - 8} more" if len(found) > 8 else "")
        raise CompileError(f"internal error: the code of {built.name} is not sound\n{shown}", code="INTERNAL")


def codegen() -> Any:
    """The code generator, loaded at the first compile."""
    try:
        return module("tilelang._llvm")
    except ImportError as e:
        raise CompileError(
            f"code generation is not available: {e}",
            hint="LLVM 22 with lld is needed to compile (apt-get install llvm-22-dev liblld-22-dev, then build again)",
            code="NO_LLVM",
        ) from e


def resources(found: dict[str, int], target: str, block: int) -> dict[str, Any]:
    """Registers, LDS, scratch, spills, and how many waves fit, with the limit that sets it."""
    waves = max(1, block // found["wave_size"])
    occupancy = _core.occupancy(target, found["vgprs"], found["agprs"], found["lds_bytes"], waves)
    return {
        "vgprs": found["vgprs"],
        "agprs": found["agprs"],
        "sgprs": found["sgprs"],
        "lds": found["lds_bytes"],
        "scratch": found["scratch_bytes"],
        "spills": found["vgpr_spills"] + found["sgpr_spills"],
        "waves": waves,
        "occupancy": occupancy["waves_per_simd"],
        "workgroups": occupancy["workgroups"],
        "limit": occupancy["limit"],
    }
