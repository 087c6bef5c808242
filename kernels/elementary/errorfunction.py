"""erf, erfc and the two forms of gelu.

erf in binary64: erf(a) / a (to 3/4) or erf(a) by sixteen polynomials of degree 12 on intervals of 3/8, the
constant in two words; their coefficients, some two to a word, are permuted in registers. In two words:
c = k / 128 nearest to |x|, erf(c + d) = erf(c) + slope(c) d (1 - c d + (2 c**2 - 1) d**2 / 3 - ...), the Taylor
series, whose coefficients are Hermite polynomials of c; erf(c) and the slope come from a table.
erfc above 1.5: exp(-x**2) P(t) / (1 + 2x), t = (x - 4) / (x + 4), P of degree 22 with its first coefficient
in two words, the exponential of the exact square; below, 1 - erf in two words. gelu(x) = x erfc(-x / sqrt 2) / 2
uses x**2 / 2, so that the rounding of x / sqrt 2 is not magnified; gelu_tanh(x) = x logistic(2u).
Bounds: erf 0.72 ulp, erfc 0.65, gelu 0.7; subnormal results 0.8. Source: Shepherd & Laframboise, Math. Comp.
36, 1981 (the form of erfc); ARM Optimized Routines (the form of erf); the polynomials and tables are ours.
"""
from ..expr import copysign, fma_value as fma, horner, maximum, minimum, rare, select, vote
from .exponential import exp_small, expm1_parts, logistic_parts, power_of_two
from .tables import numbers, table
from .words import (LEAST, TINY, divide, fast_two_sum, horner_step, multiple, multiply, nearest, two_product,
                    two_sum)


def _hermite_series(c, d, terms):
    """d (-c + d ((2 c**2 - 1) / 3 + ...)): erf's Taylor series from its second term on."""
    w = c * c
    odd = [-1.0, horner((0.5, -1 / 3), w), horner((-1 / 6, 2 / 9, -2 / 45), w)]
    even = [horner((-1 / 3, 2 / 3), w), horner((0.1, -0.4, 2 / 15), w),
            horner((-1 / 42, 1 / 7, -2 / 21, 4 / 315), w)]
    coefficients = [c * odd[0], even[0], c * odd[1], even[1], c * odd[2], even[2]]
    return d * horner(coefficients[:terms], d)


def _grid(x):
    a = minimum(x.abs(), 6.0)
    word, k = nearest(a, 128.0)
    c = k * (1 / 128)
    return word, c, a - c


def erf_narrow(x):
    i, c, d = _grid(x)
    slope, value = i.lookup(table("erf_slope"), table("erf_high"))
    step = slope * d
    y = value + fma(step, _hermite_series(c, d, 5), step)
    return copysign(y, x.sign())


def erf_parts(x):
    """(h, l) = erf|x| in two words, absolute error about 2**-64."""
    i, c, d = _grid(x)
    value, value_low, slope, slope_low = i.lookup(
        table("erf_high"), table("erf_low"), table("erf_slope"), table("erf_slope_low"))
    step, step_low = two_product(slope, d)
    h, l = two_sum(value, step)
    rest = fma(step, _hermite_series(c, d, 6), fma(slope_low, d, step_low) + value_low)
    return fast_two_sum(h, l + rest)


def erf_wide(x):
    """w (c + t q(t)), w = |x| in the first two intervals, then 1; t is the distance from the interval's middle."""
    size = x.abs()
    a = maximum(minimum(size, 5.95), LEAST)
    b = a - 3 / 16
    word, k = nearest(b, 8 / 3)
    t = fma(k, -3 / 8, b)
    w = select(k > 1.0, 1.0, a)
    square = t * t
    c12, c10, c8, c7 = _pieces(word, 12, 10, 8, 7)
    odd, even = fma(_last_bits(c12, 32), square, _last_bits(c10, 32)), fma(c12, square, c10)
    odd, even = fma(odd, square, c7), fma(even, square, c8)
    for powers in ((5, 6, 3, 4), (1, 2, 0)):            # few tables are in registers at a time
        c = _pieces(word, *powers)
        for j in range(0, len(powers) - 1, 2):
            odd, even = fma(odd, square, c[j]), fma(even, square, c[j + 1])
    y = fma(w, c[2], w * fma(fma(even, t, odd), t, _last_bits(c8, 22)))
    tiny = rare(size < TINY, lambda: (multiple(minimum(size, TINY), *numbers("two_over_root_pi")),), y)
    return copysign(tiny, x.sign())


def _pieces(word, *powers):
    return word.lookup(*(table(f"erf_piece_{k}") for k in powers))


def _last_bits(x, bits):
    """The number whose word begins with the last `bits` bits of that of `x`."""
    return (x.bits() << 64 - bits).as_float()


# ---------------------------------------------------------------- erfc

def _tail(a, a_low, square, square_low):
    """(q, l, k): erfc(a + a_low) = (q + l) 2**k for a >= 1.4, given its square in two words."""
    word, h, l = expm1_parts(-square, -square_low)
    k = (word << 13).ashr(13)
    s, e = fast_two_sum(h.like(1.0), h)
    e = e + l
    t = (a - 4.0) / (a + 4.0)
    q = horner(numbers("erfcx")[1:], t)
    p, p_low = horner_step(t, q, q.like(0.0), numbers("erfcx_head"))
    n, n_low = two_product(s, p)
    d, d_low = fast_two_sum(a.like(1.0), a * 2.0)
    return *divide(n, n_low + fma(s, p_low, e * p), d, d_low + a_low * 2.0), k


