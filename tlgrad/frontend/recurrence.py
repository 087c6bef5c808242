"""Recurrences: recursion on n - 1 with the other arguments unchanged is one loop.

    f(..., 0)      = the zero equation, interpreted with the count concretely 0
    f(..., n + 1)  = the successor equation, in which the recursive call is the carried value

The two equations are kept (`Equations`), so that loop = recursion can be checked.
"""
from __future__ import annotations

import operator
import types

from tlgrad.frontend.block import Symbol
from tlgrad.frontend.graph import graph
from tlgrad.frontend.values import Exit, Frame, same, traced
from tlgrad.errors import ScalarFunctionError

_BUILTIN = (type, types.BuiltinFunctionType)
#: nested concrete calls of a function that is no recurrence
DEPTH = 100


class Recurrences:
    """Mixin of the interpreter: recursive functions."""

    def recur(self, f, g, vals):
        """The value of a call of a recursive function; None: an ordinary call, to be inlined."""
        mode = self.active.get(f.__code__)
        if mode is not None:
            return self.recursive_call(f, g, vals, mode)
        position, why = recursion(self, f, g)
        if position is not None:
            n = vals[position]
            if isinstance(n, float) or isinstance(n, Symbol) and n.dtype.kind not in "iu":
                self.fail(f"`{f.__name__}` is not a recurrence: its count `{g.argnames[position]}` is a float",
                          "pass an integer")
            if isinstance(n, Symbol) or type(n) is int and n >= 0:
                return self.recurrence(f, g, vals, position)
        self.check_depth(f, vals, why)
        return None

    def call_recurrence(self, r, args, kwargs):
        """A function under @tl.recurrence: it must be one."""
        f = r.f
        g = graph(f)
        if f.__code__ not in self.active and not isinstance(g, str):
            position, why = recursion(self, f, g)
            if position is None:
                self.fail(f"`{f.__name__}` is not a recurrence: {why or 'it does not call itself'}")
        return self.call(f, list(args), kwargs)

    def check_depth(self, f, vals, why):
        """Concrete recursion is inlined while its arguments move."""
        frames = [fr for fr in self.stack if fr.func.__code__ is f.__code__]
        if len(frames) > (DEPTH if why else 12) or why and len(frames) > 6 and not descends(frames, vals):
            self.fail(f"`{f.__name__}` calls itself without a concrete end, and it is not a recurrence: "
                      f"{why or 'it calls itself through another function'}",
                      "write it as a while loop, or as one call on n - 1 with the other arguments unchanged")

    def recursive_call(self, f, g, vals, mode):
        """The call inside an equation."""
        kind, name = mode[:2]
        if kind == "zero":
            self.fail(f"`{f.__name__}` is not a recurrence: it calls itself when {name} == 0",
                      f"make {name} == 0 the base case")
        _, _, carried, successor, fixed, position = mode
        if vals[position] is not successor.predecessor:
            self.fail(f"`{f.__name__}` is not a recurrence: the recursive call must be on `{name} - 1`")
        for n, (a, b) in enumerate(zip(vals, fixed)):
            if n != position and not same(a, b) and a is not b:
                self.fail(f"`{f.__name__}` is not a recurrence: argument `{g.argnames[n]}` changes in the "
                          "recursive call", "pass it on unchanged and carry it in the returned value")
        return carried

    def recurrence(self, f, g, vals, position):
        """One loop with the count as its number of turns."""
        n, name, old = vals[position], g.argnames[position], self.active.get(f.__code__)

        def at(count):
            return [*vals[:position], count, *vals[position + 1:]]
        if isinstance(n, Symbol) and n.dtype.kind == "i" and not n.natural:
            self.note(self.binop(operator.lt, n, 0), self.error(RecursionError, (
                f"{f.__name__}: the count {name} = {n} is negative",)))
        try:
            self.active[f.__code__] = ("zero", name)
            try:
                base = self.result(*self.invoke(f, g, at(0)))
            except ScalarFunctionError:
                if isinstance(n, Symbol):
                    raise
                self.active.pop(f.__code__)
                if n >= DEPTH:
                    raise
                return self.result(*self.invoke(f, g, vals))

            def body(v, i):
                successor = self.binop(operator.add, i, 1)
                successor.predecessor, successor.natural = i, True
                self.active[f.__code__] = ("succ", name, v["acc"], successor, vals, position)
                exits, tag = self.invoke(f, g, at(successor))
                if "ret" in exits:
                    exits["H"] = Exit({"acc": exits.pop("ret").vals["$ret"]}, self.snapshot())
                return exits, self.renamed(tag)
            exits, tag = self.roll(None, "H", {"acc": base}, body, count=n)
        finally:
            if old is None:
                self.active.pop(f.__code__, None)
            else:
                self.active[f.__code__] = old
        exits["ret"] = Exit({"$ret": exits.pop("H").vals["acc"]}, self.snapshot())
        return self.result(exits, tag)

    def renamed(self, tag):
        """The tag with "return" meaning one more turn."""
        ret, again = self.code(None, "ret"), self.code(None, "H")
        if not isinstance(tag, Symbol):
            return again if tag == ret else tag
        renamed = self.select(self.is_tag(tag, ret), again, tag)
        if tag in self.choice and isinstance(renamed, Symbol):
            p, a, b = self.choice[tag]
            self.choice[renamed] = p, again if a == ret else a, again if b == ret else b
        return renamed


