"""`read`: one entry of a captured array at computed indices, and `deposit`, its transpose.

    read    : table, i... -> scalar           an index outside is an error that names it
    deposit : ct, i... -> zeros with ct there

The transposed reads of all entries of a map are added up in row-major order of the entries.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.errors import ArgumentError, OutOfBoundsError
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import convert
from tlgrad.ops.define import documented
from tlgrad.ops.index import gather, lane_indices, mapped, scatter
from tlgrad.ops.layout import reshape, zeros
from tlgrad.ops.shape import concatenate


def out_of_bounds(place, shape, operand=None) -> OutOfBoundsError:
    """The error for the first index outside; `operand`: the number of an input of a Program."""
    for axis, (k, n) in enumerate(zip(place, shape)):
        if not 0 <= k < n and operand is not None:
            return OutOfBoundsError(f"read({operand}, {int(k)}): the index {int(k)} is out of bounds for operand "
                                    f"{operand} of size {n}")
        if not 0 <= k < n:
            return OutOfBoundsError(f"index {int(k)} is out of bounds for axis {axis} of size {n} "
                                    f"of an array of shape {tuple(shape)}")
    raise AssertionError("no index is outside")


def _read_impl(table, *indices, operand):
    place = tuple(int(k) for k in indices)
    if not all(0 <= k < n for k, n in zip(place, table.shape)):
        raise out_of_bounds(place, table.shape, operand)
    return np.asarray(table[place])


def _read_abstract(table, *indices, operand):
    if len(indices) != table.ndim or any(k.shape or not dtypes.is_integer(k.dtype) for k in indices):
        raise TypeError(f"read of {table} takes {table.ndim} integers of shape (), got {list(indices)}")
    return make_aval((), table.dtype, table.weak)


def _read_jvp(primals, tangents, *, operand):
    table, *indices = primals
    return read.bind(*primals, operand=operand), read.bind(tangents[0], *indices, operand=operand)


def _stacked(indices, axes, size):
    """Index array (size, k) from one index per axis."""
    columns = [reshape.bind(convert(mapped(i, a, size), dtypes.int64), shape=(size, 1))
               for i, a in zip(indices, axes)]
    return columns[0] if len(columns) == 1 else concatenate.bind(*columns, axis=1)


def _read_batch(args, axes, size, *, operand):
    table, *indices = args
    if all(a is None for a in axes[1:]):
        n = table.ndim - 1
        columns = [reshape.bind(convert(i, dtypes.int64), shape=(1,)) for i in indices]
        index = columns[0] if n == 1 else concatenate.bind(*columns, axis=0)
        moved = mapped(table, axes[0], size)
        return gather.bind(moved, index, axes=tuple(range(1, n + 1))), 0
    index = _stacked(indices, axes[1:], size)
    if axes[0] is None:
        return gather.bind(table, index, axes=tuple(range(table.ndim))), 0
    moved = mapped(table, axes[0], size)
    return gather.bind(moved, lane_indices(index, size), axes=tuple(range(moved.ndim))), 0


read = documented(
    Primitive("read", impl=_read_impl, abstract=_read_abstract, jvp=_read_jvp,
              transpose=lambda ct, table, *indices, operand: [
                  deposit.bind(ct, *indices, shape=table.aval.shape) if type(table) is Linear else None,
                  *[None] * len(indices)],
              batch=_read_batch, kind="index", lower=("index", "read")),
    "One entry of an array at computed indices.", "table *indices")


def _deposit_impl(ct, *indices, shape):
    out = np.zeros(shape, ct.dtype)
    out[tuple(int(k) for k in indices)] = ct
    return out


def _deposit_batch(args, axes, size, *, shape):
    ct, *indices = args
    index = lane_indices(_stacked(indices, axes[1:], size), size)
    blank = zeros(make_aval((size, *shape), ct.dtype))
    return scatter.bind(blank, index, mapped(ct, axes[0], size), axes=tuple(range(len(shape) + 1)), mode="add"), 0


def _deposit_jvp(primals, tangents, *, shape):
    ct, *indices = primals
    return deposit.bind(*primals, shape=shape), deposit.bind(tangents[0], *indices, shape=shape)


deposit = documented(
    Primitive("deposit", impl=_deposit_impl,
              abstract=lambda ct, *indices, shape: make_aval(tuple(shape), ct.dtype), jvp=_deposit_jvp,
              transpose=lambda ct, x, *indices, shape: [
                  read.bind(ct, *indices, operand=None) if type(x) is Linear else None, *[None] * len(indices)],
              batch=_deposit_batch, kind="index", lower=("index", "deposit")),
    "An array of zeros with one entry set.", "ct *indices")


class Row:
    """A captured array with its first indices given: `table[i]`, of which `[j]` is to follow."""

    __slots__ = ("table", "indices", "interpreter")

    def __init__(self, table, indices, interpreter):
        self.table, self.indices, self.interpreter = table, indices, interpreter

    @property
    def shape(self):
        return self.table.shape[len(self.indices):]

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key):
        return read_entry(self.interpreter, self.table, (*self.indices, *(key if type(key) is tuple else (key,))))


def _index(interpreter, k, n, axis, shape):
    """An index as the program takes it: negative ones count from the end."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool):
        k = convert(k, dtypes.int64) if lo.as_value(k).dtype.kind == "b" else k
        if lo.as_value(k).dtype.kind not in "iu":
            interpreter.fail(f"an index must be an integer, got {k!r}")
        return k if k.dtype.kind == "u" or getattr(k, "natural", False) else lo.where(lo.lt(k, 0), k + n, k)
    if not -n <= k < n:
        interpreter.note(True, interpreter.error(IndexError, (
            f"index {k} is out of bounds for axis {axis} of size {n} of an array of shape {shape}",)))
        return 0
    return int(k) % n


def read_entry(interpreter, table, key):
    """table[key] for an array symbol: integers name an entry, anything else is tlgrad's indexing."""
    keys = key if type(key) is tuple else (key,)
    ints = all(isinstance(k, (int, np.integer)) or getattr(k, "shape", None) == () and k.dtype.kind in "iub"
               for k in keys)
    if not table.aval.shape:
        interpreter.fail("a traced number cannot be indexed")
    if not ints or len(keys) > table.ndim:
        return super(type(table), table).__getitem__(key)
    if len(keys) < table.ndim:
        return Row(table, keys, interpreter)
    if 0 in table.shape:
        interpreter.note(True, interpreter.error(IndexError, (f"an array of shape {table.shape} has no entries",)))
        return 0.0
    places = [_index(interpreter, k, n, axis, table.shape) for axis, (k, n) in enumerate(zip(keys, table.shape))]
    return read.bind(table, *[lo.as_value(k) for k in places], operand=None)


class Reader:
    """read(operand, index) of an indexed program."""

    def __init__(self, tables):
        self.tables = tables

    def __call__(self, operand, index):
        """An entry of an input; interpreted, as the index is a symbol."""
        if type(operand) is not int or not 0 <= operand < len(self.tables):
            have = f"the inputs are numbered 0 to {len(self.tables) - 1}" if self.tables else "there are no inputs"
            raise ArgumentError(f"read({operand}, ...): there is no operand {operand}; {have}")
        table, index = self.tables[operand], convert(lo.as_value(index), dtypes.uint64)
        if not table.shape[0]:
            table.trace.interpreter.note(True, table.trace.interpreter.error(OutOfBoundsError, (
                f"read({operand}, {index}): operand {operand} has no entries",)))
            return 0.0
        return read.bind(table, index, operand=operand)


__all__ = ["read", "deposit", "Row", "Reader", "read_entry", "out_of_bounds"]
