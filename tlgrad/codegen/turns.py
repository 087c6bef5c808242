"""Folds and loops of lane programs: equations `sweeps` and `while` -> IR operations with regions.

A `loop` knows the number of the turn, the same for all lanes that still run, and gives the turns
that each lane made.  So an integer that starts equal in all lanes and grows by a fixed step is
not carried: it is start + turn * step, computed once for all lanes.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from tlgrad.codegen.ir import Op, Value
from tlgrad.codegen.intrinsics import type_of
from tlgrad.control.schedule import memory_bytes
from tlgrad.control.staging import split_list
from tlgrad.core.jaxpr import Jaxpr, Literal
from tlgrad.passes import optimise


def body_key(jaxpr: Jaxpr) -> tuple:
    """Equal for bodies that compute the same, whatever their variables are called."""
    jaxpr = optimise(jaxpr)
    number = {v: k for k, v in enumerate(jaxpr.in_binders)}

    def key(atom):
        if type(atom) is Literal:
            return atom.aval.dtype.name, atom.value.data.tobytes()
        return number.setdefault(atom, len(number))
    rows = []
    for eqn in jaxpr.eqns:
        ins = tuple(map(key, eqn.ins))
        rows.append((eqn.prim.name, ins, tuple(map(key, eqn.outs)), tuple(eqn.params.items())))
    return tuple(rows), tuple(map(key, jaxpr.outs))


def as_count(low, n: Value) -> Value:
    """An integer as an i64."""
    return n if n.type == "i64" else low.emit("convert", [n], ["i64"])[0]


def _as_index(low, i, body):
    type = type_of(body.in_binders[0].aval.dtype)
    return i if type == "i64" else low.emit("convert", [i], [type])[0]


# ---- folds ----

def lower_sweeps(low, p, args) -> list[Value]:
    """A tower of sweeps: a fold, and sweeps over its states and those of one another."""
    n, bodies, n_xs, n_carry = args[0], p["bodies"], p["n_xs"], p["carries"][-1]
    consts, xs, *inits, _ = split_list(args[1:], p["n_consts"], n_xs, *p["carries"])
    if n not in low.not_negative:
        low.fault("lt", n)
    ys = [Value(type_of(v.aval.dtype)) if want else None
          for v, want in zip(bodies[-1].outs[n_carry:], p["results"][n_carry:])]
    program = Turns(low, n, consts, xs, ys)
    if len(bodies) > 1 or n.uniform:
        out = _tower(program, bodies, p["reverse"], inits, p["memory"])
    else:
        out = _counted_loop(low, bodies[0], p["reverse"][0], n, consts, inits[0])
    return [x for x, want in zip([*out, *ys], p["results"]) if want]


class Turns(NamedTuple):
    """What the turns of a fold share: the count, constants, arrays read and written turn by turn."""

    low: Any
    n: Value
    consts: Sequence[Value]
    xs: Sequence[Value]
    ys: Sequence[Value | None]

    def turn(self, body: Jaxpr, i: Value, values, ys=()) -> list[Value]:
        """What a body gives at turn i: carries; its further results are put into `ys`."""
        low, n_carry = self.low, len(body.outs) - len(ys)
        taken = [low.emit("take", [x, i], [x.type])[0] for x in self.xs]
        new = low.jaxpr(body, [_as_index(low, i, body), *self.consts, *taken, *values])
        for y, x in zip(ys, new[n_carry:]):
            if y is not None:
                low.scopes[-1].append(Op("put", (y, i, x), (Value("b1"),)))
        return new[:n_carry]


def _counted_loop(low, body, reverse, n, consts, inits):
    """A fold whose count differs by lane and whose states nobody visits again: a loop."""
    count = as_count(low, n)

    def test(turn, *carry):
        return low.emit("lt", [turn, count], ["b1"])

    def run(turn, *carry):
        one = low.number(1)
        i = low.emit("sub", low.emit("sub", [count, one], ["i64"]) + (turn,), ["i64"])[0] if reverse else turn
        return low.jaxpr(body, [_as_index(low, i, body), *consts, *carry])
    return _loop(low, inits, test, run)[1:]


def _loop(low, inits, test, run) -> tuple[Value, ...]:
    """The operation `loop`: turns by lane, then the carries."""
    types, guard = [c.type for c in inits], low.guard

    def guarded(*values):
        out = test(*values)
        return out if guard is None else low.emit("and", [guard, *out], ["b1"])
    first, free = low.region(["i64", *types], guarded, counted=True)
    second, more = low.region(["i64", *types], run, counted=True)
    return low.emit("loop", inits, ["i64", *types], {}, [first, second], free | more)


def _tower(program: Turns, bodies, reverse, inits, memory) -> tuple[Value, ...]:
    """What the last sweep carries.  An equal sweep of this region is used again, and a chain of them is
    continued where nothing continues it yet: its last sweep then keeps its states.  `low.folds` has the
    results of each sweep, by all that it depends on, and the parameters of the operations of its chain."""
    low, last = program.low, len(bodies) - 1
    key: tuple = (id(low.scopes[-1]), program.n, tuple(program.consts), tuple(program.xs))
    keys, done, outs, chain = [], 0, (), []
    for k, body in enumerate(bodies):
        ys = program.ys if k == last else ()
        key = (*key, body_key(body), reverse[k], tuple(inits[k]), tuple(ys), memory if k else None)
        keys.append(key)
        found = low.folds.get(key)
        if found is not None and (k == last or len(found[1]) == k + 1):
            done, (outs, chain) = k + 1, found
    for k in range(done, len(bodies)):
        chain, ys = chain if k else [], program.ys if k == last else ()
        outs = _sweep(program, bodies[k], reverse[k], inits[:k + 1], chain, memory, ys)
        low.folds[keys[k]] = outs, chain
    return outs


def _sweep(program: Turns, body, reverse, inits, chain, memory, ys) -> tuple[Value, ...]:
    """One more sweep of a chain; its turns read the states of those before it."""
    low, n, own = program.low, program.n, len(inits[-1])
    types = [[v.type for v in group] for group in inits]

    def turn(i, *values):
        return _kept(low, n, i, program.turn(body, i, values, ys), values[len(values) - own:])
    region, free = low.region(["i64", *[t for group in types for t in group]], turn, counted=True)
    args, free = [as_count(low, n), *inits[-1]], free.union(*inits[:-1])
    name, params = "unfold" if chain else "fold", {"reverse": int(reverse)}
    if chain:
        if "tape" not in chain[0]:
            chain[0]["tape"], low.tapes = low.tapes, low.tapes + 1
        params["tape"] = chain[0]["tape"]
    if chain and memory is not None:
        limit = params["limit"] = chain[0]["limit"] = "states" if type(memory) is int else "bytes"
        args.append(low.number(memory if limit == "states" else memory_bytes(memory)))
        name = "unfold_within"
    chain.append(params)
    return low.emit(name, args, types[-1], params, [region], free)


def _kept(low, n, i, new, old):
    """With a count of its own in every lane: only lanes that are not done go on."""
    if n.uniform:
        return new
    live, = low.emit("lt", [i, as_count(low, n)], ["b1"])
    return [low.emit("select", [live, a, b], [a.type])[0] for a, b in zip(new, old)]


# ---- loops ----

def lower_while(low, p, args) -> list[Value]:
    """A loop that ends by a condition; its last result is the number of turns when `counted`."""
    consts, inits = args[:p["n_consts"]], args[p["n_consts"]:]
    carries = Carries(low, optimise(p["body"]), consts, inits)

    def test(turn, *kept):
        return low.jaxpr(p["cond"], [*consts, *carries.at(turn, kept, optimise(p["cond"]))])

    def run(turn, *kept):
        new = low.jaxpr(p["body"], [*consts, *carries.at(turn, kept, carries.body)])
        return [new[k] for k in carries.kept]
    turns, *kept = _loop(low, [inits[k] for k in carries.kept], test, run)
    return [*carries.at(turns, kept), *([turns] if p["counted"] else [])]


class Carries:
    """How the carries of a loop are held: `kept` ones in registers, others follow from those and the turn.

    Of carries that start equal and become the same value, one is kept.  *Counting* ones start
    uniform and grow by a uniform step; *late* ones have the value that a counting one had a turn ago.
    """

    def __init__(self, low, body: Jaxpr, consts, inits):
        self.low, self.body, self.inits = low, body, inits
        self.binders = body.in_binders[len(consts):]
        known = dict(zip(body.in_binders, consts))
        self.makers = {v: eqn for eqn in body.eqns for v in eqn.outs}
        seen: dict = {}
        self.first = [seen.setdefault((init, out if type(out) is not Literal else k), k)
                      for k, (init, out) in enumerate(zip(inits, body.outs))]
        self.counting = {k: step for k in range(len(inits)) if (step := self.step_of(k, known)) is not None}
        place = {self.binders[k]: k for k in self.counting}
        self.late = {k: place[out] for k, out in enumerate(body.outs)
                     if k not in self.counting and type(out) is not Literal and out in place}
        self.kept = [k for k, f in enumerate(self.first) if f == k and k not in self.counting
                     and k not in self.late]

    def step_of(self, k, known):
        """The uniform step by which carry k grows; None when it does something else."""
        out, init = self.body.outs[k], self.inits[k]
        eqn = self.makers.get(out) if type(out) is not Literal else None
        if eqn is None or eqn.prim.name != "add" or init.type[0] not in "iu" or not init.uniform:
            return None
        for own, step in (eqn.ins, eqn.ins[::-1]):
            if own is self.binders[k]:
                step = self.low.literal(step) if type(step) is Literal else known.get(step)
                return step if step is not None and step.uniform else None
        return None

    def at(self, turn: Value, kept, reader: Jaxpr | None = None) -> list:
        """All carries after `turn` turns; None for those that `reader` does not read."""
        place = dict(zip(self.kept, kept))
        read = set(range(len(self.inits)))
        if reader is not None:
            used = {a for eqn in reader.eqns for a in eqn.ins} | set(reader.outs)
            binders = reader.in_binders[len(reader.in_binders) - len(self.inits):]
            read = {k for k, v in enumerate(binders) if v in used}
        return [self.one(self.first[k], turn, place) if k in read else None for k in range(len(self.inits))]

    def one(self, k, turn, place):
        if k in self.counting:
            return self.counted(k, turn)
        if k in self.late:
            low = self.low
            before = self.counted(self.late[k], low.emit("sub", [turn, low.number(1)], ["i64"])[0])
            start, = low.emit("eq", [turn, low.number(0)], ["b1"])
            return low.emit("select", [start, self.inits[k], before], [before.type])[0]
        return place[k]

    def counted(self, k, turn):
        """start + turn * step in the integers of its type."""
        low, start, step = self.low, self.inits[k], self.counting[k]
        grown = turn if start.type == "i64" else low.emit("convert", [turn], [start.type])[0]
        if low.numbers.get(step) != 1:
            grown, = low.emit("mul", [grown, step], [start.type])
        return grown if low.numbers.get(start) == 0 else low.emit("add", [start, grown], [start.type])[0]
