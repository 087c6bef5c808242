"""The interpreter: a Python scalar function, applied to symbols, as a jaxpr.

    record : f, arguments (a tree of avals) -> Recorded
"""
from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Sequence

import numpy as np

from tlgrad.core.aval import Aval
from tlgrad.core.dtypes import is_inexact
from tlgrad.core.jaxpr import Jaxpr, sub_jaxprs
from tlgrad.core.tensor import Tensor, as_value, python_scalar, tensor
from tlgrad.core.trace import Value, running_under
from tlgrad.errors import ScalarFunctionError, TlgradError
from tlgrad.frontend import meaning
from tlgrad.frontend.block import Symbol
from tlgrad.frontend.builtin import Builtins
from tlgrad.frontend.calls import Calls
from tlgrad.frontend.close import close
from tlgrad.frontend.expressions import Expressions
from tlgrad.frontend.graph import Graph
from tlgrad.frontend.node import Node, Ref
from tlgrad.frontend.interpret import Regions
from tlgrad.frontend.joins import Joins
from tlgrad.frontend.loops import Loops
from tlgrad.frontend.recurrence import Recurrences
from tlgrad.frontend.operators import Operators
from tlgrad.frontend.simple import NotSimple, copy_on_symbols
from tlgrad.frontend.state import ErrorEntry, Split, State, Unmergeable
from tlgrad.frontend.statements import Statements
from tlgrad.frontend.tree import Trees
from tlgrad.frontend.values import UNDEF, Maybe, scalar
from tlgrad.ops.promote import as_dtype_value

#: Python frames that interpretation may nest
RECURSION = 20_000


class Interpreter(State, Joins, Regions, Loops, Statements, Expressions, Operators, Calls, Builtins, Recurrences,
                  Trees):
    """Interprets one function.

    lift: captured floats become operands of the program.  unsigned: unsigned integers are
    indices, with x // 0 = 0 and x % 0 = x.
    """

    def __init__(self, user, lift: bool, unsigned: bool = False):
        super().__init__(user)
        self.lift, self.lifted, self.unsigned = lift, False, unsigned

    # -- captures --

    def lift_number(self, v, place, name) -> Symbol:
        """A float read from outside, as a run-time argument."""
        key, self.lifted = (id(place), name), True
        found = self.captures.get(key)
        if found is None:
            value = python_scalar(v)
            self.keep.append(place)
            found = self.captures[key] = (Symbol(self.trace, value.aval, self.root, None), value)
        return found[0]

    def capture_array(self, v) -> Symbol:
        """An array read from outside, as an operand of the program."""
        if isinstance(v, Value):
            return self.capture(v)
        key = ("array", id(v))
        if key not in self.captures:
            self.keep.append(v)
            self.captures[key] = (Symbol(self.trace, as_value(v).aval, self.root, None), tensor(v))
        return self.captures[key][0]

    def table(self, numbers) -> Symbol:
        """A sequence of numbers as an array, to be read at a traced index."""
        key = ("table", tuple((type(v), repr(v)) for v in numbers))
        if key not in self.captures:
            aval = functools.reduce(meaning.join_avals, map(meaning.aval_of, numbers))
            data = np.array([meaning.cast(v, aval) for v in numbers], aval.dtype.storage)
            value = Tensor.own(data, aval.weak)
            self.captures[key] = (Symbol(self.trace, value.aval, self.root, None), value)
        return self.captures[key][0]


class Recorded:
    """A recorded scalar function.

    jaxpr : (captured values..., arguments...) -> (results..., error code?, message values...)
    """

    __slots__ = ("jaxpr", "captured", "structure", "n_results", "errors", "marks")

    def __init__(self, jaxpr: Jaxpr, captured: list, structure: Any, n_results: int,
                 errors: tuple[ErrorEntry, ...], marks: tuple[int, ...]):
        self.jaxpr, self.captured, self.structure = jaxpr, captured, structure
        self.n_results, self.errors, self.marks = n_results, errors, marks


def record(f: Callable, build: Callable, avals: Sequence[Aval], unsigned: bool = False) -> Recorded:
    """Interpret ``f(*build(symbols))`` with one symbol per aval.

    Captured floats are run-time arguments, unless the function needs one of them as a Python
    number.  `unsigned`: unsigned integers are indices, which divide without errors.  Raises
    ScalarFunctionError, with line, expression, reason and fix.
    """
    try:
        return _record(f, build, avals, _run_simple, Interpreter(f, True, unsigned))
    except (NotSimple, Split, TlgradError, TypeError):
        pass
    it = Interpreter(f, True, unsigned)
    try:
        return _record(f, build, avals, run_entry, it)
    except ScalarFunctionError as refusal:
        if not it.lifted:
            raise plain(refusal) from None
    try:
        return _record(f, build, avals, run_entry, Interpreter(f, False, unsigned))
    except ScalarFunctionError as refusal:
        raise plain(refusal) from None


#: Python frames that a transform or a backend takes for one level of a nested program
FRAMES = 150


def nesting(jaxpr: Jaxpr) -> int:
    """How deeply conds and loops are nested."""
    inner = [nesting(j) for eqn in jaxpr.eqns for j in sub_jaxprs(eqn.params)]
    return 1 + max(inner, default=-1)


def make_room(depth: int):
    """Let Python recurse as deep as a nested program needs: 96 early returns are 96 levels.

    The limit stays raised, since transforms and backends walk the program later.
    """
    needed = FRAMES * depth
    if needed > sys.getrecursionlimit():
        sys.setrecursionlimit(needed)


