"""Operators and array methods of values: the one place where `Value` is completed from above."""
from __future__ import annotations

import operator

import numpy as np

from tlgrad.core import dtypes, writing
from tlgrad.core.source import user_source
from tlgrad.core.tensor import Tensor, as_value, tensor
from tlgrad.core.trace import EVAL, Tracer, Value, current_trace, leaked
from tlgrad.errors import ConcretizationError, MutationError, RecordError
from tlgrad.ops import arithmetic as ar, elementary as el, logic as lo
from tlgrad.ops.bounds import within
from tlgrad.ops.convert import convert
from tlgrad.ops.indexing import At, get_item
from tlgrad.ops.layout import permuted
from tlgrad.softfloat.complexes import ComplexFloat
from tlgrad.softfloat.value import Float

_NUMBERS = (bool, int, float, complex, np.ndarray, np.generic, Float, ComplexFloat, Value)


def _binary(f, swapped=False):
    def method(self, other):
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        return f(other, self) if swapped else f(self, other)
    return method


def power(x, y):
    """x ** y: a Python integer exponent is repeated multiplication, anything else `pow`."""
    if type(y) is int and isinstance(x, Value):
        return el.integer_pow(x, y)
    if isinstance(y, Value) and dtypes.is_integer(y.dtype) and isinstance(x, Value) \
            and dtypes.is_integer(x.dtype):
        return integer_power_of_integers(x, y)
    return el.pow_(x, y)


def integer_power_of_integers(x, y):
    """Integer tensors to integer powers by squaring, wrapping around; negative powers are errors."""
    y = within(y, 0, None, "integers to negative integer powers are not integers: write "
                           "tl.convert(x, tl.float64) ** y")
    result, base = x * 0 + y * 0 + 1, x + y * 0
    for k in range(max(1, y.dtype.bits - (y.dtype.kind == "i"))):
        bit = lo.and_(lo.shift_right(y, k), 1)
        result = lo.where(bit == 1, result * base, result)
        base = base * base
        if isinstance(y, Tensor) and not (y.data >> (k + 1)).any():
            break
    return result


_OPERATORS = {"add": ar.add, "sub": ar.sub, "mul": ar.mul, "truediv": ar.div, "floordiv": ar.floor_divide,
              "mod": ar.remainder, "pow": power, "and": lo.and_, "or": lo.or_, "xor": lo.xor,
              "lshift": lo.shift_left, "rshift": lo.shift_right}
for _name, _f in _OPERATORS.items():
    setattr(Value, f"__{_name}__", _binary(_f))
    setattr(Value, f"__r{_name}__", _binary(_f, swapped=True))
for _name, _f in {"eq": lo.eq, "ne": lo.ne, "lt": lo.lt, "le": lo.le, "gt": lo.gt, "ge": lo.ge}.items():
    setattr(Value, f"__{_name}__", _binary(_f))

Value.__hash__ = object.__hash__
Value.__neg__ = lambda self: ar.neg(self)
Value.__pos__ = lambda self: self
Value.__abs__ = lambda self: ar.abs_(self)
Value.__invert__ = lambda self: lo.not_(self)
Value.__divmod__ = lambda self, other: (ar.floor_divide(self, other), ar.remainder(self, other))
Value.__round__ = lambda self, n=None: ar.round_(self) if not n else ar.round_(self * 10**n) / 10**n
Value.__getitem__ = get_item
Value.at = property(At, doc="``x.at[i].set(v)``, also add, mul, min, max: x with entries replaced.")
Value.T = property(lambda self: permuted(self, tuple(range(self.ndim))[::-1]),
                   doc="The axes in opposite order.")
Value.real = property(lambda self: ar.real(self) if self.dtype.kind == "c" else self, doc="Real part.")
Value.imag = property(lambda self: ar.imag(self), doc="Imaginary part.")
Value.conj = lambda self: ar.conj(self)
Value.astype = lambda self, dtype: convert(self, dtype)


def _no_record(self, *_, **__):
    raise RecordError("a result of tl.run, or of an eager call, is not recorded, so it has no backward; "
                      f"write tl.record(f)(x).backward() or tl.grad(f)(x) [{user_source()}]")


Value.backward = _no_record


def _iterate(self):
    if not self.shape:
        raise ConcretizationError(f"a value of shape () cannot be iterated over [{user_source()}]")
    return (self[k] for k in range(self.shape[0]))


Value.__iter__ = _iterate
Value.__len__ = Tensor.__len__


# ---- a traced value has no number ----

def _refuse(what: str, instead: str):
    def method(self, *args, **kwargs):
        if current_trace() is EVAL:
            raise leaked(self, f"in {what}")
        made = f" (made at {self.source})" if self.source else ""
        raise ConcretizationError(
            f"{what} needs a number, but the value is traced by {self.trace.name}: {self.aval}{made}. "
            f"It was needed at {user_source()}. {instead}")
    return method


_BRANCH = ("Write tl.where(condition, a, b) for a choice by entry, tl.cond(condition, f, g, x) for a lazy "
           "branch, put the `if` in a scalar function under tl.map, or mark the argument static. The same "
           "holds for `x or y`, `min(a, b)`, `a < b < c` and `assert`.")
_FILL = "To fill an array, write B = tl.zeros(shape) and B = B.at[i].set(x), not B[i] = x on a NumPy array."
_MATH = f"Use the tlgrad function: tl.sin(x) for math.sin(x), tl.convert(x, tl.int64) for int(x). {_FILL}"
_refusals = {
    "__bool__": ("a Python condition", _BRANCH), "__float__": ("float() or a math function", _MATH),
    "__int__": ("int()", _MATH), "__complex__": ("complex()", _MATH),
    "__index__": ("an index, range() or a size", "Use tl.dynamic_slice or x[i] with a tensor, tl.iterate "
                  "for a run-time count, or mark the argument static. A list times a value repeats the "
                  "list: make it a tensor first."),
    "__array__": ("np.asarray()", f"Use the tl function. {_FILL}"),
    "item": (".item()", _MATH), "tolist": (".tolist()", _MATH),
    "__format__": ("format()", "Print the traced value itself with repr(x), or return it."),
}
for _name, (_what, _instead) in _refusals.items():
    setattr(Tracer, _name, _refuse(_what, _instead))
Tracer.__format__ = lambda self, spec: repr(self) if not spec else _refuse(*_refusals["__format__"])(self)


_refuse_to_assign = {Tensor: Tensor.__setitem__}


def _set_item(self, key, value):
    """x[key] = value, for libraries that follow the array API standard; an error in other code."""
    if not writing.may_write(2):
        if isinstance(self, Tensor):
            return _refuse_to_assign[Tensor](self, key, value)
        raise MutationError(f"a traced value is immutable; write x = x.at[...].set(v) [{user_source()}]")
    value = as_value(value, "the value of an assignment")
    if value.dtype is not self.dtype and "biufc".index(value.dtype.kind) <= "biufc".index(self.dtype.kind):
        value = convert(value, self.dtype)
    with writing.where_known(self, value, *(key if isinstance(key, tuple) else (key,))):
        new = self.at[key].set(value)
    writing.assign(self, new)


Tensor.__setitem__ = Tracer.__setitem__ = _set_item


def _number_of_dtype(self, x=0):
    """A tensor of this dtype: ``tl.float32(0.1)``."""
    return convert(tensor(x) if not isinstance(x, Value) else x, self)


dtypes.DType.__call__ = _number_of_dtype

#: operator functions by name, for the scalar front end
OPERATORS = {getattr(operator, n if n not in ("and", "or") else n + "_"): f for n, f in _OPERATORS.items()}
