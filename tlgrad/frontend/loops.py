"""Loops: as plain Python when nothing traced is touched, else rolled, else unrolled turn by turn.

One *turn* is the region from the loop's header back to it.  A rolled loop (`roll.Roll`) is one
`Loop`, of one size for any number of turns.
"""
from __future__ import annotations

import operator

from tlgrad.control.staging import required_positional
from tlgrad.core import dtypes
from tlgrad.frontend.block import Block, Symbol
from tlgrad.frontend.roll import Roll
from tlgrad.frontend.state import Emitted, NeedConcrete, Unmergeable
from tlgrad.frontend.values import UNDEF, Exit, Iter, traced
from tlgrad.ops.convert import convert

#: turns that are unrolled at most; turns of a loop over a concrete range that touches nothing traced
TURNS, CONCRETE_TURNS = 400, 100_000


class Loops:
    """Mixin of the interpreter: loops of a graph."""

    def loop(self, fr, h, env, stops):
        """Run the loop with header h from `env`; goes on after it."""
        g = fr.g
        joins = [e for e in g.after[h] if e not in stops]
        inner = stops | {h} | set(joins)
        it = self.iterator_of(fr, h, env)

        def turn(e):
            return self.finish(fr, self.region(fr, h, 0, e, inner), inner)
        attempt = Attempt(self, h, joins)
        r = None
        if it is None or not (traced(it.stop) or traced(it.start)):
            turns = CONCRETE_TURNS if it is not None and it.rolls else TURNS
            r = attempt(lambda: self.unroll(fr, h, dict(env), turn, turns), forbid=True)
        if attempt.failed(r) and (it is None or it.rolls):
            r = attempt(lambda: self.roll_graph_loop(fr, h, env, turn, it))
        why = r
        if attempt.failed(r):
            r = attempt(lambda: self.unroll(fr, h, dict(env), turn, TURNS))
        if isinstance(r, Unmergeable):      # no common state even turn by turn: a tree of paths
            fr.plain.add(h)
            try:
                return self.region(fr, h, 0, dict(env), stops - {h})
            finally:
                fr.plain.discard(h)
        if isinstance(r, NeedConcrete):
            if isinstance(why, NeedConcrete):
                raise why
            self.fail(f"this loop cannot be recorded: {getattr(why, 'why', 'it does not end')}",
                      "keep the same kinds of values in every turn")
        exits, tag = r
        done = ("mid", h, 0)                # the header once more, with the iterator exhausted
        if h in exits:
            self.codes[id(fr), done] = self.code(fr, h)
            exits[done] = exits.pop(h)
        return self.proceed(fr, exits, tag, env, [done, *joins], stops)

    def iterator_of(self, fr, h, env) -> Iter | None:
        """The iterator that the header advances, for a `for` loop."""
        for s in fr.g.blocks[h]:
            if s.kind == "Assign" and s.value.kind == "Expr" and s.value.op == "iternext":
                return env.get(s.value.value)
        return None

    def roll_graph_loop(self, fr, h, env, turn, it):
        vals = {v: env.get(v, UNDEF) for v in fr.g.carried[h]}
        if it is None:
            return self.roll(fr, h, vals, lambda v, i: turn({**env, **v}))

        def body(v, i):
            it.state[:] = [i, "roll"]
            return turn({**env, **v})

        def after():
            it.state[:] = [0, "done"]
        return self.roll(fr, h, vals, body, count=self.count(it), after=after)

    def count(self, it):
        """Turns of a range: ceil((stop - start) / step), negative counts meaning none."""
        if not traced((it.start, it.stop)):
            return it.count()
        n = self.binop(operator.sub, it.stop, it.start)
        if it.step == 1:
            return n
        return self.unary(operator.neg, self.binop(operator.floordiv, self.unary(operator.neg, n), it.step))

    def unroll(self, fr, h, env, turn, left):
        """Turn after turn, joined after each."""
        base = self.snapshot()
        while left > 0:
            exits, tag = turn(env)
            left -= 1
            if h not in exits:
                return exits, tag
            x = self.prune(exits.pop(h), base)
            if not exits:
                self.install(x.heap)
                env = {**env, **x.vals}
                continue
            p = self.is_tag(tag, self.code(fr, h))
            blocks = [Block(self.block), Block(self.block)]

            def more(x=x, env=env, left=left):
                self.install(x.heap)
                return self.unroll(fr, h, {**env, **x.vals}, turn, left)
            went = self.inside(blocks[0], more)
            passed = self.code(fr, next(iter(exits))) if len(exits) == 1 else tag
            return self.merge(fr, p, (blocks[0], *went), (blocks[1], exits, passed))
        self.fail(f"this loop was unrolled {TURNS} times",
                  "make its bound a range, or compare with a traced value in a while", NeedConcrete)

    def iterate(self, step, n, start, *, memory=None):
        """tl.iterate inside a scalar function: an ordered fold."""
        with_turn = required_positional(step) >= 2
        if not isinstance(n, Symbol) and n < 0:
            self.fail(f"iterate: the count must not be negative, got {n}")

        def body(v, i):
            turn = convert(i, dtypes.uint64) if self.unsigned else i
            state = self.call(step, [turn, v["acc"]] if with_turn else [v["acc"]], {})
            raised, self.raised = self.raised, None
            if raised is not None:
                self.fail("a step of iterate raises", "use a for loop")
            return {"H": Exit({"acc": state}, self.snapshot())}, self.code(None, "H")
        exits, _ = self.roll(None, "H", {"acc": start}, body, count=n)
        self.install(exits["H"].heap)
        return exits["H"].vals["acc"]

    def roll(self, fr, h, vals, body, count=None, after=None):
        """Record one loop.  body : values, turn number -> exits, tag;  h is the exit that comes round."""
        if self.forbid:
            raise Emitted
        roll = Roll(self, fr, h, vals)
        roll.settle(body, count is not None)
        return roll.record(count, after)


class Attempt:
    """Tries one way to run a loop; undoes it when it does not work."""

    def __init__(self, interpreter, h, joins):
        self.it, self.h, self.joins = interpreter, h, joins
        self.snap, self.depth = interpreter.snapshot(), interpreter.forbid

    def failed(self, r) -> bool:
        return r is None or isinstance(r, Exception)

    def __call__(self, thunk, forbid=False):
        it = self.it
        keep, block = len(it.block.nodes), it.block
        catch = (NeedConcrete, Unmergeable, Emitted) if forbid and not self.depth else (NeedConcrete, Unmergeable)
        it.forbid += forbid
        try:
            return thunk()
        except catch as e:
            if isinstance(e, Unmergeable) and e.target != self.h and e.target not in self.joins:
                raise
            it.block = block
            del block.nodes[keep:]
            it.install(self.snap)
            return e
        finally:
            it.forbid = self.depth
