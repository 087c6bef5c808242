"""Scalar functions whose loops end by lane."""
import numpy as np

import tlgrad as tl

TABLE = tl.tensor(np.linspace(0.25, 3, 12))


def lanes(size, dtype):
    """Numbers between -2 and 2 without order."""
    return np.random.default_rng(size).uniform(-2, 2, size).astype(dtype)


def escape(c):
    zr = zi = 0.0
    n = 0
    while n < 150 and zr * zr + zi * zi <= 4.0:
        zr, zi = zr * zr - zi * zi + c, 2.0 * zr * zi + c * 0.5
        n = n + 1
    return n


def left_early(c):
    z = c * 0.0
    for k in range(80):
        if z > 3.0:
            return k * 2
        z = z * z + c
    return -1


def halvings(x):
    y = x
    while abs(y) > 0.001:
        y = y * 0.5
    return y * y + x


def two_loops(x):
    n = 0
    while x < 10.0:
        x = x * 1.25 + 1.0
        n += 3
    y = x
    while y > 1.0:
        y = y * 0.75 - 0.125
        n -= 1
    return x, y, n


def nested(x):
    total = x * 0.0
    while x < 3.0:
        y = x
        while y < 2.5:
            y = y + 0.75
            total = total + y
        x = x + 0.5
    return total


def in_a_branch(x):
    if x > 0.5:
        y = x
        while y > 0.001:
            y = y * 0.25
        return y
    if x < -1.0:
        n = 0
        while x < -0.1:
            x = x * 0.875
            n = n + 1
        return x * n
    return x


def flags(x):
    odd, n = False, 0
    while n < 60 and x > -1.5:
        odd = not odd
        x = x - 0.0625
        n = n + 1
    return x if odd else -x


def counted(x):
    n, m, before = 5, 100, 0
    while x < 4.0:
        before = n
        n = n + 7
        m = m + -3
        x = x + 0.5
    return n, m, before


def CAUGHT(x):
    k, total = 0, x * 0.0
    while total < 4.0 and k < 12:
        total = total + TABLE[k] * (x + 3.0)
        k = k + 1
    return total


PROGRAMS = {f.__name__: f for f in (escape, left_early, halvings, two_loops, nested, in_a_branch, flags, counted)}
