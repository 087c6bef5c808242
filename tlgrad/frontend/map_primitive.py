"""The primitive `map`: a scalar jaxpr applied to every entry of an index space.

    operands  mapped ones have shape (*shape, *entry), the others are whole in every entry
    results   (*shape, *entry) each; those in `summed` are added up over the entries, in
              row-major order from +0

Every rule applies the transform to the scalar jaxpr.  With `errors`, the last results of the
jaxpr are an error code (-1: none) and the values that messages show; they are no results of the
primitive: it raises for the lowest entry.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tlgrad.control.staging import reorder
from tlgrad.core.aval import Zero, make_aval
from tlgrad.core.jaxpr import Jaxpr, Literal
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.core.trace import EVAL, running_under
from tlgrad.errors import OutOfBoundsError, ShapeError
from tlgrad.frontend.lanes import Faults, Lanes, evaluate, spread
from tlgrad.frontend.state import filled
from tlgrad.ops.define import documented, instantiate
from tlgrad.ops.index import mapped as to_front
from tlgrad.ops.layout import broadcast, moveaxis, reduce_sum, sum_axes
from tlgrad.ops.orders import use_order
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.partial_eval import partial_eval_jaxpr
from tlgrad.transforms.transpose import transpose_jaxpr

#: entries of a summed array that are held at once, over all lanes of a chunk
CHUNK = 1 << 22


@dataclass(frozen=True, repr=False)
class Errors:
    """What entries may raise: the table, the numbers of the message values, what to call the map."""
    table: tuple = ()
    marks: tuple[int, ...] = ()
    name: str = ""

    @property
    def n_results(self) -> int:
        """Results of the jaxpr that are no results of the map."""
        return 1 + len(self.marks) if self.table else 0

    def __repr__(self):
        return "|".join(dict.fromkeys(entry.cls.__name__ for entry in self.table)) or "none"


NO_ERRORS = Errors()


# ---- meaning ----

def _impl(*arrays, jaxpr: Jaxpr, mapped, summed, shape, errors: Errors, order):
    n, n_results = prod(shape), len(jaxpr.outs) - errors.n_results
    avals = [v.aval for v in jaxpr.outs[:n_results]]
    values = [np.reshape(x, (n, *v.aval.shape)) if m else x for x, m, v in zip(arrays, mapped, jaxpr.in_binders)]
    rows = max(1, CHUNK // max([1, *[a.size for a, s in zip(avals, summed) if s]])) if any(summed) else max(n, 1)
    parts, faults, codes = [], Faults(), []
    with running_under(EVAL), np.errstate(all="ignore"):
        for lo in range(0, n, rows):
            lanes = Lanes(np.arange(lo, min(n, lo + rows)), faults)
            mine = [x[lo:lo + rows] if m else x for x, m in zip(values, mapped)]
            outs, varies = evaluate(jaxpr, mine, mapped, lanes)
            outs = [spread(y, f, lanes.n) for y, f in zip(outs, varies)]
            codes.append(outs[n_results:])
            parts.append(_add_up(outs[:n_results], summed, order, parts))
    if faults.first or errors.table:
        raise_lowest(errors, faults, codes, shape, arrays, mapped)
    return [_whole([p[k] for p in parts], a, s, shape) for k, (a, s) in enumerate(zip(avals, summed))]


def _add_up(outs, summed, order, parts):
    """The results of a chunk; sums continue those of the chunk before."""
    found = []
    for k, (y, s) in enumerate(zip(outs, summed)):
        if s:
            start = [parts[-1][k]] if parts else []
            y = reduce_sum.impl(np.ascontiguousarray(y), *start, axes=(0,), order=order)
        found.append(y)
    return found


def _whole(pieces, aval, summed, shape):
    if summed:
        return pieces[-1] if pieces else np.zeros(aval.shape, aval.dtype.storage)
    if not pieces:
        return np.zeros((*shape, *aval.shape), aval.dtype.storage)
    whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return np.array(np.reshape(whole, (*shape, *aval.shape)))


def raise_lowest(errors: Errors, faults: Faults, codes, shape, arrays, mapped):
    """Raise what the lowest failing entry raises, if any does."""
    first = dict(faults.first)
    if errors.table and codes:
        columns = [np.concatenate([np.atleast_1d(c[k]) for c in codes]) for k in range(errors.n_results)]
        failing = np.flatnonzero(columns[0] >= 0)
        if len(failing):
            lane = int(failing[0])
            first.setdefault(lane, error_of(errors, [c[lane] for c in columns]))
    if not first:
        return
    lane = min(first)
    index = tuple(int(k) for k in np.unravel_index(lane, shape)) if shape else ()
    inputs = [np.reshape(x, (prod(shape), -1))[lane] for x, m in zip(arrays, mapped) if m]
    shown = ", ".join(str(v[0]) if v.size == 1 else str(v) for v in inputs)
    error = first[lane]
    where = f"entry {index[0] if len(index) == 1 else index}"
    if isinstance(error, OutOfBoundsError):
        error = OutOfBoundsError(f"{error}, in {where} of {errors.name or 'map'}")
    error.add_note(f"{errors.name or 'map'}: raised for {where}, "
                   f"where the inputs are {shown}")
    raise error


def error_of(errors: Errors, values) -> BaseException:
    """The exception of an entry: its class, with the message formed from the entry's values."""
    entry = errors.table[int(values[0])]
    numbers = {k: v.item() for k, v in zip(errors.marks, values[1:])}
    try:
        return entry.cls(*filled(entry.args, numbers))
    except Exception:       # noqa: BLE001   an exception class of the user that takes other arguments
        return RuntimeError(f"{entry.cls.__name__}{tuple(filled(entry.args, numbers))}")


