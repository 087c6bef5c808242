"""Discrete Fourier transforms, unnormalised, each beside its transpose.

    fft    complex -> complex along axes     symmetric: its own transpose
    rfft   real -> half spectrum, one axis   transposes to  real part of fft of the padded spectrum
    irfft  half spectrum -> real, one axis   transposes to  weighted conjugate of rfft

Library-backed (pocketfft, through NumPy): outside the one-result rule.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.tensor import Tensor, frozen
from tlgrad.errors import DTypeError
from tlgrad.ops.arithmetic import conj, real
from tlgrad.ops.define import linear, mul
from tlgrad.ops.layout import broadcast, moveaxis, zero_of
from tlgrad.ops.shape import pad


def _needs(x, kinds, name):
    if x.dtype.kind not in kinds or x.dtype.software:
        raise DTypeError(f"{name} takes {'complex' if kinds == 'c' else 'real'} hardware numbers, got {x}")


# ---- complex ----

def _fft_impl(x, *, axes, inverse):
    if not axes:
        return x
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return transform(x, axes=axes, norm="forward" if inverse else "backward").astype(x.dtype, copy=False)


def _fft_abstract(x, *, axes, inverse):
    _needs(x, "c", "fft")
    return x.strong()


fft_p = linear(
    "fft", "Sum over j of x_j exp(-2 pi i j k / n) along `axes`; `inverse` turns the sign, without 1/n.",
    impl=_fft_impl, abstract=_fft_abstract, kind="general",
    transpose=lambda ct, x, *, axes, inverse: [fft_p.bind(ct, axes=axes, inverse=inverse)],
    batch=lambda args, at, size, *, axes, inverse: (
        fft_p.bind(moveaxis(args[0], at[0], 0), axes=tuple(a + 1 for a in axes), inverse=inverse), 0))


# ---- real to half spectrum ----

def _rfft_impl(x, *, axis):
    return np.fft.rfft(x, axis=axis).astype(dtypes.complex_dtype(dtypes.of_storage(x.dtype)).storage, copy=False)


def _rfft_abstract(x, *, axis):
    _needs(x, "f", "rfft")
    shape = list(x.shape)
    shape[axis] = shape[axis] // 2 + 1
    return make_aval(tuple(shape), dtypes.complex_dtype(x.dtype))


def _rfft_transpose(ct, x, *, axis):
    n = x.aval.shape[axis]
    high = tuple(n - ct.shape[axis] if k == axis else 0 for k in range(ct.ndim))
    none = (0,) * ct.ndim
    full = pad.bind(ct, zero_of(ct.dtype), low=none, high=high, interior=none)
    return [real(fft_p.bind(full, axes=(axis,), inverse=False))]


rfft_p = linear(
    "rfft", "The first n // 2 + 1 entries of the transform of a real x along `axis`.",
    impl=_rfft_impl, abstract=_rfft_abstract, transpose=_rfft_transpose, kind="general",
    batch=lambda args, at, size, *, axis: (rfft_p.bind(moveaxis(args[0], at[0], 0), axis=axis + 1), 0))


# ---- half spectrum to real ----

def _irfft_impl(x, *, axis, n):
    out = np.fft.irfft(x, n, axis=axis, norm="forward")
    return out.astype(dtypes.real_dtype(dtypes.of_storage(x.dtype)).storage, copy=False)


def _irfft_abstract(x, *, axis, n):
    _needs(x, "c", "irfft")
    if x.shape[axis] != n // 2 + 1:
        raise DTypeError(f"irfft of {n} entries takes {n // 2 + 1} along axis {axis}, got {x}")
    return make_aval((*x.shape[:axis], n, *x.shape[axis + 1:]), dtypes.real_dtype(x.dtype))


def _irfft_transpose(ct, x, *, axis, n):
    """Entries 0 and (n even) n/2 stand for themselves, the others for two conjugate ones."""
    weights = np.full(n // 2 + 1, 2.0, ct.dtype.storage)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    spectrum = conj(rfft_p.bind(ct, axis=axis))
    row = broadcast.bind(Tensor.own(frozen(weights)), shape=spectrum.shape, axes=(axis,))
    return [mul(spectrum, row)]


irfft_p = linear(
    "irfft", "The real transform, without 1/n, of the Hermitian spectrum whose first half is x.",
    impl=_irfft_impl, abstract=_irfft_abstract, transpose=_irfft_transpose, kind="general",
    batch=lambda args, at, size, *, axis, n: (irfft_p.bind(moveaxis(args[0], at[0], 0), axis=axis + 1, n=n), 0))
