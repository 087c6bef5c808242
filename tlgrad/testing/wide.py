"""A jaxpr evaluated in NumPy's longdouble (64-bit significand on x86): the reference of `check_grads`."""
from __future__ import annotations

from typing import Callable, Sequence

import mpmath
import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.jaxpr import Jaxpr, Literal
from tlgrad.core.tensor import Tensor, to_numpy


class NoWideMeaning(Exception):
    """A primitive has no meaning in longdouble."""


def _logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _direction(x, r):
    return np.where(r == 0, 0, x / np.where(r == 0, 1, r))


def _through_mpmath(f):
    """A function of mpmath on longdouble entries, exact to their 64 bits."""
    def one(x):
        high = float(x)
        with mpmath.workdps(30):
            y = f(mpmath.mpf(high) + mpmath.mpf(float(x - np.longdouble(high))))
            head = float(y)
            return np.longdouble(head) + np.longdouble(float(y - head))
    return np.frompyfunc(one, 1, 1)


_PI = np.longdouble("3.14159265358979323846264338327950288")
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
    "erf": lambda x: _through_mpmath(mpmath.erf)(x).astype(np.longdouble),
    "erfc": lambda x: _through_mpmath(mpmath.erfc)(x).astype(np.longdouble),
    "exp10": lambda x: np.power(np.longdouble(10), x), "sinpi": lambda x: np.sin(_PI * np.fmod(x, 2)),
    "cospi": lambda x: np.cos(_PI * np.fmod(x, 2)),
    "gelu_erf": lambda x: x * WIDE["erfc"](-x * np.sqrt(np.longdouble(0.5))) / 2,
    "gelu_tanh": lambda x: x * _logistic(np.sqrt(8 / _PI) * (x + np.longdouble("0.044715") * x ** 3)),
    "integer_pow": lambda x, n: np.power(x, n), "direction": _direction, **_LOGICAL}

#: primitives whose meaning only moves, compares or adds up entries, of any NumPy dtype
_GENERIC = {"broadcast", "reshape", "transpose", "reverse", "slice", "pad", "concatenate", "gather",
            "dynamic_slice", "dynamic_update_slice", "argsort", "argmax", "argmin", "reduce_any", "reduce_all",
            "distinct", "iota", "stop_gradient"}


def _contract_wide(*arrays, labels, out, summed, order):
    operands = [part for x, names in zip(arrays, labels) for part in (x, list(names))]
    return np.einsum(*operands, list(out))


def _norm_wide(x, *, axes, divisor, order):
    return np.sqrt(np.sum(np.abs(x) ** 2, axis=axes) / divisor)


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


_SPECIAL = {"dot_general": _dot_wide, "contract": _contract_wide, "norm": _norm_wide, "scatter": _scatter_wide}


def widen(array):
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
        return widen(out) if name == "iota" else out
    if name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "cumsum", "cumprod"):
        return _reduce_wide(name, ins, params)
    if name in _SPECIAL:
        return _SPECIAL[name](*ins, **params)
    if name == "constant":
        return widen(params["value"].value.data)
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
        return widen(atom.value.data) if type(atom) is Literal else env[atom]
    with np.errstate(all="ignore"):
        for eqn in jaxpr.eqns:
            ins = [read(a) for a in eqn.ins]
            if eqn.prim.name == "call":
                env.update(zip(eqn.outs, wide_eval(eqn.params["jaxpr"], ins)))
            elif eqn.prim.name == "cond":
                env.update(zip(eqn.outs, wide_eval(eqn.params["branches"][int(ins[0])], ins[1:])))
            else:
                env[eqn.outs[0]] = np.asarray(_apply_wide(eqn, ins))
    return [read(a) for a in jaxpr.outs]
