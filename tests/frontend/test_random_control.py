"""Random programs of loops, branches, jumps and rebound integers: the kernel must do what Python does."""

from __future__ import annotations

import random
import types
from typing import Any

import numpy as np
import pytest
from fe_util import module

NAMES = ["a", "b", "c", "d"]


class Program:
    """Source text of a random kernel body; every loop ends after a few turns."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.budget = 22
        self.count = 0

    def atom(self, loops: list[str]) -> str:
        kind = self.r.random()
        if kind < 0.45:
            return self.r.choice(NAMES)
        if kind < 0.6 and loops:
            return self.r.choice(loops)
        if kind < 0.8:
            return f"x[{self.r.choice(NAMES + loops)} % 8]"
        return str(self.r.randint(-3, 9))

    def value(self, loops: list[str]) -> str:
        a, b = self.atom(loops), self.atom(loops)
        kind = self.r.random()
        if kind < 0.5:
            return f"({a} {self.r.choice('+-*')} {b}) % 97"
        if kind < 0.65:
            return f"({a} if {self.test(loops)} else {b})"
        if kind < 0.8:
            return f"{self.r.choice(['min', 'max'])}({a}, {b})"
        return f"({a} // {self.r.randint(2, 5)})"

    def test(self, loops: list[str]) -> str:
        one = f"{self.atom(loops)} {self.r.choice(['<', '<=', '>', '==', '!='])} {self.atom(loops)}"
        kind = self.r.random()
        if kind < 0.2:
            two = f"{self.atom(loops)} < {self.atom(loops)}"
            return f"({one} {self.r.choice(['and', 'or'])} {two})"
        if kind < 0.3:
            return f"not {one}"
        if kind < 0.36:
            return f"{self.atom(loops)} < {self.atom(loops)} < {self.r.randint(2, 60)}"
        return one

    def block(self, depth: int, loops: list[str], in_loop: bool) -> None:
        pad = "    " * depth
        for _ in range(self.r.randint(1, 4)):
            self.budget -= 1
            if self.budget < 0:
                break
            kind = self.r.random()
            if kind < 0.42 or depth > 4:
                name = self.r.choice(NAMES)
                if self.r.random() < 0.3:
                    self.lines.append(f"{pad}{name} += {self.atom(loops)} % 50")
                else:
                    self.lines.append(f"{pad}{name} = {self.value(loops)}")
            elif kind < 0.5:
                one, two = self.r.sample(NAMES, 2)
                self.lines.append(f"{pad}{one}, {two} = {two}, {one}")
            elif kind < 0.72:
                self.lines.append(f"{pad}if {self.test(loops)}:")
                self.block(depth + 1, loops, in_loop)
                if self.r.random() < 0.5:
                    self.lines.append(f"{pad}else:")
                    self.block(depth + 1, loops, in_loop)
            elif kind < 0.84:
                self.count += 1
                i = f"i{self.count}"
                bound = self.r.choice(["3", "a % 5", "x[b % 8] % 4", "1, 6, 2", "4, 0, -1"])
                word = "tl.static_range" if bound[0].isdigit() and self.r.random() < 0.25 else "range"
                self.lines.append(f"{pad}for {i} in {word}({bound}):")
                self.block(depth + 1, [*loops, i], True)
            elif kind < 0.9:
                self.count += 1
                w = f"w{self.count}"
                self.lines += [f"{pad}{w} = 0", f"{pad}while {w} < 4 and {self.test(loops)}:", f"{pad}    {w} += 1"]
                self.block(depth + 1, loops, True)
            elif in_loop:
                self.lines += [f"{pad}if {self.test(loops)}:", f"{pad}    {self.r.choice(['break', 'continue'])}"]
            elif self.r.random() < 0.5:
                self.lines += [f"{pad}if {self.test(loops)}:"]
                self.lines += [f"{pad}    o[{n}] = {name}" for n, name in enumerate(NAMES)] + [f"{pad}    return"]
        if not self.lines or self.lines[-1].rstrip().endswith(":"):
            self.lines.append(f"{pad}pass")

    def text(self) -> str:
        start = ["a = 1", "b = x[2]", "c = 0", "d = x[5] + x[1]"]
        self.lines += ["    " + s for s in start]
        while self.budget > 0:
            self.block(1, [], False)
        self.lines += [f"    o[{n}] = {name}" for n, name in enumerate(NAMES)]
        return "\n".join(["def body(x, o):", *self.lines])


def python_result(text: str, x: list[int]) -> list[int]:
    scope: dict[str, Any] = {"tl": types.SimpleNamespace(static_range=range)}
    exec(text, scope)
    out = [-1] * 4
    scope["body"](x, out)
    return out


@pytest.mark.parametrize("seed", range(60))
def test_program(seed: int) -> None:
    text = Program(seed).text()
    kernel = text.replace(
        "def body(x, o):", "@tl.kernel\ndef body(x: tl.Buffer[8, tl.int32], o: tl.Buffer[4, tl.int32]):"
    )
    m = module(kernel + "\n")
    rng = np.random.default_rng(seed)
    print(f"seed {seed}\n{text}")
    for _ in range(3):
        x = rng.integers(0, 40, 8).astype(np.int32)
        out = np.full(4, -1, np.int32)
        m.body[1](x, out)
        assert out.tolist() == python_result(text, x.tolist()), x.tolist()
