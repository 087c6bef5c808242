"""SciPy's names: values against SciPy, derivatives against differences."""
import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.stats

import tlgrad as tl
import tlgrad.scipy.linalg as L
from tlgrad.errors import ShapeError, UnsupportedError
from tlgrad.scipy import integrate, signal, stats

rng = np.random.default_rng(0)
X = np.array([-1.3, 0.2, 0.7, 2.5])
P = np.array([0.1, 0.4, 0.6, 0.97])
A, B, Q = rng.normal(size=(3, 3, 3))
S = A @ A.T + np.eye(3)

DENSITIES = [
    ("norm", X, (0.3, 1.7)), ("gamma", X**2 + 0.1, (2.5,)), ("gamma", X**2 + 0.1, (2.5, 0.0, 2.0)),
    ("chi2", X**2 + 0.1, (3.0,)), ("beta", P, (2.0, 3.5)), ("t", X, (4.0, 0.1, 2.0)), ("expon", X**2, (0.0, 2.0)),
    ("uniform", P, (0.0, 2.0)), ("laplace", X, (0.1, 2.0)), ("logistic", X, (0.1, 2.0)), ("cauchy", X, (0.1, 2.0))]
DENSITIES += [
    ("gumbel_r", X, (0.1, 2.0)), ("gumbel_l", X, (0.1, 2.0)), ("pareto", X**2 + 1.1, (2.5,)),
    ("gennorm", X, (3.0, 0.1, 2.0)), ("truncnorm", P, (0.05, 1.2)), ("truncnorm", P - 9.3, (-10.0, -8.2)),
    ("truncnorm", P + 30, (30.0, 31.0))]
#: counts with their parameters
COUNTS = [("bernoulli", (0.3,)), ("binom", (9.0, 0.3)), ("nbinom", (2.5, 0.3)), ("geom", (0.3,)),
          ("betabinom", (9.0, 2.0, 3.5)), ("poisson", (2.5,))]
