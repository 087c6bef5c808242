"""Sums in the order "tree" on kernels: leaves of LEAF terms each, then neighbours level by level.

Leaves are made a power of two at a time and added up at once, which is part of the same tree, so that
about sqrt(leaves) results are held, or what takes little memory.
"""
from __future__ import annotations

from functools import partial

import numpy as np

from tlgrad.backends.numba_cpu.buffers import allocate
from tlgrad.backends.numba_cpu.contraction import ROWS_AT
from tlgrad.backends.numba_cpu.shares import Shares
from tlgrad.ops.orders import LEAF, pairwise


#: bytes of results that may be held in any case
HELD = 1 << 18


def _shares(leaves: int, size: int) -> list[tuple[int, int]]:
    """Runs of leaves of so many bytes, each of a power of two; the last is what is left."""
    step = 1 << max((leaves.bit_length() + 1) // 2, (HELD // size).bit_length() - 1)
    return [(k, min(k + step, leaves)) for k in range(0, leaves, step)]


def _total(shares, shape, dtype, *arrays):
    """The tree over leaves: `shares` has (number of leaves, launches that write them)."""
    totals = []
    for count, launches in shares:
        out = allocate((count, *shape), dtype)
        for launch in launches:
            launch(*arrays, out)
        with np.errstate(all="ignore"):
            totals.append(pairwise(out))
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(pairwise(np.stack(totals))).reshape(shape)


def continued(start, total):
    """What a sum continues from, and the total of its tree."""
    with np.errstate(all="ignore"):
        return np.asarray(start + total)


def tree_of_sums(found, kernel: int, aval):
    """A function of the operands' arrays: a `Sum` whose items start with the leaf."""
    per, size = found.items // found.leaves, aval.size * aval.dtype.itemsize
    shares = []
    for lo, hi in _shares(found.leaves, size):
        offsets = [*found.offsets[:-1], found.offsets[-1] - lo * size]
        time = found.time * (hi - lo) / found.leaves
        launch = Shares(kernel, (hi - lo) * per, time, first=lo * per).launch(offsets, found.words, True)
        shares.append((hi - lo, [launch]))
    return partial(_total, shares, aval.shape, aval.dtype.storage)


def tree_of_products(product, kernel: int, offsets: list[int], aval):
    """A function of the operands' arrays: a contraction on tiles, one launch a leaf."""
    batch, m, n, k = product.sizes
    size = aval.dtype.itemsize
    shares = []
    for lo, hi in _shares(product.leaves, aval.size * size):
        launches = []
        for leaf in range(lo, hi):
            first = leaf * LEAF
            starts = [o + first * side.terms * size for o, side in zip(offsets, (product.a, product.b))]
            terms = min(LEAF, k - first)
            launches.append(product.shares(kernel, terms).launch_by_rows(
                [*starts, (leaf - lo) * aval.size * size], product.words(True, terms), ROWS_AT, batch, True))
        shares.append((hi - lo, launches))
    return partial(_total, shares, aval.shape, aval.dtype.storage)
