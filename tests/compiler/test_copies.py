"""Strided copies by kernels: the words are NumPy's."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.copies import _launch, contiguous, copied
from tlgrad.kernels.tiles.copy import joined, move_of, stays_view

RNG = np.random.default_rng(7)
SHAPES = [(301,), (65, 67), (64, 128), (3, 200), (200, 3), (17, 1, 33), (5, 34, 66), (2, 3, 4, 70),
          (3, 5, 2, 7, 37), (2, 3, 2, 3, 2, 21)]


def entries(shape, size):
    """Random words of `size` bytes; 24 is a structure."""
    dtype = np.dtype([("low", "V8"), ("high", "V16")] if size == 24 else f"V{size}")
    return RNG.integers(0, 256, (*shape, size), np.uint8).view(dtype)[..., 0]


def words_of(x):
    return x.tobytes()


def views(x):
    """The array seen in many ways."""
    n = x.ndim
    orders = [range(n)[::-1], [*range(1, n), 0], [n - 1, *range(n - 1)], RNG.permutation(n)]
    seen = [x.transpose([int(k) for k in order]) for order in orders]
    seen += [v[tuple([slice(None, None, -1)] * v.ndim)] for v in seen[:2]]
    seen += [v[::-1] for v in seen[:4]]
    seen += [v[::2] for v in seen[:3]] + [v[..., 1:] for v in seen[:3]] + [v[..., ::3] for v in seen[:2]]
    seen += [np.broadcast_to(v, (3, *v.shape)) for v in seen[:2]]
    seen += [np.broadcast_to(v[..., None], (*v.shape, 5)) for v in seen[:2]]
    return seen


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 3, 12, 24, 32])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_copies_have_the_words_of_numpy(shape, size):
    for view in views(entries(shape, size)):
        out = copied(view)
        assert out.flags.c_contiguous and out.shape == view.shape and out.dtype == view.dtype
        assert words_of(out) == words_of(np.array(view, order="C")), (view.shape, view.strides)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_most_views_are_copied_by_kernels(size):
    x = entries((65, 3, 67), size)
    assert None not in [_launch(v.shape, v.strides, size) for v in
                        (x.T, x.transpose(1, 0, 2), x.transpose(0, 2, 1), x[::2], x.T[:, ::-1])]


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("edge", [0, 1], ids=["whole lines", "odd"])
def test_large_results_written_past_the_caches(size, edge):
    rows, columns = 2048 + edge, (10 << 20) // 2048 // size // 64 * 64 + edge
    square = entries((rows, columns), size)
    assert words_of(copied(square.T)) == words_of(np.array(square.T, order="C"))
    runs = square.reshape(rows, 1, columns)[:, :, :columns - edge].repeat(2, 1).transpose(1, 0, 2)
    assert words_of(copied(runs)) == words_of(np.array(runs, order="C"))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5, 2), (), (1, 1)], ids=str)
def test_nothing_to_copy(shape):
    x = np.ones(shape)
    assert copied(x.T).shape == shape[::-1]
    assert tl.same_bits(copied(x.T), x.T)


def test_the_source_is_returned_when_row_major():
    x = np.zeros((300, 300))
    assert contiguous(x) is x
    assert contiguous(x.T).flags.c_contiguous


def test_joined_axes():
    assert joined((2, 3, 4), (96, 32, 8)) == [(24, 8)]
    assert joined((4, 1, 3), (8, 5, 32)) == [(4, 8), (3, 32)]
    assert joined((2, 3), (0, 0)) == [(6, 0)]


def test_runs_use_the_widest_word():
    assert move_of((5, 7, 8), (8, 40, 1), 1).size == 8
    assert move_of((5, 7, 6), (6, 30, 1), 1).size == 2
    assert move_of((5, 7), (12, 60), 12).size == 4


def test_long_runs_are_taken_in_the_order_of_the_source():
    move = move_of((8, 512, 64), (256, 2048, 4), 4)
    assert move.words[1:7] == (512, 2048, 256, 8, 256, 512 * 256)


@pytest.mark.parametrize("new", [(24,), (4, 6), (6, 4), (2, 2, 6), (12, 2), (2, 3, 4), (1, 4, 6, 1)], ids=str)
@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_which_reshapes_are_views(axes, new):
    x = np.zeros((4, 6)).transpose(axes)
    assert stays_view(x.shape, x.strides, new) == np.shares_memory(x, x.reshape(new))


def test_large_eager_reshapes():
    x = RNG.standard_normal((300, 70, 40)).astype(np.float32)
    turned = tl.transpose(tl.tensor(x), (2, 0, 1))
    expected = x.transpose(2, 0, 1).reshape(-1, 70)
    assert tl.same_bits(tl.reshape(turned, (12000, 70)), expected)
    assert tl.same_bits(tl.run(lambda t: tl.reshape(t, (12000, 70)))(turned), expected)
    assert np.shares_memory(np.asarray(tl.reshape(turned, (40, 300, 7, 10))), np.asarray(turned))
