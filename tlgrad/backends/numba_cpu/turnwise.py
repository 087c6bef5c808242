"""Arrays that the turns of a loop read and write, as LLVM IR: turns by lanes, row-major.

A block of lanes that is not full goes through a buffer, as other operands do; of an array without
lanes every lane gets the one entry of the turn.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tlgrad.codegen.ir import SIZES, Value


#: turns ahead that entries are asked for
AHEAD = 8


@dataclass
class Turned:
    """One array at the block at hand: its address at turn 0, the bytes between turns, the lanes `left`
    in the row, and whether that is a `full` block."""

    nest: Any
    number: int
    value: Value
    address: str
    step: str
    left: str
    full: str

    def at(self, body, turn: Value) -> str:
        """The address of a turn; those of a later turn are asked for."""
        e, lane = body.e, SIZES[self.value.type]
        number = e.emit(f"extractelement {e.type('i64')} {body.env[turn][0]}, i64 0")
        here = e.at(self.address, e.i64("mul", number, self.step))
        if not self.value.uniform:
            later = e.at(here, e.i64("mul", self.step, AHEAD * body.onward))
            for line in range(0, self.nest.block_size * lane, 64):
                self.nest.e.prefetch(e.at(later, line))
        return here


def place_arrays(nest, pointers, base, left, full):
    """Tell the body where the arrays lie for the block that starts at lane `base`."""
    for n, value in nest.turned():
        uniform = n < len(nest.kernel.inputs) and value.uniform
        here = pointers[n] if uniform else nest.e.at(pointers[n], nest.e.i64("mul", base, SIZES[value.type]))
        nest.body.turned[value] = Turned(nest, n, value, here, nest.words["turn", n], left, full)


def take(body, op):
    """The entries of a turn."""
    e, array, type = body.e, body.turned[op.args[0]], op.args[0].type
    here = array.at(body, op.args[1])
    if op.args[0].uniform:
        body.set(op.outs[0], [array.nest.load_splat(here, type)])
        return
    top, part, ready = e.block, e.label("part"), e.label("ready")
    e.branch(array.full, ready, part)
    e.start(part)
    array.nest.fill(array.number, array.value, here, str(SIZES[type]), array.left)
    end = e.block
    e.jump(ready)
    e.start(ready)
    where = e.emit(f"phi ptr [ {here}, %{top} ], [ {array.nest.buffers[array.number]}, %{end} ]")
    body.set(op.outs[0], [array.nest.load_vector(e.at(where, u * e.lanes * SIZES[type]), type)
                          for u in range(body.unroll)])


def put(body, op):
    """Write the entries of a turn."""
    e, array, type = body.e, body.turned[op.args[0]], op.args[0].type
    here = array.at(body, op.args[1])
    buffer = array.nest.buffers[array.number]
    where = e.emit(f"select i1 {array.full}, ptr {here}, ptr {buffer}")
    for u, x in enumerate(body.env[op.args[2]]):
        array.nest.store_vector(x, e.at(where, u * e.lanes * SIZES[type]), type)
    e.when(e.emit(f"xor i1 {array.full}, true"), lambda: array.nest.copy(buffer, here, array.left, type))
    body.set(op.outs[0], [e.const(0, "b1")])
