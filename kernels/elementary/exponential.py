"""exp, exp2, exp10, expm1, sinh, cosh, tanh, logistic.

Reduction: x = k ln2 / m + r with k = rint(m x / ln2), m = 1, 8 or 16, r = x - k hi - k lo by fma
(hi has few bits, so the first product is exact). Narrow bodies (m = 1 or 8): a polynomial of
degree 10 or 7 with relative error below 2**-51. Wide bodies of exp, expm1 and tanh: a 16-entry table of
2**(i/16), to whose words k is added (`_power`), exp = h (1 + p), and p in two words for expm1 and tanh; the
others start from expm1(r) in two words (`expm1_parts`), relative error about 2**-64. Bounds, as the sum of the
roundings left: exp family 0.55 ulp, expm1 0.53, tanh 0.52, logistic, sinh and cosh 0.6; subnormal results of
exp, exp2, exp10 0.76 (rounded twice).
Constants: `tables.json`. Source: P. Tang, ACM TOMS 15(2), 1989 (table method); the arrangement is
ours.
"""
from ..expr import copysign, fma_value as fma, horner, horner_halves, maximum, minimum, rare, select
from .tables import numbers, table
from .words import LEAST, TWO_52, divide, fast_two_sum, nearest, quotient, two_product, two_sum

ONE = 0x3ff0000000000000


# ---------------------------------------------------------------- reduction

def _reduce(v, name, parts):
    """(word, r) of v = k * c + r, c the two-word constant `name`, about ln2 / parts."""
    high, low = numbers(name)
    word, k = nearest(v, parts * numbers("log2_e")[0])
    return word, fma(k, -low, fma(k, -high, v))


def _reduce_words(v, name, parts, times=1.0):
    """`_reduce` of times v, r over `times`; with the rounding error of r as a third result."""
    high, low = (c / times for c in numbers(name))
    word, k = nearest(v, parts * times * numbers("log2_e")[0])
    first = fma(k, -high, v)
    r = fma(k, -low, first)
    return word, r, fma(k, -low, first - r)


def power_of_two(k):
    """2**k for an i64 in [-1022, 1023]."""
    return ((k + 1023) << 52).as_float()


def scaled(s, k):
    """s * 2**k rounded once, for s in [1/2, 4) and any k of an i64 in [-1100, 1100].

    A subnormal result is an integer number of 2**-1074, rounded by an addition; so no operation has
    a subnormal operand or result, which some processors are slow at.
    """
    least = select(k < -1140, -1140, k)
    below = least < -1023
    usual = select(below, 0, k)
    half = usual.ashr(1)
    normal = select(below, 1.0, s) * power_of_two(half) * power_of_two(usual - half)
    steps = s * power_of_two(least + 1074) + 2.0 ** 52
    subnormal = (steps.bits() - TWO_52).as_float()
    return select(below, subnormal, normal)


def expm1_parts(v, tail=None):
    """(word, h, l): v + tail = k ln2 + r with k in `word`, and h + l = exp(r) - 1 to about
    2**-64."""
    word, r, low = _reduce_words(v, "ln2", 1)
    if tail is not None:
        r, low = fast_two_sum(r, low + tail)
    q = horner(numbers("expm1_wide")[2:], r)
    z, z_low = two_product(r, r)
    a, a_low = fast_two_sum(r, z * 0.5)
    rest = fma(z * r, q, fma(z_low, 0.5, fma(r, low, low))) + a_low
    h = a + rest
    return word, h, (a - h) + rest


def exp_parts(v, tail=None):
    """(h, l) = exp(v + tail) in two words, for |v| <= 700."""
    word, h, l = expm1_parts(v, tail)
    s, e = fast_two_sum(v.like(1.0), h)
    shift = word << 52
    e = e + l
    scale = (shift + ONE).as_float()
    return s * scale, e * scale


# ---------------------------------------------------------------- exp, exp2, exp10

def exp_small(v, tail=None):
    """exp(v + tail) to about 2**-51 for |v| <= 700, the tail tiny."""
    word, r = _reduce(v, "ln2_words", 1)
    r = r if tail is None else r + tail
    return (horner(numbers("exp_narrow"), r).bits() + (word << 52)).as_float()


def exp_narrow(x):
    return exp_small(maximum(minimum(x, 89.0), -104.0))


def _series_sixteenth(r, rest):
    """exp(r) - 1 - r + rest for |r| <= ln2 / 32."""
    z = r * r
    return fma(z, horner_halves(numbers("expm1_sixteenth")[1:], r, z), rest)


def _power(word):
    """2**(k/16) for the k in the low bits of `word`, if it is normal, and what is missing of it, relatively."""
    high, rest = word.lookup(table("exp2_16_word"), table("exp2_16_rest"))
    return (high.bits() + (word << 48)).as_float(), rest


