"""Signals under SciPy's names."""
from __future__ import annotations

import math

from tlgrad.conv import conv
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, ShapeError
from tlgrad.numpy.arrays import as_array, one_dtype
from tlgrad.numpy.shaping import flip, moveaxis, reshape
from tlgrad.ops import arithmetic as ar
from tlgrad.ops.shape import slice_axis

__all__ = ["convolve", "correlate", "fftconvolve"]


def convolve(a, b, mode: str = "full", method: str = "auto", *, axes=None, dot_axes=((), ())) -> Value:
    """Convolution of n-d arrays: "full", "same" (the size of a) or "valid".

    axes: (axes of a, axes of b) convolved with each other (default: all); dot_axes: pairs summed over;
    the result has the other axes of a, those of b, then the convolved ones.
    """
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"convolve: mode is 'full', 'same' or 'valid', got {mode!r}")
    a, b = one_dtype([as_array(v, "convolve") for v in (a, b)])
    if axes is None:
        if a.ndim != b.ndim:
            raise ShapeError(f"convolve: the arrays have {a.ndim} and {b.ndim} axes; say which axes= to convolve")
        axes = tuple(range(a.ndim)), tuple(range(b.ndim))
    (along_a, along_b), (dot_a, dot_b) = axes, dot_axes
    rest = [[k for k in range(v.ndim) if k not in along and k not in dot]
            for v, along, dot in ((a, along_a, dot_a), (b, along_b, dot_b))]
    space = [tuple(v.shape[k] for k in along) for v, along in ((a, along_a), (b, along_b))]
    lead = [tuple(v.shape[k] for k in r) for v, r in ((a, rest[0]), (b, rest[1]))]
    channels = math.prod(a.shape[k] for k in dot_a)
    images = reshape(moveaxis(a, (*rest[0], *along_a, *dot_a), tuple(range(a.ndim))),
                     (math.prod(lead[0]), *space[0], channels))
    kernel = reshape(moveaxis(b, (*along_b, *dot_b, *rest[1]), tuple(range(b.ndim))),
                     (*space[1], channels, math.prod(lead[1])))
    kernel = flip(kernel, tuple(range(len(space[1])))) if space[1] else kernel
    y = moveaxis(conv(images, kernel, padding="full"), -1, 1)
    for axis, (n, m) in enumerate(zip(*space), 2):
        start, size = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n),
                       "valid": (min(n, m) - 1, max(n, m) - min(n, m) + 1)}[mode]
        y = slice_axis(y, axis, start, start + size)
    return reshape(y, (*lead[0], *lead[1], *y.shape[2:]))


fftconvolve = convolve


def correlate(a, b, mode: str = "full", method: str = "auto") -> Value:
    """Cross-correlation of n-d arrays: convolution with the mirrored, conjugated b."""
    b = as_array(b, "correlate")
    return convolve(a, flip(ar.conj(b) if b.dtype.kind == "c" else b), mode)
