"""Runs of operations on software formats, each as one kernel: values stay in packed form between the
operations instead of going through arrays.

A run has steps of a plan that work entry by entry in one shape: arithmetic, comparisons, choices,
elementary functions that have kernels, and conversions, in one format computed on words, or in small
formats, which a hardware number stands in for; with the logic of masks, and binary64 to convert from and
to. Contractions, reductions, gathers and functions without a kernel end it for what depends on them: a
later step joins a run if it waits for no step in between.
"""
from __future__ import annotations

from math import prod

from tlgrad.core.dtypes import bfloat16
from tlgrad.core.jaxpr import Eqn, Var
from tlgrad.kernels.elementary import FUNCTIONS as ELEMENTARY
from tlgrad.kernels.later import Later
from tlgrad.passes.groups import Grouping, Step, found
from tlgrad.softfloat import fast, small
from tlgrad.softfloat.chained import MASK
from tlgrad.softfloat.fast import chained
from tlgrad.softfloat.format import Binary, binary64, binary128

ordering = Later("tlgrad.kernels.softfloat.ordering")
#: equations in a kernel: more of them would not stay in registers
LONGEST = 24
#: steps after the first of a run that may join it
NEAR = 64
#: the powers that are written out
POWERS = range(2, 17)


def in_runs(grouping: Grouping) -> list[list[Step]]:
    """The steps of a program in an order of execution, those together that can be one kernel."""
    runs: list[list[Step]] = []
    taken: set[Step] = set()
    for k, first in enumerate(grouping.steps):
        if first not in taken:
            later = [s for s in grouping.steps[k + 1:k + 1 + NEAR] if s not in taken]
            runs.append(_run_from(grouping, first, later))
            taken.update(runs[-1])
    return runs


def _run_from(grouping, first, later):
    """The run that a step begins."""
    run, family, others = [first], _family(first), set()
    if family in (None, MASK):
        return run
    for step in later:
        waits = not others.isdisjoint(map(found, step.deps))
        if (not waits and sum(len(s.eqns) for s in run) + len(step.eqns) <= LONGEST
                and _may_join(grouping, step, first, run, family)):
            run.append(step)
        else:
            others.add(step)
    return run


def _may_join(grouping, step, first, run, family) -> bool:
    mine = _family(step)
    if mine not in (family, MASK) or step.eqns[0].outs[0].aval.shape != first.eqns[0].outs[0].aval.shape:
        return False
    return _reads_whole(grouping, step, run) and (mine is not MASK or not {*run}.isdisjoint(map(found, step.deps)))


def _family(step: Step) -> Binary | str | None:
    """What a run with this step computes: a wide format, "small" ones, only masks; None: no run has it."""
    eqn = step.eqns[0]
    if step.kind == "group":
        logic = all(all(a.aval.dtype.kind == "b" for a in (*e.ins, *e.outs)) and e.prim.name in fast.chains.LOGIC
                    and e.outs[0].aval.shape == eqn.outs[0].aval.shape for e in step.eqns)
        return MASK if logic and not step.uniforms and step.reduced is None else None
    if step.kind != "host" or len(eqn.outs) != 1 or not eqn.outs[0].aval.shape or not _steps_of(eqn):
        return None
    formats = {a.aval.dtype.format for a in (*eqn.ins, *eqn.outs) if a.aval.dtype.kind != "b"}
    computed = formats - {binary64}
    if not all(map(chained, computed)):
        return None
    if all(map(small.fits, computed)):
        return "small"
    return computed.pop() if len(computed) == 1 else None


def _kind(atom) -> Binary | str:
    """What a chain calls the numbers of an atom."""
    return MASK if atom.aval.dtype.kind == "b" else atom.aval.dtype.format


