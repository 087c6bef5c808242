"""`check_grads`: derivatives against differences of the function taken in higher precision.

The jaxpr of the function is evaluated in longdouble (`testing.wide`); a function with a primitive
that has no wide meaning (a loop, a library call) is evaluated in float64 instead.  In both cases
the central differences are extrapolated (Ridders, "Accurate computation of F'(x) and F'(x)F''(x)",
1982), so that steps of 2**-7 and less reach 1e-15.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from tlgrad.api.calling import FlatFunction, flatten_values
from tlgrad.api.derivatives import pull_back
from tlgrad.core import dtypes
from tlgrad.core.aval import Zero
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import Tensor, as_value, convert_array, frozen, to_numpy
from tlgrad.errors import GradientError
from tlgrad.ops.define import instantiate
from tlgrad.testing.ulps import FORMATS
from tlgrad.testing.wide import NoWideMeaning, wide_eval, widen
from tlgrad.transforms.jvp import jvp_flat
from tlgrad.transforms.partial_eval import linearize_flat
from tlgrad.transforms.stage import stage

#: relative, for differences of a float64 function
PLAIN_TOLERANCE = 1e-8


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
    tol = _tolerance([*xs, *ys]) if rtol is None else rtol
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
    """Entries in [-1, 1] times |x|, or its root beyond 1: a step stays on the same side of 0."""
    if not dtypes.is_inexact(x.dtype):
        return Zero(x.aval)
    size = np.abs(np.asarray(to_numpy(x), np.complex128))
    v = rng.uniform(-1, 1, x.shape) * np.where(size == 0, 1, np.minimum(size, np.sqrt(size)))
    if x.dtype.kind == "c":
        v = v + 1j * rng.uniform(-1, 1, x.shape)
    return Tensor.own(frozen(convert_array(np.asarray(v), x.dtype)))


def _tolerance(values) -> float:
    eps = [2.0 ** (1 - FORMATS[dtypes.real_dtype(y.dtype)][0]) for y in values
           if dtypes.real_dtype(y.dtype) in FORMATS]
    return max(eps, default=2.0 ** -52) ** 0.75


def _differences(f, xs, vs, levels=10):
    """d/dt f(x + t v) at t = 0 by Ridders' extrapolation of central differences.

    For each result the derivative, how uncertain it is, and the least tolerance: of all
    extrapolations the one that changed least, entry by entry.
    """
    evaluate, least = _wide_function(f, xs)
    points = [widen(x.data) for x in xs]
    steps = [None if type(v) is Zero else widen(v.data) for v in vs]

    def at(t):
        return evaluate([p if s is None else p + np.longdouble(t) * s for p, s in zip(points, steps)])

    def slopes(h):
        return [(np.asarray(a) - b) / np.longdouble(2 * h) if a.dtype.kind in "fc" else np.zeros(a.shape)
                for a, b in zip(at(h), at(-h))]
    with np.errstate(all="ignore"):
        rows = [slopes(2.0 ** -(7 + i)) for i in range(levels)]
        return [(*_extrapolate([row[k] for row in rows]), least) for k in range(len(rows[0]))]


def _extrapolate(column):
    best, uncertain = column[-1], np.full(column[-1].shape, np.inf)
    rounding = np.max(np.abs(np.where(np.isnan(column), 0, column)), axis=0) * 1e-18
    for j in range(1, len(column)):
        factor = np.longdouble(4.0 ** j)
        new = [(factor * b - a) / (factor - 1) for a, b in zip(column, column[1:])]
        for value, before in zip(new, zip(column, column[1:])):
            change = np.maximum(*[np.abs(value - old) for old in before])
            change = np.where(np.isnan(change), np.inf, change)
            best = np.where(change < uncertain, value, best)
            uncertain = np.minimum(change, uncertain)
        column = new
    return best, uncertain + rounding


def _wide_function(f, xs):
    """f on longdouble arrays, and the least tolerance that it allows: its jaxpr in longdouble, or
    itself in float64."""
    jaxpr, consts = stage(lambda *x: [as_value(y) for y in f(*x)], [x.aval for x in xs])
    captured = [widen(c.data) for c in consts]

    def wide(arrays):
        return wide_eval(jaxpr, [*captured, *arrays])

    def plain(arrays):
        values = [Tensor.own(convert_array(a.astype(_storage(a)), dtypes.of_storage(x.data.dtype)))
                  for a, x in zip(arrays, xs)]
        return [widen(as_value(y).data) for y in f(*values)]
    try:
        wide([widen(x.data) for x in xs])
        return wide, 0.0
    except NoWideMeaning:
        return plain, PLAIN_TOLERANCE


def _storage(array):
    return {"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype)


def _compare(got, expected, tol, what):
    got, (want, uncertain, least) = np.asarray(to_numpy(got)), expected
    if not np.issubdtype(got.dtype, np.inexact):
        return
    size = np.maximum(np.abs(want), np.max(np.abs(want), initial=0) * 1e-3) + np.abs(got)
    allowed = max(tol, least) * size + 10 * uncertain
    bad = ~(np.abs(got - want) <= allowed)
    if bad.any():
        k = tuple(int(i) for i in np.argwhere(bad)[0])
        raise GradientError(f"{what} at entry {k} is {got[k]!r}, differences in higher precision give "
                            f"{want[k]!r}; they may differ by {float(allowed[k]):.3g}")


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
