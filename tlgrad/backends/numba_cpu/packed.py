"""Runs of arithmetic in a software format, each as one kernel: values stay in packed form between the
operations instead of going through arrays.

A run is made of neighbouring steps of a plan: one equation each, entry by entry, in one format and shape.
"""
from __future__ import annotations

from math import prod

from tlgrad.core.jaxpr import Eqn, Var
from tlgrad.kernels.softfloat.catalogue import CHAINED
from tlgrad.passes.groups import Grouping, Step
from tlgrad.softfloat import fast, small
from tlgrad.softfloat.format import Binary

#: equations in a kernel: more of them would not stay in registers
LONGEST = 16


def in_runs(grouping: Grouping) -> list[list[Step]]:
    """The steps of a program, neighbours that can be one kernel together."""
    runs: list[list[Step]] = []
    last = None
    for step in grouping.steps:
        kind = _kind(step)
        if (kind is None or kind != last or len(runs[-1]) == LONGEST
                or not _reads_whole(grouping, step, runs[-1])):
            runs.append([step])
        else:
            runs[-1].append(step)
        last = kind
    return runs


def _kind(step: Step) -> tuple[Binary, tuple] | None:
    """The format and shape of a step that a run may have."""
    eqn = step.eqns[0]
    if step.kind != "host" or len(eqn.outs) != 1:
        return None
    aval = eqn.outs[0].aval
    fmt = aval.dtype.format
    if (aval.dtype.kind != "f" or not aval.dtype.software or not aval.shape or not fast.covers(fmt)
            or small.fits(fmt)):
        return None
    return (fmt, aval.shape) if _steps_of(eqn) and all(a.aval.dtype is aval.dtype for a in eqn.ins) else None


def _steps_of(eqn: Eqn) -> list[tuple] | None:
    """The operations of an equation: names, and operands as numbers from 0 (and -1, -2: the last, ...)."""
    name, arity = eqn.prim.name, range(len(eqn.ins))
    if name == "integer_pow" and 2 <= eqn.params["n"] <= 4:
        square = ("mul", 0, 0)
        return {2: [square], 3: [square, ("mul", 0, -1)], 4: [square, ("mul", -1, -1)]}[eqn.params["n"]]
    if eqn.prim.lower and eqn.prim.lower[0] == "elementwise" and eqn.prim.lower[1] in CHAINED and not eqn.params:
        return [(eqn.prim.lower[1], *arity)]
    return None


def _reads_whole(grouping, step, run) -> bool:
    """Whether the step reads what the run makes entry by entry, if at all."""
    made = {e.outs[0] for s in run for e in s.eqns}
    views = [grouping.view(a) for a in step.eqns[0].ins]
    return all(v.whole and v.shape == v.root.aval.shape for v in views if v.root in made)


class Chain:
    """A run as `softfloat.array.evaluate_chain` takes it: `steps`, `uniform`, `outs`; `views` are its inputs
    and `results` the variables that others read."""

    def __init__(self, grouping: Grouping, run: list[Step]):
        self.grouping, self.views, self.uniform = grouping, {}, []
        eqns = [step.eqns[0] for step in run]
        made = {eqn.outs[0] for eqn in eqns}
        for eqn in eqns:
            for atom in eqn.ins:
                view = grouping.view(atom)
                if view.root not in made and view not in self.views:
                    self.views[view] = len(self.views)
                    self.uniform.append(prod(view.shape) == 1 or not any(view.on_space()))
        self.steps, self.numbers = [], {}
        for eqn in eqns:
            self._equation(eqn)
        self.format = eqns[0].outs[0].aval.dtype.format
        self.results = [v for v in self.numbers if self._is_read(v, run)]
        self.outs = tuple(self.numbers[v] for v in self.results)

    def _equation(self, eqn):
        operands = [self._number(self.grouping.view(a)) for a in eqn.ins]
        for name, *places in _steps_of(eqn):
            count = len(self.views) + len(self.steps)
            self.steps.append((name, *[operands[p] if p >= 0 else count + p for p in places]))
        self.numbers[eqn.outs[0]] = len(self.views) + len(self.steps) - 1

    def _number(self, view) -> int:
        return self.numbers[view.root] if view.root in self.numbers else self.views[view]

    def _is_read(self, var: Var, run) -> bool:
        """Whether a step outside of the run, or the program's result, reads a variable."""
        g = self.grouping
        return any(g.view(a).root is var for a in g.jaxpr.outs) or any(
            g.view(a).root is var for step in g.steps if step not in run
            for eqn in (*step.uniforms, *step.eqns) for a in eqn.ins)
