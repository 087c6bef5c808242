"""Polynomials by their roots and by fitting, and what else has no better place under NumPy's names."""
from __future__ import annotations

import builtins

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.source import user_source
from tlgrad.core.trace import Tracer, Value
from tlgrad.errors import ArgumentError, ConcretizationError, ShapeError
from tlgrad.numpy.arrays import as_array, concrete, one_dtype
from tlgrad.numpy.creation import arange, linspace, zeros
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.polynomials import polymul, vander
from tlgrad.numpy.products import matmul
from tlgrad.numpy.reductions import sum
from tlgrad.numpy.selection import diag_indices, tril_indices, triu_indices
from tlgrad.numpy.shaping import concatenate, expand_dims, moveaxis, reshape, stack
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import matrixfunctions, spectral
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.promote import broadcast_to

__all__ = ["polyfit", "polydiv", "roots", "poly", "apply_along_axis", "apply_over_axes", "ix_",
           "diag_indices_from", "tril_indices_from", "triu_indices_from", "fromfunction", "isscalar",
           "real_if_close", "asanyarray", "r_", "c_", "s_", "index_exp", "mgrid", "ogrid"]


def polyfit(x, y, deg: int, rcond=None, full: bool = False, w=None, cov: bool = False) -> Value:
    """Coefficients, highest power first, of the polynomial of degree `deg` closest to (x, y).

    Least squares by the pseudo-inverse of the scaled Vandermonde matrix; `w` weighs the residuals.
    Differentiable in x, y and w.

    >>> [round(c, 12) for c in polyfit(tl.tensor([0.0, 1.0, 2.0]), tl.tensor([1.0, 3.0, 5.0]), 1).tolist()]
    [2.0, 1.0]
    """
    if full or cov:
        raise ArgumentError("polyfit: full= and cov= are not available; use tl.linalg.lstsq on tl.numpy.vander")
    x, y = one_dtype([as_inexact(v, "polyfit") for v in (x, y)])
    if x.ndim != 1 or y.shape[:1] != x.shape:
        raise ShapeError(f"polyfit: x is a vector and y has as many rows, got shapes {x.shape} and {y.shape}")
    matrix, right = vander(x, deg + 1), y
    if w is not None:
        w = convert(as_array(w, "polyfit"), x.dtype)
        matrix = ar.mul(matrix, reshape(w, (-1, 1)))
        right = ar.mul(y, reshape(w, (-1,) + (1,) * (y.ndim - 1)))
    scale = ar.sqrt(sum(ar.mul(matrix, matrix), 0))
    eps = float(np.finfo(x.dtype.storage).eps)
    limit = x.shape[0] * eps if rcond is None else float(rcond)
    c = matmul(matrixfunctions.pinv.bind(ar.div(matrix, scale), rcond=limit), right)
    return ar.div(c, reshape(scale, (-1,) + (1,) * (y.ndim - 1)))


def polydiv(u, v) -> tuple[Value, Value]:
    """(quotient, remainder) of two polynomials, highest power first."""
    u, v = one_dtype([as_inexact(p, "polydiv") for p in (u, v)])
    m, n = u.shape[0], v.shape[0]
    if m < n:
        return zeros((1,), u.dtype), u
    quotient = []
    for k in range(m - n + 1):
        d = ar.div(u[k], v[0])
        quotient.append(d)
        u = u.at[k:k + n].add(ar.neg(ar.mul(d, v)))
    return stack(quotient), u[m - n + 1:] if n > 1 else zeros((1,), u.dtype)


def roots(p) -> Value:
    """The complex roots of a polynomial, highest power first: eigenvalues of its companion matrix.

    Leading and trailing zeros must be known; differentiable where the roots are distinct.
    """
    p = as_inexact(p, "roots")
    known = np.flatnonzero(np.asarray(p)) if not hasattr(p, "trace") else np.arange(p.shape[0])
    if not known.size:
        return zeros((0,), dtypes.float64)
    trailing = p.shape[0] - 1 - int(known[-1])
    p = p[int(known[0]):int(known[-1]) + 1]
    n = p.shape[0] - 1
    found = zeros((0,), dtypes.complex_dtype(p.dtype))
    if n > 0:
        shift = as_array(np.eye(n - 1, n), "roots") if n > 1 else zeros((0, n))
        row = reshape(ar.neg(ar.div(p[1:], p[0])), (1, n))
        found = spectral.eigvals.bind(concatenate([row, convert(shift, p.dtype)], 0))
    return concatenate([found, zeros((trailing,), found.dtype)]) if trailing else found


def poly(seq_of_zeros) -> Value:
    """Coefficients of the polynomial with the given roots (or of the characteristic one of a matrix)."""
    z = as_inexact(seq_of_zeros, "poly")
    if z.ndim == 2:
        z = spectral.eigvals.bind(z)
    total = convert(as_array(np.ones(1), "poly"), z.dtype)
    for k in range(z.shape[0]):
        total = polymul(total, concatenate([convert(as_array(np.ones(1), "poly"), z.dtype), ar.neg(z[k:k + 1])]))
    return total


def apply_along_axis(func1d, axis: int, x, *args, **kwargs) -> Value:
    """`func1d` of every vector along an axis; its result takes the place of the axis (see also tl.vmap)."""
    x = as_array(x, "apply_along_axis")
    axis = normalize_axis(axis, x.ndim, "apply_along_axis")
    moved = moveaxis(x, axis, -1)
    lead = moved.shape[:-1]
    flat = reshape(moved, (-1, moved.shape[-1]))
    rows = stack([as_array(func1d(flat[k], *args, **kwargs), "apply_along_axis")
                  for k in builtins.range(flat.shape[0])])
    out = reshape(rows, (*lead, *rows.shape[1:]))
    n = rows.ndim - 1
    return moveaxis(out, tuple(builtins.range(len(lead), len(lead) + n)), tuple(builtins.range(axis, axis + n)))


