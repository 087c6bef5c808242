"""Derivatives of mapped loops: forward and reverse agree, eager and compiled words are equal."""
import functools
import math

import numba
import numpy as np
import pytest

import tlgrad as tl

X = tl.tensor([0.7, -1.5, 2.0])
N = tl.tensor([3, 0, 5])
SHIFT = 0.25
TABLE = tl.tensor([1.0, 2.0, 3.0, 5.0, 8.0, 13.0])


def newton(a, n):
    a = abs(a)
    y = a
    while abs(y * y - a) > 1e-12:
        y = (y + a / y) / 2
    return y


def sines(x, n):
    for _ in range(n):
        x = x * math.sin(x)
    return x


def evolve(x, n):
    return x if n == 0 else evolve(x, n - 1) * 0.5 + SHIFT * x * x


def summed_table(x, n):
    s = x
    for k in range(n):
        if s > 10:
            break
        s = s + TABLE[k] * x
    return s


def left_early(x, n):
    k = 0
    while x < 100 and k < n:
        x = x * x + 1
        k += 1
        if x > 50:
            return x / k
    return x


LOOPS = [newton, sines, evolve, summed_table, left_early]


def total(f):
    return lambda x: tl.sum(tl.map(f)(x, N))


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_forward_and_reverse_agree(f):
    reverse = np.asarray(tl.grad(total(f))(X))
    forward = np.asarray(tl.jvp(lambda x: tl.map(f)(x, N), (X,), (tl.ones((3,)),))[1])
    np.testing.assert_allclose(reverse, forward, rtol=1e-14)
    h = 1e-6
    for k, step in enumerate(np.eye(3)):
        up, down = (float(total(f)(X + sign * h * tl.tensor(step))) for sign in (1, -1))
        np.testing.assert_allclose(reverse[k], (up - down) / (2 * h), rtol=1e-5)


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    hessian = tl.hessian(total(f))(X)
    np.testing.assert_allclose(hessian, tl.jacfwd(tl.jacfwd(total(f)))(X), rtol=1e-13)
    assert tl.same_bits(hessian, tl.run(tl.hessian(total(f)))(X))


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_compiled_gradients_have_the_same_words(f):
    gradient = tl.grad(total(f))
    assert tl.same_bits(gradient(X), tl.run(gradient)(X))
    lanes = tl.vmap(lambda s: gradient(X * s))(tl.ones((2,)))
    np.testing.assert_allclose(lanes[1], gradient(X), rtol=1e-14)


def test_gradient_of_an_array_that_loops_read():
    def f(table):
        def body(x, n):
            s = x
            for k in range(n):
                if s > 10:
                    break
                s = s + table[k] * x
            return s
        return tl.sum(tl.map(body)(X, N))
    gradient = tl.grad(f)(TABLE)
    np.testing.assert_allclose(gradient, [2.7, 2.7, 2.7, 0.0, 0.0, 0.0])
    assert tl.same_bits(gradient, tl.run(tl.grad(f))(TABLE))


def test_wrappers_of_python_functions_are_looked_through():
    @numba.njit
    def compiled(x):
        return x if x > 1 else -x

    @functools.cache
    def cached(x):
        return x * 2 if x > 1 else x
    inner = tl.map(lambda v: v if v > 0 else -v)
    found = tl.map(lambda x: compiled(x) + cached(x) + inner(x))(X)
    assert np.asarray(found).tolist() == [compiled(x) + cached(x) + abs(x) for x in (0.7, -1.5, 2.0)]


def test_a_map_keeps_no_values_of_a_transform(no_leaks):
    box = {}

    def loss(w):
        box["w"] = w
        return tl.sum(MAPPED(X))
    MAPPED = tl.map(lambda x: box["w"] * x if x > 0 else x)
    assert float(tl.grad(loss)(tl.tensor(2.0))) == 2.7
    box.clear()
