"""The words of complex arithmetic: by parts, two rounded products and one sum each, in any array."""
import numpy as np
import pytest

import tlgrad as tl

RNG = np.random.default_rng(5)


def numbers(shape, dtype):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def product(x, y):
    out = np.empty(np.broadcast(x, y).shape, x.dtype)
    out.real, out.imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
    return out


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("apply", [lambda f: f, tl.run], ids=["eager", "compiled"])
def test_products_alone_and_in_arrays(dtype, apply):
    x, y = numbers(301, dtype), numbers(301, dtype)
    multiply, cube = apply(lambda x, y: x * y), apply(lambda x: x ** 3)
    assert tl.same_bits(multiply(tl.tensor(x), tl.tensor(y)), product(x, y))
    assert tl.same_bits(cube(tl.tensor(x)), product(x, product(x, x)))
    for a, b in zip(x[:40], y):
        assert tl.same_bits(multiply(tl.tensor(a), tl.tensor(b)), product(a, b))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("apply", [lambda f: f, tl.run], ids=["eager", "compiled"])
def test_contractions_and_products_of_many(dtype, apply):
    x, y = numbers((7, 9), dtype), numbers((9, 5), dtype)
    total = np.zeros((7, 5), dtype)
    for k in range(9):
        total = total + product(x[:, k, None], y[k])
    assert tl.same_bits(apply(tl.matmul)(tl.tensor(x), tl.tensor(y)), total)
    rows = x[:, 0]
    for k in range(1, 9):
        rows = product(rows, x[:, k])
    assert tl.same_bits(apply(lambda x: tl.prod(x, axis=1))(tl.tensor(x)), rows)
