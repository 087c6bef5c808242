"""lgamma, gamma and digamma.

lgamma: from 8 on, Stirling's series. Below, x is moved to y = 2 + e, |e| <= 1/2, by x lgamma(x) =
lgamma(x + 1), the product of the factors and its logarithm in two words; lgamma(2 + e) = e P(e).
For x < 0 the reflection formula. gamma: exp of lgamma in two words. digamma: from 8 on, the
asymptotic series; on [1, 2] (x - root) P(x), the root in three words; the recurrence between and
below; reflection for x < 0. Bounds: lgamma 0.7 ulp, digamma 0.85, gamma 0.75.
For x < 0 lgamma and digamma have zeros that the reflection formula reaches by cancellation:
another 2**-54 (lgamma) or 2**-51 (digamma) there. Source: Abramowitz & Stegun 6.1.17, 6.1.41,
6.3.7, 6.3.18; the polynomials are ours.
"""
from ..expr import fma_value as fma, horner, rare, select, vote
from .exponential import exp_of_words
from .logarithm import log_any_parts
from .tables import numbers
from .words import divide, fast_two_sum, horner_step, multiply, two_product, two_sum

INF, NAN = float("inf"), float("nan")
STEPS = 6


def _plus(h, l, g, m):
    """(h + l) + (g + m) in two words."""
    s, e = two_sum(h, g)
    return fast_two_sum(s, e + (l + m))


# ---------------------------------------------------------------- lgamma

def _product_down(x):
    """(y, p, p_low): y = x - m < 2.5, p + p_low = (x - 1) ... (x - m), for 0 < x < 8."""
    y, p, p_low = x, x.like(1.0), x.like(0.0)
    for _ in range(STEPS):
        more = y >= 2.5
        y = select(more, y - 1.0, y)
        q, q_low = two_product(p, y)
        p_low = select(more, fma(p_low, y, q_low), p_low)
        p = select(more, q, p)
    return y, p, p_low


def _small_lgamma(x):
    """(h, l): lgamma on (0, 8)."""
    y, p, p_low = _product_down(x)
    low, middle = x < 0.5, x < 1.5
    e = select(low, x, select(middle, x - 1.0, y - 2.0))
    s, s_low = two_sum(x, x.like(1.0))
    f, f_low = two_product(x, s)
    p = select(low, f, select(middle, x, p))
    p_low = select(low, fma(x, s_low, f_low), select(middle, 0.0, p_low))
    h, l = log_any_parts(p, p_low)
    h, l = select(middle, -h, h), select(middle, -l, l)
    q = e * horner(numbers("loggamma")[2:], e)
    second, second_low = numbers("loggamma_second")
    s, s_low = fast_two_sum(q.like(second), q)
    s, s_low = horner_step(e, s, s_low + second_low, numbers("loggamma_head"))
    p, p_low = two_product(e, s)
    return _plus(h, l, p, fma(e, s_low, p_low))


def _stirling(x):
    """(h, l): lgamma for x >= 8."""
    log_h, log_l = log_any_parts(x, None)
    y, y_low = two_sum(x, x.like(-0.5))
    p, p_low = two_product(y, log_h)
    p_low = fma(y, log_l, fma(y_low, log_h, p_low))
    half, half_low = numbers("log_root_2pi")
    r = 1.0 / x
    series = fma(r, horner(numbers("stirling"), r * r), half_low)
    h, l = _plus(p, p_low, -x, x.like(0.0))
    return _plus(h, l, x.like(half), series)


def _by_size(x, small, large):
    """The two words that `small` gives of 0 < x < 8, or `large` of the others."""
    far = x >= 8.0
    h, l = vote(~far, lambda: small(select(far, 4.0, x)), x, x)
    return vote(far, lambda: large(select(far, x, 16.0)), h, l)


def sine_pi_parts(a):
    """(h, l): sin(pi r) with r the distance of a from the nearest integer, and r; a >= 0."""
    r = a - a.rint()
    b = r.abs()
    pi, pi_low = numbers("pi")
    swap = b > 0.25
    d = select(swap, 0.5 - b, b)
    t, t_low = multiply(d, d.like(0.0), (pi, pi_low))
    z = t * t
    s, s_low = fast_two_sum(t, fma(t * z, horner(numbers("sin")[1:], z), fma(z * t_low, -0.5, t_low)))
    w, w_low = two_product(t, t)
    c, c_low = two_sum(t.like(1.0), w * -0.5)
    c_low = c_low + fma(z * z, horner(numbers("cos")[2:], z), fma(w_low, -0.5, -(t * t_low)))
    c, c_low = fast_two_sum(c, c_low)
    return (select(swap, c, s), select(swap, c_low, s_low)), (select(swap, s, c),
                                                              select(swap, s_low, c_low)), r


