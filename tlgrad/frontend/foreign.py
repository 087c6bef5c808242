"""`tl.from_numba`: scalar functions compiled by `numba.njit`, as elementwise operations of a program.

The value is what the compiled function gives, one call an entry.  The derivative is that of the
Python function behind it, recorded like a mapped function, or is given as partial derivatives.
"""
from __future__ import annotations

import functools
import inspect
import types
import weakref
from typing import Callable, Sequence

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.primitive import Primitive
from tlgrad.core.source import describe_callable
from tlgrad.errors import (ArgumentError, DifferentiationError, DTypeError, OutputError, ShapeError, TlgradError,
                           UnsupportedError)
from tlgrad.frontend.mapping import map as mapped
from tlgrad.ops.define import add_tangents, align_batched, documented, mul, widen
from tlgrad.ops.promote import as_dtype_value, promote
from tlgrad.transforms.jvp import jvp_flat

#: by dispatcher: dtypes of the operands -> (loop over entries, dtype of the result)
_loops: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class NumbaFunction:
    """A compiled scalar function on tensors and traced values.  Made by `tl.from_numba`."""

    def __init__(self, f, partials: tuple | None):
        self.f, self.partials = f, partials
        functools.update_wrapper(self, f.py_func, updated=())
        self.arity = len(inspect.signature(f.py_func).parameters)

    def __call__(self, *args):
        if len(args) != self.arity:
            raise TypeError(f"{self.__name__} takes {self.arity} arguments, got {len(args)}")
        values = _weak_as_strong(promote(args, self.__name__, same=False))
        return numba_call.bind(*values, function=self)

    def loop(self, kinds: tuple) -> tuple[Callable, dtypes.DType]:
        """``loop(out, *flat arrays)`` for operands of these dtypes, and the dtype of the result."""
        known = _loops.setdefault(self.f, {})
        if kinds not in known:
            known[kinds] = _compile(self.f, kinds)
        return known[kinds]

    def __eq__(self, other):
        return type(other) is NumbaFunction and (self.f, self.partials) == (other.f, other.partials)

    def __hash__(self):
        return hash((self.f, self.partials))

    def __reduce__(self):
        return from_numba, (self.f, self.partials)

    def __repr__(self):
        return f"<from_numba of {describe_callable(self.f.py_func)}>"


def _weak_as_strong(values) -> list:
    """Python numbers in the dtype of the first operand of their kind that has one."""
    strong = {v.dtype.kind: v.dtype for v in reversed(values) if not v.aval.weak}
    return [as_dtype_value(v, strong.get(v.dtype.kind, v.dtype)) if v.aval.weak else v for v in values]


def _compile(f, kinds):
    """The loop that calls `f` for each entry; UnsupportedError when Numba has no code for the dtypes."""
    import numba
    from numba.core.errors import NumbaError
    from numba.np.numpy_support import as_dtype, from_dtype
    shown = f"{describe_callable(f.py_func)} for ({', '.join(d.name for d in kinds)})"
    try:
        signature = tuple(from_dtype(d.storage) for d in kinds)
        f.compile(signature)
        given = f.overloads[signature].signature.return_type
    except (NumbaError, NotImplementedError) as error:
        raise UnsupportedError(f"numba.njit cannot compile {shown}: {str(error).strip().splitlines()[0]}. "
                               "Convert the operands first, e.g. tl.convert(x, tl.float64).") from error
    try:
        result = dtypes.of_storage(as_dtype(given))
    except (NumbaError, NotImplementedError, TlgradError):
        raise OutputError(f"{shown} gives {given}; a scalar function gives one number") from None
    names = ", ".join(f"x{k}" for k in range(len(kinds)))
    entries = ", ".join(f"x{k}[i]" for k in range(len(kinds)))
    source = f"def loop(out, {names}):\n    for i in range(out.size):\n        out[i] = f({entries})\n"
    scope = {"f": f}
    exec(compile(source, "<tlgrad loop>", "exec"), scope)
    return numba.njit(scope["loop"]), result


# ---- the primitive ----

