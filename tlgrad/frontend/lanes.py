"""The meaning of a scalar jaxpr on many entries at once, entry by entry in words and laziness.

A value is one array for all lanes, or one entry per lane in front.  A branch is evaluated on the
lanes that take it, a loop on the lanes that go on: those are picked out (compaction), so that
what a lane does not reach can neither raise nor run forever.  An operation that fails in some
lanes is noted for them; the lowest lane is reported at the end.
"""
from __future__ import annotations

from typing import Sequence

import numpy as np

from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, last_uses
from tlgrad.core.tensor import Tensor
from tlgrad.errors import TlgradError, ZeroDivision
from tlgrad.frontend.read import out_of_bounds
from tlgrad.ops.layout import moveaxis

_DIVISIONS = ("floor_divide", "remainder")


class Faults:
    """The first failure of each lane."""

    def __init__(self):
        self.first: dict[int, Exception] = {}

    def note(self, lanes, error: Exception):
        """`error` happened in these lanes, unless something did before."""
        for lane in lanes:
            self.first.setdefault(int(lane), error)


class Lanes:
    """A set of lanes being evaluated: their numbers, and where failures go."""

    __slots__ = ("numbers", "n", "faults")

    def __init__(self, numbers: np.ndarray, faults: Faults):
        self.numbers, self.n, self.faults = numbers, len(numbers), faults

    def picked(self, places) -> "Lanes":
        """Some of the lanes."""
        return Lanes(self.numbers[places], self.faults)

    def fail(self, mask, error):
        """Note a failure for the lanes of a mask."""
        self.faults.note(self.numbers[mask], error)

    def healthy(self) -> np.ndarray | None:
        """Mask of lanes that have not failed; None when none of all has."""
        if not self.faults.first:
            return None
        return ~np.isin(self.numbers, np.fromiter(self.faults.first, np.int64))


def evaluate(jaxpr: Jaxpr, values: Sequence, varies: Sequence[bool], lanes: Lanes) -> tuple[list, list[bool]]:
    """Results, and which of them have one entry per lane.  Run it under EVAL, warnings off."""
    env = dict(zip(jaxpr.in_binders, zip(values, varies), strict=True))
    last = last_uses(jaxpr)

    def read(atom):
        return (atom.value.data, False) if type(atom) is Literal else env[atom]
    for eqn, dead in zip(jaxpr.eqns, last):
        ins = [read(a) for a in eqn.ins]
        outs = step(eqn, [v for v, _ in ins], [f for _, f in ins], lanes)
        env.update(zip(eqn.outs, outs))
        for var in dead:
            env.pop(var, None)
    found = [read(a) for a in jaxpr.outs]
    return [v for v, _ in found], [f for _, f in found]


def step(eqn: Eqn, values, varies, lanes) -> list[tuple]:
    """One equation: (value, varies) for each result."""
    prim = eqn.prim
    special = _SPECIAL.get(prim.name)
    if special is not None and (special is not _read or any(varies[1:])):
        outs = special(eqn, values, varies, lanes)
        if outs is not None:
            return outs
    if not any(varies):
        return _uniform(eqn, values, lanes)
    if prim.kind == "elementwise" and not any(a.aval.shape for a in eqn.ins):
        if prim.name in _DIVISIONS and eqn.outs[0].aval.dtype.kind in "iu":
            values = _safe_divisor(prim.name, values, varies, lanes)
        return [(prim.impl(*values, **eqn.params), True)]
    return _batched(eqn, values, varies, lanes)


def _uniform(eqn, values, lanes):
    """Operands that all lanes share; a failure is that of every lane here."""
    try:
        out = eqn.prim.impl(*values, **eqn.params)
    except TlgradError as error:
        lanes.fail(slice(None), error)
        out = [np.zeros(v.aval.shape, v.aval.dtype.storage) for v in eqn.outs]
        return [(y, False) for y in out]
    return [(y, False) for y in (out if eqn.prim.multiple else [out])]


def _batched(eqn, values, varies, lanes):
    """Any other primitive, through its batching rule."""
    args = [Tensor.own(v) for v in values]
    axes = [0 if f else None for f in varies]
    out, axis = eqn.prim.batch(args, axes, lanes.n, **eqn.params)
    pairs = zip(out, axis) if eqn.prim.multiple else [(out, axis)]
    return [(y.data if k is None else moveaxis(y, k, 0).data, k is not None) for y, k in pairs]


def spread(value, varies: bool, n: int) -> np.ndarray:
    """One entry per lane."""
    return value if varies else np.broadcast_to(value, (n, *np.shape(value)))


def pick(value, varies: bool, places):
    """The entries of some lanes."""
    return value[places] if varies else value


def _safe_divisor(name, values, varies, lanes):
    x, y = values
    bad = np.broadcast_to(y == 0, (lanes.n,))
    if not bad.any():
        return values
    lanes.fail(bad, ZeroDivision(f"{name}: integer division by zero"))
    return [x, np.where(y == 0, y.dtype.type(1), y)]


# ---- reads of arrays ----

