"""Finished blocks: what nothing reads is dropped; which symbols a block reads from around it."""
from __future__ import annotations

from tlgrad.frontend.block import Block, Cond, Loop, Op, Symbol


def drop_dead(block: Block):
    """Remove operations, results of conds and carried values that nothing reads."""
    live = {v for v in block.outs if isinstance(v, Symbol)}
    size = -1
    while _mark(block, live) and size != len(live):     # once more: what a turn of a loop reads of the one before
        size = len(live)
    _sweep(block, live)


def _need(live, values):
    for v in values:
        if type(v) is Symbol:
            live.add(v)


def _mark(block, live) -> bool:
    """Add what live values need; True when there are loops."""
    loops = False
    for node in reversed(block.nodes):
        used = not live.isdisjoint(node.outs)
        if not used:
            continue
        if type(node) is Op:
            _need(live, node.ins)
        elif type(node) is Cond:
            for out, a, b in zip(node.outs, node.then.outs, node.other.outs):
                if out in live:
                    _need(live, (a, b))
            loops |= _mark(node.then, live) | _mark(node.other, live)
            _need(live, (node.pred,))
        else:
            loops = True
            for out, p, q, init in zip(node.outs, node.body.params, node.body.outs, node.inits):
                if out in live or p in live:
                    _need(live, (out, p, q, init))
            _need(live, (node.count, node.again))
            _mark(node.body, live)
    return loops


def _sweep(block, live):
    kept = []
    for node in block.nodes:
        if live.isdisjoint(node.outs):
            continue
        if type(node) is not Op:
            places = [k for k, out in enumerate(node.outs) if out in live]
            node.outs = [node.outs[k] for k in places]
            if type(node) is Loop:
                node.inits = [node.inits[k] for k in places]
                node.body.params = [node.body.params[k] for k in places]
            for inner in (node.then, node.other) if type(node) is Cond else (node.body,):
                inner.outs = [inner.outs[k] for k in places]
                _sweep(inner, live)
        kept.append(node)
    block.nodes = kept


def free_symbols(block: Block) -> list[Symbol]:
    """Symbols that a finished block reads from around it, in order of first use."""
    if block.free is None:
        block.free = _free_symbols(block)
    return block.free


def _free_symbols(block):
    found: dict[Symbol, None] = {}
    bound = set(block.params)
    for node in block.nodes:
        for v in inputs(node):
            if isinstance(v, Symbol) and v not in bound:
                found[v] = None
        bound.update(node.outs)
    for v in block.outs:
        if isinstance(v, Symbol) and v not in bound:
            found[v] = None
    return list(found)


def inputs(node) -> list:
    """What a node reads from the block that it is in."""
    if type(node) is Op:
        return node.ins
    if type(node) is Cond:
        return [node.pred, *free_symbols(node.then), *free_symbols(node.other)]
    inner = set(node.body.params) | {node.index}
    return [node.count, *node.inits, *[v for v in free_symbols(node.body) if v not in inner],
            *([node.again] if _outside(node) else [])]


def _outside(loop) -> bool:
    """True when what keeps a loop going is not made in its body."""
    return isinstance(loop.again, Symbol) and loop.again.block is not loop.body
