"""rsqrt, cbrt, hypot: roots with one correction, so that the error is half an ulp and a little.

cbrt: |x| = 2**(3q + j) m, m in [1, 2); m**(-1/3) from a polynomial of degree 5 and two steps of
cubic convergence, then one correction of the root by its residual m - c**3 in two words. hypot:
the root of the exact sum of two squares in two words. Bounds: 0.51 ulp; hypot in binary32 is
correctly rounded for all arguments, since the squares are exact and the root is rounded to odd
before the last rounding.
"""
from ..expr import copysign, fma_value as fma, horner, rare, select, sqrt
from .tables import numbers, table
from .words import two_product, two_sum

INF, NAN = float("inf"), float("nan")


def rsqrt(x):
    small = x < 2.0 ** -1000
    v = select(small, x * 2.0 ** 104, x)
    usual = (v > 0.0) & (v < INF)
    v = select(usual, v, 1.0)
    s = sqrt(v)
    y = 1.0 / s
    low = fma(-s, s, v) * (0.5 * y)
    y = fma(y, fma(-s, y, 1.0) - low * y, y)
    y = select(small, y * 2.0 ** 52, y)
    edge = select(x.eq(0.0), copysign(x.like(INF), x.sign()), select(x.eq(INF), 0.0, NAN))
    return select(usual, y, edge)


def rsqrt_narrow(x):
    return 1.0 / sqrt(x)


def cbrt(x):
    a = x.abs()
    small = a < 2.0 ** -1022
    v = select(small, a * 2.0 ** 54, a)
    exponent = v.bits().lshr(52)
    e = (exponent | 0x4330000000000000).as_float() - 2.0 ** 52
    q = ((e + 0.5) * (1 / 3) - 0.5).rint()                # floor(e / 3)
    j = (e - q * 3.0).to_integer()
    m = ((v.bits() & ((1 << 52) - 1)) | 0x3ff0000000000000).as_float()
    y = horner(numbers("cbrt"), m)
    for _ in range(2):
        t = fma(-m * (y * y), y, 1.0)
        y = fma(y, t * fma(t, 2 / 9, 1 / 3), y)
    c = m * (y * y)                                       # cbrt(m), about 1.5 ulp
    p, p_low = two_product(c, c)
    s, s_low = two_product(p, c)
    c_low = ((m - s) - fma(p_low, c, s_low)) * (y * y * (1 / 3))
    scale = ((q - 341.0).to_integer() + 1023 << 52).as_float()
    g, g_low = j.lookup(table("cbrt_of_power_high"), table("cbrt_of_power_low"))
    h = c * g
    z = h + (fma(c, g, -h) + fma(c_low, g, c * g_low))
    z = z * select(small, scale * 2.0 ** -18, scale)
    return select((a > 0.0) & (a < INF), copysign(z, x.sign()), x)


def _hypot_parts(a, b):
    """(s, l): sqrt(a**2 + b**2) in two words, the sign of l exact where the squares are."""
    p, p_low = two_product(a, a)
    q, q_low = two_product(b, b)
    h, e = two_sum(p, q)
    s = sqrt(h)
    return s, fma(-s, s, h) + (e + (p_low + q_low))


def hypot_narrow(x, y):
    """Exact squares; the root rounded to odd, so that one more rounding to 24 bits is correct."""
    s, rest = _hypot_parts(x.abs(), y.abs())
    word = s.bits()
    one = word.like(1)
    step = select(rest.eq(0.0) | (word & 1).ne(0), 0, select(rest > 0.0, one, -1))
    odd = (word + step).as_float()
    return _hypot_ends(x, y, select(s > 0.0, odd, s))


def _hypot_ends(x, y, z):
    a, b = x.abs(), y.abs()
    return rare(~(a < INF) | ~(b < INF),
                lambda: (select(a.eq(INF) | b.eq(INF), INF, a + b),), z)


def hypot_wide(x, y):
    a, b = x.abs(), y.abs()
    top = select(a > b, a, b)
    scale = select(top > 2.0 ** 500, 2.0 ** -600, select(top < 2.0 ** -400, 2.0 ** 600, 1.0))
    back = select(top > 2.0 ** 500, 2.0 ** 600, select(top < 2.0 ** -400, 2.0 ** -600, 1.0))
    s, rest = _hypot_parts(a * scale, b * scale)
    low = select(s > 0.0, rest * (0.5 / s), 0.0)
    return _hypot_ends(x, y, (s + low) * back)
