"""Long eager loops over numbers are compiled, as `tl.run` would; the words are the same.

Interpreting one operation takes some microseconds, so a loop of many turns is worth the
milliseconds that compiling its body takes.  Which loops a backend can compile is its affair: it
interprets the others.
"""
from __future__ import annotations

from tlgrad.core.aval import make_aval
from tlgrad.core.dtypes import of_storage
from tlgrad.core.execute import execute
from tlgrad.core.jaxpr import Eqn, Jaxpr, Var, count_eqns

#: operations, turns times equations, from which a loop is compiled
WORTH_COMPILING = 30_000
#: entries of a state from which arrays are not small any more
SMALL = 1024
_KINDS = ("elementwise", "structural", "scan", "general")


def turns_worth_compiling(bodies) -> int | None:
    """From how many turns a loop is compiled; None when it never is: its bodies must work entry by
    entry on small states."""
    if not all(map(_by_entry, bodies)):
        return None
    return WORTH_COMPILING // max(1, sum(map(count_eqns, bodies)))


def _by_entry(body: Jaxpr) -> bool:
    if "by entry" not in body.memo:
        avals = [*body.in_avals, *[v.aval for eqn in body.eqns for v in eqn.outs]]
        shapes = {a.shape for a in avals} - {()}
        body.memo["by entry"] = (
            len(shapes) < 2 and all(a.size <= SMALL and not a.dtype.software for a in avals)
            and all(eqn.prim.kind in _KINDS for eqn in body.eqns))
    return body.memo["by entry"]


def run_compiled(prim, arrays, params) -> list:
    """One equation on the CPU backend."""
    binders = [Var(make_aval(x.shape, of_storage(x.dtype))) for x in arrays]
    outs = [Var(a) for a in prim.avals_out([v.aval for v in binders], params)]
    jaxpr = Jaxpr(binders, [Eqn(prim, binders, params, outs)], outs)
    return execute(jaxpr, list(arrays))
