"""``python3 -m benchmarks frontend``: reading scalar functions, cold and warm, and the sizes of what is recorded.

The median is over the functions of ``tests/frontend/test_awkward.py``, each recorded alone.  Cold: nothing is
known of the function; warm: its bytecode has been read before, as in the second trace of one function.
The peer is Numba's own front end (bytecode to IR, SSA and its rewrites) on the same functions.
"""
from __future__ import annotations

import pathlib
import sys

from numba.core.compiler import run_frontend

from benchmarks.harness import Case, measure, report, seconds, summarize
from tlgrad.core.aval import make_aval
from tlgrad.core.dtypes import float64
from tlgrad.core.jaxpr import count_eqns
from tlgrad.frontend.graph import forget
from tlgrad.frontend.interpreter import record

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
from frontend.test_awkward import CASES                 # noqa: E402
from frontend.test_sizes import early_returns, ifs      # noqa: E402


def recorded(f, arguments=1):
    """The program of `f`, on float64 entries."""
    return record(f, lambda symbols: (symbols, {}), [make_aval((), float64)] * arguments).jaxpr


def escape(bound):
    """An escape-time loop of `bound` turns."""
    def f(cr, ci):
        zr = zi = 0.0
        for k in range(bound):
            zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
            if zr * zr + zi * zi > 4:
                return k
        return bound
    return f


def main(arguments):
    """Run and report."""
    rounds = int(arguments[0]) if arguments else 9
    awkward = [(f, len(inputs[0])) for f, inputs in CASES]
    cases = []
    for f, n in awkward:
        cases += [Case(f"cold {f.__name__}", lambda f=f, n=n: recorded(f, n), prepare=forget),
                  Case(f"warm {f.__name__}", lambda f=f, n=n: recorded(f, n)),
                  Case(f"numba {f.__name__}", lambda f=f: read_by_numba(f))]
    for family in (ifs, early_returns):
        for n in (12, 48, 96):
            f = family(n)
            cases += [Case(f"cold {n} {family.__name__}", lambda f=f: recorded(f), prepare=forget),
                      Case(f"warm {n} {family.__name__}", lambda f=f: recorded(f))]
    timings = measure(cases, rounds)
    medians = {kind: summarize([timings[f"{kind} {f.__name__}"].median for f, _ in awkward], 1)
               for kind in ("cold", "warm", "numba")}
    shown = {f"{kind}: median of {len(awkward)} functions": medians[kind] for kind in medians}
    shown |= {name: t for name, t in timings.items() if name.split()[1].isdigit()}
    sizes = {bound: count_eqns(recorded(escape(bound), 2)) for bound in (50, 200, 100_000)}
    cold, _, numba, *_ = shown
    report("frontend", shown, {"cold record over Numba's front end": (cold, numba),
                               "96 ifs over 12 ifs, cold (8 is linear)": ("cold 96 ifs", "cold 12 ifs"),
                               "96 ifs over 12 ifs, warm (8 is linear)": ("warm 96 ifs", "warm 12 ifs")},
           {"operations of an escape loop, by bound": sizes,
            "slowest, cold": max((timings[f"cold {f.__name__}"].median, f.__name__) for f, _ in awkward)[1],
            "the slowest takes": seconds(max(timings[f"cold {f.__name__}"].median for f, _ in awkward))})


def read_by_numba(f):
    """What numba.njit does first; None for what it refuses."""
    try:
        return run_frontend(f)
    except Exception:           # noqa: BLE001
        return None
