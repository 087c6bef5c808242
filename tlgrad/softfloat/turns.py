"""sinpi and cospi of any precision: sine and cosine of an angle in half turns, reduced exactly."""
from __future__ import annotations

from mpmath import libmp
from mpmath.libmp import mpf_mul, mpf_neg

from tlgrad.softfloat.arith import invalid
from tlgrad.softfloat.format import INFINITE
from tlgrad.softfloat.settle import near, tiny, whole
from tlgrad.softfloat.ziv import magnitude


def _quarters(x):
    """2 |x| modulo 4 of a decoded number, or None where 2 x is not an integer."""
    if x.exponent > 0:
        return 0
    double = whole(x._replace(exponent=x.exponent + 1))
    return None if double is None else abs(double) & 3


def _sinpi(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return invalid(fmt, env)
    quarter = _quarters(x)
    if quarter is None:
        return None
    if quarter & 1:
        return fmt.one | (fmt.sign_bit if x.sign != (quarter == 3) else 0)
    return fmt.zero(x.sign)


def _cospi(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return invalid(fmt, env)
    quarter = _quarters(x)
    if quarter is None:
        return near(fmt, 0, 1, 0, -1, env) if tiny(fmt, x) else None
    return fmt.zero() if quarter & 1 else fmt.one | (fmt.sign_bit if quarter else 0)


def _turned(x, shift, prec):
    """sin(pi x + shift pi / 2): with 2 x = n + 2 r, sine or cosine of pi r, |r| <= 1/4."""
    if not shift and magnitude(x) < -prec:
        return mpf_mul(x, libmp.mpf_pi(prec + 8), prec)
    n = libmp.to_int(libmp.mpf_nint(libmp.mpf_shift(x, 1)))
    angle = mpf_mul(libmp.mpf_sub(x, libmp.mpf_shift(libmp.from_int(n), -1)), libmp.mpf_pi(prec + 16), prec + 16)
    n += shift
    value = (libmp.mpf_cos if n & 1 else libmp.mpf_sin)(angle, prec)
    return mpf_neg(value) if n & 2 else value


SETTLE = {"sinpi": _sinpi, "cospi": _cospi}
EVALUATE = {"sinpi": lambda x, prec: _turned(x, 0, prec), "cospi": lambda x, prec: _turned(x, 1, prec)}
