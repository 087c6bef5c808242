"""Special functions under SciPy's names, differentiable in every argument that has a derivative.

Values come from SciPy in binary64 (rounded once for narrower formats; CPU, outside the one-result
rule), except those made of tlgrad's own elementary functions: erf, erfc, expit, logit, xlogy, entr,
softmax and their kin.
"""
from __future__ import annotations

import math

import numpy as np

from tlgrad.control.custom import custom_jvp
from tlgrad.core.trace import Value
from tlgrad.numpy.arrays import as_array
from tlgrad.numpy.elementwise import as_inexact, sinc
from tlgrad.numpy.exponentials import log_softmax, logsumexp, softmax
from tlgrad.numpy.reductions import sum
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import integrals
from tlgrad.ops import special as prim
from tlgrad.ops.promote import promote
from tlgrad.special.distributions import (bdtr, bdtrc, betaincc, btdtr, chdtr, chdtrc, fdtr, fdtrc, gdtr, gdtrc,
                                          nbdtr, nbdtrc, pdtr, pdtrc, stdtr)

__all__ = ["bdtr", "bdtrc", "beta", "betainc", "betaincc", "betaincinv", "betaln", "binom", "boxcox",
           "boxcox1p", "btdtr", "cbrt", "chdtr", "chdtrc", "chdtri", "comb", "cospi", "dawsn", "digamma",
           "ellipe", "ellipk", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "exp1",
           "exp10", "exp2", "expi", "expit", "expm1", "expn", "exprel", "factorial", "fdtr",
           "fdtrc", "fresnel", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv",
           "gammaln", "gammasgn", "gdtr", "gdtrc", "huber", "hyp1f1", "hyp2f1", "i0", "i0e", "i1",
           "i1e", "inv_boxcox", "inv_boxcox1p", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k0e",
           "k1", "k1e", "kl_div", "kn", "kv", "kve", "lgamma", "log1p", "log_expit", "log_ndtr",
           "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "nbdtr", "nbdtrc",
           "ndtr", "ndtri", "owens_t", "pdtr", "pdtrc", "poch", "polygamma", "pseudo_huber", "psi",
           "rel_entr", "rgamma", "round", "sici", "sinc", "sinpi", "softmax", "spence", "stdtr",
           "wrightomega", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "zeta"]

erf, erfc = el.erf, el.erfc
cbrt, exp2, expm1, log1p, round = el.cbrt, el.exp2, el.expm1, el.log1p, ar.round_
expit, sinpi, cospi = el.logistic, el.sinpi, el.cospi
lgamma = gammaln = loggamma = prim.lgamma
digamma = psi = prim.digamma
gamma, rgamma = prim.gamma, prim.rgamma
beta, betaln, betainc = prim.beta, prim.betaln, prim.betainc
gammainc, gammaincc = prim.gammainc, prim.gammaincc
erfinv, erfcinv, erfcx = prim.erfinv, prim.erfcinv, prim.erfcx
ndtri, log_ndtr = prim.ndtri, prim.log_ndtr
i0, i1, i0e, i1e = prim.i0, prim.i1, prim.i0e, prim.i1e
j0, j1, y0, y1 = prim.j0, prim.j1, prim.y0, prim.y1


def _number_first(function):
    """A Bessel function of an order that is a number or array, as SciPy takes it."""
    def call(v, x):
        v, x = promote((as_array(v, function.name), as_array(x, function.name)), function.name, inexact=True)
        return function(v, x)
    call.__name__ = call.__qualname__ = function.name
    call.__doc__ = function.__doc__ + "  Differentiable in x."
    return call


jv = jn = _number_first(prim.jv)
yv = yn = _number_first(prim.yv)
iv, ive = _number_first(prim.iv), _number_first(prim.ive)


def polygamma(n, x) -> Value:
    """The n-th derivative of `digamma` at x; n = 0, 1, 2, ...; differentiable in x.

    >>> polygamma(1, tl.tensor(1.0))
    tensor(1.6449340668482266, float64, shape (), cpu)
    """
    n, x = promote((as_array(n, "polygamma"), as_array(x, "polygamma")), "polygamma", inexact=True)
    return prim.polygamma(n, x)


