"""How reductions start and continue, by combination."""
from __future__ import annotations

import functools

from tlgrad.backends.numba_cpu.emitter import FLOATS, SIGNED
from tlgrad.backends.numba_cpu.scalars import SCALARS, compare
from tlgrad.codegen.ir import SIZES


def identity(e, mode: str, type: str) -> str:
    """The register that a reduction starts from: +0, 1, or the lowest or highest number."""
    return e.const(start_number(mode, type), type)


def start_number(mode: str, type: str):
    """The number that a reduction starts from."""
    if mode in ("max", "min"):
        return _extreme(mode, type)
    return {"add": 0, "mul": 1, "and": -1, "or": 0}[mode]


def neutral(mode: str, type: str):
    """The number that changes no accumulator: -0 for float sums."""
    return -0.0 if mode == "add" and type in FLOATS else start_number(mode, type)


def _extreme(mode, type):
    if type in FLOATS:
        return float("-inf") if mode == "max" else float("inf")
    bits = SIZES[type] * 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type in SIGNED else (0, (1 << bits) - 1)
    return low if mode == "max" else high


def accumulate(e, mode: str, type: str, acc: str, term: str) -> str:
    """acc with one more term; of equal extremes the earlier stays."""
    operands = [term, acc] if mode == "max" else [acc, term]
    return SCALARS[mode](e, type, operands, type, {})


def accumulate_all(e, mode: str, type: str, acc: str, terms: list[str]) -> str:
    """acc with further terms, in order.

    An extreme takes one instruction a term: it keeps a NaN in acc, and passes over one in a term, for which
    the terms are looked at by twos.
    """
    if mode not in ("max", "min") or type not in FLOATS:
        return functools.reduce(lambda acc, x: accumulate(e, mode, type, acc, x), terms, acc)
    for x in terms:
        acc = e.choose(type, compare(e, "gt" if mode == "max" else "lt", type, x, acc), x, acc)
    nans = [e.emit(f"fcmp uno {e.type(type)} {a}, {b}") for a, b in zip(terms[::2], terms[1::2])]
    nan = functools.reduce(lambda a, b: e.two("or", "b1", a, b), nans)
    return e.choose(type, nan, e.const(float("nan"), type), acc)
