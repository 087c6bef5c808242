"""Reductions other than the sum, and prefix sums.

Products, maxima and minima run left to right; argmax and argmin take the first winner.
"""
from __future__ import annotations

import ctypes
from math import prod

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.execute import Heavy
from tlgrad.core.primitive import Primitive
from tlgrad.core.tensor import convert_array
from tlgrad.errors import DTypeError, ShapeError
from tlgrad.ops import meaning, orders
from tlgrad.ops.define import documented, linear, mul
from tlgrad.ops.convert import convert
from tlgrad.ops.index import take_along_axis
from tlgrad.ops.layout import (broadcast, moveaxis, reduced_shape, reshape, sum_axes,
                               transpose, zeros)
from tlgrad.ops.logic import convert_like, eq, gt, is_nan, or_, select
from tlgrad.ops.shape import concatenate, iota, reverse, slice_axis


def _reduction(name, impl, doc, *, kinds, jvp=None, result=None, combine=None, nondiff=None):
    """Define a primitive that reduces sorted `axes`."""
    def abstract(x, *, axes):
        if x.dtype.kind not in kinds:
            raise DTypeError(f"{name} is not defined for {x.dtype}; it takes {meaning.kind_names(kinds)}")
        return make_aval(reduced_shape(x.shape, axes), result or x.dtype, x.weak and not result)

    def batch(args, axes_in, size, *, axes):
        x = moveaxis(args[0], axes_in[0], 0)
        return prim.bind(x, axes=tuple(a + 1 for a in axes)), 0

    prim = Heavy(name, work=_prod_work if combine == "mul" else _no_work, impl=impl, abstract=abstract,
                 jvp=jvp, batch=batch, kind="reduction", lower=("reduction", combine or name), nondiff=nondiff)
    return documented(prim, doc, "x")


def _prod_work(x, *, axes):
    return x.size


def _no_work(x, *, axes):
    return 0


def _fold(combine, terms):
    acc = terms[0]
    for term in terms[1:] if acc.size else ():
        acc = combine(acc, term)
    return np.asarray(acc)


def _extreme(name):
    combine = meaning.implementation(name)

    def impl(x, *, axes):
        if not prod(x.shape[k] for k in axes):
            raise ShapeError(f"{name}: the reduced axes {axes} of shape {x.shape} are empty, and "
                             f"a {name}imum has no identity; use where= or initial= values instead")
        if x.dtype.kind in "iuf" and (found := _by_numpy(name, x, axes)) is not None:
            return found
        terms = orders.terms_first(x, axes)
        # keep the earlier of equal terms, so that the winner is that of argmax / argmin
        return _fold((lambda a, t: combine(t, a)) if name == "max" else combine, terms)
    return impl


def _by_numpy(name, x, axes):
    """NumPy's reduction, which is free in its order; None where zeros of both signs meet."""
    with np.errstate(all="ignore"):
        found = np.asarray((np.maximum if name == "max" else np.minimum).reduce(x, axis=axes))
        if x.dtype.kind == "f" and (found == 0).any() and np.any((x == 0) & np.signbit(x)):
            return None
    return found


def _winner_jvp(find):
    """The tangent of the first winner.  Where axes are kept it is a sum of selected entries, which is entry
    by entry in reverse; a single winner is gathered."""
    def rule(primals, tangents, *, axes):
        (x,), (x_dot,) = primals, tangents
        y = find().bind(x, axes=axes)
        if len(axes) == x.ndim:
            winner = reshape.bind(_arg_prim(find()).bind(flat_last(x, axes), axis=0), shape=(1,))
            return y, reshape.bind(take_along_axis(flat_last(x_dot, axes), winner, 0), shape=())
        kept = tuple(k for k in range(x.ndim) if k not in axes)
        place, nowhere = places(x.shape, axes)
        wins = or_(eq(x, broadcast.bind(y, shape=x.shape, axes=kept)), is_nan(x))
        first = reduce_min.bind(select(wins, place, nowhere), axes=axes)
        chosen = eq(place, broadcast.bind(first, shape=x.shape, axes=kept))
        return y, sum_axes(select(chosen, x_dot, zeros(x_dot.aval)), axes, "ordered")
    return rule


