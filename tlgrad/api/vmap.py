"""vmap: one function over the lanes of an axis."""
from __future__ import annotations

import functools
from typing import Any, Callable

from tlgrad.api.calling import FlatFunction, LeafNames, signature, wrap
from tlgrad.core import tree
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.ops.index import mapped
from tlgrad.ops.layout import moveaxis
from tlgrad.transforms.batch import batch_flat


def vmap(f: Callable | None = None, in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None):
    """`f` over the lanes of one axis of its arguments, all lanes at once.

    in_axes: the mapped axis of each argument, None for an argument shared by all lanes: one for all,
    a tuple by position, or a dict by argument name; entries may be trees.  out_axes: where the lanes
    go in the results.  axis_size is needed when nothing is mapped.  Zero lanes are fine.

    Raises ShapeError naming arguments, axes and sizes when the lanes differ in number.

    >>> tl.vmap(lambda x, y: tl.sum(x * y), in_axes=(0, None))(tl.ones((3, 2)), tl.ones((2,)))
    tensor([2., 2., 2.], float64, shape (3,), cpu)
    """
    if f is None:
        return functools.partial(vmap, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size)
    what = describe_callable(f)

    def over_lanes(*args, **kwargs):
        names, axes = _argument_axes(f, in_axes, args, kwargs)
        inputs = (*args, *kwargs.values())
        leaves, in_tree = tree.flatten(inputs)
        labels = LeafNames(in_tree, names)
        values = [as_value(x, labels[k]) for k, x in enumerate(leaves)]
        flat_axes = _flat_axes(axes, in_tree, what)
        size = _lanes(values, flat_axes, labels, what, axis_size)
        flat_axes = [None if k is None else k % values[i].ndim for i, k in enumerate(flat_axes)]

        def call(*trees):
            return f(*trees[:len(args)], **dict(zip(kwargs, trees[len(args):])))
        flat = FlatFunction(call, in_tree, what)
        outs, axes_out = batch_flat(flat, values, flat_axes, size)
        wanted = broadcast_prefix(out_axes, flat.out_tree, f"vmap of {what}: out_axes")
        placed = [_place(y, k, w, size, what) for y, k, w in zip(outs, axes_out, wanted)]
        return tree.unflatten(flat.out_tree, placed)
    return wrap(f, over_lanes, "Map over lanes", functools.partial(vmap, f, in_axes, out_axes, axis_size))


def _argument_axes(f, in_axes, args, kwargs):
    """A name and an in_axes entry for every argument."""
    sig = signature(f)
    names = list(sig.parameters) if sig else []
    labels = [f"{names[k]}" if k < len(names) else f"argument {k}" for k in range(len(args))] + list(kwargs)
    if isinstance(in_axes, dict):
        unknown = set(in_axes) - set(labels)
        if unknown:
            raise ArgumentError(f"vmap of {describe_callable(f)}: in_axes names {sorted(unknown)[0]!r}, "
                                f"the arguments are {', '.join(labels)}")
        return labels, [in_axes.get(n) for n in labels]
    if isinstance(in_axes, (tuple, list)):
        if len(in_axes) != len(args):
            raise ArgumentError(f"vmap of {describe_callable(f)}: in_axes has {len(in_axes)} entries, "
                                f"the call has {len(args)} positional arguments")
        return labels, [*in_axes, *[0] * len(kwargs)]
    return labels, [in_axes] * (len(args) + len(kwargs))


def _flat_axes(axes, in_tree, what):
    return [a for axis, child in zip(axes, in_tree.children)
            for a in broadcast_prefix(axis, child, f"vmap of {what}: in_axes")]


def broadcast_prefix(prefix, treedef, what: str) -> list:
    """An entry for each leaf: `prefix` is a tree whose leaves (int or None) stand for subtrees."""
    if prefix is None or isinstance(prefix, int):
        return [prefix] * treedef.n_leaves
    leaves, found = tree.flatten(tree.fill_none(prefix, treedef, _NONE))
    if found != treedef:
        raise ArgumentError(f"{what} does not fit the argument: {tree.difference(treedef, found)}")
    return [None if x is _NONE else x for x in leaves]


_NONE = object()


def _lanes(values, axes, labels, what, axis_size) -> int:
    sizes = {}
    for k, (x, axis) in enumerate(zip(values, axes)):
        if axis is None:
            continue
        if not isinstance(axis, int) or not -x.ndim <= axis < x.ndim:
            raise ShapeError(f"vmap of {what}: {labels[k]} has shape {x.shape}, which has no axis {axis}")
        sizes[f"{labels[k]} axis {axis}"] = x.shape[axis]
    if axis_size is not None:
        sizes["axis_size"] = axis_size
    if not sizes:
        raise ArgumentError(f"vmap of {what}: no argument is mapped; give axis_size=")
    if len(set(sizes.values())) > 1:
        raise ShapeError(f"vmap of {what}: the mapped axes differ in size: "
                         + ", ".join(f"{name} is {n}" for name, n in sizes.items()))
    return next(iter(sizes.values()))


def _place(y: Value, axis, wanted, size, what):
    if wanted is None:
        if axis is not None:
            raise ArgumentError(f"vmap of {what}: out_axes is None for a result that differs between lanes")
        return y
    y = mapped(y, axis, size)
    if not -y.ndim <= wanted < y.ndim:
        raise ShapeError(f"vmap of {what}: a result of shape {y.shape} (lanes first) has no axis {wanted}")
    return moveaxis(y, 0, wanted % y.ndim)