def _read(eqn, values, varies, lanes):
    table, *indices = values
    shape = eqn.ins[0].aval.shape
    indices = [spread(k, f, lanes.n) for k, f in zip(indices, varies[1:])]
    bad = np.zeros(lanes.n, bool)
    for k, size in zip(indices, shape):
        bad |= (k < 0) | (k >= size)
    if bad.any():
        for lane in np.flatnonzero(bad):
            error = out_of_bounds([k[lane] for k in indices], shape, eqn.params["operand"])
            lanes.faults.note(lanes.numbers[[lane]], error)
        indices = [np.where(bad, k.dtype.type(0), k) for k in indices]
    indices = [k.astype(np.int64) for k in indices]
    places = (np.arange(lanes.n), *indices) if varies[0] else tuple(indices)
    return [(table[places], True)]


# ---- branches ----

def _cond(eqn, values, varies, lanes):
    branches = eqn.params["branches"]
    index, operands, flags = values[0], values[1:], varies[1:]
    if not varies[0]:
        return list(zip(*evaluate(branches[int(index)], operands, flags, lanes)))
    outs = [None] * len(eqn.outs)
    for k, branch in enumerate(branches):
        places = np.flatnonzero(index == k)
        if not len(places):
            continue
        everyone = len(places) == lanes.n
        here = lanes if everyone else lanes.picked(places)
        mine = operands if everyone else [pick(v, f, places) for v, f in zip(operands, flags)]
        found, found_varies = evaluate(branch, mine, flags, here)
        if everyone:
            return list(zip(found, found_varies))
        for q, (y, f) in enumerate(zip(found, found_varies)):
            if outs[q] is None:
                outs[q] = np.zeros((lanes.n, *eqn.outs[q].aval.shape), eqn.outs[q].aval.dtype.storage)
            outs[q][places] = y
    return [(y, True) for y in outs]


# ---- loops ----

class Going:
    """The lanes that still run a loop, with their carried values; the others' results."""

    def __init__(self, eqn, carry, varies, lanes):
        self.lanes, self.all = lanes, lanes.n
        self.avals = [v.aval for v in eqn.outs]
        self.carry, self.varies = list(carry), list(varies)
        self.places = np.arange(lanes.n)
        self.done: list | None = None
        self.consts: list = []
        self.const_varies: list = []

    def shared(self, consts, varies):
        """Values that the body reads and does not change."""
        self.consts, self.const_varies = list(consts), list(varies)

    def keep(self, mask):
        """Go on with the lanes of `mask`; the others are done."""
        if mask.all():
            return
        stop, go = np.flatnonzero(~mask), np.flatnonzero(mask)
        if self.done is None:
            self.done = [np.zeros((self.all, *a.shape), a.dtype.storage) for a in self.avals]
        for out, v, f in zip(self.done, self.carry, self.varies):
            out[self.places[stop]] = pick(v, f, stop)
        self.carry = [pick(v, f, go) for v, f in zip(self.carry, self.varies)]
        self.consts = [pick(v, f, go) for v, f in zip(self.consts, self.const_varies)]
        self.places, self.lanes = self.places[go], self.lanes.picked(go)

    def turn(self, body, *lead):
        """One turn of the body, (lead..., consts..., carry...)."""
        values = [*lead, *self.consts, *self.carry]
        flags = [*[False] * len(lead), *self.const_varies, *self.varies]
        self.carry, self.varies = evaluate(body, values, flags, self.lanes)

    def drop_failed(self):
        """Lanes that have failed run no further."""
        healthy = self.lanes.healthy()
        if healthy is not None:
            self.keep(healthy)

    def results(self):
        """(value, varies) of every carried value."""
        if self.done is None:
            return list(zip(self.carry, self.varies))
        for out, v in zip(self.done, self.carry):
            out[self.places] = v
        return [(out, True) for out in self.done]


def _while(eqn, values, varies, lanes):
    params = eqn.params
    n = params["n_consts"]
    if params["counted"]:
        return _batched(eqn, values, varies, lanes) if any(varies) else None
    going = Going(eqn, values[n:], varies[n:], lanes)
    going.shared(values[:n], varies[:n])
    while going.lanes.n:
        flags = [*going.const_varies, *going.varies]
        (go,), (by_lane,) = evaluate(params["cond"], [*going.consts, *going.carry], flags, going.lanes)
        if by_lane:
            going.keep(go)
        elif not go:
            break
        going.drop_failed()
        if going.lanes.n:
            going.turn(params["body"])
    return going.results()


def _sweeps(eqn, values, varies, lanes):
    params = eqn.params
    if not is_plain_fold(params):
        return _batched(eqn, values, varies, lanes) if any(varies) else None
    m = params["n_consts"] + 1
    counts, by_lane = values[0], varies[0]
    going = Going(eqn, values[m:], varies[m:], lanes)
    going.shared(values[1:m], varies[1:m])
    body, number = params["bodies"][0], eqn.ins[0].aval.dtype.storage.type
    for i in range(int(np.max(counts)) if lanes.n else 0):
        if by_lane:
            going.keep(counts[going.places] > i)
        going.drop_failed()
        if not going.lanes.n:
            break
        going.turn(body, number(i))
    return going.results()


def is_plain_fold(params) -> bool:
    """One forward sweep, all of whose carries are results."""
    return len(params["bodies"]) == 1 and not params["n_xs"] and not params["reverse"][0] \
        and all(params["results"]) and len(params["results"]) == params["carries"][0]


def _call(eqn, values, varies, lanes):
    return list(zip(*evaluate(eqn.params["jaxpr"], values, varies, lanes)))


_SPECIAL = {"read": _read, "cond": _cond, "while": _while, "sweeps": _sweeps, "call": _call}

__all__ = ["Faults", "Lanes", "evaluate", "spread"]
