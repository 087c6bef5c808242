"""Large arrays made row-major by the kernels of `tlgrad.kernels.tiles.copy`."""
from __future__ import annotations

import functools

import numpy as np

from tlgrad.backends.numba_cpu.buffers import allocate
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.native import launcher
from tlgrad.kernels.tiles.copy import module, move_of

#: bytes from which a kernel is faster than NumPy
LARGE = 1 << 18


def contiguous(x: np.ndarray) -> np.ndarray:
    """The array itself when it is row-major, else a copy that is."""
    if x.nbytes < LARGE or x.flags.c_contiguous:
        return np.asarray(x, None, "C")
    return copied(x)


def copied(x: np.ndarray) -> np.ndarray:
    """A row-major copy; NumPy's where no axis of x is dense."""
    launch = _launch(x.shape, x.strides, x.dtype.itemsize)
    if launch is None:
        return x.copy("C")
    out = allocate(x.shape, x.dtype)
    launch(x, out)
    return out


@functools.lru_cache(1024)
def _launch(shape, strides, itemsize):
    move = move_of(shape, strides, itemsize)
    if move is None:
        return None
    return launcher().make(copy_kernel(move.kind, move.size), [0, 0], move.words, 0, move.turns, True)


@functools.cache
def copy_kernel(kind: str, size: int) -> int:
    """The address of the kernel for runs or squares of words of `size` bytes."""
    name = f"copy_{kind}_{size}"
    return build(module(kind, size, name), name)
