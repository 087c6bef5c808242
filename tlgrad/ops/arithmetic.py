"""Arithmetic primitives: IEEE operations, integer operations, parts of complex numbers."""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.aval import Zero
from tlgrad.core.primitive import Linear
from tlgrad.ops import define
from tlgrad.ops.define import (add, add_tangents, elementwise, mul, step, sum_to_operand, widen)

__all__ = ["add", "mul", "sub", "div", "neg", "abs_", "sign", "floor", "ceil", "round_", "trunc",
           "fma", "sqrt", "remainder", "floor_divide", "real", "imag", "complex_", "conj",
           "copysign", "nextafter"]


# ---- linear ----

neg = elementwise("neg", """
    -x, entry by entry; unsigned integers wrap around.

    >>> neg(tl.tensor([1.0, -2.0]))
    tensor([-1.,  2.], float64, shape (2,), cpu)
    """, [None], kinds="iufc", transpose=lambda ct, x: [neg(ct)])
neg.jvp = define.linear_jvp(neg)


def _sub_jvp(primals, tangents):
    z = sub.bind(*primals)
    x_dot, y_dot = tangents
    if type(y_dot) is Zero:
        return z, widen(x_dot, z.aval)
    return z, widen(neg(y_dot) if type(x_dot) is Zero else sub(x_dot, y_dot), z.aval)


sub = elementwise("sub", """
    Difference x - y, entry by entry; broadcasting.

    >>> sub(tl.tensor([3.0, 2.0]), 1)
    tensor([2., 1.], float64, shape (2,), cpu)
    """, arity=2, kinds="iufc", jvp=_sub_jvp,
    transpose=lambda ct, x, y: [sum_to_operand(ct, x) if type(x) is Linear else None,
                                sum_to_operand(neg(ct), y) if type(y) is Linear else None])


# ---- quotient, root, fused multiply-add ----

def _div_transpose(ct, x, y):
    return [sum_to_operand(div(ct, y), x), None]


def _div_jvp(primals, tangents):
    """z' = (x' - z y') / y, which reuses the quotient and cannot overflow in y * y."""
    z = div.bind(*primals)
    x_dot, y_dot = tangents
    numerator = x_dot
    if type(y_dot) is not Zero:
        numerator = add_tangents(x_dot, neg(mul(z, y_dot)))
    return z, widen(div(numerator, primals[1]), z.aval)


div = elementwise("div", """
    Quotient x / y, entry by entry; broadcasting; integers are taken as float64, as in NumPy.

    Rounds once, to nearest even; x / 0 is an infinity or NaN.

    >>> div(tl.tensor([1.0, 2.0]), 4)
    tensor([0.25, 0.5 ], float64, shape (2,), cpu)
    """, arity=2, kinds="fc", inexact="float64", jvp=_div_jvp, transpose=_div_transpose)

sqrt = elementwise("sqrt", """
    Square root of x, correctly rounded; NaN below zero; sqrt(-0) is -0.

    >>> sqrt(tl.tensor([4.0, 2.25]))
    tensor([2. , 1.5], float64, shape (2,), cpu)
    """, [lambda y, x: div(0.5, y)])


def _fma_jvp(primals, tangents):
    x, y, z = primals
    w = fma.bind(x, y, z)
    x_dot, y_dot, z_dot = tangents
    out = Zero(w.aval)
    for t, factor in ((x_dot, y), (y_dot, x)):
        if type(t) is not Zero:
            out = add_tangents(out, mul(factor, t))
    return w, widen(add_tangents(out, z_dot), w.aval)


fma = elementwise("fma", """
    x * y + z with one rounding, on every device.

    >>> fma(tl.tensor(0.1), 0.3, -0.03)
    tensor(1.6653345369377347e-18, float64, shape (), cpu)
    """, arity=3, kinds="f", jvp=_fma_jvp)


# ---- kinks and steps ----

sign = step("sign", """
    -1, 0 or 1 by the sign of x (NaN for NaN); z / |z| for complex z, 0 at 0.

    >>> sign(tl.tensor([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.], float64, shape (3,), cpu)
    """, kinds="iufc")


