"""Staging of the functions that control flow takes: callables on pytrees -> jaxprs on lists.

    stage_tree : f, [pytree of avals] -> Staged(jaxpr, captured values, tree of the result)

Captured values become operands of the control-flow primitive, so a jaxpr holds no array.
"""
from __future__ import annotations

import inspect
from collections import OrderedDict
from typing import Any, Callable, NamedTuple, Sequence

from tlgrad.core import tree
from tlgrad.core.aval import Aval
from tlgrad.core.jaxpr import Eqn, Jaxpr, Var
from tlgrad.core.source import describe_callable
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Tracer, Value, current_trace
from tlgrad.errors import OutputError
from tlgrad.transforms.stage import Constant, StageTrace, constant, stage


class Staged(NamedTuple):
    """A function written down: captured values are the first inputs of `jaxpr`."""
    jaxpr: Jaxpr
    captured: list[Value]
    out_tree: tree.TreeDef


def flatten_values(x: Any, what: str) -> tuple[list[Value], tree.TreeDef]:
    """Leaves of a pytree as values, and its structure."""
    leaves, treedef = tree.flatten(x)
    return [as_value(leaf, what) for leaf in leaves], treedef


def result_leaves(out: Any, f: Callable) -> tuple[list[Value], tree.TreeDef]:
    """Leaves of what `f` returned; OutputError names `f` when one is not a number or tensor."""
    leaves, treedef = tree.flatten(out)
    try:
        return [as_value(y, "a result", OutputError) for y in leaves], treedef
    except OutputError as error:
        raise OutputError(f"{describe_callable(f)} returned something that is not a tensor: {error}") from None


def stage_tree(f: Callable, in_trees: Sequence[tree.TreeDef], avals: Sequence[Aval]) -> Staged:
    """Trace ``f(*args)`` whose arguments have structures `in_trees` and leaves of `avals`."""
    found = []

    def flat(*values):
        args, start = [], 0
        for treedef in in_trees:
            args.append(tree.unflatten(treedef, values[start:start + treedef.n_leaves]))
            start += treedef.n_leaves
        leaves, treedef = result_leaves(f(*args), f)
        found[:] = [treedef]
        return leaves

    jaxpr, captured = stage(flat, avals)
    return Staged(jaxpr, captured, found[0])


def remembered(jaxpr: Jaxpr, key: tuple, make: Callable) -> Any:
    """``make()``, a pure function of `jaxpr` and `key`, worked out once and kept with the jaxpr."""
    if key not in jaxpr.memo:
        jaxpr.memo[key] = make()
    return jaxpr.memo[key]


def reorder(jaxpr: Jaxpr, binders: Sequence[int | Aval], outs: Sequence[int] | None = None) -> Jaxpr:
    """`jaxpr` with its inputs in another order; an aval in place of a number is an unused input."""
    binders, outs = tuple(binders), None if outs is None else tuple(outs)

    def make():
        named = [jaxpr.in_binders[b] if isinstance(b, int) else Var(b) for b in binders]
        return Jaxpr(named, jaxpr.eqns, jaxpr.outs if outs is None else [jaxpr.outs[k] for k in outs])
    return remembered(jaxpr, ("reorder", binders, outs), make)


#: jaxprs of bodies by what they say; equal ones are one object, and share what is kept with it
_interned: OrderedDict[tuple, Jaxpr] = OrderedDict()
MAX_INTERNED = 512


def interned(jaxpr: Jaxpr) -> Jaxpr:
    """The first jaxpr met with these equations, words of literals, names and source lines.

    A body is written down anew in each call, so that what it captures is current; its derivatives
    and compiled forms, kept with the jaxpr, need not be worked out anew.
    """
    key = _content(jaxpr)
    found = _interned.setdefault(key, jaxpr)
    try:
        _interned.move_to_end(key)
    except KeyError:                               # another thread has dropped it
        pass
    if len(_interned) > MAX_INTERNED:
        _interned.popitem(last=False)
    return found


def _content(jaxpr: Jaxpr) -> tuple:
    number: dict[Var, int] = {}

    def bind(v):
        number[v] = len(number)
        return v.aval, v.name

    def atom(a):
        return number[a] if type(a) is Var else (a.aval, a.value.data.tobytes())
    rows: list = [tuple(map(bind, jaxpr.in_binders))]
    for eqn in jaxpr.eqns:
        place = (id(eqn.source.code), eqn.source.offset) if eqn.source else None
        rows.append((eqn.prim.name, tuple(map(atom, eqn.ins)), tuple(eqn.params.items()),
                     tuple(map(bind, eqn.outs)), place))
    return (*rows, tuple(map(atom, jaxpr.outs)))


def join_captured(staged: Sequence[Staged],
                  values: Sequence[Value] | None = None) -> tuple[list[Value], list[Jaxpr]]:
    """The captured values of several functions, each once, as first inputs of every jaxpr.

    `values` gives their order where it is fixed already.
    """
    if values is None:
        values = list({id(x): x for s in staged for x in s.captured}.values())
    place = {id(x): k for k, x in enumerate(values)}
    jaxprs = []
    for s in staged:
        binders: list = [x.aval for x in values]
        for k, x in enumerate(s.captured):
            binders[place[id(x)]] = k
        n = len(s.captured)
        jaxprs.append(interned(reorder(s.jaxpr, [*binders, *range(n, len(s.jaxpr.in_binders))])))
    return list(values), jaxprs


def stage_with_constants(f: Callable, avals: Sequence[Aval]) -> Staged:
    """Trace a flat function; captured tensors become `constant` equations, captured tracers inputs."""
    jaxpr, captured = stage(f, avals)
    traced = [k for k, x in enumerate(captured) if isinstance(x, Tracer)]
    eqns = [Eqn(constant, [], {"value": Constant(x)}, [v])
            for v, x in zip(jaxpr.in_binders, captured) if not isinstance(x, Tracer)]
    binders = [jaxpr.in_binders[k] for k in (*traced, *range(len(captured), len(jaxpr.in_binders)))]
    return Staged(Jaxpr(binders, [*eqns, *jaxpr.eqns], jaxpr.outs), [captured[k] for k in traced], tree.LEAF)


def staging() -> bool:
    """True when some running trace writes programs down, so that values have no numbers."""
    trace = current_trace()
    while trace is not None:
        if isinstance(trace, StageTrace):
            return True
        trace = trace.parent
    return False


def required_positional(f: Callable) -> int:
    """How many positional arguments `f` must be given (1 when its signature is not known)."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


def split_list(values: Sequence, *sizes: int) -> list[list]:
    """`values` cut into runs of the given sizes; what is left over comes last."""
    out, start = [], 0
    for n in sizes:
        out.append(list(values[start:start + n]))
        start += n
    return [*out, list(values[start:])]
