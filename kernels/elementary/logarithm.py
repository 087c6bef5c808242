"""log, log2, log10, log1p, asinh, acosh, atanh, softplus, pow.

x = 2**k z with z in 16 bins of an octave; c = 1/z rounded to 5 or 6 bits, so that r = z c - 1 is
exact, and c = 1 in the bin around 1 (no cancellation there). log x = k ln2 - log c + log1p(r), |r|
< 0.035; log1p(r) by a polynomial of degree 9 (narrow) or 12. `log_parts` returns two words,
relative error about 2**-64. A second word of the argument enters as r + rl. Bounds: log and log1p
0.561 ulp, log2 and log10 0.51, asinh, acosh, atanh, softplus 0.6, pow 0.65. Source: Tang, ACM TOMS
16(4), 1990; the exact reduction is ours.
"""
from ..expr import copysign, fma_value as fma, horner, horner_halves, maximum, minimum, rare, select
from .exponential import exp_of_words, exp_parts, exp_small
from .tables import numbers, table
from .words import TWO_52, divide, fast_two_sum, multiply, root, two_product, two_sum

INF, NAN = float("inf"), float("nan")
EXPONENT = -(1 << 52)
BIG = 2.0 ** 60
UNIT = 2.0 ** 52
INFINITE = 0x7ff << 52                  # the word of infinity
SMALL_WORD, FAR_WORD = 979 << 52, 2023 << 52              # of 2**-44 and 2**1000


def _offset():
    return int(numbers("log_bits")[0]) << 32


def _centre():
    return (0x3ff0000000000000 - _offset()) >> 48


class Split:
    """u = 2**k z: `k`, a float, times `UNIT`, `step` = k << 52, `z`, the table's entries `c` and `logs` for z, and
    whether u is in the centre."""

    def __init__(self, u, columns=("log_c", "log_high", "log_low")):
        t = u.bits() - _offset()
        self.step = t & EXPONENT
        self.k = self.step.exponent()
        self.z = (u.bits() - self.step).as_float()
        self.c, *self.logs = t.lshr(48).lookup(*(table(name) for name in columns))
        self.r = fma(self.z, self.c, -1.0)
        self.middle = (t & -(1 << 48)).eq(_centre() << 48)

    def rest(self):
        """z c - 1 - r: not zero at the ends of a bin, where the exact value has 54 bits."""
        p, low = two_product(self.z, self.c)
        return ((p - 1.0) - self.r) + low

    def scaled(self, low):
        """`low` * 2**-k * c, for the second word of u; zero where u is huge."""
        power = (0x3ff0000000000000 - self.step).as_float()
        return select(self.k > 60.0 * UNIT, 0.0, low * power * self.c)


def _log_narrow(u, exact=None, low=None):
    """log(u + low) for a positive normal u; `exact` is u - 1 before rounding."""
    p = Split(u, ("log_c", "log_one"))
    r = p.r if low is None else p.r + p.scaled(low)
    r = r if exact is None else select(p.middle, exact, r)
    q = horner(numbers("log_narrow")[1:], r)
    return fma(p.k, numbers("ln2_words")[0] / UNIT, p.logs[0] + fma(r * r, q, r))


def _ends(y, x, zero):
    """`y` with the values of a logarithm at `zero` (-inf), below it (NaN) and at inf."""
    y = select(x > zero, y, select(x.eq(zero), -INF, NAN))
    return select(x.eq(INF), INF, y)


def _outside(u, least):
    """Whether u is none of the finite numbers from that of the word `least` > 0 up: one comparison of words."""
    return ~(u.bits() - least).ult(INFINITE - least)


def log_narrow(x, ties):
    """`ties` settles the inputs whose value is a midpoint: one branch serves them and the ends."""
    y = _log_narrow(x)
    return rare(_outside(x, 1) | ties.found(y), lambda: (_ends(ties.settled(y), x, 0.0),), y)


def log1p_narrow(x, ties):
    u = x + 1.0
    y = _log_narrow(u, x)

    def slow():
        return (select(x.eq(0.0), x, _ends(ties.settled(y), x, -1.0)),)
    return rare(_outside(u, 1) | x.eq(0.0) | ties.found(y), slow, y)


def _table_sum(p):
    """(T, tail) = k ln2 - log c in two words; T is exact."""
    high, low = (c / UNIT for c in numbers("ln2"))
    return fma(p.k, high, p.logs[0]), fma(p.k, low, p.logs[1])


def _finish(p, tail=None):
    """One word: T + r + (tail + r**2 q(r)); the tail is that of T unless given."""
    T, T_low = _table_sum(p)
    h, l = fast_two_sum(T, p.r)
    z = p.r * p.r
    q = horner_halves(numbers("log_word")[1:], p.r, z)
    return h + fma(z, q, (T_low if tail is None else tail(T_low)) + l)


