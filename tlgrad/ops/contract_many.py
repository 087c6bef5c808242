"""contract: products of any number of operands, summed over labels in a stated order.

Every axis of an operand carries an integer label; equal labels are one index of one size.

    labels : the labels of each operand's axes, distinct within an operand
    out    : the labels of the result's axes
    summed : the other labels, in the order of summation, the last fastest

    p = ((x0 * x1) * x2) ...           y = ((0 + p0) + p1) + ...

Two operands become one `dot_general` where that is the same sum; see `contract_labels`.
"""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.execute import Heavy
from tlgrad.core.primitive import Linear
from tlgrad.errors import DTypeError, ShapeError
from tlgrad.ops import meaning, orders
from tlgrad.ops.contract import dot_general
from tlgrad.ops.define import add, add_tangents, documented
from tlgrad.ops.layout import broadcast, moveaxis, reduce_sum, transpose, zero_of

#: products held at once, in entries
_BLOCK = 1 << 14


def label_sizes(shapes, labels) -> dict[int, int]:
    """The size of every label; ShapeError where two axes of one label differ."""
    sizes: dict[int, int] = {}
    for shape, names in zip(shapes, labels, strict=True):
        for n, name in zip(shape, names, strict=True):
            if sizes.setdefault(name, n) != n:
                raise ShapeError(f"contract: label {name} has sizes {sizes[name]} and {n} "
                                 f"(shapes {list(shapes)}, labels {labels})")
    return sizes


def _contract_abstract(*avals, labels, out, summed, order):
    sizes = label_sizes([a.shape for a in avals], labels)
    if sorted((*out, *summed)) != sorted(sizes):
        raise ShapeError(f"contract: results {out} and sums {summed} are not the labels of {labels}")
    if any(a.dtype is not avals[0].dtype for a in avals):
        raise DTypeError(f"contract takes operands of one dtype, got {list(avals)}")
    return make_aval(tuple(sizes[k] for k in out), avals[0].dtype)


# ---- meaning on arrays ----

def _views(arrays, labels, out, summed):
    """Each operand as (its summed axes, one axis for every result label), and the positions of its
    summed labels in `summed`."""
    views = []
    for x, names in zip(arrays, labels):
        own = [k for k in summed if k in names]
        kept = [k for k in out if k in names]
        moved = np.transpose(x, [names.index(k) for k in (*own, *kept)])
        shape = iter(moved.shape[len(own):])
        full = [next(shape) if k in names else 1 for k in out]
        views.append((moved.reshape((*moved.shape[:len(own)], *full)), [summed.index(k) for k in own]))
    return views


def _factors(views, index, length):
    """The operands at a run of summation indices: shape (length or 1, *result or 1)."""
    if length == 1:
        return [v[tuple(index[k][0] for k in own)][None] for v, own in views]
    return [v[tuple(index[k] for k in own)] if own else v[None] for v, own in views]


def _product(factors):
    multiply = meaning.implementation("mul")
    result = factors[0]
    for factor in factors[1:]:
        result = multiply(result, factor)
    return result


