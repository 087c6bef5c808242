"""The greatest and least of complex numbers in NumPy's order: by real part, then by imaginary part."""
from __future__ import annotations

import math

from tlgrad.core import dtypes
from tlgrad.core.trace import Value
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import logic as lo
from tlgrad.ops import reduce
from tlgrad.ops.convert import convert
from tlgrad.ops.index import take_along_axis
from tlgrad.ops.layout import reshape, transpose


def first_winner(x: Value, greatest: bool) -> Value:
    """int64 index along the last axis of the first greatest (or least) entry; a NaN part wins."""
    last = (x.ndim - 1,)
    re, im = (v if greatest else ar.neg(v) for v in (ar.real(x), ar.imag(x)))
    nan = lo.or_(lo.is_nan(re), lo.is_nan(im))
    re = lo.where(nan, math.inf, re)
    tie = lo.eq(re, _kept(reduce.reduce_max.bind(re, axes=last), x))
    im = lo.where(tie, lo.where(nan, math.inf, im), -math.inf)
    winner = lo.and_(tie, lo.eq(im, _kept(reduce.reduce_max.bind(im, axes=last), x)))
    some = _kept(reduce.reduce_max.bind(convert(nan, dtypes.uint8), axes=last), x)
    winner = lo.where(lo.eq(some, 1), nan, winner)
    return reduce.argmax_p.bind(convert(winner, dtypes.uint8), axis=last[0])


def _kept(y, x):
    return reshape.bind(y, shape=(*x.shape[:-1], 1))


def extreme(x: Value, axes: tuple[int, ...], greatest: bool) -> Value:
    """The greatest (or least) entry over `axes`; the derivative belongs to the first winner."""
    kept = [k for k in range(x.ndim) if k not in axes]
    x = transpose.bind(x, perm=(*kept, *axes))
    shape = x.shape[:len(kept)]
    x = reshape.bind(x, shape=(*shape, math.prod(x.shape[len(kept):])))
    places = _kept(first_winner(x, greatest), x)
    return reshape.bind(take_along_axis(x, places, x.ndim - 1), shape=shape)
