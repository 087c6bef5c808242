"""Vector norms."""
from __future__ import annotations

import math

from tlgrad.core.trace import Value
from tlgrad.errors import ShapeError
from tlgrad.numpy.arrays import axes_of, with_kept_axes
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.reductions import count_nonzero, max, min, sum
from tlgrad.numpy.shaping import squeeze
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import orders
from tlgrad.ops.convert import convert
from tlgrad.ops.norm import norm as norm_p

__all__ = ["vector_norm", "norm"]


def vector_norm(x, axis=None, keepdims: bool = False, ord=2, *, order: str | None = None) -> Value:
    """Norm of the entries along `axis` taken as one vector: (sum |x|^ord)^(1/ord), or the greatest |x|
    (ord inf), the least (-inf), the number of entries that are not 0 (ord 0).

    The Euclidean norm (ord 2) has derivative 0 at the origin, and no second derivative there (NaN).

    >>> vector_norm(tl.tensor([3.0, 4.0]))
    tensor(5.0, float64, shape (), cpu)
    """
    x = as_inexact(x, "norm")
    axes = axes_of(axis, x.ndim, "norm")
    if ord == 2:
        r = norm_p.bind(x, axes=axes, divisor=1.0, order=orders.check_order(order)) if axes else ar.abs_(x)
        return with_kept_axes(r, axes, keepdims)
    size = ar.abs_(x)
    if ord in (math.inf, -math.inf):
        start = 0.0 if x.size == 0 and ord > 0 else None
        return (max if ord > 0 else min)(size, axes, keepdims=keepdims, initial=start)
    if ord == 0:
        return convert(count_nonzero(x, axes, keepdims=keepdims), size.dtype)
    if ord == 1:
        return sum(size, axes, keepdims=keepdims, order=order)
    if isinstance(ord, str):
        raise ShapeError(f"norm: ord={ord!r} belongs to matrices; name two axes")
    total = sum(el.pow_(size, ord), axes, keepdims=keepdims, order=order)
    flat = lo.eq(total, 0)
    return lo.where(flat, 0.0 if ord > 0 else math.inf, el.pow_(lo.where(flat, 1.0, total), 1 / ord))


def norm(x, ord=None, axis=None, keepdims: bool = False, *, order: str | None = None) -> Value:
    """Norm of a vector (one axis, or all axes and no `ord`) or of a matrix (two axes).

    Matrices: "fro" (default), 1 and inf (greatest column and row sum), -1 and -inf; those made of singular
    values ("nuc", 2, -2) are in `tl.linalg.norm`.  The Euclidean norm has derivative 0 at the origin.

    >>> norm(tl.tensor([3.0, 4.0]))
    tensor(5.0, float64, shape (), cpu)
    """
    x = as_inexact(x, "norm")
    if ord is None or axis is None and x.ndim == 1 or axis is not None and len(axes_of(axis, x.ndim, "norm")) == 1:
        return vector_norm(x, axis, keepdims, 2 if ord is None else ord, order=order)
    axes = tuple(range(x.ndim)) if axis is None else tuple(axes_of(a, x.ndim, "norm")[0] for a in axis)
    if len(axes) != 2:
        raise ShapeError(f"norm: ord={ord!r} takes one axis or two, got shape {x.shape} and axis {axis}")
    if ord == "fro":
        return vector_norm(x, axes, keepdims, order=order)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ShapeError(f"norm: ord={ord!r} of a matrix is not known here; see tl.linalg.norm")
    summed, rest = axes if abs(ord) == 1 else axes[::-1]
    rows = sum(ar.abs_(x), summed, keepdims=True, order=order)
    out = (max if ord > 0 else min)(rows, rest, keepdims=True)
    return out if keepdims else squeeze(out, axes)
