"""Loops that end by a condition.

    while_loop : (a -> bool), (a -> a), a -> a

Primitive `while`: consts..., carries... -> carries..., and the count of turns when `counted`.
Reverse mode records that count; the unknown part is then a tower of `sweeps` with it.
"""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from tlgrad.control.carry import Carry, restored, settle
from tlgrad.control.lanes import borrow_all, choose
from tlgrad.control.native import run_compiled, step_of, turns_worth_compiling
from tlgrad.control.plan import plan_of
from tlgrad.control.schedule import check_memory
from tlgrad.control.staging import (Staged, flatten_values, join_captured, remembered, reorder,
                                    result_leaves, split_list)
from tlgrad.control.sweeps import sweeps_p
from tlgrad.control.tower import Layout, pick, split_tower
from tlgrad.core import dtypes, tree
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr
from tlgrad.core.primitive import Primitive
from tlgrad.core.source import check_callable, describe_callable
from tlgrad.errors import DTypeError, ShapeError, TlgradError
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.index import mapped
from tlgrad.ops.layout import zero_of
from tlgrad.ops.reduce import reduce_any
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.stage import stage, stage_closed

_COUNT = make_aval((), dtypes.int64)


def _impl(*operands, cond, body, n_consts, counted, memory):
    carry, turn, _ = _turns(operands, n_consts, plan_of(cond), plan_of(body), None)
    return [*carry, np.array(turn, np.int64)] if counted else carry


def _turns(operands, n_consts, go_on, step, most):
    """Carry, number of turns, and whether the loop ended; at most `most` turns."""
    consts, carry, turn = operands[:n_consts], operands[n_consts:], 0
    with np.errstate(all="ignore"):
        try:
            while go_on(*consts, *carry)[0]:
                if turn == most:
                    return list(map(np.asarray, carry)), turn, False
                carry = step(*consts, *carry)
                turn += 1
        except TlgradError as error:
            error.add_note(f"in turn {turn} of the while_loop (turns count from 0)")
            raise
    return list(map(np.asarray, carry)), turn, True


def _eager(*operands, cond, body, n_consts, counted, memory):
    """A loop that has run for long is compiled and goes on from where it is."""
    test, longer = with_count(cond, body)
    *carry, turn = _counted(operands, test, longer, n_consts, memory, turns_worth_compiling([cond, body]))
    return [*carry, turn] if counted else carry


def _counted(operands, cond, body, n_consts, memory, most):
    """The loop whose last carry is its count, compiled after `most` turns."""
    start = [*operands, np.array(0, np.int64)]
    carry, _, ended = _turns(start, n_consts, step_of(cond), step_of(body), most)
    if ended:
        return carry
    params = dict(cond=cond, body=body, n_consts=n_consts, counted=False, memory=memory)
    now = [*operands[:n_consts], *carry]
    return run_compiled(while_p, body, now, params,
                        lambda: _turns(now, n_consts, step_of(cond), step_of(body), None)[0])


def _abstract(*avals, cond, body, n_consts, counted, memory):
    for what, jaxpr in (("condition", cond), ("body", body)):
        if [a.strong() for a in jaxpr.in_avals] != [a.strong() for a in avals]:
            raise ShapeError(f"while: the {what} takes {jaxpr.in_avals}, the operands are {list(avals)}")
    carry = [a.strong() for a in avals[n_consts:]]
    if [a.strong() for a in body.out_avals] != carry:
        raise ShapeError(f"while: the carry {carry} becomes {body.out_avals}")
    if [a.strong() for a in cond.out_avals] != [make_aval((), dtypes.bool_)]:
        raise ShapeError(f"while: the condition gives {cond.out_avals}")
    return [*carry, _COUNT] if counted else carry


