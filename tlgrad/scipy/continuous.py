"""The base of distributions with location and scale, and what they share."""
from __future__ import annotations

import math

from tlgrad.core.trace import Value
from tlgrad.errors import ShapeError, UnsupportedError
from tlgrad.numpy.arrays import as_array
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops.promote import promote


def values(name, *arguments):
    return promote([as_array(a, name) for a in arguments], name, inexact=True)


def no_formula(law) -> UnsupportedError:
    """The error for a distribution function that is not built."""
    return UnsupportedError(f"stats.{type(law).__name__} has no cdf, sf and their logarithms: there is no closed "
                            "form; sum or integrate its density")


class Continuous:
    """A distribution with location and scale: `standard` functions of z = (x - loc) / scale.

    Subclasses give `_logpdf(z, *shape)` and `_cdf(z, *shape)`; `n_shape` shape parameters come first.
    """
    n_shape = 0

    def _parse(self, name, x, parameters, loc, scale):
        given = list(parameters)
        shape, rest = given[:self.n_shape], given[self.n_shape:]
        if len(shape) < self.n_shape:
            raise ShapeError(f"stats.{type(self).__name__}.{name}: {self.n_shape} shape parameters are needed")
        loc, scale = [*rest, *(loc, scale)[len(rest):]]
        x, loc, scale, *shape = values(name, x, loc, scale, *shape)
        return ar.div(ar.sub(x, loc), scale), scale, shape

    def logpdf(self, x, *parameters, loc=0, scale=1) -> Value:
        """log of the density."""
        z, scale, shape = self._parse("logpdf", x, parameters, loc, scale)
        return ar.sub(self._logpdf(z, *shape), el.log(scale))

    def pdf(self, x, *parameters, loc=0, scale=1) -> Value:
        """The density."""
        return el.exp(self.logpdf(x, *parameters, loc=loc, scale=scale))

    def cdf(self, x, *parameters, loc=0, scale=1) -> Value:
        """The probability of values up to x."""
        z, _, shape = self._parse("cdf", x, parameters, loc, scale)
        return self._cdf(z, *shape)

    def logcdf(self, x, *parameters, loc=0, scale=1) -> Value:
        """log of `cdf`."""
        z, _, shape = self._parse("logcdf", x, parameters, loc, scale)
        return self._logcdf(z, *shape)

    def sf(self, x, *parameters, loc=0, scale=1) -> Value:
        """The probability of values above x."""
        z, _, shape = self._parse("sf", x, parameters, loc, scale)
        return self._sf(z, *shape)

    def logsf(self, x, *parameters, loc=0, scale=1) -> Value:
        """log of `sf`."""
        z, _, shape = self._parse("logsf", x, parameters, loc, scale)
        return self._logsf(z, *shape)

    def _logpdf(self, z, *shape):
        raise NotImplementedError(type(self).__name__)

    def _cdf(self, z, *shape):
        raise no_formula(self)

    def _logcdf(self, z, *shape):
        return el.log(self._cdf(z, *shape))

    def _sf(self, z, *shape):
        return ar.sub(1.0, self._cdf(z, *shape))

    def _logsf(self, z, *shape):
        return el.log(self._sf(z, *shape))


def inside(z, ok, value, outside=-math.inf):
    """`value` of z where it lies in the support, `outside` elsewhere."""
    return lo.where(ok, value(lo.where(ok, z, 0.5)), outside)
