"""Derivatives of callables: jvp, vjp, linearize, grad, value_and_grad, linear_transpose."""
from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np

from tlgrad.api.calling import (FlatFunction, Selected, as_argnums, flatten_values, is_concrete, wrap)
from tlgrad.core import dtypes, tree
from tlgrad.core.aval import Zero
from tlgrad.core.primitive import Linear
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Value
from tlgrad.errors import DifferentiationError, DTypeError, ShapeError
from tlgrad.ops.arithmetic import conj
from tlgrad.ops.define import instantiate
from tlgrad.ops.layout import zeros
from tlgrad.ops.promote import as_dtype_value, broadcast_to
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.partial_eval import Linearized, linearize_flat
from tlgrad.transforms.stage import stage
from tlgrad.transforms.transpose import backward


# ---- forward mode ----

def jvp(f: Callable, primals=None, tangents=None, *, has_aux: bool = False):
    """Value of `f` and its derivative along tangents:  (a -> b) -> (a, T a) -> (b, T b).

    `primals` and `tangents` are tuples of trees with equal structure, shapes and dtypes (a tangent
    of an integer is 0 or None).  Without them, gives the function of (primals, tangents).
    Returns (value, derivative) or, with has_aux, (value, derivative, aux).

    Raises TreeError, ShapeError, DTypeError naming the leaf that does not match.

    >>> y, dy = tl.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> y, dy
    (tensor(9.0, float64, shape (), cpu, weak), tensor(6.0, float64, shape (), cpu, weak))
    """
    if primals is None:
        return wrap(f, functools.partial(jvp, f, has_aux=has_aux), "Forward derivative",
                    functools.partial(jvp, f, has_aux=has_aux))
    what = describe_callable(f)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise DTypeError(f"jvp of {what}: primals and tangents are tuples, one entry an argument; "
                         f"got {type(primals).__name__} and {type(tangents).__name__}")
    flat, xs, in_tree, labels = _flatten_call(f, primals, has_aux)
    dots = _tangents(tangents, in_tree, xs, labels, what)
    ys, ys_dot = jvp_flat(flat, xs, dots)
    ys, aux = flat.split(ys)
    ys_dot = [instantiate(t) for t in ys_dot[:len(ys)]]
    out = tree.unflatten(flat.out_tree, ys), tree.unflatten(flat.out_tree, ys_dot)
    return (*out, aux) if has_aux else out


def _flatten_call(f, primals, has_aux):
    """A flat function, the values of its arguments, their structure and names."""
    names = [f"argument {k}" for k in range(len(primals))]
    xs, in_tree, labels = flatten_values(primals, names)
    return FlatFunction(f, in_tree, describe_callable(f), has_aux), xs, in_tree, labels


def _tangents(tangents, in_tree, xs, labels, what):
    given = tree.flatten_as(in_tree, tree.fill_none(tuple(tangents), in_tree, Zero),
                            f"jvp of {what}: the tangents differ from the primals")
    return [match_tangent(t, x, labels[k], what) for k, (t, x) in enumerate(zip(given, xs))]


def match_tangent(t, x: Value, label: str, what: str, kind: str = "tangent"):
    """A tangent or cotangent for x: same shape, same dtype (Python numbers adapt)."""
    if t is Zero or not dtypes.is_inexact(x.dtype):
        return _zero_tangent(t, x, label, what, kind)
    t = as_value(t, f"the {kind} of {label}")
    if t.shape != x.shape and not (t.shape == () and t.aval.weak):
        raise ShapeError(f"{what}: the {kind} of {label} must have shape {x.shape}, got {t.shape}")
    if t.dtype is not x.dtype:
        if not (t.aval.weak or dtypes.is_integer(t.dtype)):
            raise DTypeError(f"{what}: the {kind} of {label} must be {x.dtype}, got {t.dtype}; "
                             f"write tl.convert(t, tl.{x.dtype})")
        t = as_dtype_value(t, x.dtype)
    return broadcast_to(t, x.shape)


