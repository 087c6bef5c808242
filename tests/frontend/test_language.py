"""Each word of the language in a function of its own: plain Python's words, compiled words, derivatives."""
import functools
import math

import numpy as np
import pytest

import tlgrad as tl

from frontend.same_as_python import differences

WORDS = {}


def word(name):
    """Register the function that uses `name`, of a float and a count."""
    return lambda f: WORDS.setdefault(name, f)


@word("if, elif, else")
def _(x, n):
    if x < 0:
        y = -x
    elif x < n:
        y = x * x
    else:
        y = x / 2
    return y


@word("ternary")
def _(x, n): return x * 2 if x > n else x - n if x > 0 else -x


@word("and, or, not")
def _(x, n): return x * 3 if x > 0 and not x > n or x < -2 else (x and 1.5) or n


@word("formats with a conversion")
def _(x, n): return x + len(f"{'ab'!r:<8}|") + 10 * len(f"{'ab'!r}") + 100 * len(f"{'ab':>5}")


@word("chained comparison")
def _(x, n): return x * x if 0 < x <= n < 5 else -x


@word("match")
def _(x, n):
    match n:
        case 0 | 1:
            return x
        case 3 if x > 0:
            return x * x
        case _:
            return x - n


@word("for over range, concrete")
def _(x, n):
    s = 0.0
    for k in range(5, 0, -2):
        s = s * x + k
    return s


@word("for over range, traced")
def _(x, n):
    s = 0.0
    for k in range(1, 2 * n, 2):
        s = s * x + k
    return s


@word("for over a list")
def _(x, n):
    s = 0.0
    for v in [x, 2.0, n]:
        s = s * 0.5 + v * x
    return s


@word("for over a tuple")
def _(x, n):
    s = 0.0
    for v in (1.5, x):
        s = s + v * v
    return s


@word("enumerate")
def _(x, n):
    s = x
    for k, v in enumerate((x, 1.0), 2):
        s = s + k * v
    return s


@word("zip")
def _(x, n):
    s = x
    for a, b, c in zip((x, 1.0), [n, x], range(2)):
        s = s + a * b * c
    return s


@word("while")
def _(x, n):
    while x > 1 and n > 0:
        x, n = x / 2 + 0.25, n - 1
    return x


@word("break")
def _(x, n):
    for k in range(n):
        x = x * 1.5
        if x > 4:
            break
    return x


@word("continue")
def _(x, n):
    s = x
    for k in range(n):
        if k % 2 == 1:
            continue
        s = s + k * x
    return s


@word("else of a for")
def _(x, n):
    for k in range(n):
        if x > 3:
            x = x + 10
            break
        x = x * 2
    else:
        x = x - 100
    return x


@word("else of a while")
def _(x, n):
    k = 0
    while k < n:
        if x > 3:
            break
        x, k = x * 2, k + 1
    else:
        return -x
    return x + 0.5


@word("early return in a loop")
def _(x, n):
    for k in range(n):
        x = x * 1.25
        if x > 3:
            return x * x
    return x


@word("try, except around arithmetic")
def _(x, n):
    try:
        y = x / n
    except ZeroDivisionError:
        y = x * x
    try:
        return y + math.sqrt(x)
    except ValueError:
        return y - 1


@word("try, else, finally")
def _(x, n):
    s = x
    try:
        s = s * (1 // n)
    except ZeroDivisionError:
        s = -s
    else:
        s = s + x
    finally:
        s = s + 0.5
    return s


@word("assert")
def _(x, n):
    assert x < 5, "too large"
    return x * x


@word("raise")
def _(x, n):
    if x > 5:
        raise ValueError("too large")
    return x * n


@word("list comprehension")
def _(x, n): return max([v * x - k for k, v in enumerate((1.0, x, 0.5))])


@word("dict comprehension")
def _(x, n):
    d = {k: x * k for k in (1, 2, 3)}
    return d[2] * d[3] - d[1]


@word("set comprehension")
def _(x, n):
    seen = {k % 2 for k in range(5)}
    if x > n:
        seen.add(7)
    return x * len(seen) + (3 in seen) - (7 in seen)


@word("generator in sum")
def _(x, n): return sum(x * k for k in range(4) if x > k)


@word("generator in sum, traced range")
def _(x, n): return sum(x * k for k in range(n))


@word("generator in any")
def _(x, n): return x * 2 if any(x > k and n > k for k in (1, 2)) else x


@word("generator in all")
def _(x, n): return x * 2 if all(x > k - n for k in range(3)) else x


def halved_above(x, limit=1.0, *, factor=0.5):
    return x * factor if x > limit else x


@word("helper, defaults and keywords")
def _(x, n): return halved_above(x) + halved_above(x, 2.0) * halved_above(limit=0.0, x=x, factor=n)


class Scaled:
    """Called like a function; its methods and property."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor if x > 0 else x

    def twice(self, x):
        return self(self(x))

    @property
    def inverse(self):
        return 1 / self.factor

    @staticmethod
    def plus(x, n):
        return x + n

    @classmethod
    def of(cls, n):
        return cls(n + 1.0)


TRIPLE = Scaled(3.0)


@word("methods")
def _(x, n): return TRIPLE.twice(x) + Scaled.plus(x, n) * Scaled.of(n).inverse


@word("callable objects")
def _(x, n): return TRIPLE(x) + Scaled(x)(x * x)


class Complex:
    """A complex number of the user's."""

    def __init__(self, re, im):
        self.re, self.im = re, im

    def __add__(self, other):
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other):
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other):
        if isinstance(other, Complex):
            return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
        return Complex(self.re * other, self.im * other)

    def __rmul__(self, other):
        return self * other

    def __neg__(self):
        return Complex(-self.re, -self.im)

    def __abs__(self):
        return math.sqrt(self.re * self.re + self.im * self.im)

    def __eq__(self, other):
        return self.re == other.re and self.im == other.im

    def __bool__(self):
        return self.re != 0 or self.im != 0


