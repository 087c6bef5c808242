"""Remainders on words of any layout with infinities: exact, by long division 28 bits at a time.

A step shifts what is left by up to 28 bits and takes off a multiple of the divisor: an estimate from
binary64 that is never too large, so that less than twice the divisor is left (see `wide.div`). There are
as many steps as the exponents are apart, over 28.
"""
from tlgrad.kernels.softfloat import wide
from tlgrad.kernels.softfloat.wide import DIGIT, whole
from tlgrad.kernels.softfloat.words import loop, resize, select, umin, width


def _divided(f, a, b):
    """``(exponents apart, exponent of b, rest, divisor, whether the quotient is odd)`` of finite words; the
    rest is below the divisor where the exponents are not negatively apart."""
    (ae, asig), (be, bsig) = wide.normal(f, a), wide.normal(f, b)
    gap = select(wide.is_inf(f, b), -2, ae - be)
    type, cut = whole(f.F + 1 + DIGIT + 4), f.F + DIGIT + 4 - 62
    divisor = resize(bsig, type)
    inverse = 0.9999999999999973 / (wide.upper(divisor, cut) + 1.0)

    def step(left, rest, digit):
        del digit
        count = umin(left, DIGIT)
        rest = rest << resize(count, type)
        digit = (wide.upper(rest, cut) * inverse).to_integer()
        return left - count, rest - resize(digit, type) * divisor, digit

    start = select(gap < 0, 0, gap)
    _, rest, digit = loop(lambda left, rest, digit: left.ne(0), step, start, resize(asig, type), start & 0)
    less = rest.ult(divisor)
    odd = (digit & 1).ne(0) ^ ~less
    return gap, be, select(less, rest, rest - divisor), divisor, odd


def _packed(f, sign, exponent, rest):
    """The word of a rest below twice the divisor, exactly; `exponent` is that of the divisor."""
    type = whole(f.F + 4)
    up, sig = wide.leading(resize(rest, type) << (width(type) - 1 - f.F))
    return wide.round_pack(f, sign, exponent - up, sig)


def _specials(f, a, b, word):
    word = select(wide.is_zero(f, a), a, word)
    bad = wide.is_nan(f, a) | wide.is_nan(f, b) | wide.is_inf(f, a) | wide.is_zero(f, b)
    return select(bad, f.nan, word)


def fmod(f, a, b):
    """The remainder with the sign of a."""
    gap, exponent, rest, _, _ = _divided(f, a, b)
    word = _packed(f, a & f.sign, exponent, rest)
    return _specials(f, a, b, select(gap < 0, a, word))


def rem(f, a, b):
    """IEEE 754 remainder: a less b times the integer nearest to a / b, ties to even."""
    gap, exponent, rest, divisor, odd = _divided(f, a, b)
    near = gap.eq(-1)                                  # |b| / 4 < |a| < |b|: in units of a, b is twice its divisor
    rest = select(near, resize(wide.normal(f, a)[1], divisor.type), rest)
    divisor = select(near, divisor << 1, divisor)
    twice = rest << 1
    flips = divisor.ult(twice) | (twice.eq(divisor) & odd & ~near)
    sign = (a & f.sign) ^ select(flips, a.constant(f.sign, f.type), 0)
    word = _packed(f, sign, select(near, exponent - 1, exponent), select(flips, divisor - rest, rest))
    return _specials(f, a, b, select(gap < -1, a, word))


def remainder(f, a, b):
    """The remainder with the sign of b, as Python ``%``: `fmod`, plus b where the signs differ."""
    rest = fmod(f, a, b)
    differ = ((rest ^ b) & f.sign).ne(0)
    word = select(differ, wide.add(f, rest, b), rest)
    word = select(wide.is_zero(f, rest), b & f.sign, word)
    return select(wide.is_nan(f, rest) | wide.is_nan(f, b), f.nan, word)