def zeta(x, q=1.0) -> Value:
    """Hurwitz zeta function: sum over k >= 0 of (k + q)^-x, for x > 1; q = 1 is Riemann's.

    Differentiable in both, to any order.

    >>> zeta(2.0, tl.tensor(1.0))
    tensor(1.6449340668482266, float64, shape (), cpu)
    """
    return prim.zeta(as_array(x, "zeta"), q)


def gammasgn(x) -> Value:
    """Sign of gamma(x); 0 at its poles (its derivative is 0)."""
    x = as_inexact(x, "gammasgn")
    below = ar.floor(x)
    odd = lo.ne(ar.remainder(below, 2.0), 0)
    side = lo.where(lo.and_(lo.lt(x, 0), odd), -1.0, 1.0)
    pole = lo.and_(lo.lt(x, 0), lo.eq(below, x))
    return ar.mul(lo.where(pole, 0.0, side), lo.convert_like(lo.eq(x, x), x))


def factorial(n, exact: bool = False) -> Value:
    """n! = gamma(n + 1); 0 for n < 0."""
    n = as_inexact(n, "factorial")
    return lo.where(lo.lt(n, 0), 0.0, prim.gamma(ar.add(lo.where(lo.lt(n, 0), 0.0, n), 1.0)))


def binom(n, k) -> Value:
    """Binomial coefficient 1 / ((n + 1) beta(n - k + 1, k + 1)), for real n and k."""
    n, k = as_inexact(n, "binom"), as_inexact(k, "binom")
    log_beta = prim.betaln(ar.add(ar.sub(n, k), 1.0), ar.add(k, 1.0))
    return el.exp(ar.neg(ar.add(el.log1p(n), log_beta)))


comb = binom


def poch(z, m) -> Value:
    """Rising factorial gamma(z + m) / gamma(z), for z > 0 and z + m > 0."""
    z, m = as_inexact(z, "poch"), as_inexact(m, "poch")
    return el.exp(ar.sub(prim.lgamma(ar.add(z, m)), prim.lgamma(z)))


def multigammaln(a, d: int) -> Value:
    """log of the multivariate gamma function of dimension d."""
    a = as_inexact(a, "multigammaln")
    steps = as_array(np.arange(d) / 2, "multigammaln")
    terms = prim.lgamma(ar.sub(a[..., None], steps))
    return ar.add(sum(terms, -1), d * (d - 1) / 4 * math.log(math.pi))


def ndtr(x) -> Value:
    """Normal distribution function, accurate in both tails.

    >>> ndtr(tl.tensor(0.0))
    tensor(0.5, float64, shape (), cpu)
    """
    return ar.mul(0.5, el.erfc(ar.mul(-math.sqrt(0.5), as_inexact(x, "ndtr"))))


def log_expit(x) -> Value:
    """log(expit(x)) = -softplus(-x)."""
    return ar.neg(el.softplus(ar.neg(as_array(x, "log_expit"))))


def logit(p) -> Value:
    """log(p / (1 - p)), the inverse of expit; accurate near 1/2 and in both tails.

    >>> logit(tl.tensor(0.5))
    tensor(0.0, float64, shape (), cpu)
    """
    p = as_inexact(p, "logit")
    near = lo.and_(lo.gt(p, 0.3), lo.lt(p, 0.65))
    middle = lo.where(near, p, 0.5)
    centre = el.log1p(ar.div(ar.sub(ar.mul(2.0, middle), 1.0), ar.sub(1.0, middle)))
    sides = lo.where(near, 0.25, p)
    return lo.where(near, centre, ar.sub(el.log(sides), el.log1p(ar.neg(sides))))


def exprel(x) -> Value:
    """(exp(x) - 1) / x, 1 at 0."""
    x = as_inexact(x, "exprel")
    flat = lo.lt(ar.abs_(x), 1e-5)
    far = lo.where(flat, 1.0, x)
    t = lo.where(flat, x, 0.0)
    series = ar.add(1.0, ar.mul(t, ar.add(0.5, ar.mul(t, ar.add(1 / 6, ar.mul(t, 1 / 24))))))
    return lo.where(flat, series, ar.div(el.expm1(far), far))


expi, exp1, dawsn, erfi, spence = (integrals.expi, integrals.exp1, integrals.dawsn, integrals.erfi,
                                   integrals.spence)
