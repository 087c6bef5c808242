"""What the front end records: nested blocks of operations, conds and loops, and their symbols.

    Block = params ; nodes ; outs          Node = Op | Cond | Loop

Blocks read the symbols of the blocks around them.  `frontend.close` turns a finished block into
a jaxpr, where captured symbols become operands.
"""
from __future__ import annotations

import operator

from tlgrad.core.aval import Aval
from tlgrad.core.source import Source
from tlgrad.core.tensor import as_value
from tlgrad.core.trace import Trace, Tracer, Value
from tlgrad.frontend import meaning


class Block:
    """Nodes that run in order; `parent` is the block around it."""

    __slots__ = ("parent", "params", "nodes", "outs", "free")

    def __init__(self, parent: "Block | None"):
        self.parent = parent
        self.params: list[Symbol] = []
        self.nodes: list = []
        self.outs: list = []
        #: symbols read from around it, once the block is finished
        self.free: list[Symbol] | None = None


class Op:
    """outs = prim[params] ins."""

    __slots__ = ("prim", "ins", "params", "outs", "source")

    def __init__(self, prim, ins, params, outs, source):
        self.prim, self.ins, self.params, self.outs, self.source = prim, ins, params, outs, source


class Cond:
    """outs = then() if pred else other(); only one of the two runs."""

    __slots__ = ("pred", "then", "other", "outs", "source")

    def __init__(self, pred, then: Block, other: Block, outs, source):
        self.pred, self.then, self.other, self.outs, self.source = pred, then, other, outs, source


class Loop:
    """outs = inits; repeat: outs = body(outs).

    count given: that many times, with the turn number in `index`.  `again` given: while that
    result of the body holds (checked after each turn; the first turn always runs when there is
    no count).  Both: a fold with an early exit.
    """

    __slots__ = ("count", "index", "body", "inits", "outs", "again", "source")

    def __init__(self, count, index, body: Block, inits, outs, again, source):
        self.count, self.index, self.body, self.inits = count, index, body, inits
        self.outs, self.again, self.source = outs, again, source


class Symbol(Tracer):
    """A value that is known when the program runs; of shape () unless it is a captured array.

    `predecessor`: for the count n of a recurrence's successor equation, the symbol of n - 1.
    `natural`: it counts turns, so it is not negative.
    """

    __slots__ = ("block", "aval", "predecessor", "natural")

    def __init__(self, trace, aval: Aval, block: Block, source: Source | None):
        self.trace, self.aval, self.block, self.source = trace, aval, block, source
        self.predecessor, self.natural = None, False

    def __bool__(self):
        return self.trace.interpreter.decide(self)

    def _number(self, *_):
        self.trace.interpreter.need_number(self)

    __float__ = __int__ = __index__ = __complex__ = _number

    def __abs__(self):
        return self.trace.interpreter.call(abs, [self], {})

    def __round__(self, *digits):
        return self.trace.interpreter.call(round, [self, *digits], {})

    def __neg__(self):
        return self.trace.interpreter.unary(operator.neg, self)

    def __invert__(self):
        return self.trace.interpreter.unary(operator.invert, self)

    def __getitem__(self, key):
        return self.trace.interpreter.getitem(self, key)

    def __repr__(self):
        return f"<traced {self.aval}>"

    def __str__(self):
        return self.trace.interpreter.placeholder(self, "")

    def __format__(self, spec):
        return self.trace.interpreter.placeholder(self, spec)

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        if method != "__call__" or kwargs:
            return NotImplemented
        return self.trace.interpreter.call(ufunc, list(args), {})


def _operator(function, swapped):
    def method(self, other):
        if not isinstance(other, meaning.OPERANDS):
            return NotImplemented
        interpreter = self.trace.interpreter
        return interpreter.binop(function, other, self) if swapped else interpreter.binop(function, self, other)
    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor",
              "lshift", "rshift"):
    _function = getattr(operator, _name)
    setattr(Symbol, f"__{_name.strip('_')}__", _operator(_function, False))
    setattr(Symbol, f"__r{_name.strip('_')}__", _operator(_function, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Symbol, f"__{_name}__", _operator(getattr(operator, _name), False))
Symbol.__hash__ = object.__hash__


class ScalarTrace(Trace):
    """Records primitives as nodes of the interpreter's current block."""

    name = "map"

    def __init__(self, parent, interpreter):
        super().__init__(parent)
        self.interpreter = interpreter

    def process(self, prim, args, params):
        interpreter = self.interpreter
        interpreter.check_may_emit()
        ins = [x if type(x) is Symbol and x.trace is self else self.operand(x) for x in args]
        found = prim.avals_out([x.aval for x in ins], params)
        source, block = interpreter.source(), interpreter.block
        outs = [Symbol(self, a, block, source) for a in (found if prim.multiple else [found])]
        block.nodes.append(Op(prim, ins, params, outs, source))
        return outs if prim.multiple else outs[0]

    def operand(self, x) -> Value:
        """A literal of shape (); other values that are no symbols of this trace become captured inputs."""
        if not isinstance(x, Tracer):
            x = as_value(x)
            if x.aval.shape == ():
                return x
        return self.interpreter.capture(x)
