"""Functions of the words of numbers: exponents, fractions, bits, divisors."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import DTypeError
from tlgrad.numpy.arrays import as_array
from tlgrad.numpy.elementwise import as_inexact, isinf
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import bitcast, convert
from tlgrad.ops.elementary import pow_
from tlgrad.ops.promote import as_dtype_value, promote

__all__ = ["ldexp", "frexp", "modf", "gcd", "lcm", "spacing", "bitwise_count"]


def ldexp(x, n) -> Value:
    """x * 2**n, rounded once also where 2**n overflows or the result is subnormal."""
    x, n = as_inexact(x, "ldexp"), as_array(n, "ldexp")
    first = ar.floor_divide(n, 2)
    one = as_dtype_value(as_array(2.0, ""), x.dtype)
    return ar.mul(ar.mul(x, pow_(one, convert(first, x.dtype))), pow_(one, convert(ar.sub(n, first), x.dtype)))


def frexp(x) -> tuple[Value, Value]:
    """(significand in [0.5, 1), exponent): x = significand * 2**exponent; 0, infinities, NaN keep."""
    x = as_inexact(x, "frexp")
    if x.dtype not in _LAYOUT:
        raise DTypeError(f"frexp is not defined for {x.dtype}")
    word, bits, bias = _LAYOUT[x.dtype]
    tiny = lo.lt(ar.abs_(x), float(np.finfo(x.dtype.storage).tiny))
    scaled = lo.where(tiny, ar.mul(x, 2.0**(bits + 1)), x)
    w = bitcast(scaled, word)
    field = lo.and_(lo.shift_right(w, bits), 2 * bias + 3)
    plain = lo.and_(lo.is_finite(x), lo.ne(x, 0))
    e = ar.sub(convert(field, dtypes.int32), lo.where(tiny, bias + bits + 1, bias))
    e = lo.where(plain, e, 0)
    significand = lo.where(plain, ldexp(scaled, ar.neg(ar.add(e, lo.where(tiny, bits + 1, 0)))), x)
    return significand, convert(e, dtypes.int32)


#: word dtype, bits of the fraction, exponent bias - 1
_LAYOUT = {dtypes.float16: (dtypes.uint16, 10, 14), dtypes.float32: (dtypes.uint32, 23, 126),
           dtypes.float64: (dtypes.uint64, 52, 1022)}


def modf(x) -> tuple[Value, Value]:
    """(fraction, whole part) of x, both with its sign."""
    x = as_inexact(x, "modf")
    whole = ar.trunc(x)
    fraction = lo.where(isinf(x), 0.0, ar.sub(x, whole))
    return ar.copysign(convert(fraction, x.dtype), x), whole


def gcd(x, y) -> Value:
    """Greatest common divisor of integers, not negative; gcd(0, 0) is 0."""
    x, y = promote((as_array(x, "gcd"), as_array(y, "gcd")), "gcd")
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(f"gcd takes integers, got {x.aval}")
    x, y = ar.abs_(x), ar.abs_(y)
    for _ in range(_EUCLID_STEPS[x.dtype.bits]):
        done = lo.eq(y, 0)
        x, y = lo.where(done, x, y), lo.where(done, 0, ar.remainder(x, lo.where(done, 1, y)))
    return x


#: most steps of Euclid's algorithm (Lame, 1844): Fibonacci numbers that fit the width, plus 1
_EUCLID_STEPS = {8: 14, 16: 25, 32: 48, 64: 94}


def lcm(x, y) -> Value:
    """Least common multiple of integers, not negative; 0 if one is 0."""
    x, y = promote((as_array(x, "lcm"), as_array(y, "lcm")), "lcm")
    g = gcd(x, y)
    return ar.abs_(ar.mul(ar.floor_divide(x, lo.where(lo.eq(g, 0), 1, g)), y))


def spacing(x) -> Value:
    """Distance from x to the next float away from zero, with the sign of x."""
    x = as_inexact(x, "spacing")
    away = ar.copysign(convert(as_array(math.inf, ""), x.dtype), x)
    return ar.sub(ar.nextafter(x, away), x)


def bitwise_count(x) -> Value:
    """Number of bits set in |x|, as uint8."""
    x = as_array(x, "bitwise_count")
    x = ar.abs_(x)
    total = ar.mul(x, 0)
    for k in range(x.dtype.bits):
        total = ar.add(total, lo.and_(lo.shift_right(x, k), 1))
    return convert(total, dtypes.uint8)
