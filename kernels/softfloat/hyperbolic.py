"""tanh, logistic, sinh, cosh and expm1 of binary128: sums and quotients of exponentials, and series
next to 0, where those would cancel."""
from mpmath import mp, mpf

from tlgrad.kernels.expr.value import rare
from tlgrad.kernels.softfloat.constants import constants, fix
from tlgrad.kernels.softfloat.fixed import (
    F, ONE, high, mulshift, normalised, parts, place, quotient, settle, settle_normal)
from tlgrad.kernels.softfloat.functions import FACTORIAL, exp_parts, keep_nan, series
from tlgrad.kernels.softfloat.words import resize, select


def _tanh_terms(count):
    """1/3, 2/15, 17/315, ...: the magnitudes of the Taylor coefficients, at 2**-128."""
    def term(n):
        return abs(mp.bernoulli(2 * n)) * mpf(4) ** n * (mpf(4) ** n - 1) / mp.factorial(2 * n)
    return constants(lambda: [fix(lambda: term(n), 128) for n in range(2, count + 2)])


TANH_TERMS = _tanh_terms(15)


def decay_parts(x, doubled):
    """exp(-|x|), or exp(-2 |x|), as a power of two and a fraction, for 2**-60 < |x| < 64."""
    _, exponent, sig = parts(x)
    return exp_parts(x.eq(x), place(sig, "i192", 70 + doubled, -exponent + 6))


def place_right(fraction, down):
    """``fraction >> down`` for 0 <= down < 192."""
    return place(fraction, "i192", 0, down)


def tanh(x):
    """Hyperbolic tangent: (1 - E) / (1 + E) with E = exp(-2 |x|), a series below 1/16."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult((F.bias + 6) << F.F) & ~magnitude.ult((F.bias - 4) << F.F)
    power, fraction = decay_parts(select(usual, x, ONE), 1)
    decay = place_right(fraction, -power)
    one = decay.constant(1 << 191, "i192")
    large = quotient(one - decay, one + decay)
    word, undecided = settle(x & F.sign, large, 191, 0, 126)
    word = select(usual, word, (x & F.sign) | ONE)
    undecided = undecided & usual
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F), lambda: _tanh_small(x), word, undecided)
    return keep_nan(x, word), undecided


def _tanh_small(x):
    """x (1 - x**2 (1/3 - 2 x**2 / 15 + ...)) for |x| < 1/16."""
    magnitude = x & (F.sign - 1)
    tiny = magnitude.ult((F.bias - 60) << F.F)
    _, exponent, sig = parts(select(tiny, ONE, x))
    v = place(sig, "i128", 15, -exponent - 5)                     # at 2**-132
    z = high(v, v)                                                # at 2**-136
    bend = high(z, series(z, TANH_TERMS, 8, 5))
    whole = resize(sig, "i192") << 79
    total = whole - mulshift(whole, bend, 136)
    up, total = normalised(total)
    word, undecided = settle_normal(x & F.sign, total, exponent - up + F.bias, 66)
    return select(tiny, x, word), undecided & ~tiny


def logistic(x):
    """1 / (1 + exp(-x)): with E = exp(-|x|), 1 / (1 + E) or E / (1 + E)."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult((F.bias + 6) << F.F) & ~magnitude.ult((F.bias - 60) << F.F)
    power, fraction = decay_parts(select(usual, x, ONE), 0)
    one = fraction.constant(1 << 191, "i192")
    above = select(x < 0, fraction, one)
    up, total = normalised(quotient(above.lshr(1), one + place_right(fraction, -power)))
    code = select(x < 0, power, 0) - up + (F.bias + 1)
    word, undecided = settle_normal(x & 0, total, code, 191 - 128)
    flat = magnitude.ult((F.bias - 116) << F.F)
    word = select(flat, ONE - (1 << F.F), word)
    right = ~magnitude.ult((F.bias + 7) << F.F) & ~(x < 0)
    word = select(right, ONE, select(magnitude.eq(F.inf), 0, word))
    other = ~usual & ~flat & ~right & magnitude.ult(F.inf)
    return keep_nan(x, word), (undecided & usual) | other


# ---- sinh, cosh, expm1

def _two_powers(x):
    """exp(|x|) and exp(-|x|) at 2**-191 of the power of two of the first, and that power."""
    _, exponent, sig = parts(x)
    size = place(sig, "i192", 77, -exponent + 13)
    power, up = exp_parts(x.ne(x), size)
    low, down = exp_parts(x.eq(x), size)
    gap = power - low
    return power, up.lshr(1), place_right(down, select(gap > 190, 191, gap + 1))


