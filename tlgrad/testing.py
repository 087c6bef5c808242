"""Checks for programs written with tlgrad: derivatives, distances in ulps, equality of words.

    check_grads  : f, args, order -> None          raises GradientError
    ulp_distance : a, b -> array                   how many roundings apart
    same_bits    : a, b -> bool

`check_grads` compares with differences of the function taken in higher precision: the jaxpr of
the function is evaluated in NumPy's longdouble (64-bit significand on x86; `wide_eval`).  A
function with a primitive that has no wide meaning (a loop, a library call) is evaluated in float64
instead.  In both cases the central differences are extrapolated (Ridders, "Accurate computation of
F'(x) and F'(x)F''(x)", 1982), so that a step of 2**-7 reaches 1e-15.
"""
from __future__ import annotations

from fractions import Fraction
from typing import Any, Callable, Sequence

import numpy as np

from tlgrad.api.calling import FlatFunction, flatten_values
from tlgrad.api.derivatives import pull_back
from tlgrad.core import dtypes
from tlgrad.core.aval import Zero
from tlgrad.core.jaxpr import Jaxpr, Literal
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import Tensor, as_value, convert_array, frozen, to_numpy
from tlgrad.errors import DTypeError, GradientError, ShapeError
from tlgrad.ops.convert import same_bits
from tlgrad.ops.define import instantiate
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.partial_eval import linearize_flat
from tlgrad.transforms.stage import stage

__all__ = ["check_grads", "ulp_distance", "same_bits", "wide_eval"]


# ---- ulps ----

#: significand bits and smallest normal exponent of the float formats
_FORMATS = {dtypes.float16: (11, -14), dtypes.bfloat16: (8, -126), dtypes.float32: (24, -126),
            dtypes.float64: (53, -1022)}


def ulp_distance(a, b) -> np.ndarray:
    """How far float values `a` lie from `b`, entry by entry, in units in the last place.

    b: values of the same shape and dtype (the distance is then the number of floats between), or
    exact numbers (int, Fraction, mpmath.mpf, nested lists of them): then it is the error |a - b|
    over the ulp of b in the format of a.  Equal infinities and two NaNs are 0 apart, a NaN is
    infinitely far from a number.  Returns float64.  Raises DTypeError unless a is a float.

    >>> float(ulp_distance(1.0, np.nextafter(1.0, 2.0)))
    1.0
    >>> float(ulp_distance(np.float32(1/3), Fraction(1, 3)))
    0.3333333333333333
    """
    a = as_value(a, "the first argument of ulp_distance")
    if a.dtype not in _FORMATS:
        raise DTypeError(f"ulp_distance takes floats of {', '.join(map(str, _FORMATS))}, got {a.aval}")
    if isinstance(b, (Tensor, np.ndarray, np.generic, float)):
        other = as_value(b)
        if other.shape != a.shape or other.dtype is not a.dtype:
            raise ShapeError(f"ulp_distance: the values are {a.aval} and {other.aval}")
        return _float_steps(a.data, other.data)
    exact = np.broadcast_to(np.array(b, dtype=object), a.shape)
    floats = np.asarray(to_numpy(a), np.float64)
    out = [_error_in_ulps(float(x), e, a.dtype) for x, e in zip(floats.ravel(), exact.ravel())]
    return np.array(out).reshape(a.shape)


def _float_steps(a, b):
    x, y = (_ordered_words(v) for v in (a, b))
    steps = np.abs(x - y).astype(np.float64)
    nan_a, nan_b = (np.isnan(np.asarray(to_numpy(Tensor.own(v)))) for v in (a, b))
    return np.where(nan_a & nan_b, 0.0, np.where(nan_a | nan_b, np.inf, steps))


def _ordered_words(array):
    """Words as integers that increase with the value; both zeros are 0."""
    width = array.dtype.itemsize
    w = np.ascontiguousarray(array).view(f"u{width}").reshape(array.shape).astype(object)
    half = 1 << (8 * width - 1)
    return np.where(w >= half, half - w, w)


