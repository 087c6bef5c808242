"""rsqrt, cbrt, hypot, asinh, acosh, asin and acos of binary128 in fixed point: roots, most of them of exact sums
of squares."""
from mpmath import mp, mpf

from tlgrad.kernels.expr.value import rare, sqrt
from tlgrad.kernels.softfloat.angles import RIGHT, angle
from tlgrad.kernels.softfloat.constants import constants, fix
from tlgrad.kernels.softfloat.fixed import (
    F, ONE, high, mulshift, negate_if, normalised, parts, place, quotient, settle, settle_normal)
from tlgrad.kernels.softfloat.functions import LOG_SCALE, keep_nan, log_parts, series
from tlgrad.kernels.softfloat.logarithms import log_wide
from tlgrad.kernels.softfloat.words import resize, select, signed

#: 1/6, 3/40, 15/336, ...: the terms of asin and asinh, at 2**-128
TERMS = constants(lambda: [fix(lambda: mp.binomial(2 * k, k) / mpf(4) ** k / (2 * k + 1), 128)
                           for k in range(1, 18)])


def root(n):
    """The root of n in [1, 4) at 2**-190, too small by less than 2**-154.

    One Newton step takes the binary64 reciprocal root, made a little too small, to 2**-97; n times it is the
    root to as much, taken back exactly from n, and the remainder gives the rest (as in `fixed.quotient`).
    """
    head = signed(resize(n.lshr(129), "i64"))                      # at 2**-61
    guess = (2.0 ** 92.5 / sqrt(head)).to_integer() - (1 << 12)    # 1 / root at 2**-62
    upper, squared = resize(n.lshr(64), "i128"), resize(guess, "i128") * resize(guess, "i128")
    short = -high(upper, squared) + (1 << 122)                     # 1 - n y**2 at 2**-122, below 2**-48
    inverse = resize(guess, "i128") << 65                          # at 2**-127
    inverse = inverse + (mulshift(short, guess, 62) << 4)
    first = high(upper, inverse)                                   # at 2**-125
    rest = (resize(n, "i320") << 60) - resize(first, "i320") * resize(first, "i320")
    size = resize(rest.lshr(94), "i64")                            # at 2**-156
    more = high(size, resize(inverse.lshr(64), "i64"))             # halved: at 2**-156
    return (resize(first, "i192") << 65) + (resize(more, "i192") << 34)


def rsqrt(x):
    """1 over the root of the significand in [1, 4)."""
    usual = (x - (1 << F.F)).ult(F.inf - (1 << F.F))
    _, e, sig = parts(select(usual, x, ONE))
    odd = e & 1
    d = root((resize(sig, "i192") << resize(odd, "i192")) << 78) << 1
    up, total = normalised(quotient(d.constant(1 << 191, "i192"), d))
    word, undecided = settle_normal(x & 0, total, -((e - odd).ashr(1)) - up + F.bias, 40)
    zero = (x & (F.sign - 1)).eq(0)
    word = select(zero, (x & F.sign) | F.inf, select(x.eq(F.inf), 0, select((x < 0) & ~zero, F.nan, word)))
    return keep_nan(x, word), (undecided | ~usual) & ~zero & ~(x < 0) & x.ult(F.inf)


