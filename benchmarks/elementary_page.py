"""Writes ``docs/elementary.md`` and its plot from the committed tables of the other measurements."""
import ctypes
import json
import pathlib

import numpy as np

from tlgrad.kernels.elementary import FUNCTIONS, evaluate

from . import elementary_exhaustive, elementary_plain, elementary_timing, elementary_ulps

DOCS = pathlib.Path(__file__).parent.parent / "docs"
PAGE, PLOT = DOCS / "elementary.md", DOCS / "elementary.svg"
PANELS = {"exp": (-20, 20), "log": (0.1, 4), "tanh": (-4, 4), "sin": (-10, 10), "erf": (-3, 3),
          "log1p": (-0.9, 3)}
HEAD = """# Elementary functions

This page is generated: `python3 -m benchmarks elementary --page`.

Every function is written once, over the expression class of `kernels/expr/`, with IEEE 754 operations and a
fused multiply-add only where the text says so. It is rendered as NumPy operations (the meaning), as LLVM IR
(what eager calls and compiled kernels run) and as C++ and CUDA text. The tests compare the words: LLVM with
8, 4, 2 and 1 lanes, with AVX2, and without an FMA instruction, and `g++`, on random words and special values.

```python
import numpy as np
from tlgrad.kernels.elementary import evaluate

x = np.float32([0.5, -1.0])
evaluate("tanh", x)                       # the same words eager, compiled, on any machine
```

FMA hardware is needed for speed only: without it the words are the same, many times slower.

## binary32: correctly rounded

All 2^32 inputs of each function below were checked, by `python3 -m benchmarks elementary --exhaustive`:
glibc's binary64 value decides unless a boundary of rounding lies within 2^-48 of it (2^-42 for gelu); MPFR
decides those *near ties*. *Exceptional* inputs are those whose binary64 value is a midpoint; they are listed
in `kernels/elementary/exceptional.py`. *Distance* is the greatest relative difference between our value
before rounding and glibc's (which has an error of its own of some 2^-51).

"""
TIMING_HEAD = """
## Cost

Nanoseconds per element on one core of a shared virtual machine ({machine}). *L1* is our kernel on 4,096
elements timed from C, minimum and in brackets the quartiles of 31 rounds; the others are minima on 2^16
elements, on one thread. Ratios are to ours on 2^16 elements: above 1, ours is faster. The machine was shared
with others, so the ratios within a line mean more than the figures. SciPy stands in where NumPy has no such
function; libm is glibc's scalar function in a loop. *Compile* is CPU time in milliseconds;
*branches* is that of the kernel's branches that are functions of their own, compiled once for all kernels that
have them.

"""
PLAIN_HEAD = """
Correct rounding costs this much over plain binary32 bodies, which use one polynomial and binary32 arithmetic
with fma (their worst error is that of the sample; ratio of times: median and quartiles of pairs of rounds):

"""
PEERS = ("numpy", "jax", "libm")


def _load(module):
    return json.loads(module.TABLE.read_text()) if module.TABLE.exists() else {}


def _table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def exhaustive_text():
    table = _load(elementary_exhaustive)
    rows = [(name, row["near"], row["exceptional"], f"2^{row['distance']:.1f}" if row["distance"] > -99 else "0",
             row["wrong"]) for name, row in table.items()]
    missing = [name for name in elementary_exhaustive.NAMES if name not in table]
    note = f"\nNot run over all inputs yet (2^20 samples in the tests): {', '.join(missing)}.\n" if missing else ""
    header = "function", "near ties", "exceptional", "distance", "wrong of 2^32"
    return _table(header, rows) + note + pairs_text(table)


def pairs_text(table):
    """Which functions have a body in pairs, and in how many words it differs."""
    counts = {name: row["pairs"] for name, row in table.items() if "pairs" in row}
    return f"""
With AVX-512, {", ".join(counts)} are evaluated in pairs of binary32 numbers, sixteen to a register. A rounding
test sends about one number in a thousand to the binary64 body of the table above. The words of the two were
compared on all 2^32 inputs: {sum(counts.values())} differ.
"""


