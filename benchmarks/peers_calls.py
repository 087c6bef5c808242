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
from benchmarks.harness import Case, measure, report, seconds, summarize
from benchmarks.peers_report import compare, jax, torch
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.kernels.cache import disk

CALLS = 2000
ROOT = pathlib.Path(__file__).resolve().parents[1]


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
            return subprocess.run([sys.executable, "-c", code], check=True, env=env, cwd=ROOT, text=True,
                                  stdout=subprocess.PIPE).stdout
        process(TLGRAD, warm)
        cases = [Case("tlgrad cold", lambda: process(TLGRAD)),
                 Case("tlgrad warm disk", lambda: process(TLGRAD, warm)),
                 Case("python", lambda: process("pass")), Case("numpy", lambda: process("import numpy"))]
        pairs = {}
        first_layer(process, warm, rounds)
        if jax() is not None:
            cases.append(Case("jax", lambda: process(JAX)))
            pairs = {"tlgrad cold / jax": ("tlgrad cold", "jax"),
                     "tlgrad warm / jax": ("tlgrad warm disk", "jax")}
        timings = measure(cases, max(rounds, 5), progress=False)
    report("W6 process to first result", timings, pairs, {k: f"by minima {timings[a].best / timings[b].best:.3f}"
                                                          for k, (a, b) in pairs.items()})
    compile_time(3)                           # loads LLVM, which the cold process above has in it
    for size in (30, 300, 2000, 5000, 20_000):
        print(f"  plan of {size} operations: {compile_time(size)}")


FIRST = """
import time
from benchmarks import peers_training as mlp
params, x, y = mlp.problem()
def timed(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start
"""
FIRST_TLGRAD = FIRST + """
import tlgrad as tl
x, w, b = map(tl.tensor, (x, *params[:2]))
layer = timed(lambda: tl.run(lambda x, w, b: tl.maximum(tl.matmul(x, w) + b, 0))(x, w, b))
print(layer, timed(mlp.tlgrad_step("ordered", params, x, y)))
"""
FIRST_JAX = FIRST + """
import jax
x, w, b = map(jax.numpy.asarray, (x, *params[:2]))
layer = timed(lambda: jax.jit(lambda x, w, b: jax.numpy.maximum(x @ w + b, 0))(x, w, b).block_until_ready())
print(layer, timed(mlp.jax_step(jax, params, x, y)))
"""


def first_layer(process, warm, rounds: int):
    """What the first layer and the first training step of the MLP of W7 wait for, in a fresh process."""
    codes = {"tlgrad cold": (FIRST_TLGRAD, ""), "tlgrad warm": (FIRST_TLGRAD, warm)}
    if jax() is not None:
        codes["jax"] = (FIRST_JAX, "")
    times: dict[str, list[float]] = {}
    for code, cache in codes.values():
        process(code, cache)
    for _ in range(max(rounds // 2, 5)):
        for name, (code, cache) in codes.items():
            for part, t in zip(("layer", "step"), map(float, process(code, cache).split())):
                times.setdefault(f"{name} {part}", []).append(t)
    timings = {name: summarize(found, 1) for name, found in times.items()}
    pairs = {f"jax {part} to {kind} / tlgrad": (f"jax {part}", f"tlgrad {kind} {part}")
             for part in ("layer", "step") for kind in ("cold", "warm")} if "jax" in codes else {}
    report("W6 first layer and step of an MLP", timings, pairs)


def compile_time(size: int) -> str:
    """Wall and CPU time from jaxpr to a runnable plan, for a chain of another length than before, without the disk
    cache."""
    def chain(x):
        y = x
        for k in range(size):
            y = (y * x, y + x, y - x)[k * 7919 % 3]
        return y
    program = tl.make_jaxpr(chain)(tl.tensor(np.ones(64, "float32")))
    folder, disk.folder = disk.folder, None
    wall, cpu = time.perf_counter(), time.process_time()
    Plan(program.jaxpr)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    disk.folder = folder
    return f"{seconds(wall)}, CPU {seconds(cpu)}"


class Model:
    """A method that is run."""

    scale = 0.7

    @tl.run
    def method(self, x):
        """With a bound value."""
        return x * self.scale - x * x / 1.3


def recompiles(_rounds: int):
    """How many compilations 100 variants of one call cost."""
    x, model = tl.tensor(np.ones(5)), Model()
    shared = tl.run(lambda x: x + 3.5)
    for _ in range(10):
        shared(x)                              # what all programs share is loaded
    scalars = tl.run(lambda x, s: x * s - 1.0 - s * s)
    lengths = tl.run(lambda x, s: x * s + 1.0 + s * s)

    def captured(k):
        scale = 0.5 + k
        return tl.run(lambda x: x / scale - x - x)(x)
    variants = {
        "100 Python scalars": lambda k: scalars(x, float(k)),
        "100 lengths": lambda k: lengths(tl.tensor(np.ones(k + 1)), 2.0),
        "100 fresh equal lambdas": lambda k: tl.run(lambda x: x / 3.0 - x)(x),
        "100 bound-method calls": lambda k: model.method(x),
        "100 captured constants": captured}
    for name, call in variants.items():
        before = tl.cache_info()
        for k in range(100):
            call(k)
        now = tl.cache_info()
        print(f"  {name}: {now.compiles + now.disk_hits - before.compiles - before.disk_hits} compiled, "
              f"{now.traces - before.traces} traced")


WORKS = {"W5": w5, "W6": w6, "recompiles": recompiles}
