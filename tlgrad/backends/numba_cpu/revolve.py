"""The reverse of a fold under a limit on the states that are kept, as LLVM IR.

The range of turns is cut in two again and again, with the states before the cuts on a stack; pieces
that fit what is left of the limit are recorded whole and visited backwards.  Cuts are binomial
(Griewank and Walther, "Algorithm 799: Revolve", 2000), as in `tlgrad.control.schedule`.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu import towers
from tlgrad.backends.numba_cpu.towers import (at_work, carried, flat, fold_turn, get_state, put_state, split,
                                              state_bytes, trip_count, turn_number, turns_left)


def fold(body, op):
    """A fold; one whose reverse has a limit makes the first cuts on its way."""
    if "limit" not in op.params:
        towers.fold(body, op)
        return
    behind, body.behind = body.behind, None
    work = body.towers[op.params["tape"]] = Within(body, op)
    body.bind(op.outs, work.descend())
    body.behind = behind


def unfold_within(body, op):
    """Visit the states of such a fold backwards."""
    behind, body.behind = body.behind, None
    work = body.towers[op.params["tape"]]
    start = carried(body, op.outs, [body.env[a] for a in op.args[1:-1]])
    types = [t for t, _ in start]

    def piece(handles):
        k, recorded, *cts = handles
        return work.piece(op, k, recorded, list(zip(types, cts)))
    _, _, *out = body.e.repeat([("i64", work.last), ("i1", "true"), *start],
                               lambda h: body.e.emit(f"icmp sge i64 {h[0]}, 0"), piece)
    body.behind = behind
    body.bind(op.outs, out)


class Within:
    """One reverse.  Piece k of the stack, turns from `lo` to `hi`, enters with the state in slot k; the
    states of the piece at hand lie in the slots from there on."""

    def __init__(self, body, op):
        e = self.e = body.e
        self.body, self.forward, self.n = body, op, trip_count(body, op.args[0])
        self.onward = -1 if op.params["reverse"] else 1
        self.bytes = state_bytes(body, op.outs)
        limit = body.env[body.limits[op.params["tape"]]][0]
        limit = e.emit(f"extractelement {e.type('i64')} {limit}, i64 0")
        if op.params["limit"] == "bytes":
            limit = e.i64("sdiv", limit, self.bytes)
        self.slots = self.most("1", e.smin(limit, self.n))
        self.states = body.memory.take(e.i64("mul", e.i64("add", self.slots, 1), self.bytes))
        self.stack = body.memory.take(e.i64("mul", e.i64("add", self.slots, 2), 16))
        self.put("0", flat(body.env[a] for a in op.args[1:]))
        self.bounds("0", "0", self.n)

    def descend(self):
        """Cut until the last piece fits, and record it: the state after all turns."""
        e = self.e

        def too_long(h):
            lo, hi = self.bounds(h[0])
            return e.emit(f"icmp sgt i64 {e.i64('sub', hi, lo)}, {self.free(h[0])}")

        def cut(h):
            lo, hi = self.bounds(h[0])
            return [self.cut(h[0], lo, hi, e.i64("sub", hi, lo), self.free(h[0]))]
        self.last, = e.repeat([("i64", "0")], too_long, cut)
        lo, hi = self.bounds(self.last)
        turns = e.i64("sub", hi, lo)
        some = e.emit(f"icmp sgt i64 {turns}, 0")
        before = self.run(self.last, lo, e.i64("sub", turns, "1"), record=True)
        place = e.i64("add", lo, self.most("0", e.i64("sub", turns, "1")))
        return e.loop(e.emit(f"zext i1 {some} to i64"), lambda i, now: self.turn(place, now),
                      [(t, x) for (t, _), x in zip(self.types(), before)])

    def types(self):
        """(type, start) of the registers of a state."""
        return carried(self.body, self.forward.outs, [self.body.env[a] for a in self.forward.args[1:]])

    def free(self, k):
        """States that a piece on place k may record."""
        return self.most("1", self.e.i64("sub", self.slots, k))

    def most(self, a, b):
        """The greater of two signed integers."""
        return self.e.emit(f"select i1 {self.e.emit(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def bounds(self, k, lo=None, hi=None):
        """Write the bounds of piece k, or read both."""
        here = self.e.at(self.stack, self.e.i64("mul", k, 16))
        for x, at in ((lo, here), (hi, self.e.at(here, 8))):
            if x is not None:
                self.e.lines.append(f"  store i64 {x}, ptr {at}, align 8")
        if lo is None and hi is None:
            return [self.e.emit(f"load i64, ptr {at}, align 8") for at in (here, self.e.at(here, 8))]

    def piece(self, op, k, recorded, cts):
        """The last piece: cut in two, or visited.  What is last then, whether it is recorded, cotangents."""
        e = self.e
        lo, hi = self.bounds(k)
        turns, free = e.i64("sub", hi, lo), self.free(k)
        cut, visit, join = e.label("cut"), e.label("visit"), e.label("join")
        e.branch(e.emit(f"icmp sgt i64 {turns}, {free}"), cut, visit)
        e.start(cut)
        last = self.cut(k, lo, hi, turns, free)
        end = e.block
        e.jump(join)
        e.start(visit)
        again = e.emit(f"select i1 {recorded}, i64 0, i64 {e.i64('sub', turns, '1')}")
        self.run(k, lo, again, record=True)
        found = self.visit(op, k, lo, turns, cts)
        before = e.i64("sub", k, "1")
        last_block = e.block
        e.jump(join)
        e.start(join)
        return [e.emit(f"phi i64 [ {last}, %{end} ], [ {before}, %{last_block} ]"), "false",
                *[e.emit(f"phi {t} [ {old}, %{end} ], [ {new}, %{last_block} ]")
                  for (t, old), new in zip(cts, found)]]

    def cut(self, k, lo, hi, turns, free):
        """Pass over the first turns and keep the state there: the rest is a piece of its own."""
        passed = first_piece(self.e, turns, free)
        mid, after = self.e.i64("add", lo, passed), self.e.i64("add", k, "1")
        self.put(after, self.run(k, lo, passed))
        self.bounds(k, hi=mid)
        self.bounds(after, mid, hi)
        return after

    def run(self, k, lo, count, record=False):
        """The state after `count` turns from that in slot k; with `record`, the states go to the next slots."""
        e = self.e

        def turn(i, now):
            new = self.turn(e.i64("add", lo, i), now)
            if record:
                self.put(e.i64("add", e.i64("add", k, i), "1"), new)
            return new
        return e.loop(count, turn, [(t, x) for (t, _), x in zip(self.types(), self.get(k))])

    def turn(self, place, now):
        """One turn of the fold, the one at `place` in its order."""
        return fold_turn(self.body, self.forward, self.n, place, now)

    def put(self, slot, handles):
        """Store a state."""
        here = self.e.at(self.states, self.e.i64("mul", slot, self.bytes))
        put_state(self.body, self.forward.outs, here, handles)

    def get(self, slot):
        """The state in a slot."""
        return get_state(self.body, self.forward.outs, self.e.at(self.states, self.e.i64("mul", slot, self.bytes)))

    def visit(self, op, k, lo, turns, cts):
        """The states of a piece backwards."""
        e, body = self.e, self.body

        def back(i, now):
            body.onward = -self.onward
            t = e.i64("sub", e.i64("sub", turns, "1"), i)
            values = split(self.get(e.i64("add", k, t)), body.unroll)
            at = e.i64("add", lo, t)
            if self.onward < 0:
                at = e.i64("sub", e.i64("sub", self.n, "1"), at)
            with at_work(body, turns_left(body, op.args[0], at)):
                return flat(body.region(op.regions[0], [turn_number(body, at), *values, *split(now, body.unroll)]))
        return e.loop(turns, back, cts)


def first_piece(e, turns: str, slots: str) -> str:
    """How many turns to pass over before the next state is kept: `schedule.first_piece`.

    c(s, r) = C(s + r, r) - C(s + r - 2, r - 1) is the longest range that s states cover in r passes.  The
    binomials are doubles: rounding moves a cut, and no word of a result.
    """
    real = e.emit(f"sitofp i64 {turns} to double")
    s = e.emit(f"sitofp i64 {slots} to double")

    def two(name, a, b):
        return e.emit(f"{name} double {a}, {b}")

    def capacity(a, b):
        return two("fsub", a, b)

    def more(h):
        return e.emit(f"fcmp olt double {capacity(h[1], h[2])}, {real}")

    def longer(h):
        """Binomials of (s, r) and (s - 1, r) for r + 1."""
        r, *pairs = h
        after = two("fadd", r, "1.0")
        new = []
        for k, (a, b) in enumerate(split(pairs, 2)):
            top = two("fsub", two("fadd", s, after), f"{float(k)}")
            new.append(two("fdiv", two("fmul", a, top), after))
            new.append(two("fdiv", two("fmul", b, two("fsub", top, "2.0")), r))
        return [after, *new]
    first = ["1.0", two("fadd", s, "1.0"), "1.0", s, "1.0"]
    _, _, _, a, b = e.repeat([("double", x) for x in first], more, longer)
    passed = e.emit(f"fptosi double {two('fsub', real, capacity(a, b))} to i64")
    last = e.i64("sub", turns, "1")
    few = e.emit(f"icmp slt i64 {passed}, 1")
    passed = e.smin(e.emit(f"select i1 {few}, i64 1, i64 {passed}"), last)
    one = e.emit(f"icmp sle i64 {slots}, 1")
    return e.emit(f"select i1 {one}, i64 {last}, i64 {passed}")
