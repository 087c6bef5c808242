"""Programs of single lanes: jaxprs of scalars (or of entries of one index space) -> IR operations.

    LaneLowering.equation(eqn, values) -> values      elementwise operations, folds, loops, branches

An operation is placed in the outermost region that knows its operands, so what does not change
inside a loop is computed once.
"""
from __future__ import annotations

from math import prod
from typing import Callable

import numpy as np

from tlgrad.codegen.intrinsics import FAULTY, FLOATS, cost, expressible, type_of
from tlgrad.codegen.ir import Op, Region, Value, free_values
from tlgrad.codegen.logic import as_bool
from tlgrad.codegen.turns import as_count, lower_sweeps, lower_while
from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal
from tlgrad.core.tensor import Tensor, frozen
from tlgrad.passes import optimise
from tlgrad.passes.groups import squeezed, turn_arrays

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
#: a branch this cheap is computed for all lanes and selected
CHEAP = 40
#: most sweeps of a tower under a limit on the states kept
SWEEPS_WITHIN = 8


# ---- what can be lowered ----

def lane_program(jaxpr: Jaxpr, space) -> bool:
    """True when every equation works entry by entry on values of `space` or of shape ().

    A program of single numbers may also read entries of whole arrays (tables).
    """
    jaxpr = optimise(jaxpr)
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outs}
    inputs = jaxpr.out_avals if space == () else (*jaxpr.in_avals, *jaxpr.out_avals)
    return (all(on_lanes(a.shape, space) for a in inputs)
            and all(lane_equation(eqn, space, makers) for eqn in jaxpr.eqns))


def on_lanes(shape, space) -> bool:
    """True when a value has one entry per entry of the space, or one for all."""
    return squeezed(shape) == space or prod(shape) == 1


def lane_equation(eqn: Eqn, space, makers) -> bool:
    """True when the equation can be an operation on lanes of `space`."""
    kind, name = eqn.prim.lower or ("", "")
    tables = name == "map" or space == () and (name in _CONTROL or name == "read")
    lanes = eqn.outs if tables else (*eqn.ins, *eqn.outs)
    if not all(on_lanes(v.aval.shape, space) for v in lanes):
        return False
    if name == "read":
        return bool(eqn.ins[0].aval.size) and eqn.ins[0].aval.dtype.name != "float16" and \
            type_of(eqn.outs[0].aval.dtype) is not None and not any(a.aval.shape for a in eqn.ins[1:])
    if kind == "elementwise":
        return expressible(name, [type_of(a.aval.dtype) for a in eqn.ins],
                           type_of(eqn.outs[0].aval.dtype), eqn.params)
    if name in ("broadcast", "reshape"):
        return type_of(eqn.outs[0].aval.dtype) is not None
    if any(type_of(v.aval.dtype) is None for v in (*eqn.ins, *eqn.outs)):
        return False
    check = _CONTROL.get(name)
    return check is not None and check(eqn, space, makers)


def _can_map(eqn, space, makers) -> bool:
    """Entries that are single numbers, no sums over the entries."""
    p = eqn.params
    return (not any(p["summed"]) and squeezed(p["shape"]) == space
            and all(a.aval.shape == p["shape"] or not m for a, m in zip(eqn.ins, p["mapped"]))
            and lane_program(p["jaxpr"], ()))


def _can_sweep(eqn, space, makers) -> bool:
    return not any(turn_arrays(eqn)) and _can_turn(eqn, space)


def _can_turn(eqn, space) -> bool:
    """Turns are programs of lanes; the text of a tower under a limit doubles with each sweep."""
    bodies = eqn.params["bodies"]
    return ((eqn.params["memory"] is None or len(bodies) <= SWEEPS_WITHIN)
            and all(lane_program(body, space) for body in bodies))


def can_fold(eqn, space) -> bool:
    """True when a loop of a program, with arrays that its turns read and write, works on states of `space`."""
    xs, ys = turn_arrays(eqn)
    operands = [v.aval.shape[k in xs:] for k, v in enumerate(eqn.ins)]
    results = [v.aval.shape[k in ys:] for k, v in enumerate(eqn.outs)]
    return (all(on_lanes(shape, space) for shape in operands)
            and all(squeezed(shape) == space for shape in results)
            and all(type_of(v.aval.dtype) is not None for v in (*eqn.ins, *eqn.outs))
            and _can_turn(eqn, space))


def _can_loop(eqn, space, makers) -> bool:
    return lane_program(eqn.params["cond"], space) and lane_program(eqn.params["body"], space)


def _can_branch(eqn, space, makers) -> bool:
    """Two branches, chosen by a bool: the index cannot be out of range."""
    maker = makers.get(eqn.ins[0])
    return (len(eqn.params["branches"]) == 2 and maker is not None and maker.prim.name == "convert"
            and maker.ins[0].aval.dtype.name == "bool"
            and all(lane_program(b, space) for b in eqn.params["branches"]))


