"""Flow analysis of a graph: order, dominators, natural loops, joins, liveness.

Numba's own `topo_order` is not a topological order, and irreducible graphs must be refused, so
this is done here.  The joins of a block are what Ramsey calls the merge nodes that it dominates
("Beyond Relooper", ICFP 2022).
"""
from __future__ import annotations


class Flow:
    """order: label -> position (reverse postorder);  succ: label -> labels;  loops, joins, after."""

    __slots__ = ("order", "succ", "loops", "joins", "after")


def reverse_postorder(succ: dict, entry) -> list:
    """Labels that can be reached, each before its forward successors."""
    post, seen = [], {entry}
    todo = [(entry, iter(succ[entry]))]
    while todo:
        following = next((s for s in todo[-1][1] if s not in seen), None)
        if following is None:
            post.append(todo.pop()[0])
        else:
            seen.add(following)
            todo.append((following, iter(succ[following])))
    return post[::-1]


def dominators(rpo: list, preds: dict) -> dict:
    """label -> the labels on every path to it."""
    dom = {b: set(rpo) for b in rpo}
    dom[rpo[0]] = {rpo[0]}
    changed = True
    while changed:
        changed = False
        for b in rpo[1:]:
            new = set.intersection(*[dom[p] for p in preds[b]]) | {b}
            if new != dom[b]:
                dom[b], changed = new, True
    return dom


def natural_loops(rpo, order, succ, preds, dom) -> dict:
    """header -> labels of its loop.  Raises NotImplementedError for irreducible graphs."""
    loops: dict = {}
    for a in rpo:
        for h in succ[a]:
            if order[h] > order[a]:
                continue
            if h not in dom[a]:
                raise NotImplementedError("its control flow is irreducible")
            body, todo = loops.setdefault(h, {h}), [a]
            while todo:
                n = todo.pop()
                if n not in body:
                    body.add(n)
                    todo += preds[n]
    return loops


def analyse(succ: dict) -> Flow:
    """The flow of a graph given by its successors; the entry is the smallest label."""
    rpo = reverse_postorder(succ, min(succ))
    flow = Flow()
    flow.order = order = {b: k for k, b in enumerate(rpo)}
    flow.succ = succ = {b: list(dict.fromkeys(succ[b])) for b in rpo}
    preds: dict = {b: [] for b in rpo}
    for a in rpo:
        for s in succ[a]:
            preds[s].append(a)
    dom = dominators(rpo, preds)
    idom = {b: max(dom[b] - {b}, key=order.get, default=None) for b in rpo}
    flow.loops = natural_loops(rpo, order, succ, preds, dom)
    flow.joins = {b: [] for b in rpo}
    for m in rpo:
        if idom[m] is not None and sum(m not in dom[p] for p in preds[m]) > 1:
            flow.joins[idom[m]].append(m)
    flow.after = {h: [e for e in rpo if e not in inside
                      and (any(p in inside for p in preds[e]) or idom[e] in inside)]
                  for h, inside in flow.loops.items()}
    return flow


def liveness(flow: Flow, uses: dict, assigned: dict) -> dict:
    """label -> names read before they are assigned, at its start."""
    live: dict = {b: set() for b in flow.order}
    changed = True
    while changed:
        changed = False
        for b in reversed(flow.order):
            out = set().union(*[live[s] for s in flow.succ[b]])
            new = uses[b] | out - assigned[b]
            if new != live[b]:
                live[b], changed = new, True
    return live
