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


class Dominators:
    """The dominator tree (Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001)."""

    def __init__(self, rpo: list, order: dict, preds: dict):
        self.order = order
        self.idom = {rpo[0]: rpo[0]}
        changed = True
        while changed:
            changed = False
            for b in rpo[1:]:
                known = [p for p in preds[b] if p in self.idom]
                new = known[0]
                for p in known[1:]:
                    new = self.meet(p, new)
                if self.idom.get(b) != new:
                    self.idom[b], changed = new, True
        self.depth = {rpo[0]: 0}
        for b in rpo[1:]:
            self.depth[b] = self.depth[self.idom[b]] + 1

    def meet(self, a, b):
        """The nearest common dominator."""
        order, idom = self.order, self.idom
        while a != b:
            if order[a] > order[b]:
                a = idom[a]
            else:
                b = idom[b]
        return a

    def dominates(self, a, b) -> bool:
        """Every path to b passes a."""
        while self.depth[b] > self.depth[a]:
            b = self.idom[b]
        return a == b


def natural_loops(rpo, order, succ, preds, dominators) -> dict:
    """header -> labels of its loop.  Raises NotImplementedError for irreducible graphs."""
    loops: dict = {}
    for a in rpo:
        for h in succ[a]:
            if order[h] > order[a]:
                continue
            if not dominators.dominates(h, a):
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
    tree = Dominators(rpo, order, preds)
    flow.loops = natural_loops(rpo, order, succ, preds, tree)
    flow.joins = {b: [] for b in rpo}
    for m in rpo[1:]:
        if len(preds[m]) > 1 and sum(not tree.dominates(m, p) for p in preds[m]) > 1:
            flow.joins[tree.idom[m]].append(m)
    flow.after = {h: [e for e in rpo[1:] if e not in inside
                      and (any(p in inside for p in preds[e]) or tree.idom[e] in inside)]
                  for h, inside in flow.loops.items()}
    return flow


def backbone(succ: dict) -> set:
    """Labels that every path from the entry to an end passes once, all smaller labels before them."""
    labels = sorted(succ)
    place = {b: k for k, b in enumerate(labels)}
    entered = [0] * (len(labels) + 1)       # backward edges over a place: those that start, less those that end
    for a, targets in succ.items():
        for t in targets:
            if t <= a:
                entered[place[t]] += 1
                entered[place[a] + 1] -= 1
    found, reach, inside = set(), 0, 0
    for k, b in enumerate(labels):
        inside += entered[k]
        if reach <= k and not inside:
            found.add(b)
        if not succ[b]:
            break
        reach = max(reach, *[place[t] for t in succ[b]])
    return found


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
