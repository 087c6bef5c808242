"""Linear algebra: values against NumPy, derivatives against central differences, refusals."""
import numpy as np
import pytest

import tlgrad as tl
import tlgrad.linalg as L
import tlgrad.numpy as tn
from tlgrad.errors import DifferentiationError, ShapeError, SingularMatrixError

rng = np.random.default_rng(0)
A, W = rng.normal(size=(2, 4, 4))
S = A @ A.T + np.eye(4)
B = rng.normal(size=(4, 2))
T, U = rng.normal(size=(2, 5, 3))
V, P = rng.normal(size=(3, 3)), rng.normal(size=(5, 5))
SKEW = (A - A.T) * 0.1


def difference(f, x, h=1e-6):
    out = np.zeros(x.shape)
    for k in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[k] = h
        out[k] = (f(x + step).item() - f(x - step).item()) / (2 * h)
    return out


def thin(a):
    return L.svd(a, full_matrices=False)


def unit(z):
    return z[0] + 1j * z[1]


def complement(n):
    """The projector on the space of some orthonormal columns."""
    return n @ tn.conj(tn.matrix_transpose(n))


REAL = {
    "solve-a": (lambda a: tn.sum(L.solve(a, B)**2), A), "solve-b": (lambda b: tn.sum(L.solve(A, b)**2), B),
    "inv": (lambda a: tn.sum(L.inv(a) * W), A), "det": (L.det, A),
    "det-singular": (L.det, np.diag([1.0, 2.0, 0.0, 3.0])), "slogdet": (lambda a: L.slogdet(a).logabsdet, A),
    "cholesky": (lambda a: tn.sum(L.cholesky(a) * W), S),
    "lu": (lambda a: tn.sum(L.lu(a).L * W + L.lu(a).U * W.T), A),
    "lu-tall": (lambda a: tn.sum(L.lu(a).L * U) + tn.sum(L.lu(a).U * V), T),
    "lu-wide": (lambda a: tn.sum(L.lu(a).L * V) + tn.sum(L.lu(a).U * U.T), T.T),
    "lu-complex": (lambda z: tn.sum(tn.real(L.lu(unit(z)).L * (U + 1j * T))), np.stack([T, U])),
    "qr-complete": (lambda a: tn.sum(complement(L.qr(a, "complete").Q[:, 3:]) * P) + tn.sum(
        L.qr(a, "complete").Q[:, :3] * U) + tn.sum(L.qr(a, "complete").R[:3] * V), T),
    "svd-full-tall": (lambda a: tn.sum(complement(L.svd(a).U[:, 3:]) * P) + tn.sum(L.svd(a).U[:, :3]**2 * U), T),
    "svd-full-wide": (lambda a: tn.sum(complement(tn.matrix_transpose(L.svd(a).Vh[3:])) * P), T.T),
    "svd-full-complex": (lambda z: tn.sum(tn.real(complement(L.svd(unit(z)).U[:, 3:]) * (P + 1j * P.T))),
                         np.stack([T, U])),
    "eig-complex": (lambda z: tn.sum(tn.abs(L.eig(unit(z)).eigenvectors)**2 * W), np.stack([A, W])),
    "sqrtm-complex": (lambda z: tn.sum(tn.real(tl.scipy.linalg.sqrtm(unit(z)) * W)),
                      np.stack([S, SKEW])),
    "lu_solve": (lambda a: tn.sum(L.lu_solve(L.lu(a), B)**2), A),
    "qr-tall": (lambda a: tn.sum(L.qr(a).Q * U) + tn.sum(L.qr(a).R * V), T),
    "qr-wide": (lambda a: tn.sum(L.qr(a).Q * V) + tn.sum(L.qr(a).R * U.T), T.T),
    "eigh": (lambda a: tn.sum(L.eigh(a).eigenvectors**2 * W) + tn.sum(L.eigh(a).eigenvalues**3), S),
    "eigvalsh-equal": (lambda a: tn.sum(L.eigvalsh(a)**2), np.eye(4)),
    "eigvals": (lambda a: tn.sum(tn.abs(L.eigvals(a))**2), A),
    "eig": (lambda a: tn.sum(tn.abs(L.eig(a).eigenvectors)**2 * W), A),
    "svd-tall": (lambda a: tn.sum(thin(a).U**2 * U) + tn.sum(thin(a).Vh**2 * V) + tn.sum(thin(a).S**3), T),
    "svd-wide": (lambda a: tn.sum(thin(a).Vh**2 * U.T) + tn.sum(thin(a).U**2 * V), T.T),
    "pinv": (lambda a: tn.sum(L.pinv(a) * U.T), T), "lstsq": (lambda a: tn.sum(L.lstsq(a, U)[0]**2), T),
    "expm": (lambda a: tn.sum(L.expm(a) * W), A / 2), "nuclear": (lambda a: L.norm(a, "nuc"), T),
    "norm-2": (lambda a: L.norm(a, 2), T), "cond": (L.cond, T),
    "triangular": (lambda a: tn.sum(L.triangular_solve(a, B, lower=True)**2), A + 3 * np.eye(4)),
    "power": (lambda a: tn.sum(L.matrix_power(a, -3) * W), S),
    "cholesky-complex": (lambda z: tn.sum(tn.real(L.cholesky(unit(z)) * (W + 1j * A))), np.stack([S, SKEW])),
    "qr-complex": (lambda z: tn.sum(tn.real(L.qr(unit(z)).Q * (U + 1j * T))), np.stack([T, U])),
    "svd-complex": (lambda z: tn.sum(tn.abs(thin(unit(z)).U)**2 * U), np.stack([T, U])),
    "eigh-complex": (lambda z: tn.sum(tn.abs(L.eigh(unit(z)).eigenvectors)**2 * W), np.stack([S, SKEW])),
    "pinv-complex": (lambda z: tn.sum(tn.real(L.pinv(unit(z)) * (T.T + 1j * U.T))), np.stack([T, U])),
}


