"""The namespace of operations on arrays of words: `evaluate(name, fmt, *arrays)`.

Every operation has one meaning, that of the pure-Python reference (`arith`, `compare`, `convert`,
`elementary`), and up to three ways to reach it: word operations in NumPy, binary64 with one rounding
for small formats, and compiled kernels. Under an `environment` (directed rounding, saturation, flags)
arithmetic on small formats and conversions to them run in NumPy (`directed`), all else on the reference.
"""
from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from tlgrad.softfloat import bits, directed, fast, reference, small
from tlgrad.softfloat import convert as convert_words
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import Binary, binary64
from tlgrad.softfloat.storage import (
    HARDWARE, dtype_of, format_of, of_integers, of_numbers, to_floats, to_integers)

_environment: ContextVar = ContextVar("tlgrad_softfloat_environment", default=None)


@contextmanager
def environment(rounding="nearest", saturate=False, key=0):
    """Round differently, saturate, or watch flags, inside a ``with`` block.

    Yields the `Environment`, whose sticky ``flags`` and ``raised`` names collect what happened: the five
    of IEEE 754 (inexact, underflow, overflow, divide_by_zero, invalid). Operations on software formats
    run without kernels meanwhile, in compiled programs too: + - * / sqrt of formats of at most 24 fraction
    and 9 exponent bits, and conversions to them, in NumPy, all else on the pure-Python reference.
    Elementary functions are correctly rounded in every mode. Dtypes that NumPy has (float64, ...) are
    not affected. Stochastic rounding draws one number of the key's sequence for every inexact result, in
    the order of evaluation.

    >>> from tlgrad.softfloat.format import binary128
    >>> one, three = of_numbers([1], binary128), of_numbers([3], binary128)
    >>> with environment("up") as env:
    ...     third = evaluate("div", binary128, one, three)
    >>> to_floats(third)[0], env.raised
    (binary128('0.33333333333333333333333333333333337'), ('inexact',))
    """
    token = _environment.set(Environment(rounding, saturate, key))
    try:
        yield _environment.get()
    finally:
        _environment.reset(token)


def current() -> Environment | None:
    """The environment of the `environment` block that is open; None where there is none."""
    return _environment.get()


def evaluate(name: str, fmt: Binary, *arrays: np.ndarray, **params) -> np.ndarray:
    """The intrinsic `name` on arrays of words of `fmt`, which broadcast together.

    Comparisons and tests give bool arrays, everything else words of `fmt`. Raises KeyError for an
    intrinsic that floats do not have.

    >>> from tlgrad.softfloat.format import binary128
    >>> x = of_numbers(["0.1", "0.2"], binary128)
    >>> to_floats(evaluate("add", binary128, x, x))[0]
    binary128('0.2')
    """
    if name == "select":
        return np.where(arrays[0], arrays[1], arrays[2])
    env = _environment.get()
    watched = env is not None and name in reference.PREDICATES     # comparisons with NaN raise flags
    if name == "comparable" or name in WORDWISE and fmt.signed and not watched:
        return WORDWISE[name](*arrays, fmt)
    if name in COMPOSED:
        return COMPOSED[name](fmt, *arrays, **params)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    arrays = [np.broadcast_to(a, shape) for a in arrays]
    if env is None:
        out = _quick(name, fmt, arrays, shape)
        if out is not None:
            return out
        env = Environment()
    elif name in directed.OPERATIONS and small.fits(fmt) and fmt.signed and arrays[0].size >= 16:
        out = directed.evaluate(name, fmt, arrays, env)
        if out is not None:
            return out
    return reference.evaluate(name, fmt, arrays, shape, env)


def _quick(name, fmt, arrays, shape):
    if small.fits(fmt) and name in small.OPERATIONS and arrays[0].size >= 16:
        out = fast.small_operation(name, fmt, arrays, shape)
        return small.evaluate(name, fmt, *arrays) if out is None else out
    if name in fast.catalogue.ARITHMETIC:
        return fast.arithmetic(name, fmt, arrays, shape)
    of_some_format = name in fast.catalogue.FUNCTIONS or name in fast.carried.FUNCTIONS
    return _elementary(name, fmt, arrays) if of_some_format else None


def _elementary(name, fmt, arrays):
    """The kernel, and the reference for the few entries that it leaves undecided."""
    found = fast.elementary(name, fmt, arrays)
    if found is None:
        return None
    out, flags = found
    if flags.any():
        rest = [a[flags != 0] for a in arrays]
        out[flags != 0] = reference.evaluate(name, fmt, rest, rest[0].shape, Environment())
    return out


WORDWISE = {
    "eq": bits.eq, "ne": lambda a, b, fmt: ~bits.eq(a, b, fmt), "lt": bits.lt, "le": bits.le,
    "gt": lambda a, b, fmt: bits.lt(b, a, fmt), "ge": lambda a, b, fmt: bits.le(b, a, fmt),
    "is_finite": bits.is_finite, "is_nan": bits.is_nan, "neg": bits.neg, "abs": bits.absolute,
    "sign": bits.sign, "copysign": bits.copysign, "max": bits.maximum, "min": bits.minimum,
    "comparable": bits.order_key, "real": lambda a, fmt: a, "conj": lambda a, fmt: a,
}


def _constant(fmt, word, like):
    return bits.fill(like, np.ones(like.shape, bool), word, fmt)


