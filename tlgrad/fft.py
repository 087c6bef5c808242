"""Discrete Fourier transforms under NumPy's names; differentiable in every mode.

norm: "backward" (1/n in the inverse, default), "ortho" (1/sqrt(n) in both), "forward" (1/n in the
forward one).  Library-backed (pocketfft): outside the one-result rule, CPU only.
"""
from __future__ import annotations

import math

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, ShapeError
from tlgrad.numpy.arrays import as_array, axes_of, check_device
from tlgrad.numpy.creation import arange
from tlgrad.numpy.shaping import roll
from tlgrad.ops import arithmetic as ar
from tlgrad.ops.convert import convert
from tlgrad.ops.fft import fft_p, irfft_p, rfft_p
from tlgrad.ops.layout import normalize_axis, zero_of
from tlgrad.ops.shape import pad, slice_axis

__all__ = ["fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "rfftn",
           "irfftn", "hfft", "ihfft", "fftfreq", "rfftfreq", "fftshift", "ifftshift"]

_NARROW = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}


def _floating(x, name):
    x = as_array(x, name)
    x = x if dtypes.is_inexact(x.dtype) else convert(x, dtypes.float64)
    if x.dtype in _NARROW:
        return convert(x, _NARROW[x.dtype])
    if x.dtype.software:
        raise DTypeError(f"{name}: pocketfft has no {x.dtype}; convert to float64")
    return convert(x, x.dtype)


def _as_complex(x, name):
    x = _floating(x, name)
    return convert(x, dtypes.complex_dtype(x.dtype))


def _as_real(x, name):
    x = _floating(x, name)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name} takes real numbers, got {x.aval}; use tl.fft.fft")
    return x


def fit(x: Value, axis: int, n: int | None, name: str) -> Value:
    """x cut or padded with zeros at the end to `n` entries along `axis`."""
    have = x.shape[axis]
    n = have if n is None else int(n)
    if n < 1:
        raise ArgumentError(f"{name}: the number of points is positive, got {n} (axis {axis} of {x.shape})")
    if n <= have:
        return x if n == have else slice_axis(x, axis, 0, n)
    high = tuple(n - have if k == axis else 0 for k in range(x.ndim))
    none = (0,) * x.ndim
    return pad.bind(x, zero_of(x.dtype), low=none, high=high, interior=none)


def _scaled(x, n: int, norm, inverse: bool, name: str):
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    if norm == "ortho":
        return ar.div(x, math.sqrt(n))
    return ar.div(x, n) if (norm == "forward") != inverse else x


def _axes_and_sizes(x, s, axes, name):
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    axes = tuple(normalize_axis(a, x.ndim, name) for a in axes)
    sizes = [None] * len(axes) if s is None else [None if n in (None, -1) else n for n in s]
    if len(sizes) != len(axes):
        raise ShapeError(f"{name}: {len(sizes)} sizes for {len(axes)} axes")
    return axes, sizes


def _transform(x, s, axes, norm, inverse, name):
    x = _as_complex(x, name)
    axes, sizes = _axes_and_sizes(x, s, axes, name)
    for a, n in zip(axes, sizes):
        x = fit(x, a, n, name)
    total = math.prod(x.shape[a] for a in axes)
    for a in dict.fromkeys(axes):
        for _ in range(axes.count(a)):
            x = fft_p.bind(x, axes=(a,), inverse=inverse)
    return _scaled(x, total, norm, inverse, name)


