"""Sets of entries.  Values are sorted: -0 and +0 are one value, every NaN is a value of its own."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlgrad.core.trace import Value
from tlgrad.numpy.arrays import as_array, concrete, constant, one_dtype
from tlgrad.numpy.ordering import searchsorted, sort
from tlgrad.numpy.reductions import any
from tlgrad.numpy.selection import take
from tlgrad.numpy.shaping import concatenate, ravel, reshape
from tlgrad.ops import logic as lo
from tlgrad.ops.shape import expand_dims

__all__ = ["unique", "unique_values", "unique_counts", "unique_inverse", "unique_all", "isin", "in1d",
           "intersect1d", "union1d", "setdiff1d", "setxor1d", "array_equal", "array_equiv"]


class UniqueAll(NamedTuple):
    """Values, the first place of each, the value number of each entry, and how often each occurs."""
    values: Value
    indices: Value
    inverse_indices: Value
    counts: Value


class UniqueCounts(NamedTuple):
    """Values, and how often each occurs."""
    values: Value
    counts: Value


class UniqueInverse(NamedTuple):
    """Values, and the value number of each entry."""
    values: Value
    inverse_indices: Value


def _unique(x, name):
    """Places of the first of each value, value number of each entry, counts; x must be known."""
    x = as_array(x, name)
    array = concrete(x, name, "x").ravel()
    _, first, inverse, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True,
                                          equal_nan=False)
    return x, first, inverse.reshape(x.shape), counts


def _integers(array):
    return constant(np.asarray(array, np.int64))


def unique_all(x) -> UniqueAll:
    """The distinct entries of x, sorted, with indices, inverse_indices and counts.

    x must be known (its values decide the shape); NaNs are distinct.

    >>> unique_all(tl.tensor([3, 1, 3])).counts
    tensor([1, 2], int64, shape (2,), cpu)
    """
    x, first, inverse, counts = _unique(x, "unique_all")
    return UniqueAll(take(ravel(x), _integers(first)), _integers(first), _integers(inverse), _integers(counts))


def unique_counts(x) -> UniqueCounts:
    """The distinct entries of x, sorted, and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x) -> UniqueInverse:
    """The distinct entries of x, sorted, and which of them each entry is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x) -> Value:
    """The distinct entries of x, sorted.

    >>> unique_values(tl.tensor([3, 1, 3]))
    tensor([1, 3], int64, shape (2,), cpu)
    """
    return unique_all(x).values


def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True):
    """The distinct entries of x (slices along `axis`), sorted; differentiable in x where its entries are known.

    NumPy's extras in NumPy's order: first places, inverse, counts.  `equal_nan`: all NaNs are one.
    """
    x = as_array(x, "unique")
    array = concrete(x, "unique", "x")
    _, first, inverse, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True,
                                          axis=axis, equal_nan=equal_nan)
    values = take(ravel(x) if axis is None else x, _integers(first), 0 if axis is None else axis)
    extras = [(return_index, first), (return_inverse, inverse), (return_counts, counts)]
    wanted = [_integers(v) for on, v in extras if on]
    return (values, *wanted) if wanted else values


def isin(x, test_elements, assume_unique=False, invert=False, *, kind=None) -> Value:
    """True where an entry of x is among `test_elements`; NaN is never found."""
    x, tests = one_dtype([as_array(x, "isin"), as_array(test_elements, "isin")])
    tests = ravel(tests)
    if x.dtype.kind == "c" or tests.shape[0] < 16:
        hits = lo.eq(expand_dims(x, x.ndim), tests) if tests.shape[0] else lo.ne(x, x)
        found = any(hits, axis=-1) if tests.shape[0] else lo.and_(hits, False)
    else:
        ordered = sort(tests)
        place = lo.minimum(searchsorted(ordered, x), tests.shape[0] - 1)
        found = lo.eq(take(ordered, place), x)
    return lo.not_(found) if invert else found


in1d = isin


def _distinct(x, assume_unique):
    return ravel(as_array(x, "a set function")) if assume_unique else unique_values(x)


def intersect1d(x, y, assume_unique=False) -> Value:
    """The sorted entries that are in both."""
    x, y = _distinct(x, assume_unique), _distinct(y, assume_unique)
    return sort(x[concrete(isin(x, y), "intersect1d", "x")])


def union1d(x, y) -> Value:
    """The sorted entries that are in either."""
    return unique_values(concatenate([ravel(x), ravel(y)]))


def setdiff1d(x, y, assume_unique=False) -> Value:
    """The entries of x that are not in y."""
    x = _distinct(x, assume_unique)
    return x[concrete(isin(x, y, invert=True), "setdiff1d", "x")]


def setxor1d(x, y, assume_unique=False) -> Value:
    """The sorted entries that are in one of the two only."""
    return sort(concatenate([setdiff1d(x, y, assume_unique), setdiff1d(y, x, assume_unique)]))


def array_equal(x, y, equal_nan: bool = False) -> Value:
    """True when two arrays have one shape and equal entries."""
    x, y = as_array(x, "array_equal"), as_array(y, "array_equal")
    if x.shape != y.shape:
        return constant(np.False_)
    return _all_equal(x, y, equal_nan)


def array_equiv(x, y) -> Value:
    """True when two arrays broadcast to equal entries."""
    x, y = as_array(x, "array_equiv"), as_array(y, "array_equiv")
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return constant(np.False_)
    return _all_equal(x, y, False)


def _all_equal(x, y, equal_nan):
    differ = lo.ne(x, y)
    if equal_nan:
        differ = lo.and_(differ, lo.not_(lo.and_(lo.is_nan(x), lo.is_nan(y))))
    return lo.not_(any(reshape(differ, (differ.size,))))