def plain(refusal: ScalarFunctionError) -> ScalarFunctionError:
    """A refusal as the user sees it, without the interpreter's own frames."""
    return ScalarFunctionError(str(refusal))


def _run_simple(it, f, args, kwargs):
    """A function without control flow, run by Python."""
    value = copy_on_symbols(it, f)(*args, **kwargs)
    if it.raised is not None:
        raise NotSimple                        # an operation that may raise: a branch
    return value, None


def _record(f, build, avals, run, it) -> Recorded:
    symbols = [Symbol(it.trace, a, it.root, None) for a in avals]
    args, kwargs = build(symbols)
    depth = sys.getrecursionlimit()
    sys.setrecursionlimit(max(depth, RECURSION))
    try:
        with running_under(it.trace):
            value, raised = run(it, f, args, kwargs)
            found = finish(it, symbols, value, raised)
            levels = nesting(found.jaxpr)
    finally:
        sys.setrecursionlimit(depth)
        it.trace.alive = False
    make_room(levels)
    return found


def _entry(f, args, kwargs):
    """The frame around the user's function: what it raises, and bool() in host code, meet here."""
    return f(*args, **kwargs)


def _entry_graph() -> Graph:
    """return f(*args, **kwargs), written by hand."""
    def expr(target, op, **fields):
        return Node("Assign", {"target": Ref(target), "value": Node("Expr", {"op": op, **fields})})
    body = [Node("Assign", {"target": Ref(n), "value": Node("Arg", {"index": k})})
            for k, n in enumerate(("f", "args", "kwargs"))]
    body.append(expr("$value", "call", func=Ref("f"), args=(), kws=(), vararg=Ref("args"), varkwarg=Ref("kwargs")))
    body.append(Node("Return", {"value": Ref("$value")}))
    g = object.__new__(Graph)
    g.entry, g.blocks, g.order, g.loops, g.joins, g.after = 0, {0: body}, {0: 0}, {}, {0: []}, {}
    g.live, g.carried, g.defs, g.argnames = {0: ()}, {}, {}, ["f", "args", "kwargs"]
    g.tries = g.generator = False
    return g


_ENTRY_GRAPH = _entry_graph()


def run_entry(it, f, args, kwargs):
    """The value of the whole function, and the (condition, code, message values) it raises."""
    try:
        exits, tag = it.invoke(_entry, _ENTRY_GRAPH, [f, tuple(args), dict(kwargs)])
    except Unmergeable as u:
        it.fail(f"the function returns different kinds of values: {u.why}",
                "return the same structure on every path")
    value = it.result(exits, tag)
    return value, it.raised


def finish(it, symbols, value, raised) -> Recorded:
    """Results, error code and message values as outputs of the root block."""
    leaves: list = []
    result = flatten_result(it, value, leaves)
    outs = list(leaves)
    used: dict = {}
    if raised is not None:
        condition, code, marks = raised
        outs.append(it.select(condition, code, -1))
        used = {int(k[5:]): v for k, v in marks.items()}
        outs += used.values()
    floats = [s.aval for s in symbols if is_inexact(s.dtype) and not s.aval.weak]
    outs[:len(leaves)] = [strong(v, floats) for v in leaves]
    block = it.root
    captured = list(it.captures.values())
    block.params = [s for s, _ in captured] + symbols
    block.outs = outs
    jaxpr, kept = close(block, len(captured))
    values = [v for (_, v), keep in zip(captured, kept) if keep]
    errors = tuple(it.errors) if raised is not None else ()
    return Recorded(jaxpr, values, result, len(leaves), errors, tuple(used))


def strong(v, floats):
    """A result in its format: a float computed from Python numbers alone takes that of the inputs."""
    aval = meaning.aval_of(v)
    if aval.weak and is_inexact(aval.dtype) and floats:
        aval = meaning.join_avals(functools.reduce(meaning.join_avals, floats), aval)
    return as_dtype_value(as_value(meaning.cast(v, aval)), aval.dtype)


def flatten_result(it, v, leaves):
    """The structure of a result with its leaves replaced by their positions."""
    if type(v) is Maybe:
        return flatten_result(it, v[1], leaves)
    if v is UNDEF:
        v = 0.0
    if scalar(v):
        leaves.append(v)
        return Leaf(len(leaves) - 1)
    if isinstance(v, tuple) and hasattr(v, "_fields"):
        return type(v)(*[flatten_result(it, e, leaves) for e in v])
    if isinstance(v, (tuple, list)):
        return type(v)(flatten_result(it, e, leaves) for e in v)
    if isinstance(v, dict):
        return {k: flatten_result(it, e, leaves) for k, e in v.items()}
    if v is None:
        it.fail("the function returns None on every path", "return a number")
    if hasattr(v, "__dict__") and not isinstance(v, (type, Value)) and not callable(v):
        new = object.__new__(type(v))
        new.__dict__.update({k: flatten_result(it, e, leaves) for k, e in v.__dict__.items()})
        return new
    it.fail(f"the function returns {v!r:.60}, which is not a number", "return numbers, or a tree of numbers")


class Leaf:
    """Stands for a result in the structure of all."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


def rebuild(structure, values):
    """The structure with its leaves filled in."""
    if type(structure) is Leaf:
        return values[structure.index]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*[rebuild(e, values) for e in structure])
    if isinstance(structure, (tuple, list)):
        return type(structure)(rebuild(e, values) for e in structure)
    if isinstance(structure, dict):
        return {k: rebuild(e, values) for k, e in structure.items()}
    new = object.__new__(type(structure))
    new.__dict__.update({k: rebuild(e, values) for k, e in structure.__dict__.items()})
    return new
