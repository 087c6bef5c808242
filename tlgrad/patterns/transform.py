"""rearrange, expand, reduce: one plan, a few primitives."""
from __future__ import annotations

from typing import Callable

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError
from tlgrad.ops.arithmetic import div
from tlgrad.ops.layout import broadcast, reduce_sum, reshape, transpose
from tlgrad.ops.orders import check_order
from tlgrad.ops.reduce import reduce_all, reduce_any, reduce_max, reduce_min, reduce_prod
from tlgrad.ops.shape import slice_axis
from tlgrad.patterns.messages import Fault, pattern_error
from tlgrad.patterns.plan import Plan, plan_transform
from tlgrad.patterns.values import accumulator, cast, operand, result_dtype


def rearrange(x, pattern: str, **sizes: int) -> Value:
    """Move, split and join axes by name; every entry is kept.

    x: a tensor, or a list of tensors of one shape (their index is a first axis).  A name stands for
    an axis, ``(a b)`` for axes joined row-major, ``...`` for the axes that are not named, ``1`` and
    ``()`` for an axis of length 1.  Lengths that the shape does not fix are keyword arguments; one
    length in a group follows from the others.  Any dtype.  Raises PatternError, with a caret, when
    the pattern is malformed or does not fit.

    >>> rearrange(tl.tensor([[1, 2, 3], [4, 5, 6]]), "row column -> column row").tolist()
    [[1, 4], [2, 5], [3, 6]]
    >>> rearrange(tl.tensor([1, 2, 3, 4, 5, 6]), "(row column) -> row column", row=2).shape
    (2, 3)
    """
    x, plan = _planned("rearrange", x, pattern, sizes)
    return _arranged(x, plan)


