"""Elementary functions, each with its derivative stated as partials of result and operands.

Derivatives are written so that their *relative* error stays small wherever the result is
representable: expm1'(-40) is exp(-40), not y + 1.
"""
from __future__ import annotations

import math

from tlgrad.core.dtypes import is_inexact
from tlgrad.core.tensor import Tensor, frozen
from tlgrad.errors import DTypeError
from tlgrad.ops.arithmetic import add, direction, div, fma, mul, neg, sign, sub
from tlgrad.ops.define import Elementwise, documented, elementwise, jvp_from_partials
from tlgrad.ops.logic import and_, eq, gt, is_finite, lt, ne, not_, where
from tlgrad.ops.promote import promote
from tlgrad.softfloat import array as softfloat

_CONSTANTS = {"ln2": 0.6931471805599453, "1/ln2": 1.4426950408889634,
              "1/ln10": 0.4342944819032518, "2/sqrt(pi)": 1.1283791670955126, "pi": math.pi,
              "ln10": 2.302585092994046, "1/sqrt(2)": 0.7071067811865476, "sqrt(8/pi)": 1.5957691216057308,
              "1/sqrt(2 pi)": 0.3989422804014327, "0.044715": 0.044715}


def _constant(name, like):
    """A constant of a derivative: a Python number, or one of the format's own precision."""
    if not like.dtype.software:
        return _CONSTANTS[name]
    return Tensor.own(frozen(softfloat.constant(name, like.dtype.format)))


# ---- exponentials and logarithms ----

exp = elementwise("exp", "e to the power x.", [lambda y, x: y])
expm1 = elementwise("expm1", "exp(x) - 1, accurate near 0.", [lambda y, x: exp(x)])
exp2 = elementwise("exp2", "2 to the power x; exact for integers.",
                   [lambda y, x: mul(_constant("ln2", y), y)])
exp10 = elementwise("exp10", "10 to the power x; exact for integers where the power is a float.",
                    [lambda y, x: mul(_constant("ln10", y), y)], kinds="f")
log = elementwise("log", "Natural logarithm of x; -inf at 0, NaN below.", [lambda y, x: div(1.0, x)])
log1p = elementwise("log1p", "log(1 + x), accurate near 0.", [lambda y, x: div(1.0, add(1.0, x))])
log2 = elementwise("log2", "Logarithm of x to base 2; exact for powers of 2.",
                   [lambda y, x: div(_constant("1/ln2", x), x)])
log10 = elementwise("log10", "Logarithm of x to base 10.", [lambda y, x: div(_constant("1/ln10", x), x)])
logistic = elementwise("logistic", "1 / (1 + exp(-x)), the logistic function (sigmoid).",
                       [lambda y, x: mul(y, logistic(neg(x)))])
softplus = elementwise("softplus", "log(1 + exp(x)), without overflow.", [lambda y, x: logistic(x)])


def _share(x, y):
    """exp(x) / (exp(x) + exp(y)) with the rounding error of x - y made good; 0 where both are one infinity."""
    same = eq(x, y)
    gap = sub(where(same, 0, x), where(same, 0, y))
    back = sub(x, gap)
    lost = sub(sub(x, add(gap, back)), sub(y, back))          # of x - y; Knuth's sum of two numbers
    lost = where(is_finite(lost), lost, 0)
    share = logistic(gap)
    right = add(share, mul(lost, mul(share, logistic(neg(gap)))))
    return where(and_(same, not_(is_finite(x))), 0, right)


logaddexp = elementwise("logaddexp", """
    log(exp(x) + exp(y)) without overflow.

    The derivative where both are the same infinity is 0 by convention.
    """, [lambda z, x, y: _share(x, y), lambda z, x, y: _share(y, x)], kinds="f")

# ---- powers ----

rsqrt = elementwise("rsqrt", "1 / sqrt(x), correctly rounded; +inf at 0.",
                    [lambda y, x: mul(-0.5, div(y, x))])
cbrt = elementwise("cbrt", "Cube root of x, exact for cubes; odd.",
                   [lambda y, x: div(1.0, mul(3.0, mul(y, y)))])


def _pow_by_base(z, x, y):
    """y x^(y-1), as a power: no division by x, and 0 for y = 0."""
    flat = eq(y, 0)
    return where(flat, 0, mul(y, pow_(x, sub(y, where(flat, 0, 1)))))


