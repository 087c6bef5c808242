"""The jaxpr: a typed program of primitive equations.

    Jaxpr  := in_binders ; eqns ; outs
    Eqn    := out_binders = prim[params] inputs
    atom   := Var | Literal

A jaxpr is closed over nothing: values captured while tracing become extra inputs, listed
first; `ClosedJaxpr` keeps them beside the program.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from tlgrad.core.aval import Aval
from tlgrad.core.primitive import Primitive
from tlgrad.core.source import Source
from tlgrad.core.tensor import Tensor, as_value
from tlgrad.errors import JaxprTypeError, TlgradError


class Var:
    """A typed name, bound once.  `name` is a hint (the user's variable), "" when there is none."""

    __slots__ = ("aval", "name")

    def __init__(self, aval: Aval, name: str = ""):
        self.aval, self.name = aval, name

    def __repr__(self):
        return f"Var({self.name or hex(id(self))[-4:]}:{self.aval})"


class Literal:
    """A constant of shape () written in the program, kept as a tensor: typed, exact words."""

    __slots__ = ("value", "aval")

    def __init__(self, value: Tensor):
        self.value, self.aval = value, value.aval

    def __repr__(self):
        return f"Literal({self.value}:{self.aval})"


class Eqn:
    """One equation: ``outs = prim[params] ins``; `source` is the user's line."""

    __slots__ = ("prim", "ins", "params", "outs", "source")

    def __init__(self, prim: Primitive, ins, params: dict, outs, source: Source | None = None):
        self.prim, self.ins, self.params, self.outs, self.source = prim, ins, params, outs, source

    def __repr__(self):
        return f"{self.outs} = {self.prim}{self.params} {self.ins}"


class Jaxpr:
    """A program.  Immutable; hashed by identity, so it can be a static parameter of a primitive."""

    __slots__ = ("in_binders", "eqns", "outs", "__weakref__", "memo")

    def __init__(self, in_binders: Sequence[Var], eqns: Sequence[Eqn], outs: Sequence):
        self.in_binders, self.eqns, self.outs = tuple(in_binders), tuple(eqns), tuple(outs)
        #: results of pure functions of this jaxpr (its jvp, its batched form), kept with it
        self.memo: dict = {}

    @property
    def in_avals(self) -> list[Aval]:
        """Avals of the inputs."""
        return [v.aval for v in self.in_binders]

    @property
    def out_avals(self) -> list[Aval]:
        """Avals of the results."""
        return [v.aval for v in self.outs]

    def __repr__(self):
        return self.text()

    #: set by `core.pretty`, which imports this module
    text: Callable[["Jaxpr"], str]


class ClosedJaxpr:
    """A jaxpr and the captured values of its first `len(consts)` inputs."""

    __slots__ = ("jaxpr", "consts")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]):
        self.jaxpr, self.consts = jaxpr, list(consts)

    @property
    def in_avals(self) -> list[Aval]:
        """Avals of the inputs, without the captured ones."""
        return self.jaxpr.in_avals[len(self.consts):]

    @property
    def out_avals(self) -> list[Aval]:
        """Avals of the results."""
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> tuple[Eqn, ...]:
        """The equations."""
        return self.jaxpr.eqns

    def __call__(self, *args):
        """Apply to values, under the current trace."""
        return eval_jaxpr(self.jaxpr, [*self.consts, *[as_value(x) for x in args]])

    def __repr__(self):
        return self.jaxpr.text(n_consts=len(self.consts))


# ---- evaluation ----

def eval_jaxpr(jaxpr: Jaxpr, args: Sequence) -> list:
    """Bind every equation under the current trace.   Jaxpr, [Value] -> [Value]"""
    env: dict[Var, Any] = dict(zip(jaxpr.in_binders, args, strict=True))

    def read(atom):
        return atom.value if type(atom) is Literal else env[atom]

    for eqn in jaxpr.eqns:
        out = eqn.prim.bind(*map(read, eqn.ins), **eqn.params)
        if eqn.prim.multiple:
            env.update(zip(eqn.outs, out, strict=True))
        else:
            env[eqn.outs[0]] = out
    return [read(atom) for atom in jaxpr.outs]


