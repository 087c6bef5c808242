"""Fourier transforms: values against NumPy, derivatives against the dense matrix of the transform."""
import numpy as np
import pytest

import tlgrad as tl
import tlgrad.fft as F
import tlgrad.numpy as tn
from tlgrad.errors import ArgumentError

rng = np.random.default_rng(0)
Z = rng.normal(size=(3, 4, 5)) + 1j * rng.normal(size=(3, 4, 5))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "fftn", "ifftn", "fft2", "ifft2", "irfft", "irfftn", "irfft2",
                                  "hfft", "rfft", "rfftn", "rfft2", "ihfft"])
def test_values(name, norm):
    x = Z.real if name in ("rfft", "rfftn", "rfft2", "ihfft") else Z
    assert np.allclose(getattr(F, name)(x, norm=norm), getattr(np.fft, name)(x, norm=norm), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 3, 4, 7, 8])
def test_cut_and_padded(n):
    assert np.allclose(F.fft(Z, n, axis=0), np.fft.fft(Z, n, axis=0))
    assert np.allclose(F.irfft(Z, n), np.fft.irfft(Z, n))
    assert np.allclose(F.rfft(Z.real, n), np.fft.rfft(Z.real, n))


@pytest.mark.parametrize("n", [3, 4, 7, 8])
def test_jacobian_of_a_spectral_filter_in_both_modes(n):
    weights = np.linspace(1, 2, n // 2 + 1)
    f = lambda v: F.irfft(F.rfft(v, n) * weights, n)
    columns = [np.fft.irfft(np.fft.rfft(row, n) * weights, n) for row in np.eye(5)]
    x = Z.real[0, 0]
    assert np.allclose(tl.jacrev(f)(x), np.stack(columns, 1), atol=1e-14)
    assert np.allclose(tl.jacfwd(f)(x), np.stack(columns, 1), atol=1e-14)


def test_gradient_of_energy_is_parseval():
    x = Z.real[0]
    g = tl.grad(lambda v: tn.sum(tn.abs(F.fftn(v))**2))(x)
    assert np.allclose(g, 2 * 20 * x)


def test_dtypes_and_frequencies():
    assert F.fft(np.float32([1, 2])).dtype == "complex64" and F.fft([1, 2]).dtype == "complex128"
    for n in (4, 5):
        assert np.array_equal(F.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
        assert np.array_equal(F.rfftfreq(n, 0.5), np.fft.rfftfreq(n, 0.5))
        assert np.array_equal(F.fftshift(np.arange(n)), np.fft.fftshift(np.arange(n)))
        assert np.array_equal(F.ifftshift(np.arange(n)), np.fft.ifftshift(np.arange(n)))


def test_batched_and_staged():
    assert np.allclose(tl.vmap(F.fft, in_axes=1)(Z), np.fft.fft(np.moveaxis(Z, 1, 0)))
    assert np.allclose(tl.run(lambda z: F.ifft(F.fft(z)))(Z), Z)


def test_bad_norm_and_size():
    with pytest.raises(ArgumentError, match="ortho"):
        F.fft(Z, norm="wrong")
    with pytest.raises(ArgumentError, match="positive"):
        F.fft(Z, 0)