def _two_steps(y, k):
    """y * 2**k, exact unless the result is subnormal."""
    half = k.ashr(1)
    return y * power_of_two(half) * power_of_two(k - half)


def erfc(x):
    def far():
        a = minimum(x.abs(), 28.0)
        q, q_low, k = _tail(a, a.like(0.0), *two_product(a, a))
        return (_two_steps(q + q_low, k),)

    h, l = erf_parts(x)
    sign = x.sign() ^ -(1 << 63)
    near, near_low = two_sum(x.like(1.0), (h.bits() ^ sign).as_float())
    return vote(x > 1.5, far, near + (near_low + (l.bits() ^ sign).as_float()))


# ---------------------------------------------------------------- gelu

def gelu_erf(x):
    """x erfc(-x / sqrt 2) / 2: the Gaussian error linear unit; -0 at -inf."""
    v = maximum(x, -40.0)
    b = minimum(v.abs(), 60.0)
    root, root_low = numbers("root_half")
    a, a_low = b * root, fma(b, root, -(b * root)) + b * root_low

    def far():
        square, square_low = two_product(b, b)
        return (_scaled_product(v * 0.5, *_tail(a, a_low, square * 0.5, square_low * 0.5)),)

    h, l = erf_parts(a)
    slope = nearest(minimum(a, 6.0), 128.0)[0]
    l = fma(slope.lookup(table("erf_slope")), a_low, l)
    sign = v.sign()
    near, near_low = two_sum(a.like(1.0), (h.bits() ^ sign).as_float())
    near_low = near_low + (l.bits() ^ sign).as_float()
    p, p_low = two_product(v * 0.5, near)
    y = vote(v < -2.0, far, p + fma(v * 0.5, near_low, p_low))
    return select((x > 40.0) | x.eq(0.0), x, y)


def _scaled_product(v, q, q_low, k):
    """v (q + q_low) 2**k."""
    p, p_low = two_product(v, q)
    return _two_steps(p + fma(v, q_low, p_low), k)


def gelu_tanh(x):
    """x logistic(2u), u = sqrt(2 / pi) (x + 0.044715 x**3): the tanh form; -0 at -inf."""
    v = maximum(minimum(x, 30.0), -30.0)
    c, c_low, d, d_low = numbers("gelu")
    z, z_low = two_product(v, v)
    w, w_low = multiply(z, z_low, (d, d_low))
    f, f_low = two_sum(w.like(c), w)
    f_low = f_low + (w_low + c_low)
    r, r_low = two_product(v, f)
    tail = select(r.abs() < 750.0, fma(v, f_low, r_low), 0.0)
    q, q_low, finish = logistic_parts(r, tail)
    p, p_low = two_product(maximum(x, -30.0), q)
    y = finish(p + fma(v, q_low, p_low))
    return select((x > 30.0) | x.eq(0.0), x, y)


def _halved(x, y):
    """`y`, but just above x / 2 for tiny x, where x / 2 can be a midpoint of subnormal results."""
    half = x * 0.5
    above = (half.bits() + (1 - (x.bits().lshr(63) << 1))).as_float()
    return select((x.abs() < 2.0 ** -60) & x.ne(0.0), above, y)


# ---------------------------------------------------------------- narrow bodies

def _tail_narrow(a, square):
    """erfc(a) to about 2**-50 for 0 <= a <= 10.2, given its exact square; one division."""
    w = a * 2.0 + 1.0
    reciprocal = 1.0 / ((a + 4.0) * w)
    t = (a - 4.0) * w * reciprocal
    return exp_small(-square) * horner(numbers("erfcx_narrow"), t) * ((a + 4.0) * reciprocal)


def erfc_narrow(x):
    a = minimum(x.abs(), 10.2)
    tail = _tail_narrow(a, a * a)
    return select(x < 0.0, 2.0 - tail, tail)


def gelu_erf_narrow(x):
    """x Q or x (1 - Q), Q = erfc(|x| / sqrt 2) / 2: no cancellation."""
    b = minimum(x.abs(), 14.4)
    q = _tail_narrow(b * numbers("root_half")[0], b * b * 0.5) * 0.5
    return _gelu_ends(x, maximum(x, -14.4) * select(x < 0.0, q, 1.0 - q))


def gelu_tanh_narrow(x):
    """x / (1 + exp(-2u)), with the rounding errors of 2u kept: it can be 100."""
    v = maximum(minimum(x, 15.0), -15.0)
    c, c_low, d, d_low = numbers("gelu")
    z = v * v
    w = z * d
    f, f_low = two_sum(w.like(c), w)
    f_low = f_low + (fma(z, d, -w) + fma(z, d_low, c_low))
    r = v * f
    e = exp_small(-maximum(minimum(r, 150.0), -150.0), -fma(v, f_low, fma(v, f, -r)))
    return _gelu_ends(x, maximum(x, -15.0) / (1.0 + e))


def _gelu_ends(x, y):
    return _halved(x, select((x > 14.0) | x.eq(0.0), x, y))