def expand(x, pattern: str, **sizes: int) -> Value:
    """Repeat along new axes (einops calls this repeat); nothing is repeated that is not named.

    x and pattern as in `rearrange`; names that are only on the right are new axes, whose lengths are
    keyword arguments, or numbers in the pattern.  The result is a view where it can be; its derivative
    is the sum over the new axes.  Raises PatternError as `rearrange` does.

    >>> expand(tl.tensor([10, 20, 30]), "column -> row column", row=2).tolist()
    [[10, 20, 30], [10, 20, 30]]
    >>> expand(tl.tensor([1, 2]), "column -> column copy", copy=3).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    x, plan = _planned("expand", x, pattern, sizes)
    return _arranged(x, plan)


def reduce(x, pattern: str, by: str | Callable = "sum", *, order: str | None = None, **sizes: int) -> Value:
    """Combine the entries along the axes that the right side does not name.

    by: ``"sum"`` (from +0), ``"prod"`` (from 1), ``"mean"``, ``"min"``, ``"max"``, ``"any"``, ``"all"``
    (of bool), or a callable ``f(tensor, axes) -> tensor`` without those axes.  Entries are taken
    row-major over the removed axes, the last fastest, in `order` ("ordered", "fused", "tree",
    "free"; default: that of the run).  A name that occurs twice on the left is a diagonal.

    Sums and products of bool and small integers are 64-bit integers; floats of at most 16 bits
    accumulate in float32 and round once; the mean of integers is float64.  Raises PatternError when
    the pattern does not fit, and for min, max or mean of no entries.

    >>> reduce(tl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "row column -> row", "sum").tolist()
    [6.0, 15.0]
    >>> reduce(tl.tensor([[0, 1, 2], [3, 4, 5]]), "a b -> b", "mean").tolist()
    [1.5, 2.5, 3.5]
    """
    order = check_order(order)
    x, plan = _planned("reduce", x, pattern, sizes)
    if not callable(by) and by not in REDUCTIONS:
        raise ArgumentError(f"reduce: by must be a callable or one of {', '.join(REDUCTIONS)}, got {by!r}")
    if not plan.terms and by in ("mean", "min", "max"):
        fault = Fault(f"the {by} of no entries: the removed axes have the product 0", sizes=plan.sizes)
        raise pattern_error("reduce", pattern, fault, [("x", x.shape)])
    x = diagonals(_reshaped(x, plan.split), plan.diagonals)
    x = by(x, plan.reduced) if callable(by) else REDUCTIONS[by](x, plan.reduced, plan.terms, order)
    return _placed(operand(x), plan)


def _planned(function, x, pattern, sizes):
    try:
        x = operand(x)
    except Fault as fault:
        raise pattern_error(function, pattern, fault) from None
    try:
        return x, plan_transform(function, pattern, x.aval.shape, sizes)
    except Fault as fault:
        raise pattern_error(function, pattern, fault, [("x", x.shape)], sizes) from None


# ---- the steps of a plan ----

def _arranged(x, plan: Plan):
    return _placed(_reshaped(x, plan.split), plan)


def _placed(x, plan: Plan):
    if plan.perm is not None:
        x = transpose.bind(x, perm=plan.perm)
    if plan.broadcast is not None:
        x = broadcast.bind(x, shape=plan.broadcast[0], axes=plan.broadcast[1])
    return _reshaped(x, plan.merge)


def _reshaped(x, shape):
    return x if shape is None else reshape.bind(x, shape=shape)


def diagonals(x, groups):
    """x with the axes of each group made one, at the place of the first."""
    while groups:
        group, *rest = groups
        x = diagonal(x, group)
        groups = [tuple(_after(a, group) for a in g) for g in rest]
    return x


def _after(axis, group):
    return axis - sum(axis > a for a in group[1:])


def diagonal(x, group: tuple[int, ...]):
    """Entries whose indices along the axes `group` (of equal length) are equal.

    The axes are joined into one of length n**k; the diagonal is every (1 + n + ... + n**(k-1))-th
    entry of it, so it is a reshape and a slice, and its transpose pads with zeros.
    """
    first, n = group[0], x.shape[group[0]]
    rest = [a for a in range(x.ndim) if a not in group]
    before = [a for a in rest if a < first]
    x = transpose.bind(x, perm=(*before, *group, *rest[len(before):]))
    joined = (*x.shape[:len(before)], n ** len(group), *x.shape[len(before) + len(group):])
    stride = sum(n ** k for k in range(len(group)))
    return slice_axis(reshape.bind(x, shape=joined), len(before), 0, n ** len(group), max(stride, 1))


# ---- reductions ----

def _sum(x, axes, terms, order):
    total = cast(x, accumulator(x.dtype))
    if axes:
        total = reduce_sum.bind(total, axes=axes, order=order)
    return cast(total, result_dtype(x.dtype))


def _prod(x, axes, terms, order):
    total = cast(x, accumulator(x.dtype))
    if axes:
        total = reduce_prod.bind(total, axes=axes)
    return cast(total, result_dtype(x.dtype))


def _mean(x, axes, terms, order):
    if x.dtype.kind in "biu":
        x = cast(x, dtypes.float64)
    total = reduce_sum.bind(cast(x, accumulator(x.dtype)), axes=axes, order=order)
    return cast(div(total, float(terms)), x.dtype)


def _extreme(prim):
    def run(x, axes, terms, order):
        return prim.bind(x, axes=axes) if axes else x
    return run


def _logical(prim, name):
    def run(x, axes, terms, order):
        if x.dtype is not dtypes.bool_:
            raise DTypeError(f"reduce: {name} takes bool, got {x.dtype}; write reduce(x != 0, pattern, {name!r})")
        return prim.bind(x, axes=axes) if axes else x
    return run


REDUCTIONS = {"sum": _sum, "prod": _prod, "mean": _mean, "min": _extreme(reduce_min),
              "max": _extreme(reduce_max), "any": _logical(reduce_any, "any"),
              "all": _logical(reduce_all, "all")}
