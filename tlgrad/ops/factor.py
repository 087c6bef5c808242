"""Factorisations and solving, with their derivative rules: LAPACK for hardware formats, `ops.dense`
for the others.  Outside the one-result rule where LAPACK computes.

    triangular_solve, solve     linear in the right side; transpose to themselves
    cholesky, lu, qr            derivatives by solving with the factors

Derivatives: Giles, "Collected matrix derivative results", 2008; Walter and Lehmann, "Algorithmic
differentiation of linear algebra functions", 2010 (QR).
"""
from __future__ import annotations

from functools import partial

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.primitive import Primitive
from tlgrad.errors import ShapeError
from tlgrad.ops import dense
from tlgrad.ops.arithmetic import add, complex_, imag, mul, neg, real, sub
from tlgrad.ops.define import add_tangents, documented
from tlgrad.ops.index import mapped, take_along_axis
from tlgrad.ops.layout import broadcast
from tlgrad.ops.logic import eq, select
from tlgrad.ops.matrices import (adjoint, first_singular, floating, lower_part, masked, matmul,
                                 places, singular, square, swap, upper_part)
from tlgrad.ops.shape import concatenate, slice_axis


def library(name: str, doc: str, names: str, **rules) -> Primitive:
    """A primitive on matrices in the last two axes that a library computes; lanes become a leading axis."""
    def batch(args, axes, size, **params):
        out = prim.bind(*[mapped(x, k, size) for x, k in zip(args, axes)], **params)
        return out, [0] * len(out) if prim.multiple else 0

    prim = Primitive(name, lower=("library", name), batch=batch, **rules)
    return documented(prim, doc, names)


# ---- triangular_solve ----

def _triangular_impl(a, b, *, lower, unit, transposed):
    if transposed:
        a, lower = np.swapaxes(a, -1, -2), not lower
    if a.dtype.kind == "V":
        return dense.solve_triangular(a, b, lower=lower, unit=unit)
    from scipy.linalg import solve_triangular
    diagonal = np.diagonal(a, axis1=-2, axis2=-1)
    if not unit and (diagonal == 0).any():
        which = first_singular(a, lambda m: (np.diagonal(m) == 0).any())
        raise singular("triangular_solve", which, "has a zero on its diagonal")
    out = np.empty(b.shape, b.dtype)
    for place in np.ndindex(a.shape[:-2]):
        out[place] = solve_triangular(a[place], b[place], lower=lower, unit_diagonal=unit, check_finite=False)
    return out


def _two_matrices(a, b, name):
    square(a, name)
    if b.dtype is not a.dtype or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(f"{name}: a is {a}, so b must be {a.dtype}[..., {a.shape[-1]}, k], got {b}")
    return make_aval(b.shape, b.dtype)


def _triangle(a, lower, unit):
    return lower_part(a, unit) if lower else upper_part(a, unit)


def _triangular_jvp(primals, tangents, *, lower, unit, transposed):
    a, b = primals
    params = dict(lower=lower, unit=unit, transposed=transposed)
    x = triangular_solve.bind(a, b, **params)
    a_dot, right = tangents
    if type(a_dot) is not Zero:
        da = _triangle(a_dot, lower, unit)
        right = add_tangents(right, neg(matmul(swap(da) if transposed else da, x)))
    return x, triangular_solve.bind(a, right, **params)


def _triangular_transpose(ct, a, b, *, lower, unit, transposed):
    return [None, triangular_solve.bind(a, ct, lower=lower, unit=unit, transposed=not transposed)]


triangular_solve = library(
    "triangular_solve", "x with a x = b (a^T x = b if transposed), a triangular (half of it is read).", "a b",
    impl=_triangular_impl, jvp=_triangular_jvp, transpose=_triangular_transpose,
    abstract=lambda a, b, **_: _two_matrices(a, b, "triangular_solve"))


def lower_inverse(l, x):
    """l^-1 x for a lower triangular l."""
    return triangular_solve.bind(l, x, lower=True, unit=False, transposed=False)


def divided_right(x, u):
    """x u^-1 for an upper triangular u."""
    return swap(triangular_solve.bind(u, swap(x), lower=False, unit=False, transposed=True))


# ---- solve ----

def _solve_impl(a, b):
    if a.dtype.kind == "V":
        return dense.solve(a, b)
    try:
        with np.errstate(all="ignore"):
            return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise singular("solve", first_singular(a, _has_no_inverse)) from None


def _has_no_inverse(matrix):
    try:
        np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return True
    return False


def _solve_jvp(primals, tangents):
    a, b = primals
    x = solve.bind(a, b)
    a_dot, right = tangents
    if type(a_dot) is not Zero:
        right = add_tangents(right, neg(matmul(a_dot, x)))
    return x, solve.bind(a, right)


solve = library(
    "solve", "x with a x = b.", "a b",
    impl=_solve_impl, abstract=lambda a, b: _two_matrices(a, b, "solve"), jvp=_solve_jvp,
    transpose=lambda ct, a, b: [None, solve.bind(swap(a), ct)])


# ---- cholesky ----

def _cholesky_impl(a):
    if a.dtype.kind == "V":
        return dense.cholesky(a)
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise singular("cholesky", first_singular(a, _is_not_positive), "is not positive definite") from None