def _error_in_ulps(x: float, exact, dtype) -> float:
    bits, low = _FORMATS[dtype]
    if str(exact) in ("nan", "NaN"):
        return 0.0 if x != x else np.inf
    if str(exact) in ("inf", "+inf", "-inf"):
        return 0.0 if x == float(exact) else np.inf
    exact = _fraction(exact)
    high = 1 << (1 - low)                             # the smallest power of 2 out of range
    if x != x:
        return np.inf
    if abs(x) == np.inf:                              # an overflow is right from the last midpoint on
        limit = high - Fraction(high, 1 << (bits + 1))
        return 0.0 if abs(exact) >= limit and (exact > 0) == (x > 0) else np.inf
    size = abs(exact)
    exponent = max(_exponent(size), low) if size else low
    return float(abs(Fraction(x) - exact) / Fraction(2) ** (exponent - bits + 1))


def _exponent(size: Fraction) -> int:
    """floor(log2(size)) of a positive fraction."""
    e = size.numerator.bit_length() - size.denominator.bit_length()
    return e if Fraction(2) ** e <= size else e - 1


def _fraction(x) -> Fraction:
    if hasattr(x, "_mpf_"):                           # mpmath: (sign, significand, exponent, bits)
        sign, man, exp, _ = x._mpf_
        return Fraction(-int(man) if sign else int(man)) * Fraction(2) ** exp
    return Fraction(x)


# ---- evaluation in higher precision ----

class NoWideMeaning(Exception):
    """A primitive has no meaning in longdouble."""


def _logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _direction(x, r):
    return np.where(r == 0, 0, x / np.where(r == 0, 1, r))


_LOGICAL = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}

#: elementwise intrinsics on longdouble (and its complex companion)
WIDE: dict[str, Callable] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "abs": np.abs, "sqrt": np.sqrt, "fma": lambda x, y, z: x * y + z, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "sign": np.sign, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "is_finite": np.isfinite, "is_nan": np.isnan, "select": np.where, "copysign": np.copysign,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "conj": np.conjugate,
    "real": np.real, "imag": np.imag, "complex": lambda x, y: x + y * np.clongdouble(1j),
    "max": lambda x, y: np.where(x > y, x, y), "min": lambda x, y: np.where(y < x, y, x),
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "hypot": np.hypot,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "cbrt": np.cbrt, "pow": np.power, "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": _logistic, "softplus": lambda x: np.logaddexp(x, 0), "logaddexp": np.logaddexp,
    "integer_pow": lambda x, n: np.power(x, n), "direction": _direction, **_LOGICAL}

#: primitives whose meaning only moves, compares or adds up entries, of any NumPy dtype
_GENERIC = {"broadcast", "reshape", "transpose", "reverse", "slice", "pad", "concatenate", "gather",
            "dynamic_slice", "dynamic_update_slice", "argsort", "argmax", "argmin", "reduce_any", "reduce_all",
            "distinct", "iota"}


def _reduce_wide(name, ins, params):
    x, *init = ins
    if name == "reduce_sum":
        return np.sum(x, axis=params["axes"]) + (init[0] if init else 0)
    if name in ("cumsum", "cumprod"):
        flip = params.get("reverse", False)
        x = np.flip(x, params["axis"]) if flip else x
        out = (np.cumsum if name == "cumsum" else np.cumprod)(x, axis=params["axis"])
        return np.flip(out, params["axis"]) if flip else out
    return {"reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod}[name](x, axis=params["axes"])


def _dot_wide(x, y, *init, contract, batch, order):
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    xs, ys = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
    for mine, theirs in zip((*contract[0], *batch[0]), (*contract[1], *batch[1])):
        ys[theirs] = xs[mine]
    out = [xs[a] for a in batch[0]] + [c for k, c in enumerate(xs) if k not in (*contract[0], *batch[0])] \
        + [c for k, c in enumerate(ys) if k not in (*contract[1], *batch[1])]
    total = np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(out)}", x, y)
    return total + init[0] if init else total


def _scatter_wide(x, indices, updates, *, axes, mode):
    rest = [k for k in range(x.ndim) if k not in axes]
    out = np.transpose(x, (*axes, *rest)).copy()
    where = tuple(indices[..., k] for k in range(len(axes)))
    at = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    if mode == "set":
        out[where] = updates
    else:
        at[mode].at(out, where, updates)
    return np.transpose(out, np.argsort((*axes, *rest)))