def accuracy_text():
    """The binary64 errors, and the peers' in both formats."""
    ours, peers = _load(elementary_ulps), _load(elementary_timing)
    rows = []
    for name, row in ours.items():
        bound = f"{FUNCTIONS[name].ulps:.2f}" + "*" * (FUNCTIONS[name].absolute > 0)
        beside = []
        for key in PEERS:
            peer = peers.get(name, {}).get("accuracy", {}).get(key)
            beside += [f"{peer['binary64']:.3g}", f"{peer['binary32'][0]:.1%}"] if peer else ["", ""]
        rows.append((name, bound, f"{row['normal']:.4f}",
                     f"{row['subnormal']:.2f}" if row["subnormal"] else "", f"{row['misrounded']:.3%}",
                     f"{row['count']:.1e}", *beside))
    header = ("function", "bound", "worst", "subnormal results", "not nearest", "arguments", "NumPy worst",
              "NumPy binary32 right", "JAX worst", "JAX binary32 right", "libm worst", "libm binary32 right")
    return """
## binary64: error in ulps

Measured against MPFR on random words of every exponent, ordinary ranges, small numbers and published hard
cases. A starred bound has an absolute part besides, and errors are counted beyond it: logaddexp 2^-100
min(|x|, |y|), where exp(x) + exp(y) is almost 1; lgamma 2^-54 and digamma 2^-51 for x < 0, where their zeros
are reached by cancellation. In binary32 these three are right to one ulp there too. *binary32 right* is the
share of a peer's binary32 results equal to the correctly rounded ones.

""" + _table(header, rows)


def timing_text():
    """Cost beside the peers, of correct rounding, and off the fast path."""
    rows, table = [], _load(elementary_timing)
    for name, row in table.items():
        for dtype in elementary_timing.DTYPES:
            c = row[dtype]
            ratios = [f"{c[key][0] / c['large'][0]:.2f}" if key in c else "" for key in PEERS]
            rows.append((name, dtype, f"{c['small'][0]:.2f} [{c['small'][2]:.2f}, {c['small'][3]:.2f}]",
                         f"{c['large'][0]:.2f}", *ratios, c["compile"], c.get("branches", "")))
    slow = json.loads(elementary_timing.PATHS_TABLE.read_text())
    machines = sorted({row["machine"] for row in table.values()})
    header = ("function", "dtype", "L1", "2^16", "NumPy / ours", "JAX / ours", "libm / ours", "compile",
              "branches")
    return (TIMING_HEAD.format(machine="; ".join(machines)) + _table(header, rows) + plain_text()
            + "\nTime of arguments off the fast path, over that of ordinary ones:\n\n"
            + _table(("arguments", "ratio"), slow.items()))


def plain_text():
    rows = []
    for name, row in _load(elementary_plain).items():
        low, middle, high = row["ratio"]
        rows.append((name, row["ours"], row["plain"], f"{middle} [{low}, {high}]", row["ulps"]))
    return PLAIN_HEAD + _table(("function", "ours", "plain", "ratio", "plain, ulps"), rows)


def text():
    """The page, from the committed tables."""
    plot = "\n## Error over the range\n\n![Error of the binary64 results in ulps](elementary.svg)\n\n"
    note = "Largest error in each of 400 intervals, in ulps: ours dark, NumPy's (SciPy's for erf) light.\n"
    return HEAD + exhaustive_text() + accuracy_text() + timing_text() + plot + note


def _worst(name, x, y):
    """The largest error of `y` in each row of `x`, in ulps."""
    found = np.empty_like(x)
    pointers = [ctypes.c_void_p(np.ascontiguousarray(a).ctypes.data) for a in (x, y, found)]
    elementary_ulps.library().errors(name.encode(), pointers[0], pointers[1], ctypes.c_int64(x.size), pointers[2])
    return np.abs(found).max(axis=1)


def plot():
    """Write the plot: one panel a function."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "tlgrad"
    figure, axes = pyplot.subplots(2, 3, figsize=(10, 5), constrained_layout=True)
    g = np.random.default_rng(0)
    for panel, (name, (low, high)) in zip(axes.flat, PANELS.items()):
        edges = np.linspace(low, high, 401)
        x = np.ascontiguousarray(edges[:-1, None] + np.diff(edges)[0] * g.random((400, 250)))
        theirs = np.ascontiguousarray(elementary_timing.numpy_function(name)(x))
        panel.plot(edges[:-1], _worst(name, x, theirs), color="#e0a030", lw=0.8,
                   label="SciPy" if name == "erf" else "NumPy")
        panel.plot(edges[:-1], _worst(name, x, evaluate(name, x)), color="#204080", lw=0.8, label="tlgrad")
        panel.set_title(name)
        panel.set_ylabel("largest error, ulps")
        panel.legend(loc="lower right", frameon=False)
        panel.set_ylim(0, 1.5)
    figure.savefig(PLOT, metadata={"Date": None})


def main():
    """Write the page and the plot."""
    DOCS.mkdir(exist_ok=True)
    plot()
    PAGE.write_text(text())
