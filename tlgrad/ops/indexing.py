"""``x[...]`` and ``x.at[...]`` as NumPy has them, in terms of slices and gathers.

A key is normalised once into one entry an axis: a slice, an integer, or an integer array;
`None` and `...` are resolved.  Basic keys become slice and reshape; anything with arrays
becomes one gather or scatter.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.source import user_source
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Tracer, Value
from tlgrad.core.writing import view
from tlgrad.errors import ConcretizationError, DTypeError, MaskShapeError, OutOfBoundsError
from tlgrad.ops.index import gather, nonnegative, scatter
from tlgrad.ops.layout import reshape, transpose
from tlgrad.ops.logic import maximum, minimum, where
from tlgrad.ops.promote import as_dtype_value, broadcast_shapes, broadcast_to
from tlgrad.ops.shape import concatenate, iota, reverse, slice_


class Key(NamedTuple):
    """A normalised key: one item an axis of x; `new_axes` are places of None in the result."""
    items: tuple                # slice with ints, int, or integer Value, one an axis
    layout: tuple               # per result group: ("slice", axis) | ("new",) | ("arrays",)


def _error(message: str):
    return OutOfBoundsError(f"{message} [{user_source()}]")


def normalize(x: Value, key: Any) -> Key:
    """One item for each axis of `x`, and the order of the result's axes."""
    raw = list(key) if isinstance(key, tuple) else [key]
    items = []
    for k in raw:
        items += _expand_mask(x, k, sum(_consumes(i) for i in items)) if _is_mask(k) else [k]
    n_used = sum(_consumes(k) for k in items)
    if n_used > x.ndim:
        raise _error(f"too many indices: {n_used} for a value of shape {x.shape}")
    dots = [i for i, k in enumerate(items) if k is Ellipsis]
    if len(dots) > 1:
        raise _error("an index has at most one '...'")
    place = dots[0] if dots else len(items)
    items[place:place + len(dots)] = [slice(None)] * (x.ndim - n_used)
    return _lay_out(x, items)


def _consumes(k) -> int:
    return 0 if k is None or k is Ellipsis else 1


def _is_mask(k) -> bool:
    if isinstance(k, (bool, np.bool_)):
        return True
    return isinstance(k, (Value, np.ndarray)) and dtypes.as_dtype(k.dtype) is dtypes.bool_ \
        or isinstance(k, (list, tuple)) and bool(k) and np.asarray(k).dtype == bool


def _expand_mask(x, mask, axis) -> list:
    """A bool mask as the index arrays of its True entries (its shape is data, so it must be known)."""
    if isinstance(mask, Tracer):
        raise ConcretizationError(
            f"a boolean mask decides the shape of the result, but it is traced: {mask.aval} "
            f"[{user_source()}]. Write tl.where(mask, x, 0), or take the mask from concrete data.")
    mask = np.asarray(mask)
    sizes = x.shape[axis:axis + mask.ndim]
    if len(sizes) != mask.ndim or any(m not in (n, 0) for m, n in zip(mask.shape, sizes)):
        raise MaskShapeError(f"the mask has shape {mask.shape}, the indexed axes have shape "
                             f"{x.shape[axis:axis + mask.ndim]} [{user_source()}]")
    return [places.astype(np.int64) for places in np.nonzero(mask)]


def _lay_out(x, items) -> Key:
    """Beside an index array an integer is an index array of shape (), as in NumPy."""
    axes = iter(range(x.ndim))
    items = [k if k is None else _item(k, x.shape[axis := next(axes)], axis) for k in items]
    arrays = any(isinstance(k, Value) for k in items)
    layout, axis, places = [], 0, []
    for place, item in enumerate(items):
        if item is None:
            layout.append(("new",))
        elif isinstance(item, slice):
            layout.append(("slice", axis))
        elif arrays:
            if not places:
                layout.append(("arrays",))
            places.append(place)
        axis += item is not None
    if places and places[-1] - places[0] >= len(places):     # apart from one another: their axes come first
        layout = [("arrays",), *[g for g in layout if g != ("arrays",)]]
    return Key(tuple(k for k in items if k is not None), tuple(layout))