def cbrt(x):
    """The cube root of the significand in [1, 8).

    Halley's steps from a straight line give it in binary64, to 2**-50; what its cube, exactly, leaves of the
    significand, divided by three squares, to 2**-99; and once more to 2**-149.
    """
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult(F.inf) & ~magnitude.ult(1 << F.F)
    _, e, sig = parts(select(usual, magnitude, ONE))
    third = ((e + 3 * 16384) * 43691).lshr(17) - 16384             # e / 3, rounded down
    n = resize(sig, "i320") << resize(e - third * 3, "i320")       # at 2**-112
    value = signed(resize(n.lshr(54), "i64")) * 2.0 ** -58
    near = value * 0.17 + 0.85
    for _ in range(3):
        cube = near * near * near
        near = near * ((cube + value * 2.0) / (cube * 2.0 + value))
    first = (near * 2.0 ** 52).to_integer()
    slope = near * near * 3.0
    wide = resize(first, "i320")
    rest = (n << 44) - wide * wide * wide                          # at 2**-156, below 2**110
    step = (signed(resize(rest.ashr(52), "i64")) / slope).to_integer()       # at 2**-104
    wide = (wide << 52) + step.make("sext", "i320", step)
    rest = (n << 200) - wide * wide * wide                         # at 2**-312, below 2**217
    step = (signed(resize(rest.ashr(160), "i64")) / slope).to_integer()      # at 2**-152
    total = resize((wide << 48) + step.make("sext", "i320", step), "i192")
    up, total = normalised(total << 39)
    word, undecided = settle_normal(x & F.sign, total, third - up + F.bias, 44)
    same = magnitude.eq(0) | magnitude.eq(F.inf)
    return keep_nan(x, select(same, x, word)), (undecided | ~usual) & ~same & magnitude.ult(F.inf)


def _square(sig):
    return resize(sig, "i256") * resize(sig, "i256")


def _even_root(n):
    """``(root at 2**-190, power of two)`` of n at 2**-224, an i256 that is not 0."""
    up, _ = normalised(n)
    up = (up - 30) & -2                                            # n in [1, 4) after it, from -4 on
    n = select(up < 0, n.lshr(resize(-up, "i256")), n << resize(select(up < 0, 0, up), "i256"))
    return root(resize(n.lshr(34), "i192")), -(up.ashr(1))


def hypot(x, y):
    """The root of x**2 + y**2; a result that is a tie is left undecided."""
    a, b = x & (F.sign - 1), y & (F.sign - 1)
    a, b = select(a.ult(b), b, a), select(a.ult(b), a, b)
    usual = a.ult(F.inf) & ~a.ult(1 << F.F)
    (_, e, sa), (_, f, sb) = parts(select(usual, a, ONE)), parts(b)
    gap = e - f
    total = _square(sa) + place(_square(sb), "i256", 0, select(gap > 127, 255, gap + gap))
    r, power = _even_root(total)
    up, r = normalised(r)
    word, undecided = settle_normal(x & 0, r, e + power - up + (F.bias + 1), 40)
    return word, undecided | ~usual


def asinh(x):
    """log(|x| + root(x**2 + 1)) from 1/16 on, log 2 |x| from 2**120 on; a series below 1/16."""
    magnitude = x & (F.sign - 1)
    far = ~magnitude.ult((F.bias + 120) << F.F)
    usual = magnitude.ult((F.bias + 120) << F.F) & ~magnitude.ult((F.bias - 4) << F.F)
    _, e, sig = parts(select(usual, x, ONE))
    most = select(e < 0, 0, e)
    down = most - e                                                # 2**most is the unit now
    one = place(x.constant(1, F.type), "i256", 224, most + most)
    r, power = _even_root(place(_square(sig), "i256", 0, down + down) + one)
    total = place(sig, "i256", 78, down) + (resize(r, "i256") << resize(power, "i256"))
    up, total = normalised(total)                                  # at 2**-190
    found, error = log_wide(total, most + 65 - up)
    found, error = _doubled(far, magnitude, found, select(error < 88, 88, error))
    word, undecided = settle(x & F.sign, found, LOG_SCALE, error, 138)
    word = select(magnitude.eq(F.inf), x, word)
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F), lambda: _small(x, True), word,
                           undecided & magnitude.ult(F.inf))
    return keep_nan(x, word), undecided


def _doubled(far, x, found, error):
    """log 2 x in place of a logarithm and its error where the mask holds."""
    wide, rough = log_parts(select(far & x.ult(F.inf), x, ONE) + (1 << F.F))
    return select(far, wide, found), select(far, rough, error)