def _impl(*arrays, function):
    shape = next((x.shape for x in arrays if x.shape), ())
    loop, result = function.loop(tuple(dtypes.of_storage(x.dtype) for x in arrays))
    out = np.empty(shape, result.storage)
    flat = [np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1) for x in arrays]
    loop(out.reshape(-1), *flat)
    return out


def _abstract(*avals, function):
    shapes = {a.shape for a in avals if a.shape}
    if len(shapes) > 1:
        raise ShapeError(f"{function.__name__}: operands have shapes {[a.shape for a in avals]}")
    for a in avals:
        if a.dtype.software or a.dtype.storage.itemsize == 2 and a.dtype.kind == "f":
            raise DTypeError(f"{function.__name__}: numba.njit does not compute in {a.dtype}; convert it first, "
                             "e.g. tl.convert(x, tl.float64)")
    return make_aval(next(iter(shapes), ()), function.loop(tuple(a.dtype for a in avals))[1])


def _jvp(primals, tangents, *, function):
    y = numba_call.bind(*primals, function=function)
    if y.dtype.kind not in "fc":
        return y, Zero(y.aval)
    if function.partials is None:
        return y, widen(_traced_tangent(function, y, primals, tangents), y.aval)
    y_dot = Zero(y.aval)
    for partial, t in zip(function.partials, tangents, strict=True):
        if type(t) is not Zero and partial is not None:
            y_dot = add_tangents(y_dot, mul(partial(y, *primals), t))
    return y, widen(y_dot, y.aval)


def _traced_tangent(function, y, primals, tangents):
    """The tangent of the mapped Python function."""
    whole = [widen(x, y.aval) for x in primals]
    moving = [t if type(t) is Zero else widen(t, y.aval) for t in tangents]
    try:
        _, (y_dot,) = jvp_flat(lambda *xs: [mapped(function.f.py_func)(*xs)], whole, moving)
    except TlgradError as error:
        raise DifferentiationError(
            f"{describe_callable(function.f.py_func)}: the Python function behind numba.njit has no derivative "
            f"that can be recorded ({error}). Give it: tl.from_numba(f, partials=[lambda y, x: ...])") from error
    return y_dot if type(y_dot) is Zero else as_dtype_value(y_dot, y.dtype)


def _batch(args, axes, size, *, function):
    return numba_call.bind(*align_batched(args, axes, size), function=function), 0


numba_call = documented(
    Primitive("numba_call", impl=_impl, abstract=_abstract, jvp=_jvp, batch=_batch),
    "A function compiled by numba.njit, entry by entry.", "*operands")


def from_numba(f: Callable, partials: Sequence[Callable | None] | None = None) -> NumbaFunction:
    """A scalar function compiled by `numba.njit`, as an elementwise operation on tensors.

    The result can be called on tensors and traced values of shapes that broadcast, inside `run`, `map`
    and every transform.  Each entry of the value is what the compiled function gives for it, so
    this operation is outside of the rule that a program defines the bits.  Dtypes: those that Numba
    computes in; the result has the dtype that Numba infers.

    The derivative is that of the Python function behind `f`.  `partials` gives it instead: one
    callable an argument, ``(y, *arguments) -> dy / d argument`` (None: zero).

    Raises ArgumentError when `f` was not made by numba.njit, UnsupportedError for dtypes that it cannot
    be compiled for, OutputError when it gives no number, DifferentiationError when the Python
    function cannot be recorded, and what the function itself raises.

    >>> import numba
    >>> cube = tl.from_numba(numba.njit(lambda x: x * x * x))
    >>> tl.grad(lambda x: tl.sum(cube(x)))(tl.tensor([1.0, 2.0]))
    tensor([ 3., 12.], float64, shape (2,), cpu)
    """
    if not isinstance(getattr(f, "py_func", None), types.FunctionType):
        raise ArgumentError(f"from_numba takes a function made by numba.njit, got {type(f).__name__}: {f!r:.60}. "
                            "Python functions need no wrapper: call them, or use tl.map(f).")
    made = NumbaFunction(f, None if partials is None else tuple(partials))
    if partials is not None and len(made.partials) != made.arity:
        raise ArgumentError(f"from_numba: {made.__name__} has {made.arity} arguments, and {len(made.partials)} "
                            "partials were given")
    return made
