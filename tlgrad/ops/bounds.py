"""within: the identity on numbers that lie between bounds; an error elsewhere, also in a compiled program."""
from __future__ import annotations

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.primitive import Primitive
from tlgrad.core.tensor import Tensor, convert_array
from tlgrad.errors import DTypeError, RangeError
from tlgrad.ops import meaning
from tlgrad.ops.define import documented


def _impl(x, *, low, high, what):
    outside = np.zeros(x.shape, bool)
    for comparison, bound in (("lt", low), ("gt", high)):
        if bound is not None:
            limit = convert_array(np.array(bound), dtypes.of_storage(x.dtype))
            outside |= meaning.implementation(comparison)(x, np.broadcast_to(limit, x.shape))
    if outside.any():
        place = tuple(int(k) for k in np.argwhere(outside)[0])
        at = f" at entry {place}" if place else ""
        raise RangeError(f"{what}; got {Tensor.own(np.array(x[place])).item()}{at}")
    return x


def _abstract(x, *, low, high, what):
    if x.dtype.kind not in "iuf":
        raise DTypeError(f"within takes integers and floats, got {x}")
    return x


within_p = documented(
    Primitive("within", impl=_impl, abstract=_abstract,
              jvp=lambda primals, tangents, **params: (within_p.bind(*primals, **params), tangents[0]),
              batch=lambda args, axes, size, **params: (within_p.bind(*args, **params), axes[0]),
              kind="elementwise", lower=("elementwise", "within")),
    "x itself where low <= x <= high; elsewhere RangeError, which says `what` and names the first entry.", "x")


def within(x, low, high, what: str):
    """x, of which no entry is below `low` or above `high` (None: no bound); a NaN is neither.

    The bounds are numbers of the dtype of x.
    """
    return within_p.bind(x, low=low, high=high, what=what)
