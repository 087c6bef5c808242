"""Batching: one axis carried through every primitive.   vmap : (a -> b) -> ([a] -> [b])"""
from __future__ import annotations

from typing import Callable, Sequence

from tlgrad.core.aval import Aval
from tlgrad.core.dtypes import is_inexact
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Trace, Tracer, current_trace, new_trace, running_under
from tlgrad.errors import UnsupportedError
from tlgrad.ops.define import shape_without
from tlgrad.ops.index import mapped
from tlgrad.transforms.stage import stage_closed


class BatchTracer(Tracer):
    """A value with a mapped axis; its aval is that of one lane."""

    __slots__ = ("value", "axis")

    def __init__(self, trace, value, axis: int):
        super().__init__(trace)
        self.value, self.axis = value, axis

    @property
    def aval(self) -> Aval:
        a = self.value.aval
        return a.with_shape(shape_without(a.shape, self.axis))


class BatchTrace(Trace):
    """Maps `size` lanes at once."""

    name = "vmap"

    def __init__(self, parent, size: int):
        super().__init__(parent)
        self.size = size

    def pair(self, x):
        """(value, mapped axis or None)."""
        if type(x) is BatchTracer and x.trace is self:
            return x.value, x.axis
        return x, None

    def box(self, value, axis):
        return value if axis is None else BatchTracer(self, value, axis)

    def own(self, x):
        x = self.parent.own(x)
        if type(x) is BatchTracer and x.trace is self or not is_inexact(x.aval.dtype):
            return x
        with running_under(self.parent):
            return self.box(mapped(x, None, self.size), 0)

    def process(self, prim, args, params):
        values, axes = zip(*map(self.pair, args)) if args else ((), ())
        if all(a is None for a in axes):
            return self.parent.process(prim, args, params)
        if prim.batch is None:
            raise UnsupportedError(f"{prim} has no batching rule, so it cannot be used under tl.vmap")
        with running_under(self.parent):
            out, axis = prim.batch(values, axes, self.size, **params)
        if prim.multiple:
            return [self.box(y, k) for y, k in zip(out, axis, strict=True)]
        return self.box(out, axis)


def batch_flat(f: Callable, args: Sequence, axes: Sequence[int | None], size: int) -> tuple[list, list]:
    """f : [value] -> [value].  Results, and the mapped axis of each (None: the same in every lane)."""
    trace = BatchTrace(current_trace(), size)
    with new_trace(trace):
        outs = f(*[trace.box(x, k) for x, k in zip(args, axes, strict=True)])
        pairs = [trace.pair(as_value(y)) for y in outs]
    return [y for y, _ in pairs], [k for _, k in pairs]


def batch_jaxpr(jaxpr: Jaxpr, size: int, batched: Sequence[bool],
                keep: Sequence[bool] | bool = False) -> tuple[Jaxpr, list[bool]]:
    """The jaxpr over `size` lanes; mapped inputs and results have the lanes in front.

    `keep` forces results to be mapped.  Also tells which results are.
    """
    batched = tuple(batched)
    keep = (keep,) * len(jaxpr.outs) if isinstance(keep, bool) else tuple(keep)
    key = ("batch", size, batched, keep)
    if key not in jaxpr.memo:
        mapped_out: list[bool] = []

        def f(*args):
            axes = [0 if b else None for b in batched]
            outs, axes_out = batch_flat(lambda *xs: eval_jaxpr(jaxpr, xs), args, axes, size)
            mapped_out[:] = [k is not None or want for k, want in zip(axes_out, keep)]
            return [mapped(y, k, size) if m else y for y, k, m in zip(outs, axes_out, mapped_out)]

        avals = [a.with_shape((size, *a.shape)) if b else a for a, b in zip(jaxpr.in_avals, batched)]
        jaxpr.memo[key] = (stage_closed(f, avals, "a batching rule"), mapped_out)
    return jaxpr.memo[key]
