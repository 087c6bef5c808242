"""Operations of a kernel on U vectors of L lanes: a lane value is a list of U handles."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable

from tlgrad.backends.numba_cpu import scalars
from tlgrad.backends.numba_cpu.abreast import groups
from tlgrad.backends.numba_cpu.emitter import REGISTER, Emitter
from tlgrad.backends.numba_cpu.faults import FAULTS
from tlgrad.backends.numba_cpu.memory import Memory
from tlgrad.backends.numba_cpu.regions import REGIONS
from tlgrad.backends.numba_cpu.revolve import fold, unfold_within
from tlgrad.backends.numba_cpu.towers import split, unfold
from tlgrad.backends.numba_cpu.turnwise import put, take
from tlgrad.codegen.ir import Op, Value
from tlgrad.kernels.elementary import FUNCTIONS, has_pairs, render_abreast

#: operation name -> function of (body, op), for those that are more than a scalar instruction
OPERATIONS: dict[str, Callable] = {**REGIONS, **FAULTS, "fold": fold, "unfold": unfold,
                                   "unfold_within": unfold_within, "take": take, "put": put}


class Body:
    """Emits operations into an `Emitter`; `env` maps a Value to its handles."""

    def __init__(self, emitter: Emitter, unroll: int, used: set[Value]):
        self.e, self.unroll = emitter, unroll
        self.env: dict[Value, list[str]] = {}
        #: values that something reads
        self.used = used
        #: one byte a lane: set when the lane could not go on; masks of the lanes that are at work
        self.faults: list[str] = []
        self.active: list[str] | None = None
        #: tables by value: address and extents
        self.tables: dict[Value, tuple[str, list[str]]] = {}
        #: arrays that turns read and write, by value: what `turnwise` places in the block at hand
        self.turned: dict[Value, Any] = {}
        #: 1 where turns are made in the order of their numbers, else -1
        self.onward = 1
        #: by the number of a tape: the sweeps of the tower, what runs them, how many states may be kept
        self.sweeps: dict[int, list[Op]] = {}
        self.towers: dict[int, Any] = {}
        self.limits: dict[int, Value] = {}
        self.memory = Memory(emitter)
        #: an ordered sum that the turns of folds go on with
        self.behind: Any = None

    def set(self, value: Value, handles):
        """Bind a value; a uniform one has one handle, used by all vectors."""
        self.env[value] = list(handles) * (self.unroll // len(handles))

    @contextmanager
    def sum_waits(self):
        """Inside, turns of folds do not go on with an ordered sum."""
        behind, self.behind = self.behind, None
        try:
            yield
        finally:
            self.behind = behind

    def bind(self, values, handles: list[str]):
        """Bind values to the handles of all, one after the other."""
        for v, mine in zip(values, split(handles, self.unroll), strict=True):
            self.set(v, mine)

    def run(self, ops: list[Op]):
        """Emit operations, leaving out those that are bound already."""
        ops = [op for op in ops if not (op.outs and op.outs[0] in self.env)]
        if self.unroll == 1 and not any(op.name in OPERATIONS for op in ops):
            for group in groups(ops, self.in_pairs):
                self.abreast(group) if len(group) > 1 else self.simple(group[0])
            return
        for op in ops:
            OPERATIONS.get(op.name, Body.simple)(self, op)

    def in_pairs(self, op: Op) -> bool:
        """Whether an operation is a function with a body in pairs."""
        return op.name in FUNCTIONS and op.args[0].type == "f32" and has_pairs(op.name, self.e)

    def abreast(self, group: list[Op]):
        """Functions that need none of each other's results."""
        calls = [(op.name, self.e.value(self.env[op.args[0]][0], "f32")) for op in group]
        for op, result in zip(group, render_abreast(calls), strict=True):
            self.set(op.outs[0], [result.handle])

    def simple(self, op: Op):
        """One operation without regions."""
        types = [a.type for a in op.args]
        out = op.outs[0]
        count = 1 if out.uniform else self.unroll
        self.set(out, [scalars.apply(self.e, op.name, types, [self.env[a][u] for a in op.args],
                                     out.type, op.params) for u in range(count)])

    def region(self, region, handles: list[list[str]]) -> list[list[str]]:
        """Emit a nested body once more with its parameters bound."""
        keep, self.env = self.env, dict(self.env)
        self.env.update(zip(region.params, handles, strict=True))
        self.run(region.ops)
        out = [list(self.env[r]) for r in region.results]
        self.env = keep
        return out

    def loop(self, count, turn, carried) -> list[str]:
        """The loop of a fold."""
        return (self.behind or self.e).loop(count, turn, carried)

    def splat(self, x, type):
        """One number in every lane."""
        if self.e.lanes == 1:
            return x
        vector, scalar = self.e.type(type), REGISTER[type]
        first = self.e.emit(f"insertelement {vector} poison, {scalar} {x}, i64 0")
        return self.e.emit(f"shufflevector {vector} {first}, {vector} poison, "
                           f"<{self.e.lanes} x i32> zeroinitializer")
