"""Linear algebra under SciPy's names: `tlgrad.linalg`, and what SciPy has beside it."""
from __future__ import annotations

import builtins

from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.linalg import (cg, det, eig, eigh, eigvals, eigvalsh, expm, gmres, inv, lstsq, norm, pinv, qr, solve,
                           svdvals, triangular_solve)
from tlgrad.linalg import cholesky as _cholesky
from tlgrad.linalg import svd as _svd
from tlgrad.numpy import elementwise, products, repeating, selection, shaping
from tlgrad.numpy.arrays import as_array, one_dtype
from tlgrad.numpy.creation import zeros
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import matrixfunctions
from tlgrad.ops.convert import convert
from tlgrad.ops.reduce import reduce_all

__all__ = ["cholesky", "cho_factor", "cho_solve", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv",
           "lstsq", "norm", "pinv", "qr", "solve", "svd", "svdvals", "solve_triangular", "sqrtm",
           "solve_sylvester", "solve_banded", "block_diag", "toeplitz", "cg", "gmres"]


def solve_triangular(a, b, trans=0, lower: bool = False, unit_diagonal: bool = False, **options) -> Value:
    """x with a x = b (trans 1 or "T": a^T x = b; 2 or "C": a^H x = b), reading one triangle of a."""
    if trans not in (0, "N", 1, "T", 2, "C"):
        raise ArgumentError(f"solve_triangular: trans is 0, 1, 2 or 'N', 'T', 'C', got {trans!r}")
    return triangular_solve(a, b, lower=lower, trans=trans not in (0, "N"), conjugate=trans in (2, "C"),
                            unit_diagonal=unit_diagonal)


def cholesky(a, lower: bool = False, **options) -> Value:
    """Upper (or lower) Cholesky factor."""
    return _cholesky(a, upper=not lower)


def cho_factor(a, lower: bool = False, **options):
    """(factor, lower) for `cho_solve`."""
    return cholesky(a, lower), lower


def cho_solve(factor_and_lower, b, **options) -> Value:
    """x with a x = b, from the factor of `cho_factor`."""
    c, lower = factor_and_lower
    y = triangular_solve(c, b, lower=lower, trans=not lower, conjugate=not lower)
    return triangular_solve(c, y, lower=lower, trans=lower, conjugate=lower)


def svd(a, full_matrices: bool = True, compute_uv: bool = True, **options):
    """(U, s, Vh), or the singular values alone."""
    return _svd(a, full_matrices, compute_uv)


def sqrtm(a) -> Value:
    """Principal square root of a square matrix; real where it is real and its values are known.

    Under a transform of a real matrix, the real part is taken: its eigenvalues must not be negative.
    """
    a = as_inexact(a, "sqrtm")
    r = matrixfunctions.sqrtm.bind(convert(a, a.dtype))
    return ar.real(r) if a.dtype.kind == "f" and not _has_imaginary_part(r) else r


def _has_imaginary_part(r) -> bool:
    size = elementwise.abs(ar.imag(r))
    small = size <= 1e-9 * elementwise.abs(r).max()
    flat = reduce_all.bind(small, axes=tuple(builtins.range(small.ndim)))
    return not bool(flat) if hasattr(flat, "data") else False


def solve_sylvester(a, b, q) -> Value:
    """x with a x + x b = q."""
    a, b, q = one_dtype([as_inexact(v, "solve_sylvester") for v in (a, b, q)])
    return matrixfunctions.sylvester.bind(*[convert(v, v.dtype) for v in (a, b, q)])


def solve_banded(l_and_u, ab, b, **options) -> Value:
    """x with a x = b for a banded matrix given by its diagonals: ab[u + i - j, j] = a[i, j].

    The matrix is formed in full: memory is that of a dense one.
    """
    lower, upper = l_and_u
    ab = as_inexact(ab, "solve_banded")
    if ab.ndim != 2 or ab.shape[0] != lower + upper + 1:
        raise ShapeError(f"solve_banded: {lower} + {upper} + 1 diagonals are needed, got shape {ab.shape}")
    n = ab.shape[1]
    full = zeros((n, n), ab.dtype)
    for k in builtins.range(-lower, upper + 1):
        row = ab[upper - k]
        full = ar.add(full, selection.diag(row[k:] if k >= 0 else row[:n + k], k))
    return solve(full, b)


def block_diag(*arrays) -> Value:
    """Matrices along the diagonal of a larger one, zeros elsewhere."""
    blocks = one_dtype([as_array(a, "block_diag") for a in arrays])
    blocks = [shaping.atleast_2d(b) for b in blocks]
    width = builtins.sum(b.shape[1] for b in blocks)
    rows, before = [], 0
    for b in blocks:
        rows.append(repeating.pad(b, ((0, 0), (before, width - before - b.shape[1]))))
        before += b.shape[1]
    return shaping.concatenate(rows, 0)


def toeplitz(c, r=None) -> Value:
    """Matrix of constant diagonals: first column c, first row r (default conj(c))."""
    c = shaping.ravel(as_array(c, "toeplitz"))
    r = (ar.conj(c) if c.dtype.kind == "c" else c) if r is None else shaping.ravel(as_array(r, "toeplitz"))
    values = shaping.concatenate([shaping.flip(r[1:]), c])
    rows = shaping.stack([values[k:k + r.shape[0]] for k in builtins.range(c.shape[0])])
    return shaping.flip(rows, 1)


matmul = products.matmul
