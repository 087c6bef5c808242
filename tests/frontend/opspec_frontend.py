"""Rows of the primitives behind `tl.map`."""
import numba
import numpy as np
from opspec import Calls, Words

import tlgrad as tl

TABLE = np.random.default_rng(5).uniform(-2, 2, (3, 4))


def _placed(x):
    out = np.zeros((3, 4))
    out[2, 1] = x
    return out


@tl.map
def _leaky(x):
    return x * x if x > 0 else 0.25 * x


@tl.map
def _powers(x, y):
    total = x
    for k in range(3):
        total = total * y + k
    return total


def _powers_loop(x, y):
    total = x
    for k in range(3):
        total = total * y + k
    return total


@tl.from_numba
@numba.njit
def _compiled(x, y):
    return x * y + x if x > 0 else x - y


X = np.array([0.7, -0.4, 1.3])

ROWS = [
    Words("read", (((TABLE, np.int64(2), np.int64(1)), dict(operand=None), lambda t, i, j: t[2, 1]),)),
    Words("deposit", (((np.float64(0.7), np.int64(2), np.int64(1)), dict(shape=(3, 4)),
                       lambda x, i, j: _placed(x)),)),
    Calls("map", ((_leaky, (X,), lambda x: np.where(x > 0, x * x, 0.25 * x)),
                  (_powers, (X, X[::-1].copy()), _powers_loop))),
    Calls("numba_call", ((_compiled, (X, X * X), lambda x, y: np.where(x > 0, x * y + x, x - y)),)),
]
