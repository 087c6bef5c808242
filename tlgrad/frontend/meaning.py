"""What Python's operators and functions mean on traced scalars, as tlgrad operations.

Python's rules where they differ from those of arrays: bools add up as integers, `~True` is -2,
`int(x)` and `math.floor(x)` are integers, `max` and `min` are chains of comparisons.
"""
from __future__ import annotations

import builtins
import cmath
import functools
import math
import operator

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Aval, make_aval
from tlgrad.core.tensor import python_scalar
from tlgrad.core.trace import Value
from tlgrad.ops import arithmetic as ar, elementary as el, logic as lo, special
from tlgrad.ops.convert import convert
from tlgrad.ops.define import Elementwise
from tlgrad.ops.methods import power
from tlgrad.ops.promote import as_dtype_value, common_dtype

NUMBERS = (bool, int, float, complex, np.number, np.bool_)
OPERANDS = (*NUMBERS, np.ndarray, Value)


def aval_of(v) -> Aval:
    """The aval of a scalar; Python numbers are weak."""
    if isinstance(v, Value):
        return v.aval
    if isinstance(v, np.generic):
        return make_aval((), dtypes.of_storage(v.dtype))
    return _PYTHON[type(v)] if type(v) in _PYTHON else python_scalar(v).aval


_PYTHON = {t: python_scalar(t(1)).aval for t in (bool, int, float, complex)}


class _Typed:
    """Something with an aval, for `common_dtype`."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval


def join_avals(a: Aval, b: Aval) -> Aval:
    """The aval in which two scalars meet: bool < int < float < complex, as in arithmetic."""
    if a is b:
        return a
    dtype, weak = common_dtype([_Typed(a), _Typed(b)])
    return make_aval((), dtype, weak)


def cast(v, aval: Aval):
    """A scalar as `aval`; Python numbers stay concrete."""
    have = aval_of(v)
    if have.dtype is aval.dtype:
        if isinstance(v, Value) or have.weak == aval.weak:
            return v
        return aval.dtype.storage.type(v)
    if isinstance(v, Value):
        return as_dtype_value(v, aval.dtype, aval.weak)
    if aval.weak:
        return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[aval.dtype.kind](v)
    if aval.dtype.software:
        return as_dtype_value(python_scalar(v), aval.dtype)
    with np.errstate(all="ignore"):
        return aval.dtype.storage.type(v)


def zero_of(aval: Aval):
    """Zero in `aval`, concrete."""
    return cast(False, aval)


def _number(v):
    """Bools count as integers in arithmetic."""
    if isinstance(v, (bool, np.bool_)):
        return int(v)
    if isinstance(v, Value) and v.aval.dtype is dtypes.bool_:
        return as_dtype_value(v, dtypes.int64, True)
    return v


def is_bool(v) -> bool:
    """True for a bool scalar."""
    return isinstance(v, (bool, np.bool_)) or isinstance(v, Value) and v.aval.dtype is dtypes.bool_


@functools.lru_cache(maxsize=1024)
def _literal(v, kind, dtype):
    """A Python number other than zero in the format of the operand beside it."""
    return as_dtype_value(python_scalar(v), dtype)


_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def _beside(v, aval):
    """A concrete operand that takes the format of a strong one; None where promotion decides."""
    if type(v) not in (int, float) or v == 0 or v != v:
        return None
    fits = _RANK[aval.dtype.kind] >= _RANK[_PYTHON[type(v)].dtype.kind]
    return _literal(v, type(v), aval.dtype) if fits else None


def direct(f, a, b):
    """f of two scalars; the common cases without the general rules of promotion and broadcasting."""
    x, y = isinstance(a, Value) and a.aval, isinstance(b, Value) and b.aval
    if x and y and x is y and not x.weak:
        return f.bind(a, b)
    if x and not y and not x.weak and (b_value := _beside(b, x)) is not None:
        return f.bind(a, b_value)
    if y and not x and not y.weak and (a_value := _beside(a, y)) is not None:
        return f.bind(a_value, b)
    return f(a, b)


def _arithmetic(f):
    if not isinstance(f, Elementwise) or f.inexact:
        return lambda a, b: f(_number(a), _number(b))
    return lambda a, b: direct(f, _number(a), _number(b))


def _comparison(f):
    return lambda a, b: direct(f, a, b)


def _bits(f):
    return lambda a, b: f(a, b) if is_bool(a) and is_bool(b) else f(_number(a), _number(b))


BINARY = {
    operator.add: _arithmetic(ar.add), operator.sub: _arithmetic(ar.sub), operator.mul: _arithmetic(ar.mul),
    operator.truediv: _arithmetic(ar.div), operator.floordiv: _arithmetic(ar.floor_divide),
    operator.mod: _arithmetic(ar.remainder), operator.pow: _arithmetic(power),
    operator.lshift: _arithmetic(lo.shift_left), operator.rshift: _arithmetic(lo.shift_right),
    operator.and_: _bits(lo.and_), operator.or_: _bits(lo.or_), operator.xor: _bits(lo.xor),
    **{op: _comparison(f) for op, f in {
        operator.lt: lo.lt, operator.le: lo.le, operator.gt: lo.gt, operator.ge: lo.ge,
        operator.eq: lo.eq, operator.ne: lo.ne}.items()}}


def is_index(a, b) -> bool:
    """True when integers meet in an unsigned one."""
    return join_avals(aval_of(a), aval_of(b)).dtype.kind == "u"


def _divide_index(a, b):
    """x // 0 = 0."""
    zero = lo.eq(b, 0)
    return choose(zero, 0, ar.floor_divide(a, choose(zero, 1, b)))


