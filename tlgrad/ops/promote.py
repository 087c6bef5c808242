"""Operands of different dtype or shape -> operands of one dtype, and one shape or ().

    promote : [value or number] -> [Value], all of one dtype, each of shape s or ()

The rules: strong dtypes meet as in NumPy (`dtypes.promote_types`); a weak operand (a Python
number, or what was computed from Python numbers alone) counts only by its kind.
"""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.dtypes import DType
from tlgrad.core.source import user_source
from tlgrad.core.tensor import Tensor, as_value, convert_array, frozen
from tlgrad.core.trace import Value
from tlgrad.errors import DTypeError, ShapeError


def common_dtype(values) -> tuple[DType, bool]:
    """The dtype in which values meet, and whether the result is weak."""
    strong = weak = None
    for v in values:
        d = v.aval.dtype
        if v.aval.weak:
            weak = d if weak is None else _wider_weak(weak, d)
        elif d is not strong:
            strong = d if strong is None else dtypes.promote_types(strong, d)
    if strong is None:
        return weak, True
    return (strong if weak is None else dtypes.promote_weak(strong, weak)), False


def _wider_weak(a: DType, b: DType) -> DType:
    return b if dtypes.promote_weak(a, b) is b else a


def to_inexact(d: DType) -> DType:
    """The float in which an integer or bool is taken by functions like sine: float64 (NumPy: of
    8 and 16 bits float16 and float32)."""
    if dtypes.is_inexact(d):
        return d
    if d.kind == "b" or d.bits == 8:
        return dtypes.float16
    return dtypes.float32 if d.bits == 16 else dtypes.float64


def broadcast_shapes(*shapes, what: str = "operands") -> tuple[int, ...]:
    """The shape to which all broadcast, right-aligned; ShapeError names all shapes and the axis.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(map(str, shapes))
        hint = ""
        if len(shapes) == 2:
            a, b = shapes
            for k in range(1, min(len(a), len(b)) + 1):
                if a[-k] != b[-k] and 1 not in (a[-k], b[-k]):
                    hint = (f": counted from the right, axis {-k} has sizes {a[-k]} and {b[-k]}, "
                            "and neither is 1. Insert an axis with x[:, None], or use tl.expand.")
                    break
        raise ShapeError(f"{what}: the shapes {listed} do not broadcast{hint} "
                         f"[{user_source()}]") from None


_CONVERT = None     # the primitives `convert` and `broadcast`, given by the modules that define them
_BROADCAST = None


def provide(convert, broadcast):
    """Called once by `ops.shape`: promotion needs two primitives that themselves are ops."""
    global _CONVERT, _BROADCAST
    _CONVERT, _BROADCAST = convert, broadcast


def as_dtype_value(v: Value, dtype: DType, weak: bool = False) -> Value:
    """`v` in `dtype`; a concrete number is converted now and stays a literal."""
    if v.aval.dtype is dtype:
        return v
    if isinstance(v, Tensor) and v.aval.shape == ():
        if v.aval.weak and v.aval.dtype.kind in "iu" and dtypes.is_integer(dtype):
            _check_fits(v, dtype)
        data = convert_array(v.data, dtype)
        return Tensor(frozen(np.asarray(data)), make_aval((), dtype, weak))
    return _CONVERT.bind(v, dtype=dtype, weak=weak)


def _check_fits(v: Tensor, dtype: DType):
    info = np.iinfo(dtype.storage)
    if not info.min <= int(v.data) <= info.max:
        raise DTypeError(f"the Python integer {int(v.data)} does not fit {dtype} "
                         f"({info.min} to {info.max}); convert the other operand first, "
                         f"e.g. tl.convert(x, tl.int64) [{user_source()}]")


def promote(args, name: str, inexact: bool | str = False, same: bool = True) -> list[Value]:
    """Operands for an elementwise primitive: one dtype (if `same`), one shape or ().

    inexact: integers become floats, by their width or, for "float64", always (division).
    """
    if same and len(args) == 2 and (pair := _float_pair(*args)) is not None:
        return pair
    values = [x if isinstance(x, Value) else as_value(x, f"argument {k} of {name}")
              for k, x in enumerate(args)]
    if same:
        dtype, weak = common_dtype(values)
        if inexact:
            wide = dtype.kind in "biu" and (weak or inexact == "float64")
            dtype = dtypes.float64 if wide else to_inexact(dtype)
        values = [as_dtype_value(v, dtype, weak) for v in values]
    return broadcast_together(values, name)


def _float_pair(x, y) -> list[Value] | None:
    """The two frequent cases, with the result of the general rule: floats of one aval, and a float
    beside a Python number."""
    if isinstance(x, Value):
        a = x.aval
        if a.weak or a.dtype.kind != "f":
            return None
        if isinstance(y, Value):
            return [x, y] if y.aval is a else None
        return [x, _literal(y, a.dtype)] if type(y) in (float, int) else None
    if type(x) in (float, int) and isinstance(y, Value) and not y.aval.weak and y.aval.dtype.kind == "f":
        return [_literal(x, y.aval.dtype), y]
    return None


#: Python numbers in a dtype, by (name of the dtype, type, number); tensors are immutable
_literals: dict[tuple, Tensor] = {}


def _literal(x: float | int, dtype: DType) -> Tensor:
    """A Python number as a 0-d tensor.  Zeros (two signs) and NaN are made afresh."""
    key = dtype.name, type(x), x
    found = _literals.get(key)
    if found is None:
        found = as_dtype_value(as_value(x), dtype)
        if x and x == x:
            if len(_literals) >= 4096:
                _literals.clear()
            _literals[key] = found
    return found


def broadcast_together(values, name: str) -> list[Value]:
    """Bring shapes other than () to their common broadcast shape."""
    shape = None
    for v in values:
        s = v.aval.shape
        if s and s != shape:
            if shape is None:
                shape = s
            else:
                return _broadcast_all(values, name)
    return values


def _broadcast_all(values, name):
    shape = broadcast_shapes(*[v.shape for v in values], what=name)
    return [v if v.shape in ((), shape) else broadcast_to(v, shape) for v in values]


def broadcast_to(v: Value, shape: tuple[int, ...]) -> Value:
    """`v` repeated to `shape`, right-aligned, sizes 1 stretched."""
    if v.shape == shape:
        return v
    lead = len(shape) - v.ndim
    if lead < 0 or any(a not in (1, b) for a, b in zip(v.shape, shape[lead:])):
        raise ShapeError(f"a value of shape {v.shape} does not broadcast to {shape} [{user_source()}]")
    return _BROADCAST.bind(v, shape=tuple(shape), axes=tuple(range(lead, len(shape))))
