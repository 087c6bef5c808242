"""The two forms of the Gaussian error linear unit, of any precision.

gelu_erf(x) = x erfc(-x / sqrt 2) / 2; gelu_tanh(x) = x logistic(sqrt(8 / pi) (x + 0.044715 x**3)).
"""
from __future__ import annotations

import math

from mpmath import libmp
from mpmath.libmp import mpf_add, mpf_mul

from tlgrad.softfloat.format import INFINITE
from tlgrad.softfloat.settle import above, far, flat, near, range_bits, tiny, top
from tlgrad.softfloat.ziv import logistic, magnitude


def _root(numerator, denominator):
    """The evaluator of sqrt(numerator / denominator()) to a precision."""
    return lambda prec: libmp.mpf_sqrt(
        libmp.mpf_div(libmp.from_int(numerator), denominator(prec + 8), prec + 8), prec)


CONSTANTS = {
    "1/sqrt(2)": _root(1, lambda prec: libmp.ftwo), "sqrt(8/pi)": _root(8, libmp.mpf_pi),
    "1/sqrt(2 pi)": _root(1, lambda prec: libmp.mpf_shift(libmp.mpf_pi(prec), 1)),
    "0.044715": lambda prec: libmp.from_rational(44715, 1000000, prec),
}


def _unit(flattens, vanishes):
    """The ends of both forms: x itself on the right, -0 on the left, x / 2 at 0."""
    def settle(fmt, words, parts, env):
        (x,) = parts
        if x.kind == INFINITE:
            return fmt.zero(1) if x.sign else words[0]
        if x.sig == 0:
            return words[0]
        if not x.sign and flattens(fmt, x):
            return near(fmt, 0, x.sig, x.exponent, -1, env)
        if x.sign and vanishes(fmt, x):
            return far(fmt, 1, False, env)
        return near(fmt, x.sign, x.sig, x.exponent - 1, -1 if x.sign else 1, env) if tiny(fmt, x) else None
    return settle


def _gelu_erf(x, prec):
    wide = prec + 2 * max(0, magnitude(x)) + 16
    root = mpf_mul(x, CONSTANTS["1/sqrt(2)"](wide), wide)
    return mpf_mul(libmp.mpf_shift(x, -1), libmp.mpf_erfc(libmp.mpf_neg(root), wide), prec)


def _gelu_tanh(x, prec):
    wide = prec + 3 * max(0, magnitude(x)) + 24
    cubic = mpf_mul(mpf_mul(mpf_mul(x, x), x, wide), CONSTANTS["0.044715"](wide), wide)
    twice = mpf_mul(mpf_add(x, cubic, wide), CONSTANTS["sqrt(8/pi)"](wide), wide)
    return mpf_mul(x, logistic(twice, wide), prec)


SETTLE = {
    "gelu_erf": _unit(lambda fmt, x: above(x, math.isqrt(2 * flat(fmt)) + 1),
                      lambda fmt, x: above(x, math.isqrt(2 * (fmt.F - fmt.emin + 8)) + 1)),
    "gelu_tanh": _unit(lambda fmt, x: above(x, flat(fmt)), lambda fmt, x: top(x) > range_bits(fmt)),
}
EVALUATE = {"gelu_erf": _gelu_erf, "gelu_tanh": _gelu_tanh}
