"""sin, cos, tan, sinpi, cospi.

x = k pi/2 + r, or k pi/8 + r for the binary64 sin and cos, whose sixteen sines of k pi/8 a register table has.
Up to 2**24: pi/2 in three words; a - k P1 is exact by fma and k P2 a product of few bits, so r comes out in two
words. Beyond: Payne and Hanek's reduction with a table of 2/pi * 2**e mod 4 in four words per exponent, three for
binary32. sinpi and cospi reduce exactly. Polynomials in r**2, of degree 8, or 4 and 5 for the table. Bounds: sin,
cos 0.72 ulp, tan 0.85, cospi and sinpi 0.75. Source: Payne & Hanek, SIGNUM 18, 1983; Cody & Waite 1980; the
arrangement with fma is ours.
"""
from ..expr import fma_value as fma, horner, maximum, rare, select
from .tables import numbers, table
from .words import LEAST, divide, fast_two_sum, nearest, two_product, two_sum

INF, NAN = float("inf"), float("nan")
EXPONENT_0 = 1042                       # biased exponent of the first table entry


# ---------------------------------------------------------------- reduction

def _turns(a, count):
    """(s, e1, e2, h, l) for a >= 2**19: s + e1 + e2 + l[1] + h[2] + ... is a * 2/pi mod 4, by `count` words of its
    exponent; |s| <= 2 and the products of the words are h + l."""
    i = a.bits().lshr(52) - EXPONENT_0
    i = select(i < 0, 0, select(i > 1004, 1004, i))
    m = ((a.bits() & ((1 << 52) - 1)) | (1075 << 52)).as_float()
    words = i.lookup(*(table(f"two_over_pi_{j}") for j in range(count)))
    h, l = zip(*(two_product(m, w) for w in words))
    s1, e1 = two_sum(fma((h[0] * 0.25).rint(), -4.0, h[0]), l[0])
    s2, e2 = two_sum(s1, h[1])
    return s2, e1, e2, h, l


def _reduce_huge(a, parts=1):
    """`_reduce` for a >= 2**19, by four words of 2/pi; r is NaN for inf and NaN."""
    p1, p2, _ = numbers("half_pi")
    s2, e1, e2, h, l = _turns(a, 4)
    word, n = nearest(s2, parts)
    c1, d1 = two_sum(e1, e2)
    c2, d2 = two_sum(l[1], h[2])
    c3, d3 = two_sum(c1, c2)
    g, low = two_sum(s2 - n * (1 / parts), c3)
    g, low = fast_two_sum(g, low + (d1 + d2 + d3 + l[2] + h[3]))
    r = select(a < INF, g * p1, NAN)
    return *fast_two_sum(r, fma(g, p1, -r) + fma(g, p2, low * p1)), word


def _reduce(a, parts=1):
    """(r, low, word): a = k pi / (2 parts) + r + low for a >= 0, the low bits of k in `word`."""
    p1, p2, p3 = (p / parts for p in numbers("half_pi_steps"))
    word, k = nearest(a, parts * numbers("two_over_pi")[0])
    u = fma(k, -p1, a)
    r = fma(k, -p2, u)
    low = fma(k, -p3, fma(k, -p2, u - r))
    return rare(~(a <= 2.0 ** 24), lambda: _reduce_huge(a, parts), r, low, word)


def _reduce_narrow(x):
    """(r, word) with one word for r: enough for a binary32 argument."""
    p1, p2, _ = numbers("half_pi")
    a = x.abs()
    word, k = nearest(a, numbers("two_over_pi")[0])
    r = fma(k, -p2, fma(k, -p1, a))

    def huge():
        s, e1, e2, h, l = _turns(a, 3)
        word, n = nearest(s, 1.0)
        turn = (s - n) + (e1 + (e2 + (l[1] + h[2])))
        return select(a < INF, turn * p1, NAN), word
    return rare(~(a <= 2.0 ** 19), huge, r, word)


