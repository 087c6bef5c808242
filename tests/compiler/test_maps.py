"""Mapped scalar functions are one kernel with the words, and the errors, of the reference."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core.jaxpr import evaluate_arrays

TABLE = tl.tensor(np.arange(10.0) + 0.5)
SQUARE = tl.tensor(np.arange(12.0).reshape(3, 4))


def leaky(x):
    return x if x > 0 else 0.25 * x


def escape(cx, cy):
    x = y = 0.0
    n = 0
    while x * x + y * y < 4.0 and n < 60:
        x, y = x * x - y * y + cx, 2 * x * y + cy
        n += 1
    return n


def weighted(x):
    total = 0.0
    for j in range(10):
        total = total + TABLE[j] * x
    return total


def triangle(i):
    total = 0.0
    for j in range(i):
        total = total + TABLE[j]
    return total


def corner(i):
    return SQUARE[i, i + 1] * 2


def guarded(i):
    if i == 0:
        return 0
    return 100 // i


def rooted(x):
    if x < 0:
        raise ValueError("negative")
    return tl.exp(tl.sqrt(x))


X = np.linspace(-2, 2, 45)
CASES = [(leaky, X), (leaky, X.astype("float32").reshape(5, 9)), (escape, X, X[::-1].copy()), (weighted, X),
         (triangle, np.arange(11)), (corner, np.arange(3)), (guarded, np.arange(-5, 6)), (rooted, np.abs(X))]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_a_map_is_one_kernel_with_the_words_of_the_reference(case):
    f, *args = case
    program = tl.make_jaxpr(tl.map(f))(*map(tl.tensor, args))
    arrays = [*[c.data for c in program.consts], *args]
    plan = Plan(program.jaxpr)
    assert len(plan.kernels) == 1
    for got, want in zip(plan.run(*arrays), evaluate_arrays(program.jaxpr, arrays), strict=True):
        assert tl.same_bits(got, want)


@pytest.mark.parametrize("f", [leaky, weighted, rooted], ids=lambda f: f.__name__)
def test_gradients_of_maps_have_the_words_of_the_reference(f):
    x = tl.tensor(np.abs(X) + 0.25)
    program = tl.make_jaxpr(tl.grad(lambda x: tl.sum(tl.map(f)(x))))(x)
    arrays = [*[c.data for c in program.consts], x.data]
    for got, want in zip(Plan(program.jaxpr).run(*arrays), evaluate_arrays(program.jaxpr, arrays), strict=True):
        assert tl.same_bits(got, want)


@pytest.mark.parametrize("f,x,error,message", [
    (triangle, [3, 11], tl.errors.OutOfBoundsError, "index 10 is out of bounds"),
    (corner, [0, 3], tl.errors.OutOfBoundsError, "out of bounds"),
    (lambda i: 7 // i, [1, 0, 2], tl.errors.ZeroDivision, "division by zero"),
    (rooted, [1.0, -1.0], ValueError, "negative")], ids=["loop", "read", "division", "raise"])
def test_a_lane_that_cannot_go_on_raises_what_the_reference_raises(f, x, error, message):
    with pytest.raises(error, match=message):
        tl.run(tl.map(f))(tl.tensor(x))
