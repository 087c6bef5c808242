"""Constructors for classes of primitives, and the two primitives that all rules need.

    elementwise(name, partials=...)   entry by entry; operands of one shape, or of shape ()
    linear(name, transpose=...)       jvp is the primitive itself
    comparison / step                 zero derivative

A derivative is stated once, as partials of (result, *operands); the jvp follows, and the vjp
follows from linearize and transpose.
"""
from __future__ import annotations

import inspect
from typing import Callable

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.errors import DTypeError, ShapeError
from tlgrad.ops import meaning
from tlgrad.ops.promote import promote


class Elementwise(Primitive):
    """A primitive that acts entry by entry.  Calling it promotes and broadcasts first."""

    def __init__(self, name, arity, *, kinds, inexact=False, same=True, result=None, impl=None, **rules):
        if impl is not None:
            meaning.INTRINSICS[name] = impl
        super().__init__(name, impl=meaning.implementation(name), abstract=self._abstract,
                         batch=self._batch, kind="elementwise", lower=("elementwise", name), **rules)
        self.arity, self.kinds, self.inexact, self.same, self.result = arity, kinds, inexact, same, result

    def __call__(self, *args):
        if len(args) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} operands, got {len(args)}")
        values = promote(args, self.name, self.inexact, self.same)
        return self.bind(*values)

    def _abstract(self, *avals, **params):
        first = avals[0]
        shape = ()
        for a in avals:
            if a.shape and a.shape != shape:
                if shape:
                    raise ShapeError(f"{self.name}: operands have shapes {[a.shape for a in avals]}")
                shape = a.shape
            if self.same and a.dtype is not first.dtype:
                raise DTypeError(f"{self.name}: operands have dtypes {[a.dtype for a in avals]}")
        if first.dtype.kind not in self.kinds:
            raise DTypeError(f"{self.name} is not defined for {first.dtype}; it takes "
                             f"{meaning.kind_names(self.kinds)}. Convert with tl.convert(x, dtype).")
        dtype = first.dtype if self.result is None else self.result(*[a.dtype for a in avals])
        return make_aval(shape, dtype, all(a.weak for a in avals))

    def _batch(self, args, axes, size, **params):
        return self.bind(*align_batched(args, axes, size), **params), 0


def align_batched(args, axes, size):
    """Operands with the mapped axis in front, all of one shape; unmapped () operands stay ()."""
    from_shape = next((shape_without(a.shape, k) for a, k in zip(args, axes)
                       if a.ndim - (k is not None)), ())
    out = []
    for x, axis in zip(args, axes):
        if axis is None:
            out.append(x if not x.ndim else RULES.broadcast(x, (size, *x.shape), range(1, x.ndim + 1)))
            continue
        x = RULES.moveaxis(x, axis, 0)
        if x.ndim == 1 and from_shape:
            x = RULES.broadcast(x, (size, *from_shape), (0,))
        out.append(x)
    return out


def shape_without(shape, axis):
    """`shape` without the axis (None: all of it)."""
    return shape if axis is None else shape[:axis] + shape[axis + 1:]


class _Rules:
    """Shape primitives that the rules of this file use; set by `ops.shape`, which imports it."""
    broadcast: Callable
    moveaxis: Callable
    sum_to: Callable


RULES = _Rules


def documented(prim: Primitive, doc: str, names: str) -> Primitive:
    """Give a primitive its docstring, name and signature."""
    prim.__doc__ = inspect.cleandoc(doc)
    prim.__name__ = prim.__qualname__ = prim.name
    parameters = [inspect.Parameter(n.lstrip("*"), inspect.Parameter.VAR_POSITIONAL if n[0] == "*"
                                    else inspect.Parameter.POSITIONAL_ONLY) for n in names.split()]
    prim.__signature__ = inspect.Signature(parameters)
    return prim


_NAMES = {1: "x", 2: "x y", 3: "x y z"}


