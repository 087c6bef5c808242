"""Making arrays: constants, ranges, grids, and conversion from other objects."""
from __future__ import annotations

import builtins

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.tensor import Tensor, tensor
from tlgrad.core.trace import Value
from tlgrad.core.writing import clone, fresh
from tlgrad.errors import ArgumentError, DTypeError, ShapeError
from tlgrad.numpy.arrays import (as_array, as_shape, broadcast_values, check_device, constant, in_dtype,
                                 one_dtype, optional_dtype)
from tlgrad.ops import layout
from tlgrad.ops.arithmetic import add, floor, mul, sub
from tlgrad.ops.convert import convert
from tlgrad.ops.elementary import exp, log, pow_
from tlgrad.ops.logic import eq, ge, le, where
from tlgrad.ops.promote import as_dtype_value, broadcast_to, to_inexact
from tlgrad.ops.shape import concatenate, iota

__all__ = ["array", "asarray", "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like",
           "empty_like", "arange", "linspace", "logspace", "geomspace", "eye", "identity", "meshgrid", "tri",
           "tril", "triu", "indices", "from_dlpack", "copy", "ascontiguousarray", "asfarray"]


def asarray(obj, dtype=None, *, device=None, copy=None, order=None) -> Value:
    """A tensor of numbers, nested lists, an array of another library, or a value (kept as it is).

    Without `dtype`, NumPy's choice.  Traced entries of lists are stacked.  Raises DTypeError for
    what is not numbers, ArgumentError when ``copy=False`` cannot be kept (NumPy arrays are copied).

    >>> asarray([1, 2], dtype=tl.float32)
    tensor([1., 2.], float32, shape (2,), cpu)
    """
    check_device(device, "asarray")
    if isinstance(obj, Value):
        if isinstance(obj, Tensor) and obj.weak and dtype is None:
            return Tensor(obj.data, obj.aval.strong(), obj.device)
        out = in_dtype(obj, dtype)
        return fresh(clone(out)) if copy else out
    if copy is False:
        raise ArgumentError("asarray: copy=False is not possible, tensors own their memory; use copy=None")
    if isinstance(obj, (list, tuple)):
        value = as_array(obj, "asarray")
        return value if dtype is None else tensor(value, dtype) if isinstance(value, Tensor) \
            else convert(value, dtype)
    if not isinstance(obj, (np.ndarray, np.generic)) and hasattr(obj, "__dlpack__"):
        obj = np.from_dlpack(obj)
    return tensor(obj, dtype)


def array(object, dtype=None, *, copy=None, ndmin: int = 0, order=None) -> Value:
    """`asarray` under NumPy's name; `ndmin` puts axes of size 1 in front.

    >>> array([1.0, 2.0], ndmin=2).shape
    (1, 2)
    """
    out = asarray(object, dtype)
    lead = ndmin - out.ndim
    return layout.reshape.bind(out, shape=(1,) * lead + out.shape) if lead > 0 else out


def ascontiguousarray(x, dtype=None) -> Value:
    """`asarray`: the memory layout of a tensor is not visible."""
    return asarray(x, dtype)


def asfarray(x, dtype=None) -> Value:
    """x as floats: integers become float64."""
    x = asarray(x)
    return convert(x, dtype or to_inexact(x.dtype))


def copy(x) -> Value:
    """x as another object with the same entries, which are shared: tensors are immutable."""
    return fresh(clone(as_array(x, "copy")))


def from_dlpack(x, *, device=None, copy=None) -> Tensor:
    """A tensor of an array that speaks DLPack; the entries are copied."""
    check_device(device, "from_dlpack")
    if isinstance(x, Tensor):
        return x
    if copy is False:
        raise ArgumentError("from_dlpack: copy=False is not possible, tensors own their memory")
    return tensor(np.from_dlpack(x))


# ---- constants ----

def full(shape, fill_value, dtype=None, *, device=None, order=None) -> Value:
    """`fill_value` repeated to `shape`; its dtype unless `dtype` is given.

    >>> full((2,), 7)
    tensor([7, 7], int64, shape (2,), cpu)
    """
    check_device(device, "full")
    value = asarray(fill_value, dtype)
    return fresh(broadcast_to(value, as_shape(shape, "full")))


def zeros(shape, dtype=None, *, device=None, order=None) -> Value:
    """Zeros of `shape`, float64 unless `dtype` is given.

    >>> zeros((2,))
    tensor([0., 0.], float64, shape (2,), cpu)
    """
    check_device(device, "zeros")
    return fresh(layout.zeros(make_aval(as_shape(shape, "zeros"), optional_dtype(dtype) or dtypes.float64)))


