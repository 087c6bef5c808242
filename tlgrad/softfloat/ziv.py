"""Ziv's rounding test, and the evaluation of functions to any precision that it drives.

Ziv's rule (ACM TOMS 17, 1991): evaluate with an error bound, at growing precision, until both ends
of the enclosure agree. mpmath evaluates; it does not promise correct rounding, so its results are
taken with 14 more bits than are used. An evaluator is ``f(*mpf, prec) -> mpf`` with a relative
error below ``2**-(prec - 10)``; mpf is mpmath's tuple ``(sign, man, exp, bitcount)``.
"""
from __future__ import annotations

from mpmath import libmp
from mpmath.libmp import fone, from_man_exp, mpf_add, mpf_div, mpf_exp, mpf_mul, mpf_neg

from tlgrad.softfloat.arith import round_pack

SLACK = 14


def to_mpf(part):
    """A decoded finite word as an mpmath number, exactly."""
    return from_man_exp(-part.sig if part.sign else part.sig, part.exponent)


def ziv(fmt, evaluate, parts, env):
    """The word of ``evaluate(*parts)``, whose value must not have a short binary expansion."""
    keep = fmt.precision + (68 if env.rounding == "stochastic" else 4)
    args, guard = [to_mpf(p) for p in parts], 28
    while True:
        prec = keep + guard
        sign, sig, exponent, bits = evaluate(*args, prec + SLACK)
        sig, exponent = int(sig) << SLACK + prec, exponent - SLACK - prec
        bits += SLACK + prec
        error, shift = 1 << (bits - prec), bits - keep
        low, high = (sig - error) >> shift, (sig + error) >> shift
        if low == high and sig:
            return round_pack(fmt, sign, low << 1 | 1, exponent + shift - 1, env)
        guard *= 2


def magnitude(x):
    """An integer k with ``2**(k-1) <= |x| < 2**k``."""
    return x[2] + x[3]


def mpf_log(x, prec):
    """mpmath's logarithm, which is wrong just above 1/4 with fewer bits than its argument has."""
    return libmp.mpf_log(x, max(prec, x[3] + 16))


def expm1(x, prec):
    """exp(x) - 1 without cancellation."""
    lost = max(0, -magnitude(x)) + 8
    return mpf_add(mpf_exp(x, prec + lost), libmp.fnone, prec)


def log1p(x, prec):
    """log(1 + x): a series where x is small, where 1 + x would need all the digits of x."""
    if magnitude(x) > -40:
        return mpf_log(mpf_add(x, fone, prec + 64 + x[3]), prec)
    term, total, k = x, x, 1
    while magnitude(term) > magnitude(total) - prec - 8:
        k += 1
        term = mpf_neg(mpf_mul(term, x, prec + 16))
        total = mpf_add(total, mpf_div(term, libmp.from_int(k), prec + 16), prec + 16)
    return total


def log_over(base_log):
    """The logarithm to a base, given its natural logarithm to a precision."""
    return lambda x, prec: mpf_div(mpf_log(x, prec + 4), base_log(prec + 4), prec)


def exp2(x, prec):
    """2**x."""
    wide = prec + max(0, magnitude(x)) + 8
    return mpf_exp(mpf_mul(x, libmp.mpf_ln2(wide), wide), prec)


def exp10(x, prec):
    """10**x."""
    wide = prec + max(0, magnitude(x)) + 8
    return mpf_exp(mpf_mul(x, libmp.mpf_ln10(wide), wide), prec)


def power(x, y, prec):
    """|x|**y."""
    wide = prec + max(0, magnitude(y) + 24) + 24
    return mpf_exp(mpf_mul(y, mpf_log(libmp.mpf_abs(x), wide), wide), prec)


def logistic(x, prec):
    """1 / (1 + exp(-x))."""
    return mpf_div(fone, mpf_add(fone, mpf_exp(mpf_neg(x), prec + 4), prec + 4), prec)


def softplus(x, prec):
    """log(1 + exp(x))."""
    return log1p(mpf_exp(x, prec + 8), prec)


def logaddexp(x, y, prec):
    """log(exp(x) + exp(y)), at a precision that grows until what x and the logarithm cancel is paid for."""
    if libmp.mpf_lt(x, y):
        x, y = y, x
    extra = 16
    while True:
        wide = prec + extra
        gap = mpf_add(y, mpf_neg(x), wide + max(0, magnitude(x), magnitude(y)))
        tail = log1p(mpf_exp(gap, wide), wide)
        total = mpf_add(x, tail, wide)
        lost = magnitude(tail) - magnitude(total) if total[1] else wide
        if lost + 12 <= extra:
            return total
        extra = 2 * extra + lost


def acosh(x, prec):
    """log1p(t + sqrt(t * (t + 2))) with t = x - 1, which keeps the digits next to 1."""
    t = libmp.mpf_sub(x, fone, prec + 16 + x[3])
    root = libmp.mpf_sqrt(mpf_mul(t, mpf_add(t, libmp.ftwo, prec + 16), prec + 16), prec + 16)
    return log1p(mpf_add(t, root, prec + 8), prec)


def acos(x, prec):
    """2 asin(sqrt((1 - x) / 2)), which keeps the digits next to 1."""
    half = libmp.mpf_shift(libmp.mpf_sub(fone, x, prec + 64 + x[3] + abs(min(0, x[2]))), -1)
    return libmp.mpf_shift(libmp.mpf_asin(libmp.mpf_sqrt(half, prec + 16), prec + 8), 1)


EVALUATE = {
    "exp": mpf_exp, "exp2": exp2, "expm1": expm1, "log": mpf_log, "log1p": log1p,
    "log2": log_over(libmp.mpf_ln2), "log10": log_over(libmp.mpf_ln10),
    "sin": libmp.mpf_sin, "cos": libmp.mpf_cos, "tan": libmp.mpf_tan,
    "sinh": libmp.mpf_sinh, "cosh": libmp.mpf_cosh, "tanh": libmp.mpf_tanh,
    "asinh": libmp.mpf_asinh, "acosh": acosh, "atanh": libmp.mpf_atanh,
    "asin": libmp.mpf_asin, "acos": acos, "atan": libmp.mpf_atan, "atan2": libmp.mpf_atan2,
    "erf": libmp.mpf_erf, "erfc": libmp.mpf_erfc, "pow": power, "logistic": logistic,
    "softplus": softplus, "exp10": exp10, "logaddexp": logaddexp,
}
