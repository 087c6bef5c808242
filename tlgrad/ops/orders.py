"""The orders of summation, as loops over NumPy arrays: the definition of every ordered result.

    ordered  ((0 + p0) + p1) + ...           left to right, row-major index order
    fused    the same, each step fma(a, b, acc); a plain sum is that of `ordered`
    tree     leaves of LEAF consecutive terms, each left to right from +0; then neighbours are
             added pairwise, level by level; an odd last one moves up unchanged
    free     whatever is fastest

An accumulator `init` takes the place of the first +0 (in `tree`, it is added last, from the
left).  A sum that starts at +0 is never -0.
"""
from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache

import numpy as np

from tlgrad.core import dtypes
from tlgrad.errors import ArgumentError
from tlgrad.ops import meaning
from tlgrad.softfloat import array as softfloat

ORDERS = ("ordered", "fused", "tree", "free")
#: terms in a leaf of the tree order
LEAF = 128

_order: ContextVar[str] = ContextVar("tlgrad_order", default="ordered")
current_order = _order.get


class use_order:
    """Make `order` the default inside a ``with`` block (None: leave it)."""

    def __init__(self, order: str | None):
        self.order = check_order(order) if order is not None else None

    def __enter__(self):
        self.token = _order.set(self.order) if self.order else None

    def __exit__(self, *exc):
        if self.token:
            _order.reset(self.token)


def check_order(order: str | None) -> str:
    """The order asked for, or that of the run; ArgumentError lists the four."""
    if order is None:
        return _order.get()
    if order not in ORDERS:
        raise ArgumentError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    return order


def terms_first(x: np.ndarray, axes) -> np.ndarray:
    """Shape (terms, *kept): the reduced axes joined in row-major order, in front."""
    kept = [k for k in range(x.ndim) if k not in axes]
    moved = np.transpose(x, (*axes, *kept))
    n = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    return moved.reshape(n, *[x.shape[k] for k in kept])


def sum_axes(x: np.ndarray, axes, order: str, init=None) -> np.ndarray:
    """Sum of `x` along sorted `axes`, continuing from `init` of the result's shape."""
    if init is None and order in ("ordered", "fused") and adds_rows_in_order(x, axes):
        with np.errstate(all="ignore"):
            return np.add.reduce(x, axis=axes, dtype=x.dtype) + x.dtype.type(0)
    terms = terms_first(x, axes)
    if order == "free" and x.dtype.fields is None and init is None:
        return np.asarray(np.sum(terms, axis=0, dtype=x.dtype))
    if order == "tree":
        total = tree_sum(terms)
        return total if init is None else _add(init, total)
    return left_to_right(terms, init)


def adds_rows_in_order(x: np.ndarray, axes) -> bool:
    """True where np.add.reduce adds from left to right: it walks a C-ordered array row by row, and sums
    pairwise only along a last axis that it reduces.  Its sum starts at the first term, so adding +0
    afterwards gives the sum that started at +0.  Checked once on terms that show any other order.
    """
    return (x.dtype.char in "fd" and bool(axes) and x.flags.c_contiguous and x.ndim - 1 not in axes
            and x.shape[-1] > 1 and x.size > 0 and _numpy_adds_rows_in_order())


@lru_cache(maxsize=1)
def _numpy_adds_rows_in_order() -> bool:
    values = np.random.default_rng(0).choice([1e16, -1e16, 1.0, 0.1, -0.0], (3, 200, 5, 3))
    found = np.add.reduce(values, axis=(1, 2)) + 0.0
    terms = np.moveaxis(values, 0, 2).reshape(1000, 3, 3)
    return bool(np.array_equal(found, np.add.accumulate(terms, axis=0)[-1] + 0.0))


def _add(a, b):
    return meaning.implementation("add")(a, b)


