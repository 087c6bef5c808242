"""Bodies of ten binary32 functions in pairs of binary32 numbers, for registers that hold sixteen.

Such a register holds only eight numbers of binary64, so a body in pairs (h + tail, |tail| small beside h)
takes about half the operations of the narrow body in binary64. It knows its value to 2**-35 or better and says
where that may not decide the rounding (Ziv's test): about one number in a thousand, for which, as for arguments
out of its range, the narrow body is run (`registry.render`). So the words are those of the narrow body. That is
proved by comparing them on all 2**32 inputs: ``python3 -m benchmarks elementary --exhaustive``.

The tables have 32 entries and are permuted in two registers. No product has a subnormal operand or result:
arguments below 2**-30 are kept out, and are the result where the function is x to binary32 there. The bodies
say what bounds the error that a test is given; u = 2**-25 is that of a rounding. Source: A. Ziv, ACM TOMS
17(3), 1991 (the test); Tang, ACM TOMS 15(2) and 16(4) (tables); the pairs are ours.
"""
from ..expr import copysign, fma_value as fma, horner, minimum, select
from .tables import numbers, table
from .words import two_sum

SHIFT = 1.5 * 2.0 ** 23                 # v + SHIFT has rint(v) in its low bits
TINY = 2.0 ** -30
ONE = 0x3f800000
BAND = 0x41047ae1, 0x4111999a           # 8.28, 9.1: tanh is not yet 1, and exp(2x) +- 1 has more than 24 bits


def nearest(v, scale):
    """(word, k): k = rint(v * scale) as a float, and a word whose low bits hold it; |k| < 2**21."""
    t = fma(v, scale, SHIFT)
    return t.bits(), t - SHIFT


def tested(h, tail, relative):
    """(y, doubt): h + tail rounded, and whether a `relative` error of the tail could change that.

    NaN is doubtful. A tail so small that `relative` of it is less than the error cannot bring h near a midpoint.
    """
    y = fma(tail, 1.0 + relative, h)
    return y, y.ne(fma(tail, 1.0 - relative, h))


def bounded(h, tail, head, error, relative=2.0 ** -20):
    """`tested` for an error of `error`; `relative` to the tail where `head` is zero: h may be small there."""
    e = select(head.eq(0.0), tail * relative, head.like(error))
    y = h + (tail + e)
    return y, y.ne(h + (tail - e))


class Exp:
    """exp(v) = 2**e (high + low) (1 + r + s): high + low = 2**(i / 32), 32 e + i = rint(32 v / ln2).

    |r| < 0.0109, s < 2**-14 with a relative error of 6 u (of r, its square, the polynomial and a sum).
    """

    def __init__(self, v):
        step, rest = numbers("pair_ln2_32")
        self.word, k = nearest(v, 1.0 / step)
        self.r = fma(k, -step, v)                       # exact
        low = k * -rest
        r = self.r + low
        self.s = fma(r * r, horner(numbers("pair_exp"), r), low)
        self.high, self.low = self.word.lookup(table("pair_exp2_high"), table("pair_exp2_low"))
        self.shift = (self.word & -32) << 18

    def scaled(self):
        """(S, S_low) = 2**e (high + low), for e >= -36."""
        return tuple((v.bits() + self.shift).as_float() for v in (self.high, self.low))

    def plus(self, S, d):
        """(h, l) = S r + d, for |d| >= 2 |S r| or d = 0."""
        h = fma(S, self.r, d)
        return h, fma(S, self.r, d - h)


def exp(x):
    """The tail is high s + ..., with an error of 8 u of it; 1.5 * 2**-22 is 12 u."""
    a = x.abs()
    p = Exp(select(a < TINY, 0.0, x))
    h, l = p.plus(p.high, p.high)
    y, doubt = tested(h, fma(p.high, p.s, fma(p.low, p.r, l + p.low)), 1.5 * 2.0 ** -22)
    return (y.bits() + p.shift).as_float(), doubt | ~(a <= 87.0)


def expm1(x):
    """S r + (S - 1), S = 2**e high, and the rest; the error is 9 u of the tail, 2**-21 is 16 u."""
    tiny = x.abs() < TINY
    v = select(tiny, 0.0, x)
    p = Exp(select(v < -20.0, -20.0, v))
    S, S_low = p.scaled()
    d = S - 1.0                                         # exact for x from -1.4 to 15
    low = S - (d + 1.0)
    h, l = p.plus(S, d)
    y, doubt = tested(h, fma(S, p.s, fma(S_low, p.r, S_low + low)) + l, 2.0 ** -21)
    return select(tiny, x, y), (doubt & ~tiny) | ~(x <= 15.0)


