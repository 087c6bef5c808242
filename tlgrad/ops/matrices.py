"""Matrices in the last two axes: helpers of the rules of linear algebra."""
from __future__ import annotations

import numpy as np

from tlgrad.core.source import user_source
from tlgrad.core import dtypes
from tlgrad.core.aval import Aval
from tlgrad.errors import ShapeError, SingularMatrixError, UnsupportedError
from tlgrad.ops.arithmetic import conj, sub
from tlgrad.ops.contract import contract_axes
from tlgrad.ops.define import mul
from tlgrad.ops.layout import broadcast, sum_axes, transpose, zero_of
from tlgrad.ops.logic import eq, ge, gt, le, lt, select
from tlgrad.ops.shape import iota


def square(x: Aval, name: str) -> Aval:
    """Check for (..., n, n) floats or complex numbers."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} takes square matrices (..., n, n), got {x}")
    return floating(x, name)


def floating(x: Aval, name: str) -> Aval:
    """Check for (..., m, n) floats or complex numbers."""
    if x.ndim < 2 or not dtypes.is_inexact(x.dtype):
        raise ShapeError(f"{name} takes matrices (..., m, n) of floats, got {x}")
    return x


def hardware(x: np.ndarray, name: str) -> np.ndarray:
    """Refuse formats that LAPACK lacks where there is no own algorithm."""
    if x.dtype.kind == "V":
        raise UnsupportedError(f"{name} is LAPACK's and has no {dtypes.of_storage(x.dtype)}; convert to float64, "
                               "or use cholesky, lu, qr or solve, which have own algorithms for every format")
    return x


def matmul(x, y):
    """x @ y over equal leading axes, in the order of the run."""
    n = x.ndim
    lead = tuple(range(n - 2))
    return contract_axes(x, y, ((n - 1,), (n - 2,)), (lead, lead))


def swap(x):
    """Last two axes exchanged."""
    n = x.ndim
    return transpose.bind(x, perm=(*range(n - 2), n - 1, n - 2))


def adjoint(x):
    """Conjugate transpose."""
    x = swap(x)
    return conj(x) if x.dtype.kind == "c" else x


def conjugate(x):
    """conj(x); x itself when it is real."""
    return conj(x) if x.dtype.kind == "c" else x


def places(shape):
    """Row and column number of every entry."""
    n = len(shape)
    return [iota.bind(shape=shape, axis=a, dtype=dtypes.int64) for a in (n - 2, n - 1)]


def masked(x, keep):
    """x with zeros where the mask does not hold."""
    return select(keep, x, zero_of(x.dtype))


def lower_part(x, strict: bool = False):
    """x on and below the diagonal (strict: below it), zeros elsewhere."""
    row, column = places(x.shape)
    return masked(x, gt(row, column) if strict else ge(row, column))


def upper_part(x, strict: bool = False):
    """x on and above the diagonal (strict: above it), zeros elsewhere."""
    row, column = places(x.shape)
    return masked(x, lt(row, column) if strict else le(row, column))


def diagonal_of(x):
    """The diagonals as vectors (..., n)."""
    row, column = places(x.shape)
    return sum_axes(masked(x, eq(row, column)), (x.ndim - 1,), "ordered")


def without_diagonal(x):
    """x with zeros on its diagonal."""
    row, column = places(x.shape)
    return masked(x, gt(mul(sub(row, column), sub(row, column)), 0))


def columns(v, shape):
    """v (..., n) repeated so that entry (i, j) is v_j."""
    n = len(shape)
    return broadcast.bind(v, shape=shape, axes=(*range(n - 2), n - 1))


def rows(v, shape):
    """v (..., n) repeated so that entry (i, j) is v_i."""
    n = len(shape)
    return broadcast.bind(v, shape=shape, axes=tuple(range(n - 1)))


def first_singular(matrices: np.ndarray, fails) -> str:
    """Which matrix of a stack fails, for messages."""
    for place in np.ndindex(matrices.shape[:-2]):
        if fails(matrices[place]):
            return f"matrix {place} of the stack" if place else "the matrix"
    return "a matrix"


def singular(name: str, which: str, why: str = "is singular"):
    """The error for a matrix that has no inverse or factor."""
    return SingularMatrixError(f"{name}: {which} {why}. Use tl.linalg.lstsq or tl.linalg.pinv, or add a "
                               f"multiple of the identity [{user_source()}]")
