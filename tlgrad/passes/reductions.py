"""Reductions and products in the form that kernels run: entry by entry over one index space, the
reduced axes first or last.

    winners_to_minima      argmax, argmin  ->  the least place of the extreme
    middle_axes_moved      reduce along the last and other axes  ->  transpose, then reduce along the last;
                           reduce along axes of size 1  ->  reshape
    products_to_sums       contract of any operands  ->  entrywise products and a sum

Both keep every sum in its order.
"""
from __future__ import annotations

from math import prod

from tlgrad.core import dtypes
from tlgrad.core.jaxpr import Eqn, Jaxpr
from tlgrad.ops.contract_many import label_sizes
from tlgrad.ops.convert import convert
from tlgrad.ops.define import add, mul
from tlgrad.ops.layout import broadcast, reduce_sum, reshape, transpose, zero_of
from tlgrad.ops.logic import eq, is_nan, or_, select
from tlgrad.ops.reduce import places, reduce_max, reduce_min
from tlgrad.passes.simplify import rewritten

_REDUCTIONS = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all")
#: dtypes whose rows are added up in place, without a copy, by the nest for sums
_IN_PLACE = "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
#: so many products may be held at once
_SMALL = 1 << 14
_TYPES = ("float32", "float64", "int64", "uint64")
#: columns from which winners are searched side by side
WINNERS = 32


def middle_axes_moved(jaxpr: Jaxpr) -> Jaxpr:
    """Reductions along the last axis and others that are not next to it get their axes together."""
    return rewritten(jaxpr, _moved, _REDUCTIONS)


def products_to_sums(jaxpr: Jaxpr) -> Jaxpr:
    """Ordered contractions of any number of operands become products and a sum, which fuse."""
    return rewritten(jaxpr, _as_products, ("contract",))


def _moved(eqn: Eqn):
    if len(eqn.ins) != 1:
        return None
    shape, axes = eqn.ins[0].aval.shape, eqn.params["axes"]
    long = [k for k, n in enumerate(shape) if n != 1]
    reduced = [k for k in long if k in axes]
    if long and axes and not reduced:          # one entry alone is summed by the kernel of several
        return _of_one(eqn, tuple(n for k, n in enumerate(shape) if k not in axes))
    if reduced in (long[:len(reduced)], long[len(long) - len(reduced):]):
        return None
    if long[-1] not in axes and eqn.prim.name != "reduce_prod" and eqn.ins[0].aval.dtype.name in _IN_PLACE:
        return None
    kept = tuple(k for k in range(len(shape)) if k not in axes)
    perm, params = (*kept, *axes), {**eqn.params, "axes": tuple(range(len(kept), len(shape)))}
    return lambda x: [eqn.prim.bind(transpose.bind(x, perm=perm), **params)]


def winners_to_minima(jaxpr: Jaxpr) -> Jaxpr:
    """The first winner along an axis becomes the least of the places that hold the extreme."""
    return rewritten(jaxpr, _as_minimum, ("argmax", "argmin"))


def _as_minimum(eqn: Eqn):
    """Down columns, many side by side: two passes over the rows are 2 to 8 times as fast as NumPy's one search
    (measured, 1,000 to 100,000 columns).  Along rows NumPy's is faster (1.1 to 3 times), and stays."""
    extreme = reduce_max if eqn.prim.name == "argmax" else reduce_min
    x, axis = eqn.ins[0].aval, eqn.params["axis"]
    rows, lanes = prod(x.shape[:axis]), prod(x.shape[axis + 1:])
    if x.dtype.kind not in "biuf" or x.dtype.software or rows != 1 or lanes < WINNERS:
        return None

    def winner(x):
        y = extreme.bind(x, axes=(axis,))
        kept = tuple(k for k in range(x.ndim) if k != axis)
        place, nowhere = places(x.shape, (axis,))
        wins = eq(x, broadcast.bind(y, shape=x.shape, axes=kept))
        if x.dtype.kind == "f":
            wins = or_(wins, is_nan(x))
        return [convert(reduce_min.bind(select(wins, place, nowhere), axes=(axis,)), dtypes.int64)]
    return winner


def _of_one(eqn: Eqn, shape):
    """A reduction of single terms is the term; a sum starts from +0, so that it is never -0."""
    if eqn.prim.name != "reduce_sum":
        return lambda x: [reshape.bind(x, shape=shape)]
    if eqn.params["order"] not in ("ordered", "fused"):
        return None
    return lambda x: [add.bind(reshape.bind(x, shape=shape), zero_of(x.dtype))]


def _as_products(eqn: Eqn):
    if eqn.params["order"] != "ordered":
        return None
    labels, out, summed = (eqn.params[name] for name in ("labels", "out", "summed"))
    avals = [a.aval for a in eqn.ins]
    if not summed or avals[0].dtype.name not in _TYPES or not all(a.size for a in avals):
        return None
    sizes = label_sizes([a.shape for a in avals], labels)
    space = (*summed, *out)
    if prod(sizes.values()) > _SMALL:
        return None                            # a nest of its own reads the operands in place

    def products(*values):
        result = None
        for x, names in zip(values, labels):
            shape, axes = tuple(sizes[k] for k in space), tuple(map(space.index, names))
            order = sorted(range(len(axes)), key=axes.__getitem__)
            x = transpose.bind(x, perm=tuple(order))
            x = broadcast.bind(x, shape=shape, axes=tuple(axes[k] for k in order))
            result = x if result is None else mul.bind(result, x)
        return [reduce_sum.bind(result, axes=tuple(range(len(summed))), order="ordered")]
    return products
