"""Tensors: making, words, conversion, text, immutability."""
import copy

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.core import dtypes

HARDWARE = [d for d in dtypes.all_dtypes() if not d.software]


@pytest.mark.parametrize("dtype", HARDWARE, ids=str)
def test_numpy_there_and_back(dtype):
    array = np.array([[0, 1], [2, 100]]).astype(dtype.storage)
    t = tl.tensor(array)
    assert t.dtype is dtype and t.shape == (2, 2) and t.ndim == 2 and t.size == 4
    out = np.asarray(t)
    assert out.dtype == dtype.storage and np.array_equal(out, array) and np.shares_memory(out, t.data)
    assert not out.flags.writeable
    array[0, 0] = 1
    assert not np.asarray(t)[0, 0], "a tensor does not see later writes"


def test_what_numbers_and_lists_become():
    assert [tl.tensor(v).dtype for v in (1, 1.0, True, 1j, [1, 2.5])] == \
        [tl.int64, tl.float64, tl.bool_, tl.complex128, tl.float64]
    assert tl.tensor([1, 2], tl.float32).dtype is tl.float32
    assert tl.tensor(np.array([1.0], ">f4")).dtype is tl.float32
    assert tl.tensor(np.float32(0.1)).dtype is tl.float32
    assert tl.tensor(tl.ones(2)).shape == (2,)


def test_words():
    assert tl.tensor([1.0, -0.0]).words().tolist() == [0x3FF0000000000000, 0x8000000000000000]
    assert tl.tensor(1.0, tl.bfloat16).words() == 0x3F80
    assert tl.tensor([1 - 1j], tl.complex64).words().tolist() == [[0x3F800000, 0xBF800000]]


def test_same_bits():
    nan = float("nan")
    assert tl.same_bits(tl.tensor([0.0, nan]), tl.tensor([0.0, -nan]))
    assert not tl.same_bits(0.0, -0.0) and not tl.same_bits(tl.tensor(1.0), tl.tensor(1.0, tl.float32))
    assert not tl.same_bits(tl.ones(2), tl.ones((2, 1))) and not tl.same_bits(1.0, nan)
    assert tl.same_bits(tl.tensor([complex(0, nan)]), tl.tensor([complex(0, nan)]))


@pytest.mark.parametrize("value, text", [
    (2.5, "tensor(2.5, float64, shape (), cpu)"), ([1.0, 2.0], "tensor([1., 2.], float64, shape (2,), cpu)"),
    ([True], "tensor([ True], bool, shape (1,), cpu)"),
    (np.zeros((0, 3)), "tensor([], float64, shape (0, 3), cpu)")])
def test_repr_has_dtype_shape_and_device(value, text):
    assert repr(tl.tensor(value)) == text


def test_text_of_large_and_narrow_tensors():
    assert len(repr(tl.zeros((1000, 1000)))) < 700
    assert "bfloat16" in repr(tl.tensor([1.5], tl.bfloat16)) and "1.5" in repr(tl.tensor([1.5], tl.bfloat16))
    assert f"{tl.tensor(2.0):.3f}" == "2.000" and str(tl.tensor(2.0)) == "2.0"


def test_numbers():
    t = tl.tensor([[3]])
    assert (t.item(), int(t), float(t), complex(t), bool(t)) == (3, 3, 3.0, 3 + 0j, True)
    assert [10, 20, 30][tl.tensor(1)] == 20 and tl.tensor([1, 2]).tolist() == [1, 2]
    assert len(tl.zeros((3, 2))) == 3 and [v.tolist() for v in tl.tensor([[1], [2]])] == [[1], [2]]


def test_copies_share_the_immutable_tensor():
    t = tl.ones(3)
    assert copy.deepcopy(t) is t


@pytest.mark.parametrize("source", HARDWARE, ids=str)
def test_conversion_is_numpys(source):
    values = np.array([0, 1, 3, 77]).astype(source.storage)
    for target in HARDWARE:
        with np.errstate(all="ignore"):
            plain = values.real if values.dtype.kind == "c" and target.kind not in "cb" else values
            expected = plain.astype(target.storage)
        x = tl.tensor(values)
        assert tl.same_bits(tl.convert(x, target), expected)
        assert tl.same_bits(tl.run(lambda v: tl.convert(v, target))(x), expected)


def test_conversion_to_bfloat16_rounds_once_to_even():
    rng = np.random.default_rng(0)
    hard = np.float64([1 + 2 ** -8, 1 + 3 * 2 ** -8, 3e38, 3.4e38, 1e-40, np.inf])
    for x in (rng.uniform(-1e3, 1e3, 2000), hard):
        got = np.asarray(tl.tensor(x, tl.bfloat16)).astype(np.float64)
        step = 2.0 ** (np.maximum(np.floor(np.log2(np.abs(x))), -126) - 7)
        with np.errstate(all="ignore"):
            expected = np.where(np.isfinite(x), np.rint(x / step) * step, x)
        expected = np.where(np.abs(expected) >= 2.0 ** 128, np.sign(x) * np.inf, expected)
        assert np.array_equal(got, expected)


def test_bitcast():
    x = tl.tensor([1.0, -2.0], tl.float32)
    assert tl.bitcast(x, tl.uint32).tolist() == [0x3F800000, 0xC0000000]
    assert tl.same_bits(tl.bitcast(tl.bitcast(x, tl.int32), tl.float32), x)
