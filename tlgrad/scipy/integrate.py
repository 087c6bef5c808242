"""Integration under SciPy's names."""
from __future__ import annotations

from typing import Callable

from tlgrad.control.loops import scan
from tlgrad.control.stop import stop_gradient
from tlgrad.control.while_loop import while_loop
from tlgrad.core.trace import Value
from tlgrad.numpy.arrays import as_array
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.polynomials import cumulative_trapezoid, trapezoid
from tlgrad.numpy.reductions import max
from tlgrad.numpy.shaping import concatenate
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import elementary as el
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.shape import expand_dims

__all__ = ["odeint", "trapezoid", "cumulative_trapezoid"]

#: Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980: stages, order 5, error weights
_STAGES = ((1 / 5,), (3 / 40, 9 / 40), (44 / 45, -56 / 15, 32 / 9),
           (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
           (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
           (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84))
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def _weighted(y, h, slopes, weights):
    for k, w in zip(slopes, weights):
        if w:
            y = ar.add(y, ar.mul(h, ar.mul(w, k)))
    return y


def _step(f, y, t, h):
    """(y after one step, error estimate)."""
    slopes = [f(y, t)]
    for weights, c in zip(_STAGES, _TIMES):
        point = _weighted(y, h, slopes, weights)
        slopes.append(f(point, ar.add(t, ar.mul(c, h))))
    return point, _weighted(ar.mul(y, 0), h, slopes, _ERROR)


def odeint(func: Callable, y0, t, args=(), *more, rtol: float = 1.4e-8, atol: float = 1.4e-8,
           max_steps: int = 10_000) -> Value:
    """The solution y(t[k]) of y' = func(y, t, *args), y(t[0]) = y0: shape (len(t), *y0.shape).

    Adaptive Dormand-Prince steps of order 5; differentiable in y0, t and args by differentiating the steps
    that were taken (their lengths held constant).  Stops refining after `max_steps` steps an interval.
    """
    args = (*args, *more) if isinstance(args, tuple) else (args, *more)
    y0, t = as_inexact(y0, "odeint"), as_inexact(t, "odeint")
    y0, t = convert(y0, y0.dtype), convert(t, y0.dtype)

    def f(y, time):
        return convert(as_array(func(y, time, *args), "odeint"), y0.dtype)

    def interval(y, ends):
        start, end = ends[0], ends[1]
        span = ar.sub(end, start)

        def body(state):
            count, s, h, y = state
            h = lo.minimum(h, ar.sub(1.0, s))
            new, error = _step(f, y, ar.add(start, ar.mul(s, span)), ar.mul(h, span))
            scale = ar.add(atol, ar.mul(rtol, lo.maximum(ar.abs_(y), ar.abs_(new))))
            ratio = stop_gradient(max(ar.div(ar.abs_(error), scale), initial=0.0))
            good = lo.or_(lo.le(ratio, 1.0), lo.lt(h, 1e-12))
            factor = ar.mul(0.9, el.pow_(lo.maximum(ratio, 1e-10), -0.2))
            factor = lo.minimum(lo.maximum(factor, 0.2), 5.0)
            last = lo.ge(ar.add(s, h), 1.0)
            s_new = lo.where(good, lo.where(last, 1.0, ar.add(s, h)), s)
            return count + 1, s_new, stop_gradient(ar.mul(h, factor)), lo.where(good, new, y)
        zero = ar.mul(stop_gradient(start), 0)
        state = (0, zero, ar.add(zero, 0.05), y)
        y = while_loop(lambda state: lo.and_(lo.lt(state[1], 1.0), lo.lt(state[0], max_steps)), body, state)[3]
        return y, y
    pairs = concatenate([expand_dims(t[:-1], 1), expand_dims(t[1:], 1)], 1)
    _, rest = scan(interval, y0, pairs)
    return concatenate([expand_dims(y0, 0), rest], 0)
