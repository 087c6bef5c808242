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
    return len(re.findall(r"^    (?:k\d+|parallel)\(", plan.source, re.M))


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


def test_threads_have_bands_of_their_own(monkeypatch):
    monkeypatch.setenv("TLGRAD_NUM_THREADS", "3")
    x, w = numbers((700, 501)), numbers((700, 501), seed=1)
    plan = compiled(PROGRAMS["gradient of softmax"], x, w)
    assert "parallel(" in plan.source
    first, = plan.run(x, w)
    for _ in range(50):
        assert tl.same_bits(plan.run(x, w)[0], first)
