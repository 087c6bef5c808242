"""The team of this process: threads that share large launches (`tlgrad.kernels.tiles.team`)."""
from __future__ import annotations

import atexit
import ctypes
import threading
from typing import Callable

import numpy as np

from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.native import launcher
from tlgrad.backends.numba_cpu.threads import MOST
from tlgrad.kernels.fork import in_child
from tlgrad.kernels.machine import once
from tlgrad.kernels.tiles import team as words


class Team:
    """Workers that are started when they are first needed; one launch at a time uses them."""

    def __init__(self):
        self.state = np.zeros(words.WORKERS + MOST, np.int64)
        self.state[words.GATE] = words.CLOSED
        self.workers: list[tuple[threading.Thread, np.ndarray]] = []
        self.lock = threading.Lock()

    def of(self, threads: int) -> np.ndarray:
        """The words of the team, which has workers for so many threads."""
        if len(self.workers) < threads - 1:
            with self.lock:
                while len(self.workers) < threads - 1:
                    self._start(len(self.workers))
        return self.state

    def _start(self, number: int):
        """One more worker, which waits in native code."""
        own, library = np.zeros(words.WORDS, np.int64), ctypes.CDLL(None)
        for name, word in (("mutex", words.MUTEX), ("cond", words.CONDITION)):
            getattr(library, f"pthread_{name}_init")(ctypes.c_void_p(own.ctypes.data + 8 * word), None)
        self.state[words.WORKERS + number] = own.ctypes.data
        serve = launcher().make(_kernel("serving"), [0, 0], [], number, 0, True)
        worker = threading.Thread(target=serve, args=(self.state, own), daemon=True, name="tlgrad worker")
        worker.start()
        self.workers.append((worker, own))

    def end(self):
        """The workers leave, as the code that they run goes with the interpreter; launches go on without them."""
        self.state[words.LEAVE] = 1
        wake = shared(_kernel("nothing"), len(self.workers) + 1, [], [], [], 0, 0)
        for worker, _ in self.workers:
            while worker.is_alive():                 # the team may have another task
                wake()
                worker.join(0.01)


_team = Team()


@in_child
def _after_fork():
    global _team
    _team = Team()


@atexit.register
def _at_exit():
    if _team.workers:
        _team.end()


@once
def _kernel(make: str) -> int:
    return build(getattr(words, make)(f"tlgrad_{make}"), f"tlgrad_{make}")


def shared(function: int, threads: int, own: list[int], offsets, further, lo: int, hi: int) -> Callable:
    """A function of arrays that runs a task on lo..hi: the native function at an address on several threads, whose
    slots are the task's state, then those of the arrays, then further words.  `own` are the function's words of
    the state; it begins anew with every call."""
    state = np.array([function, 1 + len(offsets) + len(further), threads, *own], np.int64)
    launch = launcher().make(_kernel("sharing"), [0, 0, *offsets], further, lo, hi, True)

    def run(*arrays):
        launch(_team.of(threads), state.copy(), *arrays)
    return run
