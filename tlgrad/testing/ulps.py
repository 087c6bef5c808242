"""Distances between floats, and from exact numbers, in units in the last place."""
from __future__ import annotations

from fractions import Fraction

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.tensor import Tensor, as_value, to_numpy
from tlgrad.errors import DTypeError, ShapeError

#: significand bits and smallest normal exponent of the float formats
FORMATS = {dtypes.float16: (11, -14), dtypes.bfloat16: (8, -126), dtypes.float32: (24, -126),
            dtypes.float64: (53, -1022)}


def ulp_distance(a, b) -> np.ndarray:
    """How far float values `a` lie from `b`, entry by entry, in units in the last place.

    b: values of the same shape and dtype (the distance is then the number of floats between), or
    exact numbers (int, Fraction, mpmath.mpf, nested lists of them): then it is the error |a - b|
    over the ulp of b in the format of a.  Equal infinities and two NaNs are 0 apart, a NaN is
    infinitely far from a number.  Returns float64.  Raises DTypeError unless a is a float.

    >>> from fractions import Fraction
    >>> float(ulp_distance(1.0, np.nextafter(1.0, 2.0)))
    1.0
    >>> float(ulp_distance(np.float32(1/3), Fraction(1, 3)))
    0.3333333333333333
    """
    a = as_value(a, "the first argument of ulp_distance")
    if a.dtype not in FORMATS:
        raise DTypeError(f"ulp_distance takes floats of {', '.join(map(str, FORMATS))}, got {a.aval}")
    if isinstance(b, (Tensor, np.ndarray, np.generic, float)):
        other = as_value(b)
        if other.shape != a.shape or other.dtype is not a.dtype:
            raise ShapeError(f"ulp_distance: the values are {a.aval} and {other.aval}")
        return _float_steps(a.data, other.data)
    exact = np.broadcast_to(np.array(b, dtype=object), a.shape)
    floats = np.asarray(to_numpy(a), np.float64)
    out = [_error_in_ulps(float(x), e, a.dtype) for x, e in zip(floats.ravel(), exact.ravel())]
    return np.array(out).reshape(a.shape)


def _float_steps(a, b):
    x, y = (_ordered_words(v) for v in (a, b))
    steps = np.abs(x - y).astype(np.float64)
    nan_a, nan_b = (np.isnan(np.asarray(to_numpy(Tensor.own(v)))) for v in (a, b))
    return np.where(nan_a & nan_b, 0.0, np.where(nan_a | nan_b, np.inf, steps))


def _ordered_words(array):
    """Words as integers that increase with the value; both zeros are 0."""
    width = array.dtype.itemsize
    w = np.ascontiguousarray(array).view(f"u{width}").reshape(array.shape).astype(object)
    half = 1 << (8 * width - 1)
    return np.where(w >= half, half - w, w)


def _error_in_ulps(x: float, exact, dtype) -> float:
    bits, low = FORMATS[dtype]
    if str(exact) in ("nan", "NaN"):
        return 0.0 if x != x else np.inf
    if str(exact) in ("inf", "+inf", "-inf"):
        return 0.0 if x == float(exact) else np.inf
    exact = _fraction(exact)
    high = 1 << (1 - low)                             # the smallest power of 2 out of range
    if x != x:
        return np.inf
    if abs(x) == np.inf:                              # an overflow is right from the last midpoint on
        limit = high - Fraction(high, 1 << (bits + 1))
        return 0.0 if abs(exact) >= limit and (exact > 0) == (x > 0) else np.inf
    size = abs(exact)
    exponent = max(_exponent(size), low) if size else low
    return float(abs(Fraction(x) - exact) / Fraction(2) ** (exponent - bits + 1))


def _exponent(size: Fraction) -> int:
    """floor(log2(size)) of a positive fraction."""
    e = size.numerator.bit_length() - size.denominator.bit_length()
    return e if Fraction(2) ** e <= size else e - 1


def _fraction(x) -> Fraction:
    if hasattr(x, "_mpf_"):                           # mpmath: (sign, significand, exponent, bits)
        sign, man, exp, _ = x._mpf_
        return Fraction(-int(man) if sign else int(man)) * Fraction(2) ** exp
    return Fraction(x)