def elementwise(name: str, doc: str, partials=None, *, kinds="fc", arity=None, inexact=None,
                names=None, jvp=None, **rules) -> Elementwise:
    """Define an elementwise primitive.

    partials: one callable per operand, (y, *operands) -> dy/d operand, or None where it is zero.
    kinds:    dtype kinds it takes (b i u f c); if only inexact, integers are promoted to floats.
    impl:     its meaning on NumPy arrays of hardware dtypes, unless `ops.meaning` has it already.
    """
    arity = arity or (len(partials) if partials else 1)
    inexact = not set(kinds) & set("biu") if inexact is None else inexact
    prim = Elementwise(name, arity, kinds=kinds, inexact=inexact, **rules)
    if jvp is not None:
        prim.jvp = jvp
    elif partials is not None:
        prim.jvp = jvp_from_partials(prim, partials)
        prim.partials = tuple(partials)
    return documented(prim, doc, names or _NAMES[arity])


def jvp_from_partials(prim, partials):
    """y_dot = sum of partial_i(y, *x) * x_dot_i, left to right."""
    def rule(primals, tangents, **params):
        y = prim.bind(*primals, **params)
        y_dot = Zero(y.aval)
        for partial, x_dot in zip(partials, tangents, strict=True):
            if type(x_dot) is not Zero and partial is not None:
                y_dot = add_tangents(y_dot, mul(partial(y, *primals, **params), x_dot))
        return y, widen(y_dot, y.aval)
    return rule


def widen(t, aval):
    """A tangent of shape () beside operands of shape s belongs to every entry."""
    if type(t) is Zero or t.shape == aval.shape:
        return t
    return RULES.broadcast(t, aval.shape, ())


def step(name: str, doc: str, *, kinds, arity=1, **rules) -> Elementwise:
    """An elementwise primitive whose derivative is zero everywhere (comparisons, floor, bits)."""
    prim = Elementwise(name, arity, kinds=kinds, nondiff="", **rules)
    return documented(prim, doc, _NAMES[arity])


def to_bool(*_dtypes):
    """Result dtype of predicates."""
    return dtypes.bool_


def linear_jvp(prim):
    """jvp of a primitive that is linear in its first operand and takes no other."""
    def rule(primals, tangents, **params):
        return prim.bind(*primals, **params), prim.bind(*tangents, **params)
    return rule


def linear(name: str, doc: str = "", *, impl, abstract, transpose, batch, lower=None,
           kind="structural", names="x", eager=None) -> Primitive:
    """A primitive of one operand, linear in it.

    kind "structural": it moves, repeats, drops or adds up entries with coefficients 0 and 1.
    """
    prim = Primitive(name, impl=impl, abstract=abstract, transpose=transpose, batch=batch,
                     lower=lower or (kind, name), kind=kind, eager=eager)
    prim.jvp = linear_jvp(prim)
    return documented(prim, doc, names)


def instantiate(t):
    """A tangent or cotangent as a value: a symbolic zero becomes an array of zeros."""
    return RULES.zeros(t.aval) if type(t) is Zero else t


def add_tangents(a, b):
    """a + b for values or symbolic zeros."""
    if type(a) is Zero:
        return b
    if type(b) is Zero:
        return a
    return add(a, b)


def sum_to_operand(ct, operand):
    """A cotangent for an operand that had shape () beside an operand of shape s."""
    return RULES.sum_to(ct, operand.aval.shape)


# ---- add and mul: every derived rule is made of them ----

def _add_jvp(primals, tangents):
    y = add.bind(*primals)
    return y, widen(add_tangents(*tangents), y.aval)


def _add_transpose(ct, x, y):
    return [sum_to_operand(ct, v) if type(v) is Linear else None for v in (x, y)]


def _mul_transpose(ct, x, y):
    if type(x) is Linear:
        return [sum_to_operand(mul.bind(ct, y), x), None]
    return [None, sum_to_operand(mul.bind(x, ct), y)]


add = elementwise("add", """
    Sum of x and y, entry by entry; broadcasting.

    Shapes broadcast; dtypes promote as in NumPy (Python numbers are weak).  Integers wrap
    around; floats round once, to nearest even.

    >>> add(tl.tensor([1.0, 2.0]), 1)
    tensor([2., 3.], float64, shape (2,), cpu)
    """, arity=2, kinds="biufc", jvp=_add_jvp, transpose=_add_transpose)

mul = elementwise("mul", """
    Product of x and y, entry by entry; broadcasting.

    Integers wrap around; floats round once and are never fused with a following addition.

    >>> mul(tl.tensor([1.0, 2.0]), 3)
    tensor([3., 6.], float64, shape (2,), cpu)
    """, [lambda z, x, y: y, lambda z, x, y: x], kinds="biufc", transpose=_mul_transpose)
