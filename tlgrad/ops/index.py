"""Reading and writing at computed places, each beside its transpose.

    gather       : x, indices -> entries              transposes to  scatter_add
    scatter      : x, indices, updates -> x with entries replaced, added, ...
    dynamic_slice, dynamic_update_slice               blocks at run-time starts
    argsort                                           a stable order, NaN last

`indices` has shape (*i, k): its last axis holds a position in the k axes `axes` of x; the result
has shape (*i, *rest), `rest` being the other axes of x.  A place outside x is an error that names
it.  Several updates of one entry act in row-major order of the indices.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.tensor import Tensor
from tlgrad.errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from tlgrad.ops import meaning
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.layout import broadcast, moveaxis, reshape, zeros
from tlgrad.ops.logic import eq, lt, select
from tlgrad.ops.shape import concatenate, iota, slice_axis


def _rest(ndim, axes):
    return tuple(k for k in range(ndim) if k not in axes)


def checked_columns(indices: np.ndarray, shape, axes, name: str) -> list[np.ndarray]:
    """The columns of an index array; OutOfBoundsError names the first place outside."""
    columns = [indices[..., k] for k in range(len(axes))]
    for axis, column in zip(axes, columns):
        bad = (column < 0) | (column >= shape[axis])
        if bad.any():
            first = column[tuple(np.argwhere(bad)[0])]
            raise OutOfBoundsError(f"{name}: index {int(first)} is out of bounds for axis {axis} "
                                   f"of size {shape[axis]} (shape {shape})")
    return columns


# ---- gather ----

def _gather_impl(x, indices, *, axes):
    columns = checked_columns(indices, x.shape, axes, "gather")
    rest = _rest(x.ndim, axes)
    return np.transpose(x, (*axes, *rest))[tuple(columns)]


def _gather_abstract(x, indices, *, axes):
    if not dtypes.is_integer(indices.dtype) or not indices.ndim or indices.shape[-1] != len(axes):
        raise ShapeError(f"gather: indices must be integers of shape (..., {len(axes)}), got {indices}")
    return make_aval((*indices.shape[:-1], *[x.shape[k] for k in _rest(x.ndim, axes)]), x.dtype)


def _gather_jvp(primals, tangents, *, axes):
    return gather.bind(*primals, axes=axes), gather.bind(tangents[0], primals[1], axes=axes)


def _gather_transpose(ct, x, indices, *, axes):
    return [scatter.bind(zeros(x.aval), indices, ct, axes=axes, mode="add"), None]


def lane_indices(indices, size):
    """Indices of shape (size, *i, k) with the lane number as a first column."""
    lane = iota.bind(shape=(*indices.shape[:-1], 1), axis=0, dtype=indices.dtype)
    return concatenate.bind(lane, indices, axis=indices.ndim - 1)


def mapped(x, axis, size):
    """x with the mapped axis in front, repeated when it is not mapped."""
    if axis is None:
        return broadcast.bind(x, shape=(size, *x.shape), axes=tuple(range(1, x.ndim + 1)))
    return moveaxis(x, axis, 0)


def _gather_batch(args, axes_in, size, *, axes):
    (x, indices), (x_axis, i_axis) = args, axes_in
    if x_axis is None:
        return gather.bind(x, moveaxis(indices, i_axis, 0), axes=axes), 0
    x = moveaxis(x, x_axis, 0)
    moved = tuple(a + 1 for a in axes)
    if i_axis is None:
        return gather.bind(x, indices, axes=moved), indices.ndim - 1
    return gather.bind(x, lane_indices(moveaxis(indices, i_axis, 0), size), axes=(0, *moved)), 0


gather = documented(
    Primitive("gather", impl=_gather_impl, abstract=_gather_abstract, jvp=_gather_jvp,
              transpose=_gather_transpose, batch=_gather_batch, kind="index", lower=("index", "gather")),
    "Entries of x at `indices` along `axes`.", "x indices")


# ---- scatter ----

_UPDATES = {"set": None, "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _scatter_impl(x, indices, updates, *, axes, mode):
    columns = tuple(checked_columns(indices, x.shape, axes, f"scatter ({mode})"))
    rest = _rest(x.ndim, axes)
    perm = (*axes, *rest)
    out = np.transpose(x, perm).copy()
    if mode == "set":
        _in_order(out, columns, updates, lambda old, new: new)
    elif mode == "add" and x.dtype.kind != "V":
        with np.errstate(all="ignore"):
            np.add.at(out, columns, updates)
    else:
        _in_order(out, columns, updates, meaning.implementation(_UPDATES[mode]))
    return np.transpose(out, np.argsort(perm))


def _in_order(out, columns, updates, combine):
    """One update after the other, row-major; distinct places go at once."""
    flat = np.ravel_multi_index(columns, out.shape[:len(columns)]) if columns else np.zeros(1, int)
    if np.unique(flat).size == flat.size:
        out[columns] = combine(out[columns], updates)
        return
    for place in np.ndindex(columns[0].shape):
        where = tuple(c[place] for c in columns)
        out[where] = combine(out[where], updates[place])


def _scatter_abstract(x, indices, updates, *, axes, mode):
    expected = _gather_abstract(x, indices, axes=axes)
    if updates.shape != expected.shape or updates.dtype is not x.dtype:
        raise ShapeError(f"scatter ({mode}): updates must be {expected}, got {updates}")
    return make_aval(x.shape, x.dtype)


def _scatter_jvp(primals, tangents, *, axes, mode):
    x, indices, updates = primals
    y = scatter.bind(*primals, axes=axes, mode=mode)
    x_dot, u_dot = instantiate(tangents[0]), instantiate(tangents[2])
    if mode in ("set", "add"):
        return y, scatter.bind(x_dot, indices, u_dot, axes=axes, mode=mode)
    once = distinct.bind(indices, shape=tuple(x.shape[a] for a in axes))
    old, old_dot = (gather.bind(v, once, axes=axes) for v in (x, x_dot))
    if mode == "mul":
        new_dot = old * u_dot + old_dot * updates
    else:
        new_dot = select(eq(gather.bind(y, once, axes=axes), updates), u_dot, old_dot)
    return y, scatter.bind(x_dot, once, new_dot, axes=axes, mode="set")


def _scatter_transpose(ct, x, indices, updates, *, axes, mode):
    x_ct = u_ct = None
    if mode == "add":
        x_ct = ct
        u_ct = gather.bind(ct, indices, axes=axes) if type(updates) is Linear else None
    elif mode == "set":
        if type(x) is Linear:
            blank = zeros(make_aval((*indices.shape[:-1], *[ct.shape[k] for k in _rest(ct.ndim, axes)]), ct.dtype))
            x_ct = scatter.bind(ct, indices, blank, axes=axes, mode="set")
        if type(updates) is Linear:
            u_ct = _last_writers(ct, indices, axes)
    else:
        raise UnsupportedError(f"scatter ({mode}) is not linear")
    return [x_ct if type(x) is Linear else None, None, u_ct]


def _last_writers(ct, indices, axes):
    """The cotangent of each update that was not overwritten by a later one; 0 for the others."""
    n = int(np.prod(indices.shape[:-1], dtype=np.int64))
    order = reshape.bind(iota.bind(shape=(n,), axis=0, dtype=dtypes.int64), shape=indices.shape[:-1])
    sizes = tuple(ct.shape[a] for a in axes)
    plane = zeros(make_aval(sizes, dtypes.int64))
    all_axes = tuple(range(len(axes)))
    writer = gather.bind(scatter.bind(plane, indices, order, axes=all_axes, mode="set"), indices, axes=all_axes)
    u_ct = gather.bind(ct, indices, axes=axes)
    won = broadcast.bind(eq(writer, order), shape=u_ct.shape, axes=tuple(range(indices.ndim - 1)))
    return select(won, u_ct, zeros(u_ct.aval))


def _scatter_batch(args, axes_in, size, *, axes, mode):
    x, indices, updates = (mapped(v, k, size) for v, k in zip(args, axes_in))
    moved = (0, *[a + 1 for a in axes])
    return scatter.bind(x, lane_indices(indices, size), updates, axes=moved, mode=mode), 0


scatter = documented(
    Primitive("scatter", impl=_scatter_impl, abstract=_scatter_abstract, jvp=_scatter_jvp,
              transpose=_scatter_transpose, batch=_scatter_batch, kind="index", lower=("index", "scatter")),
    "x with its entries at `indices` set, added to, multiplied, or bounded (`mode`).", "x indices updates")


def _distinct_impl(indices, *, shape):
    flat = np.ravel_multi_index(checked_columns(indices, shape, range(len(shape)), "scatter"), shape)
    if np.unique(flat).size != flat.size:
        raise UnsupportedError("the derivative of .at[...].mul/min/max needs distinct indices; "
                               "some place is updated twice. Use .at[...].add, or tl.iterate.")
    return indices


distinct = documented(
    Primitive("distinct", impl=_distinct_impl, abstract=lambda indices, *, shape: indices, nondiff="",
              batch=lambda args, axes, size, *, shape: (_distinct_lanes(args[0], axes[0], size, shape), 0),
              kind="index", lower=("index", "distinct")),
    "`indices`, after checking that no place is named twice.", "indices")


def _distinct_lanes(indices, axis, size, shape):
    lanes = lane_indices(moveaxis(indices, axis, 0), size)
    checked = distinct.bind(lanes, shape=(size, *shape))
    return slice_axis(checked, checked.ndim - 1, 1, checked.shape[-1])


# ---- dynamic slices ----

def _starts(starts, shape, sizes):
    out = []
    for k, (s, n, m) in enumerate(zip(starts, shape, sizes)):
        if not 0 <= int(s) <= n - m:
            raise OutOfBoundsError(f"dynamic_slice: start {int(s)} with size {m} does not fit "
                                   f"axis {k} of size {n}")
        out.append(int(s))
    return out


def _dynamic_slice_impl(x, *starts, sizes):
    return x[tuple(slice(s, s + m) for s, m in zip(_starts(starts, x.shape, sizes), sizes))]


def _dynamic_slice_abstract(x, *starts, sizes):
    if len(starts) != x.ndim or any(s.shape or not dtypes.is_integer(s.dtype) for s in starts):
        raise ShapeError(f"dynamic_slice of {x} takes {x.ndim} integer starts of shape (), got {list(starts)}")
    if any(m > n for m, n in zip(sizes, x.shape)):
        raise ShapeError(f"dynamic_slice: sizes {sizes} exceed shape {x.shape}")
    return make_aval(tuple(sizes), x.dtype)


def _slice_indices(starts, sizes):
    """Index array (*sizes, k) of a block at run-time starts."""
    columns = []
    for k, start in enumerate(starts):
        place = iota.bind(shape=(*sizes, 1), axis=k, dtype=dtypes.int64)
        columns.append(place + start)
    return concatenate.bind(*columns, axis=len(sizes))


def _dynamic_slice_batch(args, axes_in, size, *, sizes):
    x, *starts = args
    x_axis, *s_axes = axes_in
    if all(a is None for a in s_axes):
        zero = starts[0] * 0
        return dynamic_slice.bind(moveaxis(x, x_axis, 0), zero, *starts, sizes=(size, *sizes)), 0
    ones = (1,) * len(sizes)
    lanes = [reshape.bind(mapped(s, a, size), shape=(size, *ones, 1)) for s, a in zip(starts, s_axes)]
    columns = [iota.bind(shape=(size, *sizes, 1), axis=k + 1, dtype=dtypes.int64)
               + broadcast.bind(lane, shape=(size, *sizes, 1), axes=tuple(range(len(sizes) + 2)))
               for k, lane in enumerate(lanes)]
    indices = concatenate.bind(*columns, axis=len(sizes) + 1)
    axes = tuple(range(len(sizes)))
    if x_axis is None:
        return gather.bind(x, indices, axes=axes), 0
    return gather.bind(moveaxis(x, x_axis, 0), lane_indices(indices, size), axes=(0, *[a + 1 for a in axes])), 0


dynamic_slice = documented(
    Primitive("dynamic_slice", impl=_dynamic_slice_impl, abstract=_dynamic_slice_abstract,
              jvp=lambda primals, tangents, *, sizes: (
                  dynamic_slice.bind(*primals, sizes=sizes),
                  dynamic_slice.bind(tangents[0], *primals[1:], sizes=sizes)),
              transpose=lambda ct, x, *starts, sizes: [
                  dynamic_update_slice.bind(zeros(x.aval), ct, *starts), *[None] * len(starts)],
              batch=_dynamic_slice_batch, kind="index", lower=("index", "dynamic_slice")),
    "A block of `sizes` of x at run-time `starts`; a block that does not fit is an error.", "x *starts")


def _update_impl(x, update, *starts):
    out = x.copy()
    out[tuple(slice(s, s + m) for s, m in zip(_starts(starts, x.shape, update.shape), update.shape))] = update
    return out


def _update_abstract(x, update, *starts):
    _dynamic_slice_abstract(x, *starts, sizes=update.shape)
    if update.dtype is not x.dtype:
        raise DTypeError(f"dynamic_update_slice: {update} into {x}")
    return make_aval(x.shape, x.dtype)


def _update_jvp(primals, tangents):
    x_dot, u_dot = map(instantiate, tangents[:2])
    return dynamic_update_slice.bind(*primals), dynamic_update_slice.bind(x_dot, u_dot, *primals[2:])


def _update_transpose(ct, x, update, *starts):
    shape = (update.aval if type(update) is Linear else update).shape
    x_ct = u_ct = None
    if type(x) is Linear:
        x_ct = dynamic_update_slice.bind(ct, zeros(make_aval(shape, ct.dtype)), *starts)
    if type(update) is Linear:
        u_ct = dynamic_slice.bind(ct, *starts, sizes=shape)
    return [x_ct, u_ct, *[None] * len(starts)]


def _update_batch(args, axes_in, size):
    x, update, *starts = args
    x, update = (mapped(v, k, size) for v, k in zip((x, update), axes_in))
    if all(a is None for a in axes_in[2:]):
        return dynamic_update_slice.bind(x, update, starts[0] * 0, *starts), 0
    sizes = update.shape[1:]
    ones = (1,) * len(sizes)
    columns = []
    for k, (s, a) in enumerate(zip(starts, axes_in[2:])):
        lane = reshape.bind(mapped(s, a, size), shape=(size, *ones, 1))
        columns.append(iota.bind(shape=(size, *sizes, 1), axis=k + 1, dtype=dtypes.int64)
                       + broadcast.bind(lane, shape=(size, *sizes, 1), axes=tuple(range(len(sizes) + 2))))
    indices = lane_indices(concatenate.bind(*columns, axis=len(sizes) + 1), size)
    return scatter.bind(x, indices, update, axes=tuple(range(x.ndim)), mode="set"), 0


dynamic_update_slice = documented(
    Primitive("dynamic_update_slice", impl=_update_impl, abstract=_update_abstract, jvp=_update_jvp,
              transpose=_update_transpose, batch=_update_batch, kind="index",
              lower=("index", "dynamic_update_slice")),
    "x with a block at run-time `starts` replaced.", "x update *starts")


# ---- order ----

def _argsort_impl(x, *, axis):
    return np.argsort(meaning.comparable(x), axis=axis, kind="stable").astype(np.int64)


argsort_p = documented(
    Primitive("argsort", impl=_argsort_impl,
              abstract=lambda x, *, axis: make_aval(x.shape, dtypes.int64), nondiff="",
              batch=lambda args, axes, size, *, axis: (
                  argsort_p.bind(moveaxis(args[0], axes[0], 0), axis=axis + 1), 0),
              kind="index", lower=("index", "argsort")),
    "Indices that sort x along `axis`: stable, ascending, NaN last, -0 and +0 equal.", "x")


def take_along_axis(x, indices, axis: int):
    """x[..., indices[..., j, ...], ...]: entries picked along one axis, the others lined up."""
    shape = indices.shape
    columns = [reshape.bind(indices, shape=(*shape, 1)) if k == axis else
               iota.bind(shape=(*shape, 1), axis=k, dtype=indices.dtype) for k in range(x.ndim)]
    return gather.bind(x, concatenate.bind(*columns, axis=x.ndim), axes=tuple(range(x.ndim)))


def nonnegative(indices, size: int):
    """Indices counted from the end when negative."""
    if isinstance(indices, Tensor) and not (indices.data < 0).any():
        return indices
    return select(lt(indices, 0), indices + size, indices)
