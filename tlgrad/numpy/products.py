"""Products summed over axes: matmul, dot, tensordot, outer and their kin.

The default order is left to right over the summed index; `order="fused"` has the same order with
a fused multiply-add at each step.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core.trace import Value
from tlgrad.errors import ShapeError
from tlgrad.numpy.arrays import as_array, refuse_out
from tlgrad.numpy.shaping import moveaxis, ravel, reshape, stack
from tlgrad.ops import arithmetic as ar
from tlgrad.ops.contract import contract_axes
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.promote import as_dtype_value, broadcast_shapes, broadcast_to, common_dtype

__all__ = ["matmul", "dot", "vdot", "vecdot", "matvec", "vecmat", "inner", "outer", "tensordot", "kron",
           "cross"]


def _pair(x, y, name):
    """Two values of one strong dtype."""
    values = [as_array(v, name) for v in (x, y)]
    dtype, _ = common_dtype(values)
    return [as_dtype_value(v, dtype) for v in values]


def matmul(x, y, out=None, *, order: str | None = None) -> Value:
    """Matrix product (..., n, k) @ (..., k, m) -> (..., n, m); 1-d operands are vectors.

    Leading axes broadcast.  Each entry is a sum over k in `order`; 16-bit floats add up in binary32.
    Raises ShapeError naming both shapes.

    >>> matmul(tl.tensor([[1.0, 2.0], [3.0, 4.0]]), tl.tensor([1.0, 1.0]))
    tensor([3., 7.], float64, shape (2,), cpu)
    """
    refuse_out(out, "matmul")
    x, y = _pair(x, y, "matmul")
    if not x.ndim or not y.ndim:
        raise ShapeError(f"matmul takes arrays of one axis or more, got shapes {x.shape} and {y.shape}; "
                         "use * for scalars")
    inner_y = y.ndim - 2 if y.ndim > 1 else 0
    if x.shape[-1] != y.shape[inner_y]:
        raise ShapeError(f"matmul: the last axis of the left operand has size {x.shape[-1]}, axis {inner_y} "
                         f"of the right one has size {y.shape[inner_y]} (shapes {x.shape} and {y.shape})")
    contract = ((x.ndim - 1,), (inner_y,))
    if x.ndim == 1 or y.ndim <= 2:
        return contract_axes(x, y, contract, order=order)
    lead = broadcast_shapes(x.shape[:-2], y.shape[:-2], what="matmul")
    x, y = (v if v.shape[:-2] == lead else broadcast_to(v, (*lead, *v.shape[-2:])) for v in (x, y))
    batch = tuple(range(len(lead)))
    return contract_axes(x, y, ((x.ndim - 1,), (y.ndim - 2,)), (batch, batch), order=order)


def dot(x, y, out=None, *, order: str | None = None) -> Value:
    """NumPy's dot: last axis of x with the second-to-last of y (its only one if 1-d)."""
    refuse_out(out, "dot")
    x, y = _pair(x, y, "dot")
    if not x.ndim or not y.ndim:
        return ar.mul(x, y)
    axis = y.ndim - 2 if y.ndim > 1 else 0
    if x.shape[-1] != y.shape[axis]:
        raise ShapeError(f"dot: the last axis of x has size {x.shape[-1]}, axis {axis} of y has size "
                         f"{y.shape[axis]} (shapes {x.shape} and {y.shape})")
    return contract_axes(x, y, ((x.ndim - 1,), (axis,)), order=order)


def vdot(x, y, *, order: str | None = None) -> Value:
    """Sum of conj(x) * y over all entries."""
    return vecdot(ravel(x), ravel(y), order=order)


def vecdot(x, y, *, axis: int = -1, order: str | None = None) -> Value:
    """Sum of conj(x) * y along `axis`; the other axes broadcast.

    >>> vecdot(tl.tensor([1.0, 2.0]), tl.tensor([3.0, 4.0]))
    tensor(11.0, float64, shape (), cpu)
    """
    x, y = _pair(x, y, "vecdot")
    x, y = (moveaxis(v, axis, -1) for v in (x, y))
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"vecdot: axis {axis} has sizes {x.shape[-1]} and {y.shape[-1]} "
                         f"(shapes {x.shape} and {y.shape})")
    shape = broadcast_shapes(x.shape, y.shape, what="vecdot")
    x, y = (broadcast_to(v, shape) for v in (x, y))
    batch = tuple(range(len(shape) - 1))
    x = ar.conj(x) if x.dtype.kind == "c" else x
    return contract_axes(x, y, ((len(shape) - 1,),) * 2, (batch, batch), order=order)


