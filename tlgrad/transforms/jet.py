"""Taylor mode: truncated power series carried through primitives.

    jet : (a -> b) -> a, [x_1 .. x_n] -> b, [y_1 .. y_n]

For x(t) = x_0 + x_1 t + ... + x_n t^n gives the coefficients of f(x(t)) up to order n.  The cost
is polynomial in n, where nested duals cost 2^n.  Sums, products, quotients and linear primitives
have rules of their own; any other elementwise primitive y = f(x) follows from its partials by
k y_k = sum_j j (df/dx)_(k-j) x_j  (Griewank and Walther, "Evaluating Derivatives", 2008, chapter 13).
"""
from __future__ import annotations

import dis
import functools
from typing import Callable, Sequence

from tlgrad.core.aval import Zero
from tlgrad.core.dtypes import is_inexact
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Trace, Tracer, current_trace, new_trace, running_under
from tlgrad.errors import DifferentiationError
from tlgrad.ops import arithmetic as ar
from tlgrad.ops.contract import dot_general
from tlgrad.ops.define import add, add_tangents, instantiate, mul
from tlgrad.ops.elementary import hypot, logistic
from tlgrad.ops.logic import select


class Series(Tracer):
    """Coefficients [y_0, y_1, ..., y_n] of a power series; y_1 ... may be symbolic zeros."""

    __slots__ = ("coefficients",)

    def __init__(self, trace, coefficients):
        super().__init__(trace)
        self.coefficients = coefficients

    @property
    def aval(self):
        return self.coefficients[0].aval


class JetTrace(Trace):
    """Carries series to a fixed order; rules run under the parent."""

    name = "derivative"

    def __init__(self, parent, order: int):
        super().__init__(parent)
        self.order = order

    def series(self, x) -> list:
        """The coefficients of x; a constant has zeros after the first."""
        if type(x) is Series and x.trace is self:
            return x.coefficients
        return [x, *[Zero(x.aval)] * self.order]

    def box(self, coefficients):
        if all(type(c) is Zero for c in coefficients[1:]):
            return coefficients[0]
        return Series(self, coefficients)

    def process(self, prim, args, params):
        if not any(type(x) is Series and x.trace is self for x in args):
            return self.parent.process(prim, args, params)
        with running_under(self.parent):
            columns = [self.series(x) for x in args]
            if prim.nondiff == "":
                return prim.bind(*[c[0] for c in columns], **params)
            out = propagate(prim, columns, params, self.order)
            if prim.multiple:
                return [self.box(c) for c in out]
        return self.box(out)


def propagate(prim, columns, params, order):
    """Coefficients of a primitive's result."""
    if prim.name in _RULES:
        return _RULES[prim.name](columns, params, order)
    if prim.multiple:
        raise NestedNeeded(prim.name)          # a program, also where it has a transpose for linear ones
    if prim.name in _LINEAR or prim.transpose is not None and len(columns) == 1:
        return _linear(prim, columns, params, order)
    if getattr(prim, "partials", None) is not None:
        return _from_partials(prim, columns, params, order)
    if prim.jvp is None:
        raise DifferentiationError(f"{prim} has no derivative: {prim.nondiff or 'no rule is defined'}")
    raise NestedNeeded(prim.name)


def _linear(prim, columns, params, order):
    """Primitives linear in all operands that vary: order by order."""
    out = [prim.bind(*[c[0] for c in columns], **params)]
    for k in range(1, order + 1):
        terms = [c[k] if is_inexact(c[0].dtype) else c[0] for c in columns]
        if all(type(t) is Zero for t in terms if is_inexact(t.aval.dtype)):
            out.append(Zero(out[0].aval))
        else:
            out.append(prim.bind(*map(instantiate, terms), **params))
    return out


def product(a, b, k, times=mul):
    """Coefficient k of the product of two series."""
    total = Zero(a[0].aval)
    for j in range(k + 1):
        if type(a[j]) is not Zero and type(b[k - j]) is not Zero:
            total = add_tangents(total, times(a[j], b[k - j]))
    return total


def _mul(columns, params, order):
    a, b = columns
    return [mul(a[0], b[0]), *[product(a, b, k) for k in range(1, order + 1)]]


def _dot(columns, params, order):
    a, b = columns[:2]

    def times(x, y):
        return dot_general.bind(x, y, **params)

    out = [dot_general.bind(*[c[0] for c in columns], **params)]
    for k in range(1, order + 1):
        extra = columns[2][k] if len(columns) > 2 else Zero(out[0].aval)
        out.append(add_tangents(product(a, b, k, times), extra))
    return out


def _div(columns, params, order):
    """z = a / b:  z_k = (a_k - sum_(j<k) z_j b_(k-j)) / b_0."""
    a, b = columns
    out = [ar.div(a[0], b[0])]
    for k in range(1, order + 1):
        rest = a[k]
        for j in range(k):
            if type(out[j]) is not Zero and type(b[k - j]) is not Zero:
                rest = add_tangents(rest, ar.neg(mul(out[j], b[k - j])))
        out.append(rest if type(rest) is Zero else ar.div(rest, b[0]))
    return out


def _select(columns, params, order):
    which, a, b = columns
    out = [select(which[0], a[0], b[0])]
    for k in range(1, order + 1):
        both = type(a[k]) is Zero and type(b[k]) is Zero
        out.append(Zero(out[0].aval) if both else select(which[0], instantiate(a[k]), instantiate(b[k])))
    return out


