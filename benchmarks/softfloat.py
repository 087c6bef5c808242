"""``python3 -m benchmarks softfloat``: binary128 and small formats beside gcc's ``__float128``.

Both sides work on the same arrays of 16,384 in the same process, round by round; the C functions
that take a microsecond and more see a sixteenth of them, so that a round fits a time slice. gcc -O2
does + - * /; glibc does sqrt and fma (libquadmath's sqrt is wrong in a quarter of all cases);
libquadmath does the functions; numpy-quaddtype, where it is installed, does all but fma. Ratios are of
times per number, medians and best rounds; every round follows one of the same kind that is not timed,
so that both sides find their arrays in the cache. Without a compiler only our own times are shown.
"""
from __future__ import annotations

import ctypes
import importlib
import importlib.util
import pathlib
import shutil
import subprocess
import tempfile
from functools import partial

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case, control, measure, report
from tlgrad.softfloat import array, fast
from tlgrad.softfloat.storage import dtype_of

COUNT, SIZE = 16384, 96
#: calls of one of our kernels in a round: one takes 10 to 60 us, less than wide vectors need to speed up
CALLS = 16
SOURCE = """
#include <quadmath.h>
#include <math.h>
typedef __float128 q;
#define MAP(name, e) void name(long n, q *a, q *b, q *c) { for (long i = 0; i < n; i++) c[i] = e; }
MAP(add, a[i] + b[i]) MAP(sub, a[i] - b[i]) MAP(mul, a[i] * b[i]) MAP(div_, a[i] / b[i])
MAP(sqrt_, sqrtf128(a[i])) MAP(fma_, fmaf128(a[i], b[i], a[i]))
MAP(exp_, expq(a[i])) MAP(log_, logq(a[i])) MAP(sin_, sinq(a[i])) MAP(cos_, cosq(a[i]))
MAP(tanh_, tanhq(a[i]))
void matmul(long n, q *a, q *b, q *c) {
  for (long i = 0; i < n; i++) {
    for (long j = 0; j < n; j++) c[i * n + j] = 0;
    for (long k = 0; k < n; k++)
      for (long j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j]; } }
"""
FLAGS = ["-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-D__STDC_WANT_IEC_60559_TYPES_EXT__"]
OPERATIONS = {"add": 2, "mul": 2, "div": 2, "sqrt": 1, "fma": 3, "exp": 1, "log": 1, "sin": 1,
              "cos": 1, "tanh": 1}


def compiled_c(source: str = SOURCE):
    """The C functions as a ctypes library, or None where there is no gcc or no libquadmath."""
    if shutil.which("gcc") is None:
        return None
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "quad.c").write_text(source)
    command = ["gcc", *FLAGS, str(folder / "quad.c"), "-o", str(folder / "quad.so"), "-lquadmath", "-lm"]
    done = subprocess.run(command, capture_output=True)
    return ctypes.CDLL(str(folder / "quad.so")) if done.returncode == 0 else None


def numbers(count, seed, low=-2, high=3):
    """Positive binary128 numbers of exponents low..high-1 with all their bits."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2 ** 64, (count, 2), dtype=np.uint64)
    exponent = (16383 + rng.integers(low, high, count)).astype(np.uint64) << np.uint64(48)
    words[:, 1] = words[:, 1] >> np.uint64(16) | exponent
    return words.view(dtype_of(tl.binary128)).reshape(count)


def _launch(function, *arrays, count=COUNT):
    """A round of a compiled function on whole arrays: nothing but its call."""
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]

    def run(calls=1):
        for _ in range(calls):
            function(ctypes.c_long(count), *pointers)
        return arrays
    return run


def ours(name, arguments):
    """One round of an operation: arithmetic into an array that is there, as in C; functions through
    `array.evaluate`, which also settles what the kernel leaves undecided."""
    if name not in fast.catalogue.ARITHMETIC:
        return lambda: array.evaluate(name, tl.binary128, *arguments)
    kernel = fast.catalogue.arithmetic(name, fast.layout(tl.binary128))
    return partial(_launch(kernel, *arguments, np.empty_like(arguments[0])), CALLS)


def pairs(library):
    """Cases by operation: ours, and the C library's where there is one."""
    a, b, out = numbers(COUNT, 0), numbers(COUNT, 1), numbers(COUNT, 2)
    cases, ratios = [], {}
    for name, arity in OPERATIONS.items():
        items = COUNT * CALLS if name in fast.catalogue.ARITHMETIC else COUNT
        cases.append(Case(name, ours(name, (a, b, a)[:arity]), items))
        if library is not None:
            peer = getattr(library, name if name in ("add", "mul") else name + "_")
            count = COUNT if name in ("add", "mul", "div") else COUNT // 16
            cases.append(Case(f"{name} in C", _launch(peer, a, b, out, count=count), count))
            ratios[f"{name}: times as fast as C"] = (f"{name} in C", name)
    a, b = a[:SIZE ** 2].reshape(SIZE, SIZE), b[:SIZE ** 2].reshape(SIZE, SIZE)
    start = np.zeros((SIZE, SIZE), a.dtype)
    cases.append(Case("matmul", lambda: array.contract(a, b, start, tl.binary128), SIZE ** 3))
    if library is not None:
        cases.append(Case("matmul in C", _launch(library.matmul, a, b, out, count=SIZE), SIZE ** 3))
        ratios["matmul: times as fast as C"] = ("matmul in C", "matmul")
    return cases, ratios


