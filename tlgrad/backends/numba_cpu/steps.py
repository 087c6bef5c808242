"""How a step of a program is done: by a kernel made for it, by one that is at hand, or by its primitive."""
from __future__ import annotations

from tlgrad.backends.numba_cpu.contraction import can_contract
from tlgrad.backends.numba_cpu.joins import can_join
from tlgrad.backends.numba_cpu.places import can_place
from tlgrad.backends.numba_cpu.sums import can_sum
from tlgrad.passes.groups import Step, rows_last

#: entries of an array without operands (iota) that a plan may hold
KEPT = 1 << 16
#: entries from which the nest for sums is worth its turns
LONG = 1 << 12


def sums_alone(step: Step) -> bool:
    """True for a long reduction and nothing else that keeps an axis, and whose terms are not the rows:
    the nest for sums streams several rows at once."""
    eqn = step.eqns[0]
    return (len(step.eqns) == 1 and not step.uniforms and eqn.prim.kind == "reduction" and can_sum(eqn)
            and eqn.ins[0].aval.size >= LONG and bool(step.reduced)
            and len(step.reduced) < len(step.space) and rows_last(step.space, step.reduced) is False)


def work_of(run: list[Step]) -> str:
    """How a run of steps is done: one kernel made for it, or one that is at hand."""
    step, eqn = run[0], run[0].eqns[0]
    if len(run) > 1:
        return "chain"
    if step.kind == "group" and not sums_alone(step):
        return "kernel"
    return ("contraction" if can_contract(eqn) else "sum" if can_sum(eqn) else "rows" if can_place(eqn)
            else "join" if can_join(eqn) else "primitive")


def runs_primitive(step: Step) -> bool:
    """True for a step that no kernel does: its primitive runs, and may raise."""
    eqn = step.eqns[0]
    return step.kind == "host" and bool(eqn.ins) and not (
        can_contract(eqn) or can_sum(eqn) or can_join(eqn))


def is_constant(eqn) -> bool:
    """True for an array without operands that a plan holds."""
    return not eqn.ins and not eqn.prim.multiple and eqn.outs[0].aval.size <= KEPT
