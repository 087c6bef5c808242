"""explain: what a pattern computes, in words, in a picture, with its cost."""
from __future__ import annotations

from math import prod
from typing import NamedTuple

from tlgrad.errors import ArgumentError
from tlgrad.ops.contract_many import as_pair
from tlgrad.ops.orders import check_order
from tlgrad.patterns.einsum_plan import EinsumPlan, expanded_terms, plan_einsum, product_count
from tlgrad.patterns.letters import read_einsum
from tlgrad.patterns.messages import Fault, pattern_error
from tlgrad.patterns.parse import ELLIPSIS, parse_einsum, parse_transform
from tlgrad.patterns.picture import draw
from tlgrad.patterns.plan import Plan, plan_transform


class Axis(NamedTuple):
    """A name: its length, the operands that have it, and what becomes of it (kept, summed, removed)."""
    name: str
    length: int
    operands: tuple[int, ...]
    fate: str


class Explanation:
    """Prints as text; a notebook shows the picture.  `axes`, `shape` and `text` hold the parts."""

    def __init__(self, title, pattern, axes, operands, result, shape, lines):
        self.title, self.pattern, self.axes, self.shape = title, pattern, axes, shape
        self.operands, self.result = operands, result
        self.text = "\n".join([f"{title}: {' '.join(pattern.split())}", *_axis_table(axes, operands), *lines])

    @property
    def lengths(self) -> dict[str, int]:
        """The length of every name."""
        return {a.name: a.length for a in self.axes}

    def __repr__(self):
        return self.text

    def _repr_svg_(self):
        return draw(self)


def explain(pattern: str, *operands, by: str | None = None, order: str | None = None,
            **sizes: int) -> Explanation:
    """Say what a pattern does: which axes meet, which survive, the loop it stands for, its cost.

    operands: tensors or shapes; none where keywords give every length.  A pattern with one operand is
    explained as rearrange, expand, or (when names disappear) as reduce `by` ("sum").  The result
    prints as text and shows as a picture (SVG) in notebooks.  Raises PatternError like the function
    that it explains.

    >>> print(explain("row feature, feature output -> row output", row=2, feature=3, output=2))
    einsum: row feature, feature output -> row output
      row      2  operand 0       kept
      feature  3  operands 0, 1   summed
      output   2  operand 1       kept
      result (2, 2), order ordered:
        for row, output:
            y = 0
            for feature: y = y + x0[row, feature] * x1[feature, output]
      12 products, 12 additions; 12 entries read, 4 written
      one dot_general; an array of all products (12 entries) is not made
    """
    if not isinstance(pattern, str):
        raise ArgumentError(f"explain: the pattern comes first, as text; got {type(pattern).__name__}")
    shapes = tuple(tuple(x.shape if hasattr(x, "shape") else x) for x in operands)
    order = check_order(order)
    try:
        if "," in pattern or len(shapes) > 1 or not _is_transform(pattern):
            return _einsum(pattern, shapes, order, sizes)
        return _transform(pattern, shapes, by, order, sizes)
    except Fault as fault:
        described = [(f"operand {k}", s) for k, s in enumerate(shapes)]
        raise pattern_error("explain", pattern, fault, described, sizes) from None


def _is_transform(pattern) -> bool:
    """False for a diagonal, and for letters in a row without an arrow."""
    if "->" not in pattern:
        return False
    names = [n for n in parse_transform(pattern, True).left_names if type(n) is str]
    return len(set(names)) == len(names)


def _axis_table(axes, operands):
    if not axes:
        return []
    wide, digits = max(len(a.name) for a in axes), max(len(str(a.length)) for a in axes)
    where = [_where(a, operands) for a in axes]
    column = max(map(len, where))
    return [f"  {a.name:<{wide}}  {a.length:>{digits}}  {w:<{column}}   {a.fate}" for a, w in zip(axes,
        where)]


def _where(axis, operands):
    if not axis.operands:
        return "new"
    if len(operands) == 1:
        return "input"
    return f"operand{'s' if len(axis.operands) > 1 else ''} {', '.join(map(str, axis.operands))}"


# ---- einsum ----

def _einsum(pattern, shapes, order, sizes):
    if not shapes:
        shapes = tuple(tuple(_given(pattern, n, sizes) for n in term) for term in parse_einsum(pattern).terms)
    plan = plan_einsum(pattern, shapes, order == "free", sizes)
    terms, _ = expanded_terms(pattern, read_einsum(pattern, tuple(map(len, shapes))), shapes)
    axes = [Axis(name, plan.sizes[name], tuple(i for i, t in enumerate(terms) if name in t),
                 "kept" if k in plan.out else "summed") for k, name in enumerate(plan.names)]
    out = tuple(plan.names[k] for k in plan.out)
    lines = [f"  result {plan.shape}, order {order}:", *_loop(plan, terms, shapes, order),
             *_cost(plan, shapes, order)]
    return Explanation("einsum", pattern, axes, terms, out, plan.shape, lines)


def _given(pattern, name, sizes):
    if name is ELLIPSIS or name not in sizes:
        raise Fault(f"the length of {name!r} is not known: give a tensor, a shape, or {name}=...")
    return sizes[name]