def evaluate_arrays(jaxpr: Jaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The meaning of a jaxpr on NumPy storage: every equation's `impl`, in order.

    Arrays that no later equation reads are let go at once.
    """
    env: dict[Var, np.ndarray] = dict(zip(jaxpr.in_binders, arrays, strict=True))
    last = last_uses(jaxpr)
    for k, eqn in enumerate(jaxpr.eqns):
        ins = [a.value.data if type(a) is Literal else env[a] for a in eqn.ins]
        try:
            out = eqn.prim.impl(*ins, **eqn.params)
        except TlgradError as error:
            raise located(error, eqn.source)
        del ins
        if eqn.prim.multiple:
            env.update(zip(eqn.outs, out, strict=True))
        else:
            env[eqn.outs[0]] = out
        for var in last[k]:
            env.pop(var, None)
    return [a.value.data if type(a) is Literal else env[a] for a in jaxpr.outs]


def located(error: TlgradError, source: Source | None) -> TlgradError:
    """The error with the user's line in its message; an inner program has said it already."""
    if error.source is None and source is not None and len(error.args) == 1:
        error.source, error.args = source, (f"{error} [{source}]",)
    return error


def last_uses(jaxpr: Jaxpr) -> list[list[Var]]:
    """For each equation, the variables that nothing after it reads."""
    if "last_uses" not in jaxpr.memo:
        seen = {a for a in jaxpr.outs if type(a) is Var}
        last: list[list[Var]] = []
        for eqn in reversed(jaxpr.eqns):
            mentioned = [a for a in (*eqn.ins, *eqn.outs) if type(a) is Var and a not in seen]
            last.append(list(dict.fromkeys(mentioned)))
            seen.update(mentioned)
        jaxpr.memo["last_uses"] = last[::-1]
    return jaxpr.memo["last_uses"]


# ---- type checking ----

def check_jaxpr(jaxpr: Jaxpr, made_by: str = "a transform") -> Jaxpr:
    """Check scopes and avals of every equation against its abstract rule; returns `jaxpr`.

    Raises JaxprTypeError naming `made_by` (a transform or pass) and the equation.
    """
    bound: set[Var] = set()

    def fail(sentence):
        raise JaxprTypeError(f"{made_by} produced an ill-typed jaxpr: {sentence}\n{jaxpr.text()}")

    def bind_var(var):
        if var in bound:
            fail(f"{var} is bound twice")
        bound.add(var)

    def check_atom(atom, where):
        if type(atom) is Var:
            if atom not in bound:
                fail(f"{atom} is used in {where} before it is bound")
        elif type(atom) is not Literal or atom.aval.shape != ():
            fail(f"{atom!r} in {where} is not an atom")

    for var in jaxpr.in_binders:
        bind_var(var)
    for eqn in jaxpr.eqns:
        for atom in eqn.ins:
            if atom not in bound:
                check_atom(atom, eqn.prim.name)
        expected = eqn.prim.avals_out([a.aval for a in eqn.ins], eqn.params)
        expected = list(expected) if eqn.prim.multiple else [expected]
        found = [v.aval for v in eqn.outs]
        if expected != found and [e.strong() for e in expected] != [f.strong() for f in found]:
            fail(f"{eqn.prim} has results {found}, its rule says {expected}")
        for var in eqn.outs:
            bind_var(var)
    for atom in jaxpr.outs:
        check_atom(atom, "the results")
    return jaxpr


# ---- small rewrites shared by transforms ----

def inline_eqns(jaxpr: Jaxpr, atoms_in: Sequence) -> tuple[list[Eqn], list]:
    """The equations of `jaxpr` with fresh variables and the given inputs, and its result atoms."""
    env: dict[Var, Any] = dict(zip(jaxpr.in_binders, atoms_in, strict=True))

    def read(atom):
        return atom if type(atom) is Literal else env[atom]
    eqns = []
    for eqn in jaxpr.eqns:
        outs = [Var(v.aval, v.name) for v in eqn.outs]
        eqns.append(Eqn(eqn.prim, [read(a) for a in eqn.ins], eqn.params, outs, eqn.source))
        env.update(zip(eqn.outs, outs))
    return eqns, [read(a) for a in jaxpr.outs]


def dce(jaxpr: Jaxpr, used_outs: Sequence[bool]) -> tuple[Jaxpr, list[bool]]:
    """Keep only what the used results need.  Also tells which inputs are still read."""
    outs = [a for a, used in zip(jaxpr.outs, used_outs, strict=True) if used]
    live = {a for a in outs if type(a) is Var}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if any(v in live for v in eqn.outs):
            eqns.append(eqn)
            live.update(a for a in eqn.ins if type(a) is Var)
    used_ins = [v in live for v in jaxpr.in_binders]
    binders = [v for v, used in zip(jaxpr.in_binders, used_ins) if used]
    return Jaxpr(binders, eqns[::-1], outs), used_ins


def sub_jaxprs(params: dict) -> list[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    found = []
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Jaxpr):
                found.append(item)
    return found


def count_eqns(jaxpr: Jaxpr) -> int:
    """Number of equations, those of nested jaxprs included."""
    return sum(1 + sum(map(count_eqns, sub_jaxprs(eqn.params))) for eqn in jaxpr.eqns)