def tanh(x):
    """h / d, h = exp(2 |x|) - 1, d = exp(2 |x|) + 1; `rest` is part of both. The error is 12 u of the tail."""
    a = x.abs()
    tiny = a < TINY
    p = Exp(minimum(select(tiny, 0.0, a), 9.1) * 2.0)
    S, S_low = p.scaled()
    h, h_low = p.plus(S, S - 1.0)
    d, d_low = p.plus(S, S + 1.0)
    rest = fma(S, p.s, fma(S_low, p.r, S_low))
    reciprocal = 1.0 / d
    q = h * reciprocal
    remainder = fma(rest, 1.0 - q, fma(-q, d_low, h_low) + fma(-q, d, h))
    tail = remainder * fma(-reciprocal, rest * reciprocal, reciprocal)
    y, doubt = tested(q, tail, 2.0 ** -21)
    inexact = (a.bits() - BAND[0]).ult(BAND[1] - BAND[0])
    return copysign(select(tiny, a, y), x.sign()), (doubt & ~tiny) | inexact


def logistic(x):
    """1 / (1 + exp(-x)) = q (1 + e + e**2 ...), e = 1 - q d < 2**-13; the error is 12 u of the tail."""
    a = x.abs()
    p = Exp(-select(a < TINY, 0.0, x))
    power = (p.shift + ONE).as_float()
    S = p.high * power
    one, one_low = two_sum(S, S.like(1.0))
    d, d_low = p.plus(S, one)
    d_low = fma(power, fma(p.high, p.s, fma(p.low, p.r, p.low)), d_low + one_low)
    q = 1.0 / d
    e = fma(-q, d_low, fma(-q, d, 1.0))
    y, doubt = tested(q, q * fma(e, e, e), 2.0 ** -21)
    return y, doubt | ~(a <= 60.0)


# ---------------------------------------------------------------- logarithm

class Log:
    """log(u) = A + low + k rest + log1p(r), with u = 2**k z, r = z c - 1, |r| < 0.0184, c = 1 in the bin of 1.

    k ln2 and -log c are cut to multiples of 2**-16 so that their sum A is exact; it is zero in the bin of 1 only.
    """

    def __init__(self, u):
        t = u.bits() - int(numbers("pair_log_bits")[0])
        self.t, self.step = t, t & -(1 << 23)
        self.z = (u.bits() - self.step).as_float()
        self.c, self.high, self.low = t.lshr(18).lookup(
            table("pair_log_c"), table("pair_log_high"), table("pair_log_low"))
        self.r = fma(self.z, self.c, -1.0)              # exact
        self.k = t.ashr(23).f32()
        self.A = fma(self.k, numbers("pair_ln2")[0], self.high)         # exact

    def finish(self, r, low=None):
        """(log(u), doubt) if z c - 1 = r + low.

        -r**2 / 2 is part of h. What is left is below 2**-17 + 2**-19 |k|, and so many roundings of it, with the
        cube's error, are below 1.3 * 2**-39 + 2**-40 |A|. In the bin of 1 only the cube is left, 5 u of it.
        """
        square, A, rest = r * r, self.A, numbers("pair_ln2")[1]
        first = A + r
        h = fma(square, -0.5, first)
        l = (r - (first - A)) + fma(square, -0.5, first - h)
        t = fma(self.k, rest, self.low)
        t = t if low is None else t + low
        t = fma(square * r, horner(numbers("pair_log"), r), fma(fma(r, r, -square), -0.5, t))
        return bounded(h, t + l, A, fma(A.abs(), 1.4 * 2.0 ** -40, 1.35 * 2.0 ** -39))


def log(x):
    p = Log(x)
    y, doubt = p.finish(p.r)
    return y, doubt | ~(x.bits() - 0x00800000).ult(0x7f000000)


def log1p(x):
    tiny = x.abs() < TINY
    v = select(tiny, 0.0, x)
    u = v + 1.0
    low = v - (u - 1.0)
    p = Log(u)
    middle = p.A.eq(0.0)
    low = low * (ONE - p.step).as_float() * p.c
    low = select(middle, 0.0, fma(fma(p.r, p.r, -p.r), low, low))
    y, doubt = p.finish(select(middle, v, p.r), low)
    return select(tiny, x, y), doubt | ~(u.bits() - 0x00800000).ult(0x4b800000 - 0x00800000)


