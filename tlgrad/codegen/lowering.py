"""Fusion group -> Kernel IR, and what its launch needs.

Only a primitive's `lower` slot is read: ("elementwise", intrinsic) or ("reduction", combine).
Axes of the index space that every operand walks in one run are joined, so most kernels have
rank 1; sizes and strides are words of the launch.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tlgrad.codegen.carrying import carry_results
from tlgrad.codegen.intrinsics import type_of
from tlgrad.codegen.ir import Input, Kernel, Op, Output, SIZES, Value, check_kernel, live_ops, used_values
from tlgrad.codegen.lanes import LaneLowering, can_fold, lane_equation
from tlgrad.core import dtypes
from tlgrad.core.aval import make_aval
from tlgrad.core.jaxpr import Eqn, Jaxpr, Literal, Var
from tlgrad.ops.orders import LEAF
from tlgrad.passes.groups import (Grouping, Step, index_space, reduced_axes, rows_last, squeezed, turn_arrays,
                                  whole_operands)
from tlgrad.passes.views import View, row_major

#: rows shorter than this are joined by copying operands that repeat
SHORT_ROW = 32


@dataclass(slots=True)
class Operand:
    """An array operand of a launch: where it starts in its root, and its strides in entries."""

    root: Var
    view: View
    strides: tuple[int, ...]
    type: str
    copied: bool = False


@dataclass(slots=True)
class Lowered:
    """A kernel with the facts of its launch.  `outs` are the variables that it writes."""

    kernel: Kernel
    inputs: list[Operand]
    outs: list[Var]
    literals: list[Literal]
    sizes: tuple[int, ...]
    #: how many of the first results say whether lanes failed
    flags: int = 0


class Lowerable:
    """Tells which equations of a program can be part of a kernel."""

    def __init__(self, jaxpr: Jaxpr):
        self.makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outs}
        #: answers for elementwise equations, which depend on these words alone
        self.known: dict[tuple, bool] = {}

    def __call__(self, eqn: Eqn) -> bool:
        if not eqn.prim.lower or not eqn.outs:
            return False
        if eqn.prim.lower[0] != "elementwise":
            return self.decide(eqn)
        key = (eqn.prim, *[v.aval for v in (*eqn.outs, *eqn.ins)], *eqn.params.items())
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.decide(eqn)
        return found

    def decide(self, eqn: Eqn) -> bool:
        """The answer for one equation."""
        if eqn.prim.name in REDUCTIONS:
            return _can_reduce(eqn, type_of(eqn.ins[0].aval.dtype))
        space = index_space(eqn)
        if eqn.prim.lower[0] not in ("elementwise", "control", "map"):
            return False
        if eqn.prim.name == "sweeps":
            return can_fold(eqn, space)
        return (all(squeezed(v.aval.shape) == space for v in eqn.outs)
                and lane_equation(eqn, space, self.makers))


#: reductions that kernels run, with the types they take
_NUMBERS = "f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64".split()
REDUCTIONS = {"reduce_sum": _NUMBERS, "reduce_prod": _NUMBERS, "reduce_max": ["b1", *_NUMBERS],
              "reduce_min": ["b1", *_NUMBERS], "reduce_any": ["b1"], "reduce_all": ["b1"]}


def _can_reduce(eqn, type) -> bool:
    from_axes = eqn.ins[0].aval.shape
    order = eqn.params.get("order", "ordered")
    space, reduced = squeezed(from_axes), reduced_axes(eqn)
    leaf = order == "tree" and len(eqn.ins) == 1 and prod(space[a] for a in reduced) <= LEAF
    if type not in REDUCTIONS[eqn.prim.name] or order not in ("ordered", "fused") and not leaf:
        return False
    whole = len(reduced) == len(space)
    empty = 0 in space and eqn.prim.name in ("reduce_max", "reduce_min")
    if empty or any(start.aval.shape for start in eqn.ins[1:]) or not reduced and space:
        return False
    return whole or rows_last(space, reduced) is not None


class GroupLowering:
    """Builds the kernel of one step."""

    def __init__(self, grouping: Grouping, step: Step, wanted: set[Var]):
        self.grouping, self.step, self.wanted = grouping, step, wanted
        self.space = step.space
        self.own = {v for e in (*step.uniforms, *step.eqns) for v in e.outs}
        self.values: dict = {}
        self.inputs: dict[View, Value] = {}
        self.tables: dict[View, Value] = {}
        self.turned: dict[View, Value] = {}
        self.low = LaneLowering()

    def lower(self) -> Lowered:
        """The kernel and its launch."""
        finals = []
        for eqn in (*self.step.uniforms, *self.step.eqns):
            if eqn.prim.kind == "reduction":
                finals.append((eqn, *[self.read(a) for a in eqn.ins]))
            else:
                whole, array = whole_operands(eqn), self.turns if eqn.prim.name == "sweeps" else self.table
                outs = self.low.equation(eqn, [array(a) if k in whole else self.read(a)
                                               for k, a in enumerate(eqn.ins)])
                self.values.update(zip(eqn.outs, outs, strict=True))
        turned = {e.outs[k] for e in self.step.eqns for k in turn_arrays(e)[1]}
        stores = [v for e in self.step.eqns if e.prim.kind != "reduction"
                  for v in e.outs if v in self.wanted or v in turned]
        outputs = [Output(self.values[v], "turns" if v in turned else "store") for v in stores]
        outputs += [Output(x, eqn.prim.lower[1], *start) for eqn, x, *start in finals]
        outs = [*stores, *[eqn.outs[0] for eqn, *_ in finals]]
        flags = self.flags()
        outputs[:0] = [out for out, _ in flags]
        outs[:0] = [Var(make_aval(shape, dtypes.bool_)) for _, shape in flags]
        return self.launch(outputs, outs, len(flags))

    def flags(self) -> list[tuple[Output, tuple]]:
        """Results that say whether some lane, or all, cannot go on, with their shapes."""
        found, low = [], self.low
        if low.faulty:
            flag = Value("b1")
            low.ops.append(Op("faulted", (), (flag,)))
            found.append((Output(flag), self.space))
        if low.uniform_faults:
            flag = low.uniform_faults[0]
            for other in low.uniform_faults[1:]:
                flag, = low.emit("or", [flag, other], ["b1"])
            found.append((Output(flag, "once"), ()))
        return found

    def table(self, atom) -> Value:
        """A whole array, of which lanes read entries."""
        view = self.grouping.view(atom)
        if view not in self.tables:
            self.tables[view] = Value(type_of(atom.aval.dtype))
        return self.tables[view]

    def turns(self, atom) -> Value:
        """An array of which a loop takes one entry a turn; the same one for all lanes where it has no lanes."""
        view = self.grouping.view(atom)
        if view not in self.turned:
            self.turned[view] = Value(type_of(atom.aval.dtype), not squeezed(atom.aval.shape[1:]))
        return self.turned[view]

    def read(self, atom) -> Value:
        """The scalar of an operand: computed here, an argument, or an entry of an array."""
        if atom in self.values:
            return self.values[atom]
        value = self.values[atom] = self.operand(atom)
        return value

    def operand(self, atom) -> Value:
        """`read` of an operand that is read for the first time."""
        view = self.grouping.view(atom)
        if view.root in self.own:
            return self.values[view.root]
        if isinstance(view.root, Literal):
            return self.low.literal(view.root)
        type = type_of(atom.aval.dtype)
        strides = view.on_space() if squeezed(view.shape) == self.space else (0,) * len(self.space)
        if self.space == (1,) and strides == (0,) and view.root.aval.shape:
            strides = (1,)                     # one entry is a lane where several are
        place = View(view.root, self.space, strides, view.offset)
        if place not in self.inputs:
            self.inputs[place] = Value(type, not any(strides))
        return self.inputs[place]

    def launch(self, outputs, outs, flags) -> Lowered:
        space = self.space
        operands = [Operand(p.root, p, p.strides, v.type) for p, v in self.inputs.items()]
        nest, boundary = _nest(space, self.step.reduced)
        sizes = _join(space, operands, nest, boundary)
        entries = [Input(v, "row" if v.uniform else _access(o, len(sizes)))
                   for v, o in zip(self.inputs.values(), operands)]
        arrays = [*self.tables.items(), *self.turned.items()]
        operands += [Operand(v.root, v, (), x.type, isinstance(v.root, Literal) or not v.contiguous)
                     for v, x in arrays]
        entries += [Input(x, "table", len(v.shape)) for v, x in self.tables.items()]
        entries += [Input(x, "turns") for x in self.turned.values()]
        ops = live_ops(self.low.ops, {v for o in outputs for v in (o.value, o.start) if v is not None})
        kernel = Kernel(nest, len(sizes), entries, [], carry_results(ops), outputs)
        used = used_values(kernel)
        literals = [(lit, v) for lit, v in self.low.literals.values() if v in used]
        kernel.literals = [v for _, v in literals]
        return Lowered(check_kernel(kernel), operands, outs, [lit for lit, _ in literals], sizes, flags)


def _nest(space, reduced):
    """The loop nest, and the axis at which reduced and kept axes meet."""
    if reduced is None or len(reduced) == len(space):
        return "lanes", None
    if rows_last(space, reduced):
        return "rows", len(space) - len(reduced)
    return "columns", len(reduced)


def _join(space, operands, nest, boundary) -> tuple[int, ...]:
    """Join axes that all operands walk in one run; rewrites the strides of the operands.

    In nests with a boundary two axes are left; operands that do not allow it are copied.
    """
    cuts = {boundary} if boundary else set()
    for o in operands:
        if nest != "lanes" and not _joins(space, o.strides, cuts):
            o.copied, o.strides = True, row_major(space)
    groups = _runs(space, [o.strides for o in operands], cuts)
    inner = prod(space[d] for d in groups[-1]) if groups else 1
    if nest == "lanes" and len(groups) > 1 and inner < SHORT_ROW:
        for o in operands:
            if any(o.strides) and o.strides != row_major(space):
                o.copied, o.strides = True, row_major(space)
        groups = _runs(space, [o.strides for o in operands], cuts)
    for o in operands:
        o.strides = tuple(o.strides[g[-1]] for g in groups) if any(o.strides) else (0,) * len(groups)
    return tuple(prod(space[d] for d in g) for g in groups) or (1,)


def _joins(space, strides, cuts) -> bool:
    return len(_runs(space, [strides], cuts)) <= len(cuts) + 1


def _runs(space, all_strides, cuts) -> list[list[int]]:
    """Axes in runs that every operand (and row-major storage) walks with one step."""
    groups: list[list[int]] = []
    for d, n in enumerate(space):
        joins = groups and d not in cuts and (0 in space or all(
            s[groups[-1][-1]] == s[d] * n for s in all_strides))
        if joins:
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _access(operand: Operand, rank: int) -> str:
    inner = operand.strides[rank - 1] if operand.strides else 0
    return {1: "lanes", 0: "row"}.get(inner, "strided")


def literal_word(literal: Literal) -> int:
    """The bits of a number as a signed 64-bit word; a 16-bit float keeps its 16 bits."""
    raw = literal.value.data.tobytes()[:8]
    return int.from_bytes(raw.ljust(8, b"\0"), "little", signed=True)


def lane_bytes(kernel: Kernel) -> int:
    """Bytes of the widest type that the lanes of a kernel hold; where there are loops that end by lane,
    of those in the loops, which is where the time goes."""
    loops = ended_by_lane(kernel)
    if loops:
        types = {r.type for op in loops for region in op.regions for r in region.results if r.type != "b1"}
        types |= {t for op in loops for region in op.regions for t in _types(region.ops) if t != "b1"}
    else:
        types = {i.value.type for i in kernel.inputs if not i.value.uniform and i.access != "table"}
        types |= {o.value.type for o in kernel.outputs} | _types(kernel.ops)
    return max((SIZES[t] for t in types), default=4)


def ended_by_lane(kernel: Kernel) -> list[Op]:
    """The loops for which lanes are packed together: those in no other region, in nest "lanes"."""
    return [op for op in kernel.ops if op.name == "loop"] if kernel.nest == "lanes" else []


def _types(ops) -> set[str]:
    found = {v.type for op in ops if not op.uniform for v in (op.outs[1:] if op.name == "loop" else op.outs)}
    for op in ops:
        for region in op.regions:
            found |= _types(region.ops)
    return found
