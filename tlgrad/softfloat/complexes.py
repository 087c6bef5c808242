"""Complex numbers over any format: an element is two words, real part first.

Every operation is real operations in one stated order, each rounded once:

    (a + bi) + (c + di)   (a + c) + (b + d) i
    (a + bi) (c + di)     (a c - b d) + (a d + b c) i
    (a + bi) / (c + di)   Smith's algorithm (CACM 5, 1962): with r = d / c and s = c + d r for |c| >= |d|,
                          (a + b r) / s + ((b - a r) / s) i; the roles of c and d change otherwise
    |a + bi|              hypot(a, b)
    exp, log, sqrt, ...   the formulas of `FUNCTIONS`, over the correctly rounded real functions
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlgrad.softfloat import array, text
from tlgrad.softfloat.format import Binary
from tlgrad.softfloat.storage import as_words, dtype_of, of_words, to_floats
from tlgrad.softfloat.value import Float


@dataclass(frozen=True, slots=True)
class ComplexFloat:
    """One complex number of a format, for exact inspection and printing."""

    real: Float
    imag: Float

    def __str__(self):
        return format(self)

    def __format__(self, spec):
        """Both parts in the format of a part, as in ``f"{z:.40f}"``."""
        imag = format(self.imag, spec)
        return f"{self.real:{spec}}{'' if imag.startswith(('-', '+')) else '+'}{imag}j"

    def __complex__(self):
        return complex(float(self.real), float(self.imag))


def storage(fmt: Binary) -> np.dtype:
    """The dtype of complex numbers over a format: one field of real words, then imaginary ones."""
    real = dtype_of(fmt)
    size, count = min(real.itemsize, 8), -(-real.itemsize // 8)
    return np.dtype([(f"Complex({fmt!r})", f"<u{size}", (2 * count,))])


def parts(x: np.ndarray, fmt: Binary):
    """The real and the imaginary part, as arrays of words of the format."""
    words = np.asarray(x, order="C").reshape(x.shape + (1,)).view(f"<u{min(fmt.itemsize, 8)}")
    halves = words.reshape(x.shape + (2, -(-fmt.itemsize // 8)))
    if fmt.itemsize <= 8:
        return tuple(of_words(halves[..., k, 0], fmt) for k in (0, 1))
    return tuple(of_words(halves[..., k, :], fmt) for k in (0, 1))


def join(re: np.ndarray, im: np.ndarray, fmt: Binary) -> np.ndarray:
    """The complex array of two real ones, which broadcast together."""
    re, im = np.broadcast_arrays(re, im)
    count = -(-fmt.itemsize // 8)
    stacked = np.concatenate([w.reshape(re.shape + (count,)) for w in map(as_words, (re, im))], axis=-1)
    return np.asarray(stacked, order="C").view(storage(fmt)).reshape(re.shape)


def numbers(x: np.ndarray, fmt: Binary) -> np.ndarray:
    """An object array of `ComplexFloat`."""
    out = np.empty(x.size, dtype=object)
    out[:] = [ComplexFloat(a, b) for a, b in zip(*(to_floats(p).ravel() for p in parts(x, fmt)))]
    return out.reshape(x.shape)


def parse(fmt: Binary, source: str) -> tuple[int, int]:
    """The words of complex text such as "0.1-2j": each part read exactly, rounded once.

    >>> from tlgrad.softfloat.format import binary16
    >>> [hex(w) for w in parse(binary16, "1-2j")]
    ['0x3c00', '0xc000']
    """
    plain = source.strip().lower().strip("()").replace(" ", "")
    if not plain.endswith("j"):
        return text.parse(fmt, plain), fmt.zero()
    body = plain[:-1]
    cut = max((k for k in range(1, len(body)) if body[k] in "+-" and body[k - 1] not in "ep"),
              default=0)
    imaginary = body[cut:] + ("1" if body[cut:] in ("", "+", "-") else "")
    return (text.parse(fmt, body[:cut]) if cut else fmt.zero()), text.parse(fmt, imaginary)


class _Real:
    """Arrays of words with operators, so that formulas read as formulas."""

    def __init__(self, words, fmt):
        self.words, self.fmt = words, fmt

    def _apply(self, name, *others):
        return _Real(array.evaluate(name, self.fmt, self.words, *(o.words for o in others)), self.fmt)

    def __getattr__(self, name):
        return lambda *others: self._apply(name, *others)

    def number(self, value):
        """A Python number as a `_Real` of shape ()."""
        return _Real(array.of_numbers(value, self.fmt), self.fmt)

    def constant(self, name):
        """A constant of `array.constant` as a `_Real` of shape ()."""
        return _Real(array.constant(name, self.fmt), self.fmt)

    def _other(self, other):
        return other if isinstance(other, _Real) else self.number(other)

    def __add__(self, other):
        return self._apply("add", self._other(other))

    def __sub__(self, other):
        return self._apply("sub", self._other(other))

    def __mul__(self, other):
        return self._apply("mul", self._other(other))

    def __truediv__(self, other):
        return self._apply("div", self._other(other))

    def __neg__(self):
        return self._apply("neg")

    def where(self, mask, other):
        """self where the mask holds, else other."""
        return _Real(np.where(mask, self.words, other.words), self.fmt)

    def test(self, name, *others):
        """A bool array of a comparison."""
        return array.evaluate(name, self.fmt, self.words, *(self._other(o).words for o in others))


def mul(x, y):
    """(a c - b d) + (a d + b c) i."""
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def div(x, y):
    """Smith's quotient."""
    (a, b), (c, d) = x, y
    first = c.abs().test("ge", d.abs())
    big, low = c.where(first, d), d.where(first, c)
    ratio = low / big
    ratio = ratio.number(0).where(low.test("eq", 0) & np.ones(ratio.words.shape, bool), ratio)
    scale = big + low * ratio
    re = (a + b * ratio).where(first, a * ratio + b)
    im = (b - a * ratio).where(first, b * ratio - a)
    return re / scale, im / scale