def _integer_pow(fmt, x, *, n):
    """x**n by repeated squaring, in the order that `integer_pow` states; below zero 1 / x**-n."""
    count, result, power = abs(n), None, x
    while count:
        if count & 1:
            result = power if result is None else evaluate("mul", fmt, result, power)
        count >>= 1
        if count:
            power = evaluate("mul", fmt, power, power)
    one = _constant(fmt, fmt.one, x)
    if result is None:
        return one
    return result if n >= 0 else evaluate("div", fmt, one, result)


def _direction(fmt, x, r):
    """x / r; 0 at r = 0; at an infinite r finite parts are 0 and infinite ones +-1."""
    x, r = np.broadcast_arrays(x, r)
    flat = bits.is_zero(r, fmt)
    infinite = ~bits.is_finite(r, fmt) & ~bits.is_nan(r, fmt)
    out = evaluate("div", fmt, x, bits.fill(r, flat | infinite, fmt.one, fmt))
    out = bits.fill(out, flat, 0, fmt)
    if not infinite.any():
        return out
    ends = ~bits.is_finite(x, fmt) & ~bits.is_nan(x, fmt)
    limit = bits.fill(x, ~ends, 0, fmt)
    limit = bits.copysign(bits.fill(limit, ends, fmt.one, fmt), x, fmt)
    return np.where(infinite, limit, out)


def _floor_divide(fmt, a, b):
    """floor(a / b) as NumPy has it: from the remainder, so that it fits it."""
    whole = evaluate("sub", fmt, a, evaluate("remainder", fmt, a, b))
    return evaluate("round", fmt, evaluate("div", fmt, whole, b))


COMPOSED = {"integer_pow": _integer_pow, "floor_divide": _floor_divide, "direction": _direction,
            "imag": lambda fmt, x: _constant(fmt, 0, x)}


def constant(name: str, fmt: Binary) -> np.ndarray:
    """A mathematical constant as an array of shape (), by its name in `elementary.constant`."""
    return of_integers([reference.constant(name, fmt)], fmt, ())


# ---- conversions

def convert(array: np.ndarray, target) -> np.ndarray:
    """Words of a format, or numbers of a NumPy dtype, in another format or dtype: one rounding.

    `target` is a Binary or a NumPy dtype of kind b, i, u or f. Floats to integers truncate; what
    does not fit an integer gives the x86 indefinite value.

    >>> from tlgrad.softfloat.format import binary128
    >>> convert(np.array([0.1]), binary128).dtype.names
    ('binary128',)
    """
    if not isinstance(target, Binary):
        target = np.dtype(target)
        if target.kind in "biu":
            return _to_integers(array, target)
        target = format_of(target)
    if array.dtype.kind in "biu":
        return _of_integers(array, target)
    source = format_of(array.dtype)
    if source is target:
        return array
    env = _environment.get()
    if env is None:
        out = _quick_convert(array, source, target)
        if out is not None:
            return out
    elif directed.covers(source, target) and array.size >= 16:
        return directed.convert(array, target, env)
    env = env or Environment()
    words = [convert_words.convert(source, target, w, env) for w in to_integers(array)]
    return of_integers(words, target, array.shape)


def _quick_convert(array, source, target):
    out = fast.small_conversion(array, source, target)
    if out is not None:
        return out
    if small.fits(source):
        wide = fast.small_conversion(array, source, binary64)
        wide = small.decode(array, source) if wide is None else wide
        return wide if target is binary64 else convert(wide, target)
    if source is binary64 and small.fits(target) and target not in HARDWARE:
        return small.encode(array, target).reshape(array.shape)
    return fast.convert(array, source, target)


def _of_integers(array, target):
    signed = array.dtype.kind != "u"
    wide = array.astype(np.int64 if signed else np.uint64)
    if _environment.get() is None:
        out = fast.convert(wide, "i64" if signed else "u64", target)
        if out is not None:
            return out
    env = _environment.get() or Environment()
    words = [convert_words.from_int(target, v, env) for v in wide.ravel().tolist()]
    return of_integers(words, target, array.shape)


def _to_integers(array, target):
    source = format_of(array.dtype)
    if target.kind == "b":
        return ~bits.is_zero(array, source)
    env, kind = _environment.get(), "u64" if target == np.uint64 else "i64"
    if env is None and small.fits(source):
        with np.errstate(all="ignore"):
            return small.decode(array, source).astype(target)
    out = fast.convert(array, source, kind) if env is None else None
    if out is None:
        toward_zero = Environment("zero")
        words = [convert_words.to_int(source, w, 64, kind == "i64", toward_zero)
                 for w in to_integers(array)]
        out = np.array(words, kind.replace("64", "8")).reshape(array.shape)
        if env is not None:
            env.flags |= toward_zero.flags
    return out.astype(target)


# ---- ordered sums

def left_to_right(terms, start, fmt):
    """``((start + t0) + t1) + ...`` along axis 0, each step rounded."""
    if _environment.get() is None and terms.size:
        out = fast.left_to_right(terms, start, fmt)
        if out is not None:
            return out
    for term in terms:
        start = evaluate("add", fmt, start, term)
    return start


def contract(a, b, start, fmt, fused=False):
    """``start[i, j] + a[0, i] b[0, j] + ...`` in order of axis 0; fused: each step one fma."""
    if _environment.get() is None and a.size and b.size:
        out = fast.contract(a, b, start, fmt, fused)
        if out is not None:
            return out
    for x, y in zip(a, b):
        x, y = x[:, None], y[None, :]
        start = (evaluate("fma", fmt, x, y, start) if fused
                 else evaluate("add", fmt, start, evaluate("mul", fmt, x, y)))
    return start


__all__ = ["constant", "contract", "convert", "current", "dtype_of", "environment", "evaluate",
           "format_of", "left_to_right", "of_numbers", "to_floats"]
