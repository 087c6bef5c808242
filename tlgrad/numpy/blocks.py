"""Reading and writing at run-time places, and the general contraction, by their primitives' names."""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError
from tlgrad.numpy.arrays import as_array
from tlgrad.ops import contract, index, logic, orders, promote, shape
from tlgrad.ops.layout import normalize_axis

__all__ = ["dynamic_slice", "dynamic_update_slice", "gather", "scatter", "scatter_add", "dot_general",
           "iota", "reverse", "select"]


def dynamic_slice(x, starts, sizes) -> Value:
    """The block of `sizes` of x that begins at run-time `starts` (one integer an axis).

    Shape: sizes.  Raises OutOfBoundsError when the block does not fit, ShapeError when the counts
    of starts and sizes are not the rank of x.

    >>> dynamic_slice(tl.arange(6), (2,), (3,))
    tensor([2, 3, 4], int64, shape (3,), cpu)
    """
    return index.dynamic_slice.bind(as_array(x, "dynamic_slice"), *_starts(starts),
                                    sizes=tuple(int(n) for n in sizes))


def dynamic_update_slice(x, update, starts) -> Value:
    """x with the block that begins at run-time `starts` replaced by `update` (same dtype).

    >>> dynamic_update_slice(tl.zeros(4), tl.ones(2), (1,))
    tensor([0., 1., 1., 0.], float64, shape (4,), cpu)
    """
    x = as_array(x, "dynamic_update_slice")
    update = promote.as_dtype_value(as_array(update, "dynamic_update_slice"), x.dtype)
    return index.dynamic_update_slice.bind(x, update, *_starts(starts))


def _starts(starts):
    return [promote.as_dtype_value(_integers(s, "a start"), dtypes.int64) for s in starts]


def _integers(x, what: str) -> Value:
    x = as_value(x, what)
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(f"{what} is an integer, got {x.aval}; write tl.convert(i, tl.int64)")
    return x


def _places(x, indices, axes, name):
    """x, integer indices of shape (..., k), and k axes."""
    x = as_array(x, name)
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    indices = _integers(as_array(indices, name), f"the indices of {name}")
    return x, indices, tuple(normalize_axis(a, x.ndim, name) for a in axes)


def gather(x, indices, axes=(0,)) -> Value:
    """Entries of x at `indices` along `axes`.

    `indices` has shape (*i, k) with one column for each of the k axes; the result has shape
    (*i, *rest).  Places outside x are an OutOfBoundsError.  x[i] and tl.take are easier to read.

    >>> gather(tl.tensor([[1, 2], [3, 4]]), [[1, 0], [0, 1]], axes=(0, 1))
    tensor([3, 2], int64, shape (2,), cpu)
    """
    x, indices, axes = _places(x, indices, axes, "gather")
    return index.gather.bind(x, indices, axes=axes)


def scatter(x, indices, updates, axes=(0,), mode: str = "set") -> Value:
    """x with its entries at `indices` changed by `updates`: mode set, add, mul, min or max.

    Layout as `gather`; several updates of one entry act in row-major order of the indices.
    x.at[i].set(v) is easier to read.

    >>> scatter(tl.zeros(3), [[0], [0], [2]], [1.0, 2.0, 3.0], mode="add")
    tensor([3., 0., 3.], float64, shape (3,), cpu)
    """
    if mode not in ("set", "add", "mul", "min", "max"):
        raise ArgumentError(f"scatter: mode is set, add, mul, min or max, got {mode!r}")
    x, indices, axes = _places(x, indices, axes, "scatter")
    updates = promote.as_dtype_value(as_array(updates, "scatter"), x.dtype)
    return index.scatter.bind(x, indices, updates, axes=axes, mode=mode)


def scatter_add(x, indices, updates, axes=(0,)) -> Value:
    """x with `updates` added to its entries at `indices`, in row-major order of the indices."""
    return scatter(x, indices, updates, axes, mode="add")


def dot_general(x, y, contract_axes, batch_axes=((), ()), *, order: str | None = None, init=None) -> Value:
    """Sum over shared axes of products of x and y.

    contract_axes, batch_axes: pairs of tuples (axes of x, axes of y).  Result axes: batch, the rest
    of x, the rest of y.  order: "ordered", "fused", "tree" or "free" (that of the run if not
    given).  init: an accumulator of the result's shape to continue from.

    >>> dot_general(tl.ones((2, 3)), tl.ones((3, 4)), ((1,), (0,))).shape
    (2, 4)
    """
    x, y = (as_array(v, "dot_general") for v in (x, y))
    dtype, weak = promote.common_dtype([x, y])
    x, y = (promote.as_dtype_value(v, dtype, weak) for v in (x, y))
    pairs = [tuple(tuple(normalize_axis(a, v.ndim, "dot_general") for a in axes)
                   for v, axes in zip((x, y), pair)) for pair in (contract_axes, batch_axes)]
    if init is None:
        return contract.contract_axes(x, y, *pairs, order=order)
    init = promote.as_dtype_value(as_array(init, "dot_general"), dtype)
    return contract.dot_general.bind(x, y, init, contract=pairs[0], batch=pairs[1],
                                     order=orders.check_order(order))


def iota(n: int, dtype=dtypes.int64) -> Value:
    """0, 1, ..., n - 1.

    >>> iota(3)
    tensor([0, 1, 2], int64, shape (3,), cpu)
    """
    return shape.iota.bind(shape=(int(n),), axis=0, dtype=dtypes.as_dtype(dtype))


def reverse(x, axes=None) -> Value:
    """x with its entries in opposite order along `axes` (None: all).

    >>> reverse(tl.arange(3))
    tensor([2, 1, 0], int64, shape (3,), cpu)
    """
    x = as_array(x, "reverse")
    axes = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    return shape.reverse.bind(x, axes=tuple(normalize_axis(a, x.ndim, "reverse") for a in axes))


def select(condition, x, y) -> Value:
    """x where `condition` holds, else y: `where` under the name of its primitive.

    >>> select(tl.tensor([True, False]), 1, 2)
    tensor([1, 2], int64, shape (2,), cpu, weak)
    """
    return logic.where(condition, x, y)
