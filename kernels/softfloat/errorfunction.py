"""erf of binary128 in fixed point: Taylor polynomials about the multiples of 1/16, and a series in x
below 1/16."""
from mpmath import mp, mpf

from tlgrad.kernels.expr.value import rare
from tlgrad.kernels.softfloat.constants import constants, fix
from tlgrad.kernels.softfloat.fixed import (
    F, ONE, high, mulshift, normalised, parts, place, settle, settle_normal, table)
from tlgrad.kernels.softfloat.functions import keep_nan, series
from tlgrad.kernels.softfloat.words import resize, select

CENTERS, TERMS, STEP = 16 * 9, 28, 16
SCALE = 125                                       # of the coefficients, which are below 2


def _taylor(center):
    """The coefficients of erf about a center: those of its slope 2/sqrt(pi) exp(-x**2) follow the
    recurrence s[n+1] = -2 (c s[n] + s[n-1]) / (n + 1)."""
    slope = [2 / mp.sqrt(mp.pi) * mp.exp(-center * center)]
    for n in range(TERMS):
        before = slope[n - 1] if n else 0
        slope.append(-2 * (center * slope[n] + before) / (n + 1))
    return [mp.erf(center)] + [s / (n + 1) for n, s in enumerate(slope[:TERMS])]


TAYLOR = constants(lambda: [_taylor(mpf(k) / STEP) for k in range(CENTERS)])
VALUES = constants(lambda: [fix(lambda: row[0], 190) for row in TAYLOR])
SLOPES = constants(lambda: [fix(lambda: c, SCALE) for row in TAYLOR for c in row[1:]])
SMALL = constants(lambda: [fix(lambda: 1 / (mp.factorial(n) * (2 * n + 1)), 128)
                           for n in range(1, 16)])
FRONT = constants(lambda: fix(lambda: 2 / mp.sqrt(mp.pi), 126))


def erf(x):
    """The error function. Beyond 9 it rounds to 1."""
    magnitude = x & (F.sign - 1)
    usual = magnitude.ult((F.bias + 3) << F.F | 1 << (F.F - 3)) & ~magnitude.ult((F.bias - 4) << F.F)
    _, exponent, sig = parts(select(usual, x, ONE))
    size = place(sig, "i192", 67, -exponent + 3)                   # at 2**-176
    k = resize(size.lshr(176 - 4), "i64")
    t = resize((size & ((1 << 172) - 1)).lshr(44), "i128")         # x - k/16, at 2**-132
    total = _polynomial(t, k)
    total = table("erf_values", "i192", VALUES, k) + (resize(total, "i192") << 61)
    word, undecided = settle(x & F.sign, total, 190, 65, 140)
    word = select(usual, word, (x & F.sign) | ONE)
    word, undecided = rare(magnitude.ult((F.bias - 4) << F.F), lambda: _small(x),
                           word, undecided & usual)
    word = select(magnitude.eq(0), x, word)
    return keep_nan(x, word), undecided & magnitude.ne(0) & ~(x.constant(F.inf, F.type).ult(magnitude))


def _polynomial(t, k):
    """t (c1 + t (c2 + ...)) at 2**-129 for t at 2**-132, with signed coefficients at 2**-SCALE."""
    row = k * TERMS
    total = table("erf_slopes", "i128", SLOPES, row + (TERMS - 1))
    for n in range(TERMS - 2, -1, -1):
        total = _signed_high(t, total).ashr(4) + table("erf_slopes", "i128", SLOPES, row + n)
    return _signed_high(t, total)


def _signed_high(t, c):
    """The high half of t c for an unsigned t and a signed c."""
    return high(t, c) - select(c < 0, t, 0)


def _small(x):
    """2/sqrt(pi) x (1 - x**2/3 + x**4/10 - ...) for |x| < 1/16."""
    _, exponent, sig = parts(x)
    v = place(sig, "i128", 15, select(exponent < -132, 127, -exponent - 5))     # at 2**-132
    z = high(v, v)                                                 # at 2**-136
    bend = high(z, series(z, SMALL, 8, 4))
    whole = resize(sig, "i192") << 78
    whole = mulshift(whole - mulshift(whole, bend, 136), whole.constant(FRONT, "i192"), 126)
    lead, total = normalised(whole)
    word, undecided = settle_normal(x & F.sign, total, exponent + 1 - lead + F.bias, 191 - 123)
    low = (x & (F.sign - 1)).ult(2 << F.F)
    return word, undecided | low


FUNCTIONS = {"erf": erf}