def exp(z):
    """e**a (cos b + i sin b)."""
    a, b = z
    size = a.exp()
    return size * b.cos(), (size * b.sin()).where(~b.test("eq", 0), b)


def log(z):
    """log |z| + i arg z; next to |z| = 1, log1p((x - 1)(x + 1) + y**2) / 2 with x the larger part."""
    a, b = z
    size, first = a.hypot(b), a.abs().test("ge", b.abs())
    x, y = a.where(first, b).abs(), b.where(first, a)
    close = ((x - 1) * (x + 1) + y * y).log1p() / 2
    near = size.test("ge", 0.5) & size.test("le", 2)
    return close.where(near, size.log()), b.atan2(a)


def sqrt(z):
    """The root with a real part that is not negative."""
    a, b = z
    w = ((a.abs() + a.hypot(b)) / 2).sqrt()
    other = b.abs() / (w * 2)
    other = other.number(0).where(w.test("eq", 0) & np.ones(other.words.shape, bool), other)
    right = a.test("ge", 0)
    return w.where(right, other), other.where(right, w).copysign(b)


def _unit(z):
    return z[0].number(1), z[0].number(0)


def power(x, y):
    """exp(y log x); 0 to a power of positive real part is 0."""
    re, im = exp(mul(y, log(x)))
    nothing = x[0].test("eq", 0) & x[1].test("eq", 0) & y[0].test("gt", 0)
    zero = re.number(0)
    return zero.where(nothing, re), zero.where(nothing, im)


def _plus(z, number):
    return z[0] + number, z[1]


def sin(z):
    """sin a cosh b + i cos a sinh b."""
    a, b = z
    return a.sin() * b.cosh(), a.cos() * b.sinh()


def cos(z):
    """cos a cosh b - i sin a sinh b."""
    a, b = z
    return a.cos() * b.cosh(), -(a.sin() * b.sinh())


def sinh(z):
    """sinh a cos b + i cosh a sin b."""
    a, b = z
    return a.sinh() * b.cos(), a.cosh() * b.sin()


def cosh(z):
    """cosh a cos b + i sinh a sin b."""
    a, b = z
    return a.cosh() * b.cos(), a.sinh() * b.sin()


def tanh(z):
    """sinh z / cosh z; where the real part is so large that both overflow, 1 + i 4 sin b cos b exp(-2 a)."""
    a, b = z
    re, im = div(sinh(z), cosh(z))
    size, far = a.abs(), a.abs().test("gt", a.fmt.precision + 8)
    return (a.number(1).copysign(a)).where(far, re), (b.sin() * b.cos() * 4 * (-size * 2).exp()).where(far, im)


def expm1(z):
    """(expm1 a) cos b - 2 sin(b / 2)**2 + i exp(a) sin b: no cancellation next to 0."""
    a, b = z
    half = (b / 2).sin()
    return a.expm1() * b.cos() - half * half * 2, (a.exp() * b.sin()).where(~b.test("eq", 0), b)


def log1p(z):
    """log1p(a (a + 2) + b**2) / 2 + i arg(1 + z) for |z| < 1/2, log(1 + z) elsewhere."""
    a, b = z
    (far, angle), close = log(_plus(z, 1)), (a * (a + 2) + b * b).log1p() / 2
    return close.where(a.hypot(b).test("lt", 0.5), far), angle


# ---- inverse functions: Kahan, "Branch cuts for complex elementary functions" (1987)

def _roots(z):
    """The roots of 1 - z and 1 + z."""
    return sqrt((-z[0] + 1, -z[1])), sqrt((z[0] + 1, z[1]))


def asin(z):
    """atan2(a, Re pq) + i asinh(Im conj(p) q) with p and q the roots of 1 - z and 1 + z."""
    p, q = _roots(z)
    return z[0].atan2(p[0] * q[0] - p[1] * q[1]), (p[0] * q[1] - p[1] * q[0]).asinh()


