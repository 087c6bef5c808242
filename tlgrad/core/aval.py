"""Abstract values: what is known of a value without its entries.

    Aval : shape, dtype, weak?
"""
from __future__ import annotations

from math import prod

from tlgrad.core import dtypes
from tlgrad.core.dtypes import DType
from tlgrad.errors import ShapeError


class Aval:
    """Shape and dtype of a value; `weak` marks what came from a Python number.

    Interned: equal avals are the same object, so comparing two is one pointer test.
    Prints as ``float32[2,3]``; a weak one ends in ``*``.
    """

    __slots__ = ("shape", "dtype", "weak", "ndim")

    def __repr__(self):
        dims = ",".join(map(str, self.shape))
        return f"{self.dtype}[{dims}]" + ("*" if self.weak else "")

    def __reduce__(self):
        return make_aval, (self.shape, self.dtype, self.weak)

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)

    def with_shape(self, shape) -> "Aval":
        """The same dtype with another shape."""
        return make_aval(shape, self.dtype, self.weak)

    def with_dtype(self, dtype: DType) -> "Aval":
        """The same shape with another, strong, dtype."""
        return make_aval(self.shape, dtype)

    def strong(self) -> "Aval":
        """The same aval, not weak."""
        return make_aval(self.shape, self.dtype) if self.weak else self


_interned: dict[tuple, Aval] = {}


def make_aval(shape, dtype: DType, weak: bool = False) -> Aval:
    """The aval of this shape and dtype."""
    key = (shape, dtype, weak)
    try:
        return _interned[key]
    except (KeyError, TypeError):
        return _new_aval(shape, dtype, weak)


def _new_aval(shape, dtype, weak):
    shape = tuple(int(n) for n in shape)
    dtype = dtypes.as_dtype(dtype)
    if any(n < 0 for n in shape):
        raise ShapeError(f"a shape has no negative sizes, got {shape}")
    aval = Aval.__new__(Aval)
    aval.shape, aval.dtype, aval.weak, aval.ndim = shape, dtype, weak, len(shape)
    return _interned.setdefault((shape, dtype, weak), aval)


class Zero:
    """A symbolic zero: a tangent or cotangent that is known to vanish, without an array."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self):
        return f"Zero({self.aval})"
