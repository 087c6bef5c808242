"""Distributions of counts: `logpmf`, `pmf`, `cdf`, `sf`; differentiable in their parameters."""
from __future__ import annotations

import math

from tlgrad.core.trace import Value
from tlgrad.errors import ShapeError
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import special
from tlgrad.scipy.continuous import no_formula, values
from tlgrad.special import bdtr, bdtrc, nbdtr, nbdtrc, xlog1py, xlogy


class Discrete:
    """A distribution of whole numbers: subclasses give `_logpmf(k, *shape)` on their support from `first` on.

    `n_shape` parameters come first; `last(*shape)` is the greatest count or None.
    """
    n_shape, first = 1, 0

    def _parse(self, name, k, parameters, loc):
        given = list(parameters)
        shape, rest = given[:self.n_shape], given[self.n_shape:]
        if len(shape) < self.n_shape:
            raise ShapeError(f"stats.{type(self).__name__}.{name}: {self.n_shape} shape parameters are needed")
        k, loc, *shape = values(name, k, rest[0] if rest else loc, *shape)
        return ar.sub(k, loc), shape

    def logpmf(self, k, *parameters, loc=0) -> Value:
        """log of the probability of the count k; -inf outside the support."""
        k, shape = self._parse("logpmf", k, parameters, loc)
        ok = lo.and_(lo.ge(k, self.first), lo.eq(ar.floor(k), k))
        last = self._last(*shape)
        ok = ok if last is None else lo.and_(ok, lo.le(k, last))
        return lo.where(ok, self._logpmf(lo.where(ok, k, float(self.first)), *shape), -math.inf)

    def pmf(self, k, *parameters, loc=0) -> Value:
        """The probability of the count k."""
        return el.exp(self.logpmf(k, *parameters, loc=loc))

    def cdf(self, k, *parameters, loc=0) -> Value:
        """The probability of counts up to k."""
        return self._tail("_cdf", k, parameters, loc, 0.0)

    def sf(self, k, *parameters, loc=0) -> Value:
        """The probability of counts above k."""
        return self._tail("_sf", k, parameters, loc, 1.0)

    def _tail(self, name, k, parameters, loc, below):
        k, shape = self._parse(name, k, parameters, loc)
        k = ar.floor(k)
        ok = lo.ge(k, self.first)
        return lo.where(ok, getattr(self, name)(lo.where(ok, k, float(self.first)), *shape), below)

    def _last(self, *shape):
        return None

    def _logpmf(self, k, *shape):
        raise NotImplementedError(type(self).__name__)

    def _cdf(self, k, *shape):
        raise no_formula(self)

    def _sf(self, k, *shape):
        return ar.sub(1.0, self._cdf(k, *shape))


def _log_choose(n, k):
    """log of n over k: -log((n + 1) beta(n - k + 1, k + 1))."""
    return ar.neg(ar.add(el.log1p(n), special.betaln(ar.add(ar.sub(n, k), 1.0), ar.add(k, 1.0))))


class Bernoulli(Discrete):
    """0 or 1, the latter with probability p."""

    def _last(self, p):
        return 1.0

    def _logpmf(self, k, p):
        return ar.add(xlogy(k, p), xlog1py(ar.sub(1.0, k), ar.neg(p)))

    def _cdf(self, k, p):
        return lo.where(lo.ge(k, 1), 1.0, ar.sub(1.0, p))


class Binomial(Discrete):
    """Successes in n trials of probability p."""
    n_shape = 2

    def _last(self, n, p):
        return n

    def _logpmf(self, k, n, p):
        return ar.add(_log_choose(n, k), ar.add(xlogy(k, p), xlog1py(ar.sub(n, k), ar.neg(p))))

    def _cdf(self, k, n, p):
        return bdtr(k, n, p)

    def _sf(self, k, n, p):
        return bdtrc(k, n, p)


class NegativeBinomial(Discrete):
    """Failures before n successes of probability p."""
    n_shape = 2

    def _logpmf(self, k, n, p):
        front = ar.neg(ar.add(special.betaln(ar.add(k, 1.0), n), el.log(ar.add(k, n))))
        return ar.add(front, ar.add(xlogy(n, p), xlog1py(k, ar.neg(p))))

    def _cdf(self, k, n, p):
        return nbdtr(k, n, p)

    def _sf(self, k, n, p):
        return nbdtrc(k, n, p)


class Geometric(Discrete):
    """Trials of probability p up to the first success."""
    first = 1

    def _logpmf(self, k, p):
        return ar.add(el.log(p), xlog1py(ar.sub(k, 1.0), ar.neg(p)))

    def _cdf(self, k, p):
        return ar.neg(el.expm1(xlog1py(k, ar.neg(p))))

    def _sf(self, k, p):
        return el.exp(xlog1py(k, ar.neg(p)))


class BetaBinomial(Discrete):
    """Successes in n trials of a probability from the beta distribution of a and b: `logpmf`, `pmf`."""
    n_shape = 3

    def _last(self, n, a, b):
        return n

    def _logpmf(self, k, n, a, b):
        inner = ar.sub(special.betaln(ar.add(k, a), ar.add(ar.sub(n, k), b)), special.betaln(a, b))
        return ar.add(_log_choose(n, k), inner)


bernoulli, binom, nbinom = Bernoulli(), Binomial(), NegativeBinomial()
geom, betabinom = Geometric(), BetaBinomial()
