"""``python3 -m benchmarks patterns``: planning, contractions, moves and reductions beside their peers.

Processor time of the whole process, so that a busy machine disturbs the ratios little.  Needs jax,
einops and opt_einsum.  For one thread everywhere, set OPENBLAS_NUM_THREADS=1 and
XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1".
"""
from __future__ import annotations

import statistics
import time

import einops
import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum

import tlgrad as tl
from tlgrad.patterns import einsum_plan, letters, parse, plan

CHAINS = {"ij,jk,kl->il": (200, 300, 250, 220), "bd,bd,b->d": (2000, 512), "ab,bc,cd,de->ae": (10, 20, 30, 20, 10),
          "bhqf,bhkf,bhkv->bhqv": (2, 4, 128, 32, 128, 32)}
MOVES = [("b (h a) (w c) d -> b h w (a c d)", (32, 128, 128, 16), {"a": 2, "c": 2}),
         ("b t h f -> (b h) t f", (32, 512, 8, 64), {}), ("a b -> (b a)", (2048, 2048), {})]
REDUCTIONS = [("b h w c -> b c", (64, 56, 56, 64)), ("a b -> a", (4096, 2048)), ("a b -> b", (4096, 2048))]


def compare(name, calls, turns=15):
    """Median times in turns; ratios of the peers' times to that of the first call, with quartiles."""
    times = {key: [] for key in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(turns):
        for key, call in calls.items():
            start = time.process_time()
            call()
            times[key].append(time.process_time() - start)
    first, *peers = calls
    text = [f"{name:36} {first} {statistics.median(times[first]) * 1e3:8.3f} ms"]
    for key in peers:
        ratios = sorted(b / a for a, b in zip(times[first], times[key]))
        low, high = ratios[turns // 4], ratios[3 * turns // 4]
        text.append(f"{key}/tl {statistics.median(ratios):5.2f} [{low:.2f}..{high:.2f}]")
    print("  ".join(text))


def planning():
    """Microseconds to parse and plan attention's pattern: at first, and remembered."""
    shapes = ((4, 8, 256, 64),) * 2
    text = "batch head query feature, batch head key feature -> batch head query key"
    first, again = [], []
    for _ in range(300):
        einsum_plan._plans.clear()
        plan._plans.clear()
        for cached in (parse.parse_einsum, parse.parse_transform, letters.read_einsum):
            cached.cache_clear()
        start = time.perf_counter_ns()
        einsum_plan.plan_einsum(text, shapes, False, {})
        middle = time.perf_counter_ns()
        for _ in range(100):
            einsum_plan.plan_einsum(text, shapes, False, {})
        first.append(middle - start)
        again.append((time.perf_counter_ns() - middle) / 100)
    print(f"planning {statistics.median(first) / 1e3:.1f} us at first, "
          f"{statistics.median(again) / 1e3:.2f} us again")


def main(arguments):
    """Run and report."""
    rng = np.random.default_rng(0)

    def array(shape):
        return rng.standard_normal(shape).astype(np.float32)

    planning()
    q, k = array((4, 8, 256, 64)), array((4, 8, 256, 64))
    on_jax = jax.jit(lambda a, b: jnp.einsum("bhqf,bhkf->bhqk", a, b))
    jq, jk, tq, tk = jnp.asarray(q), jnp.asarray(k), tl.tensor(q), tl.tensor(k)
    for order in ("ordered", "fused", "free"):
        scores = tl.run(lambda a, b: tl.einsum("b h q f, b h k f -> b h q k", a, b), order=order)
        compare(f"attention scores, {order}", {
            "tl": lambda f=scores: f(tq, tk), "np.matmul": lambda: np.matmul(q, k.swapaxes(-1, -2)),
            "jax": lambda: on_jax(jq, jk).block_until_ready()})
    for equation, lengths in CHAINS.items():
        names = dict(zip(dict.fromkeys(equation.split("->")[0].replace(",", "")), lengths))
        xs = [array(tuple(names[c] for c in term)) for term in equation.split("->")[0].split(",")]
        ts = [tl.tensor(x) for x in xs]
        compare(f"free {equation}", {"tl": lambda: tl.einsum(equation, *ts, order="free"),
                                     "opt_einsum": lambda: opt_einsum.contract(equation, *xs)})
    for pattern, shape, sizes in MOVES:
        x = array(shape)
        t, j, f = tl.tensor(x), jnp.asarray(x), jax.jit(lambda x: einops.rearrange(x, pattern, **sizes))
        compare(pattern, {"tl": lambda: tl.block(tl.rearrange(t, pattern, **sizes)),
                          "einops": lambda: einops.rearrange(x, pattern, **sizes), "copy": lambda: x.copy(),
                          "jax": lambda: f(j).block_until_ready()})
    for pattern, shape in REDUCTIONS:
        x = array(shape)
        t, j, f = tl.tensor(x), jnp.asarray(x), jax.jit(lambda x: einops.reduce(x, pattern, "sum"))
        compare(f"sum {pattern}", {"tl": lambda: tl.reduce(t, pattern, "sum"),
                                   "einops": lambda: einops.reduce(x, pattern, "sum"),
                                   "jax": lambda: f(j).block_until_ready()})