def _add(columns, params, order):
    return [add(columns[0][0], columns[1][0]),
            *[add_tangents(a, b) for a, b in list(zip(*columns))[1:]]]


def _sub(columns, params, order):
    out = [ar.sub(columns[0][0], columns[1][0])]
    for a, b in list(zip(*columns))[1:]:
        out.append(a if type(b) is Zero else add_tangents(a, ar.neg(b)))
    return out


def _fma(columns, params, order):
    a, b, c = columns
    return [ar.fma(a[0], b[0], c[0]), *[add_tangents(product(a, b, k), c[k]) for k in range(1, order + 1)]]


def _abs(columns, params, order):
    (x,) = columns
    if x[0].dtype.kind == "c":
        raise NestedNeeded("abs")
    slope = ar.sign(x[0])
    return [ar.abs_(x[0]), *[c if type(c) is Zero else mul(slope, c) for c in x[1:]]]


def _logistic(columns, params, order):
    """s(x) and r(x) = s(-x) together: s' = s r x', r' = -s r x', without cancellation."""
    (x,) = columns
    s, r = [logistic(x[0])], [logistic(ar.neg(x[0]))]
    for k in range(1, order + 1):
        total = Zero(x[0].aval)
        for j in range(1, k + 1):
            slope = product(s, r, k - j)
            if type(x[j]) is not Zero and type(slope) is not Zero:
                total = add_tangents(total, mul(mul(float(j), slope), x[j]))
        step = total if type(total) is Zero else ar.div(total, float(k))
        s.append(step)
        r.append(step if type(step) is Zero else ar.neg(step))
    return s


def _hypot(columns, params, order):
    """r r' = x x' + y y':  k r_0 r_k = sum_j j (x_j x_(k-j) + y_j y_(k-j)) - sum_(0<j<k) j r_j r_(k-j)."""
    x, y = columns
    r = [hypot(x[0], y[0])]
    for k in range(1, order + 1):
        total = add_tangents(_weighted(x, x, k, k), _weighted(y, y, k, k))
        inner = _weighted(r, r, k, k - 1)
        total = total if type(inner) is Zero else add_tangents(total, ar.neg(inner))
        r.append(total if type(total) is Zero else ar.div(total, mul(float(k), r[0])))
    return r


def _weighted(a, b, k, last):
    """The sum over j = 1 .. last of j a_j b_(k-j)."""
    total = Zero(a[0].aval)
    for j in range(1, last + 1):
        if type(a[j]) is not Zero and type(b[k - j]) is not Zero:
            total = add_tangents(total, mul(mul(float(j), a[j]), b[k - j]))
    return total


#: linear in every float operand together
_LINEAR = {"gather", "dynamic_slice", "dynamic_update_slice", "concatenate", "pad", "reduce_sum", "complex"}
_RULES: dict[str, Callable] = {
    "fma": _fma, "abs": _abs, "hypot": _hypot, "logistic": _logistic, "mul": _mul, "div": _div,
    "add": _add, "sub": _sub, "select": _select, "dot_general": _dot}


def _from_partials(prim, columns, params, order):
    """k y_k = sum over operands and j of j * g_(k-j) * x_j, with g the series of the partial.

    A partial reads the result y only up to order k - 1 to give y_k.
    """
    y = [prim.bind(*[c[0] for c in columns], **params)]
    varying = [i for i, c in enumerate(columns) if any(type(t) is not Zero for t in c[1:])]
    cached: dict[int, list] = {}
    for k in range(1, order + 1):
        total = Zero(y[0].aval)
        for i in varying:
            if prim.partials[i] is None:
                continue
            if i not in cached or len(cached[i]) < k:
                cached[i] = _partial_series(prim.partials[i], y, columns, params, k, order)
            g, x = cached[i], columns[i]
            for j in range(1, k + 1):
                if type(x[j]) is not Zero and type(g[k - j]) is not Zero:
                    total = add_tangents(total, mul(mul(float(j), g[k - j]), x[j]))
        y.append(total if type(total) is Zero else ar.div(total, float(k)))
    return y


def _partial_series(partial, y, columns, params, k, order):
    """Series of a partial: to order k - 1 when it reads the result, to the full order otherwise."""
    n = k if reads_result(partial) else order
    trace = JetTrace(current_trace(), n - 1)
    with new_trace(trace):
        result = trace.box(y[:n]) if n <= len(y) else None
        g = partial(result, *[trace.box(c[:n]) for c in columns], **params)
        return trace.series(as_value(g))


@functools.lru_cache(maxsize=None)
def reads_result(partial) -> bool:
    """True when a partial (result, *operands) uses its first argument."""
    first = partial.__code__.co_varnames[0]
    return any(i.opname == "LOAD_FAST" and i.argval == first for i in dis.get_instructions(partial))


class NestedNeeded(Exception):
    """A primitive has no series rule; the caller uses nested duals."""


def jet_flat(f: Callable, primals: Sequence, series: Sequence[Sequence]) -> list[list]:
    """f : [value] -> [value].  For each result, its coefficients to the common order."""
    order = len(series[0])
    trace = JetTrace(current_trace(), order)
    with new_trace(trace):
        outs = f(*[trace.box([x, *s]) for x, s in zip(primals, series, strict=True)])
        return [trace.series(as_value(y)) for y in outs]
