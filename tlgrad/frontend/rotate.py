"""Loops that test before each turn: `while test: turn` out of a loop that is left in the middle."""
from __future__ import annotations

from tlgrad.frontend.block import Block, Cond, Loop, Op, Symbol
from tlgrad.frontend.dead import free_symbols, inputs
from tlgrad.ops import logic as lo


def rotate(node: Loop):
    """(test, turn) of a loop whose last node is a cond that either leaves without computing
    anything, or makes a turn and goes on; None for other loops."""
    nodes = node.body.nodes
    final = nodes[-1] if nodes else None
    negated = type(final) is Op and final.prim is lo.not_ and final.outs[0] is node.again
    if negated:
        nodes = nodes[:-1]
    if not nodes or type(nodes[-1]) is not Cond:
        return None
    last = nodes[-1]
    made = dict(zip(last.outs, range(len(last.outs))))
    stay = _stays(node, last, made, negated)
    if stay is None:
        return None
    turn_arm, leave_arm = (last.then, last.other) if stay else (last.other, last.then)
    outs = _turn_outs(node, made, turn_arm, leave_arm)
    if leave_arm.nodes or outs is None:
        return None
    test, turn = Block(None), Block(None)
    test.params = turn.params = node.body.params
    test.nodes, test.outs = nodes[:-1], [last.pred]
    if not stay:
        flipped = Symbol(last.pred.trace, last.pred.aval, test, last.source)
        test.nodes, test.outs = [*test.nodes, Op(lo.not_, [last.pred], {}, [flipped], last.source)], [flipped]
    turn.nodes, turn.outs = _with_head(nodes[:-1], turn_arm, outs), outs
    return test, turn


def _turn_outs(node, made, turn_arm, leave_arm):
    """What one turn gives; None when leaving changes a carried value."""
    outs = []
    for p, v in zip(node.body.params, node.body.outs):
        place = made.get(v) if isinstance(v, Symbol) else None
        if v is p:
            outs.append(v)
        elif place is not None and leave_arm.outs[place] is p:
            outs.append(turn_arm.outs[place])
        else:
            return None
    return outs


def _with_head(head, arm, outs):
    """The arm's nodes, after those of the test that they read."""
    needed = {s for s in (*free_symbols(arm), *outs) if isinstance(s, Symbol)}
    kept = []
    for n in reversed(head):
        if not needed.isdisjoint(n.outs):
            kept.append(n)
            needed.update(v for v in inputs(n) if isinstance(v, Symbol))
    return [*kept[::-1], *arm.nodes]


def _stays(node, last, made, negated):
    """Which arm goes on: True for `then`, False for `other`, None when it depends."""
    if negated:
        return None if node.body.nodes[-1].ins[0] is not last.pred else False
    if node.again is last.pred:
        return True
    place = made.get(node.again)
    if place is None:
        return None
    a, b = last.then.outs[place], last.other.outs[place]
    if isinstance(a, Symbol) or isinstance(b, Symbol) or bool(a) == bool(b):
        return None
    return bool(a)
