"""The primitives that every transform needs: broadcast and its transpose reduce_sum, reshape,
transpose.

    broadcast : repeats along new or stretched axes      transposes to  reduce_sum
    reduce_sum: adds up axes, in a stated order          transposes to  broadcast
"""
from __future__ import annotations

from math import prod

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.execute import WORTH_A_KERNEL, Heavy, backend
from tlgrad.core.primitive import Linear
from tlgrad.core.tensor import Tensor, frozen
from tlgrad.core.writing import view
from tlgrad.errors import ShapeError
from tlgrad.kernels.tiles.copy import stays_view
from tlgrad.ops import define, orders
from tlgrad.ops.define import documented, linear


def normalize_axis(axis: int, ndim: int, name: str) -> int:
    """A non-negative axis; ShapeError names the function, the axis and the rank."""
    if not isinstance(axis, (int, np.integer)) or not -ndim <= axis < max(ndim, 1) or ndim == 0:
        raise ShapeError(f"{name}: axis {axis!r} does not exist in a value of {ndim} axes")
    return int(axis) % ndim


# ---- broadcast ----

def _broadcast_impl(x, *, shape, axes):
    sizes = [1] * len(shape)
    for k, axis in enumerate(axes):
        sizes[axis] = x.shape[k]
    return np.broadcast_to(x.reshape(sizes), shape)


def _broadcast_abstract(x, *, shape, axes):
    if len(axes) != x.ndim or any(x.shape[k] not in (1, shape[a]) for k, a in enumerate(axes)):
        raise ShapeError(f"broadcast: {x.shape} along axes {axes} does not fit {shape}")
    return make_aval(shape, x.dtype, x.weak)


def _broadcast_transpose(ct, x, *, shape, axes):
    stretched = [a for k, a in enumerate(axes) if x.aval.shape[k] != shape[a]]
    fresh = [a for a in range(len(shape)) if a not in axes]
    return [reshape.bind(sum_axes(ct, tuple(sorted(stretched + fresh))), shape=x.aval.shape)]


def _broadcast_batch(args, axes_in, size, *, shape, axes):
    x = moveaxis(args[0], axes_in[0], 0)
    return broadcast.bind(x, shape=(size, *shape), axes=(0, *[a + 1 for a in axes])), 0


broadcast = linear("broadcast", """
    Repeat x into `shape`: its axis k becomes axis `axes[k]`, and sizes 1 stretch.
    """, impl=_broadcast_impl, abstract=_broadcast_abstract, transpose=_broadcast_transpose,
    batch=_broadcast_batch)


# ---- reshape, transpose, reverse ----

def _reshape_abstract(x, *, shape):
    if prod(shape) != x.size:
        raise ShapeError(f"reshape: {x.shape} has {x.size} entries, {shape} has {prod(shape)}")
    return make_aval(shape, x.dtype, x.weak)


def _reshape_eager(x, *, shape):
    """x.reshape(shape); where that copies much, the backend of the CPU does it."""
    if x.nbytes < WORTH_A_KERNEL or x.flags.c_contiguous or stays_view(x.shape, x.strides, shape):
        return x.reshape(shape)
    return backend("cpu").contiguous(x).reshape(shape)


reshape = linear("reshape", "Entries of x in row-major order, in another shape.",
                 impl=lambda x, *, shape: x.reshape(shape), abstract=_reshape_abstract,
                 eager=_reshape_eager,
                 transpose=lambda ct, x, *, shape: [reshape.bind(ct, shape=x.aval.shape)],
                 batch=lambda args, axes, size, *, shape: (
                     reshape.bind(moveaxis(args[0], axes[0], 0), shape=(size, *shape)), 0))


def _transpose_abstract(x, *, perm):
    if sorted(perm) != list(range(x.ndim)):
        raise ShapeError(f"transpose: {perm} is not an order of the {x.ndim} axes of {x.shape}")
    return make_aval(tuple(x.shape[p] for p in perm), x.dtype, x.weak)


def _transpose_batch(args, axes, size, *, perm):
    x = moveaxis(args[0], axes[0], 0)
    return transpose.bind(x, perm=(0, *[p + 1 for p in perm])), 0


transpose = linear("transpose", "Axes of x in the order `perm`.",
                   impl=lambda x, *, perm: np.transpose(x, perm), abstract=_transpose_abstract,
                   transpose=lambda ct, x, *, perm: [
                       transpose.bind(ct, perm=tuple(int(i) for i in np.argsort(perm)))],
                   batch=_transpose_batch)


# ---- reduce_sum ----