def without_0d_masks(x: Value, key: Any) -> tuple[Value, Any]:
    """A mask of shape () indexes a new axis of size 1 in front: the value with it, and the key that says so."""
    raw = key if isinstance(key, tuple) else (key,)
    masks = [k for k in raw if _is_mask(k) and np.ndim(k) == 0]
    if not masks:
        return x, key
    if any(isinstance(k, Tracer) for k in masks):
        return x, key                                    # refused like every traced mask
    places = np.flatnonzero([all(map(bool, masks))])
    rest = tuple(k for k in raw if not (_is_mask(k) and np.ndim(k) == 0))
    return reshape.bind(x, shape=(1, *x.shape)), (places, *rest)


def _item(k, n: int, axis: int):
    if isinstance(k, slice):
        return _slice(k, n)
    if isinstance(k, Value) and dtypes.is_integer(k.dtype):
        if isinstance(k, Tracer) or k.ndim:
            return k
        k = int(k)
    if isinstance(k, (int, np.integer)):
        if not -n <= k < n:
            raise _error(f"index {k} is out of bounds for axis {axis} of size {n}")
        return int(k) % n
    if isinstance(k, (list, tuple, np.ndarray)):
        array = np.asarray(k)
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind in "iu":
            return as_value(array)
    raise DTypeError(f"an index is an integer, slice, integer or bool array, None or ..., "
                     f"got {type(k).__name__}: {k!r:.60} [{user_source()}]")


def _slice(s: slice, n: int) -> slice:
    for part in (s.start, s.stop, s.step):
        if isinstance(part, Tracer):
            raise ConcretizationError(f"a slice bound is traced: {part.aval} [{user_source()}]. Its length "
                                      "decides a shape; use tl.dynamic_slice(x, starts, sizes).")
    if s.step is not None and int(s.step) == 0:
        raise _error("a slice step is not 0")
    return slice(*s.indices(n))


# ---- reading ----

def get_item(x: Value, key: Any) -> Value:
    """x[key] with NumPy's rules; an index outside is an error."""
    indexed, places = without_0d_masks(x, key)
    parsed = normalize(indexed, places)
    if any(isinstance(k, Value) for k in parsed.items):
        return _advanced(indexed, parsed)
    return view(_basic(x, parsed), x, lambda b: _basic(b, parsed), lambda b, v: Place(b, key).set(v))


def _basic(x, key: Key):
    starts, limits, strides, flipped = [], [], [], []
    for axis, item in enumerate(key.items):
        if isinstance(item, int):
            start, limit, stride = item, item + 1, 1
        else:
            start, limit, stride, flip = _ascending(item)
            if flip:
                flipped.append(axis)
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
    if starts != [0] * x.ndim or limits != list(x.shape) or set(strides) - {1}:
        x = slice_.bind(x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))
    if flipped:
        x = reverse.bind(x, axes=tuple(flipped))
    shape = tuple(1 if group[0] == "new" else x.shape[group[1]] for group in key.layout)
    return x if shape == x.shape else reshape.bind(x, shape=shape)


def _ascending(s: slice):
    """start, limit, stride > 0 of the same entries, and whether they come in opposite order."""
    n = len(range(s.start, s.stop, s.step))
    if n == 0:
        return 0, 0, 1, False
    if s.step > 0:
        return s.start, s.start + (n - 1) * s.step + 1, s.step, False
    last = s.start + (n - 1) * s.step
    return last, s.start + 1, -s.step, True


def index_arrays(x, key: Key):
    """(indices, axes, shape of the arrays part) for gather and scatter; ints join the arrays."""
    axes = tuple(a for a, k in enumerate(key.items) if not isinstance(k, slice))
    columns = []
    for a in axes:
        k = key.items[a]
        column = as_dtype_value(k, dtypes.int64) if isinstance(k, Value) else as_value(np.int64(k))
        columns.append(nonnegative(column, x.shape[a]))
    shape = broadcast_shapes(*[c.shape for c in columns], what="index arrays")
    columns = [reshape.bind(broadcast_to(c, shape), shape=(*shape, 1)) for c in columns]
    return (columns[0] if len(columns) == 1 else concatenate.bind(*columns, axis=len(shape))), axes, shape


def _slices_only(x, key: Key) -> Key:
    """The key with its arrays and integers replaced by whole slices."""
    items = tuple(k if isinstance(k, slice) else slice(0, x.shape[a], 1) for a, k in enumerate(key.items))
    return Key(items, tuple(("slice", a) for a in range(x.ndim)))


def _advanced(x, key: Key):
    x = _basic(x, _slices_only(x, key))
    indices, axes, shape = index_arrays(x, key)
    out = gather.bind(x, indices, axes=axes)           # axes: arrays part, then the sliced axes
    return _arrange(out, key, shape, [k for k in range(x.ndim) if k not in axes])


