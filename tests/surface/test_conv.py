"""Convolution and pooling: words of the loops that define them, transposes, gradients."""
import itertools

import numpy as np
import pytest

import tlgrad as tl
import tlgrad.conv as C
from tlgrad.errors import ArgumentError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 7, 6, 4)).astype(np.float32)
K = rng.normal(size=(3, 2, 4, 6)).astype(np.float32)
G = rng.normal(size=(3, 2, 2, 6)).astype(np.float32)


def loops(x, kernel, strides, pads, dilations, groups):
    """Left to right over the window (row-major), then channels, from +0."""
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    (h, w, c_in, c_out), per = kernel.shape, kernel.shape[3] // groups
    size = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.shape[1:3], dilations, (h, w), strides)]
    y = np.zeros((x.shape[0], *size, c_out), x.dtype)
    for i, j, o in itertools.product(*map(range, (*size, c_out))):
        for a, b, c in itertools.product(range(h), range(w), range(c_in)):
            place = x[:, i * strides[0] + a * dilations[0], j * strides[1] + b * dilations[1], o // per * c_in + c]
            y[:, i, j, o] = y[:, i, j, o] + place * kernel[a, b, c, o]
    return y


@pytest.mark.parametrize("strides, pads, dilations, groups", [
    ((1, 1), ((0, 0), (0, 0)), (1, 1), 1), ((2, 3), ((1, 2), (0, 1)), (1, 1), 1),
    ((1, 1), ((1, 1), (1, 1)), (2, 1), 1),
    ((2, 1), ((0, 0), (1, 0)), (1, 2), 2)], ids=["plain", "strided", "dilated", "grouped"])
def test_words_of_the_loops(strides, pads, dilations, groups):
    kernel = K if groups == 1 else G
    found = C.conv(X, kernel, strides, pads, dilations, groups=groups)
    assert tl.same_bits(found, loops(X, kernel, strides, pads, dilations, groups))


def test_named_padding_and_layout():
    same = C.conv(X, K, 2, "same")
    assert same.shape == (2, 4, 3, 6) and C.conv(X, K, padding="full").shape == (2, 9, 7, 6)
    first = C.conv(np.moveaxis(X, -1, 1), np.transpose(K, (3, 2, 0, 1)), 2, "same", layout="first")
    assert tl.same_bits(np.moveaxis(np.asarray(first), 1, -1), same)
    wrapped = C.conv(X, K, padding=[(1, 1), (0, 1)], padding_mode="circular")
    assert tl.same_bits(wrapped, C.conv(np.pad(X, [(0, 0), (1, 1), (0, 1), (0, 0)], "wrap"), K))


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_other_ranks(rank):
    x = rng.normal(size=(2, *(5, 4, 3)[:rank], 2))
    k = rng.normal(size=(*(2,) * rank, 2, 3))
    y = np.asarray(C.conv(x, k))
    place = (0, *(1,) * rank)
    window = x[(0, *[slice(1, 3)] * rank)]
    assert np.allclose(y[place], np.tensordot(window, k, rank + 1)) and y.shape == (2, *(4, 3, 2)[:rank], 3)


@pytest.mark.parametrize("stride, pad, dilation, groups", [
    (1, 0, 1, 1), (2, 1, 1, 1), ((2, 3), (1, 0), (1, 2), 1), (2, 1, 1, 2)])
def test_transposed_convolution_is_the_adjoint(stride, pad, dilation, groups):
    x, kernel = X.astype(np.float64), (K if groups == 1 else G).astype(np.float64)
    y, pull = tl.vjp(lambda v: C.conv(v, kernel, stride, pad, dilation, groups=groups), x)
    ct = rng.normal(size=y.shape)
    args = kernel, stride, pad, dilation
    short = C.conv_transpose(ct, *args, groups=groups).shape
    extra = tuple(n - m for n, m in zip(x.shape[1:3], short[1:3]))
    assert np.allclose(C.conv_transpose(ct, *args, groups=groups, output_padding=extra), pull(ct)[0])


def test_gradients_against_differences():
    x, k = X[:1, :4, :4, :2].astype(np.float64), K[:2, :2, :2, :3].astype(np.float64)
    tl.testing.check_grads(lambda x, k: C.conv(x, k, 2, 1), (x, k), order=2, rtol=1e-10)
    tl.testing.check_grads(lambda x: C.avg_pool(x, 2, 1, 1), (x,), order=1, rtol=1e-10)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("na, nv", [(7, 3), (3, 7), (6, 4), (4, 6), (5, 5)])
def test_signals_under_numpy_names(na, nv, mode):
    a, v = rng.normal(size=na), rng.normal(size=nv) + 1j * rng.normal(size=nv)
    assert np.allclose(C.convolve(a, v, mode), np.convolve(a, v, mode))
    assert np.allclose(C.correlate(a, v, mode), np.correlate(a, v, mode))
    assert np.allclose(np.convolve(tl.tensor(a), v.real, mode), np.convolve(a, v.real, mode))


def test_pooling():
    blocks = X[:, :6, :6].reshape(2, 3, 2, 3, 2, 4)
    assert tl.same_bits(C.max_pool(X, 2), blocks.max((2, 4)))
    assert np.allclose(C.sum_pool(X, 2), blocks.sum((2, 4)), rtol=1e-6)
    padded = C.avg_pool(np.ones((1, 4, 4, 1)), 3, 1, 1)
    assert np.array_equal(padded, np.ones((1, 4, 4, 1)))
    assert C.avg_pool(np.ones((1, 4, 4, 1)), 3, 1, 1, count_include_pad=True)[0, 0, 0, 0].item() == 4 / 9
    assert C.max_pool(tl.tensor([[[-3], [-1], [-2]]]), 2, 1, "same").tolist() == [[[-1], [-1], [-2]]]
    g = tl.grad(lambda v: tl.sum(C.max_pool(v, 2)))(np.ones((1, 4, 4, 1)))
    assert np.asarray(g)[0, :, :, 0].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0]] * 2


def test_batched_and_patches():
    assert tl.same_bits(tl.vmap(lambda v: C.conv(v[None], K)[0])(X), C.conv(X, K))
    p = np.asarray(C.patches(X, (3, 2)))
    assert p.shape == (2, 5, 5, 3, 2, 4) and np.array_equal(p[1, 2, 3], X[1, 2:5, 3:5])


@pytest.mark.parametrize("call, error, text", [
    (lambda: C.conv(X, G), ShapeError, "4 channels"),
    (lambda: C.conv(X, K, padding="wrong"), ArgumentError, "'same'"),
    (lambda: C.conv(X[:, :2], K), ShapeError, "does not fit spatial axis 0 of size 2"),
    (lambda: C.conv(X[0], K), ShapeError, "4"), (lambda: C.conv(X, K, stride=0), ArgumentError, "positive")],
    ids=["channels", "padding", "window", "rank", "stride"])
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
