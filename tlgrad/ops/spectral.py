"""Eigenvalues and singular values (LAPACK; own Jacobi rotations for software formats), with derivatives.

Where vectors belong to equal (or nearly equal) values they are not differentiable: asking for that
derivative is a DifferentiationError with the reason.  Values alone (eigvalsh, svdvals) always work.

Derivatives: Giles, "Collected matrix derivative results", 2008; Golub and Pereyra, "The
differentiation of pseudo-inverses and nonlinear least squares problems", 1973.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.tensor import as_value
from tlgrad.errors import DifferentiationError
from tlgrad.ops import jacobi, meaning
from tlgrad.ops.arithmetic import abs_, add, complex_, imag, mul, neg, real, sub
from tlgrad.ops.convert import convert
from tlgrad.ops.define import add_tangents
from tlgrad.ops.factor import library, solve
from tlgrad.ops.layout import broadcast
from tlgrad.ops.logic import eq, le, select
from tlgrad.ops.matrices import (adjoint, columns, diagonal_of, first_singular, floating, hardware,
                                 masked, matmul, places, rows, singular, square, without_diagonal)
from tlgrad.ops.promote import as_dtype_value
from tlgrad.ops.reduce import reduce_max


def _converged(name, f, a, *args, **kwargs):
    """Run a LAPACK driver; name the matrix when it does not converge."""
    hardware(a, name)
    try:
        return f(a, *args, **kwargs)
    except np.linalg.LinAlgError:
        which = first_singular(a, lambda m: not np.isfinite(m).all())
        raise singular(name, which, "has entries that are not finite, or LAPACK did not converge") from None


# ---- division by gaps, refused where one vanishes ----

_same, _quotient = meaning.implementation("eq"), meaning.implementation("div")


def _gap_impl(b, d, *, what):
    if _same(d, np.zeros_like(d)).any():
        raise DifferentiationError(
            f"{what} is not differentiable here: two of the values are equal (to rounding), so its vectors "
            "are not unique. Use the values alone (eigvalsh, svdvals), a function of the matrix (expm, solve, "
            "pinv), or perturb the matrix.")
    return _quotient(b, d)


def _gap_jvp(primals, tangents, *, what):
    b, d = primals
    z = divide_by_gap.bind(b, d, what=what)
    b_dot, d_dot = tangents
    top = b_dot if type(d_dot) is Zero else add_tangents(b_dot, neg(mul(z, d_dot)))
    return z, divide_by_gap.bind(top, d, what=what)


divide_by_gap = library(
    "divide_by_gap", "b / d, an error where d is 0: equal eigenvalues or singular values.", "b d",
    impl=_gap_impl, abstract=lambda b, d, *, what: b.strong(), jvp=_gap_jvp,
    transpose=lambda ct, b, d, *, what: [divide_by_gap.bind(ct, d, what=what), None])


def _near(w, scale_of):
    """The size below which a gap counts as none: n eps max|w|, along the last axis."""
    size = abs_(scale_of)
    n = w.shape[-1]
    eps = 2.0**-size.dtype.format.F
    top = reduce_max.bind(size, axes=(size.ndim - 1,))
    return mul(top, n * eps)


def over_gaps(b, w, what: str):
    """b_ij / (w_j - w_i), zero on the diagonal."""
    gaps = sub(columns(w, b.shape), rows(w, b.shape))
    limit = broadcast.bind(_near(w, w), shape=b.shape, axes=tuple(range(b.ndim - 2)))
    row, column = places(b.shape)
    one, zero = (as_dtype_value(as_value(k), gaps.dtype) for k in (1.0, 0.0))
    d = select(eq(row, column), one, select(le(abs_(gaps), limit), zero, gaps))
    d = convert(d, b.dtype) if b.dtype is not d.dtype else d
    return divide_by_gap.bind(without_diagonal(b), d, what=what)


# ---- Hermitian eigenvalues ----

def _eigh_impl(a):
    return jacobi.eigh(a) if a.dtype.kind == "V" else _converged("eigh", np.linalg.eigh, a)


def _eigh_avals(a):
    square(a, "eigh")
    return make_aval(a.shape[:-1], dtypes.real_dtype(a.dtype)), make_aval(a.shape, a.dtype)


def _eigh_jvp(primals, tangents):
    """With b = v^H a' v:  w' = diag(b),  v' = v (b_ij / (w_j - w_i))."""
    w, v = eigh.bind(*primals)
    b = matmul(matmul(adjoint(v), tangents[0]), v)
    return [w, v], [real(diagonal_of(b)), matmul(v, over_gaps(b, w, "eigh"))]


eigh = library(
    "eigh", "[w, v]: ascending eigenvalues and orthonormal eigenvectors (columns) of a Hermitian a.", "a",
    impl=lambda a: list(_eigh_impl(a)),
    abstract=lambda a: list(_eigh_avals(a)), jvp=_eigh_jvp, multiple=True)


def _eigvalsh_jvp(primals, tangents):
    w, v = eigh.bind(*primals)
    return w, real(diagonal_of(matmul(matmul(adjoint(v), tangents[0]), v)))


