"""Determinants, pseudo-inverses and the exponential of matrices, with their derivatives."""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.primitive import Linear
from tlgrad.core.tensor import as_value
from tlgrad.errors import ShapeError
from tlgrad.ops import dense, jacobi, meaning
from tlgrad.ops.arithmetic import add, complex_, conj, imag, mul, neg, real, sub
from tlgrad.ops.convert import convert
from tlgrad.ops.define import add_tangents
from tlgrad.ops.factor import library, lu_impl, solve
from tlgrad.ops.layout import broadcast, sum_axes, zeros
from tlgrad.ops.logic import eq, or_, select
from tlgrad.ops.matrices import (adjoint, columns, diagonal_of, floating, hardware, matmul, places, rows, square,
                                 swap)
from tlgrad.ops.promote import as_dtype_value
from tlgrad.ops.reduce import reduce_prod
from tlgrad.ops.shape import concatenate, iota, slice_axis
from tlgrad.ops.spectral import svd


# ---- determinant: right derivatives at singular matrices ----

def _scalar(a, dtype=None):
    return make_aval(a.shape[:-2], dtype or a.dtype)


def _det_impl(a):
    if a.dtype.kind == "V":
        return dense.det(a)
    _, u, perm = lu_impl(a)
    sign = np.array([dense.parity(perm[k]) for k in np.ndindex(a.shape[:-2])], a.dtype).reshape(a.shape[:-2])
    with np.errstate(all="ignore"):
        return np.multiply.reduce(np.diagonal(u, axis1=-2, axis2=-1), axis=-1) * sign


def _det_jvp(primals, tangents):
    """Jacobi: det' = sum of cofactor(a) a', at every a."""
    (a,), (a_dot,) = primals, tangents
    terms = mul(cofactor.bind(a), a_dot)
    return det.bind(a), sum_axes(terms, (a.ndim - 2, a.ndim - 1))


det = library(
    "det", "Determinant of a square a.", "a",
    impl=_det_impl, abstract=lambda a: _scalar(square(a, "det")), jvp=_det_jvp)


def _without(s, k):
    """Products of the entries of s (..., n) but for one (k = 1: (..., n)) or two (k = 2: (..., n, n))."""
    n, lead = s.shape[-1], s.ndim - 1
    shape = (*s.shape[:-1], *(n,) * k, n)
    number = [iota.bind(shape=shape, axis=lead + a, dtype=dtypes.int64) for a in range(k + 1)]
    left_out = eq(number[0], number[-1]) if k == 1 else or_(eq(number[0], number[2]), eq(number[1], number[2]))
    wide = broadcast.bind(s, shape=shape, axes=(*range(lead), lead + k))
    one = as_dtype_value(as_value(1.0), s.dtype)
    return reduce_prod.bind(select(left_out, one, wide), axes=(lead + k,))


