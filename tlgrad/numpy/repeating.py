"""More of shape and place: repeat, tile, pad, cut out, put in."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.numpy.arrays import as_array, as_shape, concrete, constant
from tlgrad.numpy.shaping import concatenate, ravel, reshape, split
from tlgrad.ops import layout, shape as sh
from tlgrad.ops.index import gather
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.promote import as_dtype_value
from tlgrad.ops.promote import broadcast_to as _broadcast_to

__all__ = ["repeat", "tile", "pad", "resize", "hsplit", "vsplit", "dsplit", "delete", "insert",
           "trim_zeros", "shape", "ndim", "size"]


def shape(x) -> tuple[int, ...]:
    """Sizes of the axes."""
    return as_array(x, "shape").shape


def ndim(x) -> int:
    """Number of axes."""
    return as_array(x, "ndim").ndim


def size(x, axis=None) -> int:
    """Number of entries, or the size of one axis."""
    x = as_array(x, "size")
    return x.size if axis is None else x.shape[normalize_axis(axis, x.ndim, "size")]


def pick(x, places: np.ndarray, axis: int) -> Value:
    """Entries of x at known places of one axis: shape of x with that axis replaced."""
    out = gather.bind(x, constant(np.asarray(places, np.int64)[:, None]), axes=(axis,))
    return layout.moveaxis(out, 0, axis)


def repeat(x, repeats, axis=None, *, total_repeat_length=None) -> Value:
    """Each entry of x (flattened, or along `axis`) repeated: a number of times, or one count an entry.

    >>> repeat(tl.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2], int64, shape (4,), cpu)
    """
    x = as_array(x, "repeat")
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, x.ndim, "repeat")
    counts = concrete(repeats, "repeat", "repeats")
    n = x.shape[axis]
    if counts.size == 1:
        count = int(counts.reshape(()))
        if count < 0:
            raise ArgumentError(f"repeat: counts are not negative, got {count}")
        middle = (*x.shape[:axis + 1], count, *x.shape[axis + 1:])
        kept = tuple(k for k in range(len(middle)) if k != axis + 1)
        return reshape(layout.broadcast.bind(x, shape=middle, axes=kept),
                       (*x.shape[:axis], n * count, *x.shape[axis + 1:]))
    if counts.shape != (n,) or (counts < 0).any():
        raise ShapeError(f"repeat: repeats must be a count or {n} counts, one an entry of axis {axis}, "
                         f"got shape {counts.shape}")
    return pick(x, np.repeat(np.arange(n), counts), axis)


def tile(x, reps) -> Value:
    """x laid side by side: `reps` times along each axis.

    >>> tile(tl.tensor([1, 2]), 2)
    tensor([1, 2, 1, 2], int64, shape (4,), cpu)
    """
    x, reps = as_array(x, "tile"), as_shape(reps, "tile")
    n = max(x.ndim, len(reps))
    sizes = (1,) * (n - x.ndim) + x.shape
    reps = (1,) * (n - len(reps)) + reps
    full = tuple(m for pair in zip(reps, sizes) for m in pair)
    x = layout.broadcast.bind(reshape(x, sizes), shape=full, axes=tuple(range(1, 2 * n, 2)))
    return reshape(x, tuple(a * b for a, b in zip(reps, sizes)))


def resize(x, new_shape) -> Value:
    """The entries of x repeated in row-major order to fill `new_shape`."""
    flat, sizes = ravel(x), as_shape(new_shape, "resize")
    n = math.prod(sizes)
    if flat.size == 0:
        raise ShapeError("resize: x is empty")
    return reshape(sh.slice_axis(tile(flat, -(-n // flat.size) or 1), 0, 0, n), sizes)


# ---- padding ----

#: modes that repeat entries of x, by np.pad of its places
_PLACE_MODES = ("edge", "reflect", "symmetric", "wrap")


def pad(x, pad_width, mode: str = "constant", *, constant_values=0, reflect_type="even") -> Value:
    """x with `pad_width` entries before and after each axis.

    pad_width: n, (before, after), or one pair an axis.  mode: "constant", "edge", "reflect", "symmetric",
    "wrap", "empty".  Raises ArgumentError for another mode or a negative width.

    >>> pad(tl.tensor([1, 2]), 1)
    tensor([0, 1, 2, 0], int64, shape (4,), cpu)
    """
    x = as_array(x, "pad")
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if (widths < 0).any():
        raise ArgumentError(f"pad: widths are not negative, got {pad_width}; drop entries with a slice")
    if mode == "empty":
        mode, constant_values = "constant", 0
    if mode == "constant":
        return _pad_constant(x, widths, constant_values)
    if mode not in _PLACE_MODES or reflect_type != "even":
        raise ArgumentError(f"pad: mode must be one of constant, empty, {', '.join(_PLACE_MODES)} "
                            f"(reflect_type 'even'), got {mode!r}")
    for axis, (low, high) in enumerate(widths.tolist()):
        if low or high:
            if not x.shape[axis]:
                raise ShapeError(f"pad: axis {axis} of shape {x.shape} is empty, mode {mode!r} has nothing "
                                 "to repeat")
            x = pick(x, np.pad(np.arange(x.shape[axis]), (low, high), mode=mode), axis)
    return x


def _pairs(given, n, name):
    if isinstance(given, dict):
        given = [given.get(k, given.get(k - n, (0, 0))) for k in range(n)]
    pairs = concrete(given, "pad", name)
    try:
        return np.broadcast_to(pairs.astype(np.int64), (n, 2)) if pairs.ndim else np.full((n, 2), int(pairs))
    except ValueError:
        raise ShapeError(f"pad: {name} {given} does not fit {n} axes") from None


def _pad_constant(x, widths, values):
    simple = not isinstance(values, (tuple, list)) and as_array(values, "pad").ndim == 0
    if simple:
        value = as_dtype_value(as_array(values, "pad"), x.dtype)
        return sh.pad.bind(x, value, low=tuple(widths[:, 0].tolist()), high=tuple(widths[:, 1].tolist()),
                           interior=(0,) * x.ndim)
    pairs = np.broadcast_to(np.asarray(values), (x.ndim, 2))
    for axis in range(x.ndim):
        for side in (0, 1):
            low, high = [0] * x.ndim, [0] * x.ndim
            (high if side else low)[axis] = int(widths[axis, side])
            value = as_dtype_value(as_array(pairs[axis, side], "pad"), x.dtype)
            x = sh.pad.bind(x, value, low=tuple(low), high=tuple(high), interior=(0,) * x.ndim)
    return x


# ---- parts ----

def hsplit(x, indices_or_sections) -> list[Value]:
    """`split` along axis 1 (1-d arrays: axis 0)."""
    return split(x, indices_or_sections, 0 if as_array(x, "hsplit").ndim == 1 else 1)


def vsplit(x, indices_or_sections) -> list[Value]:
    """`split` along axis 0."""
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections) -> list[Value]:
    """`split` along axis 2."""
    return split(x, indices_or_sections, 2)


def delete(x, obj, axis=None) -> Value:
    """x without the entries at `obj` (an int, slice, or integers, known) along `axis`."""
    x = as_array(x, "delete")
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, x.ndim, "delete")
    obj = obj if isinstance(obj, slice) else concrete(obj, "delete", "obj")
    return pick(x, np.delete(np.arange(x.shape[axis]), obj), axis)


def insert(x, obj, values, axis=None) -> Value:
    """x with `values` put in before the places `obj` (an int or integers, known) along `axis`."""
    x = as_array(x, "insert")
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, x.ndim, "insert")
    places = concrete(obj, "insert", "obj")
    values = as_dtype_value(as_array(values, "insert"), x.dtype)
    n, count = x.shape[axis], max(places.size, 1)
    if places.ndim == 0 and values.ndim == x.ndim:
        count = values.shape[axis]
        places = np.full(count, int(places))
    rows = _broadcast_to(values, tuple(count if k == axis else m for k, m in enumerate(x.shape)))
    order = np.insert(np.arange(n), places.reshape(-1), n + np.arange(count))
    return pick(concatenate([x, rows], axis), order, axis)


def trim_zeros(x, trim: str = "fb") -> Value:
    """A 1-d array without zeros at its front ("f") and back ("b"); its entries must be known."""
    kept = np.flatnonzero(concrete(x, "trim_zeros", "x"))
    x = as_array(x, "trim_zeros")
    first = int(kept[0]) if kept.size and "f" in trim.lower() else 0 if kept.size else x.shape[0]
    last = int(kept[-1]) + 1 if kept.size and "b" in trim.lower() else x.shape[0]
    return sh.slice_axis(x, 0, first, last)
