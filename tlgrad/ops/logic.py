"""Comparisons, choice, and bits."""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.errors import DTypeError, ShapeError
from tlgrad.ops import meaning, promote, shape
from tlgrad.ops.define import align_batched, documented, elementwise, step, to_bool, widen
from tlgrad.ops.layout import sum_to

eq = step("eq", "x == y; NaN equals nothing, -0 equals 0.", kinds="biufc", arity=2, result=to_bool)
ne = step("ne", "x != y; NaN differs from everything.", kinds="biufc", arity=2, result=to_bool)
lt = step("lt", "x < y; False with a NaN.", kinds="biuf", arity=2, result=to_bool)
le = step("le", "x <= y; False with a NaN.", kinds="biuf", arity=2, result=to_bool)
gt = step("gt", "x > y; False with a NaN.", kinds="biuf", arity=2, result=to_bool)
ge = step("ge", "x >= y; False with a NaN.", kinds="biuf", arity=2, result=to_bool)
is_finite = step("is_finite", "False for infinities and NaN.", kinds="biufc", result=to_bool)
is_nan = step("is_nan", "True for NaN.", kinds="biufc", result=to_bool)

and_ = step("and", "Bits set in both; logical and of bools.", kinds="biu", arity=2)
or_ = step("or", "Bits set in either; logical or of bools.", kinds="biu", arity=2)
xor = step("xor", "Bits set in one; exclusive or of bools.", kinds="biu", arity=2)
not_ = step("not", "Bits flipped; logical not of bools.", kinds="biu")
shift_left = step("shift_left", "Bits of x moved up by y; 0 from the width on.", kinds="iu", arity=2)
shift_right = step("shift_right", "Bits of x moved down by y; signed numbers keep their sign.",
                   kinds="iu", arity=2)


def _first_wins(z, x, y):
    """1 where the maximum is x, strictly; a NaN operand is its own result."""
    return convert_like(or_(gt(x, y), is_nan(x)), z)


def convert_like(mask, like):
    """A bool as 0 and 1 of the dtype of `like`."""
    return select(mask, _one(like), _zero(like))


def _one(like):
    return promote.as_dtype_value(as_value(1), like.dtype)


def _zero(like):
    return promote.as_dtype_value(as_value(0), like.dtype)


maximum = elementwise("max", """
    The greater of x and y: x if x > y, else y.  A NaN operand gives NaN.

    The derivative follows that sentence: at a tie all of it belongs to y, so that
    maximum(x, 0), relu(x) and where(x > 0, x, 0) agree.

    >>> maximum(tl.tensor([1.0, -2.0]), 0)
    tensor([1., 0.], float64, shape (2,), cpu)
    """, [_first_wins, lambda z, x, y: convert_like(not_(or_(gt(x, y), is_nan(x))), z)], kinds="biuf")

minimum = elementwise("min", """
    The lesser of x and y: y if y < x, else x.  A NaN operand gives NaN.

    The derivative follows that sentence: at a tie all of it belongs to x, so that
    maximum(x, 0) + minimum(x, 0) has derivative 1 everywhere.

    >>> minimum(tl.tensor([1.0, -2.0]), 0)
    tensor([ 0., -2.], float64, shape (2,), cpu)
    """, [lambda z, x, y: convert_like(not_(or_(lt(y, x), is_nan(y))), z),
          lambda z, x, y: convert_like(or_(lt(y, x), is_nan(y)), z)], kinds="biuf")


# ---- select ----

def _select_abstract(which, x, y):
    if which.dtype is not dtypes.bool_ or x.dtype is not y.dtype:
        raise DTypeError(f"select takes bool and two values of one dtype, got {which}, {x}, {y}")
    shapes = {a.shape for a in (which, x, y)} - {()}
    if len(shapes) > 1:
        raise ShapeError(f"select: shapes {which.shape}, {x.shape}, {y.shape}")
    return make_aval(shapes.pop() if shapes else (), x.dtype, x.weak and y.weak)


def _select_jvp(primals, tangents):
    which, x, y = primals
    z = select.bind(which, x, y)
    x_dot, y_dot = (_zero(z) if type(t) is Zero else t for t in tangents[1:])
    return z, widen(select(which, x_dot, y_dot), z.aval)


def _select_transpose(ct, which, x, y):
    zero = _zero(ct)
    return [None,
            sum_to(select(which, ct, zero), x.aval.shape) if type(x) is Linear else None,
            sum_to(select(which, zero, ct), y.aval.shape) if type(y) is Linear else None]


def _select_batch(args, axes, size):
    return select.bind(*align_batched(args, axes, size)), 0


class _Select(Primitive):
    """Calling it broadcasts its operands, which have one dtype."""

    def __call__(self, which, x, y):
        return self.bind(*promote.broadcast_together([which, x, y], "select"))


select = documented(
    _Select("select", impl=meaning.implementation("select"), abstract=_select_abstract,
            jvp=_select_jvp, transpose=_select_transpose, batch=_select_batch,
            kind="elementwise", lower=("elementwise", "select")),
    "x where `which` holds, else y, entry by entry.", "which x y")
shape.provide_select(select)


def where(condition, x, y) -> Value:
    """x where `condition` holds, else y, entry by entry; broadcasting.

    The side that is not taken contributes exactly zero to every derivative, also when it is
    infinite or NaN.  Dtypes promote as in arithmetic.  Raises DTypeError unless the condition
    is bool.

    >>> where(tl.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.], float64, shape (2,), cpu, weak)
    """
    condition = as_value(condition, "the condition of where")
    if condition.dtype is not dtypes.bool_:
        raise DTypeError(f"where: the condition must be bool, got {condition.aval}; "
                         "write the comparison out, e.g. x != 0")
    values = promote.promote((x, y), "where")
    return select(condition, *values)


def logical_and(x, y):
    """x and y, entry by entry; numbers count as True when they are not zero."""
    return and_(as_bool(x), as_bool(y))


def logical_or(x, y):
    """x or y, entry by entry; numbers count as True when they are not zero."""
    return or_(as_bool(x), as_bool(y))


def logical_xor(x, y):
    """Exactly one of x and y, entry by entry."""
    return xor(as_bool(x), as_bool(y))


def logical_not(x):
    """not x, entry by entry."""
    return not_(as_bool(x))


def as_bool(x):
    """x as bool: True where it is not zero."""
    x = as_value(x)
    return x if x.dtype is dtypes.bool_ else ne(x, 0)
