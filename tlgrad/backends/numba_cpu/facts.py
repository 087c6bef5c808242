"""What the launch of a kernel is told, besides the addresses of its arrays."""
from __future__ import annotations

from math import prod

from tlgrad.codegen.ir import SIZES, slots_of
from tlgrad.codegen.lowering import Lowered, literal_word
from tlgrad.passes.views import row_major


def turn_bytes(lowered: Lowered, operand: int) -> int:
    """Bytes from one turn to the next of an array that a loop reads or writes turn by turn."""
    k, inputs = operand - len(lowered.inputs), lowered.kernel.inputs
    if k < 0 and inputs[operand].value.uniform:
        return SIZES[inputs[operand].value.type]
    value = inputs[operand].value if k < 0 else lowered.kernel.outputs[k].value
    return prod(lowered.sizes) * SIZES[value.type]


def launch_facts(lowered: Lowered) -> tuple[list[int], list[int], int, int]:
    """Byte offsets of the inputs, the further words, the lanes or rows, and the entries of a launch."""
    sizes, rank = lowered.sizes, lowered.kernel.rank
    offsets = [0 if o.copied else o.view.offset * SIZES[o.type] for o in lowered.inputs]
    strides = [[s * SIZES[o.type] for s in (row_major(sizes) if i.access == "turns" else o.strides)]
               for o, i in zip(lowered.inputs, lowered.kernel.inputs)]
    strides += [[s * SIZES[o.value.type] for s in row_major(sizes)] for o in lowered.kernel.outputs]
    words = []
    for slot in slots_of(lowered.kernel)[len(lowered.inputs) + len(lowered.outs):]:
        if slot[0] == "literal":
            words.append(literal_word(lowered.literals[slot[1]]))
        elif slot[0] == "extent":
            words.append(lowered.inputs[slot[1]].view.shape[slot[2]])
        elif slot[0] == "turn":
            words.append(turn_bytes(lowered, slot[1]))
        else:
            words.append(sizes[slot[1]] if slot[0] == "size" else strides[slot[1]][slot[2]])
    lanes = sizes[0] if rank == 1 else prod(sizes[:-1])
    if lowered.kernel.nest == "columns":
        lanes = sizes[1]
    return offsets, words, lanes, prod(sizes)
