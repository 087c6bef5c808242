"""Histograms of several variables, masks as indices, and bits packed into bytes."""
from __future__ import annotations

import functools

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError
from tlgrad.numpy.arrays import as_array, concrete
from tlgrad.numpy.ordering import searchsorted
from tlgrad.numpy.reductions import sum
from tlgrad.numpy.repeating import pad
from tlgrad.numpy.selection import nonzero
from tlgrad.numpy.shaping import flip, moveaxis, ravel, reshape
from tlgrad.numpy.statistics import bincount, histogram_bin_edges
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.shape import iota, slice_axis

__all__ = ["histogram2d", "histogramdd", "mask_indices", "packbits", "unpackbits"]


def histogramdd(sample, bins=10, range=None, density=None, weights=None) -> tuple[Value, list[Value]]:
    """(counts or sums of weights, edges of each variable); the last bins include their right edges.

    sample: (n, d), or a list of d arrays.  bins: a number, or for each variable a number or edges.
    Differentiable in the weights.

    >>> [v.tolist() for v in histogramdd(tl.tensor([[0.0, 0.0], [1.0, 1.0]]), bins=(1, 2))[1]]
    [[0.0, 1.0], [0.0, 0.5, 1.0]]
    """
    if isinstance(sample, (list, tuple)):
        columns = [ravel(as_array(v, "histogramdd")) for v in sample]
    else:
        sample = as_array(sample, "histogramdd")
        sample = sample if sample.ndim == 2 else reshape(sample, (-1, 1))
        columns = [sample[:, k] for k in np.arange(sample.shape[1]).tolist()]
    d = len(columns)
    bins = list(bins) if isinstance(bins, (list, tuple)) else [bins] * d
    ranges = range or [None] * d
    if len(bins) != d or len(ranges) != d:
        raise ArgumentError(f"histogramdd: {d} variables, but {len(bins)} bins and {len(ranges)} ranges")
    edges = [histogram_bin_edges(v, b, r) for v, b, r in zip(columns, bins, ranges)]
    sizes = tuple(e.shape[0] - 1 for e in edges)
    flat, inside = _places(columns, edges, sizes)
    weight = lo.where(inside, 1.0 if weights is None else ravel(weights), 0.0)
    counts = reshape(bincount(flat, convert(weight, dtypes.float64), length=int(np.prod(sizes))), sizes)
    if density:
        widths = [reshape(ar.sub(e[1:], e[:-1]), (-1,) + (1,) * (d - 1 - k)) for k, e in enumerate(edges)]
        counts = ar.div(ar.div(counts, functools.reduce(ar.mul, widths)), sum(counts))
    return counts, edges


def _places(columns, edges, sizes):
    """The row-major place of each row of the sample among the bins, and whether it is in one."""
    flat, inside = None, None
    for v, e, n in zip(columns, edges, sizes):
        place = lo.where(lo.eq(v, e[-1]), n - 1, ar.sub(searchsorted(e, v, "right"), 1))
        here = lo.and_(lo.ge(place, 0), lo.lt(place, n))
        place = lo.minimum(lo.maximum(place, 0), n - 1)
        flat = place if flat is None else ar.add(ar.mul(flat, n), place)
        inside = here if inside is None else lo.and_(inside, here)
    return flat, inside


def histogram2d(x, y, bins=10, range=None, density=None, weights=None) -> tuple[Value, Value, Value]:
    """(counts of pairs, edges of x, edges of y); the last bins include their right edges."""
    pair = bins if isinstance(bins, (tuple, list)) and len(bins) == 2 else [bins, bins]
    counts, edges = histogramdd([x, y], list(pair), range, density, weights)
    return counts, *edges


def mask_indices(n: int, mask_func, k: int = 0) -> tuple[Value, Value]:
    """Index arrays of the places of an n x n matrix that `mask_func(matrix, k)` (`triu`, `tril`) keeps."""
    kept = concrete(mask_func(as_array(np.ones((n, n), np.int64), "mask_indices"), k), "mask_indices", "the mask")
    return nonzero(as_array(kept != 0, "mask_indices"))


def _bytes_axis(x, axis, name):
    x = as_array(x, name)
    if axis is None:
        return ravel(x), 0
    return x, normalize_axis(axis, x.ndim, name)


def packbits(a, axis: int | None = None, bitorder: str = "big") -> Value:
    """Eight booleans (or integers, not 0 as 1) along `axis` in each uint8, the last one filled with zeros.

    >>> packbits(tl.tensor([1, 0, 1]))
    tensor([160], uint8, shape (1,), cpu)
    """
    x, axis = _bytes_axis(a, axis, "packbits")
    if x.dtype.kind not in "iub":
        raise DTypeError(f"packbits takes booleans and integers, got {x.aval}")
    x = moveaxis(convert(lo.ne(x, 0), dtypes.uint8), axis, -1)
    missing = -x.shape[-1] % 8
    x = pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing else x
    groups = reshape(x, (*x.shape[:-1], x.shape[-1] // 8, 8))
    shifts = _shifts(bitorder, "packbits")
    return moveaxis(sum(lo.shift_left(groups, shifts), -1, dtype=dtypes.uint8), -1, axis)


def unpackbits(a, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Value:
    """The bits of uint8 entries along `axis`, each as 0 or 1; the first `count` of them if given."""
    x, axis = _bytes_axis(a, axis, "unpackbits")
    if x.dtype is not dtypes.uint8:
        raise DTypeError(f"unpackbits takes uint8, got {x.aval}")
    x = moveaxis(x, axis, -1)
    bits = lo.and_(lo.shift_right(reshape(x, (*x.shape, 1)), _shifts(bitorder, "unpackbits")), 1)
    out = reshape(bits, (*x.shape[:-1], x.shape[-1] * 8))
    if count is not None:
        out = slice_axis(out, out.ndim - 1, 0, count if count >= 0 else out.shape[-1] + count)
    return moveaxis(out, -1, axis)


def _shifts(bitorder, name):
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{name}: bitorder is 'big' or 'little', got {bitorder!r}")
    shifts = iota.bind(shape=(8,), axis=0, dtype=dtypes.uint8)
    return flip(shifts) if bitorder == "big" else shifts
