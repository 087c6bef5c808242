"""Memory for results: aligned to 64 bytes, large blocks taken from a pool.

A fresh large block costs a page fault per 4 KiB, about as much time as computing it.  The pool
keeps large blocks that nothing refers to any more and hands them out again.
"""
from __future__ import annotations

import sys
import threading

import numpy as np

from tlgrad.core.memory import ALIGN, ALIGNED, aligned
from tlgrad.kernels.fork import in_child

#: bytes from which the pool is used, and that it may keep
POOLED, LIMIT = 1 << 18, 1 << 29


class Pool:
    """Blocks by size.  A block is free when only the pool refers to it."""

    def __init__(self, limit: int = LIMIT):
        self.blocks: dict[int, list[np.ndarray]] = {}
        self.limit, self.total = limit, 0
        self.lock = threading.Lock()

    def take(self, size: int) -> np.ndarray:
        """A block of at least `size` bytes."""
        size = (size + ALIGN + 4095) & ~4095
        with self.lock:
            blocks = self.blocks.setdefault(size, [])
            for block in blocks:
                if sys.getrefcount(block) == 3:          # the list, the loop, the argument
                    return block
            block = np.empty(size, np.uint8)
            if self.total + size <= self.limit:
                self.total += size
                blocks.append(block)
            return block

    def holds(self, block) -> bool:
        """True when a block is one of the pool's."""
        with self.lock:
            return any(b is block for b in self.blocks.get(getattr(block, "nbytes", 0), ()))

    def clear(self):
        """Forget all blocks; those in use live on with their users."""
        with self.lock:
            self.blocks.clear()
            self.total = 0


pool = Pool()


@in_child
def _after_fork():
    pool.lock = threading.Lock()


def allocate(shape, dtype: np.dtype) -> np.ndarray:
    """An array without contents, row-major, aligned to 64 bytes when it is large."""
    out = np.empty(shape, dtype) if not shape else None
    if out is None:
        size = dtype.itemsize
        for n in shape:
            size *= n
        if size < ALIGNED:
            return np.empty(shape, dtype)
        block = np.empty(size + ALIGN, np.uint8) if size < POOLED else pool.take(size)
        out = aligned(shape, dtype, block)
    return out


def only_owner(array: np.ndarray) -> bool:
    """True when the variable of the caller is the only way to this memory."""
    if sys.getrefcount(array) > 3:                       # the caller's variable and two arguments
        return False
    base = array.base
    if base is None:
        return True
    return type(base) is np.ndarray and base.base is None and sys.getrefcount(base) <= 3 + pool.holds(base)
