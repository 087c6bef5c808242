"""Shared by the peer benchmarks: optional peers, ratios of medians and minima."""
from __future__ import annotations

import time

from benchmarks.harness import Case, Timing, control, report, summarize


def jax():
    """The jax module with 64-bit types, or None when it is not installed."""
    try:
        import jax as module
    except ImportError:
        return None
    module.config.update("jax_enable_x64", True)
    return module


def torch():
    """The torch module on one thread, or None when it is not installed."""
    try:
        import torch as module
    except ImportError:
        return None
    module.set_num_threads(1)
    return module


def settle():
    """Wait until nothing of this process runs: a peer's threads may still give memory back."""
    used = time.process_time() - 1
    while time.process_time() - used > 2e-4:
        used = time.process_time()
        time.sleep(2e-3)


def measure_cpu(cases: list[Case], rounds: int) -> dict[str, Timing]:
    """CPU time of all cases, round by round.

    Everybody runs in this process on one pinned CPU, so CPU time is what a quiet machine would show
    as time; other programs on the machine do not count.  A call of the same case goes before each that
    is timed: operands and code lie where the case itself leaves them, whichever case came before.
    """
    times: dict[str, list[float]] = {c.name: [] for c in cases}
    for case in cases:
        case.round()
    for _ in range(rounds):
        for case in cases:
            settle()
            case.round()
            start = time.process_time()
            case.round()
            times[case.name].append(time.process_time() - start)
    return {c.name: summarize(times[c.name], c.items) for c in cases}


def compare(title: str, cases: list[Case], rounds: int, extra: dict | None = None,
            own: str = "tlgrad", pairs: dict | None = None):
    """Time all cases; print the ratio of every other case to that of tlgrad."""
    timings = measure_cpu([*cases, control()], rounds)
    pairs = pairs or {c.name: (c.name, own) for c in cases if c.name != own}
    notes = dict(extra or {})
    for label, (peer, mine) in pairs.items():
        best = timings[peer].best / timings[mine].best
        notes[f"{label}, by minima"] = f"{best:.3f}"
    missing = [name for name, module in (("jax", jax()), ("torch", torch())) if module is None]
    if missing:
        notes["missing peers"] = ", ".join(missing)
    return report(title, timings, {f"{k} / tlgrad": v for k, v in pairs.items()}, notes)
