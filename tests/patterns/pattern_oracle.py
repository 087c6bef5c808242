"""The loops that patterns stand for, written out: the oracle of these tests, and what generates
patterns for it.  It does not read patterns: it is given names, the text is made from them."""
from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

#: leaf of the documented tree
LEAF = 128


class Spec:
    """An einsum: names of every operand (with "..." expanded), of the result, and its text."""

    def __init__(self, terms, out, text):
        self.terms, self.out, self.text = terms, out, text

    def __repr__(self):
        return f"Spec({self.text!r}, {self.terms})"


def lengths(spec, shapes):
    sizes = {}
    for term, shape in zip(spec.terms, shapes):
        for name, n in zip(term, shape):
            sizes[name] = n if sizes.get(name, 1) == 1 else sizes[name]
    return sizes


def entries(spec, arrays):
    """For every index of the result, the factors of every term, in the documented order."""
    sizes = lengths(spec, [a.shape for a in arrays])
    names = list(dict.fromkeys(n for t in spec.terms for n in t))
    summed = [n for n in names if n not in spec.out]
    for where in product(*[range(sizes[n]) for n in spec.out]):
        terms = []
        for inner in product(*[range(sizes[n]) for n in summed]):
            at = dict(zip((*spec.out, *summed), (*where, *inner)))
            terms.append([a[tuple(at[n] if m != 1 else 0 for n, m in zip(t, a.shape))]
                          for t, a in zip(spec.terms, arrays)])
        yield where, terms


def written_loop(spec, arrays, order="ordered"):
    """The result in the arithmetic of the arrays, term by term."""
    sizes = lengths(spec, [a.shape for a in arrays])
    dtype = arrays[0].dtype
    out = np.zeros([sizes[n] for n in spec.out], dtype)
    with np.errstate(all="ignore"):
        for where, terms in entries(spec, arrays):
            out[where] = COMBINE[order](terms, dtype.type)
    return out


def _ordered(terms, scalar):
    total = scalar(0)
    for factors in terms:
        p = scalar(1)
        for x in factors:
            p = p * x
        total = total + p
    return total


def _fused(terms, scalar):
    if len(terms[0]) == 1 if terms else True:
        return _ordered(terms, scalar)
    total = scalar(0)
    for *left, last in terms:
        p = scalar(1)
        for x in left:
            p = p * x
        total = fma(p, last, total, scalar)
    return total


def fma(a, b, c, scalar):
    """a * b + c with one rounding (finite operands)."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return scalar(float(exact)) if exact else a * b + c


def _tree(terms, scalar):
    parts = [_ordered(terms[k:k + LEAF], scalar) for k in range(0, len(terms), LEAF)] or [scalar(0)]
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2:]
        parts = [a + b for a, b in zip(parts[0::2], parts[1::2])] + odd
    return parts[0]


COMBINE = {"ordered": _ordered, "fused": _fused, "tree": _tree}


def exact_values(spec, arrays):
    """The result in rational numbers, as a dictionary of indices."""
    return {where: sum((math.prod(map(Fraction, map(int, factors))) for factors in terms), Fraction(0))
            for where, terms in entries(spec, arrays)}


# ---- generated patterns ----

NAMES = ("a", "b", "row", "feature", "é", "x_1", "head")


@st.composite
def einsums(draw, max_operands=3, sizes=(0, 1, 2, 3)):
    """A Spec with the shapes of its operands: diagonals, ellipses, lengths 1 that stretch."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    length = {n: draw(st.sampled_from(sizes)) for n in names}
    more = {f"...{k}": draw(st.sampled_from(sizes)) for k in range(draw(st.integers(0, 2)))}
    terms, shapes, texts = [], [], []
    for _ in range(draw(st.integers(1, max_operands))):
        term = draw(st.lists(st.sampled_from(names), max_size=3))
        at = draw(st.integers(0, len(term)))
        dots = sorted(more, reverse=True)[draw(st.integers(0, len(more))):] if more else []
        texts.append(_written(draw, [*term[:at], *["..."] * bool(dots), *term[at:]]))
        term = [*term[:at], *dots, *term[at:]]
        stretched = {n for n in term if draw(st.integers(0, 5)) == 0}
        terms.append(tuple(term))
        shapes.append(tuple(1 if n in stretched else {**length, **more}[n] for n in term))
    present = list(dict.fromkeys(n for t in terms for n in t if n in length))
    out = draw(st.permutations(present))[:draw(st.integers(0, len(present)))]
    dots = sorted({n for t in terms for n in t if n in more}, reverse=True)
    keep = bool(dots) and draw(st.booleans())
    text = ", ".join(texts) + " -> " + " ".join([*["..."] * keep, *out])
    return Spec(terms, (*(dots if keep else ()), *out), text), shapes


def _written(draw, words):
    return " ".join(f"({w})" if w != "..." and draw(st.integers(0, 7)) == 0 else w for w in words)


def spread(shape, rng):
    """Numbers whose sums depend on the order: large and small, both signs and both zeros."""
    values = np.array([0.0, -0.0, 1.0, -1.0, 1e16, -1e16, 0.1, 3.0, -7e-3])
    return rng.choice(values, shape).astype(np.float64)
