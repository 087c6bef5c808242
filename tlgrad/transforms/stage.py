"""Staging: run a callable on tracers and write down the equations.

    stage        : f, [aval] -> Jaxpr, [captured value]
    stage_closed : f, [aval] -> Jaxpr             for jaxprs made from jaxprs
"""
from __future__ import annotations

from typing import Callable, Sequence

from tlgrad.core.aval import Aval
from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, Var, check_jaxpr
from tlgrad.core.primitive import Primitive
from tlgrad.core.source import describe_callable, user_source
from tlgrad.core.tensor import Tensor, as_value
from tlgrad.core.trace import Trace, Tracer, Value, current_trace, leaked, new_trace
from tlgrad.errors import LeakedTracerError, OutputError, RecursionBudgetError
from tlgrad.ops.define import documented
from tlgrad.ops.layout import reshape


class StageTracer(Tracer):
    """Stands for a variable of the jaxpr being written."""

    __slots__ = ("var",)

    def __init__(self, trace, var, source=None):
        self.trace, self.var, self.source = trace, var, source

    @property
    def aval(self) -> Aval:
        return self.var.aval


class StageTrace(Trace):
    """Writes every primitive down, also those that read constants only: captured arrays stay
    inputs, so that a jaxpr never holds a stale value."""

    name = "run"

    def __init__(self, parent):
        super().__init__(parent)
        self.eqns: list[Eqn] = []
        self.captured: dict[int, tuple[Var, Value]] = {}
        self.names: dict[str, int] = {}

    def new_input(self, aval: Aval, name: str = "") -> StageTracer:
        return StageTracer(self, Var(aval, name))

    def atom(self, x, prim):
        """The variable or literal that stands for `x`; other values become captured inputs."""
        if type(x) is StageTracer and x.trace is self:
            return x.var
        if type(x) is Tensor and x.aval.shape == ():
            return Literal(x)
        found = self.captured.get(id(x))
        if found is None:
            if isinstance(x, Tracer) and not x.trace.alive:
                raise leaked(x, f"in {prim}")
            found = self.captured[id(x)] = (Var(x.aval), x)
        return found[0]

    def own(self, x):
        return reshape.bind(x, shape=x.shape)

    def keep(self, x, old):
        replace_held(self.captured, self.eqns, x, old)

    def process(self, prim, args, params):
        source = user_source(3)
        atoms = [self.atom(x, prim) for x in args]
        avals = prim.avals_out([a.aval for a in atoms], params)
        outs = [Var(a) for a in avals] if prim.multiple else [Var(avals)]
        self.eqns.append(Eqn(prim, atoms, params, outs, source))
        boxed = [StageTracer(self, v, source) for v in outs]
        return boxed if prim.multiple else boxed[0]


def replace_held(held: dict, eqns: list[Eqn], x: Value, old: Value):
    """Let a recording that holds `x`, as an input or as a literal, hold `old` instead."""
    if id(x) in held:
        var, _ = held.pop(id(x))
        held[id(old)] = (var, old)
    if x.aval.shape == ():
        for eqn in eqns:
            for atom in eqn.ins:
                if type(atom) is Literal and atom.value is x:
                    atom.value = old


def stage(f: Callable, avals: Sequence[Aval], names: Sequence[str] = (), what: str = "") -> tuple[Jaxpr, list]:
    """Trace `f(*values) -> [value]`; captured values become the first inputs of the jaxpr.

    Raises RecursionBudgetError when `f` recurses without end.
    """
    trace = StageTrace(current_trace())
    trace.name = what or trace.name
    inputs = [trace.new_input(a, n) for a, n in zip(avals, [*names, *[""] * len(avals)])]
    with new_trace(trace):
        try:
            outs = f(*inputs)
        except RecursionError as error:
            raise endless(error, what or describe_callable(f)) from None
        out_atoms = [trace.atom(as_value(x, "a result", OutputError), "a result") for x in outs]
    const_vars = [var for var, _ in trace.captured.values()]
    jaxpr = Jaxpr([*const_vars, *[t.var for t in inputs]], trace.eqns, out_atoms)
    return check_jaxpr(jaxpr, "tracing"), [x for _, x in trace.captured.values()]


def endless(error: RecursionError, what: str) -> RecursionBudgetError:
    """The explanation of a recursion without end, made once."""
    if isinstance(error, RecursionBudgetError):
        return error
    return RecursionBudgetError(
        f"tracing {what} recursed without end. A recursion whose end depends on a traced value cannot "
        "be unrolled: use tl.iterate(step, n, start), or recursion with a base case inside tl.map.")


class Constant:
    """A tensor as a hashable static parameter, by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor):
        self.value = value

    def __repr__(self):
        return str(self.value.aval)


constant = documented(
    Primitive("constant", impl=lambda *, value: value.value.data,
              abstract=lambda *, value: value.value.aval.strong(), nondiff="",
              kind="structural", lower=("structural", "constant")),
    "An array that a derived jaxpr holds (a rule captured it).", "")


def stage_closed(f: Callable, avals: Sequence[Aval], what: str) -> Jaxpr:
    """Trace `f`; arrays that it captures become `constant` equations.

    Raises LeakedTracerError when it captures a traced value of an outer transform.
    """
    jaxpr, consts = stage(f, avals)
    if not consts:
        return jaxpr
    for x in consts:
        if isinstance(x, Tracer):
            raise LeakedTracerError(
                f"{what} closes over a traced value, {x.aval} of {x.trace.name} (made at {x.source}). Inside a "
                "loop or branch a rule can close over plain tensors only: pass the value as an argument.")
    eqns = [Eqn(constant, [], {"value": Constant(x)}, [v]) for v, x in zip(jaxpr.in_binders, consts)]
    return Jaxpr(jaxpr.in_binders[len(consts):], [*eqns, *jaxpr.eqns], jaxpr.outs)
