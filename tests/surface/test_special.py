"""Special functions: derivatives in every argument against mpmath, limits at hard points, tails."""
import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special as scipy_special

import tlgrad as tl
import tlgrad.special as S
from tlgrad.errors import UnsupportedError

M = mpmath.MPContext()
M.dps = 40
inf = math.inf

#: name, arguments, reference, arguments with a derivative, relative bound
CASES = [
    ("gammainc", [(0.5, 0.1), (2.5, 2.0), (10.0, 30.0), (0.01, 1e-3), (100.0, 90.0)],
     lambda a, x: M.gammainc(a, 0, x, regularized=True), (0, 1), 1e-12),
    ("gammaincc", [(0.5, 3.0), (2.5, 9.0), (10.0, 40.0), (100.0, 180.0)],
     lambda a, x: M.gammainc(a, x, M.inf, regularized=True), (0, 1), 1e-12),
    ("betainc", [(2.0, 3.0, 0.1), (0.5, 0.7, 0.9), (30.0, 4.0, 0.6), (0.05, 1.0, 1e-6)],
     lambda a, b, x: M.betainc(a, b, 0, x, regularized=True), (0, 1, 2), 1e-12),
    ("betaln", [(0.3, 2.5), (20.0, 2.5)], lambda a, b: M.log(M.beta(a, b)), (0, 1), 1e-13),
    ("polygamma", [(1.0, 0.3), (5.0, 20.0), (1.0, -100.3), (2.0, -1e6 + 0.25)], M.polygamma, (1,), 1e-13),
    ("zeta", [(3.0, 0.3), (1.5, 20.0)], M.zeta, (0, 1), 1e-13),
    ("log_ndtr", [(-200.0,), (-40.0,), (-1.0,), (0.5,), (6.0,)], lambda x: M.log(M.ncdf(x)), (0,), 1e-13),
    ("i0e", [(0.5,), (20.0,), (200.0,), (1e6,)], lambda x: M.exp(-x) * M.besseli(0, x), (0,), 2e-13),
    ("i1e", [(0.5,), (20.0,), (200.0,), (1e6,)], lambda x: M.exp(-x) * M.besseli(1, x), (0,), 2e-13),
    ("logit", [(1e-12,), (0.3,), (0.5,), (0.6,), (0.999,)], lambda p: M.log(p / (1 - p)), (0,), 1e-13),
    ("xlogy", [(0.5, 3.0)], lambda x, y: x * M.log(y), (0, 1), 1e-15),
    ("xlog1py", [(0.5, 1e-12)], lambda x, y: x * M.log1p(y), (0, 1), 1e-15),
    ("entr", [(0.4,), (3.0,)], lambda x: -x * M.log(x), (0,), 1e-15),
    ("rel_entr", [(0.4, 1.4), (2.0, 2.1)], lambda x, y: x * M.log(x / y), (0, 1), 1e-13),
    ("kl_div", [(0.4, 1.4)], lambda x, y: x * M.log(x / y) - x + y, (0, 1), 1e-13),
    ("exprel", [(1e-9,), (0.5,), (20.0,)], lambda x: M.expm1(x) / x, (0,), 1e-10),
    ("jn", [(2.0, 3.0)], M.besselj, (1,), 1e-13),
    ("expi", [(0.5,), (-2.0,), (20.0,)], M.ei, (0,), 1e-14),
    ("exp1", [(0.5,), (20.0,)], M.e1, (0,), 1e-14), ("expn", [(2.0, 1.5)], M.expint, (1,), 1e-14),
    ("dawsn", [(0.3,), (5.0,)], lambda x: M.sqrt(M.pi) / 2 * M.exp(-x * x) * M.erfi(x), (0,), 1e-13),
    ("spence", [(0.3,), (1.0,), (1.005,), (1.5,)], lambda z: M.polylog(2, 1 - z).real, (0,), 1e-14),
    ("k0", [(0.3,), (9.0,)], lambda x: M.besselk(0, x), (0,), 1e-14),
    ("k1e", [(0.3,), (9.0,)], lambda x: M.exp(x) * M.besselk(1, x), (0,), 1e-14),
    ("kn", [(2.0, 1.5)], M.besselk, (1,), 1e-14),
    ("ellipk", [(1e-4,), (0.5,), (-3.0,)], M.ellipk, (0,), 1e-14),
    ("ellipe", [(1e-5,), (0.5,), (-3.0,)], M.ellipe, (0,), 1e-14),
    ("wrightomega", [(1.0,), (-5.0,)], lambda x: M.lambertw(M.exp(x)).real, (0,), 1e-14),
    ("owens_t", [(0.7, 1.3)], lambda h, a: M.quad(lambda t: M.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a])
     / (2 * M.pi), (0, 1), 1e-14),
    ("hyp1f1", [(0.5, 1.5, 0.7)], M.hyp1f1, (2,), 1e-14),
    ("hyp2f1", [(0.5, 1.5, 2.5, 0.3)], M.hyp2f1, (3,), 1e-14),
    ("betaincc", [(2.0, 3.0, 0.9)], lambda a, b, x: M.betainc(a, b, x, 1, regularized=True), (0, 1, 2), 1e-13),
    ("chdtrc", [(3.0, 40.0)], lambda v, x: M.gammainc(v / 2, x / 2, M.inf, regularized=True), (0, 1), 1e-13),
    ("boxcox", [(2.0, 0.3), (2.0, 0.0)], lambda x, a: (x**a - 1) / a if a else M.log(x), (0,), 1e-14),
    ("huber", [(1.0, 3.0), (2.0, 0.5)], lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2), (1,),
     1e-15),
    ("pseudo_huber", [(1.0, 1e-9)], lambda d, r: d * d * (M.sqrt(1 + (r / d)**2) - 1), (1,), 1e-14),
    ("ive", [(2.5, 3.0)], lambda v, x: M.exp(-x) * M.besseli(v, x), (1,), 1e-13),
]
POINTS = [(name, args, *rest) for name, points, *rest in CASES for args in points]
IDS = [f"{p[0]}{p[1]}" for p in POINTS]