def acosh(x):
    """log(x + root(x**2 - 1)) from 17/16 on, log 2 x from 2**110 on; what is nearer to 1 is left undecided."""
    near, far = ONE | 1 << (F.F - 4), ~x.ult((F.bias + 110) << F.F) & x.ult(F.inf)
    usual = ~x.ult(near) & ~far & x.ult(F.inf)
    _, e, sig = parts(select(usual, x, near))
    one = place(x.constant(1, F.type), "i256", 224, e + e)
    r, power = _even_root(_square(sig) - one)
    r = (resize(r, "i256") << 4).lshr(resize(-power, "i256"))      # at 2**-194, power 0 or -1 (-2 next to 17/16)
    total = (resize(sig, "i256") << 82) + r
    up, total = normalised(total)
    found, error = log_wide(total, e + 61 - up)
    found, error = _doubled(far, x, found, select(error < 90, 90, error))
    word, undecided = settle(x & 0, found, LOG_SCALE, error, 138)
    outside = (x < 0) | x.ult(ONE)
    word = select(outside, F.nan, select(x.eq(F.inf), x, select(x.eq(ONE), 0, word)))
    return keep_nan(x, word), (undecided | ~(usual | far)) & ~outside & x.ult(F.inf) & x.ne(ONE)


def _arc(x, usual):
    """``(mask, angle at 2**-190)`` of |x| < 1: whether |x| is the larger of x and
    root(1 - x**2), and the angle of the smaller to the larger."""
    _, e, sig = parts(select(usual, x, ONE - (1 << F.F)))
    wide = place(_square(sig), "i256", 0, select(e < -100, 255, -(e + e)))       # below 2**-100 nothing is lost
    r, power = _even_root(-wide + (1 << 224))
    own = place(sig, "i192", 78, select(e < -190, 191, -e))
    side = r.lshr(resize(-power, "i192"))
    larger = side.ult(own)
    n, d = select(larger, side, own), select(larger, own, side)
    up, _ = normalised(d)
    up = resize(up - 1, "i192")                                    # d in [1, 2)
    return larger, angle(n << up, d << up)


def asin(x):
    """The angle of |x| to root(1 - x**2); a series below 1/16."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult(ONE) & ~magnitude.ult((F.bias - 4) << F.F)
    larger, total = _arc(x, usual)
    word, undecided = settle(x & F.sign, select(larger, -total + RIGHT, total), 190, 52, 140)
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F), lambda: _small(x, False), word, undecided | ~usual)
    beyond = ~magnitude.ult(ONE + 1)
    return keep_nan(x, select(beyond, F.nan, word)), undecided & ~beyond


def acos(x):
    """The same angle from the other side; of negative x from two right angles."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult(ONE)
    larger, total = _arc(x, usual)
    total = negate_if(larger ^ True, total) + select(larger, total.constant(0, "i192"), RIGHT)
    total = select(x < 0, -total + 2 * RIGHT, total)
    word, undecided = settle(x & 0, total, 190, 53, 140)
    beyond = ~magnitude.ult(ONE + 1)
    return keep_nan(x, select(beyond, F.nan, word)), (undecided | ~usual) & ~beyond


def _small(x, alternate):
    """x (1 -+ x**2 (1/6 -+ x**2 (3/40 -+ ...))) for |x| < 1/16: asinh with minus signs, asin with plus signs."""
    magnitude = x & (F.sign - 1)
    tiny = magnitude.ult((F.bias - 57) << F.F)
    _, exponent, sig = parts(select(tiny, ONE, x))
    v = place(sig, "i128", 15, -exponent - 5)                      # at 2**-132
    z = high(v, v)                                                 # at 2**-136
    whole = resize(sig, "i192") << 78
    if alternate:
        total = whole - mulshift(whole, high(z, series(z, TERMS, 8, 5)), 136)
    else:
        head, *rest = reversed(TERMS)
        bend = z.constant(head, "i128")
        for c in rest:
            bend = high(z, bend).lshr(8) + c
        total = whole + mulshift(whole, high(z, bend), 136)
    up, total = normalised(total)
    word, undecided = settle_normal(x & F.sign, total, exponent + 1 - up + F.bias, 66)
    return select(tiny, x, word), undecided & ~tiny


FUNCTIONS = {"rsqrt": rsqrt, "cbrt": cbrt, "hypot": hypot, "asinh": asinh, "acosh": acosh, "asin": asin,
             "acos": acos}
