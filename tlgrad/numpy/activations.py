"""More functions of neural networks, under the names of `jax.nn` and `torch.nn.functional`."""
from __future__ import annotations

import math

from tlgrad.core.dtypes import int64
from tlgrad.core.trace import Value
from tlgrad.errors import ShapeError
from tlgrad.numpy.arrays import as_array
from tlgrad.numpy.elementwise import as_inexact, clip
from tlgrad.numpy.exponentials import logsumexp, relu6, silu, softmax, softsign
from tlgrad.numpy.products import matmul
from tlgrad.numpy.reductions import mean, var
from tlgrad.numpy.shaping import split, swapaxes
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops.shape import iota

__all__ = ["glu", "hard_sigmoid", "hard_silu", "hard_swish", "soft_sign", "squareplus", "sparse_plus",
           "sparse_sigmoid", "swish", "log1mexp", "logmeanexp", "standardize", "scaled_dot_product_attention"]

swish, soft_sign = silu, softsign


def glu(x, axis: int = -1) -> Value:
    """a * sigmoid(b) with a, b the two halves of x along `axis`.  Raises ShapeError for an odd size.

    >>> glu(tl.tensor([2.0, 0.0]))
    tensor([1.], float64, shape (1,), cpu)
    """
    x = as_inexact(x, "glu")
    if x.ndim == 0 or x.shape[axis] % 2:
        raise ShapeError(f"glu splits axis {axis} into halves, so its size is even; got shape {x.shape}")
    a, b = split(x, 2, axis)
    return ar.mul(a, el.logistic(b))


def hard_sigmoid(x) -> Value:
    """min(max(x + 3, 0), 6) / 6."""
    return ar.div(relu6(ar.add(as_inexact(x, "hard_sigmoid"), 3.0)), 6.0)


def hard_silu(x) -> Value:
    """x * hard_sigmoid(x), also called hard swish.

    Source: Howard et al., "Searching for MobileNetV3", 2019.
    """
    x = as_inexact(x, "hard_silu")
    return ar.mul(x, hard_sigmoid(x))


hard_swish = hard_silu


def squareplus(x, b=4.0) -> Value:
    """(x + sqrt(x^2 + b)) / 2, for negative x without cancellation."""
    x = as_inexact(x, "squareplus")
    root = ar.sqrt(ar.add(ar.mul(x, x), b))
    below = lo.lt(x, 0)
    other = lo.where(below, ar.sub(root, x), 1.0)
    return lo.where(below, ar.div(ar.mul(0.5, b), other), ar.mul(0.5, ar.add(x, root)))


def sparse_plus(x) -> Value:
    """0 below -1, (x + 1)^2 / 4 up to 1, x above."""
    x = as_inexact(x, "sparse_plus")
    middle = ar.mul(0.25, el.integer_pow(ar.add(x, 1.0), 2))
    return lo.where(lo.le(x, -1), 0.0, lo.where(lo.ge(x, 1), x, middle))


def sparse_sigmoid(x) -> Value:
    """(x + 1) / 2 bounded to [0, 1]."""
    return ar.mul(0.5, clip(ar.add(as_inexact(x, "sparse_sigmoid"), 1.0), 0.0, 2.0))


def log1mexp(x) -> Value:
    """log(1 - exp(-x)) for x > 0, accurate near 0 and far from it.

    Source: Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    x = as_inexact(x, "log1mexp")
    near = lo.lt(x, math.log(2))
    close, far = lo.where(near, x, 1.0), lo.where(near, 1.0, x)
    return lo.where(near, el.log(ar.neg(el.expm1(ar.neg(close)))), el.log1p(ar.neg(el.exp(ar.neg(far)))))


def logmeanexp(x, axis=None, keepdims: bool = False) -> Value:
    """log(mean(exp(x))) along `axis`, without overflow."""
    x = as_inexact(x, "logmeanexp")
    total = logsumexp(x, axis, keepdims=keepdims)
    return ar.sub(total, math.log(x.size / max(total.size, 1)))


def standardize(x, axis=-1, epsilon=1e-5) -> Value:
    """x less its mean, over sqrt(its variance + epsilon), along `axis`."""
    x = as_inexact(x, "standardize")
    return ar.div(ar.sub(x, mean(x, axis, keepdims=True)),
                  ar.sqrt(ar.add(var(x, axis, keepdims=True), epsilon)))


def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None, causal: bool = False,
                                 order: str | None = None) -> Value:
    """softmax(query key^T * scale) value: query (..., n, d), key (..., m, d), value (..., m, c) -> (..., n, c).

    scale: 1 / sqrt(d) unless given.  mask: True where a key may be attended to, broadcast to (..., n, m); causal:
    key j for query i only if j <= i.  A query that may attend to nothing gives NaN.

    >>> scaled_dot_product_attention(tl.ones((2, 3)), tl.ones((4, 3)), tl.ones((4, 1))).tolist()
    [[1.0], [1.0]]
    """
    q, k, v = (as_array(x, "scaled_dot_product_attention") for x in (query, key, value))
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"scaled_dot_product_attention: query {q.shape}, key {k.shape} and value {v.shape} do "
                         "not fit: query and key have one last size, key and value one size before it")
    scores = ar.mul(matmul(q, swapaxes(k, -1, -2), order=order), scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        from_query = lo.ge(*_places(scores.shape[-2:]))
        mask = from_query if mask is None else lo.and_(mask, from_query)
    return matmul(softmax(scores, where=mask, order=order), v, order=order)


def _places(shape):
    """Row and column numbers of a matrix."""
    return [iota.bind(shape=shape, axis=a, dtype=int64) for a in (0, 1)]