def _normalised(x):
    """(u, shift): for subnormal x its integer number of 2**-1074, and -1074 `UNIT`; no product of it."""
    small = x < 2.0 ** -1022
    count = (x.bits() | TWO_52).as_float() - 2.0 ** 52
    return select(small, count, x), select(small, -1074.0 * UNIT, 0.0)


def log_wide(x):
    y = _finish(Split(x))

    def slow():
        u, shift = _normalised(x)
        p = Split(u)
        p.k = p.k + shift
        return (_ends(_finish(p), x, 0.0),)
    return rare(_outside(x, 1 << 52), slow, y)


def log1p_wide(x):
    """log(u + low), u + low = 1 + x: the derivative times `low` is c (1 - r) 2**-k low, to the square of r.

    For |x| < 2**-44, where `low` is no small part of x, it is x - x**2 / 2; for huge x, `low` is nothing.
    """
    u, low = fast_two_sum(maximum(x, 1.0), minimum(x, 1.0))
    size = x.abs()
    usual = (size.bits() - SMALL_WORD).ult(FAR_WORD - SMALL_WORD)
    p = Split(u)
    slope = select(usual, (p.c.bits() - p.step).as_float(), 0.0)
    y = _finish(p, lambda tail: fma(low, fma(-p.r, slope, slope), tail))

    def slow():
        tiny = size < 2.0 ** -54
        v = select(tiny, 1.0, x)
        series = select(tiny, x, fma(v * v, -0.5, v))
        return (select(size < 2.0 ** -44, series, _ends(y, x, -1.0)),)
    return rare(~(usual & (x > -1.0)), slow, y)


# ---------------------------------------------------------------- two words

def log_parts(u, low=None, exact=None):
    """(h, l): log(u + low) in two words; u positive and normal.

    `exact` is (e, el) with u + low = 1 + e + el, used in the bin around 1.
    """
    p = Split(u)
    r, rl = p.r, p.rest() if low is None else p.rest() + p.scaled(low)
    if exact is not None:
        r, rl = select(p.middle, exact[0], r), select(p.middle, exact[1], rl)
    return _sum_parts(p, r, rl)


def _sum_parts(p, r, rl):
    T, T_low = _table_sum(p)
    z, z_low = two_product(r, r)
    s, s_low = two_sum(T, r)
    a, a_low = two_sum(s, z * -0.5)
    small = fma(z_low, -0.5, fma(-r, rl, rl) + T_low)
    rest = fma(z * r, horner(numbers("log_wide")[2:], r), small) + (s_low + a_low)
    return fast_two_sum(a, rest)


def log_any_parts(u, low):
    """`log_parts` for any positive finite u; `low` is not used where u is subnormal."""
    v, shift = _normalised(u)
    p = Split(v)
    rl = p.rest()
    if low is not None:
        rl = rl + select(u < 2.0 ** -1022, 0.0, p.scaled(low))
    p.k = p.k + shift
    return _sum_parts(p, p.r, rl)


def log1p_parts(e, el):
    """(h, l): log(1 + e + el) in two words, for 1 + e > 0."""
    u, low = two_sum(e, e.like(1.0))
    return log_parts(u, low + el, (e, el))


def _in_base(x, name):
    u, shift = _normalised(x)
    p = Split(u)
    p.k = p.k + shift
    h, l = _sum_parts(p, p.r, p.rest())
    y, y_low = multiply(h, l, numbers(name))
    return _ends(y + y_low, x, 0.0)


def log2(x):
    return _in_base(x, "log2_e")


def log10(x):
    return _in_base(x, "log10_e")


# ---------------------------------------------------------------- inverse hyperbolic functions

def asinh(x):
    """log1p(a + a**2 / (1 + sqrt(1 + a**2))), a = |x|; log(2a) beyond 2**60."""
    a = x.abs()
    big = a > BIG
    b = select(big, 1.0, a)
    z, z_low = two_product(b, b)
    d, d_low = two_sum(z, b.like(1.0))
    s, s_low = root(d, d_low + z_low)
    t, t_low = two_sum(s, b.like(1.0))
    q, q_low = divide(z, z_low, t, t_low + s_low)
    e, el = two_sum(b, q)
    h, l = log1p_parts(e, el + q_low)
    y = h + l

    def slow():
        h, l = log_parts(select(big, a, 1.0))
        ln2 = numbers("ln2_words")
        s, e = fast_two_sum(h, h.like(ln2[0]))
        large = select(a.eq(INF), INF, s + (e + (l + ln2[1])))
        return (select(big, large, a),)
    return copysign(rare(~(a <= BIG) | (a < 2.0 ** -30), slow, y), x.sign())