def left_to_right(terms: np.ndarray, init=None) -> np.ndarray:
    """((init + t0) + t1) + ... along axis 0."""
    acc = np.zeros(terms.shape[1:], terms.dtype) if init is None else init
    if not acc.size:
        return np.asarray(acc)
    if terms.dtype.fields is None and terms.shape[0] > 64 and acc.size <= 16384:
        with np.errstate(all="ignore"):
            return _accumulate(terms, acc)
    if _is_software(terms):
        return softfloat.left_to_right(terms, acc, dtypes.of_storage(terms.dtype).format)
    for term in terms:
        acc = _add(acc, term)
    return np.asarray(acc)


def _is_software(array) -> bool:
    """Whether real sums of the array's format run on software words (bfloat16: through float32)."""
    if array.dtype.fields is None:
        return False
    dtype = dtypes.of_storage(array.dtype)
    return dtype is not dtypes.bfloat16 and dtype.kind == "f"


def _accumulate(terms, acc, block=4096):
    """The loop above by np.add.accumulate, which is left to right by definition."""
    for start in range(0, terms.shape[0], block):
        part = np.concatenate([acc[None], terms[start:start + block]])
        acc = np.add.accumulate(part, axis=0, dtype=terms.dtype)[-1]
    return np.asarray(acc)


def tree_sum(terms: np.ndarray) -> np.ndarray:
    """The documented tree along axis 0."""
    n = terms.shape[0]
    if n <= LEAF:
        return left_to_right(terms)
    whole = n // LEAF * LEAF
    leaves = left_to_right(np.moveaxis(terms[:whole].reshape(n // LEAF, LEAF, *terms.shape[1:]), 1, 0))
    if whole < n:
        leaves = np.concatenate([leaves, left_to_right(terms[whole:])[None]])
    return pairwise(leaves)


def pairwise(values: np.ndarray) -> np.ndarray:
    """Neighbours added level by level along axis 0; an odd last one moves up."""
    while values.shape[0] > 1:
        even = values.shape[0] // 2 * 2
        pairs = _add(values[0:even:2], values[1:even:2])
        values = pairs if even == values.shape[0] else np.concatenate([pairs, values[even:]])
    return values[0]


def contract(a: np.ndarray, b: np.ndarray, order: str, init=None) -> np.ndarray:
    """Sum over k of a[k] * b[k] (broadcast against each other after axis 0), in `order`."""
    shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
    if order == "tree":
        total = tree_contract(a, b, shape)
        return total if init is None else _add(init, total)
    acc = np.zeros(shape, a.dtype) if init is None else init
    if _is_software(a) and a.shape[-1] == b.shape[-2] == 1:
        return _contract_words(a, b, acc, order == "fused")
    if order == "fused" and dtypes.of_storage(a.dtype).kind == "f":
        fma = meaning.implementation("fma")
        for x, y in zip(a, b):
            acc = fma(np.broadcast_to(x, shape), np.broadcast_to(y, shape), acc)
    else:
        multiply = meaning.implementation("mul")
        for x, y in zip(a, b):
            acc = _add(acc, multiply(x, y))
    return np.asarray(acc)


def _contract_words(a, b, acc, fused):
    """`contract` of a software format: a [k, *batch, i, 1], b [k, *batch, 1, j], acc [*batch, i, j]."""
    fmt, out = dtypes.of_storage(a.dtype).format, np.empty(acc.shape, acc.dtype)
    for at in np.ndindex(acc.shape[:-2]):
        pick = (slice(None), *at)
        out[at] = softfloat.contract(a[pick][:, :, 0], b[pick][:, 0, :], acc[at], fmt, fused)
    return out


def tree_contract(a, b, shape):
    """The tree over products, leaf by leaf so that no array of all products is made."""
    n = a.shape[0]
    leaves = [contract(a[s:s + LEAF], b[s:s + LEAF], "ordered") for s in range(0, n, LEAF)]
    return pairwise(np.stack(leaves)) if leaves else np.zeros(shape, a.dtype)
