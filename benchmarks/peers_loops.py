"""Scans over 100,000 numbers, forward and in reverse under limits on the states that are kept."""
from __future__ import annotations

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case
from benchmarks.peers_report import compare, jax

TURNS = 100_000


def cell(carry, x):
    """One turn."""
    return 0.5 * carry - carry * carry * 0.25 + x, None


def scans(rounds: int):
    """Gradient and forward time of tlgrad, as a ratio, and JAX beside both."""
    xs = np.sin(np.arange(TURNS, dtype="float64"))
    start, t = tl.tensor(0.5), tl.tensor(xs)

    def last(memory):
        return lambda c, xs: tl.scan(cell, c, xs, memory=memory)[0]
    forward = tl.run(last(None))
    cases = [Case("tlgrad forward", lambda: forward(start, t))]
    pairs = {}
    for memory in (TURNS, 100, 10, None):
        f = tl.run(tl.value_and_grad(last(memory), argnums=(0, 1)))
        name = f"tlgrad gradient, {'default' if memory is None else memory} states"
        cases.append(Case(name, lambda f=f: f(start, t)))
        pairs[name] = name, "tlgrad forward"
    if (j := jax()) is not None:
        a, b = j.numpy.asarray(0.5), j.numpy.asarray(xs)
        g = j.jit(lambda c, xs: j.lax.scan(cell, c, xs)[0])
        h = j.jit(j.value_and_grad(lambda c, xs: j.lax.scan(cell, c, xs)[0], argnums=(0, 1)))
        cases += [Case("jax forward", lambda: j.block_until_ready(g(a, b))),
                  Case("jax gradient", lambda: j.block_until_ready(h(a, b)))]
        pairs["jax forward"] = "jax forward", "tlgrad forward"
        pairs["jax gradient"] = "jax gradient", "tlgrad gradient, 100 states"
    compare(f"scan over {TURNS} numbers, float64", cases, rounds, pairs=pairs)


WORKS = {"scan": scans}
