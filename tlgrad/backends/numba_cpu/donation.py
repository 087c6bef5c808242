"""Which results of a kernel are written into the memory of inputs that the caller gave up."""
from __future__ import annotations

from tlgrad.codegen.intrinsics import FAULTY
from tlgrad.codegen.lowering import Lowered
from tlgrad.core.jaxpr import Var
from tlgrad.passes.groups import Grouping, Step
from tlgrad.passes.views import row_major


#: what lowers to kernels that say when a lane cannot go on
_FAULTY = {*FAULTY, "map", "sweeps", "while", "cond", "read"}


def may_fail(step: Step) -> bool:
    """True when a lane of the step may be unable to go on: the program is then run once more by its
    primitives, which read the inputs."""
    return any(eqn.prim.name in _FAULTY for eqn in step.eqns)


def donation(grouping: Grouping, step: Step, lowered: Lowered, donated: set[Var]) -> dict[Var, Var]:
    """Result -> input with the same number of entries of the same dtype, which this step is the last to
    read, and which every lane reads only where it writes."""
    if lowered.kernel.nest != "lanes":
        return {}
    free = [v for v in donated if _read_in_place(lowered, v) and not _read_later(grouping, step, v)]
    found = {}
    for var, out in zip(lowered.outs, lowered.kernel.outputs):
        match = next((v for v in free if out.mode == "store" and v.aval.dtype is var.aval.dtype
                      and v.aval.size == var.aval.size), None)
        if match is not None and var.aval.shape == match.aval.shape:
            found[var] = match
            free.remove(match)
    return found


def _read_in_place(lowered: Lowered, var: Var) -> bool:
    """True when the kernel reads the input, and each lane its own entry only."""
    reads = [o for o in lowered.inputs if o.root is var]
    return bool(reads) and all(not o.copied and o.view.offset == 0 and o.strides == row_major(lowered.sizes)
                               for o in reads)


def _read_later(grouping: Grouping, step: Step, var: Var) -> bool:
    """True when a later step, or a result of the program, is made of the input."""
    later = grouping.steps[grouping.steps.index(step) + 1:]
    atoms = [a for s in later for eqn in (*s.uniforms, *s.eqns) for a in eqn.ins]
    return any(grouping.view(a).root is var for a in (*atoms, *grouping.jaxpr.outs))
