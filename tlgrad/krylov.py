"""Matrix-free solvers: cg and gmres, with implicit derivatives.

    x = cg(matvec, b)       dx = A^-1 (db - dA x)

The derivative is again the solution of a system with the same operator, to every order: the iterations
are never differentiated, and memory does not grow with them.
CPU, evaluated by the reference interpreter; sums inside are ordered.
"""
from __future__ import annotations

import numpy as np

from tlgrad.control.stop import stop_gradient
from tlgrad.core.aval import Zero
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr, evaluate_arrays
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, DifferentiationError, ShapeError
from tlgrad.numpy.arrays import as_array
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.products import matmul
from tlgrad.ops import arithmetic as ar
from tlgrad.ops.define import add_tangents, documented
from tlgrad.ops.index import mapped
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.stage import stage
from tlgrad.transforms.transpose import transpose_jaxpr

__all__ = ["cg", "gmres"]


def _dot(x, y) -> float:
    return np.add.accumulate(np.conj(x.ravel()) * y.ravel())[-1] if x.size else 0.0


def _size(x) -> float:
    return float(np.sqrt(abs(_dot(x, x))))


def _cg(apply, b, limit, turns, restart):
    """Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952."""
    x, r = np.zeros_like(b), b
    p, rho = r, _dot(r, r)
    for _ in range(turns):
        if np.sqrt(abs(rho)) <= limit:
            break
        q = apply(p)
        alpha = rho / _dot(p, q)
        x, r = x + alpha * p, r - alpha * q
        rho, before = _dot(r, r), rho
        p = r + (rho / before) * p
    return x


def _gmres(apply, b, limit, turns, restart):
    """Saad and Schultz, "GMRES: a generalized minimal residual algorithm", 1986; restarted."""
    x = np.zeros_like(b)
    for _ in range(turns):
        r = b - apply(x)
        size = _size(r)
        if size <= limit:
            break
        x = x + _arnoldi(apply, r / size, size, min(restart, b.size), limit)
    return x


def _arnoldi(apply, v, size, steps, limit):
    basis, h = [v], np.zeros((steps + 1, steps), v.dtype)
    y = np.zeros(0, v.dtype)
    for j in range(steps):
        w = apply(basis[j])
        for _ in range(2):                               # twice is enough (Parlett, 1980)
            for i, u in enumerate(basis):
                c = _dot(u, w)
                h[i, j] += c
                w = w - c * u
        h[j + 1, j] = _size(w)
        right = np.zeros(j + 2, v.dtype)
        right[0] = size
        y, *_ = np.linalg.lstsq(h[:j + 2, :j + 1], right, rcond=None)
        if np.linalg.norm(right - h[:j + 2, :j + 1] @ y) <= limit or abs(h[j + 1, j]) <= 1e-300:
            break
        basis.append(w / h[j + 1, j])
    return sum((c * u for c, u in zip(y, basis)), np.zeros_like(v))


_METHODS = {"cg": _cg, "gmres": _gmres}


# ---- the primitive: x = A^-1 r, linear in r ----

def _impl(*operands, forward: Jaxpr, backward: Jaxpr, method, tol, atol, turns, restart, levels):
    if levels:
        (size, flags), rest = levels[0], levels[1:]
        lanes = [_impl(*[x[n] if m else x for x, m in zip(operands, flags)], forward=forward, backward=backward,
                       method=method, tol=tol, atol=atol, turns=turns, restart=restart, levels=rest)
                 for n in range(size)]
        return np.stack(lanes)
    *consts, r = operands

    def apply(x):
        return np.asarray(evaluate_arrays(forward, [*consts, x])[0])
    with np.errstate(all="ignore"):
        return _METHODS[method](apply, np.asarray(r), max(tol * _size(r), atol), turns, restart).astype(r.dtype)


def _jvp(primals, tangents, *, forward, levels, **params):
    """x' = A^-1 (r' - A' x)."""
    *consts, r = primals
    params.update(forward=forward, levels=levels)
    x = linear_solve.bind(*primals, **params)
    right = tangents[-1]
    if any(type(t) is not Zero for t in tangents[:-1]):
        for size, flags in reversed(levels):
            forward, _ = batch_jaxpr(forward, size, flags, keep=True)
        change = jvp_jaxpr_of(forward, consts, tangents[:-1], x)
        right = add_tangents(right, ar.neg(change))
    return x, linear_solve.bind(*consts, right, **params)