def acos(z):
    """2 atan2(Re p, Re q) + i asinh(Im p conj(q)) with p and q the roots of 1 - z and 1 + z."""
    p, q = _roots(z)
    return p[0].atan2(q[0]) * 2, (q[0] * p[1] - q[1] * p[0]).asinh()


def acosh(z):
    """asinh(Re conj(p) q) + 2 i atan2(Im p, Re q) with p and q the roots of z - 1 and z + 1."""
    p, q = sqrt(_plus(z, -1)), sqrt(_plus(z, 1))
    return (p[0] * q[0] + p[1] * q[1]).asinh(), p[1].atan2(q[0]) * 2


def atanh(z):
    """log1p(4 a / ((1 - a)**2 + b**2)) / 4 + i atan2(2 b, (1 - a) (1 + a) - b**2) / 2, odd in a."""
    a, b = z
    size, square = a.abs(), b * b
    less = -size + 1
    re = (size * 4 / (less * less + square)).log1p() / 4
    return re.copysign(a), (b * 2).atan2(less * (size + 1) - square) / 2


def _turned(function):
    """f(i z) / i: asinh from asin, atan from atanh."""
    def run(z):
        re, im = function((-z[1], z[0]))
        return im, -re
    return run


def _scaled(z, factor):
    return z[0] * factor, z[1] * factor


def exp2(z):
    """exp2(a) (cos(b ln 2) + i sin(b ln 2))."""
    a, b = z
    size, angle = a.exp2(), b * b.constant("ln2")
    return size * angle.cos(), (size * angle.sin()).where(~b.test("eq", 0), angle)


#: name -> function of (real, imaginary) pairs to a pair
FUNCTIONS = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]), "sub": lambda x, y: (x[0] - y[0], x[1] - y[1]),
    "mul": mul, "div": div, "neg": lambda z: (-z[0], -z[1]), "conj": lambda z: (z[0], -z[1]),
    "exp": exp, "log": log, "sqrt": sqrt, "pow": power, "sin": sin, "cos": cos, "sinh": sinh,
    "cosh": cosh, "tan": _turned(tanh), "tanh": tanh, "expm1": expm1, "log1p": log1p, "exp2": exp2,
    "log2": lambda z: _scaled(log(z), z[0].constant("1/ln2")),
    "log10": lambda z: _scaled(log(z), z[0].constant("1/ln10")),
    "asin": asin, "acos": acos, "atan": _turned(atanh), "asinh": _turned(asin), "acosh": acosh,
    "atanh": atanh, "cbrt": lambda z: power(z, _scaled(_unit(z), z[0].number(1) / 3)),
    "rsqrt": lambda z: div(_unit(z), sqrt(z)),
    "logistic": lambda z: div(_unit(z), _plus(exp((-z[0], -z[1])), 1)),
}


def evaluate(name: str, fmt: Binary, *arrays: np.ndarray, **params) -> np.ndarray:
    """The intrinsic `name` on complex arrays over a format; KeyError where there is none."""
    if name == "select":
        return np.where(*arrays)
    if name == "complex":
        return join(*arrays, fmt)
    if name == "direction":
        return _direction(fmt, *arrays)
    if name == "integer_pow":
        return _integer_pow(fmt, arrays[0], **params)
    pairs = [tuple(_Real(p, fmt) for p in parts(x, fmt)) for x in arrays]
    if name in _TO_REAL:
        return _TO_REAL[name](*pairs)
    re, im = FUNCTIONS[name](*pairs)
    return join(re.words, im.words, fmt)


_TO_REAL = {
    "real": lambda z: z[0].words, "imag": lambda z: z[1].words,
    "abs": lambda z: z[0].hypot(z[1]).words,
    "eq": lambda x, y: x[0].test("eq", y[0]) & x[1].test("eq", y[1]),
    "ne": lambda x, y: x[0].test("ne", y[0]) | x[1].test("ne", y[1]),
    "is_nan": lambda z: z[0].test("is_nan") | z[1].test("is_nan"),
    "is_finite": lambda z: z[0].test("is_finite") & z[1].test("is_finite"),
}


def _direction(fmt, x, r):
    """z / |z| componentwise; 0 at 0."""
    return join(*(array.evaluate("direction", fmt, p, r) for p in parts(x, fmt)), fmt)


def _integer_pow(fmt, x, *, n):
    count, result, factor = abs(n), None, x
    while count:
        if count & 1:
            result = factor if result is None else evaluate("mul", fmt, result, factor)
        count >>= 1
        if count:
            factor = evaluate("mul", fmt, factor, factor)
    re, im = (np.broadcast_to(array.of_numbers(v, fmt), x.shape) for v in (1, 0))
    one = join(re, im, fmt)
    if result is None:
        return one
    return result if n >= 0 else evaluate("div", fmt, one, result)
