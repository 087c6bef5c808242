"""A compiled program beside the reference."""
import tlgrad as tl
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core.jaxpr import evaluate_arrays


def compiled(f, *args):
    """The plan of f for these arguments, after comparing its words with the reference."""
    values = [tl.tensor(a) for a in args]
    program = tl.make_jaxpr(f)(*values)
    arrays = [*[c.data for c in program.consts], *[v.data for v in values]]
    plan = Plan(program.jaxpr)
    for got, want in zip(plan.run(*arrays), evaluate_arrays(program.jaxpr, arrays), strict=True):
        assert tl.same_bits(got, want)
    return plan