def _widen(array):
    """Floats as longdouble, complex numbers as its companion; other dtypes as they are."""
    kind = dtypes.of_storage(array.dtype).kind
    if kind == "c":
        return array.astype(np.clongdouble)
    return np.asarray(to_numpy(Tensor.own(array))).astype(np.longdouble) if kind == "f" else array


def _apply_wide(eqn, ins):
    name, params = eqn.prim.name, eqn.params
    if name in WIDE:
        return WIDE[name](*ins, **params)
    if name in _GENERIC:
        out = eqn.prim.impl(*ins, **params)
        return _widen(out) if name == "iota" else out
    if name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "cumsum", "cumprod"):
        return _reduce_wide(name, ins, params)
    if name == "dot_general":
        return _dot_wide(*ins, **params)
    if name == "scatter":
        return _scatter_wide(*ins, **params)
    if name == "constant":
        return _widen(params["value"].value.data)
    if name == "convert":
        wanted, (x,) = params["dtype"], ins
        return x.astype({"f": np.longdouble, "c": np.clongdouble}.get(wanted.kind, wanted.storage))
    raise NoWideMeaning(name)


def wide_eval(jaxpr: Jaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A jaxpr on longdouble arrays: every float format becomes longdouble.

    Raises NoWideMeaning for a primitive that has no entry here.
    """
    env = dict(zip(jaxpr.in_binders, arrays, strict=True))

    def read(atom):
        return _widen(atom.value.data) if type(atom) is Literal else env[atom]
    with np.errstate(all="ignore"):
        for eqn in jaxpr.eqns:
            ins = [read(a) for a in eqn.ins]
            if eqn.prim.name == "call":
                env.update(zip(eqn.outs, wide_eval(eqn.params["jaxpr"], ins)))
            else:
                env[eqn.outs[0]] = np.asarray(_apply_wide(eqn, ins))
    return [read(a) for a in jaxpr.outs]


# ---- derivatives ----

def check_grads(f: Callable, args: Sequence[Any], order: int = 2, *, modes=("fwd", "rev"),
                rtol: float | None = None, seed: int = 0):
    """Check the derivatives of `f` at `args` up to `order`, in every sequence of modes.

    args: a tuple of trees; integer leaves are held fixed.  Forward mode is compared with
    extrapolated differences in higher precision (see the module), reverse mode with forward mode by
    Re<c, J v> = Re<J^T c, v>; then the same is asked of the derivatives themselves.  rtol: relative
    to the size of the derivative; by default eps**0.75 of the narrowest float among the results.

    Raises GradientError naming the order, the mode, both values and the tolerance.

    >>> check_grads(lambda x: x * x, (3.0,))
    """
    what = describe_callable(f)
    xs, in_tree, _ = flatten_values(tuple(args), [f"argument {k}" for k in range(len(args))])
    flat = FlatFunction(f, in_tree, what)
    _check(flat, xs, order, what, tuple(modes), rtol, np.random.default_rng(seed))


def _check(f, xs, order, what, modes, rtol, rng):
    if order == 0:
        return
    vs = [_random_direction(x, rng) for x in xs]
    ys, ys_dot = jvp_flat(f, xs, vs)
    tol = _tolerance(ys) if rtol is None else rtol
    dots = [instantiate(t) for t in ys_dot]
    if "fwd" in modes:
        expected = _differences(f, xs, vs)
        for k, (got, want) in enumerate(zip(dots, expected)):
            _compare(got, want, tol, f"{what}: the forward derivative of result {k}")
        _check(lambda *x: _inexact(jvp_flat(f, x, vs)[1]), xs, order - 1, f"jvp of {what}", modes, rtol, rng)
    if "rev" in modes:
        _, lin = linearize_flat(f, xs)
        cts = [Zero(y.aval) if not dtypes.is_inexact(y.dtype) else _random_direction(y, rng) for y in ys]
        bars = pull_back(lin, cts)
        forward, size = _pairing(cts, dots)
        reverse, size_r = _pairing(bars, vs)
        if not abs(forward - reverse) <= tol * (size + size_r):
            raise GradientError(f"{what}: the reverse derivative: <c, J v> is {forward!r}, <J^T c, v> is "
                                f"{reverse!r}; they may differ by {tol * (size + size_r):.3g}")

        def pulled(*x):
            return _inexact(pull_back(linearize_flat(f, x)[1], cts))
        _check(pulled, xs, order - 1, f"vjp of {what}", modes, rtol, rng)


def _inexact(values):
    return [instantiate(v) for v in values if v.aval is not None and dtypes.is_inexact(v.aval.dtype)]


def _random_direction(x, rng):
    """Entries in [-1, 1], scaled to |x| where |x| < 1: a step stays on the same side of 0."""
    if not dtypes.is_inexact(x.dtype):
        return Zero(x.aval)
    size = np.abs(np.asarray(to_numpy(x)))
    v = rng.uniform(-1, 1, x.shape) * np.where((size < 1) & (size > 0), size, 1)
    if x.dtype.kind == "c":
        v = v + 1j * rng.uniform(-1, 1, x.shape)
    return Tensor.own(frozen(convert_array(np.asarray(v), x.dtype)))


def _tolerance(ys) -> float:
    eps = [2.0 ** (1 - _FORMATS[dtypes.real_dtype(y.dtype)][0]) for y in ys
           if dtypes.real_dtype(y.dtype) in _FORMATS]
    return max(eps, default=2.0 ** -52) ** 0.75


def _differences(f, xs, vs, levels=6):
    """d/dt f(x + t v) at t = 0 by Ridders' extrapolation of central differences."""
    evaluate = _wide_function(f, xs)
    points = [_widen(x.data) for x in xs]
    steps = [None if type(v) is Zero else _widen(v.data) for v in vs]

    def at(t):
        return evaluate([p if s is None else p + np.longdouble(t) * s for p, s in zip(points, steps)])
    table: list[list] = []
    for i in range(levels):
        h = 2.0 ** -(7 + i)
        row = [[(a - b) / np.longdouble(2 * h) for a, b in zip(at(h), at(-h))]]
        for j in range(1, i + 1):
            factor = np.longdouble(4.0 ** j)
            row.append([(factor * new - old) / (factor - 1) for new, old in zip(row[j - 1], table[i - 1][j - 1])])
        table.append(row)
    return table[-1][-1]


def _wide_function(f, xs):
    """f on longdouble arrays: its jaxpr in longdouble, or itself in float64."""
    jaxpr, consts = stage(lambda *x: [as_value(y) for y in f(*x)], [x.aval for x in xs])
    captured = [_widen(c.data) for c in consts]

    def wide(arrays):
        return wide_eval(jaxpr, [*captured, *arrays])

    def plain(arrays):
        values = [Tensor.own(convert_array(a.astype(_storage(a)), dtypes.of_storage(x.data.dtype)))
                  for a, x in zip(arrays, xs)]
        return [_widen(as_value(y).data) for y in f(*values)]
    try:
        wide([_widen(x.data) for x in xs])
        return wide
    except NoWideMeaning:
        return plain


def _storage(array):
    return {"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype)


def _compare(got, want, tol, what):
    got = np.asarray(to_numpy(got))
    if not np.issubdtype(got.dtype, np.inexact):
        return
    size = np.maximum(np.abs(want), np.max(np.abs(want), initial=0) * 1e-3) + np.abs(got)
    bad = ~(np.abs(got - want) <= tol * size)
    if bad.any():
        k = tuple(int(i) for i in np.argwhere(bad)[0])
        raise GradientError(f"{what} at entry {k} is {got[k]!r}, differences in higher precision give "
                            f"{want[k]!r}; they may differ by {float(tol * size[k]):.3g}")


def _pairing(cts, vs):
    """Re sum(c * v), and the sum of sizes."""
    total = size = 0.0
    for c, v in zip(cts, vs):
        if type(c) is Zero or type(v) is Zero:
            continue
        products = np.asarray(to_numpy(c)).astype(np.clongdouble) * np.asarray(to_numpy(v))
        total += float(np.sum(products).real)
        size += float(np.sum(np.abs(products)))
    return total, size
