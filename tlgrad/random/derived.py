"""Samples made of other samples by a formula, differentiable in their parameters where they have a density."""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError
from tlgrad.linalg import qr
from tlgrad.numpy.arrays import as_shape
from tlgrad.numpy.norms import vector_norm
from tlgrad.numpy.ordering import searchsorted
from tlgrad.numpy.reductions import cumsum, sum
from tlgrad.numpy.selection import diagonal, one_hot
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.random.bits import split
from tlgrad.random.distributions import (exponential, float_dtype, normal, open_uniform, parameters_of, rademacher,
                                         sample_shape, uniform, weibull)
from tlgrad.random.rejection import chisquare, gamma


def lognormal(key, sigma=1.0, shape=None, dtype=None) -> Value:
    """exp(sigma * z), z standard normal."""
    (sigma,) = parameters_of("lognormal", sigma, dtype=dtype)
    return el.exp(ar.mul(sigma, normal(key, sample_shape(shape, sigma, name="lognormal"), sigma.dtype)))


def rayleigh(key, scale=1.0, shape=None, dtype=None) -> Value:
    """scale * sqrt(-2 log u): the length of a normal vector in the plane."""
    (scale,) = parameters_of("rayleigh", scale, dtype=dtype)
    shape = sample_shape(shape, scale, name="rayleigh")
    return ar.mul(scale, ar.sqrt(ar.mul(2.0, exponential(key, shape, scale.dtype))))


def maxwell(key, shape=(), dtype=dtypes.float64) -> Value:
    """The length of a standard normal vector in space."""
    dtype, inside = float_dtype(dtype, "maxwell")
    return convert(vector_norm(normal(key, (*as_shape(shape, "maxwell"), 3), inside), axis=-1), dtype)


def double_sided_maxwell(key, loc=0.0, scale=1.0, shape=None, dtype=None) -> Value:
    """loc + scale * m, m of Maxwell's law with a random sign."""
    loc, scale = parameters_of("double_sided_maxwell", loc, scale, dtype=dtype)
    shape = sample_shape(shape, loc, scale, name="double_sided_maxwell")
    one, other = split(key)
    side = rademacher(other, shape, loc.dtype)
    return ar.add(loc, ar.mul(scale, ar.mul(side, maxwell(one, shape, loc.dtype))))


weibull_min = weibull


def geometric(key, p, shape=None, dtype=dtypes.int64) -> Value:
    """int64 numbers of trials of probability p up to the first success, by inversion."""
    (p,) = parameters_of("geometric", p)
    shape = sample_shape(shape, p, name="geometric")
    steps = ar.div(exponential(key, shape, p.dtype), ar.neg(el.log1p(ar.neg(p))))
    return convert(ar.add(ar.floor(steps), 1.0), dtype)


def binomial(key, n: int, p, shape=None, dtype=dtypes.int64) -> Value:
    """int64 numbers of successes in n trials of probability p; n is a Python number, each trial draws a word.

    Raises ArgumentError for another n.
    """
    (p,) = parameters_of("binomial", p)
    shape = sample_shape(shape, p, name="binomial")
    _count(n, "binomial")
    return sum(convert(lo.lt(uniform(key, (n, *shape), p.dtype), p), dtype), 0)


def _count(n, name):
    if not isinstance(n, int) or n < 0:
        raise ArgumentError(f"random.{name}: n is a Python number, not negative, got {n!r}; for many values of n "
                            "sum tl.random.bernoulli under a mask")


def multinomial(key, n: int, p, shape=()) -> Value:
    """(*shape, k) int64 counts of n draws among k classes with probabilities p; n is a Python number."""
    (p,) = parameters_of("multinomial", p)
    _count(n, "multinomial")
    u = uniform(key, (*as_shape(shape, "multinomial"), n), p.dtype)
    ends = cumsum(p)
    classes = lo.minimum(searchsorted(ends, ar.mul(u, ends[-1]), "right"), p.shape[0] - 1)
    return sum(one_hot(classes, p.shape[0], dtype=dtypes.int64), -2)