def apply_over_axes(func, x, axes) -> Value:
    """`func(x, axis)` applied along several axes in turn, the axes kept."""
    x = as_array(x, "apply_over_axes")
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        y = func(x, axis)
        if y.ndim != x.ndim:
            shape = list(y.shape)
            shape.insert(normalize_axis(axis, x.ndim, "apply_over_axes"), 1)
            y = reshape(y, tuple(shape))
        x = y
    return x


def ix_(*arrays) -> tuple[Value, ...]:
    """Index arrays that select the grid of all combinations of 1-d index arrays."""
    out = []
    for k, a in enumerate(arrays):
        a = as_array(a, "ix_")
        if a.dtype.kind == "b":
            a = as_array(np.flatnonzero(concrete(a, "ix_", "a mask")), "ix_")
        out.append(reshape(a, tuple(a.size if i == k else 1 for i in builtins.range(len(arrays)))))
    return tuple(out)


def diag_indices_from(x) -> tuple[Value, ...]:
    """Index arrays of the main diagonal of x."""
    x = as_array(x, "diag_indices_from")
    return diag_indices(x.shape[0], x.ndim)


def tril_indices_from(x, k: int = 0) -> tuple[Value, ...]:
    """Index arrays of the lower triangle of x."""
    n, m = as_array(x, "tril_indices_from").shape
    return tril_indices(n, k, m)


def triu_indices_from(x, k: int = 0) -> tuple[Value, ...]:
    """Index arrays of the upper triangle of x."""
    n, m = as_array(x, "triu_indices_from").shape
    return triu_indices(n, k, m)


def fromfunction(function, shape, *, dtype=dtypes.float64, **kwargs) -> Value:
    """`function` of the coordinate arrays of a grid."""
    grid = np.indices(shape)
    return function(*[convert(as_array(g, "fromfunction"), dtype) for g in grid], **kwargs)


def isscalar(x) -> bool:
    """True for a Python or NumPy number (not for a tensor of shape (), as in NumPy)."""
    return np.isscalar(x)


def real_if_close(x, tol: float = 100) -> Value:
    """The real part, if all imaginary parts (which must be known) are within tol epsilons of 0."""
    x = as_array(x, "real_if_close")
    if x.dtype.kind != "c":
        return x
    limit = tol * np.finfo(x.dtype.storage).eps if tol > 1 else tol
    if isinstance(x, Tracer):
        raise ConcretizationError(
            "real_if_close: whether the result is real or complex depends on the numbers, but x is traced: "
            f"{x.aval} [{user_source()}]. Write tl.real(x) where you know that it is.")
    small = bool((np.abs(np.asarray(ar.imag(x))) < limit).all())
    return ar.real(x) if small else x


def asanyarray(x, dtype=None) -> Value:
    """`asarray`."""
    x = as_array(x, "asanyarray")
    return x if dtype is None else convert(x, dtype)


# ---- objects that are indexed ----

def _counted(item, name) -> Value:
    """A slice as numbers: start:stop:step, or start:stop:nj for n points."""
    if isinstance(item.step, complex):
        return linspace(item.start or 0, item.stop, int(abs(item.step)))
    if item.stop is None:
        raise ArgumentError(f"{name}: a slice needs an end")
    return arange(item.start or 0, item.stop, 1 if item.step is None else item.step)


class Rows:
    """``r_[a, b, 1:4]``: arrays, numbers and ranges joined along axis 0."""

    def __getitem__(self, items) -> Value:
        items = items if isinstance(items, tuple) else (items,)
        if any(isinstance(i, str) for i in items):
            raise ArgumentError("r_: directives in strings are not available; use tl.concatenate")
        values = [_counted(i, "r_") if isinstance(i, slice) else as_array(i, "r_") for i in items]
        return concatenate([v if v.ndim else reshape(v, (1,)) for v in values])


class Columns:
    """``c_[a, b]``: vectors as columns, and matrices, joined along the last axis."""

    def __getitem__(self, items) -> Value:
        items = items if isinstance(items, tuple) else (items,)
        values = [_counted(i, "c_") if isinstance(i, slice) else as_array(i, "c_") for i in items]
        return concatenate([v if v.ndim > 1 else reshape(v, (-1, 1)) for v in values], -1)


class Grid:
    """``mgrid[0:3, 0:2]``: coordinate arrays of a grid, stacked (or open, for ogrid)."""

    def __init__(self, sparse: bool):
        self.sparse = sparse

    def __getitem__(self, items):
        if isinstance(items, slice):
            return _counted(items, "mgrid")
        lines = [_counted(i, "mgrid") for i in items]
        n = len(lines)
        open_ = [expand_dims(v, tuple(a for a in builtins.range(n) if a != k)) for k, v in enumerate(lines)]
        if self.sparse:
            return open_
        shape = tuple(v.size for v in lines)
        return stack(one_dtype([broadcast_to(v, shape) for v in open_]))


class Index:
    """``s_[1:3, ...]``: the key itself."""

    def __getitem__(self, key):
        return key


r_, c_, s_, index_exp, mgrid, ogrid = Rows(), Columns(), Index(), Index(), Grid(False), Grid(True)
