"""Launches that threads share: `tlgrad.kernels.tiles.shares`."""
from __future__ import annotations

import functools
from dataclasses import dataclass
from math import prod
from typing import Callable

from tlgrad.backends.numba_cpu.facts import duration, launch_facts
from tlgrad.backends.numba_cpu.kernels import build, shape_of
from tlgrad.backends.numba_cpu.native import launcher
from tlgrad.backends.numba_cpu.team import shared
from tlgrad.backends.numba_cpu.threads import threads_for
from tlgrad.codegen.ir import COMBINES, Kernel
from tlgrad.codegen.lowering import Lowered
from tlgrad.kernels.machine import host
from tlgrad.kernels.tiles.shares import module

#: shares of a launch for each thread
EACH = 8
#: rows that go side by side, and columns that pay for the way from row to row
ROWS, LANES = 16, 128


@dataclass(slots=True)
class Shares:
    """A launch of the kernel at an address over `count` lanes or rows from the `first` on, which takes about
    `time` nanoseconds; a share is a multiple of `unit` of them, and `each` shares come to a thread."""

    kernel: int
    count: int
    time: float
    unit: int = 1
    each: int = EACH
    first: int = 0

    @property
    def threads(self) -> int:
        """How many threads share it."""
        return threads_for(self.time, -(-self.count // self.unit))

    def launch(self, offsets, words, release: bool, room: int = 0) -> Callable:
        """The function of the arrays that launches it.  With `room` the second array is memory of which every
        thread has so many bytes."""
        if self.threads == 1:
            return launcher().make(self.kernel, offsets, words, self.first, self.first + self.count, release)
        return self._shared(offsets, words, room, 1 + len(offsets) + len(words), 0)

    def launch_by_rows(self, offsets, words, at: int, over: int, release: bool) -> Callable:
        """The same of a kernel that runs over something else, and has the first row and their end as words
        number `at` and the next."""
        if self.threads == 1:
            words = [*words[:at], 0, self.count, *words[at + 2:]]
            return launcher().make(self.kernel, offsets, words, 0, over, release)
        return self._shared(offsets, words, 0, 1 + len(offsets) + at, over)

    def _shared(self, offsets, words, room, rows, over) -> Callable:
        units = -(-self.count // (self.unit * self.threads * self.each))
        own = [units * self.unit, self.kernel, room, rows, over, 0, 0]
        return shared(shares_kernel(), self.threads, own, offsets, words, self.first,
                      self.first + self.count)


def is_whole(kernel: Kernel) -> bool:
    """True when a kernel reduces all of its lanes to one number."""
    return kernel.nest == "lanes" and any(o.mode in COMBINES for o in kernel.outputs)


def shares_of(lowered: Lowered, address: int) -> Shares:
    """A launch of a kernel, by one thread where it is whole.  A thread has one share where a share has work
    that does not depend on its size, or should be wide."""
    kernel, (*_, count, _) = lowered.kernel, launch_facts(lowered)
    time = 0 if is_whole(kernel) else duration(lowered)
    alike = any(op.uniform and op.regions for op in kernel.ops)
    unit = {"rows": ROWS, "columns": LANES}.get(kernel.nest) or block_of(kernel)
    return Shares(address, count, time, unit, 1 if alike or kernel.nest == "columns" else EACH)


def block_of(kernel: Kernel) -> int:
    """What a kernel in nest "lanes" does at once, of what its launch counts."""
    return prod(shape_of(kernel, host())) if kernel.rank == 1 else 1


@functools.cache
def shares_kernel() -> int:
    """The address of the kernel that takes shares."""
    return build(module("tlgrad_shares"), "tlgrad_shares")
