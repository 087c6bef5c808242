"""Statistics: quantiles, histograms, covariance, and the forms that skip NaN."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, ShapeError
from tlgrad.numpy.arrays import as_array, axes_of, concrete, constant, with_kept_axes
from tlgrad.numpy.creation import linspace
from tlgrad.numpy.elementwise import as_inexact, clip
from tlgrad.numpy.ordering import searchsorted, sort
from tlgrad.numpy.products import matmul
from tlgrad.numpy.reductions import any, argmax, argmin, average, cumprod, cumsum, max, mean, min, prod, sum
from tlgrad.numpy.selection import diagonal
from tlgrad.numpy.shaping import concatenate, matrix_transpose, moveaxis, ravel, reshape, transpose
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops.bounds import within
from tlgrad.ops.convert import convert
from tlgrad.ops.index import scatter
from tlgrad.ops.layout import zeros
from tlgrad.ops.promote import as_dtype_value, broadcast_to
from tlgrad.ops.index import take_along_axis

__all__ = ["quantile", "percentile", "median", "nanquantile", "nanpercentile", "nanmedian", "histogram",
           "histogram_bin_edges", "bincount", "cov", "corrcoef", "nansum", "nanprod", "nanmax", "nanmin",
           "nanmean", "nanvar", "nanstd", "nanargmax", "nanargmin", "nancumsum", "nancumprod"]

#: (alpha, beta) of the continuous methods
#: (Hyndman and Fan, "Sample quantiles in statistical packages", 1996)
_CONTINUOUS = {"linear": (1, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "median_unbiased": (1 / 3, 1 / 3),
               "normal_unbiased": (3 / 8, 3 / 8), "interpolated_inverted_cdf": (0, 1)}
_STEPS = ("lower", "higher", "nearest", "midpoint")


def _merged(x, axis, name):
    """The reduced axes joined as the last one, and which they were."""
    axes = axes_of(axis, x.ndim, name)
    kept = [k for k in range(x.ndim) if k not in axes]
    moved = transpose(x, (*kept, *axes))
    return reshape(moved, (*[x.shape[k] for k in kept], math.prod(x.shape[a] for a in axes))), axes


def _position(q, n, method):
    """The fractional place of quantile q among n sorted entries (n a number or an array)."""
    if method in _STEPS:
        return ar.mul(q, ar.sub(n, 1))
    alpha, beta = _CONTINUOUS[method]
    place = ar.sub(ar.add(ar.mul(q, ar.add(n, 1 - alpha - beta)), alpha), 1)
    return lo.minimum(lo.maximum(place, 0), ar.sub(n, 1))


def _between(ordered, place, method):
    """Entries of `ordered` (..., n) at fractional places (..., k)."""
    low = ar.floor(place)
    fraction = ar.sub(place, low)
    top = ordered.shape[-1] - 1
    if method == "nearest":
        low = ar.round_(place)
    i = convert(low, dtypes.int64)
    j = lo.minimum(ar.add(i, 1), top)
    a, b = (take_along_axis(ordered, lo.maximum(v, 0), ordered.ndim - 1) for v in (i, j))
    if method in ("lower", "nearest"):
        return a
    exact = lo.eq(fraction, 0)
    if method == "higher":
        return lo.where(exact, a, b)
    part = convert(lo.where(exact, 0.0, 0.5) if method == "midpoint" else fraction, ordered.dtype)
    gap = lo.where(lo.eq(a, b), 0.0, ar.sub(b, a))                  # equal infinities have no gap
    near_b = ar.sub(b, ar.mul(gap, ar.sub(1.0, part)))
    return lo.where(exact, a, lo.where(lo.ge(part, 0.5), near_b, ar.add(a, ar.mul(gap, part))))


def _quantiles(x, q, axis, method, keepdims, name, skip_nan=False, weights=None):
    if method not in _CONTINUOUS and method not in _STEPS:
        raise ArgumentError(f"{name}: method must be one of {', '.join([*_CONTINUOUS, *_STEPS])}, got {method!r}")
    if weights is not None:
        raise ArgumentError(f"{name}: weights are not available; repeat the entries, or use tl.numpy.average")
    x = as_inexact(x, name)
    if x.dtype.kind != "f":
        raise DTypeError(f"{name} takes real numbers, got {x.aval}")
    q = as_inexact(q, name)
    flat, axes = _merged(x, axis, name)
    ordered = sort(flat, -1)
    count = flat.shape[-1]
    if count == 0:
        raise ShapeError(f"{name}: the reduced axes of shape {x.shape} are empty")
    missing = lo.is_nan(flat)
    n = convert(sum(lo.not_(missing), -1, keepdims=True), dtypes.float64) if skip_nan else float(count)
    lead = (*flat.shape[:-1], q.size)
    shares = within(convert(ravel(q), dtypes.float64), 0.0, 1.0, f"{name}: quantiles lie in 0..1")
    place = broadcast_to(_position(shares, n, method), lead)
    out = _between(ordered, place, method)
    spoiled = lo.eq(n, 0) if skip_nan else any(missing, -1, keepdims=True)
    out = lo.where(spoiled, math.nan, out) if isinstance(spoiled, Value) else out
    out = moveaxis(out, -1, 0)
    results = [with_kept_axes(out[k], axes, keepdims) for k in range(q.size)]
    if q.ndim == 0:
        return results[0]
    return reshape(as_array(results, name), (*q.shape, *results[0].shape))


def quantile(x, q, axis=None, out=None, overwrite_input=False, method: str = "linear", keepdims=False, *,
             weights=None) -> Value:
    """The q-quantiles (q in 0..1) along `axis`, by interpolation between sorted entries; a NaN spreads.

    The derivative goes to the entries interpolated between.  q's axes come first in the result.

    >>> quantile(tl.tensor([1.0, 2.0, 4.0]), 0.75)
    tensor(3.0, float64, shape (), cpu)
    """
    return _quantiles(x, q, axis, method, keepdims, "quantile", weights=weights)


def percentile(x, q, axis=None, out=None, overwrite_input=False, method: str = "linear", keepdims=False, *,
               weights=None) -> Value:
    """`quantile` of q / 100."""
    return _quantiles(x, ar.div(as_inexact(q, "percentile"), 100), axis, method, keepdims, "percentile",
                      weights=weights)


def median(x, axis=None, out=None, overwrite_input=False, keepdims=False) -> Value:
    """The middle entry along `axis`, or the mean of the two middle ones."""
    return _quantiles(x, 0.5, axis, "linear", keepdims, "median")


def nanquantile(x, q, axis=None, out=None, overwrite_input=False, method: str = "linear",
                keepdims=False) -> Value:
    """`quantile` of the entries that are not NaN."""
    return _quantiles(x, q, axis, method, keepdims, "nanquantile", True)


def nanpercentile(x, q, axis=None, out=None, overwrite_input=False, method: str = "linear",
                  keepdims=False) -> Value:
    """`percentile` of the entries that are not NaN."""
    q = ar.div(as_inexact(q, "nanpercentile"), 100)
    return _quantiles(x, q, axis, method, keepdims, "nanpercentile", True)


def nanmedian(x, axis=None, out=None, overwrite_input=False, keepdims=False) -> Value:
    """`median` of the entries that are not NaN."""
    return _quantiles(x, 0.5, axis, "linear", keepdims, "nanmedian", True)


# ---- without NaN ----

def _filled(x, value, name):
    x = as_array(x, name)
    return lo.where(lo.is_nan(x), value, x) if dtypes.is_inexact(x.dtype) else x


def _present(x):
    x = as_array(x, "a statistic")
    return lo.not_(lo.is_nan(x)) if dtypes.is_inexact(x.dtype) else lo.eq(x, x)


def nansum(x, axis=None, dtype=None, out=None, keepdims=False) -> Value:
    """`sum` with NaN as 0."""
    return sum(_filled(x, 0, "nansum"), axis, dtype, keepdims=keepdims)


def nanprod(x, axis=None, dtype=None, out=None, keepdims=False) -> Value:
    """`prod` with NaN as 1."""
    return prod(_filled(x, 1, "nanprod"), axis, dtype, keepdims=keepdims)


def _nan_extreme(x, axis, keepdims, f, fill, name):
    x = as_array(x, name)
    if not dtypes.is_inexact(x.dtype):
        return f(x, axis, keepdims=keepdims)
    y = f(_filled(x, fill, name), axis, keepdims=keepdims)
    return lo.where(any(_present(x), axis, keepdims=keepdims), y, math.nan)


def nanmax(x, axis=None, out=None, keepdims=False) -> Value:
    """`max` of the entries that are not NaN; NaN where there is none."""
    return _nan_extreme(x, axis, keepdims, max, -math.inf, "nanmax")


def nanmin(x, axis=None, out=None, keepdims=False) -> Value:
    """`min` of the entries that are not NaN; NaN where there is none."""
    return _nan_extreme(x, axis, keepdims, min, math.inf, "nanmin")


def nanargmax(x, axis=None, out=None, *, keepdims=False) -> Value:
    """`argmax` of the entries that are not NaN."""
    return argmax(_filled(x, -math.inf, "nanargmax"), axis, keepdims=keepdims)


def nanargmin(x, axis=None, out=None, *, keepdims=False) -> Value:
    """`argmin` of the entries that are not NaN."""
    return argmin(_filled(x, math.inf, "nanargmin"), axis, keepdims=keepdims)


def nanmean(x, axis=None, dtype=None, out=None, keepdims=False) -> Value:
    """`mean` of the entries that are not NaN."""
    return mean(_filled(x, 0, "nanmean"), axis, dtype, keepdims=keepdims, where=_present(x))


def nanvar(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False) -> Value:
    """`var` of the entries that are not NaN."""
    x = as_inexact(x, "nanvar")
    here = _present(x)
    d = lo.where(here, ar.sub(_filled(x, 0, "nanvar"), nanmean(x, axis, keepdims=True)), 0.0)
    count = sum(here, axis, keepdims=keepdims)
    return ar.div(sum(ar.mul(d, d), axis, dtype, keepdims=keepdims), convert(ar.sub(count, ddof), d.dtype))


def nanstd(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False) -> Value:
    """`std` of the entries that are not NaN."""
    v = nanvar(x, axis, dtype, None, ddof, keepdims)
    flat = lo.eq(v, 0)
    return lo.where(flat, 0.0, ar.sqrt(lo.where(flat, 1.0, v)))


def nancumsum(x, axis=None, dtype=None, out=None) -> Value:
    """`cumsum` with NaN as 0."""
    return cumsum(_filled(x, 0, "nancumsum"), axis, dtype)


def nancumprod(x, axis=None, dtype=None, out=None) -> Value:
    """`cumprod` with NaN as 1."""
    return cumprod(_filled(x, 1, "nancumprod"), axis, dtype)


# ---- counting ----

def bincount(x, weights=None, minlength: int = 0, *, length: int | None = None) -> Value:
    """How often each of 0, 1, 2, ... occurs, or the sum of its `weights` in row-major order.

    `length` fixes the size of the result; without it, x must be known.  Differentiable in the weights.

    >>> bincount(tl.tensor([0, 2, 2]))
    tensor([1, 0, 2], int64, shape (3,), cpu)
    """
    x = as_array(x, "bincount")
    if x.ndim != 1 or x.dtype.kind not in "iub":
        raise ShapeError(f"bincount takes non-negative integers of one axis, got {x.aval}")
    if length is None:
        known = concrete(x, "bincount", "x (or give length=)")
        length = int(np.max(known, initial=-1)) + 1
    n = length if length > minlength else minlength
    weights = constant(np.ones(x.shape, np.int64)) if weights is None else as_array(weights, "bincount")
    weights = broadcast_to(weights if weights.dtype.kind in "iufc" else convert(weights, dtypes.int64), x.shape)
    start = zeros(weights.aval.strong().with_shape((n,)))
    places = reshape(convert(x, dtypes.int64), (x.size, 1))
    return scatter.bind(start, places, as_dtype_value(weights, weights.dtype), axes=(0,), mode="add")


def histogram_bin_edges(x, bins=10, range=None, weights=None) -> Value:
    """Edges of equal bins between the extremes of x, or of `range`; an array of edges is kept."""
    bins = bins if isinstance(bins, (int, np.integer)) else as_array(bins, "histogram")
    if isinstance(bins, Value):
        return bins
    x = as_array(x, "histogram")
    if range is not None:
        low, high = range
    else:
        low, high = (0.0, 1.0) if x.size == 0 else (convert(f(x), dtypes.float64) for f in (min, max))
    low, high = as_inexact(low, "histogram"), as_inexact(high, "histogram")
    flat = lo.eq(low, high)
    return linspace(lo.where(flat, ar.sub(low, 0.5), low), lo.where(flat, ar.add(high, 0.5), high), int(bins) + 1)


def histogram(x, bins=10, range=None, density=None, weights=None) -> tuple[Value, Value]:
    """(counts or sums of weights in each bin, edges); the last bin includes its right edge."""
    x = ravel(as_array(x, "histogram"))
    edges = histogram_bin_edges(x, bins, range)
    n = edges.shape[0] - 1
    place = ar.sub(searchsorted(edges, x, "right"), 1)
    place = lo.where(lo.eq(x, edges[-1]), n - 1, place)
    inside = lo.and_(lo.ge(place, 0), lo.lt(place, n))
    weights = constant(np.ones(x.shape, np.int64)) if weights is None else ravel(weights)
    weights = lo.where(inside, weights, as_dtype_value(as_array(0, ""), weights.dtype))
    counts = bincount(clip(place, 0, n - 1), weights, length=n)
    if density:
        width = ar.sub(edges[1:], edges[:-1])
        counts = ar.div(ar.div(counts, width), sum(counts))
    return counts, edges


# ---- covariance ----

def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None) -> Value:
    """Covariance matrix of variables in the rows of m (and of y)."""
    m = as_inexact(m, "cov")
    if m.ndim > 2:
        raise ShapeError(f"cov takes at most two axes, got shape {m.shape}")
    m = reshape(m, (1, -1)) if m.ndim < 2 else m if rowvar else matrix_transpose(m)
    if y is not None:
        y = as_inexact(y, "cov")
        y = reshape(y, (1, -1)) if y.ndim < 2 else y if rowvar else matrix_transpose(y)
        m = concatenate([m, y], 0)
    weights = None
    for w in (fweights, aweights):
        if w is not None:
            w = convert(as_array(w, "cov"), dtypes.real_dtype(m.dtype))
            weights = w if weights is None else ar.mul(weights, w)
    ddof = (0 if bias else 1) if ddof is None else ddof
    middle = average(m, 1, None if weights is None else broadcast_to(weights, m.shape))
    d = ar.sub(m, reshape(middle, (-1, 1)))
    left = d if weights is None else ar.mul(d, weights)
    right = matrix_transpose(ar.conj(d) if d.dtype.kind == "c" else d)
    if weights is None:
        scale = m.shape[1] - ddof
    else:
        total = sum(weights)
        part = 1 if aweights is None else ar.div(sum(ar.mul(weights, as_array(aweights, "cov"))), total)
        scale = ar.sub(total, ar.mul(part, ddof))
    c = ar.div(matmul(left, right), scale)
    return reshape(c, ()) if c.size == 1 else c


def corrcoef(x, y=None, rowvar=True, *, dtype=None) -> Value:
    """Correlation coefficients of variables in the rows of x (and of y), in [-1, 1]."""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return ar.div(c, c)
    s = ar.sqrt(ar.real(diagonal(c)) if c.dtype.kind == "c" else diagonal(c))
    r = ar.div(ar.div(c, reshape(s, (-1, 1))), s)
    return clip(r, -1, 1) if r.dtype.kind == "f" else r
