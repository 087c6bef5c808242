"""Rewrites that keep every word: inlining, constant folding, identities, common and dead equations."""
from __future__ import annotations

import numpy as np

from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, Var, inline_eqns
from tlgrad.core.tensor import Tensor, frozen
from tlgrad.transforms.stage import stage_closed


def substitute(atom, env: dict):
    """What an atom has become."""
    return env.get(atom, atom) if type(atom) is Var else atom


def renamed(eqn: Eqn, env: dict):
    """The operands of an equation by what they have become."""
    return [env.get(a, a) if type(a) is Var else a for a in eqn.ins] if env else eqn.ins


def rebuilt(jaxpr: Jaxpr, eqns: list[Eqn], env: dict) -> Jaxpr:
    """The program with other equations, its results renamed by `env`."""
    return Jaxpr(jaxpr.in_binders, eqns, [substitute(a, env) for a in jaxpr.outs])


def rewritten(jaxpr: Jaxpr, rule, names) -> Jaxpr:
    """The jaxpr with every equation of the primitives `names` replaced for which `rule` gives a function of
    its operands."""
    if not any(eqn.prim.name in names for eqn in jaxpr.eqns):
        return jaxpr
    env: dict = {}
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        ins = renamed(eqn, env)
        instead = rule(eqn) if eqn.prim.name in names else None
        if instead is None:
            eqns.append(Eqn(eqn.prim, ins, eqn.params, eqn.outs, eqn.source) if env else eqn)
            continue
        inner, outs = inline_eqns(stage_closed(instead, [a.aval for a in eqn.ins], rule.__name__), ins)
        eqns += inner
        env[eqn.outs[0]] = outs[0]
    return rebuilt(jaxpr, eqns, env) if env else jaxpr


def _is_call(eqn) -> bool:
    """A program called on the device that compiles here, or a function with rules of its own."""
    if eqn.prim.name == "custom":
        return eqn.params["jaxpr"] is not None
    return eqn.prim.name == "call" and eqn.params["device"] == "cpu"


def inline_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Equations of a called program take the place of the call."""
    if not any(map(_is_call, jaxpr.eqns)):
        return jaxpr
    env: dict = {}
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        ins = renamed(eqn, env)
        if not _is_call(eqn):
            eqns.append(Eqn(eqn.prim, ins, eqn.params, eqn.outs, eqn.source))
            continue
        inner, outs = inline_eqns(inline_calls(eqn.params["jaxpr"]), ins)
        eqns += inner
        env.update(zip(eqn.outs, outs, strict=True))
    return rebuilt(jaxpr, eqns, env)


def fold_constants(jaxpr: Jaxpr) -> Jaxpr:
    """Scalar equations of literals become literals, evaluated in their own dtype."""
    env: dict = {}
    eqns = []
    for eqn in jaxpr.eqns:
        ins = renamed(eqn, env)
        constant = (ins and type(ins[0]) is Literal and all(type(a) is Literal for a in ins)
                    and eqn.prim.kind in ("elementwise", "structural") and eqn.outs[0].aval.shape == ())
        if constant:
            value = eqn.prim.impl(*[a.value.data for a in ins], **eqn.params)
            data = frozen(np.array(value, eqn.outs[0].aval.dtype.storage))
            env[eqn.outs[0]] = Literal(Tensor(data, eqn.outs[0].aval))
        else:
            eqns.append(Eqn(eqn.prim, ins, eqn.params, eqn.outs, eqn.source) if env else eqn)
    return rebuilt(jaxpr, eqns, env) if env else jaxpr


#: they change no integer
_WHOLE = ("floor", "ceil", "trunc", "round")
#: what may give its operand unchanged
_MAYBE_IDENTITY = {"reshape", "broadcast", "convert", "transpose", "stop_gradient", "real", "conj", *_WHOLE}


def _is_identity(eqn) -> bool:
    """An equation that gives its operand unchanged: same dtype, shape and entries."""
    name, params = eqn.prim.name, eqn.params
    if name not in _MAYBE_IDENTITY or eqn.ins[0].aval.strong() != eqn.outs[0].aval.strong():
        return False
    aval = eqn.ins[0].aval
    if name in ("reshape", "broadcast", "convert"):
        return name != "broadcast" or params["axes"] == tuple(range(aval.ndim))
    if name == "transpose":
        return params["perm"] == tuple(range(aval.ndim))
    return name == "stop_gradient" or name in _WHOLE and aval.dtype.kind in "biu" or \
        name in ("real", "conj") and aval.dtype.kind != "c"


def skip_identities(jaxpr: Jaxpr) -> Jaxpr:
    """Reshapes, transposes, broadcasts, conversions and roundings that change nothing are left out."""
    env: dict = {}
    eqns = []
    for eqn in jaxpr.eqns:
        ins = renamed(eqn, env)
        if _is_identity(eqn):
            env[eqn.outs[0]] = ins[0]
        else:
            eqns.append(Eqn(eqn.prim, ins, eqn.params, eqn.outs, eqn.source) if env else eqn)
    return rebuilt(jaxpr, eqns, env) if env else jaxpr


def eliminate_common(jaxpr: Jaxpr) -> Jaxpr:
    """Of equal equations the first is kept.  Literals are equal by their words."""
    env: dict = {}
    seen: dict = {}
    eqns = []
    for eqn in jaxpr.eqns:
        ins = renamed(eqn, env)
        key = (eqn.prim, *[a if type(a) is Var else (a.aval.dtype.name, a.value.data.tobytes()) for a in ins],
               *eqn.params.items())
        first = seen.get(key)
        if first is not None:
            env.update(zip(eqn.outs, first, strict=True))
            continue
        seen[key] = eqn.outs
        eqns.append(Eqn(eqn.prim, ins, eqn.params, eqn.outs, eqn.source) if env else eqn)
    return rebuilt(jaxpr, eqns, env) if env else jaxpr


def eliminate_dead(jaxpr: Jaxpr) -> Jaxpr:
    """Equations that no result needs are left out."""
    live = set(jaxpr.outs)
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outs):
            eqns.append(eqn)
            live.update(eqn.ins)
    if len(eqns) == len(jaxpr.eqns):
        return jaxpr
    return Jaxpr(jaxpr.in_binders, eqns[::-1], jaxpr.outs)
