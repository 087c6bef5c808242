"""Questions about dtypes, and conversion, under the names of the array API standard."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlgrad.core import dtypes, limits
from tlgrad.core.dtypes import DType
from tlgrad.core.limits import FloatInfo
from tlgrad.core.trace import Value
from tlgrad.core.writing import clone
from tlgrad.errors import ArgumentError, DTypeError
from tlgrad.numpy.arrays import as_array, check_device
from tlgrad.ops.convert import convert
from tlgrad.ops.promote import common_dtype

__all__ = ["astype", "can_cast", "promote_types", "result_type", "isdtype", "finfo", "iinfo", "issubdtype",
           "iscomplexobj", "isrealobj"]


def astype(x, dtype, *, copy: bool = True, device=None) -> Value:
    """x in another dtype: one rounding to nearest even; floats to integers truncate.

    Raises DTypeError for a complex value in a real dtype: take `tl.real` of it.

    >>> astype(tl.tensor([1.5, -1.5]), tl.int32)
    tensor([ 1, -1], int32, shape (2,), cpu)
    """
    check_device(device, "astype")
    x, dtype = as_array(x, "astype"), dtypes.as_dtype(dtype)
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(f"astype: {x.aval} as {dtype} would drop the imaginary part; write tl.real(x)")
    out = convert(x, dtype)
    return clone(out) if copy and out is x else out


def promote_types(a, b) -> DType:
    """The dtype in which two dtypes meet.

    >>> promote_types(tl.int32, tl.float32)
    float64
    """
    return dtypes.promote_types(dtypes.as_dtype(a), dtypes.as_dtype(b))


def can_cast(from_, to, casting: str = "safe") -> bool:
    """True when every value of a dtype (or array) has a place in `to` by promotion.

    >>> can_cast(tl.int32, tl.int16)
    False
    """
    source = from_.dtype if isinstance(from_, (Value, np.ndarray)) else from_
    source, target = dtypes.as_dtype(source), dtypes.as_dtype(to)
    if casting == "unsafe":
        return True
    if casting in ("no", "equiv"):
        return source is target
    if casting == "same_kind" and source.kind == target.kind:
        return True
    try:
        return dtypes.promote_types(source, target) is target
    except DTypeError:
        return False


def result_type(*arrays_and_dtypes) -> DType:
    """The dtype in which arrays, dtypes and Python numbers meet; Python numbers count by kind.

    >>> result_type(tl.float32, 1.0)
    float32
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type needs at least one array or dtype")
    values = []
    for x in arrays_and_dtypes:
        if isinstance(x, (Value, np.ndarray, bool, int, float, complex, list, tuple)):
            values.append(as_array(x, "result_type"))
        else:
            values.append(_OfDType(dtypes.as_dtype(x)))
    return common_dtype(values)[0]


class _Dtyped(NamedTuple):
    dtype: DType
    weak: bool = False


class _OfDType:
    """Stands for a strong value of a dtype."""

    def __init__(self, dtype):
        self.aval = _Dtyped(dtype)


_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
          "complex floating": "c", "numeric": "iufc"}


def isdtype(dtype, kind) -> bool:
    """True when a dtype is of a kind: a dtype, one of "bool", "signed integer", "unsigned integer",
    "integral", "real floating", "complex floating", "numeric", or a tuple of these.

    >>> isdtype(tl.float32, ("integral", "real floating"))
    True
    """
    dtype = dtypes.as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return dtype.kind in _KINDS[kind]
    if isinstance(kind, str):
        raise ArgumentError(f"isdtype: kind must be a dtype or one of {', '.join(_KINDS)}, got {kind!r}")
    return dtype is dtypes.as_dtype(kind)


def issubdtype(a, b) -> bool:
    """NumPy's test of a dtype against another or an abstract class such as np.floating."""
    if isinstance(b, type) and issubclass(b, np.generic) and b not in (np.bool_,):
        return np.issubdtype(dtypes.as_dtype(a).storage, b)
    return dtypes.as_dtype(a) is dtypes.as_dtype(b)


def iscomplexobj(x) -> bool:
    """True for a value of complex dtype."""
    return as_array(x, "iscomplexobj").dtype.kind == "c"


def isrealobj(x) -> bool:
    """True for a value that is not of complex dtype."""
    return not iscomplexobj(x)


class IntegerInfo(NamedTuple):
    """Limits of an integer dtype."""
    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(x):
    return dtypes.as_dtype(x.dtype if isinstance(x, (Value, np.ndarray)) else x)


def finfo(type) -> FloatInfo:
    """Limits of a float (or complex) dtype or of that of an array: `tlgrad.finfo`.

    >>> finfo(tl.float32).eps
    1.1920928955078125e-07
    """
    return limits.finfo(dtypes.real_dtype(_dtype_of(type)))


def iinfo(type) -> IntegerInfo:
    """Limits of an integer dtype or of that of an array.

    >>> iinfo(tl.int8).max
    127
    """
    dtype = _dtype_of(type)
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo takes integers, got {dtype}; see finfo")
    info = np.iinfo(dtype.storage)
    return IntegerInfo(dtype.bits, int(info.max), int(info.min), dtype)