@pytest.mark.parametrize("name", REAL)
def test_gradient_against_differences(name):
    f, x = REAL[name]
    expected = difference(f, x)
    got = np.asarray(tl.grad(f)(x))
    assert np.abs(got - expected).max() <= 2e-8 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("name", ["solve-a", "det-singular", "cholesky", "expm", "pinv", "qr-tall", "eigh"])
def test_second_derivative_against_differences_of_gradients(name):
    f, x = REAL[name]
    direction = np.random.default_rng(1).normal(size=x.shape)
    got = np.asarray(tl.hvp(f)(x, direction))
    g, h = tl.grad(f), 1e-5
    expected = (np.asarray(g(x + h * direction)) - np.asarray(g(x - h * direction))) / (2 * h)
    assert np.abs(got - expected).max() <= 1e-6 * max(1, np.abs(expected).max())


def test_hessian_of_the_determinant_at_a_matrix_of_rank_one():
    got = np.asarray(tl.hessian(L.det)(np.diag([0.0, 0.0, 3.0])))
    right = np.zeros((3, 3, 3, 3))
    right[0, 0, 1, 1] = right[1, 1, 0, 0] = 3
    right[0, 1, 1, 0] = right[1, 0, 0, 1] = -3
    assert np.array_equal(got, right)


@pytest.mark.parametrize("f", [L.det, lambda a: tn.sum(L.inv(a) * W), lambda a: tn.sum(L.solve(a, B)),
                               lambda a: tn.sum(L.expm(a))], ids=["det", "inv", "solve", "expm"])
def test_holomorphic_derivative(f):
    c = A + 1j * W
    got = np.asarray(tl.grad(f, holomorphic=True)(c))
    for k in ((0, 0), (1, 3), (2, 0)):
        step = np.zeros((4, 4))
        step[k] = 1e-6
        expected = (f(c + step).item() - f(c - step).item()) / 2e-6
        assert abs(got[k] - expected) < 1e-7 * abs(expected)


