"""Loops of calls on tensors, and inside compiled programs: bodies are compiled where that pays.

Interpreting one operation takes some microseconds.  A loop of many turns over numbers is
compiled whole, as `tl.run` would.  Bodies with contractions, reductions or large arrays are
compiled on their own, and run turn by turn.  The words are those of the interpreter.
"""
from __future__ import annotations

from typing import Callable, Sequence

from tlgrad.control.plan import plan_of
from tlgrad.control.staging import remembered
from tlgrad.core.aval import make_aval
from tlgrad.core.dtypes import of_storage
from tlgrad.core.execute import backend, execute
from tlgrad.core.jaxpr import Eqn, Jaxpr, Var, count_eqns, sub_jaxprs

#: operations, turns times equations, from which a loop over numbers is compiled whole
WORTH_COMPILING = 30_000
#: entries of a state up to which interpreting an elementwise operation is as fast as a kernel
SMALL = 1024
_CONTROL = ("sweeps", "while", "cond")


def step_of(body: Jaxpr) -> Callable:
    """A function of arrays that gives the list of results, interpreted or compiled."""
    return remembered(body, ("step",), lambda: _step(body))


def _step(body):
    cpu = backend("cpu")
    if by_entry(body) or cpu.name == "reference":
        return plan_of(body)
    return lambda *arrays: cpu.execute(body, arrays)


def by_entry(body: Jaxpr) -> bool:
    """True when the body works entry by entry on small states of one shape."""
    def found():
        avals = [*body.in_avals, *[v.aval for eqn in body.eqns for v in eqn.outs]]
        return (len({a.shape for a in avals} - {()}) < 2
                and all(a.size <= SMALL and not a.dtype.software for a in avals)
                and all(_eqn_by_entry(eqn) for eqn in body.eqns))
    return remembered(body, ("by entry",), found)


def _eqn_by_entry(eqn) -> bool:
    if eqn.prim.name in _CONTROL:
        return all(map(by_entry, sub_jaxprs(eqn.params)))
    return eqn.prim.kind == "elementwise" or eqn.prim.name in ("broadcast", "reshape")


def turns_worth_compiling(bodies: Sequence[Jaxpr]) -> int | None:
    """From how many turns a loop is compiled whole; None when it never is."""
    if not all(map(by_entry, bodies)):
        return None
    return WORTH_COMPILING // max(1, sum(map(count_eqns, bodies)))


def run_compiled(prim, body: Jaxpr, arrays, params, otherwise: Callable) -> list:
    """One equation, the loop over `body`, on the CPU backend; ``otherwise()`` where that interprets it.

    A backend that cannot compile the loop comes back here for it: then it is not asked again.
    """
    state = body.memo.get("native")
    if state is not None:
        body.memo["native"] = "interpreted"
        return otherwise()
    binders = [Var(make_aval(x.shape, of_storage(x.dtype))) for x in arrays]
    outs = [Var(a) for a in prim.avals_out([v.aval for v in binders], params)]
    body.memo["native"] = "asked"
    try:
        return execute(Jaxpr(binders, [Eqn(prim, binders, params, outs)], outs), list(arrays))
    finally:
        if body.memo["native"] == "asked":
            del body.memo["native"]
