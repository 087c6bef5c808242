"""Calls of builtins, and of functions of math and NumPy, with traced arguments."""
from __future__ import annotations

import functools
import math
import operator
import types

import numpy as np

from tlgrad.core.trace import Value
from tlgrad.errors import UnsupportedError
from tlgrad.frontend import library, meaning
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.match import kind
from tlgrad.frontend.read import Row
from tlgrad.frontend.values import Iter, Lazy, Range, scalar, traced

_CONSUMERS = (sum, any, all, min, max, list, tuple, enumerate, zip, reversed, sorted)
_MUTATORS = {"append", "extend", "insert", "pop", "clear", "remove", "sort", "reverse", "update", "setdefault",
             "popitem", "add", "discard", "__setitem__", "__delitem__"}
#: builtins that Python may run on traced values: they only move them, or ask bool() of them
_HOST = (len, enumerate, zip, reversed, list, tuple, sorted, dict, iter, map, filter, functools.reduce, id, print,
         str, repr, format, min, max, getattr, hasattr, setattr, callable, slice,
         functools.partial)


class Builtins:
    """Mixin of the interpreter: callees that are not written in Python."""

    def call_builtin(self, f, args, kwargs):
        if f is range:
            return Range(*args) if traced(args) else self.host(range, *args)
        if f in (sum, any, all) and args and isinstance(args[0], Lazy):
            start = (args[1:] or [kwargs.get("start", 0)])[0] if f is sum else f is all
            return self.consume(args[0], f, start)
        if _in(f, _CONSUMERS) and args:
            args = [self.gather(a) for a in args]
        if _method_of_container(f) and isinstance(f.__self__, (list, dict, set)) and f.__name__ in _MUTATORS:
            self.mutable(f.__self__)
            if isinstance(f.__self__, set) or f.__name__ == "__setitem__":
                self.concrete(args[:1], f"an element of a {type(f.__self__).__name__}")
            return self.host(f, *args, **kwargs)
        if not traced((args, kwargs)):
            r = self.run_python(f, args, kwargs)
            return self.own(r) if type(r) in (list, dict, set) else r
        return self.builtin(f, args, kwargs)

    def gather(self, a):
        sequence = isinstance(a, (Iter, list, tuple, Range, Lazy, Symbol, Row)) and not scalar(a)
        return self.items(a) if sequence else a

    def builtin(self, f, args, kwargs):
        """A builtin, math or numpy function with a traced argument."""
        a = args[0] if args else None
        special = _SPECIAL.get(f) if _hashable(f) else None
        if special is not None:
            return special(self, a, args, kwargs)
        written = library.hypot if f is math.hypot and len(args) != 2 else \
            library.WRITTEN.get(f) if _hashable(f) else None
        if written is not None:
            return self.inline(written, args, kwargs)
        if f in (min, max) and not kwargs and all(map(scalar, seq := a if len(args) == 1 else args)):
            return self.extreme(f, seq)
        if _in(f, _HOST) or _method_of_container(f) or isinstance(f, type) and issubclass(f, BaseException):
            if isinstance(f, type) and issubclass(f, BaseException):
                args = [self.text(v) for v in args]
            r = self.host(f, *args, **kwargs)
            return self.own(r) if type(r) in (list, dict, set) else list(r) if f in (map, filter) else r
        function = meaning.FUNCTIONS.get(f) if _hashable(f) else None
        if function is not None and all(map(scalar, args)):
            return function(*args, **kwargs)
        return self.array_function(f, args, kwargs)

    def array_function(self, f, args, kwargs):
        """A function of NumPy through its protocols, as on arrays; others are refused."""
        first = next((v for v in args if isinstance(v, Symbol)), None)
        if first is not None and (isinstance(f, np.ufunc) or _dispatched(f)):
            found = self.host(_by_protocol, first, f, args, kwargs)
            if found is not NotImplemented:
                return found
        module = getattr(f, "__module__", None)
        name = getattr(f, "__name__", repr(f))
        name = f"{module}.{name}" if module and module != "builtins" else name
        why = library.REFUSED.get(f) if _hashable(f) else None
        self.fail(f"`{name}` is not known to tlgrad, and its argument is only known when the program runs"
                  + (f": {why}" if why else ""), "use a math or numpy function, or write it in Python")

    def extreme(self, f, seq):
        """min and max: the chain of comparisons that Python makes."""
        fn = operator.lt if f is min else operator.gt
        return functools.reduce(lambda p, q: self.select(self.binop(fn, q, p), q, p), seq)


# ---- builtins that are part of the language ----

def _isinstance(it, a, args, kwargs):
    if isinstance(a, Symbol):
        classes = args[1] if isinstance(args[1], tuple) else (args[1],)
        return any(issubclass(kind(a), c) or isinstance(a, c) for c in classes)
    return isinstance(a, args[1])


def _sum(it, a, args, kwargs):
    start = (args[1:] or [kwargs.get("start", 0)])[0]
    return functools.reduce(lambda p, q: it.binop(operator.add, p, q), a, start)


def _any(it, a, args, kwargs):
    return functools.reduce(lambda p, q: it.either(operator.or_, p, it.truth(q)), a, False)


def _all(it, a, args, kwargs):
    return functools.reduce(lambda p, q: it.either(operator.and_, p, it.truth(q)), a, True)


def _abs(it, a, args, kwargs):
    m = getattr(type(a), "__abs__", None)
    if isinstance(m, types.FunctionType) and not isinstance(a, Value):
        return it.call(m, [a], {})
    return meaning.FUNCTIONS[abs](a)


_SPECIAL = {
    isinstance: _isinstance, sum: _sum, any: _any, all: _all, abs: _abs,
    type: lambda it, a, args, kw: kind(a),
    bool: lambda it, a, args, kw: it.truth(a),
    repr: lambda it, a, args, kw: it.placeholder(a, "") if isinstance(a, Symbol) else it.host(repr, a),
    pow: lambda it, a, args, kw: it.binop(operator.pow, *args),
    divmod: lambda it, a, args, kw: (it.binop(operator.floordiv, *args), it.binop(operator.mod, *args))}


def _dispatched(f) -> bool:
    """A function of NumPy that asks its arguments for __array_function__."""
    return type(f) is type(np.clip)


def _by_protocol(first, f, args, kwargs):
    """f(*args, **kwargs) as NumPy asks `first` for it; NotImplemented where tlgrad lacks the function."""
    try:
        if isinstance(f, np.ufunc):
            return Value.__array_ufunc__(first, f, "__call__", *args, **kwargs)
        return Value.__array_function__(first, f, (Symbol,), tuple(args), kwargs)
    except UnsupportedError:
        return NotImplemented


def _method_of_container(f) -> bool:
    return isinstance(f, (types.BuiltinMethodType, types.MethodWrapperType)) \
        and isinstance(f.__self__, (list, dict, set, tuple, str))


def _hashable(f) -> bool:
    try:
        hash(f)
    except TypeError:
        return False
    return True


def _in(f, functions) -> bool:
    return any(f is g for g in functions)
