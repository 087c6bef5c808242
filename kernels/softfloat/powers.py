"""exp2, log2, log10 and pow of binary128: `functions.exp_parts` and `log_parts` with a factor."""
from mpmath import mp

from tlgrad.kernels.softfloat.constants import constants, fix
from tlgrad.kernels.softfloat.fixed import (
    F, ONE, mulshift, negate_if, normalised, parts, place, settle, settle_normal)
from tlgrad.kernels.softfloat.functions import LOG_SCALE, exp_parts, keep_nan, log_parts
from tlgrad.kernels.softfloat.words import resize, select

PER_LN2 = constants(lambda: fix(lambda: 1 / mp.ln2, 254))
PER_LN10 = constants(lambda: fix(lambda: 1 / mp.ln10, 254))
LN2_WIDE = constants(lambda: fix(lambda: +mp.ln2, 192))


def exp2(x):
    """2 to the power x: exp of x ln2, exact for integers."""
    negative, exponent, sig = parts(x)
    size = place(sig, "i256", 142, select(exponent > 14, 0, -exponent + 14))     # at 2**-240
    whole = resize(size.lshr(240), "i64")
    rest = resize(size & ((1 << 240) - 1), "i256")
    power, fraction = exp_parts(negative, resize(mulshift(rest, rest.constant(LN2_WIDE, "i256"),
                                                          256), "i192"))
    power = power + select(negative, -whole, whole)
    word, undecided = settle_normal(x & 0, fraction, power + F.bias, 191 - 129)
    exact = rest.eq(0)
    word = select(exact, resize(select(negative, -whole, whole) + F.bias, F.type) << F.F, word)
    code = select(negative, -whole, whole) + F.bias
    large, tiny = exponent > 14, exponent < -115
    word = select(large, select(negative, x.constant(0, F.type), F.inf), select(tiny, ONE, word))
    outside = (code < 1) | (code > 32766)
    undecided = select(exact, outside, undecided) & ~large & ~tiny
    return keep_nan(x, word), undecided


def _logarithm(factor):
    def body(x):
        normal = x.ult(F.inf) & ~x.ult(1 << F.F)
        total, error = log_parts(select(normal, x, ONE))
        minus = total < 0
        size = mulshift(negate_if(minus, total), total.constant(factor, "i256"), 254)
        sign = select(minus, x.constant(F.sign, F.type), 0)
        word, undecided = settle(sign, size, LOG_SCALE, error + 2, 137)
        magnitude = x & (F.sign - 1)
        word = select(x.eq(ONE), 0, select(normal, word, x))
        word = select(magnitude.eq(0), F.sign | F.inf, word)
        negative = (x < 0) & magnitude.ne(0)
        subnormal = x.ult(1 << F.F) & magnitude.ne(0)
        word = keep_nan(x, select(negative, F.nan, word))
        return word, (undecided & normal & x.ne(ONE)) | subnormal
    return body


log2, log10 = _logarithm(PER_LN2), _logarithm(PER_LN10)


def power(x, y):
    """x to the power y for normal x > 0 and normal y, results in the normal range: exp(y log x).

    The error of the logarithm is that of `log_parts`; times y, below 2**14 in all. Results that are
    exact, or exact halves of a place, lie within it: halves are left undecided.
    """
    one, magnitude = x.eq(ONE), y & (F.sign - 1)
    usual = x.ult(F.inf) & ~x.ult(1 << F.F) & ~one
    usual = usual & ~magnitude.ult(1 << F.F) & magnitude.ult(F.inf)
    total, error = log_parts(select(usual, x, ONE | 1 << (F.F - 1)))
    minus = total < 0
    negative, exponent, sig = parts(select(usual, y, ONE))
    log = negate_if(minus, total)                                  # below 2**14, at 2**-240
    up, _ = normalised(log)
    reach = error + up - 255                                       # relative error below 2**reach
    reach = select(reach < -138, -138, reach) + (191 + 14)
    product = resize(log, "i384") * resize(sig, "i384")            # at 2**(exponent - 352)
    size, far = _fixed(product, exponent)
    power_of_two, fraction = exp_parts(negative ^ minus, size)
    word, undecided = settle_normal(x & 0, fraction, power_of_two + F.bias, reach + 1)
    return select(one, ONE, word), (undecided | far | ~usual) & ~one


def _fixed(product, exponent):
    """``product * 2**(exponent - 352)`` at 2**-176, and a mask of what is beyond 2**14."""
    down = -exponent + 176
    low = place(product, product.type, 0, select(down < 0, 0, select(down > 511, 511, down)))
    far = (down < 0) | ~low.lshr(190).eq(0)
    return resize(low, "i192"), far


FUNCTIONS = {"exp2": exp2, "log2": log2, "log10": log10, "pow": power}
