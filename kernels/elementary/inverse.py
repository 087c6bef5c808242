"""atan, atan2, asin, acos.

atan: with n / d = min / max of |y| and |x|, c = k / 8 the nearest eighth, atan(n / d) = atan(c) +
atan(q), q = (n - c d) / (d + c n), |q| <= 1/16; atan(c) from a table in two words, the polynomial
has degree 6 in q**2. asin, acos: a polynomial in x**2 up to 1/2; beyond, pi/2 - 2 asin(sqrt((1 -
x) / 2)) with the root in two words. Bounds: atan, atan2 0.51 ulp, asin and acos 0.65. Source:
fdlibm's identities; the tables are ours.
"""
from ..expr import copysign, fma_value as fma, horner, minimum, rare, select, sqrt
from .tables import numbers, table
from .words import divide, fast_two_sum, nearest, two_product, two_sum

INF, NAN = float("inf"), float("nan")


def _angle_parts(n, d, ratio):
    """(h, l) = atan(n / d) for 0 <= n <= d, `ratio` about n / d."""
    word, k = nearest(ratio, 8.0)
    c = k * 0.125
    p, p_low = two_product(c, d)
    nh, nl = two_sum(n, -p)
    p2, p2_low = two_product(c, n)
    dh, dl = fast_two_sum(d, p2)
    q, ql = divide(nh, nl - p_low, dh, dl + p2_low)
    high, low = word.lookup(table("atan_high"), table("atan_low"))
    z = q * q
    tail = fma(q * z, horner(numbers("atan")[1:], z), ql + low)
    h, l = fast_two_sum(high, q)
    return h, l + tail


def _turned(h, l, swapped, behind):
    """The angle in the upper half plane from that in the first octave, in one word."""
    pi, pi_low = numbers("pi")
    half, half_low = numbers("half_pi")[:2]
    base = select(swapped, half, select(behind, pi, 0.0))
    base_low = select(swapped, half_low, select(behind, pi_low, 0.0))
    back = swapped ^ behind
    s, e = fast_two_sum(base, select(back, -h, h))
    return s + (e + (base_low + select(back, -l, l)))


def atan_narrow(x):
    half, half_low = numbers("half_pi")[:2]
    a = minimum(x.abs(), 2.0 ** 100)
    swapped = a > 1.0
    n, d = select(swapped, 1.0, a), select(swapped, a, 1.0)
    word, k = nearest((n.f32() / d.f32()).f64(), 8.0)
    c = k * 0.125
    q = fma(-c, d, n) / fma(c, n, d)
    z = q * q
    p = fma(q * z, horner(numbers("atan")[1:], z), q)
    y = word.lookup(table("atan_high")) + p
    return copysign(select(swapped, half - (y - half_low), y), x.sign())


def atan_wide(x):
    a = minimum(x.abs(), 2.0 ** 100)
    swapped = a > 1.0
    n, d = select(swapped, 1.0, a), select(swapped, a, 1.0)
    h, l = _angle_parts(n, d, n / d)
    y = select(swapped, _turned(h, l, swapped, swapped.like(False)), h + l)
    return copysign(select(a < 2.0 ** -30, a, y), x.sign())


def atan2(y, x):
    """The angle of (x, y); signed zeros and infinities as in IEEE 754 `atan2`."""
    a, b = y.abs(), x.abs()
    swapped = a > b
    n, d = select(swapped, b, a), select(swapped, a, b)
    behind = x.bits() < 0
    scale = select(d > 2.0 ** 900, 2.0 ** -600, select(d < 2.0 ** -400, 2.0 ** 600, 1.0))
    n, d = n * scale, d * scale
    ratio = n / d
    h, l = _angle_parts(n, d, ratio)
    z = _turned(h, l, swapped, behind)
    tiny = (ratio < 2.0 ** -30) & ~swapped & ~behind

    def slow():
        both = n.eq(d)
        h = select(n.eq(0.0), 0.0, select(both, numbers("atan_high")[8], 0.0))
        l = select(n.eq(0.0), 0.0, select(both, numbers("atan_low")[8], 0.0))
        edge = _turned(h, l, swapped, behind)
        exact = d.eq(0.0) | d.eq(INF) | n.eq(0.0)
        v = select(exact, edge, select(tiny, ratio, z))
        return (select(x.eq(x) & y.eq(y), v, NAN),)
    result = rare(tiny | ~(d > 0.0) | ~(d < INF) | n.eq(0.0) | x.ne(x) | y.ne(y), slow, z)
    return copysign(result, y.sign())


# ---------------------------------------------------------------- asin, acos

def _asin_parts(x):
    """(near, h, l, t): h + l + t is asin|x| up to 1/2 (l = 0), else asin(sqrt((1 - |x|) / 2))."""
    a = x.abs()
    near = a <= 0.5
    w = (1.0 - a) * 0.5
    s = sqrt(w)
    s_low = select(w > 0.0, fma(-s, s, w) * (0.5 / s), 0.0)
    h, l = select(near, a, s), select(near, 0.0, s_low)
    z = select(near, a * a, w)
    return near, h, l, fma(h * z, horner(numbers("asin")[1:], z), l)


def asin(x):
    near, h, _, t = _asin_parts(x)
    half, half_low = numbers("half_pi")[:2]
    s, e = fast_two_sum(h.like(half), h * -2.0)
    y = select(near, h + t, s + (e + fma(t, -2.0, half_low)))
    y = select(x.abs() < 2.0 ** -30, x.abs(), y)
    return copysign(select(x.abs() <= 1.0, y, NAN), x.sign())


def acos(x):
    near, h, _, t = _asin_parts(x)
    half, half_low = numbers("half_pi")[:2]
    pi, pi_low = numbers("pi")
    negative = x < 0.0
    sh, st = select(negative, -h, h), select(negative, -t, t)
    s, e = fast_two_sum(h.like(half), -sh)
    middle = s + (e + (half_low - st))
    twice, low = h * 2.0, t * 2.0
    s, e = fast_two_sum(h.like(pi), -twice)
    outer = select(negative, s + (e + (pi_low - low)), twice + low)
    return select(x.abs() <= 1.0, select(near, middle, outer), NAN)
