"""Transposition of linear programs: the backward pass.

    transpose : (T a -o T b) -> (T b -o T a)

A cotangent may carry a mask of the entries that a select kept.  What the select discarded
contributes exactly zero, also where the discarded side is infinite or NaN: cotangents are cut
again by the mask after every elementwise step.
"""
from __future__ import annotations

import functools
from typing import Any, Sequence

from tlgrad.core.aval import Zero
from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, Var, sub_jaxprs
from tlgrad.core.primitive import Linear
from tlgrad.core.trace import Value
from tlgrad.errors import DifferentiationError, JaxprTypeError
from tlgrad.ops.define import add_tangents, instantiate
from tlgrad.ops.layout import zeros
from tlgrad.ops.logic import and_, convert_like, gt, not_, or_, select
from tlgrad.ops.reduce import reduce_any
from tlgrad.transforms.stage import stage_closed

_SELECT = select.name


#: operands of which one at least must be a known value for the primitive to be linear
_FIXED_OPERANDS = {"mul": (0, 1), "dot_general": (0, 1), "div": (1,)}


def _check_linear(prim, args, eqn):
    fixed = _FIXED_OPERANDS.get(prim.name)
    if fixed and all(type(args[k]) is Linear for k in fixed):
        raise DifferentiationError(f"{prim} is not linear here: it multiplies or divides by a value that "
                                   f"depends on the argument ({eqn.source}); use tl.vjp, which linearizes first")


class Cotangent:
    """An accumulated cotangent: `value`, and the mask of entries that may be nonzero (or None)."""

    __slots__ = ("value", "mask")

    def __init__(self, value: Value, mask: Value | None):
        self.value, self.mask = value, mask

    def plus(self, other: "Cotangent") -> "Cotangent":
        mask = None if self.mask is None or other.mask is None else or_(self.mask, other.mask)
        return Cotangent(add_tangents(self.value, other.value), mask)


class BackwardPass:
    """Runs the equations of a linear jaxpr from last to first."""

    def __init__(self, jaxpr: Jaxpr, args: Sequence):
        """`args`: values of the known inputs, `Linear(aval)` for the linear ones."""
        self.jaxpr = jaxpr
        self.known: dict[Var, Any] = {v: x for v, x in zip(jaxpr.in_binders, args, strict=True)
                                      if type(x) is not Linear}
        self.linear = {v for v, x in zip(jaxpr.in_binders, args) if type(x) is Linear}
        self.cts: dict[Var, Cotangent] = {}
        self.tape = self._forward()

    def _forward(self) -> list:
        """Evaluate equations of known values; keep the linear ones."""
        tape = []
        for eqn in self.jaxpr.eqns:
            if any(type(a) is Var and a in self.linear for a in eqn.ins):
                self.linear.update(eqn.outs)
                tape.append(eqn)
                continue
            outs = eqn.prim.bind(*[self.read(a) for a in eqn.ins], **eqn.params)
            self.known.update(zip(eqn.outs, outs if eqn.prim.multiple else [outs]))
        return tape

    def read(self, atom):
        if type(atom) is Literal:
            return atom.value
        return Linear(atom.aval) if atom in self.linear else self.known[atom]

    def accumulate(self, atom, ct: Cotangent):
        if type(atom) is Literal or atom not in self.linear:
            return
        if ct.value.aval.shape != atom.aval.shape:
            raise JaxprTypeError(f"a transpose rule gave a cotangent {ct.value.aval} for {atom.aval}")
        self.cts[atom] = self.cts[atom].plus(ct) if atom in self.cts else ct

    def run(self, cts_out: Sequence) -> list:
        """Cotangents of the linear inputs, in order; `Zero` where nothing arrived."""
        for atom, ct in zip(self.jaxpr.outs, cts_out, strict=True):
            if type(ct) is not Zero:
                self.accumulate(atom, Cotangent(ct, None))
        while self.tape:
            self.step(self.tape.pop())
        return [self.cts[v].value if v in self.cts else Zero(v.aval)
                for v in self.jaxpr.in_binders if v in self.linear]

    def step(self, eqn):
        cts = [self.cts.pop(v, None) for v in eqn.outs]
        if all(ct is None for ct in cts):
            return
        prim, args = eqn.prim, [self.read(a) for a in eqn.ins]
        if prim.transpose is None:
            raise DifferentiationError(f"{prim} is not linear, so it has no transpose: it cannot be "
                                       f"differentiated in reverse ({prim.nondiff or eqn.source})")
        _check_linear(prim, args, eqn)
        if prim.multiple:
            given = [Zero(v.aval) if ct is None else ct.value for v, ct in zip(eqn.outs, cts)]
            before = [self.take(a) if prim.onto else None for a in eqn.ins]
            onto = {"onto": before} if prim.onto else {}
            cts_in = prim.transpose(given, *args, **onto, **eqn.params)
            masks = [ct.mask for ct in cts if ct is not None]
            self.deliver(eqn, kept(cts_in, before, masks, entrywise_eqn(eqn)), None)
            return
        (ct,) = cts
        cts_in = prim.transpose(ct.value, *args, **eqn.params)
        if prim.name == _SELECT:
            self.deliver_select(eqn, cts_in, args[0], ct.mask)
        elif ct.mask is None:
            self.deliver(eqn, cts_in, None)
        elif prim.kind == "elementwise":
            self.deliver(eqn, [cut(c, ct.mask) for c in cts_in], ct.mask)
        elif prim.kind == "structural":
            moved = prim.transpose(convert_like(ct.mask, ct.value), *args, **eqn.params)
            masks = [None if m is None or type(m) is Zero else nonzero(m) for m in moved]
            self.deliver(eqn, cts_in, masks)
        else:
            self.deliver(eqn, cts_in, None)

    def take(self, atom):
        """What has arrived for a linear variable, taken out; None when nothing has."""
        found = self.cts.pop(atom, None) if type(atom) is Var else None
        return None if found is None else found.value

    def deliver(self, eqn, cts_in, masks):
        if not isinstance(masks, list):
            masks = [masks] * len(eqn.ins)
        for atom, ct, mask in zip(eqn.ins, cts_in, masks, strict=True):
            if ct is not None and type(ct) is not Zero:
                same = mask is not None and mask.shape == ct.shape
                self.accumulate(atom, Cotangent(ct, mask if same else None))

    def deliver_select(self, eqn, cts_in, which, mask):
        """The two sides of a select get the entries that chose them."""
        sides = [None, which, not_(which)]
        masks: list = [side if side is None or mask is None else _meet(side, mask) for side in sides]
        self.deliver(eqn, cts_in, masks)