def _sixteenths(word, r, low=None):
    """(h, p): 2**(k/16) exp(r + low) = h (1 + p), k in the low bits of `word`."""
    h, rest = _power(word)
    return h, r + _series_sixteenth(r, rest if low is None else rest + low)


def _far(word, p):
    """2**(k/16) (1 + p) for any k of its range: results rounded once, subnormal ones too."""
    h, _ = _power(word & 15)
    s = fma(h, p, h)
    return select(s.eq(s), scaled(s, (word << 13).ashr(17)), s)


def _exp_reduced(reduced, x, usual, least, greatest):
    """2**(k/16) exp(r) at (word, r...) = reduced(x): normal for |x| <= `usual`, 0 at `least`, infinite at
    `greatest`."""
    h, p = _sixteenths(*reduced(x))

    def slow():
        word, *r = reduced(maximum(minimum(x, greatest), least))
        return (_far(word, _sixteenths(word, *r)[1]),)
    return rare(~(x.abs() <= usual), slow, fma(h, p, h))


def exp_wide(x):
    return _exp_reduced(lambda v: _reduce(v, "ln2_sixteenth", 16), x, 707.0, -746.0, 710.0)


def exp_of_words(x, tail):
    """exp(x + tail), for pow: as `exp_wide` with a low word, which is small beside x."""
    v = maximum(minimum(x, 710.0), -746.0)
    tail = select(v.eq(x), tail, 0.0)
    word, r, low = _reduce_words(v, "ln2_sixteenth", 16)
    h, p = _sixteenths(word, *fast_two_sum(r, low + tail))
    return rare(~(v.abs() <= 707.0), lambda: (_far(word, p),), fma(h, p, h))


def exp2(x):
    def reduced(v):
        word, k = nearest(v, 16.0)
        return word, fma(k, -0.0625, v) * numbers("ln2_words")[0]
    return _exp_reduced(reduced, x, 1020.0, -1077.0, 1025.0)


def exp10(x):
    def reduced(v):
        word, k = nearest(v, 16.0 * numbers("log2_10")[0])
        step_high, step_low = numbers("log10_2_sixteenth")
        first = fma(k, -step_high, v)
        d = fma(k, -step_low, first)
        d_low = fma(k, -step_low, first - d)
        high, low = numbers("ln10")
        r = d * high
        return word, r, fma(d_low, high, fma(d, low, fma(d, high, -r)))
    return _exp_reduced(reduced, x, 306.0, -325.0, 309.0)


# ---------------------------------------------------------------- expm1, tanh, logistic, sinh, cosh

def _expm1_eighths(v):
    """(s, e): exp(v) - 1 as e, to about 2**-50, with an 8-entry table."""
    word, r = _reduce(v, "ln2_eighth", 8)
    s = (word.lookup(table("exp2_8_high")).bits() + ((word & -8) << 49)).as_float()
    p = fma(r * r, horner(numbers("expm1_eighth")[1:], r), r)
    return fma(s, p, s - 1.0)


def expm1_narrow(x):
    v = maximum(minimum(x, 89.0), -40.0)
    word, r = _reduce(v, "ln2_words", 1)
    p = fma(r * r, horner(numbers("expm1_narrow")[1:], r), r)
    s = ((word << 52) + ONE).as_float()
    return select(x.eq(0.0), x, fma(s, p, s - 1.0))


def _exp_words(v, times=1.0):
    """(word, p, l): exp(times v) = h (1 + p + l), `word` that of h = 2**(k/16); `times` is 1 or 2."""
    word, r, low = _reduce_words(v, "ln2_sixteenth", 16, times)
    h, rest = _power(word)
    z = r * r
    powers = horner_halves([c * times ** (j + 2) for j, c in enumerate(numbers("expm1_sixteenth")[1:])], r, z)
    if times == 2.0:
        r, low = r + r, low + low
    t = fma(z, powers, fma(rest, r, low + rest))
    p = r + t
    return h.bits(), p, t - (p - r)


def expm1_wide(x):
    """h - 1 + h (p + l) where h - 1 is exact in two words; beyond 36, at a quarter of the size."""
    word, p, l = _exp_words(x)
    h = word.as_float()
    s = h - 1.0
    m = fma(h, p, s)
    y = m + (fma(h, p, s - m) + fma(h, l, h - (s + 1.0)))

    def slow():
        word, p, l = _exp_words(maximum(minimum(x, 709.79), -40.0))
        h = (word - (2 << 52)).as_float()
        m = fma(h, p, h)
        return ((m + (fma(h, p, h - m) + fma(h, l, -0.25))) * 4.0,)
    return rare(~(x.abs() <= 36.0), slow, y)