def _hyperbolic(x, add):
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult((F.bias + 13) << F.F) & ~magnitude.ult((F.bias - 4) << F.F)
    power, up, down = _two_powers(select(usual, x, ONE))
    lead, total = normalised(up + down if add else up - down)      # at 2**-190
    sign = x & (0 if add else F.sign)
    word, undecided = settle_normal(sign, total, power - lead + F.bias, 191 - 124)
    return word, undecided | ~usual, magnitude


def cosh(x):
    """(exp |x| + exp -|x|) / 2; 1 + x**2 / 2 + ... is left undecided only outside 2**-4 .. 2**13."""
    word, undecided, magnitude = _hyperbolic(x, True)
    tiny = magnitude.ult((F.bias - 58) << F.F)
    special = magnitude.eq(F.inf)
    word = select(tiny, ONE, select(special, F.inf, word))
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F) & ~tiny, lambda: _cosh_small(x),
                           word, undecided & ~tiny & ~special)
    return keep_nan(x, word), undecided & magnitude.ult(F.inf)


def _square(x):
    """x**2 at 2**-136 for 2**-60 < |x| < 1/16."""
    _, exponent, sig = parts(x)
    v = place(sig, "i128", 15, -exponent - 5)
    return exponent, sig, high(v, v)


def _cosh_small(x):
    _, _, z = _square(x)
    total = high(z, _rising(z, [FACTORIAL[k] for k in range(2, 20, 2)]))      # at 2**-136
    total = (resize(total, "i192") << 55) + (1 << 191)
    return settle_normal(x & 0, total, x.constant(F.bias, "i64"), 191 - 126)


def sinh(x):
    """(exp |x| - exp -|x|) / 2 with the sign of x; a series below 1/16."""
    word, undecided, magnitude = _hyperbolic(x, False)
    tiny = magnitude.ult((F.bias - 60) << F.F)
    special = magnitude.eq(F.inf)
    word = select(tiny | special, x, word)
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F) & ~tiny, lambda: _sinh_small(x),
                           word, undecided & ~tiny & ~special)
    return keep_nan(x, word), undecided & magnitude.ult(F.inf)


def _sinh_small(x):
    exponent, sig, z = _square(x)
    bend = high(z, _rising(z, [FACTORIAL[k] for k in range(3, 19, 2)]))       # at 2**-136
    whole = resize(sig, "i192") << 78
    up, total = normalised(whole + mulshift(whole, bend, 136))
    return settle_normal(x & F.sign, total, exponent + 1 - up + F.bias, 66)


def _rising(z, coefficients):
    """c0 + z c1 + z**2 c2 + ... at 2**-128, z at 2**-136."""
    head, *rest = reversed(coefficients)
    total = z.constant(head, "i128")
    for c in rest:
        total = high(z, total).lshr(8) + c
    return total


def expm1(x):
    """exp(x) - 1; a series below 1/16."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult((F.bias + 13) << F.F) & ~magnitude.ult((F.bias - 4) << F.F)
    negative, exponent, sig = parts(select(usual, x, ONE))
    power, fraction = exp_parts(negative, place(sig, "i192", 77, -exponent + 13))
    one = fraction.constant(1 << 191, "i192")
    far = select(negative, -power, power)
    shifted = place_right(select(negative, fraction, one), select(far > 255, 255, far))
    lead, total = normalised(select(negative, one, fraction) - shifted)
    code = select(negative, 0, power) - lead + F.bias
    word, undecided = settle_normal(x & F.sign, total, code, 191 - 124)
    flat = (x < 0) & ~magnitude.ult((F.bias + 8) << F.F)           # exp(x) below 2**-369
    word = select(flat, F.sign | ONE, select(x.eq(F.inf), x, word))
    tiny = magnitude.ult((F.bias - 116) << F.F)
    word = select(tiny, x, word)
    undecided = (undecided | ~usual) & ~flat & ~tiny & x.ne(F.inf)
    small = magnitude.ult((F.bias - 4) << F.F) & ~tiny
    word, undecided = rare(small, lambda: _expm1_small(x), word, undecided)
    return keep_nan(x, word), undecided & ~magnitude.eq(F.inf)


def _expm1_small(x):
    """x (1 + x/2 + x**2/6 + ...) for 2**-116 < |x| < 1/16."""
    negative, exponent, sig = parts(x)
    v = place(sig, "i128", 15, -exponent - 5)                      # at 2**-132
    head, *rest = [FACTORIAL[k] for k in range(26, 1, -1)]
    total = v.constant(head, "i128")
    for c in rest:
        step = high(v, total).lshr(4)
        total = select(negative, -step, step) + c
    whole = resize(sig, "i192") << 78
    bend = mulshift(whole, high(v, total), 132)
    lead, total = normalised(select(negative, whole - bend, whole + bend))
    return settle_normal(x & F.sign, total, exponent + 1 - lead + F.bias, 191 - 123)


FUNCTIONS = {"tanh": tanh, "logistic": logistic, "sinh": sinh, "cosh": cosh, "expm1": expm1}
