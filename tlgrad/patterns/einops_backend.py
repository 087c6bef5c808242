"""Lets the einops package work on tlgrad tensors: ``einops.rearrange(tensor, "a b -> b a")``.

einops finds a framework as a subclass of its `AbstractBackend`.  einops is optional and is not
imported here: `tlgrad.protocols` has the subclass made when both are loaded.
"""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.tensor import tensor, to_numpy
from tlgrad.core.trace import Value
from tlgrad.ops.layout import broadcast, reshape, transpose
from tlgrad.ops.orders import current_order
from tlgrad.ops.shape import concatenate, expand_dims
from tlgrad.patterns.einsum import einsum
from tlgrad.patterns.transform import REDUCTIONS
from tlgrad.patterns.values import stacked


class Methods:
    """What einops asks of a framework (its `AbstractBackend`), on tensors and traced values."""

    framework_name = "tlgrad"

    def is_appropriate_type(self, x):
        return isinstance(x, Value)

    def from_numpy(self, x):
        return tensor(x)

    def to_numpy(self, x):
        return to_numpy(x)

    def arange(self, start, stop):
        return tensor(list(range(start, stop)))

    def shape(self, x):
        return x.shape

    def reshape(self, x, shape):
        if -1 in shape:
            rest = 1
            for n in shape:
                rest *= n if n != -1 else 1
            shape = [n if n != -1 else x.size // max(rest, 1) for n in shape]
        return reshape.bind(x, shape=tuple(map(int, shape)))

    def transpose(self, x, axes):
        return transpose.bind(x, perm=tuple(axes))

    def reduce(self, x, operation, axes):
        terms = 1
        for a in axes:
            terms *= x.shape[a]
        return REDUCTIONS[operation](x, tuple(sorted(axes)), terms, current_order())

    def stack_on_zeroth_dimension(self, tensors):
        return stacked(tensors)

    def add_axis(self, x, new_position):
        return expand_dims(x, new_position)

    def add_axes(self, x, n_axes, pos2len):
        kept = [k for k in range(n_axes) if k not in pos2len]
        shape = [pos2len.get(k) for k in range(n_axes)]
        for k, n in zip(kept, x.shape):
            shape[k] = n
        return broadcast.bind(x, shape=tuple(shape), axes=tuple(kept))

    def concat(self, tensors, axis):
        return concatenate.bind(*tensors, axis=axis)

    def is_float_type(self, x):
        return dtypes.is_inexact(x.dtype)

    def einsum(self, pattern, *tensors):
        return einsum(pattern, *tensors)


#: keeps the class alive: einops reaches it through __subclasses__, which holds weak references
_defined: list[type] = []


def define(backends):
    """Add tlgrad to the frameworks of einops; `backends` is its module of them."""
    _defined.append(type("TlgradBackend", (Methods, backends.AbstractBackend), {}))