# ---------------------------------------------------------------- sine

def _sine(x, quarter):
    """sin(x) or, a `quarter` turn on, cos(x): x = k pi / 32 + r + low, |r| < 0.0491.

    The second term is part of h. What is left is below 2**-15.5; its error was measured below 1.05 * 2**-37, and
    below 2.5 * 2**-20 of it at multiples of pi. There, x - k pi / 32 is in two words unless it is below k 2**-28.
    """
    a = x.abs()
    tiny = a < TINY
    v = select(tiny, 0.0, x)
    p1, p2, p3 = numbers("pair_pi_32")
    word, k = nearest(v, 1.0 / p1)
    u = fma(k, -p1, v)                                  # exact
    r = fma(k, -p2, u)
    low = fma(k, -p3, fma(k, -p2, u - r))
    if quarter:
        word = word + 16
    s, s_low, c, c_low = word.lookup(*(table(f"pair_{n}") for n in ("sin_high", "sin_low", "cos_high", "cos_low")))
    z = r * r
    half = z * -0.5
    g = fma(c, r, s)
    h = fma(s, half, g)
    l = fma(c, r, s - g) + fma(s, half, g - h)
    t = fma(fma(-s, r, c), low, fma(c_low, r, fma(s_low, half, s_low)))
    t = fma(c, r * z * horner(numbers("pair_sin"), z), t)
    t = fma(s, z * z * horner(numbers("pair_cos"), z), t)
    t = fma(s, fma(r * -0.5, r, -half), t) + l
    y, doubt = bounded(h, t, s, 1.25 * 2.0 ** -37, 2.0 ** -18)
    y = (y.bits() ^ ((word & 32) << 26)).as_float()
    kk = k * 2.0 ** -28
    return (y if quarter else select(tiny, x, y)), doubt | ~(a <= 4096.0) | (z < kk * kk)


def sin(x):
    return _sine(x, False)


def cos(x):
    return _sine(x, True)


# ---------------------------------------------------------------- erf, atan

def _series(name, word, d, low, terms):
    """(h, tail, value): the Taylor series of the table at d + low; value is its first term, about."""
    names = [f"{n}_{w}" for n in ("value", "slope", "bend") for w in ("high", "low")]
    v, v_low, s, s_low, b, b_low, *rest = word.lookup(
        *(table(f"pair_{name}_{n}") for n in (*names, *range(3, terms + 3))))
    z = d * d
    g = fma(s, d, v)
    h = fma(b, z, g)
    l = fma(s, d, v - g) + fma(b, z, g - h)
    t = fma(b_low, z, fma(s_low, d, v_low))
    t = t if low is None else fma(fma(b * d, 2.0, s), low, t)
    return h, fma(z * d, horner(rest, d), fma(b, fma(d, d, -z), t)) + l, v


def erf(x):
    """The series at the nearest eighth, |d| <= 1 / 16; the tail's error was measured below 1.6 * 2**-37."""
    a = x.abs()
    tiny = a < TINY
    v = minimum(select(tiny, 0.0, a), 3.93)
    word, k = nearest(v, 8.0)
    h, tail, value = _series("erf", word, fma(k, -0.125, v), None, 6)
    y, doubt = bounded(h, tail, value, 2.0 ** -36)
    return copysign(y, x.sign()), doubt | (tiny & x.ne(0.0))


def atan(x):
    """The series for min / max of |x| and 1 near the nearest j / 31; the error was measured below 1.4 * 2**-38."""
    a = x.abs()
    tiny = a < TINY
    swapped = a > 1.0
    v = select(tiny, 0.0, a)
    n, d = select(swapped, 1.0, v), select(swapped, v, 1.0)
    reciprocal = 1.0 / d
    q = n * reciprocal
    low = fma(-q, d, n) * reciprocal
    word, _ = nearest(q, 31.0)
    h, tail, value = _series("atan", word, q - word.lookup(table("pair_atan_point")), low, 3)
    half, half_low = 1.57079637050628662109375, -4.37113900018624283e-8
    g, t = select(swapped, half - h, h), select(swapped, half_low - tail, tail)
    t = select(swapped, t + ((half - g) - h), t)
    y, doubt = bounded(g, t, value, 1.6 * 2.0 ** -38)
    return copysign(select(tiny, a, y), x.sign()), doubt | ~(a <= 2.0 ** 60)


BODIES = {body.__name__: body for body in (exp, expm1, tanh, logistic, log, log1p, sin, cos, erf, atan)}
