"""Sums of exponentials and the functions of neural networks made of them, without overflow."""
from __future__ import annotations

import math

from tlgrad.control.custom import custom_jvp
from tlgrad.core.trace import Value
from tlgrad.numpy.arrays import as_array, axes_of
from tlgrad.numpy.continuing import continued
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.reductions import max, sum
from tlgrad.numpy.shaping import reshape
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.stop import fixed

__all__ = ["logsumexp", "softmax", "log_softmax", "relu", "sigmoid", "softplus", "silu", "gelu", "log_sigmoid",
           "elu", "leaky_relu", "relu6", "celu", "selu", "hard_tanh", "softsign", "mish", "log_cosh"]


def _top(x, axes):
    """The greatest entry along `axes`, kept, as a constant; 0 where it is infinite or NaN."""
    top = max(fixed(x), axes, keepdims=True, initial=-math.inf if x.size == 0 else None)
    return lo.where(lo.is_finite(top), top, 0.0)


def logsumexp(x, axis=None, b=None, keepdims: bool = False, return_sign: bool = False, *, weights=None,
              init=None, order: str | None = None):
    """log(sum(b * exp(x))) along `axis`, without overflow; `b` (or `weights`) default to 1.

    -inf and gradient 0 where all entries are -inf; of an empty axis, -inf.  With `return_sign`, the log of
    the magnitude and the sign of a sum that may be negative.  The sum keeps `order`.  `init`: a
    logsumexp of the result's shape to continue from (without weights).

    >>> logsumexp(tl.tensor([1000.0, 1000.0]))
    tensor(1000.6931471805599, float64, shape (), cpu)
    """
    x = as_inexact(x, "logsumexp")
    b = weights if b is None else b
    if b is not None:
        b = as_array(b, "logsumexp")
        x = lo.where(lo.eq(b, 0), -math.inf, x)
    axes = axes_of(axis, x.ndim, "logsumexp")
    if init is not None:
        return continued(logsumexp, x, init, axes, keepdims, "logsumexp", order=order)
    top = _top(x, axes)
    terms = el.exp(ar.sub(x, top))
    total = sum(terms if b is None else ar.mul(b, terms), axes, keepdims=True, order=order)
    sign = ar.sign(total)
    total = ar.abs_(total) if return_sign else total
    none = lo.eq(total, 0)
    out = lo.where(none, -math.inf, ar.add(el.log(lo.where(none, 1.0, total)), top))
    out, sign = (_dropped(v, axes, keepdims) for v in (convert(out, x.dtype), sign))
    return (out, sign) if return_sign else out


def _dropped(x, axes, keepdims):
    return x if keepdims else reshape(x, tuple(n for k, n in enumerate(x.shape) if k not in axes))


def softmax(x, axis=-1, *, where=None, order: str | None = None) -> Value:
    """exp(x) / sum(exp(x)) along `axis`, without overflow.

    >>> softmax(tl.tensor([0.0, 0.0]))
    tensor([0.5, 0.5], float64, shape (2,), cpu)
    """
    x = as_inexact(x, "softmax")
    if where is not None:
        x = lo.where(where, x, -math.inf)
    axes = axes_of(axis, x.ndim, "softmax")
    e = el.exp(ar.sub(x, _top(x, axes)))
    return ar.div(e, sum(e, axes, keepdims=True, order=order))


def log_softmax(x, axis=-1, *, order: str | None = None) -> Value:
    """x - logsumexp(x) along `axis`, accurate also where softmax underflows."""
    x = as_inexact(x, "log_softmax")
    axes = axes_of(axis, x.ndim, "log_softmax")
    shifted = ar.sub(x, _top(x, axes))
    return ar.sub(shifted, el.log(sum(el.exp(shifted), axes, keepdims=True, order=order)))


# ---- entry by entry ----

def relu(x) -> Value:
    """maximum(x, 0); the derivative at 0 is 0."""
    return lo.maximum(as_array(x, "relu"), 0)


