"""Convolution and pooling of any rank.

Layout "last": images (batch, *space, channels), kernels (*window, channels in / groups, channels out).
Layout "first": images (batch, channels, *space), kernels (channels out, channels in / groups, *window).

Order: each output entry is a sum over the window in row-major order and, within one place of the
window, over the input channels; `order=` as in every contraction.  The window of `max_pool` is
searched in the same order: of equal entries the first has the derivative.
"""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, ShapeError
from tlgrad.numpy.arrays import as_array, one_dtype
from tlgrad.numpy.elementwise import as_inexact
from tlgrad.numpy.reductions import max as _max
from tlgrad.numpy.reductions import sum as _sum
from tlgrad.numpy.repeating import pad as _pad
from tlgrad.numpy.shaping import flip, moveaxis, reshape, swapaxes
from tlgrad.ops import arithmetic as ar
from tlgrad.ops.contract import contract_axes
from tlgrad.ops.layout import zero_of
from tlgrad.ops.promote import as_dtype_value
from tlgrad.ops.shape import concatenate, pad as pad_p, slice_axis

__all__ = ["conv", "conv_general", "conv_transpose", "max_pool", "avg_pool", "sum_pool", "patches",
           "convolve", "correlate"]

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _per_axis(value, n: int, name: str, what: str) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    if len(values) != n or any(int(v) < 1 for v in values):
        raise ArgumentError(f"{name}: {what} is a positive int or {n} of them, got {value!r}")
    return tuple(int(v) for v in values)


