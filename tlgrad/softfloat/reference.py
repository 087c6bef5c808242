"""The pure-Python reference on arrays: one word after another, equal words of small formats once."""
from __future__ import annotations

from functools import lru_cache
from importlib import import_module

import numpy as np

from tlgrad.softfloat import arith, compare
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.storage import as_words, of_integers, of_words, to_integers

SCALAR = {
    "add": arith.add, "sub": arith.sub, "mul": arith.mul, "div": arith.div, "sqrt": arith.sqrt,
    "fma": arith.fma, "neg": arith.neg, "abs": arith.absolute, "floor": arith.floor,
    "ceil": arith.ceil, "trunc": arith.trunc, "round": arith.rint, "remainder": arith.mod,
    "rem": arith.rem, "fmod": arith.fmod, "nextafter": compare.next_after, "sign": compare.sign,
    "copysign": compare.copysign, "eq": compare.eq, "ne": compare.ne, "lt": compare.lt,
    "le": compare.le, "gt": compare.gt, "ge": compare.ge, "is_nan": compare.is_nan,
    "is_finite": compare.is_finite, "max": compare.maximum, "min": compare.minimum,
    "ulp": compare.ulp,
}
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "is_nan", "is_finite")


def _floor_divide(fmt, a, b, env):
    """floor(a / b) as NumPy has it: from the remainder, so that it fits it."""
    rest = arith.mod(fmt, a, b, env)
    quotient = arith.div(fmt, arith.sub(fmt, a, rest, env), b, env)
    return arith.rint(fmt, quotient, env)


@lru_cache(maxsize=None)
def _elementary():
    """The module of elementary functions, loaded at first use: it imports mpmath, which takes 80 ms."""
    return import_module("tlgrad.softfloat.elementary")


@lru_cache(maxsize=None)
def constant(name, fmt):
    """`elementary.constant`, remembered."""
    return _elementary().constant(name, fmt)


def function(name):
    """The scalar function ``(fmt, *words, env) -> word`` of an intrinsic; KeyError if there is none."""
    if name == "floor_divide":
        return _floor_divide
    if name in SCALAR:
        return SCALAR[name]
    elementary = _elementary()
    if name not in elementary.FUNCTIONS:
        raise KeyError(name)
    return lambda fmt, *words: elementary.evaluate(name, fmt, *words[:-1], env=words[-1])


def evaluate(name, fmt, arrays, shape, env):
    """The intrinsic on arrays of one shape, word by word."""
    scalar = function(name)
    if fmt.width <= 16 and len(arrays) == 1 and arrays[0].size > 64 and env == Environment():
        return _by_distinct_words(scalar, name, fmt, arrays[0], shape)
    columns = [to_integers(a) for a in arrays]
    words = [scalar(fmt, *row, env) for row in zip(*columns)]
    if name in PREDICATES:
        return np.array(words, bool).reshape(shape)
    return of_integers(words, fmt, shape)


def _by_distinct_words(scalar, name, fmt, array, shape):
    distinct, where = np.unique(as_words(array), return_inverse=True)
    out = [scalar(fmt, w, Environment()) for w in distinct.tolist()]
    if name in PREDICATES:
        return np.array(out, bool)[where].reshape(shape)
    return of_words(np.array(out, distinct.dtype)[where].reshape(shape), fmt)
