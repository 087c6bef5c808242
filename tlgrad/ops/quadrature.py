"""Derivatives of incomplete gamma and beta functions by their parameters, in binary64.

Both are integrals of a density times a factor.  For a first derivative it is log t - its mean, taken over
the tail in which the factor keeps one sign, so that nothing cancels; the other tail is its negative.  For
a second derivative it is the square of that, less the variance of log t.  Source of the quadrature: Takahasi
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
    return _gammainc_by(1, a, x)


def gammainc_by_aa(a, x):
    """The second derivative of P(a, x) by a."""
    return _gammainc_by(2, a, x)


def _gammainc_by(order, a, x):
    out = np.full(a.shape, np.nan)
    fine = (a > 0) & (x >= 0)
    zero = fine & ((x == 0) | np.isinf(x))
    out[zero] = 0.0
    low = fine & ~zero & (x < a + 1)
    high = fine & ~zero & ~low
    if low.any():
        out[low] = _series(order, a[low], x[low])
    if high.any():
        out[high] = _upper_tail(order, a[high], x[high])
    return out


def _series(order, a, x):
    """sum over n of x^(a+n) exp(-x) / gamma(a+n+1) times d = log x - psi(a+n+1), or d^2 - psi'(a+n+1).

    To first order all terms after the first few are negative.
    """
    from scipy.special import digamma, gammaln, polygamma
    weight = np.exp(a * np.log(x) - x - gammaln(a + 1))
    log_x, psi, variance = np.log(x), digamma(a + 1), polygamma(1, a + 1)
    total, n = np.zeros_like(x), 0
    open_ = np.ones(x.shape, bool)                       # entries whose sum still grows
    while open_.any() and n <= 20000:
        factor = log_x - psi if order == 1 else (log_x - psi)**2 - variance
        term = np.where(open_, weight * factor, 0.0)
        total += term
        n += 1
        psi, variance = psi + 1 / (a + n), variance - 1 / (a + n)**2
        weight = weight * (x / (a + n))
        open_ &= (np.abs(term) > 1e-18 * np.abs(total)) | (x >= a + n)
    return total


def _left_to_right(terms):
    """Sum along axis 0, the same for any number of columns."""
    return np.add.accumulate(terms, axis=0)[-1]


def _upper_tail(order, a, x):
    """-dQ/da = -(1/gamma(a)) * integral over t > x of t^(a-1) exp(-t) (log t - psi(a)), and the second."""
    from scipy.special import digamma, gammaln, polygamma
    decay = np.exp(_U[:, None] - np.exp(-_U[:, None]))            # t = x + scale * exp(u - exp(-u))
    slope = decay * (1 + np.exp(-_U[:, None]))
    scale = np.maximum(np.sqrt(x), 1.0)
    t = x + scale * decay
    density = np.exp((a - 1) * np.log(t) - t - gammaln(a))
    factor = np.log(t) - digamma(a)
    factor = factor if order == 1 else factor**2 - polygamma(1, a)
    return -_H * _left_to_right(density * factor * scale * slope)


def betainc_by(parameters: str):
    """The derivative of I_x(a, b) by its parameters, "a", "b", "aa", "ab" or "bb", as a function of a, b, x."""
    def run(a, b, x):
        return _by_parameters(a, b, x, parameters)
    return run


def _by_parameters(a, b, x, by):
    """Over the lower tail where the factor keeps its sign there (second order: below the mean), else the upper."""
    from scipy.special import digamma
    out = np.full(a.shape, np.nan)
    fine = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    ends = fine & ((x == 0) | (x == 1))
    out[ends] = 0.0
    fine &= ~ends
    total = digamma(a + b)
    below = {"a": np.log(x) <= digamma(a) - total, "b": np.log1p(-x) >= digamma(b) - total}
    low = fine & below.get(by, x * (a + b) <= a)
    for chosen, sign in ((low, 1.0), (fine & ~low, -1.0)):
        if chosen.any():
            out[chosen] = sign * _beta_tail(a[chosen], b[chosen], x[chosen], sign < 0, by)
    return out


def _beta_factor(a, b, log_t, log_rest, by):
    """What differentiating the beta density by its parameters multiplies it by."""
    from scipy.special import digamma, polygamma
    parts = {"a": log_t - (digamma(a) - digamma(a + b)), "b": log_rest - (digamma(b) - digamma(a + b))}
    if len(by) == 1:
        return parts[by]
    own = {"aa": polygamma(1, a), "bb": polygamma(1, b), "ab": 0.0}[by]
    return parts[by[0]] * parts[by[1]] - (own - polygamma(1, a + b))


def _beta_tail(a, b, x, upper, by):
    """Integral over (0, x) or (x, 1) of the beta density times the factor, tanh-sinh.

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
    terms = np.exp(exponent) * _beta_factor(a, b, log_t, log_rest, by) * np.pi * np.cosh(_U[:, None])
    return _H * _left_to_right(np.where(np.isfinite(terms), terms, 0.0))
