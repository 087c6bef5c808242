"""erf, erfc and the two forms of gelu.

erf: c = k / 128 nearest to |x|, erf(c + d) = erf(c) + slope(c) d (1 - c d + (2 c**2 - 1) d**2 / 3
- ...), the Taylor series, whose coefficients are Hermite polynomials of c; erf(c) and the slope
come from a table.
"""
from ..expr import copysign, fma_value as fma, horner, minimum, select
from .tables import numbers, table
from .words import fast_two_sum, nearest, two_product, two_sum


def _hermite_series(c, d, terms):
    """d (-c + d ((2 c**2 - 1) / 3 + ...)): erf's Taylor series from its second term on."""
    w = c * c
    odd = [-1.0, horner((0.5, -1 / 3), w), horner((-1 / 6, 2 / 9, -2 / 45), w)]
    even = [horner((-1 / 3, 2 / 3), w), horner((0.1, -0.4, 2 / 15), w),
            horner((-1 / 42, 1 / 7, -2 / 21, 4 / 315), w)]
    coefficients = [c * odd[0], even[0], c * odd[1], even[1], c * odd[2], even[2]]
    return d * horner(coefficients[:terms], d)


def _grid(x):
    a = minimum(x.abs(), 6.0)
    word, k = nearest(a, 128.0)
    c = k * (1 / 128)
    i = word & 1023
    return i, c, a - c


def erf_narrow(x):
    i, c, d = _grid(x)
    step = i.lookup(table("erf_slope")) * d
    y = i.lookup(table("erf_high")) + fma(step, _hermite_series(c, d, 5), step)
    return copysign(y, x.sign())


def erf_parts(x):
    """(h, l) = erf|x| in two words, absolute error about 2**-64."""
    i, c, d = _grid(x)
    slope = i.lookup(table("erf_slope"))
    step, step_low = two_product(slope, d)
    h, l = two_sum(i.lookup(table("erf_high")), step)
    rest = fma(step, _hermite_series(c, d, 6), step_low + i.lookup(table("erf_low")))
    return fast_two_sum(h, l + rest)


def erf_wide(x):
    h, l = erf_parts(x)
    high, low = numbers("two_over_root_pi")
    a = x.abs()
    small = fma(a, high, a * low)
    return copysign(select(a < 2.0 ** -30, small, h + l), x.sign())