FUNCTIONS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name, x, args", DENSITIES, ids=[f"{d[0]}-{k}" for k, d in enumerate(DENSITIES)])
def test_distributions(name, x, args, function):
    found = getattr(getattr(stats, name), function)(x, *args)
    assert np.allclose(found, getattr(getattr(scipy.stats, name), function)(x, *args), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name, x, args", DENSITIES, ids=[f"{d[0]}-{k}" for k, d in enumerate(DENSITIES)])
def test_log_densities_differentiate_in_every_parameter(name, x, args):
    if name == "uniform":
        args = args[1:]
        f = lambda x, scale: stats.uniform.logpdf(x, 0.0, scale)
    else:
        f = getattr(stats, name).logpdf
    tl.testing.check_grads(lambda x, *args: tl.sum(f(x, *args)), (x, *args), order=1, rtol=1e-7)


@pytest.mark.parametrize("name, x, args", DENSITIES, ids=[f"{d[0]}-{k}" for k, d in enumerate(DENSITIES)])
def test_the_derivative_of_a_distribution_function_is_the_density(name, x, args):
    slope = tl.grad(lambda x: tl.sum(getattr(stats, name).cdf(x, *args)))(x)
    assert np.allclose(slope, getattr(stats, name).pdf(x, *args), rtol=1e-11)


@pytest.mark.parametrize("name, args", COUNTS, ids=[c[0] for c in COUNTS])
def test_laws_of_counts(name, args):
    k = np.array([0.0, 1.0, 2.0, 5.0, 9.0, 10.0, -1.0, 1.5])
    mine, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for f in ("pmf", "logpmf", "cdf", "sf") if name != "betabinom" else ("pmf", "logpmf"):
        at = k[:-1] if f in ("pmf", "logpmf") and name in ("bernoulli", "nbinom") else k
        assert np.allclose(getattr(mine, f)(at, *args), getattr(theirs, f)(at, *args), rtol=1e-11, atol=1e-300), f
    assert mine.logpmf(3.0, *args, loc=2).item() == pytest.approx(theirs.logpmf(3, *args, loc=2), rel=1e-12)
    real = args if name != "binom" and name != "betabinom" else args[1:]
    f = lambda *p: mine.logpmf(1.0, *args[:len(args) - len(real)], *p)
    tl.testing.check_grads(f, real, order=2, rtol=1e-6)


def test_laws_on_the_circle_and_laws_without_a_distribution_function():
    for name, x, args in (("vonmises", X, (2.5,)), ("vonmises", X, (900.0,)), ("wrapcauchy", X + 1.4, (0.4,))):
        mine, theirs = getattr(stats, name), getattr(scipy.stats, name)
        assert np.allclose(mine.logpdf(x, *args), theirs.logpdf(x, *args), rtol=1e-12)
        tl.testing.check_grads(lambda x, c: tl.sum(mine.logpdf(x, c)), (x, *args), order=1, rtol=1e-6)
        with pytest.raises(UnsupportedError, match="integrate its density"):
            mine.cdf(x, *args)
    with pytest.raises(ShapeError, match="2 shape parameters"):
        stats.binom.pmf(1, 2)


def test_the_middle_of_students_t():
    assert tl.grad(lambda x: stats.t.cdf(x, 3.0))(0.0).item() == pytest.approx(scipy.stats.t.pdf(0, 3), rel=1e-14)


def test_tails_of_the_normal_law_keep_their_accuracy():
    assert stats.norm.logcdf(-40.0).item() == pytest.approx(scipy.stats.norm.logcdf(-40), rel=1e-14)
    assert tl.grad(stats.norm.logsf)(40.0).item() == pytest.approx(-40.02496884720816, rel=1e-12)


def test_poisson_dirichlet_and_multivariate_normal():
    k, mu = np.array([0.0, 2.0, 5.0, -1.0, 1.5]), 2.5
    for f in ("pmf", "logpmf", "cdf"):
        assert np.allclose(getattr(stats.poisson, f)(k, mu), getattr(scipy.stats.poisson, f)(k, mu), rtol=1e-13)
    alpha, point = np.array([1.5, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
    assert stats.dirichlet.logpdf(point, alpha).item() == pytest.approx(scipy.stats.dirichlet.logpdf(point, alpha))
    x, m = rng.normal(size=(4, 3)), np.ones(3)
    assert np.allclose(stats.multivariate_normal.logpdf(x, m, S), scipy.stats.multivariate_normal.logpdf(x, m, S))
    flat = np.outer(m, m)
    assert np.allclose(stats.multivariate_normal.logpdf(m * 2, m, flat, allow_singular=True),
                       scipy.stats.multivariate_normal.logpdf(m * 2, m, flat, allow_singular=True))
    own = scipy.stats.multivariate_normal(m, S).entropy()
    assert stats.multivariate_normal.entropy(m, S).item() == pytest.approx(own)
    tl.testing.check_grads(lambda x, m, r: tl.sum(stats.multivariate_normal.logpdf(x, m, r @ r.T + np.eye(3))),
                           (x, m, A), order=1, rtol=1e-7)
    assert stats.entropy(P).item() == pytest.approx(scipy.stats.entropy(P))
    assert stats.entropy(P, P[::-1].copy(), 2).item() == pytest.approx(scipy.stats.entropy(P, P[::-1], 2))


@pytest.mark.parametrize("f, args", [
    (lambda a: tl.sum(L.sqrtm(a @ a.T + np.eye(3)) * B), (A,)),
    (lambda a, b, q: tl.sum(L.solve_sylvester(a, b, q)**2), (S, S + 1, Q)),
    (lambda ab, b: tl.sum(L.solve_banded((1, 1), ab, b)**2),
     (rng.normal(size=(3, 5)) + [[0], [4], [0]], rng.normal(size=5))),
    (lambda a, b: tl.sum(L.cho_solve(L.cho_factor(a @ a.T + np.eye(3)), b)**2), (A, B)),
    (lambda a, b: tl.sum(L.solve_triangular(a + 4 * np.eye(3), b, trans=1, lower=True)**2), (A, B)),
    (lambda c, r: tl.sum(L.toeplitz(c, r)**2), (X, P))],
    ids=["sqrtm", "sylvester", "banded", "cholesky", "triangular", "toeplitz"])
def test_linear_algebra_gradients(f, args):
    tl.testing.check_grads(f, args, order=1, rtol=1e-7)


def test_linear_algebra_values():
    assert np.allclose(L.sqrtm(S), scipy.linalg.sqrtm(S)) and L.sqrtm(-S).dtype == "complex128"
    assert np.allclose(L.solve_sylvester(A, S, Q), scipy.linalg.solve_sylvester(A, S, Q))
    ab = rng.normal(size=(4, 6)) + [[0], [0], [5], [0]]
    assert np.allclose(L.solve_banded((1, 2), ab, np.ones(6)), scipy.linalg.solve_banded((1, 2), ab, np.ones(6)))
    assert np.allclose(L.block_diag(A, P, [[1.0]]), scipy.linalg.block_diag(A, P, [[1.0]]))
    assert np.allclose(L.toeplitz(X, P), scipy.linalg.toeplitz(X, P))
    with pytest.raises(ShapeError, match="diagonals"):
        L.solve_banded((1, 1), A[:2], B)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    a, b = rng.normal(size=(5, 6)), rng.normal(size=(3, 2))
    assert np.allclose(signal.convolve(a, b, mode), scipy.signal.convolve(a, b, mode))
    assert np.allclose(signal.correlate(a, b + 1j * b, mode), scipy.signal.correlate(a, b + 1j * b, mode))
    c = rng.normal(size=(3, 4, 2))
    mixed = signal.convolve(a[:3], c, mode, axes=([1], [2]), dot_axes=([0], [0]))
    right = sum(scipy.signal.convolve(a[i], c[i, 2], mode) for i in range(3))
    assert np.allclose(mixed[2], right)


def test_odeint_value_and_gradients():
    t = np.linspace(0.0, 2.0, 5)
    y = integrate.odeint(lambda y, t, k: -k * y + tl.sin(t) * 0, np.array([1.0, 2.0]), t, (1.5,))
    assert np.allclose(y, np.exp(-1.5 * t)[:, None] * [1.0, 2.0], rtol=1e-6)
    g = tl.grad(lambda k: integrate.odeint(lambda y, t, k: -k * y, 1.0, t, (k,))[-1])(1.5)
    assert g.item() == pytest.approx(-2 * np.exp(-3.0), rel=1e-6)


@pytest.mark.parametrize("solver, matrix", [(L.cg, S), (L.gmres, A + 4 * np.eye(3))], ids=["cg", "gmres"])
def test_matrix_free_solvers(solver, matrix):
    b = X[:3]
    assert np.allclose(solver(matrix, b), np.linalg.solve(matrix, b))
    assert np.allclose(solver(lambda v: matrix @ v, b, x0=np.ones(3)), np.linalg.solve(matrix, b))
    ours = tl.grad(lambda a, b: tl.sum(solver(a, b)**2), argnums=(0, 1))(matrix, b)
    dense = tl.grad(lambda a, b: tl.sum(L.solve(a, b)**2), argnums=(0, 1))(matrix, b)
    assert all(np.allclose(x, y) for x, y in zip(ours, dense))
    second = tl.hessian(lambda s: tl.sum(solver(matrix * s, b)))(2.0).item()
    assert second == pytest.approx(tl.hessian(lambda s: tl.sum(L.solve(matrix * s, b)))(2.0).item())
    lanes = np.stack([b, 2 * b])
    assert np.allclose(tl.vmap(lambda v: solver(matrix, v))(lanes), np.linalg.solve(matrix, lanes.T).T)
    got = tl.grad(lambda m: tl.sum(tl.vmap(lambda v: solver(m, v))(lanes)**2))(matrix)
    assert np.allclose(got, tl.grad(lambda m: tl.sum(L.solve(m, lanes.T)**2))(matrix))


def test_a_solver_refuses_an_operator_of_another_shape():
    with pytest.raises(ShapeError, match="operator gives"):
        L.cg(lambda v: v[:2], X)
