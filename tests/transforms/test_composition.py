"""Every transform over every transform, on awkward callables: equal results."""
import functools
import itertools

import numpy as np
import pytest

import tlgrad as tl

X, V = tl.tensor([0.7, -0.4, 1.3]), tl.tensor([0.3, 1.0, -0.6])


# ---- awkward callables R^3 -> R ----

def with_keywords(scale, x, *, power=3, offset=0.5):
    return tl.sum(scale * x ** power) + offset


class Model:
    weight = 1.5

    def __init__(self):
        self.shift = np.array([0.1, -0.2, 0.3])

    def loss(self, x):
        return tl.sum(tl.tanh(self.weight * x + self.shift) ** 2)

    def __call__(self, x):
        return self.loss(x) * x[0]


def through_dict(x):
    tree = {"a": x * 2, "b": (x[0], [x[1:]])}
    return tl.sum(tl.exp(tree["a"] * 0.1)) + tree["b"][0] * tl.sum(tree["b"][1][0])


def discards(x):
    return tl.sum(tl.where(x > 0, tl.log(tl.where(x > 0, x, 1.0)) + x ** 2, tl.sin(x)))


def products(x):
    return tl.sum(tl.cumprod(x)) + tl.prod(x) * tl.max(x)


def inner_gradient(x):
    return tl.sum(tl.grad(lambda y: tl.sum(y ** 3 * x))(x)) * x[1]


def nested_run(x):
    square = tl.run(lambda y, z: y * z)
    return tl.sum(square(x, tl.sin(x))) / (1 + square(x[0], x[0]))


def loop(x):
    return tl.sum(tl.iterate(lambda s: s * x * 0.5 + tl.cos(s), 3, x))


def branches(x):
    one = tl.cond(x[0] > 0, lambda v: v ** 2, lambda v: v * 3, x[0])
    other = tl.cond(x[1] > 0, lambda v: v ** 3, lambda v: tl.exp(v) * x[2], x[1])
    return one * other + x[2] ** 2


def inner_lanes(x):
    return tl.sum(tl.vmap(lambda a: tl.vmap(lambda b: a * tl.sin(b) + b)(x))(x))


def sorts_and_writes(x):
    ordered = x[tl.argsort(x)]
    y = tl.zeros(5).at[np.array([0, 2, 0])].add(ordered * x)
    return tl.sum(y[::-2] ** 2) + tl.norm(x) * ordered[1]


def matrices(x):
    a = tl.outer(x, tl.sin(x)) + tl.eye(3)
    return tl.sum((a @ x) * x) + tl.trace(a @ a)


def scans(x):
    last, each = tl.scan(lambda c, v: (c * 0.5 + tl.sin(v), c * v), x[0] * 2, x)
    return last * tl.sum(each ** 2)


MODEL = Model()
CALLABLES = {
    "partial with keywords": functools.partial(with_keywords, 0.3, offset=2), "method": MODEL.loss,
    "callable object": MODEL, "dict": through_dict, "select": discards, "products": products,
    "inner grad": inner_gradient, "inner run": nested_run, "iterate": loop, "cond": branches,
    "inner vmap": inner_lanes, "sort and write": sorts_and_writes, "matrices": matrices, "scan": scans}


# ---- transforms, as functions of a callable: `order` derivatives along V, else the same value ----

TRANSFORMS = {
    "id": (0, lambda f: f),
    "run": (0, tl.run),
    "vmap": (0, lambda f: lambda x: tl.vmap(f)(tl.stack([x * 0.5, x]))[1]),
    "checkpoint": (0, lambda f: tl.checkpoint(f)),
    "jvp": (1, lambda f: lambda x: tl.jvp(f, (x,), (V,))[1]),
    "vjp": (1, lambda f: lambda x: tl.sum(tl.vjp(f, x)[1](1.0)[0] * V)),
    "linearize": (1, lambda f: lambda x: tl.linearize(f, x)[1](V)),
}


@functools.lru_cache(maxsize=None)
def expected(name, order):
    """Nested forward derivatives, checked once against extrapolated differences."""
    f = CALLABLES[name]
    if order == 0:
        return float(f(X))
    tl.testing.check_grads(f, (X,), order=1)
    return float(tl.derivative(f, [V] * order)(X))


@pytest.mark.parametrize("name", CALLABLES)
@pytest.mark.parametrize("pair", list(itertools.product(TRANSFORMS, TRANSFORMS)), ids=" of ".join)
def test_pairs(pair, name):
    (order_a, outer), (order_b, inner) = (TRANSFORMS[p] for p in pair)
    found = outer(inner(CALLABLES[name]))(X)
    assert found.shape == ()
    assert float(found) == pytest.approx(expected(name, order_a + order_b), rel=2e-13, abs=1e-14)
    if order_a == 0 and pair[0] != "vmap":
        assert tl.same_bits(tl.convert(found, tl.float64), tl.convert(inner(CALLABLES[name])(X), tl.float64))


@pytest.mark.parametrize("name", CALLABLES)
def test_lanes_are_the_words_of_the_loop(name):
    f, points = CALLABLES[name], tl.tensor(np.asarray(X) + np.linspace(0, 0.2, 4)[:, None])
    lanes = tl.vmap(f)(points)
    assert all(tl.same_bits(lanes[k], tl.convert(f(points[k]), tl.float64)) for k in range(4))
    gradients = tl.vmap(tl.grad(f))(points)
    assert all(tl.same_bits(gradients[k], tl.grad(f)(points[k])) for k in range(4))


@pytest.mark.parametrize("name", CALLABLES)
def test_reverse_over_forward_over_reverse(name):
    f = CALLABLES[name]
    hessians = [tl.hessian(f)(X), tl.jacrev(tl.jacrev(f))(X), tl.jacfwd(tl.jacfwd(f))(X),
                tl.jacrev(tl.jacfwd(f))(X), tl.run(tl.hessian(tl.run(f)))(X)]
    for h in hessians[1:]:
        np.testing.assert_allclose(np.asarray(h), np.asarray(hessians[0]), rtol=2e-12, atol=1e-13)
    np.testing.assert_allclose(np.asarray(tl.hvp(f)((X,), V)), np.asarray(hessians[0] @ V), rtol=2e-12, atol=1e-13)
