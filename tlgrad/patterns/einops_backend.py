"""Lets the einops package work on tlgrad tensors: ``einops.rearrange(tensor, "a b -> b a")``.

einops finds a framework as a subclass of its `AbstractBackend`.  einops is optional and is not
imported here: where it is already loaded the subclass is made at once, otherwise when it is loaded.
"""
from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec

from tlgrad.core import dtypes
from tlgrad.core.tensor import tensor, to_numpy
from tlgrad.core.trace import Value
from tlgrad.ops.layout import broadcast, reshape, transpose
from tlgrad.ops.orders import current_order
from tlgrad.ops.shape import concatenate, expand_dims
from tlgrad.patterns.einsum import einsum
from tlgrad.patterns.transform import REDUCTIONS
from tlgrad.patterns.values import stacked

_MODULE = "einops._backends"


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


class _WhenLoaded(MetaPathFinder):
    """Defines the backend right after einops' own backends are loaded, then steps aside."""

    def find_spec(self, name, path, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            run_module = spec.loader.exec_module

            def exec_module(module):
                run_module(module)
                _define(module)
            spec.loader.exec_module = exec_module
        return spec


#: keeps the class alive: einops reaches it through __subclasses__, which holds weak references
_defined: list[type] = []


def _define(module):
    _defined.append(type("TlgradBackend", (Methods, module.AbstractBackend), {}))


def install():
    """Make einops know tlgrad, now or when it is loaded."""
    if _MODULE in sys.modules:
        _define(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _WhenLoaded())