def _index_remainder(a, b):
    """x % 0 = x."""
    zero = lo.eq(b, 0)
    return choose(zero, a, ar.remainder(a, choose(zero, 1, b)))


#: operators on the unsigned indices of indexed programs
INDEX = {operator.floordiv: _divide_index, operator.mod: _index_remainder}
#: in-place operator -> the binary one
IN_PLACE = {getattr(operator, "i" + f.__name__.strip("_")): f for f in BINARY
            if hasattr(operator, "i" + f.__name__.strip("_"))}
UNARY = {operator.neg: lambda v: ar.neg(_number(v)), operator.pos: _number,
         operator.invert: lambda v: lo.not_(_number(v))}


def truth(v):
    """A traced scalar as bool."""
    return lo.as_bool(v)


def choose(which, a, b):
    """a if which else b, both already computed, in their common dtype."""
    aval = join_avals(aval_of(a), aval_of(b))
    values = [as_dtype_value(_value(cast(v, aval)), aval.dtype, aval.weak) for v in (a, b)]
    return lo.select(which, *values)


def _value(v):
    return v if isinstance(v, Value) else python_scalar(v) if type(v) in _PYTHON else lo.as_value(v)


def to_int(v):
    """int(v): toward zero."""
    v = _number(v)
    return v if v.aval.dtype.kind in "iu" else convert(v, dtypes.int64)


def to_float(v):
    """float(v): floats keep their format, integers become float64."""
    return v if v.aval.dtype.kind == "f" else as_dtype_value(v, dtypes.float64, v.aval.weak)


def _rounded(f):
    return lambda v: _number(v) if aval_of(v).dtype.kind in "biu" else convert(f(v), dtypes.int64)


def _fmod(x, y):
    return ar.copysign(ar.remainder(ar.abs_(x), ar.abs_(y)), x)


def _log(x, base=None):
    return el.log(x) if base is None else ar.div(el.log(x), el.log(base))


def _round(v, digits=None):
    if digits is None:
        return _rounded(ar.round_)(v)
    scale = 10.0 ** digits
    return ar.div(ar.round_(ar.mul(v, scale)), scale)


_SAME_NAME = ("exp expm1 exp2 log1p log2 log10 sqrt cbrt sin cos tan asin acos atan sinh cosh tanh "
              "asinh acosh atanh erf erfc atan2 hypot copysign").split()
_NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
                "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2"}


def _tables():
    table = {}
    for name in _SAME_NAME:
        prim = getattr(el, name, None) or getattr(ar, name)
        for module, spelled in ((math, name), (np, _NUMPY_NAMES.get(name, name)), (cmath, name)):
            if hasattr(module, spelled):
                table[getattr(module, spelled)] = _arithmetic1(prim)
    table |= {
        math.log: _log, cmath.log: _log, np.log: el.log, math.pow: el.pow_, np.power: _arithmetic(power),
        math.gamma: _arithmetic1(special.gamma), math.lgamma: _arithmetic1(special.lgamma),
        math.nextafter: lambda x, y: np.nextafter(x, y), math.ldexp: lambda x, n: np.ldexp(x, n),
        math.frexp: lambda x: np.frexp(x), math.ulp: lambda v: ar.abs_(np.spacing(to_float(_number(v)))),
        math.fabs: lambda v: ar.abs_(to_float(v)), math.fmod: _fmod, np.fmod: _fmod,
        math.floor: _rounded(ar.floor), math.ceil: _rounded(ar.ceil), math.trunc: _rounded(ar.trunc),
        np.floor: ar.floor, np.ceil: ar.ceil, np.trunc: ar.trunc, np.rint: ar.round_,
        math.isnan: lo.is_nan, math.isfinite: lo.is_finite, np.isnan: lo.is_nan, np.isfinite: lo.is_finite,
        cmath.isnan: lo.is_nan, cmath.isfinite: lo.is_finite, cmath.isinf: _isinf,
        math.isinf: _isinf, np.isinf: _isinf, np.sign: ar.sign,
        math.degrees: lambda v: ar.mul(v, 180.0 / math.pi), math.radians: lambda v: ar.mul(v, math.pi / 180.0),
        np.abs: lambda v: ar.abs_(_number(v)), np.fabs: lambda v: ar.abs_(to_float(v)), np.square: lambda v: v * v,
        np.negative: UNARY[operator.neg], np.maximum: lo.maximum, np.minimum: lo.minimum,
        np.logical_and: lo.logical_and, np.logical_or: lo.logical_or, np.logical_not: lo.logical_not,
        np.where: lambda c, a, b: choose(truth(c), a, b), np.float64: lambda v: convert(v, dtypes.float64),
        builtins.float: to_float, builtins.int: to_int, builtins.round: _round,
        builtins.abs: lambda v: ar.abs_(_number(v)), builtins.complex: _complex}
    ufuncs = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
              "floor_divide": operator.floordiv, "remainder": operator.mod, "less": operator.lt,
              "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
              "equal": operator.eq, "not_equal": operator.ne, "bitwise_and": operator.and_,
              "bitwise_or": operator.or_, "bitwise_xor": operator.xor}
    table |= {getattr(np, name): BINARY[f] for name, f in ufuncs.items()}
    for t in (np.float16, np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
              np.uint64, np.complex64, np.complex128):
        table[t] = lambda v, d=np.dtype(t): convert(v, d)
    return table


def _arithmetic1(prim):
    return lambda *args: prim(*[_number(a) for a in args])


def _isinf(v):
    return lo.and_(lo.not_(lo.is_finite(v)), lo.not_(lo.is_nan(v)))


def _complex(re, im=0.0):
    return ar.add(re, ar.mul(im, 1j))


#: function of math, cmath, numpy or builtins -> its meaning on traced scalars
FUNCTIONS = _tables()