def jvp_jaxpr_of(jaxpr, consts, tangents, x):
    """The derivative of a x by the operator's constants."""
    nonzero = [type(t) is not Zero for t in tangents] + [False]
    derived, _ = jvp_jaxpr(jaxpr, nonzero, keep=True)
    return eval_jaxpr(derived, [*consts, x, *[t for t in tangents if type(t) is not Zero]])[1]


def _transpose(ct, *operands, forward, backward, **params):
    if type(operands[-1]) is not Linear:
        raise DifferentiationError("linear_solve is linear in its right side only")
    bar = linear_solve.bind(*operands[:-1], ct, forward=backward, backward=forward, **params)
    return [*[None] * (len(operands) - 1), bar]


def _batch(args, axes, size, *, levels, **params):
    flags = tuple(k is not None for k in axes[:-1]) + (True,)
    values = [mapped(x, k, size) if m else x for x, k, m in zip(args, axes, flags)]
    return linear_solve.bind(*values, levels=((size, flags), *levels), **params), 0


linear_solve = documented(
    Primitive("linear_solve", impl=_impl, abstract=lambda *avals, **_: avals[-1].strong(), jvp=_jvp,
              transpose=_transpose, batch=_batch, lower=("library", "linear_solve")),
    "The solution x of a linear program applied to x = r, by iteration.", "*operands")


# ---- the functions ----

def _solve(a, b, x0, tol, atol, maxiter, restart, method) -> Value:
    b = as_inexact(b, method)
    if b.dtype.software or b.dtype.bits == 16:
        raise DTypeError(f"{method} runs in float32, float64 and complex numbers, got {b.aval}; "
                         "use tl.linalg.solve")
    matvec = a if callable(a) and not isinstance(a, Value) else _product(as_array(a, method))
    jaxpr, consts = stage(lambda v: [as_array(matvec(v), method)], [b.aval.strong()], what=method)
    out = jaxpr.outs[0].aval
    if out.shape != b.shape or out.dtype is not b.dtype:
        raise ShapeError(f"{method}: the operator gives {out} for a right side {b.aval}")
    n = len(consts)
    # the operands of the transposed program: constants, then the cotangent
    turned = transpose_jaxpr(jaxpr, [False] * n + [True])
    params = dict(forward=jaxpr, backward=turned, method=method, tol=float(tol), atol=float(atol), levels=(),
                  turns=int(maxiter or 10 * max(b.size, 1)), restart=int(restart))
    if x0 is None:
        return linear_solve.bind(*consts, b, **params)
    start = stop_gradient(as_array(x0, method))
    return ar.add(start, linear_solve.bind(*consts, ar.sub(b, as_array(matvec(start), method)), **params))


def _product(a):
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"an operator is a callable or a square matrix, got shape {a.shape}")
    return lambda v: matmul(a, v)


def cg(a, b, x0=None, *, tol: float = 1e-12, atol: float = 0.0, maxiter: int | None = None) -> Value:
    """x with a(x) = b by conjugate gradients, for a Hermitian positive definite operator.

    a: a callable x -> a x on arrays of the shape of b, or a matrix.  Stops at a residual of
    max(tol |b|, atol) or after `maxiter` turns.  Differentiable in b and in everything `a` reads, by the
    implicit function theorem.

    >>> cg(tl.tensor([[2.0, 0.0], [0.0, 4.0]]), tl.tensor([2.0, 2.0]))
    tensor([1. , 0.5], float64, shape (2,), cpu)
    """
    return _solve(a, b, x0, tol, atol, maxiter, 1, "cg")


def gmres(a, b, x0=None, *, tol: float = 1e-12, atol: float = 0.0, restart: int = 30,
          maxiter: int | None = None) -> Value:
    """x with a(x) = b by the restarted generalised minimal residual method, for any invertible operator.

    Arguments and derivatives as in `cg`; `restart` vectors are kept.

    >>> gmres(lambda v: 2 * v, tl.tensor([2.0, 4.0]))
    tensor([1., 2.], float64, shape (2,), cpu)
    """
    if restart < 1:
        raise ArgumentError(f"gmres: restart is positive, got {restart}")
    return _solve(a, b, x0, tol, atol, maxiter, restart, "gmres")