def _is_not_positive(matrix):
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return True
    return False


def _cholesky_jvp(primals, tangents):
    """l' = l phi(l^-1 a' l^-H), phi: lower triangle with half the diagonal."""
    l = cholesky.bind(*primals)
    inner = lower_inverse(l, adjoint(lower_inverse(l, tangents[0])))
    row, column = places(inner.shape)
    half = select(eq(row, column), mul(inner, 0.5), lower_part(inner, True))
    return l, matmul(l, half)


cholesky = library(
    "cholesky", "Lower triangular l with a = l l^H, for a Hermitian positive definite a.", "a",
    impl=_cholesky_impl, abstract=lambda a: square(a, "cholesky").strong(),
    jvp=_cholesky_jvp)


# ---- lu ----

def lu_impl(a):
    """[l, u, perm] of a stack of arrays."""
    if a.dtype.kind == "V":
        return list(dense.lu(a))
    from scipy.linalg import lu
    k = min(a.shape[-2:])
    perm = np.empty(a.shape[:-1], np.int64)
    l, u = (np.empty((*a.shape[:-2], *s), a.dtype) for s in ((a.shape[-2], k), (k, a.shape[-1])))
    for place in np.ndindex(a.shape[:-2]):
        p, l[place], u[place] = lu(a[place], p_indices=True, check_finite=False)
        perm[place] = np.argsort(p)
    return [l, u, perm]


def _lu_abstract(a):
    floating(a, "lu")
    *lead, m, n = a.shape
    k = min(m, n)
    return [make_aval((*lead, m, k), a.dtype), make_aval((*lead, k, n), a.dtype),
            make_aval((*lead, m), dtypes.int64)]


def _lu_jvp(primals, tangents):
    """With x = l^-1 (p a') u^-1:  l' = l tril(x, -1),  u' = triu(x) u, for the leading square part.

    What a tall or wide matrix has beyond it follows from l2 u = a2 and l u2 = a2.
    """
    (a,), (a_dot,) = primals, tangents
    l, u, perm = lu.bind(a)
    a_dot, k, last = permuted(a_dot, perm), min(a.shape[-2:]), a.ndim - 1
    l1, u1 = _part(l, last - 1, 0, k), _part(u, last, 0, k)
    solve_l = partial(triangular_solve.bind, l1, lower=True, unit=True, transposed=False)
    x = divided_right(solve_l(_part(_part(a_dot, last - 1, 0, k), last, 0, k)), u1)
    l_dot, u_dot = matmul(l1, lower_part(x, True)), matmul(upper_part(x), u1)
    if l.shape[-2] > k:
        l2, a2 = _part(l, last - 1, k, None), _part(a_dot, last - 1, k, None)
        l_dot = concatenate.bind(l_dot, divided_right(sub(a2, matmul(l2, u_dot)), u1), axis=last - 1)
    if u.shape[-1] > k:
        u2, a2 = _part(u, last, k, None), _part(a_dot, last, k, None)
        u_dot = concatenate.bind(u_dot, solve_l(sub(a2, matmul(l_dot, u2))), axis=last)
    return [l, u, perm], [l_dot, u_dot, Zero(perm.aval)]


def _part(x, axis, start, limit):
    limit = x.shape[axis] if limit is None else limit
    return x if (start, limit) == (0, x.shape[axis]) else slice_axis(x, axis, start, limit)


def permuted(x, perm):
    """Rows of x in the order `perm`."""
    wide = broadcast.bind(perm, shape=x.shape, axes=tuple(range(perm.ndim)))
    return take_along_axis(x, wide, x.ndim - 2)


lu = library(
    "lu", "[l, u, perm] with a[perm] = l u: unit lower, upper triangular, partial pivoting.", "a",
    impl=lu_impl, abstract=_lu_abstract, jvp=_lu_jvp, multiple=True)


# ---- qr ----

def _qr_impl(a):
    return list(dense.qr(a)) if a.dtype.kind == "V" else list(np.linalg.qr(a))


def _qr_abstract(a):
    floating(a, "qr")
    *lead, m, n = a.shape
    if m < n:
        raise ShapeError(f"qr takes tall matrices, got {a}")
    return [make_aval(a.shape, a.dtype), make_aval((*lead, n, n), a.dtype)]


def _qr_jvp(primals, tangents):
    q, r = qr.bind(*primals)
    return [q, r], qr_tangents(q, r, tangents[0])


def qr_tangents(q, r, a_dot):
    """[q', r'] of the thin factors."""
    scaled = divided_right(a_dot, r)
    inner = matmul(adjoint(q), scaled)
    below = lower_part(inner, True)
    turn = sub(below, adjoint(below))
    if inner.dtype.kind == "c":
        row, column = places(inner.shape)
        turn = add(turn, masked(complex_(mul(real(inner), 0), imag(inner)), eq(row, column)))
    rest = sub(inner, turn)
    return [add(matmul(q, sub(turn, inner)), scaled), matmul(rest, r)]


qr = library(
    "qr", "[q, r] with a = q r, for tall a: q has orthonormal columns, r is upper triangular.", "a",
    impl=_qr_impl, abstract=_qr_abstract, jvp=_qr_jvp, multiple=True)
