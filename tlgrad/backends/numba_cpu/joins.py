"""Arrays joined or padded along their first axis: each part is a block of the result, so what makes a part
writes it where it will lie, and nothing is copied."""
from __future__ import annotations

from math import prod
from typing import NamedTuple

from tlgrad.core.jaxpr import Eqn, Var
from tlgrad.passes.groups import Grouping


class Part(NamedTuple):
    """Where a variable lies: in `result`, from entry number `start` on."""

    result: Var
    start: int


def can_join(eqn: Eqn) -> bool:
    """True when every operand of a concatenation, or of a pad, is one block of the result."""
    name, p = eqn.prim.name, eqn.params
    if name not in ("concatenate", "pad") or not eqn.outs[0].aval.size or eqn.outs[0].aval.dtype.software:
        return False
    shape = eqn.outs[0].aval.shape
    if name == "concatenate":
        axis = p["axis"]
    else:
        wide = [k for k, widths in enumerate(zip(p["low"], p["high"], p["interior"])) if any(widths)]
        axis = wide[0] if wide else 0
        if len(wide) > 1 or any(p["interior"]):
            return False
    return prod(shape[:axis]) == 1


def starts(eqn: Eqn) -> list[int]:
    """The first entry of each operand in the result."""
    if eqn.prim.name == "pad":
        shape = eqn.outs[0].aval.shape
        return [sum(low * prod(shape[k + 1:]) for k, low in enumerate(eqn.params["low"]))]
    sizes = [a.aval.size for a in eqn.ins]
    return [sum(sizes[:k]) for k in range(len(sizes))]


def parts_in_place(grouping: Grouping) -> dict[Var, Part]:
    """The variables that are made where they will lie.  A result of the program has memory of its own."""
    results = {grouping.view(a).root for a in grouping.jaxpr.outs}
    found: dict[Var, Part] = {}
    for step in grouping.steps:
        eqn = step.eqns[0]
        if step.kind == "host" and can_join(eqn):
            for atom, start in zip(eqn.ins, starts(eqn)):
                view = grouping.view(atom)
                if view.root in grouping.maker and view.whole and view.root not in results:
                    found.setdefault(view.root, Part(eqn.outs[0], start))
    return found


class Joins:
    """The parts of a plan that lie in joined arrays: `placed` are the names that a part was given there."""

    def __init__(self, plan):
        self.plan, self.parts = plan, parts_in_place(plan.grouping)
        self.placed: dict[Var, str] = {}

    def room(self, var: Var) -> str:
        """A name for the memory of a variable: its place in a joined array, or memory of its own."""
        plan, part = self.plan, self.parts.get(var)
        if part is None:
            return plan.new(var.aval)
        self.placed[var] = plan.bind(self.window(part, var.aval.shape))
        return self.placed[var]

    def window(self, part: Part, shape) -> str:
        """An expression for a block of a joined array."""
        plan, dtype = self.plan, part.result.aval.dtype.storage
        if part.result not in plan.names:
            plan.names[part.result] = self.room(part.result)
        return (f"ndarray({plan.constant(shape, 's')}, {plan.constant(dtype, 'd')}, {plan.names[part.result]}, "
                f"{part.start * dtype.itemsize})")

    def join(self, eqn: Eqn):
        """The lines that complete a joined array: parts that lie elsewhere, and the border of a pad."""
        plan, out = self.plan, eqn.outs[0]
        for atom, start in zip(eqn.ins, starts(eqn)):
            part, view = Part(out, start), plan.grouping.view(atom)
            there = self.parts.get(view.root) == part and plan.names.get(view.root) == self.placed.get(view.root)
            if not there and atom.aval.size:
                plan.lines.append(f"{self.window(part, atom.aval.shape)}[...] = {plan.array(view)}")
        if eqn.prim.name == "pad":
            first, = starts(eqn)
            last = first + eqn.ins[0].aval.size
            for start, size in ((0, first), (last, out.aval.size - last)):
                if size:
                    value = plan.array(plan.grouping.view(eqn.ins[1]))
                    plan.lines.append(f"{self.window(Part(out, start), (size,))}[...] = {value}")
