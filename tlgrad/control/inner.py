"""Equations that hold a whole program: `call` keeps it apart, `checkpoint` also works it out again.

Their rules transform the jaxpr they hold.  Partial evaluation of `call` hands residuals from
the known part to the unknown one; `checkpoint` hands on its inputs only, and the unknown part
computes what it needs from them again.
"""
from __future__ import annotations

from typing import Callable

from tlgrad.control.staging import split_list
from tlgrad.control.tower import pick, tidy
from tlgrad.core.aval import Zero
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.errors import ShapeError
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.index import mapped
from tlgrad.ops.orders import use_order
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.partial_eval import partial_eval_jaxpr
from tlgrad.transforms.stage import stage_closed
from tlgrad.transforms.transpose import onto_jaxpr, transpose_jaxpr


def program_primitive(name: str, doc: str, impl: Callable, partial_eval: Callable,
                      eager: Callable | None = None) -> Primitive:
    """A primitive with a parameter `jaxpr`, applied to the operands; further parameters stay as
    they are, `order` among them is the order of sums that its derivatives make."""

    def abstract(*avals, jaxpr, **params):
        if [a.strong() for a in jaxpr.in_avals] != [a.strong() for a in avals]:
            raise ShapeError(f"{name}: the program takes {jaxpr.in_avals}, the operands are {list(avals)}")
        return jaxpr.out_avals

    def jvp(primals, tangents, *, jaxpr, **params):
        nonzero = [type(t) is not Zero for t in tangents]
        dual, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
        outs = prim.bind(*primals, *pick(tangents, nonzero), jaxpr=dual, **params)
        values, dots = split_list(outs, len(out_nonzero))
        it = iter(dots)
        return values, [next(it) if z else Zero(y.aval) for y, z in zip(values, out_nonzero)]

    def transpose(cts, *args, onto, jaxpr, **params):
        linear = [type(x) is Linear for x in args]
        before = [x for x in onto if x is not None]
        summing = onto_jaxpr(jaxpr, [x is not None for x in onto])
        turned = turned_in_order(summing, linear, params.get("order"))
        known = pick(args, linear, False)
        found = iter(prim.bind(*known, *before, *map(instantiate, cts), jaxpr=turned, **params))
        return [next(found) if lin else None for lin in linear]

    def batch(args, axes, size, *, jaxpr, **params):
        flags = [k is not None for k in axes]
        lanes, out_mapped = batch_jaxpr(jaxpr, size, flags)
        values = [mapped(x, k, size) if k is not None else x for x, k in zip(args, axes)]
        return prim.bind(*values, jaxpr=lanes, **params), [0 if m else None for m in out_mapped]

    prim = documented(Primitive(name, impl=impl, eager=eager, abstract=abstract, jvp=jvp, transpose=transpose,
                                batch=batch, multiple=True, onto=True, lower=("call", name)), doc, "*operands")
    prim.partial_eval = lambda trace, args, **params: partial_eval(prim, trace, args, **params)
    return prim


def turned_in_order(jaxpr: Jaxpr, linear, order: str | None) -> Jaxpr:
    """The transposed jaxpr whose sums run in `order` (None: that of the run)."""
    key = ("in order", order)
    if key not in jaxpr.memo:
        jaxpr.memo[key] = Jaxpr(jaxpr.in_binders, jaxpr.eqns, jaxpr.outs) if order else jaxpr
    with use_order(order):
        return transpose_jaxpr(jaxpr.memo[key], linear)


def with_residuals(prim, trace, args, *, jaxpr, **params):
    """Partial evaluation in two programs, joined by residuals."""
    unknown = list(map(trace.is_unknown, args))
    known, rest, out_unknown, n_res = partial_eval_jaxpr(jaxpr, unknown)
    outs = prim.bind(*pick(args, unknown, False), jaxpr=known, **params) if known.outs else []
    plain, residuals = split_list(outs, len(outs) - n_res)
    later = []
    if rest.outs:
        later = trace.emit(prim, [*residuals, *pick(args, unknown)], {"jaxpr": rest, **params})
    first, second = iter(plain), iter(later)
    return [next(second) if u else next(first) for u in out_unknown]


def by_recomputation(prim, trace, args, *, jaxpr, **params):
    """Partial evaluation whose unknown part starts again from the inputs."""
    unknown = list(map(trace.is_unknown, args))
    known, _, out_unknown, n_res = partial_eval_jaxpr(jaxpr, unknown)
    n_plain = len(known.outs) - n_res
    plain = []
    if n_plain:
        first = tidy(Jaxpr(known.in_binders, known.eqns, known.outs[:n_plain]))
        plain = prim.bind(*pick(args, unknown, False), jaxpr=first, **params)
    later = []
    if any(out_unknown):
        later = trace.emit(prim, args, {"jaxpr": recomputing(jaxpr, unknown), **params})
    first, second = iter(plain), iter(later)
    return [next(second) if u else next(first) for u in out_unknown]


def recomputing(jaxpr: Jaxpr, unknown) -> Jaxpr:
    """All inputs -> the unknown results."""
    unknown = tuple(unknown)
    key = ("recomputing", unknown)
    if key not in jaxpr.memo:
        known, rest, _, n_res = partial_eval_jaxpr(jaxpr, unknown)

        def f(*xs):
            outs = eval_jaxpr(known, pick(xs, unknown, False))
            return eval_jaxpr(rest, [*outs[len(outs) - n_res:], *pick(xs, unknown)])
        jaxpr.memo[key] = tidy(stage_closed(f, jaxpr.in_avals, "checkpoint"))
    return jaxpr.memo[key]
