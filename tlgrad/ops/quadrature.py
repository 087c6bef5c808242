"""Derivatives of incomplete gamma and beta functions by their parameters, in binary64.

Both are integrals of a density times (log t - its mean), taken over the tail in which the factor keeps
one sign, so that nothing cancels; the other tail is its negative.  Source of the quadrature: Takahasi
and Mori, "Double exponential formulas for numerical integration", 1974.
"""
from __future__ import annotations

import numpy as np


def in_double(f):
    """`f` on binary64 copies, entry by entry broadcast, its result rounded to the operands' dtype."""
    def run(*arrays):
        wide = np.broadcast_arrays(*[np.asarray(a, np.float64) for a in arrays])
        with np.errstate(all="ignore"):
            flat = f(*[w.ravel() for w in wide])
        return flat.reshape(wide[0].shape).astype(arrays[-1].dtype)
    return run


#: nodes of the double exponential rule: step 1/48 on [-6.5, 6.5]
_U = np.arange(-312, 313) / 48.0
_H = 1 / 48.0


def gammainc_by_a(a, x):
    """dP(a, x)/da: by the series below x = a + 1, by an integral over the upper tail above."""
    out = np.full(a.shape, np.nan)
    fine = (a > 0) & (x >= 0)
    zero = fine & ((x == 0) | np.isinf(x))
    out[zero] = 0.0
    low = fine & ~zero & (x < a + 1)
    high = fine & ~zero & ~low
    if low.any():
        out[low] = _series(a[low], x[low])
    if high.any():
        out[high] = _upper_tail(a[high], x[high])
    return out


def _series(a, x):
    """sum over n of x^(a+n) exp(-x) / gamma(a+n+1) * (log x - psi(a+n+1)); all terms are negative."""
    from scipy.special import digamma, gammaln
    weight = np.exp(a * np.log(x) - x - gammaln(a + 1))
    log_x, psi = np.log(x), digamma(a + 1)
    total, n = np.zeros_like(x), 0
    open_ = np.ones(x.shape, bool)                       # entries whose sum still grows
    while open_.any() and n <= 20000:
        term = np.where(open_, weight * (log_x - psi), 0.0)
        total += term
        n += 1
        psi = psi + 1 / (a + n)
        weight = weight * (x / (a + n))
        open_ &= (np.abs(term) > 1e-18 * np.abs(total)) | (x >= a + n)
    return total


def _left_to_right(terms):
    """Sum along axis 0, the same for any number of columns."""
    return np.add.accumulate(terms, axis=0)[-1]


def _upper_tail(a, x):
    """-dQ/da = -(1/gamma(a)) * integral over t > x of t^(a-1) exp(-t) (log t - psi(a))."""
    from scipy.special import digamma, gammaln
    decay = np.exp(_U[:, None] - np.exp(-_U[:, None]))            # t = x + scale * exp(u - exp(-u))
    slope = decay * (1 + np.exp(-_U[:, None]))
    scale = np.maximum(np.sqrt(x), 1.0)
    t = x + scale * decay
    density = np.exp((a - 1) * np.log(t) - t - gammaln(a))
    return -_H * _left_to_right(density * (np.log(t) - digamma(a)) * scale * slope)


def betainc_by_a(a, b, x):
    """dI_x(a, b)/da: the lower tail if log x <= E log t, else minus the upper one."""
    return _by_parameter(a, b, x, False)


def betainc_by_b(a, b, x):
    """dI_x(a, b)/db: the lower tail if log(1 - x) >= E log(1 - t), else minus the upper one."""
    return _by_parameter(a, b, x, True)


def _by_parameter(a, b, x, of_b):
    from scipy.special import digamma
    out = np.full(a.shape, np.nan)
    fine = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    ends = fine & ((x == 0) | (x == 1))
    out[ends] = 0.0
    fine &= ~ends
    mean = digamma(b if of_b else a) - digamma(a + b)
    low = fine & (np.log1p(-x) >= mean if of_b else np.log(x) <= mean)
    for chosen, sign in ((low, 1.0), (fine & ~low, -1.0)):
        if chosen.any():
            out[chosen] = sign * _beta_tail(a[chosen], b[chosen], x[chosen], mean[chosen], sign < 0, of_b)
    return out


def _beta_tail(a, b, x, mean, upper, of_b):
    """Integral over (0, x) or (x, 1) of the beta density times log t (or log(1 - t)) - mean, tanh-sinh.

    t and 1 - t are both formed without cancellation from the distances to the ends.
    """
    from scipy.special import betaln
    s = np.pi / 2 * np.sinh(_U[:, None])
    log_near, log_far = -np.logaddexp(0, 2 * s), -np.logaddexp(0, -2 * s)    # parts of the interval
    if upper:
        log_length = np.log1p(-x)
        log_rest = log_length + log_near                                    # log(1 - t)
        log_t = np.log1p(-np.exp(log_rest))
    else:
        log_length = np.log(x)
        log_t = log_length + log_far
        log_rest = np.log1p(-np.exp(log_t))
    exponent = (a - 1) * log_t + (b - 1) * log_rest - betaln(a, b) + log_length + log_near + log_far
    terms = np.exp(exponent) * ((log_rest if of_b else log_t) - mean) * np.pi * np.cosh(_U[:, None])
    return _H * _left_to_right(np.where(np.isfinite(terms), terms, 0.0))
