"""Integral, elliptic and hypergeometric functions and inverses of distribution functions, as primitives:
values by SciPy in binary64, derivatives stated as partials.  Library-backed: outside the one-result rule.

Formulas: NIST Digital Library of Mathematical Functions, chapters 6, 7, 8, 10, 13, 15, 19 (dlmf.nist.gov).
"""
from __future__ import annotations

from math import pi, sqrt as _sqrt

from tlgrad.ops.arithmetic import abs_, add, div, mul, neg, sub
from tlgrad.ops.elementary import cos, erf, exp, log1p, sin
from tlgrad.ops.logic import eq, lt, where
from tlgrad.ops.quadrature import in_double
from tlgrad.ops.special import (beta_density, betainc_by_a, betainc_by_b, gamma_density, gammainc_by_a,
                                no_derivative, special)


def _scipy(name, pick=None):
    """A SciPy function, or one of the results of one, on binary64 arrays."""
    def run(*arrays):
        from scipy import special as sc
        out = getattr(sc, name)(*arrays)
        return out if pick is None else out[pick]
    return in_double(run)


# ---- exponential, trigonometric and Fresnel integrals ----

expi = special("expi", "Ei(x): the integral of exp(t) / t up to x, a principal value.",
               [lambda y, x: div(exp(x), x)])
exp1 = special("exp1", "E_1(x): the integral of exp(-t) / t from x > 0 on.",
               [lambda y, x: neg(div(exp(neg(x)), x))])
expn = special("expn", "E_n(x): the integral over t > 1 of exp(-x t) / t^n, n = 0, 1, 2, ....", [
    no_derivative("expn", "n", "it is an integer"),
    lambda y, n, x: neg(where(eq(n, 0.0), add(y, div(y, x)), expn(where(eq(n, 0.0), 1.0, sub(n, 1.0)), x)))],
    names="n x")
dawsn = special("dawsn", "Dawson's integral exp(-x^2) times the integral of exp(t^2) from 0 to x.",
                [lambda y, x: sub(1.0, mul(mul(2.0, x), y))])
erfi = special("erfi", "-i erf(i x).", [lambda y, x: mul(2 / _sqrt(pi), exp(mul(x, x)))])


def _quarter(x):
    return mul(pi / 2, mul(x, x))


fresnel_s = special("fresnel_s", "The integral of sin(pi t^2 / 2) from 0 to x.",
                    [lambda y, x: sin(_quarter(x))], run=_scipy("fresnel", 0))
fresnel_c = special("fresnel_c", "The integral of cos(pi t^2 / 2) from 0 to x.",
                    [lambda y, x: cos(_quarter(x))], run=_scipy("fresnel", 1))


def _polynomial(coefficients, x):
    """c_0 + c_1 x + c_2 x^2 + ...."""
    total = None
    for c in reversed(coefficients):
        total = c if total is None else add(c, mul(x, total))
    return total


def _over_own(f, x, series, limit):
    """f(x) / x, where |x| < limit by its series, so that every derivative is right at 0."""
    near = lt(abs_(x), limit)
    far = where(near, 1.0, x)
    return where(near, _polynomial(series, where(near, x, 0.0)), div(f(far), far))


_SINC = (1.0, 0.0, -1 / 6, 0.0, 1 / 120, 0.0, -1 / 5040, 0.0, 1 / 362880, 0.0, -1 / 39916800)
_LOG1P = tuple((-1) ** k / (k + 1) for k in range(10))
sine_integral = special("sine_integral", "Si(x): the integral of sin(t) / t from 0 to x.",
                        [lambda y, x: _over_own(sin, x, _SINC, 0.05)], run=_scipy("sici", 0))
cosine_integral = special("cosine_integral", "Ci(x): minus the integral of cos(t) / t from x on.",
                          [lambda y, x: div(cos(x), x)], run=_scipy("sici", 1))
spence = special("spence", "The dilogarithm: the integral of log(t) / (1 - t) from 1 to z.",
                 [lambda y, z: neg(_over_own(log1p, sub(z, 1.0), _LOG1P, 0.01))])


# ---- modified Bessel functions of the second kind ----

k0 = special("k0", "Modified Bessel function of the second kind of order 0.", [lambda y, x: neg(k1(x))])
k1 = special("k1", "Modified Bessel function of the second kind of order 1.",
             [lambda y, x: neg(add(k0(x), div(y, x)))])
k0e = special("k0e", "exp(x) k0(x).", [lambda y, x: sub(y, k1e(x))])
k1e = special("k1e", "exp(x) k1(x).", [lambda y, x: sub(sub(y, k0e(x)), div(y, x))])


