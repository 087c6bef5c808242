"""Polynomials, interpolation, numerical differentiation and integration, windows, and phases."""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.numpy.arrays import as_array, axes_of, one_dtype
from tlgrad.numpy.creation import arange, zeros
from tlgrad.numpy.differences import diff
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.ordering import argsort, searchsorted
from tlgrad.numpy.reductions import cumprod, cumsum, sum
from tlgrad.numpy.selection import take
from tlgrad.numpy.shaping import concatenate, flip, moveaxis, reshape, stack
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import normalize_axis
from tlgrad.ops.promote import broadcast_to
from tlgrad.ops.shape import slice_axis
from tlgrad.ops.special import i0

__all__ = ["polyval", "polyadd", "polysub", "polymul", "polyder", "polyint", "vander", "interp", "gradient",
           "trapezoid", "unwrap", "hanning", "hamming", "blackman", "bartlett", "kaiser",
           "i0", "cumulative_trapezoid"]


def polyval(p, x) -> Value:
    """p[0] x^(n-1) + ... + p[n-1], by Horner's rule.

    >>> polyval(tl.tensor([1.0, 0.0, -2.0]), 3.0)
    tensor(7.0, float64, shape (), cpu)
    """
    p, x = as_array(p, "polyval"), as_array(x, "polyval")
    total = ar.mul(x, 0)
    for k in range(p.shape[0]):
        total = ar.add(ar.mul(total, x), p[k])
    return total


def _padded_pair(p, q, name):
    p, q = one_dtype([as_array(v, name) for v in (p, q)])
    n = max(p.shape[0], q.shape[0])
    return [concatenate([zeros((n - v.shape[0],), v.dtype), v]) if v.shape[0] < n else v for v in (p, q)]


def polyadd(p, q) -> Value:
    """Coefficients of the sum of two polynomials, highest power first."""
    return ar.add(*_padded_pair(p, q, "polyadd"))


def polysub(p, q) -> Value:
    """Coefficients of the difference of two polynomials."""
    return ar.sub(*_padded_pair(p, q, "polysub"))


def polymul(p, q) -> Value:
    """Coefficients of the product of two polynomials."""
    p, q = one_dtype([as_array(v, "polymul") for v in (p, q)])
    n, m = p.shape[0], q.shape[0]
    rows = ar.mul(reshape(p, (n, 1)), reshape(q, (1, m)))
    shifted = [concatenate([zeros((k,), p.dtype), rows[k], zeros((n - 1 - k,), p.dtype)]) for k in range(n)]
    return sum(stack(shifted), 0)


def polyder(p, m: int = 1) -> Value:
    """Coefficients of the m-th derivative of a polynomial."""
    p = as_array(p, "polyder")
    for _ in range(m):
        n = p.shape[0]
        p = ar.mul(p[:-1], convert(flip(arange(1, n)), p.dtype)) if n > 1 else zeros((0,), p.dtype)
    return p


def polyint(p, m: int = 1, k=0.0) -> Value:
    """Coefficients of the m-th antiderivative of a polynomial, with constants k."""
    p = as_inexact(p, "polyint")
    constants = broadcast_to(convert(as_array(k, "polyint"), p.dtype), (m,))
    for i in range(m):
        n = p.shape[0]
        p = concatenate([ar.div(p, convert(flip(arange(1, n + 1)), p.dtype)), constants[i:i + 1]])
    return p


def vander(x, n: int | None = None, increasing: bool = False) -> Value:
    """Powers of the entries of x in columns, falling (or rising)."""
    x = as_array(x, "vander")
    if x.ndim != 1:
        raise ShapeError(f"vander takes a vector, got shape {x.shape}")
    n = x.shape[0] if n is None else n
    ones = ar.add(ar.mul(reshape(x, (-1, 1)), 0), 1)
    powers = cumprod(concatenate([ones, broadcast_to(reshape(x, (-1, 1)), (x.shape[0], max(n - 1, 0)))], 1), 1)
    powers = slice_axis(powers, 1, 0, n)
    return powers if increasing else flip(powers, 1)


