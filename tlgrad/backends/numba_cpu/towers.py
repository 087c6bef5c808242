"""Towers of sweeps as LLVM IR: a fold, and sweeps that visit its states and those of one another.

The states of all sweeps but the last lie on a tape for one block of lanes, side by side for each turn: sweep
k reads at turn i what the sweeps before it carried when they came to turn i.  Up to ONE_TAPE bytes, or
LONG_TAPE where more than one sweep is run again otherwise, all states are kept.  More turns are divided into
segments, the same for all sweeps.  Each sweep keeps the state with which it enters a segment; a later sweep
that comes to a segment runs the earlier ones over it once more, unless their states still lie on the tape.
Segments fit the first cache (SEGMENT), as long as the states kept between them take at most KEPT bytes; then
they grow, up to sqrt(n) turns.  A launch has one piece of memory for each tape, which grows when a block has
more turns.
"""
from __future__ import annotations

from contextlib import contextmanager

from tlgrad.backends.numba_cpu.emitter import REGISTER
from tlgrad.codegen.ir import Op, SIZES

#: bytes of states that are kept whole: about the first cache; a part of the second, where m sweeps would
#: become m (m + 1) / 2 (measured on 4 and 8 sweeps of 60 and 100 turns: 1.4 and 3.6 times as fast)
ONE_TAPE, LONG_TAPE = 64 << 10, 256 << 10
#: bytes of a segment, and of the states kept between segments
SEGMENT, KEPT = 24 << 10, 1 << 20


# ---- values ----

def flat(lists):
    """Handles of many values as one list."""
    return [x for one in lists for x in one]


def split(handles, unroll):
    """The inverse of `flat`."""
    return [handles[i:i + unroll] for i in range(0, len(handles), unroll)]


def carried(body, values, handles):
    """(type, start) of loop-carried registers."""
    return [(body.e.type(v.type), x) for v, xs in zip(values, handles) for x in xs]


def trip_count(body, value) -> str:
    """The number of turns as an i64: the greatest over the lanes when they differ."""
    e, handles = body.e, body.env[value]
    if e.lanes == 1:
        return handles[0]
    if value.uniform:
        return e.emit(f"extractelement {e.type('i64')} {handles[0]}, i64 0")
    vector = f"<{e.lanes} x i64>"
    symbol = f"@llvm.vector.reduce.smax.v{e.lanes}i64"
    e.declare(symbol, "i64", [vector])
    most = None
    if body.active is not None:
        handles = [e.choose("i64", m, x, e.const(0, "i64")) for m, x in zip(body.active, handles)]
    for x in handles:
        one = e.emit(f"call i64 {symbol}({vector} {x})")
        if most is not None:
            more = e.emit(f"icmp sgt i64 {one}, {most}")
            one = e.emit(f"select i1 {more}, i64 {one}, i64 {most}")
        most = one
    return most


def turn_number(body, i):
    """The turn as a lane value."""
    return [body.splat(i, "i64")] * body.unroll


@contextmanager
def at_work(body, masks):
    """Inside, only lanes of these masks (None: all that were) can fail, or keep a loop going."""
    before = body.active
    if masks is not None:
        body.active = masks if before is None else [body.e.two("and", "b1", a, b) for a, b in zip(masks, before)]
    try:
        yield
    finally:
        body.active = before


def turns_left(body, n, i):
    """Masks of the lanes whose own count goes beyond turn i; None when all have one count."""
    if n.uniform:
        return None
    turn = body.splat(i, "i64")
    return [body.e.emit(f"icmp slt {body.e.type('i64')} {turn}, {x}") for x in body.env[n]]


# ---- states in memory ----

