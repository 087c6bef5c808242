"""Rows of the special functions: SciPy's values within stated ulps of mpmath, partials likewise."""
import numpy as np
from opspec import Calls, M, Scalar

from tlgrad.ops import integrals as ig
from tlgrad.ops import special as sp

inf, nan = float("inf"), float("nan")


def _ncdf(x):
    return M.erfc(-x / M.sqrt(2)) / 2


def _ndtri(y):
    return M.sqrt(2) * M.erfinv(2 * y - 1)


def _erfcx(x):
    return M.exp(x * x) * M.erfc(x)


ONE = [
    Scalar("lgamma", M.loggamma, ((3, 40),), 0.7, narrow=0.51, slope=4, curve=4,
           special=(((1.0,), 0.0), ((0.0,), inf))),
    Scalar("digamma", M.digamma, ((2, 40),), 0.8, narrow=0.51, slope=4, curve=4),
    Scalar("gamma", M.gamma, ((0.5, 7),), 0.75, narrow=0.51, slope=9, curve=None, special=(((5.0,), 24.0),)),
    Scalar("rgamma", M.rgamma, ((0.5, 7),), 4, narrow=0.51, slope=9, curve=None,
           special=(((0.0,), 0.0), ((-3.0,), 0.0)),
           singular=(((0.0,), (1.0,)), ((-1.0,), (-1.0,)), ((-2.0,), (2.0,)))),
    Scalar("erfinv", M.erfinv, ((-0.99, 0.99),), 4, narrow=0.51, slope=40, curve=None,
           special=(((1.0,), inf), ((0.0,), 0.0))),
    Scalar("erfcinv", lambda y: M.erfinv(1 - y), ((0.01, 0.9),), 9, narrow=0.51, slope=60, curve=None),
    Scalar("erfcx", _erfcx, ((-4, 4),), 6, narrow=0.51, slope=None, curve=None, special=(((0.0,), 1.0),)),
    Scalar("ndtri", _ndtri, ((0.01, 0.45),), 9, narrow=0.51, slope=40, curve=None, special=(((0.5,), 0.0),)),
    Scalar("log_ndtr", lambda x: M.log(_ncdf(x)), ((-30, 5),), 9, narrow=0.51, slope=60, curve=None),
    Scalar("i0", lambda x: M.besseli(0, x), ((0.1, 30),), 4, narrow=0.51, slope=9, curve=None,
           special=(((0.0,), 1.0),), singular=(((0.0,), (0.0,)),)),
    Scalar("i1", lambda x: M.besseli(1, x), ((0.1, 30),), 6, narrow=0.51, slope=9, curve=None,
           special=(((0.0,), 0.0),), singular=(((0.0,), (0.5,)),)),
    Scalar("i0e", lambda x: M.exp(-x) * M.besseli(0, x), ((0.1, 400),), 4, narrow=0.51, slope=200, curve=None),
    Scalar("i1e", lambda x: M.exp(-x) * M.besseli(1, x), ((0.1, 400),), 4, narrow=0.51, slope=None, curve=None),
    Scalar("j0", lambda x: M.besselj(0, x), ((0.1, 2),), 4, narrow=0.51, slope=9, curve=None,
           special=(((0.0,), 1.0),), singular=(((0.0,), (0.0,)),)),
    Scalar("j1", lambda x: M.besselj(1, x), ((0.1, 1.5),), 4, narrow=0.51, slope=9, curve=None,
           singular=(((0.0,), (0.5,)),)),
    Scalar("y0", lambda x: M.bessely(0, x), ((1.2, 2),), 9, narrow=0.51, slope=9, curve=None),
    Scalar("y1", lambda x: M.bessely(1, x), ((0.1, 1.8),), 9, narrow=0.51, slope=None, curve=None),
]

