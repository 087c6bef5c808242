"""Ordered folds with a run-time count: one primitive, closed under every transform.

A *tower* of m sweeps runs over i = 0 .. n-1, each forward or backward.  Sweep k reads, at
turn i, the carries that the sweeps before it had when they came to turn i; only the last sweep
has results.  A loop is a tower of one sweep.  Its reverse mode is a tower of two, the loop
itself and a backward sweep that reads its states; derivatives of that are towers again.  No
array of run-time length appears anywhere: how states are kept is the business of
`control.schedule`, under the limit `memory`.

    operands  n, consts..., xs..., carries of sweep 0..., ..., carries of sweep m-1...
    body k    i, consts..., xs[i]..., carries 0..., ..., carries k...  ->  carries k...
    results   of the last sweep: carries..., then what its body gives at each turn, stacked;
              those where `results` holds
"""
from __future__ import annotations

from tlgrad.control.lanes import borrow_all, choose
from tlgrad.control.native import run_compiled, step_of, turns_worth_compiling
from tlgrad.control.plan import plan_of
from tlgrad.control.schedule import execute
from tlgrad.control.staging import remembered, reorder, split_list
from tlgrad.control.tower import Layout, known_layout, known_operands, split_tower
from tlgrad.control.turned import transpose_tower
from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr
from tlgrad.core.primitive import Primitive
from tlgrad.errors import ShapeError
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.index import mapped
from tlgrad.ops.layout import moveaxis, zeros
from tlgrad.ops.logic import lt, select
from tlgrad.ops.reduce import reduce_max, reduce_min
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.stage import stage_closed


# ---- meaning ----

def _impl(n, *operands, **params):
    return _run(n, operands, params, plan_of)


def _run(n, operands, params, step_of):
    layout = Layout(**params)
    _, consts, xs, carries = layout.split([n, *operands])
    return execute(layout, n, consts, xs, carries, step_of)


def _eager(n, *operands, **params):
    most = turns_worth_compiling(params["bodies"])
    if most is None or n <= most:
        return _run(n, operands, params, step_of)
    return run_compiled(sweeps_p, params["bodies"][-1], [n, *operands], params,
                        lambda: _run(n, operands, params, step_of))


