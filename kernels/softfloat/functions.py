"""exp, log, sin and cos of binary128 in fixed point: ``body(x) -> (word, mask of undecided)``.

Every body reduces its argument with tables, sums a short series, and states the error of its sum;
`fixed.settle` rounds. mpmath works out the constants when this module is imported.
"""
from mpmath import mp, mpf

from tlgrad.kernels.softfloat.constants import constants, fix
from tlgrad.kernels.softfloat.fixed import (
    F, ONE, about, high, mulshift, negate_if, normalised, parts, place, settle, settle_normal, table)
from tlgrad.kernels.softfloat.words import resize, select, signed

# ---- exp

LN2_STEP = constants(lambda: fix(lambda: mp.ln2 / 16384, 176))
EXP_COARSE = constants(lambda: [fix(lambda: mpf(2) ** (mpf(j) / 128), 191) for j in range(128)])
EXP_FINE = constants(lambda: [fix(lambda: mpf(2) ** (mpf(j) / 16384) - 1, 135)
                               for j in range(128)])
FACTORIAL = {n: constants(lambda: fix(lambda: 1 / mp.factorial(n), 128)) for n in range(2, 27)}
STEPS_PER_UNIT = 16384 / 0.6931471805599453 * (1 - 2.0 ** -48)


def exp_parts(negative, size):
    """exp of ``+-size * 2**-176`` as ``(power of two, 192-bit fraction at 2**-191)``.

    With c = ln2 / 2**14 and k whole, x = k c + r, 0 <= r < 2**-14.5: exp(r) - 1 from eight terms,
    2**(k / 2**14) from two tables of 128, multiplied while the terms are summed. The error of the
    fraction is below 2**-131.
    """
    top = signed(resize(size.lshr(128), "i64"))                    # at 2**-48
    turns = (top * (STEPS_PER_UNIT * 2.0 ** -48)).to_integer()     # right, or one too few
    turns = select(negative, turns + 2, turns)
    r = negate_if(negative, size - resize(turns, "i192") * LN2_STEP)
    k = negate_if(negative, turns)
    more = ~r.ult(LN2_STEP)                                        # 0 <= r <= 2 c
    r, k = select(more, r - LN2_STEP, r), select(more, k + 1, k)
    coarse = table("exp_coarse", "i192", EXP_COARSE, (k.lshr(7)) & 127)
    fine = table("exp_fine", "i128", EXP_FINE, k & 127)
    power = coarse + (resize(high(resize(coarse.lshr(64), "i128"), fine), "i192") << 57)
    grown = _expm1_small(resize(r.lshr(34), "i128"))               # at 2**-142
    grown = high(resize(power.lshr(64), "i128"), grown)            # at 2**-141
    return k.ashr(14), power + (resize(grown, "i192") << 50)


def _expm1_small(r):
    """exp(r) - 1 at 2**-142 for r at 2**-142 below 2**-14.4: r + z ((1/2 + z (1/24 + z/720)) +
    r (1/6 + z (1/120 + z/5040))) with z = r**2, so that the two halves run side by side."""
    z = high(r, r)                                              # at 2**-156
    small = resize(z.lshr(64), "i64")                           # at 2**-92
    even = resize(high(small, small.constant(FACTORIAL[6] >> 64, "i64")), "i128") << 36
    even = high(z, even + FACTORIAL[4]).lshr(28) + (1 << 127)
    odd = high(small, small.constant(FACTORIAL[7] >> 64, "i64")).lshr(28) + (FACTORIAL[5] >> 64)
    odd = (resize(high(small, odd), "i128") << 36) + FACTORIAL[3]
    total = even + high(r, odd).lshr(14)                        # at 2**-128
    return r + high(z, total).lshr(14)


def exp(x):
    """e to the power x."""
    negative, exponent, sig = parts(x)
    size = place(sig, "i192", 77, select(exponent > 13, 0, -exponent + 13))
    power, fraction = exp_parts(negative, size)
    zero = x & 0
    word, undecided = settle_normal(zero, fraction, power + F.bias, 191 - 130)
    large = exponent > 13
    tiny = exponent < -115
    word = select(large, select(negative, zero, F.inf), select(tiny, ONE, word))
    return keep_nan(x, word), undecided & ~large & ~tiny


def keep_nan(x, word):
    """The word, or the canonical NaN where x is one."""
    return select(x.constant(F.inf, F.type).ult(x & (F.sign - 1)), F.nan, word)


# ---- log

