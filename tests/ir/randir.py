"""Random tile-level kernels that the verifier accepts, for tests that compare two ways of running one program."""

from __future__ import annotations

import random

INT = "add sub mul min max and or xor floordiv mod truncdiv rem shl shr".split()
EXACT_INDEX = "add sub mul min max floordiv mod".split()
FLOAT = "add sub mul min max fmin fmax".split()
CMP = "eq ne lt le gt ge".split()


class Gen:
    """One kernel: %X an i32 buffer and %Y an f32 buffer of n elements, both written at the end and in between."""

    def __init__(self, seed: int, n: int = 16, size: int = 40) -> None:
        self.rng = random.Random(seed)
        self.n, self.size = n, size
        self.count = 0
        self.lines: list[str] = []
        self.scopes: list[dict[str, list[str]]] = [{}]

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def put(self, text: str) -> None:
        self.lines.append("  " * len(self.scopes) + text)

    def have(self, t: str) -> list[str]:
        return [v for s in self.scopes for v in s.get(t, [])]

    def define(self, t: str, text: str) -> str:
        v = self.name()
        self.put(f"{v} = {text} : {t}")
        self.scopes[-1].setdefault(t, []).append(v)
        return v

    def const(self, t: str) -> str:
        e = t.removeprefix("tile<8x").rstrip(">")
        if e == "f32":
            return self.define(t, f"const {{fvalue = {self.rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 3.0])}}}")
        choices = (
            [0, 1]
            if e == "i1"
            else [0, 1, 2, 3, 4, 5, 8, 16, 255]
            if e[0] == "u"
            else [0, 1, -1, 2, 3, 4, 5, 8, -3, 16]
        )
        value = self.rng.choice(choices)
        return self.define(t, f"const {{value = {value}}}")

    def get(self, t: str) -> str:
        known = self.have(t)
        return self.rng.choice(known[-12:]) if known and self.rng.random() < 0.85 else self.const(t)

    def arith(self) -> None:
        r = self.rng
        t = r.choice(["i32", "i32", "index", "f32", "u8", "tile<8xi32>", "tile<8xf32>"])
        op = r.choice(FLOAT if "f32" in t else EXACT_INDEX if t == "index" else INT)
        if t == "index":  # exact: keep it small
            a, b = self.get(t), self.get(t)
            v = self.define(t, f"{op} {a}, {b}")
            lim = self.define(t, "const {value = 1000}")
            self.define(t, f"mod {v}, {lim}")
        elif r.random() < 0.1:
            op = "neg" if "f32" in t else r.choice(["neg", "not", "abs"])
            self.define(t, f"{op} {self.get(t)}")
        else:
            self.define(t, f"{op} {self.get(t)}, {self.get(t)}")

    def other(self) -> None:
        r = self.rng
        kind = r.randrange(8)
        if kind == 0:
            t = r.choice(["i32", "f32", "index"])
            self.define("i1", f"{r.choice(CMP)} {self.get(t)}, {self.get(t)}")
        elif kind == 1:
            t = r.choice(["i32", "f32", "tile<8xi32>", "tile<8xf32>"])
            self.define(t, f"select {self.get('i1')}, {self.get(t)}, {self.get(t)}")
        elif kind == 2:
            a, b = r.sample(["i32", "f32", "index", "u8", "i64", "f16"], 2)
            self.define(b, f"cast {self.get(a) if a in ('i32', 'f32', 'index') else self.const_of(a)}")
        elif kind == 3:
            e = r.choice(["i32", "f32"])
            self.define(f"tile<8x{e}>", f"splat {self.get(e)}")
        elif kind == 4:
            self.define("tile<8xi32>", f'load %X, {self.get("index")} {{dims = "s"}}')
        elif kind == 5:
            self.define("f32", f"element %Y, {self.get('index')}")
        elif kind == 6:
            e = r.choice(["i32", "f32"])
            full = self.define(f"tile<8x{e}>", f"fill {self.get(f'tile<8x{e}>')}, {self.get(e)}")
            self.define(e, f'reduce {full} {{axis = 0, kind = "{r.choice(["max", "min", "sum"])}"}}')
        else:
            self.put(f"set_element %Y, {self.get('f32')}, {self.get('index')}")

    def const_of(self, t: str) -> str:
        return self.define(t, "const {fvalue = 1.5}" if t[0] == "f" else "const {value = 5}")

    def region(self, args: dict[str, str], steps: int) -> None:
        self.scopes.append({})
        for v, t in args.items():
            self.scopes[-1].setdefault(t, []).append(v)
        self.body(steps)

    def control(self, steps: int) -> None:
        r = self.rng
        types = [r.choice(["i32", "f32", "tile<8xi32>", "i1"]) for _ in range(r.randrange(4))]
        res = [self.name() for _ in types]
        left = ", ".join(res) + " = " if res else ""
        if r.random() < 0.5:
            c = self.get("i1")
            self.put(f"{left}if {c} () {{")
            for last in (False, True):
                self.region({}, steps // 2)
                self.put("yield " + ", ".join(self.get(t) for t in types))
                self.scopes.pop()
                self.put("} () {" if not last else "}" + (" : " + ", ".join(types) if types else ""))
        else:
            lo, hi, step = (
                self.define("i32", f"const {{value = {v}}}") for v in (0, r.randrange(5), r.choice([1, 2, 3]))
            )
            inits = [self.get(t) for t in types]
            args = {self.name(): t for t in ["i32", *types]}
            text = ", ".join(f"{v} : {t}" for v, t in args.items())
            self.put(f"{left}for {', '.join([lo, hi, step, *inits])} ({text}) {{")
            self.region(args, steps // 2)
            carried = list(args)[1:]
            give = [v if r.random() < 0.25 else self.get(t) for v, t in zip(carried, types, strict=True)]
            self.put("yield " + ", ".join(give))
            self.scopes.pop()
            self.put("}" + (" : " + ", ".join(types) if types else ""))
        for v, t in zip(res, types, strict=True):
            self.scopes[-1].setdefault(t, []).append(v)

    def body(self, steps: int) -> None:
        while steps > 0:
            p = self.rng.random()
            if p < 0.12 and len(self.scopes) < 4:
                self.control(steps)
                steps -= steps // 2
            elif p < 0.65:
                self.arith()
            else:
                self.other()
            steps -= 1

    def kernel(self) -> str:
        self.scopes[-1] = {"i32": ["%n"], "f32": ["%s"]}
        self.define("index", "program_id {axis = 0}")
        self.body(self.size)
        for i in range(3):
            at = self.define("index", f"const {{value = {i}}}")
            self.put(f"set_element %X, {self.get('i32')}, {at}")
            self.put(f"set_element %Y, {self.get('f32')}, {at}")
        at = self.define("index", "const {value = 4}")
        self.put(f'store %X, {self.get("tile<8xi32>")}, {at} {{dims = "s"}}')
        self.put(f'store %Y, {self.get("tile<8xf32>")}, {at} {{dims = "s"}}')
        head = (
            f"kernel @r level tile (%X : buf<i32 [{self.n}] strides [1] align 4>, "
            f"%Y : buf<f32 [?] strides [1] align 4>, %n : i32, %s : f32) {{"
        )
        return "\n".join([head, *self.lines, "}"]) + "\n"