def _abstract(*avals, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(avals)
    if n.shape != () or not dtypes.is_integer(n.dtype):
        raise ShapeError(f"sweeps: the count must be an integer of shape (), got {n}")
    shared = [n, *consts, *[a.with_shape(a.shape[1:]) for a in xs]]
    for k, body in enumerate(layout.bodies):
        shared += carries[k]
        if [a.strong() for a in body.in_avals] != [a.strong() for a in shared]:
            raise ShapeError(f"sweeps: body {k} takes {body.in_avals}, its operands are {shared}")
    outs = [a.strong() for a in layout.bodies[-1].out_avals]
    n_carry = layout.carries[-1]
    if outs[:n_carry] != [a.strong() for a in carries[-1]]:
        raise ShapeError(f"sweeps: the carry {carries[-1]} becomes {outs[:n_carry]}")
    stacked = [a.with_shape((layout.length, *a.shape)) for a in outs[n_carry:]]
    return [a for a, want in zip([*outs[:n_carry], *stacked], layout.results, strict=True) if want]


# ---- forward mode: every body is made dual ----

def _jvp(primals, tangents, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(primals)
    _, consts_t, xs_t, carries_t = layout.split(tangents)
    nonzero = [[type(t) is not Zero for t in ts] for ts in (consts_t, xs_t, *carries_t)]
    dual, out_nonzero = _dual_layout(layout, nonzero)
    operands = [n]
    for values, ts, nz in zip([consts, xs, *carries], [consts_t, xs_t, *carries_t], nonzero):
        operands += [*values, *[instantiate(t) for t, z in zip(ts, nz) if z]]
    outs = dual.bind(*operands)
    return _pair_results(layout, outs, nonzero[-1], out_nonzero)


def _dual_layout(layout: Layout, nonzero) -> tuple[Layout, list[bool]]:
    """The tower of dual bodies; `nonzero` (consts, xs, carries...) grows to its fixed point."""
    bodies, out_nonzero = [], []
    for k, body in enumerate(layout.bodies):
        n_carry = layout.carries[k]
        mine = nonzero[2 + k]
        while True:
            flags = [False, *[z for group in nonzero[:3 + k] for z in group]]
            keep = [*mine, *[False] * (len(body.outs) - n_carry)]
            dual, out_nonzero = jvp_jaxpr(body, flags, keep)
            if out_nonzero[:n_carry] == mine:
                break
            mine[:] = [a or b for a, b in zip(mine, out_nonzero)]
        bodies.append(_interleave(dual, [1, *map(len, nonzero[:3 + k])], flags, n_carry, out_nonzero))
    sizes = [len(g) + sum(g) for g in nonzero]
    ys_nonzero = out_nonzero[layout.carries[-1]:]
    wanted, wanted_ys = split_list(layout.results, layout.carries[-1])
    results = [*wanted, *[w for w, z in zip(wanted, nonzero[-1]) if z],
               *wanted_ys, *[w for w, z in zip(wanted_ys, ys_nonzero) if z]]
    return layout._replace(bodies=tuple(bodies), n_consts=sizes[0], n_xs=sizes[1], carries=tuple(sizes[2:]),
                           results=tuple(results)), ys_nonzero


def _interleave(dual: Jaxpr, groups, flags, n_carry, out_nonzero) -> Jaxpr:
    """(x..., dots...) -> (...) with the dots of each group right after the group."""
    dot = iter(range(len(flags), len(dual.in_binders)))
    dots = [next(dot) if z else None for z in flags]
    order, start = [], 0
    for size in groups:
        span = range(start, start + size)
        order += [*span, *[dots[k] for k in span if flags[k]]]
        start += size
    n_out = len(out_nonzero)
    out_dot = iter(range(n_out, len(dual.outs)))
    out_dots = [next(out_dot) if z else None for z in out_nonzero]
    outs = [*range(n_carry), *[d for d in out_dots[:n_carry] if d is not None],
            *range(n_carry, n_out), *[d for d in out_dots[n_carry:] if d is not None]]
    return reorder(dual, order, outs)


def _pair_results(layout, outs, carry_nonzero, ys_nonzero):
    """Results of the dual tower as (primal results, tangents)."""
    n_carry = layout.carries[-1]
    wanted, wanted_ys = split_list(layout.results, n_carry)
    values, dots = [], []
    rest = list(outs)
    for want, nonzero in ((wanted, carry_nonzero), (wanted_ys, ys_nonzero)):
        kept = [z for w, z in zip(want, nonzero) if w]
        ys, ts, rest = split_list(rest, len(kept), sum(kept))
        it = iter(ts)
        values += ys
        dots += [next(it) if z else Zero(y.aval) for y, z in zip(ys, kept)]
    return values, dots


# ---- partial evaluation: known carries run now; later, all runs again beside the unknown ----

def _partial_eval(trace, args, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(args)
    if trace.is_unknown(n):
        return trace.emit(sweeps_p, args, params)
    is_unknown = [list(map(trace.is_unknown, group)) for group in (consts, xs, *carries)]
    cut = split_tower(layout, is_unknown[0], is_unknown[1], is_unknown[2:])
    out_unknown = [*cut.carries[-1], *cut.ys]
    now = known_layout(layout, cut)
    known_outs = now.bind(n, *known_operands(cut, consts, xs, carries)) if any(now.results) else []
    later_results = tuple(want and u for want, u in zip(layout.results, out_unknown))
    later_outs = []
    if any(later_results):
        operands = [n, *consts, *xs, *[x for c in carries for x in c]]
        later_outs = trace.emit(sweeps_p, operands, layout._replace(results=later_results)._asdict())
    first, second = iter(known_outs), iter(later_outs)
    return [next(second) if u else next(first) for u, want in zip(out_unknown, layout.results) if want]


# ---- batching ----

def _batch(args, axes, size, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(args)
    n_axis, consts_axes, xs_axes, carries_axes = layout.split(axes)
    is_mapped = [[k is not None for k in group] for group in (consts_axes, xs_axes, *carries_axes)]
    by_lane = n_axis is not None
    if by_lane:
        n = moveaxis(n, n_axis, 0)
        is_mapped[2:] = [[True] * len(c) for c in carries]
    ys_mapped, bodies = _mapped_bodies(layout, is_mapped, size)
    consts = [x if k is None else moveaxis(x, k, 0) for x, k in zip(consts, consts_axes)]
    xs = [x if k is None else moveaxis(x, k, 1) for x, k in zip(xs, xs_axes)]
    carries = [[mapped(x, k, size) if m else x for x, k, m in zip(*group)]
               for group in zip(carries, carries_axes, is_mapped[2:])]
    if by_lane:
        bodies = [_guarded(layout, b, k, is_mapped, n.aval) for k, b in enumerate(bodies)]
        layout, consts = layout._replace(n_consts=layout.n_consts + 1), [n, *consts]
        n = longest(n)
    outs = layout._replace(bodies=tuple(bodies)).bind(n, *consts, *xs, *[x for c in carries for x in c])
    out_axes = [*[0 if m else None for m in is_mapped[-1]], *[1 if m else None for m in ys_mapped]]
    return outs, [k for k, want in zip(out_axes, layout.results) if want]


def longest(counts):
    """The greatest count, 0 of none; a negative one, where there is any, so that it is refused."""
    if not counts.shape[0]:
        return zeros(make_aval((), counts.dtype))
    least, most = (prim.bind(counts, axes=(0,)) for prim in (reduce_min, reduce_max))
    return select.bind(lt(least, 0), least, most)


def _mapped_bodies(layout, is_mapped, size):
    """Bodies over lanes; `is_mapped` (consts, xs, carries...) grows to its fixed point."""
    bodies, ys = [], []
    for k, body in enumerate(layout.bodies):
        mine, n_carry = is_mapped[2 + k], layout.carries[k]
        while True:
            flags = [False, *[m for group in is_mapped[:3 + k] for m in group]]
            lanes, found = batch_jaxpr(body, size, flags, [*mine, *[False] * (len(body.outs) - n_carry)])
            if found[:n_carry] == mine:
                break
            mine[:] = [a or b for a, b in zip(mine, found)]
        ys = found[n_carry:]
        bodies.append(lanes)
    return ys, bodies


def _guarded(layout, body, k, is_mapped, n_aval) -> Jaxpr:
    """Body k over lanes with counts of their own, (i, counts, ...): ended lanes stay as they are."""
    flags = [m for group in is_mapped[:3 + k] for m in group]
    n_carry = layout.carries[k]

    def f(i, counts, *values):
        live = lt(i, counts)
        outs = eval_jaxpr(body, [i, *borrow_all(live, values, flags)])
        return [choose(live, new, old) for new, old in zip(outs, values[len(values) - n_carry:])]
    avals = [body.in_avals[0], n_aval.strong(), *body.in_avals[1:]]
    return remembered(body, ("guarded", tuple(flags), n_carry, n_aval),
                      lambda: stage_closed(f, avals, "vmap of a loop"))


sweeps_p = documented(
    Primitive("sweeps", impl=_impl, eager=_eager, abstract=_abstract, jvp=_jvp,
              partial_eval=_partial_eval, transpose=transpose_tower, batch=_batch, multiple=True,
              onto=True, kind="scan", lower=("control", "sweeps")),
    "A tower of ordered folds over i = 0 .. n-1 (see the module).", "n *operands")
