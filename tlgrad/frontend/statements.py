"""Statements, names, and what may be done with values from outside."""
from __future__ import annotations

import builtins
import operator

import numpy as np

from tlgrad.core.trace import Value
from tlgrad.errors import TlgradError
from tlgrad.frontend import meaning
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.state import CONTROL, Emitted, NeedConcrete, Split
from tlgrad.frontend.values import UNDEF, Maybe, traced


class Statements:
    """Mixin of the interpreter: assignments, stores, names, checks."""

    # -- statements --

    def statement(self, fr, s, env):
        """Run an assignment or a store."""
        method = getattr(self, "do_" + s.kind, None)
        if method is None:
            self.fail(f"the statement {s.kind} is not supported")
        method(fr, s, env)

    def do_Assign(self, fr, s, env):
        v = s.value
        if v.kind == "Expr":
            env[s.target] = self.expr(fr, v, env)
        elif v.kind == "Var":
            env[s.target] = self.lookup(env, v.name)
        elif v.kind == "Const":
            env[s.target] = v.value
        elif v.kind == "Arg":
            env[s.target] = env["$args"][v.index]
        elif v.kind in ("Global", "FreeVar"):
            env[s.target] = self.outside(fr, v)
        elif v.kind == "Yield":
            env[s.target] = fr.sink(self.lookup(env, v.value))
        else:
            self.fail(f"the expression {v.kind} is not supported")

    def do_TryRaise(self, fr, s, env):
        if s.kind != "TryRaise" or s.exception is not None:
            env["$exc"] = code = self.exception(s, env)
            if not isinstance(code, Symbol):
                env.update(self.message_values(code))
    do_StaticTryRaise = do_DynamicTryRaise = do_TryRaise

    def do_SetItem(self, fr, s, env):
        self.store(*[self.lookup(env, v) for v in (s.target, s.index, s.value)])

    def do_StaticSetItem(self, fr, s, env):
        self.store(self.lookup(env, s.target), s.index, self.lookup(env, s.value))

    def do_StoreMap(self, fr, s, env):
        self.store(*[self.lookup(env, v) for v in (s.dct, s.key, s.value)])

    def store(self, o, key, value):
        """o[key] = value, where o was made inside."""
        if o is UNDEF or value is UNDEF or key is UNDEF:
            return                          # a variable that is not assigned: noted
        self.mutable(o)
        self.host(operator.setitem, o, self.concrete(key, "an index of an assignment"), value)

    def do_DelItem(self, fr, s, env):
        o, key = self.lookup(env, s.target), self.lookup(env, s.index)
        self.mutable(o)
        self.host(operator.delitem, o, key)

    def do_SetAttr(self, fr, s, env):
        o, value = self.lookup(env, s.target), self.lookup(env, s.value)
        self.mutable(o)
        setattr(o, s.attr, value)

    def do_Del(self, fr, s, env):
        pass
    do_PopBlock = do_Del

    # -- names --

    def lookup(self, env, name):
        """A variable; reading it is an error for the entries that did not assign it."""
        v = env.get(name, UNDEF)
        if type(v) is Maybe and name[0] != "$":
            if v[0] is not True:
                self.note(self.unary(operator.not_, v[0]), self.unbound(name))
            v = env[name] = v[1]
        if v is UNDEF and name[0] != "$":
            self.note(True, self.unbound(name))
        return v

    def unbound(self, name):
        return self.error(UnboundLocalError, (f"cannot access local variable '{name.split('.')[0]}' "
                                              "where it is not associated with a value",))

    def outside(self, fr, v):
        """A global or captured variable, looked up now."""
        if v.kind == "FreeVar":
            place = fr.func.__closure__[fr.func.__code__.co_freevars.index(v.name)]
            try:
                found = place.cell_contents
            except ValueError:
                self.fail(f"`{v.name}` is read before it is assigned")
            return self.admit(found, place, v.name)
        found = fr.func.__globals__.get(v.name, getattr(builtins, v.name, UNDEF))
        if found is UNDEF:
            if v.name.startswith(("$", "mark", "end", "exc")):
                return v.value
            self.fail(f"name `{v.name}` is not defined")
        return self.admit(found, fr.func.__globals__, v.name)

    def admit(self, v, place, name):
        """What a value read from outside becomes: floats and arrays are operands of the program."""
        if isinstance(v, Symbol) and v.trace is self.trace:
            return v
        if isinstance(v, (Value, np.ndarray)):
            return self.capture_array(v)
        if type(v) is float and self.lift:
            return self.lift_number(v, place, name)
        return v

    def note(self, condition, code, marks=None):
        """The entries where `condition` holds raise; the first reason counts."""
        if condition is False:
            return
        marks = marks if marks is not None else {} if isinstance(code, Symbol) else self.message_values(code)
        if self.raised is None:
            self.raised = condition, code, marks
            return
        first, old, old_marks = self.raised
        self.raised = (self.either(operator.or_, first, condition),
                       self.select(first, old, code), {**marks, **old_marks})

    # -- checks --

    def mutable(self, o):
        """Only what was made inside, and is not an alias, may change."""
        if id(o) not in self.heap:
            self.fail(f"this changes a {type(o).__name__} that was made outside the function",
                      "return the value instead")
        if id(o) in self.frozen:
            self.fail(f"this changes a {type(o).__name__} that was chosen by a traced condition",
                      "build it after the condition")

    def concrete(self, v, what):
        """`v`, which must not depend on an input."""
        if traced(v):
            self.fail(f"{what} must be a Python number, but it is only known when the program runs",
                      "index a tuple, list or array of numbers, or restructure", NeedConcrete)
        return v

    def need_number(self, symbol):
        """Python asked a traced value for its number."""
        try:
            self.fail("a Python number is needed here, but the value is only known when the program runs",
                      "use the traced value itself, a math function, or read a table by index", NeedConcrete)
        except NeedConcrete as refusal:
            self.leave(refusal)

    def decide(self, symbol):
        """bool(symbol) in host code: the answer of this replay, or a split of the statement."""
        if self.cursor < len(self.decisions):
            self.cursor += 1
            return self.decisions[self.cursor - 1]
        self.leave(self.left or (Emitted() if self.forbid else Split(meaning.truth(symbol))))

    def host(self, fn, *args, **kwargs):
        """Run Python itself; an exception becomes the error of the entries that come here."""
        try:
            return fn(*args, **kwargs)
        except CONTROL:
            raise
        except (TypeError, AttributeError, NameError) as e:
            if isinstance(e, TlgradError):
                raise
            self.fail(f"{type(e).__name__}: {e}")
        except Exception as e:          # noqa: BLE001
            self.note(True, self.error(type(e), e.args))
            return UNDEF