def _jvp(primals, tangents, *, cond, body, n_consts, counted, memory):
    consts_nz = [type(t) is not Zero for t in tangents[:n_consts]]
    carry_nz = [type(t) is not Zero for t in tangents[n_consts:]]
    while True:
        dual, found = jvp_jaxpr(body, [*consts_nz, *carry_nz], carry_nz)
        if found == carry_nz:
            break
        carry_nz = [a or b for a, b in zip(carry_nz, found)]
    flags = [*consts_nz, *carry_nz]
    order = _dual_order(flags, n_consts)
    dual = reorder(dual, order)
    avals = dual.in_avals
    test = reorder(cond, [k if k < len(flags) else avals[place] for place, k in enumerate(order)])
    dots = [instantiate(t) for t, z in zip(tangents, flags) if z]
    n_dot_consts = sum(consts_nz)
    operands = [*primals[:n_consts], *dots[:n_dot_consts], *primals[n_consts:], *dots[n_dot_consts:]]
    outs = while_p.bind(*operands, cond=test, body=dual, n_consts=n_consts + n_dot_consts,
                        counted=counted, memory=memory)
    n_carry = len(carry_nz)
    values, found_dots, count = split_list(outs, n_carry, sum(carry_nz))
    it = iter(found_dots)
    out_dots = [next(it) if z else Zero(y.aval) for y, z in zip(values, carry_nz)]
    return [*values, *count], [*out_dots, *[Zero(c.aval) for c in count]]


def _dual_order(flags, n_consts):
    """consts, dots of consts, carries, dots of carries: as positions in (all..., dots...)."""
    dot = iter(range(len(flags), len(flags) + sum(flags)))
    dots = [next(dot) if z else None for z in flags]
    return [*range(n_consts), *[d for d in dots[:n_consts] if d is not None],
            *range(n_consts, len(flags)), *[d for d in dots[n_consts:] if d is not None]]


def _partial_eval(trace, args, *, cond, body, n_consts, counted, memory):
    consts, carry = list(args[:n_consts]), list(args[n_consts:])
    fold = reorder(body, [_COUNT, *range(len(body.in_binders))])
    layout = Layout((fold,), (False,), n_consts, 0, (len(carry),), None, (True,) * len(carry), memory)
    cut = split_tower(layout, list(map(trace.is_unknown, consts)), [], [list(map(trace.is_unknown, carry))])
    unknown = cut.carries[0]
    flags = [*cut.consts, *unknown]
    test = _known_condition(cond, flags)
    if test is None:
        return trace.emit(while_p, args, dict(cond=cond, body=body, n_consts=n_consts,
                                              counted=counted, memory=memory))
    known_body = reorder(cut.known[0], range(1, len(cut.known[0].in_binders)))
    operands = [*pick(consts, cut.consts, False), *pick(carry, unknown, False)]
    known = while_p.bind(*operands, cond=test, body=known_body, n_consts=cut.consts.count(False),
                         counted=True, memory=memory)
    later = layout._replace(results=tuple(unknown))
    more = trace.emit(sweeps_p, [known[-1], *consts, *carry], later._asdict()) if any(unknown) else []
    first, second = iter(known), iter(more)
    outs = [next(second) if u else next(first) for u in unknown]
    return [*outs, known[-1]] if counted else outs


def _known_condition(cond: Jaxpr, flags) -> Jaxpr | None:
    """The condition on known values; None when it reads an unknown one."""
    read = {a for eqn in cond.eqns for a in eqn.ins} | set(cond.outs)
    if any(v in read for v, u in zip(cond.in_binders, flags) if u):
        return None
    return reorder(cond, [k for k, u in enumerate(flags) if not u])


def _batch(args, axes, size, *, cond, body, n_consts, counted, memory):
    is_mapped = [k is not None for k in axes]
    values = [mapped(x, k, size) if k is not None else x for x, k in zip(args, axes)]
    if counted:
        return _batch_counted(values, is_mapped, size, cond, body, n_consts, memory)
    while True:
        _, out = batch_jaxpr(body, size, is_mapped, is_mapped[n_consts:])
        by_lane = batch_jaxpr(cond, size, is_mapped)[1][0]
        grown = [by_lane or a or b for a, b in zip(is_mapped[n_consts:], out)]
        if grown == is_mapped[n_consts:]:
            break
        is_mapped[n_consts:] = grown
    carry = [mapped(x, None if a is None else 0, size) if m else x
             for x, a, m in zip(values[n_consts:], axes[n_consts:], is_mapped[n_consts:])]
    test, _ = batch_jaxpr(cond, size, is_mapped)
    lanes, _ = batch_jaxpr(body, size, is_mapped, is_mapped[n_consts:])
    if by_lane:
        test, lanes = _by_lane(test, lanes, is_mapped, n_consts)
    outs = while_p.bind(*values[:n_consts], *carry, cond=test, body=lanes, n_consts=n_consts,
                        counted=False, memory=memory)
    return outs, [0 if m else None for m in is_mapped[n_consts:]]


