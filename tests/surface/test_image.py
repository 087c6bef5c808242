"""Resizing and sampling between entries: SciPy's values, formulas, derivatives, refusals."""
import numpy as np
import pytest
from scipy import ndimage

import tlgrad as tl
from tlgrad import image
from tlgrad.errors import ArgumentError, ShapeError

rng = np.random.default_rng(3)
X = rng.normal(size=(5, 7))
INSIDE = rng.uniform(0.1, 3.9, size=(2, 20))
OUTSIDE = rng.uniform(-8, 14, size=(2, 40))


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_coordinates_against_scipy(mode, order):
    theirs = {"wrap": "grid-wrap", "constant": "grid-constant"}.get(mode, mode)
    right = ndimage.map_coordinates(X, OUTSIDE, order=order, mode=theirs, cval=0.5)
    assert np.allclose(image.map_coordinates(X, list(OUTSIDE), order, mode, 0.5), right, rtol=1e-14, atol=1e-14)


def test_coordinates_differentiate_in_both():
    f = lambda x, c: tl.sum(image.map_coordinates(x, [c[0], c[1]])**2)
    by_x, by_c = tl.grad(f, argnums=(0, 1))(X, INSIDE)
    for x, slope, k in ((X, by_x, 0), (INSIDE, by_c, 1)):
        step = rng.normal(size=x.shape)
        at = [f(*[v + s * 1e-6 * step if i == k else v for i, v in enumerate((X, INSIDE))]).item()
              for s in (1, -1)]
        assert np.sum(np.asarray(slope) * step) == pytest.approx((at[0] - at[1]) / 2e-6, rel=1e-7)
    assert np.allclose(tl.run(tl.grad(f))(X, INSIDE), by_x)


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("shape", [(9, 3), (5, 14), (2, 2)])
def test_resizing(method, shape):
    """Constants stay; each row of weights sums to 1; linear functions stay in the middle of larger images."""
    assert np.allclose(image.resize(np.full((5, 7), 3.0), shape, method), 3.0, rtol=1e-14)
    y = image.resize(X, shape, method)
    assert y.shape == shape and np.allclose(image.resize(X.T, shape[::-1], method).T, y, rtol=1e-13, atol=1e-13)
    ramp = np.asarray(image.resize(np.arange(8.0), (16,), method))
    if method != "nearest":
        assert np.allclose(ramp[4:-4], np.arange(16)[4:-4] / 2 - 0.25)
    assert np.allclose(tl.grad(lambda x: tl.sum(image.resize(x, shape, method, False)))(X).sum(), np.prod(shape))


def test_interpolate_upsamples_as_torch():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])[None, None]
    edges = [[1, 1.25, 1.75, 2], [1.5, 1.75, 2.25, 2.5], [2.5, 2.75, 3.25, 3.5], [3, 3.25, 3.75, 4]]
    assert image.interpolate(x, scale_factor=2, mode="bilinear")[0, 0].tolist() == edges
    corners = np.asarray(image.interpolate(x, size=(4, 4), mode="bilinear", align_corners=True))[0, 0]
    assert np.allclose(corners, 1 + np.add.outer(np.arange(4) * 2 / 3, np.arange(4) / 3))
    assert image.interpolate(x, size=(4, 2))[0, 0].tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]
    impulse = (np.arange(9.0) == 4)[None, None] * 1.0
    found = np.asarray(image.interpolate(impulse, scale_factor=2, mode="bicubic"))[0, 0, 4:14]
    half = [-0.03515625, -0.10546875, 0.26171875, 0.87890625]               # the kernel with a = -3/4
    assert np.allclose(found, [0, *half, *half[::-1], 0], atol=1e-15)


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_grid_sample_against_scipy(corners, padding):
    images = rng.normal(size=(2, 3, 5, 7))
    grid = rng.uniform(-1.3, 1.3, size=(2, 4, 6, 2))
    got = np.asarray(image.grid_sample(images, grid, padding_mode=padding, align_corners=corners))
    t = grid[..., ::-1]
    size = np.array([5, 7])
    places = (t + 1) * (size - 1) / 2 if corners else (t + 1) * size / 2 - 0.5
    places = np.clip(places, 0, size - 1) if padding == "border" else places
    for n in range(2):
        for c in range(3):
            right = ndimage.map_coordinates(images[n, c], np.moveaxis(places[n], -1, 0), order=1,
                                            mode="grid-constant")
            assert np.allclose(got[n, c], right, rtol=1e-12, atol=1e-12)
    f = lambda g: tl.sum(image.grid_sample(images, g, padding_mode=padding, align_corners=corners)**2)
    step = rng.normal(size=grid.shape)
    at = [f(grid + s * 1e-7 * step).item() for s in (1, -1)]
    assert np.sum(np.asarray(tl.grad(f)(grid)) * step) == pytest.approx((at[0] - at[1]) / 2e-7, rel=1e-5)


@pytest.mark.parametrize("call, error, text", [
    (lambda: image.resize(X, (3,)), ShapeError, "ranks differ"),
    (lambda: image.resize(X[:0], (3, 3)), ShapeError, "axis 0 of the image is empty"),
    (lambda: image.resize(X, (3, 3), "sinc"), ArgumentError, "'nearest', 'linear' or 'cubic'"),
    (lambda: image.interpolate(X[None, None]), ArgumentError, "size or scale_factor"),
    (lambda: image.map_coordinates(X, [X]), ShapeError, "2 axes, but 1"),
    (lambda: image.map_coordinates(X, [X, X], 3), ArgumentError, "order is 0 or 1"),
    (lambda: image.grid_sample(X[None, None], X[None]), ShapeError, "needs a grid")],
    ids=["rank", "empty", "method", "size", "axes", "order", "grid"])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()
