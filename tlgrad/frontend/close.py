"""From recorded blocks to a jaxpr: dead values are dropped, captured symbols become operands.

    Cond -> cond            Loop with a count -> sweeps            other loops -> while

Conds whose arms compute nothing become selects.  A loop that only tests before it leaves gets
its test as the loop's condition.
"""
from __future__ import annotations

from tlgrad.control.cond import cond_p
from tlgrad.control.sweeps import Layout, sweeps_p
from tlgrad.control.while_loop import while_p
from tlgrad.core import dtypes
from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, Var, check_jaxpr
from tlgrad.core.tensor import Tensor, as_value
from tlgrad.core.trace import Value
from tlgrad.frontend.block import Block, Cond, Loop, Op, Symbol
from tlgrad.frontend.dead import drop_dead, free_symbols
from tlgrad.frontend.meaning import is_bool
from tlgrad.frontend.rotate import rotate
from tlgrad.ops import arithmetic as ar, logic as lo
from tlgrad.ops.convert import convert_p
from tlgrad.ops.promote import as_dtype_value

_INT, _BOOL = dtypes.int64, dtypes.bool_


def close(block: Block, n_captured: int) -> tuple[Jaxpr, list[bool]]:
    """The root block as a jaxpr; which of the first `n_captured` inputs it reads."""
    drop_dead(block)
    writer = Writer()
    for s in block.params:
        writer.define(s)
    writer.nodes(block.nodes)
    outs = [writer.atom(v) for v in block.outs]
    read = {a for eqn in writer.eqns for a in eqn.ins} | set(outs)
    binders = [writer.env[s] for s in block.params]
    kept = [v in read for v in binders[:n_captured]]
    binders = [v for k, v in enumerate(binders) if k >= n_captured or kept[k]]
    return check_jaxpr(Jaxpr(binders, writer.eqns, outs), "the scalar front end"), kept


# ---- equations ----

