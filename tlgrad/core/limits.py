"""Limits of float formats."""
from __future__ import annotations

from typing import Any, NamedTuple

from tlgrad.core.dtypes import DType, as_dtype
from tlgrad.core.tensor import fits_python
from tlgrad.errors import DTypeError


class FloatInfo(NamedTuple):
    """What `finfo` tells: numbers are Python floats, or `Float`s of a format wider than those."""

    dtype: DType
    bits: int
    eps: Any
    max: Any
    min: Any
    smallest_normal: Any
    smallest_subnormal: Any
    precision: int

    @property
    def tiny(self):
        """`smallest_normal`, under NumPy's older name."""
        return self.smallest_normal


def finfo(dtype) -> FloatInfo:
    """The limits of a float dtype: gap after 1, largest, least, smallest numbers, decimal digits.

    Raises DTypeError for a dtype that is no real float.

    >>> finfo("binary128").precision, finfo("float8_e4m3fn").max, finfo("float64").eps
    (33, 448.0, 2.220446049250313e-16)
    """
    dtype = as_dtype(dtype)
    if dtype.kind != "f":
        raise DTypeError(f"finfo takes a real float dtype, got {dtype}; for integers use np.iinfo")
    fmt = dtype.format
    words = (fmt.eps, fmt.max, fmt.max | fmt.sign_bit, fmt.min_normal, fmt.min_subnormal)
    numbers = [fmt.from_bits(w) for w in words]
    if fits_python(dtype):
        numbers = list(map(float, numbers))
    return FloatInfo(dtype, dtype.bits, *numbers, fmt.digits10)
