"""lgamma, digamma and polygamma on words: special cases, and evaluators for Ziv's loop."""
from __future__ import annotations

import math

from mpmath import libmp
from mpmath.libmp import fone, mpf_add, mpf_div, mpf_neg

from tlgrad.softfloat.arith import invalid, round_pack
from tlgrad.softfloat.format import FINITE, INFINITE
from tlgrad.softfloat.settle import far, pole, tiny, top, whole
from tlgrad.softfloat.ziv import magnitude, mpf_log, ziv

#: polygamma sums about |x| terms below zero, and its order is a factorial
LEAST, HIGHEST = -(1 << 16), 1000


def lgamma_settle(fmt, words, parts, env):
    """log |gamma(x)| at its poles, zeros and ends."""
    (x,) = parts
    if x.kind == INFINITE:
        return fmt.infinity()
    value = whole(x) if top(x) <= fmt.F + 2 or not x.sign else -1
    if value is not None and value <= 0:
        return pole(fmt, 0, env)
    if value in (1, 2):
        return fmt.zero()
    return far(fmt, 0, True, env) if top(x) > fmt.emax + 1 - fmt.E // 2 else None


def digamma_settle(fmt, words, parts, env):
    """The logarithmic derivative of gamma; its poles at -1, -2, ... have no sign: NaN."""
    return _settle(fmt, 0, parts[0], env)


def polygamma_settle(fmt, words, parts, env):
    """The n-th derivative of digamma in full. ValueError for an order beyond HIGHEST or x below LEAST."""
    n, x = parts
    order = whole(n) if n.kind == FINITE and not n.sign else None
    if order is None:
        return invalid(fmt, env)
    if order > HIGHEST or (order and x.kind == FINITE and x.sign and top(x) > LEAST.bit_length()):
        raise ValueError(f"polygamma(n, x) in software takes orders n up to {HIGHEST:,} and, from n = 1 on, "
                         f"x above {LEAST:,}")
    word = _settle(fmt, order, x, env)
    if word is not None:
        return word
    evaluate = EVALUATE["digamma"] if not order else lambda x, prec: _kept(
        lambda x, prec: libmp.mpf_psi(order, x, prec), x, prec)
    return ziv(fmt, evaluate, (x,), env)


def _settle(fmt, n, x, env):
    if x.kind == INFINITE:
        return invalid(fmt, env) if x.sign else fmt.zero(1 - n % 2) if n else fmt.infinity()
    if x.sig == 0:
        return pole(fmt, 0 if n % 2 else 1 - x.sign, env)
    if x.sign and (top(x) > fmt.F + 2 or whole(x) is not None):
        return pole(fmt, 0, env) if n % 2 else invalid(fmt, env)
    if not tiny(fmt, x):
        return None
    # (-1)**(n+1) n! (1 / x**(n+1) + zeta(n+1) or Euler's constant): next to the first, which may be exact
    bottom = x.sig ** (n + 1)
    extra = bottom.bit_length() + fmt.F + 80
    quotient, rest = divmod(math.factorial(n) << extra, bottom)
    outward = 1 if rest or not x.sign or n % 2 else -1
    sign = 0 if n % 2 else 1 - x.sign
    return round_pack(fmt, sign, 2 * quotient + outward, -x.exponent * (n + 1) - extra - 1, env)


def lgamma(x, prec):
    """log |gamma(x)|."""
    return _kept(_lgamma_once, x, prec)


def _kept(evaluate, x, prec):
    """A function with zeros to a relative precision: the bits grow by what cancels, and next to the poles
    below zero by the last place of x."""
    extra = 32 + (min(max(0, -x[2]), prec) if x[0] else 0)
    while True:
        value = evaluate(x, prec + extra)
        lost = max(0, 4 - magnitude(value)) if value[1] else prec + extra
        if extra > lost + 24 + max(0, magnitude(x)):
            return value
        extra = 2 * extra + lost + max(0, magnitude(x))


def _lgamma_once(x, prec):
    if not x[0]:
        return libmp.mpf_loggamma(x, prec)
    reflected = mpf_add(fone, mpf_neg(x), prec + 64 + x[3])
    sine = libmp.mpf_abs(libmp.mpf_sin_pi(x, prec))
    front = mpf_log(mpf_div(libmp.mpf_pi(prec), sine, prec), prec)
    return libmp.mpf_sub(front, libmp.mpf_loggamma(reflected, prec), prec)


SETTLE = {"lgamma": lgamma_settle, "digamma": digamma_settle, "polygamma": polygamma_settle}
EVALUATE = {"lgamma": lgamma, "digamma": lambda x, prec: _kept(libmp.mpf_psi0, x, prec)}
