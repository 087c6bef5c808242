"""Cost of the elementary functions, and accuracy and cost of NumPy, SciPy, JAX and libm beside them.

Ours is timed from C, on 4,096 elements (in L1) and on 2**16; the others on 2**16 elements through their
Python calls, whose overhead is a few percent there at most. All in one process and on one thread, interleaved;
minima, with medians and quartiles. Each runs for 2 ms before it is timed: a processor needs some 0.5 ms to change
the clock for vector instructions, and the one before left its own caches.
"""
import contextlib
import ctypes
import json
import pathlib
import statistics
import time

import numpy as np
import scipy.special
from tqdm import tqdm

from tlgrad.kernels.cache import disk
from tlgrad.kernels.elementary import FUNCTIONS, evaluate, evaluation
from tlgrad.kernels.elementary.evaluation import compiled
from tlgrad.kernels.expr.branches import Branch
from tlgrad.kernels.machine import host

from . import elementary_exhaustive, elementary_ulps

TABLE = pathlib.Path(__file__).parent / "elementary_timing.json"
PATHS_TABLE = TABLE.with_name("elementary_paths.json")
SMALL, LARGE, ROUNDS = 4096, 1 << 16, 31
WARM = 2e-3                             # seconds
DTYPES = ("float32", "float64")
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
         "atanh": "arctanh"}
SCIPY = {"erf": "erf", "erfc": "erfc", "logistic": "expit", "lgamma": "gammaln", "digamma": "digamma",
         "exp10": "exp10", "gamma": "gamma"}
TINY = 2.0 ** -1022
# off the fast path: function, dtype, words for it, an interval of arguments; subnormals for every function
PATHS = [("exp", "float64", "subnormal results", -745, -708.5), ("exp", "float64", "overflow", 710, 800),
         ("sin", "float64", "huge", 1e200, 1e300), ("exp", "float32", "subnormal results", -103, -88),
         ("sin", "float32", "huge", 1e20, 1e30)]
NAMES = [name for name, function in FUNCTIONS.items() if function.arity == 1]
POSITIVE = ("log", "log2", "log10", "rsqrt")
PATHS += [(name, dtype, "subnormal", 0 if name in POSITIVE else -least, least)
          for dtype, least in (("float64", TINY), ("float32", 2.0 ** -126)) for name in NAMES if name != "acosh"]
PAGE = 4096


def machine():
    """The class of machine that the figures are of."""
    import llvmlite.binding as binding
    has = binding.get_host_cpu_features()
    vector = "AVX-512" if has.get("avx512f") else "AVX2" if has.get("avx2") else "no AVX2"
    return f"{binding.get_host_cpu_name()}, {vector}"


def aligned(x, offset=0):
    """A copy of `x` that starts `offset` bytes into a page: input and output must not share the low bits."""
    room = np.empty(x.nbytes + 2 * PAGE, np.uint8)
    start = -room.ctypes.data % PAGE + offset
    placed = room[start:start + x.nbytes].view(x.dtype)
    placed[:] = x
    return placed


def ordinary(name, n, dtype, seed=3):
    """Arguments of everyday size in the domain of the function."""
    x = np.random.default_rng(seed).standard_normal(n) * 2
    if name in ("log", "log2", "log10", "log1p", "rsqrt", "lgamma", "gamma", "digamma"):
        x = np.abs(x)
    if name in ("asin", "acos", "atanh"):
        x = np.clip(x / 8, -1, 1)
    return (1 + np.abs(x) if name == "acosh" else x).astype(dtype)


def numpy_function(name):
    """NumPy's or SciPy's function, or None."""
    return getattr(np, NUMPY.get(name, name), None) or getattr(scipy.special, SCIPY.get(name, ""), None)


def libm_function(name):
    """libm's scalar function over an array, or None."""
    loaded = elementary_exhaustive.library()
    if loaded.libm(name.encode(), 1, None, None, ctypes.c_int64(0)):
        return None

    def run(x, out=None):
        x = np.ascontiguousarray(x)
        out = np.empty_like(x) if out is None else out
        loaded.libm(name.encode(), int(x.itemsize == 8), ctypes.c_void_p(x.ctypes.data),
                    ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(x.size))
        return out
    return run