@pytest.mark.parametrize("name, args, reference, which, bound", POINTS, ids=IDS)
def test_values_and_derivatives_in_all_arguments(name, args, reference, which, bound):
    f = getattr(S, name)
    expected = reference(*map(M.mpf, args))
    assert abs(f(*args).item() - expected) <= bound * abs(expected)
    for k in which:
        slope = M.diff(lambda t: reference(*[t if i == k else M.mpf(v) for i, v in enumerate(args)]), args[k])
        assert abs(tl.grad(f, argnums=k)(*args).item() - slope) <= bound * abs(slope)


def test_x_log_y_is_linear_in_x_at_zero():
    assert [g.item() for g in tl.grad(S.xlogy, argnums=(0, 1))(0.0, 2.0)] == [math.log(2), 0]
    assert tl.grad(S.entr)(0.0).item() == inf and S.entr(0.0).item() == 0
    assert S.entr(-1.0).item() == -inf and math.isnan(S.xlogy(0.0, math.nan).item())


def test_reciprocal_gamma_is_smooth_at_the_poles():
    assert [tl.grad(S.rgamma)(-float(n)).item() for n in range(4)] == [1, -1, 2, -6]


def test_inverses_of_distribution_functions_differentiate():
    for inverse, f, args in ((S.gammaincinv, S.gammainc, (2.5, 0.3)), (S.gammainccinv, S.gammaincc, (2.5, 1e-9)),
                             (S.betaincinv, S.betainc, (2.0, 3.0, 0.4))):
        x = inverse(*args).item()
        slopes = tl.grad(f, argnums=tuple(range(len(args))))(*args[:-1], x)
        found = tl.grad(inverse, argnums=tuple(range(len(args))))(*args)
        right = [-s.item() / slopes[-1].item() for s in slopes[:-1]] + [1 / slopes[-1].item()]
        assert [g.item() for g in found] == pytest.approx(right, rel=1e-12)
        assert f(*args[:-1], x).item() == pytest.approx(args[-1], rel=1e-12)


def test_quotients_have_every_derivative_at_0():
    """sin(x) / x and log(1 + d) / d, whose formulas are 0 / 0 there."""
    d = lambda f, n: f if n == 0 else tl.grad(d(f, n - 1))
    assert [d(lambda x: S.sici(x)[0], n)(0.0).item() for n in (1, 2, 3)] == pytest.approx([1, 0, -1 / 3])
    assert [d(S.spence, n)(1.0).item() for n in (1, 2, 3)] == pytest.approx([-1, 1 / 2, -2 / 3])
    assert d(S.ellipk, 2)(0.0).item() == pytest.approx(9 * math.pi / 64)


def test_distribution_functions_have_the_values_of_scipy():
    for name, args in {"bdtr": (3, 7, 0.3), "bdtrc": (3, 7, 0.3), "fdtr": (3.0, 4.0, 2.0), "gdtr": (2.0, 3.0, 1.0),
                       "gdtrc": (2.0, 3.0, 9.0), "nbdtr": (3, 4, 0.3), "nbdtrc": (3, 4, 0.3), "pdtr": (3.0, 2.0),
                       "pdtrc": (3.0, 2.0), "stdtr": (3.0, 2.5), "chdtri": (3.0, 0.2), "chdtr": (3.0, 2.0),
                       "inv_boxcox": (2.0, 0.3), "inv_boxcox1p": (2.0, 0.3), "exp10": (2.5,)}.items():
        assert getattr(S, name)(*args).item() == pytest.approx(getattr(scipy_special, name)(*args), rel=1e-14)
    for name in ("fresnel", "sici"):
        assert [v.item() for v in getattr(S, name)(0.7)] == list(getattr(scipy_special, name)(0.7))


def test_divergences_at_their_edges():
    assert S.kl_div(0.0, 2.0).item() == 2 and S.rel_entr(1.0, 0.0).item() == inf
    assert S.rel_entr(0.0, 0.0).item() == 0 and S.rel_entr(-1.0, 1.0).item() == inf
    p = np.linspace(0.1, 3, 30)
    assert (np.asarray(S.kl_div(p, p * (1 + 1e-9))) >= -1e-16).all()


