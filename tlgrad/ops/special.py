"""Special functions as primitives, derivatives stated as partials.

lgamma, gamma and digamma have bodies in `kernels/elementary` and the same words everywhere.  The values of the
others are SciPy's in binary64 (rounded once for narrower formats): outside the one-result rule, CPU only.

Partials are written so that their relative error stays small in the tails.
Formulas: NIST Digital Library of Mathematical Functions, chapters 5, 7, 8, 10, 25 (dlmf.nist.gov).
"""
from __future__ import annotations

from math import pi, sqrt as _sqrt

import numpy as np

from tlgrad.errors import UnsupportedError
from tlgrad.ops import hurwitz, meaning, quadrature
from tlgrad.ops.arithmetic import abs_, add, div, floor, mul, neg, sign, sqrt, sub
from tlgrad.ops.define import elementwise
from tlgrad.ops.elementary import exp, log, log1p
from tlgrad.ops.logic import eq, gt, lt, where


def _through_scipy(name):
    def run(*arrays):
        from scipy import special
        storage = arrays[-1].dtype
        wide = [np.asarray(a, np.float64) for a in arrays]
        return np.asarray(getattr(special, name)(*wide)).astype(storage)
    return run


def special(name: str, doc: str, partials, names: str | None = None, run=None):
    """Define an elementwise primitive of real numbers that SciPy evaluates.

    partials: as in `ops.define.elementwise`; None for an operand without a derivative.
    """
    meaning.INTRINSICS[name] = run or _through_scipy(name)
    return elementwise(name, doc, partials, kinds="f", names=names)


def no_derivative(name, operand, reason):
    """A partial that refuses: the derivative by this operand is not available."""
    def partial(*_):
        raise UnsupportedError(f"{name} has no derivative by its operand {operand}: {reason}")
    return partial


# ---- gamma ----

lgamma = elementwise("lgamma", "log|gamma(x)|; inf at 0, -1, -2, ....", [lambda y, x: digamma(x)], kinds="f")
digamma = elementwise("digamma", "Logarithmic derivative of the gamma function; NaN at -1, -2, ....",
                      [lambda y, x: polygamma(1.0, x)], kinds="f")
polygamma = special("polygamma", "The n-th derivative of digamma at x, n = 0, 1, 2, ....", [
    no_derivative("polygamma", "n", "it is an integer"), lambda y, n, x: polygamma(add(n, 1.0), x)],
    names="n x", run=lambda n, x: _polygamma(n, x))


def _polygamma(n, x):
    from scipy import special as sc
    n, wide = np.asarray(n, np.float64), np.asarray(x, np.float64)
    derivative = (2 * (n % 2) - 1) * sc.gamma(n + 1) * hurwitz.zeta(n + 1, wide)
    derivative = np.where((n == np.floor(n)) & (n > 0), derivative, np.nan)
    return np.asarray(np.where(n == 0, meaning.INTRINSICS["digamma"](wide), derivative)).astype(x.dtype)


gamma = elementwise("gamma", "Gamma function: (x - 1)! for x = 1, 2, ...; NaN at -1, -2, ....",
                    [lambda y, x: mul(y, digamma(x))], kinds="f")
rgamma = special("rgamma", "1 / gamma(x), entire: 0 at x = 0, -1, -2, ....", [lambda y, x: _rgamma_slope(y, x)])


def _rgamma_slope(y, x):
    """-y digamma(x); at a pole of gamma the limit, (-1)^n n! with n = -x."""
    pole = eq(y, 0)
    inner = where(pole, 1.0, x)
    n = where(pole, neg(x), 0.0)
    limit = mul(gamma(add(n, 1.0)), sub(1.0, mul(2.0, _odd(n))))
    return where(pole, limit, neg(mul(y, digamma(inner))))


def _odd(n):
    half = div(n, 2.0)
    return mul(2.0, sub(half, floor(half)))


zeta = special("zeta", "Hurwitz zeta: sum over k >= 0 of (k + q)^-s, s > 1.", [
    lambda y, s, q: zeta_by_s(1.0, s, q), lambda y, s, q: neg(mul(s, zeta(add(s, 1.0), q)))], names="s q",
    run=quadrature.in_double(hurwitz.zeta))
zeta_by_s = special("zeta_by_s", "The m-th derivative of the Hurwitz zeta function by s, m = 0, 1, 2, ....", [
    no_derivative("zeta_by_s", "m", "it is an integer"), lambda y, m, s, q: zeta_by_s(add(m, 1.0), s, q),
    lambda y, m, s, q: neg(add(mul(s, zeta_by_s(m, add(s, 1.0), q)), _lower_zeta(m, add(s, 1.0), q)))],
    names="m s q", run=quadrature.in_double(hurwitz.derivatives_by_s))


