"""Functions entry by entry, under the names of NumPy and of the array API standard."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.limits import finfo
from tlgrad.core.trace import Value
from tlgrad.errors import DTypeError
from tlgrad.numpy.arrays import as_array
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.methods import power as _power
from tlgrad.ops.promote import as_dtype_value, promote, to_inexact
from tlgrad.ops.reduce import reduce_all

# ---- primitives under their public names ----

add = ar.add
subtract = ar.sub
multiply = ar.mul
divide = true_divide = ar.div
floor_divide = ar.floor_divide
remainder = mod = ar.remainder
negative = ar.neg
sign = ar.sign
sqrt = ar.sqrt
copysign = ar.copysign
nextafter = ar.nextafter
fma = ar.fma
conj = conjugate = ar.conj
exp, exp2, expm1 = el.exp, el.exp2, el.expm1
log, log2, log10, log1p = el.log, el.log2, el.log10, el.log1p
cbrt = el.cbrt
rsqrt = el.rsqrt
hypot = el.hypot
sin, cos, tan = el.sin, el.cos, el.tan
asin = arcsin = el.asin
acos = arccos = el.acos
atan = arctan = el.atan
atan2 = arctan2 = el.atan2
sinh, cosh, tanh = el.sinh, el.cosh, el.tanh
asinh = arcsinh = el.asinh
acosh = arccosh = el.acosh
atanh = arctanh = el.atanh
maximum, minimum = lo.maximum, lo.minimum
equal, not_equal = lo.eq, lo.ne
less, less_equal = lo.lt, lo.le
greater, greater_equal = lo.gt, lo.ge
isnan = lo.is_nan
isfinite = lo.is_finite
logical_and, logical_or = lo.logical_and, lo.logical_or
logical_xor, logical_not = lo.logical_xor, lo.logical_not
bitwise_and, bitwise_or, bitwise_xor = lo.and_, lo.or_, lo.xor
bitwise_invert = bitwise_not = invert = lo.not_
bitwise_left_shift = left_shift = lo.shift_left
bitwise_right_shift = right_shift = lo.shift_right


def abs(x) -> Value:
    """|x|; the modulus of a complex number.  The derivative at 0 is 0.

    >>> abs(tl.tensor([-2.0, 0.0]))
    tensor([2., 0.], float64, shape (2,), cpu)
    """
    return ar.abs_(as_array(x, "abs"))


absolute = fabs = abs


def pow(x, y) -> Value:
    """x to the power y; a Python integer exponent is repeated multiplication.

    Smooth at x = 0 for exponents 0, 1, 2, ....  Raises ValueError for an integer to a negative integer.

    >>> pow(tl.tensor([2.0, 3.0]), 2)
    tensor([4., 9.], float64, shape (2,), cpu)
    """
    x, y = (v if isinstance(v, Value) or np.isscalar(v) else as_array(v, "pow") for v in (x, y))
    return _power(x, y)


power = pow


def float_power(x, y) -> Value:
    """x to the power y in float64 (complex128), whatever the operands are."""
    x, y = (as_array(v, "float_power") for v in (x, y))
    wide = dtypes.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else dtypes.float64
    return el.pow_(convert(x, wide), convert(y, wide))


# ---- rounding ----

def _rounding(prim, name, doc):
    def function(x):
        x = as_array(x, name)
        return x if x.dtype.kind in "biu" else prim(x)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + "  Integers are kept.  The derivative is 0."
    return function


floor = _rounding(ar.floor, "floor", "Greatest integer not above x.")
ceil = _rounding(ar.ceil, "ceil", "Least integer not below x.")
trunc = _rounding(ar.trunc, "trunc", "x without its fraction, toward zero.")
fix = trunc


def round(x, decimals: int = 0) -> Value:
    """x to the nearest multiple of 10**-decimals, ties to even; integers are kept.

    Complex numbers are rounded by parts.  The derivative is 0.

    >>> round(tl.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.], float64, shape (3,), cpu)
    """
    x = as_array(x, "round")
    if x.dtype.kind in "biu" and decimals >= 0:
        return x
    if x.dtype.kind == "c":
        return ar.complex_(round(ar.real(x), decimals), round(ar.imag(x), decimals))
    if decimals == 0:
        return ar.round_(x)
    if decimals > 0:
        return ar.div(ar.round_(ar.mul(x, 10.0**decimals)), 10.0**decimals)
    scaled = ar.mul(ar.round_(ar.div(x, 10.0**-decimals)), 10.0**-decimals)
    return convert(scaled, x.dtype)


rint = around = round


# ---- compositions ----

def positive(x) -> Value:
    """x itself."""
    x = as_array(x, "positive")
    if x.dtype.kind == "b":
        raise DTypeError("positive is not defined for bool")
    return x


def square(x) -> Value:
    """x * x.

    >>> square(tl.tensor([-3.0]))
    tensor([9.], float64, shape (1,), cpu)
    """
    x = as_array(x, "square")
    return ar.mul(x, x)


def reciprocal(x) -> Value:
    """1 / x; integers are taken as floats."""
    return ar.div(1, as_array(x, "reciprocal"))


def real(x) -> Value:
    """Real part; x itself when it is not complex."""
    x = as_array(x, "real")
    return ar.real(x) if x.dtype.kind == "c" else x


def imag(x) -> Value:
    """Imaginary part; zeros when x is not complex."""
    x = as_array(x, "imag")
    return ar.imag(x) if x.dtype.kind == "c" else ar.mul(x, 0) if x.dtype.kind in "iu" else ar.imag(x)


def angle(z, deg: bool = False) -> Value:
    """Argument of a complex number in (-pi, pi] radians, or degrees."""
    z = as_array(z, "angle")
    out = el.atan2(imag(z), real(z))
    return rad2deg(out) if deg else out


def isinf(x) -> Value:
    """True for infinities; for complex numbers when either part is infinite, the other one NaN included."""
    x = as_array(x, "isinf")
    if x.dtype.kind == "c":
        return lo.or_(isinf(real(x)), isinf(imag(x)))
    return lo.not_(lo.or_(lo.is_finite(x), lo.is_nan(x)))


def isposinf(x) -> Value:
    """True for +infinity."""
    return lo.eq(as_array(x, "isposinf"), math.inf)


def isneginf(x) -> Value:
    """True for -infinity."""
    return lo.eq(as_array(x, "isneginf"), -math.inf)


def iscomplex(x) -> Value:
    """True where the imaginary part is not 0."""
    return lo.ne(imag(x), 0)


def isreal(x) -> Value:
    """True where the imaginary part is 0."""
    return lo.eq(imag(x), 0)


def signbit(x) -> Value:
    """True where the sign bit is set: below zero, -0 included; False for NaN."""
    x = as_array(x, "signbit")
    if x.dtype.kind in "biu":
        return lo.lt(x, 0)
    return lo.lt(ar.copysign(as_dtype_value(as_array(1.0, ""), x.dtype), x), 0)


def clip(x, min=None, max=None, *, a_min=None, a_max=None) -> Value:
    """x bounded: minimum(maximum(x, min), max), either bound optional; NaN spreads.

    The derivative is that of the spelling above: 0 at `min`, 1 at `max`.

    >>> clip(tl.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0. , 0.5, 1. ], float64, shape (3,), cpu)
    """
    x = as_array(x, "clip")
    low, high = (b if a is None else a for a, b in ((min, a_min), (max, a_max)))
    if low is not None:
        x = lo.maximum(x, low if isinstance(low, (int, float)) else as_array(low, "clip"))
    if high is not None:
        x = lo.minimum(x, high if isinstance(high, (int, float)) else as_array(high, "clip"))
    return x


def logaddexp(x, y) -> Value:
    """log(exp(x) + exp(y)) without overflow; -inf and gradient 0 where both are -inf.

    >>> logaddexp(tl.tensor(1000.0), 1000.0)
    tensor(1000.6931471805599, float64, shape (), cpu)
    """
    return el.logaddexp(as_array(x, "logaddexp"), as_array(y, "logaddexp"))


def logaddexp2(x, y) -> Value:
    """log2(2**x + 2**y) without overflow; equal infinities are their own result."""
    operands = as_array(x, "logaddexp2"), as_array(y, "logaddexp2")
    x, y = promote(operands, "logaddexp2", inexact=True)
    high, low = lo.maximum(x, y), lo.minimum(x, y)
    gap = ar.sub(low, high)
    same = lo.and_(lo.eq(low, high), isinf(high))
    safe = lo.where(same, 0.0, gap)
    out = ar.add(lo.where(same, 0.0, high), ar.mul(el.log1p(el.exp2(safe)), 1.4426950408889634))
    ends = lo.where(lo.gt(high, 0), math.inf, -math.inf)
    return lo.where(same, convert(ends, high.dtype), out)


def fmax(x, y) -> Value:
    """The greater of x and y; of a number and a NaN, the number."""
    x, y = promote((as_array(x, "fmax"), as_array(y, "fmax")), "fmax")
    return lo.where(_nan(x), y, lo.where(_nan(y), x, lo.maximum(x, y)))


def fmin(x, y) -> Value:
    """The lesser of x and y; of a number and a NaN, the number."""
    x, y = promote((as_array(x, "fmin"), as_array(y, "fmin")), "fmin")
    return lo.where(_nan(x), y, lo.where(_nan(y), x, lo.minimum(x, y)))


def _nan(x):
    return lo.is_nan(x)


def fmod(x, y) -> Value:
    """x - trunc(x / y) * y, with the sign of x (C's fmod); exact for floats."""
    x, y = promote((as_array(x, "fmod"), as_array(y, "fmod")), "fmod")
    r = ar.remainder(ar.abs_(x), ar.abs_(y))
    if x.dtype.kind == "f":
        return ar.copysign(r, x)
    return lo.where(lo.lt(x, 0), ar.neg(r), r) if x.dtype.kind == "i" else r


def divmod(x, y) -> tuple[Value, Value]:
    """(x // y, x % y)."""
    return ar.floor_divide(x, y), ar.remainder(x, y)


def heaviside(x, at_zero) -> Value:
    """0 below zero, 1 above, `at_zero` at 0; NaN for NaN."""
    x, h = promote((as_array(x, "heaviside"), as_array(at_zero, "heaviside")), "heaviside", inexact=True)
    return lo.where(lo.is_nan(x), x, lo.where(lo.eq(x, 0), h, lo.convert_like(lo.gt(x, 0), x)))


def deg2rad(x) -> Value:
    """Degrees to radians: x * (pi / 180)."""
    return ar.mul(as_inexact(x, "deg2rad"), math.pi / 180)


def rad2deg(x) -> Value:
    """Radians to degrees: x * (180 / pi)."""
    return ar.mul(as_inexact(x, "rad2deg"), 180 / math.pi)


radians, degrees = deg2rad, rad2deg


def as_inexact(x, name: str) -> Value:
    """x as a float or complex value; integers become floats."""
    x = as_array(x, name)
    return x if dtypes.is_inexact(x.dtype) else as_dtype_value(x, to_inexact(x.dtype), x.aval.weak)


def sinc(x) -> Value:
    """sin(pi x) / (pi x), 1 at 0; all derivatives at 0 are those of the limit.

    Near 0 the series 1 - u/6 + u^2/120 - ..., u = (pi x)^2, is used (to x^12: below one ulp for
    |pi x| < 0.5).
    """
    x = as_inexact(x, "sinc")
    t = ar.mul(x, math.pi)
    near = lo.lt(ar.abs_(t), 0.5)
    u = lo.where(near, ar.mul(t, t), 0.0)
    series = as_dtype_value(as_array(1 / math.factorial(13), ""), x.dtype)
    for k in (11, 9, 7, 5, 3, 1):
        series = ar.sub(1 / math.factorial(k), ar.mul(u, series))
    far = lo.where(near, 1.0, t)
    return lo.where(near, series, ar.div(el.sin(far), far))


def nan_to_num(x, copy: bool = True, nan: float = 0.0, posinf=None, neginf=None) -> Value:
    """x with NaN and infinities replaced: by `nan`, and the largest and least number of the dtype."""
    x = as_array(x, "nan_to_num")
    if not dtypes.is_inexact(x.dtype):
        return x
    if x.dtype.kind == "c":
        return ar.complex_(*[nan_to_num(p(x), nan=nan, posinf=posinf, neginf=neginf) for p in (ar.real, ar.imag)])
    top = largest(x.dtype)
    x = lo.where(lo.is_nan(x), nan, x)
    x = lo.where(lo.eq(x, math.inf), top if posinf is None else posinf, x)
    return lo.where(lo.eq(x, -math.inf), -top if neginf is None else neginf, x)


def largest(dtype):
    """The largest finite number of a float dtype, as a Python float where it fits."""
    return finfo(dtype).max


def allclose(x, y, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Value:
    """True when `isclose` holds for every entry."""
    near = isclose(x, y, rtol, atol, equal_nan)
    return reduce_all.bind(near, axes=tuple(range(near.ndim))) if near.ndim else near


def isclose(x, y, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Value:
    """|x - y| <= atol + rtol |y|, entry by entry; infinities are close to themselves."""
    x, y = promote((as_array(x, "isclose"), as_array(y, "isclose")), "isclose", inexact=True)
    near = lo.and_(lo.le(ar.abs_(ar.sub(x, y)), ar.add(atol, ar.mul(rtol, ar.abs_(y)))), lo.is_finite(y))
    out = lo.or_(near, lo.eq(x, y))
    return lo.or_(out, lo.and_(lo.is_nan(x), lo.is_nan(y))) if equal_nan else out
