"""Short products with a vector are sums of entrywise products, which fuse with what is around them.

For the order "ordered" both have the same words: each product is rounded, then added, left to right.
"""
from __future__ import annotations

from math import prod

from tlgrad.core.jaxpr import Eqn, Jaxpr
from tlgrad.ops.define import mul
from tlgrad.ops.layout import broadcast, reduce_sum, reshape, transpose
from tlgrad.passes.simplify import rewritten


#: entries of an operand up to which products fuse with what is around them; a nest of its own is faster
FUSED = 1 << 14


def _rest(ndim, *used):
    return tuple(k for k in range(ndim) if not any(k in group for group in used))


def _as_sum(eqn: Eqn):
    """A function of the operands with the words of the contraction, or None."""
    p = eqn.params
    if p["order"] != "ordered" or len(eqn.ins) != 2:
        return None
    x, y = (a.aval for a in eqn.ins)
    x_rest, y_rest = _rest(x.ndim, p["contract"][0], p["batch"][0]), _rest(y.ndim, p["contract"][1], p["batch"][1])
    if not p["contract"][0] or not x.size or not y.size or max(x.size, y.size) > FUSED:
        return None
    if prod(y.shape[k] for k in y_rest) == 1:
        return lambda a, b: _rows(a, b, x_rest, p["contract"], p["batch"], eqn.outs[0].aval.shape)
    if prod(x.shape[k] for k in x_rest) == 1 and prod(x.shape[k] for k in p["batch"][0]) == 1:
        return lambda a, b: _columns(a, b, y_rest, p["contract"], eqn.outs[0].aval.shape)
    return None


def _rows(x, y, x_rest, contract, batch, shape):
    """Axes batch, rest of x, terms; the terms are added up along each row."""
    x = transpose.bind(x, perm=(*batch[0], *x_rest, *contract[0]))
    y = transpose.bind(y, perm=(*batch[1], *_rest(y.ndim, contract[1], batch[1]), *contract[1]))
    n_batch, n_terms = len(batch[0]), len(contract[0])
    y = reshape.bind(y, shape=(*y.shape[:n_batch], *y.shape[y.ndim - n_terms:]))
    axes = (*range(n_batch), *range(x.ndim - n_terms, x.ndim))
    terms = mul.bind(x, broadcast.bind(y, shape=x.shape, axes=axes))
    out = reduce_sum.bind(terms, axes=tuple(range(x.ndim - n_terms, x.ndim)), order="ordered")
    return [reshape.bind(out, shape=shape)]


def _columns(x, y, y_rest, contract, shape):
    """Axes terms, rest of y; the terms are added up down each column."""
    y = transpose.bind(y, perm=(*contract[1], *[k for k in range(y.ndim) if k not in contract[1]]))
    n_terms = len(contract[0])
    x = transpose.bind(x, perm=(*contract[0], *[k for k in range(x.ndim) if k not in contract[0]]))
    x = reshape.bind(x, shape=x.shape[:n_terms])
    terms = mul.bind(broadcast.bind(x, shape=y.shape, axes=tuple(range(n_terms))), y)
    out = reduce_sum.bind(terms, axes=tuple(range(n_terms)), order="ordered")
    return [reshape.bind(out, shape=shape)]


def vectors_to_sums(jaxpr: Jaxpr) -> Jaxpr:
    """Contractions with a vector become entrywise products and a sum."""
    return rewritten(jaxpr, _as_sum, ("dot_general",))
