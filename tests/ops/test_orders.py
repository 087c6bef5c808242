"""The order of sums is part of the program: words against plain loops, in pieces, compiled."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.ops.layout import reduce_sum
from tlgrad.ops.orders import LEAF

SIZES = [0, 1, 2, 63, 64, 65, 127, 128, 129, 1000, 4095, 4096, 4097, 8193]


def terms(n, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed + n)
    return (rng.uniform(-1, 1, n) * 10.0 ** rng.uniform(-6, 6, n)).astype(dtype)


def loop(values, start=0.0):
    acc = values.dtype.type(start)
    for v in values:
        acc = acc + v
    return acc


def tree(values):
    """Leaves of 128 from the left, then neighbours in pairs; an odd one moves up."""
    level = [loop(values[k:k + LEAF]) for k in range(0, len(values), LEAF)] or [values.dtype.type(0)]
    while len(level) > 1:
        pairs = [a + b for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2:]
    return level[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_sums_of_every_length(n, dtype):
    x = terms(n, dtype)
    for order, reference in (("ordered", loop), ("fused", loop), ("tree", tree)):
        expected = reference(x)
        assert tl.same_bits(tl.sum(tl.tensor(x), order=order), expected), order
        assert tl.same_bits(tl.run(tl.sum, order=order)(tl.tensor(x)), expected), order
    exact = float(x.astype(np.longdouble).sum())
    assert float(tl.sum(tl.tensor(x), order="free")) == pytest.approx(exact, rel=1e-3, abs=1.0)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2), -1], ids=str)
@pytest.mark.parametrize("order", ["ordered", "tree", "fused"])
def test_axes_in_row_major_order(axis, order):
    x = terms(5 * 70 * 3).reshape(5, 70, 3)
    axes = tuple(a % 3 for a in np.atleast_1d(axis))
    kept = [k for k in range(3) if k not in axes]
    moved = np.transpose(x, (*kept, *axes)).reshape(*[x.shape[k] for k in kept], -1)
    reference = tree if order == "tree" else loop
    expected = np.apply_along_axis(reference, -1, moved) if kept else reference(moved)
    assert tl.same_bits(tl.sum(tl.tensor(x), axis=axis, order=order), expected)
    assert tl.same_bits(tl.run(lambda v: tl.sum(v, axis=axis), order=order)(tl.tensor(x)), expected)


@pytest.mark.parametrize("cut", [0, 1, 137, 299, 300])
def test_pieces_in_order_give_the_words_of_the_whole(cut):
    x = tl.tensor(terms(300))
    whole = reduce_sum.bind(x, axes=(0,), order="ordered")
    first = reduce_sum.bind(x[:cut], axes=(0,), order="ordered")
    assert tl.same_bits(reduce_sum.bind(x[cut:], first, axes=(0,), order="ordered"), whole)


def test_a_sum_is_never_minus_zero():
    for n in (0, 1, 3, 200):
        x = tl.tensor(np.full(n, -0.0))
        for order in ("ordered", "fused", "tree"):
            assert tl.same_bits(tl.sum(x, order=order), 0.0) and tl.same_bits(tl.run(tl.sum, order=order)(x), 0.0)


@pytest.mark.parametrize("order", ["ordered", "fused", "tree"])
def test_sums_of_many_terms_for_no_entry(order):
    f = lambda x: tl.sum(x, axis=0)
    for x in (np.zeros((300, 0)), np.zeros((300, 4, 0), "float32")):
        for result in (tl.sum(x, axis=0, order=order), tl.run(f, order=order)(x)):
            assert result.shape == x.shape[1:]
        assert tl.run(tl.grad(lambda x: tl.sum(f(x))), order=order)(x).shape == x.shape


def test_zero_terms_change_nothing():
    x = terms(50)
    with_zeros = np.insert(x, [0, 7, 50], [-0.0, 0.0, -0.0])
    assert tl.same_bits(tl.sum(tl.tensor(x)), tl.sum(tl.tensor(with_zeros)))


def test_narrow_floats_round_once():
    x = np.full(4096, 60.0, np.float16)
    assert float(tl.sum(tl.tensor(x[:1000]))) == 60000.0
    assert float(tl.sum(tl.tensor(x))) == float("inf")


def test_the_order_of_the_run_reaches_sums_products_and_adjoints():
    x, w = tl.tensor(terms(3 * 400).reshape(3, 400)), tl.tensor(terms(400, seed=9))

    def f(w):
        return tl.sum(tl.tanh(x @ (w * 1e-7)) * 3)
    by_order = {o: tl.run(tl.grad(f), order=o)(w) for o in ("ordered", "fused", "tree")}
    for order, found in by_order.items():
        assert tl.same_bits(tl.grad(tl.run(f, order=order))(w), found), order
        again = tl.run(lambda w: tl.grad(f)(w), order=order)(w)
        assert tl.same_bits(again, found)
    matmul = {o: tl.run(lambda a, b: a @ b, order=o)(x, w) for o in ("ordered", "fused", "tree")}
    assert not tl.same_bits(matmul["ordered"], matmul["fused"])


def test_lanes_keep_the_words_of_one():
    x = tl.tensor(terms(4 * 500).reshape(4, 500))
    for order in ("ordered", "fused", "tree"):
        one = [tl.run(lambda v: tl.sum(v * v), order=order)(v) for v in x]
        many = tl.run(tl.vmap(lambda v: tl.sum(v * v)), order=order)(x)
        assert all(tl.same_bits(a, b) for a, b in zip(one, many))


def test_an_unknown_order_is_explained():
    with pytest.raises(tl.errors.ArgumentError, match="one of ordered, fused, tree, free, got 'fast'"):
        tl.sum(tl.ones(2), order="fast")
