"""Short ways for repeated calls of a plan: a native call, or one Python function.

They take the same arguments as the long way, make the same checks by identity (the trace, the
order, the avals, what the function captured), and hand over to the long way when one fails.
"""
from __future__ import annotations

import functools
import types
from typing import Callable

from tlgrad.backends.numba_cpu import call as native
from tlgrad.core import guard as guards
from tlgrad.core.aval import make_aval
from tlgrad.core.tensor import Tensor
from tlgrad.core.trace import EVAL, current_trace
from tlgrad.core.tree import LEAF, unflatten
from tlgrad.core.writing import ASSIGNED
from tlgrad.ops import orders

#: calls in a row with one plan after which it gets a short way
REPEATS = 3
#: guards with more checks are asked as a whole
MOST_CHECKS = 12


class NativelyCalled:
    """Base of callables with a native call: (plan, what it points to), or empty."""

    __slots__ = ("native",)


@functools.cache
def native_calls(cls) -> None:
    """Give a class the native call."""
    native.give_native_call(cls, "native")


def native_call(cls, plan, avals, order: str | None) -> tuple | None:
    """What to put into the slot `native` for calls with tensors of these avals, if it can be."""
    compiled = plan.jaxpr.memo.get("cpu")
    if compiled is None or plan.out_tree is not LEAF or not plan.guard.watchable:
        return None
    direct = compiled.direct()
    if direct is None:
        return None
    native_calls(cls)
    out = plan.jaxpr.out_avals[0]
    return native.call_plan(direct, make_aval(out.shape, out.dtype, plan.weak[0]), avals,
                            orders.current_order() if order is None else None, native_checks(plan.guard),
                            plan.consts)


def native_checks(guard) -> list[tuple]:
    """The checks of a guard for a native call; asked as a whole where one is of another kind."""
    fields = native.captured_fields()
    out = [(native.FIELD, ASSIGNED, fields["entries"], None)] if guard.values else []     # none was assigned to
    places = len(out) + len(guard.checks)
    for check, place, key, saved in guard.checks:
        kept = None if saved is guards._MISSING else (saved,)
        if check is guards._cell:
            out.append((native.FIELD, place, fields["cell"], kept))
        elif check is guards._item and type(place) is dict:
            out.append((native.ITEM, place, key, kept))
        elif check is guards._attribute and type(place) is types.FunctionType and key in fields:
            out.append((native.FIELD, place, fields[key], None if saved is None else kept))
        else:
            break
    asked = len(out) < places or places > MOST_CHECKS or -1 in fields.values() or guard.values and ASSIGNED
    return [(native.ASK, guard.holds, None, (True,))] if asked else out


def fast_call(plan, avals, order: str | None) -> Callable | None:
    """The function for calls with tensors of these avals, or None when there is no short way."""
    compiled = plan.jaxpr.memo.get("cpu")
    checks = guard_text(plan.guard)
    if compiled is None or checks is None or plan.jaxpr.in_binders[len(plan.consts):] == () and avals:
        return None
    scope = {"current": current_trace, "EVAL": EVAL, "Tensor": Tensor, "order": orders.current_order,
             "unflatten": unflatten, "tree": plan.out_tree, "NotImplemented": NotImplemented}
    names = [f"a{k}" for k in range(len(avals))]
    tests = ["rest", "current() is not EVAL"]
    if order is None:
        scope["ORDER"] = orders.current_order()
        tests.append("order() is not ORDER")
    for k, aval in enumerate(avals):
        scope[f"A{k}"] = aval
        tests.append(f"type(a{k}) is not Tensor or a{k}.aval is not A{k}")
    for text, values in checks:
        tests.append(text)
        scope.update(values)
    body = _body(plan, compiled, names, scope)
    heads = ", ".join([*[f"{n}=None" for n in names], "*rest"])
    source = f"def fast({heads}):\n    if {' or '.join(tests)}:\n        return NotImplemented\n{body}"
    exec(compile(source, "<tlgrad call>", "exec"), scope)
    return scope["fast"]


def _body(plan, compiled, names, scope) -> str:
    """The lines that run the program and make its result."""
    consts = [f"c{k}" for k in range(len(plan.consts))]
    scope.update(zip(consts, plan.consts))
    operands = [*consts, *names]
    avals = [make_aval(a.shape, a.dtype, w) for a, w in zip(plan.jaxpr.out_avals, plan.weak)]
    scope["run"] = compiled.run
    scope.update({f"R{k}": a for k, a in enumerate(avals)})
    results = [f"r{k}" for k in range(len(avals))]
    made = ", ".join(f"Tensor(r{k}, R{k})" for k in range(len(avals)))
    end = made if plan.out_tree is LEAF else f"unflatten(tree, [{made}])"
    return (f"    [{', '.join(results)}] = run({', '.join(f'{x}.data' for x in operands)})\n"
            f"    return {end}\n")


def guard_text(guard) -> list[tuple[str, dict]] | None:
    """Tests that are true when something captured has changed, with the values they name."""
    if not guard.watchable or len(guard.checks) > MOST_CHECKS:
        return None
    out = [("assigned and not holds()", {"assigned": ASSIGNED, "holds": guard.holds})] if guard.values else []
    for k, (check, place, key, saved) in enumerate(guard.checks):
        values = {f"p{k}": place, f"s{k}": saved}
        if saved is guards._MISSING:
            return None
        if check is guards._cell:
            text = f"p{k}.cell_contents is not s{k}"
        elif check is guards._item and saved is not None:
            text = f"p{k}.get({key!r}) is not s{k}"
        elif check is guards._attribute and isinstance(place, types.FunctionType):
            text = f"p{k}.{key} is not s{k}"
        else:
            return [("not holds()", {"holds": guard.holds})]
        out.append((text, values))
    return out
