"""Loops and branches as LLVM IR."""
from __future__ import annotations

from typing import Callable

from tlgrad.backends.numba_cpu.towers import at_work, carried, flat, split, turn_number
from tlgrad.codegen.ir import Op

#: operation name -> function of (body, op)
REGIONS: dict[str, Callable] = {}


def region(name: str):
    """Register the text of an operation."""
    def keep(f):
        REGIONS[name] = f
        return f
    return keep


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