k0, k1, k0e, k1e = integrals.k0, integrals.k1, integrals.k0e, integrals.k1e
kv = kn = _number_first(integrals.kv)
kve, expn = _number_first(integrals.kve), _number_first(integrals.expn)
ellipk, ellipe = integrals.ellipk, integrals.ellipe
hyp1f1, hyp2f1 = integrals.hyp1f1, integrals.hyp2f1
gammaincinv, gammainccinv, betaincinv = integrals.gammaincinv, integrals.gammainccinv, integrals.betaincinv
owens_t, wrightomega = integrals.owens_t, integrals.wrightomega


def fresnel(x) -> tuple[Value, Value]:
    """(S, C): the integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x."""
    x = as_inexact(x, "fresnel")
    return integrals.fresnel_s(x), integrals.fresnel_c(x)


def sici(x) -> tuple[Value, Value]:
    """(Si, Ci): the sine and cosine integrals."""
    x = as_inexact(x, "sici")
    return integrals.sine_integral(x), integrals.cosine_integral(x)


def chdtri(v, p) -> Value:
    """The x whose upper tail of chi-square with v degrees of freedom is p."""
    return ar.mul(2.0, integrals.gammainccinv(ar.mul(0.5, v), p))


def exp10(x) -> Value:
    """10^x."""
    x = as_inexact(x, "exp10")
    return el.pow_(10.0, x) if x.dtype.kind == "c" else el.exp10(x)


def boxcox(x, lmbda) -> Value:
    """The Box-Cox transform (x^lmbda - 1) / lmbda, log x at 0: log(x) exprel(lmbda log(x))."""
    x, lmbda = promote((as_array(x, "boxcox"), as_array(lmbda, "boxcox")), "boxcox", inexact=True)
    log = el.log(x)
    return ar.mul(log, exprel(ar.mul(lmbda, log)))


def boxcox1p(x, lmbda) -> Value:
    """`boxcox` of 1 + x, accurate near 0."""
    x, lmbda = promote((as_array(x, "boxcox1p"), as_array(lmbda, "boxcox1p")), "boxcox1p", inexact=True)
    log = el.log1p(x)
    return ar.mul(log, exprel(ar.mul(lmbda, log)))


def inv_boxcox(y, lmbda) -> Value:
    """The x with boxcox(x, lmbda) = y."""
    return el.exp(_log_inverse_boxcox(y, lmbda, "inv_boxcox"))


def inv_boxcox1p(y, lmbda) -> Value:
    """The x with boxcox1p(x, lmbda) = y, accurate near 0."""
    return el.expm1(_log_inverse_boxcox(y, lmbda, "inv_boxcox1p"))


def _log_inverse_boxcox(y, lmbda, name):
    y, lmbda = promote((as_array(y, name), as_array(lmbda, name)), name, inexact=True)
    flat = lo.eq(lmbda, 0)
    power = lo.where(flat, 1.0, lmbda)
    return lo.where(flat, y, ar.div(el.log1p(ar.mul(power, y)), power))


def huber(delta, r) -> Value:
    """r^2 / 2 for |r| <= delta, delta (|r| - delta / 2) beyond; +inf for delta < 0."""
    delta, r = promote((as_array(delta, "huber"), as_array(r, "huber")), "huber", inexact=True)
    size = ar.abs_(r)
    inside = lo.le(size, delta)
    body = lo.where(inside, ar.mul(0.5, ar.mul(r, r)), ar.mul(delta, ar.sub(size, ar.mul(0.5, delta))))
    return lo.where(lo.lt(delta, 0), math.inf, body)


def pseudo_huber(delta, r) -> Value:
    """delta^2 (sqrt(1 + (r / delta)^2) - 1), without its cancellation for small r; +inf for delta < 0."""
    delta, r = (as_array(v, "pseudo_huber") for v in (delta, r))
    delta, r = promote((delta, r), "pseudo_huber", inexact=True)
    flat = lo.eq(delta, 0)
    scale = lo.where(flat, 1.0, delta)
    t = ar.mul(r, ar.div(r, ar.mul(scale, scale)))
    body = ar.div(ar.mul(ar.mul(scale, scale), t), ar.add(1.0, ar.sqrt(ar.add(1.0, t))))
    return lo.where(lo.lt(delta, 0), math.inf, lo.where(flat, 0.0, body))


