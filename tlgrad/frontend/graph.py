"""Bytecode -> control flow graph of small statements.

`bytecode` reads the statements, `flow` analyses their control flow.

    graph : function -> Graph | str        the str says why the function cannot be read
"""
from __future__ import annotations

import dis
import inspect
import types

from tlgrad.core.source import is_internal
from tlgrad.frontend import bytecode
from tlgrad.frontend.flow import analyse, liveness
from tlgrad.frontend.node import Node

_UNREADABLE = {dis.opmap[name] for name in (
    "BEFORE_WITH", "SETUP_WITH", "BEFORE_ASYNC_WITH", "ASYNC_GEN_WRAP", "GET_AWAITABLE") if name in dis.opmap}
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


def guards(s: Node) -> bool:
    """True for the check that follows a statement inside try."""
    return s.kind == "Assign" and s.value.kind == "Global" and s.value.name == "exception_check"


class Graph:
    """The control flow graph of a function.

    blocks: label -> [Node];  loops: header -> labels;  joins: label -> join labels that it
    dominates;  after: header -> labels outside that the loop leads to;  live: label -> names, sorted;
    carried: header -> names;  defs: name -> its only right-hand side (None: several);  tries: it has
    a try statement.
    """

    def __init__(self, func):
        reader, code = bytecode.reader(), func.__code__
        if reader is None:
            raise NotImplementedError("this pair of Python and Numba has not been tested")
        if _UNREADABLE & set(code.co_code[::2]):
            raise NotImplementedError("it uses `with` or `await`")
        self.argnames, blocks, succ = reader(func)
        _check_captures(code, self.argnames)
        self.generator = bool(code.co_flags & inspect.CO_GENERATOR)
        flow = analyse(succ)
        self.order, self.loops, self.joins, self.after = flow.order, flow.loops, flow.joins, flow.after
        self.entry = min(blocks)
        read = set().union(*[s.reads for body in blocks.values() for s in body])
        self.blocks = {b: [s for s in blocks[b] if not _copies_for_nothing(s, read)] for b in flow.order}
        if is_internal(code):           # functions of `library`: the place is the user's call
            for s in sum(self.blocks.values(), []):
                s.loc = None
        self.tries = any(guards(s) for body in self.blocks.values() for s in body)
        self.defs: dict = {}
        uses, assigned = {}, {}
        for b, body in self.blocks.items():
            used, made = uses[b], assigned[b] = set(), set()
            for s in body:
                used |= s.reads - made
                if s.kind == "Assign":
                    self.defs[s.target] = None if s.target in self.defs else s.value
                    made.add(s.target)
        live = liveness(flow, uses, assigned)
        self.carried = {h: sorted(live[h] & set().union(*[assigned[b] for b in inside]))
                        for h, inside in flow.loops.items()}
        self.live = {b: tuple(sorted(names)) for b, names in live.items()}


def _copies_for_nothing(s: Node, read: set) -> bool:
    """True when a variable goes onto the stack and Numba reads it by its name."""
    return s.kind == "Assign" and s.value.kind == "Var" and s.target not in read and s.target[0] == "$"


def _inner_codes(code):
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield c
            yield from _inner_codes(c)


def _check_captures(code, argnames):
    """Numba captures values where Python captures variables: only single assignments agree."""
    inner = list(_inner_codes(code))
    if not inner:
        return
    stores = [i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")]
    for c in inner:
        captured = set(c.co_freevars) & set(code.co_cellvars)
        for name in captured if c.co_name not in _COMPREHENSIONS else ():
            if stores.count(name) + (name in argnames) > 1:
                raise NotImplementedError(f"its inner function `{c.co_name}` captures `{name}`, which is "
                                          "assigned more than once")
        for i in dis.get_instructions(c) if c.co_freevars else ():
            if i.opname == "STORE_DEREF" and i.argval in c.co_freevars:
                raise NotImplementedError(f"it assigns `nonlocal {i.argval}`")


_GRAPHS: dict[types.CodeType, "Graph | str"] = {}


def forget():
    """Drop all graphs that have been read."""
    _GRAPHS.clear()


def graph(func) -> "Graph | str":
    """The graph of a Python function, cached by code object; a str says why it cannot be read.

    Numba's front end fails with many exception types, so all are caught here, and only here.
    """
    found = _GRAPHS.get(func.__code__)
    if found is None:
        try:
            found = Graph(func)
        except Exception as error:      # noqa: BLE001
            found = (str(error).strip() or type(error).__name__).split("\n")[0]
        if len(_GRAPHS) > 4096:
            _GRAPHS.clear()
        _GRAPHS[func.__code__] = found
    return found
