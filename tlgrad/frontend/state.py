"""The state while tracing: the current block, the heap, captures, errors; and its messages.

Lists, dicts, instances and iterators made while tracing are part of the state: their contents
are snapshot before an arm of a branch, merged at joins and carried by loops.
"""
from __future__ import annotations

import functools
import linecache
import re

from tlgrad.core.source import Source, describe_callable
from tlgrad.core.trace import current_trace
from tlgrad.errors import ScalarFunctionError
from tlgrad.frontend.block import Block, ScalarTrace, Symbol
from tlgrad.frontend.values import Exit, Iter, attributes, blank, children, contents, fill

#: operations recorded, and instructions interpreted, before tracing is given up
BUDGET, STEPS = 20_000, 100_000


class NeedConcrete(ScalarFunctionError):
    """A traced value was needed as a Python number (a loop may still be unrolled)."""


class Unmergeable(Exception):
    """Two paths reach `target` with states that have no common type."""

    def __init__(self, target, why):
        super().__init__(why)
        self.target, self.why = target, why


class Emitted(Exception):
    """A loop that was being run as plain Python met a traced value."""


class Split(Exception):
    """Host code asked for bool(symbol)."""

    def __init__(self, pred):
        super().__init__()
        self.pred = pred


#: what passes through host code unchanged
CONTROL = (ScalarFunctionError, Unmergeable, Emitted, Split)


class ErrorEntry:
    """An exception that an entry may raise: class, arguments, place.

    In a string argument, a placeholder stands for the k-th message value of the entry.
    """

    __slots__ = ("cls", "args", "where", "slots")

    def __init__(self, cls, args, where, slots):
        self.cls, self.args, self.where, self.slots = cls, args, where, slots


_PLACEHOLDER = re.compile("\x00([0-9]+):([^\x00]*)\x00")