def ones(shape, dtype=None, *, device=None, order=None) -> Value:
    """Ones of `shape`, float64 unless `dtype` is given.

    >>> ones((2,), tl.int32)
    tensor([1, 1], int32, shape (2,), cpu)
    """
    return full(shape, 1, optional_dtype(dtype) or dtypes.float64, device=device)


def empty(shape, dtype=None, *, device=None, order=None) -> Value:
    """`zeros`: a tensor cannot be filled later, so its entries are defined."""
    return zeros(shape, dtype, device=device)


def _like(x, dtype, shape, name):
    x = as_array(x, name)
    return (x.shape if shape is None else as_shape(shape, name)), optional_dtype(dtype) or x.dtype


def zeros_like(x, dtype=None, *, shape=None, device=None, order=None, subok=True) -> Value:
    """Zeros of the shape and dtype of x."""
    return zeros(*_like(x, dtype, shape, "zeros_like"), device=device)


def ones_like(x, dtype=None, *, shape=None, device=None, order=None, subok=True) -> Value:
    """Ones of the shape and dtype of x."""
    return ones(*_like(x, dtype, shape, "ones_like"), device=device)


def empty_like(x, dtype=None, *, shape=None, device=None, order=None, subok=True) -> Value:
    """`zeros_like`."""
    return zeros_like(x, dtype, shape=shape, device=device)


def full_like(x, fill_value, dtype=None, *, shape=None, device=None, order=None, subok=True) -> Value:
    """`fill_value` in the shape and dtype of x."""
    shape, dtype = _like(x, dtype, shape, "full_like")
    return full(shape, fill_value, dtype, device=device)


# ---- ranges ----

def arange(start, stop=None, step=1, dtype=None, *, device=None) -> Value:
    """start, start + step, ... below `stop`; one argument counts from 0.

    int64 for ints, float64 for floats.  Raises ArgumentError for step 0 or traced bounds.

    >>> arange(3)
    tensor([0, 1, 2], int64, shape (3,), cpu)
    """
    check_device(device, "arange")
    if stop is None:
        start, stop = 0, start
    bounds = [_number(v, n) for v, n in ((start, "start"), (stop, "stop"), (step, "step"))]
    if bounds[2] == 0:
        raise ArgumentError("arange: step is not 0")
    dtype = optional_dtype(dtype)
    if dtype is not None and dtype.software:
        return tensor(np.arange(*bounds, dtype=np.float64), dtype)
    if bounds[0] == 0 and bounds[2] == 1 and isinstance(bounds[1], int) and dtype in (None, dtypes.int64):
        return iota.bind(shape=(builtins.max(bounds[1], 0),), axis=0, dtype=dtypes.int64)
    return constant(np.arange(*bounds, dtype=None if dtype is None else dtype.storage))


def _number(v, name):
    if isinstance(v, Value) and not isinstance(v, Tensor):
        raise ArgumentError(f"arange: {name} is traced, {v.aval}, but it decides a shape. Use "
                            "start + step * tl.arange(n), with n known.")
    return v.item() if isinstance(v, (Tensor, np.generic, np.ndarray)) else v


def linspace(start, stop, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype=None,
             axis: int = 0, *, device=None):
    """`num` values from `start` to `stop`, evenly spaced; differentiable in both.

    Entry k is start + k * step; the last is `stop` itself if `endpoint`.  With `retstep`, also
    the step.

    >>> linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], float64, shape (5,), cpu)
    """
    check_device(device, "linspace")
    num = int(num)
    if num < 0:
        raise ArgumentError(f"linspace: num is not negative, got {num}")
    a, b = one_dtype([as_array(start, "linspace"), as_array(stop, "linspace")])
    want = optional_dtype(dtype)
    inside = want if want is not None and dtypes.is_inexact(want) and not a.dtype.kind == "c" else \
        dtypes.float64 if a.aval.weak and a.dtype.kind != "c" else to_inexact(a.dtype)
    a, b = broadcast_values([as_dtype_value(v, inside) for v in (a, b)], "linspace")
    parts = num - 1 if endpoint else num
    step = (b - a) / parts if parts > 0 else b - a
    k = iota.bind(shape=(num,), axis=0, dtype=dtypes.int64)
    k = layout.reshape.bind(k, shape=(num, *(1,) * a.ndim))
    out = add(a, mul(as_dtype_value(k, inside), step)) if num else layout.zeros(make_aval((0, *a.shape), inside))
    if endpoint and num > 1:
        out = where(eq(k, num - 1), b, out)
    if want is not None and want.kind in "iu":
        out = floor(out)
    out = layout.moveaxis(in_dtype(out, dtype), 0, layout.normalize_axis(axis, out.ndim, "linspace"))
    return (out, step) if retstep else out


