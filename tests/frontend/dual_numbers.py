"""Derivatives of random programs, by plain Python on dual numbers: those of the branch that an entry takes."""
import math

import numpy as np

import tlgrad as tl

from frontend.same_as_python import plain, words


class Dual:
    """value + slope * epsilon, with Python's comparisons of the values."""

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other):
        other = dual(other)
        return Dual(self.value - other.value, self.slope - other.slope)

    def __rsub__(self, other):
        return dual(other) - self

    def __mul__(self, other):
        other = dual(other)
        return Dual(self.value * other.value, self.slope * other.value + other.slope * self.value)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def __abs__(self):
        return self * float((self.value > 0) - (self.value < 0))

    def __lt__(self, other):
        return self.value < dual(other).value

    def __le__(self, other):
        return self.value <= dual(other).value

    def __gt__(self, other):
        return self.value > dual(other).value

    def __ge__(self, other):
        return self.value >= dual(other).value

    def __eq__(self, other):
        return self.value == dual(other).value

    __hash__ = None


def dual(v):
    """A number as a dual one."""
    return v if isinstance(v, Dual) else Dual(v)


def slope(f, xs, k):
    """The derivative of f in its k-th argument, and the value."""
    found = dual(f(*[Dual(x, float(n == k)) if n < 2 else x for n, x in enumerate(xs)]))
    return float(found.slope), float(found.value)


def derivative_differences(f, inputs):
    """(inputs, argument, by dual numbers, forward, reverse) where they differ, at points with finite values.

    The rounding of sums and products may differ: the bound is relative to the largest derivative met.
    """
    fine = [xs for xs in inputs if not isinstance(plain(f, xs), type)]
    if not fine:
        return []
    m, columns = tl.map(f), [tl.tensor(list(column)) for column in zip(*fine)]

    def total(x, y):
        return tl.sum(m(x, y, *columns[2:]) * 1.0)
    x, y = columns[:2]
    reverse = tl.grad(total, argnums=(0, 1))(x, y)
    wrong = []
    for k in range(2):
        tangents = [tl.ones(x.shape) if n == k else tl.zeros(x.shape) for n in range(2)]
        forward = tl.jvp(lambda a, b: m(a, b, *columns[2:]) * 1.0, (x, y), tuple(tangents))[1]
        expected = [slope(f, xs, k) for xs in fine]
        rows = zip(fine, expected, np.asarray(forward).tolist(), np.asarray(reverse[k]).tolist())
        for xs, (e, value), a, b in rows:
            if math.isfinite(e) and math.isfinite(value) and not (close(e, a) and close(e, b)):
                wrong.append((xs, k, e, a, b))
            if words(value) != words(plain(f, xs)):
                raise AssertionError(f"dual numbers take another branch at {xs}")
    return wrong


def close(a, b):
    """Equal to a few roundings of terms that may cancel."""
    return abs(a - b) <= 1e-9 * (1.0 + abs(a))