class Writer:
    """Writes the equations of one block."""

    def __init__(self):
        self.env: dict[Symbol, Var] = {}
        self.eqns: list[Eqn] = []

    def define(self, s: Symbol) -> Var:
        var = self.env[s] = Var(s.aval.strong())
        return var

    def atom(self, v):
        """The variable or literal of a value."""
        if isinstance(v, Symbol):
            return self.env[v]
        if not isinstance(v, Value):
            v = as_value(v)
        if v.aval.weak:
            v = Tensor(v.data, v.aval.strong())
        return Literal(v)

    def typed(self, v, aval):
        """The atom of a value that stands where `aval` is expected."""
        if isinstance(v, Symbol) and v.aval.dtype is aval.dtype:
            return self.env[v]
        if isinstance(v, Symbol):
            return self.emit(convert_p, [self.env[v]], {"dtype": aval.dtype, "weak": False}, aval)
        return self.atom(as_dtype_value(as_value(v), aval.dtype))

    def emit(self, prim, ins, params, aval, source=None):
        out = Var(aval.strong())
        self.eqns.append(Eqn(prim, ins, params, [out], source))
        return out

    def nodes(self, nodes):
        for node in nodes:
            if type(node) is Op:
                ins = [self.atom(v) for v in node.ins]
                outs = [self.define(s) for s in node.outs]
                self.eqns.append(Eqn(node.prim, ins, node.params, outs, node.source))
            elif type(node) is Cond:
                self.cond(node)
            else:
                self.loop(node)

    # -- conds --

    def cond(self, node: Cond):
        if not node.then.nodes and not node.other.nodes:
            for out, a, b in zip(node.outs, node.then.outs, node.other.outs):
                self.env[out] = self.select(node, out.aval, a, b)
            return
        free = list(dict.fromkeys([*free_symbols(node.then), *free_symbols(node.other)]))
        avals = [s.aval for s in node.outs]
        branches = tuple(self.jaxpr(block, free, avals) for block in (node.other, node.then))
        index = self.emit(convert_p, [self.atom(node.pred)], {"dtype": _INT, "weak": False},
                          node.pred.aval.with_dtype(_INT), node.source)
        outs = [self.define(s) for s in node.outs]
        ins = [index, *[self.env[s] for s in free]]
        self.eqns.append(Eqn(cond_p, ins, {"branches": branches}, outs, node.source))

    def select(self, node, aval, a, b):
        """A choice between values that both exist."""
        pred = self.atom(node.pred)
        if is_bool(a) and not isinstance(a, Symbol) and not isinstance(b, Symbol) and bool(a) != bool(b):
            return pred if bool(a) else self.emit(lo.not_, [pred], {}, node.pred.aval)
        ins = [pred, self.typed(a, aval), self.typed(b, aval)]
        return self.emit(lo.select, ins, {}, aval, node.source)

    def jaxpr(self, block, free, avals, lead=()):
        """A block as a jaxpr of (lead..., free..., parameters...)."""
        inner = Writer()
        binders = [inner.define(s) for s in (*lead, *free, *block.params)]
        inner.nodes(block.nodes)
        outs = [inner.typed(v, a) for v, a in zip(block.outs, avals, strict=True)]
        return Jaxpr(binders, inner.eqns, outs)

    # -- loops --

    def loop(self, node: Loop):
        inner = {node.index, *node.body.params}
        free = [s for s in free_symbols(node.body) if s not in inner]
        if node.again is None:
            return self.fold(node, free)
        rotated = rotate(node) if node.count is None else None
        return self.while_(node, free) if rotated is None else self.test_first(node, *rotated)

    def inits(self, node):
        return [self.typed(v, p.aval) for v, p in zip(node.inits, node.body.params)]

    def fold(self, node, free):
        """A loop with a count and no other exit: a tower of one sweep."""
        avals = [p.aval for p in node.body.params]
        count = self.count(node)
        index = node.index
        if count.aval.dtype is not _INT:
            count = self.emit(convert_p, [count], {"dtype": _INT, "weak": False}, index.aval)
        body = self.jaxpr(node.body, free, avals, (index,))
        n = len(avals)
        layout = Layout((body,), (False,), len(free), 0, (n,), None, (True,) * n, None)
        ins = [count, *[self.env[s] for s in free], *self.inits(node)]
        self.eqns.append(Eqn(sweeps_p, ins, layout._asdict(), [self.define(s) for s in node.outs], node.source))

    def count(self, node):
        """The number of turns; a negative range has none."""
        count = self.atom(node.count)
        if type(count) is Literal:
            return self.atom(max(0, int(count.value.data)))
        if count.aval.dtype.kind == "u" or isinstance(node.count, Symbol) and node.count.natural:
            return count
        zero = self.typed(0, count.aval)
        return self.emit(lo.maximum, [count, zero], {}, count.aval)

    def while_(self, node, free):
        """A loop that is left by `again`, after the turn in which it fails."""
        counted = node.count is not None
        extra = [node.index] if counted else []
        params = [*node.body.params, *extra]
        avals = [p.aval for p in params]
        go = Var(node.again.aval.strong())
        inner = Writer()
        n_free = len(free)
        limit = Var(extra[0].aval.strong()) if counted else None
        binders = [*[inner.define(s) for s in free], *([limit] if counted else []),
                   *[inner.define(s) for s in params], go]
        inner.nodes(node.body.nodes)
        outs = [inner.typed(v, a) for v, a in zip(node.body.outs, avals)]
        if counted:
            outs.append(inner.emit(ar.add, [inner.env[node.index], inner.atom(1)], {}, node.index.aval))
        outs.append(inner.env[node.again] if node.again in inner.env else inner.atom(node.again))
        body = Jaxpr(binders, inner.eqns, outs)
        test = self.test(binders, n_free, limit, inner.env.get(node.index) if counted else None, go)
        ins = [self.env[s] for s in free]
        if counted:
            ins.append(self.as_int(self.atom(node.count)))
        ins += [*self.inits(node), *([self.atom(0)] if counted else []), self.atom(True)]
        outs = [self.define(s) for s in node.outs] + [Var(p.aval.strong()) for p in extra] + [Var(go.aval)]
        self.write_while(node, test, body, n_free + counted, ins, outs)

    def as_int(self, atom):
        if atom.aval.dtype is _INT:
            return atom
        return self.emit(convert_p, [atom], {"dtype": _INT, "weak": False}, atom.aval.with_dtype(_INT))

    def test(self, binders, n_free, limit, index, go):
        """go (and index < limit), over the operands of the body."""
        fresh = {v: Var(v.aval) for v in binders}
        writer = Writer()
        out = fresh[go]
        if limit is not None:
            inside = writer.emit(lo.lt, [fresh[index], fresh[limit]], {}, go.aval)
            out = writer.emit(lo.and_, [inside, out], {}, go.aval)
        return Jaxpr(list(fresh.values()), writer.eqns, [out])

    def test_first(self, node, test: Block, turn: Block):
        """while test: turn"""
        params = node.body.params
        free = list(dict.fromkeys(s for b in (test, turn) for s in free_symbols(b) if s not in set(params)))
        avals = [p.aval for p in params]
        cond = self.jaxpr(test, free, [node.again.aval])
        body = self.jaxpr(turn, free, avals)
        ins = [*[self.env[s] for s in free], *self.inits(node)]
        self.write_while(node, cond, body, len(free), ins, [self.define(s) for s in node.outs])

    def write_while(self, node, cond, body, n_consts, ins, outs):
        params = {"cond": cond, "body": body, "n_consts": n_consts, "counted": False, "memory": None}
        self.eqns.append(Eqn(while_p, ins, params, outs, node.source))