def descends(frames, vals) -> bool:
    """Some concrete argument moves in every call of the stack."""
    return any(type(v) in (int, float, tuple) and not traced(v) for v in vals) and \
        any(not all(same(a, b) for a, b in zip(vals, fr.vals) if not traced(a)) for fr in frames)


def recursion(interpreter, f, g):
    """(position of the count, "") if every call of f to itself is f(same..., n - 1, ...same);
    (None, reason) otherwise; (None, "") when it does not call itself."""
    calls = list(self_calls(interpreter, f, g))
    places = f" (it calls itself in {len(calls)} places)" if len(calls) > 1 else ""
    tree = f" (it calls itself in {len(calls)} places: tree recursion)" if len(calls) > 1 else ""
    position = None
    for call, shift in calls:
        pairs = [(n + shift, a) for n, a in enumerate(call.args)]
        pairs += [(g.argnames.index(k), a) for k, a in call.kws if k in g.argnames]
        if call.vararg or len(pairs) + shift != len(g.argnames):
            return None, "the recursive call must give every argument"
        counts, others = [], []
        for n, a in pairs:
            v = definition(g, a)
            if v is not None and v.kind == "Arg" and v.index == n:
                continue
            step = predecessor_step(g, v, n)
            if step is not None and step != 1:
                return None, f"it calls itself on `{g.argnames[n]} - {step}`; only `{g.argnames[n]} - 1` " \
                             f"is allowed{places}"
            (counts if step == 1 else others).append(n)
        broken = broken_rule(*[[f"`{g.argnames[n]}`" for n in found] for found in (counts, others)])
        if broken or position not in (None, counts[0]):
            return None, (broken or "its calls count down different arguments") + tree
        position = counts[0]
    return position, ""


def broken_rule(counts, others) -> str:
    """What is wrong with a recursive call, by the arguments that become their predecessor and those that change
    otherwise."""
    if not counts:
        changed = f": {' and '.join(others)} changes otherwise" if others else ""
        return f"no argument is the predecessor n - 1{changed}"
    if others:
        return f"argument {' and '.join(others)} changes in the recursive call"
    return f"arguments {' and '.join(counts)} both become their predecessor" if len(counts) > 1 else ""


def definition(g, name):
    """The only right-hand side of a variable, through copies; None when there are several."""
    v = g.defs.get(name)
    while v is not None and v.kind == "Var":
        v = g.defs.get(v.name)
    return v


def predecessor_step(g, v, n):
    """k when the expression is `parameter n - k`."""
    if v is None or v.kind != "Expr" or v.op != "binop" or v.fn is not operator.sub:
        return None
    left, right = definition(g, v.lhs), definition(g, v.rhs)
    if left is None or left.kind != "Arg" or left.index != n or right is None or right.kind != "Const":
        return None
    return right.value


def self_calls(interpreter, f, g):
    """(call, 1 if it is self.f(...) else 0) for each call of f to itself."""
    frame = Frame(f, g, [])

    def names_f(v):
        if v is None or v.kind not in ("Global", "FreeVar") or isinstance(v.value, _BUILTIN):
            return False
        try:
            found = interpreter.outside(frame, v)
        except ScalarFunctionError:
            return False
        return getattr(found, "__code__", None) is f.__code__ or getattr(found, "__wrapped__", None) is f

    def method(v):
        if v is None or v.kind != "Expr" or v.op != "getattr" or v.attr != f.__name__:
            return False
        owner = definition(g, v.value)
        return owner is not None and owner.kind == "Arg" and owner.index == 0
    for e in g.defs.values():
        if e is not None and e.kind == "Expr" and e.op == "call":
            callee = definition(g, e.func)
            if names_f(callee) or method(callee):
                yield e, int(method(callee))