eigvalsh = library(
    "eigvalsh", "Ascending eigenvalues of a Hermitian a.", "a",
    impl=lambda a: _eigh_impl(a)[0],
    abstract=lambda a: _eigh_avals(a)[0], jvp=_eigvalsh_jvp)


# ---- general eigenvalues ----

def _complexes(a):
    return a.astype(np.result_type(a.dtype, np.complex64))


def _eig_impl(a):
    w, v = _converged("eig", np.linalg.eig, hardware(a, "eig"))
    return [_complexes(w), _complexes(v)]


def _eig_avals(a):
    square(a, "eig")
    c = dtypes.complex_dtype(a.dtype)
    return make_aval(a.shape[:-1], c), make_aval(a.shape, c)


def _eig_parts(a, a_dot):
    w, v = eig.bind(a)
    a_dot = convert(a_dot, v.dtype)
    return w, v, solve.bind(v, matmul(a_dot, v))


def _eig_jvp(primals, tangents):
    """v' = v (b_ij / (w_j - w_i)), b = v^-1 a' v, less its part along v: norm 1 and v^H v' = 0 per column."""
    w, v, b = _eig_parts(*primals, *tangents)
    v_dot = matmul(v, over_gaps(b, w, "eig"))
    along = diagonal_of(matmul(adjoint(v), v_dot))
    return [w, v], [diagonal_of(b), sub(v_dot, mul(v, columns(along, v.shape)))]


eig = library(
    "eig", "[w, v]: complex eigenvalues and eigenvectors (columns of norm 1) of a square a.", "a",
    impl=_eig_impl, abstract=lambda a: list(_eig_avals(a)), jvp=_eig_jvp, multiple=True)

eigvals = library(
    "eigvals", "Complex eigenvalues of a square a.", "a",
    impl=lambda a: _eig_impl(a)[0], abstract=lambda a: _eig_avals(a)[0],
    jvp=lambda primals, tangents: (eigvals.bind(*primals),
                                   diagonal_of(_eig_parts(*primals, *tangents)[2])))


# ---- singular values ----

def _svd_impl(a):
    return jacobi.svd(a) if a.dtype.kind == "V" else _converged("svd", np.linalg.svd, a, full_matrices=False)


def _svd_avals(a):
    floating(a, "svd")
    *lead, m, n = a.shape
    k = min(m, n)
    return [make_aval((*lead, m, k), a.dtype), make_aval((*lead, k), dtypes.real_dtype(a.dtype)),
            make_aval((*lead, k, n), a.dtype)]


def _svd_jvp(primals, tangents):
    parts = svd.bind(*primals)
    return parts, svd_tangents(*parts, tangents[0])


def svd_tangents(u, s, vh, a_dot):
    """[u', s', vh'] of the thin factors."""
    v = adjoint(vh)
    av = matmul(a_dot, v)
    inner = matmul(adjoint(u), av)
    s_rows, s_columns = (convert(f(s, inner.shape), inner.dtype) for f in (rows, columns))
    right, left = mul(inner, s_columns), mul(s_rows, inner)
    squares = mul(s, s)
    du = matmul(u, over_gaps(add(right, adjoint(right)), squares, "svd"))
    dv = matmul(v, over_gaps(add(left, adjoint(left)), squares, "svd"))
    m, n = a_dot.shape[-2:]
    if inner.dtype.kind == "c":                      # the phase is split off in u
        phase = complex_(mul(real(inner), 0), imag(inner))
        row, column = places(inner.shape)
        du = add(du, matmul(u, _over_values(masked(phase, eq(row, column)), s)))
    if m > n:
        du = add(du, _over_values(sub(av, matmul(u, inner)), s))
    if n > m:
        ahu = matmul(adjoint(a_dot), u)
        dv = add(dv, _over_values(sub(ahu, matmul(v, adjoint(inner))), s))
    return [du, real(diagonal_of(inner)), adjoint(dv)]


def _over_values(x, s):
    limit = broadcast.bind(_near(s, s), shape=s.shape, axes=tuple(range(s.ndim - 1)))
    safe = select(le(s, limit), as_dtype_value(as_value(0.0), s.dtype), s)
    return divide_by_gap.bind(x, convert(columns(safe, x.shape), x.dtype), what="svd (a singular value is 0)")


svd = library(
    "svd", "[u, s, vh] with a = u diag(s) vh, s descending, k = min(m, n) columns and rows.", "a",
    impl=lambda a: list(_svd_impl(a)),
    abstract=_svd_avals, jvp=_svd_jvp, multiple=True)


def _svdvals_jvp(primals, tangents):
    u, s, vh = svd.bind(*primals)
    return s, real(diagonal_of(matmul(matmul(adjoint(u), tangents[0]), adjoint(vh))))


svdvals = library(
    "svdvals", "Descending singular values of a.", "a",
    impl=lambda a: _svd_impl(a)[1],
    abstract=lambda a: _svd_avals(a)[1], jvp=_svdvals_jvp)
