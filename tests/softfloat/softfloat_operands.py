"""Structured operands: exponent regimes, runs of ones, single bits, and correlated second operands.

Uniform random words do not find wrong roundings; these do.
"""
import random

import numpy as np

from tlgrad.softfloat.storage import of_integers


def word(fmt, rng):
    """One structured word of a format."""
    code = rng.choice([rng.randrange(1 << fmt.E), fmt.bias + rng.randrange(-3, 4), rng.randrange(4),
                       (1 << fmt.E) - 1 - rng.randrange(3)])
    cut, ones = rng.randrange(fmt.F + 1), (1 << fmt.F) - 1
    fraction = rng.choice([rng.getrandbits(fmt.F), (1 << cut) - 1, ones >> cut << cut, 1 << cut, 0,
                           rng.getrandbits(fmt.F) >> cut << cut]) & ones
    sign = rng.getrandbits(1) << fmt.E + fmt.F
    return (sign | min(max(code, 0), (1 << fmt.E) - 1) << fmt.F | fraction) & (1 << fmt.width) - 1


def operands(fmt, count, arity, seed=0):
    """`arity` arrays of `count` words; a third of the second ones are near relatives of the first."""
    rng = random.Random(seed)
    columns = [[word(fmt, rng) for _ in range(count)] for _ in range(arity)]
    if arity > 1:
        for i in range(0, count, 3):
            columns[1][i] = columns[0][i] ^ rng.choice([0, fmt.sign_bit]) ^ rng.choice(
                [0, 1, rng.getrandbits(8) & (1 << fmt.F) - 1])
    return [of_integers(column, fmt, (count,)) for column in columns]


def random_numbers(shape, fmt, seed=0):
    """Numbers of size about 1 with all their bits, none special."""
    rng = random.Random(seed)
    count = int(np.prod(shape))
    words = [(fmt.bias + rng.randrange(-3, 3)) << fmt.F | rng.getrandbits(fmt.F)
             | rng.getrandbits(1) << fmt.E + fmt.F for _ in range(count)]
    return of_integers(words, fmt, shape)
