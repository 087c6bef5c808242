"""Sums in the order "tree" written out: ordered sums of leaves, then neighbours level by level.

The definition is `tlgrad.ops.orders.tree_sum`; the equations here have its words and fuse.
"""
from __future__ import annotations

from math import prod

from tlgrad.core.jaxpr import Eqn, Jaxpr
from tlgrad.ops.define import add
from tlgrad.ops.layout import reduce_sum, reshape
from tlgrad.ops.orders import LEAF
from tlgrad.ops.reduce import flat_last
from tlgrad.ops.shape import concatenate, slice_axis
from tlgrad.passes.simplify import rewritten


def tree_sum(x, *init, axes):
    """The tree over `axes` of x, as primitives."""
    x = flat_last(x, axes)
    last, n = x.ndim - 1, x.shape[-1]
    whole = n // LEAF * LEAF
    front = slice_axis(x, last, 0, whole) if whole < n else x
    leaves = reshape.bind(front, shape=(*x.shape[:-1], whole // LEAF, LEAF))
    sums = reduce_sum.bind(leaves, axes=(last + 1,), order="ordered")
    if whole < n:
        rest = reduce_sum.bind(slice_axis(x, last, whole, n), axes=(last,), order="ordered")
        sums = concatenate.bind(sums, reshape.bind(rest, shape=(*x.shape[:-1], 1)), axis=last)
    while sums.shape[last] > 1:
        count = sums.shape[last]
        even = count // 2 * 2
        pairs = add.bind(slice_axis(sums, last, 0, even, 2), slice_axis(sums, last, 1, even, 2))
        sums = pairs if even == count else concatenate.bind(
            pairs, slice_axis(sums, last, even, count), axis=last)
    total = reshape.bind(sums, shape=x.shape[:-1])
    return [add.bind(init[0], total) if init else total]


def _as_leaves(eqn: Eqn):
    """A sum in tree order of more than one leaf, of numbers that kernels hold, as a function of its operands."""
    shape, dtype, axes = eqn.ins[0].aval.shape, eqn.ins[0].aval.dtype, eqn.params["axes"]
    if (eqn.params["order"] != "tree" or dtype.software or dtype.kind not in "iuf"
            or prod(shape[a] for a in axes) <= LEAF):
        return None
    return lambda *xs: tree_sum(*xs, axes=axes)


def trees_to_sums(jaxpr: Jaxpr) -> Jaxpr:
    """Sums in tree order become ordered sums of leaves and additions."""
    return rewritten(jaxpr, _as_leaves, ("reduce_sum",))