def _abstract(*avals, jaxpr: Jaxpr, mapped, summed, shape, errors: Errors, order):
    for k, (a, v, m) in enumerate(zip(avals, jaxpr.in_binders, mapped, strict=True)):
        expected = (*shape, *v.aval.shape) if m else v.aval.shape
        if a.shape != expected or a.dtype is not v.aval.dtype:
            raise ShapeError(f"map: operand {k} is {a}, expected {v.aval.dtype} of shape {expected}")
    results = jaxpr.out_avals[:len(jaxpr.outs) - errors.n_results]
    return [make_aval(a.shape if s else (*shape, *a.shape), a.dtype) for a, s in zip(results, summed, strict=True)]


# ---- rules ----

def _jvp(primals, tangents, *, jaxpr, mapped, summed, shape, errors, order):
    nonzero = [type(t) is not Zero for t in tangents]
    dual, found = jvp_jaxpr(jaxpr, nonzero)
    n_all, n = len(jaxpr.outs), len(summed)
    dot = iter(range(n_all, len(dual.outs)))
    place = [next(dot) if f else None for f in found]
    moving = [k for k in range(n) if found[k]]
    dual = _ordered(dual, ("dual", n), [*range(n), *[place[k] for k in moving], *range(n, n_all)])
    outs = map_p.bind(*primals, *[t for t in tangents if type(t) is not Zero], jaxpr=dual,
                      mapped=(*mapped, *[m for m, z in zip(mapped, nonzero) if z]),
                      summed=(*summed, *[summed[k] for k in moving]), shape=shape, errors=errors, order=order)
    ys, dots = outs[:n], dict(zip(moving, outs[n:]))
    return ys, [dots[k] if k in dots else Zero(y.aval) for k, y in enumerate(ys)]


def _ordered(jaxpr, key, outs):
    """`jaxpr` with its results in another order, kept with it."""
    key = (*key, tuple(outs))
    if key not in jaxpr.memo:
        jaxpr.memo[key] = reorder(jaxpr, range(len(jaxpr.in_binders)), outs)
    return jaxpr.memo[key]


def _partial_eval(trace, args, *, jaxpr, summed, errors, **params):
    unknown = [trace.is_unknown(x) for x in args]
    parts = partial_eval_jaxpr(jaxpr, unknown)
    n, out_unknown = len(summed), parts[2]
    late = bool(errors.table) and any(out_unknown[n:])
    if late and not all(out_unknown[n:]):
        return trace.emit(map_p, args, dict(jaxpr=jaxpr, summed=summed, errors=errors, **params))
    return Halves(trace, args, unknown, parts, summed, NO_ERRORS if late else errors,
                  errors if late else NO_ERRORS, params).run()