def test_values_match_numpy():
    for name in ("inv", "det", "cholesky", "eigvalsh", "pinv", "cond", "matrix_rank", "svdvals"):
        assert np.allclose(getattr(L, name)(S), getattr(np.linalg, name)(S))
    stack = np.stack([A, S])
    for name in ("inv", "det", "eigvals"):
        assert np.allclose(tl.vmap(getattr(L, name))(stack), getattr(np.linalg, name)(stack))
    for ord in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        assert np.allclose(L.norm(T, ord), np.linalg.norm(T, ord))
        assert np.allclose(L.norm(stack, ord, (0, 2), True), np.linalg.norm(stack, ord, (0, 2), True))
    for ord in (None, 0, 1, 2, 3.5, np.inf, -np.inf):
        assert np.allclose(L.norm(T, ord, 1), np.linalg.norm(T, ord, 1))
    x, residual, rank, s = L.lstsq(T, U[:, 0])
    theirs = np.linalg.lstsq(T, U[:, 0])
    assert np.allclose(x, theirs[0]) and np.allclose(residual, theirs[1][0]) and rank.item() == theirs[2]


def test_narrow_floats_are_computed_wide():
    assert L.inv(tl.tensor(S, tl.float16)).dtype == "float16"
    assert L.det(tl.tensor(S, tl.bfloat16)).dtype == "bfloat16"


@pytest.mark.parametrize("call, error, text", [
    (lambda: L.solve(np.zeros((2, 2)), np.ones(2)), SingularMatrixError, "the matrix is singular"),
    (lambda: L.inv(np.stack([np.eye(2), np.zeros((2, 2))])), SingularMatrixError, r"matrix \(1,\) of the stack"),
    (lambda: L.cholesky(-np.eye(2)), SingularMatrixError, "not positive definite"),
    (lambda: L.solve(np.eye(3), np.ones(2)), ShapeError, "3 rows, b has 2"),
    (lambda: L.det(np.ones((2, 3))), ShapeError, "square"),
    (lambda: tl.grad(lambda a: tn.sum(L.eigh(a).eigenvectors))(np.eye(2)), DifferentiationError, "are equal"),
    (lambda: tl.grad(lambda a: tn.sum(L.svd(a).U))(T), DifferentiationError, "full_matrices=False"),
    (lambda: tl.grad(lambda a: tn.sum(L.qr(a, "complete").Q))(T), DifferentiationError, "are not unique"),
    (lambda: tl.grad(lambda a: tn.sum(L.svd(a).Vh))(T.T), DifferentiationError, "n @ n.T"),
    (lambda: tl.run(tl.grad(lambda a: tn.sum(L.svd(a).U)))(T), DifferentiationError, "full_matrices=False"),
    (lambda: tl.grad(lambda a: L.slogdet(a).logabsdet)(np.zeros((2, 2))), SingularMatrixError, "singular"),
], ids=["solve", "inv-stack", "cholesky", "rows", "square", "equal-eigenvalues", "full-svd", "complete-qr",
        "full-svd-wide", "full-svd-compiled", "logdet"])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("dtype", ["binary128", "bfloat16"])
