"""Einsum syntax + shapes -> a plan: labels, lengths, and the steps of the contraction.

Every order but "free" has one step over all operands: the written loop.  With "free", three or more
operands are contracted in one pass where two of them have every index, else two at a time, along the
path that opt_einsum finds cheapest (Smith and Gray, "opt_einsum - A Python package for optimizing
contraction order for einsum-like expressions", JOSS 2018).
"""
from __future__ import annotations

from math import prod
from typing import NamedTuple

from tlgrad.patterns.letters import read_einsum, spans_of_letter
from tlgrad.patterns.messages import Fault, closest, listed, quoted
from tlgrad.patterns.parse import ELLIPSIS, Einsum, side_span, term_span
from tlgrad.patterns.plan import checked_sizes


class Operand(NamedTuple):
    """How an operand is read: diagonals, then axes of length 1 that others stretch are dropped."""
    diagonals: tuple[tuple[int, ...], ...]
    squeezed: tuple[int, ...] | None          # the shape without them
    labels: tuple[int, ...]


class Step(NamedTuple):
    """One contraction of the operands at `positions` (taken away; the result goes to the end)."""
    positions: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]
    out: tuple[int, ...]
    summed: tuple[int, ...]


class EinsumPlan(NamedTuple):
    """What to do: `steps` is empty where the result has no entries or no terms (it is zeros)."""
    operands: tuple[Operand, ...]
    steps: tuple[Step, ...]
    shape: tuple[int, ...]
    names: tuple[str, ...]                     # of the labels
    sizes: dict[str, int]
    out: tuple[int, ...]
    summed: tuple[int, ...]


_plans: dict[tuple, EinsumPlan] = {}


def plan_einsum(pattern: str, shapes: tuple[tuple[int, ...], ...], free: bool, given: dict) -> EinsumPlan:
    """The plan, remembered per pattern, shapes and lengths."""
    given = checked_sizes(given)
    key = (pattern, shapes, free, *given.items()) if given else (pattern, shapes, free)
    try:
        return _plans[key]
    except (KeyError, TypeError):
        plan = _new_plan(pattern, shapes, free, given)
        if len(_plans) > 4096:
            _plans.clear()
        return _plans.setdefault(key, plan)


def _new_plan(pattern, shapes, free, given) -> EinsumPlan:
    syntax = read_einsum(pattern, tuple(map(len, shapes)))
    terms, out_names = expanded_terms(pattern, syntax, shapes)
    sizes = _sizes(pattern, terms, shapes, given)
    names = tuple(dict.fromkeys(name for term in terms for name in term))
    number = {name: k for k, name in enumerate(names)}
    out = tuple(number[n] for n in out_names)
    summed = tuple(k for k in range(len(names)) if k not in out)
    operands = tuple(_operand(t, s, sizes, number) for t, s in zip(terms, shapes))
    shape = tuple(sizes[n] for n in out_names)
    if 0 in shape or any(sizes[names[k]] == 0 for k in summed):
        steps: tuple[Step, ...] = ()
    elif free and len(operands) > 2:
        steps = _one_pass(operands, out, summed) or _path(operands, out, [sizes[n] for n in names])
    else:
        steps = (Step(tuple(range(len(operands))), tuple(o.labels for o in operands), out, summed),)
    return EinsumPlan(operands, steps, shape, names, sizes, out, summed)


# ---- names and lengths ----

def expanded_terms(pattern, syntax: Einsum, shapes):
    """Terms and result with the ellipsis as names, right-aligned: ...1 is its last axis."""
    if len(syntax.terms) != len(shapes):
        raise Fault(f"the pattern has {_count(len(syntax.terms), 'operand')}, the call {len(shapes)}",
                    side_span(pattern, False))
    terms, widest = [], 0
    for k, (term, shape) in enumerate(zip(syntax.terms, shapes)):
        if ELLIPSIS not in term:
            if len(term) != len(shape):
                raise _wrong_rank(pattern, k, term, shape, "")
            terms.append(term)
            continue
        n = len(shape) - len(term) + 1
        if n < 0:
            raise _wrong_rank(pattern, k, [t for t in term if t is not ELLIPSIS], shape, "at least ")
        terms.append(_with(term, n))
        widest = max(widest, n)
    return terms, _with(syntax.out, widest)


def _with(term, n):
    if ELLIPSIS not in term:
        return term
    k = term.index(ELLIPSIS)
    return (*term[:k], *[f"{ELLIPSIS}{i}" for i in range(n, 0, -1)], *term[k + 1:])


def _count(n, word):
    return f"{n} {word}" + ("" if n == 1 else "s")


def _wrong_rank(pattern, k, term, shape, least):
    start, stop = term_span(pattern, k)
    write = None
    if len(shape) > len(term) and pattern[start:stop].count(" ") == len(term) - 1:
        write = quoted(pattern[:start] + "... " + pattern[start:])
    axes = "axis" if len(term) == 1 else "axes"
    return Fault(f"operand {k}: the pattern has {least}{len(term)} {axes}, the tensor has {len(shape)}: {shape}",
                 (start, stop), write)


