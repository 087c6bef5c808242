"""Every binary32 input of an elementary function, checked for correct rounding.

A filter in C++ decides almost all inputs soundly (see ``elementary_oracle.cpp``); MPFR, through gmpy2,
decides the rest. Negative inputs of odd and even functions are compared with the positive ones. This is done with
the narrow bodies; with AVX-512, the words of the bodies in pairs are compared with theirs. Finished
blocks are kept in ``benchmarks/results/``, so that an interrupted run resumes; the results go to
``benchmarks/elementary_exhaustive.json``, which is committed.
"""
import concurrent.futures
import ctypes
import functools
import hashlib
import json
import math
import os
import pathlib
import platform
import subprocess
import time

import gmpy2
import numpy as np
from tqdm import tqdm

from tlgrad.kernels.elementary import FUNCTIONS, evaluation, unrounded
from tlgrad.kernels.elementary.evaluation import compiled, evaluate
from tlgrad.kernels.elementary.registry import rounded_once
from tlgrad.kernels.expr import Value
from tlgrad.kernels.expr.ctext import CText
from tlgrad.kernels.expr.llvm import LLVM
from tlgrad.kernels.machine import once

HERE = pathlib.Path(__file__).parent
TABLE = HERE / "elementary_exhaustive.json"
RESULTS = HERE / "results"
BLOCK = 1 << 24
CAPACITY = 1 << 16
PRECISION = 400
ODD = {"sin", "tan", "sinpi", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "cbrt"}
EVEN = {"cos", "cospi", "cosh"}
NAMES = [name for name, function in FUNCTIONS.items() if function.arity == 1 and function.rounded]


# ---------------------------------------------------------------- MPFR, the judge

def _composite(name, x):
    """The functions that MPFR lacks, at `PRECISION` bits."""
    half = gmpy2.mpfr("0.5")
    if name == "logistic":
        return 1 / (1 + gmpy2.exp(-x))
    if name == "softplus":
        return gmpy2.log1p(gmpy2.exp(x))
    if name == "rsqrt":
        return 1 / gmpy2.sqrt(x)
    if name in ("sinpi", "cospi"):
        r = x - 2 * gmpy2.rint(x / 2)
        y = getattr(gmpy2, name[:3])(gmpy2.const_pi() * r)
        return gmpy2.copy_sign(y, x) if name == "sinpi" and not y else y
    if name == "gelu_erf":
        return x * half * gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2)))
    if name == "gelu_tanh":
        u = gmpy2.sqrt(8 / gmpy2.const_pi()) * (x + gmpy2.mpfr("0.044715") * x ** 3)
        return x / (1 + gmpy2.exp(-u))
    return getattr(gmpy2, name)(x)


def rounded32(name, x):
    """The function at the binary32 number `x`, correctly rounded by MPFR.

    400 bits decide: no function here comes nearer to a midpoint than some 2**-70 without being exact.
    """
    with gmpy2.context(precision=PRECISION, emin=-(1 << 24), emax=1 << 24):
        y = _composite(name, gmpy2.mpfr(float(x)))
    with gmpy2.context(precision=24, emin=-148, emax=128, subnormalize=True):
        return np.float32(float(gmpy2.mpfr(y, 24)))


# ---------------------------------------------------------------- the run

def library():
    RESULTS.mkdir(exist_ok=True)
    source, target = HERE / "elementary_oracle.cpp", RESULTS / "elementary_oracle.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["g++", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC",
                        str(source), "-o", str(target), "-lmvec", "-lm"], check=True)
    loaded = ctypes.CDLL(str(target))
    loaded.mirror.restype = loaded.differing.restype = ctypes.c_int64
    loaded.distance.restype = loaded.nanoseconds.restype = ctypes.c_double
    return loaded


def _pointer(name, dtype):
    return ctypes.cast(compiled(name, dtype), ctypes.c_void_p)


def narrow(name):
    """The kernel of the narrow body alone, as a pointer."""
    return ctypes.cast(_narrow(name), ctypes.c_void_p)


@once
def _narrow(name):
    avx512 = evaluation.host().avx512
    emitter = LLVM(evaluation.LANES[avx512], avx512=avx512, block="loop")
    return evaluation.load(evaluation.loop_kernel(functools.partial(rounded_once, name), 1, "f32", emitter))


def in_pairs(name, first=0, last=1 << 32, workers=2):
    """The number of words in [first, last) for which the body in pairs gives other words than the narrow one."""
    loaded, pointers = library(), [_pointer(name, "float32"), narrow(name)]

    def work(start):
        where = np.empty(1, np.uint32)
        return loaded.differing(*pointers, ctypes.c_uint64(start), ctypes.c_uint64(start + BLOCK),
                                ctypes.c_void_p(where.ctypes.data), ctypes.c_int64(1))
    starts = range(first, last, BLOCK)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return sum(tqdm(pool.map(work, starts), f"{name} in pairs", len(starts)))


