"""Abstract interpretation of a graph: what is concrete runs as Python, what is traced is recorded.

    region(label, env, stops) -> ({target: Exit}, tag)  or  ("go", (label, env))

A region ends at a target in `stops`, at return ("ret") or raise ("err").
"""
from __future__ import annotations

import math
import operator

from tlgrad.frontend.block import Symbol
from tlgrad.frontend.graph import guards
from tlgrad.frontend.meaning import IN_PLACE
from tlgrad.frontend.state import STEPS, Split
from tlgrad.frontend.values import UNDEF, Exit, scalar

TERMINATORS = {"Jump", "Branch", "Return", "Raise", "StaticRaise", "DynamicRaise"}


class Regions:
    """Mixin of the interpreter: control flow within a function."""

    def region(self, fr, label, idx, env, stops, decisions=(), nofault=False):
        """Interpret from (label, idx) until every path has reached a stop, a return or a raise."""
        at_start = True
        while True:
            r = self.run_block(fr, label, idx, env, stops, decisions, nofault, at_start)
            if r[0] != "go":
                return r
            j, env = r[1]
            if j in fr.g.loops and j not in fr.plain:
                r = self.loop(fr, j, env, stops)
                if r[0] != "go":
                    return r
                j, env = r[1]
                if j in fr.g.loops and j not in fr.plain:
                    return self.resume(fr, j, env, stops)
            label, idx = j[1:] if isinstance(j, tuple) else (j, 0)
            at_start, decisions, nofault = True, (), False

    def run_block(self, fr, label, idx, env, stops, decisions, nofault, at_start):
        """Statements of one block from `idx` until control leaves it."""
        body, fr.env = fr.g.blocks[label], env
        while True:
            middle = ("mid", label, idx)
            if not at_start and middle in stops:
                target = getattr(body[idx - 1], "target", None)
                vals = {k: v for k, v in env.items() if k == target}
                return {middle: Exit(vals, self.snapshot())}, self.code(fr, middle)
            s = body[idx]
            fr.loc = s.loc if s.loc is not None else fr.loc
            self.steps += 1
            if self.steps > STEPS:
                self.fail("this function is too complicated: its loops had to be tried in too many ways",
                          "keep lists at a fixed length and variables of one type in loops")
            if s.kind == "Assign" and s.value.kind == "Const":
                env[s.target] = s.value.value
            else:
                r = self.step(fr, label, idx, env, stops, decisions, nofault)
                if r is not None:
                    return r
            idx, at_start, decisions, nofault = idx + 1, False, (), False

    def step(self, fr, label, idx, env, stops, decisions, nofault):
        """One statement: None to go on, or where control went."""
        body = fr.g.blocks[label]
        s = body[idx]
        self.decisions, self.cursor, self.raised, self.left = decisions, 0, None, None
        base = self.snapshot() if self.heap and may_split(s) else None
        try:
            fault = self.fault(s, env) if fr.g.tries and not nofault and guarded(body, idx) else None
            if fault is not None:       # inside try: the exception edge, tested before the operation
                return self.split_fault(fr, label, idx, env, stops, fr.g.joins[label], fault)
            if s.kind in TERMINATORS or idx == len(body) - 1:
                return self.terminator(fr, label, s, env, stops)
            self.statement(fr, s, env)
            if self.left is not None:       # host code has caught it
                raise self.left
        except Split as q:              # bool(symbol) inside host code: this statement under both answers
            if base is not None:
                self.install(base)

            def again(answer):
                return lambda e, st: self.finish(fr, self.region(fr, label, idx, e, st, (*decisions, answer),
                                                                 nofault), st)
            return self.split(fr, q.pred, [again(True), again(False)], env, [("mid", label, idx + 1)], stops)
        raised, self.raised = self.raised, None
        return None if raised is None else self.split_raised(fr, label, idx, env, stops, fr.g.joins[label], raised)

    def split_fault(self, fr, label, idx, env, stops, joins, fault):
        """`fault` = (condition, error code) of a statement inside try."""
        condition, code = fault

        def bad(e, st):
            e[fr.g.blocks[label][idx].target] = UNDEF
            e["$raised"], e["$exc"] = True, code
            return self.finish(fr, self.region(fr, label, idx + 1, e, st), st)

        def good(e, st):
            return self.finish(fr, self.region(fr, label, idx, e, st, nofault=True), st)
        if condition is True:
            return bad(env, stops)
        return self.split(fr, condition, [bad, good], env, joins, stops)

    def split_raised(self, fr, label, idx, env, stops, joins, raised):
        """An operation or an inlined callee may have raised (condition, error code, message values)."""
        condition, code, marks = raised

        def bad(e, st):
            if not (fr.g.tries and guarded(fr.g.blocks[label], idx)):
                return {"err": Exit({"$exc": code, **marks}, self.snapshot())}, self.code(fr, "err")
            e["$raised"], e["$exc"] = True, code
            e.update(marks)
            return self.finish(fr, self.region(fr, label, idx + 1, e, st), st)

        def good(e, st):
            return self.finish(fr, self.region(fr, label, idx + 1, e, st), st)
        if condition is True:
            return bad(env, stops)
        return self.split(fr, condition, [bad, good], env, joins, stops)

    def fault(self, s, env):
        """(condition, code) under which a statement inside try raises, where that is testable before."""
        v = s.value if s.kind == "Assign" and s.value.kind == "Expr" else None
        if v is None:
            return None
        if v.op in ("binop", "inplace_binop"):
            a, b = env.get(v.lhs), env.get(v.rhs)
            fn = IN_PLACE.get(v.fn, v.fn)
            if fn in (operator.truediv, operator.floordiv, operator.mod) and scalar(a) and scalar(b) \
                    and (isinstance(b, Symbol) or b == 0):
                return self.binop(operator.eq, b, 0), self.error(ZeroDivisionError, ("division by zero",))
        if v.op == "call" and v.args and isinstance(x := env.get(v.args[0]), Symbol):
            bound = {math.sqrt: operator.lt, math.log: operator.le}.get(_hashable(env.get(v.func)))
            if bound is not None:
                return self.binop(bound, x, 0), self.error(ValueError, ("math domain error",))
        return None

    def terminator(self, fr, label, s, env, stops):
        if s.kind == "Jump":
            return self.edge(fr, label, s.target, env, stops)
        if s.kind == "Branch":
            c = self.truth(env[s.cond])
            if not isinstance(c, Symbol):
                return self.edge(fr, label, s.truebr if c else s.falsebr, env, stops)

            def arm(t):
                return lambda e, st: self.finish(fr, self.edge(fr, label, t, e, st), st)
            return self.split(fr, c, [arm(s.truebr), arm(s.falsebr)], env, fr.g.joins[label], stops)
        if s.kind == "Return":
            return {"ret": Exit({"$ret": env[s.value]}, self.snapshot())}, self.code(fr, "ret")
        code = self.exception(s, env)
        marks = self.marks_in(env)
        if not isinstance(code, Symbol):
            marks |= self.message_values(code)
        return {"err": Exit({"$exc": code, **marks}, self.snapshot())}, self.code(fr, "err")

    def exception(self, s, env):
        """The error code of a raise; without an exception, the pending one."""
        cls, args = getattr(s, "exc_class", None), getattr(s, "exc_args", ()) or ()
        raised = getattr(s, "exception", None)
        if raised is not None:
            e = env[raised]
            if isinstance(e, type):
                cls, args = e, ()
            elif isinstance(e, BaseException):
                cls, args = type(e), e.args
            else:
                self.fail(f"`raise` of {e!r:.40}, which is not an exception")
        if cls is None or args and "op code RERAISE" in str(args[0]):
            return env["$exc"]
        return self.error(cls, tuple(self.text(env[a]) if type(a).__name__ == "Ref" else self.text(a)
                                     for a in args))

    def marks_in(self, env) -> dict:
        """The message values among the variables."""
        return {k: v for k, v in env.items() if k.startswith("$mark")} if self.marks else {}

    def text(self, v):
        """An argument of an exception: traced numbers become placeholders."""
        return f"{v}" if isinstance(v, Symbol) else v

    def finish(self, fr, r, stops):
        """Follow "go" to where it ends."""
        return self.resume(fr, *r[1], stops) if r[0] == "go" else r

    def resume(self, fr, j, env, stops):
        if j in fr.g.loops and j not in fr.plain:
            return self.finish(fr, self.loop(fr, j, env, stops), stops)
        label, idx = j[1:] if isinstance(j, tuple) else (j, 0)
        return self.region(fr, label, idx, env, stops)

    def edge(self, fr, p, t, env, stops):
        """Go from block p to block t."""
        if t in stops:
            vals = {v: env[v] for v in fr.g.live[t] if v in env} | self.marks_in(env)
            if "$exc" in env:
                vals["$exc"] = env["$exc"]
            return {t: Exit(vals, self.snapshot())}, self.code(fr, t)
        if t in fr.g.loops:
            if p not in fr.g.loops[t] and t not in fr.plain:
                return "go", (t, env)
            self.spend(1, "a loop takes too many steps to unroll", "rewrite the loop over range() or as a while")
            return "go", (("mid", t, 0), env)
        return "go", (t, env)


def may_split(s) -> bool:
    """True for a statement that can run host code, which may ask for bool() of a traced value."""
    return s.kind == "Assign" and s.value.kind == "Expr" and s.value.op in ("call", "binop", "getitem")


def guarded(body, idx) -> bool:
    """True for a statement inside try: an exception check follows it in its block."""
    return any(map(guards, body[idx + 1:]))


def _hashable(f):
    try:
        hash(f)
    except TypeError:
        return None
    return f
