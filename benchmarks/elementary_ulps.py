"""The error of the binary64 results against MPFR, over every exponent, hard cases and ordinary ranges.

Results that glibc's 64-bit functions show to be no worse than the worst so far do not reach MPFR.
"""
import concurrent.futures
import ctypes
import json
import pathlib
import subprocess

import gmpy2
import numpy as np
from tqdm import tqdm

from tlgrad.kernels.elementary import FUNCTIONS, evaluate

HERE = pathlib.Path(__file__).parent
TABLE = HERE / "elementary_ulps.json"
RESULTS = HERE / "results"
CHUNK = 1 << 18
PI = np.pi
# per function: intervals sampled uniformly, beside the words of every exponent and small numbers
RANGES = {
    "exp": [(-745, 710), (-2, 2)], "exp2": [(-1075, 1024), (-2, 2)], "exp10": [(-324, 309), (-1, 1)],
    "expm1": [(-40, 710), (-2, 2)], "log": [(0.5, 2), (0, 1e6)], "log2": [(0.5, 2), (0, 1e6)],
    "log10": [(0.5, 2), (0, 1e6)], "log1p": [(-1, 2), (-0.5, 0.5)], "sin": [(-10, 10), (-1e6, 1e6)],
    "cos": [(-10, 10), (-1e6, 1e6)], "tan": [(-10, 10), (-1e6, 1e6)], "sinpi": [(-4, 4), (-1e5, 1e5)],
    "cospi": [(-4, 4), (-1e5, 1e5)], "asin": [(-1, 1), (0.4, 0.6)], "acos": [(-1, 1), (0.4, 0.6)],
    "atan": [(-4, 4), (-100, 100)], "atan2": [(-4, 4), (-100, 100)], "sinh": [(-2, 2), (-711, 711)],
    "cosh": [(-2, 2), (-711, 711)], "tanh": [(-1, 1), (-20, 20)], "asinh": [(-4, 4), (-1e3, 1e3)],
    "acosh": [(1, 2), (1, 1e3)], "atanh": [(-1, 1), (-0.1, 0.1)], "logistic": [(-745, 40), (-4, 4)],
    "softplus": [(-745, 40), (-4, 4)], "logaddexp": [(-40, 40), (-2, 2)], "pow": [(0, 4), (-30, 30)],
    "erf": [(-6, 6), (-1, 1)], "erfc": [(-6, 27.3), (-1, 3)], "gelu_erf": [(-38, 9), (-3, 3)],
    "gelu_tanh": [(-21, 9), (-3, 3)], "lgamma": [(-30, 12), (0.5, 3)], "digamma": [(-30, 12), (0.5, 3)],
    "gamma": [(-30, 172), (0.5, 3)],
    "rsqrt": [(0, 4), (0, 1e6)], "cbrt": [(-8, 8), (-1e6, 1e6)], "hypot": [(-4, 4), (-1e6, 1e6)]}
POSITIVE = {"log", "log2", "log10", "rsqrt", "pow"}
HARD = [6381956970095103 * 2.0 ** 797, 5319372648326541 * 2.0 ** 680, 2.0 ** 1023, 1e22, 6.0221409e23,
        2.0 ** 24 * 1.5, 709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412,
        -708.3964185322641, 1024.0, -1074.0, -1075.0, 308.25471555991674, 308.2547155599168, 0.0, -0.0,
        1.0, -1.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, np.inf, -np.inf,
        np.nan, 710.4758600739439, 710.475860073944, 26.543258430632983, 2.5563481638716905e305]


