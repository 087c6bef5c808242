"""Correct rounding in binary32 (samples, exceptional inputs, one whole function), binary16 and bfloat16."""
import concurrent.futures
import ctypes

import numpy as np
import pytest

from benchmarks.elementary_exhaustive import BLOCK, NAMES, filtered, in_pairs, judged, library, rounded32
from tlgrad.kernels.elementary import FUNCTIONS, evaluate, meaning, unrounded
from tlgrad.kernels.expr import Numpy, Value

POINTER, COUNT = ctypes.c_void_p, ctypes.c_int64
STEP = 4093                             # odd, so that 2**20 steps of it spread over all words
EXCEPTIONAL = [(name, word) for name in NAMES for word in FUNCTIONS[name].exceptional]


@pytest.mark.parametrize("name", NAMES)
def test_a_million_samples_are_correctly_rounded(name):
    row = judged(name, [filtered(library(), name, 0, 1 << 20, STEP)])
    assert row["wrong"] == 0, row
    assert row["near"] < 10000


@pytest.mark.parametrize("name", [name for name in NAMES if FUNCTIONS[name].pairs])
def test_a_binade_has_the_words_of_the_narrow_body(name):
    assert in_pairs(name, 0x3f000000, 0x40000000) == 0


@pytest.mark.parametrize("name, word", EXCEPTIONAL, ids=lambda v: v if isinstance(v, str) else f"{v:#x}")
def test_exceptional_input(name, word):
    x = np.array([word], np.uint32).view(np.float32)
    want = FUNCTIONS[name].exceptional[word]
    assert rounded32(name, x[0]).view(np.uint32) == want
    assert meaning(name, x).view(np.uint32)[0] == want
    assert evaluate(name, np.repeat(x, 300)).view(np.uint32)[7] == want


@pytest.mark.parametrize("name", ["rsqrt", pytest.param("exp", marks=pytest.mark.slow)])
def test_every_input(name):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        starts = range(0, 1 << 32, BLOCK)
        blocks = list(pool.map(lambda s: filtered(library(), name, s, s + BLOCK), starts))
    row = judged(name, blocks)
    assert row["wrong"] == 0, row


# ---------------------------------------------------------------- narrower formats

def to_binary16(y):
    return y.astype(np.float16).view(np.uint16)


def to_bfloat16(y):
    """The words of `y` rounded once to bfloat16: by way of binary32 rounded to odd."""
    single = y.astype(np.float32)
    word, back = single.view(np.uint32), single.astype(np.float64)
    word = np.where(np.abs(back) > np.abs(y), word - 1, word)
    word = word | ((np.abs(back) != np.abs(y)) & ~np.isnan(y))
    rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16
    return np.where(np.isnan(y), 0x7fc0, rounded).astype(np.uint16)


def words(name, format):
    """All 2**16 numbers of a format, as binary64, and the result's words by the narrow body."""
    if format == "binary16":
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        return x.astype(np.float64), evaluate(name, x).view(np.uint16), to_binary16
    x = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    y = np.asarray(unrounded(name, Value(Numpy(), x, "f64")).handle)
    return x, to_bfloat16(y), to_bfloat16


@pytest.mark.parametrize("format", ["binary16", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_every_input_of_a_sixteen_bit_format(name, format):
    with np.errstate(all="ignore"):
        x, got, rounding = words(name, format)
        y = np.empty_like(x)
        assert library().values(name.encode(), x.ctypes.data_as(POINTER), y.ctypes.data_as(POINTER),
                                COUNT(len(x))) == 0
        low, high = rounding(y * (1 - 2.0 ** -48)), rounding(y * (1 + 2.0 ** -48))
    ordinary = ~np.isnan(y) & (low == high)
    np.testing.assert_array_equal(got[ordinary], low[ordinary])
