"""Operators: Python's rules for numbers, and the methods of objects."""
from __future__ import annotations

import functools
import operator
import types

from tlgrad.core.trace import Value
from tlgrad.frontend import library, meaning
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.read import Row
from tlgrad.frontend.values import Iter, Maybe, Range, same, scalar, traced
from tlgrad.ops import logic as lo


class Operators:
    """Mixin of the interpreter: operators and truth."""

    def either(self, fn, a, b):
        """`or` / `and` of conditions, concrete ones folded."""
        for p, q in ((a, b), (b, a)):
            if not isinstance(p, Symbol):
                return q if bool(p) == (fn is operator.and_) else fn is operator.or_
        return meaning.BINARY[fn](a, b)

    def truth(self, v):
        """bool(v) as a concrete or traced bool."""
        if isinstance(v, Symbol):
            return True if v.predecessor is not None else meaning.truth(v)
        if isinstance(v, (Iter, Range)):
            return True
        if type(v) is Maybe:
            return self.truth(v[1])
        m = getattr(type(v), "__bool__", None)
        if isinstance(m, types.FunctionType) and not isinstance(v, Value):
            return self.truth(self.call(m, [v], {}))
        return bool(self.host(bool, v))

    def unary(self, fn, v):
        if fn is operator.not_:
            t = self.truth(v)
            return lo.not_(t) if isinstance(t, Symbol) else not t
        if isinstance(v, Symbol) and not v.aval.shape:
            return meaning.UNARY[fn](v)
        m = getattr(type(v), f"__{fn.__name__.strip('_')}__", None)
        return self.call(m, [v], {}) if isinstance(m, types.FunctionType) and not isinstance(v, Value) \
            else self.host(fn, v)

    def binop(self, fn, a, b):
        """a fn b with Python's rules for scalars."""
        if not (type(a) is Symbol or type(b) is Symbol) or not (scalar(a) and scalar(b)):
            if fn is operator.is_ or fn is operator.is_not:
                return (a is b) is (fn is operator.is_)
            if fn is operator.contains and traced((a, b)) and isinstance(a, (tuple, list, range)):
                return functools.reduce(lambda p, q: self.either(operator.or_, p, self.truth(
                    self.binop(operator.eq, q, b))), a, False)
            return self.object_binop(fn, a, b)
        if fn not in meaning.BINARY:
            if fn is operator.is_ or fn is operator.is_not:
                return (a is b) is (fn is operator.is_)
            self.fail(f"`{fn.__name__}` is not defined on traced numbers")
        if isinstance(a, Symbol) and a.predecessor is not None and type(b) is int:
            known = _successor(fn, a, b)
            if known is not None:
                return known
        if fn is operator.pow and _integers(a, b) and not (type(b) is int and b >= 0):
            if isinstance(b, Symbol):
                return self.inline(library.integer_power, [a, b], {})
            a = meaning.to_float(a)
        if self.unsigned and fn in meaning.INDEX and meaning.is_index(a, b):
            return meaning.INDEX[fn](a, b)
        return meaning.BINARY[fn](a, b)

    def object_binop(self, fn, a, b):
        """An operator on objects, on arrays, or on concrete numbers."""
        for x, y, name in ((a, b, fn.__name__), (b, a, "r" + fn.__name__.strip("_"))):
            m = getattr(type(x), f"__{name.strip('_')}__", None)
            if isinstance(m, types.FunctionType) and not isinstance(x, (Value, Row)):
                r = self.call(m, [x, y], {})
                if r is not NotImplemented:
                    return r
        if isinstance(a, (list, tuple, str)) and isinstance(b, Symbol):
            self.concrete(b, f"the number that a {type(a).__name__} is multiplied by")
        if isinstance(b, (list, tuple, str)) and isinstance(a, Symbol):
            self.concrete(a, f"the number that a {type(b).__name__} is multiplied by")
        if isinstance(a, Value) or isinstance(b, Value):
            plain = meaning.BINARY.get(fn)
            if plain is not None:
                return self.host(plain, a, b)
        r = self.host(fn, a, b)
        return self.own(r) if type(r) is list and r is not a else r

    def select(self, which, a, b):
        """a if which else b, both computed."""
        if not isinstance(which, Symbol):
            return a if which else b
        return a if same(a, b) else meaning.choose(which, a, b)


def _successor(fn, n, b):
    """What is known of n >= 1 in a successor equation; n - 1 is the predecessor itself."""
    if fn is operator.sub and b == 1:
        return n.predecessor
    return {(operator.eq, 0): False, (operator.ne, 0): True, (operator.gt, 0): True, (operator.ge, 1): True,
            (operator.ge, 0): True, (operator.lt, 1): False, (operator.le, 0): False,
            (operator.lt, 0): False}.get((fn, b))


def _integers(a, b):
    return all(meaning.aval_of(v).dtype.kind in "biu" for v in (a, b))
