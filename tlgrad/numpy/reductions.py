"""Reductions.  Sums keep a stated order; narrow integers add up in 64 bits, 16-bit floats in
binary32 with one rounding at the end.

Orders: "ordered" (default), "fused", "tree", "free"; see `tlgrad.ops.orders`.
"""
from __future__ import annotations

import builtins
import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import DTypeError, ShapeError
from tlgrad.numpy.arrays import as_array, axes_of, in_dtype, optional_dtype, refuse_out, with_kept_axes
from tlgrad.numpy import lexicographic
from tlgrad.numpy.continuing import continued
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops import orders, reduce
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import moveaxis, normalize_axis, reduce_sum, reshape, sum_axes
from tlgrad.ops.norm import norm as norm_p
from tlgrad.ops.promote import as_dtype_value, broadcast_to

__all__ = ["sum", "prod", "mean", "max", "min", "amax", "amin", "any", "all", "argmax", "argmin", "var",
           "std", "cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "count_nonzero", "ptp",
           "average"]


def _wide(x: Value, dtype) -> Value:
    """Operand of a sum or product: in `dtype`, or narrow integers and bools in 64 bits."""
    if dtype is not None:
        return in_dtype(x, dtype)
    if x.dtype.kind in "bi" and x.dtype is not dtypes.int64:
        return convert(x, dtypes.int64)
    return convert(x, dtypes.uint64) if x.dtype.kind == "u" and x.dtype is not dtypes.uint64 else x


def _masked(x, where, value):
    """x with `value` where a mask does not hold."""
    if where is None or where is True:
        return x
    where = as_array(where, "where=")
    x = broadcast_to(x, np.broadcast_shapes(x.shape, where.shape))
    return lo.where(where, x, as_dtype_value(as_array(value, "where="), x.dtype))


def sum(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, *, init=None,
        order: str | None = None) -> Value:
    """Sum of the entries along `axis` (None: all; an int or tuple of ints), left to right from +0.

    Integers below 64 bits and bools add up in int64 / uint64; 16-bit floats in binary32, rounded once
    (an explicit `dtype` is also the dtype of the accumulator).  `init`: an accumulator of the result's
    shape to continue from; `initial`: a start value broadcast to it; `where`: a mask of what to add.
    Raises ShapeError for an axis that does not exist.

    >>> sum(tl.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.], float64, shape (2,), cpu)
    """
    refuse_out(out, "sum")
    x = _masked(_wide(as_array(x, "sum"), dtype), where, 0)
    axes = axes_of(axis, x.ndim, "sum")
    order = orders.check_order(order)
    if init is None and initial is not None:
        kept = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        init = broadcast_to(as_dtype_value(as_array(initial, "sum"), x.dtype), kept)
    if init is not None:
        y = reduce_sum.bind(x, as_dtype_value(as_array(init, "sum"), x.dtype), axes=axes, order=order)
    elif dtype is not None and axes:
        y = reduce_sum.bind(x, axes=axes, order=order)
    else:
        y = sum_axes(x, axes, order)
    return with_kept_axes(y, axes, keepdims)


def prod(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, *,
         init=None, order: str | None = None) -> Value:
    """Product of the entries along `axis`, left to right from 1; the derivative divides by nothing.

    Integers below 64 bits multiply in int64 / uint64.  `init`: an accumulator of the result's shape to
    continue from.  Products run left to right in every `order`.

    >>> prod(tl.tensor([2.0, 3.0, 4.0]))
    tensor(24.0, float64, shape (), cpu)
    """
    refuse_out(out, "prod")
    orders.check_order(order)
    x = _masked(_wide(as_array(x, "prod"), dtype), where, 1)
    axes = axes_of(axis, x.ndim, "prod")
    if init is not None:
        return continued(prod, x, init, axes, keepdims, "prod")
    y = reduce.reduce_prod.bind(x, axes=axes) if axes else x
    y = y if initial is None else ar.mul(y, initial)
    return with_kept_axes(y, axes, keepdims)


