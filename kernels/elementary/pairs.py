"""Bodies of ten binary32 functions in pairs of binary32 numbers, for registers that hold sixteen.

Such a register holds only eight numbers of binary64, so a body in pairs (h + tail, |tail| small beside h)
takes about half the operations of the narrow body in binary64. It knows its value to 2**-35 or better and says
where that may not decide the rounding (Ziv's test): about one number in a thousand, for which, as for arguments
out of its range, the narrow body is run (`registry.render`). So the words are those of the narrow body. That is
proved by comparing them on all 2**32 inputs: ``python3 -m benchmarks elementary --exhaustive``.

The tables have 32 entries and are permuted in two registers. No product has a subnormal operand or result:
small arguments are moved by `NOTHING`, or kept out below `TINY`. Where f(x) is x to binary32, the result is that
one of f(x) and x on whose side f is. The bodies say what bounds the error that a test is given; u = 2**-25 is
that of a rounding. Source: A. Ziv, ACM TOMS 17(3), 1991 (the test); Tang, ACM TOMS 15(2) and 16(4) (tables);
the pairs are ours.
"""
from ..expr import copysign, fma_value as fma, horner, maximum, minimum, select
from .tables import numbers, table
from .words import two_sum

SHIFT = 1.5 * 2.0 ** 23                 # v + SHIFT has rint(v) in its low bits
TINY = 2.0 ** -30
NOTHING = 2.0 ** -49                    # half a unit in the last place, or less, of numbers from 2**-25 up
ONE, SIGN = 0x3f800000, -1 << 31


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


def bounded(h, tail, error):
    """`tested` for an absolute error."""
    y = h + (tail + error)
    return y, y.ne(h + (tail - error))


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
    p = Exp(x + NOTHING)
    h, l = p.plus(p.high, p.high)
    y, doubt = tested(h, fma(p.high, p.s, fma(p.low, p.r, l + p.low)), 1.5 * 2.0 ** -22)
    return (y.bits() + p.shift).as_float(), doubt | ~(x.abs() <= 87.0)


def expm1(x):
    """S r + (S - 1), S = 2**e high, and the rest; the error is 9 u of the tail, 2**-21 is 16 u."""
    p = Exp(maximum(x - NOTHING, -20.0))
    S, S_low = p.scaled()
    d = S - 1.0                                         # exact for x from -1.4 to 15
    low = S - (d + 1.0)
    h, l = p.plus(S, d)
    y, doubt = tested(h, fma(S, p.s, fma(S_low, p.r, S_low + low)) + l, 2.0 ** -21)
    return maximum(y, x), doubt | ~(x <= 15.0)


def tanh(x):
    """h / d, h = exp(2 |x|) - 1, d = h + 2; `rest` is part of both. The error is 12 u of the tail."""
    a = x.abs()
    v = minimum(maximum(a, TINY), 9.1)
    p = Exp(v + v)
    S, S_low = p.scaled()
    h, h_low = p.plus(S, S - 1.0)
    d = h + 2.0
    d_low = (minimum(h, 2.0) - (d - maximum(h, 2.0))) + h_low
    rest = fma(S, p.s, fma(S_low, p.r, S_low))
    reciprocal = 1.0 / d
    q = h * reciprocal
    remainder = fma(rest, 1.0 - q, fma(-q, d_low, h_low) + fma(-q, d, h))
    tail = remainder * fma(-reciprocal, rest * reciprocal, reciprocal)
    y, doubt = tested(q, tail, 2.0 ** -21)
    return copysign(minimum(y, a), x.sign()), doubt


def logistic(x):
    """1 / (1 + exp(-x)) = q (1 + e + e**2 ...), e = 1 - q d < 2**-13; the error is 12 u of the tail."""
    p = Exp(NOTHING - x)
    power = (p.shift + ONE).as_float()
    S = (p.high.bits() + p.shift).as_float()
    one, one_low = two_sum(S, S.like(1.0))
    d, d_low = p.plus(S, one)
    d_low = fma(power, fma(p.high, p.s, fma(p.low, p.r, p.low)), d_low + one_low)
    q = 1.0 / d
    e = fma(-q, d_low, fma(-q, d, 1.0))
    y, doubt = tested(q, q * fma(e, e, e), 2.0 ** -21)
    return y, doubt | ~(x.abs() <= 60.0)


# ---------------------------------------------------------------- logarithm

LEAST, GREAT, INFINITE = 0x00800000, 0x4b800000, 0x7f800000           # words: of 2**-126, 2**24, infinity


