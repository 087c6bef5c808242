"""A jaxpr as one straight-line Python function on NumPy arrays.

A loop body runs many times, so what `evaluate_arrays` looks up at each equation is looked up
once: the function that evaluates it, its parameters, its literals.
"""
from __future__ import annotations

from functools import partial
from typing import Callable

from tlgrad.core.jaxpr import Jaxpr, Literal, last_uses
from tlgrad.ops import meaning
from tlgrad.ops.define import Elementwise


def plan_of(jaxpr: Jaxpr) -> Callable:
    """A function of arrays that gives the list of results; the words are those of `evaluate_arrays`.

    Elementwise equations of hardware dtypes skip the dispatch by format.  Call it where
    floating-point warnings are off (``np.errstate(all="ignore")``).
    """
    if "plan" not in jaxpr.memo:
        jaxpr.memo["plan"] = _compile(jaxpr)
    return jaxpr.memo["plan"]


def _evaluator(eqn) -> Callable:
    """What evaluates one equation, its parameters filled in."""
    f = eqn.prim.impl
    if isinstance(eqn.prim, Elementwise) and not any(a.aval.dtype.software for a in (*eqn.ins, *eqn.outs)):
        f = meaning.INTRINSICS.get(eqn.prim.name, f)
    return partial(f, **eqn.params) if eqn.params else f


def _compile(jaxpr: Jaxpr) -> Callable:
    names: dict = {}
    scope: dict = {}

    def name(atom):
        if type(atom) is Literal:
            key = f"k{len(scope)}"
            scope[key] = atom.value.data
            return key
        return names.setdefault(atom, f"v{len(names)}")

    lines = [f"def plan({', '.join(name(v) for v in jaxpr.in_binders)}):"]
    for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr)):
        key = f"f{len(scope)}"
        scope[key] = _evaluator(eqn)
        targets = ", ".join(name(v) for v in eqn.outs)
        if eqn.prim.multiple:
            targets = f"[{targets}]"
        lines.append(f"    {targets} = {key}({', '.join(name(a) for a in eqn.ins)})")
        large = [name(v) for v in dead if v.aval.shape]
        if large:
            lines.append(f"    del {', '.join(large)}")
    lines.append(f"    return [{', '.join(name(a) for a in jaxpr.outs)}]")
    exec("\n".join(lines), scope)
    return scope["plan"]
