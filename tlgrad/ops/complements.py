"""Full factorisations: the columns that complete a basis, and when they have a derivative.

The extra columns n of a full svd or qr span the complement of the others; within it they may be
turned freely, n -> n w with w unitary.  A function that does not see such turns (n only in n n^H,
or nowhere) has a derivative: that of the columns which do not turn, n^H n' = 0.  In reverse mode the
cotangent tells whether the function sees turns, and then the derivative is refused.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.tensor import convert_array
from tlgrad.errors import DifferentiationError
from tlgrad.ops import dense, jacobi
from tlgrad.ops.arithmetic import add, neg
from tlgrad.ops.factor import library, qr_tangents
from tlgrad.ops.layout import zeros
from tlgrad.ops.matrices import adjoint, floating, matmul
from tlgrad.ops.shape import concatenate, slice_axis
from tlgrad.ops.spectral import svd_tangents

#: how far a cotangent may be from seeing no turns, as a part of its largest entry
_SEEN = 1e-6


def _turns_impl(ct, *, what):
    wide = np.asarray(ct if ct.dtype.kind != "V" else _double(ct))
    size = np.abs(wide).max(initial=0.0)
    if np.abs(wide - np.conj(np.swapaxes(wide, -1, -2))).max(initial=0.0) > _SEEN * size:
        raise DifferentiationError(
            f"the extra columns of a {what} are not unique, and the function depends on which are "
            "taken: it has no derivative. Use full_matrices=False (mode='reduced'), or a "
            "function of the space they span (n @ n.T).")
    return np.zeros((*ct.shape[:-2], ct.shape[-1], ct.shape[-1]), ct.dtype)


def _double(x):
    real = dtypes.of_storage(x.dtype).kind == "f"
    return convert_array(x, dtypes.float64 if real else dtypes.complex128)


refuse_turns = library(
    "refuse_turns", "Zeros; an error unless n^H ct is Hermitian: the function does not see turns.", "ct",
    impl=_turns_impl, abstract=lambda ct, *, what: ct.strong(), nondiff="")


def _turn_transpose(ct, x, *, what):
    n, k = x.aval.shape[-1], x.aval.shape[-2]
    nothing = zeros(make_aval((*x.aval.shape[:-2], k, n), x.aval.dtype))
    return [matmul(nothing, refuse_turns.bind(ct, what=what))]


turn = library(
    "turn", "Zeros (..., n, n) for x (..., k, n): the turn of n extra columns, which no derivative sees.", "x",
    impl=lambda x, *, what: np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-1]), x.dtype),
    abstract=lambda x, *, what: make_aval((*x.shape[:-2], x.shape[-1], x.shape[-1]), x.dtype),
    jvp=lambda primals, tangents, *, what: (turn.bind(*primals, what=what), turn.bind(*tangents, what=what)),
    transpose=_turn_transpose)


def extra_tangent(basis, basis_dot, extra, what):
    """The tangent of the extra columns: they stay orthogonal to the basis and do not turn."""
    inner = matmul(adjoint(basis_dot), extra)
    return add(neg(matmul(basis, inner)), matmul(extra, turn.bind(inner, what=what)))


def _columns(x, start, limit):
    return slice_axis(x, x.ndim - 1, start, limit)


def _with_extra(full, k, basis_dot, what):
    """The tangents of all columns of a square basis, of whose first k the tangents are given."""
    n = full.shape[-1]
    if n == k:
        return basis_dot
    extra = extra_tangent(_columns(full, 0, k), basis_dot, _columns(full, k, n), what)
    return concatenate.bind(basis_dot, extra, axis=full.ndim - 1)


def _completed(basis):
    """A square orthonormal basis that starts with the columns of `basis` (software formats)."""
    m, k = basis.shape[-2:]
    full = dense.qr(np.concatenate([basis, np.zeros((*basis.shape[:-1], m - k), basis.dtype)], axis=-1))[0]
    full[..., :k] = basis
    return full


# ---- svd ----

def _full_svd_impl(a):
    if a.dtype.kind != "V":
        return list(np.linalg.svd(a))
    u, s, vh = jacobi.svd(a)
    transposed = np.swapaxes(vh, -1, -2)
    return [_completed(u), s, np.swapaxes(_completed(transposed), -1, -2)]


def _full_svd_abstract(a):
    floating(a, "svd")
    *lead, m, n = a.shape
    return [make_aval((*lead, m, m), a.dtype), make_aval((*lead, min(m, n)), dtypes.real_dtype(a.dtype)),
            make_aval((*lead, n, n), a.dtype)]


def _full_svd_jvp(primals, tangents):
    u, s, vh = full_svd.bind(*primals)
    k, v = s.shape[-1], adjoint(vh)
    thin = _columns(u, 0, k), s, adjoint(_columns(v, 0, k))
    du, ds, dvh = svd_tangents(*thin, tangents[0])
    dv = _with_extra(v, k, adjoint(dvh), "full svd")
    return [u, s, vh], [_with_extra(u, k, du, "full svd"), ds, adjoint(dv)]


full_svd = library(
    "full_svd", "[u, s, vh] with square u and vh.", "a",
    impl=_full_svd_impl, abstract=_full_svd_abstract, jvp=_full_svd_jvp, multiple=True)


# ---- qr ----

def _full_qr_impl(a):
    if a.dtype.kind != "V":
        q, r = np.linalg.qr(a, mode="complete")
        return [q, np.ascontiguousarray(r[..., :a.shape[-1], :])]
    q, r = dense.qr(a)
    return [_completed(q), r]


def _full_qr_abstract(a):
    floating(a, "qr")
    *lead, m, n = a.shape
    return [make_aval((*lead, m, m), a.dtype), make_aval((*lead, n, n), a.dtype)]


def _full_qr_jvp(primals, tangents):
    q, r = full_qr.bind(*primals)
    dq, dr = qr_tangents(_columns(q, 0, r.shape[-1]), r, tangents[0])
    return [q, r], [_with_extra(q, r.shape[-1], dq, "complete qr"), dr]


full_qr = library(
    "full_qr", "[q, r] with a = q[:, :n] r for tall a (m, n): q is square, r is (n, n).", "a",
    impl=_full_qr_impl, abstract=_full_qr_abstract, jvp=_full_qr_jvp, multiple=True)
