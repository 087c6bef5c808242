"""Operations with nested bodies as LLVM IR: folds and their reverse, loops, branches.

The states of a fold that is visited again lie on a tape for one block of lanes.  Up to
ONE_TAPE bytes all states are kept.  A longer fold keeps the first state of each segment and runs
a segment once more before the reverse needs it.  Segments fit the first cache (SEGMENT), as long
as the states kept between them take at most KEPT bytes; then they grow, up to sqrt(n) turns.
A launch has one piece of memory for each tape, which grows when a block has more turns.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable

from tlgrad.backends.numba_cpu.emitter import REGISTER
from tlgrad.codegen.ir import Op, SIZES

#: bytes of states that are kept whole
ONE_TAPE = 64 << 10
#: bytes of a segment, and of the states kept between segments
SEGMENT, KEPT = 24 << 10, 1 << 20

#: operation name -> function of (body, op)
REGIONS: dict[str, Callable] = {}


def region(name: str):
    """Register the text of an operation."""
    def keep(f):
        REGIONS[name] = f
        return f
    return keep


@dataclass
class States:
    """States of a fold for one block of lanes: `bytes` each; `count` turns, an i64 handle."""

    op: Op
    count: str
    bytes: int


@dataclass
class Tape(States):
    """Where they are kept; addresses and counts are i64 handles."""

    segment: str
    segments: str
    states: str
    checkpoints: str


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


@region("fold")
def _fold(body, op: Op):
    e, inner = body.e, op.regions[0]
    n = trip_count(body, op.args[0])
    inits = [body.env[a] for a in op.args[1:]]

    def turn(i, carry, count=n):
        body.onward = -1 if op.params["reverse"] else 1
        if op.params["reverse"]:
            i = e.i64("sub", e.i64("sub", count, "1"), i)
        with at_work(body, turns_left(body, op.args[0], i)):
            return flat(body.region(inner, [turn_number(body, i), *split(carry, body.unroll)]))
    if "tape" not in op.params:
        out = body.loop(n, turn, carried(body, op.outs, inits))
    else:
        out = _recorded(body, op, n, inits, turn)
    for v, handles in zip(op.outs, split(out, body.unroll)):
        body.set(v, handles)


def _recorded(body, op, n, inits, turn):
    """The fold in segments: a checkpoint before each, all states of the last one on the tape."""
    e = body.e
    tape = body.tapes[op.params["tape"]] = _new_tape(body, op, n)

    def segment(k, carry):
        last = e.emit(f"icmp eq i64 {k}, {e.i64('sub', tape.segments, '1')}")
        start = e.i64("mul", k, tape.segment)
        put_state(body, tape, tape.checkpoints, k, carry)
        count = e.smin(e.i64("sub", n, start), tape.segment)
        step = e.emit(f"select i1 {last}, i64 {tape.bytes}, i64 0")

        def one(i, now):
            put_state(body, tape, tape.states, i, now, step)
            return turn(e.i64("add", start, i), now)
        return body.loop(count, one, [(t, x) for (t, _), x in zip(types, carry)])
    types = carried(body, op.outs, inits)
    return body.loop(tape.segments, segment, types)


def states_of(body, op, n) -> States:
    """The states of a fold of n turns; those as long as a cache line start on one."""
    size = sum(SIZES[v.type] if v.type != "f16" else 4 for v in op.outs) * body.unroll * body.e.lanes
    return States(op, n, -(-size // 64) * 64 if size >= 64 else size)


def _new_tape(body, op, n) -> Tape:
    e, size = body.e, states_of(body, op, n).bytes
    whole = e.emit(f"icmp sle i64 {e.i64('mul', n, size)}, {ONE_TAPE}")
    segment = e.emit(f"select i1 {whole}, i64 {n}, i64 {_segment_length(e, n, size)}")
    safe = e.emit(f"select i1 {e.emit(f'icmp sgt i64 {segment}, 0')}, i64 {segment}, i64 1")
    segments = e.i64("sdiv", e.i64("add", n, e.i64("sub", safe, "1")), safe)
    states = body.memory.take(e.i64("mul", e.i64("add", safe, segments), size))
    checkpoints = e.at(states, e.i64("mul", safe, size))
    return Tape(op, n, size, safe, segments, states, checkpoints)


def _segment_length(e, n, size) -> str:
    """Turns of a segment of a fold of n turns whose states have `size` bytes."""
    e.declare("@llvm.sqrt.f64", "double", ["double"])
    root = e.emit(f"sitofp i64 {n} to double")
    root = e.emit(f"call double @llvm.sqrt.f64(double {root})")
    root = e.i64("add", e.emit(f"fptosi double {root} to i64"), "1")
    few = e.i64("add", e.i64("sdiv", e.i64("mul", n, size), KEPT), "1")
    least, fit = e.smin(root, few), max(SEGMENT // size, 1)
    return e.emit(f"select i1 {e.emit(f'icmp slt i64 {least}, {fit}')}, i64 {fit}, i64 {least}")


def _offsets(body, tape):
    """(value, vector number, byte offset) of one state."""
    at = 0
    for v in tape.op.outs:
        for u in range(body.unroll):
            yield v, u, at
            at += (SIZES[v.type] if v.type != "f16" else 4) * body.e.lanes


def put_state(body, tape, base, index, carry, step=None):
    """Store a state at base + index * step."""
    e = body.e
    here = e.at(base, e.i64("mul", index, step or tape.bytes))
    for (v, u, at), x in zip(_offsets(body, tape), carry):
        if v.type == "b1":
            x = e.emit(f"zext {e.type('b1')} {x} to <{e.lanes} x i8>")
        kind = f"<{e.lanes} x {'i8' if v.type == 'b1' else REGISTER[v.type]}>"
        e.lines.append(f"  store {kind} {x}, ptr {e.at(here, at)}, align {SIZES[v.type]}")


def get_state(body, tape, base, index):
    """The state at base + index * bytes."""
    e, out = body.e, []
    here = e.at(base, e.i64("mul", index, tape.bytes))
    for v, u, at in _offsets(body, tape):
        kind = f"<{e.lanes} x {'i8' if v.type == 'b1' else REGISTER[v.type]}>"
        x = e.emit(f"load {kind}, ptr {e.at(here, at)}, align {SIZES[v.type]}")
        out.append(e.emit(f"icmp ne {kind} {x}, zeroinitializer") if v.type == "b1" else x)
    return out


@region("unfold")
def _unfold(body, op: Op):
    """Visit the states of a fold backwards; a segment that is not on the tape is run again."""
    e, tape = body.e, body.tapes[op.params["tape"]]
    cts = [body.env[a] for a in op.args[1:]]
    forward, onward = tape.op.regions[0], -1 if tape.op.params["reverse"] else 1

    def segment(j, ct):
        k = e.i64("sub", e.i64("sub", tape.segments, "1"), j)
        start = e.i64("mul", k, tape.segment)
        count = e.smin(e.i64("sub", tape.count, start), tape.segment)
        again = e.emit(f"select i1 {e.emit(f'icmp eq i64 {j}, 0')}, i64 0, i64 {count}")
        state = get_state(body, tape, tape.checkpoints, k)

        def record(i, now):
            body.onward = onward
            put_state(body, tape, tape.states, i, now)
            at = numbered(body, tape, e.i64("add", start, i))
            return flat(body.region(forward, [at, *split(now, body.unroll)]))
        body.loop(again, record, carried(body, tape.op.outs, split(state, body.unroll)))

        def back(i, now):
            body.onward = -onward
            t = e.i64("sub", e.i64("sub", count, "1"), i)
            values = split(get_state(body, tape, tape.states, t), body.unroll)
            at = numbered(body, tape, e.i64("add", start, t))
            return flat(body.region(op.regions[0], [at, *values, *split(now, body.unroll)]))
        return body.loop(count, back, [(t, x) for (t, _), x in zip(types, ct)])
    types = carried(body, op.outs, cts)
    out = body.loop(tape.segments, segment, types)
    for v, handles in zip(op.outs, split(out, body.unroll)):
        body.set(v, handles)


def numbered(body, tape, at):
    """The number of the turn that is `at` in the order of a fold, as a lane value."""
    if tape.op.params["reverse"]:
        at = body.e.i64("sub", body.e.i64("sub", tape.count, "1"), at)
    return turn_number(body, at)


@region("loop")
def _loop(body, op: Op):
    """Turns while some lane goes on; of lanes that are done, the values that are read later are kept."""
    e, test = body.e, op.regions[0]
    inits = [body.env[a] for a in op.args]
    live = body.region(test, [turn_number(body, "0"), *inits])[0]
    if body.active is not None:
        live = [e.two("and", "b1", x, m) for x, m in zip(live, body.active)]
    top, head, run, done = e.block, e.label("head"), e.label("turn"), e.label("done")
    e.jump(head)
    e.start(head)
    none = [e.const(0, "i64")] * body.unroll
    types = [("i64", "0"), *carried(body, op.outs, [none, *inits]), *[(e.type("b1"), x) for x in live]]
    names = [e.name() for _ in types]
    mark = len(e.lines)
    turn, masks, old = names[0], names[-body.unroll:], split(names[1:-body.unroll], body.unroll)
    e.branch(e.any_lane(masks), run, done)
    e.start(run)
    after, new, still = one_turn(body, op, turn, old[1:], masks)
    turns = [e.choose("i64", m, x, y) for m, x, y in zip(masks, turn_number(body, after), old[0])]
    end = e.block
    e.jump(head)
    e.lines[mark:mark] = [f"  {n} = phi {t} [ {start}, %{top} ], [ {x}, %{end} ]"
                          for n, (t, start), x in zip(names, types, [after, *turns, *flat(new), *still])]
    e.start(done)
    for v, handles in zip(op.outs, old):
        body.set(v, handles)


def one_turn(body, op, turn, old, masks):
    """A turn of a loop for the lanes of these masks: the next turn, the carries, who goes on."""
    e, (test, inner) = body.e, op.regions
    new = _masked(body, masks, inner, [turn_number(body, turn), *old])
    new = [[e.choose(v.type, m, a, b) for m, a, b in zip(masks, xs, ys)] if v in body.used else xs
           for v, xs, ys in zip(op.outs[1:], new, old)]
    after = e.i64("add", turn, "1")
    more = _masked(body, masks, test, [turn_number(body, after), *new])[0]
    return after, new, [e.two("and", "b1", m, x) for m, x in zip(masks, more)]


def _masked(body, masks, inner, handles):
    """A body for the lanes of these masks, which may not come to be run."""
    behind, body.behind = body.behind, None
    with at_work(body, masks):
        out = body.region(inner, handles)
    body.behind = behind
    return out


@region("cond")
def _cond(body, op: Op):
    """A branch runs when some lane takes it."""
    e, masks = body.e, body.env[op.args[0]]
    one = e.const(1, "b1")
    sides = [masks, [e.two("xor", "b1", m, one) for m in masks]]
    chosen = []
    for inner, wanted in zip(op.regions, sides):
        top, run, join = e.block, e.label("side"), e.label("join")
        e.branch(e.any_lane(wanted), run, join)
        e.start(run)
        values = flat(_masked(body, wanted, inner, []))
        end = e.block
        e.jump(join)
        e.start(join)
        types = [e.type(v.type) for v in op.outs for _ in range(body.unroll)]
        chosen.append(split([e.emit(f"phi {t} [ {x}, %{end} ], [ poison, %{top} ]")
                             for t, x in zip(types, values)], body.unroll))
    for v, xs, ys in zip(op.outs, *chosen):
        body.set(v, [e.choose(v.type, m, x, y) for m, x, y in zip(masks, xs, ys)])
