"""Distribution functions under their names in `scipy.special`: compositions of incomplete gamma and beta
functions, each tail computed directly, differentiable in every argument.
"""
from __future__ import annotations

from tlgrad.control.custom import custom_jvp
from tlgrad.core.trace import Value
from tlgrad.numpy.arrays import as_array
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops import special as prim
from tlgrad.ops.promote import promote

__all__ = ["bdtr", "bdtrc", "betaincc", "btdtr", "chdtr", "chdtrc", "fdtr", "fdtrc", "gdtr", "gdtrc", "nbdtr",
           "nbdtrc", "pdtr", "pdtrc", "stdtr"]


def _half(like):
    """0.5 in the shape and dtype of `like`."""
    return ar.add(ar.mul(0.0, like), 0.5)


def _floats(name, *args):
    return promote([as_array(a, name) for a in args], name, inexact=True)


def betaincc(a, b, x) -> Value:
    """1 - betainc(a, b, x), without its cancellation: betainc(b, a, 1 - x)."""
    a, b, x = _floats("betaincc", a, b, x)
    return prim.betainc(b, a, ar.sub(1.0, x))


def btdtr(a, b, x) -> Value:
    """Distribution function of the beta distribution: betainc(a, b, x)."""
    return prim.betainc(*_floats("btdtr", a, b, x))


def chdtr(v, x) -> Value:
    """Distribution function of chi-square with v degrees of freedom; 0 below 0."""
    v, x = _floats("chdtr", v, x)
    return lo.where(lo.lt(x, 0), 0.0, prim.gammainc(ar.mul(0.5, v), ar.mul(0.5, lo.where(lo.lt(x, 0), 0.0, x))))


def chdtrc(v, x) -> Value:
    """Upper tail of chi-square with v degrees of freedom; 1 below 0."""
    v, x = _floats("chdtrc", v, x)
    return lo.where(lo.lt(x, 0), 1.0, prim.gammaincc(ar.mul(0.5, v), ar.mul(0.5, lo.where(lo.lt(x, 0), 0.0, x))))


def fdtr(dfn, dfd, x) -> Value:
    """Distribution function of the F distribution."""
    return _f_tail("fdtr", dfn, dfd, x, False)


def fdtrc(dfn, dfd, x) -> Value:
    """Upper tail of the F distribution."""
    return _f_tail("fdtrc", dfn, dfd, x, True)


def _f_tail(name, dfn, dfd, x, upper):
    n, d, x = _floats(name, dfn, dfd, x)
    scaled = ar.mul(n, x)
    total = ar.add(d, scaled)
    if upper:
        return prim.betainc(ar.mul(0.5, d), ar.mul(0.5, n), ar.div(d, total))
    return prim.betainc(ar.mul(0.5, n), ar.mul(0.5, d), ar.div(scaled, total))


def gdtr(a, b, x) -> Value:
    """Distribution function of the gamma distribution with rate a and shape b."""
    a, b, x = _floats("gdtr", a, b, x)
    return prim.gammainc(b, ar.mul(a, x))


def gdtrc(a, b, x) -> Value:
    """Upper tail of the gamma distribution with rate a and shape b."""
    a, b, x = _floats("gdtrc", a, b, x)
    return prim.gammaincc(b, ar.mul(a, x))


def pdtr(k, m) -> Value:
    """Distribution function of the Poisson distribution with mean m: of floor(k) events or fewer."""
    k, m = _floats("pdtr", k, m)
    return prim.gammaincc(ar.add(ar.floor(k), 1.0), m)


def pdtrc(k, m) -> Value:
    """Upper tail of the Poisson distribution with mean m: of more than floor(k) events."""
    k, m = _floats("pdtrc", k, m)
    return prim.gammainc(ar.add(ar.floor(k), 1.0), m)


def bdtr(k, n, p) -> Value:
    """Distribution function of the binomial distribution: floor(k) successes or fewer in n trials."""
    k, n, p = _floats("bdtr", k, n, p)
    k = ar.floor(k)
    inside = lo.lt(k, n)
    safe = lo.where(inside, k, 0.0)
    return lo.where(inside, prim.betainc(ar.sub(n, safe), ar.add(safe, 1.0), ar.sub(1.0, p)), 1.0)


def bdtrc(k, n, p) -> Value:
    """Upper tail of the binomial distribution: more than floor(k) successes in n trials."""
    k, n, p = _floats("bdtrc", k, n, p)
    k = ar.floor(k)
    inside = lo.lt(k, n)
    safe = lo.where(inside, k, 0.0)
    return lo.where(inside, prim.betainc(ar.add(safe, 1.0), ar.sub(n, safe), p), 0.0)


def nbdtr(k, n, p) -> Value:
    """Distribution function of the negative binomial: floor(k) failures or fewer before n successes."""
    k, n, p = _floats("nbdtr", k, n, p)
    return prim.betainc(n, ar.add(ar.floor(k), 1.0), p)


def nbdtrc(k, n, p) -> Value:
    """Upper tail of the negative binomial: more than floor(k) failures before n successes."""
    k, n, p = _floats("nbdtrc", k, n, p)
    return prim.betainc(ar.add(ar.floor(k), 1.0), n, ar.sub(1.0, p))


def stdtr(df, t) -> Value:
    """Distribution function of Student's t with df degrees of freedom, accurate in both tails.

    >>> stdtr(3.0, tl.tensor(0.0))
    tensor(0.5, float64, shape (), cpu)
    """
    df, t = _floats("stdtr", df, t)
    return _student(df, t)


@custom_jvp
def _student(v, t):
    """The lower tail is betainc(v / 2, 1 / 2, v / (v + t t)) / 2."""
    tail = ar.mul(0.5, prim.betainc(ar.mul(0.5, v), _half(v), ar.div(v, ar.add(v, ar.mul(t, t)))))
    return lo.where(lo.lt(t, 0), tail, ar.sub(1.0, tail))


@_student.defjvp
def _student_jvp(primals, tangents):
    """By t the density; by v the chain rule, in which the infinite slope of betainc at t = 0 has cancelled."""
    (v, t), (dv, dt) = primals, tangents
    square = ar.mul(t, t)
    log_beta, total = prim.betaln(ar.mul(0.5, v), _half(v)), ar.add(v, square)
    log_x = ar.neg(el.log1p(ar.div(square, v)))
    density = el.exp(ar.sub(ar.mul(ar.mul(0.5, ar.add(v, 1.0)), log_x),
                            ar.add(log_beta, ar.mul(0.5, el.log(v)))))
    through_x = ar.mul(ar.abs_(t), el.exp(ar.sub(ar.sub(ar.mul(ar.sub(ar.mul(0.5, v), 1.0), log_x), log_beta),
                                                 ar.mul(1.5, el.log(total)))))
    by_a = prim.betainc_by_a(ar.mul(0.5, v), _half(v), ar.div(v, total))
    by_v = ar.mul(ar.neg(ar.sign(t)), ar.mul(0.5, ar.add(ar.mul(0.5, by_a), through_x)))
    return _student(v, t), ar.add(ar.mul(by_v, dv), ar.mul(density, dt))
