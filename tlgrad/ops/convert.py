"""Changing dtype: by value (`convert`) or by word (`bitcast`)."""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.primitive import Primitive
from tlgrad.core.tensor import as_value, convert_array, words
from tlgrad.errors import DTypeError
from tlgrad.ops import define, promote
from tlgrad.ops.arithmetic import real
from tlgrad.ops.define import documented
from tlgrad.ops.layout import broadcast


def _convert_jvp(primals, tangents, *, dtype, weak):
    y = convert_p.bind(*primals, dtype=dtype, weak=weak)
    if not dtypes.is_inexact(dtype):
        return y, Zero(y.aval)
    return y, convert_p.bind(*tangents, dtype=dtype, weak=False)


def _convert_transpose(ct, x, *, dtype, weak):
    if dtype.kind == "c" and x.aval.dtype.kind != "c":
        ct = real(ct)
    return [convert_p.bind(ct, dtype=x.aval.dtype, weak=False)]


convert_p = documented(
    Primitive("convert", impl=lambda x, *, dtype, weak: convert_array(x, dtype),
              abstract=lambda x, *, dtype, weak: make_aval(x.shape, dtype, weak),
              jvp=_convert_jvp, transpose=_convert_transpose,
              batch=lambda args, axes, size, **params: (convert_p.bind(*args, **params), axes[0]),
              kind="elementwise", lower=("elementwise", "convert")),
    "x in another dtype, one rounding to nearest even.", "x")

promote.provide(convert_p, broadcast)
define.RULES.convert = lambda x, dtype: convert_p.bind(x, dtype=dtype, weak=False)


def convert(x, dtype):
    """x in `dtype`: one rounding to nearest even; floats to integers truncate toward zero.

    NaN and numbers out of range have the same words on every machine: the least integer of the width; narrower
    ones than int32 are its low bits, and uint32 and uint64 the low bits of 64-bit integers that wrap around.
    Shape kept.  Differentiable between floats.  Raises DTypeError for an unknown dtype.

    >>> convert(tl.tensor([1.5, 2.5]), tl.int32)
    tensor([1, 2], int32, shape (2,), cpu)
    """
    x, dtype = as_value(x, "the operand of convert"), dtypes.as_dtype(dtype)
    if x.aval.dtype is dtype and not x.aval.weak:
        return x
    return convert_p.bind(x, dtype=dtype, weak=False)


def _bitcast_abstract(x, *, dtype):
    if x.dtype.itemsize != dtype.itemsize or "c" in (x.dtype.kind, dtype.kind):
        raise DTypeError(f"bitcast: {x.dtype} and {dtype} have words of different widths; "
                         f"{x.dtype} has {x.dtype.bits} bits, {dtype} has {dtype.bits}")
    return make_aval(x.shape, dtype)


bitcast_p = documented(
    Primitive("bitcast", impl=lambda x, *, dtype: np.ascontiguousarray(x).view(dtype.storage).reshape(x.shape),
              abstract=_bitcast_abstract, nondiff="",
              batch=lambda args, axes, size, **params: (bitcast_p.bind(*args, **params), axes[0]),
              kind="elementwise", lower=("elementwise", "bitcast")),
    "The words of x read as another dtype of the same width.", "x")


def bitcast(x, dtype):
    """The words of x read as another dtype of the same width; no derivative.

    Raises DTypeError when the widths differ.

    >>> bitcast(tl.tensor(1.0, tl.float32), tl.uint32)
    tensor(1065353216, uint32, shape (), cpu)
    """
    return bitcast_p.bind(as_value(x, "the operand of bitcast"), dtype=dtypes.as_dtype(dtype))


def same_bits(a, b) -> bool:
    """True when two arrays have equal shape, dtype and words; all NaNs count as one.

    >>> same_bits(tl.tensor([0.0]), tl.tensor([-0.0]))
    False
    """
    a, b = as_value(a).data, as_value(b).data
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    equal = words(a) == words(b)
    if a.dtype.kind in "fc":
        equal |= np.isnan(words_as_floats(a)) & np.isnan(words_as_floats(b))
    return bool(np.all(equal))


def words_as_floats(a):
    """The real numbers of an array, complex ones as pairs."""
    if a.dtype.kind != "c":
        return a
    return np.ascontiguousarray(a).reshape(a.shape + (1,)).view(f"f{a.dtype.itemsize // 2}")