def _by_lane(test, lanes, is_mapped, n_consts):
    """Run while any lane goes on; lanes that have ended stay as they are."""
    def any_lane(*xs):
        return [reduce_any.bind(eval_jaxpr(test, xs)[0], axes=(0,))]

    def step(*xs):
        live = eval_jaxpr(test, xs)[0]
        outs = eval_jaxpr(lanes, borrow_all(live, xs, is_mapped))
        return [choose(live, new, old) for new, old in zip(outs, xs[n_consts:])]
    avals = test.in_avals
    return remembered(lanes, ("by lane", test, tuple(is_mapped)), lambda: tuple(
        stage_closed(f, avals, "vmap of while_loop") for f in (any_lane, step)))


def _batch_counted(values, is_mapped, size, cond, body, n_consts, memory):
    """Counts by lane: one more carry that goes up in every turn."""
    test, longer = with_count(cond, body)
    axes = [0 if m else None for m in is_mapped]
    return _batch([*values, zero_of(dtypes.int64)], [*axes, None], size, cond=test, body=longer,
                  n_consts=n_consts, counted=False, memory=memory)


def with_count(cond: Jaxpr, body: Jaxpr) -> tuple[Jaxpr, Jaxpr]:
    """Condition and body with the number of turns as a further carry."""
    n = len(body.in_binders)

    def step(*xs):
        return [*eval_jaxpr(body, xs[:n]), xs[n] + 1]
    longer = remembered(body, ("with count",), lambda: stage_closed(step, [*body.in_avals, _COUNT], "while_loop"))
    return reorder(cond, [*range(n), _COUNT]), longer


while_p = documented(
    Primitive("while", impl=_impl, eager=_eager, abstract=_abstract, jvp=_jvp,
              partial_eval=_partial_eval, batch=_batch,
              multiple=True, lower=("control", "while"),
              nondiff="a while_loop whose condition depends on the value itself is not linear"),
    "The carries after turns of `body` while `cond` holds.", "*operands")


def while_loop(cond: Callable, body: Callable, init: Any, *, memory: int | str | None = None) -> Any:
    """The state after ``while cond(state): state = body(state)``, from `init`.

    cond:   state -> one bool.
    body:   state -> state of the same structure, shapes and dtypes; Python numbers in `init`
            take the dtype that it gives them.
    memory: as in `iterate`; reverse mode records the number of turns.

    Under vmap each lane stops by its own condition; its body is not evaluated any further.
    Raises DTypeError when `cond` does not give one bool, CarryError when the state changes.

    >>> while_loop(lambda x: x < 100, lambda x: x * 2, tl.tensor(3.0))
    tensor(192.0, float64, shape (), cpu)
    """
    check_callable(cond, "while_loop")
    check_callable(body, "while_loop")
    memory = check_memory(memory)
    carry = Carry(*flatten_values(init, "the start of while_loop"))

    def turn(values, _):
        return body(tree.unflatten(carry.treedef, values)), []
    carry, jaxpr, captured = settle(carry, turn, body, "while_loop")

    def test(*values):
        out, _ = result_leaves(cond(tree.unflatten(carry.treedef, values)), cond)
        if len(out) != 1 or out[0].dtype is not dtypes.bool_ or out[0].shape != ():
            raise DTypeError(f"while_loop: {describe_callable(cond)} must return one bool, got "
                             f"{', '.join(str(y.aval) for y in out) or 'nothing'}; write a comparison, "
                             "e.g. x != 0")
        return out
    test_jaxpr, test_captured = stage(test, carry.avals)
    consts, (test_jaxpr, jaxpr) = join_captured([Staged(test_jaxpr, test_captured, carry.treedef),
                                                 Staged(jaxpr, captured, carry.treedef)])
    outs = while_p.bind(*consts, *carry.values, cond=test_jaxpr, body=jaxpr, n_consts=len(consts),
                        counted=False, memory=memory)
    return restored(carry, outs)
