"""Ordered folds: `iterate` and `scan`.  One loop, a run-time count, any pytree as its state."""
from __future__ import annotations

from typing import Any, Callable

from tlgrad.control.carry import Carry, restored, settle
from tlgrad.control.cond import concrete
from tlgrad.control.schedule import check_memory
from tlgrad.control.staging import flatten_values, interned, reorder, required_positional, result_leaves
from tlgrad.control.sweeps import sweeps_p
from tlgrad.control.tower import Layout
from tlgrad.core import dtypes, tree
from tlgrad.core.aval import make_aval
from tlgrad.core.source import check_callable, describe_callable
from tlgrad.core.tensor import as_value, tensor
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, OutputError, ShapeError
from tlgrad.ops.promote import as_dtype_value


def loop_count(n: Any, name: str) -> Value:
    """The count of a loop, int64 or uint64; DTypeError or ArgumentError when it is no natural number."""
    n = as_value(n, f"the count of {name}")
    if not dtypes.is_integer(n.dtype) or n.shape != ():
        raise DTypeError(f"{name}: the count must be one integer, got {n.aval}; a count is a natural number. "
                         "If it is whole, write tl.convert(n, tl.int64).")
    known = concrete(n)
    if known is not None and int(known) < 0:
        raise ArgumentError(f"{name}: the count must not be negative, got {int(known)}")
    return as_dtype_value(n, n.dtype if n.dtype is dtypes.uint64 else dtypes.int64)


def iterate(step: Callable, n: Any, start: Any, *, memory: int | str | None = None) -> Any:
    """The state after `n` turns of ``state = step(state)``, from `start`.

    step:   takes the state, or the turn (0, 1, ..., n-1) and the state when it has two required
            positional parameters; returns a state of the same structure, shapes and dtypes.
            Python numbers in `start` take the dtype that `step` gives them.
    n:      a natural number, concrete or traced: it is an argument, not part of the program.
    memory: limit for reverse mode, in states kept (an int) or bytes ("64MB"); by default
            all states up to 256 MB.  The words of the result do not depend on it.

    The words are those of the Python loop.  Raises DTypeError for a float count, ArgumentError for
    a negative one, CarryError when the state changes its shape or dtype.

    >>> iterate(lambda x: x * x + 1, 3, tl.tensor([1.0, 2.0]))
    tensor([ 26., 677.], float64, shape (2,), cpu)
    >>> iterate(lambda i, total: total + i, 5, 0)
    tensor(10, int64, shape (), cpu)
    """
    check_callable(step, "iterate")
    count = loop_count(n, "iterate")
    memory = check_memory(memory)
    carry = Carry(*flatten_values(start, "the start of iterate"))
    with_turn = required_positional(step) >= 2

    def turn(values, more):
        state = tree.unflatten(carry.treedef, values)
        return (step(more[0], state) if with_turn else step(state)), []
    carry, jaxpr, captured = settle(carry, turn, step, "iterate", [count.aval.strong()])
    n_captured, n_carry = len(captured), len(carry.values)
    body = interned(reorder(jaxpr, [n_captured + n_carry, *range(n_captured + n_carry)]))
    layout = Layout((body,), (False,), n_captured, 0, (n_carry,), None, (True,) * n_carry, memory)
    outs = sweeps_p.bind(count, *captured, *carry.values, **layout._asdict()) if n_carry else []
    return restored(carry, outs)


def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, *,
         memory: int | str | None = None) -> tuple[Any, Any]:
    """Fold `f` over the leading axis of `xs` and stack what it gives on the way.

    f:       (carry, x) -> (carry, y); x is ``xs[i]``, leaf by leaf (None without `xs`).
    length:  the number of turns; needed only without `xs`.
    reverse: start at the last entry; y stands where its x stood.
    memory:  as in `iterate`.

    Returns (carry, ys).  Raises ShapeError when leading sizes differ, CarryError when the carry
    changes its shape or dtype.

    >>> scan(lambda total, x: (total + x, total), tl.tensor(0.0), tl.tensor([1.0, 2.0, 3.0]))
    (tensor(6.0, float64, shape (), cpu), tensor([0., 1., 3.], float64, shape (3,), cpu))
    """
    check_callable(f, "scan")
    memory = check_memory(memory)
    values, xs_tree = flatten_values(xs, "an input of scan")
    length = _scan_length(values, xs_tree, length)
    carry = Carry(*flatten_values(init, "the start of scan"))
    found = []

    def turn(state, x):
        out = f(tree.unflatten(carry.treedef, state), tree.unflatten(xs_tree, x))
        if not isinstance(out, tuple) or len(out) != 2:
            raise OutputError(f"scan: {describe_callable(f)} must return a pair (carry, y), "
                              f"got {type(out).__name__}; y may be None")
        leaves, treedef = result_leaves(out[1], f)
        found[:] = [treedef]
        return out[0], leaves
    carry, jaxpr, captured = settle(carry, turn, f, "scan", [_entry(x.aval) for x in values])
    n_captured, n_carry, n_xs = len(captured), len(carry.values), len(values)
    first, rest = range(n_captured), range(n_captured, n_captured + n_carry)
    last = range(n_captured + n_carry, n_captured + n_carry + n_xs)
    body = interned(reorder(jaxpr, [make_aval((), dtypes.int64), *first, *last, *rest]))
    layout = Layout((body,), (bool(reverse),), n_captured, n_xs, (n_carry,), length,
                    (True,) * len(body.outs), memory)
    operands = [tensor(length), *captured, *values, *carry.values]
    outs = sweeps_p.bind(*operands, **layout._asdict()) if body.outs else []
    return restored(carry, outs[:n_carry]), tree.unflatten(found[0], outs[n_carry:])


def _entry(aval):
    return aval.with_shape(aval.shape[1:]).strong()


def _scan_length(values, treedef, length):
    sizes = []
    for path, x in zip(tree.paths(treedef, "xs"), values):
        if not x.shape:
            raise ShapeError(f"scan: {path} has shape () and no leading axis to run over")
        sizes.append((path, x.shape[0]))
    if length is not None:
        sizes.append(("length", int(length)))
    if not sizes:
        raise ArgumentError("scan: without xs, give length=")
    if any(n != sizes[0][1] for _, n in sizes):
        raise ShapeError("scan: the leading sizes differ: " + ", ".join(f"{p} has {n}" for p, n in sizes))
    if sizes[0][1] < 0:
        raise ArgumentError(f"scan: length must not be negative, got {sizes[0][1]}")
    return sizes[0][1]