def _zero_tangent(t, x, label, what, kind):
    if t is not Zero and type(t) is not Zero:
        data = as_value(t, f"the {kind} of {label}")
        if data.shape not in ((), x.shape) or dtypes.is_inexact(data.dtype) and not data.aval.weak \
                or kind != "cotangent" and is_concrete([data]) and np.any(data.data):
            raise DTypeError(f"{what}: {label} is {x.aval}, which has no derivative; its {kind} is None or 0")
    return Zero(x.aval)


def _linearized(flat: FlatFunction, xs):
    """Results proper, their derivative as a linear program, and aux."""
    ys, lin = linearize_flat(flat, xs)
    if not flat.has_aux:
        return ys, lin, None
    ys, aux = flat.split(ys)
    return ys, lin.first(len(ys)), aux


def linearize(f: Callable, *primals, has_aux: bool = False):
    """Value of `f` and its derivative there, as a function of tangents.

    Evaluates `f` once.  Without primals, gives the function of primals.

    >>> y, push = tl.linearize(tl.sin, 0.0)
    >>> push(2.0)
    tensor(2.0, float64, shape (), cpu, weak)
    """
    if not primals:
        return wrap(f, functools.partial(linearize, f, has_aux=has_aux), "Linearization",
                    functools.partial(linearize, f, has_aux=has_aux))
    flat, xs, in_tree, labels = _flatten_call(f, primals, has_aux)
    ys, lin, aux = _linearized(flat, xs)
    out_tree, what = flat.out_tree, flat.what

    def push(*tangents):
        dots = _tangents(tangents, in_tree, xs, labels, what)
        return tree.unflatten(out_tree, [instantiate(t) for t in lin(*map(instantiate, dots))])
    y = tree.unflatten(out_tree, ys)
    return (y, push, aux) if has_aux else (y, push)


# ---- reverse mode ----

def pull_back(lin: Linearized, cts) -> list:
    """Cotangents of all inputs of a linearized function, `Zero` for integers.  cts: value or Zero."""
    wanted = [ct for ct, zero in zip(cts, lin.out_zero) if zero is None]
    n_res = len(lin.residuals)
    args = [*lin.residuals, *[Linear(v.aval) for v in lin.jaxpr.in_binders[n_res:]]]
    found = dict(zip(lin.in_index, backward(lin.jaxpr, args, wanted)))
    return [found.get(k, Zero(None)) for k in range(lin.n_in)]


def vjp(f: Callable, *primals, has_aux: bool = False):
    """Value of `f` and its pullback:  (a -> b) -> a -> (b, T b -o T a).

    The pullback takes a cotangent of the structure of the result and gives a tuple, one entry an
    argument.  It is the plain transpose, also for complex numbers.  Integer arguments get zeros.
    Without primals, gives the function of primals.

    >>> y, pull = tl.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pull(1.0)
    (tensor(3.0, float64, shape (), cpu, weak), tensor(2.0, float64, shape (), cpu, weak))
    """
    if not primals:
        return wrap(f, functools.partial(vjp, f, has_aux=has_aux), "Reverse derivative",
                    functools.partial(vjp, f, has_aux=has_aux))
    flat, xs, in_tree, _ = _flatten_call(f, primals, has_aux)
    ys, lin, aux = _linearized(flat, xs)
    out_tree, what = flat.out_tree, flat.what

    def pull(cotangent):
        cts = match_cotangents(cotangent, out_tree, ys, what)
        bars = pull_back(lin, cts)
        return tree.unflatten(in_tree, [full_cotangent(b, x) for b, x in zip(bars, xs)])
    y = tree.unflatten(out_tree, ys)
    return (y, pull, aux) if has_aux else (y, pull)


def match_cotangents(cotangent, out_tree, ys, what):
    """The leaves of a cotangent tree, checked against the results."""
    given = tree.flatten_as(out_tree, cotangent, f"{what}: the cotangent differs from the result")
    paths = tree.paths(out_tree)
    return [match_tangent(ct, y, f"the result{' at ' + p if p else ''}", what, "cotangent")
            for ct, y, p in zip(given, ys, paths)]


