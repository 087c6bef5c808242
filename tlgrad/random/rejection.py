"""Samples by acceptance and rejection, one stream of words for each place: the same for any batch.

The gamma sample and what is made of it differentiate in their parameters by implicit
reparameterisation (Figurnov, Mohamed and Mnih, 2018): dx/da = -(dP(a, x)/da) / density.
"""
from __future__ import annotations

import math

from tlgrad.control.custom import custom_jvp
from tlgrad.control.stop import stop_gradient
from tlgrad.control.while_loop import while_loop
from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import DTypeError, ShapeError
from tlgrad.numpy.arrays import as_array, as_shape
from tlgrad.numpy.creation import zeros
from tlgrad.numpy.exponentials import softmax
from tlgrad.numpy.reductions import all
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import special
from tlgrad.ops.convert import convert
from tlgrad.ops.promote import broadcast_to
from tlgrad.random.bits import (check_key, lane_keys, open_interval, split, threefry2x32, unit_interval)
from tlgrad.random.distributions import float_dtype, normal, open_uniform, parameters_of, sample_shape


def _turn_words(keys, turn, stream: int):
    """Two words for every lane in one turn of a loop; `stream` tells draws of a turn apart."""
    turn = convert(turn, dtypes.uint32)
    return threefry2x32(keys[..., 0], keys[..., 1], turn, convert(as_array(stream, ""), dtypes.uint32))


def _normal_and_uniform(keys, turn):
    """A normal number and a uniform one in (0, 1) for every lane, in float64."""
    first, second = _turn_words(keys, turn, 0)
    third, fourth = _turn_words(keys, turn, 1)
    wide = lo.or_(lo.shift_left(convert(third, dtypes.uint64), 32), convert(fourth, dtypes.uint64))
    radius = ar.sqrt(ar.mul(-2.0, el.log(open_interval(first, dtypes.float64))))
    angle = ar.mul(2 * math.pi, unit_interval(convert(second, dtypes.uint32), dtypes.float32))
    return ar.mul(radius, el.cos(convert(angle, dtypes.float64))), open_interval(wide, dtypes.float64)


def _accepted(keys, shape, propose):
    """The first accepted proposal of every lane: propose(turn) -> (value, accept)."""
    def body(state):
        turn, done, value = state
        new, accept = propose(turn)
        return turn + 1, lo.or_(done, accept), lo.where(lo.and_(accept, lo.not_(done)), new, value)
    start = (zeros((), dtypes.int32), zeros(shape, dtypes.bool_), zeros(shape, dtypes.float64))
    return while_loop(lambda state: lo.not_(all(state[1])), body, start)[2]


def _standard_gamma(keys, a):
    """Gamma floats for a >= 1 (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000)."""
    d = ar.sub(a, 1 / 3)
    c = ar.div(1 / 3, ar.sqrt(d))

    def propose(turn):
        x, u = _normal_and_uniform(keys, turn)
        v = ar.add(1.0, ar.mul(c, x))
        cube = ar.mul(ar.mul(v, v), v)
        positive = lo.gt(v, 0)
        log_v = el.log(lo.where(positive, cube, 1.0))
        limit = ar.add(ar.mul(0.5, ar.mul(x, x)), ar.mul(d, ar.add(ar.sub(1.0, cube), log_v)))
        return ar.mul(d, cube), lo.and_(positive, lo.lt(el.log(u), limit))
    return _accepted(keys, a.shape, propose)


@custom_jvp
def _log_gamma_sample(a, keys, log_u):
    """log of a gamma float: that of a + 1, less -log(u) / a (for a < 1, without underflow)."""
    small = lo.lt(a, 1.0)
    g = _standard_gamma(keys, lo.where(small, ar.add(a, 1.0), a))
    return ar.add(el.log(g), lo.where(small, ar.div(log_u, lo.where(small, a, 1.0)), 0.0))


@_log_gamma_sample.defjvp
def _log_gamma_rule(primals, tangents):
    """d log x / da = -(dP/da) / (x density(x)); for tiny x the limit (-log x - 1/a + psi(a)) / a... by log u."""
    a, keys, log_u = primals
    y = _log_gamma_sample(a, keys, log_u)
    x = el.exp(y)
    tiny = lo.lt(x, 1e-200)
    safe = lo.where(tiny, 1.0, x)
    weight = el.exp(ar.sub(ar.sub(ar.mul(a, el.log(safe)), safe), special.lgamma(a)))
    near = ar.div(ar.sub(special.digamma(ar.add(a, 1.0)), y), a)          # P ~ x^a / gamma(a + 1)
    slope = lo.where(tiny, near, ar.neg(ar.div(special.gammainc_by_a(a, safe), weight)))
    return y, ar.mul(slope, tangents[0])


def loggamma(key, a, shape=None, dtype=None) -> Value:
    """log of `gamma`, without underflow for small a; differentiable in a."""
    (a,) = parameters_of("loggamma", a, dtype=dtype)
    dtype, _ = float_dtype(a.dtype, "loggamma")
    k = check_key(key, "loggamma")
    shape = sample_shape(shape, a, name="loggamma")
    k1, k2 = split(k)
    wide = broadcast_to(convert(a, dtypes.float64), shape)
    log_u = el.log(open_uniform(k2, shape, dtypes.float64))
    return convert(_log_gamma_sample(wide, lane_keys(k1, shape), log_u), dtype)


