"""Small thread-level kernels as text, for the tests of code generation."""

from __future__ import annotations

from dataclasses import dataclass

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
FP8 = ["f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"]
BYTES = {"i1": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, **{t: 1 for t in FP8}, **{t: int(t[1:]) // 8 for t in INTS}}
TARGETS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]


def kernel(
    body: str, params: str = "", target: str = "gfx942", block: int = 64, name: str = "k", **attrs: object
) -> str:
    """Text of one kernel; attrs are further kernel attributes (int or str)."""
    items: dict[str, object] = {"target": target, "block": block, **attrs}
    text = ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in items.items())
    lines = "\n".join("  " + line.strip() for line in body.strip().splitlines() if line.strip())
    return f"kernel @{name} level thread {{{text}}} ({params}) {{\n{lines}\n}}\n"


@dataclass
class Ew:
    """One element-wise operation: name, operand types, result type."""

    op: str
    ins: list[str]
    out: str


def vec(t: str, n: int) -> str:
    return t if n == 1 else f"vec<{n}x{t}>"


def elementwise_kernel(ops: list[Ew], n: int = 1, target: str = "gfx942", block: int = 64, name: str = "k") -> str:
    """A kernel that runs each operation on its own arrays: for operation j parameters a{j}_0.. and r{j}, thread t
    works on elements n*t .. n*t+n-1 of each. Arrays are contiguous; one workgroup row of `block` threads per program.
    """
    params: list[str] = []
    body = ["%tid = thread_id : i32", "%pid = program_id {axis = 0} : i32", f"%bs = const {{value = {block}}} : i32"]
    body += ["%p0 = mul %pid, %bs : i32", "%t32 = add %p0, %tid : i32", "%t = cast %t32 : i64"]
    sizes = sorted({n * BYTES[t] for e in ops for t in [*e.ins, e.out]})
    for s in sizes:
        body += [f"%s{s} = const {{value = {s}}} : i64", f"%o{s} = mul %t, %s{s} : i64"]

    def address(array: str, t: str) -> str:
        params.append(f"%{array} : ptr")
        body.append(f"%p_{array} = ptr_add %{array}, %o{n * BYTES[t]} : ptr")
        return f"%p_{array}"

    for j, e in enumerate(ops):
        ins = []
        for i, t in enumerate(e.ins):
            p, v = address(f"a{j}_{i}", t), f"%v{j}_{i}"
            load = f"glb_load {p} {{align = {BYTES[t]}}}"
            if t == "i1":  # a byte each
                body += [f"{v}b = {load} : {vec('i8', n)}", f"{v} = cast {v}b : {vec('i1', n)}"]
            else:
                body.append(f"{v} = {load} : {vec(t, n)}")
            ins.append(v)
        body.append(f"%x{j} = {e.op} {', '.join(ins)} : {vec(e.out, n)}")
        p, x = address(f"r{j}", e.out), f"%x{j}"
        if e.out == "i1":
            body.append(f"{x}b = cast {x} : {vec('i8', n)}")
            x += "b"
        body.append(f"glb_store {p}, {x} {{align = {BYTES[e.out]}}}")
    return kernel("\n".join(body), ", ".join(params), target, block, name)


BINARY_ALL = ["add", "sub", "mul", "min", "max"]
BINARY_INT = ["floordiv", "mod", "truncdiv", "rem", "and", "or", "xor", "shl", "shr"]
BINARY_FLOAT = ["div", "fmin", "fmax"]
UNARY_FLOAT = ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round"]
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]


def operations(t: str) -> list[Ew]:
    """Every element-wise operation of ops.def that exists for element type t (f64 has no exp and log yet)."""
    out = [Ew(op, [t, t], "i1") for op in COMPARE] + [Ew("select", ["i1", t, t], t)]
    if t in FP8:
        return out[-1:]
    out += [Ew(op, [t, t], t) for op in BINARY_ALL]
    out += [Ew(op, [t], t) for op in ("neg", "abs")]
    if t in FLOATS:
        out += [Ew(op, [t, t], t) for op in BINARY_FLOAT] + [Ew("fma", [t, t, t], t)]
        skip = ("exp", "exp2", "log", "log2") if t == "f64" else ()
        out += [Ew(op, [t], t) for op in UNARY_FLOAT if op not in skip]
    else:
        out += [Ew(op, [t, t], t) for op in BINARY_INT] + [Ew("not", [t], t)]
    return out


def casts(t: str) -> list[Ew]:
    """Conversions from t to every other element type."""
    return [Ew("cast", [t], u) for u in ["i1", *INTS, *FLOATS, *FP8] if u != t]
