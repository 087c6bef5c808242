"""Flat functions with derivative rules, and the two primitives that carry them.

    custom      *values -> results          a function whose derivative is stated
    pullback    residuals, tangents -> tangents of the results, given as its own transpose

A flat function is a Python callable on values (while nothing is written down), or a jaxpr.
"""
from __future__ import annotations

from typing import Callable, Sequence

import numpy as np

from tlgrad.control.plan import plan_of
from tlgrad.control.staging import split_list
from tlgrad.core.aval import Zero
from tlgrad.core.dtypes import is_inexact
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.tensor import Tensor
from tlgrad.core.trace import EVAL, Trace, Tracer, current_trace, running_under
from tlgrad.errors import DifferentiationError
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.index import mapped
from tlgrad.ops.layout import zeros
from tlgrad.transforms.batch import batch_flat, batch_jaxpr
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.stage import stage, stage_closed
from tlgrad.transforms.transpose import backward


class Fence(Trace):
    """Runs a user's rule: a value of a transform that the rule knows nothing of is an error."""

    name = "custom rule"

    def __init__(self, parent, what: str):
        super().__init__(parent)
        self.what, self.allowed = what, set()
        trace = parent
        while trace is not None:
            self.allowed.add(id(trace))
            trace = trace.parent

    def process(self, prim, args, params):
        for x in args:
            if isinstance(x, Tracer) and id(x.trace) not in self.allowed:
                raise closed_over(self.what, x.aval, f" (made at {x.source})" if x.source else "")
        return self.parent.process(prim, args, params)


def closed_over(what: str, aval, where: str = "") -> DifferentiationError:
    """The error for a derivative with respect to a value that a custom function closes over."""
    return DifferentiationError(
        f"{what} has a custom derivative rule, and closes over a value that is being differentiated, "
        f"{aval}{where}. Its rule says nothing about that value: pass it as an argument, or close over "
        "tl.stop_gradient(value) if it is a constant here.")


class PythonFunction:
    """A flat callable, run as it is."""

    jaxpr = None

    def __init__(self, f: Callable, what: str):
        self.f, self.what = f, what

    def __repr__(self):
        return self.what

    def __call__(self, *values) -> list:
        with running_under(Fence(current_trace(), self.what)):
            return self.f(*values)

    def batched(self, size: int, flags: Sequence[bool]) -> "PythonFunction":
        """Over lanes; every result has the lanes in front."""
        axes = [0 if m else None for m in flags]

        def lanes(*values):
            outs, found = batch_flat(self.f, values, axes, size)
            return [mapped(y, k, size) for y, k in zip(outs, found)]
        return PythonFunction(lanes, self.what)


class WrittenFunction:
    """A flat function that was written down."""

    def __init__(self, jaxpr: Jaxpr, what: str):
        self.jaxpr, self.what = jaxpr, what

    def __repr__(self):
        return self.what

    def __call__(self, *values) -> list:
        return eval_jaxpr(self.jaxpr, values)

    def batched(self, size: int, flags: Sequence[bool]) -> "WrittenFunction":
        """Over lanes; every result has the lanes in front."""
        return WrittenFunction(batch_jaxpr(self.jaxpr, size, flags, True)[0], self.what)


def inexact(avals) -> list[bool]:
    """Which avals have derivatives."""
    return [is_inexact(a.dtype) for a in avals]


def dense_tangents(tangents) -> list:
    """Tangents of the inexact operands, symbolic zeros as arrays."""
    return [instantiate(t) for t in tangents if is_inexact(t.aval.dtype)]


def with_zeros(outs, dots) -> list:
    """One tangent a result: those given belong to the inexact ones."""
    it = iter(dots)
    return [next(it) if is_inexact(y.aval.dtype) else Zero(y.aval) for y in outs]


# ---- a function with a rule ----

class ForwardRule:
    """custom_jvp: (values..., tangents of the inexact ones...) -> (results..., their tangents...)."""

    def __init__(self, rule):
        self.rule = rule

    def restate(self, rule):
        """Put another writing of the same rule in its place."""
        self.rule = rule

    def jvp(self, primals, tangents, n_captured):
        """Results and tangents."""
        outs = self.rule(*primals, *dense_tangents(tangents[n_captured:]))
        n = len(outs)
        while n and sum(inexact([y.aval for y in outs[:n]])) + n > len(outs):
            n -= 1
        return outs[:n], with_zeros(outs[:n], outs[n:])

    def batched(self, size, flags, avals, n_captured):
        """The rule over lanes."""
        dots = [m for m, k in zip(flags[n_captured:], inexact(avals[n_captured:])) if k]
        return ForwardRule(LaterBatched(self.rule, size, [*flags, *dots]))


class BackwardRule:
    """custom_vjp: fwd (values...) -> (results..., residuals...), and
    bwd (captured..., residuals..., cotangents of inexact results...) -> cotangents of inexact values."""

    def __init__(self, fwd, bwd, n_results: Callable[[], int]):
        self.fwd, self.bwd, self.n_results = fwd, bwd, n_results

    def restate(self, fwd, bwd):
        """Put another writing of the same rule in its place."""
        self.fwd, self.bwd = fwd, bwd

    def jvp(self, primals, tangents, n_captured):
        """Results and tangents; the latter by the primitive `pullback`."""
        outs, residuals = self._forward(primals)
        avals = tuple(y.aval.strong() for y in outs if is_inexact(y.aval.dtype))
        consts = [*primals[:n_captured], *residuals]
        dots = pullback_p.bind(*consts, *dense_tangents(tangents[n_captured:]), bwd=self.bwd,
                               n_consts=len(consts), out_avals=avals) if avals else []
        return outs, with_zeros(outs, dots)

    def _forward(self, primals):
        values = self.fwd(*primals)
        return split_list(values, self.n_results())          # known once fwd has run

    def batched(self, size, flags, avals, n_captured):
        """The rule over lanes."""
        return BackwardRule(LaterBatched(self.fwd, size, flags), LaterBatched(self.bwd, size, flags[:n_captured]),
                            self.n_results)