def gamma(key, a, shape=None, dtype=None) -> Value:
    """Gamma floats of shape parameter a and scale 1; differentiable in a.

    >>> gamma(tl.random.key(0), 2.5, (3,)).shape
    (3,)
    """
    return el.exp(loggamma(key, a, shape, dtype))


def beta(key, a, b, shape=None, dtype=None) -> Value:
    """Beta floats in (0, 1) of two gamma samples; differentiable in a and b."""
    a, b = parameters_of("beta", a, b, dtype=dtype)
    shape = sample_shape(shape, a, b, name="beta")
    k1, k2 = split(check_key(key, "beta"))
    return el.logistic(ar.sub(loggamma(k1, a, shape), loggamma(k2, b, shape)))


def dirichlet(key, alpha, shape=None, dtype=None) -> Value:
    """Points (..., n) of the simplex, of concentrations alpha (..., n); differentiable in alpha."""
    (alpha,) = parameters_of("dirichlet", alpha, dtype=dtype)
    if not alpha.ndim:
        raise ShapeError("random.dirichlet: alpha has at least one axis, got shape ()")
    lead = alpha.shape[:-1] if shape is None else as_shape(shape, "dirichlet")
    return softmax(loggamma(key, alpha, (*lead, alpha.shape[-1])), -1)


def chisquare(key, df, shape=None, dtype=None) -> Value:
    """Chi-square floats of df degrees of freedom; differentiable in df."""
    (df,) = parameters_of("chisquare", df, dtype=dtype)
    return ar.mul(2.0, gamma(key, ar.mul(0.5, df), shape))


def t(key, df, shape=None, dtype=None) -> Value:
    """Student's t floats of df degrees of freedom; differentiable in df."""
    (df,) = parameters_of("t", df, dtype=dtype)
    shape = sample_shape(shape, df, name="t")
    k1, k2 = split(check_key(key, "t"))
    return ar.mul(normal(k1, shape, df.dtype), ar.sqrt(ar.div(df, chisquare(k2, df, shape))))


# ---- poisson ----

def _small_poisson(keys, lam):
    """Counts for lam < 10: uniforms multiplied until the product falls below exp(-lam) (Knuth)."""
    limit = ar.neg(lam)

    def body(state):
        turn, log_product, count = state
        first, second = _turn_words(keys, turn, 2)
        wide = lo.or_(lo.shift_left(convert(first, dtypes.uint64), 32), convert(second, dtypes.uint64))
        log_product = ar.add(log_product, el.log(open_interval(wide, dtypes.float64)))
        going = lo.gt(log_product, limit)
        return turn + 1, log_product, ar.add(count, convert(going, dtypes.float64))
    start = (zeros((), dtypes.int32), zeros(lam.shape, dtypes.float64), zeros(lam.shape, dtypes.float64))

    def going_on(state):
        return lo.not_(all(lo.le(state[1], limit)))
    return while_loop(going_on, body, start)[2]


def _large_poisson(keys, lam):
    """Counts for lam >= 10 (Hormann, "The transformed rejection method for Poisson variables", 1993, PTRS)."""
    root, log_lam = ar.sqrt(lam), el.log(lam)
    b = ar.add(0.931, ar.mul(2.53, root))
    a = ar.add(-0.059, ar.mul(0.02483, b))
    inverse = ar.add(1.1239, ar.div(1.1328, ar.sub(b, 3.4)))
    v_r = ar.sub(0.9277, ar.div(3.6224, ar.sub(b, 2.0)))

    def propose(turn):
        words = [_turn_words(keys, turn, s) for s in (3, 4)]
        u, v = (open_interval(lo.or_(lo.shift_left(convert(x, dtypes.uint64), 32), convert(y, dtypes.uint64)),
                              dtypes.float64) for x, y in words)
        u = ar.sub(u, 0.5)
        us = ar.sub(0.5, ar.abs_(u))
        k = ar.floor(ar.add(ar.add(ar.mul(ar.add(ar.div(ar.mul(2.0, a), us), b), u), lam), 0.43))
        quick = lo.and_(lo.ge(us, 0.07), lo.le(v, v_r))
        out = lo.or_(lo.lt(k, 0), lo.and_(lo.lt(us, 0.013), lo.gt(v, us)))
        safe = lo.maximum(k, 0.0)
        left = el.log(ar.div(ar.mul(v, inverse), ar.add(ar.div(a, ar.mul(us, us)), b)))
        right = ar.sub(ar.sub(ar.mul(safe, log_lam), lam), special.lgamma(ar.add(safe, 1.0)))
        return k, lo.or_(quick, lo.and_(lo.not_(out), lo.le(left, right)))
    return _accepted(keys, lam.shape, propose)


def poisson(key, lam, shape=None, dtype=dtypes.int64) -> Value:
    """Poisson counts of mean lam (below 2**31); no derivative.

    Raises DTypeError for a dtype that is not an integer one.
    """
    dtype = dtypes.as_dtype(dtype)
    if not dtypes.is_integer(dtype):
        raise DTypeError(f"random.poisson: an integer dtype is needed, got {dtype}")
    (lam,) = parameters_of("poisson", lam, dtype=dtypes.float64)
    lam = stop_gradient(lam)
    shape = sample_shape(shape, lam, name="poisson")
    lam = broadcast_to(lam, shape)
    keys = lane_keys(check_key(key, "poisson"), shape)
    small = lo.lt(lam, 10.0)
    few = _small_poisson(keys, lo.where(small, lam, 0.0))
    many = _large_poisson(keys, lo.where(small, 1e3, lam))
    return convert(lo.where(small, few, many), dtype)