def mean(x, axis=None, dtype=None, out=None, keepdims=False, *, where=None, order: str | None = None) -> Value:
    """Arithmetic mean along `axis`: sum / count; integers give float64, 16-bit floats round once.

    >>> mean(tl.tensor([[0, 1, 2], [3, 4, 5]]), axis=0)
    tensor([1.5, 2.5, 3.5], float64, shape (3,), cpu)
    """
    refuse_out(out, "mean")
    x = as_array(x, "mean")
    narrow = x.dtype if dtype is None else optional_dtype(dtype)
    x = _accumulating(x, dtype)
    axes = axes_of(axis, x.ndim, "mean")
    count = _count(x, axes, where)
    total = sum(x, axes, keepdims=keepdims, where=where, order=order)
    if isinstance(count, Value):
        count = with_kept_axes(count, axes, keepdims)
    return _rounded_back(ar.div(total, count), narrow)


def _accumulating(x, dtype):
    """The operand in the dtype in which a mean or variance is computed."""
    if dtype is not None:
        return convert(x, dtype)
    if x.dtype.kind in "biu":
        return convert(x, dtypes.float64)
    return convert(x, dtypes.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x


def _rounded_back(y, narrow):
    return convert(y, narrow) if narrow in (dtypes.float16, dtypes.bfloat16) else y


def _count(x, axes, where):
    if where is None or where is True:
        return math.prod(x.shape[a] for a in axes)
    mask = broadcast_to(as_array(where, "where="), x.shape)
    return convert(sum(mask, axes), dtypes.real_dtype(x.dtype))


# ---- extremes ----

def _extreme(x, axis, out, keepdims, initial, where, init, name):
    refuse_out(out, name)
    x = as_array(x, name)
    prim, pair = (reduce.reduce_max, lo.maximum) if name == "max" else (reduce.reduce_min, lo.minimum)
    if where is not None:
        if initial is None and init is None:
            raise ShapeError(f"{name}: where= needs initial=, the result where nothing is selected")
        x = _masked(x, where, init if initial is None else initial)
    if x.dtype.kind == "b":
        return (any if name == "max" else all)(x, axis, keepdims=keepdims)
    axes = axes_of(axis, x.ndim, name)
    if x.dtype.kind == "c":
        if initial is not None or init is not None or 0 in [x.shape[a] for a in axes]:
            raise DTypeError(f"{name}: of complex numbers, without initial= and init=, and not of empty axes; use "
                             "tl.abs(x), or a part of x")
        return with_kept_axes(lexicographic.extreme(x, axes, name == "max"), axes, keepdims)
    if init is not None:
        return continued(max if name == "max" else min, x, init, axes, keepdims, name)
    if initial is None:
        y = prim.bind(x, axes=axes) if axes else x
    else:
        start = as_dtype_value(as_array(initial, name), x.dtype)
        empty = 0 in [x.shape[a] for a in axes]
        kept = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        y = broadcast_to(start, kept) if empty else pair(prim.bind(x, axes=axes), start)
    return with_kept_axes(y, axes, keepdims)


def max(x, axis=None, out=None, keepdims=False, initial=None, where=None, *, init=None,
        order: str | None = None) -> Value:
    """Greatest entry along `axis`; a NaN spreads.  The derivative belongs to the first winner.

    Complex numbers are ordered by real part, then by imaginary part.

    `init`: an accumulator of the result's shape to continue from.  Raises ShapeError when the axis is
    empty and neither `initial` nor `init` is given.  The result is the same in every `order`.

    >>> max(tl.tensor([1.0, 3.0, 2.0]))
    tensor(3.0, float64, shape (), cpu)
    """
    orders.check_order(order)
    return _extreme(x, axis, out, keepdims, initial, where, init, "max")


def min(x, axis=None, out=None, keepdims=False, initial=None, where=None, *, init=None,
        order: str | None = None) -> Value:
    """Least entry along `axis`; a NaN spreads.  The derivative belongs to the first winner.

    `init`: an accumulator of the result's shape to continue from.  Raises ShapeError when the axis is
    empty and neither `initial` nor `init` is given.  The result is the same in every `order`.

    >>> min(tl.tensor([1.0, 3.0, 2.0]))
    tensor(1.0, float64, shape (), cpu)
    """
    orders.check_order(order)
    return _extreme(x, axis, out, keepdims, initial, where, init, "min")


amax, amin = max, min


def _flat(x):
    return reshape.bind(x, shape=(x.size,))


def _arg(x, axis, out, keepdims, prim, name):
    refuse_out(out, name)
    x = as_array(x, name)
    if x.dtype.kind == "b":
        x = convert(x, dtypes.uint8)
    if axis is None:
        flat = _flat(x)
        y = lexicographic.first_winner(flat, name == "argmax") if x.dtype.kind == "c" else prim.bind(flat, axis=0)
        return reshape.bind(y, shape=(1,) * x.ndim) if keepdims else y
    axis = normalize_axis(axis, x.ndim, name)
    if x.dtype.kind == "c":
        y = lexicographic.first_winner(moveaxis(x, axis, x.ndim - 1), name == "argmax")
        return with_kept_axes(y, (axis,), keepdims)
    return with_kept_axes(prim.bind(x, axis=axis), (axis,), keepdims)


def argmax(x, axis=None, out=None, *, keepdims=False) -> Value:
    """int64 index of the first greatest entry along `axis` (None: of the flattened array); a NaN wins.

    >>> argmax(tl.tensor([1.0, 3.0, 3.0]))
    tensor(1, int64, shape (), cpu)
    """
    return _arg(x, axis, out, keepdims, reduce.argmax_p, "argmax")


def argmin(x, axis=None, out=None, *, keepdims=False) -> Value:
    """int64 index of the first least entry along `axis` (None: of the flattened array); a NaN wins."""
    return _arg(x, axis, out, keepdims, reduce.argmin_p, "argmin")


def ptp(x, axis=None, out=None, keepdims=False) -> Value:
    """Peak to peak: max - min along `axis`."""
    return ar.sub(max(x, axis, out, keepdims), min(x, axis, out, keepdims))


# ---- truth ----

def any(x, axis=None, out=None, keepdims=False, *, where=None, init=None, order: str | None = None) -> Value:
    """True where some entry along `axis` is not zero, the same in every `order`."""
    refuse_out(out, "any")
    orders.check_order(order)
    x = _masked(lo.as_bool(as_array(x, "any")), where, False)
    axes = axes_of(axis, x.ndim, "any")
    if init is not None:
        return continued(any, x, init, axes, keepdims, "any")
    return with_kept_axes(reduce.reduce_any.bind(x, axes=axes) if axes else x, axes, keepdims)


def all(x, axis=None, out=None, keepdims=False, *, where=None, init=None, order: str | None = None) -> Value:
    """True where every entry along `axis` is not zero, the same in every `order`."""
    refuse_out(out, "all")
    orders.check_order(order)
    x = _masked(lo.as_bool(as_array(x, "all")), where, True)
    axes = axes_of(axis, x.ndim, "all")
    if init is not None:
        return continued(all, x, init, axes, keepdims, "all")
    return with_kept_axes(reduce.reduce_all.bind(x, axes=axes) if axes else x, axes, keepdims)


def count_nonzero(x, axis=None, *, keepdims=False) -> Value:
    """Number of entries along `axis` that are not zero, int64."""
    return sum(lo.as_bool(as_array(x, "count_nonzero")), axis, keepdims=keepdims)


# ---- spread ----

def _centred(x, axes, where, order):
    middle = mean(x, axes, keepdims=True, where=where, order=order)
    return _masked(ar.sub(x, middle), where, 0)


def _degrees(x, axes, where, ddof):
    count = _count(x, axes, where)
    return ar.sub(count, ddof) if isinstance(count, Value) else builtins.max(count - ddof, 0)


def _spread_arguments(x, axis, dtype, ddof, correction, name):
    x = as_array(x, name)
    narrow = x.dtype if dtype is None else optional_dtype(dtype)
    x = _accumulating(x, dtype)
    return x, axes_of(axis, x.ndim, name), ddof if correction is None else correction, narrow


def var(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None, where=None,
        order: str | None = None) -> Value:
    """Variance along `axis`: mean of |x - mean|^2 over count - `ddof`; never negative.

    `correction` is the array API name of `ddof`.  Two passes, so nothing cancels.

    >>> var(tl.tensor([1.0, 2.0, 3.0]))
    tensor(0.6666666666666666, float64, shape (), cpu)
    """
    refuse_out(out, "var")
    x, axes, ddof, narrow = _spread_arguments(x, axis, dtype, ddof, correction, "var")
    d = _centred(x, axes, where, order)
    squares = ar.real(ar.mul(d, ar.conj(d))) if d.dtype.kind == "c" else ar.mul(d, d)
    total = ar.div(sum(squares, axes, order=order), _degrees(x, axes, where, ddof))
    return with_kept_axes(_rounded_back(total, narrow), axes, keepdims)


def std(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None, where=None,
        order: str | None = None) -> Value:
    """Standard deviation along `axis`: the root of `var`; its derivative at constant data is 0.

    >>> std(tl.tensor([1.0, 1.0, 1.0]))
    tensor(0.0, float64, shape (), cpu)
    """
    refuse_out(out, "std")
    x, axes, ddof, narrow = _spread_arguments(x, axis, dtype, ddof, correction, "std")
    d, count = _centred(x, axes, where, order), _degrees(x, axes, where, ddof)
    if builtins.all(x.shape[a] == 1 for a in axes) and not ddof and where is None:
        r = sum_axes(ar.real(d), axes)                 # of one entry: 0, with derivatives 0
    elif isinstance(count, Value):
        r = ar.div(norm_p.bind(d, axes=axes, divisor=1.0, order=orders.check_order(order)), ar.sqrt(count))
    else:
        r = norm_p.bind(d, axes=axes, divisor=float(count), order=orders.check_order(order))
    return with_kept_axes(_rounded_back(r, narrow), axes, keepdims)


def average(x, axis=None, weights=None, returned=False, *, keepdims=False):
    """Weighted mean: sum(weights * x) / sum(weights); with `returned`, also the sum of weights."""
    x = as_array(x, "average")
    if weights is None:
        y = mean(x, axis, keepdims=keepdims)
        n = ar.div(ar.mul(y, 0), 1) + x.size / builtins.max(y.size, 1)
        return (y, n) if returned else y
    w = as_array(weights, "average")
    if w.shape != x.shape:
        axis_w = axes_of(axis, x.ndim, "average")
        if axis is None or w.shape != tuple(x.shape[a] for a in axis_w):
            raise ShapeError(f"average: weights of shape {w.shape} do not fit x of shape {x.shape} "
                             f"along axis {axis}")
        w = reshape.bind(w, shape=tuple(x.shape[a] if a in axis_w else 1 for a in range(x.ndim)))
    w = broadcast_to(w, x.shape)
    total = sum(w, axis, keepdims=keepdims)
    y = ar.div(sum(ar.mul(x, w), axis, keepdims=keepdims), total)
    return (y, total) if returned else y


# ---- prefix sums, differences ----

def _cumulative(x, axis, dtype, out, include_initial, name, bind, start):
    refuse_out(out, name)
    x = _wide(as_array(x, name), dtype)
    if axis is None:
        x, axis = _flat(x), 0
    axis = normalize_axis(axis, x.ndim, name)
    y = bind(x, axis)
    if include_initial:
        shape = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
        first = broadcast_to(as_dtype_value(as_array(start, name), x.dtype), shape)
        y = reduce.concatenate.bind(first, y, axis=axis)
    return y


def _cumsum_bind(x, axis):
    if x.dtype in (dtypes.float16, dtypes.bfloat16):
        return convert(reduce.cumsum_axis(convert(x, dtypes.float32), axis), x.dtype)
    return reduce.cumsum_axis(x, axis)


def cumsum(x, axis=None, dtype=None, out=None) -> Value:
    """Sums of the first 1, 2, ... entries along `axis` (None: of the flattened array), left to right.

    >>> cumsum(tl.tensor([1.0, 2.0, 3.0]))
    tensor([1., 3., 6.], float64, shape (3,), cpu)
    """
    return _cumulative(x, axis, dtype, out, False, "cumsum", _cumsum_bind, 0)


def cumprod(x, axis=None, dtype=None, out=None) -> Value:
    """Products of the first 1, 2, ... entries along `axis`, left to right."""
    return _cumulative(x, axis, dtype, out, False, "cumprod", reduce.cumprod, 1)


def _one_axis(x, axis, name):
    if axis is None and as_array(x, name).ndim != 1:
        raise ShapeError(f"{name}: say which axis= of {as_array(x, name).shape}")
    return 0 if axis is None else axis


def cumulative_sum(x, *, axis=None, dtype=None, include_initial=False) -> Value:
    """`cumsum` under its array API name; `include_initial` puts a 0 in front."""
    return _cumulative(x, _one_axis(x, axis, "cumulative_sum"), dtype, None, include_initial,
                       "cumulative_sum", _cumsum_bind, 0)


def cumulative_prod(x, *, axis=None, dtype=None, include_initial=False) -> Value:
    """`cumprod` under its array API name; `include_initial` puts a 1 in front."""
    return _cumulative(x, _one_axis(x, axis, "cumulative_prod"), dtype, None, include_initial,
                       "cumulative_prod", reduce.cumprod, 1)
