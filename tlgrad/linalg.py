"""Linear algebra of matrices in the last two axes, under the names of NumPy and the array API standard.

Factorisations are LAPACK's (CPU, outside the one-result rule); cholesky, lu, qr, solve, inv, det,
triangular_solve, slogdet, eigh and svd also run in software formats, by own ordered algorithms.
16-bit floats are computed in binary32 and rounded once; integers become float64. Every function
differentiates to any order where the derivative exists, and refuses with the reason where it does
not.
"""
from __future__ import annotations

import builtins
import math
from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.krylov import cg, gmres
from tlgrad.numpy import (cross, matmul, matrix_transpose, norms, outer, reductions, shaping, tensordot,
                          vecdot, vector_norm)
from tlgrad.numpy.arrays import as_array, axes_of, one_dtype
from tlgrad.numpy.creation import eye
from tlgrad.numpy.differences import trace as _numpy_trace
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.selection import diagonal as _numpy_diagonal
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import complements, factor, matrixfunctions, spectral
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.index import take_along_axis
from tlgrad.ops.layout import zeros
from tlgrad.ops.promote import broadcast_shapes, broadcast_to
from tlgrad.ops.shape import slice_axis
from tlgrad.results import EighResult, EigResult, LUResult, QRResult, SlogdetResult, SVDResult

__all__ = ["cg", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
           "expm", "gmres", "inv", "lstsq", "lu", "lu_solve", "matmul", "matrix_norm",
           "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer",
           "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace",
           "triangular_solve", "vecdot", "vector_norm"]

_NARROW = (dtypes.float16, dtypes.bfloat16)


def _matrix(x, name: str):
    """(value to compute with, dtype to round results back to)."""
    x = as_inexact(x, name)
    if x.ndim < 2:
        raise ShapeError(f"linalg.{name} takes matrices (..., m, n), got shape {x.shape}")
    dtype = x.dtype
    return convert(x, dtypes.float32 if dtype in _NARROW else dtype), dtype


def _square(x, name: str):
    x, dtype = _matrix(x, name)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"linalg.{name} takes square matrices (..., n, n), got shape {x.shape}")
    return x, dtype


def _back(x, dtype):
    return convert(x, dtype) if dtype in _NARROW else x


def _hermitian(x):
    """(x + x^H) / 2: so that the derivative is that of a Hermitian matrix, whichever entries are read."""
    t = matrix_transpose(x)
    return ar.mul(ar.add(x, ar.conj(t) if x.dtype.kind == "c" else t), 0.5)


# ---- solving ----

def _right_side(a, b, name):
    """b as matrices (..., n, k) with the leading axes of a, and whether it was a vector."""
    vector = b.ndim == 1
    b = shaping.reshape(b, (*b.shape, 1)) if vector else b
    if b.shape[-2] != a.shape[-2]:
        raise ShapeError(f"linalg.{name}: a has {a.shape[-2]} rows, b has {b.shape[-2]} "
                         f"(shapes {a.shape} and {b.shape})")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2], what=f"linalg.{name}")
    return (broadcast_to(a, (*lead, *a.shape[-2:])), broadcast_to(b, (*lead, *b.shape[-2:])), vector)


def _operands(a, b, name):
    a, b = one_dtype([as_inexact(v, name) for v in (a, b)])
    a, dtype = _square(a, name)
    b = convert(b, a.dtype)
    return *_right_side(a, b, name), dtype


def solve(a, b) -> Value:
    """x with a x = b, for square a (..., n, n); b is a vector (n,) or matrices (..., n, k).

    Raises SingularMatrixError naming the matrix of the stack.

    >>> solve(tl.tensor([[2.0, 0.0], [0.0, 4.0]]), tl.tensor([2.0, 2.0]))
    tensor([1. , 0.5], float64, shape (2,), cpu)
    """
    a, b, vector, dtype = _operands(a, b, "solve")
    x = _back(factor.solve.bind(a, b), dtype)
    return x[..., 0] if vector else x


