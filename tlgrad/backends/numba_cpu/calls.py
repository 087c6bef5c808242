"""Kernels on (count, *addresses) on several threads of the interpreter, which does not hold calls by ctypes."""
from __future__ import annotations

import itertools
from typing import Callable

import numpy as np

from tlgrad.backends.numba_cpu.packed import Chain
from tlgrad.backends.numba_cpu.threads import MOST, threads_for
from tlgrad.kernels.fork import in_child
from tlgrad.kernels.later import Later
from tlgrad.passes.views import view_of

futures = Later("concurrent.futures.thread")
#: nanoseconds of an operation on a number of software format, by the bytes that it is held in; none takes less
SLOW, WIDE, FAST = 4.0, 16, 0.4
#: shares of a call for each thread, a multiple of `UNIT` entries
EACH, UNIT = 8, 64
_pool = None


@in_child
def _after_fork():
    global _pool
    _pool = None


def sharing(chain: Chain) -> Callable | None:
    """How to call the kernel of a chain: a function of (kernel, count, arrays), where arrays of one entry are for
    all numbers; None for a single call."""
    count, steps = chain.results[0].aval.size, len(chain.steps)
    wide = any(v.root.aval.dtype.storage.itemsize >= WIDE for v in (*chain.views, *map(view_of, chain.results)))
    threads = threads_for(count * steps * (SLOW if wide else FAST), count // UNIT)
    if threads == 1:
        return None
    share = -(-count // (threads * EACH * UNIT)) * UNIT

    def call(kernel, count, arrays: list[np.ndarray]):
        places = [(a.ctypes.data, a.itemsize * (a.size > 1)) for a in arrays]
        numbers = itertools.count()

        def work():
            while (first := next(numbers) * share) < count:
                kernel(min(share, count - first), *[place + first * step for place, step in places])
        others = [_executor().submit(work) for _ in range(threads - 1)]
        work()
        for other in others:
            if not other.cancel():
                other.result()
    return call


def _executor():
    global _pool
    if _pool is None:
        _pool = futures.ThreadPoolExecutor(MOST, "tlgrad calls")
    return _pool