def fft(x, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Discrete Fourier transform along one axis: y_k = sum over j of x_j exp(-2 pi i j k / n).

    x is cut or padded with zeros to `n` points.  complex64 for float32 and narrower, else complex128.

    >>> fft(tl.tensor([1.0, 0.0, 0.0, 0.0])).real
    tensor([1., 1., 1., 1.], float64, shape (4,), cpu)
    """
    return _transform(x, (n,), (axis,), norm, False, "fft")


def ifft(x, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Inverse of `fft`."""
    return _transform(x, (n,), (axis,), norm, True, "ifft")


def fftn(x, s=None, axes=None, norm: str | None = None) -> Value:
    """`fft` along several axes (default: all), cut or padded to sizes `s`."""
    return _transform(x, s, axes, norm, False, "fftn")


def ifftn(x, s=None, axes=None, norm: str | None = None) -> Value:
    """Inverse of `fftn`."""
    return _transform(x, s, axes, norm, True, "ifftn")


def fft2(x, s=None, axes=(-2, -1), norm: str | None = None) -> Value:
    """`fft` along two axes."""
    return _transform(x, s, axes, norm, False, "fft2")


def ifft2(x, s=None, axes=(-2, -1), norm: str | None = None) -> Value:
    """Inverse of `fft2`."""
    return _transform(x, s, axes, norm, True, "ifft2")


def rfft(x, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The first n // 2 + 1 entries of `fft` of real x; the others are their conjugates."""
    return rfftn(x, (n,), (axis,), norm)


def rfftn(x, s=None, axes=None, norm: str | None = None) -> Value:
    """`fftn` of real x; the last of `axes` holds half the spectrum."""
    x = _as_real(x, "rfftn")
    axes, sizes = _axes_and_sizes(x, s, axes, "rfftn")
    for a, n in zip(axes, sizes):
        x = fit(x, a, n, "rfftn")
    total = math.prod(x.shape[a] for a in axes)
    y = rfft_p.bind(x, axis=axes[-1])
    y = fft_p.bind(y, axes=axes[:-1], inverse=False) if axes[:-1] else y
    return _scaled(y, total, norm, False, "rfftn")


def rfft2(x, s=None, axes=(-2, -1), norm: str | None = None) -> Value:
    """`rfftn` along two axes."""
    return rfftn(x, s, axes, norm)


def irfft(x, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Inverse of `rfft`: `n` real entries (default 2 (m - 1)) of a half spectrum of m."""
    return irfftn(x, (n,), (axis,), norm)


def irfftn(x, s=None, axes=None, norm: str | None = None) -> Value:
    """Inverse of `rfftn`; the last size defaults to 2 (m - 1)."""
    x = _as_complex(x, "irfftn")
    axes, sizes = _axes_and_sizes(x, s, axes, "irfftn")
    last, n = axes[-1], sizes[-1]
    n = 2 * (x.shape[last] - 1) if n is None else int(n)
    if n < 1:
        raise ArgumentError(f"irfftn: the number of points is positive, got {n} (shape {x.shape}, axis {last})")
    for a, m in zip(axes, [*sizes[:-1], n // 2 + 1]):
        x = fit(x, a, m, "irfftn")
    total = math.prod(x.shape[a] for a in axes[:-1]) * n
    x = fft_p.bind(x, axes=axes[:-1], inverse=True) if axes[:-1] else x
    return _scaled(irfft_p.bind(x, axis=last, n=n), total, norm, True, "irfftn")


def irfft2(x, s=None, axes=(-2, -1), norm: str | None = None) -> Value:
    """Inverse of `rfft2`."""
    return irfftn(x, s, axes, norm)


_OTHER = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Transform of a signal with Hermitian symmetry, given by its first half: real."""
    if norm not in _OTHER:
        raise ArgumentError(f"hfft: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    return irfft(ar.conj(_as_complex(x, "hfft")), n, axis, _OTHER[norm])


def ihfft(x, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Inverse of `hfft`: half of a Hermitian signal."""
    if norm not in _OTHER:
        raise ArgumentError(f"ihfft: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    return ar.conj(rfft(x, n, axis, _OTHER[norm]))


def fftfreq(n: int, d: float = 1.0, *, dtype=None, device=None) -> Value:
    """Frequencies of the entries of `fft`, in cycles per unit of the sample spacing `d`.

    >>> fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25], float64, shape (4,), cpu)
    """
    check_device(device, "fftfreq")
    k = np.concatenate([np.arange((n - 1) // 2 + 1), np.arange(-(n // 2), 0)])
    return convert(ar.div(convert(as_array(k, "fftfreq"), dtypes.float64), n * d), dtype or dtypes.float64)


def rfftfreq(n: int, d: float = 1.0, *, dtype=None, device=None) -> Value:
    """Frequencies of the entries of `rfft`."""
    check_device(device, "rfftfreq")
    return convert(ar.div(convert(arange(n // 2 + 1), dtypes.float64), n * d), dtype or dtypes.float64)


def fftshift(x, axes=None) -> Value:
    """x with frequency 0 moved to the middle of `axes` (default: all)."""
    x = as_array(x, "fftshift")
    axes = axes_of(axes, x.ndim, "fftshift")
    return roll(x, tuple(x.shape[a] // 2 for a in axes), axes) if axes else x


def ifftshift(x, axes=None) -> Value:
    """Inverse of `fftshift`."""
    x = as_array(x, "ifftshift")
    axes = axes_of(axes, x.ndim, "ifftshift")
    return roll(x, tuple(-(x.shape[a] // 2) for a in axes), axes) if axes else x
