"""Partial evaluation: run what is known, write down the rest.

    linearize : (a -> b) -> a -> (b, T a -o T b)      jvp under partial evaluation

The values that the unknown part reads from the known one are its residuals.
"""
from __future__ import annotations

from typing import Callable, Sequence

from tlgrad.core.aval import Aval, Zero
from tlgrad.core.dtypes import is_inexact
from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, Var, check_jaxpr, eval_jaxpr
from tlgrad.core.source import user_source
from tlgrad.core.tensor import Tensor, as_value
from tlgrad.core.trace import Trace, current_trace, new_trace, running_under
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.stage import StageTracer, replace_held, stage_closed


class Unknown(StageTracer):
    """A value that only the staged part computes."""

    __slots__ = ()


class PartialEvalTrace(Trace):
    """Primitives of known values run under the parent, all others become equations."""

    name = "vjp"

    def __init__(self, parent):
        super().__init__(parent)
        self.eqns: list[Eqn] = []
        self.residuals: dict[int, tuple[Var, object]] = {}

    def new_unknown(self, aval: Aval) -> Unknown:
        return Unknown(self, Var(aval))

    def is_unknown(self, x) -> bool:
        return type(x) is Unknown and x.trace is self

    def atom(self, x):
        if self.is_unknown(x):
            return x.var
        if type(x) is Tensor and x.aval.shape == ():
            return Literal(x)
        found = self.residuals.get(id(x))
        if found is None:
            found = self.residuals[id(x)] = (Var(x.aval), x)
        return found[0]

    def keep(self, x, old):
        replace_held(self.residuals, self.eqns, x, old)

    def process(self, prim, args, params):
        if not any(self.is_unknown(x) for x in args):
            return self.parent.process(prim, args, params)
        if prim.partial_eval is not None:
            with running_under(self.parent):
                return prim.partial_eval(self, args, **params)
        return self.emit(prim, args, params)

    def emit(self, prim, args, params):
        """Write one equation down and give its unknown results."""
        atoms = [self.atom(x) for x in args]
        avals = prim.avals_out([a.aval for a in atoms], params)
        outs = [Var(a) for a in avals] if prim.multiple else [Var(avals)]
        source = user_source(3)
        self.eqns.append(Eqn(prim, atoms, params, outs, source))
        boxed = [Unknown(self, v, source) for v in outs]
        return boxed if prim.multiple else boxed[0]

    def finish(self, inputs: Sequence[Unknown], outs: Sequence) -> tuple[Jaxpr, list]:
        """The staged part: residuals first, then the unknown inputs; and the residuals' values."""
        atoms = [self.atom(x) for x in outs]
        res_vars = [v for v, _ in self.residuals.values()]
        jaxpr = Jaxpr([*res_vars, *[t.var for t in inputs]], self.eqns, atoms)
        return check_jaxpr(jaxpr, "partial evaluation"), [x for _, x in self.residuals.values()]


class Linearized:
    """A linear program with its residuals.   (T a)... -o (T b)..., symbolic zeros allowed."""

    __slots__ = ("jaxpr", "residuals", "in_index", "out_zero", "n_in")

    def __init__(self, jaxpr, residuals, in_index, out_zero, n_in):
        self.jaxpr, self.residuals = jaxpr, residuals
        self.in_index, self.out_zero, self.n_in = in_index, out_zero, n_in

    def __call__(self, *tangents) -> list:
        """Push tangents forward."""
        given = [tangents[k] for k in self.in_index]
        outs = iter(eval_jaxpr(self.jaxpr, [*self.residuals, *given]))
        return [zero if zero is not None else next(outs) for zero in self.out_zero]

    def first(self, n: int) -> "Linearized":
        """The linear program of the first n results alone."""
        outs = self.jaxpr.outs[:sum(zero is None for zero in self.out_zero[:n])]
        return Linearized(Jaxpr(self.jaxpr.in_binders, self.jaxpr.eqns, outs), self.residuals,
                          self.in_index, self.out_zero[:n], self.n_in)


def linearize_flat(f: Callable, primals: Sequence) -> tuple[list, Linearized]:
    """f : [value] -> [value].  Its results, and its derivative at `primals` as a linear program.

    Integer inputs have no tangents.
    """
    trace = PartialEvalTrace(current_trace())
    in_index = [k for k, x in enumerate(primals) if is_inexact(x.aval.dtype)]
    unknowns = {k: trace.new_unknown(primals[k].aval) for k in in_index}
    with new_trace(trace):
        tangents = [unknowns.get(k, Zero(x.aval)) for k, x in enumerate(primals)]
        outs, outs_dot = jvp_flat(f, primals, tangents)
        out_zero = [t if type(t) is Zero else None for t in outs_dot]
        unknown_outs = [t for t in outs_dot if type(t) is not Zero]
        jaxpr, residuals = trace.finish(list(unknowns.values()), unknown_outs)
    return outs, Linearized(jaxpr, residuals, in_index, out_zero, len(primals))


def partial_eval_jaxpr(jaxpr: Jaxpr, unknown: Sequence[bool]):
    """Split a jaxpr by which inputs are known.

    known part:    (known inputs...) -> (known results..., residuals...)
    unknown part:  (residuals..., unknown inputs...) -> (unknown results...)

    Gives (known part, unknown part, which results are unknown, number of residuals).
    """
    unknown = tuple(unknown)
    key = ("partial_eval", unknown)
    if key in jaxpr.memo:
        return jaxpr.memo[key]
    found = {}

    def known_part(*known_args):
        trace = PartialEvalTrace(current_trace())
        known_iter = iter(known_args)
        args = [trace.new_unknown(a) if u else next(known_iter) for a, u in zip(jaxpr.in_avals, unknown)]
        with new_trace(trace):
            outs = [as_value(y) for y in eval_jaxpr(jaxpr, args)]
            unknown_out = [trace.is_unknown(y) for y in outs]
            rest, residuals = trace.finish([a for a, u in zip(args, unknown) if u],
                                           [y for y, u in zip(outs, unknown_out) if u])
        found.update(rest=rest, unknown_out=unknown_out, n=len(residuals))
        return [*[y for y, u in zip(outs, unknown_out) if not u], *residuals]

    known_avals = [a for a, u in zip(jaxpr.in_avals, unknown) if not u]
    known = stage_closed(known_part, known_avals, "partial evaluation")
    jaxpr.memo[key] = (known, found["rest"], found["unknown_out"], found["n"])
    return jaxpr.memo[key]
