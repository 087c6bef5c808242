"""Branches on traced values, and where their paths meet.

`split` runs both arms up to the nearest join, `Merge` makes one state of their exits, `proceed`
goes on at the joins in order.  Several exits are told apart by an integer tag, one more result
of the cond (Ramsey, "Beyond Relooper", ICFP 2022, with tags in place of multi-level breaks), so
every block is interpreted once and the program is linear in the function.
"""
from __future__ import annotations

from collections import Counter

from tlgrad.frontend.block import Block, Cond, Symbol
from tlgrad.frontend.meaning import aval_of, cast, join_avals, zero_of
from tlgrad.frontend.state import Emitted, Unmergeable, count_references, reach
from tlgrad.frontend.values import UNDEF, Exit, Iter, Maybe, blank, like, same, scalar
from tlgrad.ops import logic as lo

#: what duplicating the code after a join costs of the budget
DUPLICATION = 50


class Joins:
    """Mixin of the interpreter: conds."""

    def code(self, fr, target):
        """The tag of an exit."""
        key = target if target in ("ret", "err") else (id(fr), target)
        if key not in self.codes:
            self.codes[key] = len(self.codes)
        return self.codes[key]

    def split(self, fr, pred, arms, env, joins, stops):
        """Run both arms up to the nearest join (or an outer stop), record one cond, go on at the joins."""
        if self.forbid:
            raise Emitted
        joins = [j for j in joins if j not in stops]
        snap, inner, done = self.snapshot(), stops | set(joins), []
        try:
            for arm in arms:
                self.install(snap)
                block, saved = Block(self.block), (self.decisions, self.cursor, self.left)
                done.append((block, *self.inside(block, lambda: arm(dict(env), inner))))
                self.decisions, self.cursor, self.left = saved
            exits, tag = self.merge(fr, pred, *done)
        except Unmergeable as u:
            if u.target not in joins:
                raise
            self.spend(DUPLICATION, "the paths of this function meet with values of different kinds too often",
                       "keep variables at one type and lists at one length")
            self.install(snap)          # no common state at this join: what follows it is duplicated
            return self.split(fr, pred, arms, env, [j for j in joins if j != u.target], stops)
        return self.proceed(fr, exits, tag, env, joins, stops)

    def merge(self, fr, pred, first, second):
        """One state out of two (block, exits, tag); records the cond."""
        try:
            return Merge(self, fr, pred, first, second).run()
        except Unmergeable:
            self.blame = self.place()
            raise

    def is_tag(self, tag, code):
        """The condition that an exit was taken."""
        if not isinstance(tag, Symbol):
            return tag == code
        pred, a, b = self.choice.get(tag, (None, None, None))
        if pred is None or code not in (a, b):
            return lo.eq(tag, code)
        return pred if code == a else lo.not_(pred)

    def proceed(self, fr, exits, tag, env, joins, stops):
        """Go on at the joins, each under its tag; what does not stop there is passed on.

        What follows a join is run only up to the joins that come after it, which are then next in turn: many
        early returns are many conds one after the other, not one in the other.
        """
        pending = [j for j in joins if j not in stops]
        while pending:
            j, *pending = pending
            if j not in exits:
                continue
            x = exits[j]
            if len(exits) == 1:
                self.install(x.heap)
                return "go", (j, {**env, **x.vals})
            rest = {t: e for t, e in exits.items() if t != j}
            p = self.is_tag(tag, self.code(fr, j))
            later = [t for t in self.joins_after(fr, j) if t not in stops and t not in pending]
            try:
                went = self.arm(fr, j, x, env, stops | {*pending, *later})
            except Unmergeable as u:
                if u.target not in later:
                    raise
                later, went = [], self.arm(fr, j, x, env, stops | set(pending))
            pending = later + pending
            passed = self.code(fr, next(iter(rest))) if len(rest) == 1 else tag
            exits, tag = self.merge(fr, p, went, (Block(self.block), rest, passed))
        return exits, tag

    def arm(self, fr, j, x, env, stops):
        """(block, exits, tag) of what follows an exit at j."""
        block = Block(self.block)

        def go():
            self.install(x.heap)
            return self.resume(fr, j, {**env, **x.vals}, stops)
        return (block, *self.inside(block, go))

    def joins_after(self, fr, j) -> list:
        """The joins of the branch to which j leads."""
        g = fr.g
        while not isinstance(j, tuple) and j not in g.loops:
            last = g.blocks[j][-1]
            if last.kind != "Jump":
                return g.joins[j]
            j = last.target
        return []


