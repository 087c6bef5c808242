"""The same calls on one and on two threads, in wall time on all CPUs of this process."""
from __future__ import annotations

import os
import threading

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case, measure, report
from benchmarks.peers_arrays import STARTS, limit_case, step
from benchmarks.peers_training import problem, tlgrad_step


def works() -> dict:
    """(function, arguments) by name."""
    rng = np.random.default_rng(0)

    def array(*shape):
        return tl.tensor(rng.standard_normal(shape).astype("float32"))
    starts = tl.tensor(np.linspace(-1, 1, STARTS).astype("float32"))
    square, large = array(1024, 1024), array(4096, 4096)
    return {
        "W1 100 turns": (lambda x: tl.iterate(step, 100, x), (starts,)),
        "W1 value and gradient, 60 turns": (
            tl.value_and_grad(lambda x: tl.sum(tl.iterate(step, 60, x))), (starts,)),
        "W3 1024^3 ordered": (tl.matmul, (square, square)),
        "W4 row sums": (lambda x: tl.sum(x, axis=1), (large,)),
        "softmax 4096x4096": (tl.softmax, (large,)),
        "exp, 3 * 10^5": (tl.exp, (array(300_000),)),
        "elementwise, 10^7": (lambda x: tl.tanh(x) * tl.exp(-x * x), (array(10_000_000),)),
        "elementwise loss and gradient": (
            tl.value_and_grad(lambda x: tl.sum(tl.log1p(tl.exp(x)) * x)), (array(10_000_000),))}


def on_threads(count: int, f, args):
    """A call of f compiled for so many threads, once made."""
    os.environ["TLGRAD_NUM_THREADS"] = str(count)
    run = tl.run(f)
    run(*args)
    return lambda: run(*args)


def training(count: int):
    """A step of W7 compiled for so many threads, in fused order."""
    os.environ["TLGRAD_NUM_THREADS"] = str(count)
    step = tlgrad_step("fused", *problem())
    step()
    return step


def control() -> list[Case]:
    """Arithmetic in registers, all of it in one thread and half of it in each of two: what this machine allows."""
    half = limit_case("float32", "limit_threads", 1, 1, 20_000_000).round

    def two():
        other = threading.Thread(target=half)
        other.start()
        half()
        other.join()
    return [Case("control: registers, 1 thread", lambda: (half(), half())),
            Case("control: registers, 2 threads", two)]


def threads(rounds: int):
    """How much faster two threads are, and that they give the same words."""
    cases, notes = control(), {"CPUs": len(os.sched_getaffinity(0))}
    pairs = {"control: registers": tuple(c.name for c in cases)}
    for name, (f, args) in works().items():
        one, two = (on_threads(n, f, args) for n in (1, 2))
        cases += [Case(f"{name}, 1 thread", one), Case(f"{name}, 2 threads", two)]
        pairs[name] = (f"{name}, 1 thread", f"{name}, 2 threads")
        notes[f"{name}, same words"] = all(map(
            tl.same_bits, tl.tree.flatten(one())[0], tl.tree.flatten(two())[0]))
    cases += [Case(f"W7 training step, {n} thread{'s' * (n > 1)}", training(n)) for n in (1, 2)]
    pairs["W7 training step"] = ("W7 training step, 1 thread", "W7 training step, 2 threads")
    timings = measure(cases, rounds, progress=False)
    notes |= {f"{name}, by minima": f"{timings[a].best / timings[b].best:.3f}" for name, (a, b) in pairs.items()}
    report("threads 1 to 2", timings, pairs, notes)


WORKS = {"threads": threads}