def full_cotangent(ct, x: Value) -> Value:
    """A cotangent as a value: zeros where nothing arrived, integer zeros for integers."""
    return zeros(x.aval) if type(ct) is Zero else ct


def linear_transpose(f: Callable, *like) -> Callable:
    """The transpose of a linear function; `like`: values or avals of its arguments.

    Without `like`, gives the function of `like`.

    >>> tl.linear_transpose(lambda x: 3 * x, tl.ones((2,)))(tl.tensor([1.0, 2.0]))
    (tensor([3., 6.], float64, shape (2,), cpu),)
    """
    if not like:
        return functools.partial(linear_transpose, f)
    what = describe_callable(f)
    leaves, in_tree = tree.flatten(tuple(like))
    avals = [getattr(x, "aval", None) or as_value(x).aval for x in leaves]
    flat = FlatFunction(f, in_tree, what)
    jaxpr, consts = stage(flat, avals)

    def transposed(cotangent):
        cts = tree.flatten_as(flat.out_tree, cotangent, f"{what}: the cotangent differs from the result")
        args = [*consts, *map(Linear, avals)]
        bars = backward(jaxpr, args, [match_aval(c, a.aval) for c, a in zip(cts, jaxpr.outs)])
        return tree.unflatten(in_tree, [zeros(a.strong()) if type(b) is Zero else b for b, a in zip(bars, avals)])
    return transposed


def match_aval(ct, aval):
    """A cotangent as a value of `aval`."""
    ct = as_value(ct, "the cotangent")
    if ct.shape != aval.shape:
        raise ShapeError(f"the cotangent must have shape {aval.shape}, got {ct.shape}")
    return as_dtype_value(ct, aval.dtype)


# ---- gradients ----

def value_and_grad(f: Callable = None, argnums: Any = 0, *, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False):
    """The function that gives (f(...), gradient of f).

    f returns one float of shape ().  argnums: position(s) or name(s) of the arguments to
    differentiate; one gives one gradient, several a tuple.  Trees give trees of gradients.
    has_aux: f returns (result, aux) and the value is (result, aux).
    Complex arguments: the descent gradient u_x + i u_y of a real result; with holomorphic=True,
    the complex derivative f'(z), after a check of the Cauchy-Riemann equations.
    allow_int: integer leaves get integer zeros instead of an error.

    >>> tl.value_and_grad(lambda x: x * x)(3.0)
    (tensor(9.0, float64, shape (), cpu, weak), tensor(6.0, float64, shape (), cpu, weak))
    """
    if f is None:
        return functools.partial(value_and_grad, argnums=argnums, has_aux=has_aux,
                                 holomorphic=holomorphic, allow_int=allow_int)
    many, single = as_argnums(argnums, f)

    def with_gradient(*args, **kwargs):
        chosen = Selected(f, many, args, kwargs)
        what = describe_callable(f)
        xs, in_tree, labels = flatten_values(chosen.values, chosen.names)
        _check_inputs(xs, labels, what, holomorphic, allow_int)
        flat = FlatFunction(chosen.call, in_tree, what, has_aux)
        (y, *more), lin, aux = _linearized(flat, xs)
        _check_result(y, more, what, holomorphic)
        bars = pull_back(lin, [ones_like(y)])
        if holomorphic:
            _check_holomorphic(lin, xs, what)
        grads = [full_cotangent(b, x) if holomorphic or x.dtype.kind != "c" else conj(full_cotangent(b, x))
                 for b, x in zip(bars, xs)]
        grads = tree.unflatten(in_tree, grads)
        value = tree.unflatten(flat.out_tree, [y])
        return ((value, aux) if has_aux else value), (grads[0] if single else grads)
    return wrap(f, with_gradient, "Value and gradient", functools.partial(
        value_and_grad, f, argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int))


