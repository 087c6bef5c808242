"""The greatest or least number of all lanes, as LLVM IR, lane by lane: a chain of single numbers waits for each.

Of equal numbers the earliest stays, which tells zeros of both signs apart.  So each lane also notes the block in
which it found its number; in the end lanes are compared by their numbers, then by their places.
"""
from __future__ import annotations

from tlgrad.backends.numba_cpu.combine import accumulate, identity
from tlgrad.backends.numba_cpu.emitter import FLOATS
from tlgrad.backends.numba_cpu.scalars import compare, unordered
from tlgrad.codegen.ir import SIZES, Kernel, Output

#: vectors of a block at most: more would not stay in registers
MOST = 4


def lane_by_lane(kernel: Kernel, out: Output, unroll: int) -> bool:
    """True for the extremes of a kernel without loops."""
    return (out.mode in ("max", "min") and out.value.type != "b1" and unroll <= MOST
            and not any(op.regions for op in kernel.ops))


class Extreme:
    """One result: the numbers of the lanes, and the blocks that they are from, in memory."""

    def __init__(self, nest, out: Output):
        self.nest, self.e, self.mode, self.type = nest, nest.e, out.mode, out.value.type
        self.held = "f32" if self.type == "f16" else self.type
        size = nest.lanes * nest.unroll
        self.numbers, self.blocks = nest.scratch(self.held, size), nest.scratch("i32", size)
        self.block = nest.scratch("i32", nest.lanes)
        none, zero = identity(self.e, self.mode, self.type), self.e.const(0, "i32")
        nest.store_vector(zero, self.block, "i32")
        for u in range(nest.unroll):
            nest.store_vector(none, self.place(self.numbers, u, self.held), self.held)
            nest.store_vector(zero, self.place(self.blocks, u, "i32"), "i32")

    def place(self, buffer, u, type):
        """The address of vector u of a buffer."""
        return self.e.at(buffer, u * self.nest.lanes * SIZES[type])

    def step(self, terms):
        """The vectors of one more block."""
        e, nest = self.e, self.nest
        block = nest.load_vector(self.block, "i32")
        for u, x in enumerate(terms):
            here, from_here = self.place(self.numbers, u, self.held), self.place(self.blocks, u, "i32")
            found = nest.load_vector(here, self.held)
            better = self.better(x, found)
            nest.store_vector(e.choose(self.type, better, x, found), here, self.held)
            old = nest.load_vector(from_here, "i32")
            nest.store_vector(e.choose("i32", better, block, old), from_here, "i32")
        nest.store_vector(e.two("add", "i32", block, e.const(1, "i32")), self.block, "i32")

    def better(self, x, found):
        """Where x takes the place of what was found before it."""
        better = compare(self.e, "gt" if self.mode == "max" else "lt", self.type, x, found)
        return self.e.two("or", "b1", better, unordered(self.e, self.type, x)) if self.type in FLOATS else better

    def finish(self, start):
        """What `start`, which comes first, and the lanes come to."""
        e, nest, n = self.e, self.nest, self.nest.lanes
        best = [(nest.load_vector(self.place(self.numbers, u, self.held), self.held), self.places(u))
                for u in range(nest.unroll)]
        while len(best) > 1:
            best = [self.first(*best[k:k + 2]) if k + 1 < len(best) else best[k] for k in range(0, len(best), 2)]
        (x, at), = best
        step = 1
        while step < n:
            turned = [e.emit(f"shufflevector {e.type(t)} {v}, {e.type(t)} poison, <{n} x i32> <"
                             + ", ".join(f"i32 {j ^ step}" for j in range(n)) + ">")
                      for v, t in ((x, self.type), (at, "i64"))]
            (x, at), step = self.first((x, at), turned), 2 * step
        one = nest.scalar_of(x, self.type, 0)
        return nest.on_scalars(lambda: accumulate(e, self.mode, self.type, start, one))

    def places(self, u):
        """The places of the numbers of vector u among all lanes."""
        e, n = self.e, self.nest.lanes
        block = e.cast("zext", self.nest.load_vector(self.place(self.blocks, u, "i32"), "i32"), "i32", "i64")
        start = e.two("mul", "i64", block, e.const(n * self.nest.unroll, "i64"))
        lane = "<" + ", ".join(f"i64 {u * n + j}" for j in range(n)) + ">"
        return e.two("add", "i64", start, lane)

    def first(self, one, other):
        """The better of two vectors of (numbers, places), lane by lane."""
        e, (x, at), (y, there) = self.e, one, other
        tie = e.two("and", "b1", compare(e, "eq", self.type, y, x), compare(e, "lt", "i64", there, at))
        takes = e.two("or", "b1", self.better(y, x), tie)
        return e.choose(self.type, takes, y, x), e.choose("i64", takes, there, at)