def triangular_solve(a, b, *, lower: bool = False, trans: bool = False, unit_diagonal: bool = False,
                     conjugate: bool = False) -> Value:
    """x with a x = b (a^T x = b if `trans`, conjugated if `conjugate`), reading one triangle of a only.

    >>> triangular_solve(tl.tensor([[2.0, 9.0], [1.0, 4.0]]), tl.tensor([2.0, 5.0]), lower=True)
    tensor([1., 1.], float64, shape (2,), cpu)
    """
    a, b, vector, dtype = _operands(a, b, "triangular_solve")
    a = ar.conj(a) if conjugate and a.dtype.kind == "c" else a
    x = factor.triangular_solve.bind(a, b, lower=bool(lower), unit=bool(unit_diagonal), transposed=bool(trans))
    x = _back(x, dtype)
    return x[..., 0] if vector else x


def inv(a) -> Value:
    """Inverse of square matrices.  Raises SingularMatrixError where there is none.

    >>> inv(tl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]], float64, shape (2, 2), cpu)
    """
    a, dtype = _square(a, "inv")
    unit = broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    return _back(factor.solve.bind(a, unit), dtype)


def det(a) -> Value:
    """Determinant of square matrices; first and second derivatives are right at singular matrices too.

    >>> det(tl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(8.0, float64, shape (), cpu)
    """
    a, dtype = _square(a, "det")
    return _back(matrixfunctions.det.bind(a), dtype)


def slogdet(a) -> SlogdetResult:
    """Sign and log of |det a|; (0, -inf) for a singular matrix, where the derivative is refused."""
    a, dtype = _square(a, "slogdet")
    return SlogdetResult(*[_back(v, dtype) for v in matrixfunctions.slogdet.bind(a)])


def pinv(a, rcond=None, hermitian=False, *, rtol=None) -> Value:
    """Moore-Penrose inverse; singular values up to rtol * greatest count as 0 (default max(m, n) eps).

    The derivative is that of Golub and Pereyra (1973), right where the rank does not change.
    """
    a, dtype = _matrix(a, "pinv")
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = builtins.max(a.shape[-2:]) * 2.0**-dtypes.real_dtype(a.dtype).format.F
    if isinstance(rtol, Value):
        rtol = rtol.item()
    return _back(matrixfunctions.pinv.bind(a, rcond=float(rtol)), dtype)


def lstsq(a, b, rcond=None):
    """(x, residuals, rank, singular values): x of least norm that minimises |a x - b|.

    x = pinv(a) b, so that it differentiates where the rank does not change; `residuals` is the sum of
    squares for each column, `rank` an int.
    """
    a, dtype = _matrix(a, "lstsq")
    b = convert(as_inexact(b, "lstsq"), a.dtype)
    a, b, vector = _right_side(a, b, "lstsq")
    x = matmul(pinv(a, rcond), b)
    miss = ar.sub(b, matmul(a, x))
    residual = reductions.sum(ar.real(ar.mul(miss, ar.conj(miss))), -2)
    x, residual = (x[..., 0], residual[..., 0]) if vector else (x, residual)
    return _back(x, dtype), residual, matrix_rank(a, rtol=rcond), svdvals(a)


# ---- factorisations ----

def cholesky(a, *, upper: bool = False) -> Value:
    """Lower triangular l with a = l l^H (upper: u with a = u^H u) of the Hermitian part of a.

    Raises SingularMatrixError unless it is positive definite.

    >>> cholesky(tl.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]], float64, shape (2, 2), cpu)
    """
    a, dtype = _square(a, "cholesky")
    l = _back(factor.cholesky.bind(_hermitian(a)), dtype)
    if not upper:
        return l
    return ar.conj(matrix_transpose(l)) if l.dtype.kind == "c" else matrix_transpose(l)


def lu(a) -> LUResult:
    """(perm, L, U) with a[perm] = L U, partial pivoting."""
    a, dtype = _matrix(a, "lu")
    l, u, perm = factor.lu.bind(a)
    return LUResult(perm, _back(l, dtype), _back(u, dtype))


def lu_solve(parts: LUResult, b) -> Value:
    """x with a x = b, from the factors of `lu`."""
    perm, l, u = parts
    b = as_array(b, "lu_solve")
    vector = b.ndim == 1
    b = shaping.reshape(b, (*b.shape, 1)) if vector else b
    wide = broadcast_to(shaping.expand_dims(perm, -1), (*perm.shape, b.shape[-1]))
    moved = take_along_axis(broadcast_to(b, wide.shape), wide, b.ndim - 2)
    x = triangular_solve(u, triangular_solve(l, moved, lower=True, unit_diagonal=True))
    return x[..., 0] if vector else x


