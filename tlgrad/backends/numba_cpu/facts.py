"""What the launch of a kernel is told, besides the addresses of its arrays."""
from __future__ import annotations

from math import prod

from tlgrad.codegen.intrinsics import cost
from tlgrad.codegen.ir import SIZES, Op, Value, slots_of
from tlgrad.codegen.lowering import Lowered, lane_bytes, literal_word
from tlgrad.kernels.machine import host
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


#: vector instructions, and bytes of memory, that take about a nanosecond
INSTRUCTIONS, BYTES = 6, 50
#: turns of a loop whose count is not a number of the program
TURNS = 100


def weight(lowered: Lowered) -> int:
    """About how many instructions the kernel is on one lane."""
    counts = {v: literal_word(lit) for lit, v in zip(lowered.literals, lowered.kernel.literals)}
    return _weight(lowered.kernel.ops, counts)


def _weight(ops: list[Op], counts: dict[Value, int]) -> int:
    total = 0
    for op in ops:
        inner = sum(_weight(region.ops, counts) for region in op.regions)
        turns = 1 if op.name == "cond" else counts.get(op.args[0], TURNS) if op.regions else 0
        total += 0 if op.uniform else turns * inner if op.regions else cost(op.name)
    return total


def duration(lowered: Lowered) -> float:
    """About how many nanoseconds a launch takes on one thread."""
    kernel, lanes = lowered.kernel, host().vector_bytes / max(lane_bytes(lowered.kernel), 1)
    moved = sum(SIZES[v.value.type] for v in (*kernel.inputs, *kernel.outputs) if not v.value.uniform)
    return prod(lowered.sizes) * (weight(lowered) / (INSTRUCTIONS * lanes) + moved / BYTES)
