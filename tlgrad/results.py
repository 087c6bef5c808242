"""What the factorisations give: named tuples, with the names of the array API standard."""
from __future__ import annotations

from typing import NamedTuple

from tlgrad.core.trace import Value


class EighResult(NamedTuple):
    """Ascending eigenvalues (..., n); orthonormal eigenvectors (..., n, n), as columns."""
    eigenvalues: Value
    eigenvectors: Value


class EigResult(NamedTuple):
    """Complex eigenvalues (..., n); eigenvectors (..., n, n), as columns of norm 1."""
    eigenvalues: Value
    eigenvectors: Value


class QRResult(NamedTuple):
    """Q with orthonormal columns, R upper triangular."""
    Q: Value
    R: Value


class SlogdetResult(NamedTuple):
    """Sign (phase) and log of the modulus of a determinant."""
    sign: Value
    logabsdet: Value


class SVDResult(NamedTuple):
    """U, descending singular values S, and Vh: a = U diag(S) Vh."""
    U: Value
    S: Value
    Vh: Value


class LUResult(NamedTuple):
    """Row order `perm` (..., m), unit lower L, upper U: a[perm] = L U."""
    perm: Value
    L: Value
    U: Value
