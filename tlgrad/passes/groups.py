"""Fusion groups: the steps of a program.

    group   equations entry by entry over one index space, with the reductions over it
    host    one equation that runs through its primitive

An equation joins the group that makes one of its operands, or that reads one of them, when both
have one index space (the shape without axes of size 1) and no step between them depends on that
group; groups that meet in an equation become one.  Views (`tlgrad.passes.views`) are not steps.
"""
from __future__ import annotations

from itertools import islice
from math import prod
from typing import Callable

from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, Var
from tlgrad.passes.views import View, follow, squeezed, view_of


#: instructions on single numbers that may be computed again instead of being read
SHORT = 24
#: instructions in the body of a reduction along rows, and in one operation of it
ROW_BODY, ROW_OPERATION = 200, 40
#: latest readers of a value that an equation may join
NEAR = 8
#: index spaces of single numbers, and of arrays of one entry
NUMBER = (), (1,)


class Step:
    """One unit of work.  `reads` and `writes` are roots; `deps` are the steps it waits for."""

    __slots__ = ("kind", "space", "eqns", "places", "deps", "order", "reduced", "finals", "weight", "into",
                 "uniforms", "turned")

    def __init__(self, kind: str, order: int, space=()):
        self.kind, self.order, self.space = kind, order, space
        self.eqns: list[Eqn] = []
        self.places: list[int] = []
        #: the step that this one was merged into
        self.into: Step | None = None
        self.deps: set[Step] = set()
        #: axes of the space that its reductions run over, when it has any
        self.reduced: tuple[int, ...] | None = None
        #: results of its reductions: known only when the pass is over
        self.finals: set[Var] = set()
        self.weight = 0
        #: equations on single numbers that are computed again here instead of being read
        self.uniforms: list[Eqn] = []
        #: it has loops that read or write an array turn by turn
        self.turned = False

    @property
    def partly(self) -> bool:
        """Its reductions keep an axis."""
        return self.reduced is not None and len(self.reduced) < len(self.space)

    @property
    def repeats(self) -> bool:
        """Its body runs for several rows side by side, so it must stay short."""
        return self.reduced is not None and rows_last(self.space, self.reduced) is True


