"""Programs of single lanes: jaxprs of scalars (or of entries of one index space) -> IR operations.

    LaneLowering.equation(eqn, values) -> values      elementwise operations, folds, loops, branches

An operation is placed in the outermost region that knows its operands, so what does not change
inside a loop is computed once.
"""
from __future__ import annotations

from typing import Callable

from tlgrad.codegen.intrinsics import FAULTY, cost, expressible, type_of
from tlgrad.codegen.ir import Op, Region, Value
from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal
from tlgrad.passes import optimise
from tlgrad.passes.groups import squeezed

#: a branch this cheap is computed for all lanes and selected
CHEAP = 40


# ---- what can be lowered ----

def lane_program(jaxpr: Jaxpr, space) -> bool:
    """True when every equation works entry by entry on values of `space` or of shape ().

    A program of single numbers may also read entries of whole arrays (tables).
    """
    jaxpr = optimise(jaxpr)
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outs}
    inputs = jaxpr.out_avals if space == () else (*jaxpr.in_avals, *jaxpr.out_avals)
    return (all(squeezed(a.shape) in (space, ()) for a in inputs)
            and all(lane_equation(eqn, space, makers) for eqn in jaxpr.eqns))


def lane_equation(eqn: Eqn, space, makers) -> bool:
    """True when the equation can be an operation on lanes of `space`."""
    kind, name = eqn.prim.lower or ("", "")
    tables = name == "map" or space == () and (name in _CONTROL or name == "read")
    lanes = eqn.outs if tables else (*eqn.ins, *eqn.outs)
    if any(squeezed(v.aval.shape) not in (space, ()) for v in lanes):
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
    p = eqn.params
    if p["n_xs"] or len(p["results"]) != p["carries"][-1] or len(p["bodies"]) > 2:
        return False
    if len(p["bodies"]) == 2 and tuple(p["reverse"]) != (False, True):
        return False
    return all(lane_program(body, space) for body in p["bodies"])


def _can_loop(eqn, space, makers) -> bool:
    return not eqn.params["counted"] and lane_program(eqn.params["cond"], space) \
        and lane_program(eqn.params["body"], space)


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
        self.inside_branch = 0
        #: integers that are bools, by the bool: the indices of branches
        self.truth: dict[Value, Value] = {}
        #: some lane may be unable to go on: the program is then run by its primitives
        self.faulty = False
        self.uniform_faults: list[Value] = []
        self.not_negative: set[Value] = set()

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
            if type in ("i32", "i64") and literal.value.data >= 0:
                self.not_negative.add(self.literals[key][1])
        return self.literals[key][1]

    def emit(self, name, args, types, params=None, regions=(), free=()) -> tuple[Value, ...]:
        """Place an operation; `free` are the outer values that its regions use."""
        known = (*args, *free)
        depth = max([self.depth.get(a, 0) for a in known], default=0)
        if self.inside_branch or name in ("fold", "unfold"):
            depth = len(self.scopes) - 1         # a fold and its reverse share a tape
        uniform = not regions and depth == 0 and all(a.uniform for a in args)
        outs = tuple(Value(t, uniform) for t in types)
        self.scopes[depth].append(Op(name, tuple(args), outs, params or {}, tuple(regions)))
        self.depth.update(dict.fromkeys(outs, depth))
        return outs

    def fault(self, comparison: str, value: Value):
        """A lane cannot go on when `value` compares so with 0; noted where the lane gets to it."""
        zero, = self.emit("sub", [value, value], [value.type])
        bad, = self.emit(comparison, [value, zero], ["b1"])
        if bad.uniform and len(self.scopes) == 1:
            self.uniform_faults.append(bad)
            return
        self.faulty = True
        self.scopes[-1].append(Op("fault", (bad,), (Value("b1"),)))

    def region(self, types, body) -> tuple[Region, set[Value]]:
        """A nested body: ``body(*params) -> results``; also the outer values that it uses."""
        ops: list[Op] = []
        self.scopes.append(ops)
        params = tuple(Value(t) for t in types)
        self.depth.update(dict.fromkeys(params, len(self.scopes) - 1))
        results = tuple(body(*params))
        self.scopes.pop()
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
        if name in FAULTY:
            self.fault("eq", args[1])
        if name == "read":
            self.faulty = True
            index = [_count(self, i) for i in args[1:]]
            op = Op("read", (args[0], *index), (Value(args[0].type),))
            self.scopes[-1].append(op)
            self.depth[op.outs[0]] = len(self.scopes) - 1
            return list(op.outs)
        if kind == "elementwise":
            params = {k: v for k, v in eqn.params.items() if k == "n"}
            outs = list(self.emit(name, args, [type_of(eqn.outs[0].aval.dtype)], params))
            if name == "convert" and args[0].type == "b1":
                self.truth[outs[0]] = args[0]
            if name == "max" and self.not_negative & set(args):
                self.not_negative.update(outs)
            return outs
        if name in ("broadcast", "reshape"):
            return list(args)
        return _LOWER[name](self, eqn.params, args)


def free_values(region: Region) -> set[Value]:
    """Values of outer regions that a region uses."""
    bound, used = set(region.params), set(region.results)
    for op in region.ops:
        used.update(op.args)
        for inner in op.regions:
            used |= free_values(inner)
        bound.update(op.outs)
    return used - bound


# ---- folds ----

