"""What a loop carries: its structure, and the dtypes at which its body reproduces it."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from tlgrad.control.staging import result_leaves
from tlgrad.core import tree
from tlgrad.core.aval import Aval, make_aval
from tlgrad.core.source import describe_callable
from tlgrad.core.trace import Value
from tlgrad.errors import CarryError
from tlgrad.ops.promote import as_dtype_value, common_dtype
from tlgrad.transforms.stage import stage


class Carry(NamedTuple):
    """Values a loop starts with, and the structure they have."""
    values: list[Value]
    treedef: tree.TreeDef

    @property
    def avals(self) -> list[Aval]:
        """Avals of the values."""
        return [x.aval for x in self.values]


class _Typed:
    """An aval that stands for a value in dtype promotion."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval


def settle(start: Carry, step: Callable, f: Callable, name: str, more: Sequence[Aval] = ()):
    """Stage the body of a loop at the dtypes that it reproduces.

    step: (carry values, other values) -> (new carry pytree, list of other results); it calls
    `f`, which messages name.  A weak start (Python numbers) takes the dtype that the body gives
    it; anything else must come out as it went in.  Gives (carry, jaxpr, captured values); the
    jaxpr takes captured values, the carry, `more`.
    """
    avals, n = start.avals, len(start.values)
    for _ in range(8):
        found: list[Aval] = []

        def flat(*values):
            out, others = step(values[:n], values[n:])
            leaves = _same_structure(out, start.treedef, f, name)
            found[:] = [y.aval for y in leaves]
            leaves = [_fitted(y, a) for y, a in zip(leaves, avals)]
            return [*leaves, *others]
        jaxpr, captured = stage(flat, [*avals, *more])
        settled = [_join(a, b) for a, b in zip(avals, found)]
        _check(avals, settled, found, start.treedef, f, name)
        if settled == avals:
            values = [as_dtype_value(x, a.dtype, a.weak) for x, a in zip(start.values, avals)]
            return Carry(values, start.treedef), jaxpr, captured
        avals = settled
    raise CarryError(f"{name}: the dtypes of the carry do not settle in {describe_callable(f)}")


def _same_structure(out, treedef, f, name):
    leaves, found = result_leaves(out, f)
    if found != treedef:
        raise CarryError(f"{name}: {describe_callable(f)} must return a carry of the structure it is given: "
                         f"{tree.difference(treedef, found, 'carry')}")
    return leaves


def _fitted(y: Value, aval: Aval) -> Value:
    return as_dtype_value(y, aval.dtype, aval.weak) if y.aval.shape == aval.shape else y


def restored(carry: Carry, outs: Sequence[Value]) -> Any:
    """The state after the loop; what began weak and stayed so is weak again."""
    return tree.unflatten(carry.treedef, list(map(_fitted, outs, carry.avals)))


def _join(a: Aval, out: Aval) -> Aval | None:
    """The aval for the next try; None where the body cannot reproduce `a`."""
    if out.shape != a.shape:
        return None
    if a.weak:
        dtype, weak = common_dtype([_Typed(a), _Typed(out)])
        return make_aval(a.shape, dtype, weak)
    if out.dtype is a.dtype or out.weak and out.dtype.kind == a.dtype.kind:
        return a
    return None


def _check(avals, settled, found, treedef, f, name):
    wrong = [k for k, a in enumerate(settled) if a is None]
    if not wrong:
        return
    lines, paths = [], tree.paths(treedef, "carry")
    for k in wrong:
        a, b = avals[k], found[k]
        if a.shape != b.shape:
            lines.append(f"{paths[k]}: {a.shape} in, {b.shape} out")
        else:
            lines.append(f"{paths[k]}: {a.dtype} in, {b.dtype} out (write tl.convert(x, tl.{a.dtype}))")
    raise CarryError(f"{name}: {describe_callable(f)} must return its carry with the shapes and dtypes it was "
                     "given, but changes " + "; ".join(lines))