def quaddtype():
    """Cases and ratios of numpy-quaddtype on the same numbers; none where it is not installed."""
    cases, ratios = [], {}
    if importlib.util.find_spec("numpy_quaddtype") is None:
        return cases, ratios
    dtype = importlib.import_module("numpy_quaddtype").QuadPrecDType()
    a, b = (np.frombuffer(numbers(COUNT, seed).tobytes(), dtype) for seed in (0, 1))
    for name, arity in OPERATIONS.items():
        function = getattr(np, {"mul": "multiply", "div": "divide"}.get(name, name), None)
        if function is not None:
            case = f"{name} in numpy-quaddtype"
            cases.append(Case(case, lambda f=function, x=(a, b)[:arity]: f(*x), COUNT))
            ratios[f"{name}: times as fast as numpy-quaddtype"] = (case, name)
    return cases, ratios


def small_formats():
    """Sums, products and quotients of small formats, words in and words out: every word of 8-bit formats
    and binary16, numbers about 1 of the formats with the range of binary32 or with more fraction bits."""
    rng, cases = np.random.default_rng(3), []
    for fmt in (tl.float8_e4m3fn, tl.float8_e5m2, tl.binary16, tl.bfloat16.format, tl.tf32, tl.Binary(9, 22),
                tl.Binary(7, 16), tl.Binary(4, 11), tl.Binary(9, 24), tl.Binary(5, 18, specials="fn"),
                tl.Binary(8, 20, specials="fnuz"), tl.Binary(8, 23, bias=100)):
        words = rng.integers(0, 1 << fmt.width, (2, COUNT)).astype(f"u{fmt.itemsize}")
        if fmt.E >= 8 or fmt.F > 10:
            words = (words & ((1 << fmt.F) - 1) | (fmt.bias << fmt.F)).astype(words.dtype)
        x, y = words.view(dtype_of(fmt))
        for name in ("add", "mul", "div"):
            kernel = fast.catalogue.small(name, fast.narrow_layout(fmt))
            calls = partial(_launch(kernel, x, y, np.empty_like(x)), CALLS)
            cases.append(Case(f"{name} {fmt!r}", calls, COUNT * CALLS))
    return cases


def groups():
    """Nine operations, or four and two elementary functions, as one kernel, beside eager calls."""
    def choices(x, y):
        return tl.where(x > y, x * y - 1, tl.maximum(x, -y) * 2 + y * y)

    def functions(x, y):
        return tl.exp(x * y - 4) * tl.tanh(y) + x

    cases, ratios = [], {}
    for dtype in (tl.binary128, tl.tf32, tl.Binary(9, 22), tl.bfloat16, tl.float8_e4m3fn):
        x, y = (tl.convert(tl.tensor(np.random.default_rng(k).uniform(0.5, 4, COUNT)), dtype) for k in (0, 1))
        for name, f, count in (("choices", choices, 9 * COUNT), ("functions", functions, COUNT)):
            cases.append(Case(f"{name} {x.dtype!r}", partial(tl.run(f), x, y), count))
            cases.append(Case(f"{name} {x.dtype!r}, eager", partial(f, x, y), count))
            ratios[f"{name} {x.dtype!r}: times as fast as eager"] = (cases[-1].name, cases[-2].name)
    return cases, ratios


def mlp():
    """A two-layer perceptron in binary128: the loss, and its gradient."""
    rng = np.random.default_rng(0)
    params = [tl.tensor(rng.standard_normal(s), tl.binary128) for s in ((64, 32), (32, 10))]
    x, y = (tl.tensor(rng.standard_normal((32, n)), tl.binary128) for n in (64, 10))

    def loss(w1, w2):
        return tl.mean((tl.tanh(x @ w1) @ w2 - y) ** 2)

    forward, backward = tl.run(loss), tl.run(tl.grad(loss, argnums=(0, 1)))
    return [Case("MLP loss", lambda: forward(*params)), Case("MLP gradient", lambda: backward(*params))]


def main(arguments):
    """Run and report; ``--rounds N`` takes N rounds, ``--only WORD`` the cases whose name has the word."""
    rounds = int(arguments[arguments.index("--rounds") + 1]) if "--rounds" in arguments else 15
    fast.WARM = 0
    cases, ratios = pairs(compiled_c())
    for found, more in (quaddtype(), (small_formats(), {}), groups()):
        cases, ratios = cases + found, ratios | more
    cases += [*mlp(), control()]
    ratios["MLP gradient over loss"] = ("MLP gradient", "MLP loss")
    if "--only" in arguments:
        word = arguments[arguments.index("--only") + 1]
        cases = [case for case in cases if word in case.name]
        ratios = {n: pair for n, pair in ratios.items() if {*pair} <= {case.name for case in cases}}
    timings = measure([case._replace(prepare=case.round) for case in cases], rounds)
    rates = {name: f"{t.items / t.best / 1e6:.1f} M/s at best" for name, t in timings.items()
             if t.items > 1}
    found = {name: f"{_ratio(timings[a], timings[b], 'median'):.2f}, best rounds "
                   f"{_ratio(timings[a], timings[b], 'best'):.2f}" for name, (a, b) in ratios.items()}
    report("softfloat", timings, extra={**found, **rates})


def _ratio(a, b, field):
    return (getattr(a, field) / a.items) / (getattr(b, field) / b.items)
