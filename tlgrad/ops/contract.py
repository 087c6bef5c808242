"""dot_general: products summed over shared axes, in a stated order."""
from __future__ import annotations

from math import prod

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.execute import Heavy
from tlgrad.core.primitive import Linear
from tlgrad.errors import DTypeError, ShapeError
from tlgrad.ops import define, orders
from tlgrad.ops.define import add_tangents, documented
from tlgrad.ops.layout import broadcast, moveaxis, transpose

# contract: ((x axes), (y axes)) summed over together, row-major in the order given;
# batch: ((x axes), (y axes)) kept in common.  Result axes: batch, rest of x, rest of y.


def _rest(ndim, *used):
    taken = set().union(*used)
    return tuple(k for k in range(ndim) if k not in taken)


def _dot_abstract(x, y, *init, contract, batch, order):
    for which in (contract, batch):
        for a, b in zip(*which, strict=True):
            if x.shape[a] != y.shape[b]:
                raise ShapeError(f"dot_general: axis {a} of {x} and axis {b} of {y} have sizes "
                                 f"{x.shape[a]} and {y.shape[b]}")
    if x.dtype is not y.dtype:
        raise DTypeError(f"dot_general takes operands of one dtype, got {x} and {y}")
    shape = (*[x.shape[a] for a in batch[0]],
             *[x.shape[a] for a in _rest(x.ndim, contract[0], batch[0])],
             *[y.shape[b] for b in _rest(y.ndim, contract[1], batch[1])])
    out = make_aval(shape, x.dtype)
    if init and init[0].strong() != out:
        raise ShapeError(f"dot_general: init= must be {out}, got {init[0]}")
    return out


def _split(x, contract, batch):
    """Shape (terms, *batch, *rest)."""
    rest = _rest(x.ndim, contract, batch)
    moved = np.transpose(x, (*contract, *batch, *rest))
    terms = prod(x.shape[a] for a in contract)
    return moved.reshape(terms, *moved.shape[len(contract):])


def _dot_impl(x, y, *init, contract, batch, order):
    shared = tuple(x.shape[k] for k in batch[0])
    x_rest, y_rest = ([v.shape[k] for k in _rest(v.ndim, c, s)] for v, c, s in zip((x, y), contract, batch))
    shape = (*shared, *x_rest, *y_rest)
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    if order == "free" and x.dtype.kind != "V":
        return _free(x, y, contract, batch, shape, init)
    a, b = _split(x, contract[0], batch[0]), _split(y, contract[1], batch[1])
    a = a.reshape(a.shape[0], *shared, prod(x_rest), 1)
    b = b.reshape(b.shape[0], *shared, 1, prod(y_rest))
    start = init[0].reshape(*shared, prod(x_rest), prod(y_rest)) if init else None
    return orders.contract(a, b, order, start).reshape(shape)


def _free(x, y, contract, batch, shape, init):
    """NumPy's matmul, which calls BLAS for floats; entrywise products where an operand has no axes
    of its own, since matmul would call BLAS once for each of them."""
    shared, terms = shape[:len(batch[0])], prod(x.shape[k] for k in contract[0])
    x_rest, y_rest = (_rest(v.ndim, c, s) for v, c, s in zip((x, y), contract, batch))
    a = np.transpose(x, (*batch[0], *x_rest, *contract[0]))
    b = np.transpose(y, (*batch[1], *contract[1], *y_rest))
    m, n = prod(x.shape[k] for k in x_rest), prod(y.shape[k] for k in y_rest)
    a, b = a.reshape(*shared, m, terms), b.reshape(*shared, terms, n)
    with np.errstate(all="ignore"):
        if terms == 1:
            out = a[..., 0, 0] * b[..., 0, 0] if m * n == 1 else a * b
        elif m * n == 1 and shared:
            out = np.einsum("...k,...k->...", a[..., 0, :], b[..., 0])
        else:
            out = np.matmul(a, b)
        out = out.reshape(shape)
        return out + init[0] if init else out


def _dot_work(x, y, *init, contract, batch, order):
    """The number of products; a fused step costs the interpreter much more."""
    if order == "free":
        return 0
    products = x.size * prod(y.shape[k] for k in _rest(y.ndim, contract[1], batch[1]))
    return products * (64 if order == "fused" else 1)


