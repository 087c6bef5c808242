"""W2 a chain of elementary functions, its value, and its value and gradient in one pass."""
from __future__ import annotations

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case
from benchmarks.peers_report import compare, jax

LARGE, SMALL = 10_000_000, 1 << 14      # elements: in memory, in cache
REPEATS = 64                            # calls on SMALL that make a round


def chain(m):
    """W2 over the functions of a module."""
    return lambda x: m.tanh(x) * m.exp(-x * x) + m.log1p(x * x)


def value_and_slope(f, m, vjp):
    """(f(x), f'(x)) elementwise, from one pass over x."""
    def both(x):
        y, pull = vjp(f, x)
        return y, pull(m.ones_like(y))[0]
    return both


def w2(rounds: int):
    """The chain in both formats on 10 million numbers."""
    for dtype in ("float32", "float64"):
        x = np.random.default_rng(0).standard_normal(LARGE).astype(dtype)
        j = jax()
        values(f"W2 {dtype} value", x, rounds, tl.run(chain(tl)), j and j.jit(chain(j.numpy)), j, chain(np))
        both = tl.run(value_and_slope(chain(tl), tl, tl.vjp))
        values(f"W2 {dtype} value and gradient", x, rounds, both,
               j and j.jit(value_and_slope(chain(j.numpy), j.numpy, j.vjp)), j)


def values(title, x, rounds, ours, theirs, j, plain=None):
    """One workload beside its peers, and per element beside itself in cache."""
    t, small = tl.tensor(x), tl.tensor(x[:SMALL])

    def in_cache():
        for _ in range(REPEATS):
            ours(small)
    cases = [Case("tlgrad", lambda: tl.block(ours(t)), LARGE), Case("tlgrad in cache", in_cache, SMALL * REPEATS)]
    if theirs is not None:
        a = j.numpy.asarray(x)
        cases.append(Case("jax", lambda: j.block_until_ready(theirs(a)), LARGE))
    if plain is not None:
        cases.append(Case("numpy", lambda: plain(x), LARGE))
    timings = compare(title, cases, rounds, pairs={c.name: (c.name, "tlgrad") for c in cases[2:]})["timings"]
    per = {n: timings[n]["median"] / timings[n]["items"] for n in ("tlgrad", "tlgrad in cache")}
    print(f"  {per['tlgrad'] / per['tlgrad in cache']:8.3f}  tlgrad on 10 million / in cache, per element")


WORKS = {"W2": w2}
