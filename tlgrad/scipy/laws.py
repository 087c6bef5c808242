"""More continuous distributions: extreme values, powers, parts of the normal, the circle."""
from __future__ import annotations

import math

from tlgrad.numpy.activations import log1mexp
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import special
from tlgrad.scipy.continuous import Continuous, inside

_HALF_LOG_2PI = 0.9189385332046727


class GumbelRight(Continuous):
    """Gumbel distribution of maxima."""

    def _logpdf(self, z):
        return ar.sub(ar.neg(z), el.exp(ar.neg(z)))

    def _cdf(self, z):
        return el.exp(self._logcdf(z))

    def _logcdf(self, z):
        return ar.neg(el.exp(ar.neg(z)))

    def _sf(self, z):
        return ar.neg(el.expm1(self._logcdf(z)))


class GumbelLeft(Continuous):
    """Gumbel distribution of minima: the mirror image of that of maxima."""

    def _logpdf(self, z):
        return gumbel_r._logpdf(ar.neg(z))

    def _cdf(self, z):
        return gumbel_r._sf(ar.neg(z))

    def _sf(self, z):
        return gumbel_r._cdf(ar.neg(z))

    def _logsf(self, z):
        return gumbel_r._logcdf(ar.neg(z))


class Pareto(Continuous):
    """Pareto distribution of exponent b, from 1 on."""
    n_shape = 1

    def _logpdf(self, z, b):
        ok = lo.ge(z, 1)
        return lo.where(ok, ar.sub(el.log(b), ar.mul(ar.add(b, 1.0), el.log(lo.where(ok, z, 1.0)))), -math.inf)

    def _cdf(self, z, b):
        return ar.neg(el.expm1(self._logsf(z, b)))

    def _sf(self, z, b):
        return el.exp(self._logsf(z, b))

    def _logsf(self, z, b):
        return ar.neg(ar.mul(b, el.log(lo.maximum(z, 1.0))))


class GeneralizedNormal(Continuous):
    """Generalised normal distribution, density proportional to exp(-|z|^b)."""
    n_shape = 1

    def _logpdf(self, z, b):
        front = ar.sub(el.log(ar.mul(0.5, b)), special.lgamma(ar.div(1.0, b)))
        return ar.sub(front, el.pow_(ar.abs_(z), b))

    def _cdf(self, z, b):
        tail = ar.mul(0.5, special.gammaincc(ar.div(1.0, b), el.pow_(ar.abs_(z), b)))
        return lo.where(lo.gt(z, 0), ar.sub(1.0, tail), tail)

    def _sf(self, z, b):
        return self._cdf(ar.neg(z), b)


def _log_mass(a, b):
    """log(Phi(b) - Phi(a)) for a < b, taken in the tail in which both lie."""
    right = lo.gt(a, 0)
    low, high = lo.where(right, ar.neg(b), a), lo.where(right, ar.neg(a), b)
    top = special.log_ndtr(high)
    return ar.add(top, log1mexp(ar.sub(top, special.log_ndtr(low))))


class TruncatedNormal(Continuous):
    """Standard normal distribution given to lie in [a, b]."""
    n_shape = 2

    def _logpdf(self, z, a, b):
        ok = lo.and_(lo.ge(z, a), lo.le(z, b))
        body = ar.sub(ar.sub(ar.mul(-0.5, ar.mul(z, z)), _HALF_LOG_2PI), _log_mass(a, b))
        return lo.where(ok, body, -math.inf)

    def _cdf(self, z, a, b):
        return el.exp(self._logcdf(z, a, b))

    def _sf(self, z, a, b):
        return el.exp(self._logsf(z, a, b))

    def _logcdf(self, z, a, b):
        """The log of the part below z, from the part above where that is smaller."""
        inner = lo.and_(lo.gt(z, a), lo.lt(z, b))
        z_safe = lo.where(inner, z, ar.mul(0.5, ar.add(a, b)))
        total = _log_mass(a, b)
        below, above = ar.sub(_log_mass(a, z_safe), total), ar.sub(_log_mass(z_safe, b), total)
        small = lo.lt(above, below)
        body = lo.where(small, log1mexp(lo.where(small, ar.neg(above), 1.0)), below)
        return lo.where(lo.le(z, a), -math.inf, lo.where(inner, body, 0.0))

    def _logsf(self, z, a, b):
        return self._logcdf(ar.neg(z), ar.neg(b), ar.neg(a))


class VonMises(Continuous):
    """Von Mises distribution of concentration kappa on the circle: `logpdf`, `pdf`."""
    n_shape = 1

    def _logpdf(self, z, kappa):
        """kappa (cos z - 1) = -2 kappa sin(z / 2)^2, without cancellation."""
        half = el.sin(ar.mul(0.5, z))
        return ar.sub(ar.mul(ar.mul(-2.0, kappa), ar.mul(half, half)),
                      ar.add(2 * _HALF_LOG_2PI, el.log(special.i0e(kappa))))


class WrappedCauchy(Continuous):
    """Wrapped Cauchy distribution of 0 < c < 1 on [0, 2 pi]: `logpdf`, `pdf`."""
    n_shape = 1

    def _logpdf(self, z, c):
        def body(v):
            half = el.sin(ar.mul(0.5, v))
            gap = ar.sub(1.0, c)
            bottom = ar.add(ar.mul(gap, gap), ar.mul(ar.mul(4.0, c), ar.mul(half, half)))
            return ar.sub(ar.sub(el.log(gap), el.log(bottom)), ar.sub(2 * _HALF_LOG_2PI, el.log1p(c)))
        return inside(z, lo.and_(lo.ge(z, 0), lo.le(z, 2 * math.pi)), body)


gumbel_r, gumbel_l, pareto, gennorm = GumbelRight(), GumbelLeft(), Pareto(), GeneralizedNormal()
truncnorm, vonmises, wrapcauchy = TruncatedNormal(), VonMises(), WrappedCauchy()
