"""Threads over output entries: a launch is split by lanes or rows, so words do not depend on it.

The number of threads is $TLGRAD_NUM_THREADS, else the CPUs this process may use.
"""
from __future__ import annotations

import os
import threading
from typing import Callable, Sequence

from tlgrad.kernels.fork import in_child

#: nanoseconds of work that pay for handing it to a thread: until one that slept is at work takes some ten thousand
SHARE = 50_000


def thread_count() -> int:
    """How many threads a large launch is split over."""
    asked = os.environ.get("TLGRAD_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Worker:
    """A thread that runs one task at a time; two locks hand it over and back."""

    def __init__(self):
        self.start, self.done = threading.Lock(), threading.Lock()
        self.start.acquire()
        self.done.acquire()
        self.task: tuple | None = None
        threading.Thread(target=self.serve, daemon=True, name="tlgrad worker").start()

    def serve(self):
        """Run tasks for ever."""
        while True:
            self.start.acquire()
            launch, arrays = self.task
            launch(*arrays)
            self.task = None
            self.done.release()


class Team:
    """Workers that are started when they are first needed; one launch at a time uses them."""

    def __init__(self):
        self.workers: list[Worker] = []
        self.busy = threading.Lock()

    def run(self, launches: Sequence[Callable], arrays: tuple):
        """All launches on the same arrays, side by side; one after the other when the team is busy."""
        if not self.busy.acquire(blocking=False):
            for launch in launches:
                launch(*arrays)
            return
        try:
            while len(self.workers) < len(launches) - 1:
                self.workers.append(Worker())
            used = self.workers[:len(launches) - 1]
            for worker, launch in zip(used, launches[1:]):
                worker.task = launch, arrays
                worker.start.release()
            launches[0](*arrays)
            for worker, launch in zip(used, launches[1:]):
                if worker.start.acquire(blocking=False):         # it did not get to it: the CPUs are busy
                    launch(*arrays)
                else:
                    worker.done.acquire()
        except BaseException:                  # an interrupt: workers that are still busy are let go
            self.workers = []
            raise
        finally:
            self.busy.release()


_team = Team()


def parallel(launches, *arrays):
    """Run the parts of one launch on the team of this process."""
    _team.run(launches, arrays)


@in_child
def _after_fork():
    global _team
    _team = Team()


def threads_for(time: float, count: int) -> int:
    """How many threads share work on `count` lanes or rows that takes about `time` nanoseconds on one."""
    return max(min(thread_count(), int(time / SHARE), count), 1)


def parts(count: int, time: float) -> list[tuple[int, int]]:
    """Ranges of `count` lanes or rows: one a thread, when each has enough to do."""
    n = threads_for(time, count)
    step = -(-count // n)
    if count >= 128 * n > 128:
        step = -(-step // 128) * 128
    return [(lo, min(lo + step, count)) for lo in range(0, count, max(step, 1))] or [(0, 0)]
