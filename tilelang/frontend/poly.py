"""Polynomials with integer coefficients over atoms: the normal form of index expressions.

A polynomial is a dict from monomial to coefficient (never 0); a monomial is a sorted tuple of atom numbers, () for
the constant. Atoms are numbered by the trace. Two index expressions are equal if their polynomials are, and
``(pid + 1) * C - pid * C`` is seen to be the constant C.
"""

from __future__ import annotations

Poly = dict[tuple[int, ...], int]
Key = frozenset[tuple[tuple[int, ...], int]]


def const(n: int) -> Poly:
    return {(): n} if n else {}


def add(a: Poly, b: Poly, sign: int = 1) -> Poly:
    out = dict(a)
    for m, c in b.items():
        n = out.get(m, 0) + sign * c
        if n:
            out[m] = n
        else:
            del out[m]
    return out


def mul(a: Poly, b: Poly) -> Poly:
    out: Poly = {}
    for m, c in a.items():
        for n, d in b.items():
            key = tuple(sorted(m + n)) if m and n else m or n
            v = out.get(key, 0) + c * d
            if v:
                out[key] = v
            else:
                del out[key]
    return out


def as_const(a: Poly) -> int | None:
    """Its value if it is a constant."""
    if not a:
        return 0
    if len(a) == 1 and () in a:
        return a[()]
    return None


def exact_div(a: Poly, n: int) -> Poly | None:
    """a / n if n (not 0) divides every coefficient."""
    if any(c % n for c in a.values()):
        return None
    return {m: c // n for m, c in a.items()}


def key(a: Poly) -> Key:
    return frozenset(a.items())
