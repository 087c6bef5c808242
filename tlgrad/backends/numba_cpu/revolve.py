"""Towers of sweeps under a limit on the states that are kept, as LLVM IR.

The range of turns is cut in two again and again, with the states that enter the pieces on a stack; pieces
that fit what is left of the limit are recorded whole and visited.  Cuts are binomial (Griewank and Walther,
"Algorithm 799: Revolve", 2000), as in `tlgrad.control.schedule`.

    sweep k over lo .. hi    k = 0: turn by turn.  Else piece by piece, in its order:
        short piece          the sweeps before k are recorded, each with the states of those before it;
                             sweep k visits them
        long piece           cut: each sweep before k passes over the part that it comes to first, by these
                             same rules, which gives the state with which it enters the other part
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu import towers
from tlgrad.backends.numba_cpu.towers import flat, get_state, put_state, split, state_bytes, sweep_turn, trip_count
from tlgrad.codegen.ir import Op


def fold(body, op):
    """A fold; one that is visited again under a limit makes the first cuts on its way."""
    if "limit" not in op.params:
        towers.fold(body, op)
        return
    tape = op.params["tape"]
    with body.sum_waits():
        work = body.towers[tape] = Within(body, body.sweeps[tape], body.limits[tape], op.params["limit"])
        body.bind(op.outs, work.first())


def unfold_within(body, op):
    """A later sweep of such a tower."""
    with body.sum_waits():
        work = body.towers[op.params["tape"]]
        body.bind(op.outs, work.later(work.ops.index(op)))


class Stack:
    """Pieces of the range, for sweep k.  Piece number p, turns from `lo` to `hi`, is entered with the states
    in slot p; the states of a recorded piece lie in the slots from there on, one a turn."""

    def __init__(self, body, ops: list[Op], k: int, slots: str):
        self.body, self.e, self.ops = body, body.e, ops
        sizes = [state_bytes(body, op.outs) for op in ops[:k]]
        self.record, self.places = sum(sizes), [sum(sizes[:q]) for q in range(k)]
        self.states = body.memory.take(self.e.i64("mul", self.e.i64("add", slots, 1), self.record))
        self.limits = body.memory.take(self.e.i64("mul", self.e.i64("add", slots, 2), 16))

    def bounds(self, p, lo=None, hi=None):
        """Write the bounds of piece p, or read both."""
        here = self.e.at(self.limits, self.e.i64("mul", p, 16))
        for x, at in ((lo, here), (hi, self.e.at(here, 8))):
            if x is not None:
                self.e.lines.append(f"  store i64 {x}, ptr {at}, align 8")
        if lo is None and hi is None:
            return [self.e.emit(f"load i64, ptr {at}, align 8") for at in (here, self.e.at(here, 8))]

    def place(self, q, slot):
        """The address of the state of sweep q in a slot."""
        here = self.e.at(self.states, self.e.i64("mul", slot, self.record))
        return self.e.at(here, self.places[q]) if self.places[q] else here

    def put(self, q, slot, handles):
        """Store a state of sweep q."""
        put_state(self.body, self.ops[q].outs, self.place(q, slot), handles)

    def get(self, q, slot):
        """The state of sweep q in a slot."""
        return get_state(self.body, self.ops[q].outs, self.place(q, slot))


class Within:
    """The sweeps of a tower for one block of lanes."""

    def __init__(self, body, ops: list[Op], limit, unit: str):
        e = self.e = body.e
        self.body, self.ops = body, ops
        self.n = trip_count(body, ops[0].args[0])
        self.backward = [op.params["reverse"] for op in ops]
        self.starts = [flat(body.env[a] for a in ops[0].args[1:])]
        most = e.emit(f"extractelement {e.type('i64')} {body.env[limit][0]}, i64 0")
        if unit == "bytes":
            most = e.i64("sdiv", most, sum(state_bytes(body, op.outs) for op in ops[:-1]))
        self.slots = self.most("1", e.smin(most, self.n))
        self.stacks = {k: Stack(body, ops, k, self.slots) for k in range(1, len(ops))}

    def first(self):
        """The first sweep: it cuts what the second comes to later, and records what that comes to first."""
        e, stack = self.e, self.stacks[1]
        if self.backward[0] == self.backward[1]:
            return self.turns(0, "0", self.n, self.starts[0], None, None, False)
        stack.put(0, "0", self.starts[0])
        stack.bounds("0", "0", self.n)

        def too_long(h):
            lo, hi = stack.bounds(h[0])
            return e.emit(f"icmp sgt i64 {e.i64('sub', hi, lo)}, {self.free(h[0])}")
        self.top, = e.repeat([("i64", "0")], too_long, lambda h: [self.cut(1, h[0], *stack.bounds(h[0]))])
        lo, hi = stack.bounds(self.top)
        return self.turns(0, lo, hi, stack.get(0, self.top), stack, self.top, True)

    def later(self, k):
        """Sweep k, over all turns."""
        op, stack = self.ops[k], self.stacks[k]
        self.starts.append(flat(self.body.env[a] for a in op.args[1:-1]))
        if k == 1 and self.backward[0] != self.backward[1]:
            return self.pieces(1, self.top, "true", self.starts[1])
        for q in range(k):
            stack.put(q, "0", self.starts[q])
        stack.bounds("0", "0", self.n)
        return self.pieces(k, "0", "false", self.starts[k])

    def sweep(self, k, lo, hi, now, entries: Stack, slot):
        """Sweep k over lo .. hi, entered by the sweeps before it with the states in a slot of another stack."""
        if k == 0:
            return self.turns(0, lo, hi, now, None, None, False)
        stack = self.stacks[k]
        for q in range(k):
            stack.put(q, "0", entries.get(q, slot))
        stack.bounds("0", lo, hi)
        return self.pieces(k, "0", "false", now)

    def pieces(self, k, top, recorded, now):
        """Sweep k over the pieces of its stack, from the one on top; that one may be recorded."""
        types = self.types(k)

        def piece(handles):
            p, ready, *now = handles
            return self.piece(k, p, ready, list(zip(types, now)))
        _, _, *out = self.e.repeat([("i64", top), ("i1", recorded), *zip(types, now)],
                                   lambda h: self.e.emit(f"icmp sge i64 {h[0]}, 0"), piece)
        return out

    def piece(self, k, p, recorded, now):
        """The piece on top: cut in two, or visited.  What is on top then, whether it is recorded, carries."""
        e, stack = self.e, self.stacks[k]
        lo, hi = stack.bounds(p)
        cut, visit, join = e.label("cut"), e.label("visit"), e.label("join")
        e.branch(e.emit(f"icmp sgt i64 {e.i64('sub', hi, lo)}, {self.free(p)}"), cut, visit)
        e.start(cut)
        top = self.cut(k, p, lo, hi)
        end = e.block
        e.jump(join)
        e.start(visit)
        again = e.emit(f"select i1 {recorded}, i64 {lo}, i64 {hi}")
        for q in range(k):
            self.turns(q, lo, again, stack.get(q, p), stack, p, True)
        found = self.turns(k, lo, hi, [x for _, x in now], stack, p, False)
        before = e.i64("sub", p, "1")
        last = e.block
        e.jump(join)
        e.start(join)
        return [e.emit(f"phi i64 [ {top}, %{end} ], [ {before}, %{last} ]"), "false",
                *[e.emit(f"phi {t} [ {old}, %{end} ], [ {new}, %{last} ]") for (t, old), new in zip(now, found)]]

    def cut(self, k, p, lo, hi):
        """Cut piece p of the stack of sweep k: the part that it comes to first is on top."""
        e, stack, after = self.e, self.stacks[k], self.e.i64("add", p, "1")
        passed = first_piece(e, e.i64("sub", hi, lo), self.free(p))
        mid = e.i64("add", lo, passed) if self.backward[k] else e.i64("sub", hi, passed)
        left, right = (p, after) if self.backward[k] else (after, p)
        stack.bounds(left, lo, mid)
        stack.bounds(right, mid, hi)
        for q in range(k):
            state = stack.get(q, p)
            stack.put(q, after, state)
            if self.backward[q]:
                stack.put(q, left, self.sweep(q, mid, hi, state, stack, right))
            else:
                stack.put(q, right, self.sweep(q, lo, mid, state, stack, left))
        return after

    def turns(self, k, lo, hi, now, stack, p, record):
        """Sweep k turn by turn.  States of the sweeps before it lie in the slots of a stack from p on, and
        its own go there with `record`."""
        e, count, back = self.e, self.e.i64("sub", hi, lo), self.backward[k]

        def turn(i, now):
            t = e.i64("sub", e.i64("sub", count, "1"), i) if back else i
            slot = e.i64("add", p, t) if stack else ""
            if record:
                stack.put(k, slot, now)
            states = flat(stack.get(q, slot) for q in range(k)) if k else []
            return sweep_turn(self.body, self.ops[k], e.i64("add", lo, t), states, now)
        return e.loop(count, turn, list(zip(self.types(k), now)))

    def types(self, k):
        """The types of the registers that sweep k carries."""
        return [self.e.type(v.type) for v in self.ops[k].outs for _ in range(self.body.unroll)]

    def free(self, p):
        """States that a piece on place p may record."""
        return self.most("1", self.e.i64("sub", self.slots, p))

    def most(self, a, b):
        """The greater of two signed integers."""
        return self.e.emit(f"select i1 {self.e.emit(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")


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