def arguments(name, n, seed):
    """`n` binary64 numbers: a quarter random words of every exponent, the rest from `RANGES` and small."""
    g = np.random.default_rng(seed)
    q = n // 4
    top = 1053 if name in ("gamma", "lgamma", "digamma") else 2047      # MPFR takes seconds for a huge one
    words = g.integers(0, top << 52, q, dtype=np.uint64).view(np.float64) * g.choice([-1.0, 1.0], q)
    small = np.ldexp(g.uniform(-1, 1, n - 3 * q), g.integers(-60, 3, n - 3 * q))
    if name in ("sin", "cos", "tan"):
        small = np.rint(g.uniform(-2.0 ** 26, 2.0 ** 26, n - 3 * q)) * (PI / 2)
    if name == "log":
        small = 1 + small
    x = np.concatenate([words, small, *(g.uniform(*r, q) for r in RANGES[name])])
    x = np.abs(x) if name in POSITIVE else x
    x[:len(HARD)] = HARD
    if top < 2047:
        x[np.abs(x) >= 2.0 ** 30] = 1.25
    return x


def _columns(name, n, seed):
    x = arguments(name, n, seed)
    if FUNCTIONS[name].arity == 1:
        return [x]
    y = arguments(name, n, seed + 1000)
    g = np.random.default_rng(seed)
    if name == "pow":
        x[:n // 2] = np.ldexp(g.uniform(1, 2, n // 2), g.integers(-1000, 1000, n // 2))
        y[:n // 2] = g.uniform(-745, 709, n // 2) / np.log(x[:n // 2])
    y = g.permutation(y) if name != "pow" else y
    if name == "logaddexp":                          # a quarter of the pairs beside the zeros: exp(x) + exp(y) = 1
        x[:n // 4] = np.log(g.random(n // 4)) * np.ldexp(1.0, g.integers(-60, 1, n // 4))
        y[:n // 4] = np.log(-np.expm1(x[:n // 4]))
    return [x, y]


def library():
    RESULTS.mkdir(exist_ok=True)
    source, target = HERE / "elementary_ulps.cpp", RESULTS / "elementary_ulps.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        folder = pathlib.Path(gmpy2.__file__).parent.parent / "gmpy2.libs"
        links = [str(p) for p in sorted(folder.glob("lib*")) if "mpc" not in p.name] or ["-lmpfr", "-lgmp"]
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", str(source), *links, f"-Wl,-rpath,{folder}",
                        "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def _chunk(loaded, name, seed, function):
    columns = [np.ascontiguousarray(c) for c in _columns(name, CHUNK, seed)]
    with np.errstate(all="ignore"):
        out = np.ascontiguousarray(function(*columns))
    result = np.zeros(6)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (columns[0], columns[-1], out)]
    if loaded.ulps(name.encode(), *pointers, ctypes.c_int64(CHUNK),
                   ctypes.c_double(FUNCTIONS[name].absolute), ctypes.c_void_p(result.ctypes.data)):
        raise ValueError(f"elementary_ulps.cpp has no function {name!r}")
    return result


def measure(name, count, workers=2, function=None):
    """{normal, subnormal, at, misrounded, specials, count}: worst errors in ulps over `count` arguments.

    Where the bound of a function has an absolute part, errors are counted beyond it.
    """
    loaded = library()
    function = function or (lambda *a: evaluate(name, *a))
    seeds = range(max(1, -(-count // CHUNK)))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = pool.map(lambda seed: _chunk(loaded, name, seed, function), seeds)
        rows = list(tqdm(jobs, name, len(seeds)))
    worst = max(rows, key=lambda r: r[0])
    total = len(rows) * CHUNK
    return {"normal": round(float(worst[0]), 4), "at": [float(v).hex() for v in worst[1:3]],
            "subnormal": round(float(max(r[3] for r in rows)), 4),
            "misrounded": round(float(sum(r[4] for r in rows)) / total, 6),
            "specials": int(sum(r[5] for r in rows)), "count": total}


def main(names, count, workers):
    """Measure `names` (all functions if empty) and update the committed table."""
    for name in names or FUNCTIONS:
        row = measure(name, count, workers)
        print(f"{name:10s} ulps {row['normal']:.4f} at {row['at']} subnormal {row['subnormal']:.4f} "
              f"misrounded {row['misrounded']:.4%} specials {row['specials']}", flush=True)
        table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
        table[name] = row
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")