def _meet(side, mask):
    return and_(side, mask) if side.shape in ((), mask.shape) else mask


def cut(ct, mask):
    """`ct` with exact zeros where `mask` does not hold (untouched when the shapes differ)."""
    if ct is None or type(ct) is Zero or ct.shape != mask.shape:
        return ct
    return select.bind(mask, ct, zeros(ct.aval))


def kept(cts_in, before, masks, by_entry: bool):
    """Cotangents of an operation with several results: exact zeros (what came before) where selects
    have discarded the results: all of them, or the same entries of an operation by entry."""
    if any(mask is None for mask in masks):
        return cts_in
    some = [reduce_any.bind(mask, axes=tuple(range(mask.ndim))) if mask.ndim else mask for mask in masks]
    alive = functools.reduce(or_, some)
    same = by_entry and len({mask.shape for mask in masks}) == 1
    entries = functools.reduce(or_, masks) if same else alive

    def one(ct, old):
        if ct is None or type(ct) is Zero:
            return ct
        which = entries if ct.shape == entries.shape else alive
        return select.bind(which, ct, zeros(ct.aval) if old is None else old)
    return [one(ct, old) for ct, old in zip(cts_in, before)]


def entrywise(jaxpr: Jaxpr) -> bool:
    """True when entry i of every result depends on entry i of the inputs, and on numbers, only."""
    if "entrywise" not in jaxpr.memo:
        avals = [*jaxpr.in_avals, *[v.aval for eqn in jaxpr.eqns for v in eqn.outs]]
        jaxpr.memo["entrywise"] = len({a.shape for a in avals} - {()}) < 2 and all(map(entrywise_eqn, jaxpr.eqns))
    return jaxpr.memo["entrywise"]


def entrywise_eqn(eqn: Eqn) -> bool:
    """The same of one equation."""
    inner = sub_jaxprs(eqn.params)
    if inner:
        return all(map(entrywise, inner)) and not eqn.params.get("n_xs")
    return eqn.prim.kind == "elementwise" or not any(a.aval.shape for a in eqn.ins)


def nonzero(mask_as_number):
    """A transposed mask back as bool."""
    return gt(mask_as_number, 0) if mask_as_number.dtype.kind != "c" else gt(mask_as_number.real, 0)


def backward(jaxpr: Jaxpr, args: Sequence, cts: Sequence) -> list:
    """Cotangents of the linear inputs of a jaxpr.

    args: a value for each known input, `Linear(aval)` for each linear one.
    cts:  a value or `Zero` for each result.
    """
    return BackwardPass(jaxpr, args).run(cts)


def onto_jaxpr(jaxpr: Jaxpr, flags: Sequence[bool]) -> Jaxpr:
    """`jaxpr` with the flagged inputs as first results: its transpose adds up onto their cotangents."""
    flags = tuple(flags)
    if not any(flags):
        return jaxpr
    key = ("onto", flags)
    if key not in jaxpr.memo:
        first = [v for v, flag in zip(jaxpr.in_binders, flags, strict=True) if flag]
        jaxpr.memo[key] = Jaxpr(jaxpr.in_binders, jaxpr.eqns, [*first, *jaxpr.outs])
    return jaxpr.memo[key]


def transpose_jaxpr(jaxpr: Jaxpr, linear: Sequence[bool]) -> Jaxpr:
    """(known inputs..., cotangents of the results...) -> (cotangents of the linear inputs...)."""
    linear = tuple(linear)
    key = ("transpose", linear)
    if key not in jaxpr.memo:
        n_known = linear.count(False)

        def f(*values):
            known = iter(values[:n_known])
            args = [Linear(a) if lin else next(known) for a, lin in zip(jaxpr.in_avals, linear)]
            return [instantiate(ct) for ct in backward(jaxpr, args, values[n_known:])]

        avals = [*[a for a, lin in zip(jaxpr.in_avals, linear) if not lin],
                 *jaxpr.out_avals]
        jaxpr.memo[key] = stage_closed(f, avals, "a transpose rule")
    return jaxpr.memo[key]
