"""Derivatives of patterns to second order, under every transform."""
import numpy as np
import pytest

import tlgrad as tl

RNG = np.random.default_rng(3)
X, Y, V = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4)), RNG.normal(size=4)
SQUARE = RNG.normal(size=(3, 3, 2))

FUNCTIONS = {
    "product": (lambda x, y: tl.einsum("a b, b c -> c a", x, y), (X, Y)),
    "three operands": (lambda x, y, v: tl.einsum("a b, b c, c -> a", x, y, v), (X, Y, V)),
    "sums in one operand": (lambda x, v: tl.einsum("a b, c -> ", x, v), (X, V)),
    "stretched": (lambda x, y: tl.einsum("a b, b c, a -> b", x, y, y[:1, 0]), (X, Y)),
    "diagonal": (lambda s: tl.einsum("i i j, j -> i", s, s[0, 0]), (SQUARE,)),
    "rearrange": (lambda x: tl.rearrange(x, "a (b c) -> c (a b)", c=3), (X,)),
    "expand": (lambda x: tl.expand(x, "a b -> (b copies) a", copies=2), (X,)),
    "sum": (lambda s: tl.reduce(s, "a b c -> b", "sum"), (SQUARE,)),
    "mean": (lambda s: tl.reduce(s, "a b c -> c", "mean"), (SQUARE,)),
    "prod": (lambda s: tl.reduce(s, "a b c -> c", "prod"), (SQUARE,)),
    "max": (lambda s: tl.reduce(s, "a b c -> b", "max"), (SQUARE,)),
    "min of a diagonal": (lambda s: tl.reduce(s, "a a c -> c", "min"), (SQUARE,)),
    "pack": (lambda x, v: tl.pack([x, x[:, 0]], "a *")[0], (X, V)),
    "unpack": (lambda x: tl.unpack(x, [(), (2,)], "a *")[1], (X,))}


def difference(f, x, v, h=1e-5):
    return (np.asarray(f(x + h * v)) - np.asarray(f(x - h * v))) / (2 * h)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_and_reverse_agree_with_differences_to_second_order(name):
    f, args = FUNCTIONS[name]
    for k, x in enumerate(args):
        def one(z):
            return tl.sum(f(*args[:k], z, *args[k + 1:]) ** 3)
        v = RNG.normal(size=x.shape)
        _, forward = tl.jvp(one, (x,), (v,))
        gradient = tl.grad(one)(x)
        assert gradient.shape == x.shape
        expected = difference(one, x, v)
        assert np.allclose(forward, expected, rtol=1e-6, atol=1e-6)
        assert np.allclose(np.sum(np.asarray(gradient) * v), expected, rtol=1e-6, atol=1e-6)
        again = tl.jvp(tl.grad(one), (x,), (v,))[1]
        assert np.allclose(again, difference(tl.grad(one), x, v), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_and_mapped_have_the_words_of_eager(name):
    f, args = FUNCTIONS[name]
    assert tl.same_bits(tl.run(f)(*args), f(*args))
    stacked = [np.stack([a, 2 * a, -a]) for a in args]
    mapped = tl.vmap(f)(*stacked)
    for lane in range(3):
        assert tl.same_bits(np.asarray(mapped)[lane], f(*[s[lane] for s in stacked]))
    assert tl.same_bits(tl.run(tl.vmap(f))(*stacked), mapped)


def test_gradient_of_a_winner_goes_to_the_first():
    x = np.array([[1.0, 1.0], [1.0, 0.0]])
    assert tl.grad(lambda x: tl.reduce(x, "a b ->", "max"))(x).tolist() == [[1, 0], [0, 0]]


def test_complex_gradient_matches_its_real_parts():
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-3, 4, (2, 2)) + 1j * rng.integers(-3, 4, (2, 2)) for _ in range(2))

    def loss(x):
        y = tl.einsum("a b, b c -> a c", x, w)
        return tl.sum(tl.real(y * tl.conj(y)))
    got = np.asarray(tl.grad(loss)(x))
    expected = 2 * (x @ w) @ w.conj().T
    assert np.array_equal(got, expected) or np.array_equal(got, expected.conj())
