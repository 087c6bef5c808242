"""Calls: what is recorded, what is interpreted in turn, what Python runs itself."""
from __future__ import annotations

import functools
import inspect
import operator
import types

import numpy as np

from tlgrad.control.loops import iterate
from tlgrad.core.primitive import Primitive
from tlgrad.core.source import is_internal
from tlgrad.frontend import library
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.graph import graph
from tlgrad.frontend.read import Row
from tlgrad.frontend.recursive import Recurrence
from tlgrad.frontend.state import Unmergeable
from tlgrad.frontend.values import UNDEF, Frame, Lazy, traced

_RANDOM = ("random", "time", "secrets", "uuid")
_STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Calls:
    """Mixin of the interpreter: callees."""

    def call(self, f, args, kwargs):
        """f(*args, **kwargs)."""
        if isinstance(f, functools.partial):
            return self.call(f.func, [*f.args, *args], {**f.keywords, **kwargs})
        if isinstance(f, types.MethodType):
            return self.call(f.__func__, [f.__self__, *args], kwargs)
        inner = _written_in_python(f)
        if inner is not None:
            return self.call(inner, args, kwargs)
        if f is iterate or type(f) is Recurrence:
            return self.iterate(*args, **kwargs) if f is iterate else self.call_recurrence(f, args, kwargs)
        if _of_pytest(f):
            shown = f.__name__ == "_saferepr" and type(args[0]) is Symbol
            return self.placeholder(args[0], "") if shown else self.host(f, *args, **kwargs)
        if isinstance(f, Primitive) or _of_tlgrad(f):
            return self.host(f, *[self.plain_value(a) for a in args], **kwargs)
        if _is_user_class(f):
            o = self.own(object.__new__(f))
            self.call(f.__init__, [o, *args], kwargs)
            return o
        if isinstance(f, types.FunctionType):
            if not traced((args, kwargs, f)) and not any(id(a) in self.heap for a in args) \
                    and f.__code__ not in self.active:
                return self.run_python(f, args, kwargs)
            return self.inline(f, args, kwargs)
        if isinstance(f, type) and issubclass(f, tuple) and f is not tuple:
            return self.host(f, *args, **kwargs)
        if not isinstance(f, (type, types.BuiltinFunctionType, np.ufunc)) \
                and isinstance(getattr(type(f), "__call__", None), types.FunctionType):
            return self.call(type(f).__call__, [f, *args], kwargs)
        return self.call_builtin(f, args, kwargs)

    def plain_value(self, a):
        """An argument for tlgrad's own functions: rows become arrays."""
        return a.table[tuple(a.indices)] if isinstance(a, Row) else a

    def run_python(self, f, args, kwargs):
        """A call without traced values: Python runs it, once, while tracing."""
        module = getattr(f, "__module__", "") or type(getattr(f, "__self__", None)).__module__
        if str(module).split(".")[0] in _RANDOM or "random" in str(module):
            self.fail(f"`{getattr(f, '__name__', f)}` gives another value each time, so it cannot be part of a "
                      "program", "pass its result as an argument")
        return self.host(f, *args, **kwargs)

    # -- Python functions --

    def bind(self, f, args, kwargs):
        """Arguments in the order of the parameters, defaults filled in."""
        code = f.__code__
        plain = not code.co_kwonlyargcount and not code.co_flags & _STARRED
        if plain and not kwargs and len(args) == code.co_argcount:
            return list(args)
        try:
            bound = inspect.signature(f, follow_wrapped=False).bind(*args, **kwargs)
        except TypeError as e:
            self.fail(f"{f.__name__}(): {e}")
        except ValueError:
            return list(args)
        defaults = [self.admit(v, f, f"default {k}") for k, v in enumerate(f.__defaults__ or ())]
        first = f.__code__.co_argcount - len(defaults)
        names = f.__code__.co_varnames[first:f.__code__.co_argcount]
        for name, value in zip(names, defaults):
            bound.arguments.setdefault(name, value)
        bound.apply_defaults()
        return [bound.arguments[p] for p in bound.signature.parameters]

    def inline(self, f, args, kwargs):
        """Interpret a Python function; what cannot be read runs on symbols as a tree."""
        g = graph(f)
        if isinstance(g, str) or f.__code__ in self.trees:
            return self.explore(f, args, kwargs, g)
        implicit = f.__code__.co_name[0] == "<" and f.__code__.co_varnames[:1] == (".0",)
        vals = list(args) if implicit else self.bind(f, args, kwargs)
        if g.generator:
            return Lazy(f, g, vals)
        found = self.recur(f, g, vals)
        return found if found is not None else self.result(*self.invoke(f, g, vals))

    def invoke(self, f, g, vals, sink=None):
        """Interpret a call: its exits and their tag."""
        frame = Frame(f, g, vals, sink)
        saved = self.decisions, self.cursor, self.raised, self.left
        self.stack.append(frame)
        snap, failed = self.snapshot(), None
        try:
            went = self.region(frame, g.entry, 0, {"$args": vals}, frozenset())
            exits, tag = self.finish(frame, went, frozenset())
        except Unmergeable as u:
            if u.target != "ret" or sink or len(self.stack) == 1:
                raise
            failed = u
        finally:
            self.stack.pop()
            self.decisions, self.cursor, self.raised, self.left = saved
        if failed:
            self.install(snap)
            return self.invoke_tree(f, vals, failed)
        for x in exits.values():
            self.prune(x, snap)
        return exits, tag

    def result(self, exits, tag):
        """Value of an inlined call; a possible exception is left for the calling region."""
        if "err" in exits:
            p = True if len(exits) == 1 else self.is_tag(tag, self.code(None, "err"))
            vals = exits["err"].vals
            self.note(p, vals["$exc"], self.marks_in(vals))
        if "ret" not in exits:
            return UNDEF
        self.install(exits["ret"].heap)
        return exits["ret"].vals["$ret"]

    def consume(self, lazy, f, start):
        """Run a generator into sum, any, all or list: its loop becomes theirs."""
        out = self.own([] if f is list else [start])

        def sink(v):
            if f is list:
                out.append(v)
            elif f is sum:
                out[0] = self.binop(operator.add, out[0], v)
            else:
                out[0] = self.either(operator.or_ if f is any else operator.and_, out[0], self.truth(v))
        r = self.result(*self.invoke(lazy.func, lazy.graph, lazy.vals, sink))
        return out if f is list or r is UNDEF else out[0]

    def outer_roots(self, fr):
        """What the frames around `fr` and the recurrences in progress refer to."""
        roots = [v for frame in self.stack if frame is not fr for v in frame.env.values()]
        return roots + [v for mode in self.active.values() for v in mode if not isinstance(v, str)]


def _of_tlgrad(f) -> bool:
    code = getattr(f, "__code__", None)
    if code is not None:
        return is_internal(code) and not f.__qualname__.startswith("_entry") and f.__module__ != library.__name__
    cls = type(f)
    return cls.__module__.split(".")[0] == "tlgrad" and not isinstance(f, type)


def _written_in_python(f):
    """The Python function behind a wrapper that changes nothing for a single entry: tl.map,
    functools.cache, numba.njit."""
    if type(f) is functools._lru_cache_wrapper or getattr(type(f), "acts_by_entry", False):
        return f.__wrapped__
    inner = getattr(f, "py_func", None)
    return inner if isinstance(inner, types.FunctionType) else None


def _of_pytest(f) -> bool:
    """What pytest writes into assert statements of test modules."""
    return (getattr(f, "__module__", None) or "").startswith("_pytest.")


def _is_user_class(f) -> bool:
    return isinstance(f, type) and f.__module__ != "builtins" and not issubclass(f, (BaseException, tuple)) \
        and isinstance(f.__dict__.get("__init__"), types.FunctionType)