def _pow_by_exponent(z, x, y):
    """x^y log(x), and 0 at x = 0 for y > 0."""
    flat = eq(x, 0)
    if x.dtype.kind == "f":
        flat = and_(flat, gt(y, 0))
    return where(flat, 0, mul(z, log(where(flat, 1, x))))


pow_ = elementwise("pow", """
    x to the power y, for real or complex operands.

    pow(x, 0) is 1 for every x; a negative x needs an integral y, else NaN.  Smooth at x = 0 for
    y = 0, 1, 2, ...: the derivative of pow(x, 1) at 0 is 1.

    >>> pow_(tl.tensor([2.0, 9.0]), tl.tensor([3.0, 0.5]))
    tensor([8., 3.], float64, shape (2,), cpu)
    """, [_pow_by_base, _pow_by_exponent])

# ---- trigonometry ----

sin = elementwise("sin", "Sine of x in radians.", [lambda y, x: cos(x)])
cos = elementwise("cos", "Cosine of x in radians.", [lambda y, x: neg(sin(x))])
tan = elementwise("tan", "Tangent of x in radians.", [lambda y, x: add(1.0, mul(y, y))])
sinpi = elementwise("sinpi", "sin(pi x), x in half turns: +-0 at integers.",
                    [lambda y, x: mul(_constant("pi", x), cospi(x))], kinds="f")
cospi = elementwise("cospi", "cos(pi x), x in half turns: +0 at half-integers.",
                    [lambda y, x: neg(mul(_constant("pi", x), sinpi(x)))], kinds="f")


def _one_minus_square(x):
    """1 - x^2 with one rounding: small x and x near 1 keep their relative accuracy, in every order."""
    return sub(1.0, mul(x, x)) if x.dtype.kind == "c" else fma(neg(x), x, 1.0)


asin = elementwise("asin", "Angle in [-pi/2, pi/2] with sine x.",
                   [lambda y, x: rsqrt(_one_minus_square(x))])
acos = elementwise("acos", "Angle in [0, pi] with cosine x.",
                   [lambda y, x: neg(rsqrt(_one_minus_square(x)))])


def _atan_slope(y, x):
    """1 / (1 + x^2), through 1/x where x^2 would overflow."""
    if x.dtype.kind == "c":
        return div(1.0, add(1.0, mul(x, x)))
    big = gt(mul(x, sign(x)), 1.0)
    r = div(1.0, where(big, x, 1.0))
    small = where(big, 0.0, x)
    return where(big, div(mul(r, r), add(1.0, mul(r, r))), div(1.0, add(1.0, mul(small, small))))


atan = elementwise("atan", "Angle in (-pi/2, pi/2) with tangent x.", [_atan_slope])


def _over_square(a, x, y):
    """a / (x^2 + y^2) through hypot, without overflow; 0 at the origin."""
    size = hypot(x, y)
    origin = eq(size, 0)
    safe = where(origin, 1.0, size)
    return where(origin, 0.0, div(div(a, safe), safe))


atan2 = elementwise("atan2", """
    Angle of the point (y, x) in (-pi, pi]: atan2(first, second).

    The derivative at the origin is 0 by convention.
    """, [lambda angle, y, x: _over_square(x, x, y), lambda angle, y, x: _over_square(neg(y), x, y)],
    kinds="f", names="y x")

hypot = elementwise("hypot", "sqrt(x^2 + y^2) without overflow.",
                    [lambda r, x, y: direction(x, r), lambda r, x, y: direction(y, r)], kinds="f")

# ---- hyperbolic ----

sinh = elementwise("sinh", "Hyperbolic sine of x.", [lambda y, x: cosh(x)])
cosh = elementwise("cosh", "Hyperbolic cosine of x.", [lambda y, x: sinh(x)])


def _tanh_slope(y, x):
    """1 / cosh(x)^2 = 4 t / (1 + t)^2, t = exp(-2|x|): no cancellation in the tails.

    It is the same function of exp(2x) and of exp(-2x), so a selected sign leaves all derivatives right at 0.
    """
    if x.dtype.kind == "c":
        return sub(1.0, mul(y, y))
    t = exp(mul(2.0, where(gt(x, 0), neg(x), x)))
    d = add(1.0, t)
    return div(mul(4.0, t), mul(d, d))