def _dot_jvp(primals, tangents, **params):
    x, y, *init = primals
    out = dot_general.bind(*primals, **params)
    x_dot, y_dot, *init_dot = tangents
    out_dot = init_dot[0] if init_dot else Zero(out.aval)
    if type(x_dot) is not Zero:
        out_dot = add_tangents(out_dot, dot_general.bind(x_dot, y, **params))
    if type(y_dot) is not Zero:
        out_dot = add_tangents(out_dot, dot_general.bind(x, y_dot, **params))
    return out, out_dot


def _transpose_operand(ct, other, shape, mine, theirs, ct_is_x_side, order):
    """The cotangent of one operand: ct contracted with the other over the other's own axes.

    `mine`, `theirs`: (contract axes, batch axes) of the two operands.
    """
    n_batch = len(mine[1])
    my_rest = _rest(len(shape), *mine)
    other_rest = _rest(other.ndim, *theirs)
    first = n_batch if not ct_is_x_side else n_batch + len(my_rest)
    ct_axes = tuple(range(first, first + len(other_rest)))
    sides = (ct, ct_axes, tuple(range(n_batch))), (other, other_rest, theirs[1])
    by_other = sorted(range(len(theirs[0])), key=lambda i: theirs[0][i])
    axes = [my_rest, [mine[0][i] for i in by_other]]
    if not ct_is_x_side:                      # factors commute: the axes come out as a matrix product has them
        sides, axes = sides[::-1], axes[::-1]
    values, contract, batch = zip(*sides)
    out = dot_general.bind(*values, contract=contract, batch=batch, order=order)
    # out axes: batch, then those that one factor has alone, the other's contracted axes in increasing order
    current = (*mine[1], *axes[0], *axes[1])
    return transpose.bind(out, perm=tuple(int(i) for i in np.argsort(current)))


def _dot_transpose(ct, x, y, *init, contract, batch, order):
    x_side, y_side = (contract[0], batch[0]), (contract[1], batch[1])
    x_ct = y_ct = None
    if type(x) is Linear:
        x_ct = _transpose_operand(ct, y, x.aval.shape, x_side, y_side, True, order)
    if type(y) is Linear:
        y_ct = _transpose_operand(ct, x, y.aval.shape, y_side, x_side, False, order)
    return [x_ct, y_ct, *[ct if type(v) is Linear else None for v in init]]


def _dot_batch(args, axes, size, *, contract, batch, order):
    (x, y, *init), (x_axis, y_axis, *i_axis) = args, axes
    if x_axis is None and y_axis is None:   # only the accumulator differs between lanes
        x, x_axis = broadcast.bind(x, shape=(size, *x.shape), axes=tuple(range(1, x.ndim + 1))), 0
    shift = [None, None]
    operands = [x, y]
    for k, axis in enumerate((x_axis, y_axis)):
        if axis is not None:
            operands[k] = moveaxis(operands[k], axis, 0)
            shift[k] = 1
    contract = tuple(tuple(a + (s or 0) for a in group) for s, group in zip(shift, contract))
    batch = tuple(tuple(a + (s or 0) for a in group) for s, group in zip(shift, batch))
    if all(shift):
        batch = ((0, *batch[0]), (0, *batch[1]))
        place = 0
    else:                                   # the mapped axis is an ordinary free axis of one operand
        first = _rest(operands[0].ndim, contract[0], batch[0])
        place = len(batch[0]) + (0 if shift[0] else len(first))
    params = dict(contract=contract, batch=batch, order=order)
    if init:
        start = moveaxis(init[0], i_axis[0], place) if i_axis[0] is not None else broadcast.bind(
            init[0], shape=(*init[0].shape[:place], size, *init[0].shape[place:]),
            axes=tuple(k if k < place else k + 1 for k in range(init[0].ndim)))
        return dot_general.bind(*operands, start, **params), place
    return dot_general.bind(*operands, **params), place


dot_general = documented(
    Heavy("dot_general", work=_dot_work, impl=_dot_impl, abstract=_dot_abstract, jvp=_dot_jvp,
          transpose=_dot_transpose, batch=_dot_batch, kind="contraction", lower=("contraction", "dot")),
    "Sum over shared axes of products, in `order`, continuing from `init` (default +0).", "x y init")


def contract_axes(x, y, contract, batch=((), ()), order: str | None = None):
    """dot_general under the order of the run; narrow floats accumulate in float32, rounding once."""
    dtype, order = x.dtype, orders.check_order(order)
    if dtypes.accumulator(dtype) is not dtype:
        wide = [define.RULES.convert(v, dtypes.float32) for v in (x, y)]
        return define.RULES.convert(
            dot_general.bind(*wide, contract=contract, batch=batch, order=order), dtype)
    return dot_general.bind(x, y, contract=contract, batch=batch, order=order)
