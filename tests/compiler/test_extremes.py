"""The greatest and the least of all entries have the words of the chain from the first to the last."""
import numpy as np
import pytest
from beside_reference import compiled

import tlgrad as tl

SIZES = (1, 2, 15, 16, 17, 33, 64, 65, 127, 500, 1001)


def both(x):
    return tl.max(x), tl.min(x), tl.max(x * x - x), tl.sum(x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_floats(dtype, size):
    rng = np.random.default_rng(size)
    x = rng.standard_normal(size).astype(dtype)
    some = rng.integers(0, size, (3, 4))
    compiled(both, x)
    for bound in (-np.abs(x), np.abs(x)):                # the extreme is a zero, of either sign
        for first, second in ((0.0, -0.0), (-0.0, 0.0)):
            bound[some[0]], bound[some[1]] = first, second
            compiled(lambda x: (tl.max(x), tl.min(x)), bound)
    x[some[2][:2]] = np.nan
    compiled(both, x)
    compiled(both, np.full(size, -np.inf, dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("size", SIZES)
def test_integers(dtype, size):
    x = np.random.default_rng(size).integers(0, 2 if dtype == "bool" else 250, size).astype(dtype)
    compiled(lambda x: (tl.max(x), tl.min(x)), x)


def test_rows_and_blocks_of_several_vectors():
    x = -np.abs(np.random.default_rng(0).standard_normal((40, 50)))
    x[[3, 3, 20], [7, 30, 1]] = 0.0, -0.0, 0.0
    compiled(lambda x, y: tl.max(x * y), x, np.ones(50))
    compiled(lambda x, y: tl.max(x * y, axis=0), x, -np.ones(50))
    compiled(lambda x: tl.max(x.astype(tl.float32) * tl.exp(x)), x)