class Merge:
    """Merges the exits of two arms, target by target."""

    def __init__(self, interpreter, fr, pred, first, second):
        self.it, self.fr, self.pred = interpreter, fr, pred
        (self.block_a, self.exits_a, self.tag_a), (self.block_b, self.exits_b, self.tag_b) = first, second
        self.rows: list = []
        self.memo: dict = {}

    def run(self):
        it, exits = self.it, {}
        for t in {**self.exits_a, **self.exits_b}:
            xa, xb = self.exits_a.get(t), self.exits_b.get(t)
            if xa and xb:
                exits[t] = Meeting(self, t, xa, xb).run()
            else:
                exits[t] = self.export_exit(xa or xb, xa is not None)
        tag = self.tag_a
        if not same(self.tag_a, self.tag_b):
            tag = self.out(self.tag_a, self.tag_b, join_avals(aval_of(self.tag_a), aval_of(self.tag_b)))
            if not (isinstance(self.tag_a, Symbol) or isinstance(self.tag_b, Symbol)):
                it.choice[tag] = self.pred, self.tag_a, self.tag_b
        self.block_a.outs = [row[0] for row in self.rows]
        self.block_b.outs = [row[1] for row in self.rows]
        if self.rows or self.block_a.nodes or self.block_b.nodes:
            it.block.nodes.append(Cond(self.pred, self.block_a, self.block_b,
                                       [row[2] for row in self.rows], it.source()))
        return exits, tag

    def out(self, a, b, aval):
        """The result of the cond that is a in one arm and b in the other."""
        key = (*((type(v), id(v) if isinstance(v, Symbol) else repr(v)) for v in (a, b)), aval)
        if key not in self.memo:
            it = self.it
            a = it.inside(self.block_a, lambda: cast(a, aval))
            b = it.inside(self.block_b, lambda: cast(b, aval))
            self.memo[key] = it.new_symbol(aval)
            self.rows.append((a, b, self.memo[key]))
        return self.memo[key]

    def export(self, v, first):
        """A value that only one arm has, seen from outside."""
        if isinstance(v, tuple):
            return like(v, [self.export(e, first) for e in v])
        if not isinstance(v, Symbol) or self.it.visible(v):
            return v
        if v.aval.shape:
            self.it.fail(f"an array of shape {v.aval.shape} is made in one branch and used after it",
                         "index captured arrays, or make the array before the branch")
        zero = zero_of(v.aval)
        return self.out(v, zero, v.aval) if first else self.out(zero, v, v.aval)

    def export_exit(self, x, first) -> Exit:
        heap = {k: (o, keys, [self.export(v, first) for v in vals]) for k, (o, keys, vals) in x.heap.items()}
        return Exit({k: self.export(v, first) for k, v in x.vals.items()}, heap)