# ---------------------------------------------------------------- polynomials

def _sine(r, low, z):
    """(h, t): sin(r + low) = h + t, h = r."""
    return r, fma(r * z, horner(numbers("sin")[1:], z), fma(z * low, -0.5, low))


def _cosine(r, low, z):
    """(h, t): cos(r + low) = h + t, h = 1 - r**2 / 2 rounded."""
    half = z * 0.5
    h = 1.0 - half
    t = fma(fma(r, r, -z), -0.5, (1.0 - h) - half) - r * low
    return h, fma(z * z, horner(numbers("cos")[2:], z), t)


def _quadrant(word, y):
    return (y.bits() ^ ((word & 2) << 62)).as_float()


def _signed(y, x):
    return (y.bits() ^ x.sign()).as_float()


def _wide(r, low, word):
    z = r * r
    (s, s_low), (c, c_low) = _sine(r, low, z), _cosine(r, low, z)
    return _quadrant(word, select((word & 1).ne(0), c + c_low, s + s_low))


def _narrow(r, word):
    z = r * r
    s = fma(r * z, horner(numbers("sin")[1:], z), r)
    c = fma(z, horner(numbers("cos")[1:], z), 1.0)
    return _quadrant(word, select((word & 1).ne(0), c, s))


def _finite(y, x):
    return select(x.abs() < INF, y, NAN)


# ---------------------------------------------------------------- functions

def sin_narrow(x):
    return _signed(_narrow(*_reduce_narrow(x)), x)


def cos_narrow(x):
    r, word = _reduce_narrow(x)
    return _narrow(r, word + 1)


def _circle(r, low, word):
    """sin(k pi/8 + r + low): S + C r exactly, the rest of C sin r + S (cos r - 1) in one word."""
    s, rest = word.lookup(table("sin_16_high"), table("sin_16_low"))
    c = (word + 4).lookup(table("sin_16_high"))
    z = r * r
    h = fma(c, r, s)
    rest = fma(c, r, s - h) + rest
    sine = fma(r * z, horner(numbers("sin_sixteenth")[1:], z), low)
    return h + fma(c, sine, fma(s * z, horner(numbers("cos_sixteenth")[1:], z), rest))


def sin_wide(x):
    """|sin x| <= |x| for the arguments that are set to `LEAST`."""
    size = x.abs()
    y = _circle(*_reduce(maximum(size, LEAST), 4))
    return _signed(select(y > size, size, y), x)


def cos_wide(x):
    r, low, word = _reduce(x.abs(), 4)
    return _circle(r, low, word + 4)


def tan(x):
    """sin / cos in two words, or -cos / sin in odd quadrants."""
    r, low, word = _reduce(x.abs())
    z = r * r
    (s, t), (c, d) = _sine(r, low, z), _cosine(r, low, z)
    s, t = fast_two_sum(s, t)
    c, d = fast_two_sum(c, d)
    odd = (word & 1).ne(0)
    q, q_low = divide(select(odd, -c, s), select(odd, -d, t), select(odd, s, c), select(odd, t, d))
    y = select(x.abs() < 2.0 ** -30, x.abs(), q + q_low)
    return _signed(y, x)


def _reduce_pi(x):
    """(r, low, word): pi |x| = k pi/2 + r + low; the reduction of |x| is exact."""
    pi, pi_low = numbers("pi")
    a = x.abs()
    b = fma((a * 0.5).rint(), -2.0, a)
    word, k = nearest(b, 2.0)
    d = fma(k, -0.5, b)
    r = d * pi
    return r, fma(d, pi, -r) + d * pi_low, word


def _positive_zero(y):
    return select(y.eq(0.0), 0.0, y)


def sinpi(x):
    return _finite(_signed(_positive_zero(_wide(*_reduce_pi(x))), x), x)


def cospi(x):
    r, low, word = _reduce_pi(x)
    return _finite(_positive_zero(_wide(r, low, word + 1)), x)
