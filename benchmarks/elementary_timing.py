"""Cost of the elementary functions, and accuracy and cost of NumPy, SciPy and JAX beside them.

Ours is timed from C, on 4,096 elements (in L1) and on 2**16; the others on 2**16 elements through their
Python calls, whose overhead is a few percent there at most. All in one process, interleaved; minima, with
medians and quartiles.
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

from tlgrad.kernels.elementary import FUNCTIONS, evaluate
from tlgrad.kernels.elementary.evaluation import compiled

from . import elementary_exhaustive, elementary_ulps

TABLE = pathlib.Path(__file__).parent / "elementary_timing.json"
PATHS_TABLE = TABLE.with_name("elementary_paths.json")
SMALL, LARGE, ROUNDS = 4096, 1 << 16, 31
DTYPES = ("float32", "float64")
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
         "atanh": "arctanh"}
SCIPY = {"erf": "erf", "erfc": "erfc", "logistic": "expit", "lgamma": "gammaln", "digamma": "digamma",
         "exp10": "exp10"}
TINY = 2.0 ** -1022
PATHS = [("exp", "float64", "subnormal results", -745, -708.5), ("exp", "float64", "overflow", 710, 800),
         ("log", "float64", "subnormal arguments", 0, TINY), ("log1p", "float64", "subnormal", -TINY, TINY),
         ("tanh", "float64", "subnormal", -TINY, TINY), ("erf", "float64", "subnormal", -TINY, TINY),
         ("sin", "float64", "subnormal", -TINY, TINY), ("sin", "float64", "huge", 1e200, 1e300),
         ("expm1", "float64", "subnormal", -TINY, TINY), ("atan", "float64", "subnormal", -TINY, TINY),
         ("exp", "float32", "subnormal results", -103, -88), ("log", "float32", "subnormal", 0, 1e-38),
         ("tanh", "float32", "subnormal", -1e-38, 1e-38), ("erf", "float32", "subnormal", -1e-38, 1e-38),
         ("sin", "float32", "huge", 1e20, 1e30)]
NAMES = [name for name, function in FUNCTIONS.items() if function.arity == 1]


def ordinary(name, n, dtype, seed=3):
    """Arguments of everyday size in the domain of the function."""
    x = np.random.default_rng(seed).standard_normal(n) * 2
    if name in ("log", "log2", "log10", "log1p", "rsqrt", "lgamma", "digamma"):
        x = np.abs(x)
    if name in ("asin", "acos", "atanh"):
        x = np.clip(x / 8, -1, 1)
    return (1 + np.abs(x) if name == "acosh" else x).astype(dtype)


def numpy_function(name):
    """NumPy's or SciPy's function, or None."""
    return getattr(np, NUMPY.get(name, name), None) or getattr(scipy.special, SCIPY.get(name, ""), None)


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
    x = ordinary(name, n, dtype) if x is None else x
    out = np.empty_like(x)
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
    if jitted := jax_function(name):
        found["jax"] = _python(jitted, jitted(x) * 0 + x)          # an array of JAX's
    return found


def cost(name, dtype):
    """{contestant: [minimum, median, lower, upper quartile] of ns per element}."""
    with double_precision():
        contestants = _contestants(name, dtype)
        rounds = {key: [] for key in contestants}
        for i in range(ROUNDS + 2):
            for key, once in contestants.items():
                value = once()
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
        for key, make in (("numpy", numpy_function), ("jax", jax_function)):
            if function := make(name):
                ulps = elementary_ulps.measure(name, elementary_ulps.CHUNK, 1, function)
                found[key] = {"binary32": _share(function, name), "binary64": ulps["normal"]}
    return found


def main(names, peers):
    """Measure `names` (all one-argument functions if empty), the peers' accuracy too, into the table."""
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for name in tqdm(names or NAMES):
        row = table.setdefault(name, {})
        row |= {dtype: cost(name, dtype) for dtype in DTYPES}
        if peers or "accuracy" not in row:
            row["accuracy"] = accuracy(name)
        print(name, json.dumps(row), flush=True)
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")
    PATHS_TABLE.write_text(json.dumps(paths(), indent=1) + "\n")