class Halves:
    """A map cut in two by which operands are known.  A residual that is an operand of the known
    half is handed on as it is, so a captured array is not repeated for every entry."""

    def __init__(self, trace, args, unknown, parts, summed, errors_now, errors_later, params):
        self.trace, self.args, self.unknown, self.summed = trace, args, unknown, summed
        self.known, self.rest, self.out_unknown, n_res = parts
        self.errors_now, self.errors_later = errors_now, errors_later
        self.params = dict(params)
        self.mapped = self.params.pop("mapped")
        self.n_known = len(self.known.outs) - n_res
        self.residual = self.known.outs[self.n_known:]

    def run(self):
        n = len(self.summed)
        given, made = self.now()
        later: list = []
        if any(self.out_unknown[:n]) or self.errors_later.table:
            later = self.later(made)
        first, second = iter(given), iter(later)
        return [next(second) if u else next(first) for u in self.out_unknown[:n]]

    def pick(self, values, want):
        """Those of the operands that are (not) unknown."""
        return [v for v, u in zip(values, self.unknown) if u == want]

    def now(self):
        """Results of the known half, and the residuals it makes, by number."""
        operands = set(self.known.in_binders)
        made = [k for k, a in enumerate(self.residual) if type(a) is not Literal and a not in operands]
        summed = [s for s, u in zip(self.summed, self.out_unknown) if not u]
        n = len(summed)
        order = [*range(n), *[self.n_known + k for k in made], *range(n, self.n_known)]
        outs = map_p.bind(*self.pick(self.args, False), jaxpr=_ordered(self.known, ("known",), order),
                          mapped=tuple(self.pick(self.mapped, False)), summed=(*summed, *[False] * len(made)),
                          errors=self.errors_now, **self.params)
        return outs[:n], dict(zip(made, outs[n:]))

    def later(self, made):
        """Write the unknown half down."""
        place = {v: k for k, v in enumerate(self.known.in_binders)}
        args, flags = self.pick(self.args, False), self.pick(self.mapped, False)
        operands = []
        for k, a in enumerate(self.residual):
            if k in made:
                operands.append((made[k], True))
            elif type(a) is Literal:
                operands.append((a.value, False))
            else:
                operands.append((args[place[a]], flags[place[a]]))
        operands += zip(self.pick(self.args, True), self.pick(self.mapped, True))
        return self.trace.emit(map_p, [x for x, _ in operands], dict(
            jaxpr=self.rest, mapped=tuple(m for _, m in operands), errors=self.errors_later,
            summed=tuple(s for s, u in zip(self.summed, self.out_unknown) if u), **self.params))


def _transpose(cts, *args, jaxpr, mapped, summed, shape, errors, order):
    linear = [type(x) is Linear for x in args]
    with use_order(order):
        turned = transpose_jaxpr(jaxpr, linear)
    absent = [type(ct) is Zero for ct in cts]
    entry_avals = turned.in_avals[linear.count(False):]
    given = [instantiate(Zero(a)) if no else ct for ct, no, a in zip(cts, absent, entry_avals)]
    known, known_mapped = ([v for v, lin in zip(vs, linear) if not lin] for vs in (args, mapped))
    out_mapped = [m for m, lin in zip(mapped, linear) if lin]
    tables = tuple(not m and bool(a.shape) for m, a in zip(out_mapped, turned.out_avals))
    outs = map_p.bind(*known, *given, jaxpr=turned, summed=tables, shape=shape, errors=NO_ERRORS, order=order,
                      mapped=(*known_mapped, *[not (s or no) for s, no in zip(summed, absent)]))
    axes = tuple(range(len(shape)))
    found = iter([y if m or t else sum_axes(y, axes, order) for y, m, t in zip(outs, out_mapped, tables)])
    return [next(found) if lin else None for lin in linear]


def _batch(args, axes, size, *, jaxpr, mapped, summed, shape, errors, order):
    whole = any(k is not None and not m and v.aval.shape for k, m, v in zip(axes, mapped, jaxpr.in_binders))
    if (whole or any(summed)) and not errors.table:
        return _batch_inside(args, axes, size, jaxpr, mapped, summed, shape, order)
    values, flags = [], []
    for x, k, m, v in zip(args, axes, mapped, jaxpr.in_binders):
        if k is not None:
            x = moveaxis(x, k, 0)
            if not m:       # one value per batch entry: repeated over the index space
                x = broadcast.bind(x, shape=(size, *shape, *v.aval.shape),
                                   axes=(0, *range(1 + len(shape), 1 + len(shape) + v.aval.ndim)))
        elif m:
            x = to_front(x, None, size)
        values.append(x)
        flags.append(m or k is not None)
    outs = map_p.bind(*values, jaxpr=jaxpr, mapped=tuple(flags), summed=summed, shape=(size, *shape),
                      errors=errors, order=order)
    return outs, [0] * len(outs)


def _batch_inside(args, axes, size, jaxpr, mapped, summed, shape, order):
    """The batch inside the entry: the scalar jaxpr itself is batched."""
    batched = [k is not None for k in axes]
    inner, found = batch_jaxpr(jaxpr, size, batched)
    rank = len(shape)
    values = [x if k is None else moveaxis(x, k, rank if m else 0) for x, k, m in zip(args, axes, mapped)]
    outs = map_p.bind(*values, jaxpr=inner, mapped=mapped, summed=summed, shape=shape, errors=NO_ERRORS,
                      order=order)
    return outs, [None if not f else 0 if s else rank for f, s in zip(found, summed)]


map_p = documented(
    Primitive("map", impl=_impl, abstract=_abstract, jvp=_jvp, partial_eval=_partial_eval, transpose=_transpose,
              batch=_batch, multiple=True, lower=("map", "map")),
    "A scalar jaxpr applied to every entry.", "*operands")
