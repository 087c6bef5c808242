"""The Euclidean norm as a primitive, because its derivative at the origin is a choice."""
from __future__ import annotations

import numpy as np

from tlgrad.core.aval import make_aval
from tlgrad.core.dtypes import of_storage, real_dtype
from tlgrad.core.primitive import Primitive
from tlgrad.core.tensor import convert_array
from tlgrad.errors import DTypeError
from tlgrad.ops import meaning, orders
from tlgrad.ops.arithmetic import conj, direction, div, real
from tlgrad.ops.define import documented, mul
from tlgrad.ops.layout import broadcast, moveaxis, reduced_shape, sum_axes


def _norm_impl(x, *, axes, divisor, order):
    times, dtype = meaning.implementation("mul"), of_storage(x.dtype)
    if x.dtype.kind == "c":
        squares = times(x.real, x.real) + times(x.imag, x.imag)
    else:
        squares = times(x, x)
    total = orders.sum_axes(squares, axes, order)
    if divisor != 1.0:
        count = convert_array(np.asarray(divisor), real_dtype(dtype))
        total = meaning.implementation("div")(total, count)
    return meaning.implementation("sqrt")(total)


def _norm_abstract(x, *, axes, divisor, order):
    if x.dtype.kind not in "fc":
        raise DTypeError(f"norm takes floats or complex numbers, got {x}")
    return make_aval(reduced_shape(x.shape, axes), real_dtype(x.dtype), x.weak)


def _norm_jvp(primals, tangents, *, axes, divisor, order):
    """d r = sum of Re(conj(x / r) dx) / divisor, with 0 for x / r at the origin."""
    (x,), (x_dot,) = primals, tangents
    r = norm.bind(x, axes=axes, divisor=divisor, order=order)
    kept = tuple(k for k in range(x.ndim) if k not in axes)
    unit = direction(x, broadcast.bind(r, shape=x.shape, axes=kept))
    steps = mul(conj(unit), x_dot) if x.dtype.kind == "c" else mul(unit, x_dot)
    total = sum_axes(real(steps), axes, order)
    return r, total if divisor == 1.0 else div(total, divisor)


def _norm_batch(args, axes_in, size, *, axes, divisor, order):
    x = moveaxis(args[0], axes_in[0], 0)
    return norm.bind(x, axes=tuple(a + 1 for a in axes), divisor=divisor, order=order), 0


norm = documented(
    Primitive("norm", impl=_norm_impl, abstract=_norm_abstract, jvp=_norm_jvp, batch=_norm_batch,
              kind="reduction", lower=("reduction", "norm")),
    "sqrt(sum of |x|^2 along `axes` in `order`, over `divisor`); the derivative at the origin is 0.", "x")
