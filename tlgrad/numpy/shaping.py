"""Shape and place: reshape, join, split, repeat, pad."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core.trace import Value
from tlgrad.core.writing import clone
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.numpy.arrays import (as_array, as_shape, axes_of, broadcast_values, concrete, one_dtype,
                                 optional_dtype, stack_values)
from tlgrad.ops import layout, shape as sh
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.promote import broadcast_shapes as _broadcast_shapes
from tlgrad.ops.promote import broadcast_to as _broadcast_to

__all__ = ["reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "squeeze", "expand_dims",
           "broadcast_to", "broadcast_arrays", "broadcast_shapes", "concatenate", "concat", "stack",
           "unstack", "hstack", "vstack", "dstack", "column_stack", "row_stack", "append", "split",
           "array_split", "moveaxis", "swapaxes", "rollaxis", "flip", "fliplr", "flipud", "roll",
           "rot90", "atleast_1d", "atleast_2d", "atleast_3d", "block"]


# ---- one array ----

def reshape(x, shape, order: str = "C", *, copy=None) -> Value:
    """x in another shape, entries in row-major order; one size may be -1.

    Raises ShapeError when the sizes do not multiply to that of x.

    >>> reshape(tl.arange(6), (2, -1)).shape
    (2, 3)
    """
    if order not in ("C", "A"):
        if order == "F":
            x = as_array(x, "reshape")
            return transpose(reshape(transpose(x), as_shape(shape, "reshape")[::-1]))
        raise ArgumentError(f"reshape: order is 'C' (row-major) or 'F' (column-major), got {order!r}")
    x = as_array(x, "reshape")
    sizes = as_shape(shape, "reshape")
    if -1 in sizes:
        k = sizes.index(-1)
        known = math.prod(sizes[:k] + sizes[k + 1:])
        if sizes.count(-1) > 1 or not known or x.size % known:
            raise ShapeError(f"reshape: {x.shape} has {x.size} entries, which do not fit {sizes}")
        sizes = (*sizes[:k], x.size // known, *sizes[k + 1:])
    out = layout.reshaped(x, sizes)
    return clone(out) if copy and out is x else out


def ravel(x, order: str = "C") -> Value:
    """The entries of x as a 1-d array in row-major order."""
    return reshape(x, (-1,) if as_array(x, "ravel").size else (0,), order)


def transpose(x, axes=None) -> Value:
    """x with its axes in the order `axes` (None: reversed).

    >>> transpose(tl.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    x = as_array(x, "transpose")
    perm = tuple(range(x.ndim))[::-1] if axes is None else tuple(
        normalize_axis(a, x.ndim, "transpose") for a in axes)
    if sorted(perm) != list(range(x.ndim)):
        raise ShapeError(f"transpose: {axes} is not an order of the {x.ndim} axes of shape {x.shape}")
    return layout.permuted(x, perm)


def permute_dims(x, axes) -> Value:
    """`transpose` under its array API name."""
    return transpose(x, axes)


def matrix_transpose(x) -> Value:
    """x (..., m, n) with its last two axes swapped."""
    x = as_array(x, "matrix_transpose")
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose takes matrices, got shape {x.shape}")
    return swapaxes(x, -1, -2)


def swapaxes(x, axis1: int, axis2: int) -> Value:
    """x with two axes exchanged."""
    x = as_array(x, "swapaxes")
    a, b = (normalize_axis(k, x.ndim, "swapaxes") for k in (axis1, axis2))
    perm = list(range(x.ndim))
    perm[a], perm[b] = b, a
    return layout.permuted(x, tuple(perm))


def moveaxis(x, source, destination) -> Value:
    """x with axes moved from `source` to `destination`; the others keep their order.

    >>> moveaxis(tl.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(x, "moveaxis")
    pair = [[normalize_axis(a, x.ndim, "moveaxis") for a in (v if isinstance(v, (tuple, list)) else (v,))]
            for v in (source, destination)]
    if len(pair[0]) != len(pair[1]) or len(set(pair[0])) != len(pair[0]) or len(set(pair[1])) != len(pair[1]):
        raise ShapeError(f"moveaxis: source {source} and destination {destination} do not match")
    perm = [k for k in range(x.ndim) if k not in pair[0]]
    for place, axis in sorted(zip(pair[1], pair[0])):
        perm.insert(place, axis)
    return layout.permuted(x, tuple(perm))


def rollaxis(x, axis: int, start: int = 0) -> Value:
    """x with `axis` moved to lie before `start`."""
    x = as_array(x, "rollaxis")
    axis = normalize_axis(axis, x.ndim, "rollaxis")
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def squeeze(x, axis=None) -> Value:
    """x without axes of size 1 (those named, or all).  Raises ShapeError for another size."""
    x = as_array(x, "squeeze")
    ones = tuple(k for k, n in enumerate(x.shape) if n == 1)
    axes = ones if axis is None else axes_of(axis, x.ndim, "squeeze")
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze: axis {a} of shape {x.shape} has size {x.shape[a]}, not 1")
    kept = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    return layout.reshaped(x, kept)


def expand_dims(x, axis=0) -> Value:
    """x with an axis of size 1 inserted at `axis` (an int or tuple) of the result."""
    return sh.expand_dims(as_array(x, "expand_dims"), axis)


def broadcast_to(x, shape, subok=False) -> Value:
    """x repeated to `shape`, right-aligned, sizes 1 stretched.

    Raises ShapeError when it does not fit.
    """
    return _broadcast_to(as_array(x, "broadcast_to"), as_shape(shape, "broadcast_to"))


def broadcast_arrays(*arrays) -> list[Value]:
    """All arrays repeated to their common shape."""
    values = [as_array(x, "broadcast_arrays") for x in arrays]
    return broadcast_values(values, "broadcast_arrays") if values else []


def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """The shape to which all shapes broadcast."""
    return _broadcast_shapes(*[as_shape(s, "broadcast_shapes") for s in shapes])


def flip(x, axis=None) -> Value:
    """x with its entries in opposite order along `axis` (None: all axes)."""
    x = as_array(x, "flip")
    axes = axes_of(axis, x.ndim, "flip")
    return sh.reverse.bind(x, axes=axes) if axes else x


def flipud(x) -> Value:
    """x with axis 0 in opposite order."""
    return flip(x, 0)


def fliplr(x) -> Value:
    """x with axis 1 in opposite order."""
    return flip(x, 1)


def roll(x, shift, axis=None) -> Value:
    """x with its entries moved by `shift` places along `axis`, around the end.

    >>> roll(tl.arange(4), 1)
    tensor([3, 0, 1, 2], int64, shape (4,), cpu)
    """
    x = as_array(x, "roll")
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for n, a in zip(shifts, axes):
        a = normalize_axis(a, x.ndim, "roll")
        size = x.shape[a]
        n = int(n) % size if size else 0
        if n:
            x = sh.concatenate.bind(sh.slice_axis(x, a, size - n, size), sh.slice_axis(x, a, 0, size - n), axis=a)
    return x


def rot90(x, k: int = 1, axes=(0, 1)) -> Value:
    """x turned k times by 90 degrees in the plane of two axes, from the first to the second."""
    x = as_array(x, "rot90")
    k %= 4
    if k == 2:
        return flip(x, tuple(axes))
    if k == 0:
        return x
    return swapaxes(flip(x, axes[1]), *axes) if k == 1 else flip(swapaxes(x, *axes), axes[1])


# ---- several arrays ----

def _arrays(arrays, name):
    if isinstance(arrays, Value):
        arrays = list(arrays)
    values = one_dtype([as_array(x, name) for x in arrays])
    if not values:
        raise ShapeError(f"{name}: needs at least one array")
    return values


def concatenate(arrays, axis=0, out=None, *, dtype=None, casting=None) -> Value:
    """Arrays joined along an axis they have (None: flattened first); dtypes promote.

    Raises ShapeError naming the operand that differs in another axis.

    >>> concatenate([tl.tensor([1.0]), tl.tensor([2.0, 3.0])])
    tensor([1., 2., 3.], float64, shape (3,), cpu)
    """
    values = [as_array(x, "concatenate") for x in (list(arrays) if isinstance(arrays, Value) else arrays)]
    if axis is None:
        values, axis = [ravel(x) for x in values], 0
    values = [convert(x, dtype) for x in values] if optional_dtype(dtype) else one_dtype(values)
    if not values:
        raise ShapeError("concatenate: needs at least one array")
    axis = normalize_axis(axis, values[0].ndim, "concatenate")
    return sh.concatenate.bind(*values, axis=axis)


concat = concatenate


def stack(arrays, axis: int = 0, out=None, *, dtype=None) -> Value:
    """Arrays of one shape joined along a new axis.

    >>> stack([tl.tensor([1.0]), tl.tensor([2.0])]).shape
    (2, 1)
    """
    values = _arrays(arrays, "stack")
    return stack_values([convert(x, dtype) for x in values] if dtype else values, axis, "stack")


def unstack(x, *, axis: int = 0) -> tuple[Value, ...]:
    """The slices of x along `axis`, that axis dropped."""
    x = as_array(x, "unstack")
    x = moveaxis(x, axis, 0)
    return tuple(x[k] for k in range(x.shape[0]))


def hstack(arrays) -> Value:
    """Arrays joined along axis 1 (1-d arrays: axis 0)."""
    values = [atleast_1d(x) for x in arrays]
    return concatenate(values, 0 if values[0].ndim == 1 else 1)


def vstack(arrays) -> Value:
    """Arrays joined along axis 0; 1-d arrays become rows."""
    return concatenate([atleast_2d(x) for x in arrays], 0)


row_stack = vstack


def dstack(arrays) -> Value:
    """Arrays joined along axis 2."""
    return concatenate([atleast_3d(x) for x in arrays], 2)


def column_stack(arrays) -> Value:
    """Arrays joined along axis 1; 1-d arrays become columns."""
    return concatenate([reshape(x, (-1, 1)) if as_array(x, "column_stack").ndim < 2 else x for x in arrays], 1)


def append(x, values, axis=None) -> Value:
    """x with `values` joined at its end along `axis` (None: flattened)."""
    return concatenate([as_array(x, "append"), as_array(values, "append")], axis)


def block(arrays) -> Value:
    """Nested lists of blocks joined: the innermost along the last axis, the next along the one before."""
    def depth(a):
        return 1 + depth(a[0]) if isinstance(a, list) else 0
    n = depth(arrays)

    def rank(a):
        return max(map(rank, a)) if isinstance(a, list) else as_array(a, "block").ndim
    dims = max(n, rank(arrays))

    def join(a, level):
        if not isinstance(a, list):
            a = as_array(a, "block")
            return reshape(a, (1,) * (dims - a.ndim) + a.shape)
        return concatenate([join(b, level + 1) for b in a], dims - n + level)
    return join(arrays, 0)


def atleast_1d(*arrays):
    """Arrays with at least one axis; several give a tuple."""
    return _at_least(arrays, lambda x: reshape(x, (1,)) if x.ndim == 0 else x)


def atleast_2d(*arrays):
    """Arrays with at least two axes; a 1-d array becomes a row."""
    return _at_least(arrays, lambda x: reshape(x, (1,) * max(2 - x.ndim, 0) + x.shape))


def atleast_3d(*arrays):
    """Arrays with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    def grow(x):
        return reshape(x, {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(x.ndim, x.shape))
    return _at_least(arrays, grow)


def _at_least(arrays, grow):
    out = tuple(grow(as_array(x, "atleast_nd")) for x in arrays)
    return out[0] if len(out) == 1 else out


# ---- splitting ----

def array_split(x, indices_or_sections, axis: int = 0) -> list[Value]:
    """Parts of x along `axis`: n parts as equal as possible, or cut at given places."""
    x = as_array(x, "array_split")
    axis = normalize_axis(axis, x.ndim, "array_split")
    size = x.shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [0, *[int(i) for i in concrete(indices_or_sections, "split", "indices_or_sections")], size]
        cuts = [min(max(c + size if c < 0 else c, 0), size) for c in cuts]
    else:
        n = int(indices_or_sections)
        if n <= 0:
            raise ArgumentError(f"array_split: the number of parts is positive, got {n}")
        sizes = [size // n + (k < size % n) for k in range(n)]
        cuts = [0, *np.cumsum(sizes).tolist()]
    return [sh.slice_axis(x, axis, a, max(a, b)) for a, b in zip(cuts, cuts[1:])]


def split(x, indices_or_sections, axis: int = 0) -> list[Value]:
    """Parts of x along `axis`: n equal parts, or cut at given places.

    Raises ShapeError when n does not divide the axis (see `array_split`).
    """
    x = as_array(x, "split")
    if not np.ndim(indices_or_sections):
        size, n = x.shape[normalize_axis(axis, x.ndim, "split")], int(indices_or_sections)
        if n <= 0 or size % n:
            raise ShapeError(f"split: axis {axis} of size {size} does not divide into {n} equal parts; "
                             "use tl.array_split")
    return array_split(x, indices_or_sections, axis)