tanh = elementwise("tanh", "Hyperbolic tangent of x.", [_tanh_slope])
asinh = elementwise("asinh", "Inverse of sinh.", [lambda y, x: _inverse_hypot(x, 1.0)])
acosh = elementwise("acosh", "Inverse of cosh on [1, inf); NaN below 1.",
                    [lambda y, x: mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))])
atanh = elementwise("atanh", "Inverse of tanh on (-1, 1).",
                    [lambda y, x: div(1.0, _one_minus_square(x))])


def _inverse_hypot(x, a):
    if x.dtype.kind == "c":
        return rsqrt(add(mul(x, x), a * a))
    return div(1.0, hypot(x, a))


# ---- error function, gamma ----

def _gaussian(x):
    """exp(-x^2) with the rounding error of the square made good: without it, x^2 ulps are lost."""
    square = mul(x, x)
    if x.dtype.kind == "c":
        return exp(neg(square))
    lost = where(is_finite(square), fma(x, x, neg(square)), 0)
    return mul(exp(neg(square)), sub(1.0, lost))


erf = elementwise("erf", "Error function 2/sqrt(pi) integral of exp(-t^2) over [0, x].",
                  [lambda y, x: mul(_constant("2/sqrt(pi)", x), _gaussian(x))])
erfc = elementwise("erfc", "1 - erf(x), accurate in the right tail.",
                   [lambda y, x: neg(mul(_constant("2/sqrt(pi)", x), _gaussian(x)))])


def _gelu_erf_slope(y, x):
    """Phi(x) + x phi(x), phi's exponent with the rounding error of the square made good."""
    inside = where(is_finite(x), x, 0)
    square = mul(inside, inside)
    lost = where(is_finite(square), fma(inside, inside, neg(square)), 0)
    bell = mul(exp(mul(-0.5, square)), sub(1.0, mul(0.5, lost)))
    below = mul(0.5, erfc(neg(mul(_constant("1/sqrt(2)", x), x))))
    return add(below, mul(_constant("1/sqrt(2 pi)", x), mul(inside, bell)))


gelu_erf = elementwise("gelu_erf", """
    x Phi(x), Phi the normal distribution function: the Gaussian error linear unit.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """, [_gelu_erf_slope], kinds="f")


def _gelu_tanh_slope(y, x):
    """s + x s (1 - s) (2u)', s = logistic(2u) = y / x: the quotient keeps its accuracy in the left tail."""
    c, d = _constant("sqrt(8/pi)", x), _constant("0.044715", x)

    def angle(v):
        return mul(c, add(v, mul(d, mul(mul(v, v), v))))
    size = angle(where(gt(x, 0), neg(x), x))
    curved = ne(logistic(size), 0)                 # elsewhere s (1 - s) underflows: no slope of the slope
    v = where(curved, x, 0)
    left = and_(curved, lt(x, -1.0))
    s = where(left, div(where(left, y, 0), where(left, x, 1.0)), logistic(angle(v)))
    steep = mul(c, add(1.0, mul(3.0, mul(d, mul(v, v)))))
    slope = add(s, mul(mul(v, mul(s, logistic(neg(angle(v))))), steep))
    return where(curved, slope, where(gt(x, 0), 1.0, 0.0))


gelu_tanh = elementwise("gelu_tanh", """
    x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, the form of `gelu_erf` with tanh.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """, [_gelu_tanh_slope], kinds="f")


# ---- integer powers ----

def _integer_pow_slope(y, x, *, n):
    return mul(n, integer_pow.bind(x, n=n - 1)) if n else mul(0, x)


class _IntegerPow(Elementwise):
    def __call__(self, x, n):
        (x,) = promote((x,), self.name)
        if n < 0 and not is_inexact(x.dtype):
            raise DTypeError(f"integers to negative integer powers are not integers: {x.aval} ** {n}; "
                             "write tl.convert(x, tl.float64) ** n")
        return self.bind(x, n=int(n))


integer_pow = documented(
    _IntegerPow("integer_pow", 1, kinds="iufc"), """
    x**n for a fixed integer n, by repeated squaring: n = 3 is x * (x * x); below zero, 1 / x**-n.

    >>> integer_pow(tl.tensor([1.0, 2.0, 3.0]), 3)
    tensor([ 1.,  8., 27.], float64, shape (3,), cpu)
    """, "x n")
integer_pow.partials = (_integer_pow_slope,)
integer_pow.jvp = jvp_from_partials(integer_pow, integer_pow.partials)