def places(shape, axes):
    """The row-major number of each entry among those of `axes`, and the number after the last."""
    sizes = tuple(shape[a] for a in axes)
    count = prod(sizes)
    dtype = dtypes.int32 if count < 1 << 31 else dtypes.int64
    places = reshape.bind(iota.bind(shape=(count,), axis=0, dtype=dtype), shape=sizes)
    return broadcast.bind(places, shape=shape, axes=axes), convert(count, dtype)


def flat_last(x, axes):
    """`axes` joined in row-major order into one last axis."""
    kept = [k for k in range(x.ndim) if k not in axes]
    moved = transpose.bind(x, perm=(*kept, *axes))
    n = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    return reshape.bind(moved, shape=(*[x.shape[k] for k in kept], n))


reduce_max = _reduction("reduce_max", _extreme("max"), "Greatest entry along `axes`; NaN spreads; "
                        "the derivative belongs to the first winner.", kinds="biuf",
                        jvp=_winner_jvp(lambda: reduce_max), combine="max")
reduce_min = _reduction("reduce_min", _extreme("min"), "Least entry along `axes`; NaN spreads; "
                        "the derivative belongs to the first winner.", kinds="biuf",
                        jvp=_winner_jvp(lambda: reduce_min), combine="min")
reduce_any = _reduction("reduce_any", lambda x, *, axes: np.any(x, axis=axes),
                        "True where some entry along `axes` is.", kinds="b", nondiff="", combine="or")
reduce_all = _reduction("reduce_all", lambda x, *, axes: np.all(x, axis=axes),
                        "True where every entry along `axes` is.", kinds="b", nondiff="", combine="and")


# ---- product: leave-one-out derivatives, no division ----

def _prod_impl(x, *, axes):
    terms = orders.terms_first(x, axes)
    if not terms.shape[0]:
        return convert_array(np.ones(terms.shape[1:]), dtypes.of_storage(x.dtype))
    return _fold(meaning.implementation("mul"), terms)


def _prod_jvp(primals, tangents, *, axes):
    """d prod = sum_k (product before k) (product after k) x_dot_k: right with any zeros."""
    x, x_dot = flat_last(primals[0], axes), flat_last(tangents[0], axes)
    y = reduce_prod.bind(primals[0], axes=axes)
    last, n = x.ndim - 1, x.shape[-1]
    if n == 0:
        return y, Zero(y.aval)
    before = _products_before(x, last)
    after = reverse.bind(_products_before(reverse.bind(x, axes=(last,)), last), axes=(last,))
    return y, sum_axes(mul(mul(before, after), x_dot), (last,))


reduce_prod = _reduction("reduce_prod", _prod_impl, "Product along `axes`, left to right from 1.",
                         kinds="iufc", jvp=_prod_jvp, combine="mul")


# ---- argmax, argmin ----

def _arg_reduction(name, impl, doc):
    def abstract(x, *, axis):
        if x.shape[axis] == 0:
            raise ShapeError(f"{name}: axis {axis} of shape {x.shape} is empty")
        return make_aval(reduced_shape(x.shape, (axis,)), dtypes.int64)

    def batch(args, axes, size, *, axis):
        return prim.bind(moveaxis(args[0], axes[0], 0), axis=axis + 1), 0
    prim = Primitive(name, impl=impl, abstract=abstract, batch=batch, kind="reduction",
                     lower=("reduction", name), nondiff="")
    return documented(prim, doc, "x")


def _writeable(x: np.ndarray) -> np.ndarray:
    """The same memory as an array that may be written: np.argmax copies any other (measured: 3x the time).
    Nothing writes to it."""
    if x.flags.writeable or not x.flags.c_contiguous or x.nbytes < _COPY_COUNTS or x.dtype.kind not in "biuf":
        return x
    memory = (ctypes.c_char * x.nbytes).from_address(x.ctypes.data)
    return np.frombuffer(memory, x.dtype).reshape(x.shape)


#: bytes from which a copy takes longer than going around it
_COPY_COUNTS = 1 << 15


argmax_p = _arg_reduction("argmax", lambda x, *, axis: np.argmax(_writeable(meaning.comparable(x)), axis),
                          "Index of the first greatest entry along `axis`; a NaN wins.")