def _abs_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    y = abs_.bind(x)
    if x.dtype.kind == "c":                  # d|z| = Re(conj(z / |z|) dz), 0 at 0
        return y, real(mul(conj(direction(x, y)), x_dot))
    return y, mul(sign(x), x_dot)


abs_ = elementwise("abs", """
    |x|; the modulus of a complex number.  The derivative at 0 is 0 (sign(0) = 0).

    >>> abs_(tl.tensor([-2.0, 0.0]))
    tensor([2., 0.], float64, shape (2,), cpu)
    """, arity=1, kinds="biufc", jvp=_abs_jvp, result=dtypes.real_dtype)

floor = step("floor", "Greatest integer not above x, as a float.", kinds="biuf")
ceil = step("ceil", "Least integer not below x, as a float.", kinds="biuf")
trunc = step("trunc", "x without its fraction, toward zero, as a float.", kinds="biuf")
round_ = step("round", "Nearest integer to x, ties to even, as a float.", kinds="biuf")

floor_divide = elementwise("floor_divide", """
    floor(x / y); integers stay integers, and an integer division by zero is an error.

    >>> floor_divide(tl.tensor([-7, 7]), 2)
    tensor([-4,  3], int64, shape (2,), cpu)
    """, [None, None], kinds="iuf")

remainder = elementwise("remainder", """
    x - floor(x / y) * y, with the sign of y; an integer remainder by zero is an error.

    >>> remainder(tl.tensor([-7, 7]), 3)
    tensor([2, 1], int64, shape (2,), cpu)
    """, [lambda z, x, y: 1.0, lambda z, x, y: neg(floor(div(x, y)))], kinds="iuf")

copysign = elementwise("copysign", "|x| with the sign of y; a NaN y counts as positive, on every machine.",
                       [lambda z, x, y: mul(sign(x), copysign(1.0, y)), None], kinds="f")
nextafter = step("nextafter", "The next float from x towards y.", kinds="f", arity=2)


# ---- complex numbers ----

real = elementwise("real", "Real part of x.", arity=1, kinds="fc", result=dtypes.real_dtype,
                   transpose=lambda ct, x: [complex_(ct, 0) if x.aval.dtype.kind == "c" else ct])
real.jvp = define.linear_jvp(real)

imag = elementwise("imag", "Imaginary part of x.", arity=1, kinds="fc", result=dtypes.real_dtype,
                   transpose=lambda ct, x: [complex_(0, neg(ct)) if x.aval.dtype.kind == "c"
                                            else define.RULES.zeros(x.aval)])
imag.jvp = define.linear_jvp(imag)


def _complex_jvp(primals, tangents):
    z = complex_.bind(*primals)
    re, im = (0 if type(t) is Zero else t for t in tangents)
    return z, widen(complex_(re, im), z.aval)


complex_ = elementwise("complex", "x + i y of two real values.", arity=2, kinds="f",
                       jvp=_complex_jvp, result=lambda a, b: dtypes.complex_dtype(a),
                       transpose=lambda ct, x, y: [
                           sum_to_operand(real(ct), x) if type(x) is Linear else None,
                           sum_to_operand(neg(imag(ct)), y) if type(y) is Linear else None])

conj = elementwise("conj", "Complex conjugate of x.", arity=1, kinds="biufc",
                   transpose=lambda ct, x: [conj(ct)])
conj.jvp = define.linear_jvp(conj)


def _direction_jvp(primals, tangents):
    z, r = primals
    u = direction.bind(z, r)
    z_dot, r_dot = tangents
    numerator = z_dot
    if type(r_dot) is not Zero:
        numerator = add_tangents(z_dot, neg(mul(u, as_complex(r_dot, z.dtype))))
    return u, widen(div(numerator, as_complex(r, z.dtype)), u.aval)


direction = elementwise("direction", """
    x / y, and 0 where y is 0: the unit vector of a norm.  At infinity, the limit of the cosine.

    Its derivative at y = 0 is not defined and comes out as NaN: a norm has a subgradient at the
    origin, but no second derivative there.
    """, arity=2, kinds="fc", same=False, jvp=_direction_jvp, result=lambda a, b: a)


def as_complex(x, dtype):
    """A real value as a complex one when `dtype` is complex."""
    return complex_(x, 0) if dtype.kind == "c" and x.dtype.kind != "c" else x
