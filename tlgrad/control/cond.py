"""Branches: only the one that is taken is evaluated.

    cond   : bool, (a -> b), (a -> b), a -> b
    switch : int, [(a -> b)], a -> b

One primitive, `cond`, whose operand 0 is the int64 index of the branch.  A predicate that has
a number needs no primitive: the branch is called, and a record holds only that one.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from tlgrad.control.lanes import batched_cond
from tlgrad.control.native import step_of
from tlgrad.control.plan import plan_of
from tlgrad.control.staging import Staged, flatten_values, join_captured, remembered, split_list, stage_tree
from tlgrad.core import dtypes, tree
from tlgrad.core.aval import Zero
from tlgrad.core.jaxpr import Jaxpr, eval_jaxpr
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.source import check_callable, describe_callable
from tlgrad.core.tensor import Tensor, as_value
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError, TreeError
from tlgrad.ops.convert import convert
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.layout import zeros
from tlgrad.ops.promote import as_dtype_value, common_dtype
from tlgrad.transforms.jvp import Dual, jvp_jaxpr
from tlgrad.transforms.partial_eval import partial_eval_jaxpr
from tlgrad.transforms.stage import stage_closed
from tlgrad.transforms.transpose import onto_jaxpr, transpose_jaxpr


# ---- rules ----

def _taken(make: Callable):
    """The meaning, with `make` turning the branch that is taken into a function of arrays."""
    def run(index, *operands, branches):
        k = int(index)
        if not 0 <= k < len(branches):
            raise OutOfBoundsError(f"switch: index {k} is out of bounds for {len(branches)} branches")
        with np.errstate(all="ignore"):
            return make(branches[k])(*operands)
    return run


def _abstract(index, *operands, branches):
    if index.shape != () or index.dtype is not dtypes.int64:
        raise ShapeError(f"cond: the branch index must be int64[], got {index}")
    for k, branch in enumerate(branches):
        if [a.strong() for a in branch.in_avals] != [a.strong() for a in operands]:
            raise ShapeError(f"cond: branch {k} takes {branch.in_avals}, the operands are {list(operands)}")
    return [a.strong() for a in branches[0].out_avals]


def _jvp(primals, tangents, *, branches):
    nonzero = tuple(type(t) is not Zero for t in tangents[1:])
    found = [jvp_jaxpr(b, nonzero)[1] for b in branches]
    keep = tuple(map(any, zip(*found)))
    duals = tuple(jvp_jaxpr(b, nonzero, keep)[0] for b in branches)
    dots = [t for t in tangents[1:] if type(t) is not Zero]
    outs, out_dots = split_list(cond_p.bind(*primals, *dots, branches=duals), len(keep))
    rest = iter(out_dots)
    return outs, [next(rest) if k else Zero(y.aval) for y, k in zip(outs, keep)]


def _partial_eval(trace, args, *, branches):
    index, *operands = args
    unknown = tuple(map(trace.is_unknown, operands))
    if trace.is_unknown(index):
        return trace.emit(cond_p, args, {"branches": branches})
    parts = [partial_eval_jaxpr(b, unknown) for b in branches]
    out_unknown = [any(flags) for flags in zip(*[p[2] for p in parts])]
    known, rest = remembered(branches[0], ("shared residuals", branches, unknown),
                             lambda: _share_residuals(branches, parts, out_unknown))
    known_args = [x for x, u in zip(operands, unknown) if not u]
    results = cond_p.bind(index, *known_args, branches=tuple(known))
    n_known = out_unknown.count(False)
    unknown_args = [x for x, u in zip(operands, unknown) if u]
    later = []
    if any(out_unknown):
        later = trace.emit(cond_p, [index, *results[n_known:], *unknown_args], {"branches": tuple(rest)})
    first, second = iter(results), iter(later)
    return [next(second) if u else next(first) for u in out_unknown]


def _share_residuals(branches, parts, out_unknown):
    """Known and unknown branches that hand over residuals through common slots.

    Only one branch runs, so residuals of one aval in different branches share a slot.
    """
    needs = []
    for (known, _rest, unknown_b, n_res) in parts:
        n_plain = len(known.outs) - n_res
        plain = iter(range(n_plain))
        carried = [next(plain) if not u else None for u in unknown_b]
        moved = [c for c, u in zip(carried, out_unknown) if u and c is not None]
        needs.append([*moved, *range(n_plain, len(known.outs))])
    slots = _slots([[known.out_avals[k].strong() for k in need] for (known, *_), need in zip(parts, needs)])
    known_branches, rest_branches = [], []
    for part, need in zip(parts, needs):
        places = _places(slots, [part[0].out_avals[k].strong() for k in need])
        known_branches.append(_known_branch(part, need, places, slots, out_unknown))
        rest_branches.append(_rest_branch(part, need, places, slots, out_unknown))
    return known_branches, rest_branches


def _slots(lists):
    """A list of avals that contains every list (as a multiset)."""
    out: list = []
    for avals in lists:
        free = list(out)
        for a in avals:
            if a in free:
                free.remove(a)
            else:
                out.append(a)
    return out


def _places(slots, avals):
    taken, places = set(), []
    for a in avals:
        k = next(k for k, s in enumerate(slots) if s is a and k not in taken)
        taken.add(k)
        places.append(k)
    return places


def _known_branch(part, need, places, slots, out_unknown):
    known, _, unknown_b, n_res = part

    def f(*xs):
        outs = eval_jaxpr(known, xs)
        plain = iter(outs[:len(outs) - n_res])
        values = [next(plain) if not u else None for u in unknown_b]
        given = [v for v, u in zip(values, out_unknown) if not u]
        held = dict(zip(places, [outs[k] for k in need]))
        return [*given, *[held[k] if k in held else zeros(a) for k, a in enumerate(slots)]]
    return stage_closed(f, known.in_avals, "partial evaluation of cond")


def _rest_branch(part, need, places, slots, out_unknown):
    known, rest, unknown_b, n_res = part
    n_moved = len(need) - n_res
    unknown_avals = rest.in_avals[n_res:]

    def f(*xs):
        held, unknown_args = xs[:len(slots)], xs[len(slots):]
        values = [held[k] for k in places]
        moved, results = iter(values[:n_moved]), iter(eval_jaxpr(rest, [*values[n_moved:], *unknown_args]))
        return [next(results) if u else next(moved) for u, want in zip(unknown_b, out_unknown) if want]
    return stage_closed(f, [*slots, *unknown_avals], "partial evaluation of cond")


def _transpose(cts, index, *operands, onto, branches):
    linear = tuple(type(x) is Linear for x in operands)
    flags = [x is not None for x in onto[1:]]
    turned = tuple(transpose_jaxpr(onto_jaxpr(b, flags), linear) for b in branches)
    known = [x for x in operands if type(x) is not Linear]
    before = [x for x in onto[1:] if x is not None]
    found = iter(cond_p.bind(index, *known, *before, *map(instantiate, cts), branches=turned))
    return [None, *[next(found) if lin else None for lin in linear]]


def _batch(args, axes, size, *, branches):
    return batched_cond(cond_p, args, axes, size, branches)


cond_p = documented(
    Primitive("cond", impl=_taken(plan_of), eager=_taken(step_of), abstract=_abstract, jvp=_jvp,
              partial_eval=_partial_eval,
              transpose=_transpose, batch=_batch, multiple=True, onto=True, lower=("control", "cond")),
    "The results of `branches[index]`; the other branches are not evaluated.", "index *operands")


# ---- functions ----

def concrete(x: Any) -> Tensor | None:
    """The tensor behind a value that has a number, through dual numbers; None for a traced one."""
    while type(x) is Dual:
        x = x.primal
    return x if isinstance(x, Tensor) else None


def cond(pred, true_fun: Callable, false_fun: Callable, *operands) -> Any:
    """``true_fun(*operands)`` where `pred` holds, else ``false_fun(*operands)``; lazy.

    `pred` is one bool, concrete or traced.  Operands and results are pytrees; with a traced
    `pred` both results need one structure, the same shapes, and dtypes that promote.  The
    branch that is not taken is not evaluated: it cannot raise, and contributes exactly zero
    to derivatives.  Raises DTypeError when `pred` is not bool, TreeError or ShapeError when
    the results differ.

    >>> cond(True, lambda x: x * 2, lambda x: x / 0, tl.tensor(3.0))
    tensor(6.0, float64, shape (), cpu)
    """
    check_callable(true_fun, "cond")
    check_callable(false_fun, "cond")
    pred = as_value(pred, "the predicate of cond")
    if pred.dtype is not dtypes.bool_ or pred.shape != ():
        raise DTypeError(f"cond: the predicate must be bool of shape (), got {pred.aval}; write a comparison, "
                         "e.g. x != 0, or tl.where(condition, a, b) for a choice by entry")
    known = concrete(pred)
    if known is not None:
        return (true_fun if bool(known) else false_fun)(*operands)
    return _bind(convert(pred, dtypes.int64), [false_fun, true_fun], operands, "cond")


def switch(index, branches: Sequence[Callable], *operands) -> Any:
    """``branches[index](*operands)``; the other branches are not evaluated.

    `index` is one integer, concrete or traced.  An index outside raises OutOfBoundsError; see
    `cond` for what the results must share.

    >>> switch(1, [lambda x: x, lambda x: -x], tl.tensor(3.0))
    tensor(-3.0, float64, shape (), cpu)
    """
    branches = list(branches)
    for branch in branches:
        check_callable(branch, "switch")
    index = as_value(index, "the index of switch")
    if not branches:
        raise ArgumentError("switch: no branches were given")
    if not dtypes.is_integer(index.dtype) or index.shape != ():
        raise DTypeError(f"switch: the index must be an integer of shape (), got {index.aval}")
    known = concrete(index)
    if known is not None:
        if not 0 <= int(known) < len(branches):
            raise OutOfBoundsError(f"switch: index {int(known)} is out of bounds for {len(branches)} branches")
        return branches[int(known)](*operands)
    return _bind(convert(index, dtypes.int64), branches, operands, "switch")


def _bind(index: Value, functions, operands, name):
    values, in_tree = flatten_values(tuple(operands), f"an operand of {name}")
    staged = [stage_tree(f, in_tree.children, [x.aval for x in values]) for f in functions]
    branches, out_tree = _common_results(staged, functions, name)
    captured, jaxprs = join_captured(branches)
    outs = cond_p.bind(index, *captured, *values, branches=tuple(jaxprs))
    return tree.unflatten(out_tree, outs)


def _common_results(staged: list[Staged], functions, name):
    """The branches with results of one structure and one dtype a leaf."""
    first = staged[0]
    for s, f in zip(staged[1:], functions[1:]):
        pair = f"{name}: {describe_callable(functions[0])} and {describe_callable(f)}"
        if s.out_tree != first.out_tree:
            raise TreeError(f"{pair} return different structures: "
                            + tree.difference(first.out_tree, s.out_tree))
        for path, a, b in zip(tree.paths(first.out_tree), first.jaxpr.out_avals, s.jaxpr.out_avals):
            if a.shape != b.shape:
                raise ShapeError(f"{pair} return different shapes at result{path}: {a} and {b}")
    columns = list(zip(*[s.jaxpr.outs for s in staged]))
    wanted = [common_dtype(column) for column in columns]
    return [s._replace(jaxpr=cast_results(s.jaxpr, [d for d, _ in wanted])) for s in staged], first.out_tree


def cast_results(jaxpr: Jaxpr, wanted) -> Jaxpr:
    """`jaxpr` with its results converted to the given dtypes."""
    if all(a.dtype is d for a, d in zip(jaxpr.out_avals, wanted)):
        return jaxpr
    return stage_closed(lambda *xs: [as_dtype_value(y, d) for y, d in zip(eval_jaxpr(jaxpr, xs), wanted)],
                        jaxpr.in_avals, "cond")