def _paddings(padding, sizes, windows, strides, dilations, name):
    """(before, after) for each spatial axis."""
    reach = [d * (w - 1) + 1 for w, d in zip(windows, dilations)]
    if isinstance(padding, str):
        kind = padding.lower()
        if kind == "valid":
            return [(0, 0)] * len(sizes)
        if kind == "full":
            return [(r - 1, r - 1) for r in reach]
        if kind == "same":
            totals = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(sizes, strides, reach)]
            return [(t // 2, t - t // 2) for t in totals]
        raise ArgumentError(f"{name}: padding is 'valid', 'same', 'full', or widths, got {padding!r}")
    if isinstance(padding, int):
        padding = [padding] * len(sizes)
    pairs = [(p, p) if isinstance(p, int) else tuple(map(int, p)) for p in padding]
    if len(pairs) != len(sizes):
        raise ArgumentError(f"{name}: padding has {len(pairs)} axes, the window has {len(sizes)}")
    return pairs


def _padded(x, pairs, mode, fill=None):
    """x (batch, *space, channels) with its spatial axes padded, or cut where a width is negative."""
    for axis, (low, high) in enumerate(pairs, 1):
        if low < 0 or high < 0:
            x = slice_axis(x, axis, max(-low, 0), x.shape[axis] - max(-high, 0))
    widths = [(0, 0), *[(max(a, 0), max(b, 0)) for a, b in pairs], (0, 0)]
    if not any(map(any, widths)):
        return x
    if fill is not None:
        return _pad(x, widths, constant_values=fill)
    if mode not in _MODES:
        raise ArgumentError(f"conv: padding_mode is one of {', '.join(_MODES)}, got {mode!r}")
    return _pad(x, widths, _MODES[mode])


def _windows(x, windows, strides, dilations, name):
    """(batch, out1, w1, out2, w2, ..., channels): every window, its axes in between."""
    for k, (w, s, d) in enumerate(zip(windows, strides, dilations)):
        axis = 1 + 2 * k
        n = x.shape[axis]
        count = (n - d * (w - 1) - 1) // s + 1
        if count < 1:
            raise ShapeError(f"{name}: a window of {w} (dilation {d}) does not fit spatial axis {k} of size {n}, "
                             "padding included")
        parts = [slice_axis(x, axis, i * d, i * d + (count - 1) * s + 1, s) for i in range(w)]
        parts = [reshape(p, (*p.shape[:axis + 1], 1, *p.shape[axis + 1:])) for p in parts]
        x = concatenate.bind(*parts, axis=axis + 1) if w > 1 else parts[0]
    return x


def _channels_last(x, layout, rank, name):
    if layout not in ("last", "first"):
        raise ArgumentError(f"{name}: layout is 'last' or 'first', got {layout!r}")
    if x.ndim != rank + 2:
        raise ShapeError(f"{name}: a window of {rank} axes takes images of {rank + 2} (batch, channels and "
                         f"{rank} of space), got shape {x.shape}")
    return moveaxis(x, 1, -1) if layout == "first" else x


def _dilated(x, factors):
    """Zeros between the entries of spatial axes."""
    if all(f == 1 for f in factors):
        return x
    none = (0,) * x.ndim
    return pad_p.bind(x, zero_of(x.dtype), low=none, high=none, interior=(0, *[f - 1 for f in factors], 0))


def conv(x, kernel, stride=1, padding="valid", dilation=1, *, input_dilation=1, groups: int = 1,
         layout: str = "last", padding_mode: str = "zeros", order: str | None = None) -> Value:
    """Convolution (cross-correlation, as in every network library) with a kernel of any rank.

    stride, dilation, input_dilation: an int or one for each axis.  padding: "valid", "same" (outputs are
    ceil(size / stride)), "full", a width, or one width or (before, after) pair for each axis.  groups:
    input and output channels fall into so many groups that do not mix.  padding_mode: "zeros",
    "reflect", "replicate", "circular".  Raises ShapeError naming axis and sizes.

    >>> conv(tl.tensor([[[1.0], [2.0], [4.0]]]), tl.ones((2, 1, 1))).shape
    (1, 2, 1)
    """
    x, kernel = one_dtype([as_array(x, "conv"), as_array(kernel, "conv")])
    x, kernel = (as_dtype_value(v, v.dtype) for v in (x, kernel))
    rank = kernel.ndim - 2
    if rank < 0:
        raise ShapeError("conv: a kernel has two channel axes and those of its window, "
                         f"got shape {kernel.shape}")
    x = _channels_last(x, layout, rank, "conv")
    kernel = moveaxis(kernel, (1, 0), (-2, -1)) if layout == "first" else kernel
    *windows, c_in, c_out = kernel.shape
    if x.shape[-1] != c_in * groups or c_out % groups:
        raise ShapeError(f"conv: the images have {x.shape[-1]} channels, the kernel takes {c_in} in each of "
                         f"{groups} groups and gives {c_out} (images {x.shape}, kernel {kernel.shape}, "
                         "channels last)")
    strides, dilations, spread = (_per_axis(v, rank, "conv", what) for v, what in (
        (stride, "stride"), (dilation, "dilation"), (input_dilation, "input_dilation")))
    x = _dilated(x, spread)
    x = _padded(x, _paddings(padding, x.shape[1:-1], windows, strides, dilations, "conv"), padding_mode)
    y = _contract(_windows(x, windows, strides, dilations, "conv"), kernel, rank, groups, order)
    return moveaxis(y, -1, 1) if layout == "first" else y


conv_general = conv


def _contract(x, kernel, rank, groups, order):
    """Windows (batch, out, w, ..., channels) with a kernel (*window, c_in, c_out)."""
    *_, c_in, c_out = kernel.shape
    window_axes, kernel_axes = tuple(range(2, 2 * rank + 1, 2)), tuple(range(rank))
    if groups == 1:
        last = x.ndim - 1
        return contract_axes(x, kernel, ((*window_axes, last), (*kernel_axes, rank)), order=order)
    x = reshape(x, (*x.shape[:-1], groups, c_in))
    kernel = reshape(kernel, (*kernel.shape[:-1], groups, c_out // groups))
    y = contract_axes(x, kernel, ((*window_axes, x.ndim - 1), (*kernel_axes, rank)),
                      ((x.ndim - 2,), (rank + 1,)), order=order)
    y = moveaxis(y, 0, -2)
    return reshape(y, (*y.shape[:-2], c_out))


def conv_transpose(x, kernel, stride=1, padding=0, dilation=1, *, output_padding=0, groups: int = 1,
                   layout: str = "last", order: str | None = None) -> Value:
    """The transpose of `conv` with the same kernel: x has its output channels, the result its input ones.

    Sizes: (n - 1) * stride - before - after + dilation * (w - 1) + 1 + output_padding.  Order as in
    `conv`, over the mirrored window.  padding: as in `conv`, widths or "valid".

    >>> conv_transpose(tl.ones((1, 3, 1)), tl.ones((2, 1, 1)), stride=2).shape
    (1, 6, 1)
    """
    kernel = as_array(kernel, "conv_transpose")
    rank = kernel.ndim - 2
    kernel = moveaxis(kernel, (1, 0), (-2, -1)) if layout == "first" else kernel
    *windows, c_in, c_out = kernel.shape
    if isinstance(padding, str) and padding != "valid":
        raise ArgumentError("conv_transpose: give padding as widths (several sizes have one 'same' convolution)")
    strides, dilations = (_per_axis(v, rank, "conv_transpose", "stride") for v in (stride, dilation))
    pairs = _paddings(padding, windows, windows, strides, dilations, "conv_transpose")
    extra = output_padding if isinstance(output_padding, (tuple, list)) else (output_padding,) * rank
    widths = [(d * (w - 1) - low, d * (w - 1) - high + e)
              for (low, high), w, d, e in zip(pairs, windows, dilations, extra)]
    mirrored = flip(kernel, tuple(range(rank))) if rank else kernel
    if groups > 1:
        split = reshape(mirrored, (*windows, c_in, groups, c_out // groups))
        mirrored = _grouped(split, windows)
    else:
        mirrored = swapaxes(mirrored, -1, -2)
    x = _channels_last(as_array(x, "conv_transpose"), layout, rank, "conv_transpose")
    y = conv(x, mirrored, 1, widths, dilation, input_dilation=strides, groups=groups, order=order)
    return moveaxis(y, -1, 1) if layout == "first" else y


def _grouped(split, windows):
    """(*window, c_in, groups, c_out / groups) as a kernel from outputs to inputs, group by group."""
    n = len(windows)
    moved = moveaxis(split, (n + 2, n + 1, n), (n, n + 1, n + 2))
    return reshape(moved, (*windows, moved.shape[n], moved.shape[n + 1] * moved.shape[n + 2]))


# ---- pooling ----

def patches(x, window, stride=1, padding="valid", dilation=1, *, layout: str = "last", fill=0) -> Value:
    """Every window of x: (batch, *out, *window, channels), padded with `fill`."""
    x, *rest, pairs = _pool_arguments(x, window, stride, padding, dilation, layout, "patches")
    x = _windows(_padded(x, pairs, "zeros", fill), *rest, "patches")
    n = len(rest[0])
    return moveaxis(x, tuple(range(2, 2 * n + 1, 2)), tuple(range(n + 1, 2 * n + 1)))


def _pool_arguments(x, window, stride, padding, dilation, layout, name):
    x = as_array(x, name)
    rank = len(window) if isinstance(window, (tuple, list)) else x.ndim - 2
    windows = _per_axis(window, rank, name, "window")
    strides = windows if stride is None else _per_axis(stride, rank, name, "stride")
    dilations = _per_axis(dilation, rank, name, "dilation")
    x = _channels_last(x, layout, rank, name)
    return x, windows, strides, dilations, _paddings(padding, x.shape[1:-1], windows, strides, dilations, name)


def _pooled(x, fill, reduce, windows, strides, dilations, pairs, layout, name):
    x = _windows(_padded(x, pairs, "zeros", fill), windows, strides, dilations, name)
    y = reduce(x, tuple(range(2, 2 * len(windows) + 1, 2)))
    return moveaxis(y, -1, 1) if layout == "first" else y


def max_pool(x, window, stride=None, padding="valid", dilation=1, *, layout: str = "last") -> Value:
    """Greatest entry of each window (stride: the window, by default); padding never wins.

    >>> max_pool(tl.tensor([[[1.0], [3.0], [2.0], [0.0]]]), 2).tolist()
    [[[3.0], [2.0]]]
    """
    x, *rest = _pool_arguments(x, window, stride, padding, dilation, layout, "max_pool")
    if x.dtype.kind not in "iuf":
        raise DTypeError(f"max_pool takes real numbers, got {x.aval}")
    least = -math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype.storage).min)
    return _pooled(x, least, _max, *rest, layout, "max_pool")


def sum_pool(x, window, stride=None, padding="valid", dilation=1, *, layout: str = "last",
             order: str | None = None) -> Value:
    """Sum of each window, row-major."""
    x, *rest = _pool_arguments(x, window, stride, padding, dilation, layout, "sum_pool")
    return _pooled(x, 0, lambda v, axes: _sum(v, axes, order=order), *rest, layout, "sum_pool")


def avg_pool(x, window, stride=None, padding="valid", dilation=1, *, layout: str = "last",
             count_include_pad: bool = False, order: str | None = None) -> Value:
    """Mean of each window; padding is not counted unless `count_include_pad`."""
    x = as_inexact(x, "avg_pool")
    x, *rest = _pool_arguments(x, window, stride, padding, dilation, layout, "avg_pool")
    narrow, x = x.dtype, as_dtype_value(x, dtypes.float32 if x.dtype.bits == 16 else x.dtype)
    total = _pooled(x, 0, lambda v, axes: _sum(v, axes, order=order), *rest, "last", "avg_pool")
    count = math.prod(rest[0])
    if not count_include_pad and any(map(any, rest[-1])):
        ones = as_array(np.ones((1, *x.shape[1:-1], 1)), "avg_pool")
        count = as_dtype_value(_pooled(ones, 0, _sum, *rest, "last", "avg_pool"), x.dtype)
    y = as_dtype_value(ar.div(total, count), narrow)
    return moveaxis(y, -1, 1) if layout == "first" else y


# ---- one-dimensional signals, under NumPy's names ----

def _signals(a, v, mode, name):
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"{name}: mode is 'full', 'same' or 'valid', got {mode!r}")
    a, v = one_dtype([as_array(a, name), as_array(v, name)])
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        raise ShapeError(f"{name} takes two 1-d arrays with entries, got shapes {a.shape} and {v.shape}")
    return a, v


def _slide(a, v, mode, order):
    """Sums of a[n + k] v[n] for every shift k; v is the shorter one."""
    n = v.shape[0]
    pairs = {"full": (n - 1, n - 1), "valid": (0, 0), "same": (n // 2, n - 1 - n // 2)}[mode]
    x, kernel = reshape(a, (1, a.shape[0], 1)), reshape(v, (n, 1, 1))
    return reshape(conv(x, kernel, padding=[pairs], order=order), (-1,))


def convolve(a, v, mode: str = "full", *, order: str | None = None) -> Value:
    """Sums over n of a[n] v[k - n] of two 1-d arrays; mode "full", "same" or "valid".

    >>> convolve(tl.tensor([1, 2, 3]), tl.tensor([1, 1]))
    tensor([1, 3, 5, 3], int64, shape (4,), cpu)
    """
    a, v = _signals(a, v, mode, "convolve")
    a, v = (v, a) if v.shape[0] > a.shape[0] else (a, v)
    return _slide(a, flip(v), mode, order)


def correlate(a, v, mode: str = "valid", *, order: str | None = None) -> Value:
    """Sums over n of a[n + k] conj(v[n]) of two 1-d arrays; mode "valid", "same" or "full"."""
    a, v = _signals(a, v, mode, "correlate")
    v = ar.conj(v) if v.dtype.kind == "c" else v
    if v.shape[0] > a.shape[0]:
        return flip(_slide(v, a, mode, order))
    return _slide(a, v, mode, order)