def state_bytes(body, values) -> int:
    """Bytes of a state; one as long as a cache line fills lines."""
    size = sum(_memory(v)[1] for v in values) * body.unroll * body.e.lanes
    return -(-size // 64) * 64 if size >= 64 else size


def _memory(value) -> tuple[str, int]:
    """The type of a lane in a state, and its bytes."""
    special = {"b1": ("i8", 1), "f16": ("float", 4)}
    return special.get(value.type) or (REGISTER[value.type], SIZES[value.type])


def put_state(body, values, address, handles):
    """Store the values of a state, one vector after the other."""
    e, at, rest = body.e, 0, iter(handles)
    for v in values:
        lane, size = _memory(v)
        for _ in range(body.unroll):
            x = next(rest)
            if v.type == "b1":
                x = e.emit(f"zext {e.type('b1')} {x} to <{e.lanes} x i8>")
            e.lines.append(f"  store <{e.lanes} x {lane}> {x}, ptr {e.at(address, at)}, align {size}")
            at += size * e.lanes


def get_state(body, values, address) -> list[str]:
    """The values of a state."""
    e, at, out = body.e, 0, []
    for v in values:
        lane, size = _memory(v)
        for _ in range(body.unroll):
            x = e.emit(f"load <{e.lanes} x {lane}>, ptr {e.at(address, at)}, align {size}")
            out.append(e.emit(f"icmp ne <{e.lanes} x i8> {x}, zeroinitializer") if v.type == "b1" else x)
            at += size * e.lanes
    return out


# ---- sweeps ----

def fold(body, op: Op):
    """A fold; one that is the first sweep of a tower keeps its states."""
    if "tape" in op.params:
        tower = body.towers[op.params["tape"]] = Tower(body, body.sweeps[op.params["tape"]])
        tower.sweep(0)
        return
    n, back = trip_count(body, op.args[0]), op.params["reverse"]

    def turn(i, now):
        at = body.e.i64("sub", body.e.i64("sub", n, "1"), i) if back else i
        return sweep_turn(body, op, at, [], now)
    body.bind(op.outs, body.loop(n, turn, carried(body, op.outs, [body.env[a] for a in op.args[1:]])))


def sweep_turn(body, op, at, states, now):
    """Turn number `at` of a sweep that reads these states of the sweeps before it."""
    body.onward = -1 if op.params["reverse"] else 1
    with at_work(body, turns_left(body, op.args[0], at)):
        handles = [turn_number(body, at), *split(states, body.unroll), *split(now, body.unroll)]
        return flat(body.region(op.regions[0], handles))


def unfold(body, op: Op):
    """A later sweep of a tower."""
    tower = body.towers[op.params["tape"]]
    tower.sweep(tower.ops.index(op))


class Tower:
    """The sweeps `ops` of one block of lanes; addresses and counts are i64 handles.

    `record`: bytes of the states at one turn; `places`: bytes from its start to the state of each sweep.
    """

    def __init__(self, body, ops: list[Op]):
        e = self.e = body.e
        self.body, self.ops, self.last = body, ops, len(ops) - 1
        sizes = [state_bytes(body, op.outs) for op in ops[:-1]]
        self.record, self.places = sum(sizes), [sum(sizes[:k]) for k in range(len(sizes))]
        n = self.n = trip_count(body, ops[0].args[0])
        most = ONE_TAPE if self.last == 1 else LONG_TAPE
        whole = e.emit(f"icmp sle i64 {e.i64('mul', n, self.record)}, {most}")
        segment = e.emit(f"select i1 {whole}, i64 {n}, i64 {self.segment_length()}")
        self.segment = e.emit(f"select i1 {e.emit(f'icmp sgt i64 {segment}, 0')}, i64 {segment}, i64 1")
        self.segments = e.i64("sdiv", e.i64("add", n, e.i64("sub", self.segment, "1")), self.segment)
        room = e.i64("add", self.segment, self.segments)
        self.states = body.memory.take(e.i64("mul", room, self.record))
        self.entries = e.at(self.states, e.i64("mul", self.segment, self.record))

    def segment_length(self) -> str:
        """Turns of a segment, of many."""
        e, n = self.e, self.n
        e.declare("@llvm.sqrt.f64", "double", ["double"])
        root = e.emit(f"sitofp i64 {n} to double")
        root = e.emit(f"call double @llvm.sqrt.f64(double {root})")
        root = e.i64("add", e.emit(f"fptosi double {root} to i64"), "1")
        few = e.i64("add", e.i64("sdiv", e.i64("mul", n, self.record), KEPT), "1")
        least, fit = e.smin(root, few), max(SEGMENT // self.record, 1)
        return e.emit(f"select i1 {e.emit(f'icmp slt i64 {least}, {fit}')}, i64 {fit}, i64 {least}")

    def sweep(self, k: int):
        """Sweep k over all turns, segment by segment in its order."""
        e, op = self.e, self.ops[k]
        types = [e.type(v.type) for v in op.outs for _ in range(self.body.unroll)]

        def segment(j, now):
            s = self.nth(k, j)
            start = e.i64("mul", s, self.segment)
            count = e.smin(e.i64("sub", self.n, start), self.segment)
            step = None
            if k < self.last:
                self.put(k, self.entries, s, now)
                final = e.emit(f"icmp eq i64 {j}, {e.i64('sub', self.segments, '1')}")
                step = e.emit(f"select i1 {final}, i64 {self.record}, i64 0")
            if k:
                self.run_again(k, j, s, start, count)
            return self.turns(k, start, count, now, step)
        starts = flat(self.body.env[a] for a in op.args[1:])
        self.body.bind(op.outs, self.body.loop(self.segments, segment, list(zip(types, starts))))

    def nth(self, k, j):
        """The number of the segment that sweep k comes to after j others."""
        if not self.ops[k].params["reverse"]:
            return j
        return self.e.i64("sub", self.e.i64("sub", self.segments, "1"), j)

    def run_again(self, k, j, s, start, count):
        """The sweeps before k over a segment, but where their states lie on the tape: on the first that k
        comes to, when it is the last that the sweep before k came to."""
        e = self.e
        last = self.nth(k - 1, e.i64("sub", self.segments, "1"))
        there = e.emit(f"and i1 {e.emit(f'icmp eq i64 {j}, 0')}, {e.emit(f'icmp eq i64 {s}, {last}')}")
        again = e.emit(f"select i1 {there}, i64 0, i64 {count}")
        for q in range(k):
            self.turns(q, start, again, self.get(q, self.entries, s), str(self.record))

    def turns(self, k, start, count, now, step):
        """Sweep k over the turns of a segment; its states go to the tape, one every `step` bytes, if given."""
        e, body, op = self.e, self.body, self.ops[k]

        def turn(i, now):
            t = e.i64("sub", e.i64("sub", count, "1"), i) if op.params["reverse"] else i
            if step is not None:
                self.put(k, self.states, t, now, step)
            states = flat(self.get(q, self.states, t) for q in range(k))
            return sweep_turn(body, op, e.i64("add", start, t), states, now)
        types = [e.type(v.type) for v in op.outs for _ in range(body.unroll)]
        return body.loop(count, turn, list(zip(types, now)))

    def place(self, k, base, index, step=None):
        """The address of the state of sweep k in a record."""
        here = self.e.at(base, self.e.i64("mul", index, step or self.record))
        return self.e.at(here, self.places[k]) if self.places[k] else here

    def put(self, k, base, index, handles, step=None):
        """Store a state of sweep k."""
        put_state(self.body, self.ops[k].outs, self.place(k, base, index, step), handles)

    def get(self, k, base, index):
        """A state of sweep k."""
        return get_state(self.body, self.ops[k].outs, self.place(k, base, index))
