"""tlgrad beside its peers, one thread:

    python3 -m benchmarks peers [W1 .. W7 escape scan rows threads recompiles] [rounds=9]

A peer that is not installed is reported as missing.  Every workload has a process of its own: what an
allocator or a thread pool keeps of one is no part of the next.  All contenders of a workload are timed
in turn, round by round, in CPU time on one pinned CPU (W6 and threads: wall time); a ratio is peer /
tlgrad (above 1: tlgrad is faster), of medians, and of minima.
"""
from __future__ import annotations

import os
import subprocess
import sys

#: one thread for everybody, before NumPy or JAX start theirs
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
          "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


def restart_single_threaded(command, arguments):
    """Start this process again with one thread a library."""
    if os.environ.get("TLGRAD_BENCH_SINGLE") != "1":
        env = {**os.environ, **SINGLE, "TLGRAD_BENCH_SINGLE": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", command, *arguments], env)


def pin():
    """Run this process on one CPU."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def main(arguments):
    """Run the workloads named, or all."""
    restart_single_threaded("peers", arguments)
    from benchmarks import (peers_arrays, peers_calls, peers_escape, peers_functions, peers_loops, peers_rows,
                            peers_threads, peers_training)
    works = {**peers_arrays.WORKS, **peers_calls.WORKS, **peers_training.WORKS,
             **peers_functions.WORKS, **peers_escape.WORKS, **peers_loops.WORKS,
             **peers_rows.WORKS, **peers_threads.WORKS}
    rounds = [a[7:] for a in arguments if a.startswith("rounds=")] or ["9"]
    chosen = [a for a in arguments if not a.startswith("rounds=")]
    if not (set(chosen) <= set(works) and rounds[-1].isdigit()):
        sys.exit("usage: python3 -m benchmarks peers [WORKLOAD ...] [rounds=9], "
                 f"WORKLOAD one of: {', '.join(works)}")
    if len(chosen) == 1:
        if chosen != ["threads"]:
            pin()
        return works[chosen[0]](int(rounds[-1]))
    for name in chosen or works:
        subprocess.run([sys.executable, "-m", "benchmarks", "peers", name, f"rounds={rounds[-1]}"], check=True)