class Grouping:
    """The steps of a jaxpr in order of execution, and the view that each variable is."""

    def __init__(self, jaxpr: Jaxpr, compilable: Callable[[Eqn], bool], cost: Callable[[str], int],
                 kinds: dict[str, str] | None = None):
        self.jaxpr, self.compilable, self.cost = jaxpr, compilable, cost
        self.kinds = kinds or {}
        self.views: dict[Var, View] = {v: view_of(v) for v in jaxpr.in_binders}
        self.maker: dict[Var, Step] = {}
        self.readers: dict[Var, dict[Step, None]] = {}
        steps: list[Step] = []
        for number, eqn in enumerate(jaxpr.eqns):
            step = self.place(eqn, number)
            if step is not None and step.order == number:
                steps.append(step)
        steps = [s for s in steps if s.into is None]
        self.maker = {v: found(s) for v, s in self.maker.items()}
        self.steps = in_order(self.absorb(steps))

    def absorb(self, steps: list[Step]) -> list[Step]:
        """Short steps on single numbers are computed again by the groups that read them."""
        readers: dict[Step, set] = {}
        for step in steps:
            for eqn in step.eqns:
                for atom in eqn.ins:
                    maker = self.maker.get(self.view(atom).root)
                    if maker is not None and maker is not step:
                        readers.setdefault(maker, set()).add(step)
        stored = {self.maker.get(self.view(a).root) for a in self.jaxpr.outs}
        stored |= {self.maker.get(self.view(e.ins[k]).root)
                   for step in steps for e in step.eqns for k in whole_operands(e)}
        kept, gone = [], set()
        for step in steps:
            users = readers.get(step, ())
            if (step.kind != "group" or step.space not in NUMBER or step.finals or step.weight > SHORT
                    or step in stored or not users
                    or any(u.kind != "group" or u.space in ((), step.space) or u.repeats or u in gone
                           for u in users)):
                kept.append(step)
                continue
            gone.add(step)
            for user in users:
                user.uniforms += [e for e in (*step.uniforms, *step.eqns) if e not in user.uniforms]
                user.deps = {found(d) for d in user.deps if found(d) is not step} | {found(d) for d in step.deps}
        return kept

    def view(self, atom) -> View:
        """The view that an atom is; a literal is one of itself."""
        return view_of(atom) if type(atom) is Literal else self.views[atom]

    def place(self, eqn: Eqn, order: int) -> Step | None:
        """The step that the equation belongs to; None for a view."""
        views = [self.view(a) for a in eqn.ins]
        if len(views) == 1 and len(eqn.outs) == 1:
            view = follow(eqn, views[0])
            if view is not None:
                self.views[eqn.outs[0]] = view
                return None
        for var in eqn.outs:
            self.views[var] = view_of(var)
        roots = {v.root for v in views if type(v.root) is Var}
        makers = {found(self.maker[r]) for r in roots if r in self.maker}
        step = self.home(eqn, roots, makers, order) if self.compilable(eqn) else None
        if step is None:
            step = Step(self.kinds.get(eqn.prim.name, "host"), order)
        step.eqns.append(eqn)
        step.places.append(order)
        step.weight += self.cost(eqn.prim.name)
        if step.kind == "group":
            xs, ys = turn_arrays(eqn)
            step.turned |= bool(xs or ys)
            step.finals.update(eqn.outs if eqn.prim.kind == "reduction" else [eqn.outs[k] for k in ys])
        step.deps |= {found(m) for m in makers} - {step}
        self.maker.update(dict.fromkeys(eqn.outs, step))
        for r in roots:
            self.readers.setdefault(r, {})[step] = None
        return step

    def home(self, eqn: Eqn, roots, makers, order: int) -> Step | None:
        """An existing group that can take the equation, or a new one."""
        reduction = eqn.prim.kind == "reduction"
        space = index_space(eqn)
        axes = reduced_axes(eqn) if reduction else None
        near = {found(s) for r in roots for s in islice(reversed(self.readers.get(r, {})), NEAR)}
        for step in sorted(makers | near, key=lambda s: -s.order):
            if step.kind == "group" and step.space == space and self.fits(step, eqn, makers, axes):
                if reduction:
                    step.reduced = axes
                step.deps |= makers - {step}          # what the equation waits for counts in merging
                for other in sorted(makers - {step}, key=lambda s: -s.order):
                    if self.reads_entries(eqn, other):
                        self.merge(step, other)
                return step
        step = Step("group", order, space)
        step.reduced = axes
        return step

    def fits(self, step: Step, eqn: Eqn, makers, axes) -> bool:
        """True when the equation may be computed in the same pass as `step`."""
        if axes is not None and not self.same_reduction(step, axes):
            return False
        if step.repeats and (step.weight > ROW_BODY or self.cost(eqn.prim.name) > ROW_OPERATION):
            return False
        partial = step.partly if axes is None else len(axes) < len(step.space)
        if partial and (step.turned or any(turn_arrays(eqn))):
            return False
        return (self.reads_entries(eqn, step)
                and not any(m is not step and reaches(m, step) for m in makers))

    def same_reduction(self, step: Step, axes) -> bool:
        """Reductions of one step run over the same axes; a heavy body does not run along rows."""
        if step.reduced is not None:
            return step.reduced == axes
        return rows_last(step.space, axes) is not True or self.short_rows(step)

    def short_rows(self, step: Step, weight: int = 0) -> bool:
        """True when the equations of a step, and others of this weight, may be the body of rows."""
        return (step.weight + weight <= ROW_BODY
                and all(self.cost(e.prim.name) <= ROW_OPERATION for e in step.eqns))

    def reads_entries(self, eqn: Eqn, step: Step) -> bool:
        """True when the equation reads what `step` computes entry by entry, in the same place, if at all."""
        whole = whole_operands(eqn)
        for k, atom in enumerate(eqn.ins):
            view = self.view(atom)
            if self.made_by(view.root, step) and (
                    k in whole or view.root in step.finals or not (view.root is atom or view.whole)
                    or squeezed(view.shape) != step.space):
                return False
        return True

    def made_by(self, root, step: Step) -> bool:
        """True when the step computes this variable."""
        return root in self.maker and found(self.maker[root]) is step

    def merge(self, step: Step, other: Step):
        """Make two groups one, where that is one pass and leaves an order of steps."""
        if (other.kind != "group" or other.space != step.space or other.reduced or other.weight > 200
                or step.repeats and not self.short_rows(other, step.weight)
                or step.partly and other.turned):
            return
        if any(d is not b and reaches(d, b) for a, b in ((step, other), (other, step))
               for d in map(found, a.deps)):
            return
        if not self.reads_whole(step, other) or not self.reads_whole(other, step):
            return
        order = sorted(zip(step.places + other.places, step.eqns + other.eqns), key=lambda pair: pair[0])
        step.places, step.eqns = [p for p, _ in order], [e for _, e in order]
        step.weight += other.weight
        step.turned |= other.turned
        step.finals |= other.finals
        step.deps = {found(d) for d in step.deps | other.deps} - {step, other}
        other.into = step

    def reads_whole(self, step: Step, other: Step) -> bool:
        """True when `step` reads the values of `other` entry by entry, if at all."""
        if other not in set(map(found, step.deps)):
            return True
        views = [self.view(a) for eqn in step.eqns for a in eqn.ins]
        whole = {self.view(eqn.ins[k]).root for eqn in step.eqns for k in whole_operands(eqn)}
        return all(v.root not in whole | other.finals and v.whole and squeezed(v.shape) == step.space
                   for v in views if self.made_by(v.root, other))