def test_own_algorithms_in_software_formats(dtype):
    eps = {"binary128": 2.0**-112, "bfloat16": 2.0**-7}[dtype]
    s, b = tl.tensor(S.tolist(), dtype), tl.tensor(B.tolist(), dtype)

    def error(x):
        return float(tn.max(tn.abs(x)).item())
    limit = 400 * eps
    assert error(s @ L.solve(s, b) - b) < limit
    l = L.cholesky(s)
    assert error(l @ l.T - s) < limit
    q, r = L.qr(s)
    assert error(q @ r - s) < limit
    perm, lower, upper = L.lu(s)
    assert error(lower @ upper - s[perm]) < limit
    assert abs(float(L.det(s).item()) / np.linalg.det(S) - 1) < max(limit, 1e-13)
    w, v = L.eigh(s)
    assert error(s @ v - v * w) < limit and error(v.T @ v - tn.eye(4, dtype=dtype)) < limit
    u, sizes, vh = L.svd(tl.tensor(T.tolist(), dtype), full_matrices=False)
    assert error((u * sizes) @ vh - tl.tensor(T.tolist(), dtype)) < limit
    assert np.allclose(np.asarray([float(x.item()) for x in sizes]), np.linalg.svd(T)[1], rtol=max(limit, 1e-13))
    assert abs(float(L.slogdet(s).logabsdet.item()) - np.linalg.slogdet(S)[1]) < max(limit, 1e-13)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3), (0, 0, 0), (2, 3, 4, 4)], ids=str)
def test_determinants_of_stacks_and_of_nothing(shape):
    x = np.random.default_rng(1).standard_normal(shape)
    for f in (L.det, tl.run(L.det)):
        assert f(x).shape == shape[:-2] and np.allclose(f(x), np.linalg.det(x))
    assert tl.grad(lambda x: tn.sum(L.det(x)))(x).shape == shape


def test_full_factors_in_every_transform_and_format():
    square = L.svd(T)
    assert square.U.shape == (5, 5) and np.allclose(square.U.T @ square.U, np.eye(5))
    f = lambda a: tn.sum(complement(L.svd(a).U[:, 3:]) * P)
    assert np.allclose(tl.jacfwd(f)(T), tl.grad(f)(T)) and np.allclose(tl.run(tl.grad(f))(T), tl.grad(f)(T))
    stack = np.stack([T, U])
    assert np.allclose(tl.vmap(tl.grad(f))(stack)[1], tl.grad(f)(U))
    assert np.allclose(L.qr(stack, "complete").Q[1], np.linalg.qr(U, "complete")[0])
    t = tl.tensor(T.tolist(), "binary128")
    for n in (L.svd(t).U, L.qr(t, "complete").Q):
        assert tn.max(tn.abs(n.T @ n - tn.eye(5, dtype="binary128"))).item() < 1e-31
        assert tn.max(tn.abs(n[:, 3:].T @ t)).item() < 1e-31


def test_gradient_of_a_solve_in_binary128():
    s, b = tl.tensor(S.tolist(), "binary128"), tl.tensor(B.tolist(), "binary128")
    wide = tl.grad(lambda a: tn.sum(L.solve(a, b)))(s)
    narrow = np.asarray(tl.grad(lambda a: tn.sum(L.solve(a, B)))(S))
    assert np.abs(np.array([[float(v.item()) for v in row] for row in wide]) - narrow).max() < 1e-13


def test_equations_between_arrays():
    a, b = np.random.default_rng(3).normal(size=(2, 3, 6)), np.random.default_rng(4).normal(size=(2, 3))
    assert np.allclose(L.tensorsolve(a, b), np.linalg.tensorsolve(a, b))
    c = a.reshape(6, 2, 3)
    assert np.allclose(L.tensorinv(c, 1), np.linalg.tensorinv(c, 1))


def test_gradients_of_spectra_and_determinants_in_binary128():
    s = tl.tensor(S.tolist(), "binary128")
    for f in (lambda a: tn.sum(L.eigvalsh(a)**2), L.det, lambda a: tn.sum(L.eigh(a).eigenvectors**4),
              lambda a: tn.sum(L.svdvals(a)**3)):
        wide, narrow = tl.grad(f)(s), np.asarray(tl.grad(f)(S))
        wide = np.array([[float(v.item()) for v in row] for row in wide])
        assert np.abs(wide - narrow).max() < 1e-12 * np.abs(narrow).max()
