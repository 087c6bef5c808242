"""Forward mode: dual numbers.    jvp : (a -> b) -> (a, T a) -> (b, T b)"""
from __future__ import annotations

from typing import Callable, Sequence

from tlgrad.core.aval import Zero
from tlgrad.core.dtypes import is_inexact
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Trace, Tracer, current_trace, new_trace, running_under
from tlgrad.errors import DifferentiationError
from tlgrad.ops.define import instantiate
from tlgrad.transforms.stage import stage_closed


class Dual(Tracer):
    """A primal with its tangent (never a symbolic zero)."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace, primal, tangent):
        super().__init__(trace)
        self.primal, self.tangent = primal, tangent

    @property
    def aval(self):
        return self.primal.aval

    def __bool__(self):
        return bool(self.primal)

    def __int__(self):
        return int(self.primal)

    def item(self):
        """The primal's number, where only steps of it matter: not differentiated."""
        return Tracer.item(self)


class JVPTrace(Trace):
    """Propagates pairs; rules run under the parent."""

    name = "jvp"

    def pair(self, x):
        """(primal, tangent); what belongs to another trace is a constant here."""
        if type(x) is Dual and x.trace is self:
            return x.primal, x.tangent
        return x, Zero(x.aval)

    def box(self, y, y_dot):
        return y if type(y_dot) is Zero else Dual(self, y, y_dot)

    def own(self, x):
        x = self.parent.own(x)
        if type(x) is Dual and x.trace is self or not is_inexact(x.aval.dtype):
            return x
        with running_under(self.parent):
            return Dual(self, x, instantiate(Zero(x.aval)))

    def process(self, prim, args, params):
        if not any(type(x) is Dual and x.trace is self for x in args):
            return self.parent.process(prim, args, params)
        primals, tangents = zip(*map(self.pair, args))
        if prim.nondiff == "":
            return self.parent.process(prim, primals, params)
        if prim.jvp is None:
            raise DifferentiationError(f"{prim} has no derivative: {prim.nondiff or 'no rule is defined'}")
        with running_under(self.parent):
            out, out_dot = prim.jvp(primals, tangents, **params)
        if prim.multiple:
            return [self.box(y, t) for y, t in zip(out, out_dot, strict=True)]
        return self.box(out, out_dot)


def jvp_flat(f: Callable, primals: Sequence, tangents: Sequence) -> tuple[list, list]:
    """f : [value] -> [value].  Results and their tangents, symbolic zeros kept."""
    trace = JVPTrace(current_trace())
    with new_trace(trace):
        outs = f(*[trace.box(x, t) for x, t in zip(primals, tangents, strict=True)])
        pairs = [trace.pair(as_value(y)) for y in outs]
    return [y for y, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(jaxpr: Jaxpr, nonzero: Sequence[bool],
              keep: Sequence[bool] | bool = False) -> tuple[Jaxpr, list[bool]]:
    """(x..., x_dot of the nonzero inputs...) -> (y..., y_dot of the nonzero results...).

    `keep` forces results to have a tangent even where it is zero.  Also tells which have one.
    """
    nonzero = tuple(nonzero)
    keep = (keep,) * len(jaxpr.outs) if isinstance(keep, bool) else tuple(keep)
    key = ("jvp", nonzero, keep)
    if key not in jaxpr.memo:
        n, nonzero_out = len(nonzero), []

        def f(*args):
            dots = iter(args[n:])
            tangents = [next(dots) if nz else Zero(x.aval) for x, nz in zip(args, nonzero)]
            ys, y_dots = jvp_flat(lambda *xs: eval_jaxpr(jaxpr, xs), args[:n], tangents)
            nonzero_out[:] = [(type(t) is not Zero or k) and is_inexact(t.aval.dtype)
                              for t, k in zip(y_dots, keep)]
            return [*ys, *[instantiate(t) for t, nz in zip(y_dots, nonzero_out) if nz]]

        avals = [*jaxpr.in_avals, *[a for a, nz in zip(jaxpr.in_avals, nonzero) if nz]]
        jaxpr.memo[key] = (stage_closed(f, avals, "a derivative rule"), nonzero_out)
    return jaxpr.memo[key]