def _arrange(out, key, shape, rest):
    perm, final = [], []
    place = {axis: len(shape) + i for i, axis in enumerate(rest)}
    for group in key.layout:
        if group[0] == "arrays":
            perm += range(len(shape))
            final += shape
        elif group[0] == "slice":
            perm.append(place[group[1]])
            final.append(out.shape[place[group[1]]])
        else:
            final.append(1)
    if perm != list(range(out.ndim)):
        out = transpose.bind(out, perm=tuple(perm))
    return out if out.shape == tuple(final) else reshape.bind(out, shape=tuple(final))


# ---- writing ----

class At:
    """``x.at[key]``: the functional form of assignment."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, key):
        return Place(self.x, key)


class Place:
    """One place of x: `set`, `add`, `mul`, `min`, `max` give x with its entries changed.

    Several updates of one entry act in row-major order of the index arrays.
    """

    def __init__(self, x, key):
        self.x, self.key = x, key

    def get(self):
        """The entries themselves, x[key]."""
        return get_item(self.x, self.key)

    def set(self, value):
        """x with the entries replaced by `value` (broadcast; converted to the dtype of x)."""
        return self._update(value, "set")

    def add(self, value):
        """x with `value` added to the entries; repeated indices add up, in order."""
        return self._update(value, "add")

    def mul(self, value):
        """x with the entries multiplied by `value`."""
        return self._update(value, "mul")

    def min(self, value):
        """x with the entries bounded above by `value`."""
        return self._update(value, "min")

    def max(self, value):
        """x with the entries bounded below by `value`."""
        return self._update(value, "max")

    def _update(self, value, mode):
        x, key = without_0d_masks(self.x, self.key)
        if x is not self.x:
            return reshape.bind(Place(x, key)._update(value, mode), shape=self.x.shape)
        value = as_value(value, f"the value of .at[...].{mode}")
        if value.dtype is not x.dtype:
            if value.aval.weak and dtypes.promote_weak(x.dtype, value.dtype) is not x.dtype:
                raise DTypeError(f".at[...].{mode}: a {value.dtype} number does not fit {x.dtype} without loss; "
                                 f"convert x first: tl.convert(x, tl.{value.dtype}) [{user_source()}]")
            if not value.aval.weak and dtypes.promote_types(x.dtype, value.dtype) is not x.dtype:
                raise DTypeError(f".at[...].{mode}: {value.aval} does not fit {x.dtype} without loss; "
                                 f"write tl.convert(value, tl.{x.dtype}) [{user_source()}]")
            value = as_dtype_value(value, x.dtype)
        if isinstance(key, Tracer) and _is_mask(key) and not value.ndim:
            return self._masked(key, as_dtype_value(value, x.dtype), mode)
        positions, axes = self._positions()
        target = gather_shape(positions, x, axes)
        if value.shape != target:
            value = broadcast_to(value, target)
        return scatter.bind(x, positions, as_dtype_value(value, x.dtype), axes=axes, mode=mode)

    def _masked(self, mask, value, mode):
        """One value at the True places of a traced mask: a choice by entry."""
        x = self.x
        if mask.shape != x.shape[:mask.ndim]:
            raise MaskShapeError(f"the mask has shape {mask.shape}, the indexed value has shape {x.shape} "
                                 f"[{user_source()}]")
        mask = reshape.bind(mask, shape=mask.shape + (1,) * (x.ndim - mask.ndim))
        changed = {"set": lambda: broadcast_to(value, x.shape), "add": lambda: x + value, "mul": lambda: x * value,
                   "min": lambda: minimum(x, value), "max": lambda: maximum(x, value)}[mode]()
        return where(mask, changed, x)

    def _positions(self):
        """Index arrays over every axis, in the shape of x[key]."""
        x = self.x
        counters = [get_item(iota.bind(shape=x.shape, axis=a, dtype=dtypes.int64), self.key)
                    for a in range(x.ndim)]
        if not counters:
            return as_value(np.zeros((0,), np.int64)), ()
        columns = [reshape.bind(c, shape=(*c.shape, 1)) for c in counters]
        return concatenate.bind(*columns, axis=columns[0].ndim - 1), tuple(range(x.ndim))


def gather_shape(indices, x, axes):
    """The shape of gather(x, indices, axes)."""
    return (*indices.shape[:-1], *[n for k, n in enumerate(x.shape) if k not in axes])
