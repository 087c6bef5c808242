"""Whole Jacobians and products with second derivatives."""
from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np

from tlgrad.api.calling import FlatFunction, Selected, as_argnums, flatten_values, wrap
from tlgrad.api.derivatives import grad, jvp, pull_back
from tlgrad.core import dtypes, tree
from tlgrad.core.aval import Zero
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import convert_array, frozen, Tensor
from tlgrad.errors import DifferentiationError
from tlgrad.ops.define import instantiate
from tlgrad.ops.index import mapped
from tlgrad.ops.layout import moveaxis, reshape, zeros
from tlgrad.transforms.batch import batch_flat
from tlgrad.transforms.partial_eval import linearize_flat


def basis(aval):
    """The unit vectors of a space of shape s, stacked in front: shape (size, *s)."""
    eye = np.eye(aval.size).reshape(aval.size, *aval.shape)
    return Tensor.own(frozen(convert_array(eye, aval.dtype)))


def _linear_parts(f, argnums, args, kwargs, what, holomorphic):
    chosen = Selected(f, argnums, args, kwargs)
    xs, in_tree, labels = flatten_values(chosen.values, chosen.names)
    for k, x in enumerate(xs):
        if not dtypes.is_inexact(x.dtype) or x.dtype.kind == "c" and not holomorphic:
            reason = "integers have no derivative; pass floats" if x.dtype.kind != "c" else \
                "for a holomorphic function give holomorphic=True"
            raise DifferentiationError(f"{what}: {labels[k]} is {x.aval}: {reason}")
    flat = FlatFunction(chosen.call, in_tree, what)
    ys, lin = linearize_flat(flat, xs)
    return xs, in_tree, ys, flat.out_tree, lin


def _lanes(f, directions, size):
    """f over stacked directions; every result with the lanes in front."""
    outs, axes = batch_flat(f, directions, [0] * len(directions), size)
    return [mapped(y, k, size) for y, k in zip(outs, axes)]


def jacfwd(f: Callable | None = None, argnums: Any = 0, *, holomorphic: bool = False):
    """Jacobian by forward mode: one pass for each entry of the argument.

    Result leaf by argument leaf: shape (*result, *argument).  Trees nest the argument's structure
    inside the result's.

    >>> tl.jacfwd(lambda x: x * x)(tl.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]], float64, shape (2, 2), cpu)
    """
    if f is None:
        return functools.partial(jacfwd, argnums=argnums, holomorphic=holomorphic)
    many, single = as_argnums(argnums, f)
    what = f"jacfwd of {describe_callable(f)}"

    def jacobian(*args, **kwargs):
        xs, in_tree, ys, out_tree, lin = _linear_parts(f, many, args, kwargs, what, holomorphic)
        columns = []                                     # for each input leaf, the result leaves
        for k, x in enumerate(xs):
            def push(v, k=k):
                tangents = [v if i == k else zeros(other.aval.strong()) for i, other in enumerate(xs)]
                return [instantiate(t) for t in lin(*tangents)]
            outs = _lanes(push, [basis(x.aval.strong())], x.size)
            columns.append([reshape.bind(moveaxis(o, 0, o.ndim - 1), shape=(*y.shape, *x.shape))
                            for o, y in zip(outs, ys)])
        rows = [_arguments(in_tree, [columns[k][j] for k in range(len(xs))], single) for j in range(len(ys))]
        return tree.unflatten(out_tree, rows)
    return wrap(f, jacobian, "Jacobian (forward)", functools.partial(jacfwd, f, argnums, holomorphic=holomorphic))


def jacrev(f: Callable | None = None, argnums: Any = 0, *, holomorphic: bool = False):
    """Jacobian by reverse mode: one pass for each entry of the result.  Layout as `jacfwd`.

    >>> tl.jacrev(lambda x: tl.sum(x * x))(tl.tensor([1.0, 2.0]))
    tensor([2., 4.], float64, shape (2,), cpu)
    """
    if f is None:
        return functools.partial(jacrev, argnums=argnums, holomorphic=holomorphic)
    many, single = as_argnums(argnums, f)
    what = f"jacrev of {describe_callable(f)}"

    def jacobian(*args, **kwargs):
        xs, in_tree, ys, out_tree, lin = _linear_parts(f, many, args, kwargs, what, holomorphic)
        rows = []
        for j, y in enumerate(ys):
            if not dtypes.is_inexact(y.dtype):
                raise DifferentiationError(f"{what}: the result is {y.aval}, which has no derivative")

            def pull(v, j=j):
                cts = [v if i == j else Zero(other.aval) for i, other in enumerate(ys)]
                return [zeros(x.aval.strong()) if type(b) is Zero else b for b, x in zip(pull_back(lin, cts), xs)]
            outs = _lanes(pull, [basis(y.aval.strong())], y.size)
            entries = [reshape.bind(o, shape=(*y.shape, *x.shape)) for o, x in zip(outs, xs)]
            rows.append(_arguments(in_tree, entries, single))
        return tree.unflatten(out_tree, rows)
    return wrap(f, jacobian, "Jacobian (reverse)", functools.partial(jacrev, f, argnums, holomorphic=holomorphic))


def _arguments(in_tree, entries, single):
    parts = tree.unflatten(in_tree, entries)
    return parts[0] if single else parts


def hessian(f: Callable | None = None, argnums: Any = 0):
    """Second derivatives, forward over reverse: argument leaf by argument leaf.

    >>> tl.hessian(lambda x: x[0] * x[1])(tl.tensor([1.0, 2.0]))
    tensor([[0., 1.],
            [1., 0.]], float64, shape (2, 2), cpu)
    """
    if f is None:
        return functools.partial(hessian, argnums=argnums)
    return wrap(f, jacfwd(jacrev(f, argnums), argnums), "Hessian", functools.partial(hessian, f, argnums))


def hvp(f: Callable | None = None, argnums: Any = 0):
    """The function (args, directions) -> Hessian times directions, without the Hessian.

    `args` are the arguments of f; `direction` has the structure of the differentiated argument.

    >>> tl.hvp(lambda x: tl.sum(x ** 3))((tl.tensor([1.0, 2.0]),), tl.tensor([1.0, 1.0]))
    tensor([ 6., 12.], float64, shape (2,), cpu)
    """
    if f is None:
        return functools.partial(hvp, argnums=argnums)
    many, single = as_argnums(argnums, f)

    def product(args, direction, **kwargs):
        args = args if isinstance(args, tuple) else (args,)
        chosen = Selected(grad(f, argnums), many, args, kwargs)
        directions = (direction,) if single else tuple(direction)
        gradient = functools.wraps(f, updated=())(lambda *values: chosen.call(*values))
        return jvp(gradient, tuple(chosen.values), directions)[1]
    return wrap(f, product, "Hessian-vector product", functools.partial(hvp, f, argnums))
