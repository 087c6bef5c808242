"""Control flow over lanes that disagree: some take a branch or go on, others do not.

A lane must not evaluate what its own program would not: it could raise, never end, or poison
a derivative.  So a lane that is out gets, in place of its own inputs, those of a *leader*: a
lane that is in.  It repeats the leader's work, and its results are dropped.  The inputs it
borrows carry no derivative, so what it drops is exactly zero.
"""
from __future__ import annotations

from tlgrad.ops.stop import fixed
from tlgrad.control.staging import remembered
from tlgrad.core import dtypes
from tlgrad.core.jaxpr import eval_jaxpr
from tlgrad.ops.convert import convert
from tlgrad.ops.index import gather, mapped
from tlgrad.ops.layout import broadcast, reshape, zeros
from tlgrad.ops.logic import eq, select
from tlgrad.ops.reduce import argmax_p, reduce_any
from tlgrad.ops.shape import iota
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.stage import stage_closed


def spread(mask, like):
    """A mask of lanes with the shape of `like`, whose axis 0 is the lanes."""
    return broadcast.bind(mask, shape=like.shape, axes=(0,)) if like.ndim > 1 else mask


def choose(mask, x, y):
    """By lane: x where `mask` holds, else y."""
    return select.bind(spread(mask, x), x, y)


def leader_of(mask):
    """Index array, shape (1,), of the first lane that is in."""
    return reshape.bind(argmax_p.bind(convert(mask, dtypes.int8), axis=0), shape=(1,))


def borrow(mask, leader, x):
    """x with the entries of lanes that are out replaced by the leader's, without derivative."""
    one = fixed(gather.bind(x, leader, axes=(0,)))
    return choose(mask, x, broadcast.bind(one, shape=x.shape, axes=tuple(range(1, x.ndim))))


def borrow_all(mask, values, is_mapped):
    """`borrow` for the mapped values; with no lane there is nothing to replace."""
    if not mask.shape[0]:
        return list(values)
    leader = leader_of(mask)
    return [borrow(mask, leader, x) if m else x for x, m in zip(values, is_mapped)]


def batched_cond(cond_p, args, axes, size, branches):
    """The batching rule of `cond`."""
    index, *operands = args
    is_mapped = [k is not None for k in axes[1:]]
    operands = [mapped(x, k, size) if k is not None else x for x, k in zip(operands, axes[1:])]
    if axes[0] is None:
        found = [batch_jaxpr(b, size, is_mapped)[1] for b in branches]
        keep = tuple(map(any, zip(*found)))
        lanes = tuple(batch_jaxpr(b, size, is_mapped, keep)[0] for b in branches)
        outs = cond_p.bind(index, *operands, branches=lanes)
        return outs, [0 if k else None for k in keep]
    index = mapped(index, axes[0], size)
    _check_indices(index, len(branches))
    outs = None
    for k, branch in enumerate(branches):
        mask = eq(index, k)
        mine = _lanes_of(cond_p, branch, mask, operands, is_mapped, size)
        outs = mine if outs is None else [choose(mask, y, x) for x, y in zip(outs, mine)]
    return outs, [0] * len(outs)


def _check_indices(index, n):
    """An index outside raises, as it does in a single lane."""
    places = reshape.bind(index, shape=(*index.shape, 1))
    gather.bind(iota.bind(shape=(n,), axis=0, dtype=dtypes.int64), places, axes=(0,))


def _lanes_of(cond_p, branch, mask, operands, is_mapped, size):
    """Results of one branch in the lanes of `mask`; nothing is evaluated when there is none."""
    lanes, _ = batch_jaxpr(branch, size, is_mapped, True)

    def taken(mask, *values):
        return eval_jaxpr(lanes, borrow_all(mask, values, is_mapped))

    def skipped(mask, *values):
        return [zeros(a) for a in lanes.out_avals]

    avals = [mask.aval, *[x.aval for x in operands]]
    pair = remembered(lanes, ("lanes", tuple(avals), tuple(is_mapped)), lambda: tuple(
        stage_closed(f, avals, "vmap of cond") for f in (skipped, taken)))
    some = convert(reduce_any.bind(mask, axes=(0,)), dtypes.int64)
    return cond_p.bind(some, mask, *operands, branches=pair)