def _lower_zeta(m, s, q):
    """m times the derivative of order m - 1: what differentiating the logarithms by q gives."""
    none = eq(m, 0.0)
    return where(none, 0.0, mul(m, zeta_by_s(where(none, 0.0, sub(m, 1.0)), s, q)))


betaln = special("betaln", "log|beta(a, b)|.", [lambda y, a, b: sub(digamma(a), digamma(add(a, b))),
                                               lambda y, a, b: sub(digamma(b), digamma(add(a, b)))], names="a b")
beta = special("beta", "Beta function: gamma(a) gamma(b) / gamma(a + b).", [
    lambda y, a, b: mul(y, sub(digamma(a), digamma(add(a, b)))),
    lambda y, a, b: mul(y, sub(digamma(b), digamma(add(a, b))))], names="a b")


# ---- incomplete gamma and beta ----

def _square(x):
    return mul(x, x)


def gamma_density(a, x):
    """x^(a-1) exp(-x) / gamma(a), through logarithms; its limits at x = 0."""
    inside = gt(x, 0)
    t = where(inside, x, 1.0)
    body = exp(sub(sub(mul(sub(a, 1.0), log(t)), t), lgamma(a)))
    at_zero = where(gt(a, 1.0), 0.0, where(eq(a, 1.0), 1.0, float("inf")))
    return where(inside, body, at_zero)


gammainc = special("gammainc", "Regularised lower incomplete gamma function P(a, x).", [
    lambda y, a, x: gammainc_by_a(a, x), lambda y, a, x: gamma_density(a, x)], names="a x")
gammaincc = special("gammaincc", "Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x).", [
    lambda y, a, x: neg(gammainc_by_a(a, x)), lambda y, a, x: neg(gamma_density(a, x))], names="a x")
gammainc_by_a = special("gammainc_by_a", "Derivative of P(a, x) by a.", [
    lambda y, a, x: gammainc_by_aa(a, x),
    lambda y, a, x: mul(gamma_density(a, x), sub(log(x), digamma(a)))], names="a x",
    run=quadrature.in_double(quadrature.gammainc_by_a))
gammainc_by_aa = special("gammainc_by_aa", "The second derivative of P(a, x) by a.", [
    no_derivative("the second derivative of gammainc by a", "a", "derivatives by a are known to order 2"),
    lambda y, a, x: mul(gamma_density(a, x), sub(_square(sub(log(x), digamma(a))), polygamma(1.0, a)))],
    names="a x", run=quadrature.in_double(quadrature.gammainc_by_aa))


def beta_density(a, b, x):
    """x^(a-1) (1-x)^(b-1) / beta(a, b), through logarithms."""
    return exp(sub(add(mul(sub(a, 1.0), log(x)), mul(sub(b, 1.0), log1p(neg(x)))), betaln(a, b)))


betainc = special("betainc", "Regularised incomplete beta function I_x(a, b).", [
    lambda y, a, b, x: betainc_by_a(a, b, x), lambda y, a, b, x: betainc_by_b(a, b, x),
    lambda y, a, b, x: beta_density(a, b, x)], names="a b x")


def _betainc_by(by: str, further: dict):
    """The derivative of betainc by its parameters `by`; `further`: those by one parameter more."""
    doc = f"Derivative of I_x(a, b) by {' and '.join(by)}."
    refuse = no_derivative(f"betainc_by_{by}", "a or b", "derivatives by the parameters are known to order 2")
    partials = [(lambda k: lambda y, a, b, x: further[k]()(a, b, x))(k) if k in further else refuse for k in "ab"]

    def by_x(y, a, b, x):
        parts = {"a": sub(log(x), sub(digamma(a), digamma(add(a, b)))),
                 "b": sub(log1p(neg(x)), sub(digamma(b), digamma(add(a, b))))}
        factor = parts[by[0]]
        if len(by) == 2:
            own = {"aa": a, "bb": b}.get(by)
            spread = neg(polygamma(1.0, add(a, b)))
            factor = sub(mul(factor, parts[by[1]]), spread if own is None else add(polygamma(1.0, own), spread))
        return mul(beta_density(a, b, x), factor)
    return special(f"betainc_by_{by}", doc, [*partials, by_x], names="a b x",
                   run=quadrature.in_double(quadrature.betainc_by(by)))


betainc_by_aa, betainc_by_ab, betainc_by_bb = (_betainc_by(by, {}) for by in ("aa", "ab", "bb"))
betainc_by_a = _betainc_by("a", {"a": lambda: betainc_by_aa, "b": lambda: betainc_by_ab})
betainc_by_b = _betainc_by("b", {"a": lambda: betainc_by_ab, "b": lambda: betainc_by_bb})


# ---- error functions ----

erfinv = special("erfinv", "Inverse of erf on (-1, 1).", [lambda y, x: mul(_sqrt(pi) / 2, exp(mul(y, y)))])
erfcinv = special("erfcinv", "Inverse of erfc on (0, 2).", [lambda y, x: mul(-_sqrt(pi) / 2, exp(mul(y, y)))])
erfcx = special("erfcx", "exp(x^2) erfc(x), without underflow.",
                [lambda y, x: sub(mul(mul(2.0, x), y), 2 / _sqrt(pi))])
