"""Neighbouring kernels over one set of rows as one launch, band by band (`tlgrad.kernels.tiles.bands`).

A softmax is four kernels: the greatest of each row, what is taken off it, the exponentials and their sum, the
quotients.  Band by band, the array is read once and written once.
"""
from __future__ import annotations

import functools
from math import prod

import numpy as np

from tlgrad.backends.numba_cpu.facts import launch_facts
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.codegen.ir import COMBINES, SIZES
from tlgrad.codegen.lowering import Lowered, Operand
from tlgrad.core.jaxpr import Var
from tlgrad.kernels.tiles.bands import module
from tlgrad.passes.groups import Grouping, Step, found
from tlgrad.passes.views import row_major

#: rows of a band are a multiple of this: a vector's lanes of rows go side by side
TOGETHER = 16
#: bytes of all arrays in a band: about what stays in the second cache, and what is not worth it
BAND_BYTES, MOST_BYTES = 1 << 18, 1 << 20
ALIGN = 64


class Bands:
    """Kernels that wait to be launched together.  `rows` is the number of their rows, `widths` says how many
    entries a row has of each array that they make."""

    def __init__(self):
        self.members: list[tuple[Step, Lowered]] = []
        self.rows = self.row_bytes = self.cost = 0
        self.widths: dict[Var, int] = {}

    def takes(self, lowered: Lowered) -> bool:
        """True when a kernel reads what these make, each row what is in the same row."""
        kernel, sizes = lowered.kernel, lowered.sizes
        if not self.rows and len(self.members) == 1 and kernel.nest == "rows":
            self._start(sizes[0])
        if not self.rows or not _by_rows(lowered) or _lanes(lowered) % self.rows:
            return False
        made = [o for o in lowered.inputs if o.root in self.widths]
        bytes = self.row_bytes + _bytes(lowered, prod(sizes) // self.rows)
        return bool(made) and bytes * TOGETHER <= MOST_BYTES and kernel.nest != "columns" and all(
            self._in_row(o, sizes) for o in made)

    def _in_row(self, operand: Operand, sizes) -> bool:
        """True when row r of the kernel reads entries of row r of the operand only."""
        if operand.copied or operand.view.offset:
            return False
        width, outer = self.widths[operand.root], sizes[:-1] if len(sizes) > 1 else sizes
        step, rest = divmod(width * self.rows, prod(outer))
        inner = operand.strides[-1] if len(sizes) > 1 else 0
        return (not rest and operand.strides[:len(outer)] == tuple(s * step for s in row_major(outer))
                and (inner == 0 or inner == 1 and sizes[-1] <= step))

    def add(self, step: Step, lowered: Lowered):
        """One more kernel; the first reduction along rows says what the rows are."""
        self.members.append((step, lowered))
        if self.rows:
            self._count(step, lowered)
        elif len(self.members) == 1 and lowered.kernel.nest == "rows":
            self._start(lowered.sizes[0])

    def _start(self, rows: int):
        """The rows, where the only kernel so far has them."""
        step, lowered = self.members[0]
        if rows > 1 and _by_rows(lowered) and _lanes(lowered) % rows == 0:
            self.rows = rows
            self._count(step, lowered)

    def _count(self, step: Step, lowered: Lowered):
        width = prod(lowered.sizes) // self.rows
        self.row_bytes += _bytes(lowered, width)
        self.cost += prod(lowered.sizes) * max(step.weight, 1)
        self.widths |= {v: 1 if o.mode in COMBINES else width
                        for v, o in zip(lowered.outs, lowered.kernel.outputs)}

    def kept(self, grouping: Grouping, results: set[Var]) -> set[Var]:
        """What is made here and read elsewhere, or a result of the program."""
        own = {step for step, _ in self.members}
        return {v for v in self.widths if v in results
                or any(found(s) not in own for s in grouping.readers.get(v, ()))}

    def program(self, compiled, kept: set[Var]) -> tuple[np.ndarray, list, int]:
        """The words of the launch; its operands after the program and the memory for a band; bytes of that."""
        height = max(BAND_BYTES // self.row_bytes // TOGETHER, 1) * TOGETHER
        operands, places, room, kernels = [], {}, 0, []
        for (_, lowered), code in zip(self.members, compiled):
            offsets, words, lanes, _ = launch_facts(lowered)
            slots = []
            for operand, offset in zip(lowered.inputs, offsets):
                if operand.root not in places or operand.copied:
                    key = operand if operand.copied else operand.root
                    operands.append(key)
                    slots.append((1 + len(operands), offset, 0))
                    if key is operand.root:
                        places[key] = slots[-1][0], 0, 0
                    continue
                number, start, step = places[operand.root]
                slots.append((number, start + offset, step))
            for var, out in zip(lowered.outs, lowered.kernel.outputs):
                step = self.widths[var] * SIZES[out.value.type]
                if var in kept:
                    operands.append(var)
                    places[var] = 1 + len(operands), 0, 0
                else:
                    places[var] = 1, room, step
                    room += -(-step * height // ALIGN) * ALIGN
                slots.append(places[var])
            slots += [(-1, word, 0) for word in words]
            kernels.append((code.address, lanes // self.rows, len(slots), *[x for slot in slots for x in slot]))
        head = [len(kernels), height, max(k[2] for k in kernels)]
        return np.array([*head, *[x for k in kernels for x in k]], np.int64), operands, max(room, ALIGN)


def _by_rows(lowered: Lowered) -> bool:
    """True for a kernel whose launch may be split by rows, and that always goes on."""
    kernel = lowered.kernel
    return (not lowered.flags and kernel.nest in ("lanes", "rows")
            and all(i.access not in ("table", "turns") for i in kernel.inputs)
            and all(o.mode == "store" or kernel.nest == "rows" and o.mode in COMBINES for o in kernel.outputs))


def _lanes(lowered: Lowered) -> int:
    """What a launch of the kernel counts: lanes, or rows of them."""
    return lowered.sizes[0] if len(lowered.sizes) == 1 else prod(lowered.sizes[:-1])


def _bytes(lowered: Lowered, width: int) -> int:
    """Bytes a row of the arrays that a kernel reads and writes."""
    values = [v.value for v in (*lowered.kernel.inputs, *lowered.kernel.outputs)]
    return width * sum(SIZES[v.type] for v in values if not v.uniform)


@functools.cache
def bands_kernel() -> int:
    """The address of the kernel that runs others band by band."""
    return build(module("tlgrad_bands"), "tlgrad_bands")
