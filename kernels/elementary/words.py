"""Numbers in two binary64 words (head + tail), built of error-free transformations.

Sources: Knuth, TAOCP 2, 4.2.2 (two_sum); Dekker 1971 (fast_two_sum); the fma forms of product,
quotient and root are in Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., chapters 4
and 14.
"""
from ..expr import fma_value as fma, maximum, select, sqrt

TINY = 2.0 ** -100
LEAST = 2.0 ** -300                     # results at it need no subnormal intermediates
TWO_52 = 0x4330000000000000             # the word of 2**52
SHIFT = float.fromhex("0x1.8p52")       # v + SHIFT has rint(v) in its low bits


def two_sum(a, b):
    """(s, e) with s = fl(a + b), s + e = a + b."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def fast_two_sum(a, b):
    """`two_sum` where |a| >= |b| or a = 0."""
    s = a + b
    return s, b - (s - a)


def two_product(a, b):
    """(p, e) with p = fl(a * b), p + e = a * b."""
    p = a * b
    return p, fma(a, b, -p)


def multiply(h, l, pair):
    """(h + l) * (c0 + c1) in two words, error about 2**-103 relative."""
    p = h * pair[0]
    return p, fma(h, pair[0], -p) + fma(l, pair[0], h * pair[1])


def _quotient_parts(nh, nl, dh, dl):
    """(q, rest, reciprocal): (nh + nl) / (dh + dl) = q + rest * reciprocal, with one division."""
    reciprocal = 1.0 / dh
    q = nh * reciprocal
    return q, fma(-q, dh, nh) + fma(-q, dl, nl), reciprocal


def divide(nh, nl, dh, dl):
    """(nh + nl) / (dh + dl) in two words with one division; the head is within an ulp or two."""
    q, rest, reciprocal = _quotient_parts(nh, nl, dh, dl)
    return q, rest * reciprocal


def quotient(nh, nl, dh, dl):
    """`divide` in one word."""
    q, rest, reciprocal = _quotient_parts(nh, nl, dh, dl)
    return fma(rest, reciprocal, q)


def root(h, l):
    """sqrt(h + l) in two words; h > 0."""
    s = sqrt(h)
    return s, (fma(-s, s, h) + l) * (0.5 / s)


def horner_step(x, h, l, pair):
    """c + x (h + l) in two words, c the two-word constant `pair`, |c| >= |x (h + l)|."""
    p = x * h
    s, e = fast_two_sum(x.like(pair[0]), p)
    return s, e + (fma(x, l, fma(x, h, -p)) + pair[1])


def multiple(a, high, low):
    """a (high + low) for 0 <= a < `TINY`, at 2**200 its size; no operation has a subnormal operand or result."""
    subnormal = a < 2.0 ** -1022
    count = (a.bits() | TWO_52).as_float() - 2.0 ** 52                 # a in units of 2**-1074
    v = select(subnormal, count * 2.0 ** -874, maximum(a, 2.0 ** -1022) * 2.0 ** 200)
    z = fma(v, high, v * low)
    below = z < 2.0 ** -822
    rounded = select(below, z, 0.0) * 2.0 ** 874 + 2.0 ** 52
    return select(below, (rounded.bits() - TWO_52).as_float(), maximum(z, 2.0 ** -822) * 2.0 ** -200)


def nearest(v, scale):
    """(word, k): k = rint(v * scale) as a float, and a word whose low bits hold it.

    |v * scale| < 2**51. The word is that of k + 1.5 * 2**52: bit 51 is set, so shift 13 bits up
    and down (arithmetically) to get k as an integer.
    """
    t = fma(v, scale, SHIFT)
    return t.bits(), t - SHIFT