def test_polygamma_has_whole_orders():
    found = tl.special.polygamma(tl.tensor([0.0, 1.0, 1.5, -1.0]), 2.0)
    assert found[0] == tl.special.digamma(2.0)
    assert np.isnan(np.asarray(found)).tolist() == [False, False, True, True]


def test_signs_of_gamma():
    x = np.array([-0.5, -1.5, 2.0, -2.5])
    assert np.array_equal(S.gammasgn(x), scipy_special.gammasgn(x))


def test_logsumexp_with_weights():
    x, b = np.array([1.0, 2.0, -inf]), np.array([0.5, 0.0, 3.0])
    assert S.logsumexp(x, b=b).item() == pytest.approx(scipy_special.logsumexp(x, b=b), rel=1e-15)
    assert tl.grad(lambda w: S.logsumexp(x[:2], b=w))(np.array([1.0, 1.0])).tolist() == pytest.approx(
        np.exp(x[:2]) / np.exp(x[:2]).sum())
    value, sign = S.logsumexp(np.array([0.0, 0.0]), b=np.array([1.0, -3.0]), return_sign=True)
    assert value.item() == pytest.approx(math.log(2)) and sign.item() == -1


def test_missing_derivatives_say_so():
    with pytest.raises(UnsupportedError, match="operand v"):
        tl.grad(lambda v: S.jn(v, 1.0))(2.0)
    with pytest.raises(UnsupportedError, match="to order 2"):
        tl.grad(tl.hessian(lambda a: S.gammainc(a, 1.0)))(2.0)
    with pytest.raises(UnsupportedError, match="to order 2"):
        tl.grad(tl.hessian(lambda a: S.betainc(a, 1.0, 0.5)))(2.0)


def _betainc(a, b, x):
    return M.betainc(a, b, 0, x, regularized=True)


#: function, reference, points, bound of the second derivatives
SECOND = [
    (S.gammainc, lambda a, x: M.gammainc(a, 0, x, regularized=True),
     [(0.5, 0.1), (2.5, 2.0), (10.0, 30.0), (0.01, 1e-3), (100.0, 130.0)], 1e-13),
    (S.betainc, _betainc, [(2.0, 3.0, 0.1), (0.5, 0.7, 0.9), (30.0, 4.0, 0.6), (0.05, 1.0, 1e-6)], 1e-13),
    (S.zeta, M.zeta, [(1.01, 0.5), (3.0, 0.3), (2.5, 20.0), (30.0, 0.05)], 1e-14),
    (S.log_ndtr, lambda x: M.log(M.erfc(-x / M.sqrt(2)) / 2),
     [(-1e4,), (-200.0,), (-12.5,), (-11.9,), (-1.0,), (3.0,)], 1e-14),
    (S.stdtr, lambda v, t: M.betainc(v / 2, 0.5, 0, v / (v + t * t), regularized=True) / 2,
     [(3.0, -1.5), (30.0, -8.0)], 1e-12),
    (S.fdtrc, lambda n, d, x: 1 - _betainc(n / 2, d / 2, n * x / (n * x + d)), [(3.0, 4.0, 50.0)], 1e-12),
]


@pytest.mark.parametrize("f, reference, point, bound", [(f, r, x, b) for f, r, xs, b in SECOND for x in xs],
                         ids=lambda v: getattr(v, "__name__", None) or str(v))
def test_second_derivatives_in_all_arguments(f, reference, point, bound):
    found = tl.hessian(lambda v: f(*[v[k] for k in range(len(point))]))(tl.tensor(point))
    for i, j in itertools.combinations_with_replacement(range(len(point)), 2):
        orders = [0] * len(point)
        orders[i] += 1
        orders[j] += 1
        with M.workdps(80):
            slope = M.diff(reference, tuple(map(M.mpf, point)), tuple(orders))
        assert abs(found[i, j].item() - slope) <= bound * abs(slope)


@pytest.mark.parametrize("point", [(1.001, 1.0), (1.5, 1e6), (4.0, 0.01), (2.0, 1.0)])
def test_zeta_by_its_exponent(point):
    d = S.zeta
    for order in (1, 2, 3):
        d = tl.grad(d)
        right = M.zeta(*map(M.mpf, point), order)
        assert abs(d(*point).item() - right) <= 4e-15 * abs(right)


def test_scipy_ufuncs_on_traced_values():
    f = lambda x: np.sum(scipy_special.gammaln(x) * scipy_special.expit(x))
    x = np.array([0.5, 2.5])
    sigmoid = 1 / (1 + np.exp(-x))
    right = scipy_special.digamma(x) * sigmoid + scipy_special.gammaln(x) * sigmoid * (1 - sigmoid)
    assert np.allclose(tl.grad(f)(x), right, rtol=1e-14)


def test_staged_batched_and_narrow():
    assert tl.vmap(S.gammainc, (0, None))(tl.tensor([1.0, 2.0]), 0.5).shape == (2,)
    assert tl.run(S.entr)(0.3).item() == S.entr(0.3).item()
    assert S.gammaln(tl.tensor(3.0, "bfloat16")).item() == 0.69140625