ndtri = special("ndtri", "Inverse of the normal distribution function, on (0, 1).",
                [lambda y, x: mul(_sqrt(2 * pi), exp(mul(0.5, mul(y, y))))])
log_ndtr = special("log_ndtr", "log of the normal distribution function, right in the left tail.", [
    lambda y, x: where(lt(x, -12.0), _tail_hazard(where(lt(x, -12.0), x, -13.0)), _hazard(y, x))])


def _hazard(y, x):
    """The normal density over the distribution function."""
    right = gt(x, 1.0)
    left = where(right, 1.0, where(lt(x, -12.0), -12.0, x))
    return where(right, mul(1 / _sqrt(2 * pi), exp(sub(mul(-0.5, mul(x, x)), y))),
                 div(_sqrt(2 / pi), erfcx(mul(-_sqrt(0.5), left))))


def _tail_hazard(x):
    """The same for x < -12, -x / (1 - t + 3 t^2 - 15 t^3 + ...) with t = 1 / x^2 (DLMF 7.12.1), whose
    derivatives do not cancel."""
    t, total, coefficients = div(1.0, mul(x, x)), None, [1.0]
    for k in range(1, 18):
        coefficients.append(-(2 * k - 1) * coefficients[-1])
    for c in reversed(coefficients):
        total = c if total is None else add(c, mul(total, t))
    return div(neg(x), total)


# ---- Bessel ----

def _asymptotic(nu, x):
    """d/dx of exp(-x) I_nu(x) for x > 30, term by term (DLMF 10.40.1)."""
    ax = abs_(x)
    total, coefficient = None, 1.0
    series = []
    for k in range(24):
        series.append(coefficient * (k + 0.5))
        coefficient *= -(4 * nu * nu - (2 * k + 1) ** 2) / ((k + 1) * 8)
    inverse = div(1.0, ax)
    for c in reversed(series):
        total = c if total is None else add(c, mul(total, inverse))
    slope = neg(mul(mul(total, inverse), div(1 / _sqrt(2 * pi), sqrt(ax))))
    return mul(sign(x), slope) if nu == 0 else slope


def _scaled_slope(nu, direct):
    def partial(y, x):
        far = gt(abs_(x), 30.0)
        near = where(far, 1.0, x)
        return where(far, _asymptotic(nu, where(far, x, 31.0)), direct(where(far, 1.0, y), near))
    return partial


i0 = special("i0", "Modified Bessel function of order 0.", [lambda y, x: i1(x)])
i1 = special("i1", "Modified Bessel function of order 1.", [lambda y, x: sub(i0(x), _over(y, x, 0.5))])
i0e = special("i0e", "exp(-|x|) i0(x).", [_scaled_slope(0, lambda y, x: sub(i1e(x), mul(sign(x), y)))])
i1e = special("i1e", "exp(-|x|) i1(x).",
              [_scaled_slope(1, lambda y, x: sub(sub(i0e(x), _over(y, x, 0.5)), mul(sign(x), y)))])


def _over(y, x, at_zero):
    """y / x, and its limit at 0."""
    flat = eq(x, 0)
    return where(flat, at_zero, div(y, where(flat, 1.0, x)))


j0 = special("j0", "Bessel function of the first kind of order 0.", [lambda y, x: neg(j1(x))])
j1 = special("j1", "Bessel function of the first kind of order 1.", [lambda y, x: sub(j0(x), _over(y, x, 0.5))])
y0 = special("y0", "Bessel function of the second kind of order 0.", [lambda y, x: neg(y1(x))])
y1 = special("y1", "Bessel function of the second kind of order 1.", [lambda y, x: sub(y0(x), div(y, x))])


def _half_difference(f, plus=False):
    def partial(y, v, x):
        low, high = f()(sub(v, 1.0), x), f()(add(v, 1.0), x)
        return mul(0.5, add(low, high) if plus else sub(low, high))
    return partial


_ORDER = "derivatives by the order have no closed form"
jv = special("jv", "Bessel function of the first kind of order v.",
             [no_derivative("jv", "v", _ORDER), _half_difference(lambda: jv)], names="v x")
yv = special("yv", "Bessel function of the second kind of order v.",
             [no_derivative("yv", "v", _ORDER), _half_difference(lambda: yv)], names="v x")
iv = special("iv", "Modified Bessel function of the first kind of order v.",
             [no_derivative("iv", "v", _ORDER), _half_difference(lambda: iv, True)], names="v x")
ive = special("ive", "exp(-|x|) iv(v, x).",
              [no_derivative("ive", "v", _ORDER),
               lambda y, v, x: sub(_half_difference(lambda: ive, True)(y, v, x), mul(sign(x), y))], names="v x")