LOG_LOW, LOG_HIGH = 181, 363                     # 256 m for m in [0.707, 1.415)
LOG_SCALE = 240
INVERSE_COARSE = [round(1024 * 256 / i) for i in range(LOG_LOW, LOG_HIGH)]
MIDDLE = 300                                     # 2**16 t for |t| < 2**-7.8
INVERSE_FINE = [round(2 ** 18 / (1 + j / 2 ** 16)) for j in range(-MIDDLE, MIDDLE + 1)]


def _minus_logs(numbers, bits):
    """-log(n / 2**bits) at 2**-LOG_SCALE, modulo 2**256."""
    return constants(lambda: [int(mp.nint(-mp.log(mpf(n) / 2 ** bits) * mpf(2) ** LOG_SCALE))
                               for n in numbers])


LOG_COARSE, LOG_FINE = _minus_logs(INVERSE_COARSE, 10), _minus_logs(INVERSE_FINE, 18)
LN2 = constants(lambda: fix(lambda: +mp.ln2, LOG_SCALE))
SQRT2 = constants(lambda: fix(lambda: mp.sqrt(2), 112))
INVERSES = {n: (1 << 128) // n for n in range(2, 16)}


def log_parts(x):
    """log of a positive normal word at 2**-240, modulo 2**256, and k: its error is below 2**k.

    x = 2**e m with m in [0.707, 1.414). Two tabulated factors c and d, exact short numbers, bring
    u = m c d - 1 below 2**-16, exactly; near x = 1 both are 1. Then e ln2 - log c - log d + log1p(u).
    """
    _, exponent, sig = parts(x)
    tall = sig > SQRT2
    exponent = select(tall, exponent + 1, exponent)
    m = resize(select(tall, sig, sig << 1), "i192")               # at 2**-113
    i = resize((m + (1 << 104)).lshr(105), "i64") - LOG_LOW
    t = m * resize(table("inverse_coarse", "i16", INVERSE_COARSE, i), "i192") - (1 << 123)
    j = resize((t + (1 << 106)).ashr(107), "i64") + MIDDLE
    u = (t + (1 << 123)) * resize(table("inverse_fine", "i32", INVERSE_FINE, j), "i192") - (1 << 141)
    u = resize(u, "i128")                                         # at 2**-141
    total = table("log_coarse", "i256", LOG_COARSE, i) + table("log_fine", "i256", LOG_FINE, j)
    turns = exponent.make("sext", "i256", exponent) * LN2
    error = select(exponent.ne(0), exponent.constant(17, "i64"), 6)
    return total + turns + _log1p(u), error


def _log1p(u):
    """log1p of a signed u at 2**-141, |u| < 2**-16, at 2**-240: u - u**2 (1/2 - u/3 + ...).

    The square is taken of u with its leading zeros shifted out, so that the error is relative to u.
    """
    minus = u < 0
    size = negate_if(minus, u)
    v = size << 3                                                 # at 2**-144
    up, lead = normalised(size)
    total = _alternating(v, minus)
    square = high(lead, high(lead, total))                        # at 2**-(281 - 256 + 127 + 2 up)
    down = up + up + LOG_DOWN
    bent = place(square, "i256", 128, down)
    flat = resize(size, "i256") << (LOG_SCALE - 141)
    return select(minus, -flat, flat) - bent


LOG_DOWN = 128 + (2 * 141 - 2 * 128 + 127) - LOG_SCALE


def _alternating(v, minus):
    """1/2 - u/3 + u**2/4 - ... at 2**-127 for v = |u| at 2**-144."""
    head = resize(v.lshr(64), "i64")
    total = head * 0 + (INVERSES[10] >> 65)
    for n in (9, 8, 7):
        step = high(head, total).lshr(16)
        total = select(minus, step, -step) + (INVERSES[n] >> 65)
    total = resize(total, "i128") << 64
    for n in (6, 5, 4, 3, 2):
        step = high(v, total).lshr(16)
        total = select(minus, step, -step) + (INVERSES[n] >> 1)
    return total


def log(x):
    """Natural logarithm."""
    normal = x.ult(F.inf) & ~x.ult(1 << F.F)
    total, error = log_parts(select(normal, x, ONE))
    minus = total < 0
    sign = select(minus, x.constant(F.sign, F.type), 0)
    word, undecided = settle(sign, negate_if(minus, total), LOG_SCALE, error, 138)
    magnitude = x & (F.sign - 1)
    word = select(x.eq(ONE), 0, select(normal, word, x))
    word = select(magnitude.eq(0), F.sign | F.inf, word)
    negative = (x < 0) & magnitude.ne(0)
    subnormal = x.ult(1 << F.F) & magnitude.ne(0)
    return keep_nan(x, select(negative, F.nan, word)), (undecided & normal & x.ne(ONE)) | subnormal


# ---- sin, cos

HALF_TURN = 1024                                  # steps of pi / 1024, a table for a quarter turn
QUARTER = HALF_TURN // 2
PI_STEP = constants(lambda: fix(lambda: mp.pi / HALF_TURN, 256))
SINES = constants(lambda: [fix(lambda: mp.sin(j * mp.pi / HALF_TURN), 190) for j in range(QUARTER + 1)])
STEPS_PER_RADIAN = HALF_TURN / 3.141592653589793


def series(z, coefficients, shift, short):
    """c0 - z c1 + z**2 c2 - ... at 2**-128, z at 2**-(128 + shift); the last term and `short` before it are in
    64 bits."""
    head, *rest = reversed(coefficients)
    small = resize(z.lshr(64), "i64")
    total = small * 0 + (head >> 64)
    for c in rest[:short]:
        total = -(high(small, total).lshr(shift)) + (c >> 64)
    total = resize(total, "i128") << 64
    for c in rest[short:]:
        total = -(high(z, total).lshr(shift)) + c
    return total


def reduced(x):
    """``(negative, n, left, sine, vers)`` of 2**-57 <= |x| < 2**32: |x| = n pi / 1024 + r; whether r < 0,
    sin |r| at 2**-192, and 1 - cos r at 2**-144."""
    negative, exponent, sig = parts(x)
    size = place(sig, "i256", 111, -exponent + 31)                # at 2**-192
    n = (about(size, 192) * STEPS_PER_RADIAN + 0.5).to_integer()
    r = size - resize((resize(n, "i320") * PI_STEP).lshr(64), "i256")
    left = r < 0
    r = resize(negate_if(left, r), "i192")
    z = resize(r.lshr(56), "i128")
    z = high(z, z)                                                # r**2 at 2**-144, below 2**-18
    bend = high(z, series(z, [FACTORIAL[k] for k in range(3, 13, 2)], 16, 0))
    vers = high(z, series(z, [FACTORIAL[k] for k in range(2, 14, 2)], 16, 1))
    return negative, n, left, r - mulshift(r, bend, 144), vers


def circular(n, left, sine, vers, quarter):
    """``(is negative, size at 2**-190, error)`` of the sine of what `reduced` gave and `quarter` right angles.

    sin(a + r) = sin a - sin a (1 - cos r) + cos a sin r, where the tables give sin a and cos a, exactly 0
    and 1 at right angles: the result stays relatively exact there.
    """
    turn = n.lshr(QUARTER.bit_length() - 1) + quarter
    odd = (turn & 1).ne(0)
    place_ = n & (QUARTER - 1)
    mirrored = -place_ + QUARTER
    a = table("sines", "i192", SINES, select(odd, mirrored, place_))
    b = table("sines", "i192", SINES, select(odd, place_, mirrored))
    # the lower words of b and of the sine are left out: below 2**-190, and the lower word of b is 0 where b is 1
    across = resize((resize(b.lshr(64), "i320") * resize(sine, "i320")).lshr(128), "i192")
    across = across + resize(high(resize(b, "i64"), resize(sine.lshr(128), "i64")), "i192")
    less = resize(high(resize(a.lshr(64), "i128"), vers), "i192") << 48
    total = a - less + negate_if(odd ^ left, across)              # at 2**-190
    below = total < 0
    error = select(a.eq(0), turn.constant(4, "i64"), 51)          # and 2**-138 of the total
    return (turn & 2).ne(0) ^ below, negate_if(below, total), error


def _circle(x, quarter):
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult((F.bias + 32) << F.F) & ~magnitude.ult((F.bias - 57) << F.F)
    negative, *angle = reduced(select(usual, x, ONE))
    flip, total, error = circular(*angle, quarter)
    if quarter == 0:
        flip = flip ^ negative
    sign = select(flip, x.constant(F.sign, F.type), 0)
    word, undecided = settle(sign, total, 190, error, 138)
    tiny = magnitude.ult((F.bias - 57) << F.F)
    word = select(tiny, x if quarter == 0 else x.constant(ONE, F.type), word)
    word = select(magnitude.eq(F.inf), F.nan, word)
    large = ~magnitude.ult((F.bias + 32) << F.F) & magnitude.ult(F.inf)
    return keep_nan(x, word), (undecided & usual) | large


def sin(x):
    """Sine."""
    return _circle(x, 0)


def cos(x):
    """Cosine."""
    return _circle(x, 1)


FUNCTIONS = {"exp": exp, "log": log, "sin": sin, "cos": cos}
