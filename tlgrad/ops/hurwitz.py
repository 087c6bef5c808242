"""The Hurwitz zeta function and its derivatives by s, in binary64, by Euler-Maclaurin summation.

    Z_m(s, q) = (-1)^m sum over k >= 0 of log(k + q)^m (k + q)^-s,    s > 1, q > 0

Source: Johansson, "Rigorous high-precision computation of the Hurwitz zeta function and its
derivatives", Numerical Algorithms 69 (2015), equation 5.
"""
from __future__ import annotations

from math import factorial

import numpy as np

#: terms added directly; the remainder after nine Bernoulli terms is then below 1e-17 of the sum
_DIRECT = 16
#: B_2j / (2j)! for j = 1 .. 9
_BERNOULLI = [b / factorial(2 * j) for j, b in enumerate(
    (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798), 1)]


#: below it SciPy, which adds the terms before 0 one by one, gives way to a closed form
_FAR = -16.0


def zeta(s, q):
    """The sum over k >= 0 of (k + q)^-s; inf at q = 0, -1, -2, ..., NaN for q < 0 unless s is an integer.

    Far below zero, with q = f - n and 0 < f < 1, the terms before 0 are those of two sums over positive numbers:
    zeta(s, q) = zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, n + 1 - f)).
    """
    from scipy import special
    far = (q < _FAR) & (q != np.floor(q)) & (s == np.floor(s))
    out = np.asarray(special.zeta(s, np.where(far, 1.0, q)))
    n, f = -np.floor(q), q - np.floor(q)
    f = np.where(far, f, 0.5)
    before = special.zeta(s, 1 - f) - special.zeta(s, np.where(far, n, 0.0) + (1 - f))
    return np.where(far, special.zeta(s, f) + (1 - 2 * (s % 2)) * before, out)


def derivatives_by_s(m, s, q):
    """Z_m(s, q) entry by entry; m = 0, 1, 2, ...  NaN outside s > 1, q > 0."""
    out = np.full(s.shape, np.nan)
    for order in np.unique(m[np.isfinite(m)]):
        chosen = (m == order) & (s > 1) & (q > 0)
        if chosen.any():
            out[chosen] = (-1.0) ** order * _sum(int(order), s[chosen], q[chosen])
    out[(s == np.inf) & (q > 1)] = 0.0
    return out


def _sum(m, s, q):
    """sum of log(x)^m x^-s over x = q, q + 1, ...: small terms first."""
    a = q + _DIRECT
    total = _tail(m, s, a)
    for k in range(_DIRECT - 1, -1, -1):
        total = total + _term(m, s, q + k)
    return total


def _term(m, s, x):
    return np.log(x) ** m * x ** -s


def _tail(m, s, a):
    """The integral from a on, half the term at a, and Bernoulli terms of odd derivatives at a."""
    log = np.log(a)
    integral = sum(factorial(m) / factorial(i) * log ** i / (s - 1) ** (m - i + 1) for i in range(m + 1))
    out = a ** (1 - s) * integral + 0.5 * _term(m, s, a)
    powers = [np.ones_like(s) if i == m else np.zeros_like(s) for i in range(m + 1)]
    for n in range(2 * len(_BERNOULLI) - 1):                # powers[i]: of log^i in the n-th derivative
        powers = [-(s + n) * powers[i] + ((i + 1) * powers[i + 1] if i < m else 0.0) for i in range(m + 1)]
        if n % 2 == 0:
            slope = sum(c * log ** i for i, c in enumerate(powers)) * a ** (-s - n - 1)
            out = out - _BERNOULLI[n // 2] * slope
    return out
