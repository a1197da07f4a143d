"""Random tile programs of the kind that users write: slices of matrices over ragged edges, element-wise work,
broadcasts, reductions, shared tiles, loops, branches, dots. Values stay small integers, so every order of summation
gives the same result and compiled code must agree with the evaluator bit for bit."""

from __future__ import annotations

import random


class Gen:
    """One kernel: %A, %B inputs and %C output of one element type, [M, N] each; %n : i32, %s its scalar."""

    def __init__(self, seed: int) -> None:
        r = self.rng = random.Random(seed)
        self.elem = r.choice(["f32", "f32", "f16", "bf16", "i32", "i32"])
        self.work = "i32" if self.elem == "i32" else "f32"
        self.m, self.n = r.choice([1, 3, 16, 37, 64, 100]), r.choice([1, 5, 16, 33, 64, 130])
        self.tm, self.tn = r.choice([1, 4, 16, 32]), r.choice([8, 16, 32, 64])
        self.warps = r.choice([1, 2, 4])
        self.dynamic = r.random() < 0.6
        self.count = 0
        self.lines: list[str] = []
        self.depth = 1
        self.tiles: list[list[str]] = [[]]
        self.rows: list[list[str]] = [[]]
        self.scalars: list[list[str]] = [[]]

    def put(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def op(self, text: str, t: str) -> str:
        self.count += 1
        self.put(f"%v{self.count} = {text} : {t}")
        return f"%v{self.count}"

    @property
    def tt(self) -> str:
        return f"tile<{self.tm}x{self.tn}x{self.work}>"

    def const(self, t: str, v: int) -> str:
        flt = "f32" in t or "f16" in t
        return self.op(f"const {{fvalue = {v}.0}}" if flt else f"const {{value = {v}}}", t)

    def pick(self, pool: list[list[str]]) -> str | None:
        known = [v for s in pool for v in s]
        return self.rng.choice(known[-8:]) if known else None

    def tile(self) -> str:
        return self.pick(self.tiles) or self.clamp(self.load("%A"))

    def clamp(self, v: str, t: str | None = None) -> str:
        """To -4 .. 4, so that sums and products stay exact."""
        t = t or self.tt
        return self.op(f"max {self.op(f'min {v}, {self.const(t, 4)}', t)}, {self.const(t, -4)}", t)

    def load(self, buf: str, row: str = "%row", col: str = "%col") -> str:
        v = self.op(f'load {buf}, {row}, {col} {{dims = "ss"}}', f"tile<{self.tm}x{self.tn}x{self.elem}>")
        v = v if self.elem == self.work else self.op(f"cast {v}", self.tt)
        return v if self.rng.random() < 0.5 else self.filled(v)

    def filled(self, v: str) -> str:
        return self.op(f"fill {v}, {self.const(self.work, self.rng.choice([0, 1, -2]))}", self.tt)

    def scalar(self) -> str:
        return self.pick(self.scalars) or self.const(self.work, 2)

    def step(self) -> None:
        r, tt, w = self.rng, self.tt, self.work
        kind = r.randrange(18)
        if kind <= 3:
            v = self.op(f"{r.choice(['add', 'sub', 'mul', 'min', 'max'])} {self.tile()}, {self.tile()}", tt)
            self.tiles[-1].append(self.clamp(v))
        elif kind == 4:
            mask = f"tile<{self.tm}x{self.tn}xi1>"
            c = self.op(f"{r.choice(['lt', 'ge', 'eq', 'ne'])} {self.tile()}, {self.tile()}", mask)
            self.tiles[-1].append(self.op(f"select {c}, {self.tile()}, {self.tile()}", tt))
        elif kind == 5:
            self.tiles[-1].append(self.clamp(self.load(r.choice(["%A", "%B"]))))
        elif kind == 6:
            self.tiles[-1].append(self.op(f"splat {self.scalar()}", tt))
        elif kind in (7, 8):
            self.reduce()
        elif kind == 9:
            i = self.op(f"arange {{start = {r.choice([0, 1, -3])}}}", f"tile<{self.tn}xi32>")
            x = self.op(f"cast {i}", f"tile<{self.tn}xf32>") if w == "f32" else i
            self.tiles[-1].append(self.clamp(self.spread(x, 0)))
        elif kind == 10:
            e = self.op(f"element %B, %row, {self.op('const {value = 0}', 'index')}", self.elem)
            e = e if self.elem == w else self.op(f"cast {e}", w)
            self.scalars[-1].append(self.clamp(e, w))
        elif kind == 11:
            self.shared()
        elif kind == 12:
            c = self.op(f"cast {self.tile()}", f"tile<{self.tm}x{self.tn}x{r.choice(['i16', 'f64', 'i8'])}>")
            self.tiles[-1].append(self.op(f"cast {c}", tt))
        elif kind == 13:
            self.dot()
        elif kind == 14:
            self.odd_load()
        elif kind == 17:
            self.single()
        elif kind == 15:
            back = f"tile<{self.tn}x{self.tm}x{w}>"
            x = self.op(f"trans {self.tile()} {{perm = [1, 0]}}", back)
            x = self.op(f"add {x}, {x}", back)
            self.tiles[-1].append(self.clamp(self.op(f"trans {x} {{perm = [1, 0]}}", tt)))
        else:
            flat = f"tile<{self.tm * self.tn}x{w}>"
            x = self.op(f"reshape {self.filled(self.tile())}", flat)
            self.tiles[-1].append(self.op(f"reshape {self.clamp(x, flat)}", tt))

    def odd_load(self) -> None:
        """Ends, steps, single rows and index tiles."""
        r = self.rng
        kind, e = r.randrange(4), self.elem
        if kind == 0:
            end = self.op(f"const {{value = {r.choice([1, 7, 20])}}}", "index")
            v = self.op(f'load %A, %row, %col, {end} {{dims = "se"}}', f"tile<{self.tm}x{self.tn}x{e}>")
        elif kind == 1:
            v = self.op('load %B, %row, %col {dims = "ss", steps = [1, 2]}', f"tile<{self.tm}x{self.tn}x{e}>")
        elif kind == 2:
            self.single()
            return
        else:
            i = self.op(f"arange {{start = {r.choice([0, -2, 3])}}}", f"tile<{self.tm}xi32>")
            v = self.op(f'load %B, {i}, %col {{dims = "ts"}}', f"tile<{self.tm}x{self.tn}x{e}>")
        v = v if e == self.work else self.op(f"cast {v}", self.tt)
        self.tiles[-1].append(self.filled(self.clamp(v)))

    def single(self) -> None:
        """One row or column, perhaps outside: then nothing of it is valid."""
        r, e = self.rng, self.elem
        at = r.choice(["%row", "%pn", "-1", "n", "last", "past"])
        if at == "n":
            at = self.op("cast %n", "index")
            at = self.op(f"sub {at}, {self.op('const {value = 1}', 'index')}", "index")
        elif at[0] != "%":
            known = {"-1": -1, "last": min(self.m, self.n) - 1, "past": self.m}
            at = self.op(f"const {{value = {known[at]}}}", "index")
        row = r.random() < 0.6
        size = self.tn if row else self.tm
        where, dims = (f"{at}, %col", "is") if row else (f"%row, {at}", "si")
        v = self.op(f'load {r.choice(["%A", "%B"])}, {where} {{dims = "{dims}"}}', f"tile<{size}x{e}>")
        v = v if e == self.work else self.op(f"cast {v}", f"tile<{size}x{self.work}>")
        v = self.clamp(self.spread(v, 0 if row else 1))
        self.tiles[-1].append(v if r.random() < 0.5 else self.filled(v))

    def dot(self) -> None:
        """tile [tm, tn] = A-slice [tm, k] @ a computed tile [k, tn], or with its own transpose."""
        r = self.rng
        if self.work != "f32" or self.tm < 16 or self.tn < 16:
            return
        k, e = r.choice([16, 32]), r.choice(["f16", "bf16", "f32"])
        off = self.op(f"const {{value = {r.choice([0, 16])}}}", "index")
        a = self.op(f'load %A, %row, {off} {{dims = "ss"}}', f"tile<{self.tm}x{k}x{self.elem}>")
        b = self.op(f'load %B, {off}, %col {{dims = "ss"}}', f"tile<{k}x{self.tn}x{self.elem}>")
        ops = []
        for v, shape in ((a, f"{self.tm}x{k}"), (b, f"{k}x{self.tn}")):
            v = v if e == self.elem else self.op(f"cast {v}", f"tile<{shape}x{e}>")
            if r.random() < 0.4:
                sh = self.op("alloc_shared", f"shared<{shape}x{e}>")
                self.put(f'store {sh}, {v} {{dims = ""}}')
                v = sh
            elif r.random() < 0.5:
                v = self.op(f"mul {v}, {self.const(f'tile<{shape}x{e}>', 2)}", f"tile<{shape}x{e}>")
            ops.append(v)
        acc = self.const(self.tt, r.choice([0, 1]))
        d = self.op(f"dot {ops[0]}, {ops[1]}, {acc}", self.tt)
        self.tiles[-1].append(self.filled(self.clamp(d)))

    def spread(self, v: str, axis: int) -> str:
        """A row or column vector over the whole tile."""
        shape = (1, self.tn) if axis == 0 else (self.tm, 1)
        x = self.op(f"expand_dims {v} {{axis = {axis}}}", f"tile<{shape[0]}x{shape[1]}x{self.work}>")
        return x if shape == (self.tm, self.tn) else self.op(f"broadcast {x}", self.tt)

    def reduce(self) -> None:
        axis, kind = self.rng.randrange(2), self.rng.choice(["sum", "max", "min"])
        n = [self.tn, self.tm][axis]
        source = self.tile()
        if self.rng.random() < 0.5:
            source = self.filled(source)
        v = self.op(f'reduce {source} {{axis = {axis}, kind = "{kind}"}}', f"tile<{n}x{self.work}>")
        v = self.clamp(v, f"tile<{n}x{self.work}>")
        if self.rng.random() < 0.6:
            self.tiles[-1].append(self.spread(v, axis))
        else:
            s = self.op(f'reduce {v} {{axis = 0, kind = "{self.rng.choice(["sum", "max"])}"}}', self.work)
            self.scalars[-1].append(self.clamp(s, self.work))

    def shared(self) -> None:
        ty = f"shared<{self.tm}x{self.tn}x{self.work}>"
        sh = self.op("alloc_shared", ty)
        self.put(f'store {sh}, {self.tile()} {{dims = ""}}')
        self.tiles[-1].append(self.op(f'load {sh} {{dims = ""}}', self.tt))

    def scope(self) -> None:
        self.depth += 1
        for pool in (self.tiles, self.rows, self.scalars):
            pool.append([])

    def leave(self) -> None:
        self.depth -= 1
        for pool in (self.tiles, self.rows, self.scalars):
            pool.pop()

    def loop(self) -> None:
        r = self.rng
        lo, hi = (
            self.op("const {value = 0}", "i32"),
            r.choice(["%n", self.op(f"const {{value = {r.randrange(4)}}}", "i32")]),
        )
        one = self.op("const {value = 1}", "i32")
        init = self.filled(self.tile())
        res, iv, arg = (f"%{x}{self.count}" for x in ("loop", "i", "acc"))
        self.put(f"{res} = for {lo}, {hi}, {one}, {init} ({iv} : i32, {arg} : {self.tt}) {{")
        self.scope()
        self.tiles[-1].append(arg)
        x = self.op(f"cast {iv}", self.work) if self.work != "i32" else iv
        self.scalars[-1].append(x)
        for _ in range(r.randrange(1, 4)):
            self.step()
        v = self.filled(self.clamp(self.op(f"add {arg}, {self.tile()}", self.tt)))
        self.put(f"yield {v}")
        self.leave()
        self.put(f"}} : {self.tt}")
        self.tiles[-1].append(res)

    def branch(self) -> None:
        c = self.op(f"{self.rng.choice(['lt', 'ge', 'eq'])} {self.scalar()}, {self.scalar()}", "i1")
        res = f"%if{self.count}"
        self.put(f"{res} = if {c} () {{")
        for last in (False, True):
            self.scope()
            for _ in range(self.rng.randrange(3)):
                self.step()
            self.put(f"yield {self.filled(self.tile())}")
            self.leave()
            self.put("} () {" if not last else f"}} : {self.tt}")
        self.tiles[-1].append(res)

    def kernel(self) -> str:
        r = self.rng
        self.put("%pm = program_id {axis = 0} : index")
        self.put("%pn = program_id {axis = 1} : index")
        self.put(f"%tm = const {{value = {self.tm}}} : index")
        self.put(f"%tn = const {{value = {self.tn}}} : index")
        self.put("%row = mul %pm, %tm : index")
        self.put("%col = mul %pn, %tn : index")
        self.scalars[-1].append("%s")
        for _ in range(r.randrange(3, 12)):
            p = r.random()
            self.loop() if p < 0.12 else self.branch() if p < 0.2 else self.step()
        out = self.tile()
        out = out if self.elem == self.work else self.op(f"cast {out}", f"tile<{self.tm}x{self.tn}x{self.elem}>")
        self.put(f'store %C, {out}, %row, %col {{dims = "ss"}}')
        dims = "?, ?" if self.dynamic else f"{self.m}, {self.n}"
        stride = "?" if self.dynamic else str(self.n)
        buf = f"buf<{self.elem} [{dims}] strides [{stride}, 1] align 4 noalias>"
        head = (
            f'kernel @r level tile {{num_warps = {self.warps}, target = "gfx942"}} '
            f"(%A : {buf}, %B : {buf}, %C : {buf}, %n : i32, %s : {self.work}) {{"
        )
        return "\n".join([head, *self.lines, "}"]) + "\n"

    def grid(self) -> tuple[int, int]:
        return -(-self.m // self.tm), -(-self.n // self.tn)
