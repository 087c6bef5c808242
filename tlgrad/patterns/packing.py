"""pack, unpack and parse_shape: shapes by pattern."""
from __future__ import annotations

from functools import lru_cache
from math import prod

from tlgrad.core.trace import Value
from tlgrad.ops.layout import reshape
from tlgrad.ops.shape import concatenate, slice_axis
from tlgrad.patterns.messages import Fault, pattern_error, quoted
from tlgrad.patterns.parse import ELLIPSIS, atom, parse_side, side_span, spans, tokens
from tlgrad.patterns.values import in_common_dtype, operand


@lru_cache(maxsize=1024)
def parse_packing(pattern: str) -> tuple[int, int]:
    """The numbers of axes before and after the one ``*``."""
    names: list = []
    for m in tokens(pattern):
        name = "*" if m.group() == "*" else atom(m, m.group()) if m.lastindex == 1 else None
        if name is None or type(name) is int:
            raise Fault(f"{m.group()!r} at column {m.start() + 1}: a packing pattern is names around one '*'",
                        m.span())
        if name in names:
            raise Fault(f"{name!r} occurs twice; the second is at column {m.start() + 1}", m.span())
        names.append(name)
    if "*" not in names:
        raise Fault("the pattern has no '*', the place of the packed axes", (0, len(pattern)),
                    quoted(pattern + " *"))
    k = names.index("*")
    return k, len(names) - k - 1


def pack(tensors, pattern: str) -> tuple[Value, list[tuple[int, ...]]]:
    """Join tensors of different rank along the axes at ``*``; also gives the packed shapes.

    The axes named before and after ``*`` must agree; those at ``*`` are flattened row-major and
    joined in order.  Operands meet in their common dtype.  Raises PatternError when there are no
    tensors, a rank is too small, or a named axis differs.

    >>> packed, shapes = pack([tl.tensor([1, 2]), tl.tensor([[3, 4, 5], [6, 7, 8]])], "*")
    >>> packed.tolist(), shapes
    ([1, 2, 3, 4, 5, 6, 7, 8], [(2,), (2, 3)])
    """
    values = list(map(operand, tensors))
    described = [(f"tensor {k}", v.shape) for k, v in enumerate(values)]
    try:
        before, after = parse_packing(pattern)
        shapes = _packed_shapes(pattern, [v.shape for v in values], before, after)
    except Fault as fault:
        raise pattern_error("pack", pattern, fault, described) from None
    flat = [reshape.bind(v, shape=(*v.shape[:before], prod(inner), *v.shape[v.ndim - after:]))
            for v, inner in zip(in_common_dtype(values), shapes)]
    return concatenate.bind(*flat, axis=before), shapes


def _packed_shapes(pattern, shapes, before, after):
    if not shapes:
        raise Fault("there are no tensors to pack")
    names = [n for n in pattern.split() if n != "*"]
    found = []
    for k, shape in enumerate(shapes):
        if len(shape) < before + after:
            raise Fault(f"tensor {k} has {len(shape)} axes, the pattern names {before + after}: {shape}",
                        (0, len(pattern)))
        stop = len(shape) - after
        for name, n, first in zip(names, (*shape[:before], *shape[stop:]),
                                  (*shapes[0][:before], *shapes[0][len(shapes[0]) - after:])):
            if n != first:
                raise Fault(f"axis {name!r} has length {first} in tensor 0 and {n} in tensor {k}",
                            spans(pattern, name)[0])
        found.append(tuple(shape[before:stop]))
    return found


def unpack(x, shapes, pattern: str) -> list[Value]:
    """Split along the axis at ``*`` into tensors whose packed axes have `shapes`.

    The inverse of `pack`.  Lengths are not negative; at most one of all is -1 and follows from the
    rest.  Raises PatternError when they do not make up the axis.

    >>> [t.tolist() for t in unpack(tl.tensor([1, 2, 3, 4, 5, 6, 7, 8]), [(2,), (2, 3)], "*")]
    [[1, 2], [[3, 4, 5], [6, 7, 8]]]
    """
    x = operand(x)
    try:
        before, after = parse_packing(pattern)
        if x.ndim != before + 1 + after:
            raise Fault(f"the pattern has {before + 1 + after} axes, x has {x.ndim}: {x.shape}", (0,
                len(pattern)))
        shapes = _split_shapes(pattern, [tuple(map(int, s)) for s in shapes], x.shape[before])
    except Fault as fault:
        raise pattern_error("unpack", pattern, fault, [("x", x.shape)]) from None
    out, start = [], 0
    for inner in shapes:
        part = slice_axis(x, before, start, start + prod(inner))
        out.append(reshape.bind(part, shape=(*x.shape[:before], *inner, *x.shape[before + 1:])))
        start += prod(inner)
    return out


def _split_shapes(pattern, shapes, n):
    star = spans_of_star(pattern)
    unknown = [n for s in shapes for n in s if n == -1]
    if any(k < -1 for s in shapes for k in s) or len(unknown) > 1:
        raise Fault(f"lengths are not negative and at most one is -1, got {shapes}", star)
    known = sum(prod(s) for s in shapes if -1 not in s)
    out = []
    for s in shapes:
        if -1 in s:
            rest = -prod(s)
            if rest == 0 or n < known or (n - known) % rest:
                raise Fault(f"the axis at '*' has length {n}; {shapes} leaves {n - known} for {s}", star)
            s = tuple((n - known) // rest if k == -1 else k for k in s)
        out.append(s)
    if sum(map(prod, out)) != n:
        raise Fault(f"the axis at '*' has length {n}, but {out} have {sum(map(prod, out))} entries", star)
    return out


def spans_of_star(pattern: str) -> tuple[int, int]:
    """The place of the ``*``."""
    k = pattern.index("*")
    return k, k + 1


# ---- parse_shape ----

def parse_shape(x, pattern: str) -> dict[str, int]:
    """The lengths of the named axes of x, in order; ``_`` and ``...`` skip axes.

    A number in the pattern must be the length of its axis.  Raises PatternError when the pattern
    does not fit, or has groups.

    >>> parse_shape(tl.tensor([[1.0, 2.0, 3.0]]), "_ column")
    {'column': 3}
    """
    shape = operand(x).shape
    try:
        return _named_lengths(pattern, shape)
    except Fault as fault:
        raise pattern_error("parse_shape", pattern, fault, [("x", shape)]) from None


def _named_lengths(pattern, shape):
    entries, names = parse_side(tokens(pattern), lone_underscore=True)
    if any(g is not ELLIPSIS and (len(g) > 1 or ELLIPSIS in g) for g in entries):
        raise Fault("parse_shape takes single axes, not groups", (pattern.index("("), pattern.index("(") + 1))
    n = len(shape) - len(entries)
    if ELLIPSIS in names:
        k = entries.index(ELLIPSIS)
        entries = (*entries[:k], *[("_",)] * (n + 1), *entries[k + 1:]) if n >= -1 else ()
    if len(entries) != len(shape):
        raise Fault(f"the pattern has {len(entries) or len(shape) - n - 1} axes, x has {len(shape)}: {shape}",
                    (0, len(pattern)))
    out = {}
    for axis, (entry, n) in enumerate(zip(entries, shape)):
        name = entry[0] if entry else 1
        if type(name) is int:
            if name != n:
                raise Fault(f"axis {axis} has length {n}, but the pattern says {name}",
                            next(iter(spans(pattern, name)), side_span(pattern, True)))
        elif name != "_":
            out[name] = n
    return out