_CONTROL: dict[str, Callable] = {"sweeps": _can_sweep, "while": _can_loop, "cond": _can_branch, "map": _can_map}


# ---- lowering ----

class LaneLowering:
    """Collects operations.  `scopes` are the operation lists of the open regions, outermost first."""

    def __init__(self):
        self.scopes: list[list[Op]] = [[]]
        self.depth: dict[Value, int] = {}
        self.literals: dict = {}
        self.folds: dict = {}
        self.tapes = 0
        self.inside_branch = 0
        #: the lanes for which a loop outside of all regions runs; None for all
        self.guard: Value | None = None
        #: integers that are bools, by the bool: the indices of branches
        self.truth: dict[Value, Value] = {}
        #: some lane may be unable to go on: the program is then run by its primitives
        self.faulty = False
        self.uniform_faults: list[Value] = []
        self.not_negative: set[Value] = set()
        #: literal integers, and what chose or converted an integer, by value
        self.numbers: dict[Value, int] = {}
        self.made: dict[Value, tuple] = {}

    @property
    def ops(self) -> list[Op]:
        """The operations outside of all regions."""
        return self.scopes[0]

    def literal(self, literal: Literal) -> Value:
        """A number: an argument of the kernel, shared by all uses of its word."""
        type = type_of(literal.aval.dtype)
        key = type, literal.value.data.tobytes()
        if key not in self.literals:
            self.literals[key] = literal, Value(type, True)
            if type not in ("f16", "f32", "f64"):
                self.numbers[self.literals[key][1]] = int(literal.value.data)
            if type in ("i32", "i64") and literal.value.data >= 0:
                self.not_negative.add(self.literals[key][1])
        return self.literals[key][1]

    def number(self, n: int) -> Value:
        """The i64 n."""
        return self.literal(Literal(Tensor(frozen(np.array(n, np.int64)), make_aval((), dtypes.int64))))

    def emit(self, name, args, types, params=None, regions=(), free=()) -> tuple[Value, ...]:
        """Place an operation; `free` are the outer values that its regions use."""
        if name in ("eq", "ne") and (found := as_bool(self, name, args)) is not None:
            return (found,)
        innermost = len(self.scopes) - 1
        if not innermost or self.inside_branch or name in ("fold", "unfold", "unfold_within"):
            depth = innermost                    # a fold and its reverse share a tape
        else:
            depth = max([self.depth.get(a, 0) for a in (*args, *free)], default=0)
        uniform = not regions and all([a.uniform for a in args])
        outs = tuple([Value(t, uniform) for t in types])
        self.scopes[depth].append(Op(name, tuple(args), outs, params or {}, tuple(regions)))
        if depth:
            self.depth.update(dict.fromkeys(outs, depth))
        if name == "select" and types[0] in INTEGERS or name == "convert" and args[0].type == "b1":
            self.made[outs[0]] = name, tuple(args)
        return outs

    def fault(self, comparison: str, value: Value, limit: Value | None = None):
        """A lane cannot go on when `value` compares so with `limit` (or 0); noted where the lane gets to it."""
        if limit is None:
            limit, = self.emit("sub", [value, value], [value.type])
        bad, = self.emit(comparison, [value, limit], ["b1"])
        if bad.uniform and len(self.scopes) == 1:
            self.uniform_faults.append(bad)
            return
        self.faulty = True
        self.scopes[-1].append(Op("fault", (bad,), (Value("b1"),)))

    def within(self, eqn: Eqn, x: Value) -> list[Value]:
        """x, after the lanes where it is outside of its bounds are noted."""
        aval = eqn.ins[0].aval
        for comparison, bound in (("lt", eqn.params["low"]), ("gt", eqn.params["high"])):
            if bound is not None:
                word = np.array(bound, aval.dtype.storage)
                self.fault(comparison, x, self.literal(Literal(Tensor(frozen(word), make_aval((), aval.dtype)))))
        return [x]

    def region(self, types, body, counted=False) -> tuple[Region, set[Value]]:
        """A nested body: ``body(*params) -> results``; also the outer values that it uses.  The first
        parameter of a `counted` one is the number of the turn, the same for all lanes."""
        ops: list[Op] = []
        guard, self.guard = self.guard, None
        self.scopes.append(ops)
        params = tuple(Value(t, counted and k == 0) for k, t in enumerate(types))
        self.depth.update(dict.fromkeys(params, len(self.scopes) - 1))
        results = tuple(body(*params))
        self.scopes.pop()
        self.guard = guard
        region = Region(params, ops, results)
        return region, free_values(region)

    def jaxpr(self, jaxpr: Jaxpr, args) -> list[Value]:
        """Lower a program applied to values."""
        jaxpr = optimise(jaxpr)
        env = dict(zip(jaxpr.in_binders, args, strict=True))

        def read(atom):
            return self.literal(atom) if type(atom) is Literal else env[atom]
        for eqn in jaxpr.eqns:
            env.update(zip(eqn.outs, self.equation(eqn, [read(a) for a in eqn.ins]), strict=True))
        return [read(a) for a in jaxpr.outs]

    def equation(self, eqn: Eqn, args) -> list[Value]:
        """Lower one equation."""
        kind, name = eqn.prim.lower
        if name == "within":
            return self.within(eqn, *args)
        if name in FAULTY and args[1].type not in FLOATS:
            self.fault("eq", args[1])
        if name == "read":
            self.faulty = True
            index = [as_count(self, i) for i in args[1:]]
            op = Op("read", (args[0], *index), (Value(args[0].type),))
            self.scopes[-1].append(op)
            self.depth[op.outs[0]] = len(self.scopes) - 1
            return list(op.outs)
        if kind == "elementwise":
            params = {"n": eqn.params["n"]} if "n" in eqn.params else {}
            outs = list(self.emit(name, args, [type_of(eqn.outs[0].aval.dtype)], params))
            if name == "convert" and args[0].type == "b1":
                self.truth[outs[0]] = args[0]
            if name == "max" and self.not_negative & set(args):
                self.not_negative.update(outs)
            return outs
        if name in ("broadcast", "reshape"):
            return list(args)
        return _LOWER[name](self, eqn.params, args)