def _cofactor_impl(a):
    if a.dtype.kind == "V":                              # through the inverse: a must not be singular
        times = meaning.implementation("mul")
        inverse = dense.solve(a, np.broadcast_to(jacobi.identity(a.shape[-1], a), a.shape))
        return times(np.broadcast_to(_det_impl(a)[..., None, None], a.shape), np.swapaxes(inverse, -1, -2))
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    parts = np.where(np.eye(n, dtype=bool), s.dtype.type(1), s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return (sign[..., None, None] * (np.conj(u) * parts[..., None, :]) @ np.conj(vh)).astype(a.dtype)


def _cofactor_jvp(primals, tangents):
    """In the singular basis a = u s vh, the cofactors of s + e b change by leave-two-out products."""
    (a,), (a_dot,) = primals, tangents
    u, s, vh = svd.bind(a)
    b = matmul(matmul(adjoint(u), a_dot), adjoint(vh))
    pairs = _without(s, 2)
    pairs = complex_(pairs, 0) if b.dtype.kind == "c" else pairs
    row, column = places(b.shape)
    on = eq(row, column)
    trace_part = matmul_vector(select(on, zeros(pairs.aval), pairs), diagonal_of(b))
    inner = select(on, rows(trace_part, b.shape), neg(mul(pairs, swap(b))))
    sign = mul(det.bind(u), det.bind(vh))
    sign = broadcast.bind(sign, shape=a.shape, axes=tuple(range(a.ndim - 2)))
    u, vh = (conj(v) if v.dtype.kind == "c" else v for v in (u, vh))
    return cofactor.bind(a), mul(sign, matmul(matmul(u, inner), vh))


def matmul_vector(m, v):
    """Matrices (..., n, n) times vectors (..., n)."""
    return sum_axes(mul(m, columns(v, m.shape)), (m.ndim - 1,))


cofactor = library(
    "cofactor", "Matrix of cofactors of a, the gradient of det; defined for singular a.", "a",
    impl=_cofactor_impl, abstract=lambda a: square(a, "cofactor").strong(),
    jvp=_cofactor_jvp)


def _slogdet_impl(a):
    if a.dtype.kind == "V":
        value = _det_impl(a)
        size = meaning.implementation("abs")(value)
        return [meaning.implementation("sign")(value), meaning.implementation("log")(size)]
    with np.errstate(all="ignore"):
        sign, size = np.linalg.slogdet(a)
    return [np.asarray(sign, a.dtype), np.asarray(size, a.real.dtype)]


def _slogdet_jvp(primals, tangents):
    """log|det|' = Re tr(a^-1 a'); the sign turns by its imaginary part."""
    (a,), (a_dot,) = primals, tangents
    sign, size = slogdet.bind(a)
    d = diagonal_of(solve.bind(a, a_dot))
    trace = sum_axes(d, (d.ndim - 1,))
    if trace.dtype.kind != "c":
        return [sign, size], [Zero(sign.aval), trace]
    return [sign, size], [mul(sign, complex_(mul(real(trace), 0), imag(trace))), real(trace)]


slogdet = library(
    "slogdet", "[sign, log|det a|]; a singular a gives [0, -inf].", "a",
    impl=_slogdet_impl, jvp=_slogdet_jvp, multiple=True,
    abstract=lambda a: [_scalar(square(a, "slogdet")), _scalar(a, dtypes.real_dtype(a.dtype))])


# ---- pseudo-inverse ----

def _pinv_impl(a, *, rcond):
    return np.linalg.pinv(hardware(a, "pinv"), rcond=rcond)


def _pinv_jvp(primals, tangents, *, rcond):
    """Golub and Pereyra (1973), where the rank is constant."""
    (a,), (da,) = primals, tangents
    p = pinv.bind(a, rcond=rcond)
    dah, ph = adjoint(da), adjoint(p)
    first = neg(matmul(matmul(p, da), p))
    right = sub(dah, matmul(matmul(dah, a), p))
    second = matmul(matmul(p, ph), right)
    left = sub(dah, matmul(p, matmul(a, dah)))
    return p, add(add(first, second), matmul(matmul(left, ph), p))


def _pinv_abstract(a, *, rcond):
    floating(a, "pinv")
    return make_aval((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)


pinv = library(
    "pinv", "Moore-Penrose inverse; singular values below rcond times the greatest count as 0.", "a",
    impl=_pinv_impl, abstract=_pinv_abstract, jvp=_pinv_jvp)


# ---- exponential ----

def _expm_impl(a):
    from scipy.linalg import expm as scipy_expm
    return scipy_expm(hardware(a, "expm")).astype(a.dtype) if a.size else a


expm = library(
    "expm", "Exponential of a square a: the sum of a^k / k!.", "a",
    impl=_expm_impl, abstract=lambda a: square(a, "expm").strong(),
    jvp=lambda primals, tangents: (expm.bind(*primals), frechet.bind(*primals, *tangents)))


def _block(a, e):
    """[[a, e], [0, a]]"""
    n = a.ndim
    low = concatenate.bind(zeros(a.aval.strong()), a, axis=n - 1)
    return concatenate.bind(concatenate.bind(a, e, axis=n - 1), low, axis=n - 2)


def _corner(m):
    n = m.shape[-1] // 2
    return slice_axis(slice_axis(m, m.ndim - 2, 0, n), m.ndim - 1, n, 2 * n)


def _frechet_impl(a, e):
    zero = np.zeros_like(a)
    full = np.concatenate([np.concatenate([a, e], -1), np.concatenate([zero, a], -1)], -2)
    n = a.shape[-1]
    return _expm_impl(full)[..., :n, n:]


def _frechet_jvp(primals, tangents):
    """The corner of exp of a block matrix (Mathias, 1996); its derivative is one of twice the size."""
    a, e = primals
    a_dot, e_dot = tangents
    out = frechet.bind(a, e)
    out_dot = Zero(out.aval) if type(e_dot) is Zero else frechet.bind(a, e_dot)
    if type(a_dot) is not Zero:
        change = _block(a_dot, zeros(e.aval.strong()))
        out_dot = add_tangents(out_dot, _corner(frechet.bind(_block(a, e), change)))
    return out, out_dot


frechet = library(
    "expm_frechet", "Derivative of expm at a in the direction e.", "a e",
    impl=_frechet_impl, abstract=lambda a, e: square(a, "expm").strong(),
    jvp=_frechet_jvp,
    transpose=lambda ct, a, e: [None, frechet.bind(swap(a), ct) if type(e) is Linear else None])


# ---- Sylvester equation and square root ----

def _sylvester_impl(a, b, q):
    from scipy.linalg import solve_sylvester
    hardware(a, "solve_sylvester")
    out = np.empty(q.shape, q.dtype)
    for place in np.ndindex(q.shape[:-2]):
        out[place] = solve_sylvester(a[place], b[place], q[place])
    return out


def _sylvester_abstract(a, b, q):
    square(a, "solve_sylvester")
    square(b, "solve_sylvester")
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]) or {a.dtype, b.dtype, q.dtype} != {a.dtype}:
        raise ShapeError(f"solve_sylvester: a is {a}, b is {b}, so q must be {a.dtype}[..., {a.shape[-1]}, "
                         f"{b.shape[-1]}], got {q}")
    return q.strong()


