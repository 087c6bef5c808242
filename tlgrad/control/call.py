"""`call`: a jaxpr applied as one unit; what a nested `run` becomes inside another transform.

Every rule applies the transform to the jaxpr, so a derivative of a compiled function is a
compiled function.
"""
from __future__ import annotations

from tlgrad.core.aval import Zero
from tlgrad.core.execute import execute
from tlgrad.core.jaxpr import Jaxpr
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.index import mapped
from tlgrad.ops.orders import use_order
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.partial_eval import partial_eval_jaxpr
from tlgrad.transforms.transpose import transpose_jaxpr


def _jvp(primals, tangents, *, jaxpr: Jaxpr, **params):
    nonzero = [type(t) is not Zero for t in tangents]
    dual, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
    outs = call.bind(*primals, *[t for t in tangents if type(t) is not Zero], jaxpr=dual, **params)
    ys, dots = outs[:len(jaxpr.outs)], iter(outs[len(jaxpr.outs):])
    return ys, [next(dots) if nz else Zero(y.aval) for y, nz in zip(ys, nonzero_out)]


def _partial_eval(trace, args, *, jaxpr: Jaxpr, **params):
    unknown = [trace.is_unknown(x) for x in args]
    known_part, unknown_part, unknown_out, n_res = partial_eval_jaxpr(jaxpr, unknown)
    known = call.bind(*[x for x, u in zip(args, unknown) if not u], jaxpr=known_part, **params)
    known_outs, residuals = known[:len(known) - n_res], known[len(known) - n_res:]
    rest = []
    if any(unknown_out):
        rest = trace.emit(call, [*residuals, *[x for x, u in zip(args, unknown) if u]],
                          dict(jaxpr=unknown_part, **params))
    known_iter, rest_iter = iter(known_outs), iter(rest)
    return [next(rest_iter) if u else next(known_iter) for u in unknown_out]


def _transpose(cts, *args, jaxpr: Jaxpr, order, **params):
    linear = [type(x) is Linear for x in args]
    with use_order(order):
        transposed = transpose_jaxpr(jaxpr, linear)
    outs = iter(call.bind(*[x for x, lin in zip(args, linear) if not lin], *map(instantiate, cts),
                          jaxpr=transposed, order=order, **params))
    return [next(outs) if lin else None for lin in linear]


def _batch(args, axes, size, *, jaxpr: Jaxpr, **params):
    batched = [k is not None for k in axes]
    inner, batched_out = batch_jaxpr(jaxpr, size, batched)
    outs = call.bind(*[mapped(x, k, size) if b else x for x, k, b in zip(args, axes, batched)],
                     jaxpr=inner, **params)
    return outs, [0 if b else None for b in batched_out]


call = documented(
    Primitive("call", impl=lambda *arrays, jaxpr, name, order, device: execute(jaxpr, arrays, device),
              abstract=lambda *avals, jaxpr, name, order, device: jaxpr.out_avals,
              jvp=_jvp, partial_eval=_partial_eval, transpose=_transpose, batch=_batch, multiple=True,
              lower=("call", "call")),
    "The results of a jaxpr, run as one unit on `device`.", "*args")
