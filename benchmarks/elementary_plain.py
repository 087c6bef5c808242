"""What correct rounding costs: plain binary32 bodies of about one ulp beside ours.

The plain bodies are what a vector library ships: binary32 arithmetic with fma, one polynomial, no second
word, sixteen numbers in a register; special values and subnormal results included where a clamp gives them.
"""
import ctypes
import functools
import json
import pathlib
import statistics

import numpy as np

from tlgrad.kernels.elementary import evaluate, evaluation
from tlgrad.kernels.elementary.evaluation import compiled
from tlgrad.kernels.elementary.fit import MP, fit
from tlgrad.kernels.expr import copysign, fma_value as fma, horner, maximum, minimum, select
from tlgrad.kernels.expr.llvm import LLVM

from . import elementary_exhaustive, elementary_timing

TABLE = pathlib.Path(__file__).parent / "elementary_plain.json"
SHIFT = 1.5 * 2.0 ** 23                 # v + SHIFT has rint(v) in its low bits
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4       # the high word has 9 bits
ROUNDS = 61
INF, NAN = float("inf"), float("nan")


@functools.cache
def _polynomial(name):
    half = MP.log(2) / 2 * MP.mpf("1.0001")
    of = {"exp": (MP.exp, -half, half, 7, None, (1, 1)),
          "expm1": (lambda r: MP.expm1(r) / r if r else MP.mpf(1), -half, half, 7, None, (1, 0.5)),
          "log": (lambda r: MP.log1p(r) / r if r else MP.mpf(1), -MP.mpf(1) / 3, MP.mpf(1) / 3, 10, None,
                  (1, -0.5))}
    return tuple(fit(*of[name])[0])


def _reduced(v):
    """(word, r): v = k ln2 + r, k in the low bits of `word`."""
    t = fma(v, 1.44269504, SHIFT)
    k = t - SHIFT
    return t.bits(), fma(k, -LN2_LOW, fma(k, -LN2_HIGH, v))


def exp(x):
    v = maximum(minimum(x, 88.72284), -87.33655)
    word, r = _reduced(v)
    y = (horner(_polynomial("exp"), r).bits() + (word << 23)).as_float()
    return select(x > 88.72284, INF, select(x < -87.33655, 0.0, y))


def log(x):
    t = x.bits() - 0x3f2aaaab
    k = t.ashr(23).f32()
    r = (x.bits() - (t & -(1 << 23))).as_float() - 1.0
    q = horner(_polynomial("log")[1:], r)
    y = fma(k, LN2_HIGH, fma(k, LN2_LOW, fma(r * r, q, r)))
    return select(x.eq(INF), INF, select(x > 0.0, y, select(x.eq(0.0), x.like(-INF), NAN)))


def tanh(x):
    word, r = _reduced(minimum(x.abs(), 9.1) * 2.0)
    p = fma(r * r, horner(_polynomial("expm1")[1:], r), r)
    s = ((word << 23) + 0x3f800000).as_float()
    e = fma(s, p, s - 1.0)
    return copysign(e / (e + 2.0), x.sign())


PLAIN = {"exp": (exp, 2.0), "log": (log, 2.0), "tanh": (tanh, 2.5)}       # with the ratio to stay below


def _loaded(body):
    avx512 = evaluation.host().avx512
    emitter = LLVM(32 if avx512 else 16, avx512=avx512, block="loop")
    return evaluation.load(evaluation.loop_kernel(body, 1, "f32", emitter))


def _timer(kernel, x):
    library, n, calls = elementary_exhaustive.library(), x.size, 8
    out = elementary_timing.aligned(x, elementary_timing.PAGE // 2)
    arguments = [ctypes.cast(kernel, ctypes.c_void_p), *(ctypes.c_void_p(a.ctypes.data) for a in (x, out)),
                 ctypes.c_int64(n), ctypes.c_int64(calls)]
    return out, lambda: library.nanoseconds(*arguments) / n / calls


def ratio(name):
    """{ours, plain: ns per element; ratio: median and quartiles of pairs of rounds; ulps: of the plain body}."""
    x = elementary_timing.aligned(elementary_timing.ordinary(name, elementary_timing.SMALL, np.float32))
    body, bound = PLAIN[name]
    _, ours = _timer(compiled(name, "float32"), x)
    out, plain = _timer(_loaded(body), x)
    pairs = [(ours(), plain()) for _ in range(ROUNDS)]
    quartiles = statistics.quantiles([a / b for a, b in pairs], n=4)
    right = evaluate(name, x.astype(np.float64))
    error = np.abs(out - right) / np.spacing(np.abs(right).astype(np.float32))
    return {"ours": round(min(a for a, _ in pairs), 3), "plain": round(min(b for _, b in pairs), 3),
            "ratio": [round(q, 2) for q in quartiles], "bound": bound, "ulps": round(float(error.max()), 2),
            "machine": elementary_timing.machine()}


def main():
    """Time the plain bodies and ours in turn, into the table."""
    table = {name: ratio(name) for name in PLAIN}
    print(json.dumps(table, indent=1))
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
