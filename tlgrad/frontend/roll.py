"""`Roll`: the carried state of one loop, found by a small fixpoint, and the loop it records.

Numbers that change become carried values of a kind that holds them before and after a turn (bool <
int < float); lists and objects are carried by their contents.
"""
from __future__ import annotations

from tlgrad.frontend.block import Block, Loop, Symbol
from tlgrad.frontend.meaning import aval_of, cast, join_avals, zero_of
from tlgrad.frontend.state import Unmergeable
from tlgrad.frontend.values import UNDEF, Exit, Iter, Maybe, contents, fill, like, same, scalar
from tlgrad.ops import logic as lo

#: passes until the carried state must have settled
PASSES = 12


class Roll:
    """The fixpoint for the carried state of one loop, and the loop it records.

    Keys of carried numbers: ("v", name, ...) in variables, ("h", id, n, ...) in objects.
    """

    def __init__(self, interpreter, fr, h, vals):
        self.it, self.fr, self.h, self.vals = interpreter, fr, h, vals
        self.snap = interpreter.snapshot()
        self.avals: dict = {}
        self.maybe: set = set()
        self.rebind: set = set()

    def settle(self, body, counted):
        """Interpret the body until the kinds of the carried values no longer change."""
        it = self.it
        for _ in range(PASSES):
            it.install(self.snap)
            self.block, self.params = Block(it.block), []
            self.index = None
            if counted:
                self.index = it.new_symbol(_INT, self.block)
                self.index.natural = True
            self.current = {("v", n): self.enter(("v", n), v, True) for n, v in self.vals.items()}
            for k, (o, keys, vs) in self.snap.items():
                entered = [self.enter(("h", k, n), v, False) for n, v in enumerate(vs)]
                self.current.update({("h", k, n): v for n, v in enumerate(entered)})
                fill(o, keys, entered)
            self.seen = it.snapshot()
            values = {n: self.current["v", n] for n in self.vals}
            self.exits, self.tag = it.inside(self.block, lambda: body(values, self.index))
            if self.h not in self.exits:
                raise Unmergeable(self.h, "it never comes round")
            self.compare_states()
            if not self.changed:
                return
        raise Unmergeable(self.h, "its variables do not settle")

    def enter(self, key, v, widen):
        """What a value becomes at the start of a turn: a parameter where it is carried."""
        it = self.it
        if key in self.maybe and type(v) is not Maybe:
            v = Maybe((v is not UNDEF, v))
        if key in self.rebind:                  # a list or object rebound in each turn: by its contents
            keys, vs = contents(v)
            new = it.copy_of(v, keys, [self.enter((*key, "c", n), e, True) for n, e in enumerate(vs)])
            it.frozen |= {id(v), id(new)}
            it.keep += [v, new]
            return new
        if isinstance(v, tuple):
            return like(v, [self.enter((*key, n), e, widen) for n, e in enumerate(v)])
        if not (key in self.avals or widen and scalar(v)):
            return v
        if key not in self.avals:
            self.avals[key] = aval_of(v)
        aval = self.avals[key]
        p = it.new_symbol(aval, self.block)
        self.params.append((key, p, zero_of(aval) if v is UNDEF else v))
        return p

    def compare_states(self):
        """Before and after a turn; what differs is carried, in a kind that holds both."""
        x = self.exits[self.h]
        self.x, self.next, self.changed = x, {}, False
        for n in self.vals:
            self.compare(("v", n), self.current["v", n], x.vals.get(n, UNDEF))
        for k, (o, keys, vs) in self.snap.items():
            if k not in x.heap:                 # replaced by a merged object: nothing refers to it
                self.next.update({("h", k, n): self.current["h", k, n] for n in range(len(vs))})
                continue
            if x.heap[k][1] != keys or len(x.heap[k][2]) != len(vs):
                raise Unmergeable(self.h, "a list changes its length in the loop")
            if type(o) is not Iter or o.state[1] != "roll":
                for n, v in enumerate(x.heap[k][2]):
                    self.compare(("h", k, n), self.current["h", k, n], v)

    def compare(self, key, old, new):
        if key[:-1] in self.maybe and old is UNDEF:         # the value slot of a Maybe needs a kind
            if scalar(new):
                self.avals[key], self.changed = aval_of(new), True
                return
            if new is not UNDEF:
                raise Unmergeable(self.h, f"`{key[1]}` is first assigned in the loop")
        elif (old is UNDEF or type(new) is Maybe) and type(old) is not Maybe and new is not UNDEF:
            self.maybe.add(key)
            self.changed, self.next[key] = True, new
            return
        if type(old) is Maybe and type(new) is not Maybe:
            new = Maybe((new is not UNDEF, new))
        if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
            for n, (a, b) in enumerate(zip(old, new)):
                self.compare((*key, n), a, b)
        elif self.is_rebound(key, old, new):
            self.compare_rebound(key, old, new)
        elif same(old, new):
            self.next[key] = new
        elif new is UNDEF:
            self.next[key] = zero_of(self.avals[key])
        else:
            self.widen(key, old, new)

    def is_rebound(self, key, old, new):
        return id(old) in self.seen and id(new) in self.x.heap and type(old) is type(new) \
            and (key in self.rebind or old is not new)

    def compare_rebound(self, key, old, new):
        (keys, vs), (_, keys_new, vs_new) = self.seen[id(old)][1:], self.x.heap[id(new)]
        if keys != keys_new or len(vs) != len(vs_new) or type(old) is Iter:
            raise Unmergeable(self.h, f"`{key[1]}` has different lengths before and after a turn")
        if key not in self.rebind:
            self.rebind.add(key)
            self.changed = True
            return
        for n, (a, b) in enumerate(zip(vs, vs_new)):
            self.compare((*key, "c", n), a, b)

    def widen(self, key, old, new):
        if not (scalar(new) and (scalar(old) or old is UNDEF)):
            raise Unmergeable(self.h, f"`{key[1]}` is {old!r:.60} before a turn and {new!r:.60} after it")
        aval = aval_of(new)
        known = self.avals.get(key, aval_of(old) if old is not UNDEF else aval)
        aval = join_avals(known, aval)
        if self.avals.get(key) is not aval:
            self.avals[key], self.changed = aval, True
        self.next[key] = new

    # -- the loop --

    def record(self, count, after):
        """Emit the loop; its exits and their tag."""
        it, block = self.it, self.block
        block.params = [p for _, p, _ in self.params]
        self.inits = [cast(v, p.aval) for _, p, v in self.params]
        block.outs = [it.inside(block, lambda k=k, p=p: cast(self.next[k], p.aval)) for k, p, _ in self.params]
        self.final = {key: it.new_symbol(p.aval) for key, p, _ in self.params}
        self.outs, self.slots = list(self.final.values()), {}
        exits = {t: self.leave_exit(e) for t, e in self.exits.items() if t != self.h}
        if not exits and count is None:     # an entry that comes here would run forever
            code = it.error(RuntimeError, (f"{it.place()}: this loop never ends: no path leaves it",))
            return {"err": Exit({"$exc": code}, it.snapshot())}, it.code(self.fr, "err")
        again = again_out = None
        if exits:
            again = it.inside(block, lambda: it.is_tag(self.tag, it.code(self.fr, self.h)))
            again_out = self.carry_out(again, True)
        targets = [*exits, *([self.h] if count is not None else [])]
        tag = None
        if len(targets) > 2 or len(targets) == 2 and count is None:
            tag = self.carry_out(self.tag, it.code(self.fr, self.h))
        it.block.nodes.append(Loop(count, self.index, block, self.inits, self.outs, again, it.source()))
        if count is not None:
            exits[self.h] = self.natural_exit(after)
        return exits, self.final_tag(targets, tag, again_out)

    def final_tag(self, targets, tag, again_out):
        it = self.it
        codes = [it.code(self.fr, t) for t in targets]
        if len(targets) == 1:
            return codes[0]
        if tag is not None:
            return tag
        other, mine = codes
        tag = lo.select(again_out, *map(lo.as_value, (mine, other)))
        it.choice[tag] = again_out, mine, other
        return tag

    def leave_exit(self, e):
        heap = {k: (o, keys, [self.leave(v) for v in vs]) for k, (o, keys, vs) in e.heap.items()}
        return Exit({k: self.leave(v) for k, v in e.vals.items()}, heap)

    def leave(self, v):
        """A value made in the body and used after an early exit: one more carried value."""
        if isinstance(v, tuple):
            return like(v, [self.leave(e) for e in v])
        if not isinstance(v, Symbol) or self.it.visible(v):
            return v
        if v not in self.slots:
            if v.aval.shape:
                self.it.fail(f"an array of shape {v.aval.shape} is made in a loop and used after it",
                             "index captured arrays, or make the array before the loop")
            self.slots[v] = self.carry_out(v, zero_of(v.aval))
        return self.slots[v]

    def carry_out(self, v, init):
        """A new carried value that the body only writes; `init` when there is no turn."""
        out = self.it.new_symbol(v.aval)
        self.block.params.append(self.it.new_symbol(v.aval, self.block))
        self.inits.append(cast(init, v.aval))
        self.block.outs.append(v)
        self.outs.append(out)
        return out

    def natural_exit(self, after) -> Exit:
        """The state after the last turn."""
        it = self.it
        for k, (o, keys, vs) in self.snap.items():
            fill(o, keys, [self.back(("h", k, n), v) for n, v in enumerate(vs)])
        it.heap = {k: entry[0] for k, entry in self.snap.items()}
        if after:
            after()
        vals = {n: self.back(("v", n), v) for n, v in self.vals.items()}
        return Exit(vals, it.snapshot())

    def back(self, key, old):
        it = self.it
        if key in self.maybe and type(old) is not Maybe:
            old = Maybe((old is not UNDEF, old))
        if key in self.rebind:
            _, keys, vs = self.snap[id(old)]
            new = it.copy_of(old, keys, [self.back((*key, "c", n), e) for n, e in enumerate(vs)])
            it.frozen.add(id(new))
            return new
        if isinstance(old, tuple):
            return like(old, [self.back((*key, n), e) for n, e in enumerate(old)])
        return self.final.get(key, old)


_INT = aval_of(0)