class LaterBatched:
    """A function over lanes, batched when it is called: a rule may apply the function it belongs to.

    `leading` tells which of the first values are mapped; all others are.
    """

    jaxpr = None

    def __init__(self, f, size: int, leading: Sequence[bool]):
        self.f, self.size, self.leading, self.what = f, size, list(leading), f.what

    def __repr__(self):
        return self.what

    def full(self, n: int):
        """The batched function of n values."""
        return self.f.batched(self.size, [*self.leading, *[True] * (n - len(self.leading))])

    def __call__(self, *values):
        return self.full(len(values))(*values)

    def batched(self, size, flags):
        """Lanes within lanes."""
        return self.full(len(flags)).batched(size, flags)


def _custom_impl(*arrays, fun, rule, jaxpr, n_captured):
    if jaxpr is not None:
        with np.errstate(all="ignore"):
            return plan_of(jaxpr)(*arrays)
    with running_under(EVAL):
        return [y.data for y in fun(*map(Tensor.own, arrays))]


def _custom_abstract(*avals, fun, rule, jaxpr, n_captured):
    if jaxpr is None:
        jaxpr = stage_closed(fun, avals, str(fun))
    return [a.strong() for a in jaxpr.out_avals]


def _custom_jvp(primals, tangents, *, fun, rule, jaxpr, n_captured):
    for x, t in zip(primals[:n_captured], tangents):
        if type(t) is not Zero:
            raise closed_over(fun.what, x.aval)
    return rule.jvp(primals, tangents, n_captured)


def _custom_partial_eval(trace, args, *, fun, rule, jaxpr, n_captured):
    with running_under(trace):
        return fun(*args)


def _custom_batch(args, axes, size, *, fun, rule, jaxpr, n_captured):
    """Operands with derivatives are all mapped: cotangents, which are, then fit them."""
    avals = [x.aval for x in args]
    flags = [k is not None or place >= n_captured and is_inexact(a.dtype)
             for place, (k, a) in enumerate(zip(axes, avals))]
    values = [mapped(x, k, size) if m else x for x, k, m in zip(args, axes, flags)]
    lanes = fun.batched(size, flags)
    outs = custom_p.bind(*values, fun=lanes, rule=rule.batched(size, flags, avals, n_captured),
                         jaxpr=lanes.jaxpr, n_captured=n_captured)
    return outs, [0] * len(outs)


custom_p = documented(
    Primitive("custom", impl=_custom_impl, abstract=_custom_abstract, jvp=_custom_jvp,
              partial_eval=_custom_partial_eval, batch=_custom_batch, multiple=True,
              lower=("call", "custom")),
    "A function whose derivative is stated by `rule`; `jaxpr` is its meaning where it was written down.",
    "*operands")


# ---- a linear function given by its transpose ----

def push(operands, bwd, n_consts, out_avals) -> list:
    """The function itself: the transpose of `bwd`, which must be linear in the cotangents."""
    consts, tangents = operands[:n_consts], operands[n_consts:]
    jaxpr, captured = stage(lambda *cts: bwd(*consts, *cts), out_avals)
    args = [*captured, *map(Linear, out_avals)]
    try:
        return [instantiate(t) for t in backward(jaxpr, args, tangents)]
    except DifferentiationError as error:
        raise DifferentiationError(f"{bwd.what} has a custom reverse rule; its forward mode is the transpose of "
                                   f"that rule, but the rule is not linear in the cotangent: {error}") from None


def _pullback_impl(*arrays, **params):
    with running_under(EVAL):
        return [y.data for y in push([Tensor.own(x) for x in arrays], **params)]


def _pullback_jvp(primals, tangents, **params):
    return jvp_flat(lambda *xs: push(xs, **params), primals, tangents)


def _pullback_transpose(cts, *operands, bwd, n_consts, out_avals):
    found = bwd(*operands[:n_consts], *map(instantiate, cts))
    return [*[None] * n_consts,
            *[ct if type(x) is Linear else None for ct, x in zip(found, operands[n_consts:])]]


def _pullback_batch(args, axes, size, *, bwd, n_consts, out_avals):
    flags = [k is not None for k in axes[:n_consts]]
    consts = [mapped(x, k, size) if k is not None else x for x, k in zip(args[:n_consts], axes)]
    tangents = [mapped(x, k, size) for x, k in zip(args[n_consts:], axes[n_consts:])]
    lanes = bwd.batched(size, [*flags, *[True] * len(out_avals)])
    outs = pullback_p.bind(*consts, *tangents, bwd=lanes, n_consts=n_consts,
                           out_avals=tuple(a.with_shape((size, *a.shape)) for a in out_avals))
    return outs, [0] * len(outs)


pullback_p = documented(
    Primitive("pullback", impl=_pullback_impl, abstract=lambda *avals, bwd, n_consts, out_avals: list(out_avals),
              jvp=_pullback_jvp, transpose=_pullback_transpose, batch=_pullback_batch, multiple=True),
    "The linear function whose transpose is `bwd`.", "*operands")


def zero_cotangent(aval):
    """Zeros where a rule gave None."""
    return zeros(aval.strong())