def grad(f: Callable = None, argnums: Any = 0, *, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False):
    """The gradient of a function that returns one float of shape ().

    Arguments as `value_and_grad`; with has_aux, gives (gradient, aux).

    >>> tl.grad(lambda x: x ** 3)(2.0)
    tensor(12.0, float64, shape (), cpu, weak)
    """
    if f is None:
        return functools.partial(grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic,
                                 allow_int=allow_int)
    both = value_and_grad(f, argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)

    def gradient(*args, **kwargs):
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads
    return wrap(f, gradient, "Gradient", functools.partial(
        grad, f, argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int))


def ones_like(y: Value) -> Value:
    """Ones of the shape and dtype of y."""
    return broadcast_to(as_dtype_value(as_value(1), y.dtype, weak=y.aval.weak), y.shape)


def _check_inputs(xs, labels, what, holomorphic, allow_int):
    for k, x in enumerate(xs):
        if holomorphic and x.dtype.kind != "c":
            raise DifferentiationError(f"grad of {what}: holomorphic=True needs complex arguments, "
                                       f"{labels[k]} is {x.aval}")
        if not dtypes.is_inexact(x.dtype) and not allow_int:
            raise DifferentiationError(
                f"grad of {what}: {labels[k]} is {x.aval}, and integers have no derivative. Pass a float "
                "(3.0 instead of 3), choose other argnums, or give allow_int=True to get zeros there.")


def _check_result(y, more, what, holomorphic):
    if more:
        raise DifferentiationError(f"grad of {what}: the function must return one value, got {1 + len(more)}; "
                                   "return (result, aux) with has_aux=True")
    if y.shape != ():
        raise DifferentiationError(f"grad of {what}: the result must have shape (), got {y.aval}. "
                                   "Reduce it (tl.sum), or use tl.jacrev, tl.vjp or tl.vmap(tl.grad(f)).")
    if y.dtype.kind == "c" and not holomorphic:
        raise DifferentiationError(f"grad of {what}: the result is complex ({y.aval}). For the derivative of a "
                                   "holomorphic function give holomorphic=True; for real losses return "
                                   "a real number (tl.real, tl.abs); for both Wirtinger parts use tl.wirtinger.")
    if not dtypes.is_inexact(y.dtype):
        raise DifferentiationError(f"grad of {what}: the result is {y.aval}, which has no derivative")


def _check_holomorphic(lin, xs, what):
    """Cauchy-Riemann: the derivative along i times a direction is i times the derivative along it."""
    ones = [ones_like(x) for x in xs]
    (along,), (across,) = lin(*ones), lin(*[1j * v for v in ones])
    along, across = instantiate(along), instantiate(across)
    if getattr(along, "data", None) is None:
        return
    gap, size = abs(complex(across) - 1j * complex(along)), abs(complex(along)) + abs(complex(across))
    if gap > 1e-3 * size:
        raise DifferentiationError(
            f"grad of {what}: the function is not holomorphic here: its derivative along i is "
            f"{complex(across):.6g}, i times its derivative along 1 is {1j * complex(along):.6g}. Without "
            "holomorphic=True tl.grad gives the descent gradient of a real result; tl.wirtinger gives both parts.")


def wirtinger(f: Callable) -> Callable:
    """The function z -> (df/dz, df/d conj(z)) of one complex argument of shape ().

    df/dz = (f_x - i f_y) / 2 and df/d conj(z) = (f_x + i f_y) / 2.

    >>> tl.wirtinger(lambda z: z * tl.conj(z))(3 + 4j)[0].item()
    (3-4j)
    """
    def parts(z):
        z = as_value(z, "the argument of a Wirtinger derivative")
        if z.dtype.kind != "c" or z.shape != ():
            raise DifferentiationError(f"wirtinger of {describe_callable(f)}: the argument is a complex number "
                                       f"of shape (), got {z.aval}")
        one = ones_like(z)
        _, f_x = jvp(f, (z,), (one,))
        _, f_y = jvp(f, (z,), (1j * one,))
        return (f_x - 1j * f_y) / 2, (f_x + 1j * f_y) / 2
    return wrap(f, parts, "Wirtinger derivatives", functools.partial(wirtinger, f))
