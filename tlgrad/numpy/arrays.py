"""Arguments of array functions: array-likes, axes, shapes, devices, dtypes."""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.dtypes import DType
from tlgrad.core.source import user_source
from tlgrad.core.tensor import Tensor, as_value, frozen, tensor
from tlgrad.core.trace import Tracer, Value
from tlgrad.errors import ArgumentError, ConcretizationError, ShapeError, UnsupportedError
from tlgrad.ops.convert import convert
from tlgrad.ops.layout import normalize_axis, reshape
from tlgrad.ops.promote import as_dtype_value, broadcast_shapes, broadcast_to, common_dtype
from tlgrad.ops.shape import concatenate


def as_array(x, name: str) -> Value:
    """A Value from a Value, array, number, or nested list of these; `name` is the function's."""
    if isinstance(x, Value):
        return x
    if isinstance(x, (list, tuple)):
        return stacked(x, name)
    if hasattr(x, "__array__") and not isinstance(x, (np.ndarray, np.generic)):
        return tensor(np.asarray(x))                     # an array of another library
    return as_value(x, f"the operand of {name}")


def stacked(items, name: str) -> Value:
    """A nested list as one value; traced entries are stacked."""
    if not holds_value(items):
        return tensor(items)
    return stack_values([as_array(x, name) for x in items], 0, name)


def holds_value(items) -> bool:
    """True when a nested list has a Value in it."""
    return any(isinstance(x, Value) or isinstance(x, (list, tuple)) and holds_value(x) for x in items)


def stack_values(values, axis: int, name: str) -> Value:
    """Values of one shape joined along a new axis."""
    if not values:
        raise ShapeError(f"{name}: needs at least one array")
    shapes = {v.shape for v in values}
    if len(shapes) > 1:
        raise ShapeError(f"{name}: all arrays must have one shape, got "
                         f"{', '.join(str(v.shape) for v in values)} [{user_source()}]")
    shape = values[0].shape
    axis = normalize_axis(axis, len(shape) + 1, name)
    shape = (*shape[:axis], 1, *shape[axis:])
    return concatenate.bind(*[reshape.bind(v, shape=shape) for v in one_dtype(values)], axis=axis)


def one_dtype(values) -> list[Value]:
    """Values converted to their common dtype."""
    dtype, weak = common_dtype(values)
    return [as_dtype_value(v, dtype, weak) for v in values]


def broadcast_values(values, name: str) -> list[Value]:
    """Values repeated to their common shape, shape () included."""
    shape = broadcast_shapes(*[v.shape for v in values], what=name)
    return [broadcast_to(v, shape) for v in values]


def axes_of(axis, ndim: int, name: str) -> tuple[int, ...]:
    """Sorted non-negative axes from None (all), an int, or a tuple of ints."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(normalize_axis(a, ndim, name) for a in given))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: an axis is given twice: {axis}")
    return axes


def with_kept_axes(y: Value, axes, keepdims: bool) -> Value:
    """A reduced value with its reduced axes back as axes of size 1, if asked for."""
    if not keepdims or not axes:
        return y
    shape = list(y.shape)
    for a in axes:
        shape.insert(a, 1)
    return reshape.bind(y, shape=tuple(shape))


def as_shape(shape, name: str) -> tuple[int, ...]:
    """A shape from an int or a sequence of ints (0-d integer tensors count as ints)."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    if isinstance(shape, np.ndarray):
        sizes = shape.tolist() if shape.ndim else (int(shape),)
    for n in sizes:
        if isinstance(n, Tracer):
            raise ConcretizationError(f"{name}: a size of the shape is traced: {n.aval} [{user_source()}]. "
                                      "Shapes are static: mark the argument static, or take it from x.shape.")
    try:
        return tuple(n.__index__() for n in sizes)
    except AttributeError:
        raise ShapeError(f"{name}: a shape is an int or a tuple of ints, got {shape!r}") from None


def check_device(device, name: str) -> None:
    """Tensors are made on the cpu; a device belongs to a call."""
    if device not in (None, "cpu"):
        raise UnsupportedError(f"{name}: tensors are made on the cpu, got device={device!r}; the device belongs "
                               "to the call: tl.run(f, device=...)")


def optional_dtype(dtype) -> DType | None:
    """The DType that is spelled, or None."""
    return None if dtype is None else dtypes.as_dtype(dtype)


def in_dtype(x: Value, dtype) -> Value:
    """x converted, unless no dtype is asked for."""
    return x if dtype is None else convert(x, dtype)


def constant(array: np.ndarray) -> Tensor:
    """A tensor of an array that was made here."""
    return Tensor.own(frozen(np.asarray(array)))


def concrete(x, name: str, argument: str) -> np.ndarray:
    """The NumPy array of an argument that decides a shape; a traced one is an error that says so."""
    if isinstance(x, Tracer):
        raise ConcretizationError(f"{name}: {argument} decides the shape of the result, so it cannot be traced, "
                                  f"got {x.aval} [{user_source()}]. Compute it outside the transform, or give "
                                  "size= where the function has it.")
    return np.asarray(x)


def refuse_out(out, name: str) -> None:
    """Tensors cannot be written to."""
    if out is not None:
        raise ArgumentError(f"{name}: out= is not available, tensors are immutable; write y = tl.{name}(...), "
                            "or x = x.at[...].set(...) for a part of an array")
