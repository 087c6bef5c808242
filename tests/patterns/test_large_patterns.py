"""Large operands take other ways (kernels, NumPy's rows, BLAS): the words stay those of the loop."""
import numpy as np
import pytest

import tlgrad as tl
from patterns.pattern_oracle import spread
from tlgrad.ops import orders
from tlgrad.ops.contract_many import contract

RNG = np.random.default_rng(11)


def loop(x, axes):
    """((0 + t0) + t1) + ... over the axes, row-major."""
    terms = np.moveaxis(x, axes, range(len(axes)))
    acc = np.zeros(terms.shape[len(axes):], x.dtype)
    for term in terms.reshape(-1, *acc.shape):
        acc = acc + term
    return acc


SUMS = [("a b -> b", (700, 400), (0,)), ("a b -> a", (700, 400), (1,)), ("a b c -> b", (30, 100, 90), (0, 2)),
        ("a b c -> a c", (30, 100, 90), (1,)), ("a b c -> c", (30, 100, 90), (0, 1)),
        ("a b c d -> b d", (10, 30, 30, 30), (0, 2)), ("a b c d -> a c", (10, 30, 30, 30), (1, 3)),
        ("a b ->", (600, 500), (0, 1)), ("a b -> b", (70000, 1), (0,)), ("a b -> b", (2, 140000), (0,))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pattern, shape, axes", SUMS, ids=[f"{p} {s}" for p, s, _ in SUMS])
def test_sums(pattern, shape, axes, dtype):
    x = spread(shape, RNG).astype(dtype)
    expected = loop(x, axes)
    assert tl.same_bits(tl.reduce(x, pattern, "sum"), expected)
    assert tl.same_bits(tl.run(lambda x: tl.reduce(x, pattern, "sum"))(x), expected)
    names = " ".join("abcd"[:x.ndim])
    turned = tl.rearrange(np.ascontiguousarray(x.T), f"{names[::-1]} -> {names}")
    assert tl.same_bits(tl.reduce(turned, pattern, "sum"), expected)


@pytest.mark.parametrize("by", ["min", "max"])
@pytest.mark.parametrize("pattern", ["a b -> b", "a b -> a", "a b ->"])
def test_extremes_keep_the_sign_of_the_first_zero_and_spread_nan(by, pattern):
    x = RNG.choice([0.0, -0.0], (3, 5))
    x[1, 2] = np.nan
    rows = {"a b -> b": x.T, "a b -> a": x, "a b ->": x.reshape(1, -1)}[pattern]
    expected = [np.nan if np.isnan(r).any() else r[0] for r in rows]
    got = np.asarray(tl.reduce(x, pattern, by)).reshape(-1)
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    assert np.array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(np.array(expected)[~np.isnan(got)]))


def test_numpy_adds_rows_in_order_here():
    assert orders._numpy_adds_rows_in_order()


CONTRACTIONS = [("a b, b c -> a c", [(80, 70), (70, 60)]), ("a, b, c ->", [(70,), (70,), (70,)]),
                ("k b, k b, k b -> b", [(300, 900)] * 3), ("a b, b c, b -> a c", [(60, 80), (80, 70), (80,)]),
                ("a b, c -> c", [(90, 80), (50,)]), ("b i, i j, b j -> b", [(40, 80), (80, 90), (40, 90)])]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("pattern, shapes", CONTRACTIONS, ids=[row[0] for row in CONTRACTIONS])
def test_contractions(pattern, shapes, dtype):
    arrays = [spread(s, RNG).astype(np.float32).astype(dtype) % 1000 for s in shapes]
    got = tl.einsum(pattern, *arrays)
    letters = pattern.replace(" ", "")
    terms, out = letters.split("->")
    names = list(dict.fromkeys(terms.replace(",", "")))
    words = contract.impl(*arrays, labels=tuple(tuple(map(names.index, t)) for t in terms.split(",")),
                          out=tuple(map(names.index, out)), order="ordered",
                          summed=tuple(k for k, n in enumerate(names) if n not in out))
    assert tl.same_bits(got, words)
    assert tl.same_bits(tl.run(lambda *xs: tl.einsum(pattern, *xs))(*arrays), words)
