"""Values, tracers, and the current trace.

A primitive applied to values is handed to the *current trace*, one ContextVar.  A trace
boxes values in tracers of its own and knows its parent, under which its rules run.  Two
perturbations are told apart by the identity of their traces: there are no levels.

    Trace.process : Primitive, [Value], params -> Value or [Value]
"""
from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tlgrad.core.aval import Aval
from tlgrad.core.source import Source, user_source
from tlgrad.errors import LeakedTracerError


class Value:
    """What a primitive takes and gives: a Tensor or a Tracer.

    Operators and array methods are attached by `tlgrad.ops.methods`, the one place where
    a lower layer is completed from above.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 1000
    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self):
        """The number format of the entries."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.aval.size


class Trace:
    """An interpreter of primitives.  `parent` is the trace under which its rules run."""

    #: what the transform is called in messages
    name = "trace"

    def __init__(self, parent: "Trace | None"):
        self.parent = parent
        self.alive = True

    def process(self, prim, args, params) -> Any:
        raise NotImplementedError(type(self).__name__)

    def own(self, x: Value) -> Value:
        """`x` as a value of this trace, to which traced values can be assigned."""
        return self.parent.own(x) if self.parent is not None else x

    def keep(self, x: Value, old: Value) -> None:
        """`x` is about to be assigned to: hold `old`, its present value, wherever `x` is held."""


class Tracer(Value):
    """A value that belongs to a trace; `source` is the user's line that made it."""

    __slots__ = ("trace", "source")

    def __init__(self, trace: Trace):
        self.trace = trace
        self.source: Source | None = user_source(3)

    def __repr__(self):
        return f"<{self.trace.name} {self.aval}>"


class EvalTrace(Trace):
    """Evaluates at once: `prim.impl` on the arrays that tensors hold."""

    name = "eager"

    def process(self, prim, args, params):
        return prim.evaluate(args, params)


EVAL = EvalTrace(None)
_current: ContextVar[Trace] = ContextVar("tlgrad_trace", default=EVAL)
current_trace = _current.get


class running_under:
    """Make `trace` current for the length of a ``with`` block."""

    __slots__ = ("trace", "token")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self):
        self.token = _current.set(self.trace)
        return self.trace

    def __exit__(self, *exc):
        _current.reset(self.token)


@contextmanager
def new_trace(trace: Trace):
    """Run a block under `trace`; afterwards its tracers are dead: using one is an error."""
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)
        trace.alive = False


def is_traced(x) -> bool:
    """True for a tracer of any trace."""
    return isinstance(x, Tracer)


def leaked(tracer: Tracer, used_in: str) -> LeakedTracerError:
    """The error for a tracer that is met where its trace is not running."""
    made = f"It was made at {tracer.source}" if tracer.source else "Where it was made is not known"
    used = user_source(2)
    return LeakedTracerError(
        f"a traced value of {tracer.trace.name}, {tracer.aval}, was used {used_in} "
        f"after that transform had ended. {made}; it was used at {used}. "
        "It was probably stored in a list, attribute, global or default argument: return it from "
        "the transformed function instead (has_aux=True hands extra results through).")