def tanh_narrow(x):
    e = _expm1_eighths(minimum(x.abs(), 20.0) * 2.0)
    return copysign(e / (e + 2.0), x.sign())


def tanh_wide(x):
    """e / (e + 2), e = expm1(2 |x|) in two words; |tanh x| <= |x| for the arguments that are set to `LEAST`.

    Beyond 18 it is 1 - 2 exp(-2 |x|), the exponential to some 2**-15.
    """
    size = x.abs()
    word, p, l = _exp_words(maximum(size, LEAST), 2.0)
    h = word.as_float()
    s = h - 1.0
    e = fma(h, p, s)
    e_low = fma(h, l, fma(h, p, s - e))
    d = e + 2.0
    y = quotient(e, e_low, d, (e - (d - 2.0)) + e_low)
    y = select(y > size, size, y)

    def slow():
        near = 1.0 - 2.0 / h * fma(p, p - 1.0, 1.0)
        return (select(size > 30.0, 1.0, select(size > 18.0, near, y)),)
    return copysign(rare(~(size <= 18.0), slow, y), x.sign())


def logistic_narrow(x):
    """1 / (1 + exp(-x)). Near 0 it is 1/2 + x/4 - x**3 / 48: a midpoint of binary32 belongs nearer 1/2."""
    y = 1.0 / (1.0 + exp_small(-maximum(minimum(x, 104.0), -104.0)))

    def slow():
        step = select(x < 0.0, y.bits().like(1), -1)
        return (select(x.abs() < 0.01, (y.bits() + step).as_float(), y),)
    return rare((y.bits() << 35).eq(-(1 << 63)), slow, y)


def logistic_parts(x, tail=None):
    """(q, l, finish): logistic(x + tail) = finish(q + l); tail * x >= 0 or tiny.

    With e = exp(-|x|): 1 / (1 + e) or e / (1 + e), the small numerator scaled by `finish`.
    """
    a = minimum(x.abs(), 750.0)
    negative = x < 0.0
    signed = None if tail is None else select(negative, tail, -tail)
    word, h, l = expm1_parts(-a, signed)
    k = (word << 13).ashr(13)
    near = select(k < -1000, -1000, k)
    one = h.like(1.0)
    p, p_low = fast_two_sum(one, h)
    s = power_of_two(near)
    d, d_low = fast_two_sum(one, s * p)
    low = p_low + l
    d_low = fma(s, low, d_low)
    q, q_low = divide(select(negative, p, 1.0), select(negative, low, 0.0), d, d_low)

    def finish(y):
        half = k.ashr(1)
        return select(negative, y * power_of_two(half) * power_of_two(k - half), y)
    return q, q_low, finish


def logistic_wide(x):
    q, q_low, finish = logistic_parts(x)
    return finish(q + q_low)


def _quarter_expm1(a):
    """(h, l) = (exp(a) - 1) / 4 in two words, for 0 <= a <= 710.5."""
    word, p, p_low = expm1_parts(a)
    s = (((word - 2) << 52) + ONE).as_float()
    head, low = two_sum(s, s.like(-0.25))
    h, h_low = two_sum(head, s * p)
    return h, fma(s, p_low, low) + h_low


def _hyperbolic_parts(x):
    """(|x| clamped, H, 1 + 4 H) with H = (exp|x| - 1) / 4, the last two in two words."""
    a = minimum(x.abs(), 710.5)
    h, l = _quarter_expm1(a)
    d, d_low = two_sum(h * 4.0, h.like(1.0))
    return a, (h, l), (d, d_low + l * 4.0)


def sinh(x):
    """2 (H + H / (1 + 4 H)) with H = expm1(|x|) / 4."""
    a, (h, l), denominator = _hyperbolic_parts(x)
    q, q_low = divide(h, l, *denominator)
    far = a > 40.0
    s, e = two_sum(h, select(far, 0.25, q))
    y = (s + (e + (l + select(far, 0.0, q_low)))) * 2.0
    return copysign(select(x.abs() < 2.0 ** -30, x.abs(), y), x.sign())


def cosh(x):
    """2 (H + 1/4 + 1/4 / (1 + 4 H)) with H = expm1(|x|) / 4."""
    a, (h, l), denominator = _hyperbolic_parts(x)
    q, q_low = divide(h.like(0.25), h.like(0.0), *denominator)
    far = a > 40.0
    s, e = two_sum(h, h.like(0.25))
    t, f = two_sum(s, select(far, 0.0, q))
    return (t + (f + ((e + l) + select(far, 0.0, q_low)))) * 2.0