def sigmoid(x) -> Value:
    """1 / (1 + exp(-x)), the logistic function."""
    return el.logistic(as_array(x, "sigmoid"))


def softplus(x) -> Value:
    """log(1 + exp(x)), without overflow."""
    return el.softplus(as_array(x, "softplus"))


def log_sigmoid(x) -> Value:
    """log(sigmoid(x)) = -softplus(-x)."""
    return ar.neg(el.softplus(ar.neg(as_array(x, "log_sigmoid"))))


def silu(x) -> Value:
    """x * sigmoid(x), also called swish."""
    x = as_array(x, "silu")
    return ar.mul(x, el.logistic(x))


def gelu(x, approximate: bool = False) -> Value:
    """x * Phi(x), Phi the normal distribution function; `approximate` uses its tanh form.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """
    x = as_inexact(x, "gelu")
    if x.dtype.kind == "f":
        return el.gelu_tanh(x) if approximate else el.gelu_erf(x)
    if approximate:
        inner = ar.mul(math.sqrt(2 / math.pi), ar.add(x, ar.mul(0.044715, el.integer_pow(x, 3))))
        return ar.mul(ar.mul(0.5, x), ar.add(1.0, el.tanh(inner)))
    return ar.mul(ar.mul(0.5, x), el.erfc(ar.mul(-math.sqrt(0.5), x)))


def elu(x, alpha=1.0) -> Value:
    """x above 0, alpha * (exp(x) - 1) below."""
    x = as_inexact(x, "elu")
    up = lo.gt(x, 0)
    return lo.where(up, x, ar.mul(alpha, el.expm1(lo.where(up, 0.0, x))))


def celu(x, alpha=1.0) -> Value:
    """x above 0, alpha * (exp(x / alpha) - 1) below."""
    x = as_inexact(x, "celu")
    up = lo.gt(x, 0)
    return lo.where(up, x, ar.mul(alpha, el.expm1(ar.div(lo.where(up, 0.0, x), alpha))))


def selu(x) -> Value:
    """Scaled `elu` with the constants of Klambauer et al., "Self-Normalizing Neural Networks", 2017."""
    return ar.mul(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


def leaky_relu(x, slope=0.01) -> Value:
    """x above 0, slope * x below; at 0 the derivative is the slope."""
    x = as_inexact(x, "leaky_relu")
    return lo.where(lo.gt(x, 0), x, ar.mul(slope, x))


def relu6(x) -> Value:
    """x bounded to [0, 6]."""
    return lo.minimum(relu(x), 6)


def hard_tanh(x) -> Value:
    """x bounded to [-1, 1]."""
    return lo.minimum(lo.maximum(as_inexact(x, "hard_tanh"), -1), 1)


@custom_jvp
def _softsign(x):
    return ar.div(x, ar.add(1.0, ar.abs_(x)))


@_softsign.defjvp
def _softsign_jvp(primals, tangents):
    """1 / (1 + |x|)^2: differentiating the quotient cancels far from 0."""
    (x,), (dx,) = primals, tangents
    size = ar.add(1.0, ar.abs_(x))
    return _softsign(x), ar.div(ar.div(dx, size), size)


def softsign(x) -> Value:
    """x / (1 + |x|)."""
    return _softsign(as_inexact(x, "softsign"))


def mish(x) -> Value:
    """x * tanh(softplus(x))."""
    x = as_inexact(x, "mish")
    return ar.mul(x, el.tanh(el.softplus(x)))


def log_cosh(x) -> Value:
    """log(cosh(x)), without overflow: |x| + log1p(exp(-2|x|)) - log 2."""
    x = as_inexact(x, "log_cosh")
    size = lo.where(lo.lt(x, 0), ar.neg(x), x)
    return ar.sub(ar.add(size, el.log1p(el.exp(ar.mul(-2.0, size)))), math.log(2))
