"""Functions compiled by numba.njit as operations: values, derivatives, inside every transform, errors."""
import pickle

import numba
import numpy as np
import pytest

import tlgrad as tl

X = tl.tensor(np.linspace(-1.0, 2.0, 7))


@numba.njit
def bent(x):
    return x * x if x > 0 else -x


@numba.njit
def bits(x, k):
    """Counts steps in a local array: no tlgrad program."""
    steps = np.zeros(3)
    for j in range(k):
        steps[j % 3] += x * j
    return steps.sum()


def _bits_partials():
    return [lambda y, x, k: tl.convert(k * (k - 1), tl.float64) / 2, None]


BENT = tl.from_numba(bent)
BITS = tl.from_numba(bits, partials=_bits_partials())


def expected(x):
    return np.where(x > 0, x * x, -x)


def test_values_alone_compiled_mapped_and_batched():
    want = expected(X.data)
    for f in (BENT, tl.run(BENT), tl.map(lambda v: BENT(v)), tl.run(tl.map(lambda v: BENT(v))), tl.vmap(BENT)):
        assert tl.same_bits(f(X), want)
    assert BENT(3.0).item() == 9.0 and BENT(np.float32(3)).dtype is tl.float32
    assert BENT(tl.ones((2, 0, 3))).shape == (2, 0, 3)
    assert tl.same_bits(tl.run(lambda x: BENT(x.T) + 1.0)(tl.reshape(X[:6], (2, 3))),
                        expected(X.data[:6].reshape(2, 3).T) + 1.0)


def test_one_branch_of_a_map_calls_it():
    f = tl.map(lambda v: BENT(v) + 1.0 if v > 0.5 else v)
    want = np.where(X.data > 0.5, X.data ** 2 + 1.0, X.data)
    assert tl.same_bits(f(X), want) and tl.same_bits(tl.run(f)(X), want)


def test_the_derivative_is_that_of_the_python_function_to_any_order():
    tl.testing.check_grads(BENT, (X + 0.01,), order=2)
    slope = tl.grad(lambda x: tl.sum(BENT(x)))
    assert slope(X).tolist() == tl.run(slope)(X).tolist() == np.where(X.data > 0, 2 * X.data, -1.0).tolist()
    assert tl.grad(tl.grad(lambda x: BENT(x) * x))(2.0).item() == 12.0
    _, dot = tl.jvp(lambda x, y: BENT(x * y), (X, 2.0), (tl.ones(7), 0.0))
    assert dot.tolist() == np.where(X.data > 0, 8 * X.data, -2.0).tolist()


def test_a_raw_njit_function_in_a_map_is_read_as_python():
    f = tl.map(lambda v: bent(v) + 1.0)
    kernel, = tl.kernels(f)(X)
    assert "numba" not in kernel.text
    assert tl.grad(lambda x: tl.sum(f(x)))(X).tolist() == np.where(X.data > 0, 2 * X.data, -1.0).tolist()


def test_given_derivatives_of_what_cannot_be_recorded():
    k = tl.tensor(np.arange(7))
    assert tl.same_bits(BITS(X, k), np.array([bits(x, n) for x, n in zip(X.data, k.data)]))
    got = tl.run(tl.grad(lambda x: tl.sum(BITS(x, k))))(X)
    assert got.tolist() == [n * (n - 1) / 2 for n in range(7)]
    with pytest.raises(tl.errors.DifferentiationError, match=r"partials=\[lambda y, x: ...\]"):
        tl.grad(tl.from_numba(bits))(1.0, 3)


def test_python_numbers_are_weak_and_results_have_numbas_dtype():
    mix = tl.from_numba(numba.njit(lambda x, y: x * y))
    x32 = tl.tensor([1.0, 2.0], tl.float32)
    assert mix(x32, 0.5).dtype is tl.float32 and mix(0.5, x32).dtype is tl.float32
    assert tl.from_numba(numba.njit(lambda x: x > 1))(x32).dtype is tl.bool_
    assert tl.from_numba(numba.njit(lambda k: k + 1))(tl.tensor([1, 2], tl.int32)).tolist() == [2, 3]
    assert mix(tl.ones((3, 1)), tl.ones(4)).shape == (3, 4)


def test_equal_wraps_are_one_program_and_pickle():
    assert tl.from_numba(bent) == BENT and hash(tl.from_numba(bent)) == hash(BENT)
    assert tl.same_bits(pickle.loads(pickle.dumps(BENT))(X), BENT(X))


def test_what_is_refused():
    with pytest.raises(tl.errors.ArgumentError, match="made by numba.njit"):
        tl.from_numba(lambda x: x)
    with pytest.raises(tl.errors.ArgumentError, match="1 arguments, and 2 partials"):
        tl.from_numba(bent, partials=[None, None])
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        BENT(X, X)
    with pytest.raises(tl.errors.UnsupportedError, match="cannot compile .* for .complex128."):
        BENT(tl.tensor([1j]))
    with pytest.raises(tl.errors.DTypeError, match="float16; convert it first"):
        BENT(tl.tensor([1.0], tl.float16))
    with pytest.raises(tl.errors.OutputError, match="one number"):
        tl.from_numba(numba.njit(lambda x: (x, x)))(1.0)
    with pytest.raises(ZeroDivisionError):
        tl.run(tl.from_numba(numba.njit(lambda x: 1.0 / x)))(tl.tensor([1.0, 0.0]))


@pytest.mark.parametrize("call", [lambda: bent(X), lambda: tl.run(lambda x: bent(x))(X)], ids=["tensor", "traced"])
def test_a_raw_njit_function_on_tensors_says_what_to_write(call):
    refused = r"float64\[7\] \[test_from_numba\.py:.*tl\.from_numba\(f\)"
    with pytest.raises(tl.errors.UnsupportedError, match=refused):
        call()
