"""Own ordered algorithms of dense linear algebra, for formats that LAPACK lacks.

Each entry is a sum of products in increasing index order, one rounding each, built of the
format's + - * / sqrt.  Matrices of shape (n, n), (m, n), real or complex; stacks are run one by one.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.tensor import convert_array
from tlgrad.ops import meaning
from tlgrad.ops.matrices import singular

_add, _sub, _mul, _div, _neg, _sqrt, _abs = map(
    meaning.implementation, ("add", "sub", "mul", "div", "neg", "sqrt", "abs"))
_lt, _eq, _conj, _real = map(meaning.implementation, ("lt", "eq", "conj", "real"))


def constant(value, like: np.ndarray) -> np.ndarray:
    """A number in the format of an array."""
    return convert_array(np.asarray(value, np.float64), dtypes.of_storage(like.dtype))


def stacked(f):
    """Run `f` on every matrix of stacks of equal leading shape."""
    def run(*arrays, **params):
        lead = arrays[0].shape[:-2]
        if not lead:
            return f(*arrays, **params)
        results = [f(*[a[place] for a in arrays], **params) for place in np.ndindex(lead)]
        if isinstance(results[0], tuple):
            return tuple(np.stack(r).reshape(*lead, *r[0].shape) for r in zip(*results))
        return np.stack(results).reshape(*lead, *results[0].shape)
    return run


@stacked
def solve_triangular(a, b, *, lower, unit, name="triangular_solve"):
    """x with a x = b by substitution: x_i = (b_i - a_i0 x_0 - a_i1 x_1 - ...) / a_ii."""
    n = a.shape[0]
    zero = constant(0, a)
    x = np.array(b)
    for i in range(n) if lower else range(n - 1, -1, -1):
        row = x[i]
        for j in range(i) if lower else range(n - 1, i, -1):
            row = _sub(row, _mul(np.broadcast_to(a[i, j], row.shape), x[j]))
        if not unit:
            if _eq(a[i, i], zero):
                raise singular(name, "the triangular matrix", f"has a zero at place {i} of its diagonal")
            row = _div(row, np.broadcast_to(a[i, i], row.shape))
        x[i] = row
    return x


@stacked
def cholesky(a):
    """Lower factor with a = l l^H, column by column."""
    n, zero = a.shape[0], constant(0, _real(a))
    l = np.zeros_like(a)
    for j in range(n):
        column = a[j:, j]
        for k in range(j):
            column = _sub(column, _mul(l[j:, k], np.broadcast_to(_conj(l[j, k]), column.shape)))
        if not _lt(zero, _real(column[0])):
            raise singular("cholesky", "the matrix", f"is not positive definite (pivot {j})")
        root = _sqrt(column[0])
        l[j, j] = root
        l[j + 1:, j] = _div(column[1:], np.broadcast_to(root, column[1:].shape))
    return l


def _largest(column):
    sizes = _abs(column)
    best = 0
    for i in range(1, len(sizes)):
        if _lt(sizes[best], sizes[i]):
            best = i
    return best


@stacked
def lu(a):
    """(l, u, perm) with a[perm] = l u, partial pivoting; the first of equal pivots wins."""
    a = np.array(a)
    m, n = a.shape
    k, zero = min(m, n), constant(0, a)
    perm = np.arange(m)
    for j in range(k):
        p = j + _largest(a[j:, j])
        a[[j, p]], perm[[j, p]] = a[[p, j]], perm[[p, j]]
        if _eq(a[j, j], zero):
            continue
        factors = _div(a[j + 1:, j], np.broadcast_to(a[j, j], a[j + 1:, j].shape))
        a[j + 1:, j] = factors
        block = a[j + 1:, j + 1:]
        products = _mul(np.broadcast_to(factors[:, None], block.shape), np.broadcast_to(a[j, j + 1:], block.shape))
        a[j + 1:, j + 1:] = _sub(block, products)
    row, column = np.indices((m, n))
    lower = np.where(row > column, a, zero)[:, :k]
    lower[np.arange(k), np.arange(k)] = constant(1, a)
    return lower, np.where(row <= column, a, zero)[:k], perm.astype(np.int64)


@stacked
def qr(a):
    """(q, r) with a = q r, q (m, k), r (k, n), k = min(m, n), by Householder reflections."""
    m, n = a.shape
    k, zero, two = min(m, n), constant(0, a), constant(2, a)
    r, vectors = np.array(a), []
    for j in range(k):
        v = np.array(r[j:, j])
        v[0] = _add(v[0], _toward(v[0], _sqrt(_dot(v, v))))
        square = _dot(v, v)
        vectors.append((v, square))
        if not _eq(square, zero):
            r[j:, j:] = _reflect(r[j:, j:], v, _div(two, square))
    q = np.zeros((m, k), a.dtype)
    q[...] = zero
    q[np.arange(k), np.arange(k)] = constant(1, a)
    for j in range(k - 1, -1, -1):
        v, square = vectors[j]
        if not _eq(square, zero):
            q[j:, j:] = _reflect(q[j:, j:], v, _div(two, square))
    row, column = np.indices((m, n))
    return q, np.where(row <= column, r, zero)[:k]


def _toward(x, size):
    """A number of this size in the direction of x, which is that of 1 for 0."""
    real, zero = _real(x), constant(0, _real(x))
    if real.dtype == x.dtype:
        return _neg(size) if _lt(x, zero) else size
    if _eq(x, constant(0, x)):
        return size
    return _mul(size, _div(x, convert_array(_abs(x), dtypes.of_storage(x.dtype))))


def _dot(x, y):
    """The sum of conj(x) y."""
    total = constant(0, x)
    for p in _mul(_conj(x), y):
        total = _add(total, p)
    return total


def _reflect(block, v, factor):
    """block - v (factor * (v^H block))."""
    row = np.broadcast_to(constant(0, v), block.shape[1:])
    for i in range(len(v)):
        row = _add(row, _mul(np.broadcast_to(_conj(v[i]), row.shape), block[i]))
    row = _mul(row, np.broadcast_to(factor, row.shape))
    return _sub(block, _mul(np.broadcast_to(v[:, None], block.shape), np.broadcast_to(row, block.shape)))


def solve(a, b):
    """x with a x = b through `lu`."""
    l, u, perm = lu(a)
    moved = np.take_along_axis(b, perm[..., None], -2)
    y = solve_triangular(l, moved, lower=True, unit=True, name="solve")
    return solve_triangular(u, y, lower=False, unit=False, name="solve")


def parity(perm: np.ndarray) -> int:
    """+1 for an even permutation, -1 for an odd one."""
    sign, seen = 1, set()
    for start in range(len(perm)):
        place, length = start, 0
        while place not in seen:
            seen.add(place)
            place, length = int(perm[place]), length + 1
        sign = -sign if length and length % 2 == 0 else sign
    return sign


@stacked
def det(a):
    """Product of the pivots of `lu`, in order, with the sign of the permutation."""
    _, u, perm = lu(a)
    total = constant(parity(perm), a)
    for i in range(a.shape[0]):
        total = _mul(total, u[i, i])
    return np.asarray(total)
