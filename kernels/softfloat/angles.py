"""tan and atan of binary128 in fixed point."""
from mpmath import mp, mpf

from tlgrad.kernels.expr.value import rare
from tlgrad.kernels.softfloat.constants import constants, fix
from tlgrad.kernels.softfloat.fixed import (
    F, ONE, high, mulshift, negate_if, normalised, parts, place, quotient, settle, settle_normal, table)
from tlgrad.kernels.softfloat.functions import circular, keep_nan, reduced, series
from tlgrad.kernels.softfloat.words import resize, select, signed

STEPS = 64
ANGLES = constants(lambda: [fix(lambda: mp.atan(mpf(j) / STEPS), 190) for j in range(STEPS + 1)])
RIGHT = constants(lambda: fix(lambda: mp.pi / 2, 190))
ODD = constants(lambda: [fix(lambda: 1 / mpf(k), 128) for k in range(3, 37, 2)])


def _larger(a, b):
    return select(a < b, b, a)


def tan(x):
    """The quotient of sine and cosine, each relatively exact, for 2**-57 <= |x| < 2**32."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult((F.bias + 32) << F.F) & ~magnitude.ult((F.bias - 57) << F.F)
    negative, *angle = reduced(select(usual, x, ONE))
    (flip, top, e), (turned, bottom, d) = circular(*angle, 0), circular(*angle, 1)
    (up, top), (down, bottom) = normalised(top), normalised(bottom)
    tall = bottom.ult(top)
    lead, total = normalised(quotient(select(tall, top.lshr(1), top), bottom))
    exponent = down - up - lead + select(tall, lead.constant(1, "i64"), 0)
    error = _larger(_larger(e + up, d + down), 191 - 138) + 4
    sign = select(negative ^ flip ^ turned, x.constant(F.sign, F.type), 0)
    word, undecided = settle_normal(sign, total, exponent + F.bias, error)
    word = select(magnitude.ult((F.bias - 57) << F.F), x, word)
    word = select(magnitude.eq(F.inf), F.nan, word)
    large = ~magnitude.ult((F.bias + 32) << F.F) & magnitude.ult(F.inf)
    return keep_nan(x, word), (undecided & usual) | large


def angle(n, d):
    """atan(n / d) at 2**-190 for n and d at 2**-190, n <= d and d in [1, 2), to 2**-141.

    With c = j / 64 next to n / d: atan c + atan((n - c d) / (d + c n)), the second by its series.
    """
    head = signed(resize(n.lshr(128), "i64")) / signed(resize(d.lshr(128), "i64"))
    j = (head * float(STEPS) + 0.5).to_integer()
    wide = resize(j, "i192")
    rest, whole = n - d.lshr(6) * wide, d + n.lshr(6) * wide
    left = rest < 0
    lead, whole = normalised(whole)
    r = quotient(resize(negate_if(left, rest), "i192") << resize(lead, "i192"), whole)
    v = resize(r.lshr(58), "i128")                                # at 2**-133
    z = high(v, v)                                                # at 2**-138
    bend = high(z, series(z, ODD[:9], 10, 2))
    r = (r - mulshift(r, bend, 138)).lshr(1)                      # at 2**-190
    return table("angles", "i192", ANGLES, j) + negate_if(left, r)


def atan(x):
    """The angle of |x| to 1, or of 1 to |x| taken from a right angle; a series below 1/16."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult(F.inf) & ~magnitude.ult((F.bias - 4) << F.F)
    _, exponent, sig = parts(select(usual, x, ONE))
    above = exponent > -1
    far = select(exponent > 191, 191, exponent)
    one = place(x.constant(1, F.type), "i192", 190, select(above, far, 0))   # at 2**-190
    same = place(sig, "i192", 78, select(above, 0, -exponent))
    n, d = select(above, one, same), select(above, same, one)
    total = angle(n, d)
    total = select(above, -total + RIGHT, total)
    word, undecided = settle(x & F.sign, total, 190, 50, 140)
    word = select(magnitude.eq(F.inf), (x & F.sign) | ATAN_OF_INFINITY, word)
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F), lambda: _atan_small(x), word, undecided & usual)
    return keep_nan(x, word), undecided


ATAN_OF_INFINITY = 0x3fff921fb54442d18469898cc51701b8            # pi / 2, rounded


def _atan_small(x):
    """x (1 - x**2 (1/3 - x**2 / 5 + ...)) for |x| < 1/16."""
    magnitude = x & (F.sign - 1)
    tiny = magnitude.ult((F.bias - 57) << F.F)
    _, exponent, sig = parts(select(tiny, ONE, x))
    v = place(sig, "i128", 15, -exponent - 5)                     # at 2**-132
    z = high(v, v)                                                # at 2**-136
    bend = high(z, series(z, ODD, 8, 5))
    whole = resize(sig, "i192") << 79
    total = whole - mulshift(whole, bend, 136)
    up, total = normalised(total)
    word, undecided = settle_normal(x & F.sign, total, exponent - up + F.bias, 66)
    return select(tiny, x, word), undecided & ~tiny


def atan2(y, x):
    """The angle of the smaller to the larger, from the axis that is nearer; small ones only to 2**-140."""
    a, b = y & (F.sign - 1), x & (F.sign - 1)
    tall = b.ult(a)
    d, n = select(tall, a, b), select(tall, b, a)
    usual = d.ult(F.inf) & ~n.ult(1 << F.F)
    (_, e, wide), (_, f, thin) = parts(select(usual, d, ONE)), parts(select(usual, n, ONE))
    gap = e - f
    total = angle(place(thin, "i192", 78, select(gap > 190, 191, gap)), resize(wide, "i192") << 78)
    total = select(tall, -total + RIGHT, total)
    total = select(x < 0, -total + 2 * RIGHT, total)
    word, undecided = settle(y & F.sign, total, 190, 51, 140)
    return word, undecided | ~usual


FUNCTIONS = {"tan": tan, "atan": atan, "atan2": atan2}