def f(key, dfnum, dfden, shape=None, dtype=None) -> Value:
    """F floats: the quotient of two chi-square samples over their degrees of freedom."""
    a, b = parameters_of("f", dfnum, dfden, dtype=dtype)
    shape = sample_shape(shape, a, b, name="f")
    top, bottom = split(key)
    return ar.div(ar.div(chisquare(top, a, shape), a), ar.div(chisquare(bottom, b, shape), b))


def triangular(key, left, mode, right, shape=None, dtype=None) -> Value:
    """Floats with a density that rises from `left` to `mode` and falls to `right`, by inversion."""
    a, c, b = parameters_of("triangular", left, mode, right, dtype=dtype)
    shape = sample_shape(shape, a, c, b, name="triangular")
    u = open_uniform(key, shape, a.dtype)
    width = ar.sub(b, a)
    low = lo.lt(u, ar.div(ar.sub(c, a), width))
    rise = ar.add(a, ar.sqrt(ar.mul(u, ar.mul(width, ar.sub(c, a)))))
    fall = ar.sub(b, ar.sqrt(ar.mul(ar.sub(1.0, u), ar.mul(width, ar.sub(b, c)))))
    return lo.where(low, rise, fall)


def wald(key, mean, shape=None, dtype=None) -> Value:
    """Wald (inverse Gaussian) floats of scale 1.

    Source: Michael, Schucany and Haas, "Generating random variates using transformations with multiple
    roots", 1976.
    """
    (m,) = parameters_of("wald", mean, dtype=dtype)
    shape = sample_shape(shape, m, name="wald")
    one, other = split(key)
    z = normal(one, shape, m.dtype)
    t = ar.mul(m, ar.mul(z, z))
    root = ar.sqrt(ar.add(ar.mul(4.0, t), ar.mul(t, t)))
    x = ar.div(ar.mul(2.0, m), ar.add(ar.add(2.0, t), root))         # the smaller root, without cancellation
    u = uniform(other, shape, m.dtype)
    return lo.where(lo.le(u, ar.div(m, ar.add(m, x))), x, ar.div(ar.mul(m, m), x))


def generalized_normal(key, p, shape=(), dtype=dtypes.float64) -> Value:
    """Floats with a density proportional to exp(-|x|^p)."""
    dtype, inside = float_dtype(dtype, "generalized_normal")
    shape = as_shape(shape, "generalized_normal")
    one, other = split(key)
    size = el.pow_(gamma(one, 1.0 / p, shape, dtype=inside), 1.0 / p)
    return convert(ar.mul(size, rademacher(other, shape, inside)), dtype)


def ball(key, d: int, p=2.0, shape=(), dtype=dtypes.float64) -> Value:
    """(*shape, d) points spread evenly over the unit ball of the p-norm.

    Source: Barthe, Guedon, Mendelson and Naor, "A probabilistic approach to the geometry of the
    l_p^n-ball", 2005.
    """
    shape = as_shape(shape, "ball")
    one, other = split(key)
    g = generalized_normal(one, p, (*shape, d), dtype)
    e = exponential(other, shape, g.dtype)
    total = ar.add(sum(el.pow_(ar.abs_(g), p), -1), e)
    return ar.div(g, el.pow_(total, 1.0 / p)[..., None])


def orthogonal(key, n: int, shape=(), dtype=dtypes.float64) -> Value:
    """(*shape, n, n) orthogonal matrices, spread evenly (Haar): the q of a normal matrix, with r positive.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups", 2007.
    """
    q, r = qr(normal(key, (*as_shape(shape, "orthogonal"), n, n), dtype))
    return ar.mul(q, ar.sign(diagonal(r, 0, -2, -1))[..., None, :])
