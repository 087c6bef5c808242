"""Choosing entries: by condition, by place, by order."""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.core.writing import written
from tlgrad.errors import ArgumentError, DTypeError, ShapeError
from tlgrad.numpy.arrays import as_array, broadcast_values, concrete, constant
from tlgrad.numpy.shaping import moveaxis, ravel, reshape
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import index, layout
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.promote import as_dtype_value
from tlgrad.ops.promote import broadcast_to as _broadcast_to
from tlgrad.ops.shape import iota

__all__ = ["where", "select", "piecewise", "choose", "take", "take_along_axis", "put_along_axis", "compress",
           "extract", "nonzero", "flatnonzero", "argwhere", "diagonal", "diag", "diagflat", "one_hot",
           "tril_indices", "triu_indices", "diag_indices", "unravel_index", "ravel_multi_index",
           "fill_diagonal"]


def where(condition, x=None, y=None):
    """x where `condition` holds, else y, entry by entry; broadcasting.

    The side that is not taken contributes exactly zero to every derivative, also when it is infinite or
    NaN.  With one argument, `nonzero`.  Raises DTypeError unless the condition is bool.

    >>> where(tl.tensor([True, False]), tl.tensor([1.0, 2.0]), 0)
    tensor([1., 0.], float64, shape (2,), cpu)
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ArgumentError("where takes a condition alone, or a condition and two values")
    x, y = (v if isinstance(v, (bool, int, float, complex)) else as_array(v, "where") for v in (x, y))
    return lo.where(as_array(condition, "where"), x, y)


def select(condlist, choicelist, default=0) -> Value:
    """The first choice whose condition holds, entry by entry; else `default`."""
    if len(condlist) != len(choicelist):
        raise ArgumentError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    out = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        out = where(condition, choice, out)
    return as_array(out, "select")


def piecewise(x, condlist, funclist, *args, **kwargs) -> Value:
    """Functions or constants by condition: the *last* condition that holds wins; one more is the default."""
    x = as_array(x, "piecewise")
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    funcs = list(funclist)
    default = funcs.pop() if len(funcs) == len(conditions) + 1 else 0
    if len(funcs) != len(conditions):
        raise ArgumentError(f"piecewise: {len(funcs)} functions for {len(conditions)} conditions; give one each, "
                            "or one more for the rest")
    out = None
    for condition, f in zip([None, *conditions], [default, *funcs]):
        value = f(x, *args, **kwargs) if callable(f) else f
        value = as_dtype_value(as_array(value, "piecewise"), x.dtype)
        out = _broadcast_to(value, x.shape) if condition is None else where(condition, value, out)
    return out


def choose(a, choices) -> Value:
    """choices[a[i]][i], entry by entry."""
    a = as_array(a, "choose")
    values = broadcast_values([as_array(c, "choose") for c in choices], "choose")
    stacked = as_array(values, "choose")
    return take_along_axis(stacked, reshape(_broadcast_to(a, stacked.shape[1:]), (1, *stacked.shape[1:])), 0)[0]


# ---- by place ----

def _integers(indices, name):
    if isinstance(indices, (list, tuple)) and not indices:
        indices = np.zeros(0, np.int64)
    indices = as_array(indices, name)
    if not dtypes.is_integer(indices.dtype):
        raise DTypeError(f"{name}: indices are integers, got {indices.aval}")
    return convert(indices, dtypes.int64)


_MODES = ("raise", None, "clip", "wrap")


def take(x, indices, axis: int | None = None, out=None, mode: str = "raise") -> Value:
    """Entries of x at `indices` along `axis` (None: of the flattened array); negatives count from the end.

    The result has the shape of x with `axis` replaced by the shape of `indices`.  mode: "raise" (an index
    outside is an error), "clip" or "wrap".

    >>> take(tl.tensor([10.0, 20.0, 30.0]), tl.tensor([2, 0]))
    tensor([30., 10.], float64, shape (2,), cpu)
    """
    x, indices = as_array(x, "take"), _integers(indices, "take")
    if mode not in _MODES:
        raise ArgumentError(f"take: mode is 'raise', 'clip' or 'wrap', got {mode!r}")
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, x.ndim, "take")
    n = x.shape[axis]
    if mode == "clip":
        indices = lo.minimum(lo.maximum(indices, 0), n - 1)
    elif mode == "wrap":
        indices = ar.remainder(indices, n)
    else:
        indices = index.nonnegative(indices, n)
    out = index.gather.bind(x, reshape(indices, (*indices.shape, 1)), axes=(axis,))
    k = indices.ndim
    return moveaxis(out, tuple(range(k)), tuple(range(axis, axis + k))) if k else out


def _along(x, indices, axis, name):
    x, indices = as_array(x, name), _integers(indices, name)
    if axis is None:
        return ravel(x), indices, 0
    axis = normalize_axis(axis, x.ndim, name)
    if indices.ndim != x.ndim:
        raise ShapeError(f"{name}: indices have {indices.ndim} axes, x has {x.ndim}")
    lead = np.broadcast_shapes(tuple(1 if k == axis else n for k, n in enumerate(x.shape)),
                               tuple(1 if k == axis else n for k, n in enumerate(indices.shape)))
    x = _broadcast_to(x, tuple(x.shape[axis] if k == axis else n for k, n in enumerate(lead)))
    indices = _broadcast_to(indices, tuple(indices.shape[axis] if k == axis else n for k, n in enumerate(lead)))
    return x, indices, axis


def take_along_axis(x, indices, axis: int | None = -1) -> Value:
    """Entries of x picked along one axis by an index array of the same rank, the other axes lined up."""
    x, indices, axis = _along(x, indices, axis, "take_along_axis")
    return index.take_along_axis(x, index.nonnegative(indices, x.shape[axis]), axis)


def put_along_axis(x, indices, values, axis: int | None, *, inplace: bool = False) -> Value:
    """x with its entries at `indices` along one axis replaced: returns the new array."""
    if inplace:
        raise ArgumentError("put_along_axis: tensors are immutable, use the returned array")
    given, shape = x, as_array(x, "put_along_axis").shape
    x, indices, axis = _along(x, indices, axis, "put_along_axis")
    columns = [reshape(index.nonnegative(indices, x.shape[axis]) if k == axis else
                       iota.bind(shape=indices.shape, axis=k, dtype=dtypes.int64), (*indices.shape, 1))
               for k in range(x.ndim)]
    places = index.concatenate.bind(*columns, axis=x.ndim)
    values = _broadcast_to(as_dtype_value(as_array(values, "put_along_axis"), x.dtype), indices.shape)
    out = index.scatter.bind(x, places, values, axes=tuple(range(x.ndim)), mode="set")
    return written(given, reshape(out, shape) if out.size == int(np.prod(shape)) else out)


def nonzero(x) -> tuple[Value, ...]:
    """Places of the entries that are not zero, one int64 array an axis; x must be known."""
    array = concrete(as_array(x, "nonzero"), "nonzero", "x")
    if array.ndim == 0:
        raise ShapeError("nonzero takes arrays of one axis or more, got shape ()")
    return tuple(constant(p.astype(np.int64)) for p in np.nonzero(array))


def flatnonzero(x) -> Value:
    """Places of the entries that are not zero in the flattened array."""
    return nonzero(ravel(x))[0]


def argwhere(x) -> Value:
    """Places of the entries that are not zero, one row each."""
    return constant(np.argwhere(concrete(as_array(x, "argwhere"), "argwhere", "x")).astype(np.int64))


def compress(condition, x, axis=None, out=None) -> Value:
    """Slices of x along `axis` where the (known) condition holds."""
    places = np.flatnonzero(concrete(condition, "compress", "condition"))
    return take(x, constant(places.astype(np.int64)), axis)


def extract(condition, x) -> Value:
    """Entries of the flattened x where the (known) condition holds."""
    return compress(ravel(condition), ravel(x), 0)


# ---- diagonals ----

def diagonal(x, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """Diagonal of the matrices in two axes, as the last axis; offset > 0 lies above the main one."""
    x = as_array(x, "diagonal")
    if x.ndim < 2:
        raise ShapeError(f"diagonal takes matrices, got shape {x.shape}")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    m, n = x.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(m - row, n - column), 0)
    k = np.arange(count)
    places = constant(np.stack([k + row, k + column], axis=-1).astype(np.int64))
    out = index.gather.bind(x, places, axes=(x.ndim - 2, x.ndim - 1))
    return layout.moveaxis(out, 0, out.ndim - 1)


def diag(x, k: int = 0) -> Value:
    """A matrix with the vector x on its k-th diagonal; of a matrix, that diagonal.

    >>> diag(tl.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]], float64, shape (2, 2), cpu)
    """
    x = as_array(x, "diag")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, got shape {x.shape}")
    n = x.shape[0] + abs(k)
    rows = np.arange(x.shape[0])
    places = constant(np.stack([rows + max(-k, 0), rows + max(k, 0)], axis=-1).astype(np.int64))
    blank = layout.zeros(x.aval.strong().with_shape((n, n)))
    return index.scatter.bind(blank, places, as_dtype_value(x, x.dtype), axes=(0, 1), mode="set")


def diagflat(x, k: int = 0) -> Value:
    """`diag` of the flattened array."""
    return diag(ravel(x), k)


def fill_diagonal(x, value) -> Value:
    """x with its main diagonal replaced: returns the new array."""
    given, x = x, as_array(x, "fill_diagonal")
    k = constant(np.arange(min(x.shape), dtype=np.int64))
    return written(given, x.at[(k,) * x.ndim].set(value))


def diag_indices(n: int, ndim: int = 2) -> tuple[Value, ...]:
    """Index arrays of the main diagonal of an n x n array."""
    return (constant(np.arange(n, dtype=np.int64)),) * ndim


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, ...]:
    """Index arrays of the lower triangle of an n x m matrix."""
    return tuple(constant(a.astype(np.int64)) for a in np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, ...]:
    """Index arrays of the upper triangle of an n x m matrix."""
    return tuple(constant(a.astype(np.int64)) for a in np.triu_indices(n, k, m))


def unravel_index(indices, shape) -> tuple[Value, ...]:
    """Row-major flat positions as index arrays, one an axis."""
    indices = _integers(indices, "unravel_index")
    out = []
    for n in reversed(shape):
        out.append(ar.remainder(indices, int(n)))
        indices = ar.floor_divide(indices, int(n))
    return tuple(reversed(out))


def ravel_multi_index(multi_index, dims) -> Value:
    """Index arrays, one an axis, as row-major flat positions."""
    total = None
    for part, n in zip(multi_index, dims, strict=True):
        part = _integers(part, "ravel_multi_index")
        total = part if total is None else ar.add(ar.mul(total, int(n)), part)
    return total


def one_hot(x, num_classes: int, *, dtype=None, axis: int = -1) -> Value:
    """1 at the class named by each integer of x, 0 elsewhere; classes lie along `axis` of the result.

    An integer outside 0..num_classes - 1 gives zeros.

    >>> one_hot(tl.tensor([0, 2]), 3)
    tensor([[1., 0., 0.],
            [0., 0., 1.]], float64, shape (2, 3), cpu)
    """
    x = _integers(x, "one_hot")
    axis = normalize_axis(axis, x.ndim + 1, "one_hot")
    shape = (*x.shape[:axis], int(num_classes), *x.shape[axis:])
    kept = tuple(k for k in range(len(shape)) if k != axis)
    classes = iota.bind(shape=shape, axis=axis, dtype=dtypes.int64)
    hit = lo.eq(layout.broadcast.bind(x, shape=shape, axes=kept), classes)
    return convert(hit, dtype or dtypes.float64)