class State:
    """What an interpretation carries; `Interpreter` adds the interpretation itself."""

    def __init__(self, user):
        self.user = user
        self.root = self.block = Block(None)
        self.trace = ScalarTrace(current_trace(), self)
        self.heap: dict = {}
        self.frozen: set = set()
        self.keep: list = []                       # objects whose id is in use stay alive
        self.codes: dict = {}
        self.choice: dict = {}
        self.errors: list[ErrorEntry] = []
        self.captures: dict[int, tuple] = {}
        self.marks: list[Symbol] = []
        self.trees: set = set()
        self.active: dict = {}
        self.stack: list = []
        self.decisions, self.cursor, self.raised, self.left = (), 0, None, None
        self.forbid = self.work = self.steps = 0
        self.blame = ""                            # where two paths last met without a common kind

    # -- recording --

    def check_may_emit(self):
        """Count one operation; refuse while a loop is tried as plain Python, or over budget."""
        if self.forbid:
            self.leave(Emitted())
        self.spend(1, f"the function unrolls to more than {BUDGET} operations",
                   "use a range loop whose body does not need a concrete index, or a while loop")

    def leave(self, control):
        """Leave host code.  The first reason counts: what host code then does in `except` or `finally`
        belongs to no path."""
        self.left = self.left or control
        raise self.left

    def spend(self, amount, what, fix):
        """Use up some of the budget."""
        self.work += amount
        if self.work > BUDGET:
            self.fail(what, fix)

    def new_symbol(self, aval, block=None) -> Symbol:
        """A fresh symbol of the current (or the given) block."""
        return Symbol(self.trace, aval, self.block if block is None else block, self.source())

    def source(self) -> Source | None:
        """The user's place being interpreted."""
        for frame in reversed(self.stack):
            if frame.loc is not None:
                return frame.source()
        return None

    def inside(self, block, thunk):
        """Run `thunk` with `block` current."""
        old, self.block = self.block, block
        try:
            return thunk()
        finally:
            self.block = old

    def visible(self, v) -> bool:
        """True when the current block may read the symbol."""
        block = self.block
        while block is not None and block is not v.block:
            block = block.parent
        return block is not None

    def capture(self, value) -> Symbol:
        """The symbol of a value from outside: an operand of the map, whole in every entry."""
        found = self.captures.get(id(value))
        if found is None:
            found = self.captures[id(value)] = (Symbol(self.trace, value.aval, self.root, None), value)
        return found[0]

    # -- the heap --

    def snapshot(self) -> dict:
        """id -> (object, keys, values) for every object made while tracing; eight cost as much as a step."""
        self.steps += len(self.heap) >> 3
        return {k: (o, *contents(o)) for k, o in self.heap.items()}

    def install(self, snap):
        """Make a snapshot the state."""
        self.heap = {k: entry[0] for k, entry in snap.items()}
        for o, keys, vals in snap.values():
            fill(o, keys, vals)

    def own(self, o):
        """Enter an object into the heap."""
        self.heap[id(o)] = o
        return o

    def copy_of(self, v, keys, vals):
        """A new heap object like `v` with the given contents."""
        new = blank(v)
        fill(new, keys, vals)
        return self.own(new)

    def prune(self, x: Exit, base) -> Exit:
        """Forget what was made since `base` and cannot be reached any more."""
        if not x.heap.keys() - base.keys():
            return x
        reached = reach(x, x.vals.values())
        x.heap = {k: entry for k, entry in x.heap.items() if k in base or k in reached}
        return x

    # -- messages --

    def fail(self, what: str, fix: str = "", cls=ScalarFunctionError):
        """Refuse the function: file, line, column, function, expression, reason, fix."""
        raise cls(f"{self.place()}: {what}." + (f" Fix: {fix}." if fix else ""))

    def place(self) -> str:
        """Where the interpretation is, in the user's source."""
        frames = [f for f in self.stack if f.loc is not None]
        if not frames:
            return self.blame or f"in {describe_callable(self.user)}"
        code, loc = frames[-1].func.__code__, frames[-1].loc
        positions = list(code.co_positions())
        line, end, c0, c1 = positions[loc // 2] if loc // 2 < len(positions) else (code.co_firstlineno, 0, 0, 0)
        text = linecache.getline(code.co_filename, line or 0).rstrip("\n")
        name = code.co_filename.rsplit("/", 1)[-1]
        if not text or c0 is None or line != end:
            return f"{name}:{line}, in {code.co_name}"
        return f"{name}:{line}:{c0 + 1}, in {code.co_name} in `{text.encode()[c0:c1].decode()}`"

    def placeholder(self, symbol, spec) -> str:
        """Text that stands for a traced number in a message."""
        if self.forbid:
            raise Emitted
        self.marks.append(symbol)
        return f"\x00{len(self.marks) - 1}:{spec}\x00"

    def error(self, cls, args) -> "int":
        """The code of an exception; equal ones share it."""
        key = (cls, repr(args))
        for n, entry in enumerate(self.errors):
            if (entry.cls, repr(entry.args)) == key:
                return n
        slots = sorted({int(m) for a in args if isinstance(a, str) for m, _ in _PLACEHOLDER.findall(a)})
        self.errors.append(ErrorEntry(cls, args, self.place(), slots))
        return len(self.errors) - 1

    def message_values(self, code) -> dict:
        """Variables of an error exit: the values that its message shows."""
        return {f"$mark{k}": self.marks[k] for k in self.errors[code].slots}


def filled(args, values: dict) -> list:
    """Exception arguments with the placeholders replaced by an entry's numbers."""
    def number(match):
        return format(values[int(match[1])], match[2])
    return [_PLACEHOLDER.sub(number, a) if isinstance(a, str) else a for a in args]


def reach(x: Exit, roots) -> set:
    """ids of heap objects of `x` that can be reached from `roots`."""
    reached: set = set()
    count_references(x, roots, functools.partial(_note, reached))
    return reached


def _note(reached, key):
    first = key not in reached
    reached.add(key)
    return first


def count_references(x: Exit, roots, visit):
    """Call `visit(id)` for each reference to a heap object; it tells whether to look inside."""
    todo, seen = list(roots), set()
    while todo:
        v = todo.pop()
        if id(v) in x.heap:
            if visit(id(v)):
                todo += x.heap[id(v)][2]
                todo += (v.items or ()) if type(v) is Iter else ()
            continue
        inner = children(v)
        if inner or not isinstance(v, tuple):
            if id(v) in seen:
                continue
            inner = inner or attributes(v)
        if inner:
            seen.add(id(v))
            todo += inner