def matvec(x, y, *, order: str | None = None) -> Value:
    """Matrices (..., n, k) times vectors (..., k)."""
    y = as_array(y, "matvec")
    z = matmul(x, reshape(y, (*y.shape, 1)), order=order)
    return reshape(z, z.shape[:-1])


def vecmat(x, y, *, order: str | None = None) -> Value:
    """Vectors (..., k), conjugated, times matrices (..., k, n)."""
    x = as_array(x, "vecmat")
    x = ar.conj(x) if x.dtype.kind == "c" else x
    z = matmul(reshape(x, (*x.shape[:-1], 1, x.shape[-1])), y, order=order)
    return reshape(z, (*z.shape[:-2], z.shape[-1]))


def inner(x, y, *, order: str | None = None) -> Value:
    """Sum over the last axes of both."""
    x, y = _pair(x, y, "inner")
    if not x.ndim or not y.ndim:
        return ar.mul(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"inner: the last axes have sizes {x.shape[-1]} and {y.shape[-1]} "
                         f"(shapes {x.shape} and {y.shape})")
    return contract_axes(x, y, ((x.ndim - 1,), (y.ndim - 1,)), order=order)


def outer(x, y, out=None) -> Value:
    """All products of the entries of x (rows) and y (columns).

    >>> outer(tl.tensor([1, 2]), tl.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]], int64, shape (2, 2), cpu)
    """
    refuse_out(out, "outer")
    x, y = ravel(x), ravel(y)
    return ar.mul(reshape(x, (x.size, 1)), reshape(y, (1, y.size)))


def tensordot(x, y, axes=2, *, order: str | None = None) -> Value:
    """Sum over several axes of both, row-major in the order in which `axes` names them.

    axes: a number n (the last n of x with the first n of y), or a pair of axis lists.
    Raises ShapeError when paired axes differ in size.
    """
    x, y = _pair(x, y, "tensordot")
    if isinstance(axes, (int, np.integer)):
        n = int(axes)
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot: {n} axes of shapes {x.shape} and {y.shape}")
        pair = tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    else:
        groups = [g if isinstance(g, (tuple, list)) else (g,) for g in axes]
        pair = tuple(tuple(normalize_axis(a, v.ndim, "tensordot") for a in g)
                     for g, v in zip(groups, (x, y), strict=True))
    if len(pair[0]) != len(pair[1]):
        raise ShapeError(f"tensordot: {len(pair[0])} axes of x with {len(pair[1])} of y")
    for a, b in zip(*pair):
        if x.shape[a] != y.shape[b]:
            raise ShapeError(f"tensordot: axis {a} of shape {x.shape} has size {x.shape[a]}, axis {b} of shape "
                             f"{y.shape} has size {y.shape[b]}")
    return contract_axes(x, y, pair, order=order)


def kron(x, y) -> Value:
    """Kronecker product: every entry of x times the whole of y."""
    x, y = _pair(x, y, "kron")
    n = max(x.ndim, y.ndim)
    a, b = ((1,) * (n - v.ndim) + v.shape for v in (x, y))
    left = reshape(x, tuple(m for s in a for m in (s, 1)))
    right = reshape(y, tuple(m for s in b for m in (1, s)))
    return reshape(ar.mul(left, right), tuple(p * q for p, q in zip(a, b)))


def cross(x, y, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Value:
    """Vector product of 3-vectors along an axis; 2-vectors are taken in the plane (their z-part is given).

    >>> cross(tl.tensor([1, 0, 0]), tl.tensor([0, 1, 0]))
    tensor([0, 0, 1], int64, shape (3,), cpu)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _pair(x, y, "cross")
    x, y = moveaxis(x, axisa, 0), moveaxis(y, axisb, 0)
    if x.shape[0] not in (2, 3) or y.shape[0] not in (2, 3):
        raise ShapeError(f"cross takes vectors of 2 or 3 entries, got {x.shape[0]} and {y.shape[0]}")
    a, b = ([v[k] for k in range(v.shape[0])] for v in (x, y))
    z = ar.sub(ar.mul(a[0], b[1]), ar.mul(a[1], b[0]))
    if len(a) == len(b) == 2:
        return z
    a, b = (v if len(v) == 3 else [*v, ar.mul(v[0], 0)] for v in (a, b))
    parts = [ar.sub(ar.mul(a[1], b[2]), ar.mul(a[2], b[1])), ar.sub(ar.mul(a[2], b[0]), ar.mul(a[0], b[2])), z]
    return moveaxis(stack(parts), 0, axisc)
