"""Primitives that move, add or drop entries, each beside its transpose.

    reverse     opposite order along axes                transposes to  itself
    pad         a value around and between entries                      slice
    slice       start:limit:stride                                      pad
    concatenate joins along an axis                                     slices
    iota        counts along an axis                                    (no operand)
"""
from __future__ import annotations

import numpy as np

from tlgrad.core.aval import make_aval
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.tensor import as_value, convert_array
from tlgrad.errors import ShapeError
from tlgrad.ops.define import documented, instantiate, linear
from tlgrad.ops.layout import broadcast, moveaxis, normalize_axis, reshaped, sum_axes, zero_of


# ---- reverse ----

def _reverse_abstract(x, *, axes):
    for axis in axes:
        normalize_axis(axis, x.ndim, "reverse")
    return x


reverse = linear("reverse", "Entries of x in opposite order along `axes`.",
                 impl=lambda x, *, axes: np.flip(x, axes), abstract=_reverse_abstract,
                 transpose=lambda ct, x, *, axes: [reverse.bind(ct, axes=axes)],
                 batch=lambda args, axes_in, size, *, axes: (
                     reverse.bind(moveaxis(args[0], axes_in[0], 0), axes=tuple(a + 1 for a in axes)), 0))


# ---- slice and pad ----

def _slice_abstract(x, *, starts, limits, strides):
    for n, a, b, s in zip(x.shape, starts, limits, strides, strict=True):
        if not 0 <= a <= b <= n or s < 1:
            raise ShapeError(f"slice: {starts}:{limits}:{strides} does not fit {x.shape}")
    return make_aval(tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides)), x.dtype, x.weak)


def _slice_transpose(ct, x, *, starts, limits, strides):
    shape = x.aval.shape
    high = tuple(n - (a + (m - 1) * s + 1 if m else a)
                 for n, a, s, m in zip(shape, starts, strides, ct.shape))
    return [pad.bind(ct, zero_of(ct.dtype), low=starts, high=high, interior=tuple(s - 1 for s in strides))]


def _slice_batch(args, axes, size, *, starts, limits, strides):
    x = moveaxis(args[0], axes[0], 0)
    return slice_.bind(x, starts=(0, *starts), limits=(size, *limits), strides=(1, *strides)), 0


slice_ = linear("slice", "Entries starts:limits:strides of x, one triple an axis.",
                impl=lambda x, *, starts, limits, strides: x[tuple(map(slice, starts, limits, strides))],
                abstract=_slice_abstract, transpose=_slice_transpose, batch=_slice_batch)


def _padded_shape(shape, low, high, interior):
    return tuple(a + b + n + max(n - 1, 0) * i for n, a, b, i in zip(shape, low, high, interior, strict=True))


def _pad_impl(x, value, *, low, high, interior):
    shape = _padded_shape(x.shape, low, high, interior)
    out = np.empty(shape, x.dtype)
    out[...] = value
    out[tuple(slice(a, a + (n - 1) * (i + 1) + 1 if n else a, i + 1)
              for n, a, i in zip(x.shape, low, interior))] = x
    return out


def _pad_abstract(x, value, *, low, high, interior):
    if value.shape != () or value.dtype is not x.dtype:
        raise ShapeError(f"pad: the value must be {x.dtype}[], got {value}")
    if min((*low, *high, *interior), default=0) < 0:
        raise ShapeError("pad: widths are not negative; use a slice to drop entries")
    return make_aval(_padded_shape(x.shape, low, high, interior), x.dtype, x.weak and value.weak)


def _pad_jvp(primals, tangents, **widths):
    x_dot, v_dot = map(instantiate, tangents)
    return pad.bind(*primals, **widths), pad.bind(x_dot, v_dot, **widths)


def _pad_transpose(ct, x, value, *, low, high, interior):
    shape = (x.aval if type(x) is Linear else x).shape
    starts, strides = low, tuple(i + 1 for i in interior)
    limits = tuple(a + (n - 1) * s + 1 if n else a for n, a, s in zip(shape, low, strides))
    inner = slice_.bind(ct, starts=starts, limits=limits, strides=strides)
    ct_value = None
    if type(value) is Linear:
        ct_value = sum_axes(ct, tuple(range(ct.ndim))) - sum_axes(inner, tuple(range(inner.ndim)))
    return [inner if type(x) is Linear else None, ct_value]


