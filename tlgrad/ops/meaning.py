"""The NumPy meaning of every scalar intrinsic, by number format.

`implementation(name)` is what eager calls and the reference backend run.  Formats that
NumPy computes correctly (IEEE + - * / sqrt, comparisons) use NumPy; elementary functions use
tlgrad's own bodies; bfloat16 and software formats are dispatched by storage dtype.
"""
from __future__ import annotations

from typing import Callable

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.tensor import bfloat16_to_float32, convert_array, float32_to_bfloat16
from tlgrad.errors import UnsupportedError, ZeroDivision
from tlgrad.kernels import elementary
from tlgrad.kernels.expr import Numpy, Value, fma
from tlgrad.kernels.expr.numpy_meaning import sum_to_odd
from tlgrad.softfloat import array as softfloat, complexes

#: intrinsic name -> function of NumPy arrays of hardware dtypes
INTRINSICS: dict[str, Callable] = {}

_KINDS = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats", "c": "complex numbers"}


def kind_names(kinds: str) -> str:
    """``"fc"`` -> ``"floats, complex numbers"``."""
    return ", ".join(_KINDS[k] for k in kinds)


def intrinsic(name: str):
    """Register the hardware meaning of an intrinsic."""
    def keep(f):
        INTRINSICS[name] = f
        return f
    return keep


def implementation(name: str) -> Callable:
    """The function that evaluates `name` on arrays of any dtype of the table."""
    def run(*arrays, **params):
        storage = arrays[-1].dtype                # of select: not the bool condition
        if storage.kind == "V":
            return _software(name, storage, arrays, params)
        with np.errstate(all="ignore"):
            return INTRINSICS[name](*arrays, **params)
    run.__name__ = name
    return run


def _software(name, storage, arrays, params):
    dtype = dtypes.of_storage(storage)
    if dtype is dtypes.bfloat16 and softfloat.current() is None:
        return _bfloat16(name, *arrays, **params)
    namespace = softfloat
    if name == "complex" or any(dtypes.of_storage(a.dtype).kind == "c" for a in arrays):
        namespace = complexes
    try:
        return namespace.evaluate(name, dtype.format, *arrays, **params)
    except KeyError:
        raise UnsupportedError(f"{name} is not available for {dtype}") from None


def _bfloat16(name, *arrays, **params):
    """Through binary32 and one rounding: exact for + - * / sqrt, since 24 >= 2 * 8 + 2 bits
    (Figueroa, "When is double rounding innocuous?", 1995); elementary functions and fma round a
    binary64 value once."""
    wide = [bfloat16_to_float32(a) if a.dtype.fields else a for a in arrays]
    if name == "comparable":
        return wide[0]
    with np.errstate(all="ignore"):
        if name == "fma":                     # the product is exact in binary64
            x, y, z = (np.asarray(w, np.float64) for w in wide)
            return convert_array(sum_to_odd(x * y, z), dtypes.bfloat16)
        if name in elementary.FUNCTIONS:
            values = [Value(Numpy(), np.asarray(w, np.float64), "f64") for w in wide]
            return convert_array(np.asarray(elementary.unrounded(name, *values).handle), dtypes.bfloat16)
        out = INTRINSICS[name](*wide, **params)
    return float32_to_bfloat16(out) if out.dtype == np.float32 else out


def comparable(array: np.ndarray) -> np.ndarray:
    """An array that NumPy orders as the format does (for sort and argmax)."""
    if array.dtype.kind != "V":
        return array
    return _software("comparable", array.dtype, (array,), {})


def first_zero(divisor: np.ndarray) -> str:
    """Where the first zero of a divisor lies, for messages."""
    where = np.argwhere(divisor == 0)[0]
    return f"entry {tuple(int(i) for i in where)} of the divisor" if divisor.ndim else "its one divisor"


def check_integer_divisor(name: str, divisor: np.ndarray):
    """Integer division by zero is an error, with the index named."""
    if divisor.dtype.kind in "iu" and divisor.size and not divisor.all():
        raise ZeroDivision(f"{name}: integer division by zero at {first_zero(divisor)}. "
                           "Replace zeros first: tl.where(d == 0, 1, d).")


for _name, _f in {
        "add": np.add, "sub": np.subtract, "neg": np.negative, "abs": np.abs,
        "sqrt": np.sqrt,
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
        "gt": np.greater, "ge": np.greater_equal, "is_finite": np.isfinite, "is_nan": np.isnan,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
        "select": np.where,
        "nextafter": np.nextafter}.items():
    INTRINSICS[_name] = _f


def _on_kinds(kinds, f):
    """f for dtypes of these kinds; numbers of other kinds are unchanged."""
    return lambda x: f(x) if x.dtype.kind in kinds else x


for _name, _f in {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}.items():
    INTRINSICS[_name] = _on_kinds("f", _f)
INTRINSICS["conj"] = _on_kinds("c", np.conjugate)


@intrinsic("real")
def _real(x):
    return np.array(x.real)