def _lower_sweeps(low: LaneLowering, p, args) -> list[Value]:
    n, consts = args[0], args[1:1 + p["n_consts"]]
    if n not in low.not_negative:
        low.fault("lt", n)
    first = args[1 + p["n_consts"]:][:p["carries"][0]]
    out, number = _fold(low, p["bodies"][0], p["reverse"][0], n, consts, first, len(p["bodies"]) > 1)
    if len(p["bodies"]) == 2:
        second = args[1 + p["n_consts"] + p["carries"][0]:]
        out = _unfold(low, p["bodies"][1], n, consts, first, second, number)
    return [x for x, want in zip(out, p["results"]) if want]


def _fold(low, body, reverse, n, consts, inits, save):
    """The fold, and the number of its tape; an equal fold of this region is used again, and has
    at most one reverse."""
    key = (id(low.scopes[-1]), body_key(body), reverse, n, tuple(consts), tuple(inits))
    found = low.folds.get(key)
    if found is None or save and "tape" in found[1]:
        def turn(i, *carry):
            new = low.jaxpr(body, [_as_index(low, i, body), *consts, *carry])
            return _kept(low, n, i, new, carry)
        region, free = low.region(["i64", *[c.type for c in inits]], turn)
        params = {"reverse": int(reverse)}
        outs = low.emit("fold", [_count(low, n), *inits], [c.type for c in inits], params, [region], free)
        found = low.folds[key] = outs, params, len(low.folds)
    outs, params, number = found
    if save:
        params["tape"] = number
    return outs, number


def _unfold(low, body, n, consts, states, cts, number):
    """The backward sweep over the states of fold `number`."""
    def turn(i, *values):
        state, ct = values[:len(states)], values[len(states):]
        new = low.jaxpr(body, [_as_index(low, i, body), *consts, *state, *ct])
        return _kept(low, n, i, new, ct)
    region, free = low.region(["i64", *[s.type for s in states], *[c.type for c in cts]], turn)
    return low.emit("unfold", [_count(low, n), *cts], [c.type for c in cts], {"tape": number}, [region],
                    free | set(states))


def _kept(low, n, i, new, old):
    """With a count of its own in every lane: only lanes that are not done go on."""
    if n.uniform:
        return new
    wide, = low.emit("convert", [n], ["i64"]) if n.type != "i64" else (n,)
    live, = low.emit("lt", [i, wide], ["b1"])
    return [low.emit("select", [live, a, b], [a.type])[0] for a, b in zip(new, old)]


def _count(low, n):
    return n if n.type == "i64" else low.emit("convert", [n], ["i64"])[0]


def _as_index(low, i, body):
    type = type_of(body.in_binders[0].aval.dtype)
    return i if type == "i64" else low.emit("convert", [i], [type])[0]


def body_key(jaxpr: Jaxpr) -> tuple:
    """Equal for bodies that compute the same, whatever their variables are called."""
    jaxpr = optimise(jaxpr)
    number = {v: k for k, v in enumerate(jaxpr.in_binders)}

    def key(atom):
        if type(atom) is Literal:
            return atom.aval.dtype.name, atom.value.data.tobytes()
        return number.setdefault(atom, len(number))
    rows = []
    for eqn in jaxpr.eqns:
        ins = tuple(map(key, eqn.ins))
        rows.append((eqn.prim.name, ins, tuple(map(key, eqn.outs)), tuple(eqn.params.items())))
    return tuple(rows), tuple(map(key, jaxpr.outs))


# ---- maps, loops and branches ----

def _lower_map(low: LaneLowering, p, args) -> list[Value]:
    outs, n_results = low.jaxpr(p["jaxpr"], args), len(p["summed"])
    if p["errors"].n_results:                  # an error code, -1 for none
        low.fault("ge", outs[n_results])
    return outs[:n_results]


def _lower_while(low: LaneLowering, p, args) -> list[Value]:
    consts, inits = args[:p["n_consts"]], args[p["n_consts"]:]
    first = _equal_carries(p["body"], p["n_consts"], inits)
    kept = [k for k, f in enumerate(first) if f == k]
    place = {k: n for n, k in enumerate(kept)}

    def spread(values):
        return [values[place[f]] for f in first]
    types = [inits[k].type for k in kept]
    test, free = low.region(types, lambda *c: low.jaxpr(p["cond"], [*consts, *spread(c)]))

    def turn(*carry):
        new = low.jaxpr(p["body"], [*consts, *spread(carry)])
        return [new[k] for k in kept]
    body, more = low.region(types, turn)
    return spread(low.emit("loop", [inits[k] for k in kept], types, {}, [test, body], free | more))


def _equal_carries(body: Jaxpr, n_consts: int, inits) -> list[int]:
    """For each carry, the first that starts equal and becomes the same value in every turn."""
    outs = optimise(body).outs
    seen: dict = {}
    return [seen.setdefault((init, out if type(out) is not Literal else k), k)
            for k, (init, out) in enumerate(zip(inits, outs))]


def _lower_cond(low: LaneLowering, p, args) -> list[Value]:
    which, operands = _choice(low, args[0]), args[1:]
    no, yes = p["branches"]
    weight = max(program_cost(no), program_cost(yes))
    if weight <= CHEAP:
        pairs = zip(low.jaxpr(yes, operands), low.jaxpr(no, operands))
        return [a if a is b else low.emit("select", [which, a, b], [a.type])[0] for a, b in pairs]
    low.inside_branch += 1
    regions = [low.region([], lambda b=b: low.jaxpr(b, operands)) for b in (yes, no)]
    low.inside_branch -= 1
    types = [r.type for r in regions[0][0].results]
    return list(low.emit("cond", [which], types, {}, [r for r, _ in regions],
                         set().union(*[f for _, f in regions])))


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


_LOWER: dict[str, Callable] = {"sweeps": _lower_sweeps, "while": _lower_while, "cond": _lower_cond,
                               "map": _lower_map}