def _loop(plan: EinsumPlan, terms, shapes, order):
    """The loop that defines every entry (that of order="free" is only one of many)."""
    out, summed = ([plan.names[k] for k in group] for group in (plan.out, plan.summed))
    factors = [f"x{i}[{', '.join(n if plan.sizes[n] == m else '0' for n, m in zip(t, shape))}]"
               for i, (t, shape) in enumerate(zip(terms, shapes))]
    if order == "fused" and len(factors) > 1:
        step = f"fma({' * '.join(factors[:-1])}, {factors[-1]}, y)"
    else:
        step = f"y + {' * '.join(factors)}"
    pad = "    " + ("    " if out else "")
    lines = [f"    for {', '.join(out)}:"] if out else []
    lines.append(f"{pad}y = 0")
    lines.append(f"{pad}for {', '.join(summed)}: y = {step}" if summed else f"{pad}y = {step}")
    if order == "tree":
        lines.append("    with the additions in the documented tree (leaves of 128 terms, then pairs)")
    return lines


def _cost(plan: EinsumPlan, shapes, order):
    n, read, written = product_count(plan), sum(map(prod, shapes)), prod(plan.shape)
    if not plan.steps:
        return ["  no work: " + ("the result has no entries" if not written else "there are no terms; all zeros")]
    many = max(len(s.positions) for s in plan.steps) > 1
    factors = f" of {len(shapes)} factors" if len(plan.steps) == 1 and len(shapes) > 2 else ""
    work = f"{n} products{factors}, " if many else ""
    lines = [f"  {work}{n} additions; {read} entries read, {written} written"]
    for step in plan.steps if len(plan.steps) > 1 else ():
        names = [plan.names[k] for k in step.out]
        lines.append(f"    contract {step.positions} -> {' '.join(names)}: "
                     f"{prod(plan.sizes[a] for a in names)} entries")
    if len(plan.steps) > 1:
        return lines
    what = f"an array of all products ({n} entries) is not made" if many else "the operand is read once"
    return [*lines, f"  one {_primitive(plan.steps[0], order)}; {what}"]


def _primitive(step, order):
    if len(step.positions) == 1:
        return "reduce_sum" if step.summed else "addition of +0"
    if len(step.positions) == 2 and (order == "free" or as_pair(*step.labels, step.out, step.summed)):
        return "dot_general"
    return f"contract of {len(step.positions)} operands"


# ---- rearrange, expand, reduce ----

def _transform(pattern, shapes, by, order, sizes):
    syntax = parse_transform(pattern, True)
    left, right = ({n for n in side if type(n) is str} for side in (syntax.left_names, syntax.right_names))
    numbers = [any(type(n) is int for n in side) for side in (syntax.left_names, syntax.right_names)]
    grows = "expand" if right - left or numbers[1] else "rearrange"
    kind = "reduce" if by or left - right or numbers[0] else grows
    if not shapes:
        shapes = (tuple(prod(n if type(n) is int else _given(pattern, n, sizes) for n in group)
                        for group in syntax.left),)
    plan = plan_transform(kind, pattern, shapes[0], sizes)
    by = by or "sum"
    names = list(plan.sizes)
    old = [n for n in names if n in left or n.startswith(ELLIPSIS)]
    kept = [n for n in names if n in right or n.startswith(ELLIPSIS) and ELLIPSIS in right]
    axes = [Axis(n, plan.sizes[n], (0,) if n in old else (), "kept" if n in kept else "removed")
            for n in names]
    lines = [f"  {shapes[0]} -> {final_shape(plan, shapes[0])}", *_steps(plan, shapes[0], kind, by, order)]
    return Explanation(f"{kind} by {by}" if kind == "reduce" else kind, pattern, axes, [tuple(old)],
                       tuple(kept), final_shape(plan, shapes[0]), lines)


def final_shape(plan: Plan, shape):
    """The shape that a plan gives."""
    if plan.merge is not None:
        return plan.merge
    if plan.broadcast is not None:
        return plan.broadcast[0]
    shape = plan.split or shape
    doubled = {a for group in plan.diagonals for a in group[1:]}
    shape = tuple(n for k, n in enumerate(shape) if k not in doubled)
    shape = tuple(n for k, n in enumerate(shape) if k not in plan.reduced)
    return tuple(shape[k] for k in plan.perm) if plan.perm is not None else shape


def _steps(plan: Plan, shape, kind, by, order):
    lines = []
    if plan.split is not None:
        lines.append(f"  split into {plan.split}: a view")
    if plan.reduced:
        lines.append(f"  {by} of {plan.terms} entries along axes {plan.reduced}, the last fastest"
                     + (f", order {order}" if by in ("sum", "mean") else ""))
    if plan.perm is not None:
        lines.append(f"  axes in the order {plan.perm}: a view")
    if plan.broadcast is not None:
        lines.append(f"  repeated to {plan.broadcast[0]}: a view")
    if plan.merge is not None:
        copied = plan.perm is not None or plan.broadcast is not None
        lines.append(f"  joined to {plan.merge}: " + ("a copy where joined axes are not neighbours in memory"
                                                      if copied else "a view"))
    return lines or ["  nothing to do"]