def _sizes(pattern, terms, shapes, given) -> dict[str, int]:
    """The length of every name: equal in all operands, or 1 in some."""
    sizes: dict[str, int] = {}
    owner: dict[str, int] = {}
    for k, (term, shape) in enumerate(zip(terms, shapes)):
        local: dict[str, int] = {}
        for name, n in zip(term, shape):
            if local.setdefault(name, n) != n:
                raise Fault(f"axis {name!r} occurs twice in operand {k} with lengths {local[name]} and {n}; a "
                            "diagonal needs equal ones", _name_spans(pattern, name, k)[-1], None, sizes)
            have = sizes.setdefault(name, n)
            owner.setdefault(name, k)
            if have != n and n != 1:
                if have != 1:
                    a = owner[name]
                    raise Fault(f"axis {name!r} has length {have} in operand {a} and {n} in operand {k} "
                                f"(shapes {shapes[a]} and {shapes[k]}); lengths are equal, or one is 1",
                                _name_spans(pattern, name, k)[0], None, sizes)
                sizes[name], owner[name] = n, k
    for name, n in given.items():
        if name not in sizes:
            raise Fault(f"{name!r} is not in the pattern{closest(name, sizes)} (its axes: {listed(sizes)})")
        if sizes[name] != n:
            raise Fault(f"axis {name!r} has length {sizes[name]}, but {name}={n} was given",
                        _name_spans(pattern, name, owner[name])[0], None, sizes)
    return sizes


def _name_spans(pattern, name, k):
    """The places of a name in operand k."""
    start, stop = term_span(pattern, k)
    inside = pattern[start:stop]
    if name.startswith(ELLIPSIS):
        return [(start + max(inside.find("..."), 0), start + max(inside.find("..."), 0) + 3)]
    words = [(start + a, start + b) for a, b in _words(inside, name)]
    return words or [(start, stop)]


def _words(text, name):
    parts = text.replace("(", " ").replace(")", " ")
    at, found = 0, []
    for word in parts.split():
        at = parts.index(word, at)
        if word == name:
            found.append((at, at + len(word)))
        at += len(word)
    return found or (spans_of_letter(text, name) if len(name) == 1 else [])


def _operand(term, shape, sizes, number) -> Operand:
    if len(set(term)) == len(term) and tuple([sizes[a] for a in term]) == shape:
        return Operand((), None, tuple([number[a] for a in term]))
    names = list(dict.fromkeys(term))
    diagonals = tuple(tuple(i for i, b in enumerate(term) if b == a) for a in names if term.count(a) > 1) \
        if len(names) < len(term) else ()
    lengths = [shape[term.index(a)] for a in names]
    kept = [a for a, n in zip(names, lengths) if n == sizes[a]]
    squeezed = None if len(kept) == len(names) else tuple(sizes[a] for a in kept)
    return Operand(diagonals, squeezed, tuple(number[a] for a in kept))


# ---- the path of "free" ----

def _one_pass(operands, out, summed) -> tuple[Step, ...]:
    """Where two operands have every index, a product of two would be as large as they are: one pass over
    all of them, in many sums side by side.  No steps where another path may be better."""
    if sum(len(o.labels) == len(out) + len(summed) for o in operands) < 2:
        return ()
    everything, labels = tuple(range(len(operands))), tuple(o.labels for o in operands)
    if out or len(summed) < 2:
        return (Step(everything, labels, out, summed),)
    return Step(everything, labels, summed[-1:], summed[:-1]), Step((0,), (summed[-1:],), (), summed[-1:])


def _path(operands, out, lengths) -> tuple[Step, ...]:
    """Two operands at a time, in opt_einsum's order."""
    from opt_einsum import contract_path               # on first use: importing it takes 10 to 80 ms

    terms = [o.labels for o in operands]
    shapes = [tuple(lengths[k] for k in t) for t in terms]
    equation = ",".join(map(_symbols, terms)) + "->" + _symbols(out)
    path, _ = contract_path(equation, *shapes, shapes=True)
    steps = []
    for positions in path:
        positions = tuple(sorted(positions))
        labels = [terms[k] for k in positions]
        terms = [t for k, t in enumerate(terms) if k not in positions]
        needed = {*out, *(k for t in terms for k in t)}
        present = list(dict.fromkeys(k for t in labels for k in t))
        result = out if not terms else tuple(k for k in present if k in needed)
        steps.append(Step(positions, tuple(labels), result, tuple(k for k in present if k not in needed)))
        terms.append(result)
    return tuple(steps)


def _symbols(labels):
    return "".join(chr(0x100 + k) for k in labels)


def product_count(plan: EinsumPlan) -> int:
    """How many products are formed."""
    if not plan.steps:
        return 0
    return sum(prod(plan.sizes[plan.names[k]] for k in (*s.out, *s.summed)) for s in plan.steps)