def _gamma_parts(x):
    """(usual, whole, r, h, l): h + l = log|gamma(x)| at `usual` arguments, r from |x| to the nearest integer.

    Usual: 2**-60 <= |x| < 2**1015. `whole`: |x| is an integer; h and l mean nothing there if x < 0.
    """
    a = x.abs()
    usual = (a >= 2.0 ** -60) & (a < 2.0 ** 1015)
    b = select(usual, a, 1.0)
    h, l = _by_size(b, _small_lgamma, _stirling)
    r = b - b.rint()
    whole = r.eq(0.0)

    def mirrored():
        (s, s_low), _, _ = sine_pi_parts(b)
        s, s_low = select(whole, 1.0, s), select(whole, 0.0, s_low)
        p, p_low = two_product(b, s)
        g, m = log_any_parts(p, fma(b, s_low, p_low))
        log_pi, log_pi_low = numbers("log_pi")
        g, m = _plus(g, m, h, l)
        return _plus(h.like(log_pi), h.like(log_pi_low), -g, -m)
    return usual, whole, r, *vote(x < 0.0, mirrored, h, l)


def lgamma(x):
    """log |gamma(x)|; +inf at 0 and the negative integers and at both infinities."""
    usual, whole, _, h, l = _gamma_parts(x)
    y = select((x < 0.0) & whole, INF, h + l)
    y = select(x > 2.5563481638716905e305, INF, y)
    y = select(usual, y, select(x.eq(x), INF, NAN))
    a = x.abs()
    tiny = (a > 0.0) & (a < 2.0 ** -60)

    def slow():
        h, l = log_any_parts(select(tiny, a, 1.0), None)
        return (-(h + l),)
    return rare(tiny, slow, y)


def gamma(x):
    """exp(lgamma(x)) with its sign; NaN at the negative integers and at -inf, an infinity at a zero."""
    usual, whole, r, h, l = _gamma_parts(x)
    size = vote(usual, lambda: (exp_of_words(h, l),), x)
    a = x.abs()
    floor = a - r - select(r < 0.0, 1.0, 0.0)
    half = floor * 0.5
    even = half.rint().eq(half)
    y = select(x < 0.0, select(whole, NAN, select(even, -size, size)), size)
    y = select(usual, y, select(x > 0.0, INF, NAN))
    return rare(a < 2.0 ** -60, lambda: (1.0 / x,), y)


# ---------------------------------------------------------------- digamma

def _reciprocals_down(x):
    """(y, n, n_low, d, d_low): y = x - m < 2, n / d = 1 / (x - 1) + ... + 1 / (x - m), for 0 < x < 8."""
    y, zero = x, x.like(0.0)
    n, n_low, d, d_low = zero, zero, x.like(1.0), zero
    for _ in range(STEPS):
        more = y >= 2.0
        y = select(more, y - 1.0, y)
        p, p_low = two_product(n, y)
        s, e = two_sum(p, d)
        n_low = select(more, e + fma(n_low, y, p_low + d_low), n_low)
        n = select(more, s, n)
        q, q_low = two_product(d, y)
        d_low = select(more, fma(d_low, y, q_low), d_low)
        d = select(more, q, d)
    return y, n, n_low, d, d_low


def _small_digamma(x):
    """(h, l): digamma on (0, 8)."""
    y, n, n_low, d, d_low = _reciprocals_down(x)
    up = x < 1.0
    n, n_low = select(up, -1.0, n), select(up, 0.0, n_low)
    d, d_low = select(up, x, d), select(up, 0.0, d_low)
    e = select(up, x - 0.5, y - 1.5)
    root, root_low, root_last = numbers("digamma_root")
    base, base_low = two_sum(select(up, x, y - 1.0), x.like(1.0 - root))
    base_low = base_low - root_low - root_last
    u = horner(numbers("digamma")[1:], e)
    g, g_low = horner_step(e, u, u.like(0.0), numbers("digamma_head"))
    p, p_low = two_product(base, g)
    return _plus(p, fma(base, g_low, fma(base_low, g, p_low)), *divide(n, n_low, d, d_low))


def _large_digamma(x):
    """(h, l): digamma for x >= 8."""
    h, l = log_any_parts(x, None)
    q, q_low = divide(x.like(-0.5), x.like(0.0), x, x.like(0.0))
    r = 1.0 / x
    z = r * r
    return _plus(h, l, q, fma(z, horner(numbers("digamma_tail"), z), q_low))


def digamma(x):
    """The logarithmic derivative of gamma; NaN at the negative integers, -inf at +0, inf at -0."""
    a = x.abs()
    usual = (a > 2.0 ** -1000) & (a < 2.0 ** 52)
    b = select(usual, a, 1.0)
    h, l = _by_size(b, _small_digamma, _large_digamma)

    def mirrored():
        (s, s_low), (c, c_low), r = sine_pi_parts(b)
        whole = r.eq(0.0)
        n, n_low = multiply(c, c_low, numbers("pi"))
        s, s_low = select(whole, 1.0, s), select(whole, 0.0, s_low)
        q, q_low = divide(n, n_low, s, s_low)
        q, q_low = select(r < 0.0, -q, q), select(r < 0.0, -q_low, q_low)
        inverse, inverse_low = divide(b.like(1.0), b.like(0.0), b, b.like(0.0))
        g, m = _plus(h, l, inverse, inverse_low)
        g, m = _plus(g, m, q, q_low)
        return (select(whole, NAN, g + m),)

    def edge():
        v, v_low = log_any_parts(select(usual, 1.0, select((x > 1.0) & (x < INF), x, 1.0)), None)
        far = select(x > 1.0, select(x.eq(INF), INF, v + v_low), NAN)
        return (select(a <= 2.0 ** -1000, -1.0 / x, far),)
    return rare(~usual, edge, vote(x < 0.0, mirrored, h + l))