def qr(a, mode: str = "reduced") -> QRResult:
    """(Q, R) with a = Q R: Q (..., m, k) with orthonormal columns, R (..., k, n), k = min(m, n).

    mode "complete" gives Q (..., m, m) and R (..., m, n); "r" gives R alone.  The extra columns of a complete Q
    are not unique: a function that depends on which are taken has no derivative, a DifferentiationError.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"linalg.qr: mode is 'reduced', 'complete' or 'r', got {mode!r}")
    a, dtype = _matrix(a, "qr")
    m, n = a.shape[-2:]
    if m < n:                                   # the square part gives Q, the rest of R is Q^H a
        q, r = factor.qr.bind(slice_axis(a, a.ndim - 1, 0, m))
        qh = matrix_transpose(q)
        rest = matmul(ar.conj(qh) if q.dtype.kind == "c" else qh, slice_axis(a, a.ndim - 1, m, n))
        r = shaping.concatenate([r, rest], -1)
    elif mode == "complete" and m > n:
        q, r = complements.full_qr.bind(a)
        r = shaping.concatenate([r, zeros(r.aval.with_shape((*r.shape[:-2], m - n, n)))], -2)
    else:
        q, r = factor.qr.bind(a)
    q, r = _back(q, dtype), _back(r, dtype)
    return r if mode == "r" else QRResult(q, r)


def eigh(a, UPLO: str = "L") -> EighResult:
    """Eigenvalues (ascending) and eigenvectors of the Hermitian part of a.

    Eigenvectors of equal eigenvalues are not unique: asking for their derivative is a DifferentiationError.
    """
    a, dtype = _square(a, "eigh")
    return EighResult(*[_back(v, dtype) for v in spectral.eigh.bind(_hermitian(a))])


def eigvalsh(a, UPLO: str = "L") -> Value:
    """Eigenvalues (ascending) of the Hermitian part of a; differentiable also where some are equal, in
    the sense that symmetric functions of them are."""
    a, dtype = _square(a, "eigvalsh")
    return _back(spectral.eigvalsh.bind(_hermitian(a)), dtype)


def eig(a) -> EigResult:
    """Complex eigenvalues and eigenvectors of square matrices; eigenvectors have norm 1, and the
    derivative of each is orthogonal to it."""
    a, _ = _square(a, "eig")
    return EigResult(*spectral.eig.bind(a))


def eigvals(a) -> Value:
    """Complex eigenvalues of square matrices."""
    return spectral.eigvals.bind(_square(a, "eigvals")[0])


def svd(a, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False):
    """(U, S, Vh) with a = U diag(S) Vh; S descends.

    full_matrices=True gives square U and Vh.  Their extra columns are not unique: a function that depends on
    more than the space they span has no derivative, a DifferentiationError in reverse mode.  Vectors of equal
    singular values have no derivative (see `eigh`).
    """
    if not compute_uv:
        return svdvals(a)
    a, dtype = _matrix(a, "svd")
    m, n = a.shape[-2:]
    if full_matrices and m != n:
        parts = complements.full_svd.bind(a)
    else:
        parts = spectral.svd.bind(a)
    return SVDResult(*[_back(v, dtype) for v in parts])


def svdvals(a) -> Value:
    """Singular values of matrices, descending."""
    a, dtype = _matrix(a, "svdvals")
    return _back(spectral.svdvals.bind(a), dtype)


def expm(a) -> Value:
    """Exponential of square matrices: the sum of a^k / k! (SciPy; Al-Mohy and Higham, 2009).

    >>> expm(tl.zeros((2, 2)))
    tensor([[1., 0.],
            [0., 1.]], float64, shape (2, 2), cpu)
    """
    a, dtype = _square(a, "expm")
    return _back(matrixfunctions.expm.bind(a), dtype)


# ---- made of these ----

def matrix_power(a, n: int) -> Value:
    """a multiplied n times with itself, by squaring; n < 0 uses the inverse."""
    a = as_array(a, "matrix_power")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"linalg.matrix_power takes square matrices, got shape {a.shape}")
    if n == 0:
        return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    a, n = (inv(a), -n) if n < 0 else (a, n)
    result = None
    while n:
        if n & 1:
            result = a if result is None else matmul(result, a)
        n >>= 1
        a = matmul(a, a) if n else a
    return result


def matrix_norm(x, *, keepdims: bool = False, ord="fro") -> Value:
    """Norm of the matrices in the last two axes: "fro", "nuc", 1, -1, 2, -2, inf, -inf."""
    return norm(x, ord, (-2, -1), keepdims)


def norm(x, ord=None, axis=None, keepdims: bool = False, *, order: str | None = None) -> Value:
    """Norm of a vector (one axis, or all axes and no `ord`) or of a matrix (two axes).

    Matrices: "fro" (default), "nuc" (sum of singular values), 2 and -2 (greatest, least), 1, -1, inf,
    -inf (sums of columns, rows).  The Euclidean norm has derivative 0 at the origin.

    >>> norm(tl.tensor([3.0, 4.0]))
    tensor(5.0, float64, shape (), cpu)
    """
    x = as_array(x, "norm")
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if ord not in ("nuc", 2, -2) or len(axes) != 2:
        return norms.norm(x, ord, axis, keepdims, order=order)
    s = svdvals(shaping.moveaxis(x, axes, (-2, -1)))
    y = reductions.sum(s, -1) if ord == "nuc" else s[..., 0] if ord == 2 else s[..., -1]
    return shaping.expand_dims(y, axes_of(axes, x.ndim, "norm")) if keepdims else y


def cond(x, p=None) -> Value:
    """Condition number: ratio of extreme singular values, or norm(x) norm(inv(x)) for another `p`."""
    if p in (None, 2, -2):
        s = svdvals(x)
        return ar.div(s[..., -1], s[..., 0]) if p == -2 else ar.div(s[..., 0], s[..., -1])
    return ar.mul(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))


def matrix_rank(a, tol=None, hermitian=False, *, rtol=None) -> Value:
    """Number of singular values above a limit: `tol`, or rtol * greatest (default max(m, n) eps)."""
    a, _ = _matrix(a, "matrix_rank")
    s = svdvals(a)
    if tol is None:
        eps = builtins.max(a.shape[-2:]) * 2.0**-s.dtype.format.F
        rtol = as_array(eps if rtol is None else rtol, "matrix_rank")
        tol = ar.mul(reductions.max(s, -1, keepdims=True, initial=0.0), shaping.expand_dims(rtol, -1))
    return reductions.count_nonzero(lo.gt(s, tol), -1)


def diagonal(x, *, offset: int = 0) -> Value:
    """Diagonals of the matrices in the last two axes, as vectors (..., k)."""
    return _numpy_diagonal(x, offset, -2, -1)


def trace(x, *, offset: int = 0, dtype=None) -> Value:
    """Sum of the diagonal of the matrices in the last two axes."""
    return _numpy_trace(x, offset, -2, -1, dtype)


def multi_dot(arrays) -> Value:
    """Product of several matrices from left to right (the order is not rearranged: it is part of the result)."""
    arrays = list(arrays)
    total = arrays[0]
    for x in arrays[1:]:
        total = matmul(total, x)
    return total


def tensorsolve(a, b, axes=None) -> Value:
    """x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end first."""
    a, b = as_array(a, "tensorsolve"), as_array(b, "tensorsolve")
    if axes is not None:
        a = shaping.moveaxis(a, tuple(axes), tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim:]
    if math.prod(shape) != b.size:
        raise ShapeError(f"linalg.tensorsolve: a of shape {a.shape} does not fit b of shape {b.shape}")
    return shaping.reshape(solve(shaping.reshape(a, (b.size, b.size)), shaping.ravel(b)), shape)


def tensorinv(a, ind: int = 2) -> Value:
    """The inverse of `tensordot(a, x, ...)` over the axes after the first `ind`."""
    a = as_array(a, "tensorinv")
    front, back = a.shape[:ind], a.shape[ind:]
    if math.prod(front) != math.prod(back):
        raise ShapeError(f"linalg.tensorinv: the first {ind} axes of shape {a.shape} do not match the others")
    return shaping.reshape(inv(shaping.reshape(a, (math.prod(front), -1))), (*back, *front))
