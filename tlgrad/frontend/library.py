"""Functions of `math` and `cmath` that loop, branch or raise, as Python that is read like the user's own.

    WRITTEN : function -> Python function of the same meaning        REFUSED : function -> why there is none

Integers are 64 bits: what does not fit into them is an OverflowError where Python's would grow.
"""
from __future__ import annotations

import cmath
import math

import numpy as np

#: 20! is the largest factorial of 64 bits
_LARGEST_FACTORIAL = 20
_BITS = 2 ** 63 - 1


def integer_power(base, n):
    """base ** n of integers, an integer; Python would give a float for a negative n."""
    if n < 0:
        raise ValueError(f"an integer to the power {n} is not an integer: write float(base) ** n")
    found = 1
    while n > 0:
        if n % 2 == 1:
            found = found * base
        base = base * base
        n = n // 2
    return found


def _factorial(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > _LARGEST_FACTORIAL:
        raise OverflowError(f"factorial({n}) does not fit into 64 bits")
    found = 1
    for k in range(2, n + 1):
        found = found * k
    return found


def _multiplied(found, k):
    if found > _BITS // k:
        raise OverflowError("the number does not fit into 64 bits")
    return found * k


def _perm(n, k=None):
    if k is None:
        return _factorial(n)
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")
    if k > n:
        return 0
    found = 1
    for m in range(k):
        found = _multiplied(found, n - m)
    return found


def _comb(n, k):
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")
    if k > n:
        return 0
    found = 1
    for m in range(min(k, n - k)):
        common = _gcd_of_two(found, m + 1)       # keeps the product small: found * (n - m) / (m + 1) is whole
        found = _multiplied(found // common, (n - m) // ((m + 1) // common))
    return found


def _gcd_of_two(a, b):
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def _gcd(*integers):
    found = 0
    for n in integers:
        found = _gcd_of_two(found, n)
    return found


def _lcm(*integers):
    found = 1
    for n in integers:
        found = abs(found // max(_gcd_of_two(found, n), 1) * n)
    return found


def _isqrt(n):
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = int(math.sqrt(n))                     # off by one at most
    if root > 0 and root > n // root:
        root = root - 1
    if root + 1 <= n // (root + 1):
        root = root + 1
    return root


def _isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    if rel_tol < 0 or abs_tol < 0:
        raise ValueError("tolerances must be non-negative")
    if a == b:
        return True
    if not math.isfinite(a) or not math.isfinite(b):
        return False
    difference = abs(a - b)
    return difference <= rel_tol * abs(b) or difference <= rel_tol * abs(a) or difference <= abs_tol


def _cisclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    if a == b:
        return True
    if not cmath.isfinite(a) or not cmath.isfinite(b):
        return False
    difference = abs(a - b)
    return difference <= rel_tol * abs(b) or difference <= rel_tol * abs(a) or difference <= abs_tol


def _modf(x):
    whole = np.trunc(x) * 1.0
    return math.copysign(0.0 if math.isinf(x) else x - whole, x), whole


def _remainder(x, y):
    """IEEE 754 remainder, exact: x - n y with n the integer nearest to x / y, the even one of two."""
    if math.isnan(x) or math.isnan(y):
        return x + y
    if math.isinf(x) or y == 0:
        raise ValueError("math domain error")
    if math.isinf(y):
        return x * 1.0
    a, b = abs(x), abs(y)
    low = math.fmod(a, b)
    high = b - low
    if low < high:
        found = low
    elif low > high:
        found = -high
    else:
        found = low - 2.0 * math.fmod(0.5 * (a - low), b)
    return math.copysign(1.0, x) * found


def hypot(*coordinates):
    """math.hypot of other than two numbers."""
    found = 0.0
    for c in coordinates:
        found = math.hypot(found, c)
    return found


def _dist(p, q):
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return hypot(*[a - b for a, b in zip(p, q)])


def _prod(iterable, *, start=1):
    found = start
    for v in iterable:
        found = found * v
    return found


def _polar(z):
    return abs(z), cmath.phase(z)


def _phase(z):
    return math.atan2(z.imag, z.real)


def _rect(r, phi):
    return complex(r * math.cos(phi), r * math.sin(phi))


#: function of Python's library -> the same in Python
WRITTEN = {
    math.factorial: _factorial, math.perm: _perm, math.comb: _comb, math.gcd: _gcd, math.lcm: _lcm,
    math.isqrt: _isqrt, math.isclose: _isclose, cmath.isclose: _cisclose, math.modf: _modf,
    math.remainder: _remainder, math.dist: _dist, math.prod: _prod, cmath.polar: _polar, cmath.phase: _phase,
    cmath.rect: _rect}
#: function -> why it is refused on traced numbers
REFUSED = {
    math.fsum: "it rounds the exact sum once, which is no ordered sum; write sum(...)"}
