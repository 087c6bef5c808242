"""Values between the entries of an array: resizing and sampling at given coordinates, differentiable.

    resize            separable weights along each axis, as `jax.image.resize`
    map_coordinates   at coordinates in entries, as `scipy.ndimage.map_coordinates` of order 0 and 1
    interpolate, grid_sample    under the conventions of `torch.nn.functional`, channels first

Sums over neighbours are ordered, from low to high index along the last axis first.
"""
from __future__ import annotations

import itertools
import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.numpy.arrays import as_array, as_shape
from tlgrad.numpy.elementwise import as_inexact, clip
from tlgrad.numpy.products import tensordot
from tlgrad.numpy.shaping import broadcast_arrays, moveaxis, reshape
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.promote import as_dtype_value

__all__ = ["grid_sample", "interpolate", "map_coordinates", "resize"]


# ---- resizing ----

def _triangle(t):
    return np.maximum(0, 1 - np.abs(t))


def _cubic(a):
    """Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    def kernel(t):
        t = np.abs(t)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0.0))
    return kernel


_KERNELS = {"linear": _triangle, "bilinear": _triangle, "trilinear": _triangle, "cubic": _cubic(-0.5),
            "bicubic": _cubic(-0.5)}


def _weights(old: int, new: int, method: str, antialias: bool) -> np.ndarray:
    """(new, old) weights with rows of sum 1; centres of entries are at k + 1/2, weights outside are dropped."""
    centres = (np.arange(new) + 0.5) * (old / new)
    if method == "nearest":
        places = np.minimum(np.floor(centres), old - 1).astype(int)
        return (places[:, None] == np.arange(old)).astype(float)
    if method not in _KERNELS:
        raise ArgumentError(f"resize: method is 'nearest', 'linear' or 'cubic', got {method!r}")
    width = max(old / new, 1.0) if antialias else 1.0
    weights = _KERNELS[method]((centres[:, None] - 0.5 - np.arange(old)) / width)
    return weights / weights.sum(axis=1, keepdims=True)


def _along(x, axis, weights, order):
    weights = as_dtype_value(as_array(weights, "resize"), x.dtype)
    return moveaxis(tensordot(weights, x, axes=((1,), (axis,)), order=order), 0, axis)


def resize(image, shape, method: str = "linear", antialias: bool = True, *, order: str | None = None) -> Value:
    """`image` in another shape of the same rank, "nearest", "linear" or "cubic"; `antialias` widens the kernel
    where an axis shrinks.

    >>> resize(tl.tensor([0.0, 1.0]), (4,)).tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    x, shape = as_inexact(image, "resize"), as_shape(shape, "resize")
    if len(shape) != x.ndim:
        raise ShapeError(f"resize: the image has shape {x.shape}, the new shape {shape}: the ranks differ")
    for axis, (old, new) in enumerate(zip(x.shape, shape)):
        if new and not old:
            raise ShapeError(f"resize: axis {axis} of the image is empty, shape {x.shape}, and has no entries to "
                             f"make the {new} of the new shape {shape} from")
        if old != new:
            x = _along(x, axis, _weights(old, new, method, antialias), order)
    return x


def interpolate(x, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool = False, *,
                order: str | None = None) -> Value:
    """x (n, c, *space) with its space resized: to `size`, or by `scale_factor`.

    mode "nearest", "linear" (also "bilinear", "trilinear") or "bicubic" (a = -3/4, edges repeated);
    align_corners: the centres of the outer entries meet, else their outer edges.
    """
    x = as_inexact(x, "interpolate")
    old = x.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: give size or scale_factor")
    per_axis = size if size is not None else scale_factor
    per_axis = per_axis if isinstance(per_axis, (tuple, list)) else [per_axis] * len(old)
    for axis, (m, s) in enumerate(zip(old, per_axis), 2):
        n, step = (int(s), m / s) if size is not None else (math.floor(m * s), 1 / s)
        x = _along(x, axis, _aligned(m, n, step, mode, align_corners), order)
    return x


def _aligned(old, new, step, mode, align):
    """(new, old) weights; `step` entries of the old array for one of the new."""
    if align and mode != "nearest":
        at = np.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    else:
        at = (np.arange(new) + 0.5) * step - 0.5
    if mode == "nearest":
        return _spread(np.floor(np.arange(new) * step)[:, None], np.ones((new, 1)), old)
    if mode in ("linear", "bilinear", "trilinear"):
        at = np.clip(at, 0, old - 1)
        kernel, offsets = _triangle, np.arange(2)
    elif mode == "bicubic":
        kernel, offsets = _cubic(-0.75), np.arange(-1, 3)
    else:
        raise ArgumentError(f"interpolate: mode is 'nearest', 'linear' or 'bicubic', got {mode!r}")
    places = np.floor(at)[:, None] + offsets
    return _spread(places, kernel(at[:, None] - places), old)


