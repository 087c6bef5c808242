"""How many threads share a launch: it is split by lanes or rows, so words do not depend on it.

The number of threads is $TLGRAD_NUM_THREADS, else the CPUs this process may use.
"""
from __future__ import annotations

import os

#: threads at most
MOST = 256
#: nanoseconds of work that pay for a thread: one that slept is at work after 60,000 in a virtual machine, and to
#: wake it takes 10,000
SHARE = 75_000


def thread_count() -> int:
    """How many threads a large launch is split over."""
    asked = os.environ.get("TLGRAD_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return min(int(asked), MOST)
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, MOST)


def threads_for(time: float, count: int) -> int:
    """How many threads share work on `count` lanes or rows that takes about `time` nanoseconds on one."""
    return max(min(thread_count(), int(time / SHARE), count), 1)
