"""Timing: phases apart, medians with spread, a control, JSON out.

A benchmark is a list of `Case`: a name, a callable that does one round, and how many items a
round holds.  `measure` interleaves all cases round by round, so that a slow minute of the machine
falls on all of them, and reports median, quartiles and minimum.  `control` is a NumPy matrix
product: when its spread is wide, the machine was busy.
"""
from __future__ import annotations

import json
import pathlib
import platform
import statistics
import time
from typing import Callable, NamedTuple

import numpy as np
from tqdm import tqdm

RESULTS = pathlib.Path(__file__).parent / "results"


class Case(NamedTuple):
    """One thing to time.  `prepare` runs before every round, untimed (clear a cache: cold)."""
    name: str
    round: Callable[[], object]
    items: int = 1
    prepare: Callable[[], object] | None = None


class Timing(NamedTuple):
    """Seconds a round: median, lower and upper quartile, minimum; items a round; rounds."""
    median: float
    low: float
    high: float
    best: float
    items: int
    rounds: int

    def text(self) -> str:
        """``3.21 ms (3.10 .. 3.40)``, or per item when a round has several."""
        per = 1 / self.items
        return f"{seconds(self.median * per)} ({seconds(self.low * per)} .. {seconds(self.high * per)})"


def seconds(t: float) -> str:
    """A duration with a unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if t >= size:
            return f"{t / size:.3g} {unit}"
    return f"{t / 1e-9:.3g} ns"


def control() -> Case:
    """A 256 x 256 float64 product by NumPy."""
    a = np.random.default_rng(0).standard_normal((256, 256))
    return Case("control: numpy matmul 256", lambda: a @ a)


def measure(cases: list[Case], rounds: int = 15, progress: bool = True) -> dict[str, Timing]:
    """Time all cases, interleaved.  The first round of each is dropped unless it has `prepare`."""
    times: dict[str, list[float]] = {c.name: [] for c in cases}
    for case in cases:
        if case.prepare is None:
            case.round()
    for _ in tqdm(range(rounds), disable=not progress, leave=False):
        for case in cases:
            if case.prepare is not None:
                case.prepare()
            start = time.perf_counter()
            case.round()
            times[case.name].append(time.perf_counter() - start)
    return {c.name: summarize(times[c.name], c.items) for c in cases}


def summarize(times: list[float], items: int) -> Timing:
    """Median, quartiles and minimum of a list of durations."""
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return Timing(middle, low, high, min(times), items, len(times))


def report(title: str, timings: dict[str, Timing], ratios: dict[str, tuple[str, str]] | None = None,
           extra: dict | None = None) -> dict:
    """Print a table, ratios first; write benchmarks/results/<title>.json; give its content."""
    print(f"\n{title}  ({platform.processor() or platform.machine()}, NumPy {np.__version__})")
    found = {}
    for name, (a, b) in (ratios or {}).items():
        found[name] = timings[a].median / timings[b].median
        print(f"  {found[name]:8.3f}  {name}")
    width = max(map(len, timings))
    for name, t in timings.items():
        print(f"  {name:{width}}  {t.text()}")
    for name, value in (extra or {}).items():
        print(f"  {name}: {value}")
    content = {"title": title, "ratios": found, "pairs": ratios or {}, "extra": extra or {},
               "timings": {n: t._asdict() for n, t in timings.items()}}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{title}.json").write_text(json.dumps(content, indent=1))
    return content
