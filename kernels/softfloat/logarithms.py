"""log1p, softplus, logaddexp and atanh of binary128 in fixed point: logarithms of arguments wider than a word, and
series next to 0."""
from tlgrad.kernels.expr.value import rare
from tlgrad.kernels.softfloat.angles import ODD
from tlgrad.kernels.softfloat.fixed import (
    F, ONE, high, mulshift, negate_if, normalised, parts, place, quotient, settle, settle_normal)
from tlgrad.kernels.softfloat.functions import LOG_SCALE, exp_parts, keep_nan, log_parts
from tlgrad.kernels.softfloat.words import resize, select, signed

ALTERNATING = [(1 << 128) // n for n in range(2, 34)]             # 1/2, 1/3, ...


def log_wide(total, exponent):
    """log of ``total * 2**(exponent - 255)``, total of 256 bits with its top bit set, at 2**-LOG_SCALE modulo
    2**256, and k: its error is below 2**k.

    The top 113 bits are a word s; the 64 below them are r / s more, which binary64 divides to 2**-162.
    """
    word = resize(total.lshr(143), F.type) + (resize(exponent + (F.bias - 1), F.type) << F.F)
    found, error = log_parts(word)
    below = signed(resize(total.lshr(80), "i64") & ((1 << 63) - 1))          # at 2**-175
    more = (below / signed(resize(total.lshr(193), "i64")) * 2.0 ** 62).to_integer()
    return found + (resize(more, "i256") << (LOG_SCALE - 175)), select(error < 80, 80, error)


def _small_log(negative, v, whole):
    """``log1p(x) / x`` times `whole` for |x| < 1/16, v = |x| at 2**-132: 1 - x (1/2 - x (1/3 - ...))."""
    head, *rest = reversed(ALTERNATING)
    total = v.constant(head, "i128")
    for c in rest:
        step = high(v, total).lshr(4)
        total = select(negative, step, -step) + c
    bend = mulshift(whole, high(v, total), 132)
    return select(negative, whole + bend, whole - bend)


def log1p(x):
    """log of 1 + x, formed exactly at 2**-116, from 1/16 on."""
    magnitude = x & (F.sign - 1)
    usual = select(x < 0, magnitude.ult(ONE), magnitude.ult(F.inf)) & ~magnitude.ult((F.bias - 4) << F.F)
    negative, exponent, sig = parts(select(usual, x, ONE))
    far = exponent > 135                                          # 1 + x is x to 2**-135
    size = resize(sig, "i256") << resize(select(far, 0, exponent + 4), "i256")
    total = select(negative, -size, size) + (1 << 116)
    up, total = normalised(select(far, resize(sig, "i256"), total))
    found, error = log_wide(total, select(far, exponent, -up + (255 - 116)))
    minus = found < 0
    sign = select(minus, x.constant(F.sign, F.type), 0)
    word, undecided = settle(sign, negate_if(minus, found), LOG_SCALE, select(error < 106, 106, error), 138)
    tiny, below = magnitude.ult((F.bias - 116) << F.F), (x < 0) & ~magnitude.ult(ONE)
    word = select(below, select(magnitude.eq(ONE), x.constant(F.sign | F.inf, F.type), F.nan), word)
    word = select(tiny | x.eq(F.inf), x, word)
    small = magnitude.ult((F.bias - 4) << F.F) & ~tiny
    word, undecided = rare(small, lambda: _log1p_small(x), word, undecided & usual)
    return keep_nan(x, word), undecided


def _log1p_small(x):
    negative, exponent, sig = parts(x)
    v = place(sig, "i128", 15, -exponent - 5)                     # at 2**-132
    lead, total = normalised(_small_log(negative, v, resize(sig, "i192") << 78))
    return settle_normal(x & F.sign, total, exponent + 1 - lead + F.bias, 191 - 123)


def _decay(mask, size):
    """``(E, power, fraction, log1p(E) at 2**-LOG_SCALE, its error)`` for a size at 2**-176: E = exp(-size), at
    2**-191, where the mask holds 0, and as ``fraction * 2**power``."""
    power, fraction = exp_parts(size.eq(size), size)
    down = -power
    decay = place(fraction, "i192", 0, select(down > 190, 191, down))
    decay = decay if mask is None else select(mask, 0, decay)
    up, total = normalised((resize(decay, "i256") << 63) + (1 << 254))        # 1 + E at 2**-254
    return decay, power, fraction, *log_wide(total, -up + 1)


def softplus(x):
    """max(x, 0) + log1p(E) with E = exp(-|x|); below -2.8 the series of log1p keeps the digits of E."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult(select(x < 0, x.constant((F.bias + 14) << F.F, F.type), (F.bias + 7) << F.F))
    value = select(usual, x, ONE)
    _, exponent, sig = parts(value)
    exponent = select(exponent < -230, -230, exponent)            # 0 at these scales
    decay, power, fraction, found, error = _decay(None, place(sig, "i192", 77, -exponent + 13))
    shift = select(exponent > 6, 0, -exponent + 6)
    found = found + select(value < 0, 0, place(sig, "i256", 134, shift))      # x at 2**-240
    word, undecided = settle(x & 0, found, LOG_SCALE, select(error < 112, 112, error), 138)
    right = ~magnitude.ult((F.bias + 7) << F.F) & ~(x < 0)
    word = select(right, x, select(magnitude.eq(F.inf), 0, word))
    tail = (x < 0) & usual & decay.ult(1 << 187)
    word, undecided = rare(tail, lambda: _tail(power, fraction, decay), word, undecided & usual)
    return keep_nan(x, word), (undecided | ~usual) & ~right & magnitude.ult(F.inf)


def _tail(power, fraction, decay):
    """E (1 - E/2 + ...) for E below 1/16."""
    v = resize(decay.lshr(59), "i128")                            # at 2**-132
    lead, total = normalised(_small_log(v.ne(v), v, fraction.lshr(1)))
    return settle_normal(resize(lead, F.type) & 0, total, power + 1 - lead + F.bias, 191 - 123)


def logaddexp(x, y):
    """The larger of both plus log1p(E), E = exp(-|x - y|), below 2**14; sums that cancel are left undecided."""
    usual = _size(x).ult((F.bias + 14) << F.F) & _size(y).ult((F.bias + 14) << F.F)
    a, b = (_fixed(select(usual, v, ONE)) for v in (x, y))
    gap = a - b
    less = gap < 0
    gap = negate_if(less, gap)
    far = ~gap.ult(200 << LOG_SCALE)
    *_, found, error = _decay(far, select(far, 0, resize(gap.lshr(LOG_SCALE - 176), "i192")))
    total = found + select(less, b, a)
    minus = total < 0
    word, undecided = settle(select(minus, x.constant(F.sign, F.type), 0), negate_if(minus, total), LOG_SCALE,
                             select(error < 112, 112, error), 138)
    nothing, infinite = F.sign | F.inf, x.eq(F.inf) | y.eq(F.inf)
    alone = select(x.eq(nothing), y, x)                           # -0 is log 1 too, 0
    word = select(x.eq(nothing) | y.eq(nothing), select(_size(alone).eq(0), 0, alone), word)
    word = keep_nan(x, keep_nan(y, select(infinite, F.inf, word)))
    return word, (undecided | ~usual) & _size(x).ult(F.inf) & _size(y).ult(F.inf)


def _size(x):
    return x & (F.sign - 1)


def _fixed(x):
    """A number below 2**14 in size at 2**-240, its last bits lost."""
    negative, exponent, sig = parts(x)
    return negate_if(negative, place(sig, "i256", 141, select(exponent < -230, 243, -exponent + 13)))


def atanh(x):
    """log((1 + x) / (1 - x)) / 2, both formed exactly; a series below 1/16."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult(ONE) & ~magnitude.ult((F.bias - 4) << F.F)
    _, exponent, sig = parts(select(usual, x, ONE - (1 << F.F)))
    size = resize(sig, "i192") << resize(exponent + 4, "i192")    # at 2**-116
    one = size.constant(1 << 116, "i192")
    (up, top), (down, bottom) = normalised(one + size), normalised(one - size)
    tall = bottom.ult(top)
    lead, ratio = normalised(quotient(select(tall, top.lshr(1), top), bottom))
    power = down - up - lead + select(tall, lead.constant(1, "i64"), 0)
    found, error = log_wide(resize(ratio, "i256") << 64, power)
    word, undecided = settle(x & F.sign, found, LOG_SCALE + 1, select(error < 92, 92, error), 138)
    word = select(magnitude.eq(ONE), (x & F.sign) | F.inf, select(magnitude.ult(ONE), word, F.nan))
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F), lambda: _atanh_small(x), word, undecided & usual)
    return keep_nan(x, word), undecided


def _atanh_small(x):
    """x (1 + x**2 (1/3 + x**2 / 5 + ...)) for |x| < 1/16."""
    magnitude = x & (F.sign - 1)
    tiny = magnitude.ult((F.bias - 57) << F.F)
    _, exponent, sig = parts(select(tiny, ONE, x))
    v = place(sig, "i128", 15, -exponent - 5)                     # at 2**-132
    z = high(v, v)                                                # at 2**-136
    head, *rest = reversed(ODD)
    total = z.constant(head, "i128")
    for c in rest:
        total = high(z, total).lshr(8) + c
    whole = resize(sig, "i192") << 78
    up, total = normalised(whole + mulshift(whole, high(z, total), 136))
    word, undecided = settle_normal(x & F.sign, total, exponent + 1 - up + F.bias, 66)
    return select(tiny, x, word), undecided & ~tiny


FUNCTIONS = {"log1p": log1p, "softplus": softplus, "logaddexp": logaddexp, "atanh": atanh}
