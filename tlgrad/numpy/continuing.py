"""Reductions that go on from an accumulator: the words of the whole, from its pieces in order."""
from __future__ import annotations

from typing import Callable

from tlgrad.core.source import user_source
from tlgrad.core.trace import Value
from tlgrad.errors import ShapeError
from tlgrad.numpy.arrays import as_array, with_kept_axes
from tlgrad.ops.layout import reduced_shape, reshape
from tlgrad.ops.promote import as_dtype_value
from tlgrad.ops.reduce import flat_last
from tlgrad.ops.shape import concatenate


def continued(reduction: Callable, x: Value, init, axes, keepdims: bool, name: str, **options) -> Value:
    """`reduction` of x along `axes` with the accumulator `init` as the first term.

    Raises ShapeError unless `init` has the shape of the result.
    """
    kept = reduced_shape(x.shape, axes)
    first = as_dtype_value(as_array(init, name), x.dtype)
    if first.shape != kept:
        raise ShapeError(f"{name}: init= must have the shape of the result, {kept}, got {first.shape} "
                         f"[{user_source()}]")
    terms = concatenate.bind(reshape.bind(first, shape=(*kept, 1)), flat_last(x, axes), axis=len(kept))
    return with_kept_axes(reduction(terms, axis=-1, **options), axes, keepdims)
