"""Values of the interpreter: scalars, iterators, frames, and what makes up the state of objects."""
from __future__ import annotations

import functools
import math
import types
import weakref

import numpy as np

from tlgrad.core.source import Source
from tlgrad.core.trace import Value
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.node import UNDEF
from tlgrad.frontend.meaning import NUMBERS


class Maybe(tuple):
    """(is it defined?, value): a variable assigned on some paths only."""

    __slots__ = ()


def like(v, items):
    """A tuple of the class of `v`; named tuples keep their type."""
    if type(v) is tuple:
        return tuple(items)
    if type(v) is Maybe:
        return Maybe(items)
    return type(v)(*items)


class Iter:
    """An iterator; `state` is [position, mode], a heap object's contents like those of a list.

    It runs over a range, over `items`, or over an array symbol `table` (which may also be what
    `items` are the entries of); ranges and arrays can be rolled into one loop.
    """

    __slots__ = ("start", "stop", "step", "items", "table", "state")

    def __init__(self, start, stop, step, items=None, table=None):
        self.start, self.stop, self.step, self.items, self.table = start, stop, step, items, table
        self.state = [0, "run"]

    @property
    def rolls(self) -> bool:
        """True when one loop can run over it."""
        return self.items is None or self.table is not None

    def count(self) -> int:
        """How many turns, when that is concrete."""
        return max(0, -((self.start - self.stop) // self.step))


class Range:
    """range() with a traced bound."""

    __slots__ = ("start", "stop", "step")

    def __init__(self, *bounds):
        self.start, self.stop, self.step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]


class Lazy:
    """A generator that nothing has consumed yet."""

    __slots__ = ("func", "graph", "vals")

    def __init__(self, func, graph, vals):
        self.func, self.graph, self.vals = func, graph, vals


class Frame:
    """A call being interpreted."""

    __slots__ = ("func", "g", "plain", "sink", "loc", "vals", "env", "here")

    def __init__(self, func, g, vals, sink=None):
        self.func, self.g, self.vals, self.sink = func, g, vals, sink
        self.plain: set = set()
        self.loc: int | None = None
        self.env: dict = {}
        self.here: Source | None = None

    def source(self) -> Source:
        """The place that is being interpreted."""
        if self.here is None or self.here.offset != self.loc:
            self.here = Source(self.func.__code__, self.loc)
        return self.here


class Exit:
    """Where paths arrive together: variables, and the contents of objects."""

    __slots__ = ("vals", "heap")

    def __init__(self, vals: dict, heap: dict):
        self.vals, self.heap = vals, heap


def scalar(v) -> bool:
    """True for a number, concrete or traced."""
    if type(v) is Symbol:
        return not v.aval.shape
    return isinstance(v, NUMBERS) or isinstance(v, Value) and v.aval.shape == ()


def same(a, b) -> bool:
    """The same value on two paths, without asking the program: equal words, not just ==."""
    if a is b:
        return True
    if isinstance(a, Value) or isinstance(b, Value) or type(a) is not type(b):
        return False
    if isinstance(a, (float, np.floating)):
        return bool(a == b and math.copysign(1, a) == math.copysign(1, b) or a != a and b != b)
    return isinstance(a, (int, np.integer, np.bool_, str, bytes, type(None))) and bool(a == b)


def children(v) -> list:
    """What a value refers to, where a traced value may hide; objects of the heap excepted."""
    if isinstance(v, (tuple, list, set)):
        return list(v)
    if isinstance(v, dict):
        return [*v.values(), *v]
    if isinstance(v, Lazy):
        return [*v.vals, v.func]
    if isinstance(v, Iter):
        return [*(v.items or ()), v.start, v.stop]
    if isinstance(v, functools.partial):
        return [v.func, *v.args, *v.keywords.values()]
    if isinstance(v, types.MethodType):
        return [v.__self__]
    if isinstance(v, types.BuiltinMethodType):
        return [v.__self__] if isinstance(v.__self__, (list, dict, tuple)) else []
    if isinstance(v, types.FunctionType):
        cells = [c.cell_contents for c in v.__closure__ or () if _filled(c)]
        defaults = [*(v.__defaults__ or ()), *(v.__kwdefaults__ or {}).values()]
        return [c for c in cells if c is not v] + defaults
    return []


def _filled(cell) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def attributes(v) -> list:
    """Attributes of a user's instance."""
    if isinstance(v, (type, types.ModuleType, types.FunctionType, Value)) or not hasattr(type(v), "__dict__"):
        return []
    found = getattr(v, "__dict__", None)
    return list(found.values()) if isinstance(found, dict) else []


#: objects looked through for traced values; those that hold one are small, made while tracing
SEARCH = 2000


def traced(v) -> bool:
    """True when a value known only at run time is reachable through `v`."""
    todo, seen = [v], set()
    for v in todo:                          # the nearest first: a callee may refer to a whole library
        if len(seen) >= SEARCH:
            break
        kind = type(v)
        if kind is Symbol or kind is Range or kind is Lazy:
            return True
        if kind in _COMMON or isinstance(v, _PLAIN) or id(v) in seen:
            continue
        seen.add(id(v))
        if kind is list or kind is tuple:
            todo += v
            continue
        todo += children(v)
        todo += v.state if kind is Iter else attributes(v)
    return False


_PLAIN = (*NUMBERS, str, bytes, type(None), type, types.ModuleType, types.CodeType)
#: types that need no closer look; a proxy whose object is gone must not be looked at
_COMMON = {bool, int, float, str, type(None), *weakref.ProxyTypes}


# ---- contents of heap objects: lists, dicts, instances, iterators ----

def contents(o):
    """(keys or None, values) of an object made while tracing."""
    if type(o) is list:
        return None, list(o)
    if type(o) is Iter:
        return None, list(o.state)
    if type(o) is dict:
        return tuple(o), list(o.values())
    if type(o) is set:
        return tuple(o), []
    return tuple(o.__dict__), list(o.__dict__.values())


def blank(o):
    """An empty object of the same type."""
    if type(o) is list:
        return []
    if type(o) is dict or type(o) is set:
        return type(o)()
    if type(o) is Iter:
        return Iter(o.start, o.stop, o.step, o.items, o.table)
    return object.__new__(type(o))


def fill(o, keys, vals):
    """Put contents back."""
    if type(o) is list:
        o[:] = vals
    elif type(o) is Iter:
        o.state[:] = vals
    elif type(o) is set:
        o.clear()
        o.update(keys)
    else:
        d = o if type(o) is dict else o.__dict__
        d.clear()
        d.update(zip(keys, vals))


__all__ = ["UNDEF", "Maybe", "like", "Iter", "Range", "Lazy", "Frame", "Exit", "scalar", "same",
           "children", "attributes", "traced", "contents", "blank", "fill"]
