"""The fallback: let Python run a function on symbols, splitting where it asks for bool().

Used for what the front end cannot read (`with`, `nonlocal`, sequence patterns, ...) and for
functions whose paths return values of different kinds.  Each answer splits the *calling*
statement and the results meet there: always right, but exponential in sequential ifs, so it
runs under the budget.
"""
from __future__ import annotations

import cmath
import math
import types

from tlgrad.core.guard import names_in
from tlgrad.errors import ScalarFunctionError
from tlgrad.frontend.state import CONTROL
from tlgrad.frontend.values import UNDEF, Exit, Iter, Lazy, traced

_MODULES = (math, cmath)
_FUNCTIONS = {f for module in _MODULES for f in vars(module).values() if callable(f)}

#: what one path costs of the budget
PATH = 20


class Trees:
    """Mixin of the interpreter: functions that Python itself runs."""

    def explore(self, f, args, kwargs, g):
        """A call of a function that is not interpreted; `g` says why when it could not be read."""
        try:
            return self.run_on_symbols(f, args, kwargs)
        except ScalarFunctionError as e:
            why = f"`{f.__name__}` is outside what the front end reads: {g}" if isinstance(g, str) else \
                f"`{f.__name__}` returns different kinds of values, so its paths are explored one by one"
            if why in str(e):
                raise
            raise type(e)(f"{e} ({why})") from None

    def run_on_symbols(self, f, args, kwargs):
        """f(*args, **kwargs) by Python, under the answers of this replay."""
        self.spend(PATH, f"`{f.__name__}` has too many paths", "return the same kinds of values on every path")
        args = [iter(self.items(a)) if isinstance(a, (Iter, Lazy)) else a for a in args]
        try:
            return with_traced_math(self, f)(*args, **kwargs)
        except CONTROL:
            raise
        except Exception as e:          # noqa: BLE001
            self.note(True, self.error(type(e), e.args))
            return UNDEF

    def invoke_tree(self, f, vals, failed):
        """A call again, as a tree, after its returns had no common kind."""
        self.trees.add(f.__code__)
        try:
            value = self.run_on_symbols(f, vals, {})
        except ScalarFunctionError:
            self.fail(f"`{f.__name__}` returns different kinds of values: {failed.why}",
                      "return the same structure on every path")
        return {"ret": Exit({"$ret": value}, self.snapshot())}, self.code(None, "ret")


def with_traced_math(interpreter, f):
    """A copy of `f` that sees versions of the math functions which take traced numbers."""
    if not isinstance(f, types.FunctionType):
        return f
    found = {n: f.__globals__[n] for n in names_in(f.__code__)[0] if n in f.__globals__}
    swapped = {n: _on_symbols(interpreter, v) for n, v in found.items()
               if isinstance(v, types.ModuleType) and v in _MODULES
               or isinstance(v, types.BuiltinFunctionType) and v in _FUNCTIONS}
    if not swapped:
        return f
    new = types.FunctionType(f.__code__, {**f.__globals__, **swapped}, f.__name__, f.__defaults__, f.__closure__)
    new.__kwdefaults__ = f.__kwdefaults__
    return new


def _on_symbols(interpreter, v):
    if isinstance(v, types.ModuleType):
        return types.SimpleNamespace(**{n: _on_symbols(interpreter, x) if callable(x) else x
                                        for n, x in vars(v).items()})

    def function(*args):
        return interpreter.call(v, list(args), {}) if traced(args) else v(*args)
    return function
