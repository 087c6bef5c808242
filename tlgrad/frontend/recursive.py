"""`@tl.recurrence`: a function f(..., n) by a zero and a successor equation, as one loop.

    f(..., 0) = base          f(..., n) = step(f(..., n - 1), n)

Outside `tl.map` the function runs on whole tensors: once with the count 0, and once, traced, with a
count of which only n >= 1 is known; its recursive call there is the value carried by the loop.
"""
from __future__ import annotations

import functools
import inspect
import operator
from contextvars import ContextVar
from typing import Any, Callable, NamedTuple

import numpy as np

from tlgrad.control.cond import concrete
from tlgrad.control.loops import iterate, loop_count
from tlgrad.core.source import describe_callable, user_source
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ScalarFunctionError


class Equation(NamedTuple):
    """The equation being evaluated: the carried value, the count, the arguments it was called with."""
    previous: Any
    count: Any
    args: tuple


_equations: ContextVar[dict] = ContextVar("tlgrad_recurrences", default={})


class Successor:
    """The count n >= 1 of a successor equation: n - 1 is known as such, and n is a number."""

    __slots__ = ("value", "turn")

    def __init__(self, value: Value, turn: Value):
        self.value, self.turn = value, turn

    def __sub__(self, other):
        return Predecessor(self.turn, self) if type(other) is int and other == 1 else self.value - other

    def __bool__(self):
        return True

    def __repr__(self):
        return "<count n >= 1>"


class Predecessor:
    """n - 1."""

    __slots__ = ("value", "successor")

    def __init__(self, value: Value, successor: Successor):
        self.value, self.successor = value, successor


def _number(x):
    return x.value if isinstance(x, (Successor, Predecessor)) else x


def _operators():
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"):
        f = getattr(operator, name)
        known = {("eq", 0): False, ("ne", 0): True, ("gt", 0): True, ("ge", 0): True, ("ge", 1): True,
                 ("lt", 0): False, ("le", 0): False, ("lt", 1): False}

        def forward(self, other, f=f, name=name, known=known):
            answer = known.get((name, other)) if type(other) is int and type(self) is Successor else None
            return f(self.value, _number(other)) if answer is None else answer

        def backward(self, other, f=f):
            return f(other, self.value)
        for cls in (Successor, Predecessor):
            if not (name == "sub" and cls is Successor):
                setattr(cls, f"__{name}__", forward)
            if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
                setattr(cls, f"__r{name}__", backward)
    Successor.__hash__ = Predecessor.__hash__ = object.__hash__


_operators()


class Recurrence:
    """A recursive function that runs as one loop.  Made by `tl.recurrence`."""

    def __init__(self, f: Callable, memory, bound: tuple = ()):
        self.f, self.memory, self.bound = f, memory, bound
        functools.update_wrapper(self, f, updated=())
        self.signature = inspect.signature(f)
        names = [p.name for p in self.signature.parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if not names:
            raise ArgumentError(f"recurrence: {describe_callable(f)} must take its count as last argument")
        self.count_name = names[-1]

    def __get__(self, instance, owner=None):
        return self if instance is None else Recurrence(self.f, self.memory, (instance,))

    def __call__(self, *args, **kwargs):
        args = (*self.bound, *args)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        n = bound.arguments[self.count_name]
        others = {k: v for k, v in bound.arguments.items() if k != self.count_name}
        equation = _equations.get().get(self.f)
        if equation is not None:
            return self._inside(equation, n, others)
        return self._loop(loop_count(_number(n), f"recurrence {self.f.__name__}"), others)

    def _apply(self, others, count, previous):
        """The function's own body, its recursive calls answered by `previous`."""
        arguments = inspect.BoundArguments(self.signature, dict(others))
        arguments.arguments = {k: (count if k == self.count_name else others[k])
                               for k in self.signature.parameters}
        token = _equations.set({**_equations.get(), self.f: Equation(previous, count, tuple(others.items()))})
        try:
            return self.f(*arguments.args, **arguments.kwargs)
        finally:
            _equations.reset(token)

    def _loop(self, n, others):
        base = self._apply(others, 0, None)
        if concrete(n) is not None and int(concrete(n)) == 0:
            return base

        def step(turn, previous):
            return self._apply(others, Successor(turn + 1, turn), previous)
        return iterate(step, n, base, memory=self.memory)

    def _inside(self, equation, n, others):
        """The recursive call: on n - 1, the other arguments unchanged."""
        name = f"`{self.f.__name__}` is not a recurrence"
        where = f"[{user_source()}]"
        if type(equation.count) is int:
            raise ScalarFunctionError(f"{name}: it calls itself when {self.count_name} == 0; make "
                                      f"{self.count_name} == 0 the base case {where}")
        if type(n) is not Predecessor or n.successor is not equation.count:
            raise ScalarFunctionError(f"{name}: the recursive call must be on `{self.count_name} - 1` {where}")
        for key, value in equation.args:
            if others[key] is not value and not _equal(others[key], value):
                raise ScalarFunctionError(f"{name}: argument `{key}` changes in the recursive call; pass it on "
                                          f"unchanged and carry it in the returned value {where}")
        return equation.previous

    def equations(self, *args, **kwargs) -> tuple[Callable, Callable]:
        """(zero, successor): zero() is the base; successor(previous, turn) is the value at turn + 1.

        The loop is right when f(..., 0) = zero() and f(..., n + 1) = successor(f(..., n), n).
        """
        bound = self.signature.bind(*self.bound, *args, **{self.count_name: 0}, **kwargs)
        bound.apply_defaults()
        others = {k: v for k, v in bound.arguments.items() if k != self.count_name}
        return (lambda: self._apply(others, 0, None),
                lambda previous, turn: self._apply(others, Successor(turn + 1, turn), previous))

    def __reduce__(self):
        name = getattr(self, "__qualname__", "")
        if getattr(inspect.getmodule(self.f), name, None) is self:
            return name
        return Recurrence, (self.f, self.memory, self.bound)

    def __repr__(self):
        return f"<recurrence {describe_callable(self.f)}>"


def _equal(a, b) -> bool:
    if isinstance(a, (Value, np.ndarray)) or isinstance(b, (Value, np.ndarray)):
        return False
    return type(a) is type(b) and a == b


def recurrence(f: Callable | None = None, *, memory: int | str | None = None):
    """A recursive function f(..., n) on a natural count as one ordered loop of n turns.

    f gives a base when n == 0, and otherwise uses its own value at n - 1, called with its other
    arguments unchanged.  It works on tensors and trees of any shape, and under `tl.map` on entries.
    The count may be known only at run time; it may be used in arithmetic.  memory: as in
    `tl.iterate`, for reverse mode.

    Raises ScalarFunctionError, saying which rule is broken and where, for other recursions;
    DTypeError for a float count, ArgumentError for a negative one.

    >>> @tl.recurrence
    ... def evolve(x, n):
    ...     if n == 0:
    ...         return x
    ...     previous = evolve(x, n - 1)
    ...     return previous * previous + 1
    >>> evolve(tl.tensor([1.0, 2.0]), 3)
    tensor([ 26., 677.], float64, shape (2,), cpu)
    """
    if f is None:
        return functools.partial(recurrence, memory=memory)
    return Recurrence(f, memory)
