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
    program = Program(e)
    rows = e.i64("sub", "%hi", "%lo")
    bands = e.i64("sdiv", e.i64("add", rows, e.i64("sub", program.height, 1)), program.height)

    def band(b, _):
        first = e.i64("add", "%lo", e.i64("mul", b, program.height))
        limit = e.smin(e.i64("add", first, program.height), "%hi")
        e.loop(program.kernels, lambda _, state: [program.run(state[0], first, limit)], [("ptr", program.first)])
    e.loop(bands, band)
    return "\n".join([f"define void @{name}(ptr %slots, i64 %lo, i64 %hi) nounwind {{", "entry:", *e.lines,
                      "  ret void", "}", ""])


class Program:
    """The program in a slot: how many kernels it has, the rows of a band, the address of the first kernel."""

    def __init__(self, e, slot=0):
        self.e = e
        program = e.emit(f"load ptr, ptr {e.at('%slots', 8 * slot)}, align 8")
        self.kernels, self.height, most = (_word(e, program, k) for k in range(HEAD))
        self.slots = e.emit(f"alloca i64, i64 {most}, align 16")
        self.first = e.at(program, 8 * HEAD)

    def run(self, here, first, limit):
        """Run the kernel at an address on rows first <= r < limit; the address of the next one."""
        e, count = self.e, _word(self.e, here, 2)
        e.loop(count, lambda k, _: _slot(e, e.at(here, e.i64("add", e.i64("mul", k, 8 * SLOT), 8 * KERNEL)),
                                         first, limit, e.at(self.slots, e.i64("mul", k, 8))))
        lanes = _word(e, here, 1)
        one = e.emit(f"zext i1 {e.emit(f'icmp eq i64 {lanes}, 0')} to i64")
        address = e.emit(f"load ptr, ptr {here}, align 8")
        e.lines.append(f"  call void {address}(ptr {self.slots}, i64 {e.i64('mul', first, lanes)}, "
                       f"i64 {e.i64('add', e.i64('mul', limit, lanes), one)})")
        return self.after(here)

    def after(self, here):
        """The address of the kernel after the one at an address."""
        e = self.e
        return e.at(here, e.i64("add", e.i64("mul", _word(e, here, 2), 8 * SLOT), 8 * KERNEL))


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
