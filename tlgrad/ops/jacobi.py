"""Eigenvalues and singular values by Jacobi rotations, for formats that LAPACK lacks: real matrices.

Rotations run over the pairs (0, 1), (0, 2), ... in order, sweep after sweep, until no entry is large
enough to turn.  Source: Golub and Van Loan, "Matrix computations", sections 8.5 and 8.6.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.errors import SingularMatrixError
from tlgrad.ops import meaning
from tlgrad.ops.dense import constant, stacked

_add, _sub, _mul, _div, _sqrt, _abs = map(meaning.implementation, ("add", "sub", "mul", "div", "sqrt", "abs"))
_lt, _eq = map(meaning.implementation, ("lt", "eq"))
#: sweeps after which a matrix counts as not converging (entries that are not finite)
SWEEPS = 80


def _scaled(x, factor):
    return _mul(x, np.broadcast_to(factor, x.shape))


def _dot(x, y):
    total = constant(0, x)
    for p in _mul(x, y):
        total = _add(total, p)
    return total


def _rotation(tau, one):
    """(c, s) with tan = sign(tau) / (|tau| + sqrt(tau^2 + 1))."""
    size = _add(_abs(tau), _sqrt(_add(_mul(tau, tau), one)))
    t = _div(one, size)
    t = _sub(constant(0, one), t) if _lt(tau, constant(0, one)) else t
    c = _div(one, _sqrt(_add(_mul(t, t), one)))
    return c, _mul(t, c)


def _turn(rows, p, q, c, s):
    """Rows p and q turned: p' = c p - s q, q' = s p + c q."""
    x, y = np.array(rows[p]), np.array(rows[q])
    rows[p] = _sub(_scaled(x, c), _scaled(y, s))
    rows[q] = _add(_scaled(x, s), _scaled(y, c))


def _limit(a):
    return constant(2.0**-dtypes.of_storage(a.dtype).format.F, a)


def identity(n, like):
    """The n x n identity matrix in the format of an array."""
    v = np.broadcast_to(constant(0, like), (n, n)).copy()
    v[np.arange(n), np.arange(n)] = constant(1, like)
    return v


def _order(values, descending=False):
    """Places of the entries in order (a stable insertion sort)."""
    order: list[int] = []
    for k in range(len(values)):
        place = len(order)
        while place and (_lt(values[order[place - 1]], values[k]) if descending
                         else _lt(values[k], values[order[place - 1]])):
            place -= 1
        order.insert(place, k)
    return order


@stacked
def eigh(a):
    """(eigenvalues, ascending; eigenvectors as columns) of a symmetric matrix."""
    a, n = np.array(a), a.shape[0]
    one, two, eps = constant(1, a), constant(2, a), _limit(a)
    v = identity(n, a)                                  # rows are the vectors
    for _ in range(SWEEPS):
        turned = False
        for p in range(n):
            for q in range(p + 1, n):
                size = _add(_abs(a[p, p]), _abs(a[q, q]))
                if not _lt(_mul(eps, size), _abs(a[p, q])):
                    continue
                turned = True
                tau = _div(_sub(a[q, q], a[p, p]), _mul(two, a[p, q]))
                c, s = _rotation(tau, one)
                _turn(a, p, q, c, s)
                _turn(a.T, p, q, c, s)
                _turn(v, p, q, c, s)
        if not turned:
            order = _order(a[np.arange(n), np.arange(n)])
            return a[order, order], v[order].T.copy()
    raise SingularMatrixError("eigh: the matrix has entries that are not finite, or Jacobi did not converge")


@stacked
def svd(a):
    """(u, s, vh) with a = u diag(s) vh, s descending, min(m, n) of them; one-sided rotations of columns."""
    if a.shape[0] < a.shape[1]:
        u, s, vh = svd(a.T.copy())
        return vh.T.copy(), s, u.T.copy()
    columns, n = a.T.copy(), a.shape[1]
    one, two, eps, zero = constant(1, a), constant(2, a), _limit(a), constant(0, a)
    v = identity(n, a)
    for _ in range(SWEEPS):
        turned = False
        for p in range(n):
            for q in range(p + 1, n):
                alpha, beta, gamma = (_dot(columns[i], columns[j]) for i, j in ((p, p), (q, q), (p, q)))
                if not _lt(_mul(eps, _sqrt(_mul(alpha, beta))), _abs(gamma)):
                    continue
                turned = True
                c, s = _rotation(_div(_sub(beta, alpha), _mul(two, gamma)), one)
                _turn(columns, p, q, c, s)
                _turn(v, p, q, c, s)
        if not turned:
            break
    else:
        raise SingularMatrixError("svd: the matrix has entries that are not finite, or Jacobi did not converge")
    sizes = np.stack([_sqrt(_dot(x, x)) for x in columns])
    order = _order(sizes, descending=True)
    u = [columns[k] if _eq(sizes[k], zero) else _div(columns[k], np.broadcast_to(sizes[k], columns[k].shape))
         for k in order]
    return np.stack(u).T.copy(), sizes[order], v[order]