def _minus_mean(f):
    return lambda y, v, x: mul(-0.5, add(f()(sub(v, 1.0), x), f()(add(v, 1.0), x)))


_ORDER = no_derivative("kv", "v", "derivatives by the order have no closed form")
kv = special("kv", "Modified Bessel function of the second kind of order v.",
             [_ORDER, _minus_mean(lambda: kv)], names="v x")
kve = special("kve", "exp(x) kv(v, x).",
              [_ORDER, lambda y, v, x: add(y, _minus_mean(lambda: kve)(y, v, x))], names="v x")


# ---- complete elliptic integrals, of the parameter m ----

ellipk = special("ellipk", "Complete elliptic integral of the first kind, m < 1.",
                 [lambda y, m: div(sub(y, ellipd(m)), mul(2.0, sub(1.0, m)))])
ellipe = special("ellipe", "Complete elliptic integral of the second kind, m <= 1.",
                 [lambda y, m: mul(-0.5, ellipd(m))])


def _ellipd_slope(y, m):
    """(K - (2 - m) D) / (2 m (1 - m)); by its series where that cancels."""
    near = lt(abs_(m), 1e-3)
    safe = where(near, 0.5, m)
    far = div(sub(ellipk(safe), mul(sub(2.0, safe), ellipd(safe))), mul(mul(2.0, safe), sub(1.0, safe)))
    return where(near, _polynomial(_ELLIPD_SERIES[1:], where(near, m, 0.0)), far)


def _ellipd_series(n):
    """Coefficients of D'(m), D = pi/4 sum of (1/2)_k (3/2)_k / ((2)_k k!) m^k."""
    out, c = [], pi / 4
    for k in range(n):
        out.append(k * c)
        c *= (0.5 + k) * (1.5 + k) / ((2 + k) * (1 + k))
    return out


_ELLIPD_SERIES = _ellipd_series(8)


def _ellipd(m):
    from scipy.special import elliprd
    return elliprd(0.0, 1.0 - m, 1.0) / 3


ellipd = special("ellipd", "D(m) = (K(m) - E(m)) / m, without its cancellation.", [_ellipd_slope],
                 run=in_double(_ellipd))


# ---- hypergeometric functions ----

_PARAMETER = "derivatives by the parameters have no closed form"
hyp1f1 = special("hyp1f1", "Kummer's confluent hypergeometric function.", [
    no_derivative("hyp1f1", "a", _PARAMETER), no_derivative("hyp1f1", "b", _PARAMETER),
    lambda y, a, b, x: mul(div(a, b), hyp1f1(add(a, 1.0), add(b, 1.0), x))], names="a b x")
hyp2f1 = special("hyp2f1", "Gauss's hypergeometric function.", [
    *[no_derivative("hyp2f1", k, _PARAMETER) for k in "abc"],
    lambda y, a, b, c, x: mul(div(mul(a, b), c), hyp2f1(add(a, 1.0), add(b, 1.0), add(c, 1.0), x))],
    names="a b c x")


# ---- inverses: the partials of the inverse function ----

gammaincinv = special("gammaincinv", "The x with gammainc(a, x) = p.", [
    lambda x, a, p: neg(div(gammainc_by_a(a, x), gamma_density(a, x))),
    lambda x, a, p: div(1.0, gamma_density(a, x))], names="a p")
gammainccinv = special("gammainccinv", "The x with gammaincc(a, x) = p.", [
    lambda x, a, p: neg(div(gammainc_by_a(a, x), gamma_density(a, x))),
    lambda x, a, p: div(-1.0, gamma_density(a, x))], names="a p")
betaincinv = special("betaincinv", "The x with betainc(a, b, x) = p.", [
    lambda x, a, b, p: neg(div(betainc_by_a(a, b, x), beta_density(a, b, x))),
    lambda x, a, b, p: neg(div(betainc_by_b(a, b, x), beta_density(a, b, x))),
    lambda x, a, b, p: div(1.0, beta_density(a, b, x))], names="a b p")


# ---- others ----

owens_t = special("owens_t", "Owen's T(h, a): the chance that X > h and 0 < Y < a X, X and Y standard normal.", [
    lambda y, h, a: mul(mul(-0.5 / _sqrt(2 * pi), exp(mul(-0.5, mul(h, h)))), erf(mul(_sqrt(0.5), mul(a, h)))),
    lambda y, h, a: div(exp(mul(-0.5, mul(mul(h, h), add(1.0, mul(a, a))))), mul(2 * pi, add(1.0, mul(a, a))))],
    names="h a")
wrightomega = special("wrightomega", "The w with w + log(w) = x.", [lambda y, x: div(y, add(1.0, y))])