def _spread(places, weights, old):
    """Weights at places, as a matrix; places outside count for the edge."""
    out = np.zeros((len(places), old))
    for row, columns, values in zip(out, np.clip(places, 0, old - 1).astype(int), weights):
        np.add.at(row, columns, values)
    return out


# ---- sampling at coordinates ----

_OUTSIDE = ("constant", "nearest", "wrap", "reflect", "mirror")


def map_coordinates(input, coordinates, order: int = 1, mode: str = "constant", cval=0.0) -> Value:
    """Values of `input` at coordinates (one array for each axis, in entries), nearest (0) or linear (1).

    mode says what lies outside: "constant" (`cval`), "nearest" (the edge), "wrap", "mirror" (about the centre
    of the edge entry) or "reflect" (about its outer side).  Differentiable in the input and, to order 1, in
    the coordinates.

    >>> map_coordinates(tl.tensor([0.0, 10.0]), [tl.tensor([0.25])]).tolist()
    [2.5]
    """
    if order not in (0, 1) or mode not in _OUTSIDE:
        raise ArgumentError(f"map_coordinates: order is 0 or 1 and mode one of {_OUTSIDE}, got {order!r} and "
                            f"{mode!r}")
    x = as_inexact(input, "map_coordinates")
    points = broadcast_arrays(*[as_inexact(c, "map_coordinates") for c in coordinates])
    if len(points) != x.ndim:
        raise ShapeError(f"map_coordinates: {x.ndim} axes, but {len(points)} coordinates")
    neighbours = [_neighbours(c, n, order) for c, n in zip(points, x.shape)]
    total = None
    for corner in itertools.product(*neighbours):
        weight, places, inside = None, [], None
        for (place, share), n in zip(corner, x.shape):
            here = lo.and_(lo.ge(place, 0), lo.lt(place, n))
            inside = here if inside is None else lo.and_(inside, here)
            places.append(_folded(place, n, mode))
            weight = share if weight is None or share is None else ar.mul(weight, share)
        value = x[tuple(places)]
        if mode == "constant":
            value = lo.where(inside, value, cval)
        term = value if weight is None else ar.mul(weight, value)
        total = term if total is None else ar.add(total, term)
    return total


def _neighbours(c, n, order):
    """(place, weight) of the entries around a coordinate."""
    if order == 0:
        return [(convert(ar.floor(ar.add(c, 0.5)), dtypes.int64), None)]
    low = ar.floor(c)
    part = ar.sub(c, low)
    place = convert(low, dtypes.int64)
    return [(place, ar.sub(1.0, part)), (ar.add(place, 1), part)]


def _folded(place, n, mode):
    """The entry that stands for a place outside."""
    if mode == "wrap":
        return ar.remainder(place, n)
    if mode in ("mirror", "reflect"):
        period = max(2 * n - 2, 1) if mode == "mirror" else 2 * n
        place = ar.remainder(place, period)
        return lo.where(lo.lt(place, n), place, ar.sub(period - (mode == "reflect"), place)) if n > 1 \
            else ar.mul(place, 0)
    return clip(place, 0, n - 1)


def grid_sample(x, grid, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool = False) -> Value:
    """x (n, c, *space) at `grid` (n, *out, d) -> (n, c, *out); coordinates in [-1, 1], the last axis first.

    mode "nearest" or "bilinear"; padding_mode "zeros" or "border"; align_corners: -1 and 1 are the
    centres of the outer entries, else their outer edges.  Differentiable in x and, bilinear, in the grid.
    """
    x, grid = as_inexact(x, "grid_sample"), as_inexact(grid, "grid_sample")
    space = x.shape[2:]
    if padding_mode not in ("zeros", "border") or mode not in ("nearest", "bilinear"):
        raise ArgumentError("grid_sample: mode is 'nearest' or 'bilinear', padding_mode 'zeros' or 'border', got "
                            f"{mode!r}, {padding_mode!r}")
    if grid.shape[-1] != len(space) or grid.shape[0] != x.shape[0]:
        raise ShapeError(f"grid_sample: x {x.shape} needs a grid ({x.shape[0]}, ..., {len(space)}), "
                         f"got {grid.shape}")
    n, channels, out = x.shape[0], x.shape[1], grid.shape[1:-1]
    lead = [reshape(as_array(np.arange(m), ""), shape) for m, shape in (
        (n, (n, 1) + (1,) * len(out)), (channels, (1, channels) + (1,) * len(out)))]
    points = []
    for k, m in enumerate(space):
        t = reshape(grid[..., len(space) - 1 - k], (n, 1, *out))
        c = ar.mul(ar.add(t, 1.0), (m - 1) / 2) if align_corners else ar.sub(ar.mul(ar.add(t, 1.0), m / 2), 0.5)
        points.append(clip(c, 0, m - 1) if padding_mode == "border" else c)
    wide = [convert(v, points[0].dtype) for v in lead]
    return map_coordinates(x, [*wide, *points], 0 if mode == "nearest" else 1)