# ---- interpolation ----

def interp(x, xp, fp, left=None, right=None, period=None) -> Value:
    """Piecewise linear function through (xp, fp), xp ascending; `left` and `right` outside.

    Differentiable in x, xp and fp; at a knot the derivative in x is that of the piece to its right.
    """
    x, xp, fp = (as_inexact(v, "interp") for v in (x, xp, fp))
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ShapeError(f"interp: xp and fp are vectors of one size, got shapes {xp.shape} and {fp.shape}")
    if period is not None:
        x, xp = ar.remainder(x, period), ar.remainder(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    n = xp.shape[0]
    if n == 1:
        body = ar.add(ar.mul(x, 0), fp[0])
    else:
        i = lo.minimum(lo.maximum(ar.sub(searchsorted(xp, x, "right"), 1), 0), n - 2)
        x0, x1, f0, f1 = take(xp, i), take(xp, i + 1), take(fp, i), take(fp, i + 1)
        slope = ar.div(ar.sub(f1, f0), ar.sub(x1, x0))
        body = lo.where(lo.eq(x, x1), f1, ar.add(ar.mul(slope, ar.sub(x, x0)), f0))
    if period is not None:
        return body
    out = lo.where(lo.lt(x, xp[0]), fp[0] if left is None else left, body)
    return lo.where(lo.gt(x, xp[-1]), fp[-1] if right is None else right, out)


# ---- derivatives and integrals of samples ----

def gradient(f, *varargs, axis=None, edge_order: int = 1):
    """Central differences of samples along each axis (one array, or a list for several axes).

    Spacing: one number for all, one a dimension, or coordinate vectors.  edge_order 1 or 2 at the ends.
    """
    f = as_inexact(f, "gradient")
    axes = axes_of(axis, f.ndim, "gradient") if axis is None or isinstance(axis, tuple) else (
        normalize_axis(axis, f.ndim, "gradient"),)
    if len(varargs) not in (0, 1, len(axes)) or edge_order not in (1, 2):
        raise ArgumentError(f"gradient: {len(varargs)} spacings for {len(axes)} axes, edge_order {edge_order}")
    spacing = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    out = [_gradient_along(f, a, h, edge_order) for a, h in zip(axes, spacing)]
    return out[0] if len(out) == 1 else out


def _gradient_along(f, axis, h, edge_order):
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(f"gradient: axis {axis} of size {n} has fewer than {edge_order + 1} samples")
    y = moveaxis(f, axis, 0)
    h = as_array(h, "gradient")
    steps = diff(h) if h.ndim else broadcast_to(h, (n - 1,))
    steps = reshape(convert(steps, y.dtype), (n - 1,) + (1,) * (y.ndim - 1))
    a, b = steps[:-1], steps[1:]
    slopes = ar.div(diff(y, axis=0), steps)
    if h.ndim:
        inner = ar.div(ar.add(ar.mul(b, slopes[:-1]), ar.mul(a, slopes[1:])), ar.add(a, b))
    else:
        inner = ar.div(ar.sub(y[2:], y[:-2]), ar.mul(2.0, h))
    first, last = slopes[:1], slopes[-1:]
    if edge_order == 2:
        first = ar.sub(slopes[:1], ar.mul(steps[:1], _curvature(slopes[:2], steps[:2])))
        last = ar.add(slopes[-1:], ar.mul(steps[-1:], _curvature(slopes[-2:], steps[-2:])))
    return moveaxis(concatenate([first, inner, last], 0), 0, axis)


def _curvature(slopes, steps):
    return ar.div(ar.sub(slopes[1:], slopes[:1]), ar.add(steps[:1], steps[1:]))


def _trapezoids(y, x, dx, axis):
    y = as_inexact(y, "trapezoid")
    axis = normalize_axis(axis, y.ndim, "trapezoid")
    n = y.shape[axis]
    if x is None:
        d = dx
    else:
        x = as_array(x, "trapezoid")
        d = diff(x) if x.ndim == 1 else diff(x, axis=axis)
        if x.ndim == 1:
            d = reshape(d, tuple(n - 1 if k == axis else 1 for k in range(y.ndim)))
    pairs = ar.add(slice_axis(y, axis, 1, n), slice_axis(y, axis, 0, n - 1))
    return ar.div(ar.mul(d, pairs), 2.0), axis


def trapezoid(y, x=None, dx=1.0, axis: int = -1) -> Value:
    """Integral of samples by the trapezoidal rule.

    >>> trapezoid(tl.tensor([1.0, 2.0, 3.0]))
    tensor(4.0, float64, shape (), cpu)
    """
    parts, axis = _trapezoids(y, x, dx, axis)
    return sum(parts, axis)


def cumulative_trapezoid(y, x=None, dx=1.0, axis: int = -1) -> Value:
    """Running integrals of samples by the trapezoidal rule."""
    parts, axis = _trapezoids(y, x, dx, axis)
    return cumsum(parts, axis)


def unwrap(p, discont=None, axis: int = -1, *, period=2 * math.pi) -> Value:
    """Phases with jumps of more than half a period taken out."""
    p = as_inexact(p, "unwrap")
    axis = normalize_axis(axis, p.ndim, "unwrap")
    step = diff(p, axis=axis)
    half = period / 2
    wrapped = ar.sub(ar.remainder(ar.add(step, half), period), half)
    wrapped = lo.where(lo.and_(lo.eq(wrapped, -half), lo.gt(step, 0)), half, wrapped)
    small = lo.lt(ar.abs_(step), half if discont is None else max(discont, half))
    fix = lo.where(small, 0.0, ar.sub(wrapped, step))
    first = slice_axis(p, axis, 0, 1)
    rest = ar.add(slice_axis(p, axis, 1, p.shape[axis]), cumsum(fix, axis))
    return concatenate([first, rest], axis)


# ---- windows ----

def _window(m: int, *coefficients) -> Value:
    """Sums of cosines a0 - a1 cos t + a2 cos 2t, t over one turn."""
    if m < 1:
        return zeros((0,))
    if m == 1:
        return as_array(np.ones(1), "a window")
    t = ar.mul(convert(arange(m), dtypes.float64), 2 * math.pi / (m - 1))
    total = as_array(coefficients[0], "a window")
    for k, c in enumerate(coefficients[1:], 1):
        total = ar.add(total, ar.mul((-1) ** k * c, el.cos(ar.mul(t, float(k)))))
    return total


def hanning(m: int) -> Value:
    """Hann window of m points."""
    return _window(m, 0.5, 0.5)


def hamming(m: int) -> Value:
    """Hamming window of m points."""
    return _window(m, 0.54, 0.46)


def blackman(m: int) -> Value:
    """Blackman window of m points."""
    return _window(m, 0.42, 0.5, 0.08)


def kaiser(m: int, beta: float) -> Value:
    """Kaiser window of m points and shape beta: i0(beta sqrt(1 - t^2)) / i0(beta), t from -1 to 1."""
    if m < 2:
        return as_array(np.ones(max(m, 0)), "kaiser")
    t = ar.sub(ar.div(ar.mul(convert(arange(m), dtypes.float64), 2.0), m - 1.0), 1.0)
    inside = lo.maximum(ar.mul(ar.sub(1.0, t), ar.add(1.0, t)), 0.0)
    beta = as_inexact(beta, "kaiser")
    return ar.div(i0(ar.mul(beta, ar.sqrt(inside))), i0(beta))


def bartlett(m: int) -> Value:
    """Triangular window of m points, zero at both ends."""
    if m < 2:
        return as_array(np.ones(max(m, 0)), "bartlett")
    n = convert(arange(m), dtypes.float64)
    return ar.sub(1.0, ar.abs_(ar.sub(ar.div(ar.mul(n, 2.0), m - 1.0), 1.0)))
