"""What is decided about an elementary function before its digits are worked out."""
from __future__ import annotations

from tlgrad.softfloat.arith import DIVIDE_BY_ZERO, round_pack
from tlgrad.softfloat.format import INFINITE


def top(x):
    """An integer k with ``2**(k-1) <= |x| < 2**k`` for a decoded nonzero number."""
    return x.sig.bit_length() + x.exponent


def tiny(fmt, x):
    """Whether 1 + x, and x + x**2, differ from 1 and x by less than any rounding can see."""
    return top(x) < -(fmt.F + 80)


def flat(fmt):
    """|x| beyond which exp(-|x|) cannot be seen beside 1."""
    return fmt.F + 90


def above(x, bound):
    """Whether the magnitude of a decoded number is at least an integer."""
    return x.kind == INFINITE or (x.sig >> -x.exponent if x.exponent < 0 else
                                  x.sig << min(x.exponent, 64)) >= bound


def range_bits(fmt):
    """k such that exp of anything beyond 2**k leaves the range."""
    return max(fmt.emax, fmt.F - fmt.emin).bit_length() + 2


def near(fmt, sign, sig, exponent, direction, env):
    """The word of a value just above (+1) or below (-1) the magnitude ``sig * 2**exponent``."""
    extra = fmt.F + 72
    return round_pack(fmt, sign, (sig << extra) + direction, exponent - extra, env)


def far(fmt, sign, large, env):
    """The word of a value beyond the largest (``large``) or below the smallest number."""
    return round_pack(fmt, sign, 3, fmt.emax + 2 if large else fmt.emin - fmt.F - 8, env)


def pole(fmt, sign, env):
    """The exact infinity of a pole; raises the divide-by-zero flag."""
    env.flags |= DIVIDE_BY_ZERO
    return fmt.infinity(sign)


def whole(x):
    """The integer that a decoded number is, or None."""
    if x.exponent >= 0:
        value = x.sig << x.exponent
    elif x.sig & ((1 << min(-x.exponent, x.sig.bit_length() + 1)) - 1):
        return None
    else:
        value = x.sig >> -x.exponent
    return -value if x.sign else value
