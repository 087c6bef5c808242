"""Kernels over one set of rows run band by band, with the words of the reference."""
import re

import numpy as np
import pytest
from beside_reference import compiled

import tlgrad as tl
from tlgrad.backends.numba_cpu import bands


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def launches(plan):
    """How many launches a plan makes."""
    return len(re.findall(r"^    (?:k|shared)\d+\(", plan.source, re.M))


def norm(x, scale):
    centred = x - tl.mean(x, axis=-1, keepdims=True)
    return centred / tl.sqrt(tl.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * scale


PROGRAMS = {
    "softmax": lambda x, w: tl.softmax(x), "log_softmax": lambda x, w: tl.log_softmax(x),
    "logsumexp": lambda x, w: tl.logsumexp(x, axis=-1), "norm": lambda x, w: norm(x, w),
    "gradient of softmax": tl.grad(lambda x, w: tl.sum(tl.softmax(x) * w)),
    "gradient of log_softmax": tl.value_and_grad(lambda x, w: tl.sum(tl.log_softmax(x) * w)),
    "gradient of a maximum": tl.grad(lambda x, w: tl.sum(tl.max(x, axis=-1) * w[..., 0]))}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", [(37, 1000), (5, 3, 33), (100, 40), (2, 7, 64), (2, 5), (1, 50)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_words_of_row_programs(name, shape, dtype):
    compiled(PROGRAMS[name], numbers(shape, dtype), numbers(shape, dtype, 1))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_bands_of_any_height_give_the_same_words(rows, monkeypatch):
    monkeypatch.setattr(bands, "TOGETHER", rows)
    monkeypatch.setattr(bands, "BAND_BYTES", 1)
    for f in PROGRAMS.values():
        compiled(f, numbers((11, 70)), numbers((11, 70), seed=1))


def test_a_softmax_and_its_gradient_are_one_launch_each():
    x, w = numbers((64, 300)), numbers((64, 300), seed=1)
    plan = compiled(PROGRAMS["softmax"], x, w)
    assert launches(plan) == 1 and len(plan.kernels) == 4
    assert launches(compiled(PROGRAMS["gradient of softmax"], x, w)) == 1


def test_what_is_read_elsewhere_is_kept():
    def f(x):
        e = tl.exp(x - tl.max(x, axis=1, keepdims=True))
        total = tl.sum(e, axis=1, keepdims=True)
        return e, total, tl.matmul(e / total, tl.transpose(e))
    compiled(f, numbers((33, 40)))


@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (1, 4)])
def test_empty_rows_and_a_single_one(shape):
    def f(x):
        total = tl.sum(x, axis=1, keepdims=True)
        y = x - total
        return tl.sum(y, axis=1), y * 2.0, total + 1.0
    compiled(f, numbers(shape))


def test_a_reader_of_other_rows_waits_for_all_of_them(monkeypatch):
    monkeypatch.setattr(bands, "TOGETHER", 1)
    monkeypatch.setattr(bands, "BAND_BYTES", 1)

    def f(x):
        y = x - tl.max(x, axis=1, keepdims=True)
        return tl.sum(y + tl.transpose(y), axis=1), tl.sum(y * y[::-1], axis=1), tl.sum(y, axis=1) * y[3, 4]
    compiled(f, numbers((40, 40)))


def test_rows_that_are_too_long_for_a_band_are_not_one_launch(monkeypatch):
    monkeypatch.setattr(bands, "MOST_BYTES", 1 << 12)
    assert launches(compiled(PROGRAMS["softmax"], numbers((64, 300)), numbers((64, 300)))) == 4


def step(x, d, w):
    """A gradient of a weight, used up at once."""
    return w - 0.5 * tl.matmul(tl.transpose(x), d)


@pytest.mark.parametrize("order", ["ordered", "fused"])
@pytest.mark.parametrize("terms,rows,columns", [(5, 150, 40), (128, 97, 130), (3, 2, 2), (20, 48, 64)])
def test_the_rows_of_a_product_go_on_to_its_reader(terms, rows, columns, order):
    rng = np.random.default_rng(3)                      # whole numbers: exact in both orders
    x, d, w = (rng.integers(-9, 9, shape).astype("float32")
               for shape in ((terms, rows), (terms, columns), (rows, columns)))
    got = tl.run(step, order=order)(x, d, w)
    assert tl.same_bits(got, w - np.float32(0.5) * (x.T @ d))
    assert tl.same_bits(tl.run(step, order=order, donate=(2,))(x, d, tl.tensor(w)), got)


def test_a_product_and_its_only_reader_are_one_launch():
    x, d, w = numbers((30, 100)), numbers((30, 70), seed=1), numbers((100, 70), seed=2)
    assert launches(compiled(step, x, d, w)) == 1
    compiled(lambda x, d, w: (step(x, d, w), tl.matmul(tl.transpose(x), d)), x, d, w)
    compiled(lambda x, d, w: tl.transpose(tl.matmul(tl.transpose(x), d)) + tl.transpose(w), x, d, w)
    both = compiled(lambda x, d, w: tl.softmax(tl.matmul(tl.transpose(x), d)) * w, x, d, w)
    assert launches(both) == 1


def test_a_factor_that_is_given_up_is_not_written_while_bands_read_it(monkeypatch):
    monkeypatch.setattr(bands, "BAND_BYTES", 1)
    x, w = numbers((100, 100)), numbers((100, 100), seed=1)
    f = lambda x, w: w - tl.matmul(tl.transpose(w), x)                              # noqa: E731
    want = tl.run(f)(x, w)
    assert tl.same_bits(tl.run(f, donate=(0, 1))(tl.tensor(x), tl.tensor(w)), want)


def test_threads_have_bands_of_their_own(monkeypatch):
    monkeypatch.setenv("TLGRAD_NUM_THREADS", "3")
    x, w = numbers((700, 501)), numbers((700, 501), seed=1)
    plan = compiled(PROGRAMS["gradient of softmax"], x, w)
    assert "shared" in plan.source
    first, = plan.run(x, w)
    for _ in range(50):
        assert tl.same_bits(plan.run(x, w)[0], first)


@pytest.mark.parametrize("products", [2, 3, 4])
def test_a_chain_of_products_ends_in_a_kernel(products):
    x = numbers((20, 24))

    def f(x, w):
        for _ in range(products):
            x = x @ w
        return tl.exp(x * 0.125) + 1.0
    compiled(f, x, numbers((24, 24), seed=1) * np.float32(0.25))
