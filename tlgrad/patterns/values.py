"""Operands of patterns: what is accepted, and the dtype in which they are combined."""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.dtypes import DType
from tlgrad.core.tensor import as_value, tensor
from tlgrad.core.trace import Value
from tlgrad.ops.promote import as_dtype_value, common_dtype
from tlgrad.ops.layout import reshape
from tlgrad.ops.shape import concatenate
from tlgrad.patterns.messages import Fault


def operand(x) -> Value:
    """A Value; a list of tensors is stacked along a new first axis, a list of numbers is a tensor."""
    if isinstance(x, Value):
        return x
    if isinstance(x, (list, tuple)):
        if any(hasattr(item, "shape") for item in x):
            return stacked(x)
        return tensor(x)
    return as_value(x)


def stacked(items) -> Value:
    """Tensors of one shape along a new first axis, in their common dtype."""
    values = in_common_dtype(map(operand, items))
    for k, v in enumerate(values):
        if v.shape != values[0].shape:
            raise Fault(f"a list of tensors needs one shape; item 0 has {values[0].shape}, item {k} has {v.shape}")
    return concatenate.bind(*[reshape.bind(v, shape=(1, *v.shape)) for v in values], axis=0)


def in_common_dtype(values) -> list[Value]:
    """Values in the dtype in which they meet, not weak."""
    values = list(values)
    dtype, _ = common_dtype(values)
    return [cast(v, dtype) for v in values]


def accumulator(dtype: DType) -> DType:
    """The dtype in which sums and products run, a function of the input dtype alone.

    bool and signed integers: int64; unsigned: uint64; floats of at most 16 bits: float32.
    """
    if dtype.kind in "bi":
        return dtypes.int64
    if dtype.kind == "u":
        return dtypes.uint64
    return dtypes.float32 if dtype.kind == "f" and dtype.bits <= 16 else dtype


def result_dtype(dtype: DType) -> DType:
    """The dtype of a sum or product: integers stay wide, floats round back once."""
    return dtype if dtype.kind in "fc" else accumulator(dtype)


def cast(x: Value, dtype: DType) -> Value:
    """x in `dtype`, not weak."""
    return as_dtype_value(x, dtype)