argmin_p = _arg_reduction("argmin", lambda x, *, axis: np.argmin(_writeable(meaning.comparable(x)), axis),
                          "Index of the first least entry along `axis`; a NaN wins.")


def _arg_prim(prim):
    return argmax_p if prim is reduce_max else argmin_p


# ---- prefix sums and products ----

def _scan_along(combine, x, axis, first):
    out = np.empty_like(x)
    moved, target = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    acc = first
    for k in range(moved.shape[0]):
        acc = combine(acc, moved[k])
        target[k] = acc
    return out


def _cumsum_impl(x, *, axis, reverse):
    x = np.flip(x, axis) if reverse else x
    out = _scan_along(meaning.implementation("add"), x, axis,
                      np.zeros(reduced_shape(x.shape, (axis,)), x.dtype))
    return np.flip(out, axis) if reverse else out


cumsum_p = linear(
    "cumsum", "Sums of the first 1, 2, ... entries along `axis`, left to right from +0.",
    impl=_cumsum_impl, abstract=lambda x, *, axis, reverse: x,
    transpose=lambda ct, x, *, axis, reverse: [cumsum_p.bind(ct, axis=axis, reverse=not reverse)],
    batch=lambda args, axes, size, *, axis, reverse: (
        cumsum_p.bind(moveaxis(args[0], axes[0], 0), axis=axis + 1, reverse=reverse), 0),
    kind="scan")


def cumsum_axis(x, axis):
    """Prefix sums along one axis."""
    return cumsum_p.bind(x, axis=axis, reverse=False)


def cumprod(x, axis):
    """Prefix products along one axis, left to right."""
    return cumprod_p.bind(x, axis=axis)


def _cumprod_impl(x, *, axis):
    moved = np.moveaxis(x, axis, 0)
    if not moved.shape[0]:
        return x
    out = np.empty_like(x)
    target = np.moveaxis(out, axis, 0)
    target[0] = acc = moved[0]
    for k in range(1, moved.shape[0]):
        target[k] = acc = meaning.implementation("mul")(acc, moved[k])
    return out


def _cumprod_jvp(primals, tangents, *, axis):
    """y_k' = sum over j <= k of (product before j) (product after j, to k) x_j': no division."""
    x, x_dot = (moveaxis(v, axis, v.ndim - 1) for v in (primals[0], tangents[0]))
    y = cumprod_p.bind(primals[0], axis=axis)
    n, last = x.shape[-1], x.ndim - 1
    if n == 0:
        return y, Zero(y.aval)
    shape = (*x.shape, n)                     # [..., j, k]
    one = convert_like(eq(0, 0), x)
    j, k = (iota.bind(shape=shape, axis=last + i, dtype=dtypes.int64) for i in (0, 1))
    along_k = broadcast.bind(x, shape=shape, axes=(*range(last), last + 1))
    after = cumprod_p.bind(select(gt(k, j), along_k, one), axis=last + 1)
    before = _products_before(x, last)
    parts = mul(mul(_along_j(before, shape), after), _along_j(x_dot, shape))
    kept = select(gt(j, k), zeros(parts.aval), parts)
    return y, moveaxis(sum_axes(kept, (last,), "ordered"), last, axis)


def _along_j(v, shape):
    return broadcast.bind(v, shape=shape, axes=tuple(range(v.ndim)))


def _products_before(x, last):
    """1, x_0, x_0 x_1, ...: the products of what comes before each entry."""
    one = broadcast.bind(convert_like(eq(0, 0), x), shape=(*x.shape[:-1], 1), axes=())
    return cumprod(concatenate.bind(one, slice_axis(x, last, 0, x.shape[-1] - 1), axis=last), last)


cumprod_p = documented(
    Primitive("cumprod", impl=_cumprod_impl, abstract=lambda x, *, axis: x, jvp=_cumprod_jvp,
              batch=lambda args, axes, size, *, axis: (
                  cumprod_p.bind(moveaxis(args[0], axes[0], 0), axis=axis + 1), 0),
              kind="scan", lower=("scan", "mul")),
    "Products of the first 1, 2, ... entries along `axis`.", "x")
