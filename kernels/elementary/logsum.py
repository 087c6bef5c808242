"""logaddexp: log(exp(x) + exp(y)).

max + log1p(exp(-|x - y|)), the second term in two words. Where that sum cancels, exp(x) + exp(y) is near 1
and the result is log1p(expm1(max) + exp(min)), with both exponentials in two words: reduction by ln2 / 16 in
three words, the Taylor series with two-word coefficients up to r**7, a two-word table of 2**(i/16); relative
error 2**-100. Bound: 0.6 ulp plus 2**-100 min(|x|, |y|): one ulp unless the result is below 2**-47 of both
arguments. Source: the identities are elementary; Dekker's arithmetic, see `words`; the arrangement is ours.
"""
from ..expr import fma_value as fma, horner, rare, select
from .exponential import exp_of_words, power_of_two
from .logarithm import log1p_exp, log1p_parts
from .tables import numbers, table
from .words import fast_two_sum, nearest, two_product, two_sum

INF = float("inf")
TERMS = 7                               # of the series have coefficients in two words


def _add(a, b):
    """The sum of two numbers of two words, also where their heads cancel."""
    s, e = two_sum(a[0], b[0])
    return fast_two_sum(s, e + (a[1] + b[1]))


def _multiply(a, b):
    """The product of two numbers of two words."""
    p, e = two_product(a[0], b[0])
    return fast_two_sum(p, e + fma(a[0], b[1], a[1] * b[0]))


def _exp_factors(v):
    """(t, p): exp(v) = t + t p, each in two words, for -700 <= v <= 0; t is a power of 2**(1/16)."""
    high, low, last = numbers("ln2_sixteenth_words")
    word, k = nearest(v, 16.0 * numbers("log2_e")[0])
    q, q_low = two_product(k, v.like(low))
    r, e = two_sum(fma(k, -high, v), -q)
    r = fast_two_sum(r, e - fma(k, last, q_low))
    factorials = numbers("inverse_factorials")           # of 2, 3, ...: two words each
    sums = horner(factorials[2 * TERMS - 2::2], r[0])
    series = sums, sums.like(0.0)
    for n in reversed(range(TERMS - 1)):
        c = v.like(factorials[2 * n]), v.like(factorials[2 * n + 1])
        series = _add(c, _multiply(series, r))
    scale = power_of_two((word << 13).ashr(17))
    entries = word.lookup(table("exp2_16_high"), table("exp2_16_low"))
    return [t * scale for t in entries], _add(r, _multiply(_multiply(r, r), series))


def _near_zero(top, other):
    """log(exp(top) + exp(other)) where the sum is near 1; -1 < top <= 0, other >= -700."""
    t, p = _exp_factors(top)
    minus_one = _add((t[0], t[1]), (top.like(-1.0), top.like(0.0)))
    u, q = _exp_factors(other)
    rest = _add(_multiply(t, p), _add(u, _multiply(u, q)))
    h, l = log1p_parts(*_add(minus_one, rest))
    return h + l


def logaddexp(x, y):
    """Exact at infinities; equal arguments far apart from 0 give their sum with log 2."""
    top = select(x > y, x, y)
    other = select(x > y, y, x)
    d, d_low = two_sum(other, -top)
    v = select(d > -700.0, d, -700.0)
    h, l = log1p_exp(v, select(d > -700.0, d_low, 0.0))
    s, e = two_sum(top, h)
    z = s + (e + l)
    cancelled = z.abs() < top.abs() * 0.125

    def slow():
        near = d > -1000.0
        distant = top + exp_of_words(select(near, d, -1000.0), select(near, d_low, 0.0))
        far = select(x.eq(x) & y.eq(y), select(x.eq(y), x, distant), x + y)
        usable = cancelled & (d >= -700.0)
        precise = _near_zero(select(usable, top, -0.5), select(usable, other, -1.0))
        return (select(usable, precise, far),)
    return rare(~(d >= -700.0) | cancelled, slow, z)
