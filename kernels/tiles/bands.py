"""Kernels that run band by band: a few rows go through all of them before the next rows come.

What one kernel writes of a band is still in the cache when the next one reads it, and what nothing else reads
never leaves the cache: its memory is one band, used again and again.
"""
from .loops import Loops

#: the head of a program in 64-bit words: kernels, rows of a band, the most slots of a kernel.  Then for each
#: kernel: its address, its lanes a row (0: it is run for all lanes, one), its slots; and for each of these
#: (operand, word, step): the word minus `step` for each row before the band, plus what the operand says
HEAD, KERNEL, SLOT = 3, 3, 3
#: what a slot's operand says: an address, counted from 0, or one of these: nothing, the row after the band, and
#: 1 for bands that are not the first
WORD, LIMIT, LATER = -1, -2, -3


def module(name):
    """The text of a module with ``void name(ptr slots, i64 lo, i64 hi)`` over rows; slot 0 is a program."""
    e = Loops()
    program = e.emit("load ptr, ptr %slots, align 8")
    kernels, height, most = (_word(e, program, k) for k in range(HEAD))
    room = e.emit(f"alloca i64, i64 {most}, align 16")
    rows = e.i64("sub", "%hi", "%lo")
    bands = e.i64("sdiv", e.i64("add", rows, e.i64("sub", height, 1)), height)

    def band(b, _):
        first = e.i64("add", "%lo", e.i64("mul", b, height))
        limit = e.smin(e.i64("add", first, height), "%hi")

        def kernel(_, state):
            here, = state
            count = _word(e, here, 2)
            e.loop(count, lambda k, _: _slot(e, e.at(here, e.i64("add", e.i64("mul", k, 8 * SLOT), 8 * KERNEL)),
                                             first, limit, e.at(room, e.i64("mul", k, 8))))
            lanes = _word(e, here, 1)
            one = e.emit(f"zext i1 {e.emit(f'icmp eq i64 {lanes}, 0')} to i64")
            address = e.emit(f"load ptr, ptr {here}, align 8")
            e.lines.append(f"  call void {address}(ptr {room}, i64 {e.i64('mul', first, lanes)}, "
                           f"i64 {e.i64('add', e.i64('mul', limit, lanes), one)})")
            return [e.at(here, e.i64("add", e.i64("mul", count, 8 * SLOT), 8 * KERNEL))]
        e.loop(kernels, kernel, [("ptr", e.at(program, 8 * HEAD))])
    e.loop(bands, band)
    return "\n".join([f"define void @{name}(ptr %slots, i64 %lo, i64 %hi) nounwind {{", "entry:", *e.lines,
                      "  ret void", "}", ""])


def _word(e, pointer, number):
    return e.emit(f"load i64, ptr {e.at(pointer, 8 * number)}, align 8")


def _slot(e, here, first, limit, target):
    """One slot of a kernel for the band of these rows."""
    operand, word, step = (_word(e, here, k) for k in range(SLOT))
    e.lines.append(f"  store i64 {e.i64('sub', word, e.i64('mul', first, step))}, ptr {target}, align 8")

    def add(number):
        total = e.i64("add", e.emit(f"load i64, ptr {target}, align 8"), number)
        e.lines.append(f"  store i64 {total}, ptr {target}, align 8")
    later = e.emit(f"zext i1 {e.emit(f'icmp sgt i64 {first}, %lo')} to i64")
    e.when(e.emit(f"icmp sge i64 {operand}, 0"),
           lambda: add(e.emit(f"load i64, ptr {e.at('%slots', e.i64('mul', operand, 8))}, align 8")))
    e.when(e.emit(f"icmp eq i64 {operand}, {LIMIT}"), lambda: add(limit))
    e.when(e.emit(f"icmp eq i64 {operand}, {LATER}"), lambda: add(later))