# ---- x log y: linear in x, also at 0 ----

def _pair(x, y, name):
    return promote((as_array(x, name), as_array(y, name)), name, inexact=True)


def _times_log(x, y, log):
    """x * log(y), and 0 where x is 0 and y is not NaN."""
    flat = lo.and_(lo.eq(x, 0), lo.not_(lo.is_nan(y)))
    return lo.where(flat, 0.0, ar.mul(x, log(lo.where(flat, 1.0, y))))


def _sum_of(*terms):
    """Tangents added up."""
    total = terms[0]
    for t in terms[1:]:
        total = ar.add(total, t)
    return total


@custom_jvp
def _xlogy(x, y):
    return _times_log(x, y, el.log)


@_xlogy.defjvp
def _xlogy_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return _xlogy(x, y), _sum_of(ar.mul(el.log(y), dx), ar.mul(_ratio(x, y), dy))


def _ratio(x, y):
    """x / y, and 0 where x is 0."""
    flat = lo.eq(x, 0)
    return lo.where(flat, 0.0, ar.div(x, lo.where(flat, 1.0, y)))


def xlogy(x, y) -> Value:
    """x log(y), and 0 where x is 0 (unless y is NaN): linear in x, with derivative log(y) there.

    >>> float(tl.grad(xlogy)(0.0, 2.0))
    0.6931471805599453
    """
    return _xlogy(*_pair(x, y, "xlogy"))


@custom_jvp
def _xlog1py(x, y):
    return _times_log(x, y, el.log1p)


@_xlog1py.defjvp
def _xlog1py_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    slope = _ratio(x, ar.add(1.0, y))
    return _xlog1py(x, y), _sum_of(ar.mul(el.log1p(y), dx), ar.mul(slope, dy))


def xlog1py(x, y) -> Value:
    """x log(1 + y), and 0 where x is 0 (unless y is NaN)."""
    return _xlog1py(*_pair(x, y, "xlog1py"))


@custom_jvp
def _entr(x):
    return lo.where(lo.lt(x, 0), -math.inf, ar.neg(_times_log(x, x, el.log)))


@_entr.defjvp
def _entr_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _entr(x), ar.mul(ar.sub(-1.0, el.log(x)), dx)


def entr(x) -> Value:
    """-x log(x), 0 at 0 (with derivative +inf, the limit), -inf below."""
    return _entr(as_inexact(x, "entr"))


@custom_jvp
def _rel_entr(x, y):
    at_zero = lo.and_(lo.eq(x, 0), lo.ge(y, 0))
    inside = lo.and_(lo.gt(x, 0), lo.gt(y, 0))
    top, bottom = lo.where(inside, x, 1.0), lo.where(inside, y, 1.0)
    body = ar.mul(top, _log_ratio(top, bottom))
    nan = lo.or_(lo.is_nan(x), lo.is_nan(y))
    return lo.where(inside, body, lo.where(at_zero, 0.0, lo.where(nan, math.nan, math.inf)))


def _log_ratio(x, y):
    """log(x / y), by log1p where the two are close."""
    gap = ar.div(ar.sub(x, y), y)
    near = lo.lt(ar.abs_(gap), 0.25)
    return lo.where(near, el.log1p(lo.where(near, gap, 0.0)), ar.sub(el.log(x), el.log(y)))


@_rel_entr.defjvp
def _rel_entr_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    slopes = ar.add(ar.sub(el.log(x), el.log(y)), 1.0), ar.neg(_ratio(x, y))
    return _rel_entr(x, y), _sum_of(ar.mul(slopes[0], dx), ar.mul(slopes[1], dy))


def rel_entr(x, y) -> Value:
    """x log(x / y); 0 at x = 0 <= y; +inf outside x, y >= 0."""
    return _rel_entr(*_pair(x, y, "rel_entr"))


def kl_div(x, y) -> Value:
    """x log(x / y) - x + y; never negative; +inf outside x, y >= 0."""
    x, y = _pair(x, y, "kl_div")
    return ar.add(ar.sub(_rel_entr(x, y), x), y)