# ---- maps and branches ----

def _lower_map(low: LaneLowering, p, args) -> list[Value]:
    outs, n_results = low.jaxpr(p["jaxpr"], args), len(p["summed"])
    if p["errors"].n_results:                  # an error code, -1 for none
        low.fault("ge", outs[n_results])
    return outs[:n_results]


def _lower_cond(low: LaneLowering, p, args) -> list[Value]:
    which, operands = _choice(low, args[0]), args[1:]
    no, yes = p["branches"]
    weight = max(program_cost(no), program_cost(yes))
    if weight <= CHEAP:
        return _selected(low, which, low.jaxpr(yes, operands), low.jaxpr(no, operands))
    if len(low.scopes) == 1 and guarded_cost(yes) + guarded_cost(no) <= CHEAP:
        return _guarded(low, which, yes, no, operands)
    low.inside_branch += 1
    regions = [low.region([], lambda b=b: low.jaxpr(b, operands)) for b in (yes, no)]
    low.inside_branch -= 1
    types = [r.type for r in regions[0][0].results]
    return list(low.emit("cond", [which], types, {}, [r for r, _ in regions],
                         set().union(*[f for _, f in regions])))


def _selected(low, which, yes, no) -> list[Value]:
    return [a if a is b else low.emit("select", [which, a, b], [a.type])[0] for a, b in zip(yes, no)]


def _guarded(low, which, yes, no, operands) -> list[Value]:
    """Branches that are cheap but for loops: computed for all lanes, the loops run for those that take
    the branch, which can then be packed together."""
    before, outs = low.guard, []
    for branch, takes in ((yes, which), (no, low.emit("not", [which], ["b1"])[0])):
        low.guard = takes if before is None else low.emit("and", [before, takes], ["b1"])[0]
        outs.append(low.jaxpr(branch, operands))
    low.guard = before
    return _selected(low, which, *outs)


def _choice(low: LaneLowering, index: Value) -> Value:
    """The bool that an index of two branches came from, which another kernel may have converted."""
    if index in low.truth:
        return low.truth[index]
    zero, = low.emit("sub", [index, index], [index.type])
    return low.emit("ne", [index, zero], ["b1"])[0]


def program_cost(jaxpr: Jaxpr) -> int:
    """About how many instructions a lane program is; loops count as expensive."""
    return sum(10 * CHEAP if eqn.prim.lower[0] != "elementwise" or eqn.prim.name in FAULTY
               else cost(eqn.prim.name) for eqn in optimise(jaxpr).eqns)


def guarded_cost(jaxpr: Jaxpr) -> int:
    """About how many instructions a lane program is without the turns of its loops."""
    total = 0
    for eqn in optimise(jaxpr).eqns:
        if eqn.prim.name == "cond":
            total += sum(map(guarded_cost, eqn.params["branches"]))
        elif eqn.prim.name != "while":
            total += 10 * CHEAP if eqn.prim.lower[0] != "elementwise" or eqn.prim.name in FAULTY \
                else cost(eqn.prim.name)
    return total


_LOWER: dict[str, Callable] = {"sweeps": lower_sweeps, "while": lower_while, "cond": _lower_cond,
                               "map": _lower_map}
