"""gather and scatter whose places are in the first axes: rows are copied or combined by a kernel.

The rows are taken in the order of the indices, so several updates of one entry act in order.  A place
outside of the array sets a flag, and the primitive itself then raises the error.
"""
from __future__ import annotations

import functools
from math import prod

from tlgrad.backends.numba_cpu.emitter import MEMORY, Emitter
from tlgrad.backends.numba_cpu.facts import BYTES
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.scalars import SCALARS
from tlgrad.codegen.intrinsics import type_of
from tlgrad.codegen.ir import SIZES
from tlgrad.core.aval import Aval
from tlgrad.core.jaxpr import Eqn
from tlgrad.kernels.machine import host

#: the words of a launch: addresses of the array with places, the rows, the indices, and the flag; then
#: (size, stride in bytes) of each axis that is indexed
WORDS = ("array", "rows", "indices", "flag", "axes", "length")
#: entries that are worth a kernel
LONG = 1 << 9
#: memory words by size, for rows that are only copied
BY_SIZE = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


def can_place(eqn: Eqn) -> bool:
    """True when a kernel runs this gather or scatter."""
    if eqn.prim.name not in ("gather", "scatter") or eqn.outs[0].aval.size == 0:
        return False
    axes, rows = eqn.params["axes"], (eqn.ins[2] if eqn.prim.name == "scatter" else eqn.outs[0]).aval
    return axes == tuple(range(len(axes))) and rows.size >= LONG and kernel_kind(eqn) is not None


def kernel_kind(eqn: Eqn) -> tuple[str, str] | None:
    """(type, mode) of the kernel; None where kernels do not hold the type."""
    dtype, mode = eqn.ins[0].aval.dtype, eqn.params.get("mode", "gather")
    if mode in ("gather", "set"):
        type = BY_SIZE.get(dtype.storage.itemsize)
    else:
        type = type_of(dtype) if dtype.kind in "iuf" else None
        type = None if type == "f16" else type
    return None if type is None else (type, mode)


def words_of(eqn: Eqn) -> list[int]:
    """The words after the four addresses."""
    shape, axes = eqn.ins[0].aval.shape, eqn.params["axes"]
    size = eqn.ins[0].aval.dtype.storage.itemsize
    length = prod(shape[len(axes):])
    words = [len(axes), length]
    for k in axes:
        words += [shape[k], prod(shape[k + 1:]) * size]
    return words


def place_time(eqn: Eqn, moved: Aval) -> float:
    """About how many nanoseconds a gather takes on one thread.  A scatter stays on one: its rows may meet."""
    return 2 * moved.size * moved.dtype.itemsize / BYTES if eqn.prim.name == "gather" else 0


@functools.cache
def place_kernel(type: str, mode: str) -> int:
    """The address of the kernel for rows of a type: ``void name(slots, lo, hi)`` over the rows."""
    name = f"places_{type}_{mode}"
    return build(_text(type, mode, host().vector_bytes // SIZES[type], name), name)


def _text(type, mode, lanes, name) -> str:
    e, w, size = Emitter(lanes), {}, SIZES[type]
    for k, word in enumerate(WORDS):
        where = e.emit(f"getelementptr i64, ptr %slots, i64 {k}")
        w[word] = e.emit(f"load {'ptr' if k < 4 else 'i64'}, ptr {where}, align 8")
    row_bytes = e.i64("mul", w["length"], size)
    whole = e.i64("udiv", w["length"], lanes)
    done = e.i64("mul", whole, lanes)

    def entry(place, row, lane):
        offset = e.i64("mul", lane, size)
        there, here = e.at(place, offset), e.at(row, offset)
        kind = MEMORY[type] if e.lanes == 1 else f"<{lanes} x {MEMORY[type]}>"
        source, target = (there, here) if mode == "gather" else (here, there)
        x = e.emit(f"load {kind}, ptr {source}, align {size}")
        if mode not in ("gather", "set"):
            old = e.emit(f"load {kind}, ptr {there}, align {size}")
            x = SCALARS[mode](e, type, [old, x], type, {})
        e.lines.append(f"  store {kind} {x}, ptr {target}, align {size}")

    def row(i, _):
        i = e.i64("add", i, "%lo")
        first = e.at(w["indices"], e.i64("mul", e.i64("mul", i, w["axes"]), 8))
        place, bad = _place(e, w, first)
        inside = e.emit(f"icmp eq i64 {bad}, 0")
        yes, no, join = e.label("inside"), e.label("outside"), e.label("join")
        e.branch(inside, yes, no)
        e.start(no)
        e.lines.append(f"  store i64 1, ptr {w['flag']}, align 8")
        e.jump(join)
        e.start(yes)
        here = e.at(w["rows"], e.i64("mul", i, row_bytes))
        e.loop(whole, lambda v, _: entry(place, here, e.i64("mul", v, lanes)))
        e.lanes = 1
        e.loop(e.i64("sub", w["length"], done), lambda j, _: entry(place, here, e.i64("add", done, j)))
        e.lanes = lanes
        e.jump(join)
        e.start(join)
    e.loop(e.i64("sub", "%hi", "%lo"), row)
    return "\n".join([*e.declarations.values(), f"define void @{name}(ptr noalias %slots, i64 %lo, i64 %hi) "
                      "nounwind {", "entry:", *e.lines, "  ret void", "}", ""])


def _place(e, w, first):
    """The address at the indices of a row, and a number that is not 0 where one is outside."""
    def axis(k, state):
        place, bad = state
        index = e.emit(f"load i64, ptr {e.at(first, e.i64('mul', k, 8))}, align 8")
        table = e.emit(f"getelementptr [2 x i64], ptr %slots, i64 {k}")
        n, stride = [e.emit(f"load i64, ptr {e.at(table, 8 * (len(WORDS) + j))}, align 8") for j in range(2)]
        outside = e.emit(f"zext i1 {e.emit(f'icmp uge i64 {index}, {n}')} to i64")
        return [e.at(place, e.i64("mul", index, stride)), e.i64("or", bad, outside)]
    return e.loop(w["axes"], axis, [("ptr", w["array"]), ("i64", "0")])