def logspace(start, stop, num: int = 50, endpoint: bool = True, base=10.0, dtype=None, axis: int = 0) -> Value:
    """base ** linspace(start, stop): values evenly spaced in their logarithm."""
    out = pow_(base, linspace(start, stop, num, endpoint, axis=axis))
    return in_dtype(out, dtype)


def geomspace(start, stop, num: int = 50, endpoint: bool = True, dtype=None, axis: int = 0) -> Value:
    """Values from `start` to `stop` in geometric progression; both have one sign."""
    a, b = as_array(start, "geomspace"), as_array(stop, "geomspace")
    ratio = log(b / a)
    out = a * exp(linspace(0.0, ratio, num, endpoint, axis=axis))
    if endpoint and num > 1:
        k = iota.bind(shape=(int(num), *(1,) * ratio.ndim), axis=0, dtype=dtypes.int64)
        out = where(eq(k, num - 1), b, out) if axis == 0 else out
    return in_dtype(out, dtype)


# ---- matrices and grids ----

def eye(n_rows, n_cols=None, k: int = 0, dtype=None, *, device=None, order=None) -> Value:
    """Ones on the k-th diagonal (k > 0 above the main one), zeros elsewhere.

    >>> eye(2)
    tensor([[1., 0.],
            [0., 1.]], float64, shape (2, 2), cpu)
    """
    check_device(device, "eye")
    shape = as_shape((n_rows, n_rows if n_cols is None else n_cols), "eye")
    row, column = (iota.bind(shape=shape, axis=a, dtype=dtypes.int64) for a in (0, 1))
    return convert(eq(sub(column, row), k), optional_dtype(dtype) or dtypes.float64)


def identity(n: int, dtype=None) -> Value:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def tri(n_rows, n_cols=None, k: int = 0, dtype=None) -> Value:
    """Ones at and below the k-th diagonal."""
    shape = as_shape((n_rows, n_rows if n_cols is None else n_cols), "tri")
    return convert(_below(shape, k), optional_dtype(dtype) or dtypes.float64)


def _below(shape, k):
    n = len(shape)
    row, column = (iota.bind(shape=shape, axis=n - 2 + a, dtype=dtypes.int64) for a in (0, 1))
    return le(sub(column, row), k)


def _matrix(x, name):
    x = as_array(x, name)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices, got shape {x.shape}")
    return x


def tril(x, k: int = 0) -> Value:
    """x (..., m, n) with zeros above the k-th diagonal."""
    x = _matrix(x, "tril")
    return where(_below(x.shape, k), x, layout.zero_of(x.dtype))


def triu(x, k: int = 0) -> Value:
    """x (..., m, n) with zeros below the k-th diagonal."""
    x = _matrix(x, "triu")
    n = x.ndim
    row, column = (iota.bind(shape=x.shape, axis=n - 2 + a, dtype=dtypes.int64) for a in (0, 1))
    return where(ge(sub(column, row), k), x, layout.zero_of(x.dtype))


def meshgrid(*arrays, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Value]:
    """Coordinate grids of 1-d arrays: one array of the full shape for each.

    indexing "xy" puts the first array along axis 1, "ij" along axis 0.

    >>> [g.shape for g in meshgrid(tl.arange(2), tl.arange(3))]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing is 'xy' or 'ij', got {indexing!r}")
    xs = [layout.reshape.bind(v, shape=(v.size,)) for v in (as_array(a, "meshgrid") for a in arrays)]
    n = len(xs)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shape = [0] * n
    for k, x in enumerate(xs):
        shape[order[k]] = x.shape[0]
    out = []
    for k, x in enumerate(xs):
        x = layout.reshape.bind(x, shape=tuple(x.shape[0] if a == order[k] else 1 for a in range(n)))
        out.append(x if sparse else broadcast_to(x, tuple(shape)))
    return out


def indices(dimensions, dtype=None) -> Value:
    """The index of every place of a grid: shape (len(dimensions), *dimensions)."""
    shape = as_shape(dimensions, "indices")
    dtype = optional_dtype(dtype) or dtypes.int64
    if dtype.kind not in "iuf":
        raise DTypeError(f"indices: {dtype} does not count")
    rows = [layout.reshape.bind(iota.bind(shape=shape, axis=a, dtype=dtype), shape=(1, *shape))
            for a in range(len(shape))]
    return concatenate.bind(*rows, axis=0) if rows else zeros((0,), dtype)
