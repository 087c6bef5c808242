"""Directional derivatives of any order: `derivative` and its pullback."""
from __future__ import annotations

import functools
from math import factorial
from typing import Any, Callable, Sequence

from tlgrad.api.calling import FlatFunction, flatten_values, wrap
from tlgrad.api.derivatives import jvp, match_tangent, vjp
from tlgrad.core import tree
from tlgrad.core.aval import Zero
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import Tensor
from tlgrad.errors import TreeError
from tlgrad.ops.convert import same_bits
from tlgrad.ops.define import instantiate, mul
from tlgrad.transforms.jet import NestedNeeded, jet_flat

#: directions repeated at least this often are carried as a power series
TAYLOR_FROM = 3


def derivative(f: Callable | None = None, directions: Sequence[Any] = ()) -> Callable:
    """The derivative of `f` along directions, one order each; [] evaluates.

    [v, w] is the mixed second derivative D_w D_v f(x); a direction given k times counts k times.
    Each direction has the structure and shapes of the argument; f takes one argument (a tree).
    Repeated directions are carried as one power series, so the cost grows polynomially with the
    order; different directions nest duals.

    Raises TreeError or ShapeError for a direction that does not fit.

    >>> tl.derivative(lambda x: x ** 3, [1.0, 1.0])(2.0)
    tensor(12.0, float64, shape (), cpu, weak)
    """
    if f is None:
        return functools.partial(derivative, directions=directions)
    what = describe_callable(f)
    if not isinstance(directions, (list, tuple)) and not isinstance(directions, Tensor):
        raise TreeError(f"derivative of {what}: directions is a list, one direction an order; "
                        f"got {type(directions).__name__}")
    groups = _group(list(directions))

    def along(x):
        return _differentiate(f, groups, x, what)
    return wrap(f, along, "Directional derivative", functools.partial(derivative, f, directions))


def derivative_vjp(f: Callable | None = None, directions: Sequence[Any] = ()) -> Callable:
    """The function (x, cotangent) -> pullback of the directional derivative of `f` at x.

    Directions and cotangent are constants.  With [] it is the ordinary pullback.

    >>> tl.derivative_vjp(lambda x: x ** 3, [1.0])(2.0, 1.0)
    tensor(12.0, float64, shape (), cpu, weak)
    """
    if f is None:
        return functools.partial(derivative_vjp, directions=directions)
    along = derivative(f, directions)

    def pulled(x, cotangent=None):
        y, pull = vjp(along, x)
        if cotangent is None:
            cotangent = tree.map(lambda leaf: mul(instantiate(Zero(leaf.aval)), 0) + 1, y)
        return pull(cotangent)[0]
    return wrap(f, pulled, "Pullback of the directional derivative",
                functools.partial(derivative_vjp, f, directions))


def _group(directions) -> list[tuple[Any, int]]:
    """Distinct directions with their multiplicities, in order of first appearance."""
    groups: list[list] = []
    for d in directions:
        for group in groups:
            if _same_direction(group[0], d):
                group[1] += 1
                break
        else:
            groups.append([d, 1])
    return [(d, n) for d, n in groups]


def _same_direction(a, b) -> bool:
    if a is b:
        return True
    xs, s = tree.flatten(a)
    ys, t = tree.flatten(b)
    concrete = all(not hasattr(v, "trace") for v in (*xs, *ys))
    return s == t and concrete and all(same_bits(x, y) for x, y in zip(xs, ys))


def _differentiate(f, groups, x, what):
    if not groups:
        flat = FlatFunction(f, tree.structure((x,)), what)
        ys = flat(*flatten_values((x,), ["the argument"])[0])
        return tree.unflatten(flat.out_tree, ys)
    (direction, n), *rest = groups

    @functools.wraps(f, updated=())
    def inner(x):
        return _differentiate(f, rest, x, what)
    if n >= TAYLOR_FROM:
        try:
            return _taylor(inner, direction, n, x, what)
        except NestedNeeded:
            pass
    for _ in range(n):
        inner = _once(inner, direction)
    return inner(x)


def _once(f, direction):
    @functools.wraps(f)
    def pushed(x):
        return jvp(f, (x,), (direction,))[1]
    return pushed


def _taylor(f, direction, n, x, what):
    """n! times the coefficient of t^n of f(x + t v)."""
    xs, in_tree, labels = flatten_values((x,), ["the argument"])
    given = tree.flatten_as(in_tree, (direction,),
                            f"derivative of {what}: a direction differs from the argument")
    vs = [match_tangent(v, leaf, labels[k], f"derivative of {what}", "direction")
          for k, (v, leaf) in enumerate(zip(given, xs))]
    flat = FlatFunction(f, in_tree, what)
    series = jet_flat(flat, xs, [[v, *[Zero(v.aval)] * (n - 1)] for v in vs])
    return tree.unflatten(flat.out_tree, [mul(float(factorial(n)), instantiate(c[n])) for c in series])