def acosh(x):
    """log1p(t + sqrt(t (t + 2))), t = x - 1 exact below 2; log(2x) beyond 2**60."""
    big = x > BIG
    b = select(big, 2.0, x)
    t, t_low = two_sum(b, b.like(-1.0))
    u, u_low = two_sum(t, t.like(2.0))
    z, z_low = two_product(t, u)
    z_low = z_low + fma(t, u_low + t_low, t_low * u)
    s, s_low = root(z, z_low)
    e, el = two_sum(t, s)
    h, l = log1p_parts(e, el + (s_low + t_low))
    y = h + l

    def slow():
        h, l = log_parts(select(big, x, 2.0))
        ln2 = numbers("ln2_words")
        s, e = fast_two_sum(h, h.like(ln2[0]))
        large = select(x.eq(INF), INF, s + (e + (l + ln2[1])))
        return (select(x > 1.0, select(big, large, y), select(x.eq(1.0), 0.0, NAN)),)
    return rare(~(x > 1.0) | big, slow, y)


def atanh(x):
    """log1p(2a / (1 - a)) / 2, a = |x|."""
    a = x.abs()
    b = select(a < 1.0, a, 0.5)
    d, d_low = fast_two_sum(b.like(1.0), -b)
    q, q_low = divide(b + b, b.like(0.0), d, d_low)
    e, el = fast_two_sum(q, q_low)
    h, l = log1p_parts(e, el)
    y = (h + l) * 0.5

    def slow():
        end = select(a.eq(1.0), INF, select(a < 1.0, y, NAN))
        return (select(a < 2.0 ** -30, a, end),)
    return copysign(rare(~(a < 1.0) | (a < 2.0 ** -30), slow, y), x.sign())


# ---------------------------------------------------------------- softplus

def log1p_exp(v, tail):
    """(h, l) = log1p(exp(v + tail)) for v <= 0; v is clamped at -700."""
    e, el = exp_parts(v, tail)
    return log1p_parts(e, el)


def softplus(x):
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    a = x.abs()
    h, l = log1p_exp(-minimum(a, 700.0), None)
    s, e = two_sum(select(x > 0.0, x, 0.0), h)
    y = s + (e + l)

    def slow():
        from_below = exp_of_words(x, x.like(0.0))
        return (select(x <= -700.0, from_below, select(a < 700.0, y, x)),)
    return rare(~(a < 700.0), slow, y)


def softplus_narrow(x):
    a = minimum(x.abs(), 110.0)
    e = exp_small(-a)
    u, low = fast_two_sum(e.like(1.0), e)
    y = _log_narrow(u, e, low) + select(x > 0.0, x, 0.0)
    return select(x.eq(x), y, x)


# ---------------------------------------------------------------- pow

def _integer_kind(y):
    """(is an integer, is an odd integer) for a finite y."""
    a = y.abs()
    whole = a.rint().eq(a)
    half = a * 0.5
    return whole, whole & half.rint().ne(half) & (a < 2.0 ** 53)


def power(x, y):
    """exp(y log|x|), log in two words to 2**-64; the special cases of IEEE 754 `pow`."""
    a = x.abs()
    usual = (a >= 2.0 ** -1022) & (a < INF)
    u, shift = _normalised(select((a > 0.0) & (a < INF), a, 1.0))
    p = Split(u)
    p.k = p.k + shift
    h, l = _sum_parts(p, p.r, p.rest())
    t = y * h
    small = (t.abs() < 1000.0)
    t_low = select(small, fma(y, h, -t) + y * l, 0.0)
    z = exp_of_words(t, t_low)

    def slow():
        whole, odd = _integer_kind(y)
        sign = select(odd, x.sign(), 0)
        down = select(a.eq(1.0), 1.0, select((y > 0.0) ^ (a < 1.0), INF, 0.0))
        v = select(y.abs().eq(INF), down, z)
        v = select(a.eq(0.0) | a.eq(INF), select((y > 0.0) ^ a.eq(0.0), INF, 0.0), v)
        v = (v.bits() | sign).as_float()
        v = select((x < 0.0) & a.ne(INF) & a.ne(0.0) & ~whole & y.abs().ne(INF), NAN, v)
        v = select(x.eq(x) & y.eq(y), v, NAN)
        return (select(x.eq(1.0) | y.eq(0.0), 1.0, v),)
    return rare(~(x > 0.0) | ~usual | ~(y.abs() < INF) | y.eq(0.0), slow, z)
