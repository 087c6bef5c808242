"""Sorting and searching.  Order: ascending, -0 and +0 equal (kept as they come), NaN last."""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.numpy.arrays import as_array, one_dtype
from tlgrad.numpy.shaping import ravel, reshape
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.index import argsort_p, take_along_axis
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.shape import concatenate, reverse, slice_axis

__all__ = ["sort", "argsort", "lexsort", "top_k", "partition", "argpartition", "searchsorted", "digitize",
           "sort_complex"]


def _sortable(x, axis, name):
    x = as_array(x, name)
    if axis is None:
        x, axis = ravel(x), 0
    return x, normalize_axis(axis, x.ndim, name)


def argsort(x, axis=-1, kind=None, order=None, *, stable: bool = True, descending: bool = False) -> Value:
    """int64 indices that sort x along `axis` (None: flattened); always stable, NaN last (first if descending).

    >>> argsort(tl.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0], int64, shape (3,), cpu)
    """
    x, axis = _sortable(x, axis, "argsort")
    if not descending:
        return argsort_p.bind(x, axis=axis)
    backwards = argsort_p.bind(reverse.bind(x, axes=(axis,)), axis=axis)
    return reverse.bind(ar.sub(x.shape[axis] - 1, backwards), axes=(axis,))


def sort(x, axis=-1, kind=None, order=None, *, stable: bool = True, descending: bool = False) -> Value:
    """x sorted along `axis` (None: flattened); stable, NaN last (first if descending).

    The derivative permutes: each sorted entry passes its cotangent to the entry it came from.

    >>> sort(tl.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.], float64, shape (3,), cpu)
    """
    x, axis = _sortable(x, axis, "sort")
    return take_along_axis(x, argsort(x, axis, descending=descending), axis)


def sort_complex(x) -> Value:
    """The flattened array sorted by real, then imaginary part, as complex numbers."""
    x = as_array(x, "sort_complex")
    return sort(x if x.dtype.kind == "c" else convert(x, dtypes.complex128), None)


def lexsort(keys, axis: int = -1) -> Value:
    """Indices that sort by several keys: the *last* key first, the others break its ties."""
    keys = [as_array(k, "lexsort") for k in keys]
    if not keys:
        raise ArgumentError("lexsort needs at least one key")
    axis = normalize_axis(axis, keys[0].ndim, "lexsort")
    order = argsort(keys[0], axis)
    for key in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def top_k(x, k: int, axis: int = -1) -> tuple[Value, Value]:
    """The k greatest entries along `axis`, greatest first, and their indices; of equal ones the first.

    >>> top_k(tl.tensor([1.0, 3.0, 2.0]), 2)[0]
    tensor([3., 2.], float64, shape (2,), cpu)
    """
    x = as_array(x, "top_k")
    axis = normalize_axis(axis, x.ndim, "top_k")
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"top_k: k = {k} of axis {axis} of size {x.shape[axis]}")
    order = slice_axis(argsort(x, axis, descending=True), axis, 0, k)
    return take_along_axis(x, order, axis), order


def partition(x, kth, axis=-1, kind=None) -> Value:
    """`sort`: a full order is one of the orders that a partition allows."""
    return sort(x, axis)


def argpartition(x, kth, axis=-1, kind=None) -> Value:
    """`argsort`: a full order is one of the orders that a partition allows."""
    return argsort(x, axis)


def searchsorted(x1, x2, side: str = "left", sorter=None) -> Value:
    """Where each entry of x2 goes into the sorted 1-d array x1, int64; NaN goes to the end.

    side "left": before equal entries; "right": after them.

    >>> searchsorted(tl.tensor([1.0, 2.0, 3.0]), tl.tensor([2.0, 9.0]))
    tensor([1, 3], int64, shape (2,), cpu)
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side is 'left' or 'right', got {side!r}")
    a, v = one_dtype([as_array(x1, "searchsorted"), as_array(x2, "searchsorted")])
    if a.ndim != 1:
        raise ShapeError(f"searchsorted: x1 is 1-d, got shape {a.shape}")
    if sorter is not None:
        a = take_along_axis(a, as_array(sorter, "searchsorted"), 0)
    n, flat = a.shape[0], ravel(v)
    first, second = (flat, a) if side == "left" else (a, flat)
    order = argsort_p.bind(concatenate.bind(first, second, axis=0), axis=0)
    rank = argsort_p.bind(order, axis=0)
    mine = slice_axis(rank, 0, 0, flat.shape[0]) if side == "left" else slice_axis(rank, 0, n, n + flat.shape[0])
    within = argsort_p.bind(argsort_p.bind(flat, axis=0), axis=0)
    return reshape(ar.sub(mine, within), v.shape)


def digitize(x, bins, right: bool = False) -> Value:
    """The bin of each entry of x: i with bins[i-1] <= x < bins[i] (right: bins[i-1] < x <= bins[i]).

    `bins` is sorted; descending ones count from their end.
    """
    bins = as_array(bins, "digitize")
    if bins.ndim != 1:
        raise ShapeError(f"digitize: bins is 1-d, got shape {bins.shape}")
    up = searchsorted(bins, x, "left" if right else "right")
    if bins.shape[0] < 2:
        return up
    down = ar.sub(bins.shape[0], searchsorted(reverse.bind(bins, axes=(0,)), x, "left" if right else "right"))
    return lo.where(lo.le(bins[0], bins[-1]), up, down)