def _left_to_right(views, sizes, shape, start, stop, order, dtype):
    """The terms start..stop added from the left, never more than a block of products at once."""
    acc = np.zeros(shape, dtype)
    fused = order == "fused" and len(views) > 1 and dtypes.of_storage(dtype).kind == "f"
    fma = meaning.implementation("fma")
    step = max(1, _BLOCK // max(prod(shape), 1))
    for first in range(start, stop, step):
        length = min(step, stop - first)
        index = np.unravel_index(np.arange(first, first + length), sizes) if sizes else ()
        factors = _factors(views, index, length)
        full = (length, *shape)
        if fused:
            left = np.broadcast_to(_product(factors[:-1]), full)
            for a, b in zip(left, np.broadcast_to(factors[-1], full)):
                acc = fma(a, b, acc)
        else:
            acc = orders.left_to_right(np.broadcast_to(_product(factors), full), acc)
    return np.asarray(acc)


def _contract_impl(*arrays, labels, out, summed, order):
    sizes = label_sizes([x.shape for x in arrays], labels)
    shape, lengths = tuple(sizes[k] for k in out), tuple(sizes[k] for k in summed)
    n, dtype = prod(lengths), arrays[0].dtype
    if not n or 0 in shape:
        return np.zeros(shape, dtype)
    views = _views(arrays, labels, out, summed)
    if order != "tree":
        return _left_to_right(views, lengths, shape, 0, n, order, dtype)
    leaves = [_left_to_right(views, lengths, shape, s, min(s + orders.LEAF, n), order, dtype)
              for s in range(0, n, orders.LEAF)]
    return orders.pairwise(np.stack(leaves))


# ---- rules ----

def _contract_jvp(primals, tangents, **params):
    out = contract.bind(*primals, **params)
    out_dot = Zero(out.aval)
    for k, x_dot in enumerate(tangents):
        if type(x_dot) is not Zero:
            operands = (*primals[:k], x_dot, *primals[k + 1:])
            out_dot = add_tangents(out_dot, contract.bind(*operands, **params))
    return out, out_dot


def _contract_transpose(ct, *args, labels, out, summed, order):
    return [_operand_cotangent(k, ct, args, labels, out, order) if type(x) is Linear else None
            for k, x in enumerate(args)]


def _operand_cotangent(k, ct, args, labels, out, order):
    """The products of ct with the other operands, in that order; where an index of operand k is in
    none of them, every entry along it gets the same."""
    others = [x for i, x in enumerate(args) if i != k]
    names = (out, *[n for i, n in enumerate(labels) if i != k])
    present = list(dict.fromkeys(sum(names, ())))
    target = tuple(n for n in labels[k] if n in present)
    rest = tuple(n for n in present if n not in target)
    result = contract_labels([ct, *others], names, target, rest, order)
    if len(target) == len(labels[k]):
        return result
    axes = tuple(labels[k].index(n) for n in target)
    return broadcast.bind(result, shape=args[k].aval.shape, axes=axes)


def _contract_batch(args, axes, size, *, labels, out, summed, order):
    lane = 1 + max((k for names in labels for k in names), default=-1)
    values = [x if a is None else moveaxis(x, a, 0) for x, a in zip(args, axes)]
    names = tuple(n if a is None else (lane, *n) for n, a in zip(labels, axes))
    return contract.bind(*values, labels=names, out=(lane, *out), summed=summed, order=order), 0


def _contract_work(*avals, labels, out, summed, order):
    sizes = label_sizes([a.shape for a in avals], labels)
    return prod(sizes.values()) * (64 if order == "fused" else 1)


contract = documented(
    Heavy("contract", work=_contract_work, impl=_contract_impl, abstract=_contract_abstract, jvp=_contract_jvp,
          transpose=_contract_transpose, batch=_contract_batch, kind="contraction",
          lower=("contraction", "contract")),
    "Products of operands, summed over labels in `order`.", "*xs")


# ---- which primitive computes a contraction ----

class Pair(NamedTuple):
    """Two operands as one dot_general: which labels each is repeated along first, and so on."""
    swap: bool
    repeat_x: tuple[int, ...]
    repeat_y: tuple[int, ...]
    contract: tuple
    batch: tuple
    perm: tuple[int, ...] | None


@lru_cache(maxsize=4096)
def as_pair(x, y, out, summed) -> Pair | None:
    """The dot_general that is the same sum, or None.

    An index summed over that only one operand has makes the other repeat along it, which is done
    where the repeated operand is no larger than the other one.
    """
    only_x, only_y = ([k for k in summed if k in a and k not in b] for a, b in ((x, y), (y, x)))
    if only_x and (only_y or not {*y, *only_x} <= set(x)) or only_y and not {*x, *only_y} <= set(y):
        return None
    pairs = [_arranged((*only_y, *x), (*only_x, *y), out, summed),
             _arranged((*only_x, *y), (*only_y, *x), out, summed)]
    swap = pairs[0][2] is not None and pairs[1][2] is None
    return Pair(swap, tuple(only_y), tuple(only_x), *pairs[swap])


def _arranged(x, y, out, summed):
    """contract and batch of dot_general, and the order in which its axes form `out`."""
    shared = [k for k in out if k in x and k in y]
    contracted = (tuple(map(x.index, summed)), tuple(map(y.index, summed)))
    batch = (tuple(map(x.index, shared)), tuple(map(y.index, shared)))
    taken = {*shared, *summed}
    made = [*shared, *[k for k in x if k not in taken], *[k for k in y if k not in taken]]
    perm = tuple(map(made.index, out))
    return contracted, batch, None if perm == tuple(range(len(perm))) else perm


def contract_labels(values, labels, out, summed, order: str):
    """Products of `values` summed over `summed`, by the primitive that fits.

    One operand: reduce_sum, or + 0 where nothing is summed (a sum that starts at +0 is never -0).
    Two operands: dot_general where the sum is the same.  Otherwise `contract`.
    """
    if len(values) == 1:
        return _single(values[0], labels[0], out, summed, order)
    if len(values) == 2:
        if order == "free":
            values, labels, summed = _summed_alone(values, labels, out, summed)
        pair = as_pair(labels[0], labels[1], out, summed)
        if pair is not None:
            return _dot(*values, *labels, pair, order)
    return contract.bind(*values, labels=labels, out=out, summed=summed, order=order)


def _summed_alone(values, labels, out, summed):
    """With "free", an index that one operand alone has is summed there before the product."""
    shared = tuple(k for k in summed if all(k in names for names in labels))
    kept = tuple(tuple(k for k in names if k in shared or k in out) for names in labels)
    values = [x if now == names else _single(x, names, now, tuple(k for k in names if k not in now), "free")
              for x, names, now in zip(values, labels, kept)]
    return values, kept, shared


def _single(x, labels, out, summed, order):
    kept = tuple(k for k in labels if k not in summed)
    inner = iter(summed)
    now = tuple(next(inner) if k in summed else k for k in labels)
    x = _permuted(x, tuple(labels.index(k) for k in now))
    if summed:
        x = reduce_sum.bind(x, axes=tuple(k for k, n in enumerate(now) if n in summed), order=order)
    elif dtypes.is_inexact(x.dtype) and order != "free":
        x = add.bind(zero_of(x.dtype), x)
    return _permuted(x, tuple(map(kept.index, out)))


def _permuted(x, perm):
    return x if perm == tuple(range(len(perm))) else transpose.bind(x, perm=perm)


def _repeated(x, labels, lead, sizes):
    if not lead:
        return x
    shape = (*[sizes[k] for k in lead], *x.shape)
    return broadcast.bind(x, shape=shape, axes=tuple(range(len(lead), len(shape))))


def _dot(x, y, x_labels, y_labels, pair, order):
    sizes = dict(zip((*x_labels, *y_labels), (*x.shape, *y.shape)))
    x = _repeated(x, x_labels, pair.repeat_x, sizes)
    y = _repeated(y, y_labels, pair.repeat_y, sizes)
    if pair.swap:
        x, y = y, x
    out = dot_general.bind(x, y, contract=pair.contract, batch=pair.batch, order=order)
    return out if pair.perm is None else transpose.bind(out, perm=pair.perm)
