"""W5 calls on small arrays, W6 time to the first result, recompilations."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case, measure, report, seconds
from benchmarks.peers_report import compare, jax, torch
from tlgrad.backends.numba_cpu.plan import Plan

CALLS = 2000


def w5(rounds: int):
    """A compiled call on three elements, and its gradient."""
    x = tl.tensor(np.ones(3, "float32"))
    square, slope = tl.run(lambda x: x * x), tl.run(tl.grad(lambda x: tl.sum(x * x)))
    own = [Case("tlgrad", many(lambda: square(x)), CALLS), Case("tlgrad gradient", many(lambda: slope(x)), CALLS)]
    data = x.data
    cases = [*own, Case("numpy", many(lambda: data * data), CALLS)]
    pairs = {"numpy": ("numpy", "tlgrad")}
    if (j := jax()) is not None:
        a, f, g = j.numpy.ones(3, "float32"), j.jit(lambda x: x * x), j.jit(j.grad(lambda x: (x * x).sum()))
        cases += [Case("jax jit", many(lambda: f(a)), CALLS), Case("jax jit gradient", many(lambda: g(a)), CALLS)]
        pairs |= {"jax jit": ("jax jit", "tlgrad"), "jax jit gradient": ("jax jit gradient", "tlgrad gradient")}
    if (th := torch()) is not None:
        b = th.ones(3)
        cases.append(Case("torch eager", many(lambda: b * b), CALLS))
        pairs["torch eager"] = ("torch eager", "tlgrad")
    compare("W5 calls on 3 elements", cases, rounds, pairs=pairs)


def many(f):
    """A round of CALLS calls."""
    def run():
        for _ in range(CALLS):
            f()
    return run


TLGRAD = "import numpy as np, tlgrad as tl; tl.run(lambda x: x * x)(tl.tensor(np.ones(3, 'float32'))).tolist()"
JAX = "import numpy as np, jax; jax.jit(lambda x: x * x)(np.ones(3, 'float32')).block_until_ready()"


def w6(rounds: int):
    """Whole processes to the first result; compilation of kernels by size."""
    with tempfile.TemporaryDirectory() as folder:
        warm = str(pathlib.Path(folder, "warm"))

        def process(code, cache=""):
            """One process; byte code is kept, as in an installed package."""
            env = {**os.environ, "TLGRAD_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": "",
                   "PYTHONPYCACHEPREFIX": str(pathlib.Path(folder, "bytecode"))}
            subprocess.run([sys.executable, "-c", code], check=True, env=env)
        process(TLGRAD, warm)
        cases = [Case("tlgrad cold", lambda: process(TLGRAD)),
                 Case("tlgrad warm disk", lambda: process(TLGRAD, warm)),
                 Case("python", lambda: process("pass")), Case("numpy", lambda: process("import numpy"))]
        pairs = {}
        if jax() is not None:
            cases.append(Case("jax", lambda: process(JAX)))
            pairs = {"tlgrad cold / jax": ("tlgrad cold", "jax"),
                     "tlgrad warm / jax": ("tlgrad warm disk", "jax")}
        timings = measure(cases, max(rounds, 5), progress=False)
    report("W6 process to first result", timings, pairs, {k: f"by minima {timings[a].best / timings[b].best:.3f}"
                                                          for k, (a, b) in pairs.items()})
    for size in (30, 300, 2000, 5000, 20_000):
        print(f"  plan of {size} operations: {compile_time(size)}")


def compile_time(size: int) -> str:
    """Wall and CPU time from jaxpr to a runnable plan, for a chain that no cache knows."""
    def chain(x):
        y = x
        for k in range(size):
            y = (y * x, y + x, y - x)[(k * 7919 + size + os.getpid()) % 3]
        return y
    program = tl.make_jaxpr(chain)(tl.tensor(np.ones(64, "float32")))
    wall, cpu = time.perf_counter(), time.process_time()
    Plan(program.jaxpr)
    return f"{seconds(time.perf_counter() - wall)}, CPU {seconds(time.process_time() - cpu)}"


def recompiles(_rounds: int):
    """How many compilations 100 variants of one call cost."""
    variants = {
        "100 Python scalars": lambda f, k: f(tl.tensor(np.ones(5)), float(k)),
        "100 lengths": lambda f, k: f(tl.tensor(np.ones(k + 1)), 2.0)}
    for name, call in variants.items():
        f = tl.run(lambda x, s: x * s + 1.0 + s * s)
        before = tl.cache_info().compiles + tl.cache_info().disk_hits
        for k in range(100):
            call(f, k)
        print(f"  {name}: {tl.cache_info().compiles + tl.cache_info().disk_hits - before} compilations")
    before = tl.cache_info().compiles + tl.cache_info().disk_hits
    for k in range(100):
        tl.run(lambda x: x / 3.0 - x)(tl.tensor(np.ones(5)))
    print(f"  100 fresh equal lambdas: {tl.cache_info().compiles + tl.cache_info().disk_hits - before}")
    before = tl.cache_info().compiles + tl.cache_info().disk_hits
    for k in range(100):
        scale = 0.5 + k
        tl.run(lambda x: x / scale - x - x)(tl.tensor(np.ones(5)))
    print(f"  100 captured constants: {tl.cache_info().compiles + tl.cache_info().disk_hits - before}")


WORKS = {"W5": w5, "W6": w6, "recompiles": recompiles}