def index_space(eqn: Eqn) -> tuple[int, ...]:
    """The axes that the entries of an equation lie on; those of the state, for a loop."""
    if eqn.prim.name != "sweeps":
        return squeezed((eqn.ins[0] if eqn.prim.kind == "reduction" else eqn.outs[0]).aval.shape)
    xs, ys = turn_arrays(eqn)
    shapes = [v.aval.shape[k in xs:] for k, v in enumerate(eqn.ins)]
    shapes += [v.aval.shape[k in ys:] for k, v in enumerate(eqn.outs)]
    return max(map(squeezed, shapes), key=len)


def turn_arrays(eqn: Eqn) -> tuple[set[int], set[int]]:
    """Numbers of the operands that a loop reads turn by turn, and of its results that it writes so."""
    if eqn.prim.name != "sweeps":
        return set(), set()
    p = eqn.params
    first = 1 + p["n_consts"]
    carries = sum(p["results"][:p["carries"][-1]])
    return set(range(first, first + p["n_xs"])), set(range(carries, len(eqn.outs)))


def whole_operands(eqn: Eqn) -> set[int]:
    """Numbers of the operands that are read as whole arrays: by every lane of a map, or turn by turn."""
    if eqn.prim.name == "sweeps":
        return turn_arrays(eqn)[0]
    if "mapped" not in eqn.params:
        return set()
    return {k for k, (a, m) in enumerate(zip(eqn.ins, eqn.params["mapped"])) if not m and a.aval.shape}


def reduced_axes(eqn: Eqn) -> tuple[int, ...]:
    """The axes of the index space that a reduction runs over."""
    shape, axes = eqn.ins[0].aval.shape, eqn.params["axes"]
    if prod(shape) == 1:
        return (0,) if axes else ()
    place = [k for k, n in enumerate(shape) if n != 1]
    return tuple(place.index(a) for a in axes if shape[a] != 1)


def rows_last(space, axes) -> bool | None:
    """True: the reduced axes are the last ones; False: the first ones; None: all or neither."""
    n = len(axes)
    if n == len(space):
        return None
    if axes == tuple(range(len(space) - n, len(space))):
        return True
    return False if axes == tuple(range(n)) else None


def found(step: Step) -> Step:
    """The step that a step has become by merging."""
    while step.into is not None:
        step = step.into
    return step


def reaches(start: Step, target: Step) -> bool:
    """True when `start` is, or waits for, `target`."""
    seen, stack = set(), [start]
    while stack:
        step = found(stack.pop())
        if step is target:
            return True
        if step not in seen:
            seen.add(step)
            stack.extend(step.deps)
    return False


def in_order(steps: list[Step]) -> list[Step]:
    """The steps with every one after those it waits for, otherwise as they were."""
    done: set[Step] = set()
    out: list[Step] = []

    def visit(root):
        stack = [(root, False)]
        while stack:
            step, ready = stack.pop()
            if step in done:
                continue
            if ready:
                done.add(step)
                out.append(step)
                continue
            stack.append((step, True))
            stack += [(d, False) for d in sorted(set(map(found, step.deps)), key=lambda s: -s.order)
                      if d not in done]
    for step in steps:
        visit(step)
    return out