class Meeting:
    """Both arms reach `target`: one state for it, or Unmergeable."""

    def __init__(self, merge: Merge, target, xa: Exit, xb: Exit):
        self.m, self.target, self.xa, self.xb = merge, target, xa, xb
        self.made: dict = {}                       # (id, id) -> merged object
        self.new_heap: dict = {}
        self.pairs: Counter = Counter()

    def run(self) -> Exit:
        xa, xb = self.xa, self.xb
        vals = {k: self.variable(k) for k in {**xa.vals, **xb.vals}}
        heap = {}
        for k in {**xa.heap, **xb.heap}:
            heap[k] = self.object(k)
        for gone in self.freeze():
            heap.pop(gone, None)
        return Exit(vals, {**heap, **self.new_heap})

    def variable(self, k):
        a, b = self.xa.vals.get(k, UNDEF), self.xb.vals.get(k, UNDEF)
        if k.startswith("$mark") and (a is UNDEF or b is UNDEF):
            return self.m.export(b if a is UNDEF else a, b is UNDEF)
        return self.join(a, b)

    def object(self, k):
        """The contents of an object that both arms know; or of one that one arm made."""
        o, keys, vals = self.xa.heap.get(k) or self.xb.heap[k]
        other = self.xb.heap.get(k) if k in self.xa.heap else None
        if other is None:
            return o, keys, [self.m.export(v, k in self.xa.heap) for v in vals]
        if type(o) is Iter and vals[1] != other[2][1]:
            return o, keys, [0, "dead"]
        if keys != other[1] or len(vals) != len(other[2]):
            raise Unmergeable(self.target, "a list has different lengths on two paths")
        return o, keys, [self.join(p, q) for p, q in zip(vals, other[2])]

    def join(self, a, b):
        """One value for a in one arm and b in the other."""
        m = self.m
        if same(a, b) and (not isinstance(a, Symbol) or m.it.visible(a)):
            return a
        if a is UNDEF or b is UNDEF or (type(a) is Maybe) != (type(b) is Maybe):
            a, b = (v if type(v) is Maybe else Maybe((v is not UNDEF, v)) for v in (a, b))
        if type(a) is Maybe and type(b) is Maybe:
            if a[1] is UNDEF or b[1] is UNDEF:
                value = m.export(b[1] if a[1] is UNDEF else a[1], b[1] is UNDEF)
            else:
                value = self.join(a[1], b[1])
            return Maybe((self.join(a[0], b[0]), value))
        if scalar(a) and scalar(b):
            return m.out(a, b, join_avals(aval_of(a), aval_of(b)))
        if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
            return like(a, [self.join(p, q) for p, q in zip(a, b)])
        if isinstance(a, Symbol) and isinstance(b, Symbol) and a.aval.strong() is b.aval.strong():
            return m.out(a, b, a.aval)
        return self.join_objects(a, b)

    def join_objects(self, a, b):
        if type(a) is type(b) and id(a) in self.xa.heap and id(b) in self.xb.heap:
            key = (id(a), id(b))
            self.pairs[key] += 1
            if key in self.made:
                return self.made[key]
            (_, ka, va), (_, kb, vb) = self.xa.heap[id(a)], self.xb.heap[id(b)]
            if ka == kb and len(va) == len(vb):
                new = self.made[key] = blank(a)
                self.m.it.keep += [a, b, new]
                self.new_heap[id(new)] = (new, ka, [self.join(p, q) for p, q in zip(va, vb)])
                return new
        raise Unmergeable(self.target, f"{describe(a)} on one path and {describe(b)} on the other")

    def freeze(self) -> list:
        """Of two different objects that met: when nothing else refers to either, the merged one
        takes their place; otherwise changing any of the three later is refused (aliases)."""
        if not self.made:
            return []
        it, gone = self.m.it, []
        refs_a, refs_b = Counter(), Counter()
        for x, refs in ((self.xa, refs_a), (self.xb, refs_b)):
            count_references(x, x.vals.values(), lambda k, refs=refs: refs.update((k,)) or refs[k] == 1)
        outer = it.outer_roots(self.m.fr)
        held = reach(self.xa, outer) | reach(self.xb, outer)
        for (ida, idb), new in self.made.items():
            count = self.pairs[ida, idb]
            if refs_a[ida] == refs_b[idb] == count and not held & {ida, idb}:
                gone += [ida, idb]
            else:
                it.frozen |= {ida, idb, id(new)}
        return gone


def describe(v) -> str:
    """A value as a message names it."""
    if isinstance(v, Symbol):
        return "a number"
    if v is UNDEF:
        return "undefined"
    if isinstance(v, (list, dict, tuple)):
        return f"a {type(v).__name__} of length {len(v)}"
    return f"{v!r:.60}"