def filtered(loaded, name, start, stop, step=1):
    """[wrong inputs, undecided inputs] among the words i * step, start <= i < stop."""
    lists = [np.empty(CAPACITY, np.uint32) for _ in range(2)]
    counts = (ctypes.c_int64 * 2)()
    status = loaded.filter(name.encode(), narrow(name), ctypes.c_uint64(start),
                           ctypes.c_uint64(stop), ctypes.c_uint64(step),
                           *(ctypes.c_void_p(a.ctypes.data) for a in lists),
                           ctypes.c_int64(CAPACITY), counts)
    if status:
        raise ValueError(f"elementary_oracle.cpp has no function {name!r}")
    return [a[:min(n, CAPACITY)].tolist() for a, n in zip(lists, counts)]


def mirrored(loaded, name, start, stop):
    """`filtered` for negative words of an odd or even function: its results against the positive ones."""
    wrong = np.empty(CAPACITY, np.uint32)
    count = loaded.mirror(narrow(name), ctypes.c_uint64(start), ctypes.c_uint64(stop),
                          ctypes.c_uint32(0 if name in EVEN else 1 << 31),
                          ctypes.c_void_p(wrong.ctypes.data), ctypes.c_int64(CAPACITY))
    return [wrong[:min(count, CAPACITY)].tolist(), []]


def _digest(name):
    """Of the body without its exceptional inputs: those are near ties, which are judged every time."""
    emitter = CText()
    unrounded(name, Value(emitter, "x", "f64"))
    return hashlib.sha256("\n".join(emitter.lines).encode()).hexdigest()[:16]


def _resume(name, digest):
    path = RESULTS / f"exhaustive_{name}.json"
    state = json.loads(path.read_text()) if path.exists() else {}
    return path, state["blocks"] if state.get("digest") == digest else {}


def check(name, workers=2, first=0, last=1 << 32):
    """{near, wrong, misses, distance, seconds} over the words in [first, last), by blocks of 2**24."""
    loaded, digest = library(), _digest(name)
    path, blocks = _resume(name, digest)
    starts = [s for s in range(first, last, BLOCK) if str(s) not in blocks]
    began, before = time.time(), sum(b[2] for b in blocks.values())

    def work(start):
        t = time.time()
        test = mirrored if name in ODD | EVEN and start >= 1 << 31 else filtered
        return start, [*test(loaded, name, start, start + BLOCK), time.time() - t]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for i, (start, found) in enumerate(tqdm(pool.map(work, starts), name, len(starts))):
            blocks[str(start)] = found
            if i % 16 == 15:
                path.write_text(json.dumps({"digest": digest, "blocks": blocks}))
    path.write_text(json.dumps({"digest": digest, "blocks": blocks}))
    kept = [blocks[str(s)] for s in range(first, last, BLOCK)]
    worst = loaded.distance(name.encode(), _pointer(name, "float16"), ctypes.c_uint64(37))
    return judged(name, kept) | {"distance": round(math.log2(worst or 1e-300), 2),
                                 "seconds": round(time.time() - began + before / workers, 1)}


def judged(name, blocks):
    """The row of the table for the filtered `blocks`: MPFR decides what the filter could not."""
    sure = [w for b in blocks for w in b[0]]
    near = [w for b in blocks for w in b[1]]
    x = np.array(near, np.uint32).view(np.float32)
    want = np.array([rounded32(name, v) for v in x], np.float32)
    got = evaluate(name, x) if len(x) else x
    off = got.view(np.uint32) != want.view(np.uint32)
    misses = {f"{w:#010x}": f"{v:#010x}"
              for w, v in zip(np.array(near, np.uint32)[off], want.view(np.uint32)[off])}
    return {"near": len(near), "exceptional": len(FUNCTIONS[name].exceptional),
            "wrong": len(sure) + len(misses), "misses": misses, "sure": [hex(w) for w in sure[:20]]}


def pairs(names, workers):
    """Compare the bodies in pairs of `names` (all that have one if empty) and update the committed table."""
    for name in names or [name for name in NAMES if FUNCTIONS[name].pairs]:
        table = json.loads(TABLE.read_text())
        table[name]["pairs"] = in_pairs(name, workers=workers)
        print(f"{name:10s} in pairs: {table[name]['pairs']} words differ", flush=True)
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")


def main(names, workers):
    """Check `names` (all functions if empty) and update the committed table."""
    for name in names or NAMES:
        row = check(name, workers)
        print(f"{name:10s} near {row['near']:4d} exceptional {row['exceptional']:2d} wrong {row['wrong']} "
              f"distance 2^{row['distance']} {row['seconds']} s {row['misses']} {row['sure']}", flush=True)
        table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
        table[name] = row | {"machine": f"{platform.machine()}, {os.cpu_count()} CPUs"}
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")
        if FUNCTIONS[name].pairs and evaluation.host().avx512:
            pairs([name], workers)
