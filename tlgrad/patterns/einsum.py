"""einsum: products of named axes, summed over the names that the result does not have."""
from __future__ import annotations

from tlgrad.core.aval import make_aval
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError
from tlgrad.ops.contract_many import contract_labels
from tlgrad.ops.layout import reshape, zeros
from tlgrad.ops.orders import check_order
from tlgrad.ops.promote import common_dtype
from tlgrad.patterns.einsum_plan import EinsumPlan, plan_einsum
from tlgrad.patterns.messages import Fault, pattern_error
from tlgrad.patterns.transform import diagonals
from tlgrad.patterns.values import accumulator, cast, operand, result_dtype


def einsum(*args, order: str | None = None, **sizes: int) -> Value:
    """Multiply tensors along named axes and sum over the names that the result does not have.

    ``einsum(pattern, *tensors)``, or the pattern last.  Every operand is a list of names, separated by
    blanks; a name is one index wherever it occurs, twice in one operand is a diagonal, and axes of
    length 1 stretch to the length of their name.  ``...`` is the axes that are not named, right-aligned
    over the operands.  ``"ij,jk->ik"`` is read letter by letter, as NumPy reads it.  Lengths given by
    keyword are checked.

    Every entry of the result is ``((0+p0)+p1)+...`` with ``p = ((1*x0)*x1)*...``, over the summed names in
    the order in which they first occur, row-major: to the bit with order="ordered" (the default of a
    run); "fused" makes each step fma(x0*..., x_last, sum); "tree" adds the same products in one
    documented tree; "free" contracts in the cheapest order.  No array of all products is made.

    Operands meet in their common dtype.  Integers and bool are added up, and returned, as 64-bit
    integers; floats of at most 16 bits accumulate in float32 and round once: the dtype of the result
    depends on those of the operands only.  Raises PatternError, with a caret.

    >>> a, b = tl.tensor([[1, 2, 3], [4, 5, 6]]), tl.tensor([[1, 2], [3, 4], [5, 6]])
    >>> einsum("row feature, feature output -> row output", a, b).tolist()
    [[22, 28], [49, 64]]
    >>> einsum("row feature, row feature -> row", a, a).tolist()
    [14, 77]
    """
    pattern, tensors = _split_arguments(args)
    order = check_order(order)
    try:
        values = [operand(x) for x in tensors]
        plan = plan_einsum(pattern, tuple([v.aval.shape for v in values]), order == "free", sizes)
    except Fault as fault:
        described = [(f"operand {k}", getattr(x, "shape", ())) for k, x in enumerate(tensors)]
        raise pattern_error("einsum", pattern, fault, described, sizes) from None
    return run_plan(plan, values, order)


def _split_arguments(args):
    """(pattern, tensors): the one text among the arguments is first or last."""
    for k in (0, -1):
        if args and isinstance(args[k], str):
            return args[k], args[1:] if k == 0 else args[:-1]
    raise ArgumentError("einsum: the first or the last argument is the pattern, e.g. "
                        'einsum("row column, column -> row", matrix, vector); got '
                        f"{[type(a).__name__ for a in args]}")


def run_plan(plan: EinsumPlan, values, order: str) -> Value:
    """The contraction of a plan."""
    dtype, _ = common_dtype(values)
    wider, result = accumulator(dtype), result_dtype(dtype)
    if not plan.steps:
        return zeros(make_aval(plan.shape, result))
    wide = []
    for x, spec in zip(values, plan.operands, strict=True):
        x = diagonals(cast(cast(x, dtype), wider), spec.diagonals)
        wide.append(x if spec.squeezed is None else reshape.bind(x, shape=spec.squeezed))
    for step in plan.steps:
        taken = [wide[k] for k in step.positions]
        wide = [x for k, x in enumerate(wide) if k not in step.positions]
        wide.append(contract_labels(taken, step.labels, step.out, step.summed, order))
    return cast(wide[0], result)
