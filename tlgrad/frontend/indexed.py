"""Indexed programs: each entry of the output is computed from its flat index.

    Program : (read, index -> value) -> (*inputs, shape) -> output

Indices are 64-bit and unsigned: + - * wrap around, x // 0 is 0, x % 0 is x.
"""
from __future__ import annotations

import functools
from collections import OrderedDict
from math import prod
from typing import Any, Callable

import numpy as np

from tlgrad.core import counters, dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.guard import Guard
from tlgrad.core.source import describe_callable, user_source
from tlgrad.core.tensor import as_value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.frontend.interpreter import Recorded, rebuild, record
from tlgrad.frontend.map_primitive import Errors
from tlgrad.frontend.mapping import apply, global_name, keep_plan
from tlgrad.frontend.read import Reader
from tlgrad.ops.layout import reshape
from tlgrad.ops.shape import iota

#: outputs have fewer entries than this
TOO_LARGE = 2 ** 63


class Program:
    """Compute each entry of an output from its index: ``Program(body)(*inputs, shape=...)``.

    body(read, i) gives the entry (or a tuple: several outputs) with flat row-major index `i`.
    read(operand, index) reads an input, numbered from 0, at a flat row-major index.  Indices are
    unsigned 64-bit: + - * wrap around, ``x // 0`` is 0 and ``x % 0`` is x.  `tl.iterate(step, n, start)`
    folds in order; Python's `if`, `for`, `while` and recursion work as under `tl.map`.
    Differentiable in the inputs: reads transpose to scatter-adds in row-major order of the outputs.

    Raises OutOfBoundsError (operand, index, size, output) for the lowest output that reads outside,
    ArgumentError for an unknown operand, ShapeError for an output that is too large.  An empty
    output reads nothing.

    >>> row_sum = tl.Program(lambda read, i: tl.iterate(lambda k, total: total + read(0, 3 * i + k), 3, 0.0))
    >>> row_sum(tl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), shape=(2,))
    tensor([ 6., 15.], float64, shape (2,), cpu)
    """

    def __init__(self, body: Callable):
        if not callable(body):
            raise ArgumentError(f"Program takes a function of (read, i), got {type(body).__name__}: {body!r:.60}")
        self.body = body
        self.plans: OrderedDict[Any, tuple[Recorded, Guard]] = OrderedDict()
        functools.update_wrapper(self, body, updated=())

    def __call__(self, *inputs, shape):
        shape = checked_shape(shape)
        values = [as_value(x, f"input {k} of Program") for k, x in enumerate(inputs)]
        flat = [x if x.ndim == 1 else reshape.bind(x, shape=(x.size,)) for x in values]
        found = self.plan(tuple(x.aval for x in flat))
        name = f"Program {describe_callable(self.body)}"
        index = iota.bind(shape=(prod(shape),), axis=0, dtype=dtypes.uint64)
        operands = [*found.captured, *flat, reshape.bind(index, shape=shape)]
        outs = apply(found, operands, len(operands) - 1, shape, Errors(found.errors, found.marks, name))
        return rebuild(found.structure, outs)

    def plan(self, avals) -> Recorded:
        """The recorded body, while what it captured is unchanged."""
        plan = self.plans.get(avals)
        if plan is not None and plan[1].holds():
            self.plans.move_to_end(avals)
            return plan[0]
        counters.count_trace(self.body, plan is not None, avals)
        guard = Guard(self.body)

        def build(symbols):
            *tables, i = symbols
            return (Reader(tables), i), {}
        found = record(self.body, build, [*avals, make_aval((), dtypes.uint64)], unsigned=True)
        keep_plan(self.plans, avals, found, guard)
        return found

    def __reduce__(self):
        return global_name(self) or (Program, (self.body,))

    def __repr__(self):
        return f"<Program {describe_callable(self.body)}>"


def checked_shape(shape) -> tuple[int, ...]:
    """`shape` as a tuple of sizes; ShapeError when it is none, or has too many entries."""
    try:
        sizes = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    except (TypeError, ValueError):
        raise ShapeError(f"Program: shape must be a tuple of sizes, got {shape!r} [{user_source()}]") from None
    if any(n < 0 for n in sizes):
        raise ShapeError(f"Program: the output shape {sizes} has a negative size [{user_source()}]")
    if prod(sizes) >= TOO_LARGE:
        raise ShapeError(f"Program: an output of shape {sizes} has {prod(sizes)} entries; the limit is "
                         f"2**63 - 1 [{user_source()}]")
    return sizes