def _steps_of(eqn: Eqn) -> list[tuple] | None:
    """The operations of an equation: names, and operands as numbers from 0 (and -1, -2: the last, ...)."""
    if not eqn.prim.lower or eqn.prim.lower[0] != "elementwise" or any(
            a.aval.dtype.kind not in "fb" for a in (*eqn.ins, *eqn.outs)):
        return None
    name, arity, result = eqn.prim.lower[1], range(len(eqn.ins)), eqn.outs[0].aval.dtype
    if name == "convert":
        return [(name, 0)] if "b" not in (eqn.ins[0].aval.dtype.kind, result.kind) else None
    if eqn.prim.name == "integer_pow":                            # bfloat16 rounds the power once
        return _squarings(eqn.params["n"]) if eqn.params["n"] in POWERS and result is not bfloat16 else None
    numbers = {a.aval.dtype for a in eqn.ins[name == "select":]}
    if eqn.params or len(numbers) != 1 or not numbers.pop().software:
        return None
    return [(name, *arity)] if name in _names(result) else None


def _names(result):
    """The operations with results of a dtype that a run may have."""
    if result.kind == "b":
        return ordering.PREDICATES
    if result is bfloat16:
        return {**fast.narrow.OPERATIONS, **ordering.CHOICES,
                **{n: a for n, a in fast.carried.FUNCTIONS.items() if ELEMENTARY[n].rounded}}
    if small.fits(result.format):
        return {**fast.narrow.OPERATIONS, **ordering.CHOICES, **fast.carried.FUNCTIONS}
    functions = fast.catalogue.FUNCTIONS if result.format is binary128 else {}
    return {**fast.catalogue.ARITHMETIC, **ordering.CHOICES, **functions}


def _squarings(n):
    """x**n in the order that `integer_pow` states."""
    steps, result, power = [], None, 0
    while n:
        if n & 1:
            if result is not None:
                steps.append(("mul", result, power))
            result = power if result is None else len(steps)
        n >>= 1
        if n:
            steps.append(("mul", power, power))
            power = len(steps)
    return [(name, *(p and p - 1 - k for p in places)) for k, (name, *places) in enumerate(steps)]


def _reads_whole(grouping, step, run) -> bool:
    """Whether the step reads what the run makes entry by entry, if at all."""
    made = {e.outs[0] for s in run for e in s.eqns}
    views = [grouping.view(a) for eqn in step.eqns for a in eqn.ins]
    return all(v.whole and v.shape == v.root.aval.shape for v in views if v.root in made)


class Chain:
    """A run as `softfloat.chained.Chained` takes it: `kinds`, `steps`, `uniform`, `outs`; `views` are its
    inputs and `results` the variables that others read."""

    def __init__(self, grouping: Grouping, run: list[Step]):
        self.grouping, self.views, self.uniform, self.kinds = grouping, {}, [], []
        eqns = [eqn for step in run for eqn in step.eqns]
        made = {eqn.outs[0] for eqn in eqns}
        for eqn in eqns:
            for atom in eqn.ins:
                view = grouping.view(atom)
                if view.root not in made and view not in self.views:
                    self.views[view] = len(self.views)
                    self.uniform.append(prod(view.shape) == 1 or not any(view.on_space()))
                    self.kinds.append(_kind(atom))
        self.steps, self.numbers = [], {}
        for eqn in eqns:
            self._equation(eqn)
        self.results = [v for v in self.numbers if self._is_read(v, run)]
        self.outs = tuple(self.numbers[v] for v in self.results)

    def _equation(self, eqn):
        operands = [self._number(self.grouping.view(a)) for a in eqn.ins]
        for name, *places in _steps_of(eqn) or [(eqn.prim.name, *range(len(eqn.ins)))]:
            count = len(self.views) + len(self.steps)
            self.steps.append((name, _kind(eqn.outs[0]), *[operands[p] if p >= 0 else count + p for p in places]))
        self.numbers[eqn.outs[0]] = len(self.views) + len(self.steps) - 1

    def _number(self, view) -> int:
        return self.numbers[view.root] if view.root in self.numbers else self.views[view]

    def _is_read(self, var: Var, run) -> bool:
        """Whether a step outside of the run, or the program's result, reads a variable."""
        g = self.grouping
        return any(g.view(a).root is var for a in g.jaxpr.outs) or any(
            g.view(a).root is var for step in g.steps if step not in run
            for eqn in (*step.uniforms, *step.eqns) for a in eqn.ins)