@word("a complex class of the user")
def _(x, n):
    c, z = Complex(x * 0.25, 0.5), Complex(0.0, 0.0)
    for k in range(n):
        z = z * z + c - 0.125 * -c
        if abs(z) > 2:
            return k + z.re
    return z.im if z and not z == c else x


class Dual:
    """A dual number of the user's: value and slope."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other, 0.0)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other, 0.0)
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other):
        return self.value < other


def polynomial(x, n):
    s = x * 0.0 + 1.0
    for k in range(n):
        s = s * x + 0.5 if x < 2 else s * 0.5 + x * x
    return s


@word("a dual class of the user")
def _(x, n):
    d = polynomial(Dual(x, 1.0), n)
    return d.slope if isinstance(d, Dual) else 0.0


SHIFTED = functools.partial(halved_above, limit=0.5)


@word("functools.partial")
def _(x, n): return SHIFTED(x) * functools.partial(halved_above, factor=n)(x)


@word("closures and lambdas")
def _(x, n):
    def add(y):
        return lambda z: z + y if z > 0 else y * x
    return add(x * 0.5)(n) + (lambda a, b=2.0: a * b)(x)


@word("abs, min, max")
def _(x, n): return abs(x) + min(x, n, 2.5) * max([x, 1.0]) - min((x, -x))


@word("pow, **")
def _(x, n): return pow(x, 3) + x ** 2 + 2.0 ** n + x ** 0


@word("round, divmod")
def _(x, n):
    q, r = divmod(x, 0.75)
    return round(x) * 2 + q * r + divmod(n, 2)[1]


@word("int, float, bool")
def _(x, n): return int(x) + float(n) * 0.5 + bool(x) + int(x > 1)


@word("numpy scalar functions")
def _(x, n): return np.sqrt(np.abs(x)) + np.maximum(x, n) * np.float64(0.5) + np.floor(x)


@word("walrus, augmented assignment, del")
def _(x, n):
    if (y := x * x) > 2:
        y -= n
    z = [y, x]
    z[0] *= 2
    del y
    return z[0] + z[1]


INPUTS = [(x, n) for x in (-2.5, -0.75, 0.0, 0.5, 1.75, 3.25, 6.5) for n in range(5)]


@pytest.mark.parametrize("name", WORDS)
def test_words_are_those_of_python(name):
    assert differences(WORDS[name], INPUTS) == []


def fine(f):
    """Columns of the inputs at which Python raises nothing."""
    rows = []
    for xs in INPUTS:
        try:
            f(*xs)
            rows.append(xs)
        except (ValueError, AssertionError):
            pass
    return [tl.tensor(list(column)) for column in zip(*rows)]


@pytest.mark.parametrize("name", WORDS)
def test_compiled_words_and_derivatives_agree(name):
    f = WORDS[name]
    m, (x, n) = tl.map(lambda x, n: f(x, n) * 1.0), fine(f)
    assert tl.same_bits(tl.run(m)(x, n), m(x, n))
    gradient = tl.grad(lambda x: tl.sum(m(x, n)))
    forward = tl.jvp(lambda x: m(x, n), (x,), (tl.ones(x.shape),))[1]
    np.testing.assert_allclose(gradient(x), forward, rtol=1e-13)
    assert tl.same_bits(tl.run(gradient)(x), gradient(x))


def test_the_dual_class_gives_the_derivative_that_tlgrad_gives():
    x, n = tl.tensor([x for x, _ in INPUTS]), tl.tensor([n for _, n in INPUTS])
    ours = tl.grad(lambda x: tl.sum(tl.map(polynomial)(x, n)))(x)
    np.testing.assert_allclose(tl.map(WORDS["a dual class of the user"])(x, n), ours, rtol=1e-14)