def _sylvester_jvp(primals, tangents):
    """a x' + x' b = q' - a' x - x b'."""
    a, b, _ = primals
    x = sylvester.bind(*primals)
    a_dot, b_dot, right = tangents
    if type(a_dot) is not Zero:
        right = add_tangents(right, neg(matmul(a_dot, x)))
    if type(b_dot) is not Zero:
        right = add_tangents(right, neg(matmul(x, b_dot)))
    return x, sylvester.bind(a, b, right)


sylvester = library(
    "solve_sylvester", "x with a x + x b = q.", "a b q", impl=_sylvester_impl, abstract=_sylvester_abstract,
    jvp=_sylvester_jvp, transpose=lambda ct, a, b, q: [None, None, sylvester.bind(swap(a), swap(b), ct)])


def _sqrtm_impl(a):
    from scipy.linalg import sqrtm as scipy_sqrtm
    complex_ = np.result_type(a.dtype, np.complex64)
    out = np.empty(a.shape, complex_)
    for place in np.ndindex(a.shape[:-2]):
        out[place] = scipy_sqrtm(hardware(a, "sqrtm")[place])
    return out


def _sqrtm_jvp(primals, tangents):
    """r r' + r' r = a'."""
    r = sqrtm.bind(*primals)
    return r, sylvester.bind(r, r, convert(tangents[0], r.dtype))


sqrtm = library("sqrtm", "Principal square root of a square a, complex.", "a", impl=_sqrtm_impl,
                abstract=lambda a: square(a, "sqrtm").with_dtype(dtypes.complex_dtype(a.dtype)), jvp=_sqrtm_jvp)
