"""`tl.map` and `tl.zip`: scalar functions over the entries of tensors.

    map : (a -> b) -> ([a] -> [b])        for every shape, entry by entry
"""
from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from math import prod
from typing import Any, Callable

from tlgrad.core import counters, tree
from tlgrad.core.aval import make_aval
from tlgrad.core.execute import execute
from tlgrad.core.guard import Guard
from tlgrad.core.jaxpr import Eqn, Jaxpr, Var
from tlgrad.core.source import describe_callable, user_source
from tlgrad.core.tensor import Tensor, as_value
from tlgrad.core.trace import EVAL, Tracer, current_trace
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.frontend.interpreter import Recorded, rebuild, record
from tlgrad.frontend.map_primitive import NO_ERRORS, Errors, map_p
from tlgrad.ops.orders import current_order

#: an eager map of this many entries is compiled; smaller ones take less time than compiling
COMPILED_FROM = 4096
#: recorded forms kept for one function
MAX_PLANS = 64


def apply(found: Recorded, operands, n_whole, shape, errors) -> list:
    """A recorded function on every entry; the first `n_whole` operands are whole in each."""
    params = dict(jaxpr=found.jaxpr, mapped=(False,) * n_whole + (True,) * (len(operands) - n_whole),
                  summed=(False,) * found.n_results, shape=shape, errors=errors, order=current_order())
    if prod(shape) < COMPILED_FROM or current_trace() is not EVAL or not all(type(x) is Tensor for x in operands):
        return map_p.bind(*operands, **params)
    key = ("unit", shape, params["order"], params["mapped"], errors)
    if key not in found.jaxpr.memo:
        binders = [Var(x.aval.strong()) for x in operands]
        outs = [Var(a) for a in map_p.avals_out([v.aval for v in binders], params)]
        found.jaxpr.memo[key] = Jaxpr(binders, [Eqn(map_p, binders, params, outs)], outs)
    return [Tensor.own(y) for y in execute(found.jaxpr.memo[key], [x.data for x in operands])]


def global_name(made) -> str | None:
    """The name under which a module holds what a decorator made, for pickling."""
    name = getattr(made, "__qualname__", "")
    return name if getattr(inspect.getmodule(made.__wrapped__), name, None) is made else None


def keep_plan(plans, key, found: Recorded, guard):
    """Keep a record for the next call, unless it captured a value of a running transform."""
    if any(isinstance(x, Tracer) for x in found.captured):
        plans.pop(key, None)
        return
    plans[key] = found, guard
    if len(plans) > MAX_PLANS:
        plans.popitem(last=False)


class Map:
    """A scalar function applied to every entry.  Made by `tl.map`."""

    #: under another map, one entry: the function itself
    acts_by_entry = True

    def __init__(self, f: Callable, name: str, least: int):
        if not callable(f):
            raise ArgumentError(f"{name} takes a scalar function, got {type(f).__name__}: {f!r:.60}")
        self.f, self.name, self.least = f, name, least
        self.plans: OrderedDict[Any, tuple[Recorded, Guard]] = OrderedDict()
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args, **kwargs):
        leaves, in_tree = tree.flatten((args, kwargs))
        if len(leaves) < self.least:
            raise ArgumentError(f"{self.name} needs {self.least} or more inputs, got {len(leaves)}"
                                + ("; for one input write tl.map" if self.least > 1 else ""))
        values = [as_value(x, f"input {k} of {self.name}") for k, x in enumerate(leaves)]
        shape = self.common_shape(values, in_tree)
        avals = tuple(make_aval((), x.dtype, x.aval.weak) for x in values)
        found = self.plan(in_tree, avals)
        errors = Errors(found.errors, found.marks, f"{self.name} of {describe_callable(self.f)}") \
            if found.errors else NO_ERRORS
        outs = apply(found, [*found.captured, *values], len(found.captured), shape, errors)
        return rebuild(found.structure, outs)

    def common_shape(self, values, in_tree):
        """The shape of all inputs; they are never broadcast."""
        shape = values[0].shape
        for k, x in enumerate(values):
            if x.shape != shape:
                paths = [p for child in in_tree.children for p in tree.paths(child, "argument ")]
                raise ShapeError(
                    f"{self.name} of {describe_callable(self.f)}: the inputs must have one shape, got {shape} "
                    f"for {paths[0]} and {x.shape} for {paths[k]}; they are not broadcast. Write "
                    "tl.broadcast_to(x, shape), or let the function capture what is the same for every entry "
                    f"[{user_source()}]")
        return shape

    def plan(self, in_tree, avals) -> Recorded:
        """The recorded function, while what it captured is unchanged."""
        key = (in_tree, avals)
        plan = self.plans.get(key)
        if plan is not None and plan[1].holds():
            self.plans.move_to_end(key)
            return plan[0]
        counters.count_trace(self.f, plan is not None, avals)
        guard = Guard(self.f)
        found = record(self.f, lambda symbols: tree.unflatten(in_tree, symbols), avals)
        keep_plan(self.plans, key, found, guard)
        return found

    def __get__(self, instance, owner=None):
        return self if instance is None else Map(self.f.__get__(instance, owner), self.name, self.least)

    def __reduce__(self):
        return global_name(self) or (Map, (self.f, self.name, self.least))

    def __repr__(self):
        return f"<{self.name} of {describe_callable(self.f)}>"


def map(f: Callable) -> Map:
    """Apply a scalar function to every entry of one or more tensors of equal shape.

    `f` is ordinary Python on numbers: `if`, loops, early `return`, `try`, helper functions, methods,
    classes with operators, recursion on a count.  It is read from its bytecode and becomes one
    ordered loop per entry; a branch that an entry does not take is not evaluated for it, and
    contributes exactly zero to derivatives.  Shapes of any rank are kept, also empty ones and ().
    Arguments and results may be trees.  Arrays that `f` captures are read by index.

    Raises ShapeError when the inputs differ in shape (they are not broadcast), what `f` itself
    raises for the lowest entry that raises, and ScalarFunctionError, with the line, for what
    cannot be recorded.

    >>> leaky = tl.map(lambda x: x if x > 0 else 0.25 * x)
    >>> leaky(tl.tensor([-2.0, 1.0, 3.0]))
    tensor([-0.5,  1. ,  3. ], float64, shape (3,), cpu)
    """
    return Map(f, "map", 1)


def zip(f: Callable) -> Map:
    """`map` for two or more inputs, all of one shape.

    Raises ArgumentError for a single input, ShapeError when the shapes differ.

    >>> tl.zip(lambda a, b: 0.75 * a + 0.25 * b)(tl.tensor([0.0, 4.0, 8.0]), tl.tensor([8.0, 4.0, 0.0]))
    tensor([2., 4., 6.], float64, shape (3,), cpu)
    """
    return Map(f, "zip", 2)
