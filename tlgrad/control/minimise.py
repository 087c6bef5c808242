"""Minimisers within bounds, with implicit derivatives.

    z = argmin f(z, a), lower <= z <= upper

Projected Newton with backtracking (Bertsekas, "Projected Newton methods for optimization
problems with simple constraints", 1982).  The derivative solves the linear system of the free
entries; an entry at a bound that the gradient pushes against follows the bound.
"""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from tlgrad.control.implicit import (Problem, gradient, jacobian, push, relative_size, solve_vector,
                                     unit_vectors)
from tlgrad.control.while_loop import while_loop
from tlgrad.core import tree
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.errors import ShapeError
from tlgrad.ops.arithmetic import abs_, add, mul, neg, sub
from tlgrad.ops.layout import broadcast, sum_axes
from tlgrad.ops.logic import and_, ge, gt, is_finite, le, lt, maximum, minimum, not_, or_, select, where
from tlgrad.ops.promote import as_dtype_value, broadcast_to

#: of the decrease that the slope promises, what a step must reach (Armijo)
_SHARE = 1e-4
#: halvings of a step before it is taken as it is
_HALVINGS = 40


def argmin(f: Callable, start: Any, *args, lower: Any = None, upper: Any = None, tolerance: float | None = None,
           max_steps: int = 100, report: bool = False, **kwargs) -> Any:
    """z where ``f(z, *args, **kwargs)``, a number, is least between `lower` and `upper`.

    z is a pytree of floats of one dtype; a bound is None, a number, or a pytree like z.  The
    residual is the largest entry of |z - clip(z - gradient)|, in units of max(1, |z|); it must come
    within `tolerance` (default 16 units of the last place of 1), or ConvergenceError names it.  A local minimum is
    found by Newton steps; where second derivatives have no inverse, SingularMatrixError.

    Derivatives with respect to arguments, closed-over values and bounds are implicit.  An entry
    at a bound that holds it back follows the bound; one that has just reached it (zero gradient)
    takes the derivative from inside.

    >>> float(argmin(lambda x, a: (x - a) ** 2, 0.2, 2.0, lower=0.0, upper=1.0))
    1.0
    >>> float(tl.grad(lambda a: argmin(lambda x: (x - a) ** 2, 0.2, lower=0.0, upper=1.0))(0.5))
    1.0
    """
    limits = [_limit(bound, start, name) for bound, name in ((lower, "lower"), (upper, "upper"))]

    def objective(z, _lower, _upper, args, kwargs):
        return f(z, *args, **kwargs)
    objective.__wrapped__ = f
    problem = Problem("argmin", objective, start, (*limits, args, kwargs), {}, tolerance, max_steps)
    if [a.shape for a in problem.staged.jaxpr.out_avals] != [()]:
        raise ShapeError(f"{problem.what} must return one number, got {problem.staged.jaxpr.out_avals}")
    search = Search(problem, *[tree.structure(bound).n_leaves for bound in limits])
    return problem.run(search.advance, search.residual, search.slope, report)


def _limit(bound, start, name):
    """A bound as a list of leaves like those of start; an empty one for None."""
    leaves, treedef = tree.flatten(start)
    if bound is None:
        return []
    given = [bound] * len(leaves) if tree.structure(bound) is tree.LEAF else \
        tree.flatten_as(treedef, bound, f"the {name} bound of argmin")
    return [as_value(b, f"the {name} bound of argmin") for b in given]


class Search:
    """The steps of the minimisation; `params` are captured values, bounds, arguments."""

    def __init__(self, problem: Problem, n_lower: int, n_upper: int):
        self.problem, self.n_lower, self.n_upper = problem, n_lower, n_upper

    def value(self, z, params) -> Value:
        """The objective."""
        return as_dtype_value(self.problem.evaluate(z, params)[0], z.dtype)

    def gradient(self, z, params) -> Value:
        """Its gradient in z."""
        return gradient(lambda v: self.value(v, params), z)

    def bound(self, z, params, side: str) -> Value:
        """A bound as a vector; infinite where there is none."""
        first = self.problem.n_captured + (0 if side == "lower" else self.n_lower)
        n = self.n_lower if side == "lower" else self.n_upper
        if not n:
            return broadcast.bind(as_dtype_value(as_value(-np.inf if side == "lower" else np.inf), z.dtype),
                                  shape=z.shape, axes=())
        avals = self.problem.vector.avals
        parts = [broadcast_to(as_dtype_value(b, z.dtype), a.shape) for b, a in zip(params[first:first + n], avals)]
        return self.problem.vector.join(parts)

    def clip(self, z, params) -> Value:
        """z brought within the bounds."""
        return minimum(maximum(z, self.bound(z, params, "lower")), self.bound(z, params, "upper"))

    def residual(self, z, params) -> Value:
        """|z - clip(z - gradient)|, the largest entry."""
        return relative_size(sub(z, self.clip(sub(z, self.gradient(z, params)), params)), z)

    def held(self, z, g, params):
        """Which entries a bound holds back: the lower one, the upper one."""
        return (and_(le(z, self.bound(z, params, "lower")), gt(g, 0)),
                and_(ge(z, self.bound(z, params, "upper")), lt(g, 0)))

    def advance(self, z, params) -> Value:
        """One projected Newton step."""
        g = self.gradient(z, params)
        active = or_(*self.held(z, g, params))
        g_free = where(active, 0.0, g)
        step = neg(solve_vector(self.hessian(z, params, active), g_free))
        downhill = and_(lt(_dot(step, g_free), 0), is_finite(_dot(step, step)))
        step = where(downhill, step, neg(g_free))
        return self.shorten(z, step, g_free, params)

    def hessian(self, z, params, active) -> Value:
        """Second derivatives, those of held entries replaced by the identity."""
        h = jacobian(lambda v: self.gradient(v, params), z)
        rows, columns = (broadcast.bind(active, shape=h.shape, axes=(k,)) for k in (0, 1))
        return select(or_(rows, columns), unit_vectors(z.shape[0], z.dtype), h)

    def shorten(self, z, step, g, params) -> Value:
        """z moved by the step, halved until the objective falls as it should (rounding aside)."""
        here = self.value(z, params)
        slack = mul(abs_(here), 4 * np.finfo(z.dtype.storage).eps)

        def moved(t):
            return self.clip(add(z, mul(t, step)), params)

        def too_long(state):
            t, k = state
            there = moved(t)
            wanted = add(add(here, slack), mul(_SHARE, _dot(g, sub(there, z))))
            return and_(not_(le(self.value(there, params), wanted)), lt(k, _HALVINGS))
        one = as_dtype_value(as_value(1.0), z.dtype)
        t, _ = while_loop(too_long, lambda s: (mul(s[0], 0.5), s[1] + 1), (one, 0))
        return moved(t)

    def slope(self, z, params, tangents) -> Value:
        """z_dot: rows of free entries by the Hessian, held entries as their bound."""
        g = self.gradient(z, params)
        at_lower, at_upper = self.held(z, g, params)
        active = or_(at_lower, at_upper)
        h = jacobian(lambda v: self.gradient(v, params), z)
        rows = broadcast.bind(active, shape=h.shape, axes=(0,))
        matrix = select(rows, unit_vectors(z.shape[0], z.dtype), h)
        free = neg(push(lambda a: self.gradient(z, a), params, tangents))
        low, high = (push(lambda a: self.bound(z, a, side), params, tangents) for side in ("lower", "upper"))
        return solve_vector(matrix, select(at_lower, low, select(at_upper, high, free)))


def _dot(x, y) -> Value:
    return sum_axes(mul(x, y), (0,))
