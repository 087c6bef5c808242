"""Samples by inversion and transformation: a fixed number of words each, differentiable in parameters.

Every function takes a key first and is a function of it: the same words for any batch.  Built of
tlgrad's elementary functions, so samples agree on all devices (truncated_normal uses SciPy's erfinv).
"""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, ShapeError
from tlgrad.linalg import cholesky
from tlgrad.numpy.arrays import as_array, as_shape
from tlgrad.numpy.creation import arange
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.ordering import argsort, searchsorted, top_k
from tlgrad.numpy.products import matvec
from tlgrad.numpy.reductions import argmax, cumsum
from tlgrad.numpy.selection import take
from tlgrad.numpy.shaping import moveaxis, reshape
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import special
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.promote import broadcast_shapes, broadcast_to
from tlgrad.random.bits import bits, check_key, open_interval, unit_interval, word_pair

_WORD = {16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


def float_dtype(dtype, name: str):
    """The dtype of a sample, and that in which it is computed (16-bit floats: float32)."""
    dtype = dtypes.as_dtype(dtype)
    if dtype.kind != "f" or dtype.bits not in (16, 32, 64) or dtype.software and dtype is not dtypes.bfloat16:
        raise DTypeError(f"random.{name}: the dtype is float16, bfloat16, float32 or float64, got {dtype}; "
                         "convert the sample for others")
    return dtype, dtypes.float32 if dtype.bits == 16 else dtype


def sample_shape(shape, *parameters, name: str) -> tuple[int, ...]:
    """The shape asked for, or that of the parameters together (which must broadcast to it)."""
    own = broadcast_shapes(*[p.shape for p in parameters], what=f"random.{name}") if parameters else ()
    if shape is None:
        return own
    shape = as_shape(shape, name)
    if broadcast_shapes(shape, own, what=f"random.{name}") != shape:
        raise ShapeError(f"random.{name}: parameters of shape {own} do not broadcast to shape {shape}")
    return shape


def parameters_of(name, *values, dtype=None):
    """Parameters as floats of one dtype (float64 for Python numbers)."""
    values = [as_inexact(v, name) for v in values]
    dtype = dtypes.as_dtype(dtype) if dtype is not None else None
    if dtype is None:
        strong = [v.dtype for v in values if not v.aval.weak]
        dtype = strong[0] if strong else dtypes.float64
        for d in strong[1:]:
            dtype = dtypes.promote_types(dtype, d)
    return [convert(v, dtype) for v in values]


def open_uniform(k, shape, dtype) -> Value:
    """Floats in the open interval (0, 1), with as many random bits as the word has."""
    return open_interval(bits(k, shape, _WORD[dtype.bits]), dtype)


def uniform(key, shape=(), dtype=dtypes.float64, minval=0.0, maxval=1.0) -> Value:
    """Floats in [minval, maxval), evenly spread; differentiable in both bounds.

    >>> uniform(tl.random.key(0), (3,)).shape
    (3,)
    """
    k = check_key(key, "uniform")
    dtype, inside = float_dtype(dtype, "uniform")
    low, high = parameters_of("uniform", minval, maxval, dtype=inside)
    shape = sample_shape(shape, low, high, name="uniform")
    u = unit_interval(bits(k, shape, _WORD[inside.bits]), inside)
    out = lo.maximum(low, ar.add(ar.mul(u, ar.sub(high, low)), low))
    return convert(broadcast_to(out, shape), dtype)


def normal(key, shape=(), dtype=dtypes.float64) -> Value:
    """Standard normal floats: sqrt(-2 log u) cos(2 pi v).

    Source: Box and Muller, "A note on the generation of random normal deviates", 1958.

    >>> normal(tl.random.key(0), (2, 3)).shape
    (2, 3)
    """
    k, shape = check_key(key, "normal"), as_shape(shape, "normal")
    dtype, inside = float_dtype(dtype, "normal")
    if inside.bits == 64:
        words = bits(k, (2, *shape), dtypes.uint64)
        first, second = words[0], words[1]
    else:
        first, second = word_pair(k, shape)
    radius = ar.sqrt(ar.mul(-2.0, el.log(open_interval(first, inside))))
    return convert(ar.mul(radius, el.cos(ar.mul(2 * math.pi, unit_interval(second, inside)))), dtype)


def randint(key, shape=(), minval=0, maxval=None, dtype=dtypes.int64) -> Value:
    """Integers minval, ..., maxval - 1, equally likely to within 2**-64 of the span.

    Raises ArgumentError when the range is empty (where it is known).
    """
    k, dtype = check_key(key, "randint"), dtypes.as_dtype(dtype)
    if maxval is None:
        minval, maxval = 0, minval
    if not dtypes.is_integer(dtype):
        raise DTypeError(f"random.randint: an integer dtype is needed, got {dtype}")
    if isinstance(minval, int) and isinstance(maxval, int) and minval >= maxval:
        raise ArgumentError(f"random.randint: the range {minval} to {maxval} is empty")
    low, high = (convert(as_array(v, "randint"), dtypes.int64) for v in (minval, maxval))
    shape = sample_shape(shape, low, high, name="randint")
    span = convert(ar.sub(high, low), dtypes.uint64)
    words = bits(k, (2, *shape), dtypes.uint64)
    # 96 random bits modulo the span: (h 2^32 + l) mod span without leaving 64 bits, for spans to 2^32
    high_part = ar.remainder(lo.shift_right(words[0], 32), span)
    joined = lo.or_(lo.shift_left(high_part, 32), lo.shift_right(words[1], 32))
    wide = lo.gt(span, 2**32)
    number = lo.where(wide, ar.remainder(words[0], span), ar.remainder(joined, span))
    return convert(ar.add(convert(number, dtypes.int64), low), dtype)


def bernoulli(key, p=0.5, shape=None) -> Value:
    """True with probability p."""
    (p,) = parameters_of("bernoulli", p)
    shape = sample_shape(shape, p, name="bernoulli")
    return lo.lt(uniform(key, shape, p.dtype), p)


def rademacher(key, shape=(), dtype=dtypes.float64) -> Value:
    """-1 or 1, equally likely."""
    return convert(ar.sub(ar.mul(convert(bernoulli(key, 0.5, as_shape(shape, "rademacher")), dtypes.int32), 2), 1),
                   dtype)


def exponential(key, shape=(), dtype=dtypes.float64) -> Value:
    """Exponential floats of rate 1: -log u."""
    dtype, inside = float_dtype(dtype, "exponential")
    return convert(ar.neg(el.log(open_uniform(key, as_shape(shape, "exponential"), inside))), dtype)


def gumbel(key, shape=(), dtype=dtypes.float64) -> Value:
    """Standard Gumbel floats: -log(-log u)."""
    dtype, inside = float_dtype(dtype, "gumbel")
    return convert(ar.neg(el.log(exponential(key, shape, inside))), dtype)


def laplace(key, shape=(), dtype=dtypes.float64) -> Value:
    """Laplace floats of location 0 and scale 1."""
    dtype, inside = float_dtype(dtype, "laplace")
    u = ar.sub(ar.mul(2.0, open_uniform(key, as_shape(shape, "laplace"), inside)), 1.0)
    return convert(ar.mul(ar.neg(ar.sign(u)), el.log1p(ar.neg(ar.abs_(u)))), dtype)


def logistic(key, shape=(), dtype=dtypes.float64) -> Value:
    """Standard logistic floats: log(u / (1 - u))."""
    dtype, inside = float_dtype(dtype, "logistic")
    u = open_uniform(key, as_shape(shape, "logistic"), inside)
    return convert(ar.sub(el.log(u), el.log1p(ar.neg(u))), dtype)


def cauchy(key, shape=(), dtype=dtypes.float64) -> Value:
    """Standard Cauchy floats: tan(pi (u - 1/2))."""
    dtype, inside = float_dtype(dtype, "cauchy")
    u = open_uniform(key, as_shape(shape, "cauchy"), inside)
    return convert(el.tan(ar.mul(math.pi, ar.sub(u, 0.5))), dtype)


def weibull(key, scale, concentration, shape=None, dtype=None) -> Value:
    """Weibull floats: scale * (-log u)^(1 / concentration); differentiable in both."""
    scale, c = parameters_of("weibull", scale, concentration, dtype=dtype)
    shape = sample_shape(shape, scale, c, name="weibull")
    return ar.mul(scale, el.pow_(exponential(key, shape, scale.dtype), ar.div(1.0, c)))


def pareto(key, b, shape=None, dtype=None) -> Value:
    """Pareto floats, at least 1, of exponent b; differentiable in b."""
    (b,) = parameters_of("pareto", b, dtype=dtype)
    shape = sample_shape(shape, b, name="pareto")
    return el.exp(ar.div(exponential(key, shape, b.dtype), b))


def truncated_normal(key, lower, upper, shape=None, dtype=dtypes.float64) -> Value:
    """Standard normal floats given to lie in [lower, upper]; differentiable in both bounds.

    By inversion: sqrt(2) erfinv(u) with u uniform between the bounds' erf.
    """
    dtype, inside = float_dtype(dtype, "truncated_normal")
    low, high = parameters_of("truncated_normal", lower, upper, dtype=inside)
    shape = sample_shape(shape, low, high, name="truncated_normal")
    root = math.sqrt(2.0)
    ends = [el.erf(ar.div(v, root)) for v in (low, high)]
    u = open_uniform(key, shape, inside)
    x = ar.mul(root, special.erfinv(ar.add(ends[0], ar.mul(u, ar.sub(ends[1], ends[0])))))
    return convert(lo.minimum(lo.maximum(x, low), high), dtype)


def multivariate_normal(key, mean, cov, shape=None, dtype=None) -> Value:
    """Normal vectors of a mean (..., n) and covariance (..., n, n): mean + cholesky(cov) z.

    Differentiable in both.  Raises SingularMatrixError for a covariance that is not positive definite.
    """
    mean, cov = parameters_of("multivariate_normal", mean, cov, dtype=dtype)
    if cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ShapeError(f"random.multivariate_normal: mean {mean.shape} and cov {cov.shape} do not fit")
    lead = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    lead = lead if shape is None else as_shape(shape, "multivariate_normal")
    z = normal(key, (*lead, mean.shape[-1]), mean.dtype)
    factor = cholesky(cov)
    return ar.add(mean, matvec(factor, z))


# ---- choices ----

def categorical(key, logits, axis: int = -1, shape=None) -> Value:
    """int64 class numbers with probabilities softmax(logits) along `axis`: argmax of logits + Gumbel."""
    (logits,) = parameters_of("categorical", logits)
    axis = normalize_axis(axis, logits.ndim, "random.categorical")
    logits = moveaxis(logits, axis, -1)
    lead = logits.shape[:-1]
    shape = lead if shape is None else as_shape(shape, "categorical")
    noise = gumbel(key, (*shape, logits.shape[-1]), logits.dtype)
    return argmax(ar.add(broadcast_to(logits, noise.shape), noise), -1)


def permutation(key, x, axis: int = 0) -> Value:
    """x (an array, or range(x) of an int) with its slices along `axis` in random order."""
    x = arange(x) if isinstance(x, (int, np.integer)) else as_array(x, "permutation")
    axis = normalize_axis(axis, x.ndim, "random.permutation")
    order = argsort(bits(key, (x.shape[axis],), dtypes.uint64))
    return take(x, order, axis)


shuffle = permutation


def choice(key, a, shape=(), replace: bool = True, p=None, axis: int = 0) -> Value:
    """Entries of a (an array, or range(a) of an int), with or without replacement, weighted by `p`.

    Raises ArgumentError when more are asked for than there are, without replacement.
    """
    a = arange(a) if isinstance(a, (int, np.integer)) else as_array(a, "choice")
    shape, axis = as_shape(shape, "choice"), normalize_axis(axis, a.ndim, "random.choice")
    n, count = a.shape[axis], math.prod(shape)
    if not n or not replace and count > n:
        raise ArgumentError(f"random.choice: {count} of {n} entries cannot be chosen"
                            + ("" if replace else " without replacement"))
    if replace and p is None:
        places = randint(key, shape, 0, n)
    elif replace:
        (p,) = parameters_of("choice", p)
        total = cumsum(p)
        u = ar.mul(uniform(key, shape, p.dtype), total[-1])
        places = lo.minimum(searchsorted(total, u, "right"), n - 1)
    elif p is None:
        places = reshape(permutation(key, n)[:count], shape)
    else:
        (p,) = parameters_of("choice", p)
        scores = ar.add(el.log(p), gumbel(key, (n,), p.dtype))
        places = reshape(top_k(scores, count)[1], shape)
    return take(a, places, axis)