class Log:
    """log(u) = A + low + k rest + log1p(r), with u = 2**k z, r = z c - 1, |r| < 0.0184, c = 1 in the bin of 1.

    k ln2 and -log c are cut to multiples of 2**-16 so that their sum A is exact; it is zero in the bin of 1 only.
    """

    def __init__(self, u):
        t = u.bits() - int(numbers("pair_log_bits")[0])
        exponent = t.ashr(23)
        self.step = exponent << 23
        z = (u.bits() - self.step).as_float()
        self.c, high, self.low = t.lshr(18).lookup(
            table("pair_log_c"), table("pair_log_high"), table("pair_log_low"))
        self.r = fma(z, self.c, -1.0)                   # exact
        self.k = exponent.f32()
        self.A = fma(self.k, numbers("pair_ln2")[0], high)              # exact

    def finish(self, r, low=None):
        """(log(u), doubt) if z c - 1 = r + low.

        -r**2 / 2 is part of h. What is left is below 2**-17 + 2**-19 |k|, and so many roundings of it, with the
        cube's error, are below 1.3 * 2**-39 + 2**-40 |A|. In the bin of 1 only the cube is left, 2**-20
        of it.
        """
        A = self.A
        minus = r * -0.5
        first = A + r
        h = fma(minus, r, first)
        l = (r - (first - A)) + fma(minus, r, first - h)
        t = fma(self.k, numbers("pair_ln2")[1], self.low)
        t = (t if low is None else t + low) + l
        half = minus * r
        tail = fma(half, r * horner([-2.0 * c for c in numbers("pair_log")], r), t)
        error = fma(A.abs(), 1.4 * 2.0 ** -40, 1.35 * 2.0 ** -39)
        return bounded(h, tail, select(A.eq(0.0), tail * 2.0 ** -20, error))


def log(x):
    p = Log(x)
    y, doubt = p.finish(p.r)
    return y, doubt | ~(x.bits() - LEAST).ult(INFINITE - LEAST)


def log1p(x):
    """1 + x = u + low; low, as a part of z c - 1, goes to r, so that in the bin of 1 r is x."""
    v = x + NOTHING
    u = v + 1.0
    p = Log(u)
    low, slope = v - (u - 1.0), (p.c.bits() - p.step).as_float()
    r = fma(low, slope, p.r)
    low = fma(low, slope, p.r - r)
    y, doubt = p.finish(r, fma(-r, low, low))
    return minimum(y, x), doubt | ~(u.bits() - LEAST).ult(GREAT - LEAST)


# ---------------------------------------------------------------- sine

def _sine(x, quarter):
    """sin(x) or, a `quarter` turn on, cos(x): x = k pi / 32 + r + low, |r| < 0.0491.

    The second term is part of h. What is left is below 2**-15.5; its error was measured below 1.05 * 2**-37, and
    below 2.5 * 2**-20 of it at multiples of pi. Near those, k p2 is more than r, and up to k 2**-53 is lost of it.
    """
    a = x.abs()
    v = maximum(a, TINY)
    p1, p2, p3 = numbers("pair_pi_32")
    word, k = nearest(v, 1.0 / p1)
    u = fma(k, -p1, v)                                  # exact
    r = fma(k, -p2, u)
    low = fma(k, -p3, fma(k, -p2, u - r))
    if quarter:
        word = word + 16
    s, s_low, c, c_low = word.lookup(*(table(f"pair_{n}") for n in ("sin_high", "sin_low", "cos_high", "cos_low")))
    minus = r * -0.5
    half = minus * r
    g = fma(c, r, s)
    h = fma(s, half, g)
    l = fma(c, r, s - g) + fma(s, half, g - h)
    t = fma(fma(-s, r, c), low, l)
    t = fma(r, fma(c * half, _in_halves("pair_sin", -2.0, half), c_low), t)
    t = fma(half, fma(s * half, _in_halves("pair_cos", 4.0, half), s_low), t + s_low)
    t = fma(s, fma(minus, r, -half), t)
    error = select(s.eq(0.0), t.abs() * 2.0 ** -18, 1.25 * 2.0 ** -37)
    y, doubt = bounded(h, t, fma(k, 2.0 ** -52, error))
    sign = (word << 26) if quarter else (word << 26) ^ x.bits()
    y = y if quarter else minimum(y, a)
    return (y.bits() ^ (sign & SIGN)).as_float(), doubt | ~(a <= 4096.0)


def _in_halves(name, factor, half):
    """`factor` times the polynomial in r**2 of that name, at half = -r**2 / 2."""
    return horner([c * factor * (-2.0) ** j for j, c in enumerate(numbers(name))], half)


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
    y, doubt = bounded(h, tail, select(value.eq(0.0), tail * 2.0 ** -20, 2.0 ** -36))
    return copysign(y, x.sign()), doubt | (tiny & x.ne(0.0))


def atan(x):
    """The series for min / max of |x| and 1 near the nearest j / 31; the error was measured below 1.4 * 2**-38."""
    a = x.abs()
    v = maximum(a, TINY)
    n, d = minimum(v, 1.0), maximum(v, 1.0)
    reciprocal = 1.0 / d
    q = n * reciprocal
    low = fma(-q, d, n) * reciprocal
    word, _ = nearest(q, 31.0)
    h, tail, value = _series("atan", word, q - word.lookup(table("pair_atan_point")), low, 3)
    swapped = a > 1.0
    half, half_low = 1.57079637050628662109375, -4.37113900018624283e-8
    g, t = select(swapped, half - h, h), select(swapped, half_low - tail, tail)
    t = select(swapped, t + ((half - g) - h), t)
    y, doubt = bounded(g, t, select(value.eq(0.0), t * 2.0 ** -20, 1.6 * 2.0 ** -38))
    return copysign(minimum(y, a), x.sign()), doubt | ~(a <= 2.0 ** 60)


BODIES = {body.__name__: body for body in (exp, expm1, tanh, logistic, log, log1p, sin, cos, erf, atan)}
