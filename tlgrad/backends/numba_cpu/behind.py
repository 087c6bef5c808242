"""An ordered sum that runs one block behind, as LLVM IR.

Its additions wait for each other, so at the end of a block they would stop everything (measured:
a quarter of the time of a short gradient).  Instead the terms of a block lie in a buffer, and the
turns of the next block's folds add a few each; what is left is added when the block ends.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu.combine import neutral
from tlgrad.backends.numba_cpu.emitter import REGISTER
from tlgrad.codegen.ir import COMBINES, SIZES, Kernel

#: terms that a turn adds
STEP = 2


def one_behind(kernel: Kernel) -> bool:
    """True when the only reduction is a sum of floats, and turns of folds can hide it."""
    reduced = [o for o in kernel.outputs if o.mode in COMBINES]
    return (len(reduced) == 1 and reduced[0].mode == "add" and reduced[0].value.type in ("f32", "f64")
            and any(op.name == "fold" for op in kernel.ops))


class SumBehind:
    """The sum of a nest: `total` is its register now, `at` the number of the next term of the buffer."""

    def __init__(self, nest, type: str, size: int):
        self.nest, self.e, self.type, self.size = nest, nest.e, type, size
        self.buffer = nest.scratch(type, size + STEP)
        self.total, self.at = "", "0"
        none = nest.on_scalars(lambda: self.e.const(neutral("add", type), type))

        def clear(j, _):
            self.e.lines.append(f"  store {REGISTER[type]} {none}, ptr {self.place(j)}, align {SIZES[type]}")
        self.e.loop(size + STEP, clear)

    def place(self, term):
        """The address of a term."""
        return self.e.at(self.buffer, self.e.i64("mul", term, SIZES[self.type]))

    def plus(self, total, term):
        """total and a term of the buffer."""
        x = self.e.emit(f"load {REGISTER[self.type]}, ptr {self.place(term)}, align {SIZES[self.type]}")
        return self.e.emit(f"fadd {REGISTER[self.type]} {total}, {x}")

    def start(self, total):
        """A block begins: the terms of the one before it wait in the buffer."""
        self.total, self.at = total, "0"

    def loop(self, count, body, carried):
        """``e.loop`` whose turns also add terms."""
        def turn(i, handles):
            *rest, self.total, self.at = handles
            new = body(i, rest)
            self.step()
            return [*new, self.total, self.at]
        *out, self.total, self.at = self.e.loop(
            count, turn, [*carried, (REGISTER[self.type], self.total), ("i64", self.at)])
        return out

    def step(self):
        """The next terms, if any is left."""
        e = self.e
        top, run, join = e.block, e.label("terms"), e.label("join")
        e.branch(e.emit(f"icmp slt i64 {self.at}, {self.size}"), run, join)
        e.start(run)
        total = self.total
        for k in range(STEP):
            total = self.plus(total, e.i64("add", self.at, k))
        after = e.i64("add", self.at, STEP)
        e.jump(join)
        e.start(join)
        self.total = e.emit(f"phi {REGISTER[self.type]} [ {total}, %{run} ], [ {self.total}, %{top} ]")
        self.at = e.emit(f"phi i64 [ {after}, %{run} ], [ {self.at}, %{top} ]")

    def finish(self) -> str:
        """The sum with all terms of the buffer."""
        left = self.e.i64("sub", self.size, self.at)
        at = self.at
        self.total, = self.e.loop(left, lambda j, acc: [self.plus(acc[0], self.e.i64("add", at, j))],
                                  [(REGISTER[self.type], self.total)])
        return self.total

    def put(self, vectors):
        """The terms of this block; those of idle lanes are neutral."""
        step = self.e.lanes * SIZES[self.type]
        for u, x in enumerate(vectors):
            self.nest.store_vector(x, self.e.at(self.buffer, u * step), self.type)
