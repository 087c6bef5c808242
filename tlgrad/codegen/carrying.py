"""What the end of a turn computes is not computed again by the next turn.

A turn of ``while x * x < 4: x = x * x + c`` ends with the square of the new x, for the test, and the
next one would begin with it.  When an operation on carried values is also done on what they become,
its result is carried.
"""
from __future__ import annotations

from tlgrad.codegen.ir import Op, Value, free_values


def carry_results(ops: list[Op]) -> list[Op]:
    """The operations with such results carried in every loop."""
    out = []
    for op in ops:
        for region in op.regions:
            region.ops[:] = carry_results(region.ops)
        if op.name == "loop":
            before, op = _carried(op)
            out += before
        out.append(op)
    return out


def _carried(op: Op) -> tuple[list[Op], Op]:
    """The operations on the starts, and the loop that carries what they give."""
    test, body = op.regions
    becomes = dict(zip(body.params[1:], body.results))
    starts = dict(zip(body.params[1:], op.args))
    made = {_key(o, o.args): o for o in body.ops if not o.regions}
    outer = free_values(body)
    before, gone = [], set()
    for first in list(body.ops):
        if first.regions or first.uniform or first.name in ("fault", "read"):
            continue
        if not becomes.keys() & set(first.args) or not all(a in becomes or a in outer for a in first.args):
            continue
        last = made.get(_key(first, [becomes.get(a, a) for a in first.args]))
        if last is None or last is first:
            continue
        args, type = tuple(starts.get(a, a) for a in first.args), first.outs[0].type
        start = Op(first.name, args, (Value(type, all(a.uniform for a in args)),), first.params)
        before.append(start)
        op = Op("loop", (*op.args, start.outs[0]), (*op.outs, Value(type)), op.params, op.regions)
        test.params, body.params = (*test.params, Value(type)), (*body.params, first.outs[0])
        body.results = (*body.results, last.outs[0])
        gone.add(first)
    body.ops[:] = [o for o in body.ops if o not in gone]
    return before, op


def _key(op: Op, args) -> tuple:
    return op.name, tuple(args), tuple(op.params.items()), op.outs[0].type
