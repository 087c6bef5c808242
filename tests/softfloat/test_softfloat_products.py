"""Ordered products of binary128 in the normal range have the words of one operation after another."""
import numpy as np
import pytest
import softfloat_fuzz as fuzz

from tlgrad.kernels.softfloat import catalogue, products
from tlgrad.softfloat import array, fast
from tlgrad.softfloat.format import binary128
from tlgrad.softfloat.storage import dtype_of

U = np.uint64
needs_kernel = pytest.mark.skipif(not catalogue.has_products(), reason="needs AVX-512 with IFMA")


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(fast, "WARM", 0)
    monkeypatch.setattr(fast, "WITHIN", 0)


def numbers(rng, shape, spread):
    """Numbers of exponents about 0 whose fractions are structured, short or 0; a part of them 0."""
    count = int(np.prod(shape))
    low, high = fuzz._fractions(count, rng)
    kind = rng.integers(0, 5, count)
    low, high = np.where(kind < 2, U(0), low), np.where(kind == 0, U(0), high)
    high = np.where(kind == 1, high >> U(40) << U(40), high)
    high |= (16383 + rng.integers(-spread, spread + 1, count)).astype(U) << U(48)
    zero = rng.random(count) < rng.choice([0, 0.05, 0.5])
    low, high = np.where(zero, U(0), low), np.where(zero, U(0), high)
    high |= rng.integers(0, 2, count).astype(U) << U(63)
    return np.stack([low, high], -1).view(dtype_of(binary128)).reshape(shape)


def matrices(rng, spread):
    """Two matrices, terms first, half of whose products cancel the one before or nearly so, and a start."""
    terms, rows, columns = rng.integers(1, 24), rng.integers(1, 14), rng.integers(1, 20)
    a, b = numbers(rng, (terms, rows), spread), numbers(rng, (terms, columns), spread)
    words = b.view(U).reshape(terms, columns, 2)
    for k in range(1, terms):
        if rng.random() < 0.5:
            a[k], words[k] = a[k - 1], words[k - 1] ^ U([0, 1 << 63])
            changed = rng.integers(0, 2, columns).astype(bool) & (words[k, :, 1] << U(1)).astype(bool)
            words[k, :, 0] ^= np.where(changed, U(1) << rng.integers(0, 64, columns).astype(U), U(0))
    start = numbers(rng, (rows, columns), spread)
    start[array.evaluate("eq", binary128, start, np.zeros_like(start))] = np.zeros((), start.dtype)
    return a, b, start


def one_by_one(a, b, start):
    for x, y in zip(a, b):
        start = array.evaluate("add", binary128, start, array.evaluate("mul", binary128, x[:, None], y[None, :]))
    return start


@needs_kernel
@pytest.mark.parametrize("spread", [0, 1, 12, 14, 63, 66, 113, 130, 3000])
def test_words_are_those_of_one_operation_after_another(spread):
    rng = np.random.default_rng(spread)
    for _ in range(12):
        a, b, start = matrices(rng, spread)
        assert products.within(*fast._extremes(a, b, start))
        got = array.contract(a, b, start, binary128)
        assert np.array_equal(got, one_by_one(a, b, start))


ONE = (16383, 16383, 0)


@pytest.mark.parametrize("a, b, start, inside", [
    (ONE, ONE, (products.TOP, 0, 0), True),                 # zeros to begin with
    ((products.TOP, 0, 0), (1, 32766, 1), ONE, True),       # 0 by anything finite
    (ONE, ONE, (products.TOP, 0, 1), False),                # -0 to begin with
    (ONE, (100, products.TOP, 0), ONE, False),              # an infinity or NaN
    ((0, 16383, 0), (32000, 32000, 0), ONE, False),         # a subnormal operand
    ((8000, 8000, 0), (8495, 8495, 0), ONE, False), ((8000, 8000, 0), (8496, 8496, 0), ONE, True),
    (ONE, ONE, (112, 112, 0), False), (ONE, ONE, (113, 113, 0), True),
    ((24600, 24600, 0), (24484, 24484, 0), ONE, True), ((24600, 24600, 0), (24485, 24485, 0), ONE, False),
    (ONE, ONE, (32702, 32702, 0), True), (ONE, ONE, (32703, 32703, 0), False)])
def test_what_is_within_the_range(a, b, start, inside):
    assert products.within(a, b, start) is inside


@needs_kernel
@pytest.mark.parametrize("word, where", [
    (0x7fff << 112, "a"), (1 << 127, "start"), (1, "b"), (0x7ffe << 112, "a")])
def test_numbers_outside_take_the_general_kernel(word, where):
    given = dict(zip(("a", "b", "start"), matrices(np.random.default_rng(3), 8)))
    given[where].view(U).reshape(-1, 2)[-1] = word & (1 << 64) - 1, word >> 64
    got = array.contract(*given.values(), binary128)
    assert np.array_equal(got, one_by_one(*given.values()))
    assert not products.within(*fast._extremes(*given.values()))


@needs_kernel
def test_extremes_are_found():
    words = np.array([[0, 1 << 63], [5, 0], [0, 16383 << 48], [1, 0x7ffe << 48]], U)
    x = words.view(dtype_of(binary128)).reshape(4)
    assert fast._extremes(x, x[2:], np.zeros(3, x.dtype)) == [
        [0, 0x7ffe, 1], [16383, 0x7ffe, 0], [products.TOP, 0, 0]]