def _pad_batch(args, axes, size, *, low, high, interior):
    (x, value), (x_axis, v_axis) = args, axes
    x = moveaxis(x, x_axis, 0) if x_axis is not None else broadcast.bind(
        x, shape=(size, *x.shape), axes=tuple(range(1, x.ndim + 1)))
    widths = dict(low=(0, *low), high=(0, *high), interior=(0, *interior))
    if v_axis is None:
        return pad.bind(x, value, **widths), 0
    inside = pad.bind(broadcast.bind(as_value(np.True_), shape=x.shape, axes=()), as_value(np.False_), **widths)
    outer = broadcast.bind(value, shape=inside.shape, axes=(0,))
    return RULES_SELECT.bind(inside, pad.bind(x, zero_of(x.dtype), **widths), outer), 0


pad = documented(Primitive("pad", impl=_pad_impl, abstract=_pad_abstract, jvp=_pad_jvp,
                           transpose=_pad_transpose, batch=_pad_batch, kind="structural",
                           lower=("structural", "pad")),
                 "x with `value` low before, high after and interior between the entries of each axis.",
                 "x value")


# ---- concatenate ----

def _concatenate_abstract(*xs, axis):
    first = xs[0]
    for k, x in enumerate(xs):
        if x.dtype is not first.dtype or x.ndim != first.ndim or any(
                a != b for i, (a, b) in enumerate(zip(x.shape, first.shape)) if i != axis):
            raise ShapeError(f"concatenate along axis {axis}: operand {k} is {x}, operand 0 is {first}; "
                             "they must agree in dtype and in every other axis")
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    return make_aval(tuple(shape), first.dtype, all(x.weak for x in xs))


def _concatenate_jvp(primals, tangents, *, axis):
    return concatenate.bind(*primals, axis=axis), concatenate.bind(*map(instantiate, tangents), axis=axis)


def _concatenate_transpose(ct, *xs, axis):
    out, start = [], 0
    for x in xs:
        n = (x.aval if type(x) is Linear else x).shape[axis]
        out.append(slice_axis(ct, axis, start, start + n) if type(x) is Linear else None)
        start += n
    return out


def _concatenate_batch(args, axes, size, *, axis):
    xs = [broadcast.bind(x, shape=(size, *x.shape), axes=tuple(range(1, x.ndim + 1))) if k is None
          else moveaxis(x, k, 0) for x, k in zip(args, axes)]
    return concatenate.bind(*xs, axis=axis + 1), 0


concatenate = documented(
    Primitive("concatenate", impl=lambda *xs, axis: np.concatenate(xs, axis),
              abstract=_concatenate_abstract, jvp=_concatenate_jvp, transpose=_concatenate_transpose,
              batch=_concatenate_batch, kind="structural", lower=("structural", "concatenate")),
    "Operands joined along `axis`.", "*xs")


def _iota_impl(*, shape, axis, dtype):
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    return np.broadcast_to(convert_array(np.arange(shape[axis]), dtype).reshape(sizes), shape)


iota = documented(
    Primitive("iota", impl=_iota_impl, abstract=lambda *, shape, axis, dtype: make_aval(shape, dtype),
              nondiff="", kind="structural", lower=("structural", "iota")),
    "0, 1, 2, ... along `axis` of `shape`.", "")


# ---- helpers for rules and functions ----

#: the select primitive, set by `ops.logic`
RULES_SELECT: Primitive


def provide_select(prim):
    """Called once by `ops.logic`, which imports this module."""
    global RULES_SELECT
    RULES_SELECT = prim


def expand_dims(x, axes):
    """x with axes of size 1 at `axes` of the result."""
    axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    ndim = x.ndim + len(axes)
    axes = sorted(normalize_axis(a, ndim, "expand_dims") for a in axes)
    shape = list(x.shape)
    for a in axes:
        shape.insert(a, 1)
    if len(shape) != ndim or len(set(axes)) != len(axes):
        raise ShapeError(f"expand_dims: an axis is given twice: {tuple(axes)}")
    return reshaped(x, tuple(shape))


def slice_axis(x, axis: int, start: int, limit: int, stride: int = 1):
    """x[start:limit:stride] along one axis."""
    starts, limits, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice_.bind(x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))
