"""Neighbouring kernels over one set of rows as one launch, band by band (`tlgrad.kernels.tiles.bands`).

A softmax is four kernels: the greatest of each row, what is taken off it, the exponentials and their sum, the
quotients.  Band by band, the array is read once and written once.  A matrix product may come first, whose rows
the kernels read: the gradient of a weight, and the step of the optimiser that uses it up.
"""
from __future__ import annotations

import functools
from math import prod

import numpy as np

from tlgrad.backends.numba_cpu.contraction import Product, packed_bytes, tile_kernel
from tlgrad.backends.numba_cpu.facts import duration, launch_facts
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.shares import EACH
from tlgrad.codegen.ir import COMBINES, SIZES
from tlgrad.codegen.lowering import Lowered, Operand
from tlgrad.core.jaxpr import Var
from tlgrad.kernels.tiles.bands import LATER, LIMIT, WORD, module
from tlgrad.kernels.tiles.contraction import WORDS
from tlgrad.passes.groups import Grouping, Step, found
from tlgrad.passes.views import row_major

#: rows of a band are a multiple of this: a vector's lanes of rows go side by side
TOGETHER = 16
#: ... and of the rows of a tile of a product
IN_TILES = 48
#: bytes of all arrays in a band: about what stays in the second cache, and what is not worth it
BAND_BYTES, MOST_BYTES = 1 << 18, 1 << 20
ALIGN = 64


class Bands:
    """Kernels that wait to be launched together.  `rows` is the number of their rows, `widths` says how many
    entries a row has of each array that they make."""

    def __init__(self):
        self.members: list[tuple[Step, Lowered]] = []
        self.product: tuple[Step, Product] | None = None
        self.rows = self.row_bytes = self.cost = 0
        #: nanoseconds on one thread
        self.time = 0.0
        self.widths: dict[Var, int] = {}

    @property
    def several(self) -> bool:
        """There is something to do band by band."""
        return len(self.members) + (self.product is not None) > 1

    @property
    def shares(self) -> tuple[int, int]:
        """Rows that threads take as one, and shares for each thread: a product packs its block for every share."""
        return (IN_TILES, 1) if self.product else (TOGETHER, EACH)

    def start(self, step: Step, product: Product):
        """A product comes first."""
        _, self.rows, width, terms = product.sizes
        self.product, self.row_bytes = (step, product), width * SIZES[product.type]
        self.cost, self.time = self.rows * width * terms // 8, product.time
        self.widths[step.eqns[0].outs[0]] = width

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
        self.time += duration(lowered)
        self.widths |= {v: 1 if o.mode in COMBINES else width
                        for v, o in zip(lowered.outs, lowered.kernel.outputs)}

    def kept(self, grouping: Grouping, results: set[Var]) -> set[Var]:
        """What is made here and read elsewhere, or a result of the program."""
        own = {step for step, _ in self.members} | ({self.product[0]} if self.product else set())
        return {v for v in self.widths if v in results
                or any(found(s) not in own for s in grouping.readers.get(v, ()))}

    def alone(self, grouping: Grouping, step: Step, donated: set[Var]) -> set[Var]:
        """What of the donated inputs no other than this kernel reads here: the others come back, for more rows."""
        others = {o.root for s, lowered in self.members if s is not step for o in lowered.inputs}
        factors = self.product[0].eqns[0].ins if self.product else ()
        return donated - others - {grouping.view(a).root for a in factors}

    def program(self, compiled, kept: set[Var], factors, offsets) -> tuple[np.ndarray, list, int]:
        """The words of the launch; its operands after the program and the memory for a band; bytes of that.
        `factors` are the operands of the product, with their byte offsets."""
        rows = IN_TILES if self.product else TOGETHER
        height = max(BAND_BYTES // self.row_bytes // rows, 1) * rows
        operands, places, room, kernels = list(factors), {}, 0, []

        def place(var, step):
            nonlocal room
            if var in kept:
                operands.append(var)
                places[var] = 1 + len(operands), 0, 0
            else:
                places[var] = 1, room, step
                room += -(-step * height // ALIGN) * ALIGN
            return places[var]
        if self.product:
            step, product = self.product
            size = SIZES[product.type]
            slots = [(2, offsets[0], 0), (3, offsets[1], 0), place(step.eqns[0].outs[0], product.sizes[2] * size),
                     *_product_slots(product, room)]
            room += packed_bytes(product)
            address = tile_kernel(product.type, product.order)
            kernels.append((address, 0, len(slots), *[x for slot in slots for x in slot]))
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
            slots += [place(var, self.widths[var] * SIZES[out.value.type])
                      for var, out in zip(lowered.outs, lowered.kernel.outputs)]
            slots += [(WORD, word, 0) for word in words]
            kernels.append((code.address, lanes // self.rows, len(slots), *[x for slot in slots for x in slot]))
        head = [len(kernels), height, max(k[2] for k in kernels)]
        return np.array([*head, *[x for k in kernels for x in k]], np.int64), operands, max(room, ALIGN)


def _product_slots(product: Product, packed: int) -> list[tuple[int, int, int]]:
    """The slots of a product after its addresses; its block of B is at byte `packed` of the memory for a band."""
    words = dict(zip(WORDS[3:], product.words(True)))
    by_band = {"m_first": (WORD, 0, -1), "m_limit": (LIMIT, 0, 0), "past": (WORD, 0, 0),
               "packed": (1, packed, 0), "ready": (LATER, 0, 0)}
    return [by_band.get(name, (WORD, word, 0)) for name, word in words.items()]


def beside_readers(grouping: Grouping, banded) -> list[Step]:
    """The steps in order, but a product in bands right before the kernel that alone reads it."""
    own, waiting, out = set(grouping.steps), {}, []
    results = {grouping.view(a).root for a in grouping.jaxpr.outs}
    for step in grouping.steps:
        made = step.eqns[0].outs[0]
        readers = {found(s) for s in grouping.readers.get(made, ())}
        waits = len(readers) == 1 and readers <= own and made not in results and banded(step)
        place = waiting.setdefault(readers.pop(), []) if waits else out
        place += [*waiting.pop(step, ()), step]
    return out


def _by_rows(lowered: Lowered) -> bool:
    """True for a kernel whose launch may be split by rows, and that always goes on."""
    kernel = lowered.kernel
    return (not lowered.flags and 0 not in lowered.sizes and kernel.nest in ("lanes", "rows")
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