def reduced_shape(shape, axes):
    """`shape` without `axes`."""
    return tuple(n for k, n in enumerate(shape) if k not in axes)


def _sum_abstract(x, *init, axes, order):
    if tuple(sorted(set(axes))) != axes or axes and not 0 <= axes[0] <= axes[-1] < x.ndim:
        raise ShapeError(f"reduce_sum: axes {axes} are not sorted axes of {x.shape}")
    out = make_aval(reduced_shape(x.shape, axes), x.dtype, x.weak)
    if init and init[0].strong() != out.strong():
        raise ShapeError(f"sum: init= must be {out.strong()}, got {init[0]}")
    return out


def _sum_jvp(primals, tangents, **params):
    y = reduce_sum.bind(*primals, **params)
    if len(primals) == 1:
        return y, reduce_sum.bind(*tangents, **params)
    x_dot, init_dot = tangents
    if type(x_dot) is define.Zero:
        return y, init_dot
    return y, reduce_sum.bind(x_dot, *[] if type(init_dot) is define.Zero else [init_dot], **params)


def _sum_transpose(ct, x, *init, axes, order):
    kept = tuple(k for k in range(len(x.aval.shape)) if k not in axes)
    x_bar = broadcast.bind(ct, shape=x.aval.shape, axes=kept) if type(x) is Linear else None
    return [x_bar, *[ct if type(v) is Linear else None for v in init]]


def _sum_batch(args, axes_in, size, *, axes, order):
    values = [moveaxis(v, k, 0) if k is not None else
              broadcast.bind(v, shape=(size, *v.shape), axes=tuple(range(1, v.ndim + 1)))
              for v, k in zip(args, axes_in)]
    return reduce_sum.bind(*values, axes=tuple(a + 1 for a in axes), order=order), 0


def _sum_impl(x, *init, axes, order):
    return orders.sum_axes(x, axes, order, init[0] if init else None)


def _sum_work(x, *init, axes, order):
    return 0 if order in ("tree", "free") else x.size


reduce_sum = documented(
    Heavy("reduce_sum", work=_sum_work, impl=_sum_impl, abstract=_sum_abstract, jvp=_sum_jvp,
          transpose=_sum_transpose, batch=_sum_batch, kind="reduction", lower=("reduction", "add")),
    "Entries added up along `axes` in `order`, continuing from `init` (default +0).", "x init")


def sum_axes(x, axes, order: str | None = None):
    """reduce_sum under the order of the run; narrow floats accumulate in float32, rounding once."""
    if not axes:
        return x
    dtype = x.dtype
    order = order or orders.current_order()
    if dtypes.accumulator(dtype) is not dtype:
        wide = define.RULES.convert(x, dtypes.float32)
        return define.RULES.convert(reduce_sum.bind(wide, axes=axes, order=order), dtype)
    return reduce_sum.bind(x, axes=axes, order=order)


# ---- helpers ----

def zero_of(dtype, weak: bool = False) -> Tensor:
    """Zero of shape () in `dtype`."""
    return Tensor.own(frozen(np.zeros((), dtype.storage)), weak)


def zeros(aval):
    """Zeros of an aval: a stretched 0-d constant."""
    zero = zero_of(aval.dtype, aval.weak)
    return zero if aval.shape == () else broadcast.bind(zero, shape=aval.shape, axes=())


def reshaped(x, shape):
    """x in another shape: a view for code that may assign to it."""
    if shape == x.shape:
        return x
    own = x.shape
    return view(reshape.bind(x, shape=shape), x, lambda b: reshape.bind(b, shape=shape),
                lambda _, v: reshape.bind(v, shape=own))


def permuted(x, perm):
    """x with its axes in another order: a view for code that may assign to it."""
    inverse = tuple(map(int, np.argsort(perm))) if perm else ()
    return view(transpose.bind(x, perm=perm), x, lambda b: transpose.bind(b, perm=perm),
                lambda _, v: transpose.bind(v, perm=inverse))


def moveaxis(x, source: int, to: int):
    """x with one axis moved; the others keep their order."""
    if source == to:
        return x
    perm = [i for i in range(x.ndim) if i != source]
    perm.insert(to, source)
    return transpose.bind(x, perm=tuple(perm))


def sum_to(ct, shape):
    """A cotangent of an operand of shape () or of the full shape."""
    return ct if ct.shape == shape else sum_axes(ct, tuple(range(ct.ndim)))


define.RULES.broadcast = lambda x, shape, axes: broadcast.bind(x, shape=tuple(shape), axes=tuple(axes))
define.RULES.moveaxis = moveaxis
define.RULES.sum_to = sum_to
define.RULES.zeros = zeros
