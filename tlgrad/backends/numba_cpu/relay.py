"""A reduction over all lanes on several threads, tile by tile: `tlgrad.kernels.tiles.relay`."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import Callable

import numpy as np

from tlgrad.backends.numba_cpu.buffers import allocate
from tlgrad.backends.numba_cpu.combine import start_number
from tlgrad.backends.numba_cpu.facts import duration, launch_facts, weight
from tlgrad.backends.numba_cpu.kernels import Compiled, build, compile_kernel
from tlgrad.backends.numba_cpu.shares import block_of, is_whole
from tlgrad.backends.numba_cpu.team import shared
from tlgrad.backends.numba_cpu.threads import threads_for
from tlgrad.codegen.intrinsics import type_of
from tlgrad.codegen.ir import COMBINES, SIZES, Input, Kernel, Output, Value
from tlgrad.codegen.lowering import Lowered, Operand
from tlgrad.kernels.tiles.bands import WORD
from tlgrad.kernels.tiles.relay import READY, RING, module
from tlgrad.passes.groups import Grouping, Step
from tlgrad.passes.views import view_of

#: bytes of the terms of one reduction in a tile; a row is part of one tile, and may have this many times more
TILE_BYTES, LONG_ROW = 1 << 15, 4
#: tiles that a thread gets, if lanes are few
TILES = 8
#: tiles whose terms may wait, for each thread
PIECES = 4
#: instructions on a lane from which threads gain: the sum alone, in order, takes as long as some forty
LEAST = 60
#: the number of the kernel's first operand
FIRST = 3
ALIGN, BYTE = 64, np.dtype(np.uint8)


def relay_of(grouping: Grouping, step: Step, lowered: Lowered) -> Relay | None:
    """The relay of a kernel that is whole, where it pays, and where it does not make what its reductions start
    from."""
    kernel = lowered.kernel
    if not is_whole(kernel) or weight(lowered) < LEAST:
        return None
    count, row = threads_for(duration(lowered), launch_facts(lowered)[2]), _row(lowered)
    alike = any(op.uniform and op.regions for op in kernel.ops)            # loops that every tile would run
    starts = [grouping.view(a).root for eqn in step.eqns if eqn.prim.kind == "reduction" for a in eqn.ins[1:]]
    own = {v for eqn in (*step.uniforms, *step.eqns) for v in eqn.outs}
    if count == 1 or alike or 4 * row > LONG_ROW * TILE_BYTES or own & set(starts):
        return None
    return Relay(lowered, count)


def _row(lowered: Lowered) -> int:
    """The lanes of one unit of a launch."""
    return lowered.sizes[-1] if lowered.kernel.rank > 1 else 1


class Relay:
    """The kernels of a reduction over all lanes, and how they are launched on `count` threads."""

    def __init__(self, lowered: Lowered, count: int):
        kernel = lowered.kernel
        self.lowered, self.count = lowered, count
        self.row = _row(lowered)
        self.reduced = [k for k, o in enumerate(kernel.outputs) if o.mode in COMBINES]
        self.outputs = [kernel.outputs[k] for k in self.reduced]
        self.starts = [Value(o.value.type, True) for o in self.outputs]

    @property
    def terms(self) -> Lowered:
        """The kernel that stores the terms."""
        return self._with([], [replace(o, mode="store", start=None) for o in self.outputs])

    @property
    def both(self) -> Lowered:
        """The kernel that goes on with the reductions from what they came to."""
        operands = [Operand(self.lowered.outs[k], view_of(self.lowered.outs[k]), (), v.type)
                    for k, v in zip(self.reduced, self.starts)]
        return self._with(operands, [replace(o, start=v) for o, v in zip(self.outputs, self.starts)])

    def _with(self, operands: list[Operand], outputs: list[Output]) -> Lowered:
        kernel, new = self.lowered.kernel, dict(zip(self.reduced, outputs))
        inputs = [*kernel.inputs, *[Input(v, "row") for v, _ in zip(self.starts, operands)]]
        outs = [new.get(k, o) for k, o in enumerate(kernel.outputs)]
        return replace(self.lowered, kernel=replace(kernel, inputs=inputs, outputs=outs),
                       inputs=[*self.lowered.inputs, *operands])

    def sum(self) -> Kernel:
        """The kernel that goes on with the reductions by stored terms."""
        terms = [Value(o.value.type) for o in self.outputs]
        inputs = [*[Input(v, "lanes") for v in terms], *[Input(v, "row") for v in self.starts]]
        return Kernel("lanes", 1, inputs, [], [],
                      [Output(v, o.mode, start) for v, o, start in zip(terms, self.outputs, self.starts)])

    def height(self, lanes: int) -> int:
        """Rows of a tile: whole blocks of the kernel of the terms."""
        lane = self.row * max(SIZES[v.type] for v in self.starts)
        block = block_of(self.terms.kernel)
        most = min(TILE_BYTES // lane, -(-lanes // (self.count * TILES)))
        return max(most // block, 1) * block

    def placed(self, plan, step: Step) -> Callable:
        """The function of the arrays of the kernel that launches it, in a plan, after lines that write what the
        reductions start from."""
        for eqn in step.eqns:
            if eqn.prim.kind == "reduction":
                number = start_number(eqn.prim.lower[1], type_of(eqn.ins[0].aval.dtype))
                start = plan.array(plan.grouping.view(eqn.ins[1])) if len(eqn.ins) > 1 else plan.constant(number)
                plan.lines.append(f"{plan.names[eqn.outs[0]]}[...] = {start}")
        plan.kernels.append((self.lowered, self.compile(plan.origin, len(plan.kernels))))
        return self.launch()

    def compile(self, origin, number: int) -> Compiled:
        """Compile the kernels; the kernel that does all, under its own text."""
        self.compiled = [compile_kernel(self.terms.kernel), compile_kernel(self.sum()),
                         compile_kernel(self.both.kernel, origin, number)]
        return Compiled(self.compiled[2].name, self.compiled[2].address, self.lowered.kernel.text())

    def launch(self) -> Callable:
        """The function of the arrays of the kernel; the task has those of the program and the ring before them."""
        *_, lanes, _ = launch_facts(self.lowered)
        height, first = self.height(lanes), FIRST + len(self.lowered.inputs)
        outs = [(first + k, 0, 0) for k in range(len(self.lowered.outs))]
        results, kept, room = [outs[k] for k in self.reduced], [], 0
        for v in self.starts:
            step = self.row * SIZES[v.type]
            kept.append((FIRST - 1, room, step))
            room += -(-step * height // ALIGN) * ALIGN
        stored = dict(zip(self.reduced, kept))
        slots = [self._slots(self.terms, [], [stored.get(k, out) for k, out in enumerate(outs)]),
                 [*kept, *results, *results, (WORD, 0, 0)], self._slots(self.both, results, outs)]
        program = [len(slots), height, max(map(len, slots))]
        for found, lanes_a_row, mine in zip(self.compiled, (1, self.row, 1), slots):
            program += [found.address, lanes_a_row, len(mine), *sum(mine, ())]
        pieces = PIECES * self.count
        own = [room, pieces, *[0] * (READY - RING - 1 + pieces)]
        run = shared(relay_kernel(), self.count, own, [0] * (first - 1 + len(outs)), [], 0, lanes)
        program, ring = np.array(program, np.int64), (room * pieces,)
        return lambda *arrays: run(program, allocate(ring, BYTE), *arrays)

    def _slots(self, lowered: Lowered, starts, outs) -> list[tuple[int, int, int]]:
        """The slots of a kernel with operands after its own, and with these results."""
        offsets, words, *_ = launch_facts(lowered)
        ins = [(FIRST + k, offset, 0) for k, offset in enumerate(offsets[:len(self.lowered.inputs)])]
        return [*ins, *starts, *outs, *[(WORD, word, 0) for word in words]]


@functools.cache
def relay_kernel() -> int:
    """The address of the kernel that runs others tile by tile."""
    return build(module("tlgrad_relay"), "tlgrad_relay")