@intrinsic("imag")
def _imag(x):
    return np.array(x.imag)


@intrinsic("complex")
def _complex(re, im):
    out = np.empty(np.broadcast(re, im).shape, np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


@intrinsic("copysign")
def _copysign(x, y):
    """|x| with the sign of y.  The one NaN has none: the sign of a machine's own differs between processors."""
    return np.copysign(x, np.where(np.isnan(y), y.dtype.type(1), y))


@intrinsic("mul")
def product(x, y):
    """x * y.  A complex one by its parts, two products each: NumPy's own loop fuses them on some processors."""
    if x.dtype.kind != "c" and y.dtype.kind != "c":
        return np.multiply(x, y)
    out = np.empty(np.broadcast(x, y).shape, np.result_type(x, y))
    np.multiply(x.real, y.real, out=out.real)
    np.multiply(x.real, y.imag, out=out.imag)
    np.subtract(out.real, x.imag * y.imag, out=out.real)
    np.add(out.imag, x.imag * y.real, out=out.imag)
    return out


@intrinsic("div")
def _div(x, y):
    if x.dtype.kind in "iu":
        check_integer_divisor("div", y)
        return _truncated_quotient(x, y)
    return np.divide(x, y)


def _truncated_quotient(x, y):
    q = x // y
    return q + ((x % y != 0) & ((x < 0) != (y < 0))).astype(q.dtype)


@intrinsic("floor_divide")
def _floor_divide(x, y):
    check_integer_divisor("floor_divide", y)
    return np.floor_divide(x, y)


@intrinsic("remainder")
def _remainder(x, y):
    check_integer_divisor("remainder", y)
    return np.remainder(x, y)


@intrinsic("sign")
def _sign(x):
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(x == 0, x, x / np.where(size == 0, 1, size)).astype(x.dtype)
    return np.sign(x)


def _shift_amount(y, bits):
    return np.minimum(y.astype(np.uint64), np.uint64(bits - 1)), y.astype(np.uint64) >= bits


@intrinsic("shift_left")
def _shift_left(x, y):
    amount, over = _shift_amount(y, x.dtype.itemsize * 8)
    return np.where(over, x.dtype.type(0), np.left_shift(x, amount.astype(x.dtype)))


@intrinsic("shift_right")
def _shift_right(x, y):
    """Arithmetic for signed, logical for unsigned; amounts beyond the width give 0 or -1."""
    amount, over = _shift_amount(y, x.dtype.itemsize * 8)
    out = np.right_shift(x, amount.astype(x.dtype))
    return out if x.dtype.kind == "i" else np.where(over, x.dtype.type(0), out)


@intrinsic("integer_pow")
def _integer_pow(x, *, n):
    m, result, power = abs(n), None, x
    while m:
        if m & 1:
            result = power if result is None else product(result, power)
        m >>= 1
        if m:
            power = product(power, power)
    if result is None:
        return np.ones_like(x)
    return result if n >= 0 else x.dtype.type(1) / result


@intrinsic("direction")
def _direction(x, r):
    """x / r; 0 at r = 0; at an infinite r the finite parts are 0 and infinite ones +-1."""
    safe = np.where((r == 0) | np.isinf(r), r.dtype.type(1), r)
    out = np.where(r == 0, x.dtype.type(0), x / safe)
    if not np.isinf(r).any():
        return out.astype(x.dtype)

    def at_infinity(part):
        return np.where(np.isinf(part), np.copysign(part.dtype.type(1), part), part.dtype.type(0))

    limit = at_infinity(x) if x.dtype.kind == "f" else at_infinity(x.real) + 1j * at_infinity(x.imag)
    return np.where(np.isinf(r), limit, out).astype(x.dtype)


INTRINSICS["fma"] = fma


@intrinsic("max")
def _max(x, y):
    """x if x > y or x is NaN, else y: NaN spreads, and of equal operands the second is taken."""
    return np.where((x > y) | (x != x), x, y)


@intrinsic("min")
def _min(x, y):
    """y if y < x or y is NaN, else x: NaN spreads, and of equal operands the first is taken."""
    return np.where((y < x) | (y != y), y, x)


#: complex arguments: NumPy's library functions, outside the one-result rule
_COMPLEX = {
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "pow": np.power, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": lambda x: np.power(x, 1 / 3),
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "erf": lambda x: _complex_error_function("erf", x),
    "erfc": lambda x: _complex_error_function("erfc", x)}


def _complex_error_function(name, x):
    from scipy import special
    return getattr(special, name)(x).astype(x.dtype)


def _elementary(name):
    """tlgrad's own body on real arrays, NumPy's function on complex ones."""
    def run(*arrays):
        if arrays[0].dtype.kind == "c":
            return _COMPLEX[name](*arrays)
        return elementary.evaluate(name, *arrays)
    return run


for _name in elementary.FUNCTIONS:
    INTRINSICS[_name] = _elementary(_name)
