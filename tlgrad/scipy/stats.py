"""Densities and distribution functions under SciPy's names: `stats.norm.logpdf(x, loc, scale)`, ....

Logarithms come first (`pdf` is their exponential), so that the tails keep their relative accuracy.
Sampling is in `tlgrad.random`.
"""
from __future__ import annotations

import math

from tlgrad.core.trace import Value
from tlgrad.linalg import cholesky, eigvalsh, slogdet, triangular_solve
from tlgrad.numpy.creation import eye
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.reductions import prod, sum
from tlgrad.numpy.shaping import matrix_transpose, reshape
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import matrixfunctions, special
from tlgrad.scipy.continuous import Continuous, inside, values
from tlgrad.scipy.discrete import bernoulli, betabinom, binom, geom, nbinom
from tlgrad.scipy.laws import gennorm, gumbel_l, gumbel_r, pareto, truncnorm, vonmises, wrapcauchy
from tlgrad.special import entr as _entr
from tlgrad.special import ndtr, stdtr, xlog1py, xlogy

__all__ = ["bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "entropy", "expon", "gamma",
           "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multivariate_normal", "nbinom",
           "norm",
           "pareto", "poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy"]

_HALF_LOG_2PI = 0.9189385332046727


class Normal(Continuous):
    """Normal distribution."""

    def _logpdf(self, z):
        return ar.sub(ar.mul(-0.5, ar.mul(z, z)), _HALF_LOG_2PI)

    def _cdf(self, z):
        return ndtr(z)

    def _logcdf(self, z):
        return special.log_ndtr(z)

    def _sf(self, z):
        return ndtr(ar.neg(z))

    def _logsf(self, z):
        return special.log_ndtr(ar.neg(z))

    def ppf(self, q, loc=0, scale=1) -> Value:
        """The q-quantile."""
        q, loc, scale = values("ppf", q, loc, scale)
        return ar.add(loc, ar.mul(scale, special.ndtri(q)))


class Gamma(Continuous):
    """Gamma distribution of shape a."""
    n_shape = 1

    def _logpdf(self, z, a):
        body = lambda v: ar.sub(ar.sub(xlogy(ar.sub(a, 1.0), v), v), special.lgamma(a))
        return inside(z, lo.ge(z, 0), body)

    def _cdf(self, z, a):
        return inside(z, lo.gt(z, 0), lambda v: special.gammainc(a, v), 0.0)

    def _sf(self, z, a):
        return inside(z, lo.gt(z, 0), lambda v: special.gammaincc(a, v), 1.0)


class ChiSquare(Gamma):
    """Chi-square distribution of df degrees of freedom."""

    def _logpdf(self, z, df):
        return ar.sub(super()._logpdf(ar.mul(0.5, z), ar.mul(0.5, df)), math.log(2))

    def _cdf(self, z, df):
        return super()._cdf(ar.mul(0.5, z), ar.mul(0.5, df))

    def _sf(self, z, df):
        return super()._sf(ar.mul(0.5, z), ar.mul(0.5, df))


class Beta(Continuous):
    """Beta distribution of shapes a and b on [0, 1]."""
    n_shape = 2

    def _logpdf(self, z, a, b):
        def body(v):
            ends = ar.add(xlogy(ar.sub(a, 1.0), v), xlog1py(ar.sub(b, 1.0), ar.neg(v)))
            return ar.sub(ends, special.betaln(a, b))
        return inside(z, lo.and_(lo.ge(z, 0), lo.le(z, 1)), body)

    def _cdf(self, z, a, b):
        body = inside(z, lo.and_(lo.gt(z, 0), lo.lt(z, 1)), lambda v: special.betainc(a, b, v), 0.0)
        return lo.where(lo.ge(z, 1), 1.0, body)


class StudentT(Continuous):
    """Student's t distribution of df degrees of freedom."""
    n_shape = 1

    def _logpdf(self, z, df):
        half = ar.mul(0.5, df)
        front = ar.sub(special.lgamma(ar.add(half, 0.5)), special.lgamma(half))
        front = ar.sub(front, ar.mul(0.5, el.log(ar.mul(math.pi, df))))
        return ar.sub(front, ar.mul(ar.add(half, 0.5), el.log1p(ar.div(ar.mul(z, z), df))))

    def _cdf(self, z, df):
        return stdtr(df, z)

    def _sf(self, z, df):
        return self._cdf(ar.neg(z), df)


class Exponential(Continuous):
    """Exponential distribution."""

    def _logpdf(self, z):
        return inside(z, lo.ge(z, 0), ar.neg)

    def _cdf(self, z):
        return inside(z, lo.gt(z, 0), lambda v: ar.neg(el.expm1(ar.neg(v))), 0.0)

    def _logsf(self, z):
        return inside(z, lo.gt(z, 0), ar.neg, 0.0)


class Uniform(Continuous):
    """Uniform distribution on [loc, loc + scale]."""

    def _logpdf(self, z):
        return inside(z, lo.and_(lo.ge(z, 0), lo.le(z, 1)), lambda v: ar.mul(v, 0))

    def _cdf(self, z):
        return lo.minimum(lo.maximum(z, 0.0), 1.0)


class Laplace(Continuous):
    """Laplace distribution."""

    def _logpdf(self, z):
        return ar.sub(ar.neg(ar.abs_(z)), math.log(2))

    def _cdf(self, z):
        tail = ar.mul(0.5, el.exp(ar.neg(ar.abs_(z))))
        return lo.where(lo.gt(z, 0), ar.sub(1.0, tail), tail)


