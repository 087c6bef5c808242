"""How a tower of sweeps runs under a limit on the states that are kept.

A later sweep reads the states of the earlier ones, usually in opposite order.  The range of
turns is cut in two again and again: at each cut one state of every earlier sweep is kept, and
pieces that fit the limit are run with all their states recorded.  Cuts are binomial (Griewank
and Walther, "Algorithm 799: Revolve", 2000).  Every turn of the last sweep runs once, with
the same operands under every limit, so the words do not depend on it.
"""
from __future__ import annotations

import re
from math import comb
from typing import Callable, Sequence

import numpy as np

from tlgrad.errors import ArgumentError, TlgradError

#: bytes of states kept when the program states no limit
DEFAULT_BYTES = 256 * 2**20
#: a Python object around each array of a state
OVERHEAD = 64
_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


def check_memory(memory) -> int | str | None:
    """`memory=` as the program states it: None, a number of states, or bytes such as "64MB"."""
    if memory is None or type(memory) is int and memory >= 1:
        return memory
    if isinstance(memory, str) and memory_bytes(memory):
        return memory
    raise ArgumentError(f'memory must be a number of states (1 or more), or bytes such as "64MB" '
                        f'(B, KB, MB, GB), or None; got {memory!r}')


def memory_bytes(text: str) -> int:
    """The number of bytes that a text such as "64MB" means; 0 when it means none."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?B)\s*", text)
    return int(float(found[1]) * _UNITS[found[2]]) if found else 0


def states_allowed(memory, state_bytes: int) -> int:
    """How many states the limit allows; at least one."""
    if isinstance(memory, int):
        return memory
    limit = DEFAULT_BYTES if memory is None else memory_bytes(memory)
    return max(1, limit // max(1, state_bytes))


def capacity(slots: int, passes: int) -> int:
    """Longest range that `slots` states cover when no turn is run more than `passes` times before
    it is read.  With pieces of `slots` turns recorded whole, the recursion
    c(s, r) = c(s, r - 1) + c(s - 1, r), c(s, 1) = s, c(1, r) = r has this closed form."""
    if passes == 0 or slots == 0:
        return 0
    return comb(slots + passes, passes) - comb(slots + passes - 2, passes - 1)


def first_piece(turns: int, slots: int) -> int:
    """How many turns to pass over before the next state is kept."""
    if slots <= 1:
        return turns - 1
    passes = 1
    while capacity(slots, passes) < turns:
        passes += 1
    return max(1, turns - capacity(slots - 1, passes))


def execute(layout, n: np.ndarray, consts, xs, carries, step_of: Callable) -> list[np.ndarray]:
    """Run a tower.  Results as `layout.results` says; `step_of` makes functions of arrays of bodies."""
    if n < 0:
        raise ArgumentError(f"a loop cannot run {int(n)} times: the count must not be negative")
    with np.errstate(all="ignore"):
        return Run(layout, n, consts, xs, carries, step_of).results()


class Run:
    """One execution.  A *state* is the tuple of carries of one sweep."""

    def __init__(self, layout, n, consts, xs, carries, step_of):
        self.n, self.consts, self.xs = int(n), tuple(consts), tuple(xs)
        self.turn = n.dtype.type
        self.starts = [tuple(c) for c in carries]
        self.layout, self.reverse = layout, layout.reverse
        self.steps = [step_of(b) for b in layout.bodies]
        self.last = len(self.steps) - 1
        self.ys = self._room_for_ys()
        size = sum(np.asarray(x).nbytes + OVERHEAD for c in carries[:-1] for x in c)
        self.slots = states_allowed(layout.memory, size)

    def _room_for_ys(self):
        out = []
        for aval, want in zip(self.layout.bodies[-1].out_avals[self.layout.carries[-1]:],
                              self.layout.results[self.layout.carries[-1]:]):
            out.append(np.empty((self.layout.length, *aval.shape), aval.dtype.storage) if want else None)
        return out

    def results(self) -> list[np.ndarray]:
        """Carries and ys of the last sweep that are wanted."""
        carry = self.run(self.last, 0, self.n, self.starts, self.starts[-1], self.slots)
        outs = [*carry, *self.ys]
        return [np.asarray(y) for y, want in zip(outs, self.layout.results) if want]

    def run(self, k: int, lo: int, hi: int, entries: Sequence, carry: tuple, slots: int) -> tuple:
        """Sweep k over lo .. hi-1.  `entries`: the states with which the sweeps before k enter."""
        if k == 0:
            return self.sweep(0, lo, hi, carry, None)
        pieces = [(lo, hi, entries)]
        while pieces:
            lo, hi, entries = pieces.pop()
            while hi - lo > (free := max(1, slots - len(pieces))):
                (lo, hi, entries), later = self.cut(k, lo, hi, entries, free)
                pieces.append(later)
            carry = self.sweep(k, lo, hi, carry, self.record(k, lo, hi, entries))
        return carry

    def cut(self, k, lo, hi, entries, slots):
        """Two pieces, that which sweep k reads first in front."""
        passed = first_piece(hi - lo, slots)
        mid = lo + passed if self.reverse[k] else hi - passed
        left, right = list(entries), list(entries)
        for q in range(k):
            if self.reverse[q]:
                left[q] = self.run(q, mid, hi, right, entries[q], slots)
            else:
                right[q] = self.run(q, lo, mid, left, entries[q], slots)
        pair = [(lo, mid, left), (mid, hi, right)]
        return pair[::-1] if self.reverse[k] else pair

    def record(self, k, lo, hi, entries) -> list[tuple]:
        """The states of all sweeps before k at turns lo .. hi-1, joined."""
        joined: list | None = None
        for q in range(k):
            states: list = [None] * (hi - lo)
            self.sweep(q, lo, hi, entries[q], joined, states)
            joined = states if joined is None else [a + b for a, b in zip(joined, states)]
        return joined

    def sweep(self, k, lo, hi, carry, read, states=None) -> tuple:
        """Sweep k over lo .. hi-1 with the states `read` of earlier sweeps at each turn.

        With `states`, its own are written there, and the turn after which nobody asks is left out.
        """
        turns = range(hi - 1, lo - 1, -1) if self.reverse[k] else range(lo, hi)
        i, n_carry, step, turn, consts = lo, self.layout.carries[k], self.steps[k], self.turn, self.consts
        ys = self.ys if k == self.last else ()
        try:
            for i in turns:
                before = read[i - lo] if read is not None else ()
                if states is not None:
                    states[i - lo] = tuple(carry)
                    if i == turns[-1]:
                        return carry
                out = step(turn(i), *consts, *[x[i, ...] for x in self.xs], *before, *carry)
                carry = out[:n_carry]
                for y, value in zip(ys, out[n_carry:]):
                    if y is not None:
                        y[i] = value
        except TlgradError as error:
            error.add_note(f"in turn {i} of the loop (turns count from 0)")
            raise
        return tuple(carry)