@contextlib.contextmanager
def double_precision():
    """JAX with 64-bit types, as long as it lasts."""
    import jax
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def jax_function(name):
    """JAX's function, compiled, from array to ready array; None if it has none."""
    import jax
    special = {"erf": jax.lax.erf, "erfc": jax.lax.erfc, "logistic": jax.nn.sigmoid, "rsqrt": jax.lax.rsqrt,
               "softplus": jax.nn.softplus, "lgamma": jax.lax.lgamma, "digamma": jax.lax.digamma,
               "gamma": jax.scipy.special.gamma,
               "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False), "gelu_tanh": jax.nn.gelu}
    function = special.get(name) or getattr(jax.numpy, NUMPY.get(name, name), None)
    if function is None:
        return None
    jitted = jax.jit(function)
    return lambda x: jitted(x).block_until_ready()


# ---------------------------------------------------------------- cost

def _ours(name, dtype, n, calls, x=None):
    """A callable that gives the ns per element of the compiled kernel, at ordinary arguments or `x`."""
    loaded = elementary_exhaustive.library()
    kernel = ctypes.cast(compiled(name, dtype), ctypes.c_void_p)
    x = aligned(ordinary(name, n, dtype) if x is None else x)
    out = aligned(x, PAGE // 2)
    arguments = (kernel, ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
                 ctypes.c_int64(n), ctypes.c_int64(calls))
    return lambda: (x, out) and loaded.nanoseconds(*arguments) / n / calls


def _python(function, x):
    def once():
        start = time.perf_counter_ns()
        function(x)
        return (time.perf_counter_ns() - start) / x.size
    return once


def _contestants(name, dtype):
    x = ordinary(name, LARGE, dtype)
    found = {"small": _ours(name, dtype, SMALL, 32), "large": _ours(name, dtype, LARGE, 1)}
    out = np.empty_like(x)
    if theirs := numpy_function(name):
        found["numpy"] = _python(lambda x: theirs(x, out=out), x)
    if scalar := libm_function(name):
        found["libm"] = _python(lambda x: scalar(x, out), x)
    if jitted := jax_function(name):
        found["jax"] = _python(jitted, jitted(x) * 0 + x)          # an array of JAX's
    return found


def _settled(once):
    """The value of `once` after some 2 ms of it."""
    end = time.perf_counter() + WARM
    while time.perf_counter() < end:
        once()
    return once()


def cost(name, dtype):
    """{contestant: [minimum, median, lower, upper quartile] of ns per element}."""
    with double_precision():
        contestants = _contestants(name, dtype)
        rounds = {key: [] for key in contestants}
        for i in range(ROUNDS + 2):
            for key, once in contestants.items():
                value = _settled(once)
                if i > 1:
                    rounds[key].append(value)
    quartiles = {key: statistics.quantiles(values, n=4) for key, values in rounds.items()}
    return {key: [round(v, 3) for v in (min(rounds[key]), q[1], q[0], q[2])]
            for key, q in quartiles.items()}


def paths():
    """{"function dtype: arguments": times of the ordinary} of the slower paths."""
    found = {}
    for name, dtype, label, low, high in PATHS:
        x = np.random.default_rng(1).uniform(low, high, SMALL).astype(dtype)
        usual, special = _ours(name, dtype, SMALL, 16), _ours(name, dtype, SMALL, 16, x)
        pairs = [(usual(), special()) for _ in range(ROUNDS)]
        found[f"{name} {dtype}: {label}"] = round(min(b for _, b in pairs) / min(a for a, _ in pairs), 2)
    return found


# ---------------------------------------------------------------- accuracy of the others

def _share(function, name):
    """[share of binary32 results equal to ours, worst distance in units in the last place]."""
    x = ordinary(name, 1 << 20, np.float32)
    with np.errstate(all="ignore"):
        ours, theirs = evaluate(name, x), np.asarray(function(x))
    keep = np.isfinite(ours) & np.isfinite(theirs)
    gap = np.abs(ours[keep].view(np.int32).astype(np.int64) - theirs[keep].view(np.int32))
    return [round(float(np.mean(gap == 0)), 4), int(gap.max())]


def accuracy(name):
    """Per contestant: its binary32 agreement with the correctly rounded result, its binary64 ulps."""
    found = {}
    with double_precision():
        for key, make in (("numpy", numpy_function), ("jax", jax_function), ("libm", libm_function)):
            if function := make(name):
                ulps = elementary_ulps.measure(name, elementary_ulps.CHUNK, 1, function)
                found[key] = {"binary32": _share(function, name), "binary64": ulps["normal"]}
    return found


def compilation(name, dtype):
    """Milliseconds of CPU time that rendering and compiling takes, without the disk cache, the least of five: of
    the kernel, and of all branches that are functions of their own, which kernels share."""
    evaluation.build(name, dtype)
    folder, disk.folder = disk.folder, None
    branches = _branches(evaluation.host_kernel(name, dtype).externals)
    found = {"compile": _least_time(lambda: evaluation.build(name, dtype)),
             "branches": _least_time(lambda: [host().function(text, "branch") for text in branches])}
    disk.folder = folder
    return found


def _least_time(once):
    times = []
    for _ in range(5):
        start = time.process_time()
        once()
        times.append(time.process_time() - start)
    return round(min(times) * 1e3, 1)


def _branches(externals):
    """The modules of branches among external symbols, those inside others too."""
    found = [b for b in externals.values() if isinstance(b, Branch)]
    return {b.text for b in found}.union(*[_branches(b.externals) for b in found])


def _updated(names, change):
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for name in tqdm(names or NAMES):
        row = table.setdefault(name, {})
        change(name, row)
        print(name, json.dumps(row), flush=True)
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")


def main(names):
    """Time `names` (all one-argument functions if empty) and the slower paths, into the tables."""
    def timed(name, row):
        row |= {dtype: cost(name, dtype) | compilation(name, dtype) for dtype in DTYPES}
        row["machine"] = machine()
    _updated(names, timed)
    PATHS_TABLE.write_text(json.dumps(paths(), indent=1) + "\n")


def peers(names):
    """Measure the accuracy of NumPy, JAX and libm, into the table."""
    _updated(names, lambda name, row: row.update(accuracy=accuracy(name)))