class Logistic(Continuous):
    """Logistic distribution."""

    def _logpdf(self, z):
        return ar.sub(ar.neg(z), ar.mul(2.0, el.softplus(ar.neg(z))))

    def _cdf(self, z):
        return el.logistic(z)

    def _logcdf(self, z):
        return ar.neg(el.softplus(ar.neg(z)))

    def _logsf(self, z):
        return ar.neg(el.softplus(z))


class Cauchy(Continuous):
    """Cauchy distribution."""

    def _logpdf(self, z):
        return ar.sub(-math.log(math.pi), el.log1p(ar.mul(z, z)))

    def _cdf(self, z):
        return ar.add(0.5, ar.div(el.atan(z), math.pi))


class Poisson:
    """Poisson distribution of mean mu: `logpmf`, `pmf`, `cdf`, `sf`."""

    def logpmf(self, k, mu, loc=0) -> Value:
        """log of the probability of the count k."""
        k, mu, loc = values("poisson", k, mu, loc)
        k = ar.sub(k, loc)
        ok = lo.and_(lo.ge(k, 0), lo.eq(ar.floor(k), k))
        safe = lo.where(ok, k, 0.0)
        return lo.where(ok, ar.sub(ar.sub(xlogy(safe, mu), mu), special.lgamma(ar.add(safe, 1.0))), -math.inf)

    def pmf(self, k, mu, loc=0) -> Value:
        """The probability of the count k."""
        return el.exp(self.logpmf(k, mu, loc))

    def cdf(self, k, mu, loc=0) -> Value:
        """The probability of counts up to k."""
        k, mu, loc = values("poisson", k, mu, loc)
        k = ar.floor(ar.sub(k, loc))
        safe = lo.maximum(k, 0.0)
        return lo.where(lo.ge(k, 0), special.gammaincc(ar.add(safe, 1.0), mu), 0.0)

    def sf(self, k, mu, loc=0) -> Value:
        """The probability of counts above k."""
        return ar.sub(1.0, self.cdf(k, mu, loc))


class Dirichlet:
    """Dirichlet distribution; x and alpha have their entries along the last axis of alpha, the first of x."""

    def logpdf(self, x, alpha) -> Value:
        """log of the density at a point of the simplex."""
        x, alpha = as_inexact(x, "dirichlet"), as_inexact(alpha, "dirichlet")
        terms = xlogy(ar.sub(alpha, 1.0), x)
        return ar.add(sum(ar.sub(terms, special.lgamma(alpha)), -1), special.lgamma(sum(alpha, -1)))

    def pdf(self, x, alpha) -> Value:
        """The density."""
        return el.exp(self.logpdf(x, alpha))


class MultivariateNormal:
    """Multivariate normal distribution: `logpdf`, `pdf`, `entropy`."""

    def logpdf(self, x, mean=0.0, cov=1.0, allow_singular: bool = False) -> Value:
        """log of the density at vectors x (..., n)."""
        x, mean, cov = self._arguments(x, mean, cov)
        d = ar.sub(x, mean)
        n = cov.shape[-1]
        if allow_singular:
            precision = matrixfunctions.pinv.bind(cov, rcond=1e-10)
            square = sum(ar.mul(sum(ar.mul(reshape(d, (*d.shape, 1)), precision), -2), d), -1)
            rank, log_det = self._spectrum(cov)
        else:
            factor = cholesky(cov)
            flat = reshape(d, (-1, n))
            z = triangular_solve(factor, matrix_transpose(flat), lower=True)
            square = reshape(sum(ar.mul(z, z), 0), d.shape[:-1])
            rank, log_det = float(n), slogdet(cov).logabsdet
        return ar.mul(-0.5, ar.add(ar.add(square, log_det), ar.mul(rank, 2 * _HALF_LOG_2PI)))

    def _spectrum(self, cov):
        """Rank and log of the product of the eigenvalues that are not 0."""
        w = eigvalsh(cov)
        kept = lo.gt(w, ar.mul(1e-10, w[-1]))
        return sum(lo.convert_like(kept, w)), el.log(prod(lo.where(kept, w, 1.0)))

    def _arguments(self, x, mean, cov):
        x, mean, cov = (as_inexact(v, "multivariate_normal") for v in (x, mean, cov))
        x = reshape(x, (1,)) if not x.ndim else x
        if cov.ndim < 2:
            cov = ar.mul(eye(x.shape[-1]), cov)
        return x, mean, cov

    def pdf(self, x, mean=0.0, cov=1.0, allow_singular: bool = False) -> Value:
        """The density."""
        return el.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean=None, cov=1.0) -> Value:
        """Differential entropy in nats."""
        cov = as_inexact(cov, "multivariate_normal")
        n = cov.shape[-1]
        return ar.add(ar.mul(0.5, slogdet(cov).logabsdet), n * (0.5 + _HALF_LOG_2PI))


def entropy(pk, qk=None, base=None, axis: int = 0) -> Value:
    """Entropy of normalised probabilities, or their divergence from `qk`."""
    pk = as_inexact(pk, "entropy")
    pk = ar.div(pk, sum(pk, axis, keepdims=True))
    if qk is None:
        total = sum(_entr(pk), axis)
    else:
        qk = as_inexact(qk, "entropy")
        qk = ar.div(qk, sum(qk, axis, keepdims=True))
        total = sum(ar.sub(xlogy(pk, pk), xlogy(pk, qk)), axis)
    return total if base is None else ar.div(total, math.log(base))


norm, gamma, chi2, beta, t = Normal(), Gamma(), ChiSquare(), Beta(), StudentT()
expon, uniform, laplace, logistic, cauchy = Exponential(), Uniform(), Laplace(), Logistic(), Cauchy()
poisson, dirichlet, multivariate_normal = Poisson(), Dirichlet(), MultivariateNormal()
