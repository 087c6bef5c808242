"""`checkpoint`: keep the inputs of a function for the backward pass, and nothing else."""
from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np

from tlgrad.control.custom import differentiating
from tlgrad.control.inner import by_recomputation, program_primitive
from tlgrad.control.native import step_of
from tlgrad.control.staging import interned, result_leaves, staging
from tlgrad.core import tree
from tlgrad.core.jaxpr import evaluate_arrays
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError
from tlgrad.transforms.stage import stage


def _eager(*arrays, jaxpr):
    with np.errstate(all="ignore"):
        return step_of(jaxpr)(*arrays)


checkpoint_p = program_primitive(
    "checkpoint", "The results of `jaxpr`, which reverse mode works out again from the operands.",
    lambda *arrays, jaxpr: evaluate_arrays(jaxpr, arrays), by_recomputation,
    eager=_eager)

_NUMBERS = (Value, np.ndarray, np.generic, float, complex)


def checkpoint(f: Callable) -> Callable:
    """`f` with less memory in reverse mode: what it computes on the way is computed again.

    Results and derivatives keep their words.  Arguments and results are pytrees; leaves that are
    not tensors, arrays or floats (strings, ints, flags) are taken as they are.  Usable as a
    decorator.  Raises ArgumentError when `f` is not callable.

    >>> float(tl.grad(checkpoint(lambda x: x * x * x))(2.0))
    12.0
    """
    if not callable(f):
        raise ArgumentError(f"checkpoint takes a callable, got {type(f).__name__}")

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        if not staging() and not differentiating():
            return f(*args, **kwargs)
        return _bind(f, args, kwargs)
    return wrapped


def _bind(f, args, kwargs) -> Any:
    leaves, treedef = tree.flatten((args, kwargs))
    what = f"an argument of {describe_callable(f)}"
    values = [as_value(x, what) if isinstance(x, _NUMBERS) else None for x in leaves]
    found = []

    def flat(*dynamic):
        it = iter(dynamic)
        full = [leaf if v is None else next(it) for leaf, v in zip(leaves, values)]
        args, kwargs = tree.unflatten(treedef, full)
        outs, out_tree = result_leaves(f(*args, **kwargs), f)
        found[:] = [out_tree]
        return outs
    dynamic = [v for v in values if v is not None]
    jaxpr, captured = stage(flat, [v.aval for v in dynamic])
    return tree.unflatten(found[0], checkpoint_p.bind(*captured, *dynamic, jaxpr=interned(jaxpr)))
