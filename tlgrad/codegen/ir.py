"""Kernel IR: a typed scalar program over an index space, the form that every renderer reads.

    kernel  := name(nest, rank) { input* literal* op* output* }
    input   := v : t @ access          one entry of an array per lane; access lanes | row | strided;
                                       access table: a whole array, for ``read``;
                                       access turns: an array of turns by lanes, for ``take v turn``
    literal := v : t                   a number that is an argument of the launch
    op      := v : t = name[params] v...
             | v... = name[params] v... { region } ...     fold, unfold, unfold_within,
                                                       loop, cond
    region  := { v... op* in v... }
    output  := store v | add v         an array entry per lane | an ordered sum
             | once v                  one number, the same for every lane
             | turns v : t             an array of turns by lanes, for ``put v turn x``
    t       := b1 i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64

Sizes, strides, trip counts and numbers are not in the text: they are words of the launch.
``fold`` and the ``unfold``s with its tape are a tower: the region of each takes the turn, then what the
sweeps before it carried when they came to that turn, then its own carries.
A value is `uniform` (!) when it is the same for every lane.  The first value of the regions of folds
and loops is the number of the turn.  ``turns v... = loop v... {test} {body}`` gives, by lane, the turns
made and the values after them.

    nest "lanes"    rows of lanes; an `add` output runs over all lanes of a single row
    nest "rows"     an `add` output runs along each row, many rows side by side
    nest "columns"  an `add` output runs over the rows, lanes side by side
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tlgrad.errors import KernelError

#: kernel type -> bytes in memory
SIZES = {"b1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
         "f16": 2, "f32": 4, "f64": 8}
NESTS = ("lanes", "rows", "columns")
ACCESS = ("lanes", "row", "strided", "table", "turns")
COMBINES = ("add", "max", "min", "mul", "and", "or")


class Value:
    """One scalar of the program: its type, and whether every lane has the same."""

    __slots__ = ("type", "uniform", "number")

    def __init__(self, type: str, uniform: bool = False):
        self.type, self.uniform, self.number = type, uniform, -1

    def __repr__(self):
        return f"v{self.number}:{self.type}"


@dataclass(eq=False, slots=True)
class Op:
    """``outs = name[params] args``; `regions` are nested bodies (loops, branches)."""

    name: str
    args: tuple[Value, ...]
    outs: tuple[Value, ...]
    params: dict[str, Any] = field(default_factory=dict)
    regions: tuple["Region", ...] = ()

    @property
    def uniform(self) -> bool:
        return bool(self.outs) and all([v.uniform for v in self.outs])


@dataclass(eq=False, slots=True)
class Region:
    """A nested body.  It may use values of the regions around it."""

    params: tuple[Value, ...]
    ops: list[Op]
    results: tuple[Value, ...]


@dataclass(eq=False, slots=True)
class Input:
    """An array operand: `value` is the entry of the current lane."""

    value: Value
    access: str
    #: axes of a table
    rank: int = 0


@dataclass(eq=False, slots=True)
class Output:
    """`mode` "store" writes `value` per lane, "once" a uniform one; "turns" is an array that the turns of
    a loop write; another mode is the combination of a reduction."""

    value: Value
    mode: str = "store"
    start: Value | None = None


@dataclass(eq=False, slots=True)
class Kernel:
    """A kernel.  `literals` are uniform values whose words come with the launch."""

    nest: str
    rank: int
    inputs: list[Input]
    literals: list[Value]
    ops: list[Op]
    outputs: list[Output]

    def text(self) -> str:
        """The kernel as text; equal texts are equal programs."""
        return "\n".join(_Printer(self).lines())


def all_ops(ops: list[Op]):
    """The operations and those of nested regions."""
    for op in ops:
        yield op
        for region in op.regions:
            yield from all_ops(region.ops)


def count_ops(ops: list[Op], cost=lambda name: 1) -> int:
    """How many operations there are, nested ones included, weighted by `cost`, a function of their names."""
    return sum(cost(op.name) for op in all_ops(ops))


def free_values(region: Region) -> set[Value]:
    """Values of outer regions that a region uses."""
    bound, used = set(region.params), set(region.results)
    for op in region.ops:
        used.update(op.args)
        for inner in op.regions:
            used |= free_values(inner)
        bound.update(op.outs)
    return used - bound


def used_values(kernel: Kernel) -> set[Value]:
    """Values that some operation, region or output reads."""
    used = {v for out in kernel.outputs for v in (out.value, out.start) if v is not None}

    def visit(ops):
        for op in ops:
            used.update(op.args)
            for region in op.regions:
                used.update(region.results)
                visit(region.ops)
    visit(kernel.ops)
    return used


def live_ops(ops: list[Op], wanted: set[Value]) -> list[Op]:
    """The operations that `wanted` values need, and those that note what a lane cannot do."""
    live, kept = set(wanted), []
    for op in reversed(ops):
        if live.isdisjoint(op.outs) and not _noting(op):
            continue
        for region in op.regions:
            region.ops[:] = live_ops(region.ops, set(region.results))
            live |= free_values(region)
        live.update(op.args)
        kept.append(op)
    return kept[::-1]


def _noting(op: Op) -> bool:
    return op.name in ("fault", "read", "put") or "tape" in op.params or bool(op.regions) and any(
        _noting(inner) for region in op.regions for inner in region.ops)


# ---- text ----

class _Printer:
    def __init__(self, kernel: Kernel):
        self.kernel, self.count = kernel, 0

    def bind(self, value: Value) -> str:
        value.number = self.count
        self.count += 1
        return f"v{value.number}:{value.type}" + ("!" if value.uniform else "")

    def lines(self) -> list[str]:
        k = self.kernel
        lines = [f"kernel nest={k.nest} rank={k.rank}"]
        lines += [f"  input {self.bind(i.value)} @ {i.access}{i.rank or ''}" for i in k.inputs]
        lines += [f"  literal {self.bind(v)}" for v in k.literals]
        lines += [f"  turns {self.bind(o.value)}" for o in k.outputs if o.mode == "turns"]
        self.ops(k.ops, lines, "  ")
        for out in k.outputs:
            if out.mode == "turns":
                continue
            start = f" from v{out.start.number}" if out.start else ""
            lines.append(f"  {out.mode} v{out.value.number}{start}")
        return lines

    def ops(self, ops, lines, indent):
        for op in ops:
            params = ",".join(f"{k}={v}" for k, v in sorted(op.params.items())) if op.params else ""
            args = " ".join([f"v{a.number}" for a in op.args])
            inner = []
            for region in op.regions:
                head = " ".join(self.bind(p) for p in region.params)
                inner.append(f"{indent}  {{ {head}")
                self.ops(region.ops, inner, indent + "    ")
                inner.append(f"{indent}    in {' '.join(f'v{r.number}' for r in region.results)} }}")
            outs = " ".join([self.bind(v) for v in op.outs])
            lines.append(f"{indent}{outs} = {op.name}{f'[{params}]' if params else ''} {args}".rstrip())
            lines += inner


# ---- validation ----

def check_kernel(kernel: Kernel) -> Kernel:
    """Check scopes, types and modes; KernelError names the operation.  Returns the kernel."""
    if kernel.nest not in NESTS or kernel.rank < 1 or kernel.nest != "lanes" and kernel.rank != 2:
        raise KernelError(f"a kernel has nest {kernel.nest!r} and rank {kernel.rank}")
    scope: set[Value] = set()
    for entry in kernel.inputs:
        if entry.access not in ACCESS:
            raise KernelError(f"an input has access {entry.access!r}")
        _bind(entry.value, scope)
    for value in (*kernel.literals, *[o.value for o in kernel.outputs if o.mode == "turns"]):
        _bind(value, scope)
    _check_ops(kernel.ops, scope)
    for out in kernel.outputs:
        if out.value not in scope or out.start is not None and out.start not in scope:
            raise KernelError(f"an output {out.mode} uses an unbound value")
        if out.mode not in ("store", "once", "turns", *COMBINES):
            raise KernelError(f"an output has mode {out.mode!r}")
    return kernel


def _bind(value: Value, scope: set[Value]):
    if value in scope or value.type not in SIZES:
        raise KernelError(f"a value of type {value.type!r} is bound twice or has no type")
    scope.add(value)


def _check_ops(ops: list[Op], scope: set[Value]):
    for op in ops:
        for arg in op.args:
            if arg not in scope:
                raise KernelError(f"{op.name} uses a value before it is bound")
        for region in op.regions:
            inner = set(scope)
            for param in region.params:
                _bind(param, inner)
            _check_ops(region.ops, inner)
            if any(r not in inner for r in region.results):
                raise KernelError(f"a region of {op.name} returns an unbound value")
        if op.uniform and not all([a.uniform for a in op.args]):
            raise KernelError(f"{op.name} is marked uniform but depends on the lane")
        for value in op.outs:
            _bind(value, scope)


# ---- the words of a launch ----

def slots_of(kernel: Kernel) -> list[tuple]:
    """What each 64-bit word of a launch holds, in order.

    ("in", k) and ("out", k) are addresses; ("literal", k) the bits of a number; ("size", d) the
    extent of axis d; ("stride", operand, d) bytes between neighbours of an operand (inputs, then
    outputs) along axis d; ("extent", k, d) the size of axis d of a table; ("turn", operand) bytes
    from one turn to the next.
    """
    slots: list[tuple] = [("in", k) for k in range(len(kernel.inputs))]
    slots += [("out", k) for k in range(len(kernel.outputs))]
    slots += [("literal", k) for k in range(len(kernel.literals))]
    slots += [("size", d) for d in range(kernel.rank)]
    for k, entry in enumerate(kernel.inputs):
        if entry.access == "table":
            slots += [("extent", k, d) for d in range(entry.rank)]
        elif entry.access == "turns":
            slots += _turn_slots(k, 0 if entry.value.uniform else kernel.rank)
        elif not entry.value.uniform:
            outer = range(kernel.rank - 1)
            slots += [("stride", k, d) for d in outer]
            if entry.access == "strided":
                slots.append(("stride", k, kernel.rank - 1))
    for k, out in enumerate(kernel.outputs):
        if out.mode == "store":
            slots += [("stride", len(kernel.inputs) + k, d) for d in range(kernel.rank - 1)]
        if out.mode == "turns":
            slots += _turn_slots(len(kernel.inputs) + k, kernel.rank)
    return slots


def _turn_slots(operand: int, rank: int) -> list[tuple]:
    return [*[("stride", operand, d) for d in range(rank - 1)], ("turn", operand)]
