"""Differences along axes, and traces."""
from __future__ import annotations

from tlgrad.core.trace import Value
from tlgrad.numpy.arrays import as_array
from tlgrad.numpy.reductions import sum
from tlgrad.numpy.selection import diagonal
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops.layout import normalize_axis, reshape
from tlgrad.ops.promote import as_dtype_value, broadcast_to
from tlgrad.ops.shape import concatenate, slice_axis

__all__ = ["diff", "ediff1d", "trace"]


def diff(x, n: int = 1, axis: int = -1, prepend=None, append=None) -> Value:
    """Differences of neighbours along `axis`, taken n times; bools give exclusive or.

    >>> diff(tl.tensor([1, 4, 9]))
    tensor([3, 5], int64, shape (2,), cpu)
    """
    x = as_array(x, "diff")
    axis = normalize_axis(axis, x.ndim, "diff")
    ends = []
    for end in (prepend, append):
        if end is not None:
            end = as_dtype_value(as_array(end, "diff"), x.dtype)
            shape = tuple(1 if k == axis else m for k, m in enumerate(x.shape))
            end = broadcast_to(end, shape) if end.ndim == 0 else end
        ends.append(end)
    parts = [v for v in (ends[0], x, ends[1]) if v is not None]
    x = concatenate.bind(*parts, axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        m = x.shape[axis]
        if m == 0:
            break
        high, low = slice_axis(x, axis, 1, m), slice_axis(x, axis, 0, m - 1)
        x = lo.xor(high, low) if x.dtype.kind == "b" else ar.sub(high, low)
    return x


def ediff1d(x, to_end=None, to_begin=None) -> Value:
    """Differences of neighbours of the flattened array."""
    d = diff(_flat(as_array(x, "ediff1d")))
    parts = [_flat(as_dtype_value(as_array(v, "ediff1d"), d.dtype)) if v is not None else None
             for v in (to_begin, to_end)]
    return concatenate.bind(*[v for v in (parts[0], d, parts[1]) if v is not None], axis=0)


def _flat(x):
    return reshape.bind(x, shape=(x.size,))


def trace(x, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out=None) -> Value:
    """Sum of the diagonal of the matrices in `axis1`, `axis2`.

    >>> trace(tl.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.0, float64, shape (), cpu)
    """
    return sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)
