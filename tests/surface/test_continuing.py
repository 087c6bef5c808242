"""init=: a reduction in pieces, in order, has the words of the whole."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.errors import ArgumentError, ShapeError

X = tl.tensor(np.random.default_rng(3).uniform(-2, 2, (3, 8)))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [1, None], ids=["rows", "all"])
def test_pieces_give_the_words_of_the_whole(name, axis):
    reduction = getattr(tl, name)
    x = X if axis == 1 else X.reshape(1, 24)
    first = reduction(x[:, :5], axis=1)
    assert tl.same_bits(reduction(x[:, 5:], axis=1, init=first), reduction(x, axis=1))


@pytest.mark.parametrize("name", ["any", "all"])
def test_bools_continue(name):
    reduction, x = getattr(tl, name), X > 0
    assert tl.same_bits(reduction(x[:, 5:], axis=1, init=reduction(x[:, :5], axis=1)), reduction(x, axis=1))


def test_logsumexp_continues_and_differentiates():
    def pieces(x):
        return tl.logsumexp(x[:, 5:], axis=1, init=tl.logsumexp(x[:, :5], axis=1))
    assert np.allclose(pieces(X), tl.logsumexp(X, axis=1), rtol=1e-15)
    found, expected = (tl.grad(lambda x: tl.sum(f(x)))(X) for f in (pieces, lambda x: tl.logsumexp(x, axis=1)))
    assert np.allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["prod", "max", "min", "any", "all", "logsumexp"])
def test_an_accumulator_has_the_shape_of_the_result(name):
    x = X > 0 if name in ("any", "all") else X
    function = tl.logsumexp if name == "logsumexp" else getattr(tl, name)
    with pytest.raises(ShapeError, match=rf"{name}: init= must have the shape of the result, \(3,\), got \(2,\)"):
        function(x, axis=1, init=tl.zeros(2, dtype=x.dtype))


@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_are_kept_on_request(keepdims):
    assert tl.max(X, axis=1, keepdims=keepdims, init=tl.zeros(3)).shape == ((3, 1) if keepdims else (3,))


@pytest.mark.parametrize("name", ["prod", "max", "min", "any", "all"])
def test_other_reductions_are_the_same_in_every_order(name):
    x = X > 0 if name in ("any", "all") else X
    function = getattr(tl, name)
    for order in ("ordered", "fused", "tree", "free"):
        assert tl.same_bits(function(x, axis=1, order=order), function(x, axis=1))
    with pytest.raises(ArgumentError, match="order must be one of ordered, fused, tree, free, got 'any'"):
        function(x, order="any")