INTEGRALS = [Scalar(name, reference, ((low, high),), 30, narrow=0.51, slope=None, curve=None) for (
    name, reference, low, high) in [
        ("expi", M.ei, 0.5, 9), ("exp1", M.e1, 0.1, 9), ("erfi", M.erfi, 0.1, 2),
        ("spence", lambda z: M.polylog(2, 1 - z), 0.1, 0.9),
        ("dawsn", lambda x: M.sqrt(M.pi) / 2 * M.exp(-x * x) * M.erfi(x), 0.1, 3),
        ("fresnel_s", M.fresnels, 0.2, 1), ("fresnel_c", M.fresnelc, 0.1, 1),
        ("sine_integral", M.si, 0.1, 2), ("cosine_integral", M.ci, 0.1, 0.5),
        ("k0", lambda x: M.besselk(0, x), 0.1, 9), ("k1", lambda x: M.besselk(1, x), 0.1, 9),
        ("k0e", lambda x: M.exp(x) * M.besselk(0, x), 0.1, 99),
        ("k1e", lambda x: M.exp(x) * M.besselk(1, x), 0.1, 99),
        ("ellipk", M.ellipk, -2, 0.9), ("ellipe", M.ellipe, -2, 0.9),
        ("ellipd", lambda m: (M.ellipk(m) - M.ellipe(m)) / m, 0.1, 0.9),
        ("wrightomega", lambda x: M.lambertw(M.exp(x)), -2, 9)]]

X = np.array([0.4, 1.3, 2.6])
P = np.array([0.2, 0.55, 0.8])


def at(prim, first, *rest):
    """`prim` with its first operand held fixed."""
    def f(*x):
        return prim(first, *x)
    return f, rest, lambda *x: prim.impl(np.full(x[0].shape, first), *x)


def of_last(prim, first, second, x):
    """`prim` with its first two operands held fixed."""
    return (lambda x: prim(first, second, x), (x,),
            lambda x: prim.impl(np.full(x.shape, first), np.full(x.shape, second), x))


TWO = [
    Calls("polygamma", (at(sp.polygamma, 2.0, X),)), Calls("zeta", (at(sp.zeta, 2.5, X),)),
    Calls("beta", ((sp.beta, (X, X[::-1].copy()), sp.beta.impl),)),
    Calls("betaln", ((sp.betaln, (X, X[::-1].copy()), sp.betaln.impl),)),
    Calls("gammainc", ((sp.gammainc, (X, X[::-1].copy()), sp.gammainc.impl),), 1),
    Calls("gammaincc", ((sp.gammaincc, (X, X[::-1].copy()), sp.gammaincc.impl),), 1),
    Calls("gammainc_by_a", (at(sp.gammainc_by_a, 1.5, X),), 1),
    Calls("betainc", ((sp.betainc, (X, X[::-1].copy(), P), sp.betainc.impl),), 1),
    Calls("gammainc_by_aa", (at(sp.gammainc_by_aa, 1.5, X),), 1),
    Calls("zeta_by_s", ((lambda s, q: sp.zeta_by_s(1.0, s, q), (X + 1, P), lambda s, q: sp.zeta_by_s.impl(
        np.full(3, 1.0), s, q)),)),
    Calls("expn", (at(ig.expn, 3.0, X),)), Calls("kv", (at(ig.kv, 2.5, X),)), Calls("kve", (at(ig.kve, 2.5, X),)),
    Calls("gammaincinv", ((ig.gammaincinv, (X, P), ig.gammaincinv.impl),), 1),
    Calls("gammainccinv", ((ig.gammainccinv, (X, P), ig.gammainccinv.impl),), 1),
    Calls("betaincinv", ((ig.betaincinv, (X, X[::-1].copy(), P), ig.betaincinv.impl),), 1),
    Calls("owens_t", ((ig.owens_t, (X, P), ig.owens_t.impl),)),
    Calls("hyp1f1", (of_last(ig.hyp1f1, 0.5, 1.5, P),)),
    Calls("hyp2f1", ((lambda x: ig.hyp2f1(0.5, 1.5, 2.5, x), (P,), lambda x: ig.hyp2f1.impl(
        *[np.full(x.shape, v) for v in (0.5, 1.5, 2.5)], x)),)),
    *[Calls(f"betainc_by_{by}", (of_last(getattr(sp, f"betainc_by_{by}"), 1.5, 2.0, P),), 1)
      for by in ("a", "b", "aa", "ab", "bb")],
    Calls("jv", (at(sp.jv, 2.5, X),)), Calls("yv", (at(sp.yv, 2.5, X),)), Calls("iv", (at(sp.iv, 2.5, X),)),
    Calls("ive", (at(sp.ive, 2.5, X),)),
]

ROWS = [*ONE, *INTEGRALS, *TWO]
